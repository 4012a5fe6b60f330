//! Communities of items, for data without categories: items that the same users rate.
//!
//! # Definition
//! Items are put in a random order and dealt to `count` communities in turn. Then there are ten sweeps over all items
//! in ascending order. Each user of an item with further ratings votes for the communities of the user's other items,
//! with shares that sum to 1. The expectation is taken off a community's votes: its share of all ratings of other
//! items. The item moves to the community with the most, if that then has at most 5/4 of the mean number of ratings,
//! and its own still has at least 1/4 of it. Of equal votes its own community comes first, then the smallest number.
//! Only the pairs of user and item count, not their values, nor their part of the split.
//!
//! # Source
//! U. N. Raghavan, R. Albert, S. Kumara, "Near linear time algorithm to detect community structures in large-scale
//! networks", Physical Review E 76, 2007 (label propagation); the expectation by chance is taken off as in modularity
//! (M. E. J. Newman, 2006), and sizes are bounded, since communities otherwise grow into one.
//!
//! # Cost
//! Ten passes over ratings × communities.
//!
//! # Determinism
//! Stream (Partition, 0, 13): the order of items.

use crate::ratings::Ratings;
use fedgenie_core::rng::{Purpose, Streams};

const STREAM: u32 = 13;
const SWEEPS: usize = 10;

/// The community of each item, below `count`.
///
/// # Panics
/// If `count` is 0.
pub fn communities(data: &Ratings, count: usize, streams: &Streams) -> Vec<u32> {
    let items = data.item_ids.len();
    let mut order: Vec<u32> = (0..items as u32).collect();
    streams.stream(Purpose::Partition, 0, STREAM).shuffle(&mut order);
    let mut of_items = vec![0_u32; items];
    order.iter().enumerate().for_each(|(place, &item)| of_items[item as usize] = (place % count) as u32);
    let mut raters = vec![Vec::new(); items];
    let mut activity = vec![0_u32; data.user_ids.len()];
    // How many of a user's ratings are in each community.
    let mut of_users = vec![0_u32; data.user_ids.len() * count];
    let mut sizes = vec![0_usize; count];
    for rating in &data.ratings {
        let community = of_items[rating.item as usize] as usize;
        raters[rating.item as usize].push(rating.user);
        activity[rating.user as usize] += 1;
        of_users[rating.user as usize * count + community] += 1;
        sizes[community] += 1;
    }
    let most = (5 * data.ratings.len()).div_ceil(4 * count);
    let least = data.ratings.len().div_ceil(4 * count);
    let mut votes = vec![0.0_f64; count];
    for _ in 0..SWEEPS {
        for (item, raters) in raters.iter().enumerate() {
            let own = of_items[item] as usize;
            if sizes[own] < least + raters.len() {
                continue;
            }
            votes.fill(0.0);
            let mut voters = 0.0;
            for &user in raters {
                let others = f64::from(activity[user as usize] - 1);
                if others > 0.0 {
                    voters += 1.0;
                    for (community, vote) in votes.iter_mut().enumerate() {
                        let rated = of_users[user as usize * count + community] - u32::from(community == own);
                        *vote += f64::from(rated) / others;
                    }
                }
            }
            let others = (data.ratings.len() - raters.len()).max(1) as f64;
            for (community, vote) in votes.iter_mut().enumerate() {
                let size = sizes[community] - if community == own { raters.len() } else { 0 };
                *vote -= voters * size as f64 / others;
            }
            let mut best = own;
            for community in 0..count {
                if votes[community] > votes[best] && sizes[community] + raters.len() <= most {
                    best = community;
                }
            }
            if best != own {
                sizes[own] -= raters.len();
                sizes[best] += raters.len();
                for &user in raters {
                    of_users[user as usize * count + own] -= 1;
                    of_users[user as usize * count + best] += 1;
                }
                of_items[item] = best as u32;
            }
        }
    }
    of_items
}
