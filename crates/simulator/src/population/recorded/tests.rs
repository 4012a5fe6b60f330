//! Replayed jobs: exact ones, drawn ones, and those that cannot be.

use super::*;
use fedgenie_core::id::Round;
use fedgenie_core::math::statistics::kolmogorov;

const MS: u64 = 1_000_000;

fn job(client: u32, round: u32, phases: [Option<u64>; 3], total: Option<u64>, ending: Ending) -> LoggedJob {
    let span = |ms: Option<u64>| ms.map(|ms| Span(ms * MS));
    let (client, round, line) = (ClientId(client), Round(round), u64::from(round) + 1);
    LoggedJob { client, round, sent: None, phases: phases.map(span), total: span(total), ending, line }
}

fn log(jobs: Vec<LoggedJob>) -> JobLog {
    let last = |of: fn(&LoggedJob) -> u32| jobs.iter().map(of).max().unwrap();
    let clients = (0..=u64::from(last(|job| job.client.0))).collect();
    let rounds = (1..=u64::from(last(|job| job.round.0))).collect();
    JobLog { clients, rounds, jobs, notes: Vec::new() }
}

fn draw(recording: &Recording, seed: u64, purpose: Purpose, client: u32, round: u32) -> JobDraw {
    recording.draw(&Streams::new(seed), purpose, (ClientId(client), JobNumber(round)), [1, 1]).unwrap()
}

#[test]
fn recorded_jobs_are_exact_and_others_are_the_clients_own() {
    let recording = Recording::new(&log(vec![
        job(0, 1, [Some(1), Some(2), Some(3)], None, Ending::Arrived),
        job(1, 1, [None; 3], Some(7), Ending::Late),
        job(1, 2, [Some(1), Some(4), None], Some(5), Ending::Dropped),
        job(0, 3, [None; 3], Some(9), Ending::Arrived),
    ]))
    .unwrap();
    let of = |client, round| draw(&recording, 1, Purpose::Latency, client, round);
    assert_eq!(of(0, 1), JobDraw { phases: [Span(MS), Span(2 * MS), Span(3 * MS)], loss: None });
    assert_eq!(of(1, 1), JobDraw { phases: [Span::ZERO, Span(7 * MS + 1), Span::ZERO], loss: None });
    let loss = Some((Phase::Compute, Span(4 * MS)));
    assert_eq!(of(1, 2), JobDraw { phases: [Span(MS), Span(4 * MS + 1), Span::ZERO], loss });
    assert!(recording.has(ClientId(0), JobNumber(3)) && !recording.has(ClientId(0), JobNumber(2)));
    assert_eq!(recording.choices(), [vec![ClientId(0), ClientId(1)], vec![ClientId(1)], vec![ClientId(0)]]);
    let own = [of(0, 1), of(0, 3)];
    assert!((2..200).filter(|round| *round != 3).all(|round| own.contains(&of(0, round))));
    // A probe draws, and is never lost.
    assert!((1..50).all(|round| draw(&recording, 1, Purpose::Probe, 1, round).loss.is_none()));
    assert_eq!(recording.notes().len(), 1);
    assert!(recording.has_losses());
}

/// 20,000 draws of 50 jobs: their places are uniform, and the same for the same seed, client and round.
#[test]
fn draws_are_uniform_over_the_clients_jobs() {
    let jobs = (1..=50).map(|round| job(0, round, [None; 3], Some(u64::from(round)), Ending::Arrived)).collect();
    let recording = Recording::new(&log(jobs)).unwrap();
    let place = |seed, round| draw(&recording, seed, Purpose::Latency, 0, round).total().0 / MS - 1;
    // Spread within its fiftieth by the number of the draw, for a continuous law.
    let mut places: Vec<f64> =
        (51..20_051).map(|round| (place(3, round) as f64 + f64::from(round % 97) / 97.0) / 50.0).collect();
    let (_, p_value) = kolmogorov::test(&mut places, |x| x.clamp(0.0, 1.0));
    assert!(p_value > 1e-3, "{p_value}");
    assert_eq!(place(3, 77), place(3, 77));
    assert!((51..151).any(|round| place(3, round) != place(4, round)));
}

#[test]
fn work_scales_computing_and_the_time_of_a_loss() {
    let recording = Recording::new(&log(vec![
        job(0, 1, [Some(1), Some(2), Some(3)], None, Ending::Arrived),
        job(0, 2, [Some(1), Some(4), None], None, Ending::Dropped),
    ]))
    .unwrap();
    let half =
        |round| recording.draw(&Streams::new(1), Purpose::Latency, (ClientId(0), JobNumber(round)), [1, 2]).unwrap();
    assert_eq!(half(1).phases, [Span(MS), Span(MS), Span(3 * MS)]);
    assert_eq!(half(2).loss, Some((Phase::Compute, Span(2 * MS))));
    assert!(half(2).phases[1] > Span(2 * MS));
}

#[test]
fn what_cannot_be_replayed_is_refused_by_line() {
    let refused = |jobs| Recording::new(&log(jobs)).unwrap_err();
    let twice = refused(vec![
        job(0, 1, [None; 3], Some(1), Ending::Arrived),
        LoggedJob { line: 9, ..job(0, 1, [None; 3], Some(2), Ending::Arrived) },
    ]);
    assert!(twice.starts_with("9: client 0 has a job in round 1 on line 2 already"), "{twice}");
    let late = refused(vec![job(0, 1, [None; 3], None, Ending::Late)]);
    assert!(late.starts_with("2: the job is late and has neither"), "{late}");
    let arrived = refused(vec![job(0, 1, [None, Some(1), None], None, Ending::Arrived)]);
    assert!(arrived.starts_with("2: the job arrived and has neither"), "{arrived}");
    // A loss of which the time is not known is at once.
    let lost = Recording::new(&log(vec![job(0, 1, [None; 3], None, Ending::Dropped)])).unwrap();
    assert_eq!(draw(&lost, 1, Purpose::Latency, 0, 1).loss, Some((Phase::Download, Span::ZERO)));
}
