//! Laws as a scenario writes them: `{ lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }`.
//!
//! A parameter is a number, a law it is drawn from once per client, a list with one number per client, or a column of a
//! file ([`TableConfig`]). What forms and parameters of laws exist comes from the catalogue in [`fedgenie_core::law`]; nothing here knows a
//! law by name.

mod link;
mod read;
mod schema;
mod table;
mod write;

pub use link::{LinkParameter, TraceLinkConfig};
pub use table::{TableConfig, TableFormat};

use fedgenie_core::law::{self, AnyLaw, Empirical, Form, Law, LawEntry, Mixture};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_core::units::{self, Plain, Quantity, Seconds};
use read::{LawSeed, ParameterSeed};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// How numbers of one dimension are read and written.
#[derive(Debug)]
struct Unit {
    parse: fn(&str) -> Result<f64, &'static str>,
    format: fn(f64) -> String,
    expected: &'static str,
    plain: bool,
}

impl Unit {
    const fn of<Q: Quantity>() -> Self {
        Self { parse: units::parse::<Q>, format: units::format::<Q>, expected: Q::EXPECTED, plain: Q::BASE.is_empty() }
    }
}

static SECONDS: Unit = Unit::of::<Seconds>();
static PLAIN: Unit = Unit::of::<Plain>();
static BITS_PER_SECOND: Unit = Unit::of::<units::BitsPerSecond>();

/// A number of a scenario that may differ from client to client, in its base unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    unit: UnitRef,
    source: Source,
}

#[derive(Clone, Copy)]
struct UnitRef(&'static Unit);

impl PartialEq for UnitRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.expected == other.0.expected
    }
}

impl fmt::Debug for UnitRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.expected)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Fixed(f64),
    Drawn(Box<LawConfig>),
    Each(Vec<f64>),
    Table(Box<TableConfig>),
}

/// A law and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct LawConfig {
    entry: EntryRef,
    unit: UnitRef,
    parameters: Vec<Parameter>,
    parts: Vec<(f64, LawConfig)>,
    file: PathBuf,
}

#[derive(Clone, Copy)]
struct EntryRef(&'static LawEntry);

impl PartialEq for EntryRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl fmt::Debug for EntryRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.name)
    }
}

/// A client for which a law or a number is worked out.
#[derive(Clone, Copy, Debug)]
pub struct ClientPlace<'a> {
    /// The client's number in the population: it decides the draws.
    pub client: u32,
    /// The client's number within its group: it decides the place in `each` lists.
    pub in_group: usize,
    /// The random numbers.
    pub streams: &'a Streams,
}

/// Number of parameters that one phase may draw per client.
const PLACES_PER_PHASE: u32 = 16;

impl Parameter {
    /// A parameter that is the same for all clients, without a unit.
    pub const fn plain(value: f64) -> Self {
        Self { unit: UnitRef(&PLAIN), source: Source::Fixed(value) }
    }

    /// Whether all clients have the same value.
    pub const fn is_fixed(&self) -> bool {
        matches!(self.source, Source::Fixed(_))
    }

    /// The client's value in the base unit. `index` is the place of the draw among the client's parameters.
    ///
    /// # Errors
    /// A sentence, if a list is too short or a law's parameters are refused.
    pub fn value(&self, place: &ClientPlace<'_>, index: u32) -> Result<f64, String> {
        match &self.source {
            Source::Fixed(value) => Ok(*value),
            Source::Each(values) => values.get(place.in_group).copied().ok_or_else(|| {
                format!(
                    "`each` lists {} values, and the group has more clients; list one value per client",
                    values.len()
                )
            }),
            Source::Table(table) => table.value(self.unit.0, place, index),
            Source::Drawn(law) => {
                let law = law.build_given(place)?;
                let mut rng = place.streams.stream(Purpose::PopulationParameter, place.client, index);
                Ok(law.quantile(rng.uniform()))
            }
        }
    }

    /// Checks that an `each` list has one value for every client of the group.
    pub(super) fn check_length(&self, clients: usize) -> Result<(), String> {
        match &self.source {
            Source::Each(values) if values.len() != clients => {
                Err(format!("found a list of {} values; expected {clients}, one per client", values.len()))
            }
            Source::Drawn(law) => law.check_lengths(clients),
            _ => Ok(()),
        }
    }

    /// Makes file names relative: samples to `base`, the folder of the scenario; tables to `data`, the folder given by the user, or
    /// else to `base`.
    pub(super) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match &mut self.source {
            Source::Drawn(law) => law.resolve_paths(base, data),
            Source::Table(table) => table.resolve_paths(base, data),
            Source::Fixed(_) | Source::Each(_) => {}
        }
    }

    /// Whether a client's value is random.
    const fn is_drawn(&self) -> bool {
        match &self.source {
            Source::Drawn(_) => true,
            Source::Table(table) => table.is_drawn(),
            Source::Fixed(_) | Source::Each(_) => false,
        }
    }

    /// Appends what a careful user should know about the files that were read.
    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        match &self.source {
            Source::Drawn(law) => law.notes(notes),
            Source::Table(table) => table.notes(self.unit.0, notes),
            Source::Fixed(_) | Source::Each(_) => {}
        }
    }
}

