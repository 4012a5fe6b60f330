//! Rows with a class or a number each, learned by a [`Model`].
//!
//! # Definition
//! All parameters of the model travel, both ways; clients keep nothing. Where edge servers have cluster models, the
//! model is one whose scores are sums of a shared network and of the cluster's, or one for each cluster. Measures:
//! [`LOSS`], [`ACCURACY`] where there are classes, and what the scenario adds. A client's own data are its training
//! examples, an edge server's those of its clients. Validation data are training rows that nobody trains on.
//!
//! Test examples are divided among servers as [`test_split`] says.

mod measured;
pub mod test_split;

use super::clusters::{ClusterNetworks, tensors_of_clusters};
use super::{Context, Job, ModelState, On, PrivateView, Task, Worker};
use crate::data::Split;
use crate::data::partition::{ClassCounts, Partition, Skew, TestSplit};
use crate::layout::{Layout, Scope, Update};
use crate::metric::Definition;
use crate::model::weights::{Tensor, tensors_of};
use crate::model::{Batch, Model, Scratch, evaluate, evaluate_each};
use crate::trainer::{self, LocalTraining, Trainer, TrainingJob};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use std::sync::Arc;

/// Data, who holds what of them, and the model.
#[derive(Clone)]
pub struct Labelled {
    /// Train and test examples.
    pub data: Arc<Split>,
    /// What is learned.
    pub model: Arc<dyn Model>,
    /// Which training examples each client holds.
    pub partition: Partition,
    /// The model to start from, if it is not drawn: one for all clusters, or one for each.
    pub start: Option<Vec<Vec<f32>>>,
    /// How the partition divides test examples among its servers, if it does.
    pub test_split: Option<TestSplit>,
    /// The networks of clusters, where there are any.
    clusters: Option<ClusterNetworks>,
    layout: Layout,
    skew: Skew,
    test_examples: Vec<u32>,
    /// Training rows for validation, ascending.
    valid_examples: Vec<u32>,
    /// What is measured, in the order of the values.
    metrics: Vec<&'static Definition>,
}

impl std::fmt::Debug for Labelled {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Labelled").field("parameters", &self.model.parameters()).finish_non_exhaustive()
    }
}

impl Labelled {
    /// The task of these parts.
    pub fn new(data: Arc<Split>, model: Box<dyn Model>, partition: Partition, start: Option<Vec<f32>>) -> Self {
        Self {
            layout: model.layout(),
            clusters: None,
            skew: partition.skew(&data.train),
            test_examples: (0..data.test.examples() as u32).collect(),
            valid_examples: Vec::new(),
            metrics: Self::metrics(data.train.classes().is_some(), &[]),
            data,
            model: model.into(),
            partition,
            start: start.map(|start| vec![start]),
            test_split: None,
        }
    }

    /// With cluster models. A model without a shared part is one for each cluster.
    #[must_use]
    pub fn with_clusters(mut self, clusters: ClusterNetworks) -> Self {
        if !self.layout.has_clusters() {
            self.layout = self.layout.of_clusters();
        }
        self.clusters = Some(clusters);
        self
    }

    /// With these metrics beside those that are always measured.
    #[must_use]
    pub fn with_metrics(mut self, more: &[&'static Definition]) -> Self {
        self.metrics = Self::metrics(self.data.train.classes().is_some(), more);
        self
    }

    /// With validation data: training rows of no client, ascending.
    #[must_use]
    pub fn with_validation(mut self, rows: Vec<u32>) -> Self {
        self.skew = self.partition.skew_without(&self.data.train, &rows);
        self.valid_examples = rows;
        self
    }

    /// Whether scores are sums of a shared network and of the cluster's.
    fn is_additive(&self) -> bool {
        self.layout.has_clusters() && self.layout.segments().iter().any(|segment| segment.scope == Scope::Shared)
    }

    /// The lists of examples that data consist of.
    fn batches<'a>(&'a self, on: On<'a>) -> Vec<Batch<'a>> {
        match on {
            On::Test => vec![Batch { data: &self.data.test, examples: &self.test_examples }],
            On::Valid => vec![Batch { data: &self.data.train, examples: &self.valid_examples }],
            On::Client(client) => vec![self.of_client(client)],
            On::Server(_, members) => members.iter().map(|&client| self.of_client(client)).collect(),
            On::ServerTest(_, _, examples) => vec![Batch { data: &self.data.test, examples }],
            On::Model => Vec::new(),
        }
    }

    /// The examples of a client.
    pub fn of_client(&self, client: ClientId) -> Batch<'_> {
        Batch { data: &self.data.train, examples: self.partition.client(client) }
    }
}

