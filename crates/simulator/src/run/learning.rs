//! The global model of a run: lazy local training, aggregation, evaluation.

mod hindsight;

use super::RunError;
use super::jobs::Job;
use crate::protocol::{Combine, Rule};
use crate::task::Learner;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::math::float::sqrt;
use fedgenie_learning::aggregate::{AggregationConfig, Aging, Contribution, ServerConfig, ServerOptimizer, Weighting};
use fedgenie_learning::model::{Batch, Evaluation, evaluate};
use fedgenie_learning::trainer::{Trainer, TrainingJob, Update};
use rayon::prelude::*;
use std::sync::Arc;

/// What a client has to compute.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub client: ClientId,
    pub round: Round,
    pub ticket: Round,
    /// The model it was sent.
    pub start: Arc<[f32]>,
    pub staleness_weight: f64,
}

impl Work {
    /// The work of a job that was sent a model.
    pub fn of(job: &Job, staleness_weight: f64) -> Option<Self> {
        let Job { client, round, ticket, .. } = *job;
        Some(Self { client, round, ticket, start: job.start.clone()?, staleness_weight })
    }
}

/// What an update said about its training.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trained {
    pub client: ClientId,
    pub round: Round,
    /// Mean loss over the first local epoch.
    pub loss: f64,
}

/// An edge server's model, for the cloud.
#[derive(Debug)]
pub(super) struct EdgeModel {
    pub edge: u32,
    /// Of all its clients.
    pub examples: usize,
    pub model: Arc<[f32]>,
}

/// What a round takes into the global model.
#[derive(Debug)]
pub(super) enum Intake {
    Nothing,
    /// Updates that are still to be trained, and what of them is averaged.
    Updates(Vec<Work>, Combine),
    EdgeModels(Vec<EdgeModel>),
}

/// A round's aggregation. It borrows the global model, so that the updates in it are read before the next aggregation
/// begins.
pub(super) struct Aggregated<'a, 'w> {
    pub learning: &'a Learning<'w>,
    /// What the updates said of their training, ascending by client.
    pub trained: Vec<Trained>,
    /// Whether anything was aggregated.
    pub is_new_model: bool,
}

impl Aggregated<'_, '_> {
    /// The updates that went into the model, ascending by client.
    pub fn updates(&self) -> impl Iterator<Item = (ClientId, &Update)> {
        self.trained.iter().map(|trained| trained.client).zip(&self.learning.updates)
    }
}

/// The global model of a run.
pub(super) struct Learning<'w> {
    world: &'w World,
    learner: &'w Learner,
    global: Arc<[f32]>,
    server: ServerOptimizer,
    /// Buffers of local models, kept from round to round.
    updates: Vec<Update>,
    test_examples: Vec<u32>,
}

impl<'w> Learning<'w> {
    pub fn new(world: &'w World, learner: &'w Learner) -> Self {
        let aging = match world.protocol.rule {
            Rule::Buffered(_) => Aging::Discounting,
            Rule::Rounds(_) | Rule::Hierarchical(_) => Aging::Relative,
        };
        Self {
            world,
            learner,
            global: learner.initial_model(&world.streams).into(),
            server: ServerOptimizer::new(&world.training.aggregation, learner.model.trained()).with_aging(aging),
            updates: Vec::new(),
            test_examples: (0..learner.data.test.examples() as u32).collect(),
        }
    }

    /// The current global model.
    pub fn model(&self) -> Arc<[f32]> {
        self.global.clone()
    }

    /// Loss of the global model on the candidates' own data.
    pub fn losses(&self, candidates: &[ClientId], parallel: bool) -> Vec<(ClientId, f64)> {
        let one = |&client: &ClientId| {
            let examples = self.learner.partition.client(client);
            let data = &self.learner.data.train;
            (client, evaluate(&*self.learner.model, &self.global, Batch { data, examples }, false).loss())
        };
        if parallel { candidates.par_iter().map(one).collect() } else { candidates.iter().map(one).collect() }
    }

