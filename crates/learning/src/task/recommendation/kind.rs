//! What makes scores of rows of users and items: what it has beside rows, how it begins, trains, scores and loses.

use crate::matrix_factorisation::{
    self as mf, BprTraining, FactorScores, Halves, ItemPanels, Neighbours, UserRows, initial_items, initial_user,
};
use crate::ncf::{self, Losses, NetworkScores, Outcome, Pull, Shape, xavier};
use crate::ranking::ScoreItems;
use crate::ratings::triplets::Triplet;
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
    /// A private network of each client, over both rows, and an item table that the server makes for each participant.
    Guided {
        /// Of the network, without a proxy; its dimensions are those of rows.
        shape: Shape,
        /// Weight of the pull towards that table; not negative.
        pull: f32,
    },
}

/// What a job has beside rows.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    /// Weights of networks that it was sent, or that its client keeps.
    pub weights: &'a [f32],
    /// The rows that those of its items are pulled to.
    pub targets: Option<&'a [f32]>,
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
    /// Trains one job.
    pub fn train(
        &mut self,
        kind: &Kind,
        settings: &BprTraining,
        (job, Beside { weights, targets }): (&mf::Job<'_>, Beside<'_>),
    ) -> &mut Outcome {
        let Self { rows, networks, halves, neighbours, outcome } = self;
        match kind {
            Kind::Products { .. } => rows.train(settings, job, &mut outcome.rows),
            Kind::Network(shape) => networks.train(shape, settings, (job, weights), outcome),
            Kind::Private => halves.train(rows, settings, job, &mut outcome.rows),
            Kind::Neighbours => neighbours.train(rows, settings, job, &mut outcome.rows),
            Kind::Guided { shape, pull } => {
                let pull = Some(Pull { weight: *pull, targets });
                networks.train_pulled(shape, settings, (job, weights, pull), outcome);
            }
        }
        outcome
    }
}

impl Kind {
    /// Names and shapes of the weights beside rows that travel, in their order.
    pub fn tensors(&self, dimensions: usize) -> Vec<(String, Vec<usize>)> {
        self.shape(dimensions).map_or_else(Vec::new, |shape| shape.tensors())
    }

    /// Names and shapes of the weights beside rows that everybody begins with, in their order.
    pub fn first_tensors(&self, dimensions: usize) -> Vec<(String, Vec<usize>)> {
        self.private_shape(dimensions).map_or_else(|| self.tensors(dimensions), |shape| shape.tensors())
    }

    /// The network that clients keep to themselves.
    pub(super) const fn private_shape(&self, dimensions: usize) -> Option<Shape> {
        match self {
            Self::Guided { shape, .. } => Some(Shape { dimensions, ..*shape }),
            _ => None,
        }
    }

    /// How many weights a client keeps to itself, beside rows.
    pub fn private_weights(&self, dimensions: usize) -> usize {
        self.private_shape(dimensions).map_or(0, |shape| shape.weights())
    }

    /// How many weights there are beside rows that travel.
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
            Self::Network(shape) | Self::Guided { shape, .. } => 12.0 * (shape.weights() + dimensions) as f64,
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
            Self::Network(_) | Self::Private | Self::Neighbours | Self::Guided { .. } => {
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
            Self::Network(_) | Self::Private | Self::Neighbours | Self::Guided { .. } => {
                xavier(&mut streams.stream(Purpose::ModelInit, user, 1), [users, row.len()], row);
            }
        }
    }

    /// Scores of all items for users whose rows and networks come from `users`.
    pub(super) fn scores<'a>(
        &self,
        dimensions: usize,
        (weights, table): (&[f32], &'a [f32]),
        users: &'a dyn UserModels,
    ) -> Box<dyn ScoreItems + 'a> {
        if let Some(shape) = self.private_shape(dimensions) {
            return Box::new(PrivateScores { shape, items: ItemPanels::of(table, dimensions), users });
        }
        match self.shape(dimensions) {
            Some(shape) => Box::new(NetworkScores::new(&shape, weights, &ItemPanels::of(table, dimensions), users)),
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
