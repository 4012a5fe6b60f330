//! Untrusted texts on terminals and in files: names, titles, keys and paths may hold anything.
//!
//! A terminal obeys control characters, and direction characters change the reading order. Shown texts have them as
//! escapes, and a line feed inside a name never begins a line.

pub mod latex;
pub mod markdown;
pub mod spreadsheet;

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Most characters of an error or a warning.
pub const MESSAGE_MAX: usize = 4_000;
/// Most characters of a name or value that an error quotes.
pub const QUOTED_MAX: usize = 200;

/// Whether a character changes the text shown around it: control characters, line and paragraph separators, and
/// characters that set the direction of writing.
pub fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every character that [`is_control`] as an escape: `\n`, `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escaped_but(text, |_| false)
}

/// As [`escaped`], for texts of several lines: line feeds stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escaped_but(text, |letter| letter == '\n')
}

fn escaped_but(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_control(letter) && !stays(letter);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// A JSON document with these characters as JSON's own escapes, which reads back the same.
pub fn escaped_json(document: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_control(letter) && letter != '\n';
    if !document.contains(is_escaped) {
        return Cow::Borrowed(document);
    }
    let mut shown = String::with_capacity(document.len() + 16);
    for letter in document.chars() {
        if is_escaped(letter) {
            write!(shown, "\\u{:04x}", u32::from(letter)).expect("a string takes what is written");
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// The text without these characters, for pictures and pages, which some of them break. Tabs and line ends are spaces.
pub fn stripped(text: &str) -> Cow<'_, str> {
    let is_kept = |letter: char| !is_control(letter) && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let shown = |letter: char| match letter {
        '\t' | '\n' | '\r' => Some(' '),
        letter => is_kept(letter).then_some(letter),
    };
    Cow::Owned(text.chars().filter_map(shown).collect())
}

/// As [`stripped`], for texts with lines and tabs of their own.
pub fn stripped_lines(text: &str) -> Cow<'_, str> {
    let is_kept =
        |letter: char| !is_control(letter) && !matches!(letter, '\u{fffe}' | '\u{ffff}') || "\n\t".contains(letter);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|&letter| is_kept(letter)).collect())
}

/// The first characters of a text that has more than `most`, and how many it has.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let count = most + text[end..].chars().count();
            Cow::Owned(format!("{}… ({count} characters)", &text[..end]))
        }
    }
}

/// A name or value in quotes, short enough for an error, with all special characters escaped.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
    }
}

/// A path as it is shown.
pub fn path(path: &Path) -> String {
    escaped(&path.to_string_lossy()).into_owned()
}

/// An error or a warning as it is shown: no longer than [`MESSAGE_MAX`], everything escaped, and lines after the first
/// moved in, so that no name in it begins a line.
pub fn message(text: &str) -> String {
    escaped_lines(&shortened(text.trim_end(), MESSAGE_MAX)).replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped() {
        assert_eq!(escaped("a\u{1b}[31m\rb\u{202e}\n"), "a\\u{1b}[31m\\rb\\u{202e}\\n");
        assert_eq!(escaped("\u{9b}\u{7f}\u{2028}\u{2066}"), "\\u{9b}\\u{7f}\\u{2028}\\u{2066}");
        assert!(matches!(escaped("ü – α “q”"), Cow::Borrowed(_)));
        assert_eq!(escaped_lines("a\n\u{1b}"), "a\n\\u{1b}");
    }

    #[test]
    fn json_reads_back_the_same() {
        let value = serde_json::json!({ "title": "a\u{202e}b\u{9b}c\u{7f}\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = escaped_json(&text);
        assert!(!shown.chars().any(|letter| is_control(letter) && letter != '\n'), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn no_name_begins_a_line_and_none_is_longer_than_what_says_it() {
        assert_eq!(message("found \"a\nfedgenie: error: b\"\n"), "found \"a\n  fedgenie: error: b\"");
        let long = "x".repeat(10_000_000);
        assert!(message(&long).chars().count() < MESSAGE_MAX + 40);
        assert_eq!(quoted("a\n"), "\"a\\n\"");
        assert!(quoted(&long).len() < QUOTED_MAX + 40 && quoted(&long).ends_with("(10000000 bytes)"));
        assert_eq!(shortened("äöü", 2), "äö… (3 characters)");
    }

    #[test]
    fn pictures_have_none_of_it() {
        assert_eq!(stripped("a\u{1b}\u{202e}b\tc\u{ffff}"), "ab c");
    }
}
