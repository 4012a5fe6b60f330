//! Clients of ratings: each user is one, or training ratings are dealt out like any other examples.
//!
//! # Definition
//! `"users"`: client `u` is user `u` and holds its training ratings by ascending item; a user without any holds none.
//!
//! Every other [partition](crate::data::partition) takes each training rating for an example. Its *class* is the rank
//! of its value among the distinct values of the training ratings, if the data have values and there are at most 256
//! distinct ones. Its *group*, for `by-column`, is the data's, else the user. A partition that needs classes where
//! there are none is refused by its name.
//!
//! # Determinism
//! `"users"` draws nothing; the others as they document.

use super::{Part, RatingsSplit};
use crate::data::partition::{Partition, PartitionConfig, PartitionError, Skew};
use crate::data::{Dataset, Targets};
use fedgenie_core::config::Complaint;
use fedgenie_core::rng::Streams;
use ndarray::Array2;
use schemars::JsonSchema;
use serde::de::value::{EnumAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// `partition = "users"`, or any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub enum RatingsPartition {
    /// Each user is a client.
    #[default]
    #[serde(rename = "users")]
    Users,
    /// Training ratings are dealt out like examples.
    #[serde(untagged)]
    Examples(PartitionConfig),
}

impl<'de> Deserialize<'de> for RatingsPartition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("RatingsPartition", &["users"], UsersOrExamples)
    }
}

struct UsersOrExamples;

impl<'de> Visitor<'de> for UsersOrExamples {
    type Value = RatingsPartition;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("\"users\", or a partition such as \"iid\" or { dirichlet = { alpha = 0.5 } }")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<RatingsPartition, A::Error> {
        let (kind, settings): (String, _) = data.variant()?;
        if kind == "users" {
            settings.unit_variant()?;
            return Ok(RatingsPartition::Users);
        }
        let examples = EnumAccessDeserializer::new(Known { kind, settings });
        PartitionConfig::deserialize(examples).map(RatingsPartition::Examples)
    }
}

/// A kind whose name was read already.
struct Known<A> {
    kind: String,
    settings: A,
}

impl<'de, A: VariantAccess<'de>> EnumAccess<'de> for Known<A> {
    type Error = A::Error;
    type Variant = A;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, A), A::Error> {
        let kind: StrDeserializer<'_, A::Error> = self.kind.as_str().into_deserializer();
        Ok((seed.deserialize(kind)?, self.settings))
    }
}

impl RatingsPartition {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint whose path begins with the partition's name.
    pub fn check(&self) -> Result<(), Complaint> {
        match self {
            Self::Users => Ok(()),
            Self::Examples(partition) if partition.feature_skew().is_some() => {
                let message = "changes features, and ratings have none; take the partition of alone";
                Err(Complaint::new(partition.kind(), message))
            }
            Self::Examples(partition) => partition.check(),
        }
    }

    /// Makes file names whole: see [`PartitionConfig::resolve_paths`].
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        if let Self::Examples(partition) = self {
            partition.resolve_paths(base, data);
        }
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Users => Vec::new(),
            Self::Examples(partition) => partition.files(),
        }
    }

    /// Whether sizes come from the population.
    pub fn is_declared(&self) -> bool {
        matches!(self, Self::Examples(partition) if partition.is_declared())
    }

    /// Whether each user is a client, so that their number is that of the clients.
    pub fn is_by_user(&self) -> bool {
        matches!(self, Self::Users)
    }

    /// Spreads training ratings over clients: numbers of places in [`RatingsSplit::train`]. `sizes` are the
    /// population's, for `declared`. `clients` has to be the number of users for `"users"`.
    ///
    /// # Errors
    /// If the ratings do not suffice, have no classes where such are needed, or there are not as many clients as users.
    pub fn build(
        &self,
        split: &RatingsSplit,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        match self {
            Self::Users if clients != split.users() => {
                let users = split.users();
                Err(PartitionError::OutOfRange { key: "clients", found: clients, least: users, most: users })
            }
            Self::Users => Ok(by_user(split)),
            Self::Examples(partition) => partition.build(&examples(split), clients, sizes, streams),
        }
    }
}

fn by_user(split: &RatingsSplit) -> Partition {
    let mut order: Vec<u32> = (0..split.train.len() as u32).collect();
    order.sort_unstable_by_key(|&example| (split.example(example).user, split.example(example).item));
    let mut sizes = vec![0; split.users()];
    split.part(Part::Train).for_each(|rating| sizes[rating.user as usize] += 1);
    Partition::deal(order, &sizes)
}

/// How unevenly training ratings are spread.
pub fn skew(split: &RatingsSplit, partition: &Partition) -> Skew {
    partition.skew(&examples(split))
}

