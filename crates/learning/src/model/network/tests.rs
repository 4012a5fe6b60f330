//! Every layer against its definition in `f64`: losses, gradients, and the same bits on every path.

mod by_hand;
mod reference;

use super::build::{LayerId, NetworkBuilder, Window};
use super::ops::Activation;
use super::*;
use crate::data::Targets;
use crate::lanes::Path;
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;
use reference::Reference;

const NOISE_SEED: u64 = 5;

fn noise() -> StreamRng {
    Streams::new(NOISE_SEED).stream(Purpose::TrainingNoise, 3, 1)
}

/// Examples with features between -1 and 1, or whole numbers below `entries`, and classes (or numbers, for one class).
fn examples(shape: Shape, count: usize, classes: usize, entries: Option<usize>) -> Dataset {
    let mut rng = Streams::new(8).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((count, shape.len()), || match entries {
        None => 2.0 * rng.uniform() as f32 - 1.0,
        Some(entries) => rng.below(entries as u64) as f32,
    });
    let targets = match classes {
        1 => Targets::Values((0..count).map(|_| 2.0 * rng.uniform() as f32).collect()),
        _ => Targets::Classes { labels: (0..count).map(|_| rng.below(classes as u64) as u8).collect(), classes },
    };
    Dataset::new(features, targets)
}

