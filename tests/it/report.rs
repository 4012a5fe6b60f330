//! Reports show what the records hold: their numbers are worked out again from `rounds.jsonl`.

use super::support::{SCENARIO, Workplace, changed, unheard};
use fedgenie::report::{Chart, Figure, FigureFormat, Interval, LineKind, Report, csv, write_figures};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Two groups, late jobs that join later, losses, a model that is evaluated.
const BASE: &str = r#"
name = "small"
title = "Small <script>alert(1)</script> & more"
seeds = 4
[stop]
rounds = 150
[population]
[[population.group]]
name = "slow"
count = 6
latency = { download = { constant = "25 ms" }, compute = { exponential = { mean = "0.6 s" } }, upload = { constant = "25 ms" } }
[[population.group]]
name = "fast"
count = 2
latency = { download = { constant = "25 ms" }, compute = { exponential = { mean = "0.2 s" } }, upload = { constant = "25 ms" } }
[population.dropout]
compute = "0.1 /s"
[task.linear-regression]
features = 3
examples = 700
[training]
optimizer = { sgd = { lr = 0.01 } }
[evaluate]
every = 10
targets = [{ metric = "test_loss", at_most = 0.5 }]
[protocol.deadline]
cohort = 3
deadline = "0.8 s"
late = { carry = {} }
[regret]
tau_min = "50 ms"
alpha = 0.5
meters = ["mean", "realised"]
[policy.cs-ucb]
[policy.random]
"#;

fn report(place: &Workplace, folders: &[&str]) -> Report {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| place.path(folder)).collect();
    Report::load(&folders, &unheard()).unwrap()
}

fn figure<'a>(report: &'a Report, id: &str) -> &'a Figure {
    let ids: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
    report.figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("{id} is not among {ids:?}"))
}

/// The last value of a policy's mean.
fn last(figure: &Figure, series: &str) -> f64 {
    let Chart::Lines { lines, .. } = &figure.chart else { panic!("{} has no lines", figure.id) };
    let is_mean = |line: &&fedgenie::report::Line| line.role == LineKind::Mean && line.series == series;
    lines.iter().find(is_mean).unwrap().points.last().unwrap().1
}

fn parts(figure: &Figure) -> BTreeMap<&str, &[f64]> {
    let Chart::Bars { parts, .. } = &figure.chart else { panic!("{} has no bars", figure.id) };
    parts.iter().map(|(label, lengths)| (label.as_str(), &lengths[..])).collect()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-4 * expected.abs().max(1e-9), "found {found}, expected {expected}");
}

