//! Protocols in rounds: select, dispatch, wait for the boundary, aggregate what arrived.

use super::RunError;
use super::counterfactual::WhatIf;
use super::engine::{Engine, Happening, Timer};
use super::jobs::JobId;
use super::learning::{Trained, Work};
use super::server::{Question, RoundFacts, Server};
use crate::policy::{Candidates, Feedback, JobReport, PolicyRng, Probe, ServerView, Waited};
use crate::population::LatencyError;
use crate::protocol::{Combine, RoundRule};
use crate::recorder::{DroppedJob, Sink};
use crate::world::World;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::oracle::regret::{MeteredRound, Meters};
use fedgenie_core::oracle::reward::{History, bottleneck};
use fedgenie_core::record::{Outcome, Record, Regret};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};

/// The one round that is open has the boundary of edge server 0.
const BOUNDARY: Timer = Timer::Boundary(0);

/// The state of a protocol in rounds.
pub(super) struct Rounds<'w> {
    rule: &'w RoundRule,
    meters: Meters,
    /// The regret in hindsight, where it is metered.
    pub what_if: Option<WhatIf<'w>>,
    pub reward: Option<f64>,
    pub regret: Regret,
    /// Jobs that missed their round and go on.
    carried: usize,

    // Buffers of the round under way.
    selection: Vec<ClientId>,
    current: Vec<JobId>,
    arrived: Vec<JobId>,
    joining: Vec<JobId>,
    /// Late jobs of earlier rounds whose client was lost, and the round of dispatch.
    lost_late: Vec<(DroppedJob, Round)>,
    speeds: Vec<f64>,
    gains: Vec<f64>,
    /// `(α/m)·g_k` of the candidates, where metered.
    available_gains: Vec<f64>,
}

impl<'w> Rounds<'w> {
    pub fn new(world: &'w World, rule: &'w RoundRule) -> Self {
        Self {
            rule,
            meters: Meters::new(&world.meters, world.expected.clone(), world.all_sets.clone()),
            what_if: WhatIf::new(world, rule),
            reward: None,
            regret: Regret::default(),
            carried: 0,
            selection: Vec::new(),
            current: Vec::new(),
            arrived: Vec::new(),
            joining: Vec::new(),
            lost_late: Vec::new(),
            speeds: Vec::new(),
            gains: Vec::new(),
            available_gains: Vec::new(),
        }
    }

