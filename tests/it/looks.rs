//! Regret in hindsight by clients' answers, by the slope of the validation loss, and by the age of rows: against
//! enumeration of all sets, in rounds that are played by hand.

use super::little::{BIAS, EXAMPLES, ROWS, Round, Settings, TWO, loss, play, refused, rows, slope, step, text, world};
use super::support::{SCENARIO, line_of};
use fedgenie::id::ClientId;

const ALL: Settings = Settings { has_noise: false, charges: false, answers: true, has_slope: true };
/// Selections of five rounds, and the last one again.
const TURNS: &[&[u32]] = &[&[0, 3], &[5, 1], &[1, 2], &[3, 4], &[0, 5], &[4, 1]];
const COUNT: usize = 7;

/// The rounds by hand: before each, the model's bias and rows, how often each client's update counted, and the round in
/// which each row was last moved.
#[derive(Clone, Debug)]
struct Before {
    bias: f64,
    rows: [f64; ROWS as usize],
    counted: [f64; 6],
    moved: [u32; ROWS as usize],
}

impl Before {
    /// After a round in which these clients take part: the mean weighted by examples, rows that nobody sent stay.
    fn after(&self, round: u32, set: &[u32]) -> Self {
        let mut after = self.clone();
        let weight = |client: u32| EXAMPLES[client as usize] as f64;
        let members: Vec<u32> = set.iter().copied().filter(|&client| weight(client) > 0.0).collect();
        let total: f64 = members.iter().map(|&client| weight(client)).sum();
        for &client in &members {
            after.bias += weight(client) / total * f64::from(BIAS[client as usize]);
            for row in rows(client) {
                after.rows[row as usize] += weight(client) / total * f64::from(step(client));
                after.moved[row as usize] = round;
            }
            after.counted[client as usize] += 1.0;
        }
        after
    }
}

fn before() -> Vec<Before> {
    let mut found = vec![Before { bias: 0.0, rows: [0.0; 6], counted: [0.0; 6], moved: [0; 6] }];
    for round in 1..COUNT as u32 {
        let turn = TURNS[(round as usize - 1).min(TURNS.len() - 1)];
        found.push(found[round as usize - 1].after(round, turn));
    }
    found
}

/// All sets of a size, in lexicographic order.
fn sets(size: u32) -> Vec<Vec<u32>> {
    let mut found: Vec<Vec<u32>> = (0..1_u32 << 6)
        .filter(|mask| mask.count_ones() == size)
        .map(|mask| (0..6).filter(|client| mask >> client & 1 == 1).collect())
        .collect();
    found.sort();
    found
}

/// Compares a judgement with the best of some sets by enumeration. `worth` is of round (from 1) and set.
fn check(rounds: &[Round], sets: &[Vec<u32>], worth: impl Fn(u32, &[u32]) -> f64) {
    let mut lost = 0;
    for (number, round) in (1..).zip(rounds) {
        let [judged] = &round.judged[..] else { panic!("a round is judged once") };
        let best = sets.iter().map(|set| worth(number, set)).fold(f64::NEG_INFINITY, f64::max);
        let first = sets.iter().find(|set| worth(number, set) >= best - 1e-9).unwrap();
        let found: Vec<u32> = judged.best.iter().map(|client| client.0).collect();
        assert_eq!(found, *first, "round {number}");
        let mut own = TURNS[(number as usize - 1).min(TURNS.len() - 1)].to_vec();
        own.sort_unstable();
        assert!((judged.best_value - best).abs() < 1e-5 * (1.0 + best.abs()), "round {number}: {judged:?}, {best}");
        let own = worth(number, &own);
        assert!((judged.own_value - own).abs() < 1e-5 * (1.0 + own.abs()), "round {number}: {judged:?}, {own}");
        lost += u32::from(best > own + 1e-9);
    }
    assert!(lost > 2, "the policy loses something");
}

fn counterfactual(utility: &str) -> String {
    format!("[regret]\ncounterfactual = true\nmeters = []\nutility = {utility}\n")
}

