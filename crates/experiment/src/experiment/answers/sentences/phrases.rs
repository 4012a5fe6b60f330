//! Phrases for quantities: what the best is, and how others differ from it.

use super::super::super::answer::{Answer, Beside, Other};
use super::super::super::compared::{is_same, is_told_apart};
use super::super::super::show_rounded;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::Better;

/// The kind of a quantity, which decides its words.
enum Kind<'a> {
    /// Time until a target, or of the whole run.
    Time(Option<&'a str>),
    /// Rounds, bytes, joules or computing until a target.
    Spent(&'a str, &'a str),
    Regret,
    Metric,
    Other,
}

fn kind(by: &str) -> Kind<'_> {
    match by.split_once('.') {
        None if by == "virtual_time_s" => Kind::Time(None),
        Some(("time_to", target)) => Kind::Time(Some(target)),
        Some(("rounds_to", target)) => Kind::Spent("rounds", target),
        Some(("bytes_to", target)) => Kind::Spent("bytes", target),
        Some(("joules_to", target)) => Kind::Spent("joules", target),
        Some(("compute_to", target)) => Kind::Spent("computing", target),
        Some(("probe_compute_to", target)) => Kind::Spent("computing of probes", target),
        Some(("regret", _)) => Kind::Regret,
        Some(("final" | "best", _)) => Kind::Metric,
        _ => Kind::Other,
    }
}

/// `is fastest to test_loss <= 0.3`: the predicate of the best, or of several that tie.
pub(super) fn best(answer: &Answer, are_several: bool) -> String {
    let [is, has, needs] = if are_several { ["are", "have", "need"] } else { ["is", "has", "needs"] };
    match (kind(&answer.by), answer.better) {
        (Kind::Time(Some(target)), _) => format!("{is} fastest to {target}"),
        (Kind::Time(None), _) => format!("{is} fastest"),
        (Kind::Spent(what @ ("rounds" | "bytes" | "joules"), target), _) => {
            format!("{needs} the fewest {what} to {target}")
        }
        (Kind::Spent(what, target), _) => format!("{needs} the least {what} to {target}"),
        (Kind::Regret, _) => format!("{has} the least {}", answer.quantity),
        (Kind::Metric, Better::Higher) => format!("{has} the highest {}", answer.quantity),
        (Kind::Metric, Better::Lower) => format!("{has} the lowest {}", answer.quantity),
        (Kind::Other, Better::Higher) => format!("{has} the most {}", answer.quantity),
        (Kind::Other, Better::Lower) => format!("{has} the least {}", answer.quantity),
    }
}

/// `takes 264 ± 160 s longer (13 %)`: the predicate of the next.
pub(super) fn next(answer: &Answer, other: &Other) -> String {
    let verb = match kind(&answer.by) {
        Kind::Time(_) => "takes",
        Kind::Spent(..) => "needs",
        Kind::Regret | Kind::Other => "has",
        Kind::Metric => "is",
    };
    let share = share(answer, other).map_or_else(String::new, |share| format!(" ({share})"));
    let beside = other.beside.as_ref().map_or_else(String::new, |beside| format!("; {}", of_beside(beside)));
    format!("{verb} {}{share}{beside}", difference(answer, other))
}

/// `takes 264 ± 160 s longer, 13 %`, without its verb: beside a name in a list.
pub(super) fn listed(answer: &Answer, other: &Other) -> String {
    let share = share(answer, other).map_or_else(String::new, |share| format!(", {share}"));
    format!("{}{share}", difference(answer, other))
}

/// `264 ± 160 s longer`.
fn difference(answer: &Answer, other: &Other) -> String {
    let is_more = other.found.mean >= 0.0;
    let direction = match (kind(&answer.by), is_more) {
        _ if other.found.mean == 0.0 => "either way",
        (Kind::Time(_), true) => "longer",
        (Kind::Time(_), false) => "shorter",
        (Kind::Metric, true) => "higher",
        (Kind::Metric, false) => "lower",
        (_, true) => "more",
        (_, false) => "less",
    };
    let unit = if answer.unit.is_empty() { String::new() } else { format!(" {}", answer.unit) };
    format!("{}{unit} {direction}", show_rounded(&upward(&other.found)))
}

/// The difference as a share of the best's value: `13 %`, or from twice of it on `2.1 times as long`; nothing where it
/// rounds to 0.
fn share(answer: &Answer, other: &Other) -> Option<String> {
    let ratio = other.ratio?;
    let compared = match kind(&answer.by) {
        Kind::Time(_) => "long",
        Kind::Metric => "high",
        _ => "much",
    };
    if ratio >= 2.0 {
        Some(format!("{ratio:.1} times as {compared}"))
    } else {
        Some(format!("{:.0} %", 100.0 * (ratio - 1.0).abs())).filter(|share| share != "0 %")
    }
}

/// `its final test accuracy is 0.004 ± 0.01 lower, not told apart`.
fn of_beside(beside: &Beside) -> String {
    let found = &beside.found;
    let shown = show_rounded(&upward(found));
    let doubt = if is_told_apart(found) { "" } else { ", not told apart" };
    let is_more = found.mean >= 0.0;
    match kind(&beside.by) {
        _ if is_same(found) => format!("its {} is the same", beside.quantity),
        Kind::Time(_) => format!("it takes {shown} s {}{doubt}", if is_more { "longer" } else { "less" }),
        _ => format!("its {} is {shown} {}{doubt}", beside.quantity, if is_more { "higher" } else { "lower" }),
    }
}

/// A difference that is not negative, for words that tell its direction.
fn upward(found: &Estimate) -> Estimate {
    match found.mean < 0.0 {
        true => Estimate { mean: -found.mean, ci95: found.ci95.map(|[low, high]| [-high, -low]), n: found.n },
        false => *found,
    }
}
