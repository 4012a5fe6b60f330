//! Messages about common mistakes: each says what to write instead.

use super::support::{Answer, SCENARIO, Workplace, changed, line_of};
use std::process::Command;

const GOOD: &str = r#"name = "good"
seeds = 2

[stop]
rounds = 3

[population]
clients = 4
[population.latency]
download = { constant = "10 ms" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "20 ms" }

[protocol.deadline]
cohort = 2
deadline = "2 s"

[policy.random]
"#;

/// The only line on standard error, behind the name of the program.
fn error(answer: &Answer) -> &str {
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    answer.stderr.trim_end().strip_prefix("fedgenie: error: ").unwrap_or_else(|| panic!("{answer:?}"))
}

fn run(scenario: &str, more: &[&str]) -> String {
    error(&Workplace::with(scenario).fedgenie(&[&["run", SCENARIO, "--quiet"], more].concat())).to_owned()
}

/// The scenario without the sections that begin with a header.
fn without(header: &str) -> String {
    let mut is_out = false;
    let keep = |line: &&str| {
        if line.starts_with('[') {
            is_out = line.starts_with(header);
        }
        !is_out
    };
    GOOD.lines().filter(keep).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_scenario_is_good_before_it_is_spoilt() {
    Workplace::with(GOOD).run_into("out", &[]);
}

#[test]
fn what_is_missing_has_an_example_to_paste() {
    for (header, expected) in [
        ("[stop", "write for example rounds = 200 below [stop]"),
        (
            "[protocol",
            "the key \"protocol\" is missing; write for example [protocol.synchronous] and below it cohort = 10",
        ),
        ("[population", "the key \"population\" is missing; write for example [population] and below it clients = 20"),
        ("[policy", "write for example [policy.random]"),
    ] {
        let message = run(&without(header), &[]);
        assert!(message.contains(expected), "{message}\nshould say {expected}");
    }
    for (key, example) in [("name", "\"my-study\""), ("seeds", "20"), ("cohort", "10"), ("deadline", "\"30 s\"")] {
        let line = GOOD.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        let message = run(&changed(GOOD, &format!("{line}\n"), ""), &[]);
        let expected = format!("the key {key:?} is missing; write for example {key} = {example}");
        assert!(message.ends_with(&expected), "{message}\nshould end with {expected}");
    }
    let learning = format!("{GOOD}[task.linear-regression]\nexamples = 50\n");
    let message = run(&learning, &[]);
    assert!(
        message.contains("[training] and below it batch = 32 and optimizer = { sgd = { lr = 0.01 } }"),
        "{message}"
    );
    let message = run(&format!("{learning}[training]\nbatch = 8\n"), &[]);
    assert!(message.ends_with(
        "training: the key \"optimizer\" is missing; write for example optimizer = { sgd = { lr = 0.01 } }"
    ));
    let message = run(&format!("{learning}[training]\noptimizer = {{ adam = {{}} }}\n"), &[]);
    assert!(
        message.ends_with("training.optimizer.adam: the key \"lr\" is missing; write for example lr = 0.01"),
        "{message}"
    );
}

#[test]
fn a_label_of_ones_own_needs_a_kind() {
    let message = run(&changed(GOOD, "[policy.random]", "[policy.bsfl2]"), &[]);
    assert!(message.starts_with("scenario.toml:18: policy.bsfl2: unknown policy \"bsfl2\"; did you mean"), "{message}");
    assert!(message.ends_with("goes with a kind: [policy.bsfl2] with kind = \"bsfl\""), "{message}");
    let message = run(&changed(GOOD, "[policy.random]", "[policy.x]\nkind = \"bsfl2\""), &[]);
    assert!(!message.contains("goes with a kind"), "{message}");
}

/// A sweep over a second protocol is refused with the settings that sweep over it, and those do.
#[test]
fn a_second_protocol_of_a_sweep_is_given_whole() {
    let sweep = |line: &str| format!("{GOOD}[sweep]\n{line}\n");
    let message = run(&sweep("\"protocol.synchronous.cohort\" = [1, 2]"), &[]);
    let (_, whole) = message.split_once("sweep over it whole: ").unwrap_or_else(|| panic!("{message}"));
    assert_eq!(whole, "protocol = [{ synchronous = { cohort = 1 } }]");
    assert!(message.contains("the sweep's \"protocol.synchronous.cohort\" adds one"), "{message}");
    let place = Workplace::with(&sweep(whole));
    assert_eq!(place.fedgenie(&["run", SCENARIO, "--quiet"]).code, 0);
}

/// The message has the argument that replaces the protocol, and it does.
#[test]
fn a_second_protocol_replaces_the_first_as_the_message_says() {
    let message = run(GOOD, &["--set", "protocol.synchronous.cohort=3"]);
    let start =
        "--set: protocol: found a table of deadline, synchronous; expected one kind: a name, or a table with exactly";
    assert!(message.starts_with(start), "{message}");
    let (_, argument) = message.split_once("give it whole: --set ").unwrap();
    assert_eq!(argument, "'protocol={ synchronous = { cohort = 3 } }'");
    Workplace::with(GOOD).run_into("out", &["--set", argument.trim_matches('\'')]);
    // Of two in the file the command line is not told.
    let message = run(&changed(GOOD, "[policy.", "[protocol.synchronous]\ncohort = 2\n[policy."), &[]);
    assert!(!message.contains("--set"), "{message}");
}

#[test]
fn numbers_of_the_command_line_are_refused_in_our_words() {
    for (words, expected) in [
        (["--seeds", "-1"], "found --seeds -1; expected a whole number from 1 to 100000"),
        (["--seeds", "0"], "found --seeds 0; expected a whole number from 1 to 100000"),
        (["--seeds", "5000000000"], "found --seeds 5000000000; expected a whole number from 1 to 100000"),
        (["--threads", "lots"], "found --threads lots; expected a whole number from 0 to 1024"),
        (["--threads", "-2"], "found --threads -2; expected a whole number from 0 to 1024"),
    ] {
        assert_eq!(run(GOOD, &words), expected);
    }
    let place = Workplace::with(GOOD);
    place.run_into("out", &["--seeds", "3", "--threads", "1"]);
    assert_eq!(place.json("out/summary.json")["runs"].as_array().unwrap().len(), 3);
    let answer = place.fedgenie(&["verify", "out", "--threads", "two"]);
    assert_eq!(error(&answer), "found --threads two; expected a whole number from 0 to 1024");
}

#[test]
fn ranges_have_both_ends() {
    let message = run(GOOD, &["--set", "stop.rounds=1000000000000"]);
    assert_eq!(message, "--set: stop.rounds: found 1000000000000; expected a whole number from 0 to 4294967295");
    let message = run(GOOD, &["--set", "stop.rounds=0"]);
    assert_eq!(message, "--set: stop.rounds: found 0; expected a whole number from 1 to 4294967295");
}

#[test]
fn errors_of_json_have_their_lines() {
    let place = Workplace::new();
    place.write(
        "a.json",
        "{\n \"$schema\": \"x\",\n \"name\": \"x\",\n \"seeds\": 2,\n \"stop\":\n { \"rounds\": \"a\" }\n}\n",
    );
    let message = error(&place.fedgenie(&["run", "a.json"])).to_owned();
    assert_eq!(message, "a.json:6: stop.rounds: found \"a\"; expected a whole number from 0 to 4294967295");
}

fn with_links(link: &str) -> String {
    let device = format!("[population.device]\nsamples_per_second = 10\nuplink = \"1 Mbit/s\"\ndownlink = {link}\n");
    let latency = &GOOD[GOOD.find("[population.latency]").unwrap()..GOOD.find("[protocol").unwrap()];
    changed(GOOD, latency, &device)
}

#[test]
fn tables_say_what_they_found_and_what_they_lack() {
    let place = |link: &str| {
        let scenario = with_links(link);
        let place = Workplace::with(&scenario);
        place.write("links.csv", "phone,up_kbps,down_kbps\na,100,200\nb,100,200\n");
        let message = error(&place.fedgenie(&["run", SCENARIO])).to_owned();
        let start = format!("{SCENARIO}:{}: population.device.downlink", line_of(&scenario, "downlink"));
        message.strip_prefix(&start).unwrap_or_else(|| panic!("{message}")).to_owned()
    };
    let message = place("{ table = { file = \"links.csv\", column = \"up_kbps\" } }");
    assert!(
        message.starts_with(".table: found a table of file, column; expected a `unit` as well, of a data rate"),
        "{message}"
    );
    let message = place("{ table = { file = \"links.csv\", column = \"up_kbps\", unit = \"kbps\" } }");
    let expected = "expected one of bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s as `unit`, not \"kbps\"";
    assert!(
        message.starts_with(".table: found a table of file, column, unit; ") && message.ends_with(expected),
        "{message}"
    );
    let message = place("{ table = { file = \"links.csv\", column = \"nope\", unit = \"kbit/s\" } }");
    let expected = "links.csv:1: found the columns phone, up_kbps, down_kbps; expected nope: there is no \"nope\"";
    assert!(message.ends_with(expected), "{message}");
    let message = place("{ table = { file = \"gone.csv\", column = \"up_kbps\", unit = \"kbit/s\" } }");
    assert!(message.contains("gone.csv: there is no such file; `--data DIR` says where data are"), "{message}");
}

#[test]
fn missing_data_name_the_option_that_finds_them() {
    let task = "[task.softmax-regression]\ndata = \"digits\"\n[training]\noptimizer = { sgd = { lr = 0.1 } }\n[policy.";
    let message = run(&changed(GOOD, "[policy.", task), &[]);
    assert!(message.contains("digits: there is no such folder; `--data DIR` says where data are"), "{message}");
}

#[test]
fn training_without_effect_is_refused() {
    let with = |keys: &str| changed(GOOD, "[policy.", &format!("[training]\n{keys}\n[policy."));
    for (keys, key, why) in [
        ("optimizer = { sgd = { lr = 0.1 } }", "optimizer", "nothing is trained"),
        ("epochs = 2", "epochs", "count where a [population.device]"),
        ("clip = 1.0", "clip", "nothing is trained"),
    ] {
        let scenario = with(keys);
        let message = run(&scenario, &[]);
        let start = format!("{SCENARIO}:{}: training.{key}: has no effect", line_of(&scenario, keys));
        assert!(message.starts_with(&start) && message.contains(why), "{message}\nshould begin {start}");
    }
    // The work of a device is epochs, or the examples of its steps.
    let place = |training: &str| {
        let scenario = changed(&with_links("\"1 Mbit/s\""), "[policy.", &format!("[training]\n{training}\n[policy."));
        Workplace::with(&scenario)
    };
    let time = |training: &str| {
        let place = place(training);
        place.run_into("out", &[]);
        // The resolved scenario is read again.
        place.run_file("out/scenario.toml", "again", &[]);
        assert_eq!(place.digests("out"), place.digests("again"));
        place.json("out/summary.json")["runs"][0]["compute_s"].as_f64().unwrap()
    };
    assert!(time("epochs = 3") > 2.5 * time("epochs = 1"));
    time("steps = 2\nbatch = 4");
    let message = error(&place("epochs = 3\nbatch = 4").fedgenie(&["run", SCENARIO])).to_owned();
    assert!(message.contains("training.batch: has no effect"), "{message}");
}

#[test]
fn a_population_beyond_all_memory_is_refused_with_its_size() {
    let message = run(GOOD, &["--set", "population.clients=1000000000"]);
    let expected = "--set: population.clients: found 1000000000 clients; expected between 1 and 100000000; they would take \
                    about 193.7 GiB of memory";
    assert_eq!(message, expected);
}

#[test]
fn a_changed_scenario_is_what_verify_says_first() {
    let place = Workplace::with(GOOD);
    place.run_into("out", &[]);
    let text = place.text("out/scenario.toml");
    place.write("out/scenario.toml", text.replace("\"1 s\"", "\"1.5 s\""));
    let answer = place.fedgenie(&["verify", "out"]);
    let changed = "scenario.toml is not the file that was written: its BLAKE3 digest differs";
    let first = format!("first difference: files: {changed}; then run random-s1, round 1, event ");
    assert!(answer.code == 1 && answer.stdout.starts_with(&first), "{answer:?}");
    assert!(answer.stdout.ends_with("2 of 2 runs differ\n"), "{answer:?}");
    // One that cannot be run is no other.
    place.write("out/scenario.toml", text.replace("cohort = 2", "cohort = 20"));
    let message = error(&place.fedgenie(&["verify", "out"])).to_owned();
    assert!(message.starts_with(changed) && message.contains("protocol.deadline.cohort"), "{message}");
}

#[test]
fn a_name_alone_is_described_or_proposed() {
    let place = Workplace::new();
    let answer = place.fedgenie(&["describe", "bsfl"]);
    assert!(answer.code == 0 && answer.stdout.starts_with("policy/bsfl\n"), "{answer:?}");
    let message = error(&place.fedgenie(&["describe", "bsf"])).to_owned();
    assert!(message.starts_with("found \"bsf\"; did you mean policy/bsfl? expected KIND/NAME"), "{message}");
    let message = error(&place.fedgenie(&["describe", "random"])).to_owned();
    assert!(message.starts_with("\"random\" may be policy/random or "), "{message}");
}

/// The command that a folder proposes carries `--data`, and works.
#[test]
fn the_command_that_completes_carries_the_folder_of_data() {
    let place =
        Workplace::with(&with_links("{ table = { file = \"links.csv\", column = \"kbps\", unit = \"kbit/s\" } }"));
    place.write("my data/links.csv", "kbps\n100\n200\n300\n400\n");
    place.run_into("out", &["--data", "my data"]);
    let complete = place.text("out/summary.json");
    std::fs::remove_dir_all(place.path("out/runs/random-s2")).unwrap();
    let answer = place.fedgenie(&["verify", "out"]);
    let command = answer.stdout.split('`').nth(1).unwrap_or_else(|| panic!("{answer:?}")).to_owned();
    assert!(command.contains(" --data '") && command.contains("/my data' --resume"), "{command}");
    let program = env!("CARGO_BIN_EXE_fedgenie");
    let command = command.replacen("fedgenie", &format!("'{program}'"), 1);
    let output = Command::new("sh").args(["-c", &command]).current_dir(place.path("")).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(place.text("out/summary.json"), complete);
}
