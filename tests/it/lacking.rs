//! Result folders in which something is missing, has failed or was changed: every command that reads them says so, on
//! standard error and in its output, and names the command that makes the rest.

use super::replay::LEARNING;
use super::support::{Answer, PLAIN, SCENARIO, Workplace, changed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Two policies, and a third all of whose runs fail in `bad`.
const DIVERGES: &str = "policy.random.with={ \"training.optimizer.sgd.lr\" = 1e30 }";
const REASON: &str = "the model diverged: the update of client";
const SHORT: &str = "stop.rounds=6";

fn workplace() -> Workplace {
    let place = Workplace::with(&format!("{LEARNING}[policy.random]\n"));
    place.run_into("good", &["--set", SHORT]);
    place
}

/// As [`workplace`], with another folder in which the third policy fails.
fn with_failures() -> (Workplace, Answer) {
    let place = workplace();
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "bad", "--quiet", "--set", SHORT, "--set", DIVERGES]);
    assert_eq!(answer.code, 3, "{answer:?}");
    (place, answer)
}

/// Each command's output for a folder. Tables are in `csv` and `parquet`, the page is `page.html`.
fn read_by_all(place: &Workplace, folder: &str, more: &[&str]) -> Vec<(&'static str, Answer)> {
    for written in ["csv", "parquet"] {
        let _ = fs::remove_dir_all(place.path(written));
    }
    let commands: [(&str, &[&str]); 6] = [
        ("report", &["report", folder, "-o", "page.html"]),
        ("tables", &["report", folder, "--format", "md", "-o", "md"]),
        ("diff", &["diff", "good", folder]),
        ("json", &["diff", "good", folder, "--json"]),
        ("csv", &["export", folder, "--to", "csv", "-o", "csv"]),
        ("parquet", &["export", folder, "--to", "parquet", "-o", "parquet"]),
    ];
    commands.map(|(name, words)| (name, place.fedgenie(&[words, more].concat()))).into()
}

/// The rows of a table by column. No cell of these tests has a comma but reasons, which are in quotes.
fn rows(place: &Workplace, table: &str) -> Vec<BTreeMap<String, String>> {
    let text = place.text(&format!("csv/{table}.csv"));
    let cells = |line: &str| -> Vec<String> {
        let mut in_quotes = false;
        let split = line.split(|letter| {
            in_quotes ^= letter == '"';
            letter == ',' && !in_quotes
        });
        split.map(str::to_owned).collect()
    };
    let mut lines = text.lines().map(cells);
    let header = lines.next().unwrap();
    lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
}

fn has(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|found| found == part.as_bytes())
}

