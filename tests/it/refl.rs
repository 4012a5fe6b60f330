//! REFL: every slot, forecast and set found again from a run's records, cases by hand, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

/// Eight clients on devices that differ, two at a time.
const WORLD: &str = r#"
name = "refl"
seeds = 1
[stop]
rounds = 40
[population]
clients = 8
interrupted = "run-on"
[population.forecast]
horizon = "1 h"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s",
] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[task.scripted]
values = [0.5]
[protocol.synchronous]
cohort = 2
[policy.refl]
"#;
const MEANS: [f64; 8] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 0.4, 0.6];

/// Each device is on for a time and off for a time, again and again from 0 on. The first one is never off.
const AWAY: &str = r#"[population.availability.on-off]
start = "on"
on = { constant = { each = ["99999 s", "4 s", "2.3 s", "5 s", "7.7 s", "2.5 s", "6 s", "4.5 s"] } }
off = { constant = { each = ["1 s", "4 s", "1.1 s", "5 s", "3.1 s", "2.5 s", "2 s", "5.5 s"] } }
[task.scripted]"#;
const ON: [f64; 8] = [99999.0, 4.0, 2.3, 5.0, 7.7, 2.5, 6.0, 4.5];
const OFF: [f64; 8] = [1.0, 4.0, 1.1, 5.0, 3.1, 2.5, 2.0, 5.5];

pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Whether a device that is on and off for these times in turn is on in the whole of an interval of nanoseconds.
pub fn is_on(on: f64, off: f64, from: u64, until: u64) -> bool {
    let (on, period) = (nanoseconds(on), nanoseconds(on + off));
    from % period < on && until - from <= on - from % period
}

/// When a round's clients were selected, in nanoseconds. The round closed at the deadline, counted from then, if an
/// update was late, and else with its last update.
pub fn selected_at(round: &Value, deadline: f64) -> u64 {
    let closed = nanoseconds(round["closed_s"].as_f64().unwrap());
    if !ids(&round["late"]).is_empty() {
        return closed - nanoseconds(deadline);
    }
    let (clients, latencies) = (ids(&round["updates"]["clients"]), numbers(&round["updates"]["latency_s"]));
    // Of two updates of a client the first one belongs to an earlier round.
    let of = |client: usize| latencies[clients.iter().rposition(|&other| other == client).unwrap()];
    closed - nanoseconds(ids(&round["arrived"]).into_iter().map(of).fold(0.0, f64::max))
}

/// Whether a number, of which NaN is unknown or infinite, is the expected one.
pub fn is_close(found: f64, expected: f64) -> bool {
    found.is_nan() && !expected.is_finite() || (found - expected).abs() <= 1e-9 * expected.abs() + 1e-14
}

struct Rules {
    alpha: f64,
    cooldown: usize,
    deadline: f64,
    is_away: bool,
    /// Lengths of the rounds so far, in seconds.
    lengths: Vec<f64>,
    /// The selections of each client.
    asked: Vec<Vec<usize>>,
    /// Clients that rested, that joined, and that were asked because others were forecast to be online.
    rested: usize,
    joined: usize,
    preferred: usize,
}

impl Rules {
    fn new(alpha: f64, cooldown: usize, deadline: f64, is_away: bool) -> Self {
        let (lengths, asked) = (Vec::new(), vec![Vec::new(); 8]);
        Self { alpha, cooldown, deadline, is_away, lengths, asked, rested: 0, joined: 0, preferred: 0 }
    }

    /// Seconds: the mean of the middle two of eight declared latencies, or what the lengths of rounds make of it.
    fn slot(&self) -> f64 {
        let mut declared = MEANS.map(|mean| 0.3 + mean * 2.0_f64.ln());
        declared.sort_by(f64::total_cmp);
        let Some((first, others)) = self.lengths.split_first() else { return f64::midpoint(declared[3], declared[4]) };
        others.iter().fold(*first, |slot, length| (1.0 - self.alpha) * length + self.alpha * slot)
    }

