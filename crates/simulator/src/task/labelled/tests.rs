//! Keys of labelled tasks, and the rows that are set aside.

use super::*;
use crate::task::{ModelState, On, PrivateTable, PrivateView};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_learning::data::{Dataset, Targets};
use ndarray::Array2;

#[test]
fn numbers_are_no_classes() {
    let numbers = Dataset::new(Array2::zeros((2, 1)), Targets::Values(vec![0.5, 1.5]));
    let error = classes(&Split { train: numbers.clone(), test: numbers }).unwrap_err().to_string();
    assert_eq!(error, "the model predicts classes, the data has numbers as targets");
}

/// The task of `[task.linear-regression]` with these keys.
fn dealt(keys: &str, clients: usize, seed: u64) -> Result<Arc<dyn Task>, TaskError> {
    let config: crate::task::TaskConfig =
        format!("[linear-regression]\nfeatures = 2\n{keys}").parse::<toml::Table>().unwrap().try_into().unwrap();
    let settings = config.as_settings();
    settings.check().map_err(TaskError::Setting)?;
    let streams = Streams::new(seed);
    let material = settings.material(&streams, &DataCache::default())?.unwrap();
    material.deal(clients, &[], &streams)
}

fn held(task: &Labelled) -> Vec<u32> {
    let clients = 0..task.partition.clients();
    let mut all: Vec<u32> =
        clients.flat_map(|client| task.partition.client(ClientId::from_index(client)).to_vec()).collect();
    all.sort_unstable();
    all
}

/// Of 60 training rows ⌊0.29·60⌋ = 17 are for validation, which nobody holds; the others are dealt as the partition
/// deals 43 rows, in the order that the rows have.
#[test]
fn rows_for_validation_belong_to_nobody() {
    for seed in [1, 2] {
        let streams = Streams::new(seed);
        let SetAside { train, valid } = SetAside::draw(60, 0.29, &streams).unwrap();
        assert_eq!((train.len(), valid.len()), (43, 17));
        let task = dealt("examples = 70\nvalidation = 0.29\npartition = { iid = {} }", 4, seed).unwrap();
        let task = task.downcast::<Labelled>().unwrap();
        assert_eq!(held(task), train);
        let plain = PartitionConfig::default();
        let rows = Dataset::new(Array2::zeros((43, 0)), Targets::Values(vec![0.0; 43]));
        let expected = plain.build(&rows, 4, &[], &streams).unwrap();
        for client in (0..4).map(ClientId) {
            let rows: Vec<u32> = expected.client(client).iter().map(|&row| train[row as usize]).collect();
            assert_eq!(task.partition.client(client), rows);
        }
        let whole = dealt("examples = 70", 4, seed).unwrap();
        assert_eq!(held(whole.downcast().unwrap()), (0..60).collect::<Vec<_>>());
    }
}

/// The loss on validation rows, and the further metrics, from the definitions.
#[test]
fn validation_rows_are_measured() {
    let keys = "examples = 70\nvalidation = 0.25\nmetrics = [\"mae\", \"rmse\"]";
    let task = dealt(keys, 3, 5).unwrap();
    let labelled = task.downcast::<Labelled>().unwrap();
    let SetAside { valid, .. } = SetAside::draw(60, 0.25, &Streams::new(5)).unwrap();
    let model = [0.5, -1.0, 0.25];
    let errors: Vec<f64> = valid
        .iter()
        .map(|&row| {
            let features = labelled.data.train.features();
            let features = features.row(row as usize);
            let value = labelled.data.train.values().unwrap()[row as usize];
            f64::from(model[0] * features[0] + model[1] * features[1] + model[2] - value)
        })
        .collect();
    let mean = |of: fn(f64) -> f64| errors.iter().copied().map(of).sum::<f64>() / 15.0;
    let (squares, absolute) = (mean(|error| error * error), mean(f64::abs));
    let private = PrivateTable::new(3);
    let state =
        ModelState { model: &model, private: PrivateView::of(&private), round: Round(0), moved: &[], memories: &[] };
    let mut values = [f64::NAN; 3];
    assert_eq!(task.measure(On::Valid, &state, false, &mut values).unwrap(), 15.0);
    for (found, expected) in values.into_iter().zip([squares, absolute, squares.sqrt()]) {
        assert!((found - expected).abs() < 1e-5, "{values:?}");
    }
    let mut parallel = [f64::NAN; 3];
    task.measure(On::Valid, &state, true, &mut parallel).unwrap();
    assert_eq!(values, parallel);
    // The slope is that of the loss on validation rows: central differences of it.
    let mut slope = Vec::new();
    assert!(task.losses().unwrap().slope(&state, &mut slope).unwrap());
    for place in 0..3 {
        let loss = |step: f32| {
            let mut model = model;
            model[place] += step;
            let mut values = [0.0; 3];
            task.measure(On::Valid, &ModelState { model: &model, ..state }, false, &mut values).unwrap();
            values[0]
        };
        let expected = (loss(0.01) - loss(-0.01)) / 0.02;
        assert!((f64::from(slope[place]) - expected).abs() < 1e-3, "{place}: {} {expected}", slope[place]);
    }
}

#[test]
fn wrong_keys_are_named() {
    for (keys, path, words) in [
        ("validation = 1.0", "validation", "found 1; expected a share of at least 0 and below 1"),
        ("validation = -0.1", "validation", "found -0.1; expected a share"),
        ("validation = nan", "validation", "found NaN; expected a share"),
        ("metrics = [\"f1\"]", "metrics", "found \"f1\"; expected names among rmse, mae"),
        ("metrics = [\"loss\"]", "metrics", "found \"loss\"; expected names among rmse, mae"),
        ("metrics = [\"mae\", \"mae\"]", "metrics", "\"mae\" is listed twice"),
    ] {
        match dealt(keys, 2, 1) {
            Err(TaskError::Setting(complaint)) => {
                assert!(complaint.path == path && complaint.message.contains(words), "{complaint:?}");
            }
            other => panic!("{keys}: {:?}", other.map(|_| ())),
        }
    }
    let error = dealt("examples = 70\nvalidation = 0.001", 2, 1).err().unwrap().to_string();
    assert!(error.contains("0.001 of 60 training rows, which is 0 of them"), "{error}");
}
