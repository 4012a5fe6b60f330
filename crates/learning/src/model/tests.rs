//! Gradients against central differences in `f64`, cases worked by hand, and independence of the number of threads.

use super::*;
use crate::data::Targets;
use fedgenie_core::halt::{Effort, Halt};
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::{Array2, array};
use std::time::Duration;

fn random_data(examples: usize, width: usize, classes: Option<usize>) -> Dataset {
    let mut rng = Streams::new(8).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((examples, width), || rng.uniform() as f32);
    let targets = match classes {
        None => Targets::Values((0..examples).map(|_| 2.0 * rng.uniform() as f32).collect()),
        Some(classes) => {
            let labels = (0..examples).map(|_| rng.below(classes as u64) as u8).collect();
            Targets::Classes { labels, classes }
        }
    };
    Dataset::new(features, targets)
}

fn random_parameters(count: usize) -> Vec<f32> {
    let mut rng = Streams::new(9).stream(Purpose::ModelInit, 0, 0);
    (0..count).map(|_| rng.uniform() as f32 - 0.5).collect()
}

/// The mean loss in `f64`, written down a second time from the definition.
fn loss_in_f64(parameters: &[f64], data: &Dataset, batch: &[u32]) -> f64 {
    let width = data.width();
    let score = |class: usize, classes: usize, row: &[f32]| {
        let product: f64 = row.iter().zip(&parameters[class * width..]).map(|(&x, w)| f64::from(x) * w).sum();
        product + parameters[classes * width + class]
    };
    let losses = batch.iter().map(|&example| {
        let row = data.numbers().unwrap().row(example);
        match data.targets() {
            Targets::Values(values) => {
                let residual = score(0, 1, row) - f64::from(values[example as usize]);
                residual * residual
            }
            Targets::Classes { labels, classes } => {
                let sum: f64 = (0..*classes).map(|class| libm::exp(score(class, *classes, row))).sum();
                libm::log(sum) - score(usize::from(labels[example as usize]), *classes, row)
            }
        }
    });
    losses.sum::<f64>() / batch.len() as f64
}

fn loss_and_gradient(model: &dyn Model, parameters: &[f32], data: &Dataset, batch: &[u32]) -> (f32, Vec<f32>) {
    let mut gradient = vec![f32::NAN; model.trained()];
    let mut noise = Streams::new(9).stream(Purpose::TrainingNoise, 0, 0);
    let mut scratch = Scratch::default();
    let loss = model.loss_and_gradient(
        &mut parameters.to_vec(),
        Batch { data, examples: batch },
        &mut gradient,
        &mut noise,
        &mut scratch,
    );
    (loss, gradient)
}

fn assert_gradient_is_right(model: &dyn Model, data: &Dataset) {
    let batch: Vec<u32> = (0..data.examples() as u32).rev().collect();
    let parameters = random_parameters(model.parameters());
    let (loss, gradient) = loss_and_gradient(model, &parameters, data, &batch);
    let mut exact: Vec<f64> = parameters.iter().map(|&parameter| f64::from(parameter)).collect();
    assert!((f64::from(loss) - loss_in_f64(&exact, data, &batch)).abs() < 1e-5);
    for index in 0..exact.len() {
        let (middle, step) = (exact[index], 1e-5);
        exact[index] = middle + step;
        let above = loss_in_f64(&exact, data, &batch);
        exact[index] = middle - step;
        let below = loss_in_f64(&exact, data, &batch);
        exact[index] = middle;
        let expected = (above - below) / (2.0 * step);
        assert!((f64::from(gradient[index]) - expected).abs() < 2e-5, "{index}: {} not {expected}", gradient[index]);
    }
}

#[test]
fn gradients_agree_with_central_differences() {
    // Widths with and without whole blocks of 16, batches of more than one block of examples, odd numbers of classes.
    for width in [1, 10, 16, 37] {
        for examples in [1, 5, 150] {
            assert_gradient_is_right(&LinearRegression::new(width), &random_data(examples, width, None));
            for classes in [1, 2, 5] {
                let data = random_data(examples, width, Some(classes));
                assert_gradient_is_right(&SoftmaxRegression::new(width, classes), &data);
            }
        }
    }
}

