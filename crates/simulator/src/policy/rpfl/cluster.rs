//! Clusters of points by Lloyd's algorithm, and seats for them.

use fedgenie_core::id::ClientId;
use fedgenie_core::oracle::TIE;

/// Rounds of Lloyd's algorithm, which ends long before: every round brings points nearer to their centres.
const MOST_ROUNDS: usize = 1_000;

fn distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other) * (one - other)).sum()
}

/// The cluster of a client without an update.
pub(super) const NONE: u32 = u32::MAX;

/// The mean of some points; the origin if there are none.
fn mean<'a>(points: impl Iterator<Item = &'a Vec<f64>>, dimensions: usize) -> Vec<f64> {
    let (mut sum, mut count) = (vec![0.0; dimensions], 0_u32);
    for point in points {
        sum.iter_mut().zip(point).for_each(|(sum, value)| *sum += value);
        count += 1;
    }
    sum.iter().map(|sum| sum / f64::from(count.max(1))).collect()
}

/// The first position whose number is the largest, up to [`TIE`].
fn first_largest(numbers: &[f64]) -> Option<usize> {
    let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    numbers.iter().position(|&number| number >= largest - TIE)
}

/// The cluster of each point, at most so many. Fewer clusters if points coincide.
pub(super) fn lloyd(points: &[Vec<f64>], clusters: usize) -> Vec<u32> {
    let dimensions = points.first().map_or(0, Vec::len);
    let from_mean = |point: &Vec<f64>| distance(point, &mean(points.iter(), dimensions));
    let Some(first) = first_largest(&points.iter().map(from_mean).collect::<Vec<_>>()) else { return Vec::new() };
    let mut centres = vec![points[first].clone()];
    while centres.len() < clusters {
        let to_nearest =
            |point: &Vec<f64>| centres.iter().map(|centre| distance(point, centre)).fold(f64::INFINITY, f64::min);
        let distances: Vec<f64> = points.iter().map(to_nearest).collect();
        match first_largest(&distances) {
            Some(next) if distances[next] > TIE => centres.push(points[next].clone()),
            _ => break,
        }
    }
    let mut cluster_of = vec![0; points.len()];
    for _ in 0..MOST_ROUNDS {
        let nearest = |point: &Vec<f64>| {
            let negated: Vec<f64> = centres.iter().map(|centre| -distance(point, centre)).collect();
            first_largest(&negated).expect("there is a centre") as u32
        };
        let found: Vec<u32> = points.iter().map(nearest).collect();
        let is_same = std::mem::replace(&mut cluster_of, found) == cluster_of;
        if is_same {
            break;
        }
        for (number, centre) in (0..).zip(&mut centres) {
            let mut members = points.iter().zip(&cluster_of).filter(|(_, of)| **of == number).peekable();
            // A centre that lost all its points stays where it is.
            if members.peek().is_some() {
                *centre = mean(members.map(|(point, _)| point), dimensions);
            }
        }
    }
    cluster_of
}

/// Seats of clusters of such sizes: one each for those with members, the others by size and largest remainders.
fn seats(sizes: &[usize], places: usize) -> Vec<usize> {
    let mut seats: Vec<usize> = sizes.iter().map(|&size| usize::from(size > 0)).collect();
    let left = places.saturating_sub(seats.iter().sum());
    let total = sizes.iter().sum::<usize>().max(1);
    let mut remainders: Vec<(usize, usize)> = Vec::new();
    for (cluster, &size) in sizes.iter().enumerate() {
        seats[cluster] += left * size / total;
        remainders.push((left * size % total, cluster));
    }
    let open = places.saturating_sub(seats.iter().sum());
    remainders.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    remainders.iter().filter(|(rest, _)| *rest > 0).take(open).for_each(|&(_, cluster)| seats[cluster] += 1);
    seats
}

/// At most `places` of the clients in `order` of preference: the seats of each cluster by its own members, then open
/// seats by any client. `cluster_of` has the cluster of every client.
pub(super) fn seated(cluster_of: &[u32], order: &[ClientId], places: usize) -> Vec<ClientId> {
    let known = || cluster_of.iter().filter(|&&cluster| cluster != NONE);
    let mut sizes = vec![0; known().max().map_or(0, |&last| last as usize + 1)];
    known().for_each(|&cluster| sizes[cluster as usize] += 1);
    let mut chosen: Vec<ClientId> = Vec::new();
    for (cluster, seats) in (0..).zip(seats(&sizes, places)) {
        let members = order.iter().filter(|client| cluster_of[client.index()] == cluster);
        chosen.extend(members.take(seats));
    }
    chosen.truncate(places);
    let others: Vec<ClientId> = order.iter().copied().filter(|client| !chosen.contains(client)).collect();
    chosen.extend(others.into_iter().take(places - chosen.len()));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[f64]) -> Vec<Vec<f64>> {
        points.iter().map(|&point| vec![point]).collect()
    }

    /// The mean of 0, 1, 10, 11, 30 is 10.4: the first centre is 30, the second 0, the third 11 (11 from 0 against 10).
    /// 10 joins 11, 1 joins 0.
    #[test]
    fn five_points_on_a_line() {
        let points = line(&[0.0, 1.0, 10.0, 11.0, 30.0]);
        assert_eq!(lloyd(&points, 3), [1, 1, 2, 2, 0]);
        // With two centres, 30 and 0: 10 and 11 go to 0, whose centre moves to 5.5.
        assert_eq!(lloyd(&points, 2), [1, 1, 1, 1, 0]);
        assert_eq!(lloyd(&points, 1), [0; 5]);
        assert_eq!(lloyd(&line(&[2.0, 2.0, 2.0]), 3), [0, 0, 0], "alike points are one cluster");
        assert_eq!(lloyd(&[], 3), Vec::<u32>::new());
    }

    /// The centres move once: 4 begins with 5 (centre 5, then 4.5), and 0, 1, 2 stay with 0.
    #[test]
    fn centres_move() {
        let points = line(&[0.0, 1.0, 2.0, 4.0, 5.0]);
        // The mean is 2.4: 5 is farthest (2.6), then 0. 2 is nearer to 0; of 1.0 and 4.5 it is nearer to 1.0.
        assert_eq!(lloyd(&points, 2), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn seats_by_largest_remainders() {
        assert_eq!(seats(&[5, 2, 1], 4), [2, 1, 1]);
        // 5 left over: 25/8, 10/8, 5/8: 3, 1, 0 and the largest remainder, 5.
        assert_eq!(seats(&[5, 2, 1], 8), [4, 2, 2]);
        assert_eq!(seats(&[3, 0, 3], 3), [2, 0, 1]);
        assert_eq!(seats(&[4], 2), [2]);
    }

    /// Of cluster 1 only client 3 can be selected: its second seat goes to the first client left.
    #[test]
    fn a_seat_that_a_cluster_cannot_fill() {
        let ids = |ids: &[u32]| ids.iter().map(|&id| ClientId(id)).collect::<Vec<_>>();
        assert_eq!(seated(&[0, 0, 1, 1, 1, 1], &ids(&[1, 3, 0]), 3), ids(&[1, 3, 0]));
        assert_eq!(seated(&[0, 0, 1, 1, 1, 1], &ids(&[5, 4, 1, 0]), 3), ids(&[1, 5, 4]));
        assert_eq!(seated(&[0, NONE, 1], &ids(&[0, 2]), 2), ids(&[0, 2]), "who was not heard is in no cluster");
        assert_eq!(seated(&[0, 1, NONE], &ids(&[1]), 2), ids(&[1]), "and takes no seat of theirs");
    }
}
