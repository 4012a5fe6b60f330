//! REFL: clients that will soon be gone come first, and those asked lately rest.
//!
//! # Definition
//! A slot μ is about as long as a round: at first the median of the latencies that clients declare, then the length `D`
//! of the first round, and after each further round
//! ```text
//! μ ← (1 − alpha)·D + alpha·μ
//! ```
//! Each candidate is forecast for `[now + μ, now + 2μ]`. Clients of the last `cooldown` selections rest. Of the others
//! the first `m`: those that are forecast to be away, then those that are not, each in random order. If fewer than `m`
//! do not rest, those join who have rested longest.
//!
//! # Inputs
//! Forecasts of availability (`[population.forecast]`); declared latencies; lengths of rounds.
//!
//! # Explanation
//! With `[record] explain = true`: `forecast` of each candidate, resting ones too: 1 there, 0 away; `slot_s`, μ;
//! `resting`, ids of those that rest and did not join.
//!
//! # Source
//! A. M. Abdelmoniem, A. N. Sahu, M. Canini, S. A. Fahmy, "REFL: Resource-Efficient Federated Learning", EuroSys 2023
//! (arXiv 2111.01108), Algorithm 1 (intelligent participant selection).
//!
//! # Deviations from the source
//! - It has clients forecast the probability of being there; here forecasts say yes or no, right with a probability
//!   that the scenario gives.
//! - It weighs late updates by how far they are from the others. That is the server's part: `[protocol.deadline]` takes
//!   them in with weights by their staleness.
//! - Its adaptive target of participants is left out.
//! - Who joins when too few do not rest is open there.
//!
//! # Cost
//! O(K log K) and K forecasts per round.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each candidate, by ascending id; the smaller comes first, then the
//! smaller id. Times are rounded to nanoseconds.

use super::ranked::median;
use super::{
    BuildContext, Capabilities, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest,
    ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `refl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of the slot that stays from round to round, between 0 and 1.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Selections after which a client may be selected again.
    #[serde(default = "default_cooldown")]
    pub cooldown: u32,
}

const fn default_alpha() -> f64 {
    0.25
}
const fn default_cooldown() -> u32 {
    5
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: default_alpha(), cooldown: default_cooldown() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let declared = |index: usize| context.devices.declared(ClientId::from_index(index)).seconds();
        Ok(Box::new(Refl {
            alpha: check("alpha", self.alpha, 0.0..=1.0, "a number between 0 and 1")?,
            cooldown: self.cooldown,
            declared: (0..context.clients).map(declared).collect(),
            slot: None,
            selected: vec![0; context.clients],
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Refl {
    #[state(skip = "from the scenario")]
    alpha: f64,
    #[state(skip = "from the scenario")]
    cooldown: u32,
    /// Seconds of a job that each client declares.
    #[state(skip = "from the world")]
    declared: Vec<f64>,
    /// μ in seconds, from the first round on.
    slot: Option<f64>,
    /// The last selection of each client; 0 if it has had none.
    #[state(each)]
    selected: Vec<u32>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    slot: f64,
    is_there: Vec<bool>,
    resting: Vec<ClientId>,
}

impl Refl {
    fn slot(&self, scope: &[ClientId]) -> f64 {
        self.slot.unwrap_or_else(|| {
            let mut sorted: Vec<f64> = scope.iter().map(|client| self.declared[client.index()]).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            median(&sorted)
        })
    }

    /// The candidates that rest, ascending, so that enough are left if there are enough.
    fn resting(&self, candidates: &[ClientId], turn: u32, count: usize) -> Vec<ClientId> {
        let last = |client: &ClientId| self.selected[client.index()];
        let rests = |client: &&ClientId| last(client) > 0 && turn - last(client) <= self.cooldown;
        let mut resting: Vec<ClientId> = candidates.iter().filter(rests).copied().collect();
        let others = candidates.len() - resting.len();
        resting.sort_unstable_by_key(|client| (last(client), *client));
        let mut resting = resting.split_off(count.saturating_sub(others).min(resting.len()));
        resting.sort_unstable();
        resting
    }
}

impl Policy for Refl {
    fn capabilities(&self) -> Capabilities {
        Capabilities { forecast: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let slot = self.slot(ask.available.scope());
        let span = Span::from_seconds(slot)?;
        let from = ask.now + span;
        let until = from + span;
        let is_there =
            candidates.iter().map(|&client| view.forecast(client, from, until)).collect::<Result<Vec<bool>, _>>()?;
        let resting = self.resting(candidates, ask.turn.0, cohort);
        let mut order: Vec<(bool, f64, ClientId)> = candidates
            .iter()
            .zip(&is_there)
            .map(|(&client, &is_there)| (is_there, rng.policy.uniform(), client))
            .collect();
        order.retain(|(.., client)| resting.binary_search(client).is_err());
        order.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2)));
        selection.extend(order.iter().take(cohort).map(|(.., client)| *client));
        for client in &*selection {
            self.selected[client.index()] = ask.turn.0;
        }
        self.made = Decision { slot, is_there, resting };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Round(round) = feedback {
            let length = round.duration.seconds();
            self.slot = Some(self.slot.map_or(length, |slot| (1.0 - self.alpha) * length + self.alpha * slot));
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
        explanation.array("forecast", self.made.is_there.iter().map(|&is_there| f64::from(u8::from(is_there))));
        explanation.scalar("slot_s", self.made.slot);
        explanation.ids("resting", self.made.resting.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
