//! The part of a probe's whole job that travels up: its loss, the norm of its change, or the whole upload.

use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of a probe's job that travels up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// The loss: a number of 8 bytes, which travels in no time.
    #[default]
    Loss,
    /// The norm of the change: a number of 8 bytes, which travels in no time. Of the rest nothing is known.
    #[serde(skip)]
    Norm,
    /// The whole update, which takes the job's upload in bytes and time.
    Update,
}

impl Answers {
    /// Writes the default if clients train for a probe; otherwise refuses the key, with the reason in `otherwise`.
    pub(super) fn resolve(answers: &mut Option<Self>, trains: bool, otherwise: &str) -> Result<(), Complaint> {
        match answers {
            None if trains => *answers = Some(Self::default()),
            Some(_) if !trains => {
                let message =
                    format!("is the answer of candidates that train for a probe, and {otherwise}; take the key out");
                return Err(Complaint::new("answers", message));
            }
            _ => {}
        }
        Ok(())
    }
}
