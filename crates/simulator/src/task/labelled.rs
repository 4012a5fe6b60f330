//! The common part of tasks with labelled rows: their keys, and the task before its rows are dealt.
//!
//! # Definition
//! `validation` sets a share of the training rows aside before the rest goes to clients: see
//! [`fedgenie_learning::data::validation`]. `held_out` sets a share of each client's examples aside, on which alone the
//! models are measured that are measured on clients' data: of `n` examples `⌊share·n⌋`, in random order from stream
//! (Partition, client, 15). `metrics` adds metrics behind those that are always measured.
//!
//! Under `feature-skew` rows are dealt first, then seen in the manners of their clients, then normalised.

mod later;

use super::shift::{self, Shift};
use super::{About, DataCache, Drift, Material, TaskError, TaskSettings, check_parameters};
use crate::clusters::ClusterModel;
use fedgenie_core::config::Complaint;
use fedgenie_core::metric::Measures;
use fedgenie_core::rng::Streams;
use fedgenie_learning::algorithm::personal::{Divided, PersonalLayers};
use fedgenie_learning::data::partition::{Partition, PartitionConfig, TestSplit};
use fedgenie_learning::data::source::DataConfig;
use fedgenie_learning::data::{Dataset, InUse, SetAside, Split, Stage};
use fedgenie_learning::metric::{self, Definition};
use fedgenie_learning::model::weights::read_safetensors;
use fedgenie_learning::model::{Model, ModelError, Network};
use fedgenie_learning::task::{ClusterNetworks, Labelled, Task, read_clusters};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keys that tasks of labelled rows share.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'a> {
    /// Files or generator of the examples; `None` if the task draws them.
    pub data: Option<&'a DataConfig>,
    /// Whether features are standardised.
    pub normalize: bool,
    /// The file of the weights to start from, if they are not drawn.
    pub start: Option<&'a PathBuf>,
    /// How training examples go to clients.
    pub partition: &'a PartitionConfig,
    /// When data move from edge server to edge server.
    pub drift: Option<Drift>,
    /// How data change over time.
    pub shift: &'a [Shift],
    /// The share of training rows for validation.
    pub validation: f64,
    /// The share of each client's examples on which it is measured.
    pub held_out: f64,
    /// Names of further metrics.
    pub metrics: &'a [String],
}

/// The keys that change after they were read.
pub struct KeysMut<'a> {
    /// See [`Keys::data`].
    pub data: Option<&'a mut DataConfig>,
    /// See [`Keys::start`].
    pub start: Option<&'a mut PathBuf>,
    /// See [`Keys::partition`].
    pub partition: &'a mut PartitionConfig,
    /// See [`Keys::shift`].
    pub shift: &'a mut [Shift],
}

impl Keys<'_> {
    /// Checks changes over time, alone and beside the other keys.
    fn check_shift(&self) -> Result<(), Complaint> {
        shift::check_all(self.shift).map_err(|complaint| complaint.below("shift"))?;
        let refuse = |path: String, message: &str| Err(Complaint::new(path, message));
        if self.shift.is_empty() {
            return Ok(());
        }
        if self.drift.is_some() {
            return refuse("shift".to_owned(), "is not defined where data move from server to server; take drift out");
        }
        if matches!(self.partition, PartitionConfig::Overlapping(_)) {
            let message = "needs examples that are dealt to one client each; take another partition than overlapping";
            return refuse("shift".to_owned(), message);
        }
        let dealt = self.shift.iter().position(|shift| shift.labels.is_some());
        if let Some(index) = dealt.filter(|_| self.held_out > 0.0) {
            let message =
                "would deal examples that clients have trained on to those who hold them out; take held_out out";
            return refuse(format!("shift.{index}.labels"), message);
        }
        Ok(())
    }
}

/// A model of the rows, and the sum of two such models for clusters of edge servers: `None` without scores of classes.
pub type Models = (Box<dyn Model>, Option<Network>);

/// A task of labelled rows in a scenario.
pub trait LabelledSettings: std::fmt::Debug + Send + Sync {
    /// Its name in scenarios.
    const NAME: &'static str;
    /// Whether rows have classes, and not numbers.
    const CLASSIFIES: bool;

    /// The shared keys.
    fn keys(&self) -> Keys<'_>;

    /// The shared keys that change.
    fn keys_mut(&mut self) -> KeysMut<'_>;

    /// Checks the task's own keys.
    ///
    /// # Errors
    /// A complaint with a path below the task's table.
    fn check_own(&self) -> Result<(), Complaint> {
        Ok(())
    }

