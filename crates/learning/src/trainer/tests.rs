//! Steps worked by hand, order and independence of threads, divergence.

use super::*;
use crate::data::{Shape, Targets, synthetic::LinearData};
use crate::model::{Batch, LinearRegression, SoftmaxRegression, evaluate, families};
use ndarray::{Array2, array};

/// So many epochs of plain gradient descent.
fn descent(epochs: u32, batch: usize, lr: f64) -> LocalTraining {
    let optimizer = OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    LocalTraining::new(epochs, batch, &optimizer).unwrap()
}

fn settings() -> LocalTraining {
    descent(2, 10, 0.05)
}

/// A step of the hash FNV-1a, over whole words.
const fn fowler_noll_vo(hash: u64, number: &f32) -> u64 {
    (hash ^ number.to_bits() as u64).wrapping_mul(0x100_0000_01b3)
}

fn trained(jobs: &[TrainingJob<'_>], model: &dyn Model, data: &Dataset, settings: &LocalTraining) -> Vec<Update> {
    let mut updates = vec![Update::default(); jobs.len()];
    Trainer { model, data, settings, streams: &Streams::new(1) }.train(jobs, false, &mut updates);
    updates
}

#[test]
fn two_full_steps_by_hand() {
    // One example x = 1, y = 2, start w = b = 0, η = 0.25: residual −2, slopes −4, so w = b = 1; then residual 0.
    let data = Dataset::new(array![[1.0]], Targets::Values(vec![2.0]));
    let job =
        TrainingJob { client: ClientId(0), round: Round(1), number: JobNumber(1), start: &[0.0, 0.0], examples: &[0] };
    let settings = descent(2, 5, 0.25);
    let update = &trained(&[job], &LinearRegression::new(1), &data, &settings)[0];
    assert_eq!(*update, Update { parameters: vec![1.0, 1.0], first_loss: 4.0, steps: 2, ..Update::default() });
}

#[test]
fn the_first_loss_weighs_batches_by_their_examples() {
    // A step size too small to change anything: the losses 1, 1, 4 give 2 in whatever batches of 2 and 1.
    let data = Dataset::new(array![[0.0], [0.0], [0.0]], Targets::Values(vec![1.0, 1.0, 2.0]));
    let job = TrainingJob {
        client: ClientId(0),
        round: Round(1),
        number: JobNumber(1),
        start: &[0.0, 0.0],
        examples: &[0, 1, 2],
    };
    let settings = descent(3, 2, 1e-30);
    assert_eq!(trained(&[job], &LinearRegression::new(1), &data, &settings)[0].first_loss, 2.0);
}

#[test]
fn updates_do_not_depend_on_the_number_of_threads() {
    let linear = LinearData { examples: 700, features: 37, noise: 0.1 }.generate(&Streams::new(2)).unwrap().train;
    let labels = (0..600).map(|example| (example % 3) as u8).collect();
    let classes = Dataset::new(linear.features().into_owned(), Targets::Classes { labels, classes: 3 });
    let cases: [(&dyn Model, &Dataset); 2] =
        [(&LinearRegression::new(37), &linear), (&SoftmaxRegression::new(37, 3), &classes)];
    let examples: Vec<u32> = (0..600).collect();
    for (model, data) in cases {
        let start = vec![0.1; model.parameters()];
        let jobs: Vec<TrainingJob<'_>> = examples
            .chunks(3)
            .enumerate()
            .map(|(k, examples)| TrainingJob {
                client: ClientId(k as u32),
                round: Round(4),
                number: JobNumber(4),
                start: &start,
                examples,
            })
            .collect();
        let serial = trained(&jobs, model, data, &settings());
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            // Buffers that held something else before.
            let mut updates =
                vec![
                    Update { parameters: vec![7.0; 3], first_loss: 7.0, diverged: true, ..Update::default() };
                    jobs.len()
                ];
            pool.install(|| {
                Trainer { model, data, settings: &settings(), streams: &Streams::new(1) }.train(
                    &jobs,
                    true,
                    &mut updates,
                )
            });
            for (update, expected) in updates.iter().zip(&serial) {
                let bits = |update: &Update| update.parameters.iter().map(|p| p.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(update), bits(expected));
                assert_eq!(update.first_loss.to_bits(), expected.first_loss.to_bits());
            }
        }
    }
}

