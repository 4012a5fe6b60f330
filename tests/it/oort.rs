//! Oort: every number and every draw recomputed from a run's records, cases worked out by hand, and settings that are
//! refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, line_of};
use fedgenie::rng::{Purpose, StreamRng, Streams};
use serde_json::Value;
use std::collections::BTreeSet;

/// Twelve clients with losses, sizes and devices of their own.
const WORLD: &str = r#"
name = "oort"
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
client_losses = [0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]
[protocol.synchronous]
cohort = 5
[policy.oort]
"#;
const MEANS: [f64; 6] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5];
const SIZES: [f64; 12] = [5.0, 40.0, 10.0, 25.0, 30.0, 15.0, 20.0, 35.0, 45.0, 12.0, 8.0, 50.0];

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n";

/// Losses that fall, of clients with equally many examples.
const LEARNS: &str =
    "[task.linear-regression]\nexamples = 700\n[training]\nbatch = 16\noptimizer = { sgd = { lr = 0.02 } }\n";

fn learning() -> String {
    let from = WORLD.find("[task.scripted]").unwrap();
    let to = WORLD.find("[protocol").unwrap();
    let sizes = "data_size = { each = [5, 40, 10, 25, 30, 15, 20, 35, 45, 12, 8, 50] }\n";
    changed(&format!("{}{LEARNS}{}", &WORLD[..from], &WORLD[to..]), sizes, "")
}

/// The rules, out of lists of all that was seen.
struct Rules {
    is_paper: bool,
    step: usize,
    /// Seconds or points.
    delta: f64,
    threshold: f64,
    cutoff: f64,
    penalty: f64,
    epsilon: f64,
    blacklist: Option<usize>,
    sizes: Vec<f64>,
    declared: Vec<f64>,
    /// Selection, utility and latency of each client's updates.
    seen: Vec<Vec<(f64, f64, f64)>>,
    /// Sum of all utilities of a round, and mean of those exploited.
    achieved: Vec<[f64; 2]>,
    preferred: f64,
    exploited: BTreeSet<usize>,
    /// Times that the preferred duration, or the percentile, moved up and down.
    moved: [usize; 2],
}

impl Rules {
    fn new(is_paper: bool) -> Self {
        let declared: Vec<f64> = (0..12).map(|client| 0.3 + MEANS[client % 6] * 2.0_f64.ln()).collect();
        let mut sorted = declared.clone();
        sorted.sort_by(f64::total_cmp);
        let median = f64::midpoint(sorted[5], sorted[6]);
        Self {
            is_paper,
            step: 20,
            delta: if is_paper { median } else { 10.0 },
            threshold: 30.0,
            cutoff: if is_paper { 0.95 } else { 0.7 },
            penalty: 2.0,
            epsilon: 0.9,
            blacklist: None,
            sizes: SIZES.to_vec(),
            declared,
            seen: vec![Vec::new(); 12],
            achieved: Vec::new(),
            preferred: median,
            exploited: BTreeSet::new(),
            moved: [0, 0],
        }
    }

    fn latency(&self, client: usize) -> f64 {
        self.seen[client].last().map_or(self.declared[client], |seen| seen.2)
    }

    fn slow(&self, client: usize) -> f64 {
        let latency = self.latency(client);
        if latency > self.preferred { (self.preferred / latency).powf(self.penalty) } else { 1.0 }
    }

    /// Compares windows of rounds, where that is due.
    fn pace(&mut self) {
        let (rounds, step) = (self.achieved.len(), self.step);
        if rounds >= 2 * step && rounds.is_multiple_of(step) {
            let of = |rounds: &[[f64; 2]]| rounds.iter().map(|of| of[usize::from(!self.is_paper)]).sum::<f64>();
            let (before, last) =
                (of(&self.achieved[rounds - 2 * step..rounds - step]), of(&self.achieved[rounds - step..]));
            let change = (last - before).abs();
            if self.is_paper {
                if before > last {
                    self.preferred += self.delta;
                    self.moved[0] += 1;
                }
            } else if change <= 0.1 * before {
                self.threshold = (self.threshold + self.delta).min(100.0);
                self.moved[0] += 1;
            } else if change >= 5.0 * before {
                self.threshold = (self.threshold - self.delta).max(self.delta);
                self.moved[1] += 1;
            }
        }
        if !self.is_paper {
            let mut sorted: Vec<f64> = (0..12).map(|client| self.latency(client)).collect();
            sorted.sort_by(f64::total_cmp);
            let place = (12.0 * self.threshold / 100.0) as usize;
            self.preferred = if self.threshold >= 100.0 { f64::INFINITY } else { sorted[place.min(11)] };
        }
    }

