//! FedACS: every selection recomputed from a run's records, cases worked out by hand, and settings that are refused.

use super::support::{SCENARIO, SETTINGS, Workplace, changed, line_of, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, Round, Turn};
use fedgenie::metric::{Measures, MetricId, Place};
use fedgenie::policy::{
    Bounds, BuildContext, DeclaredDevice, Devices, Feedback, JobReport, PolicyConfig, PolicyRng, PolicySource,
    RoundReport, Selection, SelectionRequest, ServerView, Waited,
};
use fedgenie::record::{Outcome, Record};
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::{Purpose, StreamRng, Streams};
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::time::{Span, VirtualTime};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Seven clients of different worth, an error that falls and is noisy.
const WORLD: &str = r#"
name = "fedacs"
seeds = 1
[stop]
rounds = 60
target = { metric = "test_rmse", at_most = 0.01 }
[population]
clients = 7
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
metric = "test_rmse"
better = "lower"
payload = "1 kB"
values = [3.0, 2.5, 2.1, 1.8, 1.6, 1.5, 1.45, 1.4, 1.38, 1.36]
effects = [-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2]
per_client = 0.3
noise = 0.05
[protocol.synchronous]
cohort = 7
[policy.fedacs]
target = 1.2
budget = "300 kB"
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n";

fn source(scenario: &str) -> PolicySource {
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source()
}

/// Keeps the contents of `rounds.jsonl`.
#[derive(Default)]
struct Lines(Vec<Value>);

impl Sink for Lines {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0.push(serde_json::to_value(summary.to_json()).unwrap());
        Ok(())
    }
}

/// The rounds of a scenario's first policy, evaluated every so many rounds.
pub fn rounds(scenario: &str, every: u32, count: u32) -> Vec<Value> {
    let world = world(scenario, 1);
    let mut lines = Lines::default();
    let settings = RunSettings { explain: true, updates: true, evaluate: Evaluations::every(every), ..SETTINGS };
    let policies = world.policies(&source(scenario)).unwrap();
    let mut run = Run::new(&world, "fedacs", policies, settings, &mut lines);
    for _ in 0..count {
        run.step().unwrap();
    }
    run.finish().unwrap();
    lines.0
}

pub fn ids(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as usize).collect()
}

/// `null` is NaN.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The result of the rules, from lists of all rewards.
struct Rules {
    /// N.
    most: usize,
    target: f64,
    /// 1 where smaller is better, else −1.
    sign: f64,
    budget: f64,
    by_score: (bool, bool),
    of_number: Vec<Vec<f64>>,
    of_client: Vec<Vec<f64>>,
    untried: Vec<usize>,
    bytes: u64,
    /// Rounds whose number was chosen by score.
    scored: usize,
}

impl Rules {
    fn new(most: usize, clients: usize, target: f64, budget: f64) -> Self {
        Self {
            most,
            target,
            sign: 1.0,
            budget,
            by_score: (true, true),
            of_number: vec![Vec::new(); most + 1],
            of_client: vec![Vec::new(); clients],
            untried: (1..most).collect(),
            bytes: 0,
            scored: 0,
        }
    }

    /// Mean, count and score of an arm.
    fn arm(rewards: &[f64], t: f64) -> [f64; 3] {
        let count = rewards.len() as f64;
        let mean = rewards.iter().sum::<f64>() / count;
        let score = if rewards.is_empty() { f64::INFINITY } else { mean + (2.0 * t.ln() / count).sqrt() };
        [mean, count, score]
    }

