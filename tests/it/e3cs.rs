//! E3CS: every weight, probability and draw found again from a run's records, a case by hand, and settings that are
//! refused.

use super::fedacs::{ids, numbers, rounds};
use super::refl::is_close;
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

/// Twelve clients on devices that differ, three at a time.
const WORLD: &str = r#"
name = "e3cs"
seeds = 1
[stop]
rounds = 60
[population]
clients = 12
interrupted = "run-on"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s", "0.9 s", "0.7 s", "1.2 s", "2 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
[protocol.synchronous]
cohort = 3
[policy.e3cs]
"#;

/// Six devices are always on, so that there are always more candidates than places.
const AWAY: &str = r#"[population.availability.on-off]
start = "on"
on = { constant = { each = [
    "99999 s", "4 s", "99999 s", "5 s", "99999 s", "2.5 s", "99999 s", "4.5 s", "1.5 s", "99999 s", "99999 s", "2 s",
] } }
off = { constant = { each = [
    "1 s", "4 s", "1 s", "5 s", "1 s", "2.5 s", "1 s", "5.5 s", "4.5 s", "1 s", "1 s", "3 s",
] } }
[task.scripted]"#;

struct Rules {
    quota: f64,
    eta: f64,
    weights: [f64; 12],
    /// Clients that were capped, and the most of them in one selection.
    capped: usize,
    most_capped: usize,
    /// Clients selected whose updates did not come in the round.
    missing: usize,
    least_candidates: usize,
}

impl Rules {
    fn new(quota: f64, eta: f64) -> Self {
        Self { quota, eta, weights: [1.0; 12], capped: 0, most_capped: 0, missing: 0, least_candidates: 12 }
    }

    /// α by halving an interval: above it α/Σw' is more than 1/(m − Kσ), below it less.
    fn alpha(weights: &[f64], sigma: f64, free: f64) -> f64 {
        let (mut low, mut high) = (0.0, weights.iter().sum::<f64>() / free);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            let sum: f64 = weights.iter().map(|weight| weight.min((1.0 - sigma) * middle)).sum();
            if middle * free > sum { high = middle } else { low = middle }
        }
        high
    }

    /// Compares a round with the rules.
    fn check(&mut self, round: &Value, turn: u32) {
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let (count, clients) = (3.0, candidates.len() as f64);
        assert!(candidates.len() > 3, "round {turn}: nobody is left out");
        self.least_candidates = self.least_candidates.min(candidates.len());
        let sigma = self.quota * count / clients;
        let free = count - clients * sigma;
        let weights: Vec<f64> = candidates.iter().map(|&client| self.weights[client]).collect();
        let shared = |weights: &[f64]| -> Vec<f64> {
            let sum: f64 = weights.iter().sum();
            weights.iter().map(|weight| sigma + free * weight / sum).collect()
        };
        let mut cap = f64::INFINITY;
        let mut p = shared(&weights);
        if p.iter().any(|p| *p > 1.0) {
            cap = (1.0 - sigma) * Self::alpha(&weights, sigma, free);
            p = shared(&weights.iter().map(|weight| weight.min(cap)).collect::<Vec<_>>());
        }
        assert!((p.iter().sum::<f64>() - count).abs() < 1e-9 && p.iter().all(|p| *p < 1.0 + 1e-9), "round {turn}");
        let largest = weights.iter().copied().fold(0.0, f64::max);
        assert!(is_close(said["sigma"].as_f64().unwrap(), sigma), "round {turn}");
        let (found_weights, found) = (numbers(&said["w"]), numbers(&said["p"]));
        assert_eq!([found_weights.len(), found.len()], [candidates.len(); 2], "round {turn}");
        for place in 0..candidates.len() {
            assert!(is_close(found_weights[place], weights[place] / largest), "round {turn}: {found_weights:?}");
            assert!(is_close(found[place], p[place]), "round {turn}: {found:?}, {p:?}");
        }
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let mut race: Vec<(f64, usize)> =
            candidates.iter().zip(&p).map(|(&client, p)| (-rng.uniform().ln() / p, client)).collect();
        race.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let selected: Vec<usize> = race[..3].iter().map(|ring| ring.1).collect();
        assert_eq!(ids(&round["selected"]), selected, "round {turn}");
        let arrived = ids(&round["arrived"]);
        self.missing += 3 - arrived.len();
        let is_capped = |place: &usize| weights[*place] > cap;
        let capped = (0..candidates.len()).filter(is_capped).count();
        (self.capped, self.most_capped) = (self.capped + capped, self.most_capped.max(capped));
        for place in (0..candidates.len()).filter(|place| !is_capped(place)) {
            if arrived.contains(&candidates[place]) {
                self.weights[candidates[place]] *= (free * self.eta / (p[place] * clients)).exp();
            }
        }
    }
}

