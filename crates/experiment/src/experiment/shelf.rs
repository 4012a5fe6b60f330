//! The files of a result folder by their names, wherever they lie: beside one another, or many runs in one pack.
//!
//! ```text
//! DIR/runs/NAME/FILE       a run in a folder of its own
//! DIR/runs/00042.tar       a pack: runs 42·256 to 42·256 + 255 of the experiment, in its order, as NAME/FILE
//! DIR/runs/new-3.tar       runs in the order of their completion, by one process; the greater number is the newer
//! DIR/runs/old-3.tar       a pack from before the runs were numbered anew
//! ```
//!
//! A file has the same name, `runs/NAME/FILE`, in a pack and outside: manifests list it, and `tar -xf` makes it. Of
//! several copies of a run the folder counts, then the newest of `new`, the pack, and `old`.

mod pack;

pub(super) use pack::{Pack, RUNS_IN_PACK};

use super::below;
use super::names::{RUN_FILES, RUNS_FOLDER};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// What a pack is, by its name; in the order in which they count, the last one most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// `old-N.tar`
    Old(u64),
    /// `NNNNN.tar`
    Numbered(u64),
    /// `new-N.tar`
    New(u64),
}

impl Kind {
    /// The kind of a file of this name in the folder of runs; `None` for any other file.
    pub fn of(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".tar")?;
        let number = |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let kind = match (stem.strip_prefix("new-"), stem.strip_prefix("old-")) {
            (Some(digits), _) => Self::New(number(digits)?),
            (_, Some(digits)) => Self::Old(number(digits)?),
            _ => Self::Numbered(number(stem)?),
        };
        (kind.name() == name).then_some(kind)
    }

    /// The name of the file.
    pub fn name(self) -> String {
        match self {
            Self::Old(number) => format!("old-{number}.tar"),
            Self::Numbered(number) => format!("{number:05}.tar"),
            Self::New(number) => format!("new-{number}.tar"),
        }
    }

    /// The same below the result folder.
    pub fn path(self) -> String {
        format!("{RUNS_FOLDER}/{}", self.name())
    }
}

/// Where a file lies in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of its name in [`RUN_FILES`].
    pub file: u8,
    /// Its first byte.
    pub start: u64,
    /// Its length.
    pub bytes: u64,
}

/// A run in a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackedRun {
    /// The pack.
    pub pack: Kind,
    /// Its files, in the order in which they lie there.
    pub places: Vec<Place>,
}

/// The files of a result folder, as they were when it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    folder: PathBuf,
    /// Packs, and the number of runs in each that can be read.
    packs: BTreeMap<Kind, usize>,
    /// Runs that lie in packs alone, by name.
    runs: BTreeMap<String, PackedRun>,
    /// Packs that cannot be read to their end, and why.
    damaged: BTreeMap<String, String>,
}

