//! A world's values for settings that a scenario leaves open.

use super::World;
use fedgenie_core::units::{Amount, Bytes, Duration};
use serde_json::{Value, json};

impl World {
    /// Paths from the scenario's root, and values as a scenario would have them; given or worked out.
    pub fn effective(&self) -> Vec<(&'static str, Value)> {
        let mut found = vec![("population.clients", self.population.len().into())];
        if let Some(bytes) = self.budget.bytes {
            found.push(("budget.traffic", json!(Amount::<Bytes>::new(bytes as f64))));
        }
        if let Some(clusters) = &self.protocol.clusters {
            found.push(("clusters.count", clusters.count.into()));
            if let Some(model) = clusters.model {
                found.push(("clusters.model", json!(model)));
                found.push(("clusters.l2", clusters.l2(model).into()));
            }
        }
        // Without a price of time its unit does not matter.
        if let Some(hindsight) = self.hindsight.as_ref().filter(|hindsight| hindsight.kappa != 0.0) {
            found.push(("regret.t_semi", json!(Duration(hindsight.t_semi))));
        }
        found
    }
}