    /// Trains the given work; the updates lie in `self.updates`, in the order of the list that is returned: ascending
    /// (client, ticket), without clients that have no data.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    fn train(&mut self, round: Round, mut work: Vec<Work>, parallel: bool) -> Result<Vec<Work>, RunError> {
        let partition = &self.learner.partition;
        // A client without data has nothing to train on.
        work.retain(|work| !partition.client(work.client).is_empty());
        work.sort_unstable_by_key(|work| (work.client, work.ticket));
        let training: Vec<TrainingJob<'_>> = work
            .iter()
            .map(|work| TrainingJob {
                client: work.client,
                round: work.round,
                ticket: work.ticket,
                start: &work.start,
                examples: partition.client(work.client),
            })
            .collect();
        if self.updates.len() < training.len() {
            self.updates.resize_with(training.len(), Update::default);
        }
        let updates = &mut self.updates[..training.len()];
        let data = &self.learner.data.train;
        let settings = &self.world.training.local;
        Trainer { model: &*self.learner.model, data, settings, streams: &self.world.streams }
            .train(&training, parallel, updates);
        match training.iter().zip(&*updates).find(|(_, update)| update.diverged) {
            Some((job, _)) => Err(RunError::Diverged { client: job.client, round }),
            None => Ok(work),
        }
    }

    fn losses_of(&self, work: &[Work]) -> Vec<Trained> {
        let loss = |(work, update): (&Work, &Update)| Trained {
            client: work.client,
            round: work.round,
            loss: f64::from(update.first_loss),
        };
        work.iter().zip(&self.updates).map(loss).collect()
    }

    /// Folds what a round took in into the global model.
    ///
    /// # Errors
    /// The first client whose update is not finite, or the server; the global model stays as it was.
    pub fn aggregate(&mut self, round: Round, intake: Intake, parallel: bool) -> Result<Aggregated<'_, 'w>, RunError> {
        let old = self.global.clone();
        let (trained, new) = match intake {
            Intake::Nothing => (Vec::new(), None),
            Intake::Updates(work, combine) => {
                let work = self.train(round, work, parallel)?;
                let current = (combine == Combine::Models).then_some(&*old);
                let contributions = contributions(self.learner, &work, &self.updates, current);
                let new = step(&mut self.server, self.learner, &old, &contributions, round)?;
                (self.losses_of(&work), new)
            }
            Intake::EdgeModels(models) => {
                let contributions = models.iter().map(|EdgeModel { edge, examples, model }| Contribution {
                    client: ClientId(*edge),
                    round,
                    examples: *examples,
                    staleness_weight: 1.0,
                    start: &old,
                    parameters: model,
                });
                let contributions: Vec<Contribution<'_>> = contributions.collect();
                (Vec::new(), step(&mut self.server, self.learner, &old, &contributions, round)?)
            }
        };
        let is_new_model = new.is_some();
        self.global = new.unwrap_or(old);
        Ok(Aggregated { learning: self, trained, is_new_model })
    }

    /// Trains the given work for an edge server and averages the updates into its model, which stays as it is if there
    /// is nothing to average. Returns what the updates said of their training.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    pub fn aggregate_at_edge(
        &mut self,
        round: Round,
        work: Vec<Work>,
        model: &mut Arc<[f32]>,
        parallel: bool,
    ) -> Result<Vec<Trained>, RunError> {
        let work = self.train(round, work, parallel)?;
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let config =
            AggregationConfig { weighting: self.world.training.aggregation.weighting, server: ServerConfig::default() };
        let config = match config.weighting {
            // An edge server averages what it gets; only the cloud keeps a part of the old model.
            Weighting::TotalSize => AggregationConfig { weighting: Weighting::DataSize, ..config },
            Weighting::DataSize | Weighting::Uniform => config,
        };
        let mut average = model.to_vec();
        let contributions = contributions(self.learner, &work, &self.updates, None);
        ServerOptimizer::new(&config, self.learner.model.trained()).apply(&mut average, &contributions, 0);
        *model = average.into();
        Ok(self.losses_of(&work))
    }

    /// Metrics of the global model on the test data, and on each client's own examples if `clients`.
    pub fn evaluate(&self, clients: bool, parallel: bool) -> Vec<(&'static str, f64)> {
        let data = &self.learner.data.test;
        let evaluation =
            evaluate(&*self.learner.model, &self.global, Batch { data, examples: &self.test_examples }, parallel);
        let mut metrics = vec![("test_loss", evaluation.loss())];
        if self.learner.classifies {
            metrics.push(("test_accuracy", evaluation.accuracy()));
        }
        if clients {
            self.evaluate_clients(parallel, &mut metrics);
        }
        metrics
    }

    /// Statistics over the clients that have data, each of which counts alike.
    fn evaluate_clients(&self, parallel: bool, metrics: &mut Vec<(&'static str, f64)>) {
        let (partition, data) = (&self.learner.partition, &self.learner.data.train);
        let with_data: Vec<&[u32]> = (0..partition.clients())
            .map(|client| partition.client(ClientId::from_index(client)))
            .filter(|examples| !examples.is_empty())
            .collect();
        let one = |examples: &&[u32]| evaluate(&*self.learner.model, &self.global, Batch { data, examples }, false);
        let found: Vec<Evaluation> =
            if parallel { with_data.par_iter().map(one).collect() } else { with_data.iter().map(one).collect() };
        let losses: Vec<f64> = found.iter().map(Evaluation::loss).collect();
        let (mean, deviation) = mean_and_deviation(&losses);
        metrics.extend([("client_loss_mean", mean), ("client_loss_sd", deviation)]);
        if self.learner.classifies {
            let mut accuracies: Vec<f64> = found.iter().map(Evaluation::accuracy).collect();
            let (mean, deviation) = mean_and_deviation(&accuracies);
            accuracies.sort_unstable_by(f64::total_cmp);
            // The largest accuracy that at most a tenth of the clients fall short of.
            let tenth = accuracies[accuracies.len() / 10];
            metrics.extend([
                ("client_accuracy_mean", mean),
                ("client_accuracy_sd", deviation),
                ("client_accuracy_p10", tenth),
                ("client_accuracy_min", accuracies[0]),
            ]);
        }
    }
}

