//! `[aggregation]`: how updates are weighted, and what the server makes of their mean.

use fedgenie_core::config::{Complaint, check};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[aggregation]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AggregationConfig {
    /// How much each update counts.
    #[serde(default)]
    pub weighting: Weighting,
    /// What the server makes of the mean change.
    #[serde(default)]
    pub server: ServerConfig,
}

/// How much each update counts, before its age is taken into account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// By data size, among those that contribute.
    #[default]
    DataSize,
    /// All the same.
    Uniform,
    /// By data size, among all clients: what the others would have counted stays with the old model.
    TotalSize,
}

/// The server's step along the mean change, for example `"average"` or `{ adam = { lr = 0.01 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum ServerConfig {
    /// Federated averaging.
    Average {
        /// Learning rate of the server; positive. 1 is the mean itself.
        #[serde(default = "one")]
        lr: f64,
    },
    /// Averaging with server momentum (FedAvgM).
    Momentum {
        /// Learning rate of the server; positive.
        #[serde(default = "one")]
        lr: f64,
        /// Share of the velocity that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        momentum: f64,
    },
    /// `FedAdam`.
    Adam {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Share of the mean squared change that a round keeps; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
    /// `FedYogi`.
    Yogi {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// 1 − `beta2` is the share of the squared change that enters in a round; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
    /// `FedAdagrad`.
    Adagrad {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default)]
        beta1: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
}

const fn one() -> f64 {
    1.0
}
const fn nine_tenths() -> f64 {
    0.9
}
const fn default_beta2() -> f64 {
    0.99
}
const fn default_tau() -> f64 {
    1e-3
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self::Average { lr: one() }
    }
}

impl ServerConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Average { .. } => "average",
            Self::Momentum { .. } => "momentum",
            Self::Adam { .. } => "adam",
            Self::Yogi { .. } => "yogi",
            Self::Adagrad { .. } => "adagrad",
        }
    }
}

impl AggregationConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting of the server out of its range, by its key below [`ServerConfig::kind`].
    pub fn check(&self) -> Result<(), Complaint> {
        let positive = |key, value| check(key, value, f64::MIN_POSITIVE.., "a number above 0").map(|_| ());
        let share = |key, value| check(key, value, 0.0..1.0, "a number of at least 0 and below 1").map(|_| ());
        match self.server {
            ServerConfig::Average { lr } => positive("lr", lr),
            ServerConfig::Momentum { lr, momentum } => {
                positive("lr", lr)?;
                share("momentum", momentum)
            }
            ServerConfig::Adam { lr, beta1, beta2, tau } | ServerConfig::Yogi { lr, beta1, beta2, tau } => {
                positive("lr", lr)?;
                share("beta1", beta1)?;
                share("beta2", beta2)?;
                positive("tau", tau)
            }
            ServerConfig::Adagrad { lr, beta1, tau } => {
                positive("lr", lr)?;
                share("beta1", beta1)?;
                positive("tau", tau)
            }
        }
    }
}
