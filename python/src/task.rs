//! A task that is an object of Python: one for each seed, shared by all policies.

use crate::job::{TaskJob, TaskUpdate};
use crate::kept;
use crate::policy::{Raised, refused};
use crate::setup::Class;
use crate::weights::{self, Parameter};
use fedgenie::config::Complaint;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Parcel, Update};
use fedgenie::limits::PAYLOAD_BYTES;
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::rng::Streams;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, JobKey, Losses, Material, ModelState, On, Outline,
    PartialTransfer, PrivateState, Task, TaskError, TaskSettings, Together, Worker,
};
use fedgenie::trainer::LocalTraining;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A class of tasks with the parameters of a scenario: the settings of a task.
pub struct TaskClass {
    class: Arc<Class>,
    parameters: String,
    measures: Vec<Measure>,
    raised: Raised,
    /// Number of clients, known before a task is made.
    clients: AtomicUsize,
    /// The object made last, and its seed: a world is built once to be checked, and then to be used.
    last: Mutex<Option<(u64, Py<PyAny>)>>,
}

impl fmt::Debug for TaskClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, parameters, .. } = self;
        formatter.debug_struct("TaskClass").field("class", &class.name).field("parameters", parameters).finish()
    }
}

impl TaskClass {
    pub fn new(class: Arc<Class>, parameters: String, measures: Vec<Measure>, raised: Raised) -> Self {
        Self { class, parameters, measures, raised, clients: AtomicUsize::new(0), last: Mutex::default() }
    }

    /// As settings of a scenario.
    pub fn settings(self) -> Arc<dyn TaskSettings> {
        Arc::new(Shared(Arc::new(self)))
    }

    /// The task of a seed.
    fn task(&self, seed: u64) -> PyResult<PyTask> {
        Python::attach(|py| {
            let mut last = self.last.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            let known = last.as_ref().filter(|(of, _)| *of == seed).map(|(_, object)| object.bind(py).clone());
            let object = match known {
                Some(object) => object,
                None => self.class.make(py, (seed, self.clients.load(Ordering::Relaxed)), &self.parameters)?,
            };
            *last = Some((seed, object.clone().unbind()));
            drop(last);
            PyTask::of(&object, self)
        })
    }
}

/// Settings that the materials of all seeds share.
#[derive(Debug)]
struct Shared(Arc<TaskClass>);

/// The measures that a class declares: `{"test_accuracy": "max"}`, the main one first.
pub fn measures(class: &Bound<'_, PyAny>) -> PyResult<Vec<Measure>> {
    let declared = class.getattr_opt("metrics")?.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "{class} has no metrics; write metrics = {{\"test_loss\": \"min\"}} into the class"
        ))
    })?;
    let declared = declared.cast_into::<PyDict>().map_err(|_| {
        PyTypeError::new_err("metrics is a dict of names and directions, such as {\"test_accuracy\": \"max\"}")
    })?;
    let mut measures = Vec::new();
    for (name, direction) in declared {
        let (name, direction): (String, String) = (name.extract()?, direction.extract()?);
        let bare = name.strip_prefix("test_").filter(|bare| !bare.is_empty()).ok_or_else(|| {
            PyValueError::new_err(format!("metrics: found {name:?}; names begin with test_, such as test_{name}"))
        })?;
        let base = match &*direction {
            "max" => Measure::share("measure").within(f64::NEG_INFINITY, f64::INFINITY),
            "min" => Measure {
                is_loss: bare == "loss",
                ..Measure::error("measure").within(f64::NEG_INFINITY, f64::INFINITY)
            },
            other => {
                return Err(PyValueError::new_err(format!("metrics: found {name} = {other:?}; expected min or max")));
            }
        };
        measures.push(base.named(bare));
    }
    Ok(measures)
}

impl TaskSettings for Shared {
    fn about(&self) -> About {
        About { trains: true, measures_clients: false, ..About::default() }
    }

    fn measures(&self) -> Measures {
        Measures { of_data: self.0.measures.clone(), ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        if self.0.measures.is_empty() {
            return Err(Complaint::new("metrics", "found no metric; a task has at least one"));
        }
        Ok(())
    }

    fn check_outline(&self, outline: &Outline) -> Result<(), Complaint> {
        self.0.clients.store(outline.clients, Ordering::Relaxed);
        Ok(())
    }

    fn material(&self, streams: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        Ok(Some(Box::new(OfSeed { class: self.0.clone(), seed: streams.seed() })))
    }
}

/// The task of a seed, not made so far.
struct OfSeed {
    class: Arc<TaskClass>,
    seed: u64,
}

impl Material for OfSeed {
    fn whole_bytes(&self) -> u64 {
        // What cannot be made is refused by `deal`.
        self.class.task(self.seed).map_or(0, |task| task.layout.whole().bytes())
    }