/// Parameters between -1 and 1, scales and variances around 1.
fn parameters(network: &Network) -> Vec<f32> {
    let mut rng = Streams::new(9).stream(Purpose::ModelInit, 0, 0);
    let mut parameters = vec![0.0; network.parameters()];
    for tensor in &network.tensors {
        let fan = if tensor.shape.len() > 1 { tensor.shape[1..].iter().product::<usize>() } else { 1 };
        let scale = (2.0 / fan as f32).sqrt();
        for value in &mut parameters[tensor.offset..][..tensor.len()] {
            let number = (rng.uniform() as f32 - 0.5) * scale;
            *value = if tensor.init == Init::Constant(1.0) { 1.0 + 0.3 * number } else { number };
        }
    }
    parameters
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

struct Step {
    loss: f32,
    gradient: Vec<f32>,
    /// Parameters after the step: running means and variances have moved.
    parameters: Vec<f32>,
}

fn step(network: &Network, data: &Dataset, batch: &[u32], scratch: &mut Scratch) -> Step {
    let mut parameters = parameters(network);
    let mut gradient = vec![f32::NAN; network.trained()];
    let loss = network.loss_and_gradient(
        &mut parameters,
        Batch { data, examples: batch },
        &mut gradient,
        &mut noise(),
        scratch,
    );
    Step { loss, gradient, parameters }
}

/// Checks loss, gradient by every parameter, evaluation, and independence of path and of the scratch's contents.
fn check(name: &str, network: &Network, data: &Dataset, batch: &[u32]) {
    let exact: Vec<f64> = parameters(network).into_iter().map(f64::from).collect();
    let mut draws = noise();
    let drawn = std::iter::repeat_with(|| draws.bits()).take(20_000).collect();
    let reference = Reference { network, data, batch, noise: Some(drawn) };
    let mut scratch = Scratch::default();
    let Step { loss, gradient, parameters: after } = step(network, data, batch, &mut scratch);
    let expected = reference.loss(&exact);
    assert!((f64::from(loss) - expected).abs() < 2e-6 * (1.0 + expected), "{name}: loss {loss}, expected {expected}");

    let slopes: Vec<f64> = (0..network.trained()).map(|index| reference.slope(&exact, index)).collect();
    let largest = slopes.iter().fold(0.0_f64, |largest, slope| largest.max(slope.abs()));
    assert!(largest > 1e-3, "{name}: the case says nothing");
    for tensor in network.tensors.iter().filter(|tensor| tensor.offset < network.trained()) {
        for index in tensor.offset..tensor.offset + tensor.len() {
            let (found, expected) = (f64::from(gradient[index]), slopes[index]);
            assert!(
                (found - expected).abs() < 5e-6 * (1.0 + largest),
                "{name}: {} [{}] is {found}, the central difference {expected}",
                tensor.name,
                index - tensor.offset
            );
        }
    }

    // A second step finds the memory as the first one left it, a third as another batch size left it.
    let again = step(network, data, batch, &mut scratch);
    assert_eq!(bits(&again.gradient), bits(&gradient), "{name}: a second step");
    let other: Vec<u32> = (0..data.examples() as u32).cycle().take(batch.len() + 3).collect();
    step(network, data, &other, &mut scratch);
    assert_eq!(bits(&step(network, data, batch, &mut scratch).gradient), bits(&gradient), "{name}: after other sizes");
    for path in Path::all() {
        let on_path = step(network, data, batch, &mut Scratch::on(path));
        assert_eq!(on_path.loss.to_bits(), loss.to_bits(), "{name}: loss on {path:?}");
        assert_eq!(bits(&on_path.gradient), bits(&gradient), "{name}: gradient on {path:?}");
        assert_eq!(bits(&on_path.parameters), bits(&after), "{name}: running statistics on {path:?}");
    }

    let found = network.evaluate(&parameters(network), Batch { data, examples: batch }, &mut scratch);
    let reference = Reference { noise: None, ..reference };
    let expected = reference.loss(&exact) * batch.len() as f64;
    assert!((found.loss_sum - expected).abs() < 1e-5 * (1.0 + expected), "{name}: evaluation");
    if network.loss == Loss::CrossEntropy {
        let outputs = reference.outputs(&exact);
        let hits = batch.iter().zip(outputs.chunks(network.outputs())).filter(|&(&example, scores)| {
            let label = usize::from(data.classes().unwrap().0[example as usize]);
            scores.iter().all(|&score| score <= scores[label])
        });
        assert_eq!(found.correct, hits.count() as u64, "{name}: hits");
    }
}

/// Checks a network that ends with a fully connected layer behind the layers of `build`, for several batch sizes.
fn check_layer(name: &str, shape: Shape, build: impl Fn(&mut NetworkBuilder, LayerId) -> LayerId) {
    for batch in [1, 2, 5, 16, 17] {
        let mut builder = NetworkBuilder::new(shape);
        let input = builder.input();
        let layer = build(&mut builder, input);
        let output = builder.dense("fc", layer, 3, false);
        let network = builder.finish(output, Loss::CrossEntropy);
        let data = examples(shape, 20, 3, None);
        let batch: Vec<u32> = (0..batch).rev().collect();
        check(&format!("{name}, batch {}", batch.len()), &network, &data, &batch);
    }
}

const fn shape(channels: usize, height: usize, width: usize) -> Shape {
    Shape { channels, height, width }
}

#[test]
fn dense_layers() {
    for (features, outputs) in [(1, 1), (7, 8), (16, 13), (33, 6)] {
        check_layer(&format!("dense {features} to {outputs}"), shape(features, 1, 1), |builder, input| {
            builder.dense("hidden", input, outputs, true)
        });
    }
    check_layer("dense on images", shape(2, 3, 4), |builder, input| builder.dense("hidden", input, 5, false));
}

#[test]
fn convolutions_of_any_size_stride_and_padding() {
    for (size, stride, padding) in [
        (1, 1, 0),
        (3, 1, 0),
        (3, 1, 1),
        (5, 1, 2),
        (2, 1, 1),
        (4, 1, 1),
        (3, 1, 2),
        (1, 2, 0),
        (3, 2, 1),
        (3, 2, 0),
        (2, 2, 0),
        (2, 3, 1),
        (5, 3, 2),
        (4, 2, 3),
        (1, 3, 0),
    ] {
        let window = Window { size, stride, padding };
        check_layer(&format!("{window:?}"), shape(2, 5, 6), |builder, input| {
            // The first convolution gives the second one a gradient to pass on.
            let first = builder.conv("first", input, 2, Window { size: 3, stride: 1, padding: 1 }, true, true);
            builder.conv("second", first, 3, window, stride == 1, padding == 1)
        });
    }
}

#[test]
fn convolutions_of_all_tile_sizes() {
    for outputs in [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 14] {
        check_layer(&format!("{outputs} outputs"), shape(1, 3, 4), |builder, input| {
            let first = builder.conv("first", input, outputs, Window::square(2), true, true);
            builder.conv("second", first, 2, Window::square(2), true, false)
        });
    }
}

#[test]
fn pooling_with_and_without_overlap() {
    for (size, stride, padding) in [(2, 2, 0), (3, 2, 1), (3, 1, 1), (2, 1, 0), (2, 3, 0), (3, 3, 2)] {
        let window = Window { size, stride, padding };
        for (is_max, relu) in [(true, false), (true, true), (false, false)] {
            check_layer(&format!("maximum {is_max}, ReLU {relu}, {window:?}"), shape(2, 6, 5), |builder, input| {
                let first = builder.conv("first", input, 2, Window::square(1), true, false);
                if is_max { builder.max_pool(first, window, relu) } else { builder.average_pool(first, window) }
            });
        }
    }
    check_layer("global mean", shape(2, 4, 4), |builder, input| {
        let first = builder.conv("first", input, 3, Window::square(1), true, true);
        builder.global_average_pool(first)
    });
}

#[test]
fn activations() {
    for activation in [Activation::Relu, Activation::LeakyRelu(0.1), Activation::Gelu, Activation::Tanh] {
        check_layer(&format!("{activation:?}"), shape(1, 2, 3), |builder, input| {
            let first = builder.dense("first", input, 9, false);
            builder.activation(first, activation)
        });
    }
}

#[test]
fn batch_normalisation() {
    for relu in [false, true] {
        for batch in [2_u32, 5, 16, 17] {
            let shape = shape(2, 3, 3);
            let mut builder = NetworkBuilder::new(shape);
            let input = builder.input();
            let first = builder.conv("first", input, 3, Window::square(2), false, false);
            let normal = builder.batch_norm("bn", first, relu);
            let output = builder.dense("fc", normal, 3, false);
            let network = builder.finish(output, Loss::CrossEntropy);
            let batch: Vec<u32> = (0..batch).collect();
            check(&format!("batch norm, {}", batch.len()), &network, &examples(shape, 20, 3, None), &batch);
        }
    }
}

#[test]
fn group_normalisation() {
    for groups in [1, 2, 4] {
        check_layer(&format!("{groups} groups"), shape(2, 3, 3), |builder, input| {
            let first = builder.conv("first", input, 4, Window::square(2), false, false);
            builder.group_norm("gn", first, groups)
        });
    }
}

#[test]
fn residual_addition_and_layers_that_several_read() {
    for relu in [false, true] {
        check_layer("residual", shape(2, 3, 4), |builder, input| {
            let first = builder.conv("first", input, 3, Window::square(2), true, true);
            let second = builder.conv("second", first, 3, Window { size: 3, stride: 1, padding: 1 }, true, false);
            let sum = builder.add(second, first, relu);
            let left = builder.conv("left", sum, 2, Window { size: 3, stride: 2, padding: 1 }, false, false);
            let right = builder.conv("right", sum, 2, Window { size: 1, stride: 2, padding: 0 }, false, false);
            let right = builder.batch_norm("bn", right, false);
            builder.add(left, right, relu)
        });
    }
    check_layer("pooled, activated, dropped, normalised and added", shape(2, 4, 4), |builder, input| {
        let first = builder.conv("first", input, 4, Window::square(1), true, true);
        let pooled = builder.max_pool(first, Window { size: 3, stride: 1, padding: 1 }, false);
        let active = builder.activation(first, Activation::Tanh);
        let dropped = builder.dropout(first, 0.5);
        let normal = builder.group_norm("gn", first, 2);
        let one = builder.add(pooled, active, false);
        let two = builder.add(dropped, normal, true);
        builder.add(one, two, false)
    });
}

#[test]
fn dropout() {
    for rate in [0.0, 0.25, 0.9] {
        check_layer(&format!("dropout {rate}"), shape(1, 3, 3), |builder, input| {
            let first = builder.dense("first", input, 40, true);
            builder.dropout(first, rate)
        });
    }
}

/// A layer whose weights move piece by piece, between others.
#[test]
fn a_large_layer_moves_as_if_its_gradient_were_kept() {
    let shape = shape(1, 1, 20);
    let mut builder = NetworkBuilder::new(shape);
    let input = builder.input();
    let first = builder.dense("first", input, 1_030, true);
    let large = builder.dense("large", first, 257, true);
    let output = builder.dense("last", large, 3, false);
    let network = builder.finish(output, Loss::CrossEntropy);
    let data = examples(shape, 5, 3, None);
    let batch = Batch { data: &data, examples: &[4, 0, 2] };
    let Step { loss, gradient, parameters: start } = step(&network, &data, batch.examples, &mut Scratch::default());
    let expected: Vec<f32> = start.iter().zip(&gradient).map(|(w, g)| w - 0.5 * g).collect();
    for path in Path::all() {
        let (mut parameters, mut memory) = (start.clone(), vec![f32::NAN; gradient.len()]);
        let (mut times, mut parts) = (vec![0; gradient.len()], 0);
        let found = network.descend(
            &mut parameters,
            batch,
            &mut memory,
            &mut noise(),
            &mut Scratch::on(path),
            &mut |first, parameters, slopes| {
                parts += 1;
                times[first..first + slopes.len()].iter_mut().for_each(|times| *times += 1);
                parameters.iter_mut().zip(slopes).for_each(|(w, g)| *w -= 0.5 * g);
            },
        );
        assert_eq!((found.to_bits(), bits(&parameters)), (loss.to_bits(), bits(&expected)), "{path:?}");
        assert!(parts > 4 && times.iter().all(|&times| times == 1), "{path:?}: {parts} parts");
    }
    // Nothing moves without a finite loss.
    let mut parameters = start.clone();
    *parameters.last_mut().unwrap() = f32::NAN;
    let mut memory = vec![0.0; gradient.len()];
    let loss =
        network.descend(&mut parameters, batch, &mut memory, &mut noise(), &mut Scratch::default(), &mut |_, _, _| {
            panic!("a step")
        });
    assert!(loss.is_nan());
}

#[test]
fn embedding_and_squared_error() {
    let shape = shape(3, 1, 1);
    let mut builder = NetworkBuilder::new(shape);
    let input = builder.input();
    let rows = builder.embedding("table", input, 7, 4);
    let hidden = builder.dense("fc1", rows, 6, true);
    let output = builder.dense("fc2", hidden, 1, false);
    let network = builder.finish(output, Loss::SquaredError);
    for batch in [1_u32, 5, 18] {
        check("embedding", &network, &examples(shape, 20, 1, Some(7)), &(0..batch).collect::<Vec<_>>());
    }
}

#[test]
fn infinities_nans_and_denormals_leave_the_same_bits_on_every_path() {
    let image = shape(2, 6, 5);
    let mut builder = NetworkBuilder::new(image);
    let input = builder.input();
    let first = builder.conv("first", input, 7, Window { size: 3, stride: 1, padding: 1 }, true, true);
    let second = builder.conv("second", first, 7, Window { size: 3, stride: 2, padding: 1 }, false, false);
    let normal = builder.batch_norm("bn", second, true);
    let gelu = builder.activation(normal, Activation::Gelu);
    let group = builder.group_norm("gn", gelu, 7);
    let pooled = builder.max_pool(group, Window { size: 2, stride: 1, padding: 0 }, false);
    let dropped = builder.dropout(pooled, 0.3);
    let hidden = builder.dense("fc1", dropped, 9, true);
    let tanh = builder.activation(hidden, Activation::Tanh);
    let output = builder.dense("fc2", tanh, 4, false);
    let network = builder.finish(output, Loss::CrossEntropy);
    let plain = examples(image, 11, 4, None);
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-42, -1e-45, f32::MAX, f32::MIN_POSITIVE, -0.0] {
        let mut features = plain.features().into_owned();
        features.iter_mut().step_by(37).for_each(|feature| *feature = special);
        let data = Dataset::new(features, plain.targets().clone());
        let mut found: Vec<(u32, Vec<u32>, Vec<u32>)> = Vec::new();
        for path in Path::all() {
            let mut step = step(&network, &data, &[3, 1, 4, 0, 10, 7], &mut Scratch::on(path));
            // The bits of a NaN are not promised; its place is.
            let numbers = step.gradient.iter_mut().chain(&mut step.parameters).chain(std::iter::once(&mut step.loss));
            numbers.filter(|number| number.is_nan()).for_each(|number| *number = f32::NAN);
            found.push((step.loss.to_bits(), bits(&step.gradient), bits(&step.parameters)));
        }
        assert!(found.iter().all(|other| *other == found[0]), "with {special}");
    }
}

