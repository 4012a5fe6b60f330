//! Clients, edge servers, cloud: see [`crate::protocol::hierarchical`].

use super::RunError;
use super::accounts::Cost;
use super::engine::{Engine, Happening, Timer};
use super::jobs::JobId;
use super::learning::{Learning, Trained, Work};
use super::server::{Question, RoundFacts, Server, Tally, plain_view, report_training};
use crate::policy::{Candidates, Feedback, JobReport, Policy, RoundReport, ServerView, Waited};
use crate::population::LatencyError;
use crate::protocol::HierarchicalRule;
use crate::recorder::Sink;
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::kernel::Handle;
use fedgenie_core::law::Law;
use fedgenie_core::record::{Outcome, Phase, Record};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};
use std::sync::Arc;

/// What an edge server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It takes no part in the cloud's round, or no longer.
    Idle,
    /// The model is on its way from the cloud.
    Down(Handle),
    /// None of its clients can be chosen.
    Waiting,
    /// Its round is open.
    Open,
    /// Its model is on its way to the cloud.
    Up(Handle),
}

/// An edge server.
struct Edge {
    stage: Stage,
    /// Its rounds since the run began.
    round: Round,
    /// How many of them are left in this round of the cloud.
    left: u32,
    opened: VirtualTime,
    model: Option<Arc<[f32]>>,
    selection: Vec<ClientId>,
    current: Vec<JobId>,
    arrived: Vec<JobId>,
    /// What the model that the edge server has cost its clients.
    invested: Cost,
    /// How long its model travels to the cloud in this round.
    upload: Span,
}

/// The state of the protocol.
pub(super) struct Hierarchy<'w> {
    rule: &'w HierarchicalRule,
    edges: Vec<Edge>,
    /// The edge server of each client.
    edge_of: Vec<u32>,
    /// Each client's share of its edge server's data.
    shares: Vec<f64>,
    cloud: Option<Box<dyn Policy>>,
    /// Edge servers, as the cloud's policy sees them.
    everyone: Vec<ClientId>,
    edge_sizes: Vec<u32>,
    edge_shares: Vec<f64>,
    edge_counts: Vec<u32>,

    // Of the cloud's round under way.
    chosen: Vec<ClientId>,
    returned: Vec<(u32, Span)>,
    tally: Tally,
}

