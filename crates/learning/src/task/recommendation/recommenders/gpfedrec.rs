//! Users who are alike guide each other: each client keeps a network, and the server makes an item table for every
//! participant of a round.
//!
//! # Definition
//! The score is the answer of the client's own network to both rows, as in `ncf`; the loss is that of `mf`.
//!
//! Of the updates of a round let `Δ_u` be what `u` changed of the item table that it was sent, `0` where it sent
//! nothing, and `T_u` the table with these changes. `s(u, w)` is the cosine of `Δ_u` and `Δ_w`, 1 for `w = u` and else
//! 0 where one of both is zero; `s̄` is the mean of `s` over all ordered pairs of participants. The neighbours of `u`
//! are `N(u) = {w: s(u, w) > s̄}`, `u` alone if that is empty. The server makes for each participant the table
//!
//! `G_u = Σ_{w ∈ N(u)} T_w / |N(u)|`,
//!
//! and the global table is the mean of these, by the weights of the aggregation: so the update of `w` gets the weight
//! `Σ_{u: w ∈ N(u)} b_u / |N(u)|`, where `b_u` is the weight of `u`; the sum of weights stays. Updates without weight
//! are nobody's neighbours.
//!
//! A participant keeps the rows of `G_u` of its own items, and its next job pulls them there with weight `reg`. So the
//! server's table for a participant lies with the participant, for its own items only; its download is not charged.
//!
//! What a client keeps: its users' rows, the weights of its network, and, once an update of it was aggregated, such
//! rows, ascending by item.
//!
//! # Inputs
//! `dimensions` (32) and `hidden` (32), from 1 to 4,096; `reg` (1.0), the weight of the pull, at least 0: the loss of
//! every mini-batch has `reg` times the mean squared error of the items' rows, see `crates/learning/src/ncf/pull.rs`.
//! Tensors: those of `ncf`, which everybody begins with; a run's file has the networks of all users, `users.ncf.…`.
//!
//! # Source
//! C. Zhang et al., "GPFedRec: Graph-guided personalization for federated recommendation", KDD 2024.
//!
//! # Deviations from the source
//! The published code compares tables, not changes, by cosine *distance*, and takes those above the mean distance: the
//! least alike. It pulls the rows of all items, ours those of the client's. A participant without a table of its own is
//! pulled to the rows that it is sent.
//!
//! # Cost
//! Among `P` participants `P²/2` products of changes, by the rows that both sent.
//!
//! # Determinism
//! Products, norms and means are in `f64`, by ascending place in the model, and by ascending client and job. Cosines
//! within 1e-12 of the mean are not above it.
//! First rows: Xavier-uniform, streams (model-init, 0, 0) and (model-init, user, 1); first network (model-init, 0, 2).
//!
//! # Example
//! ```toml
//! [task.recommendation]
//! model = { gpfedrec = { dimensions = 32, hidden = 32, reg = 1.0 } }
//! ```

