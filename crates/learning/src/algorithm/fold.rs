//! Folding updates into the global model: weighted mean of the clients' changes, and the server's step along it.
//!
//! # Definition
//! `Δ = Σ_k p_k (w_k − v_k)`, where client `k` was sent the model `v_k` at dispatch and sent back `w_k`. With
//! data size `n_k` and staleness weight `s_k` (1 for a fresh update), sums over the contributions and `N` the number of
//! examples of all clients, whether they contribute or not:
//!
//! | weighting | `p_k` |
//! |---|---|
//! | `data-size` | `n_k s_k / Σ_j n_j s_j` |
//! | `uniform` | `s_k / Σ_j s_j`, over contributions with examples |
//! | `total-size` | `n_k s_k / N`; the remainder to 1 stays with the old model |
//!
//! An update may have a *weight of its own*, which a policy gave it: then `Δ = Σ_k weight_k s_k (w_k − v_k)`, whatever
//! the weighting, and is not divided by anything; by `normalise` it is divided by `Σ_j weight_j s_j`, or, of a row by
//! `"touched"`, by the sum over the contributions that moved it. Either all contributions have such a weight, or no
//! contribution has. Weights may be negative; where all are 0, or a sum to be divided by, nothing changes.
//!
//! Where staleness *discounts* (asynchronous aggregation), the `s_j` are left out of the sums: the weight that age
//! takes away stays with the old model.
//!
//! The server's `average` is `w ← w + Δ`. If all updates are fresh, `v_k = w`, and by `data-size` this is
//! `Σ_k p_k w_k`. Other servers take Δ for the negative gradient of an optimizer: [`super::ServerOptimizer`]. Without
//! any weight, the model and the server's memory are unchanged.
//!
//! Of a table, a contribution has the rows that its client moved; its change of the others is 0. By `rows = "selected"`
//! the change of a row is divided by the weights of all contributions, as any other parameter's; by `"touched"`, by the
//! weights of the contributions that moved it (under `total-size` too). A row that no client moved stays as it is, and
//! so does the server's memory of it. A segment of a cluster takes in the contributions of that cluster alone.
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

use super::{Combine, Gathered, OfNumbers, RowDivisor, Weighting};
use crate::lanes::{Kernel, Path, run};
use crate::layout::{Layout, Scope};
use fedgenie_core::id::{ClientId, JobNumber};
use std::ops::Range;

/// The source of this file, which opens with the definition of `[aggregation]`.
pub const DOCUMENTED: &str = include_str!("fold.rs");

/// One client's part in an aggregation, or an edge server's.
#[derive(Clone, Copy, Debug)]
pub struct Contribution<'a> {
    /// The client that trained. The cloud numbers its edge servers as if they were clients.
    pub client: ClientId,
    /// Which of its jobs.
    pub number: JobNumber,
    /// The cluster whose model it trained; 0 where there is one.
    pub cluster: u32,
    /// How many examples it trained on.
    pub examples: usize,
    /// The policy's coefficient for its change, in place of a weight; either all contributions have one, or all `None`.
    pub weight: Option<f64>,
    /// Weight for its age: 1 for a fresh update, 0 to ignore it.
    pub staleness_weight: f64,
    /// The model it was sent.
    pub start: &'a [f32],
    /// The parameters that it sent back: the dense parts of its model, then the values of `rows`; finite.
    pub parameters: &'a [f32],
    /// The rows that it moved, ascending.
    pub rows: &'a [u32],
    /// Mean loss on its examples of the model that it was sent, where the algorithm needs it.
    pub loss: Option<f64>,
    /// Steps of the job; `None` for a model that no job made, such as an edge server's.
    pub steps: Option<u64>,
    /// The learning rate of the job's round.
    pub rate: f64,
}

impl Contribution<'_> {
    /// The weight before its age is taken into account.
    fn base_weight(&self, weighting: Weighting) -> f64 {
        self.weight.unwrap_or_else(|| weighting.of(self.examples))
    }

    /// The weight with its age.
    fn weight(&self, weighting: Weighting) -> f64 {
        self.base_weight(weighting) * self.staleness_weight
    }
}

/// How age changes the weights of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aging {
    /// Weights are relative: an old update leaves more to the others.
    #[default]
    Relative,
    /// The weight that age takes away stays with the old model.
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
        combine: None,
        centre: &[],
        mixture: &[],
        normalise: false,
    }
    .changes(global, contributions, 0, |_, parameters, changes| {
        for (parameter, change) in parameters.iter_mut().zip(changes) {
            *parameter = (f64::from(*parameter) + change) as f32;
        }
    });
}

/// How changes are combined.
pub(super) struct Fold<'a> {
    pub layout: &'a Layout,
    /// The cluster whose model moves.
    pub cluster: u32,
    pub weighting: Weighting,
    pub aging: Aging,
    pub rows: RowDivisor,
    /// Whether a sum of changes with weights of their own is divided by the sum of these.
    pub normalise: bool,
    /// `None` for the weighted mean.
    pub combine: Option<&'a dyn Combine>,
    /// The last change of the model, where the combination remembers it.
    pub centre: &'a [f64],
    /// A number for each client, where the combination remembers one.
    pub mixture: &'a [f64],
}

