//! How many clients selections were to have, and how many could have been asked.

use fedgenie_core::state::Stateful;

/// Running sums over selections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub struct Offers {
    /// Selections.
    pub selections: u64,
    /// Clients that they were to have, added up.
    pub cohorts: u64,
    /// The fewest that one of them was to have.
    pub least: u64,
    /// Clients who could have been asked, of as many as a selection was to have; added up.
    pub possible: u64,
}

impl Offers {
    /// A selection that was to have `cohort` clients, of whom `possible` could be asked.
    pub fn add(&mut self, (cohort, possible): (usize, usize)) {
        let (cohort, possible) = (cohort as u64, possible as u64);
        self.least = if self.selections == 0 { cohort } else { self.least.min(cohort) };
        self.selections += 1;
        self.cohorts += cohort;
        self.possible += possible;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_are_added_up() {
        let mut offers = Offers::default();
        [(4, 4), (4, 1), (3, 3)].into_iter().for_each(|offer| offers.add(offer));
        assert_eq!(offers, Offers { selections: 3, cohorts: 11, least: 3, possible: 8 });
    }
}
