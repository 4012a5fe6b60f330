//! A policy outside a simulation: a deployment asks it whom to choose, and tells it what came of that.
//!
//! The policy meets the types of a run: the same question, the same view, the same feedback, and the streams of the
//! same seed. So it decides as in a run that is told the same. What a deployment cannot know is refused when the policy
//! is made ([`offers`]).

mod offers;
mod told;

use crate::setup::Setup;
use crate::{arrays, choice, errors};
use fedgenie::error::Error;
use fedgenie::failure::Failure;
use fedgenie::id::{ClientId, Round, Turn};
use fedgenie::policy::{Bounds, Busy, Candidates, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::rng::{Purpose, StreamRng, Streams};
use fedgenie::time::{Span, VirtualTime};
use offers::Offers;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::cell::OnceCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of the one server among those that draw.
const SERVER: u32 = 0;

/// A policy that a deployment asks.
#[pyclass(module = "fedgenie._fedgenie", frozen)]
pub struct Chooser(Mutex<Deployed>);

/// The policy with the part of a run that it sees.
struct Deployed {
    label: String,
    policy: Box<dyn Policy>,
    streams: Streams,
    everyone: Vec<ClientId>,
    data_sizes: Vec<u32>,
    shares: Vec<f64>,
    counts: Vec<u32>,
    bounds: Bounds,
    turn: Turn,
    /// The last selection, in dispatch order.
    selected: Vec<ClientId>,
}

/// What a deployment says of itself, by name.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wishes {
    label: String,
    seed: u64,
    cohort: usize,
    data_sizes: Vec<u32>,
    /// The longest wait of a round in seconds.
    timeout_s: Option<f64>,
    /// Seconds of computing and of transfer that clients declare, one pair for each.
    declared: Option<Vec<(f64, f64)>>,
    reports_loss: bool,
    reports_loss_rms: bool,
}

/// Makes the policy of a scenario that has its parameters.
#[pyfunction]
pub fn chooser(py: Python<'_>, setup: Setup, wishes: &Bound<'_, PyAny>) -> PyResult<Chooser> {
    let wishes: Wishes = wishes.extract()?;
    let deadline = wishes.timeout_s.map(seconds).transpose()?;
    let raised = setup.raised.clone();
    let made = py.detach(|| Deployed::build(&setup, &wishes, deadline));
    Ok(Chooser(Mutex::new(made.map_err(|error| errors::of(py, &error, &raised))?)))
}

fn seconds(seconds: f64) -> PyResult<Span> {
    Span::from_seconds(seconds).map_err(|error| PyValueError::new_err(format!("found {seconds} s: {error}")))
}

/// Shares of all data, as a run has them for data of equal quality.
fn shares(data_sizes: &[u32]) -> Vec<f64> {
    let total: f64 = data_sizes.iter().copied().map(f64::from).sum();
    data_sizes.iter().map(|&size| f64::from(size) / total).collect()
}

impl Deployed {
    fn build(setup: &Setup, wishes: &Wishes, deadline: Option<Span>) -> Result<Self, Error> {
        offers::refuse_truth(&wishes.label)?;
        let experiment = setup.experiment()?;
        let scenario = experiment.first();
        let arm = scenario.arms.iter().find(|arm| arm.label == wishes.label);
        let arm = arm.ok_or_else(|| Error::Usage(format!("there is no policy {:?}", wishes.label)))?;
        let offers = Offers::new(wishes, deadline);
        let policy = offers.build(&arm.source(), |complaint| scenario.explain_policy(&arm.label, complaint).into())?;
        let everyone: Vec<ClientId> = (0..wishes.data_sizes.len()).map(ClientId::from_index).collect();
        let deployed = |policy| Self {
            label: wishes.label.clone(),
            policy,
            streams: Streams::new(wishes.seed),
            counts: vec![0; everyone.len()],
            shares: shares(&wishes.data_sizes),
            data_sizes: wishes.data_sizes.clone(),
            bounds: offers.bounds(),
            turn: Turn(0),
            selected: Vec::new(),
            everyone: everyone.clone(),
        };
        if policy.probes() {
            // Whether it asks clients something is known when it asks: another one like it is tried.
            let trial =
                offers.build(&arm.source(), |complaint| scenario.explain_policy(&arm.label, complaint).into())?;
            deployed(trial).try_probe()?;
        }
        Ok(deployed(policy))
    }

    /// Asks for the probe of a first round.
    fn try_probe(mut self) -> Result<(), Error> {
        let busy = Busy::nobody(self.everyone.len());
        let asked = self.ask((Round::FIRST, VirtualTime(0)), &busy, |policy, ask, view, rng, _| {
            allowed(&policy.probe(ask, view, rng.policy)?)
        });
        asked.map_err(|error| Error::Usage(format!("policy {}: {error}", self.label)))
    }

    /// Shows a question to the policy.
    fn ask<T>(
        &mut self,
        (round, now): (Round, VirtualTime),
        busy: &Busy,
        work: impl FnOnce(
            &mut dyn Policy,
            &SelectionRequest<'_>,
            &ServerView<'_>,
            &mut PolicyRng<'_>,
            &mut Selection,
        ) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self { policy, streams, everyone, data_sizes, shares, counts, bounds, turn, .. } = self;
        let list = OnceCell::new();
        let available = Candidates::idle(everyone, busy, &list);
        let cohort = bounds.cohort.min(available.at_most());
        let turn = turn.next();
        let ask = SelectionRequest { turn, round, now, cohort, most: cohort, take: cohort, available };
        let view = ServerView {
            data_sizes,
            shares,
            counts,
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: None,
            bounds: policy.capabilities().bounds.then_some(*bounds),
            forecaster: None,
            batteries: None,
        };
        let stream = |purpose| -> StreamRng { streams.stream(purpose, SERVER, turn.0) };
        let (mut of_policy, mut of_solver) = (stream(Purpose::Policy), stream(Purpose::Solver));
        let mut rng = PolicyRng { policy: &mut of_policy, solver: &mut of_solver };
        work(&mut **policy, &ask, &view, &mut rng, &mut Selection::default())
    }

