//! Clusters of points by k-means.
//!
//! # Definition
//! The first centre is one of the points, each as likely as any other; each next one is a point with a probability in
//! proportion to its squared distance to the nearest centre so far (k-means++), as long as there are points that are no
//! centre. Then, in turn, every point joins the nearest centre, and every centre moves to the mean of its points, until
//! no point changes or 100 times (Lloyd). A centre that has lost its points stays where it is.
//!
//! # Source
//! D. Arthur, S. Vassilvitskii, "k-means++: The Advantages of Careful Seeding", SODA 2007.
//!
//! # Determinism
//! One uniform for each centre. Distances are squared, and summed in the order of coordinates; of centres whose squared
//! distances are within 1e-12 of the smallest, the first is the nearest.

use fedgenie_core::rng::StreamRng;

/// The most times that points join centres.
const MOST: usize = 100;
/// Distances that count as equal.
const TIE: f64 = 1e-12;

fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

/// The first centres: places of points, at most `count`.
fn seeds(points: &[f64], width: usize, count: usize, rng: &mut StreamRng) -> Vec<usize> {
    let rows: Vec<&[f64]> = points.chunks_exact(width).collect();
    let mut nearest = vec![f64::INFINITY; rows.len()];
    let mut seeds = vec![rng.below(rows.len() as u64) as usize];
    while seeds.len() < count {
        let last = rows[seeds[seeds.len() - 1]];
        nearest.iter_mut().zip(&rows).for_each(|(least, row)| *least = least.min(distance(row, last)));
        let all: f64 = nearest.iter().sum();
        if !(all > 0.0 && all.is_finite()) {
            break;
        }
        let mut left = rng.uniform() * all;
        let far = |index: &usize| nearest[*index] > 0.0;
        let passed = (0..rows.len()).filter(far).find(|&index| {
            left -= nearest[index];
            left < 0.0
        });
        // Rounding may leave a little after the last.
        let chosen = passed.or_else(|| (0..rows.len()).rev().find(far));
        seeds.extend(chosen);
    }
    seeds
}

/// The cluster of each point, from 0; `points` has `width` coordinates of each. At most `count` clusters; fewer if
/// points coincide.
pub(super) fn k_means(points: &[f64], width: usize, count: usize, rng: &mut StreamRng) -> Vec<u32> {
    if points.is_empty() {
        return Vec::new();
    }
    let rows: Vec<&[f64]> = points.chunks_exact(width).collect();
    let mut centres: Vec<Vec<f64>> =
        seeds(points, width, count, rng).into_iter().map(|index| rows[index].to_vec()).collect();
    let mut joined = vec![u32::MAX; rows.len()];
    for _ in 0..MOST {
        let mut has_changed = false;
        for (row, joined) in rows.iter().zip(&mut joined) {
            let mut best = (f64::INFINITY, 0);
            for (index, centre) in (0..).zip(&centres) {
                let found = distance(row, centre);
                if found < best.0 - TIE || best.0 == f64::INFINITY {
                    best = (found, index);
                }
            }
            has_changed |= *joined != best.1;
            *joined = best.1;
        }
        if !has_changed {
            break;
        }
        for (index, centre) in (0..).zip(&mut centres) {
            let members = || rows.iter().zip(&joined).filter(|(_, joined)| **joined == index).map(|(row, _)| row);
            let size = members().count();
            if size > 0 {
                centre.fill(0.0);
                members().for_each(|row| centre.iter_mut().zip(*row).for_each(|(sum, number)| *sum += number));
                centre.iter_mut().for_each(|sum| *sum /= size as f64);
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::rng::{Purpose, Streams};

    fn rng(index: u32) -> StreamRng {
        Streams::new(3).stream(Purpose::Policy, 0, index)
    }

    /// 0, 1 and 3 on a line. After 0, 1 and 3 follow as 1 : 9; after 1, 0 and 3 as 1 : 4; after 3, 0 and 1 as 9 : 4.
    #[test]
    fn centres_are_drawn_by_squared_distance() {
        const DRAWS: u32 = 39_000;
        let mut counts = [[0_u32; 3]; 3];
        for index in 0..DRAWS {
            let found = seeds(&[0.0, 1.0, 3.0], 1, 2, &mut rng(index));
            counts[found[0]][found[1]] += 1;
        }
        let third = f64::from(DRAWS) / 3.0;
        let expected = [[0.0, 0.1, 0.9], [0.2, 0.0, 0.8], [9.0 / 13.0, 4.0 / 13.0, 0.0]];
        for (counts, expected) in counts.iter().flatten().zip(expected.iter().flatten()) {
            // Five standard deviations of a count.
            assert!((f64::from(*counts) - third * expected).abs() < 5.0 * 55.0, "{counts}, {}", third * expected);
        }
    }

    #[test]
    fn there_are_no_more_centres_than_points_that_differ() {
        let points = [1.0, 1.0, 2.0, 2.0, 2.0];
        assert_eq!(seeds(&points, 1, 4, &mut rng(1)).len(), 2);
        let found = k_means(&points, 1, 4, &mut rng(1));
        assert!(found[0] == found[1] && found[2] == found[3] && found[3] == found[4] && found[0] != found[2]);
        assert_eq!(k_means(&[0.5; 3], 1, 2, &mut rng(1)), [0, 0, 0]);
        assert_eq!(k_means(&[], 2, 2, &mut rng(1)), [0; 0]);
    }

    /// Every point is nearest to the mean of its own cluster, for any seed; and two heaps are told apart.
    #[test]
    fn points_are_with_the_nearest_mean() {
        for index in 0..50 {
            let mut stream = rng(1_000 + index);
            let points: Vec<f64> = (0..60).map(|_| stream.uniform()).collect();
            let found = k_means(&points, 2, 4, &mut rng(index));
            let mean = |cluster: u32| -> Option<Vec<f64>> {
                let rows = points.chunks(2).zip(&found).filter(|(_, joined)| **joined == cluster);
                let rows: Vec<&[f64]> = rows.map(|(row, _)| row).collect();
                let sum = |axis: usize| rows.iter().map(|row| row[axis]).sum::<f64>() / rows.len() as f64;
                (!rows.is_empty()).then(|| vec![sum(0), sum(1)])
            };
            for (row, joined) in points.chunks(2).zip(&found) {
                let own = distance(row, &mean(*joined).unwrap());
                assert!((0..4).filter_map(mean).all(|centre| own <= distance(row, &centre) + 1e-9));
            }
        }
        let heaps = [0.0, 0.1, 0.2, 9.0, 9.1, 9.2];
        let found = k_means(&heaps, 1, 2, &mut rng(7));
        assert!(found[..3].iter().all(|cluster| *cluster == found[0]));
        assert!(found[3..].iter().all(|cluster| *cluster == 1 - found[0]));
    }
}
