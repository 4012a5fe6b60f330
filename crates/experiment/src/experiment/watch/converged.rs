//! Convergence: the first round at whose end a metric had not improved for a number of evaluations. It is noted, and
//! the run goes on.

use super::super::measured::{Named, by_name};
use super::super::summary::read_metrics;
use super::Plateau;
use crate::scenario::PlateauConfig;
use fedgenie_core::state::Stateful;
use fedgenie_simulator::run::{Accounts, Run};
use serde::{Deserialize, Serialize};

/// The name of convergence in the place of a target's: `time_to.convergence`.
pub const CONVERGENCE: &str = "convergence";

/// When a run converged, with its cost and metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct Converged {
    /// The metric that stopped improving.
    pub metric: String,
    /// The number of evaluations without improvement.
    pub evaluations: u32,
    /// The round at whose end the metric had not improved for that many evaluations.
    pub round: u32,
    /// When the round closed, in virtual seconds.
    pub time_s: f64,
    /// Bytes sent to clients by then.
    pub down_bytes: u64,
    /// Bytes sent by clients by then.
    pub up_bytes: u64,
    /// Bytes from the cloud to edge servers by then, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_down_bytes: Option<u64>,
    /// Bytes from edge servers to the cloud by then, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_up_bytes: Option<u64>,
    /// Virtual seconds that clients had spent computing by then.
    pub compute_s: f64,
    /// Virtual seconds that clients had spent computing for probes by then.
    pub probe_compute_s: f64,
    /// All metrics of that round.
    #[serde(deserialize_with = "read_metrics")]
    pub metrics: Named,
}

impl Converged {
    /// The state at the end of the round just closed.
    fn at(run: &Run<'_>, config: &PlateauConfig) -> Self {
        let Accounts { down_bytes, up_bytes, edge_down_bytes, edge_up_bytes, compute, probe_compute, .. } =
            *run.accounts();
        let has_edges = edge_down_bytes > 0 || edge_up_bytes > 0;
        Self {
            metric: config.metric.clone(),
            evaluations: config.evaluations,
            round: run.round().0,
            time_s: run.now().seconds(),
            down_bytes,
            up_bytes,
            edge_down_bytes: has_edges.then_some(edge_down_bytes),
            edge_up_bytes: has_edges.then_some(edge_up_bytes),
            compute_s: compute.seconds(),
            probe_compute_s: probe_compute.seconds(),
            metrics: by_name(run.metrics().iter().copied()),
        }
    }

    /// Bytes of clients, both ways, by then; as those of a target.
    pub const fn bytes(&self) -> u64 {
        self.down_bytes.saturating_add(self.up_bytes)
    }

    /// The numbers that are compared between policies, by name.
    pub fn numbers(&self) -> impl Iterator<Item = (String, f64)> {
        let to = [
            ("time_to", self.time_s),
            ("rounds_to", f64::from(self.round)),
            ("bytes_to", self.bytes() as f64),
            ("compute_to", self.compute_s),
            ("probe_compute_to", self.probe_compute_s),
        ];
        let metrics = self.metrics.iter().map(|(name, &value)| (format!("converged.{name}"), value));
        to.into_iter().map(|(what, value)| (format!("{what}.{CONVERGENCE}"), value)).chain(metrics)
    }
}

/// The watch for convergence.
#[derive(Debug, Stateful)]
pub(super) struct Convergence<'a> {
    plateau: Plateau<'a>,
    found: Option<Converged>,
}

impl<'a> Convergence<'a> {
    /// Before the first round.
    pub const fn new(plateau: Plateau<'a>) -> Self {
        Self { plateau, found: None }
    }

    /// Observes a round.
    pub fn observe(&mut self, run: &Run<'_>) {
        if self.found.is_none() {
            self.plateau.see(run.metrics());
            self.found = self.plateau.is_reached().then(|| Converged::at(run, self.plateau.config));
        }
    }

    /// When the run converged, if it did.
    pub fn into_found(self) -> Option<Converged> {
        self.found
    }
}
