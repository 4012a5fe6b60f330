//! The numbers of a run as columns: type, unit and meaning of each.

use super::column::{Column, Kind};
use super::names::{Names, identifier};
use fedgenie_core::metric::{Better, Metric, Place};
use fedgenie_experiment::experiment::{ACTIVE_CLUSTERS, CONVERGENCE, PREFIX_INTERSECTION, REASSIGNMENTS};
use std::collections::{BTreeMap, BTreeSet};

/// The metrics of all runs, by name.
#[derive(Debug, Default)]
pub(super) struct Metrics(BTreeMap<String, Metric>);

impl Metrics {
    pub fn new<'a>(metrics: impl Iterator<Item = &'a Metric>) -> Self {
        Self(metrics.map(|metric| (metric.id.to_string(), metric.clone())).collect())
    }

    /// What a metric is: its type, unit, and its place and direction in words.
    pub fn about(&self, name: &str) -> (Kind, &'static str, String) {
        match name {
            ACTIVE_CLUSTERS => {
                return (Kind::Integer, "clusters", "clusters that an edge server belongs to".to_owned());
            }
            REASSIGNMENTS => return (Kind::Integer, "", "moves of edge servers to another cluster so far".to_owned()),
            _ => {}
        }
        let last = name.strip_suffix("_last").filter(|_| !self.0.contains_key(name));
        let over = if last.is_some() { ", mean over the last evaluated rounds" } else { "" };
        let metric = self.0.get(last.unwrap_or(name));
        let place = match metric.map(|metric| metric.id.place) {
            Some(Place::Test) => " on test data",
            Some(Place::Valid) => " on validation data",
            Some(Place::Clients) => ", a statistic over clients, each on its own data",
            Some(Place::Servers) => ", a statistic over edge servers",
            Some(Place::Edges) => ", a statistic over edge servers before the cloud combines their models",
            Some(Place::Model) | None => "",
        };
        let better = match metric.map(|metric| metric.better) {
            Some(Better::Lower) => "; less is better",
            Some(Better::Higher) => "; more is better",
            None => "",
        };
        (Kind::Number, "", format!("{name}{place}{over}{better}"))
    }
}

/// The meaning of a regret by its meter.
pub(super) fn of_regret(meter: &str) -> String {
    format!("cumulative regret by the meter {meter}; less is better")
}

