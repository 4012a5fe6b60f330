//! `[aggregation]`: how updates are weighted, and which server optimizer steps along their mean.

use super::ServerConfig;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[aggregation]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AggregationConfig {
    /// How much each update counts; by data size unless an algorithm says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighting: Option<Weighting>,
    /// The server's step along the mean change.
    #[serde(default)]
    pub server: ServerConfig,
    /// The divisor of a table row's change, for tasks whose updates have rows.
    #[serde(default)]
    pub rows: RowDivisor,
    /// Whether the changes of updates that a policy gave weights are divided by the sum of these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub normalise: bool,
}

/// The divisor of a row's weighted change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowDivisor {
    /// By the weights of all contributions: a client that did not send the row has not changed it.
    #[default]
    Selected,
    /// By the weights of the contributions with the row.
    Touched,
}

/// How much each update counts, before its age is taken into account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// By data size, among the contributing clients.
    #[default]
    DataSize,
    /// All the same.
    Uniform,
    /// By data size, among all clients: the share of the others stays with the old model.
    /// Under `hierarchical` edge servers average by data size; the cloud alone keeps a part of the old model.
    TotalSize,
}

impl Weighting {
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataSize => "data-size",
            Self::Uniform => "uniform",
            Self::TotalSize => "total-size",
        }
    }

    /// The weight of an update by so many examples, before its age is taken into account.
    pub fn of(self, examples: usize) -> f64 {
        match self {
            Self::DataSize | Self::TotalSize => examples as f64,
            Self::Uniform => f64::from(u8::from(examples > 0)),
        }
    }
}

impl AggregationConfig {
    /// How much each update counts.
    pub fn weighting(&self) -> Weighting {
        self.weighting.unwrap_or_default()
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting of the server out of its range, by its key below [`ServerConfig::kind`].
    pub fn check(&self) -> Result<(), Complaint> {
        self.server.check()
    }
}
