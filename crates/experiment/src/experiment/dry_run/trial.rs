//! The trial: runs are begun as the experiment would begin them, and ended as soon as their costs are known.
//!
//! As many are under way at once as in the experiment, so that they compete for caches and memory alike. A policy at a
//! point is tried with its first seed; with further seeds as long as there are fewer runs than threads. Points far from
//! each other come first, so that a sweep too large for the trial is seen as a whole.

use super::super::clock::now;
use super::super::execution::{Threads, WorldSlot, guarded, lock, world_of};
use super::super::{Experiment, RunId, RunOptions};
use super::facts::Facts;
use super::meter::{Meter, Seen};
use super::records::{Records, Scratch, Sizes};
use super::sampler::Sampler;
use crate::error::Error;
use fedgenie_simulator::recorder::{NoSink, RunFileOptions};
use fedgenie_simulator::run::RunError;
use fedgenie_simulator::task::DataCache;
use fedgenie_simulator::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Seconds that the trial is to take, beside the building of worlds.
const TRIAL_S: f64 = 1.0;
/// Least seconds of a run.
const LEAST_S: f64 = 0.02;
/// After so many seconds, building of worlds included, no run begins.
const MOST_S: f64 = 8.0;

/// Steps of the controls that are tried, and tried again.
const CONTROL_STEPS: [u32; 2] = [1, 8];
/// Test examples of the first look at what an evaluation costs.
const FEW_TESTS: usize = 64;
/// Seconds that an evaluation may take; a longer one is of fewer test examples.
const EVALUATION_S: f64 = 0.2;

/// A policy at a point.
pub(super) type KindKey = (usize, usize);

/// What was seen of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tried {
    pub seen: Seen,
    /// Seconds of the run beside its rounds: policies, first measurements, summary.
    pub rest_s: f64,
    pub sizes: Option<Sizes>,
    /// The share of test examples that its model was measured on.
    pub tested: f64,
    pub facts: Facts,
}

/// What was seen of all.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// By policy and point, the runs that were tried.
    pub tried: BTreeMap<KindKey, Vec<Tried>>,
    /// By point and scenario of the policy, seconds of building a world.
    pub builds: BTreeMap<(usize, Option<usize>), f64>,
    /// The same of seconds of training the controls of a world.
    pub controls: BTreeMap<(usize, Option<usize>), f64>,
    /// The same of the share of test examples.
    tested: BTreeMap<(usize, Option<usize>), f64>,
}

/// A trial under way.
struct Course<'a> {
    experiment: &'a Experiment,
    files: &'a RunFileOptions,
    /// Whether runs write their records.
    is_kept: bool,
    /// Whether they write their final models.
    keeps_models: bool,
    threads: &'a Threads,
    cache: &'a DataCache,
    scratch: Option<Scratch>,
    /// Threads of a run.
    spread: usize,
    /// Seconds for a run.
    time: f64,
    seen: Mutex<Trial>,
}

/// Numbers below a power of two such that each is far from those before it.
fn apart(index: usize, bits: u32) -> usize {
    if bits == 0 { index } else { index.reverse_bits() >> (usize::BITS - bits) }
}

/// The runs to be tried, in their order.
fn chosen(runs: &[RunId], threads: usize) -> Vec<RunId> {
    let (mut known, mut first, mut others) = (BTreeSet::new(), Vec::new(), Vec::new());
    for run in runs {
        let list = if known.insert((run.point, run.arm)) { &mut first } else { &mut others };
        list.push(run);
    }
    let points = runs.iter().map(|run| run.point + 1).max().unwrap_or(0);
    let bits = points.next_power_of_two().trailing_zeros();
    first.sort_by_key(|run| (apart(run.point, bits), run.arm));
    let more = threads.saturating_sub(first.len());
    first.into_iter().chain(others.into_iter().take(more)).cloned().collect()
}

