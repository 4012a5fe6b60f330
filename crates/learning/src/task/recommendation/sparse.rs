//! Measures of the model alone: how old items' rows are, how many were ever moved, how users who trained fare, and how
//! well the proxy ranks clients.
//!
//! # Definition
//! | measure | what |
//! |---|---|
//! | `item_staleness` | mean over items of `τ/T`: `τ` rounds since an aggregated update last moved the item's row, counted from round 0, `T` the staleness window |
//! | `items_updated` | share of the items whose rows were ever moved |
//! | `longtail_updated` | the same of the four of five items with fewest training ratings |
//! | `test_participant_M` | measure `M` of [`ranking`](crate::ranking) on test data, over users whose home has trained; NaN before anybody has |
//! | `proxy_rank_correlation` | Spearman's correlation, with mean ranks, over all clients with examples, of the losses that the proxy predicts and the true ones, summed over the triplets of the first epoch of the next round's job; NaN where one of them does not vary |
//!
//! The first three are not there where the whole table travels up: then nobody knows which rows were moved.

use super::{Recommendation, Sent, Settings};
use crate::ranking::{Means, Ranker};
use crate::task::{Ask, JobKey, ModelState, On};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::metric::{Better, Measure};

impl Settings {
    /// What is measured of the model alone, in the order of its values.
    pub(super) fn of_model(&self, has_proxy: bool) -> Vec<Measure> {
        let mut measures = Vec::new();
        if self.transfer[1] == Sent::Rows {
            measures.push(Measure::loss("item_staleness"));
            measures.extend(["items_updated", "longtail_updated"].map(Measure::share));
        }
        let participants = Ranker::names(&self.cutoffs).into_iter();
        measures.extend(participants.map(|name| Measure::share(&format!("test_participant_{name}"))));
        if has_proxy {
            let correlation = Measure::share("proxy_rank_correlation");
            measures.push(Measure { range: (-1.0, 1.0), better: Better::Higher, ..correlation });
        }
        measures
    }
}

impl Recommendation {
    /// The measures of the model alone; `participants` if they are known.
    pub(super) fn measure_model(
        &self,
        state: &ModelState<'_>,
        parallel: bool,
        participants: Option<Means>,
        values: &mut [f64],
    ) {
        let mut found = Vec::with_capacity(values.len());
        if self.settings.transfer[1] == Sent::Rows {
            let items = state.moved.len() as f64;
            let ages: u64 = state.moved.iter().map(|&moved| u64::from(state.round.since(moved))).sum();
            found.push(ages as f64 / items / f64::from(self.settings.staleness_window));
            let is_moved = |item: &&u32| state.moved[**item as usize] > Round(0);
            found.push(state.moved.iter().filter(|&&moved| moved > Round(0)).count() as f64 / items);
            found.push(self.long_tail.iter().filter(is_moved).count() as f64 / self.long_tail.len() as f64);
        }
        let participants = participants.unwrap_or_else(|| {
            let mut values = vec![f64::NAN; Ranker::count(self.settings.cutoffs.len())];
            let mut ask = Ask::new(On::Test, state, &mut values);
            self.ranked(self.source.everybody(), [&self.source.test], parallel, [&mut ask])
        });
        found.extend(participants.values);
        if self.model.has_proxy() {
            found.push(self.rank_correlation(state, parallel));
        }
        values.copy_from_slice(&found);
    }

    fn rank_correlation(&self, state: &ModelState<'_>, parallel: bool) -> f64 {
        let clients = (0..self.source.holdings.clients()).map(ClientId::from_index);
        let clients = clients.filter(|&client| self.source.holdings.examples(client) > 0);
        let keys: Vec<JobKey> = clients.map(|client| Self::next_job(client, state)).collect();
        let sums = self.sums(state, &keys, parallel);
        let [true_losses, predicted] = [0, 1].map(|which| ranks(sums.iter().map(|sums| sums[which]).collect()));
        correlation(&true_losses, &predicted)
    }
}

/// The rank of each number, from 1; equal ones have the mean of their ranks.
fn ranks(numbers: Vec<f64>) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&one, &other| numbers[one].total_cmp(&numbers[other]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut begin = 0;
    for equal in order.chunk_by(|&one, &other| numbers[one] == numbers[other]) {
        let mean = begin as f64 + (equal.len() + 1) as f64 / 2.0;
        equal.iter().for_each(|&index| ranks[index] = mean);
        begin += equal.len();
    }
    ranks
}

/// Pearson's correlation; NaN where one of both does not vary, or is not a number.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let mean = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    let (of_one, of_other) = (mean(one), mean(other));
    let (mut products, mut squares) = (0.0, [0.0; 2]);
    for (one, other) in one.iter().zip(other) {
        let (one, other) = (one - of_one, other - of_other);
        products += one * other;
        squares[0] += one * one;
        squares[1] += other * other;
    }
    let deviation = sqrt(squares[0]) * sqrt(squares[1]);
    if deviation > 0.0 { (products / deviation).clamp(-1.0, 1.0) } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spearmans_correlation_by_hand() {
        // Ranks 1, 2.5, 2.5, 4 and 4, 2, 3, 1.
        let (one, other) = (ranks(vec![0.1, 0.5, 0.5, 7.0]), ranks(vec![9.0, 2.0, 3.0, 1.0]));
        assert_eq!((&*one, &*other), (&[1.0, 2.5, 2.5, 4.0][..], &[4.0, 2.0, 3.0, 1.0][..]));
        // Deviations −1.5, 0, 0, 1.5 and 1.5, −0.5, 0.5, −1.5.
        let expected = -4.5 / (4.5_f64.sqrt() * 5.0_f64.sqrt());
        assert!((correlation(&one, &other) - expected).abs() < 1e-15);
        assert!(correlation(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert_eq!(correlation(&one, &one), 1.0);
    }
}