    fn deal(self: Box<Self>, _: usize, _: &[u32], _: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        match self.class.task(self.seed) {
            Ok(task) => Ok(Arc::new(task)),
            Err(error) => {
                let message = format!("cannot be made: {error}");
                self.class.raised.add("TaskError", error);
                Err(TaskError::Setting(Complaint::new("", message)))
            }
        }
    }
}

/// The task of one seed.
pub struct PyTask {
    train: Option<Py<PyAny>>,
    train_many: Option<Py<PyAny>>,
    client_loss: Option<Py<PyAny>>,
    gradient: Option<Py<PyAny>>,
    evaluate: Py<PyAny>,
    layout: Layout,
    /// Bytes of an update on its way up, where the task says them.
    payload_bytes: Option<u64>,
    /// Whether clients keep something to themselves from job to job.
    keeps_state: bool,
    parameters: Vec<Parameter>,
    initial: Vec<f32>,
    description: Description,
    measures: Vec<Measure>,
}

impl fmt::Debug for PyTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PyTask").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

impl PyTask {
    fn of(object: &Bound<'_, PyAny>, class: &TaskClass) -> PyResult<Self> {
        let initial = object.call_method0("parameters")?;
        let declared = initial.cast::<PyDict>().map_err(|_| {
            PyTypeError::new_err(format!(
                "parameters(): found a {}; expected a dict of float32 arrays",
                initial.get_type()
            ))
        })?;
        let mut parameters = Vec::new();
        for (name, array) in declared {
            let shape = array.getattr("shape")?.extract()?;
            parameters.push(Parameter { name: name.extract()?, shape });
        }
        let mut values = Vec::new();
        weights::read(&initial, &parameters, "parameters()", &mut values)?;
        if values.is_empty() {
            return Err(PyValueError::new_err("parameters(): found none; a task has at least one"));
        }
        if let Some(value) = values.iter().find(|value| !value.is_finite()) {
            return Err(PyValueError::new_err(format!("parameters(): found {value} in it; weights are finite")));
        }
        let examples = object.getattr("examples")?;
        let examples = if examples.is_callable() { examples.call0()? } else { examples };
        let examples: Vec<usize> = examples.try_iter()?.map(|item| item?.extract()).collect::<PyResult<_>>()?;
        let (found, clients) = (examples.len(), class.clients.load(Ordering::Relaxed));
        if found != clients {
            let message = format!("examples: found {found} numbers; expected one for each of the {clients} clients");
            return Err(PyValueError::new_err(message));
        }
        if examples.iter().all(|&examples| examples == 0) {
            return Err(PyValueError::new_err("examples: found 0 for every client; expected how many each has"));
        }
        let mut description = Description::of(examples);
        description.has_valid = false;
        let method = |name: &str| object.getattr_opt(name).map(|method| method.map(Bound::unbind));
        let (train, train_many) = (method("train")?, method("train_many")?);
        if train.is_none() && train_many.is_none() {
            let message = format!("{} has no method train(self, job); a task needs it", object.get_type());
            return Err(PyTypeError::new_err(message));
        }
        let payload_bytes = match object.getattr_opt("payload_bytes")?.filter(|bytes| !bytes.is_none()) {
            None => None,
            Some(bytes) => {
                let known = bytes.extract::<u64>().ok().filter(|&known| known <= PAYLOAD_BYTES);
                Some(known.ok_or_else(|| {
                    PyTypeError::new_err(format!(
                        "payload_bytes: found {bytes}; expected a whole number of bytes up to {PAYLOAD_BYTES}"
                    ))
                })?)
            }
        };
        Ok(Self {
            train,
            train_many,
            payload_bytes,
            keeps_state: object.getattr_opt("keeps_state")?.map_or(Ok(false), |keeps| keeps.is_truthy())?,
            client_loss: method("client_loss")?,
            gradient: method("gradient")?,
            evaluate: object.getattr("evaluate")?.unbind(),
            layout: Layout::dense(values.len(), values.len()),
            parameters,
            initial: values,
            description,
            measures: class.measures.clone(),
        })
    }

    /// Reads the result of a job.
    fn take(&self, found: &Bound<'_, PyAny>, update: &mut Update) -> PyResult<()> {
        let found = found.cast::<TaskUpdate>().map_err(|_| {
            PyTypeError::new_err(format!("found a {}; expected fedgenie.Update(weights, …)", found.get_type()))
        })?;
        let TaskUpdate { weights, loss, payload_bytes, steps, state } = found.get();
        let travelled = self.packed().unwrap_or(self.layout.whole()).bytes();
        if let Some(bytes) = payload_bytes.filter(|&bytes| bytes != travelled) {
            let message = format!(
                "payload_bytes: found {bytes}, and the upload of {travelled} bytes was simulated before the job was \
                 trained; write payload_bytes = {bytes} into the task"
            );
            return Err(PyValueError::new_err(message));
        }
        if state.is_some() && !self.keeps_state {
            let message = "state: found one, and the task does not say that clients keep any; write keeps_state = True \
                           into the task";
            return Err(PyValueError::new_err(message));
        }
        update.clear();
        update.private.extend(state.as_ref().map_or_else(Vec::new, |state| kept::pack(state.as_bytes(found.py()))));
        weights::read(weights.bind(found.py()), &self.parameters, "the update", &mut update.parameters)?;
        update.first_loss = loss.unwrap_or(0.0);
        update.steps = *steps;
        update.diverged = !update.is_finite();
        Ok(())
    }

