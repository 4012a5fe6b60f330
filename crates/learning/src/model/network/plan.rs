//! Layouts and offsets in a worker's memory, for one network and batch size.

use super::Network;
use super::kernels::{Layout, whole_vectors};
use super::layer::{Layer, Op};
use super::ops::{ConvPlan, Dense, HalvingPlan};
use std::sync::Arc;

/// Layouts and offsets of a network's layers for one batch size.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The layers of the network.
    pub network: Arc<[Layer]>,
    pub batch: usize,
    pub layers: Vec<LayerPlan>,
    /// Numbers needed for outputs (and as many for slopes), for layers' states, and for work within a layer.
    pub activations: usize,
    pub state: usize,
    pub work: usize,
}

/// Layout and offsets of one layer.
#[derive(Clone, Debug)]
pub(super) struct LayerPlan {
    /// Layout of its output.
    pub layout: Layout,
    /// Where its output (and its slopes) begin and end.
    pub offset: usize,
    pub end: usize,
    /// Where its state begins.
    pub state: usize,
    pub detail: Detail,
}

/// Further plans of some layers.
#[derive(Clone, Debug)]
pub(super) enum Detail {
    None,
    Conv(Box<ConvPlan>),
    /// The convolution is part of the layer behind it, and has no output of its own.
    Inner,
    Halving(Box<HalvingPlan>),
    /// Where each feature of the input (of the output, for the input layer) starts.
    Features(Vec<u32>),
}

impl Plan {
    pub fn new(network: &Network, batch: usize) -> Self {
        let mut layers: Vec<LayerPlan> = Vec::with_capacity(network.layers.len());
        let (mut offset, mut state, mut work) = (0, 0, 0);
        let halved: Vec<usize> =
            network.layers.iter().filter_map(|layer| HalvingPlan::convolution(&network.layers, layer)).collect();
        for (number, layer) in network.layers.iter().enumerate() {
            let layout = Layout::new(layer.shape, batch);
            let input = layer.inputs.first().map_or(layout, |&input| layers[input].layout);
            let is_inner = halved.contains(&number);
            let (detail, layer_work, layer_state) = match &layer.op {
                Op::Conv(_) if is_inner => (Detail::Inner, 0, 0),
                Op::Conv(conv) => {
                    let plan = ConvPlan::new(conv, input, layout);
                    let work = plan.work();
                    (Detail::Conv(Box::new(plan)), work, 0)
                }
                Op::Dense(_) => (Detail::Features(input.features()), Dense::work(input, layer.shape.channels), 0),
                Op::Input | Op::Embedding(_) => (Detail::Features(input.features()), 0, 0),
                Op::BatchNorm(_) => (Detail::None, 0, 2 * layer.shape.channels),
                Op::GroupNorm(norm) => (Detail::None, 0, norm.state(batch)),
                Op::Dropout(_) => (Detail::None, 0, layout.len()),
                Op::Pool(_) => match HalvingPlan::new(&network.layers, layer, |number| layers[number].layout, layout) {
                    Some(plan) => {
                        let (work, state) = (plan.work(), plan.state());
                        (Detail::Halving(Box::new(plan)), work, state)
                    }
                    None => (Detail::None, 0, 0),
                },
                Op::Activation(_) | Op::Add { .. } => (Detail::None, 0, 0),
            };
            let end = if is_inner { offset } else { offset + layout.len() };
            layers.push(LayerPlan { layout, offset, end, state, detail });
            offset = end;
            state += whole_vectors(layer_state);
            work = work.max(layer_work);
        }
        let output = layers[layers.len() - 1].layout;
        Self {
            network: network.layers.clone(),
            batch,
            layers,
            activations: offset,
            state,
            work: work.max(2 * output.row),
        }
    }
}
