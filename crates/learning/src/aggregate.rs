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
//! Of a table, a contribution has the rows that its client moved; its change of the others is 0. By `rows = "selected"`
//! the change of a row is divided by the weights of all contributions, as any other parameter's; by `"touched"`, by the
//! weights of those that moved it (under `total-size` too). A row that nobody moved stays as it is, and so does what the
//! server remembers of it. A segment of a cluster takes in the contributions of that cluster alone.
//!
//! # Source
//! H. B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS 2017,
//! Algorithm 1; staleness weights as in C. Xie, S. Koyejo, I. Gupta, "Asynchronous federated optimization", 2019.
//!
//! # Cost
//! One pass over the updates; memory for a list of their indices, and of the rows they have.
//!
//! # Determinism
//! For each parameter, `n_k s_k (w_k − v_k)` (`uniform`: `s_k (w_k − v_k)`) is added in `f64` in ascending (client,
//! number of its job), divided by the total weight once, added to `w` and rounded to `f32`: the order of the
//! contributions does not matter.

mod config;
pub mod server;

pub use config::{AggregationConfig, RowDivisor, Weighting};
pub use server::{ServerConfig, ServerOptimizer};

use crate::layout::{Layout, Scope};
use fedgenie_core::id::{ClientId, JobNumber};
use std::ops::Range;

/// One client's part in an aggregation, or an edge server's.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// Who trained. The cloud numbers its edge servers as if they were clients.
    pub client: ClientId,
    /// Which of its jobs.
    pub number: JobNumber,
    /// The cluster whose model it trained; 0 where there is one.
    pub cluster: u32,
    /// How many examples it trained on.
    pub examples: usize,
    /// Weight for its age: 1 for a fresh update, 0 to ignore it.
    pub staleness_weight: f64,
    /// The model it was sent.
    pub start: &'a [f32],
    /// What it sent back: the dense parts of its model, then the values of `rows`; finite.
    pub parameters: &'a [f32],
    /// The rows that it moved, ascending.
    pub rows: &'a [u32],
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

/// Moves a dense model by the mean of the changes, weighted by data size.
///
/// # Panics
/// If a length differs from the global model's, a staleness weight is negative or not finite, or two contributions are
/// of the same job.
pub fn federated_average(global: &mut [f32], contributions: &[Contribution<'_>]) {
    let layout = Layout::dense(global.len(), global.len());
    Fold {
        layout: &layout,
        cluster: 0,
        weighting: Weighting::DataSize,
        aging: Aging::Relative,
        rows: RowDivisor::Selected,
    }
    .changes(global, contributions, 0, |_, parameters, changes| {
        for (parameter, change) in parameters.iter_mut().zip(changes) {
            *parameter = (f64::from(*parameter) + change) as f32;
        }
    });
}

/// How changes are averaged.
struct Fold<'a> {
    layout: &'a Layout,
    /// The cluster whose model moves.
    cluster: u32,
    weighting: Weighting,
    aging: Aging,
    rows: RowDivisor,
}

/// Contributions in ascending order, and what their weights are divided by.
struct Weighed<'a> {
    ordered: Vec<&'a Contribution<'a>>,
    total: f64,
}

