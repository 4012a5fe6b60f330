//! Candidates at an instant: asked one by one, or listed for a policy that needs all of them.
//!
//! A device is a candidate if it is available and has no job of its own under way. With a million clients most policies
//! look at a few only, so that the list is made when it is first asked for, once per instant.

use crate::population::{Cursors, Levels};
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::VirtualTime;
use std::cell::OnceCell;

/// Clients with a job under way.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Busy {
    #[state(each)]
    bits: Vec<u64>,
    count: usize,
}

impl Busy {
    /// An empty set, for so many clients.
    pub fn nobody(clients: usize) -> Self {
        Self { bits: vec![0; clients.div_ceil(64)], count: 0 }
    }

    /// How many.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether a client is among them.
    pub fn contains(&self, client: ClientId) -> bool {
        self.bits[client.index() / 64] >> (client.index() % 64) & 1 == 1
    }

    /// Adds a client.
    ///
    /// # Panics
    /// If it is busy already.
    pub fn insert(&mut self, client: ClientId) {
        assert!(!self.contains(client), "{client} has one job at a time");
        self.bits[client.index() / 64] |= 1 << (client.index() % 64);
        self.count += 1;
    }

    /// Takes a client out.
    ///
    /// # Panics
    /// If it is not busy.
    pub fn remove(&mut self, client: ClientId) {
        assert!(self.contains(client), "{client} has no job to end");
        self.bits[client.index() / 64] &= !(1 << (client.index() % 64));
        self.count -= 1;
    }
}

/// The clients that can be chosen at an instant, out of those that a server is responsible for.
#[derive(Clone, Copy, Debug)]
pub struct Candidates<'a> {
    scope: &'a [ClientId],
    /// Whether the scope is all clients: a client's index in it is then its number, and needs no memory access.
    is_everyone: bool,
    filter: Option<Filter<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Filter<'a> {
    busy: &'a Busy,
    /// `None` if devices are always available, and have energy.
    devices: Option<Devices<'a>>,
    list: &'a OnceCell<Vec<ClientId>>,
    at_most: usize,
}

/// Devices that come and go, or have batteries, at an instant.
#[derive(Clone, Copy, Debug)]
struct Devices<'a> {
    cursors: &'a Cursors<'a>,
    levels: Option<&'a Levels<'a>>,
    now: VirtualTime,
}

impl Devices<'_> {
    /// Whether the device of a client without a job is there, and its battery allows a job.
    fn admit(&self, client: ClientId) -> bool {
        let is_ready = |levels: &Levels<'_>| levels.is_ready(client, self.now);
        self.cursors.is_available(client, self.now) && self.levels.is_none_or(is_ready)
    }
}

impl<'a> From<&'a [ClientId]> for Candidates<'a> {
    /// Exactly these clients, ascending.
    fn from(scope: &'a [ClientId]) -> Self {
        Self { scope, is_everyone: false, filter: None }
    }
}

impl<'a> Candidates<'a> {
    /// The clients of `scope` (ascending) that are neither busy nor away at an instant, and whose level allows a job.
    /// `list` is the buffer for their list; empty at first.
    pub fn new(
        scope: &'a [ClientId],
        busy: &'a Busy,
        (cursors, levels): (&'a Cursors<'a>, Option<&'a Levels<'a>>),
        now: VirtualTime,
        list: &'a OnceCell<Vec<ClientId>>,
    ) -> Self {
        let comes_and_goes = !cursors.is_always() || levels.is_some();
        let devices = comes_and_goes.then_some(Devices { cursors, levels, now });
        Self::filtered(scope, scope.len() == cursors.clients(), (busy, devices), list)
    }

    /// All clients, from 0, that are not busy: where who can be chosen is known otherwise, `busy` has the others.
    pub fn idle(everyone: &'a [ClientId], busy: &'a Busy, list: &'a OnceCell<Vec<ClientId>>) -> Self {
        Self::filtered(everyone, true, (busy, None), list)
    }

