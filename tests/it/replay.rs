//! A scenario's records are the same whenever and on however many threads it is run; `verify` names the first thing
//! that differs.

use super::support::{SCENARIO, Workplace, assert_same_folders, changed};
use serde_json::Value;
use std::fs;

/// A pure bandit with dropouts and carried jobs.
pub const BANDIT: &str = r#"name = "bandit"
seeds = 3

[stop]
rounds = 30

[population]
clients = 12
[population.latency]
download = { constant = "25 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.5 } }
upload = { constant = "25 ms" }
[population.dropout]
compute = "0.05 /s"

[task.none]
payload = "1 kB"

[protocol.deadline]
cohort = 4
deadline = "0.8 s"
late = { carry = {} }

[regret]
tau_min = "50 ms"
alpha = 3
meters = ["mean", "realised"]

[policy.bsfl]
[policy.random]
"#;

/// Linear regression, with a policy that looks at trained values.
pub const LEARNING: &str = r#"name = "learning"
seeds = 2

[stop]
rounds = 20

[population]
clients = 10
[population.latency]
download = { constant = "25 ms" }
compute = { exponential = { mean = "0.4 s", shift = "0.1 s" } }
upload = { constant = "25 ms" }

[task.linear-regression]
examples = 1_400
partition = { gamma-sized = { shape = 1.0 } }

[training]
batch = 16
optimizer = { sgd = { lr = 0.02 } }

[protocol.synchronous]
cohort = 4

[regret]
tau_min = "50 ms"

[policy.power-of-choice]
[policy.bsfl]
"#;

// ---------------------------------------------------------------------------------------------- the same again

#[test]
fn the_number_of_threads_changes_nothing() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        for threads in ["1", "2", "7"] {
            place.run_into(threads, &["--threads", threads, "--events"]);
        }
        assert_same_folders(&place, "1", "2");
        assert_same_folders(&place, "1", "7");
        assert_eq!(place.digests("1"), place.digests("7"));
    }
}

#[test]
fn running_twice_gives_the_same_bytes() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        place.run_into("one", &["--events"]);
        place.run_into("two", &["--events"]);
        assert_same_folders(&place, "one", "two");
        // Into a folder that holds an earlier experiment, which goes.
        place.run_into("two", &["--set", "stop.rounds=3", "--overwrite"]);
        place.run_into("two", &["--events", "--overwrite"]);
        assert_same_folders(&place, "one", "two");
    }
}

#[test]
fn the_resolved_scenario_gives_the_same_digests() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        place.run_into("out", &[]);
        place.run_file("out/scenario.toml", "again", &[]);
        assert_eq!(place.digests("out"), place.digests("again"));
        // Resolving is done: nothing is left to write out.
        assert_eq!(place.text("out/scenario.toml"), place.text("again/scenario.toml"));
        assert_same_folders(&place, "out", "again");
    }
}

/// Settings that a policy inherits from the reward move with a sweep over the reward, in the replay as in the run.
#[test]
fn a_sweep_over_the_reward_replays() {
    let swept = format!("{BANDIT}\n[sweep]\n\"regret.quantum\" = [0.0, 0.05]\n\"regret.alpha\" = [1.0, 5.0]\n");
    let place = Workplace::with(&swept);
    place.run_into("out", &[]);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    place.run_file("out/scenario.toml", "again", &[]);
    assert_eq!(place.digests("out"), place.digests("again"));
}

