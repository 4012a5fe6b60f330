//! Linear and softmax regression against plain loops: single-threaded `f32` with one running sum, over the same
//! shuffles. Both do the same number of floating-point operations.

use crate::measure::{Seconds, descent, jobs, measure};
use fedgenie::data::{Dataset, Targets, synthetic::LinearData};
use fedgenie::model::{Batch, LinearRegression, Model, SoftmaxRegression, evaluate};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::trainer::{Trainer, TrainingJob, Update};
use ndarray::Array2;
use std::hint::black_box;

fn report(name: &str, units: f64, unit: &str, seconds: Seconds, reference: Seconds) {
    println!(
        "{name:<52} {:>9.0} {unit}/s (best {:>9.0})   {:>5.2} × plain loops (best {:>5.2})",
        units / seconds.median,
        units / seconds.shortest,
        reference.median / seconds.median,
        reference.shortest / seconds.shortest
    );
}

pub fn linear(clients: usize, size: usize, features: usize) {
    let streams = Streams::new(1);
    let settings = LinearData { examples: clients * size * 7 / 6 + 2, features, noise: 0.5 };
    let data = settings.generate(&streams).expect("the settings are good").train;
    let model = LinearRegression::new(features);
    let start = vec![0.0; model.parameters()];
    let examples: Vec<u32> = (0..(clients * size) as u32).collect();
    let jobs = jobs(&start, &examples, size);
    let (batch, lr) = (10, 0.001);
    let settings = descent(batch, lr, 0.0);
    let mut updates = vec![Update::default(); jobs.len()];
    let mut plain = vec![Vec::new(); jobs.len()];

    let reference = measure(201, || plain_linear(&jobs, &data, (batch, lr), &streams, black_box(&mut plain)));
    let name = format!("linear regression, {clients} × {size} × {features}");
    report(&format!("{name}, plain loops"), clients as f64, "client-epochs", reference, reference);
    for parallel in [false, true] {
        let seconds = measure(201, || {
            Trainer { model: &model, data: &data, settings: &settings, streams: &streams }.train(
                &jobs,
                parallel,
                black_box(&mut updates),
            )
        });
        let how = if parallel { "parallel" } else { "one thread" };
        report(&format!("{name}, {how}"), clients as f64, "client-epochs", seconds, reference);
    }
    for (update, plain) in updates.iter().zip(&plain) {
        assert!(update.parameters.iter().zip(plain).all(|(one, two)| (one - two).abs() < 1e-4), "both learn the same");
    }
}

