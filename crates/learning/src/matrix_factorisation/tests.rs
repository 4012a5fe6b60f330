//! Slopes against differences, steps by hand, and the same bits on every path and number of threads.

mod variants;

use super::*;
use crate::ranking::{BLOCK, ItemLists, ScoreItems, evaluate};
use crate::ratings::reference::Popularity;
use crate::ratings::triplets::Triplet;
use crate::ratings::{Filters, Part, RatingsCache, RatingsConfig, RatingsSplit, SplitConfig};
use crate::trainer::OptimizerConfig;
use crate::trainer::optimizer::{Moments, Optimizer, Proximal, Regularisation};
use fedgenie_core::halt::NEVER;
use std::sync::Arc;

fn sgd(lr: f64) -> OptimizerConfig {
    OptimizerConfig::Sgd { lr, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 }
}

/// Momentum, Nesterov's with decay, Adam, AdamW.
fn others() -> [OptimizerConfig; 4] {
    let sgd = |momentum, nesterov, weight_decay, dampening| OptimizerConfig::Sgd {
        lr: 0.1,
        momentum,
        nesterov,
        weight_decay,
        dampening,
    };
    let (lr, beta1, beta2, epsilon) = (0.01, 0.9, 0.99, 1e-8);
    [
        sgd(0.9, false, 0.0, 0.5),
        sgd(0.8, true, 0.01, 0.0),
        OptimizerConfig::Adam { lr, beta1, beta2, epsilon, weight_decay: 0.02 },
        OptimizerConfig::AdamW { lr, beta1, beta2, epsilon, weight_decay: 0.1 },
    ]
}

fn training(dimensions: usize, batch: usize, epochs: u32, optimizer: &OptimizerConfig) -> BprTraining {
    let optimizer = Optimizer::new(optimizer).unwrap();
    let (length, extra) = (Length::Epochs(epochs), RowRegularisation::default());
    BprTraining { dimensions, length, batch, optimizer, extra, moves: Moves::Touched }
}

fn numbers(count: usize, entity: u32) -> Vec<f32> {
    let mut rng = Streams::new(1).stream(Purpose::Example, entity, 0);
    (0..count).map(|_| rng.uniform() as f32 - 0.5).collect()
}

fn job<'a>(table: &'a [f32], users: &'a [f32], positives: &'a [u32], ends: &'a [u32], seed: u64) -> Job<'a> {
    let streams = Streams::new(seed);
    let (order, draws) = (streams.stream(Purpose::BatchOrder, 3, 1), streams.stream(Purpose::TrainingNoise, 3, 1));
    let (negatives, halt) = (Negatives::Drawn, &NEVER);
    Job { table, users, positives, ends, negatives, lr_factor: 1.0, correction: None, order, draws, halt }
}

fn trained(settings: &BprTraining, job: Job<'_>) -> Outcome {
    let mut outcomes = [Outcome::default()];
    settings.train(&[job], false, &mut outcomes);
    outcomes.into_iter().next().unwrap()
}

#[test]
fn one_step_by_hand() {
    // d = 2: u = (1, 2), p = item 1 = (0.5, 0.25), n = item 2 = (0, −0.25): x = 0.5 + 1 = 1.5.
    let table = [9.0, 9.0, 0.5, 0.25, 0.0, -0.25];
    let triplets = [Triplet { user: 0, positive: 1, negative: 2 }];
    let job = Job { negatives: Negatives::Given(&triplets), ..job(&table, &[1.0, 2.0], &[1], &[1], 1) };
    let found = trained(&training(2, 4, 1, &sgd(0.5)), job.clone());
    let s = 1.0 / (1.0 + 1.5_f64.exp());
    let close = |found: &[f32], expected: &[f64]| {
        found.len() == expected.len() && found.iter().zip(expected).all(|(x, y)| (f64::from(*x) - y).abs() < 1e-6)
    };
    assert!(close(&found.users, &[1.0 + 0.5 * s * 0.5, 2.0 + 0.5 * s * 0.5]), "{found:?}");
    assert!(close(&found.rows, &[0.5 + 0.5 * s, 0.25 + s, -0.5 * s, -0.25 - s]), "{found:?}");
    assert_eq!((&*found.items, found.triplets, found.steps, found.diverged), (&[1, 2][..], 1, 1, false));
    let loss = (1.0 + (-1.5_f64).exp()).ln();
    assert!((found.loss - loss).abs() < 1e-6 && (found.loss_rms - loss).abs() < 1e-6);
    // Where only rows of positives move, the negative stays and is not sent.
    let settings = BprTraining { moves: Moves::Interacted, ..training(2, 4, 1, &sgd(0.5)) };
    let other = trained(&settings, job);
    assert_eq!((&*other.items, &other.users, &other.rows[..]), (&[1][..], &found.users, &found.rows[..2]));
}

