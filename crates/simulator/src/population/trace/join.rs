//! Joins the records of several files by client.
//!
//! # Definition
//! With a `key`, records are taken in the order of their names in that column, and no longer in the order of the file.
//! The files of a group with keys have the same names, so that client i of the group has the same name in all of them.
//! Without a key the order of a file's rows decides.

use fedgenie_core::config::Complaint;
use fedgenie_core::text::quoted;
use std::path::PathBuf;
use std::sync::Arc;

/// A file whose records go to the clients of a group.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where the group names it, such as `device.uplink`.
    pub path: String,
    /// The file.
    pub file: PathBuf,
    /// The kind of record: `rows` or `traces`.
    pub records: &'static str,
    /// How many there are.
    pub count: usize,
    /// The names in the key's column, ascending; `None` without a key.
    pub names: Option<Arc<[String]>>,
    /// Whether the file could have a key.
    pub has_names: bool,
}

/// Sorts records by their names, each of which has occurred once.
pub fn sorted_by_name<T>(names: Vec<String>, records: Vec<T>) -> (Arc<[String]>, Vec<T>) {
    let mut named: Vec<(String, T)> = names.into_iter().zip(records).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    let (names, records): (Vec<String>, Vec<T>) = named.into_iter().unzip();
    (names.into(), records)
}

/// Checks that the files of a group with keys have the same names. Warnings about the other files are added to the
/// notes. The path of a complaint is below the group.
pub fn check(sources: &[Source], clients: usize, notes: &mut Vec<String>) -> Result<(), Complaint> {
    for Source { file, records, count, .. } in sources.iter().filter(|source| source.count < clients) {
        notes.push(format!("{}: {count} {records} for {clients} clients, repeated", file.display()));
    }
    let keyed: Vec<(&Source, &[String])> =
        sources.iter().filter_map(|source| Some((source, source.names.as_deref()?))).collect();
    if let [(first, expected), rest @ ..] = &keyed[..] {
        for (source, found) in rest {
            let lacking = |names: &[String], of: &[String]| {
                names.iter().find(|name| of.binary_search(name).is_err()).map(|name| quoted(name))
            };
            let (here, there) = (source.file.display(), first.file.display());
            let message = match (lacking(expected, found), lacking(found, expected)) {
                (Some(name), _) => format!("found no {name} in the column of the key of {here}; {there} has it"),
                (None, Some(name)) => format!("found {name} in the column of the key of {here}; {there} lacks it"),
                (None, None) => continue,
            };
            let message = format!("{message}. Files that are joined by name have the same names");
            return Err(Complaint::new(source.path.clone(), message));
        }
    }
    let by_order: Vec<&Source> = sources.iter().filter(|source| source.has_names && source.names.is_none()).collect();
    let files: std::collections::BTreeSet<&PathBuf> = by_order.iter().map(|source| &source.file).collect();
    if files.len() > 1 || (files.len() == 1 && !keyed.is_empty()) {
        let files: Vec<String> = files.into_iter().map(|file| file.display().to_string()).collect();
        notes.push(format!(
            "{}: joined to clients by the order of the rows; a key = \"COLUMN\" in each file's table joins by name",
            files.join(", ")
        ));
    }
    Ok(())
}
