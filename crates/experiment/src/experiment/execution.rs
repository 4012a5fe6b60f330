//! Carries runs out: side by side on threads, each in the world of its point, seed and overrides.

use super::clock::{GRACE, now};
use super::pace::Advance;
use super::recorded::Memory;
use super::summary::Common;
use super::{Experiment, ResultFolder, RunId, RunSummary};
use crate::error::Error;
use fedgenie_core::halt::Halt;
use fedgenie_core::id::Round;
use fedgenie_core::limits;
use fedgenie_simulator::recorder::{NoSink, RunFileOptions};
use fedgenie_simulator::run::{Run, RunError};
use fedgenie_simulator::task::DataCache;
use fedgenie_simulator::world::World;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a program does around the life of a thread: it calls its argument once, which is all that the thread does. A
/// program that must enter another system before it is called from a thread, such as an interpreter, enters it once.
pub type Around = Arc<dyn Fn(&mut (dyn FnMut() + Send)) + Send + Sync>;

/// The threads of an experiment: how many, how many runs are under way, and whether they are to stop.
pub struct Threads {
    pool: rayon::ThreadPool,
    around: Around,
    count: usize,
    active: AtomicUsize,
    halt: Halt,
}

impl Threads {
    /// A pool of `count` threads; 0 for as many as the machine has cores.
    ///
    /// # Errors
    /// If they are too many, or cannot be started.
    pub fn new(count: usize) -> Result<Self, Error> {
        Self::with(count, Arc::new(|work: &mut (dyn FnMut() + Send)| work()))
    }

    /// As [`Self::new`]; each thread lives within a call of `around`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(count: usize, around: Around) -> Result<Self, Error> {
        if count > limits::THREADS {
            return Err(Error::Usage(format!("found {count} threads; expected at most {}", limits::THREADS)));
        }
        let needed = count as u128 * u128::from(limits::THREAD_BYTES);
        limits::afford(format!("{count} threads"), needed).map_err(|error| Error::Usage(error.to_string()))?;
        let spawn = |thread: rayon::ThreadBuilder| {
            let (around, mut thread) = (around.clone(), Some(thread));
            let work = move || around(&mut || thread.take().into_iter().for_each(rayon::ThreadBuilder::run));
            std::thread::Builder::new().spawn(work).map(drop)
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).spawn_handler(spawn).build();
        let pool = pool.map_err(|error| Error::Threads(error.to_string()))?;
        let count = pool.current_num_threads();
        Ok(Self { count, pool, around, active: AtomicUsize::new(0), halt: Halt::new() })
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Stops runs within a second, with [`Error::Cancelled`], and starts no other, for good. A round that ends within
    /// half of it is played to its end, and the run is saved then, if it has a folder. A longer one is left in the
    /// middle: the run goes on from its last checkpoint.
    pub fn cancel(&self) {
        self.halt.ask(GRACE);
    }

    /// Whether runs are to stop.
    pub fn is_cancelled(&self) -> bool {
        self.halt.is_asked()
    }

    /// The flag that stops work of runs.
    pub(super) const fn halt(&self) -> &Halt {
        &self.halt
    }

    /// How many runs are under way; a run stays on one thread while they are as many as the threads.
    pub(super) fn set_active(&self, runs: usize) {
        self.active.store(runs, Ordering::Relaxed);
    }

    /// Does the same work on so many threads beside each other.
    pub(super) fn side_by_side(&self, workers: usize, work: &(dyn Fn() + Sync)) {
        std::thread::scope(|scope| {
            // A thread that cannot be started costs time only, as long as one runs.
            let within = || (self.around)(&mut || work());
            let started = (0..workers).map(|_| std::thread::Builder::new().spawn_scoped(scope, within));
            if started.filter(Result::is_ok).count() == 0 {
                within();
            }
        });
    }

    /// Plays the rounds of a run.
    pub(super) const fn rounds(&self) -> Rounds<'_> {
        Rounds { threads: self, lately: Lately::UNKNOWN }
    }
}

/// Plays the rounds of a run, with the clients spread over all threads if some are idle and rounds are long enough.
pub(super) struct Rounds<'a> {
    threads: &'a Threads,
    lately: Lately,
}

impl Rounds<'_> {
    /// Plays a round.
    pub fn step(&mut self, run: &mut Run<'_>) -> Result<(), RunError> {
        let Threads { pool, count, active, halt, .. } = self.threads;
        let has_idle = *count > 1 && run.trains() && active.load(Ordering::Relaxed) < *count;
        let spread = has_idle && self.lately.are_worth_it();
        run.set_parallel(spread);
        run.set_halt(halt.clone());
        let began = has_idle.then(now);
        let played = if spread { pool.install(|| run.step()) } else { run.step() };
        began.into_iter().for_each(|began| self.lately.note(began.elapsed().as_secs_f64(), spread));
        played
    }
}

