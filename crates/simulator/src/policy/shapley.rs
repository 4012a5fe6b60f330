//! S-FedAvg: clients whose updates have been worth more to the model are more likely.
//!
//! # Definition
//! `v(S)` is the quality of the model that the updates of the clients `S` make alone: the task's main measure on
//! validation data, or else on test data, larger is better; `v(∅)` is that of the model before. Of the `u` clients `U`
//! whose updates a round aggregates, each has its Shapley value
//! ```text
//! s_i  = Σ_{S ⊆ U∖i} |S|!·(u − |S| − 1)!/u!·(v(S ∪ i) − v(S))
//! φ_i ← alpha·φ_i + beta·s_i        φ_i = 1/K at first, of the server's K clients
//! p_i  ∝ exp(φ_i)
//! ```
//! and `m` of the candidates are drawn, one after the other, in proportion to `p` of those left.
//!
//! With `u ≤ exact` all `2^u` subsets are evaluated. With more, `s_i` is the mean of `v(S ∪ i) − v(S)` over
//! `permutations` random orders of `U`, with `S` the clients before `i`. A round in which one of the models is not
//! finite changes nothing.
//!
//! # Inputs
//! The quality of subsets of a round's updates: a task with a model and a main measure.
//!
//! # Explanation
//! With `[record] explain = true`: `relevance` (`φ`) of each candidate, and `p`, its probability in the first draw.
//! `after`: `relevance` and `shapley` (`s`) of those selected, `null` if none was known.
//!
//! # Source
//! L. Nagalapatti, R. Narayanam, "Game of Gradients: Mitigating Irrelevant Clients in Federated Learning", AAAI 2021
//! (arXiv 2110.12257), the algorithm S-FedAvg. `alpha = 0.75` and `beta = 0.25`, the softmax and draws without
//! replacement are also those of the program `s-fedavg.py` of "ShapleyFL: Robust Federated Learning Based on Shapley
//! Value", KDD 2023, by others.
//!
//! # Deviations from the source
//! - Values of sets are exact up to `exact` updates; programs that are public sample them.
//! - Another public program adds up the Shapley values of all rounds, and takes the `m` clients with the largest `φ`;
//!   here `φ` is a moving average, and clients are drawn.
//! - The scale of `φ` is that of the main measure. With an accuracy, values of single rounds are small, and `p` stays
//!   close to uniform for long: a larger `beta` tells clients apart sooner.
//! - A subset's model is the average that the server would make of it with a step of 1; a server's optimizer, and the
//!   ages of updates, play no part.
//!
//! # Cost
//! `2^u` evaluations of a model in a round of `u` updates, above `exact` `u·permutations`, at no virtual time; O(K log
//! K) a selection.
//!
//! # Determinism
//! Stream (policy, server, turn): a uniform for each candidate, by ascending id, whose exponential clock
//! `−ln(u)/exp(φ − largest φ)` rings first comes first; then the smaller id. Stream (solver, server, turn): 64 bits,
//! the seed of the orders until the next selection; order `n`, from 0, is a shuffle of the ascending ids by stream
//! (solver, 0, n) of that seed. Sums run over subsets by the binary number of their members, the smallest id last.

use super::random::draw_by_weight;
use super::{
    BuildContext, Capabilities, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest,
    ServerView, Subsets,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::exp;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Updates up to which all subsets may be evaluated.
const MOST_EXACT: usize = 12;

/// Parameters of `shapley`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Share of its relevance that a client keeps, between 0 and 1.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Weight of a round's Shapley value, at least 0; `1 − alpha` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    /// Updates of a round up to which all subsets are evaluated, at most 12.
    #[serde(default = "default_exact")]
    pub exact: usize,
    /// Random orders in rounds with more, at least 1.
    #[serde(default = "default_permutations")]
    pub permutations: u32,
}

const fn default_alpha() -> f64 {
    0.75
}
const fn default_exact() -> usize {
    MOST_EXACT
}
const fn default_permutations() -> u32 {
    5
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: default_alpha(), beta: None, exact: default_exact(), permutations: default_permutations() }
    }
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        let alpha = check("alpha", self.alpha, 0.0..=1.0, "a number between 0 and 1")?;
        if self.exact > MOST_EXACT {
            let message = format!("found {}; expected at most {MOST_EXACT}", self.exact);
            return Err(Complaint::new("exact", message));
        }
        if self.permutations == 0 {
            return Err(Complaint::new("permutations", "found 0; expected at least 1"));
        }
        Ok(Box::new(Shapley {
            alpha,
            beta: check("beta", self.beta.unwrap_or(1.0 - alpha), 0.0.., "a number of at least 0")?,
            exact: self.exact,
            permutations: self.permutations,
            relevance: vec![1.0 / context.among as f64; context.clients],
            shapley: vec![f64::NAN; context.clients],
            seed: 0,
            p: Vec::new(),
        }))
    }
}

#[derive(Stateful)]
struct Shapley {
    #[state(skip = "from the scenario")]
    alpha: f64,
    #[state(skip = "from the scenario")]
    beta: f64,
    #[state(skip = "from the scenario")]
    exact: usize,
    #[state(skip = "from the scenario")]
    permutations: u32,
    /// φ.
    #[state(each)]
    relevance: Vec<f64>,
    /// Of the last round in which each client had one; NaN before.
    #[state(each)]
    shapley: Vec<f64>,
    /// Of the random orders until the next selection.
    seed: u64,
    #[state(skip = "read before the next selection")]
    p: Vec<f64>,
}

/// The clients whose bits are set.
fn members(clients: &[ClientId], bits: usize) -> Vec<ClientId> {
    clients.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1).map(|(_, client)| *client).collect()
}

