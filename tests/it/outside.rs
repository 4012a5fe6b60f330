//! Policies and tasks of a program that fail, are stopped, train jobs together, or are asked from outside.

mod asked;
mod bounded;
mod cancelled;
mod failing;
mod folded;
mod together;

use super::support::SCENARIO;
use fedgenie::config::Complaint;
use fedgenie::experiment::Experiment;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::{ClientId, Round};
use fedgenie::layout::{Layout, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::rng::Streams;
use fedgenie::scenario::tree;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, JobKey, Losses, Material, ModelState, ProbeKind, Probes, Task,
    TaskError, TaskSettings, Together, Worker,
};
use fedgenie::trainer::LocalTraining;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The protocols.
const PROTOCOLS: [(&str, &str); 6] = [
    ("synchronous", "[protocol.synchronous]\ncohort = 3\n"),
    ("over-selection", "[protocol.over-selection]\nask = 4\ntake = 2\n"),
    ("deadline", "[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\nlate = { carry = {} }\n"),
    ("buffered", "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n"),
    ("hierarchical", "[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\n"),
    ("buffered cloud", "[protocol.hierarchical]\nedges = 3\ncohort = 2\ncloud = { buffer = 2 }\n"),
];

/// Eight clients of different speeds.
const EIGHT: &str = r#"
name = "outside"
seeds = 2
[stop]
rounds = 6
[evaluate]
every = 1
[record]
explain = true
[population]
clients = 8
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] } } }
upload = { constant = "0.1 s" }
[training]
epochs = 2
batch = 4
optimizer = { sgd = { lr = 0.1 } }
"#;

/// The reason of a test.
#[derive(Debug, PartialEq, Eq)]
struct Broken(u32);

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "broken part {}", self.0)
    }
}

impl std::error::Error for Broken {}

/// How the task's jobs are trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    #[default]
    OneByOne,
    Together,
}

/// What is done at the beginning of a job.
type AtJob = Arc<dyn Fn(&Job<'_>, &Context<'_>) + Send + Sync>;

/// Settings of the task.
#[derive(Clone, Default)]
struct Settings {
    /// The method that fails, and from which round on.
    fails: Option<(&'static str, u32)>,
    way: Way,
    at_job: Option<AtJob>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Settings").field("fails", &self.fails).field("way", &self.way).finish()
    }
}

/// Three numbers that move towards a client's own, by plain descent; client 7 is trained in hindsight alone.
#[derive(Debug)]
struct Own {
    layout: Layout,
    description: Description,
    settings: Settings,
}

impl Own {
    fn fail(&self, method: &str, round: Round) -> Result<(), Failure> {
        match self.settings.fails {
            Some((fails, from)) if fails == method && round.0 >= from => Err(Broken(round.0).into()),
            _ => Ok(()),
        }
    }

    fn wanted(client: ClientId) -> f32 {
        1.0 + client.0 as f32
    }

    fn do_job(job: &Job<'_>, context: &Context<'_>, update: &mut Update) {
        update.clear();
        let rate = context.settings.rate(job.round);
        let epochs = job.epochs.or(context.settings.epochs()).unwrap();
        update.parameters.extend_from_slice(job.start);
        for (place, number) in update.parameters.iter_mut().enumerate() {
            for _ in 0..epochs {
                let correction = job.correction.map_or(0.0, |numbers| numbers[place]);
                *number -= rate * (*number - Self::wanted(job.client) + correction);
            }
        }
        let error = f64::from(job.start[0] - Self::wanted(job.client));
        (update.first_loss, update.steps) = (error * error / 2.0, epochs.into());
    }
}

impl Task for Own {
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
        1e9
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        assert_eq!(self.settings.way, Way::OneByOne);
        self.settings.at_job.iter().for_each(|at_job| at_job(job, context));
        self.fail("train", job.round)?;
        if self.settings.fails == Some(("train of client 7", 0)) && job.client == ClientId(7) {
            return Err(Broken(7).into());
        }
        Self::do_job(job, context, update);
        Ok(())
    }

    fn together(&self) -> Option<&dyn Together> {
        (self.settings.way == Way::Together).then_some(self)
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            self.fail("evaluate", ask.state.round)?;
            let error = f64::from(ask.state.model[0]) - 4.5;
            ask.values[0] = error * error;
            ask.weight = 1.0;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("numbers".to_owned(), vec![3])])
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        Some(self)
    }
}

impl Together for Own {
    fn train_many(&self, jobs: &[Job<'_>], context: &Context<'_>, updates: &mut [Update]) -> Result<(), Failure> {
        for (job, update) in jobs.iter().zip(updates) {
            self.fail("train_many", job.round)?;
            Self::do_job(job, context, update);
        }
        Ok(())
    }
}

impl Losses for Own {
    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        self.fail("client_loss", state.round)?;
        let error = f64::from(state.model[0] - Self::wanted(client));
        Ok(error * error / 2.0)
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, _: &mut Worker) -> Result<f64, Failure> {
        self.fail("squared_losses", state.round)?;
        let loss = self.client_loss(client, state)?;
        Ok(loss * loss)
    }

    fn has_gradient(&self) -> bool {
        true
    }

    fn gradient(
        &self,
        job: &Job<'_>,
        _: &Context<'_>,
        _: &mut Worker,
        gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        self.fail("gradient", job.round)?;
        gradient.clear();
        gradient.extend(job.start.iter().map(|number| number - Self::wanted(job.client)));
        Ok(true)
    }

    fn slope(&self, state: &ModelState<'_>, slope: &mut Vec<f32>) -> Result<bool, Failure> {
        self.fail("slope", state.round)?;
        slope.clear();
        slope.extend(state.model.iter().map(|number| 2.0 * (number - 4.5)));
        Ok(true)
    }
}

impl Probes for Own {
    fn kinds(&self) -> &[ProbeKind] {
        const { &[ProbeKind { name: "level", numbers: 1, passes: 1.0, needs_model: true }] }
    }

    fn answer(
        &self,
        _: &ProbeKind,
        _: JobKey,
        _: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure> {
        self.fail("answer", state.round)?;
        answer.push(f64::from(state.model[0]));
        Ok(())
    }
}

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        Measures { of_data: vec![Measure::loss("loss")], ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        if self.fails == Some(("material", 0)) {
            return Err(TaskError::Outside(Broken(0).into()));
        }
        let layout = Layout::new(vec![Segment::dense("numbers", 3, Scope::Shared)]);
        let description = Description { has_losses: true, ..Description::of([4; 8]) };
        Ok(Some(Box::new(Own { layout, description, settings: self.clone() })))
    }
}

/// The text of a scenario with a protocol, and the policy `random`.
fn text(protocol: &str, more: &str) -> String {
    format!("{EIGHT}{protocol}{more}[policy.random]\n")
}

/// The experiment of it, with the task.
fn experiment(protocol: &str, more: &str, settings: Settings) -> Experiment {
    let text = text(protocol, more);
    let root = tree::parse(Path::new(SCENARIO), &text).unwrap();
    let mut experiment =
        Experiment::from_tree(&root, Path::new("."), None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    experiment.set_task(settings).unwrap_or_else(|error| panic!("{error}\n{text}"));
    experiment
}