/// How long rounds took lately, in seconds, and so whether threads are worth waking for them. The time of a round on
/// all threads has the waiting for them in it, which may be longer than the round: what counts is its time alone.
#[derive(Clone, Copy, Debug)]
struct Lately {
    /// On one thread: a trial, or, while rounds stay there, the mean of the last thousand, which an interruption of
    /// some milliseconds by another program moves little. First infinite.
    alone: f64,
    /// The mean of the last dozens on all threads; first infinite.
    spread: f64,
    /// Short rounds on all threads until one is tried alone.
    until_trial: u32,
}

impl Lately {
    const UNKNOWN: Self = Self { alone: f64::INFINITY, spread: f64::INFINITY, until_trial: 1 };
    /// Handing a round to threads and back takes some twenty microseconds where they are idle.
    const WORTH: f64 = 1e-4;
    /// A longer round is not tried alone.
    const LONG: f64 = 2e-3;
    /// One of so many short rounds is tried.
    const TRIAL: u32 = 32;

    fn are_worth_it(&mut self) -> bool {
        if self.alone < Self::WORTH {
            return false;
        }
        if self.spread < Self::LONG {
            self.until_trial -= 1;
            if self.until_trial == 0 {
                self.until_trial = Self::TRIAL;
                return false;
            }
        }
        true
    }

