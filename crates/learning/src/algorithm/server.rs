//! Server optimizers: federated averaging, with momentum, Adam, Yogi, Adagrad on the mean change.
//!
//! # Definition
//! In each aggregation with weight, with the mean change Δ of the module above and the server's learning rate η:
//!
//! | server | step |
//! |---|---|
//! | `average` | `w ← w + ηΔ` |
//! | `momentum` | `b ← βb + Δ`; `w ← w + ηb`, `b = 0` at first |
//! | `adam` | `m ← β₁m + (1 − β₁)Δ`, `v ← β₂v + (1 − β₂)Δ²`; `w ← w + ηm/(√v + τ)` |
//! | `yogi` | as `adam`, but `v ← v − (1 − β₂)Δ² sign(v − Δ²)` |
//! | `adagrad` | as `adam`, but `v ← v + Δ²` |
//!
//! Parameters that clients update without training, such as the running means of batch normalisation, are averaged
//! under any server, with η = 1. At first `m = 0` and `v = τ²`; there is no bias correction.
//!
//! # Inputs
//! The global model, the contributions, and the number of examples of all clients, which only `total-size` uses.
//!
//! # Source
//! `momentum`: T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the effects of non-identical data distribution for federated
//! visual classification", 2019 (arXiv 1909.06335), FedAvgM. `adam`, `yogi`, `adagrad`: S. J. Reddi et al., "Adaptive
//! federated optimization", ICLR 2021, Algorithm 2 (with `m` apart from Δ, as in arXiv 2003.00295v5).
//!
//! # Deviations from the source
//! Both average over the clients of a round uniformly or by data size among them and know fresh updates only; here Δ is
//! the mean under any weighting, stale updates included. Reddi et al. ask for an initial `v` of at least τ²: it is τ².
//! Hsu et al. have no η besides momentum: it is 1 unless set. A round without weight leaves `m`, `b` and `v` as they
//! are.
//!
//! # Cost
//! As averaging; one (`momentum`) or two (`adam`, `yogi`, `adagrad`) buffers of the model's length in `f64`.
//!
//! # Determinism
//! Each parameter is treated alone, in `f64`, its buffers too; only the parameter is rounded to `f32`. Squares of small
//! changes would lose most of their bits next to `v` in single precision, and there is one server only.
//!
//! # Example
//! ```toml
//! [aggregation]
//! server = "average"
//! # server = { momentum = { momentum = 0.9 } }
//! # server = { adam = { lr = 0.01 } }
//! ```

use super::fold::Fold;
use super::privacy::{DpFedAvg, Released};
use super::{AggregationConfig, Aging, Combine, Contribution, FoldRule, RowDivisor, Weighting};
use crate::layout::Layout;
use fedgenie_core::catalogue::Catalogue;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::state::{Stateful, each_shared};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Servers that scenarios can name.
pub static CATALOGUE: Catalogue =
    Catalogue { kind: "server", definition: "ServerConfig", entries: &[], shared: include_str!("server.rs") };

/// The server's step along the mean change, for example `"average"` or `{ adam = { lr = 0.01 } }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = fedgenie_core::config::allow_bare_kinds)]
pub enum ServerConfig {
    /// FedAvg: federated averaging.
    Average {
        /// Learning rate of the server; positive. 1 is the mean itself.
        #[serde(default = "one")]
        lr: f64,
    },
    /// FedAvgM: averaging with server momentum.
    Momentum {
        /// Learning rate of the server; positive.
        #[serde(default = "one")]
        lr: f64,
        /// Share of the velocity that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        momentum: f64,
    },
    /// FedAdam: Adam on the mean change.
    Adam {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Share of the mean squared change that a round keeps; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
    /// FedYogi: Adam with additive control of the squared change.
    Yogi {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// 1 − `beta2` is the share of the squared change that enters in a round; at least 0 and below 1.
        #[serde(default = "default_beta2")]
        beta2: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
    /// FedAdagrad: Adagrad on the mean change.
    Adagrad {
        /// Learning rate of the server; positive.
        lr: f64,
        /// Share of the mean change that a round keeps; at least 0 and below 1.
        #[serde(default)]
        beta1: f64,
        /// Degree of adaptivity, added to the root: the larger, the less adaptive; positive.
        #[serde(default = "default_tau")]
        tau: f64,
    },
}

const fn one() -> f64 {
    1.0
}
const fn nine_tenths() -> f64 {
    0.9
}
const fn default_beta2() -> f64 {
    0.99
}
const fn default_tau() -> f64 {
    1e-3
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self::Average { lr: one() }
    }
}

impl ServerConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Average { .. } => "average",
            Self::Momentum { .. } => "momentum",
            Self::Adam { .. } => "adam",
            Self::Yogi { .. } => "yogi",
            Self::Adagrad { .. } => "adagrad",
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint about the first setting out of its range, with its key below [`ServerConfig::kind`].
    pub fn check(&self) -> Result<(), Complaint> {
        let positive = |key, value| check(key, value, f64::MIN_POSITIVE.., "a number above 0").map(|_| ());
        let share = |key, value| check(key, value, 0.0..1.0, "a number of at least 0 and below 1").map(|_| ());
        match *self {
            Self::Average { lr } => positive("lr", lr),
            Self::Momentum { lr, momentum } => {
                positive("lr", lr)?;
                share("momentum", momentum)
            }
            Self::Adam { lr, beta1, beta2, tau } | Self::Yogi { lr, beta1, beta2, tau } => {
                positive("lr", lr)?;
                share("beta1", beta1)?;
                share("beta2", beta2)?;
                positive("tau", tau)
            }
            Self::Adagrad { lr, beta1, tau } => {
                positive("lr", lr)?;
                share("beta1", beta1)?;
                positive("tau", tau)
            }
        }
    }
}

