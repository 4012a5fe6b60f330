//! Targets that say nothing: in the direction of getting worse, or met before training.

use super::super::controls::INITIAL;
use super::super::{RunSummary, number};
use crate::scenario::{Scenario, TargetConfig};
use fedgenie_core::metric::{self, Better, Measures};

/// Warnings of targets in the direction in which their metric gets worse.
pub(in super::super) fn backward(scenario: &Scenario) -> Vec<String> {
    let mut all = Vec::new();
    for arm in 0..scenario.arms.len() {
        let sections = scenario.sections_of(arm);
        let metrics = sections.metrics(&scenario.plan_of(arm).task.measures());
        for target in sections.evaluate.targets.iter().chain(&sections.stop.target) {
            let Some(metric) = metric::named(&metrics, &target.metric) else { continue };
            let (is_backward, less, meant) = match metric.better {
                Better::Lower => (target.at_least.is_some(), "less", "at_most"),
                Better::Higher => (target.at_most.is_some(), "more", "at_least"),
            };
            if is_backward {
                all.push(format!(
                    "the target {} is reached by getting worse: {less} of {} is better; {meant} may be meant",
                    target.name(),
                    target.metric
                ));
            }
        }
    }
    all
}

/// Warnings of targets that the model before training meets.
pub(super) fn met_at_first(measures: &Measures, run: &RunSummary) -> Vec<String> {
    let metrics = measures.metrics(true, true);
    let value = |target: &TargetConfig| {
        let id = metric::named(&metrics, &target.metric)?.id;
        Some((id, *run.controls.get(INITIAL)?.get(&id.to_string())?))
    };
    let warning = |target: &TargetConfig| {
        let (id, value) = value(target)?;
        let (name, value) = (target.name(), target.is_reached(&[(id, value)]).then_some(value)?);
        Some(format!("the model before training meets the target {name} already: {id} is {} then", number(value)))
    };
    run.reached.iter().filter_map(|reached| warning(&reached.target)).collect()
}
