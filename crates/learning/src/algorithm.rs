//! Algorithms: how clients make updates and how a server combines them, independent of the task.
//!
//! # Definition
//! A round of learning has three parts, and a scenario chooses each by itself:
//!
//! | part | what it decides | chosen by |
//! |---|---|---|
//! | *job* | a client's input beside the model, the correction of its gradients, its memory | an entry `[algorithm.NAME]` with the role job |
//! | *combination* | how the changes of a round become one change Δ | an entry with the role combine; averaging without one |
//! | *step* | how the server moves its model along Δ | `[aggregation] server` |
//!
//! Let `x` be the model that a client was sent, `y_k` its result, `δ_k = y_k − x`, `p_k` the weight of the update
//! ([`fold`] has the weightings), `K_k` the steps of the job, `η` the learning rate of its round and `N` the number of
//! all clients. Without an entry, and with `[algorithm.fedavg]`, `Δ = Σ p_k δ_k`.
//!
//! `[training] proximal` is FedProx by another key. The decay of clusters' networks is a part of a job, chosen by
//! `[clusters]`; the weight of old updates (FedBuff) is part of `p_k`, chosen by the protocol, which alone knows ages.
//!
//! At most one entry has the role of the job and at most one that of the combination. So SCAFFOLD with a trimmed mean
//! under Adam is a scenario. Pairs without a definition are refused by name.
//!
//! # Inputs
//! An algorithm corrects a gradient after clipping and before the proximal term and weight decay. Parameters that
//! gradient descent does not change (running means) are averaged under every algorithm.
//!
//! *Rows.* A row of a table that a job does not move is no part of its update: a change of 0 in means and in trimming.
//! A job changes memory only in the rows that it moves. Private state of clients is neither corrected nor aggregated.
//!
//! *Memory.* A client's memory changes only when its update is aggregated: a job that was called off or lost changes
//! nothing.
//!
//! # Example
//! ```toml
//! [algorithm.scaffold]
//! option = 2
//! [algorithm.trimmed-mean]
//! fraction = 0.1
//! [aggregation]
//! weighting = "uniform"
//! server = { adam = { lr = 0.01 } }
//! ```
//!
//! # Adding an algorithm
//! Write `algorithm/NAME.rs` with a `Config` that implements [`AlgorithmSettings`], and a [`JobRule`], a [`Combine`] or
//! both; declare the module and add one line to [`AlgorithmConfig`] below.

pub mod afl_minimax;
pub mod bulyan;
pub mod centred_clipping;
mod config;
pub mod ditto;
pub mod fedavg;
pub mod feddyn;
pub mod fednova;
pub mod fedper;
pub mod fedprox;
pub mod fedrep;
pub mod fold;
pub mod geometric_median;
pub mod krum;
pub mod lg_fedavg;
pub mod median;
pub mod memory;
pub mod moon;
pub mod multi_krum;
pub mod norm_clipping;
pub mod personal;
pub mod privacy;
pub mod qfedavg;
pub mod scaffold;
pub mod scene;
pub mod server;
pub mod trimmed_mean;
pub mod whole;

pub use config::{AggregationConfig, RowDivisor, Weighting};
pub use fold::{Aging, Contribution};
pub use memory::{JobMemory, Memory, Remembered};
pub use scene::Scene;
pub use server::{ServerConfig, ServerOptimizer};
pub use whole::{Factors, Gathered};

use crate::compression::CompressionConfig;
use crate::layout::{Layout, Update};
use crate::secure_aggregation::SecureAggregationConfig;
use ditto::OwnModels;
use fedgenie_core::catalogue::Named;
use fedgenie_core::components;
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use personal::PersonalLayers;
use privacy::DpFedAvg;
use std::fmt::Debug;
use std::sync::Arc;

/// The source of this file, which opens with the definition of `[algorithm]`.
pub const DOCUMENTED: &str = include_str!("algorithm.rs");

/// Parameters of an algorithm, as a scenario writes them.
pub trait AlgorithmSettings {
    /// Checks the parameters, and whether the algorithm is defined where it is to be used.
    ///
    /// # Errors
    /// A complaint with a path below the entry, empty where it is about the entry as a whole.
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint>;