/// Type, unit and meaning of a number, by its key in `values` of `summary.json`; `None` if the key is unknown.
fn about(key: &str, metrics: &Metrics) -> Option<(Kind, &'static str, String)> {
    use Kind::{Integer, Number};
    let told = |kind, unit, meaning: &str| Some((kind, unit, meaning.to_owned()));
    match key {
        "virtual_time_s" => return told(Number, "s", "virtual time at the end"),
        "rounds" => return told(Integer, "rounds", "rounds played"),
        "compute_s" => return told(Number, "s", "computing in jobs, all clients together"),
        "probe_compute_s" => {
            return told(Number, "s", "computing for probes and charged evaluations, all clients together");
        }
        "wasted_compute_s" => return told(Number, "s", "the part of compute_s whose update was never used"),
        "down_bytes" => return told(Integer, "B", "bytes sent to clients"),
        "up_bytes" => return told(Integer, "B", "bytes sent by clients"),
        "wasted_down_bytes" => return told(Integer, "B", "the part of down_bytes whose update was never used"),
        "wasted_up_bytes" => return told(Integer, "B", "the part of up_bytes whose update was never used"),
        "edge_down_bytes" => return told(Integer, "B", "bytes from the cloud to edge servers"),
        "edge_up_bytes" => return told(Integer, "B", "bytes from edge servers to the cloud"),
        "unique_clients" => return told(Integer, "clients", "clients selected at least once"),
        "unique_share" => return told(Number, "", "unique_clients of all clients"),
        "jain" => return told(Number, "", "Jain's index of the clients' numbers of selections; 1 if all are equal"),
        "gini" => return told(Number, "", "Gini index of the clients' numbers of selections; 0 if all are equal"),
        "dropout_share" => return told(Number, "", "share of jobs whose client dropped out"),
        "exact_jobs" => return told(Integer, "jobs", "jobs as the log of population.recorded has them"),
        "drawn_jobs" => {
            return told(Integer, "jobs", "jobs drawn from their clients' own, which the log does not have");
        }
        "asked_mean" => return told(Number, "clients", "clients asked per selection, on average"),
        "arrived_mean" => {
            return told(Number, "updates", "updates that arrived in their round per selection, on average");
        }
        "possible_share" => return told(Number, "", "share of the intended cohort that could be asked"),
        PREFIX_INTERSECTION => {
            return told(Number, "", "the last client's share of the nodes of all clients before it");
        }
        "energy.idle_j" => return told(Number, "J", "drawn between jobs, all clients together"),
        "energy.receive_j" => return told(Number, "J", "drawn while downloading, all clients together"),
        "energy.compute_j" => return told(Number, "J", "drawn while computing, all clients together"),
        "energy.send_j" => return told(Number, "J", "drawn while uploading, all clients together"),
        "energy.charged_j" => return told(Number, "J", "what entered phones, all clients together"),
        "energy.wasted_j" => return told(Number, "J", "drawn by jobs whose update was never used"),
        "energy.emptied" => return told(Integer, "times", "how often the level of a battery came to 0"),
        _ => {}
    }
    let (what, of) = key.split_once('.')?;
    let until = if of == CONVERGENCE { "the run converged".to_owned() } else { format!("{of} was first seen") };
    match what {
        "final" => {
            let (kind, unit, meaning) = metrics.about(of);
            Some((kind, unit, format!("final model: {meaning}")))
        }
        "best" => Some((Number, "", format!("best value over evaluated rounds: {}", metrics.about(of).2))),
        "converged" => Some((Number, "", format!("in the round in which the run converged: {}", metrics.about(of).2))),
        "at_bytes" => {
            let (bytes, metric) = of.split_once('.')?;
            let meaning = metrics.about(metric).2;
            Some((Number, "", format!("last evaluation before clients had moved more than {bytes} bytes: {meaning}")))
        }
        "regret" => Some((Number, "reward", of_regret(of))),
        "time_to" => Some((Number, "s", format!("virtual time until {until}"))),
        "rounds_to" => Some((Integer, "rounds", format!("rounds until {until}"))),
        "bytes_to" => Some((Integer, "B", format!("bytes of clients, both ways, until {until}"))),
        "joules_to" => Some((Number, "J", format!("drawn by jobs from batteries until {until}"))),
        "compute_to" => Some((Number, "s", format!("computing of all clients until {until}"))),
        "probe_compute_to" => Some((Number, "s", format!("computing of all clients for probes until {until}"))),
        "reached" if of == CONVERGENCE => Some((Integer, "", "1 if the run converged, else 0".to_owned())),
        "reached" => Some((Integer, "", format!("1 if {of} was seen, else 0"))),
        _ => None,
    }
}

/// The columns of numbers, by their keys.
pub(super) fn columns(keys: BTreeSet<String>, metrics: &Metrics, names: &mut Names) -> Vec<Column> {
    let column = |key: String| {
        // Every key that runs have is known, as a test holds.
        let (kind, unit, meaning) = about(&key, metrics).unwrap_or((Kind::Number, "", key.clone()));
        let name = names.take(&[column_name(&key)]);
        Column { quantity: Some(key), ..Column::new(&name, kind, unit, meaning) }
    };
    keys.into_iter().map(column).collect()
}

/// The name of a number's column: that of the final model is `metric_…`.
pub fn column_name(key: &str) -> String {
    let metric = key.strip_prefix("final.").map(|metric| format!("metric.{metric}"));
    identifier(metric.as_deref().unwrap_or(key))
}

/// The column of a metric in tables of rounds.
pub(super) fn of_metric(name: &str, metrics: &Metrics, names: &mut Names) -> Column {
    let (kind, unit, meaning) = metrics.about(name);
    let name = names.take(&[identifier(&format!("metric.{name}"))]);
    Column::new(&name, kind, unit, format!("after the round: {meaning}"))
}