#[test]
fn figures_hold_what_the_records_hold() {
    let place = Workplace::with(BASE);
    place.run_into("out", &[]);
    let report = report(&place, &["out"]);
    let ids: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
    let expected = [
        "test_loss",
        "test_loss-rounds",
        "arrived-test_loss-0-5",
        "regret",
        "regret-time",
        "regret-realised",
        "regret-realised-time",
        "selections",
        "durations",
        "outcomes",
        "compute",
        "traffic",
        "jain",
        "unique-clients",
        "gini",
        "examples",
        "difference-final-test_loss",
        "difference-regret-mean",
        "difference-regret-realised",
    ];
    assert_eq!(ids[..expected.len()], expected);
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "names are unique");
    for (arm, policy) in ["cs-ucb", "random"].into_iter().enumerate() {
        let runs: Vec<Vec<serde_json::Value>> =
            (1..=4).map(|seed| place.lines(&format!("out/runs/{policy}-s{seed}/rounds.jsonl"))).collect();
        let mean = |value: &dyn Fn(&[serde_json::Value]) -> f64| runs.iter().map(|run| value(run)).sum::<f64>() / 4.0;
        let end = |path: &'static str| mean(&|run| run.last().unwrap().pointer(path).unwrap().as_f64().unwrap());
        assert_close(last(figure(&report, "regret"), policy), end("/regret/mean"));
        assert_close(last(figure(&report, "regret-realised"), policy), end("/regret/realised"));
        assert_close(last(figure(&report, "test_loss-rounds"), policy), end("/metrics/test_loss"));
        let place_s = |round: &serde_json::Value| round["closed_s"].as_f64().unwrap();
        let first_end = runs.iter().map(|run| place_s(run.last().unwrap())).fold(f64::INFINITY, f64::min);
        let at_first_end = mean(&|run| {
            let regret = |round: &serde_json::Value| round.pointer("/regret/realised").unwrap().as_f64().unwrap();
            let after = run.iter().position(|round| place_s(round) >= first_end).unwrap();
            let (from, to) = (&run[after - 1], &run[after]);
            let part = (first_end - place_s(from)) / (place_s(to) - place_s(from));
            regret(from) + part * (regret(to) - regret(from))
        });
        assert_close(last(figure(&report, "regret-realised-time"), policy), at_first_end);
        let sum = |key: &str| {
            let count = |round: &serde_json::Value| round[key].as_array().map_or(0, Vec::len) as f64;
            mean(&|run| run.iter().map(count).sum())
        };
        let outcomes = parts(figure(&report, "outcomes"));
        assert!(sum("joined") > 0.0 && sum("dropped") > 0.0, "the scenario has everything");
        assert_close(outcomes["arrived"][arm], sum("arrived"));
        assert_close(outcomes["late, joined later"][arm], sum("joined"));
        assert_close(outcomes["late, not used"][arm], sum("late") - sum("joined"));
        assert_close(outcomes["lost"][arm], sum("dropped"));
        // Bytes of lost jobs are wasted, and of late ones that were lost later or are under way at the end.
        let traffic = parts(figure(&report, "traffic"));
        let total = traffic["upload, used"][arm] + traffic.get("upload, wasted").map_or(0.0, |wasted| wasted[arm]);
        let Chart::Bars { value, .. } = &figure(&report, "traffic").chart else { unreachable!() };
        let factor = if value.unit.as_deref() == Some("kB") { 1e3 } else { 1.0 };
        assert_close(total * factor, end("/up_bytes"));
        assert_windows(&report, policy, &runs);
        let durations = |run: &[serde_json::Value]| -> Vec<f64> {
            run.iter().map(|round| round["closed_s"].as_f64().unwrap() - round["opened_s"].as_f64().unwrap()).collect()
        };
        let all: Vec<f64> = runs.iter().flat_map(|run| durations(run)).collect();
        let Chart::Lines { lines, .. } = &figure(&report, "durations").chart else { unreachable!() };
        for &(place, share) in &lines[arm].points {
            let below =
                |slack: f64| all.iter().filter(|&&duration| duration < place * (1.0 + slack)).count() as f64 / 600.0;
            // Places are rounded to seven digits, shares to five.
            assert!((below(-1e-6) - 1e-5..=below(1e-6) + 1e-5).contains(&share), "{share} of rounds take {place} s");
        }
    }
    assert!(report.verdicts.iter().all(|verdict| verdict.subject == "random" && verdict.against == "cs-ucb"));
    let verdict = report.verdicts.iter().find(|verdict| verdict.quantity == "cumulative mean regret").unwrap();
    assert_eq!((verdict.pairs, verdict.verdict.as_str(), verdict.is_better), (4, "lower", Some(true)));
    let [low, high] = verdict.difference.ci95.unwrap();
    let difference = last(figure(&report, "regret"), "random") - last(figure(&report, "regret"), "cs-ucb");
    assert!(low < difference && difference < high && (difference - verdict.difference.value).abs() < 1e-2);
    assert!(report.results.rows.iter().all(|row| row.len() == report.results.columns.len()));
    assert_eq!(report.experiments[0].source, place.text("out/scenario.toml"));
}

/// Windows of four rounds: 150 rounds are more than twice 64.
fn assert_windows(report: &Report, policy: &str, runs: &[Vec<serde_json::Value>]) {
    let Chart::Heat { columns, rows, panels, .. } = &figure(report, "selections").chart else { panic!("a heat map") };
    assert_eq!((columns.len(), columns[0].as_str(), columns[37].as_str()), (38, "1–4", "149–150"));
    assert_eq!(rows, &["slow", "fast"]);
    let panel = panels.iter().find(|panel| panel.label == policy).unwrap();
    for window in 0..38 {
        let mut counts = [0.0; 2];
        for round in runs.iter().flat_map(|run| run.iter().skip(4 * window).take(4)) {
            for client in round["selected"].as_array().unwrap() {
                counts[usize::from(client.as_u64().unwrap() >= 6)] += 1.0;
            }
        }
        for (row, share) in [(0, 6.0 / 8.0), (1, 2.0 / 8.0)] {
            assert_close(panel.cells[row][window].unwrap(), counts[row] / (counts[0] + counts[1]) / share);
        }
    }
}

