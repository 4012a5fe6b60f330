//! What clients keep to themselves: one table for a run, with entries for those who have trained.

use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use std::sync::Arc;

/// What every client keeps. A client without an entry keeps what its task starts it with.
#[derive(Clone, Debug, Default, Stateful)]
pub struct PrivateTable {
    /// Empty where nobody keeps anything.
    #[state(each)]
    kept: Vec<Option<Arc<[f32]>>>,
}

impl PrivateTable {
    /// Nobody has trained yet.
    pub fn new(clients: usize) -> Self {
        Self { kept: vec![None; clients] }
    }

    /// What a client keeps, if an update of it was aggregated.
    pub fn get(&self, client: ClientId) -> Option<&Arc<[f32]>> {
        self.kept.get(client.index())?.as_ref()
    }

    /// A client keeps something else from now on.
    ///
    /// # Panics
    /// If there is no such client, or nobody keeps anything.
    pub fn set(&mut self, client: ClientId, values: &[f32]) {
        self.put(client, values.into());
    }

    /// The same of values that others may share.
    ///
    /// # Panics
    /// As [`PrivateTable::set`].
    pub fn put(&mut self, client: ClientId, values: Arc<[f32]>) {
        self.kept[client.index()] = Some(values);
    }

    /// Clients with an entry, and what they keep, ascending.
    pub fn entries(&self) -> impl Iterator<Item = (ClientId, &[f32])> {
        let clients = (0..self.kept.len()).map(ClientId::from_index);
        clients.filter_map(|client| Some((client, &**self.get(client)?)))
    }
}

/// What clients would keep if some of them had other values.
#[derive(Clone, Copy, Debug)]
pub struct PrivateView<'a> {
    /// What they keep.
    pub table: &'a PrivateTable,
    /// What some would keep instead, ascending by client.
    pub instead: &'a [(ClientId, &'a [f32])],
}

impl<'a> PrivateView<'a> {
    /// The table as it is.
    pub const fn of(table: &'a PrivateTable) -> Self {
        Self { table, instead: &[] }
    }

    /// What a client keeps; none if that is what its task starts it with.
    pub fn get(&self, client: ClientId) -> Option<&'a [f32]> {
        match self.instead.binary_search_by_key(&client, |(client, _)| *client) {
            Ok(index) => Some(self.instead[index].1),
            Err(_) => self.table.get(client).map(|kept| &**kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_has_other_values_for_some() {
        let mut table = PrivateTable::new(4);
        table.set(ClientId(1), &[1.0]);
        table.set(ClientId(3), &[3.0]);
        let instead: [(ClientId, &[f32]); 2] = [(ClientId(0), &[7.0]), (ClientId(1), &[8.0])];
        let view = PrivateView { table: &table, instead: &instead };
        let of = |view: PrivateView<'_>| [0, 1, 2, 3].map(|client| view.get(ClientId(client)).map(|kept| kept[0]));
        assert_eq!(of(view), [Some(7.0), Some(8.0), None, Some(3.0)]);
        assert_eq!(of(PrivateView::of(&table)), [None, Some(1.0), None, Some(3.0)]);
        let entries: Vec<_> = table.entries().collect();
        assert_eq!(entries, [(ClientId(1), &[1.0][..]), (ClientId(3), &[3.0][..])]);
        assert_eq!(PrivateTable::default().get(ClientId(9)), None);
    }
}
