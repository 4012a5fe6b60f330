//! Feature skew: each client sees its examples in a manner of its own, turned, in other colours, or with noise.
//!
//! # Definition
//! Examples go to clients as the partition `of` says. Then client `k` has a manner of its own, in which the features of
//! all its examples are changed, those that it holds out too, in this order and before any `normalize`:
//!
//! *Rotation* by `θ_k` degrees, counter-clockwise about the centre of the image. Multiples of 90° move the pixels of a
//! square image and change none; other angles are bilinear between the four pixels around, with 0 outside.
//!
//! *Colour*: `a_kc·v + b_kc` in the place of each `v` of channel `c`, contrast `a` and brightness `b`. Of what is drawn
//! each channel draws its own, which shifts colours, or with `alike = true` all have the same; an image of one channel
//! has brightness and contrast.
//!
//! *Noise*: a normal number with mean 0 and standard deviation `s_k` is added to each feature, once and for all. It is
//! in units of the features for images, whose pixels are from 0 to 1, and in standard deviations of the column for
//! tables.
//!
//! `normalize` then uses means and deviations of the unchanged training rows for everybody.
//!
//! Numbers are those of all clients, or each client's own: `30`, `{ each = [..] }` (one per client),
//! `{ choices = [0, 90, 180, 270] }` (one of them, all alike), `{ uniform = [a, b] }`,
//! `{ normal = { mean = m, sd = s } }`, or `{ ramp = [a, b] }`: `a + (b − a)·k/(N − 1)` for client `k` of `N`.
//!
//! Test examples stay as they are, and so do those for validation. With `test = "clients"` each of both is seen in the
//! manner of a client that is drawn for it, in proportion to the numbers of examples that clients were dealt; it is any
//! client under edge servers too. What a client is measured on by itself is always seen in its own manner.
//!
//! # Inputs
//! `of`, any partition that deals each example to one client, `"iid"` if left out; `rotation`, `noise`, `colour =
//! { contrast, brightness, alike }`, at least one of them; `test`. Rotation and colour need images (IDX, CIFAR,
//! `synthetic`, or tables with a `shape`), noise takes any rows with features. Defined for tasks of labelled rows.
//!
//! Data that `drift` moves keep the manner in which they were seen. Labels, shares and the figures of the partition are
//! those of `of`; `features` beside them in `summary.json` has the manner of each of up to 1,000 clients.
//!
//! # Source
//! Rotation: A. Ghosh, J. Chung, D. Yin, K. Ramchandran, "An efficient framework for clustered federated learning",
//! NeurIPS 2020, whose rotated MNIST has 0°, 90°, 180° and 270°. Noise: Q. Li, Y. Diao, Q. Chen, B. He, "Federated
//! learning on non-IID data silos: An experimental study", ICDE 2022, noise-based feature imbalance.
//!
//! # Deviations from the source
//! The text of the second gives party `i` of `N` noise of *variance* `σ·i/N`. Its published program, which made its
//! numbers, takes *standard deviation* `σ·i/(N − 1)` for `i` from 0 on: that is `noise = { ramp = [0, σ] }`, and the
//! reason for standard deviations here; the text's are `{ each = [..] }` with square roots. The program draws noise
//! anew whenever an example is read; here an example has its noise once, so that all policies meet the same data. It
//! turns nothing.
//!
//! # Cost
//! All runs of a seed share one changed copy of the training features, 4 bytes each, beside the unchanged ones; with
//! noise, a normal quantile for each feature when a world is built.
//!
//! # Determinism
//! Beside the streams of `of`: (Partition, client, 16) for the rotation, (Partition, client, 17) for the deviation of
//! the noise, (Partition, client, 18) and (Partition, client, 20) for contrast and brightness, a uniform for each
//! channel; (Partition, row, 19) for the noise of a training row and (Partition, row, 21) for that of a test example, a
//! uniform for each feature; (Partition, row, 22) for the client of a test example and (Partition, row, 23) for that of
//! a row for validation.
//!
//! # Example
//! ```toml
//! [task.classification]
//! data = "fashion-mnist"
//! model = "lenet5"
//! partition = { feature-skew = { of = { dirichlet = { alpha = 0.5 } }, rotation = { choices = [0, 90, 180, 270] } } }
//! # partition = { feature-skew = { noise = { ramp = [0, 0.1] }, test = "clients" } }
//! # partition = { feature-skew = { colour = { contrast = { uniform = [0.7, 1.3] }, brightness = 0.1 } } }
//! ```

