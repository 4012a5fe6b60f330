//! Kinds: values that are one of several, such as a policy or a law.

use super::super::names::{nearest, unknown_name};
use super::super::sweep::setting_text;
use super::super::tree::{Node, Value};
use super::{Reader, ScenarioError};
use fedgenie_core::text;

/// The accepted forms of a kind.
pub(super) const ONE_KIND: &str = "one kind: a name, or a table with exactly one key";

/// The origin of values from the command line.
const SET: &str = "--set";

impl Reader<'_, '_> {
    /// The error of a node that is not one of these kinds. If the command line gave a second one beside the file's, it
    /// says how to replace the kind, or that there is none of this name.
    pub(super) fn one_kind(&self, kinds: &[&str]) -> ScenarioError {
        let expected = ONE_KIND;
        if let Value::Table(entries) = &self.node.value {
            let is_set = |node: &Node| &*node.origin.source == SET;
            let added = entries.iter().find(|(_, node)| is_set(node));
            if let (Some((kind, node)), false) = (added, entries.iter().all(|(_, node)| is_set(node))) {
                let (path, found) = (self.path(), self.node.value.describe());
                if !kinds.is_empty() && !kinds.contains(&kind.as_str()) {
                    let message = match nearest(kind, kinds.iter().copied()) {
                        Some(known) if entries.iter().any(|(there, _)| there == known) => {
                            let setting = setting(&format!("{path}.{}", quoted_key(known)), node);
                            let known = kinds.join(", ");
                            format!(
                                "unknown kind {}; did you mean --set '{setting}'? known: {known}",
                                text::quoted(kind)
                            )
                        }
                        _ => unknown_name("kind", kind, kinds),
                    };
                    return ScenarioError::at(&node.origin, path, message);
                }
                // A plain number is hardly ever all that a kind needs: it is no example to follow.
                let value = match &node.value {
                    Value::Table(_) | Value::Text(_) | Value::List(_) => {
                        format!("{path}={{ {} = {} }}", quoted_key(kind), setting_text(node))
                    }
                    _ => format!("{path}={}", text::quoted(kind)),
                };
                let value = in_quotes(&value);
                let message =
                    format!("found {found}; expected {expected}; to replace the kind, give it whole: --set '{value}'");
                return ScenarioError::at(&node.origin, path, message);
            }
        }
        ScenarioError::bare(expected.to_owned(), true)
    }
}

/// A text between the single quotes of a shell.
fn in_quotes(text: &str) -> String {
    text.replace('\'', "'\\''")
}

/// A setting of the command line, `protocol.synchronous.cohort=3`, with the keys of tables of one key in its path.
fn setting(path: &str, node: &Node) -> String {
    match &node.value {
        Value::Table(entries) if entries.len() == 1 => {
            let (key, inner) = &entries[0];
            setting(&format!("{path}.{}", quoted_key(key)), inner)
        }
        _ => in_quotes(&format!("{path}={}", setting_text(node))),
    }
}

/// A key as TOML writes it.
fn quoted_key(key: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { text::quoted(key) }
}