    /// The examples of a seed where no file or generator is named.
    ///
    /// # Errors
    /// If they cannot be drawn.
    fn drawn(&self, _streams: &Streams) -> Result<Split, TaskError> {
        Err(TaskError::Setting(Complaint::new("data", "is missing")))
    }

    /// The models that learn from the rows.
    ///
    /// # Errors
    /// If the rows do not fit.
    fn models(&self, data: &Split) -> Result<Models, TaskError>;

    /// The further metrics.
    ///
    /// # Errors
    /// A complaint about a name that is of no such metric, or listed twice.
    fn metrics(&self) -> Result<Vec<&'static Definition>, Complaint> {
        metric::added(self.keys().metrics, metric::of_rows(Self::CLASSIFIES))
    }
}

impl<T: LabelledSettings> TaskSettings for T {
    fn about(&self) -> About {
        let Keys { drift, held_out, shift, .. } = self.keys();
        About { drift, shifts: !shift.is_empty(), holds_out: held_out > 0.0, ..About::training(T::NAME) }
    }

    fn measures(&self) -> Measures {
        Labelled::measures(T::CLASSIFIES, &self.metrics().unwrap_or_default(), self.keys().validation > 0.0)
    }

    fn check(&self) -> Result<(), Complaint> {
        let Keys { data, drift, validation, held_out, partition, .. } = self.keys();
        if let Some(data) = data {
            data.check().map_err(|complaint| complaint.below("data"))?;
        }
        self.check_own()?;
        for (key, share) in [("validation", validation), ("held_out", held_out)] {
            if !(0.0..1.0).contains(&share) {
                let message = format!("found {share}; expected a share of at least 0 and below 1");
                return Err(Complaint::new(key, message));
            }
        }
        // Who deals: feature skew leaves that to another partition.
        let dealing = partition.feature_skew().map_or(partition, |skew| &skew.of);
        if held_out > 0.0 && (dealing.is_declared() || matches!(dealing, PartitionConfig::Overlapping(_))) {
            let message = format!(
                "needs clients whose examples are dealt to them, and whose amounts follow from that; take another \
                 partition than {}, or the key out",
                dealing.kind()
            );
            return Err(Complaint::new("held_out", message));
        }
        self.metrics()?;
        self.keys().check_shift()?;
        match drift {
            Some(Drift { round: 0, .. }) => Err(Complaint::new("drift.round", "found 0; rounds are numbered from 1")),
            _ => Ok(()),
        }
    }

    fn partition(&self) -> Option<&PartitionConfig> {
        Some(self.keys().partition)
    }

    fn partition_mut(&mut self) -> Option<&mut PartitionConfig> {
        Some(self.keys_mut().partition)
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let keys = self.keys_mut();
        if let Some(found) = keys.data {
            found.resolve_paths(base, data);
        }
        if let Some(start) = keys.start {
            *start = base.join(&*start);
        }
        keys.shift
            .iter_mut()
            .filter_map(|shift| shift.labels.as_mut())
            .for_each(|labels| labels.resolve_paths(base, data));
    }

    fn files(&self) -> Vec<PathBuf> {
        let Keys { data, start, shift, .. } = self.keys();
        let labels = shift.iter().filter_map(|shift| shift.labels.as_ref()).flat_map(PartitionConfig::files);
        data.map_or_else(Vec::new, DataConfig::files).into_iter().chain(start.cloned()).chain(labels).collect()
    }

    fn material(&self, streams: &Streams, cache: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let Keys { data, normalize, start, partition, validation, held_out, shift, .. } = self.keys();
        // What is changed is normalised afterwards.
        let is_changed = partition.feature_skew().is_some() || shift.iter().any(|shift| shift.features.is_some());
        let later = is_changed.then(|| {
            let key = format!("{} {self:?}", streams.seed());
            Later { normalize, key, copies: cache.of::<InUse<Split>>() }
        });
        let normalize = normalize && later.is_none();
        let data = match data {
            Some(data) => data.load(normalize, streams, cache)?,
            None => cache.drawn(format!("{normalize} {self:?}"), streams, || {
                let drawn = self.drawn(streams)?;
                Ok::<_, TaskError>(if normalize { drawn.normalized()? } else { drawn })
            })?,
        };
        let (model, additive) = self.models(&data)?;
        model.fits(&data.train)?;
        model.fits(&data.test)?;
        let (partition, start, metrics) =
            (partition.clone(), start.cloned(), self.metrics().map_err(TaskError::Setting)?);
        let shares = Shares { partition, validation, held_out };
        let shifts = shift.to_vec();
        let rows =
            Rows { data, later, model, additive, clusters: None, personal: None, shares, shifts, start, metrics };
        Ok(Some(Box::new(rows)))
    }
}

