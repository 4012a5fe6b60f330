//! The common part of all recommenders of rows: bytes, answers, noise, measures of the model alone.

use super::super::*;
use super::recommenders::{ProxyConfig, mf, pfedrec, proxy_ncf};
use super::{SMALL, local, task_of, train};
use crate::matrix_factorisation::first_epoch;
use crate::task::job_tests::check;
use crate::task::{On, PrivateTable, PrivateView, tensors_of_models};
use crate::trainer::{Length, Noise, NoiseScope};
use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{JobNumber, Round};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::Purpose;
use serde_json::{Value, json};

fn products() -> Arc<dyn RowRecommender> {
    Arc::new(mf::Config { dimensions: 3, deviation: 0.1 })
}

fn private() -> Arc<dyn RowRecommender> {
    Arc::new(pfedrec::Config { dimensions: 3 })
}

/// All recommenders of rows, with 3 dimensions and, where they have a network, 5 hidden numbers.
fn named() -> Vec<(&'static str, Arc<dyn RowRecommender>)> {
    let sizes = [json!({"dimensions": 3, "hidden": 5}), json!({"dimensions": 3}), json!({})];
    let of = |name: &'static str| {
        let read = |sizes: &Value| serde_json::from_value::<RecommenderConfig>(json!({ name: sizes })).ok();
        let config = sizes.iter().find_map(read).unwrap();
        config.as_settings().rows().map(|model| (name, model))
    };
    let mut models: Vec<_> = recommenders::CATALOGUE.entries.iter().filter_map(|entry| of(entry.name)).collect();
    models.push(("positive", Arc::new(proxy_ncf::Config { dimensions: 3, hidden: 5, proxy: ProxyConfig::Positive })));
    assert!(models.len() > 6 && models.iter().all(|(_, model)| model.dimensions() == 3), "{models:?}");
    models
}

fn models() -> Vec<Arc<dyn RowRecommender>> {
    named().into_iter().map(|(_, model)| model).collect()
}

/// State of a client with one user: the user's row, and its initial network, if it has one.
fn kept(task: &Recommendation, row: [f32; 3]) -> Vec<f32> {
    [&row[..], &task.first_network].concat()
}

fn of_model(model: Arc<dyn RowRecommender>, transfer: [Sent; 2]) -> Recommendation {
    task_of(model, Settings { transfer, cutoffs: vec![5], ..SMALL }, json!("users"), 12, None)
}

const ROWS: [Sent; 2] = [Sent::Table, Sent::Rows];

/// Weights of a network of 3 dimensions and 5 hidden numbers that travel: 5·6 + 5 + 5 + 1, twice with a proxy.
fn weights(model: &dyn RowRecommender) -> u64 {
    match model.network() {
        Some(_) if model.has_proxy() => 82,
        Some(_) => 41,
        None => 0,
    }
}

#[test]
fn networks_travel_with_rows() {
    for kind in models() {
        let dense = weights(&*kind);
        let task = of_model(kind.clone(), ROWS);
        assert_eq!(task.layout().whole().bytes(), 4 * (dense + 40 * 3));
        for length in [Length::Epochs(2), Length::Steps(1)] {
            let settings = local(length);
            let context = Context { settings: &settings, streams: &Streams::new(1), loss_rms: false, halt: &NEVER };
            for client in (0..12).map(ClientId) {
                let update = train(&task, client, &settings);
                let [down, up] = task.transfer(JobKey { client, number: JobNumber(7) }, &context).map(Parcel::bytes);
                let rows = update.rows.len() as u64;
                assert_eq!([down, up], [4 * (dense + 120), 4 * (dense + 4 * rows)], "{kind:?}");
                assert_eq!(up, task.parcel(&update, &context).bytes());
                assert_eq!(update.parameters.len() as u64, dense + 3 * rows);
                assert_eq!((update.private.len(), update.diverged), (3 + task.first_network.len(), false));
            }
        }
        // Names of tensors in the file are those of the segments.
        let model = (&task as &dyn Task).initial_model(0, &Streams::new(1));
        let tensors =
            [tensors_of_models(&task, &[&model]), task.in_file(&PrivateView::of(&PrivateTable::new(12)))].concat();
        let numbers: usize = tensors.iter().map(|tensor| tensor.values.len()).sum();
        let own = task.model.private_weights();
        assert_eq!((numbers - 12 * own) as u64, dense + 40 * 3 + 12 * 3);
        assert_eq!(own, task.first_network.len());
        let segments = task.layout().segments();
        assert!(segments.iter().all(|segment| tensors.iter().any(|tensor| tensor.name == segment.name)));
    }
}