use super::super::Recommendation;
use super::{RowJob, RowRecommender, check_sizes, thirty_two};
use crate::algorithm::{Combine, Related};
use crate::layout::{Layout, Update};
use crate::matrix_factorisation::Footprint;
use crate::ncf::{self, Outcome, Pull, Shape, items_of};
use crate::task::Worker;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Parameters of `gpfedrec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Config {
    /// Length of a row; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub dimensions: usize,
    /// Hidden numbers of a client's network; from 1 to 4,096.
    #[serde(default = "thirty_two")]
    pub hidden: usize,
    /// Weight of the pull towards the participant's table; at least 0.
    #[serde(default = "one")]
    pub reg: f64,
}

const fn one() -> f64 {
    1.0
}

impl Config {
    const fn shape(&self) -> Shape {
        Shape { dimensions: self.dimensions, hidden: self.hidden, proxy: None }
    }
}

impl RowRecommender for Config {
    fn check(&self) -> Result<(), Complaint> {
        check_sizes(&[("dimensions", self.dimensions), ("hidden", self.hidden)])?;
        match self.reg {
            reg if reg.is_finite() && reg >= 0.0 => Ok(()),
            reg => Err(Complaint::new("reg", format!("found {reg}; expected a number of at least 0"))),
        }
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn private_network(&self) -> Option<Shape> {
        Some(self.shape())
    }

    fn train(&self, job: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        let pull = Some(Pull { weight: self.reg as f32, targets: job.targets });
        let networks = worker.keep::<ncf::Worker>();
        networks.train_pulled(&self.shape(), job.settings, (job.job, job.weights, pull), outcome);
    }

    fn descend(&self, job: &RowJob<'_>, worker: &mut Worker, outcome: &mut Outcome) {
        worker.keep::<ncf::Worker>().train(&self.shape(), job.settings, (job.job, job.weights), outcome);
    }

    fn footprint(&self) -> Footprint {
        Footprint::default().with_all_positives()
    }

    fn combination<'a>(&self, task: &'a Recommendation) -> Option<&'a dyn Combine> {
        Some(task)
    }
}

/// What an update changed: pieces of the model, ascending, and their changes one after the other.
struct Change {
    pieces: Vec<(Range<usize>, usize)>,
    numbers: Vec<f64>,
    norm: f64,
}

impl Change {
    fn of(layout: &Layout, start: &[f32], update: &Update) -> Self {
        let (mut pieces, mut numbers) = (Vec::new(), Vec::new());
        for (range, part) in update.parts(layout) {
            pieces.push((range.clone(), numbers.len()));
            let both = part.iter().zip(&start[range]);
            numbers.extend(both.map(|(&after, &before)| f64::from(after) - f64::from(before)));
        }
        let norm = sqrt(numbers.iter().map(|number| number * number).sum());
        Self { pieces, numbers, norm }
    }

    /// What changed of so many numbers from a place on.
    fn at(&self, place: usize, count: usize) -> Option<&[f64]> {
        let piece = self.pieces.partition_point(|(range, _)| range.start <= place).checked_sub(1)?;
        let (range, at) = &self.pieces[piece];
        (place < range.end).then(|| &self.numbers[at + place - range.start..][..count])
    }

    fn product(&self, other: &Self) -> f64 {
        let (mut mine, mut theirs) = (self.pieces.iter().peekable(), other.pieces.iter().peekable());
        let mut sum = 0.0;
        while let (Some((range, at)), Some((of_other, at_other))) = (mine.peek(), theirs.peek()) {
            match range.start.cmp(&of_other.start) {
                std::cmp::Ordering::Less => drop(mine.next()),
                std::cmp::Ordering::Greater => drop(theirs.next()),
                std::cmp::Ordering::Equal => {
                    let pairs = self.numbers[*at..].iter().zip(&other.numbers[*at_other..]).take(range.len());
                    sum += pairs.map(|(one, other)| one * other).sum::<f64>();
                    mine.next();
                    theirs.next();
                }
            }
        }
        sum
    }
}

/// The neighbours of each participant, ascending; of one without weight, itself.
fn neighbours(changes: &[Change], weights: &[f64]) -> Vec<Vec<usize>> {
    let counts: Vec<usize> = (0..changes.len()).filter(|&index| weights[index] > 0.0).collect();
    let mut cosines = vec![vec![1.0; counts.len()]; counts.len()];
    for (row, &one) in counts.iter().enumerate() {
        for (column, &other) in counts.iter().enumerate().skip(row + 1) {
            let norms = changes[one].norm * changes[other].norm;
            let cosine = if norms > 0.0 { changes[one].product(&changes[other]) / norms } else { 0.0 };
            (cosines[row][column], cosines[column][row]) = (cosine, cosine);
        }
    }
    let sum: f64 = cosines.iter().flatten().sum();
    let mean = sum / (counts.len() * counts.len()) as f64;
    let mut found: Vec<Vec<usize>> = (0..changes.len()).map(|index| vec![index]).collect();
    for (cosines, &one) in cosines.iter().zip(&counts) {
        let alike = counts.iter().zip(cosines).filter(|&(_, &cosine)| cosine > mean + 1e-12);
        let alike: Vec<usize> = alike.map(|(&other, _)| other).collect();
        if !alike.is_empty() {
            found[one] = alike;
        }
    }
    found
}

impl Combine for Recommendation {
    fn relate(&self, sent: &[(ClientId, &[f32])], updates: &[&Update], weights: &[f64]) -> Option<Related> {
        let changes: Vec<Change> =
            sent.iter().zip(updates).map(|(&(_, start), update)| Change::of(&self.layout, start, update)).collect();
        let neighbours = neighbours(&changes, weights);
        let mut shared = vec![0.0; weights.len()];
        for (of_one, &weight) in neighbours.iter().zip(weights) {
            of_one.iter().for_each(|&other| shared[other] += weight / of_one.len() as f64);
        }
        let d = self.model.dimensions();
        let (first, mut row) = (self.model.weights(), vec![0.0; d]);
        let mut private = Vec::with_capacity(updates.len());
        for ((&(client, _), update), of_one) in sent.iter().zip(updates).zip(&neighbours) {
            let mut kept = update.private[..self.kept_len(client)].to_vec();
            for item in items_of(self.source.holdings.positives(client)) {
                let place = first + item as usize * d;
                row.fill(0.0);
                for &other in of_one {
                    let start = &sent[other].1[place..place + d];
                    let change = changes[other].at(place, d);
                    for (index, (sum, &start)) in row.iter_mut().zip(start).enumerate() {
                        *sum += f64::from(start) + change.map_or(0.0, |change| change[index]);
                    }
                }
                kept.extend(row.iter().map(|sum| (sum / of_one.len() as f64) as f32));
            }
            private.push(kept);
        }
        Some(Related { weights: shared, private })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(numbers: [f64; 2]) -> Change {
        let norm = sqrt(numbers.iter().map(|number| number * number).sum());
        Change { pieces: vec![(0..2, 0)], numbers: numbers.to_vec(), norm }
    }

    #[test]
    fn neighbours_are_those_above_the_mean() {
        // Cosines of 0°, 60° and 180°: 0.5, −1 and −0.5; the mean of the nine is (3 + 2·(0.5 − 1 − 0.5))/9 = 1/9.
        let changes = [[1.0, 0.0], [1.0, 3.0_f64.sqrt()], [-2.0, 0.0]].map(change);
        assert_eq!(neighbours(&changes, &[1.0; 3]), [vec![0, 1], vec![0, 1], vec![2]]);
        // Without the third, the mean is 0.75 and nobody else is above.
        assert_eq!(neighbours(&changes, &[1.0, 1.0, 0.0]), [vec![0], vec![1], vec![2]]);
        // Equal changes: nobody is above the mean.
        assert_eq!(neighbours(&[change([1.0, 2.0]), change([1.0, 2.0])], &[1.0; 2]), [vec![0], vec![1]]);
        // A change of nothing is like nobody's: the mean is 0.5.
        assert_eq!(neighbours(&[change([0.0, 0.0]), change([1.0, 2.0])], &[1.0; 2]), [vec![0], vec![1]]);
    }

    #[test]
    fn products_take_what_both_sent() {
        let one = Change { pieces: vec![(0..2, 0), (4..6, 2)], numbers: vec![1.0, 2.0, 3.0, 4.0], norm: 0.0 };
        let other = Change { pieces: vec![(2..4, 0), (4..6, 2)], numbers: vec![9.0, 9.0, 5.0, 6.0], norm: 0.0 };
        assert_eq!(one.product(&other), 3.0 * 5.0 + 4.0 * 6.0);
        assert_eq!((one.at(4, 2), one.at(2, 2)), (Some(&[3.0, 4.0][..]), None));
        let dense = Change { pieces: vec![(0..6, 0)], numbers: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0], norm: 0.0 };
        assert_eq!((dense.at(2, 2), dense.at(6, 2)), (Some(&[2.0, 3.0][..]), None));
    }
}