    /// Its part in a client's job, if it has one.
    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        None
    }

    /// Its part in the combination of updates, if it has one.
    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        None
    }

    /// How clients train models of their own beside the shared one, if they do.
    fn own_models(&self) -> Option<OwnModels> {
        None
    }

    /// Which parts of the model stay with clients, if some do.
    fn personal(&self) -> Option<PersonalLayers> {
        None
    }

    /// The weighting of `[aggregation]` where that is left out; by data size if `None`.
    fn weighting(&self) -> Option<Weighting> {
        None
    }

    /// The weight μ of a pull `μ(w − x)` that its jobs add to each gradient, if they do.
    fn proximal(&self) -> Option<f64> {
        None
    }
}

components! {
    /// An algorithm, for example `scaffold = { option = 2 }`.
    pub enum AlgorithmConfig: AlgorithmSettings = "algorithm" {
        "afl-minimax" => AflMinimax(afl_minimax::Config) in "algorithm/afl_minimax.rs";
        "bulyan" => Bulyan(bulyan::Config) in "algorithm/bulyan.rs";
        "centred-clipping" => CentredClipping(centred_clipping::Config) in "algorithm/centred_clipping.rs";
        "ditto" => Ditto(ditto::Config) in "algorithm/ditto.rs";
        "fedavg" => FedAvg(fedavg::Config) in "algorithm/fedavg.rs";
        "feddyn" => FedDyn(feddyn::Config) in "algorithm/feddyn.rs";
        "fednova" => FedNova(fednova::Config) in "algorithm/fednova.rs";
        "fedper" => FedPer(fedper::Config) in "algorithm/fedper.rs";
        "fedprox" => FedProx(fedprox::Config) in "algorithm/fedprox.rs";
        "fedrep" => FedRep(fedrep::Config) in "algorithm/fedrep.rs";
        "geometric-median" => GeometricMedian(geometric_median::Config) in "algorithm/geometric_median.rs";
        "krum" => Krum(krum::Config) in "algorithm/krum.rs";
        "lg-fedavg" => LgFedAvg(lg_fedavg::Config) in "algorithm/lg_fedavg.rs";
        "median" => Median(median::Config) in "algorithm/median.rs";
        "moon" => Moon(moon::Config) in "algorithm/moon.rs";
        "multi-krum" => MultiKrum(multi_krum::Config) in "algorithm/multi_krum.rs";
        "norm-clipping" => NormClipping(norm_clipping::Config) in "algorithm/norm_clipping.rs";
        "qfedavg" => QFedAvg(qfedavg::Config) in "algorithm/qfedavg.rs";
        "scaffold" => Scaffold(scaffold::Config) in "algorithm/scaffold.rs";
        "trimmed-mean" => TrimmedMean(trimmed_mean::Config) in "algorithm/trimmed_mean.rs";
    }
}

/// `[algorithm]`: entries by name.
pub type AlgorithmsConfig = Named<AlgorithmConfig>;

/// An algorithm's part in a client's job.
pub trait JobRule: Debug + Send + Sync {
    /// Copies of the model's numbers that travel beside it, down and up.
    fn copies(&self) -> [u64; 2] {
        [0; 2]
    }

    /// What the server and each client remember from round to round; `None` if nothing.
    fn remembers(&self) -> Option<Remembered> {
        None
    }

    /// Weight and temperature of a contrast with representations under the model that was sent, and under what the
    /// client remembers, which is added to the loss of each step; `None` without one.
    fn contrast(&self) -> Option<[f64; 2]> {
        None
    }

    /// Fills the correction of each gradient of a job, a number for each parameter of the layout; false if there is
    /// no correction. `memory` is the server's memory as sent, and the client's own.
    fn correct(&self, _layout: &Layout, _memory: &JobMemory, _correction: &mut Vec<f32>) -> bool {
        false
    }

    /// Whether a job also works out the mean gradient of its loss at the model that it was sent.
    fn needs_gradient(&self) -> bool {
        false
    }

    /// Whether a job also works out the mean loss of the model that it was sent on the client's own examples, before it
    /// trains, in the time of an inference pass.
    fn needs_loss(&self) -> bool {
        false
    }