/// Answers before the round: after it, clients that took part have counted one more update, and the model is another.
#[test]
fn the_largest_true_losses_are_the_best_set() {
    for (more, sizes) in [("", vec![2]), ("size = \"at-most\"\n", vec![1, 2])] {
        let world = world(TWO, &format!("{}{more}", counterfactual("\"local-loss\"")), ALL);
        let (rounds, accounts) = play(&world, TURNS, COUNT as u32).unwrap();
        let (before, mut all) = (before(), sizes.into_iter().flat_map(sets).collect::<Vec<_>>());
        all.sort();
        let of = |round: u32, client: u32| {
            let Before { bias, counted, .. } = &before[round as usize - 1];
            // A client without examples has nothing to lose.
            let has_data = EXAMPLES[client as usize] > 0;
            if has_data { loss(client, round, counted[client as usize], *bias) } else { 0.0 }
        };
        check(&rounds, &all, |round, set| set.iter().map(|&client| of(round, client)).sum());
        assert_eq!(accounts.probe_compute.0, 0, "nothing is charged");
    }
}

/// By losses alone clients 3 and 5 are the best set of round 1; 4 and 5 take less time.
#[test]
fn time_has_a_price_if_the_scenario_says_so() {
    let more = "kappa = 1.0\nt_semi = \"2 s\"\n";
    let world = world(TWO, &format!("{}{more}", counterfactual("\"local-loss\"")), ALL);
    let (rounds, _) = play(&world, TURNS, 1).unwrap();
    let seconds = [10.0, 19.0, 81.0, 13.0, 9.0, 10.0];
    let worth = |set: &[u32]| {
        let losses: f64 = set.iter().map(|&client| if client == 2 { 0.0 } else { loss(client, 1, 0.0, 0.0) }).sum();
        losses - set.iter().map(|&client| seconds[client as usize]).fold(0.0, f64::max) / 2.0
    };
    let best = sets(2).into_iter().max_by(|one, other| worth(one).total_cmp(&worth(other))).unwrap();
    assert_eq!(best, [4, 5]);
    assert_eq!(rounds[0].judged[0].best, best.into_iter().map(ClientId).collect::<Vec<_>>());
}

/// `Σ n a / Σ n` with the slope at the model before the round, and clients' private state before it.
#[test]
fn the_steepest_average_is_the_best_set() {
    for (more, sizes) in [("", vec![2]), ("size = \"at-most\"\n", vec![1, 2])] {
        let world = world(TWO, &format!("{}{more}", counterfactual("\"influence\"")), ALL);
        let (rounds, _) = play(&world, TURNS, COUNT as u32).unwrap();
        let (before, mut all) = (before(), sizes.into_iter().flat_map(sets).collect::<Vec<_>>());
        all.sort();
        check(&rounds, &all, |round, set| {
            let Before { bias, counted, .. } = &before[round as usize - 1];
            let slope = slope(*bias as f32, counted.iter().sum::<f64>() as f32);
            let one = |client: u32| {
                let change = rows(client).into_iter().map(|row| slope[1 + row as usize] * step(client)).sum::<f32>();
                -f64::from(slope[0] * BIAS[client as usize] + change)
            };
            let weight = |client: u32| EXAMPLES[client as usize] as f64;
            let total: f64 = set.iter().map(|&client| weight(client)).sum();
            let sum: f64 = set.iter().map(|&client| weight(client) * one(client)).sum();
            if total > 0.0 { sum / total } else { 0.0 }
        });
    }
}

