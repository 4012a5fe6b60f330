//! Protocols: when updates are aggregated, and the fate of late ones.
//!
//! | protocol | clients are asked | the model changes |
//! |---|---|---|
//! | `synchronous`, `over-selection`, `deadline` | together, at the beginning of a round ([`rounds`]) | when the round closes |
//! | `buffered` | one by one, whenever fewer than `concurrency` are busy ([`buffered`]) | at each `buffer`-th update |
//! | `hierarchical` | by their edge server, in its rounds ([`hierarchical`]) | at the edge, and then in the cloud |

use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use serde_json::Value;

pub mod buffered;
pub mod hierarchical;
pub mod rounds;
mod staleness;

pub use buffered::{BufferedConfig, BufferedRule, Combine};
pub use hierarchical::{CloudBuffer, HierarchicalConfig, HierarchicalRule, LinkConfig};
pub use rounds::{DeadlineConfig, LateConfig, OverSelectionConfig, RoundRule, SynchronousConfig};
pub use staleness::Staleness;

/// A protocol's part of a scenario.
pub trait ProtocolSettings {
    /// Checks the parameters against the number of clients.
    ///
    /// # Errors
    /// A complaint with a path below the protocol's table.
    fn rule(&self, clients: usize) -> Result<Rule, Complaint>;

    /// The key of the number of clients per round, which a budget may lower; `None` if it lowers nothing.
    fn cohort_key(&self) -> Option<&'static str> {
        None
    }

    /// Values that a rule has worked out for keys left open, by key.
    fn effective(&self, _rule: &Rule) -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

components! {
    /// The `[protocol]` section.
    pub enum ProtocolConfig: ProtocolSettings = "protocol" {
        /// Synchronous rounds: the server waits for every selected client (FedAvg).
        "synchronous" => Synchronous(SynchronousConfig) in "protocol/rounds.rs";
        /// Over-selection: the server asks more clients than it waits for.
        "over-selection" => OverSelection(OverSelectionConfig) in "protocol/rounds.rs";
        /// Deadline: a round closes at a fixed time after it opened (semi-asynchronous).
        "deadline" => Deadline(DeadlineConfig) in "protocol/rounds.rs";
        "buffered" => Buffered(BufferedConfig) in "protocol/buffered.rs";
        "hierarchical" => Hierarchical(Box<HierarchicalConfig>) in "protocol/hierarchical.rs";
    }
}

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
            Self::Hierarchical(rule) => rule.most_asked(),
        }
    }

    /// Most clients that a policy may choose at once.
    pub fn most(&self) -> usize {
        match self {
            Self::Rounds(rule) => rule.most,
            Self::Buffered(_) => 1,
            Self::Hierarchical(rule) => rule.largest(),
        }
    }

    /// Updates that close a selection's round.
    pub fn take(&self) -> usize {
        match self {
            Self::Rounds(rule) => rule.take.min(rule.ask),
            Self::Buffered(_) => 1,
            Self::Hierarchical(rule) => rule.most_asked(),
        }
    }

    /// Abandons rounds with fewer updates than so many.
    ///
    /// # Errors
    /// The updates that a round waits for, if they are fewer.
    pub fn need(&mut self, least: usize) -> Result<(), usize> {
        let of_round = |rule: &mut RoundRule| {
            let found = rule.take.min(rule.ask);
            rule.quorum = rule.quorum.max(least);
            if found < least { Err(found) } else { Ok(()) }
        };
        match self {
            Self::Rounds(rule) => of_round(rule),
            Self::Buffered(rule) if rule.buffer < least => Err(rule.buffer),
            Self::Buffered(_) => Ok(()),
            Self::Hierarchical(rule) => rule.edge.iter_mut().try_for_each(of_round),
        }
    }

    /// Abandons rounds with updates of less than this share of the selected clients.
    ///
    /// # Errors
    /// The usual number of selected clients and that of updates that a round waits for, if these are fewer.
    pub fn need_share(&mut self, share: f64) -> Result<(), (usize, usize)> {
        let of_round = |rule: &mut RoundRule| {
            rule.least_share = rule.least_share.max(share);
            let found = rule.take.min(rule.ask);
            if found < rule.least_of(rule.ask) { Err((rule.ask, found)) } else { Ok(()) }
        };
        match self {
            Self::Rounds(rule) => of_round(rule),
            Self::Buffered(_) => Ok(()),
            Self::Hierarchical(rule) => rule.edge.iter_mut().try_for_each(of_round),
        }
    }

    /// The longest wait for a job.
    pub fn cut(&self) -> Option<Span> {
        match self {
            Self::Rounds(rule) => rule.cut,
            Self::Buffered(rule) => rule.timeout,
            Self::Hierarchical(rule) => rule.cut(),
        }
    }

    /// Whether regret is defined: rounds of one server.
    pub const fn has_regret(&self) -> bool {
        matches!(self, Self::Rounds(_))
    }

    /// The key by which policies may change a quantity that regret takes to be constant; `None` without one.
    pub fn decided(&self) -> Option<&'static str> {
        let of = |rule: &RoundRule| match rule {
            RoundRule { cut_least: Some(_), .. } => Some("deadline_least"),
            RoundRule { ask, most, .. } if most > ask => Some("most"),
            RoundRule { .. } => None,
        };
        match self {
            Self::Rounds(rule) => of(rule),
            Self::Buffered(_) => None,
            Self::Hierarchical(rule) => rule.edge.iter().find_map(of),
        }
    }
}

impl ProtocolConfig {
    /// Whether there are servers between clients and cloud.
    pub const fn has_edge_servers(&self) -> bool {
        matches!(self, Self::Hierarchical(_))
    }

    /// The key of the number of clients per round, which a budget may lower; `None` if it lowers nothing.
    pub fn cohort_key(&self) -> Option<&'static str> {
        self.settings().cohort_key()
    }

    /// Values that its rule has worked out for keys left open, by key.
    pub fn effective(&self, rule: &Rule) -> Vec<(&'static str, Value)> {
        self.settings().effective(rule)
    }

    /// Checks the parameters against the number of clients.
    ///
    /// # Errors
    /// A complaint with a path below the protocol's table.
    pub fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        self.settings().rule(clients)
    }
}

fn within(key: &str, found: usize, most: usize, what: &str) -> Result<usize, Complaint> {
    if (1..=most).contains(&found) {
        Ok(found)
    } else {
        Err(Complaint::new(key, format!("found {found}; expected between 1 and {what} ({most})")))
    }
}

fn positive(key: &str, duration: Duration) -> Result<Span, Complaint> {
    if duration.0 > Span::ZERO {
        Ok(duration.0)
    } else {
        Err(Complaint::new(key, "found 0; expected a positive duration"))
    }
}
