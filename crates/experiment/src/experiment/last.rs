//! What edge servers have had in the last rounds that were evaluated.

use fedgenie_core::metric::{Measures, MetricId, Place, Statistic};
use fedgenie_core::state::Stateful;
use fedgenie_simulator::run::Run;

/// The measures of each edge server in the last evaluated rounds; none of a server without anything to measure on.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct LastRounds {
    /// How many rounds are kept.
    #[state(skip = "from the scenario")]
    most: usize,
    /// From the earliest on.
    rounds: Vec<Vec<Option<Vec<f64>>>>,
}

impl LastRounds {
    fn is_sound(&self) -> bool {
        self.rounds.len() <= self.most
    }

    /// Before the first round.
    pub fn new(most: Option<u32>) -> Self {
        Self { most: most.unwrap_or(0) as usize, rounds: Vec::new() }
    }

    /// Takes in a round, if servers were evaluated in it.
    pub fn observe(&mut self, run: &Run<'_>) {
        self.take_in(run.server_measures());
    }

    fn take_in(&mut self, measured: &[Option<Vec<f64>>]) {
        if self.most == 0 || measured.is_empty() {
            return;
        }
        if self.rounds.len() == self.most {
            self.rounds.remove(0);
        }
        self.rounds.push(measured.to_vec());
    }

    /// Of each measure, each server's mean over the rounds, then mean, deviation, smallest and largest over servers:
    /// `server_accuracy_mean_last`, …
    pub fn summary(&self, measures: &Measures) -> Vec<(MetricId, f64)> {
        let servers = self.rounds.first().map_or(0, Vec::len);
        let mut found = Vec::new();
        for (index, measure) in measures.of_data.iter().enumerate().filter(|_| servers > 0) {
            let of_server = |server: usize| {
                let known = self.rounds.iter().filter_map(|round| Some(round[server].as_ref()?[index]));
                let values: Vec<f64> = known.collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            let means: Vec<f64> = (0..servers).filter_map(of_server).collect();
            let all = Statistic::ALL.into_iter().zip(Statistic::of(&means));
            for (statistic, value) in all.filter(|(statistic, _)| *statistic != Statistic::P10) {
                found.push((measure.at(Place::Servers).over(Place::Servers, statistic).last(), value));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::metric::Measure;

    #[test]
    fn servers_are_averaged_over_rounds_and_then_over_each_other() {
        let of_data = vec![Measure::loss("loss"), Measure::share("accuracy")];
        let measures = Measures { of_data, main: 1, ..Measures::default() };
        let mut last = LastRounds::new(Some(2));
        assert!(last.summary(&measures).is_empty());
        let measured = |values: [Option<[f64; 2]>; 3]| values.map(|values| values.map(Vec::from));
        last.take_in(&measured([Some([9.0, 0.0]), None, Some([9.0, 0.0])]));
        // A round that is not evaluated.
        last.take_in(&[]);
        last.take_in(&measured([Some([1.0, 0.5]), None, Some([3.0, 0.25])]));
        last.take_in(&measured([Some([2.0, 0.75]), None, Some([4.0, 0.25])]));
        // Means of servers: losses 1.5 and 3.5, accuracies 0.625 and 0.25; the first round has been forgotten.
        let expected = [
            ("server_loss_mean_last", 2.5),
            ("server_loss_sd_last", 1.0),
            ("server_loss_min_last", 1.5),
            ("server_loss_max_last", 3.5),
            ("server_accuracy_mean_last", 0.4375),
            ("server_accuracy_sd_last", 0.1875),
            ("server_accuracy_min_last", 0.25),
            ("server_accuracy_max_last", 0.625),
        ];
        let found: Vec<_> = last.summary(&measures).into_iter().map(|(id, value)| (id.to_string(), value)).collect();
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
        let mut none = LastRounds::new(None);
        none.take_in(&measured([Some([1.0, 0.5]), None, None]));
        assert!(none.summary(&measures).is_empty());
    }
}
