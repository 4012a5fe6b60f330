//! Tasks of the clients. A task is data, its partition over clients, a model and its metrics; `none` is a task
//! without learning.
//!
//! | task | data | metrics |
//! |---|---|---|
//! | `none` | none: a pure bandit | — |
//! | `linear-regression` | drawn, 6:1 train and test, or tables of numbers, see [`fedgenie_learning::data::source`] | `test_loss` |
//! | `softmax-regression` | any with classes, see [`fedgenie_learning::data::source`] | `test_loss`, `test_accuracy` |
//! | `classification` | any with classes, see [`fedgenie_learning::data::source`], by a network | `test_loss`, `test_accuracy` |
//! | `scripted` | none: a metric by lists and files | one of any name, such as `test_score` |
//! | `rating-graph` | ratings with trust and categories | `test_rmse`, `test_mae`, `test_loss` |
//! | `recommendation` | ratings, see [`fedgenie_learning::ratings`] | `test_auc`, and for each cutoff `test_hr_20`, … |

pub mod classification;
mod labelled;
pub mod linear_regression;
pub mod none;
pub mod rating_graph;
pub mod recommendation;
pub mod scripted;
pub mod shift;
pub mod softmax_regression;

pub use fedgenie_learning::data::source::DataCache;
pub(crate) use fedgenie_learning::task::check_parameters;
pub use fedgenie_learning::task::{
    Appendix, Ask, Context, Controls, DealtData, Description, Job, JobKey, Labelled, Losses, ModelState, Need, On,
    PartialTransfer, PrivateState, PrivateTable, PrivateView, ProbeKind, Probes, Recommendation, Script, Task,
    TaskError, Together, Worker,
};

use crate::clusters::ClusterModel;
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::Round;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::personal::PersonalLayers;
use fedgenie_learning::data::partition::PartitionConfig;
use fedgenie_learning::task::ClusterNetworks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Properties of a task that follow from its keys alone. By default nothing is declared, and nothing is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// Its name in messages, which is that in scenarios.
    pub name: &'static str,
    /// Whether clients train, so that the scenario has to say how.
    pub trains: bool,
    /// Whether anything is measured on a client's own data, so that clients can be evaluated.
    pub measures_clients: bool,
    /// Whether clients hold examples out, on which alone they are measured.
    pub holds_out: bool,
    /// Whether an evaluation of a round costs what it would if clients made it: all with training examples download the
    /// model, make an inference pass and answer with a number, and the next round begins when the slowest has answered.
    pub charges_evaluation: bool,
    /// Whether the data say how many clients there are, so that the scenario need not.
    pub counts_clients: bool,
    /// Whether clients have as many examples as the population declares, whatever the partition.
    pub has_declared_sizes: bool,
    /// Payload of a task without a model, each way.
    pub payload_bytes: u64,
    /// The drift of data between edge servers, if there is one.
    pub drift: Option<Drift>,
    /// Whether data change over time in another way.
    pub shifts: bool,
}

impl Default for About {
    fn default() -> Self {
        Self {
            name: "a task of one's own",
            trains: false,
            measures_clients: true,
            holds_out: false,
            charges_evaluation: false,
            counts_clients: false,
            has_declared_sizes: false,
            payload_bytes: 0,
            drift: None,
            shifts: false,
        }
    }
}

impl About {
    /// A task whose clients train.
    pub fn training(name: &'static str) -> Self {
        Self { name, trains: true, ..Self::default() }
    }
}

/// A task's part of a scenario.
pub trait TaskSettings: std::fmt::Debug + Send + Sync {
    /// Properties that follow from the keys alone.
    fn about(&self) -> About;

    /// The task's measures; empty if nothing is learned.
    fn measures(&self) -> Measures {
        Measures::default()
    }

    /// How training examples go to clients, for a task whose rows are dealt.
    fn partition(&self) -> Option<&PartitionConfig> {
        None
    }

    /// The same, to be changed.
    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        None
    }

    /// Makes file names relative to `base`, the folder of the scenario, or to `data`, the folder given by the user; the
    /// partition's apart.
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read, as far as they are there; the partition's apart.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Checks that need no data; the partition apart.
    ///
    /// # Errors
    /// A complaint with a path below the task's table.
    fn check(&self) -> Result<(), Complaint>;

    /// Checks that need the number of clients, servers and evaluations.
    ///
    /// # Errors
    /// A complaint with a path below the task's table.
    fn check_outline(&self, _outline: &Outline) -> Result<(), Complaint> {
        Ok(())
    }

    /// The task of one seed before its data are spread over clients; `None` if nothing is learned.
    ///
    /// # Errors
    /// If the data cannot be had or do not fit.
    fn material(&self, _streams: &Streams, _cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        Ok(None)
    }
}

/// Data that move from edge server to edge server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Drift {
    /// The first round of the cloud with the data moved, from 1.
    pub round: u32,
    /// By how many servers: server `m` of `M` has the data of server `(m + rotate) mod M`.
    pub rotate: usize,
}

