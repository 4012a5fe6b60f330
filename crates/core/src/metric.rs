//! Metrics: the measures of a task, their places, and the better direction.
//!
//! # Definition
//! A task declares *measures*: those of data, such as `loss`, and those of the model alone, such as `item_staleness`. A
//! *metric* is a measure at a place:
//!
//! | metric | measured on |
//! |---|---|
//! | `test_M`, `valid_M` | test data, validation data |
//! | `client_M_S` | each client's data; `S` is a [statistic](Statistic) over clients |
//! | `server_M_S` | each edge server's test data, or its clients' data where test data are not dealt to servers; `S` is a statistic over servers |
//! | `edge_M_S` | the same data, under the models that edge servers have made before the cloud combines them |
//! | `M` | no data: a measure of the model alone |
//!
//! Models are compared by one measure on test data. Where no model is whole without a part that clients keep, there are
//! no metrics on test and validation data, and models are compared by that measure's mean over clients.
//!
//! A metric is known by its [`MetricId`]. Its name is a text for scenarios, files and people: [`named`] finds the
//! metric that a user names, [`Names`] those of a result folder.

mod id;
mod statistic;

pub use id::{MetricId, Models, Place};
pub use statistic::{Statistic, between};

use crate::config::Complaint;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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

/// A quantity that a task measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Its name, as in metrics.
    pub name: &'static str,
    /// Which values are better.
    pub better: Better,
    /// Its smallest and largest value, as far as they are bounded.
    pub range: (f64, f64),
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
    /// Whether it is the loss that training lowers, by which models of clusters and updates are compared.
    pub is_loss: bool,
}

impl Measure {
    /// The loss that training lowers: a number from 0 on.
    pub const fn loss(name: &'static str) -> Self {
        Self { is_loss: true, ..Self::error(name) }
    }

    /// A number from 0 on, of which less is better.
    pub const fn error(name: &'static str) -> Self {
        Self { name, better: Better::Lower, range: (0.0, f64::INFINITY), unit: "", is_loss: false }
    }

    /// A share from 0 to 1, of which more is better.
    pub const fn share(name: &'static str) -> Self {
        Self { better: Better::Higher, range: (0.0, 1.0), ..Self::error(name) }
    }

    /// The same with another range.
    #[must_use]
    pub const fn within(self, least: f64, most: f64) -> Self {
        Self { range: (least, most), ..self }
    }

    /// The same with a unit.
    #[must_use]
    pub const fn in_units(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// The same with another name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: interned(name), ..self }
    }

    /// The metric at a place, without a statistic.
    pub const fn at(&self, place: Place) -> MetricId {
        MetricId::new(place, self.name)
    }

    fn metric(&self, id: MetricId, main: bool) -> Metric {
        let bound = |bound: f64| bound.is_finite().then_some(bound);
        let (better, range) = match id.over {
            Some(Statistic::Sd) => (Better::Lower, (Some(0.0), None)),
            _ => (self.better, (bound(self.range.0), bound(self.range.1))),
        };
        Metric { id, better, range, main }
    }
}

/// A metric of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Metric {
    /// Its identity.
    pub id: MetricId,
    /// Which values are better.
    pub better: Better,
    /// Its smallest and largest value; `None` where it is unbounded.
    pub range: (Option<f64>, Option<f64>),
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

/// The metric that a user names, if it is among these.
pub fn named<'a>(metrics: &'a [Metric], name: &str) -> Option<&'a Metric> {
    metrics.iter().find(|metric| metric.id.is_called(name))
}

/// The metric named by the user under a key.
///
/// # Errors
/// A complaint with the known names.
pub fn asked<'a>(metrics: &'a [Metric], key: &'static str, name: &str) -> Result<&'a Metric, Complaint> {
    named(metrics, name).ok_or_else(|| {
        let known = if metrics.is_empty() { "none".to_owned() } else { names(metrics) };
        Complaint::new(key, format!("found {name:?}; the metrics of this scenario are: {known}"))
    })
}

/// The names of metrics, separated by commas.
pub fn names(metrics: &[Metric]) -> String {
    let names: Vec<String> = metrics.iter().map(|metric| metric.id.to_string()).collect();
    names.join(", ")
}

/// Metrics by their names, to read a result folder.
#[derive(Clone, Debug)]
pub struct Names(BTreeMap<String, MetricId>);

impl Names {
    /// The names that a run may have if its task declares these metrics.
    pub fn of(metrics: &[Metric]) -> Self {
        let all = metrics.iter().flat_map(|metric| [metric.id, metric.id.last(), metric.id.tuned()]);
        Self(all.map(|id| (id.to_string(), id)).collect())
    }

