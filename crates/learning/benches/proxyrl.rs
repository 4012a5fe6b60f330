//! A round of ProxyRL-FRS of MovieLens-1M's shape: all 6,040 users predict their losses, 100 of them train for an
//! epoch, the server averages; and the ranking of all items for all users, on test and validation data together.
//!
//! `cargo bench -p fedgenie-learning --bench proxyrl`; `-- --json` prints lines of JSON, `-- --write FILE` writes what
//! the work begins with and what comes out, as a safetensors file of `f32` (ids and places are whole numbers). The
//! ratings are drawn. Threads: `RAYON_NUM_THREADS`.

#![allow(clippy::disallowed_methods, reason = "benchmarks read the clock")]
#![allow(missing_docs, reason = "a program")]

use fedgenie_core::halt::NEVER;
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::algorithm::{AggregationConfig, Contribution, JobMemory, ServerOptimizer};
use fedgenie_learning::layout::Update;
use fedgenie_learning::matrix_factorisation::{self as mf, Moves, Negatives, first_epoch};
use fedgenie_learning::model::weights::{Tensor, to_safetensors};
use fedgenie_learning::ranking::ItemLists;
use fedgenie_learning::ratings::source::RatingsSource;
use fedgenie_learning::ratings::synthetic::SyntheticRatings;
use fedgenie_learning::ratings::{Filters, Part, RatingsCache, RatingsConfig, RatingsPartition, SplitConfig};
use fedgenie_learning::task::recommendation::recommenders::{ProxyConfig, proxy_ncf};
use fedgenie_learning::task::recommendation::{Recommendation, Sent, Settings};
use fedgenie_learning::task::{
    Context, Job, JobKey, ModelState, PrivateState, PrivateTable, PrivateView, Probes, Task, tensors_of_models,
};
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use fedgenie_learning::training::{Assignment, Rules, train};
use std::sync::Arc;
use std::time::Instant;

const USERS: usize = 6_040;
const ITEMS: usize = 3_706;
const COHORT: usize = 100;

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

/// A list of numbers as a tensor.
fn list(name: &str, numbers: impl Iterator<Item = f64>) -> Tensor {
    let values: Vec<f32> = numbers.map(|number| number as f32).collect();
    Tensor { name: name.to_owned(), shape: vec![values.len()], values }
}

