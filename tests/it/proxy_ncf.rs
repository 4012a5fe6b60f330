//! The model `proxy-ncf` from outside: rounds, traffic, noise, metrics and an actor's inputs, worked out again in
//! double precision from the files that a run starts from and the clients that it says it selected.

mod double;
mod refused;

use super::support::{SCENARIO, Workplace};
use double::{Files, Model, Update, shapes, spearman};
use fedgenie::model::weights::{Tensor, read_tensors, to_safetensors};
use serde_json::Value;
use std::fmt::Write;

const USERS: usize = 12;
const ITEMS: usize = 20;
/// The client whose user has nothing to train on.
const IDLE: usize = 5;
const WINDOW: u32 = 7;
const CUTOFFS: [usize; 2] = [2, 5];

/// The part that differs from scenario to scenario.
#[derive(Clone)]
struct Case {
    d: usize,
    h: usize,
    is_pairwise: bool,
    is_interacted: bool,
    is_by_selected: bool,
    has_start: bool,
    has_triplets: bool,
    contribution: &'static str,
    batch: usize,
    is_adam: bool,
    rate: f64,
    clip: Option<f64>,
    proximal: f64,
    noise: Option<&'static str>,
}

/// The paper's: pairs of scores, rows of positives.
const PAPER: Case = Case {
    d: 3,
    h: 5,
    is_pairwise: true,
    is_interacted: true,
    is_by_selected: true,
    has_start: true,
    has_triplets: true,
    contribution: "proxy",
    batch: 4,
    is_adam: true,
    rate: 0.02,
    clip: None,
    proximal: 0.0,
    noise: None,
};

/// Numbers without a pattern from −1 to 1, exact in `f32`.
fn scrambled(index: usize) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    f64::from((mixed as f64 / (1_u64 << 23) as f64 - 1.0) as f32)
}

/// Popular items come first; user 5 has nothing for training, user 7 nothing for testing.
fn ratings() -> String {
    let mut text = "user,item,split\n".to_owned();
    let mut draw = 0;
    for user in 0..USERS {
        let parts = [("train", 4 + user % 5), ("valid", 1), ("test", 2)];
        let mut items = Vec::new();
        for (part, count) in parts {
            if (user, part) == (IDLE, "train") || (user, part) == (7, "test") {
                continue;
            }
            let end = items.len() + count;
            while items.len() < end {
                draw += 1;
                let item = ((0.5 * scrambled(7 * draw) + 0.5).powf(1.5) * ITEMS as f64) as usize;
                if !items.contains(&item) {
                    items.push(item);
                    let _ = writeln!(text, "{},{},{part}", 11 + 3 * user, 100 + 7 * item);
                }
            }
        }
    }
    text
}

/// Whether the first training pair of a user has no triplet: it is not trained on, and its row does not travel.
fn has_gap(user: usize) -> bool {
    user % 3 == 2
}

/// Two triplets of each training pair but the first of every third user, in an order that mixes users. Negatives may
/// be items that are held out.
fn triplets(ratings: &Files) -> String {
    let mut lines = Vec::new();
    for (user, items) in ratings.parts["train"].iter().enumerate() {
        for (&item, place) in items.iter().zip(0..) {
            let others: Vec<usize> = (0..ITEMS).filter(|other| !items.contains(other)).collect();
            for repeat in 0..2 {
                let mark = scrambled(1_000 + 50 * user + 2 * place + repeat);
                let negative = others[((0.5 * mark + 0.5) * others.len() as f64) as usize];
                if !(has_gap(user) && place == 0) {
                    lines.push((mark, format!("{},{},{}\n", 11 + 3 * user, 100 + 7 * item, 100 + 7 * negative)));
                }
            }
        }
    }
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    lines.into_iter().fold("user,positive,negative\n".to_owned(), |text, (_, line)| text + &line)
}

