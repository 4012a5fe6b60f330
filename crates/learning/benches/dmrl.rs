//! The multimodal model on ratings of MovieLens-100K's shape: an epoch of all eight clients, the evaluation of all
//! users, and that on test and validation data together beside one after the other.
//!
//! `cargo bench -p fedgenie-learning --bench dmrl`; `-- --json` prints lines of JSON, `-- --phases` only trains, for a
//! profiler. The ratings are drawn, 100,000 of 943 users and 1,682 items with 64 features of text; clients have the
//! exponential profile with index 0.0146; batches of 128, AdamW. Threads: `RAYON_NUM_THREADS`.

#![allow(clippy::disallowed_methods, reason = "benchmarks read the clock")]
#![allow(missing_docs, reason = "a program")]

use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::JobMemory;
use fedgenie_learning::dmrl::{Features, Objective, Shape};
use fedgenie_learning::layout::Update;
use fedgenie_learning::ratings::source::RatingsSource;
use fedgenie_learning::ratings::synthetic::SyntheticRatings;
use fedgenie_learning::ratings::{Filters, RatingsCache, RatingsConfig, RatingsPartition, SplitConfig};
use fedgenie_learning::task::recommendation::multimodal::{Material, Multimodal, Settings};
use fedgenie_learning::task::{Context, Job, ModelState, On, PrivateTable, PrivateView, Task};
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use fedgenie_learning::training::{Assignment, Rules, train};
use std::time::Instant;

const CLIENTS: usize = 8;

/// Seconds of several runs, after one that is not counted: median and least.
fn times(runs: usize, mut work: impl FnMut()) -> [f64; 2] {
    work();
    let time = |work: &mut dyn FnMut()| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..runs).map(|_| time(&mut work)).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    [seconds[runs / 2], seconds[0]]
}

fn main() {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let (json, phases) = (has("--json"), has("--phases"));
    let streams = Streams::new(1);
    let shape =
        SyntheticRatings { users: 943, items: 1_682, ratings: 100_000, text: Some(64), ..SyntheticRatings::default() };
    let data = RatingsConfig::Source(RatingsSource::Synthetic(shape));
    let filters = Filters { users: Some(943), items: Some(1_682), ..Filters::default() };
    let ratings = data.load(&filters, &streams, &RatingsCache::default()).expect("ratings can be drawn");
    let [text, _] = data.features(&ratings.item_ids, &streams);
    let text = text.expect("there are features");
    let split = SplitConfig::default().split(ratings, &streams).expect("ratings can be split");
    let partition = r#"{"user-balance": {"profile": "exponential", "index": 0.0146}}"#;
    let partition: RatingsPartition = serde_json::from_str(partition).expect("a partition");
    let dealt = partition.build(&split, CLIENTS, &[], &streams).expect("ratings can be dealt out");
    let (users, items) = (split.users(), split.items());
    let shape =
        Shape { users, items, dim: 64, factors: 4, hidden: 128, attention: 16, features: [Some(text.width), None] };
    let objective = Objective { negatives: 4, margin: 1.0, disentangle: 0.01, dropout: 0.1 };
    let settings = Settings { shape, objective, cutoffs: vec![10, 50] };
    let material = Material { features: Features([text.values, Vec::new()]), ..Material::default() };
    let task = Multimodal::new(settings, &split, (&dealt, false), material, &streams);
    let task: &dyn Task = &task;
    let adamw = OptimizerConfig::AdamW { lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01 };
    let local = LocalTraining::new(1, 128, &adamw).expect("settings are right");
    let context = Context { settings: &local, streams: &streams, loss_rms: false, halt: &NEVER };
    let start = task.initial_model(0, &streams);
    let job = |client| Job {
        client: ClientId::from_index(client),
        round: Round(1),
        number: JobNumber(1),
        start: &start,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let assigned = |client| Assignment { job: job(client), memory: JobMemory::default() };
    let jobs: Vec<Assignment<'_>> = (0..CLIENTS).map(assigned).collect();
    let mut updates = vec![Update::default(); CLIENTS];
    let threads = rayon::current_num_threads();
    let tell = |case: &str, [median, best]: [f64; 2]| {
        if json {
            println!(
                "{{\"case\":\"{case}\",\"threads\":{threads},\"unit\":\"s\",\"median\":{median},\"best\":{best}}}"
            );
        } else {
            println!("{case}, {threads} threads: median {median:.4} s, best {best:.4} s");
        }
    };
    let runs = if phases { 3 } else { 7 };
    tell(
        "dmrl-epoch",
        times(runs, || {
            train((task, Rules::default()), &context, &jobs, true, &mut updates).expect("the task does not fail")
        }),
    );
    if phases {
        return;
    }
    let kept = PrivateTable::default();
    let model = &updates[0].parameters;
    let private = PrivateView::of(&kept);
    let state = ModelState { model, private, round: Round(1), moved: &[], memories: &[] };
    let mut values = vec![0.0; 1 + 2 * 5 + 1];
    tell(
        "dmrl-evaluation",
        times(runs, || {
            task.measure(On::Test, &state, true, &mut values).expect("the task does not fail");
        }),
    );
    let mut of_valid = values.clone();
    let mut both = [values.clone(), values.clone()];
    tell(
        "dmrl-both-together",
        times(runs, || task.measure_all(&state, true, &mut both, &mut []).expect("the task does not fail")),
    );
    tell(
        "dmrl-both-apart",
        times(runs, || {
            task.measure(On::Test, &state, true, &mut values).expect("the task does not fail");
            task.measure(On::Valid, &state, true, &mut of_valid).expect("the task does not fail");
        }),
    );
}
