//! Recommendation: rows of users and items, learned from ratings, judged by the ranking of test items.
//!
//! # Definition
//! A [`RowRecommender`] makes scores of rows. `items.weight` travels: as a table, of which an update has the rows that
//! the job moved, or as a dense segment; so do the weights of networks, dense, before it. `users.weight` stays with
//! clients: each keeps a row for every user with training ratings at it, one after the other by ascending user, and
//! sends nothing of it.
//!
//! A user whose training ratings are spread over several clients has a row at each. That of the client with most of
//! them counts, of the first among equals: it is used for evaluation and written to files, and the client is the user's
//! *home*.
//!
//! Measures: those of [`ranking`](crate::ranking), on test and validation data. A client's and an edge server's data
//! are test ratings of the users whose homes they are. The loss of a client is the mean of `−ln σ(x)` over its training
//! examples, each with a negative that is drawn once and for all, or with those of the triplets. `sparse` has the
//! measures of the model alone, `answers` clients' answers to probes.
//!
//! With [`LocalTraining::noise`] a client adds normal noise to the rows that it sends, or to the whole table, which
//! then travels up without ids: every row counts as moved, for the server cannot know better.
//!
//! # Cost
//! For a client 24 bytes and a home, for a training rating 12 bytes. Rows of users who have never trained are made when
//! they are needed. Finding a job's bytes repeats its draws.
//!
//! # Determinism
//! A job's streams: (BatchOrder, client, job) and (TrainingNoise, client, job). The negatives of a client's loss:
//! stream (Example, client, 8), in the order of its positives. Noise: stream (Privacy, client, job), row by row.

mod answers;
mod data;
mod holdings;
mod measure;
pub mod multimodal;
mod private;
pub mod recommenders;
mod scores;
mod slopes;
mod sparse;
mod training;

pub use data::{HeldOut, Source};
pub use holdings::Holdings;
pub use multimodal::Multimodal;
pub use recommenders::{RecommenderConfig, RecommenderSettings, RowRecommender};

use super::{
    Appendix, Ask, Context, Description, Job, JobKey, Losses, ModelState, On, PartialTransfer, PrivateState, ProbeKind,
    Probes, Task, Worker,
};
use crate::algorithm::Combine;
use crate::data::partition::Partition;
use crate::layout::{Layout, Parcel, Scope, Segment, Update};
use crate::matrix_factorisation::{self as mf, Moves};
use crate::model::weights::TensorLayout;
use crate::ranking::Ranker;
use crate::ratings::triplets::{Triplet, Triplets};
use crate::ratings::{Ratings, RatingsSplit};
use crate::trainer::LocalTraining;
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use std::sync::Arc;

/// The names of the two tables in files.
pub const TENSORS: [&str; 2] = ["items.weight", "users.weight"];

/// The part of the item table that travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All of it.
    Table,
    /// The rows of the job, each with its id.
    Rows,
}

/// A scenario's settings of training and measures, for any model.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Cutoffs of the measures; each at least 1.
    pub cutoffs: Vec<usize>,
    /// Which rows of items a job moves.
    pub moves: Moves,
    /// The parts that travel down and up.
    pub transfer: [Sent; 2],
    /// Rounds that the staleness of items is a share of; at least 1.
    pub staleness_window: u32,
}

impl Settings {
    /// The measures; `quality` names the one by which models are compared. `None` if there is no such measure.
    pub fn measures(&self, model: &dyn RowRecommender, quality: &str, has_valid: bool) -> Option<Measures> {
        let of_data = Ranker::measures(&self.cutoffs);
        let main = of_data.iter().position(|measure| measure.name == quality)?;
        Some(Measures { of_data, of_model: self.of_model(model.has_proxy()), has_valid, main, ..Measures::default() })
    }
}

/// The rows to start from.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Rows of all items.
    pub items: Vec<f32>,
    /// Rows of all users.
    pub users: Vec<f32>,
    /// Weights of networks that everybody begins with; empty where there are none.
    pub weights: Vec<f32>,
}