use super::number::NumberPerClient;
use super::{Partition, PartitionConfig, PartitionError, PartitionSettings, TestSplit};
use crate::data::manner::{COLOURS, DEVIATIONS, Manner, ROTATIONS, Stage};
use crate::data::{Dataset, Shape, Split};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Indices of the streams.
const ROTATION: u32 = 16;
const NOISE_SD: u32 = 17;
const COLOUR: [u32; 2] = [18, 20];
const NOISE: [u32; 2] = [19, 21];
const SEEN_BY: [u32; 2] = [22, 23];

/// Settings of the partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct FeatureSkew {
    /// The partition that deals examples to clients, each to one.
    #[serde(default)]
    pub of: Box<PartitionConfig>,
    /// Degrees by which a client's images are turned, counter-clockwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<NumberPerClient>,
    /// Standard deviation of the noise that is added to each feature of a client's examples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NumberPerClient>,
    /// How the colours of a client's images are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// How test examples are seen, and those for validation.
    #[serde(default)]
    pub test: Seen,
}

/// `colour = { contrast = { uniform = [0.7, 1.3] }, brightness = 0.1 }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Colour {
    /// The factor of a channel; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contrast: Option<NumberPerClient>,
    /// What is added to a channel; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brightness: Option<NumberPerClient>,
    /// Whether all channels of a client have the same numbers, and do not each draw their own.
    #[serde(default)]
    pub alike: bool,
}

/// How examples are seen that no client trains on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Seen {
    /// As they are.
    #[default]
    Unchanged,
    /// Each in the manner of a client, drawn in proportion to numbers of examples.
    Clients,
}

impl PartitionSettings for FeatureSkew {
    fn check(&self) -> Result<(), Complaint> {
        self.of.check().map_err(|complaint| complaint.below("of"))?;
        if matches!(*self.of, PartitionConfig::Overlapping(_) | PartitionConfig::FeatureSkew(_)) {
            let message = format!(
                "needs a partition that deals each example to one client, and changes no features itself; {} is none, take \
                 another, such as \"iid\"",
                self.of.kind()
            );
            return Err(Complaint::new("of", message));
        }
        if self.rotation.is_none() && self.noise.is_none() && self.colour.is_none() {
            let message = "changes nothing; give at least one of rotation, noise and colour, or take the partition of \
                           alone";
            return Err(Complaint::new("", message));
        }
        if self.colour.as_ref().is_some_and(|colour| colour.contrast.is_none() && colour.brightness.is_none()) {
            return Err(Complaint::new("colour", "changes nothing; give contrast, brightness or both"));
        }
        for (key, number, range) in self.numbers() {
            number.check(&range).map_err(|complaint| complaint.below(key))?;
        }
        Ok(())
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.of.resolve_paths(base, data);
    }

    fn files(&self) -> Vec<PathBuf> {
        self.of.files()
    }

    fn is_declared(&self) -> bool {
        self.of.is_declared()
    }

    fn servers(&self) -> Option<usize> {
        self.of.servers()
    }

    fn test_split(&self, data: &Dataset, streams: &Streams) -> Result<Option<TestSplit>, PartitionError> {
        self.of.test_split(data, streams)
    }

    fn feature_skew(&self) -> Option<&FeatureSkew> {
        Some(self)
    }

    fn deal(
        &self,
        data: &Dataset,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Partition, PartitionError> {
        self.of.build(data, clients, sizes, streams)
    }
}

impl FeatureSkew {
    /// The numbers that are given, each with its key and what it may be.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, &NumberPerClient, RangeInclusive<f64>)> {
        let colour = self.colour.as_ref();
        let given = [
            ("rotation", self.rotation.as_ref(), ROTATIONS),
            ("noise", self.noise.as_ref(), DEVIATIONS),
            ("colour.contrast", colour.and_then(|colour| colour.contrast.as_ref()), COLOURS),
            ("colour.brightness", colour.and_then(|colour| colour.brightness.as_ref()), COLOURS),
        ];
        given.into_iter().filter_map(|(key, number, range)| Some((key, number?, range)))
    }

