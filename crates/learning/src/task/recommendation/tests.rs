//! Bytes against updates, homes by hand, and rows that come from where they should.

mod algorithms;
mod models;

use super::*;
use crate::ratings::{Filters, Part, RatingsCache, RatingsConfig, RatingsPartition, SplitConfig};
use crate::task::{On, PrivateTable, PrivateView, tensors_of_models};
use crate::trainer::{Length, OptimizerConfig};
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{EdgeId, JobNumber, Round};
use serde_json::{Value, json};

const SMALL: Settings =
    Settings { cutoffs: Vec::new(), moves: Moves::Touched, transfer: [Sent::Table, Sent::Rows], staleness_window: 100 };

fn split() -> RatingsSplit {
    let data: RatingsConfig =
        serde_json::from_value(json!({"synthetic": {"users": 12, "items": 40, "ratings": 150}})).unwrap();
    let data = data
        .load(&Filters { items: Some(40), ..Filters::default() }, &Streams::new(1), &RatingsCache::default())
        .unwrap();
    SplitConfig::default().split(data, &Streams::new(1)).unwrap()
}

fn task(settings: Settings, partition: Value, clients: usize, triplets: Option<&Triplets>) -> Recommendation {
    let products = recommenders::mf::Config { dimensions: 3, deviation: 0.1 };
    task_of(Arc::new(products), settings, partition, clients, triplets)
}

fn task_of(
    model: Arc<dyn RowRecommender>,
    settings: Settings,
    partition: Value,
    clients: usize,
    triplets: Option<&Triplets>,
) -> Recommendation {
    let (split, streams) = (split(), Streams::new(1));
    let partition: RatingsPartition = serde_json::from_value(partition).unwrap();
    let dealt = partition.build(&split, clients, &[], &streams).unwrap();
    Recommendation::new(model, settings, &split, (&dealt, partition.is_by_user()), triplets, None, &streams)
}

