//! Which training examples go to which client.
//!
//! | function | sizes | classes |
//! |---|---|---|
//! | [`iid::iid`] | as even as possible | as they fall, or equal on every client (stratified) |
//! | [`gamma::gamma`] | proportional to Gamma variates | as they fall |
//! | [`declared::declared`] | as the scenario says | as they fall |
//! | [`dirichlet::dirichlet`] | as they result | each class spread by a Dirichlet variate |
//! | [`two_level::two_level`] | as they result | the same, first over servers, then over each server's clients |
//! | [`shards::label_shards`] | as even as possible | a few each |
//! | [`zipf::zipf`] | proportional to a power of the rank | as they fall |
//! | [`balance::user_balance`] | a line or a geometric series with a given smallest-to-largest ratio | as they fall |
//! | [`groups::by_column`] | as they result | those of whole groups (writers, users, …) |
//! | [`counts::class_counts`] | as a file says | as a file says |
//! | [`feature_skew`] | as another partition | as another partition; features differ |
//! | [`overlapping`] | one for all, or as the scenario says | a mixture for each client, which draws from all |
//!
//! [`skew`] measures how far a partition is from an even one.
//!
//! # Determinism
//! Stream (Partition, 0, 0) puts all examples in a random order, the same one for every kind of partition. Weights of
//! client `k` come from stream (Partition, k, 1) for sizes and (Partition, k, 2) for classes. Stream (Partition, 0, 3)
//! puts shards, ranks or groups in a random order, (Partition, server, 4) holds the weights of a server, (Partition, 0,
//! 5) is the order of test examples that are dealt to servers, (Partition, 0, 6) that of groups in [`balance`]. Indices
//! 7 to 11 belong to [`two_level`], 14 to [`overlapping`], 16 to 23 to [`feature_skew`], 24, 25 and those from 64
//! on to data that change over time; (Partition, k, 15) draws what client `k` holds out. Ties go to the smaller client
//! number.

pub mod balance;
pub mod counts;
pub mod declared;
pub mod dirichlet;
mod error;
pub mod feature_skew;
pub mod gamma;
pub mod groups;
pub mod iid;
pub mod number;
pub mod overlapping;
mod owners;
pub mod shards;
mod sizes;
pub mod skew;
pub mod two_level;
pub mod zipf;

pub use error::PartitionError;
pub use feature_skew::FeatureSkew;
pub use skew::{ClassCounts, Skew};

use super::Dataset;
use super::validation::whole;
use fedgenie_core::components;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;
use overlapping::Drawn;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A partition's part of a scenario.
pub trait PartitionSettings {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below the partition's table.
    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    /// Makes file names relative to `data`, the folder given by the user, or else to `base`, the folder of the
    /// scenario.
    fn resolve_paths(&mut self, _base: &Path, _data: Option<&Path>) {}

    /// The files that are read.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether sizes come from the population.
    fn is_declared(&self) -> bool {
        false
    }

    /// How many servers it spreads examples over, if it does: server `m` of `M` has [`two_level::clients_of`].
    fn servers(&self) -> Option<usize> {
        None
    }

    /// How test data are divided among servers; `None` if by their clients' training data.
    ///
    /// # Errors
    /// If the examples have no classes where such are needed.
    fn test_split(&self, _data: &Dataset, _streams: &Streams) -> Result<Option<TestSplit>, PartitionError> {
        Ok(None)
    }

    /// How clients' features differ, if they do.
    fn feature_skew(&self) -> Option<&FeatureSkew> {
        None
    }

