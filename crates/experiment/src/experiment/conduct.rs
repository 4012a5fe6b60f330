//! Carries out an experiment from its first look at the folder to its summary, as the options say.
//!
//! ```text
//! earlier runs of the folder ─▶ worlds are checked ─▶ runs ─▶ summary, manifest, pictures ─▶ Outcome
//! ```

use super::artefacts::{EVENTS_FILE, Failure, MODEL_FILE, TIMELINE_FILE};
use super::kept::Found;
use super::options::RunOptions;
use super::stored::Status;
use super::{
    Earlier, Experiment, LookedAt, Outputs, ResultFolder, RunId, RunSummary, Summary, Threads, build, execute,
};
use crate::error::Error;
use fedgenie_simulator::task::DataCache;
use std::collections::{BTreeMap, BTreeSet};

/// Most runs that a message names.
const SHOWN: usize = 5;

/// How the work ended.
#[derive(Debug)]
pub enum Conclusion {
    /// All runs have ended; they have no folder.
    InMemory,
    /// All runs of the folder have ended, and its summary and manifest are written.
    Written,
    /// All runs that were asked for have ended. Other processes are at work in the folder, and the last one to end
    /// writes the summary.
    LeftToOthers,
    /// It was stopped by [`Threads::cancel`]. Runs under way are saved in the folder, if there is one.
    Cancelled,
    /// A file could not be written, such as on a full disk. Complete runs stay.
    Full(Error),
}

/// The results, whether all runs ended well or not.
#[derive(Debug)]
pub struct Outcome {
    /// Of all complete runs: of the folder if its summary was written, otherwise of those that were asked for.
    pub summary: Summary,
    /// The runs that failed here, and why, in the order of the experiment.
    pub failures: Vec<(RunId, Error)>,
    /// How many of the runs that were asked for are complete, earlier ones among them.
    pub complete: usize,
    /// How many runs were asked for.
    pub total: usize,
    /// How the work ended.
    pub conclusion: Conclusion,
    /// The experiment as it was carried out, where seeds were added until an answer is decided.
    pub grown: Option<Box<Experiment>>,
}

impl Outcome {
    /// The summary, if all runs ended well.
    ///
    /// # Errors
    /// The first failure, or why the work ended early.
    pub fn whole(self) -> Result<Summary, Error> {
        match (self.conclusion, self.failures.into_iter().next()) {
            (Conclusion::Full(error), _) | (_, Some((_, error))) => Err(error),
            (Conclusion::Cancelled, None) => Err(Error::Cancelled),
            _ => Ok(self.summary),
        }
    }
}

/// The state in a folder of the runs that are asked for.
#[derive(Default)]
pub(super) struct Kept {
    complete: Vec<RunSummary>,
    /// Complete runs of another build.
    foreign: Vec<(RunId, RunSummary)>,
    /// Why complete runs cannot be used.
    pub(super) damaged: Vec<String>,
}

/// An experiment before its first run.
pub(super) struct Begun {
    /// The folder, if there is one.
    pub folder: Option<ResultFolder>,
    /// The runs to be made.
    pub runs: Vec<RunId>,
    /// Those that are there.
    pub kept: Kept,
}

/// Runs that were carried out, before they are summed up.
pub(super) struct Carried {
    folder: Option<ResultFolder>,
    /// Complete ones, earlier ones among them.
    pub complete: Vec<RunSummary>,
    failures: Vec<(RunId, Error)>,
    full: Option<Error>,
    is_cancelled: bool,
    total: usize,
}

impl Carried {
    /// Whether all runs ended well.
    pub fn is_whole(&self) -> bool {
        self.failures.is_empty() && self.full.is_none() && !self.is_cancelled
    }
}

impl Experiment {
    /// Carries out the runs that the options ask for. A run that fails or panics does not stop the others.
    ///
    /// # Errors
    /// Whatever is found before the first run: a fault of the scenario, its data or a world, or a folder that cannot
    /// be used; and a folder that cannot be read back. How runs end, and a full disk, is part of the outcome.
    pub fn run_with(&self, options: &RunOptions<'_>, threads: &Threads) -> Result<Outcome, Error> {
        match &self.until {
            Some(plan) => self.run_until_decided(plan, options, threads),
            None => self.end(self.carry_out(options, threads, &DataCache::default(), Vec::new())?, options),
        }
    }