    /// The metric of a name: a declared one, its mean over the last evaluated rounds, or else a number of the model
    /// alone, such as `active_clusters`.
    pub fn read(&self, name: &str) -> MetricId {
        let known = self.0.get(name).copied();
        known.unwrap_or_else(|| MetricId::new(Place::Model, interned(name)))
    }
}

/// The value of a metric, if it was measured.
pub fn value_of(measured: &[(MetricId, f64)], id: MetricId) -> Option<f64> {
    measured.iter().find(|(known, _)| *known == id).map(|&(_, value)| value)
}

/// A metric in a file.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    better: Better,
    range: (Option<f64>, Option<f64>),
    place: Place,
    main: bool,
}

impl From<Metric> for Written {
    fn from(Metric { id, better, range, main }: Metric) -> Self {
        Self { name: id.to_string(), better, range, place: id.place, main }
    }
}

impl From<Written> for Metric {
    /// A name that fits no metric at its place, as in a changed file, is read as a number of the model.
    fn from(Written { name, better, range, place, main }: Written) -> Self {
        let id = MetricId::of(place, &name).unwrap_or_else(|| MetricId::new(Place::Model, interned(&name)));
        Self { id, better, range, main }
    }
}

/// The measures of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// Measures of data, in the order in which the task gives them.
    pub of_data: Vec<Measure>,
    /// Measures of the model alone.
    pub of_model: Vec<Measure>,
    /// Numbers of the run beside its models, at the place of these.
    pub of_run: Vec<Measure>,
    /// Whether there are validation data.
    pub has_valid: bool,
    /// Whether no model is whole without a part that clients keep, so that models are measured at clients alone.
    pub is_personal: bool,
    /// The index in `of_data` of the measure by which models are compared.
    pub main: usize,
}

impl Measures {
    /// The measure by which models are compared; `None` if nothing is measured.
    pub fn main(&self) -> Option<&Measure> {
        self.of_data.get(self.main)
    }

    /// The same, where a server can judge its model by it: one that is whole.
    pub fn judged(&self) -> Option<&Measure> {
        self.main().filter(|_| !self.is_personal)
    }

    /// The metric that a measure of data is for models: on test data, or the mean over clients.
    pub const fn of_models(&self, measure: &Measure) -> MetricId {
        match self.is_personal {
            true => measure.at(Place::Clients).over(Place::Clients, Statistic::Mean),
            false => measure.at(Place::Test),
        }
    }

    /// The loss among the measures of data, and its index.
    pub fn loss(&self) -> Option<(usize, &Measure)> {
        self.of_data.iter().enumerate().find(|(_, measure)| measure.is_loss)
    }

    /// All metrics, in the order in which a round has them; `over` are the places of statistics that are evaluated.
    pub fn metrics(&self, over: &[Place]) -> Vec<Metric> {
        let places = [Some(Place::Test), self.has_valid.then_some(Place::Valid)]
            .map(|place| place.filter(|_| !self.is_personal));
        let mut metrics = Vec::new();
        for place in places.into_iter().flatten() {
            for (index, measure) in self.of_data.iter().enumerate() {
                metrics.push(measure.metric(measure.at(place), index == self.main && place == Place::Test));
            }
        }
        let alone = self.of_model.iter().chain(&self.of_run);
        metrics.extend(alone.map(|measure| measure.metric(measure.at(Place::Model), false)));
        for &place in over {
            for (index, measure) in self.of_data.iter().enumerate() {
                let id = |statistic| measure.at(place).over(place, statistic);
                let is_main = |id| index == self.main && self.is_personal && id == self.of_models(measure);
                let all = Statistic::ALL.into_iter().map(id);
                metrics.extend(all.map(|id| measure.metric(id, is_main(id))));
            }
        }
        metrics
    }

    /// Whether a metric belongs to the `model` digest. For metrics over clients see [`Statistic::is_digested`]; metrics
    /// over edge servers are left out, so that measuring them changes no digest.
    pub fn is_digested(&self, id: MetricId) -> bool {
        let measure = || self.of_data.iter().find(|measure| measure.name == id.measure);
        match (id.place, id.over) {
            (Place::Clients, Some(over)) => measure().is_none_or(|measure| over.is_digested(measure.better)),
            (Place::Servers | Place::Edges, _) => false,
            _ => true,
        }
    }
}

