//! Targets that no run reaches: who comes nearest.
//!
//! # Definition
//! Of several such targets of one metric and direction the easiest is told: the others follow. The nearest is the
//! policy, at a point, with the best mean over seeds of the best value that its runs have in an evaluated round.

use super::super::answer::{Answer, Nearest, Question};
use super::super::{ArmSummary, Reached, Summary};
use crate::scenario::TargetConfig;
use fedgenie_core::metric::{Better, Metric};

/// An answer for each metric with targets that no run reaches.
pub(super) fn answers(summary: &Summary) -> Vec<Answer> {
    let Some(first) = summary.runs.first() else { return Vec::new() };
    let is_reached = |name: &str| {
        let mut all = summary.runs.iter().flat_map(|run| &run.reached);
        all.any(|reached| reached.round.is_some() && reached.name() == name)
    };
    let mut easiest: Vec<&Reached> = Vec::new();
    for reached in first.reached.iter().filter(|reached| !is_reached(&reached.name())) {
        match easiest.iter_mut().find(|known| is_alike(&known.target, &reached.target)) {
            Some(known) if is_easier(&reached.target, &known.target) => *known = reached,
            Some(_) => {}
            None => easiest.push(reached),
        }
    }
    easiest.into_iter().filter_map(|reached| answer(summary, &first.measured, reached)).collect()
}

/// Whether two targets are of one metric and direction.
fn is_alike(one: &TargetConfig, other: &TargetConfig) -> bool {
    one.metric == other.metric && one.at_least.is_some() == other.at_least.is_some()
}

fn is_easier(one: &TargetConfig, other: &TargetConfig) -> bool {
    one.at_least < other.at_least || one.at_most > other.at_most
}

fn answer(summary: &Summary, measured: &[Metric], reached: &Reached) -> Option<Answer> {
    let metric = measured.iter().find(|metric| metric.id.is_called(&reached.target.metric))?;
    let by = format!("best.{}", metric.id);
    let value = |arm: &ArmSummary| arm.values.get(&by).filter(|value| value.mean.is_finite()).copied();
    let mut nearest: Option<Nearest> = None;
    for (arm, value) in summary.arms.iter().filter_map(|arm| Some((arm, value(arm)?))) {
        let quality = |value: f64| metric.better.quality(value);
        if nearest.as_ref().is_none_or(|known| quality(value.mean) > quality(known.value.mean)) {
            let (policy, target) = (arm.arm.clone(), reached.name());
            let quantity = format!("best {}", metric.id.words());
            nearest = Some(Nearest { policy, point: arm.point, target, by: by.clone(), quantity, value });
        }
    }
    Some(Answer {
        question: Question::Policy,
        point: None,
        policy: None,
        among: None,
        among_words: String::new(),
        by: format!("time_to.{}", reached.name()),
        is_common_level: false,
        quantity: format!("virtual time to {}", reached.name()),
        unit: "s",
        better: Better::Lower,
        ranked: false,
        reason: Some("no run reaches it".to_owned()),
        remedy: Vec::new(),
        best: None,
        value: None,
        horizon: None,
        edge: None,
        nearest: Some(nearest?),
        equal: Vec::new(),
        looks: summary.until.as_ref().map(|plan| super::looked(plan, 1, &[])),
        others: Vec::new(),
        partial: Vec::new(),
        sees_truth: Vec::new(),
    })
}
