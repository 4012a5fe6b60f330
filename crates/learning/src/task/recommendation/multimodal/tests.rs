//! Measures against scores worked out pair by pair, examples and homes, and a job's use of its pairs.

use super::*;
use crate::dmrl::tests::reference::Tensors;
use crate::ratings::tests::split_of;
use crate::ratings::{Filters, Part, RatingsCache, RatingsConfig, RatingsPartition, SplitConfig};
use crate::task::{PrivateTable, PrivateView, job_tests};
use crate::trainer::{Length, OptimizerConfig};
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{JobNumber, Round};
use serde_json::{Value, json};

const OBJECTIVE: Objective = Objective { negatives: 2, margin: 0.5, disentangle: 0.1, dropout: 0.0 };

fn drawn() -> RatingsSplit {
    let data: RatingsConfig =
        serde_json::from_value(json!({"synthetic": {"users": 20, "items": 30, "ratings": 250}})).unwrap();
    let filters = Filters { items: Some(30), users: Some(20), ..Filters::default() };
    let data = data.load(&filters, &Streams::new(1), &RatingsCache::default()).unwrap();
    SplitConfig::default().split(data, &Streams::new(1)).unwrap()
}

fn task(split: &RatingsSplit, clients: usize, partition: Value, triplets: Option<Vec<Triplet>>) -> Multimodal {
    let streams = Streams::new(1);
    let (users, items) = (split.users(), split.items());
    let shape = Shape { users, items, dim: 6, factors: 2, hidden: 5, attention: 3, features: [Some(4), None] };
    let mut rng = streams.stream(Purpose::Example, 0, 99);
    let text = (0..items * 4).map(|_| rng.uniform() as f32 - 0.5).collect();
    let partition: RatingsPartition = serde_json::from_value(partition).unwrap();
    let dealt = partition.build(split, clients, &[], &streams).unwrap();
    let material = Material { features: Features([text, Vec::new()]), triplets, ..Material::default() };
    let settings = Settings { shape, objective: OBJECTIVE, cutoffs: vec![5] };
    Multimodal::new(settings, split, (&dealt, partition.is_by_user()), material, &streams)
}

/// A model with scores that differ.
fn model(task: &Multimodal) -> Vec<f32> {
    let mut model = vec![0.0; task.layout().len()];
    task.init(0, &Streams::new(1), &mut model);
    model.iter_mut().for_each(|number| *number *= 6.0);
    model
}

