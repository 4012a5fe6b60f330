//! Labelled examples, where each client keeps a part of the model. [`crate::algorithm::personal`] has the definition.

use super::super::{
    Appendix, Ask, Context, DealtData, Description, Job, Losses, ModelState, On, PrivateState, Task, Worker,
};
use super::Labelled;
use crate::adversary::Adversaries;
use crate::algorithm::personal::Divided;
use crate::data::partition::ClassCounts;
use crate::layout::{Layout, Update};
use crate::model::weights::TensorLayout;
use crate::trainer::{DenseJob, Length, LocalTraining, Trainer, Wanted};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::Effort;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use std::ops::Range;
use std::sync::Arc;

/// The task of the whole model, and the parts of it.
#[derive(Clone, Debug)]
pub(super) struct WithPersonalLayers {
    pub whole: Labelled,
    pub parts: Divided,
    /// What each client's part is at first.
    pub initial: Arc<[f32]>,
    /// Epochs in which the private part is trained alone, before the shared one is.
    pub private_epochs: Option<u32>,
}

impl WithPersonalLayers {
    /// A client's whole model.
    fn model_of(&self, shared: &[f32], private: Option<&[f32]>) -> Vec<f32> {
        self.parts.whole(shared, private.unwrap_or(&self.initial))
    }

    /// The same, with the private state of a client in a view.
    fn state_of<'a>(&self, client: ClientId, state: &ModelState<'a>, whole: &'a mut Vec<f32>) -> ModelState<'a> {
        *whole = self.model_of(state.model, state.private.get(client));
        ModelState { model: whole, ..*state }
    }

    /// The update of one phase, in which some parameters are frozen.
    fn phase(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        frozen: &[Range<usize>],
        worker: &mut Worker,
        update: &mut Update,
    ) {
        let dense = DenseJob { frozen, ..job.dense(context, self.whole.layout.trained()) };
        let trainer = Trainer {
            model: &*self.whole.model,
            data: &self.whole.data.train,
            settings: context.settings,
            streams: context.streams,
        };
        let examples = self.whole.partition.client(job.client);
        trainer.do_job(&dense, (job.client, job.number), &examples, worker.keep(), Wanted::Update(update));
    }

    /// An update of the whole model becomes one of the shared part, and of the client's own.
    fn divide(&self, update: &mut Update) {
        let whole = std::mem::take(&mut update.parameters);
        update.private.clear();
        update.private.extend(self.parts.private_of(&whole));
        update.parameters.extend(self.parts.shared_of(&whole));
    }
}

impl Task for WithPersonalLayers {
    fn layout(&self) -> &Layout {
        &self.parts.layout
    }

    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]) {
        let whole = (&self.whole as &dyn Task).initial_model(cluster, streams);
        parameters.iter_mut().zip(self.parts.shared_of(&whole)).for_each(|(parameter, shared)| *parameter = shared);
    }

    fn describe(&self) -> &Description {
        self.whole.describe()
    }

    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64 {
        let first = settings.of_job(client, self.private_epochs);
        let of_first = first.map_or(0.0, |first| self.whole.operations(client, &first));
        self.whole.operations(client, settings) + of_first
    }

    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure> {
        let start = self.model_of(job.start, job.private);
        let job = Job { start: &start, private: None, ..*job };
        let Some(epochs) = self.private_epochs else {
            self.phase(&job, context, &[], worker, update);
            self.divide(update);
            return Ok(());
        };
        let settings = LocalTraining { length: Length::Epochs(epochs), lengths: None, ..context.settings.clone() };
        let of_first = Context { settings: &settings, ..*context };
        let mut first = Update::default();
        self.phase(&Job { epochs: None, ..job }, &of_first, &self.parts.shared, worker, &mut first);
        self.phase(&Job { start: &first.parameters, ..job }, context, &self.parts.private, worker, update);
        (update.first_loss, update.loss_rms) = (first.first_loss, first.loss_rms);
        update.diverged |= first.diverged;
        self.divide(update);
        Ok(())
    }

    fn tells_losses_after_an_epoch(&self) -> bool {
        self.whole.tells_losses_after_an_epoch()
    }

    /// On a client's data, its whole model; there is none on other data.
    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            let Some(client) = ask.on.client() else { continue };
            let mut whole = Vec::new();
            let state = self.state_of(client, ask.state, &mut whole);
            let mut of_own = [Ask::new(ask.on, &state, &mut *ask.values)];
            self.whole.evaluate(&mut of_own, effort)?;
            ask.weight = of_own[0].weight;
        }
        Ok(())
    }

    fn test_of_alone(&self, client: ClientId) -> On<'static> {
        self.whole.test_of_alone(client)
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.parts.shared_tensors.clone()
    }

    /// What a constant achieves on test data stands beside no metric.
    fn appendix(&self) -> Appendix {
        Appendix { controls: Vec::new(), ..self.whole.appendix() }
    }

    fn whole(&self) -> Option<Arc<dyn Task>> {
        Some(Arc::new(self.whole.clone()))
    }

    fn controls_on(&self, parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        self.whole.controls_on(parts)
    }

    fn relabelled(&self, hostile: &Adversaries) -> Result<Arc<dyn Task>, String> {
        Ok(Arc::new(Self { whole: self.whole.with_labels_of(hostile)?, ..self.clone() }))
    }

    fn private(&self) -> Option<&dyn PrivateState> {
        Some(self)
    }

    fn has_hidden(&self) -> bool {
        self.whole.has_hidden()
    }

    fn losses(&self) -> Option<&dyn Losses> {
        Some(self)
    }

    fn dealt(&self) -> Option<&dyn DealtData> {
        Some(self)
    }
}

