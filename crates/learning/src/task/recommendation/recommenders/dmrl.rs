//! Users, items, text and images, joined by attention over disentangled factors.
//!
//! # Definition
//! Users and items have embeddings of `dim` numbers. An item's text and image features, where there are any, are
//! brought to as many by two layers with LeakyReLU (slope 0.01), `hidden` numbers between them. Each of these channels
//! (user, id, text, image) is cut into `factors` blocks. For a pair and a block, an attention of `attention_hidden`
//! numbers, one for all blocks, takes the blocks of all channels and gives a share to each channel; the score is the
//! sum over blocks and over the item's channels of share × GELU(block of the user · block of the channel).
//!
//! An example is a pair that was rated, with `negatives` items that its client has not seen the user rate. Its loss is
//! the mean over these of `max(0, margin − r⁺ + r⁻)`; to the mean over a batch, `disentangle` times the mean distance
//! correlation between blocks is added.
//!
//! # Inputs
//! Ratings; features of items from `text` and `image`: a CSV table with a header, plain or gzip, the item's id in the
//! first column and a number in each other, or an `.npy` array whose rows are items by ascending id, found as data are.
//! Synthetic ratings have features of their own. Items without features have zeros and are counted; a mode without
//! features is left out.
//!
//! | key | meaning |
//! |---|---|
//! | `dim` (64), `factors` (4) | length of an embedding, and the number of blocks that it is cut into |
//! | `hidden` (128), `attention_hidden` (16) | hidden numbers of the two layers over features, and of the attention |
//! | `dropout` (0.1) | share of hidden numbers of features that are dropped in training |
//! | `negatives` (4), `margin` (1.0) | of an example; by how much a positive is to score above each |
//! | `disentangle` (0.01) | weight of the mean distance correlation between factors |
//!
//! Tensors: `users.weight`, `items.weight`, `text.0.weight`, `text.0.bias`, `text.2.weight`, `text.2.bias`, the same of
//! `image`, `attention.0.weight`, `attention.0.bias`, `attention.2.weight`, `attention.2.bias`. Loss, attention and
//! distance correlation are defined in `crates/learning/src/dmrl.rs`.
//!
//! # Source
//! Equations (1)–(8) of J. Liu, M. Goudarzi, A. N. Toosi, "An ML-driven participant selection technique for federated
//! recommendation system in edge-cloud computing" (MAB-FRS), 2025, after F. Liu et al., "Disentangled multimodal
//! representation learning for recommendation", IEEE Trans. Multimedia 25, 2023.
//!
//! # Deviations from the source
//! The source gives neither the start of training nor slope, margin or weights of the loss.
//!
//! # Cost
//! The whole model travels, both ways: weight decay moves every row. Item features do not travel. Items' projections
//! and their part of the attention are worked out once for an evaluation.
//!
//! # Determinism
//! Stream (ModelInit, 0, 0) for the first model: embeddings N(0, 0.1²), layers Xavier-uniform, biases 0. A job's
//! negatives and dropout: stream (TrainingNoise, client, job).
//!
//! # Example
//! ```toml
//! [task.recommendation.model.dmrl]
//! text = "ml-side/ml-100k_plot_tfidf_svd64.csv.gz"
//! dim = 64
//! factors = 4
//! ```

