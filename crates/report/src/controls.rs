//! Rows of controls: metrics without learning or without a federation, beside which results of policies stand in
//! tables.

use super::study::{Quantity, Study};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::controls::{Controls, value};
use std::collections::{BTreeMap, BTreeSet};

/// A control in a table.
pub(super) struct Control {
    /// Its name in parentheses, with its point or folder where others have other values.
    pub label: String,
    metrics: BTreeMap<String, Estimate>,
}

impl Control {
    /// Its value of a quantity, if that is a metric at the end of a run, at its best or at convergence.
    pub fn value(&self, quantity: &Quantity) -> Option<&Estimate> {
        value(&self.metrics, &quantity.key)
    }

    /// Its seeds.
    pub fn seeds(&self) -> usize {
        self.metrics.values().map(|found| found.n).max().unwrap_or(0)
    }
}

/// The controls of a study, those that are the same everywhere once.
pub(super) fn controls(study: &Study<'_>) -> Vec<Control> {
    let mut places: Vec<(String, &Controls)> = Vec::new();
    let folders: BTreeSet<usize> = study.arms.iter().map(|arm| arm.folder).collect();
    for results in folders.iter().map(|&folder| &study.results[folder]) {
        for (point, controls) in results.summary.controls.iter().enumerate() {
            let mut words: Vec<String> = Vec::new();
            words.extend(study.is_sweep().then(|| study.bare_words(point)));
            words.extend((folders.len() > 1).then(|| results.name.clone()));
            places.push((words.join(", "), controls));
        }
    }
    let mut names: Vec<&String> = places.iter().flat_map(|(_, controls)| controls.keys()).collect();
    names.sort();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        let of: Vec<(&String, &BTreeMap<String, Estimate>)> =
            places.iter().filter_map(|(words, controls)| Some((words, controls.get(name)?))).collect();
        let are_alike = of.len() == places.len() && of.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let shown = if are_alike { &of[..1] } else { &of[..] };
        all.extend(shown.iter().map(|(words, metrics)| Control {
            label: if are_alike || words.is_empty() { format!("({name})") } else { format!("({name}), {words}") },
            metrics: (*metrics).clone(),
        }));
    }
    all
}
