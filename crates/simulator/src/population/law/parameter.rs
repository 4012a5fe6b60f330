//! A number of a scenario that may differ from client to client: `"25 ms"`, `{ uniform = ["10 ms", "50 ms"] }`,
//! `{ each = ["25 ms", "30 ms"] }` or `{ table = { file = "measured.csv", .. } }`.
//!
//! # Definition
//! A number is that of every client. Of a law (`uniform`, `lognormal`, …) each client draws its own,
//! once and for all. `each` has one number per client, in their order. `table` takes one per client from a file: see
//! `describe value/table`. With a unit, numbers are quantities in quotes: see `describe value/units`.
//!
//! What derived serde cannot read without losing the line and path of a mistake is read by hand here: a value that is a
//! text, a number or a table, and a table whose one key is the name of a law or another word.

use super::{ClientLaw, GroupClient, TableConfig};
use crate::population::trace::join::Source;
use fedgenie_core::law::config::{ListOf, OneOf, law_named, names_and};
use fedgenie_core::law::{Law, NAMES};
use fedgenie_core::rng::Purpose;
use fedgenie_core::units::{Amount, Quantity};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, MapAccess, Unexpected};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

/// A number, a law it is drawn from once per client, a list with one number per client, or a column of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged, bound = "")]
pub enum Parameter<Q: Quantity> {
    /// The same number for all clients.
    Fixed(Amount<Q>),
    /// Drawn once per client.
    Drawn(Box<ClientLaw<Q>>),
    /// Listed.
    Each {
        /// One number per client of the group.
        each: Vec<Amount<Q>>,
    },
    /// A column of a file.
    Table {
        /// Which one.
        table: Box<TableConfig>,
    },
}

/// Zero for all clients.
impl<Q: Quantity> Default for Parameter<Q> {
    fn default() -> Self {
        Self::Fixed(Amount::new(0.0))
    }
}

/// A parameter of any quantity.
pub trait AnyParameter {
    /// Whether all clients have the same value.
    fn is_fixed(&self) -> bool;

    /// Whether a client's value is random.
    fn is_drawn(&self) -> bool;

    /// The client's value in the base unit. `index` numbers the parameter among those of the client, so that each is
    /// drawn apart.
    ///
    /// # Errors
    /// A sentence, if a list is too short or a law's parameters are refused.
    fn value(&self, client: &GroupClient<'_>, index: u32) -> Result<f64, String>;

    /// Checks that an `each` list has one value for every client of the group.
    ///
    /// # Errors
    /// A sentence, if the list is longer or shorter.
    fn check_length(&self, clients: usize) -> Result<(), String>;

    /// Appends what a careful user should know about the files that were read.
    fn notes(&self, notes: &mut Vec<String>);

    /// Appends the files that it reads, as far as they can be read; `path` is where the group has the number.
    fn sources(&self, _path: &str, _found: &mut Vec<Source>) {}
}

impl<Q: Quantity> AnyParameter for Parameter<Q> {
    fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    fn is_drawn(&self) -> bool {
        match self {
            Self::Drawn(_) => true,
            Self::Table { table } => table.is_drawn(),
            Self::Fixed(_) | Self::Each { .. } => false,
        }
    }

    fn value(&self, client: &GroupClient<'_>, index: u32) -> Result<f64, String> {
        match self {
            Self::Fixed(value) => Ok(value.0),
            Self::Each { each } => each.get(client.in_group).map(|value| value.0).ok_or_else(|| {
                format!("`each` lists {} values, and the group has more clients; list one value per client", each.len())
            }),
            Self::Table { table } => table.value::<Q>(client, index),
            Self::Drawn(law) => {
                let law = law.build_given(client)?;
                let mut rng = client.streams.draw(Purpose::PopulationParameter, client.client, index);
                Ok(law.quantile(rng.uniform()))
            }
        }
    }

    fn check_length(&self, clients: usize) -> Result<(), String> {
        match self {
            Self::Each { each } if each.len() != clients => {
                Err(format!("found a list of {} values; expected {clients}, one per client", each.len()))
            }
            Self::Drawn(law) => law.check_lengths(clients),
            _ => Ok(()),
        }
    }

