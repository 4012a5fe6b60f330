//! Hindsight: a genie that selects the best set of a round, by the updates that clients have yet to train.
//!
//! # Definition
//! `argmax V(S)` over the sets `S` that `[regret] counterfactual = true` compares with: of clients that can be chosen,
//! of as many as `size`, cohort and budget say. `V` is the `utility` of sets, such as
//! `{ aggregate = { test_rmse = -1.0, traffic = -0.5 } }`, less `kappa` times the time that is waited. Each set's value
//! is that of the very updates, latencies and losses of the round, which no server could know.
//!
//! # Inputs
//! `[regret] counterfactual = true` with a `utility` of sets, in rounds of one server. The best set comes from the
//! meter of the regret in hindsight: `fedgenie describe meter/counterfactual` has the definition.
//!
//! # Explanation
//! With `[record] explain = true`, of the selection: `value`, that of the selected set.
//!
//! # Source
//! This project: the best selection round by round, a yardstick for policies that choose both number and clients.
//!
//! # Deviations from the source
//! None. The best set of each round need not lead to the best run: the genie looks one round ahead.
//!
//! # Cost
//! Training of all candidates, and an aggregation and an evaluation of each set; 14 candidates have 16,383 sets. The
//! meter does that once a round: the judgement of the round reuses it.
//!
//! # Determinism
//! Uses no random stream. Sets within 1e-12 of the best are equal; the lexicographically smallest wins. Its regret in
//! hindsight is 0, unless `cohort` of its section lets it choose fewer clients than the sets have.

use super::{
    BuildContext, Explanation, Known, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `hindsight` has no parameters: it maximises the value measured by the scenario's own meter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn resolve(&mut self, known: Known<'_>) -> Result<(), Complaint> {
        match known.hindsight {
            Some(plan) if plan.utility.of_sets().is_some() => Ok(()),
            plan => {
                let missing = match plan {
                    Some(_) => "its utility is not one of sets; write utility = { aggregate = { test_loss = -1.0 } }",
                    None => {
                        "this scenario measures none; write counterfactual = true and a utility of sets, such as { \
                         aggregate = { test_loss = -1.0 } }"
                    }
                };
                let message = format!("selects the best of the sets that [regret] measures, and {missing}");
                Err(Complaint::new("", message))
            }
        }
    }

    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.in_rounds {
            let message = "selects in rounds of one server; take synchronous or deadline, or another policy";
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(Hindsight))
    }

    fn sees_truth(&self) -> bool {
        true
    }
}

#[derive(Stateful)]
struct Hindsight;

impl Policy for Hindsight {
    fn sees_truth(&self) -> bool {
        true
    }

    fn foresees(&self, ask: &SelectionRequest<'_>) -> Result<Option<usize>, Failure> {
        Ok(Some(ask.cohort))
    }

    fn select(
        &mut self,
        _: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let (best, _) = view.foreseen.expect("a policy that foresees sets is given the best one");
        selection.extend_from_slice(best);
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(ask.available.list().iter().copied());
        explanation.scalar("value", view.foreseen.map_or(f64::NAN, |(_, value)| value));
        Ok(())
    }
}
