//! Answers of experiments whose truth is known.

mod told;

use super::super::{CurvePoint, RunSummary};
use super::*;
use crate::scenario::report::ReportConfig;
use crate::scenario::{Point, Sweep};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const TARGET: &str = "test_loss <= 0.3";

/// A run that ends at a time, having moved so many bytes, for a reason; `at` is its arrival, in time and bytes.
fn run(
    (arm, seed, point): (&str, u64, usize),
    (end, bytes, ended): (f64, u64, &str),
    at: Option<(f64, u64)>,
) -> RunSummary {
    let mut target = json!({ "metric": "test_loss", "at_most": 0.3, "round": null, "time_s": null });
    if let Some((time, bytes)) = at {
        let reached = json!({ "round": 1, "time_s": time, "down_bytes": bytes, "up_bytes": 0 });
        target.as_object_mut().unwrap().extend(reached.as_object().unwrap().clone());
    }
    let written = json!({
        "arm": arm, "seed": seed, "point": point, "rounds": 100, "virtual_time_s": end, "ended": ended,
        "digest": { "timeline": "", "model": "" }, "final": {}, "regret": {},
        "traffic": { "down_bytes": bytes, "up_bytes": 0 }, "compute_s": 7.0, "wasted_compute_s": 0.0,
        "dispatched": 1, "arrived": 1, "unique_clients": 1, "jain": 1.0, "reached": [target]
    });
    serde_json::from_value(written).unwrap()
}

/// Runs of a policy that arrive at these times, where there is one, and end then or at `end`; a byte a second.
fn runs(arm: &str, point: usize, arrivals: &[Option<f64>], end: (f64, &str)) -> Vec<RunSummary> {
    let one = |(seed, at): (u64, &Option<f64>)| {
        let until = at.unwrap_or(end.0).max(end.0);
        run((arm, seed, point), (until, until as u64, end.1), at.map(|at| (at, at as u64)))
    };
    (1..).zip(arrivals).map(one).collect()
}

fn summary_of(points: &[(&str, &str)], aim: Option<&str>, runs: Vec<RunSummary>) -> Summary {
    let mut labels: Vec<String> = Vec::new();
    for run in &runs {
        if !labels.contains(&run.arm) {
            labels.push(run.arm.clone());
        }
    }
    let settings: Vec<BTreeMap<String, String>> =
        points.iter().map(|(path, value)| BTreeMap::from([((*path).to_owned(), (*value).to_owned())])).collect();
    let sweep = Sweep::of(&toml::Table::new(), &settings);
    let mut points: Vec<Point> =
        settings.into_iter().map(|settings| Point { settings: settings.into_iter().collect() }).collect();
    if points.is_empty() {
        points.push(Point { settings: Vec::new() });
    }
    let report = ReportConfig { aim: aim.map(str::to_owned), ..ReportConfig::default() };
    Summary::new(("x", None), (&points, sweep), (&labels, report, None), runs, answers)
}

fn of(runs: Vec<RunSummary>) -> Summary {
    summary_of(&[], None, runs)
}

fn label(name: &str) -> Option<Name> {
    Some(Name::Label(name.to_owned()))
}

