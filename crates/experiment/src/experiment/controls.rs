//! Controls: metrics that are reached without learning, or without a federation, beside which results of policies
//! stand.
//!
//! # Definition
//! A control belongs to a world, so that all runs of a seed at a point have the same one; where runs differ, since
//! policies have tasks of their own, there is none for that metric. Its estimate is over the seeds of the point.
//!
//! Two controls learn, if `[controls]` asks for them: `centralised` and `local`. The others are *trivial*.

use super::measured::by_name;
use super::{RunSummary, Summary, number, show};
use crate::scenario::points;
use fedgenie_core::math::statistics::{Estimate, estimate};
use fedgenie_core::metric::{Better, Metric, Models};
use fedgenie_simulator::world::TrainedControl;
use std::collections::{BTreeMap, BTreeSet};

/// The control that is the model before training.
pub const INITIAL: &str = "initial";

/// The control that is trained on everybody's data in one place.
pub const CENTRALISED: &str = "centralised";

/// The control that each client trains alone.
pub const LOCAL: &str = "local";

/// What the controls with these names are.
pub fn note<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: BTreeSet<&str> = names.into_iter().map(String::as_str).collect();
    let trained = [(CENTRALISED, "trained on everybody's data in one place"), (LOCAL, "trained by each client alone")];
    let is_there = |kind: &str| names.iter().any(|name| kind_of(name) == kind);
    let told: Vec<String> =
        trained.iter().filter(|(kind, _)| is_there(kind)).map(|(kind, what)| format!("({kind}) {what}")).collect();
    let without = match (names.iter().any(|name| is_trivial(name)), told.is_empty()) {
        (false, _) => None,
        (true, true) => Some("metrics without learning".to_owned()),
        (true, false) => Some("the others are metrics without learning".to_owned()),
    };
    told.into_iter().chain(without).collect::<Vec<_>>().join("; ")
}

/// The control's name without that of a policy.
fn kind_of(name: &str) -> &str {
    name.split_once(" of ").map_or(name, |(kind, _)| kind)
}

/// Whether a control is made without training.
pub fn is_trivial(name: &str) -> bool {
    ![CENTRALISED, LOCAL].contains(&kind_of(name))
}

/// Estimates by the name of a control, then of a metric.
pub type Controls = BTreeMap<String, BTreeMap<String, Estimate>>;

/// The value of a control for a quantity of runs: that of a metric at the end, at its best, at convergence or over the
/// last rounds.
pub fn value<'a>(metrics: &'a BTreeMap<String, Estimate>, key: &str) -> Option<&'a Estimate> {
    let (what, metric) = key.split_once('.')?;
    let over_last = || metrics.get(metric.strip_suffix(Models::Last.suffix())?);
    metrics.get(metric).or_else(over_last).filter(|_| ["final", "best", "converged"].contains(&what))
}

/// The controls of the runs of a point. Where policies train for themselves, so do the controls that are trained: each
/// kind has the name of its first policy, `centralised of large`.
pub fn of<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Controls {
    let runs: Vec<&RunSummary> = runs.into_iter().collect();
    let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.controls.keys()).collect();
    let mut all = Controls::new();
    for name in names {
        let kinds = if is_trivial(name) { vec![runs.clone()] } else { kinds_of(name, &runs) };
        let are_several = kinds.len() > 1;
        for kind in kinds {
            let named = if are_several { format!("{name} of {}", kind[0].arm) } else { name.clone() };
            let metrics = of_kind(name, &kind);
            if !metrics.is_empty() {
                all.insert(named, metrics);
            }
        }
    }
    all
}

/// The runs of policies with the same values of a control for every seed, in the order of their first policies.
fn kinds_of<'a>(name: &str, runs: &[&'a RunSummary]) -> Vec<Vec<&'a RunSummary>> {
    let mut arms: Vec<&String> = Vec::new();
    for run in runs {
        if !arms.contains(&&run.arm) {
            arms.push(&run.arm);
        }
    }
    let mut kinds: Vec<Vec<&RunSummary>> = Vec::new();
    for arm in arms {
        let mine: Vec<&RunSummary> = runs.iter().filter(|run| run.arm == *arm).copied().collect();
        let is_same = |one: &RunSummary, other: &RunSummary| {
            one.seed != other.seed || one.controls.get(name) == other.controls.get(name)
        };
        let fits = |kind: &Vec<&RunSummary>| kind.iter().all(|one| mine.iter().all(|other| is_same(one, other)));
        match kinds.iter_mut().find(|kind| fits(kind)) {
            Some(kind) => kind.extend(mine),
            None => kinds.push(mine),
        }
    }
    kinds
}