    /// An update as the task packs it.
    fn packed(&self) -> Option<Parcel> {
        self.payload_bytes.map(|bytes| Parcel { packed: Some(bytes), ..self.layout.whole() })
    }

    fn measured(&self, ask: &mut Ask<'_>) -> Result<(), Failure> {
        Python::attach(|py| {
            let weights = weights::named(py, ask.state.model, &self.parameters)?;
            let found = self.evaluate.bind(py).call1((weights,))?;
            let refuse = |what: String| Failure::from(what);
            let found = found
                .cast::<PyDict>()
                .map_err(|_| refuse(format!("found a {}; expected a dict of metrics", found.get_type())))?;
            for (measure, value) in self.measures.iter().zip(ask.values.iter_mut()) {
                let name = format!("test_{}", measure.name);
                let metric = found.get_item(&name)?.ok_or_else(|| refuse(format!("{name} is missing")))?;
                *value = metric.extract().map_err(|_| refuse(format!("{name} is {metric}; expected a number")))?;
            }
            ask.weight = 1.0;
            Ok(())
        })
    }
}

impl Task for PyTask {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _: u32, _: &Streams, parameters: &mut [f32]) {
        parameters.copy_from_slice(&self.initial);
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, client: ClientId, _: &LocalTraining) -> f64 {
        1e4 * self.initial.len() as f64 * self.description.examples_of(client) as f64
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        Python::attach(|py| {
            let train = self.train.as_ref().ok_or("the task has no method train(self, job)")?;
            let found = train.bind(py).call1((TaskJob::new(py, job, context, &self.parameters)?,))?;
            self.take(&found, update).map_err(|error| refused(py, &error))
        })
    }

    fn together(&self) -> Option<&dyn Together> {
        self.train_many.as_ref().map(|_| self as &dyn Together)
    }

    fn partial(&self) -> Option<&dyn PartialTransfer> {
        self.payload_bytes.map(|_| self as &dyn PartialTransfer)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        self.keeps_state.then_some(self as &dyn PrivateState)
    }

    fn losses(&self) -> Option<&dyn Losses> {
        self.client_loss.as_ref().map(|_| self as &dyn Losses)
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            ask.values.fill(f64::NAN);
            ask.weight = 0.0;
            if matches!(ask.on, On::Test) {
                self.measured(ask)?;
            }
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn(self.parameters.iter().map(|one| (one.name.clone(), one.shape.clone())))
    }
}

impl PrivateState for PyTask {
    /// At least a number, since how many bytes a client keeps is known when it trains.
    fn len(&self, _: ClientId) -> usize {
        1
    }
}

impl PartialTransfer for PyTask {
    fn transfer(&self, _: JobKey, _: &Context<'_>) -> [Parcel; 2] {
        [self.layout.whole(), self.packed().unwrap_or(self.layout.whole())]
    }

    fn parcel(&self, _: &Update, _: &Context<'_>) -> Parcel {
        self.packed().unwrap_or(self.layout.whole())
    }
}

impl Together for PyTask {
    fn train_many(&self, jobs: &[Job<'_>], context: &Context<'_>, updates: &mut [Update]) -> Result<(), Failure> {
        Python::attach(|py| {
            let train = self.train_many.as_ref().ok_or("the task has no method train_many(self, jobs)")?;
            let given = jobs.iter().map(|job| Py::new(py, TaskJob::new(py, job, context, &self.parameters)?));
            let found = train.bind(py).call1((given.collect::<PyResult<Vec<_>>>()?,))?;
            let found: Vec<Bound<'_, PyAny>> = found.try_iter()?.collect::<PyResult<_>>()?;
            if found.len() != jobs.len() {
                let (found, jobs) = (found.len(), jobs.len());
                return Err(format!("found {found} updates; expected one for each of {jobs} jobs").into());
            }
            let mut pairs = found.iter().zip(updates);
            pairs.try_for_each(|(found, update)| self.take(found, update)).map_err(|error| refused(py, &error))
        })
    }
}

impl Losses for PyTask {
    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        Python::attach(|py| {
            let Some(method) = &self.client_loss else { return Ok(f64::NAN) };
            let weights = weights::named(py, state.model, &self.parameters)?;
            Ok(method.bind(py).call1((client.0, weights))?.extract()?)
        })
    }

    fn has_gradient(&self) -> bool {
        self.gradient.is_some()
    }

    fn gradient(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        _: &mut Worker,
        gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        Python::attach(|py| {
            let Some(method) = &self.gradient else { return Ok(false) };
            let found = method.bind(py).call1((TaskJob::new(py, job, context, &self.parameters)?,))?;
            gradient.clear();
            let read = weights::read(&found, &self.parameters, "the gradient", gradient);
            read.map(|()| true).map_err(|error| refused(py, &error))
        })
    }
}