#[test]
fn an_update_depends_on_client_and_round_but_not_on_the_company() {
    let data = LinearData { examples: 70, ..LinearData::default() }.generate(&Streams::new(2)).unwrap().train;
    let (model, start, examples) = (LinearRegression::new(10), [0.0; 11], Vec::from_iter(0..60));
    let job = |client, round| TrainingJob {
        client: ClientId(client),
        round: Round(round),
        number: JobNumber(round),
        start: &start,
        examples: &examples,
    };
    let together = trained(&[job(0, 1), job(1, 1), job(0, 2)], &model, &data, &settings());
    assert_eq!(trained(&[job(1, 1)], &model, &data, &settings())[0], together[1]);
    assert_ne!(together[0], together[1]);
    assert_ne!(together[0], together[2]);
}

#[test]
fn training_approaches_the_noise_floor() {
    let split = LinearData { examples: 7_000, ..LinearData::default() }.generate(&Streams::new(2)).unwrap();
    let (model, examples) = (LinearRegression::new(10), Vec::from_iter(0..6_000));
    let job = TrainingJob {
        client: ClientId(0),
        round: Round(1),
        number: JobNumber(1),
        start: &[0.0; 11],
        examples: &examples,
    };
    let settings = descent(10, 50, 0.02);
    let update = &trained(&[job], &model, &split.train, &settings)[0];
    let test =
        evaluate(&model, &update.parameters, Batch { data: &split.test, examples: &Vec::from_iter(0..1_000) }, false);
    // The noise has variance 0.25; 1,000 squared residuals have a standard error of 0.011.
    assert!((test.loss() - 0.25).abs() < 0.05, "{}", test.loss());
}

#[test]
fn divergence_is_noticed() {
    let data = LinearData { examples: 70, ..LinearData::default() }.generate(&Streams::new(2)).unwrap().train;
    let examples = Vec::from_iter(0..60);
    let job = TrainingJob {
        client: ClientId(0),
        round: Round(1),
        number: JobNumber(1),
        start: &[0.0; 11],
        examples: &examples,
    };
    let settings = descent(50, 10, 100.0);
    let update = &trained(&[job], &LinearRegression::new(10), &data, &settings)[0];
    assert!(update.diverged);
    let settings = descent(1, 60, 1e38);
    assert!(trained(&[job], &LinearRegression::new(10), &data, &settings)[0].diverged, "one step to infinity");
}

#[test]
fn every_nan_of_a_diverged_update_has_the_same_bits() {
    let data = Dataset::new(Array2::zeros((1, 1)), Targets::Values(vec![0.0]));
    let start = [f32::from_bits(0xffc0_1234), 1.0];
    let job = TrainingJob { client: ClientId(0), round: Round(1), number: JobNumber(1), start: &start, examples: &[0] };
    let update = &trained(&[job], &LinearRegression::new(1), &data, &settings())[0];
    assert!(update.diverged);
    assert_eq!(update.parameters[0].to_bits(), f32::NAN.to_bits());
    assert_eq!(update.first_loss.to_bits(), f64::NAN.to_bits());
    assert_eq!(update.parameters[1], 1.0);
}

#[test]
fn a_client_without_examples_changes_nothing() {
    let data = Dataset::new(Array2::zeros((1, 1)), Targets::Values(vec![0.0]));
    let job =
        TrainingJob { client: ClientId(0), round: Round(1), number: JobNumber(1), start: &[0.5, 1.5], examples: &[] };
    let update = &trained(&[job], &LinearRegression::new(1), &data, &settings())[0];
    assert_eq!(*update, Update { parameters: vec![0.5, 1.5], first_loss: 0.0, ..Update::default() });
}

#[test]
fn settings_without_sense_are_named() {
    for (settings, key) in [
        (LocalTraining { length: Length::Epochs(0), ..settings() }, "epochs"),
        (LocalTraining { length: Length::Steps(0), ..settings() }, "steps"),
        (LocalTraining { batch: 0, ..settings() }, "batch"),
        (LocalTraining { clip: Some(0.0), ..settings() }, "clip"),
        (LocalTraining { proximal: -1.0, ..settings() }, "proximal"),
    ] {
        assert_eq!(settings.check().unwrap_err().key, key);
    }
    for lr in [0.0, f64::NAN, 1e300] {
        let optimizer = OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
        assert_eq!(LocalTraining::new(1, 1, &optimizer).unwrap_err().key, "lr");
    }
}

