//! A private row for each client, rows of a table that are sent, a probe that answers with a vector, and a policy that
//! learns from it.

use super::{PROTOCOLS, experiment, run};
use fedgenie::config::Complaint;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Parcel, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::{Tensor, TensorLayout};
use fedgenie::policy::{Feedback, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::rng::{StreamRng, Streams};
use fedgenie::state::Stateful;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, JobKey, Material, ModelState, On, PartialTransfer, PrivateState,
    PrivateView, ProbeKind, Probes, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::LocalTraining;

const ITEMS: u32 = 6;

/// Client `k` has items `k` and `k + 1` (mod 6), whose product with its own row is to be 1.
#[derive(Debug)]
struct Rows {
    layout: Layout,
    description: Description,
}

fn items(client: ClientId) -> Vec<u32> {
    let mut items = vec![client.0 % ITEMS, (client.0 + 1) % ITEMS];
    items.sort_unstable();
    items
}

fn error(user: &[f32], item: &[f32]) -> f32 {
    user.iter().zip(item).map(|(one, other)| one * other).sum::<f32>() - 1.0
}

impl Task for Rows {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _: u32, _: &Streams, parameters: &mut [f32]) {
        parameters.fill(0.5);
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        100.0
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        let task: &dyn Task = self;
        update.clear();
        update.private = task.private_of(job.client, job.private, context.streams);
        update.rows = items(job.client);
        update.steps = 1;
        for row in update.rows.clone() {
            let item = &job.start[self.layout.row(row)];
            let wrong = error(&update.private, item);
            update.first_loss += f64::from(wrong * wrong) / 2.0;
            update.parameters.extend(item.iter().zip(&update.private).map(|(item, user)| item - 0.2 * wrong * user));
            update.private.iter_mut().zip(item).for_each(|(user, item)| *user -= 0.2 * wrong * item);
        }
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for Ask { on, state, values, weight } in asks {
            let clients = match *on {
                On::Client(client) => vec![client],
                On::Server(_, members) => members.to_vec(),
                _ => (0..12).map(ClientId).collect(),
            };
            *weight = clients.len() as f64;
            values[0] = match on {
                On::Model => {
                    let ages = state.moved.iter().map(|&moved| f64::from(state.round.since(moved)));
                    ages.sum::<f64>() / f64::from(ITEMS)
                }
                _ => clients.iter().map(|&client| self.loss(client, state)).sum::<f64>() / *weight,
            };
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("items.weight".to_owned(), vec![6, 2])])
    }

    fn partial(&self) -> Option<&dyn PartialTransfer> {
        Some(self)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        Some(self)
    }
}

impl Rows {
    fn loss(&self, client: ClientId, state: &ModelState<'_>) -> f64 {
        let task: &dyn Task = self;
        let user = task.private_of(client, state.private.get(client), &Streams::new(0));
        let square = |row: u32| error(&user, &state.model[self.layout.row(row)]).powi(2);
        items(client).into_iter().map(|row| f64::from(square(row))).sum::<f64>() / 2.0
    }
}

impl PartialTransfer for Rows {
    fn transfer(&self, _: JobKey, _: &Context<'_>) -> [Parcel; 2] {
        [self.layout.whole(), self.layout.parcel(2)]
    }
}

impl PrivateState for Rows {
    fn in_file(&self, private: &PrivateView<'_>) -> Vec<Tensor> {
        let task: &dyn Task = self;
        let rows = (0..12).map(ClientId).map(|client| task.private_of(client, private.get(client), &Streams::new(0)));
        vec![Tensor { name: "users.weight".to_owned(), shape: vec![12, 2], values: rows.flatten().collect() }]
    }

    fn len(&self, _: ClientId) -> usize {
        2
    }

    fn init(&self, client: ClientId, _: &Streams, private: &mut [f32]) {
        private.copy_from_slice(&[0.25, 0.05 * client.0 as f32]);
    }
}