/// The global model after a step of the server; none if there is nothing to aggregate.
fn step(
    server: &mut ServerOptimizer,
    learner: &Learner,
    old: &[f32],
    contributions: &[Contribution<'_>],
    round: Round,
) -> Result<Option<Arc<[f32]>>, RunError> {
    if contributions.is_empty() {
        return Ok(None);
    }
    let mut new = old.to_vec();
    server.apply(&mut new, contributions, learner.partition.examples() as u64);
    match new.iter().all(|parameter| parameter.is_finite()) {
        true => Ok(Some(new.into())),
        false => Err(RunError::ServerDiverged { round }),
    }
}

/// What the updates of `work`, which was just trained, weigh. They count against the model sent, or against `current`.
fn contributions<'a>(
    learner: &Learner,
    work: &'a [Work],
    updates: &'a [Update],
    current: Option<&'a [f32]>,
) -> Vec<Contribution<'a>> {
    let contribution = |(work, update): (&'a Work, &'a Update)| Contribution {
        client: work.client,
        round: work.ticket,
        examples: learner.partition.client(work.client).len(),
        staleness_weight: work.staleness_weight,
        start: current.unwrap_or(&work.start),
        parameters: &update.parameters,
    };
    work.iter().zip(updates).map(contribution).collect()
}

/// Mean, and standard deviation with divisor n.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (mean, sqrt(variance))
}
