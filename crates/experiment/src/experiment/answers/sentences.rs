//! Answers in sentences for people.

mod phrases;

use super::super::answer::{Answer, Looked, Name, Nearest, Other, Partial, Question};
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
    /// The main ones, two at most, which stand before a table; behind them how much is learned, beside a control
    /// that is trained.
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
    let seeds: Vec<String> = words.looks(answers).into_iter().chain(words.seeds(answers)).collect();
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
        let mut by_best: Vec<(Vec<&Name>, Vec<&str>)> = Vec::new();
        for answer in ranked.iter().filter(|_| asked.len() > 1) {
            let (best, Some(point)) = (best_ones(answer), answer.point) else { continue };
            match by_best.iter_mut().find(|(known, _)| *known == best) {
                Some((_, points)) => points.push(&self.names[point]),
                None => by_best.push((best, vec![&self.names[point]])),
            }
        }
        let unranked = match asked.len() - ranked.len() {
            0 => String::new(),
            1 => "; 1 point is not ranked".to_owned(),
            several => format!("; {several} points are not ranked"),
        };
        match &by_best[..] {
            [] => None,
            [(best, points)] => {
                let is_open = |answer: &&&Answer| answer.equal.len() >= best.len();
                let open = ranked.iter().filter(is_open).count();
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
                let predicate = phrases::best(first, best.len() > 1);
                Some(format!("{} {predicate} at {count}{doubt}{unranked}.", self.tied(best)))
            }
            several => {
                let one = |(best, points): &(Vec<&Name>, Vec<&str>)| {
                    let rest = points.len().saturating_sub(MOST_NAMED);
                    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
                    format!("{} at {}{more}", self.tied(best), points[..points.len() - rest].join(" / "))
                };
                let list = several.iter().map(one).collect::<Vec<_>>().join("; ");
                let (verb, doubt) = match is_turned(&ranked) {
                    true => ("depends", ""),
                    false => ("may depend", "; no two policies are told apart in both orders"),
                };
                let predicate = phrases::best(first, false);
                Some(format!("Which policy {predicate} {verb} on the point: {list}{doubt}{unranked}."))
            }
        }
    }

    fn of(&self, answer: &Answer) -> String {
        if let Some(nearest) = &answer.nearest {
            return self.nearest(nearest);
        }
        let place = self.place(answer);
        let (Some(best), Some(value)) = (&answer.best, &answer.value) else { return self.unranked(answer) };
        let best_ones = best_ones(answer);
        let mut parts = vec![self.lead(answer, &best_ones, value)];
        match answer.edge.filter(|_| best_ones.len() == 1) {
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
    fn lead(&self, answer: &Answer, best: &[&Name], value: &Estimate) -> String {
        let lead = |(place, name): (usize, &&Name)| match name {
            Name::Point(point) if place == 0 => self.leads[*point].clone(),
            name => self.name(name).to_owned(),
        };
        let names = self.list(best.iter().enumerate().map(lead));
        let tie = if best.len() > 1 { ", equal for each seed" } else { "" };
        let among = match &answer.among {
            Some(_) => format!("of those not told apart by {}, ", answer.among_words),
            None => String::new(),
        };
        let horizon = answer.horizon.map_or_else(String::new, |end| format!(" by {} {}", number(end), answer.unit));
        let common = if answer.is_common_level { ", which all runs reach" } else { "" };
        let seeds = if value.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", value.n) };
        let (best, horizon) = (phrases::best(answer, best.len() > 1), horizon.trim_end());
        format!("{among}{names} {best}{common}{horizon}{tie}: {}, {seeds}", shown(answer, value))
    }

    /// Several candidates that are the same, or one.
    fn tied(&self, best: &[&Name]) -> String {
        self.list(best.iter().map(|name| self.name(name).to_owned()))
    }

    /// `No run reaches test_auc >= 0.8; oort comes nearest: best test AUC 0.71 ± 0.02, 5 seeds.`
    fn nearest(&self, nearest: &Nearest) -> String {
        let Nearest { policy, point, target, by: _, quantity, value } = nearest;
        let at = if self.names.len() > 1 { format!(" at {}", self.names[*point]) } else { String::new() };
        let seeds = if value.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", value.n) };
        format!("No run reaches {target}; {policy}{at} comes nearest: {quantity} {}, {seeds}.", show_rounded(value))
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
        let margin = answer.looks.and_then(|looks| looks.margin);
        let is_within = |other: &Other| margin.is_some() && answer.equal.contains(&other.name);
        let is_apart = |other: &&Other| other.dropped.is_some() || is_told_apart(&other.found) && !is_within(other);
        let open: Vec<&Other> = answer
            .others
            .iter()
            .filter(|other| !is_apart(other) && !is_within(other) && !is_same(&other.found))
            .collect();
        let apart: Vec<&Other> = answer.others.iter().filter(is_apart).collect();
        let mut parts = Vec::new();
        let within: Vec<&Other> = answer.others.iter().filter(|other| is_within(other)).collect();
        if let Some(margin) = margin.filter(|_| !within.is_empty()) {
            let one = |other: &&Other| format!("{} ({})", self.name(&other.name), phrases::listed(answer, other));
            let verb = if within.len() == 1 { "is" } else { "are" };
            let unit = if answer.unit.is_empty() { String::new() } else { format!(" {}", answer.unit) };
            let named = self.list(within.iter().map(one));
            parts.push(format!("{named} {verb} equal to it within {}{unit}", number(margin)));
        }
        if !open.is_empty() {
            let one = |other: &&Other| format!("{} ({})", self.name(&other.name), phrases::listed(answer, other));
            let verb = if open.len() == 1 { "is" } else { "are" };
            parts.push(format!("{} {verb} not told apart from it", self.list(open.iter().map(one))));
        }
        // Those that do not always arrive are named with their arrivals.
        let is_named = |other: &&&Other| answer.partial.iter().any(|partial| partial.name == other.name);
        let unnamed = apart.iter().filter(|other| !is_named(other)).count();
        parts.extend(match (&apart[..], unnamed) {
            ([next], _) if open.is_empty() && within.is_empty() => {
                Some(format!("{} {}", self.name(&next.name), phrases::next(answer, next)))
            }
            ([next, ..], _) if open.is_empty() && within.is_empty() => {
                Some(format!("next, {} {}", self.name(&next.name), phrases::next(answer, next)))
            }
            (_, 0) => None,
            (_, 1) => Some("1 other is worse".to_owned()),
            (_, several) => Some(format!("{several} others are worse")),
        });
        let dropped = answer.others.iter().filter_map(|other| Some((self.name(&other.name), other.dropped?)));
        parts.extend(
            dropped.map(|(name, seeds)| format!("{name} was surely worse after {seeds} seeds, and got no more")),
        );
        parts
    }

    /// How far seeds were added, where they are until the first answer is decided.
    fn looks(&self, answers: &[Answer]) -> Option<String> {
        let first = answers.first()?;
        let Looked { look, of, seeds, decided, .. } = first.looks?;
        let what = if first.question == Question::Policy { "policy" } else { "setting" };
        let place = self.place(first);
        let place = if place.is_empty() { place } else { format!(" {place}") };
        let asked = format!("which {what}{place} is best by {}", first.quantity);
        let valid = "intervals of differences to the best allow for all looks and others together, those of the table \
                     are as if the number of seeds had been fixed";
        Some(match decided {
            true => format!(
                "Seeds were added until it was decided {asked}: after {seeds}, at look {look} of {of}; {valid}."
            ),
            false => format!("It is not decided {asked}, after {seeds} seeds, at look {look} of {of}; {valid}."),
        })
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

    /// How many seeds would tell others from the best; a difference that needs too many is bounded instead. Of many
    /// in one quantity, their number and the largest are told.
    fn seeds(&self, answers: &[Answer]) -> Vec<String> {
        let mut by_quantity: Vec<(&Answer, Vec<Open<'_>>)> = Vec::new();
        for answer in answers.iter().filter(|answer| answer.among.is_none()) {
            let open = answer.others.iter().filter_map(|other| Open::of(answer, other));
            match by_quantity.iter_mut().find(|(known, _)| known.by == answer.by) {
                Some((_, all)) => all.extend(open),
                None => by_quantity.push((answer, open.collect())),
            }
        }
        let mut lines = Vec::new();
        for (answer, all) in by_quantity {
            let by = format!("by {}", answer.quantity);
            let unit = if answer.unit.is_empty() { String::new() } else { format!(" {}", answer.unit) };
            let (needed, bounded): (Vec<Open<'_>>, Vec<Open<'_>>) =
                all.into_iter().partition(|open| open.seeds <= MOST_SEEDS);
            let pair = |open: &Open<'_>, word: &str| {
                let place = self.place(open.answer);
                let place = if place.is_empty() { place } else { format!(" {place}") };
                format!("{} {word} {}{place}", self.name(open.name), self.name(open.best))
            };
            let shown = |seeds: u64| number(seeds as f64);
            match needed.iter().max_by_key(|open| open.seeds) {
                Some(most) if needed.len() > MOST_NAMED => lines.push(format!(
                    "To tell {} others from the best: up to about {} seeds, as for {}, {by}.",
                    needed.len(),
                    shown(most.seeds),
                    pair(most, "and")
                )),
                _ => {
                    lines.extend(needed.iter().map(|open| {
                        format!("To tell {}: about {} seeds, {by}.", pair(open, "from"), shown(open.seeds))
                    }))
                }
            }
            match bounded.iter().max_by(|one, other| one.most.total_cmp(&other.most)) {
                Some(most) if bounded.len() > MOST_NAMED => lines.push(format!(
                    "Between {} others and the best: no difference larger than {}{unit} at 95 %, as for {}, {by}.",
                    bounded.len(),
                    number(most.most),
                    pair(most, "and")
                )),
                _ => lines.extend(bounded.iter().map(|open| {
                    let (pair, most) = (pair(open, "and"), number(open.most));
                    format!("Between {pair}: no difference larger than {most}{unit} at 95 %, {by}.")
                })),
            }
        }
        lines
    }
}

/// A candidate that is not told apart from the best.
struct Open<'a> {
    answer: &'a Answer,
    best: &'a Name,
    name: &'a Name,
    /// About so many would tell them apart.
    seeds: u64,
    /// The larger end of the interval of their difference.
    most: f64,
}

impl<'a> Open<'a> {
    fn of(answer: &'a Answer, other: &'a Other) -> Option<Self> {
        let (best, seeds) = (answer.best.as_ref()?, other.seeds_needed?);
        let [low, high] = other.ci95?;
        Some(Self { answer, best, name: &other.name, seeds, most: low.abs().max(high.abs()) })
    }
}

/// The best, and those that are the same as it for every seed.
fn best_ones(answer: &Answer) -> Vec<&Name> {
    let same = answer.others.iter().filter(|other| is_same(&other.found)).map(|other| &other.name);
    answer.best.iter().chain(same).collect()
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
