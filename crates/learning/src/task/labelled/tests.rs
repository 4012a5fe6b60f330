//! Jobs on rows: gradients, corrections, epochs of their own.

use super::*;
use crate::data::{Dataset, Shape, Targets};
use crate::model::network::{Loss, NetworkBuilder};
use crate::model::{LinearRegression, families};
use crate::task::job_tests::{check, check_none};
use crate::trainer::{Length, OptimizerConfig};
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{EdgeId, JobNumber, Round};
use ndarray::Array2;

const SHAPE: Shape = Shape { channels: 1, height: 2, width: 3 };

/// Thirty examples: the first client has none, the second 13.
fn task(model: Box<dyn Model>, classes: Option<usize>) -> Labelled {
    let mut rng = Streams::new(4).stream(Purpose::Example, 0, 0);
    let features = Array2::from_shape_simple_fn((30, SHAPE.len()), || rng.uniform() as f32);
    let targets = match classes {
        Some(classes) => Targets::Classes { labels: (0..30).map(|row| (row % classes) as u8).collect(), classes },
        None => Targets::Values((0..30).map(|row| row as f32 / 10.0 - 1.0).collect()),
    };
    let data = Dataset::new(features, targets).with_shape(SHAPE);
    let partition = Partition::deal((0..30).rev().collect(), &[0, 13, 17]);
    Labelled::new(Arc::new(Split { train: data.clone(), test: data }), model, partition, None)
}

fn normalised() -> Box<dyn Model> {
    let mut builder = NetworkBuilder::new(SHAPE);
    let first = builder.dense("first", builder.input(), 5, false);
    let normal = builder.batch_norm("bn", first, false);
    let output = builder.dense("fc", normal, 3, false);
    Box::new(builder.finish(output, Loss::CrossEntropy))
}

#[test]
fn jobs_have_gradients_corrections_and_epochs() {
    let mlp = || Box::new(families::mlp(SHAPE, &[7], families::MlpActivation::Tanh, 3));
    for task in [task(Box::new(LinearRegression::new(6)), None), task(mlp(), Some(3))] {
        check(&task, ClientId(1), true, true);
        check_none(&task, ClientId(0));
    }
    // The loss of a batch depends on its mean and variance.
    check(&task(normalised(), Some(3)), ClientId(1), false, true);
}

/// A model with statistics, in pieces: each at the model that was sent, in the order of the first epoch.
#[test]
fn a_mean_gradient_is_that_of_the_batches_of_the_first_epoch() {
    let (model, task) = (normalised(), task(normalised(), Some(3)));
    let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let settings = LocalTraining { length: Length::Epochs(1), ..LocalTraining::new(1, 5, &sgd).unwrap() };
    let streams = Streams::new(1);
    let start = (&task as &dyn Task).initial_model(0, &streams);
    let (client, number) = (ClientId(1), JobNumber(3));
    let job = Job {
        client,
        round: Round(1),
        number,
        start: &start,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let context = Context { settings: &settings, streams: &streams, loss_rms: true, halt: &NEVER };
    let mut found = Vec::new();
    assert!(task.gradient(&job, &context, &mut Worker::default(), &mut found).unwrap());
    let mut order = task.partition.client(client).to_vec();
    streams.stream(Purpose::BatchOrder, 1, 3).shuffle(&mut order);
    let mut expected = vec![0.0; start.len()];
    for piece in order.chunks(5) {
        let (mut gradient, mut parameters) = (vec![0.0; model.trained()], start.clone());
        let (mut noise, mut scratch) = (streams.stream(Purpose::TrainingNoise, 1, 3), Scratch::default());
        let batch = Batch { data: &task.data.train, examples: piece };
        model.loss_and_gradient(&mut parameters, batch, &mut gradient, &mut noise, &mut scratch);
        assert_ne!(parameters[model.trained()..], start[model.trained()..], "a pass moves statistics");
        let share = piece.len() as f64 / 13.0;
        expected.iter_mut().zip(gradient).for_each(|(sum, slope)| *sum += share * f64::from(slope));
    }
    assert!(start.len() > model.trained() && found.len() == start.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-7, "{found}, {expected}");
    }
}

