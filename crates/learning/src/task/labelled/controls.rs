//! Controls of labelled rows: what a constant achieves.
//!
//! # Definition
//! `majority` gives every example the share `n_c / n` of each class among training rows as its probability: its class
//! is the most frequent one, the smallest on ties, and its loss the cross-entropy of these shares. `mean` predicts the
//! mean of the training rows' numbers. Rows that nobody trains on are not among them. On the data of clients and of
//! edge servers there are beside these `own-majority` and `own-mean`, which know the training rows of that client, or
//! of the clients of that server, instead. Values that are not finite are left out, as the loss of a class without
//! training rows.

use super::{Labelled, On};
use crate::data::{Dataset, Targets};
use crate::metric::Definition;
use crate::model::{Batch, Evaluation, Outputs, targets};
use crate::task::Controls;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::ln;
use fedgenie_core::metric::Place;
use std::borrow::Cow;

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
    /// By the shares of classes.
    fn of_counts(counts: &[usize]) -> Self {
        let all = counts.iter().sum::<usize>() as f64;
        Self { outputs: counts.iter().map(|&count| ln(count as f64 / all)).collect() }
    }

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
        let (name, constant) = self.constant();
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

    /// The constant that knows all training rows.
    fn constant(&self) -> (&'static str, Constant) {
        let honest = self.honest.as_ref().unwrap_or(&self.data);
        match counts(&honest.train, &self.aside()) {
            Some(counts) => ("majority", Constant::of_counts(&counts)),
            None => ("mean", Constant { outputs: vec![self.mean_number()] }),
        }
    }

    /// The constant that knows the training rows of a client, or of a server's clients; `None` without any.
    fn constant_of(&self, part: On<'_>) -> Option<Constant> {
        let alone = part.client().map(|client| [client]);
        let members = part.members().or(alone.as_ref().map(<[ClientId; 1]>::as_slice))?;
        let examples: Vec<u32> =
            members.iter().flat_map(|&client| self.partition.client(client).into_owned()).collect();
        if examples.is_empty() {
            return None;
        }
        // What is held out has the labels of the data.
        let is_held_out = match part {
            On::Client(_) => self.own.is_some(),
            _ => matches!(part, On::ServerTest(..)),
        };
        let honest = self.honest.as_ref().filter(|_| is_held_out).unwrap_or(&self.data);
        Some(match targets(&[Batch { data: &honest.train, examples: &examples }]) {
            Targets::Classes { labels, classes } => {
                let mut counts = vec![0; classes];
                labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
                Constant::of_counts(&counts)
            }
            Targets::Values(values) => {
                let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
                Constant { outputs: vec![sum / values.len() as f64] }
            }
        })
    }

    /// The measures of the constants on the data of clients or servers.
    pub(super) fn constants_on(&self, parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        let (name, constant) = self.constant();
        let own_name = if name == "mean" { "own-mean" } else { "own-majority" };
        let measured = |part: On<'_>, constant: &Constant| {
            let lists = self.lists(part);
            // The lists of a server are of the same rows.
            let data = lists.first()?.0;
            let examples: Cow<'_, [u32]> = match &lists[..] {
                [(_, examples)] => Cow::Borrowed(examples),
                lists => lists.iter().flat_map(|(_, examples)| examples.iter().copied()).collect(),
            };
            (!examples.is_empty()).then(|| {
                let (sums, outputs) = constant.measured(&Batch { data, examples: &examples });
                let of = |metric: &&Definition| metric.of_examples(&sums, metric.needs_outputs().then_some(&outputs));
                self.metrics.iter().map(of).collect()
            })
        };
        let of_all = parts.iter().map(|&part| measured(part, &constant)).collect();
        let of_own = parts.iter().map(|&part| measured(part, &self.constant_of(part)?)).collect();
        vec![(name, of_all), (own_name, of_own)]
    }

    /// The mean number of the training rows; NaN without any.
    fn mean_number(&self) -> f64 {
        let aside = self.aside();
        let is_for_training = |row: &u32| aside.binary_search(row).is_err();
        let rows: Vec<u32> = (0..self.data.train.examples() as u32).filter(is_for_training).collect();
        match targets(&[Batch { data: &self.data.train, examples: &rows }]) {
            Targets::Values(values) => values.iter().map(|&value| f64::from(value)).sum::<f64>() / rows.len() as f64,
            Targets::Classes { .. } => f64::NAN,
        }
    }
}