/// All statistics of a measure over clients or edge servers that have these values.
pub fn statistics(place: Place, measure: &Measure, values: &[f64]) -> impl Iterator<Item = (MetricId, f64)> {
    let id = measure.at(place);
    let of = Statistic::ALL.into_iter().zip(Statistic::of(values));
    of.map(move |(statistic, value)| (id.over(place, statistic), value))
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

    #[test]
    fn a_metric_is_a_measure_at_a_place() {
        let measures = Measures {
            of_data: vec![Measure::loss("loss"), Measure::share("hr_20")],
            of_model: vec![Measure::error("item_staleness")],
            of_run: Vec::new(),
            has_valid: true,
            is_personal: false,
            main: 1,
        };
        let metrics = measures.metrics(&[Place::Clients]);
        let names: Vec<String> = metrics.iter().map(|metric| metric.id.to_string()).collect();
        let first = ["test_loss", "test_hr_20", "valid_loss", "valid_hr_20", "item_staleness", "client_loss_mean"];
        assert_eq!(names[..6], first);
        assert_eq!(names.len(), 5 + 2 * 5);
        assert_eq!(names[14], "client_hr_20_max");
        let main: Vec<_> = metrics.iter().filter(|metric| metric.main).map(|metric| metric.id.to_string()).collect();
        assert_eq!(main, ["test_hr_20"]);
        assert!(
            metrics[1].can_be(1.0) && !metrics[1].can_be(1.5) && metrics[0].can_be(9.0) && !metrics[0].can_be(-1.0)
        );
        let sd = named(&metrics, "client_hr_20_sd").unwrap();
        assert_eq!((sd.better, sd.range), (Better::Lower, (Some(0.0), None)));
        assert_eq!(measures.loss().map(|(index, loss)| (index, loss.name)), Some((0, "loss")));
        let digested: Vec<&str> = metrics
            .iter()
            .zip(&names)
            .filter(|(metric, _)| measures.is_digested(metric.id))
            .map(|(_, name)| &**name)
            .skip(5)
            .collect();
        let expected =
            ["client_loss_mean", "client_loss_sd", "client_hr_20_mean", "client_hr_20_sd", "client_hr_20_p10"];
        assert_eq!(digested[..5], expected);
        assert_eq!(digested[5..], ["client_hr_20_min"]);
    }

    /// Where clients keep a part of every model, there is nothing to measure on test data.
    #[test]
    fn personal_models_are_measured_at_clients() {
        let of_data = vec![Measure::loss("loss"), Measure::share("accuracy")];
        let measures = Measures { of_data, has_valid: true, is_personal: true, main: 1, ..Measures::default() };
        let metrics = measures.metrics(&[Place::Clients]);
        assert!(metrics.len() == 10 && metrics.iter().all(|metric| metric.id.place == Place::Clients));
        let main: Vec<_> = metrics.iter().filter(|metric| metric.main).map(|metric| metric.id.to_string()).collect();
        assert_eq!(main, ["client_accuracy_mean"]);
        assert_eq!((measures.judged(), measures.main().map(|main| main.name)), (None, Some("accuracy")));
        let whole = Measures { is_personal: false, ..measures.clone() };
        assert_eq!(whole.judged(), whole.main());
        let of = |measures: &Measures| measures.of_models(&measures.of_data[0]).to_string();
        assert_eq!([of(&measures), of(&whole)], ["client_loss_mean", "test_loss"]);
    }

    /// A file has the name of a metric, its place beside it.
    #[test]
    fn a_metric_is_written_with_its_name() {
        let measures = Measures { of_data: vec![Measure::share("accuracy")], ..Measures::default() };
        for metric in measures.metrics(&[Place::Clients, Place::Servers]) {
            let written = serde_json::to_value(&metric).unwrap();
            assert_eq!(written["name"], metric.id.to_string());
            assert_eq!(serde_json::from_value::<Metric>(written).unwrap(), metric);
        }
        let first = serde_json::to_string(&measures.metrics(&[])[0]).unwrap();
        let expected = r#"{"name":"test_accuracy","better":"higher","range":[0.0,1.0],"place":"test","main":true}"#;
        assert_eq!(first, expected);
        let metrics = measures.metrics(&[Place::Servers, Place::Edges]);
        let server = metrics[1].id;
        assert_eq!(server, metrics[0].id.over(Place::Servers, Statistic::Mean));
        let names = Names::of(&metrics);
        assert_eq!(names.read("server_accuracy_mean"), server);
        assert_eq!(names.read("server_accuracy_mean_last"), server.last());
        assert_eq!(names.read("active_clusters"), MetricId::new(Place::Model, "active_clusters"));
        let wrong = first.replace("test_accuracy", "accuracy");
        // A file that was changed: a number of the model, by the name that it has.
        let read: Metric = serde_json::from_str(&wrong).unwrap();
        assert_eq!(read.id, MetricId::new(Place::Model, "accuracy"));
    }

    #[test]
    fn names_are_kept_once() {
        assert!(std::ptr::eq(interned("test_x"), interned(&format!("test_{}", "x"))));
        assert_eq!(Measure::share("hr").named("hr_5"), Measure::share("hr_5"));
    }
}
