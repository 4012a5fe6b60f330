//! The sections of a scenario that belong to no component: seeds, stop, training, regret, record.

use super::Sections;
use super::batch::BatchSize;
use super::budget::BudgetConfig;
use super::effect::MISSING_OPTIMIZER;
use super::evaluation::{PlateauConfig, TargetConfig};
use super::examples::missing_key;
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::{Measures, Metric};
use fedgenie_core::oracle::hindsight::SetSize;
use fedgenie_core::oracle::regret::Meter;
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::oracle::utility::UtilityConfig;
use fedgenie_core::text;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_core::units::{Amount, Bytes, Duration};
use fedgenie_learning::trainer::optimizer::check_regularisation;
use fedgenie_learning::trainer::{Length, LocalTraining, Optimizer, OptimizerConfig, Schedule, TrainingError};
use fedgenie_simulator::metrics::MOST_TOLD;
use fedgenie_simulator::population::count::CountPerClient;
use fedgenie_simulator::run::End;
use fedgenie_simulator::task::{self, Planned};
use fedgenie_simulator::world::Evaluated;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[stop]`: a run ends after the first round at which one of these is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopConfig {
    /// This many rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// This much virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<Duration>,
    /// A metric has reached a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetConfig>,
    /// A metric has not improved for a while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plateau: Option<PlateauConfig>,
    /// This much traffic, both ways together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Amount<Bytes>>,
}

impl StopConfig {
    /// End conditions that need no evaluation of the model.
    pub fn end(&self) -> End {
        End {
            rounds: self.rounds,
            time: self.virtual_time.map(|time| VirtualTime::default() + time.0),
            bytes: self.traffic.map(|traffic| traffic.0),
        }
    }
}

/// `[training]`: the computation of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainingConfig {
    /// Passes over the client's data per job; 1 unless `steps` is given. They may differ from client to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<CountPerClient>,
    /// Most epochs that a policy may choose for a job; as many as `epochs` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_epochs: Option<u32>,
    /// Steps per job, instead of epochs. They may differ from client to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<CountPerClient>,
    /// Examples per mini-batch, or `all` that a client has.
    #[serde(default = "default_batch")]
    pub batch: BatchSize,
    /// How the local model is changed; tasks that train need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerConfig>,
    /// How the learning rate changes from round to round.
    #[serde(default)]
    pub schedule: Schedule,
    /// The largest norm of a gradient; larger ones are scaled down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// Weight of the pull towards the model that was sent (FedProx).
    #[serde(default)]
    pub proximal: f64,
    /// Duration of one inference pass over the local data as a share of one training epoch; for probes.
    #[serde(default = "default_inference_share")]
    pub inference_share: f64,
}

const fn plain_descent(lr: f64) -> OptimizerConfig {
    OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 }
}
const fn default_batch() -> BatchSize {
    BatchSize::Count(32)
}
const fn default_inference_share() -> f64 {
    1.0 / 3.0
}

impl Default for TrainingConfig {
    /// For tasks that do not train: only the number of epochs matters, to device profiles.
    fn default() -> Self {
        Self {
            epochs: Some(CountPerClient::Same(1)),
            most_epochs: None,
            steps: None,
            batch: default_batch(),
            optimizer: None,
            schedule: Schedule::default(),
            clip: None,
            proximal: 0.0,
            inference_share: default_inference_share(),
        }
    }
}

impl TrainingConfig {
    /// Writes the default length out.
    pub(super) fn resolve(&mut self) {
        if self.steps.is_none() {
            self.epochs.get_or_insert(CountPerClient::Same(1));
        }
    }

    /// How long each client trains, where clients differ.
    pub(super) fn lengths(&self) -> Option<&CountPerClient> {
        [&self.epochs, &self.steps].into_iter().flatten().find(|count| count.differs())
    }

    /// The checked settings.
    ///
    /// # Errors
    /// A complaint with a path below `training`.
    pub(super) fn local(&self) -> Result<LocalTraining, Complaint> {
        // Of clients that differ, the number of any stands for those that are drawn with the world.
        let length = match (&self.epochs, &self.steps) {
            (Some(_), Some(_)) => return complain("steps", "give epochs or steps, not both"),
            (epochs, None) => Length::Epochs(epochs.as_ref().map_or(1, CountPerClient::any)),
            (None, Some(steps)) => Length::Steps(steps.any()),
        };
        if self.most_epochs.is_some() && self.lengths().is_some() {
            return complain(
                "most_epochs",
                "lets policies choose the epochs of jobs, which clients have of their own here; \
                                            take one of the two out",
            );
        }
        match (self.most_epochs, length) {
            (Some(_), Length::Steps(_)) => {
                return complain("most_epochs", "counts epochs, and jobs are counted in steps; give one of the two");
            }
            (Some(most), Length::Epochs(epochs)) if most < epochs => {
                let message = format!("found {most}; expected at least the epochs of a job, {epochs}");
                return complain("most_epochs", message);
            }
            _ => {}
        }
        let refuse = |path: &str, TrainingError { key, found, expected }: TrainingError| {
            let message = match found.is_finite() && !(found as f32).is_finite() {
                true => format!("found {found:e}; expected {expected}, which goes up to {:.1e}", f32::MAX),
                false => format!("found {found}; expected {expected}"),
            };
            Complaint::new(key, message).below(path)
        };
        check_regularisation(self.clip, Some(self.proximal)).map_err(|error| refuse("", error))?;
        self.schedule.check().map_err(|error| refuse(&format!("schedule.{}", self.schedule.kind()), error))?;
        // Without learning, any optimizer serves.
        let optimizer = self.optimizer.clone().unwrap_or(plain_descent(1.0));
        let optimizer =
            Optimizer::new(&optimizer).map_err(|error| refuse(&format!("optimizer.{}", optimizer.kind()), error))?;
        let local = LocalTraining {
            length,
            lengths: None,
            batch: self.batch.most(),
            optimizer,
            schedule: self.schedule,
            clip: self.clip.map(|clip| clip as f32),
            proximal: self.proximal as f32,
            decays: Vec::new(),
            noise: None,
        };
        local.check().map_err(|error| refuse("", error))?;
        Ok(local)
    }
}

/// `[regret]`: the reward, and the meters that compare a policy's with the genie's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegretConfig {
    /// The shortest conceivable latency of a job; speed is `tau_min` / latency. Can be left out where there are no
    /// `meters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau_min: Option<Duration>,
    /// Weight of generalisation.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Exponent of the generalisation function.
    #[serde(default = "default_beta")]
    pub beta: f64,
    /// Grid to which generalisation and mean speeds are rounded; 0 for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<f64>,
    /// The meters.
    #[serde(default = "default_meters")]
    pub meters: Vec<Meter>,
    /// Trains clients that were not selected as well, and meters the policy's loss of value against the best set in
    /// hindsight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counterfactual: bool,
    /// Utility of an update, for `counterfactual`; `loss-drop` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utility: Option<UtilityConfig>,
    /// Weight of the round's time, for `counterfactual`; 0.5 if left out, and 0 with `aggregate`, `local-loss` and
    /// `influence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kappa: Option<f64>,
    /// Unit of the round's time, for `counterfactual`; if left out, the 80th percentile over clients of the
    /// sum of their phases' mean durations, without losses and timeouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_semi: Option<Duration>,
    /// Sizes of the sets that `counterfactual` compares with: `exactly` the cohort, which is the default, or `at-most`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SetSize>,
    /// Rounds between rounds that `counterfactual` judges; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
    /// Meters the excess loss of assignments of edge servers over the clusters with the smallest losses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assignment: bool,
}

