//! Evaluation: rankings of held-out items, and losses of clients.

use super::scores::{AskedModel, UserModels};
use super::{HeldOut, Recommendation};
use crate::matrix_factorisation::UserRows;
use crate::ranking::Means;
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::task::{Ask, ModelState, On, PrivateView};
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Purpose;

/// Number of the stream, as documented in the task.
const LOSS: u32 = 8;

/// The rows of users as clients keep them.
struct Rows<'a> {
    task: &'a Recommendation,
    private: PrivateView<'a>,
    /// The item table.
    table: &'a [f32],
}

impl UserRows for Rows<'_> {
    fn write(&self, user: u32, row: &mut [f32]) {
        self.task.write_row(user, &self.private, row);
        if let Some((home, place)) = self.task.source.holdings.home(user) {
            self.task.model.see(self.task.source.holdings.positives_of(home, place), self.table, row);
        }
    }
}

impl UserModels for Rows<'_> {
    fn network(&self, user: u32) -> &[f32] {
        let home = self.task.source.holdings.home(user).map(|(client, _)| client);
        home.map_or(&self.task.first_network, |client| self.task.network_of(client, self.private.get(client)))
    }
}

impl Recommendation {
    /// The measures of one model. Users are scored once for test and validation data that stand together, and those
    /// with trained homes, of which the measures of the model alone are, once with the test data before.
    pub(super) fn measure(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) {
        let mut participants = None;
        for asks in asks.chunk_by_mut(|test, valid| self.source.valid.is_some() && test.goes_with(valid)) {
            match (asks, &self.source.valid) {
                ([test, valid], Some(of_valid)) => {
                    let parts = [&self.source.test, of_valid];
                    participants = Some(self.ranked(self.source.everybody(), parts, effort, [test, valid]));
                }
                ([ask], _) if ask.on == On::Model => {
                    self.measure_model(ask.state, effort, participants.take(), ask.values);
                }
                ([ask], _) => match self.source.asked(ask.on) {
                    Some((users, held_out)) => {
                        let means = self.ranked(users, [held_out], effort, [&mut *ask]);
                        participants = if ask.on == On::Test { Some(means) } else { participants };
                    }
                    None => ask.values.fill(f64::NAN),
                },
                _ => unreachable!("test data go with validation data alone"),
            }
        }
    }

    /// The measures by each of the held-out parts, for which users' items are scored once. Returns the means by the
    /// first part over users whose homes have trained.
    pub(super) fn ranked<const PARTS: usize>(
        &self,
        users: impl Iterator<Item = u32>,
        parts: [&HeldOut; PARTS],
        effort: Effort<'_>,
        asks: [&mut Ask<'_>; PARTS],
    ) -> Means {
        let state = asks[0].state;
        let (weights, table) = self.parts(state.model);
        let rows = Rows { task: self, private: state.private, table };
        let scores = self.model.scores((weights, table), &rows);
        let has_trained = |user: u32| {
            let home = self.source.holdings.home(user);
            home.is_some_and(|(client, _)| state.private.get(client).is_some())
        };
        let (means, participants) = self.source.rank_some(users, parts, &*scores, effort, has_trained);
        for (means, ask) in means.iter().zip(asks) {
            ask.values.copy_from_slice(&means.values);
            ask.weight = means.users as f64;
        }
        participants
    }

    /// The training examples of a client, each with its fixed negative.
    pub(super) fn fixed_examples(&self, client: ClientId) -> Vec<Triplet> {
        let holdings = &self.source.holdings;
        if let Some(triplets) = holdings.triplets(client) {
            return triplets.to_vec();
        }
        let items = self.source.items() as u32;
        let mut draws = self.streams.stream(Purpose::Example, client.0, LOSS);
        let mut triplets = Vec::with_capacity(holdings.positives(client).len());
        for user in 0..holdings.users(client).len() {
            let known = holdings.positives_of(client, user);
            for &positive in known {
                if let Some(negative) = negative(&mut draws, items, known) {
                    triplets.push(Triplet { user: user as u32, positive, negative });
                }
            }
        }
        triplets
    }

    /// Tells the loss of each of a client's training examples.
    pub(super) fn each_loss(&self, client: ClientId, state: &ModelState<'_>, mut tell: impl FnMut(f64)) {
        let rows = self.rows_as_seen(client, state);
        let shared = self.model.losses(self.parts(state.model), false);
        let own = self.own_losses(client, state);
        own.as_ref().unwrap_or(&shared).each(&rows, &self.fixed_examples(client), |loss, _| tell(loss));
    }

    /// The model of a client whose network is its own.
    pub(super) fn own_losses<'a>(&'a self, client: ClientId, state: &ModelState<'a>) -> Option<AskedModel<'a>> {
        let shape = self.model.private_network()?;
        let weights = self.network_of(client, state.private.get(client));
        Some(AskedModel::Few { shape, weights, table: self.parts(state.model).1 })
    }

    /// The rows of a client's users as scores are made of them.
    pub(super) fn rows_as_seen(&self, client: ClientId, state: &ModelState<'_>) -> Vec<f32> {
        let mut rows = Vec::new();
        self.rows_of(client, state.private.get(client), &mut rows);
        let (_, table) = self.parts(state.model);
        for (place, row) in rows.chunks_exact_mut(self.model.dimensions()).enumerate() {
            self.model.see(self.source.holdings.positives_of(client, place), table, row);
        }
        rows
    }
}
