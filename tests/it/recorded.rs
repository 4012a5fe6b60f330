//! A run whose events were recorded, exported as a log and replayed: the same rounds to the nanosecond.

use super::checkpoints::assert_kept;
use super::support::{Answer, SCENARIO, Workplace, changed};
use serde_json::{Value, json};

/// Clients with laws of their own, losses and a deadline.
const WORLD: &str = r#"
name = "world"
seeds = 2

[stop]
rounds = 40

[population]
clients = 9
dropout = { probability = 0.15, upload = "0.1 /s" }

[population.latency]
download = { exponential = { mean = "0.3 s" } }
compute = { lognormal = { median = { uniform = ["0.3 s", "2 s"] }, sigma = 0.5 } }
upload = { gamma = { shape = 2.0, scale = "0.1 s" } }

[protocol.deadline]
cohort = 4
deadline = "2.5 s"

[policy.random]
[policy.round-robin]
"#;

/// The same protocol on a log.
const REPLAY: &str = r#"
name = "replay"
seeds = 1

[stop]
rounds = 40

[population]
recorded = { file = "tables/jobs.csv", policy = "random", seed = 2 }

[protocol.deadline]
cohort = 4
deadline = "2.5 s"

[policy.recorded]
[policy.random]
"#;

/// A world's run with its log in `tables/jobs.csv`.
fn logged(world: &str) -> Workplace {
    let place = Workplace::with(world);
    place.run_into("out", &["--events"]);
    let answer = place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]);
    assert!(answer.code == 0 && answer.stdout.contains("tables/jobs.csv"), "{answer:?}");
    place
}

fn replay(place: &Workplace, scenario: &str) -> Answer {
    place.write("replay.toml", scenario);
    place.fedgenie(&["run", "replay.toml", "--out", "replayed", "--overwrite", "--quiet"])
}

/// What a round was, apart from its bytes.
fn rounds(place: &Workplace, run: &str) -> Vec<Value> {
    let keys = ["round", "opened_s", "closed_s", "selected", "arrived", "late", "joined"];
    let of = |line: Value| {
        let dropped = line["dropped"].as_array().unwrap().iter();
        let lost: Vec<Value> = dropped.map(|job| json!([job["client"], job["phase"], job["spent_s"]])).collect();
        json!([keys.map(|key| line[key].clone()), lost])
    };
    place.lines(&format!("{run}/rounds.jsonl")).into_iter().map(of).collect()
}

fn run_of(place: &Workplace, policy: &str) -> Value {
    let summary = place.json("replayed/summary.json");
    summary["runs"].as_array().unwrap().iter().find(|run| run["arm"] == policy).unwrap().clone()
}