impl<'w> Hierarchy<'w> {
    pub fn new(world: &World, rule: &'w HierarchicalRule, cloud: Option<Box<dyn Policy>>) -> Self {
        let clients = world.population.len();
        let (mut edge_of, mut shares) = (vec![0; clients], vec![0.0; clients]);
        let mut edge_shares = Vec::new();
        for (edge, members) in rule.members.iter().enumerate() {
            let total: f64 = members.iter().map(|client| world.shares[client.index()]).sum();
            edge_shares.push(total);
            for client in members {
                edge_of[client.index()] = edge as u32;
                shares[client.index()] = world.shares[client.index()] / total;
            }
        }
        let sizes = world.population.data_sizes();
        let size = |members: &Vec<ClientId>| members.iter().map(|client| sizes[client.index()]).sum();
        let edge = |_| Edge {
            stage: Stage::Idle,
            round: Round(0),
            left: 0,
            opened: VirtualTime::START,
            model: None,
            selection: Vec::new(),
            current: Vec::new(),
            arrived: Vec::new(),
            invested: Cost::default(),
            upload: Span::ZERO,
        };
        let edges = rule.members.len();
        Self {
            rule,
            edges: (0..edges).map(edge).collect(),
            edge_of,
            shares,
            cloud,
            everyone: (0..edges).map(ClientId::from_index).collect(),
            edge_sizes: rule.members.iter().map(size).collect(),
            edge_shares,
            edge_counts: vec![0; edges],
            chosen: Vec::new(),
            returned: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Plays one round of the cloud.
    pub fn step<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        let opened = engine.now();
        server.round = server.round.next();
        self.returned.clear();
        self.tally.clear();
        self.open_cloud(engine, server)?;
        while self.returned.len() < self.chosen.len() {
            let Some(happening) = engine.next()? else { return Err(RunError::Deserted { time: engine.now() }) };
            match happening {
                Happening::Progress | Happening::Lost(_) => {}
                Happening::Travelled(edge) => self.travelled(engine, server, edge, opened)?,
                Happening::Delivered(id) => {
                    engine.conclude(id, Outcome::Arrived)?;
                    let edge = self.edge_of[engine.jobs[id].client.index()];
                    let state = &mut self.edges[edge as usize];
                    state.arrived.push(id);
                    if state.arrived.len() == state.current.len() {
                        engine.clear_timer(Timer::Boundary(edge));
                        self.close_edge(engine, server, edge)?;
                    }
                }
                Happening::Rang(Timer::Boundary(edge)) => self.close_edge(engine, server, edge)?,
                Happening::Rang(Timer::Wake(edge)) => self.open_edge(engine, server, edge)?,
                Happening::Rang(Timer::Cloud) => break,
                Happening::Rang(_) => {}
            }
        }
        engine.clear_timer(Timer::Cloud);
        self.close_cloud(engine, server, opened)
    }

    /// Chooses edge servers and sends them the model.
    fn open_cloud<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &Server<'_>) -> Result<(), RunError> {
        let (world, round) = (engine.world, server.round);
        match &mut self.cloud {
            None => self.chosen.clone_from(&self.everyone),
            Some(policy) => {
                let question = Question {
                    label: "of the cloud",
                    number: round,
                    // Edge servers ask under their own numbers, from 0.
                    server: u32::MAX,
                    now: engine.now(),
                    cohort: self.rule.edges_per_round,
                    take: self.rule.edges_per_round,
                    candidates: Candidates::from(&*self.everyone),
                    view: plain_view(&self.edge_sizes, &self.edge_shares, &self.edge_counts),
                };
                question.ask(world, &mut **policy, &mut self.chosen)?;
            }
        }
        let edges: Vec<u32> = self.chosen.iter().map(|edge| edge.0).collect();
        engine.note(&Record::CloudOpened { round, time: engine.now(), edges: &edges })?;
        for &edge in &edges {
            self.edge_counts[edge as usize] += 1;
            let [download, upload] = link(world, edge, round)?;
            let handle = engine.travel(edge, download);
            let state = &mut self.edges[edge as usize];
            state.stage = Stage::Down(handle);
            state.left = self.rule.edge_rounds;
            state.model = server.learning.as_ref().map(Learning::model);
            state.invested = Cost::default();
            state.upload = upload;
        }
        if let Some(timeout) = self.rule.cloud_timeout {
            engine.set_timer(Timer::Cloud, engine.now() + timeout);
        }
        Ok(())
    }

