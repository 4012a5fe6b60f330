//! Answers in sentences for people.

use super::super::answer::{Answer, Name, Other, Partial, Question};
use super::super::compared::{is_same, is_told_apart};
use super::super::until::is_until;
use super::super::{INTERVAL_SEEDS, number, show};
use crate::scenario::points;
use fedgenie_core::math::statistics::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// The most candidates that a sentence names, and the most sentences of a kind.
const MOST_NAMED: usize = 4;

/// So many seeds nobody runs: a difference that needs more is called too small to matter.
const MOST_SEEDS: u64 = 1000;

/// The sentences on some answers: what is best, then how many seeds would tell more.
pub fn sentences(answers: &[Answer], points: &[BTreeMap<String, String>]) -> Vec<String> {
    let policies: BTreeSet<&String> = answers.iter().filter_map(|answer| answer.policy.as_ref()).collect();
    let are_several = policies.len() > 1;
    let words = Words { names: points::names(points), bare: points::bare_names(points), are_several };
    let mut told: Vec<String> = words.turns(answers).into_iter().collect();
    told.extend(answers.iter().map(|answer| words.of(answer)));
    told.extend(answers.iter().flat_map(|answer| words.seeds(answer)));
    told
}

struct Words {
    names: Vec<String>,
    bare: Vec<String>,
    /// Whether settings of several policies are compared.
    are_several: bool,
}

impl Words {
    fn name<'a>(&'a self, name: &'a Name) -> &'a str {
        match name {
            Name::Label(label) => label,
            Name::Point(point) => &self.bare[*point],
        }
    }

    /// The place of an answer, at the beginning of a sentence.
    fn place(&self, answer: &Answer) -> String {
        match (answer.point, &answer.policy) {
            (Some(point), _) => format!(" at {}", self.names[point]),
            (None, Some(policy)) if self.are_several => format!(" for {policy}"),
            (None, Some(_)) => String::new(),
            (None, None) => String::new(),
        }
    }

    /// Whether the best policy is the same at all points.
    fn turns(&self, answers: &[Answer]) -> Option<String> {
        let first = answers.first()?;
        let at_points: Vec<&Answer> = answers
            .iter()
            .filter(|answer| answer.point.is_some() && answer.by == first.by && answer.among.is_none())
            .collect();
        let mut by_best: Vec<(&Name, Vec<&str>)> = Vec::new();
        for answer in at_points.iter().filter(|_| at_points.len() > 1) {
            let (Some(best), Some(point)) = (&answer.best, answer.point) else { continue };
            match by_best.iter_mut().find(|(known, _)| *known == best) {
                Some((_, points)) => points.push(&self.names[point]),
                None => by_best.push((best, vec![&self.names[point]])),
            }
        }
        let count = at_points.len();
        match &by_best[..] {
            [] => None,
            [(best, points)] if points.len() == count => {
                Some(format!("{} is best at all {count} points, by {}", self.name(best), first.quantity))
            }
            several => {
                let one = |(best, points): &(&Name, Vec<&str>)| format!("{} at {}", self.name(best), points.join("; "));
                let list = several.iter().map(one).collect::<Vec<_>>().join(". ");
                Some(format!("the best policy is not the same at all points: {list}"))
            }
        }
    }

    fn of(&self, answer: &Answer) -> String {
        let place = self.place(answer);
        let (Some(best), Some(value)) = (&answer.best, &answer.value) else {
            let reason = answer.reason.as_deref().unwrap_or("there is no value");
            let arrivals = self.partial(answer).unwrap_or_default();
            let remedy = match &answer.remedy[..] {
                [] => String::new(),
                settings => {
                    let set = settings.iter().map(|setting| format!("--set '{setting}'")).collect::<Vec<_>>().join(" ");
                    format!("; watched equally long they would be with {set}")
                }
            };
            let what = if answer.question == Question::Policy { "policies" } else { "settings" };
            return format!("{what}{place} are not ranked by {}: {reason}{arrivals}{remedy}", answer.quantity);
        };
        let among = if answer.among.is_some() { "of these, " } else { "" };
        let mut parts = vec![format!("{among}best{place}: {} ({})", self.name(best), shown(answer, value))];
        match answer.edge {
            Some("least") => parts.push(format!("{} is the least tried: try less", self.name(best))),
            Some(_) => parts.push(format!("{} is the most tried: try more", self.name(best))),
            None => {}
        }
        parts.extend(self.others(answer, value));
        if let Some(partial) = self.partial(answer) {
            parts.push(partial.trim_start_matches("; ").to_owned());
        }
        let of_knowing = |(name, value): &(String, Option<Estimate>)| {
            let value = value.as_ref().filter(|value| value.mean != 0.0).map(|value| shown(answer, value));
            format!("{name}, which sees the truth, has {}", value.unwrap_or_else(|| "none".to_owned()))
        };
        parts.extend(answer.sees_truth.iter().map(of_knowing));
        let horizon = answer.horizon.map_or_else(String::new, |end| format!(" within {} {}", number(end), answer.unit));
        let seeds = if value.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", value.n) };
        parts.push(format!("by {}{}, {seeds}", answer.quantity, horizon.trim_end()));
        parts.join("; ")
    }

