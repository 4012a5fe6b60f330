//! An experiment: policies × seeds × the points of a sweep, run in parallel over runs and over clients.
//!
//! All policies of one (point, seed) share one world, so that their differences are paired. Results do not depend on
//! the number of threads: runs are independent, and inside a run only index-addressed work is parallel.
//!
//! *Threads.* As many runs are under way as there are threads. As soon as fewer runs are left than threads, the runs that
//! remain spread the training of their clients over all threads; before that, each run stays on its own.

pub mod artefacts;
mod curve;
mod estimates;
pub mod files;
mod summary;
pub mod verify;
mod watch;

pub use curve::{Curve, CurvePoint};
pub use estimates::estimate_of;
pub use summary::{ArmSummary, Comparison, INTERVAL_SEEDS, RunSummary, Summary, Traffic, number, table};
pub use summary::{ROUNDING, show};
pub use watch::{Reached, Watch};

use crate::error::Error;
use crate::metrics::{Bins, Metered};
use crate::policy::PolicyConfig;
use crate::protocol::Rule;
use crate::recorder::{NoSink, RunFiles, Sink, Wanted};
use crate::run::{Run, RunError, RunSettings};
use crate::scenario::tree::{self, Node};
use crate::scenario::{Point, Scenario, ScenarioError, expand_sweep};
use crate::task::{DataCache, Learner};
use crate::world::World;
use fedgenie_core::oracle::bound::Bound;
use fedgenie_core::oracle::regret::Meter;
use fedgenie_learning::model::evaluate;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a user may change without editing the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `path=value` pairs, in order.
    pub set: Vec<(String, String)>,
    /// Number of seeds.
    pub seeds: Option<u32>,
    /// Folder of data sets.
    pub data: Option<PathBuf>,
}

/// A checked experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The scenario at every point of its sweep; one without a sweep.
    pub points: Vec<(Point, Scenario)>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The resolved scenario with its sweep, as TOML.
    pub resolved: String,
    /// The folder that the names of files in the scenario are relative to.
    pub base: PathBuf,
    /// The folder of data sets, if the user gave one.
    pub data: Option<PathBuf>,
}

/// One run's place in the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// Index of the point.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// Index of the arm.
    pub arm: usize,
    /// Name of the run's folder.
    pub name: String,
}

impl Experiment {
    /// Reads a scenario file and checks every point of its sweep.
    ///
    /// # Errors
    /// If the file cannot be read or anything in it is wrong. Worlds are not built yet.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let mut root = tree::parse(path, &text).map_err(ScenarioError::from)?;
        for (key, value) in &overrides.set {
            root.set(key, tree::parse_value(value, "--set")).map_err(ScenarioError::from)?;
        }
        if let Some(seeds) = overrides.seeds {
            root.set("seeds", tree::parse_value(&seeds.to_string(), "--seeds")).map_err(ScenarioError::from)?;
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let absolute = |folder: &Path| {
            std::path::absolute(folder).map_err(|source| Error::Read { path: folder.to_owned(), source })
        };
        // The scenario of a result folder names files as the one that it was made from.
        let origin = artefacts::origin(path);
        let base = origin.as_ref().map(|origin| origin.base.clone()).filter(|base| base.is_dir());
        let base = base.map_or_else(|| absolute(folder), Ok)?;
        let data = overrides.data.as_deref().map(absolute).transpose()?;
        let data = data.or_else(|| origin.and_then(|origin| origin.data).filter(|data| data.is_dir()));
        Self::from_tree(&root, &base, data.as_deref())
    }

