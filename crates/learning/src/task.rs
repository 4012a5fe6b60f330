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
pub mod labelled;
mod private;
pub mod rating_graph;
pub mod recommendation;

pub use clusters::{ClusterNetworks, read_clusters};
pub use labelled::Labelled;
pub use private::{PrivateTable, PrivateView};
pub use rating_graph::RatingGraph;
pub use recommendation::Recommendation;

use crate::data::partition::{ClassCounts, Skew};
use crate::layout::{Layout, Update};
use crate::model::weights::Tensor;
use crate::trainer::{LocalTraining, spread};
use fedgenie_core::id::{ClientId, EdgeId, JobNumber, Round};
use fedgenie_core::rng::Streams;
use rayon::prelude::*;
use std::any::Any;
use std::sync::Arc;

/// Something that clients learn together.
///
/// # Determinism
/// What a method gives depends on its arguments alone, not on the thread or on what a worker did before.
pub trait Task: Any + std::fmt::Debug + Send + Sync {
    /// The parameters that travel.
    fn layout(&self) -> &Layout;

    /// Bytes of the whole model: what travels to an edge server, and what device profiles are told.
    fn whole_bytes(&self) -> u64 {
        self.layout().whole_bytes()
    }

    /// Fills the model that a run starts from, with the segments of one cluster.
    fn init(&self, cluster: u32, streams: &Streams, parameters: &mut [f32]);

    /// How many numbers a client keeps to itself from job to job, such as its embedding or its optimizer's moments.
    fn private_len(&self, _client: ClientId) -> usize {
        0
    }

    /// Fills what a client keeps to itself before an update of it is aggregated for the first time.
    fn init_private(&self, _client: ClientId, _streams: &Streams, _private: &mut [f32]) {}

    /// Number of a client's training examples: the weight of its updates. A client without any never trains.
    fn examples(&self, client: ClientId) -> usize;

    /// Whether a client can ever be selected.
    fn is_candidate(&self, _client: ClientId) -> bool {
        true
    }

    /// How many training examples each client declares of each class or category, in the same order for all; none where
    /// examples have neither.
    fn categories(&self) -> Option<Vec<Vec<u64>>> {
        None
    }

    /// Numbers that describe each client's user, as many and in the same order for all; none where users have no
    /// metadata.
    fn user_features(&self) -> Option<Vec<Vec<f64>>> {
        None
    }

    /// Number of training examples of all clients.
    fn all_examples(&self) -> u64;

    /// Operations of a client's job, roughly: decides how jobs are put together for threads, and nothing else.
    fn operations(&self, client: ClientId, settings: &LocalTraining) -> f64;

    /// Bytes of a job, down and up. The second is the size of the update, which the run checks.
    fn transfer(&self, _job: JobKey, _context: &Context<'_>) -> [u64; 2] {
        [self.whole_bytes(); 2]
    }

    /// Bytes of an update that was trained, which are the second of its job's transfer.
    fn update_bytes(&self, update: &Update, _context: &Context<'_>) -> u64 {
        self.layout().bytes_of(&update.rows)
    }

    /// Whether [`Task::transfer`] is the size of the whole model, both ways, for every job.
    fn sends_all(&self) -> bool {
        true
    }

    /// One client's training: from what it was sent and what it keeps to its update.
    fn train(&self, job: &Job<'_>, context: &Context<'_>, worker: &mut Worker, update: &mut Update);

    /// Lets the server compare the updates of a round before it averages them, one for each client and the model that
    /// it was sent, ascending by client and job. `weights` are those of the average, before they are divided by their
    /// sum. None where updates are averaged as they are.
    fn relate(&self, _sent: &[(ClientId, &[f32])], _updates: &[&Update], _weights: &[f64]) -> Option<Related> {
        None
    }

    /// The measures of data, in the order in which the task declares them. NaN where there is nothing to measure on.
    /// Returns the weight of the values, such as a number of examples, with which parts can be put together. On
    /// [`On::Model`] the measures of the model alone.
    fn evaluate(&self, on: On<'_>, state: &ModelState<'_>, parallel: bool, values: &mut [f64]) -> f64;

    /// The same of both held-out parts, test and validation data, bit for bit: for tasks that share work between them.
    fn evaluate_both(&self, state: &ModelState<'_>, parallel: bool, values: [&mut [f64]; 2]) {
        evaluate_apart(self, state, parallel, values);
    }

    /// All measures of a model, bit for bit those of [`Task::evaluate`]: those of data on test data, and on validation
    /// data where there is a second list, then those of the model alone. For tasks that share work between them.
    fn evaluate_whole(&self, state: &ModelState<'_>, parallel: bool, held_out: &mut [Vec<f64>], of_model: &mut [f64]) {
        match held_out {
            [test, valid] => self.evaluate_both(state, parallel, [test, valid]),
            [test] => drop(self.evaluate(On::Test, state, parallel, test)),
            _ => panic!("there are one or two held-out parts"),
        }
        if !of_model.is_empty() {
            self.evaluate(On::Model, state, parallel, of_model);
        }
    }

