//! What an experiment costs, known before it is carried out.
//!
//! # Definition
//! Counts follow from the scenario as far as it states them. Seconds and bytes are measured in a trial of about a
//! second: a run of each policy at each point begins with real training, evaluations and records, as many side by side
//! as in the experiment, and ends after some rounds. Of long rounds only some clients train, and their seconds count
//! for all; a long evaluation is of some test examples. A run takes
//!
//! ```text
//! rest + first round + (rounds - 1) × later round + evaluations × evaluation
//! ```
//!
//! and runs share threads and worlds as they do when they are carried out. The peak of memory is that of this process
//! after the trial, with what the trial left out.
//!
//! # Limits
//! Later rounds are taken to cost as much as the first ones. Every number says whether it is known, an upper bound or
//! an estimate, and notes say why.

mod checks;
mod counts;
mod facts;
mod memory;
mod meter;
mod notes;
mod records;
mod sampler;
mod schedule;
mod trial;

pub use counts::{Basis, Count};
pub use memory::MemoryForecast;

use super::clock::now;
use super::{Earlier, Experiment, RunId, RunOptions, Threads, folder};
use crate::error::Error;
use crate::scenario::UntilDecided;
use counts::Counted;
use fedgenie_simulator::task::DataCache;
use meter::{Rounds, Seen};
use schedule::{Work, makespan};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use trial::{KindKey, Trial, Tried};

/// The forecast of an experiment. Seconds are of wall time on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// Runs that would be carried out.
    pub runs: usize,
    /// Points of the sweep that they are of; 1 without a sweep.
    pub points: usize,
    /// Policies that they are of.
    pub policies: usize,
    /// Seeds that they are of.
    pub seeds: usize,
    /// Complete runs that are there already.
    pub kept: usize,
    /// Rounds of all runs.
    pub rounds: Count,
    /// Trainings of a client, in all runs.
    pub client_trainings: Count,
    /// Epochs of a training; `None` if it is measured in steps.
    pub epochs: Option<u32>,
    /// Trainings times epochs.
    pub client_epochs: Option<Count>,
    /// Evaluations of all runs, as `[evaluate]` says.
    pub evaluations: Count,
    /// Further evaluations that policies ask for.
    pub evaluations_for_policies: Count,
    /// Memory of the process.
    pub memory: MemoryForecast,
    /// Bytes of the result folder without page and pictures; `None` if they are not known.
    pub disk_bytes: Option<u64>,
    /// Whether there is a result folder.
    pub is_written: bool,
    /// Threads that the runs share.
    pub threads: usize,
    /// Seconds until the last run has ended, checks of the worlds included.
    pub wall_s: f64,
    /// Seconds of `wall_s` for the checks of the worlds.
    pub check_s: f64,
    /// Seconds that the trial took.
    pub trial_s: f64,
    /// Each policy at each point.
    pub kinds: Vec<Kind>,
    /// Guesses behind the numbers, and why.
    pub notes: Vec<String>,
}

/// Runs of one policy at one point. Seconds are of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Kind {
    /// The policy's label.
    pub policy: String,
    /// Index of the point.
    pub point: usize,
    /// How many runs there are.
    pub runs: usize,
    /// Rounds that were tried; 0 if its costs are those of another policy or point.
    pub tried_rounds: u32,
    /// Rounds of a run.
    pub rounds: Count,
    /// Trainings of a client in a run.
    pub client_trainings: Count,
    /// Evaluations of a run.
    pub evaluations: Count,
    /// Further evaluations that the policy asks for.
    pub evaluations_for_policy: Count,
    /// Building the world, which policies with the same scenario share.
    pub build_s: f64,
    /// The first round without its evaluation.
    pub first_round_s: f64,
    /// A later round without its evaluation.
    pub round_s: f64,
    /// An evaluation.
    pub evaluation_s: f64,
    /// The run beside its rounds.
    pub rest_s: f64,
    /// The run, without the building of its world.
    pub run_s: f64,
    /// Its files; `None` if their size is not known.
    pub bytes: Option<u64>,
    #[serde(skip)]
    spread: f64,
    #[serde(skip)]
    result_bytes: u64,
}