/// An axis of tables alone comes before one of texts: points keep their numbers in the replay.
#[test]
fn axes_of_a_sweep_keep_their_order() {
    let tables = r#""training.optimizer" = [{ sgd = { lr = 0.05 } }, { adam = { lr = 0.1 } }]"#;
    let mixed = r#""training.schedule" = ["constant", { exponential = { decay = 0.5 } }]"#;
    let workplace = Workplace::with(&format!("{LEARNING}\n[sweep]\n{tables}\n{mixed}\n"));
    workplace.run_into("out", &["--seeds", "1"]);
    let resolved = workplace.text("out/scenario.toml");
    assert!(resolved.find("training.optimizer").unwrap() < resolved.find("training.schedule").unwrap(), "{resolved}");
    let verified = workplace.fedgenie(&["verify", "out"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_sweeps_resolved_scenario_gives_the_same_digests() {
    let place = Workplace::with(&format!("{BANDIT}\n[sweep]\n\"policy.bsfl.alpha\" = [0.5, 3]\n"));
    place.run_into("out", &[]);
    place.run_file("out/scenario.toml", "again", &[]);
    assert_eq!(place.digests("out").len(), 12);
    assert_eq!(place.digests("out"), place.digests("again"));
    // The point that is the scenario itself gives the same as without a sweep.
    let single = Workplace::with(BANDIT);
    single.run_into("out", &[]);
    let digest = |place: &Workplace, name: &str| {
        let (_, timeline, _) = place.digests("out").into_iter().find(|(run, ..)| run == name).unwrap();
        timeline
    };
    assert_eq!(digest(&place, "bsfl of seed 2 at point 1"), digest(&single, "bsfl of seed 2 at point 0"));
    assert_ne!(digest(&place, "bsfl of seed 2 at point 0"), digest(&single, "bsfl of seed 2 at point 0"));
}

/// The evaluation at the end counts as every other: in the rounds, in the course, for targets, in the figures.
#[test]
fn the_last_round_is_evaluated() {
    let place = Workplace::with(&format!(
        "{LEARNING}\n[evaluate]\nevery = 7\ntargets = [{{ metric = \"test_loss\", at_most = 1e9 }}]\n"
    ));
    for (stop, rounds) in
        [("stop.rounds=10", Some(10)), ("stop.rounds=3", Some(3)), ("stop.virtual_time=\"9 s\"", None)]
    {
        place.run_into("out", &["--set", stop, "--overwrite"]);
        let run = place.json("out/runs/bsfl-s1/run.json");
        let last = place.lines("out/runs/bsfl-s1/rounds.jsonl").pop().unwrap();
        let found = run["final"]["test_loss"].as_f64().unwrap();
        assert!(rounds.is_none_or(|rounds| run["rounds"] == rounds), "{run}");
        assert_eq!(last["metrics"]["test_loss"], found);
        assert_eq!(run["curve"].as_array().unwrap().last().unwrap()["metrics"]["test_loss"], found);
        if run["rounds"].as_u64().unwrap() < 7 {
            assert_eq!(run["reached"][0]["round"], run["rounds"]);
        }
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    }
}

#[test]
fn a_json_scenario_gives_the_same_digests() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        let table: toml::Table = scenario.parse().unwrap();
        place.write("scenario.json", serde_json::to_string_pretty(&table).unwrap());
        place.run_into("toml", &[]);
        place.run_file("scenario.json", "json", &[]);
        assert_eq!(place.digests("toml"), place.digests("json"));
        assert_eq!(place.text("toml/scenario.toml"), place.text("json/scenario.toml"));
    }
}

#[test]
fn thinned_records_keep_totals_and_digests() {
    for scenario in [BANDIT, LEARNING] {
        let place = Workplace::with(scenario);
        place.run_into("all", &[]);
        place.run_into("few", &["--set", "record.every=10"]);
        assert_eq!(place.digests("all"), place.digests("few"));
        assert_eq!(place.json("all/summary.json"), place.json("few/summary.json"));
        let all = place.lines("all/runs/bsfl-s1/rounds.jsonl");
        let few = place.lines("few/runs/bsfl-s1/rounds.jsonl");
        let tenth: Vec<Value> = all.into_iter().filter(|line| line["round"].as_u64().unwrap() % 10 == 0).collect();
        assert!(tenth.len() >= 2);
        assert_eq!(few, tenth);
        assert_eq!(place.fedgenie(&["verify", "few"]).code, 0);
    }
}

#[test]
fn thinned_selection_counts_cover_the_rounds_between() {
    let groups =
        "[[population.group]]\nname = \"a\"\ncount = 5\n[[population.group]]\nname = \"b\"\ncount = 7\n\n[task.none]";
    let place = Workplace::with(&changed(BANDIT, "[task.none]", groups));
    place.run_into("all", &[]);
    place.run_into("few", &["--set", "record.every=10"]);
    let count = |line: &Value, group: &str| line["group_selections"][group].as_u64().unwrap();
    let all = place.lines("all/runs/random-s1/rounds.jsonl");
    for (line, rounds) in place.lines("few/runs/random-s1/rounds.jsonl").iter().zip(all.chunks(10)) {
        for group in ["a", "b"] {
            assert_eq!(count(line, group), rounds.iter().map(|line| count(line, group)).sum::<u64>());
        }
        assert!(
            rounds.iter().all(|line| {
                count(line, "a") + count(line, "b") == line["selected"].as_array().unwrap().len() as u64
            })
        );
    }
}

// ---------------------------------------------------------------------------------------------- verify

/// An experiment, run with its events or without.
fn experiment(events: bool) -> Workplace {
    let place = Workplace::with(BANDIT);
    place.run_into("out", if events { &["--events"] } else { &[] });
    let answer = place.fedgenie(&["verify", "out"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "out: 6 runs replayed, no difference\n"), "{answer:?}");
    place
}

/// `verify` says no, and its first difference is described by these parts, in this order.
fn assert_differs(place: &Workplace, parts: &[&str]) {
    let answer = place.fedgenie(&["verify", "out", "--threads", "2"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (1, ""), "{answer:?}");
    assert_eq!(answer.stdout.lines().count(), 1 + usize::from(answer.stdout.contains(" runs differ\n")), "{answer:?}");
    assert!(answer.stdout.starts_with("first difference: "), "{answer:?}");
    let mut rest = answer.stdout.as_str();
    for part in parts {
        let found = rest.find(part);
        assert!(found.is_some(), "{part:?} is missing, or out of order, in: {}", answer.stdout);
        rest = &rest[found.unwrap() + part.len()..];
    }
    let json = place.fedgenie(&["verify", "out", "--json"]);
    assert_eq!(json.code, 1);
    let verdict: Value = serde_json::from_str(&json.stdout).unwrap();
    let difference = &verdict["difference"];
    for (key, value) in [("run", &difference["run"]), ("round", &difference["round"]), ("event", &difference["event"])]
    {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown = answer.stdout.contains(&format!("{key} {value}"));
        assert!(shown || value == "null", "{key} {value}: {}", answer.stdout);
    }
}

const RUN: &str = "out/runs/random-s2";

/// Replaces one line, from 1, of the run's rounds; nothing removes it.
fn edit_line(place: &Workplace, number: usize, edit: impl Fn(&str) -> Option<String>) {
    let name = format!("{RUN}/rounds.jsonl");
    let mut text = String::new();
    for (place, line) in place.text(&name).lines().enumerate() {
        let line = if place + 1 == number { edit(line) } else { Some(line.to_owned()) };
        line.into_iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    assert_ne!(text, place.text(&name));
    place.write(&name, text);
}

#[test]
fn an_edited_line_of_rounds() {
    for events in [false, true] {
        let place = experiment(events);
        edit_line(&place, 17, |line| Some(line.replacen("\"up_bytes\":", "\"up_bytes\":9", 1)));
        assert_differs(&place, &["run random-s2", "round 17", "rounds.jsonl", "up_bytes: stored 9", "the replay gave"]);
        edit_line(&place, 17, |_| Some("{".to_owned()));
        assert_differs(&place, &["run random-s2", "round 17", "rounds.jsonl", "not JSON"]);
    }
}

#[test]
fn an_added_key_or_a_reordered_line_of_rounds() {
    let place = experiment(false);
    edit_line(&place, 5, |line| Some(line.replacen('{', "{\"extra\":1,", 1)));
    assert_differs(&place, &["run random-s2", "round 5", "rounds.jsonl", "other keys"]);
}

#[test]
fn a_deleted_line_of_rounds() {
    let place = experiment(false);
    edit_line(&place, 17, |_| None);
    assert_differs(&place, &["run random-s2", "round 17", "rounds.jsonl", "round: stored 18, the replay gave 17"]);
    let place = experiment(false);
    edit_line(&place, 30, |_| None);
    assert_differs(&place, &["run random-s2", "round 30", "rounds.jsonl ends before this round"]);
}

#[test]
fn an_added_line_of_rounds() {
    let place = experiment(false);
    edit_line(&place, 30, |line| Some(format!("{line}\n{line}")));
    assert_differs(&place, &["run random-s2", "round 31", "rounds.jsonl goes on"]);
}

/// Where each round's mark begins in `digests.bin`: two words of 8 bytes, a count of 4, and 4 bytes per record.
fn marks(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    while *starts.last().unwrap() < bytes.len() {
        let start = *starts.last().unwrap();
        let count = u32::from_le_bytes(bytes[start + 16..start + 20].try_into().unwrap());
        starts.push(start + 20 + 4 * count as usize);
    }
    starts
}

fn edit_byte(place: &Workplace, edit: impl Fn(&[usize]) -> usize) {
    let name = format!("{RUN}/digests.bin");
    let mut bytes = place.read(&name);
    let at = edit(&marks(&bytes));
    bytes[at] ^= 0x10;
    place.write(&name, bytes);
}

#[test]
fn an_edited_byte_of_the_digests() {
    for events in [false, true] {
        let place = experiment(events);
        edit_byte(&place, |marks| marks[16] + 3);
        assert_differs(&place, &["run random-s2", "round 17", "timeline digest differs"]);
        let place = experiment(events);
        edit_byte(&place, |marks| marks[16] + 11);
        assert_differs(&place, &["run random-s2", "round 17", "model digest differs"]);
    }
}

#[test]
fn an_edited_checksum_of_an_event() {
    let place = experiment(false);
    // The third event's checksum.
    edit_byte(&place, |marks| marks[16] + 20 + 4 * 2);
    assert_differs(&place, &["run random-s2", "round 17", "event 3", "the replay's event is", "ended download"]);
}

#[test]
fn a_spoilt_count_in_the_digests() {
    let place = experiment(false);
    // The count's highest byte: the file ends long before so many checksums.
    edit_byte(&place, |marks| marks[16] + 19);
    assert_differs(&place, &["run random-s2", "round 17", "digests.bin"]);
    let place = experiment(false);
    let bytes = place.read(&format!("{RUN}/digests.bin"));
    place.write(&format!("{RUN}/digests.bin"), &bytes[..marks(&bytes)[16] + 5]);
    assert_differs(&place, &["run random-s2", "round 17", "digests.bin"]);
}

#[test]
fn a_changed_event_is_named_where_events_are_stored() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let place = experiment(true);
    let lines = place.events(RUN);
    let is_opened = |line: &Value| line["event"] == "opened" && line["round"] == 17;
    let opened = lines.iter().position(is_opened).unwrap();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for (number, line) in lines.iter().enumerate() {
        let mut line = line.clone();
        if number == opened + 2 {
            line["time_ns"] = Value::from(1);
        }
        writeln!(encoder, "{line}").unwrap();
    }
    place.write(&format!("{RUN}/events.jsonl.gz"), encoder.finish().unwrap());
    assert_differs(&place, &["run random-s2", "round 17", "event 3", "\"time_ns\":1", "the replay's event is"]);
}

#[test]
fn a_changed_parameter_of_the_scenario() {
    for events in [false, true] {
        let place = experiment(events);
        let scenario = place.text("out/scenario.toml");
        // The policy's weight: the first choice is the same, as nobody was seen, and later ones are not.
        let of_bsfl = scenario.find("[policy.bsfl]").unwrap();
        let (before, after) = scenario.split_at(of_bsfl);
        place.write("out/scenario.toml", format!("{before}{}", after.replacen("alpha = 3.0", "alpha = 0.5", 1)));
        assert_differs(&place, &["run bsfl-s1", "round ", "event 1", "opened"]);
    }
    // A latency: the first phase that takes longer ends the first round's second event.
    let place = experiment(false);
    place.write("out/scenario.toml", changed(&place.text("out/scenario.toml"), "sigma = 0.5", "sigma = 0.6"));
    assert_differs(&place, &["run bsfl-s1", "round 1", "event 6", "the replay's event is", "ended compute"]);
}

#[test]
fn a_scenario_that_only_reads_differently() {
    let place = experiment(false);
    place.write("out/scenario.toml", format!("{}\n# a remark\n", place.text("out/scenario.toml")));
    assert_differs(&place, &["files", "scenario.toml is not the file that was written"]);
}

#[test]
fn more_or_fewer_rounds_than_stored() {
    let place = experiment(false);
    place.write("out/scenario.toml", changed(&place.text("out/scenario.toml"), "rounds = 30", "rounds = 29"));
    assert_differs(&place, &["run bsfl-s1", "round 30", "goes on after the replay's last round"]);
    place.write("out/scenario.toml", changed(&place.text("out/scenario.toml"), "rounds = 29", "rounds = 31"));
    assert_differs(&place, &["run bsfl-s1", "round 31", "ends before this round"]);
}

#[test]
fn a_missing_file_of_a_run() {
    for name in ["rounds.jsonl", "digests.bin", "run.json"] {
        let place = experiment(false);
        fs::remove_file(place.path(&format!("{RUN}/{name}"))).unwrap();
        let answer = place.fedgenie(&["verify", "out"]);
        assert_eq!(answer.code, 1, "{answer:?}");
        let said = answer.stdout.as_str();
        assert!(said.contains("random-s2") && said.contains(name) && said.contains("1 of 6 runs differ"), "{said}");
    }
}

#[test]
fn an_edited_result_of_a_run() {
    let place = experiment(false);
    let text = place.text(&format!("{RUN}/run.json"));
    let digest = place.json(&format!("{RUN}/run.json"))["digest"]["timeline"].as_str().unwrap().to_owned();
    place.write(&format!("{RUN}/run.json"), text.replace(&digest, &"0".repeat(64)));
    assert_differs(&place, &["run random-s2", "round 30", "run.json"]);
    let place = experiment(false);
    place.write("out/summary.json", place.text("out/summary.json").replacen("\"rounds\": 30", "\"rounds\": 31", 1));
    assert_differs(&place, &["files", "summary.json is not the file that was written"]);
}

#[test]
fn the_table_and_the_json_tell_the_same() {
    let place = Workplace::with(BANDIT);
    let table = place.fedgenie(&["run", SCENARIO, "--quiet"]);
    let json = place.fedgenie(&["run", SCENARIO, "--quiet", "--json"]);
    assert_eq!((table.code, json.code), (0, 0));
    assert!(table.stdout.contains("digest of all runs") && table.stdout.contains("bsfl"));
    let summary: Value = serde_json::from_str(&json.stdout).unwrap();
    place.run_into("out", &[]);
    assert_eq!(summary, place.json("out/summary.json"));
}