#[test]
fn a_policy_none_of_whose_runs_is_complete_is_named_in_every_table() {
    let (place, run) = with_failures();
    let row = run.stdout.lines().find(|line| line.starts_with("random ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["random", "–", "–", "–", "–"], "{run:?}");
    assert!(run.stdout.contains(&format!("\nrandom has no complete run: 2 failed ({REASON}")), "{run:?}");
    let incomplete = &place.json("bad/summary.json")["incomplete"];
    for (index, seed) in [1, 2].into_iter().enumerate() {
        let found = &incomplete[index];
        assert_eq!(
            (&found["arm"], &found["seed"], &found["status"]),
            (&json!("random"), &json!(seed), &json!("failed"))
        );
        assert!(found["reason"].as_str().unwrap().starts_with(REASON), "{found}");
    }
    for (name, answer) in read_by_all(&place, "bad", &[]) {
        assert_eq!(answer.code, 0, "{name}: {answer:?}");
        for part in [
            "random has no complete run: 2 failed\n",
            &format!("2 of 6 runs failed: random-s1, random-s2 ({REASON}"),
            "`fedgenie run bad/scenario.toml --out bad --resume` tries them again, to the same end unless program or data are others\n",
        ] {
            assert!(answer.stderr.contains(part), "{name} does not say {part:?}: {answer:?}");
        }
        assert_eq!(answer.stderr.matches("2 of 6 runs failed").count(), 1, "{name}: {answer:?}");
        let row = |start: &str| answer.stdout.lines().any(|line| line.starts_with(start));
        match name {
            "diff" => {
                assert!(row("bad: random has no complete run: 2 failed") && row("random "), "{answer:?}");
                let rows = answer.stdout.lines().find(|line| line.contains("complete runs")).unwrap();
                assert_eq!(
                    rows.split_whitespace().collect::<Vec<_>>().join(" "),
                    "random complete runs 2 of 2 0 of 2 no complete run"
                );
            }
            "json" => {
                let found: Value = serde_json::from_str(&answer.stdout).unwrap();
                let expected = json!({ "policy": "random", "complete": [2, 0], "expected": [2, 2] });
                assert_eq!(found["complete_runs"], json!([expected]));
                assert_eq!(
                    (&found["incomplete"][1]["folder"], &found["incomplete"][1]["seed"]),
                    (&json!("bad"), &json!(2))
                );
            }
            _ => {}
        }
    }
    let page = place.text("page.html");
    assert!(page.contains("<li>random has no complete run: 2 failed</li>") && page.contains(">no complete run<"));
    assert!(page.contains(">0 (2 failed)<") && page.contains(">4 of 6<"), "all results and facts count as well");
    let row = |table: &str| {
        let text = place.text(&format!("md/{table}.md"));
        text.lines().find(|line| line.contains("| random |")).map(str::to_owned).unwrap()
    };
    assert!(row("results").starts_with("| random | 0 (2 failed) |"));
    assert!(row("verdicts").contains("| no complete run: 2 failed |"));

    let runs = rows(&place, "runs");
    assert_eq!(runs.len(), 6, "all runs that there should be");
    for run in runs {
        let is_failed = run["policy"] == "random";
        assert_eq!(run["status"], if is_failed { "failed" } else { "complete" });
        assert_eq!((run["rounds"].is_empty(), run["reason"].contains(REASON)), (is_failed, is_failed), "{run:?}");
    }
    let comparisons = rows(&place, "comparisons");
    let of_random: Vec<_> = comparisons.iter().filter(|row| row["policy"] == "random").collect();
    assert_eq!(of_random.len(), 1);
    assert_eq!(["status", "n", "value", "quantity"].map(|key| &*of_random[0][key]), ["failed", "0", "", ""]);
    assert!(comparisons.iter().filter(|row| row["policy"] != "random").all(|row| row["status"] == "complete"));
    let parquet = place.read("parquet/runs.parquet");
    assert!(has(&parquet, "status") && has(&parquet, REASON) && has(&parquet, "failed"));
}

/// Where no run is complete a report has nothing to draw; the others say which there should be.
#[test]
fn a_folder_without_a_complete_run_is_told_run_by_run() {
    let place = workplace();
    let lr = "training.optimizer.sgd.lr=1e30";
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "bad", "--quiet", "--set", SHORT, "--set", lr]);
    assert_eq!(answer.code, 3);
    for (name, answer) in read_by_all(&place, "bad", &[]) {
        let is_report = ["report", "tables"].contains(&name);
        assert_eq!(answer.code, if is_report { 2 } else { 0 }, "{name}: {answer:?}");
        assert!(answer.stderr.contains("6 of 6 runs failed: "), "{name}: {answer:?}");
        assert!(!is_report || answer.stderr.contains("bad holds no complete run"), "{answer:?}");
        assert!(name != "diff" || answer.stdout.matches("no complete run").count() >= 6, "{answer:?}");
    }
    assert!(rows(&place, "runs").iter().all(|run| run["status"] == "failed") && rows(&place, "rounds").is_empty());
    assert_eq!(rows(&place, "comparisons").len(), 3);
    // Beside another folder it is a part of the report.
    let answer = place.fedgenie(&["report", "good", "bad", "-o", "both.html"]);
    assert!(answer.code == 0 && answer.stderr.contains("warning: bad: random has no complete run"), "{answer:?}");
    assert!(place.text("both.html").contains("bad: random"));
}

