//! The question to a policy, as the policy sees it.
//!
//! The knowledge of the server is borrowed from the run, and Python keeps objects as long as it likes. So an [`Ask`]
//! holds nothing of it: while the policy is asked, the question lies in a scoped variable of the thread
//! ([`Asked`]), and an attribute that is read copies its array from there, once. What nobody reads is not copied.

use crate::arrays;
use crate::draws::{Draws, Stream};
use crate::feedback::Trained;
use fedgenie::id::ClientId;
use fedgenie::policy::random::Deck;
use fedgenie::policy::{SelectionRequest, ServerView};
use fedgenie::population::Seen;
use fedgenie::rng::StreamRng;
use fedgenie::time::{Span, VirtualTime};
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use scoped_tls_hkt::scoped_thread_local;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A question under way.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Tells questions apart.
    pub number: u64,
    /// The question.
    pub ask: &'a SelectionRequest<'a>,
    /// The knowledge of the server.
    pub view: &'a ServerView<'a>,
    /// The stream of the policy and that of its solver; none while it explains.
    pub streams: Option<(&'a RefCell<StreamRng>, &'a RefCell<StreamRng>)>,
    /// The memory of draws without replacement.
    pub deck: &'a RefCell<Deck>,
    /// How many clients the last probe asked.
    pub probed: usize,
    /// What the policy decides beside its clients.
    pub decided: &'a Cell<Decided>,
}

/// The parts of a decision that are set as attributes of the question.
#[derive(Clone, Copy, Debug, Default)]
pub struct Decided {
    /// The size of the selection.
    pub size: Option<usize>,
    /// The longest duration of the round.
    pub deadline: Option<Span>,
}

scoped_thread_local!(static ASKED: for<'a> &'a Asked<'a>);

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A number that no other question has.
pub fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// Lets a policy work on a question.
pub fn during<R>(asked: &Asked<'_>, work: impl FnOnce() -> R) -> R {
    ASKED.set(asked, work)
}

/// The question of this number, if this thread works on it.
pub fn with<R>(number: u64, read: impl FnOnce(&Asked<'_>) -> PyResult<R>) -> PyResult<R> {
    let gone = || {
        PyRuntimeError::new_err(
            "this question has been answered: read what you need of `ask` while your method runs, in its own thread, \
             and keep the arrays",
        )
    };
    if !ASKED.is_set() {
        return Err(gone());
    }
    ASKED.with(|asked| if asked.number == number { read(asked) } else { Err(gone()) })
}

/// A place for an array, filled by the first that asks for it.
pub struct Once(PyOnceLock<Py<PyAny>>);

impl Default for Once {
    fn default() -> Self {
        Self(PyOnceLock::new())
    }
}

impl Once {
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.get(py).map(|array| array.bind(py).clone())
    }

    fn fill<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.0.get_or_try_init(py, || make().map(Bound::unbind))?.bind(py).clone())
    }
}

/// Arrays that are the same in every round of a run, made when they are first read.
#[derive(Default)]
pub struct Constants {
    available: Once,
    data_sizes: Once,
    shares: Once,
}

/// Arrays of one question.
#[derive(Default)]
pub struct Read {
    pub available: Once,
    counts: Once,
}

/// A selection request, with the knowledge of the server.
#[pyclass(module = "fedgenie", frozen, name = "Ask")]
pub struct Ask {
    number: u64,
    #[pyo3(get)]
    turn: u32,
    #[pyo3(get)]
    round: u32,
    now: VirtualTime,
    #[pyo3(get)]
    cohort: usize,
    #[pyo3(get)]
    most: usize,
    #[pyo3(get)]
    take: usize,
    constants: Arc<Constants>,
    read: Arc<Read>,
}

impl Ask {
    pub fn new(asked: &Asked<'_>, constants: Arc<Constants>) -> Self {
        let SelectionRequest { turn, round, now, cohort, most, take, .. } = *asked.ask;
        let (turn, round) = (turn.0, round.0);
        Self { number: asked.number, turn, round, now, cohort, most, take, constants, read: Arc::default() }
    }

    /// A number of each available client's battery.
    fn of_batteries<'py>(&self, py: Python<'py>, name: &str, of: impl Fn(Seen) -> f64) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| {
            if asked.view.batteries.is_none() {
                return Err(undeclared(name, "capabilities = (\"level\",) into the class"));
            }
            let clients = asked.ask.available.list().iter();
            arrays::array(py, clients.map(|&client| asked.view.battery(client).map_or(f64::NAN, &of)).collect())
        })
    }

    /// A stream. It is a new object each time: one that is kept by what it has read would keep that alive for ever.
    fn draws(&self, stream: Stream) -> Draws {
        Draws::new(self.number, stream, self.read.clone())
    }
}

/// Whether the candidates are all clients of the server.
pub fn are_all(ask: &SelectionRequest<'_>) -> bool {
    std::ptr::eq(ask.available.list(), ask.available.scope())
}

/// A deadline that was set.
pub fn deadline(seconds: f64) -> PyResult<Span> {
    Span::from_seconds(seconds).map_err(|error| PyValueError::new_err(format!("ask.deadline = {seconds}: {error}")))
}

/// Of an attribute that a policy sees only if it declares it.
fn undeclared(name: &str, declaration: &str) -> PyErr {
    PyAttributeError::new_err(format!("ask.{name} is shown to policies alone that declare it: write {declaration}"))
}

#[pymethods]
impl Ask {
    #[getter]
    const fn now_s(&self) -> f64 {
        self.now.0 as f64 / 1e9
    }

