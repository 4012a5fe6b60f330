//! Clustered sampling by size: one client from each of `m` distributions that clients fill one after the other.
//!
//! # Definition
//! In integers of `Σn`: the candidates, by falling number of examples `n`, fill `m` distributions one after the other,
//! each candidate with `m·n_i` units and each distribution with `Σn`; what does not fit goes into the next one. From
//! each distribution one client is drawn in proportion to its units there. The weight of a client is how often it was
//! drawn, over `m`, and it trains once.
//!
//! A client with `m·n_i ≥ Σn` is drawn at least `⌊m·n_i/Σn⌋` times. Over draws the weight of each client is `n_i/Σn`.
//!
//! `[aggregation] weighting` is not used.
//!
//! # Inputs
//! Data sizes.
//!
//! # Explanation
//! With `[record] explain = true`: `distributions`, for each of them the units of each candidate; `drawn`, an id for
//! each distribution.
//!
//! # Source
//! Y. Fraboni, R. Vidal, L. Kameni, M. Lorenzi, "Clustered Sampling: Low-Variance and Improved Representativity for
//! Clients Selection in Federated Learning", ICML 2021 (arXiv 2105.05883), Algorithm 1.
//!
//! # Deviations from the source
//! Its Algorithm 2, which groups clients by their updates, is not here. Of equal sizes the smaller id comes first,
//! which it leaves open. Where not all clients are available, the candidates alone fill the distributions.
//!
//! # Cost
//! O(K log K + m log K) per round.
//!
//! # Determinism
//! Stream (policy, server, turn): an index below `Σn` for each distribution, in their order.

use super::{BuildContext, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView};
use fedgenie_core::config::Complaint;
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `clustered-sampling`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What clients are grouped by.
    #[serde(default)]
    pub algorithm: Algorithm,
}

/// What clients are grouped by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Their numbers of examples.
    #[default]
    Size,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if context.data_sizes.iter().all(|&size| size == 0) {
            let message = "clustered-sampling draws clients by their examples, and nobody has any";
            return Err(Complaint::new("", message));
        }
        Ok(Box::new(ClusteredSampling { filled: Vec::new(), drawn: Vec::new() }))
    }
}

#[derive(Stateful)]
struct ClusteredSampling {
    /// The candidates in the order of filling, and the units until the end of each.
    #[state(skip = "read before the next selection")]
    filled: Vec<(ClientId, u64)>,
    #[state(skip = "read before the next selection")]
    drawn: Vec<ClientId>,
}

impl Policy for ClusteredSampling {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let candidates = ask.available.list();
        let (cohort, _) = ask.sizes(candidates);
        let size = |client: &ClientId| u64::from(view.data_sizes[client.index()]);
        let mut order = candidates.to_vec();
        order.sort_unstable_by_key(|client| (std::cmp::Reverse(size(client)), *client));
        let mut end = 0;
        self.filled.clear();
        self.filled.extend(order.into_iter().map(|client| {
            end += cohort as u64 * size(&client);
            (client, end)
        }));
        let all = end / (cohort as u64).max(1);
        self.drawn.clear();
        if all == 0 {
            // Those who are there have no examples: as good as each other, and without weight.
            self.drawn.extend(&candidates[..cohort]);
        } else {
            for number in 0..cohort as u64 {
                let unit = number * all + rng.policy.below(all);
                let place = self.filled.partition_point(|(_, end)| *end <= unit);
                self.drawn.push(self.filled[place].0);
            }
        }
        selection.extend(&self.drawn);
        selection.weights.resize(cohort, 1.0 / cohort as f64);
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
        let count = self.drawn.len();
        let all = self.filled.last().map_or(0, |(_, end)| *end) / (count as u64).max(1);
        let mut distributions = vec![vec![0.0; candidates.len()]; count];
        let mut begin = 0;
        for &(client, end) in &self.filled {
            let place = candidates.binary_search(&client).expect("those who fill are candidates");
            while begin < end {
                let number = begin / all;
                let until = end.min((number + 1) * all);
                distributions[number as usize][place] += (until - begin) as f64;
                begin = until;
            }
        }
        explanation.clients(candidates.iter().copied());
        explanation.table("distributions", distributions);
        explanation.ids("drawn", self.drawn.iter().copied());
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        explanation.clients(clients.iter().copied());
        Ok(())
    }
}