impl Fold<'_> {
    /// Hands the mean change Δ to `fold`, piece by piece: the index of the piece's first parameter, its parameters and
    /// their changes. `fold` is not called where there is no weight, and for rows that nobody moved.
    fn changes(
        &self,
        global: &mut [f32],
        contributions: &[Contribution<'_>],
        population_examples: u64,
        mut fold: impl FnMut(usize, &mut [f32], &[f64]),
    ) {
        self.check(global.len(), contributions);
        let mut ordered: Vec<&Contribution<'_>> = contributions.iter().collect();
        ordered.sort_unstable_by_key(|contribution| (contribution.client, contribution.number));
        assert!(
            ordered.windows(2).all(|pair| (pair[0].client, pair[0].number) != (pair[1].client, pair[1].number)),
            "a client contributes once for each job"
        );
        let mine = |scope| -> Vec<&Contribution<'_>> {
            let counts =
                |contribution: &&&Contribution<'_>| scope == Scope::Shared || contribution.cluster == self.cluster;
            ordered.iter().filter(counts).copied().collect()
        };
        let of_cluster = self.layout.has_clusters().then(|| self.weigh(mine(Scope::Cluster), population_examples));
        let shared = self.weigh(ordered.clone(), population_examples);
        let weighed = |scope| match scope {
            Scope::Shared => shared.as_ref(),
            Scope::Cluster => of_cluster.as_ref().and_then(Option::as_ref),
        };
        let mut sent = 0;
        for (range, scope) in self.layout.dense_parts() {
            let first_sent = sent;
            sent += range.len();
            if let Some(weighed) = weighed(scope) {
                self.dense(global, range, first_sent, weighed, &mut fold);
            }
        }
        if self.layout.rows() > 0 {
            for scope in [Scope::Shared, Scope::Cluster] {
                if let Some(weighed) = weighed(scope) {
                    self.touched_rows(global, scope, weighed, &mut fold);
                }
            }
        }
    }

    fn check(&self, len: usize, contributions: &[Contribution<'_>]) {
        assert_eq!(len, self.layout.len(), "the global model has its layout");
        for Contribution { client, staleness_weight, start, parameters, rows, .. } in contributions {
            assert_eq!(start.len(), len, "{client} was sent a model of another length");
            let of_rows: usize = rows.iter().map(|&row| self.layout.row(row).len()).sum();
            assert_eq!(parameters.len(), self.layout.dense_len() + of_rows, "{client} sent a model of another length");
            assert!(rows.is_sorted_by(|one, next| one < next), "{client} sent rows out of order");
            assert!(staleness_weight.is_finite() && *staleness_weight >= 0.0, "{client} has no proper weight");
        }
    }

    /// None without any weight.
    fn weigh<'a>(&self, ordered: Vec<&'a Contribution<'a>>, population_examples: u64) -> Option<Weighed<'a>> {
        let total = self.total(ordered.iter().copied());
        if total == 0.0 {
            return None;
        }
        if self.weighting != Weighting::TotalSize {
            return Some(Weighed { ordered, total });
        }
        let most = ordered.iter().map(|contribution| contribution.examples as u64).max();
        assert!(most <= Some(population_examples), "a contributor is part of the population");
        Some(Weighed { ordered, total: population_examples as f64 })
    }

    /// The sum of weights of these contributions, with age left out where it discounts.
    fn total<'a>(&self, contributions: impl Iterator<Item = &'a Contribution<'a>> + Clone) -> f64 {
        let total: f64 = contributions.clone().map(|contribution| contribution.weight(self.weighting)).sum();
        match self.aging {
            Aging::Discounting if total > 0.0 => {
                contributions.map(|contribution| contribution.base_weight(self.weighting)).sum()
            }
            _ => total,
        }
    }

    /// A dense part, whose values begin at `sent` in each contribution.
    fn dense(
        &self,
        global: &mut [f32],
        part: Range<usize>,
        sent: usize,
        Weighed { ordered, total }: &Weighed<'_>,
        fold: &mut impl FnMut(usize, &mut [f32], &[f64]),
    ) {
        for (block, parameters) in global[part.clone()].chunks_mut(BLOCK_PARAMETERS).enumerate() {
            let offset = block * BLOCK_PARAMETERS;
            let start = part.start + offset..part.start + offset + parameters.len();
            let after = sent + offset..sent + offset + parameters.len();
            let mut sums = [0.0_f64; BLOCK_PARAMETERS];
            for contribution in ordered {
                let weight = contribution.weight(self.weighting);
                add_changes(
                    &mut sums,
                    weight,
                    &contribution.parameters[after.clone()],
                    &contribution.start[start.clone()],
                );
            }
            let changes = &mut sums[..parameters.len()];
            changes.iter_mut().for_each(|sum| *sum /= total);
            fold(start.start, parameters, changes);
        }
    }

    /// The rows of the tables of a scope that any of these contributions moved.
    fn touched_rows(
        &self,
        global: &mut [f32],
        scope: Scope,
        Weighed { ordered, total }: &Weighed<'_>,
        fold: &mut impl FnMut(usize, &mut [f32], &[f64]),
    ) {
        // For each row, who sent it and where its values are: a counting sort, which keeps the order of contributions.
        let mut ends = vec![0_u32; self.layout.rows() + 1];
        for contribution in ordered {
            contribution.rows.iter().for_each(|&row| ends[row as usize + 1] += 1);
        }
        for row in 1..ends.len() {
            ends[row] += ends[row - 1];
        }
        let mut senders = vec![(0_u32, 0_u32); ends.last().map_or(0, |&end| end as usize)];
        for (index, contribution) in (0..).zip(ordered) {
            let mut place = self.layout.dense_len();
            for &row in contribution.rows {
                let next = &mut ends[row as usize];
                senders[*next as usize] = (index, place as u32);
                *next += 1;
                place += self.layout.row(row).len();
            }
        }
        let mut sums = Vec::new();
        let mut first = 0;
        for (row, &end) in (0..).zip(&ends[..self.layout.rows()]) {
            let of_row = &senders[first as usize..end as usize];
            first = end;
            if of_row.is_empty() || self.layout.scope_of_row(row) != scope {
                continue;
            }
            let range = self.layout.row(row);
            sums.clear();
            sums.resize(range.len(), 0.0);
            for &(index, place) in of_row {
                let contribution = ordered[index as usize];
                let after = &contribution.parameters[place as usize..][..range.len()];
                add_changes(&mut sums, contribution.weight(self.weighting), after, &contribution.start[range.clone()]);
            }
            let total = match self.rows {
                RowDivisor::Selected => *total,
                RowDivisor::Touched => self.total(of_row.iter().map(|&(index, _)| ordered[index as usize])),
            };
            if total > 0.0 {
                sums.iter_mut().for_each(|sum| *sum /= total);
                fold(range.start, &mut global[range], &sums);
            }
        }
    }
}

