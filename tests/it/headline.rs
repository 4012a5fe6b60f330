//! The headline table says what `summary.json` says: its means, its ratios, and as bold the best of its answers with
//! those that are not told apart.

use super::support::{Answer, SCENARIO, Workplace};
use fedgenie::math::statistics::estimate;
use serde_json::Value;
use std::collections::BTreeMap;

/// The quickstart in a small size: four policies, one of which knows the truth.
fn place() -> Workplace {
    let place = Workplace::with(include_str!("../../scenarios/quickstart.toml"));
    place.run_into("out", &["--set", "stop.rounds=80"]);
    place
}

fn report(place: &Workplace, words: &[&str]) -> Answer {
    place.fedgenie(&[&["report", "out", "-o", "tables"], words].concat())
}

/// The rows of `headline.csv` by policy and column.
fn rows(place: &Workplace) -> BTreeMap<String, BTreeMap<String, String>> {
    let text = place.text("tables/headline.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headings: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let row = |row: csv::StringRecord| {
        let cells = headings.iter().cloned().zip(row.iter().map(str::to_owned)).collect();
        (row[0].to_owned(), cells)
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

/// A number of a policy's runs, in the order of seeds.
fn values(summary: &Value, policy: &str, key: &str) -> Vec<f64> {
    let (part, name) = key.split_once('.').unwrap();
    let of_policy = summary["runs"].as_array().unwrap().iter().filter(|run| run["arm"] == policy);
    of_policy.map(|run| run[part][name].as_f64().unwrap()).collect()
}

#[test]
fn the_table_says_what_the_answers_say() {
    let place = place();
    let summary = place.json("out/summary.json");
    let answers: Vec<&Value> =
        summary["answers"].as_array().unwrap().iter().filter(|answer| answer.get("among").is_none()).collect();
    assert!(answers.len() > 1 && answers.iter().all(|answer| answer["ranked"] == true), "{answers:?}");
    let keys: Vec<&str> = answers.iter().map(|answer| answer["by"].as_str().unwrap()).collect();
    let mut tells = 0;
    for answer in &answers {
        let best = answer["best"].as_str().unwrap();
        let words = ["--format", "csv", "--columns", &keys.join(","), "--ratio-to", best, "--digits", "12"];
        let told = report(&place, &words);
        assert_eq!(told.code, 0, "{told:?}");
        let found = rows(&place);
        let others = answer["others"].as_array().unwrap();
        let is_equal = |name: &Value| answer["equal"].as_array().unwrap().contains(name);
        let is_told = others.iter().any(|other| !is_equal(&other["name"]));
        tells += usize::from(is_told);
        let heading =
            found[best].keys().find(|heading| heading.contains(answer["quantity"].as_str().unwrap())).unwrap();
        let heading =
            heading.split(" best").next().unwrap().split(" high").next().unwrap().split(" low").next().unwrap();
        let heading = heading.split(": ratio to").next().unwrap();
        let cell = |policy: &str, part: &str| found[policy][&format!("{heading}{part}")].clone();
        assert_eq!(cell(best, " best") == "yes", is_told);
        for other in others {
            let name = other["name"].as_str().unwrap();
            assert_eq!(cell(name, " best") == "yes", is_told && is_equal(&other["name"]), "{name} by {heading}");
            let number = |part: &str| cell(name, part).parse::<f64>().unwrap();
            let near = |found: f64, expected: f64| {
                assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{name}: {found} {expected}")
            };
            let ratio = format!(": ratio to {best}");
            near(number(&ratio), other["ratio"].as_f64().unwrap());
            let best_mean = answer["value"]["mean"].as_f64().unwrap();
            let ends = [" low", " high"].map(|part| number(&format!("{ratio}{part}")));
            assert_eq!(ends[0] > 1.0 || ends[1] < 1.0, !is_equal(&other["name"]), "{name}: {ends:?}");
            let key = answer["by"].as_str().unwrap();
            let [mine, theirs] = [name, best].map(|policy| values(&summary, policy, key));
            for (end, ratio) in ends.into_iter().enumerate() {
                let minus: Vec<f64> = mine.iter().zip(&theirs).map(|(mine, theirs)| mine - ratio * theirs).collect();
                let found = estimate(&minus).unwrap().ci95.unwrap();
                assert!(found[end].abs() <= 1e-8 * best_mean, "{name}: {ratio} {found:?}");
            }
            near(number(""), best_mean + other["difference"].as_f64().unwrap());
        }
        // A policy that sees the truth is no candidate.
        for (name, _) in
            answer["sees_truth"].as_array().into_iter().flatten().map(|seen| (seen[0].as_str().unwrap(), ()))
        {
            assert_eq!(cell(name, " best"), "");
        }
    }
    assert!(tells > 0, "no answer tells anybody apart");
}

#[test]
fn columns_are_chosen_and_refused_by_name() {
    let place = place();
    let answer = report(
        &place,
        &["--format", "md", "--columns", "regret_mean,final test loss,down_bytes", "--ratio-to", "random"],
    );
    assert_eq!(answer.code, 0, "{answer:?}");
    let text = place.text("tables/headline.md");
    let head = text.lines().next().unwrap();
    let ratio = "ratio to random";
    assert_eq!(
        head,
        format!(
            "| policy | cumulative mean regret | {ratio} | final test loss | {ratio} | down bytes \\[kB\\] | {ratio} |"
        )
    );
    assert!(text.contains("Means over 5 seeds") && text.contains("**"), "{text}");
    let refused = |words: &[&str], parts: &[&str]| {
        let answer = report(&place, words);
        assert_eq!(answer.code, 2, "{answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{part} is not in {answer:?}");
        }
    };
    refused(
        &["--format", "latex", "--columns", "final.test_los"],
        &["--columns: ", "final.test_loss", "regret.mean", "virtual_time_s"],
    );
    refused(&["--format", "latex", "--ratio-to", "randm"], &["--ratio-to: ", "did you mean \"random\"?", "bsfl"]);
    refused(&["--format", "latex", "--digits", "0"], &["found --digits 0; expected a whole number from 1 to 15"]);
    refused(&["--format", "svg", "--columns", "rounds"], &["--columns is for the tables of --format csv, md or latex"]);
    refused(&["--digits", "3"], &["--digits is for the tables of --format csv, md or latex, and found --format html"]);
}

#[test]
fn points_of_a_sweep_are_rows() {
    let place = Workplace::with(include_str!("../../scenarios/quickstart.toml"));
    let sweep = "sweep={ \"protocol.synchronous.cohort\" = [2, 8] }";
    place.run_file(SCENARIO, "out", &["--seeds", "3", "--set", "stop.rounds=20", "--set", sweep]);
    let answer = report(&place, &["--format", "latex"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let text = place.text("tables/headline.tex");
    assert!(text.contains("\nbsfl, cohort = 2 & ") && text.contains("\nrandom, cohort = 8 & "), "{text}");
    assert!(text.contains("\\begin{tabular}{lr") && text.contains(" \\pm "), "{text}");
}