/// Plays 60 rounds and compares each with the rules, with the default settings and with others.
fn checked(scenario: &str) -> [Rules; 2] {
    let play = |scenario: &str, mut rules: Rules| {
        rounds(scenario, 1, 60).iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
        rules
    };
    let more = format!("{scenario}quota = 0.2\neta = 0.9\n");
    [play(scenario, Rules::new(0.5, 0.5)), play(&more, Rules::new(0.2, 0.9))]
}

fn with_deadline(more: &str) -> String {
    let deadline = format!("[protocol.deadline]\ncohort = 3\ndeadline = \"0.8 s\"\n{more}");
    changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", &deadline)
}

#[test]
fn every_draw_follows_from_the_records() {
    let plain = checked(WORLD);
    assert!(plain.iter().all(|rules| rules.missing == 0 && rules.least_candidates == 12));
    let late = checked(&with_deadline(""));
    assert!(late.iter().all(|rules| rules.missing > 20), "some updates are lost");
    assert!(late[1].capped > 0, "{} capped", late[1].capped);
}

/// A late update that joins a later round did not arrive in that of its selection, and raises no weight.
#[test]
fn late_updates_do_not_count() {
    let carried = checked(&with_deadline("late = { carry = {} }\n"));
    assert!(carried.iter().all(|rules| rules.missing > 20 && rules.least_candidates < 12), "some are busy");
    assert!(carried[1].most_capped >= 2, "{} capped at once", carried[1].most_capped);
}

#[test]
fn weights_of_those_who_are_away_stay() {
    let away = |scenario: &str| checked(&changed(scenario, "[task.scripted]", AWAY));
    let (plain, late) = (away(WORLD), away(&with_deadline("")));
    assert!(plain.iter().chain(&late).all(|rules| rules.least_candidates < 12));
    assert!(late[1].most_capped >= 2, "{} capped at once", late[1].most_capped);
}

/// Three clients, two at a time; updates of the last two never arrive in time. With a quota of ¼, σ = ¼·⅔ = ⅙ and
/// m − Kσ = 1½. At first each has p = ⅙ + 1½·⅓ = ⅔. Whenever client 0 is selected, its weight gets the factor
/// exp(1½·½/(3p)): with those of the others at 1 it is exp(0.375) = 1.45499, then times exp(0.31315) 1.99002, then
/// times exp(0.27329) 2.61543. Then its p would be ⅙ + 1½·0.56667 > 1. So it is capped: α = 3 solves α/(⅚α + 2) = ⅔,
/// its w' is 2½, and p = (1, ½, ½); its weight stays, and it is selected in every round.
#[test]
fn three_clients_by_hand() {
    let scenario = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 16
[population]
clients = 3
[population.latency]
download = { constant = "0 s" }
compute = { constant = { each = ["0.5 s", "2 s", "2 s"] } }
upload = { constant = "0 s" }
[task.scripted]
values = [0.5]
[protocol.deadline]
cohort = 2
deadline = "1 s"
[policy.e3cs]
quota = 0.25
"#;
    // The weight of each of the others relative to client 0's, client 0's probability, and that of each of the others.
    let by_times_selected = [
        (1.0, 0.666_667, 0.666_667),
        (0.687_289, 0.798_358, 0.600_821),
        (0.502_508, 0.914_790, 0.542_605),
        (0.382_346, 1.0, 0.5),
    ];
    let mut times = 0;
    for round in rounds(scenario, 1, 16) {
        let said = &round["explain"][0];
        let (weight, first, other) = by_times_selected[times];
        assert!((said["sigma"].as_f64().unwrap() - 0.166_667).abs() < 1e-6);
        for (found, expected) in numbers(&said["w"]).into_iter().zip([1.0, weight, weight]) {
            assert!((found - expected).abs() < 1e-6, "{said}");
        }
        for (found, expected) in numbers(&said["p"]).into_iter().zip([first, other, other]) {
            assert!((found - expected).abs() < 1e-6, "{said}");
        }
        let selected = ids(&round["selected"]);
        assert_eq!(selected.len(), 2);
        times = (times + usize::from(selected.contains(&0))).min(3);
    }
    assert_eq!(times, 3, "client 0 was capped");
}

#[test]
fn what_does_not_fit_is_refused() {
    for (line, part) in [("quota = 1.5\n", "quota"), ("quota = -0.1\n", "quota"), ("eta = -0.5\n", "eta")] {
        let answer = Workplace::with(&format!("{WORLD}{line}")).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{line}: {answer:?}");
        assert!(answer.stderr.contains(part) && answer.stderr.contains("e3cs"), "{}", answer.stderr);
    }
}
