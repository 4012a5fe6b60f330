//! How evenly selections are spread over clients.

use fedgenie_core::state::Stateful;

/// Running sums over the clients' numbers of selections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Stateful)]
pub struct Participation {
    #[state(skip = "from the scenario")]
    clients: u64,
    unique: u64,
    selections: u64,
    squares: u128,
}

impl Participation {
    /// Before the first selection of so many clients.
    pub fn new(clients: usize) -> Self {
        Self { clients: clients as u64, ..Self::default() }
    }

    /// Counts one more selection of a client with `before` earlier ones.
    pub fn count(&mut self, before: u32) {
        self.unique += u64::from(before == 0);
        self.selections += 1;
        self.squares += u128::from(2 * u64::from(before) + 1);
    }

    /// Clients selected at least once.
    pub const fn unique(&self) -> u64 {
        self.unique
    }

    /// Selections so far.
    pub const fn total(&self) -> u64 {
        self.selections
    }

    /// Jain's index `(Σc)²/(K·Σc²)`: 1 if all counts are equal, 1/K if one client gets everything.
    pub fn jain(&self) -> f64 {
        let (sum, squares) = (self.selections as f64, self.squares as f64);
        if squares > 0.0 { sum * sum / (self.clients as f64 * squares) } else { 1.0 }
    }
}

/// The Gini index of selection counts: 0 if all are equal, `1 − 1/K` if one client gets everything.
///
/// With counts in ascending order, `G = Σ (2i − K − 1)·c_i / (K·Σc)`, `i` from 1; the sums are exact.
pub fn gini(counts: &[u32]) -> f64 {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let clients = sorted.len() as i128;
    let (mut sum, mut weighted) = (0_i128, 0_i128);
    for (rank, &count) in (1..).zip(&sorted) {
        sum += i128::from(count);
        weighted += (2 * rank - clients - 1) * i128::from(count);
    }
    if sum == 0 { 0.0 } else { weighted as f64 / (clients * sum) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of counts 1, 0, 3: Σ = 4, Σ² = 10, Jain 16/30; mean difference over all nine pairs (1+2+3)·2/9 = 4/3, Gini =
    /// (4/3)/(2·4/3).
    #[test]
    fn indices_by_hand() {
        let mut found = Participation::new(3);
        assert_eq!((found.jain(), gini(&[0, 0, 0])), (1.0, 0.0));
        [0, 0, 1, 2].into_iter().for_each(|before| found.count(before));
        assert_eq!((found.unique(), found.jain()), (2, 16.0 / 30.0));
        assert_eq!(gini(&[1, 0, 3]), 0.5);
        assert_eq!((gini(&[7; 5]), gini(&[0, 0, 0, 9]), gini(&[])), (0.0, 0.75, 0.0));
    }
}
