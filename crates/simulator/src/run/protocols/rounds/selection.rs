//! The selection of a round: the probe that the policy asks for, the selection itself, and its regret.

use super::{Opening, Rounds};
use crate::policy::{PolicyRng, SelectionRequest, ServerView};
use crate::population::LatencyError;
use crate::run::error::RunError;
use crate::run::round::{Known, Limits, Pending, Server, price};
use crate::run::timeline::{Engine, Event, THE_SERVER, Timer};
use crate::world::World;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::regret::MeteredRound;
use fedgenie_core::oracle::reward::{History, bottleneck};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::VirtualTime;

/// A question that waits for a selection.
pub(super) struct Asked {
    limits: Limits,
    pending: Pending,
    foreseen: Option<(Vec<ClientId>, f64)>,
}

/// What a policy knows beyond its own history.
fn known<'a>(world: &'a World, gains: &'a [f64], foreseen: &'a Option<(Vec<ClientId>, f64)>) -> Known<'a> {
    let foreseen = foreseen.as_ref().map(|(best, value)| (&**best, *value));
    let metered = world.truth.as_ref().filter(|truth| !truth.meters.is_empty());
    let gains = metered.map(|truth| (&truth.genie.reward, gains)).filter(|(_, gains)| !gains.is_empty());
    Known { gains, foreseen, ..Known::default() }
}

