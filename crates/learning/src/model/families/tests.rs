//! Sizes, names, and losses and gradients against PyTorch's in double precision.

use super::*;
use crate::data::{Dataset, Targets};
use crate::lanes::Path;
use crate::model::network::build::Window;
use crate::model::network::{Loss, NetworkBuilder};
use crate::model::{Batch, Model, Scratch};
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;
use serde_json::Value;

/// Made by `validation/compare/reference_gradients.py`, whose recipe [`fill`] and [`examples`] follow.
const REFERENCE: &str = include_str!("../../../../../validation/compare/reference_gradients.json");

const MNIST: Shape = Shape { channels: 1, height: 28, width: 28 };
const CIFAR: Shape = Shape { channels: 3, height: 32, width: 32 };

const fn lenet(width: f64) -> Family {
    Family::Lenet5(lenet5::Config { width })
}

fn trained(family: &Family, shape: Shape) -> usize {
    family.build(shape, 10).unwrap().trained()
}

#[test]
fn parameters_are_as_many_as_published() {
    assert_eq!(trained(&lenet(1.0), MNIST), 44_426);
    assert_eq!(trained(&lenet(1.0), CIFAR), 62_006);
    assert_eq!(trained(&Family::SimpleCnn(simple_cnn::Config {}), CIFAR), 1_626_442);
    assert_eq!(trained(&Family::Resnet18(resnet18::Config {}), CIFAR), 11_173_962);
    let mlp = Family::Mlp(mlp::Config { hidden: vec![200, 200], activation: MlpActivation::Relu });
    assert_eq!(trained(&mlp, MNIST), 199_210, "the 2NN of McMahan et al.");
    // Convolutions 1 → 12 → 32 of 5 × 5, dense 512 → 240 → 168 → 10.
    let wide = 12 * 25 + 12 + 32 * 12 * 25 + 32 + 512 * 240 + 240 + 240 * 168 + 168 + 168 * 10 + 10;
    assert_eq!(trained(&lenet(2.0), MNIST), wide);
    assert_eq!(trained(&lenet(2.0), CIFAR), 244_962);
}

/// Twice the parameters, and the tensors of each branch under their names in one network.
#[test]
fn additive_networks_have_the_tensors_of_two() {
    for (family, shape) in [
        (lenet(1.0), MNIST),
        (Family::SimpleCnn(simple_cnn::Config {}), CIFAR),
        (Family::Resnet18(resnet18::Config {}), CIFAR),
        (Family::Mlp(mlp::Config { hidden: vec![5], activation: MlpActivation::Gelu }), MNIST),
    ] {
        let (single, additive) = (family.build(shape, 10).unwrap(), family.additive(shape, 10).unwrap());
        assert_eq!((additive.trained(), additive.parameters()), (2 * single.trained(), 2 * single.parameters()));
        let of = |prefix: &str| {
            let tensors = single.tensors().into_iter();
            tensors.map(|tensor| (format!("{prefix}.{}", tensor.name), tensor.shape)).collect::<Vec<_>>()
        };
        let mut expected = [of("global"), of("cluster")].concat();
        let mut found: Vec<_> = additive.tensors().into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
    assert!(lenet(1.0).additive(Shape { channels: 1, height: 8, width: 8 }, 10).is_err());
}

#[test]
fn widths_are_fractions_and_halves_are_rounded_up() {
    // Convolutions 3 → 8 → 23, dense 575 → 169 → 119 → 10, of 8.466, 22.576, 169.32 and 118.524.
    let doubled = (3 * 25 + 1) * 8 + (8 * 25 + 1) * 23 + (575 + 1) * 169 + (169 + 1) * 119 + (119 + 1) * 10;
    assert_eq!(doubled, 124_005);
    assert_eq!(trained(&lenet(1.411), CIFAR), doubled);
    // 1.5, 4, 30 and 21 of a quarter; 0.5, 1.33, 10 and 7 of a twelfth.
    let quarter = (25 + 1) * 2 + (2 * 25 + 1) * 4 + (16 * 4 + 1) * 30 + (30 + 1) * 21 + (21 + 1) * 10;
    assert_eq!(trained(&lenet(0.25), MNIST), quarter);
    let narrowest = (25 + 1) + (25 + 1) + (16 + 1) * 10 + (10 + 1) * 7 + (7 + 1) * 10;
    assert_eq!(trained(&lenet(1.0 / 12.0), MNIST), narrowest);
    for width in [0.083, -1.0, 64.1, f64::NAN, f64::INFINITY] {
        let error = lenet(width).check().unwrap_err();
        assert!(error.message.ends_with("expected a number from 1/12 to 64"), "{error}");
    }
    for (text, width) in [("width = 2", 2.0), ("width = 1.411", 1.411), ("", 1.0)] {
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table.try_into::<lenet5::Config>().unwrap(), lenet5::Config { width }, "{text}");
    }
}

