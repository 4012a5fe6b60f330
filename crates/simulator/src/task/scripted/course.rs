//! The course of a scripted metric: the task of one seed.

use super::Config;
use super::tables::{ByClient, Table};
use crate::task::{Material, TaskError};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::layout::{Layout, Update};
use fedgenie_learning::model::weights::TensorLayout;
use fedgenie_learning::task::{Ask, Context, Description, Job, Losses, ModelState, Need, On, Script, Task, Worker};
use fedgenie_learning::trainer::LocalTraining;
use std::sync::Arc;

/// The contents of lists and files.
#[derive(Debug)]
pub(super) struct Lines {
    pub effects: ByClient,
    pub gains: ByClient,
    pub client_losses: ByClient,
    pub accuracies: Option<Table>,
    pub losses: Option<Table>,
}

/// The task of one seed.
#[derive(Debug)]
pub struct Scripted {
    layout: Layout,
    values: Vec<f64>,
    per_client: f64,
    noise: f64,
    script: Arc<Lines>,
    description: Description,
    streams: Streams,
}

/// A server's memory: the mean effect and the number of the clients that arrived in the round, and all gains so far.
const EFFECT: usize = 0;
const ARRIVED: usize = 1;
const GAINED: usize = 2;

impl Scripted {
    /// The loss of a cluster's model for a server after a round, by the file `losses`.
    ///
    /// # Errors
    /// The file and the row that it lacks.
    pub fn loss(&self, round: Round, server: EdgeId, cluster: u32) -> Result<f64, String> {
        let table =
            self.script.losses.as_ref().ok_or("task.scripted.losses: is not given, and a policy asks for it")?;
        table.get(&[round.0, server.0, cluster])
    }

    /// The metric of a server.
    fn of_server(&self, server: EdgeId, state: &ModelState<'_>) -> f64 {
        let round = state.round;
        if let Some(accuracies) = &self.script.accuracies {
            return accuracies.get(&[round.0, server.0]).unwrap_or(f64::NAN);
        }
        let place = (round.0.max(1) as usize).min(self.values.len());
        let value = if place == 0 { 0.0 } else { self.values[place - 1] };
        if round.0 == 0 {
            return value;
        }
        let memory = &state.memories[server.0 as usize];
        let shared = if memory[ARRIVED] > 0.0 { self.per_client / memory[ARRIVED] } else { 0.0 };
        let value = value + memory[EFFECT] + shared + memory[GAINED];
        if self.noise == 0.0 {
            return value;
        }
        let uniform = self.streams.draw(Purpose::Script, server.0, round.0).uniform();
        value + self.noise * normal_quantile(uniform)
    }
}

/// Clients, each once, ascending.
fn distinct(clients: &[ClientId]) -> Vec<ClientId> {
    let mut clients = clients.to_vec();
    clients.sort_unstable();
    clients.dedup();
    clients
}

/// The task before its clients' amounts of data are known.
pub(super) struct Undealt {
    task: Scripted,
    payload: u64,
}

impl Undealt {
    pub fn new(config: &Config, script: Arc<Lines>, streams: &Streams) -> Self {
        let Config { values, per_client, noise, payload, .. } = config;
        let task = Scripted {
            layout: Layout::new(Vec::new()),
            values: values.clone(),
            per_client: *per_client,
            noise: *noise,
            description: Description { has_losses: !script.client_losses.is_empty(), ..Description::of([]) },
            script,
            streams: streams.clone(),
        };
        Self { task, payload: payload.0 as u64 }
    }
}

impl Material for Undealt {
    fn whole_bytes(&self) -> u64 {
        self.payload
    }

    fn deal(self: Box<Self>, _: usize, sizes: &[u32], _: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        let Description { has_losses, .. } = self.task.description;
        let sizes = sizes.iter().map(|&size| size as usize);
        Ok(Arc::new(Scripted { description: Description { has_losses, ..Description::of(sizes) }, ..self.task }))
    }
}

impl Task for Scripted {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, _: u32, _: &Streams, _: &mut [f32]) {}

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        0.0
    }

    fn train(&self, job: &Job<'_>, context: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        update.clear();
        update.first_loss = self.script.client_losses.get(job.client).unwrap_or(f64::NAN);
        update.loss_rms = context.loss_rms.then_some(update.first_loss.abs());
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for Ask { on, state, values, weight } in asks {
            let servers = state.memories.len();
            values[0] = match *on {
                On::Test => {
                    let each = (0..servers).map(|server| self.of_server(EdgeId::from_index(server), state));
                    each.sum::<f64>() / servers as f64
                }
                On::Server(server, _) | On::ServerTest(server, ..) => self.of_server(server, state),
                On::Valid | On::Client(_) | On::Model => continue,
            };
            *weight = 1.0;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        Vec::new()
    }

    fn losses(&self) -> Option<&dyn Losses> {
        self.description.has_losses.then_some(self)
    }

    fn script(&self) -> Option<&dyn Script> {
        Some(self)
    }
}

impl Losses for Scripted {
    fn client_loss(&self, client: ClientId, _: &ModelState<'_>) -> Result<f64, Failure> {
        Ok(self.script.client_losses.get(client).unwrap_or(f64::NAN))
    }
}

impl Script for Scripted {
    fn memory_len(&self) -> usize {
        3
    }

    fn remember(&self, _: Round, _: EdgeId, arrived: &[ClientId], memory: &mut [f64]) {
        let arrived = distinct(arrived);
        let mean = |numbers: &ByClient| match arrived.len() {
            0 => 0.0,
            _ if numbers.is_empty() => 0.0,
            count => arrived.iter().map(|&client| numbers.get(client).unwrap_or(f64::NAN)).sum::<f64>() / count as f64,
        };
        memory[EFFECT] = mean(&self.script.effects);
        memory[ARRIVED] = arrived.len() as f64;
        memory[GAINED] += mean(&self.script.gains);
    }

    fn adds(&self, client: ClientId) -> Option<f64> {
        let Lines { effects, gains, accuracies, .. } = &*self.script;
        let of = |numbers: &ByClient| match numbers.is_empty() || accuracies.is_some() {
            true => 0.0,
            false => numbers.get(client).unwrap_or(f64::NAN),
        };
        Some(of(effects) + of(gains))
    }

    fn check(&self, need: Need<'_>) -> Result<(), String> {
        let Lines { effects, gains, client_losses, accuracies, .. } = &*self.script;
        match need {
            Need::Losses(clients) => client_losses.check_clients(clients),
            Need::Aggregation(clients) => {
                effects.check_clients(clients)?;
                gains.check_clients(clients)
            }
            Need::Measures { round, servers } => {
                accuracies.as_ref().map_or(Ok(()), |accuracies| accuracies.check_round(round, servers))
            }
        }
    }

    fn tells_losses(&self) -> bool {
        self.script.losses.is_some()
    }

    fn told_loss(&self, round: Round, server: EdgeId, cluster: u32) -> Result<f64, String> {
        self.loss(round, server, cluster)
    }

    fn last_told(&self) -> Option<Round> {
        self.script.losses.as_ref().and_then(Table::last_round)
    }
}
