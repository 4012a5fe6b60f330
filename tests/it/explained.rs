//! “Why these clients” in a report agrees with `rounds.jsonl` and the events.

use super::support::{Workplace, changed, unheard};
use fedgenie::report::{Chart, Figure, FigureFormat, LineKind, Report, Why, html, write_figures};
use serde_json::Value;
use std::collections::BTreeMap;

/// CS-UCB knows nothing of a client at first: its index is infinite.
const BASE: &str = r#"
name = "explained"
seeds = 2
[stop]
rounds = 150
[population]
clients = 6
[population.latency]
download = { constant = "50 ms" }
compute = { exponential = { mean = { each = ["0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s"] } } }
upload = { constant = "50 ms" }
[task.linear-regression]
examples = 700
[training]
batch = 50
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 2
[record]
explain = true
[policy.cs-ucb]
tau_max = "4 s"
[policy.round-robin]
"#;

fn report(place: &Workplace) -> Report {
    Report::load(&[place.path("out")], &unheard()).unwrap()
}

fn why<'a>(report: &'a Report, policy: &str) -> &'a Why {
    report.why.iter().find(|why| why.policy == policy).unwrap()
}

fn figure<'a>(report: &'a Report, id: &str) -> &'a Figure {
    report.figures.iter().find(|figure| figure.id == id).unwrap()
}

fn ids(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-4 * expected.abs().max(1e-9), "found {found}, expected {expected}");
}

/// 150 rounds are more than 128: windows of four rounds, of both seeds together.
#[test]
fn windows_hold_what_the_records_hold() {
    let place = Workplace::with(BASE);
    place.run_into("out", &[]);
    let report = report(&place);
    let mut expected: BTreeMap<(usize, bool), Vec<f64>> = BTreeMap::new();
    let mut unknown = [0, 0];
    for seed in [1, 2] {
        for (index, round) in place.lines(&format!("out/runs/cs-ucb-s{seed}/rounds.jsonl")).iter().enumerate() {
            let (explained, selected) = (&round["explain"][0], ids(&round["selected"]));
            for (client, value) in ids(&explained["clients"]).iter().zip(explained["index"].as_array().unwrap()) {
                let is_chosen = selected.contains(client);
                match value.as_f64() {
                    Some(value) => expected.entry((index / 4, is_chosen)).or_default().push(value),
                    None => unknown[usize::from(!is_chosen)] += 1,
                }
            }
        }
    }
    assert!(unknown[0] == 12 && unknown[1] > 0, "everybody is unknown once before he is chosen");
    let figure = figure(&report, "why-cs-ucb-index");
    let Chart::Lines { lines, .. } = &figure.chart else { panic!("lines") };
    assert_eq!(lines.len(), 6);
    for (series, is_chosen) in [("cs-ucb", true), ("not chosen", false)] {
        let of = |role: LineKind, label: &str| {
            let is_it = |line: &&fedgenie::report::Line| {
                line.series == series
                    && line.role == role
                    && (label.is_empty() || line.label.as_deref().is_some_and(|found| found.ends_with(label)))
            };
            &lines.iter().find(is_it).unwrap().points
        };
        let windows: Vec<(usize, &Vec<f64>)> =
            expected.iter().filter(|(key, _)| key.1 == is_chosen).map(|(key, values)| (key.0, values)).collect();
        let (mean, low, high) =
            (of(LineKind::Mean, ""), of(LineKind::Extreme, "lowest"), of(LineKind::Extreme, "highest"));
        assert_eq!(mean.len(), windows.len());
        assert!(windows.len() >= 37, "there are 38 windows");
        for (index, (window, values)) in windows.into_iter().enumerate() {
            let last = (4 * window + 4).min(150) as f64;
            assert_eq!(mean[index].0, f64::midpoint((4 * window + 1) as f64, last), "the middle of its rounds");
            assert_close(mean[index].1, values.iter().sum::<f64>() / values.len() as f64);
            assert_close(low[index].1, values.iter().copied().fold(f64::INFINITY, f64::min));
            assert_close(high[index].1, values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        }
    }
    let said = |who: &str, unknown: usize| {
        format!("{who}: {} values", if who == "chosen" { 600 } else { 1200 })
            + &format!(" … {unknown} of them are infinite or unknown")
    };
    for (sentence, expected) in figure.summary.iter().zip([said("chosen", unknown[0]), said("not chosen", unknown[1])])
    {
        let (start, end) = expected.split_once(" … ").unwrap();
        assert!(sentence.starts_with(start) && sentence.ends_with(end), "{sentence}: {expected}");
    }
    assert!(report.series.iter().any(|series| series.label == "not chosen"));
}

#[test]
fn decisions_are_those_of_the_records_and_every_form_has_them() {
    let place = Workplace::with(BASE);
    place.run_into("out", &[]);
    let report = report(&place);
    let rounds = place.lines("out/runs/cs-ucb-s1/rounds.jsonl");
    let known = why(&report, "cs-ucb");
    assert_eq!(known.figures.len(), 1);
    assert_eq!(report.figures[known.figures[0]].id, "why-cs-ucb-index");
    let headings: Vec<&str> = known.decisions.iter().map(|decided| decided.heading.as_str()).collect();
    assert_eq!(headings, [1, 33, 65, 97, 129, 150].map(|round| format!("Round {round}: 2 of 6 candidates")));
    let written = write_figures(&report, &place.path("csv"), FigureFormat::Csv).unwrap();
    assert!(
        written.contains(&place.path("csv/why-cs-ucb.csv")) && written.contains(&place.path("csv/why-round-robin.csv"))
    );
    let mut reader = ::csv::Reader::from_path(place.path("csv/why-cs-ucb.csv")).unwrap();
    let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let names = ["round", "turn", "server", "client", "chosen", "index", "after.reward", "after.observations"];
    assert_eq!(columns, names);
    let rows: Vec<Vec<String>> = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows.len(), 6 * 6);
    for row in rows {
        let round = &rounds[row[0].parse::<usize>().unwrap() - 1];
        let client: u64 = row[3].parse().unwrap();
        let explained = &round["explain"][0];
        let number = |object: &Value, key: &str| {
            let place = ids(&object["clients"]).iter().position(|known| *known == client)?;
            object[key][place].as_f64()
        };
        let is_chosen = ids(&round["selected"]).contains(&client);
        assert_eq!((row[1].as_str(), row[2].as_str(), row[4] == "1"), ("", "", is_chosen));
        assert_eq!(row[5].parse().ok(), number(explained, "index"));
        assert_eq!(row[6].parse().ok(), number(&explained["after"], "reward"));
        assert_eq!(row[7].parse::<f64>().is_ok(), is_chosen);
    }
    // The page of the run is that of its folder, and marks the chosen clients that it shows.
    let page = html(&report);
    assert_eq!(place.text("out/report.html"), page);
    assert!(page.contains("<h2 id=\"why-heading\">Why these clients</h2>"));
    let chosen: usize = report
        .why
        .iter()
        .flat_map(|why| &why.decisions)
        .map(|one| one.is_chosen.iter().filter(|is| **is).count())
        .sum();
    assert_eq!((page.matches("<tr class=\"chosen\">").count(), chosen), (chosen, 2 * 6 * 2));
    // A policy that compares no numbers has no picture.
    assert!(why(&report, "round-robin").figures.is_empty());
    assert!(why(&report, "round-robin").words[0].contains("compares no numbers"));
}