#[test]
fn the_initial_model_has_the_documented_laws() {
    let mut builder = NetworkBuilder::new(shape(4, 8, 8));
    let input = builder.input();
    let conv = builder.conv("conv", input, 16, Window::square(5), true, false);
    let normal = builder.batch_norm("bn", conv, true);
    let output = builder.dense("fc", normal, 3, false);
    let network = builder.finish(output, Loss::CrossEntropy);
    let mut parameters = vec![f32::NAN; network.parameters()];
    network.init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut parameters);
    let of = |name: &str| {
        let tensor = network.tensors.iter().find(|tensor| tensor.name == name).unwrap();
        &parameters[tensor.offset..][..tensor.len()]
    };
    for (name, bound) in [("conv.weight", 0.1_f32), ("conv.bias", 0.1), ("fc.weight", 1.0 / 16.0)] {
        let numbers = of(name);
        assert!(numbers.iter().all(|number| number.abs() <= bound), "{name}");
        let mean_square = numbers.iter().map(|number| number * number).sum::<f32>() / numbers.len() as f32;
        // Uniform: bound² / 3. The relative deviation of a mean of n squares is 0.9 / √n.
        let error = (3.0 * mean_square / (bound * bound) - 1.0).abs();
        assert!(error < 4.5 / (numbers.len() as f32).sqrt(), "{name}: {error}");
    }
    assert!(of("bn.weight").iter().chain(of("bn.running_var")).all(|&number| number == 1.0));
    assert!(of("bn.bias").iter().chain(of("bn.running_mean")).all(|&number| number == 0.0));
    assert_eq!(network.trained() + 32, network.parameters());
}