const fn default_alpha() -> f64 {
    3.0
}
const fn default_beta() -> f64 {
    1.2
}
fn default_meters() -> Vec<Meter> {
    vec![Meter::Mean]
}

impl RegretConfig {
    pub(super) fn reward(&self) -> Option<Reward> {
        Some(Reward {
            tau_min: self.tau_min?.0,
            alpha: self.alpha,
            beta: self.beta,
            quantum: self.quantum.filter(|&quantum| quantum > 0.0),
        })
    }
}

/// `[record]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordConfig {
    /// Rounds between recorded rounds.
    #[serde(default = "every_round")]
    pub every: u32,
    /// Whether rounds have `explain`: the numbers behind each decision of a policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub explain: bool,
    /// Whether rounds have `updates`: examples, losses and latency of each update.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub updates: bool,
    /// Whether rounds have `battery`: the level of each client's battery when the round closed, of up to 1,000 clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub battery: bool,
    /// Whether runs are kept in packs, 256 in a file, instead of in a folder each; if it is left out, where the
    /// experiment has more than 10 000 runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<bool>,
}

/// The largest weight of generalisation: sums of many such gains are still numbers.
const ALPHA_MAX: f64 = 1e100;

const fn every_round() -> u32 {
    1
}

impl Default for RecordConfig {
    fn default() -> Self {
        Self { every: every_round(), explain: false, updates: false, battery: false, packed: None }
    }
}

