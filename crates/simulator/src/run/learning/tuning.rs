//! Fine-tuning: the model of each client at the end of a run, trained by that client once more.
//!
//! # Definition
//! Each client with examples makes a job of so many epochs: from the last model, and from its own private state where
//! it has some, at the learning rate of the last round, without proximal term, noise, encoding, attack or the
//! correction of an algorithm; models of clients' own are trained as in any job. Its result is sent to nobody. Metrics
//! over clients are then those of these results: `client_accuracy_mean_tuned` and its like.
//!
//! # Determinism
//! Jobs have the number 2³² − 1: stream (BatchOrder, client, 2³² − 1), and so on. Virtual time does not pass, and no
//! record or digest knows of them.

use super::Learning;
use crate::policy::Wants;
use crate::run::error::RunError;
use crate::world::Metrics;
use fedgenie_core::id::{ClientId, JobNumber};
use fedgenie_core::metric::{Place, statistics};
use fedgenie_learning::algorithm::JobMemory;
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::{Context, Job, On, PrivateView};
use fedgenie_learning::trainer::LocalTraining;
use fedgenie_learning::training::{Assignment, Rules, train};
use rayon::prelude::*;

/// Jobs whose results are there at a time.
const TOGETHER: usize = 64;

/// Models that clients have trained further.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tuned {
    /// Their metrics over clients.
    pub metrics: Metrics,
    /// How many there are.
    pub models: usize,
    /// How many of them diverged, and are not measured.
    pub diverged: usize,
}

impl Learning<'_> {
    /// Trains each client's model further, and measures it. Where there are clusters, all train the first one's.
    ///
    /// # Errors
    /// If the task fails, or the run is stopped.
    pub fn tuned(&self, epochs: u32, parallel: bool) -> Result<Tuned, RunError> {
        let usual = self.world.training.local.of_epochs(epochs);
        let settings = LocalTraining { proximal: 0.0, noise: None, ..usual };
        let context = Context { settings: &settings, ..self.context(Wants::default()) };
        let (round, start) = (self.state.round, self.model(0));
        let everyone = (0..self.world.population.len()).map(ClientId::from_index);
        let clients: Vec<ClientId> = everyone.filter(|&client| self.task.examples(client) > 0).collect();
        let mut updates = vec![Update::default(); TOGETHER.min(clients.len())];
        let (mut found, mut diverged) = (Vec::with_capacity(clients.len()), 0);
        for clients in clients.chunks(TOGETHER) {
            let job = |&client: &ClientId| {
                let private = self.state.private.get(client).map(|kept| &**kept);
                let (number, epochs, correction, contrast) = (JobNumber(u32::MAX), None, None, None);
                let job = Job { client, round, number, start: &start, private, epochs, correction, contrast };
                Assignment { job, memory: JobMemory::default() }
            };
            let jobs: Vec<Assignment<'_>> = clients.iter().map(job).collect();
            let updates = &mut updates[..jobs.len()];
            self.faults.note(train((self.task, Rules::default()), &context, &jobs, parallel, updates));
            self.check_work(round)?;
            diverged += updates.iter().filter(|update| update.diverged).count();
            let one = |(&client, update): (&ClientId, &Update)| self.measured_tuned(client, update, &start);
            let pairs = clients.par_iter().zip(&*updates);
            let measured: Vec<Option<Vec<f64>>> =
                if parallel { pairs.map(one).collect() } else { clients.iter().zip(&*updates).map(one).collect() };
            found.extend(measured.into_iter().flatten());
            self.check_work(round)?;
        }
        let of_measure = |(index, measure)| {
            let values: Vec<f64> = found.iter().map(|values: &Vec<f64>| values[index]).collect();
            statistics(Place::Clients, measure, &values).map(|(id, value)| (id.tuned(), value)).collect::<Vec<_>>()
        };
        let metrics = self.world.measures.of_data.iter().enumerate().flat_map(of_measure).collect();
        Ok(Tuned { metrics, models: clients.len(), diverged })
    }

    /// The measures of a client's result on its own data; `None` if it diverged or has nothing to be measured on.
    fn measured_tuned(&self, client: ClientId, update: &Update, start: &[f32]) -> Option<Vec<f64>> {
        if update.diverged {
            return None;
        }
        let mut buffer = Vec::new();
        let model = update.model(self.layout, start, &mut buffer);
        let own = [(client, &*update.private)];
        let instead = if update.private.is_empty() { &[][..] } else { &own[..] };
        let state = self.state.view(model, PrivateView { table: &self.state.private, instead });
        let mut values = vec![f64::NAN; self.world.measures.of_data.len()];
        (self.measured_on(On::Client(client), &state, false, &mut values) > 0.0).then_some(values)
    }
}