/// A contribution, with the factor of each of its changes.
#[derive(Clone, Copy)]
struct Part<'a> {
    contribution: &'a Contribution<'a>,
    /// Of parameters that are trained.
    trained: f64,
    /// Of the others.
    others: f64,
}

impl<'a> Part<'a> {
    /// Its piece of the update, and of the model that it was sent: `places` in the update, and in the model.
    fn changed(&self, places: &(Range<usize>, Range<usize>)) -> (&'a [f32], &'a [f32]) {
        let Contribution { parameters, start, .. } = *self.contribution;
        (&parameters[places.0.clone()], &start[places.1.clone()])
    }
}

/// Contributions in ascending order, the divisor of the sum of their changes, and the multiple of the centre in Δ.
struct Weighed<'a> {
    ordered: Vec<Part<'a>>,
    total: f64,
    of_centre: f64,
    /// How changes are combined, if not as their weighted sum.
    rule: Option<&'a dyn OfNumbers>,
}

impl<'f> Fold<'f> {
    /// Hands the mean change Δ to `fold`, piece by piece: the index of the piece's first parameter, its parameters and
    /// their changes. `fold` is not called where there is no weight, and for rows that no client moved.
    pub fn changes(
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
        let weighed = contributions.iter().filter(|contribution| contribution.weight.is_some()).count();
        assert!(weighed == 0 || weighed == contributions.len(), "all have a weight of their own, or none");
        for Contribution { client, staleness_weight, start, parameters, rows, weight, .. } in contributions {
            assert!(weight.is_none_or(f64::is_finite), "{client} has no proper weight of its own");
            assert_eq!(start.len(), len, "{client} was sent a model of another length");
            let of_rows: usize = rows.iter().map(|&row| self.layout.row(row).len()).sum();
            assert_eq!(parameters.len(), self.layout.dense_len() + of_rows, "{client} sent a model of another length");
            assert!(rows.is_sorted_by(|one, next| one < next), "{client} sent rows out of order");
            assert!(staleness_weight.is_finite() && *staleness_weight >= 0.0, "{client} has no proper weight");
        }
    }

    /// `None` without any weight.
    fn weigh<'a>(&self, ordered: Vec<&'a Contribution<'a>>, population_examples: u64) -> Option<Weighed<'a>>
    where
        'f: 'a,
    {
        let mut total = self.total(ordered.iter().copied());
        let weights: Vec<f64> = ordered.iter().map(|contribution| contribution.weight(self.weighting)).collect();
        if weights.iter().all(|weight| *weight == 0.0) || total == 0.0 {
            return None;
        }
        if self.weighting == Weighting::TotalSize && !has_coefficients(&ordered) {
            let most = ordered.iter().map(|contribution| contribution.examples as u64).max();
            assert!(most <= Some(population_examples), "a contributor is part of the population");
            total = population_examples as f64;
        }
        let has_jobs = ordered.iter().all(|contribution| contribution.steps.is_some());
        let combine = self.combine.filter(|combine| has_jobs || combine.of_models());
        let Self { layout, centre, mixture, .. } = *self;
        let gathered = Gathered { layout, contributions: &ordered, weights: &weights, total, centre, mixture };
        let factors = combine.and_then(|combine| combine.factors(&gathered));
        let of_centre = factors.as_ref().map_or(0.0, |factors| factors.of_centre);
        let part = |(index, (contribution, weight)): (usize, (&'a Contribution<'a>, f64))| {
            let trained = factors.as_ref().map_or(1.0, |factors| factors.of[index]);
            let others = factors.as_ref().filter(|factors| factors.everywhere).map_or(1.0, |_| trained);
            Part { contribution, trained: weight * trained, others: weight * others }
        };
        let mut ordered: Vec<Part<'a>> =
            ordered.iter().copied().zip(weights.iter().copied()).enumerate().map(part).collect();
        let rule = combine.and_then(Combine::of_numbers);
        if rule.is_some() {
            ordered.retain(|part| part.others != 0.0);
        }
        (rule.is_none() || !ordered.is_empty()).then_some(Weighed { ordered, total, of_centre, rule })
    }

