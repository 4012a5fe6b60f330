//! Decisions of policies: weights, work, sizes, deadlines, and policies' knowledge, with timelines and models by hand.
//!
//! Client `k` of four has `k + 1` examples, and moves the one parameter of the model by `k + 1` in each epoch. A job of
//! two epochs takes 1 s down, 4 s to compute and 1 s up.

mod known;
mod refused;
mod rounds;
mod thin;
mod weights;
mod work;

use crate::support::{SCENARIO, SETTINGS};
use fedgenie::config::Complaint;
use fedgenie::experiment::Experiment;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::policy::{
    Capabilities, OutsidePolicy, Policy, PolicyRng, PolicySource, Selection, SelectionRequest, ServerView,
};
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::Streams;
use fedgenie::run::{Run, RunError};
use fedgenie::scenario::tree;
use fedgenie::state::{State, Stateful};
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, Material, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::time::Span;
use fedgenie::trainer::LocalTraining;
use fedgenie::world::World;
use serde_json::Value;
use std::io;
use std::path::Path;

pub const FOUR: &str = r#"
name = "decisions"
seeds = 1
[stop]
rounds = 9
[population]
clients = 4
[population.latency]
download = { constant = "1 s" }
compute = { constant = "4 s" }
upload = { constant = "1 s" }
[training]
epochs = 2
most_epochs = 6
batch = 4
optimizer = { sgd = { lr = 0.1 } }
"#;

pub const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 2\nmost = 4\n";

/// One parameter that every epoch moves.
#[derive(Debug)]
struct Steps {
    layout: Layout,
    description: Description,
}

impl Task for Steps {
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
        1.0
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        update.clear();
        let epochs = context.settings.epochs().unwrap();
        update.parameters.push(job.start[0] + ((job.client.0 + 1) * epochs) as f32);
        update.first_loss = 1.0;
        Ok(())
    }

    /// The distance to 10.
    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            ask.values[0] = f64::from((ask.state.model[0] - 10.0).abs());
            ask.weight = 1.0;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("weight".to_owned(), vec![1])])
    }
}

#[derive(Debug)]
struct Settings;

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        Measures { of_data: vec![Measure::loss("distance")], ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        Ok(Some(Box::new(Steps {
            layout: Layout::new(vec![Segment::dense("weight", 1, Scope::Shared)]),
            description: Description::of(1..=4),
        })))
    }
}

/// A policy's decision in a turn.
pub fn decision(clients: &[u32], weights: &[f64], work: &[u32], deadline: Option<f64>) -> Selection {
    let mut selection = Selection::default();
    selection.extend(clients.iter().map(|&client| ClientId(client)));
    selection.weights.extend(weights);
    selection.work.extend(work);
    selection.deadline = deadline.map(|seconds| Span::from_seconds(seconds).unwrap());
    selection
}

/// Decides as it was told to, of its server's clients; the last decision is repeated.
#[derive(Clone)]
pub struct Told {
    pub decisions: Vec<Selection>,
    pub can_be_empty: bool,
    pub capabilities: Capabilities,
}

impl Stateful for Told {
    fn exchange(&mut self, _: &mut State<'_>) {}
}

impl Policy for Told {
    fn can_be_empty(&self) -> bool {
        self.can_be_empty
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let turn = (ask.turn.0 as usize - 1).min(self.decisions.len() - 1);
        let decided = &self.decisions[turn];
        for (place, &client) in decided.iter().enumerate().filter(|(_, client)| ask.available.scope().contains(client))
        {
            selection.push(client);
            selection.weights.extend(decided.weights.get(place));
            selection.work.extend(decided.work.get(place));
        }
        selection.deadline = decided.deadline;
        Ok(())
    }
}

pub fn told(decisions: Vec<Selection>) -> PolicySource {
    source(Told { decisions, can_be_empty: true, capabilities: Capabilities::default() })
}

pub fn source(policy: impl Policy + Clone + Sync + 'static) -> PolicySource {
    PolicySource::Outside(OutsidePolicy::new("mine", move |_| Ok(Box::new(policy.clone()))))
}

/// The rounds of a run as they are recorded, and its models.
#[derive(Debug, Default)]
pub struct Course {
    pub rounds: Vec<Value>,
    pub models: Vec<f32>,
}

impl Sink for Course {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Record::Model { parameters, .. } = record {
            self.models.push(parameters[0]);
        }
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.rounds.push(summary.to_json());
        Ok(())
    }
}

impl Course {
    /// When rounds closed, in seconds.
    pub fn closed(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| round["closed_s"].as_f64().unwrap()).collect()
    }

    /// A column, null where a round has it not.
    pub fn column(&self, name: &str) -> Vec<Value> {
        self.rounds.iter().map(|round| round[name].clone()).collect()
    }

    /// Compares when rounds closed, and the models that they made.
    #[track_caller]
    pub fn assert(&self, closed: &[f64], models: &[f32]) {
        assert_eq!(self.closed(), closed, "{self:?}");
        assert_eq!(self.models.len(), models.len(), "{self:?}");
        let is_near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-5;
        assert!(self.models.iter().zip(models).all(is_near), "{models:?} expected in {self:?}");
    }
}

pub fn experiment_of(text: &str, base: &Path) -> Experiment {
    let root = tree::parse(Path::new(SCENARIO), &format!("{text}[policy.random]\n")).unwrap();
    let mut experiment = Experiment::from_tree(&root, base, None).unwrap();
    experiment.set_task(Settings).unwrap();
    experiment
}

pub fn world_of(text: &str) -> World {
    experiment_of(text, Path::new(".")).world(0, 1, &DataCache::default()).unwrap()
}

/// Plays rounds in a world; saves after each round, and goes on in another run.
pub fn play_in(world: &World, source: &PolicySource, rounds: u32) -> Result<Course, RunError> {
    let mut course = Course::default();
    let mut saved: Option<Vec<u8>> = None;
    for _ in 0..rounds {
        let policies = world.policies(source).unwrap();
        let mut run = Run::new(world, "double", policies, SETTINGS, &mut course);
        if let Some(bytes) = &saved {
            run.load(bytes).unwrap();
        }
        run.step()?;
        saved = Some(run.save().unwrap());
    }
    // The whole run passes the checks at its end.
    let mut whole = Course::default();
    let mut run = Run::new(world, "double", world.policies(source).unwrap(), SETTINGS, &mut whole);
    (0..rounds).try_for_each(|_| run.step())?;
    run.finish()?;
    assert_eq!((&whole.rounds, &whole.models), (&course.rounds, &course.models), "a loaded run goes on as before");
    Ok(course)
}

/// Plays decisions under a protocol.
pub fn played(protocol: &str, decisions: &[Selection], rounds: u32) -> Course {
    play_in(&world_of(&format!("{FOUR}{protocol}")), &told(decisions.to_vec()), rounds).unwrap()
}
