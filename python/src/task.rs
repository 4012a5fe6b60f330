//! A task that is an object of Python: one for each seed, shared by all policies.

use crate::arrays;
use crate::policy::Raised;
use crate::setup::Class;
use fedgenie::config::Complaint;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::rng::{Purpose, Streams};
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, Material, On, Outline, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::{Length, LocalTraining};
use numpy::{PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A parameter: its name and shape.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    shape: Vec<usize>,
}

impl Parameter {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

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
                self.class.raised.add("task", error);
                Err(TaskError::Setting(Complaint::new("", message)))
            }
        }
    }
}

/// The task of one seed.
pub struct PyTask {
    object: Py<PyAny>,
    train: Option<Py<PyAny>>,
    evaluate: Py<PyAny>,
    layout: Layout,
    parameters: Vec<Parameter>,
    initial: Vec<f32>,
    description: Description,
    measures: Vec<Measure>,
    raised: Raised,
}

impl fmt::Debug for PyTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PyTask").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}

/// Weights by name, in the order of the parameters, one after the other.
fn flat(weights: &Bound<'_, PyAny>, parameters: &[Parameter], what: &str, values: &mut Vec<f32>) -> PyResult<()> {
    let weights = weights.cast::<PyDict>().map_err(|_| {
        PyTypeError::new_err(format!(
            "{what}: found a {}; expected a dict of float32 arrays by name",
            weights.get_type()
        ))
    })?;
    for (name, _) in weights {
        let name: String = name.extract()?;
        if !parameters.iter().any(|parameter| parameter.name == name) {
            let known: Vec<&str> = parameters.iter().map(|parameter| parameter.name.as_str()).collect();
            let message = format!("{what}: found the weight {name:?}; the parameters are {}", known.join(", "));
            return Err(PyValueError::new_err(message));
        }
    }
    for Parameter { name, shape } in parameters {
        let array = weights.get_item(name)?;
        let array = array.ok_or_else(|| PyValueError::new_err(format!("{what}: the weight {name:?} is missing")))?;
        // Arithmetic on an array without dimensions gives a number of NumPy.
        let is_number = !array.is_instance_of::<PyUntypedArray>() && array.hasattr("dtype")?;
        let array = if is_number { array.py().import("numpy")?.call_method1("asarray", (array,))? } else { array };
        let array = array.cast_into::<PyArrayDyn<f32>>().map_err(|error| {
            let found = error.into_inner();
            let kind = found.getattr("dtype").map_or_else(|_| found.get_type().to_string(), |kind| kind.to_string());
            PyTypeError::new_err(format!("{what}: the weight {name:?} is {kind}; expected an array of float32"))
        })?;
        if array.shape() != &shape[..] {
            let found = array.shape();
            let message = format!("{what}: the weight {name:?} has the shape {found:?}; expected {shape:?}");
            return Err(PyValueError::new_err(message));
        }
        values.extend(array.try_readonly()?.as_array());
    }
    Ok(())
}

