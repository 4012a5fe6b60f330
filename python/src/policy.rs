//! A policy that is an object of Python.

use crate::asked::{self, Ask, Asked, Constants, Decided};
use crate::bound;
use crate::choice;
use crate::context::{self, Context};
use crate::feedback::Gathered;
use crate::setup::Class;
use crate::subsets;
use crate::wants::Declared;
use fedgenie::config::Complaint;
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::random::Deck;
use fedgenie::policy::{
    Answers, BoundWorld, BuildContext, Capabilities, Explanation, Feedback, Policy, PolicyRng, Probe, RegretBound,
    Selection, SelectionRequest, ServerView, Subsets, Wants,
};
use fedgenie::rng::StreamRng;
use fedgenie::state::{State, Stateful};
use fedgenie::time::Span;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Exceptions of classes that could not be made, until that is told.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Vec<(&'static str, PyErr)>>>);

impl Raised {
    /// Adds a cause of an exception of `fedgenie.errors`.
    pub fn add(&self, name: &'static str, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name, error));
    }

    /// The first exception of all.
    pub fn any(&self) -> Option<(&'static str, PyErr)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!all.is_empty()).then(|| all.remove(0))
    }
}

/// Methods of a policy, looked up once.
struct Methods {
    select: Py<PyAny>,
    observe: Option<Py<PyAny>>,
    probe: Option<Py<PyAny>>,
    explain: Option<Py<PyAny>>,
    explain_after: Option<Py<PyAny>>,
    judge: Option<Py<PyAny>>,
    told_answer: Option<Py<PyAny>>,
    bound: Option<Py<PyAny>>,
}

/// The policy of one run and server.
pub struct PyPolicy {
    object: Py<PyAny>,
    methods: Methods,
    declared: Declared,
    constants: Arc<Constants>,
    deck: RefCell<Deck>,
    gathered: Gathered,
    /// Whether the regret of a round was compared with its bound.
    is_compared: Arc<AtomicBool>,
    /// Number of clients that the last probe asked.
    probed: usize,
}

impl PyPolicy {
    /// Makes the object, once for each run and server.
    pub fn build(
        class: &Class,
        context: &BuildContext<'_>,
        (parameters, point): (&str, &[(String, String)]),
        raised: &Raised,
    ) -> Result<Box<dyn Policy>, Complaint> {
        let build = |py: Python<'_>| -> PyResult<Self> {
            let made = Context::new(py, context, point)?;
            let object = context::during(context, || class.make(py, (made,), parameters))?;
            let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
                Ok(object.getattr_opt(name)?.filter(|method| method.is_callable()).map(Bound::unbind))
            };
            let select = method("select")?.ok_or_else(|| {
                PyTypeError::new_err(format!(
                    "{} has no method select(self, ask); a policy needs it",
                    object.get_type()
                ))
            })?;
            let methods = Methods {
                select,
                observe: method("observe")?,
                probe: method("probe")?,
                explain: method("explain")?,
                explain_after: method("explain_after")?,
                judge: method("judge")?,
                told_answer: method("told_answer")?,
                bound: method("bound")?,
            };
            let kinds: Vec<&'static str> = context.probes.iter().map(|kind| kind.name).collect();
            let declared = Declared::of(&object, kinds)?;
            Ok(Self {
                object: object.unbind(),
                methods,
                declared,
                constants: Arc::default(),
                deck: RefCell::default(),
                gathered: Gathered::default(),
                is_compared: Arc::default(),
                probed: 0,
            })
        };
        Python::attach(|py| {
            build(py).map(|policy| Box::new(policy) as Box<dyn Policy>).map_err(|error| {
                let message = format!("cannot be made: {error}");
                raised.add("PolicyError", error);
                Complaint::new("", message)
            })
        })
    }

    /// Tells Python what it was not told yet.
    fn tell(&mut self, py: Python<'_>) -> PyResult<()> {
        match &self.methods.observe {
            Some(observe) if !self.gathered.is_empty() => {
                let feedback = self.gathered.take(py)?;
                observe.bind(py).call1((feedback,)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Works on a question, with the streams if random numbers may be drawn.
    fn ask<R>(
        &self,
        (ask, view): (&SelectionRequest<'_>, &ServerView<'_>),
        streams: Option<(&RefCell<StreamRng>, &RefCell<StreamRng>)>,
        work: impl FnOnce(Python<'_>, Ask, &Cell<Decided>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let decided = Cell::new(Decided::default());
        let (number, probed) = (asked::next_number(), self.probed);
        let asked = Asked { number, ask, view, streams, deck: &self.deck, probed, decided: &decided };
        let question = Ask::new(&asked, self.constants.clone());
        Python::attach(|py| asked::during(&asked, || work(py, question, &decided)))
    }
}

impl Policy for PyPolicy {
    fn wants(&self) -> Wants {
        self.declared.wants
    }

    fn probes(&self) -> bool {
        self.methods.probe.is_some()
    }

    fn probe_kinds(&self) -> &[&'static str] {
        if self.methods.probe.is_some() { &self.declared.probe_kinds } else { &[] }
    }

    fn sees_truth(&self) -> bool {
        self.declared.sees_truth
    }

    fn capabilities(&self) -> Capabilities {
        self.declared.capabilities
    }

    fn can_be_empty(&self) -> bool {
        self.declared.can_be_empty
    }

    fn needs_losses(&self) -> bool {
        self.declared.needs_losses
    }

    fn probe(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut StreamRng,
    ) -> Result<Probe, Failure> {
        if self.methods.probe.is_none() {
            return Ok(Probe::None);
        }
        Python::attach(|py| self.tell(py))?;
        let Some(method) = &self.methods.probe else { return Ok(Probe::None) };
        let [policy, solver] = [RefCell::new(rng.clone()), RefCell::new(rng.clone())];
        let probe = self.ask((ask, view), Some((&policy, &solver)), |py, ask, _| {
            let found = method.bind(py).call1((ask,))?;
            read_probe(&found, &self.declared.probe_kinds).map_err(|error| refused(py, &error))
        });
        *rng = policy.into_inner();
        let probe = probe?;
        self.probed = match &probe {
            Probe::Answers { clients, .. } => clients.len(),
            _ => 0,
        };
        Ok(probe)
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if !self.gathered.is_empty() {
            Python::attach(|py| self.tell(py))?;
        }
        let (policy, solver) = (RefCell::new(rng.policy.clone()), RefCell::new(rng.solver.clone()));
        let selected = self.ask((ask, view), Some((&policy, &solver)), |py, ask, decided| {
            let answer = self.methods.select.bind(py).call1((ask,))?;
            choice::select(&answer, selection).map_err(|error| refused(py, &error))?;
            let Decided { size, deadline } = decided.get();
            selection.deadline = deadline;
            match size {
                Some(size) if size != selection.len() => {
                    let found = selection.len();
                    Err(format!("ask.size was set to {size}, and {found} clients are selected").into())
                }
                _ => Ok(()),
            }
        });
        (*rng.policy, *rng.solver) = (policy.into_inner(), solver.into_inner());
        selected
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if self.methods.observe.is_none() {
            return Ok(());
        }
        self.gathered.add(feedback);
        match feedback {
            Feedback::Round(_) => Ok(Python::attach(|py| self.tell(py))?),
            Feedback::Job(_) | Feedback::Trained(_) => Ok(()),
        }
    }

    fn judge(&mut self, judged: &Subsets<'_>) -> Result<(), Failure> {
        let Some(method) = &self.methods.judge else { return Ok(()) };
        let judge = |py: Python<'_>| method.bind(py).call1((subsets::Subsets,)).map(drop);
        Ok(Python::attach(|py| subsets::during(judged, || judge(py)))?)
    }

    fn bound(&self, world: &BoundWorld<'_>) -> Result<Option<RegretBound>, Failure> {
        let Some(method) = &self.methods.bound else { return Ok(None) };
        Ok(Some(Python::attach(|py| bound::stated(py, self.object.bind(py), method, world, self.is_compared.clone()))?))
    }

    fn warning(&self) -> Option<String> {
        let is_missed = self.methods.bound.is_some() && !self.is_compared.load(Ordering::Relaxed);
        is_missed.then(|| {
            "its bound was compared with nothing: it needs [regret] with its meter, in rounds of one server of the usual \
             cohort"
                .to_owned()
        })
    }

    fn wants_answer(&self) -> Option<&'static str> {
        self.declared.wants_answer
    }

    fn told_answer(&mut self, client: ClientId, kind: &'static str, answer: &[f64]) -> Result<(), Failure> {
        let Some(method) = &self.methods.told_answer else { return Ok(()) };
        Python::attach(|py| {
            method.bind(py).call1((client.0, kind, crate::arrays::copy(py, answer)?))?;
            Ok(())
        })
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let Some(method) = &self.methods.explain else { return Ok(()) };
        self.ask((ask, view), None, |py, ask, _| {
            let found = method.bind(py).call1((ask, crate::arrays::ids(py, selection)?))?;
            explain(&found, explanation).map_err(|error| refused(py, &error))
        })
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        let Some(method) = &self.methods.explain_after else { return Ok(()) };
        Python::attach(|py| {
            let found = method.bind(py).call1((crate::arrays::ids(py, clients)?,))?;
            explain(&found, explanation).map_err(|error| refused(py, &error))
        })
    }
}

/// A value that cannot be used: its reason alone, since no code of the user raised it.
pub fn refused(py: Python<'_>, error: &PyErr) -> Failure {
    error.value(py).to_string().into()
}

/// The probe that Python asks for.
fn read_probe(probe: &Bound<'_, PyAny>, kinds: &[&'static str]) -> PyResult<Probe> {
    if probe.is_none() {
        return Ok(Probe::None);
    }
    let form: String = probe.getattr_opt("form")?.map_or_else(
        || Err(PyTypeError::new_err(format!("found {probe}; return None or one of fedgenie.Probe's five forms"))),
        |form| form.extract(),
    )?;
    let clients = || -> PyResult<Vec<ClientId>> {
        Ok(choice::clients(&probe.getattr("clients")?)?.0.into_iter().map(ClientId).collect())
    };
    let value = probe.getattr("value")?;
    Ok(match &*form {
        "none" => Probe::None,
        "context" => {
            let seconds = value.extract()?;
            Probe::Context(Span::from_seconds(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?)
        }
        "losses" => Probe::Losses(clients()?),
        "qualities" => Probe::Qualities(clients()?),
        "answers" => {
            let kind: String = value.extract()?;
            let known = kinds.iter().find(|known| **known == kind);
            let known = known.ok_or_else(|| {
                PyValueError::new_err(format!("found the question {kind:?}; the task answers {kinds:?}"))
            })?;
            Probe::Answers { clients: clients()?, kind: known }
        }
        "training" => {
            let answers = match &*value.extract::<String>()? {
                "loss" => Answers::Loss,
                "update" => Answers::Update,
                other => {
                    return Err(PyValueError::new_err(format!("found answers={other:?}; expected loss or update")));
                }
            };
            Probe::Training { clients: clients()?, answers }
        }
        other => return Err(PyValueError::new_err(format!("found a probe of the form {other:?}"))),
    })
}

/// Writes a dictionary into an explanation.
fn explain(found: &Bound<'_, PyAny>, explanation: &mut Explanation) -> PyResult<()> {
    if found.is_none() {
        return Ok(());
    }
    let found =
        found.cast::<PyDict>().map_err(|_| PyTypeError::new_err("an explanation is a dict of numbers and lists"))?;
    for (name, value) in found {
        let name: String = name.extract()?;
        if ["clients", "admitted"].contains(&&*name) {
            explanation.ids(&name, choice::clients(&value)?.0.into_iter().map(ClientId));
        } else if let Ok(number) = value.extract::<f64>() {
            explanation.scalar(&name, number);
        } else if value.is_instance_of::<PyDict>() {
            let mut part = Explanation::default();
            explain(&value, &mut part)?;
            explanation.part(&name, part);
        } else {
            explanation.array(&name, value.extract::<Vec<f64>>()?);
        }
    }
    Ok(())
}

/// Its feedback that was not told, and the object's own state as bytes of `pickle`.
impl Stateful for PyPolicy {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut self.gathered);
        state.field(&mut self.probed);
        let call = |name: &str, bytes: Option<&[u8]>| {
            Python::attach(|py| -> PyResult<Vec<u8>> {
                let function = py.import("fedgenie._state")?.getattr(name)?;
                match bytes {
                    None => function.call1((&self.object,))?.extract(),
                    Some(bytes) => function.call1((&self.object, bytes)).map(|_| Vec::new()),
                }
            })
        };
        let is_loading = state.is_loading();
        let mut bytes = Vec::new();
        if !is_loading {
            match call("save", None) {
                Ok(saved) => bytes = saved,
                Err(error) => return state.fail(error),
            }
        }
        state.field(&mut bytes);
        if is_loading
            && !state.is_refused()
            && let Err(error) = call("load", Some(&bytes))
        {
            state.fail(error);
        }
    }
}
