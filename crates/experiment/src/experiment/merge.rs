//! Puts result folders of parts of one experiment together: the folder that one process would have written.
//!
//! ```text
//! folders ─▶ one experiment? ─▶ every run: whole, of this build, the same in all folders that have it ─▶ folder
//! ```
//!
//! Everything is looked at before the first file is written.

use super::artefacts::{
    self, FAILURE_FILE, Failure, Marker, RUN_FILE, SCENARIO_FILE, hash, is_result_folder, read_manifest,
};
use super::folder::{differs_from, is_at_work, refuse_edited};
use super::kept::{Found, KeptRuns};
use super::options::Draw;
use super::shelf::Shelf;
use super::{Earlier, Experiment, Overrides, ResultFolder, RunId, RunSummary, Shard, Summary, below, build};
use crate::error::Error;
use crate::scenario::Kinds;
use fedgenie_core::text;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// How folders are put together.
#[derive(Default)]
pub struct MergeOptions<'a> {
    /// Folder that relative data paths start from; otherwise that of the first folder's own run.
    pub data: Option<PathBuf>,
    /// Policies and tasks of a program.
    pub kinds: Kinds,
    /// Page and pictures, if there are to be any.
    pub draw: Option<&'a Draw<'a>>,
}

/// What was put together.
#[derive(Debug)]
pub struct Merged {
    /// The experiment.
    pub experiment: Experiment,
    /// The results.
    pub summary: Summary,
    /// Names of runs that no folder has.
    pub missing: Vec<String>,
}

/// A folder that takes part.
struct Part<'a> {
    path: &'a Path,
    kept: KeptRuns<'a>,
}

/// The copy of a run that is taken: from which part, and its summary if it did not fail.
struct Taken<'a> {
    run: &'a RunId,
    part: usize,
    summary: Option<Box<RunSummary>>,
}

/// Puts folders together in a new one. What they lack is missing there too.
///
/// # Errors
/// [`Error::Usage`] if a folder is none of FedGenie's, is being written, holds another experiment, runs of another
/// build or changed files, if two folders differ in a run that both have, or if the new folder is not empty; nothing
/// is written then. If a file cannot be read or written.
pub fn merge(out: &Path, folders: &[PathBuf], options: &MergeOptions<'_>) -> Result<Merged, Error> {
    let Some(first) = folders.first() else {
        return Err(Error::Usage("give the folders to be put together".to_owned()));
    };
    let overrides = Overrides {
        data: options.data.clone(),
        allow_paths: true,
        kinds: options.kinds.clone(),
        ..Overrides::default()
    };
    refuse_place(out, folders)?;
    folders.iter().try_for_each(|folder| refuse_other(first, folder))?;
    let experiment = Experiment::load(&first.join(SCENARIO_FILE), &overrides)?;
    refuse_changed_experiment(&experiment, folders)?;
    let parts: Vec<Part<'_>> = folders.iter().map(|path| Part { path, kept: experiment.kept(path, &[]) }).collect();
    parts.iter().try_for_each(refuse_damaged)?;
    let runs = experiment.runs();
    // The first refusal in the order of runs, not the one that a thread is first to find.
    let looked: Vec<Result<Option<Taken<'_>>, Error>> = runs.par_iter().map(|run| taken(run, &parts)).collect();
    let looked: Vec<Option<Taken<'_>>> = looked.into_iter().collect::<Result<_, _>>()?;
    let missing = runs.iter().zip(&looked).filter(|(_, taken)| taken.is_none()).map(|(run, _)| run.name.clone());
    let missing: Vec<String> = missing.collect();
    let looked: Vec<Taken<'_>> = looked.into_iter().flatten().collect();
    let folder = ResultFolder::open(out, &experiment, Earlier::Refuse, Shard::WHOLE)?;
    match written(folder, &experiment, (&parts, looked), options) {
        Ok(summary) => Ok(Merged { summary, missing, experiment }),
        Err(error) => {
            // What was copied is of no use without the rest.
            let _ = ResultFolder::erase(out);
            Err(error)
        }
    }
}

/// Copies the runs, and writes the summary.
fn written(
    folder: ResultFolder,
    experiment: &Experiment,
    (parts, looked): (&[Part<'_>], Vec<Taken<'_>>),
    options: &MergeOptions<'_>,
) -> Result<Summary, Error> {
    let path = folder.path().to_owned();
    let mut known = Vec::new();
    for Taken { run, part, summary } in looked {
        folder.receive(&parts[part].kept.files, &run.name)?;
        known.extend(summary.map(|summary| *summary));
    }
    let draw = |summary: &Summary, into: &Path| match options.draw {
        Some(draw) => draw(into, &path, experiment, summary),
        None => Ok(()),
    };
    Ok(folder.finish(experiment, &mut known, draw)?.expect("no other process is at work in a new folder"))
}

/// Refuses a new folder that is not empty, or lies within one that is put together.
fn refuse_place(out: &Path, folders: &[PathBuf]) -> Result<(), Error> {
    let shown = text::path(out);
    // A path without its links, of which the end may not be there yet.
    let real = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let known = path.ancestors().find_map(|there| Some((there, fs::canonicalize(there).ok()?)));
        known.map_or_else(|| path.clone(), |(there, real)| real.join(path.strip_prefix(there).unwrap_or(&path)))
    };
    if let Some(folder) = folders.iter().find(|folder| real(out).starts_with(real(folder))) {
        return Err(Error::Usage(format!("{shown} is or lies in {}; give a place of its own", text::path(folder))));
    }
    match fs::read_dir(out).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(Error::Usage(format!("{shown} is not empty; give the name of a new folder, or delete it"))),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::Usage(format!("{shown} is a file; give the name of a new folder")))
        }
        _ => Ok(()),
    }
}