    /// Spreads the examples over clients. `sizes` are the population's.
    ///
    /// # Errors
    /// If the examples do not suffice, have no classes or groups where such are needed, or a file does not have the
    /// expected format.
    fn deal(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError>;
}

components! {
    /// `partition = "iid"`, `partition = { dirichlet = { alpha = 0.5 } }`, …
    pub enum PartitionConfig: PartitionSettings = "partition" {
        "iid" => Iid(iid::EvenSizes) in "partition/iid.rs";
        "gamma-sized" => GammaSized(gamma::GammaSizes) in "partition/gamma.rs";
        "dirichlet" => Dirichlet(dirichlet::DirichletClasses) in "partition/dirichlet.rs";
        "dirichlet-two-level" => DirichletTwoLevel(two_level::TwoLevel) in "partition/two_level.rs";
        "label-shards" => LabelShards(shards::LabelShards) in "partition/shards.rs";
        "zipf-sized" => ZipfSized(zipf::ZipfSizes) in "partition/zipf.rs";
        "user-balance" => UserBalance(balance::UserBalance) in "partition/balance.rs";
        "by-column" => ByColumn(groups::Groups) in "partition/groups.rs";
        "class-counts" => ClassCounts(counts::TableOfCounts) in "partition/counts.rs";
        "declared" => Declared(declared::DeclaredSizes) in "partition/declared.rs";
        "overlapping" => Overlapping(overlapping::Overlapping) in "partition/overlapping.rs";
        "feature-skew" => FeatureSkew(feature_skew::FeatureSkew) in "partition/feature_skew.rs";
    }
}

impl Default for PartitionConfig {
    fn default() -> Self {
        Self::Iid(iid::EvenSizes::default())
    }
}

impl PartitionConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint whose path begins with the partition's name.
    pub fn check(&self) -> Result<(), Complaint> {
        self.settings().check().map_err(|complaint| complaint.below(self.kind()))
    }

    /// Makes file names relative to `data`, the folder given by the user, or else to `base`, the folder of the
    /// scenario.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.settings_mut().resolve_paths(base, data);
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        self.settings().files()
    }

    /// Whether sizes come from the population.
    pub fn is_declared(&self) -> bool {
        self.settings().is_declared()
    }

    /// Spreads the examples over clients. `sizes` are the population's, for `declared`.
    ///
    /// # Errors
    /// If the examples do not suffice, have no classes or groups where such are needed, or a file does not have the
    /// expected format.
    pub fn build(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        self.settings().deal(data, clients, sizes, streams)
    }

    /// See [`PartitionSettings::servers`].
    pub fn servers(&self) -> Option<usize> {
        self.settings().servers()
    }

    /// See [`PartitionSettings::feature_skew`].
    pub fn feature_skew(&self) -> Option<&FeatureSkew> {
        self.settings().feature_skew()
    }

    /// See [`PartitionSettings::test_split`].
    ///
    /// # Errors
    /// If the examples have no classes where such are needed.
    pub fn test_split(&self, data: &Dataset, streams: &Streams) -> Result<Option<TestSplit>, PartitionError> {
        self.settings().test_split(data, streams)
    }
}

/// How test data are divided among servers, where the partition says.
#[derive(Clone, Debug, PartialEq)]
pub enum TestSplit {
    /// By the shares of each class that were drawn for its servers, servers × classes, rounded by largest remainders.
    Rounded(Array2<f64>),
    /// By shares of each class, each example drawn.
    Drawn(Array2<f64>),
    /// By groups: to the server whose clients train on the group.
    Groups,
}

/// The examples of every client.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition(Shares);

/// Where clients' examples are.
#[derive(Clone, Debug, PartialEq)]
enum Shares {
    /// Client `k` holds `examples[offsets[k]..offsets[k + 1]]`.
    Dealt { offsets: Vec<usize>, examples: Vec<u32> },
    /// They are drawn whenever they are asked for.
    Drawn(Box<Drawn>),
}

impl Partition {
    /// Deals out an order of examples: the first `sizes[0]` to client 0, and so on. What is left belongs to nobody.
    pub(crate) fn deal(mut order: Vec<u32>, sizes: &[usize]) -> Self {
        let mut offsets = Vec::with_capacity(sizes.len() + 1);
        offsets.push(0);
        let mut end = 0;
        for size in sizes {
            end += size;
            offsets.push(end);
        }
        assert!(end <= order.len(), "no more examples are dealt out than there are");
        order.truncate(end);
        Self(Shares::Dealt { offsets, examples: order })
    }

