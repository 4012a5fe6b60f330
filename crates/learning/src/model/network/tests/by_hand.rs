//! Layers worked by hand.

use super::*;
use ndarray::array;

/// The network's outputs for one example are read from its loss: with squared error and target 0, the loss is their
/// square.
fn loss_and_gradient(network: &Network, parameters: &[f32], data: &Dataset, batch: &[u32]) -> (f32, Vec<f32>) {
    let mut parameters = parameters.to_vec();
    let mut gradient = vec![f32::NAN; network.trained()];
    let mut scratch = Scratch::default();
    let loss = network.loss_and_gradient(
        &mut parameters,
        Batch { data, examples: batch },
        &mut gradient,
        &mut noise(),
        &mut scratch,
    );
    (loss, gradient)
}

fn one_output(shape: Shape, build: impl Fn(&mut NetworkBuilder, LayerId) -> LayerId) -> Network {
    let mut builder = NetworkBuilder::new(shape);
    let input = builder.input();
    let output = build(&mut builder, input);
    builder.finish(output, Loss::SquaredError)
}

#[test]
fn a_convolution() {
    // [1 2 3; 4 5 6; 7 8 9] under the kernel [1 0; 0 -1] and bias 10 is 10 + (1 − 5) = 6 everywhere; summed up by a
    // fully connected layer of ones: 24, whose square is 576. Slope of the sum: 48; by a kernel entry: 48 times the sum
    // of the four numbers it meets.
    let network = one_output(shape(1, 3, 3), |builder, input| {
        let conv = builder.conv("conv", input, 1, Window::square(2), true, true);
        builder.dense("fc", conv, 1, false)
    });
    let data = Dataset::new(array![[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]], Targets::Values(vec![0.0]));
    let parameters = [1.0, 0.0, 0.0, -1.0, 10.0, 1.0, 1.0, 1.0, 1.0, 0.0];
    let (loss, gradient) = loss_and_gradient(&network, &parameters, &data, &[0]);
    assert_eq!(loss, 576.0);
    let sums = [1 + 2 + 4 + 5, 2 + 3 + 5 + 6, 4 + 5 + 7 + 8, 5 + 6 + 8 + 9].map(|sum| 48.0 * sum as f32);
    assert_eq!(gradient[..4], sums);
    assert_eq!(gradient[4..], [4.0 * 48.0, 48.0 * 6.0, 48.0 * 6.0, 48.0 * 6.0, 48.0 * 6.0, 48.0]);
}

#[test]
fn a_convolution_with_stride_and_padding() {
    // [1 2; 3 4] with a ring of zeros, kernel 3 × 3 of 1 … 9, stride 2: only one position, whose window is
    // [0 0 0; 0 1 2; 0 3 4]: 5 + 12 + 24 + 36 = 77.
    let network = one_output(shape(1, 2, 2), |builder, input| {
        let conv = builder.conv("conv", input, 1, Window { size: 3, stride: 2, padding: 1 }, false, false);
        builder.dense("fc", conv, 1, false)
    });
    let data = Dataset::new(array![[1.0, 2.0, 3.0, 4.0]], Targets::Values(vec![0.0]));
    let parameters = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 1.0, 0.0];
    let (loss, gradient) = loss_and_gradient(&network, &parameters, &data, &[0]);
    assert_eq!(loss, 77.0 * 77.0);
    assert_eq!(gradient[..9], [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0].map(|x| 154.0 * x));
}

#[test]
fn pooling_gives_the_gradient_to_the_first_maximum_or_to_all() {
    // Convolution 1 × 1 with weight 1: its weight's gradient is the sum of input times slope.
    for (is_max, loss_expected, expected) in [(true, 25.0, 2.0 * 5.0 * 5.0), (false, 9.0, 2.0 * 3.0 * 3.0)] {
        let network = one_output(shape(1, 2, 2), |builder, input| {
            let conv = builder.conv("conv", input, 1, Window::square(1), false, false);
            let window = Window { size: 2, stride: 2, padding: 0 };
            let pool = if is_max { builder.max_pool(conv, window, false) } else { builder.average_pool(conv, window) };
            builder.dense("fc", pool, 1, false)
        });
        let data = Dataset::new(array![[1.0, 5.0, 5.0, 1.0]], Targets::Values(vec![0.0]));
        let (loss, gradient) = loss_and_gradient(&network, &[1.0, 1.0, 0.0], &data, &[0]);
        assert_eq!((loss, gradient[0]), (loss_expected, expected));
    }
}

