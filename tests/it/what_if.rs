//! What-if questions: points of a sweep, policies and folders compared, with numbers worked out by hand.

use super::support::{PLAIN, SCENARIO, Workplace, changed, unheard};
use fedgenie::report::{Chart, Figure, Report};
use serde_json::Value;
use std::path::PathBuf;

/// Rounds of 4 s, or as long as the sweep says: 2 s more than computing.
const CONSTANT: &str = "[sweep]\n\"population.latency.compute.constant\" = [\"4 s\", \"1000 ms\", \"2 s\"]\n";

/// Latencies that differ from round to round.
fn random() -> String {
    let scenario = changed(PLAIN, "compute = { constant = \"2 s\" }", "compute = { exponential = { mean = \"2 s\" } }");
    changed(&scenario, "seeds = 1", "seeds = 5")
}

fn report(place: &Workplace, folders: &[&str]) -> Report {
    let folders: Vec<PathBuf> = folders.iter().map(|folder| place.path(folder)).collect();
    Report::load(&folders, &unheard()).unwrap()
}

fn figure<'a>(report: &'a Report, id: &str) -> &'a Figure {
    let ids: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
    report.figures.iter().find(|figure| figure.id == id).unwrap_or_else(|| panic!("{id} is not among {ids:?}"))
}

/// Mean and half-width of the 95 % interval of five numbers: t(0.975, 4) = 2.7764451.
fn of_five(values: &[f64]) -> (f64, f64) {
    assert_eq!(values.len(), 5);
    let mean = values.iter().sum::<f64>() / 5.0;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 4.0;
    (mean, 2.776_445_105 * (variance / 5.0).sqrt())
}

/// The virtual times of a policy's runs at a point, by seed.
fn times(summary: &Value, arm: &str, point: usize) -> Vec<f64> {
    let runs = summary["runs"].as_array().unwrap().iter();
    let of = |run: &&Value| run["arm"] == arm && run["point"] == point;
    runs.filter(of).map(|run| run["virtual_time_s"].as_f64().unwrap()).collect()
}

fn minus(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one - other).collect()
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-7 * expected.abs().max(1e-9), "found {found}, expected {expected}");
}

/// 12 rounds of 6, 3 and 4 s. The scenario's own value is the reference; 1000 ms come before 2 s and 4 s.
#[test]
fn points_are_compared_with_the_reference_and_their_neighbours() {
    let place = Workplace::with(&format!("{}{CONSTANT}", changed(PLAIN, "seeds = 1", "seeds = 3")));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let expected = "\nConstant 1000 ms is fastest: 36 s, 3 seeds; next, 2 s takes 12 s longer (33 %).\n";
    assert!(answer.stdout.contains(expected), "{answer:?}");
    let answer = place.fedgenie(&["report", "out"]);
    assert!(answer.stdout.ends_with(expected), "{answer:?}");
    let summary = place.json("out/summary.json");
    let compared: Vec<_> = summary["compared"].as_array().unwrap().iter().collect();
    let short = |entry: &&Value| {
        let along = entry.get("along").map_or("reference", |paths| paths[0].as_str().unwrap());
        let found = entry["differences"]["virtual_time_s"]["mean"].as_f64().unwrap();
        (entry["point"].as_u64().unwrap(), entry["against"].as_u64().unwrap(), along.to_owned(), found)
    };
    let path = "population.latency.compute.constant".to_owned();
    let reference = "reference".to_owned();
    assert_eq!(
        compared.iter().map(short).collect::<Vec<_>>(),
        [(0, 2, reference.clone(), 24.0), (0, 2, path.clone(), 24.0), (1, 2, reference, -12.0), (2, 1, path, 12.0)]
    );
    let found = report(&place, &["out"]);
    let Chart::Lines { x, lines, .. } = &figure(&found, "virtual_time_s").chart else { panic!("lines") };
    assert_eq!((x.label.as_str(), x.unit.as_deref()), ("compute constant", Some("s")));
    assert_eq!(lines[0].points, [(1.0, 36.0), (2.0, 48.0), (4.0, 72.0)]);
    let Chart::Intervals { rows, .. } = &figure(&found, "difference-points-virtual_time_s").chart else {
        panic!("intervals")
    };
    let rows: Vec<(&str, f64)> = rows.iter().map(|(words, _, value)| (words.as_str(), value.value)).collect();
    assert_eq!(rows, [("random, constant = 4 s", 24.0), ("random, constant = 1000 ms", -12.0)]);
    let verdicts: Vec<_> =
        found.verdicts.iter().filter(|verdict| verdict.quantity == "virtual time of the run").collect();
    let short: Vec<_> =
        verdicts.iter().map(|verdict| (&*verdict.subject, &*verdict.against, &*verdict.verdict)).collect();
    assert_eq!(
        short,
        [("4 s", "2 s", "higher"), ("1000 ms", "2 s", "lower"),],
        "neighbours of the reference are compared with it once"
    );
    assert!(found.answers[0].starts_with("Constant 1000 ms is fastest: 36 s"), "{:?}", found.answers);
    assert!(place.text("out/report.html").contains("Constant 1000 ms is fastest: 36 s"));
}

