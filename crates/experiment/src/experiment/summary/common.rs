//! What runs have in common, kept once.

use super::RunSummary;
use fedgenie_simulator::metrics::Row;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What earlier runs have in common with the next: rows of selections are those of a seed's world, effective settings
/// those of a policy.
#[derive(Debug, Default)]
pub(in super::super) struct Common {
    /// By seed.
    rows: BTreeMap<u64, Arc<[Row]>>,
    effective: BTreeMap<String, Arc<BTreeMap<String, Value>>>,
}

impl Common {
    /// Replaces what a run has as well by that of an earlier one.
    pub fn share(&mut self, run: &mut RunSummary) {
        let rows = &mut run.metrics.selections.rows;
        match self.rows.get(&run.seed).filter(|known| *known == rows) {
            Some(known) => *rows = known.clone(),
            None => drop(self.rows.insert(run.seed, rows.clone())),
        }
        match self.effective.get(&run.arm).filter(|known| **known == run.effective) {
            Some(known) => run.effective = known.clone(),
            None => drop(self.effective.insert(run.arm.clone(), run.effective.clone())),
        }
    }
}

/// Whether there are no effective settings.
pub(super) fn is_empty(effective: &BTreeMap<String, Value>) -> bool {
    effective.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_is_kept_once() {
        let run = |arm: &str, label: &str, value: i32| -> RunSummary {
            let mut run: RunSummary = serde_json::from_value(serde_json::json!({
                "arm": arm, "seed": 1, "point": 0, "rounds": 1, "virtual_time_s": 1.0,
                "digest": { "timeline": "", "model": "" }, "final": {}, "regret": {},
                "traffic": { "down_bytes": 1, "up_bytes": 0 }, "compute_s": 7.0, "wasted_compute_s": 0.0,
                "dispatched": 1, "arrived": 1, "unique_clients": 1, "jain": 1.0, "effective": { "a": value }
            }))
            .unwrap();
            run.metrics.selections.rows = [Row { label: label.to_owned(), clients: 1, client: None }].into();
            run
        };
        let plain = [run("a", "x", 1), run("b", "x", 2), run("a", "x", 1), run("b", "y", 1)];
        let mut runs = plain.clone();
        let mut common = Common::default();
        runs.iter_mut().for_each(|run| common.share(run));
        assert_eq!(runs, plain);
        let rows = |index: usize| runs[index].metrics.selections.rows.as_ptr();
        assert!(rows(0) == rows(1) && rows(1) == rows(2) && rows(2) != rows(3));
        let settings = |index: usize| Arc::as_ptr(&runs[index].effective);
        assert!(settings(0) == settings(2) && settings(0) != settings(1) && settings(1) != settings(3));
    }
}