/// A server's optimizer with its state from round to round of one run.
#[derive(Clone, Debug, Stateful)]
pub struct ServerOptimizer {
    #[state(skip = "from the scenario")]
    weighting: Weighting,
    #[state(skip = "from the scenario")]
    aging: Aging,
    #[state(skip = "from the scenario")]
    server: ServerConfig,
    #[state(skip = "from the scenario")]
    rows: RowDivisor,
    #[state(skip = "from the scenario")]
    normalise: bool,
    /// `None` for the weighted mean.
    #[state(skip = "from the scenario")]
    combine: Option<Arc<dyn Combine>>,
    /// A program's step, in the place of all that.
    #[state(skip = "from a program")]
    outside: Option<Arc<dyn FoldRule>>,
    /// The private mean, in the place of the combination.
    #[state(skip = "from the scenario")]
    privacy: Option<Arc<DpFedAvg>>,
    #[state(skip = "from the task")]
    layout: Arc<Layout>,
    /// `b` or `m`, or what a program's step remembers; empty for `average`. A clone shares it until one of both steps.
    #[state(with = each_shared)]
    first: Arc<Vec<f64>>,
    /// `v`; empty without it.
    #[state(with = each_shared)]
    second: Arc<Vec<f64>>,
    /// The last change of the model, where the combination remembers it; empty otherwise.
    #[state(with = each_shared)]
    last: Arc<Vec<f64>>,
    /// A number for each client, where the combination remembers one; empty otherwise.
    #[state(with = each_shared)]
    mixture: Arc<Vec<f64>>,
    /// What the private mean remembers.
    released: Released,
}

impl ServerOptimizer {
    /// The server before its first round, for a model of such a layout.
    ///
    /// # Panics
    /// If the settings do not pass their [check](AggregationConfig::check).
    pub fn new(config: &AggregationConfig, layout: impl Into<Arc<Layout>>) -> Self {
        let layout = layout.into();
        assert_eq!(config.check(), Ok(()), "settings are checked before");
        let trained = layout.trained();
        let (first, second) = match config.server {
            ServerConfig::Average { .. } => (Vec::new(), Vec::new()),
            ServerConfig::Momentum { .. } => (vec![0.0; trained], Vec::new()),
            ServerConfig::Adam { tau, .. } | ServerConfig::Yogi { tau, .. } | ServerConfig::Adagrad { tau, .. } => {
                (vec![0.0; trained], vec![tau * tau; trained])
            }
        };
        Self {
            weighting: config.weighting(),
            aging: Aging::default(),
            server: config.server.clone(),
            rows: config.rows,
            normalise: config.normalise,
            combine: None,
            outside: None,
            privacy: None,
            layout,
            first: Arc::new(first),
            second: Arc::new(second),
            last: Arc::default(),
            mixture: Arc::default(),
            released: Released::default(),
        }
    }

