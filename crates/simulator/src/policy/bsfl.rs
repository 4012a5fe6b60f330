//! BSFL (bandit scheduling for federated learning): upper confidence bounds of speed, plus a term for balanced
//! participation.
//!
//! # Definition
//! ```text
//! ucb_k = μ̄_k + sqrt((m+1)·ln t / n_k),  +∞ if n_k = 0                          (9), (12)
//! A_t   = argmax_{|S|=m} min_{k∈S} ucb_k + (α/m)·Σ_{k∈S} g_k(H_t)                (13)
//! ```
//! `μ̄_k` is the mean of the `n_k` observed speeds `τ_min/τ_k`, `g` the generalisation function of the history of
//! selections.
//!
//! # Inputs
//! Observed latencies (the round's wait for a job), selection counts, shares of the data.
//!
//! # Explanation
//! With `[record] explain = true`: `ucb` and `g` of each available client, `null` where infinite; `bottleneck`, the
//! smallest `ucb` of those selected (under over-selection the `take`-th largest). `after`: `speed`, the mean μ̄, and
//! the number of `observations` of those selected.
//!
//! # Source
//! D. Ben Ami, K. Cohen, Q. Zhao, "Client Selection for Generalization in Accelerated Federated Learning: A
//! Multi-Armed Bandit Approach", IEEE Access 2025, Algorithm 1 and equations (3)–(13).
//!
//! # Deviations from the source
//! - (13) is solved exactly by default; the paper's annealing is available as `solver`.
//! - `ln t` and `c_k/t` take the current round's `t`, from 1.
//! - While at least `m` clients are unseen, the `m` smallest ids among them win (`∞ + x = ∞`); when fewer are unseen,
//!   no set is infinite and they enter through `g` only.
//! - `g` counts selections, `ucb` counts observations: a dropout is observed with the time that the round waited, a job
//!   called off under over-selection is not observed.
//! - With a quantum the sample mean is rounded before its bonus is added.
//!
//! # Cost
//! O(K) plus the solver: exact O(K log m) after the order is known.
//!
//! # Determinism
//! The exact and greedy solvers use no stream; annealing uses (solver, 0, round). Sets within 1e-12 of the best are
//! equal; the lexicographically smallest wins.

