//! How often the bootstrap interval of the growth exponent contains the truth.
//!
//! Curves `s·n^0.6 + walk` with a factor `s` per seed (uniform within 20 %) and a random walk that makes neighbouring
//! points depend on each other, as those of a cumulative regret do.

use super::{Measured, Measurement};
use crate::laboratory::Context;
use fedgenie_core::math::float::{power, sqrt};
use fedgenie_core::math::statistics::growth::exponent;
use fedgenie_core::math::statistics::proportion;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    replications: u32,
    /// Curves per replication.
    seeds: u32,
    resamples: u32,
}

const TRUTH: f64 = 0.6;
const POINTS: u32 = 24;

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let xs: Vec<f64> = (0..POINTS).map(|k| power(10.0, 3.0 + 3.0 * f64::from(k) / f64::from(POINTS - 1))).collect();
        let replications: Vec<u32> = (0..self.replications).collect();
        let hits = context.map(&replications, |&replication| {
            let curve = |seed: u32| -> Vec<f64> {
                let mut rng = Streams::new(3).stream(Purpose::Resampling, replication, seed);
                let factor = 0.8 + 0.4 * rng.uniform();
                let (mut walk, mut before) = (0.0, 0.0);
                let value = |&n: &f64| {
                    // Increments with the variance of as many independent rounds.
                    let normal = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
                    walk += 0.3 * sqrt(n - before) * normal;
                    before = n;
                    factor * power(n, TRUTH) + walk
                };
                xs.iter().map(value).collect()
            };
            let curves: Vec<Vec<f64>> = (0..self.seeds).map(curve).collect();
            let found = exponent(&xs, &curves, self.resamples, &Streams::new(u64::from(replication)));
            Ok(found.and_then(|(_, interval)| interval).is_some_and(|[low, high]| low <= TRUTH && TRUTH <= high))
        })?;
        let hits = hits.into_iter().filter(|&hit| hit).count() as u64;
        let found = proportion(hits, u64::from(self.replications));
        Ok(Measurement::new(vec![Measured::estimate("growth exponent", found)], Vec::new()))
    }
}
