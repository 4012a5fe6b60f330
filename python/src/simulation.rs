//! A run that Python plays round by round, with a policy or without one.

use crate::arrays;
use crate::asked;
use crate::choice;
use crate::context;
use crate::errors;
use crate::feedback::{Feedback, Gathered};
use crate::policy::Raised;
use crate::setup::Setup;
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, RunId, run_name};
use fedgenie::id::ClientId;
use fedgenie::policy::random::{Deck, draw_uniform};
use fedgenie::policy::{Bounds, Candidates, Selection, SelectionRequest, ServerView};
use fedgenie::recorder::NoSink;
use fedgenie::rng::StreamRng;
use fedgenie::run::{End, OwnedRun, Run, RunError, RunSettings};
use fedgenie::task::DataCache;
use fedgenie::world::World;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A run in progress.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Playing {
    run: Mutex<OwnedRun>,
    name: String,
    end: End,
    is_asked: bool,
    raised: Raised,
}

/// Which run of an experiment.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Which {
    /// The label of its policy; none if Python selects.
    policy: Option<String>,
    seed: u64,
    point: usize,
}

fn begin(experiment: &Experiment, which: &Which) -> Result<(OwnedRun, String, End), Error> {
    let labels = experiment.labels();
    let usage = |message: String| Error::Usage(message);
    let known = labels.join(", ");
    let (_, scenario) = experiment
        .points
        .get(which.point)
        .ok_or_else(|| usage(format!("found point {}; the sweep has {}", which.point, experiment.points.len())))?;
    let arm = match &which.policy {
        None => None,
        Some(policy) => Some(
            labels
                .iter()
                .position(|label| label == policy)
                .ok_or_else(|| usage(format!("found the policy {policy:?}; the scenario has {known}")))?,
        ),
    };
    let label = which.policy.clone().unwrap_or_else(|| "asked".to_owned());
    let name = run_name(&label, (which.point, experiment.points.len()), which.seed);
    let cache = DataCache::default();
    let sections = arm.map_or(&scenario.sections, |arm| scenario.sections_of(arm));
    let settings = RunSettings {
        evaluate: sections.evaluate.plan(sections.stop.end()),
        record_every: sections.record.every,
        explain: false,
        updates: false,
        battery: false,
        parallel: false,
    };
    let end = settings.evaluate.end.clone();
    let run = match arm {
        None => {
            let world: Arc<World> = Arc::new(experiment.world(which.point, which.seed, &cache)?);
            OwnedRun::new(world, move |world| Run::asking(world, &label, settings, NoSink))
                .map_err(|complaint| usage(complaint.to_string()))?
        }
        Some(index) => {
            let id = RunId { point: which.point, seed: which.seed, arm: index, name: name.clone() };
            let world: Arc<World> = Arc::new(experiment.world_of(&id, &cache)?);
            let arm = &scenario.arms[index];
            let policies = world.policies(&arm.source()).map_err(|error| scenario.explain_policy(&arm.label, error))?;
            OwnedRun::new(world, move |world| Ok::<_, Error>(Run::new(world, &label, policies, settings, NoSink)))?
        }
    };
    Ok((run, name, end))
}

/// Begins a run.
#[pyfunction]
pub fn play(py: Python<'_>, setup: Setup, which: &Bound<'_, PyAny>) -> PyResult<Playing> {
    let which: Which = which.extract()?;
    let raised = setup.raised.clone();
    let made = py.detach(|| begin(&setup.experiment()?, &which));
    let (run, name, end) = made.map_err(|error| errors::of(py, &error, &raised))?;
    Ok(Playing { run: Mutex::new(run), name, end, is_asked: which.policy.is_none(), raised })
}

/// A question, copied.
struct Snapshot {
    turn: u32,
    round: u32,
    now_s: f64,
    cohort: usize,
    most: usize,
    take: usize,
    available: Vec<u32>,
    counts: Vec<u32>,
    data_sizes: Vec<u32>,
    shares: Vec<f64>,
    gains: Option<Vec<f64>>,
    bounds: Option<Bounds>,
}