/// Its extreme ratios would have all colours to themselves.
#[test]
fn a_last_window_of_few_rounds_is_left_out() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 129"));
    place.run_into("out", &[]);
    let report = report(&place, &["out"]);
    let figure = figure(&report, "selections");
    let Chart::Heat { columns, panels, .. } = &figure.chart else { panic!("a heat map") };
    assert_eq!((columns.len(), columns[32].as_str()), (33, "129"));
    for panel in panels {
        for row in &panel.cells {
            assert!(row[..32].iter().all(Option::is_some) && row[32].is_none());
        }
    }
    assert!(figure.method.contains("fewer than half"), "{}", figure.method);
}

#[test]
fn texts_are_escaped_and_data_comes_back_from_csv() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 12"));
    place.run_into("out", &[]);
    let report = report(&place, &["out"]);
    assert!(report.title.contains("<script>"), "texts are as they were written");
    let svgs = write_figures(&report, &place.path("svg"), FigureFormat::Svg).unwrap();
    assert_eq!(svgs.len(), report.figures.len(), "every figure is drawn");
    for path in svgs {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("<script") && text.contains("&lt;script"), "{}", path.display());
    }
    for figure in &report.figures {
        let text = csv(figure);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        let number = |text: &String| text.parse::<f64>().unwrap();
        match &figure.chart {
            Chart::Lines { lines, marks, .. } => {
                let points =
                    lines.iter().flat_map(|line| line.points.iter().map(|point| (line.series.clone(), *point)));
                let read: Vec<_> = rows
                    .iter()
                    .filter(|row| row[1] != "mark")
                    .map(|row| (row[0].clone(), (number(&row[3]), number(&row[4]))))
                    .collect();
                assert_eq!(read, points.collect::<Vec<_>>(), "{}", figure.id);
                let bands: usize = lines.iter().map(|line| line.band.len()).sum();
                assert_eq!(rows.iter().filter(|row| !row[5].is_empty()).count(), bands, "{}", figure.id);
                assert_eq!(rows.len(), read.len() + marks.len());
            }
            Chart::Heat { panels, .. } => {
                let cells = panels.iter().flat_map(|panel| panel.cells.iter().flatten().copied());
                let read = rows.iter().map(|row| row[3].parse::<f64>().ok());
                assert!(cells.eq(read), "{}", figure.id);
            }
            Chart::Bars { parts, .. } => {
                let lengths = parts.iter().flat_map(|(_, lengths)| lengths.iter().copied());
                assert!(lengths.eq(rows.iter().map(|row| number(&row[2]))), "{}", figure.id);
            }
            Chart::Intervals { rows: values, .. } => {
                let read = rows.iter().map(|row| {
                    let ci95 = (!row[3].is_empty()).then(|| [number(&row[3]), number(&row[4])]);
                    (row[0].clone(), row[1].clone(), Interval { value: number(&row[2]), ci95 })
                });
                assert!(values.iter().cloned().eq(read), "{}", figure.id);
            }
        }
    }
}

const SWEPT: &str = "[sweep]\n\"regret.alpha\" = [0.5, 2.0]\n\"protocol.deadline.cohort\" = [2, 3, 4]\n";

