//! Training and measuring of the controls that learn; [`crate::world::ControlsConfig`] defines them.

use crate::run::error::{Role, RunError};
use crate::world::controls::{Controls, TrainedControl};
use crate::world::{Centralised, ControlsConfig, Local, World};
use fedgenie_core::halt::{Effort, Halt};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::metric::{Measure, MetricId, Place, statistics};
use fedgenie_core::rng::Purpose;
use fedgenie_learning::algorithm::JobMemory;
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::{Context, Job, ModelState, On, PrivateTable, PrivateView, Task};
use fedgenie_learning::trainer::{Length, LocalTraining, Optimizer, Schedule};
use fedgenie_learning::training::{Assignment, JobFailure, Rules, train};
use std::sync::{Arc, PoisonError};

/// A part of the training of a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its steps.
    pub steps: u64,
    /// The steps of all models.
    pub of: u64,
    /// Models, each of which is measured.
    pub models: usize,
}

/// Does work that is a part of the training of a control.
pub type Around<'a> = dyn FnMut(Part, &mut dyn FnMut()) + 'a;

/// The entity of the stream that draws clients.
const DRAWN: u32 = u32::MAX - 2;

/// Jobs of a call, where a task trains jobs together.
const TOGETHER: usize = 64;

impl World {
    /// The controls that are trained, made when they are first asked for. They belong to no run.
    ///
    /// # Errors
    /// If the task fails, or work is stopped.
    pub fn trained_controls(&self, halt: &Halt) -> Result<Vec<TrainedControl>, RunError> {
        let mut kept = self.controls.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*kept {
            return Ok(known.clone());
        }
        Ok(kept.insert(self.train_controls(halt)?).clone())
    }

    /// Makes so many steps of each control that is trained, on its largest client, to find out what it costs; they
    /// leave nothing behind. `around` does the work, and is told of which steps and models it is a part.
    ///
    /// # Errors
    /// If the task fails, or work is stopped.
    pub fn try_controls(&self, steps: u32, halt: &Halt, around: &mut Around<'_>) -> Result<(), RunError> {
        let ControlsConfig { centralised, local, .. } = &self.controls.config;
        let pooled = centralised.as_ref().zip(self.controls.pooled.as_deref());
        let pooled = pooled.map(|(config, task)| (task, config.epochs, self.in_one_place(config), vec![ClientId(0)]));
        let whole = self.whole_task();
        let local = local.zip(whole.as_deref());
        let clients = |(Local { epochs, clients }, task): (Local, _)| {
            (task, epochs, self.alone(epochs), self.clients_alone(task, clients))
        };
        for (task, epochs, alone, clients) in [pooled, local.map(clients)].into_iter().flatten() {
            let Some(&largest) = clients.iter().max_by_key(|&&client| task.examples(client)) else { continue };
            let of_client = |&client: &ClientId| task.examples(client).div_ceil(alone.batch) as u64;
            let all = u64::from(epochs) * clients.iter().map(of_client).sum::<u64>();
            let part = Part { steps: u64::from(steps), of: all, models: clients.len() };
            let settings = LocalTraining { length: Length::Steps(steps), decays: Vec::new(), ..alone };
            let start = task.initial_model(0, &self.streams);
            let mut done = Ok(());
            around(part, &mut || {
                let context = Context { settings: &settings, halt, ..self.context() };
                let jobs = [Assignment { job: job_of(largest, &start), memory: JobMemory::default() }];
                done =
                    train((task, Rules::default()), &context, &jobs, false, &mut [Update::default()]).map_err(failed);
            });
            done?;
        }
        if halt.is_due() { Err(RunError::Halted) } else { Ok(()) }
    }

    /// The same world without controls that are trained.
    pub fn leave_controls(&mut self) {
        self.controls = Controls::default();
    }

    fn train_controls(&self, halt: &Halt) -> Result<Vec<TrainedControl>, RunError> {
        let ControlsConfig { centralised, local, .. } = &self.controls.config;
        let mut made = Vec::new();
        if let Some((config, pooled)) = centralised.as_ref().zip(self.controls.pooled.as_deref()) {
            let settings = self.in_one_place(config);
            let mut all = Means::new(self);
            self.train_alone(pooled, &settings, &[ClientId(0)], halt, &mut all)?;
            made.push(all.told("centralised"));
        }
        let whole = self.whole_task();
        if let Some((config, task)) = local.zip(whole.as_deref()) {
            let mut all = Means::new(self);
            let clients = self.clients_alone(task, config.clients);
            self.train_alone(task, &self.alone(config.epochs), &clients, halt, &mut all)?;
            made.push(all.told("local"));
        }
        Ok(made)
    }

