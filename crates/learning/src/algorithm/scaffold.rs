//! SCAFFOLD: control variates correct the steps of clients whose data differ from the others'.
//!
//! # Definition
//! The server remembers `c`, client `k` remembers `c_k`, both 0 at first. With the model `x` a client is sent `c`, and
//! its steps use the gradient `g − c_k + c`. After `K_k` steps at learning rate η it has
//!
//! | option | `c_k⁺` |
//! |---|---|
//! | 1 | `∇f_k(x)`, the mean gradient of the loss alone over all its examples |
//! | 2 | `c_k − c + (x − y_k)/(K_k η)` |
//!
//! It sends `δ_k = y_k − x` and `c_k⁺ − c_k`. The server has `Δ = Σ p_k δ_k` and `c ← c + (1/N) Σ (c_k⁺ − c_k)` over
//! the updates that are aggregated: neither weighted nor lessened by age, so that `c` is always the mean of all `c_k`.
//! The paper averages with `[aggregation] weighting = "uniform"`.
//!
//! Where a client's next job began before its last update was aggregated, the change of `c_k` counts from the
//! client's memory at the aggregation.
//!
//! # Inputs
//! `option`: 1 or 2. The optimizer is `sgd` without momentum. In a round whose learning rate is 0, option 2 leaves
//! `c_k` as it is.
//!
//! *Rows.* Of a table, the rows that a job moves are corrected in each of its steps, and `c_k` changes there alone.
//!
//! # Source
//! S. P. Karimireddy et al., "SCAFFOLD: Stochastic controlled averaging for federated learning", ICML 2020, Algorithm 1.
//!
//! # Deviations from the source
//! Any weighting and any step of the server; the source averages uniformly.
//!
//! # Cost
//! Twice the model down and twice up; of a table with rows both tables down, and up the ids once with both rows.
//! Memory: a model for the server, and one for each client of which an update was aggregated. Option 1 costs a pass
//! over the client's examples more, which takes no virtual time.
//!
//! # Determinism
//! `c` is kept in `f64` and travels rounded to `f32`; `c_k⁺` is worked out in `f64` and rounded once. Sums over clients
//! are in ascending (client, job).
//!
//! # Example
//! ```toml
//! [algorithm.scaffold]
//! option = 1
//! [aggregation]
//! weighting = "uniform"
//! ```

use super::{AlgorithmSettings, Done, JobMemory, JobRule, Remembered, Scene};
use crate::layout::Layout;
use crate::trainer::OptimizerConfig;
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.scaffold]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which control variate: 1, the gradient at the model that was sent, or 2, the mean of the job's gradients.
    #[serde(default = "two")]
    pub option: u8,
}

const fn two() -> u8 {
    2
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        let refuse = |message: &str| Err(Complaint::new("", message));
        if !(1..=2).contains(&self.option) {
            return Err(Complaint::new("option", format!("found {}; expected 1 or 2", self.option)));
        }
        scene.needs_model()?;
        scene.refuses_own()?;
        if !scene.has_gradient {
            return Err(scene.refuse("does not know gradients of its clients' losses"));
        }
        match *scene.optimizer {
            OptimizerConfig::Sgd { momentum: 0.0, .. } => {}
            _ => return refuse("is defined for the optimizer sgd without momentum; take that, or take the entry out"),
        }
        if scene.has_noise {
            return refuse("is not defined with [privacy]: the control variates would tell what the noise hides");
        }
        match scene.has_edges {
            true => refuse("is defined for one server, which is sent all control variates; take another protocol"),
            false => Ok(()),
        }
    }

    fn job(&self, _scene: &Scene<'_>) -> Option<Arc<dyn JobRule>> {
        Some(Arc::new(Scaffold { takes_gradient: self.option == 1 }))
    }
}

/// Steps by control variates.
#[derive(Debug)]
struct Scaffold {
    /// Option 1.
    takes_gradient: bool,
}

/// The number of a memory that may be empty, which stands for zeros.
fn at(numbers: Option<&Arc<[f32]>>, index: usize) -> f32 {
    numbers.map_or(0.0, |numbers| numbers[index])
}

impl JobRule for Scaffold {
    fn copies(&self) -> [u64; 2] {
        [1; 2]
    }

    fn remembers(&self) -> Option<Remembered> {
        Some(Remembered { server: Some("c"), client: "c" })
    }

    fn correct(&self, layout: &Layout, memory: &JobMemory, correction: &mut Vec<f32>) -> bool {
        let JobMemory { server, client, .. } = memory;
        correction.clear();
        correction.extend((0..layout.trained()).map(|index| at(server.as_ref(), index) - at(client.as_ref(), index)));
        correction.resize(layout.len(), 0.0);
        true
    }

    fn needs_gradient(&self) -> bool {
        self.takes_gradient
    }

    fn leave(&self, done: &Done<'_>, left: &mut Vec<f32>) {
        let Done { layout, start, update, rate, memory: JobMemory { server, client, .. }, gradient } = *done;
        let span = update.steps as f64 * rate;
        if !self.takes_gradient && span == 0.0 {
            return;
        }
        for (range, part) in update.parts(layout) {
            left.extend(range.zip(part).map(|(index, &moved)| match self.takes_gradient {
                _ if index >= layout.trained() => 0.0,
                true => gradient[index],
                false => {
                    let mean = (f64::from(start[index]) - f64::from(moved)) / span;
                    let control = f64::from(at(client.as_ref(), index)) - f64::from(at(server.as_ref(), index));
                    (control + mean) as f32
                }
            }));
        }
    }

    fn gather(&self, server: &mut [f64], before: Option<&[f32]>, after: &[f32], clients: usize) {
        for (index, (sum, &after)) in server.iter_mut().zip(after).enumerate() {
            let before = before.map_or(0.0, |before| before[index]);
            *sum += (f64::from(after) - f64::from(before)) / clients as f64;
        }
    }
}