#[test]
fn noise_is_on_what_travels() {
    for kind in models() {
        let dense = weights(&*kind) as usize;
        let task = of_model(kind, ROWS);
        let plain = local(Length::Epochs(1));
        let quiet = train(&task, ClientId(3), &plain);
        for scope in [NoiseScope::Rows, NoiseScope::Table] {
            let noisy = LocalTraining { noise: Some(Noise { sigma: 0.5, scope }), ..plain.clone() };
            let update = train(&task, ClientId(3), &noisy);
            assert_eq!(update.parameters[..dense], quiet.parameters[..dense], "networks have none");
            assert_eq!((&update.private, update.first_loss), (&quiet.private, quiet.first_loss));
            let context = Context { settings: &noisy, streams: &Streams::new(1), loss_rms: false, halt: &NEVER };
            let [_, up] =
                task.transfer(JobKey { client: ClientId(3), number: JobNumber(7) }, &context).map(Parcel::bytes);
            assert_eq!(up, task.parcel(&update, &context).bytes());
            let start = (&task as &dyn Task).initial_model(0, &Streams::new(1));
            let model = quiet.model(task.layout(), &start, &mut Vec::new()).to_vec();
            let expected: Vec<f32> = match scope {
                NoiseScope::Rows => quiet.parameters[dense..].to_vec(),
                NoiseScope::Table => model[dense..].to_vec(),
            };
            if scope == NoiseScope::Table {
                assert_eq!((update.rows.len(), up), (40, task.layout().whole().bytes()));
            }
            let noise: Vec<f64> =
                update.parameters[dense..].iter().zip(&expected).map(|(one, other)| f64::from(one - other)).collect();
            let mut rng = Streams::new(1).stream(Purpose::Privacy, 3, 7);
            for noise in noise {
                assert!((noise - 0.5 * normal_quantile(rng.uniform())).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn jobs_have_gradients_corrections_and_epochs() {
    for (name, kind) in named() {
        for transfer in [ROWS, [Sent::Table; 2]] {
            for moves in [Moves::Touched, Moves::Interacted] {
                let settings = Settings { transfer, moves, cutoffs: vec![5], ..SMALL };
                let task = task_of(kind.clone(), settings, json!("users"), 12, None);
                // A private score moves before items do.
                check(&task, ClientId(5), true, name != "pfedrec");
            }
        }
    }
}

#[test]
fn the_gradient_of_private_scores_is_that_of_products() {
    let (private, products) = (of_model(private(), ROWS), of_model(products(), ROWS));
    let (streams, settings) = (Streams::new(1), local(Length::Epochs(1)));
    let model = (&private as &dyn Task).initial_model(0, &streams);
    let context = Context { settings: &settings, streams: &streams, loss_rms: false, halt: &NEVER };
    let job = Job {
        client: ClientId(5),
        round: Round(7),
        number: JobNumber(7),
        start: &model,
        private: Some(&[0.5, -0.25, 0.75]),
        epochs: None,
        correction: None,
        contrast: None,
    };
    let [one, other] = [&private, &products].map(|task| {
        let mut gradient = Vec::new();
        assert!(task.gradient(&job, &context, &mut Worker::default(), &mut gradient).unwrap());
        gradient
    });
    assert!(one == other && one.iter().any(|slope| slope.abs() > 1e-3));
}

/// A job whose only step has all examples meets them at the model that was sent.
#[test]
fn answers_are_the_losses_that_a_job_meets() {
    for kind in models() {
        let task = of_model(kind.clone(), ROWS);
        let streams = Streams::new(1);
        let model = (&task as &dyn Task).initial_model(0, &streams);
        let mut kept = PrivateTable::new(12);
        kept.set(ClientId(5), &self::kept(&task, [0.5, -0.25, 0.75]));
        let state = ModelState {
            model: &model,
            private: PrivateView::of(&kept),
            round: Round(6),
            moved: &[Round(0); 40],
            memories: &[],
        };
        let settings = LocalTraining { batch: 1_000, ..local(Length::Epochs(1)) };
        let context = Context { settings: &settings, streams: &streams, loss_rms: false, halt: &NEVER };
        let jobs: Vec<JobKey> =
            (0..12).map(|client| JobKey { client: ClientId(client), number: JobNumber(7) }).collect();
        let dynamic: &dyn Task = &task;
        let kinds = dynamic.probe_kinds();
        let summed = *kinds.iter().find(|kind| kind.name == "summed-loss").unwrap();
        for parallel in [false, true] {
            let answers = task.answers(&summed, &jobs, &context, &state, parallel).unwrap();
            for (answer, &JobKey { client, number }) in answers.iter().zip(&jobs) {
                let private = kept.get(client).map(|kept| &**kept);
                let job = Job {
                    client,
                    round: Round(7),
                    number,
                    start: &model,
                    private,
                    epochs: None,
                    correction: None,
                    contrast: None,
                };
                let mut update = Update::default();
                task.train(&job, &context, &mut Worker::default(), &mut update).unwrap();
                let expected = update.first_loss * dynamic.examples(client) as f64;
                assert!((answer - expected).abs() < 1e-4 * expected, "{kind:?}: {answer}, {expected}");
                // One by one.
                let mut one = Vec::new();
                task.answer(&summed, JobKey { client, number }, &context, &state, &mut one).unwrap();
                assert_eq!(one, [*answer]);
            }
        }
        let predicted = kinds.iter().find(|kind| kind.name == "predicted-loss");
        assert_eq!(predicted.is_some(), kind.has_proxy());
        if let Some(predicted) = predicted {
            let answers = task.answers(predicted, &jobs, &context, &state, false).unwrap();
            let truth = task.answers(&summed, &jobs, &context, &state, false).unwrap();
            assert!(answers.iter().all(|answer| answer.is_finite()) && answers != truth);
        }
        let embedding = *kinds.iter().find(|kind| kind.name == "embedding").unwrap();
        assert_eq!(task.answers(&embedding, &jobs[5..6], &context, &state, false).unwrap(), [0.5, -0.25, 0.75]);
    }
}

#[test]
fn ages_and_shares_of_items_by_hand() {
    for kind in models() {
        let task = of_model(kind.clone(), ROWS);
        let settings = Settings { cutoffs: vec![5], ..SMALL };
        let measures = settings.measures(&*kind, "auc", true).unwrap();
        let names: Vec<&str> = measures.of_model.iter().map(|measure| measure.name).collect();
        let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
        let model = (&task as &dyn Task).initial_model(0, &Streams::new(1));
        // Item 0 was moved in round 10, items 1 to 9 in round 4, the others never.
        let moved: Vec<Round> =
            (0..40).map(|item| Round([10, 4][usize::from(item > 0)] * u32::from(item < 10))).collect();
        let mut kept = PrivateTable::new(12);
        let measured = |kept: &PrivateTable, parallel| {
            let private = PrivateView::of(kept);
            let state = ModelState { model: &model, private, round: Round(12), moved: &moved, memories: &[] };
            let (mut held_out, mut of_model) = (vec![vec![0.0; 6]; 2], vec![0.0; names.len()]);
            let dynamic: &dyn Task = &task;
            dynamic.measure_all(&state, parallel, &mut held_out, &mut of_model).unwrap();
            let mut alone = vec![0.0; names.len()];
            dynamic.measure(On::Model, &state, parallel, &mut alone).unwrap();
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&of_model), bits(&alone));
            let mut test = vec![0.0; 6];
            dynamic.measure(On::Test, &state, parallel, &mut test).unwrap();
            assert_eq!(test, held_out[0]);
            (held_out, of_model)
        };
        let (_, of_model) = measured(&kept, false);
        let staleness = (2.0 + 9.0 * 8.0 + 30.0 * 12.0) / 40.0 / 100.0;
        assert!((of_model[place("item_staleness")] - staleness).abs() < 1e-15);
        assert_eq!(of_model[place("items_updated")], 0.25);
        let tail = task.source.long_tail();
        let share = tail.iter().filter(|&&item| item < 10).count() as f64 / 32.0;
        assert_eq!((tail.len(), of_model[place("longtail_updated")]), (32, share));
        assert!(of_model[place("test_participant_hr_5")].is_nan(), "nobody has trained");
        // Everybody has trained, then one alone.
        (0..12).for_each(|client| kept.set(ClientId(client), &self::kept(&task, [0.1, 0.2, -0.3])));
        let (held_out, of_model) = measured(&kept, true);
        assert_eq!(of_model[place("test_participant_auc")..][..6], held_out[0][..]);
        let mut kept = PrivateTable::new(12);
        kept.set(ClientId(4), &self::kept(&task, [0.1, 0.2, -0.3]));
        let (_, of_model) = measured(&kept, true);
        let private = PrivateView::of(&kept);
        let state = ModelState { model: &model, private, round: Round(12), moved: &moved, memories: &[] };
        let mut alone = vec![0.0; 6];
        (&task as &dyn Task).measure(On::Client(ClientId(4)), &state, false, &mut alone).unwrap();
        assert_eq!(of_model[place("test_participant_auc")..][..6], alone[..]);
        if kind.has_proxy() {
            let correlation = of_model[place("proxy_rank_correlation")];
            assert!((-1.0..=1.0).contains(&correlation), "{correlation}");
        }
        // Where the table travels whole, nobody knows which rows were moved.
        let whole = Settings { transfer: [Sent::Table; 2], ..settings }.measures(&*kind, "auc", true);
        assert!(whole.unwrap().of_model.iter().all(|measure| !measure.name.contains("item")));
    }
}

/// The mean loss of validation pairs, each with its negative.
fn held_out_loss(task: &Recommendation, model: &[f32], kept: &PrivateTable) -> f64 {
    let private = PrivateView::of(kept);
    let state = ModelState { model, private, round: Round(3), moved: &[], memories: &[] };
    let (mut sum, mut count, mut triplets) = (0.0, 0, Vec::new());
    for client in (0..12).map(ClientId) {
        task.pairs(client, &mut triplets);
        let rows = task.rows_as_seen(client, &state);
        let shared = task.model.losses(task.parts(model), false);
        task.own_losses(client, &state).as_ref().unwrap_or(&shared).each(&rows, &triplets, |loss, _| {
            sum += loss;
            count += 1;
        });
    }
    assert_eq!(count, task.source.valid.as_ref().unwrap().relevant.len());
    sum / count as f64
}

#[test]
fn slopes_of_held_out_pairs_are_those_of_differences() {
    for kind in models() {
        let task = of_model(kind.clone(), ROWS);
        // Numbers of a size at which rounding does not matter.
        let mut rng = Streams::new(4).stream(Purpose::Example, 0, 99);
        let model: Vec<f32> = (0..task.layout().len()).map(|_| (2.0 * rng.uniform() - 1.0) as f32).collect();
        let mut kept = PrivateTable::new(12);
        kept.set(ClientId(2), &self::kept(&task, [0.7, -0.4, 1.1]));
        let private = PrivateView::of(&kept);
        let state = ModelState { model: &model, private, round: Round(3), moved: &[], memories: &[] };
        let mut slope = vec![5.0];
        assert!(task.slope(&state, &mut slope).unwrap());
        assert_eq!(slope.len(), model.len());
        let (is_network, mut wrong) = (kind.network().or(kind.private_network()).is_some(), 0);
        let mut seen = [0.0; 3];
        kind.see(&[0], &[1.0; 3], &mut seen);
        let is_single = is_network || seen != [0.0; 3];
        for (index, &slope) in slope.iter().enumerate() {
            let at = |shift: f32| {
                let mut moved = model.clone();
                moved[index] += shift;
                held_out_loss(&task, &moved, &kept)
            };
            // Losses of networks, and rows as they are seen, are in single precision.
            let (shift, tolerance) = if is_single { (1.0 / 256.0, 2e-4) } else { (1.0 / 1024.0, 2e-6) };
            let expected = (at(shift) - at(-shift)) / f64::from(2.0 * shift);
            let error = (f64::from(slope) - expected).abs();
            assert!(error < if is_network { 2e-2 } else { tolerance }, "{kind:?}, {index}: {slope}, {expected}");
            wrong += usize::from(error > tolerance);
        }
        // Where a hidden number changes its sign in between, a difference is no slope.
        assert!(wrong <= model.len() / 10, "{kind:?}: {wrong} of {}", model.len());
        // A client's influence is the fall of that loss along the client's gradient.
        let influence = *task.kinds().iter().find(|kind| kind.name == "influence").unwrap();
        let settings = local(Length::Epochs(1));
        let context = Context { settings: &settings, streams: &Streams::new(1), loss_rms: false, halt: &NEVER };
        let key = JobKey { client: ClientId(2), number: JobNumber(4) };
        let found = task.answers(&influence, &[key], &context, &state, false).unwrap()[0];
        let mut triplets = Vec::new();
        first_epoch(&task.job(key, &Streams::new(1), &[], &[]), 40, &mut triplets);
        let mut rows = vec![0.0_f64; model.len()];
        for (index, row) in rows.iter_mut().enumerate() {
            let at = |shift: f32| {
                let mut moved = model.clone();
                moved[index] += shift;
                let state = ModelState { model: &moved, ..state };
                let mut sum = 0.0;
                let shared = task.model.losses(task.parts(&moved), false);
                let own = task.own_losses(ClientId(2), &state);
                let asked = own.as_ref().unwrap_or(&shared);
                asked.each(&task.rows_as_seen(ClientId(2), &state), &triplets, |loss, _| sum += loss);
                sum / triplets.len() as f64
            };
            *row = (at(1.0 / 64.0) - at(-1.0 / 64.0)) * 32.0;
        }
        let expected: f64 = rows.iter().zip(&slope).map(|(row, &slope)| row * f64::from(slope)).sum();
        assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()), "{kind:?}: {found}, {expected}");
        assert!(task.bytes(&influence, key, &context).unwrap() > 0);
    }
}
