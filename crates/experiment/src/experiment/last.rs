//! Metrics of edge servers over the last evaluated rounds.

use super::RunSummary;
use super::measured::by_name;
use fedgenie_core::metric::{Measure, Measures, MetricId, Place, Statistic};
use fedgenie_core::state::Stateful;
use fedgenie_simulator::run::Run;
use std::collections::BTreeMap;

/// The measures of each edge server in the last evaluated rounds; `None` for a server without data to measure on.
#[derive(Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(super) struct LastRounds {
    /// How many rounds are asked for; the last one is kept in any case.
    #[state(skip = "from the scenario")]
    asked: Option<u32>,
    /// From the earliest on.
    rounds: Vec<Vec<Option<Vec<f64>>>>,
}

impl LastRounds {
    fn is_sound(&self) -> bool {
        self.rounds.len() <= self.most()
    }

    /// Before the first round.
    pub fn new(asked: Option<u32>) -> Self {
        Self { asked, rounds: Vec::new() }
    }

    /// How many rounds are kept.
    fn most(&self) -> usize {
        self.asked.unwrap_or(1).max(1) as usize
    }

    /// Adds a round, if servers were evaluated in it.
    pub fn observe(&mut self, run: &Run<'_>) {
        self.take_in(run.server_measures());
    }

    fn take_in(&mut self, measured: &[Option<Vec<f64>>]) {
        if measured.is_empty() {
            return;
        }
        if self.rounds.len() == self.most() {
            self.rounds.remove(0);
        }
        self.rounds.push(measured.to_vec());
    }

    /// Adds both to the results of a run.
    pub fn tell(&self, measures: &Measures, summary: &mut RunSummary) {
        summary.final_metrics.extend(by_name(self.summary(measures)));
        summary.servers = self.by_server(measures);
    }

    /// Of each measure by its name, each server's mean over the rounds that are asked for, or its value in the last
    /// evaluated one.
    fn by_server(&self, measures: &Measures) -> BTreeMap<String, Vec<Option<f64>>> {
        let servers = self.rounds.first().map_or(0, Vec::len);
        let of_measure = |(index, measure): (usize, &Measure)| {
            let of_server = |server: usize| {
                let known = self.rounds.iter().filter_map(|round| Some(round[server].as_ref()?[index]));
                let values: Vec<f64> = known.collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            };
            (measure.name.to_owned(), (0..servers).map(of_server).collect())
        };
        measures.of_data.iter().enumerate().filter(|_| servers > 0).map(of_measure).collect()
    }

    /// Of each measure, each server's mean over the rounds that are asked for, then mean, deviation, smallest and
    /// largest over servers: `server_accuracy_mean_last`, …
    fn summary(&self, measures: &Measures) -> Vec<(MetricId, f64)> {
        let mut found = Vec::new();
        let by_server = self.by_server(measures);
        for measure in measures.of_data.iter().filter(|_| self.asked.is_some_and(|asked| asked > 0)) {
            let Some(means) = by_server.get(measure.name) else { continue };
            let means: Vec<f64> = means.iter().copied().flatten().collect();
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
        none.take_in(&measured([Some([2.0, 0.75]), None, None]));
        assert!(none.summary(&measures).is_empty());
        let accuracy = [none.by_server(&measures), last.by_server(&measures)].map(|mut found| found.remove("accuracy"));
        assert_eq!(accuracy, [[Some(0.75), None, None], [Some(0.625), None, Some(0.25)]].map(|row| Some(row.to_vec())));
    }
}
