//! Recommenders: models of ratings with their names in scenarios, their definitions, and their training.
//!
//! A recommender whose scores come from rows of users and items implements [`RowRecommender`], and is complete: a
//! [`Recommendation`] of it deals with bytes, private rows, questions, measures and files. Any other implements
//! [`RecommenderSettings`] and brings a task of its own.

pub mod dmrl;
pub mod fedpergnn;
pub mod gpfedrec;
pub mod mf;
pub mod ncf;
pub mod pfedrec;
pub mod proxy_ncf;

pub use proxy_ncf::ProxyConfig;

use super::{Recommendation, Settings, Start, TENSORS};
use crate::algorithm::Combine;
use crate::data::partition::Partition;
use crate::matrix_factorisation::{self, BprTraining, Footprint};
use crate::model::weights::read_tensors;
use crate::ncf::{Outcome, Shape, xavier};
use crate::ratings::triplets::Triplets;
use crate::ratings::{RatingsConfig, RatingsSplit};
use crate::task::{Task, TaskError, Worker, check_parameters};
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::{Purpose, Streams};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

components! {
    /// A recommender: `model = "mf"`, `model = { ncf = { hidden = 16 } }`, …
    #[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
    pub enum RecommenderConfig: RecommenderSettings = "recommender" {
        "mf" => Mf(mf::Config) in "recommenders/mf.rs";
        "ncf" => Ncf(ncf::Config) in "recommenders/ncf.rs";
        "proxy-ncf" => ProxyNcf(proxy_ncf::Config) in "recommenders/proxy_ncf.rs";
        "pfedrec" => Pfedrec(pfedrec::Config) in "recommenders/pfedrec.rs";
        "fedpergnn" => Fedpergnn(fedpergnn::Config) in "recommenders/fedpergnn.rs";
        "gpfedrec" => Gpfedrec(gpfedrec::Config) in "recommenders/gpfedrec.rs";
        "dmrl" => Dmrl(dmrl::Config) in "recommenders/dmrl.rs";
    }
}

impl Default for RecommenderConfig {
    fn default() -> Self {
        Self::Mf(mf::Config::default())
    }
}

impl RecommenderConfig {
    /// The recommender's settings.
    pub fn as_settings(&self) -> &dyn RecommenderSettings {
        self.settings()
    }

    /// The same, to be changed.
    pub fn as_settings_mut(&mut self) -> &mut dyn RecommenderSettings {
        self.settings_mut()
    }
}

/// A recommender's part of a scenario.
pub trait RecommenderSettings: Debug + Send + Sync {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A complaint with a path below the recommender's table.
    fn check(&self) -> Result<(), Complaint>;

    /// Its model of rows; none where every job moves and sends all tensors, so that a scenario cannot choose rows.
    fn rows(&self) -> Option<Arc<dyn RowRecommender>> {
        None
    }

    /// The measures; `quality` names the one by which models are compared. `None` if there is no such measure.
    fn measures(&self, settings: &Settings, quality: &str, has_valid: bool) -> Option<Measures>;

    /// Makes names of files relative to `base`, the folder of the scenario, or to `data`, the folder given by the user.
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read, as far as they are there.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The task of one seed, before training ratings are dealt to clients.
    ///
    /// # Errors
    /// If the data cannot be had or do not fit.
    fn prepare(&self, given: Given<'_>) -> Result<Box<dyn Undealt>, TaskError>;
}

/// The parts of a task with any recommender.
#[derive(Debug)]
pub struct Given<'a> {
    /// Where ratings come from.
    pub data: &'a RatingsConfig,
    /// The ratings.
    pub split: &'a RatingsSplit,
    /// A scenario's settings of training and measures.
    pub settings: &'a Settings,
    /// Whether each user is a client.
    pub is_by_user: bool,
    /// The table of triplets and its file.
    pub triplets: Option<(&'a Path, Triplets)>,
    /// The file of the model to start from.
    pub start: Option<&'a Path>,
    /// Warnings about the files.
    pub notes: Vec<String>,
    /// Random numbers of the seed.
    pub streams: &'a Streams,
}

/// A task before it is known which client holds which training ratings.
pub trait Undealt {
    /// Bytes of the whole model.
    fn whole_bytes(&self) -> u64;

    /// The task of a split whose training ratings lie at clients as a partition says, at their own users where the flag
    /// is set.
    fn deal(self: Box<Self>, split: &RatingsSplit, dealt: (&Partition, bool), streams: &Streams) -> Arc<dyn Task>;
}

/// A job of a [`RowRecommender`].
#[derive(Clone, Copy, Debug)]
pub struct RowJob<'a> {
    /// How rows move.
    pub settings: &'a BprTraining,
    /// The rows, and the examples.
    pub job: &'a matrix_factorisation::Job<'a>,
    /// Weights of the network that was sent, or that the client keeps.
    pub weights: &'a [f32],
    /// Rows of the server for this client's items, ascending, where it has made some.
    pub targets: Option<&'a [f32]>,
}

/// A recommender whose scores come from rows of users and items, with or without a network over both. Rows of items
/// travel, rows of users stay with clients.
pub trait RowRecommender: Debug + Send + Sync {
    /// Checks the parameters.
    ///
    /// # Errors
    /// A complaint with a path below the recommender's table.
    fn check(&self) -> Result<(), Complaint>;

