//! References: how far one gets with popularity, means and biases alone.
//!
//! # Definition
//! *Popularity* scores an item, for everybody, by its number of training ratings, as `f32` (exact below 2^24).
//!
//! *Mean* predicts the mean `μ` of the training ratings; 0 without any. *Bias* predicts `μ + b_u + b_i`, with the one
//! solution of the ridge regression
//!
//! `min Σ_(u,i) (r_ui − μ − b_u − b_i)² + 5 (Σ_u b_u² + Σ_i b_i²)`
//!
//! over the training ratings; users and items without any have bias 0. Predictions are not cut off at the range.
//!
//! # Method
//! With the users' biases eliminated, `b_u = Σ_i (r_ui − μ − b_i) / (n_u + 5)`, the items' are the solution of a
//! symmetric positive definite system, found by conjugate gradients, preconditioned by `n_i + 5`, until the residual
//! has fallen by 10^12, or for 1,000 steps.
//!
//! # Source
//! Y. Koren, R. Bell, C. Volinsky, "Matrix factorization techniques for recommender systems", Computer 42(8), 2009, eq. 3;
//! M. R. Hestenes, E. Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
//!
//! # Cost
//! Two passes over the training ratings for each of about 20 steps; 8 bytes a rating.
//!
//! # Determinism
//! Sums are in `f64`, in the order of users and of their ratings' items, on one thread.

use super::{Part, Rating, RatingsSplit};
use crate::metric::Known;
use crate::ranking::{ItemLists, Means, ScoreItems, evaluate};

/// Weight of the ridge.
const RIDGE: f64 = 5.0;

/// By how much the square of the residual has to fall, and the most steps.
const FALL: f64 = 1e-24;
const STEPS_MAX: usize = 1_000;

/// Scores that are the same for every user.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    scores: Vec<f32>,
}

impl Popularity {
    /// The number of training ratings of each item.
    pub fn new(split: &RatingsSplit) -> Self {
        let mut counts = vec![0_u32; split.items()];
        split.part(Part::Train).for_each(|rating| counts[rating.item as usize] += 1);
        Self { scores: counts.into_iter().map(|count| count as f32).collect() }
    }

    /// The score of each item.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The ranking metrics of popularity: see [`evaluate`].
    ///
    /// # Panics
    /// As [`evaluate`].
    pub fn evaluate(&self, excluded: &ItemLists, relevant: &ItemLists, cutoffs: &[usize], parallel: bool) -> Means {
        evaluate(self, self.scores.len(), excluded, relevant, cutoffs, parallel)
    }
}

impl ScoreItems for Popularity {
    fn score(&self, _: &[u32], scores: &mut [f32]) {
        scores.chunks_exact_mut(self.scores.len()).for_each(|row| row.copy_from_slice(&self.scores));
    }
}

/// Mean and biases of the training ratings.
#[derive(Clone, Debug, PartialEq)]
pub struct Biases {
    /// Mean of the training ratings.
    pub mean: f64,
    /// Bias of each user, in units of the ratings.
    pub users: Vec<f64>,
    /// Bias of each item, in units of the ratings.
    pub items: Vec<f64>,
}

/// The training ratings, user by user.
struct Rows {
    offsets: Vec<usize>,
    items: Vec<u32>,
    values: Vec<f32>,
}

impl Rows {
    fn new(split: &RatingsSplit) -> Self {
        let mut order: Vec<&Rating> = split.part(Part::Train).collect();
        order.sort_unstable_by_key(|rating| (rating.user, rating.item));
        let mut offsets = vec![0; split.users() + 1];
        order.iter().for_each(|rating| offsets[rating.user as usize + 1] += 1);
        for user in 0..split.users() {
            offsets[user + 1] += offsets[user];
        }
        let items = order.iter().map(|rating| rating.item).collect();
        Self { offsets, items, values: order.iter().map(|rating| rating.value).collect() }
    }

