//! DivFL: every distance, total and selection recomputed from jobs that are trained apart, small cases worked out by
//! hand, and settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::support::{SCENARIO, Workplace, changed, labelled, play_policies, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::rng::{Purpose, StreamRng, Streams};
use fedgenie::scenario::tree;
use fedgenie::trainer::{Trainer, TrainingJob, Update};
use fedgenie::world::World;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Nine clients with examples of different classes, on devices that differ, three at a time.
const WORLD: &str = r#"
name = "divfl"
seeds = 1
stop.rounds = 25
protocol.synchronous.cohort = 3
[population]
clients = 9
interrupted = "run-on"
latency.download.constant = "0.1 s"
latency.compute.exponential = { mean.uniform = ["0.2 s", "1.5 s"], shift = "0.05 s" }
latency.upload.constant = "0.15 s"
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 } }
partition = { dirichlet = { alpha = 0.3 } }
[training]
batch = 8
optimizer.sgd.lr = 0.05
[policy.divfl]
"#;

const AWAY: &str = "[population.availability]\non-off = { on = { exponential = { mean = \"20 s\" } }, \
                    off = { exponential = { mean = \"8 s\" } } }\n[task.softmax-regression]";
const LATE: &str = "protocol.deadline = { cohort = 3, deadline = \"0.8 s\", late.carry = {} }";

/// Changes that are known, by client.
type Changes = BTreeMap<usize, Vec<f64>>;

fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum::<f64>().sqrt()
}

/// From each client to the nearest of some; infinite if these are none.
fn nearest(changes: &Changes, some: &[usize]) -> BTreeMap<usize, f64> {
    let to_some =
        |change: &[f64]| some.iter().map(|client| distance(change, &changes[client])).fold(f64::INFINITY, f64::min);
    changes.iter().map(|(&client, change)| (client, to_some(change))).collect()
}

fn total(changes: &Changes, some: &[usize]) -> f64 {
    nearest(changes, some).into_values().sum()
}

/// So many clients, each of which makes the total least; of equal ones the smaller id.
fn greedy(changes: &Changes, count: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < count {
        let with = |client: usize| total(changes, &[&chosen[..], &[client]].concat());
        let left = changes.keys().copied().filter(|client| !chosen.contains(client));
        let best = left.min_by(|&one, &other| with(one).total_cmp(&with(other)).then(one.cmp(&other))).unwrap();
        chosen.push(best);
    }
    chosen
}

/// The first places of a shuffle from the first place up; the list itself if it has no more than these.
fn shuffled(mut list: Vec<usize>, count: usize, rng: &mut StreamRng) -> Vec<usize> {
    let swaps = if list.len() > count { count } else { 0 };
    for place in 0..swaps {
        let other = place + rng.below((list.len() - place) as u64) as usize;
        list.swap(place, other);
    }
    list.truncate(count);
    list
}

/// The change that a client's job of a round makes of the model that it is sent; none without examples. Each selection
/// is a round.
pub fn change(world: &World, client: usize, round: usize, start: &[f32]) -> Option<Vec<f64>> {
    let learner = labelled(world);
    let (client, round) = (ClientId::from_index(client), round as u32);
    let examples = learner.partition.client(client);
    let job = TrainingJob { client, round: Round(round), number: JobNumber(round), start, examples: &examples };
    let settings = &world.training.local;
    let trainer = Trainer { model: &*learner.model, data: &learner.data.train, settings, streams: &world.streams };
    let mut updates = [Update::default()];
    trainer.train(&[job], false, &mut updates);
    let pairs = updates[0].parameters.iter().zip(start);
    (!examples.is_empty()).then(|| pairs.map(|(own, sent)| f64::from(*own) - f64::from(*sent)).collect())
}

#[derive(Clone, Copy)]
struct Rule {
    cohort: usize,
    /// How many of those left are considered in each step.
    sample: usize,
    is_fresh: bool,
}

const DEFAULT: Rule = Rule { cohort: 3, sample: usize::MAX, is_fresh: false };

/// What happened in a run.
#[derive(Debug, Default)]
struct Seen {
    /// Steps in which nobody else would have made the total as small.
    clear: usize,
    unknown: usize,
    late: usize,
    /// Where all changes are known: the total, as a share of that of the first clients by id.
    shares: Vec<f64>,
}

