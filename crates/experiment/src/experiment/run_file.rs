//! `run.json`: the summary and course of a complete run, the build that made it, the digests of its other files, and
//! its own.

mod possible;

use super::artefacts::{RUN_FILE, hash};
use super::files::write_file;
use super::shelf::Shelf;
use super::summary::RunWithCurve;
use super::{CurvePoint, RunSummary, build};
use crate::error::Error;
use fedgenie_core::metric::Names;
use fedgenie_simulator::metrics::Clients;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A file as it was when its run was complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its length.
    pub bytes: u64,
    /// BLAKE3, in hexadecimal.
    pub blake3: String,
}

/// Record that a build has replayed the first rounds of another build's run, and found them the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Accepted {
    /// The build that did so last.
    pub build: String,
    /// How many rounds.
    pub rounds: u32,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    run: RunWithCurve<'a>,
    /// The build that made the run.
    build: &'a str,
    /// The other files of the run.
    files: BTreeMap<String, FileDigest>,
    /// Digest of this file, with an empty text in this place.
    blake3: &'a str,
}

/// A list without room for more: of many runs, it is a third of their memory.
fn exactly<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = items.collect();
    list.shrink_to_fit();
    list
}

/// The end of the file, with its digest.
fn end(digest: &str) -> String {
    format!("\"blake3\": \"{digest}\"\n}}\n")
}

/// Writes the file.
pub(super) fn write(path: &Path, run: &RunSummary, files: BTreeMap<String, FileDigest>) -> Result<(), Error> {
    let text = text_of(&Document { run: run.with_curve(), build: build(), files, blake3: "" })
        .map_err(|error| Error::Write { path: path.to_owned(), source: error.into() })?;
    write_file(path, text.as_bytes())
}

/// The text of a document whose last key has the place for the digest.
fn text_of(document: &impl Serialize) -> serde_json::Result<String> {
    let text = format!("{}\n", serde_json::to_string_pretty(document)?);
    let start = text.strip_suffix(&end("")).expect("the digest is the last key");
    Ok(format!("{start}{}", end(&hash(text.as_bytes()))))
}

/// What a `run.json` holds beside the results of the run.
#[derive(Debug, Deserialize)]
struct Beside {
    #[serde(default)]
    build: Value,
    #[serde(default)]
    accepted: Value,
    #[serde(default)]
    files: Value,
    #[serde(default)]
    blake3: Value,
}

/// The course in a `run.json`.
#[derive(Debug, Deserialize)]
struct Course {
    curve: Vec<CurvePoint<Map<String, Value>>>,
}

/// The clients of a run, as its `run.json` has them; `None` if it has none.
///
/// # Errors
/// If the file cannot be read, or holds something else.
pub fn clients_of(files: &Shelf, run: &str) -> io::Result<Option<Clients>> {
    #[derive(Deserialize)]
    struct Document {
        #[serde(default)]
        metrics: Metrics,
    }
    #[derive(Default, Deserialize)]
    struct Metrics {
        clients: Option<Clients>,
    }
    let text = files.read_to_string(&Shelf::name(run, RUN_FILE))?;
    Ok(serde_json::from_str::<Document>(&text)?.metrics.clients)
}

/// The contents of a `run.json`.
#[derive(Debug)]
pub(super) struct RunFile {
    /// Its text. It is read for what is asked of it: a document with all of it takes ten times the room, a hundred
    /// thousand times.
    text: String,
    beside: Beside,
    /// Whether it is unchanged, by its own digest.
    pub(super) is_whole: bool,
}

impl RunFile {
    /// The file of a run, if it is a plain file with JSON.
    pub(super) fn read(files: &Shelf, run: &str) -> Option<Self> {
        Self::of(files.read_to_string(&Shelf::name(run, RUN_FILE)).ok()?)
    }

    /// The contents of its text, if it is JSON.
    pub(super) fn of(text: String) -> Option<Self> {
        let beside: Beside = serde_json::from_str(&text).ok()?;
        let is_whole = beside.blake3.as_str().is_some_and(|digest| {
            let start = text.strip_suffix(&end(digest));
            start.is_some_and(|start| hash(format!("{start}{}", end("")).as_bytes()) == digest)
        });
        Some(Self { text, beside, is_whole })
    }

    /// All of it.
    fn document(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Summary and course; `None` if they are not plausible.
    pub(super) fn summary(&self) -> Option<RunSummary> {
        let Course { curve: points } = serde_json::from_str(&self.text).ok()?;
        let summary: RunSummary = serde_json::from_str(&self.text).ok()?;
        let names = Names::of(&summary.measured);
        let point = |point: CurvePoint<Map<String, Value>>| {
            // JSON has no NaN: the loss of a model that diverged is null.
            let metric = |(name, value): (String, Value)| (names.read(&name), value.as_f64().unwrap_or(f64::NAN));
            point.map_metrics(|metrics| exactly(metrics.into_iter().map(metric)))
        };
        let curve = exactly(points.into_iter().map(point));
        let mut summary = RunSummary { curve, ..summary };
        let is_possible = possible::is_possible(&summary);
        // Of a hundred thousand runs there is no room for a thousand clients each, nor for room for more.
        summary.metrics.clients = None;
        summary.metrics.durations.bins.shrink_to_fit();
        is_possible.then_some(summary)
    }

    /// The build that made the run; empty if it is not known.
    pub(super) fn build(&self) -> &str {
        self.beside.build.as_str().unwrap_or_default()
    }

    /// Whether this build has made the run, or has replayed its first rounds.
    pub(super) fn is_of_this_build(&self) -> bool {
        let accepted: Option<Accepted> = Deserialize::deserialize(&self.beside.accepted).ok();
        self.build() == build() || accepted.is_some_and(|accepted| accepted.build == build())
    }

    /// Its text with a note that this build has replayed so many rounds of the run.
    ///
    /// # Errors
    /// If it cannot be written as JSON.
    pub(super) fn accepted(self, rounds: u32) -> serde_json::Result<String> {
        let accepted = Accepted { build: build().to_owned(), rounds };
        let mut document = self.document();
        if let Some(object) = document.as_object_mut() {
            object.shift_remove("blake3");
            object.insert("accepted".to_owned(), serde_json::json!(accepted));
            object.insert("blake3".to_owned(), "".into());
        }
        text_of(&document)
    }

    /// The digests of the other files.
    pub(super) fn files(&self) -> Result<BTreeMap<String, FileDigest>, serde_json::Error> {
        Deserialize::deserialize(&self.beside.files)
    }

    /// The results of the run, without fields about files.
    pub(super) fn into_results(self) -> Value {
        let mut document = self.document();
        if let Some(object) = document.as_object_mut() {
            // In order: removing a key must leave no gap that another key fills.
            for key in ["build", "accepted", "files", "blake3"] {
                object.shift_remove(key);
            }
        }
        document
    }
}
