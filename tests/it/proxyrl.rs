//! Policies of federated recommenders, on a task of a few numbers: ProxyRL-FRS with each of its contributions, FedRL,
//! FedFast, FedGST, and Power-of-Choice on trained losses. Traces worked out by hand, traffic, output files.

mod answers;
mod recomputed;
mod refused;
mod toy;

use super::contracts::{PROTOCOLS, run};
use super::policies::Copied;
use super::support::{SETTINGS, Seen, Workplace};
use fedgenie::experiment::verify::verify_with;
use fedgenie::experiment::{Earlier, Experiment, Outputs, ResultFolder, Shard, Silent, Summary, Threads, execute};
use fedgenie::id::{ClientId, Round, Turn};
use fedgenie::policy::{
    Bounds, BuildContext, DeclaredDevice, Devices, PolicyConfig, PolicyRng, Probe, Selection, SelectionRequest,
    ServerView,
};
use fedgenie::recorder::{NoSink, RunFileOptions};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::{Run, RunSettings};
use fedgenie::task::DataCache;
use fedgenie::time::VirtualTime;
use fedgenie::world::World;
use serde_json::Value;
use std::fs;
use toy::Toy;

/// Rounds of one server that waits for all.
const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 3\n";

/// Policies that learn from a reward, or need none.
const LEARNING: [(&str, &str); 8] = [
    ("proxyrl", "hidden = 4\nactor_lr = 0.05\ncritic_lr = 0.05\n"),
    ("proxyrl", "contribution = \"inference\"\nlambda = 1.0\nhidden = 3\n"),
    (
        "proxyrl",
        "contribution = \"training\"\nactor = \"shared\"\nwindow = 3\nhidden = 4\nactor_lr = 0.05\ncritic_lr = 0.05\n",
    ),
    ("proxyrl", "contribution = \"last\"\nlambda = 0.0\naccuracy = \"nothing\"\nhidden = 3\nactor_lr = 0.0\n"),
    ("proxyrl", "contribution = \"last\"\nactor = \"shared\"\nhidden = 3\nactor_lr = 0.0\ncritic_lr = 0.0\n"),
    ("fedrl", "hidden = 4\nactor_lr = 0.05\ncritic_lr = 0.05\nwindow = 4\n"),
    ("proxyrl", "actor = { softmax = { temperature = 0.5 } }\n"),
    ("proxyrl", "contribution = \"last\"\nactor = { softmax = {} }\n"),
];
/// Others.
const OTHERS: [(&str, &str); 3] = [
    ("fedgst", ""),
    ("fedfast", "clusters = 3\nfeatures = \"embeddings\"\n"),
    ("power-of-choice", "losses = \"trained\"\n"),
];

fn experiment(protocol: &str, more: &str, toy: Toy) -> Experiment {
    let mut experiment = super::contracts::experiment(protocol, more);
    experiment.set_task(toy).unwrap();
    experiment
}

/// One policy beside `random`.
fn of_policy(protocol: &str, (name, lines): (&str, &str), toy: Toy) -> Experiment {
    experiment(protocol, &format!("[record]\nexplain = true\nupdates = true\n[policy.{name}]\n{lines}"), toy)
}

/// Carries an experiment out into the folder `out`.
fn written(experiment: &Experiment) -> Workplace {
    let place = Workplace::new();
    let folder = ResultFolder::open(&place.path("out"), experiment, Earlier::Refuse, Shard::WHOLE).unwrap();
    let outputs = Outputs {
        folder: &folder,
        files: &RunFileOptions { events: false, timeline: None },
        models: false,
        memory: None,
    };
    let (one, runs) = (Threads::new(1).unwrap(), experiment.runs());
    let results = execute(experiment, &runs, Some(outputs), &one, &DataCache::default(), &Silent);
    let runs = results.into_iter().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(runs.len(), experiment.runs().len());
    place
}

/// The recorded rounds of a policy with the first seed.
fn rounds(place: &Workplace, policy: &str) -> Vec<Value> {
    place.lines(&format!("out/runs/{policy}-s1/rounds.jsonl"))
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// Numbers, `null` as NaN.
fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
}

