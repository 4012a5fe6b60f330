//! Ratings predicted on graphs of users, items and trust, which clients hold in parts.
//!
//! # Definition
//! Each client has the ratings of some categories, and a graph: its users and items, its training ratings and the trust
//! between its users. All learn one network, a `gcn` or a `gat`, whose layers pass messages along the edges of a
//! client's own graph; a rating is predicted as `c + ⟨h_u, h_i⟩`. The layers, the transition probabilities, and all
//! sums are defined in `crates/learning/src/graph_network.rs`.
//!
//! Metrics, on test and validation ratings: `rmse` (the main one), `mae`, `loss`, pooled over all clients, each of
//! which predicts on its own graph. `metrics = ["rmse_seen", "rmse_unseen"]` adds the error of items that have a training
//! rating at some client and of those that have none, of which a graph knows nothing. `[evaluate] clients` has all of
//! each client's test ratings: the mean over clients, each of which counts the same, and the pooled error are different
//! numbers. A client without a rating of an item that is seen, or unseen, leaves that metric over clients undefined.
//! `controls.mean` and `controls.bias` in `summary.json` are those of the mean, and of mean and biases, of clients'
//! training ratings; `graph` tells what each client holds and how far clients overlap.
//!
//! # Inputs
//! | key | meaning |
//! |---|---|
//! | `data` | a folder with `ratings.tsv` and `trust.tsv` or `social.tsv`, such as `"ciao"`, `"epinions"`, `"filmtrust"`; or `{ synthetic = { .. } }`, the default |
//! | `range` | least and largest rating; others are dropped; `[1, 5]`, or `[0.5, 4]` for codes of half stars |
//! | `model` | `{ gcn = { layers = 5, hidden = 32, embedding = 64 } }`, `{ gat = { layers = 2, heads = 2, hidden = 32, embedding = 64 } }`; at one client `"mf"`, `"sorec"`, `"soreg"`, below |
//! | `features` | of nodes, `embedding` numbers each: `"random"` (`N(0, 1/embedding)`, the same at every client), `"degree"` (a one at the place of the node's number of neighbours, the last place for more), `"constant"` (ones), `{ file = "x.npy" }` (a row for each user, then for each item, ascending) |
//! | `transition` | whether edges carry transition probabilities; `true` |
//! | `split` | `{ random = { test = 0.1, valid = 0.1 } }`, `{ per-user = { .. } }`, `"file"`; without it `"file"` where the data say what is for testing |
//! | `partition` | `{ categories = { distribution = "average" } }` (2 or 3 categories a client; `"skewed"` 2 to 4, `"extreme"` 1 to 5, `"even"`), `{ assignment = [[1, 5], [2]] }`, or for data without categories `{ communities = { count = 27, distribution = "average" } }` |
//! | `metrics` | names of metrics beside the usual ones: `rmse_seen`, `rmse_unseen` |
//! | `start` | a safetensors file with all tensors of the model, beside the scenario |
//!
//! Tensors: `conv.L.weight`, `conv.L.edge`, `conv.L.bias` for layers `L` from 0, with attention also
//! `conv.L.att_target`, `conv.L.att_source`, `conv.L.att_edge`; `readout.bias`.
//!
//! The models at one client stand for a server that has all data; `partition`, `features` and `transition` do not
//! concern them. Their rows have `factors` (10) numbers, weighed down by `lambda`; `trust` weighs the term of trust:
//!
//! | model | `lambda` | `trust` |
//! |---|---|---|
//! | `mf` | 10 | none |
//! | `sorec` | 0.15 | 0.1 |
//! | `soreg` | 10 | 0.1 |
//!
//! They are defined in `crates/learning/src/task/rating_graph/factors.rs`.
//!
//! # Source
//! H. Xu et al., "FedACS: an adaptive client selection framework for communication-efficient federated graph learning",
//! IEEE Trans. Mobile Computing, 2025; C. He et al., "FedGraphNN: a federated learning system and benchmark for graph
//! neural networks", 2021.
//!
//! # Deviations from the source
//! Embeddings of nodes are drawn and never sent: the published traffic is equal for data sets of different size.
//! Published code for this task gives every node the same features; that is `features = "constant"`. Predictions are
//! not cut off at the range.
//!
//! # Cost
//! A step passes messages over a client's whole graph, whatever the batch; `[training] batch = "all"` makes one step an
//! epoch.
//!
//! # Determinism
//! Those of the network, the generator and the partition: streams (Example, …, 15 to 21), (Partition, 0, 12 and 13).
//!
//! # Example
//! ```toml
//! [task.rating-graph]
//! data = { synthetic = {} }
//! model = { gcn = { layers = 5, hidden = 32, embedding = 64 } }
//! partition = { categories = { distribution = "average" } }
//!
//! [training]
//! epochs = 5
//! batch = "all"
//! optimizer = { sgd = { lr = 0.01 } }
//! ```