use super::{
    BoundWorld, BuildContext, Explanation, Feedback, Known, Policy, PolicyRng, PolicySettings, RegretBound,
    SampleMeans, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{ln, sqrt};
use fedgenie_core::oracle::bound::Bound;
use fedgenie_core::oracle::regret::Meter;
use fedgenie_core::oracle::reward::{Reward, bottleneck};
use fedgenie_core::oracle::{Instance, Solver, SolverConfig};
use fedgenie_core::state::Stateful;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `bsfl`. Defaults are taken from `[regret]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of generalisation, not negative; `regret.alpha` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Exponent of the generalisation function, positive; `regret.beta` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// The shortest conceivable latency; `regret.tau_min` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tau_min: Option<Duration>,
    /// Grid of the generalisation function and of sample means, 0 for none; `regret.quantum` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<f64>,
    /// How (13) is maximised.
    #[serde(default)]
    pub solver: SolverConfig,
}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        let reward = known.reward;
        self.alpha = self.alpha.or(reward.map(|reward| reward.alpha));
        self.beta = self.beta.or(reward.map(|reward| reward.beta));
        self.tau_min = self.tau_min.or(reward.map(|reward| Duration(reward.tau_min)));
        self.quantum = self.quantum.or(Some(reward.and_then(|reward| reward.quantum).unwrap_or(0.0)));
        if let Some(alpha) = self.alpha {
            self.solver.resolve(alpha);
        }
        Ok(())
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let solver = self.solver.build(&self.reward()?).map_err(|message| Complaint::new("solver", message))?;
        self.made(context, solver, matches!(self.solver, SolverConfig::Exact(_)))
    }
}

impl Config {
    fn reward(&self) -> Result<Reward, Complaint> {
        let missing = |key| {
            let message = "is missing, and there is no [regret] to take it from; write for example \
                           alpha = 3.0, beta = 1.2, tau_min = \"50 ms\"";
            Complaint::new(key, message)
        };
        let tau_min = self.tau_min.ok_or_else(|| missing("tau_min"))?.0;
        if tau_min.0 == 0 {
            return Err(Complaint::new("tau_min", "found 0; expected a positive duration"));
        }
        let quantum = check("quantum", self.quantum.unwrap_or(0.0), 0.0.., "0 (none) or a positive number")?;
        Ok(Reward {
            tau_min,
            alpha: check("alpha", self.alpha.ok_or_else(|| missing("alpha"))?, 0.0.., "a number of at least 0")?,
            beta: check("beta", self.beta.ok_or_else(|| missing("beta"))?, f64::MIN_POSITIVE.., "a number above 0")?,
            quantum: (quantum > 0.0).then_some(quantum),
        })
    }

    /// The policy with a solver of its own instead of `solver`.
    ///
    /// # Errors
    /// Key and sentence, if a parameter does not fit.
    pub fn build_with(
        &self,
        context: &BuildContext<'_>,
        solver: Box<dyn Solver>,
    ) -> Result<Box<dyn Policy>, Complaint> {
        self.made(context, solver, false)
    }

    fn made(
        &self,
        context: &BuildContext<'_>,
        solver: Box<dyn Solver>,
        is_exact: bool,
    ) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Bsfl {
            reward: self.reward()?,
            is_exact,
            cohort: context.cohort,
            solver,
            speeds: SampleMeans::new(context.clients),
            bounds: Vec::new(),
            gains: Vec::new(),
            chosen: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct Bsfl {
    #[state(skip = "from the scenario")]
    reward: Reward,
    #[state(skip = "from the scenario")]
    is_exact: bool,
    #[state(skip = "from the scenario")]
    cohort: usize,
    #[state(skip = "buffers of the solver")]
    solver: Box<dyn Solver>,
    speeds: SampleMeans,
    #[state(skip = "a buffer of one selection")]
    bounds: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    gains: Vec<f64>,
    #[state(skip = "a buffer of one selection")]
    chosen: Vec<u32>,
}

impl Policy for Bsfl {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let (cohort, take) = ask.sizes(available);
        let exploration = (self.cohort + 1) as f64 * ln(f64::from(ask.turn.0));
        self.bounds.clear();
        self.bounds.extend(available.iter().map(|&client| match self.speeds.of(client) {
            (_, 0) => f64::INFINITY,
            (mean, count) => self.reward.mean_speed(mean) + sqrt(exploration / f64::from(count)),
        }));
        let gain = view.gains(&self.reward, ask, self.cohort, &mut self.gains);
        let instance = Instance { speed: &self.bounds, gain, cohort, take };
        self.solver.solve(&instance, rng.solver, &mut self.chosen);
        selection.extend(self.chosen.iter().map(|&index| available[index as usize]));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Job(job) = feedback
            && let Some(waited) = job.waited.effective()
        {
            self.speeds.observe(job.client, self.reward.speed(waited));
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let (cohort, take) = ask.sizes(available);
        explanation.clients(available.iter().copied());
        explanation.array("ucb", self.bounds.iter().copied());
        // With the cohort for α, its weight α/m is 1, and the rest is g itself.
        let mut g = Vec::new();
        let unweighted = Reward { alpha: self.cohort as f64, ..self.reward };
        unweighted.gains(&view.history(ask, self.cohort), available, &mut g);
        explanation.array("g", g);
        let bound = |client| self.bounds[available.binary_search(client).expect("a selected client was a candidate")];
        let chosen: Vec<f64> = selection.iter().map(bound).collect();
        explanation.scalar("bottleneck", bottleneck(&chosen, take.min(cohort)));
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        self.speeds.explain(clients, "speed", explanation);
        Ok(())
    }

    /// Theorem 1, if policy and world satisfy it: the policy maximises exactly the reward that regret is measured in,
    /// all clients are available, and every update is waited for.
    fn bound(&self, world: &BoundWorld<'_>) -> Result<Option<RegretBound>, Failure> {
        let maximises = self.is_exact && self.reward == world.genie.reward;
        if !(maximises && world.waits_for_all && world.is_always_available) {
            return Ok(None);
        }
        let bound = Bound::of(world.genie, world.shares, world.cohort).filter(|bound| bound.delta_min.is_some());
        Ok(bound.map(|bound| RegretBound {
            meter: Meter::Mean,
            name: "Theorem 1".to_owned(),
            at: Box::new(move |round| Ok(bound.at(f64::from(round.0)))),
        }))
    }
}