/// The quick policy uses its rounds up at 222 s, when it has arrived in three of five; the slow one arrives in all.
#[test]
fn who_was_watched_shorter_does_not_end_the_comparison() {
    let some = |time| Some(time);
    let quick = runs("quick", 0, &[some(100.0), some(120.0), some(140.0), None, None], (222.0, "rounds"));
    let slow = runs(
        "slow",
        0,
        &[Some(900.0), Some(1000.0), Some(1100.0), Some(1200.0), Some(1300.0)],
        (3600.0, "virtual_time"),
    );
    let summary = of([quick, slow].concat());
    let [answer] = &summary.answers[..] else { panic!("{:?}", summary.answers) };
    assert!(!answer.ranked && answer.best.is_none() && answer.others.is_empty());
    assert_eq!(answer.remedy, ["stop.rounds=", "stop.virtual_time=\"3600 s\""]);
    let partial = Partial { name: Name::Label("quick".to_owned()), arrived: 3, runs: 5 };
    assert_eq!(answer.partial, [partial]);
    let [sentence] = &told(&summary).all()[..] else { panic!("{:?}", told(&summary).all()) };
    assert_eq!(
        sentence,
        "Policies are not ranked by virtual time to test_loss <= 0.3: 2 runs of quick ended without arriving, the first \
         at 222 s, before others arrived, the last at 1300 s; quick arrives in 3 of 5 runs; watched equally long they \
         would be, with --set 'stop.rounds=' --set 'stop.virtual_time=\"3600 s\"'."
    );
    // What is missing beside the main question is warned of, with every command.
    assert_eq!(
        super::super::warnings(&summary),
        [
            "policies are not all compared in bytes, time to test_loss <= 0.3: runs ended without arriving before others \
          arrived; with --set 'stop.rounds=' --set 'stop.virtual_time=\"3600 s\"' they would be, in time"
        ]
    );
    // Each has what is known of it: all arrivals of the slow one, in time and bytes; of the other all of its arrivals.
    let key = format!("time_to.{TARGET}");
    let arm = |name: &str| summary.arms.iter().find(|arm| arm.arm == name).unwrap();
    assert_eq!(arm("slow").values[&key].mean, 1100.0);
    assert_eq!(arm("slow").values[&format!("bytes_to.{TARGET}")].mean, 1100.0);
    assert_eq!((arm("quick").until[&key].arrived, arm("quick").until[&key].horizon), (3, Some(222.0)));
    assert!((arm("quick").values[&key].mean - (100.0 + 120.0 + 140.0 + 222.0 + 222.0) / 5.0).abs() < 1e-9);
    assert!(!arm("slow").paired.as_ref().unwrap().differences.contains_key(&key));
}

/// A sweep whose points are watched unequally, for one of two policies: the warning names it.
#[test]
fn settings_that_are_not_compared_are_warned_of() {
    let arrived = |time: f64| [Some(time), Some(time + 1.0), Some(time + 2.0)];
    let all = [
        runs("a", 0, &arrived(10.0), (99.0, "rounds")),
        runs("b", 0, &[None, None, Some(4.0)], (5.0, "rounds")),
        runs("b", 1, &arrived(50.0), (99.0, "rounds")),
    ]
    .concat();
    let path = "protocol.deadline.deadline";
    let said = super::super::warnings(&summary_of(&[(path, "1 s"), (path, "2 s")], None, all));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].starts_with("policies at deadline = 1 s are not all compared in bytes, time to test_loss <= 0.3: ")
    );
    assert!(
        said[1].starts_with("settings of b are not all compared in bytes, time to test_loss <= 0.3: "),
        "{}",
        said[1]
    );
    assert!(said[1].contains("--set 'stop.virtual_time=\"99 s\"'"), "{}", said[1]);
}

/// It arrives in all seeds; the other never does, watched for as long as any.
#[test]
fn who_never_arrives_though_watched_is_behind() {
    let one = runs("one", 0, &[Some(900.0), Some(1000.0), Some(1100.0)], (3600.0, "virtual_time"));
    let other = runs("other", 0, &[None; 3], (3600.0, "virtual_time"));
    let summary = of([other, one].concat());
    let answer = &summary.answers[0];
    assert_eq!((answer.ranked, &answer.best, answer.horizon), (true, &label("one"), Some(3600.0)));
    assert_eq!((answer.value.unwrap().mean, answer.value.unwrap().n), (1000.0, 3));
    let [beside] = &answer.others[..] else { panic!() };
    assert_eq!(beside.difference, 2600.0);
    assert!(answer.equal.is_empty());
}

