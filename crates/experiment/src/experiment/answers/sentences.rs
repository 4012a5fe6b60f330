//! Answers in sentences for people.

mod phrases;

use super::super::answer::{Answer, Name, Other, Partial, Question};
use super::super::compared::{is_same, is_told_apart};
use super::super::until::is_until;
use super::super::{INTERVAL_SEEDS, number, show_rounded};
use crate::scenario::points;
use fedgenie_core::math::statistics::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// The most candidates that a sentence names, and the most sentences of a kind.
const MOST_NAMED: usize = 4;

/// So many seeds nobody runs: a difference that needs more is called too small to matter.
const MOST_SEEDS: u64 = 1000;

/// So many sentences stand before a table.
const FIRST: usize = 2;

/// The sentences on some answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The main ones, two at most, which stand before a table.
    pub first: Vec<String>,
    /// The other answers; then how many seeds would tell more.
    pub rest: Vec<String>,
}

impl Told {
    /// All sentences in order.
    pub fn all(self) -> Vec<String> {
        [self.first, self.rest].concat()
    }
}

/// The sentences on some answers.
pub fn sentences(answers: &[Answer], points: &[BTreeMap<String, String>]) -> Told {
    let policies: BTreeSet<&String> = answers.iter().filter_map(|answer| answer.policy.as_ref()).collect();
    let words =
        Words { names: points::names(points), leads: leads(points), bare: points::bare_names(points), policies };
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    let mut quantities: Vec<(&str, Question)> = Vec::new();
    for answer in answers {
        let kind = (answer.by.as_str(), answer.question);
        let sentence = words.of(answer);
        // The common level of a point is one of many.
        let is_of_point = answer.is_common_level && (answer.point.is_some() || answer.policy.is_some());
        if answer.among.is_some() || is_of_point || quantities.contains(&kind) {
            rest.push(sentence);
            continue;
        }
        quantities.push(kind);
        match words.turns(answers, answer) {
            Some(turns) => {
                first.push(turns);
                rest.push(sentence);
            }
            None => first.push(sentence),
        }
    }
    let seeds = answers.iter().flat_map(|answer| words.seeds(answer));
    let mut first: Vec<String> = first.into_iter().chain(rest).collect();
    let rest = first.split_off(FIRST.min(first.len()));
    Told { first, rest: rest.into_iter().chain(seeds).collect() }
}

/// Names of points at the beginning of a sentence: `deadline 10 s`.
fn leads(points: &[BTreeMap<String, String>]) -> Vec<String> {
    let (names, bare) = (points::names(points), points::bare_names(points));
    let lead = |(name, bare): (String, String)| match name.split_once(" = ") {
        Some((path, value)) if value == bare => {
            format!("{} {bare}", path.rsplit('.').next().unwrap_or(path).replace('_', " "))
        }
        _ => name,
    };
    names.into_iter().zip(bare).map(lead).collect()
}

struct Words<'a> {
    names: Vec<String>,
    leads: Vec<String>,
    bare: Vec<String>,
    /// Policies whose settings are compared.
    policies: BTreeSet<&'a String>,
}