fn selections(policy: (&str, &str)) -> Vec<Vec<u32>> {
    let place = written(&of_policy(SYNCHRONOUS, policy, Toy::default()));
    rounds(&place, policy.0).iter().map(|round| ids(&round["selected"])).collect()
}

// ------------------------------------------------------------------------------------------------- traces by hand

/// Without noise to speak of, the largest numbers are drawn, the largest first. Client `k`'s number is `10(k + 1)`,
/// less 75 for each of its updates so far, and the same for all otherwise.
///
/// | round | largest numbers | after it |
/// |---|---|---|
/// | 1 | 11: 120, 10: 110, 9: 100 | 45, 35, 25 |
/// | 2 | 8: 90, 7: 80, 6: 70 | 15, 5, −5 |
/// | 3 | 5: 60, 4: 50, 11: 45 | −15, −25, −30 |
/// | 4 | 3: 40, 10: 35, 2: 30 | −35, −40, −45 |
/// | 5 | 9: 25, 1: 20, 8: 15 | −50, −55, −60 |
/// | 6 | 0: 10, 7: 5, 6: −5 | |
#[test]
fn proxyrl_by_predicted_losses() {
    let expected = [[11, 10, 9], [8, 7, 6], [5, 4, 11], [3, 10, 2], [9, 1, 8], [0, 7, 6]];
    let cold = "actor = { softmax = { temperature = 1e-6 } }\n";
    assert_eq!(selections(("proxyrl", cold))[..6], expected);
    // True losses are half as large.
    assert_eq!(selections(("proxyrl", &format!("{cold}contribution = \"inference\"\n")))[..6], expected);
}

/// The same with the number that came with the last update, made before it: a client keeps its number for a round. In
/// round 5, client 11's is 120 − 75, beside 40 of client 3 and 35 of client 10; S, common to all, is less than 4 in all
/// rounds.
///
/// | round | largest numbers | numbers with the updates |
/// |---|---|---|
/// | 1 | 11: 120, 10: 110, 9: 100 | the same |
/// | 2 | the same | 45 + S, 35 + S, 25 + S |
/// | 3 | 8: 90, 7: 80, 6: 70 | 90 + S, 80 + S, 70 + S |
/// | 4 | the same | 15 + S, 5 + S, −5 + S |
/// | 5 | 5: 60, 4: 50, 11: 45 + S | 60 + S, 50 + S, −30 + S |
/// | 6 | 5, 4, 3: 40 | |
#[test]
fn proxyrl_by_what_came_with_the_last_update() {
    let expected = [[11, 10, 9], [11, 10, 9], [8, 7, 6], [8, 7, 6], [5, 4, 11], [5, 4, 3]];
    let found = selections(("proxyrl", "actor = { softmax = { temperature = 1e-6 } }\ncontribution = \"last\"\n"));
    assert_eq!(found[..6], expected);
}

/// The number of client `k` is `n·(k + 1)/(1 + updates)`, `n = 1 + (k mod 4)` its examples: 48, 33, 20, 9, 32, 21, 12,
/// 5, 16, 9, 4, 1 of clients 11 to 0. A client's number is halved by its first update, and is a third after its second.
///
/// | round | largest numbers |
/// |---|---|
/// | 1 | 11: 48, 10: 33, 7: 32 |
/// | 2 | 11: 24, 6: 21, 9: 20 |
/// | 3 | 10: 16.5, 3: 16, then 7 and 11: 16 |
#[test]
fn proxyrl_by_trained_losses() {
    let found = selections(("proxyrl", "actor = { softmax = { temperature = 1e-6 } }\ncontribution = \"training\"\n"));
    assert_eq!(found[..2], [[11, 10, 7], [11, 6, 9]]);
    // Three candidates share two places: noise decides.
    assert!(found[2][0] == 10 && found[2][1..].iter().all(|client| [3, 7, 11].contains(client)), "{:?}", found[2]);
}

