//! Fair averaging (q-FedAvg): clients with larger losses count more, so that accuracies are more alike.
//!
//! # Definition
//! Client `k` is sent `x`, works `F_k = f_k(x) + 1e-10` out, the mean loss on its own examples, and trains. With
//! `L_k = 1/η_k`, the inverse of the learning rate of its job's round, and `d_k = −L_k δ_k`:
//!
//! `x ← x − Σ F_k^q d_k / Σ (q F_k^(q−1) ‖d_k‖² + L_k F_k^q)`
//!
//! By `q = 0` this is the plain mean of the changes. Norms go over all numbers of an update. Running means, which
//! gradient descent does not change, are averaged plainly, and so are the models of edge servers at the cloud.
//!
//! # Inputs
//! `q`: at least 0. Weights do not enter: `weighting` is `uniform` (and is that if left out), no policy gives weights,
//! and the protocol's `staleness` is `constant`. The task knows losses of clients. `rows = "touched"` is refused, and
//! so are models of clusters. In a round whose learning rate is 0 nothing changes.
//!
//! # Source
//! T. Li, M. Sanjabi, A. Beirami, V. Smith, "Fair resource allocation in federated learning", ICLR 2020, Algorithm 2.
//!
//! # Deviations from the source
//! The source samples clients in proportion to their data; here the policy selects, and updates count alike. `1e-10`
//! keeps powers of a loss of 0 defined. With old updates, each has the learning rate of its own round.
//!
//! # Cost
//! An inference pass over the client's examples in each job, which prolongs its compute phase by
//! `[training] inference_share` of an epoch, and 4 bytes more up: the loss. A recorded log is replayed as it is.
//!
//! # Determinism
//! Powers and sums in `f64`, in ascending (client, job).
//!
//! # Example
//! ```toml
//! [algorithm.qfedavg]
//! q = 1.0
//! [aggregation]
//! weighting = "uniform"
//! ```

use super::{AlgorithmSettings, Combine, Factors, Gathered, JobRule, Scene, Weighting};
use fedgenie_core::config::Complaint;
use fedgenie_core::math::float::power;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Added to losses.
const LEAST_LOSS: f64 = 1e-10;

/// `[algorithm.qfedavg]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How much more clients with larger losses count; 0 for all alike.
    #[serde(default = "one")]
    pub q: f64,
}

const fn one() -> f64 {
    1.0
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        if !(self.q.is_finite() && self.q >= 0.0) {
            return Err(Complaint::new("q", format!("found {}; expected a number of at least 0", self.q)));
        }
        scene.needs_whole_updates()?;
        scene.needs_alike()?;
        match scene.has_losses {
            true => Ok(()),
            false => Err(scene.refuse("does not know its clients' losses")),
        }
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(QFedAvg { q: self.q }))
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(QFedAvg { q: self.q }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// Steps by powers of losses.
#[derive(Debug)]
struct QFedAvg {
    q: f64,
}

impl JobRule for QFedAvg {
    fn needs_loss(&self) -> bool {
        true
    }
}

impl Combine for QFedAvg {
    fn numbers_up(&self) -> u64 {
        1
    }

    fn needs_sums_alone(&self) -> bool {
        true
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn of_models(&self) -> bool {
        false
    }

    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let Self { q } = *self;
        let (mut shares, mut sum) = (vec![0.0; gathered.contributions.len()], 0.0);
        for index in gathered.weighed().into_iter().filter(|&index| gathered.contributions[index].rate > 0.0) {
            let one = gathered.contributions[index];
            let loss = one.loss.expect("jobs of this rule work their loss out") + LEAST_LOSS;
            let inverse = 1.0 / one.rate;
            let norm = inverse * gathered.norm(index);
            let weight = power(loss, q);
            sum += q * power(loss, q - 1.0) * norm * norm + inverse * weight;
            shares[index] = weight * inverse;
        }
        if sum > 0.0 {
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Some(Factors { everywhere: false, ..gathered.shares(&shares) })
    }
}
