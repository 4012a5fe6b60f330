//! Oort's pacer: the preferred duration and its changes, by comparing the utilities of windows of rounds.

use crate::policy::ranked::median;
use fedgenie_core::id::ClientId;
use fedgenie_core::math::float::floor;
use fedgenie_core::state::Stateful;

/// The preferred duration and the windows that change it.
#[derive(Clone, Debug, Stateful)]
pub(super) struct Pacer {
    /// Rounds of a window.
    #[state(skip = "from the scenario")]
    step: u32,
    rule: Rule,
    /// Rounds so far.
    rounds: u64,
    /// Sums over the window before, and over the one under way.
    windows: [f64; 2],
    /// Sum and number of utilities in the round under way.
    achieved: (f64, u32),
}

#[derive(Clone, Copy, Debug, Stateful)]
#[state(fixed)]
enum Rule {
    /// Seconds: the step, `None` before the first selection if latencies decide it; and the preferred duration.
    Relaxing { delta: Option<f64>, preferred: Option<f64> },
    /// Points: the step, and the percentile.
    Percentile {
        #[state(skip = "from the scenario")]
        delta: f64,
        threshold: f64,
    },
}

impl Pacer {
    const fn new(step: u32, rule: Rule) -> Self {
        Self { step, rule, rounds: 0, windows: [0.0; 2], achieved: (0.0, 0) }
    }

    /// Begins with `delta`, or the median latency if it is `None`, and adds as much whenever less was achieved.
    pub(super) const fn relaxing(step: u32, delta: Option<f64>) -> Self {
        Self::new(step, Rule::Relaxing { delta, preferred: None })
    }

    /// A percentile of latencies, which goes up when about as much was achieved, and down when much more or less was.
    pub(super) const fn percentile(step: u32, delta: f64, threshold: f64) -> Self {
        Self::new(step, Rule::Percentile { delta, threshold })
    }

    /// The step in seconds; `None` if it is in points or not yet known.
    pub(super) const fn delta(&self) -> Option<f64> {
        match self.rule {
            Rule::Relaxing { delta, .. } => delta,
            Rule::Percentile { .. } => None,
        }
    }

    /// The preferred duration of a selection among a server's clients, in seconds.
    pub(super) fn preferred(&mut self, scope: &[ClientId], latency: &[f64]) -> f64 {
        let sorted = || {
            let mut sorted: Vec<f64> = scope.iter().map(|client| latency[client.index()]).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted
        };
        match &mut self.rule {
            Rule::Relaxing { delta, preferred } => {
                let delta = *delta.get_or_insert_with(|| median(&sorted()));
                *preferred.get_or_insert(delta)
            }
            Rule::Percentile { threshold, .. } if *threshold >= 100.0 => f64::INFINITY,
            Rule::Percentile { threshold, .. } => {
                let place = floor(*threshold / 100.0 * scope.len() as f64) as usize;
                sorted()[place.min(scope.len() - 1)]
            }
        }
    }

    /// Adds the utility of an update.
    pub(super) fn achieve(&mut self, utility: f64, is_exploited: bool) {
        if is_exploited || matches!(self.rule, Rule::Relaxing { .. }) {
            self.achieved.0 += utility;
            self.achieved.1 += 1;
        }
    }

    /// Closes a round; at the end of a window, compares it with the one before.
    pub(super) fn close_round(&mut self) {
        let (sum, count) = std::mem::take(&mut self.achieved);
        self.windows[1] += match self.rule {
            Rule::Relaxing { .. } => sum,
            Rule::Percentile { .. } => sum / f64::from(count.max(1)),
        };
        self.rounds += 1;
        if !self.rounds.is_multiple_of(self.step.into()) {
            return;
        }
        let [before, last] = self.windows;
        self.windows = [last, 0.0];
        if self.rounds < 2 * u64::from(self.step) {
            return;
        }
        match &mut self.rule {
            Rule::Relaxing { delta, preferred } => {
                if let (Some(delta), Some(preferred), true) = (delta, preferred, last < before) {
                    *preferred += *delta;
                }
            }
            // A threshold above 100 is out of use.
            Rule::Percentile { delta, threshold } if *threshold <= 100.0 => {
                let change = (last - before).abs();
                if change <= 0.1 * before {
                    *threshold = (*threshold + *delta).min(100.0);
                } else if change >= 5.0 * before {
                    *threshold = threshold.min((*threshold - *delta).max(*delta));
                }
            }
            Rule::Percentile { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u32) -> Vec<ClientId> {
        (0..count).map(ClientId).collect()
    }

    /// A round in which an exploited and an exploring client achieve this much each.
    fn round(pacer: &mut Pacer, utility: f64) {
        pacer.achieve(utility, true);
        pacer.achieve(utility, false);
        pacer.close_round();
    }

    #[test]
    fn the_preferred_duration_grows_where_less_was_achieved() {
        let (scope, latency) = (ids(4), [4.0, 1.0, 3.0, 9.0]);
        let mut pacer = Pacer::relaxing(2, None);
        assert_eq!(pacer.preferred(&scope, &latency), 3.5, "the median");
        // Windows 20, 18, 18, 30, 16: after rounds 4 and 10 less was achieved than before.
        let mut found = Vec::new();
        for utility in [5.0, 5.0, 4.0, 5.0, 5.0, 4.0, 10.0, 5.0, 4.0, 4.0] {
            round(&mut pacer, utility);
            found.push(pacer.preferred(&scope, &[0.0; 4]));
        }
        assert_eq!(found, [3.5, 3.5, 3.5, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 10.5]);
        assert_eq!(Pacer::relaxing(2, Some(0.25)).preferred(&scope, &latency), 0.25);
    }

    #[test]
    fn the_percentile_follows_the_means_of_the_exploited() {
        let (scope, latency) = (ids(10), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let mut pacer = Pacer::percentile(2, 10.0, 30.0);
        assert_eq!(pacer.preferred(&scope, &latency), 3.0, "the fourth of ten");
        // Windows 10, 11 (10 % more), 12.5 (13.6 %), 80 (540 %), 480 (500 %), 480 (0 %).
        let mut found = Vec::new();
        for utility in [5.0, 5.0, 5.0, 6.0, 6.5, 6.0, 40.0, 40.0, 240.0, 240.0, 240.0, 240.0] {
            round(&mut pacer, utility);
            found.push(pacer.preferred(&scope, &latency));
        }
        assert_eq!(found, [3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 3.0]);
        // Nothing before and nothing now is no change; the first thing ever is a large one.
        let mut pacer = Pacer::percentile(1, 10.0, 90.0);
        let mut found = Vec::new();
        for utility in [0.0, 0.0, 0.0, 1.0] {
            round(&mut pacer, utility);
            found.push(pacer.preferred(&scope, &latency));
        }
        assert_eq!(found, [9.0, f64::INFINITY, f64::INFINITY, 9.0]);
        let mut pacer = Pacer::percentile(1, 10.0, 101.0);
        [1.0, 1.0, 9.0].into_iter().for_each(|utility| round(&mut pacer, utility));
        assert_eq!(pacer.preferred(&scope, &latency), f64::INFINITY, "it is out of use");
    }
}
