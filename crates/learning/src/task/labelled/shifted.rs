//! Data that change: the same rows, seen or said or dealt otherwise from a round on.

use super::{Labelled, describe};
use crate::data::Split;
use crate::data::partition::skew::{MOST_SIZES, ShiftOfSome};
use crate::data::partition::{Partition, TestSplit};
use fedgenie_core::id::ClientId;
use std::sync::Arc;

/// The data from a round on.
#[derive(Clone, Debug)]
pub struct Shifted {
    /// The first round, from 1.
    pub round: u32,
    /// Train and test examples.
    pub data: Arc<Split>,
    /// Which training examples each client trains on.
    pub train: Partition,
    /// How the partition divides test examples among its servers, if it does.
    pub test_split: Option<TestSplit>,
    /// The examples with the labels by which test examples are divided among servers, where `data` have others.
    pub divided_by: Option<Arc<Split>>,
    /// Whose examples change, ascending; `None` if all clients' do.
    pub clients: Option<Vec<ClientId>>,
}

impl Labelled {
    /// With other data from rounds on, by ascending round. What clients hold out, and rows for validation, are the same
    /// rows.
    #[must_use]
    pub fn with_shifts(self, shifts: Vec<Shifted>) -> Self {
        let mut of_some = Vec::new();
        for (round, clients) in shifts.iter().filter_map(|shift| Some((shift.round, shift.clients.as_ref()?))) {
            let told = if clients.len() <= MOST_SIZES { &clients[..] } else { &[] };
            let clients_told = told.iter().map(|client| client.0).collect();
            of_some.push(ShiftOfSome { round, count: clients.len(), clients: clients_told });
        }
        let one = |Shifted { round, data, train, test_split, divided_by, .. }| {
            let description = describe(&data.train, &train, &self.aside());
            (round, Self { description, data, partition: train, test_split, divided_by, ..self.clone() })
        };
        let shifts = shifts.into_iter().map(one).collect();
        let mut description = self.description.clone();
        description.skew.iter_mut().for_each(|skew| skew.shifts.clone_from(&of_some));
        Self { shifts, description, ..self }
    }
}
