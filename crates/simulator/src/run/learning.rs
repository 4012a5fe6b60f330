//! The global model of a run: lazy local training, aggregation, evaluation.

mod trial;

use super::RunError;
use super::jobs::Job;
use crate::protocol::{Combine, Rule};
use crate::task::Learner;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::math::float::sqrt;
use fedgenie_learning::aggregate::{AggregationConfig, Aging, Contribution, ServerConfig, ServerOptimizer, Weighting};
use fedgenie_learning::model::{Evaluation, evaluate};
use fedgenie_learning::trainer::{TrainingJob, Update, train};
use rayon::prelude::*;
use std::sync::Arc;

/// What left the finite numbers.
pub(super) enum Divergence {
    /// The update of a client.
    Client(ClientId),
    /// The global model, by the server's step.
    Server,
}

impl Divergence {
    pub const fn in_round(self, round: Round) -> RunError {
        match self {
            Self::Client(client) => RunError::Diverged { client, round },
            Self::Server => RunError::ServerDiverged { round },
        }
    }
}

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

/// An edge server's average, and what the updates in it said of their training.
pub(super) type EdgeModel = (Arc<[f32]>, Vec<Trained>);

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
        let aging = match world.rule {
            Rule::Buffered(_) => Aging::Discounting,
            Rule::Rounds(_) | Rule::Hierarchical(_) => Aging::Relative,
        };
        Self {
            world,
            learner,
            global: learner.initial_model(&world.streams).into(),
            server: ServerOptimizer::new(&world.aggregation, learner.model.trained()).with_aging(aging),
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
            (client, evaluate(&*self.learner.model, &self.global, data, examples, false).loss())
        };
        if parallel { candidates.par_iter().map(one).collect() } else { candidates.iter().map(one).collect() }
    }

    /// Trains the given work; the updates lie in `self.updates`, in the order of the list that is returned: ascending
    /// (client, ticket), without clients that have no data.
    fn train(&mut self, mut work: Vec<Work>, parallel: bool) -> Result<Vec<Work>, Divergence> {
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
        train(&training, &*self.learner.model, data, &self.world.training, &self.world.streams, parallel, updates);
        match training.iter().zip(&*updates).find(|(_, update)| update.diverged) {
            Some((job, _)) => Err(Divergence::Client(job.client)),
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

    /// Trains the given work and folds the updates into the global model; none if there was nothing to fold. What is
    /// averaged is what `combine` says.
    ///
    /// # Errors
    /// The first client whose update is not finite, or the server; the global model stays as it was.
    pub fn aggregate(
        &mut self,
        work: Vec<Work>,
        combine: Combine,
        parallel: bool,
    ) -> Result<Option<Vec<Trained>>, Divergence> {
        let work = self.train(work, parallel)?;
        if work.is_empty() {
            return Ok(None);
        }
        let old = self.global.clone();
        let current = (combine == Combine::Models).then_some(&*old);
        let mut global = self.global.to_vec();
        let contributions = contributions(self.learner, &work, &self.updates, current);
        self.server.apply(&mut global, &contributions, self.learner.partition.examples() as u64);
        self.accept(global)?;
        Ok(Some(self.losses_of(&work)))
    }

    fn accept(&mut self, global: Vec<f32>) -> Result<(), Divergence> {
        if !global.iter().all(|parameter| parameter.is_finite()) {
            return Err(Divergence::Server);
        }
        self.global = global.into();
        Ok(())
    }

    /// Trains the given work for an edge server and averages the updates into its model; none if there is nothing to
    /// average.
    ///
    /// # Errors
    /// The first client whose update is not finite.
    pub fn aggregate_at_edge(
        &mut self,
        work: Vec<Work>,
        model: &[f32],
        parallel: bool,
    ) -> Result<Option<EdgeModel>, Divergence> {
        let work = self.train(work, parallel)?;
        if work.is_empty() {
            return Ok(None);
        }
        let config = AggregationConfig { weighting: self.world.aggregation.weighting, server: ServerConfig::default() };
        let config = match config.weighting {
            // An edge server averages what it gets; only the cloud keeps a part of the old model.
            Weighting::TotalSize => AggregationConfig { weighting: Weighting::DataSize, ..config },
            Weighting::DataSize | Weighting::Uniform => config,
        };
        let mut average = model.to_vec();
        let contributions = contributions(self.learner, &work, &self.updates, None);
        ServerOptimizer::new(&config, self.learner.model.trained()).apply(&mut average, &contributions, 0);
        Ok(Some((average.into(), self.losses_of(&work))))
    }

    /// Folds the models of edge servers into the global model: edge server, examples of all its clients, model.
    ///
    /// # Errors
    /// If the server's step leaves the finite numbers.
    pub fn aggregate_edges(&mut self, round: Round, models: &[(u32, usize, Arc<[f32]>)]) -> Result<bool, Divergence> {
        if models.is_empty() {
            return Ok(false);
        }
        let old = self.global.clone();
        let contributions: Vec<Contribution<'_>> = models
            .iter()
            .map(|(edge, examples, model)| Contribution {
                client: ClientId(*edge),
                round,
                examples: *examples,
                staleness_weight: 1.0,
                start: &old,
                parameters: model,
            })
            .collect();
        let mut global = old.to_vec();
        self.server.apply(&mut global, &contributions, self.learner.partition.examples() as u64);
        self.accept(global)?;
        Ok(true)
    }

    /// Metrics of the global model on the test data, and on each client's own examples if `clients`.
    pub fn evaluate(&self, clients: bool, parallel: bool) -> Vec<(&'static str, f64)> {
        let data = &self.learner.data.test;
        let evaluation = evaluate(&*self.learner.model, &self.global, data, &self.test_examples, parallel);
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
        let one = |examples: &&[u32]| evaluate(&*self.learner.model, &self.global, data, examples, false);
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
