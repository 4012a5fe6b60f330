//! Availability of devices, for any client and any time, in any order of queries.
//!
//! | kind | devices |
//! |---|---|
//! | [`always`] | are always available |
//! | [`on_off`] | alternate between available and away, a renewal process |
//! | [`diurnal`] | are available with a probability that depends on the hour of the day |
//! | [`trace`] | follow recorded intervals |
//!
//! All runs of a world share one [`Availability`]. A run queries it through its own [`Cursors`], which keep the stretch
//! of each client's last query. Cursors only save time: an answer does not depend on earlier queries.
//!
//! # Definition
//! Time consists of stretches, alternately available and away, each half open: `[from, until)`. At `until` the next one
//! has begun. Work pauses while its device is away; work that needs exactly the rest of a stretch ends at its end. Work
//! of length 0 ends at once, even on an away device, so that splitting work in two never changes its end.
//!
//! # Cost
//! A cursor is 24 bytes. A query within the kept stretch takes two comparisons; any other takes one step per stretch in
//! between. A client without queries costs nothing but its own laws.

pub mod always;
mod config;
pub mod diurnal;
mod draws;
pub mod on_off;
mod residual;
pub mod trace;

pub use config::{AvailabilityConfig, CATALOGUE};
pub(super) use config::{GroupClients, Offsets};
use config::{OFF_LAW, OFFSET, ON_LAW};

use diurnal::Diurnal;
use draws::Draws;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use fedgenie_core::time::{Span, VirtualTime};
use on_off::OnOff;
use std::cell::Cell;
use trace::Trace;

/// After this many stretches, work that has not ended never does: 2^24.
pub const MOST_CHANGES: u32 = 1 << 24;

/// A time in one state, and how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Whether the device is available.
    pub available: bool,
    /// When this ends, exclusive; [`VirtualTime::MAX`] if it never does.
    pub until: VirtualTime,
}

/// A stretch in the form of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    from: u64,
    until: u64,
    /// Stretches of the client before this one; 0 where the process does not count.
    number: u32,
    available: bool,
}

impl State {
    const fn holds(&self, time: u64) -> bool {
        self.from <= time && (time < self.until || self.until == u64::MAX)
    }

    /// The number of the next stretch.
    fn following(&self) -> u32 {
        self.number.checked_add(1).expect("a device comes and goes fewer than 2^32 times")
    }
}

/// The availability of a group.
#[derive(Clone, Debug)]
enum Process {
    Always,
    OnOff(Box<OnOff>),
    Diurnal(Box<Diurnal>),
    Trace(Trace),
}

/// When the devices of a world are available; see the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Availability {
    clients: usize,
    /// First client and process of each group.
    groups: Vec<(usize, Process)>,
}

impl Availability {
    /// Adds the next clients.
    pub(super) fn push(
        &mut self,
        config: &AvailabilityConfig,
        group: &GroupClients<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), Complaint> {
        let process = config.process(group, notes)?;
        // Neighbouring groups that are always available become one.
        let goes_on = matches!((self.groups.last(), &process), (Some((_, Process::Always)), Process::Always));
        if !goes_on {
            self.groups.push((self.clients, process));
        }
        self.clients += group.count;
        Ok(())
    }

    /// Whether all clients are always available.
    pub fn is_always(&self) -> bool {
        self.groups.iter().all(|(_, process)| matches!(process, Process::Always))
    }

    /// Whether a client belongs to a group that is always available.
    pub fn is_always_there(&self, client: ClientId) -> bool {
        matches!(self.process(client).1, Process::Always)
    }

    /// First client and process of a client's group.
    fn process(&self, client: ClientId) -> &(usize, Process) {
        let group = match self.groups.len() {
            1 => 0,
            _ => self.groups.partition_point(|(first, _)| *first <= client.index()) - 1,
        };
        &self.groups[group]
    }

    /// The cursors of one run. `streams` are those of the world's seed.
    pub fn cursors<'a>(&'a self, streams: &'a Streams) -> Cursors<'a> {
        let clients = if self.is_always() { 0 } else { self.clients };
        Cursors { availability: self, streams, kept: vec![Cell::new(Kept::NOTHING); clients].into() }
    }

    fn walk<'a>(&'a self, streams: &'a Streams, client: ClientId) -> Walk<'a> {
        let (first, process) = self.process(client);
        Walk { process, in_group: client.index() - first, draws: Draws::new(streams, client.0) }
    }
}

/// A client's process, with the random numbers that were opened.
struct Walk<'a> {
    process: &'a Process,
    in_group: usize,
    draws: Draws<'a>,
}

impl Walk<'_> {
    /// The stretch that contains a time; `near` is any stretch of the client's.
    fn find(&mut self, near: Option<State>, time: u64) -> State {
        let (in_group, draws) = (self.in_group, &mut self.draws);
        let mut state = match self.process {
            Process::Always => return State { from: 0, until: u64::MAX, number: 0, available: true },
            Process::Trace(trace) => return trace.at(in_group, time),
            Process::OnOff(process) => {
                let mut state = near.unwrap_or_else(|| process.first(in_group, draws));
                while time < state.from {
                    state = process.previous(in_group, draws, state);
                }
                state
            }
            // Durations depend on where they begin, so that the way back begins at 0.
            Process::Diurnal(process) => {
                near.filter(|state| state.from <= time).unwrap_or_else(|| process.first(in_group, draws))
            }
        };
        while !state.holds(time) {
            state = self.next(state);
        }
        state
    }

    /// The stretch after a given one.
    fn next(&mut self, state: State) -> State {
        let (in_group, draws) = (self.in_group, &mut self.draws);
        match self.process {
            Process::Always => state,
            Process::OnOff(process) => process.next(in_group, draws, state),
            Process::Diurnal(process) => process.next(in_group, draws, state),
            Process::Trace(trace) => trace.at(in_group, state.until),
        }
    }
}

