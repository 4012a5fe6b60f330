//! Edge servers, each among its own clients, and a server that asks one client after the other.

use super::*;
use crate::policy::Policies;
use crate::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie_core::failure::Failure;
use fedgenie_core::record::Record;
use fedgenie_learning::model::Evaluation;
use std::io;
use std::sync::{Arc, Mutex};

/// The judgements of each round, and the regret so far.
#[derive(Default)]
struct Kept(Vec<(Vec<HindsightRound>, Option<f64>)>);

impl Sink for Kept {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0.push((summary.hindsight.to_vec(), summary.regret.hindsight));
        Ok(())
    }
}

/// The candidates and the chosen clients of each turn.
type Choices = Arc<Mutex<Vec<(Vec<ClientId>, Vec<ClientId>)>>>;

/// Chooses candidates in turn, and writes that down.
#[derive(Stateful)]
struct InTurn {
    #[state(skip = "read by the test")]
    choices: Choices,
}

impl Policy for InTurn {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        let first = 3 * ask.turn.0 as usize;
        selection.extend((0..ask.cohort).map(|step| available[(first + step) % available.len()]));
        self.choices.lock().unwrap().push((available.to_vec(), selection.to_vec()));
        Ok(())
    }
}

fn settings() -> RunSettings {
    RunSettings { evaluate: Evaluations::every(1), record_every: 1, ..RunSettings::default() }
}

/// Model, data and clock of a world, for values by hand.
struct ByHand<'w> {
    world: &'w World,
    task: &'w Labelled,
    test: Vec<u32>,
}

impl<'w> ByHand<'w> {
    fn new(world: &'w World) -> Self {
        let task: &Labelled = world.task.as_deref().unwrap().downcast().unwrap();
        Self { world, task, test: (0..task.data.test.examples() as u32).collect() }
    }

    fn test_loss(&self, model: &[f32]) -> f64 {
        evaluate(&*self.task.model, model, Batch { data: &self.task.data.test, examples: &self.test }, false).loss()
    }

    /// On the test examples of an edge server.
    fn of_server(&self, model: &[f32], server: u32) -> Evaluation {
        let examples = self.world.test_of(EdgeId(server)).unwrap();
        evaluate(&*self.task.model, model, Batch { data: &self.task.data.test, examples }, false)
    }

    fn speed(&self, client: ClientId, number: JobNumber) -> f64 {
        let config = self.world.hindsight.as_ref().unwrap();
        let draw = self.world.population.draw(&self.world.streams, Purpose::Latency, client, number, [1.0; 2]).unwrap();
        -config.kappa * draw.effective(self.world.protocol.rule.cut()).seconds() / config.t_semi.seconds()
    }

    /// The mean of models by data size.
    fn average(&self, models: &[(ClientId, &[f32])]) -> Vec<f32> {
        let size = |client: ClientId| self.task.partition.size(client) as f64;
        let total: f64 = models.iter().map(|(client, _)| size(*client)).sum();
        let place = |place: usize| {
            models.iter().map(|(client, model)| size(*client) * f64::from(model[place])).sum::<f64>() / total
        };
        (0..models[0].1.len()).map(|at| place(at) as f32).collect()
    }
}

/// Two edge servers of four clients each, two rounds of each per round of the cloud. A server's model is averaged by
/// hand from round to round, and every pair of its clients is.
#[test]
fn each_edge_server_is_judged_among_its_own_clients() {
    let mut table = EIGHT.replace("protocol.synchronous = { cohort = 3 }", "");
    table.push_str("protocol.hierarchical = { edges = 2, cohort = 2, edge_rounds = 2 }\n");
    let world = tests::world(
        &table,
        "hindsight.utility = { aggregate = { server_loss = -1.0, test_loss = -0.5 } }\n hindsight.t_semi = \"1 s\"\n \
         hindsight.kappa = 0.25",
    );
    let by_hand = ByHand::new(&world);
    let worth = |model: &[f32], server: u32| -by_hand.of_server(model, server).loss() - 0.5 * by_hand.test_loss(model);
    assert!(regret_by_hand(&world, (2, 2, 2), worth) > 0.01, "somebody else was better");
}

