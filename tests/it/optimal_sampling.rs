//! Optimal sampling: probabilities, draws, weights and norms recomputed from a run's records and from jobs trained
//! apart, probabilities worked out by hand, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, SETTINGS, Script, Workplace, changed, labelled, play, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::{Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::trainer::{Trainer, TrainingJob, Update};
use fedgenie::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Eight clients with very different numbers of examples, on devices that differ.
const WORLD: &str = r#"
name = "optimal-sampling"
seeds = 1
[stop]
rounds = 25
[population]
clients = 8
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1.5 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 3
most = 8
[policy.optimal-sampling]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"20 s\" } }, \
                    off = { exponential = { mean = \"8 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "[protocol.deadline]\ncohort = 3\nmost = 8\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

/// The probabilities of which the sum is `m` and the variance the least, by trying every number `l` of uncertain ones.
fn exact(norms: &[f64], m: usize) -> Vec<f64> {
    let all = norms.len();
    let mut rising = norms.to_vec();
    rising.sort_by(f64::total_cmp);
    let positive = norms.iter().filter(|&&norm| norm > 0.0).count();
    if positive < m {
        // Norms of 0 are alike: those who have them share the places that are left.
        let rest = (m - positive) as f64 / (all - positive) as f64;
        return norms.iter().map(|&norm| if norm > 0.0 { 1.0 } else { rest }).collect();
    }
    let of_least = |l: usize| rising[..l].iter().sum::<f64>();
    let fits = |l: &usize| m + l > all && (m + l - all) as f64 <= of_least(*l) / rising[l - 1];
    let l = (1..=all).filter(fits).max().unwrap();
    let factor = (m + l - all) as f64 / of_least(l);
    let p: Vec<f64> = norms.iter().map(|&norm| if norm > rising[l - 1] { 1.0 } else { factor * norm }).collect();
    assert!((p.iter().sum::<f64>() - m as f64).abs() < 1e-9, "{p:?}");
    p
}

/// The probabilities after so many corrections by a common factor, where there is one: of zeros there is none.
fn approximate(norms: &[f64], m: usize, iterations: usize) -> Vec<f64> {
    let (all, m) = (norms.len() as f64, m as f64);
    let sum: f64 = norms.iter().sum();
    let mut p: Vec<f64> = norms.iter().map(|norm| (m * norm / sum).min(1.0)).collect();
    for _ in 0..iterations {
        let below: Vec<f64> = p.iter().copied().filter(|&p| p < 1.0).collect();
        let factor = (m - all + below.len() as f64) / below.iter().sum::<f64>();
        if !factor.is_finite() || factor <= 1.0 {
            break;
        }
        p.iter_mut().filter(|p| **p < 1.0).for_each(|p| *p = (factor * *p).min(1.0));
    }
    p
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let is_close = |(found, expected): (&f64, &f64)| (found - expected).abs() < 1e-9;
    assert!(found.iter().zip(expected).all(is_close), "{found:?}, {expected:?}");
}

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    certain: usize,
    uncertain: usize,
    empty: usize,
    /// Selections of more clients than expected.
    larger: usize,
    among_some: usize,
    /// Weight times probability of each client that was selected, the last time.
    shares: BTreeMap<usize, f64>,
}

/// Plays rounds and compares each with a rule for `p` out of norms and their expected number.
fn checked(scenario: &str, cohort: usize, rule: impl Fn(&[f64], usize) -> Vec<f64>) -> Seen {
    let world = world(scenario, 1);
    let size = |client: usize| labelled(&world).partition.size(ClientId::from_index(client)) as f64;
    let mut seen = Seen::default();
    for (round, turn) in rounds(scenario, 1, 25).iter().zip(1..) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let (norms, p) = (numbers(&said["norm"]), numbers(&said["p"]));
        let m = candidates.len().min(cohort);
        assert_close(&p, &rule(&norms, m));
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let drawn: Vec<(usize, f64)> =
            candidates.iter().copied().zip(p.iter().copied()).filter(|&(_, p)| rng.uniform() < p).collect();
        assert_eq!(ids(&round["selected"]), drawn.iter().map(|drawn| drawn.0).collect::<Vec<_>>(), "{round}");
        let all: f64 = candidates.iter().map(|&client| size(client)).sum();
        let weights = round.get("weights").map_or_else(Vec::new, numbers);
        assert_eq!(weights.len(), drawn.len(), "{round}");
        for (weight, (client, p)) in weights.iter().zip(&drawn) {
            assert!((weight * p - size(*client) / all).abs() < 1e-12, "{round}");
            seen.shares.insert(*client, weight * p);
        }
        seen.certain += p.iter().filter(|&&p| p > 1.0 - 1e-9).count();
        seen.uncertain += p.iter().filter(|&&p| p < 1.0 - 1e-9).count();
        seen.empty += usize::from(drawn.is_empty());
        seen.larger += usize::from(drawn.len() > cohort);
        seen.among_some += usize::from(candidates.len() < 8);
    }
    seen
}