/// Zipped paths are one axis; the reference of the scenario; two policies, each with its own answer.
#[test]
fn differences_are_paired_by_seed_and_say_how_many_seeds_they_need() {
    let sweep = "[policy.round-robin]\n[sweep]\n\"protocol.synchronous.cohort\" = [2, 3]\nzip = [\"protocol.synchronous.cohort\", \"stop.rounds\"]\n\
                 \"stop.rounds\" = [12, 11]\nreference = { \"stop.rounds\" = 11 }\n";
    let place = Workplace::with(&format!("{}{sweep}", random()));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--reference", "round-robin"]);
    assert!(answer.stdout.contains("virtual time [s] minus round-robin's"), "{answer:?}");
    let summary = place.json("out/summary.json");
    for arm in ["random", "round-robin"] {
        let (mean, half) = of_five(&minus(&times(&summary, arm, 0), &times(&summary, arm, 1)));
        let is_it = |entry: &&Value| entry["arm"] == arm && entry.get("along").is_none();
        let entry = summary["compared"].as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!((entry["point"].as_u64(), entry["against"].as_u64()), (Some(0), Some(1)));
        let found = &entry["differences"]["virtual_time_s"];
        assert_close(found["mean"].as_f64().unwrap(), mean);
        let end = |index: usize| found["ci95"][index].as_f64().unwrap();
        assert_close((end(1) - end(0)) / 2.0, half);
    }
    let arms = summary["arms"].as_array().unwrap();
    let paired = |arm: &str| {
        arms.iter().find(|entry| entry["arm"] == arm && entry["point"] == 0).unwrap().get("paired").cloned()
    };
    let (mean, half) = of_five(&minus(&times(&summary, "random", 0), &times(&summary, "round-robin", 0)));
    assert_eq!(paired("round-robin"), None);
    let found = paired("random").unwrap();
    assert_eq!(found["against"], "round-robin");
    assert_close(found["differences"]["virtual_time_s"]["mean"].as_f64().unwrap(), mean);
    // Not told apart: so many seeds as make t·s/√n smaller than the difference, worked out with the normal quantile.
    assert!(half > mean.abs(), "the scenario was chosen so: {mean} ± {half}");
    let found = report(&place, &["out"]);
    let is_it = |verdict: &&fedgenie::report::Verdict| {
        verdict.quantity == "virtual time of the run"
            && verdict.point.contains("12")
            && verdict.against == "round-robin"
    };
    let verdict = found.verdicts.iter().find(is_it).unwrap();
    let deviations = half / 2.776_445_105 * 5.0_f64.sqrt() / mean.abs();
    let (needed, rough) = (verdict.seeds_needed.unwrap() as f64, (1.96 * deviations).powi(2));
    assert_eq!(verdict.verdict, "not told apart");
    assert!(rough < needed && needed < 1.1 * rough + 5.0, "{needed} seeds, about {rough}");
    // The policy of the scenario's `[report]` is the reference of a report, until another one is asked for.
    let by = |reference| Report::load_against(&[place.path("out")], reference, &unheard()).unwrap();
    let against = |report: &Report| report.verdicts.iter().any(|verdict| verdict.against == "random");
    assert!(!against(&by(None)) && against(&by(Some("random"))));
}