/// Three edge servers with the classes of their own, three of four clients a round: the accuracy on each server's own
/// test examples, of the mean of every three updates.
#[test]
fn sets_are_judged_by_their_servers_own_accuracy() {
    let mut table = EIGHT.replace("protocol.synchronous = { cohort = 3 }", "");
    table.push_str("protocol.hierarchical = { edges = 3, participation = 0.8 }\n");
    let (from, to) = (table.find("task.").unwrap(), table.find("training =").unwrap());
    table.replace_range(
        from..to,
        "task.softmax-regression = { data = { synthetic = { classes = 4, height = 5, width = 5, train = 360, test = 150, \
         noise = 0.6 } }, partition = { dirichlet-two-level = { servers = 3, alpha_server = 0.5, alpha_client = 0.5 } } }\n",
    );
    let more = "population.clients = 12\n hindsight.utility = { aggregate = { server_accuracy = 1.0 } }\n \
                hindsight.kappa = 0.0";
    let world = tests::world(&table, more);
    let by_hand = ByHand::new(&world);
    let worth = |model: &[f32], server: u32| by_hand.of_server(model, server).accuracy();
    assert!(regret_by_hand(&world, (3, 3, 1), worth) > 0.01, "somebody else was better");
    // Where everybody takes part there is nobody else.
    let all = tests::world(&table, &format!("{more}\n protocol.hierarchical.participation = 1.0"));
    let by_hand = ByHand::new(&all);
    let worth = |model: &[f32], server: u32| by_hand.of_server(model, server).accuracy();
    assert_eq!(regret_by_hand(&all, (3, 4, 1), worth), 0.0);
}

/// Three rounds of a world with so many edge servers of four clients, of which so many take part in each of so many
/// rounds, beside sets that are averaged by hand and valued by `worth`. Returns the regret.
fn regret_by_hand(
    world: &World,
    (servers, cohort, edge_rounds): (u32, usize, u32),
    worth: impl Fn(&[f32], u32) -> f64,
) -> f64 {
    let by_hand = ByHand::new(world);
    let choices: Vec<Choices> = (0..servers).map(|_| Choices::default()).collect();
    let edges = choices.iter().map(|choices| Box::new(InTurn { choices: choices.clone() }) as Box<dyn Policy>);
    let policies = Policies::Tiers { edges: edges.collect(), cloud: None };
    let mut kept = Kept::default();
    let mut run = Run::new(world, "", policies, settings(), &mut kept);
    let (mut expected, mut total, mut updates) = (Vec::new(), 0.0, Vec::new());
    for round in 1..=3 {
        let sent = learning(&run).model(0);
        run.step().unwrap();
        let mut found = Vec::new();
        for edge in 0..servers {
            let members: Vec<ClientId> = (4 * edge..4 * edge + 4).map(ClientId).collect();
            let mut model = sent.to_vec();
            for turn in edge_rounds * (round - 1) + 1..=edge_rounds * round {
                let number = JobNumber(turn);
                let jobs: Vec<JobKey> = members.iter().map(|&client| JobKey { client, number }).collect();
                learning(&run).train_in_hindsight(&model, Round(round), &jobs, false, &mut updates).unwrap();
                let average = |set: &[u32]| {
                    let own = |&index: &u32| (members[index as usize], &*updates[index as usize].parameters);
                    by_hand.average(&set.iter().map(own).collect::<Vec<_>>())
                };
                let worth = |set: &[u32]| {
                    let speeds = set.iter().map(|&index| by_hand.speed(members[index as usize], number));
                    worth(&average(set), edge) + speeds.fold(f64::INFINITY, f64::min)
                };
                let (available, chosen) = choices[edge as usize].lock().unwrap()[turn as usize - 1].clone();
                assert_eq!(available, members);
                let mut chosen: Vec<u32> = chosen.iter().map(|client| client.0 - 4 * edge).collect();
                chosen.sort_unstable();
                let sets = brute::subsets(4, cohort);
                let best = sets.into_iter().map(|set| worth(&set)).fold(f64::NEG_INFINITY, f64::max);
                found.push((edge, turn, best, worth(&chosen)));
                total += (best - worth(&chosen)) / f64::from(servers);
                model = average(&chosen);
            }
        }
        expected.push((found, total));
    }
    drop(run);
    for ((judged, regret), (found, total)) in kept.0.iter().zip(&expected) {
        assert_eq!(judged.len(), (servers * edge_rounds) as usize);
        for &(edge, turn, best_value, own_value) in found {
            let its = (Some(EdgeId(edge)), Some(Turn(turn)));
            let judged = judged.iter().find(|judged| (judged.server, judged.turn) == its).unwrap();
            approx::assert_abs_diff_eq!(judged.best_value, best_value, epsilon = 1e-6);
            approx::assert_abs_diff_eq!(judged.own_value, own_value, epsilon = 1e-6);
            assert!(judged.best.len() == cohort && judged.best.iter().all(|client| client.0 / 4 == edge));
        }
        approx::assert_abs_diff_eq!(regret.unwrap(), *total, epsilon = 1e-5);
    }
    total
}