#[test]
fn tensors_follow_each_other_under_pytorchs_names() {
    let network = resnet18(CIFAR, 10);
    let tensors = network.tensors();
    let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names[..4], ["conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight"]);
    for name in ["layer2.0.downsample.0.weight", "layer4.1.bn2.running_var", "fc.weight", "fc.bias"] {
        assert!(names.contains(&name), "{name}");
    }
    // 62 trained tensors, and two statistics for each of the 20 normalisations.
    assert_eq!(names.len(), 62 + 40);
    let mut end = 0;
    for tensor in network.tensors() {
        assert_eq!(tensor.offset, end, "{}", tensor.name);
        end += tensor.entries();
    }
    assert_eq!(end, network.parameters());
}

#[test]
fn unfit_shapes_are_refused() {
    let shape = |height, width| Shape { channels: 1, height, width };
    for (family, shape, words) in [
        (lenet(1.0), shape(15, 28), "at least 16 × 16"),
        (Family::SimpleCnn(simple_cnn::Config {}), shape(6, 5), "at least 6 × 6"),
        (Family::Resnet18(resnet18::Config {}), shape(32, 30), "square"),
        (
            Family::Resnet18(resnet18::Config {}),
            shape(5, 5),
            "resnet18 needs images of at least 6 × 6; found 1 × 5 × 5",
        ),
    ] {
        let message = family.build(shape, 10).unwrap_err().message;
        assert!(message.contains(words), "{message}");
    }
    for (family, shape) in [
        (lenet(1.0), shape(16, 17)),
        (Family::SimpleCnn(simple_cnn::Config {}), shape(6, 7)),
        (Family::Resnet18(resnet18::Config {}), shape(6, 6)),
    ] {
        assert!(family.build(shape, 10).is_ok(), "{family:?}");
    }
    assert_eq!(
        Family::Mlp(mlp::Config { hidden: vec![0], activation: MlpActivation::Relu }).check().unwrap_err().path,
        "hidden"
    );
    assert_eq!(lenet(0.0).check().unwrap_err().path, "width");
}

fn u(index: usize) -> f64 {
    (index * 7_919 % 1_000) as f64 / 1_000.0 - 0.5
}

fn fill(network: &Network) -> Vec<f32> {
    let mut parameters = vec![0.0; network.parameters()];
    let mut fan_in = 0;
    for tensor in network.tensors() {
        if tensor.shape.len() > 1 {
            fan_in = tensor.shape[1..].iter().product::<usize>();
        }
        let is_norm = tensor.name.contains("bn") || tensor.name.contains("downsample.1");
        for (index, parameter) in parameters[tensor.offset..][..tensor.entries()].iter_mut().enumerate() {
            let number = match tensor.name.rsplit('.').next().unwrap() {
                "running_mean" => 0.1 * u(index),
                "running_var" => 1.0 + 0.5 * u(index),
                "weight" if is_norm => 0.1 * u(tensor.offset + index) + 1.0,
                _ if is_norm => 0.1 * u(tensor.offset + index),
                _ => u(tensor.offset + index) * (2.0 / (fan_in as f64).sqrt()),
            };
            *parameter = number as f32;
        }
    }
    parameters
}

fn examples(shape: Shape) -> Dataset {
    let features = Array2::from_shape_fn((5, shape.len()), |(b, j)| ((b * 3_571 + j * 131) % 997) as f32 / 997.0);
    Dataset::new(features, Targets::Classes { labels: (0..5).collect(), classes: 10 })
}

fn sums(numbers: &[f32]) -> (f64, f64) {
    let numbers = || numbers.iter().map(|&number| f64::from(number));
    (numbers().sum(), numbers().map(|number| number * number).sum())
}