fn scenario(case: &Case) -> String {
    let Case { d, h, batch, rate, contribution, .. } = case;
    let proxy = if case.is_pairwise { "pairwise" } else { "positive" };
    let updated = if case.is_interacted { "interacted" } else { "touched" };
    let rows = if case.is_by_selected { "selected" } else { "touched" };
    let start = if case.has_start { "start = \"start.safetensors\"\n" } else { "" };
    let triplets = "triplets = \"triplets.csv\"\nmissing_triplets = \"skip\"\n";
    let triplets = if case.has_triplets { triplets } else { "" };
    let optimizer = if case.is_adam { "adam" } else { "sgd" };
    let clip = case.clip.map_or_else(String::new, |most| format!("clip = {most}\n"));
    let noise = case.noise.map_or_else(String::new, |scope| format!("[privacy]\nsigma = 0.1\nscope = \"{scope}\"\n"));
    format!(
        r#"name = "pairs"
seeds = 1
[stop]
rounds = 5
[population.latency]
download = {{ constant = "1 s" }}
compute = {{ exponential = {{ mean = "1 s" }} }}
upload = {{ constant = "1 s" }}
[task.recommendation]
data = {{ csv = {{ file = "ratings.csv", split = "split" }} }}
split = "file"
partition = "users"
model = {{ proxy-ncf = {{ dimensions = {d}, hidden = {h}, proxy = "{proxy}" }} }}
updated_items = "{updated}"
{triplets}cutoffs = [2, 5]
staleness_window = {WINDOW}
{start}[training]
epochs = 2
batch = {batch}
proximal = {:?}
{clip}optimizer = {{ {optimizer} = {{ lr = {rate} }} }}
[aggregation]
rows = "{rows}"
[protocol.synchronous]
cohort = 3
[record]
explain = true
updates = true
{noise}[policy.proxyrl]
contribution = "{contribution}"
accuracy = "valid_hr_5"
"#,
        case.proximal
    )
}

/// The files of a case.
fn place(case: &Case) -> (Workplace, Files) {
    let place = Workplace::with(&scenario(case));
    let ratings = ratings();
    let triplets = triplets(&Files::read(&ratings, ""));
    let files = Files::read(&ratings, &triplets);
    place.write("ratings.csv", &ratings);
    place.write("triplets.csv", &triplets);
    if case.has_start {
        place.write("start.safetensors", to_safetensors(&start(case)));
    }
    (place, files)
}

fn start(case: &Case) -> Vec<Tensor> {
    let mut index = 5_000;
    let tensor = |(name, shape): (String, Vec<usize>)| {
        let count = shape.iter().product::<usize>();
        index += count;
        let values = (index - count..index).map(|index| (0.9 * scrambled(index)) as f32).collect();
        Tensor { name, shape, values }
    };
    shapes(case).into_iter().map(tensor).collect()
}