fn add_changes(sums: &mut [f64], weight: f64, after: &[f32], before: &[f32]) {
    for (sum, (&after, &before)) in sums.iter_mut().zip(after.iter().zip(before)) {
        *sum += weight * (f64::from(after) - f64::from(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, StreamRng, Streams};

    fn contribution<'a>(client: u32, examples: usize, start: &'a [f32], parameters: &'a [f32]) -> Contribution<'a> {
        Contribution {
            client: ClientId(client),
            number: JobNumber(1),
            cluster: 0,
            examples,
            staleness_weight: 1.0,
            start,
            parameters,
            rows: &[],
        }
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
        let stale = Contribution { number: JobNumber(0), staleness_weight: 0.5, ..contribution(1, 10, &[2.0], &[6.0]) };
        federated_average(&mut global, &[contribution(0, 10, &[5.0], &[6.0]), stale]);
        assert_eq!(global, [7.0]);
    }

    #[test]
    fn where_age_discounts_the_rest_stays_with_the_old_model() {
        // (10·1·1 + 10·0.5·4) / 20 = 1.5; alone, the stale update moves the model by half of its change.
        let (start, fresh, sent) = ([2.0], [3.0], [6.0]);
        let stale = Contribution { number: JobNumber(0), staleness_weight: 0.5, ..contribution(1, 10, &start, &sent) };
        let config = AggregationConfig::default();
        for (contributions, expected) in [(vec![contribution(0, 10, &start, &fresh), stale], 6.5), (vec![stale], 7.0)] {
            let mut global = [5.0];
            ServerOptimizer::new(&config, Layout::dense(1, 1)).with_aging(Aging::Discounting).apply(
                &mut global,
                &contributions,
                20,
                0,
            );
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
                    number: JobNumber(index % 2),
                    cluster: 0,
                    examples: rng.below(100) as usize + 1,
                    staleness_weight: rng.uniform(),
                    start: &sent[29 - index as usize],
                    parameters: &sent[index as usize],
                    rows: &[],
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

    /// Two dense numbers, one of a cluster, and a table of three rows of two.
    fn mixed() -> Layout {
        use crate::layout::Segment;
        Layout::new(vec![
            Segment::dense("a", 1, Scope::Shared),
            Segment::dense("b", 1, Scope::Cluster),
            Segment::table("c", 3, 2, Scope::Shared),
        ])
    }

    #[test]
    fn rows_are_divided_by_the_weights_of_all_or_of_their_senders() {
        // Client 0 with 10 examples moves row 2 by 4 and 8, client 1 with 30 examples rows 0 and 2 by 4 each.
        let start = [0.0; 8];
        let zero = [1.0, 0.0, 4.0, 8.0];
        let one = [1.0, 0.0, 4.0, 4.0, 4.0, 4.0];
        let contributions = [
            Contribution { rows: &[2], ..contribution(0, 10, &start, &zero) },
            Contribution { rows: &[0, 2], ..contribution(1, 30, &start, &one) },
        ];
        let after = |rows| {
            let config = AggregationConfig { rows, ..AggregationConfig::default() };
            let mut global = [0.0, 0.0, 5.0, 5.0, 7.0, 7.0, 0.0, 0.0];
            ServerOptimizer::new(&config, mixed()).apply(&mut global, &contributions, 40, 0);
            global
        };
        assert_eq!(after(RowDivisor::Selected), [1.0, 0.0, 8.0, 8.0, 7.0, 7.0, 4.0, 5.0]);
        assert_eq!(after(RowDivisor::Touched), [1.0, 0.0, 9.0, 9.0, 7.0, 7.0, 4.0, 5.0]);
    }

    #[test]
    fn a_segment_of_a_cluster_takes_in_its_own_contributions() {
        let start = [0.0; 8];
        let (zero, one) = ([2.0, 2.0], [4.0, 4.0]);
        let contributions =
            [contribution(0, 1, &start, &zero), Contribution { cluster: 1, ..contribution(1, 1, &start, &one) }];
        for (cluster, expected) in [(0, [3.0, 2.0]), (1, [3.0, 4.0]), (2, [3.0, 0.0])] {
            let mut global = start;
            let config = AggregationConfig::default();
            ServerOptimizer::new(&config, mixed()).apply(&mut global, &contributions, 2, cluster);
            assert_eq!(global[..2], expected);
        }
    }

    #[test]
    fn rows_are_as_good_as_whole_tables() {
        let mut rng = Streams::new(4).stream(Purpose::Example, 0, 0);
        for server in [ServerConfig::default(), ServerConfig::Momentum { lr: 0.5, momentum: 0.9 }] {
            let config = AggregationConfig { server, ..AggregationConfig::default() };
            let mut sparse = ServerOptimizer::new(&config, mixed());
            let mut dense = ServerOptimizer::new(&config, Layout::dense(8, 8));
            let (mut one, mut other) = ([0.0; 8], [0.0; 8]);
            for _ in 0..3 {
                let start = one;
                let sent: Vec<Vec<f32>> = (0..4).map(|_| model(&mut rng, 8)).collect();
                let rows = [0, 1, 2];
                let mut all: Vec<Contribution<'_>> =
                    (0..4).map(|k| contribution(k as u32, k + 1, &start, &sent[k])).collect();
                dense.apply(&mut other, &all, 10, 0);
                all.iter_mut().for_each(|contribution| contribution.rows = &rows);
                sparse.apply(&mut one, &all, 10, 0);
                assert_eq!(one, other);
            }
        }
    }

    #[test]
    #[should_panic(expected = "once for each job")]
    fn a_contribution_is_not_counted_twice() {
        federated_average(&mut [0.0], &[contribution(3, 1, &[0.0], &[1.0]), contribution(3, 1, &[0.0], &[1.0])]);
    }
}
