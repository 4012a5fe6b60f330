//! What clients learn from the model that every run of a world begins with, kept for the other runs of the world.
//!
//! # Definition
//! A job's update depends on the model that it was sent, its client, its streams and its settings alone. As long as
//! nothing was aggregated, the runs of a world have the same models: the first round of one policy has jobs that
//! another policy's has as well, and those are trained once. A copy has the same bits.

use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_learning::layout::Update;
use fedgenie_learning::training::Assignment;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of all updates that are kept; what comes later is trained by each run.
const MOST_BYTES: usize = 1 << 27;

/// The updates of the first jobs of a world's runs.
#[derive(Debug, Default)]
pub(crate) struct FirstUpdates {
    /// Whether several runs share the world.
    is_shared: AtomicBool,
    /// The models that runs begin with, cluster by cluster.
    starts: OnceLock<Vec<Arc<[f32]>>>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    updates: BTreeMap<FirstJob, Arc<Update>>,
    bytes: usize,
}

/// A job that begins with a start's model and without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FirstJob {
    start: usize,
    client: ClientId,
    number: JobNumber,
    /// It decides the learning rate.
    round: Round,
    epochs: Option<u32>,
    loss_rms: bool,
}

impl FirstUpdates {
    /// Several runs share the world: their first updates are kept from here on.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// A run begins with these models.
    pub fn begin(&self, models: &[Arc<[f32]>]) {
        if self.is_shared.load(Ordering::Relaxed) {
            self.starts.get_or_init(|| models.to_vec());
        }
    }

    /// The key of a job whose update may be another run's as well; `None` of any other job.
    pub fn key(&self, Assignment { job, memory }: &Assignment<'_>, loss_rms: bool) -> Option<FirstJob> {
        let starts = self.starts.get()?;
        if job.private.is_some() || job.correction.is_some() || !memory.is_empty() {
            return None;
        }
        let is_start = |start: &Arc<[f32]>| std::ptr::eq(&**start, job.start) || is_same(start, job.start);
        let start = starts.iter().position(is_start)?;
        let (client, number, round, epochs) = (job.client, job.number, job.round, job.epochs);
        Some(FirstJob { start, client, number, round, epochs, loss_rms })
    }

    /// The update of a job, if it was trained before.
    pub fn find(&self, key: FirstJob) -> Option<Arc<Update>> {
        self.lock().updates.get(&key).cloned()
    }

    /// Keeps the update of a job, as far as there is room.
    pub fn keep(&self, key: FirstJob, update: &Update) {
        let Update { parameters, rows, private, memory, .. } = update;
        let bytes = 4 * (parameters.len() + rows.len() + private.len() + memory.len()) + size_of::<Update>();
        let mut kept = self.lock();
        if kept.bytes + bytes <= MOST_BYTES && !kept.updates.contains_key(&key) {
            kept.bytes += bytes;
            kept.updates.insert(key, Arc::new(update.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two models have the same bits. Of different ones the first numbers tell.
fn is_same(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_learning::algorithm::JobMemory;
    use fedgenie_learning::task::Job;

    const MODEL: [f32; 3] = [0.0, 1.0, -2.0];

    fn job(start: &[f32]) -> Assignment<'_> {
        let (client, round, number) = (ClientId(4), Round(1), JobNumber(1));
        let job = Job { client, round, number, start, private: None, epochs: None, correction: None, contrast: None };
        Assignment { job, memory: JobMemory::default() }
    }

    fn of_two_runs() -> FirstUpdates {
        let first = FirstUpdates::default();
        first.share();
        first.begin(&[MODEL.into()]);
        first
    }

    #[test]
    fn what_one_run_trained_another_finds() {
        let first = of_two_runs();
        let key = first.key(&job(&MODEL), false).expect("it begins with the start's model");
        assert!(first.find(key).is_none());
        let update = Update { parameters: vec![0.5; 3], first_loss: 0.25, ..Update::default() };
        first.keep(key, &update);
        // Another copy of the same model.
        let again = first.key(&job(&MODEL.map(|number| number)), false).unwrap();
        assert_eq!(first.find(again).map(|found| found.parameters.clone()), Some(update.parameters));
    }

    #[test]
    fn a_job_that_differs_in_anything_is_another() {
        let first = of_two_runs();
        let key = first.key(&job(&MODEL), false);
        let with = |change: &dyn Fn(&mut Job<'_>)| {
            let mut other = job(&MODEL);
            change(&mut other.job);
            first.key(&other, false)
        };
        let others = [
            first.key(&job(&MODEL), true),
            with(&|job| job.client = ClientId(5)),
            with(&|job| job.round = Round(2)),
            with(&|job| job.number = JobNumber(2)),
            with(&|job| job.epochs = Some(1)),
        ];
        assert!(others.iter().all(|other| other.is_some() && *other != key));
    }

    #[test]
    fn what_depends_on_more_than_the_start_is_nobody_elses() {
        let first = of_two_runs();
        // −0 is another model.
        assert!(first.key(&job(&[-0.0, 1.0, -2.0]), false).is_none());
        let mut private = job(&MODEL);
        private.job.private = Some(&[1.0]);
        let mut corrected = job(&MODEL);
        corrected.job.correction = Some(&[0.0; 3]);
        let mut remembers = job(&MODEL);
        remembers.memory.client = Some(MODEL.into());
        let mut told = job(&MODEL);
        told.memory.server = Some(MODEL.into());
        assert!([private, corrected, remembers, told].iter().all(|job| first.key(job, false).is_none()));
        // One run alone keeps nothing.
        let alone = FirstUpdates::default();
        alone.begin(&[MODEL.into()]);
        assert!(alone.key(&job(&MODEL), false).is_none());
    }

    #[test]
    fn what_does_not_fit_is_trained_again() {
        let first = of_two_runs();
        let key = first.key(&job(&MODEL), false).unwrap();
        first.keep(key, &Update { parameters: vec![0.0; MOST_BYTES / 4 + 1], ..Update::default() });
        assert!(first.find(key).is_none());
    }
}
