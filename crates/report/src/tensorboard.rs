//! Rounds as files of events for `TensorBoard`, a folder for each run.
//!
//! # Definition
//! Each number of a recorded round is a scalar under its column's name in the table `rounds`. The step is the round,
//! and wall time is the virtual time of its closing, in seconds. What was not measured has no event.
//!
//! A file is a sequence of records: length (8 bytes, little endian), masked checksum of the length, data, masked
//! checksum of the data. The checksum is CRC-32C; masked is `rotate_right(crc, 15) + 0xa282ead8`. Data are messages
//! `Event` of Protocol Buffers (`tensorboard/compat/proto/event.proto`).

use super::export::{Cells, Exported, ExportedTable, exported};
use super::source::Results;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::files::write_file;
use fedgenie_experiment::experiment::stored::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file in each folder; `TensorBoard` looks for `tfevents`.
const EVENTS_FILE: &str = "events.out.tfevents.0.fedgenie";

/// Columns that tell a round.
const KEY: [&str; 4] = ["seed", "point", "round", "closed_s"];

/// Writes the rounds of result folders for `TensorBoard`. Returns the files and warnings.
///
/// # Errors
/// As [`Reader::read`]; if a round cannot be read, a file is there already, or cannot be written.
pub fn export_tensorboard(folders: &[PathBuf], into: &Path, reader: &Reader<'_>) -> Result<Exported, Error> {
    let results = Results::load_all(folders, &reader.using_rounds())?;
    let rounds = exported(&results, "rounds")?.expect("there is a table of rounds");
    let runs = runs(&rounds, results.len() > 1);
    let paths: Vec<PathBuf> = runs.keys().map(|name| into.join(name).join(EVENTS_FILE)).collect();
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        let message = format!("{} is there already; give -o another folder, or delete it", path.display());
        return Err(Error::Usage(message));
    }
    let write = |(path, events): (&PathBuf, &Vec<u8>)| {
        let folder = path.parent().expect("a file in the folder of its run");
        fs::create_dir_all(folder).map_err(|source| Error::Write { path: path.clone(), source })?;
        write_file(path, events)
    };
    paths
        .iter()
        .zip(runs.values())
        .try_for_each(write)
        .inspect_err(|_: &Error| paths.iter().for_each(|path| drop(fs::remove_file(path))))?;
    let warnings = results.iter().flat_map(Results::warnings_of_runs).collect();
    Ok(Exported { paths, warnings })
}

/// Numbers of a row in some columns.
fn number(table: &ExportedTable, column: usize, row: usize) -> Option<f64> {
    match &table.columns[column].cells {
        Cells::Number(cells) => cells[row],
        Cells::Integer(cells) => cells[row].map(|cell| cell as f64),
        Cells::Text(_) => None,
    }
}

/// The files of all runs, by the names of their folders.
fn runs(table: &ExportedTable, has_folders: bool) -> BTreeMap<String, Vec<u8>> {
    let place = |name: &str| table.columns.iter().position(|column| column.name == name).expect("a column of rounds");
    let text = |name: &str, row: usize| match &table.columns[place(name)].cells {
        Cells::Text(texts) => texts.places[row].map_or("", |place| &texts.texts[place as usize]),
        Cells::Integer(_) | Cells::Number(_) => "",
    };
    let [seed, point, round, closed] = KEY.map(place);
    let points: BTreeSet<Option<u64>> =
        (0..table.rows).map(|row| number(table, point, row).map(|point| point as u64)).collect();
    let scalars: Vec<usize> = (0..table.columns.len())
        .filter(|&column| !KEY.contains(&&*table.columns[column].name))
        .filter(|&column| !matches!(table.columns[column].cells, Cells::Text(_)))
        .collect();
    let mut files = BTreeMap::new();
    for row in 0..table.rows {
        let whole = |column: usize| number(table, column, row).unwrap_or_default();
        let of_point = if points.len() > 1 { format!("-p{}", whole(point)) } else { String::new() };
        let mut name = format!("{}{of_point}-s{}", text("policy", row), whole(seed));
        if has_folders {
            name = format!("{}/{name}", text("folder", row));
        }
        let file: &mut Vec<u8> = files.entry(name).or_insert_with(|| {
            let mut file = Vec::new();
            record(&mut file, &version());
            file
        });
        let values =
            scalars.iter().filter_map(|&column| Some((&*table.columns[column].name, number(table, column, row)?)));
        record(file, &event(whole(closed), whole(round) as u64, values));
    }
    files
}

/// A field of bytes: its number, their length, and they.
fn bytes(message: &mut Vec<u8>, field: u8, content: &[u8]) {
    message.push(field << 3 | 2);
    varint(message, content.len() as u64);
    message.extend_from_slice(content);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        message.push(value as u8 | 0x80);
        value >>= 7;
    }
    message.push(value as u8);
}

/// The event that begins a file.
fn version() -> Vec<u8> {
    let mut message = vec![1 << 3 | 1];
    message.extend_from_slice(&0_f64.to_le_bytes());
    bytes(&mut message, 3, b"brain.Event:2");
    message
}

/// An event with scalars.
fn event<'a>(seconds: f64, step: u64, values: impl Iterator<Item = (&'a str, f64)>) -> Vec<u8> {
    let mut summary = Vec::new();
    for (name, value) in values {
        let mut scalar = Vec::new();
        bytes(&mut scalar, 1, name.as_bytes());
        scalar.push(2 << 3 | 5);
        scalar.extend_from_slice(&(value as f32).to_le_bytes());
        bytes(&mut summary, 1, &scalar);
    }
    let mut message = vec![1 << 3 | 1];
    message.extend_from_slice(&seconds.to_le_bytes());
    message.push(2 << 3);
    varint(&mut message, step);
    bytes(&mut message, 5, &summary);
    message
}

fn record(file: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    file.extend_from_slice(&length);
    file.extend_from_slice(&masked(&length).to_le_bytes());
    file.extend_from_slice(data);
    file.extend_from_slice(&masked(data).to_le_bytes());
}

fn masked(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(data: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !data.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    /// By hand, after the definition of Protocol Buffers.
    #[test]
    fn an_event_has_its_bytes() {
        let expected = [
            &[0x09][..],
            &1.5_f64.to_le_bytes(),
            &[0x10, 0xac, 0x02],
            &[0x2a, 0x0a, 0x0a, 0x08, 0x0a, 0x01, b'x', 0x15],
            &0.25_f32.to_le_bytes(),
        ];
        assert_eq!(event(1.5, 300, [("x", 0.25)].into_iter()), expected.concat());
    }
}
