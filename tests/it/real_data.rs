//! Fashion-MNIST as published: its counts, its pixels, and what softmax regression reaches on it.
//!
//! Runs where the data is: `FEDGENIE_DATA`, or `../shared/data`, is a folder that contains `fashion-mnist/`.

use fedgenie::data::idx::load_idx_folder;
use fedgenie::data::partition::iid::iid;
use fedgenie::id::{ClientId, Round};
use fedgenie::model::{Model, SoftmaxRegression, evaluate};
use fedgenie::rng::Streams;
use fedgenie::trainer::{LocalTraining, TrainingJob, Update, train};
use std::path::PathBuf;

/// The folder of a data set, or none, with a line that says so.
fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        Some(folder)
    } else {
        println!("skipped: there is no {}; set FEDGENIE_DATA to the folder that contains {name}/", folder.display());
        None
    }
}

#[test]
fn fashion_mnist_is_read_dealt_out_and_learned() {
    let Some(folder) = folder("fashion-mnist") else { return };
    let split = load_idx_folder(&folder).unwrap();

    for (data, examples) in [(&split.train, 60_000), (&split.test, 10_000)] {
        assert_eq!((data.examples(), data.width()), (examples, 784));
        let (labels, classes) = data.classes().unwrap();
        let mut counts = vec![0; classes];
        labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        assert_eq!(counts, [examples / 10; 10]);
    }
    let pixels = split.train.rows().values;
    let mean = pixels.iter().map(|&pixel| f64::from(pixel)).sum::<f64>() / pixels.len() as f64;
    let variance = pixels.iter().map(|&pixel| (f64::from(pixel) - mean).powi(2)).sum::<f64>() / pixels.len() as f64;
    // Published: 0.2860 and 0.3530, to four digits.
    assert!((mean - 0.2860).abs() < 5e-5, "{mean}");
    assert!((variance.sqrt() - 0.3530).abs() < 5e-5, "{}", variance.sqrt());

    let streams = Streams::new(1);
    let partition = iid(&split.train, 500, true, &streams).unwrap();
    let (labels, _) = split.train.classes().unwrap();
    for client in (0..500).map(ClientId) {
        let mut counts = [0; 10];
        partition.client(client).iter().for_each(|&example| counts[usize::from(labels[example as usize])] += 1);
        assert_eq!(counts, [12; 10]);
    }

    let model = SoftmaxRegression::new(784, 10);
    let start = vec![0.0; model.parameters()];
    let examples: Vec<u32> = (0..60_000).collect();
    let job = TrainingJob { client: ClientId(0), round: Round::FIRST, start: &start, examples: &examples };
    let settings = LocalTraining { epochs: 3, batch: 32, learning_rate: 0.05 };
    let mut updates = [Update::default()];
    train(&[job], &model, &split.train, &settings, &streams, false, &mut updates);
    let test: Vec<u32> = (0..10_000).collect();
    let evaluation = evaluate(&model, &updates[0].parameters, &split.test, &test, true);
    println!("Fashion-MNIST, 3 epochs: accuracy {:.4}, loss {:.4}", evaluation.accuracy(), evaluation.loss());
    assert!(evaluation.accuracy() > 0.80, "{}", evaluation.accuracy());
}
