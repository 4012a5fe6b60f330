//! Controls of a world: what the results of its policies stand beside.
//!
//! # Definition
//! `initial` is the model that every run begins with, as rounds measure it.
//!
//! `centralised` trains that model on the training examples of all clients together, each of them once, in one job of
//! so many epochs: with the optimizer and batch size of its own where it names them, otherwise of `[training]`, whose
//! clipping it has, at the learning rate of the first round, under no algorithm, without a proximal term and without
//! noise. Where edge servers have cluster models, it is one model of the kind that is trained without clusters.
//!
//! What suits the few examples of a client need not suit those of all: at the rate that federated rounds want, one long
//! job may end below a trivial control. Such a control says nothing about the model, and wants settings of its own.
//!
//! `local` trains that model in the same way at each client alone, on its own examples; with `clients`, at so many of
//! those with examples, drawn by the seed, the same for all policies. A client's model is measured on all test data,
//! or for tasks whose clients have test data of their own (recommendation, graphs of ratings) on these, with the first
//! model where it has learned nothing. The control has the mean over clients, weighted by the data that each is
//! measured on.
//!
//! Where runs measure edge servers' models, `centralised` has the statistics over servers of that one model on the data
//! of each, and `local` those of the mean over a server's clients of what each one's own model reaches on the server's
//! data; `local` has none where clients have private state.
//!
//! They take no virtual time and no traffic, and are in no digest.
//!
//! # Cost
//! They are made by the first run of a world that ends, for all its runs: `centralised` trains on all data for its
//! epochs and has them in memory once more; `local` as much as a round of these clients, and an evaluation each.
//!
//! # Determinism
//! Streams (BatchOrder, client, 0) and (TrainingNoise, client, 0), client 0 for `centralised`; jobs of runs are
//! numbered from 1. The clients of `local`: stream (Policy, 2³² − 3, 0).

use super::{Metrics, WorldError, WorldPlan};
use crate::population::Population;
use crate::task::{DataCache, Task, TaskSettings};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use fedgenie_learning::trainer::{Optimizer, OptimizerConfig, TrainingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

/// The source of this file, which opens with the definition of `[controls]`.
pub const DOCUMENTED: &str = include_str!("controls.rs");

/// `[controls]`: what the results of policies stand beside, made once for each seed and point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControlsConfig {
    /// The model, trained on the examples of all clients in one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centralised: Option<Centralised>,
    /// The model, trained by each client alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<Local>,
    /// The model before training.
    #[serde(default = "yes")]
    pub initial: bool,
}

const fn yes() -> bool {
    true
}

impl Default for ControlsConfig {
    fn default() -> Self {
        Self { centralised: None, local: None, initial: true }
    }
}

/// `centralised = { epochs = 30, batch = 64, optimizer = { adam = { lr = 0.001 } } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Centralised {
    /// Passes over all examples.
    pub epochs: u32,
    /// Examples per mini-batch; as in `[training]` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// How the model is changed; as in `[training]` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerConfig>,
}

/// `local = { epochs = 30, clients = 20 }`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Local {
    /// Passes of a client over its own examples.
    pub epochs: u32,
    /// Most clients, drawn by the seed; all with examples if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
}

impl ControlsConfig {
    /// Whether these are the controls of a scenario that says nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The table of the first control that is trained, if there is one.
    pub const fn trained(&self) -> Option<&'static str> {
        match (&self.centralised, self.local) {
            (Some(_), _) => Some("centralised"),
            (None, Some(_)) => Some("local"),
            (None, None) => None,
        }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// A complaint with a path below `controls`.
    pub fn check(&self) -> Result<(), Complaint> {
        let centralised = self.centralised.as_ref();
        let epochs = centralised.map(|centralised| ("centralised.epochs", centralised.epochs));
        let batch = centralised.and_then(|centralised| Some(("centralised.batch", centralised.batch?)));
        let of_local = self.local.map(|local| ("local.epochs", local.epochs));
        let clients = self.local.and_then(|local| Some(("local.clients", local.clients?)));
        if let Some((key, _)) = [epochs, batch, of_local, clients].into_iter().flatten().find(|(_, found)| *found == 0)
        {
            return Err(Complaint::new(key, "found 0; expected at least 1"));
        }
        let Some(optimizer) = centralised.and_then(|centralised| centralised.optimizer.as_ref()) else { return Ok(()) };
        let refuse = |TrainingError { key, found, expected }| {
            let key = format!("centralised.optimizer.{}.{key}", optimizer.kind());
            Complaint::new(key, format!("found {found}; expected {expected}"))
        };
        Optimizer::new(optimizer).map(drop).map_err(refuse)
    }

    /// Refuses controls that train beside a task that trains nothing.
    ///
    /// # Errors
    /// A complaint with a path below `controls`.
    pub fn check_task(&self, task: &dyn TaskSettings) -> Result<(), Complaint> {
        let about = task.about();
        match self.trained().filter(|_| !about.trains) {
            Some(key) => {
                Err(Complaint::new(key, format!("the task ({}) trains nothing; take the key out", about.name)))
            }
            None => Ok(()),
        }
    }
}

/// The controls of a world.
#[derive(Debug, Default)]
pub(crate) struct Controls {
    /// Which.
    pub config: ControlsConfig,
    /// The task with everybody's data at one client, for `centralised`.
    pub pooled: Option<Arc<dyn Task>>,
    /// The task with the data where they are and a model as `centralised` has it, where that of the world is divided
    /// among clusters.
    pub plain: Option<Arc<dyn Task>>,
    /// Those that were trained, when they are asked for.
    pub kept: Mutex<Option<Vec<TrainedControl>>>,
}

/// A control that was trained.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainedControl {
    /// Its name.
    pub name: &'static str,
    /// Its metrics on test data and, where it is measured on them, on validation data; without those that are not
    /// finite.
    pub metrics: Metrics,
    /// Its models: one, or one of each client.
    pub models: usize,
    /// How many of them diverged, and are not measured.
    pub diverged: usize,
}

impl WorldPlan {
    /// The task with the data of all clients of a population at one client, if a control is trained on it.
    pub(super) fn pooled(
        &self,
        population: &Population,
        streams: &Streams,
        cache: &DataCache,
    ) -> Result<Option<Arc<dyn Task>>, WorldError> {
        if self.controls.centralised.is_none() {
            return Ok(None);
        }
        let Some(material) = self.task.material(streams, cache)? else { return Ok(None) };
        let sizes = if self.has_declared_sizes() { population.data_sizes() } else { &[] };
        let pooled = material.pool(population.len(), sizes, streams)?.ok_or_else(|| {
            let task = self.task.about().name;
            let message = format!("the data of the task ({task}) cannot be put in one place; take the key out");
            WorldError::scenario("controls.centralised", message)
        })?;
        Ok(Some(pooled))
    }

    /// The task with a model that is not divided among clusters.
    pub(super) fn without_clusters(
        &self,
        population: &Population,
        streams: &Streams,
        cache: &DataCache,
    ) -> Result<Option<Arc<dyn Task>>, WorldError> {
        let Some(material) = self.task.material(streams, cache)? else { return Ok(None) };
        let sizes = if self.has_declared_sizes() { population.data_sizes() } else { &[] };
        Ok(Some(material.deal(population.len(), sizes, streams)?))
    }
}