/// (17) with validation data and rows that the set's own aggregation moves.
#[test]
fn a_set_is_worth_its_level_and_the_age_of_its_rows() {
    let utility = "{ aggregate = { valid_level = 0.6, item_staleness = -0.4 } }";
    let world = world(TWO, &counterfactual(utility), ALL);
    let (rounds, _) = play(&world, TURNS, COUNT as u32).unwrap();
    let before = before();
    check(&rounds, &sets(2), |round, set| {
        let after = before[round as usize - 1].after(round, set);
        let level = after.bias + after.rows.iter().sum::<f64>();
        let age = after.moved.iter().map(|&moved| f64::from(round - moved)).sum::<f64>() / f64::from(ROWS);
        0.6 * level - 0.4 * age
    });
    // The value of the policy's own set is that of the round's metrics.
    for round in &rounds {
        let metric = |of: &str| round.metrics.iter().find(|(id, _)| id.is_called(of)).unwrap().1;
        let own = 0.6 * metric("valid_level") - 0.4 * metric("item_staleness");
        assert!((round.judged[0].own_value - own).abs() < 1e-9, "{round:?}");
    }
}

/// Rows with numbers: the sum over a client's own examples, and the slope of the test loss, worked out from the data.
#[test]
fn linear_regression_by_hand() {
    const LINEAR: &str = r#"
name = "linear"
seeds = 1
[stop]
rounds = 4
[population]
clients = 7
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.linear-regression]
features = 3
examples = 420
partition = { gamma-sized = { shape = 1.0 } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05 } }
[protocol.synchronous]
cohort = 2
[policy.random]
"#;
    let settings = |utility| format!("{LINEAR}{}", counterfactual(utility));
    let of_losses = super::support::world(&settings("\"local-loss\""), 1);
    let of_slope = super::support::world(&settings("\"influence\""), 1);
    let turns: &[&[u32]] = &[&[0, 1], &[2, 3], &[4, 5], &[6, 0]];
    let (losses, _) = play(&of_losses, turns, 4).unwrap();
    let (slopes, _) = play(&of_slope, turns, 4).unwrap();
    let task = super::support::labelled(&of_losses);
    let streams = &of_losses.streams;
    let models = {
        let policy = Box::new(super::support::Script::new(turns));
        let mut models = super::support::play(&of_losses, policy, 4).unwrap().seen.models;
        models.insert(0, of_losses.task.as_ref().unwrap().initial_model(0, streams));
        models
    };
    let predict = |model: &[f32], row: &[f32]| {
        let product: f64 = model.iter().zip(row).map(|(weight, number)| f64::from(*weight) * f64::from(*number)).sum();
        product + f64::from(*model.last().unwrap())
    };
    // By how much the program's loss of an example is a multiple of the squared error: told from the first model.
    let squared = |data: &fedgenie::data::Dataset, example: u32, model: &[f32]| {
        let row = data.features().row(example as usize).to_vec();
        (predict(model, &row) - f64::from(data.values().unwrap()[example as usize]), row)
    };
    let ids = 0..7_u32;
    let sizes: Vec<f64> = ids.clone().map(|client| task.partition.size(ClientId(client)) as f64).collect();
    let factor = {
        let all = (0..task.data.test.examples() as u32).map(|example| squared(&task.data.test, example, &models[0]).0);
        let mean = all.map(|error| error * error).sum::<f64>() / task.data.test.examples() as f64;
        of_losses.initial_measures().unwrap()[0] / mean
    };
    let pairs: Vec<[u32; 2]> = ids.clone().flat_map(|one| (one + 1..7).map(move |other| [one, other])).collect();
    for round in 0..4 {
        let model = &models[round];
        let loss = |client: u32| -> f64 {
            let examples = task.partition.client(ClientId(client));
            examples.iter().map(|&example| squared(&task.data.train, example, model).0.powi(2) * factor).sum()
        };
        let worth = |[one, other]: [u32; 2]| loss(one) + loss(other);
        let best = pairs.iter().map(|&pair| worth(pair)).fold(f64::NEG_INFINITY, f64::max);
        let found = &losses[round].judged[0];
        assert!((found.best_value - best).abs() < 1e-4 * best, "{found:?}, {best}");
        let own = worth([turns[round][0], turns[round][1]]);
        assert!((found.own_value - own).abs() < 1e-4 * own, "{found:?}, {own}");
        // The slope by weights and bias.
        let mut slope = [0.0; 4];
        let tests = task.data.test.examples();
        for example in 0..tests as u32 {
            let (error, row) = squared(&task.data.test, example, model);
            for (slope, number) in slope.iter_mut().zip(row.iter().map(|&number| f64::from(number)).chain([1.0])) {
                *slope += 2.0 * factor * error * number / tests as f64;
            }
        }
        let context = of_slope.context();
        let descent = |client: u32| -> f64 {
            let (client, number) = (ClientId(client), fedgenie::id::JobNumber(round as u32 + 1));
            let job = fedgenie::task::Job {
                client,
                round: fedgenie::id::Round(number.0),
                number,
                start: model,
                private: None,
                epochs: None,
                correction: None,
                contrast: None,
            };
            let mut update = fedgenie::layout::Update::default();
            of_slope
                .task
                .as_ref()
                .unwrap()
                .train(&job, &context, &mut fedgenie::task::Worker::default(), &mut update)
                .unwrap();
            let changes = update.parameters.iter().zip(model).map(|(after, before)| f64::from(after - before));
            -changes.zip(slope).map(|(change, slope)| change * slope).sum::<f64>()
        };
        let descents: Vec<f64> = ids.clone().map(descent).collect();
        let mean = |[one, other]: [u32; 2]| {
            let [one, other] = [one as usize, other as usize];
            (sizes[one] * descents[one] + sizes[other] * descents[other]) / (sizes[one] + sizes[other])
        };
        let best = pairs.iter().map(|&pair| mean(pair)).fold(f64::NEG_INFINITY, f64::max);
        let found = &slopes[round].judged[0];
        assert!((found.best_value - best).abs() < 1e-4 * best.abs(), "{found:?}, {best}");
        let own = mean([turns[round][0], turns[round][1]]);
        assert!((found.own_value - own).abs() < 1e-4 * own.abs().max(1e-3), "{found:?}, {own}");
    }
}

