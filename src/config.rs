//! Parameters of components: what is said when one does not fit.

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
