//! Seeds that are added until the first answer is decided: when they end, what a folder has then, and that neither an
//! interruption nor a race changes what is found.

use super::support::{Answer, SCENARIO, Workplace, changed};
use fedgenie::experiment::apart::Gathering;
use fedgenie::experiment::{Experiment, Overrides, RunOptions};
use serde_json::Value;
use std::fs;

/// Three sizes of cohorts: what waits for more clients takes longer. `twin` waits for as many as `random`.
const THREE: &str = r#"name = "decided"
seeds = { until = "decided", at_most = 40, looks = [5, 8, 12, 20] }
[stop]
rounds = 20
[population]
clients = 12
[population.latency]
download = { constant = "10 ms" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "20 ms" }
[protocol.synchronous]
cohort = 2
[policy.random]
[policy.twin]
kind = "round-robin"
[policy.larger]
kind = "random"
with = { "protocol.synchronous.cohort" = 3 }
[policy.largest]
kind = "random"
with = { "protocol.synchronous.cohort" = 8 }
"#;

/// The first answer of a folder.
fn first(place: &Workplace, folder: &str) -> Value {
    place.json(&format!("{folder}/summary.json"))["answers"][0].clone()
}

/// The other with this name.
fn other<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let others = answer["others"].as_array().unwrap();
    others.iter().find(|other| other["name"] == name).unwrap_or_else(|| panic!("{name}: {answer}"))
}

fn runs(place: &Workplace, folder: &str, label: &str) -> usize {
    let all = fs::read_dir(place.path(&format!("{folder}/runs"))).unwrap();
    all.filter(|run| run.as_ref().unwrap().file_name().to_string_lossy().starts_with(&format!("{label}-s"))).count()
}

#[test]
fn it_ends_at_the_first_look_that_decides() {
    let (head, _) = THREE.split_once("[policy.twin]").unwrap();
    let far = format!("{head}[policy.largest]\nkind = \"random\"\nwith = {{ \"protocol.synchronous.cohort\" = 8 }}\n");
    let place = Workplace::with(&far);
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("after 5 seeds it is decided"), "{stderr}");
    assert!(stdout.contains("which policy is best by virtual time of the run: after 5, at look 1 of 5"), "{stdout}");
    let answer = first(&place, "out");
    assert_eq!((&answer["best"], &answer["looks"]["seeds"]), (&"random".into(), &5.into()), "{answer}");
    assert_eq!(answer["looks"]["decided"], true);
    // One other, and 5 of 40 seeds: an eighth of 5 %.
    assert!((answer["looks"]["miss"].as_f64().unwrap() - 0.05 / 8.0).abs() < 1e-12, "{answer}");
    assert_eq!(runs(&place, "out", "random"), 5);
    for command in [&["verify", "out"][..], &["report", "out"], &["export", "out", "--to", "csv", "--out", "tables"]] {
        let Answer { code, stderr, .. } = place.fedgenie(command);
        assert!(code == 0 && !stderr.contains("missing"), "{command:?}: {stderr}");
    }
    // The interval is wider than the usual one of the comparison with the reference.
    let summary = place.json("out/summary.json");
    let usual = &summary["arms"][1]["paired"]["differences"]["virtual_time_s"]["ci95"];
    let wide = &other(&answer, "largest")["ci95"];
    let width = |ends: &Value| ends[1].as_f64().unwrap() - ends[0].as_f64().unwrap();
    // Student's t with 4 degrees of freedom at 1 - 0.00625/2 and at 0.975: 5.2611 and 2.7764.
    assert!((width(wide) / width(usual) - 5.261_06 / 2.776_45).abs() < 1e-3, "{wide} and {usual}");
}

#[test]
fn what_is_not_told_apart_gets_all_seeds_unless_a_margin_says_equal() {
    let (head, _) = THREE.split_once("[policy.larger]").unwrap();
    let place = Workplace::with(&changed(head, "at_most = 40, looks = [5, 8, 12, 20]", "at_most = 10, looks = [5]"));
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("after 5 seeds it is not decided; on to 10") && stderr.contains("the most, it is not"),
        "{stderr}"
    );
    assert!(
        stdout.contains(
            "It is not decided which policy is best by virtual time of the run, after 10 seeds, at look 2 of 2"
        ),
        "{stdout}"
    );
    assert_eq!((runs(&place, "out", "random"), runs(&place, "out", "twin")), (10, 10));
    let answer = first(&place, "out");
    assert_eq!(
        (&answer["looks"]["decided"], answer["equal"].as_array().unwrap().len()),
        (&false.into(), 1),
        "{answer}"
    );
    assert!(!stdout.contains("To tell"), "the number that would do is not known by these intervals: {stdout}");

    let Answer { code, stdout, stderr } =
        place.fedgenie(&["run", SCENARIO, "--until-decided", "40", "--margin", "30", "--out", "margin"]);
    assert_eq!(code, 0, "{stderr}");
    let answer = first(&place, "margin");
    assert_eq!((&answer["looks"]["decided"], &answer["looks"]["margin"]), (&true.into(), &30.0.into()), "{answer}");
    assert_eq!(answer["equal"].as_array().unwrap().len(), 1, "{answer}");
    assert!(stdout.contains("equal to it within 30 s"), "{stdout}");
    assert!(runs(&place, "margin", "twin") < 40);
}