#[test]
fn two_swept_paths_are_a_heat_map_one_is_a_line_and_words_are_intervals() {
    let short = changed(&changed(BASE, "rounds = 150", "rounds = 12"), "seeds = 4", "seeds = 3");
    let place = Workplace::with(&format!("{short}{SWEPT}"));
    place.run_into("grid", &[]);
    let grid = report(&place, &["grid"]);
    let Chart::Heat { x, columns, y, rows, panels, .. } = &figure(&grid, "regret").chart else { panic!("a heat map") };
    assert_eq!((x.label.as_str(), y.label.as_str()), ("cohort", "alpha"));
    assert_eq!(
        (columns, rows, panels.len()),
        (&["2", "3", "4"].map(String::from).to_vec(), &["0.5", "2.0"].map(String::from).to_vec(), 2)
    );
    let summary = place.json("grid/summary.json");
    let arms = summary["arms"].as_array().unwrap();
    let is_it = |arm: &&serde_json::Value| arm["arm"] == "random" && arm["point"] == 5;
    let expected = arms.iter().find(is_it).unwrap()["values"]["regret.mean"]["mean"].as_f64().unwrap();
    let panel = panels.iter().find(|panel| panel.label == "random").unwrap();
    assert_close(panel.cells[1][2].unwrap(), expected);
    assert!(panels.iter().flat_map(|panel| panel.cells.iter().flatten()).all(Option::is_some));

    let line = format!("{short}[sweep]\n\"regret.alpha\" = [2.0, 0.1]\n");
    place.write("line.toml", line);
    place.run_file("line.toml", "line", &[]);
    let line = report(&place, &["line"]);
    let Chart::Lines { lines, .. } = &figure(&line, "test_loss").chart else { panic!("lines") };
    let places: Vec<f64> = lines[0].points.iter().map(|point| point.0).collect();
    assert_eq!((lines[0].has_dots, places), (true, vec![0.1, 2.0]));
    assert!(place.path("line/regret.svg").is_file() && place.path("line/test_loss.svg").is_file());

    let words = changed(&short, "late = { carry = {} }", "late = \"drop\"");
    place.write("words.toml", format!("{words}[sweep]\n\"protocol.deadline.late\" = [\"drop\", {{ carry = {{}} }}]\n"));
    place.run_file("words.toml", "words", &[]);
    let words = report(&place, &["words"]);
    let Chart::Intervals { rows, .. } = &figure(&words, "regret").chart else { panic!("intervals") };
    assert_eq!(rows.len(), 4);
    assert_eq!((&*rows[0].0, &*rows[0].1), ("cs-ucb, late = drop", "cs-ucb"));
}

