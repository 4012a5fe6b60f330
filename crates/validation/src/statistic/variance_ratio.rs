//! Gain of common random numbers: the variance of an unpaired difference over that of the paired one.
//!
//! For two policies with values `x_s`, `y_s` over seeds the ratio is `(var x + var y) / var(x − y)`: the factor by
//! which more seeds would be needed without pairing. Intervals are percentiles of a bootstrap over seeds.

use super::{Details, Measured, Measurement, number, shown, shown_interval};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{Estimate, quantile, variance};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Of `summary.json`.
    value: String,
    /// Left out, for example because they are the same in every run.
    #[serde(default)]
    without: Vec<String>,
}

const RESAMPLES: u32 = 1_000;

fn ratio(pairs: &[(f64, f64)]) -> f64 {
    let left: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
    let right: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let differences: Vec<f64> = pairs.iter().map(|pair| pair.0 - pair.1).collect();
    let paired = variance(&differences);
    // Policies that never differ are compared without error.
    if paired == 0.0 { f64::INFINITY } else { (variance(&left) + variance(&right)) / paired }
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let completed = context.runs(&self.scenario)?;
        let policies: Vec<String> =
            completed.policies().into_iter().filter(|policy| !self.without.contains(policy)).collect();
        let mut columns = Vec::new();
        for policy in &policies {
            let runs = completed.of(policy, 0)?;
            columns.push(runs.iter().map(|run| number(run, &self.value, None)).collect::<Result<Vec<_>, _>>()?);
        }
        let seeds = columns.first().map_or(0, Vec::len);
        let mut all = Vec::new();
        for (index, one) in columns.iter().enumerate() {
            for (other, values) in columns.iter().enumerate().skip(index + 1) {
                let pairs: Vec<(f64, f64)> = one.iter().copied().zip(values.iter().copied()).collect();
                all.push((format!("{} and {}", policies[index], policies[other]), pairs));
            }
        }
        if all.is_empty() || seeds < 3 {
            return super::usage("a variance ratio needs two policies and three seeds");
        }
        let streams = Streams::new(1);
        // One resampling of seeds for all pairs, so that the median over pairs has an interval as well.
        let resampled: Vec<Vec<f64>> = (0..RESAMPLES)
            .map(|resample| {
                let mut rng = streams.stream(Purpose::Resampling, resample, 0);
                let chosen: Vec<usize> = (0..seeds).map(|_| rng.below(seeds as u64) as usize).collect();
                all.iter()
                    .map(|(_, pairs)| ratio(&chosen.iter().map(|&seed| pairs[seed]).collect::<Vec<_>>()))
                    .collect()
            })
            .collect();
        let interval = |mut values: Vec<f64>| {
            values.retain(|value| value.is_finite());
            values.sort_by(f64::total_cmp);
            (!values.is_empty()).then(|| [quantile(&values, 0.025), quantile(&values, 0.975)])
        };
        let median = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5)
        };
        let title = format!("Variance of unpaired over paired differences, {}, {seeds} seeds", self.value);
        let mut details = Details::new(title, &["pair", "ratio", "interval narrower by the factor"]);
        let ratios: Vec<f64> = all.iter().map(|(_, pairs)| ratio(pairs)).collect();
        for (index, ((pair, _), &found)) in all.iter().zip(&ratios).enumerate() {
            let ends = interval(resampled.iter().map(|values| values[index]).collect());
            details.rows.push(vec![
                pair.clone(),
                shown_interval(found, ends),
                shown(fedgenie_core::math::float::sqrt(found)),
            ]);
        }
        let ci95 = interval(resampled.iter().map(|values| median(values)).collect());
        let middle = Measured::estimate("median over pairs", Estimate { mean: median(&ratios), ci95, n: seeds });
        Ok(Measurement::new(vec![middle], vec![details]))
    }
}