/// Mean loss of triplets in `f64`, and how it changes with a number of a row.
fn loss(users: &[f64], table: &[f64], d: usize, triplets: &[Triplet]) -> f64 {
    let row = |rows: &[f64], index: u32| rows[index as usize * d..][..d].to_vec();
    let of = |triplet: &Triplet| {
        let (user, p, n) = (row(users, triplet.user), row(table, triplet.positive), row(table, triplet.negative));
        let x: f64 = (0..d).map(|index| user[index] * (p[index] - n[index])).sum();
        (-x).exp().ln_1p()
    };
    triplets.iter().map(of).sum::<f64>() / triplets.len() as f64
}

#[test]
fn slopes_are_central_differences_of_the_loss() {
    for d in [1, 3, 16, 17, 32, 40, 64] {
        let (table, users) = (numbers(6 * d, 1), numbers(2 * d, 2));
        // Rows occur several times, also as positive and as negative.
        let triplets: Vec<Triplet> = (0..21)
            .map(|place| Triplet { user: place % 2, positive: place % 5, negative: (place * 2 + 1) % 6 })
            .filter(|triplet| triplet.positive != triplet.negative)
            .collect();
        let job = Job { negatives: Negatives::Given(&triplets), ..job(&table, &users, &[0, 1], &[1, 2], 1) };
        let found = trained(&training(d, triplets.len(), 1, &sgd(1.0)), job);
        assert_eq!(found.items, [0, 1, 2, 3, 4, 5]);
        let wide = |numbers: &[f32]| numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>();
        let (wide_users, wide_table) = (wide(&users), wide(&table));
        assert!((found.loss - loss(&wide_users, &wide_table, d, &triplets)).abs() < 1e-6);
        let moved = |is_user: bool, place: usize, by: f64| {
            let (mut users, mut table) = (wide_users.clone(), wide_table.clone());
            if is_user {
                users[place] += by
            } else {
                table[place] += by
            }
            loss(&users, &table, d, &triplets)
        };
        for (is_user, before, after) in [(true, &users, &found.users), (false, &table, &found.rows)] {
            for place in 0..before.len() {
                let slope = f64::from(before[place]) - f64::from(after[place]);
                let expected = (moved(is_user, place, 1e-5) - moved(is_user, place, -1e-5)) / 2e-5;
                assert!((slope - expected).abs() < 1e-6, "{d}, {is_user}, {place}: {slope}, not {expected}");
            }
        }
    }
}

#[test]
fn rows_that_every_step_meets_move_as_the_optimizer_moves_parameters() {
    let d = 20;
    let (table, user) = (numbers(2 * d, 1), numbers(d, 2));
    let triplets = [Triplet { user: 0, positive: 0, negative: 1 }];
    let cases = [(None, 0.0), (Some(0.05), 0.0), (None, 0.7), (Some(0.05), 0.7)];
    let every = others().into_iter().chain([sgd(0.3)]);
    for (config, (clip, mu)) in every.flat_map(|config| cases.map(|case| (config.clone(), case))) {
        let (config, extra) = (&config, RowRegularisation { clip, proximal: mu });
        let start = [&user[..], &table[..]].concat();
        let dense =
            Regularisation { clip, proximal: Some(Proximal { mu, start: &start }), ..Regularisation::default() };
        let optimizer = Optimizer::new(config).unwrap();
        let mut moments = Moments::default();
        let mut parameters = [&user[..], &table[..]].concat();
        optimizer.begin(3 * d, &mut moments);
        for epochs in 1..6 {
            // The slopes of the step come from a job with plain descent by 1, up to its rounding.
            let given = Negatives::Given(&triplets);
            let (users, items) = parameters.split_at(d);
            let plain = Job { negatives: given, ..job(items, users, &[0], &[1], 1) };
            let plain = trained(&training(d, 1, 1, &sgd(1.0)), plain);
            let after = [&plain.users[..], &plain.rows[..]].concat();
            let slopes: Vec<f32> = parameters.iter().zip(&after).map(|(x, y)| x - y).collect();
            optimizer.step(&mut parameters, &mut slopes.clone(), 0.5, &dense, &mut moments);
            let job = Job { lr_factor: 0.5, negatives: given, ..job(&table, &user, &[0], &[1], 1) };
            let found = trained(&BprTraining { extra, ..training(d, 1, epochs, config) }, job);
            let found = [&found.users[..], &found.rows[..]].concat();
            // Adam divides by roots of slopes that may be near zero.
            assert!(
                found.iter().zip(&parameters).all(|(x, y)| (x - y).abs() < 2e-5),
                "{config:?}, {extra:?}, {epochs}"
            );
        }
    }
}

