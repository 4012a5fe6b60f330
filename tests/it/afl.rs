//! AFL: every valuation, probability and draw recomputed from a run's records, selections worked out by hand, and
//! settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, StreamRng, Streams};
use serde_json::Value;
use std::collections::BTreeMap;

/// Twelve clients with losses, sizes and devices of their own. Of five places two are for anybody; half of the
/// candidates are cut.
const WORLD: &str = r#"
name = "afl"
seeds = 1
[stop]
rounds = 40
[population]
clients = 12
interrupted = "run-on"
data_size = { each = [5, 40, 10, 25, 30, 15, 20, 35, 45, 12, 8, 50] }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "1.5 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
client_losses = [0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]
[protocol.synchronous]
cohort = 5
[policy.afl]
alpha1 = 0.5
alpha2 = 0.3
alpha3 = 0.4
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"8 s\" } }, \
                    off = { exponential = { mean = \"4 s\" } } }\n";
const LATE: &str = "[protocol.deadline]\ncohort = 5\ndeadline = \"0.9 s\"\nlate = { carry = {} }\n";
const SIZES: &str = "data_size = { each = [5, 40, 10, 25, 30, 15, 20, 35, 45, 12, 8, 50] }\n";
const ALPHAS: &str = "alpha1 = 0.5\nalpha2 = 0.3\nalpha3 = 0.4\n";

/// Losses that fall, of clients with very different numbers of examples.
const LEARNS: &str = r#"[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 800, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
"#;

/// The rules, and what happened under them.
#[derive(Default)]
struct Rules {
    alpha1: f64,
    alpha2: f64,
    alpha3: f64,
    cohort: usize,
    /// The valuation of each client of which an update has arrived.
    known: BTreeMap<usize, f64>,
    /// Selections in which clients were cut.
    cutting: usize,
    /// Selections in which more clients were kept than there are active places.
    by_chance: usize,
    /// Clients in uniform places that had been cut.
    brought_back: usize,
    /// Candidates of unknown value while others were known.
    unknown: usize,
}

impl Rules {
    fn new([alpha1, alpha2, alpha3]: [f64; 3], cohort: usize) -> Self {
        Self { alpha1, alpha2, alpha3, cohort, ..Self::default() }
    }

    fn check(&mut self, round: &Value, turn: u32) {
        let context = format!("selection {turn}");
        let said = &round["explain"][0];
        let candidates = ids(&said["clients"]);
        let largest = self.known.values().copied().fold(0.0, f64::max);
        let valuation = |client: usize| self.known.get(&client).copied().unwrap_or(largest);
        let all = candidates.len();
        let places = all.min(self.cohort);
        let uniform = whole(self.alpha3 * places as f64);
        let active = places - uniform;
        let mut rising = candidates.clone();
        rising.sort_by(|&one, &other| valuation(one).total_cmp(&valuation(other)).then(other.cmp(&one)));
        let cut = &rising[..whole(self.alpha1 * all as f64).min(all - active)];
        let is_kept = |client: &usize| !cut.contains(client);
        let kept: Vec<usize> = candidates.iter().copied().filter(is_kept).collect();
        let best = kept.iter().map(|&client| valuation(client)).fold(f64::NEG_INFINITY, f64::max);
        let weighed: Vec<(usize, f64)> =
            kept.iter().map(|&client| (client, (self.alpha2 * (valuation(client) - best)).exp())).collect();
        let sum: f64 = weighed.iter().map(|weighed| weighed.1).sum();
        let p = |client: &usize| weighed.iter().find(|weighed| weighed.0 == *client).map_or(0.0, |found| found.1 / sum);
        assert_close(&said["valuation"], candidates.iter().map(|&client| valuation(client)).collect(), &context);
        assert_close(&said["p"], candidates.iter().map(p).collect(), &context);

        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let mut expected = raced(&weighed, active, &mut rng);
        assert_eq!(ids(&said["active"]), expected, "{context}");
        let left: Vec<usize> = candidates.iter().copied().filter(|client| !expected.contains(client)).collect();
        let anybody = shuffled(left, uniform, &mut rng);
        assert_eq!(ids(&said["uniform"]), anybody, "{context}");
        self.cutting += usize::from(!cut.is_empty());
        self.by_chance += usize::from(kept.len() > active);
        self.brought_back += anybody.iter().filter(|client| cut.contains(client)).count();
        let is_unknown = |client: &&usize| !self.known.is_empty() && !self.known.contains_key(*client);
        self.unknown += candidates.iter().filter(is_unknown).count();
        expected.extend(anybody);
        assert_eq!(ids(&round["selected"]), expected, "{context}");

        let updates = &round["updates"];
        let (examples, losses) = (numbers(&updates["examples"]), numbers(&updates["loss"]));
        for (place, client) in ids(&updates["clients"]).into_iter().enumerate() {
            self.known.insert(client, examples[place].sqrt() * losses[place]);
        }
    }
}

