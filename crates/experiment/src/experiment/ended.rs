//! The end of a run, and the results of its evaluated rounds: the best of each metric, and metrics within given
//! traffic.

use super::measured::{Named, by_name};
use fedgenie_core::metric::{Better, Metric, MetricId};
use fedgenie_core::state::{State, Stateful};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The reason for the end of a run; of several at once, the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Its number of rounds.
    Rounds,
    /// Its virtual time.
    VirtualTime,
    /// A metric that reached its value.
    Target,
    /// A metric that no longer improved.
    Plateau,
    /// The traffic of `[stop]`.
    Traffic,
    /// A budget that pays for no further round.
    Budget,
}

impl Ended {
    /// Whether bytes were spent, as many as others may spend.
    pub const fn is_of_bytes(self) -> bool {
        matches!(self, Self::Traffic | Self::Budget)
    }
}

/// Results of evaluated rounds.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Evaluated {
    /// The task's metrics, and which way each improves.
    #[state(skip = "from the task")]
    better: BTreeMap<MetricId, Better>,
    /// The best finite value of each so far.
    best: BTreeMap<MetricId, f64>,
    /// Bytes, and the metrics of the last evaluated round by whose end clients had moved at most these.
    #[state(with = exchange_metrics)]
    at_bytes: Vec<(u64, Option<Named>)>,
}

/// The bytes are those of the scenario.
fn exchange_metrics(at_bytes: &mut [(u64, Option<Named>)], state: &mut State<'_>) {
    at_bytes.iter_mut().for_each(|(_, metrics)| state.field(metrics));
}

impl Evaluated {
    /// Before the first round.
    pub fn new(metrics: &[Metric], at_bytes: &[u64]) -> Self {
        let better = metrics.iter().map(|metric| (metric.id, metric.better)).collect();
        Self { better, best: BTreeMap::new(), at_bytes: at_bytes.iter().map(|&bytes| (bytes, None)).collect() }
    }

    /// Notes the metrics of a round by whose end clients had moved so many bytes; `metrics` is empty if it was not
    /// evaluated.
    pub fn observe(&mut self, metrics: &[(MetricId, f64)], bytes: u64) {
        if metrics.is_empty() {
            return;
        }
        for &(id, value) in metrics.iter().filter(|(_, value)| value.is_finite()) {
            let Some(better) = self.better.get(&id) else { continue };
            let best = self.best.entry(id).or_insert(value);
            *best = match better {
                Better::Higher => best.max(value),
                Better::Lower => best.min(value),
            };
        }
        for (_, within) in self.at_bytes.iter_mut().filter(|(most, _)| bytes <= *most) {
            *within = Some(by_name(metrics.iter().copied()));
        }
    }

    /// The best of each metric; and by bytes the metrics of the last round within them, where there is one.
    pub fn into_parts(self) -> (Named, BTreeMap<u64, Named>) {
        let within = self.at_bytes.into_iter().filter_map(|(bytes, metrics)| Some((bytes, metrics?)));
        (by_name(self.best), within.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::metric::Place;

    #[test]
    fn the_best_follows_the_direction_and_what_is_within_traffic_is_the_last() {
        let [down, up, other] = ["down", "up", "other"].map(|name| MetricId::new(Place::Model, name));
        let metric = |id, better| Metric { id, better, range: (None, None), main: false };
        let metrics = [metric(down, Better::Lower), metric(up, Better::Higher)];
        let mut evaluated = Evaluated::new(&metrics, &[9, 20, 30]);
        evaluated.observe(&[(down, 3.0), (up, 1.0), (other, 1.0)], 10);
        evaluated.observe(&[], 15);
        evaluated.observe(&[(down, f64::NAN), (up, 4.0)], 20);
        evaluated.observe(&[(down, 5.0), (up, 2.0)], 21);
        let saved = State::save(&mut evaluated).unwrap();
        let mut evaluated = Evaluated::new(&metrics, &[9, 20, 30]);
        State::load(&mut evaluated, &saved).unwrap();
        let (best, at_bytes) = evaluated.into_parts();
        assert_eq!(best, Named::from([("down".to_owned(), 3.0), ("up".to_owned(), 4.0)]));
        assert_eq!(at_bytes.keys().copied().collect::<Vec<_>>(), [20, 30]);
        assert_eq!((at_bytes[&20]["up"], at_bytes[&30]["up"]), (4.0, 2.0));
    }
}
