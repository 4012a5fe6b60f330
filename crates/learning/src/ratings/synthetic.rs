//! Ratings drawn from the seed: a few factors decide who picks what and likes it, popularity and activity are skewed.
//!
//! # Definition
//! User `u` has factors `p_u ~ N(0, 1)^F` and weight `e^{N(0, 0.8²)}`, item `i` factors `q_i ~ N(0, 1)^F`, weight
//! `w_i = e^{N(0, 1)}` and bias `b_i ~ N(0, 0.3²)`. Their affinity is `a_ui = p_u·q_i / √F`.
//!
//! - *How many.* `ratings` are shared out to users in proportion to their weights, at least one and at most 9/10 of the
//!   items each: rounded down, and then one more, or one less, for each in turn, in the order of users, as far as there
//!   is room.
//! - *Which.* User `u` picks items one after the other without replacement, each time with a probability proportional
//!   to `w_i e^{1.5 a_ui}` among those left. The n-th pick is made at time n.
//! - *How good.* `3.5 + b_i + 0.8 a_ui + N(0, noise²)`, rounded to the nearest whole number, from 1 to 5.
//!
//! So the items with the most ratings are a fair guess for everybody, and who knows the factors guesses better.
//!
//! With `text` or `image`, an item has so many features, which models with features may use: feature `j` is
//! `m_j·q_i / √F + N(0, 0.5²)` with `m_j ~ N(0, 1)^F`.
//!
//! # Source
//! W. Kool, H. van Hoof, M. Welling, "Stochastic beams and where to find them", ICML 2019: picks without replacement are
//! the largest sums of a logarithm and a Gumbel variate.
//!
//! # Cost
//! O(users × items) time, O(items + ratings) memory.
//!
//! # Determinism
//! Stream (Example, item, 6): factors, weight, bias. Stream (Example, user, 7): factors, weight; then a uniform for
//! each item, in their order, whose Gumbel variate `−ln(−ln u)` is added to the logarithm of the item's weight, the
//! largest sums being the picks (ties to the smaller item); then the noise of each pick in its order. Features: stream
//! (Example, item, 9) is the noise of an item's text, (Example, j, 10) is `m_j`; 11 and 12 are those of images.
//!
//! # Example
//! ```toml
//! data = { synthetic = { users = 400, items = 600, ratings = 20_000, factors = 4, noise = 0.5 } }
//! data = { synthetic = { text = 16, image = 16 } }
//! ```

