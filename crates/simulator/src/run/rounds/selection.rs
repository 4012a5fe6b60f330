//! The selection of a round: the probe that the policy asks for, the selection itself, and its regret.

use super::Rounds;
use crate::policy::{Probe, ServerView};
use crate::population::LatencyError;
use crate::run::RunError;
use crate::run::engine::{Engine, Event, THE_SERVER, Timer};
use crate::run::question::{Asker, Question, SelectionStreams, view};
use crate::run::server::Server;
use crate::world::World;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::regret::MeteredRound;
use fedgenie_core::oracle::reward::{History, bottleneck};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::Span;

impl Rounds<'_> {
    pub(super) fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        let world = engine.world;
        let mut streams = SelectionStreams::new(world, Asker::Server, self.turn);
        let view = view(world, &server.counts);
        let question = self.question(engine, server);
        let probe = self.policy.probe(&question.request(), &view, &mut streams.policy);
        let mut probed = Vec::new();
        match probe {
            Probe::None => {}
            Probe::Context(span) => self.pass(engine, span)?,
            Probe::Losses(clients) => probed = self.probe_losses(engine, server, &clients)?,
        }
        let question = self.question(engine, server);
        let metered = world.truth.as_ref().filter(|truth| !truth.meters.is_empty());
        if let Some(truth) = metered {
            let history = history(world, self.turn, &server.counts);
            truth.genie.reward.gains(&history, question.candidates.list(), &mut self.available_gains);
        }
        let gains = metered.map(|truth| (&truth.genie.reward, &*self.available_gains));
        let view = ServerView { probed: &probed, gains: gains.filter(|(_, gains)| !gains.is_empty()), ..view };
        let explained = question.ask(&mut *self.policy, &view, &mut streams, &mut self.cohort.selection)?;
        server.explanations.extend(explained);
        Ok(())
    }

    fn question<'a>(&self, engine: &'a Engine<'_>, server: &'a Server<'_>) -> Question<'a> {
        Question {
            label: &server.label,
            asker: Asker::Server,
            turn: self.turn,
            round: server.round,
            now: engine.now(),
            cohort: self.rule.ask,
            take: self.rule.take,
            candidates: engine.candidates(THE_SERVER),
            explain: server.settings.explain,
        }
    }

    /// Lets virtual time pass before the selection; late jobs of earlier rounds go on meanwhile.
    fn pass(&mut self, engine: &mut Engine<'_>, span: Span) -> Result<(), RunError> {
        if span == Span::ZERO {
            return Ok(());
        }
        engine.set_timer(Timer::ProbeEnd, engine.now() + span);
        while let Some(event) = engine.next()? {
            if event == Event::Rang(Timer::ProbeEnd) {
                break;
            }
            self.handle(engine, event)?;
        }
        // The candidates may have gone meanwhile.
        self.wait_for_candidates(engine)
    }

    /// Each probed client downloads the model, passes once over its data and answers with one number, which takes no
    /// time.
    fn probe_losses(
        &mut self,
        engine: &mut Engine<'_>,
        server: &Server<'_>,
        clients: &[ClientId],
    ) -> Result<Vec<(ClientId, f64)>, RunError> {
        let world = engine.world;
        let learning = server.learning.as_ref().expect("a policy asks for losses only where clients train");
        let losses = learning.losses(clients, server.settings.parallel)?;
        let mut longest = Span::ZERO;
        for &client in clients {
            let [download, compute, _] = engine.draw(Purpose::Probe, client, self.turn.into())?.phases;
            let inference = Span((compute.0 as f64 * world.inference_of_job(client)) as u64);
            longest = longest.max(download + inference);
        }
        let (down, up) = (world.training.payload_bytes * clients.len() as u64, 8 * clients.len() as u64);
        engine.accounts.down_bytes += down;
        engine.accounts.up_bytes += up;
        engine.audit.probed(down, up);
        self.pass(engine, longest)?;
        Ok(losses)
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

fn history<'a>(world: &'a World, turn: Turn, counts: &'a [u32]) -> History<'a> {
    History { turn, cohort: world.protocol.rule.ask(), shares: &world.shares, counts }
}
