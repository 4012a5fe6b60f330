//! Inputs of metrics.

use crate::model::{Evaluation, Outputs};
use fedgenie_core::id::Round;

/// Scores of classes, and the class of each example.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a> {
    /// Example by example, a score for each class.
    pub scores: &'a [f32],
    /// Number of classes that the model tells apart.
    pub classes: usize,
    /// The class of each example.
    pub labels: &'a [u8],
}

impl<'a> Scores<'a> {
    /// The outputs of a model on examples with classes; `None` if examples have numbers.
    pub fn of(outputs: &'a Outputs) -> Option<Self> {
        let labels = outputs.labels()?;
        Some(Self { scores: &outputs.numbers, classes: outputs.width, labels })
    }

    /// For each example, its class and the one with the largest score: the smallest class on ties, class 0 where scores
    /// are not numbers.
    pub fn predictions(&self) -> impl Iterator<Item = (usize, usize)> {
        let predicted = |scores: &[f32]| {
            let mut best = 0;
            (1..scores.len()).for_each(|class| {
                if scores[class] > scores[best] {
                    best = class
                }
            });
            best
        };
        let labels = self.labels.iter().map(|&label| usize::from(label));
        labels.zip(self.scores.chunks_exact(self.classes).map(predicted))
    }
}

/// Sums over errors of predicted numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Sum of their squares.
    pub squares: f64,
    /// Sum of their sizes.
    pub absolute: f64,
    /// How many there are.
    pub count: f64,
}

impl Errors {
    /// Adds one.
    const fn add(&mut self, error: f64) {
        self.squares += error * error;
        self.absolute += error.abs();
        self.count += 1.0;
    }

    /// The sums of some errors, in their order.
    pub fn of(errors: impl Iterator<Item = f64>) -> Self {
        let mut sums = Self::default();
        errors.for_each(|error| sums.add(error));
        sums
    }

    /// Those of a model with one output, prediction minus number; of no example if these have classes.
    pub fn of_outputs(outputs: &Outputs) -> Self {
        let values = outputs.values().unwrap_or_default();
        Self::of(outputs.numbers.iter().zip(values).map(|(found, value)| f64::from(*found) - f64::from(*value)))
    }

    /// The sums of several, in their order.
    pub fn total<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut total = Self::default();
        for sums in all {
            total.squares += sums.squares;
            total.absolute += sums.absolute;
            total.count += sums.count;
        }
        total
    }

    /// Squared errors as losses.
    pub fn squared(&self) -> Evaluation {
        Evaluation { loss_sum: self.squares, correct: 0, examples: self.count as u64 }
    }
}

/// Sums over errors of predicted ratings: of all, and apart of items with a training rating and of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// Of all.
    pub all: Errors,
    /// Of items with a training rating.
    pub seen: Errors,
    /// Of items without one.
    pub unseen: Errors,
}

impl Known {
    /// The sums of some errors, each with whether its item has a training rating, in their order.
    pub fn of(errors: impl Iterator<Item = (f64, bool)>) -> Self {
        let mut sums = Self::default();
        for (error, is_seen) in errors {
            sums.all.add(error);
            if is_seen { sums.seen.add(error) } else { sums.unseen.add(error) }
        }
        sums
    }

    /// The sums of several, in their order.
    pub fn total<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        Self {
            all: Errors::total(all.clone().map(|sums| &sums.all)),
            seen: Errors::total(all.clone().map(|sums| &sums.seen)),
            unseen: Errors::total(all.map(|sums| &sums.unseen)),
        }
    }
}

/// Rows of items, and when updates moved them.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    /// For each item, the round in which an aggregated update last moved its row; round 0 if never.
    pub moved: &'a [Round],
    /// The round that is evaluated.
    pub round: Round,
    /// Rounds that an age is a share of.
    pub window: u32,
    /// The least popular items, four of five.
    pub long_tail: &'a [u32],
}
