//! The shape of the source, as far as a machine can see it.

mod coverage;
mod layers;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Most lines of a file, and most columns of a line.
const MOST_LINES: usize = 500;
const MOST_COLUMNS: usize = 120;

/// Lines of code, without blank ones and comments, that may stand in two places.
const MOST_REPEATED: usize = 15;

/// Code that may use what `clippy.toml` bans, as the reason in each file says: the replacements themselves, lanes, a
/// clock that no result depends on.
const MAY_USE_BANNED: [&str; 4] = [
    "core/src/math/float.rs",
    "learning/src/lanes.rs",
    "experiment/src/experiment/clock.rs",
    "validation/src/clock.rs",
];

/// A file of the source.
struct Source {
    /// Below the project's folder.
    path: String,
    text: String,
}

impl Source {
    fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }

    /// Number and text of each line outside comments and, but for files of tests, before the unit tests.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = if self.is_test() { None } else { self.text.find("#[cfg(test)]\nmod ") };
        let lines = self.text[..end.unwrap_or(self.text.len())].lines().enumerate();
        lines.map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| find(&root().join(folder), &mut found));
    found.sort();
    assert!(found.len() > 5, "the sources are where they are looked for");
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
    found.into_iter().map(|path| Source { path: name(&path), text: fs::read_to_string(path).unwrap() }).collect()
}

/// The library and the command line.
fn program() -> Vec<Source> {
    let mut program = sources(&["src", "crates"]);
    program.retain(|source| !source.path.contains("/benches/"));
    program
}

#[test]
fn every_file_is_short_and_says_what_it_is() {
    for Source { path, text } in
        sources(&["src", "crates", "tests", "benches", "examples", "fuzz/src", "fuzz/fuzz_targets"])
    {
        assert!(text.starts_with("//! "), "{path} does not say in its first line what it is");
        // A table of cases may be long.
        let lines = if path.starts_with("tests/") { 0 } else { text.lines().count() };
        assert!(lines <= MOST_LINES, "{path} has {lines} lines; at most {MOST_LINES}");
        for (index, line) in text.lines().enumerate() {
            // rustfmt breaks neither texts nor tables.
            let is_text = line.contains('"')
                || line.ends_with('\\')
                || ["//! |", "/// |"].iter().any(|table| line.trim_start().starts_with(table));
            let columns = if is_text { 0 } else { line.chars().count() };
            assert!(columns <= MOST_COLUMNS, "{path}:{}: {columns} columns; at most {MOST_COLUMNS}", index + 1);
        }
    }
}

/// Paths that `clippy.toml` bans, as code would name them.
fn banned() -> Vec<String> {
    let config: toml::Value = toml::from_str(&fs::read_to_string(root().join("clippy.toml")).unwrap()).unwrap();
    let paths = |key: &str| {
        let entries = config[key].as_array().unwrap().iter();
        entries.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut banned = Vec::new();
    for path in paths("disallowed-types") {
        banned.push(path.rsplit("::").next().unwrap().to_owned());
    }
    for path in paths("disallowed-methods") {
        let mut parts = path.rsplit("::");
        let (method, owner) = (parts.next().unwrap(), parts.next().unwrap());
        banned.push(format!("{owner}::{method}"));
        // A method of a number is called on one.
        if ["f32", "f64"].contains(&owner) {
            banned.push(format!(".{method}("));
        }
    }
    assert!(banned.len() > 40 && banned.iter().any(|name| name == "HashMap"), "{banned:?}");
    banned
}

/// Whether a line has a name, not as a part of a longer one.
fn names(line: &str, name: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    line.match_indices(name).any(|(index, _)| {
        let before = line[..index].chars().next_back();
        let after = line[index + name.len()..].chars().next();
        (name.starts_with('.') || !is_word(before)) && (name.ends_with('(') || !is_word(after))
    })
}

#[test]
fn what_clippy_bans_is_not_used_where_clippy_is_not_installed_either() {
    let banned = banned();
    for source in program() {
        if MAY_USE_BANNED.iter().any(|path| source.path.ends_with(path)) || source.is_test() {
            continue;
        }
        // `Lanes` has methods of the names of those of `f32`.
        let is_on_lanes = source.text.contains("lanes::") || source.path.contains("/lanes/");
        for (line, code) in source.code() {
            for name in banned.iter().filter(|name| !(is_on_lanes && name.starts_with('.'))) {
                assert!(!names(code, name), "{}:{line}: {name} is banned in clippy.toml", source.path);
            }
        }
    }
}

#[test]
fn modules_are_declared_where_rustfmt_sees_them() {
    for source in program() {
        let hidden = source.code().find(|(_, line)| line.contains("mod $") && line.contains(';'));
        assert!(hidden.is_none(), "{}: a module is declared inside a macro: {hidden:?}", source.path);
    }
}

#[test]
fn no_block_stands_twice() {
    let mut seen: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for source in program().iter().filter(|source| !source.is_test()) {
        let lines: Vec<(usize, &str)> =
            source.code().map(|(number, line)| (number, line.trim())).filter(|(_, line)| line.len() > 1).collect();
        for window in lines.windows(MOST_REPEATED + 1) {
            let block: Vec<String> = window.iter().map(|(_, line)| (*line).to_owned()).collect();
            let here = format!("{}:{}", source.path, window[0].0);
            if let Some(there) = seen.insert(block, here.clone()) {
                panic!("{here} repeats more than {MOST_REPEATED} lines of {there}");
            }
        }
    }
}
