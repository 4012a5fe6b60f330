//! `[privacy.dp-fedavg]` through the whole program: bounds, noise, rounds without clients, ε, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model, minus, norm};
use super::feddyn::{Examples, TABLE, TURNS, job, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Workplace, changed};
use fedgenie::math::special::normal_quantile;
use fedgenie::rng::{Purpose, Streams};

const CLIP: f64 = 0.4;

fn with(section: &str) -> String {
    format!("{TABLE}[privacy.dp-fedavg]\n{section}\n")
}

/// Models after each round, in double precision: the mean of shortened changes, with noise of a deviation in the sum.
fn course(clients: &[Examples], sd: f64) -> Vec<Change> {
    let mut model = vec![0.0; 3];
    let round = |(number, turn): (u32, &&[u32])| {
        let mut sum = vec![0.0; 3];
        for &client in *turn {
            let change = job(&model, &clients[client as usize], |_, _| 0.0);
            add(&mut sum, (CLIP / norm(&change)).min(1.0), &change);
        }
        let mut stream = Streams::new(1).stream(Purpose::Privacy, u32::MAX, number);
        sum.iter_mut().for_each(|number| *number += sd * normal_quantile(stream.uniform()));
        add(&mut model, 1.0 / turn.len() as f64, &sum);
        model.clone()
    };
    (1..).zip(&TURNS).map(round).collect()
}

#[test]
fn changes_are_shortened_and_their_sum_has_noise() {
    let clients = spread();
    for z in [0.0, 0.7] {
        let section = format!("clip = {CLIP}\nnoise_multiplier = {z}");
        let expected = course(&clients, z * CLIP);
        let found = models(&table_world(&clients, &with(&section)), &TURNS);
        found.iter().zip(&expected).for_each(|(found, expected)| assert_model(found, expected, 1e-5, &section));
        let free = models(&table_world(&clients, &with("clip = 1e9\nnoise_multiplier = 0")), &TURNS);
        let free: Vec<f64> = free[5].iter().map(|number| f64::from(*number)).collect();
        assert!(norm(&minus(&free, &expected[5])) > 1e-2, "the bound changes something");
    }
    // Clients' noise is other noise.
    let section = format!("clip = {CLIP}\nnoise_multiplier = 0.7\nat = \"clients\"");
    let found = models(&table_world(&clients, &with(&section)), &TURNS);
    let found: Vec<f64> = found[0].iter().map(|number| f64::from(*number)).collect();
    assert!(norm(&minus(&found, &course(&clients, 0.7 * CLIP)[0])) > 1e-3);
}

