//! A file of records whose writer can stop, and be followed by another one.

use fedgenie_core::state::{State, Stateful};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A file being written, of which length and digest so far are known.
#[derive(Debug)]
pub(super) struct RecordFile(BufWriter<Counted>);

/// What of a file has left the buffer.
#[derive(Debug)]
struct Counted {
    file: File,
    bytes: u64,
    hasher: blake3::Hasher,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Length and BLAKE3 of a file, or of its first part.
#[derive(Debug, Default, PartialEq, Eq, Stateful)]
struct Extent {
    bytes: u64,
    digest: [u8; 32],
}

impl RecordFile {
    /// A new file; one that is there is emptied.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self(BufWriter::new(Counted { file, bytes: 0, hasher: blake3::Hasher::new() })))
    }

    /// A file as it was when its writer [saved](Self::save) it; what came after is cut off.
    ///
    /// # Errors
    /// If it is not that file any more, or cannot be read.
    pub fn reopen(path: &Path, state: &mut State<'_>) -> io::Result<Self> {
        let mut known = Extent::default();
        state.field(&mut known);
        let mut file = File::options().read(true).write(true).open(path)?;
        let mut hasher = blake3::Hasher::new();
        let found = Extent {
            bytes: io::copy(&mut Read::by_ref(&mut file).take(known.bytes), &mut hasher)?,
            digest: *hasher.finalize().as_bytes(),
        };
        if found != known {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{name} is not what was written")));
        }
        file.set_len(known.bytes)?;
        file.seek(SeekFrom::Start(known.bytes))?;
        Ok(Self(BufWriter::new(Counted { file, bytes: known.bytes, hasher })))
    }

    /// Waits until the disk has everything, and says how much that is.
    pub fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        self.0.flush()?;
        let Counted { file, bytes, hasher } = self.0.get_ref();
        file.sync_data()?;
        state.field(&mut Extent { bytes: *bytes, digest: *hasher.finalize().as_bytes() });
        Ok(())
    }

    /// Waits until the disk has everything.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()?;
        self.0.get_ref().file.sync_all()
    }
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_goes_on_where_it_was_saved() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("rounds.jsonl");
        let mut file = RecordFile::create(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        let mut bytes = Vec::new();
        file.save(&mut State::Saving(&mut bytes)).unwrap();
        file.write_all(b"lost\n").unwrap();
        file.finish().unwrap();
        let reopened = || RecordFile::reopen(&path, &mut State::Loading(Some(&bytes)));
        let mut file = reopened().unwrap();
        file.write_all(b"two\n").unwrap();
        let mut later = Vec::new();
        file.save(&mut State::Saving(&mut later)).unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        let mut known = Extent::default();
        State::load(&mut known, &later).unwrap();
        let of_both = Extent { bytes: 8, digest: *blake3::hash(b"one\ntwo\n").as_bytes() };
        assert_eq!(known, of_both, "the digest goes on as well");
        for damaged in ["onE\ntwo\n", "one", ""] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(reopened().unwrap_err().to_string(), "rounds.jsonl is not what was written", "{damaged:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "nothing is cut off");
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(reopened().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