/// Training classes 2, 2, 1, 0, 0, 0 of which the last row is set aside: shares 2/5, 1/5, 2/5, and class 0 on the tie.
/// On test classes 0, 1, 2, 2 accuracy is 1/4 and the loss −(ln 0.4 + ln 0.2 + 2 ln 0.4)/4.
#[test]
fn a_constant_of_the_most_frequent_class_is_a_control() {
    let of = |labels: &[u8]| {
        let targets = Targets::Classes { labels: labels.to_vec(), classes: 3 };
        Dataset::new(Array2::zeros((labels.len(), SHAPE.len())), targets).with_shape(SHAPE)
    };
    let data = Split { train: of(&[2, 2, 1, 0, 0, 0]), test: of(&[0, 1, 2, 2]) };
    let partition = Partition::deal((0..5).collect(), &[2, 3]);
    let task = Labelled::new(Arc::new(data), normalised(), partition, None).with_validation(vec![5]);
    let Appendix { controls, .. } = task.appendix();
    let [(name, found)] = &controls[..] else { panic!("{controls:?}") };
    let named: Vec<_> = found.iter().map(|(id, value)| (id.to_string(), *value)).collect();
    let (test, valid) = (-(3.0 * 0.4_f64.ln() + 0.2_f64.ln()) / 4.0, -0.4_f64.ln());
    let expected = [("test_loss", test), ("test_accuracy", 0.25), ("valid_loss", valid), ("valid_accuracy", 1.0)];
    assert_eq!((*name, named.len()), ("majority", 4), "{named:?}");
    for ((id, value), (wanted, by_hand)) in named.iter().zip(expected) {
        assert!(id == wanted && (value - by_hand).abs() < 1e-12, "{id} {value}, by hand {by_hand}");
    }
}

/// Clients with the classes 2, 2, 0 and 0, 1, measured on 2, 1 and on 0: the most frequent class of all is 0, as that
/// of the second client, the smaller of two; that of the first is 2, and it knows no class 1.
#[test]
fn constants_at_clients_know_all_or_one() {
    let targets = Targets::Classes { labels: vec![2, 2, 0, 0, 1, 2, 1, 0], classes: 3 };
    let train = Dataset::new(Array2::zeros((8, SHAPE.len())), targets).with_shape(SHAPE);
    let data = Split { test: train.clone(), train };
    let task = Labelled::new(Arc::new(data), normalised(), Partition::deal((0..5).collect(), &[3, 2]), None)
        .measured_on(Partition::deal((5..8).collect(), &[2, 1]));
    let clients = [0, 1].map(|client| On::Client(ClientId(client)));
    let found = task.controls_on(&clients);
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["majority", "own-majority"]);
    let values = |control: usize, client: usize| found[control].1[client].clone().unwrap();
    let ln = |share: f64| -share.ln();
    for (control, client, loss, accuracy) in [
        (0, 0, f64::midpoint(ln(0.4), ln(0.2)), 0.0),
        (0, 1, ln(0.4), 1.0),
        (1, 0, f64::INFINITY, 0.5),
        (1, 1, ln(0.5), 1.0),
    ] {
        let found = values(control, client);
        let is_near = found[0] == loss || (found[0] - loss).abs() < 1e-12;
        assert!(is_near && found[1] == accuracy, "{control} {client}: {found:?}, by hand {loss} {accuracy}");
    }
}

/// The same clients at one server, together with the classes 2, 2, 0, 0, 1: without test examples it is measured on the
/// rows of its clients, with three of them on these. A server of the first client alone answers 2.
#[test]
fn constants_of_servers_know_the_rows_of_their_clients() {
    let targets = Targets::Classes { labels: vec![2, 2, 0, 0, 1, 2, 1, 0], classes: 3 };
    let train = Dataset::new(Array2::zeros((8, SHAPE.len())), targets).with_shape(SHAPE);
    let data = Split { test: train.clone(), train };
    let task = Labelled::new(Arc::new(data), normalised(), Partition::deal((0..5).collect(), &[3, 2]), None);
    let (both, first) = ([ClientId(0), ClientId(1)], [ClientId(0)]);
    let parts =
        [On::Server(EdgeId(0), &both), On::ServerTest(EdgeId(0), &both, &[5, 6, 7]), On::Server(EdgeId(1), &first)];
    let found = task.controls_on(&parts);
    let accuracy = |control: usize| -> Vec<f64> {
        found[control].1.iter().map(|values| values.as_ref().expect("there are rows")[1]).collect()
    };
    assert_eq!(accuracy(0), [0.4, 1.0 / 3.0, 1.0 / 3.0]);
    assert_eq!(accuracy(1), [0.4, 1.0 / 3.0, 2.0 / 3.0]);
}

/// Training numbers −1, −0.9, …, 1.9 on which it is tested as well: mean 0.45, mean squared error their variance,
/// 0.01·(30² − 1)/12.
#[test]
fn a_constant_of_the_mean_number_is_a_control() {
    let task = task(Box::new(LinearRegression::new(SHAPE.len())), None);
    let Appendix { controls, .. } = task.appendix();
    let [("mean", found)] = &controls[..] else { panic!("{controls:?}") };
    assert!(found.len() == 1 && (found[0].1 - 0.01 * 899.0 / 12.0).abs() < 1e-6, "{found:?}");
}