    fn note(&mut self, seconds: f64, spread: bool) {
        let mean = |of: f64, rounds: f64| if of.is_finite() { of + (seconds - of) / rounds } else { seconds };
        if spread {
            self.spread = mean(self.spread, 32.0);
        } else {
            self.alone = if self.alone < Self::WORTH { mean(self.alone, 1024.0) } else { seconds };
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Threads").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Messages of an experiment while it runs, in this order but for those of runs, which come from all threads. All
/// defaults do nothing.
pub trait Progress: Sync {
    /// A warning that changes no result.
    fn warned(&self, _warning: &str) {}
    /// This many runs of another build are kept.
    fn runs_taken_over(&self, _count: usize) {}
    /// Complete runs that are carried out again, and why.
    fn runs_repeated(&self, _why: &[String]) {}
    /// The first of this many runs begins.
    fn runs_begin(&self, _count: usize) {}
    /// These are the runs that are about to be carried out.
    fn runs_planned(&self, _runs: &[RunId]) {}
    /// A run has come so far, from 0 to 1, as its rounds, its virtual time or its traffic say; its first message says
    /// where it begins. A run that converges may end before.
    fn run_advanced(&self, _run: &RunId, _share: f64) {}
    /// Rounds were played.
    fn rounds_played(&self, _rounds: u64) {}
    /// A run ended, well or not; `done` of `total` have.
    fn run_ended(&self, _run: &RunId, _done: usize, _total: usize) {}
    /// A run continues from an earlier process, after this round.
    fn run_goes_on(&self, _run: &RunId, _round: Round) {}
    /// All runs have ended, or were stopped.
    fn runs_ended(&self) {}
    /// A run has failed; told when all have ended.
    fn run_failed(&self, _run: &RunId, _error: &Error) {}
    /// The runs so far decide no answer, or they do: what was found after so many seeds.
    fn looked(&self, _found: &str) {}
    /// Summary, manifest and pictures are written into the folder from here on.
    fn writing_begins(&self, _folder: &Path) {}
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {}

/// Files that runs write, and their folder.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    /// The experiment's folder.
    pub folder: &'a ResultFolder,
    /// Files of a run beside its rounds.
    pub files: &'a RunFileOptions,
    /// The final model.
    pub models: bool,
    /// Room for their rounds in memory as well.
    pub memory: Option<&'a Memory>,
}

/// A world that is built by the first run that needs it and dropped by the last.
#[derive(Default)]
pub(super) struct WorldSlot {
    world: Option<Arc<World>>,
    pub runs_left: usize,
}

impl WorldSlot {
    /// A run that needs the world has ended.
    pub(super) fn leave(&mut self) {
        self.runs_left -= 1;
        if self.runs_left == 0 {
            self.world = None;
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries out runs of an experiment. With `outputs`, each run writes its files.
///
/// Results come in the order of `runs`. A run that fails or panics does not stop the others. [`Threads::cancel`] does:
/// runs that have not ended by then give [`Error::Cancelled`]. Nor does a run begin after a file could not be written:
/// a full disk is full for all.
pub fn execute(
    experiment: &Experiment,
    runs: &[RunId],
    outputs: Option<Outputs<'_>>,
    threads: &Threads,
    cache: &DataCache,
    progress: &dyn Progress,
) -> Vec<Result<RunSummary, Error>> {
    let mut slots = BTreeMap::new();
    for run in runs {
        let slot: &mut Mutex<WorldSlot> = slots.entry(experiment.place_of(run)).or_default();
        slot.get_mut().unwrap_or_else(PoisonError::into_inner).runs_left += 1;
    }
    let results: Vec<Mutex<Option<Result<RunSummary, Error>>>> = runs.iter().map(|_| Mutex::new(None)).collect();
    let common = Mutex::new(Common::default());
    let (next, done, is_full) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let workers = threads.count.min(runs.len());
    threads.set_active(workers);
    let work = || {
        while !threads.is_cancelled() && !is_full.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(index) else { break };
            let slot = &slots[&experiment.place_of(run)];
            let result = guarded(run, || {
                let world = world_of(slot, || experiment.world_of(run, cache).map_err(Error::from))?;
                match outputs {
                    None => {
                        let sections = experiment.points[run.point].1.sections_of(run.arm);
                        let mut pace = Advance::of(run, (sections, &world), progress);
                        experiment.run_paced(run, &world, &mut NoSink, (threads, &mut pace), None)
                    }
                    Some(outputs) => outputs.folder.carry_out(experiment, run, &world, outputs, (threads, progress)),
                }
            });
            let result = result.map_err(|error| match outputs {
                None => error,
                Some(outputs) => outputs.folder.give_up(run, error),
            });
            if result.as_ref().is_err_and(Error::is_of_output) {
                is_full.store(true, Ordering::Relaxed);
            }
            lock(slot).leave();
            let result = result.map(|mut summary| {
                progress.rounds_played(u64::from(summary.rounds));
                lock(&common).share(&mut summary);
                summary
            });
            let is_cancelled = matches!(result, Err(Error::Cancelled));
            *lock(&results[index]) = Some(result);
            if !is_cancelled {
                progress.run_ended(run, done.fetch_add(1, Ordering::Relaxed) + 1, runs.len());
            }
        }
        threads.active.fetch_sub(1, Ordering::Relaxed);
    };
    threads.side_by_side(workers, &work);
    let taken = |result: Mutex<Option<Result<RunSummary, Error>>>| {
        result.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(Err(Error::Cancelled))
    };
    results.into_iter().map(taken).collect()
}

/// The world of a slot, built if no run has needed it so far.
pub(super) fn world_of(
    slot: &Mutex<WorldSlot>,
    build: impl FnOnce() -> Result<World, Error>,
) -> Result<Arc<World>, Error> {
    let mut slot = lock(slot);
    if let Some(world) = &slot.world {
        return Ok(world.clone());
    }
    let world = Arc::new(build()?);
    if slot.runs_left > 1 {
        world.share();
    }
    slot.world = Some(world.clone());
    Ok(world)
}

/// Does a run's work. A panic ends this run alone: runs share read-only data.
pub(super) fn guarded<T>(run: &RunId, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        Err(Error::Panicked { run: run.name.clone(), message: panic_message(&*payload).to_owned() })
    })
}

/// The message of a panic.
fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many rounds are spread that take so long alone, and so much longer spread.
    fn spread(lately: &mut Lately, rounds: u32, alone: f64, waiting: f64) -> u32 {
        let play = |_| {
            let spread = lately.are_worth_it();
            lately.note(if spread { alone / 2.0 + waiting } else { alone }, spread);
            u32::from(spread)
        };
        (0..rounds).map(play).sum()
    }

    #[test]
    fn short_rounds_wake_no_threads_until_they_are_long_again() {
        let mut lately = Lately::UNKNOWN;
        // Also where the others are busy, so that waiting for them takes longest, and where this one is interrupted.
        assert_eq!(spread(&mut lately, 100, 1e-5, 2e-4), 1);
        assert_eq!(spread(&mut lately, 1, 4e-3, 2e-4), 0);
        assert_eq!(spread(&mut lately, 1_000, 1e-5, 2e-4), 0);
        // Evaluations in every tenth round, longer than all others.
        let mut seldom = 0;
        for _ in 0..100 {
            spread(&mut lately, 9, 1e-5, 2e-5);
            seldom += spread(&mut lately, 1, 5e-2, 2e-5);
        }
        assert!(seldom > 90, "{seldom}");
        // Long rounds, on their way to short ones and back.
        let mut lately = Lately::UNKNOWN;
        assert_eq!(spread(&mut lately, 100, 1.0, 0.0), 100);
        assert!(spread(&mut lately, 1_000, 1e-5, 2e-5) < 500);
        assert!(spread(&mut lately, 1_000, 4e-4, 2e-5) > 600);
    }

    #[test]
    fn a_panic_ends_its_run_and_is_called_a_defect() {
        let run = RunId { point: 0, seed: 3, arm: 0, name: "random-s3".to_owned() };
        let error = guarded(&run, || -> Result<(), Error> { panic!("found {} of {}", 3, 4) }).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        assert!(
            text.starts_with("run random-s3 panicked: found 3 of 4") && text.contains("defect of FedGenie"),
            "{text}"
        );
        assert_eq!(guarded(&run, || Ok(7)).unwrap(), 7);
    }
}
