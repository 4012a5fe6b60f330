//! No allocation in a training step, counted for every model; and the memory of clients with private rows.

use super::support::{SETTINGS, world};
use fedgenie::data::{Dataset, Shape, Targets};
use fedgenie::halt::NEVER;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::matrix_factorisation::{BprTraining, Job, Moves, Negatives, Outcome, RowRegularisation, Worker};
use fedgenie::model::families::{MlpActivation, lenet5, mlp, resnet18, simple_cnn};
use fedgenie::model::{Batch, LinearRegression, Model, Scratch, SoftmaxRegression};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::trainer::{Length, LocalTraining, Optimizer, OptimizerConfig, Trainer, TrainingJob, Update};
use ndarray::Array2;

const SHAPE: Shape = Shape { channels: 2, height: 16, width: 16 };

fn data(classifies: bool) -> Dataset {
    let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((50, SHAPE.len()), || rng.uniform() as f32);
    let targets = match classifies {
        true => Targets::Classes { labels: (0..50).map(|example| example % 5).collect(), classes: 5 },
        false => Targets::Values((0..50).map(|example| example as f32 / 50.0).collect()),
    };
    Dataset::new(features, targets).with_shape(SHAPE)
}

fn models() -> Vec<(&'static str, Box<dyn Model>, bool)> {
    vec![
        ("linear regression", Box::new(LinearRegression::new(SHAPE.len())), false),
        ("softmax regression", Box::new(SoftmaxRegression::new(SHAPE.len(), 5)), true),
        ("MLP", Box::new(mlp(SHAPE, &[30, 20], MlpActivation::Gelu, 5)), true),
        ("LeNet-5", Box::new(lenet5(SHAPE, 1.0, 5)), true),
        ("SimpleCNN", Box::new(simple_cnn(SHAPE, 5)), true),
        ("ResNet-18", Box::new(resnet18(SHAPE, 5)), true),
    ]
}

fn start(model: &dyn Model) -> Vec<f32> {
    let mut parameters = vec![0.0; model.parameters()];
    model.init(&mut Streams::new(1).stream(Purpose::ModelInit, 0, 0), &mut parameters);
    parameters
}

#[test]
fn gradients_and_evaluations_do_not_allocate_once_their_batch_sizes_were_met() {
    let counted = allocation_counter::measure(|| drop(std::hint::black_box(vec![1_u8; 100])));
    assert_eq!(counted.count_total, 1, "allocations are counted");
    for (name, model, classifies) in models() {
        let data = data(classifies);
        let mut parameters = start(&*model);
        let mut gradient = vec![0.0; model.trained()];
        let mut noise = Streams::new(1).stream(Purpose::TrainingNoise, 0, 0);
        let mut scratch = Scratch::default();
        let batches: [&[u32]; 2] = [&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[10, 11, 12]];
        let mut steps = || {
            for batch in batches {
                let gradient = &mut gradient;
                model.loss_and_gradient(
                    &mut parameters,
                    Batch { data: &data, examples: batch },
                    gradient,
                    &mut noise,
                    &mut scratch,
                );
                model.evaluate(&parameters, Batch { data: &data, examples: batch }, &mut scratch);
            }
        };
        steps();
        let later = allocation_counter::measure(&mut steps);
        assert_eq!(later.count_total, 0, "{name}");
    }
}

#[test]
fn longer_training_allocates_no_more_than_shorter() {
    let optimizers = [
        OptimizerConfig::Sgd { lr: 1e-4, momentum: 0.9, nesterov: false, weight_decay: 1e-4, dampening: 0.0 },
        OptimizerConfig::Adam { lr: 1e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 },
    ];
    for (name, model, classifies) in models() {
        let data = data(classifies);
        let start = start(&*model);
        let examples: Vec<u32> = (0..23).collect();
        let job = TrainingJob {
            client: ClientId(0),
            round: Round(1),
            number: JobNumber(1),
            start: &start,
            examples: &examples,
        };
        for optimizer in &optimizers {
            let mut updates = [Update::default()];
            let mut allocations = |steps| {
                let settings = LocalTraining {
                    length: Length::Steps(steps),
                    clip: Some(1.0),
                    proximal: 0.1,
                    ..LocalTraining::new(1, 10, optimizer).unwrap()
                };
                let streams = Streams::new(1);
                allocation_counter::measure(|| {
                    Trainer { model: &*model, data: &data, settings: &settings, streams: &streams }.train(
                        &[job],
                        false,
                        &mut updates,
                    );
                })
                .count_total
            };
            // The first call also makes the update's own buffer.
            allocations(3);
            assert_eq!(allocations(7), allocations(3), "{name} with {optimizer:?}");
        }
    }
}

