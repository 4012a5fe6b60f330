//! Algorithms over several rounds, on a table of numbers that the test writes: every step of every client, and what
//! clients and server remember, in double precision beside the run. FedDyn, centred clipping and q-FedAvg.

use super::combinations::{Change, add, assert_model, centred, mean_of, minus, norm, plain_mean};
use super::support::{SCENARIO, Script, Workplace, changed, play};
use fedgenie::experiment::Experiment;
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::world::World;
use std::path::Path;

/// Clients of linear regression, with steps on all their examples.
pub const TABLE: &str = r#"
name = "table"
seeds = 1
[stop]
rounds = 9
[population]
clients = 9
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.linear-regression]
partition = "by-column"
data = { csv = { train = "table.csv", test = "table.csv", target = "y", group = "user" } }
[training]
steps = 3
batch = "all"
optimizer = { sgd = { lr = 0.125 } }
[protocol.synchronous]
cohort = 9
[policy.random]
"#;
const STEPS: usize = 3;
const RATE: f64 = 0.125;

/// Everybody, some, others, everybody, one, some.
pub const TURNS: [&[u32]; 6] =
    [&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[5, 0, 3], &[8, 1], &[0, 1, 2, 3, 4, 5, 6, 7, 8], &[3], &[2, 3, 5, 8]];

/// A client's examples: two features, and the number to predict.
pub type Examples = Vec<[f64; 3]>;

/// Nine clients with 3 to 11 examples, whose lines differ.
pub fn spread() -> Vec<Examples> {
    let mut state = 12_345_u64;
    // Multiples of 1/32 from −1 to 1, exact in single precision.
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 58) as f64 / 32.0 - 1.0
    };
    let mut clients = Vec::new();
    for client in 0..9_u32 {
        let (slope, level) = (f64::from(client % 4) - 1.5, f64::from(client) * 0.25 - 0.5);
        let mut examples = Vec::new();
        for _ in 0..3 + client {
            let (a, b, noise) = (draw(), draw(), draw());
            examples.push([a, b, slope * a + 0.5 * b + level + 0.5 * noise]);
        }
        clients.push(examples);
    }
    clients
}

/// The file of the examples.
pub fn table(clients: &[Examples]) -> String {
    let mut text = "user,a,b,y\n".to_owned();
    for (client, examples) in clients.iter().enumerate() {
        for [a, b, y] in examples {
            text += &format!("{client},{a},{b},{y}\n");
        }
    }
    text
}

/// The world of a scenario beside the file of these examples.
pub fn table_world(clients: &[Examples], scenario: &str) -> World {
    let place = Workplace::new();
    place.write("table.csv", table(clients));
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let experiment = Experiment::from_tree(&root, &place.path(""), None).unwrap();
    experiment.world(0, 1, &DataCache::default()).unwrap()
}

/// The model after each round of given selections.
pub fn models(world: &World, turns: &[&[u32]]) -> Vec<Vec<f32>> {
    let models = play(world, Box::new(Script::new(turns)), turns.len() as u32).unwrap().seen.models;
    assert_eq!(models.len(), turns.len(), "each round makes a model");
    models
}

// ---------------------------------------------------------------------------------------------- jobs

fn residual(model: &[f64], [a, b, y]: [f64; 3]) -> f64 {
    model[0] * a + model[1] * b + model[2] - y
}

/// The mean squared error.
fn loss(model: &[f64], examples: &[[f64; 3]]) -> f64 {
    let squares = examples.iter().map(|&example| residual(model, example)).map(|residual| residual * residual);
    squares.sum::<f64>() / examples.len() as f64
}

/// Its slope by the two weights and the bias.
fn slope(model: &[f64], examples: &[[f64; 3]]) -> Change {
    let mut slope = vec![0.0; 3];
    for &[a, b, y] in examples {
        add(&mut slope, 2.0 * residual(model, [a, b, y]) / examples.len() as f64, &[a, b, 1.0]);
    }
    slope
}

/// The change of a job; `more` is added to each slope, by the parameter's place and value.
pub fn job(start: &[f64], examples: &[[f64; 3]], more: impl Fn(usize, f64) -> f64) -> Change {
    job_of(STEPS, start, examples, more)
}

/// The change of a job of so many steps.
pub fn job_of(steps: usize, start: &[f64], examples: &[[f64; 3]], more: impl Fn(usize, f64) -> f64) -> Change {
    let mut model = start.to_vec();
    for _ in 0..steps {
        let slopes = slope(&model, examples);
        for (place, (number, slope)) in model.iter_mut().zip(slopes).enumerate() {
            *number -= RATE * (slope + more(place, *number));
        }
    }
    minus(&model, start)
}

