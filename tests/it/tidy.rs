//! The shape of the source, as far as a machine can see it.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.sort();
    assert!(found.len() > 50, "the sources are where they are looked for");
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_file_is_a_room_with_a_sign_on_its_door() {
    for (path, text) in all_sources() {
        assert!(text.starts_with("//! "), "{} does not say in its first line what it is", path.display());
        assert!(text.lines().count() <= 500, "{} has more than 500 lines", path.display());
    }
}

#[test]
fn what_could_break_replay_is_not_used() {
    for (path, text) in all_sources() {
        // Shows how long validations took; no result depends on it.
        if path.ends_with("validation/clock.rs") {
            continue;
        }
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for (number, line) in code.enumerate() {
            for banned in ["HashMap", "HashSet", "SystemTime", "thread_rng", "Instant::now"] {
                assert!(!line.contains(banned), "{}: {banned} in code line {}", path.display(), number + 1);
            }
        }
    }
}

/// A policy's file says what it is, where it comes from, and in what it differs from there.
#[test]
fn every_policy_is_documented_in_full() {
    for entry in fedgenie::policy::CATALOGUE.entries {
        for heading in ["Definition", "Inputs", "Source", "Deviations from the source", "Cost", "Determinism"] {
            assert!(entry.source.contains(&format!("//! # {heading}\n")), "{} lacks {heading}", entry.name);
        }
    }
}