/// The whole part; a number just below a whole one by rounding counts as that one.
fn whole(number: f64) -> usize {
    (number + 1e-9).floor() as usize
}

/// The clients whose exponential clocks ring first; each client's clock takes one number, by ascending id.
fn raced(weighed: &[(usize, f64)], count: usize, rng: &mut StreamRng) -> Vec<usize> {
    let mut rings: Vec<(f64, usize)> =
        weighed.iter().map(|&(client, weight)| (-rng.uniform().ln() / weight, client)).collect();
    rings.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    rings.into_iter().take(count).map(|ring| ring.1).collect()
}

/// The first places of a shuffle from the first place up.
fn shuffled(mut list: Vec<usize>, count: usize, rng: &mut StreamRng) -> Vec<usize> {
    for place in 0..count {
        let other = place + rng.below((list.len() - place) as u64) as usize;
        list.swap(place, other);
    }
    list.truncate(count);
    list
}

fn assert_close(found: &Value, expected: Vec<f64>, context: &str) {
    let found = numbers(found);
    assert_eq!(found.len(), expected.len(), "{context}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-9, "{context}: {found}, {expected}");
    }
}

/// Plays 40 rounds and compares each with the rules.
fn checked(scenario: &str, mut rules: Rules) -> Rules {
    let lines = rounds(scenario, 1, 40);
    assert_eq!(lines.len(), 40);
    lines.iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
    rules
}

#[test]
fn every_selection_follows_from_the_records() {
    let rules = || Rules::new([0.5, 0.3, 0.4], 5);
    let late = changed(WORLD, "[protocol.synchronous]\ncohort = 5\n", LATE);
    let away = changed(WORLD, "[task.scripted]", &format!("{AWAY}[task.scripted]"));
    let both = changed(&late, "[task.scripted]", &format!("{AWAY}[task.scripted]"));
    for scenario in [WORLD, &late, &away, &both] {
        let seen = checked(scenario, rules());
        assert!(seen.known.len() == 12 && seen.unknown > 0, "everybody answered at some time");
        assert!(seen.cutting >= 25 && seen.by_chance >= 4 && seen.brought_back >= 10, "{scenario}");
    }
}

/// Forty clients and ten places: one of the places is for anybody, and of thirty that are cut some come back.
#[test]
fn what_is_left_out_has_the_papers_values() {
    let from = WORLD.find("[task").unwrap();
    let to = WORLD.find("[protocol").unwrap();
    let learns = format!("{}{LEARNS}{}", &WORLD[..from], &WORLD[to..]);
    let learns = changed(&changed(&learns, SIZES, ""), ALPHAS, "");
    let learns = changed(&changed(&learns, "clients = 12", "clients = 40"), "cohort = 5", "cohort = 10");
    let seen = checked(&learns, Rules::new([0.75, 0.01, 0.1], 10));
    assert!(seen.cutting == 40 && seen.by_chance == 40 && seen.brought_back >= 10 && seen.unknown > 0);
}

