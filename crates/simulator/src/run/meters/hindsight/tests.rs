//! The regret in hindsight against sets, utilities and updates that are worked out in another way.

mod servers;

use super::*;
use crate::policy::{Policy, PolicyConfig, PolicyRng, Selection, SelectionRequest, ServerView};
use crate::recorder::NoSink;
use crate::run::tests;
use crate::run::{Evaluations, Protocol, Run, RunSettings};
use fedgenie_core::failure::Failure;
use fedgenie_core::oracle::brute;
use fedgenie_core::oracle::utility::UtilityConfig;
use fedgenie_core::oracle::{Instance, TIE};
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::{Batch, evaluate};
use fedgenie_learning::task::Labelled;

/// Eight clients of different sizes and speeds, three a round.
const EIGHT: &str = r#"
    population.clients = 8
    population.latency.download = { constant = "25 ms" }
    population.latency.compute = { exponential = { mean = { uniform = ["0.1 s", "1 s"] }, shift = "0.1 s" } }
    population.latency.upload = { constant = "25 ms" }
    task.linear-regression = { examples = 700, features = 4, partition = { gamma-sized = { shape = 1.0 } } }
    training = { epochs = 2, batch = 16, lr = 0.02 }
    hindsight = { kappa = 0.5 }
    protocol.synchronous = { cohort = 3 }
"#;

fn with(more: &str) -> World {
    tests::world(EIGHT, more)
}

/// Makes the given choices in turn, then repeats the last one.
#[derive(Stateful)]
struct Script(Vec<Vec<ClientId>>);

impl Policy for Script {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(&self.0[(ask.round.0 as usize - 1).min(self.0.len() - 1)]);
        Ok(())
    }
}

fn ids(clients: &[u32]) -> Vec<ClientId> {
    clients.iter().map(|&client| ClientId(client)).collect()
}

fn scripted<'w>(world: &'w World, rounds: &[Vec<ClientId>]) -> Run<'w> {
    let settings = RunSettings {
        evaluate: Evaluations::every(1),
        record_every: 1,
        parallel: false,
        explain: false,
        updates: false,
        battery: false,
    };
    let policy: Box<dyn Policy> = Box::new(Script(rounds.to_vec()));
    Run::new(world, "script", policy, settings, NoSink)
}

/// A different choice in each round.
fn in_turn(rounds: u32) -> Vec<Vec<ClientId>> {
    (0..rounds).map(|round| [0, 1, 3].map(|step| ClientId((3 * round + step) % 8)).to_vec()).collect()
}

fn meter<'a, 'w>(run: &'a Run<'w>) -> &'a HindsightMeter<'w> {
    let Protocol::Rounds(rounds) = &run.protocol else { panic!("a protocol in rounds") };
    rounds.hindsight.as_ref().unwrap()
}

fn learning<'a, 'w>(run: &'a Run<'w>) -> &'a Learning<'w> {
    run.server.learning.as_ref().unwrap()
}

/// The jobs of a round in which every client is asked.
fn jobs(clients: &[ClientId], round: Round) -> Vec<JobKey> {
    clients.iter().map(|&client| JobKey { client, number: JobNumber(round.0) }).collect()
}

/// `−κ·T̃` of every client in a round, from the draws.
fn speeds(world: &World, round: Round) -> Vec<f64> {
    let config = world.hindsight.as_ref().unwrap();
    let one = |client| {
        let draw = world
            .population
            .draw(&world.streams, Purpose::Latency, ClientId(client), JobNumber(round.0), [1.0; 2])
            .unwrap();
        -config.kappa * draw.effective(world.protocol.rule.cut()).seconds() / config.t_semi.seconds()
    };
    (0..world.population.len() as u32).map(one).collect()
}

const UTILITIES: [&str; 2] = ["hindsight.utility = { loss-drop = {} }", "hindsight.utility = { contribution = {} }"];

/// Latencies 1, 2 and 4 s; κ = 0.01 and T_semi = 2 s, so that a second costs 0.005.
const THREE: &str = r#"
    population.clients = 3
    population.latency.compute = { constant = { each = ["0.95 s", "1.95 s", "3.95 s"] } }
    protocol.synchronous.cohort = 2
    hindsight.kappa = 0.01
    hindsight.t_semi = "2 s"
"#;

