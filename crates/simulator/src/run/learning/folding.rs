//! What updates weigh, and the models that servers make of them.

use super::{RunError, Work};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_learning::aggregate::{AggregationConfig, Contribution, ServerConfig, ServerOptimizer, Weighting};
use fedgenie_learning::layout::{Layout, Update};
use fedgenie_learning::task::{Related, Task};
use std::sync::Arc;

/// What an edge server does with updates: it averages what it gets; only the cloud keeps a part of the old model.
pub(super) fn edge_average(aggregation: &AggregationConfig, layout: &Layout) -> ServerOptimizer {
    let AggregationConfig { weighting, rows, normalise, .. } = *aggregation;
    let weighting = match weighting {
        Weighting::TotalSize => Weighting::DataSize,
        Weighting::DataSize | Weighting::Uniform => weighting,
    };
    let server = ServerConfig::default();
    ServerOptimizer::new(&AggregationConfig { weighting, server, rows, normalise }, layout.clone())
}

/// The models after a step of the servers of their clusters; none if there is nothing to aggregate.
pub(super) fn step(
    servers: &mut [ServerOptimizer],
    models: &[Arc<[f32]>],
    contributions: &[Contribution<'_>],
    examples: u64,
    round: Round,
) -> Result<Option<Vec<Arc<[f32]>>>, RunError> {
    if contributions.is_empty() {
        return Ok(None);
    }
    let one = |(cluster, (server, old)): (u32, (&mut ServerOptimizer, &Arc<[f32]>))| {
        let mut new = old.to_vec();
        server.apply(&mut new, contributions, examples, cluster);
        match new.iter().all(|parameter| parameter.is_finite()) {
            true => Ok(new.into()),
            false => Err(RunError::ServerDiverged { round }),
        }
    };
    (0..).zip(servers.iter_mut().zip(models)).map(one).collect::<Result<_, _>>().map(Some)
}

/// What a task makes of updates together.
pub(super) struct Together {
    /// Weights for age with which updates weigh what the task says.
    pub ages: Vec<f64>,
    /// What each client keeps.
    pub private: Vec<Vec<f32>>,
}

/// Lets the task relate updates to each other; none where it leaves them as they are.
pub(super) fn related(
    task: &dyn Task,
    weighting: Weighting,
    sent: &[(ClientId, &[f32])],
    updates: &[&Update],
    ages: &[f64],
) -> Option<Together> {
    let base: Vec<f64> = sent.iter().map(|(client, _)| weighting.of(task.examples(*client))).collect();
    let weights: Vec<f64> = base.iter().zip(ages).map(|(base, age)| base * age).collect();
    let Related { weights, private } = task.relate(sent, updates, &weights)?;
    Some(Together { ages: weights.iter().zip(base).map(|(weight, base)| weight / base).collect(), private })
}

/// What the updates of `work`, which was just trained, weigh, with these weights for age. They count against the model
/// sent, or against `current`.
pub(super) fn contributions<'a>(
    task: &dyn Task,
    work: &'a [Work],
    updates: &'a [Update],
    ages: &[f64],
    current: Option<&'a [Arc<[f32]>]>,
) -> Vec<Contribution<'a>> {
    let contribution = |((work, update), &age): ((&'a Work, &'a Update), &f64)| Contribution {
        client: work.client,
        number: work.number,
        cluster: work.sent.cluster,
        examples: task.examples(work.client),
        weight: work.weight,
        staleness_weight: age,
        start: current.map_or(&*work.sent.model, |current| &*current[work.sent.cluster as usize]),
        parameters: &update.parameters,
        rows: &update.rows,
    };
    work.iter().zip(updates).zip(ages).map(contribution).collect()
}