    /// Score of an explored client.
    fn score(&self, client: usize, utilities: &[f64], clip: f64, turn: f64) -> f64 {
        let &(last, utility, _) = self.seen[client].last().unwrap();
        let mut value = utility.min(clip);
        if !self.is_paper {
            let low = 0.999 * utilities[0];
            value = (value - low) / (utilities[utilities.len() - 1] - low).max(1e-4);
        }
        (value + (0.1 * turn.ln() / last).sqrt()) * self.slow(client)
    }

    fn check(&mut self, round: &Value, turn: u32) {
        let context = format!("round {turn}");
        let said = &round["explain"][0];
        self.pace();
        self.epsilon = (self.epsilon * 0.98).max(0.2);
        let candidates = ids(&said["clients"]);
        if let Some(most) = self.blacklist {
            let mut black: Vec<usize> = (0..12).filter(|&client| self.seen[client].len() > most).collect();
            black.sort_by_key(|&client| (12 * 100 - self.seen[client].len(), client));
            // ⌊0.3·12⌋
            black.truncate(3);
            assert!(candidates.iter().all(|client| !black.contains(client)), "{context}");
            assert_eq!(candidates.len(), 12 - black.len(), "{context}");
        }
        let (explored, unexplored): (Vec<usize>, Vec<usize>) =
            candidates.iter().partition(|&&client| !self.seen[client].is_empty());
        let mut utilities: Vec<f64> = explored.iter().map(|&client| self.seen[client].last().unwrap().1).collect();
        utilities.sort_by(f64::total_cmp);
        let clip = utilities.get((0.95 * utilities.len() as f64) as usize).copied().unwrap_or(f64::NAN);
        let scored: Vec<(usize, f64)> =
            explored.iter().map(|&client| (client, self.score(client, &utilities, clip, f64::from(turn)))).collect();
        let count = candidates.len().min(5);
        let wanted = (count as f64 * (1.0 - self.epsilon)) as usize;
        let exploit = if unexplored.is_empty() { count } else { wanted.max(count.saturating_sub(unexplored.len())) };
        let exploit = exploit.min(explored.len());
        let mut ranked: Vec<f64> = scored.iter().map(|scored| scored.1).collect();
        ranked.sort_by(|one, other| other.total_cmp(one));
        let cutoff = if exploit > 0 { self.cutoff * ranked[exploit - 1] } else { f64::NAN };
        let admitted: Vec<(usize, f64)> = scored.iter().copied().filter(|scored| scored.1 >= cutoff).collect();
        let found = numbers(&said["score"]);
        let mut known = scored.iter();
        for (client, found) in candidates.iter().zip(found) {
            let is_known = !self.seen[*client].is_empty();
            let expected = if is_known { known.next().unwrap().1 } else { f64::NAN };
            assert!(found.is_nan() && !is_known || (found - expected).abs() < 1e-9, "{context}: {found}, {expected}");
        }
        for (key, expected) in [
            ("epsilon", self.epsilon),
            ("preferred_s", self.preferred),
            ("clip", clip),
            ("cutoff", cutoff),
            ("exploit", exploit as f64),
            ("explore", (count - exploit) as f64),
        ] {
            let found = said[key].as_f64().unwrap_or(f64::NAN);
            let is_it = found.is_nan() && !expected.is_finite() || (found - expected).abs() < 1e-8;
            assert!(is_it, "{context}, {key}: {found}, {expected}");
        }
        assert_eq!(ids(&said["admitted"]), admitted.iter().map(|admitted| admitted.0).collect::<Vec<_>>(), "{context}");
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let mut expected = drawn(&admitted, exploit, &mut rng);
        let explored = drawn(&self.considered(&unexplored, count - exploit), count - exploit, &mut rng);
        // Of an update that comes later it counts how its client was selected.
        self.exploited.extend(&expected);
        explored.iter().for_each(|client| _ = self.exploited.remove(client));
        expected.extend(explored);
        assert_eq!(ids(&round["selected"]), expected, "{context}");
        self.learn(round, turn);
    }

    /// Weights of unexplored clients.
    fn considered(&self, unexplored: &[usize], count: usize) -> Vec<(usize, f64)> {
        let weigh =
            |client| if self.is_paper { 1.0 / self.latency(client) } else { self.sizes[client] * self.slow(client) };
        let mut weighed: Vec<(usize, f64)> = unexplored.iter().map(|&client| (client, weigh(client))).collect();
        if !self.is_paper {
            weighed.sort_by(|one, other| other.1.total_cmp(&one.1));
            weighed.truncate(5 * count);
            weighed.sort_by_key(|weighed| weighed.0);
        }
        weighed
    }

