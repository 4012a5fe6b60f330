//! Files are short, begin with their purpose, and repeat nothing.

use super::source::{Source, Violation, assert_named, assert_none, program, sources};
use std::collections::BTreeMap;

/// Most lines of a file, and most columns of a line.
const MOST_LINES: usize = 500;
const MOST_COLUMNS: usize = 120;

/// Lines of code, without blank ones and comments, that may stand in two places.
const MOST_REPEATED: usize = 15;

fn shape(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    if !source.text.starts_with("//! ") {
        violations.push(source.as_a_whole("does not say in its first line what it is"));
    }
    // A table of cases may be long.
    let lines = if source.path.starts_with("tests/") { 0 } else { source.text.lines().count() };
    if lines > MOST_LINES {
        violations.push(source.as_a_whole(format!("has {lines} lines; at most {MOST_LINES}")));
    }
    for (index, line) in source.text.lines().enumerate() {
        // rustfmt breaks neither texts nor tables.
        let is_text = line.contains('"')
            || line.ends_with('\\')
            || ["//! |", "/// |"].iter().any(|table| line.trim_start().starts_with(table));
        let columns = if is_text { 0 } else { line.chars().count() };
        if columns > MOST_COLUMNS {
            violations.push(source.at_line(index + 1, format!("{columns} columns; at most {MOST_COLUMNS}")));
        }
    }
    violations
}

#[test]
fn every_file_is_short_and_says_what_it_is() {
    let sources =
        sources(&["src", "crates", "python/src", "tests", "benches", "examples", "fuzz/src", "fuzz/fuzz_targets"]);
    assert_none(&sources.iter().flat_map(shape).collect::<Vec<_>>());
}

#[test]
fn a_long_file_a_long_line_and_a_file_without_its_first_line_are_named() {
    let name = "crates/core/src/planted.rs";
    let long = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
    assert_named(&shape(&Source::new(name, &long(501))), &[(name, "501 lines")]);
    assert_named(&shape(&Source::new(name, &long(500))), &[]);
    assert_named(&shape(&Source::new("tests/it/planted.rs", &long(501))), &[]);
    assert_named(&shape(&Source::new(name, "use std::fmt;\n")), &[(name, "first line")]);
    let line = |columns: usize| format!("//! Wide.\n//{}\n", "é".repeat(columns - 2));
    assert_named(&shape(&Source::new(name, &line(121))), &[(&format!("{name}:2"), "121 columns")]);
    assert_named(&shape(&Source::new(name, &line(120))), &[]);
    assert_named(&shape(&Source::new(name, &format!("//! Table.\n//! | {} |\n", "x".repeat(130)))), &[]);
}

fn repeated(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut seen: BTreeMap<Vec<&str>, String> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let lines: Vec<(usize, &str)> =
            source.code().map(|(number, line)| (number, line.trim())).filter(|(_, line)| line.len() > 1).collect();
        for window in lines.windows(MOST_REPEATED + 1) {
            let block: Vec<&str> = window.iter().map(|&(_, line)| line).collect();
            let here = window[0].0;
            if let Some(there) = seen.insert(block, format!("{}:{here}", source.path)) {
                violations.push(source.at_line(here, format!("repeats more than {MOST_REPEATED} lines of {there}")));
            }
        }
    }
    violations
}

#[test]
fn no_block_stands_twice() {
    assert_none(&repeated(&program()));
}

#[test]
fn a_block_that_stands_twice_is_named() {
    let block = |lines: usize| (0..lines).map(|line| format!("    let x{line} = {line};\n")).collect::<String>();
    let files = |lines: usize, second: &str| {
        let first = Source::new("crates/core/src/a.rs", &format!("//! A.\n{}", block(lines)));
        [first, Source::new(second, &format!("//! B.\n\n// As A.\n{}", block(lines)))]
    };
    let second = "crates/core/src/b.rs";
    assert_named(&repeated(&files(16, second)), &[("crates/core/src/b.rs:4", "crates/core/src/a.rs:2")]);
    assert_named(&repeated(&files(15, second)), &[]);
    assert_named(&repeated(&files(16, "crates/core/src/b/tests.rs")), &[]);
}
