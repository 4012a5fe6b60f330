//! The lexicographically smallest among the nearly best sets of one threshold.
//!
//! Fix a threshold. The best sets are the maximum-weight bases of a matroid: subsets of a fixed size, of which at most
//! a quota may lie outside the prefix. [`exchange`] turns one such base into the lexicographically smallest base that
//! loses at most `slack`.
//!
//! *Why it is exact.* Walk the items in ascending position and keep a base that is best among those which contain all
//! items accepted and none rejected so far. An item of the base is accepted at no loss. For any other item `i`, the
//! best base that contains it and the accepted ones swaps it for the lightest undecided item `j` of its fundamental
//! circuit (a standard property of maximum-weight bases). If that fits in the slack, `i` is accepted, because every
//! list with `i` precedes every list without it; otherwise nothing with `i` fits and it is rejected. The circuit is the
//! whole base, unless `i` lies outside and the quota is used up: then it is the outside part.

/// A candidate that may or may not be chosen.
#[derive(Clone, Copy, Debug)]
pub(in crate::oracle) struct Item {
    pub position: u32,
    pub gain: f64,
    /// Slower than the threshold; the quota limits how many of these are chosen.
    pub outside: bool,
    pub chosen: bool,
}

/// The undecided items of the base from the lightest up; items fall out lazily when they are decided.
#[derive(Clone, Debug, Default)]
struct Pool {
    order: Vec<(f64, u32)>,
    next: usize,
}

impl Pool {
    fn fill(&mut self, items: &[Item], wanted: impl Fn(&Item) -> bool) {
        self.next = 0;
        self.order.clear();
        let members = items.iter().enumerate().filter(|(_, item)| item.chosen && wanted(item));
        self.order.extend(members.map(|(place, item)| (item.gain, place as u32)));
        self.order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    }

    /// The lightest item of the base after place `now`.
    fn lightest(&mut self, now: usize, items: &[Item]) -> Option<(f64, usize)> {
        while let Some(&(gain, place)) = self.order.get(self.next) {
            if place as usize > now && items[place as usize].chosen {
                return Some((gain, place as usize));
            }
            self.next += 1;
        }
        None
    }
}

/// Buffers of [`exchange`].
#[derive(Clone, Debug, Default)]
pub(in crate::oracle) struct Exchange {
    all: Pool,
    outside: Pool,
}

impl Exchange {
    /// Replaces the chosen items, a best base, by the lexicographically smallest one that loses at most `slack`.
    ///
    /// The items ascend by position; `quota` is how many of those outside may be chosen. `O(n + m log m)`.
    pub fn run(&mut self, items: &mut [Item], quota: usize, slack: f64) {
        self.all.fill(items, |_| true);
        self.outside.fill(items, |item| item.outside);
        let mut outside = self.outside.order.len();
        assert!(outside <= quota, "the best base respects the quota");
        let mut lost = 0.0;
        for now in 0..items.len() {
            if items[now].chosen {
                continue;
            }
            let pool = if items[now].outside && outside == quota { &mut self.outside } else { &mut self.all };
            let Some((gain, replaced)) = pool.lightest(now, items) else { continue };
            // Two gains that can be exchanged within the slack are so close that their difference is exact.
            let cost = gain - items[now].gain;
            if lost + cost <= slack {
                lost += cost;
                outside += usize::from(items[now].outside);
                outside -= usize::from(items[replaced].outside);
                items[now].chosen = true;
                items[replaced].chosen = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(gains: &[f64], chosen: &[usize], slack: f64) -> Vec<u32> {
        let item = |(k, &gain)| Item { position: k as u32, gain, outside: false, chosen: chosen.contains(&k) };
        let mut items: Vec<Item> = gains.iter().enumerate().map(item).collect();
        Exchange::default().run(&mut items, 0, slack);
        items.iter().filter(|item| item.chosen).map(|item| item.position).collect()
    }

    #[test]
    fn slack_is_spent_on_the_smallest_positions_first() {
        assert_eq!(run(&[1.0, 1.25, 1.5, 2.0], &[2, 3], 0.0), [2, 3]);
        assert_eq!(run(&[1.0, 1.25, 1.5, 2.0], &[2, 3], 0.25), [1, 3]);
        assert_eq!(run(&[1.0, 1.25, 1.5, 2.0], &[2, 3], 0.5), [0, 3]);
        assert_eq!(run(&[1.0, 1.25, 1.5, 2.0], &[2, 3], 1.25), [0, 1]);
    }

    #[test]
    fn equal_gains_give_the_smallest_positions() {
        assert_eq!(run(&[1.0; 5], &[2, 4], 0.0), [0, 1]);
    }
}