/// The changes of plain jobs.
fn changes(model: &[f64], clients: &[Examples], turn: &[u32]) -> Vec<Change> {
    turn.iter().map(|&client| job(model, &clients[client as usize], |_, _| 0.0)).collect()
}

/// The models of rounds whose change follows from the model and from who was selected.
fn course(mut change: impl FnMut(&[f64], &[u32]) -> Change) -> Vec<Vec<f64>> {
    let mut model = vec![0.0; 3];
    let round = |turn: &&[u32]| {
        let change = change(&model, turn);
        add(&mut model, 1.0, &change);
        model.clone()
    };
    TURNS.iter().map(round).collect()
}

/// Runs an entry, and compares each round.
fn assert_course(clients: &[Examples], entry: &str, expected: &[Vec<f64>]) {
    let found = models(&table_world(clients, &format!("{TABLE}{entry}")), &TURNS);
    for (round, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_model(found, expected, 1e-5, &format!("{entry}round {}", round + 1));
    }
}

/// The largest distance of the models of two courses.
fn apart(one: &[Vec<f64>], other: &[Vec<f64>]) -> f64 {
    one.iter().zip(other).map(|(one, other)| norm(&minus(one, other))).fold(0.0, f64::max)
}

/// The steps here are those of plain averaging there, by either weighting.
#[test]
fn the_jobs_are_those_of_plain_averaging() {
    let clients = spread();
    for weighting in ["uniform", "data-size"] {
        let expected = course(|model, turn| {
            let sizes = turn.iter().map(|&client| clients[client as usize].len() as f64);
            let weights: Vec<f64> = sizes.map(|size| if weighting == "uniform" { 1.0 } else { size }).collect();
            mean_of(&changes(model, &clients, turn), &weights)
        });
        assert_course(&clients, &format!("[aggregation]\nweighting = \"{weighting}\"\n"), &expected);
    }
}

// ---------------------------------------------------------------------------------------------- FedDyn

/// The course of FedDyn, where `all` stands for N.
fn feddyn(clients: &[Examples], alpha: f64, all: f64) -> Vec<Vec<f64>> {
    let mut server = vec![0.0; 3];
    let mut own = vec![vec![0.0; 3]; clients.len()];
    course(|model, turn| {
        let one = |&client: &u32| {
            let (examples, own) = (&clients[client as usize], &own[client as usize]);
            job(model, examples, |place, number| alpha * (number - model[place]) - own[place])
        };
        let changes: Vec<Change> = turn.iter().map(one).collect();
        for (&client, change) in turn.iter().zip(&changes) {
            add(&mut own[client as usize], -alpha, change);
            add(&mut server, -alpha / all, change);
        }
        let mut change = plain_mean(&changes);
        add(&mut change, -1.0 / alpha, &server);
        change
    })
}

/// Clients come again after rounds of others, so that what they remember is old; a few of nine take part.
#[test]
fn feddyn_is_found_again() {
    let clients = spread();
    let averaged = course(|model, turn| plain_mean(&changes(model, &clients, turn)));
    for (keys, alpha) in [("", 0.01), ("alpha = 0.1\n", 0.1), ("alpha = 0.75\n", 0.75)] {
        let expected = feddyn(&clients, alpha, 9.0);
        assert!(apart(&expected, &averaged) > 0.01, "{keys}FedDyn is not averaging");
        assert!(apart(&expected, &feddyn(&clients, alpha, 3.0)) > 0.01, "{keys}N counts");
        assert_course(&clients, &format!("[algorithm.feddyn]\n{keys}"), &expected);
    }
    assert!(apart(&feddyn(&clients, 0.1, 9.0), &feddyn(&clients, 0.75, 9.0)) > 0.01, "alpha counts");
}

// ---------------------------------------------------------------------------------------------- centred clipping

#[test]
fn centred_clipping_goes_on_from_its_last_change() {
    let clients = spread();
    for (iterations, radius) in [(1, 0.5), (3, 0.25)] {
        let (mut shortened, mut whole) = (0, 0);
        let mut last = vec![0.0; 3];
        let expected = course(|model, turn| {
            let changes = changes(model, &clients, turn);
            let far = changes.iter().filter(|change| norm(&minus(change, &last)) > radius).count();
            (shortened, whole) = (shortened + far, whole + changes.len() - far);
            last = centred(&changes, &last, radius, iterations);
            last.clone()
        });
        assert!(shortened > 3 && whole > 3, "{shortened} are far, {whole} are near");
        let forgetful = course(|model, turn| centred(&changes(model, &clients, turn), &[0.0; 3], radius, iterations));
        assert!(apart(&expected, &forgetful) > 0.01, "the last change counts");
        let entry = format!("[algorithm.centred-clipping]\nradius = {radius:?}\niterations = {iterations}\n");
        assert_course(&clients, &entry, &expected);
    }
}

