//! Scores and losses of models of rows, and the weights that they have beside rows.

use super::RowRecommender;
use crate::matrix_factorisation::{FactorScores, ItemPanels, UserRows};
use crate::ncf::{Losses, NetworkScores, Shape};
use crate::ranking::ScoreItems;
use crate::ratings::triplets::Triplet;
use fedgenie_core::math::float;

impl dyn RowRecommender + '_ {
    /// Names and shapes of the weights beside rows that travel, in their order.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        self.network().map_or_else(Vec::new, |shape| shape.tensors())
    }

    /// Names and shapes of the weights beside rows that everybody begins with, in their order.
    pub fn first_tensors(&self) -> Vec<(String, Vec<usize>)> {
        self.private_network().map_or_else(|| self.tensors(), |shape| shape.tensors())
    }

    /// How many weights there are beside rows that travel.
    pub fn weights(&self) -> usize {
        self.network().map_or(0, |shape| shape.weights())
    }

    /// How many weights a client keeps to itself, beside rows.
    pub fn private_weights(&self) -> usize {
        self.private_network().map_or(0, |shape| shape.weights())
    }

    /// Whether the losses of examples are predicted.
    pub fn has_proxy(&self) -> bool {
        self.network().is_some_and(|shape| shape.proxy.is_some())
    }

    /// Operations for an example, roughly.
    pub(super) fn operations(&self) -> f64 {
        match self.network().or_else(|| self.private_network()) {
            Some(shape) => 12.0 * (shape.weights() + self.dimensions()) as f64,
            None => 20.0 * self.dimensions() as f64,
        }
    }

    /// Scores of all items for users whose rows and networks come from `users`.
    pub(super) fn scores<'a>(
        &self,
        (weights, table): (&[f32], &'a [f32]),
        users: &'a dyn UserModels,
    ) -> Box<dyn ScoreItems + 'a> {
        let dimensions = self.dimensions();
        match (self.private_network(), self.network()) {
            (Some(shape), _) => Box::new(PrivateScores { shape, items: ItemPanels::of(table, dimensions), users }),
            (None, Some(shape)) => {
                Box::new(NetworkScores::new(&shape, weights, &ItemPanels::of(table, dimensions), users))
            }
            (None, None) => Box::new(FactorScores::new(table, dimensions, users)),
        }
    }

    /// A model whose losses are asked for, of many examples if `many`.
    pub(super) fn losses<'a>(&self, (weights, table): (&'a [f32], &'a [f32]), many: bool) -> AskedModel<'a> {
        match self.network() {
            None => AskedModel::Products { table, dimensions: self.dimensions() },
            Some(shape) if many => AskedModel::Network(Losses::new(&shape, weights, table, None)),
            Some(shape) => AskedModel::Few { shape, weights, table },
        }
    }
}

/// A model whose losses are asked for.
pub(super) enum AskedModel<'a> {
    /// Of products of rows.
    Products { table: &'a [f32], dimensions: usize },
    /// All items have passed the first layer.
    Network(Losses),
    /// Few items are asked for, which pass it then.
    Few { shape: Shape, weights: &'a [f32], table: &'a [f32] },
}

/// Where users' rows come from, and the networks that their clients keep to themselves.
pub(super) trait UserModels: UserRows {
    /// The weights of a user's network.
    fn network(&self, user: u32) -> &[f32];
}

/// A model in which every user has a network.
struct PrivateScores<'a> {
    shape: Shape,
    items: ItemPanels,
    users: &'a dyn UserModels,
}

impl ScoreItems for PrivateScores<'_> {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        for (&user, scores) in users.iter().zip(scores.chunks_exact_mut(self.items.items)) {
            let network = self.users.network(user);
            NetworkScores::new(&self.shape, network, &self.items, self.users).score(&[user], scores);
        }
    }
}

impl AskedModel<'_> {
    /// Tells the loss of each triplet, and the prediction of the proxy, NaN without one; `users` are rows as they are
    /// seen.
    pub fn each(&self, users: &[f32], triplets: &[Triplet], mut tell: impl FnMut(f64, f64)) {
        match self {
            Self::Network(losses) => {
                losses.each(users, triplets, |loss, predicted| tell(f64::from(loss), f64::from(predicted)));
            }
            Self::Few { shape, weights, table } => {
                let both = |triplet: &Triplet| [triplet.positive, triplet.negative];
                let mut items: Vec<u32> = triplets.iter().flat_map(both).collect();
                items.sort_unstable();
                items.dedup();
                let losses = Losses::new(shape, weights, table, Some(items));
                losses.each(users, triplets, |loss, predicted| tell(f64::from(loss), f64::from(predicted)));
            }
            &Self::Products { table, dimensions } => {
                for &Triplet { user, positive, negative } in triplets {
                    let row =
                        |table: &[f32], number: u32, at: usize| f64::from(table[number as usize * dimensions + at]);
                    let term = |at: usize| row(users, user, at) * (row(table, positive, at) - row(table, negative, at));
                    let x: f64 = (0..dimensions).map(term).sum();
                    tell((-x).max(0.0) + float::ln_1p(float::exp(-x.abs())), f64::NAN);
                }
            }
        }
    }
}
