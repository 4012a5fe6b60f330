//! Devices that come and go in the middle of jobs, and links whose rate changes: timelines worked out by hand, exact to
//! the nanosecond.

use super::protocols::{SECOND, assert_wasted_bytes};
use super::support::{Played, Script, SeenRound, play};
use fedgenie::experiment::Experiment;
use fedgenie::record::{DropReason, Outcome, Phase};
use fedgenie::run::RunError;
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::time::{Span, TotalTime};
use tempfile::TempDir;

/// Both clients: download 1 s, compute 10 s, upload 1 s; 12 s in all.
const POPULATION: &str = r#"
name = "devices-by-hand"
seeds = 1
[stop]
rounds = 100
[population]
clients = 2
[population.latency]
download = { constant = "1 s" }
compute = { constant = "10 s" }
upload = { constant = "1 s" }
[task.none]
payload = "1 kB"
[policy.random]
"#;

const DEADLINE: &str = "[protocol.deadline]\ncohort = 2\ndeadline = \"12 s\"\n";
const CARRY: &str = "[protocol.deadline]\ncohort = 2\ndeadline = \"12 s\"\nlate = { carry = {} }\n";

/// Plays a round for each selection; devices are there in the intervals (client, start, end), and not after the last.
fn try_play(
    population: &str,
    intervals: &[(u32, u64, u64)],
    interrupted: &str,
    protocol: &str,
    selections: &[&[u32]],
) -> Result<(Played, Vec<Vec<u32>>), RunError> {
    let folder = TempDir::new().unwrap();
    let mut csv = String::from("client,start_s,end_s\n");
    intervals.iter().for_each(|(client, start, end)| csv.push_str(&format!("{client},{start},{end}\n")));
    std::fs::write(folder.path().join("intervals.csv"), csv).unwrap();
    std::fs::write(
        folder.path().join("link.csv"),
        "trace,time_s,mbit_per_s\n0,0,0.004\n0,1,0\n0,3,0.008\n0,100,0.008\n",
    )
    .unwrap();
    let devices = format!(
        "interrupted = \"{interrupted}\"\navailability = {{ trace = {{ file = \"intervals.csv\", window = \"1 d\", wrap = false }} }}\n"
    );
    let text = population.replace("clients = 2\n", &format!("clients = 2\n{devices}")) + protocol;
    let root = tree::parse(&folder.path().join("scenario.toml"), &text).unwrap();
    let experiment = Experiment::from_tree(&root, folder.path(), None).unwrap();
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let script = Script::new(selections);
    let available = script.available.clone();
    let played = play(&world, Box::new(script), selections.len() as u32)?;
    let available = available.lock().unwrap().clone();
    Ok((played, available))
}

fn played(intervals: &[(u32, u64, u64)], interrupted: &str, protocol: &str, selections: &[&[u32]]) -> Played {
    try_play(POPULATION, intervals, interrupted, protocol, selections).unwrap().0
}

fn closed(played: &Played) -> Vec<u64> {
    played.seen.rounds.iter().map(|round| round.closed).collect()
}

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 2\ntimeout = \"40 s\"\n";

/// Client 0 is away from 5 to 8, in the middle of computing: 1 + 10 + 3 + 1.
#[test]
fn work_pauses_while_the_device_is_away() {
    let played = played(&[(0, 0, 5), (0, 8, 100), (1, 0, 100)], "pause", SYNCHRONOUS, &[&[0, 1]]);
    assert_eq!(closed(&played), [15 * SECOND]);
    assert_eq!(played.seen.pauses, [(0, Phase::Compute, 5 * SECOND, 8 * SECOND)]);
    assert_eq!(played.accounts.compute, Span(20 * SECOND).into(), "pauses are no work");
}