/// A policy that moved 50 B and never arrived does not hide that another arrived with 3000.
#[test]
fn little_traffic_without_arrival_censors_nobody() {
    let quiet = |seed| run(("quiet", seed, 0), (3600.0, 50, "virtual_time"), None);
    let loud = |seed| run(("loud", seed, 0), (3600.0, 9000, "virtual_time"), Some((1000.0 + seed as f64, 3000)));
    let all: Vec<RunSummary> = (1..=3).flat_map(|seed| [quiet(seed), loud(seed)]).collect();
    let summary = summary_of(&[], Some(&format!("bytes_to.{TARGET}")), all.clone());
    let key = format!("bytes_to.{TARGET}");
    let loud = summary.arms.iter().find(|arm| arm.arm == "loud").unwrap();
    assert_eq!((loud.values[&key].mean, loud.until[&key].horizon), (3000.0, None));
    let quiet = summary.arms.iter().find(|arm| arm.arm == "quiet").unwrap();
    assert_eq!(quiet.until[&key].beyond().as_deref(), Some("> 50"));
    // In bytes they are not ranked, in time they are.
    let answer = &summary.answers[0];
    assert_eq!((answer.by.as_str(), answer.ranked), (key.as_str(), false));
    assert_eq!(answer.remedy, ["stop.virtual_time=", "stop.traffic=\"9000 B\""]);
    assert_eq!(of(all).answers[0].best, label("loud"));
}

/// A policy's own runs end at different times: what it needs at least is the mean of arrivals and ends, 500/3.
#[test]
fn a_policy_that_was_watched_unequally_has_a_bound() {
    let first = run(("one", 1, 0), (100.0, 1, "rounds"), None);
    let rest = [(2, 150.0), (3, 250.0)].map(|(seed, at)| run(("one", seed, 0), (300.0, 1, "rounds"), Some((at, 1))));
    let summary = of([vec![first], rest.to_vec()].concat());
    let (key, arm) = (format!("time_to.{TARGET}"), &summary.arms[0]);
    assert!(!arm.values.contains_key(&key));
    let least = arm.until[&key].at_least.unwrap();
    assert!((least - 500.0 / 3.0).abs() < 1e-9);
    assert_eq!(arm.until[&key].beyond().as_deref(), Some("> 166.7 (2/3)"));
    assert!(summary.answers.is_empty(), "one policy, one point");
}

#[test]
fn shards_with_different_seeds_are_not_ranked() {
    let one = |seed| run(("one", seed, 0), (300.0, 1, "rounds"), Some((100.0, 1)));
    let other = |seed| run(("other", seed, 0), (300.0, 1, "rounds"), Some((90.0, 1)));
    let summary = of(vec![one(1), one(3), other(2), other(4)]);
    let answer = &summary.answers[0];
    assert!(!answer.ranked && answer.remedy.is_empty());
    assert_eq!(answer.reason.as_deref(), Some("they have runs of different seeds"));
}

/// Two policies in three worlds: which one is best turns with the world, and worlds are not chosen.
#[test]
fn policies_are_asked_for_in_each_world() {
    let at = |time: f64| [Some(time), Some(time + 1.0), Some(time + 2.0)];
    let all = [
        runs("a", 0, &at(10.0), (99.0, "rounds")),
        runs("b", 0, &at(20.0), (99.0, "rounds")),
        runs("a", 1, &at(10.0), (99.0, "rounds")),
        runs("b", 1, &at(15.0), (99.0, "rounds")),
        runs("a", 2, &at(30.0), (99.0, "rounds")),
        runs("b", 2, &at(15.0), (99.0, "rounds")),
    ]
    .concat();
    let path = "population.latency.compute.exponential.mean";
    let summary = summary_of(&[(path, "1 s"), (path, "2 s"), (path, "3 s")], None, all.clone());
    let best: Vec<_> =
        summary.answers.iter().map(|answer| (answer.question, answer.point, answer.best.clone())).collect();
    let policy = |point, name: &str| (Question::Policy, Some(point), label(name));
    assert_eq!(best, [policy(0, "a"), policy(1, "a"), policy(2, "b")]);
    assert_eq!(summary.answers[0].others[0].ratio, Some(21.0 / 11.0));
    let told = told(&summary).all();
    assert_eq!(
        told[0],
        "Which policy is fastest to test_loss <= 0.3 depends on the point: a at mean = 1 s / mean = 2 s; b at mean = 3 s."
    );
    assert!(
        told[1].starts_with(
            "At mean = 1 s, a is fastest to test_loss <= 0.3: 11.0 ± 2.5 s, 3 seeds; b takes 10 s longer (91 %)."
        ),
        "{}",
        told[1]
    );
    // Settings of both policies are asked for as well, where the points are a choice.
    let path = "protocol.deadline.deadline";
    let summary = summary_of(&[(path, "1 s"), (path, "2 s"), (path, "3 s")], None, all);
    let settings: Vec<_> =
        summary.answers[3..].iter().map(|answer| (answer.policy.as_deref(), answer.best.clone())).collect();
    assert_eq!(settings, [(Some("a"), Some(Name::Point(0))), (Some("b"), Some(Name::Point(1)))]);
    assert_eq!(summary.answers[3].edge, Some("least"));
    assert_eq!(summary.answers[3].equal, [Name::Point(1)]);
    assert_eq!(summary.answers[4].edge, None);
}

