//! Combinations of updates, found again in double precision: each client's change is that of a round of its own under
//! plain averaging, and the model of a round of many is what the rule makes of these changes. Cases by hand; what is
//! refused, and rounds with too few updates.

use super::feddyn::{Examples, TABLE, models, spread, table, table_world};
use super::support::{Answer, SCENARIO, Script, Workplace, changed, labelled, play, world};
use serde_json::Value;

/// Eleven clients with few classes each, and from 4 to many examples.
const WORLD: &str = r#"
name = "combinations"
seeds = 1
[stop]
rounds = 1
[population]
clients = 11
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.classification]
model = { mlp = { hidden = [6] } }
partition = { dirichlet = { alpha = 0.1, minimum = 4 } }
data = { synthetic = { classes = 5, height = 4, width = 4, train = 400, test = 40 } }
[training]
epochs = 2
batch = 8
optimizer = { sgd = { lr = 0.3 } }
[protocol.synchronous]
cohort = 11
[policy.random]
"#;

/// Change of a model, a number for each parameter.
pub type Change = Vec<f64>;

// ---------------------------------------------------------------------------------------------- the rules

pub fn minus(one: &[f64], other: &[f64]) -> Change {
    one.iter().zip(other).map(|(one, other)| one - other).collect()
}

/// Adds a multiple of a change.
pub fn add(to: &mut [f64], factor: f64, change: &[f64]) {
    to.iter_mut().zip(change).for_each(|(to, change)| *to += factor * change);
}

pub fn norm(change: &[f64]) -> f64 {
    change.iter().map(|number| number * number).sum::<f64>().sqrt()
}

/// The squared distance; of two changes it is the same to the bit from either side.
fn squared(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

pub fn mean_of(updates: &[Change], weights: &[f64]) -> Change {
    assert_eq!(updates.len(), weights.len());
    let total: f64 = weights.iter().sum();
    let mut mean = vec![0.0; updates[0].len()];
    updates.iter().zip(weights).for_each(|(update, weight)| add(&mut mean, weight / total, update));
    mean
}

pub fn plain_mean(updates: &[Change]) -> Change {
    mean_of(updates, &vec![1.0; updates.len()])
}

/// Of an even count the mean of the middle two. The numbers are left in order.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let half = numbers.len() / 2;
    if numbers.len() % 2 == 1 { numbers[half] } else { (numbers[half - 1] + numbers[half]) / 2.0 }
}

/// A rule for each number by itself.
fn by_place(updates: &[Change], rule: impl Fn(&mut [f64]) -> f64) -> Change {
    let of_place = |place: usize| {
        let mut numbers: Vec<f64> = updates.iter().map(|update| update[place]).collect();
        rule(&mut numbers)
    };
    (0..updates[0].len()).map(of_place).collect()
}

fn geometric_median(updates: &[Change], weights: &[f64], iterations: usize, nu: f64) -> Change {
    let mut middle = mean_of(updates, weights);
    for _ in 0..iterations {
        let near = |update: &Change| squared(update, &middle).sqrt().max(nu);
        let weights: Vec<f64> = updates.iter().zip(weights).map(|(update, weight)| weight / near(update)).collect();
        middle = mean_of(updates, &weights);
    }
    middle
}

/// Some of the updates, best first: by the sum of the squared distances to so many nearest others, then by client.
fn ranked(updates: &[Change], left: &[usize], neighbours: usize) -> Vec<usize> {
    let score = |one: usize| -> f64 {
        let others = left.iter().filter(|&&other| other != one);
        let mut distances: Vec<f64> = others.map(|&other| squared(&updates[one], &updates[other])).collect();
        distances.sort_by(f64::total_cmp);
        distances.iter().take(neighbours).sum()
    };
    let mut scores: Vec<(f64, usize)> = left.iter().map(|&one| (score(one), one)).collect();
    scores.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    scores.into_iter().map(|(_, client)| client).collect()
}

