//! The passes over the layers: forward, and backward.

use super::kernels::Layout;
use super::kernels::turn::Load;
use super::layer::{Layer, Op};
use super::ops::activation::{ActivationBackward, ActivationForward};
use super::ops::group_norm::{GroupNormBackward, GroupNormForward};
use super::ops::norm::{BatchNormBackward, BatchNormEvaluate, BatchNormForward};
use super::ops::pool::{PoolBackward, PoolForward};
use super::ops::{Dropout, Prepare, Sum, add_into, cross_entropy, predictions, squared_error};
use super::plan::{Detail, LayerPlan, Plan};
use super::workspace::Parts;
use super::{Loss, Network};
use crate::data::Dataset;
use crate::lanes::{Path, run};
use crate::model::{Evaluation, Scratch};
use fedgenie_core::rng::StreamRng;

/// Whether layers behave as in training; with the random numbers for it, and the running statistics.
enum Mode<'a> {
    Train { noise: &'a mut StreamRng, running: &'a mut [f32] },
    Evaluate { running: &'a [f32] },
}

/// The features that a layer's input starts at.
fn features(plan: &LayerPlan) -> &[u32] {
    let Detail::Features(features) = &plan.detail else { unreachable!("the plan of this layer lists features") };
    features
}

fn forward(network: &Network, parameters: &[f32], mode: &mut Mode<'_>, parts: &mut Parts<'_>) {
    let Parts { path, plan, activations, state, work, .. } = parts;
    for (layer, place) in network.layers.iter().zip(&plan.layers).skip(1) {
        let (before, after) = activations.split_at_mut(place.offset);
        let out = &mut after[..place.layout.len()];
        forward_layer(layer, place, plan, parameters, mode, (before, out), &mut state[place.state..], work, *path);
    }
}

#[expect(clippy::too_many_arguments, reason = "a pass needs all of them")]
fn forward_layer(
    layer: &Layer,
    place: &LayerPlan,
    plan: &Plan,
    parameters: &[f32],
    mode: &mut Mode<'_>,
    (before, out): (&[f32], &mut [f32]),
    state: &mut [f32],
    work: &mut [f32],
    path: Path,
) {
    let from = &plan.layers[layer.inputs[0]];
    let (layout, input) = (place.layout, &before[from.offset..from.end]);
    match (&layer.op, &place.detail) {
        (Op::Conv(conv), Detail::Conv(plan)) => conv.forward(plan, parameters, input, out, work, path),
        (Op::Dense(dense), Detail::Features(features)) => {
            dense.forward(features, layout, parameters, input, out, path);
        }
        (Op::Embedding(embedding), Detail::Features(features)) => {
            embedding.forward(features, layout, parameters, input, out);
        }
        (Op::Pool(pool), _) => {
            run(path, PoolForward { pool: *pool, layouts: (from.layout, layout), input, out });
        }
        (Op::Activation(activation), _) => {
            run(path, ActivationForward { activation: *activation, input, out });
        }
        (Op::BatchNorm(norm), _) => match mode {
            Mode::Train { running, .. } => {
                run(path, BatchNormForward { norm: *norm, layout, parameters, running, input, state, out });
            }
            Mode::Evaluate { running } => {
                run(path, BatchNormEvaluate { norm: *norm, layout, parameters, running, input, out });
            }
        },
        (Op::GroupNorm(norm), _) => {
            run(path, GroupNormForward { norm: *norm, layout, parameters, input, state, out });
        }
        (Op::Add { relu }, _) => {
            let other = &plan.layers[layer.inputs[1]];
            run(path, Sum { one: input, two: &before[other.offset..other.end], out, relu: *relu });
        }
        (Op::Dropout(dropout), _) => match mode {
            Mode::Train { noise, .. } => dropout.forward(layout, noise, input, state, out),
            Mode::Evaluate { .. } => out.copy_from_slice(input),
        },
        (Op::Input | Op::Conv(_) | Op::Dense(_) | Op::Embedding(_), _) => unreachable!("every layer has its plan"),
    }
}

