//! The exponent `p` of `a n^p + b` fitted to a mean regret curve, with a bootstrap interval over seeds.
//!
//! See [`fedgenie_core::math::statistics::growth`]. Points lie on a logarithmic grid; the three models are compared by
//! Akaike's criterion, and with `a √(n ln n) + b` besides. A flat curve has the exponent −1, the end of the search.

use super::{Details, Measured, Measurement, shown, usage};
use crate::laboratory::Context;
use fedgenie_core::math::float::{ceil, power};
use fedgenie_core::math::statistics::growth::{Model, exponent, fit, gap_free_aic, mean_curve};
use fedgenie_core::rng::Streams;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::{Curve, RunSummary};
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    policies: Vec<String>,
    #[serde(default = "mean")]
    meter: String,
    /// The first round of the fit.
    from: u32,
    /// Number of resamples of the bootstrap.
    #[serde(default = "thousand")]
    resamples: u32,
}

fn mean() -> String {
    "mean".to_owned()
}

const fn thousand() -> u32 {
    1_000
}

/// Rounds of the logarithmic grid that curves keep.
fn grid(from: u32, to: u32) -> Vec<u32> {
    let kept = |j: u32| ceil(power(10.0, f64::from(j) / f64::from(Curve::PER_DECADE)));
    let mut rounds: Vec<u32> = (0..10 * Curve::PER_DECADE)
        .map(kept)
        .filter(|&round| round >= f64::from(from) && round <= f64::from(to))
        .map(|round| round as u32)
        .collect();
    rounds.dedup();
    rounds
}

impl Config {
    /// Regret of a run at the rounds of the grid.
    fn curve(&self, run: &RunSummary, rounds: &[u32]) -> Result<Vec<f64>, Error> {
        let value = |&round: &u32| {
            let point = run.curve.iter().find(|point| point.round == round);
            let entries = point.map(|point| point.regret.entries());
            let found = entries.and_then(|entries| entries.into_iter().find(|(name, _)| *name == self.meter));
            match found.and_then(|(_, value)| value) {
                Some(value) => Ok(value),
                None => usage(format!("{} has no regret by {:?} at round {round}", run.arm, self.meter)),
            }
        };
        rounds.iter().map(value).collect()
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        super::some(&self.policies, "policies")?;
        let completed = context.runs(&self.scenario)?;
        let last = completed.runs.iter().map(|run| run.rounds).min().unwrap_or_default();
        let rounds = grid(self.from, last);
        let xs: Vec<f64> = rounds.iter().map(|&round| f64::from(round)).collect();
        let title = format!("Fits to the {} regret of {} from n = {} to {last}", self.meter, self.scenario, self.from);
        let columns = [
            "policy",
            "regret at the end",
            "p",
            "best of three (AIC)",
            "AIC of ln n",
            "of n^p",
            "of n",
            "of √(n ln n)",
            "n^p, fitted",
        ];
        let mut details = Details::new(title, &columns);
        let mut measured = Vec::new();
        for policy in &self.policies {
            let runs = completed.of(policy, 0)?;
            let curves = runs.iter().map(|run| self.curve(run, &rounds)).collect::<Result<Vec<_>, _>>()?;
            let points = mean_curve(&xs, &curves);
            let end = points.last().map_or(0.0, |point| point.value);
            let Some(fits) = fit(&points) else {
                return usage(format!("the regret of {policy} is {end} at every point, or there are too few points"));
            };
            let Some((p, ci95)) = exponent(&xs, &curves, self.resamples, &Streams::new(1)) else {
                return usage(format!("the regret of {policy} has no exponent"));
            };
            let least = fits.iter().map(|fit| fit.aic).fold(f64::INFINITY, f64::min);
            let best = fits.iter().find(|fit| fit.aic == least).map_or(Model::Power, |fit| fit.model);
            let name = match best {
                Model::Logarithmic => "ln n",
                Model::Power => "n^p",
                Model::Linear => "n",
            };
            let relative = |aic: f64| format!("{:+.1}", aic - least);
            let [log, power, line] = fits.map(|fit| relative(fit.aic));
            let gap_free = relative(gap_free_aic(&points));
            let cells = [policy.clone(), shown(end), super::shown_interval(p, ci95), name.to_owned()];
            details.rows.push(cells.into_iter().chain([log, power, line, gap_free, fits[1].formula()]).collect());
            measured.push(Measured::estimate(
                policy,
                fedgenie_core::math::statistics::Estimate { mean: p, ci95, n: curves.len() },
            ));
        }
        Ok(Measurement::new(measured, vec![details]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_the_one_that_curves_keep() {
        let mut curve = Curve::default();
        for round in 1..=20_000 {
            curve.push(fedgenie_experiment::experiment::CurvePoint {
                round,
                time_s: 0.0,
                bytes: 0,
                regret: fedgenie_core::record::Regret::default(),
                bound: None,
                metrics: Vec::new(),
                unique_clients: 1,
                jain: 1.0,
                selections: 1,
                clusters: Vec::new(),
                energy_j: None,
                empty: None,
            });
        }
        let kept: Vec<u32> = curve.into_points().iter().map(|point| point.round).collect();
        let grid = grid(1, 20_000);
        assert!(grid.len() > 80 && grid.iter().all(|round| kept.contains(round)));
    }
}