/// Descent in `f64` on given triplets, in the order of the job's stream, row by row: rows met by a step, clipping,
/// pulls and corrected rows.
fn descended(settings: &BprTraining, job: &Job<'_>, lr: f64) -> (Vec<f64>, Vec<f64>) {
    let Negatives::Given(triplets) = job.negatives else { panic!("triplets are given") };
    let Length::Epochs(epochs) = settings.length else { panic!("so many epochs") };
    let (d, RowRegularisation { clip, proximal }) = (settings.dimensions, settings.extra);
    let wide = |numbers: &[f32]| numbers.iter().map(|&number| f64::from(number)).collect::<Vec<_>>();
    // Users, then items, in one table.
    let (start, users) = ([wide(job.users), wide(job.table)].concat(), job.ends.len());
    let mut rows = start.clone();
    let mut order: Vec<u32> = (0..triplets.len() as u32).collect();
    let mut stream = job.order.clone();
    let is_positive = |item: usize| job.positives.contains(&(item as u32));
    let can_move = |row: usize| settings.moves == Moves::Touched || row < users || is_positive(row - users);
    let is_met = |row: usize| {
        let of = |triplet: &Triplet| [triplet.positive, triplet.negative].contains(&((row - users) as u32));
        row >= users && triplets.iter().any(of)
    };
    let corrected: Vec<(usize, f64)> =
        job.correction.map_or_else(Vec::new, |Correction { table, is_whole, .. }| {
            let is_corrected = |row: usize| is_whole || is_met(row) && can_move(row);
            let items = (users * d..start.len()).filter(|at| is_corrected(at / d));
            items.map(|at| (at, f64::from(table[at - users * d]))).collect()
        });
    for _ in 0..epochs {
        stream.shuffle(&mut order);
        for batch in order.chunks(settings.batch) {
            let mut slopes: std::collections::BTreeMap<usize, Vec<f64>> = std::collections::BTreeMap::new();
            for triplet in batch.iter().map(|&example| triplets[example as usize]) {
                let [u, p, n] =
                    [triplet.user as usize, users + triplet.positive as usize, users + triplet.negative as usize];
                let row = |index: usize| &rows[index * d..][..d];
                let x: f64 = (0..d).map(|at| row(u)[at] * (row(p)[at] - row(n)[at])).sum();
                let s = 1.0 / (1.0 + x.exp()) / batch.len() as f64;
                for at in 0..d {
                    let mut add =
                        |index: usize, slope: f64| slopes.entry(index).or_insert_with(|| vec![0.0; d])[at] += slope;
                    add(u, -s * (row(p)[at] - row(n)[at]));
                    add(p, -s * row(u)[at]);
                    add(n, s * row(u)[at]);
                }
            }
            slopes.retain(|&row, _| can_move(row));
            let norm = slopes.values().flatten().map(|slope| slope * slope).sum::<f64>().sqrt();
            let scale = clip.map_or(1.0, |most| (f64::from(most) / (norm + 1e-6)).min(1.0));
            for (row, slopes) in slopes {
                for (at, slope) in (row * d..).zip(slopes) {
                    rows[at] -= lr * (slope * scale + f64::from(proximal) * (rows[at] - start[at]));
                }
            }
            corrected.iter().for_each(|&(at, more)| rows[at] -= lr * more);
        }
    }
    let items = rows.split_off(users * d);
    (rows, items)
}