fn backward(network: &Network, parameters: &[f32], gradient: &mut [f32], parts: &mut Parts<'_>) {
    let Parts { path, plan, activations, slopes, state, work } = parts;
    for (layer, place) in network.layers.iter().zip(&plan.layers).skip(1).rev() {
        if !layer.passes_gradient {
            continue;
        }
        let (before, after) = slopes.split_at_mut(place.offset);
        let own = &mut after[..place.layout.len()];
        // Slopes through a ReLU, and their sums where a layer adds something to each channel.
        let shift = match &layer.op {
            Op::Conv(conv) => conv.bias,
            Op::Dense(dense) => Some(dense.bias),
            Op::BatchNorm(norm) => Some(norm.shift),
            Op::GroupNorm(norm) => Some(norm.shift),
            _ => None,
        };
        if shift.is_some() || layer.op.has_relu() || matches!(layer.op, Op::Conv(_)) {
            let output = layer.op.has_relu().then(|| &activations[place.offset..place.end]);
            let sums = shift.map(|shift| &mut gradient[shift..][..place.layout.shape.channels]);
            run(*path, Prepare { layout: place.layout, output, slopes: &mut *own, sums });
        }
        let passes = Passes { parameters, activations, before, own, gradient, state, work, path: *path };
        backward_layer(network, layer, place, plan, passes);
    }
}

struct Passes<'a> {
    parameters: &'a [f32],
    activations: &'a [f32],
    /// Slopes of the layers before.
    before: &'a mut [f32],
    /// Slopes of the layer.
    own: &'a mut [f32],
    gradient: &'a mut [f32],
    state: &'a mut [f32],
    work: &'a mut [f32],
    path: Path,
}

fn backward_layer(network: &Network, layer: &Layer, place: &LayerPlan, plan: &Plan, passes: Passes<'_>) {
    let Passes { parameters, activations, before, own, gradient, state, work, path } = passes;
    let state = &mut state[place.state..];
    let from = &plan.layers[layer.inputs[0]];
    let input = &activations[from.offset..from.end];
    let layout = place.layout;
    let add = layer.adds_gradient[0];
    let is_needed = network.layers[layer.inputs[0]].passes_gradient;
    match (&layer.op, &place.detail) {
        (Op::Conv(conv), Detail::Conv(plan)) => {
            conv.weight_gradient(plan, input, own, gradient, work, path);
            if is_needed {
                conv.input_gradient(plan, parameters, own, &mut before[from.offset..from.end], add, work, path);
            }
        }
        (Op::Dense(dense), Detail::Features(features)) => {
            dense.weight_gradient(features, layout, input, own, gradient, work, path);
            if is_needed {
                let out = &mut before[from.offset..from.end];
                dense.input_gradient(features, layout, parameters, own, out, add, work, path);
            }
        }
        (Op::Embedding(embedding), Detail::Features(features)) => {
            embedding.weight_gradient(features, layout, input, own, gradient);
        }
        (Op::BatchNorm(norm), _) => {
            let out = is_needed.then(|| (&mut before[from.offset..from.end], add));
            run(path, BatchNormBackward { norm: *norm, layout, parameters, input, state, slopes: own, gradient, out });
        }
        (Op::GroupNorm(norm), _) => {
            let out = is_needed.then(|| (&mut before[from.offset..from.end], add));
            run(path, GroupNormBackward { norm: *norm, layout, parameters, input, state, slopes: own, gradient, out });
        }
        (Op::Pool(pool), _) => {
            let out = &mut before[from.offset..from.end];
            let output = &activations[place.offset..place.end];
            let layouts = (from.layout, layout);
            run(path, PoolBackward { pool: *pool, layouts, input, output, slopes: own, add, out });
        }
        (Op::Activation(activation), _) => {
            let out = &mut before[from.offset..from.end];
            let output = &activations[place.offset..place.end];
            run(path, ActivationBackward { activation: *activation, input, output, slopes: own, add, out });
        }
        (Op::Add { .. }, _) => {
            for (&input, &add) in layer.inputs.iter().zip(&layer.adds_gradient) {
                if network.layers[input].passes_gradient {
                    let from = &plan.layers[input];
                    run(path, add_into(own, &mut before[from.offset..from.end], add));
                }
            }
        }
        (Op::Dropout(_), _) => Dropout::backward(state, own, &mut before[from.offset..from.end], add),
        (Op::Input | Op::Conv(_) | Op::Dense(_) | Op::Embedding(_), _) => unreachable!("every layer has its plan"),
    }
}

