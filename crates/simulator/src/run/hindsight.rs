//! The regret in hindsight of a run in rounds: updates of the clients that were not chosen, and the best set of the
//! round. The definition is in [`fedgenie_core::oracle::hindsight`].
//!
//! The candidates are noted when the round's clients are chosen; the others train when the round has closed, from the
//! model that it sent. The run itself sees nothing of it.

use super::engine::{Engine, THE_SERVER};
use super::learning::Aggregated;
use crate::population::LatencyError;
use crate::protocol::RoundRule;
use crate::world::World;
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightRegret};
use fedgenie_core::oracle::utility::contribution::data_quality;
use fedgenie_core::oracle::utility::{HindsightClient, Utility};
use fedgenie_core::rng::Purpose;
use fedgenie_learning::layout::Update;
use std::sync::Arc;

/// A round that is under way.
pub(super) struct OpenRound {
    round: Round,
    number: JobNumber,
    /// The model it sends.
    start: Arc<[f32]>,
    /// All candidates, ascending.
    clients: Vec<ClientId>,
    /// `−κ·T̃` of each.
    speeds: Vec<f64>,
    /// Whether the update of each would be there when the round closes.
    arrives: Vec<bool>,
    /// How many could be chosen.
    cohort: usize,
}

/// The meter of one run.
pub(super) struct HindsightMeter<'w> {
    hindsight: &'w Hindsight,
    rule: &'w RoundRule,
    utility: Utility,
    pub regret: HindsightRegret,
    /// Buffers of the models of the clients that were not chosen.
    updates: Vec<Update>,
    /// `S_i` of the candidates of the last round.
    pub utilities: Vec<f64>,
}

impl<'w> HindsightMeter<'w> {
    /// Before the first round; none where it is not metered.
    pub fn new(world: &'w World, rule: &'w RoundRule) -> Option<Self> {
        let hindsight = world.hindsight.as_ref()?;
        Some(Self {
            hindsight,
            rule,
            utility: Utility::new(hindsight.utility, world.population.len()),
            regret: HindsightRegret::default(),
            updates: Vec::new(),
            utilities: Vec::new(),
        })
    }

    /// Notes the candidates of a round, the latency of each, and the model that is sent.
    pub fn open(
        &self,
        engine: &Engine<'_>,
        (round, number): (Round, JobNumber),
        start: Arc<[f32]>,
    ) -> Result<OpenRound, LatencyError> {
        let clients = engine.candidates(THE_SERVER).list().to_vec();
        let cut = self.rule.cut;
        let (mut speeds, mut arrives) = (Vec::new(), Vec::new());
        for &client in &clients {
            let draw = engine.draw(Purpose::Latency, client, number)?;
            let waited = match cut {
                Some(cut) if self.rule.full_window => cut,
                _ => draw.effective(cut),
            };
            speeds.push(self.hindsight.speed(waited));
            arrives.push(draw.loss.is_none() && cut.is_none_or(|cut| draw.total() <= cut));
        }
        let cohort = self.rule.ask.min(clients.len());
        Ok(OpenRound { round, number, start, clients, speeds, arrives, cohort })
    }

    /// Adds the round that closed with `aggregated`. Returns the cumulative regret.
    ///
    /// # Panics
    /// If a client was selected that was no candidate: a broken invariant.
    pub fn close(
        &mut self,
        open: OpenRound,
        aggregated: &Aggregated<'_, '_>,
        selected: &[ClientId],
        parallel: bool,
    ) -> f64 {
        let sent = aggregated.learning.score_sent(&open.start, parallel);
        let clients = self.clients(&open, aggregated, parallel);
        self.utility.of(sent, &clients, &mut self.utilities);
        let index = |client: &ClientId| open.clients.binary_search(client).expect("selected clients were candidates");
        let mut chosen: Vec<u32> = selected.iter().map(|client| index(client) as u32).collect();
        chosen.sort_unstable();
        self.regret.add(&open.speeds, &self.utilities, open.cohort, &chosen);
        self.utility.remember(sent, chosen.iter().map(|&index| &clients[index as usize]));
        self.regret.cumulative()
    }

    /// All candidates, with the updates of those whose job would end in time.
    fn clients(&mut self, open: &OpenRound, aggregated: &Aggregated<'_, '_>, parallel: bool) -> Vec<HindsightClient> {
        let learning = aggregated.learning;
        let counts = |(&client, &arrives): (&ClientId, &bool)| (arrives && learning.has_data(client)).then_some(client);
        let all: Vec<ClientId> = open.clients.iter().zip(&open.arrives).filter_map(counts).collect();
        let mut updates: Vec<(ClientId, &Update)> = aggregated.updates().collect();
        let is_trained = |client| updates.binary_search_by_key(client, |(client, _)| *client).is_ok();
        let others: Vec<ClientId> = all.iter().filter(|client| !is_trained(client)).copied().collect();
        assert_eq!(all.len(), others.len() + updates.len(), "the clients that arrived are those expected to arrive");
        learning.train_in_hindsight(&open.start, (open.round, open.number), &others, parallel, &mut self.updates);
        updates.extend(others.iter().copied().zip(&self.updates));
        updates.sort_unstable_by_key(|(client, _)| *client);
        let scores = learning.score_updates(&open.start, &updates, parallel);
        let squares = match self.utility.config().needs_data_quality() {
            true => learning.squared_losses(&open.start, &open.clients, parallel),
            false => vec![0.0; open.clients.len()],
        };
        let one = |(&client, squares): (&ClientId, f64)| {
            let update = updates.binary_search_by_key(&client, |(client, _)| *client);
            HindsightClient {
                client,
                update: update.ok().and_then(|index| scores[index]),
                data_quality: data_quality(learning.examples(client), squares),
            }
        };
        open.clients.iter().zip(squares).map(one).collect()
    }
}

#[cfg(test)]
mod tests;