/// A run that asks only one client measures the value of each of three: the model is then its own, and the drop of the
/// test loss its utility.
#[test]
fn utilities_are_those_of_clients_that_are_asked_alone() {
    let alone = with(&format!("{THREE}\n protocol.synchronous.cohort = 1"));
    let start = scripted(&alone, &[ids(&[0])]).finish().unwrap().0[0].1;
    let drops: Vec<f64> = (0..3)
        .map(|client| {
            let mut run = scripted(&alone, &[ids(&[client])]);
            run.step().unwrap();
            let &(name, loss) = &run.metrics()[0];
            assert_eq!(name.to_string(), "test_loss");
            start - loss
        })
        .collect();
    let world = with(THREE);
    let values = [(0, 1, 2.0), (0, 2, 4.0), (1, 2, 4.0)].map(|(i, j, slowest)| drops[i] + drops[j] - 0.005 * slowest);
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (set, value) in [[0, 1], [0, 2], [2, 1]].iter().zip(values) {
        let mut run = scripted(&world, &[ids(set)]);
        run.step().unwrap();
        for (found, expected) in meter(&run).utilities.iter().zip(&drops) {
            // The server's average of one update is that update but for a rounding in single precision.
            approx::assert_relative_eq!(*found, *expected, max_relative = 1e-5);
        }
        let regret = run.regret().hindsight.unwrap();
        assert!(regret >= 0.0);
        approx::assert_abs_diff_eq!(regret, best - value, epsilon = 1e-6);
    }
}

#[test]
fn the_best_set_is_the_best_of_all() {
    for utility in UTILITIES {
        for protocol in ["", "protocol.synchronous.timeout = \"0.7 s\"\n population.dropout = { compute = \"0.3 /s\" }"]
        {
            let world = with(&format!("{utility}\n{protocol}"));
            let choices = in_turn(25);
            let mut run = scripted(&world, &choices);
            let (mut total, mut positive) = (0.0, 0);
            for choice in &choices {
                run.step().unwrap();
                let meter = meter(&run);
                let speed = speeds(&world, run.round());
                let instance = Instance { speed: &speed, gain: &meter.utilities, cohort: 3, take: 3 };
                let (best, set) = brute::solve(&instance);
                assert_eq!(meter.regret.last().best, set);
                let mut chosen: Vec<u32> = choice.iter().map(|client| client.0).collect();
                chosen.sort_unstable();
                let lost = best - instance.value(&chosen);
                positive += u32::from(lost > TIE);
                total += lost;
                approx::assert_abs_diff_eq!(run.regret().hindsight.unwrap(), total, epsilon = 1e-9);
            }
            assert!(positive > 15, "a choice in turn is rarely the best: {positive}");
        }
    }
}

/// The best set of a round does not depend on the choice of that round, so that a script can be written round by round.
#[test]
fn who_always_chooses_the_best_set_loses_nothing() {
    for utility in UTILITIES {
        let world = with(utility);
        let mut script = vec![ids(&[0, 1, 2])];
        for round in 0..12 {
            let mut run = scripted(&world, &script);
            (0..=round).for_each(|_| run.step().unwrap());
            let best = ids(&meter(&run).regret.last().best);
            script[round] = best.clone();
            script.push(best);
        }
        let mut run = scripted(&world, &script);
        (0..12).for_each(|_| run.step().unwrap());
        assert_eq!(run.regret().hindsight, Some(0.0));
        assert!(script.windows(2).any(|pair| pair[0] != pair[1]), "the best set changes");
    }
}

#[test]
fn what_a_client_would_have_returned_is_what_it_returns() {
    let world = with("");
    let choices = in_turn(6);
    let mut run = scripted(&world, &choices);
    for choice in &choices {
        let start = learning(&run).model(0);
        run.step().unwrap();
        let mut asked: Vec<ClientId> = choice.clone();
        asked.sort_unstable();
        // Among all others, in another order and another batch.
        let everyone: Vec<ClientId> = (0..8).rev().map(ClientId).collect();
        let mut updates = Vec::new();
        learning(&run)
            .train_in_hindsight(&start, run.round(), &jobs(&everyone, run.round()), true, &mut updates)
            .unwrap();
        for (index, client) in asked.into_iter().enumerate() {
            let real = learning(&run).update(index);
            let imagined = &updates[7 - client.index()];
            let bits = |update: &Update| update.parameters.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(imagined), bits(real));
            assert_eq!(imagined.first_loss.to_bits(), real.first_loss.to_bits());
            assert_ne!(bits(real), start.iter().map(|weight| weight.to_bits()).collect::<Vec<_>>());
        }
    }
}

