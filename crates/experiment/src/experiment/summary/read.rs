//! Numbers of a summary as they are read from JSON.

use super::{Converged, Named};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Metrics as written: JSON has no NaN, so that the loss of a model that diverged is null.
pub(in crate::experiment) fn read_metrics<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, f64>, D::Error> {
    let written = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(written.into_iter().map(|(name, value)| (name, value.unwrap_or(f64::NAN))).collect())
}

/// A present value, null included.
pub(super) fn asked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Converged>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The same by bytes.
pub(super) fn read_at_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<u64, Named>, D::Error> {
    // Flattened, the keys come as texts.
    let written = read_controls(deserializer)?;
    let bytes = |text: String| text.parse().map_err(|_| D::Error::custom("the bytes are no whole number"));
    written.into_iter().map(|(text, metrics)| Ok((bytes(text)?, metrics))).collect()
}

/// The same of controls.
pub(super) fn read_controls<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, BTreeMap<String, f64>>, D::Error> {
    #[derive(Deserialize)]
    struct Metrics(#[serde(deserialize_with = "read_metrics")] BTreeMap<String, f64>);
    let written = BTreeMap::<String, Metrics>::deserialize(deserializer)?;
    Ok(written.into_iter().map(|(name, Metrics(values))| (name, values)).collect())
}
