//! Rows with a class or a number each, learned by a [`Model`].
//!
//! # Definition
//! All parameters of the model travel, both ways; clients keep nothing. Where edge servers have cluster models, the
//! model is one whose scores are sums of a shared network and of the cluster's, or one for each cluster. Measures:
//! `loss`, `accuracy` where there are classes, and the scenario's further metrics. A client's own data are its training
//! examples, or those that it holds out; an edge server's are the training examples of its clients. Validation data are
//! training rows that nobody trains on.
//!
//! Test examples are divided among servers as [`test_split`] says. [`Shifted`] has what the data are from a round on.

mod controls;
mod measured;
mod own;
mod personal;
mod shifted;
pub mod test_split;

use super::clusters::ClusterNetworks;
use super::{Appendix, Ask, Context, DealtData, Description, Job, Losses, ModelState, On, Task, Worker};
use crate::adversary::Adversaries;
use crate::algorithm::ditto::OwnModels;
use crate::algorithm::personal::Divided;
use crate::data::partition::skew::MOST_SIZES;
use crate::data::partition::{ClassCounts, Partition, TestSplit};
use crate::data::{Dataset, Manner, Split};
use crate::layout::{Layout, Scope, Update};
use crate::metric::Definition;
use crate::model::weights::TensorLayout;
use crate::model::{Batch, Model, Scratch, evaluate, evaluate_each};
use crate::trainer::{self, LocalTraining, Trainer, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use own::WithOwnModels;
use personal::WithPersonalLayers;
pub use shifted::Shifted;
use std::borrow::Cow;
use std::sync::Arc;

/// Data, their partition, and the model.
#[derive(Clone)]
pub struct Labelled {
    /// Train and test examples.
    pub data: Arc<Split>,
    /// What is learned.
    pub model: Arc<dyn Model>,
    /// Which training examples each client trains on.
    pub partition: Partition,
    /// Examples on which each client's model is measured, where these are not those that it trains on.
    own: Option<Partition>,
    /// The model to start from, if it is not drawn: one for all clusters, or one for each.
    pub start: Option<Vec<Vec<f32>>>,
    /// How the partition divides test examples among its servers, if it does.
    pub test_split: Option<TestSplit>,
    /// The networks of clusters, where there are any.
    clusters: Option<ClusterNetworks>,
    layout: Layout,
    description: Description,
    test_examples: Vec<u32>,
    /// Training rows for validation, ascending.
    valid_examples: Vec<u32>,
    /// Training rows that clients hold out, ascending.
    held_out: Vec<u32>,
    /// What is measured, in the order of the values.
    metrics: Vec<&'static Definition>,
    /// Pairs of classes that hostile clients exchange: then the share of exchanged test examples is measured last.
    exchanged: Arc<[[u32; 2]]>,
    /// The training examples with the labels that they have in the data, where hostile clients train on others.
    honest: Option<Arc<Split>>,
    /// The examples with the labels by which test examples are divided among servers, where others are said.
    divided_by: Option<Arc<Split>>,
    /// The task from rounds on, by ascending round.
    shifts: Arc<[(u32, Labelled)]>,
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
            description: describe(&data.train, &partition, &[]),
            test_examples: (0..data.test.examples() as u32).collect(),
            valid_examples: Vec::new(),
            metrics: Self::metrics(data.train.classes().is_some(), &[]),
            data,
            model: model.into(),
            partition,
            own: None,
            held_out: Vec::new(),
            start: start.map(|start| vec![start]),
            test_split: None,
            exchanged: Arc::default(),
            honest: None,
            divided_by: None,
            shifts: Arc::default(),
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

    /// With these metrics beside the usual ones.
    #[must_use]
    pub fn with_metrics(mut self, more: &[&'static Definition]) -> Self {
        self.metrics = Self::metrics(self.data.train.classes().is_some(), more);
        self
    }

    /// With validation data: training rows of no client, ascending.
    #[must_use]
    pub fn with_validation(mut self, rows: Vec<u32>) -> Self {
        self.valid_examples = rows;
        self.description = describe(&self.data.train, &self.partition, &self.aside());
        self
    }

    /// With clients' models measured on these examples, which nobody trains on.
    #[must_use]
    pub fn measured_on(mut self, own: Partition) -> Self {
        self.held_out = own.rows();
        self.own = Some(own);
        self.description = describe(&self.data.train, &self.partition, &self.aside());
        self
    }

    /// With the manner told in which each client sees its examples; none where they see them as they are.
    #[must_use]
    pub fn seen_in(mut self, manners: Vec<Manner>) -> Self {
        if let Some(skew) = self.description.skew.as_mut().filter(|_| manners.len() <= MOST_SIZES) {
            skew.features = manners;
        }
        self
    }

    /// Training rows that nobody trains on, ascending.
    fn aside(&self) -> Vec<u32> {
        let mut aside = [&self.valid_examples[..], &self.held_out].concat();
        aside.sort_unstable();
        aside
    }

    /// The examples on which each client's model is measured.
    fn of_clients(&self) -> &Partition {
        self.own.as_ref().unwrap_or(&self.partition)
    }

    /// Whether scores are sums of a shared network and of the cluster's.
    fn is_additive(&self) -> bool {
        self.layout.has_clusters() && self.layout.segments().iter().any(|segment| segment.scope == Scope::Shared)
    }

    /// The lists of examples that data consist of.
    fn lists<'a>(&'a self, on: On<'a>) -> Vec<(&'a Dataset, Cow<'a, [u32]>)> {
        let Split { train, test, .. } = &*self.data;
        match on {
            On::Test => vec![(test, self.test_examples.as_slice().into())],
            On::Valid => vec![(train, self.valid_examples.as_slice().into())],
            On::Client(client) => vec![(train, self.of_clients().client(client))],
            On::Server(_, members) => members.iter().map(|&client| (train, self.partition.client(client))).collect(),
            On::ServerTest(_, _, examples) => vec![(test, examples.into())],
            On::Model => Vec::new(),
        }
    }

    fn run(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, wanted: Wanted<'_>) {
        let Context { settings, streams, .. } = *context;
        let trainer = Trainer { model: &*self.model, data: &self.data.train, settings, streams };
        let dense = job.dense(context, self.layout.trained());
        let examples = self.partition.client(job.client);
        trainer.do_job(&dense, (job.client, job.number), &examples, worker.keep(), wanted);
    }

    /// Where client `k` has the data of `sources[k]`.
    fn moved(&self, sources: &[ClientId]) -> Self {
        let partition = self.partition.rearranged(sources);
        let own = self.own.as_ref().map(|own| own.rearranged(sources));
        let description = describe(&self.data.train, &partition, &self.aside());
        Self { description, partition, own, ..self.clone() }
    }

    /// With about so many test and validation examples, and their share of all; `None` if it has no more.
    fn thinned(&self, most: usize) -> Option<(Self, f64)> {
        let all = self.test_examples.len() + self.valid_examples.len();
        let step = all.div_ceil(most.max(1));
        let thin = |examples: &[u32]| examples.iter().copied().step_by(step.max(1)).collect();
        let (test_examples, valid_examples): (Vec<u32>, Vec<u32>) =
            (thin(&self.test_examples), thin(&self.valid_examples));
        let share = (test_examples.len() + valid_examples.len()) as f64 / all as f64;
        (step > 1).then(|| (Self { test_examples, valid_examples, ..self.clone() }, share))
    }

    /// The task where each client keeps a part of the model, which trains alone for so many epochs before the shared
    /// part does, or together with it.
    pub fn with_personal_layers(self, parts: Divided, private_epochs: Option<u32>, streams: &Streams) -> Arc<dyn Task> {
        let whole = (&self as &dyn Task).initial_model(0, streams);
        let initial = parts.private_of(&whole).collect();
        Arc::new(WithPersonalLayers { whole: self, parts, initial, private_epochs })
    }

    /// With the labels that hostile clients train on.
    fn with_labels_of(&self, hostile: &Adversaries) -> Result<Self, String> {
        let Some((_, classes)) = self.data.train.classes() else {
            return Err("needs examples with classes; take another attack".to_owned());
        };
        if !self.partition.is_dealt() {
            return Err("needs examples that belong to one client each; take another partition".to_owned());
        }
        let exchanged = hostile.attack.pairs().unwrap_or_default();
        if let Some(class) = exchanged.iter().flatten().find(|class| **class as usize >= classes) {
            return Err(format!("names class {class}; there are {classes}, from 0 on"));
        }
        let examples = hostile.clients.iter().flat_map(|&client| self.partition.client(client).into_owned());
        let train = self.data.train.relabelled(examples, |label| hostile.attack.label(label, classes));
        let data = Arc::new(Split { train, test: self.data.test.clone() });
        let honest = Some(self.data.clone());
        Ok(Self { data, exchanged: exchanged.into(), honest, ..self.clone() })
    }

    /// Does something with the examples of a client.
    pub fn with_client<R>(&self, client: ClientId, work: impl FnOnce(Batch<'_>) -> R) -> R {
        work(Batch { data: &self.data.train, examples: &self.partition.client(client) })
    }
}

/// Facts about a partition of training examples, of which some rows are set aside for validation.
fn describe(train: &Dataset, partition: &Partition, set_aside: &[u32]) -> Description {
    Description {
        skew: Some(partition.skew_without(train, set_aside)),
        warnings: absent_classes(train, set_aside).into_iter().collect(),
        ..Description::of(partition.sizes())
    }
}

/// A warning of classes without training examples.
fn absent_classes(train: &Dataset, set_aside: &[u32]) -> Option<String> {
    let counts = controls::counts(train, set_aside)?;
    let without: Vec<usize> = (0..counts.len()).filter(|&class| counts[class] == 0).collect();
    let first = without.first()?;
    let (count, classes) = (without.len(), counts.len());
    Some(format!("{count} of {classes} classes have no training example, class {first} first; is a label wrong?"))
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

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        settings.examples(self.partition.size(client)) * 4.0 * self.model.parameters() as f64
    }

    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure> {
        self.run(job, context, worker, Wanted::Update(update));
        Ok(())
    }

    fn tells_losses_after_an_epoch(&self) -> bool {
        true
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure> {
        // One pass over the examples for neighbours under several models.
        for asks in asks.chunk_by_mut(|one, next| one.on == next.on) {
            if asks[0].on == On::Model {
                continue;
            }
            let models: Vec<&[f32]> = asks.iter().map(|ask| ask.state.model).collect();
            let lists = self.lists(asks[0].on);
            let batches: Vec<Batch<'_>> = lists.iter().map(|(data, examples)| Batch { data, examples }).collect();
            // Nothing to measure on: no weight.
            if batches.iter().all(|batch| batch.examples.is_empty()) {
                continue;
            }
            let found = evaluate_each(&*self.model, &models, &batches, effort);
            for (found, ask) in found.into_iter().zip(asks) {
                ask.weight = self.measured(found, (ask.state.model, &batches), effort, ask.values);
            }
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.model.tensors()
    }

    fn appendix(&self) -> Appendix {
        Appendix { controls: self.controls(), ..Appendix::default() }
    }

    fn controls_on(&self, parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        self.constants_on(parts)
    }

    fn relabelled(&self, hostile: &Adversaries) -> Result<Arc<dyn Task>, String> {
        Ok(Arc::new(self.with_labels_of(hostile)?))
    }

    fn with_own_models(&self, own: OwnModels, streams: &Streams) -> Result<Arc<dyn Task>, String> {
        let mut initial = vec![0.0; self.layout.len()];
        self.init(0, streams, &mut initial);
        Ok(Arc::new(WithOwnModels { shared: self.clone(), own, initial: initial.into() }))
    }

    fn has_hidden(&self) -> bool {
        self.model.hidden().is_some()
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn dealt(&self) -> Option<&dyn DealtData> {
        Some(self)
    }
}

impl Losses for Labelled {
    fn has_gradient(&self) -> bool {
        true
    }

    fn gradient(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        self.run(job, context, worker, Wanted::Gradient(gradient));
        Ok(self.describe().examples_of(job.client) > 0)
    }

    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        Ok(self.with_client(client, |batch| evaluate(&*self.model, state.model, batch, false).loss()))
    }

    fn has_batch_losses(&self) -> bool {
        true
    }

    fn losses_of(&self, client: ClientId) -> usize {
        self.describe().examples_of(client)
    }

    fn batch_loss(&self, client: ClientId, state: &ModelState<'_>, places: &[usize]) -> Result<f64, Failure> {
        Ok(self.with_client(client, |batch| {
            let examples: Vec<u32> = places.iter().map(|&place| batch.examples[place]).collect();
            evaluate(&*self.model, state.model, Batch { examples: &examples, ..batch }, false).loss()
        }))
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> Result<f64, Failure> {
        let trainer::Worker { scratch, .. } = worker.keep();
        Ok(self.with_client(client, |batch| trainer::squared_losses(&*self.model, state.model, batch, scratch)))
    }

    fn slope(&self, state: &ModelState<'_>, slope: &mut Vec<f32>) -> Result<bool, Failure> {
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
        Ok(!batch.examples.is_empty())
    }
}

impl DealtData for Labelled {
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        let (classes_of, classes) = self.data.train.classes()?;
        let of = |client| {
            let mut counts = vec![0; classes];
            let examples = self.partition.client(ClientId::from_index(client));
            examples.iter().for_each(|&example| counts[usize::from(classes_of[example as usize])] += 1);
            counts
        };
        Some((0..self.partition.clients()).map(of).collect())
    }

    fn test_of_servers(&self, servers: &[Vec<ClientId>], streams: &Streams) -> Vec<Vec<u32>> {
        self.deal_test(servers, streams)
    }

    fn class_counts(&self, members: &[ClientId], test: &[u32]) -> Option<ClassCounts> {
        let (train, classes) = self.data.train.classes()?;
        let (tests, test_classes) = self.data.test.classes()?;
        let (mut of_train, mut of_test) = (vec![0; classes], vec![0; test_classes]);
        let trained = members.iter().flat_map(|&client| self.partition.client(client).into_owned());
        trained.for_each(|example| of_train[usize::from(train[example as usize])] += 1);
        test.iter().for_each(|&example| of_test[usize::from(tests[example as usize])] += 1);
        Some(ClassCounts { train: of_train, test: of_test })
    }

    fn with_data_of(&self, sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        Some(Arc::new(self.moved(sources)))
    }

    fn with_fewer_tests(&self, most: usize) -> Option<(Arc<dyn Task>, f64)> {
        self.thinned(most).map(|(task, share)| (Arc::new(task) as _, share))
    }

    fn shifts(&self) -> Vec<(u32, Arc<dyn Task>)> {
        self.shifts.iter().map(|(round, task)| (*round, Arc::new(task.clone()) as _)).collect()
    }
}

#[cfg(test)]
mod tests;