impl Drift {
    /// The server of `servers` whose data a server gets.
    pub const fn source(self, server: usize, servers: usize) -> usize {
        (server + self.rotate % servers) % servers
    }
}

/// How much of a task a scenario needs.
#[derive(Clone, Copy, Debug)]
pub struct Outline {
    /// Number of clients.
    pub clients: usize,
    /// Number of servers that select clients.
    pub servers: usize,
    /// The evaluated rounds, as far as the scenario alone tells.
    pub planned: Option<Planned>,
}

/// The evaluations of runs that end after a number of rounds, whatever happens in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Number of rounds.
    pub rounds: u32,
    /// Rounds between evaluations; 0 where other settings decide.
    pub every: u32,
}

impl Outline {
    /// The rounds whose models are certainly evaluated: the start of training, and the planned ones.
    pub fn evaluated(&self) -> impl Iterator<Item = Round> {
        let Planned { rounds, every } = self.planned.unwrap_or(Planned { rounds: 0, every: 0 });
        let is_due = move |round: u32| round == 0 || round == rounds || every > 0 && round.is_multiple_of(every);
        (0..=rounds).filter(move |&round| is_due(round)).map(Round)
    }
}

/// A task before its data are spread over clients.
pub trait Material {
    /// Bytes of the whole model, as it travels.
    fn whole_bytes(&self) -> u64;

    /// Divides the model among clusters of edge servers, as `model` says or as the task can. Returns the kind of model,
    /// or `None` if the task cannot.
    fn clustered(&mut self, _model: Option<ClusterModel>, _networks: ClusterNetworks) -> Option<ClusterModel> {
        None
    }

    /// Leaves a part of the model with clients; then [`Material::whole_bytes`] are those of the rest.
    ///
    /// # Errors
    /// A complaint with a path below the algorithm's entry: the task cannot, or the part is none.
    fn personal(&mut self, _layers: &PersonalLayers) -> Result<(), Complaint> {
        Err(Complaint::new("", "is defined for labelled examples; take another task, or the entry out"))
    }

    /// How many clients there are, if the data say so.
    fn clients(&self) -> Option<usize> {
        None
    }

    /// The task of so many clients. `sizes` are their declared amounts of data, for partitions that follow them.
    ///
    /// # Errors
    /// If the data cannot be spread like this.
    fn deal(self: Box<Self>, clients: usize, sizes: &[u32], streams: &Streams) -> Result<Arc<dyn Task>, TaskError>;

    /// The task of one client that has all examples that [`Material::deal`] spreads over these clients, each once;
    /// `None` if the task cannot be put in one place.
    ///
    /// # Errors
    /// If the data cannot be spread like this.
    fn pool(
        self: Box<Self>,
        _clients: usize,
        _sizes: &[u32],
        _streams: &Streams,
    ) -> Result<Option<Arc<dyn Task>>, TaskError> {
        Ok(None)
    }
}

/// A task that needs no data to be spread.
impl<T: Task> Material for T {
    fn whole_bytes(&self) -> u64 {
        self.layout().whole().bytes()
    }

    fn deal(self: Box<Self>, _: usize, _: &[u32], _: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        Ok(Arc::new(*self))
    }
}

components! {
    /// The `[task]` section.
    pub enum TaskConfig: TaskSettings = "task" {
        "none" => None(none::Config) in "task/none.rs";
        "linear-regression" => LinearRegression(linear_regression::Config) in "task/linear_regression.rs";
        "softmax-regression" => SoftmaxRegression(softmax_regression::Config) in "task/softmax_regression.rs";
        "classification" => Classification(classification::Config) in "task/classification.rs";
        "scripted" => Scripted(scripted::Config) in "task/scripted.rs";
        "recommendation" => Recommendation(recommendation::Config) in "task/recommendation.rs";
        "rating-graph" => RatingGraph(rating_graph::Config) in "task/rating_graph.rs";
    }
}

impl TaskConfig {
    /// The task's settings.
    pub fn as_settings(&self) -> &dyn TaskSettings {
        self.settings()
    }

    /// Makes file names relative to `base`, the folder of the scenario, or to `data`, the folder given by the user.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.settings_mut().resolve_paths(base, data);
        if let Some(partition) = self.settings_mut().partition_mut() {
            partition.resolve_paths(base, data);
        }
    }

    /// The settings, shared by all plans.
    pub fn into_settings(self) -> Arc<dyn TaskSettings> {
        self.into_shared()
    }
}

/// All files of a task that are read, as far as they are there.
pub fn files(task: &dyn TaskSettings) -> Vec<PathBuf> {
    let counts = task.partition().map_or_else(Vec::new, PartitionConfig::files);
    task.files().into_iter().chain(counts).collect()
}

/// Checks that need no data.
///
/// # Errors
/// A complaint with a path below the task's table.
pub fn check(task: &dyn TaskSettings) -> Result<(), Complaint> {
    task.check()?;
    task.partition().map_or(Ok(()), |partition| partition.check().map_err(|complaint| complaint.below("partition")))
}
