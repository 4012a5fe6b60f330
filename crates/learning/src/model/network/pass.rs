//! The passes over the layers: forward, and backward.

use super::kernels::Layout;
use super::kernels::turn::Load;
use super::layer::{Layer, Op};
use super::ops::activation::{ActivationBackward, ActivationForward};
use super::ops::group_norm::{GroupNormBackward, GroupNormForward};
use super::ops::norm::{BatchNormBackward, BatchNormEvaluate, BatchNormForward};
use super::ops::pool::{PoolBackward, PoolForward};
use super::ops::{
    Addend, Dropout, HalvingPlan, Prepare, Resources, Sum, Table, add_into, cross_entropy, predictions, squared_error,
};
use super::plan::{Detail, LayerPlan, Plan};
use super::workspace::Parts;
use super::{Loss, Network};
use crate::lanes::run;
use crate::model::{Batch, Contrast, Evaluation, Scratch, Step};
use fedgenie_core::rng::StreamRng;
use std::ops::Range;

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
    forward_layers(network, 1..network.layers.len(), parameters, mode, parts);
}

/// The forward pass of some layers, after that of all before them.
fn forward_layers(
    network: &Network,
    layers: Range<usize>,
    parameters: &[f32],
    mode: &mut Mode<'_>,
    parts: &mut Parts<'_>,
) {
    let Parts { path, plan, activations, state, work, .. } = parts;
    for (layer, own) in network.layers[layers.clone()].iter().zip(&plan.layers[layers]) {
        let (before, after) = activations.split_at_mut(own.offset);
        let out = &mut after[..own.end - own.offset];
        let resources = Resources { work, path: *path };
        let values = Forward { parameters, before, out, state: &mut state[own.state..], resources };
        forward_layer(layer, own, plan, mode, values);
    }
}

/// Inputs and outputs of a layer's forward pass.
struct Forward<'a> {
    parameters: &'a [f32],
    /// Outputs of the layers before.
    before: &'a [f32],
    out: &'a mut [f32],
    state: &'a mut [f32],
    resources: Resources<'a>,
}

