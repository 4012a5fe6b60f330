//! Partial work: clients with epochs and steps of their own, in double precision beside the run, in their time, under
//! every protocol and algorithm, and refused where a policy decides about work.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model, minus, norm};
use super::feddyn::{Examples, TABLE, TURNS, job_of, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Workplace, changed};

const STEPS: [usize; 9] = [1, 3, 2, 7, 1, 4, 2, 5, 3];

fn own(key: &str, numbers: &str) -> String {
    changed(TABLE, "steps = 3", &format!("{key} = {numbers}"))
}

fn listed() -> String {
    format!("{{ each = {STEPS:?} }}")
}

/// Models after each round; a change counts by `weight`.
fn course(clients: &[Examples], weight: impl Fn(u32) -> f64, scale: impl Fn(&[u32], u32) -> f64) -> Vec<Change> {
    let mut model = vec![0.0; 3];
    let round = |turn: &&[u32]| {
        let total: f64 = turn.iter().map(|&client| weight(client)).sum();
        let mut mean = vec![0.0; 3];
        for &client in *turn {
            let change = job_of(STEPS[client as usize], &model, &clients[client as usize], |_, _| 0.0);
            add(&mut mean, scale(turn, client) * weight(client) / total, &change);
        }
        add(&mut model, 1.0, &mean);
        model.clone()
    };
    TURNS.iter().map(round).collect()
}

#[test]
fn clients_make_as_many_steps_as_they_have() {
    let clients = spread();
    let size = |client: u32| clients[client as usize].len() as f64;
    let expected = course(&clients, size, |_, _| 1.0);
    let found = models(&table_world(&clients, &own("steps", &listed())), &TURNS);
    found.iter().zip(&expected).for_each(|(found, expected)| assert_model(found, expected, 1e-5, "averaging"));
    // A batch of all examples: as many epochs.
    let epochs = models(&table_world(&clients, &own("epochs", &listed())), &TURNS);
    assert_eq!(epochs, found);
    let alike = models(&table_world(&clients, TABLE), &TURNS);
    let alike: Vec<f64> = alike[5].iter().map(|number| f64::from(*number)).collect();
    assert!(norm(&minus(&alike, &expected[5])) > 1e-2, "their numbers change something");
}

/// Without momentum the change of client `k` is divided by its steps `K_k`, and the mean multiplied by `Σ p_k K_k`.
#[test]
fn fednova_divides_by_the_steps_of_each() {
    let clients = spread();
    let size = |client: u32| clients[client as usize].len() as f64;
    let scale = |turn: &[u32], client: u32| {
        let total: f64 = turn.iter().map(|&client| size(client)).sum();
        let effective: f64 = turn.iter().map(|&client| size(client) / total * STEPS[client as usize] as f64).sum();
        effective / STEPS[client as usize] as f64
    };
    let expected = course(&clients, size, scale);
    let found = models(&table_world(&clients, &format!("{}[algorithm.fednova]\n", own("steps", &listed()))), &TURNS);
    found.iter().zip(&expected).for_each(|(found, expected)| assert_model(found, expected, 1e-5, "fednova"));
}

fn digest_of(scenario: &str) -> serde_json::Value {
    let place = Workplace::with(scenario);
    place.write("table.csv", table(&spread()));
    place.run_into("out", &[]);
    place.json("out/summary.json")["runs"][0]["digest"].clone()
}

#[test]
fn the_same_number_for_each_is_one_number() {
    for key in ["epochs", "steps"] {
        assert_eq!(digest_of(&own(key, "2")), digest_of(&own(key, &format!("{{ each = {:?} }}", [2; 9]))));
        assert_eq!(digest_of(&own(key, "2")), digest_of(&own(key, "{ constant = 2.4 }")), "rounded");
        assert_ne!(digest_of(&own(key, "2")), digest_of(&own(key, "{ uniform = [1, 5] }")));
    }
}

/// Five examples a second: 3 to 11 examples, so many times. A law says how long a job takes, whatever its work.
#[test]
fn a_device_computes_as_long_as_its_own_work_needs() {
    let device = changed(
        &own("epochs", &listed()),
        "[population.latency]\ndownload = { constant = \"1 s\" }\ncompute = { constant = \"2 s\" }\nupload = { constant = \"1 s\" }\n",
        "[population.device]\nsamples_per_second = 5\ndownlink = \"96 bit/s\"\nuplink = \"96 bit/s\"\n",
    );
    let latencies = |scenario: &str| {
        let place = Workplace::with(&format!("{scenario}[record]\nupdates = true\n"));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
        let found = rounds[0]["updates"]["latency_s"].as_array().unwrap().clone();
        found.iter().map(|number| number.as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let found = latencies(&device);
    for (client, (found, steps)) in found.iter().zip(STEPS).enumerate() {
        let expected = 2.0 + (3 + client) as f64 * steps as f64 / 5.0;
        assert!((found - expected).abs() < 1e-8, "client {client}: {found}, expected {expected}");
    }
    assert_eq!(latencies(&own("epochs", &listed())), [4.0; 9]);
}

/// Under every protocol, with every algorithm, a run goes on to the same end when it is saved after every round.
#[test]
fn partial_work_is_kept_under_every_protocol() {
    let algorithms =
        ["scaffold = {}", "feddyn = {}", "moon = {}", "fednova = {}", "qfedavg = {}", "median = {}", "fedprox = {}"];
    let mut kept = 0;
    for (protocol, algorithm) in protocols().into_iter().cycle().zip(algorithms) {
        let weighting = if algorithm == "fednova = {}" { "data-size" } else { "uniform" };
        let edges_refuse = protocol.contains("hierarchical") && ["scaffold = {}", "feddyn = {}"].contains(&algorithm);
        let buffers_refuse = protocol.contains("polynomial") && algorithm != "fednova = {}";
        if edges_refuse || buffers_refuse {
            continue;
        }
        let devices = changed(DEVICES, "[training]\n", &format!("[training]\nepochs = {{ each = {STEPS:?} }}\n"));
        let devices = changed(&devices, ", momentum = 0.5", "");
        kept += assert_kept(&format!(
            "{NINE}{devices}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [aggregation]\nweighting = \"{weighting}\"\n[algorithm]\n{algorithm}\n{protocol}[policy.random]\n"
        ));
    }
    assert!(kept >= 4, "{kept}");
}

#[test]
fn what_is_not_defined_is_refused() {
    for (text, said) in [
        (own("epochs", "{ each = [1, 2] }"), "training.epochs: found a list of 2 values; expected 9"),
        (own("steps", "{ each = [1, 2, 0, 1, 1, 1, 1, 1, 1] }"), "training.steps: found 0.0 for client 2"),
        (own("epochs", "{ uniform = [1, 5] }\nmost_epochs = 9"), "training.most_epochs"),
        (own("epochs", "{ table = { file = \"table.csv\", column = \"a\" } }"), "write { each = [..] }"),
        (own("epochs", "2.5"), "whole number"),
        (own("epochs", "0"), "training.epochs"),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(said), "{said}: {answer:?}");
    }
}