fn measured(task: &Multimodal, on: On<'_>, model: &[f32], parallel: bool) -> (f64, Vec<f64>) {
    let kept = PrivateTable::default();
    let private = PrivateView::of(&kept);
    let state = ModelState { model, private, round: Round(0), moved: &[], memories: &[] };
    let mut values = vec![0.0; 1 + 5 + 1];
    let weight = (task as &dyn Task).measure(on, &state, parallel, &mut values).unwrap();
    (weight, values)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The measures on test and validation data, worked out together.
fn both(task: &Multimodal, model: &[f32]) -> [Vec<u64>; 2] {
    let kept = PrivateTable::default();
    let private = PrivateView::of(&kept);
    let state = ModelState { model, private, round: Round(0), moved: &[], memories: &[] };
    let (mut test, mut valid) = (vec![0.0; 1 + 5 + 1], vec![0.0; 1 + 5 + 1]);
    task.evaluate(&mut [Ask::new(On::Test, &state, &mut test), Ask::new(On::Valid, &state, &mut valid)], true.into())
        .unwrap();
    [bits(&test), bits(&valid)]
}

#[test]
fn measures_are_those_of_scores_worked_out_pair_by_pair() {
    let split = drawn();
    let task = task(&split, 4, json!({"user-balance": {"profile": "linear", "index": 0.2}}), None);
    let model = model(&task);
    let wide: Vec<f64> = model.iter().map(|&number| f64::from(number)).collect();
    let tensors = Tensors { shape: &task.settings.shape, values: &wide };
    let score = |user: u32, item: u32| tensors.score(&task.features, user, item);
    let items_of = |user: u32, parts: &[Part]| -> Vec<u32> {
        let all = parts.iter().flat_map(|&part| split.part(part));
        all.filter(|rating| rating.user == user).map(|rating| rating.item).collect()
    };
    for (on, part, index, known) in
        [(On::Test, Part::Test, 13, &[Part::Train, Part::Valid][..]), (On::Valid, Part::Valid, 14, &[Part::Train][..])]
    {
        let (mut auc, mut users, mut loss, mut pairs) = (0.0, 0.0, 0.0, 0.0);
        for user in 0..20 {
            let mut found = items_of(user, &[part]);
            found.sort_unstable();
            if found.is_empty() {
                continue;
            }
            let excluded = items_of(user, known);
            let others: Vec<u32> = (0..30).filter(|item| !excluded.contains(item) && !found.contains(item)).collect();
            let mut draws = Streams::new(1).stream(Purpose::Example, user, index);
            for &positive in &found {
                let above = others.iter().filter(|&&other| score(user, positive) > score(user, other)).count();
                auc += above as f64 / (others.len() * found.len()) as f64;
                for _ in 0..2 {
                    let negative = others[draws.below(others.len() as u64) as usize];
                    loss += (0.5 - score(user, positive) + score(user, negative)).max(0.0) / 2.0;
                }
                pairs += 1.0;
            }
            users += 1.0;
        }
        let (weight, values) = measured(&task, on, &model, false);
        assert_eq!(weight, users);
        assert!((values[0] - auc / users).abs() < 1e-9, "{values:?}");
        assert!((values[6] - loss / pairs).abs() < 1e-6 && loss > 0.0, "{values:?} {}", loss / pairs);
        assert_eq!(measured(&task, on, &model, true), (weight, values));
    }
    assert_eq!(both(&task, &model), [On::Test, On::Valid].map(|on| bits(&measured(&task, on, &model, false).1)));
    // Each user's test ratings are measured at one client.
    let of_clients = (0..4).map(|client| measured(&task, On::Client(ClientId(client)), &model, false));
    let (weights, sum) = of_clients.fold((0.0, 0.0), |(weights, sum), (weight, values)| {
        (weights + weight, if weight > 0.0 { sum + weight * values[0] } else { sum })
    });
    let (weight, values) = measured(&task, On::Test, &model, false);
    assert!(weights == weight && (sum / weights - values[0]).abs() < 1e-12);
}

#[test]
fn who_rated_everything_gives_no_example_and_is_counted() {
    // User 0 has rated all three items, users 1 and 2 one each; the last rating is for testing.
    let split = split_of(&[(0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 0, 1.0)], 1);
    let task = task(&split, 3, json!("users"), None);
    let description = task.describe();
    assert_eq!((&description.examples[..], description.all_examples), (&[0, 1, 1][..], 2));
    assert!(description.counts.contains(&("users_without_negatives", 1)));
    let told = description.warnings.join("\n");
    assert!(told.contains("1 users have rated everything") && told.contains("no image features"), "{told}");
    let (update, _) = train(&task, ClientId(0), Length::Epochs(1), 0.1);
    let start = (&task as &dyn Task).initial_model(0, &Streams::new(1));
    assert_eq!((update.parameters, update.first_loss, update.diverged), (start, 0.0, false));
}

#[test]
fn users_without_training_ratings_are_ranked_and_where_nobody_is_everything_is_nan() {
    // User 2 has a test rating alone, user 0 none.
    let rows = [(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0), (1, 3, 1.0), (2, 2, 1.0)];
    let split = split_of(&rows, 1);
    let task = task(&split, 2, json!({"iid": {}}), None);
    let (weight, values) = measured(&task, On::Test, &model(&task), false);
    assert!(weight == 1.0 && values.iter().all(|value| value.is_finite()), "{values:?}");
    assert_eq!(both(&task, &model(&task)), [bits(&values), bits(&[f64::NAN; 7])], "there is no validation data");
    // Both items of two are rated, one of them for testing: no other candidate, and no negative.
    let split = split_of(&[(0, 0, 1.0), (0, 1, 1.0)], 1);
    let task = self::task(&split, 1, json!({"iid": {}}), None);
    let (weight, values) = measured(&task, On::Test, &model(&task), false);
    assert!(weight == 0.0 && values.iter().all(|value| value.is_nan()), "{values:?}");
    assert!(task.describe().warnings.iter().any(|warning| warning.contains("nothing to rank")));
}

fn train(task: &Multimodal, client: ClientId, length: Length, lr: f64) -> (Update, Vec<f32>) {
    let sgd = OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let settings = LocalTraining { length, ..LocalTraining::new(1, 4, &sgd).unwrap() };
    let streams = Streams::new(1);
    let start = (task as &dyn Task).initial_model(0, &streams);
    let context = Context { settings: &settings, streams: &streams, loss_rms: true, halt: &NEVER };
    let job = Job {
        client,
        round: Round(1),
        number: JobNumber(7),
        start: &start,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let mut update = Update::default();
    task.train(&job, &context, &mut Worker::default(), &mut update).unwrap();
    (update, start)
}

#[test]
fn a_job_takes_its_negatives_from_its_stream_or_from_the_table() {
    let split = drawn();
    let drawn = task(&split, 20, json!("users"), None);
    let client = ClientId(2);
    let positives = drawn.source.holdings.positives(client).to_vec();
    // The draws of one epoch, made here.
    let mut order: Vec<u32> = (0..positives.len() as u32).collect();
    Streams::new(1).stream(Purpose::BatchOrder, 2, 7).shuffle(&mut order);
    let mut draws = Streams::new(1).stream(Purpose::TrainingNoise, 2, 7);
    let unknown: Vec<u32> = (0..30).filter(|item| !positives.contains(item)).collect();
    let mut of_example = vec![Vec::new(); positives.len()];
    for &example in &order {
        let mut next = || unknown[draws.below(unknown.len() as u64) as usize];
        of_example[example as usize] = vec![next(), next()];
    }
    let triplets = positives.iter().zip(&of_example).flat_map(|(&positive, negatives)| {
        negatives.iter().map(move |&negative| Triplet { user: 2, positive, negative })
    });
    let given = task(&split, 20, json!("users"), Some(triplets.collect()));
    assert_eq!((given.describe().examples_of(client), given.describe().examples_of(ClientId(3))), (positives.len(), 0));
    for length in [Length::Epochs(1), Length::Steps(1)] {
        let ((one, start), (other, _)) = (train(&drawn, client, length, 0.5), train(&given, client, length, 0.5));
        assert_eq!(one, other);
        assert!(one.parameters != start && one.loss_rms.unwrap() >= one.first_loss - 1e-6);
        // All of it travels.
        assert_eq!(one.parameters.len() as u64 * 4, drawn.layout().whole().bytes());
    }
    assert!(drawn.partial().is_none());
    // With given negatives, the losses of the model that was sent are those of a step that is none.
    let (update, start) = train(&given, client, Length::Epochs(1), 1e-30);
    let kept = PrivateTable::default();
    let private = PrivateView::of(&kept);
    let state = ModelState { model: &start, private, round: Round(0), moved: &[], memories: &[] };
    assert!((given.client_loss(client, &state).unwrap() - update.first_loss).abs() < 1e-9);
    let squares = given.squared_losses(client, &state, &mut Worker::default()).unwrap() / positives.len() as f64;
    assert!((squares.sqrt() - update.loss_rms.unwrap()).abs() < 1e-9);
}

#[test]
fn a_job_that_diverges_says_so() {
    let split = drawn();
    let task = task(&split, 20, json!("users"), None);
    let (update, _) = train(&task, ClientId(2), Length::Epochs(30), 1e30);
    assert!(update.diverged);
    assert!(update.parameters.iter().all(|number| !number.is_nan() || number.to_bits() == f32::NAN.to_bits()));
}

#[test]
fn jobs_have_gradients_corrections_and_epochs() {
    // The distance correlation of a batch is no mean over its examples.
    job_tests::check(&task(&drawn(), 20, json!("users"), None), ClientId(2), false, true);
    let split = split_of(&[(0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0), (1, 1, 1.0), (2, 2, 1.0), (1, 0, 1.0)], 1);
    job_tests::check_none(&task(&split, 3, json!("users"), None), ClientId(0));
}
