//! Runs the scenarios of claims, each of them once.

use super::claim::{Budget, Check, Claim};
use super::learns::Objections;
use super::statistic::Measurement;
use super::tuning;
use fedgenie_core::math::statistics::Miss;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::without_seeds;
use fedgenie_experiment::experiment::kept::Found;
use fedgenie_experiment::experiment::{
    Earlier, Experiment, Forecast, LookedAt, Outputs, Overrides, Progress, ResultFolder, RunId, RunOptions, RunSummary,
    Shard, Threads, artefacts, execute,
};
use fedgenie_experiment::scenario::{Kinds, Point, UntilDecided, points};
use fedgenie_simulator::recorder::RunFileOptions;
use fedgenie_simulator::task::DataCache;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A scenario's runs: point by point, seed by seed, policy by policy.
#[derive(Debug)]
pub struct ScenarioRuns {
    /// The scenario.
    pub experiment: Experiment,
    /// Its runs, all complete.
    pub runs: Vec<RunSummary>,
    /// Number of runs that were there already.
    reused: usize,
}

impl ScenarioRuns {
    /// The policies' labels.
    pub fn policies(&self) -> Vec<String> {
        self.experiment.first().arms.iter().map(|arm| arm.label.clone()).collect()
    }

    /// The name of a point of its sweep; empty where there is one.
    pub fn name_of(&self, point: usize) -> String {
        let of = |point: &Point| point.settings.iter().cloned().collect::<BTreeMap<String, String>>();
        let all: Vec<_> = self.experiment.points.iter().map(|(point, _)| of(point)).collect();
        points::names(&all).swap_remove(point)
    }

    /// Words that tell of which point a table is; empty where there is one.
    pub fn at(&self, point: usize) -> String {
        if self.experiment.points.len() > 1 { format!(", at {}", self.name_of(point)) } else { String::new() }
    }
}

/// Runs of a validation that keeps them: how many existed already, and how many were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Finished by an earlier validation.
    pub reused: usize,
    /// Runs among them of another build, whose first rounds were replayed.
    #[serde(skip_serializing_if = "is_zero")]
    pub taken_over: usize,
    /// Carried out by this one.
    pub made: usize,
    /// Runs that existed and were made anew, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_anew: Vec<String>,
}

const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What identifies a set of runs: file, seeds, settings.
type Key = (PathBuf, Option<u32>, Vec<(String, String)>);

/// Runs scenarios for claims, and keeps the runs and the measurements.
pub struct Laboratory<'a> {
    budget: Budget,
    threads: &'a Threads,
    progress: &'a dyn Progress,
    data: Option<PathBuf>,
    /// Whether scenarios may read files elsewhere.
    allow_paths: bool,
    /// Policies and tasks of a program.
    kinds: Kinds,
    /// The folder that keeps finished runs.
    folder: Option<PathBuf>,
    /// Whether runs of another build are kept whose first rounds replay to the same digests.
    takes_over: bool,
    kept: Mutex<Kept>,
    /// Whether runs of an earlier validation were given to a statistic since [`Self::take_reused`] was last called.
    has_reused: AtomicBool,
    /// Whether it was said that this machine trains slowly.
    has_warned: AtomicBool,
    cache: DataCache,
    completed: Mutex<BTreeMap<Key, Arc<ScenarioRuns>>>,
    measured: Mutex<BTreeMap<String, Arc<Measurement>>>,
}

impl<'a> Laboratory<'a> {
    /// An empty laboratory that keeps runs in memory; `data` is the folder of data sets.
    pub fn new(budget: Budget, threads: &'a Threads, progress: &'a dyn Progress, data: Option<PathBuf>) -> Self {
        let (completed, measured) = (Mutex::default(), Mutex::default());
        let (folder, kept, cache) = (None, Mutex::default(), DataCache::default());
        let (allow_paths, takes_over, has_reused) = (false, false, AtomicBool::new(false));
        Self {
            budget,
            threads,
            progress,
            data,
            allow_paths,
            kinds: Kinds::default(),
            folder,
            takes_over,
            kept,
            has_reused,
            has_warned: AtomicBool::new(false),
            cache,
            completed,
            measured,
        }
    }

    /// Lets scenarios read files that lie neither below their folder nor below that of data sets.
    #[must_use]
    pub const fn allowing_paths(mut self) -> Self {
        self.allow_paths = true;
        self
    }

    /// Lets scenarios use policies and tasks of a program.
    #[must_use]
    pub fn with_kinds(mut self, kinds: Kinds) -> Self {
        self.kinds = kinds;
        self
    }

    /// Takes runs of another build from the folder as well, if their first rounds replay to the same digests.
    #[must_use]
    pub const fn taking_over(mut self) -> Self {
        self.takes_over = true;
        self
    }