/// The plain mean of the best by Krum's score.
fn krum(updates: &[Change], byzantine: usize, keep: usize) -> Change {
    let all: Vec<usize> = (0..updates.len()).collect();
    let best = ranked(updates, &all, updates.len() - byzantine - 2);
    plain_mean(&best[..keep].iter().map(|&client| updates[client].clone()).collect::<Vec<_>>())
}

fn bulyan(updates: &[Change], byzantine: usize) -> Change {
    let mut left: Vec<usize> = (0..updates.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < updates.len() - 2 * byzantine {
        let neighbours = left.len().saturating_sub(byzantine + 2).max(1);
        let best = ranked(updates, &left, neighbours)[0];
        left.retain(|&client| client != best);
        chosen.push(updates[best].clone());
    }
    by_place(&chosen, |numbers| {
        let middle = median(numbers);
        let far = |number: f64| (number - middle).abs();
        numbers.sort_by(|&one, &other| far(one).total_cmp(&far(other)).then(one.total_cmp(&other)));
        let nearest = &numbers[..updates.len() - 4 * byzantine];
        nearest.iter().sum::<f64>() / nearest.len() as f64
    })
}

/// The change, shortened to a norm if it is longer.
fn shortened(change: &[f64], most: f64) -> Change {
    let factor = (most / norm(change)).min(1.0);
    change.iter().map(|number| number * factor).collect()
}

pub fn centred(updates: &[Change], last: &[f64], radius: f64, iterations: usize) -> Change {
    let mut centre = last.to_vec();
    for _ in 0..iterations {
        let near: Vec<Change> = updates.iter().map(|update| shortened(&minus(update, &centre), radius)).collect();
        add(&mut centre, 1.0, &plain_mean(&near));
    }
    centre
}

pub fn assert_model(found: &[f32], expected: &[f64], tolerance: f64, name: &str) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (place, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let far = (f64::from(found) - expected).abs();
        assert!(far < tolerance * expected.abs().max(1.0), "{name}, parameter {place}: {found}, by hand {expected}");
    }
}

// ---------------------------------------------------------------------------------------------- one round

/// Entries, and the change that each makes of the updates of a round.
fn cases(updates: &[Change], examples: &[f64]) -> Vec<(String, Change)> {
    let count = updates.len();
    let mut norms: Vec<f64> = updates.iter().map(|update| norm(update)).collect();
    norms.sort_by(f64::total_cmp);
    // Some updates are longer, some are not.
    let radius = ((norms[0] * norms[count - 1]).sqrt() * 1000.0).round() / 1000.0;
    assert!(norms[0] < radius && radius < norms[count - 1], "{norms:?}");
    let mut cases = vec![("[algorithm.median]\n".to_owned(), by_place(updates, median))];
    for byzantine in [1, 2] {
        let line = format!("byzantine = {byzantine}\n");
        cases.push((format!("[algorithm.krum]\n{line}"), krum(updates, byzantine, 1)));
        cases.push((format!("[algorithm.multi-krum]\n{line}"), krum(updates, byzantine, count - byzantine)));
        cases.push((format!("[algorithm.multi-krum]\n{line}keep = 3\n"), krum(updates, byzantine, 3)));
        if count >= 4 * byzantine + 3 {
            cases.push((format!("[algorithm.bulyan]\n{line}"), bulyan(updates, byzantine)));
        }
    }
    let nothing = vec![0.0; updates[0].len()];
    let entry = format!("[algorithm.centred-clipping]\nradius = {radius:?}\n");
    cases.push((format!("{entry}iterations = 4\n"), centred(updates, &nothing, radius, 4)));
    cases.push((entry, centred(updates, &nothing, radius, 1)));
    let alike = vec![1.0; count];
    for (weighting, weights) in [("uniform", &alike[..]), ("data-size", examples)] {
        let section = format!("[aggregation]\nweighting = \"{weighting}\"\n");
        // At last with a ν that some distances are below.
        for (keys, iterations, nu) in [
            (String::new(), 3, 1e-6),
            ("iterations = 1\n".to_owned(), 1, 1e-6),
            (format!("iterations = 8\nnu = {radius:?}\n"), 8, radius),
        ] {
            let found = geometric_median(updates, weights, iterations, nu);
            cases.push((format!("[algorithm.geometric-median]\n{keys}{section}"), found));
        }
        let short: Vec<Change> = updates.iter().map(|update| shortened(update, radius)).collect();
        let entry = format!("[algorithm.norm-clipping]\nnorm = {radius:?}\n{section}");
        cases.push((entry, mean_of(&short, weights)));
    }
    cases
}

