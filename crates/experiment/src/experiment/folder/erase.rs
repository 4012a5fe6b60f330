//! Deletes an experiment: the files that FedGenie wrote, by name, and no others.

use super::super::artefacts::{
    FIGURES_FOLDER, MANIFEST_FILE, Manifest, Marker, PAGE_FILE, RUN_FILES, RUNS_FOLDER, STATE_FOLDER, SUMMARY_FILE,
    read_manifest,
};
use super::super::below::{is_below, own, read_to_string};
use super::super::files::write_file;
use super::super::shelf::kinds;
use super::processes::{Lock, forget_left, state_of};
use super::{is_picture, remove_file};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of files that may be there or not, one a line.
const WRITTEN_FILE: &str = "written";

/// Deletes the experiment in a folder. A folder with foreign files stays, with them. The caller holds the lock.
pub(super) fn erase(folder: &Path) -> Result<(), Error> {
    let manifest = read_manifest(folder).ok();
    let mut runs: BTreeSet<String> = Marker::read(folder).map(|marker| marker.runs().collect()).unwrap_or_default();
    runs.extend(manifest.iter().flat_map(|manifest| manifest.runs.iter().chain(&manifest.failed).cloned()));
    for run in runs.iter().filter(|name| is_below(name)) {
        let run = format!("{RUNS_FOLDER}/{run}");
        RUN_FILES.into_iter().try_for_each(|name| remove(folder, &format!("{run}/{name}")))?;
        remove_if_empty(folder, &run);
    }
    kinds(folder).into_iter().try_for_each(|pack| remove(folder, &pack.path()))?;
    remove_if_empty(folder, RUNS_FOLDER);
    let mut files = written(folder);
    files.extend(manifest.iter().flat_map(|manifest: &Manifest| manifest.files.keys().cloned()));
    // FedGenie writes no other files but those named here, whatever a list says.
    files.iter().filter(|name| is_of_a_report(name)).try_for_each(|name| remove(folder, name))?;
    remove_if_empty(folder, FIGURES_FOLDER);
    // The lists go last, so that an interrupted deletion can begin again.
    [PAGE_FILE, SUMMARY_FILE, MANIFEST_FILE].into_iter().try_for_each(|name| remove(folder, name))?;
    forget_left(folder).map_err(|source| Error::Write { path: folder.join(STATE_FOLDER), source })?;
    remove(folder, &format!("{STATE_FOLDER}/{WRITTEN_FILE}"))
}

/// Whether a name is that of a picture or of the data of one.
fn is_of_a_report(name: &str) -> bool {
    let in_figures = name.strip_prefix(FIGURES_FOLDER).and_then(|name| name.strip_prefix('/'));
    let is_figure = |name: &str| is_picture(name) || name.ends_with(".csv") && !name.contains('/');
    is_picture(name) || in_figures.is_some_and(is_figure)
}

/// Deletes a file that may not exist. A file behind a link, or outside the folder, is foreign and stays.
fn remove(folder: &Path, name: &str) -> Result<(), Error> {
    let Ok(path) = own(folder, name) else { return Ok(()) };
    remove_file(&path).map_err(|source| Error::Write { path, source })
}

/// Foreign files in a folder stay, and the folder with them.
fn remove_if_empty(folder: &Path, name: &str) {
    if let Ok(path) = own(folder, name) {
        let _ = fs::remove_dir(path);
    }
}

/// Names of files that were noted.
pub(crate) fn written(folder: &Path) -> BTreeSet<String> {
    let text = read_to_string(folder, &format!("{STATE_FOLDER}/{WRITTEN_FILE}")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Notes the pictures that a manifest lists: the hidden files may be missing in a copied folder. The caller holds the
/// lock.
pub(super) fn note_listed(folder: &Path) -> Result<(), Error> {
    let Ok(manifest) = read_manifest(folder) else { return Ok(()) };
    let noted = written(folder);
    let mut listed = manifest.files.into_keys().filter(|name| is_picture(name) && !noted.contains(name)).peekable();
    if listed.peek().is_none() { Ok(()) } else { note(folder, listed) }
}

/// Notes names of files below a result folder, so that they are deleted with its experiment. The caller holds the lock.
pub(super) fn note(folder: &Path, names: impl IntoIterator<Item = String>) -> Result<(), Error> {
    let mut all = written(folder);
    all.extend(names);
    let text: String = all.iter().map(|name| format!("{name}\n")).collect();
    write_file(&folder.join(STATE_FOLDER).join(WRITTEN_FILE), text.as_bytes())
}

/// Notes names of files that were written below a result folder, so that they are deleted with its experiment.
///
/// # Errors
/// If the list cannot be written.
pub fn note_written(folder: &Path, names: impl IntoIterator<Item = String>) -> Result<(), Error> {
    state_of(folder)?;
    let _lock = Lock::of(folder)?;
    note(folder, names)
}
