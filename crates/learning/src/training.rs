//! The jobs of a round, trained in one batch under an algorithm.
//!
//! # Determinism
//! Jobs are independent of each other, so that neither their order nor the number of threads matters.

use crate::adversary::Adversaries;
use crate::algorithm::{Done, JobMemory, JobRule};
use crate::compression::CompressionConfig;
use crate::layout::{Layout, Update};
use crate::private::{PrivateTable, PrivateView};
use crate::task::{Context, Job, ModelState, Task, Together, Worker};
use crate::trainer::{Contrasted, LocalTraining, spread};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Purpose;
use std::sync::{Mutex, PoisonError};

/// What decides about jobs beside their task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    /// The algorithm's part in them.
    pub job: Option<&'a dyn JobRule>,
    /// Clients that send something else.
    pub hostile: Option<&'a Adversaries>,
    /// How models and updates are encoded.
    pub compression: Option<&'a CompressionConfig>,
}

/// A client's job, with the algorithm's memory: the server's as sent, and the client's own.
#[derive(Clone, Debug)]
pub struct Assignment<'a> {
    /// The job; its correction is the algorithm's.
    pub job: Job<'a>,
    /// Of the algorithm.
    pub memory: JobMemory,
}

/// Buffers that a thread reuses from job to job.
#[derive(Default)]
struct Scratch {
    of_task: Worker,
    correction: Vec<f32>,
    gradient: Vec<f32>,
    /// The model that the client decodes.
    decoded: Vec<f32>,
    /// Those of a job with epochs of its own.
    settings: Option<LocalTraining>,
}

/// Why jobs could not be trained.
#[derive(Debug)]
pub struct JobFailure {
    /// Whose job failed; `None` where jobs are trained in one call.
    pub client: Option<ClientId>,
    /// The method of the task that failed.
    pub method: &'static str,
    /// Why.
    pub source: Failure,
}

