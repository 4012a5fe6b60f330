//! TiFL: every tier, accuracy, probability and draw found again from a run's records and models, two cases by hand, and
//! settings that are refused.

use super::fedacs::{ids, numbers, rounds};
use super::refl::{is_close, is_on, nanoseconds};
use super::support::{SCENARIO, Workplace, changed, labelled, play_policies, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::ClientId;
use fedgenie::model::{Batch, outputs};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::scenario::tree;
use fedgenie::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Nine clients on devices that differ, two at a time.
const WORLD: &str = r#"
name = "tifl"
seeds = 1
stop.rounds = 40
task.softmax-regression.data.synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 }
task.softmax-regression.partition.dirichlet.alpha = 0.3
training = { batch = 8, optimizer.sgd.lr = 0.05 }
protocol.synchronous = { cohort = 2 }
policy.tifl = { tiers = 3, interval = 4, credits = 10 }
[population]
clients = 9
interrupted = "run-on"
[population.latency]
download.constant.each = ["0.1 s", "0.6 s", "0.2 s", "0.1 s", "0.1 s", "0.3 s", "0.2 s", "0.2 s", "0.7 s"]
compute.exponential.mean.each = ["0.8 s", "0.2 s", "0.7 s", "1.5 s", "0.3 s", "1 s", "0.4 s", "0.7 s", "0.6 s"]
upload = { constant = "0.2 s" }
"#;
/// With ln 2 of the mean of compute, the medians add up to 0.855, 0.939, 0.885, 1.340, 0.508, 1.193, 0.677, 0.885 and
/// 1.316 s. By compute alone, or by means, the tiers would be others.
const TIERS: [usize; 9] = [0, 1, 1, 2, 0, 2, 0, 1, 2];

/// Each device is on for a time and off for a time, again and again from 0 on. The first one is never off.
const ON: [f64; 9] = [99999.0, 4.1, 5.4, 4.7, 5.7, 5.8, 3.3, 3.1, 6.8];
const OFF: [f64; 9] = [1.0, 3.1, 3.0, 5.5, 3.8, 5.0, 3.8, 4.3, 2.7];

fn each(seconds: &[f64]) -> String {
    format!("{{ constant = {{ each = {:?} }} }}", seconds.iter().map(|of| format!("{of} s")).collect::<Vec<_>>())
}

fn away(scenario: &str, start: &str, on: &[f64], off: &[f64]) -> String {
    format!("{scenario}[population.availability.on-off]\nstart = {start:?}\non = {}\noff = {}\n", each(on), each(off))
}

fn with_task(task: &str) -> String {
    let (from, to) = (WORLD.find("task").unwrap(), WORLD.find("protocol").unwrap());
    format!("{}{task}{}", &WORLD[..from], &WORLD[to..])
}

/// How many training examples a client has, and how many of these have the class that the model predicts, the first of
/// equal scores; or, where they have numbers, less the sum of squared errors.
fn measured(world: &World, model: &[f32], client: usize) -> [f64; 2] {
    let task = labelled(world);
    let examples = task.partition.client(ClientId::from_index(client));
    let found = outputs(&*task.model, model, &[Batch { data: &task.data.train, examples: &examples }], false);
    let mut sum = 0.0;
    for (example, row) in found.numbers.chunks_exact(found.width).enumerate() {
        if let Some(labels) = found.labels() {
            let best = (1..row.len()).fold(0, |best, class| if row[class] > row[best] { class } else { best });
            sum += f64::from(u8::from(best == usize::from(labels[example])));
        } else {
            let error = f64::from(row[0]) - f64::from(found.values().unwrap()[example]);
            sum -= error * error;
        }
    }
    [examples.len() as f64, sum]
}

struct Rules {
    is_away: bool,
    credits: [usize; 3],
    p: [f64; 3],
    /// Of each tier when it was last heard.
    accuracy: [f64; 3],
    /// The tier drawn in each selection.
    drawn: Vec<usize>,
    late_clients: BTreeSet<usize>,
    down_bytes: u64,
    /// How often `p` changed, the tier drawn last had improved, nobody of a tier was asked, or was a candidate.
    seen: [usize; 4],
}