// ---------------------------------------------------------------------------------------------- agnostic

/// The nearest numbers of at least 0 whose sum is 1, by bisection.
fn simplex(numbers: &[f64]) -> Vec<f64> {
    let moved = |shift: f64| numbers.iter().map(move |number| (number + shift).max(0.0));
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if moved(middle).sum::<f64>() < 1.0 { low = middle } else { high = middle }
    }
    moved(low).collect()
}

/// Losses move the mixture, by which changes count; some clients end without any weight.
#[test]
fn agnostic_learning_is_found_again() {
    let clients = spread();
    let averaged = course(|model, turn| plain_mean(&changes(model, &clients, turn)));
    for (keys, lr) in [("", 0.1), ("lr = 0.02\n", 0.02), ("lr = 0.5\n", 0.5)] {
        let mut mixture = vec![1.0 / 9.0; 9];
        let mut without = 0;
        let expected = course(|model, turn| {
            let scale = 9.0 / turn.len() as f64;
            let mut change = vec![0.0; 3];
            let old = mixture.clone();
            for (&client, own) in turn.iter().zip(changes(model, &clients, turn)) {
                add(&mut change, scale * old[client as usize], &own);
                mixture[client as usize] += lr * scale * loss(model, &clients[client as usize]);
            }
            mixture = simplex(&mixture);
            without += mixture.iter().filter(|share| **share == 0.0).count();
            change
        });
        assert!(apart(&expected, &averaged) > 0.01, "{keys}it is not averaging");
        assert!(lr < 0.1 || without > 3, "{keys}the projection cuts: {without}");
        assert_course(&clients, &format!("[algorithm.afl-minimax]\n{keys}"), &expected);
    }
}

// ---------------------------------------------------------------------------------------------- q-FedAvg

/// The change by losses `F` and changes `δ`, where `d = −L δ`.
fn qfedavg(losses: &[f64], changes: &[Change], q: f64) -> Change {
    let lipschitz = 1.0 / RATE;
    let mut sum = vec![0.0; 3];
    let mut divisor = 0.0;
    for (loss, change) in losses.iter().zip(changes) {
        let loss = loss + 1e-10;
        let slope: Change = change.iter().map(|number| -lipschitz * number).collect();
        add(&mut sum, loss.powf(q), &slope);
        divisor += q * loss.powf(q - 1.0) * norm(&slope) * norm(&slope) + lipschitz * loss.powf(q);
    }
    sum.iter().map(|number| -number / divisor).collect()
}

/// With q = 0 it is the plain mean.
#[test]
fn qfedavg_is_found_again() {
    let clients = spread();
    let averaged = course(|model, turn| plain_mean(&changes(model, &clients, turn)));
    for (keys, q) in [("q = 0.0\n", 0.0), ("q = 0.5\n", 0.5), ("", 1.0), ("q = 2.5\n", 2.5)] {
        let expected = course(|model, turn| {
            let losses: Vec<f64> = turn.iter().map(|&client| loss(model, &clients[client as usize])).collect();
            qfedavg(&losses, &changes(model, &clients, turn), q)
        });
        let far = apart(&expected, &averaged);
        assert!(if q == 0.0 { far < 1e-9 } else { far > 0.01 }, "{keys}{far} from averaging");
        assert_course(&clients, &format!("[algorithm.qfedavg]\n{keys}"), &expected);
    }
}

/// In small batches a job meets its losses at models that have moved; those of q-FedAvg are at the model that was sent,
/// here zero. The changes are those of rounds of one under averaging.
#[test]
fn losses_of_qfedavg_are_at_the_model_that_was_sent() {
    let clients = spread();
    let text = changed(TABLE, "steps = 3\nbatch = \"all\"\n", "epochs = 2\nbatch = 2\n");
    let plain = table_world(&clients, &text);
    let alone = |client: u32| -> Change { models(&plain, &[&[client]]).remove(0).into_iter().map(f64::from).collect() };
    let turn: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
    let changes: Vec<Change> = turn.into_iter().map(alone).collect();
    let losses: Vec<f64> = clients.iter().map(|examples| loss(&[0.0; 3], examples)).collect();
    for q in [1.0, 2.0] {
        let expected = qfedavg(&losses, &changes, q);
        let entry = format!("[algorithm.qfedavg]\nq = {q:?}\n");
        let found = models(&table_world(&clients, &format!("{text}{entry}")), &[&turn]).remove(0);
        assert_model(&found, &expected, 1e-6, &entry);
        assert!(norm(&minus(&expected, &plain_mean(&changes))) > 0.01, "q-FedAvg is not averaging");
    }
}
