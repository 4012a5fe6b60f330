//! What a policy is built from: facts about its scenario, and the declarations of its clients.

#[cfg(doc)]
use super::Probe;
use super::{Bounds, DeclaredDevice, Policy};
use crate::population::Recording;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::Metric;
use fedgenie_core::oracle::hindsight::HindsightPlan;
use fedgenie_core::oracle::reward::Reward;
use fedgenie_learning::task::ProbeKind;
use std::sync::Arc;

/// Facts about the scenario from which a policy is built.
#[derive(Clone, Copy, Debug)]
pub struct BuildContext<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// Number of clients, `K`.
    pub clients: usize,
    /// How many of them the policy chooses among: those of its server.
    pub among: usize,
    /// Clients asked per round, `m`.
    pub cohort: usize,
    /// Updates waited for per round.
    pub take: usize,
    /// Updates that make a model: those of a round, or those of a buffer.
    pub per_model: usize,
    /// The bounds of the policy's decisions.
    pub bounds: Bounds,
    /// Examples per client.
    pub data_sizes: &'a [u32],
    /// Whether one server asks clients in rounds: the protocol is neither `buffered` nor `hierarchical`.
    pub in_rounds: bool,
    /// Whether clients train, so that there are losses.
    pub trains: bool,
    /// Questions that clients can answer, see [`Probe::Answers`].
    pub probes: &'a [ProbeKind],
    /// Clients' declarations of their devices, latencies and data.
    pub devices: &'a dyn Devices,
    /// Metrics that rounds may measure, in the order in which rounds list them.
    pub metrics: &'a [Metric],
    /// Whether the scenario has every round evaluated.
    pub evaluates_every_round: bool,
    /// `B`, the most bytes of clients that the run may move, both ways together, where it has a budget.
    pub budget: Option<u64>,
    /// `L`, the fewest clients of a round; 1 unless a budget says more.
    pub least: usize,
    /// Whether a round of one server has a new model without any client: by noise.
    pub has_empty_rounds: bool,
}

/// Clients' declarations. Asked only when a policy is built, because medians and quantiles are not cheap for every law.
pub trait Devices: std::fmt::Debug {
    /// A client's device.
    fn declared(&self, client: ClientId) -> DeclaredDevice;
    /// The medians of its download and upload, apart, in seconds; `None` if it declares their sum alone.
    fn links(&self, _client: ClientId) -> Option<[f64; 2]> {
        None
    }
    /// The largest quantile `u` of the effective latency over all clients, in seconds.
    fn slowest_latency(&self, u: f64) -> f64;
    /// The 80th percentile, by nearest rank, over clients of the sum of their phases' mean durations, in seconds.
    fn usual_latency(&self) -> f64;
    /// The log that the clients replay, if they do.
    fn recording(&self) -> Option<Arc<Recording>> {
        None
    }
    /// Each client's number of training examples of each class or category; `None` if examples have neither.
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        None
    }
    /// Features of each client's user, as many and in the same order for all; `None` if users have no metadata.
    fn features(&self) -> Option<Vec<Vec<f64>>> {
        None
    }
}

/// Settings elsewhere in a scenario that serve as defaults for policies' parameters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The reward of `[regret]`.
    pub reward: Option<&'a Reward>,
    /// The measurements of `[regret] counterfactual`.
    pub hindsight: Option<&'a HindsightPlan>,
    /// Rounds of `[stop]`.
    pub rounds: Option<u32>,
    /// Metric and value of `[stop] target`.
    pub target: Option<(&'a str, f64)>,
}

/// Parameters of a policy, as a scenario writes them.
pub trait PolicySettings {
    /// Writes the defaults that come from elsewhere in the scenario into the parameters.
    ///
    /// # Errors
    /// If a parameter has no default here.
    fn resolve(&mut self, _known: Known<'_>) -> Result<(), Complaint> {
        Ok(())
    }

    /// Makes the policy.
    ///
    /// # Errors
    /// If the parameters do not fit the scenario.
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint>;

    /// Whether the policy is shown the truth: [`Policy::sees_truth`] of the built policy.
    fn sees_truth(&self) -> bool {
        false
    }
}