impl Rules {
    /// Compares the accuracies with those of the clients that were there. Unless the tier drawn last has improved, the
    /// tiers with credits get probabilities by their ranks.
    fn ask(&mut self, found: &[f64], there: &[usize], measured: impl Fn(usize) -> [f64; 2]) {
        let before = self.accuracy;
        for (tier, &told) in found.iter().enumerate() {
            let heard = there.iter().filter(|&&client| TIERS[client] == tier).map(|&client| measured(client));
            let [examples, sum] = heard.fold([0.0; 2], |all, one| [all[0] + one[0], all[1] + one[1]]);
            if examples == 0.0 {
                self.seen[2] += 1;
                assert!(is_close(told, before[tier]), "{found:?}, {before:?}");
                continue;
            }
            let expected = sum / examples;
            assert!((told - expected).abs() < 1e-5 * expected.abs().max(1.0), "{found:?}, {expected}");
            self.accuracy[tier] = told;
        }
        let Some(&last) = self.drawn.last() else { return };
        if self.accuracy[last] > before[last] {
            self.seen[1] += 1;
            return;
        }
        let mut ranked: Vec<usize> = (0..3).filter(|&tier| self.credits[tier] > 0).collect();
        ranked.sort_by(|&one, &other| self.accuracy[one].total_cmp(&self.accuracy[other]).then(one.cmp(&other)));
        let (old, count) = (std::mem::take(&mut self.p), ranked.len());
        for (place, tier) in ranked.into_iter().enumerate() {
            self.p[tier] = 2.0 * (count - place) as f64 / (count * (count + 1)) as f64;
        }
        self.seen[0] += usize::from(self.p != old);
    }

    /// The probabilities of the draw.
    fn probabilities(&mut self, candidates: &[usize]) -> [f64; 3] {
        let is_present = |tier: &usize| candidates.iter().any(|&client| TIERS[client] == *tier);
        let mut open: Vec<usize> = (0..3).filter(is_present).collect();
        self.seen[3] += 3 - open.len();
        if open.iter().any(|&tier| self.credits[tier] > 0) {
            open.retain(|&tier| self.credits[tier] > 0);
        }
        let sum: f64 = open.iter().map(|&tier| self.p[tier]).sum();
        let share = |tier: usize| if sum > 0.0 { self.p[tier] / sum } else { 1.0 / open.len() as f64 };
        std::array::from_fn(|tier| if open.contains(&tier) { share(tier) } else { 0.0 })
    }

    /// Compares a round with the rules, of which the model has so many bytes and is so accurate for a client.
    fn check(&mut self, round: &Value, turn: u32, bytes: usize, measured: impl Fn(usize) -> [f64; 2]) {
        let (said, selected) = (&round["explain"][0], ids(&round["selected"]));
        let (candidates, now) = (ids(&said["clients"]), nanoseconds(round["opened_s"].as_f64().unwrap()));
        let is_there = |client: &usize| !self.is_away || is_on(ON[*client], OFF[*client], now, now + 1);
        let there: Vec<usize> = (0..9).filter(is_there).filter(|client| !self.late_clients.contains(client)).collect();
        let (asks, found) = (turn % 4 == 1, numbers(&said["tier_accuracy"]));
        assert!(asks || candidates == there && found.iter().all(|accuracy| accuracy.is_nan()), "round {turn}");
        if asks {
            self.ask(&found, &there, measured);
        }
        // All that are asked download the model, beside those selected.
        self.down_bytes += (bytes * (selected.len() + if asks { there.len() } else { 0 })) as u64;
        assert_eq!(round["down_bytes"].as_u64(), Some(self.down_bytes), "round {turn}");
        assert_eq!(numbers(&said["tier_credits"]), self.credits.map(|credits| credits as f64), "round {turn}");
        assert_eq!(numbers(&said["tier"]), candidates.iter().map(|&client| TIERS[client] as f64).collect::<Vec<_>>());
        let (p, found) = (self.probabilities(&candidates), numbers(&said["tier_p"]));
        assert!((0..3).all(|tier| is_close(found[tier], p[tier])), "round {turn}: {found:?}, {p:?}");
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        let u = rng.uniform();
        let drawn = (0..3).find(|&tier| p[..=tier].iter().sum::<f64>() > u).unwrap();
        assert_eq!(said["chosen_tier"].as_f64(), Some(drawn as f64), "round {turn}");
        let mut cards: Vec<usize> = candidates.into_iter().filter(|&client| TIERS[client] == drawn).collect();
        let count = cards.len().min(2);
        for place in 0..count {
            let other = place + rng.below((cards.len() - place) as u64) as usize;
            cards.swap(place, other);
        }
        assert_eq!(selected, cards[..count], "round {turn}");
        self.credits[drawn] = self.credits[drawn].saturating_sub(1);
        self.drawn.push(drawn);
        // A client whose late update came while clients were asked may be selected, and late, in the same round.
        for job in ["joined", "lost_late"].into_iter().filter_map(|key| round[key].as_array()).flatten() {
            self.late_clients.remove(&(job["client"].as_u64().unwrap() as usize));
        }
        self.late_clients.extend(ids(&round["late"]));
    }
}