    /// Keeps finished runs in a folder as well, and takes from there those of an earlier validation: of the same
    /// scenarios and data, by the same build of the program. Runs of another build are made anew.
    #[must_use]
    pub fn keeping(mut self, folder: PathBuf) -> Self {
        self.folder = Some(folder);
        self
    }

    /// How many runs came from the folder so far, and how many were made.
    pub fn kept(&self) -> Kept {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether statistics were given runs of an earlier validation since the last call.
    pub(super) fn take_reused(&self) -> bool {
        self.has_reused.swap(false, Ordering::Relaxed)
    }

    /// How much work is allowed.
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    /// The threads.
    pub const fn threads(&self) -> &Threads {
        self.threads
    }

    /// Data sets read so far.
    pub const fn cache(&self) -> &DataCache {
        &self.cache
    }

    /// The measurement for a check; a statistic with the same parameters and scenarios is computed once.
    ///
    /// # Errors
    /// If a scenario is wrong, a run fails, or parameters do not fit.
    pub fn measure(&self, claim: &Claim, check: &Check, look: SoFar<'_>) -> Result<Arc<Measurement>, Error> {
        let statistic = check.statistic(self.budget);
        let key = format!("{} {:?} {statistic:?}", claim.name, look.map(UntilDecided::seeds));
        let known = self.measured.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(measurement) = known {
            return Ok(measurement);
        }
        let seen = Mutex::default();
        let measurement = statistic.measure(&Context { laboratory: self, claim, look, seen: &seen })?;
        let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        let measurement = Arc::new(Measurement { seen, ..measurement });
        self.measured.lock().unwrap_or_else(PoisonError::into_inner).insert(key, measurement.clone());
        Ok(measurement)
    }

    /// Which runs of a claim cannot decide on a learned task, and why; none if it does not say when they could.
    ///
    /// # Errors
    /// As [`Self::measure`].
    pub fn objections(&self, claim: &Claim, look: SoFar<'_>) -> Result<Objections, Error> {
        let Some(learns) = &claim.learns else { return Ok(Objections::default()) };
        let seen = Mutex::default();
        let context = Context { laboratory: self, claim, look, seen: &seen };
        // Before any run: these take hours.
        learns.check_controls(&context)?;
        if self.budget == Budget::Full { learns.objections(&context) } else { Ok(Objections::default()) }
    }

    /// Does something with the runs of a claim.
    pub(super) fn with<T>(&self, claim: &Claim, look: SoFar<'_>, work: impl FnOnce(&Context<'_>) -> T) -> T {
        work(&Context { laboratory: self, claim, look, seen: &Mutex::default() })
    }

    /// What carrying out one of a claim's scenarios would cost: the runs that the folder of kept runs lacks.
    ///
    /// # Errors
    /// Why it cannot be carried out.
    pub fn forecast(&self, claim: &Claim, scenario: &str) -> Result<Forecast, Error> {
        let look = claim.first_look(self.budget);
        let context = Context { laboratory: self, claim, look: look.as_ref(), seen: &Mutex::default() };
        let experiment = self.load(&context.key(scenario)?)?;
        let folder =
            self.folder.as_ref().map(|folder| Ok::<_, Error>(folder.join(place_of(&experiment)?))).transpose()?;
        let folder = folder.as_deref().filter(|folder| folder.exists());
        let earlier = if folder.is_some() { Earlier::Resume } else { Earlier::Refuse };
        let options = RunOptions { folder, earlier, progress: self.progress, ..RunOptions::default() };
        experiment.dry_run(&options, self.threads)
    }

    fn load(&self, key: &Key) -> Result<Experiment, Error> {
        let (file, seeds, set) = key;
        Experiment::load(
            file,
            &Overrides {
                set: set.clone(),
                seeds: *seeds,
                data: self.data.clone(),
                allow_paths: self.allow_paths,
                kinds: self.kinds.clone(),
                ..Overrides::default()
            },
        )
    }

    fn runs(&self, key: Key) -> Result<Arc<ScenarioRuns>, Error> {
        let known = self.completed.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(completed) = known {
            self.has_reused.fetch_or(completed.reused > 0, Ordering::Relaxed);
            return Ok(completed);
        }
        let experiment = self.load(&key)?;
        let (runs, reused) = match &self.folder {
            Some(folder) => self.carry_out_into(&folder.join(place_of(&experiment)?), &experiment)?,
            None => (self.carry_out(&experiment, &experiment.runs(), None)?, 0),
        };
        self.has_reused.fetch_or(reused > 0, Ordering::Relaxed);
        let completed = Arc::new(ScenarioRuns { experiment, runs, reused });
        self.completed.lock().unwrap_or_else(PoisonError::into_inner).insert(key, completed.clone());
        Ok(completed)
    }

