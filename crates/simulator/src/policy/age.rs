//! Selection by age: those whose last update is longest ago.
//!
//! # Definition
//! ```text
//! age_i = t − s_i
//! ```
//! `t` is the number of the selection, `s_i` of that to which the last update of `i` that arrived belongs, 0 before.
//! The `m` oldest, the oldest first; of the same age the smaller id. An age falls when an update arrives, not when its
//! client is selected.
//!
//! A client whose updates never arrive stays the oldest, and is selected again and again: where rounds have a deadline,
//! let late updates join (`late = { carry = {} }`).
//!
//! # Inputs
//! Arrivals of updates.
//!
//! # Explanation
//! With `[record] explain = true`: `age` of each candidate. `after`: `arrived`, the selection of the last update of
//! those selected.
//!
//! # Source
//! H. H. Yang, A. Arafa, T. Q. S. Quek, H. V. Poor, "Age-Based Scheduling Policy for Federated Learning in Mobile Edge
//! Networks", ICASSP 2020 (arXiv 1910.14648): the age of update.
//!
//! # Deviations from the source
//! The source divides a bandwidth between devices whose channels fade, and weighs age against channel; here the age
//! alone decides.
//!
//! # Cost
//! O(K + m log m) per round.
//!
//! # Determinism
//! Uses no random stream.

use super::ranked::largest;
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::record::Outcome;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `age` has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Age { arrived: vec![0; context.clients], ages: Vec::new() }))
    }
}

#[derive(Stateful)]
struct Age {
    /// The selection to which each client's last update belongs.
    #[state(each)]
    arrived: Vec<u32>,
    #[state(skip = "read before the next selection")]
    ages: Vec<f64>,
}

impl Age {
    fn note(&mut self, client: ClientId, turn: Turn) {
        let arrived = &mut self.arrived[client.index()];
        *arrived = turn.0.max(*arrived);
    }
}

impl Policy for Age {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        self.ages.clear();
        self.ages
            .extend(available.iter().map(|client| f64::from(ask.turn.0) - f64::from(self.arrived[client.index()])));
        selection.extend(largest(available, &self.ages, ask.cohort));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Job(job) if job.outcome == Outcome::Arrived => self.note(job.client, job.turn),
            // A late one arrives when it joins a later round.
            Feedback::Trained(update) => self.note(update.client, update.turn),
            Feedback::Job(_) | Feedback::Round(_) => {}
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
        explanation.array("age", self.ages.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("arrived", clients.iter().map(|client| f64::from(self.arrived[client.index()])));
        Ok(())
    }
}
