//! Intended and possible sizes of selections.

use fedgenie_core::state::Stateful;

/// Running sums over selections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub struct Offers {
    /// Selections.
    pub selections: u64,
    /// Their intended sizes, added up.
    pub cohorts: u64,
    /// The smallest intended size.
    pub least: u64,
    /// Clients available to each selection, at most its intended size; added up.
    pub possible: u64,
}

impl Offers {
    /// Adds a selection of intended size `cohort`, for which `possible` clients were available.
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
