//! CS-UCB-Q: upper confidence bounds of latency, with virtual queues that keep every client's share of selections.
//!
//! # Definition
//! ```text
//! ŷ_k   = min(1, ȳ_k + sqrt(2·ln t / n_k)),  1 if n_k = 0        y = max(0, 1 − τ/τ_max)
//! score = (1−β)·ŷ_k + β·D_k                                      the top m
//! D_k  ← [D_k + φ·m·|X_k|/|X| − 1{k selected}]^+                 after the round, D = 0 at the start
//! ```
//!
//! # Inputs
//! Observed latencies (the round's wait for a job), data sizes.
//!
//! # Explanation
//! With `[record] explain = true`: `index` and `queue` of each available client. `after`: `reward`, the mean, the
//! number of `observations` and the `queue` of those selected.
//!
//! # Source
//! W. Xia, T. Q. S. Quek, K. Guo, W. Wen, H. H. Yang, H. Zhu, "Multi-Armed Bandit-Based Client Scheduling for Federated
//! Learning", IEEE Transactions on Wireless Communications 2020 (arXiv 2007.02315), CS-UCB-Q.
//!
//! # Deviations from the source
//! `τ_max` as in `cs-ucb`.
//!
//! # Cost
//! O(K) per round.
//!
//! # Determinism
//! Uses no random stream. Scores within 1e-12 of the `m`-th best are equal; among them the smallest ids win.

use super::cs_ucb::{LongestLatency, latency_reward};
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, SampleMeans, Selection, SelectionRequest,
    ServerView, in_seconds,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::oracle::top_m;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `cs-ucb-q`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Latency of reward zero: a duration, or a quantile of the population's latency.
    #[serde(default)]
    pub tau_max: LongestLatency,
    /// Weight of the queues against speed, between 0 and 1.
    #[serde(default = "half")]
    pub beta: f64,
    /// Fraction of a fair share of the selections that each client is owed, between 0 and 1.
    #[serde(default = "half")]
    pub phi: f64,
}

const fn half() -> f64 {
    0.5
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let phi = check("phi", self.phi, 0.0..=1.0, "a number between 0 and 1")?;
        let total: f64 = context.data_sizes.iter().map(|&size| f64::from(size)).sum();
        let owed = |&size: &u32| phi * context.cohort as f64 * (f64::from(size) / total);
        Ok(Box::new(CsUcbQ {
            tau_max: self.tau_max.seconds(context)?,
            beta: check("beta", self.beta, 0.0..=1.0, "a number between 0 and 1")?,
            rewards: SampleMeans::new(context.clients),
            owed: context.data_sizes.iter().map(owed).collect(),
            queues: vec![0.0; context.clients],
            scores: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct CsUcbQ {
    #[state(skip = "from the scenario")]
    tau_max: f64,
    #[state(skip = "from the scenario")]
    beta: f64,
    rewards: SampleMeans,
    /// Selections owed per round and client, `φ·m·|X_k|/|X|`.
    #[state(skip = "from the scenario")]
    owed: Vec<f64>,
    /// The virtual queues `D`.
    queues: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    scores: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl Policy for CsUcbQ {
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
        let exploration = 2.0 * ln(f64::from(ask.turn.0));
        let available = ask.available.list();
        self.scores.clear();
        self.scores.extend(available.iter().map(|&client| {
            let optimistic = match self.rewards.of(client) {
                (_, 0) => 1.0,
                (mean, count) => (mean + sqrt(exploration / f64::from(count))).min(1.0),
            };
            (1.0 - self.beta) * optimistic + self.beta * self.queues[client.index()]
        }));
        top_m(&self.scores, ask.sizes(available).0, &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) => {
                if let Some(waited) = job.waited.effective() {
                    self.rewards.observe(job.client, latency_reward(waited, self.tau_max));
                }
            }
            Feedback::Trained(_) => {}
            Feedback::Round(round) => {
                for (queue, owed) in self.queues.iter_mut().zip(&self.owed) {
                    *queue += owed;
                }
                for client in round.selected {
                    self.queues[client.index()] -= 1.0;
                }
                for queue in &mut self.queues {
                    *queue = queue.max(0.0);
                }
            }
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
        let available = ask.available.list();
        explanation.clients(available.iter().copied());
        explanation.array("index", self.scores.iter().copied());
        explanation.array("queue", available.iter().map(|client| self.queues[client.index()]));
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        self.rewards.explain(clients, "reward", explanation);
        explanation.array("queue", clients.iter().map(|client| self.queues[client.index()]));
        Ok(())
    }
}
