//! Evaluation: rankings of held-out items, references, and losses of clients.

use super::{HeldOut, Recommendation};
use crate::matrix_factorisation::{FactorScores, UserRows};
use crate::ratings::negatives::negative;
use crate::ratings::triplets::Triplet;
use crate::task::{ModelState, On, PrivateView};
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float;
use fedgenie_core::rng::Purpose;

/// Number of the stream, as documented in the task.
const LOSS: u32 = 8;

/// The rows of users as clients keep them.
struct Rows<'a> {
    task: &'a Recommendation,
    private: PrivateView<'a>,
}

impl UserRows for Rows<'_> {
    fn write(&self, user: u32, row: &mut [f32]) {
        self.task.write_row(user, &self.private, row);
    }
}

impl Recommendation {
    /// Writes the row of a user that counts.
    pub(super) fn write_row(&self, user: u32, private: &PrivateView<'_>, row: &mut [f32]) {
        let home = self.source.holdings.home(user);
        match home.and_then(|(client, place)| Some((private.get(client)?, place))) {
            Some((kept, place)) => row.copy_from_slice(&kept[place * row.len()..][..row.len()]),
            None => self.first_row(user, row),
        }
    }

    /// The measures of data; see [`Task::evaluate`](crate::task::Task::evaluate).
    pub(super) fn measure(&self, on: On<'_>, state: &ModelState<'_>, parallel: bool, values: &mut [f64]) -> f64 {
        let Some((users, held_out)) = self.source.asked(on) else {
            values.fill(f64::NAN);
            return 0.0;
        };
        let [weight] = self.ranked(users, [held_out], state, parallel, [values]);
        weight
    }

    /// The measures by each of the held-out parts, for which users' items are scored once. Returns their weights.
    pub(super) fn ranked<const PARTS: usize>(
        &self,
        users: impl Iterator<Item = u32>,
        parts: [&HeldOut; PARTS],
        state: &ModelState<'_>,
        parallel: bool,
        values: [&mut [f64]; PARTS],
    ) -> [f64; PARTS] {
        let rows = Rows { task: self, private: state.private };
        let scores = FactorScores::new(state.model, self.settings.dimensions, &rows);
        let means = self.source.rank(users, parts, &scores, parallel);
        means.iter().zip(values).for_each(|(means, values)| values.copy_from_slice(&means.values));
        means.map(|means| means.users as f64)
    }

    /// Tells the loss of each of a client's training examples.
    pub(super) fn each_loss(&self, client: ClientId, state: &ModelState<'_>, mut tell: impl FnMut(f64)) {
        let (items, d) = (self.source.items() as u32, self.settings.dimensions);
        let mut rows = Vec::new();
        self.rows_of(client, state.private.get(client), &mut rows);
        let mut loss = |Triplet { user, positive, negative }: Triplet| {
            let row = |table: &[f32], number: u32, place: usize| f64::from(table[number as usize * d + place]);
            let model = state.model;
            let term = |at: usize| row(&rows, user, at) * (row(model, positive, at) - row(model, negative, at));
            let x: f64 = (0..d).map(term).sum();
            tell((-x).max(0.0) + float::ln_1p(float::exp(-x.abs())));
        };
        if let Some(triplets) = self.source.holdings.triplets(client) {
            triplets.iter().copied().for_each(loss);
            return;
        }
        let mut draws = self.streams.stream(Purpose::Example, client.0, LOSS);
        let mut begin = 0;
        for (&end, user) in self.source.holdings.ends(client).iter().zip(0..) {
            let known = &self.source.holdings.positives(client)[begin as usize..end as usize];
            for &positive in known {
                if let Some(negative) = negative(&mut draws, items, known) {
                    loss(Triplet { user, positive, negative });
                }
            }
            begin = end;
        }
    }
}