fn timeline(place: &Workplace, folder: &str, policy: &str, seed: u64) -> String {
    let summary = place.json(&format!("{folder}/summary.json"));
    let runs = summary["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["arm"] == policy && run["seed"] == seed).unwrap();
    run["digest"]["timeline"].as_str().unwrap().to_owned()
}

/// Under a deadline, under a timeout, and where the server waits for some of those it asked; with losses and without.
#[test]
fn a_log_is_replayed_to_the_nanosecond() {
    let protocols = [
        "[protocol.deadline]\ncohort = 4\ndeadline = \"2.5 s\"",
        "[protocol.synchronous]\ncohort = 4\ntimeout = \"3 s\"",
        "[protocol.over-selection]\nask = 4\ntake = 3\ntimeout = \"3 s\"",
    ];
    let deadline = protocols[0];
    for protocol in protocols {
        let place = logged(&changed(WORLD, deadline, protocol));
        let answer = replay(&place, &changed(REPLAY, deadline, protocol));
        assert_eq!(answer.code, 0, "{answer:?}");
        let original = rounds(&place, "out/runs/random-s2");
        assert_eq!(rounds(&place, "replayed/runs/recorded-s1"), original, "{protocol}");
        assert_eq!(original.len(), 40);
        let count = |part: &str| place.text("tables/jobs.csv").matches(part).count();
        assert!(count(",late,") > 5 && count(",dropped,") > 20, "{protocol}");
        // The digest covers every event with its time.
        assert_eq!(timeline(&place, "replayed", "recorded", 1), timeline(&place, "out", "random", 2), "{protocol}");
        let run = run_of(&place, "recorded");
        assert_eq!((&run["drawn"], &run["dispatched"]), (&0.into(), &160.into()));
    }
}

/// Late updates that join later have all of their time in the log, and arrive again when they did.
#[test]
fn late_updates_join_the_same_rounds_again() {
    let protocol = "[protocol.deadline]\ncohort = 4\ndeadline = \"2.5 s\"";
    let carrying = "[protocol.over-selection]\nask = 4\ntake = 2\nlate = \"carry\"";
    let world =
        changed(&changed(WORLD, protocol, carrying), "dropout = { probability = 0.15, upload = \"0.1 /s\" }", "");
    let place = logged(&world);
    let jobs = place.text("tables/jobs.csv");
    // All but those under way when a run ended.
    assert!(jobs.matches(",late,").count() <= 4 * 8, "{jobs}");
    let answer = replay(&place, &changed(REPLAY, protocol, carrying));
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(rounds(&place, "replayed/runs/recorded-s1"), rounds(&place, "out/runs/random-s2"));
}

#[test]
fn jobs_that_the_log_lacks_are_drawn_and_counted() {
    let place = logged(WORLD);
    let answer = replay(&place, REPLAY);
    let run = run_of(&place, "random");
    let (drawn, all) = (run["drawn"].as_u64().unwrap(), run["dispatched"].as_u64().unwrap());
    assert!(drawn > 0 && drawn < all, "{drawn} of {all}");
    let said = format!("{drawn} of {all} jobs are not in the log of population.recorded");
    assert!(answer.stderr.contains(&said), "{answer:?}");
    assert!(answer.stderr.contains("are late in the log"), "{answer:?}");
    let arms = place.json("replayed/summary.json");
    let values = |policy: &str| {
        let arms = arms["arms"].as_array().unwrap();
        arms.iter().find(|arm| arm["arm"] == policy).unwrap()["values"].clone()
    };
    assert_eq!(values("recorded")["exact_jobs"]["mean"], 160.0);
    assert_eq!(values("random")["drawn_jobs"]["mean"], drawn as f64);
    assert_eq!(place.fedgenie(&["verify", "replayed"]).code, 0);
    // A changed log is another file than the run's.
    let text = place.text("tables/jobs.csv").replacen(",arrived,", ",late,", 1);
    place.write("tables/jobs.csv", text);
    let answer = place.fedgenie(&["verify", "replayed"]);
    assert!(answer.code == 1 && answer.stdout.contains("tables/jobs.csv is not the file"), "{answer:?}");
}

/// Six rounds worked out by hand from the gallery's log: 2.75 and 5.5 s; 2.25 s and one late at the timeout of 8 s;
/// 3.25 and 1.75 s; 4.5 and 7.5 s; one lost after 1.5 s, which the server awaits for 8 s; 5 and 2.75 s.
#[test]
fn a_log_by_hand() {
    let place = Workplace::new();
    let gallery = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/gallery");
    let text = std::fs::read_to_string(gallery.join("recorded.toml")).unwrap();
    assert!(text.contains("recorded = \"data/jobs.csv\""));
    place.write("replay.toml", text);
    place.write("data/jobs.csv", std::fs::read(gallery.join("data/jobs.csv")).unwrap());
    let answer = place.fedgenie(&["run", "replay.toml", "--out", "replayed", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let rounds = place.lines("replayed/runs/recorded-s1/rounds.jsonl");
    let found: Vec<_> = rounds.iter().map(|round| round["closed_s"].as_f64().unwrap()).collect();
    assert_eq!(found, [5.5, 13.5, 16.75, 24.25, 32.25, 37.25]);
    let of = |key: &str| rounds.iter().map(|round| round[key].clone()).collect::<Vec<_>>();
    let json = |values: [Value; 6]| values.to_vec();
    // In the order of dispatch; arrivals in that of arrival.
    assert_eq!(
        of("selected"),
        json([json!([0, 2]), json!([1, 3]), json!([0, 1]), json!([2, 3]), json!([0, 1]), json!([2, 0])])
    );
    assert_eq!(of("late"), json([json!([]), json!([3]), json!([]), json!([]), json!([]), json!([])]));
    let lost = &rounds[4]["dropped"];
    assert_eq!((&lost[0]["client"], &lost[0]["phase"]), (&json!(0), &json!("compute")));
    assert_eq!(lost[0]["spent_s"], json!([0.5, 1.0, 0.0]));
}

/// A run that is saved after every round goes on as if it had not been.
#[test]
fn a_replay_goes_on_from_its_checkpoints() {
    let file = format!("{}/kept.csv", env!("CARGO_TARGET_TMPDIR"));
    let row = |job: u32| format!("{},{},,{}.5,{},0.25,,arrived\n", job % 4, 1 + job / 2, job % 3, job % 5);
    let rows: String = (0..40).map(row).collect();
    std::fs::write(&file, format!("client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n{rows}"))
        .unwrap();
    let text = r#"
name = "kept"
seeds = 1
[stop]
rounds = 6
[population]
recorded = "FILE"
[protocol.synchronous]
cohort = 2
timeout = "8 s"
[task.linear-regression]
examples = 700
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[policy.recorded]
[policy.random]
"#;
    assert_eq!(assert_kept(&text.replace("FILE", &file)), 2);
}

#[test]
fn what_a_log_cannot_be_is_refused() {
    let place = logged(WORLD);
    let refused = |from: &str, to: &str, code: i32, part: &str| {
        let answer = replay(&place, &changed(REPLAY, from, to));
        assert!(answer.code == code && answer.stderr.contains(part), "{to}: {answer:?}");
    };
    let population = "[population]\n";
    refused(
        population,
        "[population]\navailability = \"always\"\n",
        2,
        "population.availability: clients replay the log",
    );
    refused(population, "[population]\nclients = 3\n", 2, "population.clients: found 3, but the log has 9 clients");
    let file = "{ file = \"tables/jobs.csv\", policy = \"random\", seed = 2 }";
    refused(file, "\"tables/jobs.csv\"", 2, "found jobs of several runs");
    refused(file, "\"none.csv\"", 2, "there is no such file");
    refused(file, "7", 2, "expected a file such as \"log.csv\"");
    refused(file, "{ file = \"tables/jobs.csv\", seeds = 2 }", 2, "seeds");
    refused("cohort = 4", "cohort = 3", 2, "has 4 clients, and the protocol selects at most 3; write 4 there");
    refused("rounds = 40", "rounds = 41", 3, "there is no round 41 in the log, which has 40; write stop.rounds = 40");
    refused(
        "[protocol.deadline]\ncohort = 4\ndeadline = \"2.5 s\"",
        "[protocol.synchronous]\ncohort = 4",
        2,
        "clients can be lost",
    );
    let buffered = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\ntimeout = \"9 s\"";
    refused(
        "[protocol.deadline]\ncohort = 4\ndeadline = \"2.5 s\"",
        buffered,
        2,
        "a log is replayed in rounds of one server",
    );
    let regret = "[policy.random]\n[regret]\ntau_min = \"1 ns\"\nalpha = 1.0\nbeta = 1.2\n";
    refused("[policy.random]\n", regret, 2, "clients replay a log, whose jobs have no law");
    let plain = "[population.latency]\ndownload = \"1 s\"\ncompute = \"1 s\"\nupload = \"1 s\"";
    let recorded = format!("recorded = {file}\n");
    refused(&recorded, &format!("clients = 5\n{plain}\n"), 2, "the population is none; write population.recorded");
    assert!(place.path(SCENARIO).exists());
}

/// The log lies beside the scenario, wherever the command is given; a file of the same name elsewhere is none of it.
#[test]
fn a_log_is_found_beside_its_scenario() {
    const HEADER: &str = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n";
    let scenario = changed(&changed(REPLAY, "rounds = 40", "rounds = 1"), "cohort = 4", "cohort = 1");
    let scenario = changed(
        &changed(&scenario, "{ file = \"tables/jobs.csv\", policy = \"random\", seed = 2 }", "\"log.csv\""),
        "[policy.random]",
        "",
    );
    let place = Workplace::new();
    place.write("deep/world.toml", scenario);
    place.write("deep/log.csv", format!("{HEADER}0,1,0,,,,2,arrived\n1,2,0,,,,2,arrived\n"));
    for elsewhere in [None, Some("no log"), Some("0,1,0,,,,2,arrived\n1,1,0,,,,2,arrived\n2,1,0,,,,2,arrived\n")] {
        if let Some(rows) = elsewhere {
            place.write("log.csv", format!("{HEADER}{rows}"));
        }
        let answer = place.fedgenie(&["run", "deep/world.toml", "--quiet"]);
        assert!(answer.code == 0 && answer.stdout.contains("\n2 clients, deadline protocol"), "{answer:?}");
    }
}
