//! Deletes an experiment: the files that FedGenie wrote, by name, and no others.

use super::super::artefacts::{
    FIGURES_FOLDER, MANIFEST_FILE, Manifest, Marker, PAGE_FILE, RUNS_FOLDER, STATE_FOLDER, SUMMARY_FILE, read_manifest,
};
use super::super::files::write_file;
use super::{Lock, RUN_FILES, remove_file};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

/// Names of files that may be there or not, one a line.
const WRITTEN_FILE: &str = "written";

/// Deletes the experiment in a folder. A folder that holds files of somebody else stays, with them. The caller holds
/// the lock.
pub(super) fn erase(folder: &Path) -> Result<(), Error> {
    let manifest = read_manifest(folder).ok();
    let mut runs: BTreeSet<String> = Marker::read(folder).map(|marker| marker.runs().collect()).unwrap_or_default();
    runs.extend(manifest.iter().flat_map(|manifest| manifest.runs.iter().chain(&manifest.failed).cloned()));
    let all_runs = folder.join(RUNS_FOLDER);
    for run in runs.iter().filter(|name| is_below(name)) {
        let run = all_runs.join(run);
        RUN_FILES.into_iter().try_for_each(|name| remove(&run.join(name)))?;
        remove_if_empty(&run);
    }
    remove_if_empty(&all_runs);
    let mut files = written(folder);
    files.extend(manifest.iter().flat_map(|manifest: &Manifest| manifest.files.keys().cloned()));
    files.iter().filter(|name| is_below(name)).try_for_each(|name| remove(&folder.join(name)))?;
    remove_if_empty(&folder.join(FIGURES_FOLDER));
    // The lists go last: whoever is interrupted before can begin again.
    [PAGE_FILE, SUMMARY_FILE, MANIFEST_FILE].into_iter().try_for_each(|name| remove(&folder.join(name)))?;
    remove(&folder.join(STATE_FOLDER).join(WRITTEN_FILE))
}

/// Whether a listed name leads to a file below the folder.
fn is_below(name: &str) -> bool {
    Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn remove(path: &Path) -> Result<(), Error> {
    remove_file(path).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// What somebody else put into a folder stays, and the folder with it.
fn remove_if_empty(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

/// Names of files that were noted.
pub(super) fn written(folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join(STATE_FOLDER).join(WRITTEN_FILE)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
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
    let state = folder.join(STATE_FOLDER);
    fs::create_dir_all(&state).map_err(|source| Error::Write { path: state, source })?;
    let _lock = Lock::of(folder)?;
    note(folder, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_does_not_lead_out_of_its_folder() {
        let found = ["regret.svg", "figures/a.csv", "../notes.txt", "/etc/passwd", "runs/../../x"].map(is_below);
        assert_eq!(found, [true, true, false, false, false]);
    }
}
