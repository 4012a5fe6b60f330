//! The end of a process's work in a result folder: page, pictures, summary and manifest, of all runs that are there.

use super::super::artefacts::{
    FAILURE_FILE, Failure, MANIFEST_FILE, Manifest, PAGE_FILE, RUN_FILE, RUNS_FOLDER, SCENARIO_FILE, STATE_FOLDER,
    SUMMARY_FILE, listed,
};
use super::super::files::{sync_folder, write_json};
use super::super::kept::Found;
use super::super::run_file::RunFile;
use super::super::shelf::Shelf;
use super::super::summary::Common;
use super::super::{Experiment, RunSummary, Summary, below, build};
use super::processes::{Lock, forget_left, forget_parts, others};
use super::{ResultFolder, erase, remove_file};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::{fs, mem};

/// Whether a name is that of a picture beside the summary.
pub(crate) fn is_picture(name: &str) -> bool {
    name.ends_with(".svg") && !name.contains('/')
}

impl ResultFolder {
    /// Ends the work of this process. If no other process is at work in the folder, writes summary and manifest and the
    /// output of `draw` (page and pictures, into the folder that it is given), and returns the summary of all complete
    /// runs.
    ///
    /// `known` are runs that need not be read again; they are taken for the summary, and left where none is written.
    /// Runs that are damaged, or of another build, are left out. A folder
    /// without a manifest is unfinished: the manifest is deleted first. It is written when the summary is, and once
    /// more with the pictures, so that a process that ends meanwhile leaves a folder from which a report can be made.
    ///
    /// # Errors
    /// If a file cannot be read back or written.
    pub fn finish(
        self,
        experiment: &Experiment,
        known: &mut Vec<RunSummary>,
        draw: impl FnOnce(&Summary, &Path) -> Result<(), Error>,
    ) -> Result<Option<Summary>, Error> {
        let lock = Lock::of(&self.path)?;
        let summary = match others(&self.path, Some(&self.process.path))?.is_empty() {
            true => self.write_all(experiment, known, draw).map(Some),
            false => Ok(None),
        };
        // Before others get the lock: no process may leave the summary to one that has ended its work.
        drop(self);
        drop(lock);
        summary
    }

    fn write_all(
        &self,
        experiment: &Experiment,
        known: &mut Vec<RunSummary>,
        draw: impl FnOnce(&Summary, &Path) -> Result<(), Error>,
    ) -> Result<Summary, Error> {
        self.pack_all(experiment).map_err(|source| Error::Write { path: self.path.join(RUNS_FOLDER), source })?;
        let kept = experiment.kept(&self.path, &[]);
        let mut taken: Vec<Option<RunSummary>> = mem::take(known).into_iter().map(Some).collect();
        let names = taken.iter().flatten().map(|run| experiment.name_of(run));
        let places: BTreeMap<String, usize> = names.zip(0..).collect();
        let mut common = Common::default();
        let found = experiment.runs().into_iter().filter_map(|run| match places.get(&run.name) {
            Some(&place) => taken[place].take(),
            None => match kept.find(&run) {
                Found::Complete(mut run) => {
                    common.share(&mut run);
                    Some(*run)
                }
                Found::OfAnotherBuild(..) | Found::Missing | Found::Damaged(_) => None,
            },
        });
        let summary = experiment.summarise(found.collect(), &Failure::all(&kept.files, experiment));
        match self.write_files(experiment, &summary, &kept.files, draw) {
            Ok(()) => Ok(summary),
            Err(error) => {
                *known = Arc::unwrap_or_clone(summary.runs);
                Err(error)
            }
        }
    }

