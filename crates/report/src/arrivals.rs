//! Spending of runs until a target, and times under heavy tails: as `fedgenie run` shows them, for a study.

use super::study::{Quantity, Study};
use fedgenie_experiment::experiment::until::{self, FollowUp, Until};
use fedgenie_experiment::experiment::{RunSummary, are_heavy, is_time, number, show_until};

impl Study<'_> {
    /// All runs at a point, of all policies.
    fn runs_at(&self, point: usize) -> impl Iterator<Item = &RunSummary> {
        self.arms.iter().flat_map(move |arm| arm.runs[point].values().copied())
    }

    /// The watch of all runs of a point until a target.
    pub fn follow_up(&self, point: usize, key: &str) -> FollowUp {
        if until::is_until(key) { until::follow_up(key, self.runs_at(point)) } else { FollowUp::ENDLESS }
    }

    /// Whether a number is shown as a median, because latencies at the point have no variance.
    pub fn is_median(&self, point: usize, key: &str) -> bool {
        is_time(key) && are_heavy(self.runs_at(point))
    }

    /// The number of a policy's runs that arrive, and the time by which half of them have.
    pub fn until(&self, arm: usize, point: usize, key: &str) -> Option<Until> {
        until::is_until(key).then(|| until::until(key, &self.arms[arm].runs[point], self.follow_up(point, key)))?
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
        let (fair, unfair): (Vec<FollowUp>, Vec<FollowUp>) =
            points().map(|point| self.follow_up(point, &quantity.key)).partition(|follow_up| follow_up.is_fair());
        let mut horizons: Vec<f64> =
            fair.iter().map(|follow_up| follow_up.horizon).filter(|end| end.is_finite()).collect();
        horizons.sort_by(f64::total_cmp);
        if let (Some(&least), Some(&most)) = (horizons.first(), horizons.last()) {
            let to = if least < most { format!("{} to {}", number(least), number(most)) } else { number(least) };
            let unit = quantity.unit.unwrap_or("");
            words.push_str(&format!(
                " A run that never arrives counts with the horizon, the earliest end of such a run: {to} {unit}. So all seeds are in \
                 means and differences."
            ));
        }
        if !unfair.is_empty() {
            words.push_str(
                " Some runs ended without arriving before others arrived: what they need is known to be more, and no \
                 difference is made of it.",
            );
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

    /// Where a policy has no mean: the least that it can be, in a number and in words.
    pub fn beyond(&self, arm: usize, point: usize, key: &str) -> Option<(f64, String)> {
        let until = self.until(arm, point, key)?;
        Some((until.least()?, until.beyond()?))
    }
}