fn rounds_of(scenario: &str) -> (Workplace, Vec<serde_json::Value>) {
    let place = Workplace::with(scenario);
    place.write("table.csv", table(&spread()));
    place.run_into("out", &["--models"]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    (place, rounds)
}

/// Of nine clients one is fast, so that buffers of two have two of its updates: one client, where the bound that adapts
/// needs two. Such a buffer makes no model, is abandoned, and tells nothing.
#[test]
fn a_buffer_of_one_client_makes_no_model_where_two_are_needed() {
    let scenario = with("clip = { start = 0.4 }\nnoise_multiplier = 0.15");
    let scenario =
        changed(&scenario, "[protocol.synchronous]\ncohort = 9", "[protocol.buffered]\nconcurrency = 9\nbuffer = 2");
    let group = |name: &str, count: u32, compute: &str| {
        let phases = [("download", "1 s"), ("compute", compute), ("upload", "1 s")];
        let phases = phases.map(|(phase, time)| format!("latency.{phase} = {{ constant = \"{time}\" }}\n")).concat();
        format!("[[population.group]]\nname = \"{name}\"\ncount = {count}\n{phases}")
    };
    let phases = [("download", "1 s"), ("compute", "2 s"), ("upload", "1 s")];
    let alike = phases.map(|(phase, time)| format!("{phase} = {{ constant = \"{time}\" }}\n")).concat();
    let groups = group("fast", 1, "1 s") + &group("slow", 8, "1 h");
    let (_, rounds) = rounds_of(&changed(&scenario, &format!("[population.latency]\n{alike}"), &groups));
    assert!(rounds.len() == 9 && rounds.iter().all(|round| round["abandoned"] == true), "{rounds:?}");
    let first = rounds[0]["metrics"]["test_loss"].as_f64().unwrap();
    for round in &rounds {
        assert_eq!(round["privacy"]["epsilon"], 0.0, "{round}");
        assert_eq!(round["metrics"]["test_loss"].as_f64(), Some(first), "the model stays as it was");
    }
    // With all alike, buffers have two clients.
    let (_, rounds) = rounds_of(&scenario);
    assert!(rounds.iter().all(|round| round.get("abandoned").is_none()), "{rounds:?}");
    assert!(rounds[0]["privacy"]["epsilon"].as_f64() > Some(0.0));
}

/// The values of dp-accounting 0.6.0 for z = 1 and δ = 1e-5.
#[test]
fn epsilon_is_that_of_the_rounds_so_far() {
    let section = "clip = 0.4\nnoise_multiplier = 1";
    let told = |round: &serde_json::Value| round["privacy"]["epsilon"].as_f64().unwrap();
    let near = |found: f64, known: f64| assert!((found / known - 1.0).abs() < 1e-9, "{found} beside {known}");
    let (place, rounds) = rounds_of(&with(section));
    near(told(&rounds[0]), 4.752_728_336_819_822);
    near(told(&rounds[5]), 13.801_691_480_042_894);
    assert_eq!(rounds[5]["metrics"]["epsilon"], rounds[5]["privacy"]["epsilon"]);
    assert_eq!(rounds[0]["privacy"]["sampling"], 1.0);
    assert_eq!(rounds[0]["privacy"]["delta"], 1e-5);
    let summary = place.json("out/summary.json");
    assert_eq!(summary["runs"][0]["privacy"], rounds[8]["privacy"]);

    // Each client by itself.
    let drawn = changed(&with(section), "[policy.random]", "[policy.random]\nprobability = 0.3");
    let drawn = changed(&drawn, "rounds = 9", "rounds = 40");
    let (_, rounds) = rounds_of(&drawn);
    for (number, known) in [(1, 3.311_204_915_613_192_4), (9, 7.545_794_936_110_333), (40, 15.878_361_230_103_94)] {
        near(told(&rounds[number - 1]), known);
        assert_eq!(rounds[number - 1]["privacy"]["sampling"], 0.3);
    }
    let is_empty = |round: &&serde_json::Value| round["selected"].as_array().unwrap().is_empty();
    // 0.7⁹ = 0.04 of rounds.
    let at = rounds.iter().position(|round| is_empty(&round)).expect("a round without clients, of forty");
    assert!(at > 0 && rounds[at]["metrics"]["test_loss"] != rounds[at - 1]["metrics"]["test_loss"], "noise alone");
    assert_eq!(rounds[at].get("abandoned"), None);

    // A smaller cohort, a quorum or a policy that looks at losses: nothing is gained by sampling.
    let quorum = changed(&drawn, "cohort = 9", "cohort = 9\nquorum = 1");
    for (scenario, why) in [
        (changed(&drawn, "cohort = 9", "cohort = 5"), "by itself"),
        (quorum, "abandoned"),
        (with(&format!("{section}\nat = \"clients\"")), "by itself"),
    ] {
        let (_, rounds) = rounds_of(&scenario);
        assert_eq!(rounds[0]["privacy"]["sampling"], 1.0);
        assert!(rounds[0]["privacy"]["why"].as_str().unwrap().contains(why), "{}", rounds[0]["privacy"]);
    }
    let place = Workplace::with(&changed(&with(section), "[policy.random]", "[policy.power-of-choice]"));
    place.write("table.csv", table(&spread()));
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/power-of-choice-s1/rounds.jsonl");
    assert!(rounds[0]["privacy"]["why"].as_str().unwrap().contains("losses"), "{}", rounds[0]["privacy"]);

    // Without noise there is no ε.
    let (place, rounds) = rounds_of(&with("clip = 0.4\nnoise_multiplier = 0"));
    assert!(rounds[0]["privacy"]["epsilon"].is_null());
    assert!(rounds[0]["metrics"].get("epsilon").is_none());
    assert!(place.json("out/summary.json")["runs"][0]["privacy"]["epsilon"].is_null());
}

/// The bound falls to where half of the changes are, whether it began far above or far below.
#[test]
fn an_adaptive_bound_finds_the_quantile() {
    let last = |start: f64| {
        let section = format!("clip = {{ start = {start}, lr = 0.5 }}\nnoise_multiplier = 0");
        let text = changed(&with(&section), "rounds = 9", "rounds = 60");
        let text = changed(&text, "optimizer = { sgd = { lr = 0.125 } }", "optimizer = { sgd = { lr = 0.01 } }");
        let (_, rounds) = rounds_of(&text);
        rounds[59]["privacy"]["clip"].as_f64().unwrap()
    };
    let (above, below) = (last(20.0), last(1e-3));
    assert!((above / below - 1.0).abs() < 0.5, "{above} and {below}");
}

/// Under every protocol a run goes on to the same end when it is saved after every round; edge servers are refused.
#[test]
fn private_runs_are_kept_under_every_protocol() {
    let sections =
        ["clip = 0.3\nnoise_multiplier = 0.2", "clip = { start = 0.2, count_sd = 0.5 }\nnoise_multiplier = 0.2"];
    let mut kept = 0;
    for (index, protocol) in protocols().into_iter().filter(|protocol| !protocol.contains("hierarchical")).enumerate() {
        kept += assert_kept(&format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [aggregation]\nserver = {{ adam = {{ lr = 0.01 }} }}\n\
             [privacy.dp-fedavg]\n{}\n{protocol}[policy.random]\nprobability = 0.4\n",
            sections[index % sections.len()]
        ));
    }
    assert!(kept >= 4);
}

