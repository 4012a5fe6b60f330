//! Loss and slopes of a batch, block by block.

use super::attention::CHANNELS;
use super::block::{Block, Setting, Users};
use super::distance::{Blocks, Distances};
use super::projection::{LayerSlopes, Layers, Noise, room};
use super::{Features, LayerPlaces, Objective, Shape, part};
use crate::lanes::{LANES, Lanes, Path};
use fedgenie_core::rng::StreamRng;

/// The tensors of a parameter vector.
pub(super) struct Weights<'a> {
    pub users: &'a [f32],
    pub items: &'a [f32],
    modes: [Option<(usize, Layers<'a>)>; 2],
    /// Hidden × the blocks of all channels.
    pub attention: &'a [f32],
    pub attention_bias: &'a [f32],
    /// Channels × hidden.
    pub second: &'a [f32],
    pub second_bias: &'a [f32],
}

impl<'a> Weights<'a> {
    pub fn of(shape: &Shape, parameters: &'a [f32]) -> Self {
        let mut modes = [None; 2];
        for (slot, places) in modes.iter_mut().zip(shape.modes()) {
            let LayerPlaces { mode, width, first, first_bias, second, second_bias, .. } = places;
            *slot = Some((
                mode,
                Layers {
                    first: &parameters[part(first, shape.hidden * width)],
                    first_bias: &parameters[part(first_bias, shape.hidden)],
                    second: &parameters[part(second, shape.dim * shape.hidden)],
                    second_bias: &parameters[part(second_bias, shape.dim)],
                },
            ));
        }
        let [first, first_bias, second, second_bias, end] = shape.attention_places();
        Self {
            users: &parameters[part(0, shape.users * shape.dim)],
            items: &parameters[part(shape.items_at(), shape.items * shape.dim)],
            modes,
            attention: &parameters[first..first_bias],
            attention_bias: &parameters[first_bias..second],
            second: &parameters[second..second_bias],
            second_bias: &parameters[second_bias..end],
        }
    }

    /// The layers of channels with features, and which of [`MODES`](super::MODES) each is.
    pub fn modes(&self) -> impl Iterator<Item = (usize, Layers<'a>)> {
        self.modes.into_iter().flatten()
    }
}

/// The slopes of the tensors.
pub(super) struct Slopes<'a> {
    pub users: &'a mut [f32],
    pub items: &'a mut [f32],
    pub modes: [Option<LayerSlopes<'a>>; 2],
    pub attention: &'a mut [f32],
    pub attention_bias: &'a mut [f32],
    pub second: &'a mut [f32],
    pub second_bias: &'a mut [f32],
}

impl<'a> Slopes<'a> {
    fn of(shape: &Shape, gradient: &'a mut [f32]) -> Self {
        let mut rest = gradient;
        let mut next = |len: usize| rest.split_off_mut(..len).expect("a gradient has one slope for each parameter");
        let (users, items) = (next(shape.users * shape.dim), next(shape.items * shape.dim));
        let mut modes = [None, None];
        for (slot, places) in modes.iter_mut().zip(shape.modes()) {
            let first = next(shape.hidden * places.width);
            let first_bias = next(shape.hidden);
            let second = next(shape.dim * shape.hidden);
            *slot = Some(LayerSlopes { first, first_bias, second, second_bias: next(shape.dim) });
        }
        let channels = shape.channels();
        let attention = next(shape.attention * channels * shape.width());
        let attention_bias = next(shape.attention);
        let second = next(channels * shape.attention);
        Self { users, items, modes, attention, attention_bias, second, second_bias: next(channels) }
    }
}

/// Examples: positive pairs, each with the same number of negatives.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The user of each pair.
    pub users: &'a [u32],
    /// The item of each.
    pub positives: &'a [u32],
    /// The first negative of each, then the second of each, and so on.
    pub negatives: &'a [u32],
}

/// The loss of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Mean over its examples.
    pub ranking: f64,
    /// Mean distance correlation over channels and pairs of factors.
    pub correlation: f64,
}

/// A thread's buffers from batch to batch.
#[derive(Debug, Default)]
pub struct Scratch {
    path: Path,
    users: Users,
    positives: Block,
    negatives: Block,
    distances: Distances,
    /// Sums of the slopes of the attention's second layer.
    sums: Vec<Lanes>,
}

impl Scratch {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { path, ..Self::default() }
    }

    /// The processor features that kernels are compiled for.
    pub const fn path(&self) -> Path {
        self.path
    }
}

/// A model of some shape, with features of items.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// How large its parts are.
    pub shape: &'a Shape,
    /// Features of all items.
    pub features: &'a Features,
}

/// Numbers from a row of columns to the next: an odd number of vectors, so that rows do not share cache sets.
pub(super) const fn stride_of(columns: usize) -> usize {
    (columns.div_ceil(LANES) | 1) * LANES
}