    /// Plays one round.
    pub fn step<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        let opened = engine.now();
        server.round = server.round.next();
        self.wait_for_candidates(engine)?;
        self.select(engine, server)?;
        self.measure(engine, server)?;
        if let (Some(what_if), Some(learning)) = (&mut self.what_if, &server.learning) {
            what_if.open(engine, server.round, learning.model())?;
        }
        self.dispatch(engine, server)?;
        self.wait_for_boundary(engine)?;
        self.close(engine, server, opened)
    }

    /// Everybody may be away, or busy with late jobs: then time passes until somebody can be chosen.
    fn wait_for_candidates<S: Sink>(&mut self, engine: &mut Engine<'_, S>) -> Result<(), RunError> {
        engine.forget_candidates();
        while !engine.has_candidates(None) {
            if let Some(time) = engine.next_candidate(None) {
                engine.set_timer(Timer::Wake(0), time);
            }
            let Some(happening) = engine.next()? else { return Err(RunError::Deserted { time: engine.now() }) };
            self.handle(engine, happening)?;
            engine.forget_candidates();
        }
        engine.clear_timer(Timer::Wake(0));
        self.finish_instant(engine)
    }

    /// Late jobs that end at this very instant end before anything is decided at it.
    fn finish_instant<S: Sink>(&mut self, engine: &mut Engine<'_, S>) -> Result<(), RunError> {
        while self.carried > 0 && engine.has_more_now() {
            if let Some(happening) = engine.next()? {
                self.handle(engine, happening)?;
            }
            engine.forget_candidates();
        }
        Ok(())
    }

    fn select<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        let world = engine.world;
        let round = server.round;
        let mut policy_rng = world.streams.stream(Purpose::Policy, 0, round.0);
        let mut solver_rng = world.streams.stream(Purpose::Solver, 0, round.0);
        let asked = |now: VirtualTime, candidates| self.question(world, &server.label, round, now, candidates);
        let question = asked(engine.now(), engine.candidates(None));
        let view = view(world, &server.counts, &[], &[]);
        let probe = server.policies[0].probe(&question.request(), &view, &mut policy_rng);
        let mut probed = Vec::new();
        match probe {
            Probe::None => {}
            Probe::Context(span) => self.pass(engine, span)?,
            Probe::Losses(candidates) => probed = self.probe_losses(engine, server, &candidates)?,
        }
        let candidates = engine.candidates(None);
        if let Some(genie) = world.genie.as_ref().filter(|_| !world.meters.is_empty()) {
            let history = history(world, round, &server.counts);
            genie.reward.gains(&history, candidates.list(), &mut self.available_gains);
        }
        let question = self.question(world, &server.label, round, engine.now(), candidates);
        let mut rng = PolicyRng { policy: &mut policy_rng, solver: &mut solver_rng };
        let view = self::view(world, &server.counts, &probed, &self.available_gains);
        let mut selection = Vec::new();
        server.policies[0].select(&question.request(), &view, &mut rng, &mut selection);
        question.check(&selection)?;
        self.selection = selection;
        Ok(())
    }

    fn question<'a>(
        &self,
        world: &'a World,
        label: &'a str,
        round: Round,
        now: VirtualTime,
        candidates: Candidates<'a>,
    ) -> Question<'a> {
        let view = view(world, &[], &[], &[]);
        Question { label, number: round, server: 0, now, cohort: self.rule.ask, take: self.rule.take, candidates, view }
    }

    /// Lets virtual time pass before the selection; late jobs of earlier rounds go on meanwhile.
    fn pass<S: Sink>(&mut self, engine: &mut Engine<'_, S>, span: Span) -> Result<(), RunError> {
        if span == Span::ZERO {
            return Ok(());
        }
        engine.set_timer(Timer::ProbeEnd, engine.now() + span);
        while let Some(happening) = engine.next()? {
            if happening == Happening::Rang(Timer::ProbeEnd) {
                break;
            }
            self.handle(engine, happening)?;
        }
        engine.forget_candidates();
        // Whoever was there may have gone meanwhile.
        self.wait_for_candidates(engine)
    }

    /// Each candidate downloads the model, passes once over its data and answers with one number, which takes no time.
    fn probe_losses<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &Server<'_>,
        candidates: &[ClientId],
    ) -> Result<Vec<(ClientId, f64)>, RunError> {
        let world = engine.world;
        let learning = server.learning.as_ref().expect("a policy asks for losses only where clients train");
        let losses = learning.losses(candidates, server.settings.parallel);
        let mut longest = Span::ZERO;
        for &client in candidates {
            let [download, compute, _] = engine.draw(Purpose::Probe, client, server.round)?.phases;
            let inference = Span((compute.0 as f64 * world.inference_of_job(client)) as u64);
            longest = longest.max(download + inference);
        }
        let (down, up) = (world.payload_bytes * candidates.len() as u64, 8 * candidates.len() as u64);
        engine.accounts.down_bytes += down;
        engine.accounts.up_bytes += up;
        engine.audit.probed(down, up);
        self.pass(engine, longest)?;
        Ok(losses)
    }

    /// Draws the jobs, and judges the selection against the genie's before the history takes it in.
    fn measure<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &Server<'_>) -> Result<(), RunError> {
        let world = engine.world;
        self.current.clear();
        for &client in &self.selection {
            self.current.push(engine.prepare(client, server.round, server.round)?);
        }
        let Some(genie) = &world.genie else { return Ok(()) };
        let history = history(world, server.round, &server.counts);
        let take = self.rule.take.min(self.selection.len());
        let cut = self.rule.cut;
        self.speeds.clear();
        let speeds = self.current.iter().map(|&id| genie.reward.speed(engine.jobs[id].draw.effective(cut)));
        self.speeds.extend(speeds);
        genie.reward.gains(&history, &self.selection, &mut self.gains);
        self.reward = Some(bottleneck(&self.speeds, take) + self.gains.iter().sum::<f64>());
        if world.meters.is_empty() {
            return Ok(());
        }
        let metered = MeteredRound {
            genie,
            history,
            gains: &self.available_gains,
            take: self.rule.take,
            available: engine.candidates(None).list(),
            selected: &self.selection,
        };
        let (selection, speeds, round) = (&self.selection, &self.speeds, server.round);
        let engine = &*engine;
        self.regret = self.meters.measure(&metered, |client| {
            // What the selected will do was drawn above.
            if let Some(place) = selection.iter().position(|&selected| selected == client) {
                return Ok(speeds[place]);
            }
            Ok::<_, LatencyError>(genie.reward.speed(engine.draw(Purpose::Latency, client, round)?.effective(cut)))
        })?;
        Ok(())
    }

    fn dispatch<S: Sink>(&mut self, engine: &mut Engine<'_, S>, server: &mut Server<'_>) -> Result<(), RunError> {
        engine.note(&Record::Opened { round: server.round, time: engine.now(), selected: &self.selection })?;
        server.count(engine.world, &self.selection);
        let model = server.learning.as_ref().map(super::learning::Learning::model);
        let bound = self.rule.ask + self.carried;
        for &id in &self.current {
            engine.begin(id, model.clone(), bound)?;
        }
        if let Some(cut) = self.rule.cut {
            engine.set_timer(BOUNDARY, engine.now() + cut);
        }
        Ok(())
    }

    /// Events until enough updates have arrived or the boundary's timer rings.
    fn wait_for_boundary<S: Sink>(&mut self, engine: &mut Engine<'_, S>) -> Result<(), RunError> {
        self.arrived.clear();
        let take = self.rule.take.min(self.current.len());
        while self.arrived.len() < take || self.rule.full_window {
            let Some(happening) = engine.next()? else {
                let waiting = self.current.iter().find(|&&id| engine.jobs[id].arrived_at.is_none());
                let client = engine.jobs[*waiting.expect("a round that is open waits for somebody")].client;
                return Err(RunError::Stuck { client, time: engine.now() });
            };
            if happening == Happening::Rang(BOUNDARY) {
                return Ok(());
            }
            self.handle(engine, happening)?;
        }
        engine.clear_timer(BOUNDARY);
        self.finish_instant(engine)
    }

    fn handle<S: Sink>(&mut self, engine: &mut Engine<'_, S>, happening: Happening) -> Result<(), RunError> {
        match happening {
            Happening::Progress | Happening::Rang(_) => Ok(()),
            Happening::Travelled(_) => unreachable!("there are no edge servers"),
            Happening::Delivered(id) if engine.jobs[id].is_late => {
                self.joining.push(id);
                self.end_late_job(engine, id, true)
            }
            Happening::Delivered(id) => {
                self.arrived.push(id);
                engine.conclude(id, Outcome::Arrived)
            }
            Happening::Lost(id) if engine.jobs[id].is_late => {
                let job = engine.jobs[id].dropped();
                self.lost_late.extend(job.map(|job| (job, engine.jobs[id].round)));
                self.end_late_job(engine, id, false)?;
                engine.settle(id)
            }
            Happening::Lost(_) => Ok(()),
        }
    }

    /// A carried job delivered or was lost: the client is free again.
    fn end_late_job<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        id: JobId,
        delivered: bool,
    ) -> Result<(), RunError> {
        let (client, round) = (engine.jobs[id].client, engine.jobs[id].round);
        engine.note(&Record::StaleEnded { client, round, delivered, time: engine.now() })?;
        self.carried -= 1;
        engine.release(client);
        Ok(())
    }

    fn close<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        opened: VirtualTime,
    ) -> Result<(), RunError> {
        let now = engine.now();
        let dispatched = self.current.first().map_or(now, |&id| engine.jobs[id].dispatched);
        let timed_out = self.rule.cut.is_some_and(|cut| now - dispatched >= cut)
            && self.arrived.len() < self.rule.take.min(self.current.len());
        let is_abandoned = self.arrived.len() < self.rule.quorum;
        let mut late: Vec<ClientId> = Vec::new();
        let mut dropped: Vec<DroppedJob> = Vec::new();
        for &id in &self.current {
            if engine.jobs[id].arrived_at.is_some() {
                continue;
            }
            let outcome = engine.jobs[id].outcome();
            engine.conclude(id, outcome)?;
            match engine.jobs[id].dropped() {
                Some(job) => dropped.push(job),
                None => {
                    late.push(engine.jobs[id].client);
                    if self.rule.carry.is_some() {
                        engine.jobs[id].is_late = true;
                        self.carried += 1;
                    } else {
                        engine.call_off(id)?;
                    }
                }
            }
        }
        let joined: Vec<(ClientId, Round)> =
            self.joining.iter().map(|&id| (engine.jobs[id].client, engine.jobs[id].round)).collect();
        let trained = self.learn(engine, server, opened, is_abandoned)?;
        if let (Some(what_if), Some(learning)) = (&mut self.what_if, &server.learning) {
            let lost = what_if.close(learning, &trained, &self.selection, server.settings.parallel);
            self.regret.counterfactual = Some(lost);
        }
        self.report(engine, server, timed_out);
        let arrived: Vec<ClientId> = self.arrived.iter().map(|&id| engine.jobs[id].client).collect();
        let facts = RoundFacts {
            opened,
            selected: &self.selection,
            arrived: &arrived,
            late: &late,
            dropped: &dropped,
            joined: &joined,
            lost_late: &self.lost_late,
            edges: &[],
            is_abandoned,
            reward: self.reward,
            regret: self.regret,
        };
        server.close(engine, &trained, &facts)?;
        self.settle(engine)
    }

    /// Trains what counts, aggregates, evaluates. An abandoned round leaves the model as it was.
    fn learn<S: Sink>(
        &mut self,
        engine: &mut Engine<'_, S>,
        server: &mut Server<'_>,
        opened: VirtualTime,
        is_abandoned: bool,
    ) -> Result<Vec<Trained>, RunError> {
        server.metrics.clear();
        let staleness = self.rule.carry.unwrap_or_default();
        let mut work = Vec::new();
        for &id in self.arrived.iter().chain(&self.joining) {
            let job = &engine.jobs[id];
            engine.audit.age(job.client, job.round, server.round)?;
            if is_abandoned {
                engine.waste(id);
            } else {
                work.extend(Work::of(job, staleness.weight(server.round.0 - job.round.0)));
            }
        }
        let parallel = server.settings.parallel;
        let trained = match &mut server.learning {
            None => return Ok(Vec::new()),
            Some(learning) => learning.aggregate(work, Combine::Changes, parallel),
        };
        server.learned(engine, trained, opened)
    }

    /// Feedback on jobs: arrivals in their order, then the others in dispatch order.
    fn report<S: Sink>(&self, engine: &Engine<'_, S>, server: &mut Server<'_>, timed_out: bool) {
        let others = self.current.iter().filter(|&&id| engine.jobs[id].arrived_at.is_none());
        for &id in self.arrived.iter().chain(others) {
            let job = &engine.jobs[id];
            let waited = match (job.arrived_at, self.rule.cut) {
                (Some(time), _) => Waited::Arrived(time - job.dispatched),
                (None, Some(cut)) if timed_out => Waited::TimedOut(cut),
                (None, _) => Waited::CalledOff(engine.now() - job.dispatched),
            };
            let outcome = job.outcome();
            server.policies[0].observe(&Feedback::Job(JobReport {
                client: job.client,
                round: job.round,
                outcome,
                waited,
            }));
        }
    }

    /// Forgets the jobs that are over and checks that nothing else is under way.
    fn settle<S: Sink>(&mut self, engine: &mut Engine<'_, S>) -> Result<(), RunError> {
        engine.accounts.arrived += self.arrived.len() as u64;
        for &id in &self.current {
            if !engine.jobs[id].is_late {
                engine.release(engine.jobs[id].client);
                engine.settle(id)?;
            }
        }
        self.lost_late.clear();
        for id in self.joining.drain(..) {
            engine.settle(id)?;
        }
        engine.check_pending(self.carried)
    }
}

fn history<'a>(world: &'a World, round: Round, counts: &'a [u32]) -> History<'a> {
    History { round, cohort: world.rule.ask(), shares: &world.shares, counts }
}

fn view<'a>(world: &'a World, counts: &'a [u32], probed: &'a [(ClientId, f64)], gains: &'a [f64]) -> ServerView<'a> {
    ServerView {
        gains: world.genie.as_ref().map(|genie| (&genie.reward, gains)).filter(|(_, gains)| !gains.is_empty()),
        data_sizes: world.population.data_sizes(),
        shares: &world.shares,
        counts,
        probed,
        genie: world.genie.as_ref(),
    }
}
