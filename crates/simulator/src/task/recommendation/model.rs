//! Which model of ratings, and how large.

use super::Dmrl;
use fedgenie_core::config::Complaint;
use fedgenie_learning::ncf::{Proxy, Shape};
use fedgenie_learning::task::recommendation::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `model = { mf = { dimensions = 32 } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
#[schemars(rename = "RecommendationModelConfig")]
pub enum ModelConfig {
    /// Matrix factorisation.
    Mf {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
        /// Standard deviation of the numbers of first rows; above 0.
        #[serde(default = "tenth")]
        deviation: f64,
    },
    /// A network over both rows.
    Ncf {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
        /// Hidden numbers of the network; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        hidden: usize,
    },
    /// A network over both rows, and a second one that predicts its losses.
    ProxyNcf {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
        /// Hidden numbers of each network; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        hidden: usize,
        /// What the second one predicts.
        #[serde(default)]
        proxy: ProxyConfig,
    },
    /// Private score functions of users.
    Pfedrec {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
    },
    /// Users who are seen with their items.
    Fedpergnn {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
    },
    /// Private networks, and an item table for each participant.
    Gpfedrec {
        /// Length of a row; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        dimensions: usize,
        /// Hidden numbers of a client's network; from 1 to 4,096.
        #[serde(default = "thirty_two")]
        hidden: usize,
        /// Weight of the pull towards the participant's table; at least 0.
        #[serde(default = "one")]
        reg: f64,
    },
    /// Users, items, text and images, joined by attention over disentangled factors.
    Dmrl(Dmrl),
}

/// `proxy = "pairwise"`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyConfig {
    /// The loss of a pair, from the answers to both items.
    #[default]
    Pairwise,
    /// The loss of a pair, as the answer to the positive item.
    Positive,
}

const fn thirty_two() -> usize {
    32
}

const fn one() -> f64 {
    1.0
}

const fn tenth() -> f64 {
    0.1
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self::Mf { dimensions: thirty_two(), deviation: tenth() }
    }
}

impl ModelConfig {
    pub(super) fn check(&self) -> Result<(), Complaint> {
        let (name, sizes) = match self {
            Self::Mf { dimensions, .. } => ("mf", vec![("dimensions", *dimensions)]),
            Self::Ncf { dimensions, hidden } => ("ncf", vec![("dimensions", *dimensions), ("hidden", *hidden)]),
            Self::ProxyNcf { dimensions, hidden, .. } => {
                ("proxy-ncf", vec![("dimensions", *dimensions), ("hidden", *hidden)])
            }
            Self::Pfedrec { dimensions } => ("pfedrec", vec![("dimensions", *dimensions)]),
            Self::Fedpergnn { dimensions } => ("fedpergnn", vec![("dimensions", *dimensions)]),
            Self::Gpfedrec { dimensions, hidden, .. } => {
                ("gpfedrec", vec![("dimensions", *dimensions), ("hidden", *hidden)])
            }
            Self::Dmrl(dmrl) => return dmrl.check().map_err(|complaint| complaint.below("dmrl")),
        };
        for (key, found) in sizes {
            if !(1..=4_096).contains(&found) {
                let message = format!("found {found}; expected from 1 to 4096");
                return Err(Complaint::new(key, message).below(name));
            }
        }
        match self {
            Self::Mf { deviation, .. } if !(deviation.is_finite() && *deviation > 0.0) => {
                Err(Complaint::new("mf.deviation", format!("found {deviation}; expected a number above 0")))
            }
            Self::Gpfedrec { reg, .. } if !(reg.is_finite() && *reg >= 0.0) => {
                Err(Complaint::new("gpfedrec.reg", format!("found {reg}; expected a number of at least 0")))
            }
            _ => Ok(()),
        }
    }

    /// Length of a row, and what makes scores of rows; none of `dmrl`.
    pub(super) fn rows(&self) -> Option<(usize, Kind)> {
        let network = |dimensions, hidden, proxy| (dimensions, Kind::Network(Shape { dimensions, hidden, proxy }));
        Some(match *self {
            Self::Mf { dimensions, deviation } => (dimensions, Kind::Products { deviation }),
            Self::Ncf { dimensions, hidden } => network(dimensions, hidden, None),
            Self::ProxyNcf { dimensions, hidden, proxy } => {
                let proxy = match proxy {
                    ProxyConfig::Pairwise => Proxy::Pairwise,
                    ProxyConfig::Positive => Proxy::Positive,
                };
                network(dimensions, hidden, Some(proxy))
            }
            Self::Pfedrec { dimensions } => (dimensions, Kind::Private),
            Self::Fedpergnn { dimensions } => (dimensions, Kind::Neighbours),
            Self::Gpfedrec { dimensions, hidden, reg } => {
                let shape = Shape { dimensions, hidden, proxy: None };
                (dimensions, Kind::Guided { shape, pull: reg as f32 })
            }
            Self::Dmrl(_) => return None,
        })
    }
}
