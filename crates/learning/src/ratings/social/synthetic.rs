//! Ratings and trust drawn from the seed: communities of users who like alike and trust each other.
//!
//! # Definition
//! *Items.* Item `i` belongs to a category, drawn with probabilities proportional to `1/(c+1)^0.7` for category `c`
//! (named 1, 2, …); its place `ρ` in a random order gives it popularity `w_i = (ρ+1)^−0.8` (Zipf). Its factors are
//! those of its category, `N(0, 1)^F`, plus `N(0, 0.5²)^F`, its bias is `N(0, 0.3²)`.
//!
//! *Users.* User `u` belongs to one of the communities, each equally likely; the factors are those of the community
//! plus `N(0, 0.5²)^F`, the bias `N(0, 0.3²)`, the weight `e^{N(0, 0.8²)}`. The affinity of both is
//! `a_ui = p_u·q_i/√F`.
//!
//! - *How many.* As `[task.recommendation]`'s generator: shared out in proportion to weights, from one to 9/10 of the
//!   items.
//! - *Which.* Successive picks without replacement, with probabilities proportional to `w_i e^{a_ui}`.
//! - *How good.* `3.5 + b_u + b_i + 0.7 a_ui + N(0, noise²)`, rounded to the nearest whole number, from 1 to 5.
//! - *Trust.* First each user in turn, then users drawn at random, pick somebody: with probability `homophily` from
//!   their own community, else anybody; who picks themselves trusts the next user. A pair counts once. This ends once
//!   all have picked and there are `trust` pairs, or 100 times as many picks were made.
//!
//! # Source
//! W. Kool, H. van Hoof, M. Welling, "Stochastic beams and where to find them", ICML 2019, for picks without replacement.
//!
//! # Cost
//! O(users × items) time.
//!
//! # Determinism
//! Stream (Example, c, 17): factors of a category; (Example, k, 18): of a community. (Example, 0, 19): the order of
//! items, then trust. (Example, item, 20): category, factors, bias. (Example, user, 21): community, factors, bias,
//! weight; then a uniform for each item, for its Gumbel variate; then the noise of each pick in its order.
//!
//! # Example
//! ```toml
//! data = { synthetic = { users = 400, items = 1_200, ratings = 12_000, categories = 28 } }
//! ```