/// Plays forty rounds and compares each with the rules.
fn checked(scenario: &str) -> Rules {
    let world = world(scenario, 1);
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let source = Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].source();
    let mut models = play_policies(&world, world.policies(&source).unwrap(), 40).unwrap().seen.models.into_iter();
    let mut model = world.task.as_ref().unwrap().initial_model(0, &world.streams);
    let (accuracy, drawn, late_clients) = ([f64::NEG_INFINITY; 3], Vec::new(), BTreeSet::new());
    let (is_away, credits, p) = (scenario.contains("on-off"), [10; 3], [1.0 / 3.0; 3]);
    let mut rules = Rules { is_away, credits, p, accuracy, drawn, late_clients, down_bytes: 0, seen: [0; 4] };
    for (round, turn) in rounds(scenario, 1, 40).iter().zip(1..) {
        rules.check(round, turn, 4 * model.len(), |client| measured(&world, &model, client));
        if !ids(&round["updates"]["clients"]).is_empty() {
            model = models.next().unwrap();
        }
    }
    assert!(models.next().is_none(), "each round with updates made a model");
    rules
}

#[test]
fn every_draw_follows_from_records_and_models() {
    let late = "protocol.deadline = { cohort = 2, deadline = \"0.9 s\", late.carry = {} }";
    let carried = |scenario: &str| changed(scenario, "protocol.synchronous = { cohort = 2 }", late);
    // A measure of which less is better.
    let linear = "task.linear-regression = { examples = 700, partition = \"declared\" }\n\
                  training = { batch = 8, optimizer.sgd.lr = 0.05 }\n";
    let sizes = "clients = 9\ndata_size.each = [20, 60, 35, 90, 110, 75, 45, 130, 25]\n";
    for scenario in [WORLD.to_owned(), changed(&with_task(linear), "clients = 9\n", sizes)] {
        let Rules { drawn, seen, .. } = checked(&scenario);
        // Of thirty credits each selection takes one: no tier is drawn without before all are spent.
        assert!((0..3).all(|tier| drawn[..30].iter().filter(|&&drawn| drawn == tier).count() == 10), "{drawn:?}");
        assert!((0..3).any(|tier| !drawn[24..30].contains(&tier)), "one is spent early: {drawn:?}");
        assert!(seen[1] >= 5 && (seen[0] >= 2 || scenario != WORLD), "{seen:?}");
        checked(&carried(&scenario));
        for scenario in [scenario.clone(), carried(&scenario)] {
            let seen = checked(&away(&scenario, "on", &ON, &OFF)).seen;
            assert!(seen[0] >= 2 && seen[1] >= 2 && seen[2] >= 1 && seen[3] >= 5, "{seen:?}");
        }
    }
}

/// Clients that take so many seconds, one at a time, of one of three classes each. No update comes in time, so that the
/// model predicts class 0 for ever, and the accuracy of a client is 1 or 0.
fn by_hand(seconds: &[f64]) -> String {
    let (clients, compute) = (seconds.len(), each(seconds));
    format!(
        r#"
name = "by-hand"
seeds = 1
stop.rounds = 8
task.softmax-regression.data.synthetic = {{ classes = 3, height = 3, width = 3, train = 180, test = 30 }}
task.softmax-regression.partition.label-shards.shards_per_client = 1
training = {{ batch = 8, optimizer.sgd.lr = 0.05 }}
protocol.deadline = {{ cohort = 1, deadline = "0.5 s" }}
policy.tifl = {{ tiers = 3, interval = 2, credits = 3 }}
[population]
clients = {clients}
latency = {{ download = "0 s", compute = {compute}, upload = "0 s" }}
"#
    )
}

