//! The selections of a log: the policy that a replay of a log needs.
//!
//! # Definition
//! Round r selects the clients of round r of the log that `population.recorded` names, in the order in which they were
//! sent the model. It goes on no longer than the log.
//!
//! # Inputs
//! The log. No feedback is used. Refused where the population is not recorded, under protocols without rounds of one
//! server, and where a round of the log has more clients than the protocol selects.
//!
//! # Explanation
//! With `[record] explain = true`: `clients`, those of the log.
//!
//! # Source
//! Ours.
//!
//! # Deviations from the source
//! None.
//!
//! # Cost
//! O(m) per round.
//!
//! # Determinism
//! Uses no random stream.

use super::{BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView};
use crate::population::Recording;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `recorded` has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let refuse = |message: String| Err(Complaint::new("", message));
        let Some(recording) = context.devices.recording() else {
            return refuse(
                "selects as a log says, and the population is none; write population.recorded = \"log.csv\"".to_owned(),
            );
        };
        if !context.in_rounds {
            let message = "selects in rounds of one server; take a protocol that has them, such as synchronous";
            return refuse(message.to_owned());
        }
        let most = context.bounds.most;
        let largest = recording
            .choices()
            .iter()
            .zip(1..)
            .max_by_key(|&(cohort, round): &(_, u32)| (cohort.len(), u32::MAX - round));
        match largest {
            Some((cohort, round)) if cohort.len() > most => refuse(format!(
                "round {round} of the log has {0} clients, and the protocol selects at most {most}; write {0} there",
                cohort.len()
            )),
            _ => Ok(Box::new(Recorded { recording })),
        }
    }
}

#[derive(Stateful)]
struct Recorded {
    #[state(skip = "from the scenario")]
    recording: Arc<Recording>,
}

impl Policy for Recorded {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let choices = self.recording.choices();
        let Some(cohort) = choices.get(ask.turn.0 as usize - 1) else {
            let (turn, rounds) = (ask.turn.0, choices.len());
            return Err(format!(
                "there is no round {turn} in the log, which has {rounds}; write stop.rounds = {rounds}"
            )
            .into());
        };
        if let Some(client) = cohort.iter().find(|client| !ask.available.contains(**client)) {
            let message = format!(
                "{client} of round {} of the log still has a job here; take the protocol of the log",
                ask.turn.0
            );
            return Err(message.into());
        }
        selection.extend(cohort);
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
        Ok(())
    }
}