    /// Whether changes count by weights, so that a policy may give them.
    fn takes_weights(&self) -> bool {
        true
    }

    /// Appends the client's memory once the update is aggregated: a number for each of the update's parameters, in
    /// their order; nothing if its memory stays the same.
    fn leave(&self, _done: &Done<'_>, _left: &mut Vec<f32>) {}

    /// How the server's memory changes where a client's changes from `before`, zeros at first, to `after`; `clients` is
    /// `N`.
    fn gather(&self, _server: &mut [f64], _before: Option<&[f32]>, _after: &[f32], _clients: usize) {}

    /// The multiple of the server's memory that is added to Δ, after the memory has taken the round in: by the one
    /// server or the cloud, to the trained parameters that Δ moves. Rows that no job moved stay as they are.
    fn shift(&self) -> f64 {
        0.0
    }
}

/// A job that is over.
#[derive(Clone, Copy, Debug)]
pub struct Done<'a> {
    /// How parameters are arranged.
    pub layout: &'a Layout,
    /// `x`: the model that the client was sent.
    pub start: &'a [f32],
    /// The result of the job, and its steps.
    pub update: &'a Update,
    /// `η`: the learning rate of the job's round.
    pub rate: f64,
    /// The server's memory as sent, and the client's own.
    pub memory: &'a JobMemory,
    /// The mean gradient of its loss at `x`, where the rule needs it.
    pub gradient: &'a [f32],
}

/// An algorithm's part in the combination of updates.
pub trait Combine: Debug + Send + Sync {
    /// Numbers that travel up beside each update.
    fn numbers_up(&self) -> u64 {
        0
    }

    /// Factors of the changes, one for each contribution, beside their weights and not in the sum that these are
    /// divided by; `None` if all are 1. Some contribution has weight.
    fn factors(&self, _gathered: &Gathered<'_>) -> Option<Factors> {
        None
    }

    /// The fewest updates that it is defined for. A round with fewer is abandoned.
    fn least_updates(&self) -> usize {
        0
    }

    /// Whether it also combines models of edge servers, which no job made, at the cloud; they are averaged otherwise.
    fn of_models(&self) -> bool {
        true
    }

    /// Whether the server remembers the last change of the model, zeros at first: [`Gathered::centre`].
    fn remembers_change(&self) -> bool {
        false
    }

    /// Whether the server remembers a number for each client, `1/N` at first: [`Gathered::mixture`].
    fn remembers_clients(&self) -> bool {
        false
    }