#[test]
fn every_selection_follows_from_the_norms() {
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 3\nmost = 8\n", LATE);
    let away = changed(WORLD, "[task.softmax-regression]", AWAY);
    let both = changed(&late, "[task.softmax-regression]", AWAY);
    let seen = checked(WORLD, 3, exact);
    assert!(seen.certain >= 10 && seen.uncertain >= 100 && seen.larger >= 1 && seen.among_some == 0, "{seen:?}");
    for scenario in [late, away, both] {
        let seen = checked(&scenario, 3, exact);
        assert!(seen.certain >= 5 && seen.uncertain >= 20 && seen.among_some >= 5, "{seen:?}");
        checked(&format!("{scenario}approximate = true\n"), 3, |norms, m| approximate(norms, m, 4));
    }
    for iterations in [1, 2, 4] {
        let scenario = format!("{WORLD}approximate = true\niterations = {iterations}\n");
        let seen = checked(&scenario, 3, |norms, m| approximate(norms, m, iterations));
        assert!(seen.certain >= 10 && seen.uncertain >= 100, "{seen:?}");
    }
}

/// Clients of nearly as many examples, so that everybody is selected now and then: what they weigh times how often they
/// are selected adds up to 1 over all clients.
#[test]
fn on_average_the_weights_add_up_to_one() {
    let even = changed(&changed(WORLD, "alpha = 0.3", "alpha = 5.0"), "cohort = 3", "cohort = 4");
    let seen = checked(&even, 4, exact);
    assert_eq!(seen.shares.len(), 8, "everybody was selected: {seen:?}");
    assert!((seen.shares.values().sum::<f64>() - 1.0).abs() < 1e-9, "{seen:?}");
}

#[test]
fn of_one_expected_client_there_may_be_none_or_several() {
    let seen = checked(&changed(WORLD, "cohort = 3", "cohort = 1"), 1, exact);
    assert!(seen.empty >= 1 && seen.larger >= 1, "{seen:?}");
}

/// With m = 3 of 5:
///
/// - 8, 4, 2, 1, 1: all five share 3, and 3 > 16/8; four share 2, and 2 ≤ 8/4: l = 4, p = 1 and 2/8 of the others.
///   Approximately: 3/16 of each is 1.5 → 1, 0.75, 0.375, 0.1875 twice; C = (3 − 5 + 4)/1.5 = 4/3 gives the same, with
///   4 at exactly 1.
/// - 8, 5, 1, 1, 1: 3 > 16/8, 2 > 8/5, 1 ≤ 3/1: l = 3, p = 1, 1 and 1/3 of the others. Approximately: 1, 15/16 and
///   3/16; C = 2/1.5 makes that 1 and 1/4; C = 1/0.75 makes it 1/3; then C = 1.
/// - 2, 1, 1, 1, 1 and 2, 2, 1, 1, 0, in another order: 3 ≤ 6/2: l = 5, p = 3/6 of each; C = 1.
#[test]
fn five_clients_by_hand() {
    let third = 1.0 / 3.0;
    for (norms, expected, once) in [
        ([8.0, 4.0, 2.0, 1.0, 1.0], [1.0, 1.0, 0.5, 0.25, 0.25], [1.0, 1.0, 0.5, 0.25, 0.25]),
        ([8.0, 5.0, 1.0, 1.0, 1.0], [1.0, 1.0, third, third, third], [1.0, 1.0, 0.25, 0.25, 0.25]),
        ([1.0, 1.0, 2.0, 1.0, 1.0], [0.5, 0.5, 1.0, 0.5, 0.5], [0.5, 0.5, 1.0, 0.5, 0.5]),
        ([1.0, 0.0, 2.0, 1.0, 2.0], [0.5, 0.0, 1.0, 0.5, 1.0], [0.5, 0.0, 1.0, 0.5, 1.0]),
    ] {
        assert_close(&exact(&norms, 3), &expected);
        assert_close(&approximate(&norms, 3, 4), &expected);
        assert_close(&approximate(&norms, 3, 1), &once);
    }
    assert_close(&exact(&[0.0; 5], 3), &[0.6; 5]);
}

/// Keeps the contents of `rounds.jsonl`, and each round's model.
#[derive(Default)]
struct Course {
    rounds: Vec<Value>,
    models: BTreeMap<u32, Vec<f32>>,
}

impl Sink for Course {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Record::Model { round, parameters } = *record {
            self.models.insert(round.0, parameters.to_vec());
        }
        Ok(())
    }
    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.rounds.push(serde_json::to_value(summary.to_json()).unwrap());
        Ok(())
    }
}

fn course(scenario: &str, world: &World, rounds: u32) -> Course {
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let source = Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source();
    let mut course = Course::default();
    let settings = RunSettings { explain: true, ..SETTINGS };
    let mut run = Run::new(world, "optimal-sampling", world.policies(&source).unwrap(), settings, &mut course);
    (0..rounds).for_each(|_| run.step().unwrap());
    run.finish().unwrap();
    course
}