    /// The task where one model is trained as a whole: without clients' own.
    fn whole_task(&self) -> Option<Arc<dyn Task>> {
        let task = self.task.as_ref()?;
        Some(task.whole().unwrap_or_else(|| task.clone()))
    }

    /// The training of a job that nothing follows.
    fn alone(&self, epochs: u32) -> LocalTraining {
        let training = self.training.local.of_epochs(epochs);
        LocalTraining { schedule: Schedule::default(), proximal: 0.0, noise: None, ..training }
    }

    /// The training of the job on everybody's data.
    fn in_one_place(&self, config: &Centralised) -> LocalTraining {
        let mut alone = self.alone(config.epochs);
        // Parts of the model that decay for themselves are those of clusters.
        alone.decays = Vec::new();
        alone.batch = config.batch.map_or(alone.batch, |batch| batch as usize);
        if let Some(optimizer) = &config.optimizer {
            alone.optimizer = Optimizer::new(optimizer).expect("it was checked with the scenario");
        }
        alone
    }

    /// The clients that train alone, ascending.
    fn clients_alone(&self, task: &dyn Task, most: Option<u32>) -> Vec<ClientId> {
        let all = (0..self.population.len()).map(ClientId::from_index);
        let mut clients: Vec<ClientId> = all.filter(|&client| task.examples(client) > 0).collect();
        if let Some(most) = most.map(|most| most as usize).filter(|&most| most < clients.len()) {
            self.streams.stream(Purpose::Policy, DRAWN, 0).shuffle(&mut clients);
            clients.truncate(most);
            clients.sort_unstable();
        }
        clients
    }

    /// Trains the first model at each of these clients alone, and measures each.
    fn train_alone(
        &self,
        task: &dyn Task,
        settings: &LocalTraining,
        clients: &[ClientId],
        halt: &Halt,
        all: &mut Means,
    ) -> Result<(), RunError> {
        let start = task.initial_model(0, &self.streams);
        let context = Context { settings, halt, ..self.context() };
        let most = if task.together().is_some() { TOGETHER } else { 1 };
        let mut updates = vec![Update::default(); most];
        for clients in clients.chunks(most) {
            let job = |&client: &ClientId| Assignment { job: job_of(client, &start), memory: JobMemory::default() };
            let jobs: Vec<Assignment<'_>> = clients.iter().map(job).collect();
            let updates = &mut updates[..jobs.len()];
            train((task, Rules::default()), &context, &jobs, false, updates).map_err(failed)?;
            if halt.is_due() {
                return Err(RunError::Halted);
            }
            for (&client, update) in clients.iter().zip(&*updates) {
                if update.diverged {
                    all.add_diverged();
                } else {
                    all.models += 1;
                    self.measure_alone(task, (client, update), &start, halt, all)?;
                }
            }
        }
        Ok(())
    }

    /// Measures the model of a client.
    fn measure_alone(
        &self,
        task: &dyn Task,
        (client, update): (ClientId, &Update),
        start: &[f32],
        halt: &Halt,
        all: &mut Means,
    ) -> Result<(), RunError> {
        let mut buffer = Vec::new();
        let model = update.model(task.layout(), start, &mut buffer);
        let (nobody, own) = (PrivateTable::default(), [(client, &*update.private)]);
        let instead = if update.private.is_empty() { &[][..] } else { &own[..] };
        let moved = vec![Round(0); task.layout().rows()];
        let private = PrivateView { table: &nobody, instead };
        let state = ModelState { model, private, round: Round(1), moved: &moved, memories: &[] };
        let is_of_all = task.describe().examples.len() == 1;
        let test = if is_of_all { On::Test } else { task.test_of_alone(client) };
        // What a client keeps of its own for validation no task tells.
        let valid = (test == On::Test && self.measures.has_valid).then_some((Place::Valid, On::Valid));
        for (place, on) in [(Place::Test, test)].into_iter().chain(valid) {
            let mut values = vec![f64::NAN; self.measures.of_data.len()];
            let effort = Effort { parallel: false, halt };
            let weight = task
                .measure(on, &state, effort, &mut values)
                .map_err(|source| failed(JobFailure { client: Some(client), method: "evaluate", source }))?;
            all.add(place, &values, weight);
        }
        self.measure_in_parts((!is_of_all).then_some(client), &state, halt, all)?;
        if halt.is_due() { Err(RunError::Halted) } else { Ok(()) }
    }

