//! FedGST: of some random candidates, those with the largest influence on the loss of validation data.
//!
//! # Definition
//! Draw `candidates` clients at random; take those with the largest influence
//!
//! ```text
//! a_u = ⟨∇L_valid, ∇L_u⟩
//! ```
//!
//! where `∇L_u` is the gradient of client `u`'s loss at the current model, and `∇L_valid` that of the validation data:
//! a step along `−∇L_u` then lowers `L_valid` by about the step times `a_u`.
//!
//! # Inputs
//! Answers to `influence` of the candidates, whose gradients travel.
//!
//! # Explanation
//! With `[record] explain = true`: `influence` of each client that was compared, `null` where unknown.
//!
//! # Source
//! Selection by influence functions, the baseline FedGST of "ProxyRL-FRS"; P. W. Koh, P. Liang, "Understanding Black-box
//! Predictions via Influence Functions", ICML 2017.
//!
//! # Deviations from the source
//! - The Hessian is taken for the identity: an influence is a product of two gradients.
//! - Candidates are asked before the selection, and their gradients travel, which costs virtual time and traffic. A
//!   candidate that goes away meanwhile is not selected. If fewer are left than a round needs, other available clients
//!   join them, with unknown influence.
//! - An influence that is not a number, or unknown, counts as the least.
//!
//! # Cost
//! A pass over each candidate's data, and the gradient's bytes.
//!
//! # Determinism
//! Candidates from stream (policy, server, turn), as `random` draws them. Influences within 1e-12 of the last one taken
//! are equal: the smallest ids win. Clients are asked in ascending order.

use super::random::{Deck, draw_uniform};
use super::{
    BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Probe, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::top_m;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The question for a client's influence.
const INFLUENCE: &str = "influence";

/// Parameters of `fedgst`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of candidates, at least the cohort; twice the cohort if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<usize>,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if !context.probes.iter().any(|kind| kind.name == INFLUENCE && kind.numbers == 1) {
            let message = "fedgst asks clients for \"influence\", which they do not know; it takes [task.recommendation] \
                           with validation data, and a task.recommendation.model that knows it";
            return Err(Complaint::new("", message));
        }
        let candidates = self.candidates.unwrap_or((2 * context.cohort).min(context.among));
        if candidates < context.cohort || candidates > context.among {
            let (cohort, among) = (context.cohort, context.among);
            let message = format!(
                "found {candidates}; expected between the cohort ({cohort}) and the number of clients ({among})"
            );
            return Err(Complaint::new("candidates", message));
        }
        let least = context.least.max(1);
        Ok(Box::new(FedGst { candidates, least, deck: Deck::default(), asked: Vec::new(), compared: Vec::new() }))
    }
}

#[derive(Stateful)]
struct FedGst {
    #[state(skip = "from the scenario")]
    candidates: usize,
    /// The fewest clients of a round.
    #[state(skip = "from the scenario")]
    least: usize,
    #[state(skip = "a buffer of one selection")]
    deck: Deck,
    /// Candidates asked, ascending.
    asked: Vec<ClientId>,
    /// Clients compared in the last selection, ascending, with their influences.
    #[state(skip = "read before the next selection")]
    compared: Vec<(ClientId, f64)>,
}

impl Policy for FedGst {
    fn probes(&self) -> bool {
        true
    }

    fn probe_kinds(&self) -> &[&'static str] {
        &[INFLUENCE]
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, rng: &mut StreamRng) -> Result<Probe, Failure> {
        self.asked.clear();
        draw_uniform(&ask.available, self.candidates, &mut self.deck, rng, &mut self.asked);
        self.asked.sort_unstable();
        Ok(Probe::Answers { clients: self.asked.clone(), kind: INFLUENCE })
    }

    fn effective(&self) -> Vec<(&'static str, Value)> {
        vec![("candidates", self.candidates.into())]
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        assert_eq!(view.answers.len(), self.asked.len(), "the probe answers for exactly the candidates asked");
        let answered = self.asked.iter().copied().zip(view.answers.iter().copied());
        self.compared = answered.filter(|(client, _)| ask.available.contains(*client)).collect();
        let least = self.least.min(ask.cohort);
        if self.compared.len() < least {
            let unknown = ask.available.list().iter().filter(|client| self.asked.binary_search(client).is_err());
            self.compared.extend(unknown.take(least - self.compared.len()).map(|&client| (client, f64::NAN)));
            self.compared.sort_unstable_by_key(|(client, _)| *client);
        }
        let score = |(_, influence): &(ClientId, f64)| if influence.is_nan() { f64::NEG_INFINITY } else { *influence };
        let (scores, mut chosen): (Vec<f64>, _) = (self.compared.iter().map(score).collect(), Vec::new());
        top_m(&scores, ask.cohort.min(scores.len()), &mut chosen);
        selection.extend(chosen.into_iter().map(|place| self.compared[place as usize].0));
        Ok(())
    }

    fn explain(
        &self,
        _: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(self.compared.iter().map(|(client, _)| *client));
        explanation.array("influence", self.compared.iter().map(|(_, influence)| *influence));
        Ok(())
    }
}
