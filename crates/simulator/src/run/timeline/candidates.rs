//! The clients of each server, and its list of candidates now.
//!
//! A list is made when a policy first asks for it, and stands until it can be another one: a client of its server
//! begins or ends a job, or the clock moves where devices come and go.

use crate::policy::{Busy, Candidates};
use crate::population::{Cursors, Levels};
use crate::protocol::Rule;
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId};
use fedgenie_core::time::VirtualTime;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};

/// The clients of one server.
struct Scope<'w> {
    members: Cow<'w, [ClientId]>,
    /// Its candidates, once a policy has asked for their list.
    list: OnceCell<Vec<ClientId>>,
}

/// The clients of every server that selects.
pub(in crate::run) struct Scopes<'w> {
    scopes: Vec<Scope<'w>>,
    /// The server of each client; empty if there is one server.
    server_of: Vec<EdgeId>,
    /// Whether candidates were handed out since all lists were empty, so that events without a selection cost nothing.
    is_asked: Cell<bool>,
}

impl<'w> Scopes<'w> {
    pub fn new(world: &'w World) -> Self {
        let clients = world.population.len();
        let can_be_chosen =
            |client: &ClientId| world.task.as_ref().is_none_or(|task| task.describe().is_candidate(*client));
        let scope = |members: Cow<'w, [ClientId]>| {
            let members = match members.iter().all(can_be_chosen) {
                true => members,
                false => members.iter().copied().filter(can_be_chosen).collect(),
            };
            Scope { members, list: OnceCell::new() }
        };
        let Rule::Hierarchical(rule) = &world.protocol.rule else {
            let everyone: Vec<ClientId> = (0..clients).map(ClientId::from_index).collect();
            return Self { scopes: vec![scope(everyone.into())], server_of: Vec::new(), is_asked: Cell::new(false) };
        };
        let mut server_of = vec![EdgeId(0); clients];
        for (server, members) in rule.members.iter().enumerate() {
            let server = EdgeId::from_index(server);
            members.iter().for_each(|client| server_of[client.index()] = server);
        }
        let scopes = rule.members.iter().map(|members| scope(members.into())).collect();
        Self { scopes, server_of, is_asked: Cell::new(false) }
    }

    /// All clients of a server that can ever be selected, ascending.
    pub fn members(&self, server: EdgeId) -> &[ClientId] {
        &self.scopes[server.index()].members
    }

    /// The server of a client.
    pub fn server_of(&self, client: ClientId) -> EdgeId {
        self.server_of.get(client.index()).copied().unwrap_or(EdgeId(0))
    }

    /// The clients of a server that are neither busy nor away, and whose level allows a job.
    pub fn candidates<'a>(
        &'a self,
        server: EdgeId,
        busy: &'a Busy,
        devices: (&'a Cursors<'a>, Option<&'a Levels<'a>>),
        now: VirtualTime,
    ) -> Candidates<'a> {
        self.is_asked.set(true);
        let Scope { members, list } = &self.scopes[server.index()];
        Candidates::new(members, busy, devices, now, list)
    }

    /// A client has begun or ended a job.
    pub fn job_changed(&mut self, client: ClientId) {
        let server = self.server_of(client);
        self.scopes[server.index()].list.take();
    }

    /// Devices may have come or gone.
    pub fn clock_moved(&mut self) {
        if self.is_asked.replace(false) {
            self.scopes.iter_mut().for_each(|scope| drop(scope.list.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::recorder::NoSink;
    use crate::run::tests;
    use crate::run::timeline::engine::{Engine, Event, Timer};
    use crate::run::timeline::jobs::{Names, Terms};
    use crate::world::World;
    use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round, Turn};
    use fedgenie_core::record::Outcome;
    use fedgenie_core::time::Span;

    fn world(more: &str) -> World {
        let six = r#"
            population.clients = 6
            population.latency = { download.constant = "1 s", compute.constant = "1 s", upload.constant = "1 s" }
            task.none = {}
            protocol.hierarchical = { edges = 2, cohort = 1 }
        "#;
        tests::world(six, more)
    }

    fn first_job(client: u32) -> Names {
        Names {
            client: ClientId(client),
            turn: Turn(1),
            round: Round(1),
            number: JobNumber(1),
            terms: Terms::default(),
            selected: 1,
        }
    }

    fn listed(engine: &Engine<'_>, server: u32) -> Vec<u32> {
        engine.candidates(EdgeId(server)).list().iter().map(|client| client.0).collect()
    }

    /// Every list is asked for twice, so that a list kept for too long or for another server would be seen.
    #[test]
    fn each_server_has_a_list_of_its_own_that_follows_its_jobs() {
        let world = world("");
        let mut engine = Engine::new(&world, Box::new(NoSink));
        let both = |engine: &Engine<'_>| [listed(engine, 0), listed(engine, 1)];
        assert_eq!(both(&engine), [vec![0, 1, 2], vec![3, 4, 5]]);
        let first = engine.prepare(first_job(1)).unwrap();
        engine.begin(first, None, 2).unwrap();
        assert_eq!(both(&engine), [vec![0, 2], vec![3, 4, 5]]);
        let second = engine.prepare(first_job(3)).unwrap();
        engine.begin(second, None, 2).unwrap();
        assert_eq!(both(&engine), [vec![0, 2], vec![4, 5]]);
        while engine.next().unwrap() != Some(Event::Delivered(first)) {}
        assert_eq!(both(&engine), [vec![0, 2], vec![4, 5]], "a job that is over keeps its client until it is released");
        engine.conclude(first, Outcome::Arrived).unwrap();
        engine.release(ClientId(1));
        assert_eq!(both(&engine), [vec![0, 1, 2], vec![4, 5]]);
    }

    /// Devices are on for 3 s and off for 2 s on average; a list is compared with the answers for single clients, which
    /// are not kept.
    #[test]
    fn lists_follow_the_clock() {
        let world = world(
            "population.interrupted = \"pause\"\n\
             population.availability.on-off = { on = { exponential = { mean = \"3 s\" } }, \
             off = { exponential = { mean = \"2 s\" } } }",
        );
        let mut engine = Engine::new(&world, Box::new(NoSink));
        let (mut changes, mut before) = (0, [Vec::new(), Vec::new()]);
        for _ in 0..200 {
            for server in 0..2 {
                let candidates = engine.candidates(EdgeId(server));
                let single = (0..3).filter_map(|index| candidates.at(index)).map(|client| client.0);
                let counted = [1, 2, 9].map(|most| candidates.count_to(most));
                let (single, list) = (single.collect::<Vec<_>>(), listed(&engine, server));
                assert_eq!(list, single, "of server {server} at {}", engine.now());
                let counts = [1, 2, 9].map(|most| candidates.count_to(most));
                assert!(counted == counts && counts == [1, 2, 9].map(|most| list.len().min(most)), "{counted:?}");
                changes += u32::from(list != before[server as usize]);
                before[server as usize] = list;
            }
            engine.set_timer(Timer::Wake(EdgeId(0)), engine.now() + Span(300_000_000));
            assert_eq!(engine.next().unwrap(), Some(Event::Rang(Timer::Wake(EdgeId(0)))));
        }
        assert!(changes > 20, "devices come and go: {changes}");
    }
}