fn forward_layer(layer: &Layer, own: &LayerPlan, plan: &Plan, mode: &mut Mode<'_>, values: Forward<'_>) {
    let Forward { parameters, before, out, state, resources } = values;
    let path = resources.path;
    let from = &plan.layers[layer.inputs[0]];
    let (layout, input) = (own.layout, &before[from.offset..from.end]);
    match (&layer.op, &own.detail) {
        (Op::Conv(conv), Detail::Conv(plan)) => conv.forward(plan, parameters, input, out, resources),
        (Op::Dense(dense), Detail::Features(features)) => {
            dense.forward(Table { features, output: layout }, parameters, input, out, path);
        }
        (Op::Embedding(embedding), Detail::Features(features)) => {
            embedding.forward(Table { features, output: layout }, parameters, input, out);
        }
        (Op::Conv(_), Detail::Inner) => {}
        (Op::Pool(_), Detail::Halving(halving)) => {
            let from = &plan.layers[halving.input];
            halving.forward(parameters, &before[from.offset..from.end], state, out, resources);
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

/// The backward pass. With a step, large layers move as soon as their gradient is known, and all others in the end.
fn backward(
    network: &Network,
    parameters: &mut [f32],
    gradient: &mut [f32],
    contrast: Option<&Contrast<'_>>,
    mut step: Option<Step<'_>>,
    parts: &mut Parts<'_>,
) {
    // Of the parameters before, none has moved; tensors are in the order of layers.
    let mut moved = parameters.len();
    let Parts { path, plan, activations, slopes: all_slopes, state, work } = parts;
    let last = network.layers.len() - 1;
    for (number, (layer, own)) in network.layers.iter().zip(&plan.layers).enumerate().skip(1).rev() {
        // Those of a convolution of whose output the maxima are taken are the next layer's.
        if !layer.passes_gradient || matches!(own.detail, Detail::Inner) {
            continue;
        }
        let (before, after) = all_slopes.split_at_mut(own.offset);
        let slopes = &mut after[..own.layout.len()];
        // Slopes through a ReLU, and their sums where a layer adds something to each channel.
        let shift = match &layer.op {
            Op::Conv(conv) => conv.bias,
            Op::Dense(dense) => Some(dense.bias),
            Op::BatchNorm(norm) => Some(norm.shift),
            Op::GroupNorm(norm) => Some(norm.shift),
            _ => None,
        };
        let is_halving = matches!(own.detail, Detail::Halving(_));
        if shift.is_some() || (layer.op.has_relu() && !is_halving) || matches!(layer.op, Op::Conv(_)) {
            let output = layer.op.has_relu().then(|| &activations[own.offset..own.end]);
            let sums = shift.map(|shift| &mut gradient[shift..][..own.layout.shape.channels]);
            run(*path, Prepare { layout: own.layout, output, slopes: &mut *slopes, sums });
        }
        let state = &mut state[own.state..];
        let resources = Resources { work, path: *path };
        let step: Option<Step<'_>> = match (&layer.op, &mut step) {
            (Op::Dense(dense), Some(step)) if dense.is_large(network.layers[layer.inputs[0]].shape, layer.shape) => {
                step(dense.bias, &mut parameters[dense.bias..moved], &gradient[dense.bias..moved]);
                moved = dense.weights;
                Some(&mut **step)
            }
            _ => None,
        };
        let values = Backward { parameters, activations, before, slopes, gradient, state, resources, step };
        backward_layer(network, layer, own, plan, values);
        // The output is the first of all to leave slopes at the layer that is contrasted.
        if let Some((contrast, hidden)) = contrast.zip(hidden(network)).filter(|_| number == last) {
            let hidden = &plan.layers[hidden];
            let range = hidden.offset..hidden.end;
            add_contrast(contrast, hidden.layout, &activations[range.clone()], &mut all_slopes[range]);
        }
    }
    if let Some(step) = step {
        step(0, &mut parameters[..moved], &gradient[..moved]);
    }
}

/// Inputs and outputs of a layer's backward pass.
struct Backward<'a> {
    parameters: &'a mut [f32],
    activations: &'a [f32],
    /// Slopes of the layers before.
    before: &'a mut [f32],
    /// Slopes of the layer.
    slopes: &'a mut [f32],
    gradient: &'a mut [f32],
    state: &'a mut [f32],
    resources: Resources<'a>,
    /// Moves the layer's weights, if that is to be done at once.
    step: Option<Step<'a>>,
}

fn backward_layer(network: &Network, layer: &Layer, own: &LayerPlan, plan: &Plan, values: Backward<'_>) {
    let Backward { parameters, activations, before, slopes, gradient, state, resources, step } = values;
    let path = resources.path;
    let from = &plan.layers[layer.inputs[0]];
    let input = &activations[from.offset..from.end];
    let layout = own.layout;
    let add = layer.adds_gradient[0];
    let is_needed = network.layers[layer.inputs[0]].passes_gradient;
    match (&layer.op, &own.detail) {
        (Op::Conv(conv), Detail::Conv(plan)) => {
            let work = &mut *resources.work;
            conv.weight_gradient(plan, input, slopes, gradient, Resources { work: &mut *work, path });
            if is_needed {
                let to = Addend { out: &mut before[from.offset..from.end], add };
                conv.input_gradient(plan, parameters, slopes, to, Resources { work, path });
            }
        }
        (Op::Pool(_), Detail::Halving(halving)) => {
            let values = Backward { parameters, activations, before, slopes, gradient, state, resources, step };
            backward_halving(network, layer.inputs[0], (halving, &plan.layers[halving.input]), values);
        }
        (Op::Dense(dense), Detail::Features(features)) => {
            let table = Table { features, output: layout };
            let work = &mut *resources.work;
            if is_needed {
                let to = Addend { out: &mut before[from.offset..from.end], add };
                dense.input_gradient(table, parameters, slopes, to, Resources { work: &mut *work, path });
            }
            let resources = Resources { work, path };
            match step {
                None => dense.weight_gradient(table, input, slopes, gradient, resources),
                Some(step) => dense.descend(table, input, slopes, (parameters, gradient, step), resources),
            }
        }
        (Op::Embedding(embedding), Detail::Features(features)) => {
            embedding.weight_gradient(Table { features, output: layout }, input, slopes, gradient);
        }
        (Op::BatchNorm(norm), _) => {
            let out = is_needed.then(|| (&mut before[from.offset..from.end], add));
            run(path, BatchNormBackward { norm: *norm, layout, parameters, input, state, slopes, gradient, out });
        }
        (Op::GroupNorm(norm), _) => {
            let out = is_needed.then(|| (&mut before[from.offset..from.end], add));
            run(path, GroupNormBackward { norm: *norm, layout, parameters, input, state, slopes, gradient, out });
        }
        (Op::Pool(pool), _) => {
            let out = &mut before[from.offset..from.end];
            let output = &activations[own.offset..own.end];
            let layouts = (from.layout, layout);
            run(path, PoolBackward { pool: *pool, layouts, input, output, slopes, add, out });
        }
        (Op::Activation(activation), _) => {
            let out = &mut before[from.offset..from.end];
            let output = &activations[own.offset..own.end];
            run(path, ActivationBackward { activation: *activation, input, output, slopes, add, out });
        }
        (Op::Add { .. }, _) => {
            for (&input, &add) in layer.inputs.iter().zip(&layer.adds_gradient) {
                if network.layers[input].passes_gradient {
                    let from = &plan.layers[input];
                    run(path, add_into(slopes, &mut before[from.offset..from.end], add));
                }
            }
        }
        (Op::Dropout(_), _) => Dropout::backward(state, slopes, &mut before[from.offset..from.end], add),
        (Op::Input | Op::Conv(_) | Op::Dense(_) | Op::Embedding(_), _) => unreachable!("every layer has its plan"),
    }
}

/// The backward pass of the maxima of a convolution, which is the layer `inner` and reads a layer with the plan `from`.
fn backward_halving(
    network: &Network,
    inner: usize,
    (halving, from): (&HalvingPlan, &LayerPlan),
    values: Backward<'_>,
) {
    let Backward { parameters, activations, before, slopes, gradient, state, resources, .. } = values;
    let HalvingPlan { conv, plan, input, .. } = halving;
    let (slopes, Resources { work, path }) = halving.spread(state, slopes, gradient, resources);
    let range = from.offset..from.end;
    conv.weight_gradient(plan, &activations[range.clone()], slopes, gradient, Resources { work: &mut *work, path });
    if network.layers[*input].passes_gradient {
        let to = Addend { out: &mut before[range], add: network.layers[inner].adds_gradient[0] };
        conv.input_gradient(plan, parameters, slopes, to, Resources { work, path });
    }
}

/// Sum of losses, with the derivatives of their mean as the slopes of the last layer.
fn loss(network: &Network, batch: Batch<'_>, parts: &mut Parts<'_>) -> f64 {
    let last = &parts.plan.layers[network.layers.len() - 1];
    let outputs = &parts.activations[last.offset..last.end];
    let slopes = &mut parts.slopes[last.offset..last.end];
    match network.loss {
        Loss::CrossEntropy => {
            let resources = Resources { work: &mut *parts.work, path: parts.path };
            cross_entropy(last.layout, outputs, labels(batch), slopes, resources)
        }
        Loss::SquaredError => {
            let values = batch.values();
            let targets = batch.examples.iter().map(|&example| values[example as usize]);
            squared_error(last.layout, outputs, targets, slopes)
        }
    }
}

/// The class of each example.
fn labels(batch: Batch<'_>) -> impl Iterator<Item = u8> {
    let classes = batch.classes();
    batch.examples.iter().map(|&example| classes[example as usize])
}

/// Writes the features of a batch where the first layer leaves them.
fn load(batch: Batch<'_>, parts: &mut Parts<'_>) {
    let features = features(&parts.plan.layers[0]);
    run(parts.path, Load { table: batch.table(), batch: batch.examples, features, out: parts.activations });
}

/// One step's mean loss and gradient. With a step and a finite loss, the parameters move, and the gradient means
/// nothing.
pub(super) fn train(
    network: &Network,
    parameters: &mut [f32],
    batch: Batch<'_>,
    gradient: &mut [f32],
    (noise, scratch): (&mut StreamRng, &mut Scratch),
    contrast: Option<&Contrast<'_>>,
    step: Option<Step<'_>>,
) -> f32 {
    let (parameters, running) = parameters.split_at_mut(network.trained);
    let mut parts = scratch.network.parts(network, batch.examples.len());
    load(batch, &mut parts);
    forward(network, parameters, &mut Mode::Train { noise, running }, &mut parts);
    let mean = (loss(network, batch, &mut parts) / batch.examples.len() as f64) as f32;
    let step = step.filter(|_| mean.is_finite());
    backward(network, parameters, gradient, contrast, step, &mut parts);
    mean
}

/// The last hidden layer: that which the output reads, if it has parameters below; `None` with several branches.
pub(super) fn hidden(network: &Network) -> Option<usize> {
    let last = &network.layers[network.layers.len() - 1];
    let hidden = *last.inputs.first()?;
    let is_one = matches!(last.op, Op::Dense(_)) && network.branches.len() < 2;
    (is_one && network.layers[hidden].passes_gradient).then_some(hidden)
}

/// Appends the outputs of the last hidden layer for each example of a batch.
pub(super) fn hidden_outputs(
    network: &Network,
    parameters: &[f32],
    batch: Batch<'_>,
    scratch: &mut Scratch,
    to: &mut Vec<f32>,
) {
    let parts = pass(network, parameters, batch, scratch);
    let hidden = &parts.plan.layers[hidden(network).expect("the network has a hidden layer")];
    let (outputs, features) = (&parts.activations[hidden.offset..hidden.end], hidden.layout.features());
    for example in 0..batch.examples.len() {
        to.extend(features.iter().map(|&start| outputs[start as usize + example]));
    }
}

/// Adds the slopes of a contrast to those of a layer.
fn add_contrast(contrast: &Contrast<'_>, layout: Layout, outputs: &[f32], slopes: &mut [f32]) {
    let features = layout.features();
    let (mut representation, mut found) = (Vec::new(), Vec::new());
    for example in 0..layout.batch {
        representation.clear();
        representation.extend(features.iter().map(|&start| f64::from(outputs[start as usize + example])));
        contrast.of(example, &representation, &mut found);
        for (&start, slope) in features.iter().zip(&found) {
            slopes[start as usize + example] += (slope / layout.batch as f64) as f32;
        }
    }
}

/// A forward pass, after which the last layer has the outputs.
fn pass<'s>(network: &Network, parameters: &[f32], batch: Batch<'_>, scratch: &'s mut Scratch) -> Parts<'s> {
    let (parameters, running) = parameters.split_at(network.trained);
    let mut parts = scratch.network.parts(network, batch.examples.len());
    load(batch, &mut parts);
    forward(network, parameters, &mut Mode::Evaluate { running }, &mut parts);
    parts
}

/// Sums over a batch.
pub(super) fn evaluate(network: &Network, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Evaluation {
    sums(network, batch, &mut pass(network, parameters, batch, scratch))
}

/// Appends the outputs for each example of a batch.
pub(super) fn outputs(
    network: &Network,
    parameters: &[f32],
    batch: Batch<'_>,
    scratch: &mut Scratch,
    to: &mut Vec<f32>,
) {
    let parts = pass(network, parameters, batch, scratch);
    let last = &parts.plan.layers[network.layers.len() - 1];
    let (outputs, row) = (&parts.activations[last.offset..], last.layout.row);
    for example in 0..batch.examples.len() {
        to.extend((0..last.layout.shape.channels).map(|output| outputs[output * row + example]));
    }
}

/// Sums over a batch for several models that agree on the layers before `from`, which are passed once.
pub(super) fn evaluate_each(
    network: &Network,
    from: usize,
    models: &[&[f32]],
    batch: Batch<'_>,
    scratch: &mut Scratch,
) -> Vec<Evaluation> {
    let mut parts = scratch.network.parts(network, batch.examples.len());
    load(batch, &mut parts);
    let one = |(index, model): (usize, &&[f32])| {
        let (parameters, running) = model.split_at(network.trained);
        let first = if index == 0 { 1 } else { from };
        let mode = &mut Mode::Evaluate { running };
        forward_layers(network, first..network.layers.len(), parameters, mode, &mut parts);
        sums(network, batch, &mut parts)
    };
    models.iter().enumerate().map(one).collect()
}

/// The evaluation of a forward pass's outputs.
fn sums(network: &Network, batch: Batch<'_>, parts: &mut Parts<'_>) -> Evaluation {
    let last = &parts.plan.layers[network.layers.len() - 1];
    let layout: Layout = last.layout;
    let correct = match network.loss {
        Loss::CrossEntropy => predictions(layout, &parts.activations[last.offset..], labels(batch)),
        Loss::SquaredError => 0,
    };
    Evaluation { loss_sum: loss(network, batch, parts), correct, examples: batch.examples.len() as u64 }
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