/// The stretch of each client's last query; see the [module](self).
#[derive(Debug)]
pub struct Cursors<'a> {
    availability: &'a Availability,
    streams: &'a Streams,
    /// The stretch of each client's last query; empty if all are always available.
    kept: Box<[Cell<Kept>]>,
}

/// A kept stretch, in one piece so that a query for one of a million clients costs one cache miss.
#[derive(Clone, Copy, Debug)]
struct Kept {
    from: u64,
    /// 0 before the first query.
    until: u64,
    number: u32,
    available: bool,
}

impl Kept {
    const NOTHING: Self = Self { from: 0, until: 0, number: 0, available: false };
}

impl<'a> Cursors<'a> {
    /// Whether all clients are always available.
    pub const fn is_always(&self) -> bool {
        self.kept.is_empty()
    }

    /// Number of clients.
    pub const fn clients(&self) -> usize {
        self.availability.clients
    }

    /// The stretch that contains a time.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn stretch(&self, client: ClientId, time: VirtualTime) -> Stretch {
        if self.kept.is_empty() {
            return Stretch { available: true, until: VirtualTime::MAX };
        }
        let State { until, available, .. } = self.state(client, time.0);
        Stretch { available, until: VirtualTime(until) }
    }

    /// The kept stretch, if any.
    fn kept(&self, client: usize) -> Option<State> {
        let Kept { from, until, number, available } = self.kept[client].get();
        (until > 0).then_some(State { from, until, number, available })
    }

    fn state(&self, client: ClientId, time: u64) -> State {
        match self.kept(client.index()) {
            Some(state) if state.holds(time) => state,
            near => self.seek(client, near, time),
        }
    }

    #[inline(never)]
    fn seek(&self, client: ClientId, near: Option<State>, time: u64) -> State {
        let state = self.availability.walk(self.streams, client).find(near, time);
        let State { from, until, number, available } = state;
        self.kept[client.index()].set(Kept { from, until, number, available });
        state
    }

    /// The stretches from the one that contains a time on, the last of which never ends. Only the first is kept, so
    /// that a look ahead does not slow down the next query for the present.
    fn stretches(&self, client: ClientId, time: VirtualTime) -> impl Iterator<Item = State> + use<'a> {
        let always = State { from: 0, until: u64::MAX, number: 0, available: true };
        let first = if self.kept.is_empty() { always } else { self.state(client, time.0) };
        let (availability, streams) = (self.availability, self.streams);
        let mut walk = None;
        std::iter::successors(Some(first), move |state| {
            let ends = state.until != u64::MAX;
            ends.then(|| walk.get_or_insert_with(|| availability.walk(streams, client)).next(*state))
        })
    }

    /// The stretches from the one that contains a time on, the last of which never ends. The look ahead slows no later
    /// query down.
    pub fn stretches_from(&self, client: ClientId, time: VirtualTime) -> impl Iterator<Item = Stretch> + use<'a> {
        let stretch = |State { until, available, .. }: State| Stretch { available, until: VirtualTime(until) };
        self.stretches(client, time).map(stretch)
    }

    /// Whether a device is available.
    pub fn is_available(&self, client: ClientId, time: VirtualTime) -> bool {
        self.stretch(client, time).available
    }

    /// When a device is available next: `time` itself if it is available then, `None` if never again.
    pub fn next_available(&self, client: ClientId, time: VirtualTime) -> Option<VirtualTime> {
        let found = self.stretches(client, time).find(|state| state.available);
        found.map(|state| VirtualTime(state.from.max(time.0)))
    }

    /// When work that begins at `start` ends, if it pauses while the device is away. Work of length 0 ends at once.
    /// `None` if it never ends: the device does not return, virtual time is over, or [`MOST_CHANGES`] stretches were
    /// not enough.
    pub fn finish(&self, client: ClientId, start: VirtualTime, work: Span) -> Option<VirtualTime> {
        if work == Span::ZERO {
            return Some(start);
        }
        let mut left = work.0;
        for state in self.stretches(client, start).take(MOST_CHANGES as usize).filter(|state| state.available) {
            let from = state.from.max(start.0);
            match from.checked_add(left) {
                Some(end) if end <= state.until => return Some(VirtualTime(end)),
                _ => left -= (state.until - from).min(left),
            }
        }
        None
    }

    /// How long a device is away between two times.
    ///
    /// # Panics
    /// If `end` is before `start`.
    pub fn time_away(&self, client: ClientId, start: VirtualTime, end: VirtualTime) -> Span {
        assert!(start <= end, "virtual time never goes back");
        let between = self.stretches(client, start).take_while(|state| state.from < end.0);
        between
            .filter(|state| !state.available)
            .map(|state| Span(state.until.min(end.0) - state.from.max(start.0)))
            .sum()
    }

    /// Replaces the contents of `out` by the available devices, in ascending order.
    pub fn available_clients(&self, time: VirtualTime, out: &mut Vec<ClientId>) {
        let clients = self.availability.clients;
        out.clear();
        if self.kept.is_empty() {
            out.extend((0..clients).map(ClientId::from_index));
            return;
        }
        // Every client is written, and the next one overwrites it unless it is available: no branch to mispredict.
        out.resize(clients, ClientId(0));
        let mut found = 0;
        for (index, kept) in self.kept.iter().enumerate() {
            let client = ClientId(index as u32);
            let Kept { from, until, available, .. } = kept.get();
            let holds = from <= time.0 && time.0 < until;
            let is_there = if holds { available } else { self.state(client, time.0).available };
            out[found] = client;
            found += usize::from(is_there);
        }
        out.truncate(found);
    }
}

#[cfg(test)]
mod tests;
