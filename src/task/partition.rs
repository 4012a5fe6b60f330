//! How a scenario says which training examples go to which client.

use crate::config::{ConfigError, check};
use crate::data::Dataset;
use crate::data::partition::dirichlet::{DirichletClasses, dirichlet};
use crate::data::partition::gamma::{GammaSizes, gamma};
use crate::data::partition::iid::iid;
use crate::data::partition::{Partition, PartitionError, declared};
use crate::dist::{Gamma, Law};
use crate::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `partition = "iid"`, `partition = { dirichlet = { alpha = 0.5 } }`, …
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PartitionConfig {
    /// Shuffled and split evenly.
    Iid {
        /// Whether every client gets each class in equal numbers, as far as integers allow.
        #[serde(default)]
        stratified: bool,
    },
    /// Shuffled and split in proportion to weights from a gamma law.
    GammaSized {
        /// Shape of the law; small is skewed, 1 is exponential.
        #[serde(default = "one")]
        shape: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
    },
    /// Each class is spread over the clients by proportions from a Dirichlet law.
    Dirichlet {
        /// Concentration; small is skewed.
        alpha: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
    },
    /// Sizes as the population declares them in `data_size`.
    Declared {},
}

const fn one() -> f64 {
    1.0
}
const fn least() -> usize {
    1
}

impl Default for PartitionConfig {
    fn default() -> Self {
        Self::Iid { stratified: false }
    }
}

impl PartitionConfig {
    /// Whether sizes come from the population.
    pub const fn is_declared(&self) -> bool {
        matches!(self, Self::Declared {})
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let positive = |key, value| check(key, value, f64::MIN_POSITIVE.., "a number above 0").map(|_| ());
        match self {
            Self::GammaSized { shape, .. } => positive("partition.gamma-sized.shape", *shape),
            Self::Dirichlet { alpha, .. } => positive("partition.dirichlet.alpha", *alpha),
            Self::Iid { .. } | Self::Declared {} => Ok(()),
        }
    }

    /// Spreads the examples over clients. `sizes` are the population's, for `declared`.
    ///
    /// # Errors
    /// If the examples do not suffice or have no classes where classes are needed.
    pub fn build(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        // The parameters were checked with the scenario.
        let law = |shape| Gamma::new(shape, 1.0).expect("a checked shape is a gamma law's");
        match *self {
            Self::Iid { stratified } => iid(data, clients, stratified, streams),
            Self::GammaSized { shape, minimum } => {
                let law = law(shape);
                gamma(data.examples(), clients, &GammaSizes { shape, minimum }, &|u| law.quantile(u), streams)
            }
            Self::Dirichlet { alpha, minimum } => {
                let law = law(alpha);
                dirichlet(data, clients, &DirichletClasses { alpha, minimum }, &|u| law.quantile(u), streams)
            }
            Self::Declared {} => {
                let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
                declared(data.examples(), &sizes, streams)
            }
        }
    }
}
