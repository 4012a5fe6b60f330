//! GPFL: clients whose changes point where the model moves while it becomes better, with exploration.
//!
//! # Definition
//! When a round closes, of the updates that it aggregates:
//! ```text
//! g         = Σ n_i·change_i/Σ n_i                 the direction of all
//! c_i       = change_i · g/‖g‖                     projection of each; 0 where g is
//! reward_i  = σ·exp(c_i)/Σ exp(c)                  σ = 1, −1 or 0: the model has become better, worse, or neither
//! value_i   = Σ rewards of i/(their number + 1)
//! index_i   = value_i + alpha·sqrt(2·ln(t − 1)/N_i)  +∞ if N_i = 0
//! ```
//! `N_i` is how often the client was selected before. The `m` largest, the largest first; of equal ones the smaller id.
//! Without `alpha`, it is `(t − 1)/100` while `t − 1 < 100`, and then `200/(t + 99)`.
//!
//! The model is better if the accuracy of the server's model after the round is larger than after the round before, or
//! at first than that of the initial model: on the server's test examples (`on = "test"`), or on the training examples
//! of its clients (`on = "train"`). A task without accuracy has its main measure instead, negated where smaller is
//! better. `σ` is 0 where it is not known.
//!
//! # Inputs
//! Changes of all trained parameters; the accuracy of each model that the server makes.
//!
//! # Explanation
//! With `[record] explain = true`: `value`, `bonus` (the root, with `alpha`) and `index` of each candidate, `null` for
//! bonus and index where nothing was selected before; `alpha`. `after`: `value` of those selected, and `rewards`, how
//! many each has.
//!
//! # Source
//! S. Na, Y. Liang, S.-M. Yiu, "GPFL: A Gradient Projection-Based Client Selection Framework for Efficient Federated
//! Learning", 2024 (arXiv 2403.17833): gradient projection and its confidence bound; the program that its authors
//! released, `Proj_Bandit` (softmax, sign, the 0 among the rewards, and `alpha` by the round).
//!
//! # Deviations from the source
//! - The program projects each tensor of a model by itself and takes the mean; here, as in the paper, the change is one
//!   vector.
//! - The paper compares with the direction before, smoothed by momentum; its program, as here, with that of the same
//!   round. Momentum is the optimizer's.
//! - The direction is the mean of changes by examples, whatever the server makes of them.
//! - The program has all clients train once at the beginning, many at a time and in random order; here a client that
//!   was never selected comes first, smaller ids first, as many as the cohort.
//! - Where accuracies are equal, the program compares losses, for half a reward; here there is none.
//! - An update whose change is not finite has no part in a round.
//!
//! # Cost
//! O(K) a selection; O(u·p) for `u` updates of `p` parameters, which are kept until the round closes; an evaluation of
//! each model on its server's data.
//!
//! # Determinism
//! Uses no random stream. Sums are added up by ascending id.