/// Of an odd and of an even number of updates, in whatever order their clients were selected.
#[test]
fn a_round_of_many_is_the_rule_on_rounds_of_one() {
    for seed in [1, 2] {
        let plain = world(WORLD, seed);
        let start = plain.task.as_ref().unwrap().initial_model(0, &plain.streams);
        let start: Vec<f64> = start.into_iter().map(f64::from).collect();
        let examples: Vec<f64> = labelled(&plain).partition.sizes().map(|size| size as f64).collect();
        let alone = |client: u32| {
            let model = models(&plain, &[&[client]]).remove(0);
            minus(&model.into_iter().map(f64::from).collect::<Vec<_>>(), &start)
        };
        let updates: Vec<Change> = (0..11).map(alone).collect();
        for count in [11, 8] {
            let (updates, examples) = (&updates[..count], &examples[..count]);
            let selected: Vec<u32> = (0..count as u32).rev().collect();
            let means = [plain_mean(updates), mean_of(updates, examples)];
            for (entry, change) in cases(updates, examples) {
                for mean in &means {
                    let far = norm(&minus(&change, mean));
                    assert!(far > 1e-3, "{entry} is hardly another rule: {far}, seed {seed}, {count} updates");
                }
                let mut expected = start.clone();
                add(&mut expected, 1.0, &change);
                let world = world(&format!("{WORLD}{entry}"), seed);
                let found = models(&world, &[&selected[..]]).remove(0);
                assert_model(&found, &expected, 1e-6, &format!("{entry}seed {seed}, {count} updates"));
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- by hand

/// The bias after a round in which clients with these numbers move it: each by its own number, because one step at
/// rate ½ along the slope −2y goes y far. The other parameters see features that are 0.
fn bias(numbers: &[f64], entry: &str, selected: &[u32]) -> f64 {
    let clients: Vec<Examples> = numbers.iter().map(|&number| vec![[0.0, 0.0, number]]).collect();
    let count = clients.len();
    let text = changed(TABLE, "clients = 9", &format!("clients = {count}"));
    let text = changed(&text, "cohort = 9", &format!("cohort = {count}"));
    let text = changed(&changed(&text, "steps = 3", "steps = 1"), "lr = 0.125", "lr = 0.5");
    let model = models(&table_world(&clients, &format!("{text}{entry}")), &[selected]).remove(0);
    assert_eq!(&model[..2], &[0.0; 2], "{entry}");
    f64::from(model[2])
}

/// Krum with f = 1 looks at the two nearest of four others: 0 and 3 have 1 + 4, 1 and 2 have 1 + 1.
///
/// Bulyan with f = 1 on 0, 2, 1, 3, 100, −50, 4 chooses 2 (1 + 1 + 4 + 4 of four neighbours), then 1 (1 + 4 + 9 as
/// 3: client 2 before 3), 3, 0 (16 as 4: client 0 before 6), and −50 (54² as 4: client 5 before 6). Nearest to their
/// median 1 are 1, 0 and 2. Of 0, 1, 2, 4, 7 and two far away it chooses the five; nearest to 2 are 2, 1 and, of 0 and
/// 4, the smaller.
///
/// q-FedAvg with q = 1 on y = 2 and 1 has F = y², L = 2, d = −2y: it moves by Σ 2y³ / Σ (4y² + 2y²) = 18/30.
#[test]
fn single_numbers_by_hand() {
    let five = [0.0, 2.0, 1.0, 3.0, 100.0];
    let all: [u32; 5] = [0, 1, 2, 3, 4];
    for (entry, selected, expected) in [
        ("[algorithm.fedavg]\n", &all[..], 21.2),
        ("[algorithm.median]\n", &all[..], 2.0),
        ("[algorithm.median]\n", &all[..4], 1.5),
        ("[algorithm.median]\n", &all[3..], 51.5),
        ("[algorithm.geometric-median]\nnu = 1000.0\n", &all[..], 21.2),
        ("[algorithm.krum]\nbyzantine = 1\n", &all[..], 2.0),
        ("[algorithm.multi-krum]\nbyzantine = 1\n", &all[..], 1.5),
        ("[algorithm.multi-krum]\nbyzantine = 1\nkeep = 3\n", &all[..], 1.0),
        ("[algorithm.norm-clipping]\nnorm = 2.0\n", &all[..], 1.4),
        ("[algorithm.centred-clipping]\n", &all[..], 16.0 / 5.0),
        ("[algorithm.centred-clipping]\nradius = 2.0\n", &all[..], 1.4),
        // From 1.4: −1.4, 0.6, −0.4, 1.6 and 2.
        ("[algorithm.centred-clipping]\nradius = 2.0\niterations = 2\n", &all[..], 1.88),
        ("[algorithm.qfedavg]\nq = 1.0\n", &all[1..3], 0.6),
        ("[algorithm.qfedavg]\n", &all[1..3], 0.6),
    ] {
        let found = bias(&five, entry, selected);
        assert!((found - expected).abs() < 1e-5, "{entry}: {found}, by hand {expected}");
    }
    let seven: [u32; 7] = [6, 5, 4, 3, 2, 1, 0];
    for (numbers, expected) in
        [([0.0, 2.0, 1.0, 3.0, 100.0, -50.0, 4.0], 1.0), ([0.0, 1.0, 2.0, 4.0, 7.0, 1000.0, -1000.0], 1.0)]
    {
        let found = bias(&numbers, "[algorithm.bulyan]\nbyzantine = 1\n", &seven);
        assert!((found - expected).abs() < 1e-5, "{numbers:?}: {found}, by hand {expected}");
    }
}

// ---------------------------------------------------------------------------------------------- too few

/// The table's clients under a deadline that client 8 never meets.
fn with_a_late_client() -> String {
    let each = ["\"2 s\""; 8].join(", ");
    let compute = format!("compute = {{ constant = {{ each = [{each}, \"100 s\"] }} }}");
    let text = changed(TABLE, "compute = { constant = \"2 s\" }", &compute);
    changed(&text, "[protocol.synchronous]\ncohort = 9\n", "[protocol.deadline]\ncohort = 9\ndeadline = \"10 s\"\n")
}

/// Krum with f = 2 needs 7 updates. A round of 6 leaves the model as it was: the next one goes on from there.
#[test]
fn a_round_with_too_few_updates_is_abandoned() {
    let world = table_world(&spread(), &format!("{}[algorithm.krum]\nbyzantine = 2\n", with_a_late_client()));
    let (enough, few): ([u32; 7], [u32; 7]) = ([0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 8]);
    let between = play(&world, Box::new(Script::new(&[&enough, &few, &enough])), 3).unwrap().seen;
    let is_abandoned: Vec<bool> = between.rounds.iter().map(|round| round.is_abandoned).collect();
    assert_eq!(is_abandoned, [false, true, false]);
    assert_eq!((between.rounds[1].arrived.len(), &between.rounds[1].late[..]), (6, &[8][..]));
    let without = models(&world, &[&enough, &enough]);
    assert_eq!(between.models.len(), 2, "an abandoned round makes no model");
    for (found, expected) in between.models.iter().zip(&without) {
        let expected: Vec<f64> = expected.iter().map(|&number| f64::from(number)).collect();
        assert_model(found, &expected, 1e-6, "around an abandoned round");
    }
    assert_ne!(without[0], without[1]);
}

/// Eight of nine updates come in time: enough for f = 2, too few for f = 3.
#[test]
fn an_abandoned_round_is_written_as_such() {
    for (byzantine, is_abandoned) in [(2, false), (3, true)] {
        let text = format!("{}[algorithm.krum]\nbyzantine = {byzantine}\n", with_a_late_client());
        let place = Workplace::with(&changed(&text, "rounds = 9", "rounds = 3"));
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--models"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
        assert_eq!(rounds.len(), 3);
        for round in &rounds {
            assert_eq!(round["arrived"].as_array().unwrap().len(), 8, "{round}");
            assert_eq!(
                round.get("abandoned").is_some_and(|found| *found == Value::Bool(true)),
                is_abandoned,
                "{round}"
            );
        }
        // The model starts at zero. Behind its length and a header, the file has nothing but numbers.
        let file = place.read("out/runs/random-s1/model.safetensors");
        let (length, rest) = file.split_first_chunk::<8>().unwrap();
        let numbers = &rest[u64::from_le_bytes(*length) as usize..];
        assert_eq!(numbers.len(), 3 * 4);
        assert_eq!(numbers.iter().all(|&byte| byte == 0), is_abandoned, "{numbers:?}");
    }
}

/// The answer to a scenario, and where it was run.
fn answered(scenario: &str) -> (Workplace, Answer) {
    let place = Workplace::with(scenario);
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    (place, answer)
}

#[test]
fn cohorts_that_are_too_small_are_refused() {
    // Of 11 clients: 2f + 3 and 4f + 3.
    for (name, byzantine) in [("krum", 4), ("multi-krum", 4), ("bulyan", 2)] {
        let entry = |byzantine: u32| format!("{WORLD}[algorithm.{name}]\nbyzantine = {byzantine}\n");
        let (_, answer) = answered(&entry(byzantine));
        assert_eq!(answer.code, 0, "{name}: {answer:?}");
        let (place, answer) = answered(&entry(byzantine + 1));
        assert_eq!(answer.code, 2, "{name}: {answer:?}");
        assert!(answer.stderr.contains(&format!("algorithm.{name}")), "{}", answer.stderr);
        assert!(!place.path("out").exists(), "nothing is left of {name}");
    }
}

#[test]
fn weights_and_steps_without_a_meaning_are_refused() {
    let section = "[aggregation]\nweighting = \"data-size\"\n";
    for (name, keys) in [
        ("median", ""),
        ("krum", "byzantine = 1\n"),
        ("multi-krum", "byzantine = 1\n"),
        ("bulyan", "byzantine = 1\n"),
        ("centred-clipping", ""),
        ("feddyn", ""),
    ] {
        let entry = format!("[algorithm.{name}]\n{keys}");
        let (_, answer) = answered(&format!("{WORLD}{entry}{section}"));
        assert_eq!(answer.code, 2, "{name}: {answer:?}");
        let parts = ["data-size".to_owned(), format!("algorithm.{name}")];
        assert!(parts.iter().all(|part| answer.stderr.contains(part)), "{parts:?}: {}", answer.stderr);
        // Left out, the weighting is the algorithm's.
        let (place, answer) = answered(&format!("{WORLD}{entry}"));
        assert_eq!(answer.code, 0, "{name}: {answer:?}");
        assert!(place.text("out/scenario.toml").contains("weighting = \"uniform\""), "{name}");
    }
    let adam = "[aggregation]\nserver = { adam = { lr = 0.1 } }\n";
    let (_, answer) = answered(&format!("{WORLD}[algorithm.feddyn]\n{adam}"));
    assert!(answer.code == 2 && answer.stderr.contains("algorithm.feddyn"), "{answer:?}");
    let (_, answer) = answered(&format!("{WORLD}[algorithm.median]\n{adam}"));
    assert_eq!(answer.code, 0, "a median goes with every step of the server: {answer:?}");
}