const ROWS: &str = "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\n\
                    cutoffs = [5]\ntransfer = { down = \"rows\", up = \"rows\" }\nmodel = { mf = { dimensions = 3 } }\n";

/// Rows of tables that nobody moves have noise too.
#[test]
fn tables_have_noise_in_all_rows() {
    let models = |z: f64| {
        let nine = changed(NINE, "rounds = 7", "rounds = 1");
        let place = Workplace::with(&format!(
            "{nine}{DEVICES}{ROWS}[privacy.dp-fedavg]\nclip = 0.5\nnoise_multiplier = {z}\n\
             [protocol.synchronous]\ncohort = 1\n[policy.random]\n"
        ));
        place.run_into("out", &["--models"]);
        place.read("out/runs/random-s1/model.safetensors")
    };
    let (plain, noisy) = (models(0.0), models(1.0));
    assert_eq!(plain.len(), noisy.len());
    let header = 8 + u64::from_le_bytes(*plain.first_chunk().unwrap()) as usize;
    let same = plain[header..].as_chunks::<4>().0.iter().zip(noisy[header..].as_chunks::<4>().0);
    // The rows of nine users stay with these.
    assert_eq!(same.filter(|(one, other)| one == other).count(), 27, "numbers without noise");
}

#[test]
fn what_is_not_defined_is_refused() {
    let section = "clip = 0.4\nnoise_multiplier = 1";
    let beside = |more: &str| format!("{}{more}\n", with(section));
    let edges =
        changed(&with(section), "[protocol.synchronous]\ncohort = 9", "[protocol.hierarchical]\nedges = 3\ncohort = 3");
    for (text, path) in [
        (edges, "one server"),
        (beside("[aggregation]\nweighting = \"data-size\""), "same weight"),
        (beside("[algorithm.median]"), "algorithm.median"),
        (beside("[algorithm.scaffold]"), "algorithm.scaffold"),
        (
            changed(&with(section), "[privacy.dp-fedavg]", "[privacy]\nsigma = 0.1\n[privacy.dp-fedavg]"),
            "privacy.sigma",
        ),
        (with("clip = 0\nnoise_multiplier = 1"), "privacy.dp-fedavg.clip"),
        (with("clip = { start = 1, quantil = 0.5 }\nnoise_multiplier = 1"), "privacy.dp-fedavg.clip"),
        (with("clip = { start = 1 }\nnoise_multiplier = 1"), "fewer than 11 clients"),
        (
            changed(
                &with("clip = { start = 1 }\nnoise_multiplier = 0.5"),
                "[policy.random]",
                "[policy.random]\nprobability = 0.5",
            ),
            "draws 4.5 clients on average",
        ),
        (beside("[aggregation]\nnormalise = true"), "normalise"),
        (with("clip = 1\nnoise_multiplier = 1e-9"), "noise_multiplier"),
        (beside("[algorithm.fedprox]\nmu = inf"), "algorithm.fedprox.mu"),
        (with("clip = { start = 1, count_sd = 0.2 }\nnoise_multiplier = 1"), "count_sd"),
        (with("clip = 1\nnoise_multiplier = 1\ndelta = 0"), "privacy.dp-fedavg.delta"),
        (
            changed(
                &beside("[compression]\nup = \"sign\""),
                "noise_multiplier = 1",
                "noise_multiplier = 1\nat = \"clients\"",
            ),
            "compression",
        ),
        (
            changed(
                &beside("[adversary]\nshare = 0.3\nattack = \"sign-flip\""),
                "noise_multiplier = 1",
                "noise_multiplier = 1\nat = \"clients\"",
            ),
            "hostile",
        ),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(path), "{path}: {answer:?}");
    }
}
