//! Bulyan: Krum chooses changes one after another, and of each number the middle ones are averaged.
//!
//! # Definition
//! With `n` updates of a round, `f` of them at most hostile: from the updates that are left, `r` of them, the one whose
//! change has the least sum of squared distances to its `max(1, r − f − 2)` nearest others among these is taken, until
//! `n − 2f` are chosen; of equal sums, the smaller client. Then, per number, Δ is the mean of the `n − 4f` chosen
//! changes that are nearest to the median of the chosen; of equally near ones, the smaller. The median of an even
//! number of changes is the mean of the middle two. Updates of clients without examples do not take part.
//!
//! # Inputs
//! `byzantine`: `f`. A round needs `4f + 3` updates: with fewer it is abandoned, as below a quorum, and a protocol that
//! waits for fewer is refused. Otherwise as `krum`.
//!
//! # Source
//! E. M. El Mhamdi, R. Guerraoui, S. Rouault, "The hidden vulnerability of distributed learning in Byzantium", ICML
//! 2018, Section 4.
//!
//! # Deviations from the source
//! As `krum`.
//!
//! # Cost
//! The distances of `krum`, a pass over them for each chosen update, and a sort of the chosen changes for each number.
//!
//! # Determinism
//! As `krum`; the middle changes are added up in `f64` in ascending order.
//!
//! # Example
//! ```toml
//! [aggregation]
//! weighting = "uniform"
//! [algorithm.bulyan]
//! byzantine = 1
//! ```

use super::trimmed_mean::ascending;
use super::{AlgorithmSettings, Combine, Factors, Gathered, OfNumbers, Scene, Weighting};
use fedgenie_core::config::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// `[algorithm.bulyan]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Most updates of a round that are hostile.
    pub byzantine: usize,
}

impl AlgorithmSettings for Config {
    fn check(&self, scene: &Scene<'_>) -> Result<(), Complaint> {
        scene.needs_whole_updates()?;
        scene.needs_alike()
    }

    fn combine(&self, _scene: &Scene<'_>) -> Option<Arc<dyn Combine>> {
        Some(Arc::new(Bulyan { byzantine: self.byzantine }))
    }

    fn weighting(&self) -> Option<Weighting> {
        Some(Weighting::Uniform)
    }
}

/// The middle of the chosen.
#[derive(Debug)]
struct Bulyan {
    byzantine: usize,
}

impl Combine for Bulyan {
    fn least_updates(&self) -> usize {
        self.byzantine.saturating_mul(4).saturating_add(3)
    }

    fn takes_weights(&self) -> bool {
        false
    }

    fn of_models(&self) -> bool {
        false
    }

    /// Others have a factor of 0, and are not among the numbers that are combined.
    fn factors(&self, gathered: &Gathered<'_>) -> Option<Factors> {
        let among = gathered.weighed();
        let chosen = match among.len() >= self.least_updates() {
            true => choose(&gathered.squared_distances(&among), among.len(), self.byzantine),
            false => Vec::new(),
        };
        let chosen: Vec<usize> = chosen.into_iter().map(|place| among[place]).collect();
        Some(gathered.mean_of(&chosen))
    }

    fn of_numbers(&self) -> Option<&dyn OfNumbers> {
        Some(self)
    }
}

/// The places of `n − 2f` of `n` updates, from the squares of their distances.
fn choose(squares: &[f64], count: usize, byzantine: usize) -> Vec<usize> {
    // The others of each, by distance.
    let mut near: Vec<Vec<(f64, usize)>> = (0..count)
        .map(|own| {
            let others = (0..count).filter(|&other| other != own);
            let mut near: Vec<(f64, usize)> = others.map(|other| (squares[own * count + other], other)).collect();
            near.sort_by(|one, other| one.0.total_cmp(&other.0));
            near
        })
        .collect();
    let mut left: Vec<usize> = (0..count).collect();
    let mut chosen = Vec::with_capacity(count - 2 * byzantine);
    while chosen.len() < count - 2 * byzantine {
        let nearest = left.len().saturating_sub(byzantine + 2).max(1);
        let score = |own: usize| near[own].iter().take(nearest).map(|(square, _)| square).sum::<f64>();
        // Of equal scores the first, which is the smaller client's.
        let (place, _) =
            left.iter().map(|&own| score(own)).enumerate().fold((0, f64::INFINITY), |best, (place, score)| {
                if place == 0 || score < best.1 { (place, score) } else { best }
            });
        let taken = left.remove(place);
        chosen.push(taken);
        left.iter().for_each(|&own| near[own].retain(|(_, other)| *other != taken));
    }
    chosen
}

impl OfNumbers for Bulyan {
    fn combine(&self, changes: &mut [f64]) -> f64 {
        changes.sort_unstable_by(ascending);
        let (count, middle) = (changes.len(), changes.len() / 2);
        let median = match count % 2 {
            1 => changes[middle],
            _ => f64::midpoint(changes[middle - 1], changes[middle]),
        };
        // The nearest ones are neighbours in their order: the window moves up while what it takes in is nearer than
        // what it leaves.
        let width = count - 2 * self.byzantine;
        let mut first = 0;
        while first + width < count && changes[first + width] - median < median - changes[first] {
            first += 1;
        }
        changes[first..first + width].iter().sum::<f64>() / width as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined(byzantine: usize, changes: &[f64]) -> f64 {
        Bulyan { byzantine }.combine(&mut changes.to_vec())
    }

    #[test]
    fn the_nearest_to_the_median_are_averaged() {
        // Five chosen of n = 7, f = 1: the median is 3, and 2, 3 and 3.5 are nearest.
        assert_eq!(combined(1, &[3.0, -100.0, 3.5, 2.0, 50.0]), 8.5 / 3.0);
        // 2 and 4 are equally near to 3: the smaller is taken, with 3 and 3.5.
        assert_eq!(combined(1, &[3.0, 2.0, 4.0, 3.5, -100.0]), 8.5 / 3.0);
        assert_eq!(combined(0, &[1.0, 2.0, 6.0]), 3.0);
        // The median of six is 3.5; four of them: 3, 4, then 2 before 5, which are equally near, and 5.
        assert_eq!(combined(1, &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0]), 3.5);
    }

    /// On a line at 0, 1, 2, 3, 4, 5 and 100, with f = 1: seven, then six, then five and so on are left.
    #[test]
    fn updates_are_chosen_one_after_another() {
        let places = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0_f64];
        let squares: Vec<f64> = places.iter().flat_map(|a| places.map(|b| (a - b) * (a - b))).collect();
        let mut left: Vec<usize> = (0..7).collect();
        let mut expected = Vec::new();
        while expected.len() < 5 {
            let nearest = left.len().saturating_sub(3).max(1);
            let score = |own: usize| {
                let mut others: Vec<f64> =
                    left.iter().filter(|&&other| other != own).map(|&other| squares[own * 7 + other]).collect();
                others.sort_by(f64::total_cmp);
                others.iter().take(nearest).sum::<f64>()
            };
            let best = *left.iter().min_by(|&&a, &&b| score(a).total_cmp(&score(b))).unwrap();
            expected.push(best);
            left.retain(|&own| own != best);
        }
        assert_eq!(choose(&squares, 7, 1), expected);
        // 2 and 3 both have 1 + 1 + 4 + 4: the smaller. Then, of six, the three nearest: 3 has 1 + 4 + 4, and 4 has
        // 1 + 1 + 9.
        assert_eq!(expected[..2], [2, 3]);
        assert!(!expected.contains(&6));
    }
}