/// The Shapley values of a few clients; `None` if a model is not finite.
fn exact(clients: &[ClientId], value: impl Fn(&[ClientId]) -> f64) -> Option<Vec<f64>> {
    let count = clients.len();
    let values: Vec<f64> = (0..1_usize << count).map(|bits| value(&members(clients, bits))).collect();
    if values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    // |S|!·(u − |S| − 1)!/u! is 1/u for the empty set, and |S|/(u − |S|) times the one of a set with one less.
    let mut weights = vec![1.0 / count as f64];
    for size in 1..count {
        weights.push(weights[size - 1] * size as f64 / (count - size) as f64);
    }
    let of = |place: usize| {
        let without = (0..values.len()).filter(|bits| bits >> place & 1 == 0);
        let gain = |bits: usize| values[bits | 1 << place] - values[bits];
        without.map(|bits| weights[bits.count_ones() as usize] * gain(bits)).sum()
    };
    Some((0..count).map(of).collect())
}

/// Their estimate by random orders; `None` if a model is not finite.
fn sampled(clients: &[ClientId], (seed, orders): (u64, u32), value: impl Fn(&[ClientId]) -> f64) -> Option<Vec<f64>> {
    let (none, all) = (value(&[]), value(clients));
    let mut sums = vec![0.0; clients.len()];
    let streams = Streams::new(seed);
    for order in 0..orders {
        let mut places: Vec<usize> = (0..clients.len()).collect();
        streams.stream(Purpose::Solver, 0, order).shuffle(&mut places);
        let mut before = none;
        for taken in 1..=places.len() {
            let after = if taken == places.len() {
                all
            } else {
                let mut set: Vec<ClientId> = places[..taken].iter().map(|&place| clients[place]).collect();
                set.sort_unstable();
                value(&set)
            };
            sums[places[taken - 1]] += after - before;
            before = after;
        }
    }
    let means: Vec<f64> = sums.iter().map(|sum| sum / f64::from(orders)).collect();
    means.iter().all(|mean| mean.is_finite()).then_some(means)
}

impl Policy for Shapley {
    fn capabilities(&self) -> Capabilities {
        Capabilities { subsets: true, ..Capabilities::default() }
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.seed = rng.solver.bits();
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let relevance = |client: &ClientId| self.relevance[client.index()];
        let largest = candidates.iter().map(relevance).fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = candidates.iter().map(|client| exp(relevance(client) - largest)).collect();
        let weight = |client: ClientId| weights[candidates.binary_search(&client).expect("those drawn are candidates")];
        draw_by_weight(candidates, weight, cohort, rng.policy, &mut Vec::new(), selection);
        let all: f64 = weights.iter().sum();
        self.p = weights.iter().map(|weight| weight / all).collect();
        Ok(())
    }

    fn judge(&mut self, subsets: &Subsets<'_>) -> Result<(), Failure> {
        let clients = subsets.clients();
        let value = |members: &[ClientId]| subsets.quality(members);
        let found = match clients.len() <= self.exact {
            true => exact(clients, value),
            false => sampled(clients, (self.seed, self.permutations), value),
        };
        for (client, value) in clients.iter().zip(found.into_iter().flatten()) {
            let relevance = &mut self.relevance[client.index()];
            *relevance = self.alpha * *relevance + self.beta * value;
            self.shapley[client.index()] = value;
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
        let candidates = ask.available.list();
        explanation.clients(candidates.iter().copied());
        explanation.array("relevance", candidates.iter().map(|client| self.relevance[client.index()]));
        explanation.array("p", self.p.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        explanation.array("relevance", clients.iter().map(|client| self.relevance[client.index()]));
        explanation.array("shapley", clients.iter().map(|client| self.shapley[client.index()]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u32) -> Vec<ClientId> {
        (0..count).map(ClientId).collect()
    }

    /// v of ∅, 0, 1, 01, 2, 02, 12, 012: the orders 012, 021, 102, 120, 201, 210 give client 0 40, 40, 10, 5, −5, 5;
    /// client 1 30, 15, 60, 60, 15, 5; client 2 20, 35, 20, 25, 80, 80: sums of 95, 185 and 260.
    #[test]
    fn three_clients_by_hand() {
        let values = [0.0, 40.0, 60.0, 70.0, 80.0, 75.0, 85.0, 90.0];
        let value = |members: &[ClientId]| values[members.iter().map(|client| 1 << client.0).sum::<usize>()];
        let found = exact(&ids(3), value).unwrap();
        for (found, sum) in found.iter().zip([95.0, 185.0, 260.0]) {
            assert!((found - sum / 6.0).abs() < 1e-12, "{found}");
        }
        // Many orders come close, and whatever they are, values add up to what all are worth.
        let many = sampled(&ids(3), (7, 20_000), value).unwrap();
        assert!(many.iter().zip(&found).all(|(many, found)| (many - found).abs() < 0.6), "{many:?}");
        let few: f64 = sampled(&ids(3), (7, 1), value).unwrap().iter().sum();
        assert!((few - 90.0).abs() < 1e-12);
    }

    #[test]
    fn weights_of_subsets_add_up_and_a_model_that_is_not_finite_teaches_nothing() {
        for count in 1..=12 {
            // Everyone adds 1 to whatever is there.
            let found = exact(&ids(count), |members| members.len() as f64).unwrap();
            assert!(found.iter().all(|found| (found - 1.0).abs() < 1e-12), "{count}: {found:?}");
        }
        let diverges = |members: &[ClientId]| if members.len() == 2 { f64::NEG_INFINITY } else { 0.0 };
        assert_eq!(exact(&ids(3), diverges), None);
        assert_eq!(sampled(&ids(3), (1, 4), diverges), None);
    }
}