/// Trains all jobs, on all cores of the current pool if `parallel`, or in one call where the task trains [jobs
/// together](Together); update `i` is that of job `i`, with the memory that the algorithm leaves with the client.
///
/// # Errors
/// If the task fails: the first job of those that failed.
///
/// # Panics
/// If the numbers of jobs and updates differ, or the rule needs gradients or losses that the task does not know.
pub fn train(
    (task, rules): (&dyn Task, Rules<'_>),
    context: &Context<'_>,
    jobs: &[Assignment<'_>],
    parallel: bool,
    updates: &mut [Update],
) -> Result<(), JobFailure> {
    if let Some(together) = task.together() {
        return train_together(together, (task, rules), context, jobs, updates);
    }
    let operations = || jobs.iter().map(|one| task.operations(one.job.client, context.settings)).sum();
    let failed = FirstFailure::default();
    let numbered: Vec<(usize, &Assignment<'_>)> = jobs.iter().enumerate().collect();
    spread(&numbered, updates, parallel.then(operations), Scratch::default, |scratch, &(place, assigned), update| {
        // Nobody looks at the updates of a run that is stopped.
        if context.halt.is_due() {
            return;
        }
        let Scratch { of_task, correction, gradient, decoded, settings } = scratch;
        let context = &own_context(context, assigned, settings);
        let train = |job: &Job<'_>, of_task: &mut Worker, update: &mut Update| {
            task.train(job, context, of_task, update).map_err(|source| ("train", source))?;
            forge((task, rules), context, job, update);
            encode(rules, context, (assigned, job), update);
            Ok(())
        };
        let sent =
            Assignment { job: received(rules, context, &assigned.job, decoded), memory: assigned.memory.clone() };
        let trained = match rules.job {
            None => train(&sent.job, of_task, update),
            Some(rule) => {
                let job = corrected(rule, task.layout(), &sent, correction);
                train(&job, of_task, update)
                    .and_then(|()| note_loss((rule, task), context, &job, update))
                    .and_then(|()| leave((rule, task), context, (assigned, &job), (of_task, gradient), update))
            }
        };
        failed.note(place, trained);
    });
    failed.of(jobs)
}

/// Trains all jobs in one call.
fn train_together(
    together: &dyn Together,
    (task, rules): (&dyn Task, Rules<'_>),
    context: &Context<'_>,
    jobs: &[Assignment<'_>],
    updates: &mut [Update],
) -> Result<(), JobFailure> {
    assert_eq!(jobs.len(), updates.len(), "every job has its update");
    let mut corrections = vec![Vec::new(); if rules.job.is_some() { jobs.len() } else { 0 }];
    let mut decoded = vec![Vec::new(); jobs.len()];
    let pairs = jobs.iter().zip(&mut decoded);
    let sent: Vec<Assignment<'_>> = pairs
        .map(|(assigned, decoded)| {
            let job = received(rules, context, &assigned.job, decoded);
            Assignment { job, memory: assigned.memory.clone() }
        })
        .collect();
    let all: Vec<Job<'_>> = match rules.job {
        None => sent.iter().map(|assigned| assigned.job).collect(),
        Some(rule) => {
            let pairs = sent.iter().zip(&mut corrections);
            pairs.map(|(assigned, correction)| corrected(rule, task.layout(), assigned, correction)).collect()
        }
    };
    let of_all = |source| JobFailure { client: None, method: "train_many", source };
    together.train_many(&all, context, updates).map_err(of_all)?;
    for ((job, assigned), update) in all.iter().zip(jobs).zip(&mut *updates) {
        forge((task, rules), context, job, update);
        encode(rules, context, (assigned, job), update);
    }
    let Some(rule) = rules.job else { return Ok(()) };
    let (mut scratch, failed) = (Scratch::default(), FirstFailure::default());
    for (place, ((assigned, job), update)) in jobs.iter().zip(&all).zip(updates).enumerate() {
        let Scratch { of_task, gradient, settings, .. } = &mut scratch;
        let context = &own_context(context, assigned, settings);
        let noted = note_loss((rule, task), context, job, update);
        let left = noted.and_then(|()| leave((rule, task), context, (assigned, job), (of_task, gradient), update));
        failed.note(place, left);
    }
    failed.of(jobs)
}

/// What a hostile client sends in the place of its update.
fn forge((task, rules): (&dyn Task, Rules<'_>), context: &Context<'_>, job: &Job<'_>, update: &mut Update) {
    if let Some(hostile) = rules.hostile.filter(|_| !update.diverged && !context.halt.is_due()) {
        hostile.forge((job.client, job.number), (task.layout(), job.start), context.streams, update);
    }
}

/// The job as the client has it: with the model that it decodes, which is written to a buffer.
fn received<'a>(rules: Rules<'_>, context: &Context<'_>, job: &Job<'a>, decoded: &'a mut Vec<f32>) -> Job<'a> {
    let Some(codec) = rules.compression.and_then(|compression| compression.down.as_ref()) else { return *job };
    decoded.clear();
    decoded.extend_from_slice(job.start);
    codec.encode(decoded, false, &mut context.streams.stream(Purpose::Broadcast, job.client.0, job.number.0));
    Job { start: decoded, ..*job }
}

/// Encodes an update. Its change counts from the model that the client decoded, and is put on the one that was sent.
fn encode(rules: Rules<'_>, context: &Context<'_>, (assigned, job): (&Assignment<'_>, &Job<'_>), update: &mut Update) {
    let Some(compression) = rules.compression.filter(|_| !update.diverged && !context.halt.is_due()) else { return };
    let Update { parameters, error, .. } = update;
    // Without tables an update has the numbers of the vector, in its order.
    let left = |place: usize| assigned.memory.error.as_ref().map_or(0.0, |error| f64::from(error[place]));
    let changes = parameters.iter().zip(job.start).enumerate();
    let wanted: Vec<f32> =
        changes.map(|(place, (after, before))| (f64::from(*after) - f64::from(*before) + left(place)) as f32).collect();
    let mut sent = wanted.clone();
    let keeps = compression.keeps_errors();
    if let Some(codec) = &compression.up {
        let (client, number) = (job.client.0, job.number.0);
        codec.encode(&mut sent, !keeps, &mut context.streams.stream(Purpose::Compression, client, number));
    }
    error.clear();
    if keeps {
        error.extend(wanted.iter().zip(&sent).map(|(wanted, sent)| wanted - sent));
    }
    for ((parameter, start), sent) in parameters.iter_mut().zip(assigned.job.start).zip(sent) {
        *parameter = (f64::from(*start) + f64::from(sent)) as f32;
    }
    update.diverged |= !update.is_finite();
}

/// The context of a job. A task that looks at the settings alone trains for the epochs of the job as well.
fn own_context<'a>(
    context: &Context<'a>,
    assigned: &Assignment<'_>,
    settings: &'a mut Option<LocalTraining>,
) -> Context<'a> {
    *settings = context.settings.of_job(assigned.job.client, assigned.job.epochs);
    Context { settings: settings.as_ref().unwrap_or(context.settings), ..*context }
}

/// A job with the algorithm's correction, which is written to a buffer.
fn corrected<'a>(
    rule: &dyn JobRule,
    layout: &Layout,
    assigned: &'a Assignment<'_>,
    correction: &'a mut Vec<f32>,
) -> Job<'a> {
    let is_corrected = rule.correct(layout, &assigned.memory, correction);
    let contrast = rule.contrast().map(|[mu, temperature]| {
        let previous = assigned.memory.client.as_deref();
        Contrasted { mu, temperature, previous }
    });
    Job { correction: is_corrected.then_some(&**correction), contrast, ..assigned.job }
}