/// A worker that has met rows of a job takes as many steps as one likes without asking for memory.
#[test]
fn steps_on_rows_do_not_allocate() {
    const D: usize = 20;
    let (table, users) = (vec![0.25; 60 * D], vec![0.5; 2 * D]);
    let positives: Vec<u32> = (0..40).collect();
    let streams = Streams::new(1);
    for config in [
        OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 },
        OptimizerConfig::Sgd { lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 1e-4, dampening: 0.0 },
        OptimizerConfig::Adam { lr: 1e-2, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 },
    ] {
        for extra in [RowRegularisation::default(), RowRegularisation { clip: Some(0.1), proximal: 0.1 }] {
            let (mut worker, mut outcome) = (Worker::default(), Outcome::default());
            let mut allocations = |steps| {
                let settings = BprTraining {
                    dimensions: D,
                    length: Length::Steps(steps),
                    batch: 7,
                    optimizer: Optimizer::new(&config).unwrap(),
                    extra,
                    moves: Moves::Touched,
                };
                let job = Job {
                    halt: &NEVER,
                    table: &table,
                    users: &users,
                    positives: &positives,
                    ends: &[25, 40],
                    negatives: Negatives::Drawn,
                    lr_factor: 1.0,
                    correction: None,
                    order: streams.stream(Purpose::BatchOrder, 0, 1),
                    draws: streams.stream(Purpose::TrainingNoise, 0, 1),
                };
                allocation_counter::measure(|| worker.train(&settings, &job, &mut outcome)).count_total
            };
            assert!(allocations(60) > 0, "rows are copied somewhere");
            assert_eq!((allocations(3), allocations(60)), (0, 0), "{config:?}, {extra:?}");
        }
    }
}

/// 10⁵ users as clients, 500 at a time, until all that can have trained.
const MANY: &str = r#"
name = "many"
seeds = 1
[stop]
rounds = 200
[population.latency]
download = { constant = "25 ms" }
compute = { constant = "1 s" }
upload = { constant = "25 ms" }
[task.recommendation]
data = { synthetic = { users = 100_000, items = 20, ratings = 300_000, factors = 1 } }
split = { random = { test = 0.1, valid = 0.0 } }
transfer = { down = "rows", up = "rows" }
model = { mf = { dimensions = 8 } }
[training]
batch = 4
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 500
[policy.round-robin]
"#;

#[test]
fn a_client_with_a_private_row_costs_at_most_100_bytes_beyond_it() {
    const CLIENTS: i64 = 100_000;
    let world = world(MANY, 1);
    assert_eq!(world.population.len() as i64, CLIENTS);
    let policy = || {
        let experiment = fedgenie::scenario::tree::parse(std::path::Path::new("many.toml"), MANY).unwrap();
        let experiment = fedgenie::experiment::Experiment::from_tree(&experiment, std::path::Path::new("."), None);
        world.policies(&experiment.unwrap().first().arms[0].policy).unwrap()
    };
    let settings = RunSettings { evaluate: Evaluations::default(), ..SETTINGS };
    let mut run = None;
    let used = allocation_counter::measure(|| {
        let mut playing = Run::new(&world, "round-robin", policy(), settings.clone(), fedgenie::recorder::NoSink);
        (0..200).for_each(|_| playing.step().unwrap());
        run = Some(playing);
    });
    let run = run.unwrap();
    // A user without ratings for training is never selected.
    let has_data = world.population.data_sizes().iter().map(|&size| size > 0);
    assert!(
        run.counts().iter().zip(has_data).all(|(&count, has_data)| (count > 0) == has_data),
        "everybody has trained"
    );
    let beyond = used.bytes_current as f64 / CLIENTS as f64 - 8.0 * 4.0;
    println!("{beyond:.1} bytes for each client beyond its row of 32 bytes; peak {} bytes", used.bytes_max);
    assert!((16.0..=100.0).contains(&beyond), "{beyond} bytes for each client beyond its row");
}
