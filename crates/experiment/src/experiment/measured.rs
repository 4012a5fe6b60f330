//! Metrics of runs on their way into files, and numbers of clusters beside them.

use fedgenie_core::metric::{MetricId, Place};
use fedgenie_learning::metric::loss::LOSS;
use fedgenie_simulator::run::Run;
use std::collections::BTreeMap;

/// Metrics by name.
pub type Named = BTreeMap<String, f64>;

/// Metrics by their names.
pub(super) fn by_name(metrics: impl IntoIterator<Item = (MetricId, f64)>) -> Named {
    metrics.into_iter().map(|(id, value)| (id.to_string(), value)).collect()
}

/// Whether a metric of a result folder is of the loss that training lowers.
pub fn is_loss(id: MetricId) -> bool {
    id.measure == LOSS.measure.name
}

/// How many clusters an edge server belongs to.
pub const ACTIVE_CLUSTERS: &str = "active_clusters";
/// How many edge servers were moved to another cluster so far, each time counted.
pub const REASSIGNMENTS: &str = "reassignments";

/// Numbers of the clusters after a run's last round, where there are cluster models.
pub(super) fn cluster_numbers(run: &Run<'_>) -> impl Iterator<Item = (MetricId, f64)> {
    let numbers = run
        .clusters()
        .map(|clusters| [(ACTIVE_CLUSTERS, clusters.active() as f64), (REASSIGNMENTS, clusters.reassignments as f64)]);
    numbers.into_iter().flatten().map(|(name, value)| (MetricId::new(Place::Model, name), value))
}
