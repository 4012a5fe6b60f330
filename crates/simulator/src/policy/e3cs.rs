//! E3CS: adversarial bandits on which updates arrive, with a quota for everybody.
//!
//! # Definition
//! ```text
//! σ   = quota·m/K
//! p_i = σ + (m − Kσ)·w'_i/Σw'
//! w'  = w,  or  min(w, (1 − σ)·a)  with  a/Σw' = 1/(m − Kσ)  if a p would pass 1: those capped have p = 1
//! w_i ← w_i·exp((m − Kσ)·eta·x_i/K),  x_i = 1{selected and arrived}/p_i,  not of those capped
//! ```
//! `w` is 1 at first, `K` the number of candidates. `m` of them are drawn, one after the other, in proportion to `p` of
//! those left.
//!
//! # Inputs
//! Arrivals of updates.
//!
//! # Explanation
//! With `[record] explain = true`: `w`, divided by the largest of the candidates, and `p` of each; `sigma`. `after`:
//! `log_w` of those selected, up to a common summand.
//!
//! # Source
//! T. Huang, W. Lin, L. Shen, K. Li, A. Y. Zomaya, "Stochastic Client Selection for Federated Learning With Volatile
//! Clients", IEEE Internet of Things Journal 2022 (arXiv 2011.08756), Algorithms 1 and 2; its weights are those of Exp3
//! with several plays.
//!
//! # Deviations from the source
//! - Successive draws, as there, are not inclusion probabilities: with `m > 1` a client with a large `p` is selected a
//!   little less often than `p` says, and one with `p = 1` not always.
//! - The source has all clients to choose from; here `K` and `m` are those of the selection.
//! - Its quota may change from round to round; here it stays.
//! - An update counts in the weights when its job arrives in time. Weights are kept as logarithms.
//!
//! # Cost
//! O(K log K) per round.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each candidate, by ascending id, whose exponential clock `−ln(u)/p`
//! rings first comes first; then the smaller id.