/// Rows with a class or a number, and a model of them.
struct Rows {
    /// Train and test examples.
    data: Arc<Split>,
    /// What is left to be done to them.
    later: Option<Later>,
    /// The model.
    model: Box<dyn Model>,
    /// The sum of two such models, for clusters of edge servers; `None` without scores of classes.
    additive: Option<Network>,
    /// The networks of clusters, where there are any.
    clusters: Option<ClusterNetworks>,
    /// What stays with clients, if anything does, and the epochs in which it is trained alone.
    personal: Option<(Divided, Option<u32>)>,
    /// Which rows are whose.
    shares: Shares,
    /// How they change over time.
    shifts: Vec<Shift>,
    /// The file of the weights to start from, if they are not drawn.
    start: Option<PathBuf>,
    /// Further metrics.
    metrics: Vec<&'static Definition>,
}

/// What is done to examples when it is known whose they are.
struct Later {
    /// Whether they are then standardised.
    normalize: bool,
    /// By which the result is known.
    key: String,
    /// Results that somebody uses.
    copies: Arc<InUse<Split>>,
}

/// Which training rows are whose.
struct Shares {
    /// How they go to clients.
    partition: PartitionConfig,
    /// The share for validation.
    validation: f64,
    /// The share of each client's on which it is measured.
    held_out: f64,
}

/// The same of a seed.
struct Dealt {
    /// On which clients train.
    train: Partition,
    /// On which clients are measured, where it is not the same.
    own: Option<Partition>,
    /// For validation.
    valid: Option<Vec<u32>>,
    /// How test data are divided among servers.
    test_split: Option<TestSplit>,
}

impl Shares {
    /// Rows as a partition deals them, those for validation apart, where clients hold out nothing; by the streams of
    /// the seed and those of the partition.
    fn spread(
        &self,
        partition: &PartitionConfig,
        data: &Dataset,
        (clients, sizes): (usize, &[u32]),
        [streams, dealing]: [&Streams; 2],
    ) -> Result<Dealt, TaskError> {
        let aside = match self.validation > 0.0 {
            true => Some(SetAside::draw(data.examples(), self.validation, streams)?),
            false => None,
        };
        let outline = aside.as_ref().map(|aside| aside.outline(data));
        let left = outline.as_ref().unwrap_or(data);
        let mut train = partition.build(left, clients, sizes, dealing)?;
        let test_split = partition.test_split(left, dealing)?;
        if let Some(aside) = &aside {
            train = train.of_rows(&aside.train);
        }
        Ok(Dealt { train, own: None, valid: aside.map(|aside| aside.valid), test_split })
    }

    fn deal(&self, data: &Dataset, clients: (usize, &[u32]), streams: &Streams) -> Result<Dealt, TaskError> {
        let Dealt { train, valid, test_split, .. } = self.spread(&self.partition, data, clients, [streams; 2])?;
        let (train, own) = match self.held_out > 0.0 {
            true => {
                let refused = || Complaint::new("held_out", "needs examples that are dealt to clients");
                let (train, own) =
                    train.held_out(self.held_out, streams).ok_or_else(refused).map_err(TaskError::Setting)?;
                if own.sizes().all(|size| size == 0) {
                    let message = format!(
                        "found {}; no client has so many examples that it would hold one out, give a larger share",
                        self.held_out
                    );
                    return Err(TaskError::Setting(Complaint::new("held_out", message)));
                }
                (train, Some(own))
            }
            false => (train, None),
        };
        Ok(Dealt { train, own, valid, test_split })
    }
}

impl Material for Rows {
    fn whole_bytes(&self) -> u64 {
        let shared = self.personal.as_ref().map(|(parts, _)| parts.layout.len());
        shared.unwrap_or_else(|| self.model.parameters()) as u64 * 4
    }

    fn personal(&mut self, layers: &PersonalLayers) -> Result<(), Complaint> {
        if self.clusters.is_some() {
            return Err(Complaint::new("", "is defined for one shared model; take [clusters] out, or the entry"));
        }
        if self.shares.validation > 0.0 {
            let message = "leaves no model that could be measured on validation data; take validation of the task out, or \
                           the entry";
            return Err(Complaint::new("", message));
        }
        let parts = layers.divide(&self.model.tensors(), self.model.trained())?;
        self.personal = Some((parts, layers.private_epochs));
        Ok(())
    }

