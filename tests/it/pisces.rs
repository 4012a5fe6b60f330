//! Pisces: every score, credit and draw recomputed from a run's records, with late updates and without a round at all,
//! and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

/// Twelve clients with losses, sizes and devices of their own; two of the losses are far from the others.
const WORLD: &str = r#"
name = "pisces"
seeds = 1
[stop]
rounds = 60
[population]
clients = 12
interrupted = "run-on"
data_size = { each = [5, 40, 10, 25, 30, 15, 20, 35, 45, 12, 8, 50] }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
client_losses = [0.9, 0.1, 0.5, 3.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]
[protocol.deadline]
cohort = 4
deadline = "1.1 s"
late = { carry = {} }
[policy.pisces]
exploration = 0.6
"#;
const SIZES: [f64; 12] = [5.0, 40.0, 10.0, 25.0, 30.0, 15.0, 20.0, 35.0, 45.0, 12.0, 8.0, 50.0];
const LOSSES: [f64; 12] = [0.9, 0.1, 0.5, 3.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4];

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n[task.scripted]";

#[derive(Clone, Copy)]
struct Rule {
    beta: f64,
    history: usize,
    /// Distance, rounds, pool, neighbours, credits; nobody is left out without.
    outliers: Option<(f64, usize, usize, usize, f64)>,
}

const DEFAULT: Rule = Rule { beta: 0.5, history: 5, outliers: Some((0.5, 5, 4, 2, 5.0)) };

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    stale: usize,
    explored: usize,
    left_out: usize,
}

/// The clusters of DBSCAN on a line: whoever is reached from a core by steps between cores. The rest is out.
fn out(losses: &[(usize, f64)], distance: f64, neighbours: usize) -> Vec<usize> {
    let near = |one: f64| losses.iter().filter(|other| (one - other.1).abs() <= distance).count();
    let mut label: Vec<Option<usize>> = vec![None; losses.len()];
    for start in 0..losses.len() {
        if label[start].is_some() || near(losses[start].1) < neighbours {
            continue;
        }
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            label[at] = Some(start);
            if near(losses[at].1) >= neighbours {
                let next = (0..losses.len())
                    .filter(|&other| label[other].is_none() && (losses[at].1 - losses[other].1).abs() <= distance);
                open.extend(next);
            }
        }
    }
    losses.iter().zip(label).filter(|(_, label)| label.is_none()).map(|(loss, _)| loss.0).collect()
}

/// Plays 60 rounds and compares each with the rule.
fn checked(scenario: &str, rule: Rule) -> Seen {
    let (mut epsilon, mut counts) = (0.6, [0; 12]);
    let full = rule.outliers.map_or(5.0, |of| of.4);
    let (mut credits, mut staleness) = ([full; 12], vec![Vec::new(); 12]);
    // Round of dispatch of each client's last update.
    let mut last: [Option<usize>; 12] = [None; 12];
    let mut made = vec![false];
    let mut seen = Seen::default();
    for (turn, round) in (1_usize..).zip(rounds(scenario, 1, 60)) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let mean = |client: usize| {
            let own: &Vec<f64> = &staleness[client];
            let last = &own[own.len().saturating_sub(rule.history)..];
            last.iter().sum::<f64>() / last.len() as f64
        };
        let utility = |client: usize| SIZES[client] * LOSSES[client];
        let score = |client: usize| match last[client] {
            Some(_) => utility(client) / (mean(client) + 1.0).powf(rule.beta),
            None => 0.0,
        };
        for (place, &client) in candidates.iter().enumerate() {
            assert!(credits[client] > 0.0 || candidates.iter().all(|&other| credits[other] == 0.0), "{turn}: {said}");
            assert_eq!(numbers(&said["credits"])[place], credits[client], "{turn}");
            let found = ["utility", "staleness", "score"].map(|key| numbers(&said[key])[place]);
            let expected = [last[client].map_or(f64::NAN, |_| utility(client)), mean(client), score(client)];
            for (found, expected) in found.iter().zip(expected) {
                let is_close = (found - expected).abs() < 1e-9 * expected.abs().max(1.0);
                assert!(is_close || found.is_nan() && expected.is_nan(), "{turn}, {client}: {found}, {expected}");
            }
        }
        let count = candidates.len().min(4);
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        let wanted = if turn == 1 { count } else { (0..count).filter(|_| rng.uniform() < epsilon).count() };
        let said_epsilon = said["epsilon"].as_f64();
        assert!(if turn == 1 { said_epsilon.is_none() } else { (said_epsilon.unwrap() - epsilon).abs() < 1e-12 });
        if turn > 1 {
            epsilon = f64::max(epsilon * 0.98, 0.3);
        }
        let (mut explored, mut others): (Vec<usize>, Vec<usize>) =
            candidates.iter().partition(|&&client| counts[client] > 0);
        let explore = wanted.min(others.len()).max(count.saturating_sub(explored.len()));
        assert_eq!(said["explore"].as_f64().unwrap(), explore as f64, "{turn}");
        explored.sort_by(|&one, &other| score(other).total_cmp(&score(one)).then(one.cmp(&other)));
        explored.truncate(count - explore);
        for place in 0..explore {
            let other = place + rng.below((others.len() - place) as u64) as usize;
            others.swap(place, other);
        }
        explored.extend(&others[..explore]);
        let selected = ids(&round["selected"]);
        assert_eq!(selected, explored, "{turn}: {said}");
        selected.iter().for_each(|&client| counts[client] += 1);
        seen.explored += explore;

        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let joined = round["joined"].as_array().into_iter().flatten();
        let mut of: Vec<(usize, usize)> = joined.map(|late| (whole(&late["client"]), whole(&late["round"]))).collect();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        of.sort_unstable();
        for &(client, dispatched) in &of {
            let models = (dispatched..turn).filter(|&round| made[round]).count();
            seen.stale += models;
            staleness[client].push(models as f64);
            last[client] = Some(dispatched);
            if let Some((distance, versions, pool, neighbours, _)) = rule.outliers {
                let is_near = |round: usize| round <= dispatched && round + versions > dispatched;
                let losses: Vec<(usize, f64)> = (0..12)
                    .filter(|&other| last[other].is_some_and(is_near))
                    .map(|other| (other, LOSSES[other]))
                    .collect();
                let alone = if losses.len() < pool { Vec::new() } else { out(&losses, distance, neighbours) };
                alone.into_iter().for_each(|client| credits[client] = f64::max(credits[client] - 1.0, 0.0));
            }
        }
        made.push(!of.is_empty());
    }
    seen.left_out = credits.iter().filter(|&&credits| credits == 0.0).count();
    seen
}

