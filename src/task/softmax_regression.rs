//! Softmax regression on images in IDX files, such as Fashion-MNIST.
//!
//! # Definition
//! Class scores `W x + b` of the pixels scaled to [0, 1]; loss: mean cross-entropy; accuracy: share of test images whose
//! highest score is their label.
//!
//! # Inputs
//! `data`: a folder with `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`, `t10k-images-idx3-ubyte` and
//! `t10k-labels-idx1-ubyte`, each plain or with `.gz`. A relative path is looked for in the folder given by `--data`, or
//! else beside the scenario. `partition`.
//!
//! # Source
//! H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
//! 2017 (arXiv 1708.07747).
//!
//! # Determinism
//! The model starts at zero.
//!
//! # Example
//! ```toml
//! [task.softmax-regression]
//! data = "fashion-mnist"
//! partition = { dirichlet = { alpha = 0.5 } }
//! ```

use super::partition::PartitionConfig;
use super::{DataCache, Material, TaskError};
use crate::data::idx::load_idx_folder;
use crate::model::{Model, SoftmaxRegression};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[task.softmax-regression]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder of the four IDX files.
    pub data: PathBuf,
    /// How training examples go to clients.
    #[serde(default)]
    pub partition: PartitionConfig,
}

impl Config {
    pub(super) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.data = data.unwrap_or(base).join(&self.data);
    }

    pub(super) fn material(&self, cache: &DataCache) -> Result<Material, TaskError> {
        let data = cache.get(&self.data, load_idx_folder)?;
        let classes = data.train.classes().map_or(0, |(_, classes)| classes);
        let model = SoftmaxRegression::new(data.train.width(), classes);
        model.fits(&data.train)?;
        model.fits(&data.test)?;
        Ok(Material { data, model: Box::new(model), partition: self.partition.clone(), classifies: true })
    }
}
