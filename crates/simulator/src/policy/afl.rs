//! Active federated learning: clients whose data still cost much are more likely.
//!
//! # Definition
//! ```text
//! v_i     = sqrt(n_i)·loss_i        n_i examples and mean loss of the client's last update that arrived
//! uniform = ⌊alpha3·m⌋, active = m − uniform
//! cut     = min(⌊alpha1·K⌋, K − active)
//! p_i     ∝ exp(alpha2·v_i)
//! ```
//! An unknown `v_i` counts as the largest known one, 0 if none is known. Of the `K` candidates those with the `cut`
//! smallest `v` are cut, of equal ones the larger ids. `active` of the others are drawn, one after the other, each in
//! proportion to `p` of those left. Then `uniform` of all candidates that are left, cut ones too, each as likely as any
//! other.
//!
//! By default nobody is drawn uniformly where fewer than ten are selected. A client whose updates never arrive keeps
//! the largest valuation: where rounds have a deadline, let late updates join (`late = { carry = {} }`).
//!
//! # Inputs
//! Losses and examples of updates.
//!
//! # Explanation
//! With `[record] explain = true`: `valuation` of each candidate, and `p`, its probability in the first draw, 0 of
//! those cut; `active` and `uniform`, ids. `after`: the `valuation` of those selected, `null` if unknown.
//!
//! # Source
//! J. Goetz, K. Malik, D. Bui, S. Moon, H. Liu, A. Kumar, "Active Federated Learning", 2019 (arXiv 1909.12641),
//! Algorithm 1 and its value functions; `alpha1 = 0.75`, `alpha2 = 0.01`, `alpha3 = 0.1` are its own.
//!
//! # Deviations from the source
//! - It gives those cut the valuation −∞; so are they here in the first step, and kept for later rounds.
//! - Its valuation is of a client's loss when it was last trained; what counts before the first is open there.
//! - `⌊alpha1·K⌋` is limited so that enough are left for the draw.
//!
//! # Cost
//! O(K log K) per round.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each candidate that is not cut, by ascending id, whose exponential
//! clock `−ln(u)/exp(alpha2·(v − largest v))` rings first comes first; then a Fisher–Yates shuffle of those left,
//! ascending, as far as it is needed.

use super::random::{draw_by_weight, draw_first};
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    whole,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{exp, sqrt};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `afl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of the candidates that are cut, between 0 and 1.
    #[serde(default = "default_alpha1")]
    pub alpha1: f64,
    /// Weight of a valuation in the exponent, not negative.
    #[serde(default = "default_alpha2")]
    pub alpha2: f64,
    /// Share of the selection that is drawn uniformly, between 0 and 1.
    #[serde(default = "default_alpha3")]
    pub alpha3: f64,
}

const fn default_alpha1() -> f64 {
    0.75
}
const fn default_alpha2() -> f64 {
    0.01
}
const fn default_alpha3() -> f64 {
    0.1
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha1: default_alpha1(), alpha2: default_alpha2(), alpha3: default_alpha3() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Afl {
            alpha1: check("alpha1", self.alpha1, 0.0..=1.0, "a number between 0 and 1")?,
            alpha2: check("alpha2", self.alpha2, 0.0.., "a number of at least 0")?,
            alpha3: check("alpha3", self.alpha3, 0.0..=1.0, "a number between 0 and 1")?,
            valuation: vec![f64::NAN; context.clients],
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Afl {
    #[state(skip = "from the scenario")]
    alpha1: f64,
    #[state(skip = "from the scenario")]
    alpha2: f64,
    #[state(skip = "from the scenario")]
    alpha3: f64,
    /// NaN where no update arrived.
    #[state(each)]
    valuation: Vec<f64>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    valuations: Vec<f64>,
    p: Vec<f64>,
    active: usize,
}

impl Policy for Afl {
    fn needs_losses(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let of_all = ask.available.scope().iter().map(|client| self.valuation[client.index()]);
        let largest = of_all.filter(|value| !value.is_nan()).reduce(f64::max).unwrap_or(0.0);
        let of = |client: &ClientId| match self.valuation[client.index()] {
            unknown if unknown.is_nan() => largest,
            known => known,
        };
        let valuations: Vec<f64> = candidates.iter().map(of).collect();
        let active = cohort - whole(self.alpha3 * cohort as f64).min(cohort);
        let cut = whole(self.alpha1 * candidates.len() as f64).min(candidates.len() - active);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_unstable_by(|&one, &other| valuations[one].total_cmp(&valuations[other]).then(other.cmp(&one)));
        let mut is_cut = vec![false; candidates.len()];
        order[..cut].iter().for_each(|&place| is_cut[place] = true);
        let top = order.last().map_or(0.0, |&place| valuations[place]);
        let weights: Vec<f64> = valuations
            .iter()
            .zip(&is_cut)
            .map(|(value, &is_cut)| if is_cut { 0.0 } else { exp(self.alpha2 * (value - top)) })
            .collect();
        let all: f64 = weights.iter().sum();
        let kept: Vec<ClientId> =
            candidates.iter().zip(&is_cut).filter(|(_, is_cut)| !**is_cut).map(|(client, _)| *client).collect();
        let weight = |client: ClientId| weights[candidates.binary_search(&client).expect("those kept are candidates")];
        draw_by_weight(&kept, weight, active, rng.policy, &mut Vec::new(), selection);
        let mut taken = selection.to_vec();
        taken.sort_unstable();
        let mut left: Vec<ClientId> = candidates.to_vec();
        left.retain(|client| taken.binary_search(client).is_err());
        draw_first(&mut left, cohort - active, rng.policy);
        selection.extend(left);
        self.made = Decision { valuations, p: weights.iter().map(|weight| weight / all).collect(), active };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Trained(update) = feedback {
            let value = sqrt(update.examples as f64) * update.loss;
            if value.is_finite() {
                self.valuation[update.client.index()] = value;
            }
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        let (active, uniform) = selection.split_at(self.made.active);
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("valuation", self.made.valuations.iter().copied());
        explanation.array("p", self.made.p.iter().copied());
        explanation.ids("active", active.iter().copied());
        explanation.ids("uniform", uniform.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("valuation", clients.iter().map(|client| self.valuation[client.index()]));
        Ok(())
    }
}
