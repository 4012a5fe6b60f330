//! What clients learn, as one object: parameters, local training, measures, evaluation.
//!
//! A task knows its data and who holds what of them. The run knows the clock, who was selected, and when updates are
//! aggregated; it keeps the global model and what clients keep to themselves, and hands them to the task.
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

pub use clusters::{ClusterNetworks, read_clusters};
pub use describe::{Appendix, Description, References};
pub use error::{TaskError, check_parameters};
pub use evaluation::{Ask, ModelState, On};
pub use labelled::Labelled;
pub use parts::{DealtData, Losses, Need, PartialTransfer, PrivateState, ProbeKind, Probes, Script};
pub use rating_graph::RatingGraph;
pub use recommendation::Recommendation;

pub use crate::private::{PrivateTable, PrivateView};

use crate::algorithm::Combine;
use crate::layout::{Layout, Update};
use crate::model::weights::Tensor;
use crate::trainer::{DenseJob, LocalTraining};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::Streams;
use std::any::Any;

/// Something that clients learn together.
///
/// The methods without a default are what every task is; the others hand out [optional parts](parts).
///
/// # Determinism
/// What a method gives depends on its arguments alone, not on the thread or on what a worker did before.
pub trait Task: Any + std::fmt::Debug + Send + Sync {
    /// The parameters that travel.
    fn layout(&self) -> &Layout;

    /// Fills the model that a run starts from, with the segments of one cluster.
    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]);

    /// What is known of the data and who holds them. It is asked for in every round: keep it ready.
    fn describe(&self) -> &Description;

    /// What the files of a run say beside its records.
    fn appendix(&self) -> Appendix {
        Appendix::default()
    }

    /// Operations of a client's job, roughly: decides how jobs are put together for threads, and nothing else.
    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64;

    /// One client's training: from what it was sent and what it keeps to its update.
    fn train(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, update: &mut Update);

    /// How the updates of this model are combined, where it has a way of its own.
    fn combination(&self) -> Option<&dyn Combine> {
        None
    }

    /// Answers each question: writes its values and its weight. What a question gets does not depend on the others, bit
    /// for bit. A task may share work between neighbours in the list: test and then validation data of the same model,
    /// then the measures of that model alone, or the same data under several models.
    fn evaluate(&self, asks: &mut [Ask<'_>], parallel: bool);

    /// What is written to a model file: named tensors, of the models of all clusters and of what clients keep.
    fn tensors(&self, models: &[&[f32]], private: &PrivateView<'_>) -> Vec<Tensor>;

    /// Jobs that move less than the whole model; none where every job moves the whole model, both ways.
    fn partial(&self) -> Option<&dyn PartialTransfer> {
        None
    }

    /// What clients keep to themselves; none where they keep nothing.
    fn private(&self) -> Option<&dyn PrivateState> {
        None
    }

    /// Losses outside of training; none where a model has none on a client's data.
    fn losses(&self) -> Option<&dyn Losses> {
        None
    }

    /// Questions that clients answer before a selection; none where they know their losses alone.
    fn probes(&self) -> Option<&dyn Probes> {
        None
    }

    /// Who holds examples of which kind; none where examples are all alike and stay where they are.
    fn dealt(&self) -> Option<&dyn DealtData> {
        None
    }

    /// Numbers that are looked up; none where everything is computed.
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

    /// What a client keeps: what its updates left, or what it starts with.
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

    /// Bytes of an update that was trained.
    pub fn update_bytes(&self, update: &Update, context: &Context<'_>) -> u64 {
        let of_rows = || self.layout().bytes_of(&update.rows);
        self.partial().map_or_else(of_rows, |partial| partial.update_bytes(update, context))
    }

    /// What clients can be asked.
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

/// What a client has to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Who trains.
    pub client: ClientId,
    /// The server's round in which it was dispatched; decides the learning rate.
    pub round: Round,
    /// What its random numbers belong to, beside the client.
    pub number: JobNumber,
    /// The model it was sent.
    pub start: &'a [f32],
    /// What it kept; none if no update of it was ever aggregated.
    pub private: Option<&'a [f32]>,
    /// Whole epochs in place of those of the settings; none as the settings say. Never given where they count steps.
    pub epochs: Option<u32>,
    /// Numbers added to every gradient, one for each parameter of the layout: after clipping, before the proximal term
    /// and decay. Of tables, to the rows that the job moves, in each of its steps.
    pub correction: Option<&'a [f32]>,
}

impl<'a> Job<'a> {
    /// The job as one whose steps move all parameters, of which the first `trained` are trained.
    pub(crate) fn dense(&self, context: &Context<'a>, trained: usize) -> DenseJob<'a> {
        let Self { client, round, number, start, epochs, correction, .. } = *self;
        let Context { settings, streams, loss_rms } = *context;
        let job = DenseJob::new(settings, streams, (client, round, number), (start, trained));
        DenseJob { epochs, correction, loss_rms, ..job }
    }
}

/// What all jobs of a run have in common.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// How clients train.
    pub settings: &'a LocalTraining,
    /// All random numbers of the seed.
    pub streams: &'a Streams,
    /// Whether updates have the root mean square of their losses.
    pub loss_rms: bool,
}

/// What a thread reuses from job to job: whatever the task keeps there.
#[derive(Default)]
pub struct Worker {
    kept: Option<Box<dyn Any + Send>>,
}

impl Worker {
    /// What the task keeps, made at the first call.
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
