//! CriticalFL: every norm, size and draw recomputed from jobs that are trained apart, sizes worked out by hand, and
//! settings that are refused.

use super::divfl::change;
use super::fedacs::{ids, numbers, rounds};
use super::mini_batch::sent;
use super::support::{SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;
use fedgenie::rng::{Purpose, Streams};
use serde_json::Value;
use std::collections::BTreeMap;

/// Twelve clients of different sizes, two at a time and up to nine, a linear model that soon moves less.
const WORLD: &str = r#"
name = "critical-fl"
seeds = 1
stop.rounds = 30
[population]
clients = 12
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 300, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer.sgd.lr = 0.05
[protocol.synchronous]
cohort = 2
most = 9
[policy.critical-fl]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"9 s\" } }, \
                    off = { exponential = { mean = \"5 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "[protocol.deadline]\ncohort = 2\nmost = 9\ndeadline = \"0.8 s\"\nlate = { carry = {} }\n";

#[derive(Clone, Copy)]
struct Rule {
    is_paper: bool,
    delta: f64,
    window: usize,
}

const PAPER: Rule = Rule { is_paper: true, delta: 0.01, window: 1 };
const RELEASED: Rule = Rule { is_paper: false, delta: 0.01, window: 10 };

/// The size, out of lists of all that was seen.
struct Sizes {
    rule: Rule,
    size: usize,
    most: usize,
    /// F of each look.
    looks: Vec<f64>,
    has_been_largest: bool,
    last: (f64, bool),
}

impl Sizes {
    const fn new(rule: Rule, cohort: usize, most: usize) -> Self {
        Self { rule, size: cohort, most, looks: Vec::new(), has_been_largest: false, last: (f64::NAN, false) }
    }

    fn look(&mut self, cohort: usize, norm: f64) {
        self.looks.push(norm);
        let count = self.looks.len();
        // The look at a place from 1; none before the first is 0.
        let at = |place: isize| usize::try_from(place - 1).map_or(0.0, |place| self.looks[place]);
        let mean = |last: usize| {
            let places = (0..self.rule.window).map(|back| at(last as isize - back as isize));
            places.sum::<f64>() / self.rule.window as f64
        };
        let (now, before) = (mean(count), mean(count - 1));
        let change = (now - before) / before.max(1e-7);
        let is_critical = match self.rule.is_paper {
            true => count == 1 || change >= self.rule.delta,
            false => count <= 5 || change > self.rule.delta,
        };
        self.has_been_largest |= self.size == self.most;
        self.size = match (is_critical, self.rule.is_paper) {
            (true, false) if self.has_been_largest => self.size,
            (true, _) => self.most.min(2 * self.size),
            (false, true) => cohort.max(self.size / 2),
            (false, false) => cohort.max(self.size - 1.max(self.size / 2)),
        };
        self.last = (if count == 1 { f64::NAN } else { change }, is_critical);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Plays 30 rounds and compares each with the rule; the sizes that there were.
fn checked(scenario: &str, rule: Rule) -> Vec<usize> {
    let world = world(scenario, 1);
    let sizes: Vec<f64> = (0..12).map(|client| labelled(&world).partition.size(ClientId(client)) as f64).collect();
    let (lines, mut models) = (rounds(scenario, 1, 30), sent(scenario, &world, 30).into_iter());
    let mut sent = vec![models.next().unwrap()];
    let mut size = Sizes::new(rule, 2, 9);
    // F of a round that has not been looked at.
    let mut last: Option<f64> = None;
    let (mut found, mut norms) = (Vec::new(), [f64::NAN; 12]);
    for (turn, round) in (1_usize..).zip(&lines) {
        let said = &round["explain"][0];
        if (rule.is_paper || turn % 2 == 0)
            && let Some(norm) = last.take()
        {
            size.look(2, norm);
        }
        let close = |found: f64, expected: f64| {
            found.is_nan() && expected.is_nan() || (found - expected).abs() <= 1e-4 * expected.abs().max(1e-3)
        };
        assert_eq!(number(&said["size"]), size.size as f64, "{turn}: {round}");
        assert!(close(number(&said["norm"]), size.looks.last().copied().unwrap_or(f64::NAN)), "{turn}: {said}");
        assert!(close(number(&said["change"]), size.last.0), "{turn}: {said}, {}", size.last.0);
        let critical = if size.looks.is_empty() { f64::NAN } else { f64::from(u8::from(size.last.1)) };
        assert!(close(number(&said["critical"]), critical), "{turn}: {said}");
        let mut drawn = ids(&said["clients"]);
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        let count = size.size.min(drawn.len());
        for place in 0..count {
            let other = place + rng.below((drawn.len() - place) as u64) as usize;
            drawn.swap(place, other);
        }
        assert_eq!(ids(&round["selected"]), drawn[..count], "{turn}");
        found.push(size.size);

        let joined = round["joined"].as_array().into_iter().flatten();
        let whole = |value: &Value| value.as_u64().unwrap() as usize;
        let mut of: BTreeMap<usize, usize> =
            joined.map(|late| (whole(&late["client"]), whole(&late["round"]))).collect();
        of.extend(ids(&round["arrived"]).into_iter().map(|client| (client, turn)));
        if of.is_empty() {
            sent.push(sent[turn - 1].clone());
            continue;
        }
        let (mut sum, mut all) = (0.0, 0.0);
        for (&client, &round) in &of {
            let change = change(&world, client, round, &sent[round - 1]);
            let square: f64 = change.into_iter().flatten().map(|number| number * number).sum();
            norms[client] = square;
            let weight = if rule.is_paper { sizes[client] } else { 1.0 };
            sum += weight * square;
            all += weight;
        }
        for (client, norm) in ids(&said["after"]["clients"]).into_iter().zip(numbers(&said["after"]["norm"])) {
            assert!(close(norm, norms[client]), "{turn}, {client}: {norm}, {}", norms[client]);
        }
        last = Some(if all > 0.0 { sum / all } else { 0.0 });
        sent.push(models.next().unwrap());
    }
    found
}

#[test]
fn every_size_follows_from_norms() {
    let released = format!("{WORLD}variant = \"released\"\n");
    let of_three = format!("{released}window = 3\ndelta = 0.05\n");
    for (scenario, rule) in [
        (WORLD.to_owned(), PAPER),
        (format!("{WORLD}delta = 0.3\n"), Rule { delta: 0.3, ..PAPER }),
        (released, RELEASED),
        (of_three, Rule { window: 3, delta: 0.05, ..RELEASED }),
        (changed(WORLD, "[task.softmax-regression]", AWAY), PAPER),
        (changed(WORLD, "[protocol.synchronous]\ncohort = 2\nmost = 9\n", LATE), PAPER),
    ] {
        let sizes = checked(&scenario, rule);
        assert_eq!(sizes[0], 2);
        let (grows, shrinks) = (
            sizes.windows(2).filter(|pair| pair[1] > pair[0]).count(),
            sizes.windows(2).filter(|pair| pair[1] < pair[0]).count(),
        );
        assert!(grows >= 2 && shrinks >= 1, "{sizes:?}: {scenario}");
    }
}

/// Paper: norms of 4, 4.1, 4, 5, 5 and 8: the first look is critical, then changes are 2.5 %, −2.4 %, 25 %, 0 and 60 %.
/// Released, windows of two: means are 2, 4.05, 4.05, 4.5, 5 and 6.5 beside 0, 2, 4.05, 4.05, 4.5 and 5; the first five
/// looks are critical, but the largest size, 9, is reached at the third, and seen at the fourth. With norms that fall
/// from there on it loses half, and does not come back.
#[test]
fn six_looks_by_hand() {
    let mut paper = Sizes::new(PAPER, 2, 9);
    let sizes = [4.0, 4.1, 4.0, 5.0, 5.0, 8.0].map(|norm| {
        paper.look(2, norm);
        paper.size
    });
    assert_eq!(sizes, [4, 8, 4, 8, 4, 8]);
    let mut released = Sizes::new(Rule { window: 2, ..RELEASED }, 2, 9);
    let sizes = [4.0, 4.1, 4.0, 5.0, 5.0, 8.0, 1.0, 9.0, 9.0].map(|norm| {
        released.look(2, norm);
        released.size
    });
    assert_eq!(sizes, [4, 8, 9, 9, 9, 9, 5, 5, 5]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let learned = &WORLD[WORLD.find("[task").unwrap()..WORLD.find("[protocol").unwrap()];
    for (from, to, part) in [
        ("[policy.critical-fl]", "[policy.critical-fl]\ndelta = -0.1", "delta"),
        ("[policy.critical-fl]", "[policy.critical-fl]\nwindow = 4", "window"),
        ("[policy.critical-fl]", "[policy.critical-fl]\nvariant = \"released\"\nwindow = 0", "window"),
        ("most = 9", "", "most"),
        ("[policy.critical-fl]", "[policy.critical-fl]\ncohort = 2", "most"),
        (learned, "[task.scripted]\nvalues = [0.5]\n", "norm"),
    ] {
        let answer = Workplace::with(&changed(WORLD, from, to)).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(["critical-fl", part].iter().all(|word| answer.stderr.contains(word)), "{to}: {}", answer.stderr);
    }
}
