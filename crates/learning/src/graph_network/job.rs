//! A client's training: steps on batches of its ratings, messages over its whole graph.

use super::{Network, Pairs, Scratch};
use crate::lanes::Path;
use crate::layout::Update;
use crate::local::Tally;
use crate::trainer::{Buffers, DenseJob, Slopes};

/// What a thread reuses from job to job.
#[derive(Debug, Default)]
pub struct Worker {
    /// Of the network.
    pub scratch: Scratch,
    losses: Vec<f32>,
    order: Vec<u32>,
    buffers: Buffers,
}

/// What a network loses on ratings.
struct Ratings<'a> {
    network: &'a Network<'a>,
    pairs: &'a Pairs,
    losses: &'a mut Vec<f32>,
    scratch: &'a mut Scratch,
}

impl Slopes for Ratings<'_> {
    fn slopes(
        &mut self,
        parameters: &mut [f32],
        batch: &[u32],
        gradient: &mut [f32],
        tally: Option<&mut Tally>,
    ) -> bool {
        let Self { network, pairs, losses, scratch } = self;
        let loss = network.loss_and_gradient(parameters, (pairs, batch), gradient, losses, scratch);
        if let Some(tally) = tally {
            losses.iter().for_each(|&loss| tally.tell(loss.into()));
        }
        loss.is_finite()
    }
}

impl Worker {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { scratch: Scratch::on(path), ..Self::default() }
    }

    /// Does a job on some training ratings.
    ///
    /// # Panics
    /// If a length does not fit, or a setting is out of its range.
    pub fn train(&mut self, network: &Network<'_>, pairs: &Pairs, job: &DenseJob<'_>, update: &mut Update) {
        let Self { scratch, losses, order, buffers } = self;
        list(pairs, order);
        job.train(order, &mut Ratings { network, pairs, losses, scratch }, buffers, update);
    }

    /// Replaces `gradient` by the mean gradient of a job; false without ratings.
    ///
    /// # Panics
    /// As [`Worker::train`].
    pub fn gradient(
        &mut self,
        network: &Network<'_>,
        pairs: &Pairs,
        job: &DenseJob<'_>,
        gradient: &mut Vec<f32>,
    ) -> bool {
        let Self { scratch, losses, order, buffers } = self;
        list(pairs, order);
        job.gradient(order, &mut Ratings { network, pairs, losses, scratch }, buffers, gradient)
    }
}

fn list(pairs: &Pairs, order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..pairs.ends.len() as u32);
}