/// Refuses a folder with a pack that cannot be read: nobody knows which of its runs are lost.
fn refuse_damaged(part: &Part<'_>) -> Result<(), Error> {
    let Some((pack, why)) = part.kept.files.damaged().iter().next() else { return Ok(()) };
    Err(Error::Usage(format!(
        "{}: {pack} cannot be read to its end: {why}; `{}` makes its runs again",
        text::path(part.path),
        artefacts::completion(part.path)
    )))
}

/// Refuses a folder that is not of the experiment of the first.
fn refuse_other(first: &Path, folder: &Path) -> Result<(), Error> {
    let shown = text::path(folder);
    if !is_result_folder(folder) || !below::is_there(folder, SCENARIO_FILE) {
        return Err(Error::Usage(format!("{shown} is no folder that `fedgenie run --out` wrote")));
    }
    if is_at_work(folder)? {
        return Err(Error::Usage(format!("another process writes into {shown}; wait for its end, or stop it")));
    }
    let read = |folder: &Path| {
        let failed = |source| Error::Read { path: folder.join(SCENARIO_FILE), source };
        below::read_to_string(folder, SCENARIO_FILE).map_err(failed)
    };
    match differs_from(&read(folder)?, &read(first)?) {
        None => Ok(()),
        Some(what) => Err(Error::Usage(format!("{shown} holds another experiment than {}{what}", text::path(first)))),
    }
}

/// Refuses folders whose scenario was edited after the runs, or whose data or code are not those of the first.
fn refuse_changed_experiment(experiment: &Experiment, folders: &[PathBuf]) -> Result<(), Error> {
    let own = Marker::of(experiment);
    for folder in folders {
        refuse_edited(folder, experiment)?;
        let (data, scenario) = recorded(folder);
        let shown = text::path(folder);
        if scenario.is_some_and(|digest| digest != hash(experiment.resolved.as_bytes())) {
            return Err(Error::Usage(format!("{shown}: {SCENARIO_FILE} is not the file that was written")));
        }
        let names = data.keys().chain(own.data.keys());
        if let Some(name) = names.into_iter().find(|name| data.get(*name) != own.data.get(*name)) {
            return Err(Error::Usage(format!(
                "the runs in {shown} were made of other data: {name} is not the file that is here or that {} was made of",
                text::path(&folders[0])
            )));
        }
    }
    Ok(())
}

/// The digests of data by name, and of the scenario if there is a manifest.
fn recorded(folder: &Path) -> (BTreeMap<String, String>, Option<String>) {
    let manifest = read_manifest(folder).ok();
    let scenario = manifest.as_ref().map(|manifest| manifest.scenario_hash.clone());
    let data = Marker::read(folder).map(|marker| marker.data).or(manifest.map(|manifest| manifest.data));
    (data.unwrap_or_default(), scenario)
}

/// The copy of a run that is taken; `None` if no folder has it. A complete one is preferred to one that failed.
fn taken<'a>(run: &'a RunId, parts: &[Part<'_>]) -> Result<Option<Taken<'a>>, Error> {
    let mut best: Option<(Taken<'a>, String)> = None;
    for (part, Part { path, kept }) in parts.iter().enumerate() {
        let shown = text::path(path);
        let (file, summary) = match kept.find(run) {
            Found::Complete(summary) => (RUN_FILE, Some(summary)),
            Found::Missing if Failure::read(&kept.files, &run.name).is_some() => (FAILURE_FILE, None),
            Found::Missing => continue,
            Found::Damaged(why) => {
                return Err(Error::Usage(format!(
                    "{shown}: run {}: {why}; `{}` makes it again",
                    run.name,
                    artefacts::completion(path)
                )));
            }
            Found::OfAnotherBuild(_, other) => {
                let other = if other.is_empty() { "unknown" } else { &other };
                return Err(Error::Usage(format!(
                    "{shown}: run {} is of another build of FedGenie ({other}; this is {}): merge it with that build",
                    run.name,
                    build()
                )));
            }
        };
        let name = Shelf::name(&run.name, file);
        let failed = |source| Error::Read { path: path.join(&name), source };
        let (_, digest) = kept.files.digest(&name).map_err(failed)?;
        match &best {
            Some((earlier, known)) if earlier.summary.is_some() == summary.is_some() => {
                if *known != digest {
                    let other = text::path(parts[earlier.part].path);
                    return Err(Error::Usage(format!("run {} is in {other} and in {shown}, and differs", run.name)));
                }
            }
            Some((earlier, _)) if earlier.summary.is_some() => {}
            _ => best = Some((Taken { run, part, summary }, digest)),
        }
    }
    Ok(best.map(|(taken, _)| taken))
}
