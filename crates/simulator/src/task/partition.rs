//! How a scenario says which training examples go to which client.

use fedgenie_core::config::{Complaint, check};
use fedgenie_core::math::special::gamma_lower_inverse;
use fedgenie_core::rng::Streams;
use fedgenie_learning::data::Dataset;
use fedgenie_learning::data::located;
use fedgenie_learning::data::partition::balance::{Profile, UserBalance, user_balance};
use fedgenie_learning::data::partition::counts::{ClassCounts, Scale, class_counts};
use fedgenie_learning::data::partition::dirichlet::{DirichletClasses, dirichlet};
use fedgenie_learning::data::partition::gamma::{GammaSizes, gamma};
use fedgenie_learning::data::partition::groups::by_column;
use fedgenie_learning::data::partition::iid::iid;
use fedgenie_learning::data::partition::shards::label_shards;
use fedgenie_learning::data::partition::two_level::{TwoLevel, two_level};
use fedgenie_learning::data::partition::zipf::{ZipfSizes, zipf};
use fedgenie_learning::data::partition::{Partition, PartitionError, declared};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
        /// Shape of the law, from 0.001 to 100000; small is skewed, 1 is exponential.
        #[serde(default = "one")]
        shape: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
    },
    /// Each class is spread over the clients by proportions from a Dirichlet law.
    Dirichlet {
        /// Concentration, from 0.001 to 100000; small is skewed.
        alpha: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
    },
    /// First over servers, then over the clients of each server, by proportions from a Dirichlet law.
    DirichletTwoLevel {
        /// Number of servers; clients belong to them in the order of their numbers, as evenly as possible.
        servers: usize,
        /// Concentration over servers, from 0.001 to 100000; small is skewed.
        alpha_server: f64,
        /// Concentration over the clients of a server, from 0.001 to 100000; small is skewed.
        alpha_client: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
    },
    /// Sorted by class, cut into shards of the same length, and the shards dealt out at random.
    LabelShards {
        /// Shards that each client gets.
        #[serde(default = "two")]
        shards_per_client: usize,
    },
    /// Shuffled and split in proportion to a power of the client's rank.
    ZipfSized {
        /// Exponent; 0 makes all sizes alike.
        #[serde(default = "one")]
        exponent: f64,
        /// Fewest examples per client.
        #[serde(default = "least")]
        minimum: usize,
        /// Whether ranks are random; else client 0 is the largest, and so on.
        #[serde(default)]
        shuffled: bool,
    },
    /// Shuffled and split so that the smallest size is a given fraction of the largest.
    UserBalance {
        /// How sizes fall from the largest to the smallest.
        profile: Profile,
        /// Smallest size over largest.
        index: f64,
        /// Whether sizes go to clients in random order; else client 0 is the largest, and so on.
        #[serde(default)]
        shuffled: bool,
    },
    /// Examples of the same group (writer, user, …) go to the same client.
    ByColumn {
        /// Whether groups are dealt out in random order; else in the order of their numbers.
        #[serde(default)]
        shuffled: bool,
    },
    /// As many examples of each class as a file says for each client.
    ClassCounts {
        /// The table: CSV or TSV, plain or gzip, a row for each client and a column for each class.
        file: PathBuf,
        /// What to do if it asks for more than there is: refuse (`none`) or scale all counts down (`fit`).
        #[serde(default)]
        scale: Scale,
    },
    /// Sizes as the population declares them in `data_size`.
    Declared {},
}

/// Shapes of gamma laws whose quantiles are exact to 1e-11.
const SHAPES: std::ops::RangeInclusive<f64> = 1e-3..=1e5;

