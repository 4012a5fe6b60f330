//! Noise of [privacy]: its way to a task, and refusals.

use super::little::{BIAS, Settings, TWO, play, refused, text, world};
use super::support::{PLAIN, SCENARIO, Workplace, changed, line_of};

const NOISY: Settings = Settings { has_noise: true, charges: false, answers: false, has_slope: false };

/// The bias after one round of client 0, which adds the deviation once or twice.
fn bias(privacy: &str) -> f64 {
    let world = world(TWO, privacy, NOISY);
    let (rounds, _) = play(&world, &[&[0]], 1).unwrap();
    rounds[0].metrics.iter().find(|(id, _)| id.is_called("test_level")).unwrap().1
}

#[test]
fn a_task_is_told_of_deviation_and_scope() {
    let plain = f64::from(BIAS[0]);
    for (privacy, noise) in [
        ("", 0.0),
        ("[privacy]\n", 0.0),
        ("[privacy]\nsigma = 0\n", 0.0),
        ("[privacy]\nsigma = 0.0\nscope = \"rows\"\n", 0.0),
        ("[privacy]\nsigma = 0.25\n", 0.25),
        ("[privacy]\nsigma = 0.25\nscope = \"table\"\n", 0.25),
        ("[privacy]\nsigma = 0.25\nscope = \"rows\"\n", 0.5),
    ] {
        assert_eq!(bias(privacy), plain + noise, "{privacy}");
    }
}

#[test]
fn a_task_that_adds_no_noise_is_refused() {
    let message = refused(TWO, "[privacy]\nsigma = 0.5\n", Settings::default());
    let line = line_of(&text(TWO, "[privacy]\nsigma = 0.5\n"), "sigma =");
    let said = "the clients of the task (a task of one's own) add no noise to their updates";
    assert!(message.contains(&format!("{SCENARIO}:{line}: privacy.sigma: ")) && message.contains(said), "{message}");
    world(TWO, "[privacy]\nsigma = 0.0\n", Settings::default());
    // Nobody sends anything where nothing is learned.
    let scenario = format!("{PLAIN}[privacy]\nsigma = 1\n");
    let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    let place = format!("{SCENARIO}:{}: privacy.sigma: ", line_of(&scenario, "sigma ="));
    assert!(answer.code == 2 && answer.stderr.contains(&place), "{answer:?}");
}

#[test]
fn what_is_no_deviation_is_refused() {
    for (found, said) in [
        ("-0.5", "found -0.5; expected a number from 0 to 3.4e38"),
        ("nan", "found NaN; expected a number from 0 to 3.4e38"),
        ("inf", "found inf; expected a number from 0 to 3.4e38"),
        ("1e39", "expected a number from 0 to 3.4e38"),
        ("\"much\"", "found \"much\"; expected a number"),
    ] {
        let scenario = format!("{PLAIN}[privacy]\nsigma = {found}\n");
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        let place = format!("{SCENARIO}:{}: privacy.sigma: ", line_of(&scenario, "sigma ="));
        assert!(answer.code == 2 && answer.stderr.contains(&place) && answer.stderr.contains(said), "{answer:?}");
    }
    let scenario = format!("{PLAIN}[privacy]\nscope = \"columns\"\n");
    let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("known: table, rows"), "{answer:?}");
}

/// Nothing but the resolved scenario tells a run with σ = 0 from one without the section.
#[test]
fn no_noise_is_as_without() {
    let work = Workplace::with(PLAIN);
    work.run_into("without", &[]);
    work.write(SCENARIO, changed(PLAIN, "[policy.random]", "[privacy]\nsigma = 0.0\n\n[policy.random]"));
    work.run_into("with", &[]);
    assert_eq!(work.digests("without"), work.digests("with"));
    assert!(work.text("with/scenario.toml").contains("[privacy]\nsigma = 0.0\nscope = \"table\"\n"));
}
