//! PyramidFL: its ranking beside Oort's, work and expected times recomputed from the records of jobs, a trace by hand,
//! and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};

/// Eight clients of different speed, three at a time; a job has two epochs, and up to nine.
const WORLD: &str = r#"
name = "pyramidfl"
seeds = 1
stop.rounds = 30
[population]
clients = 8
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential.mean.each = ["0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "2 s", "3 s"]
latency.compute.exponential.shift = "0.1 s"
latency.upload.constant = "0.2 s"
[task.linear-regression]
features = 4
examples = 400
[training]
epochs = 2
most_epochs = 9
batch = 16
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 3
[policy.pyramidfl]
exploration = 0.6
pacer_step = 2
"#;

const MEANS: [f64; 8] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0];
/// Download and upload of every job.
const TRANSFER: f64 = 0.3;
const LATE: &str = "[protocol.deadline]\ncohort = 3\ndeadline = \"1.5 s\"\nlate = { carry = {} }\n";
const OVER: &str = "[protocol.over-selection]\nask = 4\ntake = 2\n";

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    further: usize,
    late: usize,
}

/// Plays 30 rounds and compares times and work of each with the rule.
fn checked(scenario: &str, beta: f64, take: usize) -> Seen {
    let mut compute: Vec<f64> = MEANS.iter().map(|mean| 0.1 + mean * 2.0_f64.ln()).collect();
    let mut latency: Vec<f64> = compute.iter().map(|compute| compute + TRANSFER).collect();
    let mut work = [2.0; 8];
    let mut seen = Seen::default();
    for round in rounds(scenario, 1, 30) {
        let said = &round["explain"][0];
        let (candidates, selected) = (ids(&said["clients"]), ids(&round["selected"]));
        let expected = numbers(&said["expected_s"]);
        for (&client, found) in candidates.iter().zip(&expected) {
            assert!((found - compute[client] - TRANSFER).abs() < 1e-7, "{client}: {found}: {round}");
        }
        let mut times: Vec<f64> = selected.iter().map(|&client| compute[client] + TRANSFER).collect();
        times.sort_by(f64::total_cmp);
        let length = times[take.min(times.len()) - 1];
        assert!((said["round_s"].as_f64().unwrap() - length).abs() < 1e-7, "{round}");
        let given = numbers(&round["work"]);
        for (&client, given) in selected.iter().zip(&given) {
            let slack = (length - compute[client] - TRANSFER).max(0.0);
            let further = (beta * (slack * 2.0 / compute[client] + 1e-9).floor() + 1e-9).floor().min(20.0);
            assert_eq!(*given, (2.0 + further).min(9.0), "{client}: {round}");
            work[client] = *given;
            seen.further += usize::from(*given > 2.0);
        }
        let of =
            |client: &usize| selected.iter().position(|other| other == client).map_or(f64::NAN, |place| given[place]);
        let is_same = |(one, other): (&f64, f64)| *one == other || one.is_nan() && other.is_nan();
        assert!(numbers(&said["work"]).iter().zip(candidates.iter().map(of)).all(is_same), "{round}");

        let arrived = ids(&round["arrived"]);
        let updates = ids(&round["updates"]["clients"]);
        let seconds = numbers(&round["updates"]["latency_s"]);
        for (client, seconds) in updates.iter().zip(&seconds).filter(|update| arrived.contains(update.0)) {
            compute[*client] = (seconds - TRANSFER) * 2.0 / work[*client];
        }
        for (&client, seconds) in updates.iter().zip(&seconds) {
            latency[client] = (seconds - (work[client] / 2.0 - 1.0) * compute[client]).max(0.0);
            seen.late += usize::from(!arrived.contains(&client));
        }
        let after = &said["after"];
        for (client, found) in ids(&after["clients"]).into_iter().zip(numbers(&after["latency_s"])) {
            assert!((found - latency[client]).abs() < 1e-7, "{client}: {found}, {}: {round}", latency[client]);
        }
    }
    seen
}