#[test]
fn clipping_and_pulling_reach_the_rows_of_a_step_alone() {
    let d = 6;
    let (table, users) = (numbers(9 * d, 1), numbers(2 * d, 2));
    let triplets: Vec<Triplet> =
        (0..11).map(|place| Triplet { user: place % 2, positive: place % 4, negative: 4 + place % 5 }).collect();
    let mut seen = Vec::new();
    for (moves, clip, proximal) in [
        (Moves::Touched, None, 0.0),
        (Moves::Touched, Some(0.05), 0.0),
        (Moves::Touched, None, 0.8),
        (Moves::Touched, Some(0.05), 0.8),
        (Moves::Interacted, Some(0.05), 0.8),
    ] {
        let job = Job {
            negatives: Negatives::Given(&triplets),
            ..job(&table, &users, &[0, 1, 2, 3, 0, 1, 2, 3], &[4, 8], 5)
        };
        let extra = RowRegularisation { clip, proximal };
        let settings = BprTraining { moves, extra, ..training(d, 3, 5, &sgd(0.4)) };
        let (of_users, of_items) = descended(&settings, &job, 0.4);
        let found = trained(&settings, job);
        let close =
            |found: &[f32], expected: &[f64]| found.iter().zip(expected).all(|(x, y)| (f64::from(*x) - y).abs() < 2e-6);
        assert!(close(&found.users, &of_users), "{extra:?}");
        assert_eq!(found.items.len(), if moves == Moves::Touched { 9 } else { 4 });
        for (&item, row) in found.items.iter().zip(found.rows.chunks(d)) {
            assert!(close(row, &of_items[item as usize * d..][..d]), "{extra:?}, {item}");
        }
        seen.push(found.users);
    }
    let far = |one: &[f32], other: &[f32]| one.iter().zip(other).any(|(x, y)| (x - y).abs() > 1e-3);
    assert!((1..seen.len()).all(|index| far(&seen[index], &seen[index - 1])), "each of them matters");
}

/// Two users who rated items 0 to 3; items 4 to 8 are negatives, of which the last ones are met by few steps; nobody
/// meets item 9.
#[test]
fn corrections_reach_the_rows_that_a_job_moves_in_every_step() {
    let d = 6;
    let (table, users, more) = (numbers(10 * d, 1), numbers(2 * d, 2), numbers(10 * d, 3));
    let triplets: Vec<Triplet> =
        (0..11).map(|place| Triplet { user: place % 2, positive: place % 4, negative: 4 + place % 5 }).collect();
    for (moves, is_whole, items) in [
        (Moves::Touched, false, (0..9).collect::<Vec<u32>>()),
        (Moves::Interacted, false, (0..4).collect()),
        (Moves::Touched, true, (0..10).collect()),
        (Moves::Interacted, true, (0..10).collect()),
    ] {
        let plain = Job {
            negatives: Negatives::Given(&triplets),
            ..job(&table, &users, &[0, 1, 2, 3, 0, 1, 2, 3], &[4, 8], 5)
        };
        let correction = |table| Some(Correction { weights: &[], table, is_whole });
        let corrected = Job { correction: correction(&more), ..plain.clone() };
        let extra = RowRegularisation { clip: Some(0.05), proximal: 0.8 };
        let settings = BprTraining { moves, extra, ..training(d, 3, 3, &sgd(0.1)) };
        let (of_users, of_items) = descended(&settings, &corrected, 0.1);
        let found = trained(&settings, corrected);
        let close =
            |found: &[f32], expected: &[f64]| found.iter().zip(expected).all(|(x, y)| (f64::from(*x) - y).abs() < 2e-6);
        assert!(close(&found.users, &of_users), "{moves:?}, {is_whole}");
        assert_eq!((&found.items, found.steps), (&items, 12));
        for (&item, row) in found.items.iter().zip(found.rows.chunks(d)) {
            assert!(close(row, &of_items[item as usize * d..][..d]), "{moves:?}, {is_whole}, {item}");
        }
        // Nobody corrects by zero.
        let (without, zeros) = (trained(&settings, plain.clone()), vec![0.0; table.len()]);
        let with = trained(&settings, Job { correction: correction(&zeros), ..plain });
        assert_eq!((&with.users, with.loss, with.steps), (&without.users, without.loss, without.steps));
        if is_whole {
            let mut whole = table.clone();
            for (&item, row) in without.items.iter().zip(without.rows.chunks(d)) {
                whole[item as usize * d..][..d].copy_from_slice(row);
            }
            assert_eq!(with.rows, whole);
        } else {
            assert_eq!(with, without);
        }
    }
}