fn difference(model: &[f32], before: &[f32]) -> Vec<f64> {
    model.iter().zip(before).map(|(model, before)| f64::from(*model) - f64::from(*before)).collect()
}

/// The change that a client's job makes of a model, where each selection is a round.
fn trained(world: &World, client: u32, round: u32, start: &[f32]) -> Vec<f64> {
    let learner = labelled(world);
    let client = ClientId(client);
    let examples = learner.partition.client(client);
    let job = TrainingJob { client, round: Round(round), number: JobNumber(round), start, examples: &examples };
    let settings = &world.training.local;
    let trainer = Trainer { model: &*learner.model, data: &learner.data.train, settings, streams: &world.streams };
    let mut updates = [Update::default()];
    trainer.train(&[job], false, &mut updates);
    difference(&updates[0].parameters, start)
}

fn norm(change: &[f64]) -> f64 {
    change.iter().map(|number| number * number).sum::<f64>().sqrt()
}

/// Every candidate's job is trained apart, from the model of each round; those selected change the model by their
/// weights. In the first round a script that selects one client alone moves the model by that client's change.
#[test]
fn norms_are_those_of_jobs_trained_apart() {
    let world = world(WORLD, 1);
    let course = course(WORLD, &world, 20);
    let mut model = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    for client in 0..8 {
        let alone = play(&world, Box::new(Script::new(&[&[client]])), 1).unwrap();
        let [found, expected] =
            [difference(&alone.seen.models[0], &model), trained(&world, client, 1, &model)].map(|change| norm(&change));
        assert!((found / expected - 1.0).abs() < 1e-5, "{client}: {found}, {expected}");
    }
    let mut selections = [0; 8];
    for (round, number) in course.rounds.iter().zip(1..) {
        let changes: Vec<Vec<f64>> = (0..8).map(|client| trained(&world, client, number, &model)).collect();
        let found = numbers(&round["explain"][0]["norm"]);
        assert_eq!(found.len(), 8);
        for (client, found) in found.iter().enumerate() {
            let share = labelled(&world).partition.size(ClientId::from_index(client)) as f64 / 240.0;
            let expected = share * norm(&changes[client]);
            assert!((found / expected - 1.0).abs() < 1e-4, "round {number}, {client}: {found}, {expected}");
        }
        let Some(next) = course.models.get(&number) else { continue };
        let mut left = difference(next, &model);
        for (&client, weight) in ids(&round["selected"]).iter().zip(numbers(&round["weights"])) {
            left.iter_mut().zip(&changes[client]).for_each(|(left, change)| *left -= weight * change);
            selections[client] += 1;
        }
        assert!(norm(&left) < 1e-5, "round {number}: {}", norm(&left));
        model.clone_from(next);
    }
    let several = selections.iter().filter(|&&selections| selections > 1).count();
    assert!(course.models.len() >= 15 && several >= 4, "{selections:?}");
}

/// A model of 262,450 numbers has a megabyte, of which 64 MiB and 64 at the least are trained at a time: of 70 clients,
/// 64 and then 6.
#[test]
fn norms_are_those_of_every_block() {
    let text = changed(WORLD, "clients = 8", "clients = 70");
    let text = changed(&text, "most = 8", "most = 70");
    let text =
        changed(&text, "classes = 4, height = 3, width = 3, train = 240", "height = 162, width = 162, train = 210");
    let text = changed(&text, "partition = { dirichlet = { alpha = 0.3 } }\n", "");
    let world = world(&text, 1);
    let course = course(&text, &world, 2);
    let mut model = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    assert_eq!(model.len(), 262_450);
    for (round, number) in course.rounds.iter().zip(1..) {
        let found = numbers(&round["explain"][0]["norm"]);
        assert_eq!(found.len(), 70);
        for (client, found) in (0..).zip(found) {
            let expected = norm(&trained(&world, client, number, &model)) / 70.0;
            assert!((found / expected - 1.0).abs() < 1e-4, "round {number}, {client}: {found}, {expected}");
        }
        if let Some(next) = course.models.get(&number) {
            model.clone_from(next);
        }
    }
    assert!(!course.models.is_empty());
}

#[test]
fn what_does_not_fit_is_refused() {
    let from = WORLD.find("[task").unwrap();
    let to = WORLD.find("[protocol").unwrap();
    let scripted = "[task.scripted]\nvalues = [0.5]\nclient_losses = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n";
    for (scenario, part) in [
        (changed(WORLD, "most = 8\n", ""), "most"),
        (changed(WORLD, "most = 8\n", "most = 7\n"), "most"),
        (format!("{WORLD}approximate = true\niterations = 0\n"), "iterations"),
        (format!("{}{scripted}{}", &WORLD[..from], &WORLD[to..]), "optimal-sampling"),
        (format!("{}{}", &WORLD[..from], &WORLD[to..]), "optimal-sampling"),
    ] {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        let words = ["optimal-sampling", part];
        assert!(words.iter().all(|word| answer.stderr.contains(word)), "{part}: {}", answer.stderr);
    }
}