    /// The server, with another combination of changes of so many clients.
    #[must_use]
    pub fn with_combination(self, combine: Option<Arc<dyn Combine>>, clients: usize) -> Self {
        let remembers = |what: fn(&dyn Combine) -> bool| combine.as_deref().is_some_and(what);
        let last = if remembers(|combine| combine.remembers_change()) { self.layout.len() } else { 0 };
        let mixed = if remembers(|combine| combine.remembers_clients()) { clients } else { 0 };
        let (last, mixture) = (Arc::new(vec![0.0; last]), Arc::new(vec![1.0 / clients as f64; mixed]));
        Self { combine, last, mixture, ..self }
    }

    /// What the combination remembers of each client; empty if that is nothing.
    pub fn mixture(&self) -> &[f64] {
        &self.mixture
    }

    /// The last change of the model, a number for each parameter; empty where the combination does not remember it.
    pub fn last_change(&self) -> &[f64] {
        &self.last
    }

    /// The server, with what the combination of another one remembers.
    #[must_use]
    pub fn with_memory_of(self, other: &Self) -> Self {
        Self { last: other.last.clone(), mixture: other.mixture.clone(), released: other.released, ..self }
    }

    /// The server, with a private mean in the place of its combination.
    #[must_use]
    pub fn with_privacy(self, privacy: Option<Arc<DpFedAvg>>) -> Self {
        let released = privacy.as_ref().map_or_else(Released::default, |privacy| privacy.begin());
        Self { privacy, released, ..self }
    }

    /// What the private mean remembers; `None` without one.
    pub fn released(&self) -> Option<Released> {
        self.privacy.as_ref().map(|_| self.released)
    }

    /// Whether it also moves the model where nobody's update arrives: by noise.
    pub fn steps_alone(&self) -> bool {
        self.privacy.as_ref().is_some_and(|privacy| privacy.expected.is_some())
    }

    /// The fewest updates of which its private mean makes a model; 0 without one.
    pub fn least_updates(&self) -> usize {
        let counts = self.privacy.as_ref().filter(|privacy| privacy.expected.is_none());
        counts.map_or(0, |privacy| privacy.config.least_updates())
    }

    /// Whether it moves all rows of tables: by noise.
    pub const fn moves_all(&self) -> bool {
        self.privacy.is_some()
    }

    /// The server, with a program's step in the place of its own.
    #[must_use]
    pub fn with_rule(self, outside: Option<Arc<dyn FoldRule>>) -> Self {
        let Some(rule) = outside else { return self };
        let first = Arc::new(vec![0.0; rule.memory_len(self.layout.len())]);
        Self { outside: Some(rule), first, second: Arc::default(), ..self }
    }

    /// The server, with another meaning of staleness weights.
    #[must_use]
    pub fn with_aging(self, aging: Aging) -> Self {
        Self { aging, ..self }
    }