impl Seen {
    /// Compares a selection with the rule, the known changes of its candidates being these.
    fn check(&mut self, round: &Value, turn: usize, changes: &Changes, rule: Rule) {
        let (said, selected) = (&round["explain"][0], ids(&round["selected"]));
        let candidates = ids(&said["clients"]);
        let count = candidates.len().min(rule.cohort);
        assert_eq!(selected.len(), count, "{round}");
        // Whoever has no known change comes first, or else last.
        let places = if rule.is_fresh { count.saturating_sub(changes.len()) } else { count };
        let without = candidates.iter().copied().filter(|client| !changes.contains_key(client));
        let unknown: Vec<usize> = without.take(places).collect();
        assert_eq!(ids(&said["unknown"]), unknown, "{round}");
        let (first, last) = selected.split_at(if rule.is_fresh { count - unknown.len() } else { unknown.len() });
        let (others, picks) = if rule.is_fresh { (last, first) } else { (first, last) };
        assert_eq!(others, unknown, "{round}");
        // Totals that differ by less may be equal: changes may have been rounded to single precision.
        let pairs = changes.values().flat_map(|one| changes.values().map(move |other| distance(one, other)));
        let rounding = 1e-6 * pairs.fold(0.0, f64::max);
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn as u32);
        for (place, &pick) in picks.iter().enumerate() {
            let chosen = &picks[..place];
            let left: Vec<usize> = changes.keys().copied().filter(|client| !chosen.contains(client)).collect();
            let mut rivals = shuffled(left, rule.sample, &mut rng);
            assert!(rivals.contains(&pick), "{pick} is not among {rivals:?}: {round}");
            rivals.retain(|&rival| rival != pick);
            let with = |client: usize| total(changes, &[chosen, &[client]].concat());
            let margin = rivals.iter().map(|&rival| with(rival)).fold(f64::INFINITY, f64::min) - with(pick);
            assert!(margin >= -rounding, "{pick}, and not one of {rivals:?}, by {margin}: {round}");
            self.clear += usize::from(margin > rounding && !rivals.is_empty());
        }
        let (mut found, distances) = (numbers(&said["distance"]), nearest(changes, picks));
        let of = |client: &usize| distances.get(client).copied().unwrap_or(f64::INFINITY);
        let mut expected: Vec<f64> = candidates.iter().map(of).collect();
        found.push(said.get("total").unwrap().as_f64().unwrap_or(f64::NAN));
        expected.push(if changes.is_empty() { f64::INFINITY } else { total(changes, picks) });
        assert_eq!(found.len(), expected.len(), "{round}");
        let is_close = |(found, of): (&f64, &f64)| found.is_nan() && of.is_infinite() || (found - of).abs() <= rounding;
        assert!(found.iter().zip(&expected).all(is_close), "{found:?}, {expected:?}: {round}");
        self.shares.extend((changes.len() == 9).then(|| total(changes, picks) / total(changes, &candidates[..count])));
        self.unknown += unknown.len();
    }
}

/// Plays 25 rounds and compares each with the rule.
fn checked(scenario: &str, rule: Rule) -> Seen {
    let world = world(scenario, 1);
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let source = Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source();
    let mut models = play_policies(&world, world.policies(&source).unwrap(), 25).unwrap().seen.models.into_iter();
    // The model that each round sends.
    let mut sent = vec![world.task.as_ref().unwrap().initial_model(0, &world.streams)];
    let (mut seen, mut last_known) = (Seen::default(), Changes::new());
    for (round, turn) in rounds(scenario, 1, 25).iter().zip(1..) {
        let of_now = |client: usize| change(&world, client, turn, &sent[turn - 1]);
        let known = |client: usize| if rule.is_fresh { of_now(client) } else { last_known.get(&client).cloned() };
        let candidates = ids(&round["explain"][0]["clients"]).into_iter();
        let changes: Changes = candidates.filter_map(|client| known(client).map(|change| (client, change))).collect();
        seen.check(round, turn, &changes, rule);
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let joined = round["joined"].as_array().into_iter().flatten();
        let late: Vec<_> = joined.map(|late| (number(&late["client"]), number(&late["round"]))).collect();
        seen.late += late.len();
        let arrived = ids(&round["arrived"]).into_iter().map(|client| (client, turn));
        for (client, of) in late.into_iter().chain(arrived) {
            last_known.extend(change(&world, client, of, &sent[of - 1]).map(|change| (client, change)));
        }
        let has_updates = !ids(&round["updates"]["clients"]).is_empty();
        sent.push(if has_updates { models.next().unwrap() } else { sent[turn - 1].clone() });
    }
    assert!(models.next().is_none(), "each round with updates made a model");
    seen
}

#[test]
fn every_selection_follows_from_changes() {
    let seen = checked(WORLD, DEFAULT);
    assert!(seen.unknown == 9 && seen.clear >= 40, "{seen:?}");
    // Not only is the total small for each step: it is smaller than that of clients chosen without looking.
    assert!(seen.shares.len() == 22 && seen.shares.iter().all(|&share| share <= 1.0 + 1e-6), "{seen:?}");
    assert!(seen.shares.iter().filter(|&&share| share < 0.999).count() >= 10, "{seen:?}");

    let fresh = format!("{WORLD}updates = \"fresh\"\n");
    let seen = checked(&format!("{WORLD}sample = 2\n"), Rule { sample: 2, ..DEFAULT });
    assert!(seen.unknown == 9 && seen.clear >= 40, "{seen:?}");
    let seen = checked(&fresh, Rule { is_fresh: true, ..DEFAULT });
    assert!(seen.unknown == 0 && seen.clear >= 40 && seen.shares.len() == 25, "{seen:?}");
    checked(&format!("{fresh}sample = 2\n"), Rule { sample: 2, is_fresh: true, ..DEFAULT });

    let late = format!("{}updates = \"last-known\"\n", changed(WORLD, "protocol.synchronous.cohort = 3", LATE));
    let both = changed(&late, "[task.softmax-regression]", AWAY);
    for scenario in [late, both] {
        let seen = checked(&scenario, DEFAULT);
        assert!(seen.late >= 10 && seen.clear >= 15, "{seen:?}");
    }
}

