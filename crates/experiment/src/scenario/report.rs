//! `[report]`: the policy that reports compare the others with, and the quantity that counts.

use super::Arm;
use super::names::unknown_name;
use super::read::ScenarioError;
use super::tree::Node;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[report]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportConfig {
    /// Label of the policy that the others are compared with; the first one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The quantity by which policies or settings are ranked: a key of `values` in `summary.json`, such as
    /// `"time_to.test_auc >= 0.82"`. Without it the time to the hardest target that is often reached, or else the
    /// metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<String>,
}

impl ReportConfig {
    /// Whether the section is empty.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the reference is one of the policies.
    pub(super) fn check(&self, arms: &[Arm], tree: &Node) -> Result<(), ScenarioError> {
        let Some(name) = &self.reference else { return Ok(()) };
        let labels: Vec<&str> = arms.iter().map(|arm| arm.label.as_str()).collect();
        check_reference(name, &labels).map_err(|message| ScenarioError::new(tree, "report.reference", message))
    }
}

/// Whether a name is that of a policy.
///
/// # Errors
/// A sentence that proposes the nearest one.
pub fn check_reference(name: &str, labels: &[&str]) -> Result<(), String> {
    if labels.contains(&name) { Ok(()) } else { Err(unknown_name("policy", name, labels)) }
}
