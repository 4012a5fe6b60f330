//! Clients, edge servers, cloud: see [`crate::protocol::hierarchical`].

mod arrivals;
mod cloud;
mod edge;

pub(in crate::run) use edge::Between;

use crate::clusters::{EdgeFeedback, EdgeReport};
use crate::policy::{Policy, Waited};
use crate::protocol::HierarchicalRule;
use crate::recorder::{ClusterState, RoundJobs};
use crate::run::error::RunError;
use crate::run::learning::{EdgeModel, Intake, Learning, ServerScope, Sought};
use crate::run::round::{Asker, ClusterDecision, RoundUnderWay, Server};
use crate::run::timeline::{Engine, Event, Timer, add};
use crate::world::World;
use cloud::Cloud;
use edge::{Arrival, Edge};
use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round, Turn};
use fedgenie_core::law::Law;
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::State;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_learning::model::weights::Tensor;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The state of the protocol.
pub(in crate::run) struct Hierarchy<'w> {
    rule: &'w HierarchicalRule,
    edges: Vec<Edge<'w>>,
    /// Each client's share of its edge server's data.
    shares: Vec<f64>,
    /// The choice of edge servers; `None` if every one takes part in every round.
    cloud: Option<Cloud>,
    /// Examples of each edge server's clients when the run began.
    sizes: Vec<u32>,
    /// How often each edge server was sent a model.
    counts: Vec<u32>,
    /// Which cluster each edge server belongs to, where there are cluster models.
    clusters: Option<ClusterDecision>,

    /// Models that have arrived in the round under way, where the cloud does not wait for edge servers.
    buffer: Vec<Arrival<'w>>,

    // Of the cloud's round under way.
    chosen: Vec<EdgeId>,
    /// Edge servers whose model arrived, and when since the round opened.
    returned: Vec<(EdgeId, Span)>,
    jobs: RoundJobs,
}

impl<'w> Hierarchy<'w> {
    /// # Panics
    /// If there is not one policy for each edge server.
    pub fn new(
        world: &'w World,
        rule: &'w HierarchicalRule,
        policies: Vec<Box<dyn Policy>>,
        cloud: Option<Box<dyn Policy>>,
    ) -> Self {
        assert_eq!(policies.len(), rule.members.len(), "every edge server has a policy of its own");
        let (mut shares, mut edge_shares) = (vec![0.0; world.population.len()], Vec::new());
        for members in &rule.members {
            let total: f64 = members.iter().map(|client| world.shares[client.index()]).sum();
            edge_shares.push(total);
            for client in members {
                shares[client.index()] = world.shares[client.index()] / total;
            }
        }
        let sizes = world.population.data_sizes();
        let size = |members: &Vec<ClientId>| members.iter().map(|client| sizes[client.index()]).sum();
        let edges = policies.len();
        let sizes: Vec<u32> = rule.members.iter().map(size).collect();
        let cloud = cloud.map(|policy| Cloud::new(policy, rule.cloud_timeout, sizes.clone(), edge_shares));
        Self {
            rule,
            edges: policies
                .into_iter()
                .enumerate()
                .map(|(index, policy)| Edge::new(world, EdgeId::from_index(index), rule, policy))
                .collect(),
            shares,
            cloud,
            sizes,
            counts: vec![0; edges],
            clusters: world.protocol.clusters.as_ref().map(ClusterDecision::new),
            buffer: Vec::new(),
            chosen: Vec::new(),
            returned: Vec::new(),
            jobs: RoundJobs::default(),
        }
    }

    /// Between rounds of the cloud: no edge server is at work, unless the cloud does not wait for them.
    pub fn exchange(&mut self, at: &mut Between<'_, 'w>, state: &mut State<'_>) {
        let Self {
            rule: _,
            edges,
            shares: _,
            cloud,
            sizes: _,
            counts,
            clusters,
            buffer,
            chosen: _,
            returned: _,
            jobs: _,
        } = self;
        assert!(buffer.is_empty(), "a round has taken in what arrived");
        edges.iter_mut().for_each(|edge| edge.exchange(at, state));
        cloud.iter_mut().for_each(|cloud| state.field(cloud));
        state.fields(counts);
        clusters.iter_mut().for_each(|clusters| state.field(clusters));
    }

    /// The clusters of the next round, where there are cluster models.
    pub fn clusters(&self) -> Option<&ClusterState> {
        self.clusters.as_ref().map(ClusterDecision::state)
    }