#[test]
fn several_folders_are_compared_with_the_first() {
    let base = changed(BASE, "rounds = 150", "rounds = 12");
    let place = Workplace::with(&base);
    place.run_into("one", &[]);
    place.run_into("two", &["--set", "evaluate.every=5"]);
    place.run_into("far", &["--set", "protocol.deadline.cohort=4"]);
    let same = report(&place, &["one", "two"]);
    let labels: Vec<&str> = same.series.iter().map(|series| series.label.as_str()).collect();
    assert_eq!(labels, ["one: cs-ucb", "one: random", "two: cs-ucb", "two: random"]);
    let colours: BTreeSet<[u8; 3]> = same.series.iter().map(|series| series.style.colour).collect();
    assert_eq!(colours.len(), 4, "everybody has a colour");
    let against = |report: &Report, subject: &str| {
        let verdicts = report.verdicts.iter().filter(|verdict| verdict.subject == subject);
        verdicts.map(|verdict| verdict.against.clone()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(against(&same, "two: random"), ["one: cs-ucb"]);
    // The same world and policy: the very same run.
    let regret = |verdict: &&fedgenie::report::Verdict| {
        verdict.subject == "two: cs-ucb" && verdict.quantity == "cumulative mean regret"
    };
    assert_eq!(same.verdicts.iter().find(regret).unwrap().verdict, "the same");
    let facts = |folder: usize| &same.experiments[folder].facts;
    let is_there =
        |folder: usize, value: &str| facts(folder).contains(&["evaluate.every".to_owned(), value.to_owned()]);
    assert!(is_there(0, "10") && is_there(1, "5"), "{:?}", facts(0));
    assert!(!facts(0).iter().any(|[name, _]| name.starts_with("protocol.")), "only what differs");
    let other = report(&place, &["one", "far"]);
    assert_eq!(against(&other, "far: random"), ["far: cs-ucb", "one: random"]);
    assert!(
        other.warnings.iter().any(|warning| warning.contains("differ in protocol: draws belong to seed")),
        "{:?}",
        other.warnings
    );
    let Chart::Lines { lines, .. } = &figure(&other, "regret").chart else { panic!("lines") };
    assert!(lines.iter().any(|line| line.series == "far: random"), "they are drawn together all the same");
    let answer = place.fedgenie(&["report", "one", "far", "--format", "csv", "-o", "data"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stdout.contains("written to data") && place.text("data/regret.csv").contains("far: random,mean,"));
    assert!(answer.stderr.contains("warning"), "{answer:?}");
}

#[test]
fn bad_input_is_named() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 6"));
    let refused = |words: &[&str], parts: &[&str]| {
        let answer = place.fedgenie(words);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(parts.iter().all(|part| answer.stderr.contains(part)), "{answer:?}");
    };
    refused(&["report", "nowhere"], &["no folder nowhere", "run --out"]);
    place.write("empty/file", "");
    refused(&["report", "empty"], &["manifest.json"]);
    place.run_into("out", &[]);
    refused(&["report", "out", "--format", "docx"], &["docx", "html, svg, pdf, csv, md or latex"]);
    refused(&["report", "out", "--format", "svg", "-o", SCENARIO], &[SCENARIO, "is a file"]);
    let manifest = place.text("out/manifest.json");
    let format = format!("\"format\": {}", fedgenie::record::FORMAT_VERSION);
    place.write("out/manifest.json", changed(&manifest, &format, "\"format\": 1"));
    refused(&["report", "out", "--format", "csv"], &["format 1", "run the scenario again"]);
    place.write("out/manifest.json", &manifest);
    std::fs::remove_file(place.path("out/runs/random-s3/run.json")).unwrap();
    let answer = place.fedgenie(&["report", "out", "--format", "csv"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.stderr.contains("1 of 8 runs are missing"), "{answer:?}");
    assert!(answer.stdout.contains("written to out/figures") && place.path("out/figures/regret.csv").is_file());
}

/// Tables in three forms, one figure under a heading of one's own, and options that exclude each other.
#[test]
fn tables_and_single_figures_for_a_paper() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 6"));
    place.run_into("out", &[]);
    for (format, ending, start) in [
        ("csv", "csv", "policy,seeds,"),
        ("md", "md", "| policy | seeds | "),
        ("latex", "tex", "% needs \\usepackage{booktabs}\n\\begin{tabular}{lr"),
    ] {
        let answer = place.fedgenie(&["report", "out", "--format", format, "-o", format]);
        assert!(answer.code == 0 && answer.stdout.contains("3 tables written to"), "{answer:?}");
        assert!(place.text(&format!("{format}/results.{ending}")).starts_with(start));
        let verdicts = place.text(&format!("{format}/verdicts.{ending}"));
        let report = report(&place, &["out"]);
        let rows = verdicts.lines().filter(|line| line.contains("cs-ucb")).count();
        assert_eq!(rows, report.verdicts.len(), "{verdicts}");
        for verdict in &report.verdicts {
            assert!(verdicts.contains(&verdict.difference.value.to_string()), "{verdict:?}");
        }
    }
    let one = ["report", "out", "--format", "svg", "--figure", "regret", "--title", "Mine & yours", "-o", "one"];
    let answer = place.fedgenie(&one);
    assert!(answer.code == 0 && answer.stdout.contains("1 figure written to"), "{answer:?}");
    assert_eq!(std::fs::read_dir(place.path("one")).unwrap().count(), 1);
    assert!(place.text("one/regret.svg").contains("Mine &amp; yours"));
    assert!(place.text("one/regret.svg").starts_with("<svg width=\"860\" height=\"480\""));
    let small =
        ["report", "out", "--format", "svg", "-o", "small", "--width", "420", "--height", "260", "--legend-below"];
    assert_eq!(place.fedgenie(&small).code, 0);
    // Two names stand in one or two lines below the plot.
    let picture = place.text("small/regret.svg");
    let height: u32 = picture.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
    assert!(picture.starts_with("<svg width=\"420\"") && (270..340).contains(&height), "{height}");
    let refused = |more: &[&str], part: &str| {
        let answer = place.fedgenie(&[&["report", "out"], more].concat());
        assert!(answer.code == 2 && answer.stderr.contains(part), "{answer:?}");
    };
    refused(&["--format", "csv", "--figure", "regrets"], "found --figure regrets; expected one of ");
    refused(&["--figure", "regret"], "--figure is for --format svg, pdf or csv, and found --format html");
    refused(&["--format", "csv", "--title", "x"], "--title is for --format svg or pdf, and found --format csv");
    refused(&["--legend-below"], "--legend-below is for --format svg or pdf, and found --format html");
    let of_regret =
        |more: &[&str], part: &str| refused(&[&["--format", "svg", "--figure", "regret"], more].concat(), part);
    of_regret(&["--range", "1"], "found --range 1; expected LOW:HIGH with LOW below HIGH, as 0.5:1, or x=LOW:HIGH");
    of_regret(&["--range", "z=0:1"], "found --range z=0:1; expected");
    of_regret(&["--range", "5:1"], "found --range 5:1; expected");
    of_regret(&["--font", "Times"], "found --font Times; expected sans-serif, serif or monospace");
    refused(&["--format", "pdf", "--range", "0:1"], "--range is for one figure; name it by --figure");
    refused(&["--format", "pdf", "--figure", "selections", "--range", "0:1"], "--range is for figures of lines");
    refused(&["--format", "svg", "--width", "10"], "found --width 10; expected 300 to 4000 pixels");
    refused(&["--format", "svg", "--height", "9000"], "found --height 9000; expected 200 to 4000 pixels");
}

#[test]
fn what_a_report_adds_is_not_verified_and_goes_with_its_experiment() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 6"));
    place.run_into("out", &[]);
    assert_eq!(place.fedgenie(&["report", "out", "--format", "svg"]).code, 0);
    let answer = place.fedgenie(&["verify", "out"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(place.path("out/selections.svg").is_file() && !place.path("out/difference-jain.svg").is_file());
    place.run_into("out", &["--overwrite"]);
    assert!(!place.path("out/figures").exists(), "pictures of earlier results are gone");
}

#[test]
fn an_unfinished_folder_is_told_from_no_folder() {
    let place = Workplace::with(&changed(BASE, "rounds = 150", "rounds = 12"));
    place.run_into("out", &[]);
    std::fs::remove_file(place.path("out/manifest.json")).unwrap();
    std::fs::remove_file(place.path("out/runs/random-s4/run.json")).unwrap();
    let answer = place.fedgenie(&["report", "out"]);
    let expected = "out is unfinished: 7 runs are complete; `fedgenie run out/scenario.toml --out out --resume`";
    assert!(answer.code == 2 && answer.stderr.contains(expected), "{answer:?}");
    let answer = place.fedgenie(&["run", "out/scenario.toml", "--out", "out", "--resume"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let rows = report(&place, &["out"]).results.rows;
    assert_eq!(rows.iter().filter(|row| !row[0].starts_with('(')).count(), 2, "{rows:?}");
}

/// A sweep over the partition: sizes and the target's metric are drawn point by point.
#[test]
fn a_sweep_of_partitions_shows_sizes_and_courses() {
    let base = changed(&changed(BASE, "rounds = 150", "rounds = 20"), "seeds = 4", "seeds = 2");
    let sweep = "[sweep]\n\"task.linear-regression.partition\" = [{ user-balance = { profile = \"linear\", index = 0.2 } }, \"iid\"]\n";
    let place = Workplace::with(&format!("{base}{sweep}"));
    place.run_into("out", &[]);
    let found = report(&place, &["out"]);
    let summary = place.json("out/summary.json");
    for point in 0..2 {
        let of_point = |run: &&serde_json::Value| run["point"] == point && run["arm"] == "random";
        let mut expected = [0.0; 8];
        for run in summary["runs"].as_array().unwrap().iter().filter(of_point) {
            let sizes = run["partition"]["sizes"].as_array().unwrap();
            assert_eq!(sizes.len(), 8);
            expected.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size.as_f64().unwrap() / 2.0);
        }
        let drawn = figure(&found, &format!("examples-p{point}"));
        let drawn = parts(drawn)["training examples"];
        assert!(drawn.iter().sum::<f64>() > 100.0);
        drawn.iter().zip(expected).for_each(|(&drawn, expected)| assert_close(drawn, expected));
        let course = figure(&found, &format!("test_loss-p{point}-time"));
        let Chart::Lines { x, marks, .. } = &course.chart else { panic!("lines") };
        let targets = marks.iter().filter(|mark| mark.label.starts_with("target"));
        assert!(x.label == "virtual time" && targets.count() == 1);
        let name = ["user-balance", "iid"][point];
        assert!(last(course, "random") > 0.0 && course.title.ends_with(&format!(", partition = {name}")));
    }
}

/// A sweep that one of the policies does not feel, over few points.
#[test]
fn a_sweep_says_each_thing_once_and_shows_who_is_selected_when() {
    let base = changed(&changed(BASE, "rounds = 150", "rounds = 40"), "seeds = 4", "seeds = 3");
    let place = Workplace::with(&format!("{base}[policy.bsfl]\n[sweep]\n\"policy.bsfl.alpha\" = [0.5, 1.0, 2.0]\n"));
    place.run_into("out", &[]);
    let found = report(&place, &["out"]);
    let Chart::Heat { panels, value, .. } = &figure(&found, "selections-rounds").chart else { panic!("a heat map") };
    assert_eq!((panels.len(), value.range), (9, [None, None]));
    let Chart::Lines { lines, .. } = &figure(&found, "regret").chart else { panic!("lines") };
    assert!(lines.iter().all(|line| line.band.len() == 3), "three seeds have whiskers");
    let rows: BTreeSet<String> = found.verdicts.iter().map(|verdict| format!("{verdict:?}")).collect();
    assert_eq!(rows.len(), found.verdicts.len());
    assert!(found.figures.iter().all(|figure| figure.id.starts_with("regret-p") || figure.summary.len() <= 13));
    place.run_into("rewards", &["--set", "sweep={\"regret.alpha\"=[0.5, 1.0]}"]);
    let found = report(&place, &["rewards"]);
    assert!(figure(&found, "regret").method.contains("have different units"));
    assert_eq!(found.warnings.iter().filter(|warning| warning.contains("different rewards")).count(), 1);
}

/// Six policies, four seeds with bands, more rounds than a curve keeps: the load of a page.
#[test]
fn a_report_of_six_policies_is_small() {
    let base = BASE.replace("meters = [\"mean\", \"realised\"]", "meters = [\"mean\", \"realised\", \"expected\"]");
    let base = changed(&changed(&base, "rounds = 150", "rounds = 1_100"), "late = { carry = {} }\n", "");
    let more = "[policy.bsfl]\n[policy.genie]\n[policy.round-robin]\n[policy.cs-ucb-q]\n";
    let place = Workplace::with(&format!("{base}{more}"));
    place.run_into("out", &["--set", "record.every=100"]);
    let report = report(&place, &["out"]);
    let bytes = serde_json::to_vec(&report).unwrap().len();
    assert!((100_000..800_000).contains(&bytes), "{bytes} bytes");
    let page = fedgenie::report::html(&report).len();
    assert!(page < 2_000_000, "{page} bytes");
    let Chart::Lines { lines, .. } = &figure(&report, "regret").chart else { panic!("lines") };
    let has_band = |line: &fedgenie::report::Line| line.role != LineKind::Mean || line.band.len() == line.points.len();
    assert!(lines.iter().all(|line| line.points.len() <= 160 && has_band(line)));
    let count = |role| lines.iter().filter(|line| line.role == role).count();
    assert_eq!((count(LineKind::Mean), count(LineKind::Seed)), (6, 0));
    let fitted = |series| lines.iter().any(|line| line.role == LineKind::Fit && line.series == series);
    assert!(fitted("random") && fitted("cs-ucb") && !fitted("genie"), "the genie's regret is zero: nothing grows");
}

/// Theorem 1 speaks of quantised rewards and of a server that waits for everybody.
#[test]
fn the_bound_stands_beside_bsfl_where_it_holds() {
    let base =
        changed(BASE, "deadline]\ncohort = 3\ndeadline = \"0.8 s\"\nlate = { carry = {} }", "synchronous]\ncohort = 3");
    let base = changed(&base, "[population.dropout]\ncompute = \"0.1 /s\"\n", "");
    let base = changed(&changed(&base, "alpha = 0.5", "alpha = 0.5\nquantum = 0.05"), "rounds = 150", "rounds = 20");
    let place = Workplace::with(&format!("{base}[policy.bsfl]\n[policy.other]\nkind = \"bsfl\"\nalpha = 1.0\n"));
    place.run_into("out", &[]);
    let bounds = |report: &Report| {
        let Chart::Lines { lines, .. } = &figure(report, "regret").chart else { panic!("lines") };
        lines.iter().filter(|line| line.role == LineKind::Bound).cloned().collect::<Vec<_>>()
    };
    let with = report(&place, &["out"]);
    let found = bounds(&with);
    assert_eq!((found.len(), found[0].series.as_str()), (1, "bsfl"), "the other maximises another reward");
    assert!(found[0].points.windows(2).all(|pair| pair[0].1 < pair[1].1));
    assert!(found[0].points[0].1 > last(figure(&with, "regret"), "bsfl"));
    place.run_into("plain", &["--set", "regret.quantum=0"]);
    assert_eq!(bounds(&report(&place, &["plain"])), []);
}