    /// Checks every point of a tree's sweep.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn from_tree(root: &Node, base: &Path, data: Option<&Path>) -> Result<Self, Error> {
        let mut points = Vec::new();
        for (point, tree) in expand_sweep(root)? {
            points.push((point, Scenario::new(&tree, base, data)?));
        }
        // The scenario outside the sweep is checked as well: it is what is written out.
        let whole = Scenario::new(root, base, data)?;
        if let Some((point, _)) = points.iter().find(|(_, scenario)| !same_labels(scenario, &whole)) {
            let message = format!("the policies differ at {:?}", point.settings);
            return Err(ScenarioError::new(root, "sweep", message).into());
        }
        let (seeds, resolved) = (whole.sections.seeds.list(), whole.to_toml());
        Ok(Self { points, seeds, resolved, base: base.to_owned(), data: data.map(Path::to_owned) })
    }

    /// The scenario at its first point.
    pub fn first(&self) -> &Scenario {
        &self.points[0].1
    }

    /// All runs: point by point, seed by seed, policy by policy.
    pub fn runs(&self) -> Vec<RunPlace> {
        let mut runs = Vec::new();
        for (point, (_, scenario)) in self.points.iter().enumerate() {
            for &seed in &self.seeds {
                for (arm, described) in scenario.arms.iter().enumerate() {
                    let label = &described.label;
                    let name = match self.points.len() {
                        1 => format!("{label}-s{seed}"),
                        _ => format!("{label}-p{point}-s{seed}"),
                    };
                    runs.push(RunPlace { point, seed, arm, name });
                }
            }
        }
        runs
    }

    /// BLAKE3 of every file of data, by its name as far as it is below the folder of data sets or of the scenario.
    ///
    /// # Errors
    /// If a file is there and cannot be read.
    pub fn data_digests(&self) -> Result<BTreeMap<String, String>, Error> {
        let files = self.points.iter().flat_map(|(_, scenario)| scenario.plan.task.files());
        let below = |path: &Path| {
            let folders = self.data.iter().chain([&self.base]);
            let name = folders.filter_map(|folder| path.strip_prefix(folder).ok()).next().unwrap_or(path);
            name.to_string_lossy().replace('\\', "/")
        };
        let mut digests = BTreeMap::new();
        for path in files.filter(|path| path.is_file()) {
            if let Entry::Vacant(place) = digests.entry(below(&path)) {
                place.insert(artefacts::hash_file(&path)?);
            }
        }
        Ok(digests)
    }

    /// Builds the world of one point and seed.
    ///
    /// # Errors
    /// What does not fit together, with file and line.
    pub fn world(&self, point: usize, seed: u64, cache: &DataCache) -> Result<World, ScenarioError> {
        let scenario = &self.points[point].1;
        scenario.plan.build(seed, cache).map_err(|error| scenario.explain(error))
    }

    /// Builds the first seed's world and all policies of every point, and checks the other seeds' worlds, to find what is
    /// wrong before anything is written: what is drawn per client can be right with one seed and wrong with another.
    /// Returns the worlds' warnings, each once.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check_worlds(&self, cache: &DataCache) -> Result<Vec<String>, ScenarioError> {
        let mut warnings: Vec<String> = Vec::new();
        for (point, (_, scenario)) in self.points.iter().enumerate() {
            let world = self.world(point, self.seeds[0], cache)?;
            for arm in &scenario.arms {
                world.policies(&arm.policy).map_err(|error| scenario.explain_policy(&arm.label, error))?;
            }
            warnings.extend(world.learner.iter().flat_map(Learner::warnings));
            warnings.extend(world.warnings);
            for &seed in &self.seeds[1..] {
                scenario.plan.check(seed, cache).map_err(|error| scenario.explain(error))?;
            }
        }
        warnings.sort();
        warnings.dedup();
        Ok(warnings)
    }

    /// Carries out one run in its world, and writes the final model to a file if asked to.
    ///
    /// # Errors
    /// If the run ends early; what it recorded up to then is in the sink.
    pub fn run_one(
        &self,
        place: &RunPlace,
        world: &World,
        sink: &mut dyn Sink,
        threads: &Threads,
        model_file: Option<&Path>,
    ) -> Result<RunSummary, Error> {
        let scenario = &self.points[place.point].1;
        let arm = &scenario.arms[place.arm];
        let policies = world.policies(&arm.policy).map_err(|error| scenario.explain_policy(&arm.label, error))?;
        let settings = RunSettings {
            evaluate: scenario.sections.evaluate.plan(scenario.sections.stop.end()),
            record_every: scenario.sections.record.every,
            parallel: false,
        };
        let speeds = world.truth.as_ref().map(|truth| &*truth.genie.mean_speeds);
        let mut metered = Metered::new(sink, Bins::new(&world.population, speeds));
        let mut run = Run::new(world, &arm.label, policies, settings, &mut metered);
        let mut curve = Curve::default();
        let mut watch = Watch::new(&scenario.sections.stop, &scenario.sections.evaluate.targets);
        let failed = |source: RunError| Error::Run { run: place.name.clone(), source };
        loop {
            threads.step(&mut run).map_err(failed)?;
            curve.push(CurvePoint {
                round: run.round().0,
                time_s: run.now().seconds(),
                regret: run.regret(),
                metrics: run.metrics().iter().map(|&(name, value)| (name.into(), value)).collect(),
                unique_clients: run.participation().unique(),
                jain: run.participation().jain(),
            });
            if threads.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if watch.observe(&run) {
                break;
            }
        }
        if let (Some(file), Some(contents)) = (model_file, run.model_file()) {
            files::write_file(file, &contents)?;
        }
        let mut summary = RunSummary::of(place, &arm.label, run, curve, watch.into_reached()).map_err(failed)?;
        (summary.metrics, summary.outcomes) = metered.finish();
        summary.bound = bound(world, &arm.policy);
        summary.warnings = world.learner.iter().filter_map(|learner| got_worse(learner, world, &summary)).collect();
        Ok(summary)
    }
}

