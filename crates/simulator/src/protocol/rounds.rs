//! Protocols in rounds: everyone asked gets the model at the same instant, and the round closes at its boundary.
//!
//! # Definition
//! | protocol | the round closes when | a missing update |
//! |---|---|---|
//! | `synchronous` | all have arrived, or at the timeout | is called off at the timeout |
//! | `over-selection` | the first `take` of `ask` have arrived, or at the timeout | is called off, or joins a later aggregation |
//! | `deadline` | all have arrived, or at the deadline; with `full_window` always at the deadline | the same |
//!
//! The server cannot see that a client was lost; it learns it by waiting until the timeout or deadline. An arrival at
//! the very instant of the deadline or timeout still counts. Under `over-selection`, of arrivals at the same instant as
//! the last that is taken, the first dispatched count and the others are late. Late updates that join an aggregation do
//! not count towards `take`, nor towards the `quorum`. A round that closes with fewer updates than its quorum is
//! abandoned: the model stays as it was, and the work of its jobs is wasted.
//!
//! *What policies decide.* A round has as many clients as the policy chooses: `cohort` (`ask`) is the usual size,
//! `most` the largest. A policy that declares that its selection can be empty may hold a round without clients: it ends
//! at once, without a new model, and is not abandoned; late updates that are there by then join the next round with
//! clients. With `deadline_least` a policy may choose the deadline of each round, between that and `deadline`. Regret
//! is defined for rounds of one size and deadline: `[regret]` is refused beside `most` and `deadline_least`.
//!
//! # Example
//! ```toml
//! [protocol.deadline]
//! cohort = 10
//! deadline = "2 min"
//! quorum = 3
//! most = 20
//! deadline_least = "30 s"
//! late = { carry = { staleness = { polynomial = { exponent = 0.5 } } } }
//! ```

use super::{ProtocolSettings, Rule, Staleness, positive, within};
use fedgenie_core::config::Complaint;
use fedgenie_core::time::Span;
use fedgenie_core::units::Duration;
use fedgenie_learning::secure_aggregation::part;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[protocol.synchronous]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SynchronousConfig {
    /// Clients per round.
    pub cohort: usize,
    /// Most clients that a policy may choose in a round; `cohort` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// The longest a round waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The fewest updates with which a round counts; with fewer it is abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<usize>,
}

/// `[protocol.over-selection]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverSelectionConfig {
    /// Clients asked per round.
    pub ask: usize,
    /// Most clients that a policy may choose in a round; `ask` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// Updates waited for.
    pub take: usize,
    /// The fate of updates that are not waited for.
    #[serde(default)]
    pub late: LateConfig,
    /// The longest a round waits; needed where clients can be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The fewest updates with which a round counts; with fewer it is abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<usize>,
}

/// `[protocol.deadline]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadlineConfig {
    /// Clients per round.
    pub cohort: usize,
    /// Most clients that a policy may choose in a round; `cohort` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// The round closes this long after it opened, or earlier if all have arrived.
    pub deadline: Duration,
    /// The shortest deadline that a policy may choose for a round, `deadline` being the longest; if left out, none may
    /// be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_least: Option<Duration>,
    /// Whether the round lasts until the deadline even if all have arrived.
    #[serde(default)]
    pub full_window: bool,
    /// The fate of late updates.
    #[serde(default)]
    pub late: LateConfig,
    /// The fewest updates with which a round counts; with fewer it is abandoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<usize>,
}

/// The fate of updates that are missing when the round closes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LateConfig {
    /// The job is called off.
    #[default]
    Drop,
    /// The client goes on; its update joins the aggregation of the round in which it arrives.
    Carry {
        /// The weight of a stale update.
        #[serde(default)]
        staleness: Staleness,
    },
}

/// When a round closes, and the fate of missing updates.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundRule {
    /// Clients asked per round.
    pub ask: usize,
    /// Most clients that a policy may choose in a round: `ask`, unless `most` says more.
    pub most: usize,
    /// Updates waited for, if so many clients are asked.
    pub take: usize,
    /// The longest a round waits.
    pub cut: Option<Span>,
    /// The shortest wait that a policy may choose instead; `None` if the wait is fixed.
    pub cut_least: Option<Span>,
    /// Whether the round always lasts until `cut`.
    pub full_window: bool,
    /// The fewest updates with which a round counts.
    pub quorum: usize,
    /// The least share of the selected clients whose updates have to arrive for a round to count.
    pub least_share: f64,
    /// Weight of late updates that the server goes on waiting for; `None` if late jobs are called off.
    pub carry: Option<Staleness>,
}

