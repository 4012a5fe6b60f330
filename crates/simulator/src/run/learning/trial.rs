//! What clients that were not asked would have returned, and what a client's own update is worth by itself.

use super::{Learning, Trained};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::oracle::utility::contribution::deviation;
use fedgenie_core::oracle::utility::{Tested, Tried};
use fedgenie_learning::model::{Evaluation, Scratch, evaluate};
use fedgenie_learning::trainer::{TrainingJob, Update, train};
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

    /// Trains clients from the model that a round sent, as if they had been asked; update `i` is that of client `i`. Neither the
    /// global model nor the updates of those who were asked change.
    pub fn try_out(
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
        let (data, settings) = (&self.learner.data.train, &self.world.training);
        train(&jobs, &*self.learner.model, data, settings, &self.world.streams, parallel, &mut updates[..jobs.len()]);
    }

    /// The updates that went into the model last, by those who were asked; `trained` is what that aggregation returned.
    pub fn updates<'a>(&'a self, trained: &'a [Trained]) -> impl Iterator<Item = (ClientId, &'a Update)> {
        trained.iter().map(|trained| trained.client).zip(&self.updates)
    }

    /// A model on the test data.
    pub fn test(&self, parameters: &[f32], parallel: bool) -> Tested {
        self.tested(evaluate(&*self.learner.model, parameters, &self.learner.data.test, &self.test_examples, parallel))
    }

    fn tested(&self, evaluation: Evaluation) -> Tested {
        let loss = evaluation.loss();
        Tested { loss, quality: if self.learner.classifies { evaluation.accuracy() } else { -loss } }
    }

    /// What each update is worth by itself; none of one that diverged.
    pub fn judge(&self, start: &[f32], updates: &[(ClientId, &Update)], parallel: bool) -> Vec<Option<Tried>> {
        let trained = self.learner.model.trained();
        let one = |(_, update): &(ClientId, &Update)| {
            let tried = || Tried {
                tested: self.test(&update.parameters, false),
                deviation: deviation(&update.parameters[..trained], &start[..trained]),
            };
            (!update.diverged).then(tried)
        };
        if parallel { updates.par_iter().map(one).collect() } else { updates.iter().map(one).collect() }
    }

    /// The sum of the squared losses of a model on each client's own examples.
    pub fn squared_losses(&self, parameters: &[f32], clients: &[ClientId], parallel: bool) -> Vec<f64> {
        let (model, data) = (&*self.learner.model, &self.learner.data.train);
        let one = |scratch: &mut Scratch, &client: &ClientId| {
            let square = |example: &u32| {
                let loss = model.evaluate(parameters, data, std::slice::from_ref(example), scratch).loss();
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