impl Shelf {
    /// Looks at a folder. A pack of which the end is missing, as where a process was killed, is read up to there.
    pub fn of(folder: &Path) -> Self {
        let mut shelf = Self { folder: folder.to_owned(), ..Self::default() };
        for kind in kinds(folder) {
            let found = match below::open(folder, &kind.path()) {
                Ok(file) => pack::look(file),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            let (entries, damage) = found;
            let mut runs: BTreeMap<String, Vec<Place>> = BTreeMap::new();
            for (run, place) in entries {
                let places = runs.entry(run).or_default();
                // A later copy replaces an earlier one.
                places.retain(|earlier| earlier.file != place.file);
                places.push(place);
            }
            shelf.packs.insert(kind, runs.len());
            // In ascending order of their kinds, so that the one that counts comes last.
            shelf.runs.extend(runs.into_iter().map(|(run, places)| (run, PackedRun { pack: kind, places })));
            // A process that was killed leaves the end of its own pack.
            if let (Some(damage), Kind::Numbered(_)) = (damage, kind) {
                shelf.damaged.insert(kind.path(), damage);
            }
        }
        shelf.runs.retain(|run, _| !has_own(folder, run));
        shelf
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of a run's file.
    pub fn name(run: &str, file: &str) -> String {
        format!("{RUNS_FOLDER}/{run}/{file}")
    }

    /// Packs, and how many runs each has.
    pub(super) const fn packs(&self) -> &BTreeMap<Kind, usize> {
        &self.packs
    }

    /// Packs that cannot be read to their end, by name, and why.
    pub(super) const fn damaged(&self) -> &BTreeMap<String, String> {
        &self.damaged
    }

    /// A run that lies in a pack alone.
    pub(super) fn packed(&self, run: &str) -> Option<&PackedRun> {
        self.runs.get(run)
    }

    /// The pack and the place of a file.
    fn place(&self, name: &str) -> Option<(Kind, Option<Place>)> {
        let (run, file) = name.strip_prefix(RUNS_FOLDER)?.strip_prefix('/')?.split_once('/')?;
        let PackedRun { pack, places } = self.runs.get(run)?;
        let index = RUN_FILES.iter().position(|known| *known == file);
        let place = places.iter().find(|place| Some(usize::from(place.file)) == index);
        Some((*pack, place.copied()))
    }

    /// Whether a file of this name exists, or a link that leads nowhere.
    pub fn is_there(&self, name: &str) -> bool {
        self.place(name).map_or_else(|| below::is_there(&self.folder, name), |(_, place)| place.is_some())
    }

    /// Whether anything of a run is there.
    pub fn has(&self, run: &str) -> bool {
        self.runs.contains_key(run) || below::is_there(&self.folder, &format!("{RUNS_FOLDER}/{run}"))
    }

    /// How many files of a run there are, known or not.
    pub(super) fn count(&self, run: &str) -> usize {
        let beside = || fs::read_dir(self.folder.join(RUNS_FOLDER).join(run)).map_or(0, Iterator::count);
        self.runs.get(run).map_or_else(beside, |packed| packed.places.len())
    }

    /// Names of all runs of which anything is there, in no particular order.
    pub(super) fn runs(&self) -> Vec<String> {
        let folders = fs::read_dir(self.folder.join(RUNS_FOLDER)).into_iter().flatten().flatten();
        let names = folders.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name());
        names.filter_map(|name| name.into_string().ok()).chain(self.runs.keys().cloned()).collect()
    }

    /// Opens a plain file.
    ///
    /// # Errors
    /// If it is not there, leads out of the folder, is no plain file, or cannot be opened.
    pub fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        match self.place(name) {
            None => Ok(Box::new(below::open(&self.folder, name)?)),
            Some((_, None)) => Err(io::ErrorKind::NotFound.into()),
            Some((pack, Some(place))) => Ok(Box::new(self.open_packed(pack, place)?)),
        }
    }

    fn open_packed(&self, pack: Kind, place: Place) -> io::Result<io::Take<File>> {
        let mut file = below::open(&self.folder, &pack.path())?;
        file.seek(SeekFrom::Start(place.start))?;
        Ok(file.take(place.bytes))
    }

