//! The bans of `clippy.toml` hold where clippy is not installed, too; some crates are named in one file.

use super::source::{Source, Violation, assert_named, assert_none, program, root};
use std::fs;

/// Code that may use items banned by `clippy.toml`, as the reason in each file says: the replacements themselves,
/// lanes, a clock that no result depends on.
const MAY_USE_BANNED: [&str; 6] = [
    "core/src/math/float.rs",
    "learning/src/lanes.rs",
    "core/src/halt.rs",
    "experiment/src/experiment/clock.rs",
    "validation/src/clock.rs",
    "src/cli/progress/clock.rs",
];

/// Crates that one file alone names, so that another one can take their place there.
const BEHIND_ONE_FILE: [(&str, &str); 2] =
    [("rand_chacha", "crates/core/src/rng/stream.rs"), ("rand_core", "crates/core/src/rng/stream.rs")];

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

fn uses_of(banned: &[String], source: &Source) -> Vec<Violation> {
    if MAY_USE_BANNED.iter().any(|path| source.path.ends_with(path)) || source.is_test() {
        return Vec::new();
    }
    // `Lanes` has methods of the names of those of `f32`.
    let is_on_lanes = source.text.contains("lanes::") || source.path.contains("/lanes/");
    let mut violations = Vec::new();
    for (index, code) in source.program().lines().enumerate() {
        for name in banned.iter().filter(|name| !(is_on_lanes && name.starts_with('.')) && names(code, name)) {
            violations.push(source.at_line(index + 1, format!("{name} is banned in clippy.toml")));
        }
    }
    violations
}

fn names_of_crates(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (name, file) in BEHIND_ONE_FILE.into_iter().filter(|(_, file)| source.path != *file) {
        let lines = source.plain.lines().enumerate().filter(|(_, code)| names(code, name));
        violations.extend(lines.map(|(index, _)| source.at_line(index + 1, format!("{file} alone names {name}"))));
    }
    violations
}

#[test]
fn what_clippy_bans_is_not_used_where_clippy_is_not_installed_either() {
    let banned = banned();
    assert_none(&program().iter().flat_map(|source| uses_of(&banned, source)).collect::<Vec<_>>());
}

#[test]
fn what_is_banned_is_named() {
    let banned = banned();
    let found = |path: &str, text: &str| uses_of(&banned, &Source::new(path, text));
    let path = "crates/core/src/planted.rs";
    let code = "//! Planted.\n// HashMap\nuse std::collections::HashMap;\nlet y = x.sin();\nlet text = \"HashMap\";\n";
    let planted = [("crates/core/src/planted.rs:3", "HashMap"), ("crates/core/src/planted.rs:4", ".sin(")];
    assert_named(&found(path, code), &planted);
    assert_named(&found(path, "//! Clean.\nuse crate::MyHashMap;\nlet y = sin(x);\n"), &[]);
    assert_named(&found(path, "//! Tests.\n#[cfg(test)]\nmod tests { use std::collections::HashMap; }\n"), &[]);
    assert_named(&found("crates/core/src/math/float.rs", code), &[]);
    // Methods of lanes are no methods of numbers, types are banned there as elsewhere.
    let code = "//! Lanes.\nuse crate::lanes::Lanes;\nlet y = x.mul_add(a, b);\nlet z = HashMap::new();\n";
    assert_named(&found(path, code), &[("crates/core/src/planted.rs:4", "HashMap")]);
}

#[test]
fn a_crate_behind_one_file_is_named_there_alone() {
    assert_none(&program().iter().flat_map(names_of_crates).collect::<Vec<_>>());
    let file = BEHIND_ONE_FILE[0].1;
    let there = program().into_iter().find(|source| source.path == file).expect("the file is there");
    assert!(there.plain.contains(BEHIND_ONE_FILE[0].0), "{file} no longer needs its place in the list");
    let planted = Source::new("crates/core/src/planted.rs", "//! `rand_chacha`.\nuse rand_chacha::ChaCha8Rng;\n");
    assert_named(&names_of_crates(&planted), &[("crates/core/src/planted.rs:2", "alone names rand_chacha")]);
    assert_named(&names_of_crates(&Source::new(file, &planted.text)), &[]);
}
