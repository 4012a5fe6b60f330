//! Protocols: when updates are aggregated, and what becomes of those that are not there by then.
//!
//! | protocol | clients are asked | the model changes |
//! |---|---|---|
//! | `synchronous`, `over-selection`, `deadline` | together, at the beginning of a round ([`rounds`]) | when the round closes |
//! | `buffered` | one by one, whenever fewer are at work than may be ([`buffered`]) | when so many updates have arrived |
//! | `hierarchical` | by their edge server, in its rounds ([`hierarchical`]) | at the edge, and then in the cloud |

use fedgenie_core::config::ConfigError;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod buffered;
pub mod hierarchical;
pub mod rounds;
mod staleness;

pub use buffered::{BufferedConfig, BufferedRule, Combine};
pub use hierarchical::{HierarchicalConfig, HierarchicalRule, LinkConfig};
pub use rounds::{DeadlineConfig, LateConfig, OverSelectionConfig, RoundRule, SynchronousConfig};
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
    /// Keeps a number of clients busy and aggregates every so many updates (asynchronous).
    Buffered(BufferedConfig),
    /// Clients, edge servers, cloud.
    Hierarchical(Box<HierarchicalConfig>),
}

/// All protocols, by the names that scenarios use.
pub const NAMES: [&str; 5] = ["synchronous", "over-selection", "deadline", "buffered", "hierarchical"];

/// A protocol's rule, checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// In rounds.
    Rounds(RoundRule),
    /// Asynchronous.
    Buffered(BufferedRule),
    /// With edge servers.
    Hierarchical(Box<HierarchicalRule>),
}

impl Rule {
    /// Most clients that a policy is asked for at once.
    pub fn ask(&self) -> usize {
        match self {
            Self::Rounds(rule) => rule.ask,
            Self::Buffered(_) => 1,
            Self::Hierarchical(rule) => rule.edge.ask,
        }
    }

    /// Updates that a selection's round waits for.
    pub fn take(&self) -> usize {
        match self {
            Self::Rounds(rule) => rule.take,
            Self::Buffered(_) => 1,
            Self::Hierarchical(rule) => rule.edge.take,
        }
    }

    /// The longest that a job is waited for.
    pub fn cut(&self) -> Option<Span> {
        match self {
            Self::Rounds(rule) => rule.cut,
            Self::Buffered(rule) => rule.timeout,
            Self::Hierarchical(rule) => rule.edge.cut,
        }
    }

    /// Whether regret is defined: rounds of one server.
    pub const fn has_regret(&self) -> bool {
        matches!(self, Self::Rounds(_))
    }
}

impl ProtocolConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Synchronous(_) => "synchronous",
            Self::OverSelection(_) => "over-selection",
            Self::Deadline(_) => "deadline",
            Self::Buffered(_) => "buffered",
            Self::Hierarchical(_) => "hierarchical",
        }
    }

    /// Checks the parameters against the number of clients.
    ///
    /// # Errors
    /// Key and sentence.
    pub fn rule(&self, clients: usize) -> Result<Rule, ConfigError> {
        match self {
            Self::Synchronous(config) => config.rule(clients).map(Rule::Rounds),
            Self::OverSelection(config) => config.rule(clients).map(Rule::Rounds),
            Self::Deadline(config) => config.rule(clients).map(Rule::Rounds),
            Self::Buffered(config) => config.rule(clients).map(Rule::Buffered),
            Self::Hierarchical(config) => config.rule(clients).map(|rule| Rule::Hierarchical(Box::new(rule))),
        }
    }
}

fn within(key: &'static str, found: usize, most: usize, what: &str) -> Result<usize, ConfigError> {
    if (1..=most).contains(&found) {
        Ok(found)
    } else {
        Err(ConfigError::new(key, format!("found {found}; expected between 1 and {what} ({most})")))
    }
}

fn positive(key: &'static str, duration: Duration) -> Result<Span, ConfigError> {
    if duration.0 > Span::ZERO {
        Ok(duration.0)
    } else {
        Err(ConfigError::new(key, "found 0; expected a positive duration"))
    }
}