use super::super::Settings;
use super::super::multimodal::{self, Material, Multimodal};
use super::{Given, RecommenderSettings, Undealt};
use crate::data::located;
use crate::data::partition::Partition;
use crate::dmrl::{Features, MODES, Objective, Shape};
use crate::model::weights::read_tensors;
use crate::ratings::features::read_features;
use crate::ratings::triplets::Triplet;
use crate::ratings::{ItemFeatures, RatingsSplit};
use crate::task::{Task, TaskError, check_parameters};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Parameters of `dmrl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Config {
    /// Text features of items: a CSV table whose first column is the item's id, or an `.npy` array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<PathBuf>,
    /// Image features of items, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<PathBuf>,
    /// Length of an embedding; from 1 to 4,096, a multiple of `factors`.
    pub dim: usize,
    /// Number of blocks of an embedding; at least 1.
    pub factors: usize,
    /// Hidden numbers of the layers over features; from 1 to 65,536.
    pub hidden: usize,
    /// Hidden numbers of the attention; from 1 to 4,096.
    pub attention_hidden: usize,
    /// Share of hidden numbers of features that are dropped in training; from 0, below 1.
    pub dropout: f64,
    /// Negatives of an example; from 1 to 1,000.
    pub negatives: usize,
    /// Margin by which a positive is to score above a negative; above 0.
    pub margin: f64,
    /// Weight of the mean distance correlation between factors; 0 or more.
    pub disentangle: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            text: None,
            image: None,
            dim: 64,
            factors: 4,
            hidden: 128,
            attention_hidden: 16,
            dropout: 0.1,
            negatives: 4,
            margin: 1.0,
            disentangle: 0.01,
        }
    }
}

impl Config {
    fn paths(&self) -> [&Option<PathBuf>; 2] {
        [&self.text, &self.image]
    }
}

impl RecommenderSettings for Config {
    fn check(&self) -> Result<(), Complaint> {
        let Self { dim, factors, hidden, attention_hidden, dropout, negatives, margin, disentangle, .. } = *self;
        for (key, found, most) in [
            ("dim", dim, 4_096),
            ("hidden", hidden, 65_536),
            ("attention_hidden", attention_hidden, 4_096),
            ("negatives", negatives, 1_000),
        ] {
            if !(1..=most).contains(&found) {
                return Err(Complaint::new(key, format!("found {found}; expected from 1 to {most}")));
            }
        }
        if factors == 0 || !dim.is_multiple_of(factors) {
            let message = format!("found {factors}; expected a divisor of dim = {dim}: blocks have equal lengths");
            return Err(Complaint::new("factors", message));
        }
        if !(0.0..1.0).contains(&dropout) {
            return Err(Complaint::new("dropout", format!("found {dropout}; expected a share from 0 on, below 1")));
        }
        let most = f64::from(f32::MAX);
        check("margin", margin, f64::from(f32::MIN_POSITIVE)..=most, "a positive number of single precision")?;
        check("disentangle", disentangle, 0.0..=most, "0 or a positive number of single precision").map(|_| ())
    }

    fn measures(&self, settings: &Settings, quality: &str, has_valid: bool) -> Option<Measures> {
        multimodal::Settings::measures(&settings.cutoffs, quality, has_valid)
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        for path in [&mut self.text, &mut self.image].into_iter().flatten() {
            *path = located(path, base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        self.paths().into_iter().flatten().cloned().collect()
    }

    fn prepare(&self, given: Given<'_>) -> Result<Box<dyn Undealt>, TaskError> {
        let Given { data, split, settings, triplets, start, notes, streams, .. } = given;
        let mut widths = [None; 2];
        let mut missing = [0; 2];
        let mut features = Features::default();
        for (mode, (path, own)) in
            self.paths().into_iter().zip(data.features(&split.data.item_ids, streams)).enumerate()
        {
            let wrong =
                |message: String| TaskError::Setting(Complaint::new(format!("model.dmrl.{}", MODES[mode]), message));
            let found = match (path, own) {
                (Some(_), Some(_)) => {
                    return Err(wrong("the data have such features themselves; leave it out here or there".into()));
                }
                (Some(path), None) => {
                    let read = read_features(path, &split.data.item_ids);
                    Some(read.map_err(|error| wrong(error.to_string()))?)
                }
                (None, own) => own,
            };
            if let Some(ItemFeatures { width, values, missing: count }) = found {
                (widths[mode], missing[mode], features.0[mode]) = (Some(width), count, values);
            }
        }
        let Self { dim, factors, hidden, attention_hidden, dropout, negatives, margin, disentangle, .. } = *self;
        let (users, items) = (split.users(), split.items());
        let shape = Shape { users, items, dim, factors, hidden, attention: attention_hidden, features: widths };
        check_parameters(shape.parameters())
            .map_err(|message| TaskError::Setting(Complaint::new("model.dmrl", message)))?;
        if let Some((path, triplets)) = &triplets {
            check_triplets(path, &triplets.train, negatives, split)?;
        }
        let start = match start {
            None => None,
            Some(path) => {
                let tensors = shape.tensors();
                let expected = tensors.into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
                // The order of the parameter vector.
                Some(read_tensors(path, expected)?.into_iter().flat_map(|tensor| tensor.values).collect())
            }
        };
        let objective = Objective { negatives, margin: margin as f32, disentangle, dropout };
        let settings = multimodal::Settings { shape, objective, cutoffs: settings.cutoffs.clone() };
        let triplets = triplets.map(|(_, triplets)| triplets.train);
        let material = Material { features, missing, triplets, start, notes };
        Ok(Box::new(UndealtFeatures { settings, material }))
    }
}

/// Every run of triplets of the same pair is that of whole examples.
fn check_triplets(path: &Path, triplets: &[Triplet], negatives: usize, split: &RatingsSplit) -> Result<(), TaskError> {
    let pair = |triplet: &Triplet| (triplet.user, triplet.positive);
    for run in triplets.chunk_by(|one, other| pair(one) == pair(other)) {
        if !run.len().is_multiple_of(negatives) {
            let (user, item) = pair(&run[0]);
            let (user, item) = (split.data.user_ids.name(user), split.data.item_ids.name(item));
            let message = format!(
                "{}: user {user}, positive {item}: found {} lines one after the other; expected a multiple of {negatives}, \
                 the negatives of an example",
                path.display(),
                run.len()
            );
            return Err(TaskError::Setting(Complaint::new("triplets", message)));
        }
    }
    Ok(())
}

/// Features of items before ratings are dealt.
struct UndealtFeatures {
    settings: multimodal::Settings,
    material: Material,
}

impl Undealt for UndealtFeatures {
    fn whole_bytes(&self) -> u64 {
        self.settings.shape.parameters() as u64 * 4
    }

    fn deal(self: Box<Self>, split: &RatingsSplit, dealt: (&Partition, bool), streams: &Streams) -> Arc<dyn Task> {
        Arc::new(Multimodal::new(self.settings, split, dealt, self.material, streams))
    }
}
