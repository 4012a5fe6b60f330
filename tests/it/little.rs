//! A little task from outside, in which everything is a small sum of powers of two: noise that shows, a loss that
//! clients answer, a slope, rows that grow old, evaluations that are charged.

use super::support::{SCENARIO, SETTINGS, Script};
use fedgenie::config::Complaint;
use fedgenie::experiment::Experiment;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Parcel, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures, MetricId};
use fedgenie::model::weights::TensorLayout;
use fedgenie::policy::Policy;
use fedgenie::record::Record;
use fedgenie::recorder::{HindsightRound, RoundMark, RoundSummary, Sink};
use fedgenie::rng::Streams;
use fedgenie::run::{Accounts, Run, RunError};
use fedgenie::scenario::tree;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, JobKey, Losses, Material, ModelState, On, PartialTransfer,
    PrivateState, PrivateView, ProbeKind, Probes, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::{LocalTraining, NoiseScope};
use fedgenie::world::World;
use std::io;
use std::path::Path;

pub const ROWS: u32 = 6;
/// Bytes of the model: a bias and six rows of one number.
pub const MODEL_BYTES: u64 = 4 * (1 + ROWS as u64);
/// Bytes of an update: the bias, and two rows with their ids.
pub const UPDATE_BYTES: u64 = 4 * (1 + 2 * 2);
/// Examples of each client; one has none.
pub const EXAMPLES: [usize; 6] = [2, 4, 0, 8, 2, 1];
/// The addend of training to the bias.
pub const BIAS: [f32; 6] = [0.5, -0.25, 0.0, 0.125, -1.0, 2.0];
/// The summed loss at the start.
pub const LOSSES: [f64; 6] = [3.0, 1.0, 9.0, 4.0, 2.0, 8.0];

/// Client `k` moves the bias and the rows `k` and `k + 1` (mod 6), and counts its updates.
#[derive(Debug)]
pub struct Little {
    layout: Layout,
    description: Description,
    settings: Settings,
}

/// The task's declared abilities.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    pub has_noise: bool,
    pub charges: bool,
    pub answers: bool,
    pub has_slope: bool,
}

/// The rows that a client moves.
pub fn rows(client: u32) -> Vec<u32> {
    let mut rows = vec![client % ROWS, (client + 1) % ROWS];
    rows.sort_unstable();
    rows
}

/// How far a client moves its rows.
pub fn step(client: u32) -> f32 {
    0.125 * (client + 1) as f32
}

/// The slope by the bias and by each row, of a model whose clients have counted so many updates together.
pub fn slope(bias: f32, counted: f32) -> Vec<f32> {
    let rows = (0..ROWS).map(|row| (row as f32 - 2.0) * 0.5);
    [1.0 + bias].into_iter().chain(rows).map(|slope| slope * (1.0 + counted)).collect()
}

/// A client's answers: its loss, and its knowledge of the round, of itself and of the model.
pub fn loss(client: u32, number: u32, counted: f64, bias: f64) -> f64 {
    LOSSES[client as usize] + f64::from(number % 3) * f64::from(client) - 2.0 * counted + 0.25 * bias
}

impl Little {
    fn counted(&self, client: ClientId, private: &PrivateView<'_>) -> f32 {
        private.get(client).map_or(0.0, |kept| kept[0])
    }
}

impl Task for Little {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _: u32, _: &Streams, parameters: &mut [f32]) {
        parameters.fill(0.0);
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        100.0
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        update.clear();
        let client = job.client.0;
        // Noise that a test can see: its deviation, twice of it on rows that are sent anyway.
        let noise = context.settings.noise.map_or(0.0, |noise| match noise.scope {
            NoiseScope::Table => noise.sigma,
            NoiseScope::Rows => 2.0 * noise.sigma,
        });
        update.parameters.push(job.start[0] + BIAS[client as usize] + noise);
        update.rows = rows(client);
        let moved = update.rows.iter().map(|&row| job.start[self.layout.row(row)][0] + step(client));
        update.parameters.extend(moved);
        update.private = vec![job.private.map_or(0.0, |kept| kept[0]) + 1.0];
        update.first_loss = 1.0;
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for Ask { on, state, values, weight } in asks {
            let ages = || state.moved.iter().map(|&moved| f64::from(state.round.since(moved)));
            values[0] = match on {
                On::Model => ages().sum::<f64>() / f64::from(ROWS),
                On::Valid => f64::from(state.model.iter().sum::<f32>()),
                _ => f64::from(state.model[0]),
            };
            *weight = 1.0;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("all".to_owned(), vec![7])])
    }

    fn partial(&self) -> Option<&dyn PartialTransfer> {
        Some(self)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        Some(self)
    }
}

impl PartialTransfer for Little {
    fn transfer(&self, _: JobKey, _: &Context<'_>) -> [Parcel; 2] {
        [self.layout().whole(), Parcel::plain(1 + 2, 2)]
    }
}

impl PrivateState for Little {
    fn len(&self, _: ClientId) -> usize {
        1
    }
}

impl Losses for Little {
    fn client_loss(&self, _: ClientId, _: &ModelState<'_>) -> Result<f64, Failure> {
        Ok(f64::NAN)
    }

