//! `[privacy]`: noise that clients add to their updates before they send them.

use fedgenie_core::config::Complaint;
use fedgenie_learning::trainer::{Noise, NoiseScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[privacy]`: clients add independent normal numbers to their uploads, from their own streams. Only the task
/// `recommendation` supports it, where the rows of items have noise and the weights of networks have none. Nothing is
/// clipped for it, and no (ε, δ) is worked out. With `sigma` = 0 everything is as without the section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivacyConfig {
    /// Standard deviation of the noise.
    #[serde(default)]
    pub sigma: f64,
    /// For `sigma` above 0: noise on the whole `table` of items, which then travels, so that every row counts as moved
    /// and the staleness of items is 0; or on those `rows` that are sent anyway.
    #[serde(default)]
    pub scope: NoiseScope,
}

impl PrivacyConfig {
    /// Checks the range.
    ///
    /// # Errors
    /// A complaint with a path below `privacy`.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        let found = self.sigma;
        if (0.0..=f64::from(f32::MAX)).contains(&found) {
            return Ok(());
        }
        let most = f32::MAX;
        Err(Complaint::new("sigma", format!("found {found}; expected a number from 0 to {most:.1e}")))
    }

    /// The noise of clients; `None` if it is zero.
    pub(super) fn noise(&self) -> Option<Noise> {
        let (sigma, scope) = (self.sigma as f32, self.scope);
        (sigma > 0.0).then_some(Noise { sigma, scope })
    }
}
