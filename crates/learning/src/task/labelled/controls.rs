//! Controls of labelled rows: what a constant achieves.
//!
//! # Definition
//! `majority` gives every example the share `n_c / n` of each class among training rows as its probability: its class
//! is the most frequent one, the smallest on ties, and its loss the cross-entropy of these shares. `mean` predicts the
//! mean of the training rows' numbers. Rows for validation are not among them. Values that are not finite are left out,
//! as the loss of a class without training rows.

use super::{Labelled, On};
use crate::data::{Dataset, Targets};
use crate::model::{Batch, Evaluation, Outputs, targets};
use crate::task::Controls;
use fedgenie_core::math::float::ln;
use fedgenie_core::metric::Place;

/// Training rows of each class, without some; `None` if rows have numbers.
pub(super) fn counts(train: &Dataset, set_aside: &[u32]) -> Option<Vec<usize>> {
    let (labels, classes) = train.classes()?;
    let mut counts = vec![0_usize; classes];
    labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
    set_aside.iter().for_each(|&row| counts[usize::from(labels[row as usize])] -= 1);
    Some(counts)
}

/// A prediction that is the same for every example.
struct Constant {
    /// A score for each class, or the number.
    outputs: Vec<f64>,
}

impl Constant {
    fn measured(&self, batch: &Batch<'_>) -> (Evaluation, Outputs) {
        let examples = batch.examples.len();
        let targets = targets(&[*batch]);
        let (loss_sum, correct) = match &targets {
            Targets::Classes { labels, .. } => {
                // The largest score, the smallest class on ties.
                let best = (0..self.outputs.len())
                    .rev()
                    .max_by(|&one, &other| self.outputs[one].total_cmp(&self.outputs[other]));
                let correct = labels.iter().filter(|&&label| Some(usize::from(label)) == best).count();
                (labels.iter().map(|&label| -self.outputs[usize::from(label)]).sum::<f64>(), correct)
            }
            Targets::Values(values) => {
                let error = |&value: &f32| self.outputs[0] - f64::from(value);
                (values.iter().map(error).map(|error| error * error).sum::<f64>(), 0)
            }
        };
        let numbers = self.outputs.iter().map(|&output| output as f32);
        let numbers = (0..examples).flat_map(|_| numbers.clone()).collect();
        let sums = Evaluation { loss_sum, correct: correct as u64, examples: examples as u64 };
        (sums, Outputs { numbers, width: self.outputs.len(), targets })
    }
}

impl Labelled {
    /// The metrics of the constants on test and validation data.
    pub(super) fn controls(&self) -> Controls {
        let set_aside = &self.valid_examples;
        let honest = self.honest.as_ref().unwrap_or(&self.data);
        let (name, outputs) = match counts(&honest.train, set_aside) {
            Some(counts) => {
                let all = counts.iter().sum::<usize>() as f64;
                ("majority", counts.into_iter().map(|count| ln(count as f64 / all)).collect())
            }
            None => ("mean", vec![self.mean_number()]),
        };
        let constant = Constant { outputs };
        let mut found = Vec::new();
        for (on, place) in [(On::Test, Place::Test), (On::Valid, Place::Valid)] {
            for (data, examples) in self.lists(on).iter().filter(|(_, examples)| !examples.is_empty()) {
                let (sums, outputs) = constant.measured(&Batch { data, examples });
                let of = self.metrics.iter().map(|metric| {
                    (metric.measure.at(place), metric.of_examples(&sums, metric.needs_outputs().then_some(&outputs)))
                });
                found.extend(of.filter(|(_, value)| value.is_finite()));
            }
        }
        vec![(name, found)]
    }

    /// The mean number of the training rows; NaN without any.
    fn mean_number(&self) -> f64 {
        let is_for_training = |row: &u32| self.valid_examples.binary_search(row).is_err();
        let rows: Vec<u32> = (0..self.data.train.examples() as u32).filter(is_for_training).collect();
        match targets(&[Batch { data: &self.data.train, examples: &rows }]) {
            Targets::Values(values) => values.iter().map(|&value| f64::from(value)).sum::<f64>() / rows.len() as f64,
            Targets::Classes { .. } => f64::NAN,
        }
    }
}