#[test]
fn every_path_gives_the_same_bits() {
    for (width, classes) in
        [(1, None), (10, None), (100, None), (10, Some(2)), (37, Some(7)), (784, Some(10)), (16, Some(256))]
    {
        let data = random_data(40, width, classes);
        let model: Box<dyn Model> = match classes {
            None => Box::new(LinearRegression::new(width)),
            Some(classes) => Box::new(SoftmaxRegression::new(width, classes)),
        };
        let mut parameters = random_parameters(model.parameters());
        for batch in [1, 10, 16, 39] {
            let batch: Vec<u32> = (0..batch).map(|index| index * 17 % 40).collect();
            let mut results = Vec::new();
            for path in Path::all() {
                let mut scratch = Scratch::on(path);
                let mut noise = Streams::new(9).stream(Purpose::TrainingNoise, 0, 0);
                let mut gradient = vec![f32::NAN; model.trained()];
                let loss = model.loss_and_gradient(
                    &mut parameters,
                    Batch { data: &data, examples: &batch },
                    &mut gradient,
                    &mut noise,
                    &mut scratch,
                );
                let evaluation = model.evaluate(&parameters, Batch { data: &data, examples: &batch }, &mut scratch);
                gradient.push(loss);
                let bits: Vec<u32> = gradient.into_iter().map(f32::to_bits).collect();
                results.push((bits, evaluation.loss_sum.to_bits(), evaluation.correct));
            }
            assert!(results.iter().all(|result| *result == results[0]), "{width}, {classes:?}, {}", batch.len());
        }
    }
}

#[test]
fn linear_regression_by_hand() {
    // ŷ = 1·x₁ + 2·x₂ + 0.5: predictions 3.5 and 1.5, residuals 1.5 and −0.5.
    let data = Dataset::new(array![[1.0, 1.0], [1.0, 0.0]], Targets::Values(vec![2.0, 2.0]));
    let (model, parameters) = (LinearRegression::new(2), [1.0, 2.0, 0.5]);
    let (loss, gradient) = loss_and_gradient(&model, &parameters, &data, &[0, 1]);
    assert_eq!(loss, 1.25);
    assert_eq!(gradient, [1.0, 1.5, 1.0]);
    let evaluation = model.evaluate(&parameters, Batch { data: &data, examples: &[0, 1] }, &mut Scratch::default());
    assert_eq!(evaluation, Evaluation { loss_sum: 2.5, correct: 0, examples: 2 });
}

#[test]
fn softmax_regression_by_hand() {
    // With zero parameters every class has probability 1/4: loss ln 4, gradient (1/4 − 1{c = y})·x.
    let data = Dataset::new(array![[2.0]], Targets::Classes { labels: vec![1], classes: 4 });
    let model = SoftmaxRegression::new(1, 4);
    let (loss, gradient) = loss_and_gradient(&model, &[0.0; 8], &data, &[0]);
    assert!((f64::from(loss) - 4_f64.ln()).abs() < 1e-6);
    assert_eq!(gradient, [0.5, -1.5, 0.5, 0.5, 0.25, -0.75, 0.25, 0.25]);
    let right = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(
        model.evaluate(&right, Batch { data: &data, examples: &[0, 0] }, &mut Scratch::default()).accuracy(),
        1.0
    );
    assert_eq!(model.evaluate(&[0.0; 8], Batch { data: &data, examples: &[0] }, &mut Scratch::default()).correct, 0);
}

#[test]
fn models_start_at_zero() {
    let mut parameters = vec![1.0; 22];
    SoftmaxRegression::new(10, 2).init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut parameters);
    assert_eq!(parameters, [0.0; 22]);
}