impl<'w> Rounds<'w> {
    /// What comes before a selection: the probe, and what the policy is told. `None` if the budget does not pay for it.
    pub(super) fn open(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<Option<Asked>, RunError> {
        let (world, turn) = (engine.world, self.selector.turn);
        let least = world.budget.least;
        let limits = self.limits(engine, server);
        if limits.cohort < least {
            return server.give_up(engine, turn, 0).map(|()| None);
        }
        let (probe, streams) = self.selector.probe(engine, server, limits, Known::default())?;
        let asked = price(engine, server, turn, &probe);
        if self.payable(engine, self.rule.ask, asked) < least {
            return server.give_up(engine, turn, asked).map(|()| None);
        }
        let model = server.learning.as_ref().map(|learning| learning.model(0));
        let (pending, _) = self.selector.ask_clients(engine, server, (limits.round, model), (probe, streams))?;
        if pending.until > engine.now() {
            self.wait_until(engine, pending.until)?;
            // The candidates may have gone meanwhile.
            self.wait_for_candidates(engine)?;
        }
        let limits = self.limits(engine, server);
        // Others may be there now, whose jobs are dearer.
        if limits.cohort < least {
            return server.give_up(engine, turn, asked).map(|()| None);
        }
        let metered = world.truth.as_ref().filter(|truth| !truth.meters.is_empty());
        if let Some(truth) = metered {
            let history = history(world, turn, &server.counts);
            truth.genie.reward.gains(&history, engine.candidates(THE_SERVER).list(), &mut self.available_gains);
        }
        let foreseen = self.foresee(engine, server, limits)?;
        Ok(Some(Asked { limits, pending, foreseen }))
    }

    /// Lets the policy select.
    pub(super) fn select(
        &mut self,
        engine: &Engine<'_>,
        server: &mut Server<'w>,
        Asked { limits, pending, foreseen }: &mut Asked,
    ) -> Result<(), RunError> {
        let Self { selector, available_gains, cohort, .. } = self;
        let known = known(engine.world, available_gains, foreseen);
        selector.select(engine, server, (*limits, known), pending, &mut cohort.selection)
    }

    /// Shows the question that waits, if there is one.
    pub fn look<T>(
        &mut self,
        engine: &Engine<'_>,
        server: &Server<'_>,
        see: impl FnOnce(&SelectionRequest<'_>, &ServerView<'_>, &mut PolicyRng<'_>) -> T,
    ) -> Option<T> {
        let Self { selector, available_gains, asked, .. } = self;
        let Opening { asked: Asked { limits, pending, foreseen }, .. } = asked.as_mut()?;
        let known = known(engine.world, available_gains, foreseen);
        Some(selector.look(engine, server, (*limits, known), pending, see))
    }

    /// How many of so many clients the budget pays for, after so many bytes for the probe before.
    pub(super) fn payable(&self, engine: &Engine<'_>, clients: usize, asked: u64) -> usize {
        engine.payable(THE_SERVER, clients, asked, |_| self.selector.turn.into())
    }

    fn limits(&self, engine: &Engine<'_>, server: &Server<'_>) -> Limits {
        let most = self.payable(engine, self.rule.most, 0);
        Limits {
            round: server.round(),
            least: engine.world.budget.least,
            cohort: most.min(self.rule.ask),
            most,
            take: self.rule.take,
            bounds: engine.world.bounds(self.rule),
            has_rounds: true,
            mixes: self.rule.carry.is_some(),
        }
    }

    /// Lets virtual time pass until an instant, if that is to come; late jobs of earlier rounds go on meanwhile.
    pub(super) fn wait_until(&mut self, engine: &mut Engine<'_>, until: VirtualTime) -> Result<(), RunError> {
        if until <= engine.now() {
            return Ok(());
        }
        engine.set_timer(Timer::Probe(THE_SERVER), until);
        while let Some(event) = engine.next()? {
            if event == Event::Rang(Timer::Probe(THE_SERVER)) {
                break;
            }
            self.handle(engine, event)?;
        }
        Ok(())
    }

    /// Compares the selection with the genie's, before the history takes it in.
    pub(super) fn measure(&mut self, engine: &Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        let world = engine.world;
        let payable = self.payable(engine, self.rule.ask, 0);
        let (Some(truth), Some(meters)) = (&world.truth, &mut self.meters) else { return Ok(()) };
        let genie = &truth.genie;
        let (selection, turn, cut) = (&self.cohort.selection, self.selector.turn, self.rule.cut);
        self.speeds.clear();
        let speeds = self.cohort.jobs.iter().map(|&id| genie.reward.speed(engine.jobs[id].draw.effective(cut)));
        self.speeds.extend(speeds);
        let speed = bottleneck(&self.speeds, self.rule.take.min(selection.len()));
        if truth.meters.is_empty() {
            let history = history(world, turn, &server.counts);
            genie.reward.gains(&history, selection, &mut self.gains);
            server.reward = Some(speed + self.gains.iter().sum::<f64>());
            return Ok(());
        }
        let metered = MeteredRound {
            genie,
            cohort: self.rule.ask,
            gains: &self.available_gains,
            payable,
            take: self.rule.take,
            available: engine.candidates(THE_SERVER).list(),
            selected: selection,
        };
        server.reward = Some(speed + metered.gains_of(selection).sum::<f64>());
        let speeds = &self.speeds;
        server.regret = meters.measure(&metered, |client| {
            // The jobs of the selection are drawn already.
            if let Some(index) = selection.iter().position(|&selected| selected == client) {
                return Ok(speeds[index]);
            }
            Ok::<_, LatencyError>(
                genie.reward.speed(engine.draw(Purpose::Latency, client, turn.into())?.effective(cut)),
            )
        })?;
        Ok(())
    }

    /// The best set of a selection and its value, with the updates that the candidates would return; `None` if the
    /// policy is not to know that.
    fn foresee(
        &mut self,
        engine: &Engine<'_>,
        server: &Server<'w>,
        limits: Limits,
    ) -> Result<Option<(Vec<ClientId>, f64)>, RunError> {
        let Self { selector, hindsight, .. } = self;
        let question = selector.question(engine, server, limits);
        let most = selector.policy.foresees(&question.request()).map_err(question.failed("foresees"))?;
        let Some(most) = most else { return Ok(None) };
        if !selector.policy.sees_truth() {
            return Err(question.refuse("asks for the best set in hindsight, and does not say that it sees the truth"));
        }
        let meter = hindsight.as_mut().filter(|meter| meter.is_of_sets());
        let (Some(meter), Some(learning)) = (meter, &server.learning) else {
            return Err(question.refuse("asks for the best set in hindsight, and no sets are metered"));
        };
        let (numbers, parallel) = ((limits.round, selector.turn), server.settings.parallel);
        let open = meter.open(engine, numbers, most, |_| selector.turn.into(), (learning, parallel), None)?;
        meter.foresee(&open, learning, parallel).map(Some)
    }
}

fn history<'a>(world: &'a World, turn: Turn, counts: &'a [u32]) -> History<'a> {
    History { turn, cohort: world.protocol.rule.ask(), shares: &world.shares, counts }
}