/// A partition's view of the training ratings: classes and groups, but no features.
fn examples(split: &RatingsSplit) -> Dataset {
    let train = split.part(Part::Train);
    let mut distinct: Vec<f32> = train.clone().map(|rating| rating.value).collect();
    let count = distinct.len();
    distinct.sort_unstable_by(f32::total_cmp);
    distinct.dedup();
    let rank = |value: f32| distinct.partition_point(|other| other.total_cmp(&value).is_lt()) as u8;
    let targets = if split.data.has_values && distinct.len() <= 256 {
        Targets::Classes { labels: train.clone().map(|rating| rank(rating.value)).collect(), classes: distinct.len() }
    } else {
        Targets::Values(train.clone().map(|rating| rating.value).collect())
    };
    let has_groups = split.data.group_ids.is_some();
    let groups = train.map(|rating| if has_groups { rating.group } else { rating.user }).collect();
    Dataset::new(Array2::zeros((count, 0)), targets).with_groups(groups)
}

#[cfg(test)]
mod tests {
    use super::super::tests::split_of;
    use super::*;
    use fedgenie_core::id::ClientId;
    use serde_json::json;

    fn parsed(value: serde_json::Value) -> Result<RatingsPartition, serde_json::Error> {
        serde_json::from_value(value)
    }

    fn clients(partition: &Partition) -> Vec<Vec<u32>> {
        (0..partition.clients()).map(|client| partition.client(ClientId::from_index(client)).to_vec()).collect()
    }

    #[test]
    fn users_and_every_other_partition_are_read_and_written_alike() {
        for value in [
            json!("users"),
            json!({"dirichlet": {"alpha": 0.5, "minimum": 1}}),
            json!({"by-column": {"shuffled": true}}),
        ] {
            let partition = parsed(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&partition).unwrap(), value);
            assert_eq!(partition.is_by_user(), value.is_string());
            assert_eq!(partition.check(), Ok(()));
        }
        for (wrong, says) in [
            (json!("user"), "unknown variant `user`, expected one of `iid`"),
            (json!({"dirichlet": {"alpha": 0.5, "beta": 1}}), "unknown field `beta`"),
            (json!(7), "invalid type"),
        ] {
            let error = parsed(wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(parsed(json!({"dirichlet": {"alpha": -1.0}})).unwrap().check().is_err());
    }

    #[test]
    fn each_user_is_a_client_and_those_without_training_ratings_hold_nothing() {
        // (user, item, value): all for training but the last, the only one of user 2.
        let split = split_of(&[(1, 4, 1.0), (0, 3, 2.0), (1, 0, 5.0), (0, 1, 4.0), (2, 2, 3.0)], 1);
        let partition = RatingsPartition::Users.build(&split, 3, &[], &Streams::new(1)).unwrap();
        assert_eq!(clients(&partition), [vec![3, 1], vec![2, 0], vec![]]);
        let error = RatingsPartition::Users.build(&split, 4, &[], &Streams::new(1)).unwrap_err().to_string();
        assert_eq!(error, "clients = 4: has to be 3 to 3");
    }

    #[test]
    fn other_partitions_see_values_as_classes_and_users_as_groups() {
        let rows: Vec<(u32, u32, f32)> =
            (0..60).map(|row| (row % 6, row / 6, [0.5, 4.0, 3.0][row as usize % 3])).collect();
        let split = split_of(&rows, 6);
        let build = |value, clients| {
            let partition = parsed(value).unwrap();
            super::tests::clients(&partition.build(&split, clients, &[], &Streams::new(4)).unwrap())
        };
        // Two users each.
        for client in build(json!({"by-column": {}}), 3) {
            let mut users: Vec<u32> = client.iter().map(|&example| split.example(example).user).collect();
            users.sort_unstable();
            users.dedup();
            assert_eq!((users.len(), client.len()), (2, 18));
        }
        // One shard of one class each.
        for client in build(json!({"label-shards": {"shards_per_client": 1}}), 3) {
            assert!(client.iter().all(|&example| split.example(example).value == split.example(client[0]).value));
        }
        assert_eq!(build(json!({"iid": {}}), 4).iter().map(Vec::len).sum::<usize>(), 54);
    }

    #[test]
    fn a_partition_that_needs_classes_is_refused_by_name_where_there_are_none() {
        let mut split = split_of(&[(0, 0, 1.0), (1, 1, 1.0), (1, 2, 1.0)], 1);
        std::sync::Arc::make_mut(&mut split.data).has_values = false;
        let partition = parsed(json!({"dirichlet": {"alpha": 0.5}})).unwrap();
        let error = partition.build(&split, 1, &[], &Streams::new(1)).unwrap_err().to_string();
        assert!(error.contains("needs a data set with classes"), "{error}");
    }
}