/// Told apart in both orders it depends; where one order is not told apart, it may depend; with one seed nobody
/// knows.
#[test]
fn the_order_turns_only_where_it_is_told_apart() {
    let at = |time: f64| [Some(time), Some(time + 1.0), Some(time + 2.0)];
    let first = |of: &Summary| told(of).first[0].clone();
    let of = |b: [Option<f64>; 3]| {
        let world = |point, a: [Option<f64>; 3], b: [Option<f64>; 3]| {
            [runs("a", point, &a, (99.0, "rounds")), runs("b", point, &b, (99.0, "rounds"))].concat()
        };
        let path = "population.latency.compute.exponential.mean";
        let all = [world(0, at(10.0), at(20.0)), world(1, at(30.0), b)].concat();
        summary_of(&[(path, "1 s"), (path, "2 s")], None, all)
    };
    let turned = first(&of(at(15.0)));
    assert!(turned.contains(" depends on the point: a at mean = 1 s; b at mean = 2 s."), "{turned}");
    let open = first(&of([Some(20.0), Some(31.0), Some(40.0)]));
    assert!(open.contains(" may depend on the point: ") && open.contains("; no two policies are told apart"), "{open}");
    let path = "population.latency.compute.exponential.mean";
    let one = |arm, point, time| runs(arm, point, &[Some(time)], (99.0, "rounds"));
    let all = [one("a", 0, 1.0), one("b", 0, 2.0), one("a", 1, 1.0), one("b", 1, 3.0)].concat();
    let few = first(&summary_of(&[(path, "1 s"), (path, "2 s")], None, all));
    let expected =
        "a is fastest to test_loss <= 0.3 at all 2 points; fewer than 3 seeds are too few to tell it from the others.";
    assert_eq!(few, expected);
}

/// Majority 0.5 against a policy whose best is 0.4 in the first world and 0.6 in the second; runs that disagree have no
/// control.
#[test]
fn controls_that_no_policy_beats_are_warned_of_where_it_is_so() {
    let of = |seed: u64, point: usize, best: f64, majority: f64| {
        let mut run = run(("a", seed, point), (9.0, 1, "rounds"), Some((1.0, 1)));
        run.measured = serde_json::from_value(
            json!([{ "name": "test_accuracy", "better": "higher", "range": [0.0, 1.0], "place": "test", "main": true }]),
        )
        .unwrap();
        run.best = [("test_accuracy".to_owned(), best)].into();
        for (name, value) in [("majority", majority), ("initial", 0.9)] {
            run.controls.insert(name.to_owned(), [("test_accuracy".to_owned(), value)].into());
        }
        run
    };
    let path = "population.clients";
    let all = vec![of(1, 0, 0.4, 0.4), of(2, 0, 0.4, 0.6), of(1, 1, 0.6, 0.5), of(2, 1, 0.6, 0.5)];
    let summary = summary_of(&[(path, "1"), (path, "2")], None, all.clone());
    let majority = summary.controls[0]["majority"]["test_accuracy"];
    assert_eq!((majority.mean, majority.n), (0.5, 2));
    let expected = "on average no policy is better, even at its best, than the control majority at clients = 1: test \
                    accuracy 0.5000 without a trained model";
    assert_eq!(super::super::warnings(&summary), [expected]);
    let mut other = of(1, 0, 0.4, 0.7);
    other.arm = "b".to_owned();
    let summary = summary_of(&[(path, "1"), (path, "2")], None, [all, vec![other]].concat());
    assert!(!summary.controls[0].contains_key("majority") && summary.controls[0].contains_key("initial"));
}