/// Runs the scenario into a folder; users without training ratings are a warning.
fn run(place: &Workplace, folder: &str, more: &[&str]) -> String {
    let answer = place.fedgenie(&[&["run", SCENARIO, "--out", folder, "--models"], more].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.stderr
}

fn rounds(place: &Workplace) -> Vec<Value> {
    place.lines("out/runs/proxyrl-s1/rounds.jsonl")
}

fn near(found: &Value, expected: f64, tolerance: f64, what: &str) {
    let number = found.as_f64().unwrap_or(f64::NAN);
    let is_near = (number - expected).abs() <= tolerance * expected.abs().max(1.0);
    assert!(is_near || number.is_nan() && expected.is_nan(), "{what}: {found}, {expected}");
}

fn ids(value: &Value) -> Vec<usize> {
    serde_json::from_value(value.clone()).unwrap()
}

/// When each item's row was last sent, and the clients that have trained.
struct History {
    moved: [u32; ITEMS],
    has_trained: [bool; USERS],
}

/// The metrics of a round, all of them.
fn check_metrics(case: &Case, files: &Files, model: &Model, (number, metrics): (u32, &Value), history: &History) {
    let mut checked = 0;
    let mut check = |name: &str, expected: f64| {
        near(&metrics[name], expected, 1e-6, &format!("{name} of round {number}"));
        checked += 1;
    };
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    for (prefix, part) in [("test_", "test"), ("valid_", "valid"), ("test_participant_", "test")] {
        for (index, k) in CUTOFFS.into_iter().enumerate() {
            let of_users = (0..USERS).filter(|&user| prefix != "test_participant_" || history.has_trained[user]);
            let found: Vec<[f64; 6]> = of_users.filter_map(|user| case.ranked(files, model, user, part, k)).collect();
            let names = ["auc".to_owned()].into_iter();
            let names = names.chain(["hr", "ndcg", "recall", "precision", "f1"].map(|name| format!("{name}_{k}")));
            for (at, name) in names.enumerate().skip(usize::from(index > 0)) {
                check(&format!("{prefix}{name}"), mean(&found.iter().map(|values| values[at]).collect::<Vec<_>>()));
            }
        }
    }
    let ages: u32 = history.moved.iter().map(|moved| number - moved).sum();
    check("item_staleness", f64::from(ages) / ITEMS as f64 / f64::from(WINDOW));
    let is_updated = |item: &usize| history.moved[*item] > 0;
    check("items_updated", (0..ITEMS).filter(is_updated).count() as f64 / ITEMS as f64);
    let popularity = |item: usize| files.parts["train"].iter().flatten().filter(|&&other| other == item).count();
    let mut by_popularity: Vec<usize> = (0..ITEMS).collect();
    by_popularity.sort_by_key(|&item| (popularity(item), item));
    let tail = &by_popularity[..16];
    check("longtail_updated", tail.iter().filter(|item| is_updated(item)).count() as f64 / 16.0);
    let sums =
        (0..USERS).filter(|&user| user != IDLE).map(|user| case.sums(model, &case.epochs(files, user, number + 1)[0]));
    check("proxy_rank_correlation", spearman(&sums.collect::<Vec<_>>()));
    assert_eq!(checked, metrics.as_object().unwrap().len(), "no metric is left: {metrics}");
}

/// Everything that a run says, worked out again. Returns the models after each round.
fn replay(case: &Case, place: &Workplace, files: &Files) -> Vec<Model> {
    let mut models = vec![if case.has_start { Model::of(case, &start(case)) } else { Model::drawn(case) }];
    let mut history = History { moved: [0; ITEMS], has_trained: [false; USERS] };
    let candidates: Vec<usize> = (0..USERS).filter(|&user| user != IDLE).collect();
    let [mut down, mut up] = [0; 2];
    let rounds = rounds(place);
    assert_eq!(rounds.len(), 5);
    for (number, round) in (1..).zip(&rounds) {
        let model = models.last().unwrap();
        let state = round["explain"][0]["state"].as_array().unwrap();
        assert_eq!(state.len(), candidates.len());
        for (found, &client) in state.iter().zip(&candidates) {
            let which = usize::from(case.contribution == "proxy");
            let expected = case.sums(model, &case.epochs(files, client, number)[0])[which];
            near(found, expected, 1e-5, &format!("state of client {client} in round {number}"));
        }
        let selected = ids(&round["selected"]);
        assert!(selected.len() == 3 && !selected.contains(&IDLE));
        let mut updates: Vec<Update> =
            selected.iter().map(|&client| case.train(files, model, client, number)).collect();
        for update in &updates {
            let place = ids(&round["updates"]["clients"]).iter().position(|&client| client == update.client).unwrap();
            assert_eq!(round["updates"]["examples"][place], update.examples);
            near(&round["updates"]["loss"][place], update.loss, 1e-5, "loss of an update");
            update.rows.iter().for_each(|&row| history.moved[row] = number);
            history.has_trained[update.client] = true;
            up += if case.noise == Some("table") { case.model_bytes() } else { case.update_bytes(update.rows.len()) };
        }
        down += case.model_bytes() * (candidates.len() + updates.len()) as u64;
        up += 8 * candidates.len() as u64;
        let found = [&round["down_bytes"], &round["up_bytes"]].map(|bytes| bytes.as_u64().unwrap());
        assert_eq!(found, [down, up], "round {number}");
        updates.sort_by_key(|update| update.client);
        let next = case.aggregate(model, &updates);
        models.push(next);
        check_metrics(case, files, models.last().unwrap(), (number, &round["metrics"]), &history);
    }
    assert!((0..USERS).any(|user| has_gap(user) && history.has_trained[user]));
    let traffic = &place.json("out/summary.json")["runs"][0]["traffic"];
    assert_eq!([&traffic["down_bytes"], &traffic["up_bytes"]].map(|bytes| bytes.as_u64().unwrap()), [down, up]);
    let found = read_tensors(&place.path("out/runs/proxyrl-s1/model.safetensors"), shapes(case)).unwrap();
    let found = Model::of(case, &found).numbers();
    let expected = models.last().unwrap().numbers();
    let begun = models[0].numbers();
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((found - expected).abs() < 1e-5, "number {index}: {found}, {expected}, begun with {}", begun[index]);
    }
    models
}

fn played(case: &Case) -> (Workplace, Vec<Model>) {
    let (place, files) = place(case);
    let told = run(&place, "out", &[]);
    assert!(told.contains("1 users have no rating for training, and are never selected"), "{told}");
    let models = replay(case, &place, &files);
    (place, models)
}

#[test]
fn the_files_have_what_the_tests_need() {
    let files = place(&PAPER).1;
    let rated = |item: usize| files.parts.values().flatten().any(|items| items.contains(&item));
    assert!((0..ITEMS).all(rated), "items have their numbers");
    assert!(files.parts["train"][IDLE].is_empty() && !files.parts["test"][IDLE].is_empty());
    // Training pairs without a triplet; mini-batches that are not full; negatives that others like.
    for user in (0..USERS).filter(|&user| has_gap(user) && user != IDLE) {
        let left_out = (user, files.parts["train"][user][0]);
        assert!(!files.triplets.iter().any(|&(user, positive, _)| (user, positive) == left_out));
    }
    assert!((0..USERS).any(|user| !files.triplets_of(user).len().is_multiple_of(PAPER.batch)));
    assert!(files.triplets.iter().any(|&(user, _, negative)| files.parts["test"][user].contains(&negative)));
}

