//! Protocols in rounds: select, dispatch, wait for the boundary, aggregate the arrivals. See
//! [`crate::protocol::rounds`].

mod selection;

use crate::policy::Policy;
use crate::protocol::{Combine, RoundRule};
use crate::recorder::RoundJobs;
use crate::run::error::RunError;
use crate::run::learning::{Intake, Work};
use crate::run::meters::{HindsightMeter, OpenRound, Window};
use crate::run::round::{Asker, Cohort, RoundUnderWay, Selector, Server, Told};
use crate::run::timeline::{Engine, Event, JobId, THE_SERVER, Timer};
use crate::world::{Truth, World};
use fedgenie_core::oracle::regret::Meters;
use fedgenie_core::record::{Outcome, Record};
use fedgenie_core::state::{State, Stateful};
use fedgenie_core::time::Span;
use selection::Asked;

const BOUNDARY: Timer = Timer::Boundary(THE_SERVER);
const WAKE: Timer = Timer::Wake(THE_SERVER);

/// A round whose question waits for a selection.
struct Opening {
    round: RoundUnderWay,
    asked: Asked,
}

/// The state of a protocol in rounds.
#[derive(Stateful)]
pub(in crate::run) struct Rounds<'w> {
    #[state(skip = "from the scenario")]
    rule: &'w RoundRule,
    /// One selection in each round.
    pub selector: Selector<'w>,
    /// The regret meters, where there is a reward.
    #[state(each)]
    meters: Option<Meters>,
    /// The regret in hindsight, where it is metered.
    #[state(each)]
    pub hindsight: Option<HindsightMeter<'w>>,
    /// Jobs that missed their round and go on.
    carried: usize,

    // Of the round under way.
    #[state(with = settled)]
    cohort: Cohort,
    #[state(skip = "of the round under way")]
    jobs: RoundJobs,
    /// Its question, if that waits for a selection.
    #[state(with = answered)]
    asked: Option<Opening>,
    /// How long it waits at the longest.
    #[state(skip = "of the round under way")]
    cut: Option<Span>,
    /// Late jobs of earlier rounds that arrived; after a round without clients, they wait for the next one.
    joining: Vec<JobId>,

    // Buffers.
    #[state(skip = "a buffer of one round")]
    speeds: Vec<f64>,
    #[state(skip = "a buffer of one round")]
    gains: Vec<f64>,
    /// `(α/m)·g_k` of the candidates, where metered.
    #[state(skip = "a buffer of one round")]
    available_gains: Vec<f64>,
}

/// Between rounds.
fn answered(asked: &mut Option<Opening>, state: &mut State<'_>) {
    if asked.is_some() {
        state.fail("a run is saved between two rounds, and this one waits for a selection");
    }
}

/// Between rounds.
fn settled(cohort: &mut Cohort, _: &mut State<'_>) {
    assert!(cohort.jobs.is_empty(), "a round has settled its jobs");
}

impl<'w> Rounds<'w> {
    pub fn new(world: &'w World, rule: &'w RoundRule, policy: Box<dyn Policy>) -> Self {
        Self {
            rule,
            selector: Selector::of_server(world, policy),
            meters: world.truth.as_ref().map(Truth::meters),
            hindsight: HindsightMeter::new(world, Window::of_rounds(rule)),
            carried: 0,
            cut: rule.cut,
            cohort: Cohort::default(),
            asked: None,
            jobs: RoundJobs::default(),
            joining: Vec::new(),
            speeds: Vec::new(),
            gains: Vec::new(),
            available_gains: Vec::new(),
        }
    }

    /// Plays one round: up to its question, and on with the policy's selection.
    pub fn step(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        self.ask(engine, server)?;
        match self.asked.take() {
            Some(opening) => self.answer(engine, server, opening),
            // The budget pays for no further round.
            None => Ok(()),
        }
    }