/// Edge servers and one client after the other: the sum over rounds is never negative, and a saved run goes on alike.
#[test]
fn other_protocols_judge_as_well() {
    let buffered = "[protocol.buffered]\nconcurrency = 2\nbuffer = 2\n";
    let hierarchical = "[protocol.hierarchical]\nedges = 2\ncohort = 2\nedge_rounds = 2\n";
    for protocol in [buffered, hierarchical] {
        for utility in ["\"local-loss\"", "\"influence\""] {
            let experiment = super::little::experiment(protocol, &counterfactual(utility), ALL).unwrap();
            let summary = experiment.run(&fedgenie::experiment::Threads::new(1).unwrap()).unwrap();
            let parallel = experiment.run(&fedgenie::experiment::Threads::new(3).unwrap()).unwrap();
            let regret = summary.runs[0].regret.hindsight.unwrap();
            assert!(regret > 0.0, "{protocol}, {utility}: {regret}");
            assert_eq!(parallel.runs[0].regret, summary.runs[0].regret);
        }
    }
}

#[test]
fn what_a_task_does_not_know_is_refused() {
    let line = |utility: &str| line_of(&text(TWO, &counterfactual(utility)), "utility =");
    for (utility, said) in [
        ("\"local-loss\"", "answers to \"summed-loss\", or else their losses"),
        (
            "\"influence\"",
            "needs the slope of the loss on validation data, which the task (a task of one's own) does not",
        ),
    ] {
        let message = refused(TWO, &counterfactual(utility), Settings::default());
        let place = format!("{SCENARIO}:{}: regret.utility: ", line(utility));
        assert!(message.contains(&place) && message.contains(said), "{message}");
    }
    let priced = format!("{}kappa = 0.5\n", counterfactual("\"influence\""));
    let message = refused(TWO, &priced, ALL);
    let place = format!("{SCENARIO}:{}: regret.kappa: ", line_of(&text(TWO, &priced), "kappa ="));
    assert!(message.contains(&place) && message.contains("influence is a mean over a set"), "{message}");
    world(TWO, &format!("{}kappa = 0.0\n", counterfactual("\"influence\"")), ALL);
}
