//! Every file is a module that another file declares, where rustfmt sees it.

use super::source::{Source, Violation, assert_named, assert_none, past_space, places_of, program, sources, word};
use std::collections::{BTreeMap, BTreeSet};

/// Files that Cargo compiles, from which all others are reached.
fn is_root(path: &str) -> bool {
    ["/src/lib.rs", "/src/main.rs", "/build.rs", "tests/it/main.rs"].iter().any(|root| path.ends_with(root))
        || ["src/lib.rs", "src/main.rs"].contains(&path)
        // Tests of a crate from outside.
        || path.starts_with("crates/") && path.rsplit_once('/').is_some_and(|(folder, _)| folder.ends_with("/tests"))
}

/// Names of the modules that a file declares without their bodies.
fn declared(source: &Source) -> impl Iterator<Item = &str> {
    places_of(&source.plain, "mod").filter_map(|at| {
        let name = word(&source.plain, past_space(&source.plain, at + 3));
        let after = past_space(&source.plain, at + 3) + name.len();
        (!name.is_empty() && source.plain[past_space(&source.plain, after)..].starts_with(';')).then_some(name)
    })
}

fn unreached(sources: &[Source]) -> Vec<Violation> {
    let known: BTreeMap<&str, &Source> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Source> = sources.iter().filter(|source| is_root(&source.path)).collect();
    while let Some(source) = waiting.pop() {
        if !reached.insert(source.path.as_str()) {
            continue;
        }
        let (folder, file) = source.path.rsplit_once('/').expect("a file lies in a folder");
        let below = if is_root(&source.path) { folder.to_owned() } else { source.path.replace(".rs", "") };
        assert_ne!(file, "mod.rs", "{folder}: a module's file stands beside its folder");
        waiting.extend(declared(source).filter_map(|name| known.get(format!("{below}/{name}.rs").as_str()).copied()));
    }
    let lost = sources.iter().filter(|source| !reached.contains(source.path.as_str()));
    lost.map(|source| source.as_a_whole("no file declares this module, so nothing compiles it")).collect()
}

fn hidden(source: &Source) -> Vec<Violation> {
    let lines = source.code().filter(|(_, line)| line.contains("mod $") && line.contains(';'));
    lines.map(|(line, _)| source.at_line(line, "a module is declared inside a macro")).collect()
}

#[test]
fn every_file_is_declared_by_another() {
    let mut all = program();
    all.extend(sources(&["tests/it"]));
    assert_none(&unreached(&all));
}

#[test]
fn a_file_that_nothing_declares_is_named() {
    let file = |path: &str, text: &str| Source::new(path, text);
    let mut files = vec![
        file("crates/core/src/lib.rs", "//! Root.\npub mod a;\nmod inline { fn f() {} }\n// mod lost;\n"),
        file("crates/core/src/a.rs", "//! A.\nmod b;\n#[cfg(test)]\nmod tests;\n"),
        file("crates/core/src/a/b.rs", "//! B.\n"),
        file("crates/core/src/a/tests.rs", "//! Tests.\n"),
        file("tests/it/main.rs", "//! Tests.\nmod other;\n"),
        file("tests/it/other.rs", "//! Others.\n"),
    ];
    assert_named(&unreached(&files), &[]);
    files.push(file("crates/core/src/lost.rs", "//! Lost.\nmod deeper;\n"));
    files.push(file("crates/core/src/lost/deeper.rs", "//! Deeper.\n"));
    // Declared by its neighbour, not by the file above it.
    files.push(file("crates/core/src/b.rs", "//! B.\n"));
    let said = "no file declares";
    let lost = ["crates/core/src/lost.rs", "crates/core/src/lost/deeper.rs", "crates/core/src/b.rs"];
    assert_named(&unreached(&files), &lost.map(|path| (path, said)));
}

#[test]
fn modules_are_declared_where_rustfmt_sees_them() {
    assert_none(&program().iter().flat_map(hidden).collect::<Vec<_>>());
    let planted =
        Source::new("src/planted.rs", "//! Planted.\nmacro_rules! m {\n    ($name:ident) => { mod $name; }\n}\n");
    assert_named(&hidden(&planted), &[("src/planted.rs:3", "inside a macro")]);
    let clean = Source::new("src/clean.rs", "//! Clean.\n// mod $name;\nmod name;\nmod $name { }\n");
    assert_named(&hidden(&clean), &[]);
}
