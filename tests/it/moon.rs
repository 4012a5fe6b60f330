//! MOON over several rounds, on a table that the test writes: every step of every client in double precision, with
//! slopes by differences, beside the run.

use super::combinations::{Change, add, assert_model, minus, norm};
use super::feddyn::models;
use super::support::{SCENARIO, Workplace, changed, labelled};
use fedgenie::experiment::Experiment;
use fedgenie::scenario::tree;
use fedgenie::task::{DataCache, Task};
use fedgenie::world::World;
use std::collections::BTreeMap;
use std::path::Path;

const SCENE: &str = r#"
name = "moon"
seeds = 1
[stop]
rounds = 9
[population]
clients = 3
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.classification]
partition = "by-column"
data = { csv = { train = "table.csv", test = "table.csv", label = "kind", group = "user" } }
model = { mlp = { hidden = [4] } }
[training]
steps = 2
batch = "all"
optimizer = { sgd = { lr = 0.25 } }
[aggregation]
weighting = "uniform"
[protocol.synchronous]
cohort = 3
[policy.random]
"#;
const INPUTS: usize = 2;
const HIDDEN: usize = 4;
const CLASSES: usize = 3;
const TURNS: [&[u32]; 5] = [&[0, 1, 2], &[0], &[1, 2], &[0, 1, 2], &[2, 0]];

type Examples = Vec<([f64; INPUTS], usize)>;

/// Three clients, whose classes lie around other corners.
fn spread() -> Vec<Examples> {
    let example = |client: usize, index: usize| {
        let kind = (client + index) % CLASSES;
        let (a, b) = ([1.5, -1.0, 0.25][kind] + client as f64 / 4.0, [0.5, 1.0, -1.25][kind] - index as f64 / 16.0);
        ([a, b], kind)
    };
    (0..3).map(|client| (0..4 + client).map(|index| example(client, index)).collect()).collect()
}

fn world(text: &str) -> World {
    let place = Workplace::new();
    let mut table = "user,a,b,kind\n".to_owned();
    for (client, examples) in spread().iter().enumerate() {
        examples.iter().for_each(|([a, b], kind)| table += &format!("{client},{a},{b},{kind}\n"));
    }
    place.write("table.csv", table);
    let root = tree::parse(Path::new(SCENARIO), text).unwrap();
    let experiment = Experiment::from_tree(&root, &place.path(""), None).unwrap();
    experiment.world(0, 1, &DataCache::default()).unwrap()
}

/// The hidden layer, after its activation.
fn hidden(model: &[f64], features: &[f64; INPUTS]) -> Vec<f64> {
    let unit = |unit: usize| {
        let weights = &model[unit * INPUTS..][..INPUTS];
        let sum: f64 = weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum();
        (sum + model[HIDDEN * INPUTS + unit]).max(0.0)
    };
    (0..HIDDEN).map(unit).collect()
}

fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let norms = norm(one) * norm(other);
    let product: f64 = one.iter().zip(other).map(|(one, other)| one * other).sum();
    if norms == 0.0 { 0.0 } else { product / norms }
}

/// The cross-entropy, and `mu` times the contrast with the model that was sent and with the last result.
fn loss(model: &[f64], examples: &Examples, (sent, previous): (&[f64], &[f64]), [mu, temperature]: [f64; 2]) -> f64 {
    let output = HIDDEN * (INPUTS + 1);
    let one = |(features, kind): &([f64; INPUTS], usize)| {
        let seen = hidden(model, features);
        let score = |class: usize| {
            let weights = &model[output + class * HIDDEN..][..HIDDEN];
            let sum: f64 = weights.iter().zip(&seen).map(|(weight, unit)| weight * unit).sum();
            sum + model[output + CLASSES * HIDDEN + class]
        };
        let entropy = (0..CLASSES).map(|class| score(class).exp()).sum::<f64>().ln() - score(*kind);
        let near = (cosine(&seen, &hidden(sent, features)) / temperature).exp();
        let far = (cosine(&seen, &hidden(previous, features)) / temperature).exp();
        entropy - mu * (near / (near + far)).ln()
    };
    examples.iter().map(one).sum::<f64>() / examples.len() as f64
}

/// The models after each round.
fn course(start: &[f64], keys: [f64; 2], remembers: bool) -> Vec<Change> {
    const STEP: f64 = 1e-6;
    let (clients, mut model, mut last) = (spread(), start.to_vec(), BTreeMap::<u32, Change>::new());
    let mut course = Vec::new();
    for turn in TURNS {
        let sent = model.clone();
        for &client in turn {
            let previous = last.get(&client).filter(|_| remembers).unwrap_or(&sent).clone();
            let mut own = sent.clone();
            for _ in 0..2 {
                let at = |place: usize, by: f64| {
                    let mut moved = own.clone();
                    moved[place] += by;
                    loss(&moved, &clients[client as usize], (&sent, &previous), keys)
                };
                let slopes: Change =
                    (0..own.len()).map(|place| (at(place, STEP) - at(place, -STEP)) / (2.0 * STEP)).collect();
                add(&mut own, -0.25, &slopes);
            }
            add(&mut model, 1.0 / turn.len() as f64, &minus(&own, &sent));
            last.insert(client, own);
        }
        course.push(model.clone());
    }
    course
}

#[test]
fn moon_is_found_again() {
    let first = world(SCENE);
    let mut start = vec![0.0_f32; HIDDEN * (INPUTS + 1) + CLASSES * (HIDDEN + 1)];
    labelled(&first).init(0, &first.streams, &mut start);
    let start: Change = start.into_iter().map(f64::from).collect();
    let averaged = course(&start, [0.0, 1.0], true);
    for (keys, numbers) in
        [("mu = 0.5\ntemperature = 0.25\n", [0.5, 0.25]), ("", [1.0, 0.5]), ("mu = 5.0\n", [5.0, 0.5])]
    {
        let expected = course(&start, numbers, true);
        let found = models(&world(&format!("{SCENE}[algorithm.moon]\n{keys}")), &TURNS);
        for (round, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_model(found, expected, 2e-5, &format!("{keys}round {}", round + 1));
        }
        // Before anything is remembered both models are one, and the contrast has no slope.
        assert!(norm(&minus(&expected[0], &averaged[0])) < 1e-6);
        assert!(norm(&minus(&expected[4], &averaged[4])) > 1e-3, "{keys}the contrast counts");
        let forgetful = course(&start, numbers, false);
        assert!(norm(&minus(&expected[4], &forgetful[4])) > 1e-3, "{keys}the last result counts");
    }
}

#[test]
fn a_model_without_a_hidden_layer_is_refused() {
    let text = changed(SCENE, "[task.classification]", "[task.softmax-regression]");
    let text = changed(&text, "model = { mlp = { hidden = [4] } }\n", "");
    let place = Workplace::with(&format!("{text}[algorithm.moon]\n"));
    place.write("table.csv", "user,a,b,kind\n0,1,2,0\n1,2,1,1\n2,0,0,2\n");
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("algorithm.moon"), "{answer:?}");
    assert!(answer.stderr.contains("hidden layer"), "{answer:?}");
}