    fn slope(&self, state: &ModelState<'_>, found: &mut Vec<f32>) -> Result<bool, Failure> {
        let counted = (0..6).map(|client| self.counted(ClientId(client), &state.private)).sum();
        *found = slope(state.model[0], counted);
        Ok(self.settings.has_slope)
    }
}

impl Probes for Little {
    fn kinds(&self) -> &[ProbeKind] {
        const KINDS: [ProbeKind; 2] = [
            ProbeKind { name: "pair", numbers: 2, passes: 1.0, needs_model: true },
            ProbeKind { name: "summed-loss", numbers: 1, passes: 1.0, needs_model: true },
        ];
        if self.settings.answers { &KINDS } else { &KINDS[..1] }
    }

    fn answer(
        &self,
        kind: &ProbeKind,
        job: JobKey,
        _: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure> {
        assert_eq!(kind.name, "summed-loss");
        let counted = f64::from(self.counted(job.client, &state.private));
        answer.push(loss(job.client.0, job.number.0, counted, f64::from(state.model[0])));
        Ok(())
    }
}

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, charges_evaluation: self.charges, ..About::default() }
    }

    fn measures(&self) -> Measures {
        let (of_data, of_model) = (vec![Measure::error("level")], vec![Measure::error("item_staleness")]);
        Measures { of_data, of_model, has_valid: true, ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let segments = vec![
            Segment::dense("bias", 1, Scope::Shared),
            Segment::table("items.weight", ROWS as usize, 1, Scope::Shared),
        ];
        let Self { answers: has_losses, has_noise, .. } = *self;
        let description = Description { has_losses, has_noise, ..Description::of(EXAMPLES) };
        Ok(Some(Box::new(Little { layout: Layout::new(segments), description, settings: *self })))
    }
}

/// Six clients; two epochs of training, of which an inference pass takes half of one, a quarter of the job.
const SIX: &str = r#"
name = "little"
seeds = 1
[stop]
rounds = 12
[population]
clients = 6
[population.latency]
download = { constant = { each = ["1 s", "2 s", "40 s", "8 s", "4 s", "1 s"] } }
compute = { constant = { each = ["8 s", "16 s", "40 s", "4 s", "4 s", "8 s"] } }
upload = { constant = "1 s" }
[training]
epochs = 2
inference_share = 0.5
optimizer = { sgd = { lr = 0.1 } }
"#;

pub const TWO: &str = "[protocol.synchronous]\ncohort = 2\n";

/// The scenario's text.
pub fn text(protocol: &str, more: &str) -> String {
    format!("{SIX}{protocol}{more}[policy.random]\n")
}

pub fn experiment(protocol: &str, more: &str, settings: Settings) -> Result<Experiment, String> {
    let root = tree::parse(Path::new(SCENARIO), &text(protocol, more)).unwrap();
    let mut experiment = Experiment::from_tree(&root, Path::new("."), None).map_err(|error| error.to_string())?;
    experiment.set_task(settings).map_err(|error| error.to_string())?;
    Ok(experiment)
}

pub fn world(protocol: &str, more: &str, settings: Settings) -> World {
    experiment(protocol, more, settings).unwrap().world(0, 1, &DataCache::default()).unwrap()
}

/// Why there is no such world, with file and line.
pub fn refused(protocol: &str, more: &str, settings: Settings) -> String {
    match experiment(protocol, more, settings) {
        Err(message) => message,
        Ok(experiment) => experiment.world(0, 1, &DataCache::default()).unwrap_err().to_string(),
    }
}

/// A round's record.
#[derive(Clone, Debug)]
pub struct Round {
    pub opened: u64,
    pub closed: u64,
    pub bytes: [u64; 2],
    pub metrics: Vec<(MetricId, f64)>,
    pub judged: Vec<HindsightRound>,
}

/// Keeps the rounds.
#[derive(Clone, Debug, Default)]
pub struct Rounds(pub Vec<Round>);

impl Sink for Rounds {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0.push(Round {
            opened: summary.opened.0,
            closed: summary.closed.0,
            bytes: [summary.down_bytes, summary.up_bytes],
            metrics: summary.metrics.to_vec(),
            judged: summary.hindsight.to_vec(),
        });
        Ok(())
    }
}

/// Plays rounds of a policy with given choices, each in a new run that has loaded the one before.
pub fn play(world: &World, turns: &[&[u32]], rounds: u32) -> Result<(Vec<Round>, Accounts), RunError> {
    let mut seen = Rounds::default();
    let mut saved: Option<Vec<u8>> = None;
    for round in 1..=rounds {
        let policy: Box<dyn Policy> = Box::new(Script::new(turns));
        let mut run = Run::new(world, "script", policy, SETTINGS, &mut seen);
        saved.iter().for_each(|saved| run.load(saved).unwrap());
        run.step()?;
        saved = Some(run.save().unwrap());
        if round == rounds {
            let (_, accounts) = run.finish()?;
            return Ok((seen.0, accounts));
        }
    }
    unreachable!("some rounds are played")
}
