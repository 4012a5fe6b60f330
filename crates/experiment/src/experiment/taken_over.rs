//! Runs of another build that are kept, because their first rounds replay to the same digests.
//!
//! # Definition
//! Of a run of `n` rounds the first `n/50` are replayed, at least one, and compared with its files as `verify` does: at
//! most 2 % of a run of 50 rounds or more. That is no proof: a difference in later rounds goes unseen. So runs are
//! taken over on request only, and the run's `run.json` records the build that made it and the build that replayed it.

use super::artefacts::RUNS_FOLDER;
use super::execution::guarded;
use super::run_file::RunFile;
use super::shelf::Shelf;
use super::verify::first_rounds;
use super::{Experiment, ResultFolder, RunId, RunSummary, Threads};
use crate::error::Error;
use fedgenie_simulator::task::DataCache;
use std::collections::BTreeMap;

/// Rounds of a run per replayed round.
pub const ROUNDS_PER_LOOK: u32 = 50;

/// A run of another build whose first rounds were replayed.
#[derive(Clone, Debug)]
pub struct LookedAt {
    /// The run.
    pub run: RunId,
    /// The number of equal rounds, with the run's summary; or the first difference.
    pub found: Result<(u32, Box<RunSummary>), String>,
}

impl Experiment {
    /// Replays the first rounds of complete runs of another build in a folder. Runs with equal rounds belong to this
    /// build from here on, which their `run.json` records. Results are in no particular order.
    ///
    /// # Errors
    /// If a world cannot be built, or a `run.json` cannot be written. A difference is a result, not an error.
    pub fn take_over(
        &self,
        folder: &ResultFolder,
        runs: Vec<(RunId, RunSummary)>,
        threads: &Threads,
        cache: &DataCache,
    ) -> Result<Vec<LookedAt>, Error> {
        let mut places: BTreeMap<_, Vec<(RunId, RunSummary)>> = BTreeMap::new();
        for (run, summary) in runs {
            places.entry(self.place_of(&run)).or_default().push((run, summary));
        }
        let (mut looked, files) = (Vec::new(), Shelf::of(folder.path()));
        for runs in places.into_values() {
            let world = self.world_of(&runs[0].0, cache)?;
            for (run, summary) in runs {
                if threads.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                let rounds = (summary.rounds / ROUNDS_PER_LOOK).max(1);
                let same = guarded(&run, || first_rounds(self, &files, (&run, &world), rounds, threads));
                let found = match same {
                    Ok(Ok(())) => Ok((rounds, Box::new(summary))),
                    Ok(Err(what)) => Err(what),
                    Err(error @ (Error::Run { .. } | Error::Panicked { .. })) => Err(error.to_string()),
                    Err(error) => return Err(error),
                };
                if found.is_ok() {
                    let file = RunFile::read(&files, &run.name).ok_or_else(|| {
                        Error::Usage(format!("{RUNS_FOLDER}/{} was there, and is no longer", run.name))
                    })?;
                    folder.note_accepted(&files, &run, file, rounds)?;
                }
                looked.push(LookedAt { run, found });
            }
        }
        Ok(looked)
    }
}
