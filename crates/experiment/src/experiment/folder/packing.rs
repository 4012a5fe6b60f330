//! Runs in packs: a process adds those that it completes to a pack of its own, and the last one at work in the folder
//! puts all of them into numbered packs, in the order of the experiment.
//!
//! A run is in some pack, or in its folder, at any moment: packs that change are renamed first, the new ones are made
//! beside them, and what they were made of is deleted last.

use super::super::clock::now;
use super::super::files::sync_folder;
use super::super::names::{RUN_FILES, RUNS_FOLDER};
use super::super::shelf::{Kind, Pack, RUNS_IN_PACK, Shelf, kinds};
use super::super::{Experiment, below};
use super::{ResultFolder, Wait, remove_file};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Wall time after which the disk must have the runs that were completed. What a machine that stops loses is made
/// again.
const SYNC: Duration = Duration::from_secs(1);

/// The pack of a process.
#[derive(Debug)]
pub(super) struct Journal {
    pack: Pack,
    synced: Instant,
}

impl Journal {
    /// Makes one that counts more than those that are there.
    fn create(folder: &Path) -> io::Result<Self> {
        let runs = below::own(folder, &format!("{RUNS_FOLDER}/any"))?.with_file_name("");
        fs::create_dir_all(&runs)?;
        loop {
            let last = kinds(folder).last().copied();
            let number = if let Some(Kind::New(number)) = last { number + 1 } else { 0 };
            match Pack::create(&runs.join(Kind::New(number).name())) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                pack => return pack.map(|pack| Self { pack, synced: now() }),
            }
        }
    }

    /// Adds the files of a run that are given, in the order of [`RUN_FILES`].
    fn add<R: Read>(
        &mut self,
        run: &str,
        files: impl Iterator<Item = io::Result<(&'static str, u64, R)>>,
    ) -> io::Result<()> {
        for file in files {
            let (name, bytes, contents) = file?;
            self.pack.put(run, name, bytes, contents)?;
        }
        match now().duration_since(self.synced) < SYNC {
            true => self.pack.flush(),
            false => {
                self.synced = now();
                self.pack.sync()
            }
        }
    }
}

impl ResultFolder {
    /// Adds a run to the pack of this process. A copy of the run in a folder of its own, which would count more, is
    /// deleted then.
    pub(super) fn pack<R: Read>(
        &self,
        run: &str,
        files: impl Iterator<Item = io::Result<(&'static str, u64, R)>>,
    ) -> io::Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *journal {
            Some(open) => open,
            none => none.insert(Journal::create(&self.path)?),
        };
        if let Err(error) = open.add(run, files) {
            // What follows half a file could not be read: another run begins another pack.
            *journal = None;
            return Err(error);
        }
        self.discard(run)
    }

