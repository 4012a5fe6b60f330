//! Runs what claims need, each thing once.

use super::claim::{Budget, Check, Claim};
use super::statistic::Measurement;
use fedgenie_simulator::error::Error;
use fedgenie_simulator::experiment::{Experiment, Overrides, Progress, RunId, RunSummary, Threads, execute};
use fedgenie_simulator::task::DataCache;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A scenario's runs: point by point, seed by seed, policy by policy.
#[derive(Debug)]
pub struct Played {
    /// The scenario.
    pub experiment: Experiment,
    /// Its runs, all complete.
    pub runs: Vec<RunSummary>,
}

impl Played {
    /// The runs of a policy at a point, in the order of seeds.
    ///
    /// # Errors
    /// If the scenario has no such policy.
    pub fn of(&self, policy: &str, point: usize) -> Result<Vec<&RunSummary>, Error> {
        let runs: Vec<_> = self.runs.iter().filter(|run| run.arm == policy && run.point == point).collect();
        if runs.is_empty() {
            let known: Vec<_> = self.experiment.first().arms.iter().map(|arm| arm.label.as_str()).collect();
            return Err(Error::Usage(format!("there is no policy {policy:?}; there are {}", known.join(", "))));
        }
        Ok(runs)
    }

    /// The policies' labels.
    pub fn policies(&self) -> Vec<String> {
        self.experiment.first().arms.iter().map(|arm| arm.label.clone()).collect()
    }
}

/// What identifies a set of runs: file, seeds, settings.
type Key = (PathBuf, u32, Vec<(String, String)>);

/// Where claims are checked.
pub struct Laboratory<'a> {
    budget: Budget,
    threads: &'a Threads,
    progress: &'a dyn Progress,
    data: Option<PathBuf>,
    cache: DataCache,
    played: Mutex<BTreeMap<Key, Arc<Played>>>,
    measured: Mutex<BTreeMap<String, Arc<Measurement>>>,
}

impl<'a> Laboratory<'a> {
    /// An empty laboratory; `data` is the folder of data sets.
    pub fn new(budget: Budget, threads: &'a Threads, progress: &'a dyn Progress, data: Option<PathBuf>) -> Self {
        let (played, measured) = (Mutex::default(), Mutex::default());
        Self { budget, threads, progress, data, cache: DataCache::default(), played, measured }
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

    /// What a check's statistic finds; each statistic with the same parameters and scenarios is worked out once.
    ///
    /// # Errors
    /// If a scenario is wrong, a run fails, or parameters do not fit.
    pub fn measure(&self, claim: &Claim, check: &Check) -> Result<Arc<Measurement>, Error> {
        let statistic = check.statistic(self.budget);
        let key = format!("{} {statistic:?}", claim.name);
        let known = self.measured.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(measurement) = known {
            return Ok(measurement);
        }
        let measurement = Arc::new(statistic.measure(&Bench { laboratory: self, claim })?);
        self.measured.lock().unwrap_or_else(PoisonError::into_inner).insert(key, measurement.clone());
        Ok(measurement)
    }

    fn load(&self, key: &Key) -> Result<Experiment, Error> {
        let (file, seeds, set) = key;
        Experiment::load(file, &Overrides { set: set.clone(), seeds: Some(*seeds), data: self.data.clone() })
    }

    fn play(&self, key: Key) -> Result<Arc<Played>, Error> {
        let known = self.played.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(played) = known {
            return Ok(played);
        }
        let experiment = self.load(&key)?;
        let places = experiment.runs();
        let runs = execute(&experiment, &places, None, self.threads, &self.cache, self.progress);
        let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
        let played = Arc::new(Played { experiment, runs });
        self.played.lock().unwrap_or_else(PoisonError::into_inner).insert(key, played.clone());
        Ok(played)
    }
}

/// The laboratory, as a statistic of one claim sees it.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// All of it.
    pub laboratory: &'a Laboratory<'a>,
    claim: &'a Claim,
}

impl Bench<'_> {
    fn key(&self, name: &str) -> Result<Key, Error> {
        let Some(scenario) = self.claim.scenarios.get(name) else {
            let known: Vec<_> = self.claim.scenarios.keys().map(String::as_str).collect();
            return Err(Error::Usage(format!("there is no scenario {name:?}; there are {}", known.join(", "))));
        };
        let (seeds, set) = scenario.overrides(self.laboratory.budget);
        Ok((self.claim.folder.join(&scenario.file), seeds, set))
    }

    /// The runs of one of the claim's scenarios.
    ///
    /// # Errors
    /// If there is no such scenario, it is wrong, or a run fails.
    pub fn play(&self, scenario: &str) -> Result<Arc<Played>, Error> {
        self.laboratory.play(self.key(scenario)?)
    }

    /// One of the claim's scenarios, for statistics that carry it out themselves.
    ///
    /// # Errors
    /// If there is no such scenario, or it is wrong.
    pub fn experiment(&self, scenario: &str) -> Result<Experiment, Error> {
        self.laboratory.load(&self.key(scenario)?)
    }

    /// Something for every run of an experiment, in their order, on all threads.
    ///
    /// # Errors
    /// The first in that order.
    pub fn for_runs<T: Send>(
        &self,
        experiment: &Experiment,
        work: impl Fn(&RunId) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        self.map(&experiment.runs(), work)
    }

    /// Something for every item, in their order, on all threads.
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
