//! Guesses behind a forecast, in words.

use super::super::{Experiment, RunOptions, number};
use super::trial::{KindKey, Trial};
use super::{Basis, Kind};
use crate::scenario::StopConfig;
use std::collections::BTreeMap;

/// If this share of clients was trained in the trial of a policy, nobody needs to know of the others.
const MOST_OF: f64 = 0.9;

/// The notes.
pub(super) fn notes(
    experiment: &Experiment,
    trial: &Trial,
    kinds: &BTreeMap<KindKey, Kind>,
    options: &RunOptions<'_>,
) -> Vec<String> {
    let mut notes = of_ends(experiment, kinds);
    let untried = kinds.values().filter(|kind| kind.tried_rounds == 0).count();
    if untried > 0 {
        notes.push(format!(
            "{untried} of {} pairs of policy and point were not tried, for lack of time; they are taken to cost as much as \
             the same policy at the nearest point that was tried, or else as another policy",
            kinds.len()
        ));
    }
    let seen = trial.tried.values().flatten().map(|tried| &tried.seen).filter(|seen| seen.training.jobs > 0);
    let share = seen.map(|seen| seen.training.trained as f64 / seen.training.jobs as f64);
    let least = share.fold(1.0, f64::min);
    if least < MOST_OF {
        notes.push(format!(
            "of long rounds not all clients were trained in the trial, of some policies {:.0} % of them; the time for the \
             others follows from the size of their data",
            100.0 * least
        ));
    }
    let tested = trial.tried.values().flatten().map(|tried| tried.tested).fold(1.0, f64::min);
    if tested < 1.0 {
        notes.push(format!(
            "in the trial models were measured on a part of the test examples, of some policies on {:.0} %; an evaluation is \
             taken to last as much longer",
            (100.0 * tested).max(1.0)
        ));
    }
    let once = kinds.values().filter(|kind| kind.tried_rounds == 1 && kind.rounds.value > 1.0).count();
    if once > 0 {
        notes.push(format!(
            "of {once} of {} pairs of policy and point one round was tried, the first, which may be slower than later ones",
            kinds.len()
        ));
    }
    if experiment.points.iter().flat_map(|(_, scenario)| scenario.plans()).any(|plan| plan.clusters.is_some()) {
        notes
            .push("cluster models that come into use in later rounds make these dearer than the first ones".to_owned());
    }
    let controls = trial.controls.values().copied().fold(0.0, f64::max);
    if controls > 0.0 {
        notes.push(format!(
            "training the controls takes about {} s for each seed and point, on one thread, which is in the time",
            number(controls)
        ));
    }
    if options.folder.is_some() {
        notes.push("the page and the pictures of the report are not in the forecast".to_owned());
    }
    notes
}

/// Why the ends of runs are not known.
fn of_ends(experiment: &Experiment, kinds: &BTreeMap<KindKey, Kind>) -> Vec<String> {
    let sections = &experiment.first().sections;
    let StopConfig { virtual_time, target, plateau, traffic, .. } = &sections.stop;
    let mut notes = Vec::new();
    let is_estimated = kinds.values().any(|kind| kind.rounds.basis == Basis::Estimated);
    if is_estimated {
        let is_bound = sections.budget.as_ref().is_some_and(crate::scenario::BudgetConfig::is_bound);
        let keys = [
            (virtual_time.is_some(), "stop.virtual_time"),
            (traffic.is_some(), "stop.traffic"),
            (is_bound, "[budget]"),
        ];
        let keys: Vec<&str> = keys.into_iter().filter(|(is_one, _)| *is_one).map(|(_, key)| key).collect();
        let keys = if keys.is_empty() { "a setting of some policy or point".to_owned() } else { keys.join(" or ") };
        notes.push(format!(
            "how many rounds a run has is not known beforehand, because {keys} ends it; the number is an estimate from the \
             rounds of the trial"
        ));
    }
    for (is_one, key) in [(target.is_some(), "stop.target"), (plateau.is_some(), "stop.plateau")] {
        if is_one {
            notes.push(format!("a run may end sooner than this, because nobody knows beforehand when {key} ends it"));
        }
    }
    notes
}