/// Client 0 goes away at 5, four seconds into computing; the server learns of it at its timeout.
#[test]
fn a_job_may_be_lost_with_its_device() {
    let played = played(&[(0, 0, 5), (0, 8, 100), (1, 0, 100)], "lose", SYNCHRONOUS, &[&[0, 1]]);
    let [round] = &played.seen.rounds[..] else { panic!("one round was played") };
    assert_eq!(round.closed, 40 * SECOND);
    assert_eq!((&round.arrived, &round.dropped), (&vec![1], &vec![(0, Phase::Compute)]));
    assert_eq!(played.seen.lost, [(0, Phase::Compute, DropReason::Away, 5 * SECOND)]);
    let dropped = Outcome::Dropped { phase: Phase::Compute, reason: DropReason::Away };
    assert!(played.seen.ended.contains(&(1, 0, dropped)));
    assert_eq!((round.down_bytes, round.up_bytes), (2_000, 1_000));
    assert_eq!(
        (played.accounts.compute, played.accounts.wasted_compute),
        (Span(14 * SECOND).into(), Span(4 * SECOND).into())
    );
    assert_wasted_bytes(&played, [1_000, 0]);
}

/// It goes away in its upload, 600 ms of 1 s in.
#[test]
fn bytes_of_a_cut_transfer_are_those_that_moved() {
    let population = POPULATION.replace("download = { constant = \"1 s\" }", "download = { constant = \"0.4 s\" }");
    let (played, _) = try_play(&population, &[(0, 0, 11), (1, 0, 100)], "lose", SYNCHRONOUS, &[&[0, 1]]).unwrap();
    assert_eq!(played.seen.rounds[0].dropped, [(0, Phase::Upload)]);
    assert_eq!(played.seen.rounds[0].up_bytes, 1_000 + 600);
    assert_wasted_bytes(&played, [1_000, 600]);
}

#[test]
fn availability_may_matter_for_selection_only() {
    let (played, available) =
        try_play(POPULATION, &[(0, 0, 5), (0, 30, 60), (1, 0, 100)], "run-on", SYNCHRONOUS, &[&[0, 1], &[1]]).unwrap();
    assert_eq!(closed(&played), [12 * SECOND, 24 * SECOND]);
    assert_eq!(available, [&[0, 1][..], &[1]]);
}

/// A phase that ends at the very instant at which the device goes away has ended.
#[test]
fn a_job_that_ends_as_its_device_goes_away_is_delivered() {
    for interrupted in ["pause", "lose"] {
        let played = played(&[(0, 0, 12), (1, 0, 100)], interrupted, SYNCHRONOUS, &[&[0, 1]]);
        assert_eq!(closed(&played), [12 * SECOND], "{interrupted}");
        assert_eq!(played.seen.rounds[0].arrived, [0, 1], "{interrupted}");
    }
}

/// Client 0 is away from 5 to 20 and delivers at 12 + 15 = 27, in the third round (24 to 36).
#[test]
fn a_client_may_return_after_its_round_closed() {
    let intervals = [(0, 0, 5), (0, 20, 100), (1, 0, 100)];
    let (carried, available) = try_play(POPULATION, &intervals, "pause", CARRY, &[&[0, 1], &[1], &[1]]).unwrap();
    assert_eq!(closed(&carried), [12 * SECOND, 24 * SECOND, 36 * SECOND]);
    let late: Vec<&[u32]> = carried.seen.rounds.iter().map(|round| &*round.late).collect();
    assert_eq!(late, [&[0][..], &[], &[]]);
    let joined: Vec<&[(u32, u32)]> = carried.seen.rounds.iter().map(|round| &*round.joined).collect();
    assert_eq!(joined, [&[][..], &[], &[(0, 1)]]);
    assert_eq!(available, [&[0, 1][..], &[1], &[1]]);
    assert_eq!(carried.accounts.wasted_compute, TotalTime::ZERO);
    // Called off at the deadline, four seconds into computing: its pause is not counted.
    let dropped = played(&intervals, "pause", DEADLINE, &[&[0, 1]]);
    assert_eq!(dropped.accounts.wasted_compute, Span(4 * SECOND).into());
    assert_eq!(dropped.seen.pauses, [(0, Phase::Compute, 5 * SECOND, 12 * SECOND)]);
}