/// Two branches of a convolution, batch normalisation and a dense layer, whose outputs are added.
fn branches() -> Network {
    let mut builder = NetworkBuilder::new(Shape { channels: 2, height: 5, width: 4 });
    let [shared, own] = ["global.", "cluster."].map(|prefix| {
        builder.begin_branch(prefix);
        let input = builder.input();
        let convolved = builder.conv("conv1", input, 3, Window::square(2), true, false);
        let normed = builder.batch_norm("bn1", convolved, true);
        builder.dense("fc1", normed, 4, false)
    });
    let output = builder.add(shared, own, false);
    builder.finish(output, Loss::CrossEntropy)
}

#[test]
fn branches_are_added() {
    let network = branches();
    let data = examples(network.input(), 7, 4, None);
    check("branches", &network, &data, &[6, 5, 4, 3, 2, 1]);
    let names: Vec<String> = network.tensors().into_iter().map(|tensor| tensor.name).collect();
    let of = |prefix: &str| {
        ["conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias", "fc1.weight", "fc1.bias"]
            .map(|name| format!("{prefix}{name}"))
    };
    let running =
        ["global.bn1.running_mean", "global.bn1.running_var", "cluster.bn1.running_mean", "cluster.bn1.running_var"];
    assert_eq!(names, [&of("global.")[..], &of("cluster."), &running.map(str::to_owned)].concat());
    // 3 · (2 · 4 + 1), 3 · 2, 4 · (3 · 4 · 3 + 1), of each branch; means and variances of 3 channels.
    let one = 27 + 6 + 148;
    let parts: Vec<(String, Scope, bool, usize)> = network
        .layout()
        .segments()
        .iter()
        .map(|segment| (segment.name.clone(), segment.scope, segment.trained, segment.len))
        .collect();
    assert_eq!(
        parts,
        [
            ("global".to_owned(), Scope::Shared, true, one),
            ("cluster".to_owned(), Scope::Cluster, true, one),
            ("global.statistics".to_owned(), Scope::Shared, false, 6),
            ("cluster.statistics".to_owned(), Scope::Cluster, false, 6),
        ]
    );
    let layout = network.layout();
    let mut own = layout.trained_of_clusters();
    assert_eq!((own.next(), own.next()), (Some(one..2 * one), None));
    assert_eq!(network.layout().bytes_of_cluster(), 4 * (one as u64 + 6));
}

