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
    pub fn add(&mut self, term: f64) {
        let total = self.sum + term;
        let lost = if self.sum.abs() >= term.abs() { (self.sum - total) + term } else { (term - total) + self.sum };
        self.compensation += lost;
        self.sum = total;
    }

    /// The sum so far.
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

    #[test]
    fn a_term_lost_by_plain_addition_is_kept() {
        assert_eq!([1e100, 1.0, -1e100].into_iter().collect::<CompensatedSum>().value(), 1.0);
        assert_eq!([1e100, 1.0, -1e100].into_iter().sum::<f64>(), 0.0);
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