#[test]
fn an_unknown_reference_is_named() {
    let place = Workplace::with(&changed(PLAIN, "[policy.random]", "[policy.random]\n[policy.round-robin]"));
    let refused = |words: &[&str], start: &str| {
        let answer = place.fedgenie(words);
        let parts = [start, "unknown policy \"randon\"", "did you mean \"random\"?"];
        assert!(answer.code == 2 && parts.iter().all(|part| answer.stderr.contains(part)), "{answer:?}");
    };
    refused(&["run", SCENARIO, "--reference", "randon"], "--reference: report.reference: ");
    place.run_into("out", &[]);
    refused(&["report", "out", "--reference", "randon"], "--reference: ");
    place.write(SCENARIO, format!("{}[report]\nreference = \"randon\"\n", changed(PLAIN, "seeds = 1", "seeds = 2")));
    refused(&["run", SCENARIO], &format!("{SCENARIO}:21: report.reference: "));
}

/// Exponential computing of 2 s on the average and of 3 s: quantiles of the same uniform numbers, so that the longest
/// computing of a round is one and a half times as long in every round, and the difference of two runs is a third of
/// the longer run's time beyond its 24 s of transfers.
#[test]
fn folders_stay_paired_when_a_law_changes() {
    let place = Workplace::with(&random());
    place.run_into("one", &[]);
    place.run_into("far", &["--set", "population.latency.compute.exponential.mean=\"3 s\""]);
    let (one, far) = (place.json("one/summary.json"), place.json("far/summary.json"));
    let expected: Vec<f64> = times(&far, "random", 0).iter().map(|time| (time - 24.0) / 3.0).collect();
    let differences = minus(&times(&far, "random", 0), &times(&one, "random", 0));
    differences.iter().zip(&expected).for_each(|(found, expected)| assert!((found - expected).abs() < 1e-6));
    let (mean, half) = of_five(&differences);
    let found = report(&place, &["one", "far"]);
    let is_it = |verdict: &&fedgenie::report::Verdict| verdict.quantity == "virtual time of the run";
    let verdict = found.verdicts.iter().find(is_it).unwrap();
    assert_eq!((&*verdict.subject, &*verdict.against, verdict.pairs), ("far: random", "one: random", 5));
    assert!((verdict.difference.value - mean).abs() < 1e-3 * mean, "{verdict:?}");
    assert!((verdict.difference.ci95.unwrap()[1] - mean - half).abs() < 1e-3 * mean, "{verdict:?}");
    assert!(
        found
            .warnings
            .iter()
            .any(|warning| warning.contains("differ in population") && warning.contains("5 common seeds"))
    );

    let answer = place.fedgenie(&["diff", "one", "far"]);
    let lines: Vec<&str> = answer.stdout.lines().collect();
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["scenario", "one", "far"]);
    let setting = "population.latency.compute.exponential.mean 2 s 3 s";
    assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>().join(" "), setting);
    let row = lines.iter().find(|line| line.starts_with("random ")).unwrap();
    assert!(row.contains("virtual time of the run [s]") && row.ends_with("higher (worse)"), "{row}");
    assert!(answer.stdout.contains("of 5 pairs of runs with the same seed"), "{answer:?}");
    let json = place.fedgenie(&["diff", "one", "far", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["settings"][0]["values"], serde_json::json!(["2 s", "3 s"]));
    let row = &json["results"][0];
    assert_eq!(
        (row["policy"].as_str(), row["is_paired"].as_bool(), row["verdict"].as_str()),
        (Some("random"), Some(true), Some("higher"))
    );
    assert_close(row["difference"]["mean"].as_f64().unwrap(), mean);
}