    /// The items of each user, with parallel values.
    fn users<'a, T>(&'a self, beside: &'a [T]) -> impl Iterator<Item = (&'a [u32], &'a [T])> {
        self.offsets.windows(2).map(move |ends| (&self.items[ends[0]..ends[1]], &beside[ends[0]..ends[1]]))
    }

    /// For each user of an item, takes off the item that user's share of a sum over the user's items.
    fn eliminate<T>(&self, beside: &[T], term: impl Fn(u32, &T) -> f64, out: &mut [f64]) {
        for (items, beside) in self.users(beside) {
            let sum: f64 = items.iter().zip(beside).map(|(&item, beside)| term(item, beside)).sum();
            let share = sum / (items.len() as f64 + RIDGE);
            items.iter().for_each(|&item| out[item as usize] -= share);
        }
    }
}

impl Biases {
    /// Fits mean and biases to the training ratings.
    pub fn fit(split: &RatingsSplit) -> Self {
        let rows = Rows::new(split);
        let sum: f64 = rows.values.iter().map(|&value| f64::from(value)).sum();
        let mean = if rows.values.is_empty() { 0.0 } else { sum / rows.values.len() as f64 };
        let rest = |value: &f32| f64::from(*value) - mean;
        let mut weight = vec![RIDGE; split.items()];
        let mut right = vec![0.0; split.items()];
        for (&item, value) in rows.items.iter().zip(&rows.values) {
            weight[item as usize] += 1.0;
            right[item as usize] += rest(value);
        }
        rows.eliminate(&rows.values, |_, value| rest(value), &mut right);
        let items = conjugate_gradients(&rows, &weight, right);
        let users = rows.users(&rows.values).map(|(rated, values)| {
            let sum: f64 = rated.iter().zip(values).map(|(&item, value)| rest(value) - items[item as usize]).sum();
            sum / (rated.len() as f64 + RIDGE)
        });
        Self { mean, users: users.collect(), items }
    }

    /// The predicted rating.
    ///
    /// # Panics
    /// If there is no such user or item.
    pub fn predict(&self, user: u32, item: u32) -> f64 {
        self.mean + self.users[user as usize] + self.items[item as usize]
    }

