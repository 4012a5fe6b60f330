//! The answer of a policy's `select`.

use fedgenie::id::ClientId;
use fedgenie::policy::Selection;
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple};

/// A client with the parts of a decision that are its own.
#[pyclass(module = "fedgenie", frozen, name = "Choice", get_all, from_py_object)]
#[derive(Clone)]
pub struct Choice {
    /// The client.
    client: u32,
    /// The coefficient of its update.
    weight: Option<f64>,
    /// The epochs of its job.
    work: Option<u32>,
}

#[pymethods]
impl Choice {
    #[new]
    #[pyo3(signature = (client, weight = None, work = None))]
    fn new(client: &Bound<'_, PyAny>, weight: Option<f64>, work: Option<u32>) -> PyResult<Self> {
        Ok(Self { client: one(client)?, weight, work })
    }

    fn __repr__(&self) -> String {
        let Self { client, weight, work } = self;
        let mut text = format!("Choice({client}");
        text.extend(weight.map(|weight| format!(", weight={weight:?}")));
        text.extend(work.map(|work| format!(", work={work}")));
        text + ")"
    }
}

/// A list of clients as a policy wrote it, with the choices among them.
pub type Chosen = (Vec<u32>, Vec<Choice>);

fn refuse(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// A whole number that a client may have.
fn id(number: i64) -> PyResult<u32> {
    u32::try_from(number).map_err(|_| refuse(format!("found the client {number}, and there is none: ids begin with 0")))
}

const FLOATS: &str = "ids of clients are whole numbers: convert them by .astype(int), or select by numpy.argsort";
const MASK: &str = "ids are wanted, not a mask: write numpy.flatnonzero(mask), or ask.available[mask]";

/// One client.
fn one(item: &Bound<'_, PyAny>) -> PyResult<u32> {
    if item.is_instance_of::<PyBool>() {
        return Err(refuse(format!("found {item} among the clients; {MASK}")));
    }
    if item.is_instance_of::<PyFloat>() {
        return Err(refuse(format!("found the client {item}; {FLOATS}")));
    }
    match item.extract::<i64>() {
        Ok(number) => id(number),
        Err(_) => {
            let kind = item.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
            let message = match &*kind {
                kind if kind.starts_with("bool") => format!("found {item} among the clients; {MASK}"),
                kind if kind.starts_with("float") => format!("found the client {item}; {FLOATS}"),
                kind => format!("found an item of type {kind} among the clients; expected whole numbers or Choice"),
            };
            Err(refuse(message))
        }
    }
}

/// The clients of an answer, in its order.
pub fn clients(answer: &Bound<'_, PyAny>) -> PyResult<Chosen> {
    if let Ok(array) = answer.cast::<PyArray1<u32>>() {
        // Only an array whose items do not lie in a row needs more than a copy.
        let copied = array.to_vec();
        return Ok((copied.or_else(|_| Ok::<_, PyErr>(array.try_readonly()?.as_array().to_vec()))?, Vec::new()));
    }
    if let Ok(array) = answer.cast::<PyArray1<i64>>() {
        let array = array.try_readonly()?;
        let clients = array.as_array().iter().map(|&number| id(number)).collect::<PyResult<_>>()?;
        return Ok((clients, Vec::new()));
    }
    if let Ok(array) = answer.cast::<PyUntypedArray>() {
        return of_array(answer, array.ndim());
    }
    if answer.is_none() {
        return Err(refuse("found None; return the ids of the clients (is there a return?)"));
    }
    if answer.is_instance_of::<PySet>() || answer.is_instance_of::<PyFrozenSet>() {
        return Err(refuse(
            "found a set, which has no order, and the order of dispatch is a part of the decision; return sorted(…)",
        ));
    }
    if answer.is_instance_of::<PyString>() || answer.is_instance_of::<PyDict>() {
        return Err(refuse(format!("found a {}; return the ids of the clients", answer.get_type().name()?)));
    }
    if answer.is_instance_of::<PyInt>() || answer.is_instance_of::<PyFloat>() || answer.is_instance_of::<Choice>() {
        return Err(refuse(format!("found {}; a single client is a list too: return [{0}]", answer.repr()?)));
    }
    // What a data frame calls a column, for instance.
    if !(answer.is_instance_of::<PyList>() || answer.is_instance_of::<PyTuple>()) && answer.hasattr("__array__")? {
        let array = answer.py().import("numpy")?.call_method1("asarray", (answer,))?;
        return clients(&array);
    }
    let Ok(items) = answer.try_iter() else {
        let kind = answer.get_type().name()?;
        return Err(PyTypeError::new_err(format!("found an object of type {kind}; return the ids of the clients")));
    };
    let (mut clients, mut choices) = (Vec::new(), Vec::new());
    for item in items {
        let item = item?;
        match item.cast::<Choice>() {
            Ok(choice) => {
                clients.push(choice.get().client);
                choices.push(choice.get().clone());
            }
            Err(_) => clients.push(one(&item)?),
        }
    }
    if !choices.is_empty() && choices.len() != clients.len() {
        return Err(refuse("found some clients as Choice and others as numbers; give one kind"));
    }
    Ok((clients, choices))
}

/// The clients of an array of any other type.
fn of_array(answer: &Bound<'_, PyAny>, dimensions: usize) -> PyResult<Chosen> {
    if dimensions != 1 {
        return Err(refuse(format!(
            "found an array of {dimensions} dimensions; ids of clients have one: write .ravel()"
        )));
    }
    let kind: String = answer.getattr("dtype")?.getattr("kind")?.extract()?;
    match &*kind {
        "b" => Err(refuse(format!("found an array of truth values; {MASK}"))),
        "f" => match answer.len()? {
            // numpy.array([]) has floats.
            0 => Ok((Vec::new(), Vec::new())),
            _ => Err(refuse(format!("found an array of floats; {FLOATS}"))),
        },
        "i" | "u" => clients(&answer.call_method1("astype", ("int64",))?),
        "O" => clients(&answer.call_method0("tolist")?),
        _ => Err(refuse(format!("found an array of {}; expected whole numbers", answer.getattr("dtype")?))),
    }
}

/// Writes an answer into a selection.
pub fn select(answer: &Bound<'_, PyAny>, selection: &mut Selection) -> PyResult<()> {
    let (clients, choices) = clients(answer)?;
    selection.extend(clients.into_iter().map(ClientId));
    let all = |count: usize, what: &str| match count {
        0 => Ok(false),
        count if count == choices.len() => Ok(true),
        _ => Err(refuse(format!("some clients have a {what} and others none; give one to each, or to none"))),
    };
    if all(choices.iter().filter(|choice| choice.weight.is_some()).count(), "weight")? {
        selection.weights.extend(choices.iter().filter_map(|choice| choice.weight));
    }
    if all(choices.iter().filter(|choice| choice.work.is_some()).count(), "work")? {
        selection.work.extend(choices.iter().filter_map(|choice| choice.work));
    }
    Ok(())
}