    /// Writes summary, manifest, page and pictures.
    fn write_files(
        &self,
        experiment: &Experiment,
        summary: &Summary,
        shelf: &Shelf,
        draw: impl FnOnce(&Summary, &Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let manifest_file = self.path.join(MANIFEST_FILE);
        let unmade = |path: &Path| remove_file(path).map_err(|source| Error::Write { path: path.to_owned(), source });
        unmade(&manifest_file)?;
        // Pictures of an earlier summary.
        erase::written(&self.path).iter().try_for_each(|name| match name == PAGE_FILE || is_picture(name) {
            true => unmade(&self.path.join(name)),
            false => Ok(()),
        })?;
        self.put(SUMMARY_FILE, |file| write_json(file, summary))?;
        let mut manifest = self.manifest(experiment, summary, shelf)?;
        self.put(MANIFEST_FILE, |file| write_json(file, &manifest))?;
        // From here on a report can be made of the folder, even if this process ends.
        let pictures = self.pictures(summary, draw)?;
        self.list(&mut manifest, shelf, pictures.into_iter().filter(|name| is_picture(name)))?;
        self.put(MANIFEST_FILE, |file| write_json(file, &manifest))?;
        let state = self.path.join(STATE_FOLDER);
        forget_parts(&state).map_err(|source| Error::Write { path: state, source })?;
        if manifest.runs.len() + manifest.failed.len() == experiment.runs().len() {
            // Unfinished files of runs that were made elsewhere; no process continues them.
            forget_left(&self.path).map_err(|source| Error::Write { path: self.path.clone(), source })?;
        }
        Ok(())
    }

    /// Has page and pictures written, and gives them their names in the folder. Returns the names.
    fn pictures(
        &self,
        summary: &Summary,
        draw: impl FnOnce(&Summary, &Path) -> Result<(), Error>,
    ) -> Result<BTreeSet<String>, Error> {
        let unfinished = self.process.path.join("pictures");
        let failed = |source| Error::Write { path: unfinished.clone(), source };
        fs::create_dir_all(&unfinished).map_err(failed)?;
        draw(summary, &unfinished)?;
        let entries = fs::read_dir(&unfinished).map_err(failed)?;
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let names = entries.map(|entry| entry.map(name)).collect::<Result<BTreeSet<_>, _>>().map_err(failed)?;
        let earlier = erase::written(&self.path);
        let is_ours = |name: &String| name == PAGE_FILE || earlier.contains(name) || !below::is_there(&self.path, name);
        if let Some(name) = names.iter().find(|name| !is_ours(name)) {
            return Err(Error::Usage(format!(
                "{} is there, and FedGenie did not write it; move it away, and --resume writes the summary",
                self.path.join(name).display()
            )));
        }
        erase::note(&self.path, names.iter().cloned())?;
        names.iter().try_for_each(|name| fs::rename(unfinished.join(name), self.path.join(name))).map_err(failed)?;
        sync_folder(&self.path).map_err(failed)?;
        Ok(names)
    }

    /// The manifest of all but pictures.
    fn manifest(&self, experiment: &Experiment, summary: &Summary, shelf: &Shelf) -> Result<Manifest, Error> {
        let mut manifest = Manifest::of(experiment, summary)?;
        let mut names = [SCENARIO_FILE, SUMMARY_FILE].map(str::to_owned).to_vec();
        let complete: BTreeSet<String> = summary.runs.iter().map(|run| experiment.name_of(run)).collect();
        for run in experiment.runs() {
            let of_run = |name: &str| Shelf::name(&run.name, name);
            let is_there = |name: &str| shelf.is_there(&of_run(name));
            match (complete.contains(&run.name), is_there(FAILURE_FILE) && !is_there(RUN_FILE)) {
                (true, _) => {
                    let file = RunFile::read(shelf, &run.name);
                    let other = file.as_ref().map(RunFile::build).filter(|made_by| *made_by != build());
                    manifest.other_builds.extend(other.map(|other| (run.name.clone(), other.to_owned())));
                    manifest.runs.push(run.name.clone());
                }
                (false, true) => manifest.failed.push(run.name.clone()),
                (false, false) => continue,
            }
            names.extend(listed().filter(|name| is_there(name)).map(of_run));
        }
        self.list(&mut manifest, shelf, names.into_iter())?;
        Ok(manifest)
    }

    /// Adds files to a manifest.
    fn list(&self, manifest: &mut Manifest, shelf: &Shelf, names: impl Iterator<Item = String>) -> Result<(), Error> {
        for name in names {
            let failed = |source| Error::Read { path: self.path.join(&name), source };
            let (_, digest) = shelf.digest(&name).map_err(failed)?;
            manifest.files.insert(name, digest);
        }
        Ok(())
    }
}