impl Snapshot {
    fn of(ask: &SelectionRequest<'_>, view: &ServerView<'_>) -> Self {
        Self {
            turn: ask.turn.0,
            round: ask.round.0,
            now_s: ask.now.seconds(),
            cohort: ask.cohort,
            most: ask.most,
            take: ask.take,
            available: ask.available.list().iter().map(|client| client.0).collect(),
            counts: view.counts.to_vec(),
            data_sizes: view.data_sizes.to_vec(),
            shares: view.shares.to_vec(),
            gains: view.gains.map(|(_, gains)| gains.to_vec()),
            bounds: view.bounds,
        }
    }
}

/// Random numbers that Python asks for.
enum Draw {
    Uniform(usize),
    Below(u64, usize),
    Sample(Vec<ClientId>, usize),
    Shuffled(Vec<u32>),
    Bits(usize),
}

/// The same, drawn.
enum Drawn {
    Numbers(Vec<f64>),
    Integers(Vec<i64>),
    Clients(Vec<u32>),
    Bits(Vec<u64>),
}

impl Draw {
    fn from(self, ask: &SelectionRequest<'_>, stream: &mut StreamRng) -> Drawn {
        match self {
            Self::Uniform(count) => Drawn::Numbers((0..count).map(|_| stream.uniform()).collect()),
            Self::Below(below, count) => Drawn::Integers((0..count).map(|_| stream.below(below) as i64).collect()),
            Self::Sample(clients, count) => {
                let mut selection = Vec::new();
                let is_available = clients == ask.available.list();
                let candidates = if is_available { ask.available } else { Candidates::from(&clients[..]) };
                draw_uniform(&candidates, count, &mut Deck::default(), stream, &mut selection);
                Drawn::Clients(selection.into_iter().map(|client| client.0).collect())
            }
            Self::Shuffled(mut clients) => {
                stream.shuffle(&mut clients);
                Drawn::Clients(clients)
            }
            Self::Bits(count) => Drawn::Bits((0..count).map(|_| stream.bits()).collect()),
        }
    }
}

impl Playing {
    fn lock(&self) -> MutexGuard<'_, OwnedRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the run, while other threads of Python go on.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl for<'w> FnOnce(&mut Run<'w>) -> T + Send + 'static,
    ) -> T {
        py.detach(|| self.lock().with(work))
    }

    fn refuse(&self, py: Python<'_>, source: RunError) -> PyErr {
        errors::of(py, &Error::Run { run: self.name.clone(), source }, &self.raised)
    }

    fn drawn(&self, py: Python<'_>, draw: Draw) -> PyResult<Drawn> {
        let drawn = self.with(py, |run| run.ask(|ask, _, rng| draw.from(ask, rng.policy)));
        let drawn = drawn.map_err(|error| self.refuse(py, error))?;
        drawn.ok_or_else(|| PyRuntimeError::new_err("the simulation is over: there is no question to draw for"))
    }
}

#[pymethods]
impl Playing {
    #[getter]
    const fn is_asked(&self) -> bool {
        self.is_asked
    }