/// The unit of a number by its key.
pub(super) fn unit_of(key: &str, metrics: &Metrics) -> &'static str {
    about(key, metrics).map_or("", |(_, unit, _)| unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::record::Regret;
    use fedgenie_experiment::experiment::{Asked, Converged, EnergySummary, Reached, RunSummary, Traffic};
    use serde_json::json;

    /// A run with every number that runs can have.
    fn run() -> RunSummary {
        let reached =
            json!({ "metric": "test_loss", "at_most": 1.8, "round": 3, "time_s": 9.5, "down_bytes": 7, "up_bytes": 8 });
        let metrics = BTreeMap::from([("test_loss".to_owned(), 0.5)]);
        let run = json!({
            "arm": "a", "seed": 1, "point": 0, "rounds": 2, "virtual_time_s": 1.0, "digest": { "timeline": "", "model": "" },
            "final": {}, "regret": {}, "traffic": { "down_bytes": 1, "up_bytes": 2 }, "compute_s": 0.0,
            "wasted_compute_s": 0.0, "dispatched": 0, "arrived": 0, "unique_clients": 0, "jain": 1.0
        });
        let run: RunSummary = serde_json::from_value(run).unwrap();
        let one = Some(1.0);
        let (edge_traffic, at_bytes) = (Some(Traffic::default()), BTreeMap::from([(10, metrics.clone())]));
        let converged = Converged { metric: "test_loss".to_owned(), metrics: metrics.clone(), ..Converged::default() };
        let regret =
            Regret { mean: one, realised: one, expected: one, expected_exact: one, hindsight: one, assignment: one };
        let reached: Vec<Reached> = vec![serde_json::from_value(reached).unwrap()];
        let [active, moved] = [ACTIVE_CLUSTERS, REASSIGNMENTS].map(|name| (name.to_owned(), 2.0));
        let final_metrics = metrics.clone().into_iter().chain([active, moved]).collect();
        let (best, converged, asked) = (metrics, Some(Some(converged)), Some(Asked::default()));
        let energy = Some(EnergySummary::default());
        RunSummary { final_metrics, best, at_bytes, converged, regret, reached, edge_traffic, asked, energy, ..run }
    }

    #[test]
    fn every_number_of_a_run_has_a_meaning() {
        let keys: BTreeSet<String> = run().numbers().into_keys().collect();
        assert!(keys.len() > 40, "{keys:?}");
        for key in &keys {
            let found = about(key, &Metrics::default());
            assert!(found.is_some_and(|(_, _, meaning)| !meaning.is_empty()), "{key} has no meaning in quantities.rs");
        }
        let all = columns(keys.clone(), &Metrics::default(), &mut Names::default());
        assert_eq!(all.iter().map(|column| &column.name).collect::<BTreeSet<_>>().len(), keys.len());
        let find = |key: &str| all.iter().find(|column| column.quantity.as_deref() == Some(key)).unwrap();
        let bytes = find("bytes_to.test_loss <= 1.8");
        assert_eq!((&*bytes.name, bytes.kind, bytes.unit), ("bytes_to_test_loss_at_most_1_8", Kind::Integer, "B"));
        assert_eq!(find("final.active_clusters").kind, Kind::Integer);
        assert_eq!(find("at_bytes.10.test_loss").name, "at_bytes_10_test_loss");
    }

    #[test]
    fn metrics_say_where_they_are_measured_and_which_values_are_better() {
        let metric = json!({
            "name": "test_auc", "better": "higher", "range": [0.0, 1.0], "place": "test", "main": true
        });
        let metrics: Vec<Metric> = vec![serde_json::from_value(metric).unwrap()];
        let metrics = Metrics::new(metrics.iter());
        assert_eq!(metrics.about("test_auc").2, "test_auc on test data; more is better");
        let last = "test_auc_last on test data, mean over the last evaluated rounds; more is better";
        assert_eq!(metrics.about("test_auc_last").2, last);
        let column = of_metric("test_auc", &metrics, &mut Names::default());
        assert_eq!((&*column.name, column.kind), ("metric_test_auc", Kind::Number));
    }
}
