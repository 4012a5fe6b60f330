//! Files that a scenario may read: those below its own folder and below that of `--data`, links resolved.
//!
//! A scenario is untrusted, and errors about a file quote its contents. So names of files are checked before anything
//! is opened. Texts of `population` and `task` are taken for names of files if finding them
//! ([`PopulationConfig::resolve_paths`], [`TaskConfig::resolve_paths`]) changed them, or if they are absolute: no
//! component has to declare its file names.
//!
//! A result folder records where its scenario's files were. It is untrusted as well, so that these folders alone open
//! nothing: a file in them is read only if its contents are known, that is, if the folder has the BLAKE3 digest of just
//! this file.

use super::read::ScenarioError;
use super::tree::{self, Node};
use fedgenie_core::text::quoted;
use fedgenie_simulator::population::PopulationConfig;
use fedgenie_simulator::task::{TaskConfig, files};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where the files of a scenario are, and which of them may be read.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The folder that names of files start from.
    pub base: PathBuf,
    /// The folder of data sets, in which they are looked for first.
    pub data: Option<PathBuf>,
    /// Whether a scenario may read everything that its user may.
    pub anywhere: bool,
    /// The folders below which it may read; [`Self::base`] and [`Self::data`] unless a result folder recorded them.
    pub trusted: Vec<PathBuf>,
    /// BLAKE3 of files below recorded folders, by their names as in [`Self::name_of`].
    pub known: BTreeMap<String, String>,
    /// Whether the caller compares the files with [`Self::known`] itself, before any is opened.
    pub compares: bool,
}

impl Reach {
    /// Files below a folder, which names of files start from, and below the folder of data sets, if there is one.
    pub fn below(base: &Path, data: Option<&Path>) -> Self {
        let trusted = [base].into_iter().chain(data).map(Path::to_owned).collect();
        Self { base: base.to_owned(), data: data.map(Path::to_owned), trusted, ..Self::default() }
    }

    /// A file by its name as far as it is below the folder of data sets or of the scenario.
    pub fn name_of(&self, path: &Path) -> String {
        let mut folders = self.data.iter().chain([&self.base]);
        let name = folders.find_map(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        name.to_string_lossy().replace('\\', "/")
    }

    /// Finds the files of a population and a task, and checks them. Returns the existing ones.
    pub(super) fn resolve(
        &self,
        whole: &Node,
        population: &mut PopulationConfig,
        task: &mut TaskConfig,
    ) -> Result<Vec<PathBuf>, ScenarioError> {
        let written = [json(population), json(task)];
        // In an empty base a name would stay as it is.
        let base = if self.base.as_os_str().is_empty() { Path::new(".") } else { &self.base };
        population.resolve_paths(base, self.data.as_deref());
        task.resolve_paths(base, self.data.as_deref());
        let mut found = BTreeMap::new();
        for (before, after) in written.iter().zip([json(population), json(task)]) {
            collect(before, &after, &mut found);
        }
        let mut there = BTreeSet::new();
        for (path, name) in &found {
            self.check(path).map_err(|message| refuse(whole, name, &message))?;
            if path.is_file() {
                there.insert(path.clone());
            }
        }
        // Files of folders, which may be links to anywhere.
        for path in files(task.as_settings()) {
            if there.contains(&path) {
                continue;
            }
            let folder = found.iter().find(|(folder, _)| path.starts_with(folder));
            let name = folder.map_or_else(|| path.to_string_lossy().into_owned(), |(_, name)| name.clone());
            self.check(&path).map_err(|message| refuse(whole, &name, &message))?;
            if path.is_file() {
                there.insert(path);
            }
        }
        Ok(there.into_iter().collect())
    }

    /// Checks that a file may be read, if it is there.
    fn check(&self, path: &Path) -> Result<(), String> {
        if self.anywhere {
            return Ok(());
        }
        // A missing file reveals nothing.
        let Ok(real) = path.canonicalize() else { return Ok(()) };
        let is_below = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        let is_plain = real.is_file() || real.is_dir();
        let recorded = || self.data.iter().chain([&self.base]).any(is_below);
        if !is_plain {
            Err("which is neither a file nor a folder".to_owned())
        } else if self.trusted.iter().any(is_below) {
            Ok(())
        } else if !recorded() {
            Err("which lies neither below the scenario's folder nor below that of --data".to_owned())
        } else if real.is_dir() || self.is_known(path) {
            Ok(())
        } else {
            Err("which lies in a folder that the result folder names, and is not the file whose BLAKE3 digest it has; \
                 give the folder with --data"
                .to_owned())
        }
    }

    fn is_known(&self, path: &Path) -> bool {
        let known = self.known.get(&self.name_of(path));
        known.is_some_and(|known| self.compares || digest(path).is_ok_and(|digest| digest == *known))
    }
}

/// BLAKE3 of a file.
fn digest(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.finalize().to_hex().to_string())
}

fn json(config: &impl Serialize) -> Value {
    serde_json::to_value(config).expect("a section has only values that JSON can write")
}

/// Names of files: path, and the text that was written.
fn collect(before: &Value, after: &Value, found: &mut BTreeMap<PathBuf, String>) {
    match (before, after) {
        (Value::String(before), Value::String(after)) if before != after || Path::new(after).is_absolute() => {
            found.insert(PathBuf::from(after), before.clone());
        }
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).for_each(|(before, after)| collect(before, after, found));
        }
        (Value::Object(before), Value::Object(after)) => {
            for (key, after) in after {
                collect(before.get(key).unwrap_or(&Value::Null), after, found);
            }
        }
        _ => {}
    }
}

fn refuse(whole: &Node, name: &str, message: &str) -> ScenarioError {
    let message = format!("found {}, {message}; --allow-paths reads it nevertheless", quoted(name));
    let mut path = Vec::new();
    let is_found = find(whole, name, &mut path);
    ScenarioError::new(whole, if is_found { path.join(".") } else { String::new() }, message)
}

/// Where a text stands.
fn find(node: &Node, text: &str, path: &mut Vec<String>) -> bool {
    let below = |key: String, node: &Node, path: &mut Vec<String>| {
        path.push(key);
        let is_found = find(node, text, path);
        if !is_found {
            path.pop();
        }
        is_found
    };
    match &node.value {
        tree::Value::Text(found) => found == text,
        tree::Value::List(items) => {
            (0..).zip(items).any(|(index, node): (usize, _)| below(index.to_string(), node, path))
        }
        tree::Value::Table(entries) => entries.iter().any(|(key, node)| below(key.clone(), node, path)),
        _ => false,
    }
}
