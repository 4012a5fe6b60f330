//! UCB-CS: an upper confidence bound of losses, of which older ones count less.
//!
//! # Definition
//! ```text
//! L_i     = Σ gamma^(t−1−s)·loss     over the client's updates, s the selection that each belongs to
//! N_i     = Σ gamma^(t−1−s),  T = Σ_{s<t} gamma^(t−1−s)
//! index_i = n_i/Σn·(L_i/N_i + sqrt(2·σ²·ln T/N_i)),  +∞ if no update has come
//! ```
//! σ is the largest standard deviation of losses within an update, `sqrt(loss_rms² − loss²)`, of the last selection
//! from which any came. The `m` largest, the largest first; of equal ones the smaller id.
//!
//! A client whose updates never arrive keeps an infinite index, and is selected again and again: where rounds have a
//! deadline, let late updates join (`late = { carry = {} }`).
//!
//! # Inputs
//! Losses of updates and their root mean squares; data sizes.
//!
//! # Explanation
//! With `[record] explain = true`: `mean` (`L/N`), `bonus` (the root) and `index` of each candidate, `null` where no
//! update has come; `sigma`. `after`: `mean` of those selected.
//!
//! # Source
//! Y. J. Cho, S. Gupta, G. Joshi, O. Yağan, "Bandit-Based Communication-Efficient Client Selection Strategies for
//! Federated Learning", Asilomar 2020 (arXiv 2012.08009), equations (4) to (6).
//!
//! # Deviations from the source
//! Losses are means over the first epoch, each batch as met, where the source evaluates a model; a loss that is not
//! finite is passed over. A squared mean above the mean square, which rounding and moving models make, is a deviation
//! of 0.
//!
//! # Cost
//! O(K) per round; one more forward pass over the examples of each update.
//!
//! # Determinism
//! Uses no random stream.

use super::ranked::largest;
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{ln, power, sqrt};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `ucb-cs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of its weight that a loss keeps from selection to selection, above 0 and at most 1.
    #[serde(default = "default_gamma")]
    pub gamma: f64,
}

const fn default_gamma() -> f64 {
    0.7
}

impl Default for Config {
    fn default() -> Self {
        Self { gamma: default_gamma() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(UcbCs {
            gamma: check("gamma", self.gamma, f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?,
            losses: vec![0.0; context.clients],
            weights: vec![0.0; context.clients],
            all: 0.0,
            turn: 0,
            deviation: (0, 0.0),
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct UcbCs {
    #[state(skip = "from the scenario")]
    gamma: f64,
    /// `L` for the next selection.
    #[state(each)]
    losses: Vec<f64>,
    /// `N` for the next selection.
    #[state(each)]
    weights: Vec<f64>,
    /// `T` for the next selection.
    all: f64,
    /// The last selection.
    turn: u32,
    /// The last selection from which updates came, and their largest deviation.
    deviation: (u32, f64),
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    means: Vec<f64>,
    bonuses: Vec<f64>,
    indices: Vec<f64>,
}

impl UcbCs {
    fn mean(&self, client: ClientId) -> f64 {
        self.losses[client.index()] / self.weights[client.index()]
    }
}

impl Policy for UcbCs {
    fn wants(&self) -> Wants {
        Wants { loss_rms: true, ..Wants::default() }
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let size = |client: &ClientId| f64::from(view.data_sizes[client.index()]);
        let all: f64 = ask.available.scope().iter().map(size).sum();
        // ln T is 0 at the second selection, and T itself at the first, where nothing is known.
        let width = 2.0 * self.deviation.1 * self.deviation.1 * ln(self.all.max(1.0));
        let means: Vec<f64> = candidates.iter().map(|&client| self.mean(client)).collect();
        let bonuses: Vec<f64> = candidates
            .iter()
            .map(|client| match self.weights[client.index()] {
                heard if heard > 0.0 => sqrt(width / heard),
                _ => f64::NAN,
            })
            .collect();
        let index = |((client, mean), bonus): ((&ClientId, &f64), &f64)| match self.weights[client.index()] {
            heard if heard > 0.0 => size(client) / all * (mean + bonus),
            _ => f64::INFINITY,
        };
        let indices: Vec<f64> = candidates.iter().zip(&means).zip(&bonuses).map(index).collect();
        selection.extend(largest(candidates, &indices, ask.cohort));
        self.made = Decision { means, bonuses, indices };
        // From now on for the next selection, for which updates of this one have their full weight.
        self.turn = ask.turn.0;
        self.losses.iter_mut().for_each(|loss| *loss *= self.gamma);
        self.weights.iter_mut().for_each(|weight| *weight *= self.gamma);
        self.all = self.all * self.gamma + 1.0;
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        let Feedback::Trained(update) = feedback else { return Ok(()) };
        let rms = update.loss_rms.expect("wanted statistics of updates are told");
        if !update.loss.is_finite() || !rms.is_finite() {
            return Ok(());
        }
        let weight = power(self.gamma, f64::from(self.turn - update.turn.0));
        self.losses[update.client.index()] += weight * update.loss;
        self.weights[update.client.index()] += weight;
        let deviation = sqrt((rms * rms - update.loss * update.loss).max(0.0));
        if update.turn.0 > self.deviation.0 {
            self.deviation = (update.turn.0, deviation);
        } else if update.turn.0 == self.deviation.0 {
            self.deviation.1 = self.deviation.1.max(deviation);
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("mean", self.made.means.iter().copied());
        explanation.array("bonus", self.made.bonuses.iter().copied());
        explanation.array("index", self.made.indices.iter().copied());
        explanation.scalar("sigma", self.deviation.1);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("mean", clients.iter().map(|&client| self.mean(client)));
        Ok(())
    }
}
