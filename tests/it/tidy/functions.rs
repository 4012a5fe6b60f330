//! A function fits a screen: at most 70 lines between its braces.

use super::source::{Source, Violation, assert_named, assert_none, past_space, places_of, program, word};
use std::collections::BTreeMap;

const MOST_LINES: usize = 70;

/// Functions that are longer, with their lengths. The list may only shrink.
const LONGER: [(&str, &str, usize); 4] = [
    ("crates/core/src/record/encode.rs", "encode", 86),
    ("crates/experiment/src/experiment/play.rs", "play", 93),
    ("crates/experiment/src/experiment/table.rs", "table", 95),
    ("crates/simulator/src/population/trace/link.rs", "read_own", 72),
];

/// Where the braces that open at a place close.
fn closing(plain: &str, opening: usize) -> Option<usize> {
    let mut depth = 0;
    plain.as_bytes()[opening..]
        .iter()
        .position(|byte| {
            depth += match byte {
                b'{' => 1,
                b'}' => -1,
                _ => 0,
            };
            depth == 0
        })
        .map(|length| opening + length)
}

/// Where the body of a function opens whose name ends at a place; `None` without a body.
fn opening(plain: &str, mut at: usize) -> Option<usize> {
    let (mut depth, mut before) = (0, b' ');
    while let Some(&byte) = plain.as_bytes().get(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return None,
            // A constant of a type.
            b'{' if before == b'<' => at = closing(plain, at)?,
            b'{' if depth == 0 => return Some(at),
            _ => {}
        }
        before = if byte.is_ascii_whitespace() { before } else { byte };
        at += 1;
    }
    None
}

/// Name, line and number of lines between the braces of each function before the unit tests.
fn functions(source: &Source) -> Vec<(&str, usize, usize)> {
    let plain = source.program();
    let found = places_of(plain, "fn").filter_map(|at| {
        let begins = past_space(plain, at + 2);
        let begins = begins + usize::from(plain[begins..].starts_with('$'));
        let name = word(plain, begins);
        // A type of functions has no name.
        let opening = (!name.is_empty()).then(|| opening(plain, begins + name.len()))??;
        let lines = plain[opening..closing(plain, opening)?].matches('\n').count();
        Some((name, source.line_of(at), lines.saturating_sub(1)))
    });
    found.collect()
}

/// Functions that are too long and not listed, and entries of the list that are out of date.
fn long(sources: &[Source], longer: &[(&str, &str, usize)]) -> Vec<Violation> {
    let mut listed: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for &(path, name, lines) in longer {
        listed.entry((path, name)).or_default().push(lines);
    }
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        for (name, line, lines) in functions(source).into_iter().filter(|&(.., lines)| lines > MOST_LINES) {
            let places = listed.get_mut(&(source.path.as_str(), name));
            let place = places.and_then(|known| {
                let exact = known.iter().position(|&known| known == lines);
                Some(known.remove(exact.or(if known.is_empty() { None } else { Some(0) })?))
            });
            match place {
                Some(known) if known == lines => {}
                Some(known) if known > lines => violations.push(
                    source.at_line(line, format!("{name} has {lines} lines, no longer {known}; shorten the list")),
                ),
                _ => violations.push(source.at_line(line, format!("{name} has {lines} lines; at most {MOST_LINES}"))),
            }
        }
    }
    for ((path, name), left) in listed.into_iter().filter(|(_, left)| !left.is_empty()) {
        let what = format!("{name} of {left:?} lines is not there or short now; shorten the list");
        violations.push(Violation { place: path.to_owned(), what });
    }
    violations
}

#[test]
fn functions_fit_a_screen() {
    assert_none(&long(&program(), &LONGER));
}

/// A file with a function of so many lines.
fn with_function(lines: usize) -> Source {
    let body = "    let x = \"}\"; // }\n".repeat(lines);
    let text = format!(
        "//! Planted.\n\nfn short() {{}}\n\npub fn planted<const N: usize>(f: fn(u8) -> u8, x: [u8; 2]) -> A<{{ 2 }}>\nwhere\n    \
         [u8; {{ 3 }}]: Sized,\n{{\n{body}}}\n\ntrait T {{ fn none(&self) -> [u8; 2]; }}\n"
    );
    Source::new("crates/core/src/planted.rs", &text)
}

#[test]
fn the_lines_of_a_body_are_counted() {
    for lines in [0, 1, 70, 71] {
        let source = with_function(lines);
        assert_eq!(functions(&source), [("short", 3, 0), ("planted", 5, lines)]);
    }
    let nested = Source::new("src/a.rs", "fn outer() {\n    fn inner() {\n        '{';\n    }\n    inner();\n}\n");
    assert_eq!(functions(&nested), [("outer", 1, 4), ("inner", 2, 1)]);
    let generated =
        Source::new("src/a.rs", "macro_rules! m { () => { fn $name() {\n1\n} } }\n#[cfg(test)]\nmod t { fn f() {} }\n");
    assert_eq!(functions(&generated), [("name", 1, 1)]);
}

#[test]
fn a_long_function_is_named_and_its_list_only_shrinks() {
    let (path, place) = ("crates/core/src/planted.rs", "crates/core/src/planted.rs:5");
    let found = |lines: usize, longer: &[(&str, &str, usize)]| long(&[with_function(lines)], longer);
    assert_named(&found(70, &[]), &[]);
    assert_named(&found(71, &[]), &[(place, "planted has 71 lines; at most 70")]);
    assert_named(&found(80, &[(path, "planted", 80)]), &[]);
    assert_named(&found(81, &[(path, "planted", 80)]), &[(place, "planted has 81 lines")]);
    assert_named(&found(79, &[(path, "planted", 80)]), &[(place, "no longer 80; shorten the list")]);
    assert_named(&found(70, &[(path, "planted", 80)]), &[(path, "planted of [80] lines is not there or short now")]);
    assert_named(&found(80, &[(path, "planted", 80), (path, "gone", 90)]), &[(path, "gone of [90] lines")]);
    // Two of one name.
    let twice = Source::new(path, &format!("{}{}", with_function(80).text, with_function(75).text));
    assert_named(&long(&[twice], &[(path, "planted", 75), (path, "planted", 80)]), &[]);
}