/// Other seeds, other samples: the interval of Welch, worked out here for equal numbers of runs.
#[test]
fn folders_without_common_seeds_are_not_paired() {
    let place = Workplace::with(&random());
    place.run_into("one", &[]);
    place.run_into("other", &["--set", "seeds=[11, 12, 13, 14, 15]"]);
    let both =
        [times(&place.json("one/summary.json"), "random", 0), times(&place.json("other/summary.json"), "random", 0)];
    let [(one, half_one), (other, half_other)] = both.each_ref().map(|times| of_five(times));
    let json = place.fedgenie(&["diff", "one", "other", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(json["notes"][0].as_str().unwrap().contains("no seeds in common"), "{json}");
    let row = &json["results"][0];
    assert_eq!(row["is_paired"].as_bool(), Some(false));
    assert_close(row["difference"]["mean"].as_f64().unwrap(), other - one);
    // The standard error is that of both together; the quantile lies between those of 4 and of 8 degrees of freedom.
    let error = half_one.hypot(half_other) / 2.776_445_105;
    let end = |index: usize| row["difference"]["ci95"][index].as_f64().unwrap();
    let quantile = (end(1) - end(0)) / 2.0 / error;
    assert!((2.306_004 - 1e-6..2.776_446).contains(&quantile), "{quantile}");
    let answer = place.fedgenie(&["diff", "one", "other"]);
    assert!(answer.stdout.starts_with("the scenarios are the same\n"), "seeds are no setting: {answer:?}");
    assert!(answer.stdout.contains(" unpaired"), "{answer:?}");
    let found = report(&place, &["one", "other"]);
    assert!(found.verdicts.iter().all(|verdict| verdict.pairs == 0));
    assert!(found.warnings.iter().any(|warning| warning.contains("no seeds in common")), "{:?}", found.warnings);
}

#[test]
fn diff_names_what_only_one_has_and_refuses_what_is_no_folder() {
    let place = Workplace::with(&random());
    place.run_into("one", &[]);
    place.run_into("two", &["--set", "policy.round-robin={}"]);
    place.run_into("swept", &["--set", "sweep={\"protocol.synchronous.cohort\"=[1, 2]}"]);
    let answer = place.fedgenie(&["diff", "one", "two"]);
    assert!(answer.stdout.contains("only in two: round-robin"), "{answer:?}");
    assert!(answer.stdout.contains("the same"), "the same runs: {answer:?}");
    let answer = place.fedgenie(&["diff", "one", "swept"]);
    assert!(answer.code == 0 && answer.stdout.contains("no results are compared"), "{answer:?}");
    let answer = place.fedgenie(&["diff", "one", "nowhere"]);
    assert!(answer.code == 2 && answer.stderr.contains("there is no folder nowhere"), "{answer:?}");
    // Two folders of one name.
    place.run_into("a/out", &[]);
    place.run_into("b/out", &[]);
    let answer = place.fedgenie(&["diff", "a/out", "b/out"]);
    let heading = answer.stdout.lines().find(|line| line.starts_with("results")).unwrap();
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>().join(" "), "results out out (2) out (2) − out");
}

/// Computing decides the time, the cohort does not: the best points are those with the shortest computing, whatever the
/// cohort.
#[test]
fn the_best_of_a_grid_and_what_is_as_good_are_outlined() {
    let sweep = "[sweep]\n\"population.latency.compute.constant\" = [\"2 s\", \"1 s\", \"4 s\"]\n\"protocol.synchronous.cohort\" = [1, 2]\n";
    let place = Workplace::with(&format!("{}{sweep}", changed(PLAIN, "seeds = 1", "seeds = 3")));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let best = "Constant = 1 s, cohort = 1 and constant = 1 s, cohort = 2 are fastest, equal for each seed: 36 s, 3 seeds; \
                next, constant = 2 s, cohort = 1 takes 12 s longer (33 %).";
    assert!(answer.stdout.contains(best), "{answer:?}");
    let found = report(&place, &["out"]);
    let Chart::Heat { columns, rows, panels, .. } = &figure(&found, "virtual_time_s").chart else {
        panic!("a heat map")
    };
    assert_eq!((columns.join(" "), rows.join(" ")), ("1 s 2 s 4 s".to_owned(), "1 2".to_owned()));
    assert_eq!(panels[0].cells[0], [Some(36.0), Some(48.0), Some(72.0)]);
    assert_eq!(panels[0].contour, [[true, false, false], [true, false, false]]);
    // Ten edges would be those of two outlined cells and the frame; the orange is that of contours alone.
    let svg = place.text("out/virtual_time_s.svg");
    assert_eq!(svg.matches("#D55E00").count(), 6, "two cells, one edge shared");
}

/// Every point has a curve, in the order of its value and with a style of its own.
#[test]
fn curves_of_all_points_are_drawn_together() {
    let learning = "[task.linear-regression]\nfeatures = 2\nexamples = 60\n[training]\noptimizer = { sgd = { lr = 0.01 } }\n[evaluate]\nevery = 3\n";
    let place = Workplace::with(&format!("{PLAIN}{learning}{CONSTANT}"));
    place.run_into("out", &[]);
    let found = report(&place, &["out"]);
    for (id, ends) in [("test_loss-points", [36.0, 48.0, 72.0]), ("test_loss-points-rounds", [12.0; 3])] {
        let Chart::Lines { lines, .. } = &figure(&found, id).chart else { panic!("lines") };
        let names: Vec<&str> = lines.iter().map(|line| line.series.as_str()).collect();
        assert_eq!(names, ["1000 ms", "2 s", "4 s"]);
        assert_eq!(lines.iter().map(|line| line.points.last().unwrap().0).collect::<Vec<_>>(), ends);
        for name in names {
            assert_eq!(found.series.iter().filter(|series| series.label == name).count(), 1);
        }
    }
    // The same training at another speed: the losses of equal rounds are equal.
    let summary = place.json("out/summary.json");
    let losses: Vec<f64> =
        summary["runs"].as_array().unwrap().iter().map(|run| run["final"]["test_loss"].as_f64().unwrap()).collect();
    assert!(losses.windows(2).all(|pair| pair[0] == pair[1]), "{losses:?}");
}

/// Training shares no draws between tasks of different kinds; the clock does.
#[test]
fn tasks_of_different_kinds_are_paired_in_time_alone() {
    let training = "[training]\noptimizer = { sgd = { lr = 0.01 } }\n";
    let place =
        Workplace::with(&format!("{}[task.linear-regression]\nfeatures = 2\nexamples = 60\n{training}", random()));
    place.run_into("line", &[]);
    place.run_into("none", &["--set", "task=\"none\""]);
    let images =
        "task={ softmax-regression = { data = { synthetic = { height = 4, width = 4, train = 60, test = 30 } } } }";
    place.run_into("images", &["--set", images]);
    let diff = |other: &str| -> Value {
        serde_json::from_str(&place.fedgenie(&["diff", "line", other, "--json"]).stdout).unwrap()
    };
    let row = |diff: &Value, quantity: &str| {
        let rows = diff["results"].as_array().unwrap().iter();
        rows.filter(|row| row["quantity"] == quantity).cloned().collect::<Vec<_>>().remove(0)
    };
    let notes = |diff: &Value| diff["notes"].to_string();
    let found = diff("images");
    assert!(notes(&found).contains("tasks of different kinds (linear-regression, softmax-regression)"), "{found}");
    let (loss, time) = (row(&found, "final test loss"), row(&found, "virtual time of the run"));
    assert_eq!((loss["is_paired"].as_bool(), time["is_paired"].as_bool()), (Some(false), Some(true)));
    assert!(loss["difference"]["ci95"].is_array() && time["verdict"] == "the same", "{found}");
    let found = diff("none");
    assert!(notes(&found).contains("they have no metric in common"), "{found}");
    assert!(
        row(&found, "final test loss")["difference"].is_null()
            && row(&found, "virtual time of the run")["verdict"] == "the same"
    );
}