    fn clustered(&mut self, model: Option<ClusterModel>, networks: ClusterNetworks) -> Option<ClusterModel> {
        let made = match (model, self.additive.take()) {
            (Some(ClusterModel::Isolated), _) => ClusterModel::Isolated,
            (_, Some(additive)) => {
                self.model = Box::new(additive);
                ClusterModel::Additive
            }
            (_, None) => return None,
        };
        self.clusters = Some(networks);
        Some(made)
    }

    fn deal(self: Box<Self>, clients: usize, sizes: &[u32], streams: &Streams) -> Result<Arc<dyn Task>, TaskError> {
        let dealt = self.shares.deal(&self.data.train, (clients, sizes), streams)?;
        let personal = self.personal.clone();
        let seen = self.seen(&dealt, (clients, sizes), streams)?;
        let later = self.shifted(&dealt, seen.clone(), (clients, sizes), streams)?;
        let task = self.task(dealt, seen)?.with_shifts(later);
        Ok(match personal {
            Some((parts, private_epochs)) => task.with_personal_layers(parts, private_epochs, streams),
            None => Arc::new(task),
        })
    }

    fn pool(
        self: Box<Self>,
        clients: usize,
        sizes: &[u32],
        streams: &Streams,
    ) -> Result<Option<Arc<dyn Task>>, TaskError> {
        let dealt = self.shares.deal(&self.data.train, (clients, sizes), streams)?;
        let (data, _) = self.seen(&dealt, (clients, sizes), streams)?;
        let (train, own) = (dealt.train.pooled(), dealt.own.map(|own| own.pooled()));
        Ok(Some(Arc::new(self.task(Dealt { train, own, ..dealt }, (data, None))?)))
    }
}

impl Rows {
    /// The examples as clients see them, and by whom each is seen, where they have manners.
    fn seen(
        &self,
        dealt: &Dealt,
        (clients, sizes): (usize, &[u32]),
        streams: &Streams,
    ) -> Result<(Arc<Split>, Option<Stage>), TaskError> {
        let Some(later) = &self.later else { return Ok((self.data.clone(), None)) };
        let parts: Vec<&Partition> = [Some(&dealt.train), dealt.own.as_ref()].into_iter().flatten().collect();
        let valid = dealt.valid.as_deref().unwrap_or_default();
        let skew = self.shares.partition.feature_skew();
        let stage = skew.map(|skew| skew.stage(&self.data, &parts, valid, streams)).transpose()?;
        if stage.is_none() && !later.normalize {
            return Ok((self.data.clone(), None));
        }
        let key = format!("{} {clients} {sizes:?}", later.key);
        let data = later.copies.of(key, || self.data.changed(stage.as_slice(), later.normalize, streams))?;
        Ok((data, stage))
    }

    /// The task of these shares, of examples as they are seen.
    fn task(
        self,
        Dealt { train, own, valid, test_split }: Dealt,
        (data, stage): (Arc<Split>, Option<Stage>),
    ) -> Result<Labelled, TaskError> {
        let copies = self.clusters.map_or(1, |clusters| clusters.count as usize);
        check_parameters(self.model.parameters().saturating_mul(copies)).map_err(TaskError::Network)?;
        let read = |start: PathBuf| match self.clusters {
            Some(clusters) => read_clusters(&*self.model, clusters.count, &start),
            None => read_safetensors(&*self.model, &start).map(|start| vec![start]),
        };
        let start = self.start.map(read).transpose()?;
        let mut task = Labelled::new(data, self.model, train, None).with_metrics(&self.metrics);
        task.start = start;
        if let Some(valid) = valid {
            task = task.with_validation(valid);
        }
        if let Some(own) = own {
            task = task.measured_on(own);
        }
        if let Some(clusters) = self.clusters {
            task = task.with_clusters(clusters);
        }
        task.test_split = test_split;
        Ok(task.seen_in(stage.map_or_else(Vec::new, |stage| stage.manners)))
    }
}

/// Number of classes of both parts.
///
/// # Errors
/// If the examples have numbers as targets.
pub(super) fn classes(split: &Split) -> Result<usize, ModelError> {
    let refused = ModelError::Targets { found: "numbers", expected: "classes" };
    split.train.classes().map(|(_, classes)| classes).ok_or(refused)
}

/// Whether a share is the default.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) const fn is_none(share: &f64) -> bool {
    *share == 0.0
}

#[cfg(test)]
mod tests;
