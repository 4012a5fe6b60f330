//! A policy's decision: the clients of a selection, their weights and work, and the round's deadline.
//!
//! # Definition
//! A selection is a list of clients, and reads and grows like a `Vec<ClientId>`. The other parts are empty unless the
//! policy decides them.
//!
//! *Weights* are coefficients: of the updates that arrive, the model takes in `Σ weight·change`, which is not divided
//! by anything, times the staleness weight of each. The server's rule takes the sum for the mean change, so that
//! `average` multiplies it by its `lr`; `[aggregation] weighting` is not used. `[aggregation] normalise = true` divides
//! by the sum of the weights, and leaves the model as it is where that is 0. The weight of an update that does not
//! arrive is lost. A client that is in the list several times trains once, at its first place; its weights add up, and
//! its work has to be the same each time.
//!
//! *Work* is whole epochs, in the place of `[training] epochs`: the compute phase takes `work/epochs` of its time, to
//! the nearest nanosecond.
//!
//! # Example
//! Two of the candidates, so that the mean of many rounds is that of all clients with equal shares:
//! ```
//! use fedgenie_core::id::ClientId;
//! use fedgenie_simulator::policy::Selection;
//! let mut selection = Selection::default();
//! selection.extend([ClientId(3), ClientId(5)]);
//! selection.weights.extend([0.5, 0.5]);
//! selection.work.extend([1, 4]);
//! assert_eq!(selection.len(), 2);
//! ```

use fedgenie_core::id::ClientId;
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::Span;
use std::ops::{Deref, DerefMut};

/// A policy's decision; see the opening of its file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    clients: Vec<ClientId>,
    /// The coefficient of each client's change, parallel to the clients; empty where `[aggregation]` weighs updates.
    pub weights: Vec<f64>,
    /// The epochs of each client's job, parallel to the clients; empty where all do as many as `[training]` says.
    pub work: Vec<u32>,
    /// After how long the round closes at the latest; none if as the protocol says.
    pub deadline: Option<Span>,
}

impl Selection {
    /// Empties all parts and keeps their memory.
    pub fn clear(&mut self) {
        let Self { clients, weights, work, deadline } = self;
        clients.clear();
        weights.clear();
        work.clear();
        *deadline = None;
    }

    /// Merges the places of a client that is selected several times with weights.
    ///
    /// # Errors
    /// A client whose work differs between its places.
    pub(crate) fn merge(&mut self) -> Result<(), ClientId> {
        let Self { clients, weights, work, deadline: _ } = self;
        let mut order: Vec<usize> = (0..clients.len()).collect();
        order.sort_by_key(|&place| clients[place]);
        // The later places of each client, which the first one takes in.
        let mut is_later = vec![false; clients.len()];
        for places in order.chunk_by(|&one, &next| clients[one] == clients[next]) {
            let (first, others) = (places[0], &places[1..]);
            for &other in others {
                if work.get(first) != work.get(other) {
                    return Err(clients[first]);
                }
                weights[first] += weights[other];
                is_later[other] = true;
            }
        }
        if is_later.contains(&true) {
            retain(clients, &is_later);
            retain(weights, &is_later);
            retain(work, &is_later);
        }
        Ok(())
    }
}

/// Takes out the marked places of a list, which may be empty.
fn retain<T>(list: &mut Vec<T>, is_out: &[bool]) {
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        !is_out[place - 1]
    });
}

impl Deref for Selection {
    type Target = Vec<ClientId>;
    fn deref(&self) -> &Self::Target {
        &self.clients
    }
}

impl DerefMut for Selection {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.clients
    }
}

impl<'a> IntoIterator for &'a Selection {
    type Item = &'a ClientId;
    type IntoIter = std::slice::Iter<'a, ClientId>;
    fn into_iter(self) -> Self::IntoIter {
        self.clients.iter()
    }
}

impl Stateful for Selection {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { clients, weights, work, deadline } = self;
        state.field(clients);
        state.field(weights);
        state.field(work);
        state.field(deadline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(clients: &[u32], weights: &[f64], work: &[u32]) -> Selection {
        let clients = clients.iter().map(|&client| ClientId(client)).collect();
        Selection { clients, weights: weights.to_vec(), work: work.to_vec(), deadline: None }
    }

    #[test]
    fn a_client_drawn_several_times_has_the_sum_of_its_weights_at_its_first_place() {
        let mut drawn = of(&[4, 2, 4, 7, 2, 4], &[1.0, 0.5, 2.0, -1.0, 0.25, 4.0], &[3, 1, 3, 2, 1, 3]);
        drawn.merge().unwrap();
        assert_eq!(drawn, of(&[4, 2, 7], &[7.0, 0.75, -1.0], &[3, 1, 2]));
        let mut without_work = of(&[1, 1], &[0.5, 0.5], &[]);
        without_work.merge().unwrap();
        assert_eq!(without_work, of(&[1], &[1.0], &[]));
    }

    #[test]
    fn a_client_works_once() {
        assert_eq!(of(&[0, 6, 6], &[1.0; 3], &[1, 1, 2]).merge(), Err(ClientId(6)));
    }
}