    fn notes(&self, notes: &mut Vec<String>) {
        match self {
            Self::Drawn(law) => law.notes(notes),
            Self::Table { table } => table.notes::<Q>(notes),
            Self::Fixed(_) | Self::Each { .. } => {}
        }
    }

    fn sources(&self, path: &str, found: &mut Vec<Source>) {
        match self {
            Self::Drawn(law) => law.sources(path, found),
            Self::Table { table } => found.extend(table.source::<Q>(path)),
            Self::Fixed(_) | Self::Each { .. } => {}
        }
    }
}

impl<Q: Quantity> Parameter<Q> {
    /// Makes file names relative: samples to `base`, the folder of the scenario; tables to `data`, the folder given by
    /// the user, or else to `base`.
    pub(in crate::population) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            Self::Drawn(law) => law.resolve_paths(base, data),
            Self::Table { table } => table.resolve_paths(base, data),
            Self::Fixed(_) | Self::Each { .. } => {}
        }
    }
}

/// Names of laws, and the keys of other sources.
static KEYS: [&str; NAMES.len() + 2] = names_and(&["each", "table"]);

impl<'de, Q: Quantity> Deserialize<'de> for Parameter<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ParameterVisitor(PhantomData))
    }
}

/// Reads a number, or a table whose one key says where the number comes from.
pub(super) struct ParameterVisitor<Q>(pub PhantomData<Q>);

impl<'de, Q: Quantity> de::Visitor<'de> for ParameterVisitor<Q> {
    type Value = Parameter<Q>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = Q::EXPECTED;
        write!(formatter, "{number}, a law to draw it from per client, {{ each = [..] }} or {{ table = {{ .. }} }}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Parameter<Q>, E> {
        Amount::deserialize(text.into_deserializer()).map(Parameter::Fixed)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Parameter<Q>, E> {
        Amount::deserialize(number.into_deserializer()).map(Parameter::Fixed)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Parameter<Q>, E> {
        Amount::deserialize(number.into_deserializer()).map(Parameter::Fixed)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameter<Q>, A::Error> {
        let key = only_key(&mut map, &KEYS, &self)?;
        Parameter::named(key, map)
    }
}

impl<Q: Quantity> Parameter<Q> {
    /// Reads what stands behind a key that was just read.
    pub(super) fn named<'de, A: MapAccess<'de>>(key: &'static str, mut map: A) -> Result<Self, A::Error> {
        let parameter = match key {
            "each" => {
                let expected = format!("a list with one value per client, each {}", Q::EXPECTED);
                Self::Each { each: map.next_value_seed(ListOf::new(expected))? }
            }
            "table" => Self::Table { table: map.next_value_seed(TableOf::<Q>(PhantomData))? },
            law => Self::Drawn(Box::new(ClientLaw(law_named(law, &mut map)?))),
        };
        expect_end(map)?;
        Ok(parameter)
    }
}

/// Reads a column's settings and checks them, so that what is wrong is said of them.
struct TableOf<Q>(PhantomData<Q>);

impl<'de, Q: Quantity> de::DeserializeSeed<'de> for TableOf<Q> {
    type Value = Box<TableConfig>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Box<TableConfig>, D::Error> {
        let table: Box<TableConfig> = Deserialize::deserialize(deserializer)?;
        table.check::<Q>().map_err(de::Error::custom)?;
        Ok(table)
    }
}

/// Reads the first key of a table that has to be one of these; an empty table is not what the visitor expects.
pub(super) fn only_key<'de, A: MapAccess<'de>>(
    map: &mut A,
    keys: &'static [&'static str],
    expected: &dyn de::Expected,
) -> Result<&'static str, A::Error> {
    map.next_key_seed(OneOf(keys))?.ok_or_else(|| de::Error::invalid_type(Unexpected::Map, expected))
}

/// Refuses a second key.
pub(super) fn expect_end<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    match map.next_key::<String>()? {
        None => Ok(()),
        Some(key) => Err(de::Error::custom(format!("exactly one law, not also {key:?}"))),
    }
}

/// Within a law, where tables are not described again.
impl<Q: Quantity> JsonSchema for Parameter<Q> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("parameter in {}", Q::BASE).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let law = json_schema!({ "type": "object", "description": "a law to draw the value from, per client" });
        json_schema!({ "anyOf": [Amount::<Q>::json_schema(generator), law] })
    }
}
