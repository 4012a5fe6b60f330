//! Tidy tables have the numbers of the files that they are made from, and replace nothing.

use super::support::{PLAIN, SCENARIO, Workplace, changed};
use std::collections::BTreeMap;

const LEARNED: &str = "[task.scripted]\nmetric = \"test_score\"\nbetter = \"higher\"\npayload = \"1 kB\"\n\
                       values = [1.0, 2.0]\n\n[protocol.synchronous]";

fn place() -> Workplace {
    let scenario = changed(PLAIN, "[protocol.synchronous]", LEARNED).replace("seeds = 1", "seeds = 3");
    let evaluate = "[evaluate]\nevery = 5\ntargets = [{ metric = \"test_score\", at_least = 9.0 }]\n";
    let sweep = "[sweep]\n\"protocol.synchronous.cohort\" = [2, 3]\n";
    Workplace::with(&format!("{scenario}[policy.round-robin]\n{evaluate}{sweep}"))
}

fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    lines.map(|line| header.iter().cloned().zip(line).collect()).collect()
}

#[test]
fn tables_have_the_numbers_of_the_files() {
    let place = place();
    place.run_into("out", &[]);
    let answer = place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let [runs, rounds, comparisons] = ["runs", "rounds", "comparisons"].map(|name| {
        assert!(answer.stdout.contains(&format!("tables/{name}.csv")), "{answer:?}");
        table(&place.text(&format!("tables/{name}.csv")))
    });
    let summary = place.json("out/summary.json");
    assert_eq!((runs.len(), rounds.len()), (12, 12 * 12));
    let number = |row: &BTreeMap<String, String>, key: &str| row[key].parse::<f64>().unwrap();
    for (row, run) in runs.iter().zip(summary["runs"].as_array().unwrap()) {
        assert_eq!((&*row["policy"], row["seed"].parse().ok()), (run["arm"].as_str().unwrap(), run["seed"].as_u64()));
        assert_eq!(number(row, "virtual_time_s"), run["virtual_time_s"].as_f64().unwrap());
        assert_eq!(row["cohort"], if row["point"] == "0" { "2" } else { "3" });
        assert_eq!((&*row["ended"], &*row["folder"]), ("rounds", "out"));
        assert_eq!(row["model"], run["digest"]["model"].as_str().unwrap());
    }
    let recorded = place.lines("out/runs/random-p1-s2/rounds.jsonl");
    let of_run: Vec<_> =
        rounds.iter().filter(|row| row["policy"] == "random" && row["point"] == "1" && row["seed"] == "2").collect();
    for (row, round) in of_run.iter().zip(&recorded) {
        assert_eq!(number(row, "closed_s"), round["closed_s"].as_f64().unwrap());
        assert_eq!(number(row, "down_bytes"), round["down_bytes"].as_f64().unwrap());
        assert_eq!(number(row, "selected"), 3.0);
        assert_eq!(row["metric_test_score"].is_empty(), round["metrics"].get("test_score").is_none());
    }
    assert_eq!(of_run.len(), 12);
    for arm in summary["arms"].as_array().unwrap() {
        let find = |against: &str| {
            comparisons.iter().find(|row| {
                row["quantity"] == "virtual_time_s"
                    && row["policy"] == arm["arm"].as_str().unwrap()
                    && row["point"].parse().ok() == arm["point"].as_u64()
                    && row["against"] == against
                    && row["against_point"].is_empty()
            })
        };
        assert_eq!(number(find("").unwrap(), "value"), arm["values"]["virtual_time_s"]["mean"].as_f64().unwrap());
        let paired = &arm["paired"]["differences"]["virtual_time_s"];
        assert_eq!(find("random").map(|row| number(row, "high")), paired["ci95"][1].as_f64());
    }
    // Points of the sweep with each other.
    for pair in summary["compared"].as_array().unwrap() {
        let is_it = |row: &&BTreeMap<String, String>| {
            row["quantity"] == "virtual_time_s"
                && row["policy"] == pair["arm"].as_str().unwrap()
                && row["point"].parse().ok() == pair["point"].as_u64()
                && row["against_point"].parse().ok() == pair["against"].as_u64()
        };
        let row = comparisons.iter().find(is_it).unwrap();
        assert_eq!(number(row, "value"), pair["differences"]["virtual_time_s"]["mean"].as_f64().unwrap());
        assert_eq!(row["against"], row["policy"]);
    }
    assert!(!summary["compared"].as_array().unwrap().is_empty());
}