/// Compares tensors with their summaries: norm, sum, first and last entries, all relative to the norm.
fn assert_alike(network: &Network, numbers: &[f32], expected: &Value, tolerance: f64) {
    let mut compared = 0;
    for tensor in network.tensors() {
        let Some(expected) = expected.get(&tensor.name) else { continue };
        let found = &numbers[tensor.offset..][..tensor.entries()];
        let number = |value: &Value| value.as_f64().unwrap();
        let norm = number(&expected["squares"]).sqrt();
        let (sum, squares) = sums(found);
        let count = tensor.entries() as f64;
        assert!(
            (squares.sqrt() / norm - 1.0).abs() < tolerance,
            "{}: norm {}, expected {norm}",
            tensor.name,
            squares.sqrt()
        );
        let error = (sum - number(&expected["sum"])).abs() / (norm * count.sqrt());
        assert!(error < tolerance, "{}: sum is wrong by {error}", tensor.name);
        for (key, part) in [("first", &found[..found.len().min(3)]), ("last", &found[found.len().saturating_sub(3)..])]
        {
            for (found, expected) in part.iter().zip(expected[key].as_array().unwrap()) {
                let error = (f64::from(*found) - number(expected)).abs() / norm;
                assert!(error < tolerance, "{} {key}: {found}, expected {expected}", tensor.name);
            }
        }
        compared += 1;
    }
    assert_eq!(compared, expected.as_object().unwrap().len(), "every tensor is compared");
}

/// Without dropout, which has no effect in an evaluation.
fn simple_cnn_without_dropout() -> Network {
    let mut builder = NetworkBuilder::new(CIFAR);
    let mut layer = builder.input();
    layer = builder.conv("conv1", layer, 32, Window::square(3), true, true);
    layer = builder.conv("conv2", layer, 64, Window::square(3), true, false);
    layer = builder.max_pool(layer, Window { size: 2, stride: 2, padding: 0 }, true);
    layer = builder.dense("fc1", layer, 128, true);
    let output = builder.dense("fc2", layer, 10, false);
    builder.finish(output, Loss::CrossEntropy)
}

#[test]
fn losses_and_gradients_are_pytorchs() {
    let reference: Value = serde_json::from_str(REFERENCE).unwrap();
    let cases = [
        ("lenet5", lenet5(MNIST, 1.0, 10), MNIST),
        ("simple-cnn", simple_cnn_without_dropout(), CIFAR),
        ("resnet18-train", resnet18(CIFAR, 10), CIFAR),
    ];
    for (name, network, shape) in cases {
        let expected = &reference[name];
        let start = fill(&network);
        let (sum, squares) = sums(&start[..network.trained()]);
        for (found, key) in [(sum, "sum"), (squares, "squares")] {
            let expected = expected["parameters"][key].as_f64().unwrap();
            assert!(
                (found - expected).abs() < 1e-6 * squares,
                "{name}: parameters are filled alike: {found}, {expected}"
            );
        }
        let data = examples(shape);
        let mut parameters = start.clone();
        let mut gradient = vec![f32::NAN; network.trained()];
        let mut noise = Streams::new(1).stream(Purpose::TrainingNoise, 0, 0);
        let mut scratch = Scratch::on(Path::detect());
        let batch = [0, 1, 2, 3, 4];
        let loss = network.loss_and_gradient(
            &mut parameters,
            Batch { data: &data, examples: &batch },
            &mut gradient,
            &mut noise,
            &mut scratch,
        );
        let loss_expected = expected["loss"].as_f64().unwrap();
        assert!((f64::from(loss) / loss_expected - 1.0).abs() < 1e-6, "{name}: {loss}, expected {loss_expected}");
        // Single precision loses a few times as much as PyTorch's own: with batch normalisation over five examples
        // a ReLU that rounding switches moves all slopes before it.
        let own = expected["float32"]["gradient"].as_f64().unwrap();
        assert_alike(&network, &gradient, &expected["gradient"], (8.0 * own).max(2e-5));
        if let Some(running) = expected.get("running") {
            assert_alike(&network, &parameters, running, 2e-5);
        }
        if name == "resnet18-train" {
            let evaluated = network.evaluate(&start, Batch { data: &data, examples: &batch }, &mut scratch).loss();
            let expected = reference["resnet18-eval"]["loss"].as_f64().unwrap();
            assert!((evaluated / expected - 1.0).abs() < 1e-6, "evaluation: {evaluated}, expected {expected}");
        }
    }
}
