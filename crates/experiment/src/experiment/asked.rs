//! Cohorts of selections: intended, possible and actual sizes.

use fedgenie_simulator::metrics::Offers;
use fedgenie_simulator::run::Accounts;
use serde::{Deserialize, Serialize};

/// Means over the selections of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Selections.
    pub selections: u64,
    /// Clients that a selection should have: its cohort, lowered to the number that a budget pays for.
    pub cohort: f64,
    /// Candidates that could be selected, at most the cohort.
    pub possible: f64,
    /// Selected clients.
    pub asked: f64,
    /// Clients whose update arrived in its round.
    pub arrived: f64,
}

/// Below this share of the cohort, tables show how many clients could be selected.
const MOST: f64 = 0.9;

/// Below this share of all clients, tables show how many clients were ever selected.
const HALF: f64 = 0.5;

impl Asked {
    /// The means of a run with these selection counts; `None` before its first selection.
    pub(super) fn of(offers: &Offers, accounts: &Accounts, counts: &[u32]) -> Option<Self> {
        let Offers { selections, cohorts, possible, .. } = *offers;
        let mean = |sum: u64| sum as f64 / selections as f64;
        let asked = counts.iter().map(|&count| u64::from(count)).sum();
        (selections > 0).then(|| Self {
            selections,
            cohort: mean(cohorts),
            possible: mean(possible),
            asked: mean(asked),
            arrived: mean(accounts.arrived),
        })
    }

    /// The numbers that policies are compared by. `unique` of the `clients` were selected at least once.
    pub(super) fn numbers(&self, unique: usize, clients: usize) -> [(&'static str, f64); 4] {
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        [
            ("asked_mean", self.asked),
            ("arrived_mean", self.arrived),
            ("possible_share", share(self.possible, self.cohort)),
            ("unique_share", share(unique as f64, clients as f64)),
        ]
    }

    /// Whether means of `possible_share` and `unique_share` are so small that tables show these columns.
    pub fn is_told(possible_share: f64, unique_share: f64) -> bool {
        is_scarce(possible_share) || unique_share < HALF
    }
}

/// Whether so few of the cohort could be selected that it is a warning.
pub(super) fn is_scarce(possible_share: f64) -> bool {
    possible_share < MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_have_means_and_shares() {
        let mut offers = Offers::default();
        [(4, 4), (4, 1)].into_iter().for_each(|offer| offers.add(offer));
        let accounts = Accounts { arrived: 1, ..Accounts::default() };
        let asked = Asked::of(&offers, &accounts, &[3, 1, 0]).unwrap();
        assert_eq!(asked, Asked { selections: 2, cohort: 4.0, possible: 2.5, asked: 2.0, arrived: 0.5 });
        assert_eq!(asked.numbers(2, 3).map(|(_, value)| value), [2.0, 0.5, 0.625, 2.0 / 3.0]);
        assert_eq!(Asked::of(&Offers::default(), &accounts, &[0]), None);
        assert!(!Asked::is_told(0.9, 0.5) && Asked::is_told(0.89, 1.0) && Asked::is_told(1.0, 0.49));
    }
}
