//! DELTA: clients whose changes are far from the mean change are more likely, and weigh less, so that the mean is
//! right.
//!
//! # Definition
//! ```text
//! ζ_i  = ‖change_i − g‖,  g = Σ change/u     of the u updates that a round aggregates
//! π_i ← ζ_i·Σ_{those of the round} π/Σ ζ     of these; the others keep theirs; π_i = 1/K at first
//! p_i  = π_i/Σ π                             over the candidates
//! ```
//! `m` clients are drawn independently, each in proportion to `p`. The weight of a client is `n_i/Σn/(m·p_i)`, `n` the
//! candidates' examples, for each time it was drawn; it trains once. So the mean over draws is that of all candidates.
//! A round in which no change differs from the mean leaves all as it is.
//!
//! A client whose change was the mean itself has `p = 0` and is drawn no more, as there. Two changes are equally far
//! from their mean, so that rounds of two clients teach nothing. Clients without examples, whose weight would be 0,
//! have `p = 0`; where no candidate has any, all are alike, and weigh alike. `[aggregation] weighting` is not used.
//!
//! # Inputs
//! Changes of all trained parameters; data sizes.
//!
//! # Explanation
//! With `[record] explain = true`: `p` of each candidate; `drawn`, an id for each draw. `after`: `distance` (`ζ`) of
//! those selected, of the last round in which each had one, `null` if none.
//!
//! # Source
//! L. Wang, Y. Guo, T. Lin, X. Tang, "DELTA: Diverse Client Sampling for Fasting Federated Learning", NeurIPS 2023
//! (arXiv 2205.13925), the practical algorithm; the program that its authors released (`reweight_prac`): probabilities
//! of those sampled share what these had before.
//!
//! # Deviations from the source
//! - Its probabilities are in proportion to `sqrt(α1·ζ² + α2·σ²)`, `σ²` the variance of a client's stochastic
//!   gradients: here `α2 = 0`, as in the released program's practical variant, since a client does not tell how its
//!   steps differ.
//! - The program multiplies `ζ_i` by `n_i/Σn`; here probabilities follow the paper, and examples enter the weights.
//! - The program draws without replacement, which makes the weighted mean wrong a little; here with replacement.
//! - It compares gradients; here changes by a whole job. A change that is not finite has no part in a round.
//!
//! # Cost
//! O(K + m log K) a selection; O(u·p) for `u` updates of `p` parameters, which are kept until the round closes.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each draw, which takes the first client, by ascending id, with whom the
//! sum of `p` exceeds it. Sums are added up by ascending id.

use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
    TrainingReport, Wants,
};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `delta` has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(Delta {
            shares: vec![1.0 / context.among as f64; context.clients],
            distances: vec![f64::NAN; context.clients],
            round: Vec::new(),
            p: Vec::new(),
            drawn: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct Delta {
    /// π.
    #[state(each)]
    shares: Vec<f64>,
    /// ζ of the last round in which each client had one; NaN before.
    #[state(each)]
    distances: Vec<f64>,
    /// Clients and changes of the round that is being told.
    #[state(skip = "empty between rounds")]
    round: Vec<(ClientId, Vec<f32>)>,
    #[state(skip = "read before the next selection")]
    p: Vec<f64>,
    #[state(skip = "read before the next selection")]
    drawn: Vec<ClientId>,
}

/// The distance of each change to the mean of all.
fn distances(changes: &[&[f32]]) -> Vec<f64> {
    let mut mean = vec![0.0; changes.first().map_or(0, |change| change.len())];
    for change in changes {
        mean.iter_mut().zip(*change).for_each(|(sum, number)| *sum += f64::from(*number));
    }
    mean.iter_mut().for_each(|sum| *sum /= changes.len() as f64);
    let apart = |change: &&[f32]| {
        let square = |(number, mean): (&f32, &f64)| (f64::from(*number) - mean) * (f64::from(*number) - mean);
        sqrt(change.iter().zip(&mean).map(square).sum())
    };
    changes.iter().map(apart).collect()
}

impl Delta {
    fn take(&mut self, report: &TrainingReport<'_>) {
        let change = report.change.expect("wanted statistics of updates are told");
        if change.iter().all(|number| number.is_finite()) {
            self.round.push((report.client, change.to_vec()));
        }
    }

    /// Shares what the clients of a round have among them.
    fn learn(&mut self) {
        let round = std::mem::take(&mut self.round);
        let changes: Vec<&[f32]> = round.iter().map(|(_, change)| &**change).collect();
        let found = distances(&changes);
        let (all, had): (f64, f64) =
            (found.iter().sum(), round.iter().map(|(client, _)| self.shares[client.index()]).sum());
        for ((client, _), &distance) in round.iter().zip(&found) {
            self.distances[client.index()] = distance;
            if all > 0.0 && all.is_finite() {
                self.shares[client.index()] = had * (distance / all);
            }
        }
    }
}

impl Policy for Delta {
    fn wants(&self) -> Wants {
        Wants { change: true, ..Wants::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let size = |client: ClientId| f64::from(view.data_sizes[client.index()]);
        // A client without examples would have no weight; where nobody has any, all are alike.
        let holders = candidates.iter().filter(|&&client| size(client) > 0.0).count();
        let may = |client: &ClientId| holders == 0 || size(*client) > 0.0;
        let share = |client: &ClientId| if may(client) { self.shares[client.index()] } else { 0.0 };
        let all: f64 = candidates.iter().map(share).sum();
        let alike = 1.0 / if holders == 0 { candidates.len() } else { holders } as f64;
        // Where nobody who is there is likely, all are alike.
        let p = |client: &ClientId| match all > 0.0 {
            true => share(client) / all,
            false => alike * f64::from(u8::from(may(client))),
        };
        self.p = candidates.iter().map(p).collect();
        let mut sums: Vec<f64> = Vec::with_capacity(candidates.len());
        for p in &self.p {
            sums.push(sums.last().unwrap_or(&0.0) + p);
        }
        // Rounding may leave a little after the last one who is likely.
        let last = self.p.iter().rposition(|p| *p > 0.0).unwrap_or(0);
        let examples: f64 = candidates.iter().map(|&client| size(client)).sum();
        self.drawn.clear();
        for _ in 0..cohort {
            let unit = rng.policy.uniform();
            let place = sums.partition_point(|sum| *sum <= unit).min(last);
            let client = candidates[place];
            self.drawn.push(client);
            selection.push(client);
            let times = cohort as f64 * self.p[place];
            let weight = if examples > 0.0 { size(client) / examples / times } else { 1.0 / cohort as f64 };
            selection.weights.push(weight);
        }
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        match feedback {
            Feedback::Trained(report) => self.take(report),
            Feedback::Round(_) => self.learn(),
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
        explanation.clients(ask.available.list().iter().copied());
        explanation.array("p", self.p.iter().copied());
        explanation.ids("drawn", self.drawn.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("distance", clients.iter().map(|client| self.distances[client.index()]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean of (0, 0), (6, 0) and (0, 3) is (2, 1): distances are √5, √17 and √8.
    #[test]
    fn three_distances_by_hand() {
        let found = distances(&[&[0.0, 0.0], &[6.0, 0.0], &[0.0, 3.0]]);
        for (found, square) in found.iter().zip([5.0_f64, 17.0, 8.0]) {
            assert!((found - square.sqrt()).abs() < 1e-12, "{found}");
        }
        assert!(distances(&[]).is_empty());
        assert_eq!(distances(&[&[1.0, 2.0]]), [0.0]);
    }
}