#[test]
fn every_selection_follows_from_the_records() {
    let seen = checked(WORLD, DEFAULT);
    assert!(seen.stale >= 10 && seen.explored == 12 && (1..6).contains(&seen.left_out), "{seen:?}");
    let all = format!("{WORLD}outliers = false\nbeta = 2.0\nhistory = 2\n");
    checked(&all, Rule { beta: 2.0, history: 2, outliers: None });
    let strict = format!("{WORLD}distance = 0.25\nversions = 8\npool = 6\nneighbours = 3\ncredits = 2\n");
    checked(&strict, Rule { outliers: Some((0.25, 8, 6, 3, 2.0)), ..DEFAULT });
    checked(&changed(WORLD, "[task.scripted]", AWAY), DEFAULT);
}

/// Five at work, and a model of each two updates: every selection is of one client, with the largest score of those
/// explored or new.
#[test]
fn it_plays_without_rounds() {
    let deadline = "[protocol.deadline]\ncohort = 4\ndeadline = \"1.1 s\"\nlate = { carry = {} }\n";
    let scenario = changed(WORLD, deadline, "[protocol.buffered]\nconcurrency = 5\nbuffer = 2\n");
    let (mut selections, mut stale, mut explored) = (0, 0, 0);
    for round in rounds(&scenario, 1, 60) {
        let (decisions, selected) = (round["explain"].as_array().unwrap(), ids(&round["selected"]));
        assert_eq!(decisions.len(), selected.len(), "{round}");
        for (said, client) in decisions.iter().zip(selected) {
            let (clients, scores) = (ids(&said["clients"]), numbers(&said["score"]));
            let [utility, staleness] = ["utility", "staleness"].map(|key| numbers(&said[key]));
            for place in 0..clients.len() {
                let expected =
                    if utility[place].is_nan() { 0.0 } else { utility[place] / (staleness[place] + 1.0).sqrt() };
                assert!((scores[place] - expected).abs() < 1e-9, "{said}");
                stale += usize::from(staleness[place] > 0.0);
            }
            if said["explore"].as_f64() == Some(0.0) {
                let best = scores.iter().copied().fold(0.0, f64::max);
                assert_eq!(scores[clients.iter().position(|&other| other == client).unwrap()], best, "{said}");
            }
            explored += usize::from(said["explore"].as_f64() == Some(1.0));
            selections += 1;
        }
    }
    assert!(selections >= 120 && stale >= 60 && explored == 12, "{selections}, {stale}, {explored}");
}

/// Four losses around 1 are a cluster with two neighbours; 3 and 5 are alone, and 1.6 is beside 1.2.
#[test]
fn six_losses_by_hand() {
    let losses: Vec<(usize, f64)> = [1.0, 3.0, 1.2, 5.0, 0.8, 1.6].into_iter().enumerate().collect();
    assert_eq!(out(&losses, 0.5, 2), [1, 3]);
    assert_eq!(out(&losses, 0.3, 2), [1, 3, 5]);
    assert_eq!(out(&losses, 0.3, 3), [1, 3, 5], "only 1 has three within 0.3, and these are with it");
    assert_eq!(out(&losses, 0.5, 5), [0, 1, 2, 3, 4, 5]);
    assert_eq!(out(&losses, 0.1, 1), [0_usize; 0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let losses = "client_losses = [0.9, 0.1, 0.5, 3.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]\n";
    for (from, to, part) in [
        ("exploration = 0.6", "beta = -0.5", "beta"),
        ("exploration = 0.6", "history = 0", "history"),
        ("exploration = 0.6", "exploration = 1.1", "exploration"),
        ("exploration = 0.6", "exploration_decay = 0.0", "exploration_decay"),
        ("exploration = 0.6", "exploration_min = -0.1", "exploration_min"),
        ("exploration = 0.6", "distance = 0.0", "distance"),
        ("exploration = 0.6", "versions = 0", "versions"),
        ("exploration = 0.6", "neighbours = 0", "neighbours"),
        ("exploration = 0.6", "credits = 0", "credits"),
        (losses, "", "loss_rms"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["pisces", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