/// Jobs of every kind: one user or several, all items rated or few.
fn check_alike(dimensions: usize, optimizer: &OptimizerConfig, moves: Moves, extra: RowRegularisation) {
    let items = 40;
    let table = initial_items(items, dimensions, 0.1, &Streams::new(2));
    let users = numbers(3 * dimensions, 4);
    let positives: Vec<u32> = [(0..40).collect::<Vec<_>>(), vec![1, 5, 39], (0..20).collect()].concat();
    let settings = BprTraining { moves, extra, ..training(dimensions, 7, 3, optimizer) };
    let jobs: Vec<Job<'_>> = (0..9)
        .map(|seed| match seed % 3 {
            0 => job(&table, &users, &positives, &[40, 43, 63], seed),
            1 => job(&table, &users[..dimensions], &positives[40..43], &[3], seed),
            _ => job(&table, &users[..dimensions], &[], &[0], seed),
        })
        .collect();
    let mut expected = vec![Outcome::default(); jobs.len()];
    settings.train_on(Path::BASELINE, &jobs, false, &mut expected);
    assert_eq!((expected[0].without_negative, expected[0].triplets, expected[1].triplets), (40, 69, 9));
    assert!(expected[0].loss > 0.5 && expected[2].users == users[..dimensions] && expected[2].items.is_empty());
    let most = if moves == Moves::Interacted { 3 } else { 12 };
    assert!((2..=most).contains(&expected[1].items.len()) && expected[1].items.is_sorted());
    for path in Path::all() {
        for threads in [1, 3] {
            let mut found = vec![Outcome::default(); jobs.len()];
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| settings.train_on(path, &jobs, threads > 1, &mut found));
            assert_eq!(found, expected, "{path}, {threads}");
        }
    }
}

#[test]
fn every_path_and_number_of_threads_gives_the_same_bits() {
    for dimensions in [5, 16, 32, 50, 64] {
        for optimizer in others().iter().chain([&sgd(0.1)]) {
            check_alike(dimensions, optimizer, Moves::Touched, RowRegularisation::default());
            let extra = RowRegularisation { clip: Some(0.1), proximal: 0.3 };
            check_alike(dimensions, optimizer, Moves::Interacted, RowRegularisation::default());
            check_alike(dimensions, optimizer, Moves::Interacted, extra);
            check_alike(dimensions, optimizer, Moves::Touched, extra);
        }
    }
}

#[test]
fn a_job_stops_after_so_many_steps() {
    let (table, users) = (numbers(80, 1), numbers(8, 2));
    let positives: Vec<u32> = (0..5).collect();
    let settings = BprTraining { length: Length::Steps(4), ..training(8, 2, 1, &sgd(0.1)) };
    let found = trained(&settings, job(&table, &users, &positives, &[5], 1));
    // 2, 2 and 1 in the first epoch, 2 in the second.
    assert_eq!((found.steps, found.triplets), (4, 7));
}

#[test]
fn whole_epochs_move_the_rows_of_all_positives() {
    const ITEMS: usize = 6;
    let all: Vec<u32> = (0..ITEMS as u32).collect();
    let interacted = BprTraining { moves: Moves::Interacted, ..training(2, 2, 2, &sgd(0.1)) };
    for positives in [&all[1..4], &all] {
        let ends = [positives.len() as u32];
        let job = job(&[0.0; 2 * ITEMS], &[0.0; 2], positives, &ends, 1);
        let moved = Footprint::default().of(&interacted, &job, ITEMS).moved;
        assert_eq!(Footprint::moved_by_positives(&interacted, &job, ITEMS), Some(moved));
        assert_eq!(moved, trained(&interacted, job.clone()).items.len());
        // Elsewhere it depends on draws.
        let two = Job { ends: &[1, ends[0]], users: &[0.0; 4], ..job.clone() };
        let in_steps = BprTraining { length: Length::Steps(1), ..interacted.clone() };
        let touched = BprTraining { moves: Moves::Touched, ..interacted.clone() };
        for (settings, job) in [(&interacted, &two), (&in_steps, &job), (&touched, &job)] {
            assert_eq!(Footprint::moved_by_positives(settings, job, ITEMS), None);
        }
    }
}