    /// Measures a model of a control on the data of its client and of that one's edge server, or, that of everybody's
    /// data, on those of each client and of each server.
    fn measure_in_parts(
        &self,
        client: Option<ClientId>,
        state: &ModelState<'_>,
        halt: &Halt,
        all: &mut Means,
    ) -> Result<(), RunError> {
        // A model of everybody's data is not divided among clusters.
        let plain = self.controls.plain.clone().filter(|_| client.is_none());
        let Some(task) = plain.or_else(|| self.whole_task()) else { return Ok(()) };
        let has_private = task.private().is_some();
        let measured = |on: On<'_>| -> Result<Option<Vec<f64>>, RunError> {
            let mut values = vec![f64::NAN; self.measures.of_data.len()];
            let effort = Effort { parallel: false, halt };
            let weight = task
                .measure(on, state, effort, &mut values)
                .map_err(|source| failed(JobFailure { client: on.client(), method: "evaluate", source }))?;
            Ok((weight > 0.0).then_some(values))
        };
        // Nor has it private state for each of the clients.
        if self.evaluated.clients && (client.is_some() || !has_private) {
            let everyone = || (0..self.population.len()).map(ClientId::from_index).collect();
            for client in client.map_or_else(everyone, |client| vec![client]) {
                if let Some(values) = measured(On::Client(client))? {
                    all.at_clients.push(values);
                }
            }
        }
        if self.evaluated.servers && !has_private {
            let servers = self.data_of_servers();
            all.at_servers.resize_with(servers.len(), Vec::new);
            for (server, found) in servers.into_iter().zip(&mut all.at_servers) {
                let is_at = |client: ClientId| server.members().is_some_and(|members| members.contains(&client));
                if client.is_none_or(is_at) {
                    found.extend(measured(server)?);
                }
            }
        }
        Ok(())
    }
}

/// The job of a client alone.
const fn job_of(client: ClientId, start: &[f32]) -> Job<'_> {
    let (round, number) = (Round(1), JobNumber(0));
    Job { client, round, number, start, private: None, epochs: None, correction: None, contrast: None }
}

/// Means over models: weighted on test and on validation data.
struct Means {
    /// The measures of data.
    of_data: Vec<Measure>,
    /// Of each measure of data: its value times its weight, and the weights, on test and on validation data.
    sums: Vec<(MetricId, [f64; 2])>,
    /// The values of each model of a client on its client's data; those of everybody's model on the data of each.
    at_clients: Vec<Vec<f64>>,
    /// For each edge server the values of models on its data: those of its clients' models, or of everybody's.
    at_servers: Vec<Vec<Vec<f64>>>,
    models: usize,
    diverged: usize,
}

impl Means {
    fn new(world: &World) -> Self {
        let of_data = &world.measures.of_data;
        let at = |place| of_data.iter().map(move |measure| (measure.at(place), [0.0; 2]));
        Self {
            of_data: of_data.clone(),
            sums: at(Place::Test).chain(at(Place::Valid)).collect(),
            at_clients: Vec::new(),
            at_servers: Vec::new(),
            models: 0,
            diverged: 0,
        }
    }

    fn add_diverged(&mut self) {
        (self.models, self.diverged) = (self.models + 1, self.diverged + 1);
    }

    /// Adds what a model was measured to on the data of a place.
    fn add(&mut self, place: Place, values: &[f64], weight: f64) {
        let mine = self.sums.iter_mut().filter(|(id, _)| id.place == place);
        for ((_, [sum, weights]), &value) in mine.zip(values) {
            if weight > 0.0 {
                (*sum, *weights) = (*sum + weight * value, *weights + weight);
            }
        }
    }

    fn told(self, name: &'static str) -> TrainedControl {
        let mean = |(id, [sum, weights]): (MetricId, [f64; 2])| (id, sum / weights);
        let of_models = |models: &Vec<Vec<f64>>, measure: usize| {
            models.iter().map(|values| values[measure]).sum::<f64>() / models.len() as f64
        };
        let in_parts = self.of_data.iter().enumerate().flat_map(|(index, measure)| {
            let of_clients: Vec<f64> = self.at_clients.iter().map(|values| values[index]).collect();
            let servers = self.at_servers.iter().filter(|models| !models.is_empty());
            let of_servers: Vec<f64> = servers.map(|models| of_models(models, index)).collect();
            let places = [(Place::Clients, of_clients), (Place::Servers, of_servers)];
            places.into_iter().flat_map(|(place, values)| statistics(place, measure, &values).collect::<Vec<_>>())
        });
        let all = self.sums.iter().copied().map(mean).chain(in_parts);
        let metrics = all.filter(|(_, value)| value.is_finite()).collect();
        TrainedControl { name, metrics, models: self.models, diverged: self.diverged }
    }
}

fn failed(JobFailure { client, method, source }: JobFailure) -> RunError {
    RunError::Outside { role: Role::Task, method, client, round: Round(0), source }
}