fn local(length: Length) -> LocalTraining {
    let sgd = OptimizerConfig::Sgd { lr: 0.5, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    LocalTraining { length, ..LocalTraining::new(1, 4, &sgd).unwrap() }
}

fn train(task: &Recommendation, client: ClientId, settings: &LocalTraining) -> Update {
    let streams = Streams::new(1);
    let model = (task as &dyn Task).initial_model(0, &streams);
    let context = Context { settings, streams: &streams, loss_rms: true, halt: &NEVER };
    let job = Job {
        client,
        round: Round(1),
        number: JobNumber(7),
        start: &model,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let mut update = Update::default();
    // The rest of an earlier job does no harm.
    update.parameters.push(5.0);
    task.train(&job, &context, &mut Worker::default(), &mut update).unwrap();
    update
}

#[test]
fn bytes_are_known_before_a_job_is_trained() {
    let given: Vec<Triplet> = split()
        .part(Part::Train)
        .step_by(3)
        .map(|rating| {
            let (user, positive) = (rating.user, rating.item);
            Triplet { user, positive, negative: (positive + 1) % 40 }
        })
        .collect();
    let given = Triplets { train: given, ..Triplets::default() };
    let streams = Streams::new(1);
    for (partition, clients) in [(json!("users"), 12), (json!({"iid": {}}), 4)] {
        for triplets in [None, Some(&given)] {
            for moves in [Moves::Touched, Moves::Interacted] {
                let task = task(Settings { moves, ..SMALL }, partition.clone(), clients, triplets);
                for length in [Length::Epochs(1), Length::Epochs(3), Length::Steps(1), Length::Steps(50)] {
                    let settings = local(length);
                    let context = Context { settings: &settings, streams: &streams, loss_rms: false, halt: &NEVER };
                    for client in
                        (0..clients).map(ClientId::from_index).filter(|&client| task.holdings().examples(client) > 0)
                    {
                        let update = train(&task, client, &settings);
                        let [down, up] = task.transfer(JobKey { client, number: JobNumber(7) }, &context);
                        assert_eq!(down, Parcel::plain(40 * 3, 0));
                        let rows = update.rows.len() as u64;
                        assert_eq!(up, Parcel::plain(3 * rows, rows), "{partition}, {moves:?}, {length:?}");
                        assert_eq!(update.parameters.len(), update.rows.len() * 3);
                        assert_eq!(update.private.len(), PrivateState::len(&task, client));
                        let is_positive = |item| task.holdings().positives(client).contains(item);
                        assert!(moves == Moves::Touched || update.rows.iter().all(is_positive));
                    }
                }
            }
        }
    }
}

#[test]
fn a_table_that_is_sent_has_the_rows_that_would_be() {
    let settings = local(Length::Epochs(2));
    let client = ClientId(3);
    let rows = task(SMALL, json!("users"), 12, None);
    let table = task(Settings { transfer: [Sent::Rows, Sent::Table], ..SMALL }, json!("users"), 12, None);
    let (one, other) = (train(&rows, client, &settings), train(&table, client, &settings));
    let start = (&rows as &dyn Task).initial_model(0, &Streams::new(1));
    assert_eq!(one.model(rows.layout(), &start, &mut Vec::new()), other.parameters);
    assert_eq!((&one.private, one.first_loss, one.loss_rms), (&other.private, other.first_loss, other.loss_rms));
    let context = Context { settings: &settings, streams: &Streams::new(1), loss_rms: false, halt: &NEVER };
    let down = table.transfer(JobKey { client, number: JobNumber(7) }, &context);
    assert_eq!(down.map(Parcel::bytes), [(one.rows.len() * 4 * 4) as u64, 40 * 3 * 4]);
    // A mean and a root mean square of the same losses.
    assert!(one.loss_rms.unwrap() >= one.first_loss - 1e-6);
}

#[test]
fn the_client_with_most_ratings_of_a_user_is_its_home() {
    let task = task(SMALL, json!({"iid": {}}), 5, None);
    let holdings = task.holdings();
    let of = |user: u32, client: usize| {
        let client = ClientId::from_index(client);
        let place = holdings.users(client).iter().position(|&other| other == user)?;
        let begin = if place == 0 { 0 } else { holdings.ends(client)[place - 1] };
        Some(holdings.ends(client)[place] - begin)
    };
    let mut ratings = 0;
    for user in 0..12 {
        let counts: Vec<u32> = (0..5).map(|client| of(user, client).unwrap_or(0)).collect();
        ratings += counts.iter().sum::<u32>();
        let most = *counts.iter().max().unwrap();
        let first = counts.iter().position(|&count| count == most).unwrap();
        let (home, place) = holdings.home(user).unwrap();
        assert_eq!((home.index(), holdings.users(home)[place]), (first, user));
        assert!(holdings.residents(home).contains(&user));
    }
    assert_eq!(u64::from(ratings), task.describe().all_examples);
}

#[test]
fn what_a_client_keeps_decides_where_its_users_items_stand() {
    let task = task(Settings { cutoffs: vec![5], ..SMALL }, json!("users"), 12, None);
    let streams = Streams::new(1);
    let model = (&task as &dyn Task).initial_model(0, &streams);
    let mut table = PrivateTable::new(12);
    let measured = |on: On<'_>, table: &PrivateTable, parallel| {
        let private = PrivateView::of(table);
        let state = ModelState { model: &model, private, round: Round(0), moved: &[], memories: &[] };
        let mut values = vec![0.0; 6];
        let weight = (&task as &dyn Task).measure(on, &state, parallel, &mut values).unwrap();
        (weight, values.iter().map(|value| value.to_bits()).collect::<Vec<_>>())
    };
    let before = measured(On::Test, &table, false);
    assert_eq!(before, measured(On::Test, &table, true));
    let state =
        ModelState { model: &model, private: PrivateView::of(&table), round: Round(0), moved: &[], memories: &[] };
    let (mut test, mut valid) = ([0.0; 6], [0.0; 6]);
    task.evaluate(&mut [Ask::new(On::Test, &state, &mut test), Ask::new(On::Valid, &state, &mut valid)], true.into())
        .unwrap();
    assert!(test[0].is_finite() && valid[0].is_finite());
    let both = [test, valid].map(|values| values.map(f64::to_bits).to_vec());
    assert_eq!(both, [before.1.clone(), measured(On::Valid, &table, false).1]);
    let (one, two) =
        (measured(On::Client(ClientId(2)), &table, false), measured(On::Client(ClientId(3)), &table, false));
    table.set(ClientId(2), &[9.0, -9.0, 9.0]);
    assert_ne!(measured(On::Client(ClientId(2)), &table, false), one);
    assert_eq!(measured(On::Client(ClientId(3)), &table, false), two);
    assert_ne!(measured(On::Test, &table, false), before);
    let members: Vec<ClientId> = (0..12).map(ClientId).collect();
    assert_eq!(measured(On::Server(EdgeId(0), &members), &table, false), measured(On::Test, &table, false));
    // Written to a file, and read from it.
    let tensors = [tensors_of_models(&task, &[&model]), task.in_file(&PrivateView::of(&table))].concat();
    assert_eq!(
        (&*tensors[1].name, &tensors[1].shape[..], &tensors[1].values[6..9]),
        ("users.weight", &[12, 3][..], &[9.0, -9.0, 9.0][..])
    );
    let start = Start { items: tensors[0].values.clone(), users: tensors[1].values.clone(), weights: Vec::new() };
    let again = Recommendation { start: Some(start), ..self::task(SMALL, json!("users"), 12, None) };
    assert_eq!((&again as &dyn Task).initial_model(0, &streams), model);
    assert_eq!((&again as &dyn Task).private_of(ClientId(2), None, &streams), [9.0, -9.0, 9.0]);
}

#[test]
fn a_clients_loss_is_that_of_its_positives_with_fixed_negatives() {
    let task = task(SMALL, json!("users"), 12, None);
    let zeros = vec![0.0; 40 * 3];
    let kept = PrivateTable::default();
    let state =
        ModelState { model: &zeros, private: PrivateView::of(&kept), round: Round(0), moved: &[], memories: &[] };
    let client = ClientId(1);
    assert!((task.client_loss(client, &state).unwrap() - std::f64::consts::LN_2).abs() < 1e-12);
    let squares = task.squared_losses(client, &state, &mut Worker::default()).unwrap();
    assert!((squares - task.holdings().examples(client) as f64 * std::f64::consts::LN_2.powi(2)).abs() < 1e-9);
}