/// Sum of losses, with the derivatives of their mean as the slopes of the last layer.
fn loss(network: &Network, data: &Dataset, batch: &[u32], parts: &mut Parts<'_>) -> f64 {
    let last = &parts.plan.layers[network.layers.len() - 1];
    let outputs = &parts.activations[last.offset..last.end];
    let slopes = &mut parts.slopes[last.offset..last.end];
    match network.loss {
        Loss::CrossEntropy => {
            let labels = batch.iter().map(|&example| labels(data)[example as usize]);
            cross_entropy(last.layout, outputs, labels, slopes, parts.work, parts.path)
        }
        Loss::SquaredError => {
            let targets = batch.iter().map(|&example| values(data)[example as usize]);
            squared_error(last.layout, outputs, targets, slopes)
        }
    }
}

fn labels(data: &Dataset) -> &[u8] {
    data.classes().expect("this loss needs classes as targets").0
}

fn values(data: &Dataset) -> &[f32] {
    data.values().expect("this loss needs numbers as targets")
}

/// One step's mean loss and gradient.
pub(super) fn train(
    network: &Network,
    parameters: &mut [f32],
    data: &Dataset,
    batch: &[u32],
    gradient: &mut [f32],
    noise: &mut StreamRng,
    scratch: &mut Scratch,
) -> f32 {
    let (parameters, running) = parameters.split_at_mut(network.trained);
    let mut parts = scratch.network.parts(network, batch.len());
    let features = features(&parts.plan.layers[0]);
    run(parts.path, Load { rows: data.rows(), batch, features, out: parts.activations });
    forward(network, parameters, &mut Mode::Train { noise, running }, &mut parts);
    let sum = loss(network, data, batch, &mut parts);
    backward(network, parameters, gradient, &mut parts);
    (sum / batch.len() as f64) as f32
}

/// Sums over a batch.
pub(super) fn evaluate(
    network: &Network,
    parameters: &[f32],
    data: &Dataset,
    batch: &[u32],
    scratch: &mut Scratch,
) -> Evaluation {
    let (parameters, running) = parameters.split_at(network.trained);
    let mut parts = scratch.network.parts(network, batch.len());
    let features = features(&parts.plan.layers[0]);
    run(parts.path, Load { rows: data.rows(), batch, features, out: parts.activations });
    forward(network, parameters, &mut Mode::Evaluate { running }, &mut parts);
    let last = &parts.plan.layers[network.layers.len() - 1];
    let layout: Layout = last.layout;
    let correct = match network.loss {
        Loss::CrossEntropy => {
            let labels = batch.iter().map(|&example| labels(data)[example as usize]);
            predictions(layout, &parts.activations[last.offset..], labels)
        }
        Loss::SquaredError => 0,
    };
    Evaluation { loss_sum: loss(network, data, batch, &mut parts), correct, examples: batch.len() as u64 }
}

/// See [`Network::multiplications`].
pub(super) fn multiplications(network: &Network) -> u64 {
    let one = |layer: &Layer| {
        let products = match &layer.op {
            Op::Conv(conv) => conv.multiplications(network.layers[layer.inputs[0]].shape, layer.shape),
            Op::Dense(_) => (network.layers[layer.inputs[0]].shape.len() * layer.shape.len()) as u64,
            _ => return 0,
        };
        let by_input = u64::from(network.layers[layer.inputs[0]].passes_gradient);
        products * (2 + by_input)
    };
    network.layers.iter().map(one).sum()
}