#[test]
fn answers_are_written_as_they_are_told() {
    let at = |time: f64| [Some(time), Some(time + 1.0), Some(time + 2.0)];
    let all = [runs("a", 0, &at(10.0), (99.0, "rounds")), runs("b", 0, &at(20.0), (99.0, "rounds"))].concat();
    let written: Value = serde_json::to_value(of(all)).unwrap();
    let answer = &written["answers"][0];
    let expected = json!({
        "question": "policy", "point": null, "by": "time_to.test_loss <= 0.3", "ranked": true, "reason": null,
        "remedy": [], "best": "a", "equal": [],
        "others": [{ "name": "b", "difference": 10.0, "ci95": [10.0, 10.0], "ratio": 21.0 / 11.0 }]
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&answer[key], value, "{key}");
    }
}

/// Differences −1, 0 and 1000 times 0.001 around 0: thousands of seeds would tell them, which nobody runs.
#[test]
fn tiny_differences_are_bounded() {
    let one = runs("one", 0, &[Some(10.0), Some(20.0), Some(30.0), Some(40.0)], (99.0, "rounds"));
    let other = runs("other", 0, &[Some(11.0), Some(19.0), Some(31.0), Some(39.1)], (99.0, "rounds"));
    let summary = of([one, other].concat());
    let told = told(&summary).all();
    let last = told.last().unwrap();
    assert!(
        last.starts_with("Between other and one: no difference larger than 1.") && last.contains(" s at 95 %"),
        "{told:?}"
    );
}

/// Alike in accuracy, in the same number of rounds: the faster one is told. Alike in time: the more accurate one.
#[test]
fn among_equals_the_better_in_another_quantity_is_told() {
    let of = |arm: &str, seed: u64, time: f64, accuracy: f64, at: Option<(f64, u64)>| {
        let mut run = run((arm, seed, 0), (time, 1, "rounds"), at);
        run.measured = serde_json::from_value(
            json!([{ "name": "test_accuracy", "better": "higher", "range": [0.0, 1.0], "place": "test", "main": true }]),
        )
        .unwrap();
        run.final_metrics = [("test_accuracy".to_owned(), accuracy)].into();
        run
    };
    let slow = [0.80, 0.82, 0.84].map(|accuracy| (900.0, accuracy));
    let fast = [0.81, 0.81, 0.83].map(|accuracy| (300.0, accuracy));
    let all = |target: Option<(f64, u64)>| -> Vec<RunSummary> {
        let one = |arm, values: [(f64, f64); 3]| {
            (1..)
                .zip(values)
                .map(move |(seed, (time, accuracy))| of(arm, seed, time, accuracy, target))
                .collect::<Vec<_>>()
        };
        [one("slow", slow), one("fast", fast)].concat()
    };
    let mut without = all(None);
    without.iter_mut().for_each(|run| run.reached.clear());
    let summary = self::of(without);
    let [first, second] = &summary.answers[..] else { panic!("{:?}", summary.answers) };
    assert_eq!(
        (first.by.as_str(), &first.best, &first.equal[..]),
        ("final.test_accuracy", &label("slow"), &[Name::Label("fast".to_owned())][..])
    );
    assert_eq!(
        (second.by.as_str(), &second.best, second.among.as_deref()),
        ("virtual_time_s", &label("fast"), Some("final.test_accuracy"))
    );
    assert_eq!(second.others[0].ratio, Some(3.0));
    // Beside the accuracy stands the time: 300 − 900 s.
    let beside = first.others[0].beside.as_ref().unwrap();
    assert_eq!((beside.by.as_str(), beside.found.mean), ("virtual_time_s", -600.0));
    assert!(
        told(&summary).all()[1].starts_with(
            "Of those not told apart by final test accuracy, fast is fastest: 300 s, 3 seeds; slow takes 600 s"
        ),
        "{:?}",
        told(&summary).all()
    );
    // The same time for all, and accuracies 0.5 apart.
    let mut timed = all(Some((100.0, 1)));
    timed.iter_mut().filter(|run| run.arm == "fast").for_each(|run| {
        run.final_metrics.values_mut().for_each(|accuracy| *accuracy -= 0.5);
    });
    let summary = self::of(timed);
    assert_eq!(summary.answers[0].by, format!("time_to.{TARGET}"));
    assert_eq!((summary.answers[1].by.as_str(), &summary.answers[1].best), ("final.test_accuracy", &label("slow")));
}

