//! The rest of the scenario, as far as algorithms depend on it.

use super::{RowDivisor, ServerConfig, Weighting};
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
    /// The divisor of a table row's change.
    pub rows: RowDivisor,
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
    /// Whether the task knows the loss of a model on a client's own examples.
    pub has_losses: bool,
    /// Whether the model is a network with a hidden layer.
    pub has_hidden: bool,
    /// Whether the model has tables of which a client moves some rows.
    pub has_rows: bool,
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

    /// Refuses updates that count differently.
    ///
    /// # Errors
    /// The complaint.
    pub fn needs_alike(&self) -> Result<(), Complaint> {
        if self.weighting != Weighting::Uniform {
            let found = self.weighting.name();
            let message = format!(
                "gives all updates the same weight; [aggregation] says weighting = {found:?}: write \"uniform\""
            );
            return Err(Complaint::new("", message));
        }
        match self.weighs_age {
            true => Err(Complaint::new("", "gives all updates the same weight; take the protocol's staleness out")),
            false => Ok(()),
        }
    }

    /// Refuses what a combination of whole updates has no definition for.
    ///
    /// # Errors
    /// The complaint.
    pub fn needs_whole_updates(&self) -> Result<(), Complaint> {
        self.needs_model()?;
        self.refuses_own()?;
        let refuse = |message| Err(Complaint::new("", message));
        match (self.rows, self.has_clusters) {
            (RowDivisor::Touched, _) => {
                refuse("takes each update as a whole; take rows = \"touched\" of [aggregation] out, or the entry")
            }
            (_, true) => refuse("takes updates of one model; take [clusters] out, or the entry"),
            _ => Ok(()),
        }
    }

    /// Refuses models of clusters, and those that combine updates in a way of their own.
    ///
    /// # Errors
    /// The complaint.
    pub fn needs_one_model(&self) -> Result<(), Complaint> {
        self.needs_model()?;
        self.refuses_own()?;
        match self.has_clusters {
            true => Err(Complaint::new("", "is defined for one shared model; take [clusters] out, or the entry")),
            false => Ok(()),
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
