//! The numbers that runs will have, as far as a scenario tells: `[report]` may name these.

use super::{ACTIVE_CLUSTERS, CONVERGENCE, PREFIX_INTERSECTION, REASSIGNMENTS};
use crate::scenario::{Scenario, TargetConfig};
use fedgenie_core::metric::{Metric, Place};
use fedgenie_core::record::Regret;
use std::collections::BTreeSet;

/// Numbers whose names do not depend on the scenario; not every run has all of them.
const PLAIN: [&str; 29] = [
    "virtual_time_s",
    "rounds",
    "compute_s",
    "probe_compute_s",
    "wasted_compute_s",
    "down_bytes",
    "up_bytes",
    "edge_down_bytes",
    "edge_up_bytes",
    "unique_clients",
    "jain",
    "gini",
    "wasted_down_bytes",
    "wasted_up_bytes",
    "dropout_share",
    "exact_jobs",
    "drawn_jobs",
    "asked_mean",
    "arrived_mean",
    "possible_share",
    "unique_share",
    PREFIX_INTERSECTION,
    "energy.idle_j",
    "energy.receive_j",
    "energy.compute_j",
    "energy.send_j",
    "energy.charged_j",
    "energy.wasted_j",
    "energy.emptied",
];

/// Spending until a target.
const UNTIL: [&str; 7] = ["time_to", "rounds_to", "bytes_to", "compute_to", "probe_compute_to", "joules_to", "reached"];

/// The keys of `values` that runs of some policy of a scenario can have.
pub(super) fn numbers(scenario: &Scenario) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = PLAIN.iter().map(|&name| name.to_owned()).collect();
    for arm in 0..scenario.arms.len() {
        let sections = scenario.sections_of(arm);
        let evaluate = &sections.evaluate;
        let plan = scenario.plan_of(arm);
        let measured = sections.metrics(&plan.declared_measures());
        // Those of edge servers may be of the last rounds.
        let of_servers = measured.iter().filter(|metric| metric.id.over.is_some()).map(|metric| metric.id.last());
        let is_tuned = |metric: &&Metric| evaluate.fine_tune.is_some() && metric.id.place == Place::Clients;
        let tuned = measured.iter().filter(is_tuned).map(|metric| metric.id.tuned());
        let of_clusters = [ACTIVE_CLUSTERS, REASSIGNMENTS].into_iter().filter(|_| plan.clusters.is_some());
        let metrics: BTreeSet<String> = measured
            .iter()
            .map(|metric| metric.id)
            .chain(of_servers)
            .chain(tuned)
            .map(|id| id.to_string())
            .chain(of_clusters.map(str::to_owned))
            .collect();
        let converges = evaluate.converged.is_some();
        let at_bytes = evaluate.at_bytes().into_iter().map(|bytes| format!("at_bytes.{bytes}"));
        let of_metrics = ["final", "best"].map(str::to_owned).into_iter().chain(at_bytes);
        for what in of_metrics.chain(converges.then(|| "converged".to_owned())) {
            all.extend(metrics.iter().map(|metric| format!("{what}.{metric}")));
        }
        let targets = evaluate.targets.iter().map(TargetConfig::name).chain(converges.then(|| CONVERGENCE.to_owned()));
        all.extend(targets.flat_map(|target| UNTIL.map(|what| format!("{what}.{target}"))));
        if sections.regret.is_some() {
            all.extend(Regret::default().entries().map(|(name, _)| format!("regret.{name}")));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Asked, EnergySummary, RunSummary, Traffic};
    use super::*;

    /// Every number of a run without metrics is known by its name alone.
    #[test]
    fn plain_numbers_are_those_of_runs() {
        let mut run: RunSummary = serde_json::from_value(serde_json::json!({
            "arm": "a", "seed": 1, "point": 0, "rounds": 1, "virtual_time_s": 1.0, "ended": "rounds",
            "digest": { "timeline": "", "model": "" }, "final": {}, "regret": {},
            "traffic": { "down_bytes": 1, "up_bytes": 0 }, "compute_s": 7.0, "wasted_compute_s": 0.0,
            "dispatched": 1, "arrived": 1, "unique_clients": 1, "jain": 1.0, "reached": []
        }))
        .unwrap();
        run.asked = Some(Asked::default());
        run.drawn = Some(0);
        run.energy = Some(EnergySummary::default());
        run.edge_traffic = Some(Traffic { down_bytes: 1, up_bytes: 1 });
        run.graph = Some(serde_json::json!({ "prefix_intersection": [0.5] }));
        let found: Vec<String> = run.numbers().into_keys().collect();
        let known: BTreeSet<&str> = PLAIN.into();
        assert_eq!(found, known.into_iter().collect::<Vec<_>>());
    }
}
