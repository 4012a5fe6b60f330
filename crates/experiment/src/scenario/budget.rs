//! `[budget]`: the traffic that a run may cost.

use fedgenie_core::config::Complaint;
use fedgenie_core::units::{Amount, Bytes};
use fedgenie_simulator::world::{BudgetPlan, Most};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[budget]`: traffic of clients that a run never exceeds. Before each selection the cohort is lowered to the number
/// of clients that the rest pays for, a job at its full price, and the run ends when that is fewer than `least`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    /// Most bytes of clients, both ways together; probes count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Amount<Bytes>>,
    /// Instead of `traffic`: a multiple of the bytes that the first round moves if every client takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_rounds: Option<f64>,
    /// Selections, repeated ones counted, before which no target or plateau ends the run; a run that ends with fewer
    /// has a warning.
    #[serde(default)]
    pub selections: u64,
    /// Fewest clients of a round, where so many can be chosen.
    #[serde(default = "one")]
    pub least: usize,
}

const fn one() -> usize {
    1
}

fn complain<T>(key: &str, message: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint::new(key, message))
}

impl BudgetConfig {
    /// Whether it ends a run.
    pub const fn is_bound(&self) -> bool {
        self.traffic.is_some() || self.full_rounds.is_some()
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below `budget`.
    pub(super) fn check(&self) -> Result<(), Complaint> {
        if self.traffic.is_some() && self.full_rounds.is_some() {
            return complain("full_rounds", "give traffic or full_rounds, not both");
        }
        if let Some(traffic) = self.traffic
            && traffic.0 < 1.0
        {
            return complain("traffic", format!("found {} B; expected at least 1 B", traffic.0));
        }
        if let Some(rounds) = self.full_rounds
            && !(rounds.is_finite() && rounds > 0.0)
        {
            return complain("full_rounds", format!("found {rounds}; expected a positive number"));
        }
        if self.least == 0 {
            return complain("least", "found 0; expected a number of clients of at least 1");
        }
        Ok(())
    }

    /// The budget of a world.
    pub(super) fn plan(&self) -> BudgetPlan {
        let traffic = self.traffic.map(|traffic| Most::Traffic(traffic.0 as u64));
        BudgetPlan { most: traffic.or(self.full_rounds.map(Most::FullRounds)), least: self.least }
    }
}