#[test]
fn cross_entropy_of_equal_scores() {
    // All scores 0, four classes: loss ln 4; slopes of the biases 1/4, less 1 at the label, over two examples.
    let mut builder = NetworkBuilder::new(shape(1, 1, 1));
    let input = builder.input();
    let output = builder.dense("fc", input, 4, false);
    let network = builder.finish(output, Loss::CrossEntropy);
    let data = Dataset::new(array![[2.0], [4.0]], Targets::Classes { labels: vec![0, 3], classes: 4 });
    let (loss, gradient) = loss_and_gradient(&network, &[0.0; 8], &data, &[0, 1]);
    assert!((f64::from(loss) - 4.0_f64.ln()).abs() < 1e-7);
    assert_eq!(gradient[4..], [-0.25, 0.25, 0.25, -0.25]);
    // Half of 2 (1/4 − 1) + 4/4, of 2/4 + 4/4, and of 2/4 + 4 (1/4 − 1).
    assert_eq!(gradient[..4], [-0.25, 0.75, 0.75, -1.25]);
}

#[test]
fn batch_normalisation_of_two_numbers() {
    // 1 and 3: mean 2, variance 1, normal −1 and 1 (but for ε); with γ = 2, β = 5 and targets 3 and 9 the errors are 0
    // and −2.
    let network = one_output(shape(1, 1, 1), |builder, input| {
        let normal = builder.batch_norm("bn", input, false);
        builder.dense("fc", normal, 1, false)
    });
    let data = Dataset::new(array![[1.0], [3.0]], Targets::Values(vec![3.0, 9.0]));
    let mut parameters = vec![2.0, 5.0, 1.0, 0.0, 0.0, 1.0];
    let mut gradient = vec![0.0; 4];
    let mut scratch = Scratch::default();
    let loss = network.loss_and_gradient(
        &mut parameters,
        Batch { data: &data, examples: &[0, 1] },
        &mut gradient,
        &mut noise(),
        &mut scratch,
    );
    assert!((loss - 2.0).abs() < 1e-4, "{loss}");
    for (found, expected) in gradient.iter().zip([-2.0, -2.0, -14.0, -2.0]) {
        assert!((found - expected).abs() < 2e-4, "{found}, expected {expected}");
    }
    // A tenth of the way from 0 to the mean 2, and from 1 to the unbiased variance 2.
    assert!((parameters[4] - 0.2).abs() < 1e-6 && (parameters[5] - 1.1).abs() < 1e-6, "{parameters:?}");
}

#[test]
fn dropout_keeps_the_expectation_and_drops_the_stated_share() {
    let network = one_output(shape(1_000, 1, 1), |builder, input| {
        let kept = builder.dropout(input, 0.25);
        builder.dense("fc", kept, 1, false)
    });
    let data = Dataset::new(Array2::ones((1, 1_000)), Targets::Values(vec![0.0]));
    let mut parameters = vec![1e-3; 1_001];
    parameters[1_000] = 0.0;
    let (mut scratch, mut rng) = (Scratch::default(), noise());
    let mut gradient = vec![0.0; 1_001];
    let losses = (0..200).map(|_| {
        network
            .loss_and_gradient(
                &mut parameters,
                Batch { data: &data, examples: &[0] },
                &mut gradient,
                &mut rng,
                &mut scratch,
            )
            .sqrt()
    });
    let mean = losses.sum::<f32>() / 200.0;
    // Each sum has mean 1 and variance (1/3)/1000; their mean over 200 a deviation of 0.0013.
    assert!((mean - 1.0).abs() < 0.006, "{mean}");
    let evaluation = network.evaluate(&parameters, Batch { data: &data, examples: &[0] }, &mut scratch);
    assert!((evaluation.loss() - 1.0).abs() < 1e-4, "nothing is dropped in an evaluation");
}
