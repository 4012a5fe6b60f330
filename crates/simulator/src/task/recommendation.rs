//! Recommendation: models of ratings, judged by where test items stand in a ranking.
//!
//! # Definition
//! | model | what it is | what travels |
//! |---|---|---|
//! | `mf` | a user's score of an item is the product of two rows; Bayesian personalised ranking on triplets of a user, an item that the user rated, and one that the user is not known to have rated | `items.weight`, of which an update has the rows that the job moved; rows of users stay with clients |
//! | `ncf` | the score is a small network's answer to both rows, its loss that of `mf` | as `mf`, and the network's weights |
//! | `proxy-ncf` | beside it a second network of the same shape, the proxy, which learns to predict the losses of the first | as `ncf`, for both networks |
//! | `pfedrec` | a user's row is a private score function; a step moves it before it moves the rows of items | as `mf` |
//! | `fedpergnn` | a user is seen as the own row plus the sum of the rows of the `n` items that the user rated, over `√n` | as `mf` |
//! | `gpfedrec` | the score is the answer of a network that each client keeps; the server makes for each participant the mean of the tables whose changes are most like its own, and pulls its next job there | as `mf` |
//! | `dmrl` | embeddings of users and items, text and images, joined by attention; a margin between positives and negatives | all tensors, whole, both ways |
//!
//! Metrics, on test and validation data: `auc`, and for each cutoff `k` `hr_k`, `ndcg_k`, `recall_k`, `precision_k`,
//! `f1_k`: means over the users who have a relevant and an irrelevant candidate. Candidates are all items but those of
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
//! `embedding`, which reveals what is private. Asked for their `influence`, they send the gradient of the same loss,
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
//! | `transfer` | what travels of the item table: `{ down = "table", up = "rows" }`; each way `"table"`, or only the job's `"rows"` with their ids |
//! | `triplets` | CSV with the columns `user`, `positive`, `negative`, instead of drawing negatives; lines whose positive is for validation are the pairs of the utility `influence`; with `dmrl`, an example with `K` negatives is `K` lines of the same user and positive, one after the other |
//! | `missing_triplets` | ratings for training without a triplet, and those for validation if the table has any of these: `"refuse"`, an error that names the first, or `"skip"`, which leaves them out and counts them in a warning |
//! | `model` | `{ mf = { dimensions = 32, deviation = 0.1 } }`, the latter that of the numbers of first rows; `{ ncf = { dimensions = 32, hidden = 32 } }`; `{ proxy-ncf = { dimensions = 32, hidden = 32, proxy = "pairwise" } }`; `{ pfedrec = { dimensions = 32 } }`; `{ fedpergnn = { dimensions = 32 } }`; `{ gpfedrec = { dimensions = 32, hidden = 32, reg = 1.0 } }`, the latter the weight of the pull; or `{ dmrl = { .. } }`, below |
//! | `staleness_window` | `T` of `item_staleness`, 100 |
//! | `charge_evaluation` | `true`: each evaluation has every client with training data download the model and pass over its data; the server waits for the slowest |
//! | `start` | safetensors file with the model's tensors, beside the scenario: `items.weight` and `users.weight`, `ncf.0.weight`, `ncf.0.bias`, `ncf.2.weight`, `ncf.2.bias`, the same of `proxy`, and those of `dmrl` |
//!
//! `proxy = "pairwise"`: the proxy `p` predicts `−ln σ(p(u, v) − p(u, j))`; `"positive"`: `p(u, v)`. Networks are
//! defined in `crates/learning/src/ncf.rs`, `gpfedrec` in `crates/learning/src/task/recommendation/guided.rs`. But for
//! `mf`, first numbers are uniform in `±√(6/(n + m))` of a table of n × m (Xavier).
//!
//! Not with `dmrl`: `updated_items`, `transfer`. There `clip` of `[training]` is for the norm of the slopes of all rows
//! that a step moves, of users and items together, and of networks; `proximal` pulls these rows towards what they were
//! before the job: items' rows as they were sent, users' rows as the client kept them.
//!
//! `[task.recommendation.model.dmrl]`:
//!
//! | key | meaning |
//! |---|---|
//! | `text`, `image` | features of items, each a CSV table (header; the item's id, then numbers) or an `.npy` array (item × feature, rows by ascending id), found as data are; synthetic data may have their own; a channel without features is left out |
//! | `dim` (64), `factors` (4) | length of an embedding, and the number of blocks that it is cut into |
//! | `hidden` (128), `attention_hidden` (16) | hidden numbers of the two layers over features, and of the attention |
//! | `dropout` (0.1) | share of hidden numbers of features that are dropped in training |
//! | `negatives` (4), `margin` (1.0) | of an example; by how much a positive is to score above each |
//! | `disentangle` (0.01) | weight of the mean distance correlation between factors |
//!
//! Its loss, attention and distance correlation are defined in `crates/learning/src/dmrl.rs`; its tensors are
//! `users.weight`, `items.weight`, `text.0.weight`, `text.0.bias`, `text.2.weight`, `text.2.bias`, the same of `image`,
//! `attention.0.weight`, `attention.0.bias`, `attention.2.weight`, `attention.2.bias`.
//!
//! # Source
//! S. Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback", UAI 2009; J. Liu, M. Goudarzi, A. N.
//! Toosi, "An ML-driven participant selection technique for federated recommendation system in edge-cloud computing",
//! 2025, (1)–(8), for `dmrl`; ProxyRL-FRS, (7)–(15), for `ncf` and `proxy-ncf`; C. Zhang et al., "Dual personalization
//! on federated recommendation", IJCAI 2023, for `pfedrec`; C. Wu et al., "A federated graph neural network framework
//! for privacy-preserving personalization", Nature Communications 13, 2022, for `fedpergnn`; C. Zhang et al., "GPFedRec:
//! Graph-guided personalization for federated recommendation", KDD 2024, for `gpfedrec`; those of the data sets.
//!
//! # Cost
//! A round of evaluation takes users × items × dimensions operations, and never users × items of memory.
//!
//! # Determinism
//! First rows: streams (model-init, 0, 0) and (model-init, user, 1); networks (model-init, 0, 2) and, the proxy,
//! (model-init, 0, 3); `dmrl`: (model-init, 0, 0). A job: streams
//! (batch-order, client, job) and (training-noise, client, job). The bytes of `mf` follow from the same draws.
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! data = "ml-100k"
//! model = { mf = { dimensions = 32 } }
//! # model = { dmrl = { text = "ml-side/ml-100k_plot_tfidf_svd64.csv.gz" } }
//! ```