/// A vector as weights by name, which cannot be written to.
fn named<'py>(py: Python<'py>, values: &[f32], parameters: &[Parameter]) -> PyResult<Bound<'py, PyDict>> {
    let weights = PyDict::new(py);
    let mut rest = values;
    for parameter in parameters {
        let (part, after) = rest.split_at(parameter.len());
        rest = after;
        weights.set_item(&parameter.name, arrays::shaped(py, part, &parameter.shape)?)?;
    }
    Ok(weights)
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
        flat(&initial, &parameters, "parameters()", &mut values)?;
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
        let mut description = Description::of(examples);
        description.has_valid = false;
        Ok(Self {
            train: object.getattr_opt("train")?.map(Bound::unbind),
            evaluate: object.getattr("evaluate")?.unbind(),
            object: object.clone().unbind(),
            layout: Layout::dense(values.len(), values.len()),
            parameters,
            initial: values,
            description,
            measures: class.measures.clone(),
            raised: class.raised.clone(),
        })
    }

    fn trained(&self, job: &Job<'_>, context: &Context<'_>, update: &mut Update) -> PyResult<()> {
        Python::attach(|py| {
            let given = TaskJob::new(py, job, context, &self.parameters)?;
            let train = self.train.as_ref().ok_or_else(|| {
                PyTypeError::new_err(format!("{} has no method train(self, job)", self.object.bind(py).get_type()))
            })?;
            let found = train.bind(py).call1((given,))?;
            let found = found.cast::<TaskUpdate>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "train: found a {}; expected fedgenie.Update(weights, …)",
                    found.get_type()
                ))
            })?;
            let TaskUpdate { weights, loss, steps } = found.get();
            flat(weights.bind(py), &self.parameters, "train", &mut update.parameters)?;
            update.first_loss = loss.unwrap_or(0.0);
            update.steps = *steps;
            update.diverged = !update.is_finite();
            Ok(())
        })
    }

    fn measured(&self, ask: &mut fedgenie::task::Ask<'_>) -> PyResult<()> {
        Python::attach(|py| {
            let weights = named(py, ask.state.model, &self.parameters)?;
            let found = self.evaluate.bind(py).call1((weights,))?;
            let found = found.cast::<PyDict>().map_err(|_| {
                PyTypeError::new_err(format!("evaluate: found a {}; expected a dict of metrics", found.get_type()))
            })?;
            for (measure, value) in self.measures.iter().zip(ask.values.iter_mut()) {
                let name = format!("test_{}", measure.name);
                let metric = found.get_item(&name)?;
                let metric = metric.ok_or_else(|| PyValueError::new_err(format!("evaluate: {name} is missing")))?;
                *value = metric.extract()?;
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

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) {
        update.clear();
        if let Err(error) = self.trained(job, context, update) {
            update.parameters.clear();
            update.parameters.resize(self.layout.len(), f32::NAN);
            update.diverged = true;
            self.raised.add("task", error);
        }
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: bool) {
        for ask in asks {
            ask.values.fill(f64::NAN);
            ask.weight = 0.0;
            if !matches!(ask.on, On::Test) {
                continue;
            }
            if let Err(error) = self.measured(ask) {
                self.raised.add("task", error);
            }
        }
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn(self.parameters.iter().map(|one| (one.name.clone(), one.shape.clone())))
    }
}

/// A client's job.
#[pyclass(module = "fedgenie", frozen, name = "Job", get_all)]
pub struct TaskJob {
    client: u32,
    round: u32,
    /// For random numbers of the job: from the scenario's seed, client and round alone.
    seed: u64,
    /// The model that was sent, by name.
    weights: Py<PyDict>,
    /// Numbers that an algorithm adds to every gradient, by name.
    correction: Option<Py<PyDict>>,
    /// The weight of the pull towards the model that was sent.
    proximal: f32,
    /// Passes over the client's examples; None where steps are counted.
    epochs: Option<u32>,
    /// Examples in a mini-batch.
    batch: usize,
    /// The learning rate of the round.
    lr: f32,
}

impl TaskJob {
    fn new(py: Python<'_>, job: &Job<'_>, context: &Context<'_>, parameters: &[Parameter]) -> PyResult<Self> {
        let Job { client, round, start, epochs, correction, .. } = *job;
        let settings = context.settings;
        let of_settings = match settings.length {
            Length::Epochs(epochs) => Some(epochs),
            Length::Steps(_) => None,
        };
        // 63 bits fit a signed number of NumPy and of PyTorch.
        let seed = context.streams.stream(Purpose::TrainingNoise, client.0, round.0).bits() >> 1;
        let correction = correction.map(|values| named(py, values, parameters).map(Bound::unbind)).transpose()?;
        Ok(Self {
            client: client.0,
            round: round.0,
            seed,
            weights: named(py, start, parameters)?.unbind(),
            correction,
            proximal: settings.proximal,
            epochs: epochs.or(of_settings),
            batch: settings.batch,
            lr: settings.rate(round),
        })
    }
}

/// A client's result.
#[pyclass(module = "fedgenie", frozen, name = "Update")]
pub struct TaskUpdate {
    weights: Py<PyAny>,
    loss: Option<f64>,
    steps: u64,
}

#[pymethods]
impl TaskUpdate {
    #[new]
    #[pyo3(signature = (weights, loss = None, *, steps = 1))]
    const fn new(weights: Py<PyAny>, loss: Option<f64>, steps: u64) -> Self {
        Self { weights, loss, steps }
    }
}