    /// The same of several models, those of different clusters, each with values of its own: for tasks that share work
    /// between them.
    fn evaluate_each(&self, on: On<'_>, states: &[ModelState<'_>], parallel: bool, values: &mut [Vec<f64>]) -> f64 {
        let one = |(state, values): (&ModelState<'_>, &mut Vec<f64>)| self.evaluate(on, state, parallel, values);
        states.iter().zip(values).map(one).last().unwrap_or(0.0)
    }

    /// Which test examples belong to each server, for [`On::ServerTest`]; `servers` are the clients of each. Nothing
    /// where test examples are not dealt to servers.
    fn test_of_servers(&self, _servers: &[Vec<ClientId>], _streams: &Streams) -> Vec<Vec<u32>> {
        Vec::new()
    }

    /// The sum of the squared losses of a model over a client's own examples; NaN where that is not defined.
    fn squared_losses(&self, _client: ClientId, _state: &ModelState<'_>, _worker: &mut Worker) -> f64 {
        f64::NAN
    }

    /// Whether clients add the noise of [`LocalTraining::noise`] to their updates, where that is asked for.
    fn has_noise(&self) -> bool {
        false
    }

    /// Whether clients have losses, for policies that compare them.
    fn has_losses(&self) -> bool {
        true
    }

    /// Replaces `slope` by the slope of the mean loss on validation data, or else on test data, at the model and what
    /// clients keep, by the parameters of [`Task::layout`], one number each. False where that is not defined.
    fn slope(&self, _state: &ModelState<'_>, _slope: &mut Vec<f32>) -> bool {
        false
    }

    /// Loss of a model on a client's own data; NaN where that is not defined.
    fn client_loss(&self, _client: ClientId, _state: &ModelState<'_>) -> f64 {
        f64::NAN
    }

    /// Whether [`Task::told_loss`] says what the models of clusters lose at edge servers; otherwise it is measured,
    /// where `loss` is among the measures.
    fn tells_losses(&self) -> bool {
        false
    }

    /// Loss of a cluster's model for an edge server after a round, where that is looked up.
    ///
    /// # Errors
    /// What is missing, and where.
    fn told_loss(&self, _round: Round, _server: EdgeId, _cluster: u32) -> Result<f64, String> {
        Ok(f64::NAN)
    }

    /// The last round of which such losses are known, where they are looked up.
    fn last_told(&self) -> Option<Round> {
        None
    }

    /// How many numbers a server remembers from round to round, beside the model.
    fn memory_len(&self) -> usize {
        0
    }

    /// Takes in a round of a server: whose updates were aggregated, which may be nobody's. There is one server, or one
    /// call for each edge server and round of the cloud.
    fn remember(&self, _round: Round, _server: EdgeId, _arrived: &[ClientId], _memory: &mut [f64]) {}

    /// Where each measure of a server is, for a given number of clients whose updates it has taken in, a constant plus
    /// a positive multiple of the sum of such numbers over them: the number of a client. Then the best set of clients
    /// is found by sorting.
    fn adds(&self, _client: ClientId) -> Option<f64> {
        None
    }

    /// Checks that the task has what it will be asked for next; one that computes everything has.
    ///
    /// # Errors
    /// What is missing, and where.
    fn check(&self, _need: Need<'_>) -> Result<(), String> {
        Ok(())
    }

    /// What clients can be asked before a selection, beside their losses.
    fn probes(&self) -> &[ProbeKind] {
        &[]
    }

    /// Appends a client's answer to a probe.
    fn answer(&self, _kind: &ProbeKind, _client: ClientId, _state: &ModelState<'_>, _answer: &mut Vec<f64>) {}

    /// Appends what a client would answer in the round in which this is its job.
    fn answer_of(
        &self,
        kind: &ProbeKind,
        job: JobKey,
        _context: &Context<'_>,
        state: &ModelState<'_>,
        answer: &mut Vec<f64>,
    ) {
        self.answer(kind, job.client, state, answer);
    }

    /// What clients would answer in the rounds in which these are their jobs, one after the other: for tasks that share
    /// work between clients.
    fn answers_of(
        &self,
        kind: &ProbeKind,
        jobs: &[JobKey],
        context: &Context<'_>,
        state: &ModelState<'_>,
        parallel: bool,
    ) -> Vec<f64> {
        let one = |&job: &JobKey| {
            let mut answer = Vec::with_capacity(kind.numbers);
            self.answer_of(kind, job, context, state, &mut answer);
            answer
        };
        let answers: Vec<Vec<f64>> =
            if parallel { jobs.par_iter().map(one).collect() } else { jobs.iter().map(one).collect() };
        answers.concat()
    }

    /// Bytes of an answer, where it travels as something else than its numbers, which have 8 bytes each. Such an answer
    /// takes its share of the time in which the client would send the whole model.
    fn answer_bytes(&self, _kind: &ProbeKind, _job: JobKey, _context: &Context<'_>) -> Option<u64> {
        None
    }

    /// What is written to a model file: named tensors, of the models of all clusters and of what clients keep.
    fn tensors(&self, models: &[&[f32]], private: &PrivateView<'_>) -> Vec<Tensor>;

    /// Whether there are validation data, where the task's settings say that there may be.
    fn has_valid(&self) -> bool {
        true
    }

    /// CSV tables that explain numbers in other files of a run, by name; each is written beside them.
    fn tables(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What is known to be reached without the model, worked out once.
    fn references(&self) -> References {
        Vec::new()
    }

    /// How many there are of what the data consist of, and of what was dropped of them.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// The graph of each client in numbers, where clients have graphs: see [`rating_graph::Holdings::described`].
    fn graph(&self) -> Option<serde_json::Value> {
        None
    }

    /// How unevenly the training examples are spread over clients, where that is known.
    fn skew(&self) -> Option<&Skew> {
        None
    }

    /// How many examples of each class an edge server with these clients and test examples has, if there are classes.
    fn class_counts(&self, _members: &[ClientId], _test: &[u32]) -> Option<ClassCounts> {
        None
    }

    /// The same task where client `k` has the data of `sources[k]`, and all else is its own; none if data cannot move.
    fn with_data_of(&self, _sources: &[ClientId]) -> Option<Arc<dyn Task>> {
        None
    }

    /// What a careful user should know about the data.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// [`Task::evaluate`] on test data, then on validation data.
fn evaluate_apart<T: Task + ?Sized>(task: &T, state: &ModelState<'_>, parallel: bool, [test, valid]: [&mut [f64]; 2]) {
    task.evaluate(On::Test, state, parallel, test);
    task.evaluate(On::Valid, state, parallel, valid);
}

impl dyn Task {
    /// The task, if it is of this type.
    pub fn downcast<T: Task>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// The model that every run of a seed starts from, for one cluster.
    pub fn initial_model(&self, cluster: u32, streams: &Streams) -> Vec<f32> {
        let mut parameters = vec![0.0; self.layout().len()];
        self.init(cluster, streams, &mut parameters);
        parameters
    }

    /// What a client keeps: what its updates left, or what it starts with.
    pub fn private_of(&self, client: ClientId, kept: Option<&[f32]>, streams: &Streams) -> Vec<f32> {
        match kept {
            Some(kept) => kept.to_vec(),
            None => {
                let mut private = vec![0.0; self.private_len(client)];
                self.init_private(client, streams, &mut private);
                private
            }
        }
    }
}

/// What a server makes of the updates of a round together: see [`Task::relate`].
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// The weight of each update in the average, instead of the one that it had; their sum is the same, and an update
    /// without weight stays without.
    pub weights: Vec<f64>,
    /// What each client keeps, instead of what its update says.
    pub private: Vec<Vec<f32>>,
}

/// References by name, each with values of metrics by name.
pub type References = Vec<(&'static str, Vec<(String, f64)>)>;

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
    /// Whole epochs in the place of those of [`Context::settings`], which say so when it trains; none if as they are.
    pub epochs: Option<u32>,
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

/// What a model is evaluated on.
#[derive(Clone, Copy, Debug)]
pub enum On<'a> {
    /// The test data.
    Test,
    /// The validation data.
    Valid,
    /// A client's own data: training data, unless the task says otherwise.
    Client(ClientId),
    /// The data of the clients of an edge server.
    Server(EdgeId, &'a [ClientId]),
    /// The test data of a server with these clients: where the task deals test examples to servers, these.
    ServerTest(EdgeId, &'a [ClientId], &'a [u32]),
    /// No data.
    Model,
}

/// What a run will ask of a task next.
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

/// A model to be evaluated, with what clients keep.
#[derive(Clone, Copy, Debug)]
pub struct ModelState<'a> {
    /// The parameters that travel.
    pub model: &'a [f32],
    /// What clients keep to themselves.
    pub private: PrivateView<'a>,
    /// The server's round after which this is the model.
    pub round: Round,
    /// For each row of a table, the round in which it was last moved; round 0 if never.
    pub moved: &'a [Round],
    /// What each server remembers; of one server, or of every edge server.
    pub memories: &'a [Vec<f64>],
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

/// Trains all jobs, on all cores of the current pool if `parallel`; update `i` is that of job `i`.
///
/// # Panics
/// If the numbers of jobs and updates differ.
pub fn train(task: &dyn Task, context: &Context<'_>, jobs: &[Job<'_>], parallel: bool, updates: &mut [Update]) {
    let operations = || jobs.iter().map(|job| task.operations(job.client, context.settings)).sum();
    spread(jobs, updates, parallel.then(operations), Worker::default, |worker, job, update| match job.epochs {
        None => task.train(job, context, worker, update),
        Some(epochs) => {
            let settings = context.settings.of_epochs(epochs);
            task.train(job, &Context { settings: &settings, ..*context }, worker, update);
        }
    });
}
