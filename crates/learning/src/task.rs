//! The task that clients learn, as one object: parameters, local training, measures, evaluation.
//!
//! A task knows its data and their holders. The run knows the clock, the selected clients, and when updates are
//! aggregated; it keeps the global model and the private state of clients, and hands them to the task.
//!
//! | module | task |
//! |---|---|
//! | [`labelled`] | rows with a class or a number, any [`crate::model::Model`] |
//! | [`recommendation`] | ratings, learned by rows of users and items |
//! | [`rating_graph`] | ratings, predicted on graphs of users, items and trust |

mod clusters;
mod describe;
mod error;
mod evaluation;
pub mod labelled;
pub mod parts;
pub mod rating_graph;
pub mod recommendation;

pub use clusters::{ClusterNetworks, read_clusters, tensors_of_models};
pub use describe::{Appendix, Controls, Description};
pub use error::{TaskError, check_parameters};
pub use evaluation::{Ask, ModelState, On};
pub use labelled::{Labelled, Shifted};
pub use parts::{DealtData, Losses, Need, PartialTransfer, PrivateState, ProbeKind, Probes, Script, Together};
pub use rating_graph::RatingGraph;
pub use recommendation::Recommendation;

pub use crate::private::{PrivateTable, PrivateView};

use crate::adversary::Adversaries;
use crate::algorithm::Combine;
use crate::algorithm::ditto::OwnModels;
use crate::layout::{Layout, Parcel, Update};
use crate::model::weights::TensorLayout;
use crate::trainer::{Contrasted, DenseJob, LocalTraining};
use fedgenie_core::failure::Failure;
use fedgenie_core::halt::{Effort, Halt};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::Streams;
use std::any::Any;
use std::sync::Arc;

/// Something that clients learn together.
///
/// Every task has the methods without a default; the others hand out [optional parts](parts). A method without a
/// `Result` cannot fail: what it needs is made ready when the task is set up, where a fault is a [`TaskError`].
///
/// # Determinism
/// A method's result depends on its arguments alone, not on the thread or on earlier calls of a worker.
pub trait Task: Any + std::fmt::Debug + Send + Sync {
    /// The parameters that travel.
    fn layout(&self) -> &Layout;

    /// Fills the model that a run starts from, with the segments of one cluster.
    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]);

    /// Description of the data and their holders. It is asked for in every round: keep it ready.
    fn describe(&self) -> &Description;

    /// Contents of a run's files beside its records.
    fn appendix(&self) -> Appendix {
        Appendix::default()
    }

    /// Operations of a client's job, roughly: decides how jobs are put together for threads, and nothing else.
    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64;

    /// One client's training: from the model that it was sent and its private state to its update. Once
    /// `context.halt` is due it may return early, with an update that is not used.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn train(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        worker: &mut Worker,
        update: &mut Update,
    ) -> Result<(), Failure>;

    /// Whether the first epoch of a job goes the same way however many follow it, and makes all the losses that an
    /// update tells. Of a job whose losses alone are wanted, only this epoch is then trained.
    fn tells_losses_after_an_epoch(&self) -> bool {
        false
    }

    /// Training of many jobs in one call; `None` if jobs are trained one by one, side by side on threads.
    fn together(&self) -> Option<&dyn Together> {
        None
    }

    /// How the updates of this model are combined, where it has a way of its own.
    fn combination(&self) -> Option<&dyn Combine> {
        None
    }

    /// Answers each question: writes its values and its weight. An answer does not depend on the other questions, bit
    /// for bit. A task may share work between neighbours in the list: test and then validation data of the same model,
    /// then the measures of that model alone, or the same data under several models. Once `effort.halt` is due it may
    /// return early, with values that are not used.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn evaluate(&self, asks: &mut [Ask<'_>], effort: Effort<'_>) -> Result<(), Failure>;

    /// The same task, with the labels that hostile clients train on.
    ///
    /// # Errors
    /// A sentence that says why it has no such labels.
    fn relabelled(&self, _hostile: &Adversaries) -> Result<Arc<dyn Task>, String> {
        Err("needs examples with classes; take another attack".to_owned())
    }

    /// The same task, where each client has a model of its own beside the shared one.
    ///
    /// # Errors
    /// A sentence that says why that is not defined.
    fn with_own_models(&self, _own: OwnModels, _streams: &Streams) -> Result<Arc<dyn Task>, String> {
        Err("is defined for labelled examples; take another task, or the entry out".to_owned())
    }

    /// The same task with one whole model that travels, where clients keep models of their own or parts of one; `None`
    /// if it is that already.
    fn whole(&self) -> Option<Arc<dyn Task>> {
        None
    }

    /// Controls on data of clients or of edge servers: by name, the values of the measures of data on each, `None`
    /// where there is nothing to measure on. They can be slow to make, and are made when a run ends.
    fn controls_on(&self, _parts: &[On<'_>]) -> Vec<(&'static str, Vec<Option<Vec<f64>>>)> {
        Vec::new()
    }

    /// The data on which a model is measured that a client has trained alone: the test data, or those of the client,
    /// where clients have some of their own.
    fn test_of_alone(&self, _client: ClientId) -> On<'static> {
        On::Test
    }

    /// Names and shapes of the tensors that a model's numbers are, for its file: [`Task::layout`] says which of them
    /// clusters share.
    fn tensors(&self) -> Vec<TensorLayout>;

    /// Jobs that move less than the whole model; `None` if every job moves the whole model, both ways.
    fn partial(&self) -> Option<&dyn PartialTransfer> {
        None
    }

    /// Private state of clients; `None` if they have no such state.
    fn private(&self) -> Option<&dyn PrivateState> {
        None
    }

    /// Whether its model is a network whose last hidden layer can be contrasted.
    fn has_hidden(&self) -> bool {
        false
    }

    /// Losses outside of training; `None` if a model has no loss on a client's data.
    fn losses(&self) -> Option<&dyn Losses> {
        None
    }

    /// Questions that clients answer before a selection; `None` if they know their losses alone.
    fn probes(&self) -> Option<&dyn Probes> {
        None
    }

    /// Holders of examples of each kind; `None` if examples are all alike and stay where they are.
    fn dealt(&self) -> Option<&dyn DealtData> {
        None
    }

    /// Numbers that are looked up; `None` if everything is computed.
    fn script(&self) -> Option<&dyn Script> {
        None
    }
}