/// A number of a run that somebody changed: it is the interval of a whole policy that would be another.
#[test]
fn a_changed_run_is_refused_or_told_in_what_is_written() {
    let place = workplace();
    place.run_into("zero", &["--set", SHORT]);
    let (name, file) = ("zero/runs/bsfl-s1/run.json", "runs/bsfl-s1/run.json");
    let mut run = place.json(name);
    assert!(run["regret"]["mean"].as_f64().unwrap() > 0.0);
    run["regret"]["mean"] = json!(0.0);
    place.write(name, serde_json::to_string_pretty(&run).unwrap());
    for (command, answer) in read_by_all(&place, "zero", &[]) {
        assert_eq!((answer.code, answer.stdout.as_str()), (1, ""), "{command}: {answer:?}");
        let said = "zero/runs/bsfl-s1/run.json is not the file that was written; `fedgenie verify zero`";
        assert!(answer.stderr.contains(said) && answer.stderr.contains("--allow-changed"), "{command}: {answer:?}");
    }
    for written in ["csv", "parquet", "md", "page.html"] {
        assert!(!place.path(written).exists(), "{written} is made of a changed file");
    }
    for (command, answer) in read_by_all(&place, "zero", &["--allow-changed"]) {
        assert_eq!(answer.code, 0, "{command}: {answer:?}");
        let said = format!("1 changed file is taken as it is: {file} is not");
        assert!(answer.stderr.contains(&said), "{command}: {answer:?}");
        match command {
            "diff" => assert!(answer.stdout.contains(&format!("zero: {said}")), "{answer:?}"),
            "json" => {
                let found: Value = serde_json::from_str(&answer.stdout).unwrap();
                let expected = json!({ "folder": "zero", "file": file, "how": "is not the file that was written" });
                assert_eq!(found["changed"], json!([expected]));
            }
            _ => {}
        }
    }
    let page = place.text("page.html");
    assert!(page.contains(&format!("1 changed file is taken as it is: {file}")) && page.contains("(of changed files)"));
    let results = place.text("md/results.md");
    let of = |policy: &str| results.lines().find(|line| line.starts_with(&format!("| {policy} |"))).unwrap().to_owned();
    assert!(results.lines().next().unwrap().contains("| changed |"));
    assert!(of("bsfl").contains("bsfl-s1/run.json") && !of("random").contains("run.json"));
    assert!(place.text("md/verdicts.md").contains("bsfl-s1/run.json"));
    for row in ["runs", "rounds"].into_iter().flat_map(|table| rows(&place, table)) {
        let is_it = row["policy"] == "bsfl" && row["seed"] == "1";
        assert_eq!(row["changed"], if is_it { file } else { "" });
    }
    for row in rows(&place, "comparisons") {
        let is_of_it = row["policy"] == "bsfl" || row["against"] == "bsfl";
        assert_eq!(row["changed"], if is_of_it { file } else { "" }, "{row:?}");
    }
    assert!(has(&place.read("parquet/comparisons.parquet"), file));
}

#[test]
fn a_missing_run_is_a_row_and_the_command_makes_it() {
    let place = workplace();
    place.run_into("out", &["--set", SHORT]);
    fs::remove_dir_all(place.path("out/runs/random-s2")).unwrap();
    let command = "fedgenie run out/scenario.toml --out out --resume";
    for (name, answer) in read_by_all(&place, "out", &[]) {
        let said = format!("1 of 6 runs are missing: random-s2; `{command}` makes them\n");
        assert!(answer.code == 0 && answer.stderr.contains(&said), "{name}: {answer:?}");
        if name == "diff" {
            let row = answer.stdout.lines().find(|line| line.contains("complete runs")).unwrap();
            assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), "random complete runs 2 of 2 1 of 2");
        }
    }
    assert!(place.text("page.html").contains("1 of 6 runs are missing: random-s2"));
    let runs = rows(&place, "runs");
    let missing: Vec<_> = runs.iter().filter(|run| run["status"] == "missing").collect();
    assert!(runs.len() == 6 && missing.len() == 1 && missing[0]["seed"] == "2" && missing[0]["rounds"].is_empty());
    let status: Vec<_> = rows(&place, "comparisons");
    for row in &status {
        let is_of_it = row["policy"] == "random" || row["against"] == "random";
        assert_eq!(row["status"], if is_of_it { "incomplete" } else { "complete" }, "{row:?}");
    }
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--quiet"]).collect();
    assert_eq!(place.fedgenie(&words).code, 0);
    for (name, answer) in read_by_all(&place, "out", &[]) {
        assert!(answer.code == 0 && !answer.stderr.contains("missing"), "{name}: {answer:?}");
    }
}

