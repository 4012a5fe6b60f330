//! Recommendation: models of ratings, judged by where test items stand in a ranking.
//!
//! # Definition
//! `model` names a recommender; `fedgenie list` has them all, `fedgenie describe recommender/ncf` defines one. But for
//! `dmrl`, rows of items travel, and those of users stay with clients: an update has the rows of `items.weight` that
//! the job moved, and the weights of networks that travel.
//!
//! Metrics, on test and validation data: `auc`, and for each cutoff `k` `hr_k`, `ndcg_k`, `recall_k`, `precision_k`,
//! `f1_k`: means over the users with a relevant and an irrelevant candidate. Candidates are all items but those of
//! the user's training ratings, for testing also those of validation. A client's own data are the test ratings of its
//! users. With `dmrl` also `loss`: the mean over held-out pairs, with negatives that are fixed for a seed.
//!
//! Of the model alone, but with `dmrl`: `item_staleness`, the mean over items of the rounds since an aggregated update
//! last moved the item's row, over `staleness_window`; `items_updated` and `longtail_updated`, the shares of all items,
//! and of the four of five with fewest training ratings, whose rows were ever moved (these three where rows travel up);
//! `test_participant_hr_20`, …: test metrics over users whose clients have trained; and with `proxy-ncf`
//! `proxy_rank_correlation`, Spearman's, of predicted and true losses of all clients.
//!
//! Clients can be asked (`Probe::Answers`) for their `summed-loss` over the triplets of the round's first epoch, with
//! `proxy-ncf` for the `predicted-loss` over the same, each at the price of an inference pass, and for their user's
//! `embedding`, which reveals private state. Asked for their `influence`, they send the gradient of the same loss,
//! whose product with that of validation pairs it is.
//!
//! # Inputs
//! | key | meaning |
//! |---|---|
//! | `data` | `"ml-100k"`, `"ml-1m"`, `"video-games"`, `"ciao"`, `"epinions"`, `"filmtrust"`: folders, told by their files; or `{ csv = { .. } }` or `{ synthetic = { .. } }`, the default |
//! | | MovieLens also has `users.dat` or `u.user` with gender, age and occupation, by which `fedfast` compares users |
//! | `users`, `items` | their numbers: ids are 0 … n − 1 as they stand; else ids are mapped in ascending order |
//! | `range`, `positive_at_least`, `min_per_user` | drop ratings outside or below, then users with fewer |
//! | `split` | `"file"`, `{ random = { test = 0.1, valid = 0.1 } }`, `{ per-user = { test = 0.2, valid = 0.1 } }`, `"leave-one-out"`; without it `"file"` where the data say what is for testing, else `per-user` |
//! | `partition` | `"users"`: each user is a client, and `population.clients` may be left out; or any other, over ratings |
//! | `cutoffs`, `quality` | cutoffs of the metrics; the main metric, `auc` without it |
//! | `updated_items` | rows that a job moves and sends: those `"touched"` by a step, or, of these, those it `"interacted"` with: its positives |
//! | `transfer` | the item table travels: `{ down = "table", up = "rows" }`; each way `"table"`, or only the job's `"rows"` with their ids |
//! | `triplets` | CSV with the columns `user`, `positive`, `negative`, instead of drawing negatives; lines whose positive is for validation are the pairs of the utility `influence`; with `dmrl`, an example with `K` negatives is `K` lines of the same user and positive, one after the other |
//! | `missing_triplets` | ratings for training without a triplet, and those for validation if the table has any of these: `"refuse"`, an error that names the first, or `"skip"`, which leaves them out and counts them in a warning |
//! | `model` | a recommender with its parameters: `{ mf = { dimensions = 32 } }`, the default; `"ncf"`; `{ dmrl = { .. } }` |
//! | `staleness_window` | `T` of `item_staleness`, 100 |
//! | `charge_evaluation` | `true`: each evaluation has every client with training data download the model and pass over its data; the server waits for the slowest |
//! | `start` | safetensors file with the recommender's tensors, beside the scenario |
//!
//! `updated_items` and `transfer` are not for `dmrl`. With rows, `clip` of `[training]` is for the norm of the slopes
//! of all rows that a step moves, of users and items together, and of networks; `proximal` pulls these rows towards
//! their values before the job: items' rows as they were sent, users' rows as the client kept them.
//!
//! # Source
//! Those of the recommenders and of the data sets.
//!
//! # Cost
//! A round of evaluation takes users × items × dimensions operations, and never users × items of memory.
//!
//! # Determinism
//! First rows and weights: streams (model-init, ..) of the recommender. A job: streams (batch-order, client, job) and
//! (training-noise, client, job).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! data = "ml-100k"
//! model = { mf = { dimensions = 32 } }
//! ```

mod given;

pub use fedgenie_learning::task::recommendation::recommenders::CATALOGUE as MODELS;
pub use given::MissingTriplets;