    /// Carries out the runs that the options ask for, but for those that are known; the folder stays open.
    ///
    /// # Errors
    /// As [`Self::run_with`].
    pub(super) fn carry_out(
        &self,
        options: &RunOptions<'_>,
        threads: &Threads,
        cache: &DataCache,
        known: Vec<RunSummary>,
    ) -> Result<Carried, Error> {
        let progress = options.progress;
        let Begun { folder, mut runs, kept } = self.begin(options, cache)?;
        let Kept { mut complete, foreign, damaged: mut repeated } = kept;
        let names: BTreeSet<String> = known.iter().map(|run| self.name_of(run)).collect();
        runs.retain(|run| !names.contains(&run.name));
        complete.extend(known);
        if let Some(folder) = &folder {
            let looked = self.take_over(folder, foreign, threads, cache)?;
            runs.extend(taken_over(looked, &mut complete, &mut repeated, options));
        }
        progress.runs_repeated(&repeated);
        if !runs.is_empty() {
            self.warning_of_cpu().iter().for_each(|warning| progress.warned(warning));
        }
        progress.runs_planned(&runs);
        progress.runs_begin(runs.len());
        let outputs = folder.as_ref().map(|folder| Outputs {
            folder,
            files: &options.files,
            models: options.models,
            memory: options.memory,
        });
        let results = execute(self, &runs, outputs, threads, cache, progress);
        progress.runs_ended();

        let total = complete.len() + runs.len();
        let (mut is_cancelled, mut full, mut failures) = (false, None, Vec::new());
        for (run, result) in runs.into_iter().zip(results) {
            match result {
                Ok(summary) => complete.push(summary),
                Err(Error::Cancelled) => is_cancelled = true,
                // A full disk is full for every run: once is enough.
                Err(error) if error.is_of_output() => {
                    full.get_or_insert(error);
                }
                Err(error) if Failure::of(&error).is_some() => {
                    progress.run_failed(&run, &error);
                    failures.push((run, error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Carried { folder, complete, failures, full, is_cancelled, total })
    }

    /// Sums up what was carried out, and writes it into the folder if there is one.
    ///
    /// # Errors
    /// If the folder cannot be read back.
    pub(super) fn end(&self, carried: Carried, options: &RunOptions<'_>) -> Result<Outcome, Error> {
        let Carried { folder, complete, failures, full, is_cancelled, total } = carried;
        let reason = |(run, error): &(RunId, Error)| Some((run.name.clone(), Failure::of(error)?.error));
        let failed = failures.iter().filter_map(reason).collect();
        let count = complete.len();
        let (summary, conclusion) = match (full, is_cancelled) {
            (Some(error), _) => (self.summarise(complete, &failed), Conclusion::Full(error)),
            (None, true) => (self.summarise(complete, &failed), Conclusion::Cancelled),
            (None, false) => self.conclude(folder, complete, &failed, options)?,
        };
        Ok(Outcome { summary, failures, complete: count, total, conclusion, grown: None })
    }

    /// Looks which runs are to be made, checks their worlds, and opens the folder if there is one.
    ///
    /// # Errors
    /// Whatever is found before the first run.
    pub(super) fn begin(&self, options: &RunOptions<'_>, cache: &DataCache) -> Result<Begun, Error> {
        let progress = options.progress;
        let mut runs = options.shard.of(self);
        if runs.is_empty() {
            let (shard, pairs) = (options.shard, self.points.len() * self.seeds.len());
            progress.warned(&format!(
                "shard {shard} has no run: the experiment has {pairs} pairs of point and seed, whose policies stay together"
            ));
        }
        let kept = self.earlier(options, &mut runs)?;
        // Everything that can be wrong with the input is found before the first file is written.
        self.check_worlds(&runs, cache)?.iter().for_each(|warning| progress.warned(warning));
        let open = |path| ResultFolder::open(path, self, options.earlier, options.shard);
        let folder = options.folder.map(open).transpose()?.map(|folder| folder.saving(options.interval));
        Ok(Begun { folder, runs, kept })
    }

    /// Carries out all runs and sums them up; nothing is written.
    ///
    /// # Errors
    /// A fault of a world, or the first failed run.
    pub fn run(&self, threads: &Threads) -> Result<Summary, Error> {
        self.run_with(&RunOptions::default(), threads)?.whole()
    }

    /// Looks for runs in the folder of an experiment to continue; complete ones are taken out of `runs`.
    ///
    /// # Errors
    /// If runs are of another build, and the user has not chosen how to treat them.
    pub(super) fn earlier(&self, options: &RunOptions<'_>, runs: &mut Vec<RunId>) -> Result<Kept, Error> {
        let mut earlier = Kept::default();
        let (Some(folder), Earlier::Resume | Earlier::Join) = (options.folder, options.earlier) else {
            return Ok(earlier);
        };
        let (wanted, mut others) = (wanted(options), Vec::new());
        let kept = self.kept(folder, &wanted);
        let mut of_others = |run: &RunId, build: String| others.push((run.name.clone(), build));
        let known: BTreeSet<String> = runs.iter().map(|run| run.name.clone()).collect();
        // The summary will be of the runs of all shards.
        for run in self.runs().iter().filter(|run| !known.contains(&run.name)) {
            if let Found::OfAnotherBuild(_, build) = kept.find(run) {
                of_others(run, build);
            }
        }
        let resumes = options.earlier == Earlier::Resume;
        for (pack, why) in kept.files.damaged() {
            let what = format!("{pack} cannot be read to its end: {why}; the runs that it lacks are made again");
            options.progress.warned(&what);
        }
        runs.retain(|run| match kept.find(run) {
            Found::Complete(summary) if resumes => {
                earlier.complete.push(*summary);
                false
            }
            Found::OfAnotherBuild(summary, build) => {
                of_others(run, build);
                earlier.foreign.push((run.clone(), *summary));
                false
            }
            Found::Damaged(why) if resumes => {
                earlier.damaged.push(format!("run {}: {why}", run.name));
                true
            }
            Found::Complete(_) | Found::Damaged(_) | Found::Missing => true,
        });
        match others.first() {
            Some((_, other)) if !options.accepts_checked => {
                let names: Vec<&str> = others.iter().take(SHOWN).map(|(name, _)| name.as_str()).collect();
                let more =
                    if others.len() > SHOWN { format!(" and {} more", others.len() - SHOWN) } else { String::new() };
                let other = if other.is_empty() { "unknown" } else { other };
                Err(Error::Usage(format!(
                    "{} holds runs of another build of FedGenie ({other}; this is {}): {}{more}; --accept-checked keeps \
                     those whose first rounds replay to the same digests, --overwrite runs all again",
                    folder.display(),
                    build(),
                    names.join(", ")
                )))
            }
            _ => Ok(earlier),
        }
    }

    /// Ends the work in the folder: the summary of all its runs, or while other processes are at work there of this
    /// process's.
    fn conclude(
        &self,
        folder: Option<ResultFolder>,
        mut complete: Vec<RunSummary>,
        failed: &BTreeMap<String, String>,
        options: &RunOptions<'_>,
    ) -> Result<(Summary, Conclusion), Error> {
        let Some(folder) = folder else { return Ok((self.summarise(complete, failed), Conclusion::InMemory)) };
        let path = folder.path().to_owned();
        options.progress.writing_begins(&path);
        let draw = |summary: &Summary, into: &std::path::Path| match options.draw {
            Some(draw) => draw(into, &path, self, summary),
            None => Ok(()),
        };
        Ok(match folder.finish(self, &mut complete, draw) {
            Ok(Some(summary)) => (summary, Conclusion::Written),
            Ok(None) => {
                let mut summary = self.summarise(complete, failed);
                // Others are at work on the rest.
                summary.incomplete.retain(|run| run.status == Status::Failed);
                (summary, Conclusion::LeftToOthers)
            }
            Err(error) if error.is_of_output() => (self.summarise(complete, failed), Conclusion::Full(error)),
            Err(error) => return Err(error),
        })
    }
}

/// Files that every run has to have beside its records.
fn wanted(options: &RunOptions<'_>) -> Vec<&'static str> {
    let files = [
        (options.files.events, EVENTS_FILE),
        (options.files.timeline.is_some(), TIMELINE_FILE),
        (options.models, MODEL_FILE),
    ];
    files.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, name)| name).collect()
}

/// Keeps runs of another build whose first rounds are the same. Returns the others, and notes why they are made anew.
fn taken_over(
    looked: Vec<LookedAt>,
    complete: &mut Vec<RunSummary>,
    repeated: &mut Vec<String>,
    options: &RunOptions<'_>,
) -> Vec<RunId> {
    let (mut taken, mut again) = (0, Vec::new());
    for LookedAt { run, found } in looked {
        match found {
            Ok((_, summary)) => {
                taken += 1;
                complete.push(*summary);
            }
            Err(what) => {
                repeated.push(format!("run {}: it is of another build, and differs: {what}", run.name));
                again.push(run);
            }
        }
    }
    if taken > 0 {
        options.progress.runs_taken_over(taken);
    }
    again
}