/// `−|k − 5| − 3·updates`, all twelve are candidates: of equal ones the smaller ids.
///
/// | round | influences |
/// |---|---|
/// | 1 | 5: 0, 4 and 6: −1 |
/// | 2 | 3 and 7: −2, then 2, 5 and 8: −3 |
/// | 3 | 5 and 8: −3, then 1, 4, 6 and 9: −4 |
/// | 4 | 4, 6 and 9: −4 |
/// | 5 | 0, 3, 7 and 10: −5 |
/// | 6 | 10: −5, then 2, 5, 8 and 11: −6 |
#[test]
fn fedgst() {
    let expected = [[4, 5, 6], [2, 3, 7], [1, 5, 8], [4, 6, 9], [0, 3, 7], [2, 5, 10]];
    assert_eq!(selections(("fedgst", "candidates = 12\n"))[..6], expected);
}

/// Losses are `(k + 1)/(1 + updates)`.
///
/// | round | largest losses |
/// |---|---|
/// | 1 | 11: 12, 10: 11, 9: 10 |
/// | 2 | 8: 9, 7: 8, 6: 7 |
/// | 3 | 5 and 11: 6, 10: 5.5 |
/// | 4 | 4 and 9: 5, then 8: 4.5 |
/// | 5 | 3, 7 and 11: 4 |
#[test]
fn power_of_choice_by_trained_losses() {
    let expected = [[9, 10, 11], [6, 7, 8], [5, 10, 11], [4, 8, 9], [3, 7, 11]];
    assert_eq!(selections(("power-of-choice", "candidates = 12\nlosses = \"trained\"\n"))[..5], expected);
}

/// Embeddings of three heaps, by `k mod 3`: every round has a client of each.
#[test]
fn fedfast_takes_clusters_in_turn() {
    let found = selections(("fedfast", "clusters = 3\nfeatures = \"embeddings\"\n"));
    assert_eq!(found.len(), 12);
    for selected in &found {
        let mut heaps: Vec<u32> = selected.iter().map(|client| client % 3).collect();
        heaps.sort_unstable();
        assert_eq!(heaps, [0, 1, 2], "{selected:?}");
    }
    let all: std::collections::BTreeSet<u32> = found.into_iter().flatten().collect();
    assert!(all.len() > 8, "at random inside: {all:?}");
}

#[derive(Debug)]
struct Described;

impl Devices for Described {
    fn declared(&self, _: ClientId) -> DeclaredDevice {
        DeclaredDevice::default()
    }
    fn slowest_latency(&self, _: f64) -> f64 {
        1.0
    }
    fn usual_latency(&self) -> f64 {
        1.0
    }
    /// Clients 0, 1, 2, then 3, 4, then 5, 6, 7, 8.
    fn features(&self) -> Option<Vec<Vec<f64>>> {
        let heap = |client: u32| f64::from(u32::from(client > 2) + u32::from(client > 4));
        Some((0..9).map(|client| vec![100.0 * heap(client), f64::from(client), f64::NAN]).collect())
    }
}

