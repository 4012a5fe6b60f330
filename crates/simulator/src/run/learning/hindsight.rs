//! For the regret in hindsight: updates of clients that were not asked, and the score of each update by itself.

use super::{Learning, Trained};
use crate::policy::Wants;
use fedgenie_core::id::{ClientId, JobNumber, Round, Turn};
use fedgenie_core::oracle::utility::contribution::deviation;
use fedgenie_core::oracle::utility::{ModelScore, UpdateScore};
use fedgenie_core::time::Span;
use fedgenie_learning::layout::Update;
use fedgenie_learning::task::{self, Job, PrivateView, Worker};
use rayon::prelude::*;

impl Learning<'_> {
    /// Whether a client has anything to train on.
    pub fn has_data(&self, client: ClientId) -> bool {
        self.task.examples(client) > 0
    }

    /// Number of a client's examples.
    pub fn examples(&self, client: ClientId) -> usize {
        self.task.examples(client)
    }

    /// Trains clients from the model that a round sent, as if they had been asked; update `i` is that of client `i`.
    /// Neither the global model nor the updates of the clients that were asked change.
    pub fn train_in_hindsight(
        &self,
        start: &[f32],
        (round, number): (Round, JobNumber),
        clients: &[ClientId],
        parallel: bool,
        updates: &mut Vec<Update>,
    ) {
        let job = |&client: &ClientId| {
            let private = self.private.get(client).map(|kept| &**kept);
            Job { client, round, number, start, private }
        };
        let jobs: Vec<Job<'_>> = clients.iter().map(job).collect();
        if updates.len() < jobs.len() {
            updates.resize_with(jobs.len(), Update::default);
        }
        task::train(self.task, &self.world.context(), &jobs, parallel, &mut updates[..jobs.len()]);
    }

    /// Whole jobs of clients whose updates are only looked at, ascending by client, without those that diverged.
    pub fn rehearse(
        &self,
        round: Round,
        turn: Turn,
        clients: &[ClientId],
        wants: Wants,
        parallel: bool,
    ) -> Vec<(Trained, Update)> {
        let start = self.model(0);
        let mut clients: Vec<ClientId> = clients.iter().copied().filter(|&client| self.has_data(client)).collect();
        clients.sort_unstable();
        let number = JobNumber::from(turn);
        let job = |&client: &ClientId| {
            let private = self.private.get(client).map(|kept| &**kept);
            Job { client, round, number, start: &start, private }
        };
        let jobs: Vec<Job<'_>> = clients.iter().map(job).collect();
        let mut updates = vec![Update::default(); jobs.len()];
        task::train(self.task, &self.context(wants), &jobs, parallel, &mut updates);
        let found = clients.into_iter().zip(updates).filter(|(_, update)| !update.diverged);
        let one = |(client, update): (ClientId, Update)| {
            let mut buffer = Vec::new();
            let model = update.model(self.layout, &start, &mut buffer);
            let trained = self.layout.trained();
            let report = Trained {
                client,
                turn,
                round,
                staleness: 0,
                examples: self.task.examples(client),
                loss: f64::from(update.first_loss),
                loss_rms: update.loss_rms,
                quality: wants.quality.then(|| self.score_of(client, model, &update).quality),
                deviation: wants.deviation.map(|_| deviation(&model[..trained], &start[..trained])),
                latency: Span::ZERO,
            };
            (report, update)
        };
        found.map(one).collect()
    }

    /// The score of the model that a round sent.
    pub fn score_sent(&self, start: &[f32], parallel: bool) -> ModelScore {
        self.score(&self.state(start, PrivateView::of(&self.private)), parallel)
    }

    /// The score of each update by itself; none of one that diverged.
    pub fn score_updates(
        &self,
        start: &[f32],
        updates: &[(ClientId, &Update)],
        parallel: bool,
    ) -> Vec<Option<UpdateScore>> {
        let trained = self.layout.trained();
        let one = |&(client, update): &(ClientId, &Update)| {
            let mut buffer = Vec::new();
            if update.diverged {
                return None;
            }
            let model = update.model(self.layout, start, &mut buffer);
            Some(UpdateScore {
                model: self.score_of(client, model, update),
                deviation: deviation(&model[..trained], &start[..trained]),
            })
        };
        if parallel { updates.par_iter().map(one).collect() } else { updates.iter().map(one).collect() }
    }

    /// The sum of the squared losses of a model on each client's own examples.
    pub fn squared_losses(&self, parameters: &[f32], clients: &[ClientId], parallel: bool) -> Vec<f64> {
        let state = self.state(parameters, PrivateView::of(&self.private));
        let one = |worker: &mut Worker, &client: &ClientId| self.task.squared_losses(client, &state, worker);
        if parallel {
            clients.par_iter().map_init(Worker::default, one).collect()
        } else {
            let mut worker = Worker::default();
            clients.iter().map(|client| one(&mut worker, client)).collect()
        }
    }
}
