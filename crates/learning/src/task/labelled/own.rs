//! Labelled examples, where each client has a model of its own beside the shared one.
//! [`crate::algorithm::ditto`] has the definition.

use super::super::{
    Appendix, Ask, Context, DealtData, Description, Job, Losses, ModelState, On, PrivateState, Task, Worker,
};
use super::Labelled;
use crate::algorithm::ditto::OwnModels;
use crate::data::partition::ClassCounts;
use crate::layout::{Layout, Update};
use crate::model::weights::TensorLayout;
use crate::trainer::{DenseJob, LocalTraining, Trainer, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use std::sync::Arc;

/// The shared task, and how clients train their own models.
#[derive(Clone, Debug)]
pub(super) struct WithOwnModels {
    pub shared: Labelled,
    pub own: OwnModels,
    /// What each client's own model is at first.
    pub initial: Arc<[f32]>,
}

impl WithOwnModels {
    /// The training of a job's own model.
    fn settings(&self, client: ClientId, context: &Context<'_>, epochs: Option<u32>) -> LocalTraining {
        let usual = context.settings.of_job(client, self.own.epochs.or(epochs));
        LocalTraining { proximal: self.own.lambda, ..usual.unwrap_or_else(|| context.settings.clone()) }
    }
}

impl Task for WithOwnModels {
    fn layout(&self) -> &Layout {
        self.shared.layout()
    }

    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        self.shared.init(cluster, streams, parameters);
    }

    fn describe(&self) -> &Description {
        self.shared.describe()
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        let own = settings.of_job(client, self.own.epochs);
        let of_own = self.shared.operations(client, own.as_ref().unwrap_or(settings));
        self.shared.operations(client, settings) + of_own
    }

    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure> {
        self.shared.train(job, context, worker, update)?;
        let settings = self.settings(job.client, context, job.epochs);
        let start = job.private.unwrap_or(&self.initial);
        let key = (job.client, job.round, job.number);
        let dense = DenseJob::new(&settings, context.streams, key, (start, self.layout().trained()));
        let dense = DenseJob { anchor: Some(job.start), halt: context.halt, ..dense };
        let trainer = Trainer {
            model: &*self.shared.model,
            data: &self.shared.data.train,
            settings: &settings,
            streams: context.streams,
        };
        let examples = self.shared.partition.client(job.client);
        let mut own = Update::default();
        trainer.do_job(&dense, (job.client, job.number), &examples, worker.keep(), Wanted::Update(&mut own));
        update.private = own.parameters;
        match own.diverged && !update.diverged {
            true => Err(format!(
                "{}'s own model is not finite after its job of round {}; a smaller lambda of [algorithm.ditto] may help, or \
                 a smaller learning rate",
                job.client, job.round.0
            )
            .into()),
            false => Ok(()),
        }
    }

    fn tells_losses_after_an_epoch(&self) -> bool {
        self.shared.tells_losses_after_an_epoch()
    }

    /// On a client's data, its own model.
    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure> {
        for asks in asks.chunk_by_mut(|one, next| one.on.client().is_some() == next.on.client().is_some()) {
            if asks[0].on.client().is_none() {
                self.shared.evaluate(asks, effort)?;
                continue;
            }
            for ask in asks {
                let client = ask.on.client().expect("all of these are of clients");
                let model = ask.state.private.get(client).unwrap_or(&self.initial);
                let state = ModelState { model, ..*ask.state };
                let mut of_own = [Ask::new(ask.on, &state, &mut *ask.values)];
                self.shared.evaluate(&mut of_own, effort)?;
                ask.weight = of_own[0].weight;
            }
        }
        Ok(())
    }

    fn test_of_alone(&self, client: ClientId) -> On<'static> {
        self.shared.test_of_alone(client)
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.shared.tensors()
    }

    fn appendix(&self) -> Appendix {
        self.shared.appendix()
    }

    fn whole(&self) -> Option<Arc<dyn Task>> {
        Some(Arc::new(self.shared.clone()))
    }

    fn controls_on(&self, parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        self.shared.controls_on(parts)
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn has_hidden(&self) -> bool {
        self.shared.has_hidden()
    }

    /// Of the shared model.
    fn losses(&self) -> Option<&dyn Losses> {
        self.shared.losses()
    }

    fn dealt(&self) -> Option<&dyn DealtData> {
        Some(self)
    }
}

impl PrivateState for WithOwnModels {
    fn len(&self, _client: ClientId) -> usize {
        self.initial.len()
    }

    fn init(&self, _client: ClientId, _streams: &Streams, private: &mut [f32]) {
        private.copy_from_slice(&self.initial);
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.shared.tensors()
    }
}

impl DealtData for WithOwnModels {
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        self.shared.categories()
    }

    fn test_of_servers(&self, servers: &[Vec<ClientId>], streams: &Streams) -> Vec<Vec<u32>> {
        self.shared.test_of_servers(servers, streams)
    }

    fn class_counts(&self, members: &[ClientId], test: &[u32]) -> Option<ClassCounts> {
        self.shared.class_counts(members, test)
    }

    fn with_data_of(&self, sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        Some(Arc::new(Self { shared: self.shared.moved(sources), ..self.clone() }))
    }

    fn shifts(&self) -> Vec<(u32, Arc<dyn Task>)> {
        let one = |(round, later): &(u32, Labelled)| {
            let task: Arc<dyn Task> = Arc::new(Self { shared: later.clone(), ..self.clone() });
            (*round, task)
        };
        self.shared.shifts.iter().map(one).collect()
    }

    fn with_fewer_tests(&self, most: usize) -> Option<(Arc<dyn Task>, f64)> {
        let (shared, share) = self.shared.thinned(most)?;
        Some((Arc::new(Self { shared, ..self.clone() }), share))
    }
}