use super::{About, DataCache, Material, Task, TaskError, TaskSettings};
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::located;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::matrix_factorisation::Moves;
use fedgenie_learning::ratings::{Filters, RatingsCache, RatingsConfig, RatingsPartition, RatingsSplit, SplitConfig};
use fedgenie_learning::task::recommendation::recommenders::{Given, RecommenderConfig, Undealt};
use fedgenie_learning::task::recommendation::{Sent, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `[task.recommendation]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder, files or generator of the ratings.
    #[serde(default)]
    pub data: RatingsConfig,
    /// Number of users, whose ids are then 0 … n − 1 as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<u32>,
    /// Number of items, whose ids are then 0 … n − 1 as they stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u32>,
    /// Least and largest rating; others are dropped, or an error in your own files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Least rating that says that a user likes an item; lower ones are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive_at_least: Option<f64>,
    /// Fewest ratings of a user; users with fewer are dropped.
    #[serde(default)]
    pub min_per_user: usize,
    /// Which ratings are for training, validation and testing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
    /// Which client holds which training ratings.
    #[serde(default)]
    pub partition: RatingsPartition,
    /// Cutoffs of the metrics.
    #[serde(default = "twenty")]
    pub cutoffs: Vec<usize>,
    /// Rows of items that a job moves and sends.
    #[serde(default)]
    pub updated_items: UpdatedItems,
    /// The part of the item table that travels.
    #[serde(default)]
    pub transfer: TransferConfig,
    /// CSV table of triplets, instead of drawing negatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triplets: Option<PathBuf>,
    /// The treatment of ratings without a triplet in the table.
    #[serde(default, skip_serializing_if = "MissingTriplets::is_refuse")]
    pub missing_triplets: MissingTriplets,
    /// The model.
    #[serde(default)]
    pub model: RecommenderConfig,
    /// Rounds that the staleness of items is a share of.
    #[serde(default = "hundred")]
    pub staleness_window: u32,
    /// Whether evaluations cost time and traffic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub charge_evaluation: bool,
    /// The main metric, by which models are compared.
    #[serde(default = "auc")]
    pub quality: String,
    /// A safetensors file with the rows to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
}

fn twenty() -> Vec<usize> {
    vec![20]
}

const fn hundred() -> u32 {
    100
}

fn auc() -> String {
    "auc".to_owned()
}

/// `updated_items = "touched"`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UpdatedItems {
    /// All rows that a step meets.
    #[default]
    Touched,
    /// Rows of the job's positives alone.
    Interacted,
}

/// `transfer = { down = "table", up = "rows" }`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferConfig {
    /// From the server to clients.
    #[serde(default = "table")]
    pub down: SentConfig,
    /// From clients to the server.
    #[serde(default = "rows")]
    pub up: SentConfig,
}

const fn table() -> SentConfig {
    SentConfig::Table
}

const fn rows() -> SentConfig {
    SentConfig::Rows
}

impl Default for TransferConfig {
    fn default() -> Self {
        Self { down: table(), up: rows() }
    }
}

/// The part of the item table that travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SentConfig {
    /// All of it.
    Table,
    /// The rows of the job, each with its id.
    Rows,
}

impl From<SentConfig> for Sent {
    fn from(sent: SentConfig) -> Self {
        match sent {
            SentConfig::Table => Self::Table,
            SentConfig::Rows => Self::Rows,
        }
    }
}

impl Config {
    fn filters(&self) -> Filters {
        let Self { users, items, range, positive_at_least, min_per_user, .. } = *self;
        Filters { users, items, range, positive_at_least, min_per_user }
    }

    /// The split, with its default.
    fn split(&self) -> SplitConfig {
        let own = || if self.data.has_split() { SplitConfig::File } else { SplitConfig::default() };
        self.split.clone().unwrap_or_else(own)
    }

    /// The settings of training and measures, for any model.
    fn settings(&self) -> Settings {
        let moves = match self.updated_items {
            UpdatedItems::Touched => Moves::Touched,
            UpdatedItems::Interacted => Moves::Interacted,
        };
        let transfer = [self.transfer.down, self.transfer.up].map(Sent::from);
        let (cutoffs, staleness_window) = (self.cutoffs.clone(), self.staleness_window);
        Settings { cutoffs, moves, transfer, staleness_window }
    }

    fn check_measures(&self) -> Result<(), Complaint> {
        let mut sorted = self.cutoffs.clone();
        sorted.sort_unstable();
        if sorted.first() == Some(&0) {
            return Err(Complaint::new("cutoffs", "found 0; expected numbers of items, at least 1"));
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Complaint::new("cutoffs", format!("{} is listed twice", pair[0])));
        }
        // Every model has this one.
        let known = self.model.as_settings().measures(&self.settings(), &auc(), false).unwrap_or_default();
        let names: Vec<&str> = known.of_data.iter().map(|measure| measure.name).collect();
        if names.contains(&&*self.quality) {
            return Ok(());
        }
        let message = format!("found {:?}; expected one of {}", self.quality, names.join(", "));
        Err(Complaint::new("quality", message))
    }

    /// Refuses keys about rows of a table for a model whose tensors all travel whole.
    fn check_rows(&self) -> Result<(), Complaint> {
        if self.model.as_settings().rows().is_some() {
            return Ok(());
        }
        let kind = self.model.kind();
        if self.updated_items != UpdatedItems::default() {
            let message = format!("is not for {kind}, where every step moves all tensors");
            return Err(Complaint::new("updated_items", message));
        }
        let whole = TransferConfig { down: SentConfig::Table, up: SentConfig::Table };
        if self.transfer != TransferConfig::default() && self.transfer != whole {
            let message = format!("is not for {kind}, where all tensors travel whole, both ways");
            return Err(Complaint::new("transfer", message));
        }
        Ok(())
    }
}

impl TaskSettings for Config {
    fn about(&self) -> About {
        About {
            charges_evaluation: self.charge_evaluation,
            counts_clients: self.partition.is_by_user(),
            ..About::training("recommendation")
        }
    }

    fn measures(&self) -> Measures {
        let has_valid = match self.split() {
            // Whether the data have them is found when they are read.
            SplitConfig::File | SplitConfig::LeaveOneOut => true,
            SplitConfig::Random { valid, .. } | SplitConfig::PerUser { valid, .. } => valid > 0.0,
        };
        let model = self.model.as_settings();
        model.measures(&self.settings(), &self.quality, has_valid).unwrap_or_default()
    }

    fn partition(&self) -> Option<&PartitionConfig> {
        match &self.partition {
            RatingsPartition::Users => None,
            RatingsPartition::Examples(partition) => Some(partition),
        }
    }

    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        match &mut self.partition {
            RatingsPartition::Users => None,
            RatingsPartition::Examples(partition) => Some(partition),
        }
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.data.resolve_paths(base, data);
        self.start = self.start.as_ref().map(|start| base.join(start));
        self.triplets = self.triplets.as_ref().map(|triplets| located(triplets, base, data));
        self.model.as_settings_mut().resolve_paths(base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = self.data.files().into_iter().chain(self.triplets.clone()).chain(self.start.clone());
        files.chain(self.model.as_settings().files()).collect()
    }

    fn check(&self) -> Result<(), Complaint> {
        self.data.check().map_err(|complaint| complaint.below("data"))?;
        self.partition.check().map_err(|complaint| complaint.below("partition"))?;
        self.filters().check()?;
        if let Some(split) = &self.split {
            split.check().map_err(|complaint| complaint.below("split"))?;
        }
        let model = self.model.as_settings();
        model.check().map_err(|complaint| complaint.below(self.model.kind()).below("model"))?;
        self.check_rows()?;
        if self.triplets.is_none() && !self.missing_triplets.is_refuse() {
            return Err(Complaint::new(
                "missing_triplets",
                "is for a table of triplets; give triplets, or take it out",
            ));
        }
        if self.staleness_window == 0 {
            return Err(Complaint::new("staleness_window", "found 0; expected a number of rounds of at least 1"));
        }
        self.check_measures()
    }

    fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let data = self.data.load(&self.filters(), streams, &cache.of::<RatingsCache>())?;
        let split = self.split().split(data, streams)?;
        let given = self.triplets.as_ref().map(|path| self.missing_triplets.read(path, &split)).transpose()?;
        let (triplets, notes) = given.map_or((None, Vec::new()), |(triplets, notes)| (Some(triplets), notes));
        let recommender = self.model.as_settings().prepare(Given {
            data: &self.data,
            split: &split,
            settings: &self.settings(),
            is_by_user: self.partition.is_by_user(),
            triplets: self.triplets.as_deref().zip(triplets),
            start: self.start.as_deref(),
            notes,
            streams,
        })?;
        Ok(Some(Box::new(Ratings { recommender, split, partition: self.partition.clone() })))
    }
}

/// Ratings before they are spread over clients.
struct Ratings {
    recommender: Box<dyn Undealt>,
    split: RatingsSplit,
    partition: RatingsPartition,
}

impl Material for Ratings {
    fn whole_bytes(&self) -> u64 {
        self.recommender.whole_bytes()
    }

    fn clients(&self) -> Option<usize> {
        self.partition.is_by_user().then(|| self.split.users())
    }

    fn deal(self: Box<Self>, clients: usize, sizes: &[u32], streams: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        let Self { recommender, split, partition } = *self;
        let dealt = partition.build(&split, clients, sizes, streams)?;
        Ok(recommender.deal(&split, (&dealt, partition.is_by_user()), streams))
    }

    fn pool(
        self: Box<Self>,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Option<Arc<dyn Task>>, TaskError> {
        let Self { recommender, split, partition } = *self;
        let pooled = partition.build(&split, clients, sizes, streams)?.pooled();
        Ok(Some(recommender.deal(&split, (&pooled, false), streams)))
    }
}
