//! A pack: an archive in the format of `tar` with the files of many runs.
//!
//! Headers hold nothing but names and lengths, so that the same runs give the same bytes.

use super::super::names::RUN_FILES;
use super::Place;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Runs of a numbered pack.
pub(crate) const RUNS_IN_PACK: usize = 256;

/// A pack that is being written.
#[derive(Debug)]
pub(crate) struct Pack {
    builder: Builder,
}

struct Builder(tar::Builder<BufWriter<File>>);

impl std::fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Builder")
    }
}

impl Pack {
    /// Makes a file for it, which must not exist.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { builder: Builder(tar::Builder::new(BufWriter::new(File::create_new(path)?))) })
    }

    /// Adds a file of a run.
    ///
    /// # Errors
    /// If it is not as long as given, or cannot be read or written.
    pub fn put(&mut self, run: &str, name: &str, bytes: u64, contents: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(bytes);
        let mut counted = Counted { contents: contents.take(bytes), read: 0 };
        self.builder.0.append_data(&mut header, format!("{run}/{name}"), &mut counted)?;
        match counted.read == bytes {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{run}/{name} has become shorter"))),
        }
    }

    /// Hands what was put so far to the system.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.builder.0.get_mut().flush()
    }

    /// Waits until the disk has what was put so far.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.builder.0.get_ref().get_ref().sync_data()
    }

    /// Ends the archive, and waits until the disk has it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<()> {
        let file = self.builder.0.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}

struct Counted<R> {
    contents: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.contents.read(buffer)?;
        self.read += read as u64;
        Ok(read)
    }
}

/// The files of runs in a pack, in their order, up to the first that is not whole; and why it is not read to its end.
pub(super) fn look(file: File) -> (Vec<(String, Place)>, Option<String>) {
    let mut found = Vec::new();
    let length = match file.metadata() {
        Ok(metadata) => metadata.len(),
        Err(error) => return (found, Some(error.to_string())),
    };
    let mut archive = tar::Archive::new(file);
    let entries = match archive.entries_with_seek() {
        Ok(entries) => entries,
        Err(error) => return (found, Some(error.to_string())),
    };
    let mut end = 0;
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            // A message about a header has the bytes in it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return (found, Some("it ends in the middle of a file".to_owned()));
            }
            Err(_) => return (found, Some(format!("from byte {end} on it is no tar archive"))),
        };
        let (start, bytes) = (entry.raw_file_position(), entry.size());
        end = start.saturating_add(bytes);
        if end > length {
            return (found, Some("it ends in the middle of a file".to_owned()));
        }
        if let Some((run, file)) = named(&entry) {
            found.push((run, Place { file, start, bytes }));
        }
    }
    // Two empty blocks end an archive.
    let is_ended = length >= end.next_multiple_of(512).saturating_add(1024);
    (found, (!is_ended).then(|| "its end is missing".to_owned()))
}

/// The run of a file, and the index of the file's name; `None` if it is no file of a run.
fn named(entry: &tar::Entry<'_, File>) -> Option<(String, u8)> {
    let path = entry.path_bytes();
    let (run, name) = std::str::from_utf8(&path).ok()?.split_once('/')?;
    let file = RUN_FILES.iter().position(|known| *known == name)?;
    let is_plain = entry.header().entry_type() == tar::EntryType::Regular;
    let is_fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (is_plain && !run.is_empty() && run.bytes().all(is_fine)).then(|| (run.to_owned(), file as u8))
}
