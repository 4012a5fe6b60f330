//! Files of source as the rules read them, and a rule's violations.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A file of the source.
pub struct Source {
    /// Below the project's folder.
    pub path: String,
    pub text: String,
    /// The text with spaces in the place of comments, texts and characters.
    pub plain: String,
}

/// A place where a rule does not hold.
#[derive(Debug)]
pub struct Violation {
    /// File, and line if there is one.
    pub place: String,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), plain: plain(text) }
    }

    pub fn is_test(&self) -> bool {
        self.path.ends_with("tests.rs") || self.path.contains("/tests/") || self.path.starts_with("tests/")
    }

    /// Where the unit tests begin; of files of tests, the end.
    fn end(&self) -> usize {
        let tests = if self.is_test() { None } else { self.text.find("#[cfg(test)]\nmod ") };
        tests.unwrap_or(self.text.len())
    }

    /// Number and text of each line outside comments and before the unit tests.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text[..self.end()].lines().enumerate();
        lines.map(|(index, line)| (index + 1, line)).filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// [`Source::plain`] before the unit tests.
    pub fn program(&self) -> &str {
        &self.plain[..self.end()]
    }

    pub fn line_of(&self, at: usize) -> usize {
        1 + self.plain[..at].matches('\n').count()
    }

    pub fn at_line(&self, line: usize, what: impl Into<String>) -> Violation {
        Violation { place: format!("{}:{line}", self.path), what: what.into() }
    }

    pub fn as_a_whole(&self, what: impl Into<String>) -> Violation {
        Violation { place: self.path.clone(), what: what.into() }
    }
}

/// Part of a name.
pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The word that begins at a place, empty if none does.
pub fn word(text: &str, at: usize) -> &str {
    let length = text.as_bytes()[at..].iter().take_while(|&&byte| is_word(byte)).count();
    &text[at..at + length]
}

/// The first place from `at` on that is no white space.
pub fn past_space(text: &str, at: usize) -> usize {
    at + text.as_bytes()[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Places where a word begins that is no part of a longer one.
pub fn places_of<'a>(text: &'a str, sought: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_alone = |at: usize| at == 0 || !is_word(text.as_bytes()[at - 1]);
    text.match_indices(sought).map(|(at, _)| at).filter(move |&at| is_alone(at) && word(text, at) == sought)
}

/// Length of the literal text or comment that begins here: that of its content, and the whole.
fn hidden(bytes: &[u8], before: Option<u8>) -> Option<(std::ops::Range<usize>, usize)> {
    let find = |from: usize, end: &[u8]| {
        let found = bytes[from..].windows(end.len()).position(|window| window == end);
        found.map_or(bytes.len(), |found| from + found)
    };
    match bytes {
        [b'/', b'/', ..] => {
            let end = find(0, b"\n");
            Some((0..end, end))
        }
        [b'/', b'*', ..] => {
            let (mut depth, mut at) = (1, 2);
            while depth > 0 && at < bytes.len() {
                let step = match &bytes[at..] {
                    [b'/', b'*', ..] => 1,
                    [b'*', b'/', ..] => -1,
                    _ => 0,
                };
                depth += step;
                at += if step == 0 { 1 } else { 2 };
            }
            Some((0..at, at))
        }
        // The letters before a text, such as b, are names of their own here; those before a raw one are looked for.
        [b'r', rest @ ..] if before.is_none_or(|before| !is_word(before) || before == b'b' || before == b'c') => {
            let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
            (rest.get(hashes) == Some(&b'"')).then(|| {
                let end = find(hashes + 2, &[b"\"".as_slice(), &vec![b'#'; hashes]].concat());
                (hashes + 2..end, (end + 1 + hashes).min(bytes.len()))
            })
        }
        [b'"', ..] => {
            let mut at = 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            let end = at.min(bytes.len());
            Some((1..end, (end + 1).min(bytes.len())))
        }
        [b'\'', b'\\', _, ..] => {
            let end = find(3, b"'");
            Some((1..end, (end + 1).min(bytes.len())))
        }
        // One character between marks; else it is a lifetime.
        [b'\'', first, ..] => {
            let length = match first {
                0..0x80 => 1,
                0xf0.. => 4,
                0xe0.. => 3,
                _ => 2,
            };
            (bytes.get(1 + length) == Some(&b'\'')).then_some((1..1 + length, 2 + length))
        }
        _ => None,
    }
}

/// See [`Source::plain`]. Lines and places stay as they are.
pub fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        match hidden(&bytes[at..], at.checked_sub(1).map(|before| bytes[before])) {
            None => at += 1,
            Some((inside, length)) => {
                let inside = &mut bytes[at..][inside];
                inside.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
                at += length;
            }
        }
    }
    String::from_utf8(bytes).expect("whole characters became spaces")
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder whose names end so.
pub fn find(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

pub fn sources(folders: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| find(&root().join(folder), "rs", &mut found));
    found.sort();
    assert!(found.len() > 5, "the sources are where they are looked for");
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
    found.into_iter().map(|path| Source::new(&name(&path), &fs::read_to_string(path).unwrap())).collect()
}

/// The library and the command line.
pub fn program() -> Vec<Source> {
    let mut program = sources(&["src", "crates"]);
    program.retain(|source| !source.path.contains("/benches/"));
    program
}

/// Fails with everything that violates a rule.
pub fn assert_none(violations: &[Violation]) {
    let lines: String = violations.iter().map(|violation| format!("\n  {violation}")).collect();
    assert!(violations.is_empty(), "{} violations:{lines}", violations.len());
}

/// Asserts that a rule names each planted violation, by its place and a part of the message, and no others.
#[track_caller]
pub fn assert_named(violations: &[Violation], planted: &[(&str, &str)]) {
    let is_named = |&(place, part): &(&str, &str)| {
        violations.iter().any(|violation| violation.place == place && violation.what.contains(part))
    };
    assert!(planted.iter().all(is_named) && planted.len() == violations.len(), "{violations:#?}");
}

#[test]
fn comments_and_texts_are_hidden_and_nothing_else_is() {
    for (text, expected) in [
        ("a // {\nb", "a     \nb"),
        ("a /* { /* } */ { */ b", "a                   b"),
        (r#"x = "{ \" }"; y"#, r#"x = "      "; y"#),
        (r##"x = r#"{ " \"#; y"##, r##"x = r#"     "#; y"##),
        (r#"x = br"\"; y"#, r#"x = br" "; y"#),
        (r#"for"{"; y"#, r#"for" "; y"#),
        ("x = '{'; y", "x = ' '; y"),
        (r"x = '\''; y", r"x = '  '; y"),
        (r"x = '\u{7d}'; y", r"x = '      '; y"),
        ("fn f<'a>(x: &'a str) { 'é' }", "fn f<'a>(x: &'a str) { '  ' }"),
        ("\"{\n}\" {", "\" \n \" {"),
        ("\"never ends {", "\"            "),
    ] {
        assert_eq!(plain(text), expected);
    }
}