    /// Compares a round with the rules, and learns from it.
    fn check(&mut self, round: &Value) {
        let number = round["round"].as_u64().unwrap() as usize;
        let t = number as f64;
        let explained = &round["explain"][0];
        let available = ids(&explained["clients"]);
        let of_client: Vec<_> = available.iter().map(|&client| Self::arm(&self.of_client[client], t)).collect();
        let of_number: Vec<_> = (1..=self.most).map(|m| Self::arm(&self.of_number[m], t)).collect();
        for (found, expected) in [(explained, &of_client), (&explained["number"], &of_number)] {
            for (index, key) in ["mean", "count", "score"].into_iter().enumerate() {
                let found = numbers(&found[key]);
                assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(expected) {
                    let expected = expected[index];
                    let is_it = found.is_nan() && !expected.is_finite() || (found - expected).abs() < 1e-9;
                    assert!(is_it, "round {number}, {key}: {found}, {expected}");
                }
            }
        }
        let selected = ids(&round["selected"]);
        let most = self.most.min(available.len());
        let mut by_score = (false, false);
        if number == 1 {
            assert_eq!(selected.len(), most);
        } else if number <= self.most && self.untried.iter().any(|&m| m <= most) {
            let place = self.untried.iter().position(|&m| m == selected.len());
            self.untried.remove(place.unwrap_or_else(|| panic!("{} was tried before", selected.len())));
        } else {
            by_score = self.by_score;
        }
        if by_score.0 {
            let allowed = of_number[..most].iter().map(|arm| arm[2]);
            let best = allowed.clone().fold(f64::NEG_INFINITY, f64::max);
            let first = 1 + allowed.clone().position(|score| score >= best - 1e-12).unwrap();
            assert_eq!(selected.len(), first, "round {number}");
            self.scored += 1;
        }
        if by_score.1 {
            let mut order: Vec<(f64, usize)> =
                available.iter().zip(&of_client).map(|(&client, arm)| (arm[2], client)).collect();
            order.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
            let mut expected: Vec<usize> = order[..selected.len()].iter().map(|&(_, client)| client).collect();
            expected.sort_unstable();
            assert_eq!(selected, expected, "round {number}");
        }
        let bytes = round["down_bytes"].as_u64().unwrap() + round["up_bytes"].as_u64().unwrap();
        let of_round = (bytes - std::mem::replace(&mut self.bytes, bytes)) as f64;
        let metrics = round["metrics"].as_object();
        let metric = metrics.and_then(|metrics| metrics.values().next()).and_then(Value::as_f64);
        let arrived = ids(&round["arrived"]);
        if let Some(metric) = metric {
            let reward = self.sign * (1.0 - metric / self.target) * t.ln();
            self.of_number[selected.len()].push(reward - of_round / self.budget);
            arrived.into_iter().for_each(|client| self.of_client[client].push(reward));
        }
    }
}

#[test]
fn every_selection_follows_from_the_records() {
    let mut rules = Rules::new(7, 7, 1.2, 3e5);
    let lines = rounds(WORLD, 1, 60);
    assert_eq!(ids(&lines[0]["selected"]), [0, 1, 2, 3, 4, 5, 6]);
    lines.iter().for_each(|round| rules.check(round));
    assert!(rules.untried.is_empty(), "all numbers were tried once before any was tried twice");
    assert_eq!(rules.scored, 60 - 7);
    // A cohort below the number of clients is N.
    let mut rules = Rules::new(4, 7, 1.2, 3e5);
    rounds(&changed(WORLD, "cohort = 7", "cohort = 4"), 1, 60).iter().for_each(|round| rules.check(round));
    assert_eq!(rules.scored, 60 - 4);
    // So is one of the policy's own.
    let mut rules = Rules::new(3, 7, 1.2, 3e5);
    rounds(&format!("{WORLD}cohort = 3\n"), 1, 20).iter().for_each(|round| rules.check(round));
}

/// Clients that are away, that are late, rounds without an arrival (which reward their number), and rounds that are not
/// measured.
#[test]
fn nobody_is_rewarded_for_what_was_not_seen() {
    let late = changed(
        WORLD,
        "[protocol.synchronous]\ncohort = 7\n",
        "[protocol.deadline]\ncohort = 7\ndeadline = \"0.5 s\"\n",
    );
    let carried = changed(&late, "deadline = \"0.5 s\"\n", "deadline = \"0.5 s\"\nlate = { carry = {} }\n");
    for (scenario, every) in [(WORLD, 2), (&late, 1), (&late, 3), (&carried, 1)] {
        for scenario in [scenario.to_owned(), changed(scenario, "[task.scripted]", &format!("{AWAY}[task.scripted]"))] {
            let lines = rounds(&scenario, every, 60);
            let mut rules = Rules::new(7, 7, 1.2, 3e5);
            lines.iter().for_each(|round| rules.check(round));
            assert!(rules.scored >= 60 - 7);
            if scenario.contains("deadline") {
                assert!(lines.iter().any(|round| ids(&round["arrived"]).is_empty()), "{scenario}");
            }
            if scenario.contains("on-off") {
                assert!(lines.iter().any(|round| ids(&round["explain"][0]["clients"]).len() < 7));
            }
        }
    }
}

