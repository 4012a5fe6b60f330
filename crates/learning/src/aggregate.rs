//! Folding updates into the global model: weighted mean of the clients' changes, and the server's step along it.
//!
//! # Definition
//! `Δ = Σ_k p_k (w_k − v_k)`, where `w_k` is what client `k` sent and `v_k` the model it was sent at dispatch. With
//! data size `n_k` and staleness weight `s_k` (1 for a fresh update), sums over the contributions and `N` the number of
//! examples of all clients, whether they contribute or not:
//!
//! | weighting | `p_k` |
//! |---|---|
//! | `data-size` | `n_k s_k / Σ_j n_j s_j` |
//! | `uniform` | `s_k / Σ_j s_j`, over contributions with examples |
//! | `total-size` | `n_k s_k / N`; what is missing to 1 stays with the old model |
//!
//! Where staleness *discounts* (asynchronous aggregation), the `s_j` are left out of the sums: what age takes away
//! stays with the old model.
//!
//! The server's `average` is `w ← w + Δ`. If all updates are fresh, `v_k = w`, and by `data-size` this is
//! `Σ_k p_k w_k`. Other servers take Δ for the negative gradient of an optimizer: [`ServerOptimizer`]. Without any
//! weight the model, and what the server remembers, are unchanged.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! Algorithm 1; staleness weights as in C. Xie, S. Koyejo, I. Gupta, "Asynchronous federated optimization", 2019.
//!
//! # Cost
//! One pass over the updates; memory for a list of their indices.
//!
//! # Determinism
//! For each parameter, `n_k s_k (w_k − v_k)` (`uniform`: `s_k (w_k − v_k)`) is added in `f64` in ascending (client,
//! round of dispatch), divided by the total weight once, added to `w` and rounded to `f32`: the order of the
//! contributions does not matter.

mod config;
pub mod server;

pub use config::{AggregationConfig, Weighting};
pub use server::{ServerConfig, ServerOptimizer};

use fedgenie_core::id::{ClientId, Round};

/// One client's part in an aggregation.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// Who trained.
    pub client: ClientId,
    /// The round in which it was dispatched.
    pub round: Round,
    /// How many examples it trained on.
    pub examples: usize,
    /// Weight for its age: 1 for a fresh update, 0 to ignore it.
    pub staleness_weight: f64,
    /// The model it was sent.
    pub start: &'a [f32],
    /// The model it sent back; finite.
    pub parameters: &'a [f32],
}

impl Contribution<'_> {
    /// The weight before its age is taken into account.
    fn base_weight(&self, weighting: Weighting) -> f64 {
        match weighting {
            Weighting::DataSize | Weighting::TotalSize => self.examples as f64,
            Weighting::Uniform => f64::from(u8::from(self.examples > 0)),
        }
    }

    fn weight(&self, weighting: Weighting) -> f64 {
        self.base_weight(weighting) * self.staleness_weight
    }
}

/// What age does to the weights of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aging {
    /// Weights are relative: an old update leaves more to the others.
    #[default]
    Relative,
    /// What age takes away stays with the old model.
    Discounting,
}

/// Parameters that are summed at once, so that the sums stay in the first-level cache.
const BLOCK_PARAMETERS: usize = 512;

