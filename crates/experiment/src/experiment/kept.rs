//! Which runs of a result folder are whole, so that `--resume` need not repeat them.

use super::artefacts::{MARKS_FILE, MODEL_FILE, Manifest, ROUNDS_FILE, RUN_FILE, read_manifest};
use super::run_file::{FileDigest, RunFile};
use super::shelf::Shelf;
use super::{Experiment, RunId, RunSummary};
use std::io;
use std::path::Path;

/// The state of a run in a folder.
#[derive(Debug)]
pub enum Found {
    /// All its files, as they were written.
    Complete(Box<RunSummary>),
    /// The same, by the named other build of the program.
    OfAnotherBuild(Box<RunSummary>, String),
    /// It was not completed.
    Missing,
    /// It was completed and changed afterwards; the reason.
    Damaged(String),
}

/// Looks for complete runs of an experiment in a folder.
#[derive(Debug)]
pub struct KeptRuns<'a> {
    experiment: &'a Experiment,
    /// The files of the folder.
    pub(super) files: Shelf,
    wanted: &'a [&'a str],
    /// Of a folder that was finished.
    manifest: Option<Manifest>,
}

impl Experiment {
    /// The runs of this experiment in a folder; `wanted` are files that each must have beside its records, if it can
    /// have them.
    pub fn kept<'a>(&'a self, folder: &'a Path, wanted: &'a [&'a str]) -> KeptRuns<'a> {
        KeptRuns { experiment: self, files: Shelf::of(folder), wanted, manifest: read_manifest(folder).ok() }
    }
}

impl KeptRuns<'_> {
    /// Looks at the files of a run: that `run.json` is of this run, and that all files have the length and the digest
    /// that they were written with.
    pub fn find(&self, run: &RunId) -> Found {
        let name = Shelf::name(&run.name, RUN_FILE);
        if !self.files.is_there(&name) {
            return Found::Missing;
        }
        let Some(file) = RunFile::read(&self.files, &run.name) else {
            return Found::Damaged(format!("{RUN_FILE} cannot be read"));
        };
        let Some(summary) = file.summary() else {
            return Found::Damaged(format!("{RUN_FILE} is no summary of a run"));
        };
        match self.damage(run, &name, &file, &summary) {
            Some(damage) => Found::Damaged(damage),
            None if !file.is_of_this_build() => Found::OfAnotherBuild(Box::new(summary), file.build().to_owned()),
            None => Found::Complete(Box::new(summary)),
        }
    }

    /// The summary of a run of this build whose `run.json` is unchanged, in any state of its other files.
    pub(super) fn summary(&self, run: &RunId) -> Option<RunSummary> {
        let file = RunFile::read(&self.files, &run.name).filter(|file| file.is_whole && file.is_of_this_build())?;
        let label = &self.experiment.points[run.point].1.arms[run.arm].label;
        file.summary().filter(|summary| is_of_another(summary, label, run).is_none())
    }

    fn damage(&self, run: &RunId, name: &str, file: &RunFile, summary: &RunSummary) -> Option<String> {
        let label = &self.experiment.points[run.point].1.arms[run.arm].label;
        if let Some(damage) = is_of_another(summary, label, run) {
            return Some(damage);
        }
        let files = file.files().unwrap_or_default();
        let has = |wanted: &&&str| files.contains_key(**wanted);
        // A run without training has no model.
        let trains = self.experiment.points[run.point].1.plan_of(run.arm).task.about().trains;
        let is_made = |wanted: &&&str| trains || **wanted != MODEL_FILE;
        match self.wanted.iter().filter(is_made).find(|wanted| !has(wanted)) {
            Some(wanted) => Some(format!("it was made without {wanted}")),
            None => files_differ(&self.files, &run.name, file).or_else(|| self.is_not_as_listed(name)),
        }
    }

    fn is_not_as_listed(&self, name: &str) -> Option<String> {
        let listed = self.manifest.as_ref()?.files.get(name)?;
        let is_same = self.files.digest(name).is_ok_and(|(_, found)| found == *listed);
        (!is_same).then(|| format!("{RUN_FILE} is not the file that the manifest lists"))
    }
}

/// The difference if a `run.json` is of another policy, seed or point than its folder.
fn is_of_another(summary: &RunSummary, label: &str, run: &RunId) -> Option<String> {
    let is_same = summary.arm == label && summary.seed == run.seed && summary.point == run.point;
    let RunSummary { arm, seed, point, .. } = summary;
    (!is_same).then(|| format!("{RUN_FILE} is of the policy {arm:?}, seed {seed}, point {point}"))
}

/// The first file of a run that differs from its `run.json`.
pub(super) fn files_differ(shelf: &Shelf, run: &str, file: &RunFile) -> Option<String> {
    if !file.is_whole {
        return Some(format!("{RUN_FILE} is not the file that was written"));
    }
    let Ok(files) = file.files() else {
        return Some(format!("{RUN_FILE} lists no digests of files"));
    };
    if let Some(name) = [ROUNDS_FILE, MARKS_FILE].iter().find(|&&name| !files.contains_key(name)) {
        return Some(format!("{RUN_FILE} does not list {name}"));
    }
    files.into_iter().find_map(|(name, FileDigest { bytes, blake3 })| {
        // The name of a file beside it, and no path.
        let beside = if name.contains(['/', '\\']) { "../".to_owned() } else { Shelf::name(run, &name) };
        match shelf.digest(&beside) {
            Ok((found, _)) if found != bytes => Some(format!("{name} has {found} bytes, and had {bytes}")),
            Ok((_, found)) if found != blake3 => Some(format!("{name} is not the file that was written")),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(format!("{name} is missing")),
            Err(error) => Some(format!("{name}: {error}")),
        }
    })
}