/// Rounds end after the limit of time: who arrives in such a round does so after others have ended, as was meant.
#[test]
fn a_common_limit_of_time_is_fair() {
    let early = |seed| run(("early", seed, 0), (8.2, 1, "virtual_time"), None);
    let late = |seed| run(("late", seed, 0), (9.6, 1, "virtual_time"), Some((if seed == 1 { 9.6 } else { 4.0 }, 1)));
    let summary = of((1..=3).flat_map(|seed| [early(seed), late(seed)]).collect());
    let answer = &summary.answers[0];
    assert_eq!((answer.ranked, &answer.best, answer.horizon), (true, &label("late"), Some(8.2)));
    assert!((answer.value.unwrap().mean - (8.2 + 4.0 + 4.0) / 3.0).abs() < 1e-12);
    assert!(answer.partial.iter().all(|partial| partial.name == Name::Label("early".to_owned())));
}

#[test]
fn an_aim_that_no_run_has_is_said() {
    let all = || [runs("a", 0, &[Some(1.0)], (9.0, "rounds")), runs("b", 0, &[Some(2.0)], (9.0, "rounds"))].concat();
    let of = |aim: &str| summary_of(&[], Some(aim), all());
    let said = super::super::warnings(&of("time_to.nothing"));
    let expected =
        "[report] aim = \"time_to.nothing\" is no number of these runs; they are compared by time_to.test_loss <= 0.3";
    assert_eq!(said[0], expected);
    let known = of("virtual_time_s");
    assert_eq!((known.answers[0].by.as_str(), super::super::warnings(&known).len()), ("virtual_time_s", 0));
}

/// A run with the accuracy 0.1 before training, and these round by round: time and value.
fn learned(arm: &str, seed: u64, rounds: &[(u32, f64, f64)]) -> RunSummary {
    let (_, end, last) = *rounds.last().unwrap();
    let mut run = run((arm, seed, 0), (end, 1, "rounds"), None);
    run.reached.clear();
    run.measured = serde_json::from_value(
        json!([{ "name": "test_accuracy", "better": "higher", "range": [0.0, 1.0], "place": "test", "main": true }]),
    )
    .unwrap();
    let named = |value: f64| [("test_accuracy".to_owned(), value)].into();
    run.final_metrics = named(last);
    run.controls.insert("initial".to_owned(), named(0.1));
    let id = run.measured[0].id;
    let point = |&(round, time_s, value): &(u32, f64, f64)| CurvePoint {
        round,
        time_s,
        metrics: vec![(id, value)],
        ..CurvePoint::default()
    };
    run.curve = rounds.iter().map(point).collect();
    run
}