/// Nobody is there until 7; client 1 alone until 9, but the round waits for nobody to come.
#[test]
fn a_round_waits_until_somebody_is_there() {
    let (played, available) =
        try_play(POPULATION, &[(0, 9, 100), (1, 7, 100)], "pause", SYNCHRONOUS, &[&[1], &[0]]).unwrap();
    assert_eq!(played.seen.selected_at, [7 * SECOND, 19 * SECOND]);
    assert_eq!(available, [&[1][..], &[0, 1]]);
    assert_eq!(played.seen.rounds[0].opened, 0, "the wait belongs to the round");
}

#[test]
fn nobody_ever_again_ends_the_run() {
    let error =
        try_play(POPULATION, &[(0, 0, 13), (1, 0, 13)], "pause", SYNCHRONOUS, &[&[0, 1], &[0], &[0]]).unwrap_err();
    // The job of the second round, dispatched at 12, is given up at 52.
    assert!(matches!(error, RunError::NoClients { time } if time.0 == 52 * SECOND), "{error}");
    assert!(error.to_string().contains("none will ever be again"), "{error}");
}

/// Client 0 goes at 5 and never comes back: the job is lost when its phase begins that will never end.
#[test]
fn a_device_that_never_comes_back_is_lost() {
    let played = played(&[(0, 0, 5), (1, 0, 100)], "pause", SYNCHRONOUS, &[&[0, 1]]);
    assert_eq!(closed(&played), [40 * SECOND]);
    assert_eq!(played.seen.lost, [(0, Phase::Compute, DropReason::Stalled, SECOND)]);
    let without = SYNCHRONOUS.replace("timeout = \"40 s\"\n", "");
    let error = try_play(POPULATION, &[(0, 0, 5), (1, 0, 100)], "pause", &without, &[&[0, 1]]).unwrap_err();
    assert!(matches!(error, RunError::Stuck { client, .. } if client.0 == 0), "{error}");
    assert!(error.to_string().contains("give the protocol a timeout"), "{error}");
}

/// An empty round: both are lost; the next one begins at the timeout.
#[test]
fn a_round_may_be_empty() {
    let intervals = [(0, 0, 5), (0, 30, 100), (1, 0, 6), (1, 30, 100)];
    let played = played(&intervals, "lose", SYNCHRONOUS, &[&[0, 1], &[0, 1]]);
    let empty = &played.seen.rounds[0];
    assert_eq!((empty.closed, &empty.arrived), (40 * SECOND, &vec![]));
    assert_eq!(empty.dropped, [(0, Phase::Compute), (1, Phase::Compute)]);
    assert_eq!(closed(&played)[1], 52 * SECOND);
}

/// 1 kB over 4 kbit/s for a second, nothing for two, 8 kbit/s after that: 4,000 bits by 1 s, the others by 3.5 s.
#[test]
fn a_transfer_takes_as_long_as_its_link_needs() {
    let population = POPULATION
        .replace("[population.latency]\n", "[population.device]\n")
        .replace("download = { constant = \"1 s\" }", "downlink = { trace = { file = \"link.csv\" } }")
        .replace("compute = { constant = \"10 s\" }", "samples_per_second = 0.1")
        .replace("upload = { constant = \"1 s\" }", "uplink = \"8 kbit/s\"");
    let always = [(0, 0, 1_000), (1, 0, 1_000)];
    let (played, _) = try_play(&population, &always, "pause", SYNCHRONOUS, &[&[0]]).unwrap();
    assert_eq!(closed(&played), [3_500_000_000 + 10 * SECOND + SECOND]);
    // Cut at 3.25 s, 6,000 of 8,000 bits have moved.
    let early = "[protocol.synchronous]\ncohort = 1\ntimeout = \"3.25 s\"\n";
    let (played, _) = try_play(&population, &always, "pause", early, &[&[0]]).unwrap();
    assert_eq!(played.seen.rounds[0].down_bytes, 750);
    // Away from 0.5 to 3.25: 2,000 bits before, 6,000 after take 0.75 s.
    let away = [(0, 0, 1_000), (1, 0, 1_000)];
    let (played, _) = try_play(&population, &away, "pause", SYNCHRONOUS, &[&[1]]).unwrap();
    assert_eq!(closed(&played), [14_500_000_000]);
}

