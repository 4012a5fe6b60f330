//! Values of settings that a scenario leaves open, or that did not hold for the whole run.

use super::{Experiment, RunId};
use fedgenie_simulator::protocol::Rule;
use fedgenie_simulator::run::Run;
use fedgenie_simulator::world::World;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

impl Experiment {
    /// Settings that a run's world, protocol and policies worked out, and the cohort that a budget left, by path: those
    /// that the resolved scenario omits or states otherwise.
    pub(super) fn effective(&self, id: &RunId, world: &World, run: &Run<'_>) -> BTreeMap<String, Value> {
        let scenario = &self.points[id.point].1;
        let arm = &scenario.arms[id.arm];
        let sections = scenario.sections_of(id.arm);
        let (protocol, policy) = (&sections.protocol, format!("policy.{}", arm.label));
        let mut found: BTreeMap<String, Value> = BTreeMap::new();
        found.extend(world.effective().into_iter().map(|(path, value)| (path.to_owned(), value)));
        let of_protocol = protocol.effective(&world.protocol.rule);
        let at = |key: &str| format!("protocol.{}.{key}", protocol.kind());
        found.extend(of_protocol.into_iter().map(|(key, value)| (at(key), value)));
        found.extend(protocol.cohort_key().and_then(|key| Some((at(key), lowered(world, run)?))));
        found.extend(self.taken_over(id));
        found.extend(run.effective().into_iter().map(|(key, value)| (format!("{policy}.{key}"), value)));
        if let Rule::Hierarchical(rule) = &world.protocol.rule
            && let Some(policy) = &rule.cloud
        {
            let at = |key: &str| format!("protocol.hierarchical.cloud.policy.{}.{key}", policy.kind());
            found.extend(run.effective_in_cloud().into_iter().map(|(key, value)| (at(&key), value)));
        }
        let written = self.written(id);
        found.retain(|path, value| !is_said(&written, path, value));
        found
    }

    /// Parameters of the policy that come from elsewhere in the scenario, where a sweep keeps them from being written
    /// out.
    fn taken_over(&self, id: &RunId) -> BTreeMap<String, Value> {
        let arm = &self.points[id.point].1.arms[id.arm];
        let parameters = arm.policy.config().map(|config| json!(config)).unwrap_or_default();
        let mut found = BTreeMap::new();
        for parameters in parameters.as_object().into_iter().flat_map(Map::values) {
            flatten(format!("policy.{}", arm.label), parameters, &mut found);
        }
        found
    }

    /// The resolved scenario of a run: its sections at the run's point with its policy's overrides, and the policy as
    /// written.
    fn written(&self, id: &RunId) -> BTreeMap<String, Value> {
        let (point, scenario) = &self.points[id.point];
        let label = &scenario.arms[id.arm].label;
        let mut found = BTreeMap::new();
        flatten(String::new(), &json!(scenario.sections_of(id.arm)), &mut found);
        let resolved: toml::Table = self.resolved.parse().unwrap_or_default();
        if let Some(policy) = resolved.get("policy").and_then(|policies| policies.get(label)) {
            flatten(format!("policy.{label}"), &json!(policy), &mut found);
        }
        for (path, value) in &point.settings {
            let value =
                format!("value = {value}").parse::<toml::Table>().ok().and_then(|table| table.get("value").cloned());
            flatten(path.clone(), &json!(value), &mut found);
        }
        found
    }
}

/// The clients of a round, where a budget has lowered them.
fn lowered(world: &World, run: &Run<'_>) -> Option<Value> {
    let (offers, ask) = (run.offers(), world.protocol.rule.ask() as u64);
    let is_lowered = offers.selections > 0 && offers.least < ask;
    let mean = offers.cohorts as f64 / offers.selections as f64;
    is_lowered.then(|| json!({ "least": offers.least, "mean": mean }))
}

/// Every value by its path; null is left out.
fn flatten(path: String, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(table) => {
            for (key, value) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(path, value, found);
            }
        }
        value => drop(found.insert(path, value.clone())),
    }
}

/// Whether a scenario has the same value; whole numbers and others may be equal.
fn is_said(written: &BTreeMap<String, Value>, path: &str, value: &Value) -> bool {
    written.get(path).is_some_and(|known| known == value || known.is_number() && known.as_f64() == value.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_compared_as_numbers_and_by_path() {
        let mut written = BTreeMap::new();
        flatten(String::new(), &json!({ "a": { "b": 2.0, "c": null }, "d": "1 s" }), &mut written);
        assert!(is_said(&written, "a.b", &json!(2)) && is_said(&written, "d", &json!("1 s")));
        assert!(!is_said(&written, "a.c", &json!(2)) && !is_said(&written, "a.b", &json!(3)));
    }
}