#[test]
fn the_rate_of_a_round_is_that_of_its_steps() {
    let data = Dataset::new(array![[1.0]], Targets::Values(vec![2.0]));
    let schedule = Schedule::Exponential { decay: 0.5, warmup: 1 };
    let settings = LocalTraining { schedule, ..descent(1, 1, 0.3) };
    for (round, factor) in [(1, 0.5), (2, 1.0), (4, 0.25)] {
        let job = TrainingJob {
            client: ClientId(0),
            round: Round(round),
            number: JobNumber(1),
            start: &[0.0, 0.0],
            examples: &[0],
        };
        // From 0, where the slope is −4.
        let moved = trained(&[job], &LinearRegression::new(1), &data, &settings)[0].parameters[0];
        assert_eq!((settings.rate(Round(round)), 4.0 * settings.rate(Round(round))), ((0.3 * factor) as f32, moved));
    }
}

#[test]
fn steps_take_as_many_passes_as_they_need() {
    let data = LinearData { examples: 70, ..LinearData::default() }.generate(&Streams::new(2)).unwrap().train;
    let examples = Vec::from_iter(0..25);
    let job = TrainingJob {
        client: ClientId(0),
        round: Round(1),
        number: JobNumber(1),
        start: &[0.0; 11],
        examples: &examples,
    };
    let model = LinearRegression::new(10);
    // 25 examples in batches of 10 are three steps an epoch.
    let two_epochs = &trained(&[job], &model, &data, &settings())[0];
    let six_steps = LocalTraining { length: Length::Steps(6), ..settings() };
    assert_eq!(trained(&[job], &model, &data, &six_steps)[0], *two_epochs);
    let seven_steps = LocalTraining { length: Length::Steps(7), ..settings() };
    assert_ne!(trained(&[job], &model, &data, &seven_steps)[0], *two_epochs);
    assert_eq!([six_steps.examples(25), seven_steps.examples(25)], [50.0, 60.0]);
}

#[test]
fn networks_train_alike_on_every_path_and_any_number_of_threads() {
    let shape = Shape { channels: 1, height: 16, width: 16 };
    let mut rng = Streams::new(4).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((90, shape.len()), || rng.uniform() as f32);
    let labels = (0..90).map(|example| (example % 4) as u8).collect();
    let data = Dataset::new(features, Targets::Classes { labels, classes: 4 });
    let examples: Vec<u32> = (0..90).collect();
    let cases = [
        (families::lenet5(shape, 1.0, 4), 11_562_775_492_857_895_269),
        (families::simple_cnn(shape, 4), 4_290_635_936_409_278_789),
    ];
    for (model, pinned) in cases {
        let mut start = vec![0.0; model.parameters()];
        model.init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut start);
        // The last client has fewer examples than a batch, and batches of 7 leave smaller ones behind.
        let jobs: Vec<TrainingJob<'_>> = examples
            .chunks(22)
            .enumerate()
            .map(|(k, examples)| TrainingJob {
                client: ClientId(k as u32),
                round: Round(4),
                number: JobNumber(4),
                start: &start,
                examples,
            })
            .collect();
        let settings = descent(2, 7, 0.05);
        let on = |path, parallel, threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut updates = vec![Update::default(); jobs.len()];
            pool.install(|| {
                Trainer { model: &model, data: &data, settings: &settings, streams: &Streams::new(1) }.train_on(
                    path,
                    &jobs,
                    parallel,
                    &mut updates,
                );
            });
            updates
        };
        let expected = on(Path::detect(), false, 1);
        assert!(expected.iter().all(|update| !update.diverged && update.parameters != start));
        // Pinned, so that processors that never meet are compared.
        let parameters = expected.iter().flat_map(|update| &update.parameters);
        assert_eq!(
            parameters.fold(0xcbf2_9ce4_8422_2325, fowler_noll_vo),
            pinned,
            "other bits than on other processors"
        );
        for path in Path::all() {
            for threads in [1, 3] {
                assert!(on(path, true, threads) == expected, "{path:?} on {threads} threads");
            }
        }
    }
}