#[test]
fn evaluation_does_not_depend_on_the_number_of_threads() {
    let data = random_data(1_500, 33, Some(7));
    let model = SoftmaxRegression::new(33, 7);
    let parameters = random_parameters(model.parameters());
    let examples: Vec<u32> = (0..1_500).collect();
    let serial = evaluate(&model, &parameters, Batch { data: &data, examples: &examples }, false);
    assert_eq!(serial.examples, 1_500);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let parallel = pool.install(|| evaluate(&model, &parameters, Batch { data: &data, examples: &examples }, true));
        assert_eq!(parallel.loss_sum.to_bits(), serial.loss_sum.to_bits());
        assert_eq!(parallel.correct, serial.correct);
    }
}

#[test]
fn an_evaluation_that_is_stopped_leaves_out_the_rest() {
    let data = random_data(1_500, 33, Some(7));
    let model = SoftmaxRegression::new(33, 7);
    let parameters = random_parameters(model.parameters());
    let examples: Vec<u32> = (0..1_500).collect();
    let batch = Batch { data: &data, examples: &examples };
    let halt = Halt::new();
    halt.ask(Duration::ZERO);
    for parallel in [false, true] {
        let effort = Effort { parallel, halt: &halt };
        assert_eq!(evaluate(&model, &parameters, batch, effort).examples, 0);
        assert!(outputs(&model, &parameters, &[batch], effort).numbers.is_empty());
    }
}

#[test]
fn data_that_does_not_fit_is_refused() {
    let (numbers, classes) = (random_data(3, 4, None), random_data(3, 4, Some(3)));
    assert_eq!(LinearRegression::new(4).fits(&numbers), Ok(()));
    assert_eq!(SoftmaxRegression::new(4, 3).fits(&classes), Ok(()));
    assert!(matches!(LinearRegression::new(5).fits(&numbers), Err(ModelError::Width { found: 4, expected: 5 })));
    assert!(matches!(LinearRegression::new(4).fits(&classes), Err(ModelError::Targets { .. })));
    assert!(matches!(SoftmaxRegression::new(4, 3).fits(&numbers), Err(ModelError::Targets { .. })));
    assert!(matches!(SoftmaxRegression::new(4, 2).fits(&classes), Err(ModelError::Classes { .. })));
}

#[test]
fn bytes_give_the_bits_of_their_numbers() {
    for width in [1, 17, 48] {
        let bytes: Vec<u8> = (0..40 * width).map(|place| (place * 97 % 256) as u8).collect();
        let classes = || Targets::Classes { labels: (0..40).map(|example| example % 3).collect(), classes: 3 };
        let values = || Targets::Values((0..40_u8).map(f32::from).collect());
        let shape = crate::data::Shape { channels: width, height: 1, width: 1 };
        let models: [(Box<dyn Model>, Targets); 3] = [
            (Box::new(LinearRegression::new(width)), values()),
            (Box::new(SoftmaxRegression::new(width, 3)), classes()),
            (Box::new(SoftmaxRegression::additive(shape, 3)), classes()),
        ];
        for (model, targets) in models {
            let packed = Dataset::of_bytes(bytes.clone(), width, targets.clone());
            let plain = Dataset::new(packed.features().into_owned(), targets);
            let parameters = random_parameters(model.parameters());
            let examples: Vec<u32> = (0..21).map(|index| index * 17 % 40).collect();
            for path in Path::all() {
                let [packed, plain] = [&packed, &plain].map(|data| {
                    let (mut scratch, batch) = (Scratch::on(path), Batch { data, examples: &examples });
                    let mut numbers = vec![f32::NAN; model.trained()];
                    let mut noise = Streams::new(9).stream(Purpose::TrainingNoise, 0, 0);
                    let mut start = parameters.clone();
                    let loss = model.loss_and_gradient(&mut start, batch, &mut numbers, &mut noise, &mut scratch);
                    numbers.push(loss);
                    model.outputs(&parameters, batch, &mut scratch, &mut numbers);
                    let bits: Vec<u32> = numbers.into_iter().map(f32::to_bits).collect();
                    (bits, model.evaluate(&parameters, batch, &mut scratch).loss_sum.to_bits())
                });
                assert!(packed == plain, "{width}, {path:?}");
            }
        }
    }
}