/// Two clients of nine a round, by metadata: the turns go on from round to round, and pass over clusters nobody of
/// which is there.
#[test]
fn fedfast_by_metadata() {
    let config: PolicyConfig = serde_json::from_str(r#"{ "fedfast": { "clusters": 3 } }"#).unwrap();
    let sizes = [1; 9];
    let context = BuildContext {
        seed: 1,
        clients: 9,
        among: 9,
        cohort: 2,
        take: 2,
        per_model: 2,
        bounds: Bounds::of_size(2),
        data_sizes: &sizes,
        in_rounds: true,
        trains: true,
        probes: &[],
        budget: None,
        least: 1,
        has_empty_rounds: false,
        devices: &Described,
        metrics: &[],
        evaluates_every_round: true,
    };
    let mut policy = config.build(&context).unwrap();
    let mut heaps = Vec::new();
    let heap = |client: &ClientId| u32::from(client.0 > 2) + u32::from(client.0 > 4);
    for round in 1..=9 {
        // In the last three rounds only clients 3 to 8 are there.
        let there: Vec<ClientId> = (0..9).map(ClientId).filter(|client| round < 7 || client.0 > 2).collect();
        let ask = SelectionRequest {
            turn: Turn(round),
            round: Round(round),
            now: VirtualTime::START,
            cohort: 2,
            most: 2,
            take: 2,
            available: there.as_slice().into(),
        };
        let view = ServerView {
            data_sizes: &sizes,
            shares: &[1.0 / 9.0; 9],
            counts: &[0; 9],
            probed: &[],
            answers: &[],
            trained: &[],
            gains: None,
            genie: None,
            foreseen: None,
            layout: None,
            bounds: None,
            forecaster: None,
            batteries: None,
        };
        let stream = |purpose| Streams::new(1).stream(purpose, 0, round);
        let (mut one, mut other, mut selection) =
            (stream(Purpose::Policy), stream(Purpose::Solver), Selection::default());
        assert_eq!(policy.probe(&ask, &view, &mut one).unwrap(), Probe::None);
        policy.select(&ask, &view, &mut PolicyRng { policy: &mut one, solver: &mut other }, &mut selection).unwrap();
        assert_eq!(selection.len(), 2);
        heaps.extend(selection.iter().map(heap));
    }
    for pick in heaps[..12].windows(4) {
        assert!(pick[0] == pick[3] && pick[0] != pick[1] && pick[1] != pick[2] && pick[2] != pick[0], "{heaps:?}");
    }
    assert!(heaps[12..].windows(2).all(|pick| pick[0] + pick[1] == 3), "{heaps:?}");
}

// ------------------------------------------------------------------------------------------------- what it costs

/// A model has 24 bytes, an update 8, a number 8, and the influence of a client 40.
#[test]
fn answers_are_charged() {
    let traffic = |policy: (&str, &str)| {
        let summary: Summary = run(&of_policy(SYNCHRONOUS, policy, Toy::default()));
        let runs = summary.runs.iter().filter(|run| run.arm == policy.0);
        runs.map(|run| {
            assert_eq!((run.dispatched, run.arrived), (36, 36));
            (run.traffic.down_bytes - 36 * 24, run.traffic.up_bytes - 36 * 8)
        })
        .collect::<Vec<_>>()
    };
    let expected = [
        (("proxyrl", ""), (144 * 24, 144 * 8)),
        (("proxyrl", "contribution = \"inference\"\n"), (144 * 24, 144 * 8)),
        (("proxyrl", "contribution = \"training\"\n"), (144 * 24, 144 * 8)),
        // All are asked in round 1, and each of 36 updates brings a number.
        (("proxyrl", "contribution = \"last\"\n"), (12 * 24, 12 * 8 + 36 * 8)),
        (("fedrl", ""), (144 * 24, 144 * 8)),
        (("fedgst", ""), (72 * 24, 72 * 40)),
        (("fedfast", "features = \"embeddings\"\n"), (0, 144 * 16)),
        (("power-of-choice", "losses = \"trained\"\n"), (72 * 24, 72 * 8)),
    ];
    for (policy, expected) in expected {
        assert_eq!(traffic(policy), [expected; 2], "{policy:?}");
    }
}

/// All twelve answer from the same model, after an inference pass; an influence then takes its way up, 0.1 s, as a
/// whole update does, and a loss does not.
#[test]
fn what_does_not_travel_as_numbers_takes_its_time() {
    let waited = |policy: (&str, &str)| {
        let experiment = of_policy(SYNCHRONOUS, policy, Toy::default());
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        let source = experiment.first().arms.iter().find(|arm| arm.label == policy.0).unwrap().policy.clone();
        let mut seen = Seen::default();
        let mut run = Run::new(&world, policy.0, world.policy(&source).unwrap(), SETTINGS, &mut seen);
        run.step().unwrap();
        drop(run);
        seen.selected_at[0]
    };
    let numbers = waited(("proxyrl", "contribution = \"inference\"\nactor = { softmax = {} }\n"));
    assert!(numbers > 100_000_000, "a download, and more: {numbers}");
    assert_eq!(waited(("fedgst", "candidates = 12\n")), numbers + 100_000_000);
    let training = "contribution = \"training\"\nactor = { softmax = {} }\n";
    let loss = waited(("proxyrl", training));
    assert_eq!(waited(("proxyrl", &format!("{training}answers = \"update\"\n"))), loss + 100_000_000);
}

/// An update with its number costs 40 bytes, the probe of round 1 costs 12·(24 + 8): five rounds of three are paid for,
/// and no sixth. The audit would see a byte too many.
#[test]
fn what_updates_bring_counts_against_a_budget() {
    let lines = "contribution = \"last\"\nactor = { softmax = {} }\n";
    let more = format!("[budget]\ntraffic = \"{} B\"\nleast = 3\n[policy.proxyrl]\n{lines}", 384 + 5 * 120 + 119);
    let summary = run(&experiment(SYNCHRONOUS, &more, Toy::default()));
    for found in summary.runs.iter().filter(|run| run.arm == "proxyrl") {
        assert_eq!((found.rounds, found.arrived), (5, 15));
        assert_eq!(found.traffic.down_bytes + found.traffic.up_bytes, 384 + 5 * 120);
    }
}

// ------------------------------------------------------------------------------------------------ what is written

/// An update's answer was made from the model that its job was sent, from its client's private state, and by the draws
/// of its job. Table sums are metrics.
#[test]
fn what_updates_bring_was_made_where_they_began() {
    let place = written(&of_policy(SYNCHRONOUS, LEARNING[4], Toy::default()));
    let (mut table, mut updates) = (3.0, [0_u32; 12]);
    let mut expected: Vec<f64> = (0..12).map(|client| toy::predicted(client, 0, 3.0) + 0.001).collect();
    for (number, round) in (1..).zip(rounds(&place, "proxyrl")) {
        let explained = &round["explain"][0];
        assert_eq!(ids(&explained["clients"]), (0..12).collect::<Vec<_>>());
        for (found, expected) in numbers(&explained["state"]).into_iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-4, "round {number}: {found}, {expected}");
        }
        for client in ids(&round["selected"]) {
            let updates = &mut updates[client as usize];
            expected[client as usize] = toy::predicted(client, *updates, table) + 0.001 * f64::from(number);
            *updates += 1;
        }
        table = round["metrics"]["table_sum"].as_f64().unwrap();
    }
    assert!(table > 5.0 && updates.iter().sum::<u32>() == 36);
}