fn plain_linear(
    jobs: &[TrainingJob<'_>],
    data: &Dataset,
    (batch, lr): (usize, f64),
    streams: &Streams,
    out: &mut [Vec<f32>],
) {
    let (rows, targets) = (data.numbers().expect("numbers"), data.values().expect("numbers"));
    for (job, w) in jobs.iter().zip(out) {
        *w = job.start.to_vec();
        let mut order = job.examples.to_vec();
        streams.stream(Purpose::BatchOrder, job.client.0, job.round.0).shuffle(&mut order);
        let width = rows.width;
        let mut gradient = vec![0.0; width + 1];
        for batch in order.chunks(batch) {
            gradient.fill(0.0);
            for &example in batch {
                let row = rows.row(example);
                let mut sum = w[width];
                for j in 0..width {
                    sum += w[j] * row[j];
                }
                let slope = 2.0 * (sum - targets[example as usize]) / batch.len() as f32;
                for j in 0..width {
                    gradient[j] += slope * row[j];
                }
                gradient[width] += slope;
            }
            for j in 0..=width {
                w[j] -= lr as f32 * gradient[j];
            }
        }
    }
}

pub fn softmax() {
    const WIDTH: usize = 784;
    const CLASSES: usize = 10;
    let streams = Streams::new(1);
    let mut rng = streams.stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((10_000, WIDTH), || rng.uniform() as f32);
    let labels = (0..10_000).map(|_| rng.below(CLASSES as u64) as u8).collect();
    let data = Dataset::new(features, Targets::Classes { labels, classes: CLASSES });
    let model = SoftmaxRegression::new(WIDTH, CLASSES);
    let start = vec![0.0; model.parameters()];
    let examples: Vec<u32> = (0..10_000).collect();
    let jobs = jobs(&start, &examples[..25 * 120], 120);
    let (batch, lr) = (32, 0.01);
    let settings = descent(batch, lr, 0.0);
    let mut updates = vec![Update::default(); jobs.len()];
    let mut plain = vec![Vec::new(); jobs.len()];

    let name = "softmax regression, 25 × 120 × 784";
    let reference = measure(41, || plain_softmax(&jobs, &data, (batch, lr), &streams, black_box(&mut plain)));
    report(&format!("{name}, plain loops"), 3_000.0, "examples", reference, reference);
    for parallel in [false, true] {
        let seconds = measure(41, || {
            Trainer { model: &model, data: &data, settings: &settings, streams: &streams }.train(
                &jobs,
                parallel,
                black_box(&mut updates),
            )
        });
        let how = if parallel { "parallel" } else { "one thread" };
        report(&format!("{name}, {how}"), 3_000.0, "examples", seconds, reference);
    }
    for (update, plain) in updates.iter().zip(&plain) {
        assert!(update.parameters.iter().zip(plain).all(|(one, two)| (one - two).abs() < 1e-3), "both learn the same");
    }

    let parameters = &updates[0].parameters;
    let mut scores = vec![0.0; CLASSES];
    let reference = measure(41, || {
        let rows = data.numbers().expect("numbers");
        let loss: f32 = examples.iter().map(|&e| plain_scores(parameters, rows.row(e), &mut scores)).sum();
        black_box(loss);
    });
    let name = "softmax evaluation, 10,000 × 784";
    report(&format!("{name}, plain loops"), 10_000.0, "examples", reference, reference);
    for parallel in [false, true] {
        let seconds = measure(41, || {
            black_box(evaluate(&model, parameters, Batch { data: &data, examples: &examples }, parallel));
        });
        let how = if parallel { "parallel" } else { "one thread" };
        report(&format!("{name}, {how}"), 10_000.0, "examples", seconds, reference);
    }
}

/// Probabilities of the classes; returns the largest.
fn plain_scores(w: &[f32], row: &[f32], scores: &mut [f32]) -> f32 {
    let (width, classes) = (row.len(), scores.len());
    for class in 0..classes {
        let mut sum = w[classes * width + class];
        for j in 0..width {
            sum += w[class * width + j] * row[j];
        }
        scores[class] = sum;
    }
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for score in scores.iter_mut() {
        *score = libm::expf(*score - largest);
        total += *score;
    }
    scores.iter_mut().for_each(|score| *score /= total);
    1.0 / total
}

fn plain_softmax(
    jobs: &[TrainingJob<'_>],
    data: &Dataset,
    (batch, lr): (usize, f64),
    streams: &Streams,
    out: &mut [Vec<f32>],
) {
    let rows = data.numbers().expect("numbers");
    let (labels, classes) = data.classes().expect("classes");
    let width = rows.width;
    let mut scores = vec![0.0; classes];
    for (job, w) in jobs.iter().zip(out) {
        *w = job.start.to_vec();
        let mut order = job.examples.to_vec();
        streams.stream(Purpose::BatchOrder, job.client.0, job.round.0).shuffle(&mut order);
        let mut gradient = vec![0.0; w.len()];
        for batch in order.chunks(batch) {
            gradient.fill(0.0);
            for &example in batch {
                let row = rows.row(example);
                plain_scores(w, row, &mut scores);
                scores[usize::from(labels[example as usize])] -= 1.0;
                for class in 0..classes {
                    let slope = scores[class] / batch.len() as f32;
                    for j in 0..width {
                        gradient[class * width + j] += slope * row[j];
                    }
                    gradient[classes * width + class] += slope;
                }
            }
            for j in 0..w.len() {
                w[j] -= lr as f32 * gradient[j];
            }
        }
    }
}
