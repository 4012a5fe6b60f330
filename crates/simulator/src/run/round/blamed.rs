//! Components from outside that cannot be saved or loaded.

use super::question::Asker;
use crate::run::error::{Failed, Role, RunError};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::Round;

/// The component that cannot be saved or loaded.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) enum Of {
    Policy(Asker),
    Clusters,
}

/// A component from outside that cannot be saved or loaded; the run adds the label of its policy.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(in crate::run) struct Blamed {
    pub of: Of,
    pub source: Failure,
}

impl Blamed {
    /// As the error of a run.
    pub fn told(self, label: &str, round: Round) -> RunError {
        let role = match self.of {
            Of::Policy(asker) => asker.role(label),
            Of::Clusters => Role::Clusters,
        };
        Failed { method: "exchange", source: self.source }.told(role, round)
    }
}