#[test]
fn what_is_not_finite_is_noticed_and_its_nans_are_one() {
    let table = numbers(80, 1);
    let found = trained(&training(8, 2, 3, &sgd(0.1)), job(&table, &[f32::INFINITY; 8], &[1, 2], &[2], 1));
    assert!(found.diverged && found.steps == 0, "{found:?}");
    let nans = found.users.iter().chain(&found.rows).filter(|number| number.is_nan());
    assert!(nans.into_iter().all(|number| number.to_bits() == f32::NAN.to_bits()));
}

#[test]
fn first_rows_belong_to_item_table_and_user() {
    let streams = Streams::new(9);
    let table = initial_items(100, 30, 0.1, &streams);
    assert_eq!(table[..50 * 30], initial_items(50, 30, 0.1, &streams));
    let deviation = (table.iter().map(|x| f64::from(x * x)).sum::<f64>() / 3_000.0).sqrt();
    assert!((deviation - 0.1).abs() < 0.005, "{deviation}");
    let [mut one, mut same, mut other] = [[0.0; 4]; 3];
    initial_user(7, 0.1, &streams, &mut one);
    initial_user(7, 0.1, &streams, &mut same);
    initial_user(8, 0.1, &streams, &mut other);
    assert!(one == same && one != other);
}

#[test]
fn scores_are_dot_products_on_every_path() {
    for (items, d, users) in [(1, 1, 1), (15, 3, 5), (16, 16, 16), (37, 20, 9), (50, 33, 13)] {
        let (table, rows) = (numbers(items * d, 1), numbers(20 * d, 2));
        let chosen: Vec<u32> = (0..users).map(|place| (place * 7) % 20).collect();
        let mut expected = Vec::new();
        for &user in &chosen {
            for item in 0..items {
                let terms = rows[user as usize * d..][..d].iter().zip(&table[item * d..][..d]);
                expected.push(terms.fold(0.0, |sum, (x, y)| libm::fmaf(*x, *y, sum)));
            }
        }
        for path in Path::all() {
            let users = UserTable(&rows);
            let scores = FactorScores::on(path, &table, d, &users);
            let mut found = vec![f32::NAN; chosen.len() * items];
            scores.score(&chosen, &mut found);
            assert_eq!((found, scores.items()), (expected.clone(), items), "{path}");
        }
    }
    assert_eq!(BLOCK, 16);
}

/// The synthetic data as they come, without validation.
fn synthetic() -> RatingsSplit {
    let streams = Streams::new(1);
    let data = RatingsConfig::default().load(&Filters::default(), &streams, &RatingsCache::default()).unwrap();
    SplitConfig::PerUser { test: 0.2, valid: 0.0 }.split(Arc::clone(&data), &streams).unwrap()
}

#[test]
fn factors_learn_more_than_popularity_from_synthetic_ratings() {
    let split = synthetic();
    let (train, test): (ItemLists, ItemLists) = (split.lists(Part::Train), split.lists(Part::Test));
    let d = 16;
    let streams = Streams::new(1);
    let table = initial_items(split.items(), d, 0.1, &streams);
    let mut users = vec![0.0; split.users() * d];
    users.chunks_exact_mut(d).zip(0..).for_each(|(row, user)| initial_user(user, 0.1, &streams, row));
    let positives: Vec<u32> = train.pairs().map(|(_, item)| item).collect();
    let ends: Vec<u32> = (0..split.users() as u32)
        .scan(0, |end, user| {
            *end += train.of(user).len() as u32;
            Some(*end)
        })
        .collect();
    let found = trained(&training(d, 16, 30, &sgd(1.0)), job(&table, &users, &positives, &ends, 1));
    assert_eq!(found.items.len(), split.items());
    let rows = UserTable(&found.users);
    let learned = evaluate(&FactorScores::new(&found.rows, d, &rows), split.items(), &train, &test, &[20], false);
    let popular = Popularity::new(&split).evaluate(&train, &test, &[20], false);
    // AUC, NDCG and recall.
    for (metric, least) in [(0, 1.05), (2, 1.25), (3, 1.25)] {
        assert!(learned.values[metric] > least * popular.values[metric], "{learned:?}, {popular:?}");
    }
}