use super::read::Raw;
use super::{SocialRatings, SocialSettings};
use crate::data::DataError;
use crate::ratings::synthetic::shared_out;
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::math::{float, special::normal_quantile as standard_normal};
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `{ synthetic = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SyntheticSocial {
    /// Number of users; at least 2.
    pub users: usize,
    /// Number of items; at least 2.
    pub items: usize,
    /// Number of ratings: from one for each user to 9/10 of the items for each.
    pub ratings: usize,
    /// Number of categories of items; from 1 to the number of items.
    pub categories: usize,
    /// Number of communities of users; from 1 to the number of users.
    pub communities: usize,
    /// Number of pairs of users who trust each other; at least 1.
    pub trust: usize,
    /// How likely somebody picks from the own community; from 0 to 1.
    pub homophily: f64,
    /// Number of factors; from 1 to 64.
    pub factors: usize,
    /// Standard deviation of the noise of a rating; 0 or more.
    pub noise: f64,
}

impl Default for SyntheticSocial {
    fn default() -> Self {
        Self {
            users: 400,
            items: 1_200,
            ratings: 12_000,
            categories: 28,
            communities: 8,
            trust: 1_600,
            homophily: 0.8,
            factors: 4,
            noise: 0.5,
        }
    }
}

/// The most pairs of users and items: 2^32.
const PAIRS_MAX: u64 = 1 << 32;

/// Numbers of the streams, as documented above.
const CATEGORIES: u32 = 17;
const COMMUNITIES: u32 = 18;
const WHOLE: u32 = 19;
const ITEMS: u32 = 20;
const USERS: u32 = 21;

impl SocialSettings for SyntheticSocial {
    fn check(&self) -> Result<(), Complaint> {
        let refuse =
            |key, found: usize, expected: &str| Err(Complaint::new(key, format!("found {found}; expected {expected}")));
        for (key, found) in [("users", self.users), ("items", self.items)] {
            if found < 2 {
                return refuse(key, found, "at least 2");
            }
        }
        if (self.users as u64).checked_mul(self.items as u64).is_none_or(|pairs| pairs > PAIRS_MAX) {
            return refuse("users", self.users, "at most 2^32 pairs of users and items");
        }
        let most = self.users * most_of(self.items);
        if !(self.users..=most).contains(&self.ratings) {
            let expected = format!("from {} (one for each user) to {most} (9/10 of the items for each)", self.users);
            return refuse("ratings", self.ratings, &expected);
        }
        for (key, found, most) in [
            ("categories", self.categories, self.items),
            ("communities", self.communities, self.users),
            ("factors", self.factors, 64),
            ("trust", self.trust, self.users * (self.users - 1) / 2),
        ] {
            if !(1..=most).contains(&found) {
                return refuse(key, found, &format!("from 1 to {most}"));
            }
        }
        check("homophily", self.homophily, 0.0..=1.0, "a probability from 0 to 1")?;
        check("noise", self.noise, 0.0.., "0 or a number above").map(|_| ())
    }

    fn load(&self, range: Option<[f64; 2]>, streams: &Streams) -> Result<SocialRatings, DataError> {
        let factors = |entity: usize, index| {
            let mut rng = streams.stream(Purpose::Example, entity as u32, index);
            self.normals(&mut rng)
        };
        let of_categories: Vec<Vec<f64>> = (0..self.categories).map(|category| factors(category, CATEGORIES)).collect();
        let of_communities: Vec<Vec<f64>> = (0..self.communities).map(|one| factors(one, COMMUNITIES)).collect();
        let mut whole = streams.stream(Purpose::Example, 0, WHOLE);
        let mut order: Vec<u32> = (0..self.items as u32).collect();
        whole.shuffle(&mut order);
        let items: Vec<Item> =
            order.iter().enumerate().map(|(item, &rank)| self.item(item, rank, &of_categories, streams)).collect();
        let users: Vec<User> = (0..self.users).map(|user| self.user(user, &of_communities, streams)).collect();
        let weights: Vec<f64> = users.iter().map(|user| user.weight).collect();
        let counts = shared_out(self.ratings, &weights, most_of(self.items));
        let mut raw = Raw::default();
        let mut picks = Vec::with_capacity(self.items);
        for (number, (user, &count)) in users.iter().zip(&counts).enumerate() {
            let mut rng = streams.stream_from(Purpose::Example, number as u32, USERS, user.drawn);
            picks.clear();
            for (number, item) in items.iter().enumerate() {
                let products: f64 = user.factors.iter().zip(&item.factors).map(|(p, q)| p * q).sum();
                let affinity = products / float::sqrt(self.factors as f64);
                let gumbel = -float::ln(-float::ln(rng.uniform()));
                picks.push((item.log_weight + affinity + gumbel, number, affinity));
            }
            picks.sort_unstable_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
            for &(_, item, affinity) in &picks[..count] {
                let noise = self.noise * standard_normal(rng.uniform());
                let value = 3.5 + user.bias + items[item].bias + 0.7 * affinity + noise;
                raw.users.push(&number.to_string());
                raw.items.push(&item.to_string());
                raw.categories.push(&(items[item].category + 1).to_string());
                raw.values.push(value.round().clamp(1.0, 5.0) as f32);
            }
        }
        for (one, other) in self.trust(&users, &mut whole) {
            raw.users.push(&one.to_string());
            raw.users.push(&other.to_string());
            raw.trust += 1;
        }
        Ok(raw.finish(range.unwrap_or([1.0, 5.0])))
    }
}

struct Item {
    category: usize,
    factors: Vec<f64>,
    log_weight: f64,
    bias: f64,
}

struct User {
    community: usize,
    factors: Vec<f64>,
    bias: f64,
    weight: f64,
    /// How many numbers of the user's stream these took.
    drawn: u64,
}

/// The most ratings of a user.
const fn most_of(items: usize) -> usize {
    let most = items / 10 * 9 + items % 10 * 9 / 10;
    if most == 0 { 1 } else { most }
}

/// Index of the first running total above a share of all.
fn drawn(weights: &[f64], uniform: f64) -> usize {
    let mut left = uniform * weights.iter().sum::<f64>();
    let found = weights.iter().position(|weight| {
        left -= weight;
        left < 0.0
    });
    found.unwrap_or(weights.len() - 1)
}

impl SyntheticSocial {
    fn normals(&self, rng: &mut StreamRng) -> Vec<f64> {
        (0..self.factors).map(|_| standard_normal(rng.uniform())).collect()
    }

    fn near(&self, centre: &[f64], rng: &mut StreamRng) -> Vec<f64> {
        centre.iter().zip(self.normals(rng)).map(|(centre, own)| centre + 0.5 * own).collect()
    }

    fn item(&self, item: usize, rank: u32, of_categories: &[Vec<f64>], streams: &Streams) -> Item {
        let mut rng = streams.stream(Purpose::Example, item as u32, ITEMS);
        let weights: Vec<f64> = (1..=self.categories).map(|place| float::exp(-0.7 * float::ln(place as f64))).collect();
        let category = drawn(&weights, rng.uniform());
        let factors = self.near(&of_categories[category], &mut rng);
        let bias = 0.3 * standard_normal(rng.uniform());
        Item { category, factors, log_weight: -0.8 * float::ln(f64::from(rank) + 1.0), bias }
    }

    fn user(&self, user: usize, of_communities: &[Vec<f64>], streams: &Streams) -> User {
        let mut rng = streams.stream(Purpose::Example, user as u32, USERS);
        let community = rng.below(self.communities as u64) as usize;
        let factors = self.near(&of_communities[community], &mut rng);
        let bias = 0.3 * standard_normal(rng.uniform());
        let weight = float::exp(0.8 * standard_normal(rng.uniform()));
        User { community, factors, bias, weight, drawn: rng.drawn() }
    }

    fn trust(&self, users: &[User], rng: &mut StreamRng) -> BTreeSet<(usize, usize)> {
        let mut members = vec![Vec::new(); self.communities];
        users.iter().enumerate().for_each(|(user, of)| members[of.community].push(user));
        let mut pairs = BTreeSet::new();
        for tried in 0..100 * self.trust.max(self.users) {
            if pairs.len() >= self.trust && tried >= self.users {
                break;
            }
            let one = if tried < self.users { tried } else { rng.below(self.users as u64) as usize };
            let own = &members[users[one].community];
            let is_near = rng.uniform() < self.homophily;
            let other = match is_near {
                true => own[rng.below(own.len() as u64) as usize],
                false => rng.below(self.users as u64) as usize,
            };
            // Everybody trusts somebody.
            let other = if one == other { (one + 1) % self.users } else { other };
            pairs.insert((one.min(other), one.max(other)));
        }
        pairs
    }
}
