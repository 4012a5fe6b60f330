//! One run's files: written below the folder of the process, and given their names when the run has ended.

use super::super::artefacts::{FAILURE_FILE, Failure, ID_FILES, MODEL_FILE, RUN_FILE, RUN_FILES, RUNS_FOLDER};
use super::super::checkpoint::{self, Checkpoints};
use super::super::execution::{Outputs, Progress, Threads};
use super::super::files::{sync_file, sync_folder, write_file, write_json};
use super::super::pace::Advance;
use super::super::play::Keeping;
use super::super::recorded::Keeper;
use super::super::run_file::{self, FileDigest, RunFile};
use super::super::shelf::Shelf;
use super::super::{Experiment, RunId, RunSummary, below};
use super::packing::files_in;
use super::processes::take_over;
use super::{ResultFolder, Wait, remove_file};
use crate::error::Error;
use fedgenie_core::state::State;
use fedgenie_simulator::recorder::{RunFiles, Sink};
use fedgenie_simulator::world::World;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

impl ResultFolder {
    /// Carries out a run that writes its files, all of which appear when it is complete. It continues from a checkpoint
    /// of an earlier process, if there is one. [`Self::give_up`] treats the files of a run that ends early.
    pub(in super::super) fn carry_out(
        &self,
        experiment: &Experiment,
        run: &RunId,
        world: &World,
        outputs: Outputs<'_>,
        (threads, progress): (&Threads, &dyn Progress),
    ) -> Result<RunSummary, Error> {
        let unfinished = self.process.path.join(&run.name);
        let failed = |source| Error::Write { path: unfinished.clone(), source };
        take_over(&self.path, &run.name, &unfinished).map_err(failed)?;
        let mut checkpoints = Checkpoints::new(&unfinished, &self.experiment, run, self.interval);
        let model_file = outputs.models.then(|| unfinished.join(MODEL_FILE));
        let play = |sink: &mut dyn Sink, from: Option<&mut State<'_>>, checkpoints: &mut Checkpoints| {
            let keeping = Some(Keeping { from, checkpoints, folder: &unfinished });
            let sections = experiment.points[run.point].1.sections_of(run.arm);
            let mut pace = Advance::of(run, (sections, world), progress);
            experiment.play(run, world, sink, (threads, &mut pace), model_file.as_deref(), keeping)
        };
        let mut is_refused = false;
        let mut refuse = |why: &str| {
            is_refused = true;
            progress.warned(&format!("run {}: {why}", run.name));
        };
        for found in checkpoints.read() {
            let saved = match found {
                Ok(saved) => saved,
                Err(why) => {
                    refuse(&why);
                    continue;
                }
            };
            let mut state = State::Loading(Some(&saved.state));
            let mut files = match RunFiles::reopen(&unfinished, outputs.files, &mut state) {
                Ok(files) => files,
                Err(error) => {
                    refuse(&format!("{} cannot be used: {error}", saved.name()));
                    continue;
                }
            };
            checkpoints.go_on(&saved);
            progress.run_goes_on(run, saved.round);
            match play(&mut files, Some(&mut state), &mut checkpoints)? {
                Some(summary) => return self.complete(run, world, files, summary),
                None => refuse(&format!("{} cannot be loaded", saved.name())),
            }
        }
        if is_refused {
            progress.warned(&format!("run {} begins anew", run.name));
        }
        // Unusable files would be taken for files of this try.
        below::remove_folder(&unfinished).map_err(failed)?;
        let mut files = RunFiles::create(&unfinished, outputs.files).map_err(failed)?;
        let mut keeper = Keeper::new(&mut files, outputs.memory);
        let played = play(&mut keeper, None, &mut checkpoints)?;
        let rounds = keeper.rounds();
        let played = played.expect("a run that loads nothing cannot load wrong things");
        let summary = self.complete(run, world, files, played)?;
        Ok(RunSummary { recorded: rounds.map(Arc::from), ..summary })
    }

    /// Writes the rest of a run's files, and gives all of them their names.
    fn complete(&self, run: &RunId, world: &World, files: RunFiles, summary: RunSummary) -> Result<RunSummary, Error> {
        let unfinished = self.process.path.join(&run.name);
        let failed = |source| Error::Write { path: unfinished.clone(), source };
        files.finish().map_err(failed)?;
        for (name, table) in world.task.iter().flat_map(|task| task.appendix().tables) {
            assert!(ID_FILES.contains(&name), "a run has no file {name}");
            write_file(&unfinished.join(name), table.as_bytes())?;
        }
        let mut files = BTreeMap::new();
        for name in RUN_FILES.into_iter().filter(|name| below::is_there(&unfinished, name)) {
            let (bytes, blake3) = below::digest(&unfinished, name).map_err(failed)?;
            files.insert(name.to_owned(), FileDigest { bytes, blake3 });
        }
        run_file::write(&unfinished.join(RUN_FILE), &summary, files)?;
        self.publish(&run.name, Wait::ForDisk).map_err(failed)?;
        Ok(summary)
    }

    /// Ends the work on a run that ended early. If it failed and would fail again, its files stay beside the reason;
    /// otherwise its checkpoint stays, if it was saved. Returns the error, or that of a disk that cannot keep the
    /// reason.
    pub(in super::super) fn give_up(&self, run: &RunId, error: Error) -> Error {
        let unfinished = self.process.path.join(&run.name);
        let failed = |source| Error::Write { path: unfinished.clone(), source };
        let Some(failure) = Failure::of(&error) else {
            // A saved run continues from its checkpoint. The first error is the one that matters.
            if !checkpoint::has_one(&unfinished) {
                let _ = fs::remove_dir_all(&unfinished);
            }
            return error;
        };
        let kept = fs::create_dir_all(&unfinished)
            .map_err(failed)
            .and_then(|()| write_json(&unfinished.join(FAILURE_FILE), &failure))
            .and_then(|()| self.publish(&run.name, Wait::ForDisk).map_err(failed));
        kept.err().unwrap_or(error)
    }

    /// Notes in a run's `run.json` that this build has replayed its first rounds.
    pub(in super::super) fn note_accepted(
        &self,
        shelf: &Shelf,
        run: &RunId,
        file: RunFile,
        rounds: u32,
    ) -> Result<(), Error> {
        let path = self.path.join(Shelf::name(&run.name, RUN_FILE));
        let failed = |source| Error::Write { path: path.clone(), source };
        let text = file.accepted(rounds).map_err(|error| failed(error.into()))?;
        if shelf.packed(&run.name).is_none() {
            return write_file(&path, text.as_bytes());
        }
        // The copy that counts is the newest, and is whole.
        let others = RUN_FILES.into_iter().filter(|name| *name != RUN_FILE);
        let others = others.map(|name| (name, Shelf::name(&run.name, name))).filter(|(_, path)| shelf.is_there(path));
        let others = others.map(|(name, path)| Ok((name, shelf.length(&path)?, shelf.open(&path)?)));
        let own: Box<dyn Read + Send> = Box::new(Cursor::new(text.clone()));
        let files = others.chain([Ok((RUN_FILE, text.len() as u64, own))]);
        self.pack(&run.name, files).map_err(failed)
    }

    /// Gives a run's files their names, when the disk has them; those of an earlier try are deleted. `run.json` comes
    /// last, so that a run with a `run.json` is whole.
    pub(super) fn publish(&self, run: &str, wait: Wait) -> io::Result<()> {
        let (from, all) = (self.process.path.join(run), self.path.join(RUNS_FOLDER));
        let to = all.join(run);
        // Nothing is written behind links.
        below::own(&self.path, &format!("{RUNS_FOLDER}/{run}/{RUN_FILE}"))?;
        if self.is_packed {
            self.pack(run, files_in(&from))?;
            return fs::remove_dir_all(from);
        }
        let is_first = !all.exists();
        fs::create_dir_all(&to)?;
        // No process continues a run whose files are being published.
        checkpoint::FILES.into_iter().try_for_each(|name| remove_file(&from.join(name)))?;
        if wait == Wait::ForDisk {
            let there = RUN_FILES.into_iter().filter(|name| below::is_there(&from, name));
            there.into_iter().try_for_each(|name| sync_file(&from.join(name)))?;
        }
        for name in RUN_FILES {
            match fs::rename(from.join(name), to.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => remove_file(&to.join(name))?,
                result => result?,
            }
        }
        if wait == Wait::ForDisk {
            sync_folder(&to)?;
            sync_folder(&all)?;
            if is_first {
                sync_folder(&self.path)?;
            }
        }
        fs::remove_dir_all(from)
    }
}
