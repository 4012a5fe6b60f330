//! Spending of runs until a target, and times under heavy tails: as `fedgenie run` shows them, for a study.

use super::study::{Quantity, Study};
use fedgenie_experiment::experiment::until::{self, Until};
use fedgenie_experiment::experiment::{RunSummary, are_heavy, is_time, number, show_until};

impl Study<'_> {
    /// All runs at a point, of all policies.
    fn runs_at(&self, point: usize) -> impl Iterator<Item = &RunSummary> {
        self.arms.iter().flat_map(move |arm| arm.runs[point].values().copied())
    }

    /// The horizon of spending until a target, up to which every run of a point is known.
    pub fn horizon(&self, point: usize, key: &str) -> f64 {
        if until::is_until(key) { until::horizon(key, self.runs_at(point)) } else { f64::INFINITY }
    }

    /// Whether a number is shown as a median, because latencies at the point have no variance.
    pub fn is_median(&self, point: usize, key: &str) -> bool {
        is_time(key) && are_heavy(self.runs_at(point))
    }

    /// The number of a policy's runs that arrive, and the time by which half of them have.
    pub fn until(&self, arm: usize, point: usize, key: &str) -> Option<Until> {
        until::is_until(key).then(|| until::until(key, &self.arms[arm].runs[point], self.horizon(point, key)))?
    }

    /// A cell of the table for spending until a target: mean and number of arrivals, or `> 5400`.
    pub fn until_cell(&self, arm: usize, point: usize, key: &str) -> Option<String> {
        let until = self.until(arm, point, key)?;
        let mean = || self.estimate(arm, point, key).map(|found| show_until(&found, &until));
        until.beyond().or_else(mean)
    }

    /// The caption's sentence on the estimator of a quantity; empty where it is a mean with Student's interval.
    pub fn method(&self, quantity: &Quantity) -> String {
        let mut words = String::new();
        let points = || 0..self.points.len();
        let mut horizons: Vec<f64> = points().map(|point| self.horizon(point, &quantity.key)).collect();
        horizons.retain(|horizon| horizon.is_finite());
        horizons.sort_by(f64::total_cmp);
        if let (Some(&least), Some(&most)) = (horizons.first(), horizons.last()) {
            let to = if least < most { format!("{} to {}", number(least), number(most)) } else { number(least) };
            let unit = quantity.unit.unwrap_or("");
            words.push_str(&format!(
                " A run that never arrives counts with the horizon, the earliest end of such a run: {to} {unit}. So all seeds are in \
                 means and differences."
            ));
        }
        let all = points().flat_map(|point| (0..self.arms.len()).map(move |arm| (arm, point)));
        let grid = all
            .filter_map(|(arm, point)| self.until(arm, point, &quantity.key))
            .map(|until| until.grid)
            .fold(0.0, f64::max);
        if grid > 0.0 {
            let unit = quantity.unit.unwrap_or("");
            words.push_str(&format!(
                " A target is seen at an evaluation, {} {unit} after the one before (the largest mean of a policy); intervals reach back to that.",
                number(grid)
            ));
        }
        if points().any(|point| self.is_median(point, &quantity.key)) {
            words.push_str(
                " Latencies have no finite variance: these are medians over seeds, and their intervals lie between order \
                 statistics, which needs six seeds.",
            );
        }
        words
    }

    /// Where no run of a policy arrives: the horizon, and a note on the number of seeds.
    pub fn beyond(&self, arm: usize, point: usize, key: &str) -> Option<(f64, String)> {
        let until = self.until(arm, point, key)?;
        Some((until.horizon?, until.beyond()?))
    }
}