use super::{About, DataCache, Material, Task, TaskError, TaskSettings, check_parameters};
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::npy::read_table;
use fedgenie_learning::data::{DataError, located};
use fedgenie_learning::graph_network::{Kind, Shape};
use fedgenie_learning::metric::{self, Definition};
use fedgenie_learning::model::weights::read_tensors;
use fedgenie_learning::ratings::social::dealt::Dealt;
use fedgenie_learning::ratings::social::{SocialCache, SocialConfig, SocialPartition, SocialRatings};
use fedgenie_learning::ratings::{RatingsSplit, SplitConfig};
use fedgenie_learning::task::rating_graph::{Features, Holdings, RatingGraph, factors, measures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `[task.rating-graph]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder or generator of ratings and trust.
    #[serde(default)]
    pub data: SocialConfig,
    /// Least and largest rating; others are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The model.
    #[serde(default)]
    pub model: ModelConfig,
    /// The features of nodes.
    #[serde(default)]
    pub features: FeaturesConfig,
    /// Whether edges carry transition probabilities.
    #[serde(default = "yes")]
    pub transition: bool,
    /// Which ratings are for training, validation and testing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitConfig>,
    /// Which client holds which categories.
    #[serde(default)]
    pub partition: SocialPartition,
    /// Names of metrics beside the usual ones: `rmse_seen`, `rmse_unseen`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// A safetensors file with the model to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<PathBuf>,
}

const fn yes() -> bool {
    true
}

/// `features = "random"`, …
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeaturesConfig {
    /// Drawn for each user and item, the same at every client.
    #[default]
    Random,
    /// A one at the place of the number of neighbours.
    Degree,
    /// Ones.
    Constant,
    /// An `.npy` array: a row for each user, then for each item, in ascending order of ids.
    File(PathBuf),
}

/// `model = { gcn = { layers = 5, hidden = 32, embedding = 64 } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "RatingGraphModelConfig")]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum ModelConfig {
    /// Graph convolution.
    Gcn {
        /// Number of layers; from 1 to 64.
        #[serde(default = "five")]
        layers: usize,
        /// Numbers of a node after each layer; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        hidden: usize,
        /// Features of a node; from 1 to 4,096.
        #[serde(default = "sixty_four")]
        embedding: usize,
    },
    /// Graph attention.
    Gat {
        /// Number of layers; from 1 to 64.
        #[serde(default = "two")]
        layers: usize,
        /// Number of heads; a divisor of `hidden`.
        #[serde(default = "two")]
        heads: usize,
        /// Numbers of a node after each layer; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        hidden: usize,
        /// Features of a node; from 1 to 4,096.
        #[serde(default = "sixty_four")]
        embedding: usize,
    },
    /// Matrix factorisation, at one client.
    Mf {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "ten")]
        factors: usize,
        /// Weight λ of the squares of all numbers; 0 or more.
        #[serde(default = "tenfold")]
        lambda: f64,
    },
    /// SoRec, at one client.
    #[serde(rename = "sorec")]
    SoRec {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "ten")]
        factors: usize,
        /// Weight λ of the squares of all numbers; 0 or more.
        #[serde(default = "sorec_lambda")]
        lambda: f64,
        /// Weight of the trust that is predicted; 0 or more.
        #[serde(default = "tenth")]
        trust: f64,
    },
    /// SoReg, at one client.
    #[serde(rename = "soreg")]
    SoReg {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "ten")]
        factors: usize,
        /// Weight λ of the squares of all numbers; 0 or more.
        #[serde(default = "tenfold")]
        lambda: f64,
        /// Weight of the differences between users with trust; 0 or more.
        #[serde(default = "tenth")]
        trust: f64,
    },
}

const fn two() -> usize {
    2
}
const fn five() -> usize {
    5
}
const fn ten() -> usize {
    10
}
const fn thirty_two() -> usize {
    32
}
const fn sixty_four() -> usize {
    64
}
const fn tenfold() -> f64 {
    10.0
}
const fn sorec_lambda() -> f64 {
    0.15
}
const fn tenth() -> f64 {
    0.1
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self::Gcn { layers: five(), hidden: thirty_two(), embedding: sixty_four() }
    }
}

/// The models of a rating graph that scenarios can name.
pub static MODELS: Catalogue = Catalogue {
    kind: "rating-graph-model",
    definition: "RatingGraphModelConfig",
    entries: &[],
    shared: include_str!("rating_graph.rs"),
};

/// The model, checked.
enum Learner {
    Network(Shape),
    Factors { kind: factors::Kind, factors: usize, lambda: f32 },
}