/// The estimates of a control over the seeds of runs; none of a metric in which runs of a seed differ.
fn of_kind(name: &str, runs: &[&RunSummary]) -> BTreeMap<String, Estimate> {
    let mut found: BTreeMap<&str, BTreeMap<u64, Option<f64>>> = BTreeMap::new();
    for run in runs {
        for (metric, &value) in run.controls.get(name).into_iter().flatten() {
            let value = Some(value).filter(|value| value.is_finite());
            let known = found.entry(metric).or_default().entry(run.seed).or_insert(value);
            *known = known.filter(|known| value == Some(*known));
        }
    }
    let estimate = |(metric, seeds): (&str, BTreeMap<u64, Option<f64>>)| {
        let values: Option<Vec<f64>> = seeds.into_values().collect();
        Some((metric.to_owned(), estimate(&values?)?))
    };
    found.into_iter().filter_map(estimate).collect()
}

impl RunSummary {
    /// Adds controls. Returns warnings of those whose models diverged.
    pub(super) fn add_controls(&mut self, controls: Vec<TrainedControl>) -> Vec<String> {
        let warnings = controls.iter().filter_map(diverged).collect();
        controls.into_iter().for_each(|control| self.add_control(control.name, by_name(control.metrics)));
        warnings
    }

    /// Adds the metrics of a control, if it has any.
    pub(super) fn add_control(&mut self, name: &str, metrics: BTreeMap<String, f64>) {
        if !metrics.is_empty() {
            self.controls.entry(name.to_owned()).or_default().extend(metrics);
        }
    }
}

/// The warning of a control whose models diverged.
fn diverged(control: &TrainedControl) -> Option<String> {
    let TrainedControl { name, models, diverged, .. } = *control;
    match (models, diverged) {
        (_, 0) => None,
        (1, _) => Some(format!("the control {name} diverged, and is not measured; a smaller learning rate may help")),
        _ => Some(format!("{diverged} of the {models} models of the control {name} diverged, and are not measured")),
    }
}

/// Warnings of controls that are better than every policy at its best, by a main metric.
pub(super) fn unbeaten(summary: &Summary) -> Vec<String> {
    let Some(first) = summary.runs.first() else { return Vec::new() };
    let is_main = |metric: &&Metric| metric.main;
    let names: BTreeSet<&String> = summary
        .controls
        .iter()
        .flat_map(Controls::keys)
        .filter(|name| ![INITIAL, CENTRALISED].contains(&kind_of(name)))
        .collect();
    let points = points::names(&summary.points);
    let mut all = Vec::new();
    for metric in first.measured.iter().filter(is_main) {
        let (id, key) = (metric.id.to_string(), format!("best.{}", metric.id));
        for name in &names {
            let unbeaten = |&(point, controls): &(usize, &Controls)| {
                let Some(control) = controls.get(*name).and_then(|metrics| metrics.get(&id)) else { return false };
                let mut best =
                    summary.arms.iter().filter(|arm| arm.point == point).filter_map(|arm| arm.values.get(&key));
                let is_worse = |best: &Estimate| metric.better.quality(control.mean) > metric.better.quality(best.mean);
                best.clone().next().is_some() && best.all(is_worse)
            };
            let at: Vec<(usize, &Controls)> = summary.controls.iter().enumerate().filter(unbeaten).collect();
            let Some((_, controls)) = at.first() else { continue };
            let places = match at.len() {
                1 if points.len() == 1 => String::new(),
                count if count == points.len() => " at every point".to_owned(),
                1 => format!(" at {}", points[at[0].0]),
                count => format!(" at {count} of {} points, {} first", points.len(), points[at[0].0]),
            };
            let how =
                if is_trivial(name) { "without a trained model" } else { "with models that each client trains alone" };
            all.push(format!(
                "on average no policy is better, even at its best, than the control {name}{places}: {} {} {how}",
                metric.id.words(),
                show(&controls[*name][&id])
            ));
        }
    }
    all
}

