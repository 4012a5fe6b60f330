//! Kinds: values that are one of several, such as a policy or a law.

use super::super::sweep::setting_text;
use super::super::tree::{Node, Value};
use super::{Reader, ScenarioError};
use fedgenie_core::text;

/// The accepted forms of a kind.
pub(super) const ONE_KIND: &str = "one kind: a name, or a table with exactly one key";

/// The origin of values from the command line.
const SET: &str = "--set";

impl Reader<'_, '_> {
    /// The error of a node that is not one kind. If the command line gave a second kind beside the file's, it says how
    /// to replace the kind.
    pub(super) fn one_kind(&self) -> ScenarioError {
        let expected = ONE_KIND;
        if let Value::Table(entries) = &self.node.value {
            let is_set = |node: &Node| &*node.origin.source == SET;
            let added = entries.iter().find(|(_, node)| is_set(node));
            if let (Some((kind, node)), false) = (added, entries.iter().all(|(_, node)| is_set(node))) {
                let (path, found) = (self.path(), self.node.value.describe());
                // A plain number is hardly ever all that a kind needs: it is no example to follow.
                let value = match &node.value {
                    Value::Table(_) | Value::Text(_) | Value::List(_) => {
                        format!("{path}={{ {} = {} }}", quoted_key(kind), setting_text(node))
                    }
                    _ => format!("{path}={}", text::quoted(kind)),
                };
                // In quotes for a shell.
                let value = value.replace('\'', "'\\''");
                let message =
                    format!("found {found}; expected {expected}; to replace the kind, give it whole: --set '{value}'");
                return ScenarioError::at(&node.origin, path, message);
            }
        }
        ScenarioError::bare(expected.to_owned(), true)
    }
}

/// A key as TOML writes it.
fn quoted_key(key: &str) -> String {
    let is_bare = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if !key.is_empty() && key.chars().all(is_bare) { key.to_owned() } else { text::quoted(key) }
}
