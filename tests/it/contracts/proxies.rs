//! A private row for each client, rows of a table that are sent, a probe that answers with a vector, and a policy that
//! learns from it.

use super::{PROTOCOLS, experiment, run};
use fedgenie::config::Complaint;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::Tensor;
use fedgenie::policy::{Feedback, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::rng::{StreamRng, Streams};
use fedgenie::state::{State, Stateful};
use fedgenie::task::{
    Context, DataCache, Job, JobKey, Material, ModelState, On, PrivateView, ProbeKind, Task, TaskError, TaskSettings,
    Worker,
};
use fedgenie::trainer::LocalTraining;

const ITEMS: u32 = 6;

/// Client `k` has items `k` and `k + 1` (mod 6), whose product with its own row is to be 1.
#[derive(Debug)]
struct Rows {
    layout: Layout,
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

    fn private_len(&self, _: ClientId) -> usize {
        2
    }

    fn init_private(&self, client: ClientId, _: &Streams, private: &mut [f32]) {
        private.copy_from_slice(&[0.25, 0.05 * client.0 as f32]);
    }

    fn examples(&self, _: ClientId) -> usize {
        2
    }

    fn all_examples(&self) -> u64 {
        24
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        100.0
    }

    fn sends_all(&self) -> bool {
        false
    }

    fn transfer(&self, _: JobKey, _: &Context<'_>) -> [u64; 2] {
        [self.layout.whole_bytes(), self.layout.update_bytes(2)]
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) {
        let task: &dyn Task = self;
        update.clear();
        update.private = task.private_of(job.client, job.private, context.streams);
        update.rows = items(job.client);
        for row in update.rows.clone() {
            let item = &job.start[self.layout.row(row)];
            let wrong = error(&update.private, item);
            update.first_loss += f64::from(wrong * wrong) / 2.0;
            update.parameters.extend(item.iter().zip(&update.private).map(|(item, user)| item - 0.2 * wrong * user));
            update.private.iter_mut().zip(item).for_each(|(user, item)| *user -= 0.2 * wrong * item);
        }
    }

    fn evaluate(&self, on: On<'_>, state: &ModelState<'_>, _: bool, values: &mut [f64]) -> f64 {
        if let On::Model = on {
            let ages = state.moved.iter().map(|&moved| f64::from(state.round.since(moved)));
            values[0] = ages.sum::<f64>() / f64::from(ITEMS);
            return 1.0;
        }
        let task: &dyn Task = self;
        let clients = match on {
            On::Client(client) => vec![client],
            On::Server(_, members) => members.to_vec(),
            _ => (0..12).map(ClientId).collect(),
        };
        let of = |&client: &ClientId| -> f64 {
            let user = task.private_of(client, state.private.get(client), &Streams::new(0));
            let square = |row: u32| error(&user, &state.model[self.layout.row(row)]).powi(2);
            items(client).into_iter().map(|row| f64::from(square(row))).sum::<f64>() / 2.0
        };
        values[0] = clients.iter().map(of).sum::<f64>() / clients.len() as f64;
        clients.len() as f64
    }

    fn probes(&self) -> &[ProbeKind] {
        &[ProbeKind { name: "row", numbers: 2, passes: 0.5, needs_model: true }]
    }

    fn answer(&self, _: &ProbeKind, client: ClientId, state: &ModelState<'_>, answer: &mut Vec<f64>) {
        let task: &dyn Task = self;
        let row = task.private_of(client, state.private.get(client), &Streams::new(0));
        answer.extend(row.iter().map(|&number| f64::from(number)));
    }

    fn tensors(&self, models: &[&[f32]], private: &PrivateView<'_>) -> Vec<Tensor> {
        let task: &dyn Task = self;
        let rows = (0..12).map(ClientId).map(|client| task.private_of(client, private.get(client), &Streams::new(0)));
        let users = Tensor { name: "users.weight".to_owned(), shape: vec![12, 2], values: rows.flatten().collect() };
        vec![Tensor { name: "items.weight".to_owned(), shape: vec![6, 2], values: models[0].to_vec() }, users]
    }
}

#[derive(Debug)]
struct Settings;

impl TaskSettings for Settings {
    fn measures(&self) -> Measures {
        let (of_data, of_model) = (vec![Measure::loss("loss")], vec![Measure::loss("item_staleness")]);
        Measures { of_data, of_model, ..Measures::default() }
    }

    fn trains(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let layout = Layout::new(vec![Segment::table("items.weight", 6, 2, Scope::Shared)]);
        Ok(Some(Box::new(Rows { layout })))
    }
}

/// Prefers clients whose rows have a large product with weights that it moves towards the rows of low losses.
struct Actor {
    weights: [f64; 2],
    losses: Vec<f64>,
    /// Whom it has just asked, of whom some may have gone since, while others came.
    asked: Vec<ClientId>,
}

impl Stateful for Actor {
    fn exchange(&mut self, state: &mut State<'_>) {
        state.field(&mut self.weights);
        state.field(&mut self.losses);
    }
}

impl Policy for Actor {
    fn probes(&self) -> bool {
        true
    }

    fn probe_kinds(&self) -> &[&'static str] {
        &["row"]
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Probe {
        self.asked = ask.available.list().to_vec();
        Probe::Answers { clients: self.asked.clone(), kind: "row" }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) {
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
    }

    fn observe(&mut self, feedback: &Feedback<'_>) {
        if let Feedback::Trained(report) = feedback {
            self.losses[report.client.index()] = report.loss;
            self.weights[0] += 0.1 * report.loss;
            self.weights[1] -= 0.1 * report.loss;
        }
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
        for run in &summary.runs {
            assert!(run.final_metrics["test_loss"] < 0.45, "{name}, {}: {:?}", run.arm, run.final_metrics);
            let staleness = run.final_metrics["item_staleness"];
            assert!((0.0..12.0).contains(&staleness), "{name}: {staleness}");
            // Two rows of two numbers with their ids; what was cut is a part of it.
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