    /// How far the mean, and mean and biases, are from some ratings, given by user, item and value, each with whether
    /// its item has a training rating.
    pub fn errors(&self, ratings: impl Iterator<Item = (u32, u32, f32, bool)> + Clone) -> [(&'static str, Known); 2] {
        let of_mean = ratings.clone().map(|(_, _, value, is_seen)| (self.mean - f64::from(value), is_seen));
        let of_bias =
            ratings.map(|(user, item, value, is_seen)| (self.predict(user, item) - f64::from(value), is_seen));
        [("mean", Known::of(of_mean)), ("bias", Known::of(of_bias))]
    }
}

/// Solves `weight·x − (shared part of users) = right` for the items' biases.
fn conjugate_gradients(rows: &Rows, weight: &[f64], right: Vec<f64>) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut solution = vec![0.0; right.len()];
    let mut residual = right;
    let mut scaled: Vec<f64> = residual.iter().zip(weight).map(|(rest, weight)| rest / weight).collect();
    let mut direction = scaled.clone();
    let mut size = dot(&residual, &scaled);
    let enough = size * FALL;
    let mut image = vec![0.0; solution.len()];
    for _ in 0..STEPS_MAX {
        if size <= enough {
            break;
        }
        image.iter_mut().zip(weight.iter().zip(&direction)).for_each(|(out, (weight, x))| *out = weight * x);
        rows.eliminate(&rows.items, |_, &item| direction[item as usize], &mut image);
        let step = size / dot(&direction, &image);
        for item in 0..solution.len() {
            solution[item] += step * direction[item];
            residual[item] -= step * image[item];
            scaled[item] = residual[item] / weight[item];
        }
        let next = dot(&residual, &scaled);
        let keep = next / size;
        direction.iter_mut().zip(&scaled).for_each(|(out, scaled)| *out = scaled + keep * *out);
        size = next;
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::super::tests::split_of;
    use super::*;

    #[test]
    fn biases_of_two_users_and_two_items_by_hand() {
        // Training: (0, 0) = 5, (0, 1) = 3, (1, 0) = 4; the mean is 4. With a = b_u0, b = b_u1, c = b_i0, d = b_i1:
        // 7a + c + d = 0, 6b + c = 0, 7c + a + b = 1, 6d + a = −1. From the first two and the last,
        // a = (1 − 6c)/41, b = −c/6, and c(7 − 6/41 − 1/6) = 40/41.
        let split = split_of(&[(0, 0, 5.0), (0, 1, 3.0), (1, 0, 4.0), (1, 1, 2.0)], 1);
        let biases = Biases::fit(&split);
        let c = (40.0 / 41.0) / (7.0 - 6.0 / 41.0 - 1.0 / 6.0);
        let (a, b) = ((1.0 - 6.0 * c) / 41.0, -c / 6.0);
        let expected = [a, b, c, (-1.0 - a) / 6.0];
        for (found, expected) in biases.users.iter().chain(&biases.items).zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{biases:?}, {expected}");
        }
        let found = biases.errors([(1, 1, 2.0, true)].into_iter()).map(|(_, errors)| errors.seen.absolute);
        let difference = 2.0 - (4.0 + b + expected[3]);
        assert!(found[0] == 2.0 && (found[1] - difference.abs()).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn the_gradient_of_the_ridge_is_zero_at_the_biases() {
        let rows: Vec<(u32, u32, f32)> = (0..900)
            .map(|row| (row % 31, (row * 7 + row / 31) % 29, ((row * row + 3 * row) % 9) as f32 / 2.0))
            .filter(|&(user, item, _)| user != 5 && item != 7)
            .collect();
        let mut pairs = std::collections::BTreeSet::new();
        let rows: Vec<_> = rows.into_iter().filter(|&(user, item, _)| pairs.insert((user, item))).collect();
        let split = split_of(&rows, 40);
        let biases = Biases::fit(&split);
        let (mut of_users, mut of_items) = (vec![0.0; split.users()], vec![0.0; split.items()]);
        for rating in split.part(Part::Train) {
            let rest = f64::from(rating.value) - biases.predict(rating.user, rating.item);
            of_users[rating.user as usize] += rest;
            of_items[rating.item as usize] += rest;
        }
        let slopes = of_users.iter().zip(&biases.users).chain(of_items.iter().zip(&biases.items));
        assert!(slopes.map(|(rest, bias)| rest - 5.0 * bias).all(|slope| slope.abs() < 1e-9));
        let train = split.part(Part::Train).map(|rating| (rating.user, rating.item, rating.value, true));
        let [mean, bias] = biases.errors(train).map(|(_, errors)| errors.all.squares);
        assert!(bias < mean, "{bias}, {mean}");
    }

    #[test]
    fn popularity_ranks_by_training_count() {
        // Counts 2, 1, 0, 0 in training; user 2 is asked about item 1 after item 0.
        let split = split_of(&[(0, 0, 1.0), (1, 0, 1.0), (1, 1, 1.0), (0, 2, 1.0), (1, 3, 1.0), (0, 1, 1.0)], 3);
        let popularity = Popularity::new(&split);
        assert_eq!(popularity.scores(), [2.0, 1.0, 0.0, 0.0]);
        let (train, test) = (split.lists(Part::Train), split.lists(Part::Test));
        let means = popularity.evaluate(&train, &test, &[1], false);
        // User 0: candidates 1, 2, 3, relevant 1 and 2: pairs (1, 3) right, (2, 3) tied. User 1: 3 tied with 2.
        assert_eq!((means.users, means.values[0]), (2, (0.75 + 0.5) / 2.0));
        assert_eq!(means.values[1], (1.0 + 0.5) / 2.0);
    }

    #[test]
    fn without_ratings_to_learn_from_everything_is_zero() {
        let biases = Biases::fit(&split_of(&[(0, 0, 5.0), (0, 1, 3.0)], 2));
        assert_eq!(biases, Biases { mean: 0.0, users: vec![0.0], items: vec![0.0; 2] });
    }
}