impl RoundRule {
    /// The fewest updates with which a round of so many selected clients counts.
    pub fn least_of(&self, selected: usize) -> usize {
        self.quorum.max(part(self.least_share, selected as f64) as usize)
    }
}

impl LateConfig {
    fn carry(&self) -> Result<Option<Staleness>, Complaint> {
        match self {
            Self::Drop => Ok(None),
            Self::Carry { staleness } => staleness.checked("late").map(Some),
        }
    }
}

/// The largest round, of at least the usual size.
fn largest(found: Option<usize>, usual: usize, clients: usize) -> Result<usize, Complaint> {
    let most = found.unwrap_or(usual);
    if (usual..=clients).contains(&most) {
        return Ok(most);
    }
    let expected = format!("the usual size of a round ({usual}) and the number of clients ({clients})");
    Err(Complaint::new("most", format!("found {most}; expected between {expected}")))
}

fn quorum(found: Option<usize>, take: usize) -> Result<usize, Complaint> {
    found.map_or(Ok(0), |quorum| within("quorum", quorum, take, "the updates waited for"))
}

impl SynchronousConfig {
    /// The rule of its rounds.
    pub(super) fn rounds(&self, clients: usize) -> Result<RoundRule, Complaint> {
        let cohort = within("cohort", self.cohort, clients, "the number of clients")?;
        let cut = self.timeout.map(|timeout| positive("timeout", timeout)).transpose()?;
        let quorum = quorum(self.quorum, cohort)?;
        let most = largest(self.most, cohort, clients)?;
        let (ask, full_window, cut_least, carry) = (cohort, false, None, None);
        Ok(RoundRule { ask, most, take: most, cut, cut_least, full_window, quorum, least_share: 0.0, carry })
    }
}

impl ProtocolSettings for SynchronousConfig {
    fn cohort_key(&self) -> Option<&'static str> {
        Some("cohort")
    }

    fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        self.rounds(clients).map(Rule::Rounds)
    }
}

impl ProtocolSettings for OverSelectionConfig {
    fn cohort_key(&self) -> Option<&'static str> {
        Some("ask")
    }

    fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        let ask = within("ask", self.ask, clients, "the number of clients")?;
        let take = within("take", self.take, ask, "ask")?;
        let cut = self.timeout.map(|timeout| positive("timeout", timeout)).transpose()?;
        let (quorum, carry) = (quorum(self.quorum, take)?, self.late.carry()?);
        let most = largest(self.most, ask, clients)?;
        let (cut_least, full_window, least_share) = (None, false, 0.0);
        Ok(Rule::Rounds(RoundRule { ask, most, take, cut, cut_least, full_window, quorum, least_share, carry }))
    }
}

impl ProtocolSettings for DeadlineConfig {
    fn cohort_key(&self) -> Option<&'static str> {
        Some("cohort")
    }

    fn rule(&self, clients: usize) -> Result<Rule, Complaint> {
        let cohort = within("cohort", self.cohort, clients, "the number of clients")?;
        let most = largest(self.most, cohort, clients)?;
        let cut = positive("deadline", self.deadline)?;
        let cut_least = self.deadline_least.map(|least| positive("deadline_least", least)).transpose()?;
        if let Some(least) = cut_least.filter(|&least| least > cut) {
            let (least, longest) = (least.seconds(), cut.seconds());
            let message = format!("found {least} s; expected at most the deadline, {longest} s");
            return Err(Complaint::new("deadline_least", message));
        }
        let (quorum, carry) = (quorum(self.quorum, cohort)?, self.late.carry()?);
        let (ask, cut, full_window, least_share) = (cohort, Some(cut), self.full_window, 0.0);
        Ok(Rule::Rounds(RoundRule { ask, most, take: most, cut, cut_least, full_window, quorum, least_share, carry }))
    }
}