/// Some clients have no examples, so that their changes are never known: of seven places they have the last ones.
#[test]
fn who_never_has_a_change_comes_last() {
    let few = changed(&changed(WORLD, "alpha = 0.3", "alpha = 0.02, minimum = 0"), "cohort = 3", "cohort = 7");
    let seen = checked(&format!("{few}updates = \"fresh\"\n"), Rule { cohort: 7, is_fresh: true, ..DEFAULT });
    assert!(seen.unknown >= 50 && seen.clear >= 20, "{seen:?}");
    let sizes: Vec<usize> = {
        let world = world(&few, 1);
        (0..9).map(|client| labelled(&world).partition.client(ClientId::from_index(client)).len()).collect()
    };
    let [with, without]: [Vec<usize>; 2] =
        [true, false].map(|has| (0..9).filter(|&client| (sizes[client] > 0) == has).collect());
    assert!(with.len() < 7 && !with.is_empty(), "{sizes:?}");
    for round in rounds(&few, 1, 5) {
        let selected = ids(&round["selected"]);
        let mut first = selected[..with.len()].to_vec();
        first.sort_unstable();
        assert_eq!(first, with, "{round}");
        assert_eq!(selected[with.len()..], without[..7 - with.len()], "{round}");
    }
}

/// Points 0 to 4 lie at 0, 1, 2, 10 and 11. Alone they have totals of 24, 21, 20, 28 and 31: point 2 is first, and
/// leaves distances of 2, 1, 0, 8 and 9. With point 0 or 1 beside it 18 are left; with point 3 it is 2 + 1 + 1 = 4,
/// with point 4 as well, so that 3 is second. Then point 0 leaves 1 + 1, point 1 as well, and point 4 leaves 2 + 1: 0
/// is third. Points 1 and 3 would have been better than 2 and 3, by 3 to 4: each step looks at itself alone.
#[test]
fn five_points_by_hand() {
    let line: Changes = [0.0, 1.0, 2.0, 10.0, 11.0].map(|place| vec![place]).into_iter().enumerate().collect();
    assert_eq!([0, 1, 2, 3, 4].map(|point| total(&line, &[point])), [24.0, 21.0, 20.0, 28.0, 31.0]);
    assert_eq!([2, 3].map(|count| greedy(&line, count)), [vec![2, 3], vec![2, 3, 0]]);
    assert_eq!(nearest(&line, &[2, 3]).into_values().collect::<Vec<_>>(), [2.0, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!([total(&line, &[2, 3]), total(&line, &[2, 3, 0]), total(&line, &[1, 3])], [4.0, 2.0, 3.0]);
}

/// Two clients, one at a time: both are unknown at first. From then on either leaves the distance between them, and 0
/// has the smaller id. Three clients, two at a time: in the second selection 2 is unknown and does not count, and 0 is
/// as good as 1. Numbers are in units of the distance from 0 to 1.
#[test]
fn two_and_three_clients_by_hand() {
    let of = |clients: usize, cohort: usize| {
        let scenario = changed(WORLD, "clients = 9", &format!("clients = {clients}"));
        rounds(&changed(&scenario, "cohort = 3", &format!("cohort = {cohort}")), 1, 4)
    };
    let (two, three, none) = (of(2, 1), of(3, 2), f64::NAN);
    for (round, selected, unknown, units) in [
        (&two[0], vec![0], vec![0], vec![none; 2]),
        (&two[1], vec![1], vec![1], vec![none; 2]),
        (&two[2], vec![0], vec![], vec![0.0, 1.0]),
        (&two[3], vec![0], vec![], vec![0.0, 1.0]),
        (&three[1], vec![2, 0], vec![2], vec![0.0, 1.0, none]),
    ] {
        let said = &round["explain"][0];
        assert_eq!((ids(&round["selected"]), ids(&said["unknown"])), (selected, unknown), "{round}");
        let (found, unit) = (numbers(&said["distance"]), said["total"].as_f64().unwrap_or(f64::NAN));
        assert_eq!(found.len(), units.len(), "{round}");
        for (found, units) in found.into_iter().zip(units) {
            assert!(found.is_nan() && units.is_nan() || found == units * unit && unit > 0.0, "{round}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (from, to) = (WORLD.find("[task").unwrap(), WORLD.find("[policy").unwrap());
    let scripted = "[task.scripted]\nvalues = [0.5]\nclient_losses = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]\n";
    for (scenario, part) in [
        (format!("{WORLD}sample = 0\n"), "sample"),
        (format!("{}{scripted}{}", &WORLD[..from], &WORLD[to..]), "changes"),
        (format!("{WORLD}updates = \"newest\"\n"), "updates"),
    ] {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        assert!(["divfl", part].iter().all(|word| answer.stderr.contains(word)), "{part}: {}", answer.stderr);
    }
}
