//! `[privacy.secure-aggregation]` through the whole program: bytes and seconds by hand, rounds of too few, what the
//! server may look at, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::feddyn::{TABLE, TURNS, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Workplace, changed};
use serde_json::Value;

const SECTION: &str = "[privacy.secure-aggregation]\n";

/// Links of one kilobyte a second, 250 numbers, 2 s of computing.
const LINKS: &str = r#"
name = "links"
seeds = 1
[stop]
rounds = 2
[population]
clients = 5
data_size = 100
[population.device]
samples_per_second = 50
downlink = "8 kbit/s"
uplink = "8 kbit/s"
[task.none]
payload = "1 kB"
[protocol.synchronous]
cohort = 3
[policy.random]
"#;

fn rounds(text: &str) -> Vec<Value> {
    let place = Workplace::with(text);
    place.write("table.csv", table(&spread()));
    place.run_into("out", &[]);
    place.lines("out/runs/random-s1/rounds.jsonl")
}

/// Bytes down and up, and seconds, of the first round.
fn first(text: &str) -> (u64, u64, f64) {
    let round = &rounds(text)[0];
    let number = |name: &str| round[name].as_u64().unwrap();
    (number("down_bytes"), number("up_bytes"), round["closed_s"].as_f64().unwrap())
}

/// Of three clients each has two others: 4 keys and 4 shares come down, 2 keys and 4 + 3 shares go up, and 250 numbers
/// of 34 bits, since three numbers of 32 bits add up to less than 2³⁴.
#[test]
fn bytes_and_seconds_by_hand() {
    assert_eq!(first(LINKS), (3000, 3000, 4.0));
    let plain = format!("{LINKS}{SECTION}");
    let (down, up) = (1000 + 4 * 32 + 4 * 32, 1063 + 2 * 32 + 7 * 32);
    assert_eq!(first(&plain), (3 * down, 3 * up, 2.0 + (down + up) as f64 / 1000.0));
    let small = format!("{LINKS}{SECTION}bits = 8\nkey = 20\nshare = 50\n");
    // 250 numbers of 10 bits.
    let (down, up) = (1000 + 4 * 20 + 4 * 50, 313 + 2 * 20 + 7 * 50);
    assert_eq!(first(&small), (3 * down, 3 * up, 2.0 + (down + up) as f64 / 1000.0));
    let few = format!("{small}protocol = {{ secagg-plus = {{ neighbours = 1 }} }}\n");
    let (down, up) = (1000 + 2 * 20 + 2 * 50, 313 + 2 * 20 + 4 * 50);
    assert_eq!(first(&few), (3 * down, 3 * up, 2.0 + (down + up) as f64 / 1000.0));
    // Two agreements with each of the two others, masks of 3·250 numbers, 6 shares of degree ⌈2·3/3⌉ − 1.
    let slow = format!("{plain}agreement = \"10 ms\"\nmask_rate = 1_000\nshare_rate = 12\n");
    let seconds = 4.0 * 0.01 + 750.0 / 1000.0 + 6.0 / 12.0;
    let (down, up, closed) = first(&slow);
    assert_eq!((down, up), (3 * 1256, 3 * 1351));
    assert!((closed - (2.0 + seconds + 2.607)).abs() < 1e-9, "{closed}");
}

/// What an algorithm sends beside the update is masked with it; what it is sent beside the model is not.
#[test]
fn numbers_of_algorithms_are_masked_too() {
    let bytes = |algorithm: &str, section: &str| {
        let (down, up, _) = first(&format!("{}{algorithm}{section}", changed(TABLE, "rounds = 9", "rounds = 1")));
        [down, up].map(|bytes| bytes / 9)
    };
    // Of nine clients each has eight others, and sums of 32-bit numbers need 36 bits.
    let (down, up) = (16 * 32 + 16 * 32, 2 * 32 + 25 * 32);
    assert_eq!(bytes("", ""), [12, 12]);
    assert_eq!(bytes("", SECTION), [12 + down, 14 + up], "3 numbers");
    assert_eq!(bytes("[algorithm.scaffold]\n", ""), [24, 24]);
    assert_eq!(bytes("[algorithm.scaffold]\n", SECTION), [24 + down, 27 + up], "6 numbers");
    assert_eq!(bytes("[algorithm.fednova]\n", SECTION), [12 + down, 18 + up], "4 numbers");
    let private =
        "[aggregation]\nweighting = \"uniform\"\n[privacy.dp-fedavg]\nclip = { start = 0.5 }\nnoise_multiplier = 0.1\n";
    assert_eq!(bytes(private, ""), [12, 12], "the server clips");
    assert_eq!(bytes(private, SECTION), [16 + down, 18 + up], "the bound comes, and a bit goes with the update");
}