impl dyn Task {
    /// The task, if it is of this type.
    pub fn downcast<T: Task>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Number of a client's training examples.
    pub fn examples(&self, client: ClientId) -> usize {
        self.describe().examples_of(client)
    }

    /// The model that every run of a seed starts from, for one cluster.
    pub fn initial_model(&self, cluster: u32, streams: &Streams) -> Vec<f32> {
        let mut parameters = vec![0.0; self.layout().len()];
        self.init(cluster, streams, &mut parameters);
        parameters
    }

    /// A client's private state: as its updates left it, or as it starts.
    pub fn private_of(&self, client: ClientId, kept: Option<&[f32]>, streams: &Streams) -> Vec<f32> {
        match (kept, self.private()) {
            (Some(kept), _) => kept.to_vec(),
            (None, None) => Vec::new(),
            (None, Some(state)) => {
                let mut private = vec![0.0; state.len(client)];
                state.init(client, streams, &mut private);
                private
            }
        }
    }

    /// What an update that was trained moves.
    pub fn parcel(&self, update: &Update, context: &Context<'_>) -> Parcel {
        let of_rows = || self.layout().parcel_of(&update.rows);
        self.partial().map_or_else(of_rows, |partial| partial.parcel(update, context))
    }

    /// Kinds of questions for clients.
    pub fn probe_kinds(&self) -> &[ProbeKind] {
        self.probes().map_or(&[], Probes::kinds)
    }

    /// How many numbers each server remembers.
    pub fn memory_len(&self) -> usize {
        self.script().map_or(0, Script::memory_len)
    }
}

/// A client's job, as its random numbers know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// Whose.
    pub client: ClientId,
    /// Which of its jobs.
    pub number: JobNumber,
}

/// A client's job.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The client that trains.
    pub client: ClientId,
    /// The server's round in which it was dispatched; decides the learning rate.
    pub round: Round,
    /// Number of the job; with the client, it selects the stream of random numbers.
    pub number: JobNumber,
    /// The model it was sent.
    pub start: &'a [f32],
    /// Its private state; `None` if no update of it was ever aggregated.
    pub private: Option<&'a [f32]>,
    /// Whole epochs in place of those of the settings; `None` keeps the settings. Never given where they count steps.
    pub epochs: Option<u32>,
    /// Numbers added to every gradient, one for each parameter of the layout: after clipping, before the proximal term
    /// and decay. Of tables, to the rows that the job moves, in each of its steps.
    pub correction: Option<&'a [f32]>,
    /// A contrast of representations that is added to the loss of each step.
    pub contrast: Option<Contrasted<'a>>,
}

impl<'a> Job<'a> {
    /// The job as one whose steps move all parameters, of which the first `trained` are trained.
    pub(crate) fn dense(&self, context: &Context<'a>, trained: usize) -> DenseJob<'a> {
        let Self { client, round, number, start, epochs, correction, contrast, .. } = *self;
        let Context { settings, streams, loss_rms, halt } = *context;
        let job = DenseJob::new(settings, streams, (client, round, number), (start, trained));
        DenseJob { epochs, correction, contrast, loss_rms, halt, ..job }
    }
}

/// Inputs that all jobs of a run share.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// How clients train.
    pub settings: &'a LocalTraining,
    /// All random numbers of the seed.
    pub streams: &'a Streams,
    /// Whether updates have the root mean square of their losses.
    pub loss_rms: bool,
    /// When jobs may end early.
    pub halt: &'a Halt,
}

/// State that a thread reuses from job to job; the task chooses its type.
#[derive(Default)]
pub struct Worker {
    kept: Option<Box<dyn Any + Send>>,
}

impl Worker {
    /// The task's state, made at the first call.
    ///
    /// # Panics
    /// If another type was kept before: a worker serves one task.
    pub fn keep<T: Default + Send + 'static>(&mut self) -> &mut T {
        let kept = self.kept.get_or_insert_with(|| Box::new(T::default()));
        kept.downcast_mut().expect("a worker serves one task")
    }
}

#[cfg(test)]
mod job_tests;