/// A timeout of 0.7 s and losses: an update that does not arrive is worth nothing, and the round waits for it.
#[test]
fn updates_that_never_count_are_worth_nothing() {
    let world = with("protocol.synchronous.timeout = \"0.7 s\"\n population.dropout = { compute = \"0.3 /s\" }");
    let mut run = scripted(&world, &in_turn(20));
    let (mut lost, mut late) = (0, 0);
    for _ in 0..20 {
        run.step().unwrap();
        for (client, utility) in (0..).zip(&meter(&run).utilities) {
            let draw = world
                .population
                .draw(&world.streams, Purpose::Latency, ClientId(client), JobNumber(run.round().0), [1.0; 2])
                .unwrap();
            let is_late = draw.total().seconds() > 0.7;
            assert_eq!(*utility == 0.0, draw.loss.is_some() || is_late, "{client} in {}", run.round());
            lost += u32::from(draw.loss.is_some());
            late += u32::from(is_late);
        }
    }
    assert!(lost > 5 && late > 5);
}

/// A learning rate at which single clients diverge; they are never asked.
#[test]
fn the_run_goes_on_where_only_those_diverge_who_were_not_asked() {
    let world = with(
        "training.lr = 1.1\n training.epochs = 1\n training.batch = 1\n \
         protocol.synchronous.cohort = 1",
    );
    let sizes: Vec<usize> = (0..8).map(|client| learning(&scripted(&world, &[])).examples(ClientId(client))).collect();
    let smallest = (0..8).min_by_key(|&client| sizes[client as usize]).unwrap();
    let mut run = scripted(&world, &[ids(&[smallest])]);
    run.step().unwrap();
    let meter = meter(&run);
    assert!(meter.utilities.iter().all(|utility| utility.is_finite()));
    assert!(meter.utilities.contains(&0.0), "somebody diverged: {:?}, {sizes:?}", meter.utilities);
    assert_ne!(meter.utilities[smallest as usize], 0.0);
}

/// Means 0.15 + E, of eight clients the seventh smallest; and a unit that is given.
#[test]
fn the_unit_of_time_follows_from_the_population() {
    let each = r#"population.latency.compute = { constant = { each = ["8 s", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s", "7 s"] } }"#;
    assert_eq!(with(each).hindsight.as_ref().unwrap().t_semi.seconds(), 7.05);
    let given = with(&format!("{each}\n hindsight.t_semi = \"2 s\"\n hindsight.kappa = 3.0")).hindsight.unwrap();
    assert_eq!((given.t_semi.seconds(), given.kappa), (2.0, 3.0));
    assert_eq!(given.utility, UtilityConfig::default());
}

