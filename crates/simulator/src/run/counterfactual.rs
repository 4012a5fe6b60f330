//! The regret in hindsight of a run in rounds: what the others would have returned, and what the best set would have been.
//! The definition is in [`fedgenie_core::oracle::counterfactual`].
//!
//! Who could be chosen is noted when the round's clients are; the others train when the round has closed, from the model that
//! it sent. The run itself sees nothing of it.

use super::engine::Engine;
use super::learning::{Learning, Trained};
use crate::population::LatencyError;
use crate::protocol::RoundRule;
use crate::recorder::Sink;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::oracle::counterfactual::{Counterfactual, Hindsight};
use fedgenie_core::oracle::utility::contribution::data_quality;
use fedgenie_core::oracle::utility::{Candidate, Utility};
use fedgenie_core::rng::Purpose;
use fedgenie_learning::trainer::Update;
use std::sync::Arc;

/// A round that is under way.
struct Open {
    round: Round,
    /// The model it sends.
    start: Arc<[f32]>,
    /// Everybody who could be chosen, ascending.
    clients: Vec<ClientId>,
    /// `−κ·T̃` of each.
    speeds: Vec<f64>,
    /// Whether the update of each would be there when the round closes.
    arrives: Vec<bool>,
    /// How many could be chosen.
    cohort: usize,
}

/// The meter of one run.
pub(super) struct WhatIf<'w> {
    config: &'w Counterfactual,
    rule: &'w RoundRule,
    utility: Utility,
    pub hindsight: Hindsight,
    open: Option<Open>,
    /// Buffers of the models of those who were not chosen.
    updates: Vec<Update>,
    /// `S_i` of the candidates of the last round.
    pub utilities: Vec<f64>,
}

impl<'w> WhatIf<'w> {
    /// Before the first round; none where it is not metered.
    pub fn new(world: &'w World, rule: &'w RoundRule) -> Option<Self> {
        let config = world.counterfactual.as_ref()?;
        Some(Self {
            config,
            rule,
            utility: Utility::new(config.utility, world.population.len()),
            hindsight: Hindsight::default(),
            open: None,
            updates: Vec::new(),
            utilities: Vec::new(),
        })
    }

    /// Notes who could be chosen for a round, what each would take, and the model that is sent.
    pub fn open<S: Sink>(
        &mut self,
        engine: &Engine<'_, S>,
        round: Round,
        start: Arc<[f32]>,
    ) -> Result<(), LatencyError> {
        let clients = engine.candidates(None).list().to_vec();
        let cut = self.rule.cut;
        let (mut speeds, mut arrives) = (Vec::new(), Vec::new());
        for &client in &clients {
            let draw = engine.draw(Purpose::Latency, client, round)?;
            let waited = match cut {
                Some(cut) if self.rule.full_window => cut,
                _ => draw.effective(cut),
            };
            speeds.push(self.config.speed(waited));
            arrives.push(draw.loss.is_none() && cut.is_none_or(|cut| draw.total() <= cut));
        }
        let cohort = self.rule.ask.min(clients.len());
        self.open = Some(Open { round, start, clients, speeds, arrives, cohort });
        Ok(())
    }

    /// Judges the round that closed; `trained` are those whose updates were aggregated, which still lie in `learning`. Returns
    /// the cumulative regret.
    ///
    /// # Panics
    /// If no round was opened, or somebody was selected who could not be chosen: broken invariants.
    pub fn close(
        &mut self,
        learning: &Learning<'_>,
        trained: &[Trained],
        selected: &[ClientId],
        parallel: bool,
    ) -> f64 {
        let open = self.open.take().expect("a round that closes was opened");
        let sent = learning.test(&open.start, parallel);
        let candidates = self.candidates(&open, learning, trained, parallel);
        self.utility.of(sent, &candidates, &mut self.utilities);
        let place = |client: &ClientId| open.clients.binary_search(client).expect("who was selected could be") as u32;
        let mut chosen: Vec<u32> = selected.iter().map(place).collect();
        chosen.sort_unstable();
        self.hindsight.judge(&open.speeds, &self.utilities, open.cohort, &chosen);
        self.utility.remember(sent, chosen.iter().map(|&place| &candidates[place as usize]));
        self.hindsight.cumulative()
    }

    /// Everybody who could be chosen, with the updates of those for whom the round would not have waited in vain.
    fn candidates(
        &mut self,
        open: &Open,
        learning: &Learning<'_>,
        trained: &[Trained],
        parallel: bool,
    ) -> Vec<Candidate> {
        let counts = |(&client, &arrives): (&ClientId, &bool)| (arrives && learning.has_data(client)).then_some(client);
        let all: Vec<ClientId> = open.clients.iter().zip(&open.arrives).filter_map(counts).collect();
        let is_trained = |client| trained.binary_search_by_key(client, |trained| trained.client).is_ok();
        let others: Vec<ClientId> = all.iter().filter(|client| !is_trained(client)).copied().collect();
        assert_eq!(all.len(), others.len() + trained.len(), "who arrived is who would have arrived");
        learning.try_out(&open.start, open.round, &others, parallel, &mut self.updates);
        let mut updates: Vec<(ClientId, &Update)> =
            learning.updates(trained).chain(others.iter().copied().zip(&self.updates)).collect();
        updates.sort_unstable_by_key(|(client, _)| *client);
        let tried = learning.judge(&open.start, &updates, parallel);
        let squares = match self.utility.config().needs_data_quality() {
            true => learning.squared_losses(&open.start, &open.clients, parallel),
            false => vec![0.0; open.clients.len()],
        };
        let one = |(&client, squares): (&ClientId, f64)| {
            let update = updates.binary_search_by_key(&client, |(client, _)| *client);
            Candidate {
                client,
                update: update.ok().and_then(|place| tried[place]),
                data_quality: data_quality(learning.examples(client), squares),
            }
        };
        open.clients.iter().zip(squares).map(one).collect()
    }
}

#[cfg(test)]
mod tests;