/// The shared part of all clusters is passed once, and no bit changes; on any number of examples and any path.
#[test]
fn models_of_clusters_are_evaluated_together() {
    let network = branches();
    let data = examples(network.input(), 70, 4, None);
    let all: Vec<u32> = (0..70).collect();
    let mut models = vec![parameters(&network); 3];
    for (index, model) in models.iter_mut().enumerate() {
        for (range, _) in network.layout().dense_parts().filter(|(_, scope)| *scope == Scope::Cluster) {
            model[range].iter_mut().for_each(|value| *value *= 1.0 + 0.2 * index as f32);
        }
    }
    let models: Vec<&[f32]> = models.iter().map(|model| &**model).collect();
    for examples in [&all[..], &all[..33], &all[..1]] {
        let batch = Batch { data: &data, examples };
        for path in Path::all() {
            let mut scratch = Scratch::on(path);
            let apart = models.iter().map(|model| network.evaluate(model, batch, &mut scratch)).collect::<Vec<_>>();
            assert_eq!(network.evaluate_each(&models, batch, &mut scratch), apart, "{path:?}");
            assert!(apart[0] != apart[1] && apart[1] != apart[2]);
        }
        let lists = [Batch { data: &data, examples: &examples[..examples.len() / 2] }, batch];
        let sums = crate::model::evaluate_each(&network, &models, &lists, true);
        for (model, sum) in models.iter().zip(sums) {
            let [one, two] = lists.map(|list| crate::model::evaluate(&network, model, list, false));
            assert_eq!(sum, one.plus(two));
        }
    }
}
