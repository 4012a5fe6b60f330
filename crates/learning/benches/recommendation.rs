//! Matrix factorisation of MovieLens-1M's shape: triplets a second, and the evaluation of all users.
//!
//! `cargo bench -p fedgenie-learning --bench recommendation`. The ratings are drawn; their number and the skew of users
//! and items are near those of the data set.

#![allow(clippy::disallowed_methods, reason = "benchmarks read the clock")]
#![allow(missing_docs, reason = "a program")]

use fedgenie_core::halt::NEVER;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::matrix_factorisation::{
    BprTraining, FactorScores, Job, Moves, Negatives, Outcome, RowRegularisation, UserTable, Worker, initial_items,
    initial_user,
};
use fedgenie_learning::ranking::evaluate;
use fedgenie_learning::ratings::reference::{Biases, Popularity};
use fedgenie_learning::ratings::source::RatingsSource;
use fedgenie_learning::ratings::synthetic::SyntheticRatings;
use fedgenie_learning::ratings::{Filters, Part, RatingsCache, RatingsConfig, SplitConfig};
use fedgenie_learning::trainer::{Length, Optimizer, OptimizerConfig};
use rayon::prelude::*;
use std::cell::RefCell;
use std::time::Instant;

const DIMENSIONS: usize = 32;
const CLIENTS: usize = 100;

thread_local! {
    /// Kept from job to job.
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// The least time of several runs, in seconds: others use the machine as well.
fn least(runs: usize, mut work: impl FnMut()) -> f64 {
    let time = |work: &mut dyn FnMut()| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_secs_f64()
    };
    (0..runs).map(|_| time(&mut work)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let streams = Streams::new(1);
    let shape = SyntheticRatings { users: 6_040, items: 3_706, ratings: 1_000_209, ..SyntheticRatings::default() };
    let data = RatingsConfig::Source(RatingsSource::Synthetic(shape));
    let filters = Filters { items: Some(3_706), ..Filters::default() };
    let data = data.load(&filters, &streams, &RatingsCache::default()).expect("ratings can be drawn");
    let split = SplitConfig::default().split(data, &streams).expect("ratings can be split");
    let (train, test) = (split.lists(Part::Train), split.lists(Part::Test));
    let table = initial_items(split.items(), DIMENSIONS, 0.1, &streams);
    let mut users = vec![0.0; split.users() * DIMENSIONS];
    users.chunks_exact_mut(DIMENSIONS).zip(0..).for_each(|(row, user)| initial_user(user, 0.1, &streams, row));
    let ends: Vec<[u32; 1]> = (0..split.users() as u32).map(|user| [train.of(user).len() as u32]).collect();
    let sgd = OptimizerConfig::Sgd { lr: 0.05, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let adam = OptimizerConfig::Adam { lr: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
    println!("{} training ratings, {} threads", train.len(), rayon::current_num_threads());
    for (name, config) in [("sgd", sgd), ("adam", adam)] {
        for batch in [1, 16, 64] {
            let optimizer = Optimizer::new(&config).expect("settings are right");
            let settings = BprTraining {
                dimensions: DIMENSIONS,
                length: Length::Epochs(1),
                batch,
                optimizer,
                extra: RowRegularisation::default(),
                moves: Moves::Touched,
            };
            let jobs: Vec<Job<'_>> = (0..split.users())
                .map(|user| Job {
                    halt: &NEVER,
                    table: &table,
                    users: &users[user * DIMENSIONS..][..DIMENSIONS],
                    positives: train.of(user as u32),
                    ends: &ends[user],
                    negatives: Negatives::Drawn,
                    lr_factor: 1.0,
                    correction: None,
                    order: streams.stream(Purpose::BatchOrder, user as u32, 1),
                    draws: streams.stream(Purpose::TrainingNoise, user as u32, 1),
                })
                .collect();
            let mut outcomes = vec![Outcome::default(); CLIENTS];
            let mut triplets = 0;
            let seconds = least(5, || {
                triplets = 0;
                for cohort in jobs.chunks_exact(CLIENTS) {
                    cohort.par_iter().zip(&mut outcomes).with_max_len(1).for_each(|(job, outcome)| {
                        WORKER.with_borrow_mut(|worker| worker.train(&settings, job, outcome));
                    });
                    triplets += outcomes.iter().map(|outcome| outcome.triplets).sum::<u64>();
                }
            });
            println!(
                "{name}, batch {batch}: {:.2e} triplets/s ({triplets} in {seconds:.3} s)",
                triplets as f64 / seconds
            );
        }
    }
    let rows = UserTable(&users);
    let seconds = least(5, || {
        let scores = FactorScores::new(&table, DIMENSIONS, &rows);
        let means = evaluate(&scores, split.items(), &train, &test, &[20], true);
        assert!(means.users > 6_000, "nearly everybody has test ratings");
    });
    println!("evaluation of {} users, {} test ratings: {seconds:.3} s", split.users(), test.len());
    let seconds = least(2, || {
        let _ = Popularity::new(&split).evaluate(&train, &test, &[20], true);
    });
    println!("reference popularity: {seconds:.3} s");
    let seconds = least(2, || {
        let _ = Biases::fit(&split);
    });
    println!("reference bias: {seconds:.3} s");
}
