//! Random selection: uniform, with probability proportional to data size, or each client by itself.
//!
//! # Definition
//! `uniform`: every set of `m` available clients is equally likely. `data-size`: `m` successive draws without
//! replacement, each with probability proportional to the data size of the clients that are left.
//!
//! With `probability = p` each available client is chosen with probability `p`, independently of the others. If that
//! chooses nobody, or fewer than a budget asks for (`[budget] least`), others join, each as likely as any other, until
//! there are enough; if it chooses more than `m`, `m` of them are, every set as likely as any other.
//!
//! # Inputs
//! Data sizes (examples). No feedback is used.
//!
//! # Explanation
//! With `[record] explain = true`: `clients`, those drawn, and the number of `candidates`; with `weights = "data-size"`
//! the candidates and the `weight` of each; with `probability` the number of clients that were `chosen` before the
//! cohort limited them.
//!
//! Where the cohort is all clients and a round without clients has a new model (`[privacy.dp-fedavg]`), nobody joins:
//! a selection may be empty.
//!
//! # Source
//! H. B. McMahan, E. Moore, D. Ramage, S. Hampson, B. Agüera y Arcas, "Communication-Efficient Learning of Deep
//! Networks from Decentralized Data", AISTATS 2017, Algorithm 1 (uniform). `probability = 0.5` is the random baseline
//! of H. Xu, X. Gao, J. Liu, Q. Ma, L. Huang, "FedACS: An Adaptive Client Selection Framework for
//! Communication-Efficient Federated Graph Learning".
//!
//! # Deviations from the source
//! Successive draws are not inclusion probabilities proportional to size: with `m > 1` a large client is chosen less
//! often than in proportion, because it can be chosen only once per round. The source does not say what happens when
//! independent choices choose nobody.
//!
//! # Cost
//! `uniform`: O(m) time, whatever the number of clients, and 4 bytes for each; unless fewer than one in sixteen can be
//! chosen: then O(K), as for `data-size` and `probability`.
//!
//! # Determinism
//! Stream (policy, 0, round). `uniform` draws by a Fisher–Yates shuffle that goes as far as it is needed; `data-size`
//! by exponential races (Efraimidis & Spirakis, 2006), which is the same law as successive draws; ties go to the
//! smaller id. `probability` draws a uniform variate for each available client, by ascending id, which is chosen if
//! that is below `p`; then, as long as too few are, one index among the others; or, if too many are, the first `m`
//! places of a Fisher–Yates shuffle of them, from the first place up. Clients are asked in ascending order.

use super::{
    BuildContext, Candidates, Explanation, Policy, PolicyRng, PolicySettings, Selection, SelectionRequest, ServerView,
};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::failure::Failure;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::ln;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Parameters of `random`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How likely each client is.
    #[serde(default)]
    pub weights: Weights,
    /// The probability of each client, independently of the others, above 0 and at most 1; not beside `weights`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
}

/// How likely each client is to be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All alike.
    #[default]
    Uniform,
    /// In proportion to the number of examples.
    DataSize,
}

impl PolicySettings for Config {
    fn build(&self, context: &BuildContext<'_>) -> Result<Box<dyn Policy>, Complaint> {
        if let Some(probability) = self.probability {
            check("probability", probability, f64::MIN_POSITIVE..=1.0, "a number above 0 and at most 1")?;
            if self.weights != Weights::Uniform {
                let message =
                    "found beside weights = \"data-size\"; each client is chosen by itself, take one of the two out";
                return Err(Complaint::new("probability", message));
            }
        }
        let is_free = self.probability.is_some()
            && context.has_empty_rounds
            && context.least <= 1
            && context.cohort == context.clients;
        Ok(Box::new(Random {
            weights: self.weights,
            probability: self.probability,
            least: if is_free { 0 } else { context.least.max(1) },
            deck: Deck::default(),
            race: Vec::new(),
            chosen: 0,
        }))
    }
}

#[derive(Stateful)]
struct Random {
    #[state(skip = "from the scenario")]
    weights: Weights,
    #[state(skip = "from the scenario")]
    probability: Option<f64>,
    /// The fewest clients that are chosen, if so many are available.
    #[state(skip = "from the scenario")]
    least: usize,
    #[state(skip = "a buffer of one selection")]
    deck: Deck,
    #[state(skip = "a buffer of one selection")]
    race: Vec<(f64, ClientId)>,
    /// Clients chosen independently, before the cohort limited them.
    #[state(skip = "read before the next selection")]
    chosen: usize,
}

impl Policy for Random {
    fn can_be_empty(&self) -> bool {
        self.least == 0
    }