    /// The length of a plain file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn length(&self, name: &str) -> io::Result<u64> {
        match self.place(name) {
            None => Ok(fs::metadata(below::plain(&self.folder, name)?)?.len()),
            Some((_, None)) => Err(io::ErrorKind::NotFound.into()),
            Some((_, Some(place))) => Ok(place.bytes),
        }
    }

    /// Reads a plain file.
    ///
    /// # Errors
    /// As [`Self::open`], or if it cannot be read.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a plain file of text.
    ///
    /// # Errors
    /// As [`Self::read`], or if it is no text.
    pub fn read_to_string(&self, name: &str) -> io::Result<String> {
        String::from_utf8(self.read(name)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Length and BLAKE3 of a plain file.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn digest(&self, name: &str) -> io::Result<(u64, String)> {
        let mut hasher = blake3::Hasher::new();
        let bytes = io::copy(&mut self.open(name)?, &mut hasher)?;
        Ok((bytes, hasher.finalize().to_hex().to_string()))
    }
}

/// Whether files of a run lie in a folder of its own; a foreign file is none.
fn has_own(folder: &Path, run: &str) -> bool {
    let is_there = |name: &str| below::is_there(folder, &Shelf::name(run, name));
    below::is_there(folder, &format!("{RUNS_FOLDER}/{run}")) && RUN_FILES.into_iter().any(is_there)
}

/// The packs of a folder, in ascending order.
pub(super) fn kinds(folder: &Path) -> Vec<Kind> {
    let entries = fs::read_dir(folder.join(RUNS_FOLDER)).into_iter().flatten().flatten();
    let mut kinds: Vec<Kind> = entries.filter_map(|entry| Kind::of(entry.file_name().to_str()?)).collect();
    kinds.sort_unstable();
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run, file, contents.
    type Files<'a> = &'a [(&'a str, &'a str, &'a str)];

    fn folder_with(packs: &[(Kind, Files<'_>)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(RUNS_FOLDER)).unwrap();
        for (kind, files) in packs {
            let mut pack = Pack::create(&place.path().join(kind.path())).unwrap();
            for (run, name, text) in *files {
                pack.put(run, name, text.len() as u64, text.as_bytes()).unwrap();
            }
            pack.finish().unwrap();
        }
        place
    }

    #[test]
    fn names_of_packs_are_read_as_they_are_written_and_no_others() {
        for kind in [Kind::Old(0), Kind::Numbered(42), Kind::Numbered(123_456), Kind::New(7)] {
            assert_eq!(Kind::of(&kind.name()), Some(kind));
        }
        let others = ["42.tar", "new-07.tar", "new-.tar", "mine.tar", "00001.tgz", "-0001.tar", "+0001.tar"];
        assert_eq!(others.map(Kind::of), [None; 7]);
        assert!(Kind::Old(9) < Kind::Numbered(0) && Kind::Numbered(9) < Kind::New(0) && Kind::New(1) < Kind::New(10));
    }

    #[test]
    fn of_several_copies_the_newest_counts_and_a_folder_most() {
        let place = folder_with(&[
            (Kind::Old(0), &[("a-s1", "run.json", "old"), ("a-s1", "rounds.jsonl", "old"), ("d-s1", "run.json", "d")]),
            (Kind::Numbered(0), &[("a-s1", "run.json", "pack"), ("b-s1", "run.json", "pack")]),
            (
                Kind::New(1),
                &[("b-s1", "run.json", "first"), ("c-s1", "run.json", "packed"), ("b-s1", "run.json", "it")],
            ),
            (Kind::New(0), &[("b-s1", "run.json", "earlier")]),
        ]);
        fs::create_dir(place.path().join("runs/c-s1")).unwrap();
        fs::write(place.path().join("runs/c-s1/run.json"), "folder").unwrap();
        let shelf = Shelf::of(place.path());
        let read = |run: &str, file: &str| shelf.read_to_string(&Shelf::name(run, file)).map_err(|error| error.kind());
        let found = ["a-s1", "b-s1", "c-s1", "d-s1"].map(|run| read(run, "run.json").unwrap());
        assert_eq!(found, ["pack", "it", "folder", "d"]);
        // A run is whole: files of an earlier copy do not count.
        assert_eq!(read("a-s1", "rounds.jsonl"), Err(io::ErrorKind::NotFound));
        assert_eq!(read("e-s1", "run.json"), Err(io::ErrorKind::NotFound));
        assert!(shelf.is_there("runs/a-s1/run.json") && !shelf.is_there("runs/a-s1/rounds.jsonl"));
        assert!(shelf.has("a-s1") && shelf.has("c-s1") && !shelf.has("e-s1"));
        let (bytes, digest) = shelf.digest("runs/a-s1/run.json").unwrap();
        assert_eq!((bytes, digest), (4, blake3::hash(b"pack").to_hex().to_string()));
        let mut runs = shelf.runs();
        runs.sort();
        assert_eq!(runs, ["a-s1", "b-s1", "c-s1", "d-s1"]);
    }

    /// At every length that a killed process may leave, what was whole by then is there, and nothing else.
    #[test]
    fn a_pack_is_read_up_to_where_it_was_cut() {
        let texts = ["one", "two two", "three"];
        let files: Vec<(&str, &str, &str)> =
            texts.iter().zip(["a-s1", "a-s2", "a-s3"]).map(|(text, run)| (run, "run.json", *text)).collect();
        let place = folder_with(&[(Kind::New(0), &files)]);
        let path = place.path().join("runs/new-0.tar");
        let whole = fs::read(&path).unwrap();
        let ends: Vec<usize> = texts.iter().enumerate().map(|(i, text)| i * 1024 + 512 + text.len()).collect();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let shelf = Shelf::of(place.path());
            let found: Vec<bool> = (1..=3).map(|seed| shelf.has(&format!("a-s{seed}"))).collect();
            assert_eq!(found, ends.iter().map(|&end| length >= end).collect::<Vec<_>>(), "{length}");
            assert!(shelf.damaged().is_empty());
        }
        fs::rename(&path, place.path().join("runs/00000.tar")).unwrap();
        fs::write(place.path().join("runs/00000.tar"), &whole[..1024 + 600]).unwrap();
        assert!(Shelf::of(place.path()).damaged().contains_key("runs/00000.tar"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_files_of_runs() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join(RUNS_FOLDER)).unwrap();
        let mut builder = tar::Builder::new(File::create(place.path().join("runs/00000.tar")).unwrap());
        for name in ["a-s1/notes.txt", "run.json", "a-s1/b/run.json", "a-s1/run.json"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            builder.append_data(&mut header, name, &b"x"[..]).unwrap();
        }
        builder.append_link(&mut tar::Header::new_gnu(), "b-s1/run.json", "/etc/passwd").unwrap();
        builder.into_inner().unwrap();
        let shelf = Shelf::of(place.path());
        assert_eq!(shelf.runs(), ["a-s1"]);
        assert_eq!(shelf.count("a-s1"), 1);
        assert_eq!(shelf.read("runs/a-s1/run.json").unwrap(), b"x");
        assert!(shelf.read("runs/../runs/00000.tar").is_err());
    }
}
