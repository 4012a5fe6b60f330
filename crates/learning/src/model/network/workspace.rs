//! Memory of a worker that trains or evaluates networks.

use super::Network;
use super::plan::Plan;
use crate::lanes::{LANES, Path};
use std::sync::Arc;

/// Numbers that start at a multiple of 64 bytes.
#[derive(Clone, Debug, Default)]
struct Aligned {
    storage: Vec<f32>,
}

impl Aligned {
    /// At least `count` numbers; grows where it has to, with zeros.
    fn at_least(&mut self, count: usize) -> &mut [f32] {
        let needed = count + LANES;
        if self.storage.len() < needed {
            // The new memory may be aligned in another way, so nothing is kept.
            self.storage = vec![0.0; needed];
        }
        let skipped = self.storage.as_ptr().align_offset(64).min(LANES);
        &mut self.storage[skipped..][..count]
    }
}

/// A worker's buffers from step to step: layouts of the batch sizes it met, and the numbers of the largest.
///
/// Its contents mean nothing between steps, but for the layouts. After a step whose loss was not finite it should be
/// dropped: its padding may not be finite either.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The processor features that kernels are compiled for.
    pub path: Path,
    plans: Vec<Plan>,
    activations: Aligned,
    slopes: Aligned,
    state: Aligned,
    work: Aligned,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::on(Path::detect())
    }
}

/// A worker's memory, divided for a batch size.
pub(super) struct Parts<'a> {
    pub path: Path,
    pub plan: &'a Plan,
    pub activations: &'a mut [f32],
    pub slopes: &'a mut [f32],
    pub state: &'a mut [f32],
    pub work: &'a mut [f32],
}

impl Workspace {
    /// Empty, for kernels on a path.
    pub fn on(path: Path) -> Self {
        let empty = Aligned::default;
        Self { path, plans: Vec::new(), activations: empty(), slopes: empty(), state: empty(), work: empty() }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let buffers = [&self.activations, &self.slopes, &self.state, &self.work];
        4 * buffers.iter().map(|buffer| buffer.storage.len()).sum::<usize>()
    }

    /// The memory for a batch of this size.
    pub(super) fn parts(&mut self, network: &Network, batch: usize) -> Parts<'_> {
        let is_for = |plan: &Plan| Arc::ptr_eq(&plan.network, &network.layers) && plan.batch == batch;
        let index = self.plans.iter().position(is_for).unwrap_or_else(|| {
            self.plans.push(Plan::new(network, batch));
            self.plans.len() - 1
        });
        let plan = &self.plans[index];
        Parts {
            path: self.path,
            activations: self.activations.at_least(plan.activations),
            slopes: self.slopes.at_least(plan.activations),
            state: self.state.at_least(plan.state),
            work: self.work.at_least(plan.work),
            plan,
        }
    }
}
