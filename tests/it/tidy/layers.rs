//! Imports point one way: as the table of modules in ARCHITECTURE.md says.

use super::source::{Source, Violation, assert_named, assert_none, is_word, program, root};
use std::collections::BTreeMap;
use std::fs;

/// Crates from the bottom up, each with its modules in import order. A crate whose modules are not listed has none.
fn table(architecture: &str) -> Vec<(String, Vec<String>)> {
    let rows = architecture.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split(" | ");
        let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        (quoted(cells.next().unwrap()).remove(0), quoted(cells.next().unwrap()))
    };
    rows.map(row).collect()
}

/// The words behind each occurrence of a beginning of paths in a line.
fn named<'a>(code: &'a str, beginning: &'a str) -> impl Iterator<Item = &'a str> {
    code.match_indices(beginning).map(move |(index, _)| {
        let rest = &code[index + beginning.len()..];
        &rest[..rest.bytes().take_while(|&byte| is_word(byte)).count()]
    })
}

/// Imports against the table's order; how many imports were seen.
fn upward(table: &[(String, Vec<String>)], sources: &[Source]) -> (Vec<Violation>, usize) {
    let rank_of_crate = |name: &str| table.iter().position(|(path, _)| path.ends_with(name));
    let layered: BTreeMap<&str, &Vec<String>> = table
        .iter()
        .filter(|(path, modules)| path.starts_with("crates/") && !modules.is_empty())
        .map(|(path, modules)| (path.as_str(), modules))
        .collect();
    let (mut violations, mut seen) = (Vec::new(), 0);
    for source in sources.iter().filter(|source| !source.is_test()) {
        let (own_crate, rest) = match source.path.strip_prefix("crates/") {
            Some(rest) => match rest.split_once("/src/") {
                Some(parts) => parts,
                // What a build script uses is no part of the program.
                None => continue,
            },
            None => ("src", source.path.strip_prefix("src/").unwrap()),
        };
        let Some(own_rank) = rank_of_crate(own_crate) else {
            violations.push(source.as_a_whole(format!("{own_crate} is not in ARCHITECTURE's table")));
            continue;
        };
        let module = rest.split(['/', '.']).next().unwrap();
        let modules = layered.get(format!("crates/{own_crate}").as_str()).filter(|_| module != "lib");
        let own_place = modules.and_then(|modules| modules.iter().position(|known| known == module));
        if modules.is_some() && own_place.is_none() {
            violations.push(source.as_a_whole(format!("{module} of {own_crate} is not in ARCHITECTURE's table")));
        }
        for (index, code) in source.program().lines().enumerate() {
            let above =
                |name: &str, user: &str| source.at_line(index + 1, format!("{user} uses {name}, which is above it"));
            // The name that a crate has for itself, for what its derives write.
            if code.starts_with("extern crate self as ") {
                continue;
            }
            for (name, rank) in named(code, "fedgenie_").filter_map(|name| Some((name, rank_of_crate(name)?))) {
                seen += 1;
                violations.extend((rank >= own_rank).then(|| above(name, own_crate)));
            }
            let (Some(modules), Some(own)) = (modules, own_place) else { continue };
            let place = |name: &str| modules.iter().position(|known| known == name);
            for (name, used) in named(code, "crate::").filter_map(|name| Some((name, place(name)?))) {
                seen += 1;
                violations.extend((used > own).then(|| above(name, module)));
            }
        }
    }
    (violations, seen)
}

#[test]
fn modules_use_only_modules_above_them() {
    let table = table(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    assert!(table.len() >= 6, "{table:?}");
    let (violations, seen) = upward(&table, &program());
    assert_none(&violations);
    assert!(seen > 300, "imports are found: {seen}");
}

#[test]
fn an_import_from_above_is_named() {
    let table = table(
        "| crate | modules |\n|---|---|\n| `crates/core` | `text` `rng` |\n| `crates/learning` | `task` |\n| `src` | all |\n",
    );
    let found = |path: &str, code: &str| upward(&table, &[Source::new(path, &format!("//! Planted.\n{code}\n"))]).0;
    let rng = "crates/core/src/rng/deep.rs";
    assert_named(&found(rng, "use crate::text::x; // crate::task, fedgenie_learning"), &[]);
    assert_named(
        &found("crates/core/src/text.rs", "use crate::rng::x;"),
        &[("crates/core/src/text.rs:2", "text uses rng")],
    );
    assert_named(
        &found(rng, "use fedgenie_learning::task;"),
        &[("crates/core/src/rng/deep.rs:2", "core uses learning")],
    );
    assert_named(&found("crates/learning/src/task.rs", "use fedgenie_core::rng;"), &[]);
    assert_named(&found("src/cli.rs", "use fedgenie_core::rng;\nuse fedgenie_learning::task;"), &[]);
    assert_named(&found("crates/core/src/lost.rs", ""), &[("crates/core/src/lost.rs", "lost of core is not in")]);
    assert_named(&found("crates/more/src/lib.rs", ""), &[("crates/more/src/lib.rs", "more is not in")]);
}