    /// Moves the model of a cluster by one step; there is one, number 0, where there are no clusters.
    /// `population_examples` counts the examples of all clients.
    ///
    /// # Panics
    /// If a length differs from that of the layout, a staleness weight is negative or not finite, two contributions are
    /// of the same job, or, under `total-size`, a client has more examples than all.
    pub fn apply(
        &mut self,
        global: &mut [f32],
        contributions: &[Contribution<'_>],
        population_examples: u64,
        cluster: u32,
    ) {
        let applied = self.apply_shifted(global, contributions, population_examples, cluster, None);
        applied.expect("a server without a program's step does not fail");
    }

    /// As [`ServerOptimizer::apply`], with a multiple of some numbers added to the changes of trained parameters.
    ///
    /// # Errors
    /// If a program's step fails.
    ///
    /// # Panics
    /// As it does.
    pub fn apply_shifted(
        &mut self,
        global: &mut [f32],
        contributions: &[Contribution<'_>],
        population_examples: u64,
        cluster: u32,
        shift: Option<(f64, &[f64])>,
    ) -> Result<(), Failure> {
        let Self { layout, combine, outside, privacy, first, second, released, .. } = self;
        let (first, second) = (Arc::make_mut(first), Arc::make_mut(second));
        let ordered = || {
            let mut ordered: Vec<&Contribution<'_>> = contributions.iter().collect();
            ordered.sort_unstable_by_key(|contribution| (contribution.client, contribution.number));
            ordered
        };
        if let Some(rule) = outside {
            let ordered: Vec<Contribution<'_>> = ordered().into_iter().copied().collect();
            return rule.fold(global, &ordered, first);
        }
        let trained = layout.trained();
        let mut step = Step { server: &self.server, trained, first, second, shift, shifted: Vec::new() };
        if let Some(privacy) = privacy {
            let changes = privacy.mean(released, layout, &ordered());
            changes.into_iter().for_each(|changes| step.take(0, global, &changes));
            return Ok(());
        }
        let (centre, mixture) = (self.last.clone(), self.mixture.clone());
        let last = Arc::make_mut(&mut self.last);
        let fold = Fold {
            layout,
            cluster,
            weighting: self.weighting,
            aging: self.aging,
            rows: self.rows,
            normalise: self.normalise,
            combine: combine.as_deref(),
            centre: &centre,
            mixture: &mixture,
        };
        fold.changes(global, contributions, population_examples, |start, parameters, changes| {
            if let Some(last) = last.get_mut(start..start + changes.len()) {
                last.copy_from_slice(changes);
            }
            step.take(start, parameters, changes);
        });
        if let Some(combine) = combine.as_deref().filter(|_| !mixture.is_empty()) {
            combine.mix(&ordered(), Arc::make_mut(&mut self.mixture).as_mut_slice());
        }
        Ok(())
    }
}

/// A step along the mean change, piece by piece.
struct Step<'a> {
    server: &'a ServerConfig,
    /// How many parameters are trained: the others are averaged.
    trained: usize,
    first: &'a mut [f64],
    second: &'a mut [f64],
    /// A multiple of some numbers that is added to the changes of trained parameters.
    shift: Option<(f64, &'a [f64])>,
    /// The changes with it.
    shifted: Vec<f64>,
}

impl Step<'_> {
    /// Moves a piece of the model, whose first parameter has this index.
    fn take(&mut self, start: usize, parameters: &mut [f32], changes: &[f64]) {
        let Self { server, trained, first, second, shift, shifted } = self;
        let (parameters, statistics) = parameters.split_at_mut(trained.saturating_sub(start).min(parameters.len()));
        let (changes, statistics_changes) = changes.split_at(parameters.len());
        for (statistic, change) in statistics.iter_mut().zip(statistics_changes) {
            *statistic = (f64::from(*statistic) + change) as f32;
        }
        if parameters.is_empty() {
            return;
        }
        let range = start..start + parameters.len();
        let changes = match shift {
            None => changes,
            Some((factor, memory)) => {
                shifted.clear();
                let both = changes.iter().zip(&memory[range.clone()]);
                shifted.extend(both.map(|(change, remembered)| change + *factor * remembered));
                &shifted[..]
            }
        };
        match **server {
            ServerConfig::Average { lr } => {
                for (parameter, change) in parameters.iter_mut().zip(changes) {
                    *parameter = (f64::from(*parameter) + lr * change) as f32;
                }
            }
            ServerConfig::Momentum { lr, momentum } => {
                for ((parameter, change), velocity) in parameters.iter_mut().zip(changes).zip(&mut first[range]) {
                    *velocity = momentum * *velocity + change;
                    *parameter = (f64::from(*parameter) + lr * *velocity) as f32;
                }
            }
            ServerConfig::Adam { lr, beta1, beta2, tau } => {
                let grow = |v: f64, square: f64| beta2 * v + (1.0 - beta2) * square;
                let moments = (&mut first[range.clone()], &mut second[range]);
                adapt([lr, beta1, tau], parameters, changes, moments, grow);
            }
            ServerConfig::Yogi { lr, beta1, beta2, tau } => {
                let grow = |v: f64, square: f64| {
                    let sign = f64::from(v > square) - f64::from(v < square);
                    v - (1.0 - beta2) * square * sign
                };
                let moments = (&mut first[range.clone()], &mut second[range]);
                adapt([lr, beta1, tau], parameters, changes, moments, grow);
            }
            ServerConfig::Adagrad { lr, beta1, tau } => {
                let moments = (&mut first[range.clone()], &mut second[range]);
                adapt([lr, beta1, tau], parameters, changes, moments, |v, square| v + square);
            }
        }
    }
}

/// The step that `adam`, `yogi` and `adagrad` share; `grow` updates `v` with Δ².
fn adapt(
    [lr, beta1, tau]: [f64; 3],
    parameters: &mut [f32],
    changes: &[f64],
    (first, second): (&mut [f64], &mut [f64]),
    grow: impl Fn(f64, f64) -> f64,
) {
    for ((parameter, change), (m, v)) in parameters.iter_mut().zip(changes).zip(first.iter_mut().zip(second)) {
        *m = beta1 * *m + (1.0 - beta1) * change;
        *v = grow(*v, change * change);
        *parameter = (f64::from(*parameter) + lr * *m / (sqrt(*v) + tau)) as f32;
    }
}

#[cfg(test)]
mod tests;