/// Every event is a row; numbers, clients and outcomes are those of its line.
#[test]
fn events_are_a_table_where_they_were_recorded() {
    let scenario = changed(PLAIN, "[protocol.synchronous]", LEARNED)
        .replace("[population]", "[population]\ndropout = { probability = 0.3 }")
        .replace("[protocol.synchronous]", "[protocol.synchronous]\ntimeout = \"20 s\"");
    let place = Workplace::with(&scenario);
    place.run_into("plain", &[]);
    assert_eq!(place.fedgenie(&["export", "plain", "--to", "csv", "-o", "none"]).code, 0);
    assert!(!place.path("none/events.csv").exists());
    place.run_into("out", &["--events"]);
    let answer = place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]);
    assert!(answer.code == 0 && answer.stdout.contains("tables/events.csv"), "{answer:?}");
    let rows = table(&place.text("tables/events.csv"));
    let lines = place.events("out/runs/random-s1");
    assert_eq!(rows.len(), lines.len());
    let mut dropped = 0;
    for (row, line) in rows.iter().zip(&lines) {
        assert_eq!(row["event"], line["event"].as_str().unwrap());
        assert_eq!(row["round"].parse().ok(), line["round"].as_u64());
        assert_eq!(row["client"].parse().ok(), line["client"].as_u64());
        let time = line["time_ns"].as_u64().map(|time| time as f64 / 1e9);
        assert_eq!(row["time_s"].parse().ok(), time);
        let ids = line["selected"].as_array().into_iter().flatten();
        assert_eq!(row["clients"], ids.map(ToString::to_string).collect::<Vec<_>>().join(" "));
        if let Some(of) = line["outcome"].get("dropped") {
            dropped += 1;
            assert_eq!(row["outcome"], "dropped");
            assert_eq!(
                (row["phase"].as_str(), row["reason"].as_str()),
                (of["phase"].as_str().unwrap(), of["reason"].as_str().unwrap())
            );
        } else {
            assert_eq!(row["outcome"], line["outcome"].as_str().unwrap_or_default());
        }
    }
    assert!(dropped > 0);
    let package = place.json("tables/datapackage.json");
    assert_eq!(package["resources"][6]["schema"]["primaryKey"][4], "number");
    place.write("out/runs/random-s1/events.jsonl.gz", "x");
    let refused = place.fedgenie(&["export", "out", "--to", "csv", "-o", "again"]);
    assert!(refused.code == 1 && refused.stderr.contains("events.jsonl.gz has 1 bytes"), "{refused:?}");
}

#[test]
fn nothing_is_replaced_and_bad_input_is_named() {
    let place = place();
    place.run_into("out", &[]);
    let refused = |words: &[&str], part: &str| {
        let answer = place.fedgenie(words);
        assert!(answer.code == 2 && answer.stderr.contains(part), "{answer:?}");
    };
    place.write("tables/rounds.csv", "mine");
    refused(&["export", "out", "--to", "csv", "-o", "tables"], "tables/rounds.csv is there already");
    assert_eq!(place.text("tables/rounds.csv"), "mine");
    assert!(!place.path("tables/runs.csv").exists());
    refused(&["export", "out", "--to", "xlsx"], "found --to xlsx; expected csv, parquet or tensorboard");
    place.write("tables/runs.parquet", "mine");
    refused(&["export", "out", "--to", "parquet", "-o", "tables"], "tables/runs.parquet is there already");
    refused(&["export", "out", "--to", "csv", "-o", SCENARIO], "is a file; give -o a folder for the tables");
    refused(&["export", SCENARIO, "--to", "csv"], "there is no folder");
    place.write("out/runs/random-p0-s1/rounds.jsonl", "{}\n");
    refused(&["export", "out", "--to", "csv", "--allow-changed"], "rounds.jsonl:1: this is no recorded round");
    let left = std::fs::read_dir(place.path("export")).unwrap().count();
    assert_eq!(left, 0, "a table that could not be finished is not left, nor are those before it");
}

/// The format is tested where it is written: here, that all tables are there with the parts that a reader needs.
#[test]
fn tables_are_written_as_parquet() {
    let place = place();
    place.run_into("out", &[]);
    let answer = place.fedgenie(&["export", "out", "--to", "parquet", "-o", "tables"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    for (name, column) in [("runs", "virtual_time_s"), ("rounds", "metric_test_score"), ("comparisons", "against")] {
        let bytes = std::fs::read(place.path(&format!("tables/{name}.parquet"))).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "{name}");
        assert!(bytes.windows(column.len()).any(|part| part == column.as_bytes()), "{name} has no {column}");
    }
    let again = place.fedgenie(&["export", "out", "--to", "parquet", "-o", "again"]);
    assert_eq!(again.code, 0, "{again:?}");
    let bytes = |folder: &str| std::fs::read(place.path(&format!("{folder}/rounds.parquet"))).unwrap();
    assert_eq!(bytes("tables"), bytes("again"), "the same results give the same file");
}

/// A page of PDF for each picture, as large as it is in pixels of 3/4 of a point; a range cuts the picture off.
#[test]
fn figures_are_written_as_pdf_and_within_ranges() {
    let place = place();
    place.run_into("out", &[]);
    let report = |words: &[&str]| {
        let answer =
            place.fedgenie(&[&["report", "out", "--figure", "test_score-points-random-rounds"], words].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
    };
    report(&["--format", "pdf", "-o", "pdf", "--width", "400", "--height", "200", "--font", "serif"]);
    let bytes = std::fs::read(place.path("pdf/test_score-points-random-rounds.pdf")).unwrap();
    let has = |part: &str| bytes.windows(part.len()).any(|found| found == part.as_bytes());
    assert!(bytes.starts_with(b"%PDF-1.") && bytes.ends_with(b"%%EOF") && has("/MediaBox [0 0 300 150]"));
    assert!(has("/BaseFont /Times-Roman") && has("/WinAnsiEncoding") && has("(round) Tj"));
    report(&["--format", "svg", "-o", "all"]);
    report(&["--format", "svg", "-o", "part", "--range", "0.5:1.25", "--range", "x=0:6"]);
    let [all, part] =
        ["all", "part"].map(|folder| place.text(&format!("{folder}/test_score-points-random-rounds.svg")));
    let has = |picture: &str, label: &str| picture.contains(&format!(">{label}<"));
    assert!(has(&all, "12") && has(&part, "6") && !has(&part, "12") && has(&part, "1.2"), "{part}");
}
