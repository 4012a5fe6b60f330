//! The tutorial and the how-to pages, command by command; their numbers; options that pages name.

use super::pages::{Page, all, root};
use crate::support::Workplace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Writes the files that a page says to save, and runs its commands, in an empty folder with `fruit.csv`.
///
/// A block is saved if the line before it ends with the file's name. A command succeeds, unless its line ends with
/// the exit code.
fn followed(path: &str) -> Workplace {
    let place = Workplace::new();
    place.write("fruit.csv", fs::read(root().join("scenarios/gallery/data/fruit.csv")).unwrap());
    let binary = Path::new(env!("CARGO_BIN_EXE_fedgenie")).parent().unwrap();
    let path_of_all = env::var_os("PATH").unwrap_or_default();
    let paths = env::join_paths([binary.to_owned()].into_iter().chain(env::split_paths(&path_of_all))).unwrap();
    let mut commands = 0;
    for block in Page::read(path).blocks() {
        if let Some(file) = block.before.strip_suffix("`:").and_then(|line| line.rsplit('`').next()) {
            place.write(file, &block.body);
        }
        if block.kind != "sh" {
            continue;
        }
        for line in block.body.lines() {
            let code = line.split_once("# exit code ").map_or(0, |(_, code)| code.parse().unwrap());
            let mut command = Command::new("sh");
            let output =
                command.args(["-e", "-c", line]).env("PATH", &paths).current_dir(place.path("")).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{path}: {line}\n{stderr}");
            commands += 1;
        }
    }
    assert!(commands > 0, "{path} has no command");
    place
}

/// The first answer of a result folder: the best, and the next.
fn first_answer(place: &Workplace, folder: &str) -> (Value, Value) {
    let answer = &place.json(&format!("{folder}/summary.json"))["answers"][0];
    (answer["best"].clone(), answer["others"][0]["name"].clone())
}

#[test]
fn the_tutorial_runs_and_its_answers_hold() {
    let place = followed("docs/tutorial.md");
    for file in ["results/ten/report.html", "paper/results.tex", "tables/rounds.csv", "deadline.toml"] {
        assert!(place.path(file).exists(), "{file}");
    }
    // Points 1 and 2 are 2 s and 3 s.
    assert_eq!(first_answer(&place, "results/sweep"), (1.into(), 2.into()));
    let summary = place.json("results/sweep/summary.json");
    let bytes = |arm: &Value| arm["values"]["bytes_to.test_loss <= 0.5"]["mean"].as_f64().unwrap();
    let bytes: Vec<f64> = summary["arms"].as_array().unwrap().iter().map(bytes).collect();
    assert!(bytes.iter().all(|&other| bytes[2] <= other), "fewest bytes at 3 s: {bytes:?}");
}

#[test]
fn how_to_pages_run() {
    for page in ["traces", "data", "deadline", "paper", "cluster"] {
        followed(&format!("docs/how-to/{page}.md"));
    }
}

#[test]
fn the_attack_costs_what_the_page_says() {
    let place = followed("docs/how-to/attack.md");
    let summary = place.json("results/attack/summary.json");
    let mut found = BTreeMap::new();
    for arm in summary["arms"].as_array().unwrap() {
        let mean = arm["values"]["final.test_accuracy"]["mean"].as_f64().unwrap();
        found.insert((arm["point"].as_u64().unwrap(), arm["arm"].as_str().unwrap().to_owned()), format!("{mean:.3}"));
    }
    let page = Page::read("docs/how-to/attack.md").text;
    for (point, data) in [(0, "train.csv"), (1, "poisoned.csv")] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{data}`"))).unwrap();
        for (column, arm) in [(2, "average"), (3, "trimmed")] {
            let cell = row.split('|').nth(column).unwrap().trim();
            let mean = &found[&(point, arm.to_owned())];
            assert!(cell.starts_with(&**mean), "{data}, {arm}: {cell:?} should be {mean}");
        }
    }
}

/// The words of pages that look like options of a command are options of it.
#[test]
fn options_in_commands_exist() {
    let place = Workplace::new();
    let mut helps = BTreeMap::new();
    let mut options = 0;
    for page in all() {
        for block in page.blocks().into_iter().filter(|block| block.kind == "sh") {
            for line in block.body.lines().filter_map(|line| line.strip_prefix("fedgenie ")) {
                let mut words = line.split_whitespace().take_while(|word| *word != "#");
                let command = words.next().unwrap().to_owned();
                let help = helps.entry(command.clone()).or_insert_with(|| place.fedgenie(&[&command, "--help"]).stdout);
                for option in words.filter(|word| word.starts_with("--")) {
                    let name = option.split('=').next().unwrap();
                    assert!(help.contains(name), "{}: fedgenie {line}: there is no {name}", page.path);
                    options += 1;
                }
            }
        }
    }
    assert!(options > 20, "{options}");
}
