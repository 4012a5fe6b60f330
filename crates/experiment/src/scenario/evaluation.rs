//! When the global model is evaluated, and the uses of its metrics: targets, and the end of a run that no longer
//! improves.

use super::tree::{Node, Value};
use super::with::NONE;
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::{self, Better, Metric, MetricId};
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_core::units::{Amount, Bytes, Duration};
use fedgenie_simulator::run::{End, Evaluations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[evaluate]`: the global model is evaluated at the end of the rounds that one of the settings names, and at the end
/// of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluateConfig {
    /// Rounds between evaluations; 1 if neither `at` nor `period` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
    /// Instants of virtual time: the first round that ends at or after one of them is evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<Duration>,
    /// As `at`, for each multiple of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Duration>,
    /// Whether the model is also evaluated on each client's own data (training examples, unless the task says
    /// otherwise): mean, standard deviation, tenth percentile, minimum and maximum over clients.
    #[serde(default)]
    pub clients: bool,
    /// As `clients`, for edge servers under their models, on the test examples of each where the task deals these to
    /// servers; for `hierarchical`. By default true with `last` or with cluster models, even of one policy alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<bool>,
    /// Whether the models are evaluated too that edge servers have made of their clients' updates, before the cloud
    /// combines them, on the same data: `edge_M_mean` and its like. For `hierarchical`; in no digest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edges: bool,
    /// Averages each edge server over so many of the last evaluated rounds, for the final metrics `server_M_mean_last`,
    /// `_sd_last`, `_min_last` and `_max_last`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// Lets each client train its model further once the run is over, for the final metrics `client_M_mean_tuned` and
    /// its like. Nothing is sent, and neither `[training] proximal`, noise nor corrections of gradients (SCAFFOLD,
    /// FedDyn, MOON) play a part; models of clients' own train as ever (`ditto` with its pull, `fedrep` in both
    /// phases). In no virtual time, and in no digest. With `clients = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fine_tune: Option<FineTune>,
    /// Amounts of clients' traffic, both ways together: the summary has the metrics of the last evaluated round within
    /// each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_traffic: Vec<Amount<Bytes>>,
    /// Values of metrics, for which the summary says when they were first reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetConfig>,
    /// Whether the rounds between two evaluations are evaluated as well, once a target is reached at the second of
    /// them: afterwards and in no virtual time, so that the round in which it was reached is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refine: bool,
    /// When a metric counts as one that improves no more: the summary has the first such round. The run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converged: Option<PlateauConfig>,
}

/// `fine_tune = { epochs = 1 }`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FineTune {
    /// Passes of a client over its own examples.
    pub epochs: u32,
}

/// A value that a metric is to reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetConfig {
    /// Name of the metric.
    pub metric: String,
    /// Reached when the metric is at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Reached when the metric is at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

/// A metric that has not improved for a number of evaluations: `[stop.plateau]` then ends a run, and
/// `[evaluate.converged]` notes that it has converged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlateauConfig {
    /// Name of the metric; which way it improves, its task declares.
    pub metric: String,
    /// Evaluations without improvement.
    pub evaluations: u32,
    /// Margin by which the best value has to be surpassed to count as an improvement.
    #[serde(default)]
    pub least: f64,
}

/// Writes the default of `servers` out, where it is true. Evaluations are common to all policies: it is true for all if
/// the scenario or any policy has cluster models.
pub(super) fn resolve_servers(rest: &mut Node, policies: Option<&Node>) {
    let table = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Table(entries)) => entries.clone(),
        _ => Vec::new(),
    };
    let has_clusters = |(_, policy): (String, Node)| {
        let is_one = |(key, node): (String, Node)| {
            key.split('.').next() == Some("clusters") && !matches!(&node.value, Value::Text(none) if none == NONE)
        };
        table(policy.get("with")).into_iter().any(is_one)
    };
    let is_true = rest.get("clusters").is_some()
        || rest.at("evaluate.last").is_some()
        || table(policies).into_iter().any(has_clusters);
    if is_true && rest.at("evaluate.servers").is_none() {
        let node = Node { value: Value::Boolean(true), origin: rest.nearest_origin("evaluate").clone() };
        // The reader refuses a value that is no table.
        drop(rest.set("evaluate.servers", node));
    }
}

/// Whole numbers below it are exact.
const EXACT: f64 = 9e15;

fn complain<T>(path: &str, message: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint::new(path, message))
}

fn check_metric<'a>(found: &str, metrics: &'a [Metric]) -> Result<&'a Metric, Complaint> {
    if let Some(metric) = metric::named(metrics, found) {
        return Ok(metric);
    }
    let known = match metrics.is_empty() {
        true => "none, because nothing is learned".to_owned(),
        false => metric::names(metrics),
    };
    complain("metric", format!("found {found:?}; this task's metrics are: {known}"))
}

impl EvaluateConfig {
    /// Writes the default out.
    pub(super) fn resolve(&mut self) {
        if self.at.is_empty() && self.period.is_none() {
            self.every.get_or_insert(1);
        }
    }

    /// Whether edge servers are evaluated, where there are any.
    pub fn servers(&self) -> bool {
        self.servers.unwrap_or(false)
    }

