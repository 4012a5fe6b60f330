//! The jobs of a round, trained in one batch under an algorithm.
//!
//! # Determinism
//! Jobs are independent of each other, so that neither their order nor the number of threads matters.

use crate::algorithm::{Done, JobMemory, JobRule};
use crate::layout::{Layout, Update};
use crate::task::{Context, Job, Task, Worker};
use crate::trainer::spread;

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
}

/// Trains all jobs, on all cores of the current pool if `parallel`; update `i` is that of job `i`, with the memory that
/// the algorithm leaves with the client.
///
/// # Panics
/// If the numbers of jobs and updates differ, or the rule needs gradients that the task does not know.
pub fn train(
    (task, rule): (&dyn Task, Option<&dyn JobRule>),
    context: &Context<'_>,
    jobs: &[Assignment<'_>],
    parallel: bool,
    updates: &mut [Update],
) {
    let operations = || jobs.iter().map(|one| task.operations(one.job.client, context.settings)).sum();
    spread(jobs, updates, parallel.then(operations), Scratch::default, |scratch, assigned, update| {
        // A task that looks at the settings alone trains for the epochs of the job as well.
        let settings = assigned.job.epochs.map(|epochs| context.settings.of_epochs(epochs));
        let context = Context { settings: settings.as_ref().unwrap_or(context.settings), ..*context };
        match rule {
            Some(rule) => train_under(rule, task, &context, assigned, scratch, update),
            None => task.train(&assigned.job, &context, &mut scratch.of_task, update),
        }
    });
}

fn train_under(
    rule: &dyn JobRule,
    task: &dyn Task,
    context: &Context<'_>,
    Assignment { job, memory }: &Assignment<'_>,
    Scratch { of_task, correction, gradient }: &mut Scratch,
    update: &mut Update,
) {
    let layout: &Layout = task.layout();
    let is_corrected = rule.correct(layout, memory, correction);
    let job = Job { correction: is_corrected.then_some(&**correction), ..*job };
    task.train(&job, context, of_task, update);
    // A job without a step, for example on examples without negatives, leaves the client's memory unchanged.
    if update.diverged || update.steps == 0 {
        return;
    }
    if rule.needs_gradient() {
        let losses = task.losses();
        let is_known = losses.is_some_and(|losses| losses.gradient(&job, context, of_task, gradient));
        assert!(is_known && gradient.len() == layout.len(), "a task without gradients is refused before");
    }
    let mut left = std::mem::take(&mut update.memory);
    let rate = f64::from(context.settings.rate(job.round));
    rule.leave(&Done { layout, start: job.start, update, rate, memory, gradient }, &mut left);
    update.memory = left;
}