/// Client 3 answers with NaN, client 7 with an infinite number: both count as the mean, and may be drawn.
#[test]
fn numbers_that_are_not_finite_count_as_the_mean() {
    let mut seen = [false; 2];
    for lines in [LEARNING[0].1, "actor = \"shared\"\ncontribution = \"last\"\nhidden = 4\n"] {
        let place = written(&of_policy(SYNCHRONOUS, ("proxyrl", lines), Toy { is_sick: true }));
        for round in rounds(&place, "proxyrl") {
            let explained = &round["explain"][0];
            let state = numbers(&explained["state"]);
            assert!((0..12).all(|client| state[client].is_nan() == [3, 7].contains(&client)), "{state:?}");
            assert!(explained["value"].is_number() && explained["log_probability"].as_f64().unwrap() < 0.0);
            for client in ids(&round["selected"]) {
                seen[0] |= client == 3;
                seen[1] |= client == 7;
            }
        }
    }
    assert_eq!(seen, [true; 2]);
}

/// The weights are among the files of a run that `run.json` and the manifest vouch for; `random` has none.
#[test]
fn weights_are_files_of_a_run() {
    let experiment = of_policy(SYNCHRONOUS, LEARNING[0], Toy::default());
    let place = written(&experiment);
    let one = Threads::new(1).unwrap();
    let folder = place.path("out");
    for name in ["policy_initial.safetensors", "policy.safetensors"] {
        assert!(place.json("out/runs/proxyrl-s2/run.json")["files"].get(name).is_some(), "{name}");
        assert!(place.json("out/runs/random-s2/run.json")["files"].get(name).is_none(), "{name}");
    }
    assert!(verify_with(&experiment, &folder, None, &one).unwrap().difference.is_none());
    let name = "out/runs/proxyrl-s1/policy.safetensors";
    let mut bytes = place.read(name);
    *bytes.last_mut().unwrap() ^= 1;
    place.write(name, &bytes);
    let difference = verify_with(&experiment, &folder, None, &one).unwrap().difference.unwrap();
    assert!(difference.what.contains("policy.safetensors is not the file that was written"), "{difference:?}");
    // Nobody asked why: there are no files.
    let quiet = super::contracts::experiment(SYNCHRONOUS, "[policy.proxyrl]\nhidden = 2\n");
    let mut quiet = quiet;
    quiet.set_task(Toy::default()).unwrap();
    let place = written(&quiet);
    assert!(!place.path("out/runs/proxyrl-s1/policy.safetensors").exists());
    assert!(fs::exists(place.path("out/runs/proxyrl-s1/run.json")).unwrap());
}