    /// The candidates beside the best.
    fn others(&self, answer: &Answer, value: &Estimate) -> Vec<String> {
        if answer.others.is_empty() {
            return Vec::new();
        }
        if value.n < INTERVAL_SEEDS {
            let seeds = if value.n == 1 { "1 seed is" } else { "2 seeds are" };
            return vec![format!("{seeds} too few to tell it from the others")];
        }
        let same: Vec<&Other> = answer.others.iter().filter(|other| is_same(&other.found)).collect();
        let open: Vec<&Other> =
            answer.others.iter().filter(|other| !is_told_apart(&other.found) && !same.contains(other)).collect();
        let apart: Vec<&Other> = answer.others.iter().filter(|other| is_told_apart(&other.found)).collect();
        let mut parts: Vec<String> =
            same.iter().take(MOST_NAMED).map(|other| format!("{} is the same", self.name(&other.name))).collect();
        let told = |other: &&Other| format!("{} is not told apart ({})", self.name(&other.name), beside(answer, other));
        parts.extend(open.iter().take(MOST_NAMED).map(told));
        match same.len().saturating_sub(MOST_NAMED) + open.len().saturating_sub(MOST_NAMED) {
            0 => {}
            1 => parts.push("nor is 1 more".to_owned()),
            rest => parts.push(format!("nor are {rest} more")),
        }
        let are_all = apart.len() == answer.others.len();
        parts.extend(match &apart[..] {
            [] => None,
            [other] if are_all => Some(format!("{} is told apart ({})", self.name(&other.name), beside(answer, other))),
            [next, ..] if are_all => {
                let all = if apart.len() == 2 { "both".to_owned() } else { format!("all {}", apart.len()) };
                let next = format!("{} is next ({})", self.name(&next.name), beside(answer, next));
                Some(format!("{all} others are told apart, {next}"))
            }
            [_] => Some("1 other is told apart".to_owned()),
            several => Some(format!("{} others are told apart", several.len())),
        });
        parts
    }

    /// The candidates of which not all runs arrive, or have the quantity; begins with a semicolon.
    fn partial(&self, answer: &Answer) -> Option<String> {
        let verb = if is_until(&answer.by) { "arrives" } else { "has it" };
        let one = |partial: &Partial| {
            format!("; {} {verb} in {} of {} runs", self.name(&partial.name), partial.arrived, partial.runs)
        };
        let rest = answer.partial.len().saturating_sub(MOST_NAMED);
        let more = match rest {
            0 => String::new(),
            1 => "; 1 other lacks some as well".to_owned(),
            rest => format!("; {rest} others lack some as well"),
        };
        let named: String = answer.partial.iter().take(MOST_NAMED).map(one).collect();
        (!named.is_empty()).then(|| named + &more)
    }

    /// How many seeds would tell others from the best; a difference that needs too many is bounded instead.
    fn seeds(&self, answer: &Answer) -> Vec<String> {
        let Some(best) = answer.best.as_ref().filter(|_| answer.among.is_none()) else { return Vec::new() };
        let by = format!("by {}", answer.quantity);
        let place = self.place(answer);
        let needed = |other: &Other| {
            let (one, seeds) = (self.name(&other.name), other.seeds_needed?);
            let best = self.name(best);
            if seeds <= MOST_SEEDS {
                return Some(format!("to tell {one} from {best}{place}: about {} seeds, {by}", number(seeds as f64)));
            }
            let [low, high] = other.ci95?;
            let most = number(low.abs().max(high.abs()));
            let unit = if answer.unit.is_empty() { String::new() } else { format!(" {}", answer.unit) };
            Some(format!("{one} and {best}{place}: no difference larger than {most}{unit} at 95 %, {by}"))
        };
        let all: Vec<String> = answer.others.iter().filter_map(needed).collect();
        let rest = all.len().saturating_sub(MOST_NAMED);
        let mut lines: Vec<String> = all.into_iter().take(MOST_NAMED).collect();
        if rest > 0 {
            let pairs = if rest == 1 { "1 more is".to_owned() } else { format!("{rest} more are") };
            lines.push(format!("… {pairs} not told apart from {}{place}, {by}", self.name(best)));
        }
        lines
    }
}

/// A mean or a difference with its interval and unit.
fn shown(answer: &Answer, value: &Estimate) -> String {
    format!("{}{}{}", show(value), if answer.unit.is_empty() { "" } else { " " }, answer.unit)
}

/// The difference of another to the best, with their ratio where it is of times.
fn beside(answer: &Answer, other: &Other) -> String {
    let sign = if other.difference > 0.0 { "+" } else { "" };
    let ratio =
        other.ratio.filter(|_| answer.unit == "s").map_or_else(String::new, |ratio| format!(", {ratio:.2} times"));
    format!("{sign}{}{ratio}", shown(answer, &other.found))
}
