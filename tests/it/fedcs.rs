//! FedCS: every order, finish and set found again from declared medians, a case by hand, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::refl::{is_close, is_on, selected_at};
use super::support::{SCENARIO, Workplace, changed};
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;

/// Ten clients on devices and links that differ.
const WORLD: &str = r#"
name = "fedcs"
seeds = 1
[stop]
rounds = 30
[population]
clients = 10
interrupted = "run-on"
[population.latency]
download = { constant = { each = [
    "0.11 s", "0.05 s", "0.31 s", "0.22 s", "0.17 s", "0.4 s", "0.08 s", "0.26 s", "0.13 s", "0.19 s",
] } }
compute = { exponential = { mean = { each = [
    "0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s", "0.4 s", "0.6 s", "0.9 s", "0.25 s",
] }, shift = "0.05 s" } }
upload = { constant = { each = [
    "0.15 s", "0.23 s", "0.12 s", "0.31 s", "0.09 s", "0.27 s", "0.36 s", "0.18 s", "0.21 s", "0.14 s",
] } }
[task.scripted]
values = [0.5]
[protocol.deadline]
cohort = 3
most = 6
deadline = "1.3 s"
[policy.fedcs]
"#;
const DOWN: [f64; 10] = [0.11, 0.05, 0.31, 0.22, 0.17, 0.4, 0.08, 0.26, 0.13, 0.19];
const MEANS: [f64; 10] = [0.2, 0.3, 0.5, 0.8, 1.0, 1.5, 0.4, 0.6, 0.9, 0.25];
const UP: [f64; 10] = [0.15, 0.23, 0.12, 0.31, 0.09, 0.27, 0.36, 0.18, 0.21, 0.14];

/// Each device is on for a time and off for a time, again and again from 0 on.
const AWAY: &str = r#"[population.availability.on-off]
start = "on"
on = { constant = { each = [
    "99999 s", "4 s", "2.3 s", "5 s", "7.7 s", "2.5 s", "6 s", "4.5 s", "3.3 s", "8 s",
] } }
off = { constant = { each = [
    "1 s", "4 s", "1.1 s", "5 s", "3.1 s", "2.5 s", "2 s", "5.5 s", "2.9 s", "3 s",
] } }
[task.scripted]"#;
const ON: [f64; 10] = [99999.0, 4.0, 2.3, 5.0, 7.7, 2.5, 6.0, 4.5, 3.3, 8.0];
const OFF: [f64; 10] = [1.0, 4.0, 1.1, 5.0, 3.1, 2.5, 2.0, 5.5, 2.9, 3.0];

struct Rules {
    /// All of those available if `None`.
    candidates: Option<usize>,
    most: usize,
    deadline: f64,
    is_away: bool,
    /// Clients that were considered and not taken, and those that were not considered.
    passed: usize,
    left: usize,
    /// Clients of each selection.
    sizes: Vec<usize>,
    /// Selections in which candidates were drawn.
    drawn: usize,
    late: usize,
}

impl Rules {
    fn new(candidates: Option<usize>, most: usize, deadline: f64, is_away: bool) -> Self {
        Self { candidates, most, deadline, is_away, passed: 0, left: 0, sizes: Vec::new(), drawn: 0, late: 0 }
    }

    fn considered(&mut self, mut available: Vec<usize>, turn: usize) -> Vec<usize> {
        let Some(count) = self.candidates.filter(|&count| count < available.len()) else { return available };
        self.drawn += 1;
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        for place in 0..count {
            let other = place + rng.below((available.len() - place) as u64) as usize;
            available.swap(place, other);
        }
        available.truncate(count);
        available.sort_unstable();
        available
    }

    fn check(&mut self, round: &Value, turn: usize) {
        let said = &round["explain"][0];
        let now = selected_at(round, self.deadline);
        let is_there = |client: &usize| !self.is_away || is_on(ON[*client], OFF[*client], now, now + 1);
        let available: Vec<usize> = (0..10).filter(is_there).collect();
        let candidates = self.considered(available, turn);
        assert_eq!(ids(&said["clients"]), candidates, "round {turn}");
        let compute = MEANS.map(|mean| 0.05 + mean * 2.0_f64.ln());
        // Ends of the last download and of the last upload after it.
        let (mut downloads, mut uploads) = (0.0_f64, 0.0_f64);
        let (mut order, mut taken, mut finish) = (Vec::new(), Vec::new(), [f64::NAN; 10]);
        while taken.len() < self.most {
            let with = |client: usize| {
                let waits = (compute[client] - uploads).max(0.0);
                (downloads.max(DOWN[client]), uploads + UP[client] + waits)
            };
            let adds = |client: usize| (with(client).0 - downloads) + (with(client).1 - uploads);
            let rest = candidates.iter().copied().filter(|client| !order.contains(client));
            let Some(next) = rest.min_by(|&one, &other| adds(one).total_cmp(&adds(other))) else { break };
            let (down, up) = with(next);
            order.push(next);
            finish[next] = down + up;
            if down + up < self.deadline {
                (downloads, uploads) = (down, up);
                taken.push(next);
            } else {
                self.passed += 1;
            }
        }
        assert_eq!(ids(&said["order"]), order, "round {turn}");
        assert_eq!(ids(&round["selected"]), taken, "round {turn}");
        for (&client, found) in candidates.iter().zip(numbers(&said["finish_s"])) {
            assert!(is_close(found, finish[client]), "round {turn}: {found}, {}", finish[client]);
            assert_eq!(found.is_nan(), !order.contains(&client), "round {turn}");
        }
        self.left += candidates.len() - order.len();
        self.late += ids(&round["late"]).len();
        self.sizes.push(taken.len());
    }
}

