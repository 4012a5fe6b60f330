//! The rest of the scenario, as far as algorithms depend on it.

use super::{ServerConfig, Weighting};
use crate::trainer::OptimizerConfig;
use fedgenie_core::config::Complaint;

/// The surroundings of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The local optimizer.
    pub optimizer: &'a OptimizerConfig,
    /// Weight μ of the proximal term; 0 without one.
    pub proximal: f64,
    /// Whether clients add noise to their updates.
    pub has_noise: bool,
    /// How updates are weighted.
    pub weighting: Weighting,
    /// The server's step.
    pub server: &'a ServerConfig,
    /// The protocol's name.
    pub protocol: &'a str,
    /// Whether clients train under edge servers.
    pub has_edges: bool,
    /// Whether edge servers have models of clusters.
    pub has_clusters: bool,
    /// Whether old updates may count less than fresh ones.
    pub weighs_age: bool,
    /// The task's name.
    pub task: &'a str,
    /// Whether the task learns parameters.
    pub has_model: bool,
    /// Whether the task knows the gradient of a client's mean loss.
    pub has_gradient: bool,
    /// Whether the task's model combines updates in a way of its own.
    pub has_own_combination: bool,
}

impl Scene<'_> {
    /// Refuses a task without parameters.
    ///
    /// # Errors
    /// The complaint.
    pub fn needs_model(&self) -> Result<(), Complaint> {
        match self.has_model {
            true => Ok(()),
            false => Err(self.refuse("learns no parameters")),
        }
    }

    /// Refuses a model that combines updates in a way of its own.
    ///
    /// # Errors
    /// The complaint.
    pub fn refuses_own(&self) -> Result<(), Complaint> {
        match self.has_own_combination {
            true => Err(self.refuse("has a model that combines updates in a way of its own")),
            false => Ok(()),
        }
    }

    /// A complaint about the task.
    pub fn refuse(&self, why: &str) -> Complaint {
        Complaint::new("", format!("is not defined for this task ({}), which {why}; take the entry out", self.task))
    }
}
