//! Failures of a task in the middle of sums and searches over numbers.
//!
//! There, a number stands in for the missing one, and the failure is kept; the run looks before it uses the result.

use crate::run::error::{Role, RunError};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_learning::training::JobFailure;
use std::sync::{Mutex, PoisonError};

/// The one method that is not the task's.
pub(super) const FOLD: &str = "fold";

/// The failure of the smallest client, whichever thread met it; one of no client comes first.
#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Option<JobFailure>>);

impl Faults {
    /// The number that a method found, or `instead` of it.
    pub fn or<T>(
        &self,
        (method, client): (&'static str, Option<ClientId>),
        found: Result<T, Failure>,
        instead: T,
    ) -> T {
        found.unwrap_or_else(|source| {
            self.note(Err(JobFailure { client, method, source }));
            instead
        })
    }

    /// Keeps a failure.
    pub fn note(&self, done: Result<(), JobFailure>) {
        let Err(failure) = done else { return };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|known| failure.client < known.client) {
            *kept = Some(failure);
        }
    }

    /// Fails if anything has failed so far.
    pub fn check(&self, round: Round) -> Result<(), RunError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            None => Ok(()),
            Some(JobFailure { client, method, source }) => {
                let role = if method == FOLD { Role::Algorithm } else { Role::Task };
                Err(RunError::Outside { role, method, client, round, source })
            }
        }
    }
}