    /// Plays a round. False if the run was over.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        let end = self.end.clone();
        let stepped = self.with(py, move |run| {
            if end.is_reached(run.round(), run.now(), run.accounts()) || run.is_spent() {
                return Ok(false);
            }
            let before = run.round();
            run.step()?;
            Ok(run.round() != before)
        });
        stepped.map_err(|error| self.refuse(py, error))
    }

    /// The next question; None at the end.
    fn ask<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.with(py, |run| run.ask(|ask, view, _| Snapshot::of(ask, view)));
        let Some(found) = found.map_err(|error| self.refuse(py, error))? else { return Ok(None) };
        let question = PyDict::new(py);
        question.set_item("turn", found.turn)?;
        question.set_item("round", found.round)?;
        question.set_item("now_s", found.now_s)?;
        question.set_item("cohort", found.cohort)?;
        question.set_item("most", found.most)?;
        question.set_item("take", found.take)?;
        question.set_item("available", arrays::array(py, found.available)?)?;
        question.set_item("counts", arrays::array(py, found.counts)?)?;
        question.set_item("data_sizes", arrays::array(py, found.data_sizes)?)?;
        question.set_item("shares", arrays::array(py, found.shares)?)?;
        question.set_item("gains", found.gains.map(|gains| arrays::array(py, gains)).transpose()?)?;
        question.set_item("bounds", found.bounds.map(|bounds| context::bounds(py, &bounds)).transpose()?)?;
        Ok(Some(question))
    }

    /// Plays the round with these clients, which lasts at most so many seconds where the protocol leaves that open.
    fn tell(&self, py: Python<'_>, answer: &Bound<'_, PyAny>, deadline: Option<f64>) -> PyResult<Feedback> {
        let mut selection = Selection::default();
        choice::select(answer, &mut selection)?;
        selection.deadline = deadline.map(asked::deadline).transpose()?;
        let asks = self.with(py, |run| run.ask(|_, _, _| ()));
        if asks.map_err(|error| self.refuse(py, error))?.is_none() {
            return Err(PyRuntimeError::new_err("the simulation is over: nothing is asked any more"));
        }
        let heard = self.with(py, move |run| run.tell(selection)).map_err(|error| self.refuse(py, error))?;
        let mut gathered = Gathered::default();
        heard.iter().for_each(|heard| gathered.add(&heard.feedback()));
        gathered.take(py)
    }

    fn uniform<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyAny>> {
        drawn(py, self.drawn(py, Draw::Uniform(count))?)
    }

    fn below<'py>(&self, py: Python<'py>, n: i64, count: usize) -> PyResult<Bound<'py, PyAny>> {
        let below = u64::try_from(n).ok().filter(|&n| n > 0);
        let below =
            below.ok_or_else(|| PyValueError::new_err(format!("found n = {n}; there is no whole number below it")))?;
        drawn(py, self.drawn(py, Draw::Below(below, count))?)
    }

    fn sample<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>, m: usize) -> PyResult<Bound<'py, PyAny>> {
        let clients = choice::clients(ids)?.0.into_iter().map(ClientId).collect();
        drawn(py, self.drawn(py, Draw::Sample(clients, m))?)
    }

    fn shuffled<'py>(&self, py: Python<'py>, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        drawn(py, self.drawn(py, Draw::Shuffled(choice::clients(ids)?.0))?)
    }

    fn bits<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyAny>> {
        drawn(py, self.drawn(py, Draw::Bits(count))?)
    }

    #[getter]
    fn round(&self, py: Python<'_>) -> u32 {
        self.with(py, |run| run.round().0)
    }

    #[getter]
    fn now_s(&self, py: Python<'_>) -> f64 {
        self.with(py, |run| run.now().seconds())
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.with(py, |run| run.counts().to_vec());
        arrays::array(py, counts)
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.with(py, |run| {
            run.metrics().iter().map(|(metric, value)| (metric.to_string(), *value)).collect::<Vec<_>>()
        });
        let metrics = PyDict::new(py);
        found.into_iter().try_for_each(|(name, value)| metrics.set_item(name, value))?;
        Ok(metrics)
    }

    /// Cumulative regret by meter, of those that the scenario has.
    #[getter]
    fn regret<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.with(py, |run| run.regret());
        let regret = PyDict::new(py);
        let entries = found.entries().into_iter().filter_map(|(name, value)| Some((name, value?)));
        entries.into_iter().try_for_each(|(name, value)| regret.set_item(name, value))?;
        Ok(regret)
    }

    /// Bytes to and from clients so far.
    #[getter]
    fn traffic(&self, py: Python<'_>) -> (u64, u64) {
        self.with(py, |run| (run.accounts().down_bytes, run.accounts().up_bytes))
    }

    /// The timeline digest so far.
    #[getter]
    fn digest(&self, py: Python<'_>) -> String {
        self.with(py, |run| run.digests().timeline.hex())
    }
}

fn drawn<'py>(py: Python<'py>, drawn: Drawn) -> PyResult<Bound<'py, PyAny>> {
    match drawn {
        Drawn::Numbers(values) => arrays::array(py, values),
        Drawn::Integers(values) => arrays::array(py, values),
        Drawn::Clients(values) => arrays::array(py, values),
        Drawn::Bits(values) => arrays::array(py, values),
    }
}