/// The section changes no model.
#[test]
fn what_is_learned_stays_the_same() {
    let clients = spread();
    let with = |section: &str| models(&table_world(&clients, &format!("{TABLE}{section}")), &TURNS[..4]);
    assert_eq!(with(SECTION), with(""));
}

/// Of ten selected clients seven have to answer: two thirds, upwards. Rounds with fewer make no model.
#[test]
fn rounds_of_too_few_are_abandoned() {
    let text = |section: &str| {
        format!(
            "{}[population.latency]\ndownload = {{ constant = \"0 s\" }}\nupload = {{ constant = \"0 s\" }}\n\
             compute = {{ exponential = {{ mean = \"1 s\" }} }}\n[task.none]\npayload = \"1 kB\"\n\
             [protocol.deadline]\ncohort = 10\ndeadline = \"1 s\"\n[policy.random]\n{section}",
            changed(&changed(NINE, "rounds = 7", "rounds = 60"), "clients = 9", "clients = 20")
        )
    };
    for (section, least) in [
        ("", 0),
        (SECTION, 7),
        (&format!("{SECTION}threshold = 0.6\n"), 6),
        (&format!("{SECTION}threshold = 0.01\n"), 2),
    ] {
        let mut abandoned = 0;
        for round in rounds(&text(section)) {
            let arrived = round["arrived"].as_array().unwrap().len();
            assert_eq!(round["abandoned"].as_bool().unwrap_or(false), arrived < least, "{section}: {round}");
            abandoned += usize::from(arrived < least);
        }
        assert_eq!(abandoned > 0, least > 5, "{section}: {abandoned}");
    }
}

/// Rounds of edge servers too, and they are counted, named and warned of.
#[test]
fn rounds_of_too_few_at_edges_are_told() {
    let text = format!(
        "{}[population.latency]\ndownload = {{ constant = \"0 s\" }}\nupload = {{ constant = \"0 s\" }}\n\
         compute = {{ exponential = {{ mean = \"1 s\" }} }}\n[task.none]\npayload = \"1 kB\"\n\
         [protocol.hierarchical]\nedges = 3\ncohort = 3\nedge_rounds = 2\ntimeout = \"1 s\"\n[policy.random]\n\
         {SECTION}threshold = 1.0\n",
        changed(NINE, "rounds = 7", "rounds = 20")
    );
    let place = Workplace::with(&text);
    place.run_into("out", &[]);
    let run = place.json("out/runs/random-s1/run.json");
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let named: usize =
        rounds.iter().map(|round| round["abandoned_edges"].as_array().map_or(0, |edges| edges.len())).sum();
    // Two rounds of each of three servers; all three updates within a second are rare: (1 − 1/e)³ = 0.25.
    assert_eq!(run["outcomes"]["edge_rounds"], 20 * 3 * 2);
    assert_eq!(run["outcomes"]["abandoned_edge_rounds"], named);
    assert!((70..=105).contains(&named), "{named}");
    let told = format!("{named} of 120 rounds of edge servers were abandoned");
    assert!(run["warnings"].to_string().contains(&told), "{}", run["warnings"]);
}

/// Under every protocol in which clients are selected together a run goes on to the same end when it is saved after
/// every round.
#[test]
fn runs_are_kept_under_every_protocol() {
    let mut kept = 0;
    for protocol in protocols() {
        let protocol = protocol.replace("late = { carry = {} }", "");
        if protocol.contains("buffered") || protocol.contains("carry") {
            continue;
        }
        kept += assert_kept(&format!(
            "{NINE}{DEVICES}[task.softmax-regression]\npartition = \"iid\"\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             {SECTION}threshold = 0.3\nmask_rate = 1e4\n{protocol}[policy.random]\n",
        ));
    }
    assert!(kept >= 3, "{kept}");
}

