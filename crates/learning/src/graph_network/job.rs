//! A client's training: steps on batches of its ratings, messages over its whole graph.

use super::{Network, Pairs, Scratch};
use crate::lanes::Path;
use crate::local::Told;
use crate::trainer::{Buffers, DenseJob, Slopes, Wanted};

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
    fn slopes(&mut self, parameters: &mut [f32], batch: &[u32], gradient: &mut [f32], tally: Told<'_>) -> bool {
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

    /// Does a job on some training ratings, or works out its mean gradient.
    ///
    /// # Panics
    /// If a length does not fit, or a setting is out of its range.
    pub fn run(&mut self, network: &Network<'_>, pairs: &Pairs, job: &DenseJob<'_>, mut wanted: Wanted<'_>) {
        let Self { scratch, losses, order, buffers } = self;
        order.clear();
        order.extend(0..pairs.ends.len() as u32);
        job.run(order, &mut Ratings { network, pairs, losses, scratch }, buffers, &mut wanted);
    }
}