    /// The manner of each client, for examples of this shape.
    ///
    /// # Errors
    /// If the examples are no images where that is needed, a list has another length, or a drawn deviation is negative.
    pub fn manners(&self, clients: usize, shape: Shape, streams: &Streams) -> Result<Vec<Manner>, PartitionError> {
        let refuse = |key, message| Err(PartitionError::Features { key, message });
        for (key, number, _) in self.numbers() {
            if key != "noise" && !shape.is_image() {
                let message = "needs images; these examples are rows of a table: give the data a shape, such as shape = \
                               [1, 28, 28], if they are images, or take noise instead";
                return refuse(key, message.to_owned());
            }
            if let Err(message) = number.check_length(clients) {
                return refuse(key, message);
            }
        }
        let mut manners = Vec::with_capacity(clients);
        for client in 0..clients {
            let entity = ClientId::from_index(client).0;
            let first = |index| move || streams.draw(Purpose::Partition, entity, index).uniform();
            let of = |number: &Option<NumberPerClient>, index| {
                number.as_ref().map_or(0.0, |number| number.of(client, clients, first(index)))
            };
            let noise = of(&self.noise, NOISE_SD);
            if noise < 0.0 {
                return refuse(
                    "noise",
                    format!(
                        "found {noise} for client {client}; no deviation is below 0, take uniform, choices or ramp"
                    ),
                );
            }
            let colour = self.colour.as_ref().map_or_else(Vec::new, |colour| {
                let [mut contrasts, mut brightnesses] =
                    COLOUR.map(|index| streams.draw(Purpose::Partition, entity, index));
                let mut one = || {
                    let contrast = colour.contrast.as_ref();
                    let brightness = colour.brightness.as_ref();
                    [
                        contrast.map_or(1.0, |number| number.of(client, clients, || contrasts.uniform())),
                        brightness.map_or(0.0, |number| number.of(client, clients, || brightnesses.uniform())),
                    ]
                };
                match colour.alike {
                    true => vec![one(); shape.channels],
                    false => (0..shape.channels).map(|_| one()).collect(),
                }
            });
            manners.push(Manner { rotation: of(&self.rotation, ROTATION), colour, noise });
        }
        Ok(manners)
    }

    /// The change of all examples: those that were dealt, in one or several partitions, and those that nobody trains
    /// on. `valid` are training rows for validation.
    ///
    /// # Errors
    /// As [`FeatureSkew::manners`].
    pub fn stage(
        &self,
        data: &Split,
        dealt: &[&Partition],
        valid: &[u32],
        streams: &Streams,
    ) -> Result<Stage, PartitionError> {
        let clients = dealt.first().map_or(0, |partition| partition.clients());
        let manners = self.manners(clients, data.train.shape(), streams)?;
        let (mut train, mut test) = (vec![None; data.train.examples()], Vec::new());
        let mut ends = vec![0; clients];
        for partition in dealt {
            for (client, end) in ends.iter_mut().enumerate() {
                let rows = partition.client(ClientId::from_index(client));
                rows.iter().for_each(|&row| train[row as usize] = Some(client as u32));
                *end += rows.len();
            }
        }
        let mut all = 0;
        ends.iter_mut().for_each(|end| {
            all += *end;
            *end = all;
        });
        if self.test == Seen::Clients && all > 0 {
            let seen_by = |row: u32, index| {
                let place = streams.draw(Purpose::Partition, row, index).uniform() * all as f64;
                let client = ends.partition_point(|&end| end as f64 <= place);
                Some(client.min(clients - 1) as u32)
            };
            test = (0..data.test.examples() as u32).map(|row| seen_by(row, SEEN_BY[0])).collect();
            valid.iter().for_each(|&row| train[row as usize] = seen_by(row, SEEN_BY[1]));
        }
        Ok(Stage { manners, train, test, noise: NOISE })
    }
}

#[cfg(test)]
mod tests;
