//! The global model of a run: lazy local training, aggregation, evaluation.

use super::jobs::{JobId, Jobs};
use crate::aggregate::{Contribution, ServerOptimizer};
use crate::id::{ClientId, Round};
use crate::math::float::sqrt;
use crate::model::{Evaluation, evaluate};
use crate::protocol::Staleness;
use crate::task::Learner;
use crate::trainer::{TrainingJob, Update, train};
use crate::world::World;
use rayon::prelude::*;
use std::sync::Arc;

/// What left the finite numbers.
pub(super) enum Divergence {
    /// The update of a client.
    Client(ClientId),
    /// The global model, by the server's step.
    Server,
}

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
        Self {
            world,
            learner,
            global: learner.initial_model(&world.streams).into(),
            server: ServerOptimizer::new(&world.aggregation, learner.model.trained()),
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

    /// Trains the given jobs and folds their updates into the global model. Returns whether there was anything to fold.
    ///
    /// # Errors
    /// The first client whose update is not finite, or the server; the global model stays as it was.
    pub fn aggregate(
        &mut self,
        jobs: &mut Jobs,
        counted: impl Iterator<Item = JobId>,
        round: Round,
        staleness: Staleness,
        parallel: bool,
    ) -> Result<bool, Divergence> {
        let mut counted: Vec<JobId> = counted.collect();
        // A client without data has nothing to train on.
        counted.retain(|&id| !self.learner.partition.client(jobs[id].client).is_empty());
        if counted.is_empty() {
            return Ok(false);
        }
        counted.sort_unstable_by_key(|&id| (jobs[id].client, jobs[id].round));
        let starts: Vec<Arc<[f32]>> =
            counted.iter().map(|&id| jobs[id].start.take().expect("a job that trains was sent a model")).collect();
        let training: Vec<TrainingJob<'_>> = counted
            .iter()
            .zip(&starts)
            .map(|(&id, start)| TrainingJob {
                client: jobs[id].client,
                round: jobs[id].round,
                start,
                examples: self.learner.partition.client(jobs[id].client),
            })
            .collect();
        if self.updates.len() < training.len() {
            self.updates.resize_with(training.len(), Update::default);
        }
        let updates = &mut self.updates[..training.len()];
        let data = &self.learner.data.train;
        train(&training, &*self.learner.model, data, &self.world.training, &self.world.streams, parallel, updates);
        if let Some((job, _)) = training.iter().zip(&*updates).find(|(_, update)| update.diverged) {
            return Err(Divergence::Client(job.client));
        }
        let contributions: Vec<Contribution<'_>> = training
            .iter()
            .zip(&*updates)
            .map(|(job, update)| Contribution {
                client: job.client,
                round: job.round,
                examples: job.examples.len(),
                staleness_weight: staleness.weight(round.0 - job.round.0),
                start: job.start,
                parameters: &update.parameters,
            })
            .collect();
        let mut global = self.global.to_vec();
        self.server.apply(&mut global, &contributions, self.learner.partition.examples() as u64);
        if !global.iter().all(|parameter| parameter.is_finite()) {
            return Err(Divergence::Server);
        }
        self.global = global.into();
        let losses: Vec<f64> = updates.iter().map(|update| f64::from(update.first_loss)).collect();
        drop(training);
        for (id, loss) in counted.into_iter().zip(losses) {
            jobs[id].loss = Some(loss);
        }
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

/// Mean, and standard deviation with divisor n.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
    (mean, sqrt(variance))
}