#[test]
fn what_single_clients_tell_is_warned_of() {
    let warned = |policy: &str| {
        let place = Workplace::with(&format!("{}{SECTION}{policy}", changed(TABLE, "[policy.random]\n", "")));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        place.json("out/summary.json")["runs"][0]["warnings"].to_string()
    };
    let reads = |what: &str| format!("the policy decides by {what}, which each client sends by itself");
    assert!(warned("[policy.oort]\n").contains(&reads("losses")));
    assert!(warned("[policy.afl]\n").contains(&reads("losses")));
    assert!(!warned("[policy.random]\n").contains("secure aggregation"));
    assert!(!warned("[policy.optimal-sampling]\napproximate = true\n").contains("secure aggregation"));
}

#[test]
fn what_needs_single_updates_is_refused() {
    let with = |section: &str| format!("{TABLE}{SECTION}{section}");
    let instead = |from: &str, to: &str| changed(&with(""), from, to);
    let rows = "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\n\
                cutoffs = [5]\nmodel = { mf = { dimensions = 3 } }\n";
    let recommendation = format!("{NINE}{DEVICES}{rows}{SECTION}[protocol.synchronous]\ncohort = 3\n[policy.random]\n");
    let section = "privacy.secure-aggregation";
    let synchronous = "[protocol.synchronous]\ncohort = 9";
    let over = |take: u32| format!("[protocol.over-selection]\nask = 9\ntake = {take}");
    for (text, path) in [
        (with("threshold = 0\n"), "privacy.secure-aggregation.threshold"),
        (with("threshold = 1.5\n"), "privacy.secure-aggregation.threshold"),
        (with("bits = 0\n"), "privacy.secure-aggregation.bits"),
        (with("bits = 65\n"), "privacy.secure-aggregation.bits"),
        (with("mask_rate = 0\n"), "privacy.secure-aggregation.mask_rate"),
        (with("share_rate = inf\n"), "privacy.secure-aggregation.share_rate"),
        (with("protocol = { secagg-plus = { neighbours = 0 } }\n"), "protocol.secagg-plus.neighbours"),
        (with("protocol = \"secagg-plus\"\n"), "privacy.secure-aggregation.protocol"),
        (with("[algorithm.krum]\nbyzantine = 1\n"), section),
        (with("[algorithm.median]\n"), section),
        (with("[algorithm.norm-clipping]\nnorm = 1.0\n"), section),
        (with("[algorithm.afl-minimax]\nlr = 0.1\n"), section),
        (with("[compression]\nup = \"sign\"\n"), section),
        (
            with(
                "[aggregation]\nweighting = \"uniform\"\n[privacy.dp-fedavg]\nclip = 1.0\nnoise_multiplier = 0.1\n\
                 [adversary]\nshare = 0.3\nattack = \"sign-flip\"\n",
            ),
            section,
        ),
        (recommendation, section),
        (instead(synchronous, "[protocol.synchronous]\ncohort = 1"), section),
        (instead(synchronous, "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n"), section),
        (instead(synchronous, "[protocol.deadline]\ncohort = 4\ndeadline = \"3 s\"\nlate = { carry = {} }\n"), section),
        (instead(synchronous, &over(5)), "privacy.secure-aggregation.threshold"),
        (instead("[policy.random]", "[policy.divfl]"), "policy.divfl"),
        (instead("[policy.random]", "[policy.delta]"), "policy.delta"),
        (instead("[policy.random]", "[policy.shapley]"), "policy.shapley"),
        (instead("[policy.random]", "[policy.optimal-sampling]"), "policy.optimal-sampling"),
        (instead("[policy.random]", "[policy.clustered-sampling]\nalgorithm = \"similarity\""), "policy.clustered"),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(path), "{path}: {answer:?}");
    }
    for text in [instead(synchronous, &over(6)), instead("[policy.random]", "[policy.clustered-sampling]")] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
    }
}
