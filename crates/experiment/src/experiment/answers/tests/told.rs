//! Sentences where nobody wins, nobody arrives, or much is open.

use super::super::super::warnings;
use super::*;

const COHORT: &str = "protocol.synchronous.cohort";

/// Three policies that are the same, and one that takes longer.
#[test]
fn equal_ones_crown_no_winner() {
    let at = |arm, time: f64| runs(arm, 0, &[Some(time), Some(time + 1.0), Some(time + 2.0)], (99.0, "rounds"));
    let summary = of([at("a", 10.0), at("b", 10.0), at("slow", 30.0), at("c", 10.0)].concat());
    assert_eq!(summary.answers[0].equal, ["b", "c"].map(|name| Name::Label(name.to_owned())));
    assert_eq!(
        told(&summary).first,
        ["a, b and c are fastest to test_loss <= 0.3, equal for each seed: 11.0 ± 2.5 s, 3 seeds; 1 other is worse."
            .replace("1 other is worse", "slow takes 20 s longer (2.8 times as long)")]
    );
    // At both points of a sweep, and at one of them.
    let world = |point, a: f64, b: f64| {
        let at = |arm, time: f64| runs(arm, point, &[Some(time), Some(time + 1.0)], (99.0, "rounds"));
        [at("a", a), at("b", b)].concat()
    };
    let path = "population.clients";
    let summary = |b: f64| {
        let all = [world(0, 10.0, 10.0), world(1, 10.0, b)].concat();
        summary_of(&[(path, "1"), (path, "2")], None, all)
    };
    let first = |b: f64| told(&summary(b)).first[0].clone();
    assert!(first(10.0).starts_with("a and b are fastest to test_loss <= 0.3 at all 2 points"), "{}", first(10.0));
    assert!(first(20.0).contains("on the point: a and b at clients = 1; a at clients = 2"), "{}", first(20.0));
}

/// One never arrives and is told apart, one is not told apart: the first is named with its arrivals, and not counted
/// among others that are worse as well.
#[test]
fn who_never_arrives_is_told_once() {
    let open = [Some(9.0), Some(12.0), Some(16.0)];
    let all = |more: Vec<RunSummary>| {
        let some = [
            runs("a", 0, &[Some(10.0), Some(11.0), Some(12.0)], (99.0, "virtual_time")),
            runs("b", 0, &open, (99.0, "virtual_time")),
            runs("never", 0, &[None; 3], (99.0, "virtual_time")),
        ];
        told(&of([some.concat(), more].concat())).first[0].clone()
    };
    let found = all(Vec::new());
    assert!(found.contains("b (1.3 ") && found.ends_with("; never arrives in 0 of 3 runs."), "{found}");
    assert!(!found.contains("worse"), "{found}");
    let found = all(runs("slow", 0, &[Some(50.0), Some(51.0), Some(52.0)], (99.0, "virtual_time")));
    assert!(found.ends_with("; 1 other is worse; never arrives in 0 of 3 runs."), "{found}");
}

/// A run of a policy without arrival, whose best accuracy is known.
fn short_of(arm: &str, seed: u64, point: usize, best: f64) -> RunSummary {
    let mut run = run((arm, seed, point), (9.0, 1, "rounds"), None);
    run.measured = serde_json::from_value(json!([
        { "name": "test_accuracy", "better": "higher", "range": [0.0, 1.0], "place": "test", "main": true }
    ]))
    .unwrap();
    run.best = [("test_accuracy".to_owned(), best)].into();
    run.final_metrics = [("test_accuracy".to_owned(), best - 0.1)].into();
    let target = |at_least: f64| {
        serde_json::from_value(
            json!({ "metric": "test_accuracy", "at_least": at_least, "round": null, "time_s": null }),
        )
        .unwrap()
    };
    run.reached = vec![target(0.95), target(0.9)];
    run
}

/// Of two targets that nobody reaches the easier is told, and who comes nearest to it.
#[test]
fn of_a_target_that_no_run_reaches_the_nearest_is_told() {
    let of_seed = |seed: u64| [short_of("a", seed, 0, 0.6), short_of("b", seed, 0, 0.7 + 0.01 * seed as f64)];
    let summary = of((1..=3).flat_map(of_seed).collect());
    let answer = &summary.answers[0];
    let nearest = answer.nearest.as_ref().unwrap();
    assert_eq!((answer.by.as_str(), answer.ranked), ("time_to.test_accuracy >= 0.9", false));
    assert_eq!((nearest.policy.as_str(), nearest.by.as_str(), nearest.value.n), ("b", "best.test_accuracy", 3));
    let told_first = told(&summary).first;
    assert_eq!(
        told_first[0],
        "No run reaches test_accuracy >= 0.9; b comes nearest: best test accuracy 0.720 ± 0.025, 3 seeds."
    );
    assert!(told_first[1].starts_with("b has the highest final test accuracy"), "{told_first:?}");
    // Of one policy, and with its point in a sweep.
    let alone = told(&of(vec![short_of("a", 1, 0, 0.6)])).all();
    assert_eq!(alone, ["No run reaches test_accuracy >= 0.9; a comes nearest: best test accuracy 0.6000, 1 seed."]);
    let swept = vec![short_of("a", 1, 0, 0.6), short_of("a", 1, 1, 0.65)];
    let swept = told(&summary_of(&[(COHORT, "2"), (COHORT, "5")], None, swept)).first;
    assert!(swept[0].contains("; a at cohort = 5 comes nearest: best test accuracy 0.6500"), "{swept:?}");
    // Where an easier one is reached, that comes first.
    let mut some: Vec<RunSummary> = (1..=3).flat_map(of_seed).collect();
    for (at, run) in some.iter_mut().enumerate() {
        let reached = json!({ "metric": "test_accuracy", "at_least": 0.5, "round": 1, "time_s": 2.0 + at as f64 });
        run.reached.push(serde_json::from_value(reached).unwrap());
    }
    let all = told(&of(some)).all();
    assert!(all[0].contains("fastest to test_accuracy >= 0.5") && all[1].starts_with("No run reaches"), "{all:?}");
}

