//! The selection of a round: the probe that the policy asks for, the selection itself, and its regret.

use super::Rounds;
use crate::policy::{Probe, ServerView, TrainingReport};
use crate::population::LatencyError;
use crate::run::RunError;
use crate::run::engine::{Engine, Event, THE_SERVER, Timer};
use crate::run::learning::Trained;
use crate::run::question::{Asker, Question, SelectionStreams, view};
use crate::run::server::Server;
use crate::world::World;
use fedgenie_core::id::{ClientId, Turn};
use fedgenie_core::oracle::regret::MeteredRound;
use fedgenie_core::oracle::reward::{History, bottleneck};
use fedgenie_core::rng::Purpose;
use fedgenie_core::time::Span;
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::ProbeKind;

/// What clients answered to a probe.
#[derive(Default)]
struct Answered {
    losses: Vec<(ClientId, f64)>,
    answers: Vec<f64>,
    trained: Vec<(Trained, Update)>,
}

/// What an answer costs.
#[derive(Clone, Copy)]
struct Asked {
    /// Numbers in it.
    numbers: usize,
    /// Inference passes for it.
    passes: f64,
    /// Whether the model is downloaded for it.
    needs_model: bool,
}

impl Rounds<'_> {
    pub(super) fn select(&mut self, engine: &mut Engine<'_>, server: &mut Server<'_>) -> Result<(), RunError> {
        let world = engine.world;
        let mut streams = SelectionStreams::new(world, Asker::Server, self.turn);
        let view = view(world, &server.counts);
        let question = self.question(engine, server);
        let probe = self.policy.probe(&question.request(), &view, &mut streams.policy);
        let found = self.carry_out(engine, server, probe)?;
        let wants_updates = self.policy.wants().update;
        let mut trained: Vec<TrainingReport<'_>> = Vec::with_capacity(found.trained.len());
        for (report, update) in &found.trained {
            trained.push(report.report(wants_updates.then_some(&*update.parameters)));
        }
        let question = self.question(engine, server);
        let metered = world.truth.as_ref().filter(|truth| !truth.meters.is_empty());
        if let Some(truth) = metered {
            let history = history(world, self.turn, &server.counts);
            truth.genie.reward.gains(&history, question.candidates.list(), &mut self.available_gains);
        }
        let gains = metered.map(|truth| (&truth.genie.reward, &*self.available_gains));
        let gains = gains.filter(|(_, gains)| !gains.is_empty());
        let view = ServerView { probed: &found.losses, answers: &found.answers, trained: &trained, gains, ..view };
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

    /// Asks the clients, and lets the time pass that the slowest of them takes. A number of an answer has 8 bytes and
    /// travels in no time.
    fn carry_out(&mut self, engine: &mut Engine<'_>, server: &Server<'_>, probe: Probe) -> Result<Answered, RunError> {
        let mut found = Answered::default();
        let parallel = server.settings.parallel;
        let learning = || server.learning.as_ref().expect("a policy asks clients about models only where they learn");
        match probe {
            Probe::None => {}
            Probe::Context(span) => self.pass(engine, span)?,
            Probe::Losses(clients) => {
                found.losses = learning().losses(&clients, parallel)?;
                self.charge(engine, &clients, Asked { numbers: 1, passes: 1.0, needs_model: true })?;
            }
            Probe::Answers { clients, kind } => {
                let kind = learning().probe(kind).ok_or_else(|| self.unknown_probe(server, kind))?;
                found.answers = learning().answers(&kind, &clients, parallel);
                let ProbeKind { numbers, passes, needs_model, .. } = kind;
                self.charge(engine, &clients, Asked { numbers, passes, needs_model })?;
            }
            Probe::Training(clients) => {
                let wants = server.settings.wants(&*self.policy);
                found.trained = learning().rehearse(server.round, self.turn, &clients, wants, parallel);
                self.charge_training(engine, &clients)?;
            }
        }
        Ok(found)
    }

    fn unknown_probe(&self, server: &Server<'_>, kind: &str) -> RunError {
        let what = format!("asks clients for {kind:?}, which this task does not know");
        RunError::BadSelection { policy: format!("{:?}", server.label), turn: self.turn, round: server.round, what }
    }

    fn charge(&mut self, engine: &mut Engine<'_>, clients: &[ClientId], asked: Asked) -> Result<(), RunError> {
        let world = engine.world;
        let Asked { numbers, passes, needs_model } = asked;
        let mut longest = Span::ZERO;
        for &client in clients {
            let [download, compute, _] = engine.draw(Purpose::Probe, client, self.turn.into())?.phases;
            let inference = Span((compute.0 as f64 * world.inference_of_job(client) * passes) as u64);
            longest = longest.max(if needs_model { download + inference } else { inference });
        }
        let asked = clients.len() as u64;
        let down = if needs_model { world.training.payload_bytes * asked } else { 0 };
        self.book(engine, down, 8 * numbers as u64 * asked);
        self.pass(engine, longest)
    }

    fn charge_training(&mut self, engine: &mut Engine<'_>, clients: &[ClientId]) -> Result<(), RunError> {
        let (mut longest, mut bytes) = (Span::ZERO, [0, 0]);
        for &client in clients {
            let (draw, transfer) = engine.job(Purpose::Probe, client, self.turn.into())?;
            longest = longest.max(draw.total());
            bytes = [bytes[0] + transfer[0], bytes[1] + transfer[1]];
        }
        self.book(engine, bytes[0], bytes[1]);
        self.pass(engine, longest)
    }

    fn book(&self, engine: &mut Engine<'_>, down: u64, up: u64) {
        engine.accounts.down_bytes += down;
        engine.accounts.up_bytes += up;
        engine.audit.probed(down, up);
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
