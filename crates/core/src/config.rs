//! Parameters of components: what is said when one does not fit.

use serde_json::{Value, json};

/// A parameter that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The key within the component's table; empty for the table as a whole.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl ConfigError {
    /// An error about one key.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// Checks that a parameter lies in a range; NaN lies in none.
///
/// # Errors
/// The key, what was found and what would be right.
pub fn check(
    key: &'static str,
    value: f64,
    range: impl std::ops::RangeBounds<f64>,
    expected: &str,
) -> Result<f64, ConfigError> {
    if value.is_finite() && range.contains(&value) {
        Ok(value)
    } else {
        Err(ConfigError::new(key, format!("found {value}; expected {expected}")))
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