#[test]
fn where_larger_is_better_the_sign_changes() {
    let higher = changed(WORLD, "better = \"lower\"", "better = \"higher\"")
        .replace("test_rmse", "test_score")
        .replace("at_most = 0.01", "at_least = 9.0");
    let scenario = changed(&higher, "target = 1.2", "metric = \"test_score\"\ntarget = 1.2");
    let mut rules = Rules { sign: -1.0, ..Rules::new(7, 7, 1.2, 3e5) };
    let lines = rounds(&scenario, 1, 60);
    lines.iter().for_each(|round| rules.check(round));
    // The scores 3.0, 2.5, … are beyond the target: means of clients are positive from round 2 on.
    assert!(numbers(&lines[5]["explain"][0]["mean"]).iter().all(|mean| *mean >= 0.0));
    // The target of the run is the default.
    let by_default = changed(&scenario, "target = 1.2\n", "");
    let mut rules = Rules { sign: -1.0, ..Rules::new(7, 7, 9.0, 3e5) };
    rounds(&by_default, 1, 30).iter().for_each(|round| rules.check(round));
}

fn stream(turn: u32) -> StreamRng {
    Streams::new(1).stream(Purpose::Policy, 0, turn)
}

/// So many of seven clients as they are drawn: a Fisher–Yates shuffle from the first place up, as far as needed.
fn drawn(count: usize, rng: &mut StreamRng) -> Vec<usize> {
    let mut cards: Vec<usize> = (0..7).collect();
    for place in 0..count {
        let other = place + rng.below(7 - place as u64) as usize;
        cards.swap(place, other);
    }
    cards.truncate(count);
    cards.sort_unstable();
    cards
}

/// The draws are those of the round's stream, in the order that the documentation gives.
#[test]
fn what_is_random_can_be_drawn_again() {
    let mut permutation: Vec<usize> = (1..7).collect();
    stream(1).shuffle(&mut permutation);
    for (more, by_score) in [
        ("", (true, true)),
        ("number = \"random\"\n", (false, true)),
        ("clients = \"random\"\n", (true, false)),
        ("number = \"random\"\nclients = \"random\"\n", (false, false)),
    ] {
        let mut rules = Rules { by_score, ..Rules::new(7, 7, 1.2, 3e5) };
        let mut sizes = [0; 8];
        for (round, turn) in rounds(&format!("{WORLD}{more}"), 1, 60).iter().zip(1..) {
            rules.check(round);
            let (selected, mut rng) = (ids(&round["selected"]), stream(turn));
            if turn <= 7 {
                let mut taken = permutation.clone();
                match turn {
                    1 => rng.shuffle(&mut taken),
                    _ => assert_eq!(selected.len(), permutation[turn as usize - 2], "round {turn}"),
                }
                assert_eq!(selected, drawn(selected.len(), &mut rng), "round {turn}");
                continue;
            }
            sizes[selected.len()] += 1;
            if !by_score.0 {
                assert_eq!(selected.len(), 1 + rng.below(7) as usize, "round {turn}");
            }
            if !by_score.1 {
                assert_eq!(selected, drawn(selected.len(), &mut rng), "round {turn}");
            }
        }
        assert!(by_score.0 || sizes[1..].iter().all(|count| *count > 0), "{sizes:?}");
    }
}