/// The loss of the model that the client was sent, where the algorithm needs it.
fn note_loss(
    (rule, task): (&dyn JobRule, &dyn Task),
    context: &Context<'_>,
    job: &Job<'_>,
    update: &mut Update,
) -> Result<(), (&'static str, Failure)> {
    if !rule.needs_loss() || update.diverged || context.halt.is_due() {
        return Ok(());
    }
    let losses = task.losses().expect("a task without losses is refused before");
    let own = job.private.map(|private| (job.client, private));
    let private = PrivateView { table: &PrivateTable::default(), instead: own.as_slice() };
    // A loss is one of data: it does not depend on when rows moved, nor on what servers remember.
    let state = ModelState { model: job.start, private, round: job.round, moved: &[], memories: &[] };
    update.start_loss = Some(losses.client_loss(job.client, &state).map_err(|source| ("client_loss", source))?);
    Ok(())
}

/// The memory that the algorithm leaves with the client. A job without a step, for example on examples without
/// negatives, leaves it unchanged.
fn leave(
    (rule, task): (&dyn JobRule, &dyn Task),
    context: &Context<'_>,
    (assigned, job): (&Assignment<'_>, &Job<'_>),
    (of_task, gradient): (&mut Worker, &mut Vec<f32>),
    update: &mut Update,
) -> Result<(), (&'static str, Failure)> {
    if update.diverged || update.steps == 0 || context.halt.is_due() {
        return Ok(());
    }
    let (layout, memory) = (task.layout(), &assigned.memory);
    if rule.needs_gradient() {
        let losses = task.losses().expect("a task without gradients is refused before");
        let found = losses.gradient(job, context, of_task, gradient).map_err(|source| ("gradient", source))?;
        assert!(found && gradient.len() == layout.len(), "a task without gradients is refused before");
    }
    let mut left = std::mem::take(&mut update.memory);
    let rate = f64::from(context.settings.rate(job.round));
    rule.leave(&Done { layout, start: assigned.job.start, update, rate, memory, gradient }, &mut left);
    update.memory = left;
    Ok(())
}

/// The first of the jobs that failed, whichever thread met it.
#[derive(Default)]
struct FirstFailure(Mutex<Option<(usize, &'static str, Failure)>>);

impl FirstFailure {
    fn note(&self, place: usize, result: Result<(), (&'static str, Failure)>) {
        let Err((method, source)) = result else { return };
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|(known, ..)| place < *known) {
            *first = Some((place, method, source));
        }
    }

    fn of(self, jobs: &[Assignment<'_>]) -> Result<(), JobFailure> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some((place, method, source)) => Err(JobFailure { client: Some(jobs[place].job.client), method, source }),
        }
    }
}
