//! A server's probe of clients before a selection: their answers, the bytes that they move, and the time that the
//! slowest of them takes.
//!
//! Clients answer at once, from the model of that moment; the protocol lets the time pass before it selects.

use super::question::{Asker, SelectionStreams};
use super::server::Server;
use crate::policy::{Answers, Policy, Probe, ServerView, TrainingReport, Wants};
use crate::run::error::RunError;
use crate::run::learning::{Learning, Trained};
use crate::run::timeline::{Charge, Cost, Engine};
use fedgenie_core::id::{ClientId, Round, Turn};
use fedgenie_core::limits::DURATION_SECONDS;
use fedgenie_core::rng::Purpose;
use fedgenie_core::state::Stateful;
use fedgenie_core::time::{Span, VirtualTime};
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::ProbeKind;
use std::sync::Arc;

/// The longest that a server may wait for answers: three phases of a job.
const LONGEST: Span = Span(3 * DURATION_SECONDS * 1_000_000_000);

/// Answers of clients.
#[derive(Default, Stateful)]
pub(in crate::run) struct Answered {
    /// Losses or measures.
    numbers: Vec<(ClientId, f64)>,
    answers: Vec<f64>,
    trained: Vec<(Trained, Update)>,
}

impl Answered {
    /// The clients' reports of their training, with their updates if these came and the policy wants them.
    pub fn trained(&self, policy: &dyn Policy) -> Vec<TrainingReport<'_>> {
        let wants_updates = policy.wants().update;
        let of = |update: &'_ Update| wants_updates && !update.parameters.is_empty();
        let updates = self.trained.iter().map(|(_, update)| of(update).then_some(&*update.parameters));
        self.trained.iter().zip(updates).map(|((trained, _), update)| trained.report(update)).collect()
    }

    /// A view with the answers; `trained` is [`Self::trained`].
    pub fn view<'a>(&'a self, view: ServerView<'a>, trained: &'a [TrainingReport<'a>]) -> ServerView<'a> {
        ServerView { probed: &self.numbers, answers: &self.answers, trained, ..view }
    }
}

/// A selection that waits for clients to answer.
#[derive(Stateful)]
pub(in crate::run) struct Pending {
    /// In which the selection goes on.
    pub streams: SelectionStreams,
    pub answered: Answered,
    /// When the slowest has answered.
    pub until: VirtualTime,
}

/// The policy that asks, and its server's model.
pub(in crate::run) struct Asking<'a> {
    pub asker: Asker,
    pub turn: Turn,
    pub round: Round,
    pub policy: &'a dyn Policy,
    /// The model of the server that asks; `None` where nothing is learned.
    pub model: Option<Arc<[f32]>>,
}

/// The cost of answers: each as many numbers as its kind has, of 8 bytes each, which travel in no time; or else the
/// task's traffic, which takes its share of the time of a whole model.
struct Price<'a> {
    kind: ProbeKind,
    /// Knows which part of an answer travels; `None` for a loss.
    learning: Option<&'a Learning<'a>>,
}

/// A loss, or a measure.
const LOSSES: Price<'_> =
    Price { kind: ProbeKind { name: "loss", numbers: 1, passes: 1.0, needs_model: true }, learning: None };

impl Price<'_> {
    /// Bytes of a client's answer that does not travel as its numbers.
    fn travels(&self, client: ClientId, turn: Turn) -> Option<u64> {
        self.learning.and_then(|learning| learning.answer_bytes(&self.kind, client, turn))
    }

    /// Bytes down and up of these clients' answers.
    fn bytes(&self, model: u64, clients: &[ClientId], turn: Turn) -> [u64; 2] {
        let down = if self.kind.needs_model { model.saturating_mul(clients.len() as u64) } else { 0 };
        let of = |&client: &ClientId| self.travels(client, turn).unwrap_or(8 * self.kind.numbers as u64);
        [down, clients.iter().map(of).fold(0, u64::saturating_add)]
    }
}

/// Answers and their cost.
pub(in crate::run) struct Asked {
    pub answered: Answered,
    /// How long the slowest client takes.
    pub span: Span,
    /// Bytes down and up, which are booked.
    pub bytes: [u64; 2],
}

/// The bytes that a probe moves, both ways together.
pub(in crate::run) fn price(engine: &Engine<'_>, server: &Server<'_>, turn: Turn, probe: &Probe) -> u64 {
    let world = engine.world;
    let of = |price: Price<'_>, clients: &[ClientId]| {
        let [down, up] = price.bytes(world.training.payload_bytes, clients, turn);
        down.saturating_add(up)
    };
    match probe {
        Probe::None | Probe::Context(_) => 0,
        Probe::Losses(clients) | Probe::Qualities(clients) | Probe::BatchLosses { clients, .. } => of(LOSSES, clients),
        Probe::Answers { clients, kind } => {
            // One that the task does not know is refused when it is asked.
            let learning = server.learning.as_ref();
            let kind = learning.and_then(|learning| learning.probe(kind));
            kind.map_or(0, |kind| of(Price { kind, learning }, clients))
        }
        Probe::Training { clients, answers } => {
            let of = |&client: &ClientId| {
                let [down, up] = answered_by_job(*answers, world.transfer(client, turn.into(), (None, 0)));
                down.saturating_add(up)
            };
            clients.iter().map(of).fold(0, u64::saturating_add)
        }
    }
}

