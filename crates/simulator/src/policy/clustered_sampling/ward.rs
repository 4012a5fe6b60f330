//! Hierarchical clustering by Ward's rule, cut where groups would be too heavy.

use fedgenie_core::math::float::sqrt;

/// Distances of all pairs of points.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    count: usize,
    /// Of two different points, by row.
    all: Vec<f64>,
}

impl Distances {
    /// Distances of so many points, each asked for once, of a smaller and a larger place.
    pub(super) fn of(count: usize, mut apart: impl FnMut(usize, usize) -> f64) -> Self {
        let mut found = Self { count, all: vec![0.0; count * count] };
        for one in 0..count {
            for other in one + 1..count {
                found.set(one, other, apart(one, other));
            }
        }
        found
    }

    fn get(&self, one: usize, other: usize) -> f64 {
        self.all[one * self.count + other]
    }

    fn set(&mut self, one: usize, other: usize, apart: f64) {
        self.all[one * self.count + other] = apart;
        self.all[other * self.count + one] = apart;
    }
}

/// A group under way: a subtree of the dendrogram.
#[derive(Clone, Debug)]
struct Group {
    members: Vec<usize>,
    weight: u64,
}

/// The nearest of the groups after a place, and how far it is; of equal ones the first.
fn nearest(distances: &Distances, groups: &[Option<Group>], place: usize) -> Option<(f64, usize)> {
    let others = (place + 1..groups.len()).filter(|&other| groups[other].is_some());
    let apart = others.map(|other| (distances.get(place, other), other));
    apart.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))
}

/// The largest subtrees whose weight is at most `limit`, each with its points, ascending, in the order of their first
/// points. A point that is heavier is alone.
///
/// The two groups that are nearest are joined again and again, of equal ones those with the smaller first points. With
/// `n` points each, the distance of a joined group `a + b` to another one is
/// `sqrt(((n_a + n_c)·d_ac² + (n_b + n_c)·d_bc² − n_c·d_ab²)/(n_a + n_b + n_c))`.
pub(super) fn groups(mut distances: Distances, weights: &[u64], limit: u64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Option<Group>> =
        weights.iter().enumerate().map(|(place, &weight)| Some(Group { members: vec![place], weight })).collect();
    let mut nearest_of: Vec<Option<(f64, usize)>> =
        (0..groups.len()).map(|place| nearest(&distances, &groups, place)).collect();
    let mut done = Vec::new();
    let mut finish = |group: Group| {
        // A group that is too heavy was finished in parts.
        if group.weight <= limit || group.members.len() == 1 {
            done.push(group.members);
        }
    };
    for _ in 1..weights.len() {
        let of = |place: usize| nearest_of[place].map(|(apart, other)| (apart, place, other));
        let pairs = (0..groups.len()).filter_map(of);
        let closest = pairs.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let Some((apart, one, other)) = closest else { break };
        let (Some(left), Some(right)) = (groups[one].take(), groups[other].take()) else { break };
        for (place, third) in groups.iter().enumerate() {
            let Some(third) = third else { continue };
            let [a, b, c] = [&left, &right, third].map(|group| group.members.len() as f64);
            let (to_left, to_right) = (distances.get(one, place), distances.get(other, place));
            let square =
                ((a + c) * to_left * to_left + (b + c) * to_right * to_right - c * apart * apart) / (a + b + c);
            distances.set(one, place, sqrt(square.max(0.0)));
        }
        let weight = left.weight + right.weight;
        let mut members = [&left.members[..], &right.members[..]].concat();
        members.sort_unstable();
        if weight > limit {
            finish(left);
            finish(right);
        }
        groups[one] = Some(Group { members, weight });
        for place in 0..groups.len() {
            if groups[place].is_none() {
                continue;
            }
            let (known, joined) = (nearest_of[place], (distances.get(place, one), one));
            let has_changed = known.is_some_and(|(_, to)| to == one || to == other);
            if place == one || has_changed {
                nearest_of[place] = nearest(&distances, &groups, place);
            } else if place < one && known.is_none_or(|known| joined < known) {
                nearest_of[place] = Some(joined);
            }
        }
        nearest_of[other] = None;
    }
    groups.into_iter().flatten().for_each(&mut finish);
    done.sort_unstable();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_line(places: &[f64]) -> Distances {
        Distances::of(places.len(), |one, other| (places[one] - places[other]).abs())
    }

    /// Points at 0, 1, 4, 6 and 20. 0 and 1 are nearest (1). Then 2 and 3 are 2 apart, and 0 + 1 is from 2
    /// sqrt((2·16 + 2·9 − 1)/3) = 4.04: 2 and 3 join. 0 + 1 and 2 + 3 are 6.36 apart (√2·4.5), 4 is 17.3 from 2 + 3.
    #[test]
    fn five_points_by_hand() {
        let line = on_a_line(&[0.0, 1.0, 4.0, 6.0, 20.0]);
        let of = |limit| groups(line.clone(), &[1; 5], limit);
        assert_eq!(of(1), [[0], [1], [2], [3], [4]]);
        assert_eq!(of(2), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(of(3), of(2), "the next group would have four");
        assert_eq!(of(4), [vec![0, 1, 2, 3], vec![4]]);
        assert_eq!(of(5), [vec![0, 1, 2, 3, 4]]);
        // A point that is too heavy is alone, and so is whoever would join it.
        assert_eq!(groups(line.clone(), &[9, 1, 1, 1, 1], 4), [vec![0], vec![1], vec![2, 3], vec![4]]);
        assert_eq!(
            groups(on_a_line(&[0.0; 4]), &[1; 4], 2),
            [vec![0, 1], vec![2], vec![3]],
            "the smaller places first"
        );
        assert!(groups(on_a_line(&[]), &[], 4).is_empty());
    }

    /// Against the sum of squares: of points on a line, the distance by the rule is sqrt(2·n_a·n_b/(n_a + n_b)) times
    /// that of the means.
    #[test]
    fn joined_distances_are_those_of_means() {
        let places = [0.3, 2.0, 2.2, 7.0, 7.5, 7.6, 11.0];
        let found = groups(on_a_line(&places), &[1; 7], 3);
        let mut sets: Vec<Vec<usize>> = (0..7).map(|place| vec![place]).collect();
        let mean = |set: &[usize]| set.iter().map(|&place| places[place]).sum::<f64>() / set.len() as f64;
        let apart = |one: &[usize], other: &[usize]| {
            let [a, b] = [one.len() as f64, other.len() as f64];
            (2.0 * a * b / (a + b)).sqrt() * (mean(one) - mean(other)).abs()
        };
        let mut expected = Vec::new();
        while sets.len() > 1 {
            let pairs = (0..sets.len()).flat_map(|one| (one + 1..sets.len()).map(move |other| (one, other)));
            let of = |&(one, other): &(usize, usize)| apart(&sets[one], &sets[other]);
            let (one, other) = pairs.min_by(|first, second| of(first).total_cmp(&of(second))).unwrap();
            let right = sets.remove(other);
            let left = sets.remove(one);
            let mut joined = [left.clone(), right.clone()].concat();
            joined.sort_unstable();
            if joined.len() > 3 {
                expected.extend([left, right].into_iter().filter(|set| set.len() <= 3));
            }
            sets.push(joined);
        }
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}
