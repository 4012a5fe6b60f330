//! `[compression]` through the whole program: what the server decodes, what clients keep, bytes, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model, minus, norm};
use super::feddyn::{Examples, TABLE, TURNS, job, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Workplace, changed};
use std::collections::BTreeMap;

fn with(section: &str) -> String {
    format!("{TABLE}[aggregation]\nweighting = \"uniform\"\n[compression]\n{section}\n")
}

/// The number that is largest by size, the first of equals, and 0 elsewhere.
fn top_one(change: &[f64]) -> Change {
    let mut best = 0;
    (1..change.len()).for_each(|place| best = if change[place].abs() > change[best].abs() { place } else { best });
    (0..change.len()).map(|place| if place == best { change[place] } else { 0.0 }).collect()
}

fn signs(change: &[f64]) -> Change {
    let mean = change.iter().map(|number| number.abs()).sum::<f64>() / change.len() as f64;
    change.iter().map(|number| if *number < 0.0 { -mean } else { mean }).collect()
}

/// Models after each round, in double precision: clients encode their change with what earlier encodings left over.
fn course(clients: &[Examples], codec: fn(&[f64]) -> Change, keeps: bool) -> Vec<Change> {
    let (mut model, mut left) = (vec![0.0; 3], BTreeMap::<u32, Change>::new());
    let mut course = Vec::new();
    for turn in TURNS {
        let mut mean = vec![0.0; 3];
        for &client in turn {
            let mut change = job(&model, &clients[client as usize], |_, _| 0.0);
            if let Some(left) = left.get(&client) {
                add(&mut change, 1.0, left);
            }
            let decoded = codec(&change);
            if keeps {
                left.insert(client, minus(&change, &decoded));
            }
            add(&mut mean, 1.0 / turn.len() as f64, &decoded);
        }
        add(&mut model, 1.0, &mean);
        course.push(model.clone());
    }
    course
}

#[test]
fn what_is_left_over_is_sent_later() {
    let clients = spread();
    let plain = course(&clients, |change| change.to_vec(), true);
    for (section, codec, keeps) in [
        ("up = { top-k = { k = 1 } }", top_one as fn(&[f64]) -> Change, true),
        ("up = { top-k = { share = 0.4 } }\nerror_feedback = false", top_one, false),
        ("up = \"sign\"", signs, true),
        ("up = \"sign\"\nerror_feedback = false", signs, false),
    ] {
        let expected = course(&clients, codec, keeps);
        let found = models(&table_world(&clients, &with(section)), &TURNS);
        for ((found, expected), plain) in found.iter().zip(&expected).zip(&plain) {
            assert_model(found, expected, 1e-5, section);
            assert!(norm(&minus(expected, plain)) > 1e-3, "{section} changes something");
        }
        let other = course(&clients, codec, !keeps);
        assert!(norm(&minus(&expected[5], &other[5])) > 1e-3, "feedback changes something");
    }
}

/// All numbers drawn, or sixteen bits for each: the change itself, up to its last level.
#[test]
fn fine_codecs_are_close_to_the_change() {
    let clients = spread();
    let expected = course(&clients, |change| change.to_vec(), true);
    for (section, tolerance) in [
        ("up = { random-k = { k = 3 } }", 1e-5),
        ("up = { random-k = { k = 3 } }\nerror_feedback = false", 1e-5),
        ("up = { qsgd = { bits = 16 } }", 1e-2),
        ("down = { qsgd = { bits = 16 } }", 1e-2),
        ("up = { qsgd = { bits = 16 } }\ndown = { qsgd = { bits = 16 } }", 1e-2),
    ] {
        let found = models(&table_world(&clients, &with(section)), &TURNS);
        found.iter().zip(&expected).for_each(|(found, expected)| assert_model(found, expected, tolerance, section));
    }
    // Two bits are not close to it.
    let found = models(&table_world(&clients, &with("down = { qsgd = { bits = 2 } }")), &TURNS);
    assert!(found.iter().zip(&expected).any(|(found, expected)| {
        let found: Vec<f64> = found.iter().map(|number| f64::from(*number)).collect();
        norm(&minus(&found, expected)) > 0.05
    }));
}