const fn one() -> f64 {
    1.0
}
const fn least() -> usize {
    1
}
const fn two() -> usize {
    2
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

    pub(super) fn check(&self) -> Result<(), Complaint> {
        let shape = |key, value| check(key, value, SHAPES, "a number from 0.001 to 100000").map(|_| ());
        let at_least_one = |key, value: usize| check(key, value as f64, 1.0.., "at least 1").map(|_| ());
        match self {
            Self::GammaSized { shape: found, .. } => shape("partition.gamma-sized.shape", *found),
            Self::Dirichlet { alpha, .. } => shape("partition.dirichlet.alpha", *alpha),
            Self::DirichletTwoLevel { servers, alpha_server, alpha_client, .. } => {
                at_least_one("partition.dirichlet-two-level.servers", *servers)?;
                shape("partition.dirichlet-two-level.alpha_server", *alpha_server)?;
                shape("partition.dirichlet-two-level.alpha_client", *alpha_client)
            }
            Self::LabelShards { shards_per_client } => {
                at_least_one("partition.label-shards.shards_per_client", *shards_per_client)
            }
            Self::ZipfSized { exponent, .. } => {
                check("partition.zipf-sized.exponent", *exponent, 0.0.., "0 or a number above").map(|_| ())
            }
            Self::UserBalance { index, .. } => {
                let expected = "a number above 0, at most 1";
                check("partition.user-balance.index", *index, f64::MIN_POSITIVE..=1.0, expected).map(|_| ())
            }
            Self::Iid { .. } | Self::ByColumn { .. } | Self::ClassCounts { .. } | Self::Declared {} => Ok(()),
        }
    }

    /// Makes file names relative to `data`, the folder given by the user, or else to `base`, the folder of the scenario.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        if let Self::ClassCounts { file, .. } = self {
            *file = located(file, base, data);
        }
    }

    /// Spreads the examples over clients. `sizes` are the population's, for `declared`.
    ///
    /// # Errors
    /// If the examples do not suffice, have no classes or groups where such are needed, or a file is not what it should be.
    pub fn build(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        match *self {
            Self::Iid { stratified } => iid(data, clients, stratified, streams),
            Self::GammaSized { shape, minimum } => {
                let quantile = |u| gamma_lower_inverse(shape, u);
                gamma(data.examples(), clients, &GammaSizes { shape, minimum }, &quantile, streams)
            }
            Self::Dirichlet { alpha, minimum } => {
                let quantile = |u| gamma_lower_inverse(alpha, u);
                dirichlet(data, clients, &DirichletClasses { alpha, minimum }, &quantile, streams)
            }
            Self::DirichletTwoLevel { servers, alpha_server, alpha_client, minimum } => {
                let settings = TwoLevel { servers, alpha_server, alpha_client, minimum };
                let of_servers = |u| gamma_lower_inverse(alpha_server, u);
                let of_clients = |u| gamma_lower_inverse(alpha_client, u);
                two_level(data, clients, &settings, &of_servers, &of_clients, streams).map(|(partition, _)| partition)
            }
            Self::LabelShards { shards_per_client } => label_shards(data, clients, shards_per_client, streams),
            Self::ZipfSized { exponent, minimum, shuffled } => {
                zipf(data.examples(), clients, &ZipfSizes { exponent, minimum, shuffled }, streams)
            }
            Self::UserBalance { profile, index, shuffled } => {
                user_balance(data.examples(), clients, &UserBalance { profile, index, shuffled }, streams)
            }
            Self::ByColumn { shuffled } => by_column(data, clients, shuffled, streams),
            Self::ClassCounts { ref file, scale } => {
                class_counts(data, clients, &ClassCounts::read(file)?, scale, streams)
            }
            Self::Declared {} => {
                let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
                declared(data.examples(), &sizes, streams)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_learning::data::Targets;
    use ndarray::Array2;
    use serde_json::{Value, json};

    fn parsed(value: Value) -> PartitionConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_kind_is_read_with_its_defaults_and_dealt_out() {
        let labels = (0..600).map(|example| (example % 3) as u8).collect();
        let data = Dataset::new(Array2::zeros((600, 0)), Targets::Classes { labels, classes: 3 })
            .with_groups((0..600).map(|example| example / 20).collect());
        let kinds = [
            json!({"dirichlet-two-level": {"servers": 3, "alpha_server": 0.5, "alpha_client": 0.5}}),
            json!({"label-shards": {}}),
            json!({"zipf-sized": {}}),
            json!({"user-balance": {"profile": "exponential", "index": 0.1}}),
            json!({"user-balance": {"profile": "linear", "index": 0.1, "shuffled": true}}),
            json!({"by-column": {}}),
        ];
        for kind in kinds {
            let config = parsed(kind);
            config.check().unwrap();
            let partition = config.build(&data, 12, &[], &Streams::new(1)).unwrap();
            assert_eq!((partition.clients(), partition.examples()), (12, 600), "{config:?}");
            assert!(partition.skew(&data).smallest > 0, "{config:?}");
        }
        assert_eq!(parsed(json!({"label-shards": {}})), PartitionConfig::LabelShards { shards_per_client: 2 });
    }

    #[test]
    fn every_shape_that_is_accepted_deals_out_all_examples() {
        let labels = (0..600).map(|example| (example % 3) as u8).collect();
        let data = Dataset::new(Array2::zeros((600, 0)), Targets::Classes { labels, classes: 3 });
        for shape in [0.001, 0.002, 0.009, 0.01, 1.0, 1e4, 1.1e4, 1e5] {
            for kind in [
                json!({"dirichlet": {"alpha": shape}}),
                json!({"dirichlet-two-level": {"servers": 3, "alpha_server": shape, "alpha_client": shape}}),
                json!({"gamma-sized": {"shape": shape}}),
            ] {
                let config = parsed(kind);
                config.check().unwrap();
                let partition = config.build(&data, 6, &[], &Streams::new(1)).unwrap();
                let skew = partition.skew(&data);
                assert_eq!(partition.examples(), 600, "{config:?}");
                assert!(
                    if shape < 0.1 { skew.largest >= 195 } else { shape == 1.0 || skew.largest <= 105 },
                    "{config:?} {skew:?}"
                );
            }
        }
        for shape in [0.0, 9e-4, 1.001e5, f64::NAN] {
            for config in [
                PartitionConfig::Dirichlet { alpha: shape, minimum: 1 },
                PartitionConfig::GammaSized { shape, minimum: 1 },
                PartitionConfig::DirichletTwoLevel { servers: 1, alpha_server: 1.0, alpha_client: shape, minimum: 1 },
            ] {
                let error = config.check().unwrap_err();
                assert!(error.message.ends_with("expected a number from 0.001 to 100000"), "{error:?}");
            }
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        let two = |servers: usize, server: f64, client: f64| json!({"dirichlet-two-level": {"servers": servers, "alpha_server": server, "alpha_client": client}});
        let wrong = [
            (two(0, 1.0, 1.0), "partition.dirichlet-two-level.servers"),
            (two(1, 0.0, 1.0), "partition.dirichlet-two-level.alpha_server"),
            (two(1, 1.0, -1.0), "partition.dirichlet-two-level.alpha_client"),
            (json!({"label-shards": {"shards_per_client": 0}}), "partition.label-shards.shards_per_client"),
            (json!({"zipf-sized": {"exponent": -1.0}}), "partition.zipf-sized.exponent"),
            (json!({"user-balance": {"profile": "linear", "index": 0.0}}), "partition.user-balance.index"),
            (json!({"user-balance": {"profile": "linear", "index": 1.5}}), "partition.user-balance.index"),
        ];
        for (value, key) in wrong {
            assert_eq!(parsed(value).check().unwrap_err().path, key);
        }
    }

    #[test]
    fn a_table_is_looked_for_in_the_data_folder_or_beside_the_scenario() {
        let config = parsed(json!({"class-counts": {"file": "counts.csv", "scale": "fit"}}));
        for (data, expected) in [(None, "/here/counts.csv"), (Some(Path::new("/data")), "/data/counts.csv")] {
            let mut config = config.clone();
            config.resolve_paths(Path::new("/here"), data);
            assert_eq!(config, PartitionConfig::ClassCounts { file: expected.into(), scale: Scale::Fit });
        }
    }
}
