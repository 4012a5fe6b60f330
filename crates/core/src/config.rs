//! Parameters of components: complaints about values that do not fit.

use serde_json::{Value, json};
use std::fmt;

/// A fault in a value of a scenario. The path is relative to the component that complains; the components above it put
/// their own keys before it with [`Complaint::below`], until it begins at the scenario's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Dotted path of the key; empty for the component as a whole.
    pub path: String,
    /// The fault and the remedy.
    pub message: String,
}

impl Complaint {
    /// A complaint about the value at a path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// The same complaint as seen by the component that holds this one at `path`.
    #[must_use]
    pub fn below(mut self, path: &str) -> Self {
        match (path, self.path.as_str()) {
            ("", _) => {}
            (_, "") => path.clone_into(&mut self.path),
            _ => self.path = format!("{path}.{}", self.path),
        }
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => formatter.write_str(&self.message),
            path => write!(formatter, "{path}: {}", self.message),
        }
    }
}

impl std::error::Error for Complaint {}

/// A number in a message: one of very many digits by its exponent.
pub fn shown(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1e16 { format!("{value:e}") } else { value.to_string() }
}

/// Checks that a parameter lies in a range; NaN lies in none.
///
/// # Errors
/// The key, the value found, and the accepted range.
pub fn check(key: &str, value: f64, range: impl std::ops::RangeBounds<f64>, expected: &str) -> Result<f64, Complaint> {
    if value.is_finite() && range.contains(&value) {
        Ok(value)
    } else {
        Err(Complaint::new(key, format!("found {}; expected {expected}", shown(value))))
    }
}

/// Adds to the JSON schema of an enum that a kind without required settings may be written as its name alone.
pub fn allow_bare_kinds(schema: &mut schemars::Schema) {
    let Some(kinds) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    let needs_nothing = |body: &Value| body["required"].as_array().is_none_or(Vec::is_empty);
    let bare: Vec<String> = kinds
        .iter()
        .filter_map(|kind| kind["properties"].as_object())
        .flat_map(|kinds| kinds.iter().filter(|(_, body)| needs_nothing(body)).map(|(name, _)| name.clone()))
        .collect();
    if !bare.is_empty() {
        kinds.push(json!({ "type": "string", "enum": bare, "description": "A kind with its defaults." }));
    }
}