    fn filtered(
        scope: &'a [ClientId],
        is_everyone: bool,
        (busy, devices): (&'a Busy, Option<Devices<'a>>),
        list: &'a OnceCell<Vec<ClientId>>,
    ) -> Self {
        if busy.count() == 0 && devices.is_none() {
            return Self { scope, is_everyone, filter: None };
        }
        let at_most = if is_everyone {
            scope.len() - busy.count()
        } else {
            scope.iter().filter(|&&client| !busy.contains(client)).count()
        };
        Self { scope, is_everyone, filter: Some(Filter { busy, devices, list, at_most }) }
    }

    /// All clients of the server, candidates or not, ascending.
    pub const fn scope(&self) -> &'a [ClientId] {
        self.scope
    }

    /// An upper bound on the number of candidates, at no cost: clients without a job, available or away.
    pub fn at_most(&self) -> usize {
        self.filter.map_or(self.scope.len(), |filter| filter.at_most)
    }

    /// Whether a client of the scope is a candidate.
    fn admits(&self, client: ClientId) -> bool {
        self.filter.is_none_or(|Filter { busy, devices, .. }| {
            !busy.contains(client) && devices.is_none_or(|devices| devices.admit(client))
        })
    }

    /// Whether a client is a candidate.
    pub fn contains(&self, client: ClientId) -> bool {
        let is_here = match self.is_everyone {
            true => client.index() < self.scope.len(),
            false => self.scope.binary_search(&client).is_ok(),
        };
        is_here && self.admits(client)
    }

    /// The client at an index of the scope, if it is a candidate.
    pub fn at(&self, index: usize) -> Option<ClientId> {
        let client = if self.is_everyone { ClientId::from_index(index) } else { self.scope[index] };
        self.admits(client).then_some(client)
    }

    /// How many candidates there are, counted up to `most`.
    pub fn count_to(&self, most: usize) -> usize {
        match self.filter {
            Some(Filter { devices: Some(_), list, .. }) => match list.get() {
                Some(list) => list.len().min(most),
                None => (0..self.scope.len()).filter_map(|index| self.at(index)).take(most).count(),
            },
            _ => self.at_most().min(most),
        }
    }

    /// All candidates, ascending. O(scope) when first asked for at an instant.
    pub fn list(&self) -> &'a [ClientId] {
        match self.filter {
            None => self.scope,
            Some(Filter { busy, devices, list, .. }) => list.get_or_init(|| match devices {
                Some(Devices { cursors, levels, now }) if self.is_everyone => {
                    let mut available = Vec::new();
                    cursors.available_clients(now, &mut available);
                    if busy.count() > 0 {
                        available.retain(|&client| !busy.contains(client));
                    }
                    if let Some(levels) = levels {
                        available.retain(|&client| levels.is_ready(client, now));
                    }
                    available
                }
                _ => self.scope.iter().copied().filter(|&client| self.admits(client)).collect(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(clients: &[u32]) -> Vec<ClientId> {
        clients.iter().copied().map(ClientId).collect()
    }

    #[test]
    fn those_that_are_not_busy_are_found_one_by_one_and_listed() {
        let everyone = ids(&[0, 1, 2, 3, 4]);
        let mut busy = Busy::nobody(5);
        [1, 3].into_iter().map(ClientId).for_each(|client| busy.insert(client));
        let list = OnceCell::new();
        let candidates = Candidates::idle(&everyone, &busy, &list);
        assert_eq!((candidates.at_most(), candidates.count_to(2), candidates.scope()), (3, 2, &everyone[..]));
        let found: Vec<_> = (0..5).map(|index| candidates.at(index)).collect();
        assert_eq!(found, [Some(ClientId(0)), None, Some(ClientId(2)), None, Some(ClientId(4))]);
        assert_eq!(candidates.list(), ids(&[0, 2, 4]));
        assert!(
            candidates.contains(ClientId(2)) && !candidates.contains(ClientId(3)) && !candidates.contains(ClientId(9))
        );
        let nobody = Busy::nobody(5);
        let unused = OnceCell::new();
        let all = Candidates::idle(&everyone, &nobody, &unused);
        assert!(std::ptr::eq(all.list(), all.scope()), "nobody is busy: nothing is listed anew");
    }
}