    /// Shares that are drawn whenever they are asked for.
    pub(crate) fn drawn(shares: Drawn) -> Self {
        Self(Shares::Drawn(Box::new(shares)))
    }

    /// Whether a client's examples are at hand, and not drawn whenever they are asked for.
    pub const fn is_dealt(&self) -> bool {
        matches!(self.0, Shares::Dealt { .. })
    }

    /// Number of clients.
    pub fn clients(&self) -> usize {
        match &self.0 {
            Shares::Dealt { offsets, .. } => offsets.len() - 1,
            Shares::Drawn(drawn) => drawn.clients(),
        }
    }

    /// Number of examples of a client.
    pub fn size(&self, client: ClientId) -> usize {
        match &self.0 {
            Shares::Dealt { offsets, .. } => offsets[client.index() + 1] - offsets[client.index()],
            Shares::Drawn(drawn) => drawn.size(client),
        }
    }

    /// The examples of a client, as numbers of rows of the training set.
    pub fn client(&self, client: ClientId) -> Cow<'_, [u32]> {
        match &self.0 {
            Shares::Dealt { offsets, examples } => {
                Cow::Borrowed(&examples[offsets[client.index()]..offsets[client.index() + 1]])
            }
            Shares::Drawn(drawn) => Cow::Owned(drawn.client(client)),
        }
    }

    /// The partition that gives client `k` the examples of `sources[k]` here; an example may belong to several.
    pub fn rearranged(&self, sources: &[ClientId]) -> Self {
        if let Shares::Drawn(drawn) = &self.0 {
            return Self::drawn(drawn.rearranged(sources));
        }
        let sizes: Vec<usize> = sources.iter().map(|&source| self.size(source)).collect();
        Self::deal(sources.iter().flat_map(|&source| self.client(source).into_owned()).collect(), &sizes)
    }

    /// The same partition, with row `rows[i]` of the training set in the place of row `i`.
    #[must_use]
    pub fn of_rows(self, rows: &[u32]) -> Self {
        match self.0 {
            Shares::Dealt { offsets, examples } => {
                let examples = examples.iter().map(|&example| rows[example as usize]).collect();
                Self(Shares::Dealt { offsets, examples })
            }
            Shares::Drawn(drawn) => Self::drawn(drawn.of_rows(rows)),
        }
    }

    /// What clients train on, and what they hold out: of `n` examples `⌊share·n⌋`, but at most `n − 1`, both in their
    /// order here. `None` if examples are drawn whenever they are asked for.
    pub fn held_out(&self, share: f64, streams: &Streams) -> Option<(Self, Self)> {
        if !self.is_dealt() {
            return None;
        }
        let mut parts: [(Vec<u32>, Vec<usize>); 2] = Default::default();
        for client in (0..self.clients()).map(ClientId::from_index) {
            let examples = self.client(client);
            let count = whole(share * examples.len() as f64).min(examples.len().saturating_sub(1));
            let mut places: Vec<usize> = (0..examples.len()).collect();
            streams.stream(Purpose::Partition, client.0, HELD_OUT).shuffle(&mut places);
            places[..count].sort_unstable();
            places[count..].sort_unstable();
            for (places, (all, sizes)) in [&places[count..], &places[..count]].into_iter().zip(&mut parts) {
                all.extend(places.iter().map(|&place| examples[place]));
                sizes.push(places.len());
            }
        }
        let [kept, held] = parts.map(|(all, sizes)| Self::deal(all, &sizes));
        Some((kept, held))
    }

    /// All rows that somebody has, ascending, each once.
    pub fn rows(&self) -> Vec<u32> {
        let all = (0..self.clients()).flat_map(|client| self.client(ClientId::from_index(client)).into_owned());
        all.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// The partition of one client that has everybody's examples: each once, ascending.
    #[must_use]
    pub fn pooled(&self) -> Self {
        let mut all = BTreeSet::new();
        let most = match &self.0 {
            Shares::Dealt { examples, .. } => examples.len(),
            Shares::Drawn(drawn) => drawn.pool_len(),
        };
        for client in (0..self.clients()).map(ClientId::from_index) {
            // Nobody has anything else.
            if all.len() == most {
                break;
            }
            all.extend(self.client(client).iter().copied());
        }
        let all: Vec<u32> = all.into_iter().collect();
        let size = all.len();
        Self::deal(all, &[size])
    }

    /// Number of examples of all clients together, those of several counted for each.
    pub fn examples(&self) -> usize {
        match &self.0 {
            Shares::Dealt { examples, .. } => examples.len(),
            Shares::Drawn(_) => self.sizes().sum(),
        }
    }

    /// Numbers of examples, client by client.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        (0..self.clients()).map(|client| self.size(ClientId::from_index(client)))
    }
}

