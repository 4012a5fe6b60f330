//! Identity of a metric: a measure at a place.

use super::Statistic;
use crate::state::{State, Stateful};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// Where a metric is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// A statistic over edge servers, of the models that these have made before the cloud combines them.
    Edges,
}

impl Place {
    const ALL: [Self; 6] = [Self::Test, Self::Valid, Self::Model, Self::Clients, Self::Servers, Self::Edges];

    /// The beginning of a metric's name.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Test => "test_",
            Self::Valid => "valid_",
            Self::Model => "",
            Self::Clients => "client_",
            Self::Servers => "server_",
            Self::Edges => "edge_",
        }
    }
}

/// Which models of a run are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Models {
    /// That of a round.
    #[default]
    Round,
    /// Those of the last evaluated rounds, of which it is the mean.
    Last,
    /// What clients make of the last one when they train it further.
    Tuned,
}

impl Models {
    const ALL: [Self; 3] = [Self::Round, Self::Last, Self::Tuned];

    /// The end of a metric's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Round => "",
            Self::Last => "_last",
            Self::Tuned => "_tuned",
        }
    }
}

/// Identity of a metric. Its text is the metric's name in scenarios, files and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetricId {
    /// Where it is measured.
    pub place: Place,
    /// Name of the measure.
    pub measure: &'static str,
    /// The statistic over clients or servers, at these places.
    pub over: Option<Statistic>,
    /// Of which models.
    pub of: Models,
}

impl MetricId {
    /// A measure at a place, without a statistic.
    pub const fn new(place: Place, measure: &'static str) -> Self {
        Self { place, measure, over: None, of: Models::Round }
    }

    /// The same measure as a statistic over clients or servers.
    #[must_use]
    pub const fn over(self, place: Place, statistic: Statistic) -> Self {
        Self { place, over: Some(statistic), ..self }
    }

    /// The same metric over the last evaluated rounds.
    #[must_use]
    pub const fn last(self) -> Self {
        Self { of: Models::Last, ..self }
    }

    /// The same metric of models that clients train further.
    #[must_use]
    pub const fn tuned(self) -> Self {
        Self { of: Models::Tuned, ..self }
    }

    /// The same metric of the model of a round.
    #[must_use]
    pub const fn plain(self) -> Self {
        Self { of: Models::Round, ..self }
    }

    /// Whether `name` is the metric's name.
    pub fn is_called(&self, name: &str) -> bool {
        let mut rest = Rest(name);
        write!(rest, "{self}").is_ok() && rest.0.is_empty()
    }

    /// The name with spaces, for people.
    pub fn words(&self) -> String {
        self.to_string().replace('_', " ")
    }

    /// The metric of this name and place in a file. `None` if the name fits no metric at that place.
    pub(super) fn of(place: Place, name: &str) -> Option<Self> {
        let ended =
            [Models::Last, Models::Tuned].into_iter().find_map(|of| Some((name.strip_suffix(of.suffix())?, of)));
        let (rest, of) = ended.unwrap_or((name, Models::Round));
        let rest = rest.strip_prefix(place.prefix())?;
        let split = |statistic: Statistic| Some((rest.strip_suffix(statistic.suffix())?.strip_suffix('_')?, statistic));
        let (measure, over) = match place {
            Place::Clients | Place::Servers | Place::Edges => {
                let (measure, statistic) = Statistic::ALL.into_iter().find_map(split)?;
                (measure, Some(statistic))
            }
            Place::Test | Place::Valid | Place::Model => (rest, None),
        };
        (!measure.is_empty()).then(|| Self { place, measure: super::interned(measure), over, of })
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.place.prefix(), self.measure)?;
        if let Some(statistic) = self.over {
            write!(formatter, "_{}", statistic.suffix())?;
        }
        formatter.write_str(self.of.suffix())
    }
}

impl Default for MetricId {
    fn default() -> Self {
        Self::new(Place::Model, "")
    }
}

impl Stateful for MetricId {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { place, measure, over, of } = self;
        state.choice(place, &Place::ALL);
        let mut name = (*measure).to_owned();
        state.field(&mut name);
        *measure = super::interned(&name);
        let mut has_one = over.is_some();
        state.field(&mut has_one);
        match has_one {
            true => state.choice(over.get_or_insert(Statistic::Mean), &Statistic::ALL),
            false => *over = None,
        }
        state.choice(of, &Models::ALL);
    }
}

/// The rest of a text whose beginning has been matched.
struct Rest<'a>(&'a str);

impl Write for Rest<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_and_read() {
        let accuracy = MetricId::new(Place::Test, "accuracy");
        let of_servers = accuracy.over(Place::Servers, Statistic::P10);
        let cases = [
            (accuracy, "test_accuracy"),
            (MetricId { place: Place::Valid, ..accuracy }, "valid_accuracy"),
            (MetricId::new(Place::Model, "item_staleness"), "item_staleness"),
            (accuracy.over(Place::Clients, Statistic::Sd), "client_accuracy_sd"),
            (of_servers, "server_accuracy_p10"),
            (of_servers.last(), "server_accuracy_p10_last"),
        ];
        for (id, name) in cases {
            assert_eq!((id.to_string(), MetricId::of(id.place, name)), (name.to_owned(), Some(id)));
            assert!(id.is_called(name) && !id.is_called(&name[1..]) && !id.is_called(&format!("{name}_")));
            assert!(cases.iter().all(|(other, _)| *other == id || !other.is_called(name)));
            let (mut id, mut other) = (id, MetricId::default());
            State::load(&mut other, &State::save(&mut id).unwrap()).unwrap();
            assert_eq!(other, id);
        }
        assert_eq!(MetricId::new(Place::Test, "hr_20").words(), "test hr 20");
        for (place, name) in [
            (Place::Test, "loss"),
            (Place::Test, "test_"),
            (Place::Clients, "client_loss"),
            (Place::Servers, "server__sd"),
        ] {
            assert_eq!(MetricId::of(place, name), None, "{name}");
        }
    }
}
