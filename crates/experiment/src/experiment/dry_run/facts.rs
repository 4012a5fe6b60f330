//! What a world and a policy say about their runs before these begin.

use super::super::{Experiment, RunId};
use crate::error::Error;
use fedgenie_simulator::policy::{Policies, Wants};
use fedgenie_simulator::world::World;

/// What a world and a policy's part in it say about their runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Bytes that clients may move.
    pub budget: Option<u64>,
    /// Whether something is learned.
    pub trains: bool,
    /// Whether the policy asks for the quality of the model after each round.
    pub asks_of_model: bool,
    /// Whether it asks for that of each update.
    pub asks_of_updates: bool,
    /// Bytes of the dense part of a model.
    pub model_bytes: u64,
    /// Models that the server keeps.
    pub models: u64,
    /// Clients of the population.
    pub clients: u64,
}

impl Facts {
    /// Of a run in its world.
    ///
    /// # Errors
    /// If a policy's parameters do not fit the world.
    pub fn of(experiment: &Experiment, run: &RunId, world: &World) -> Result<Self, Error> {
        let scenario = &experiment.points[run.point].1;
        let arm = &scenario.arms[run.arm];
        let policies = world.policies(&arm.source()).map_err(|error| scenario.explain_policy(&arm.label, error))?;
        let wants = match &policies {
            Policies::Server(policy) => policy.wants(),
            Policies::Tiers { cloud, .. } => cloud.as_ref().map_or_else(Wants::default, |policy| policy.wants()),
        };
        let parameters = world.task.as_ref().map_or(0, |task| task.layout().dense_len());
        Ok(Self {
            budget: world.budget.bytes,
            trains: world.task.is_some(),
            asks_of_model: wants.model_quality,
            asks_of_updates: wants.quality,
            model_bytes: (parameters * size_of::<f32>()) as u64,
            models: world.clusters().into(),
            clients: world.population.len() as u64,
        })
    }
}