/// Moves the global model by the mean of the changes, weighted by data size.
///
/// # Panics
/// If a length differs from the global model's, a staleness weight is negative or not finite, or two contributions are
/// of the same client and round.
pub fn federated_average(global: &mut [f32], contributions: &[Contribution<'_>]) {
    fold_changes(global, contributions, (Weighting::DataSize, Aging::Relative), 0, |_, parameters, changes| {
        for (parameter, change) in parameters.iter_mut().zip(changes) {
            *parameter = (f64::from(*parameter) + change) as f32;
        }
    });
}

/// Hands the mean change Δ to `fold`, block by block: the index of the block's first parameter, its parameters and
/// their changes. Without any weight, `fold` is not called.
fn fold_changes(
    global: &mut [f32],
    contributions: &[Contribution<'_>],
    (weighting, aging): (Weighting, Aging),
    population_examples: u64,
    mut fold: impl FnMut(usize, &mut [f32], &[f64]),
) {
    for contribution in contributions {
        let Contribution { client, staleness_weight, start, parameters, .. } = contribution;
        assert_eq!(start.len(), global.len(), "{client} was sent a model of another length");
        assert_eq!(parameters.len(), global.len(), "{client} sent a model of another length");
        assert!(staleness_weight.is_finite() && *staleness_weight >= 0.0, "{client} has no proper weight");
    }
    let mut ordered: Vec<&Contribution<'_>> = contributions.iter().collect();
    ordered.sort_unstable_by_key(|contribution| (contribution.client, contribution.round));
    assert!(
        ordered.windows(2).all(|pair| (pair[0].client, pair[0].round) != (pair[1].client, pair[1].round)),
        "a client contributes once for each dispatch"
    );
    let mut total: f64 = ordered.iter().map(|contribution| contribution.weight(weighting)).sum();
    if aging == Aging::Discounting && total > 0.0 {
        total = ordered.iter().map(|contribution| contribution.base_weight(weighting)).sum();
    }
    if total == 0.0 {
        return;
    }
    if weighting == Weighting::TotalSize {
        let most = ordered.iter().map(|contribution| contribution.examples as u64).max();
        assert!(most <= Some(population_examples), "a contributor is part of the population");
        total = population_examples as f64;
    }
    for (block, parameters) in global.chunks_mut(BLOCK_PARAMETERS).enumerate() {
        let first = block * BLOCK_PARAMETERS;
        let range = first..first + parameters.len();
        let mut sums = [0.0_f64; BLOCK_PARAMETERS];
        for contribution in &ordered {
            let weight = contribution.weight(weighting);
            let changes = contribution.parameters[range.clone()].iter().zip(&contribution.start[range.clone()]);
            for (sum, (&after, &before)) in sums.iter_mut().zip(changes) {
                *sum += weight * (f64::from(after) - f64::from(before));
            }
        }
        let changes = &mut sums[..parameters.len()];
        changes.iter_mut().for_each(|sum| *sum /= total);
        fold(first, parameters, changes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, StreamRng, Streams};

    fn contribution<'a>(client: u32, examples: usize, start: &'a [f32], parameters: &'a [f32]) -> Contribution<'a> {
        Contribution { client: ClientId(client), round: Round(1), examples, staleness_weight: 1.0, start, parameters }
    }

    fn model(rng: &mut StreamRng, length: usize) -> Vec<f32> {
        (0..length).map(|_| (rng.uniform() - 0.5) as f32).collect()
    }

    #[test]
    fn two_clients_by_hand() {
        // Weights 1/4 and 3/4.
        let (start, mut global) = ([1.0, 0.0], [1.0, 0.0]);
        federated_average(
            &mut global,
            &[contribution(0, 10, &start, &[3.0, 0.0]), contribution(1, 30, &start, &[1.0, 4.0])],
        );
        assert_eq!(global, [1.5, 3.0]);
    }

    #[test]
    fn a_stale_update_counts_as_a_change_of_its_own_start() {
        // Fresh: +1 with weight 10·1; stale: +4 with weight 10·0.5; mean change 2.
        let mut global = [5.0];
        let stale = Contribution { round: Round(0), staleness_weight: 0.5, ..contribution(1, 10, &[2.0], &[6.0]) };
        federated_average(&mut global, &[contribution(0, 10, &[5.0], &[6.0]), stale]);
        assert_eq!(global, [7.0]);
    }

    #[test]
    fn where_age_discounts_the_rest_stays_with_the_old_model() {
        // (10·1·1 + 10·0.5·4) / 20 = 1.5; alone, the stale update moves the model by half of its change.
        let (start, fresh, sent) = ([2.0], [3.0], [6.0]);
        let stale = Contribution { round: Round(0), staleness_weight: 0.5, ..contribution(1, 10, &start, &sent) };
        let config = AggregationConfig::default();
        for (contributions, expected) in [(vec![contribution(0, 10, &start, &fresh), stale], 6.5), (vec![stale], 7.0)] {
            let mut global = [5.0];
            ServerOptimizer::new(&config, 1).with_aging(Aging::Discounting).apply(&mut global, &contributions, 20);
            assert_eq!(global, [expected]);
        }
    }

    #[test]
    fn without_weight_the_model_is_unchanged() {
        let mut global = [0.1, -0.0];
        federated_average(&mut global, &[]);
        federated_average(&mut global, &[contribution(0, 0, &[0.0; 2], &[1.0; 2])]);
        assert_eq!(global.map(f32::to_bits), [0.1_f32, -0.0].map(f32::to_bits));
    }

    #[test]
    fn the_order_of_arrival_does_not_change_a_bit() {
        let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
        let length = 1_100;
        for _ in 0..20 {
            let global = model(&mut rng, length);
            let sent: Vec<Vec<f32>> = (0..30).map(|_| model(&mut rng, length)).collect();
            let mut contributions: Vec<Contribution<'_>> = (0..30_u32)
                .map(|index| Contribution {
                    client: ClientId(index / 2),
                    round: Round(index % 2),
                    examples: rng.below(100) as usize + 1,
                    staleness_weight: rng.uniform(),
                    start: &sent[29 - index as usize],
                    parameters: &sent[index as usize],
                })
                .collect();
            let mut expected = global.clone();
            federated_average(&mut expected, &contributions);
            rng.shuffle(&mut contributions);
            let mut other = global.clone();
            federated_average(&mut other, &contributions);
            assert!(expected.iter().zip(&other).all(|(one, two)| one.to_bits() == two.to_bits()));
        }
    }

    #[test]
    fn sums_are_taken_in_ascending_client_order() {
        // (10³⁰ − 10³⁰) + 3 is 3, while 10³⁰ + 3 forgets the 3.
        let sent = [[1e30], [-1e30], [3.0]];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let contributions = order.map(|k: usize| contribution(k as u32, 1, &[0.0], &sent[k]));
            let mut global = [0.0];
            federated_average(&mut global, &contributions);
            assert_eq!(global, [1.0], "{order:?}");
        }
    }

    #[test]
    fn fresh_updates_give_a_convex_combination() {
        let mut rng = Streams::new(2).stream(Purpose::Example, 0, 0);
        for _ in 0..50 {
            let global = model(&mut rng, 40);
            let sent: Vec<Vec<f32>> = (0..8).map(|_| model(&mut rng, 40)).collect();
            let sizes: Vec<usize> = (0..8).map(|_| 1 + rng.below(50) as usize).collect();
            let contributions: Vec<Contribution<'_>> =
                (0..8).map(|k| contribution(k as u32, sizes[k], &global, &sent[k])).collect();
            let mut average = global.clone();
            federated_average(&mut average, &contributions);
            let total = sizes.iter().sum::<usize>() as f64;
            for index in 0..40 {
                let column = || sent.iter().map(|parameters| parameters[index]);
                let expected: f64 = column().zip(&sizes).map(|(w, &n)| n as f64 / total * f64::from(w)).sum();
                assert!((f64::from(average[index]) - expected).abs() < 1e-7);
                assert!(column().fold(f32::INFINITY, f32::min) <= average[index]);
                assert!(column().fold(f32::NEG_INFINITY, f32::max) >= average[index]);
            }
        }
    }

    #[test]
    fn identical_updates_are_returned_as_they_are() {
        let mut rng = Streams::new(3).stream(Purpose::Example, 0, 0);
        for _ in 0..50 {
            let (global, sent) = (model(&mut rng, 40), model(&mut rng, 40));
            let contributions: Vec<Contribution<'_>> =
                (0..9).map(|k| contribution(k, 1 + rng.below(1_000) as usize, &global, &sent)).collect();
            let mut average = global.clone();
            federated_average(&mut average, &contributions);
            assert_eq!(average, sent);
        }
    }

    #[test]
    #[should_panic(expected = "once for each dispatch")]
    fn a_contribution_is_not_counted_twice() {
        federated_average(&mut [0.0], &[contribution(3, 1, &[0.0], &[1.0]), contribution(3, 1, &[0.0], &[1.0])]);
    }
}