impl ModelConfig {
    const fn name(&self) -> &'static str {
        match self {
            Self::Gcn { .. } => "gcn",
            Self::Gat { .. } => "gat",
            Self::Mf { .. } => "mf",
            Self::SoRec { .. } => "sorec",
            Self::SoReg { .. } => "soreg",
        }
    }

    const fn learner(&self) -> Learner {
        match *self {
            Self::Gcn { layers, hidden, embedding } => {
                Learner::Network(Shape { kind: Kind::Gcn, layers, hidden, embedding })
            }
            Self::Gat { layers, heads, hidden, embedding } => {
                Learner::Network(Shape { kind: Kind::Gat { heads }, layers, hidden, embedding })
            }
            Self::Mf { factors, lambda } => {
                Learner::Factors { kind: factors::Kind::Mf, factors, lambda: lambda as f32 }
            }
            Self::SoRec { factors, lambda, trust } => {
                let kind = factors::Kind::SoRec { trust: trust as f32 };
                Learner::Factors { kind, factors, lambda: lambda as f32 }
            }
            Self::SoReg { factors, lambda, trust } => {
                let kind = factors::Kind::SoReg { trust: trust as f32 };
                Learner::Factors { kind, factors, lambda: lambda as f32 }
            }
        }
    }

    fn check(&self) -> Result<(), Complaint> {
        let counts: &[(&str, usize, usize)] = match self {
            Self::Gcn { layers, hidden, embedding } | Self::Gat { layers, hidden, embedding, .. } => {
                &[("layers", *layers, 64), ("hidden", *hidden, 4_096), ("embedding", *embedding, 4_096)]
            }
            Self::Mf { factors, .. } | Self::SoRec { factors, .. } | Self::SoReg { factors, .. } => {
                &[("factors", *factors, 4_096)]
            }
        };
        for &(key, found, most) in counts {
            if !(1..=most).contains(&found) {
                return Err(Complaint::new(key, format!("found {found}; expected from 1 to {most}")));
            }
        }
        if let Self::Gat { heads, hidden, .. } = *self
            && (heads == 0 || !hidden.is_multiple_of(heads))
        {
            let message = format!("found {heads}; expected a divisor of hidden = {hidden}: heads are equally wide");
            return Err(Complaint::new("heads", message));
        }
        let (Self::Mf { lambda, .. } | Self::SoRec { lambda, .. } | Self::SoReg { lambda, .. }) = *self else {
            return Ok(());
        };
        check("lambda", lambda, 0.0..=1e30, "0 or a positive number of single precision")?;
        if let Self::SoRec { trust, .. } | Self::SoReg { trust, .. } = *self {
            check("trust", trust, 0.0..=1e30, "0 or a positive number of single precision")?;
        }
        Ok(())
    }
}

impl Config {
    /// The metrics beside the usual ones.
    fn added(&self) -> Result<Vec<&'static Definition>, Complaint> {
        metric::added(&self.metrics, metric::of_known())
    }

    /// The split, with its default.
    fn split(&self) -> SplitConfig {
        let own = || match self.data.has_split() {
            true => SplitConfig::File,
            false => SplitConfig::Random { test: 0.1, valid: 0.1 },
        };
        self.split.clone().unwrap_or_else(own)
    }

    /// The features of all nodes of these data.
    fn features(&self, split: &RatingsSplit, width: usize) -> Result<Features, TaskError> {
        let path = match &self.features {
            FeaturesConfig::Random => return Ok(Features::Random),
            FeaturesConfig::Degree => return Ok(Features::Degree),
            FeaturesConfig::Constant => return Ok(Features::Constant),
            FeaturesConfig::File(path) => path,
        };
        let unread = |error: DataError| TaskError::Setting(Complaint::new("features.file", error.to_string()));
        let (values, found) = read_table(path).map_err(unread)?;
        let (users, items) = (split.users(), split.items());
        let rows = values.len() / found.max(1);
        if (rows, found) != (users + items, width) {
            let message = format!(
                "{}: found {rows} rows of {found} numbers; expected {} rows, one for each of {users} users and {items} \
                 items, of {width} numbers, the model's embedding",
                path.display(),
                users + items
            );
            return Err(TaskError::Setting(Complaint::new("features", message)));
        }
        Ok(Features::Table(values))
    }
}

impl TaskSettings for Config {
    fn about(&self) -> About {
        About::training("rating-graph")
    }