// ------------------------------------------------------------------------------------------- everywhere, and saved

/// One and three threads give the same digests, under every protocol that a policy can have: an actor that learns has
/// rounds of one server.
#[test]
fn every_protocol_on_any_number_of_threads() {
    for (name, protocol) in PROTOCOLS {
        let is_of_rounds = !["buffered", "hierarchical"].contains(&name);
        for (index, policy) in LEARNING.into_iter().chain(OTHERS).enumerate() {
            let learns = index < 6 && index != 4;
            if is_of_rounds || !learns {
                run(&of_policy(protocol, policy, Toy::default()));
            }
        }
    }
}

/// The state saved after each round decides as before.
#[test]
fn policies_that_were_saved_and_loaded_decide_as_before() {
    for policy in LEARNING.into_iter().chain(OTHERS) {
        let experiment = of_policy(SYNCHRONOUS, policy, Toy::default());
        let world: &'static World = Box::leak(Box::new(experiment.world(0, 1, &DataCache::default()).unwrap()));
        let arms = &experiment.first().arms;
        let source = arms.iter().find(|arm| arm.label == policy.0).unwrap().policy.clone();
        let (copied, compared) = Copied::of(world, source);
        let settings = RunSettings { explain: true, updates: true, ..SETTINGS };
        let mut run = Run::new(world, policy.0, copied, settings, NoSink);
        for _ in 0..8 {
            run.step().unwrap();
        }
        run.finish().unwrap();
        assert_eq!(compared.load(std::sync::atomic::Ordering::Relaxed), 28, "{policy:?}");
    }
}

/// A whole run that is saved and loaded between any two rounds ends as one that nobody touched, with the same weights.
#[test]
fn a_run_goes_on_with_its_weights() {
    for policy in [LEARNING[0], LEARNING[2], LEARNING[4], LEARNING[5]] {
        let experiment = of_policy(
            "[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\nlate = { carry = {} }\n",
            policy,
            Toy::default(),
        );
        let world = experiment.world(0, 1, &DataCache::default()).unwrap();
        let arms = &experiment.first().arms;
        let source = arms.iter().find(|arm| arm.label == policy.0).unwrap().policy.clone();
        let begin = || Run::new(&world, policy.0, world.policy(&source).unwrap(), SETTINGS, NoSink);
        let (mut whole, mut parts) = (begin(), begin());
        assert!(whole.policy_file().is_none());
        for _ in 0..8 {
            whole.step().unwrap();
            parts.step().unwrap();
            let bytes = parts.save().unwrap();
            assert_eq!(bytes, whole.save().unwrap());
            parts = begin();
            parts.load(&bytes).unwrap();
            assert_eq!(parts.policy_file(), whole.policy_file());
        }
        assert!(whole.policy_file().is_some());
    }
}