    /// Takes a run with all its files from another folder, in which it is whole. The disk need not have it yet: what is
    /// lost is still there.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub(in super::super) fn receive(&self, from: &Shelf, run: &str) -> Result<(), Error> {
        let failed = |source| Error::Write { path: self.path.join(RUNS_FOLDER).join(run), source };
        let there = RUN_FILES.into_iter().map(|name| (name, Shelf::name(run, name)));
        let there = there.filter(|(_, path)| from.is_there(path));
        if self.is_packed {
            let files = there.map(|(name, path)| Ok((name, from.length(&path)?, from.open(&path)?)));
            return self.pack(run, files).map_err(failed);
        }
        let unfinished = self.process.path.join(run);
        let write = || {
            fs::create_dir(&unfinished)?;
            for (name, path) in there {
                io::copy(&mut from.open(&path)?, &mut File::create_new(unfinished.join(name))?)?;
            }
            self.publish(run, Wait::No)
        };
        write().map_err(failed)
    }

    /// Deletes a run's own folder with the files that FedGenie wrote, of which no part may be taken for the run
    /// meanwhile.
    fn discard(&self, run: &str) -> io::Result<()> {
        let Ok(path) = below::own(&self.path, &format!("{RUNS_FOLDER}/{run}/any")) else { return Ok(()) };
        let path = path.with_file_name("");
        if !below::is_own_folder(&path) {
            return Ok(());
        }
        let aside = self.process.path.join(format!("{run}.packed"));
        fs::rename(&path, &aside)?;
        RUN_FILES.into_iter().try_for_each(|name| remove_file(&aside.join(name)))?;
        match fs::remove_dir(&aside) {
            // Foreign files stay, and the folder with them.
            Err(_) => fs::rename(&aside, &path),
            ok => ok,
        }
    }

    /// Ends the pack of this process.
    pub(super) fn end_journal(&self) -> io::Result<()> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
        journal.map_or(Ok(()), |journal| journal.pack.finish())
    }

    /// Ends the pack of this process, which can be read then.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(in super::super) fn end_pack(&self) -> Result<(), Error> {
        self.end_journal().map_err(|source| Error::Write { path: self.path.join(RUNS_FOLDER), source })
    }

    /// Puts all runs of the folder into numbered packs, if the experiment has many. The caller holds the lock, and no
    /// other process is at work in the folder.
    pub(super) fn pack_all(&self, experiment: &Experiment) -> io::Result<()> {
        self.end_journal()?;
        if !experiment.is_packed() {
            return Ok(());
        }
        let shelf = Shelf::of(&self.path);
        let names: Vec<String> = experiment.runs().into_iter().map(|run| run.name).collect();
        let packs: Vec<(Kind, &[String])> = (0..).map(Kind::Numbered).zip(names.chunks(RUNS_IN_PACK)).collect();
        let stays: BTreeSet<Kind> =
            packs.iter().filter(|(kind, runs)| is_packed_as(&shelf, *kind, runs)).map(|(kind, _)| *kind).collect();
        // Packs of other runs, or in another order, count least from here on.
        let mut renamed = false;
        let is_old = |kind: &&Kind| matches!(kind, Kind::Old(_));
        let mut free = shelf.packs().keys().filter(is_old).count() as u64;
        for kind in shelf.packs().keys().filter(|kind| matches!(kind, Kind::Numbered(_)) && !stays.contains(kind)) {
            let old = loop {
                let old = self.path.join(Kind::Old(free).path());
                free += 1;
                if !old.exists() {
                    break old;
                }
            };
            fs::rename(self.path.join(kind.path()), old)?;
            renamed = true;
        }
        let runs = self.path.join(RUNS_FOLDER);
        let shelf = if renamed { Shelf::of(&self.path) } else { shelf };
        for (kind, names) in packs.iter().filter(|(kind, _)| !stays.contains(kind)) {
            self.write_pack(&shelf, *kind, names)?;
        }
        if runs.is_dir() {
            sync_folder(&runs)?;
        }
        for name in names.iter().filter(|name| shelf.packed(name).is_none()) {
            self.discard(name)?;
        }
        for kind in kinds(&self.path).into_iter().filter(|kind| !matches!(kind, Kind::Numbered(_))) {
            remove_file(&self.path.join(kind.path()))?;
        }
        Ok(())
    }

    /// Writes the pack of some runs, of those that are there; none if none is.
    fn write_pack(&self, shelf: &Shelf, kind: Kind, runs: &[String]) -> io::Result<()> {
        let files = runs.iter().flat_map(|run| RUN_FILES.map(|file| (run, file, Shelf::name(run, file))));
        let mut files = files.filter(|(.., name)| shelf.is_there(name)).peekable();
        if files.peek().is_none() {
            return Ok(());
        }
        let unfinished = self.process.path.join(kind.name());
        let mut pack = Pack::create(&unfinished)?;
        for (run, file, name) in files {
            pack.put(run, file, shelf.length(&name)?, shelf.open(&name)?)?;
        }
        pack.finish()?;
        fs::rename(unfinished, self.path.join(kind.path()))
    }
}

/// Whether a pack holds these runs alone, those that are there, in this order.
fn is_packed_as(shelf: &Shelf, kind: Kind, runs: &[String]) -> bool {
    let there: Vec<&String> = runs.iter().filter(|run| shelf.has(run)).collect();
    let Some(&count) = shelf.packs().get(&kind) else { return there.is_empty() };
    let mut end = 0;
    let is_next = |run: &&String| {
        let Some(packed) = shelf.packed(run).filter(|packed| packed.pack == kind) else { return false };
        let mut places = packed.places.iter();
        let is_in_order = places.all(|place| {
            place.start >= end && {
                end = place.start + place.bytes;
                true
            }
        });
        is_in_order && packed.places.is_sorted_by_key(|place| place.file)
    };
    let is_whole = !shelf.damaged().contains_key(&kind.path());
    is_whole && count == there.len() && there.iter().all(is_next)
}

/// The files of a run in a folder, opened one after the other.
pub(super) fn files_in(folder: &Path) -> impl Iterator<Item = io::Result<(&'static str, u64, File)>> {
    RUN_FILES.into_iter().filter(|name| below::is_there(folder, name)).map(|name| {
        let file = below::open(folder, name)?;
        Ok((name, file.metadata()?.len(), file))
    })
}