/// The index of the stream of what a client holds out.
const HELD_OUT: u32 = 15;

/// All examples in random order.
fn shuffled(examples: usize, streams: &Streams) -> Vec<u32> {
    let count = u32::try_from(examples).expect("examples are numbered in 32 bits");
    let mut order: Vec<u32> = (0..count).collect();
    streams.stream(Purpose::Partition, 0, 0).shuffle(&mut order);
    order
}

/// All examples in random order, put together by class in ascending order.
fn shuffled_by_class(labels: &[u8], classes: usize, streams: &Streams) -> Vec<Vec<u32>> {
    by_class(shuffled(labels.len(), streams), labels, classes)
}

/// Puts examples together by class in ascending order, keeping their order within a class.
fn by_class(order: Vec<u32>, labels: &[u8], classes: usize) -> Vec<Vec<u32>> {
    let mut by_class = vec![Vec::new(); classes];
    for example in order {
        by_class[usize::from(labels[example as usize])].push(example);
    }
    by_class
}

/// The numbers below `count` in random order (of shards, ranks or groups), or as they are.
fn dealing_order(count: usize, shuffled: bool, streams: &Streams) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if shuffled {
        streams.stream(Purpose::Partition, 0, 3).shuffle(&mut order);
    }
    order
}

fn check_counts(examples: usize, clients: usize, minimum: usize) -> Result<(), PartitionError> {
    if clients == 0 {
        return Err(PartitionError::NoClients);
    }
    if clients.checked_mul(minimum).is_none_or(|needed| needed > examples) {
        return Err(PartitionError::TooFewExamples { examples, clients, minimum });
    }
    Ok(())
}

/// Gives each client the next examples of each class; `counts` holds one row of classes for each client.
fn deal_by_class(by_class: &[Vec<u32>], counts: &[usize]) -> Partition {
    let mut taken = vec![0; by_class.len()];
    let mut order = Vec::with_capacity(counts.iter().sum());
    let mut sizes = Vec::with_capacity(counts.len() / by_class.len());
    for client in counts.chunks_exact(by_class.len()) {
        for ((members, taken), count) in by_class.iter().zip(&mut taken).zip(client) {
            order.extend_from_slice(&members[*taken..*taken + count]);
            *taken += count;
        }
        sizes.push(client.iter().sum());
    }
    Partition::deal(order, &sizes)
}

/// Fewest examples per client, if a scenario does not say.
const fn one_example() -> usize {
    1
}

/// Checks the shape of a Gamma law: quantiles are exact to 1e-11 from 0.001 to 100000.
fn check_shape(key: &str, shape: f64) -> Result<(), Complaint> {
    check(key, shape, 1e-3..=1e5, "a number from 0.001 to 100000").map(|_| ())
}

fn check_positive(key: &'static str, found: f64) -> Result<(), PartitionError> {
    if found.is_finite() && found > 0.0 { Ok(()) } else { Err(PartitionError::NotPositive { key, found }) }
}

/// The quantile function of Gamma(1), which is the exponential law: `−ln(1 − u)`.
pub fn exponential_quantile(u: f64) -> f64 {
    -fedgenie_core::math::float::ln_1p(-u)
}

#[cfg(test)]
mod tests;
