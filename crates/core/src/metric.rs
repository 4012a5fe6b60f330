//! Metrics: what a task measures, where, and which way is better.
//!
//! # Definition
//! A task declares *measures*: those of data, such as `loss`, and those of the model alone, such as `item_staleness`. A
//! *metric* is a measure at a place:
//!
//! | metric | measured on |
//! |---|---|
//! | `test_M`, `valid_M` | test data, validation data |
//! | `client_M_S` | each client's data; `S` is a statistic over clients |
//! | `server_M_S` | each edge server's test data, or its clients' data where test data are not dealt to servers; `S` is a statistic over servers |
//! | `M` | no data: a measure of the model alone |
//!
//! Statistics over `n` clients or servers, each of which counts alike: `mean`; `sd`, with divisor `n`; `p10`, the value
//! at position `⌊n/10⌋` (from 0) in ascending order, of which at most a tenth fall short; `min`; `max`.

use crate::math::float::sqrt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Smaller ones, as of a loss.
    Lower,
    /// Larger ones, as of an accuracy.
    Higher,
}

impl Better {
    /// The value, negated where smaller is better: larger is always better.
    pub const fn quality(self, value: f64) -> f64 {
        match self {
            Self::Lower => -value,
            Self::Higher => value,
        }
    }
}

/// Something that a task measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Its name, as in metrics.
    pub name: &'static str,
    /// Which values are better.
    pub better: Better,
    /// Its smallest and largest value, as far as they are bounded.
    pub range: (f64, f64),
}

impl Measure {
    /// A loss, of which less is better: from 0 on.
    pub fn loss(name: &str) -> Self {
        Self { name: interned(name), better: Better::Lower, range: (0.0, f64::INFINITY) }
    }

    /// A share from 0 to 1, of which more is better.
    pub fn share(name: &str) -> Self {
        Self { name: interned(name), better: Better::Higher, range: (0.0, 1.0) }
    }
}

/// Where a metric is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On test data.
    Test,
    /// On validation data.
    Valid,
    /// On no data.
    Model,
    /// A statistic over clients.
    Clients,
    /// A statistic over edge servers.
    Servers,
}

/// A metric of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Which values are better.
    pub better: Better,
    /// Its smallest and largest value; none where it is not bounded.
    pub range: (Option<f64>, Option<f64>),
    /// Where it is measured.
    pub place: Place,
    /// Whether it is the one by which models are compared.
    pub main: bool,
}

impl Metric {
    /// Whether a value can be one of the metric's.
    pub fn can_be(&self, value: f64) -> bool {
        let (least, most) = self.range;
        least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
    }
}

/// A statistic over clients or edge servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The standard deviation, divisor n.
    Sd,
    /// The tenth percentile.
    P10,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Statistic {
    /// All of them, in the order in which metrics have them.
    pub const ALL: [Self; 5] = [Self::Mean, Self::Sd, Self::P10, Self::Min, Self::Max];

    /// The suffix of a metric's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Sd => "sd",
            Self::P10 => "p10",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Whether it belongs to the `model` digest, where it is one of a measure of which `better` values are better: mean
    /// and deviation, and what describes those who fare worst where larger is better.
    pub const fn is_digested(self, better: Better) -> bool {
        match (self, better) {
            (Self::Mean | Self::Sd, _) | (Self::P10 | Self::Min, Better::Higher) => true,
            (Self::Max, _) | (Self::P10 | Self::Min, Better::Lower) => false,
        }
    }

    /// All statistics of some values, in the order of [`Statistic::ALL`]; NaN of none.
    pub fn of(values: &[f64]) -> [f64; 5] {
        if values.is_empty() {
            return [f64::NAN; 5];
        }
        let count = values.len() as f64;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mean = between(values.iter().sum::<f64>() / count, values);
        let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        [mean, sqrt(variance), sorted[sorted.len() / 10], sorted[0], sorted[sorted.len() - 1]]
    }
}

/// A mean of values, which rounding may have put beyond the smallest or the largest of them: that of equal ones is
/// theirs.
pub fn between(mean: f64, values: &[f64]) -> f64 {
    if mean.is_nan() {
        return mean;
    }
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
    mean.max(low).min(high)
}

/// What a task measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// Measures of data, in the order in which the task gives them.
    pub of_data: Vec<Measure>,
    /// Measures of the model alone.
    pub of_model: Vec<Measure>,
    /// Whether there are validation data.
    pub has_valid: bool,
    /// The index in `of_data` of the measure by which models are compared.
    pub main: usize,
}

impl Measures {
    /// The measure by which models are compared; none where nothing is measured.
    pub fn main(&self) -> Option<&Measure> {
        self.of_data.get(self.main)
    }