/// Three numbers, nine clients a round: places of two bits, two bits and four bits a number, a bit for a sign.
#[test]
fn bytes_are_those_of_the_codec() {
    let bytes = |section: &str, algorithm: &str| {
        let scenario = format!("{}{algorithm}", changed(&with(section), "rounds = 9", "rounds = 2"));
        let place = Workplace::with(&scenario);
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
        ["down_bytes", "up_bytes"].map(|name| rounds[1][name].as_u64().unwrap() / 18)
    };
    assert_eq!(bytes("up = { top-k = { k = 1 } }", ""), [12, 4 + 1]);
    assert_eq!(bytes("up = { random-k = { k = 2 } }", ""), [12, 8 + 8]);
    assert_eq!(bytes("up = \"sign\"\ndown = { qsgd = { bits = 4 } }", ""), [4 + 2, 4 + 1]);
    assert_eq!(bytes("up = { qsgd = { bits = 2 } }", ""), [12, 4 + 1]);
    assert_eq!(
        bytes("up = \"sign\"", "[algorithm.scaffold]\n"),
        [24, 4 + 1 + 12],
        "control variates travel as they are"
    );
}

/// Three numbers at two a second: 1.5 s more, between computing and the upload.
#[test]
fn encoding_takes_its_time() {
    let closed = |section: &str| {
        let place = Workplace::with(&changed(&with(section), "rounds = 9", "rounds = 1"));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        place.lines("out/runs/random-s1/rounds.jsonl")[0]["closed_s"].as_f64().unwrap()
    };
    assert_eq!(closed("up = \"sign\""), 4.0);
    assert_eq!(closed("up = \"sign\"\nencode_rate = 2"), 5.5);
}

#[test]
fn what_is_left_over_is_written_beside_the_model() {
    let names = |section: &str| {
        let place = Workplace::with(&with(section));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &["--models"]);
        let path = "out/runs/random-s1/state.safetensors";
        if !place.path(path).exists() {
            return Vec::new();
        }
        let file = place.read(path);
        let header = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&file[8..8 + header]).unwrap();
        header.as_object().unwrap().keys().filter(|name| *name != "__metadata__").cloned().collect::<Vec<String>>()
    };
    let found = names("up = \"sign\"");
    assert!(found.iter().any(|name| name.starts_with("client.8.error.")), "{found:?}");
    assert!(names("up = { qsgd = { bits = 4 } }").is_empty());
}

/// Under every protocol a run goes on to the same end when it is saved after every round.
#[test]
fn compressed_runs_are_kept_under_every_protocol() {
    let sections = [
        "up = \"sign\"",
        "up = { top-k = { share = 0.1 } }\ndown = { qsgd = { bits = 8 } }",
        "up = { qsgd = { bits = 4 } }",
    ];
    let mut kept = 0;
    for (index, protocol) in protocols().into_iter().enumerate() {
        kept += assert_kept(&format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [compression]\n{}\n{protocol}[policy.random]\n",
            sections[index % sections.len()]
        ));
    }
    assert!(kept >= 5);
}

#[test]
fn what_is_not_defined_is_refused() {
    let rows = "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\n\
                cutoffs = [5]\ntransfer = { down = \"rows\", up = \"rows\" }\nmodel = { mf = { dimensions = 3 } }\n";
    let recommendation = format!(
        "{NINE}{DEVICES}{rows}[compression]\nup = \"sign\"\n[protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    let hostile = "[adversary]\nshare = 0.3\nattack = { little-is-enough = { z = 1.0 } }\n[compression]";
    for (text, path) in [
        (recommendation, "compression"),
        (changed(&with("up = \"sign\""), "[compression]", hostile), "adversary.attack.little-is-enough"),
        (with(""), "compression"),
        (with("up = { top-k = { k = 0 } }"), "compression.up.top-k.k"),
        (with("up = { random-k = { k = 4 } }"), "compression.up.random-k.k"),
        (with("down = \"sign\""), "compression.down"),
        (with("up = \"sign\"\nencode_rate = 0"), "compression.encode_rate"),
        (with("down = { qsgd = { bits = 8 } }\nencode_rate = 5"), "compression.encode_rate"),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(path), "{path}: {answer:?}");
    }
}
