//! Genie: knows every client's mean speed and maximises the scenario's reward exactly.
//!
//! # Definition
//! `G_t = argmax_{|S|=m} min_{k∈S} μ_k + (α/m) Σ_{k∈S} g_k`, with `μ_k = E[τ_min/τ_k]` of the effective latency and `g`
//! under the genie's own history of selections.
//!
//! # Inputs
//! The truth: mean speeds by quadrature. Reward parameters of `[regret]`.
//!
//! # Explanation
//! With `[record] explain = true`, for each available client: `speed`, its mean speed, and `g`.
//!
//! # Source
//! Ben Ami, Cohen, Zhao, IEEE Access 2025, equation (6).
//!
//! # Deviations from the source
//! The paper's genie is asked under the history of the policy it is compared with; that one is the yardstick of the
//! regret meters. As a policy the genie uses its own history, so that its `mean` regret is exactly zero.
//!
//! # Cost
//! One exact solve per round: O(K log m) after the order of the mean speeds is known.
//!
//! # Determinism
//! Uses no random stream. Sets within 1e-12 of the best are equal; the lexicographically smallest wins.

use super::{
    BuildContext, Explanation, Known, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::GenieSolver;
use fedgenie_core::oracle::reward::Reward;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `genie` has no parameters: it maximises the scenario's own reward.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        let reward = known.reward;
        match reward {
            Some(_) => Ok(()),
            None => Err(Complaint::new("", "the genie maximises the reward of [regret], which this scenario lacks")),
        }
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(GeniePolicy { cohort: context.cohort, solver: GenieSolver::default(), gains: Vec::new() }))
    }

    fn sees_truth(&self) -> bool {
        true
    }
}

#[derive(Stateful)]
struct GeniePolicy {
    #[state(skip = "from the scenario")]
    cohort: usize,
    #[state(skip = "buffers of the solver")]
    solver: GenieSolver,
    #[state(skip = "a buffer of one selection")]
    gains: Vec<f64>,
}

impl Policy for GeniePolicy {
    fn sees_truth(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let genie = view.genie.expect("a policy that sees the truth has it");
        let available = ask.available.list();
        let (cohort, take) = ask.sizes(available);
        let gain = view.gains(&genie.reward, ask, self.cohort, &mut self.gains);
        selection.extend_from_slice(self.solver.best(genie, gain, cohort, take, available));
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let Some(genie) = view.genie else { return Ok(()) };
        let available = ask.available.list();
        explanation.clients(available.iter().copied());
        explanation.array("speed", available.iter().map(|client| genie.mean_speeds[client.index()]));
        let mut g = Vec::new();
        // With the cohort for α, its weight α/m is 1, and the rest is g itself.
        let unweighted = Reward { alpha: self.cohort as f64, ..genie.reward };
        unweighted.gains(&view.history(ask, self.cohort), available, &mut g);
        explanation.array("g", g);
        Ok(())
    }
}