/// The hazard strikes after the device has been at work for a certain time, however long it was away.
#[test]
fn a_hazard_counts_time_at_work() {
    let population = POPULATION.replace("[task.none]", "[population.dropout]\ncompute = \"0.3 /s\"\n[task.none]");
    let there = [(0, 0, 1_000), (1, 0, 1_000)];
    let paused = [(0, 0, 2), (0, 500, 1_000), (1, 0, 2), (1, 500, 1_000)];
    let protocol = "[protocol.synchronous]\ncohort = 2\ntimeout = \"600 s\"\n";
    let (plain, _) = try_play(&population, &there, "pause", protocol, &[&[0, 1]]).unwrap();
    let (late, _) = try_play(&population, &paused, "pause", protocol, &[&[0, 1]]).unwrap();
    assert!(!plain.seen.lost.is_empty());
    for (one, other) in plain.seen.lost.iter().zip(&late.seen.lost) {
        let expected = if one.3 > 2 * SECOND { one.3 + 498 * SECOND } else { one.3 };
        assert_eq!((one.0, other.3), (other.0, expected));
    }
    assert_eq!(plain.seen.lost.len(), late.seen.lost.len());
    let arrived =
        |played: &Played| played.seen.rounds.iter().map(|round: &SeenRound| round.arrived.len()).sum::<usize>();
    assert_eq!(arrived(&plain), arrived(&late));
}

/// Late at 12, lost at 20 when its device goes away: the round in which that happens says so.
#[test]
fn a_late_job_that_is_lost_is_recorded() {
    let population = POPULATION
        .replace("compute = { constant = \"10 s\" }", "compute = { constant = { each = [\"30 s\", \"10 s\"] } }");
    let intervals = [(0, 0, 20), (1, 0, 100)];
    let (played, _) = try_play(&population, &intervals, "lose", CARRY, &[&[0, 1], &[1], &[1]]).unwrap();
    assert_eq!(played.seen.rounds[0].late, [0]);
    let lost: Vec<&[(u32, u32)]> = played.seen.rounds.iter().map(|round| &*round.lost_late).collect();
    assert_eq!(lost, [&[][..], &[(0, 1)], &[]]);
    assert_eq!(played.accounts.wasted_compute, Span(19 * SECOND).into());
}

/// Fresh losses take time, and devices may go meanwhile: a client that has gone is not selected.
#[test]
fn candidates_that_go_while_they_are_asked_are_not_selected() {
    let scenario = r#"name = "going"
seeds = 3
[stop]
rounds = 60
[population]
clients = 8
interrupted = "run-on"
availability = { on-off = { on = { exponential = { mean = "2 s" } }, off = { exponential = { mean = "4 s" } } } }
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "0.1 s" }
[task.linear-regression]
features = 3
examples = 200
[training]
batch = 8
optimizer = { sgd = { lr = 0.01 } }
[protocol.synchronous]
cohort = 2
[policy.power-of-choice]
losses = "fresh"
candidates = 3
"#;
    let place = super::support::Workplace::with(scenario);
    place.run_into("out", &[]);
    for seed in 1..=3 {
        assert_eq!(place.lines(&format!("out/runs/power-of-choice-s{seed}/rounds.jsonl")).len(), 60);
    }
}