    /// Changes these numbers after a round with these contributions, ascending by client and job.
    fn mix(&self, _contributions: &[&Contribution<'_>], _mixture: &mut [f64]) {}

    /// How one number is made of the changes of one parameter, in the place of their weighted mean.
    fn of_numbers(&self) -> Option<&dyn OfNumbers> {
        None
    }

    /// Whether changes count by weights, so that a policy may give them.
    fn takes_weights(&self) -> bool {
        self.of_numbers().is_none()
    }

    /// Whether sums over all updates, of changes and of the numbers beside them, are all that it needs of a round.
    fn needs_sums_alone(&self) -> bool {
        false
    }

    /// Compares the updates of a round before they are combined, one for each client and the model that it was sent,
    /// ascending by client and job: moves weight between them, and sets the private state of their clients. `weights`
    /// are those of the average, before they are divided by their sum. `None` if updates are combined as they are.
    fn relate(&self, _sent: &[(ClientId, &[f32])], _updates: &[&Update], _weights: &[f64]) -> Option<Related> {
        None
    }
}

/// A server's step that a program brings, in the place of combination and `[aggregation] server`.
///
/// # Determinism
/// The result depends on the arguments alone.
pub trait FoldRule: Debug + Send + Sync {
    /// How many numbers the server remembers from round to round, beside a model of so many parameters; zeros at first.
    fn memory_len(&self, _parameters: usize) -> usize {
        0
    }

    /// Moves the model of the one server, or of the cloud, by the updates of a round, ascending by client and job. An
    /// edge server averages: the cloud's contributions are the models of edge servers.
    ///
    /// # Errors
    /// Whatever ends the run.
    fn fold(&self, model: &mut [f32], contributions: &[Contribution<'_>], memory: &mut [f64]) -> Result<(), Failure>;
}

/// One number out of the changes of one parameter.
pub trait OfNumbers: Sync {
    /// The number; the changes may be put into another order. There is at least one.
    fn combine(&self, changes: &mut [f64]) -> f64;
}

/// Result of comparing the updates of a round: see [`Combine::relate`].
#[derive(Clone, Debug, PartialEq)]
pub struct Related {
    /// The weight of each update in the average, instead of the one that it had; their sum is the same, and an update
    /// without weight stays without.
    pub weights: Vec<f64>,
    /// Private state of each client, in place of that in its update.
    pub private: Vec<Vec<f32>>,
}

/// The weighting of `[aggregation]` where that is left out, as the entries say.
pub fn weighting_of(entries: &AlgorithmsConfig) -> Weighting {
    entries.entries().iter().find_map(|entry| entry.settings().weighting()).unwrap_or_default()
}

/// Whether clients have models of their own, or parts of one, as the entries say.
pub fn has_own_models(entries: &AlgorithmsConfig) -> bool {
    let has =
        |entry: &AlgorithmConfig| entry.settings().own_models().is_some() || entry.settings().personal().is_some();
    entries.entries().iter().any(has)
}

/// The first entry by which parts of the model stay with clients, and which.
pub fn personal_layers(entries: &AlgorithmsConfig) -> Option<(&'static str, PersonalLayers)> {
    entries.entries().iter().find_map(|entry| Some((entry.kind(), entry.settings().personal()?)))
}

/// The algorithm of a scenario: at most one rule for each part.
#[derive(Clone, Debug, Default)]
pub struct Algorithm {
    /// Of jobs.
    pub job: Option<Arc<dyn JobRule>>,
    /// Of the combination.
    pub combine: Option<Arc<dyn Combine>>,
    /// The entry whose rule that is.
    pub combined_by: Option<&'static str>,
    /// Weight of the pull of jobs towards the model that was sent; 0 without one.
    pub proximal: f64,
    /// The server's step of a program, in the place of combination and `[aggregation] server`.
    pub outside: Option<Arc<dyn FoldRule>>,
    /// How models and updates are encoded.
    pub compression: Option<CompressionConfig>,
    /// How clients train models of their own, if they have any.
    pub own_models: Option<OwnModels>,
    /// Which parts of the model stay with clients, if some do.
    pub personal: Option<PersonalLayers>,
    /// The private mean, in the place of the combination.
    pub privacy: Option<Arc<DpFedAvg>>,
    /// What it costs clients that the server learns sums alone, if it does.
    pub secure: Option<SecureAggregationConfig>,
}

impl Algorithm {
    /// The algorithm that some entries make together.
    ///
    /// # Errors
    /// A complaint with a path below `[algorithm]`: an entry is out of its range or not defined here, or two have the
    /// same role.
    pub fn new(entries: &AlgorithmsConfig, scene: &Scene<'_>) -> Result<Self, Complaint> {
        let pull = |entry: &AlgorithmConfig| entry.settings().proximal();
        let pulling = entries.entries().iter().find(|entry| pull(entry).is_some());
        if let Some(entry) = pulling.filter(|_| scene.proximal > 0.0) {
            let message =
                "pulls towards the model that was sent, and so does [training] proximal; take one of them out";
            return Err(Complaint::new(entry.kind(), message));
        }
        let proximal = pulling.and_then(pull).unwrap_or(scene.proximal);
        let scene = &Scene { proximal, ..*scene };
        let mut found = Self { proximal, ..Self::default() };
        let mut roles: [Option<&'static str>; 2] = [None; 2];
        for entry in entries.entries() {
            let (name, settings) = (entry.kind(), entry.settings());
            settings.check(scene).map_err(|complaint| complaint.below(name))?;
            let (job, combine) = (settings.job(scene), settings.combine(scene));
            let (own_models, personal) = (settings.own_models(), settings.personal());
            let has_job = job.is_some() || own_models.is_some() || personal.is_some();
            let has = [("job", has_job), ("combination", combine.is_some())];
            for ((role, _), holder) in has.into_iter().zip(&mut roles).filter(|((_, has), _)| *has) {
                if let Some(other) = holder.replace(name) {
                    let message = format!("decides about the {role}, and so does {other}; take one of them out");
                    return Err(Complaint::new(name, message));
                }
            }
            found.job = job.or(found.job);
            found.own_models = own_models.or(found.own_models);
            found.personal = personal.or(found.personal);
            found.combined_by = combine.as_ref().map(|_| name).or(found.combined_by);
            found.combine = combine.or(found.combine);
        }
        Ok(found)
    }

    /// Bytes that travel beside a job's model and its update, which have so many numbers, down and up.
    pub fn beside(&self, numbers: [u64; 2]) -> [u64; 2] {
        let copies = self.job.as_ref().map_or([0; 2], |job| job.copies());
        let up = self.combine.as_ref().map_or(0, |combine| combine.numbers_up());
        let sums_alone = self.secure.is_some();
        let [bounds, counts] = self.privacy.as_ref().map_or([0; 2], |privacy| privacy.config.beside(sums_alone));
        [4 * (numbers[0] * copies[0] + bounds), 4 * (numbers[1] * copies[1] + up + counts)]
    }

    /// Whether updates are combined by weights, so that a policy may give them.
    pub fn takes_weights(&self) -> bool {
        let of_job = self.job.as_ref().is_none_or(|job| job.takes_weights());
        self.privacy.is_none() && of_job && self.combine.as_ref().is_none_or(|combine| combine.takes_weights())
    }

    /// Whether jobs do more than the usual work: an inference pass, further training, encoding or masking.
    pub fn works_more(&self) -> bool {
        let encodes = self.compression.as_ref().is_some_and(|compression| compression.encode_rate.is_some());
        let masks = self.secure.as_ref().is_some_and(SecureAggregationConfig::takes_time);
        self.needs_loss() || self.own_models.is_some() || self.private_epochs().is_some() || encodes || masks
    }

    /// Epochs of a job in which the part that stays with its client is trained, before the rest is.
    pub fn private_epochs(&self) -> Option<u32> {
        self.personal.as_ref().and_then(|personal| personal.private_epochs)
    }

    /// Whether each job makes an inference pass over the client's examples beside its training.
    pub fn needs_loss(&self) -> bool {
        self.job.as_ref().is_some_and(|job| job.needs_loss())
    }

    /// Bytes that travel, down and up, where the model and the update have so many numbers and, as they are, so many
    /// bytes, and the update is one of so many that are summed; 0 if it is of none.
    pub fn bytes(&self, plain: [u64; 2], numbers: [u64; 2], selected: usize) -> [u64; 2] {
        let (mut bytes, mut beside) = (plain, self.beside(numbers));
        if let Some(CompressionConfig { up, down, .. }) = &self.compression {
            for (place, codec) in [down, up].into_iter().enumerate() {
                bytes[place] = codec.as_ref().map_or(bytes[place], |codec| codec.bytes(numbers[place]));
            }
        }
        if let Some(secure) = self.secure.as_ref().filter(|_| selected > 0) {
            let [down, up] = secure.bytes(selected, self.numbers_up(numbers[1]));
            beside[0] = beside[0].saturating_add(down);
            // The masked update has all the numbers that travel beside it.
            (bytes[1], beside[1]) = (up, 0);
        }
        [0, 1].map(|place| bytes[place].saturating_add(beside[place]))
    }

    /// How many numbers travel up, where the update has so many.
    pub fn numbers_up(&self, update: u64) -> u64 {
        update + self.beside([0, update])[1] / 4
    }

    /// Whether clients keep what encodings left over.
    pub fn keeps_errors(&self) -> bool {
        self.compression.as_ref().is_some_and(CompressionConfig::keeps_errors)
    }

    /// Whether something else travels than models and updates as they are.
    pub fn sends_more(&self) -> bool {
        self.compression.is_some() || self.secure.is_some() || self.beside([1; 2]) != [0; 2]
    }
}

#[cfg(test)]
mod tests;
