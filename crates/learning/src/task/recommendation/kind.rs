//! What makes scores of rows of users and items: what it has beside rows, how it begins, trains, scores and loses.

use crate::matrix_factorisation::{
    self as mf, BprTraining, FactorScores, Halves, Neighbours, UserRows, initial_items, initial_user,
};
use crate::ncf::{self, Losses, NetworkScores, Outcome, Shape, xavier};
use crate::ranking::ScoreItems;
use crate::ratings::triplets::Triplet;
use crate::trainer::Optimizer;
use fedgenie_core::math::float;
use fedgenie_core::rng::{Purpose, Streams};

/// What makes scores of rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// The product of a user's and an item's row ([`matrix_factorisation`](mf)), which begin with numbers from `N(0,
    /// deviation²)`.
    Products {
        /// Standard deviation of the numbers of first rows.
        deviation: f64,
    },
    /// A network over both rows ([`ncf`]), whose dimensions are those of rows.
    Network(Shape),
    /// A private score function of each user: [`Halves`].
    Private,
    /// Products with users who are seen with their items: [`Neighbours`].
    Neighbours,
}

/// What a thread reuses from job to job.
#[derive(Default)]
pub(super) struct Trainers {
    rows: mf::Worker,
    networks: ncf::Worker,
    halves: Halves,
    neighbours: Neighbours,
    outcome: Outcome,
}

impl Trainers {
    /// Trains one job, with the weights of networks that it was sent.
    pub fn train(
        &mut self,
        kind: &Kind,
        (settings, optimizer): (&BprTraining, &Optimizer),
        (job, weights): (&mf::Job<'_>, &[f32]),
    ) -> &mut Outcome {
        let Self { rows, networks, halves, neighbours, outcome } = self;
        match kind {
            Kind::Products { .. } => rows.train(settings, job, &mut outcome.rows),
            Kind::Network(shape) => networks.train(shape, (settings, optimizer), (job, weights), outcome),
            Kind::Private => halves.train(rows, settings, job, &mut outcome.rows),
            Kind::Neighbours => neighbours.train(rows, settings, job, &mut outcome.rows),
        }
        outcome
    }
}

impl Kind {
    /// Names and shapes of the weights beside rows, in their order.
    pub fn tensors(&self, dimensions: usize) -> Vec<(String, Vec<usize>)> {
        self.shape(dimensions).map_or_else(Vec::new, |shape| shape.tensors())
    }

    /// How many weights there are beside rows.
    pub fn weights(&self, dimensions: usize) -> usize {
        self.shape(dimensions).map_or(0, |shape| shape.weights())
    }

    fn shape(&self, dimensions: usize) -> Option<Shape> {
        match self {
            Self::Network(shape) => Some(Shape { dimensions, ..*shape }),
            _ => None,
        }
    }

    /// Whether users are seen with their items.
    pub(super) const fn has_neighbours(&self) -> bool {
        matches!(self, Self::Neighbours)
    }

    /// Whether the losses of examples are predicted.
    pub(super) const fn has_proxy(&self) -> bool {
        matches!(self, Self::Network(Shape { proxy: Some(_), .. }))
    }

    /// Operations for an example, roughly.
    pub(super) fn operations(&self, dimensions: usize) -> f64 {
        match self {
            Self::Network(shape) => 12.0 * (shape.weights() + dimensions) as f64,
            _ => 20.0 * dimensions as f64,
        }
    }

    /// Writes what a run starts from: weights of networks, and the item table.
    pub(super) fn first_model(&self, dimensions: usize, streams: &Streams, weights: &mut [f32], table: &mut [f32]) {
        let items = table.len() / dimensions;
        match self {
            Self::Products { deviation } => {
                table.copy_from_slice(&initial_items(items, dimensions, *deviation, streams));
            }
            Self::Network(_) | Self::Private | Self::Neighbours => {
                xavier(&mut streams.stream(Purpose::ModelInit, 0, 0), [items, dimensions], table);
            }
        }
        if let Some(shape) = self.shape(dimensions) {
            shape.init(streams, weights);
        }
    }

    /// Writes the row that one of so many users begins with.
    pub(super) fn first_user(&self, user: u32, users: usize, streams: &Streams, row: &mut [f32]) {
        match self {
            Self::Products { deviation } => initial_user(user, *deviation, streams, row),
            Self::Network(_) | Self::Private | Self::Neighbours => {
                xavier(&mut streams.stream(Purpose::ModelInit, user, 1), [users, row.len()], row);
            }
        }
    }

    /// Scores of all items for users whose rows come from `users`.
    pub(super) fn scores<'a>(
        &self,
        dimensions: usize,
        (weights, table): (&[f32], &[f32]),
        users: &'a dyn UserRows,
    ) -> Box<dyn ScoreItems + 'a> {
        match self.shape(dimensions) {
            Some(shape) => Box::new(NetworkScores::new(&shape, weights, table, users)),
            None => Box::new(FactorScores::new(table, dimensions, users)),
        }
    }

    /// A model whose losses are asked for, of many examples if `many`.
    pub(super) fn losses<'a>(
        &self,
        dimensions: usize,
        (weights, table): (&'a [f32], &'a [f32]),
        many: bool,
    ) -> AskedModel<'a> {
        match self.shape(dimensions) {
            None => AskedModel::Products { table, dimensions },
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
