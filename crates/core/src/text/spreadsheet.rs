//! Texts in cells of CSV files, headings included.

use super::{escaped, is_control};
use std::borrow::Cow;

/// First characters of formulas, also in the wide forms that East Asian keyboards write.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// The text as a cell of a spreadsheet that is no formula and holds no terminal control.
///
/// A text that begins like a formula and is no number gets an apostrophe, which makes it text to spreadsheets. So does
/// a text with a formula's beginning after a semicolon, at which some programs divide cells. Control and direction
/// characters are escapes, as [`escaped`] writes them.
pub fn cell(text: &str) -> Cow<'_, str> {
    if !text.contains(FORMULA) && !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let shown = escaped(text);
    if shown.parse::<f64>().is_ok() {
        return shown;
    }
    let is_formula = |part: &str| part.trim_start_matches(is_passed_over).starts_with(FORMULA);
    if !shown.split(';').any(is_formula) {
        return shown;
    }
    let guarded = |part: &str| if is_formula(part) { format!("'{part}") } else { part.to_owned() };
    Cow::Owned(shown.split(';').map(guarded).collect::<Vec<_>>().join(";"))
}

/// Characters that a program may skip before a formula.
fn is_passed_over(letter: char) -> bool {
    letter.is_whitespace() || letter == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        let cases = [
            ("=1+1", "'=1+1"),
            ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
            ("+a", "'+a"),
            ("-1+2", "'-1+2"),
            ("@x", "'@x"),
            ("＝1+1", "'＝1+1"),
            (" =1", "' =1"),
            ("\u{feff}=1", "'\u{feff}=1"),
            ("a;=1+1", "a;'=1+1"),
            ("a; @b;c", "a;' @b;c"),
            // What a terminal obeys is an escape, behind which nothing is a formula.
            ("\t=1", "\\t=1"),
            ("\r=1", "\\r=1"),
            ("\u{1b}[2J\u{202e}", "\\u{1b}[2J\\u{202e}"),
            // Numbers and plain texts stay.
            ("-2.5", "-2.5"),
            ("+1e-3", "+1e-3"),
            ("-inf", "-inf"),
            ("a=b-c", "a=b-c"),
            ("cs-ucb; own", "cs-ucb; own"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(cell(text), expected);
        }
    }
}