/// Seconds of the parts of a run: first round, later round, evaluation, rest.
fn parts(tried: &[Tried]) -> [f64; 4] {
    let mean = |of: &dyn Fn(&Tried) -> f64| tried.iter().map(of).sum::<f64>() / tried.len() as f64;
    let together = |of: &dyn Fn(&Seen) -> Rounds| {
        let sum =
            |sum: Rounds, next: Rounds| Rounds { count: sum.count + next.count, seconds: sum.seconds + next.seconds };
        tried.iter().map(|tried| of(&tried.seen)).fold(Rounds::default(), sum).mean()
    };
    let measured = mean(&|tried| tried.seen.evaluation_s);
    let first = mean(&|tried| {
        let Seen { first_s, is_first_evaluated, evaluation_s, .. } = tried.seen;
        (first_s - if is_first_evaluated { evaluation_s } else { 0.0 }).max(0.0)
    });
    let (plain, evaluated) = (together(&|seen| seen.plain), together(&|seen| seen.evaluated));
    let (round, evaluation) = match (plain, evaluated) {
        (Some(plain), Some(evaluated)) => (plain, (evaluated - plain).max(0.0)),
        (Some(plain), None) => (plain, measured),
        // Both together are what was measured.
        (None, Some(evaluated)) => ((evaluated - measured).max(0.0), evaluated.min(measured)),
        (None, None) => (first, measured),
    };
    // On all test examples an evaluation takes longer.
    let evaluation = evaluation / mean(&|tried| tried.tested);
    [first, round, evaluation, mean(&|tried| tried.rest_s)]
}

impl Kind {
    fn of(experiment: &Experiment, run: &RunId, tried: &[Tried], counted: Counted, build_s: f64) -> Self {
        let [first_round_s, round_s, evaluation_s, rest_s] = parts(tried);
        let Counted { rounds, client_trainings, evaluations, evaluations_for_policy } = counted;
        let later = (rounds.value - 1.0).max(0.0);
        let run_s = rest_s + first_round_s + later * round_s + evaluations.value * evaluation_s;
        let played: f64 = tried.iter().map(|tried| f64::from(tried.seen.rounds)).sum();
        let trained: f64 = tried.iter().map(|tried| tried.seen.training.whole_s).sum();
        let spread = trained / played.max(1.0) * rounds.value + evaluations.value * evaluation_s;
        let scenario = &experiment.points[run.point].1;
        let every = scenario.sections_of(run.arm).record.every;
        let sizes = tried.iter().find_map(|tried| Some((tried.sizes?, tried.seen.model_bytes)));
        let result = sizes.map_or(0.0, |(sizes, _)| sizes.result(rounds.value, evaluations.value));
        let bytes = sizes.map(|(sizes, model)| sizes.of(rounds.value, every, evaluations.value) as u64 + model);
        Self {
            policy: scenario.arms[run.arm].label.clone(),
            point: run.point,
            runs: 0,
            tried_rounds: played as u32,
            rounds,
            client_trainings,
            evaluations,
            evaluations_for_policy,
            build_s,
            first_round_s,
            round_s,
            evaluation_s,
            rest_s,
            run_s,
            bytes,
            result_bytes: result as u64,
            spread: if run_s > 0.0 { (spread / run_s).clamp(0.0, 1.0) } else { 0.0 },
        }
    }
}

/// The trial of a policy at a point: its own, that of the same policy at the nearest point, or any other.
fn nearest(trial: &Trial, (point, arm): KindKey) -> Option<KindKey> {
    let distance = |&&(other, of): &&KindKey| (of != arm, other.abs_diff(point), of.abs_diff(arm));
    trial.tried.keys().min_by_key(distance).copied()
}

