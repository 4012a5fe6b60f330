//! Users who are alike guide each other: a server that makes an item table for every participant of a round.
//!
//! # Definition
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
//! A participant keeps the rows of `G_u` of its own items, and its next job pulls them there ([`Pull`]). So the
//! server's table for a participant lies with the participant, for its own items only; its download is not charged.
//!
//! What a client keeps: its users' rows, the weights of its network, and, once an update of it was aggregated, such
//! rows, ascending by item.
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
//!
//! [`Pull`]: crate::ncf::Pull

use super::Recommendation;
use crate::algorithm::{Combine, Related};
use crate::layout::{Layout, Update};
use crate::model::weights::Tensor;
use crate::ncf::items_of;
use crate::task::PrivateView;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use std::ops::Range;

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

impl Recommendation {
    /// How many numbers the rows of a client's users are.
    pub(super) fn rows_len(&self, client: ClientId) -> usize {
        self.source.holdings.users(client).len() * self.settings.dimensions
    }

    /// How many numbers a client keeps, without the rows that it is pulled to.
    pub(super) fn kept_len(&self, client: ClientId) -> usize {
        self.rows_len(client) + self.first_network.len()
    }

    /// The weights of a client's own network.
    pub(super) fn network_of<'a>(&'a self, client: ClientId, kept: Option<&'a [f32]>) -> &'a [f32] {
        kept.map_or(&self.first_network, |kept| &kept[self.rows_len(client)..self.kept_len(client)])
    }

    /// The networks of all users, as files have them: each that of the user's home.
    pub(super) fn private_networks(&self, private: &PrivateView<'_>) -> Vec<Tensor> {
        let Some(shape) = self.settings.kind.private_shape(self.settings.dimensions) else { return Vec::new() };
        let users = self.source.data.user_ids.len();
        let network = |user: u32| {
            let home = self.source.holdings.home(user).map(|(client, _)| client);
            home.map_or(&*self.first_network, |client| self.network_of(client, private.get(client)))
        };
        let mut begin = 0;
        let one = |(name, of_one): (String, Vec<usize>)| {
            let count: usize = of_one.iter().product();
            let range = begin..begin + count;
            begin += count;
            let mut values = Vec::with_capacity(users * count);
            (0..users as u32).for_each(|user| values.extend_from_slice(&network(user)[range.clone()]));
            let shape = [users].into_iter().chain(of_one).collect();
            Tensor { name: format!("users.{name}"), shape, values }
        };
        shape.tensors().into_iter().map(one).collect()
    }

    /// Relates updates by their changes.
    fn guide(&self, sent: &[(ClientId, &[f32])], updates: &[&Update], weights: &[f64]) -> Related {
        let changes: Vec<Change> =
            sent.iter().zip(updates).map(|(&(_, start), update)| Change::of(&self.layout, start, update)).collect();
        let neighbours = neighbours(&changes, weights);
        let mut shared = vec![0.0; weights.len()];
        for (of_one, &weight) in neighbours.iter().zip(weights) {
            of_one.iter().for_each(|&other| shared[other] += weight / of_one.len() as f64);
        }
        let d = self.settings.dimensions;
        let (first, mut row) = (self.settings.kind.weights(d), vec![0.0; d]);
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
        Related { weights: shared, private }
    }
}

impl Change {
    /// What changed of so many numbers from a place on.
    fn at(&self, place: usize, count: usize) -> Option<&[f64]> {
        let piece = self.pieces.partition_point(|(range, _)| range.start <= place).checked_sub(1)?;
        let (range, at) = &self.pieces[piece];
        (place < range.end).then(|| &self.numbers[at + place - range.start..][..count])
    }
}

impl Combine for Recommendation {
    fn relate(&self, sent: &[(ClientId, &[f32])], updates: &[&Update], weights: &[f64]) -> Option<Related> {
        Some(self.guide(sent, updates, weights))
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