mod given;

pub use fedgenie_learning::task::recommendation::recommenders::CATALOGUE as MODELS;
pub use given::MissingTriplets;

use super::{DataCache, Material, Task, TaskError, TaskSettings};
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
    /// What of the item table travels.
    #[serde(default)]
    pub transfer: TransferConfig,
    /// CSV table of triplets, instead of drawing negatives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triplets: Option<PathBuf>,
    /// What becomes of ratings that the table has no triplet of.
    #[serde(default, skip_serializing_if = "MissingTriplets::is_refuse")]
    pub missing_triplets: MissingTriplets,
    /// What is learned.
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

/// What of the item table travels.
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

    /// The split that is meant.
    fn split(&self) -> SplitConfig {
        let own = || if self.data.has_split() { SplitConfig::File } else { SplitConfig::default() };
        self.split.clone().unwrap_or_else(own)
    }

    /// What is said of training and measures, whatever the model.
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

    /// What is of rows of a table is refused where all tensors travel whole.
    fn check_rows(&self) -> Result<(), Complaint> {
        if !self.model.as_settings().is_whole() {
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
    fn name(&self) -> &'static str {
        "recommendation"
    }

    fn measures(&self) -> Measures {
        let has_valid = match self.split() {
            // Whether they have any is found when they are read.
            SplitConfig::File | SplitConfig::LeaveOneOut => true,
            SplitConfig::Random { valid, .. } | SplitConfig::PerUser { valid, .. } => valid > 0.0,
        };
        let model = self.model.as_settings();
        model.measures(&self.settings(), &self.quality, has_valid).unwrap_or_default()
    }

    fn trains(&self) -> bool {
        true
    }

    fn charges_evaluation(&self) -> bool {
        self.charge_evaluation
    }

    fn counts_clients(&self) -> bool {
        self.partition.is_by_user()
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
}
