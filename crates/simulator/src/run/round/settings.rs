//! How a run is carried out.

use crate::policy::{Policy, Wants};
use crate::run::meters::Evaluations;

/// How a run is carried out, apart from its computations.
#[derive(Clone, Debug, Default)]
pub struct RunSettings {
    /// When the global model is evaluated; where its `end` does not say which round is the last, it is by
    /// [`Run::finish`](crate::run::Run::finish).
    pub evaluate: Evaluations,
    /// Rounds between recorded rounds.
    pub record_every: u32,
    /// Whether policies explain their decisions in the recorded rounds.
    pub explain: bool,
    /// Whether recorded rounds have statistics of updates, whatever the policy wants.
    pub updates: bool,
    /// Whether recorded rounds have the levels of batteries, of up to
    /// [`MOST_TOLD`](crate::metrics::MOST_TOLD) clients.
    pub battery: bool,
    /// Whether clients are trained on all cores of the current rayon pool.
    pub parallel: bool,
}

impl RunSettings {
    /// The statistics of updates that a policy wants or the records have.
    pub(in crate::run) fn wants(&self, policy: &dyn Policy) -> Wants {
        let wants = policy.wants();
        Wants { loss_rms: wants.loss_rms || self.updates, ..wants }
    }
}
