//! A task of six items of one number each, in which everything that clients answer can be worked out by hand.
//!
//! An update adds 1 to the item `k mod 6` of client `k`, which keeps the number of its updates to itself.

use fedgenie::config::Complaint;
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::ClientId;
use fedgenie::layout::{Layout, Parcel, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::rng::Streams;
use fedgenie::task::{
    About, Ask, Context, DataCache, Description, Job, JobKey, Losses, Material, ModelState, On, PartialTransfer,
    PrivateState, ProbeKind, Probes, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::LocalTraining;
use std::sync::Arc;

const ITEMS: u32 = 6;

/// Client `k`'s prediction after so many updates, from a table with this sum; less the part of its job.
pub fn predicted(client: u32, updates: u32, table: f64) -> f64 {
    10.0 * f64::from(client + 1) - 75.0 * f64::from(updates) + 0.1 * table
}

/// Settings; with `is_sick` client 3 predicts NaN and client 7 an infinite loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Toy {
    pub is_sick: bool,
}

#[derive(Debug)]
struct Items {
    layout: Layout,
    description: Description,
    is_sick: bool,
}

const fn one(name: &'static str) -> ProbeKind {
    ProbeKind { name, numbers: 1, passes: 1.0, needs_model: true }
}

const PROBES: [ProbeKind; 4] = [
    one("predicted-loss"),
    one("summed-loss"),
    one("influence"),
    ProbeKind { name: "embedding", numbers: 2, passes: 0.0, needs_model: false },
];

fn sum(model: &[f32]) -> f64 {
    model.iter().map(|number| f64::from(*number)).sum()
}

impl Task for Items {
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
        let row = job.client.0 % ITEMS;
        update.rows = vec![row];
        update.parameters = vec![job.start[self.layout.row(row)][0] + 1.0];
        update.first_loss = f64::from(job.client.0 + 1) / f64::from(1.0 + update.private[0]);
        update.loss_rms = context.loss_rms.then_some(update.first_loss);
        update.private[0] += 1.0;
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for Ask { on, state, values, weight } in asks {
            if let On::Model = on {
                let ages = state.moved.iter().map(|&moved| f64::from(state.round.since(moved)));
                values[0] = ages.sum::<f64>() / f64::from(ITEMS) / 10.0;
                values[1] = sum(state.model);
                *weight = 1.0;
            } else {
                values[0] = (0.37 * sum(state.model)).fract();
                *weight = 12.0;
            }
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn([("items.weight".to_owned(), vec![6, 1])])
    }

    fn partial(&self) -> Option<&dyn PartialTransfer> {
        Some(self)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn probes(&self) -> Option<&dyn Probes> {
        Some(self)
    }
}

impl PartialTransfer for Items {
    fn transfer(&self, _: JobKey, _: &Context<'_>) -> [Parcel; 2] {
        [self.layout.whole(), self.layout.parcel(1)]
    }
}

impl PrivateState for Items {
    fn len(&self, _: ClientId) -> usize {
        1
    }
}

impl Losses for Items {
    fn client_loss(&self, client: ClientId, _: &ModelState<'_>) -> Result<f64, Failure> {
        Ok(f64::from(client.0))
    }
}

impl Probes for Items {
    fn kinds(&self) -> &[ProbeKind] {
        &PROBES
    }

    fn answer(
        &self,
        kind: &ProbeKind,
        job: JobKey,
        context: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure> {
        let (task, client): (&dyn Task, _) = (self, job.client.0);
        let updates = task.private_of(job.client, state.private.get(job.client), context.streams)[0];
        let predicted = predicted(client, updates as u32, sum(state.model)) + 0.001 * f64::from(job.number.0);
        let sick = match client {
            3 if self.is_sick => f64::NAN,
            7 if self.is_sick => f64::INFINITY,
            _ => predicted,
        };
        match kind.name {
            "predicted-loss" => answer.push(sick),
            "summed-loss" => answer.push(0.5 * sick),
            "influence" => answer.push(-f64::from(client.abs_diff(5)) - 3.0 * f64::from(updates)),
            _ => answer.extend([100.0 * f64::from(client % 3), f64::from(updates)]),
        }
        Ok(())
    }

    fn bytes(&self, kind: &ProbeKind, _: JobKey, _: &Context<'_>) -> Option<u64> {
        (kind.name == "influence").then_some(40)
    }
}

impl TaskSettings for Toy {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        let of_model = vec![Measure::error("item_staleness"), Measure::error("table_sum")];
        Measures { of_data: vec![Measure::share("hr_20")], of_model, has_valid: true, ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let layout = Layout::new(vec![Segment::table("items.weight", ITEMS as usize, 1, Scope::Shared)]);
        Ok(Some(Box::new(Undealt { layout, is_sick: self.is_sick })))
    }
}

/// The task before it is known how many clients there are.
struct Undealt {
    layout: Layout,
    is_sick: bool,
}

impl Material for Undealt {
    fn whole_bytes(&self) -> u64 {
        self.layout.whole().bytes()
    }

    fn deal(self: Box<Self>, clients: usize, _: &[u32], _: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        let Self { layout, is_sick } = *self;
        let description = Description::of((0..clients).map(|client| 1 + client % 4));
        Ok(Arc::new(Items { layout, description, is_sick }))
    }
}