/// Three clients, an error of 2 in every round, a target of 1, 2 kB for each client and 60 kB in all: in round t a
/// client earns −ln t, and the number m earns −ln t − m/30. Round 1 earns the number 3 no more than its price, −0.1, so
/// that round 4 has everybody again. Then 3 has earned −0.1 and −1.386 − 0.1, a mean of −0.793; before round 5 its
/// score is −0.793 + √(ln 5) = 0.475, that of the number of round 2 is −0.693 − m/30 + √(2 ln 5) ≥ 1.034 and that of
/// the number of round 3 is at most −1.099 − 1/30 + 1.794 = 0.662: the number of round 2 comes next.
#[test]
fn three_clients_by_hand() {
    let scenario = changed(WORLD, "clients = 7", "clients = 3");
    let scenario = changed(&scenario, "cohort = 7", "cohort = 3");
    let scenario =
        changed(&scenario, "effects = [-0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2]\nper_client = 0.3\nnoise = 0.05", "");
    let values = "values = [3.0, 2.5, 2.1, 1.8, 1.6, 1.5, 1.45, 1.4, 1.38, 1.36]";
    let scenario = changed(&scenario, values, "values = [2.0]");
    let scenario = changed(&scenario, "target = 1.2\nbudget = \"300 kB\"", "target = 1.0\nbudget = \"60 kB\"");
    let lines = rounds(&scenario, 1, 5);
    let sizes: Vec<usize> = lines.iter().map(|round| ids(&round["selected"]).len()).collect();
    assert_eq!((sizes[0], sizes[1] + sizes[2], sizes[3], sizes[4]), (3, 3, 3, sizes[1]), "{sizes:?}");
    let number = &lines[4]["explain"][0]["number"];
    let m = sizes[1] as f64;
    for (size, count, mean) in [
        (3, 2.0, (-0.1 - 4.0_f64.ln() - 0.1) / 2.0),
        (sizes[1], 1.0, -(2.0_f64.ln()) - m / 30.0),
        (sizes[2], 1.0, -(3.0_f64.ln()) - (3.0 - m) / 30.0),
    ] {
        let (means, scores) = (numbers(&number["mean"]), numbers(&number["score"]));
        assert!((means[size - 1] - mean).abs() < 1e-12, "{size}: {number}");
        let bonus = (2.0 * 5.0_f64.ln() / count).sqrt();
        assert!((scores[size - 1] - mean - bonus).abs() < 1e-12, "{size}: {number}");
    }
    // Clients earn nothing in round 1; a client of round 2 loses ln 2 by it.
    for (client, mean) in numbers(&lines[2]["explain"][0]["mean"]).into_iter().enumerate() {
        let took_part = ids(&lines[1]["selected"]).contains(&client);
        let expected = if took_part { -(2.0_f64.ln()) / 2.0 } else { 0.0 };
        assert!((mean - expected).abs() < 1e-12, "{client}: {mean}");
    }
}

// ---------------------------------------------------------------------------------------------- asked directly

#[derive(Debug)]
struct Nothing;

impl Devices for Nothing {
    fn declared(&self, _: ClientId) -> DeclaredDevice {
        DeclaredDevice::default()
    }
    fn slowest_latency(&self, _: f64) -> f64 {
        1.0
    }
    fn usual_latency(&self) -> f64 {
        1.0
    }
}