    fn inclusion(&self) -> Option<f64> {
        self.probability.filter(|_| self.least == 0)
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        if let Some(probability) = self.probability {
            let counts = self.least..=ask.cohort;
            self.chosen = draw_each(ask.available.list(), probability, counts, rng.policy, selection);
            return Ok(());
        }
        match self.weights {
            Weights::Uniform => draw_uniform(&ask.available, ask.cohort, &mut self.deck, rng.policy, selection),
            Weights::DataSize => {
                let available = ask.available.list();
                let count = ask.cohort.min(available.len());
                let size = |client: ClientId| f64::from(view.data_sizes[client.index()]);
                draw_by_weight(available, size, count, rng.policy, &mut self.race, selection);
            }
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        explanation.clients(selection.iter().copied());
        if self.probability.is_some() {
            explanation.scalar("chosen", self.chosen as f64);
        }
        match self.weights {
            Weights::Uniform => explanation.scalar("candidates", ask.available.list().len() as f64),
            Weights::DataSize => {
                let available = ask.available.list();
                explanation.clients(available.iter().copied());
                explanation.array("weight", available.iter().map(|client| f64::from(view.data_sizes[client.index()])));
            }
        }
        Ok(())
    }
}

/// Each client by itself, within `counts`. Returns how many were chosen at first.
fn draw_each(
    available: &[ClientId],
    probability: f64,
    counts: RangeInclusive<usize>,
    rng: &mut StreamRng,
    selection: &mut Vec<ClientId>,
) -> usize {
    selection.extend(available.iter().filter(|_| rng.uniform() < probability));
    let chosen = selection.len();
    let count = *counts.end();
    if chosen < *counts.start() {
        let mut others: Vec<ClientId> = available.to_vec();
        others.retain(|client| selection.binary_search(client).is_err());
        while selection.len() < *counts.start() && !others.is_empty() {
            selection.push(others.remove(rng.below(others.len() as u64) as usize));
        }
        selection.sort_unstable();
    } else if chosen > count {
        draw_first(selection, count, rng);
        selection.sort_unstable();
    }
    chosen
}

/// Keeps `count` of a list, every sequence equally likely: a Fisher–Yates shuffle that goes as far as it is needed,
/// from the first place up.
pub(super) fn draw_first(list: &mut Vec<ClientId>, count: usize, rng: &mut StreamRng) {
    let count = count.min(list.len());
    for place in 0..count {
        let other = place + rng.below((list.len() - place) as u64) as usize;
        list.swap(place, other);
    }
    list.truncate(count);
}

/// Up to `count` candidates, every set equally likely.
pub fn draw_uniform(
    candidates: &Candidates<'_>,
    count: usize,
    deck: &mut Deck,
    rng: &mut StreamRng,
    selection: &mut Vec<ClientId>,
) {
    deck.gather(candidates.scope().len());
    // A drawn client that cannot be chosen is put aside, which leaves the others equally likely.
    let most_draws = 16 * count + 64;
    while selection.len() < count && deck.swaps.len() < most_draws {
        let Some(index) = deck.draw(rng) else { return };
        selection.extend(candidates.at(index));
    }
    if selection.len() < count {
        // Few can be chosen: the rest is drawn from a list of them.
        let mut taken = selection.clone();
        taken.sort_unstable();
        let mut left = candidates.list().to_vec();
        left.retain(|client| taken.binary_search(client).is_err());
        while selection.len() < count && !left.is_empty() {
            selection.push(left.swap_remove(rng.below(left.len() as u64) as usize));
        }
    }
}

/// Numbers from 0 in random order, one at a time: a Fisher–Yates shuffle that goes only as far as it is drawn, and is
/// undone before the next.
#[derive(Default)]
pub struct Deck {
    cards: Vec<u32>,
    /// The index with which each drawn number was swapped.
    swaps: Vec<u32>,
}

impl Deck {
    /// All numbers below `size` are in the deck, in their order.
    fn gather(&mut self, size: usize) {
        if self.cards.len() == size {
            for (index, swapped) in self.swaps.drain(..).enumerate().rev() {
                self.cards.swap(index, swapped as usize);
            }
        } else {
            self.cards = (0..size as u32).collect();
            self.swaps.clear();
        }
    }