impl Task for Labelled {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        let drawn_for = if self.clusters.is_some_and(|clusters| clusters.distinct) { cluster } else { 0 };
        let draw = |cluster, index, parameters: &mut [f32]| {
            self.model.init(&mut streams.stream(Purpose::ModelInit, cluster, index), parameters);
        };
        match &self.start {
            Some(starts) => parameters.copy_from_slice(&starts[(cluster as usize).min(starts.len() - 1)]),
            None if self.is_additive() => {
                draw(0, 0, parameters);
                let mut own = vec![0.0; parameters.len()];
                draw(drawn_for, 2, &mut own);
                for (range, _) in self.layout.dense_parts().filter(|(_, scope)| *scope == Scope::Cluster) {
                    parameters[range.clone()].copy_from_slice(&own[range]);
                }
            }
            None => draw(drawn_for, 0, parameters),
        }
    }

    fn examples(&self, client: ClientId) -> usize {
        self.partition.size(client)
    }

    fn all_examples(&self) -> u64 {
        self.partition.examples() as u64
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        settings.examples(self.partition.size(client)) * 4.0 * self.model.parameters() as f64
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, update: &mut Update) {
        let Context { settings, streams, loss_rms } = *context;
        let Job { client, round, number, start, .. } = *job;
        let job = TrainingJob { client, round, number, start, examples: self.partition.client(client) };
        Trainer { model: &*self.model, data: &self.data.train, settings, streams }.train_one(
            &job,
            loss_rms,
            worker.keep(),
            update,
        );
    }

    fn evaluate(&self, on: On<'_>, state: &ModelState<'_>, parallel: bool, values: &mut [f64]) -> f64 {
        match on {
            On::Model => 0.0,
            data => {
                let batches = self.batches(data);
                let found = evaluate_each(&*self.model, &[state.model], &batches, parallel)[0];
                self.measured(found, (state.model, &batches), parallel, values)
            }
        }
    }

    fn test_of_servers(&self, servers: &[Vec<ClientId>], streams: &Streams) -> Vec<Vec<u32>> {
        self.deal_test(servers, streams)
    }

    fn evaluate_each(&self, on: On<'_>, states: &[ModelState<'_>], parallel: bool, values: &mut [Vec<f64>]) -> f64 {
        let models: Vec<&[f32]> = states.iter().map(|state| state.model).collect();
        let batches = self.batches(on);
        let found = evaluate_each(&*self.model, &models, &batches, parallel);
        let each = found.iter().zip(models).zip(values);
        let weights = each.map(|((found, model), values)| self.measured(*found, (model, &batches), parallel, values));
        weights.last().unwrap_or(0.0)
    }

    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> f64 {
        evaluate(&*self.model, state.model, self.of_client(client), false).loss()
    }

    fn slope(&self, state: &ModelState<'_>, slope: &mut Vec<f32>) -> bool {
        const BLOCK: usize = 256;
        slope.clear();
        slope.resize(state.model.len(), 0.0);
        let batch = match self.valid_examples.is_empty() {
            true => Batch { data: &self.data.test, examples: &self.test_examples },
            false => Batch { data: &self.data.train, examples: &self.valid_examples },
        };
        let (mut gradient, mut scratch) = (vec![0.0; self.model.trained()], Scratch::default());
        // Masks of dropout are the same in every round.
        let mut noise = Streams::new(0).stream(Purpose::TrainingNoise, 0, 0);
        for block in batch.chunks(BLOCK) {
            let share = block.examples.len() as f32 / batch.examples.len() as f32;
            // A pass may change a model's statistics.
            let mut parameters = state.model.to_vec();
            self.model.loss_and_gradient(&mut parameters, block, &mut gradient, &mut noise, &mut scratch);
            slope.iter_mut().zip(&gradient).for_each(|(sum, slope)| *sum += share * slope);
        }
        !batch.examples.is_empty()
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> f64 {
        let trainer::Worker { scratch, .. } = worker.keep();
        trainer::squared_losses(&*self.model, state.model, self.of_client(client), scratch)
    }

    fn tensors(&self, models: &[&[f32]], _private: &PrivateView<'_>) -> Vec<Tensor> {
        if self.clusters.is_none() {
            return tensors_of(&*self.model, models[0]);
        }
        tensors_of_clusters(&*self.model, models)
    }

    fn skew(&self) -> Option<&Skew> {
        Some(&self.skew)
    }

    fn class_counts(&self, members: &[ClientId], test: &[u32]) -> Option<ClassCounts> {
        let (train, classes) = self.data.train.classes()?;
        let (tests, test_classes) = self.data.test.classes()?;
        let (mut of_train, mut of_test) = (vec![0; classes], vec![0; test_classes]);
        let trained = members.iter().flat_map(|&client| self.partition.client(client));
        trained.for_each(|&example| of_train[usize::from(train[example as usize])] += 1);
        test.iter().for_each(|&example| of_test[usize::from(tests[example as usize])] += 1);
        Some(ClassCounts { train: of_train, test: of_test })
    }

    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        let (classes_of, classes) = self.data.train.classes()?;
        let of = |client| {
            let mut counts = vec![0; classes];
            let examples = self.partition.client(ClientId::from_index(client)).iter();
            examples.for_each(|&example| counts[usize::from(classes_of[example as usize])] += 1);
            counts
        };
        Some((0..self.partition.clients()).map(of).collect())
    }

    fn with_data_of(&self, sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        let partition = self.partition.rearranged(sources);
        let skew = partition.skew_without(&self.data.train, &self.valid_examples);
        Some(Arc::new(Self { skew, partition, ..self.clone() }))
    }

    fn warnings(&self) -> Vec<String> {
        let Some((labels, classes)) = self.data.train.classes() else { return Vec::new() };
        let mut counts = vec![0_usize; classes];
        labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        self.valid_examples.iter().for_each(|&row| counts[usize::from(labels[row as usize])] -= 1);
        let without: Vec<usize> = (0..classes).filter(|&class| counts[class] == 0).collect();
        let [first, ..] = without[..] else { return Vec::new() };
        vec![format!(
            "{} of {classes} classes have no training example, class {first} first; is a label wrong?",
            without.len()
        )]
    }
}
