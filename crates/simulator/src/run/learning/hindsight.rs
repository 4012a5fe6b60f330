//! For the regret in hindsight: updates of clients that were not asked, and the score of each update by itself.

use super::Learning;
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::oracle::utility::contribution::deviation;
use fedgenie_core::oracle::utility::{ModelScore, UpdateScore};
use fedgenie_learning::model::{Batch, Scratch, evaluate};
use fedgenie_learning::trainer::{Trainer, TrainingJob, Update};
use rayon::prelude::*;

impl Learning<'_> {
    /// Whether a client has anything to train on.
    pub fn has_data(&self, client: ClientId) -> bool {
        !self.learner.partition.client(client).is_empty()
    }

    /// Number of a client's examples.
    pub fn examples(&self, client: ClientId) -> usize {
        self.learner.partition.client(client).len()
    }

    /// Trains clients from the model that a round sent, as if they had been asked; update `i` is that of client `i`.
    /// Neither the global model nor the updates of the clients that were asked change.
    pub fn train_in_hindsight(
        &self,
        start: &[f32],
        round: Round,
        clients: &[ClientId],
        parallel: bool,
        updates: &mut Vec<Update>,
    ) {
        let job = |&client: &ClientId| {
            let examples = self.learner.partition.client(client);
            TrainingJob { client, round, ticket: round, start, examples }
        };
        let jobs: Vec<TrainingJob<'_>> = clients.iter().map(job).collect();
        if updates.len() < jobs.len() {
            updates.resize_with(jobs.len(), Update::default);
        }
        let (data, settings) = (&self.learner.data.train, &self.world.training.local);
        Trainer { model: &*self.learner.model, data, settings, streams: &self.world.streams }.train(
            &jobs,
            parallel,
            &mut updates[..jobs.len()],
        );
    }

    /// The score of a model on the test data.
    pub fn score(&self, parameters: &[f32], parallel: bool) -> ModelScore {
        let data = &self.learner.data.test;
        let evaluation =
            evaluate(&*self.learner.model, parameters, Batch { data, examples: &self.test_examples }, parallel);
        let loss = evaluation.loss();
        ModelScore { loss, quality: if self.learner.classifies { evaluation.accuracy() } else { -loss } }
    }

    /// The score of each update by itself; none of one that diverged.
    pub fn score_updates(
        &self,
        start: &[f32],
        updates: &[(ClientId, &Update)],
        parallel: bool,
    ) -> Vec<Option<UpdateScore>> {
        let trained = self.learner.model.trained();
        let one = |(_, update): &(ClientId, &Update)| {
            let score = || UpdateScore {
                model: self.score(&update.parameters, false),
                deviation: deviation(&update.parameters[..trained], &start[..trained]),
            };
            (!update.diverged).then(score)
        };
        if parallel { updates.par_iter().map(one).collect() } else { updates.iter().map(one).collect() }
    }

    /// The sum of the squared losses of a model on each client's own examples.
    pub fn squared_losses(&self, parameters: &[f32], clients: &[ClientId], parallel: bool) -> Vec<f64> {
        let (model, data) = (&*self.learner.model, &self.learner.data.train);
        let one = |scratch: &mut Scratch, &client: &ClientId| {
            let square = |example: &u32| {
                let loss =
                    model.evaluate(parameters, Batch { data, examples: std::slice::from_ref(example) }, scratch).loss();
                loss * loss
            };
            self.learner.partition.client(client).iter().map(square).sum()
        };
        if parallel {
            clients.par_iter().map_init(Scratch::default, one).collect()
        } else {
            let mut scratch = Scratch::default();
            clients.iter().map(|client| one(&mut scratch, client)).collect()
        }
    }
}