impl Network<'_> {
    fn setting<'a>(&'a self, path: Path, weights: &'a Weights<'a>, columns: usize) -> Setting<'a> {
        Setting { path, shape: self.shape, weights, features: self.features, stride: stride_of(columns) }
    }

    /// The loss of each example of a batch, without dropout.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn losses(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        objective: &Objective,
        losses: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) {
        let count = batch.users.len();
        let weights = Weights::of(self.shape, parameters);
        let setting = self.setting(scratch.path, &weights, count);
        let Scratch { users, positives, negatives, .. } = scratch;
        users.forward(&setting, batch.users, false);
        positives.forward(&setting, users, batch.positives, None);
        losses.clear();
        losses.resize(count, 0.0);
        for ids in batch.negatives.chunks_exact(count) {
            negatives.forward(&setting, users, ids, None);
            let scores = positives.scores.iter().zip(&negatives.scores);
            for (loss, (positive, negative)) in losses.iter_mut().zip(scores) {
                *loss += (objective.margin - positive + negative).max(0.0);
            }
        }
        let share = 1.0 / objective.negatives as f32;
        losses.iter_mut().for_each(|loss| *loss *= share);
    }

    /// The loss of a batch and of each of its examples; the slopes of the batch's loss overwrite `gradient`. Dropout
    /// draws from `noise`: for each block, for text before images.
    ///
    /// # Panics
    /// If a length does not fit, or the batch is empty.
    pub fn loss_and_gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        objective: &Objective,
        gradient: &mut [f32],
        noise: &mut StreamRng,
        (losses, scratch): (&mut Vec<f32>, &mut Scratch),
    ) -> Loss {
        let Self { shape, .. } = *self;
        let count = batch.users.len();
        assert!(count > 0 && batch.positives.len() == count, "a batch has examples");
        assert_eq!(batch.negatives.len(), count * objective.negatives, "each example has its negatives");
        let weights = Weights::of(shape, parameters);
        let setting = self.setting(scratch.path, &weights, count);
        gradient.fill(0.0);
        let mut slopes = Slopes::of(shape, gradient);
        let mut noise = Noise::new(objective.dropout, noise);
        let Scratch { path, users, positives, negatives, distances, sums } = scratch;
        sums.clear();
        sums.resize(CHANNELS * (shape.attention + 1), Lanes::ZERO);
        users.forward(&setting, batch.users, true);
        for block in [&mut *positives, &mut *negatives] {
            block.begin(shape);
            room(&mut block.score_slopes, setting.stride);
            block.score_slopes.fill(0.0);
        }
        positives.forward(&setting, users, batch.positives, noise.as_mut());
        losses.clear();
        losses.resize(count, 0.0);
        let (share, weight) = (1.0 / objective.negatives as f32, 1.0 / batch.negatives.len() as f32);
        for ids in batch.negatives.chunks_exact(count) {
            negatives.forward(&setting, users, ids, noise.as_mut());
            for (index, loss) in losses.iter_mut().enumerate() {
                let short = objective.margin - positives.scores[index] + negatives.scores[index];
                // NaN is a loss as well.
                *loss += if short <= 0.0 { 0.0 } else { short };
                let slope = if short > 0.0 { weight } else { 0.0 };
                negatives.score_slopes[index] = slope;
                positives.score_slopes[index] -= slope;
            }
            negatives.backward(&setting, users, ids, sums, &mut slopes);
            negatives.finish(&setting, ids, &mut slopes);
        }
        losses.iter_mut().for_each(|loss| *loss *= share);
        positives.backward(&setting, users, batch.positives, sums, &mut slopes);
        let correlation = {
            let Self { shape, .. } = *self;
            let (dim, stride) = (shape.dim, setting.stride);
            let pairs = shape.factors * (shape.factors - 1) / 2;
            let parts = (shape.channels() * pairs).max(1) as f64;
            let weight = objective.disentangle / parts;
            let blocks = |values| Blocks { values, stride, width: shape.width(), factors: shape.factors, rows: count };
            let mut sum = distances.add(*path, &blocks(&users.values[..]), weight, &mut users.slopes);
            for channel in 0..shape.channels() - 1 {
                let at = channel * dim * stride;
                let values = &positives.values[at..];
                sum += distances.add(*path, &blocks(values), weight, &mut positives.slopes[at..]);
            }
            sum / parts
        };
        positives.finish(&setting, batch.positives, &mut slopes);
        users.backward(&setting, batch.users, &mut slopes);
        for block in [&*negatives, &*positives] {
            block.write(shape, &mut slopes);
        }
        for (slope, sum) in slopes.second.iter_mut().zip(&*sums) {
            *slope = sum.sum();
        }
        for (slope, sum) in slopes.second_bias.iter_mut().zip(&sums[CHANNELS * shape.attention..]) {
            *slope = sum.sum();
        }
        let ranking = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / count as f64;
        Loss { ranking, correlation }
    }
}