    fn carry_out(
        &self,
        experiment: &Experiment,
        runs: &[RunId],
        outputs: Option<Outputs<'_>>,
    ) -> Result<Vec<RunSummary>, Error> {
        let warning = experiment.warning_of_cpu().filter(|_| !runs.is_empty());
        if let Some(warning) = warning.filter(|_| !self.has_warned.swap(true, Ordering::Relaxed)) {
            self.progress.warned(&warning);
        }
        execute(experiment, runs, outputs, self.threads, &self.cache, self.progress).into_iter().collect()
    }

    /// Carries out the runs that a result folder lacks, or has damaged. The others are as good as new. A run whose
    /// other files were put aside is complete by its summary, which is all that statistics read. Returns all runs, and
    /// how many existed.
    fn carry_out_into(&self, folder: &Path, experiment: &Experiment) -> Result<(Vec<RunSummary>, usize), Error> {
        let opened = ResultFolder::open(folder, experiment, Earlier::Resume, Shard::WHOLE)?;
        let (found, taken_over, made_anew) = self.look(folder, &opened, experiment)?;
        let missing: Vec<RunId> =
            found.iter().filter(|(_, summary)| summary.is_none()).map(|(run, _)| run.clone()).collect();
        let outputs = Outputs { folder: &opened, files: &RunFileOptions::default(), models: false, memory: None };
        let mut made = self.carry_out(experiment, &missing, Some(outputs))?.into_iter();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let reused = found.len() - missing.len();
        kept.reused += reused;
        kept.taken_over += taken_over;
        kept.made += missing.len();
        kept.made_anew.extend(made_anew);
        drop(kept);
        let runs: Vec<RunSummary> =
            found.into_iter().filter_map(|(_, summary)| summary.or_else(|| made.next())).collect();
        // Other processes may be at work in the folder: there is no summary of all of it then.
        opened.finish(experiment, &mut runs.clone(), |_, _| Ok(()))?;
        Ok((runs, reused))
    }

    /// The runs of an experiment that a result folder holds; how many of them another build has made, and why others
    /// cannot be used.
    fn look(&self, folder: &Path, opened: &ResultFolder, experiment: &Experiment) -> Result<Looked, Error> {
        let (mut found, mut foreign, mut made_anew) = (Vec::new(), Vec::new(), Vec::new());
        let anew = |made_anew: &mut Vec<String>, run: &RunId, why: String| {
            self.progress.warned(&format!("run {}: {why}; it is repeated", run.name));
            made_anew.push(format!("{}: {why}", run.name));
        };
        for (run, stored) in experiment.stored(folder) {
            let summary = match stored {
                Found::Complete(summary) => Some(*summary),
                Found::OfAnotherBuild(summary, _) if self.takes_over => {
                    foreign.push((run.clone(), *summary));
                    None
                }
                Found::OfAnotherBuild(_, build) => {
                    anew(&mut made_anew, &run, format!("of another build ({build})"));
                    None
                }
                Found::Damaged(why) => {
                    anew(&mut made_anew, &run, why);
                    None
                }
                Found::Missing => None,
            };
            found.push((run, summary));
        }
        let looked = experiment.take_over(opened, foreign, self.threads, &self.cache)?;
        let taken_over = looked.iter().filter(|looked| looked.found.is_ok()).count();
        for LookedAt { run, found: same } in looked {
            match same {
                Ok((_, summary)) => {
                    let place = found.iter_mut().find(|(known, _)| *known == run);
                    place.into_iter().for_each(|(_, kept)| *kept = Some((*summary).clone()));
                }
                Err(what) => anew(&mut made_anew, &run, format!("of another build, and differs: {what}")),
            }
        }
        Ok((found, taken_over, made_anew))
    }
}

/// Runs with their summaries, as far as a folder has them; how many were taken over; why others are made anew.
type Looked = (Vec<(RunId, Option<RunSummary>)>, usize, Vec<String>);

/// The folder of an experiment among those of a validation: its name, and a digest of scenario and data. Each run
/// records its build.
fn place_of(experiment: &Experiment) -> Result<String, Error> {
    // Where seeds are added, runs of all looks have one place.
    let resolved = &experiment.resolved;
    let mut made_of = vec![if experiment.until.is_some() { without_seeds(resolved) } else { resolved.clone() }];
    made_of.extend(experiment.data_digests()?.into_iter().flat_map(<[String; 2]>::from));
    let digest = artefacts::hash(made_of.join("\0").as_bytes());
    Ok(format!("{}-{}", experiment.first().sections.name, &digest[..16]))
}