    fn measures(&self) -> Measures {
        let has_valid = match self.split() {
            // Whether the data have them is found when they are read.
            SplitConfig::File | SplitConfig::LeaveOneOut => true,
            SplitConfig::Random { valid, .. } | SplitConfig::PerUser { valid, .. } => valid > 0.0,
        };
        measures(has_valid, &self.added().unwrap_or_default())
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.data.resolve_paths(base, data);
        self.start = self.start.as_ref().map(|start| base.join(start));
        if let FeaturesConfig::File(path) = &mut self.features {
            *path = located(path, base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let features = match &self.features {
            FeaturesConfig::File(path) => Some(path.clone()),
            _ => None,
        };
        self.data.files().into_iter().chain(features).chain(self.start.clone()).collect()
    }

    fn check(&self) -> Result<(), Complaint> {
        self.data.check().map_err(|complaint| complaint.below("data"))?;
        self.added()?;
        if let Some([least, most]) = self.range
            && !(least.is_finite() && most.is_finite() && least < most)
        {
            let message = format!("found [{least}, {most}]; expected two finite numbers, the least rating first");
            return Err(Complaint::new("range", message));
        }
        if let Some(split) = &self.split {
            split.check().map_err(|complaint| complaint.below("split"))?;
        }
        self.model.check().map_err(|complaint| complaint.below(&format!("model.{}", self.model.name())))?;
        self.partition.check().map_err(|complaint| complaint.below("partition"))
    }

    fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let social = self.data.load(self.range, streams, &cache.of::<SocialCache>())?;
        let split = self.split().split(social.ratings.clone(), streams)?;
        Ok(Some(Box::new(Dealing { config: self.clone(), social, split })))
    }
}

/// Ratings before they are spread over clients.
struct Dealing {
    config: Config,
    social: Arc<SocialRatings>,
    split: RatingsSplit,
}

impl Dealing {
    /// Names and shapes of the model's tensors.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        match self.config.model.learner() {
            Learner::Network(shape) => shape.tensors().into_iter().map(|tensor| (tensor.name, tensor.shape)).collect(),
            Learner::Factors { kind, factors, lambda } => {
                let settings = factors::Settings { kind, factors, lambda, range: [0.0; 2] };
                let tables = settings.tables(self.split.users(), self.split.items()).into_iter();
                tables.map(|(name, rows)| (name.to_owned(), vec![rows, factors])).collect()
            }
        }
    }
}

impl Material for Dealing {
    fn whole_bytes(&self) -> u64 {
        4 * self.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>() as u64).sum::<u64>()
    }

    fn deal(self: Box<Self>, clients: usize, _: &[u32], streams: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        self.spread(clients, streams, |dealt| dealt)
    }

    fn pool(self: Box<Self>, clients: usize, _: &[u32], streams: &Streams) -> Result<Option<Arc<dyn Task>>, TaskError> {
        self.spread(clients, streams, Dealt::pooled).map(Some)
    }
}

impl Dealing {
    /// The task of so many clients, whose shares are made into those of its own clients.
    fn spread(
        self,
        clients: usize,
        streams: &Streams,
        shares: impl FnOnce(Dealt) -> Dealt,
    ) -> Result<Arc<dyn Task>, TaskError> {
        let refuse = |key: &str, message: String| TaskError::Setting(Complaint::new(key, message));
        if matches!(self.config.model.learner(), Learner::Factors { .. }) && clients != 1 {
            let message = format!(
                "{} has all data at one client, and there are {clients}; expected population.clients = 1",
                self.config.model.name()
            );
            return Err(refuse("model", message));
        }
        let tensors = self.tensors();
        let parameters = tensors.iter().map(|(_, shape)| shape.iter().product::<usize>()).sum();
        check_parameters(parameters).map_err(|message| refuse("model", message))?;
        let read = |path: &PathBuf| -> Result<Vec<f32>, TaskError> {
            Ok(read_tensors(path, tensors)?.into_iter().flat_map(|tensor| tensor.values).collect())
        };
        let start = self.config.start.as_ref().map(read).transpose()?;
        let Self { config, social, split } = self;
        let added = config.added().map_err(TaskError::Setting)?;
        match config.model.learner() {
            Learner::Network(shape) => {
                let below = |complaint: Complaint| TaskError::Setting(complaint.below("partition"));
                let dealt = config.partition.deal(&split, clients, streams).map_err(below)?;
                let features = config.features(&split, shape.embedding)?;
                let holdings = Holdings::new(social, split, shares(dealt), config.transition);
                Ok(Arc::new(RatingGraph::new(shape, holdings, &features, start, streams).with_metrics(&added)))
            }
            Learner::Factors { kind, factors, lambda } => {
                let values = split.data.ratings.iter().map(|rating| rating.value);
                let range = config.range.map_or_else(
                    || [values.clone().fold(f32::INFINITY, f32::min), values.clone().fold(f32::NEG_INFINITY, f32::max)],
                    |range| range.map(|end| end as f32),
                );
                let dealt = Dealt::whole(&split);
                let holdings = Holdings::new(social, split, dealt, true);
                let settings = factors::Settings { kind, factors, lambda, range };
                Ok(Arc::new(factors::RatingFactors::new(settings, holdings, start).with_metrics(&added)))
            }
        }
    }
}