/// Equations (9) to (13) of MAB-FRS over four rounds, from models and data alone.
#[test]
fn contributions_follow_the_policys_own_history() {
    let world = with("hindsight.utility = { contribution = { gamma = 0.25, a = 2.0, b = 0.125 } }");
    let learner = world.task.as_deref().unwrap().downcast::<Labelled>().unwrap();
    let loss = |parameters: &[f32], data, examples: &[u32]| {
        evaluate(&*learner.model, parameters, Batch { data, examples }, false)
    };
    let test: Vec<u32> = (0..learner.data.test.examples() as u32).collect();
    let quality = |parameters: &[f32]| -loss(parameters, &learner.data.test, &test).loss();
    let choices = in_turn(4);
    let mut run = scripted(&world, &choices);
    let (mut reputation, mut before, mut improved) = ([0.0; 8], f64::INFINITY, 0);
    let everyone: Vec<ClientId> = (0..8).map(ClientId).collect();
    for choice in &choices {
        let start = learning(&run).model(0);
        run.step().unwrap();
        let mut updates = Vec::new();
        learning(&run)
            .train_in_hindsight(&start, run.round(), &jobs(&everyone, run.round()), false, &mut updates)
            .unwrap();
        let qualities = everyone.iter().map(|&client| {
            let examples = learner.partition.client(client);
            let squares = examples.iter().map(|&example| loss(&start, &learner.data.train, &[example]).loss_sum);
            let mean = squares.map(|loss| loss * loss).sum::<f64>() / examples.len() as f64;
            examples.len() as f64 * mean.sqrt()
        });
        let qualities: Vec<f64> = qualities.collect();
        let low = qualities.iter().copied().fold(f64::INFINITY, f64::min);
        let high = qualities.iter().copied().fold(0.0, f64::max);
        let sent = quality(&start);
        improved += u32::from(sent > before);
        for client in 0..8 {
            let own = &updates[client].parameters;
            let deviation = own.iter().zip(&*start).map(|(own, sent)| f64::from(own - sent).abs()).sum::<f64>() / 5.0;
            let kernel = libm::exp(-deviation);
            let relevance = if sent > before { kernel } else { 1.0 - kernel };
            let after = 0.25 * (quality(own) - sent) + 0.75 * reputation[client];
            let expected = 2.0 * relevance * after + 0.125 * (qualities[client] - low) / (high - low);
            approx::assert_relative_eq!(meter(&run).utilities[client], expected, max_relative = 1e-6);
            if choice.contains(&ClientId(client as u32)) {
                reputation[client] = after;
            }
        }
        before = sent;
    }
    assert_eq!(improved, 3, "each of the first rounds improves the model, the first is not compared with any");
}

/// Every set of three of eight clients: its updates trained anew, averaged by data size, and tested; apart from the
/// meter's own path but for the training of a client.
#[test]
fn sets_are_worth_what_their_average_is_worth() {
    for (size, least) in [("exactly", 3), ("at-most", 1)] {
        let world = with(&format!(
            "hindsight.utility = {{ aggregate = {{ test_loss = -2.0 }} }}\n hindsight.size = \"{size}\"\n \
             hindsight.t_semi = \"1 s\"\n hindsight.kappa = 0.25"
        ));
        let labelled = world.task.as_deref().unwrap().downcast::<Labelled>().unwrap();
        let test: Vec<u32> = (0..labelled.data.test.examples() as u32).collect();
        let everyone: Vec<ClientId> = (0..8).map(ClientId).collect();
        let choices = in_turn(3);
        let mut run = scripted(&world, &choices);
        let (mut cumulative, mut updates) = (0.0, Vec::new());
        for choice in &choices {
            let start = learning(&run).model(0);
            run.step().unwrap();
            let jobs = jobs(&everyone, run.round());
            learning(&run).train_in_hindsight(&start, run.round(), &jobs, false, &mut updates).unwrap();
            let speeds = speeds(&world, run.round());
            let worth = |set: &[u32]| {
                let sizes = set.iter().map(|&client| labelled.partition.size(ClientId(client)) as f64);
                let total: f64 = sizes.clone().sum();
                let place = |place: usize| {
                    let weighted = set.iter().zip(sizes.clone());
                    let sum =
                        weighted.map(|(&client, size)| size * f64::from(updates[client as usize].parameters[place]));
                    (sum.sum::<f64>() / total) as f32
                };
                let average: Vec<f32> = (0..start.len()).map(place).collect();
                let batch = Batch { data: &labelled.data.test, examples: &test };
                let slowest = set.iter().map(|&client| speeds[client as usize]).fold(f64::INFINITY, f64::min);
                -2.0 * evaluate(&*labelled.model, &average, batch, false).loss() + slowest
            };
            let sets = (least..=3).flat_map(|size| brute::subsets(8, size));
            let best = sets.map(|set| worth(&set)).fold(f64::NEG_INFINITY, f64::max);
            let mut chosen: Vec<u32> = choice.iter().map(|client| client.0).collect();
            chosen.sort_unstable();
            cumulative += best - worth(&chosen);
            let found = meter(&run).regret.last();
            approx::assert_abs_diff_eq!(found.best_value, best, epsilon = 1e-6);
            approx::assert_abs_diff_eq!(found.own_value, worth(&chosen), epsilon = 1e-6);
            approx::assert_abs_diff_eq!(worth(&found.best), best, epsilon = 1e-6);
        }
        approx::assert_abs_diff_eq!(meter(&run).regret.cumulative(), cumulative, epsilon = 1e-5);
        assert!(cumulative > 0.01, "{size}: somebody else was better: {cumulative}");
    }
}