use super::random::draw_by_weight;
use super::{
    BuildContext, Explanation, Feedback, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::exp;
use fedgenie_core::record::Outcome;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `e3cs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of the places that everybody is sure of, between 0 and 1.
    #[serde(default = "default_quota")]
    pub quota: f64,
    /// Step of the weights, not negative.
    #[serde(default = "default_eta")]
    pub eta: f64,
}

const fn default_quota() -> f64 {
    0.5
}
const fn default_eta() -> f64 {
    0.5
}

impl Default for Config {
    fn default() -> Self {
        Self { quota: default_quota(), eta: default_eta() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        Ok(Box::new(E3cs {
            quota: check("quota", self.quota, 0.0..=1.0, "a number between 0 and 1")?,
            eta: check("eta", self.eta, 0.0.., "a number of at least 0")?,
            log_weights: vec![0.0; context.clients],
            gains: vec![0.0; context.clients],
            made: Allocation::default(),
        }))
    }
}

#[derive(Stateful)]
struct E3cs {
    #[state(skip = "from the scenario")]
    quota: f64,
    #[state(skip = "from the scenario")]
    eta: f64,
    /// ln w.
    #[state(each)]
    log_weights: Vec<f64>,
    /// What an arrival adds to it, by the client's last selection.
    #[state(each)]
    gains: Vec<f64>,
    #[state(skip = "read before the next selection")]
    made: Allocation,
}

/// Probabilities of candidates.
#[derive(Clone, Debug, Default)]
struct Allocation {
    weights: Vec<f64>,
    p: Vec<f64>,
    is_capped: Vec<bool>,
    sigma: f64,
    /// m − Kσ.
    free: f64,
}

impl Allocation {
    /// Probabilities that add up to `m`, each at least σ = quota·m/K, for weights of which the largest is 1.
    fn new(weights: Vec<f64>, m: usize, quota: f64) -> Self {
        let (count, m) = (weights.len() as f64, m as f64);
        let sigma = quota * m / count;
        let free = m - count * sigma;
        let mut made = Self { p: Vec::new(), is_capped: vec![false; weights.len()], weights, sigma, free };
        let mut order: Vec<usize> = (0..made.weights.len()).collect();
        order.sort_by(|&one, &other| made.weights[other].total_cmp(&made.weights[one]).then(one.cmp(&other)));
        // As many as need be are capped, from the largest weight on: a = Σ(others)/(free − capped·(1 − σ)).
        let mut others: f64 = order.iter().rev().map(|&place| made.weights[place]).sum();
        let mut left = free;
        let mut capped = 0;
        // Rounding alone caps nobody.
        while capped < order.len()
            && left > 0.0
            && left * made.weights[order[capped]] > (1.0 - sigma) * others * (1.0 + 1e-12)
        {
            made.is_capped[order[capped]] = true;
            capped += 1;
            left = free - capped as f64 * (1.0 - sigma);
            // Added up anew, the smallest first: a difference would keep what the large ones have rounded away.
            others = order[capped..].iter().rev().map(|&place| made.weights[place]).sum();
        }
        let of = |(weight, &is_capped): (&f64, &bool)| match is_capped {
            true => 1.0,
            false if others > 0.0 => sigma + left.max(0.0) * weight / others,
            false => sigma,
        };
        made.p = made.weights.iter().zip(&made.is_capped).map(of).collect();
        made
    }
}

impl Policy for E3cs {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let log_weight = |client: &ClientId| self.log_weights[client.index()];
        let largest = candidates.iter().map(log_weight).fold(f64::NEG_INFINITY, f64::max);
        let weights = candidates.iter().map(|client| exp(log_weight(client) - largest)).collect();
        self.made = Allocation::new(weights, cohort, self.quota);
        let made = &self.made;
        let place = |client: ClientId| candidates.binary_search(&client).expect("a drawn client is a candidate");
        let weight = |client: ClientId| made.p[place(client)];
        draw_by_weight(candidates, weight, cohort, rng.policy, &mut Vec::new(), selection);
        for &client in &**selection {
            let place = place(client);
            let gain = made.free * self.eta / (made.p[place] * candidates.len() as f64);
            self.gains[client.index()] = if made.is_capped[place] { 0.0 } else { gain };
        }
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        if let Feedback::Job(job) = feedback
            && job.outcome == Outcome::Arrived
        {
            self.log_weights[job.client.index()] += self.gains[job.client.index()];
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
        explanation.array("w", self.made.weights.iter().copied());
        explanation.array("p", self.made.p.iter().copied());
        explanation.scalar("sigma", self.made.sigma);
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("log_w", clients.iter().map(|client| self.log_weights[client.index()]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of four, half of the places sure: σ = ¼, one place free. Of weights 1, ½, ¼, ¼ the first has ¼ + ½ = ¾, and
    /// nobody is capped. Of 1, 0.1, 0.05, 0.05 it would have ¼ + 1/1.2; capped, it has 1, and the others share a
    /// quarter.
    #[test]
    fn probabilities_by_hand() {
        let open = Allocation::new(vec![1.0, 0.5, 0.25, 0.25], 2, 0.5);
        assert_eq!(open.p, [0.75, 0.5, 0.375, 0.375]);
        assert_eq!(open.is_capped, [false; 4]);
        let capped = Allocation::new(vec![1.0, 0.1, 0.05, 0.05], 2, 0.5);
        assert_eq!(capped.is_capped, [true, false, false, false]);
        for (found, expected) in capped.p.iter().zip([1.0, 0.375, 0.3125, 0.3125]) {
            assert!((found - expected).abs() < 1e-12, "{:?}", capped.p);
        }
    }

    #[test]
    fn probabilities_add_up_and_stay_within_their_bounds() {
        for (weights, m) in [
            (vec![1.0; 5], 5),
            (vec![1.0, 1e-300, 1e-300], 2),
            (vec![1.0, 0.9, 0.8, 1e-9, 1e-12, 0.0], 4),
            (vec![1.0], 1),
        ] {
            for quota in [0.0, 0.25, 0.5, 1.0] {
                let made = Allocation::new(weights.clone(), m, quota);
                let all: f64 = made.p.iter().sum();
                assert!((all - m as f64).abs() < 1e-9, "{weights:?}, {m}, {quota}: {:?}", made.p);
                assert!(made.p.iter().all(|p| *p >= made.sigma - 1e-12 && *p <= 1.0 + 1e-9), "{:?}", made.p);
            }
        }
    }
}
