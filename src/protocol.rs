//! Protocols: when a round is over, and what becomes of the updates that are not there by then.
//!
//! Every protocol here works in rounds: `ask` clients get the model at the same instant, the round closes at the boundary,
//! and the updates that have arrived are aggregated.
//!
//! | protocol | the round closes when | what is not there |
//! |---|---|---|
//! | `synchronous` | all have arrived, or at the timeout | is called off at the timeout |
//! | `over-selection` | the first `take` of `ask` have arrived, or at the timeout | is called off |
//! | `deadline` | all have arrived, or at the deadline | is called off, or joins a later aggregation |
//!
//! The server cannot see that a client was lost; it learns it by waiting until the timeout or deadline. An arrival at
//! the very instant of the deadline or timeout still counts. Under `over-selection`, of arrivals at the same instant as
//! the last that is taken, the first dispatched count and the others are late.

use crate::config::ConfigError;
use crate::time::Span;
use crate::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod staleness;

pub use staleness::Staleness;

/// The `[protocol]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProtocolConfig {
    /// Waits for everyone.
    Synchronous(SynchronousConfig),
    /// Asks more clients than it waits for.
    OverSelection(OverSelectionConfig),
    /// Closes the round at a fixed time after it opened (the semi-asynchronous boundary).
    Deadline(DeadlineConfig),
}

/// `[protocol.synchronous]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SynchronousConfig {
    /// Clients per round.
    pub cohort: usize,
    /// The longest a round waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// `[protocol.over-selection]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverSelectionConfig {
    /// Clients asked per round.
    pub ask: usize,
    /// Updates waited for.
    pub take: usize,
    /// The longest a round waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
}

/// `[protocol.deadline]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadlineConfig {
    /// Clients per round.
    pub cohort: usize,
    /// The round closes this long after it opened, or earlier if all have arrived.
    pub deadline: Duration,
    /// What becomes of late updates.
    #[serde(default)]
    pub late: LateConfig,
}

/// What becomes of updates that miss the deadline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LateConfig {
    /// The job is called off.
    #[default]
    Drop,
    /// The client goes on; its update joins the aggregation of the round in which it arrives.
    Carry {
        /// The weight of an update that is some rounds old.
        #[serde(default)]
        staleness: Staleness,
    },
}

/// A protocol's rule, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundRule {
    /// Clients asked per round.
    pub ask: usize,
    /// Updates waited for.
    pub take: usize,
    /// The longest a round waits.
    pub cut: Option<Span>,
    /// Weight of late updates that the server goes on waiting for; none if late jobs are called off.
    pub carry: Option<Staleness>,
}

impl ProtocolConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Synchronous(_) => "synchronous",
            Self::OverSelection(_) => "over-selection",
            Self::Deadline(_) => "deadline",
        }
    }

    /// Checks the parameters against the number of clients.
    ///
    /// # Errors
    /// Key and sentence.
    pub fn rule(&self, clients: usize) -> Result<RoundRule, ConfigError> {
        let within = |key, found: usize, most: usize, what: &str| {
            if (1..=most).contains(&found) {
                Ok(found)
            } else {
                Err(ConfigError::new(key, format!("found {found}; expected between 1 and {what} ({most})")))
            }
        };
        let positive = |key, duration: Duration| {
            if duration.0 > Span::ZERO {
                Ok(duration.0)
            } else {
                Err(ConfigError::new(key, "found 0; expected a positive duration"))
            }
        };
        match self {
            Self::Synchronous(config) => {
                let cohort = within("cohort", config.cohort, clients, "the number of clients")?;
                let cut = config.timeout.map(|timeout| positive("timeout", timeout)).transpose()?;
                Ok(RoundRule { ask: cohort, take: cohort, cut, carry: None })
            }
            Self::OverSelection(config) => {
                let ask = within("ask", config.ask, clients, "the number of clients")?;
                let take = within("take", config.take, ask, "ask")?;
                let cut = config.timeout.map(|timeout| positive("timeout", timeout)).transpose()?;
                Ok(RoundRule { ask, take, cut, carry: None })
            }
            Self::Deadline(config) => {
                let cohort = within("cohort", config.cohort, clients, "the number of clients")?;
                let cut = Some(positive("deadline", config.deadline)?);
                let carry = match &config.late {
                    LateConfig::Drop => None,
                    LateConfig::Carry { staleness } => Some(staleness.checked()?),
                };
                Ok(RoundRule { ask: cohort, take: cohort, cut, carry })
            }
        }
    }
}

/// All protocols, by the names that scenarios use.
pub const NAMES: [&str; 3] = ["synchronous", "over-selection", "deadline"];