/// Rounds cut after a line are shorter; rounds with another number are read by `export` alone, which finds out.
#[test]
fn changed_rounds_are_not_exported_unless_this_is_said() {
    let place = workplace();
    place.run_into("out", &["--set", SHORT]);
    let name = "out/runs/bsfl-s2/rounds.jsonl";
    let text = place.text(name);
    let cut: String = text.split_inclusive('\n').take(5).collect();
    place.write(name, &cut);
    for (command, answer) in read_by_all(&place, "out", &[]) {
        let said = format!("{name} has {} bytes, and had {}", cut.len(), text.len());
        assert!(answer.code == 1 && answer.stderr.contains(&said), "{command}: {answer:?}");
    }
    for (command, answer) in read_by_all(&place, "out", &["--allow-changed"]) {
        assert!(answer.code == 0 && answer.stderr.contains("runs/bsfl-s2/rounds.jsonl has "), "{command}: {answer:?}");
    }
    let of_it = rows(&place, "rounds").into_iter().filter(|row| row["policy"] == "bsfl" && row["seed"] == "2");
    let of_it: Vec<_> = of_it.collect();
    assert!(of_it.len() == 5 && of_it.iter().all(|row| row["changed"] == "runs/bsfl-s2/rounds.jsonl"));

    let (digit, other) = if text.contains("\"up_bytes\":1") { ("1", "2") } else { ("2", "1") };
    place.write(name, text.replacen(&format!("\"up_bytes\":{digit}"), &format!("\"up_bytes\":{other}"), 1));
    assert_eq!(place.text(name).len(), text.len());
    assert_ne!(place.text(name), text);
    for (command, answer) in read_by_all(&place, "out", &[]) {
        let is_read = ["csv", "parquet"].contains(&command);
        assert_eq!(answer.code, i32::from(is_read), "{command}: {answer:?}");
        assert!(!is_read || answer.stderr.contains(&format!("{name} is not the file that was written")));
    }
    fs::remove_file(place.path(name)).unwrap();
    for (command, answer) in read_by_all(&place, "out", &[]) {
        assert!(answer.code == 1 && answer.stderr.contains(&format!("{name} is missing")), "{command}: {answer:?}");
    }
    let answer = place.fedgenie(&["export", "out", "--to", "csv", "--allow-changed", "-o", "without"]);
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// The rest of a run that was put aside is enough for everything but its rounds.
#[test]
fn a_run_with_its_summary_alone_is_called_so() {
    let place = workplace();
    place.run_into("out", &["--set", SHORT]);
    for file in ["rounds.jsonl", "digests.bin"] {
        fs::remove_file(place.path(&format!("out/runs/bsfl-s2/{file}"))).unwrap();
    }
    for (command, answer) in read_by_all(&place, "out", &[]) {
        assert_eq!(answer.code, 0, "{command}: {answer:?}");
        let is_told = answer.stderr.contains("1 of 6 runs have their run.json alone, and no rounds: bsfl-s2\n");
        assert_eq!(is_told, ["csv", "parquet"].contains(&command), "{command}: {answer:?}");
    }
    let runs = rows(&place, "runs");
    let alone: Vec<_> = runs.iter().filter(|run| run["status"] == "summary-only").collect();
    assert!(alone.len() == 1 && alone[0]["policy"] == "bsfl" && !alone[0]["regret_mean"].is_empty());
    assert!(rows(&place, "comparisons").iter().all(|row| row["status"] == "complete" && row["n"] == "2"));
}

#[test]
fn folders_of_one_name_stay_two() {
    let place = Workplace::with(&changed(PLAIN, "seeds = 1", "seeds = 2"));
    for folder in ["x/r", "y/r", "z/r (2)"] {
        place.run_into(folder, &[]);
    }
    let answer = place.fedgenie(&["export", "x/r", "y/r", "z/r (2)", "--to", "csv", "-o", "csv"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for table in ["runs", "rounds", "comparisons"] {
        let mut names: Vec<String> = rows(&place, table).into_iter().map(|row| row["folder"].clone()).collect();
        names.dedup();
        assert_eq!(names, ["r", "r (2)", "r (2) (2)"], "{table}");
    }
    let json = place.fedgenie(&["diff", "x/r", "y/r", "--json"]).stdout;
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["folders"], json!(["r", "r (2)"]));
    assert_eq!(place.fedgenie(&["report", "x/r", "y/r", "-o", "page.html"]).code, 0);
    assert!(place.text("page.html").contains("r (2): random"));
}

/// A missing entry that nobody expects goes unnoticed: so a manifest has to list everything in the scenario.
#[test]
fn edits_by_hand_are_found() {
    let (place, _) = with_failures();
    let manifest = place.json("bad/manifest.json");
    let summary = place.text("bad/summary.json");
    let refused = |part: &str| {
        for (command, answer) in read_by_all(&place, "bad", &[]) {
            assert!(answer.code == 1 && answer.stderr.contains(part), "{command}: {part}: {answer:?}");
        }
        place.write("bad/manifest.json", serde_json::to_string(&manifest).unwrap());
        place.write("bad/summary.json", &summary);
    };
    let edited = |edit: &dyn Fn(&mut Value), part: &str| {
        let mut other = manifest.clone();
        edit(&mut other);
        place.write("bad/manifest.json", serde_json::to_string(&other).unwrap());
        refused(part);
    };
    let without_random = |manifest: &mut Value| {
        manifest["arms"].as_array_mut().unwrap().retain(|arm| arm != "random");
        manifest["failed"] = json!([]);
    };
    edited(&without_random, "bad/manifest.json lacks the policy random of scenario.toml");
    let without_seed = |manifest: &mut Value| {
        manifest["seeds"] = json!([1]);
        manifest["runs"].as_array_mut().unwrap().retain(|run| run.as_str().unwrap().ends_with("-s1"));
        manifest["failed"] = json!(["random-s1"]);
    };
    edited(&without_seed, "bad/manifest.json has other seeds than scenario.toml");
    edited(&|manifest| manifest["scenario_hash"] = json!("0"), "bad/scenario.toml is not the file");
    edited(
        &|manifest| drop(manifest["files"].as_object_mut().unwrap().remove("runs/bsfl-s1/run.json")),
        "bad/runs/bsfl-s1/run.json is not the file",
    );
    place.write("bad/summary.json", summary.replace("\"bsfl\"", "\"best\""));
    refused("bad/summary.json is not the file that was written");
    fs::remove_file(place.path("bad/summary.json")).unwrap();
    let answer = place.fedgenie(&["diff", "good", "bad"]);
    let said = "bad: summary.json is missing; `fedgenie run bad/scenario.toml --out bad --resume` writes it\n";
    assert!(answer.code == 0 && answer.stderr.contains(said), "{answer:?}");
    place.write("bad/summary.json", &summary);
    let failure = place.text("bad/runs/random-s1/failed.json");
    place.write("bad/runs/random-s1/failed.json", "{\"error\": \"no memory\"}");
    refused("bad/runs/random-s1/failed.json is not the file that was written");
    place.write("bad/runs/random-s1/failed.json", failure);

    // A run that the manifest does not list is left out of the results, and named.
    let mut other = manifest.clone();
    other["runs"].as_array_mut().unwrap().retain(|run| run != "bsfl-s2");
    place.write("bad/manifest.json", serde_json::to_string(&other).unwrap());
    for (command, answer) in read_by_all(&place, "bad", &[]) {
        let part = "missing: bsfl-s2 (run.json is there, and manifest.json does not list the run)";
        assert!(answer.code == 0 && answer.stderr.contains(part), "{command}: {answer:?}");
    }
}