#[test]
fn rows_of_positives_and_pairs() {
    played(&PAPER);
}

#[test]
fn all_rows_that_are_met_and_answers_to_positives() {
    let case = Case { is_pairwise: false, is_interacted: false, contribution: "inference", ..PAPER };
    played(&case);
    // Rows and hidden numbers of more than one vector, from streams' draws.
    played(&Case { d: 17, h: 18, has_start: false, ..case });
}

/// Every job has draws of its own: clients answer by the draws of the job that they would do.
#[test]
fn negatives_that_are_drawn() {
    for is_interacted in [true, false] {
        played(&Case { has_triplets: false, is_interacted, ..PAPER });
    }
}

/// Adam does not see how long a gradient is; here a slope that is half as large would show.
#[test]
fn gradient_descent() {
    for is_pairwise in [true, false] {
        played(&Case { is_adam: false, rate: 0.3, is_pairwise, ..PAPER });
    }
}

#[test]
fn clipped_and_pulled_towards_what_was_sent() {
    let case = Case { clip: Some(0.3), proximal: 0.2, h: 16, d: 4, is_pairwise: false, ..PAPER };
    let (_, models) = played(&case);
    let (_, other) = played(&Case { clip: None, proximal: 0.0, ..case });
    assert_ne!(models[1].networks, other[1].networks);
}

#[test]
fn rows_divided_by_those_who_sent_them() {
    played(&Case { is_by_selected: false, is_interacted: false, batch: 3, ..PAPER });
}

#[test]
fn noise_of_rows_and_of_tables() {
    for scope in ["rows", "table"] {
        played(&Case { noise: Some(scope), ..PAPER });
    }
}

/// One round of one client with and without noise: the difference of the updates is noise.
#[test]
fn noise_has_its_deviation_and_spares_networks() {
    let model = |case: &Case| {
        let (place, _) = place(case);
        run(&place, "out", &["--set", "stop.rounds=1", "--set", "protocol.synchronous.cohort=1"]);
        let tensors = read_tensors(&place.path("out/runs/proxyrl-s1/model.safetensors"), shapes(case)).unwrap();
        let rounds = rounds(&place);
        (Model::of(case, &tensors), ids(&rounds[0]["selected"])[0], ids(&rounds[0]["updates"]["clients"]))
    };
    let plain = Case { d: 40, h: 2, ..PAPER };
    let begun = Model::of(&plain, &start(&plain));
    let (without, client, _) = model(&plain);
    for scope in ["rows", "table"] {
        let case = Case { noise: Some(scope), ..plain.clone() };
        let (noisy, selected, arrived) = model(&case);
        assert_eq!((selected, &arrived[..]), (client, &[client][..]));
        assert_eq!((&noisy.networks, &noisy.users), (&without.networks, &without.users));
        assert_ne!(noisy.networks, begun.networks);
        let positives = place(&case).1.parts["train"][client].clone();
        let mut noise = Vec::new();
        for item in 0..ITEMS {
            if scope == "table" || positives.contains(&item) {
                noise.extend(noisy.items[item].iter().zip(&without.items[item]).map(|(noisy, plain)| noisy - plain));
            } else {
                assert_eq!(noisy.items[item], begun.items[item], "rows of others stay as they are");
            }
        }
        // Four standard errors of mean and deviation.
        let count = noise.len() as f64;
        assert!(count >= 160.0);
        let mean = noise.iter().sum::<f64>() / count;
        let deviation = (noise.iter().map(|number| number * number).sum::<f64>() / count).sqrt();
        assert!(mean.abs() < 0.4 / count.sqrt(), "{scope}: {mean}");
        assert!((deviation - 0.1).abs() < 0.4 / (2.0 * count).sqrt(), "{scope}: {deviation}");
    }
}

#[test]
fn digests_are_the_same_on_any_number_of_threads() {
    for case in [PAPER, Case { is_interacted: false, d: 17, h: 18, noise: Some("rows"), ..PAPER }] {
        let (place, _) = place(&case);
        place.write(SCENARIO, scenario(&case) + "[policy.random]\n");
        for threads in ["1", "2", "7"] {
            run(&place, threads, &["--threads", threads]);
        }
        assert_eq!(place.digests("1").len(), 2);
        assert_eq!(place.digests("1"), place.digests("2"));
        assert_eq!(place.digests("1"), place.digests("7"));
    }
}