use super::features::{ItemFeatures, WIDTH_MAX};
use super::source::RatingsSettings;
use super::table::{Headings, Row, Table};
use super::{Filters, Ids, Ratings};
use crate::data::DataError;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::math::{float, special::normal_quantile as standard_normal};
use fedgenie_core::rng::{Purpose, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `{ synthetic = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticRatings {
    /// Number of users; at least 1.
    pub users: usize,
    /// Number of items; at least 2.
    pub items: usize,
    /// Number of ratings: from one for each user to 9/10 of the items for each.
    pub ratings: usize,
    /// Number of factors; from 1 to 64.
    pub factors: usize,
    /// Standard deviation of the noise of a rating; 0 or more.
    pub noise: f64,
    /// Number of text features of an item; from 1 to 4,096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<usize>,
    /// Number of image features of an item; from 1 to 4,096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<usize>,
}

impl Default for SyntheticRatings {
    fn default() -> Self {
        Self { users: 400, items: 600, ratings: 20_000, factors: 4, noise: 0.5, text: None, image: None }
    }
}

/// The most pairs of users and items: 2^32.
const PAIRS_MAX: u64 = 1 << 32;

/// Numbers of the streams, as documented above.
const ITEMS: u32 = 6;
const USERS: u32 = 7;
/// Of features: noise and mixture of text, then of images.
const FEATURES: [[u32; 2]; 2] = [[9, 10], [11, 12]];
/// Standard deviation of the noise of a feature.
const FEATURE_NOISE: f64 = 0.5;

impl RatingsSettings for SyntheticRatings {
    fn check(&self) -> Result<(), Complaint> {
        let refuse =
            |key, found: usize, expected| Err(Complaint::new(key, format!("found {found}; expected {expected}")));
        if self.users == 0 {
            return refuse("users", 0, "at least 1");
        }
        if self.items < 2 {
            return refuse("items", self.items, "at least 2");
        }
        if (self.users as u64).checked_mul(self.items as u64).is_none_or(|pairs| pairs > PAIRS_MAX) {
            return refuse("users", self.users, "at most 2^32 pairs of users and items");
        }
        let most = self.users * self.most();
        if !(self.users..=most).contains(&self.ratings) {
            let message = format!(
                "found {}; expected from {} (one for each user) to {most} (9/10 of the items for each)",
                self.ratings, self.users
            );
            return Err(Complaint::new("ratings", message));
        }
        if !(1..=64).contains(&self.factors) {
            return refuse("factors", self.factors, "from 1 to 64");
        }
        for (key, width) in [("text", self.text), ("image", self.image)] {
            if let Some(width) = width.filter(|width| !(1..=WIDTH_MAX).contains(width)) {
                return Err(Complaint::new(key, format!("found {width}; expected from 1 to {WIDTH_MAX}")));
            }
        }
        check("noise", self.noise, 0.0.., "0 or a number above").map(|_| ())
    }

    fn features(&self, items: &Ids, streams: &Streams) -> [Option<ItemFeatures>; 2] {
        let widths = [self.text, self.image];
        [0, 1].map(|mode| widths[mode].map(|width| self.features_of(items, width, FEATURES[mode], streams)))
    }

    fn is_each_seeds_own(&self) -> bool {
        true
    }

    fn load(&self, filters: &Filters, streams: &Streams) -> Result<Ratings, DataError> {
        let mut table = Table::new(filters, false);
        let items: Vec<Item> = (0..self.items).map(|item| self.item(item, streams)).collect();
        let users: Vec<User> = (0..self.users).map(|user| self.user(user, streams)).collect();
        let weights: Vec<f64> = users.iter().map(|user| user.weight).collect();
        let counts = shared_out(self.ratings, &weights, self.most());
        let mut picks = Vec::with_capacity(self.items);
        for (number, (user, &count)) in users.iter().zip(&counts).enumerate() {
            let mut rng = streams.stream_from(Purpose::Example, number as u32, USERS, user.drawn);
            picks.clear();
            for (number, item) in items.iter().enumerate() {
                let affinity = user.affinity(item);
                let gumbel = -float::ln(-float::ln(rng.uniform()));
                picks.push((item.log_weight + 1.5 * affinity + gumbel, number, affinity));
            }
            picks.sort_unstable_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
            for (time, &(_, item, affinity)) in picks[..count].iter().enumerate() {
                let noise = self.noise * standard_normal(rng.uniform());
                let value = (3.5 + items[item].bias + 0.8 * affinity + noise).round().clamp(1.0, 5.0);
                let [user, item, value, time] =
                    [number, item, value as usize, time + 1].map(|number| number.to_string());
                let row = Row { user: &user, item: &item, value: Some(&value), time: Some(&time), ..Row::default() };
                table.push(0, row, &Headings::PLAIN)?;
            }
        }
        table.finish(&Headings::PLAIN)
    }
}

struct Item {
    factors: Vec<f64>,
    log_weight: f64,
    bias: f64,
}

struct User {
    factors: Vec<f64>,
    weight: f64,
    /// How many numbers of the user's stream these took.
    drawn: u64,
}

impl User {
    fn affinity(&self, item: &Item) -> f64 {
        let products = self.factors.iter().zip(&item.factors).map(|(p, q)| p * q);
        products.sum::<f64>() / float::sqrt(self.factors.len() as f64)
    }
}

impl SyntheticRatings {
    /// The most ratings of a user.
    fn most(&self) -> usize {
        (self.items / 10 * 9 + self.items % 10 * 9 / 10).max(1)
    }

    fn item(&self, item: usize, streams: &Streams) -> Item {
        let mut rng = streams.stream(Purpose::Example, item as u32, ITEMS);
        let mut normal = || standard_normal(rng.uniform());
        let factors = (0..self.factors).map(|_| normal()).collect();
        Item { factors, log_weight: normal(), bias: 0.3 * normal() }
    }

    fn user(&self, user: usize, streams: &Streams) -> User {
        let mut rng = streams.stream(Purpose::Example, user as u32, USERS);
        let factors = (0..self.factors).map(|_| standard_normal(rng.uniform())).collect();
        let weight = float::exp(0.8 * standard_normal(rng.uniform()));
        User { factors, weight, drawn: rng.drawn() }
    }

    /// Features of the items that have ratings, whose ids are their numbers.
    fn features_of(&self, items: &Ids, width: usize, [noise, mixture]: [u32; 2], streams: &Streams) -> ItemFeatures {
        let mixtures: Vec<Vec<f64>> = (0..width as u32)
            .map(|feature| {
                let mut rng = streams.stream(Purpose::Example, feature, mixture);
                (0..self.factors).map(|_| standard_normal(rng.uniform())).collect()
            })
            .collect();
        let scale = 1.0 / float::sqrt(self.factors as f64);
        let mut values = Vec::with_capacity(items.len() * width);
        for index in 0..items.len() as u32 {
            let item: u32 = items.name(index).parse().expect("drawn items are called by their numbers");
            let factors = self.item(item as usize, streams).factors;
            let mut rng = streams.stream(Purpose::Example, item, noise);
            values.extend(mixtures.iter().map(|mixture| {
                let mixed: f64 = mixture.iter().zip(&factors).map(|(m, q)| m * q).sum();
                (mixed * scale + FEATURE_NOISE * standard_normal(rng.uniform())) as f32
            }));
        }
        ItemFeatures { width, values, missing: 0 }
    }
}

/// Shares a number of ratings out to users in proportion to their weights, from one to `most` each.
pub(super) fn shared_out(ratings: usize, weights: &[f64], most: usize) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let share = |weight: &f64| (ratings as f64 * weight / total) as usize;
    let mut counts: Vec<usize> = weights.iter().map(|weight| share(weight).clamp(1, most)).collect();
    let mut sum: usize = counts.iter().sum();
    // One more or one less for each in turn, as far as there is room: the sum becomes what was asked for.
    while sum != ratings {
        for count in &mut counts {
            if sum < ratings && *count < most {
                *count += 1;
                sum += 1;
            } else if sum > ratings && *count > 1 {
                *count -= 1;
                sum -= 1;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(config: &SyntheticRatings, seed: u64) -> Ratings {
        config.check().unwrap();
        config.load(&Filters::default(), &Streams::new(seed)).unwrap()
    }

    #[test]
    fn there_are_as_many_as_asked_for_and_each_pair_once() {
        for (users, items, ratings) in [(400, 600, 20_000), (3, 2, 3), (5, 10, 45), (7, 13, 20)] {
            let config = SyntheticRatings { users, items, ratings, ..SyntheticRatings::default() };
            let found = drawn(&config, 1);
            assert_eq!((found.ratings.len(), found.dropped.repeated, found.user_ids.len()), (ratings, 0, users));
            assert!(found.has_values && found.has_times);
            assert!(found.ratings.iter().all(|rating| (1.0..=5.0).contains(&rating.value)));
            assert_eq!(found, drawn(&config, 1));
            assert_ne!(found, drawn(&config, 2));
        }
    }

    #[test]
    fn popularity_and_activity_are_skewed() {
        let found = drawn(&SyntheticRatings::default(), 3);
        let (mut of_items, mut of_users) = (vec![0; found.item_ids.len()], vec![0; 400]);
        for rating in &found.ratings {
            of_items[rating.item as usize] += 1;
            of_users[rating.user as usize] += 1;
        }
        // A tenth of the items has at least a quarter of the ratings; the busiest tenth of the users as well.
        for mut counts in [of_items, of_users] {
            counts.sort_unstable();
            let tenth: usize = counts.iter().rev().take(counts.len() / 10).sum();
            assert!(tenth > 5_000, "{tenth}");
        }
    }

    #[test]
    fn features_tell_of_the_factors_and_belong_to_the_item() {
        let config = SyntheticRatings { text: Some(12), image: Some(3), ..SyntheticRatings::default() };
        let streams = Streams::new(4);
        let [text, image] = config.features(&Ids::AsTheyStand(600), &streams).map(Option::unwrap);
        assert_eq!((text.width, text.values.len(), image.values.len()), (12, 600 * 12, 600 * 3));
        // Only some of the items: the same rows.
        let [some, _] = config.features(&Ids::Numbers(vec![3, 17, 400]), &streams).map(Option::unwrap);
        assert_eq!(some.values[12..24], text.values[17 * 12..18 * 12]);
        // Items with alike factors have alike features: the inner products go together.
        let inner = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(x, y)| x * y).sum::<f64>();
        let of = |item: usize| -> Vec<f64> { text.values[item * 12..][..12].iter().map(|&x| f64::from(x)).collect() };
        let pairs: Vec<(f64, f64)> = (0..300)
            .map(|item| {
                let [one, other] = [item, 599 - item].map(|item| config.item(item, &streams).factors);
                (inner(&one, &other), inner(&of(item), &of(599 - item)))
            })
            .collect();
        let sum = |f: fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>();
        let correlation = sum(|p| p.0 * p.1) / (sum(|p| p.0 * p.0) * sum(|p| p.1 * p.1)).sqrt();
        assert!(correlation > 0.6, "{correlation}");
        assert_eq!(SyntheticRatings::default().features(&Ids::AsTheyStand(600), &streams), [None, None]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let usual = SyntheticRatings::default();
        for (config, key) in [
            (SyntheticRatings { users: 0, ..usual.clone() }, "users"),
            (SyntheticRatings { items: 1, ..usual.clone() }, "items"),
            (SyntheticRatings { users: 1 << 31, ..usual.clone() }, "users"),
            (SyntheticRatings { ratings: 399, ..usual.clone() }, "ratings"),
            (SyntheticRatings { ratings: 400 * 540 + 1, ..usual.clone() }, "ratings"),
            (SyntheticRatings { factors: 0, ..usual.clone() }, "factors"),
            (SyntheticRatings { text: Some(0), ..usual.clone() }, "text"),
            (SyntheticRatings { image: Some(4_097), ..usual.clone() }, "image"),
            (SyntheticRatings { noise: f64::NAN, ..usual }, "noise"),
        ] {
            assert_eq!(config.check().unwrap_err().path, key);
        }
    }
}