/// Ratings, their holders, and the rows.
#[derive(Debug)]
pub struct Recommendation {
    model: Arc<dyn RowRecommender>,
    settings: Settings,
    layout: Layout,
    source: Source,
    start: Option<Start>,
    /// The network that every client begins with, where it is private.
    first_network: Vec<f32>,
    streams: Streams,
    probes: Vec<ProbeKind>,
    /// The least popular items, four of five.
    long_tail: Vec<u32>,
    /// Triplets of validation pairs from a table, ascending by user.
    valid_triplets: Vec<Triplet>,
    description: Description,
}

impl Recommendation {
    /// The task of a split whose training ratings lie at clients as a partition says, at their own users if
    /// `is_by_user`. With triplets, those for training are the examples.
    ///
    /// # Panics
    /// If a setting is out of range, or the rows to start from are not as many as there are users and items.
    pub fn new(
        model: Arc<dyn RowRecommender>,
        settings: Settings,
        split: &RatingsSplit,
        (partition, is_by_user): (&Partition, bool),
        triplets: Option<&Triplets>,
        start: Option<Start>,
        streams: &Streams,
    ) -> Self {
        let (users, items, d) = (split.users(), split.items(), model.dimensions());
        if let Some(start) = &start {
            assert_eq!(
                [start.items.len(), start.users.len()],
                [items * d, users * d],
                "rows to start from are checked"
            );
            let weights = model.weights() + model.private_weights();
            assert_eq!(start.weights.len(), weights, "weights to start from are checked");
        }
        let dense = model.tensors().into_iter().map(|(name, shape)| {
            let numbers = shape.iter().product();
            Segment::dense(name, numbers, Scope::Shared)
        });
        let segment = match settings.transfer[1] {
            Sent::Rows => Segment::table(TENSORS[0], items, d, Scope::Shared),
            Sent::Table => Segment::dense(TENSORS[0], items * d, Scope::Shared),
        };
        let examples = triplets.map(|triplets| &*triplets.train);
        let source = Source::new(split, (partition, is_by_user), examples, &settings.cutoffs);
        let mut valid_triplets = triplets.map_or_else(Vec::new, |triplets| triplets.valid.clone());
        valid_triplets.sort_by_key(|triplet| triplet.user);
        let first_network = match (model.private_network(), &start) {
            (None, _) => Vec::new(),
            (Some(_), Some(start)) => start.weights.clone(),
            (Some(shape), None) => {
                let mut weights = vec![0.0; shape.weights()];
                shape.init(streams, &mut weights);
                weights
            }
        };
        Self {
            layout: Layout::new(dense.chain([segment]).collect()),
            probes: answers::kinds(&*model),
            long_tail: source.long_tail(),
            valid_triplets,
            description: describe(&source, is_by_user),
            source,
            start,
            first_network,
            streams: streams.clone(),
            model,
            settings,
        }
    }

    /// With features of users, each of which is a client.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Vec<Vec<f64>>>) -> Self {
        self.description.user_features = metadata;
        self
    }

    /// With warnings about the files.
    #[must_use]
    pub fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.description.warnings.extend(notes);
        self
    }

    /// The clients' ratings and users.
    pub const fn holdings(&self) -> &Holdings {
        &self.source.holdings
    }

    /// The ratings, with the names of users and items.
    pub fn data(&self) -> &Ratings {
        &self.source.data
    }

    /// The weights of networks and the item table of a model.
    fn parts<'a>(&self, model: &'a [f32]) -> (&'a [f32], &'a [f32]) {
        model.split_at(self.model.weights())
    }
}

/// Facts about ratings that lie at clients, at their own users if `is_by_user`.
fn describe(source: &Source, is_by_user: bool) -> Description {
    let clients = (0..source.holdings.clients()).map(ClientId::from_index);
    let mut description = source.describe(clients.map(|client| source.holdings.examples(client)));
    description.has_noise = true;
    if is_by_user {
        description.selects_without_examples = false;
        let without = description.examples.iter().filter(|&&examples| examples == 0).count();
        if without > 0 {
            let warning = format!("{without} users have no rating for training, and are never selected");
            description.warnings.push(warning);
        }
    }
    description
}