    /// All metrics, in the order in which a round has them. `clients` and `servers` say whether these are evaluated.
    pub fn metrics(&self, clients: bool, servers: bool) -> Vec<Metric> {
        let places = [Some(Place::Test), self.has_valid.then_some(Place::Valid)];
        let mut metrics = Vec::new();
        for place in places.into_iter().flatten() {
            for (index, measure) in self.of_data.iter().enumerate() {
                metrics.push(measure.at(place, None, index == self.main && place == Place::Test));
            }
        }
        metrics.extend(self.of_model.iter().map(|measure| measure.at(Place::Model, None, false)));
        let over = [clients.then_some(Place::Clients), servers.then_some(Place::Servers)];
        for place in over.into_iter().flatten() {
            for measure in &self.of_data {
                let statistics = Statistic::ALL.into_iter();
                metrics.extend(statistics.map(|statistic| measure.at(place, Some(statistic), false)));
            }
        }
        metrics
    }
}

impl Measure {
    fn at(&self, place: Place, statistic: Option<Statistic>, main: bool) -> Metric {
        let bound = |bound: f64| bound.is_finite().then_some(bound);
        let (better, range) = match statistic {
            Some(Statistic::Sd) => (Better::Lower, (Some(0.0), None)),
            _ => (self.better, (bound(self.range.0), bound(self.range.1))),
        };
        Metric { name: self.metric(place, statistic).to_owned(), better, range, place, main }
    }

    /// The name of the metric at a place.
    pub fn metric(&self, place: Place, statistic: Option<Statistic>) -> &'static str {
        let name = self.name;
        let suffix = statistic.map_or(String::new(), |statistic| format!("_{}", statistic.suffix()));
        interned(&match place {
            Place::Test => format!("test_{name}"),
            Place::Valid => format!("valid_{name}"),
            Place::Model => name.to_owned(),
            Place::Clients => format!("client_{name}{suffix}"),
            Place::Servers => format!("server_{name}{suffix}"),
        })
    }
}

/// A name that lasts as long as the process. Names are few: those of a scenario's metrics.
pub fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding puts no mean beyond what it is of: 0.1 three times adds up to more than 0.3.
    #[test]
    fn equal_values_have_their_mean_and_no_deviation() {
        for count in 1..50 {
            let [mean, sd, p10, min, max] = Statistic::of(&vec![0.1; count]);
            assert_eq!([mean, sd, p10, min, max], [0.1, 0.0, 0.1, 0.1, 0.1], "{count}");
        }
        assert!(Statistic::of(&[f64::NAN, 1.0])[0].is_nan());
        assert_eq!(Statistic::of(&[1.0, 3.0]), [2.0, 1.0, 1.0, 1.0, 3.0]);
    }

    #[test]
    fn a_metric_is_a_measure_at_a_place() {
        let measures = Measures {
            of_data: vec![Measure::loss("loss"), Measure::share("hr_20")],
            of_model: vec![Measure::loss("item_staleness")],
            has_valid: true,
            main: 1,
        };
        let metrics = measures.metrics(true, false);
        let names: Vec<&str> = metrics.iter().map(|metric| &*metric.name).collect();
        let first = ["test_loss", "test_hr_20", "valid_loss", "valid_hr_20", "item_staleness", "client_loss_mean"];
        assert_eq!(names[..6], first);
        assert_eq!(names.len(), 5 + 2 * 5);
        assert_eq!(names[14], "client_hr_20_max");
        let main: Vec<_> = metrics.iter().filter(|metric| metric.main).map(|metric| &*metric.name).collect();
        assert_eq!(main, ["test_hr_20"]);
        assert!(
            metrics[1].can_be(1.0) && !metrics[1].can_be(1.5) && metrics[0].can_be(9.0) && !metrics[0].can_be(-1.0)
        );
        let sd = metrics.iter().find(|metric| metric.name == "client_hr_20_sd").unwrap();
        assert_eq!((sd.better, sd.range), (Better::Lower, (Some(0.0), None)));
    }

    #[test]
    fn statistics_by_hand() {
        // Mean 2.5, deviations −1.5 … 1.5: variance 5/4.
        let found = Statistic::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(found, [2.5, 1.25_f64.sqrt(), 1.0, 1.0, 4.0]);
        let many: Vec<f64> = (0..25).rev().map(f64::from).collect();
        assert_eq!(Statistic::of(&many)[2], 2.0);
        assert!(Statistic::of(&[]).iter().all(|value| value.is_nan()));
    }

    #[test]
    fn names_are_kept_once() {
        assert!(std::ptr::eq(interned("test_x"), interned(&format!("test_{}", "x"))));
    }
}