    pub(super) fn check(&self) -> Result<(), Complaint> {
        if self.every == Some(0) {
            return complain("every", "found 0; expected a number of rounds of at least 1");
        }
        if self.refine && self.targets.is_empty() {
            return complain("refine", "is about targets, and there are none; give targets, or take it out");
        }
        if self.fine_tune.is_some_and(|tune| tune.epochs == 0) {
            return complain("fine_tune.epochs", "found 0; expected at least 1");
        }
        if self.fine_tune.is_some() && !self.clients {
            return complain("fine_tune", "is measured on clients' data alone; write clients = true, or take it out");
        }
        if self.last == Some(0) {
            return complain("last", "found 0; expected a number of evaluated rounds of at least 1");
        }
        if self.last.is_some() && !self.servers() {
            return complain("last", "is about edge servers, and servers = false; take one of the two out");
        }
        if self.period.is_some_and(|period| period.0 == Span::ZERO) {
            return complain("period", "found 0; expected a positive duration");
        }
        if let Some(amount) = self.at_traffic.iter().find(|amount| !(1.0..EXACT).contains(&amount.0)) {
            return complain("at_traffic", format!("found {} B; expected at least 1 B, and at most 9 PB", amount.0));
        }
        if let Some(pair) = self.at_bytes().windows(2).find(|pair| pair[0] >= pair[1]) {
            let (one, two) = (pair[0], pair[1]);
            return complain("at_traffic", format!("found {two} B after {one} B; expected ascending amounts"));
        }
        if let Some(pair) = self.at.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
            let (one, two) = (pair[0].0.seconds(), pair[1].0.seconds());
            return complain("at", format!("found {two} s after {one} s; expected ascending instants"));
        }
        Ok(())
    }

    /// Evaluates clients where they have models of their own; `is_given` if the scenario has the key `clients`.
    ///
    /// # Errors
    /// If it says that clients are not to be evaluated.
    pub(super) fn resolve_clients(&mut self, have_own_models: bool, is_given: bool) -> Result<(), Complaint> {
        if have_own_models && is_given && !self.clients {
            let message = "is false, and clients have models of their own here, which are measured on their own data; take \
                           the key out";
            return complain("evaluate.clients", message);
        }
        self.clients |= have_own_models;
        Ok(())
    }

    /// Checks the names of metrics.
    pub(super) fn check_metrics(&self, metrics: &[Metric]) -> Result<(), Complaint> {
        for (index, target) in self.targets.iter().enumerate() {
            target.check(metrics).map_err(|complaint| complaint.below(&format!("targets.{index}")))?;
        }
        if let Some(converged) = &self.converged {
            converged.check(metrics).map_err(|complaint| complaint.below("converged"))?;
        }
        Ok(())
    }

    /// `at_traffic` in whole bytes.
    pub fn at_bytes(&self) -> Vec<u64> {
        self.at_traffic.iter().map(|amount| amount.0 as u64).collect()
    }

    /// The evaluations of a run.
    pub fn plan(&self, end: End) -> Evaluations {
        Evaluations {
            every: self.every.unwrap_or(0),
            at: self.at.iter().map(|at| VirtualTime::default() + at.0).collect(),
            period: self.period.map_or(Span::ZERO, |period| period.0),
            clients: self.clients,
            servers: self.servers(),
            end,
        }
    }
}

impl TargetConfig {
    pub(super) fn check(&self, metrics: &[Metric]) -> Result<(), Complaint> {
        let metric = check_metric(&self.metric, metrics)?;
        match (self.at_least, self.at_most) {
            (Some(value), None) | (None, Some(value)) if value.is_finite() => {
                if !metric.can_be(value) {
                    let key = if self.at_least.is_some() { "at_least" } else { "at_most" };
                    let range = match metric.range {
                        (Some(least), Some(most)) => format!("from {least} to {most}"),
                        (Some(least), None) => format!("of at least {least}"),
                        (None, most) => format!("of at most {}", most.unwrap_or(f64::INFINITY)),
                    };
                    return complain(key, format!("found {value}; expected a value of {}, {range}", metric.id));
                }
                Ok(())
            }
            _ => complain("", "give either at_least or at_most, a number"),
        }
    }

    /// The target in words: `test_loss <= 1.8`.
    pub fn name(&self) -> String {
        let Self { metric, at_least, at_most } = self;
        match (at_least, at_most) {
            (Some(least), _) => format!("{metric} >= {least}"),
            (_, most) => format!("{metric} <= {}", most.unwrap_or_default()),
        }
    }

    /// Name and value.
    pub(super) fn named(&self) -> Option<(&str, f64)> {
        self.at_least.or(self.at_most).map(|value| (&*self.metric, value))
    }

    /// Whether these metrics reach it.
    pub fn is_reached(&self, metrics: &[(MetricId, f64)]) -> bool {
        let found = metrics.iter().find(|(id, _)| id.is_called(&self.metric));
        found.is_some_and(|&(_, value)| {
            self.at_least.is_some_and(|least| value >= least) || self.at_most.is_some_and(|most| value <= most)
        })
    }
}

impl PlateauConfig {
    pub(super) fn check(&self, metrics: &[Metric]) -> Result<(), Complaint> {
        check_metric(&self.metric, metrics)?;
        if self.evaluations == 0 {
            return complain("evaluations", "found 0; expected at least 1");
        }
        if !(self.least >= 0.0 && self.least.is_finite()) {
            return complain("least", format!("found {}; expected a number of at least 0", self.least));
        }
        Ok(())
    }

    /// Whether a value is better than the best so far.
    pub fn improves(&self, better: Better, value: f64, best: f64) -> bool {
        match better {
            Better::Lower => value < best - self.least,
            Better::Higher => value > best + self.least,
        }
    }
}
