//! Targets that say nothing: in the direction of getting worse, or met before training.

use super::super::controls::INITIAL;
use super::super::{RunSummary, Summary, number};
use crate::scenario::{Scenario, TargetConfig};
use fedgenie_core::metric::{self, Better, MetricId};

/// Warnings of targets in the direction in which their metric gets worse.
pub(in super::super) fn backward(scenario: &Scenario) -> Vec<String> {
    let mut all = Vec::new();
    for arm in 0..scenario.arms.len() {
        let sections = scenario.sections_of(arm);
        let metrics = sections.metrics(&scenario.plan_of(arm).declared_measures());
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

/// Warnings of targets that the model before training meets, each once.
pub(super) fn met_at_first(summary: &Summary) -> Vec<String> {
    let mut targets: Vec<&TargetConfig> = Vec::new();
    for reached in summary.runs.iter().flat_map(|run| &run.reached) {
        if !targets.contains(&&reached.target) {
            targets.push(&reached.target);
        }
    }
    let warning = |target: &TargetConfig| {
        let value = |run: &RunSummary| {
            let id = run.measured.iter().find(|metric| metric.id.is_called(&target.metric))?.id;
            Some((id, *run.controls.get(INITIAL)?.get(&id.to_string())?))
        };
        let is_met = |(_, value): &(MetricId, f64)| {
            target.at_least.is_some_and(|least| *value >= least) || target.at_most.is_some_and(|most| *value <= most)
        };
        let known: Vec<(MetricId, f64)> = summary.runs.iter().filter_map(value).collect();
        let met: Vec<&(MetricId, f64)> = known.iter().filter(|found| is_met(found)).collect();
        let (id, first) = met.first()?;
        let of = if met.len() == known.len() { "all".to_owned() } else { format!("{} of {}", met.len(), known.len()) };
        Some(format!(
            "the model before training meets the target {} already, in {of} runs: {id} is {} in the first of them",
            target.name(),
            number(*first)
        ))
    };
    targets.into_iter().filter_map(warning).collect()
}