    fn draw(&mut self, rng: &mut StreamRng) -> Option<usize> {
        let index = self.swaps.len();
        if index == self.cards.len() {
            return None;
        }
        let chosen = index + rng.below((self.cards.len() - index) as u64) as usize;
        self.cards.swap(index, chosen);
        self.swaps.push(chosen as u32);
        Some(self.cards[index] as usize)
    }
}

/// `count` clients by successive draws in proportion to weight. Client `k`'s exponential clock with rate `w_k` rings at
/// `−ln(u)/w_k`; the order of ringing is the order of successive draws. Clients of weight zero ring last, by id.
pub(super) fn draw_by_weight(
    available: &[ClientId],
    weight: impl Fn(ClientId) -> f64,
    count: usize,
    rng: &mut StreamRng,
    race: &mut Vec<(f64, ClientId)>,
    selection: &mut Vec<ClientId>,
) {
    race.clear();
    race.extend(available.iter().map(|&client| (-ln(rng.uniform()) / weight(client), client)));
    let order = |a: &(f64, ClientId), b: &(f64, ClientId)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if count < race.len() {
        race.select_nth_unstable_by(count, order);
        race.truncate(count);
    }
    race.sort_unstable_by(order);
    selection.extend(race.iter().map(|&(_, client)| client));
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    fn ids(count: u32) -> Vec<ClientId> {
        (0..count).map(ClientId).collect()
    }

    #[test]
    fn every_uniform_pair_is_equally_likely() {
        let streams = Streams::new(3);
        let mut counts = [[0u32; 4]; 4];
        let mut deck = Deck::default();
        for round in 0..24_000 {
            let mut selection = Vec::new();
            let mut rng = streams.stream(Purpose::Policy, 0, round);
            draw_uniform(&ids(4).as_slice().into(), 2, &mut deck, &mut rng, &mut selection);
            counts[selection[0].index()][selection[1].index()] += 1;
        }
        for (i, row) in counts.iter().enumerate() {
            for (j, &count) in row.iter().enumerate() {
                // 12 ordered pairs, 2000 each expected; standard deviation 43.
                let expected = if i == j { 0 } else { 2_000 };
                assert!(count.abs_diff(expected) < 200, "{i}, {j}: {count}");
            }
        }
    }

    #[test]
    fn successive_draws_follow_the_weights() {
        let streams = Streams::new(4);
        let weights = [1.0, 2.0, 3.0, 0.0];
        let (mut first, mut second_after_third) = ([0u32; 4], [0u32; 4]);
        for round in 0..30_000 {
            let (mut race, mut selection) = (Vec::new(), Vec::new());
            let mut rng = streams.stream(Purpose::Policy, 0, round);
            draw_by_weight(&ids(4), |client| weights[client.index()], 4, &mut rng, &mut race, &mut selection);
            first[selection[0].index()] += 1;
            if selection[0] == ClientId(2) {
                second_after_third[selection[1].index()] += 1;
            }
            assert_eq!(selection[3], ClientId(3), "a client without data comes last");
        }
        // First draw 1/6, 1/3, 1/2 of 30,000; after client 2, client 1 follows with probability 2/3.
        assert!(first[0].abs_diff(5_000) < 300 && first[1].abs_diff(10_000) < 400 && first[2].abs_diff(15_000) < 400);
        assert!((f64::from(second_after_third[1]) / f64::from(first[2]) - 2.0 / 3.0).abs() < 0.02);
    }

    /// Four clients with probability ½: each of the 15 sets 1 time in 16, and one more time in 64 if it has one member.
    #[test]
    fn each_client_is_chosen_by_itself() {
        let streams = Streams::new(5);
        let mut counts = [0_u32; 16];
        for round in 0..32_000 {
            let mut selection = Vec::new();
            let mut rng = streams.stream(Purpose::Policy, 0, round);
            let chosen = draw_each(&ids(4), 0.5, 1..=4, &mut rng, &mut selection);
            assert_eq!(chosen.max(1), selection.len());
            counts[selection.iter().map(|client| 1 << client.0).sum::<usize>()] += 1;
        }
        for (set, &count) in counts.iter().enumerate() {
            let expected = [0, 2_500, 2_000, 2_000, 2_000][set.count_ones() as usize];
            assert!(count.abs_diff(expected) < 250, "{set:b}: {count}");
        }
    }

    /// At most two of four: those of three or four chosen lose a place at random, so that all pairs are alike.
    #[test]
    fn the_cohort_limits_those_chosen_at_random() {
        let streams = Streams::new(6);
        let mut counts = [0_u32; 16];
        for round in 0..32_000 {
            let mut selection = Vec::new();
            let mut rng = streams.stream(Purpose::Policy, 0, round);
            draw_each(&ids(4), 0.5, 1..=2, &mut rng, &mut selection);
            assert!(selection.is_sorted());
            counts[selection.iter().map(|client| 1 << client.0).sum::<usize>()] += 1;
        }
        for (set, &count) in counts.iter().enumerate() {
            // 11 in 16 have at least two: as many for each of six pairs.
            let expected = [0, 2_500, 3_667, 0, 0][set.count_ones() as usize];
            assert!(count.abs_diff(expected) < 250, "{set:b}: {count}");
        }
    }

    #[test]
    fn others_join_until_there_are_enough() {
        let streams = Streams::new(6);
        let mut counts = [0_u32; 5];
        let mut joined = [0_u32; 4];
        for round in 0..16_000 {
            let mut selection = Vec::new();
            let mut rng = streams.stream(Purpose::Policy, 0, round);
            let chosen = draw_each(&ids(4), 0.5, 3..=4, &mut rng, &mut selection);
            assert_eq!(selection.len(), chosen.max(3));
            assert!(selection.windows(2).all(|pair| pair[0] < pair[1]));
            counts[chosen] += 1;
            if chosen == 0 {
                selection.iter().for_each(|client| joined[client.index()] += 1);
            }
        }
        // Binomial: 1, 4, 6, 4, 1 sixteenths. After an empty choice each client joins in three of four.
        for (count, expected) in counts.into_iter().zip([1_000, 4_000, 6_000, 4_000, 1_000]) {
            assert!(count.abs_diff(expected) < 250, "{counts:?}");
        }
        assert!(joined.iter().all(|&count| count.abs_diff(counts[0] * 3 / 4) < 70), "{joined:?}");
    }
}