#[test]
fn without_explanations_there_is_no_section() {
    let short = changed(&changed(BASE, "rounds = 150", "rounds = 3"), "explain = true", "explain = false");
    let place = Workplace::with(&short);
    place.run_into("out", &[]);
    let report = report(&place);
    assert!(report.why.is_empty() && report.series.len() == 2);
    assert!(!html(&report).contains("why-heading"));
    assert!(!place.text("out/runs/cs-ucb-s1/run.json").contains("explanations"));
}

/// Selections of edge servers and of the cloud in one round, told apart by their candidates.
#[test]
fn tiers_are_told_apart() {
    let tiers = "[protocol.hierarchical]\nedges = 3\ncohort = 1\nedge_rounds = 2\n\
        cloud = { cohort = 2, policy = { cs-ucb = { tau_max = \"9 s\" } } }";
    let scenario = changed(BASE, "[protocol.synchronous]\ncohort = 2", tiers);
    let place = Workplace::with(&changed(&scenario, "rounds = 150", "rounds = 5"));
    place.run_into("out", &["--events"]);
    let report = report(&place);
    let why = why(&report, "cs-ucb");
    let names: Vec<&str> = why.figures.iter().map(|&index| report.figures[index].id.as_str()).collect();
    assert_eq!(names, ["why-cs-ucb-cloud-index", "why-cs-ucb-index"]);
    // The chosen clients, from the events.
    let mut chosen: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for event in place.events("out/runs/cs-ucb-s1") {
        match event["event"].as_str().unwrap() {
            "selected" => {
                chosen.insert((event["edge"].to_string(), event["round"].as_u64().unwrap()), ids(&event["selected"]));
            }
            "cloud-opened" => {
                chosen.insert(("cloud".to_owned(), event["round"].as_u64().unwrap()), ids(&event["edges"]));
            }
            _ => {}
        }
    }
    // Of each round the cloud's and two servers' two selections: all are kept.
    let column = |name: &str| why.data.columns.iter().position(|column| column == name).unwrap();
    let mut found: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for row in &why.data.rows {
        let key = (row[column("server")].clone(), row[column("turn")].parse().unwrap());
        let of_this = found.entry(key).or_default();
        if row[column("chosen")] == "1" {
            of_this.push(row[column("client")].parse().unwrap());
        }
    }
    found.values_mut().chain(chosen.values_mut()).for_each(|list| list.sort_unstable());
    assert_eq!(found.len(), 5 + 5 * 2 * 2);
    assert_eq!(found, chosen);
    assert!(why.decisions[0].note.contains("5 selections"), "{}", why.decisions[0].note);
}