/// Six points of a sweep with two policies each that are not told apart: the pairs are counted, and the largest number
/// of seeds is told with its pair.
#[test]
fn what_is_open_in_a_sweep_is_counted() {
    let points: Vec<(&str, String)> = (0..6).map(|point| ("population.clients", format!("{point}"))).collect();
    let points: Vec<(&str, &str)> = points.iter().map(|(path, value)| (*path, value.as_str())).collect();
    let of_point = |point: usize| {
        let spread = 1.0 + point as f64;
        let other = [10.0 + spread, 20.0, 30.5].map(Some);
        [
            runs("a", point, &[Some(10.0), Some(20.0), Some(30.0)], (99.0, "rounds")),
            runs("b", point, &other, (99.0, "rounds")),
        ]
        .concat()
    };
    let lines = |count: usize| {
        let all = (0..count).flat_map(of_point).collect();
        told(&summary_of(&points[..count], None, all))
            .rest
            .into_iter()
            .filter(|line| line.starts_with("To tell"))
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(4).len(), 4);
    assert!(lines(4)[0].starts_with("To tell b from a at clients = 0: about "), "{:?}", lines(4));
    let [only] = &lines(6)[..] else { panic!("{:?}", lines(6)) };
    assert!(only.starts_with("To tell 6 others from the best: up to about "), "{only}");
    assert!(only.ends_with(" seeds, as for b and a at clients = 5, by virtual time to test_loss <= 0.3."), "{only}");
}

/// Without learning, least regret is the question, also where a sweep changes the reward: policies are compared at each
/// point. Of one policy the points are not.
#[test]
fn where_nothing_learns_regret_leads() {
    let of_policy = |arm: &str, point: usize, regret: f64| {
        (1..=3)
            .map(move |seed| {
                let mut run = run((arm, seed, point), (9.0, 1, "rounds"), None);
                run.reached.clear();
                run.regret.mean = Some(regret + seed as f64);
                run
            })
            .collect::<Vec<_>>()
    };
    let points = [("regret.quantum", "0.0"), ("regret.quantum", "0.5")];
    let all = (0..2).flat_map(|point| [of_policy("a", point, 5.0), of_policy("b", point, 1.0)].concat()).collect();
    let summary = summary_of(&points, None, all);
    assert!(summary.answers.iter().all(|answer| answer.by == "regret.mean" && answer.best == label("b")));
    assert_eq!(told(&summary).first[0], "b has the least mean regret at all 2 points.");
    let alone = summary_of(&points, None, (0..2).flat_map(|point| of_policy("a", point, 5.0)).collect());
    assert!(alone.answers.iter().all(|answer| answer.by == "virtual_time_s"), "{:?}", alone.answers);
}

/// Policies of which the budget ended as many runs are in one sentence.
#[test]
fn the_budget_is_told_once() {
    let of =
        |arm: &str, ended: &str| (1..=2).map(|seed| run((arm, seed, 0), (9.0, 1, ended), None)).collect::<Vec<_>>();
    let lines = |all: Vec<RunSummary>| -> Vec<String> {
        let table = super::super::super::table(&self::of(all));
        table.lines().filter(|line| line.contains("budget")).map(str::to_owned).collect()
    };
    let [a, b, c] = ["a", "b", "c"].map(|arm| of(arm, "budget"));
    assert_eq!(lines([a.clone(), b.clone(), c].concat()), ["the budget ended 2 of 2 runs of each policy"]);
    let found = lines([a.clone(), b, of("c", "rounds")].concat());
    assert_eq!(found, ["the budget ended 2 of 2 runs of each of a, b"]);
    assert_eq!(lines([a, of("c", "rounds")].concat()), ["the budget ended 2 of 2 runs of a"]);
}

/// An aim or a column of another name is compared by something else, which is said.
#[test]
fn what_is_compared_in_place_of_an_unknown_aim_is_said() {
    let all = (1..=3).flat_map(|seed| [short_of("a", seed, 0, 0.6), short_of("b", seed, 0, 0.7)]).collect();
    let said = warnings(&summary_of(&[], Some("time_to.nothing"), all));
    assert!(said[0].ends_with("they are compared by final.test_accuracy"), "{said:?}");
}

/// The accuracy before training is 0.92 in two of three seeds: the target 0.9 is met, and 0.95 is not.
#[test]
fn targets_that_are_met_before_training_are_warned_of() {
    let of_seed = |seed: u64| {
        let mut run = short_of("a", seed, 0, 0.99);
        let initial = if seed == 2 { 0.1 } else { 0.92 };
        run.controls.insert("initial".to_owned(), [("test_accuracy".to_owned(), initial)].into());
        run
    };
    let said = warnings(&of((1..=3).map(of_seed).collect()));
    let expected = "the model before training meets the target test_accuracy >= 0.9 already, in 2 of 3 runs: test_accuracy \
                    is 0.9200 in the first of them";
    assert_eq!(said, [expected]);
}