impl Words<'_> {
    fn name<'a>(&'a self, name: &'a Name) -> &'a str {
        match name {
            Name::Label(label) => label,
            Name::Point(point) => &self.bare[*point],
        }
    }

    /// The place of an answer, before its sentence.
    fn place(&self, answer: &Answer) -> String {
        match (answer.point, &answer.policy) {
            (Some(point), _) => format!("at {}", self.names[point]),
            (None, Some(policy)) if self.policies.len() > 1 => format!("for {policy}"),
            _ => String::new(),
        }
    }

    /// Whether the best policy is the same at all points, where a question is asked at several.
    fn turns(&self, answers: &[Answer], first: &Answer) -> Option<String> {
        if first.question == Question::Setting {
            return None;
        }
        let is_it = |answer: &&Answer| answer.point.is_some() && answer.by == first.by && answer.among.is_none();
        let asked: Vec<&Answer> = answers.iter().filter(is_it).collect();
        let ranked: Vec<&Answer> = asked.iter().copied().filter(|answer| answer.best.is_some()).collect();
        let mut by_best: Vec<(&Name, Vec<&str>)> = Vec::new();
        for answer in ranked.iter().filter(|_| asked.len() > 1) {
            let (Some(best), Some(point)) = (&answer.best, answer.point) else { continue };
            match by_best.iter_mut().find(|(known, _)| *known == best) {
                Some((_, points)) => points.push(&self.names[point]),
                None => by_best.push((best, vec![&self.names[point]])),
            }
        }
        let predicate = phrases::best(first);
        let unranked = match asked.len() - ranked.len() {
            0 => String::new(),
            1 => "; 1 point is not ranked".to_owned(),
            several => format!("; {several} points are not ranked"),
        };
        match &by_best[..] {
            [] => None,
            [(best, points)] => {
                let open = ranked.iter().filter(|answer| !answer.equal.is_empty()).count();
                let is_few = ranked.iter().any(|answer| answer.value.is_some_and(|value| value.n < INTERVAL_SEEDS));
                let doubt = match open {
                    _ if is_few => {
                        format!("; fewer than {INTERVAL_SEEDS} seeds are too few to tell it from the others")
                    }
                    0 => String::new(),
                    open => format!("; at {open} of them not told apart from all others"),
                };
                let count = match points.len() {
                    1 => "1 point".to_owned(),
                    count if unranked.is_empty() => format!("all {count} points"),
                    count => format!("{count} points"),
                };
                Some(format!("{} {predicate} at {count}{doubt}{unranked}.", self.name(best)))
            }
            several => {
                let one = |(best, points): &(&Name, Vec<&str>)| {
                    let rest = points.len().saturating_sub(MOST_NAMED);
                    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                    format!("{} at {}{more}", self.name(best), points[..points.len() - rest].join(" / "))
                };
                let list = several.iter().map(one).collect::<Vec<_>>().join("; ");
                let (verb, doubt) = match is_turned(&ranked) {
                    true => ("depends", ""),
                    false => ("may depend", "; no two policies are told apart in both orders"),
                };
                Some(format!("Which policy {predicate} {verb} on the point: {list}{doubt}{unranked}."))
            }
        }
    }

    fn of(&self, answer: &Answer) -> String {
        let place = self.place(answer);
        let (Some(best), Some(value)) = (&answer.best, &answer.value) else { return self.unranked(answer) };
        let mut parts = vec![self.lead(answer, best, value)];
        match answer.edge {
            Some("least") => parts.push(format!("{} is the least tried: try less", self.name(best))),
            Some(_) => parts.push(format!("{} is the most tried: try more", self.name(best))),
            None => {}
        }
        parts.extend(self.others(answer, value));
        parts.extend(self.partial(answer));
        let of_knowing = |(name, value): &(String, Option<Estimate>)| {
            let value = value.as_ref().map_or_else(|| "no value".to_owned(), |value| shown(answer, value));
            format!("{name}, which sees the truth, has {value}")
        };
        parts.extend(answer.sees_truth.iter().map(of_knowing));
        let sentence = format!("{}.", parts.join("; "));
        match best {
            _ if !place.is_empty() => format!("{}, {sentence}", capital(&place)),
            // A label stands as it is.
            Name::Label(_) if answer.among.is_none() => sentence,
            _ => capital(&sentence),
        }
    }

    /// `deadline 10 s is fastest to … by 5400 s: 1980 ± 200 s, 5 seeds`.
    fn lead(&self, answer: &Answer, best: &Name, value: &Estimate) -> String {
        let name = match best {
            Name::Label(label) => label,
            Name::Point(point) => &self.leads[*point],
        };
        let among = match &answer.among {
            Some(_) => format!("of those not told apart by {}, ", answer.among_words),
            None => String::new(),
        };
        let horizon = answer.horizon.map_or_else(String::new, |end| format!(" by {} {}", number(end), answer.unit));
        let common = if answer.is_common_level { ", which all runs reach" } else { "" };
        let seeds = if value.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", value.n) };
        let (best, horizon) = (phrases::best(answer), horizon.trim_end());
        format!("{among}{name} {best}{common}{horizon}: {}, {seeds}", shown(answer, value))
    }

    fn unranked(&self, answer: &Answer) -> String {
        let reason = answer.reason.as_deref().unwrap_or("there is no value");
        let arrivals = self.partial(answer).map_or_else(String::new, |partial| format!("; {partial}"));
        let remedy = match &answer.remedy[..] {
            [] => String::new(),
            settings => {
                let set = settings.iter().map(|setting| format!("--set '{setting}'")).collect::<Vec<_>>().join(" ");
                format!("; watched equally long they would be, with {set}")
            }
        };
        let place = self.place(answer);
        let place = if place.is_empty() { place } else { format!(" {place}") };
        let candidates = if answer.question == Question::Policy { "Policies" } else { "Settings" };
        format!("{candidates}{place} are not ranked by {}: {reason}{arrivals}{remedy}.", answer.quantity)
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
        let mut parts = Vec::new();
        if !same.is_empty() {
            let verb = if same.len() == 1 { "is" } else { "are" };
            parts.push(format!(
                "{} {verb} the same",
                self.list(same.iter().map(|other| self.name(&other.name).to_owned()))
            ));
        }
        if !open.is_empty() {
            let one = |other: &&Other| format!("{} ({})", self.name(&other.name), phrases::listed(answer, other));
            let verb = if open.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {verb} not told apart from it", self.list(open.iter().map(one))));
        }
        let is_alone = apart.len() == answer.others.len();
        parts.extend(match &apart[..] {
            [] => None,
            [next] if is_alone => Some(format!("{} {}", self.name(&next.name), phrases::next(answer, next))),
            [next, ..] if is_alone => Some(format!("next, {} {}", self.name(&next.name), phrases::next(answer, next))),
            [_] => Some("1 other is worse".to_owned()),
            several => Some(format!("{} others are worse", several.len())),
        });
        parts
    }

    /// `a, b and 3 more`.
    fn list(&self, all: impl Iterator<Item = String>) -> String {
        let mut all: Vec<String> = all.collect();
        match all.len().saturating_sub(MOST_NAMED) {
            0 => {}
            rest => {
                all.truncate(MOST_NAMED);
                all.push(format!("{rest} more"));
            }
        }
        match all.pop() {
            Some(last) if !all.is_empty() => format!("{} and {last}", all.join(", ")),
            only => only.unwrap_or_default(),
        }
    }

    /// The candidates of which not all runs arrive, or have the quantity.
    fn partial(&self, answer: &Answer) -> Option<String> {
        let verb = if is_until(&answer.by) { "arrives" } else { "has it" };
        let one = |partial: &Partial| {
            format!("{} {verb} in {} of {} runs", self.name(&partial.name), partial.arrived, partial.runs)
        };
        let mut named: Vec<String> = answer.partial.iter().take(MOST_NAMED).map(one).collect();
        match answer.partial.len().saturating_sub(MOST_NAMED) {
            0 => {}
            1 => named.push("1 other lacks some as well".to_owned()),
            rest => named.push(format!("{rest} others lack some as well")),
        }
        (!named.is_empty()).then(|| named.join("; "))
    }

    /// How many seeds would tell others from the best; a difference that needs too many is bounded instead.
    fn seeds(&self, answer: &Answer) -> Vec<String> {
        let Some(best) = answer.best.as_ref().filter(|_| answer.among.is_none()) else { return Vec::new() };
        let by = format!("by {}", answer.quantity);
        let place = self.place(answer);
        let place = if place.is_empty() { place } else { format!(" {place}") };
        let needed = |other: &Other| {
            let (one, seeds) = (self.name(&other.name), other.seeds_needed?);
            let best = self.name(best);
            if seeds <= MOST_SEEDS {
                return Some(format!("To tell {one} from {best}{place}: about {} seeds, {by}.", number(seeds as f64)));
            }
            let [low, high] = other.ci95?;
            let most = number(low.abs().max(high.abs()));
            let unit = if answer.unit.is_empty() { String::new() } else { format!(" {}", answer.unit) };
            Some(format!("Between {one} and {best}{place}: no difference larger than {most}{unit} at 95 %, {by}."))
        };
        let all: Vec<String> = answer.others.iter().filter_map(needed).collect();
        let rest = all.len().saturating_sub(MOST_NAMED);
        let mut lines: Vec<String> = all.into_iter().take(MOST_NAMED).collect();
        if rest > 0 {
            let pairs = if rest == 1 { "1 more is".to_owned() } else { format!("{rest} more are") };
            lines.push(format!("… {pairs} not told apart from {}{place}, {by}.", self.name(best)));
        }
        lines
    }
}

/// Whether two policies are told apart in both orders, at different points.
fn is_turned(ranked: &[&Answer]) -> bool {
    let is_behind = |answer: &Answer, name: &Name| {
        answer.others.iter().any(|other| other.name == *name && is_told_apart(&other.found))
    };
    ranked.iter().any(|one| {
        let Some(best) = &one.best else { return false };
        ranked
            .iter()
            .any(|other| other.best.as_ref().is_some_and(|theirs| is_behind(one, theirs) && is_behind(other, best)))
    })
}

/// A mean with its interval and unit.
fn shown(answer: &Answer, value: &Estimate) -> String {
    format!("{}{}{}", show_rounded(value), if answer.unit.is_empty() { "" } else { " " }, answer.unit)
}

/// A sentence with a capital.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