    fn check(&mut self, round: &Value, turn: usize) {
        let (said, selected) = (&round["explain"][0], ids(&round["selected"]));
        let candidates = ids(&said["clients"]);
        let slot = self.slot();
        assert!(is_close(said["slot_s"].as_f64().unwrap(), slot), "round {turn}: {slot}");
        let (now, slot) = (selected_at(round, self.deadline), nanoseconds(slot));
        let will_be_on = |client: usize, from, until| !self.is_away || is_on(ON[client], OFF[client], from, until);
        assert!(candidates.iter().all(|&client| will_be_on(client, now, now + 1)), "round {turn}");
        let forecast: Vec<bool> =
            candidates.iter().map(|&client| will_be_on(client, now + slot, now + 2 * slot)).collect();
        let found = numbers(&said["forecast"]);
        assert_eq!(found, forecast.iter().map(|&is_on| f64::from(is_on)).collect::<Vec<_>>(), "round {turn}");
        let last = |client: usize| self.asked[client].last().copied().unwrap_or(0);
        let is_tired = |client: usize| last(client) > 0 && turn - last(client) <= self.cooldown;
        let (mut resting, mut pool): (Vec<usize>, Vec<usize>) =
            candidates.iter().partition(|&&client| is_tired(client));
        let count = candidates.len().min(2);
        while pool.len() < count {
            let place = (0..resting.len()).min_by_key(|&place| (last(resting[place]), resting[place])).unwrap();
            pool.push(resting.remove(place));
            self.joined += 1;
        }
        assert_eq!(ids(&said["resting"]), resting, "round {turn}");
        self.rested += resting.len();
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        let mut ranked: Vec<(bool, f64, usize)> =
            candidates.iter().zip(&forecast).map(|(client, is_on)| (*is_on, rng.uniform(), *client)).collect();
        ranked.retain(|ranked| pool.contains(&ranked.2));
        let of_online = ranked.iter().filter(|ranked| ranked.0).count();
        self.preferred += usize::from(ranked.len() > count && of_online > 0 && of_online < ranked.len());
        ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.cmp(&other.2)));
        assert_eq!(selected, ranked[..count].iter().map(|ranked| ranked.2).collect::<Vec<_>>(), "round {turn}");
        selected.into_iter().for_each(|client| self.asked[client].push(turn));
        self.lengths.push(round["closed_s"].as_f64().unwrap() - round["opened_s"].as_f64().unwrap());
    }
}

fn checked(scenario: &str, mut rules: Rules) -> Rules {
    rounds(scenario, 1, 40).iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
    rules
}

#[test]
fn every_set_is_found_again() {
    let dropped = changed(
        WORLD,
        "[protocol.synchronous]\ncohort = 2\n",
        "[protocol.deadline]\ncohort = 2\ndeadline = \"0.7 s\"\n",
    );
    let carried = changed(&dropped, "deadline = \"0.7 s\"\n", "deadline = \"0.7 s\"\nlate = { carry = {} }\n");
    for plain in [WORLD, &dropped, &carried] {
        for (scenario, is_away) in [(plain.to_owned(), false), (changed(plain, "[task.scripted]", AWAY), true)] {
            let rules = checked(&scenario, Rules::new(0.25, 5, 0.7, is_away));
            assert!(rules.rested > 40 && rules.joined > 40, "{} joined", rules.joined);
            let more = format!("{scenario}alpha = 0.5\ncooldown = 2\n");
            let rules = checked(&more, Rules::new(0.5, 2, 0.7, is_away));
            assert!(rules.rested > 40, "four of eight have rested enough");
            assert_eq!((rules.preferred > 1, rules.joined > 5), (is_away, is_away));
        }
    }
}

/// Three clients that take 1, 2 and 4 s, one at a time, and are on and off for some seconds in turn.
fn by_hand(on: [u32; 3], off: [u32; 3], cooldown: u32) -> Vec<Value> {
    let each = |seconds: [u32; 3]| format!("{{ constant = {{ each = {:?} }} }}", seconds.map(|of| format!("{of} s")));
    let scenario = format!(
        r#"
name = "by-hand"
seeds = 1
stop = {{ rounds = 8 }}
[population]
clients = 3
interrupted = "run-on"
forecast = {{ horizon = "1 min" }}
availability = {{ on-off = {{ start = "on", on = {}, off = {} }} }}
latency = {{ download = "0 s", compute = {}, upload = "0 s" }}
[task.scripted]
values = [0.5]
[protocol.synchronous]
cohort = 1
[policy.refl]
cooldown = {cooldown}
"#,
        each(on),
        each(off),
        each([1, 2, 4])
    );
    rounds(&scenario, 1, 8)
}

