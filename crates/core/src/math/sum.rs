//! Sums in a fixed order, and running sums that do not drift.

use crate::state::Stateful;

/// A running sum of `f64` with Neumaier's compensation: adding and removing millions of terms leaves an error of about
/// one rounding of the final value instead of one per step.
///
/// Source: A. Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", ZAMM 54 (1974).
#[derive(Clone, Copy, Debug, Default, Stateful)]
pub struct CompensatedSum {
    sum: f64,
    compensation: f64,
}

impl CompensatedSum {
    /// Adds one finite term; subtract by adding the negated term.
    #[inline]
    pub fn add(&mut self, term: f64) {
        let total = self.sum + term;
        // What rounding lost, exactly, whichever of the two is larger (Knuth's two-sum).
        let added = total - self.sum;
        let lost = (self.sum - (total - added)) + (term - added);
        self.compensation += lost;
        self.sum = total;
    }

    /// The sum so far.
    #[inline]
    pub fn value(&self) -> f64 {
        self.sum + self.compensation
    }
}

impl FromIterator<f64> for CompensatedSum {
    fn from_iter<I: IntoIterator<Item = f64>>(terms: I) -> Self {
        let mut sum = Self::default();
        for term in terms {
            sum.add(term);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    #[test]
    fn a_term_lost_by_plain_addition_is_kept() {
        assert_eq!([1e100, 1.0, -1e100].into_iter().collect::<CompensatedSum>().value(), 1.0);
        assert_eq!([1e100, 1.0, -1e100].into_iter().sum::<f64>(), 0.0);
    }

    #[test]
    fn the_loss_is_that_of_the_comparison_by_size() {
        let mut rng = Streams::new(1).stream(Purpose::Policy, 0, 0);
        let (mut sum, mut expected) = (CompensatedSum::default(), (0.0_f64, 0.0_f64));
        for _ in 0..100_000 {
            let term = (rng.uniform() - 0.5) * f64::from(1 << rng.below(30) as u32);
            sum.add(term);
            let total = expected.0 + term;
            let large_first = expected.0.abs() >= term.abs();
            expected.1 += if large_first { (expected.0 - total) + term } else { (term - total) + expected.0 };
            expected.0 = total;
            assert_eq!((sum.sum, sum.compensation), expected);
        }
    }

    #[test]
    fn millions_of_additions_and_removals_do_not_drift() {
        let mut sum = CompensatedSum::default();
        for _ in 0..1_000_000 {
            sum.add(0.1);
            sum.add(0.7);
            sum.add(-0.1);
            sum.add(-0.7);
        }
        assert_eq!(sum.value(), 0.0);
    }
}
