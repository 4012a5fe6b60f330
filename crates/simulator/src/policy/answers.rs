//! What clients send that do a whole job for a probe: their loss, or all that a job sends.

use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What travels up of a job that is done to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// The loss: a number of 8 bytes, which travels in no time.
    #[default]
    Loss,
    /// The whole update, which takes the job's upload in bytes and time.
    Update,
}

impl Answers {
    /// Writes the default out where clients train for a probe, and refuses the key where they do not, as `otherwise`
    /// says.
    pub(super) fn resolve(answers: &mut Option<Self>, trains: bool, otherwise: &str) -> Result<(), Complaint> {
        match answers {
            None if trains => *answers = Some(Self::default()),
            Some(_) if !trains => {
                let message =
                    format!("is what candidates send that train for a probe, and {otherwise}; take the key out");
                return Err(Complaint::new("answers", message));
            }
            _ => {}
        }
        Ok(())
    }
}