/// Runs that a statistic has looked at: those of a policy at a point of one of the claim's scenarios.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The scenario's name in the claim.
    pub scenario: String,
    /// The point.
    pub point: usize,
    /// The policy's label.
    pub policy: String,
}

/// The runs of one of a claim's scenarios, which remember who was looked at: so no statistic can forget to say it.
#[derive(Clone)]
pub struct ClaimRuns<'a> {
    runs: Arc<ScenarioRuns>,
    name: String,
    seen: &'a Mutex<BTreeSet<Seen>>,
}

impl Deref for ClaimRuns<'_> {
    type Target = ScenarioRuns;

    fn deref(&self) -> &ScenarioRuns {
        &self.runs
    }
}

impl ClaimRuns<'_> {
    /// The runs of a policy at a point, in the order of seeds.
    ///
    /// # Errors
    /// If the scenario has no such policy or no such point.
    pub fn of(&self, policy: &str, point: usize) -> Result<Vec<&RunSummary>, Error> {
        let points = self.runs.experiment.points.len();
        if point >= points {
            return Err(Error::Usage(format!("there is no point {point}: the scenario has {points}, from 0 on")));
        }
        let runs: Vec<_> = self.runs.runs.iter().filter(|run| run.arm == policy && run.point == point).collect();
        if runs.is_empty() {
            let known: Vec<_> = self.runs.experiment.first().arms.iter().map(|arm| arm.label.as_str()).collect();
            return Err(Error::Usage(format!("there is no policy {policy:?}; there are {}", known.join(", "))));
        }
        let seen = Seen { scenario: self.name.clone(), point, policy: policy.to_owned() };
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(seen);
        Ok(runs)
    }
}

/// Access of a statistic to the runs and scenarios of one claim.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Threads, budget and data sets.
    pub laboratory: &'a Laboratory<'a>,
    claim: &'a Claim,
    look: SoFar<'a>,
    seen: &'a Mutex<BTreeSet<Seen>>,
}

/// Where seeds are added until all numbers are decided: how far that is.
pub type SoFar<'a> = Option<&'a UntilDecided>;

impl<'a> Context<'a> {
    /// The share of intervals that may miss: 5 %, or what is left of it for this look.
    pub fn miss(&self) -> Miss {
        self.look.map_or(Miss::USUAL, |plan| plan.miss(plan.seeds(), 1))
    }

    fn key(&self, name: &str) -> Result<Key, Error> {
        let Some(scenario) = self.claim.scenarios.get(name) else {
            let known: Vec<_> = self.claim.scenarios.keys().map(String::as_str).collect();
            return Err(Error::Usage(format!("there is no scenario {name:?}; there are {}", known.join(", "))));
        };
        let (seeds, mut set) = scenario.overrides(self.laboratory.budget, self.look);
        if let Some(name) = &scenario.open {
            set.extend(tuning::open(&self.tuning(), name)?);
        }
        Ok((self.claim.folder.join(&scenario.file), seeds, set))
    }

    /// The names of the claim's scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.claim.scenarios.keys().map(String::as_str)
    }

    /// The folder of grids and choices.
    pub fn tuning(&self) -> PathBuf {
        self.claim.folder.join("../tuning")
    }

    /// The runs of one of the claim's scenarios.
    ///
    /// # Errors
    /// If there is no such scenario, it is wrong, or a run fails.
    pub fn runs(&self, scenario: &str) -> Result<ClaimRuns<'a>, Error> {
        let runs = self.laboratory.runs(self.key(scenario)?)?;
        Ok(ClaimRuns { runs, name: scenario.to_owned(), seen: self.seen })
    }

    /// One of the claim's scenarios, for statistics that carry it out themselves.
    ///
    /// # Errors
    /// If there is no such scenario, or it is wrong.
    pub fn experiment(&self, scenario: &str) -> Result<Experiment, Error> {
        self.laboratory.load(&self.key(scenario)?)
    }

    /// Carries out a function for every item on all threads; results are in the order of the items.
    ///
    /// # Errors
    /// The first in that order.
    pub fn map<I: Sync, T: Send>(
        &self,
        items: &[I],
        work: impl Fn(&I) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<Result<T, Error>>>> = items.iter().map(|_| Mutex::new(None)).collect();
        let worker = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { break };
                let result = work(item);
                *results[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.laboratory.threads.count().min(items.len()) {
                scope.spawn(worker);
            }
        });
        let taken = |result: Mutex<Option<Result<T, Error>>>| {
            result.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or(Err(Error::Cancelled))
        };
        results.into_iter().map(taken).collect()
    }
}
