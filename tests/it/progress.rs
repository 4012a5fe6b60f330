//! Progress where standard error is no terminal: a line now and then, with the share of the work inside runs.

use super::support::{Answer, PLAIN, SCENARIO, Workplace, changed};
use std::process::{Command, Stdio};

/// Runs the scenario with a span between lines, in seconds.
fn run(place: &Workplace, span: &str, more: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedgenie"));
    command.args(["run", SCENARIO]).args(more).current_dir(place.path("."));
    command.env("FEDGENIE_PROGRESS_S", span).stdout(Stdio::piped()).stderr(Stdio::piped());
    Answer::of(command.spawn().unwrap())
}

/// The runs that have ended and all runs, and the share of the work in percent if there is one.
fn read(line: &str) -> ((usize, usize), Option<usize>) {
    let (runs, rest) = line.split_once(", ").unwrap();
    let (ended, all) = runs.split_once(" of ").unwrap();
    let all = all.strip_suffix(" runs").or_else(|| all.strip_suffix(" run")).unwrap();
    let share = rest.split_once(" % of the work, ").map(|(share, left)| {
        assert!(left.ends_with(" left"), "{line}");
        share.parse().unwrap()
    });
    assert!(share.is_some() || rest == "in their first rounds", "{line}");
    ((ended.parse().unwrap(), all.parse().unwrap()), share)
}

#[test]
fn one_long_run_shows_how_far_it_is() {
    let place = Workplace::with(&changed(PLAIN, "rounds = 12", "rounds = 60_000"));
    let answer = run(&place, "0.01", &[]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let lines: Vec<_> = answer.stderr.lines().map(read).collect();
    // One may come when the run has just ended.
    assert!(!lines.is_empty() && lines.iter().all(|((ended, all), _)| *ended <= 1 && *all == 1), "{answer:?}");
    let shares: Vec<usize> = lines.iter().filter_map(|(_, share)| *share).collect();
    assert!(shares.iter().any(|share| (1..100).contains(share)), "{answer:?}");
}

#[test]
fn an_end_in_virtual_time_has_shares_as_well() {
    let place = Workplace::with(&changed(PLAIN, "rounds = 12", "virtual_time = \"240_000 s\""));
    let answer = run(&place, "0.01", &["--seeds", "3", "--threads", "1"]);
    let lines: Vec<_> = answer.stderr.lines().map(read).collect();
    assert!(lines.iter().all(|((ended, all), _)| ended <= all && *all == 3), "{answer:?}");
    assert!(lines.iter().any(|(_, share)| share.is_some_and(|share| (1..100).contains(&share))), "{answer:?}");
}

#[test]
fn short_and_quiet_runs_say_nothing() {
    let short = Workplace::with(PLAIN);
    for (span, more) in [("30", &["--seeds", "40"][..]), ("0.001", &["--quiet"]), ("1e-6", &["--quiet"])] {
        let answer = run(&short, span, more);
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{answer:?}");
    }
    let answer = short.fedgenie(&["run", SCENARIO]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "half a minute if nothing is set: {answer:?}");
}

#[test]
fn a_wrong_span_is_refused() {
    for wrong in ["0", "-3", "soon", "nan"] {
        let answer = run(&Workplace::with(PLAIN), wrong, &[]);
        let said = format!("found FEDGENIE_PROGRESS_S={wrong:?}; expected a positive number of seconds");
        assert!(answer.code == 2 && answer.stderr.contains(&said), "{answer:?}");
    }
}