/// Two clients at work and a new model with every update: each selection is of one client, from the model of its round.
#[test]
fn one_client_after_the_other_is_judged_when_it_is_chosen() {
    let mut table = EIGHT.replace("protocol.synchronous = { cohort = 3 }", "");
    table.push_str("protocol.buffered = { concurrency = 2, buffer = 1 }\n");
    let world = tests::world(&table, "hindsight.t_semi = \"1 s\"\n hindsight.kappa = 0.25\n hindsight.every = 2");
    let by_hand = ByHand::new(&world);
    let choices = Choices::default();
    let policy: Box<dyn Policy> = Box::new(InTurn { choices: choices.clone() });
    let mut kept = Kept::default();
    let mut run = Run::new(&world, "", policy, settings(), &mut kept);
    let (mut numbers, mut expected, mut updates) = ([0; 8], Vec::new(), Vec::new());
    for round in 1..=12 {
        let sent = learning(&run).model(0);
        let before = choices.lock().unwrap().len();
        run.step().unwrap();
        let turns: Vec<_> = choices.lock().unwrap()[before..].to_vec();
        let mut found = Vec::new();
        for (available, chosen) in turns {
            let job = |&client: &ClientId| JobKey { client, number: JobNumber(numbers[client.index()] + 1) };
            let jobs: Vec<JobKey> = available.iter().map(job).collect();
            learning(&run).train_in_hindsight(&sent, Round(round), &jobs, false, &mut updates).unwrap();
            let value = |(job, update): (&JobKey, &Update)| {
                let drop = by_hand.test_loss(&sent) - by_hand.test_loss(&update.parameters);
                drop + by_hand.speed(job.client, job.number)
            };
            let values: Vec<f64> = jobs.iter().zip(&updates).map(value).collect();
            let best = (0..values.len()).max_by(|&one, &other| values[one].total_cmp(&values[other])).unwrap();
            let own = available.iter().position(|client| *client == chosen[0]).unwrap();
            found.push((available[best], values[best], values[own]));
            numbers[chosen[0].index()] += 1;
        }
        expected.push(found);
    }
    drop(run);
    let mut total = 0.0;
    for (round, ((judged, regret), found)) in (1..).zip(kept.0.iter().zip(&expected)) {
        if round % 2 == 1 {
            assert!(judged.is_empty());
            continue;
        }
        assert_eq!(judged.len(), found.len());
        for (judged, &(best, best_value, own_value)) in judged.iter().zip(found) {
            assert_eq!((&*judged.best, judged.server), (&[best][..], None));
            approx::assert_abs_diff_eq!(judged.best_value, best_value, epsilon = 1e-6);
            approx::assert_abs_diff_eq!(judged.own_value, own_value, epsilon = 1e-6);
            total += best_value - own_value;
        }
        approx::assert_abs_diff_eq!(regret.unwrap(), total, epsilon = 1e-5);
    }
    assert!(total > 0.01, "somebody else was better: {total}");
}
