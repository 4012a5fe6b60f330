//! The headline table says what `summary.json` says: its means, its ratios, and as bold the best of its answers with
//! those that are not told apart.

use super::support::{Answer, PLAIN, SCENARIO, Workplace, unheard};
use fedgenie::math::statistics::estimate;
use fedgenie::report::{Chart, Report};
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
    let (levels, answers): (Vec<&Value>, Vec<&Value>) =
        answers.into_iter().partition(|answer| answer["is_common_level"] == true);
    assert_eq!(levels.len(), 1, "all policies learn about as much");
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
            "| policy | cumulative mean regret | {ratio} | final test loss | {ratio} | download \\[kB\\] | {ratio} |"
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
    refused(
        &["--format", "svg", "--columns", "rounds"],
        &["--columns is for the tables of --format html, csv, md or latex"],
    );
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

/// The columns, the ratio and the axis of `[report]` are those of the page and of every table; a column that no run has
/// is warned of by every command.
#[test]
fn a_scenario_says_what_is_seen_first() {
    let text = include_str!("../../scenarios/quickstart.toml");
    let report = |lines: &str| text.replacen("[policy", &format!("[report]\n{lines}\n\n[policy"), 1);
    let wishes = "columns = [\"virtual_time_s\", \"probe_compute_s\", \"final.test_loss\", \"edge_down_bytes\"]\nratio_to = \"random\"\nover = \"rounds\"";
    let place = Workplace::with(&report(wishes));
    let warning = "[report] columns: no number of these runs is called edge_down_bytes";
    let answer = place.fedgenie(&["run", SCENARIO, "--set", "stop.rounds=20", "--out", "out"]);
    assert!(answer.code == 0 && answer.stderr.contains(warning) && answer.stdout.contains(warning), "{answer:?}");
    let answer = self::report(&place, &["--format", "md"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let text = place.text("tables/headline.md");
    let ratio = "ratio to random";
    let head = format!(
        "| policy | virtual time of the run \\[s\\] | {ratio} | computing for probes \\[s\\] | {ratio} | final test loss | {ratio} |"
    );
    assert_eq!(text.lines().next().unwrap(), head);
    let read = Report::load(&[place.path("out")], &unheard()).unwrap();
    assert!(read.warnings.iter().any(|told| told == warning), "{:?}", read.warnings);
    let columns: Vec<String> = head.trim_matches(['|', ' ']).split(" | ").map(|text| text.replace('\\', "")).collect();
    assert_eq!(read.brief.table.columns, columns);
    for (row, line) in read.brief.table.rows.iter().zip(text.lines().skip(2)) {
        let cells: Vec<String> =
            line.trim_matches(['|', ' ']).split(" | ").map(|text| text.replace(['*', '\\'], "")).collect();
        assert_eq!(*row, cells);
    }
    assert!(read.brief.is_best.iter().flatten().any(|is_best| *is_best), "time tells the policies apart");
    // Pictures of metrics begin with rounds, and the main one leads.
    let order: Vec<&str> =
        read.figures.iter().map(|figure| figure.id.as_str()).filter(|id| id.starts_with("test_loss")).collect();
    assert_eq!(
        (order.as_slice(), read.lead.as_str()),
        (["test_loss-rounds", "test_loss"].as_slice(), "test_loss-rounds")
    );
    let page = place.text("out/report.html");
    assert!(
        page.contains("<th scope=\"col\">computing for probes [s]</th>") && page.contains("<td><b>"),
        "as the page"
    );
    let answer = place.fedgenie(&["export", "out", "--to", "csv", "-o", "data"]);
    assert!(answer.stderr.contains(warning), "{answer:?}");
    place.run_into("again", &["--set", "stop.rounds=20"]);
    assert!(place.fedgenie(&["diff", "out", "again"]).stdout.contains(warning));
    let answer = place.fedgenie(&["report", "out", "--columns", "final test loss,jain", "--ratio-to", "cs-ucb"]);
    let page = place.text("out/report.html");
    assert!(answer.code == 0 && page.contains("<th scope=\"col\">ratio to cs-ucb</th>"), "{answer:?}");
    assert!(page.contains("<th scope=\"col\">final test loss</th>") && !answer.stderr.contains("[report] columns"));
    assert!(!page.contains("<th scope=\"col\">computing for probes [s]</th>"));
    assert_eq!(place.fedgenie(&["report", "out", "--columns", "roundz"]).code, 2);
    place.write("other.toml", report("ratio_to = \"randm\""));
    let answer = place.fedgenie(&["run", "other.toml"]);
    assert!(
        answer.code == 2
            && answer.stderr.contains("report.ratio_to")
            && answer.stderr.contains("did you mean \"random\"?"),
        "{answer:?}"
    );
}

/// Numbers of `[report]` that no run can have, axes that do not exist and targets in the wrong direction are found
/// before the first run.
#[test]
fn what_report_names_is_checked_before_anything_runs() {
    let place = Workplace::with(include_str!("../../scenarios/quickstart.toml"));
    let run = |set: &str| place.fedgenie(&["run", SCENARIO, "--set", "stop.rounds=3", "--set", set, "--out", "out"]);
    for (set, parts) in [
        (
            "report.columns=[\"rounds\", \"final.test_los\"]",
            &["report.columns: found \"final.test_los\"", "did you mean \"final.test_loss\"? known: final.test_loss\n"]
                [..],
        ),
        ("report.aim=\"regret.men\"", &["report.aim: ", "did you mean \"regret.mean\"?", "regret.realised"]),
        (
            "report.aim=\"time_to.test_loss <= 3\"",
            &["is no number of these runs; ", "known: best.…, energy.…, final.…, "],
        ),
        ("report.over=\"bytes\"", &["report.over: unknown value \"bytes\"; known: rounds, time, traffic, energy\n"]),
        (
            "protocol.sync.cohort=3",
            &["unknown kind \"sync\"; did you mean --set 'protocol.synchronous.cohort=3'? known: "],
        ),
        ("protocol.deadlin.deadline=\"3 s\"", &["unknown kind \"deadlin\"; did you mean \"deadline\"?"]),
    ] {
        let answer = run(set);
        assert!(answer.code == 2 && !place.path("out").exists(), "{answer:?}");
        for part in parts {
            assert!(answer.stderr.contains(part), "{part} is not in {answer:?}");
        }
    }
    let answer =
        run("evaluate.targets=[{ metric = \"test_loss\", at_least = 0.3 }, { metric = \"test_loss\", at_most = 9.0 }]");
    assert_eq!(answer.code, 0, "{answer:?}");
    let backward =
        "the target test_loss >= 0.3 is reached by getting worse: less of test_loss is better; at_most may be meant\n";
    let met = "the model before training meets the target test_loss >= 0.3 already, in all runs: test_loss is 17.";
    assert!(
        answer.stderr.contains(backward) && answer.stderr.matches(" before training meets ").count() == 1,
        "{answer:?}"
    );
    assert!(answer.stderr.contains(met), "{answer:?}");
}

/// One policy's rows are the points; the heading and the axes are the end of the path, and the caption has all of it.
#[test]
fn a_swept_path_is_named_by_its_end() {
    let place = Workplace::with(PLAIN);
    let sweep = "sweep={ \"population.latency.compute.constant\" = [\"1 s\", \"2 s\"] }";
    place.run_file(
        SCENARIO,
        "out",
        &["--seeds", "3", "--set", "population.latency.compute={ constant = \"1 s\" }", "--set", sweep],
    );
    let read = Report::load(&[place.path("out")], &unheard()).unwrap();
    assert_eq!(read.brief.table.columns[0], "compute constant");
    let time = read.figures.iter().find(|figure| figure.id == "virtual_time_s").unwrap();
    let Chart::Lines { x, .. } = &time.chart else { panic!("lines over a number") };
    assert_eq!((x.label.as_str(), x.unit.as_deref()), ("compute constant", Some("s")));
    assert!(
        time.title.ends_with(" over compute constant")
            && time.method.ends_with(" Swept: population.latency.compute.constant."),
        "{time:?}"
    );
}