/// Of a round by hand.
type Expected<'a> = (f64, &'a [usize], &'a [f64], &'a [usize], usize);

/// Selections at 0, 4, 5, 7, 11, 14, 18 and 19 s. Client 0 is on from 0 to 11 and from 14 to 25 s, client 1 from 0 to
/// 6, 7 to 13 and 14 to 20 s, client 2 from 0 to 3, 7 to 10 and 14 to 17 s. The slot is 2 s, the median of 1, 2 and
/// 4 s, then the first round's 4 s, then 0.75·1 + 0.25·4, 0.75·2 + 0.25·1.75, …. Nobody is there from 13 to 14 s, so
/// that round 6 takes 5 s. In each round one client alone does not rest, or one alone of them is forecast away.
#[test]
fn slots_and_forecasts_by_hand() {
    let expected: [Expected<'_>; 8] = [
        (2.0, &[0, 1, 2], &[1.0, 1.0, 0.0], &[], 2),
        (4.0, &[0, 1], &[0.0, 1.0], &[], 0),
        (1.75, &[0, 1], &[1.0, 0.0], &[0], 1),
        (1.937_5, &[0, 1, 2], &[1.0, 1.0, 0.0], &[1], 2),
        (3.484_375, &[1], &[1.0], &[], 1),
        (2.371_093_75, &[0, 1, 2], &[1.0, 1.0, 0.0], &[1], 2),
        (4.342_773_437_5, &[0, 1], &[0.0, 1.0], &[], 0),
        (1.835_693_359_375, &[0, 1], &[1.0, 0.0], &[0], 1),
    ];
    for (round, (slot, candidates, forecast, resting, selected)) in
        by_hand([11, 6, 3], [3, 1, 4], 1).iter().zip(expected)
    {
        let said = &round["explain"][0];
        assert!(is_close(said["slot_s"].as_f64().unwrap(), slot), "{round}");
        assert_eq!(ids(&said["clients"]), candidates, "{round}");
        assert_eq!(numbers(&said["forecast"]), forecast, "{round}");
        assert_eq!(ids(&said["resting"]), resting, "{round}");
        assert_eq!(ids(&round["selected"]), [selected], "{round}");
    }
}

/// Selections at 0, 2, 3, 7, 9, 10 and 12 s. In the fourth, client 1 has rested for two selections and client 0 for
/// one; in the sixth both rest, and client 1 joins, which was asked before; in the seventh it is there alone.
#[test]
fn those_who_rest_join_by_hand() {
    let expected: [(&[usize], &[usize], usize); 7] = [
        (&[0, 1, 2], &[], 1),
        (&[0, 1, 2], &[1], 0),
        (&[0, 2], &[0], 2),
        (&[0, 1, 2], &[0, 2], 1),
        (&[0], &[], 0),
        (&[0, 1], &[0], 1),
        (&[1], &[], 1),
    ];
    for (round, (candidates, resting, selected)) in by_hand([5, 3, 9], [2, 2, 4], 2).iter().zip(expected) {
        assert_eq!(ids(&round["explain"][0]["clients"]), candidates, "{round}");
        assert_eq!(ids(&round["explain"][0]["resting"]), resting, "{round}");
        assert_eq!(ids(&round["selected"]), [selected], "{round}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for (from, to, part) in [
        ("[population.forecast]\nhorizon = \"1 h\"\n", "", "population.forecast"),
        ("[policy.refl]\n", "[policy.refl]\nalpha = 1.5\n", "alpha"),
        ("[policy.refl]\n", "[policy.refl]\nalpha = -0.1\n", "alpha"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        assert!(answer.stderr.contains(part) && answer.stderr.contains("refl"), "{}", answer.stderr);
    }
}