use super::ranked::largest;
use super::{
    AccuracyOn, BuildContext, EdgeAccuracy, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection,
    SelectionRequest, ServerView, TrainingReport, Wants,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::{exp, ln, sqrt};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `gpfl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Weight of exploration, at least 0; by the number of the selection if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// The data on which the accuracy of the server's model is measured.
    #[serde(default)]
    pub on: AccuracyOn,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let alpha = self.alpha.map(|alpha| check("alpha", alpha, 0.0.., "a number of at least 0")).transpose()?;
        Ok(Box::new(Gpfl {
            alpha,
            on: self.on,
            sums: vec![0.0; context.clients],
            rewards: vec![0; context.clients],
            round: Vec::new(),
            made: Decision::default(),
        }))
    }
}

#[derive(Stateful)]
struct Gpfl {
    #[state(skip = "from the scenario")]
    alpha: Option<f64>,
    #[state(skip = "from the scenario")]
    on: AccuracyOn,
    /// Sum of each client's rewards.
    #[state(each)]
    sums: Vec<f64>,
    /// Their number.
    #[state(each)]
    rewards: Vec<u32>,
    /// The updates of the round that is being told.
    #[state(skip = "empty between rounds")]
    round: Vec<Told>,
    #[state(skip = "read before the next selection")]
    made: Decision,
}

/// An update of a round.
#[derive(Clone, Debug)]
struct Told {
    client: ClientId,
    examples: f64,
    change: Vec<f32>,
}

/// The numbers behind a selection.
#[derive(Clone, Debug, Default)]
struct Decision {
    alpha: f64,
    values: Vec<f64>,
    bonuses: Vec<f64>,
    indices: Vec<f64>,
}

/// The weight of exploration in a selection, by the number of those before.
fn by_round(before: f64) -> f64 {
    if before < 100.0 { before / 100.0 } else { 200.0 / (before + 100.0) }
}

/// The projection of each update's change on the mean change of all.
fn projections(round: &[Told]) -> Vec<f64> {
    let all: f64 = round.iter().map(|told| told.examples).sum();
    let mut direction = vec![0.0; round.first().map_or(0, |told| told.change.len())];
    for told in round.iter().filter(|told| told.examples > 0.0) {
        let share = told.examples / all;
        direction.iter_mut().zip(&told.change).for_each(|(sum, number)| *sum += share * f64::from(*number));
    }
    let norm = sqrt(direction.iter().map(|number| number * number).sum());
    let along = |told: &Told| -> f64 {
        told.change.iter().zip(&direction).map(|(number, along)| f64::from(*number) * along).sum()
    };
    round.iter().map(|told| if norm > 0.0 { along(told) / norm } else { 0.0 }).collect()
}

impl Gpfl {
    fn value(&self, client: ClientId) -> f64 {
        self.sums[client.index()] / f64::from(self.rewards[client.index()] + 1)
    }

    fn take(&mut self, report: &TrainingReport<'_>) {
        let change = report.change.expect("wanted statistics of updates are told");
        if change.iter().all(|number| number.is_finite()) {
            let (client, examples) = (report.client, report.examples as f64);
            self.round.push(Told { client, examples, change: change.to_vec() });
        }
    }

    /// Rewards the clients of a round.
    fn learn(&mut self, accuracy: Option<EdgeAccuracy>) {
        let round = std::mem::take(&mut self.round);
        let sign = accuracy.map_or(0.0, |EdgeAccuracy { before, after }| {
            f64::from(i8::from(after > before) - i8::from(after < before))
        });
        let projections = projections(&round);
        let largest = projections.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = projections.iter().map(|along| exp(along - largest)).collect();
        let all: f64 = weights.iter().sum();
        for (told, weight) in round.iter().zip(&weights) {
            self.sums[told.client.index()] += sign * weight / all;
            self.rewards[told.client.index()] += 1;
        }
    }
}

impl Policy for Gpfl {
    fn wants(&self) -> Wants {
        Wants { change: true, edge_accuracy: Some(self.on), ..Wants::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let before = f64::from(ask.turn.0 - 1);
        let alpha = self.alpha.unwrap_or_else(|| by_round(before));
        let width = 2.0 * ln(before.max(1.0));
        let bonus = |client: &ClientId| match view.counts[client.index()] {
            0 => f64::INFINITY,
            count => alpha * sqrt(width / f64::from(count)),
        };
        let values: Vec<f64> = candidates.iter().map(|&client| self.value(client)).collect();
        let bonuses: Vec<f64> = candidates.iter().map(bonus).collect();
        let indices: Vec<f64> = values.iter().zip(&bonuses).map(|(value, bonus)| value + bonus).collect();
        selection.extend(largest(candidates, &indices, ask.cohort));
        self.made = Decision { alpha, values, bonuses, indices };
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Trained(report) => self.take(report),
            Feedback::Round(report) => self.learn(report.edge_accuracy),
            Feedback::Job(_) => {}
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
        let Decision { alpha, values, bonuses, indices } = &self.made;
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("value", values.iter().copied());
        explanation.array("bonus", bonuses.iter().copied());
        explanation.array("index", indices.iter().copied());
        explanation.scalar("alpha", *alpha);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("value", clients.iter().map(|&client| self.value(client)));
        explanation.array("rewards", clients.iter().map(|client| f64::from(self.rewards[client.index()])));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes (1, 0) and (0, 3), of 3 and 1 examples: the direction is (0.75, 0.75), and projections are 1/√2, 3/√2.
    #[test]
    fn two_projections_by_hand() {
        let told =
            |client, examples, change: [f32; 2]| Told { client: ClientId(client), examples, change: change.into() };
        let found = projections(&[told(0, 3.0, [1.0, 0.0]), told(1, 1.0, [0.0, 3.0])]);
        let root = 0.5_f64.sqrt();
        assert!((found[0] - root).abs() < 1e-12 && (found[1] - 3.0 * root).abs() < 1e-12, "{found:?}");
        assert_eq!(projections(&[told(0, 1.0, [1.0, 0.0]), told(1, 1.0, [-1.0, 0.0])]), [0.0, 0.0]);
        assert_eq!(projections(&[told(0, 0.0, [1.0, 0.0])]), [0.0]);
        assert_eq!([0.0, 50.0, 100.0, 300.0].map(by_round), [0.0, 0.5, 1.0, 0.5]);
    }
}
