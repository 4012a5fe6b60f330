//! How a scenario asks for synthetic images: `data = { synthetic = { classes = 10 } }`.

use super::SyntheticImages;
use crate::data::source::{DataCache, SourceSettings};
use crate::data::{DataError, Shape, Split};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `{ synthetic = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SyntheticConfig {
    /// Number of classes, 2 to 256.
    #[serde(default = "SyntheticConfig::default_classes")]
    pub classes: usize,
    /// Channels of an image.
    #[serde(default = "SyntheticConfig::default_channels")]
    pub channels: usize,
    /// Rows of an image.
    #[serde(default = "SyntheticConfig::default_side")]
    pub height: usize,
    /// Columns of an image.
    #[serde(default = "SyntheticConfig::default_side")]
    pub width: usize,
    /// Number of training examples.
    #[serde(default = "SyntheticConfig::default_train")]
    pub train: usize,
    /// Number of test examples.
    #[serde(default = "SyntheticConfig::default_test")]
    pub test: usize,
    /// Standard deviation of a pixel's noise; pixels lie in [0, 1].
    #[serde(default = "SyntheticConfig::default_noise")]
    pub noise: f64,
    /// Largest shift of an image in pixels, each way.
    #[serde(default = "SyntheticConfig::default_deformation")]
    pub deformation: f64,
}

impl SyntheticConfig {
    const fn default_classes() -> usize {
        10
    }
    const fn default_channels() -> usize {
        1
    }
    const fn default_side() -> usize {
        28
    }
    const fn default_train() -> usize {
        6_000
    }
    const fn default_test() -> usize {
        1_000
    }
    const fn default_noise() -> f64 {
        0.3
    }
    const fn default_deformation() -> f64 {
        2.0
    }

    pub(crate) fn generator(&self) -> SyntheticImages {
        let Self { classes, channels, height, width, train, test, noise, deformation } = *self;
        SyntheticImages { classes, train, test, shape: Shape { channels, height, width }, noise, deformation }
    }
}

impl SourceSettings for SyntheticConfig {
    fn check(&self) -> Result<(), Complaint> {
        self.generator().check().map_err(|error| match error {
            DataError::Setting { key, found, expected } => {
                Complaint::new(key, format!("found {found}; expected {expected}"))
            }
            other => Complaint::new("", other.to_string()),
        })
    }

    fn is_each_seeds_own(&self) -> bool {
        true
    }

    fn load(&self, streams: &Streams, _: &DataCache) -> Result<Split, DataError> {
        self.generator().generate(streams)
    }
}