/// The items of all users, and where each user's end.
fn lists(name: &str, lists: &ItemLists) -> [Tensor; 2] {
    let of = |user| lists.of(user).iter().map(|&item| f64::from(item));
    let mut end = 0;
    let ends = (0..USERS as u32).map(|user| {
        end += lists.of(user).len();
        end as f64
    });
    [list(&format!("{name}.items"), (0..USERS as u32).flat_map(of)), list(&format!("{name}.ends"), ends)]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let file = arguments.iter().position(|argument| argument == "--write").map(|place| &arguments[place + 1]);
    let streams = Streams::new(1);
    let shape = SyntheticRatings { users: 6_040, items: 3_706, ratings: 1_000_209, ..SyntheticRatings::default() };
    let data = RatingsConfig::Source(RatingsSource::Synthetic(shape));
    let filters = Filters { users: Some(6_040), items: Some(3_706), ..Filters::default() };
    let data = data.load(&filters, &streams, &RatingsCache::default()).expect("ratings can be drawn");
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 }.split(data, &streams).expect("ratings can be split");
    let dealt = RatingsPartition::Users.build(&split, USERS, &[], &streams).expect("users are clients");
    let network = proxy_ncf::Config { dimensions: 32, hidden: 32, proxy: ProxyConfig::Pairwise };
    let settings = Settings {
        cutoffs: vec![20],
        moves: Moves::Interacted,
        transfer: [Sent::Table, Sent::Rows],
        staleness_window: 100,
    };
    let own = Recommendation::new(Arc::new(network), settings, &split, (&dealt, true), None, None, &streams);
    let task: &dyn Task = &own;
    let adam = OptimizerConfig::Adam { lr: 1e-2, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 };
    let local = LocalTraining::new(1, 32, &adam).expect("settings are right");
    let context = Context { settings: &local, streams: &streams, loss_rms: false, halt: &NEVER };
    let start = task.initial_model(0, &streams);
    let kept = PrivateTable::new(USERS);
    let moved = vec![Round(0); ITEMS];
    let state =
        ModelState { model: &start, private: PrivateView::of(&kept), round: Round(0), moved: &moved, memories: &[] };
    let number = JobNumber(1);
    let keys: Vec<JobKey> = (0..USERS).map(|client| JobKey { client: ClientId::from_index(client), number }).collect();
    let clients: Vec<ClientId> = keys.iter().step_by(USERS / COHORT).take(COHORT).map(|key| key.client).collect();
    let predicted = *task.probe_kinds().iter().find(|kind| kind.name == "predicted-loss").expect("there is a proxy");
    let job = |&client: &ClientId| Job {
        client,
        round: Round(1),
        number,
        start: &start,
        private: None,
        epochs: None,
        correction: None,
        contrast: None,
    };
    let assigned = |client: &ClientId| Assignment { job: job(client), memory: JobMemory::default() };
    let jobs: Vec<Assignment<'_>> = clients.iter().map(assigned).collect();
    let mut updates = vec![Update::default(); COHORT];
    let mut server = ServerOptimizer::new(&AggregationConfig::default(), task.layout().clone());
    let (mut answers, mut model) = (Vec::new(), Vec::new());
    let round = times(20, || {
        answers = own.answers(&predicted, &keys, &context, &state, true).expect("the task does not fail");
        train((task, Rules::default()), &context, &jobs, true, &mut updates).expect("the task does not fail");
        let rate = f64::from(local.rate(Round(1)));
        let mut contributions = Vec::new();
        for (assigned, update) in jobs.iter().zip(&updates) {
            let client = assigned.job.client;
            contributions.push(Contribution {
                client,
                number,
                cluster: 0,
                examples: task.examples(client),
                weight: None,
                staleness_weight: 1.0,
                start: &start,
                parameters: &update.parameters,
                rows: &update.rows,
                loss: None,
                steps: Some(update.steps),
                rate,
            });
        }
        model.clone_from(&start);
        server.apply(&mut model, &contributions, task.describe().all_examples, 0);
    });
    let mut values = [vec![0.0; 6], vec![0.0; 6]];
    let ranking = times(10, || task.measure_all(&state, true, &mut values, &mut []).expect("the task does not fail"));
    let threads = rayon::current_num_threads();
    for (case, [median, best]) in [("round", round), ("ranking", ranking)] {
        if json {
            let times = format!("\"unit\":\"s\",\"median\":{median},\"best\":{best}");
            println!("{{\"case\":\"{case}\",\"threads\":{threads},{times}}}");
        } else {
            println!("{case}, {threads} threads: {median:.4} s (best {best:.4})");
        }
    }
    let Some(file) = file else { return };
    let [test, valid] = values;
    let mut tensors = tensors_of_models(task, &[&start]);
    tensors.extend(own.in_file(&PrivateView::of(&kept)));
    let (mut pairs, mut ends, mut triplets) = (Vec::new(), Vec::new(), Vec::new());
    for &JobKey { client, .. } in &keys {
        let holdings = own.holdings();
        let bare = mf::Job {
            halt: &NEVER,
            table: &[],
            users: &[],
            positives: holdings.positives(client),
            ends: holdings.ends(client),
            negatives: Negatives::Drawn,
            lr_factor: 1.0,
            correction: None,
            order: streams.stream(Purpose::BatchOrder, client.0, number.0),
            draws: streams.stream(Purpose::TrainingNoise, client.0, number.0),
        };
        first_epoch(&bare, ITEMS, &mut triplets);
        pairs.extend(triplets.iter().flat_map(|triplet| [triplet.positive, triplet.negative]));
        ends.push(pairs.len() as f64 / 2.0);
    }
    tensors.push(list("triplets", pairs.into_iter().map(f64::from)));
    tensors.push(list("ends", ends.into_iter()));
    tensors.push(list("clients", clients.iter().map(|client| f64::from(client.0))));
    let parts = [("train", Part::Train), ("valid", Part::Valid), ("test", Part::Test)];
    tensors.extend(parts.into_iter().flat_map(|(name, part)| lists(name, &split.lists(part))));
    tensors.push(list("found.predicted", answers.into_iter()));
    tensors.push(list("found.model", model.iter().map(|&number| f64::from(number))));
    tensors
        .push(list("found.users", updates.iter().flat_map(|update| &update.private).map(|&number| f64::from(number))));
    tensors.push(list("found.valid", valid.into_iter()));
    tensors.push(list("found.test", test.into_iter()));
    std::fs::write(file, to_safetensors(&tensors)).expect("the file can be written");
}