    /// The clients of each edge server, and its cluster.
    pub fn scopes(&self) -> Vec<ServerScope<'_>> {
        scopes(&self.edges, self.rule)
    }

    /// Warnings of the policies, each sentence once.
    pub fn warnings(&self, of: &impl Fn(&dyn Policy) -> Vec<String>) -> Vec<String> {
        let of_edges = self.edges.iter().flat_map(|edge| of(&*edge.selector.policy));
        let of_cloud = self.cloud.as_ref().and_then(Cloud::warning);
        let all: BTreeSet<String> = of_edges.chain(of_cloud).collect();
        all.into_iter().collect()
    }

    /// Values of parameters that policies worked out: a list of edge servers' where they differ.
    pub fn effective(&self) -> Vec<(String, Value)> {
        let mut of_edges: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (key, value) in self.edges.iter().flat_map(|edge| edge.selector.policy.effective()) {
            of_edges.entry(key).or_default().push(value);
        }
        let one = |(key, values): (&str, Vec<Value>)| {
            let is_same = values.iter().all(|value| *value == values[0]);
            (key.to_owned(), if is_same { values[0].clone() } else { Value::Array(values) })
        };
        of_edges.into_iter().map(one).collect()
    }

    /// The same of the cloud's policy.
    pub fn effective_in_cloud(&self) -> Vec<(&'static str, Value)> {
        self.cloud.as_ref().map_or_else(Vec::new, Cloud::effective)
    }

    /// The weights of the networks of edge servers' policies.
    pub fn tensors(&self) -> Vec<Tensor> {
        self.edges.iter().flat_map(Edge::tensors).collect()
    }

    /// Plays one round of the cloud.
    pub fn step(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        match self.rule.buffer {
            Some(buffer) => self.step_by_arrivals(buffer, engine, server),
            None => self.step_together(engine, server),
        }
    }

    /// A round in which the cloud waits for those that it has chosen.
    fn step_together(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        let round = server.open_round(engine);
        let opened = round.opened();
        self.returned.clear();
        self.jobs.clear();
        self.open(engine, server)?;
        while self.returned.len() < self.chosen.len() {
            let Some(event) = engine.next()? else { return Err(RunError::NoClients { time: engine.now() }) };
            match event {
                Event::Rang(Timer::Cloud) => break,
                event => self.handle(engine, server, event, opened)?,
            }
        }
        engine.clear_timer(Timer::Cloud);
        self.close(engine, server, round)
    }

    /// Reactions of edge servers to an event.
    fn handle(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        event: Event,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        match event {
            Event::Progress | Event::Lost(_) => Ok(()),
            Event::Travelled(edge) => self.travelled(engine, server, edge, opened),
            Event::Delivered(id) => {
                engine.conclude(id, Outcome::Arrived)?;
                let edge = engine.server_of(engine.jobs[id].client);
                match self.edges[edge.index()].deliver(id) {
                    true => self.close_edge(engine, server, edge),
                    false => Ok(()),
                }
            }
            Event::Rang(Timer::Boundary(edge)) => self.close_edge(engine, server, edge),
            Event::Rang(Timer::Wake(edge) | Timer::Probe(edge)) => self.open_edge(engine, server, edge),
            Event::Rang(_) => Ok(()),
        }
    }

    /// Chooses edge servers and sends them the model.
    fn open(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        let (world, round, now) = (engine.world, server.round(), engine.now());
        self.chosen = match &mut self.cloud {
            None => (0..self.edges.len()).map(EdgeId::from_index).collect(),
            Some(cloud) => {
                let asked = (round, now, server.settings.explain);
                let (chosen, explained) = cloud.choose(world, asked, (self.rule.edges_per_round, &self.counts))?;
                server.explanations.extend(explained);
                chosen
            }
        };
        self.jobs.edges.extend(&self.chosen);
        engine.note(&Record::CloudOpened { round, time: now, edges: &self.jobs.edges })?;
        // Who does not take part is measured under the model of its cluster as well.
        if let Some(clusters) = &self.clusters {
            (0..).zip(&mut self.edges).for_each(|(index, edge)| edge.of.cluster = clusters.of(EdgeId(index)));
        }
        for edge in self.chosen.clone() {
            self.send(engine, server, edge, round)?;
        }
        if let Some(timeout) = self.rule.cloud_timeout {
            engine.set_timer(Timer::Cloud, now + timeout);
        }
        Ok(())
    }

    /// Sends an edge server the model of its cluster; `draw` numbers the draws of its links.
    fn send(
        &mut self,
        engine: &mut Engine<'_>,
        server: &Server<'w>,
        edge: EdgeId,
        draw: Round,
    ) -> Result<(), RunError> {
        self.counts[edge.index()] += 1;
        let [down, up] = link(engine.world, edge, draw)?;
        let wait = self.clusters.as_ref().map_or(Span::ZERO, |clusters| clusters.wait(engine.now()));
        let link = [Span(down.0.saturating_add(wait.0)), up];
        let cluster = self.clusters.as_ref().map_or(0, |clusters| clusters.of(edge));
        let edge = &mut self.edges[edge.index()];
        edge.of.cluster = cluster;
        let model = server.learning.as_ref().map(|learning| learning.model(cluster));
        edge.send_down(engine, server.round(), link, model);
        Ok(())
    }

    fn travelled(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        edge: EdgeId,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        let (time, round) = (engine.now(), self.edges[edge.index()].round());
        let down = self.edges[edge.index()].is_receiving();
        engine.note(&Record::Travelled { edge, round, down, time })?;
        if down {
            add(&mut engine.accounts.edge_down_bytes, engine.world.training.payload_bytes);
            self.open_edge(engine, server, edge)
        } else {
            let edge_server = &mut self.edges[edge.index()];
            add(&mut engine.accounts.edge_up_bytes, engine.world.bytes_of(&edge_server.of.rows));
            match self.rule.buffer {
                Some(buffer) => self.arrive(buffer, engine, server.round(), edge),
                None => {
                    edge_server.rest();
                    self.returned.push((edge, time - opened));
                    Ok(())
                }
            }
        }
    }

    /// Opens the next round of an edge server, after those without clients, which close at once.
    fn open_edge(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>, edge: EdgeId) -> Result<(), RunError> {
        let edge = &mut self.edges[edge.index()];
        while edge.open(engine, server, &self.shares, &mut self.jobs)? {
            if !edge.close(engine, server, &mut self.jobs)? {
                break;
            }
        }
        Ok(())
    }

    /// Closes a round of an edge server, which opens its next one or sends its model.
    fn close_edge(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>, edge: EdgeId) -> Result<(), RunError> {
        match self.edges[edge.index()].close(engine, server, &mut self.jobs)? {
            true => self.open_edge(engine, server, edge),
            false => Ok(()),
        }
    }

    /// The training examples that an edge server's clients have now, by which the cloud weighs its model.
    fn examples_of(&self, server: &Server<'_>, edge: EdgeId) -> usize {
        let moved = server.learning.as_ref().filter(|learning| learning.changes > 0);
        let now = |learning: &Learning<'_>| learning.examples_of(&self.rule.members[edge.index()]);
        moved.map_or(self.sizes[edge.index()] as usize, now)
    }

    /// The cloud's round is over: missing edge servers are called off, and the models that arrived are averaged.
    fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
    ) -> Result<(), RunError> {
        for edge in &self.chosen {
            self.edges[edge.index()].call_off(engine, &mut self.jobs)?;
        }
        let mut models = Vec::new();
        for &(edge, _) in &self.returned {
            let examples = self.examples_of(server, edge);
            let (of, model) = self.edges[edge.index()].take_model();
            let (number, start, staleness_weight) = (JobNumber(0), None, 1.0);
            models.extend(model.map(|model| EdgeModel { of, examples, model, number, start, staleness_weight }));
        }
        self.report(server, engine.now() - round.opened())?;
        let Self { cloud, edges, jobs, rule, clusters, .. } = self;
        let scopes = scopes(edges, rule);
        let sought = cloud.as_ref().map_or_else(Sought::default, |cloud| server.sought(cloud.policy()));
        let round = server.aggregate(engine, round, Intake::EdgeModels(models), sought)?;
        let round = server.measure(engine, round, &scopes, false)?;
        if let Some(cloud) = cloud {
            server.tell(engine, &round, cloud.told())?;
        }
        if let Some(clusters) = clusters {
            server.assign(engine, &round, clusters)?;
        }
        server.record(engine, round, jobs, false, clusters.as_ref().map(ClusterDecision::state))?;
        engine.check_pending(0)
    }

    /// Tells policies of each edge server: those whose model arrived in their order, then the others.
    fn report(&mut self, server: &Server<'_>, timeout: Span) -> Result<(), RunError> {
        let round = server.round();
        let Self { cloud, edges, chosen, returned, clusters, .. } = self;
        let missing = chosen.iter().filter(|chosen| !returned.iter().any(|(edge, _)| edge == *chosen));
        let missing = missing.map(|&edge| (edge, Outcome::Late, Waited::TimedOut(timeout)));
        let arrived = returned.iter().map(|&(edge, time)| (edge, Outcome::Arrived, Waited::Arrived(time)));
        for (edge, outcome, waited) in arrived.chain(missing) {
            let phases = edges[edge.index()].phases(waited.observed().0);
            let turn = Turn(round.0);
            let report = EdgeReport { edge, turn, round, staleness: 0, outcome, waited, phases };
            if let Some(clusters) = clusters {
                clusters.observe(&EdgeFeedback::Edge(report), round)?;
            }
            if let Some(cloud) = cloud {
                let told = cloud.observe(EdgeReport { turn: cloud.turn(), ..report });
                server.check_told(told, Asker::Cloud, round)?;
            }
        }
        Ok(())
    }
}

/// The clients of each edge server, and its cluster.
fn scopes<'a>(edges: &[Edge<'_>], rule: &'a HierarchicalRule) -> Vec<ServerScope<'a>> {
    edges.iter().zip(&rule.members).map(|(edge, members)| (&**members, edge.of.cluster)).collect()
}

/// How long the model travels down and up in a round of the cloud.
fn link(world: &World, edge: EdgeId, round: Round) -> Result<[Span; 2], RunError> {
    let Some(laws) = world.protocol.edge_links.get(edge.index()) else { return Ok([Span::ZERO; 2]) };
    let mut rng = world.streams.draw(Purpose::EdgeLink, edge.0, round.0);
    let mut spans = [Span::ZERO; 2];
    for (span, (law, way)) in spans.iter_mut().zip(laws.iter().zip(["from", "to"])) {
        let failed = |source| RunError::EdgeLink { edge, round, way, source };
        *span = Span::from_seconds(law.quantile(rng.uniform())).map_err(failed)?;
    }
    Ok(spans)
}