impl Experiment {
    /// Says what carrying out the experiment with these options would cost. Nothing is written into its folder; a
    /// temporary one is deleted at the end.
    ///
    /// # Errors
    /// Why the experiment cannot be carried out, as [`Self::run_with`] would find before its first run or in the first
    /// rounds of a run, or [`Error::Cancelled`].
    pub fn dry_run(&self, options: &RunOptions<'_>, threads: &Threads) -> Result<Forecast, Error> {
        if let Some(plan) = self.until.as_ref().filter(|plan| plan.seeds() < plan.at_most) {
            return self.dry_run_of_all(plan, options, threads);
        }
        let cache = DataCache::default();
        if let Some(folder) = options.folder {
            folder::refuse_unfit(folder, self, options.earlier)?;
        }
        let mut runs = options.shard.of(self);
        let asked = runs.len();
        if options.earlier == Earlier::Resume {
            self.earlier(options, &mut runs)?;
        }
        let before = memory::resident();
        let checked = checks::check(self, &runs, &cache)?;
        checked.warnings.iter().for_each(|warning| options.progress.warned(warning));
        let (after, began) = (memory::resident(), now());
        let trial = trial::try_out(self, &runs, options, threads, &cache)?;
        let trial_s = began.elapsed().as_secs_f64();
        let mut kinds: BTreeMap<KindKey, Kind> = BTreeMap::new();
        let mut worlds = memory::Worlds::new([before, after], runs.len().min(threads.count()));
        for run in &runs {
            let key = (run.point, run.arm);
            if let Some(kind) = kinds.get_mut(&key) {
                kind.runs += 1;
                continue;
            }
            let Some(from) = nearest(&trial, key) else { continue };
            worlds.see(&trial.tried[&from]);
            let kind = self.kind(run, (&trial, from));
            kinds.insert(key, Kind { runs: 1, tried_rounds: if from == key { kind.tried_rounds } else { 0 }, ..kind });
        }
        let wall_s = checked.whole_s + makespan(&self.works(&runs, &kinds, threads), threads.count());
        let distinct = |of: &dyn Fn(&RunId) -> u64| runs.iter().map(of).collect::<BTreeSet<_>>().len();
        let all = |of: &dyn Fn(&Kind) -> Count| kinds.values().map(|kind| of(kind).times(kind.runs as f64)).sum();
        let disk = kinds.values().map(|kind| Some(kind.bytes? * kind.runs as u64)).sum::<Option<u64>>();
        let results = kinds.values().map(|kind| kind.result_bytes * kind.runs as u64).sum();
        let client_trainings: Count = all(&|kind| kind.client_trainings);
        let epochs = counts::epochs(self);
        Ok(Forecast {
            runs: runs.len(),
            points: distinct(&|run| run.point as u64),
            policies: distinct(&|run| run.arm as u64),
            seeds: distinct(&|run| run.seed),
            kept: asked - runs.len(),
            rounds: all(&|kind| kind.rounds),
            client_trainings,
            epochs,
            client_epochs: epochs.map(|epochs| client_trainings.times(f64::from(epochs))),
            evaluations: all(&|kind| kind.evaluations),
            evaluations_for_policies: all(&|kind| kind.evaluations_for_policy),
            memory: worlds.forecast(threads.count(), results),
            disk_bytes: disk.map(|bytes| bytes + self.resolved.len() as u64),
            is_written: options.folder.is_some(),
            threads: threads.count(),
            wall_s,
            check_s: checked.whole_s,
            trial_s,
            notes: notes::notes(self, &trial, &kinds, options).into_iter().chain(checked.note()).collect(),
            kinds: kinds.into_values().collect(),
        })
    }

    /// The forecast of all seeds that a plan may add.
    fn dry_run_of_all(
        &self,
        plan: &UntilDecided,
        options: &RunOptions<'_>,
        threads: &Threads,
    ) -> Result<Forecast, Error> {
        self.check_looks(plan, options)?;
        let whole = self.at_look(UntilDecided { so_far: Some(plan.at_most), ..plan.anew() })?;
        let mut forecast = whole.dry_run(options, threads)?;
        let (most, first) = (plan.at_most, plan.anew().seeds());
        let note = format!(
            "seeds are added until the first answer is decided; this is of all {most}, the first look is after {first}"
        );
        forecast.notes.insert(0, note);
        Ok(forecast)
    }

    fn kind(&self, run: &RunId, (trial, from): (&Trial, KindKey)) -> Kind {
        let tried = &trial.tried[&from];
        let scenario = &self.points[run.point].1;
        let counted = counts::counted(scenario.sections_of(run.arm), tried);
        let place = (run.point, scenario.arms[run.arm].variant);
        let build = trial.builds.get(&place).or_else(|| trial.builds.values().next());
        Kind::of(self, run, tried, counted, build.copied().unwrap_or(0.0))
    }

    fn works(&self, runs: &[RunId], kinds: &BTreeMap<KindKey, Kind>, threads: &Threads) -> Vec<Work> {
        let mut worlds = BTreeMap::new();
        // Runs that were tried on all threads were timed there.
        let is_spread = runs.len() < threads.count();
        let work = |run: &RunId| {
            let next = worlds.len();
            let world = *worlds.entry(self.place_of(run)).or_insert(next);
            let kind = kinds.get(&(run.point, run.arm))?;
            let &Kind { build_s, run_s, spread, .. } = kind;
            Some(Work { world, build_s, run_s, spread: if is_spread { 0.0 } else { spread } })
        };
        runs.iter().filter_map(work).collect()
    }
}