/// The set of two to four of eight clients that is worth the most, or of as many as the budget pays for: its updates
/// trained anew, averaged by data size, and tested, with a price for time and for bytes.
#[test]
fn the_policy_that_knows_the_best_set_selects_it() {
    let job = 2 * 20;
    let world = with(&format!(
        "protocol.synchronous.cohort = 4\n hindsight.size = \"at-most\"\n hindsight.t_semi = \"1 s\"\n \
         hindsight.kappa = 0.01\n training.lr = 0.3\n \
         hindsight.utility = {{ aggregate = {{ test_loss = -2.0, traffic = -0.01 }} }}\n \
         budget = {{ traffic = {}, least = 2 }}",
        15 * job
    ));
    assert_eq!(world.one_price(), Some(job));
    let labelled = world.task.as_deref().unwrap().downcast::<Labelled>().unwrap();
    let test: Vec<u32> = (0..labelled.data.test.examples() as u32).collect();
    let everyone: Vec<ClientId> = (0..8).map(ClientId).collect();
    let policy = world.policy(&PolicyConfig::Hindsight(Default::default()).into()).unwrap();
    let settings = RunSettings { record_every: 1, ..RunSettings::default() };
    let mut run = Run::new(&world, "hindsight", policy, settings, NoSink);
    let (mut counts, mut updates, mut sizes) = (vec![0; 8], Vec::new(), Vec::new());
    loop {
        let start = learning(&run).model(0);
        let rest = 15 * job - (run.accounts().down_bytes + run.accounts().up_bytes);
        run.step().unwrap();
        let selected: Vec<u32> =
            (0..8).filter(|&client| run.counts()[client] > counts[client]).map(|client| client as u32).collect();
        if selected.is_empty() {
            break;
        }
        counts = run.counts().to_vec();
        learning(&run)
            .train_in_hindsight(&start, run.round(), &jobs(&everyone, run.round()), false, &mut updates)
            .unwrap();
        let speeds = speeds(&world, run.round());
        let worth = |set: &[u32]| {
            let size = |client: &u32| labelled.partition.size(ClientId(*client)) as f64;
            let total: f64 = set.iter().map(size).sum();
            let place = |place: usize| {
                let part = |client: &u32| size(client) * f64::from(updates[*client as usize].parameters[place]);
                (set.iter().map(part).sum::<f64>() / total) as f32
            };
            let average: Vec<f32> = (0..start.len()).map(place).collect();
            let batch = Batch { data: &labelled.data.test, examples: &test };
            let slowest = set.iter().map(|&client| speeds[client as usize]).fold(f64::INFINITY, f64::min);
            let bytes = -0.01 * (set.len() as u64 * job) as f64 / (15 * job) as f64;
            -2.0 * evaluate(&*labelled.model, &average, batch, false).loss() + slowest + bytes
        };
        let most = 4.min((rest / job) as usize);
        let all = (2..=most).flat_map(|size| brute::subsets(8, size));
        let best = all.max_by(|one, other| worth(one).total_cmp(&worth(other))).unwrap();
        assert_eq!(selected, best, "round {}", run.round().0);
        let found = meter(&run).regret.last();
        assert_eq!((&found.best, found.own_value), (&best, found.best_value));
        approx::assert_abs_diff_eq!(found.best_value, worth(&best), epsilon = 1e-6);
        assert_eq!(run.regret().hindsight, Some(0.0));
        sizes.push(best.len());
    }
    assert!(run.is_spent() && sizes.len() >= 4, "{sizes:?}");
    assert!(sizes.iter().any(|size| *size != sizes[0]), "sizes differ: {sizes:?}");
}

/// A round without judgement costs nothing and adds nothing.
#[test]
fn every_third_round_is_judged() {
    let world = with("hindsight.every = 3");
    let mut run = scripted(&world, &in_turn(9));
    let mut steps = Vec::new();
    for _ in 0..9 {
        run.step().unwrap();
        steps.push(run.regret().hindsight);
    }
    assert_eq!(steps[..2], [None, None]);
    assert!(steps[2].is_some() && steps[2] == steps[3] && steps[3] == steps[4]);
    assert!(steps[5] > steps[4] && steps[5] == steps[7] && steps[8] > steps[7]);
}