/// With a margin between the two effects: `twin` is equal, `larger` is not.
#[test]
fn a_race_drops_who_is_surely_worse() {
    let race = changed(THREE, "at_most = 40,", "at_most = 40, race = true, margin = 6.0,");
    let (place, whole) = (Workplace::with(&race), Workplace::with(&changed(&race, " race = true,", "")));
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO, "--out", "out", "--threads", "2"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("on to 12, without largest"), "{stderr}");
    let answer = first(&place, "out");
    let of = |label: &str| (other(&answer, label)["dropped"].clone(), runs(&place, "out", label));
    assert_eq!(of("largest"), (8.into(), 8), "{answer}");
    assert!(runs(&place, "out", "random") > 8 && stdout.contains("largest was surely worse after 8 seeds"), "{stdout}");
    // Nothing is missing, for no command.
    for command in [&["verify", "out"][..], &["report", "out"], &["export", "out", "--to", "csv", "--out", "tables"]] {
        let Answer { code, stderr, .. } = place.fedgenie(command);
        assert!(code == 0 && !stderr.contains("missing"), "{command:?}: {stderr}");
    }
    assert!(place.text("out/report.html").contains("largest was surely worse after 8 seeds"));
    // The others are as without a race.
    whole.run_into("out", &[]);
    let all = first(&whole, "out");
    assert_eq!((&all["best"], &all["looks"]["seeds"]), (&answer["best"], &answer["looks"]["seeds"]));
    assert_eq!(other(&all, "random")["difference"], other(&answer, "random")["difference"]);
}

#[test]
fn an_interrupted_experiment_decides_the_same() {
    let race = changed(THREE, "at_most = 40, looks = [5, 8, 12, 20]", "at_most = 12, race = true, looks = [5, 8]");
    let place = Workplace::with(&race);
    place.run_into("whole", &[]);
    // Stopped after its first look: later runs and all summaries are not there.
    place.run_into("part", &["--set", "seeds=5"]);
    let Answer { code, stderr, .. } = place.fedgenie(&["run", SCENARIO, "--out", "part", "--resume"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(first(&place, "part"), first(&place, "whole"));
    assert_eq!(place.digests("part"), place.digests("whole"));
    // Stopped in the middle of a look.
    fs::remove_dir_all(place.path("part/runs/random-s8")).unwrap();
    fs::remove_dir_all(place.path("part/runs/twin-s3")).unwrap();
    let Answer { code, stderr, .. } = place.fedgenie(&["run", SCENARIO, "--out", "part", "--resume"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(first(&place, "part"), first(&place, "whole"));
    assert_eq!(place.digests("part"), place.digests("whole"));
    // Another plan begins anew, and says what that means.
    let other = changed(&race, "looks = [5, 8]", "looks = [6]");
    place.write(SCENARIO, other);
    let Answer { code, stderr, .. } = place.fedgenie(&["run", SCENARIO, "--out", "part", "--resume"]);
    assert!(code == 0 && stderr.contains("by another plan here before"), "{stderr}");
    assert!(place.text("part/scenario.toml").contains("looks = [6, 12]"));
}

#[test]
fn what_cannot_be_decided_is_refused() {
    let refused = |text: &str, words: &[&str], expected: &str| {
        let command = [&["run", SCENARIO][..], words].concat();
        let Answer { code, stdout, stderr } = Workplace::with(text).fedgenie(&command);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(expected), "{expected}: {stderr}");
    };
    refused(THREE, &["--out", "out", "--shard", "0/2"], "a shard cannot know");
    refused(THREE, &["--out", "out", "--shard", "0/2", "--dry-run"], "a shard cannot know");
    let (head, _) = THREE.split_once("[policy.twin]").unwrap();
    refused(head, &[], "there is nothing to decide");
    let race = changed(THREE, "at_most = 40,", "at_most = 40, race = true,");
    refused(&format!("{race}[sweep]\n\"stop.rounds\" = [5, 6]\n"), &[], "about the policies of one point");
    refused(&changed(THREE, "at_most = 40,", "at_most = 2,"), &[], "seeds.at_most: found 2");
    refused(&changed(THREE, "at_most = 40,", "at_most = 40, margin = -1,"), &[], "seeds.margin: found -1");
    refused(&changed(THREE, "looks = [5, 8, 12, 20]", "looks = [5, 5]"), &[], "seeds.looks: found 5 after 5");
    refused(&changed(THREE, "until = \"decided\"", "until = \"bored\""), &[], "seeds.until");
    refused(&changed(THREE, "at_most = 40,", "at_most = 40, from = 5,"), &[], "unknown key \"from\"");
    refused(THREE, &["--until-decided", "40", "--margin", "3", "--seeds", "3"], "--seeds");
    refused(THREE, &["--until-decided", "40", "--seeds", "3"], "--seeds");
    refused(THREE, &["--margin", "3"], "--until-decided");
}

/// Who carries out some of the runs elsewhere cannot know either.
#[test]
fn runs_that_are_sent_about_have_a_number_of_seeds() {
    let place = Workplace::with(THREE);
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    let folder = place.path("out");
    let error = Gathering::open(experiment, &RunOptions::into(&folder), false).unwrap_err().to_string();
    assert!(error.contains("give seeds a number") && !folder.exists(), "{error}");
}

#[test]
fn a_forecast_is_of_all_seeds() {
    let place = Workplace::with(THREE);
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO, "--dry-run", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let forecast: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&forecast["runs"], &forecast["seeds"]), (&160.into(), &40.into()), "{forecast}");
    assert!(forecast["notes"][0].as_str().unwrap().contains("the first look is after 5"), "{forecast}");
}
