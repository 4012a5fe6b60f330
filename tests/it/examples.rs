//! Scenarios in the program, and completions of its command line.

use super::support::Workplace;
use std::path::Path;

/// Each example is a file of the repository, to the letter, and reads no file beside it.
#[test]
fn examples_are_listed_and_written() {
    let place = Workplace::new();
    let list = place.fedgenie(&["examples"]);
    assert_eq!(list.code, 0);
    let names: Vec<&str> = list
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    for name in ["quickstart", "studies/deadline", "gallery/algorithms", "fedacs/smoke"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(!names.contains(&"studies/own_traces"), "it reads files beside it");
    for name in ["quickstart", "studies/deadline"] {
        assert_eq!(place.fedgenie(&["examples", name]).code, 0);
        let written = place.text(&format!("{}.toml", name.rsplit('/').next().unwrap()));
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenarios/{name}.toml"));
        assert_eq!(written, std::fs::read_to_string(original).unwrap());
    }
    let run = place.fedgenie(&["run", "quickstart.toml", "--seeds", "1", "--set", "stop.rounds=2", "--quiet"]);
    assert_eq!(run.code, 0, "{run:?}");
    let again = place.fedgenie(&["examples", "quickstart"]);
    assert!(again.code == 2 && again.stderr.contains("quickstart.toml exists already"), "{again:?}");
    let unknown = place.fedgenie(&["examples", "quickstrat"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("quickstart"), "{unknown:?}");
}

#[test]
fn shells_complete_options() {
    let place = Workplace::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let answer = place.fedgenie(&["completions", shell]);
        assert!(answer.code == 0 && answer.stdout.contains("timeline-rounds"), "{shell}");
    }
    assert_eq!(place.fedgenie(&["completions", "tcsh"]).code, 2);
}

/// Without a value a key is taken away; a key that is not there is named.
#[test]
fn a_setting_is_taken_away() {
    let place = Workplace::new();
    assert_eq!(place.fedgenie(&["examples", "quickstart"]).code, 0);
    let set = ["--set", "stop.rounds=", "--set", "stop.virtual_time=\"10 s\""];
    let run =
        place.fedgenie(&[&["run", "quickstart.toml", "--seeds", "1", "--quiet", "--out", "out"], &set[..]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    for run in place.json("out/summary.json")["runs"].as_array().unwrap() {
        assert_eq!(run["ended"], "virtual_time");
    }
    let wrong = place.fedgenie(&["run", "quickstart.toml", "--set", "stop.round="]);
    assert!(wrong.code == 2 && wrong.stderr.contains("stop.round= takes a value away"), "{wrong:?}");
}
