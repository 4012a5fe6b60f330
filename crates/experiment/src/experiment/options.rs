//! The options of carrying out an experiment, which the command and programs share.

use super::execution::Silent;
use super::recorded::Memory;
use super::{Earlier, Experiment, Interval, Progress, Shard, Summary};
use crate::error::Error;
use fedgenie_simulator::recorder::RunFileOptions;
use std::path::Path;

/// Writes page and pictures: into the first folder, of the results in the second. `fedgenie_report::write_with_records`
/// is one.
pub type Draw<'a> = dyn Fn(&Path, &Path, &Experiment, &Summary) -> Result<(), Error> + 'a;

/// What is carried out, and what is written. The default: all runs, nothing written, no messages.
#[derive(Clone)]
pub struct RunOptions<'a> {
    /// The folder of results; without one nothing is written.
    pub folder: Option<&'a Path>,
    /// Treatment of an experiment that the folder already holds.
    pub earlier: Earlier,
    /// Whether complete runs of another build are kept if their first rounds replay to the same digests. Otherwise a
    /// folder with such runs is refused where it is continued.
    pub accepts_checked: bool,
    /// The part of the runs that is carried out.
    pub shard: Shard,
    /// How often runs with a folder are saved on their way.
    pub interval: Interval,
    /// Files of a run beside its rounds.
    pub files: RunFileOptions,
    /// Whether final models are written.
    pub models: bool,
    /// Room for rounds in memory, beside their files: see [`RunSummary::recorded`](super::RunSummary::recorded).
    pub memory: Option<&'a Memory>,
    /// Messages on the way.
    pub progress: &'a dyn Progress,
    /// Page and pictures, if there are to be any. Called once all runs of the folder have ended.
    pub draw: Option<&'a Draw<'a>>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self {
            folder: None,
            earlier: Earlier::Refuse,
            accepts_checked: false,
            shard: Shard::WHOLE,
            interval: Interval::default(),
            files: RunFileOptions::default(),
            models: false,
            memory: None,
            progress: &Silent,
            draw: None,
        }
    }
}

impl<'a> RunOptions<'a> {
    /// The default, with results in a new folder.
    pub fn into(folder: &'a Path) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }
}
