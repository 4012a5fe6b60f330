//! RBCS-F: contextual bandit (ridge regression of latency) with fairness queues.
//!
//! # Definition
//! Per client a ridge regression of latency on the context `c = [compute s, selected in last round, transfer s]`:
//!
//! ```text
//! θ̂ = H⁻¹b,  H = λI + Σ c cᵀ,  b = Σ τ·c                over the client's observations
//! τ̄_k = max(0, cᵀθ̂ − α·sqrt(cᵀH⁻¹c))                    lower confidence latency
//! A_t = argmin_{|S|=m} V·max_{k∈S} τ̄_k − Σ_{k∈S} z_k
//! z_k ← [z_k + β − 1{k selected}]^+                      after the round, z = 0 at the start
//! ```
//!
//! # Inputs
//! Observed latencies (the round's wait for a job, in seconds), declared devices.
//!
//! # Explanation
//! With `[record] explain = true`: `latency`, the lower confidence bound in seconds, and `queue` of each available
//! client. `after`: the `queue` of those selected.
//!
//! # Source
//! T. Huang, W. Lin, W. Wu, L. He, K. Li, A. Y. Zomaya, "An Efficiency-Boosting Client Selection Scheme for Federated
//! Learning with Fairness Guarantee", IEEE TPDS 2021 (arXiv 2011.01783).
//!
//! # Deviations from the source
//! - The selection is solved exactly, as a bottleneck problem, and not by enumerating the slowest client.
//! - The authors' `β = 0.5` exceeds `m/K`, so that every queue diverges and every client gets exactly `m/K`; here β is
//!   given as a fraction of `m/K` (`fairness`).
//! - Where a world has only laws, the context is the median compute time and the sum of the median transfer times.
//! - Collecting the context takes `context_time` before every selection.
//!
//! # Cost
//! O(K) 3×3 systems per round, then O(K log m) after sorting.
//!
//! # Determinism
//! Uses no random stream. Sets within 1e-12 of the best are equal; the lexicographically smallest wins.

use super::{
    BuildContext, DeclaredDevice, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Probe, Selection,
    SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::ridge::Ridge;
use fedgenie_core::oracle::{Exact, Instance};
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `rbcs-f`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight `V` of latency against the queues, not negative.
    #[serde(default = "default_latency_weight")]
    pub latency_weight: f64,
    /// Ridge parameter `λ`, positive.
    #[serde(default = "default_ridge")]
    pub ridge: f64,
    /// Exploration `α`, not negative.
    #[serde(default = "default_exploration")]
    pub exploration: f64,
    /// Guaranteed selection rate as a fraction of `m/K`, between 0 and 1.
    #[serde(default = "default_fairness")]
    pub fairness: f64,
    /// Time to collect the context from all available clients before each selection.
    #[serde(default = "default_context_time")]
    pub context_time: Duration,
}

const fn default_latency_weight() -> f64 {
    5.0
}
const fn default_ridge() -> f64 {
    1.0
}
const fn default_exploration() -> f64 {
    0.1
}
const fn default_fairness() -> f64 {
    0.5
}
const fn default_context_time() -> Duration {
    Duration(Span(10_000_000))
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let ridge = check("ridge", self.ridge, f64::MIN_POSITIVE.., "a number above 0")?;
        let fairness = check("fairness", self.fairness, 0.0..=1.0, "a number between 0 and 1")?;
        Ok(Box::new(RbcsF {
            latency_weight: check("latency_weight", self.latency_weight, 0.0.., "a number of at least 0")?,
            exploration: check("exploration", self.exploration, 0.0.., "a number of at least 0")?,
            rate: fairness * context.cohort as f64 / context.among as f64,
            context_time: self.context_time.0,
            regressions: vec![Ridge::new(ridge); context.clients],
            devices: (0..context.clients).map(|k| context.devices.declared(ClientId::from_index(k))).collect(),
            contexts: vec![[0.0; 3]; context.clients],
            queues: vec![0.0; context.clients],
            in_last_round: vec![false; context.clients],
            solver: Exact::default(),
            latencies: Vec::new(),
            speeds: Vec::new(),
            gains: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct RbcsF {
    #[state(skip = "from the scenario")]
    latency_weight: f64,
    #[state(skip = "from the scenario")]
    exploration: f64,
    /// Guaranteed selections per round and client.
    #[state(skip = "from the scenario")]
    rate: f64,
    #[state(skip = "from the scenario")]
    context_time: Span,
    regressions: Vec<Ridge<3>>,
    #[state(skip = "from the world")]
    devices: Vec<DeclaredDevice>,
    /// The context under which each client was selected last.
    contexts: Vec<[f64; 3]>,
    /// The fairness queues `z`.
    queues: Vec<f64>,
    in_last_round: Vec<bool>,
    #[state(skip = "buffers of the solver")]
    solver: Exact,
    /// Lower confidence bounds of the candidates, in seconds.
    #[state(skip = "read before the next selection")]
    latencies: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    speeds: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    gains: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl Policy for RbcsF {
    fn probes(&self) -> bool {
        self.context_time > Span::ZERO
    }

    fn probe(&mut self, _: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(Probe::Context(self.context_time))
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let (cohort, take) = ask.sizes(available);
        self.latencies.clear();
        self.speeds.clear();
        self.gains.clear();
        for &client in available {
            let device = &self.devices[client.index()];
            let was_selected = f64::from(u8::from(self.in_last_round[client.index()]));
            let context = [device.compute_seconds, was_selected, device.transfer_seconds];
            let (mean, width) = self.regressions[client.index()].factored().predict(&context);
            let latency = (mean - self.exploration * width).max(0.0);
            self.contexts[client.index()] = context;
            self.latencies.push(latency);
            self.speeds.push(-self.latency_weight * latency);
            self.gains.push(self.queues[client.index()]);
        }
        let instance = Instance { speed: &self.speeds, gain: &self.gains, cohort, take };
        self.solver.maximise(&instance, &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) => {
                if let Some(waited) = job.waited.effective() {
                    let client = job.client.index();
                    self.regressions[client].observe(&self.contexts[client], waited.seconds());
                }
            }
            Feedback::Trained(_) => {}
            Feedback::Round(round) => {
                self.in_last_round.fill(false);
                for queue in &mut self.queues {
                    *queue += self.rate;
                }
                for client in round.selected {
                    self.in_last_round[client.index()] = true;
                    self.queues[client.index()] = (self.queues[client.index()] - 1.0).max(0.0);
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
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("latency", self.latencies.iter().copied());
        explanation.array("queue", self.gains.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("queue", clients.iter().map(|client| self.queues[client.index()]));
        Ok(())
    }
}