/// Plays rounds of six clients in which everybody asked arrives and the error is 2. Before each round the rest of a
/// budget pays for so many. Returns the numbers selected, and the final warning.
fn paid(least: usize, cohorts: &[usize]) -> (Vec<usize>, Option<String>) {
    let config: PolicyConfig =
        serde_json::from_str(r#"{ "fedacs": { "target": 1.0, "metric": "test_rmse" } }"#).unwrap();
    let measures = Measures { of_data: vec![fedgenie::metric::Measure::error("rmse")], ..Measures::default() };
    let (everyone, sizes): (Vec<ClientId>, _) = ((0..6).map(ClientId).collect(), [1; 6]);
    let context = BuildContext {
        seed: 1,
        clients: 6,
        among: 6,
        cohort: 6,
        take: 6,
        per_model: 6,
        bounds: Bounds::of_size(6),
        data_sizes: &sizes,
        in_rounds: true,
        trains: false,
        probes: &[],
        devices: &Nothing,
        metrics: &measures.metrics(&[]),
        evaluates_every_round: true,
        budget: Some(1_000),
        least,
        has_empty_rounds: false,
    };
    let mut policy = config.build(&context).unwrap();
    let mut found = Vec::new();
    for (&cohort, round) in cohorts.iter().zip(1..) {
        let (turn, round) = (Turn(round), Round(round));
        let available = everyone.as_slice().into();
        let ask =
            SelectionRequest { turn, round, now: VirtualTime::START, cohort, most: cohort, take: cohort, available };
        let view = ServerView {
            data_sizes: &sizes,
            shares: &[1.0 / 6.0; 6],
            counts: &[0; 6],
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
        let (mut one, mut other, mut selected) = (stream(turn.0), stream(turn.0), Selection::default());
        policy.select(&ask, &view, &mut PolicyRng { policy: &mut one, solver: &mut other }, &mut selected).unwrap();
        found.push(selected.len());
        for &client in &selected {
            policy
                .observe(&Feedback::Job(JobReport {
                    client,
                    turn,
                    round,
                    staleness: 0,
                    outcome: Outcome::Arrived,
                    waited: Waited::Arrived(Span(1)),
                    phases: [Span(0), Span(1), Span(0)],
                }))
                .unwrap();
        }
        policy
            .observe(&Feedback::Round(RoundReport {
                turn,
                round,
                selected: &selected,
                duration: Span(1),
                down_bytes: selected.len() as u64,
                up_bytes: selected.len() as u64,
                metrics: &[(MetricId::new(Place::Test, "rmse"), 2.0)],
                quality: None,
                edge_accuracy: None,
            }))
            .unwrap();
    }
    (found, policy.warning())
}

/// With at least three clients a round the numbers 3, 4, 5 are tried in rounds 2 to 4, and scores decide from round 5
/// on: 6, as nothing was earned in round 1.
#[test]
fn the_fewest_clients_of_a_round() {
    let (found, warning) = paid(3, &[6; 30]);
    let mut tried = found[1..4].to_vec();
    tried.sort_unstable();
    assert_eq!((found[0], tried, found[4]), (6, vec![3, 4, 5], 6), "{found:?}");
    assert!(found.iter().all(|number| (3..=6).contains(number)));
    assert!(warning.is_none());
    assert!(paid(3, &[6; 4]).1.unwrap().contains("up to 6"), "nothing was chosen by score yet");
    assert!(paid(6, &[6; 9]).0.iter().all(|number| *number == 6), "there is nothing to try");
}

/// Numbers beyond the rest of the budget are put off; once no number is left to be tried, scores decide among those
/// within it. Untried numbers have no score and come first, the smallest of all.
#[test]
fn numbers_that_cannot_be_paid_for() {
    let (found, _) = paid(1, &[6, 2, 2, 2, 6, 6, 6, 6, 6, 6]);
    let mut tried = found[1..3].to_vec();
    tried.sort_unstable();
    assert_eq!((found[0], tried), (6, vec![1, 2]));
    // In round 4 neither 1 nor 2 is untried. Both have earned the less, the later they were played.
    assert_eq!(found[3], found[1]);
    let mut later = found[4..7].to_vec();
    later.sort_unstable();
    // Rounds 5 and 6 try two of 3, 4, 5 in the order drawn; round 7 is beyond N, and the third has an infinite score.
    assert_eq!(later, [3, 4, 5]);
    assert!(paid(4, &[6, 2, 2]).0[1..].iter().all(|number| *number == 2), "as many as there can be");
}

// ------------------------------------------------------------------------------------------------------ refused

#[test]
fn what_does_not_fit_is_refused() {
    for (from, to, parts) in [
        ("target = 1.2", "target = 0.0", &["policy.fedacs.target", "found 0", "a number above 0"][..]),
        ("target = 1.2", "target = -1.0", &["policy.fedacs.target", "found -1"]),
        ("budget = \"300 kB\"", "budget = \"0 B\"", &["policy.fedacs.budget", "found 0"]),
        ("budget = \"300 kB\"\n", "", &["policy.fedacs.budget", "is missing", "[budget]", "30 MB"]),
        ("target = 1.2", "metric = \"test_mae\"", &["policy.fedacs.metric", "test_mae", "test_rmse"]),
        ("target = 1.2", "number = \"all\"", &["policy.fedacs.number", "all"]),
        ("[policy.fedacs]", "[evaluate]\nevery = 2\n[policy.fedacs]", &["policy.fedacs", "every = 1"]),
        (
            "target = { metric = \"test_rmse\", at_most = 0.01 }\n",
            "",
            &["policy.fedacs", "target", "[stop] target of test_rmse", "target = 1.05"],
        ),
        (
            "[protocol.synchronous]\ncohort = 7\n",
            "[protocol.hierarchical]\nedges = 2\ncohort = 2\n",
            &["policy.fedacs", "rounds of one server"],
        ),
        (
            "[protocol.synchronous]\ncohort = 7\n",
            "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n",
            &["policy.fedacs", "rounds of one server"],
        ),
    ] {
        let mut scenario = changed(WORLD, from, to);
        if from.starts_with("target = {") {
            scenario = changed(&scenario, "target = 1.2\n", "");
        }
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        let is_one_line = !to.is_empty() && !to.contains('\n');
        let at = if is_one_line { format!("{SCENARIO}:{}", line_of(&scenario, to)) } else { String::new() };
        for part in parts.iter().copied().chain([&*at]) {
            assert!(answer.stderr.contains(part), "{part:?} is not in {}", answer.stderr);
        }
    }
}