/// The bound of Theorem 1, if the policy and its world are those of the theorem: BSFL that maximises the very reward that regret is
/// measured in, exactly, with everybody there and every update waited for.
fn bound(world: &World, policy: &PolicyConfig) -> Option<Bound> {
    let (PolicyConfig::Bsfl(config), Rule::Rounds(rule), Some(truth)) = (policy, &world.protocol.rule, &world.truth)
    else {
        return None;
    };
    let waits_for_all = rule.ask == rule.take && rule.cut.is_none() && world.population.availability().is_always();
    if !waits_for_all || !truth.meters.contains(&Meter::Mean) || !config.maximises(&truth.genie.reward) {
        return None;
    }
    Bound::of(&truth.genie, &world.shares, rule.ask).filter(|bound| bound.delta_min.is_some())
}

/// Whether training ended in a loss far above that of the model it began with.
fn got_worse(learner: &Learner, world: &World, summary: &RunSummary) -> Option<String> {
    const MUCH: f64 = 100.0;
    let last = *summary.final_metrics.get("test_loss")?;
    // A small loss is not worth the evaluation of the initial model.
    if last < 1.0 {
        return None;
    }
    let examples: Vec<u32> = (0..).take(learner.data.test.examples()).collect();
    let initial = learner.initial_model(&world.streams);
    let first = evaluate(&*learner.model, &initial, &learner.data.test, &examples, false).loss();
    let is_worse = first.is_finite() && (last > MUCH * first || last.is_nan());
    is_worse.then(|| {
        format!(
            "the test loss rose from {first:.3e} to {last:.3e}; a smaller learning rate may help, or normalize = true"
        )
    })
}

fn same_labels(one: &Scenario, other: &Scenario) -> bool {
    one.arms.iter().map(|arm| &arm.label).eq(other.arms.iter().map(|arm| &arm.label))
}

/// The threads of an experiment: how many, and how many runs are under way.
#[derive(Debug)]
pub struct Threads {
    pool: rayon::ThreadPool,
    count: usize,
    active: AtomicUsize,
    cancelled: std::sync::atomic::AtomicBool,
}

impl Threads {
    /// A pool of `count` threads; 0 for as many as the machine has cores.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn new(count: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build();
        let pool = pool.map_err(|error| Error::Threads(error.to_string()))?;
        Ok(Self { count: pool.current_num_threads(), pool, active: AtomicUsize::new(0), cancelled: false.into() })
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Plays a round, with the clients spread over all threads if some have nothing else to do.
    fn step(&self, run: &mut Run<'_>) -> Result<(), RunError> {
        let spread = self.count > 1 && run.trains() && self.active.load(Ordering::Relaxed) < self.count;
        run.set_parallel(spread);
        if spread { self.pool.install(|| run.step()) } else { run.step() }
    }
}