    /// The sum of weights of these contributions, with age left out where it discounts; 1 of coefficients that are not
    /// normalised.
    fn total<'a>(&self, contributions: impl Iterator<Item = &'a Contribution<'a>> + Clone) -> f64 {
        if !self.normalise && contributions.clone().any(|contribution| contribution.weight.is_some()) {
            return 1.0;
        }
        let total: f64 = contributions.clone().map(|contribution| contribution.weight(self.weighting)).sum();
        match self.aging {
            Aging::Discounting if total != 0.0 => {
                contributions.map(|contribution| contribution.base_weight(self.weighting)).sum()
            }
            _ => total,
        }
    }

    /// A dense part; its values begin at `sent` in each contribution.
    fn dense(
        &self,
        global: &mut [f32],
        part: Range<usize>,
        sent: usize,
        Weighed { ordered, total, of_centre, rule }: &Weighed<'_>,
        fold: &mut impl FnMut(usize, &mut [f32], &[f64]),
    ) {
        let mut column = Vec::new();
        for (block, parameters) in global[part.clone()].chunks_mut(BLOCK_PARAMETERS).enumerate() {
            let offset = block * BLOCK_PARAMETERS;
            let start = part.start + offset..part.start + offset + parameters.len();
            let after = sent + offset..sent + offset + parameters.len();
            let sent = (after, start.clone());
            let mut sums = [0.0_f64; BLOCK_PARAMETERS];
            let changes = &mut sums[..parameters.len()];
            if let Some(rule) = rule {
                for (index, change) in changes.iter_mut().enumerate() {
                    column.clear();
                    column.extend(ordered.iter().map(|part| {
                        let (after, before) = part.changed(&sent);
                        f64::from(after[index]) - f64::from(before[index])
                    }));
                    *change = rule.combine(&mut column);
                }
            } else {
                let trained = self.layout.trained().saturating_sub(start.start).min(parameters.len());
                for part in ordered {
                    let (after, before) = part.changed(&sent);
                    let (of_trained, of_others) = changes.split_at_mut(trained);
                    add_changes(of_trained, part.trained, &after[..trained], &before[..trained]);
                    add_changes(of_others, part.others, &after[trained..], &before[trained..]);
                }
                changes.iter_mut().for_each(|sum| *sum /= total);
                if *of_centre != 0.0 {
                    let centre = &self.centre[start.clone()];
                    changes.iter_mut().zip(centre).for_each(|(change, centre)| *change += of_centre * centre);
                }
            }
            fold(start.start, parameters, changes);
        }
    }

    /// The rows of the tables of a scope that any of these contributions moved.
    fn touched_rows(
        &self,
        global: &mut [f32],
        scope: Scope,
        Weighed { ordered, total, rule, .. }: &Weighed<'_>,
        fold: &mut impl FnMut(usize, &mut [f32], &[f64]),
    ) {
        // For each row, its senders and places of its values: a counting sort, which keeps the order of contributions.
        let mut ends = vec![0_u32; self.layout.rows() + 1];
        for Part { contribution, .. } in ordered {
            contribution.rows.iter().for_each(|&row| ends[row as usize + 1] += 1);
        }
        for row in 1..ends.len() {
            ends[row] += ends[row - 1];
        }
        let mut senders = vec![(0_u32, 0_u32); ends.last().map_or(0, |&end| end as usize)];
        for (index, Part { contribution, .. }) in (0..).zip(ordered) {
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
            let sent = of_row.iter().map(|&(index, place)| {
                let part = &ordered[index as usize];
                let after = &part.contribution.parameters[place as usize..][..range.len()];
                (part, after, &part.contribution.start[range.clone()])
            });
            if let Some(rule) = rule {
                let count = if self.rows == RowDivisor::Selected { ordered.len() } else { of_row.len() };
                combine_row(*rule, count, &mut sums, sent.map(|(_, after, before)| (after, before)));
                fold(range.start, &mut global[range], &sums);
                continue;
            }
            sent.for_each(|(part, after, before)| add_changes(&mut sums, part.trained, after, before));
            let total = match self.rows {
                RowDivisor::Selected => *total,
                RowDivisor::Touched => {
                    self.total(of_row.iter().map(|&(index, _)| ordered[index as usize].contribution))
                }
            };
            if total != 0.0 {
                sums.iter_mut().for_each(|sum| *sum /= total);
                fold(range.start, &mut global[range], &sums);
            }
        }
    }
}

/// Whether a policy gave coefficients.
fn has_coefficients(contributions: &[&Contribution<'_>]) -> bool {
    contributions.iter().any(|contribution| contribution.weight.is_some())
}

/// The changes of a row of which some of `count` updates have values after and before; those of the others are 0.
fn combine_row<'a>(
    rule: &dyn OfNumbers,
    count: usize,
    changes: &mut [f64],
    sent: impl Iterator<Item = (&'a [f32], &'a [f32])> + Clone,
) {
    let mut column = Vec::with_capacity(count);
    for (index, change) in changes.iter_mut().enumerate() {
        column.clear();
        column.extend(sent.clone().map(|(after, before)| f64::from(after[index]) - f64::from(before[index])));
        column.resize(count, 0.0);
        *change = rule.combine(&mut column);
    }
}

fn add_changes(sums: &mut [f64], weight: f64, after: &[f32], before: &[f32]) {
    run(Path::detect(), AddChanges { sums, weight, after, before });
}

/// Adds a contribution's changes, times its weight, to the sums. Each product and each sum is rounded by itself.
struct AddChanges<'a> {
    sums: &'a mut [f64],
    weight: f64,
    after: &'a [f32],
    before: &'a [f32],
}

impl Kernel for AddChanges<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { sums, weight, after, before } = self;
        for (sum, (&after, &before)) in sums.iter_mut().zip(after.iter().zip(before)) {
            *sum += weight * (f64::from(after) - f64::from(before));
        }
    }
}

#[cfg(test)]
mod tests;
