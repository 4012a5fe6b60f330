//! What a policy may know beside what every server sees, if it declares it: see [`Capabilities`].

use super::Policy;
use fedgenie_core::id::ClientId;
use fedgenie_core::time::Span;

/// What a policy [declares](Policy::capabilities) that it knows. It sees nothing of the rest.
///
/// | | where | given by | cost |
/// |---|---|---|---|
/// | `layout` | [`super::ServerView::layout`] | every task with a model | none |
/// | `bounds` | [`super::ServerView::bounds`] | every protocol | none |
/// | `subsets` | [`Policy::judge`] | every task with a model and a main measure | an evaluation each, no virtual time |
/// | `forecast` | [`super::ServerView::forecast`] | `[population.forecast]` | none |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The layout of the model: names and shapes of its segments.
    pub layout: bool,
    /// The deadline, and the bounds of what a policy may decide.
    pub bounds: bool,
    /// The quality of the average of any subset of a round's updates.
    pub subsets: bool,
    /// Whether clients will be online.
    pub forecast: bool,
}

/// What a policy may decide, and what holds where it decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The usual size of a selection.
    pub cohort: usize,
    /// The largest size of a selection.
    pub most: usize,
    /// How long a round waits at the longest; none without a deadline or timeout.
    pub deadline: Option<Span>,
    /// The shortest deadline that may be chosen; none if none may be.
    pub deadline_least: Option<Span>,
    /// Epochs of a job; none if `[training]` counts steps.
    pub epochs: Option<u32>,
    /// Most epochs of a job; none if no work may be chosen.
    pub most_epochs: Option<u32>,
}

impl Bounds {
    /// Of rounds of so many clients, of which nothing else may be decided.
    pub const fn of_size(cohort: usize) -> Self {
        Self { cohort, most: cohort, deadline: None, deadline_least: None, epochs: None, most_epochs: None }
    }
}

/// The updates of a round, any subset of which the server may average and evaluate.
///
/// # Definition
/// A subset's model is that which a server that averages with `lr = 1` would have made of these updates alone, with
/// their weights: those of the policy, or else of `[aggregation] weighting`. Its quality is the task's main measure on
/// validation data, or else on test data, negated where smaller is better. Of nobody's updates it is that of the model
/// before the round.
pub struct Subsets<'a> {
    clients: &'a [ClientId],
    quality: &'a dyn Fn(&[ClientId]) -> f64,
}

impl<'a> Subsets<'a> {
    /// Updates of these clients, ascending, with what says the quality of some of them.
    pub const fn new(clients: &'a [ClientId], quality: &'a dyn Fn(&[ClientId]) -> f64) -> Self {
        Self { clients, quality }
    }

    /// The clients whose updates were aggregated, ascending.
    pub const fn clients(&self) -> &'a [ClientId] {
        self.clients
    }

    /// The quality of the average of these clients' updates; −∞ of a model that is not finite. Costs an evaluation.
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
    /// What of it is not given in the cloud, by name: edge servers neither train nor go away.
    pub(crate) const fn of_clients(self) -> Option<&'static str> {
        match self {
            Self { subsets: true, .. } => Some("the quality of subsets of updates"),
            Self { forecast: true, .. } => Some("forecasts of availability"),
            _ => None,
        }
    }
}

/// Tells a policy of the updates of a round, if it declares that it evaluates subsets.
pub(crate) fn tell_subsets(policy: &mut dyn Policy, subsets: &Subsets<'_>) {
    if policy.capabilities().subsets && !subsets.clients.is_empty() {
        policy.judge(subsets);
    }
}
