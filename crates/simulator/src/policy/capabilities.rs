//! Knowledge beyond every server's, for a policy that declares it: see [`Capabilities`].

use super::Policy;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::time::Span;

/// Knowledge that a policy [declares](Policy::capabilities). It sees nothing of the rest.
///
/// | | where | given by | cost |
/// |---|---|---|---|
/// | `layout` | [`super::ServerView::layout`] | every task with a model | none |
/// | `bounds` | [`super::ServerView::bounds`] | every protocol | none |
/// | `subsets` | [`Policy::judge`] | every task with a model and a main measure | an evaluation each, no virtual time |
/// | `forecast` | [`super::ServerView::forecast`] | `[population.forecast]` | none |
/// | `level` | [`super::ServerView::battery`] | `[population.battery] level = "seen"` | none |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The layout of the model: names and shapes of its segments.
    pub layout: bool,
    /// The deadline, and the bounds of a policy's decisions.
    pub bounds: bool,
    /// The quality of the average of any subset of a round's updates.
    pub subsets: bool,
    /// Whether clients will be online.
    pub forecast: bool,
    /// The levels of batteries.
    pub level: bool,
}

/// The decisions open to a policy, and the values that hold where it decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The usual size of a selection.
    pub cohort: usize,
    /// The largest size of a selection.
    pub most: usize,
    /// The longest wait of a round; `None` without a deadline or timeout.
    pub deadline: Option<Span>,
    /// The shortest deadline that may be chosen; `None` if deadlines are fixed.
    pub deadline_least: Option<Span>,
    /// Epochs of a job; `None` if `[training]` counts steps.
    pub epochs: Option<u32>,
    /// Most epochs of a job; `None` if work is fixed.
    pub most_epochs: Option<u32>,
}

impl Bounds {
    /// Bounds for rounds of so many clients, with nothing else to decide.
    pub const fn of_size(cohort: usize) -> Self {
        Self { cohort, most: cohort, deadline: None, deadline_least: None, epochs: None, most_epochs: None }
    }
}

/// The updates of a round, any subset of which the server may average and evaluate.
///
/// # Definition
/// A subset's model is the one that a server averaging with `lr = 1` would make of these updates alone, with their
/// weights: those of the policy, or else of `[aggregation] weighting`. Its quality is the task's main measure on
/// validation data, or else on test data, negated where smaller is better. The empty subset has the quality of the
/// model before the round.
pub struct Subsets<'a> {
    clients: &'a [ClientId],
    quality: &'a dyn Fn(&[ClientId]) -> f64,
}

impl<'a> Subsets<'a> {
    /// Updates of these clients, ascending, with the function that evaluates some of them.
    pub const fn new(clients: &'a [ClientId], quality: &'a dyn Fn(&[ClientId]) -> f64) -> Self {
        Self { clients, quality }
    }

    /// The clients whose updates were aggregated, ascending.
    pub const fn clients(&self) -> &'a [ClientId] {
        self.clients
    }

    /// The quality of the average of these clients' updates; −∞ if its model is not finite. Costs an evaluation.
    ///
    /// # Panics
    /// If one of them has no update in this round.
    pub fn quality(&self, members: &[ClientId]) -> f64 {
        if let Some(stranger) = members.iter().find(|member| self.clients.binary_search(member).is_err()) {
            panic!("{stranger} has no update in this round");
        }
        (self.quality)(members)
    }
}

impl Capabilities {
    /// A capability that the cloud does not have, by name: edge servers neither train nor go away.
    pub(crate) const fn of_clients(self) -> Option<&'static str> {
        match self {
            Self { subsets: true, .. } => Some("the quality of subsets of updates"),
            Self { forecast: true, .. } => Some("forecasts of availability"),
            Self { level: true, .. } => Some("levels of batteries"),
            _ => None,
        }
    }
}

/// Tells a policy of the updates of a round, if it declares that it evaluates subsets.
pub(crate) fn tell_subsets(policy: &mut dyn Policy, subsets: &Subsets<'_>) -> Result<(), Failure> {
    match policy.capabilities().subsets && !subsets.clients.is_empty() {
        true => policy.judge(subsets),
        false => Ok(()),
    }
}