    /// Length of a row.
    fn dimensions(&self) -> usize;

    /// Trains one job. The worker keeps one type, the recommender's own, from job to job.
    fn train(&self, job: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome);

    /// One step of plain descent, from which slopes are read. It differs from training where a step of training moves
    /// rows one after the other, or has terms beside the loss of examples.
    fn descend(&self, job: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        self.train(job, worker, outcome);
    }

    /// The rows that a job meets and moves beside those of its triplets.
    fn footprint(&self) -> Footprint {
        Footprint::default()
    }

    /// The network that travels; `None` if scores are products of rows, or networks are private.
    fn network(&self) -> Option<Shape> {
        None
    }

    /// The network that each client keeps to itself.
    fn private_network(&self) -> Option<Shape> {
        None
    }

    /// Turns the row of a user with these positives into the row that scores are made of.
    fn see(&self, _positives: &[u32], _table: &[f32], _row: &mut [f32]) {}

    /// Fills the item table that a run starts from.
    fn first_items(&self, streams: &Streams, table: &mut [f32]) {
        let items = table.len() / self.dimensions();
        xavier(&mut streams.stream(Purpose::ModelInit, 0, 0), [items, self.dimensions()], table);
    }

    /// Fills the row that one of so many users begins with.
    fn first_user(&self, user: u32, users: usize, streams: &Streams, row: &mut [f32]) {
        xavier(&mut streams.stream(Purpose::ModelInit, user, 1), [users, row.len()], row);
    }

    /// How the server combines updates, where the recommender has a way of its own.
    fn combination<'a>(&self, _task: &'a Recommendation) -> Option<&'a dyn Combine> {
        None
    }
}

impl<T: RowRecommender + Clone + 'static> RecommenderSettings for T {
    fn check(&self) -> Result<(), Complaint> {
        RowRecommender::check(self)
    }

    fn rows(&self) -> Option<Arc<dyn RowRecommender>> {
        Some(Arc::new(self.clone()))
    }

    fn measures(&self, settings: &Settings, quality: &str, has_valid: bool) -> Option<Measures> {
        settings.measures(self, quality, has_valid)
    }

    fn prepare(&self, given: Given<'_>) -> Result<Box<dyn Undealt>, TaskError> {
        UndealtRows::new(Arc::new(self.clone()), given).map(|undealt| Box::new(undealt) as Box<dyn Undealt>)
    }
}

/// A recommender of rows before ratings are dealt.
struct UndealtRows {
    model: Arc<dyn RowRecommender>,
    settings: Settings,
    items: usize,
    triplets: Option<Triplets>,
    start: Option<Start>,
    metadata: Option<Vec<Vec<f64>>>,
    notes: Vec<String>,
}

impl UndealtRows {
    fn new(model: Arc<dyn RowRecommender>, given: Given<'_>) -> Result<Self, TaskError> {
        let Given { data, split, settings, is_by_user, triplets, start, notes, .. } = given;
        let (users, items, d) = (split.users(), split.items(), model.dimensions());
        let numbers = (items + users).saturating_mul(d) + model.weights();
        let numbers = numbers.saturating_add(users.saturating_mul(model.private_weights()));
        check_parameters(numbers).map_err(TaskError::Network)?;
        let read = |path: &Path| -> Result<Start, TaskError> {
            let of_rows = TENSORS.iter().zip([items, users]).map(|(&name, rows)| (name.to_owned(), vec![rows, d]));
            let tensors = read_tensors(path, of_rows.chain(model.first_tensors()).collect())?;
            let mut values = tensors.into_iter().map(|tensor| tensor.values);
            let mut next = || values.next().expect("each tensor is read");
            Ok(Start { items: next(), users: next(), weights: values.flatten().collect() })
        };
        let start = start.map(read).transpose()?;
        let metadata = if is_by_user { data.metadata(&split.data.user_ids)? } else { None };
        let (settings, triplets) = (settings.clone(), triplets.map(|(_, triplets)| triplets));
        Ok(Self { model, settings, items, triplets, start, metadata, notes })
    }
}

impl Undealt for UndealtRows {
    fn whole_bytes(&self) -> u64 {
        (self.items * self.model.dimensions() + self.model.weights()) as u64 * 4
    }

    fn deal(self: Box<Self>, split: &RatingsSplit, dealt: (&Partition, bool), streams: &Streams) -> Arc<dyn Task> {
        let Self { model, settings, triplets, start, metadata, notes, .. } = *self;
        // They are features of clients.
        let metadata = metadata.filter(|_| dealt.1);
        let task = Recommendation::new(model, settings, split, dealt, triplets.as_ref(), start, streams);
        Arc::new(task.with_metadata(metadata).with_notes(notes))
    }
}

/// Checks numbers of a row or of a network's layer.
fn check_sizes(sizes: &[(&str, usize)]) -> Result<(), Complaint> {
    match sizes.iter().find(|(_, found)| !(1..=4_096).contains(found)) {
        Some((key, found)) => Err(Complaint::new(*key, format!("found {found}; expected from 1 to 4096"))),
        None => Ok(()),
    }
}

/// The default length of a row, and of hidden numbers.
const fn thirty_two() -> usize {
    32
}