/// Four clients of the values √4·3 = 6, √9·1 = 3, √16·½ = 2 and √25·⅕ = 1, two at a time; two of the four are cut.
fn four(alphas: &str) -> String {
    format!(
        r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 6
[population]
clients = 4
data_size = {{ each = [4, 9, 16, 25] }}
[population.latency]
download = {{ constant = "1 s" }}
compute = {{ constant = "1 s" }}
upload = {{ constant = "1 s" }}
[task.scripted]
values = [0.5]
client_losses = [3.0, 1.0, 0.5, 0.2]
[protocol.synchronous]
cohort = 2
[policy.afl]
{alphas}
"#
    )
}

/// Who is unknown has the largest known value, 6; of equal values the larger ids are cut, so that clients 2 and 3 are
/// tried one after the other. With alpha2 = ln 3 / 3 a client whose value is 3 less than the best weighs a third.
///
/// | selection | values | cut | kept |
/// |---|---|---|---|
/// | 1 | 0, 0, 0, 0 | 3, 2 | 0, 1 |
/// | 2 | 6, 3, 6, 6 | 1, 3 | 0, 2 |
/// | 3 | 6, 3, 2, 6 | 2, 1 | 0, 3 |
/// | 4 to 6 | 6, 3, 2, 1 | 3, 2 | 0, 1 |
#[test]
fn six_selections_by_hand() {
    let expected = [
        ([0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0, 1]),
        ([6.0, 3.0, 6.0, 6.0], [0.5, 0.0, 0.5, 0.0], [0, 2]),
        ([6.0, 3.0, 2.0, 6.0], [0.5, 0.0, 0.0, 0.5], [0, 3]),
        ([6.0, 3.0, 2.0, 1.0], [0.75, 0.25, 0.0, 0.0], [0, 1]),
        ([6.0, 3.0, 2.0, 1.0], [0.75, 0.25, 0.0, 0.0], [0, 1]),
        ([6.0, 3.0, 2.0, 1.0], [0.75, 0.25, 0.0, 0.0], [0, 1]),
    ];
    // Three quarters of four are three, of which two may be cut: two places are active.
    for alpha1 in ["0.5", "0.75"] {
        let alphas = format!("alpha1 = {alpha1}\nalpha2 = 0.36620409622270322\nalpha3 = 0.0");
        for (round, (valuation, p, selected)) in rounds(&four(&alphas), 1, 6).iter().zip(expected) {
            let said = &round["explain"][0];
            assert_close(&said["valuation"], valuation.to_vec(), "valuation");
            assert_close(&said["p"], p.to_vec(), "p");
            let mut found = ids(&round["selected"]);
            assert_eq!((&ids(&said["active"]), ids(&said["uniform"]).len()), (&found, 0));
            found.sort_unstable();
            assert_eq!(found, selected, "{round}");
        }
    }
}

/// 0.29·100 is 28.999999999999996: as many are cut as are meant. Nothing is known, so that the largest ids are.
#[test]
fn rounding_cuts_nobody_less() {
    let scenario = four("alpha1 = 0.29");
    let scenario = changed(&scenario, "clients = 4\ndata_size = { each = [4, 9, 16, 25] }", "clients = 100");
    let scenario = changed(&scenario, "[3.0, 1.0, 0.5, 0.2]", &format!("{:?}", [0.5; 100]));
    let p = numbers(&rounds(&scenario, 1, 1)[0]["explain"][0]["p"]);
    assert!(p[..71].iter().all(|p| (p - 1.0 / 71.0).abs() < 1e-12) && p[71..] == [0.0; 29], "{p:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let losses = "client_losses = [0.9, 0.1, 0.5, 0.7, 0.3, 0.8, 1.5, 0.6, 0.2, 2.5, 1.1, 0.4]\n";
    for (from, to, part) in [
        ("alpha1 = 0.5", "alpha1 = 1.5", "alpha1"),
        ("alpha1 = 0.5", "alpha1 = -0.1", "alpha1"),
        ("alpha2 = 0.3", "alpha2 = -0.01", "alpha2"),
        ("alpha3 = 0.4", "alpha3 = 1.01", "alpha3"),
        ("alpha3 = 0.4", "alpha3 = -0.4", "alpha3"),
        (losses, "", "losses"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(answer.stderr.contains("afl") && answer.stderr.contains(part), "{to}: {}", answer.stderr);
    }
}