/// What an experiment tells while it runs.
pub trait Progress: Sync {
    /// A run ended; `done` of `total` have.
    fn run_ended(&self, place: &RunPlace, done: usize, total: usize);
    /// Rounds were played.
    fn rounds_played(&self, rounds: u64);
}

/// A world that is built by the first run that needs it and dropped by the last.
#[derive(Default)]
struct WorldSlot {
    world: Option<Arc<World>>,
    runs_left: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What runs write, and where.
#[derive(Clone, Copy, Debug)]
pub struct Outputs<'a> {
    /// The experiment's folder.
    pub folder: &'a Path,
    /// What is written of each run beside its rounds.
    pub wanted: &'a Wanted,
    /// The final model.
    pub models: bool,
}

/// Runs the given places of an experiment. With `outputs`, each run writes its files.
///
/// Results come in the order of `places`. A run that fails does not stop the others.
pub fn execute(
    experiment: &Experiment,
    places: &[RunPlace],
    outputs: Option<Outputs<'_>>,
    threads: &Threads,
    cache: &DataCache,
    progress: &dyn Progress,
) -> Vec<Result<RunSummary, Error>> {
    let mut slots = BTreeMap::new();
    for place in places {
        let slot: &mut Mutex<WorldSlot> = slots.entry((place.point, place.seed)).or_default();
        slot.get_mut().unwrap_or_else(PoisonError::into_inner).runs_left += 1;
    }
    let results: Vec<Mutex<Option<Result<RunSummary, Error>>>> = places.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let workers = threads.count.min(places.len());
    threads.active.store(workers, Ordering::Relaxed);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = places.get(index) else { break };
            let slot = &slots[&(place.point, place.seed)];
            let world = {
                let mut slot = lock(slot);
                match &slot.world {
                    Some(world) => Ok(world.clone()),
                    None => experiment.world(place.point, place.seed, cache).map(|world| {
                        let world = Arc::new(world);
                        slot.world = Some(world.clone());
                        world
                    }),
                }
            };
            let result = world.map_err(Error::from).and_then(|world| match outputs {
                None => experiment.run_one(place, &world, &mut NoSink, threads, None),
                Some(outputs) => run_into(experiment, place, &world, outputs, threads),
            });
            let mut slot = lock(slot);
            slot.runs_left -= 1;
            if slot.runs_left == 0 {
                slot.world = None;
            }
            drop(slot);
            if let Ok(summary) = &result {
                progress.rounds_played(u64::from(summary.rounds));
            }
            *lock(&results[index]) = Some(result);
            progress.run_ended(place, done.fetch_add(1, Ordering::Relaxed) + 1, places.len());
        }
        threads.active.fetch_sub(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let taken = |result: Mutex<Option<Result<RunSummary, Error>>>| {
        result.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(Err(Error::Cancelled))
    };
    results.into_iter().map(taken).collect()
}

/// Carries out a run that writes its files, and its summary last: a run with a summary is complete.
fn run_into(
    experiment: &Experiment,
    place: &RunPlace,
    world: &World,
    Outputs { folder, wanted, models }: Outputs<'_>,
    threads: &Threads,
) -> Result<RunSummary, Error> {
    let run_folder = folder.join(artefacts::RUNS_FOLDER).join(&place.name);
    let failed = |source| Error::Write { path: run_folder.clone(), source };
    let mut files = RunFiles::create(&run_folder, wanted).map_err(failed)?;
    let model_file = models.then(|| run_folder.join(artefacts::MODEL_FILE));
    let summary = experiment.run_one(place, world, &mut files, threads, model_file.as_deref())?;
    files.finish().map_err(failed)?;
    files::write_json(&run_folder.join(artefacts::RUN_FILE), &summary.with_curve())?;
    Ok(summary)
}
