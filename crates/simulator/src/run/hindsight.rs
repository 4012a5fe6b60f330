//! The regret in hindsight of a run in rounds: updates of the clients that were not chosen, and the best set of the
//! round. The definition is in [`fedgenie_core::oracle::hindsight`].
//!
//! The candidates are noted when the round's clients are chosen; the others train when the round has closed, from the
//! model that it sent. The run itself sees nothing of it.

mod sets;

use super::engine::{Engine, THE_SERVER};
use super::learning::{Aggregated, Learning, Snapshot};
use crate::population::LatencyError;
use crate::protocol::RoundRule;
use crate::recorder::HindsightRound;
use crate::world::World;
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::oracle::hindsight::{Hindsight, HindsightRegret, Judgement, SetSize};
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
    /// What aggregations begin with, where a utility is of sets.
    before: Option<Snapshot>,
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
            utility: Utility::new(hindsight.utility.clone(), world.population.len()),
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
        learning: &Learning<'_>,
    ) -> Result<OpenRound, LatencyError> {
        let clients = engine.candidates(THE_SERVER).list().to_vec();
        let cut = self.rule.cut;
        let (mut speeds, mut arrives) = (Vec::new(), Vec::new());
        for &client in &clients {
            let (draw, _) = engine.job(Purpose::Latency, client, number)?;
            let waited = match cut {
                Some(cut) if self.rule.full_window => cut,
                _ => draw.effective(cut),
            };
            speeds.push(self.hindsight.speed(waited));
            arrives.push(draw.loss.is_none() && cut.is_none_or(|cut| draw.total() <= cut));
        }
        let cohort = self.rule.ask.min(clients.len());
        let before = self.utility.config().of_sets().map(|_| learning.snapshot());
        Ok(OpenRound { round, number, start: learning.model(0), clients, speeds, arrives, cohort, before })
    }

    /// Whether a round is judged.
    pub fn is_due(&self, round: Round) -> bool {
        round.0.is_multiple_of(self.hindsight.every)
    }

    /// Adds the round that closed with `aggregated`. Returns the cumulative regret, and what was found.
    ///
    /// # Panics
    /// If a client was selected that was no candidate: a broken invariant.
    pub fn close(
        &mut self,
        open: OpenRound,
        aggregated: &Aggregated<'_, '_>,
        selected: &[ClientId],
        parallel: bool,
    ) -> (f64, HindsightRound) {
        let index = |client: &ClientId| open.clients.binary_search(client).expect("selected clients were candidates");
        let mut chosen: Vec<u32> = selected.iter().map(|client| index(client) as u32).collect();
        chosen.sort_unstable();
        let learning = aggregated.learning;
        let mut imagined = std::mem::take(&mut self.updates);
        let updates = imagine(&open, aggregated, parallel, &mut imagined);
        if let Some(weights) = self.hindsight.utility.of_sets() {
            let judgement = self.judge_sets(&open, learning, &updates, weights, &chosen, parallel);
            let is_bounded = self.hindsight.size == SetSize::AtMost || chosen.len() == open.cohort;
            self.regret.add_judged(judgement, is_bounded);
        } else {
            let sent = learning.score_sent(&open.start, parallel);
            let clients = self.clients(&open, learning, &updates, parallel);
            self.utility.of(sent, &clients, &mut self.utilities);
            self.regret.add(&open.speeds, &self.utilities, open.cohort, self.hindsight.size, &chosen);
            self.utility.remember(sent, chosen.iter().map(|&index| &clients[index as usize]));
        }
        drop(updates);
        self.updates = imagined;
        let Judgement { best, best_value, own_value } = self.regret.last();
        let best = best.iter().map(|&index| open.clients[index as usize]).collect();
        (self.regret.cumulative(), HindsightRound { best, best_value: *best_value, own_value: *own_value })
    }

    /// All candidates, with the scores of the updates of those whose job would end in time.
    fn clients(
        &self,
        open: &OpenRound,
        learning: &Learning<'_>,
        updates: &[(ClientId, &Update)],
        parallel: bool,
    ) -> Vec<HindsightClient> {
        let scores = learning.score_updates(&open.start, updates, parallel);
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

/// The updates of all candidates whose job would end in time, ascending: those of the round, and `others` of clients
/// that were not asked.
fn imagine<'a>(
    open: &OpenRound,
    aggregated: &'a Aggregated<'_, '_>,
    parallel: bool,
    others: &'a mut Vec<Update>,
) -> Vec<(ClientId, &'a Update)> {
    let learning = aggregated.learning;
    let counts = |(&client, &arrives): (&ClientId, &bool)| (arrives && learning.has_data(client)).then_some(client);
    let all: Vec<ClientId> = open.clients.iter().zip(&open.arrives).filter_map(counts).collect();
    let mut updates: Vec<(ClientId, &Update)> = aggregated.updates().collect();
    let is_trained = |client| updates.binary_search_by_key(client, |(client, _)| *client).is_ok();
    let unasked: Vec<ClientId> = all.iter().filter(|client| !is_trained(client)).copied().collect();
    assert_eq!(all.len(), unasked.len() + updates.len(), "the clients that arrived are those expected to arrive");
    learning.train_in_hindsight(&open.start, (open.round, open.number), &unasked, parallel, others);
    updates.extend(unasked.iter().copied().zip(&*others));
    updates.sort_unstable_by_key(|(client, _)| *client);
    updates
}

#[cfg(test)]
mod tests;
