//! Round-robin selection: clients take turns in a fixed cycle.
//!
//! # Definition
//! The clients stand in a circle by id. Each round takes the first `m` available ones after the last one taken.
//!
//! # Inputs
//! The available clients. No feedback is used.
//!
//! # Explanation
//! With `[record] explain = true`: `clients`, those selected, and `next`, the client with which the next selection
//! begins.
//!
//! # Source
//! Folklore; the fairest schedule when everybody is available.
//!
//! # Deviations from the source
//! None.
//!
//! # Cost
//! O(log K + m) per round if everybody is available; otherwise as many steps as there are clients to be passed over.
//!
//! # Determinism
//! Uses no random stream. The first round starts with client 0.

use super::{BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `round-robin` has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn build(&self, _: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(RoundRobin { next: ClientId(0) }))
    }
}

#[derive(Stateful)]
struct RoundRobin {
    /// The first candidate of the next round.
    next: ClientId,
}

impl Policy for RoundRobin {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let scope = ask.available.scope();
        let start = scope.partition_point(|&client| client < self.next);
        let circle = (start..scope.len()).chain(0..start);
        selection.extend(circle.filter_map(|index| ask.available.at(index)).take(ask.cohort));
        if let Some(last) = selection.last() {
            self.next = ClientId(last.0 + 1);
        }
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(selection.iter().copied());
        explanation.scalar("next", f64::from(self.next.0));
        Ok(())
    }
}