impl LawConfig {
    /// Whether all clients share the law.
    pub fn is_fixed(&self) -> bool {
        self.parameters.iter().all(Parameter::is_fixed) && self.parts.iter().all(|(_, part)| part.is_fixed())
    }

    /// Makes file names relative: samples to `base`, the folder of the scenario; tables to `data`, the folder given by the user, or
    /// else to `base`.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        if !self.file.as_os_str().is_empty() {
            self.file = base.join(&self.file);
        }
        self.parameters.iter_mut().for_each(|parameter| parameter.resolve_paths(base, data));
        self.parts.iter_mut().for_each(|(_, part)| part.resolve_paths(base, data));
    }

    /// Appends what a careful user should know about the files that were read.
    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        self.parameters.iter().for_each(|parameter| parameter.notes(notes));
        self.parts.iter().for_each(|(_, part)| part.notes(notes));
    }

    fn is_drawn(&self) -> bool {
        self.parameters.iter().any(Parameter::is_drawn) || self.parts.iter().any(|(_, part)| part.is_drawn())
    }

    /// Checks that `each` lists have one value for every client of the group.
    pub(crate) fn check_lengths(&self, clients: usize) -> Result<(), String> {
        self.parameters.iter().try_for_each(|parameter| parameter.check_length(clients))?;
        self.parts.iter().try_for_each(|(_, part)| part.check_lengths(clients))
    }

    /// The client's law. `phase` numbers the law among those of the client, so that their parameters are drawn apart.
    ///
    /// # Errors
    /// A sentence naming the parameter, what was found and what would be right.
    pub fn build(&self, place: &ClientPlace<'_>, phase: u32) -> Result<AnyLaw, String> {
        let mut index = phase * PLACES_PER_PHASE;
        let law = self.build_from(place, &mut index)?;
        if index > (phase + 1) * PLACES_PER_PHASE {
            return Err(format!("a law may have at most {PLACES_PER_PHASE} parameters"));
        }
        Ok(law)
    }

    fn build_from(&self, place: &ClientPlace<'_>, index: &mut u32) -> Result<AnyLaw, String> {
        let name = self.entry.0.name;
        let explain = |error: law::LawError| format!("{name}: {error}");
        match self.entry.0.form {
            Form::Mixture => {
                let mut parts = Vec::with_capacity(self.parts.len());
                for (weight, part) in &self.parts {
                    parts.push((*weight, part.build_from(place, index)?));
                }
                Mixture::new(parts).map(AnyLaw::from).map_err(explain)
            }
            Form::Empirical => Empirical::read(&self.file).map(AnyLaw::from).map_err(|error| error.to_string()),
            Form::Scalar | Form::Pair | Form::Named => {
                let mut values = Vec::with_capacity(self.parameters.len());
                for parameter in &self.parameters {
                    values.push(parameter.value(place, *index)?);
                    *index += 1;
                }
                (self.entry.0.build)(&values).map_err(explain)
            }
        }
    }

    /// The law, where no parameter is drawn.
    fn build_given(&self, place: &ClientPlace<'_>) -> Result<AnyLaw, String> {
        if self.is_drawn() {
            return Err(
                "a parameter is drawn from a law whose own parameters are drawn; give those as numbers".to_owned()
            );
        }
        self.build(place, 0)
    }
}

macro_rules! dimensioned {
    ($($(#[$doc:meta])* $name:ident($inner:ident) by $seed:ident($unit:ident);)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Serialize)]
            #[serde(transparent)]
            pub struct $name(pub $inner);

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    $seed(&$unit).deserialize(deserializer).map(Self)
                }
            }

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }
                fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                    $seed(&$unit).schema(generator)
                }
            }
        )+
    };
}

dimensioned! {
    /// A law of a duration.
    TimeLaw(LawConfig) by LawSeed(SECONDS);
    /// A law of a factor without a unit.
    FactorLaw(LawConfig) by LawSeed(PLAIN);
    /// A number per client without a unit.
    PlainParameter(Parameter) by ParameterSeed(PLAIN);
    /// A data rate per client.
    RateParameter(Parameter) by ParameterSeed(BITS_PER_SECOND);
    /// A duration per client.
    TimeParameter(Parameter) by ParameterSeed(SECONDS);
}

impl TimeParameter {
    /// No time, for all clients.
    pub const fn zero() -> Self {
        Self(Parameter { unit: UnitRef(&SECONDS), source: Source::Fixed(0.0) })
    }
}