/// Asks the clients.
pub(in crate::run) fn carry_out(
    engine: &mut Engine<'_>,
    server: &Server<'_>,
    asking: &Asking<'_>,
    probe: Probe,
) -> Result<Asked, RunError> {
    let mut answered = Answered::default();
    let parallel = server.settings.parallel;
    let learned = || {
        let learning = server.learning.as_ref().zip(asking.model.as_deref());
        learning.expect("a policy asks clients about models only where they learn")
    };
    let charge = match probe {
        Probe::None => Charge::default(),
        Probe::Context(span) => Charge { span, ..Charge::default() },
        Probe::Losses(clients) => {
            let (learning, model) = learned();
            answered.numbers = learning.losses(model, &clients, parallel)?;
            charge(engine, asking.turn, &clients, &LOSSES, |_| 1.0)?
        }
        Probe::BatchLosses { clients, size } => {
            let (learning, model) = learned();
            answered.numbers = learning.batch_losses(model, (asking.turn, size), &clients, parallel)?;
            charge(engine, asking.turn, &clients, &LOSSES, |client| learning.share_of_batch(client, size))?
        }
        Probe::Qualities(clients) => {
            let (learning, model) = learned();
            answered.numbers = learning.qualities(model, &clients, parallel)?;
            charge(engine, asking.turn, &clients, &LOSSES, |_| 1.0)?
        }
        Probe::Answers { clients, kind } => {
            let (learning, model) = learned();
            let kind = learning.probe(kind).ok_or_else(|| unknown(server, asking, kind))?;
            answered.answers = learning.answers(&kind, model, asking.turn, &clients, parallel)?;
            charge(engine, asking.turn, &clients, &Price { kind, learning: Some(learning) }, |_| kind.passes)?
        }
        Probe::Training { clients, answers } => {
            let (learning, model) = learned();
            // Of an update that does not come nothing is known.
            let wants = match answers {
                Answers::Loss => Wants::default(),
                Answers::Norm => Wants { norm: true, ..Wants::default() },
                Answers::Update => server.settings.wants(asking.policy),
            };
            answered.trained = learning.rehearse(model, (asking.round, asking.turn), &clients, wants, parallel)?;
            charge_training(engine, asking.turn, &clients, answers)?
        }
    };
    let Charge { span, cost } = charge;
    if span > LONGEST {
        return Err(RunError::Probe {
            policy: asking.asker.policy(&server.label),
            turn: asking.turn,
            round: asking.round,
        });
    }
    engine.accounts.probe(cost);
    engine.audit.probed(cost);
    Ok(Asked { answered, span, bytes: [cost.down_bytes, cost.up_bytes] })
}

fn unknown(server: &Server<'_>, asking: &Asking<'_>, kind: &str) -> RunError {
    let what = format!("asks clients for {kind:?}, which this task does not know");
    RunError::BadSelection { policy: asking.asker.policy(&server.label), turn: asking.turn, round: asking.round, what }
}

/// The cost of answers for which each client makes so many inference passes.
fn charge(
    engine: &Engine<'_>,
    turn: Turn,
    clients: &[ClientId],
    price: &Price<'_>,
    passes: impl Fn(ClientId) -> f64,
) -> Result<Charge, RunError> {
    let world = engine.world;
    let (ProbeKind { needs_model, .. }, whole) = (price.kind, world.training.payload_bytes);
    let mut charge = Charge::default();
    for &client in clients {
        let share = price.travels(client, turn).map_or(0.0, |bytes| bytes as f64 / whole.max(1) as f64);
        let [download, compute, upload] =
            world.population.draw(&world.streams, Purpose::Probe, client, turn.into(), [1.0, share])?.phases;
        let inference = Span((compute.0 as f64 * world.inference_of_job(client) * passes(client)) as u64);
        let answer = Span(inference.0.saturating_add(if share > 0.0 { upload.0 } else { 0 }));
        let span = if needs_model { Span(download.0.saturating_add(answer.0)) } else { answer };
        charge.span = charge.span.max(span);
        charge.cost.compute += inference;
    }
    [charge.cost.down_bytes, charge.cost.up_bytes] = price.bytes(whole, clients, turn);
    Ok(charge)
}

/// Bytes of a job that is done for its answer, down and up.
fn answered_by_job(answers: Answers, [down, up]: [u64; 2]) -> [u64; 2] {
    match answers {
        Answers::Loss | Answers::Norm => [down, LOSSES.kind.numbers as u64 * 8],
        Answers::Update => [down, up],
    }
}

fn charge_training(
    engine: &Engine<'_>,
    turn: Turn,
    clients: &[ClientId],
    answers: Answers,
) -> Result<Charge, RunError> {
    let mut charge = Charge::default();
    for &client in clients {
        let (draw, transfer) = engine.job(Purpose::Probe, client, turn.into())?;
        let [down_bytes, up_bytes] = answered_by_job(answers, transfer);
        let [download, compute, upload] = draw.phases;
        let upload = if answers == Answers::Update { upload } else { Span(0) };
        charge.span = charge.span.max(Span(download.0.saturating_add(compute.0).saturating_add(upload.0)));
        let compute = compute.into();
        charge.cost += Cost { compute, down_bytes, up_bytes, ..Cost::default() };
    }
    Ok(charge)
}