#[test]
fn work_follows_from_times() {
    let seen = checked(WORLD, 1.0, 3);
    assert!(seen.further >= 30, "{seen:?}");
    checked(&format!("{WORLD}beta = 0.5\n"), 0.5, 3);
    let seen = checked(&changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", LATE), 1.0, 3);
    assert!(seen.further >= 15 && seen.late >= 10, "{seen:?}");
    checked(&changed(WORLD, "[protocol.synchronous]\ncohort = 3\n", OVER), 1.0, 2);
}

/// Without further epochs it is Oort, with the program's rules and other parameters.
#[test]
fn the_ranking_is_oorts() {
    let ranking = "variant = \"released\"\npacer_delta = 5.0\nthreshold = 10.0\ncutoff = 0.7\nclip = 0.98\n\
                   exploration_decay = 0.95\n";
    let oort = format!("{}{ranking}", changed(WORLD, "[policy.pyramidfl]", "[policy.oort]"));
    let own = rounds(&format!("{WORLD}beta = 0.0\n"), 1, 30);
    let mut explored = 0;
    for (one, other) in own.iter().zip(rounds(&oort, 1, 30)) {
        assert_eq!((&one["selected"], &one["closed_s"]), (&other["selected"], &other["closed_s"]));
        for (key, value) in other["explain"][0].as_object().unwrap() {
            assert_eq!(&one["explain"][0][key], value, "{key}: {one}");
        }
        explored += usize::from(one["explain"][0]["explore"].as_f64().unwrap() > 0.0);
    }
    assert!((3..30).contains(&explored), "{explored}");
}

/// Jobs of two epochs take 3, 5 and 9 s, 1 s of which on the way. So there are 9 s for all: 6 more epochs for client 0,
/// which takes 1 s for each, and 2 for client 1, which takes 2 s; with half of them 3 and 1. All are ready after 9 s,
/// and what a job with the usual epochs takes is known as before.
#[test]
fn six_rounds_by_hand() {
    let scenario = changed(WORLD, "clients = 8", "clients = 3");
    let drawn = "latency.compute.exponential.mean.each = [\"0.2 s\", \"0.3 s\", \"0.5 s\", \"0.8 s\", \"1 s\", \
                 \"1.5 s\", \"2 s\", \"3 s\"]\nlatency.compute.exponential.shift = \"0.1 s\"";
    let scenario = changed(&scenario, drawn, "latency.compute.constant.each = [\"2 s\", \"4 s\", \"8 s\"]");
    let scenario = changed(&scenario, "latency.download.constant = \"0.1 s\"", "latency.download.constant = \"0.8 s\"");
    for (more, work, times) in [("", [8, 4, 2], [9.0, 9.0, 9.0]), ("beta = 0.5\n", [5, 3, 2], [6.0, 7.0, 9.0])] {
        for (place, round) in rounds(&format!("{scenario}{more}"), 1, 6).iter().enumerate() {
            let of = |client: usize| ids(&round["selected"]).iter().position(|&other| other == client).unwrap();
            let given = numbers(&round["work"]);
            let found = numbers(&round["updates"]["latency_s"]);
            for client in 0..3 {
                assert_eq!(given[of(client)], f64::from(work[client]), "{round}");
                assert!((found[client] - times[client]).abs() < 1e-9, "{round}");
            }
            assert_eq!(numbers(&round["explain"][0]["expected_s"]), [3.0, 5.0, 9.0], "{round}");
            assert!((round["closed_s"].as_f64().unwrap() - 9.0 * (place + 1) as f64).abs() < 1e-9, "{round}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[training").unwrap()];
    for (from, to, part) in [
        ("exploration = 0.6", "beta = -1.0", "beta"),
        ("exploration = 0.6", "exploration = 1.5", "exploration"),
        ("exploration = 0.6", "threshold = -1.0", "threshold"),
        ("pacer_step = 2", "pacer_step = 0", "pacer_step"),
        ("most_epochs = 9\n", "", "most_epochs"),
        ("most_epochs = 9", "most_epochs = 2", "most_epochs"),
        ("epochs = 2\nmost_epochs = 9", "steps = 5", "most_epochs"),
        ("exploration = 0.6", "variant = \"paper\"", "variant"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "loss_rms"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["pyramidfl", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