/// Tiers are clients 1 and 3, 0 and 4, 2 and 5: of equal latencies, 0 comes before 5. Clients 1 and 3 have class 0, so
/// that accuracies are always 1, 0, 0, and never better than before. In selection 3, tiers 1, 2, 0 get ½, ⅓, ⅙; then
/// the credits of tier 1 are spent, and tiers 2 and 0 have ⅔ and ⅓, until tier 0 is left alone. The first number of a
/// stream draws the tier, the second the smaller id of its two clients if it is below ½, else the larger.
#[test]
fn eight_selections_by_hand() {
    let found = rounds(&by_hand(&[5.0, 2.0, 6.0, 1.0, 4.0, 5.0]), 1, 8);
    // Credits before, six times the probabilities, two numbers of the stream, tier, client, models sent down so far.
    let expected = [
        ([3.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.3636, 0.5525], 1, 4, 7),
        ([3.0, 2.0, 3.0], [2.0, 2.0, 2.0], [0.3352, 0.0455], 1, 0, 8),
        ([3.0, 1.0, 3.0], [1.0, 3.0, 2.0], [0.2475, 0.4905], 1, 0, 15),
        ([3.0, 0.0, 3.0], [2.0, 0.0, 4.0], [0.0832, 0.6793], 0, 3, 16),
        ([2.0, 0.0, 3.0], [2.0, 0.0, 4.0], [0.4567, 0.8754], 2, 5, 23),
        ([2.0, 0.0, 2.0], [2.0, 0.0, 4.0], [0.6655, 0.3226], 2, 2, 24),
        ([2.0, 0.0, 1.0], [2.0, 0.0, 4.0], [0.6533, 0.6200], 2, 5, 31),
        ([2.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.6043, 0.3018], 0, 1, 32),
    ];
    for ((round, turn), (credits, sixths, uniform, tier, client, models)) in found.iter().zip(1..).zip(expected) {
        let said = &round["explain"][0];
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, turn);
        assert!(uniform.iter().all(|uniform| (rng.uniform() - uniform).abs() < 1e-4), "round {turn}");
        assert_eq!(numbers(&said["tier"]), [1.0, 0.0, 2.0, 0.0, 1.0, 2.0]);
        assert_eq!(numbers(&said["tier_credits"]), credits, "round {turn}");
        assert!(numbers(&said["tier_p"]).iter().zip(sixths).all(|(p, of)| is_close(6.0 * p, of)), "round {turn}");
        assert_eq!((said["chosen_tier"].as_f64(), ids(&round["selected"])), (Some(f64::from(tier)), vec![client]));
        let accuracy = if turn % 2 == 1 { [1.0, 0.0, 0.0] } else { [f64::NAN; 3] };
        assert!(numbers(&said["tier_accuracy"]).into_iter().zip(accuracy).all(|(found, of)| is_close(found, of)));
        // Three classes of nine weights and a bias, four bytes each; up goes a number of eight bytes for each answer.
        assert_eq!(round["down_bytes"].as_u64(), Some(120 * models), "round {turn}");
        assert_eq!(round["up_bytes"].as_u64(), Some(8 * (models - u64::from(turn))), "round {turn}");
    }
}

/// Client 0 alone is there for selections 1 and 2. Before selection 3, client 1 is asked too, and client 2 comes after
/// that: its tier, which was never heard, gets ½, tier 1, with an accuracy of 0, gets ⅓, and tier 0, with 1, gets ⅙.
#[test]
fn a_tier_that_was_never_heard_is_the_least_accurate() {
    let found = rounds(&away(&by_hand(&[1.0, 2.0, 4.0]), "off", &[2.2, 1.4, 5.0], &[1.0, 2.0, 2.7]), 1, 3);
    let said = |round: usize, key: &str| numbers(&found[round]["explain"][0][key]);
    assert!(said(0, "tier_accuracy")[1..].iter().all(|accuracy| accuracy.is_nan()));
    let (accuracy, p) = (said(2, "tier_accuracy"), said(2, "tier_p"));
    assert!(accuracy[..2] == [1.0, 0.0] && accuracy[2].is_nan(), "{accuracy:?}");
    assert!((0..3).all(|tier| is_close(6.0 * p[tier], [1.0, 2.0, 3.0][tier])), "{p:?}");
}

/// Losses that are looked up are no accuracy on a client's data: the run ends, and no tier is preferred in silence.
#[test]
fn a_task_that_measures_nothing_on_clients_data_ends_the_run() {
    let scenario = with_task("task.scripted = { values = [0.5], client_losses = [1, 2, 3, 4, 5, 6, 7, 8, 9] }\n");
    let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
    assert!(answer.code == 3 && answer.stderr.contains("measures nothing there"), "{answer:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    // By default each tier has ⌈40/3⌉ credits.
    let by_default = changed(WORLD, ", credits = 10", "");
    assert_eq!(numbers(&rounds(&by_default, 1, 1)[0]["explain"][0]["tier_credits"]), [14.0; 3]);
    for (scenario, part) in [
        (changed(WORLD, "tiers = 3", "tiers = 0"), "tiers"),
        (changed(WORLD, "tiers = 3", "tiers = 10"), "tiers"),
        (changed(WORLD, "interval = 4", "interval = 0"), "interval"),
        (changed(WORLD, "credits = 10", "credits = 0"), "credits"),
        (changed(&by_default, "stop.rounds = 40", "stop.virtual_time = \"40 s\""), "credits"),
        (with_task(""), "measures nothing"),
        (with_task("task.none = {}\n"), "measures nothing"),
    ] {
        let answer = Workplace::with(&scenario).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{part}: {answer:?}");
        assert!(["tifl", part].iter().all(|word| answer.stderr.contains(word)), "{part}: {}", answer.stderr);
    }
}
