//! A cloud that takes in models as they arrive: edge servers work without waiting for each other, and with every
//! so-many-th model the cloud makes a new one.

use super::edge::Arrival;
use super::{Hierarchy, scopes};
use crate::clusters::{EdgeFeedback, EdgeReport};
use crate::policy::Waited;
use crate::protocol::{CloudBuffer, Combine};
use crate::recorder::ArrivedModel;
use crate::run::error::RunError;
use crate::run::learning::{EdgeModel, Intake, Sought};
use crate::run::round::{RoundUnderWay, Server};
use crate::run::timeline::Engine;
use fedgenie_core::id::{EdgeId, JobNumber, Round, Turn};
use fedgenie_core::record::{Outcome, Record};

impl<'w> Hierarchy<'w> {
    /// Plays until the cloud's model has changed once.
    pub(super) fn step_by_arrivals(
        &mut self,
        buffer: CloudBuffer,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
    ) -> Result<(), RunError> {
        let under_way = server.open_round(engine);
        let opened = under_way.opened();
        self.jobs.clear();
        loop {
            if self.buffer.len() >= buffer.models {
                return self.take_in(buffer, engine, server, under_way);
            }
            if server.settings.evaluate.end.time.is_some_and(|end| engine.now() >= end) {
                return self.abandon(engine, server, under_way);
            }
            // Everything of this instant comes before a new model is sent.
            if !engine.has_more_now() {
                self.send_to_idle(engine, server)?;
            }
            let Some(event) = engine.next()? else { return Err(RunError::NoClients { time: engine.now() }) };
            self.handle(engine, server, event, opened)?;
        }
    }

    /// Sends the newest model to the edge servers that wait for one.
    fn send_to_idle(&mut self, engine: &mut Engine<'_>, server: &Server<'w>) -> Result<(), RunError> {
        let idle = (0..self.edges.len()).filter(|&index| self.edges[index].is_idle());
        let idle: Vec<EdgeId> = idle.map(EdgeId::from_index).collect();
        if idle.is_empty() {
            return Ok(());
        }
        engine.note(&Record::CloudOpened { round: server.round(), time: engine.now(), edges: &idle })?;
        self.jobs.edges.extend(&idle);
        for edge in idle {
            let draw = Round(self.counts[edge.index()] + 1);
            self.send(engine, server, edge, draw)?;
        }
        Ok(())
    }

    /// An edge server's model has arrived in a round.
    pub(super) fn arrive(
        &mut self,
        buffer: CloudBuffer,
        engine: &mut Engine<'_>,
        round: Round,
        edge: EdgeId,
    ) -> Result<(), RunError> {
        let arrival = self.edges[edge.index()].hand_over(engine.now());
        engine.audit.age(edge, arrival.sent_in, round)?;
        let staleness = round.since(arrival.sent_in);
        let is_late = staleness > buffer.max_staleness;
        self.jobs.edge_models.push(ArrivedModel { server: edge, staleness, late: is_late });
        if let Some(clusters) = &mut self.clusters {
            let outcome = if is_late { Outcome::Late } else { Outcome::Arrived };
            let (turn, waited, phases) = (Turn(round.0), Waited::Arrived(arrival.waited), arrival.phases);
            let round = arrival.sent_in;
            let report = EdgeReport { edge, turn, round, staleness, outcome, waited, phases };
            clusters.observe(&EdgeFeedback::Edge(report), round)?;
        }
        match is_late {
            true => engine.accounts.waste(arrival.invested),
            false => self.buffer.push(arrival),
        }
        Ok(())
    }

    /// The buffer is full: the models in it change the cloud's.
    fn take_in(
        &mut self,
        buffer: CloudBuffer,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        under_way: RoundUnderWay,
    ) -> Result<(), RunError> {
        let mut models = Vec::new();
        for (number, arrival) in (0..).zip(std::mem::take(&mut self.buffer)) {
            let Arrival { of, sent_in, start, model, .. } = arrival;
            let examples = self.examples_of(server, of.edge);
            let start = start.filter(|_| buffer.combine == Combine::Changes);
            let staleness_weight = buffer.staleness.weight(server.round().since(sent_in));
            let number = JobNumber(number);
            models.extend(model.map(|model| EdgeModel { of, examples, model, number, start, staleness_weight }));
        }
        self.end(engine, server, under_way, Some(models))
    }

    /// Virtual time is over: arrivals are not used.
    fn abandon(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        under_way: RoundUnderWay,
    ) -> Result<(), RunError> {
        self.buffer.drain(..).for_each(|arrival| engine.accounts.waste(arrival.invested));
        self.end(engine, server, under_way, None)
    }

    fn end(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        under_way: RoundUnderWay,
        models: Option<Vec<EdgeModel<'w>>>,
    ) -> Result<(), RunError> {
        let Self { edges, jobs, rule, clusters, .. } = self;
        let scopes = scopes(edges, rule);
        let is_abandoned = models.is_none();
        let intake = models.map_or(Intake::Nothing, Intake::EdgeModels);
        let round = server.aggregate(engine, under_way, intake, Sought::default())?;
        let round = server.measure(engine, round, &scopes, false)?;
        let clusters = clusters.as_mut().filter(|_| !is_abandoned);
        let clusters = match clusters {
            Some(clusters) => {
                server.assign(engine, &round, clusters)?;
                Some(clusters.state())
            }
            None => None,
        };
        server.record(engine, round, jobs, is_abandoned, clusters)?;
        engine.check_jobs(self.edges.iter().map(super::Edge::live).sum())
    }

    /// The run is over: work that the cloud has not received is wasted.
    pub fn finish(&self, engine: &mut Engine<'_>) {
        for edge in &self.edges {
            let unused = edge.unused(engine);
            engine.accounts.waste(unused);
        }
    }
}