/// Tries the runs out; `runs` are those that the experiment would carry out.
///
/// # Errors
/// Why a run cannot be carried out, or [`Error::Cancelled`].
pub(super) fn try_out(
    experiment: &Experiment,
    runs: &[RunId],
    options: &RunOptions<'_>,
    threads: &Threads,
    cache: &DataCache,
) -> Result<Trial, Error> {
    let chosen = chosen(runs, threads.count());
    let workers = threads.count().min(chosen.len());
    let is_spread = runs.len() < threads.count();
    threads.set_active(runs.len().min(threads.count()));
    let course = Course {
        experiment,
        files: &options.files,
        is_kept: options.folder.is_some(),
        keeps_models: options.models,
        threads,
        cache,
        scratch: Scratch::new(),
        spread: if is_spread { threads.count() } else { 1 },
        time: (TRIAL_S * workers as f64 / chosen.len().max(1) as f64).max(LEAST_S),
        seen: Mutex::default(),
    };
    let mut slots: BTreeMap<_, Mutex<WorldSlot>> = BTreeMap::new();
    for run in &chosen {
        let slot = slots.entry(experiment.place_of(run)).or_default();
        slot.get_mut().unwrap_or_else(PoisonError::into_inner).runs_left += 1;
    }
    let (next, failed, began) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()), now());
    threads.side_by_side(workers, &|| {
        while lock(&failed).is_empty() && !threads.is_cancelled() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = chosen.get(index) else { break };
            if index > 0 && began.elapsed().as_secs_f64() > MOST_S {
                break;
            }
            let slot = &slots[&experiment.place_of(run)];
            if let Err(error) = course.try_run(run, slot) {
                lock(&failed).insert(index, error);
            }
            lock(slot).leave();
        }
    });
    // Runs before the first that failed have been tried.
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner).pop_first() {
        Some((_, error)) => Err(error),
        None if threads.is_cancelled() => Err(Error::Cancelled),
        None => Ok(course.seen.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

impl Course<'_> {
    fn try_run(&self, run: &RunId, slot: &Mutex<WorldSlot>) -> Result<(), Error> {
        let (point, _, variant) = self.experiment.place_of(run);
        let world = guarded(run, || {
            world_of(slot, || {
                let began = now();
                let mut world = self.experiment.world_of(run, self.cache)?;
                let built_s = began.elapsed().as_secs_f64();
                let (tested, first_s) = self.measure_first(run, &mut world)?;
                let controls_s = self.try_controls(run, &world, first_s)?;
                world.leave_controls();
                let mut seen = lock(&self.seen);
                // Controls are made once for all runs of a world, as the world is.
                seen.builds.insert((point, variant), built_s + first_s + controls_s);
                seen.controls.insert((point, variant), controls_s);
                seen.tested.insert((point, variant), tested);
                Ok(world)
            })
        })?;
        let sampler = Some(Arc::new(Sampler::new(self.spread)));
        let tested = lock(&self.seen).tested.get(&(point, variant)).copied().unwrap_or(1.0);
        let tried = match self.play(run, &world, sampler) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            // A policy may need the reports of all its clients.
            Err(_) => self.play(run, &world, None)?,
            Ok(tried) => tried,
        };
        lock(&self.seen).tried.entry((point, run.arm)).or_default().push(Tried { tested, ..tried });
        Ok(())
    }

    /// The first of a world's runs measures the model that all of them begin with. Where that takes long, the world
    /// gets a task with fewer test examples. Returns their share, and the seconds that all of them take.
    fn measure_first(&self, run: &RunId, world: &mut World) -> Result<(f64, f64), Error> {
        let sections = self.experiment.points[run.point].1.sections_of(run.arm);
        let measure = |world: &World| {
            let began = now();
            let measured = world.initial_metrics(&sections.evaluate.plan(sections.stop.end()));
            let seconds = began.elapsed().as_secs_f64();
            measured.map(|_| seconds).map_err(|source| Error::Run { run: run.name.clone(), source })
        };
        // Data of clients and of edge servers are measured whole.
        let is_of_model = world.evaluated.places().is_empty();
        let whole = world.task.clone().filter(|_| is_of_model);
        let fewer = |most: usize| whole.as_ref()?.dealt()?.with_fewer_tests(most);
        let Some((few, share)) = fewer(FEW_TESTS) else { return Ok((1.0, measure(world)?)) };
        world.task = Some(few);
        let all_s = measure(world)? / share;
        let most = FEW_TESTS as f64 * (EVALUATION_S / (all_s * share)).max(1.0);
        let (task, tested) = fewer(most as usize).or_else(|| Some((whole.clone()?, 1.0))).expect("a task was there");
        world.task = Some(task);
        Ok((tested, all_s))
    }

    /// Seconds that the controls of a world take to train and to measure, if an evaluation takes so many.
    fn try_controls(&self, run: &RunId, world: &World, evaluation_s: f64) -> Result<f64, Error> {
        let mut all_s = 0.0;
        // The first steps meet cold memory.
        for steps in CONTROL_STEPS {
            all_s = 0.0;
            let tried = world.try_controls(steps, self.threads.halt(), &mut |part, work| {
                let began = now();
                work();
                let of_steps = began.elapsed().as_secs_f64() / part.steps as f64 * part.of as f64;
                all_s += of_steps + part.models as f64 * evaluation_s;
            });
            tried.map_err(|source| match source {
                RunError::Halted => Error::Cancelled,
                source => Error::Run { run: run.name.clone(), source },
            })?;
        }
        Ok(all_s)
    }

    fn play(&self, run: &RunId, world: &World, sampler: Option<Arc<Sampler>>) -> Result<Tried, Error> {
        let folder = self.scratch.as_ref().map(|scratch| scratch.of(&run.name));
        let mut records = folder.map(|folder| Records::new(&folder, self.files, self.is_kept));
        let mut meter = Meter::new(self.time, sampler, self.keeps_models);
        let began = now();
        let summary = guarded(run, || {
            let paced = (self.threads, &mut meter as _);
            match &mut records {
                Some(records) => self.experiment.run_paced(run, world, records, paced, None),
                None => self.experiment.run_paced(run, world, &mut NoSink, paced, None),
            }
        })?;
        let unkept_s = began.elapsed().as_secs_f64();
        let sizes = records.and_then(|records| records.finish(&summary, world));
        let seconds = if self.is_kept { began.elapsed().as_secs_f64() } else { unkept_s };
        let Meter { seen, .. } = meter;
        // At its true end the last round is evaluated, and not once more.
        let again_s = if seen.is_last_evaluated { 0.0 } else { seen.evaluation_s };
        let rest_s = (seconds - seen.played_s - seen.measuring_s - again_s).max(0.0);
        Ok(Tried { seen, rest_s, sizes, tested: 1.0, facts: Facts::of(self.experiment, run, world)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_tried_at_points_far_apart_first() {
        let run = |point, seed, arm| RunId { point, seed, arm, name: format!("{point} {arm} {seed}") };
        let pairs = (0..4).flat_map(|point| (1..=3).map(move |seed| (point, seed)));
        let runs: Vec<RunId> = pairs.flat_map(|(point, seed)| [0, 1].map(|arm| run(point, seed, arm))).collect();
        let names = |threads| chosen(&runs, threads).into_iter().map(|run| run.name).collect::<Vec<_>>();
        let first = ["0 0 1", "0 1 1", "2 0 1", "2 1 1", "1 0 1", "1 1 1", "3 0 1", "3 1 1"];
        assert_eq!(names(2), first);
        assert_eq!(names(10)[8..], ["0 0 2", "0 1 2"]);
        assert_eq!(names(100).len(), 24);
        assert_eq!(chosen(&runs[..1], 8).len(), 1);
        assert!(chosen(&[], 8).is_empty());
    }
}