    fn learn(&mut self, round: &Value, turn: u32) {
        let updates = &round["updates"];
        let (examples, losses) = (numbers(&updates["examples"]), numbers(&updates["loss_rms"]));
        let (mut all, mut of_exploited) = (0.0, Vec::new());
        for (index, client) in ids(&updates["clients"]).into_iter().enumerate() {
            let utility = examples[index] * losses[index];
            all += utility;
            if self.exploited.contains(&client) {
                of_exploited.push(utility);
            }
            self.seen[client].push((f64::from(turn), utility, numbers(&updates["latency_s"])[index]));
        }
        let mean = of_exploited.iter().sum::<f64>() / of_exploited.len().max(1) as f64;
        self.achieved.push([all, mean]);
    }
}

/// The clients whose exponential clocks ring first.
fn drawn(weighed: &[(usize, f64)], count: usize, rng: &mut StreamRng) -> Vec<usize> {
    if count == 0 {
        return Vec::new();
    }
    let mut rings: Vec<(f64, usize)> =
        weighed.iter().map(|&(client, weight)| (-rng.uniform().ln() / weight, client)).collect();
    rings.sort_by(|one, other| one.0.total_cmp(&other.0));
    rings.into_iter().take(count).map(|ring| ring.1).collect()
}

/// Plays 60 rounds and compares each with the rules.
fn checked(scenario: &str, mut rules: Rules) -> Rules {
    let lines = rounds(scenario, 1, 60);
    lines.iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
    rules
}

#[test]
fn every_selection_follows_from_the_records() {
    let paper = checked(WORLD, Rules::new(true));
    assert!(paper.seen.iter().all(|seen| !seen.is_empty()), "everybody was asked");
    assert!(paper.epsilon > 0.26 && paper.epsilon < 0.27, "0.9·0.98⁶⁰: {}", paper.epsilon);
    checked(&format!("{WORLD}variant = \"released\"\n"), Rules::new(false));
    let sizes = vec![50.0; 12];
    let of_learning = |rules: Rules| Rules { sizes: sizes.clone(), ..rules };
    checked(&learning(), of_learning(Rules::new(true)));
    checked(&format!("{}variant = \"released\"\n", learning()), of_learning(Rules::new(false)));
}

#[test]
fn the_pacer_compares_windows() {
    let rules = Rules { step: 3, delta: 0.25, preferred: 0.25, ..Rules::new(true) };
    let rules = checked(&format!("{WORLD}pacer_step = 3\npacer_delta = \"0.25 s\"\n"), rules);
    assert!(rules.moved[0] >= 3 && rules.preferred > 0.9, "{:?}", rules.moved);
    let more = "variant = \"released\"\npacer_step = 2\npacer_delta = 5\nthreshold = 40\ncutoff = 0.5\npenalty = 1\n";
    let start = || Rules { step: 2, delta: 5.0, threshold: 40.0, cutoff: 0.5, penalty: 1.0, ..Rules::new(false) };
    let rules = checked(&format!("{WORLD}{more}"), start());
    assert!(rules.moved[0] >= 3 && rules.moved[1] >= 1, "{:?}", rules.moved);
    let more = "variant = \"released\"\nthreshold = 101\npacer_step = 100\n";
    checked(&format!("{WORLD}{more}"), Rules { threshold: 101.0, step: 100, ..Rules::new(false) });
}

/// Clients that are away, or late, or late and taken in later.
#[test]
fn what_did_not_come_is_not_known() {
    let late = "[protocol.deadline]\ncohort = 5\ndeadline = \"0.9 s\"\n";
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 5\n", late);
    let carried = changed(&late, "deadline = \"0.9 s\"\n", "deadline = \"0.9 s\"\nlate = { carry = {} }\n");
    for scenario in [WORLD, &late, &carried] {
        for scenario in [scenario.to_owned(), changed(scenario, "[task.scripted]", &format!("{AWAY}[task.scripted]"))] {
            checked(&scenario, Rules::new(true));
            checked(&format!("{scenario}variant = \"released\"\n"), Rules::new(false));
        }
    }
}

