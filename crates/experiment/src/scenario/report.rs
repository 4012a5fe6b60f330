//! `[report]`: the policy that reports compare the others with, the quantity that counts, and the table and the picture
//! that a reader sees first.

use super::Arm;
use super::names::{nearest, unknown_name};
use super::read::ScenarioError;
use super::tree::Node;
use fedgenie_core::config::Complaint;
use fedgenie_core::text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `[report]`
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportConfig {
    /// Label of the policy that the others are compared with; the first one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The quantity by which policies or settings are ranked: a key of `values` in `summary.json`, such as
    /// `"time_to.test_auc >= 0.82"`. Without it the time to the hardest target that is often reached, or else the
    /// metric; where bytes ended runs, the bytes to that target, or else the best value of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<String>,
    /// The columns of the headline table: keys of `values` in `summary.json`, such as `"final.test_accuracy"` or
    /// `"bytes_to.test_rmse <= 1"`; the main quantities without it. The table of a run in the terminal has those of
    /// metrics beside its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Label of the policy to whose values ratios are added to the headline table; no ratios without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_to: Option<String>,
    /// The horizontal axis with which pictures of metrics are shown first: traffic without it if that is limited, else
    /// virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Over>,
}

/// A horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Rounds.
    Rounds,
    /// Virtual time.
    Time,
    /// Traffic of clients, both ways together.
    Traffic,
    /// Energy that jobs drew from batteries.
    Energy,
}

impl ReportConfig {
    /// The section of a resolved scenario.
    pub fn of(scenario: &toml::Table) -> Self {
        scenario.get("report").and_then(|section| section.clone().try_into().ok()).unwrap_or_default()
    }

    /// Whether the section is empty.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the reference and the policy of ratios are policies.
    pub(super) fn check(&self, arms: &[Arm], tree: &Node) -> Result<(), ScenarioError> {
        let labels: Vec<&str> = arms.iter().map(|arm| arm.label.as_str()).collect();
        let named = [("report.reference", &self.reference), ("report.ratio_to", &self.ratio_to)];
        let check = |(path, name): (&str, &Option<String>)| match name {
            Some(name) => check_reference(name, &labels).map_err(|message| ScenarioError::new(tree, path, message)),
            None => Ok(()),
        };
        named.into_iter().try_for_each(check)
    }

    /// Whether the aim and the columns are numbers of runs.
    ///
    /// # Errors
    /// A complaint that proposes the nearest one.
    pub(super) fn check_numbers(&self, known: &BTreeSet<String>) -> Result<(), Complaint> {
        let named = self.aim.iter().map(|key| ("report.aim", key));
        let mut named = named.chain(self.columns.iter().map(|key| ("report.columns", key)));
        let wrong = named.find(|(_, key)| !known.contains(*key));
        wrong.map_or(Ok(()), |(path, key)| Err(Complaint::new(path, unknown_number(key, known))))
    }
}

/// The sentence for a key that is no number of runs: it proposes the nearest one, and lists those of its kind.
fn unknown_number(key: &str, known: &BTreeSet<String>) -> String {
    /// More keys nobody reads.
    const MOST: usize = 12;
    let proposal = nearest(key, known.iter().map(String::as_str));
    let proposal = proposal.map_or_else(String::new, |near| format!("did you mean {near:?}? "));
    fn kind(key: &str) -> Option<&str> {
        key.split_once('.').map(|(kind, _)| kind)
    }
    let alike: Vec<&str> = known.iter().map(String::as_str).filter(|other| kind(other) == kind(key)).collect();
    // Of a kind that does not exist, the kinds are listed.
    let kinds = || -> BTreeSet<String> { known.iter().filter_map(|key| Some(format!("{}.…", kind(key)?))).collect() };
    let (listed, rest) = match alike.len() {
        0 => (kinds().into_iter().collect::<Vec<_>>().join(", "), 0),
        count => (alike[..count.min(MOST)].join(", "), count.saturating_sub(MOST)),
    };
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("found {}, which is no number of these runs; {proposal}known: {listed}{more}", text::quoted(key))
}

/// Whether a name is that of a policy.
///
/// # Errors
/// A sentence that proposes the nearest one.
pub fn check_reference(name: &str, labels: &[&str]) -> Result<(), String> {
    if labels.contains(&name) { Ok(()) } else { Err(unknown_name("policy", name, labels)) }
}