/// Whether a text is a valid name of a folder on every system.
pub(crate) fn is_name(text: &str) -> bool {
    let fine = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-_".contains(letter);
    !text.is_empty() && text.len() <= 100 && text.chars().all(fine)
}

fn complain<T>(path: &str, message: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint::new(path, message))
}

impl Sections {
    /// Checks that levels which are to be recorded exist, and that they are not too many.
    fn check_levels(&self) -> Result<(), Complaint> {
        if !self.record.battery {
            return Ok(());
        }
        let all = std::iter::once(&self.population.battery);
        let has_batteries = all.chain(self.population.group.iter().map(|group| &group.battery)).any(Option::is_some);
        match self.population.client_count() {
            _ if !has_batteries => complain("record.battery", "no client has a battery; give [population.battery]"),
            Ok(clients) if clients > MOST_TOLD => {
                let message =
                    format!("levels of up to {MOST_TOLD} clients are recorded, and there are {clients}; take it out");
                complain("record.battery", message)
            }
            _ => Ok(()),
        }
    }

    /// Checks beyond the types.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        if !is_name(&self.name) {
            let found = &self.name;
            let found = text::quoted(found);
            return complain("name", format!("found {found}; expected lower-case letters, digits, - and _"));
        }
        self.seeds.check()?;
        self.check_stop()?;
        if let Some(budget) = &self.budget {
            budget.check().map_err(|complaint| complaint.below("budget"))?;
        }
        if self.record.every == 0 {
            return complain("record.every", "found 0; expected a number of rounds of at least 1");
        }
        self.check_levels()?;
        self.evaluate.check().map_err(|complaint| complaint.below("evaluate"))?;
        self.controls.check().map_err(|complaint| complaint.below("controls"))?;
        task::check(self.task_settings()).map_err(|complaint| complaint.below(self.task_kind()).below("task"))?;
        self.check_training()?;
        if let Some(privacy) = &self.privacy {
            privacy.check().map_err(|complaint| complaint.below("privacy"))?;
        }
        if let Some(adversary) = &self.adversary {
            adversary.check().map_err(|complaint| complaint.below("adversary"))?;
        }
        if let Some(compression) = &self.compression {
            compression.check().map_err(|complaint| complaint.below("compression"))?;
        }
        let server = self.aggregation.server.kind();
        self.aggregation.check().map_err(|complaint| complaint.below(server).below("aggregation.server"))?;
        self.check_regret()
    }

    fn check_stop(&self) -> Result<(), Complaint> {
        let StopConfig { rounds, virtual_time, target, plateau, traffic } = &self.stop;
        let is_bound = self.budget.as_ref().is_some_and(BudgetConfig::is_bound);
        let has_bound = rounds.is_some() || virtual_time.is_some() || is_bound;
        if !has_bound && target.is_none() && plateau.is_none() && traffic.is_none() {
            return complain(
                "stop",
                "no stop condition is given, and the run would never end; write for example rounds = 200 below \
                 [stop]",
            );
        }
        if *rounds == Some(0) {
            return complain("stop.rounds", format!("found 0; expected a whole number from 1 to {}", u32::MAX));
        }
        if !has_bound {
            let message =
                "a target, a plateau or an amount of traffic may never be reached; give rounds or virtual_time as well";
            return complain("stop", message);
        }
        if virtual_time.is_some_and(|time| time.0 == Span::ZERO) {
            return complain("stop.virtual_time", "found 0; expected a positive duration");
        }
        if let Some(traffic) = traffic
            && traffic.0 <= 0.0
        {
            return complain("stop.traffic", format!("found {} B; expected a positive amount", traffic.0));
        }
        Ok(())
    }

    /// Checks the names of metrics against a task's measures.
    ///
    /// # Errors
    /// A complaint with a path below the scenario's root.
    pub(crate) fn check_metrics(&self, measures: &Measures) -> Result<(), Complaint> {
        let metrics = self.metrics(measures);
        self.evaluate.check_metrics(&metrics).map_err(|complaint| complaint.below("evaluate"))?;
        if let Some(plateau) = &self.stop.plateau {
            plateau.check(&metrics).map_err(|complaint| complaint.below("stop.plateau"))?;
        }
        let Some(target) = &self.stop.target else { return Ok(()) };
        target.check(&metrics).map_err(|complaint| complaint.below("stop.target"))
    }

    /// Which rounds are evaluated, if the number of rounds alone ends a run.
    pub(super) fn planned(&self) -> Option<Planned> {
        let StopConfig { rounds, virtual_time: None, target: None, plateau: None, traffic: None } = self.stop else {
            return None;
        };
        if self.budget.as_ref().is_some_and(BudgetConfig::is_bound) {
            return None;
        }
        rounds.map(|rounds| Planned { rounds, every: self.evaluate.every.unwrap_or(0) })
    }

    /// The evaluations that policies may rely on.
    pub(super) fn evaluated(&self) -> Evaluated {
        let (evaluate, has_servers) = (&self.evaluate, self.protocol.has_edge_servers());
        Evaluated {
            every_round: evaluate.every == Some(1),
            clients: evaluate.clients,
            servers: evaluate.servers() && has_servers,
            edges: evaluate.edges && has_servers,
        }
    }

    /// The metrics of a task, in the order in which rounds have them.
    pub fn metrics(&self, measures: &Measures) -> Vec<Metric> {
        measures.metrics(&self.evaluated().places())
    }

    /// Whether the regret of assignments to clusters is asked for.
    pub(super) fn meters_assignment(&self) -> bool {
        self.regret.as_ref().is_some_and(|regret| regret.assignment)
    }

    fn check_training(&self) -> Result<(), Complaint> {
        let Some(training) = &self.training else {
            if self.task.as_settings().about().trains {
                let message = "is missing, and this task trains; write for example [training] and below it batch = 32 \
                               and optimizer = { sgd = { lr = 0.01 } }";
                return complain("training", message);
            }
            return Ok(());
        };
        if self.task.as_settings().about().trains && training.optimizer.is_none() {
            return complain("training", MISSING_OPTIMIZER);
        }
        if !(training.inference_share.is_finite() && training.inference_share >= 0.0) {
            let found = training.inference_share;
            return complain("training.inference_share", format!("found {found}; expected a number of at least 0"));
        }
        training.local().map(|_| ()).map_err(|complaint| complaint.below("training"))
    }

    fn check_regret(&self) -> Result<(), Complaint> {
        let Some(regret) = &self.regret else { return Ok(()) };
        let number = |key: &str, value: f64, least: f64, expected: &str| {
            let path = format!("regret.{key}");
            if value.is_finite() && value >= least {
                Ok(())
            } else {
                complain(&path, format!("found {value}; expected {expected}"))
            }
        };
        match regret.tau_min {
            Some(tau_min) if tau_min.0 == Span::ZERO => {
                return complain("regret.tau_min", "found 0; expected a positive duration");
            }
            None if !regret.counterfactual && !regret.assignment => {
                return complain("regret", missing_key("tau_min"));
            }
            None if !regret.meters.is_empty() => {
                let message = "the key \"tau_min\" is missing, and the meters need it; if `counterfactual` or `assignment` is all \
                               that is wanted, write meters = []";
                return complain("regret", message);
            }
            Some(_) | None => {}
        }
        number("alpha", regret.alpha, 0.0, "a number of at least 0")?;
        if regret.alpha > ALPHA_MAX {
            return complain("regret.alpha", format!("found {}; expected at most {ALPHA_MAX:e}", regret.alpha));
        }
        number("beta", regret.beta, f64::MIN_POSITIVE, "a number above 0")?;
        number("quantum", regret.quantum.unwrap_or(0.0), 0.0, "0 (none) or a positive number")?;
        let mut meters = regret.meters.clone();
        meters.sort_unstable();
        if meters.windows(2).any(|pair| pair[0] == pair[1]) {
            return complain("regret.meters", "a meter is listed twice");
        }
        regret.check_hindsight().map_err(|complaint| complaint.below("regret"))
    }
}