impl Probes for Rows {
    fn kinds(&self) -> &[ProbeKind] {
        &[ProbeKind { name: "row", numbers: 2, passes: 0.5, needs_model: true }]
    }

    fn answer(
        &self,
        _: &ProbeKind,
        job: JobKey,
        _: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure> {
        let task: &dyn Task = self;
        let row = task.private_of(job.client, state.private.get(job.client), &Streams::new(0));
        answer.extend(row.iter().map(|&number| f64::from(number)));
        Ok(())
    }
}

#[derive(Debug)]
struct Settings;

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        let (of_data, of_model) = (vec![Measure::loss("loss")], vec![Measure::error("item_staleness")]);
        Measures { of_data, of_model, ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let layout = Layout::new(vec![Segment::table("items.weight", 6, 2, Scope::Shared)]);
        Ok(Some(Box::new(Rows { layout, description: Description::of([2; 12]) })))
    }
}

/// Prefers clients whose rows have a large product with weights that it moves towards the rows of low losses.
#[derive(Stateful)]
struct Actor {
    weights: [f64; 2],
    losses: Vec<f64>,
    /// The clients just asked; some may have gone since, while others came.
    asked: Vec<ClientId>,
}

impl Policy for Actor {
    fn probes(&self) -> bool {
        true
    }

    fn probe_kinds(&self) -> &[&'static str] {
        &["row"]
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        self.asked = ask.available.list().to_vec();
        Ok(Probe::Answers { clients: self.asked.clone(), kind: "row" })
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let available = ask.available.list();
        assert_eq!(view.answers.len(), 2 * self.asked.len());
        let score = |index: usize| match self.asked.binary_search(&available[index]).ok() {
            Some(place) => view.answers[2 * place] * self.weights[0] + view.answers[2 * place + 1] * self.weights[1],
            None => self.losses[available[index].index()],
        };
        let mut scored: Vec<(f64, ClientId)> =
            (0..available.len()).map(|index| (score(index) + 0.1 * rng.policy.uniform(), available[index])).collect();
        scored.sort_by(|one, other| other.0.total_cmp(&one.0));
        selection.extend(scored.iter().take(ask.cohort).map(|&(_, client)| client));
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(report) = feedback {
            self.losses[report.client.index()] = report.loss;
            self.weights[0] += 0.1 * report.loss;
            self.weights[1] -= 0.1 * report.loss;
        }
        Ok(())
    }
}

#[test]
fn rows_travel_and_private_rows_stay_under_every_protocol() {
    for (name, protocol) in PROTOCOLS {
        let mut experiment = experiment(protocol, "");
        experiment.set_task(Settings).unwrap();
        experiment
            .add_policy("actor", |context| {
                assert_eq!(context.probes[0].name, "row");
                Ok(Box::new(Actor { weights: [1.0; 2], losses: vec![1.0; context.clients], asked: Vec::new() }))
            })
            .unwrap();
        let summary = run(&experiment);
        for run in summary.runs.iter() {
            assert!(run.final_metrics["test_loss"] < 0.45, "{name}, {}: {:?}", run.arm, run.final_metrics);
            let staleness = run.final_metrics["item_staleness"];
            assert!((0.0..12.0).contains(&staleness), "{name}: {staleness}");
            // Two rows of two numbers with their ids; the cut bytes are a part of it.
            if name == "synchronous" && run.arm == "random" {
                assert_eq!(run.traffic.up_bytes, run.arrived * 24);
                assert_eq!(run.traffic.down_bytes, run.dispatched * 48);
            }
            if name == "synchronous" && run.arm == "actor" {
                // Every round asks all twelve for two numbers of 8 bytes, and sends them the model.
                assert_eq!(run.traffic.up_bytes, run.arrived * 24 + 12 * 12 * 16);
                assert_eq!(run.traffic.down_bytes, run.dispatched * 48 + 12 * 12 * 48);
            }
        }
    }
}