impl PrivateState for WithPersonalLayers {
    fn len(&self, _client: ClientId) -> usize {
        self.initial.len()
    }

    fn init(&self, _client: ClientId, _streams: &Streams, private: &mut [f32]) {
        private.copy_from_slice(&self.initial);
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        self.parts.private_tensors.clone()
    }
}

/// Of each client's whole model; slopes by the shared part.
impl Losses for WithPersonalLayers {
    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure> {
        self.whole.client_loss(client, &self.state_of(client, state, &mut Vec::new()))
    }

    fn has_batch_losses(&self) -> bool {
        self.whole.has_batch_losses()
    }

    fn losses_of(&self, client: ClientId) -> usize {
        self.whole.losses_of(client)
    }

    fn batch_loss(&self, client: ClientId, state: &ModelState<'_>, places: &[usize]) -> Result<f64, Failure> {
        self.whole.batch_loss(client, &self.state_of(client, state, &mut Vec::new()), places)
    }

    fn squared_losses(&self, client: ClientId, state: &ModelState<'_>, worker: &mut Worker) -> Result<f64, Failure> {
        self.whole.squared_losses(client, &self.state_of(client, state, &mut Vec::new()), worker)
    }

    fn has_gradient(&self) -> bool {
        self.whole.has_gradient()
    }

    fn gradient(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        let start = self.model_of(job.start, job.private);
        let mut whole = Vec::new();
        let job = Job { start: &start, private: None, ..*job };
        let is_known = self.whole.gradient(&job, context, worker, &mut whole)?;
        gradient.clear();
        gradient.extend(self.parts.shared_of(&whole));
        Ok(is_known)
    }
}

impl DealtData for WithPersonalLayers {
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        self.whole.categories()
    }

    fn test_of_servers(&self, servers: &[Vec<ClientId>], streams: &Streams) -> Vec<Vec<u32>> {
        self.whole.test_of_servers(servers, streams)
    }

    fn class_counts(&self, members: &[ClientId], test: &[u32]) -> Option<ClassCounts> {
        self.whole.class_counts(members, test)
    }

    fn with_data_of(&self, sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        Some(Arc::new(Self { whole: self.whole.moved(sources), ..self.clone() }))
    }

    fn shifts(&self) -> Vec<(u32, Arc<dyn Task>)> {
        let one = |(round, later): &(u32, Labelled)| {
            let task: Arc<dyn Task> = Arc::new(Self { whole: later.clone(), ..self.clone() });
            (*round, task)
        };
        self.whole.shifts.iter().map(one).collect()
    }
}