    /// The clients that it chooses out of those that are not busy.
    fn choose(&mut self, at: (Round, VirtualTime), busy: &Busy) -> Result<Vec<u32>, Failure> {
        let selected = self.ask(at, busy, |policy, ask, view, rng, selection| {
            allowed(&policy.probe(ask, view, rng.policy)?)?;
            policy.select(ask, view, rng, selection)?;
            check(policy, ask, selection)?;
            Ok(selection.to_vec())
        })?;
        self.turn = self.turn.next();
        selected.iter().for_each(|client| self.counts[client.index()] += 1);
        self.selected = selected;
        Ok(self.selected.iter().map(|client| client.0).collect())
    }
}

/// Lets probes pass that ask clients nothing: a context is who can be chosen, which the server knows.
fn allowed(probe: &Probe) -> Result<(), Failure> {
    let what = match probe {
        Probe::None | Probe::Context(_) => return Ok(()),
        Probe::Qualities(_) => "the quality of the current model on their data",
        Probe::Losses(_) | Probe::BatchLosses { .. } => "the loss of the current model on their data",
        Probe::Answers { kind, .. } => kind,
        Probe::Training { .. } => "a whole job that is discarded",
    };
    let remedy = "in a deployment that is not asked; take another policy, or parameters that go without";
    Err(format!("asks clients for {what} before it selects, and {remedy}").into())
}

/// Checks a decision as a run does. A deployment weighs updates, and decides on work and waiting, by itself.
fn check(policy: &dyn Policy, ask: &SelectionRequest<'_>, selection: &Selection) -> Result<(), Failure> {
    let refuse = |what: String| Err(what.into());
    if !selection.weights.is_empty() {
        return refuse("gave clients weights, and the strategy of the deployment weighs updates".to_owned());
    }
    if !selection.work.is_empty() {
        return refuse("gave clients epochs, and in a deployment work is that of the ClientApp".to_owned());
    }
    if selection.deadline.is_some() {
        return refuse("set a deadline, and in a deployment it is the timeout".to_owned());
    }
    let (found, most) = (selection.len(), ask.most);
    if found == 0 && policy.can_be_empty() {
        return Ok(());
    }
    if found == 0 || found > most {
        return refuse(format!("selected {found} clients; expected between 1 and {most}"));
    }
    let mut sorted = selection.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(format!("selected {} twice", pair[0]));
    }
    match selection.iter().find(|&&client| !ask.available.contains(client)) {
        Some(client) => refuse(format!("selected {client}, which is not available")),
        None => Ok(()),
    }
}

impl Chooser {
    fn lock(&self) -> MutexGuard<'_, Deployed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The exception for a policy that failed in a round.
    fn failed(&self, py: Python<'_>, (round, method): (u32, &str), failure: &Failure) -> PyErr {
        let cause = failure.downcast_ref::<PyErr>();
        let label = self.lock().label.clone();
        let text = format!("policy {label:?}, round {round}: {method}: {failure}");
        let told = errors::exception(py, "PolicyError", (text, None::<String>, round));
        told.set_cause(py, cause.map(|cause| cause.clone_ref(py)));
        told
    }
}

#[pymethods]
impl Chooser {
    /// Statistics of updates that it wants beside their losses.
    #[getter]
    fn wants_models(&self) -> bool {
        let wants = self.lock().policy.wants();
        wants.update || wants.change || wants.norm || wants.deviation.is_some()
    }

    /// Whether it decides by losses.
    #[getter]
    fn needs_losses(&self) -> bool {
        self.lock().policy.needs_losses()
    }

    /// Times each client was chosen.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let counts = self.lock().counts.clone();
        arrays::array(py, counts)
    }

    /// The clients of a round, out of those that can be chosen.
    fn choose(&self, py: Python<'_>, round: u32, now_s: f64, available: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        let now = VirtualTime(seconds(now_s)?.0);
        let clients = self.lock().everyone.len();
        let (mut busy, mut is_available) = (Busy::nobody(clients), vec![false; clients]);
        for id in choice::clients(available)?.0 {
            let place = is_available.get_mut(id as usize).ok_or_else(|| {
                PyValueError::new_err(format!("found the client {id}; clients are 0 to {}", clients - 1))
            })?;
            *place = true;
        }
        if !is_available.contains(&true) {
            return Err(PyValueError::new_err("found no client that can be chosen"));
        }
        let away = (0..clients).filter(|&client| !is_available[client]);
        away.map(ClientId::from_index).for_each(|client| busy.insert(client));
        let chosen = py.detach(|| self.lock().choose((Round(round), now), &busy));
        chosen.map_err(|failure| self.failed(py, (round, "select"), &failure))
    }

    /// Tells the policy of a round that is over: of its jobs, its updates, and the round itself.
    fn tell(&self, py: Python<'_>, round: u32, news: told::News<'_>) -> PyResult<()> {
        let news = news.read()?;
        let told = py.detach(|| self.lock().tell(Round(round), &news));
        told.map_err(|failure| self.failed(py, (round, "observe"), &failure))
    }
}