/// All runs reach 0.699: the worst best value 0.6994, rounded down to a step of 0.001, since a hundredth of the way
/// from 0.1 to 0.75 is 0.0065. Fast has it at 20 s, slow at 300 s or, where it was last evaluated in round 1, between
/// 100 s and 300 s.
#[test]
fn without_a_target_the_time_to_the_common_level_is_compared() {
    let fast = |seed| learned("fast", seed, &[(1, 10.0, 0.5), (2, 20.0, 0.7), (3, 30.0, 0.69)]);
    let slow = |seed, last| learned("slow", seed, &[(1, 100.0, 0.3), (last, 300.0, 0.72)]);
    let all = vec![
        fast(1),
        fast(2),
        learned("fast", 3, &[(1, 10.0, 0.5), (2, 20.0, 0.6994)]),
        slow(1, 2),
        slow(2, 2),
        learned("slow", 3, &[(1, 100.0, 0.3), (3, 300.0, 0.75)]),
    ];
    let summary = of(all.clone());
    assert_eq!((summary.answers[0].by.as_str(), &summary.answers[0].best), ("final.test_accuracy", &label("slow")));
    let level = summary.answers.last().unwrap();
    assert_eq!((level.by.as_str(), &level.best), ("time_to.test_accuracy >= 0.699", &label("fast")));
    assert!(level.is_common_level && level.horizon.is_none());
    assert_eq!(level.others[0].difference, 280.0);
    // In the third pair, slow may have arrived 80 s to 280 s after fast: 213.33 − 4.3027·115.47/√3.
    assert!((level.others[0].ci95.unwrap()[0] + 73.51).abs() < 0.01);
    let told = told(&summary);
    assert_eq!(
        told.first[1],
        "fast is fastest to test_accuracy >= 0.699, which all runs reach: 20 s, 3 seeds; slow (280 [-74, 280] s longer, \
         15.0 times as long) is not told apart from it."
    );
    // An evaluation in round 5 that is the first has the level at any time until then: 280 s to 300 s later.
    let early = |seed| learned("fast", seed, &[(5, 20.0, 0.7), (6, 30.0, 0.69)]);
    let early = of((1..=3).flat_map(|seed| [early(seed), slow(seed, 2)]).collect());
    assert_eq!(early.answers.last().unwrap().others[0].ci95, Some([280.0, 300.0]));
    // One run that hardly learns takes the level below half of the way.
    let stuck = [all, vec![learned("slow", 4, &[(1, 100.0, 0.3)]), fast(4)]].concat();
    assert!(of(stuck).answers.iter().all(|answer| !answer.is_common_level));
}

/// A budget of 1000 B is the limit of bytes: a run that it ends would not have arrived within it, however few bytes it
/// had spent by then.
#[test]
fn under_a_budget_bytes_are_compared() {
    let of_budget = |arm, seed, end, bytes, at| {
        let run = run((arm, seed, 0), (end, bytes, "budget"), at);
        RunSummary { budget_bytes: Some(1000), ..run }
    };
    let wasteful = |seed| of_budget("wasteful", seed, 20.0, 950, None);
    let thrifty = |seed| of_budget("thrifty", seed, 90.0, 990, Some((80.0, if seed == 1 { 600 } else { 970 })));
    let summary = of((1..=3).flat_map(|seed| [wasteful(seed), thrifty(seed)]).collect());
    let answer = &summary.answers[0];
    assert_eq!((answer.by.as_str(), answer.unit), (format!("bytes_to.{TARGET}").as_str(), "B"));
    assert_eq!((answer.ranked, answer.horizon, &answer.best), (true, Some(1000.0), &label("thrifty")));
    assert!((answer.others[0].difference - (1000.0 - (600.0 + 970.0 + 970.0) / 3.0)).abs() < 1e-9);
    // In time they are not fairly watched: the budget ended one at 20 s.
    assert!(!summary.answers.iter().any(|answer| answer.by.starts_with("time_to.")));
}

/// Policies over settings are asked for a policy and for a setting: each sentence is told once.
#[test]
fn no_sentence_is_told_twice() {
    let points: Vec<(&str, &str)> = ["2", "5", "10"].map(|value| ("protocol.synchronous.cohort", value)).to_vec();
    let of = |arm, point: usize, time: f64| {
        let arrivals = [Some(time), Some(time + 1.0), Some(time + 3.0)];
        runs(arm, point, &arrivals, (99.0, "rounds"))
    };
    let all =
        (0..3).flat_map(|point| [of("a", point, 10.0 + point as f64), of("b", point, 30.0 - point as f64)].concat());
    let summary = summary_of(&points, None, all.collect());
    let told = told(&summary);
    assert_eq!(told.first[0], "a is fastest to test_loss <= 0.3 at all 3 points.");
    assert!(told.first[1].starts_with("For a, cohort = 2 is fastest"), "{told:?}");
    let all = told.all();
    let distinct: BTreeSet<&String> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}