/// So many points are told of.
const MOST_POINTS: usize = 3;

/// Sentences on how much is learned where a control was trained on everybody's data: by a main metric, the
/// best policy at the end of its runs beside the trivial controls and that one.
pub(super) fn learning(summary: &Summary) -> Vec<String> {
    let is_main = |metric: &&Metric| metric.main;
    let Some(metric) = summary.runs.first().and_then(|run| run.measured.iter().find(is_main)) else {
        return Vec::new();
    };
    let names = points::names(&summary.points);
    let of = |(point, controls): (usize, &Controls)| {
        let best = best_at(summary, point, metric)?;
        Some((point, how_far(metric, best, controls)?))
    };
    let told: Vec<(usize, String)> = summary.controls.iter().enumerate().filter_map(of).collect();
    let more = told.len().saturating_sub(MOST_POINTS);
    let place = |point: usize| if names.len() > 1 { format!("At {}, ", names[point]) } else { String::new() };
    let mut all: Vec<String> =
        told.into_iter().take(MOST_POINTS).map(|(point, told)| capital(&format!("{}{told}.", place(point)))).collect();
    if more > 0 {
        all.push(format!("The table has the controls of {more} more points."));
    }
    all
}

/// The policy whose runs of a point end best, and its mean.
fn best_at<'a>(summary: &'a Summary, point: usize, metric: &Metric) -> Option<(&'a str, f64)> {
    let key = format!("final.{}", metric.id);
    let mine = summary.arms.iter().filter(|arm| arm.point == point);
    let values = mine.filter_map(|arm| Some((&*arm.arm, arm.values.get(&key)?.mean)));
    let quality = |value: f64| metric.better.quality(value);
    // Of equals the first.
    values.reduce(|best, next| if quality(next.1) > quality(best.1) { next } else { best })
}

/// How far the best policy has come from the best trivial control to the centralised one; `None` without the latter.
fn how_far(metric: &Metric, (policy, reached): (&str, f64), controls: &Controls) -> Option<String> {
    let id = metric.id.to_string();
    let value = |name: &str| controls.get(name)?.get(&id).map(|found| found.mean);
    let central = value(CENTRALISED)?;
    let quality = |value: f64| metric.better.quality(value);
    let trivial: Vec<(&str, f64)> =
        controls.keys().filter(|name| is_trivial(name)).filter_map(|name| Some((&**name, value(name)?))).collect();
    let named: Vec<String> = trivial.iter().map(|(name, value)| format!("{} ({name})", number(*value))).collect();
    let without = if named.is_empty() { String::new() } else { format!(", without training {}", named.join(", ")) };
    let words = metric.id.words();
    let begin = format!(
        "{words} ends at {} with {policy}, the best policy; on everybody's data in one place it is {} ({CENTRALISED}){without}",
        number(reached),
        number(central)
    );
    let Some(&(floor_name, floor)) =
        trivial.iter().max_by(|(_, one), (_, other)| quality(*one).total_cmp(&quality(*other)))
    else {
        return Some(begin);
    };
    let (way, gone) = (quality(central) - quality(floor), quality(reached) - quality(floor));
    let better = if metric.better == Better::Higher { "above" } else { "below" };
    Some(if way <= 0.0 && gone > 0.0 {
        format!(
            "{begin}: {policy} ends {better} ({floor_name}) and ({CENTRALISED}) does not, which needs other epochs, batch or optimizer"
        )
    } else if way <= 0.0 {
        format!(
            "{begin}: even with all data in one place the model is not {better} ({floor_name}), and no policy can be judged by it"
        )
    } else if gone <= 0.0 {
        format!("{begin}: no policy ends {better} ({floor_name})")
    } else if gone > way {
        format!("{begin}: {better} ({CENTRALISED}), which may need more epochs")
    } else {
        format!("{begin}: {:.0} % of the way from ({floor_name}) to ({CENTRALISED})", 100.0 * gone / way)
    })
}

/// A sentence with a capital.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
