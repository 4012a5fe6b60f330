//! Optional parts of a task. A task that has one hands itself out as it; without it, the rest goes on as the part's
//! accessor in [`Task`] says.
//!
//! | part | implement it if |
//! |---|---|
//! | [`Together`] | the jobs of a round are better trained in one call, such as in another process |
//! | [`PartialTransfer`] | a job moves less than the whole model |
//! | [`PrivateState`] | clients keep numbers to themselves from job to job |
//! | [`Losses`] | a model's loss on a client's data, or its slope, is defined |
//! | [`Probes`] | clients can be asked for more than losses before a selection |
//! | [`DealtData`] | examples have classes, belong to edge servers, or move between clients |
//! | [`Script`] | numbers are looked up rather than learned |

use super::{Context, Job, JobKey, ModelState, PrivateView, Task, Worker};
use crate::data::partition::ClassCounts;
use crate::layout::{Parcel, Update};
use crate::model::weights::{Tensor, TensorLayout};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::rng::Streams;
use rayon::prelude::*;
use std::sync::Arc;

/// Training of many jobs in one call, such as in other processes or in one batch of an accelerator.
///
/// # Determinism
/// Update `i` is that of job `i` alone, bit for bit: it depends neither on the other jobs nor on their number.
pub trait Together: Sync {
    /// Trains all jobs, each to its update. A job's `epochs` take the place of those of `context.settings`. Once
    /// `context.halt` is due it may return early, with updates that are not used.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn train_many(&self, jobs: &[Job<'_>], context: &Context<'_>, updates: &mut [Update]) -> Result<(), Failure>;
}

/// Jobs that move less than the whole model, such as rows of a table.
///
/// One task of the library has it, whose models all have rows of items; a task of its own with rows needs it as well.
pub trait PartialTransfer: Task {
    /// What a job moves, down and up. The second is the update, whose size the run checks.
    fn transfer(&self, job: JobKey, context: &Context<'_>) -> [Parcel; 2];

    /// What an update that was trained moves, which is the second of its job's transfer.
    fn parcel(&self, update: &Update, _context: &Context<'_>) -> Parcel {
        self.layout().parcel_of(&update.rows)
    }
}

/// Numbers that clients keep to themselves from job to job, such as an embedding or an optimizer's moments. This part
/// gives their initial values; an update of the client replaces them, once it is aggregated.
///
/// Clients of recommenders keep rows of users; under `ditto` clients keep models, under `fedper` and its like parts of
/// them.
pub trait PrivateState: Sync {
    /// How many numbers a client keeps.
    fn len(&self, client: ClientId) -> usize;

    /// Fills the private state of a client before its first aggregated update; zeros are there already.
    fn init(&self, _client: ClientId, _streams: &Streams, _private: &mut [f32]) {}

    /// Names and shapes of the tensors that a client's numbers are; none if they have no names.
    fn tensors(&self) -> Vec<TensorLayout> {
        Vec::new()
    }

    /// The private state of all clients for the file of a model, under names that no tensor of the model has; without
    /// any, the file has the model alone.
    fn in_file(&self, _private: &PrivateView<'_>) -> Vec<Tensor> {
        Vec::new()
    }
}

/// Losses outside of training, for policies that compare clients and for utilities that judge their updates.
pub trait Losses: Sync {
    /// Loss of a model on a client's own data; NaN where that is not defined.
    ///
    /// # Errors
    /// Whatever ends the run; so do those of the methods below.
    fn client_loss(&self, client: ClientId, state: &ModelState<'_>) -> Result<f64, Failure>;

    /// Whether [`Losses::batch_loss`] is defined.
    fn has_batch_losses(&self) -> bool {
        false
    }

    /// Number of the losses of which [`Losses::client_loss`] is the mean, where parts of them are defined.
    fn losses_of(&self, _client: ClientId) -> usize {
        0
    }

    /// The mean of some of these losses, at ascending places below their number; NaN where that is not defined.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn batch_loss(&self, _client: ClientId, _state: &ModelState<'_>, _places: &[usize]) -> Result<f64, Failure> {
        Ok(f64::NAN)
    }

    /// The sum of the squared losses of a model over a client's own examples; NaN where that is not defined.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn squared_losses(&self, _client: ClientId, _state: &ModelState<'_>, _worker: &mut Worker) -> Result<f64, Failure> {
        Ok(f64::NAN)
    }

    /// Whether [`Losses::gradient`] is defined.
    fn has_gradient(&self) -> bool {
        false
    }

    /// Replaces `gradient` by the mean gradient of the loss alone over a client's own examples at the model that it was
    /// sent, as the mini-batches of the job's first epoch see them: neither clipped nor corrected, without proximal
    /// term and decay. One number for each of the layout, zeros at statistics and at rows without slope. False where
    /// that is not defined, as it is without examples.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn gradient(
        &self,
        _job: &Job<'_>,
        _context: &Context<'_>,
        _worker: &mut Worker,
        _gradient: &mut Vec<f32>,
    ) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Replaces `slope` by the slope of the mean loss on validation data, or else on test data, at the model and the
    /// private state, by the parameters of [`Task::layout`], one number each. False where that is not defined.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn slope(&self, _state: &ModelState<'_>, _slope: &mut Vec<f32>) -> Result<bool, Failure> {
        Ok(false)
    }
}

