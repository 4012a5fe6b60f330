//! Names of columns that need no quoting in SQL: lower case letters, digits and underscores, a letter first.

use std::collections::BTreeSet;

/// Words that one of SQLite, PostgreSQL, DuckDB, MySQL and the standard reserves.
const RESERVED: &str = "\
    add all alter analyze and any array as asc authorization between binary both by case cast change check collate \
    column commit condition constraint convert create cross cube current cursor database default deferrable delete \
    desc describe distinct div do drop each else end escape except exists exit explain fetch filter for foreign \
    freeze from full function grant group groups having if in index initially inner insert intersect interval into \
    is isnull join key kill lateral leading left like limit localtime lock match natural no not null of offset on \
    only option or order outer over partition placing primary range rank read recursive references release rename \
    repeat replace returning right row rows select set some table then to union unique update user using when";

/// Whether SQL would take a name for something else.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|reserved| reserved == name)
}

/// A text as a name: `test_loss <= 1.8` is `test_loss_at_most_1_8`.
pub(super) fn identifier(text: &str) -> String {
    let text = text.replace(">=", " at least ").replace("<=", " at most ").to_ascii_lowercase();
    let mut name = String::new();
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_sign = letter == '-' && letters.peek().is_some_and(char::is_ascii_digit);
        let is_exponent = before == 'e' && name.ends_with('e') && is_after_digit(&name);
        if letter.is_ascii_alphanumeric() {
            name.push(letter);
        } else if is_sign && (!before.is_ascii_alphanumeric() || is_exponent) {
            name.push_str(if name.is_empty() || name.ends_with('_') { "minus_" } else { "_minus_" });
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        before = letter;
    }
    let name = name.trim_end_matches('_');
    if name.starts_with(|letter: char| letter.is_ascii_lowercase()) { name.to_owned() } else { format!("n_{name}") }
}

/// Whether the last letter but one is a digit.
fn is_after_digit(name: &str) -> bool {
    name.chars().rev().nth(1).is_some_and(|letter| letter.is_ascii_digit())
}

/// Names in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// The first of some names that is neither in use nor reserved, or else the last of them with the least of the
    /// suffixes `_2`, `_3`, … that makes it so.
    pub fn take(&mut self, wanted: &[String]) -> String {
        let last = wanted.last().cloned().unwrap_or_default();
        let numbered = (2..).map(|number: u32| format!("{last}_{number}"));
        let mut all = wanted.iter().cloned().chain(numbered);
        let name = all.find(|name| !is_reserved(name) && !self.0.contains(name)).unwrap_or_default();
        self.0.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_names() {
        let cases = [
            ("time_to.test_loss <= 1.8", "time_to_test_loss_at_most_1_8"),
            ("reached.test_auc >= 0.82", "reached_test_auc_at_least_0_82"),
            ("regret.expected-exact", "regret_expected_exact"),
            ("x <= -1.5", "x_at_most_minus_1_5"),
            ("x <= 1e-6", "x_at_most_1e_minus_6"),
            ("scale-2", "scale_2"),
            ("-1+2", "minus_1_2"),
            ("metric.-1", "metric_minus_1"),
            ("at_bytes.10000000.test_AUC", "at_bytes_10000000_test_auc"),
            ("2nd", "n_2nd"),
            ("τ", "n_"),
            ("__a--b__", "a_b"),
        ];
        for (text, name) in cases {
            assert_eq!(identifier(text), name);
        }
    }

    #[test]
    fn names_are_unique_and_not_reserved() {
        let mut names = Names::default();
        let mut take = |wanted: &[&str]| names.take(&wanted.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(take(&["deadline_s"]), "deadline_s");
        assert_eq!(take(&["deadline_s", "protocol_deadline_s"]), "protocol_deadline_s");
        assert_eq!([take(&["deadline_s"]), take(&["deadline_s"])], ["deadline_s_2", "deadline_s_3"]);
        assert_eq!([take(&["order", "a_order"]), take(&["limit"])], ["a_order", "limit_2"]);
    }
}
