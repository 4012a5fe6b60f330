//! Declarations of a policy's class.

use fedgenie::policy::{AccuracyOn, Capabilities, DeviationFrom, Wants};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// What a policy declares, under the names of `Policy`.
pub struct Declared {
    pub wants: Wants,
    pub capabilities: Capabilities,
    pub probe_kinds: Vec<&'static str>,
    pub sees_truth: bool,
    pub can_be_empty: bool,
    pub needs_losses: bool,
    pub wants_answer: Option<&'static str>,
}

impl Declared {
    /// Of an object; `kinds` are the questions that the task answers.
    pub fn of(object: &Bound<'_, PyAny>, kinds: Vec<&'static str>) -> PyResult<Self> {
        let flag = |name: &str| -> PyResult<bool> { found(object, name)?.map_or(Ok(false), |found| found.is_truthy()) };
        let wants_answer = match found(object, "wants_answer")? {
            None => None,
            Some(name) => {
                let name: String = name.extract()?;
                let known = kinds.iter().copied().find(|kind| **kind == name);
                Some(known.ok_or_else(|| {
                    PyValueError::new_err(format!("wants_answer: found {name:?}; clients can answer {kinds:?}"))
                })?)
            }
        };
        let probe_kinds = match found(object, "probe_kinds")? {
            None => kinds,
            Some(wanted) => {
                let known = |name: String| {
                    kinds.iter().copied().find(|kind| **kind == name).ok_or_else(|| {
                        PyValueError::new_err(format!("probe_kinds: found {name:?}; clients can answer {kinds:?}"))
                    })
                };
                wanted.extract::<Vec<String>>()?.into_iter().map(known).collect::<PyResult<_>>()?
            }
        };
        Ok(Self {
            wants: wants(object)?,
            capabilities: capabilities(object)?,
            probe_kinds,
            sees_truth: flag("sees_truth")?,
            can_be_empty: flag("can_be_empty")?,
            needs_losses: flag("needs_losses")?,
            wants_answer,
        })
    }
}

/// An attribute, or the result of a method of this name.
fn found<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = object.getattr_opt(name)?.filter(|found| !found.is_none());
    found.map(|found| if found.is_callable() { found.call0() } else { Ok(found) }).transpose()
}

/// Names, and what is said of each: a list of names, or a dictionary.
fn named(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<(String, Option<String>)>> {
    let Some(found) = found(object, name)? else { return Ok(Vec::new()) };
    if let Ok(found) = found.cast::<PyDict>() {
        let mut all = Vec::new();
        for (key, value) in found {
            if value.is_truthy()? {
                let text = value.is_instance_of::<PyString>().then(|| value.extract()).transpose()?;
                all.push((key.extract()?, text));
            }
        }
        return Ok(all);
    }
    if found.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("{name} is a list of names, such as ({},)", found.repr()?)));
    }
    Ok(found
        .try_iter()?
        .map(|item| item?.extract())
        .collect::<PyResult<Vec<String>>>()?
        .into_iter()
        .map(|name| (name, None))
        .collect())
}

fn unknown(name: &str, found: &str, known: &str) -> PyErr {
    PyValueError::new_err(format!("{name}: found {found:?}; expected {known}"))
}

fn wants(object: &Bound<'_, PyAny>) -> PyResult<Wants> {
    let mut wants = Wants::default();
    for (name, value) in named(object, "wants")? {
        let value = value.as_deref();
        match &*name {
            "loss_rms" => wants.loss_rms = true,
            "quality" => wants.quality = true,
            "deviation" => {
                wants.deviation = Some(match value {
                    None | Some("sent") => DeviationFrom::Sent,
                    Some("aggregated") => DeviationFrom::Aggregated,
                    Some(other) => return Err(unknown("wants, deviation", other, "sent or aggregated")),
                });
            }
            "norm" => wants.norm = true,
            "update" => wants.update = true,
            "change" => wants.change = true,
            "model_quality" => wants.model_quality = true,
            "edge_accuracy" => {
                wants.edge_accuracy = Some(match value {
                    None | Some("test") => AccuracyOn::Test,
                    Some("train") => AccuracyOn::Train,
                    Some(other) => return Err(unknown("wants, edge_accuracy", other, "test or train")),
                });
            }
            other => {
                let known = "loss_rms, quality, deviation, norm, update, change, model_quality or edge_accuracy";
                return Err(unknown("wants", other, known));
            }
        }
    }
    Ok(wants)
}

fn capabilities(object: &Bound<'_, PyAny>) -> PyResult<Capabilities> {
    let mut capabilities = Capabilities::default();
    for (name, _) in named(object, "capabilities")? {
        match &*name {
            "layout" => capabilities.layout = true,
            "bounds" => capabilities.bounds = true,
            "forecast" => capabilities.forecast = true,
            "subsets" => capabilities.subsets = true,
            "level" => capabilities.level = true,
            other => return Err(unknown("capabilities", other, "layout, bounds, subsets, forecast or level")),
        }
    }
    Ok(capabilities)
}