#[test]
fn a_blacklist_has_at_most_a_third_of_the_clients() {
    let rules = Rules { blacklist: Some(4), ..Rules::new(true) };
    let rules = checked(&format!("{WORLD}blacklist_rounds = 4\n"), rules);
    assert!(rules.seen.iter().filter(|seen| seen.len() > 4).count() > 3, "more than three are candidates for it");
}

/// Four clients with U = 10, 20, 30, 40 and latencies of 1, 2, 3, 4 s, all asked in every round. Before round 2, with
/// √(0.1 ln 2 / 1) = 0.26328: the paper's T is the median, 2.5 s, and the last two lose (2.5/3)² and (2.5/4)² of
/// theirs; the program's is the second, 2 s, and utilities are (U − 9.99)/30.01.
#[test]
fn four_clients_by_hand() {
    let scenario = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 2
[population]
clients = 4
data_size = 10
[population.latency]
download = { constant = "0 s" }
compute = { constant = { each = ["1 s", "2 s", "3 s", "4 s"] } }
upload = { constant = "0 s" }
[task.scripted]
values = [0.5]
client_losses = [1.0, 2.0, 3.0, 4.0]
[protocol.synchronous]
cohort = 4
[policy.oort]
"#;
    for (more, preferred, scores, cutoff) in [
        ("", 2.5, [10.263_277, 20.263_277, 21.016_164, 15.727_843], 9.750_113),
        ("variant = \"released\"\n", 2.0, [0.263_610, 0.596_832, 0.413_358, 0.315_819], 0.184_527),
    ] {
        let lines = rounds(&format!("{scenario}{more}"), 1, 2);
        let [first, second] = [0, 1].map(|index: usize| &lines[index]["explain"][0]);
        assert_eq!([first["exploit"].as_f64(), first["explore"].as_f64()], [Some(0.0), Some(4.0)]);
        assert!(first["clip"].is_null() && first["cutoff"].is_null() && ids(&first["admitted"]).is_empty());
        assert_eq!([second["exploit"].as_f64(), second["explore"].as_f64()], [Some(4.0), Some(0.0)]);
        assert_eq!((second["preferred_s"].as_f64(), second["clip"].as_f64()), (Some(preferred), Some(40.0)));
        for (found, expected) in numbers(&second["score"]).into_iter().zip(scores) {
            assert!((found - expected).abs() < 2e-6, "{found}, {expected}");
        }
        assert!((second["cutoff"].as_f64().unwrap() - cutoff).abs() < 2e-6);
        assert_eq!(ids(&second["admitted"]), [0, 1, 2, 3]);
        assert_eq!(numbers(&second["after"]["utility"]).iter().sum::<f64>(), 100.0);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for (from, to, parts) in [
        ("[policy.oort]", "[policy.oort]\nvariant = \"old\"", &["policy.oort.variant", "old"][..]),
        ("[policy.oort]", "[policy.oort]\npacer_step = 0", &["policy.oort.pacer_step", "at least 1"]),
        ("[policy.oort]", "[policy.oort]\npacer_delta = 10", &["policy.oort.pacer_delta", "found 10", "duration"]),
        ("[policy.oort]", "[policy.oort]\nthreshold = 30", &["policy.oort.threshold", "released"]),
        (
            "[policy.oort]",
            "[policy.oort]\nvariant = \"released\"\npacer_delta = \"5 s\"",
            &["policy.oort.pacer_delta", "number of points"],
        ),
        ("[policy.oort]", "[policy.oort]\ncutoff = 1.5", &["policy.oort.cutoff", "found 1.5", "from 0 to 1"]),
        ("[policy.oort]", "[policy.oort]\nclip = -0.1", &["policy.oort.clip", "found -0.1"]),
        ("[policy.oort]", "[policy.oort]\npenalty = -2", &["policy.oort.penalty", "found -2"]),
        ("[policy.oort]", "[policy.oort]\nexploration = 1.1", &["policy.oort.exploration", "found 1.1"]),
        ("[policy.oort]", "[policy.oort]\nexploration_decay = 0.0", &["policy.oort.exploration_decay", "found 0"]),
        (
            "client_losses = [0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]\n",
            "",
            &["policy.oort", "loss_rms", "scripted"],
        ),
    ] {
        let scenario = changed(WORLD, from, to);
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        let line = to.lines().last().unwrap_or_default();
        let at = if line.contains('=') { format!("{SCENARIO}:{}", line_of(&scenario, line)) } else { String::new() };
        for part in parts.iter().copied().chain([&*at]) {
            assert!(answer.stderr.contains(part), "{part:?} is not in {}", answer.stderr);
        }
    }
}
