//! CS-UCB: the `m` clients with the highest upper confidence bounds of a normalised latency reward.
//!
//! # Definition
//! `y = max(0, 1 − τ/τ_max)`; index `ȳ_k + sqrt((m+1)·ln t / n_k)`, `+∞` if `n_k = 0`; the top `m`.
//!
//! # Inputs
//! Observed latencies (the round's wait for a job).
//!
//! # Explanation
//! With `[record] explain = true`: `index` of each available client, `null` where infinite. `after`: `reward`, the mean
//! ȳ, and the number of `observations` of those selected.
//!
//! # Source
//! W. Xia, T. Q. S. Quek, K. Guo, W. Wen, H. H. Yang, H. Zhu, "Multi-Armed Bandit-Based Client Scheduling for Federated
//! Learning", IEEE Transactions on Wireless Communications 2020 (arXiv 2007.02315), CS-UCB.
//!
//! # Deviations from the source
//! `τ_max` decides how strongly the rewards differ, hence the regret. The default is the largest 0.999 quantile of the
//! effective latency over all clients, which a server would have to be told.
//!
//! # Cost
//! O(K) per round.
//!
//! # Determinism
//! Uses no random stream. Indices within 1e-12 of the `m`-th best are equal; among them the smallest ids win.

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, SampleMeans, Selection, SelectionRequest,
    ServerView, in_seconds,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::oracle::top_m;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `cs-ucb`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Latency of reward zero: a duration, or a quantile of the population's latency.
    #[serde(default)]
    pub tau_max: LongestLatency,
}

/// The latency at which the normalised reward reaches zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a duration such as \"2 s\", or { quantile = 0.999 }")]
pub enum LongestLatency {
    /// This long.
    Fixed(Duration),
    /// The largest quantile of this order of the effective latency over all clients.
    Quantile {
        /// Between 0 and 1.
        quantile: f64,
    },
}

impl Default for LongestLatency {
    fn default() -> Self {
        Self::Quantile { quantile: 0.999 }
    }
}

impl LongestLatency {
    /// The latency in seconds.
    pub(super) fn seconds(self, context: &BuildContext<'_>) -> Result<f64, Complaint> {
        match self {
            Self::Fixed(Duration(span)) if span > Span::ZERO => Ok(span.seconds()),
            Self::Quantile { quantile } if quantile > 0.0 && quantile < 1.0 => {
                Ok(context.devices.slowest_latency(quantile))
            }
            _ => Err(Complaint::new(
                "tau_max",
                "expected a positive duration, or { quantile = u } with u between 0 and 1",
            )),
        }
    }
}

/// The normalised latency reward `max(0, 1 − τ/τ_max)`.
pub(super) fn latency_reward(waited: Span, tau_max: f64) -> f64 {
    (1.0 - waited.seconds() / tau_max).max(0.0)
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(CsUcb {
            tau_max: self.tau_max.seconds(context)?,
            cohort: context.cohort,
            rewards: SampleMeans::new(context.clients),
            scores: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct CsUcb {
    #[state(skip = "from the scenario")]
    tau_max: f64,
    #[state(skip = "from the scenario")]
    cohort: usize,
    rewards: SampleMeans,
    #[state(skip = "a buffer of one selection")]
    scores: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl Policy for CsUcb {
    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("tau_max", in_seconds(self.tau_max))]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let exploration = (self.cohort + 1) as f64 * ln(f64::from(ask.turn.0));
        let available = ask.available.list();
        self.scores.clear();
        self.scores.extend(available.iter().map(|&client| match self.rewards.of(client) {
            (_, 0) => f64::INFINITY,
            (mean, count) => mean + sqrt(exploration / f64::from(count)),
        }));
        top_m(&self.scores, ask.sizes(available).0, &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Job(job) = feedback
            && let Some(waited) = job.waited.effective()
        {
            self.rewards.observe(job.client, latency_reward(waited, self.tau_max));
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("index", self.scores.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        self.rewards.explain(clients, "reward", explanation);
        Ok(())
    }
}