    fn travelled<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        edge: u32,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        let (time, round, bytes) = (engine.now(), server.round, engine.world.payload_bytes);
        let state = &mut self.edges[edge as usize];
        let down = matches!(state.stage, Stage::Down(_));
        engine.note(&Record::Travelled { edge, round, down, time })?;
        if down {
            engine.accounts.edge_down_bytes += bytes;
            self.open_edge(engine, server, edge)
        } else {
            engine.accounts.edge_up_bytes += bytes;
            state.stage = Stage::Idle;
            self.returned.push((edge, time - opened));
            Ok(())
        }
    }

    /// Opens a round of an edge server, or waits for one of its clients.
    fn open_edge<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        edge: u32,
    ) -> Result<(), RunError> {
        let world = engine.world;
        let members = &self.rule.members[edge as usize];
        let state = &mut self.edges[edge as usize];
        state.stage = Stage::Waiting;
        engine.forget_candidates();
        if !engine.has_candidates(Some(members)) {
            if let Some(time) = engine.next_candidate(Some(members)) {
                engine.set_timer(Timer::Wake(edge), time);
            }
            return Ok(());
        }
        state.round = state.round.next();
        state.opened = engine.now();
        let question = Question {
            label: &server.label,
            number: state.round,
            server: edge,
            now: engine.now(),
            cohort: self.rule.edge.ask,
            take: self.rule.edge.take,
            candidates: engine.candidates(Some(members)),
            view: ServerView {
                shares: &self.shares,
                ..plain_view(world.population.data_sizes(), &world.shares, &server.counts)
            },
        };
        question.ask(world, &mut *server.policies[edge as usize], &mut state.selection)?;
        let (round, selected) = (state.round, &state.selection);
        engine.note(&Record::Selected { edge: Some(edge), round, time: engine.now(), selected })?;
        server.count(world, selected);
        self.tally.selected.extend(selected);
        for &client in selected {
            let id = engine.prepare(client, server.round, round)?;
            engine.begin(id, state.model.clone(), self.rule.edge.ask * self.rule.edges_per_round)?;
            state.current.push(id);
        }
        state.stage = Stage::Open;
        if let Some(cut) = self.rule.edge.cut {
            engine.set_timer(Timer::Boundary(edge), engine.now() + cut);
        }
        Ok(())
    }

    /// Ends all jobs of an edge server's round that have not arrived.
    fn call_off<S: Sink>(&mut self, engine: &mut Engine<'_, S>, edge: u32) -> Result<(), RunError> {
        for &id in &self.edges[edge as usize].current {
            if engine.jobs[id].arrived_at.is_some() {
                continue;
            }
            let outcome = engine.jobs[id].outcome();
            engine.conclude(id, outcome)?;
            match engine.jobs[id].dropped() {
                Some(job) => self.tally.dropped.push(job),
                None => {
                    self.tally.late.push(engine.jobs[id].client);
                    engine.call_off(id)?;
                }
            }
        }
        Ok(())
    }

    /// The round of an edge server is over: it averages, and opens the next one or sends its model.
    fn close_edge<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        edge: u32,
    ) -> Result<(), RunError> {
        let now = engine.now();
        self.call_off(engine, edge)?;
        let state = &mut self.edges[edge as usize];
        let mut work = Vec::new();
        for &id in &state.arrived {
            work.extend(Work::of(&engine.jobs[id], 1.0));
            state.invested += engine.jobs[id].cost();
            self.tally.arrived.push(engine.jobs[id].client);
        }
        engine.accounts.arrived += state.arrived.len() as u64;
        let mut trained: Vec<Trained> = Vec::new();
        if let (Some(learning), Some(model)) = (&mut server.learning, &mut state.model) {
            let averaged = learning.aggregate_at_edge(work, model, server.settings.parallel);
            if let Some((average, losses)) = averaged.map_err(|divergence| divergence.in_round(server.round))? {
                (*model, trained) = (average, losses);
            }
        }
        engine.note(&Record::EdgeClosed { edge, round: state.round, time: now })?;
        let policy = &mut *server.policies[edge as usize];
        let others = state.current.iter().filter(|&&id| engine.jobs[id].arrived_at.is_none());
        for &id in state.arrived.iter().chain(others) {
            let job = &engine.jobs[id];
            let waited = job
                .arrived_at
                .map_or(Waited::TimedOut(now - job.dispatched), |time| Waited::Arrived(time - job.dispatched));
            let (client, outcome) = (job.client, job.outcome());
            policy.observe(&Feedback::Job(JobReport { client, round: job.ticket, outcome, waited }));
        }
        report_training(policy, &trained);
        let duration = now - state.opened;
        let report = RoundReport { round: state.round, selected: &state.selection, duration, metrics: &[] };
        policy.observe(&Feedback::Round(report));
        self.settle(engine, edge)?;
        let state = &mut self.edges[edge as usize];
        state.left -= 1;
        if state.left > 0 {
            return self.open_edge(engine, server, edge);
        }
        state.stage = Stage::Up(engine.travel(edge, state.upload));
        Ok(())
    }

    fn settle<S: Sink>(&mut self, engine: &mut Engine<'_, S>, edge: u32) -> Result<(), RunError> {
        let state = &mut self.edges[edge as usize];
        state.arrived.clear();
        for id in state.current.drain(..) {
            engine.release(engine.jobs[id].client);
            engine.settle(id)?;
        }
        Ok(())
    }

    /// The cloud's round is over: whoever is missing is called off, and the models that are there are averaged.
    fn close_cloud<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        let edges: Vec<u32> = self.chosen.iter().map(|edge| edge.0).collect();
        for &edge in &edges {
            self.abandon(engine, edge)?;
        }
        server.metrics.clear();
        if let Some(learning) = &mut server.learning {
            let mut models: Vec<(u32, usize, Arc<[f32]>)> = Vec::new();
            for &(edge, _) in &self.returned {
                let model =
                    self.edges[edge as usize].model.take().expect("an edge server has a model where clients train");
                models.push((edge, self.edge_sizes[edge as usize] as usize, model));
            }
            let changed = learning.aggregate_edges(server.round, &models);
            let trained = changed.map(|changed| changed.then(Vec::new));
            server.learned(engine, trained, opened)?;
        }
        if let Some(policy) = &mut self.cloud {
            let (round, now) = (server.round, engine.now());
            for &(edge, time) in &self.returned {
                let (client, outcome, waited) = (ClientId(edge), Outcome::Arrived, Waited::Arrived(time));
                policy.observe(&Feedback::Job(JobReport { client, round, outcome, waited }));
            }
            for &client in self.chosen.iter().filter(|chosen| !self.returned.iter().any(|(edge, _)| *edge == chosen.0))
            {
                let (outcome, waited) = (Outcome::Late, Waited::TimedOut(now - opened));
                policy.observe(&Feedback::Job(JobReport { client, round, outcome, waited }));
            }
            let duration = now - opened;
            let report = RoundReport { round, selected: &self.chosen, duration, metrics: &server.metrics };
            policy.observe(&Feedback::Round(report));
        }
        let facts = RoundFacts { edges: &edges, ..self.tally.facts(opened) };
        server.record(engine, &facts)?;
        engine.check_pending(0)
    }

    /// Calls an edge server off that has not returned its model.
    fn abandon<S: Sink>(&mut self, engine: &mut Engine<'_, S>, edge: u32) -> Result<(), RunError> {
        let state = &mut self.edges[edge as usize];
        match std::mem::replace(&mut state.stage, Stage::Idle) {
            Stage::Idle => return Ok(()),
            Stage::Down(handle) | Stage::Up(handle) => engine.stop_travel(handle),
            Stage::Waiting => engine.clear_timer(Timer::Wake(edge)),
            Stage::Open => {
                engine.clear_timer(Timer::Boundary(edge));
                self.call_off(engine, edge)?;
                for &id in &self.edges[edge as usize].arrived {
                    self.tally.arrived.push(engine.jobs[id].client);
                    engine.waste(id);
                }
                engine.accounts.arrived += self.edges[edge as usize].arrived.len() as u64;
                self.settle(engine, edge)?;
            }
        }
        engine.accounts.waste(self.edges[edge as usize].invested);
        Ok(())
    }
}

/// How long the model travels down and up in a round of the cloud.
fn link(world: &World, edge: u32, round: Round) -> Result<[Span; 2], RunError> {
    let Some(laws) = world.edge_links.get(edge as usize) else { return Ok([Span::ZERO; 2]) };
    let mut rng = world.streams.stream(Purpose::EdgeLink, edge, round.0);
    let mut spans = [Span::ZERO; 2];
    for (span, (law, phase)) in spans.iter_mut().zip(laws.iter().zip([Phase::Download, Phase::Upload])) {
        let failed = |source| LatencyError { client: ClientId(edge), round, phase, source };
        *span = Span::from_seconds(law.quantile(rng.uniform())).map_err(failed)?;
    }
    Ok(spans)
}
