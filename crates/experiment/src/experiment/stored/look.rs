//! The state of one run in a folder.

use super::super::RunSummary;
use super::super::artefacts::{
    EVENTS_FILE, FAILURE_FILE, Failure, MANIFEST_FILE, Manifest, ROUNDS_FILE, RUN_FILE, hash, listed,
};
use super::super::run_file::{FileDigest, RunFile};
use super::super::shelf::Shelf;
use super::{Changed, RunState, Status};
use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Whether only the summary of a run is left.
pub(super) fn is_put_aside(files: &Shelf, run: &str) -> bool {
    files.count(run) == 1
}

/// A folder as its manifest describes it.
pub(super) struct Listed<'a> {
    shelf: &'a Shelf,
    /// Digests by name.
    files: &'a BTreeMap<String, String>,
    runs: BTreeSet<&'a str>,
    failed: BTreeSet<&'a str>,
    uses_rounds: bool,
}

fn file_of(state: &RunState, name: &str) -> String {
    Shelf::name(&state.name, name)
}

impl<'a> Listed<'a> {
    pub fn of(shelf: &'a Shelf, manifest: &'a Manifest, uses_rounds: bool) -> Self {
        let names = |names: &'a [String]| names.iter().map(String::as_str).collect();
        let (runs, failed) = (names(&manifest.runs), names(&manifest.failed));
        Self { shelf, files: &manifest.files, runs, failed, uses_rounds }
    }

    fn unread(&self, name: &str) -> impl FnOnce(io::Error) -> Error {
        let path = self.shelf.folder().join(name);
        |source| Error::Read { path, source }
    }

    /// The change of a file that the manifest lists, if it exists and differs.
    ///
    /// # Errors
    /// If it exists and cannot be read.
    pub fn altered(&self, name: &str) -> Result<Option<Changed>, Error> {
        match self.shelf.digest(name) {
            Ok((_, found)) if self.files.get(name) == Some(&found) => Ok(None),
            Ok(_) => Ok(Some(Changed::altered(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unread(name)(error)),
        }
    }

    /// The state of a run, and its summary.
    ///
    /// # Errors
    /// If a file of it exists and cannot be read.
    pub fn look(&self, mut state: RunState) -> Result<(RunState, Option<RunSummary>), Error> {
        if self.failed.contains(&*state.name) {
            self.note_failure(&mut state)?;
            return Ok((state, None));
        }
        let name = file_of(&state, RUN_FILE);
        if !self.runs.contains(&*state.name) {
            let is_there = self.shelf.is_there(&name);
            state.reason = is_there.then(|| format!("{RUN_FILE} is there, and {MANIFEST_FILE} does not list the run"));
            return Ok((state, None));
        }
        let text = match self.shelf.read(&name) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((state, None)),
            Err(error) => return Err(self.unread(&name)(error)),
        };
        let digest = hash(&text);
        let file = String::from_utf8(text).ok().and_then(RunFile::of);
        // Its own digest counts too: the manifest may have been written after a change.
        let is_whole = file.as_ref().is_some_and(|file| file.is_whole);
        if self.files.get(&name) != Some(&digest) || !is_whole {
            state.changed.push(Changed::altered(&name));
        }
        let (summary, reason) = match file.as_ref().map(RunFile::summary) {
            None => (None, Some(format!("{RUN_FILE} cannot be read"))),
            Some(None) => (None, Some(format!("{RUN_FILE} is no summary of a run"))),
            Some(Some(run)) => match is_of_another(&run, &state) {
                Some(whose) => (None, Some(whose)),
                None => (Some(run), None),
            },
        };
        state.reason = reason;
        if let (Some(_), Some(file)) = (&summary, &file) {
            self.look_beside(file, &mut state)?;
        }
        Ok((state, summary))
    }

    /// The reason of a run that is listed as failed.
    fn note_failure(&self, state: &mut RunState) -> Result<(), Error> {
        let name = file_of(state, FAILURE_FILE);
        state.status = Status::Failed;
        state.reason = Failure::read(self.shelf, &state.name).map(|failure| failure.error);
        match self.altered(&name)? {
            Some(changed) => state.changed.push(changed),
            None if !self.shelf.is_there(&name) => state.changed.push(Changed::new(&name, "is missing")),
            None => {}
        }
        Ok(())
    }

    /// Looks at the files of a run beside its summary.
    fn look_beside(&self, file: &RunFile, state: &mut RunState) -> Result<(), Error> {
        let written = file.files().unwrap_or_default();
        let is_other = |name: &&str| ![RUN_FILE, FAILURE_FILE].contains(name);
        let names = listed().filter(is_other).map(|name| (name, file_of(state, name)));
        let names: Vec<(&str, String)> =
            names.filter(|(name, path)| written.contains_key(*name) || self.files.contains_key(path)).collect();
        if !names.iter().any(|(_, path)| self.shelf.is_there(path)) {
            state.status = Status::SummaryOnly;
            return Ok(());
        }
        state.status = Status::Complete;
        for (name, path) in names {
            let how = self.how_changed(
                &path,
                written.get(name),
                self.uses_rounds && [ROUNDS_FILE, EVENTS_FILE].contains(&name),
            )?;
            state.changed.extend(how.map(|how| Changed::new(&path, how)));
        }
        Ok(())
    }

    /// The sign that a file of a run was changed.
    fn how_changed(&self, path: &str, written: Option<&FileDigest>, is_read: bool) -> Result<Option<String>, Error> {
        let bytes = match self.shelf.length(path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some("is missing".to_owned())),
            Err(error) if is_read => return Err(self.unread(path)(error)),
            Err(error) => return Ok(Some(format!("cannot be read: {error}"))),
        };
        if let Some(had) = written.map(|written| written.bytes).filter(|&had| had != bytes) {
            return Ok(Some(format!("has {bytes} bytes, and had {had}")));
        }
        if !is_read {
            return Ok(None);
        }
        let digest = self.shelf.digest(path).map_err(self.unread(path))?.1;
        let is_written = written.is_none_or(|had| had.blake3 == digest) && self.files.get(path) == Some(&digest);
        Ok((!is_written).then(|| "is not the file that was written".to_owned()))
    }
}

/// The difference if a `run.json` is of another run than its folder.
fn is_of_another(run: &RunSummary, state: &RunState) -> Option<String> {
    let RunSummary { arm, seed, point, .. } = run;
    let is_same = *arm == state.arm && *seed == state.seed && *point == state.point;
    (!is_same).then(|| format!("{RUN_FILE} is of the policy {arm:?}, seed {seed}, point {point}"))
}