fn checked(scenario: &str, mut rules: Rules) -> Rules {
    rounds(scenario, 1, 30).iter().zip(1..).for_each(|(round, turn)| rules.check(round, turn));
    rules
}

#[test]
fn every_set_is_found_again() {
    let rules = checked(WORLD, Rules::new(None, 6, 1.3, false));
    assert_eq!((rules.sizes, rules.passed), (vec![5; 30], 150), "five are taken and five passed over");
    assert!(rules.late > 0, "medians are no promises");
    let short = changed(WORLD, "most = 6\n", "");
    let rules = checked(&short, Rules::new(None, 3, 1.3, false));
    assert_eq!((rules.sizes, rules.left), (vec![3; 30], 210), "without `most`, the cohort");
    let drawn = format!("{WORLD}candidates = 6\n");
    let rules = checked(&drawn, Rules::new(Some(6), 6, 1.3, false));
    assert!(rules.drawn == 30 && rules.passed > 30 && rules.sizes.contains(&3) && rules.sizes.contains(&5));
    let hasty = changed(&format!("{WORLD}candidates = 3\n"), "1.3 s", "1 s");
    let rules = checked(&hasty, Rules::new(Some(3), 6, 1.0, false));
    assert!(rules.sizes.contains(&1) && rules.sizes.contains(&3));
    checked(&format!("{WORLD}candidates = 10\n"), Rules::new(Some(10), 6, 1.3, false));
}

#[test]
fn devices_that_are_away_are_no_candidates() {
    let scenario = changed(WORLD, "[task.scripted]", AWAY);
    let rules = checked(&scenario, Rules::new(None, 6, 1.3, true));
    assert!(rules.passed > 30 && rules.late > 0);
    let rules = checked(&format!("{scenario}candidates = 6\n"), Rules::new(Some(6), 6, 1.3, true));
    assert!((5..25).contains(&rules.drawn), "sometimes six are there at most: {}", rules.drawn);
}

/// Download 1, ½, 1, 2, ½ s, compute 1, 2, ½, ¼, 4 s, upload 1, 1, ½, ½, 1 s.
const BY_HAND: &str = r#"
name = "by-hand"
seeds = 1
[stop]
rounds = 6
[population]
clients = 5
[population.latency]
download = { constant = { each = ["1 s", "0.5 s", "1 s", "2 s", "0.5 s"] } }
compute = { constant = { each = ["1 s", "2 s", "0.5 s", "0.25 s", "4 s"] } }
upload = { constant = { each = ["1 s", "1 s", "0.5 s", "0.5 s", "1 s"] } }
[task.scripted]
values = [0.5]
[protocol.deadline]
cohort = 5
deadline = "4 s"
[policy.fedcs]
"#;

/// Deadline, cohort, order, selection and times of a case.
type Case<'a> = (&'a str, &'a str, &'a [usize], &'a [usize], [f64; 5]);

/// Alone, clients take 3, 3½, 2, 2¾ and 5½ s: client 2 is first, with D = Θ = 1. Then client 0 adds 1 s (client 1 adds
/// 2, client 3 adds 1½, client 4 adds 4), with Θ = 2 and the end at 3 s. Then client 1 adds 1 s and would end at 4 s,
/// which is not before 4 s; clients 3 and 4 would end at 4½ and 6 s. Where client 1 is in time, Θ = 3, and the two
/// would end at 5½ and 6 s. Where 2 s are all that there is, even client 2 is passed over, and the set is empty.
#[test]
fn five_clients_by_hand() {
    let none = f64::NAN;
    let cases: [Case<'_>; 4] = [
        ("4 s", "5", &[2, 0, 1, 3, 4], &[2, 0], [3.0, 4.0, 2.0, 4.5, 6.0]),
        ("4.25 s", "5", &[2, 0, 1, 3, 4], &[2, 0, 1], [3.0, 4.0, 2.0, 5.5, 6.0]),
        ("4.25 s", "2", &[2, 0], &[2, 0], [3.0, none, 2.0, none, none]),
        ("2.5 s", "5", &[2, 0, 3, 1, 4], &[2], [3.0, 4.0, 2.0, 3.5, 6.0]),
    ];
    for (deadline, cohort, order, selected, finish) in cases {
        let scenario = changed(BY_HAND, "\"4 s\"\n", &format!("\"{deadline}\"\n"));
        let scenario = changed(&scenario, "cohort = 5", &format!("cohort = {cohort}"));
        for round in rounds(&scenario, 1, 6) {
            let said = &round["explain"][0];
            assert_eq!(ids(&said["clients"]), [0, 1, 2, 3, 4], "{round}");
            assert_eq!(ids(&said["order"]), order, "{round}");
            assert_eq!(ids(&round["selected"]), selected, "{round}");
            for (found, expected) in numbers(&said["finish_s"]).into_iter().zip(finish) {
                assert!(is_close(found, expected), "{round}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let protocol = "[protocol.deadline]\ncohort = 3\nmost = 6\ndeadline = \"1.3 s\"\n";
    for (from, to, part) in [
        (protocol, "[protocol.synchronous]\ncohort = 3\n", "deadline"),
        // Nobody would be selected, ever.
        ("deadline = \"1.3 s\"", "deadline = \"10 ms\"", "raise the deadline"),
        ("[policy.fedcs]\n", "[policy.fedcs]\ncandidates = 0\n", "candidates"),
        ("[policy.fedcs]\n", "[policy.fedcs]\ncandidates = 11\n", "candidates"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        assert!(answer.stderr.contains(part) && answer.stderr.contains("fedcs"), "{}", answer.stderr);
    }
}
