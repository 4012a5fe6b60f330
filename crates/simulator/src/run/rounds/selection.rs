//! The selection of a round: the probe that the policy asks for, the selection itself, and its regret.

use super::Rounds;
use crate::policy::{Policy, ServerView};
use crate::population::LatencyError;
use crate::run::RunError;
use crate::run::engine::{Engine, Event, THE_SERVER, Timer};
use crate::run::hindsight::HindsightMeter;
use crate::run::probe::{Asked, Asking, carry_out, price};
use crate::run::question::{Asker, Question, SelectionStreams, view as see};
use crate::run::server::Server;
use crate::world::World;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::regret::MeteredRound;
use fedgenie_core::oracle::reward::{History, bottleneck};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::{Span, VirtualTime};

impl<'w> Rounds<'w> {
    /// Selects; false if the budget does not pay for that.
    pub(super) fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'w>) -> Result<bool, RunError> {
        let world = engine.world;
        let mut streams = SelectionStreams::new(world, Asker::Server, self.turn);
        let least = world.budget.least;
        let question = self.question(engine, server);
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view = see(world, &server.counts, &*self.policy, question.bounds, forecaster);
        if question.cohort < least {
            return server.give_up(engine, self.turn, 0).map(|()| false);
        }
        let probe = question.probe(&mut *self.policy, &view, &mut streams)?;
        let asking = Asking {
            asker: Asker::Server,
            turn: self.turn,
            round: server.round(),
            policy: &*self.policy,
            model: server.learning.as_ref().map(|learning| learning.model(0)),
        };
        let asked = price(engine, server, self.turn, &probe);
        if self.payable(engine, self.rule.ask, asked) < least {
            return server.give_up(engine, self.turn, asked).map(|()| false);
        }
        let Asked { answered, span, .. } = carry_out(engine, server, &asking, probe)?;
        self.pass(engine, span)?;
        let trained = answered.trained(&*self.policy);
        let question = self.question(engine, server);
        // Others may be there now, whose jobs are dearer.
        if question.cohort < least {
            return server.give_up(engine, self.turn, asked).map(|()| false);
        }
        let metered = world.truth.as_ref().filter(|truth| !truth.meters.is_empty());
        if let Some(truth) = metered {
            let history = history(world, self.turn, &server.counts);
            truth.genie.reward.gains(&history, question.candidates.list(), &mut self.available_gains);
        }
        let gains = metered.map(|truth| (&truth.genie.reward, &*self.available_gains));
        let gains = gains.filter(|(_, gains)| !gains.is_empty());
        let foreseen = foresee(self.hindsight.as_mut(), &*self.policy, engine, server, &question)?;
        let foreseen = foreseen.as_ref().map(|(best, value)| (&**best, *value));
        let forecaster = self.forecaster.as_ref().map(|forecaster| forecaster.at(engine.now()));
        let view = see(world, &server.counts, &*self.policy, question.bounds, forecaster);
        let view = answered.view(ServerView { gains, foreseen, ..view }, &trained);
        let offer = question.offer();
        let explained = question.ask(&mut *self.policy, &view, &mut streams, &mut self.cohort.selection)?;
        if self.rule.carry.is_some() {
            question.check_alike(&engine.jobs, &self.cohort.selection)?;
        }
        server.offers.add(offer);
        server.explanations.extend(explained);
        Ok(true)
    }

    /// How many of so many clients the budget pays for, after so many bytes for what is asked before.
    pub(super) fn payable(&self, engine: &Engine<'_>, clients: usize, asked: u64) -> usize {
        engine.payable(THE_SERVER, clients, asked, |_| self.turn.into())
    }

    fn question<'a>(&self, engine: &'a Engine<'_>, server: &'a Server<'_>) -> Question<'a> {
        let most = self.payable(engine, self.rule.most, 0);
        Question {
            world: engine.world,
            label: &server.label,
            asker: Asker::Server,
            turn: self.turn,
            round: server.round(),
            now: engine.now(),
            least: engine.world.budget.least,
            cohort: most.min(self.rule.ask),
            most,
            take: self.rule.take,
            bounds: engine.world.bounds(self.rule),
            has_rounds: true,
            candidates: engine.candidates(THE_SERVER),
            explain: server.settings.explain,
        }
    }

    /// Lets virtual time pass before the selection; late jobs of earlier rounds go on meanwhile.
    fn pass(&mut self, engine: &mut Engine<'_>, span: Span) -> Result<(), RunError> {
        if span == Span::ZERO {
            return Ok(());
        }
        self.wait_until(engine, engine.now() + span)?;
        // The candidates may have gone meanwhile.
        self.wait_for_candidates(engine)
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
        let (Some(truth), Some(meters)) = (&world.truth, &mut self.meters) else { return Ok(()) };
        let genie = &truth.genie;
        let (selection, turn, cut) = (&self.cohort.selection, self.turn, self.rule.cut);
        let history = history(world, turn, &server.counts);
        self.speeds.clear();
        let speeds = self.cohort.jobs.iter().map(|&id| genie.reward.speed(engine.jobs[id].draw.effective(cut)));
        self.speeds.extend(speeds);
        genie.reward.gains(&history, selection, &mut self.gains);
        let take = self.rule.take.min(selection.len());
        server.reward = Some(bottleneck(&self.speeds, take) + self.gains.iter().sum::<f64>());
        if truth.meters.is_empty() {
            return Ok(());
        }
        let metered = MeteredRound {
            genie,
            history,
            gains: &self.available_gains,
            take: self.rule.take,
            available: engine.candidates(THE_SERVER).list(),
            selected: selection,
        };
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
}

/// The best set of a selection and what it is worth, with the updates that the candidates would return; none if the
/// policy is not to know that.
fn foresee<'w>(
    meter: Option<&mut HindsightMeter<'w>>,
    policy: &dyn Policy,
    engine: &Engine<'_>,
    server: &Server<'w>,
    question: &Question<'_>,
) -> Result<Option<(Vec<ClientId>, f64)>, RunError> {
    let Some(most) = policy.foresees(&question.request()) else { return Ok(None) };
    if !policy.sees_truth() {
        return Err(question.refuse("asks for the best set in hindsight, and does not say that it sees the truth"));
    }
    let (Some(meter), Some(learning)) = (meter.filter(|meter| meter.is_of_sets()), &server.learning) else {
        return Err(question.refuse("asks for the best set in hindsight, and no sets are metered"));
    };
    let numbers = (question.round, question.turn);
    let parallel = server.settings.parallel;
    let open = meter.open(engine, numbers, most, |_| question.turn.into(), (learning, parallel), None)?;
    Ok(Some(meter.foresee(&open, learning, parallel)))
}

fn history<'a>(world: &'a World, turn: Turn, counts: &'a [u32]) -> History<'a> {
    History { turn, cohort: world.protocol.rule.ask(), shares: &world.shares, counts }
}