/// A number or vector that a client can be asked for before a selection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeKind {
    /// Its name.
    pub name: &'static str,
    /// Numbers in an answer: 8 bytes each.
    pub numbers: usize,
    /// How long an answer takes to compute, as a share of an inference pass over the client's data.
    pub passes: f64,
    /// Whether the client needs the current model for it, and downloads it.
    pub needs_model: bool,
}

/// Questions that clients answer before a selection, beside their losses, each known by a name.
///
/// One task of the library has it: the questions are those of policies for recommendation.
pub trait Probes: Sync {
    /// Kinds of questions for clients.
    fn kinds(&self) -> &[ProbeKind];

    /// Appends the client's answer in the round of this job.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn answer(
        &self,
        kind: &ProbeKind,
        job: JobKey,
        context: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) -> Result<(), Failure>;

    /// Answers of clients in the rounds of these jobs, one after the other: for tasks that share work between clients.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn answers(
        &self,
        kind: &ProbeKind,
        jobs: &[JobKey],
        context: &Context<'_>,
        state: &ModelState<'_>,
        parallel: bool,
    ) -> Result<Vec<f64>, Failure> {
        let one = |&job: &JobKey| {
            let mut answer = Vec::with_capacity(kind.numbers);
            self.answer(kind, job, context, state, &mut answer).map(|()| answer)
        };
        // The first failure in the order of jobs, whichever came first.
        let answers: Vec<Result<Vec<f64>, Failure>> =
            if parallel { jobs.par_iter().map(one).collect() } else { jobs.iter().map(one).collect() };
        Ok(answers.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Bytes of an answer, where it travels as something else than its numbers, which have 8 bytes each. Such an answer
    /// takes its share of the time in which the client would send the whole model.
    fn bytes(&self, _kind: &ProbeKind, _job: JobKey, _context: &Context<'_>) -> Option<u64> {
        None
    }
}

/// Examples as they were dealt to clients and to edge servers.
pub trait DealtData: Sync {
    /// How many training examples each client declares of each class or category, in the same order for all; `None` if
    /// examples have neither.
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        None
    }

    /// Which test examples belong to each server, for [`On::ServerTest`](super::On::ServerTest); `servers` are the
    /// clients of each. Nothing where test examples are not dealt to servers.
    fn test_of_servers(&self, _servers: &[Vec<ClientId>], _streams: &Streams) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// How many examples of each class an edge server with these clients and test examples has, if there are classes.
    fn class_counts(&self, _members: &[ClientId], _test: &[u32]) -> Option<ClassCounts> {
        None
    }

    /// The same task, but client `k` has the data of `sources[k]`, all else its own; `None` if data cannot move.
    fn with_data_of(&self, _sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        None
    }

    /// The same task with the data that it has from rounds on, by ascending round, from 1; none if data stay.
    fn shifts(&self) -> Vec<(u32, Arc<dyn Task>)> {
        Vec::new()
    }

    /// The same task, whose model is measured on about so many test and validation examples, and their share of all;
    /// `None` if it has no more, or needs all. To find out what an evaluation costs.
    fn with_fewer_tests(&self, _most: usize) -> Option<(Arc<dyn Task>, f64)> {
        None
    }
}

/// Numbers that a run will ask of a task next.
#[derive(Clone, Copy, Debug)]
pub enum Need<'a> {
    /// Losses of these clients: of their updates, or of the model on their data.
    Losses(&'a [ClientId]),
    /// To take in the updates of these clients.
    Aggregation(&'a [ClientId]),
    /// The measures of the model after a round, of so many servers.
    Measures {
        /// The round.
        round: Round,
        /// Number of servers.
        servers: usize,
    },
}

/// Numbers that are looked up, or that follow from the clients with aggregated updates, in place of a model.
///
/// One task has it, `scripted`, whose metric is a script: any other task computes its numbers.
pub trait Script: Sync {
    /// How many numbers a server remembers from round to round, beside the model.
    fn memory_len(&self) -> usize;

    /// Takes in a round of a server: the clients whose updates were aggregated, if any. There is one server, or one
    /// call for each edge server and round of the cloud.
    fn remember(&self, round: Round, server: EdgeId, arrived: &[ClientId], memory: &mut [f64]);

    /// Where each measure of a server is, for a given number of clients whose updates it has taken in, a constant plus
    /// a positive multiple of the sum of such numbers over them: the number of a client. Then the best set of clients
    /// is found by sorting.
    fn adds(&self, client: ClientId) -> Option<f64>;

    /// Checks that the numbers that will be asked for next are there.
    ///
    /// # Errors
    /// If a number is missing; the text names it and its place.
    fn check(&self, need: Need<'_>) -> Result<(), String>;

    /// Whether [`Script::told_loss`] gives the losses of clusters' models at edge servers; otherwise they are
    /// measured, where `loss` is among the measures.
    fn tells_losses(&self) -> bool;

    /// Loss of a cluster's model for an edge server after a round.
    ///
    /// # Errors
    /// If a number is missing; the text names it and its place.
    fn told_loss(&self, round: Round, server: EdgeId, cluster: u32) -> Result<f64, String>;

    /// The last round of which such losses are known.
    fn last_told(&self) -> Option<Round>;
}
