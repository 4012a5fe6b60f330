//! Single layers: a training step of two equal layers and a small output, so that nearly all of the time is theirs.

use crate::measure::measure;
use fedgenie::data::{Dataset, Shape, Targets};
use fedgenie::lanes::Path;
use fedgenie::model::network::build::{LayerId, Window};
use fedgenie::model::network::{Loss, Network, NetworkBuilder};
use fedgenie::model::{Batch, Model, Scratch};
use fedgenie::rng::{Purpose, Streams};
use ndarray::Array2;
use std::hint::black_box;

/// Channels of input and output, side of the image, kernel, padding, batch.
const CONVOLUTIONS: &[(usize, usize, usize, usize, usize)] = &[
    (6, 12, 5, 0, 32),
    (16, 12, 5, 0, 32),
    (16, 32, 3, 1, 32),
    (64, 30, 3, 0, 10),
    (64, 32, 3, 1, 32),
    (128, 16, 3, 1, 32),
    (256, 8, 3, 1, 32),
    (512, 4, 3, 1, 32),
];

/// Features and outputs, batch.
const DENSE: &[(usize, usize)] = &[(128, 32), (512, 32), (2_048, 10), (2_048, 32)];

fn network(shape: Shape, layer: impl Fn(&mut NetworkBuilder, &str, LayerId) -> LayerId) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let mut last = builder.input();
    for name in ["first", "second"] {
        last = layer(&mut builder, name, last);
    }
    if builder.shape(last).height > 1 {
        last = builder.global_average_pool(last);
    }
    let output = builder.dense("output", last, 2, false);
    builder.finish(output, Loss::CrossEntropy)
}

fn report(name: &str, network: &Network, batch: usize, path: Path, peak: f64) {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((batch, network.input().len()), || rng.uniform() as f32);
    let labels = (0..batch).map(|example| (example % 2) as u8).collect();
    let data = Dataset::new(features, Targets::Classes { labels, classes: 2 });
    let mut parameters = vec![0.0; network.parameters()];
    network.init(&mut rng, &mut parameters);
    let mut gradient = vec![0.0; network.trained()];
    let examples: Vec<u32> = (0..batch as u32).collect();
    let mut scratch = Scratch::on(path);
    let seconds = measure(15, || {
        let gradient = black_box(&mut gradient);
        network.loss_and_gradient(
            &mut parameters,
            Batch { data: &data, examples: &examples },
            gradient,
            &mut rng,
            &mut scratch,
        );
    });
    let operations = 2.0 * network.multiplications() as f64 * batch as f64;
    let (rate, best) = (operations / seconds.median, operations / seconds.shortest);
    println!(
        "{name:<44} {:>6.1} GFLOP/s (best {:>6.1}, {:>5.1} % of the peak), scratch {:.1} MB",
        rate / 1e9,
        best / 1e9,
        100.0 * best / peak,
        scratch.bytes() as f64 / 1e6
    );
}

/// Rates of the direct count of operations: Winograd's filtering needs fewer, and may exceed the peak.
pub fn table(path: Path, peak: f64) {
    for &(channels, side, size, padding, batch) in CONVOLUTIONS {
        let window = Window { size, stride: 1, padding };
        let shape = Shape { channels, height: side, width: side };
        let network = network(shape, |builder, name, input| builder.conv(name, input, channels, window, true, true));
        let name = format!("convolution {size}×{size}, {channels} channels, {side}×{side}, batch {batch}");
        report(&name, &network, batch, path, peak);
    }
    for &(features, batch) in DENSE {
        let shape = Shape { channels: features, height: 1, width: 1 };
        let network = network(shape, |builder, name, input| builder.dense(name, input, features, true));
        report(&format!("fully connected, {features} features, batch {batch}"), &network, batch, path, peak);
    }
}
