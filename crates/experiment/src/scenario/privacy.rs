//! `[privacy]`: noise that clients add to their updates before they send them, a differentially private mean, or sums
//! in the place of updates.

use fedgenie_core::config::Complaint;
use fedgenie_learning::algorithm::privacy::DpFedAvgConfig;
use fedgenie_learning::secure_aggregation::SecureAggregationConfig;
use fedgenie_learning::trainer::{Noise, NoiseScope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[privacy]`: by `sigma`, clients add independent normal numbers to their uploads, from their own streams. Only the
/// task `recommendation` supports it, where the rows of items have noise and the weights of networks have none. Nothing
/// is clipped for it, and no (ε, δ) is worked out: for that there is `dp-fedavg`. With `sigma` = 0 everything is as
/// without the section.
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
    /// Federated averaging with differential privacy.
    #[serde(default, rename = "dp-fedavg", skip_serializing_if = "Option::is_none")]
    pub dp_fedavg: Option<DpFedAvgConfig>,
    /// The server learns sums of updates alone.
    #[serde(default, rename = "secure-aggregation", skip_serializing_if = "Option::is_none")]
    pub secure_aggregation: Option<SecureAggregationConfig>,
}

impl PrivacyConfig {
    /// Checks the range.
    ///
    /// # Errors
    /// A complaint with a path below `privacy`.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        let found = self.sigma;
        if !(0.0..=f64::from(f32::MAX)).contains(&found) {
            let most = f32::MAX;
            return Err(Complaint::new("sigma", format!("found {found}; expected a number from 0 to {most:.1e}")));
        }
        if let Some(secure) = &self.secure_aggregation {
            secure.check().map_err(|complaint| complaint.below("secure-aggregation"))?;
        }
        let Some(dp_fedavg) = &self.dp_fedavg else { return Ok(()) };
        if found > 0.0 {
            let message =
                "adds noise that the accountant of [privacy.dp-fedavg] does not know; take one of the two out";
            return Err(Complaint::new("sigma", message));
        }
        dp_fedavg.check().map_err(|complaint| complaint.below("dp-fedavg"))
    }

    /// The noise of clients; `None` if it is zero.
    pub(super) fn noise(&self) -> Option<Noise> {
        let (sigma, scope) = (self.sigma as f32, self.scope);
        (sigma > 0.0).then_some(Noise { sigma, scope })
    }
}