    #[getter]
    fn available<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(array) = self.read.available.get(py) {
            return Ok(array);
        }
        with(self.number, |Asked { ask, .. }| {
            let make = || arrays::ids(py, ask.available.list());
            let array = if are_all(ask) { self.constants.available.fill(py, make)? } else { make()? };
            self.read.available.fill(py, || Ok(array))
        })
    }

    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(array) = self.read.counts.get(py) {
            return Ok(array);
        }
        with(self.number, |asked| self.read.counts.fill(py, || arrays::copy(py, asked.view.counts)))
    }

    #[getter]
    fn data_sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(array) = self.constants.data_sizes.get(py) {
            return Ok(array);
        }
        with(self.number, |asked| self.constants.data_sizes.fill(py, || arrays::copy(py, asked.view.data_sizes)))
    }

    #[getter]
    fn shares<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(array) = self.constants.shares.get(py) {
            return Ok(array);
        }
        with(self.number, |asked| self.constants.shares.fill(py, || arrays::copy(py, asked.view.shares)))
    }

    #[getter]
    fn probed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| {
            let (clients, losses): (Vec<u32>, Vec<f64>) =
                asked.view.probed.iter().map(|&(client, loss)| (client.0, loss)).unzip();
            let probed = py.import("fedgenie._views")?.getattr("Probed")?;
            probed.call1((arrays::array(py, clients)?, arrays::array(py, losses)?))
        })
    }

    #[getter]
    fn answers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| {
            let numbers = asked.view.answers.len().checked_div(asked.probed).unwrap_or(0);
            arrays::rows(py, asked.view.answers.to_vec(), numbers)
        })
    }

    #[getter]
    fn trained(&self) -> PyResult<Trained> {
        with(self.number, |asked| Ok(Trained::of(asked.view.trained.iter())))
    }

    /// `(α/m)·g_k` of the available clients under the reward of `[regret]`.
    #[getter]
    fn gains<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        with(self.number, |asked| asked.view.gains.map(|(_, gains)| arrays::copy(py, gains)).transpose())
    }

    #[getter]
    fn mean_speeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| match asked.view.genie {
            Some(genie) => arrays::copy(py, &genie.mean_speeds),
            None => Err(PyAttributeError::new_err(
                "ask.mean_speeds is the genie's knowledge, which no server has: it is shown to policies alone that \
                 write sees_truth = True into their class, where the scenario has [regret]",
            )),
        })
    }

    /// Size and reward of the best set in hindsight.
    #[getter]
    fn foreseen<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>, f64)>> {
        with(self.number, |asked| {
            let found = asked.view.foreseen;
            found.map(|(clients, value)| Ok((arrays::ids(py, clients)?, value))).transpose()
        })
    }

    /// The bounds of the decision.
    #[getter]
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| {
            let bounds =
                asked.view.bounds.ok_or_else(|| undeclared("bounds", "capabilities = (\"bounds\",) into the class"))?;
            crate::context::bounds(py, &bounds)
        })
    }

    /// The segments of the model, by their names.
    #[getter]
    fn layout<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        with(self.number, |asked| {
            let layout =
                asked.view.layout.ok_or_else(|| undeclared("layout", "capabilities = (\"layout\",) into the class"))?;
            crate::context::layout(py, layout)
        })
    }

    /// Whether a client will be online throughout an interval, in seconds of virtual time.
    fn forecast(&self, client: u32, from_s: f64, to_s: f64) -> PyResult<bool> {
        with(self.number, |asked| {
            let at = |seconds: f64| {
                let span = Span::from_seconds(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
                Ok::<_, PyErr>(VirtualTime(span.0))
            };
            let answer = asked.view.forecast(ClientId(client), at(from_s)?, at(to_s)?);
            answer.map_err(|error| PyValueError::new_err(error.to_string()))
        })
    }

    /// The level of each available client's battery, in joules, in their order.
    #[getter]
    fn level_j<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of_batteries(py, "level_j", |battery| battery.level_j)
    }

    /// The energy of each available client's full battery, in joules.
    #[getter]
    fn capacity_j<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.of_batteries(py, "capacity_j", |battery| battery.capacity_j)
    }

    #[getter]
    fn rng(&self) -> Draws {
        self.draws(Stream::Policy)
    }

    #[getter]
    fn solver_rng(&self) -> Draws {
        self.draws(Stream::Solver)
    }

    #[getter]
    fn size(&self) -> PyResult<usize> {
        with(self.number, |asked| Ok(asked.decided.get().size.unwrap_or(self.cohort)))
    }

    #[setter]
    fn set_size(&self, size: usize) -> PyResult<()> {
        with(self.number, |asked| {
            if !(1..=self.most).contains(&size) {
                let most = self.most;
                return Err(PyValueError::new_err(format!("ask.size = {size}; expected between 1 and {most}")));
            }
            asked.decided.set(Decided { size: Some(size), ..asked.decided.get() });
            Ok(())
        })
    }

    #[getter]
    fn deadline(&self) -> PyResult<Option<f64>> {
        with(self.number, |asked| {
            let usual = asked.view.bounds.and_then(|bounds| bounds.deadline);
            Ok(asked.decided.get().deadline.or(usual).map(Span::seconds))
        })
    }

    #[setter]
    fn set_deadline(&self, seconds: f64) -> PyResult<()> {
        with(self.number, |asked| {
            asked.decided.set(Decided { deadline: Some(deadline(seconds)?), ..asked.decided.get() });
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        let Self { turn, round, cohort, take, .. } = self;
        format!("<fedgenie.Ask turn={turn} round={round} now_s={:.3} cohort={cohort} take={take}>", self.now_s())
    }
}
