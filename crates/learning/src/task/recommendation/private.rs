//! Private state: the rows of clients' users, the weights of their networks, and rows that the server made for them.
//!
//! # Layout
//! First the users' rows, ascending by user, then the network's weights, then the server's rows, which only some
//! recommenders have.

use super::{Recommendation, TENSORS};
use crate::model::weights::Tensor;
use crate::task::{PrivateState, PrivateView};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;

impl PrivateState for Recommendation {
    fn len(&self, client: ClientId) -> usize {
        self.kept_len(client)
    }

    fn init(&self, client: ClientId, _streams: &Streams, private: &mut [f32]) {
        let (rows, network) = private.split_at_mut(self.rows_len(client));
        self.first_rows(client, rows);
        network.copy_from_slice(&self.first_network);
    }

    fn in_file(&self, private: &PrivateView<'_>) -> Vec<Tensor> {
        let (users, d) = (self.source.data.user_ids.len(), self.model.dimensions());
        let mut values = vec![0.0; users * d];
        for (user, row) in (0..).zip(values.chunks_exact_mut(d)) {
            self.write_row(user, private, row);
        }
        let rows = Tensor { name: TENSORS[1].to_owned(), shape: vec![users, d], values };
        [rows].into_iter().chain(self.private_networks(private)).collect()
    }
}

impl Recommendation {
    /// The row that a user begins with.
    fn first_row(&self, user: u32, row: &mut [f32]) {
        match &self.start {
            Some(start) => row.copy_from_slice(&start.users[user as usize * row.len()..][..row.len()]),
            None => self.model.first_user(user, self.source.data.user_ids.len(), &self.streams, row),
        }
    }

    /// The rows that a client's users begin with.
    fn first_rows(&self, client: ClientId, rows: &mut [f32]) {
        let rows = rows.chunks_exact_mut(self.model.dimensions());
        self.source.holdings.users(client).iter().zip(rows).for_each(|(&user, row)| self.first_row(user, row));
    }

    /// The rows of a client's users.
    pub(super) fn rows_of(&self, client: ClientId, kept: Option<&[f32]>, rows: &mut Vec<f32>) {
        rows.clear();
        match kept {
            Some(kept) => rows.extend_from_slice(&kept[..self.rows_len(client)]),
            None => {
                rows.resize(self.rows_len(client), 0.0);
                self.first_rows(client, rows);
            }
        }
    }

    /// Writes the row of a user that counts.
    pub(super) fn write_row(&self, user: u32, private: &PrivateView<'_>, row: &mut [f32]) {
        let home = self.source.holdings.home(user);
        match home.and_then(|(client, place)| Some((private.get(client)?, place))) {
            Some((kept, place)) => row.copy_from_slice(&kept[place * row.len()..][..row.len()]),
            None => self.first_row(user, row),
        }
    }

    /// How many numbers the rows of a client's users are.
    pub(super) fn rows_len(&self, client: ClientId) -> usize {
        self.source.holdings.users(client).len() * self.model.dimensions()
    }

    /// How many numbers a client keeps, without the rows that it is pulled to.
    pub(super) fn kept_len(&self, client: ClientId) -> usize {
        self.rows_len(client) + self.first_network.len()
    }

    /// The weights of a client's own network.
    pub(super) fn network_of<'a>(&'a self, client: ClientId, kept: Option<&'a [f32]>) -> &'a [f32] {
        kept.map_or(&self.first_network, |kept| &kept[self.rows_len(client)..self.kept_len(client)])
    }

    /// The networks of all users, as files have them: each that of the user's home.
    fn private_networks(&self, private: &PrivateView<'_>) -> Vec<Tensor> {
        let Some(shape) = self.model.private_network() else { return Vec::new() };
        let users = self.source.data.user_ids.len();
        let network = |user: u32| {
            let home = self.source.holdings.home(user).map(|(client, _)| client);
            home.map_or(&*self.first_network, |client| self.network_of(client, private.get(client)))
        };
        let mut begin = 0;
        let one = |(name, of_one): (String, Vec<usize>)| {
            let count: usize = of_one.iter().product();
            let range = begin..begin + count;
            begin += count;
            let mut values = Vec::with_capacity(users * count);
            (0..users as u32).for_each(|user| values.extend_from_slice(&network(user)[range.clone()]));
            let shape = [users].into_iter().chain(of_one).collect();
            Tensor { name: format!("users.{name}"), shape, values }
        };
        shape.tensors().into_iter().map(one).collect()
    }
}