impl Task for Recommendation {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        let (weights, items) = parameters.split_at_mut(self.model.weights());
        match &self.start {
            Some(start) => {
                weights.copy_from_slice(&start.weights[..weights.len()]);
                items.copy_from_slice(&start.items);
            }
            None => {
                self.model.first_items(streams, items);
                if let Some(shape) = self.model.network() {
                    shape.init(streams, weights);
                }
            }
        }
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn appendix(&self) -> Appendix {
        self.source.appendix()
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        settings.examples(self.description.examples_of(client)) * self.model.operations()
    }

    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure> {
        self.do_job(job, context, worker.keep(), update);
        Ok(())
    }

    fn tells_losses_after_an_epoch(&self) -> bool {
        true
    }

    fn combination(&self) -> Option<&dyn Combine> {
        self.model.combination(self)
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure> {
        for asks in asks.chunk_by_mut(|one, next| one.is_same_model(next)) {
            self.measure(asks, effort);
        }
        Ok(())
    }

    fn test_of_alone(&self, client: ClientId) -> On<'static> {
        On::Client(client)
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        let items = (TENSORS[0].to_owned(), vec![self.source.items(), self.model.dimensions()]);
        TensorLayout::in_turn(self.model.tensors().into_iter().chain([items]))
    }

    fn partial(&self) -> Option<&dyn PartialTransfer> {
        (self.settings.transfer != [Sent::Table; 2]).then_some(self)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        Some(self)
    }
}

impl PartialTransfer for Recommendation {
    fn transfer(&self, job: JobKey, context: &Context<'_>) -> [Parcel; 2] {
        let [down, up] = self.settings.transfer;
        let extent = match self.description.examples_of(job.client) {
            0 => mf::Extent { met: 0, moved: 0 },
            _ => {
                let (training, items) = (self.training(context.settings, None), self.source.items());
                let bare = self.job(job, context.streams, &[], &[]);
                match mf::Footprint::moved_by_positives(&training, &bare, items) {
                    // Nobody asks for the rows that are met.
                    Some(moved) if down == Sent::Table => mf::Extent { met: 0, moved },
                    _ => self.model.footprint().of(&training, &bare, items),
                }
            }
        };
        let parcel = |sent, rows: usize| match sent {
            Sent::Table => self.layout.whole(),
            Sent::Rows => {
                let numbers = (self.model.weights() + rows * self.model.dimensions()) as u64;
                Parcel::plain(numbers, rows as u64)
            }
        };
        let up = if training::sends_table(context.settings) { Sent::Table } else { up };
        [parcel(down, extent.met), parcel(up, extent.moved)]
    }

    fn parcel(&self, update: &Update, context: &Context<'_>) -> Parcel {
        if training::sends_table(context.settings) { self.layout.whole() } else { self.layout.parcel_of(&update.rows) }
    }
}

impl Losses for Recommendation {
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
        let training::Kept { slopes, .. } = worker.keep();
        Ok(self.mean_gradient(job, context.streams, slopes, gradient))
    }

    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        let (mut sum, mut count) = (0.0, 0_u32);
        self.each_loss(client, state, |loss| {
            sum += loss;
            count += 1;
        });
        Ok(sum / f64::from(count))
    }

    fn has_batch_losses(&self) -> bool {
        true
    }

    fn losses_of(&self, client: ClientId) -> usize {
        self.fixed_examples(client).len()
    }

    fn batch_loss(&self, client: ClientId, state: &ModelState<'_>, places: &[usize]) -> Result<f64, Failure> {
        let mut losses = Vec::new();
        self.each_loss(client, state, |loss| losses.push(loss));
        Ok(places.iter().map(|&place| losses[place]).sum::<f64>() / places.len() as f64)
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, _worker: &mut Worker) -> Result<f64, Failure> {
        let mut sum = 0.0;
        self.each_loss(client, state, |loss| sum += loss * loss);
        Ok(sum)
    }

    fn slope(&self, state: &ModelState<'_>, slope: &mut Vec<f32>) -> Result<bool, Failure> {
        Ok(self.slope_of_held_out(state, slope))
    }
}

#[cfg(test)]
mod tests;
