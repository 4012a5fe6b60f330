//! The numbers of a run that are compared.

use super::super::watch::{CONVERGENCE, Converged};
use super::{EnergySummary, RunSummary};
use std::collections::{BTreeMap, BTreeSet};

/// The last client's share of the nodes of all clients before it, where clients have graphs.
pub const PREFIX_INTERSECTION: &str = "graph.prefix_intersection";

impl RunSummary {
    /// Every number of the run that is compared between policies, by name.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let mut numbers = BTreeMap::new();
        self.each_number(&mut |parts, value| {
            numbers.insert(parts.concat(), value);
        });
        numbers
    }

    /// One of [`Self::numbers`].
    pub fn number(&self, name: &str) -> Option<f64> {
        let mut found = None;
        self.each_number(&mut |parts, value| {
            let rest = parts.iter().try_fold(name, |rest, part| rest.strip_prefix(part));
            if rest == Some("") {
                found = Some(value);
            }
        });
        found
    }

    /// Adds the names of [`Self::numbers`]. Of a hundred thousand runs nearly all have those of the first.
    pub fn add_names(&self, names: &mut BTreeSet<String>) {
        let mut name = String::new();
        self.each_number(&mut |parts, _| {
            name.clear();
            name.extend(parts.iter().copied());
            if !names.contains(&name) {
                names.insert(name.clone());
            }
        });
    }

    /// Calls a function with every number and its name in parts, of two of the same name with the one that counts last.
    fn each_number(&self, tell: &mut dyn FnMut(&[&str], f64)) {
        let plain = [
            ("virtual_time_s", self.virtual_time_s),
            ("rounds", f64::from(self.rounds)),
            ("compute_s", self.compute_s),
            ("probe_compute_s", self.probe_compute_s),
            ("wasted_compute_s", self.wasted_compute_s),
            ("down_bytes", self.traffic.down_bytes as f64),
            ("up_bytes", self.traffic.up_bytes as f64),
            ("unique_clients", self.unique_clients as f64),
            ("jain", self.jain),
            ("gini", self.gini),
            ("wasted_down_bytes", self.wasted_down_bytes as f64),
            ("wasted_up_bytes", self.wasted_up_bytes as f64),
            ("dropout_share", self.outcomes.dropout_share()),
        ];
        plain.into_iter().for_each(|(name, value)| tell(&[name], value));
        if let Some(drawn) = self.drawn {
            tell(&["exact_jobs"], self.dispatched.saturating_sub(drawn) as f64);
            tell(&["drawn_jobs"], drawn as f64);
        }
        if let Some(asked) = &self.asked {
            let numbers = asked.numbers(self.unique_clients, self.clients);
            numbers.into_iter().for_each(|(name, value)| tell(&[name], value));
        }
        if let Some(traffic) = self.edge_traffic {
            tell(&["edge_down_bytes"], traffic.down_bytes as f64);
            tell(&["edge_up_bytes"], traffic.up_bytes as f64);
        }
        let energy = self.energy.iter().flat_map(EnergySummary::numbers);
        energy.for_each(|(name, value)| tell(&[name], value));
        for (name, value) in self.regret.entries() {
            if let Some(value) = value {
                tell(&["regret.", name], value);
            }
        }
        self.final_metrics.iter().for_each(|(name, value)| tell(&["final.", name], *value));
        self.best.iter().for_each(|(name, value)| tell(&["best.", name], *value));
        for (bytes, metrics) in &self.at_bytes {
            let bytes = bytes.to_string();
            metrics.iter().for_each(|(name, value)| tell(&["at_bytes.", &bytes, ".", name], *value));
        }
        let shares = self.graph.as_ref().and_then(|graph| graph["prefix_intersection"].as_array());
        if let Some(share) = shares.and_then(|shares| shares.last()?.as_f64()) {
            tell(&[PREFIX_INTERSECTION], share);
        }
        for reached in &self.reached {
            let name = reached.name();
            if let (Some(round), Some(time_s)) = (reached.round, reached.time_s) {
                tell(&["time_to.", &name], time_s);
                tell(&["rounds_to.", &name], f64::from(round));
            }
            if let Some(bytes) = reached.bytes() {
                tell(&["bytes_to.", &name], bytes as f64);
            }
            if let Some(energy_j) = reached.energy_j {
                tell(&["joules_to.", &name], energy_j);
            }
            tell(&["reached.", &name], if reached.round.is_some() { 1.0 } else { 0.0 });
        }
        if let Some(converged) = &self.converged {
            tell(&["reached.", CONVERGENCE], if converged.is_some() { 1.0 } else { 0.0 });
            converged.iter().flat_map(Converged::numbers).for_each(|(name, value)| tell(&[&name], value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_that_of_all() {
        let run: RunSummary = serde_json::from_value(serde_json::json!({
            "arm": "a", "seed": 1, "point": 0, "rounds": 3, "virtual_time_s": 1.5, "ended": "rounds",
            "digest": { "timeline": "", "model": "" }, "final": { "test_loss": 0.5, "test_loss_last": 0.25 },
            "at_bytes": { "10": { "test_loss": 2.0 }, "1": { "0.test_loss": 3.0 } },
            "regret": { "mean": 4.0 }, "traffic": { "down_bytes": 1, "up_bytes": 0 }, "compute_s": 7.0,
            "wasted_compute_s": 0.0, "dispatched": 1, "arrived": 1, "unique_clients": 1, "jain": 1.0
        }))
        .unwrap();
        let numbers = run.numbers();
        assert_eq!(numbers["at_bytes.10.test_loss"], 2.0);
        assert_eq!((numbers["regret.mean"], numbers["final.test_loss"]), (4.0, 0.5));
        for (name, value) in &numbers {
            assert_eq!(run.number(name), Some(*value), "{name}");
        }
        assert_eq!(
            ["", "final", "final.", "final.test_los", "final.test_loss_", "loss"].map(|name| run.number(name)),
            [None; 6]
        );
        let mut names = BTreeSet::new();
        run.add_names(&mut names);
        assert!(names.iter().eq(numbers.keys()));
    }
}