    /// Plays up to the question of the next round, unless one waits already. There is none if the budget does not pay
    /// for a round.
    pub fn ask(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<(), RunError> {
        if self.asked.is_some() {
            return Ok(());
        }
        self.jobs.clear();
        self.wait_until(engine, server.evaluated)?;
        let round = server.open_round(engine);
        self.selector.turn = self.selector.turn.next();
        self.wait_for_candidates(engine)?;
        match self.open(engine, server)? {
            Some(asked) => self.asked = Some(Opening { round, asked }),
            None => self.end(engine, server, round)?,
        }
        Ok(())
    }

    /// Whether a question waits for a selection.
    pub const fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Lets the policy select, and plays the round to its end. After a selection that breaks the rules, the question
    /// still waits.
    fn answer(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        mut opening: Opening,
    ) -> Result<(), RunError> {
        if let Err(error) = self.select(engine, server, &mut opening.asked) {
            self.asked = Some(opening);
            return Err(error);
        }
        let Opening { round, .. } = opening;
        if self.cohort.selection.is_empty() {
            return self.close_empty(engine, server, round);
        }
        self.cohort.prepare(engine, server.round(), self.selector.turn)?;
        self.measure(engine, server)?;
        let hindsight = match (&self.hindsight, &server.learning) {
            (Some(meter), Some(learning)) if meter.is_due(server.round()) => {
                let turn = self.selector.turn;
                let numbers = (server.round(), turn);
                let most = self.payable(engine, self.rule.ask, 0);
                let learning = (learning, server.settings.parallel);
                Some(meter.open(engine, numbers, most, |_| turn.into(), learning, None)?)
            }
            _ => None,
        };
        self.dispatch(engine, server)?;
        self.wait_for_boundary(engine)?;
        self.close(engine, server, round, hindsight)
    }

    /// Every client may be away, or busy with a late job: then time passes until one can be chosen.
    fn wait_for_candidates(&mut self, engine: &mut Engine<'_>) -> Result<(), RunError> {
        while !engine.has_candidates(THE_SERVER) {
            if let Some(time) = engine.next_candidate(THE_SERVER) {
                engine.set_timer(WAKE, time);
            }
            let Some(event) = engine.next()? else { return Err(RunError::NoClients { time: engine.now() }) };
            self.handle(engine, event)?;
        }
        engine.clear_timer(WAKE);
        self.finish_instant(engine)
    }

    /// Late jobs that end at this very instant end before anything is decided at it.
    fn finish_instant(&mut self, engine: &mut Engine<'_>) -> Result<(), RunError> {
        while self.carried > 0 && engine.has_more_now() {
            if let Some(event) = engine.next()? {
                self.handle(engine, event)?;
            }
        }
        Ok(())
    }

    fn dispatch(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        self.note_opening(engine, server)?;
        let learning = server.learning.as_ref();
        let sent = |client| learning.map(|learning| learning.sent(0, client));
        // Late updates that came while candidates were awaited or asked join at the end of this round.
        let bound = self.rule.most + self.carried + self.joining.len();
        self.cohort.begin(engine, sent, bound)?;
        self.cut = self.cohort.selection.deadline.or(self.rule.cut);
        if let Some(cut) = self.cut {
            engine.set_timer(BOUNDARY, engine.now() + cut);
        }
        Ok(())
    }

    fn note_opening(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        let selected = &self.cohort.selection;
        engine.note(&Record::Opened { round: server.round(), time: engine.now(), selected })?;
        server.count(engine.world, selected);
        self.jobs.select(selected);
        Ok(())
    }

    /// A round without clients: it closes at once and makes no model. Late updates wait for the next round.
    fn close_empty(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
    ) -> Result<(), RunError> {
        self.note_opening(engine, server)?;
        self.end_with(engine, server, round, Intake::Nothing, None, false)?;
        engine.check_pending_of(self.carried, self.joining.len())
    }

    /// The steps in which a round ends.
    fn end_with(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
        intake: Intake<'_>,
        hindsight: Option<OpenRound<'w>>,
        is_abandoned: bool,
    ) -> Result<(), RunError> {
        let Self { selector: Selector { policy, turn, .. }, jobs, .. } = self;
        let sought = server.sought(&**policy);
        let round = server.aggregate(engine, round, intake, sought)?;
        if let Some((meter, open)) = self.hindsight.as_mut().zip(hindsight) {
            server.judge(&round, (meter, &open), &jobs.selected)?;
        }
        let is_spent = engine.is_spent();
        let round = server.measure(engine, round, &[], is_spent)?;
        let told = Told { policy: &mut **policy, turn: *turn, selected: &jobs.selected, asker: Asker::Server };
        server.tell(engine, &round, told)?;
        server.record(engine, round, jobs, is_abandoned, None)
    }

    /// How many updates of its own the round waits for.
    fn take(&self) -> usize {
        self.rule.take.min(self.cohort.jobs.len())
    }

    /// Events until enough updates have arrived or the boundary's timer rings.
    fn wait_for_boundary(&mut self, engine: &mut Engine<'_>) -> Result<(), RunError> {
        while self.cohort.arrived.len() < self.take() || self.rule.full_window {
            let Some(event) = engine.next()? else {
                let waiting = self.cohort.jobs.iter().find(|&&id| engine.jobs[id].arrived_at.is_none());
                let client = engine.jobs[*waiting.expect("an open round waits for an update")].client;
                return Err(RunError::Stuck { client, time: engine.now() });
            };
            if event == Event::Rang(BOUNDARY) {
                return Ok(());
            }
            self.handle(engine, event)?;
        }
        engine.clear_timer(BOUNDARY);
        self.finish_instant(engine)
    }

    fn handle(&mut self, engine: &mut Engine<'_>, event: Event) -> Result<(), RunError> {
        match event {
            Event::Progress | Event::Rang(_) => Ok(()),
            Event::Travelled(_) => unreachable!("there are no edge servers"),
            Event::Delivered(id) if engine.jobs[id].is_late => {
                self.joining.push(id);
                self.end_late_job(engine, id, true)
            }
            Event::Delivered(id) => {
                self.cohort.arrived.push(id);
                engine.conclude(id, Outcome::Arrived)
            }
            Event::Lost(id) if engine.jobs[id].is_late => {
                let job = engine.jobs[id].dropped();
                self.jobs.lost_late.extend(job.map(|job| (job, engine.jobs[id].round)));
                self.end_late_job(engine, id, false)?;
                engine.settle(id)
            }
            Event::Lost(_) => Ok(()),
        }
    }

    /// A carried job delivered or was lost: the client is free again.
    fn end_late_job(&mut self, engine: &mut Engine<'_>, id: JobId, delivered: bool) -> Result<(), RunError> {
        let (client, round) = (engine.jobs[id].client, engine.jobs[id].round);
        engine.note(&Record::StaleEnded { client, round, delivered, time: engine.now() })?;
        self.carried -= 1;
        engine.release(client);
        Ok(())
    }

    /// The run is over: late updates that wait for a round with clients are not used.
    pub fn finish(&self, engine: &mut Engine<'_>) {
        self.joining.iter().for_each(|&id| engine.waste(id));
    }

    /// There is no further round: late updates that came meanwhile are not used.
    fn end(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>, round: RoundUnderWay) -> Result<(), RunError> {
        server.take_back(round);
        self.selector.turn.0 -= 1;
        self.joining.drain(..).try_for_each(|id| {
            engine.waste(id);
            engine.settle(id)
        })
    }

    fn close(
        &mut self,
        engine: &mut Engine<'_>,
        server: &mut Server<'w>,
        round: RoundUnderWay,
        hindsight: Option<OpenRound<'w>>,
    ) -> Result<(), RunError> {
        let now = engine.now();
        let dispatched = self.cohort.jobs.first().map_or(now, |&id| engine.jobs[id].dispatched);
        let has_enough = self.cohort.arrived.len() >= self.take();
        let timeout = self.cut.filter(|&cut| now - dispatched >= cut && !has_enough);
        self.carried += self.cohort.stop_waiting(engine, self.rule.carry.is_some(), &mut self.jobs)?;
        let (intake, is_abandoned) = self.intake(engine, server)?;
        let told = self.cohort.report(engine, &mut *self.selector.policy, server.round(), timeout);
        server.check_told(told, Asker::Server, server.round())?;
        self.end_with(engine, server, round, intake, hindsight, is_abandoned)?;
        self.cohort.settle(engine)?;
        self.joining.drain(..).try_for_each(|id| engine.settle(id))?;
        engine.check_pending(self.carried)
    }

    /// The updates that arrived, with the late ones of earlier rounds, and whether the round is abandoned for want of
    /// them, which leaves the model as it was.
    fn intake(&mut self, engine: &mut Engine<'_>, server: &Server<'_>) -> Result<(Intake<'w>, bool), RunError> {
        let staleness = self.rule.carry.unwrap_or_default();
        let mut work = Vec::new();
        for &id in self.cohort.arrived.iter().chain(&self.joining) {
            let job = &engine.jobs[id];
            engine.audit.age(job.client, job.round, server.round())?;
            let age = server.round().since(job.round);
            work.extend(Work::of(job, age, staleness.weight(age)));
        }
        let is_enough = server.learning.as_ref().is_none_or(|learning| learning.has_enough(&work));
        let is_abandoned = self.cohort.arrived.len() < self.rule.least_of(self.cohort.jobs.len()) || !is_enough;
        if is_abandoned {
            self.cohort.arrived.iter().chain(&self.joining).for_each(|&id| engine.waste(id));
            work.clear();
        }
        self.jobs.joined.extend(self.joining.iter().map(|&id| (engine.jobs[id].client, engine.jobs[id].round)));
        Ok((Intake::Updates(work, Combine::Changes), is_abandoned))
    }
}
