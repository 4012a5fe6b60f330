//! A graph for each client, and a policy that chooses how many clients there are, and which.

use super::{PROTOCOLS, experiment, run};
use fedgenie::config::Complaint;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Update};
use fedgenie::math::float::{ln, sqrt};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::policy::{Feedback, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::rng::Streams;
use fedgenie::state::Stateful;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, Material, On, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::LocalTraining;

/// Client `k` has a ring of `4 + k mod 3` nodes with features and ratings; a node's rating is predicted from itself and
/// the mean of its neighbours, by two weights.
#[derive(Debug)]
struct Graphs {
    layout: Layout,
    description: Description,
}

/// Features of node `n` and of its neighbours, and its rating.
fn nodes(client: ClientId) -> impl Iterator<Item = ([f64; 2], f64)> {
    let (count, shift) = (4 + client.0 % 3, f64::from(client.0));
    let feature = move |node: u32| f64::from(node % count) / 4.0 + shift / 24.0;
    (0..count).map(move |node| {
        let around = f64::midpoint(feature(node + 1), feature(node + count - 1));
        ([feature(node), around], 0.75 * feature(node) - 0.5 * around)
    })
}

fn errors<'a>(model: &'a [f32], clients: &'a [ClientId]) -> impl Iterator<Item = ([f64; 2], f64)> + 'a {
    let weights = [f64::from(model[0]), f64::from(model[1])];
    let error = move |(x, rating): ([f64; 2], f64)| (x, weights[0] * x[0] + weights[1] * x[1] - rating);
    clients.iter().flat_map(|&client| nodes(client)).map(error)
}

impl Task for Graphs {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _: u32, _: &Streams, parameters: &mut [f32]) {
        parameters.fill(0.0);
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        100.0
    }

    fn train(&self, job: &Job<'_>, _: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        update.clear();
        let clients = [job.client];
        let count = nodes(job.client).count() as f64;
        let (mut slope, mut loss) = ([0.0; 2], 0.0);
        for (x, error) in errors(job.start, &clients) {
            slope = [slope[0] + error * x[0] / count, slope[1] + error * x[1] / count];
            loss += error * error / count;
        }
        update.parameters.extend(job.start.iter().zip(slope).map(|(&weight, slope)| weight - 0.5 * slope as f32));
        (update.first_loss, update.steps) = (loss, 1);
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            let clients = match ask.on {
                On::Client(client) => vec![client],
                On::Server(_, members) => members.to_vec(),
                _ => (0..12).map(ClientId).collect(),
            };
            ask.weight = clients.iter().map(|&client| nodes(client).count()).sum::<usize>() as f64;
            let squares = errors(ask.state.model, &clients).map(|(_, error)| error * error);
            ask.values[0] = sqrt(squares.sum::<f64>() / ask.weight);
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("weights".to_owned(), vec![2])])
    }
}

#[derive(Debug)]
struct Settings;

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        Measures { of_data: vec![Measure::error("rmse")], ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let description = Description::of((0..12).map(|client| nodes(ClientId(client)).count()));
        Ok(Some(Box::new(Graphs { layout: Layout::dense(2, 2), description })))
    }
}

/// Arms with mean rewards and counts.
#[derive(Default, Stateful)]
struct Arms(Vec<f64>, Vec<u32>);

impl Arms {
    fn best(&self, turn: f64) -> impl Fn(&usize, &usize) -> std::cmp::Ordering {
        let index = move |arm: usize| match self.1[arm] {
            0 => f64::INFINITY,
            count => self.0[arm] + sqrt(2.0 * ln(turn) / f64::from(count)),
        };
        let indices: Vec<f64> = (0..self.0.len()).map(index).collect();
        move |&one, &other| indices[other].total_cmp(&indices[one])
    }

    fn add(&mut self, arm: usize, reward: f64) {
        self.1[arm] += 1;
        self.0[arm] += (reward - self.0[arm]) / f64::from(self.1[arm]);
    }
}

/// Upper confidence bounds for the number and for the clients: a round's value is that of its error, less its traffic.
#[derive(Stateful)]
struct HowMany {
    sizes: Arms,
    clients: Arms,
    chosen: usize,
}

impl Policy for HowMany {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let turn = f64::from(ask.turn.0);
        self.chosen = (0..ask.cohort).min_by(self.sizes.best(turn)).unwrap();
        let by_index = self.clients.best(turn);
        selection.extend(ask.available.list());
        selection.sort_by(|one, other| by_index(&one.index(), &other.index()));
        selection.truncate(self.chosen + 1);
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        let Feedback::Round(round) = feedback else { return Ok(()) };
        // An edge server's policy is told no metric.
        let rmse = round.metrics.iter().find(|(id, _)| id.is_called("test_rmse")).map_or(1.0, |(_, value)| *value);
        assert!(round.down_bytes > 0);
        self.sizes.add(self.chosen, 1.0 - rmse - (round.down_bytes + round.up_bytes) as f64 / 1_000.0);
        round.selected.iter().for_each(|client| self.clients.add(client.index(), 1.0 - rmse));
        Ok(())
    }
}

#[test]
fn a_policy_chooses_how_many_under_every_protocol() {
    for (name, protocol) in PROTOCOLS {
        let mut experiment = experiment(protocol, "");
        experiment.set_task(Settings).unwrap();
        experiment
            .add_policy("how-many", |context| {
                let arms = |count: usize| Arms(vec![0.0; count], vec![0; count]);
                Ok(Box::new(HowMany { sizes: arms(context.cohort), clients: arms(context.clients), chosen: 0 }))
            })
            .unwrap();
        let summary = run(&experiment);
        for run in summary.runs.iter() {
            assert!(run.final_metrics["test_rmse"] < 0.2, "{name}, {}: {:?}", run.arm, run.final_metrics);
        }
        let jobs = |arm: &str| summary.runs.iter().filter(|run| run.arm == arm).map(|run| run.dispatched).sum::<u64>();
        if name != "buffered" {
            assert!(jobs("how-many") < jobs("random"), "{name}: it chose fewer");
        }
    }
}
