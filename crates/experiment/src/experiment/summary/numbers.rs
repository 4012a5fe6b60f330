//! The numbers of a run that are compared.

use super::super::watch::{CONVERGENCE, Converged};
use super::RunSummary;
use std::collections::BTreeMap;

/// The last client's share of the nodes of all clients before it, where clients have graphs.
pub const PREFIX_INTERSECTION: &str = "graph.prefix_intersection";

impl RunSummary {
    /// Every number of the run that is compared between policies, by name.
    pub fn numbers(&self) -> BTreeMap<String, f64> {
        let mut numbers = BTreeMap::from([
            ("virtual_time_s".to_owned(), self.virtual_time_s),
            ("rounds".to_owned(), f64::from(self.rounds)),
            ("compute_s".to_owned(), self.compute_s),
            ("probe_compute_s".to_owned(), self.probe_compute_s),
            ("wasted_compute_s".to_owned(), self.wasted_compute_s),
            ("down_bytes".to_owned(), self.traffic.down_bytes as f64),
            ("up_bytes".to_owned(), self.traffic.up_bytes as f64),
            ("unique_clients".to_owned(), self.unique_clients as f64),
            ("jain".to_owned(), self.jain),
            ("gini".to_owned(), self.gini),
            ("wasted_down_bytes".to_owned(), self.wasted_down_bytes as f64),
            ("wasted_up_bytes".to_owned(), self.wasted_up_bytes as f64),
            ("dropout_share".to_owned(), self.outcomes.dropout_share()),
        ]);
        if let Some(drawn) = self.drawn {
            numbers.insert("exact_jobs".to_owned(), self.dispatched.saturating_sub(drawn) as f64);
            numbers.insert("drawn_jobs".to_owned(), drawn as f64);
        }
        if let Some(asked) = &self.asked {
            numbers.extend(asked.numbers(self.unique_clients, self.clients));
        }
        if let Some(traffic) = self.edge_traffic {
            numbers.insert("edge_down_bytes".to_owned(), traffic.down_bytes as f64);
            numbers.insert("edge_up_bytes".to_owned(), traffic.up_bytes as f64);
        }
        for (name, value) in self.regret.entries() {
            if let Some(value) = value {
                numbers.insert(format!("regret.{name}"), value);
            }
        }
        for (name, value) in &self.final_metrics {
            numbers.insert(format!("final.{name}"), *value);
        }
        for (name, value) in &self.best {
            numbers.insert(format!("best.{name}"), *value);
        }
        for (bytes, metrics) in &self.at_bytes {
            numbers.extend(metrics.iter().map(|(name, value)| (format!("at_bytes.{bytes}.{name}"), *value)));
        }
        let shares = self.graph.as_ref().and_then(|graph| graph["prefix_intersection"].as_array());
        if let Some(share) = shares.and_then(|shares| shares.last()?.as_f64()) {
            numbers.insert(PREFIX_INTERSECTION.to_owned(), share);
        }
        for reached in &self.reached {
            let name = reached.name();
            if let (Some(round), Some(time_s)) = (reached.round, reached.time_s) {
                numbers.insert(format!("time_to.{name}"), time_s);
                numbers.insert(format!("rounds_to.{name}"), f64::from(round));
            }
            if let Some(bytes) = reached.bytes() {
                numbers.insert(format!("bytes_to.{name}"), bytes as f64);
            }
            numbers.insert(format!("reached.{name}"), if reached.round.is_some() { 1.0 } else { 0.0 });
        }
        if let Some(converged) = &self.converged {
            numbers.insert(format!("reached.{CONVERGENCE}"), if converged.is_some() { 1.0 } else { 0.0 });
            numbers.extend(converged.iter().flat_map(Converged::numbers));
        }
        numbers
    }
}
