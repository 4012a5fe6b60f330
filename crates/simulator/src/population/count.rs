//! A whole number of a client's work, such as its epochs: `3`, or numbers that differ from client to client.
//!
//! # Definition
//! A number is that of every client. `{ each = [1, 3, 2] }` has one for each client, in their order; of a law, as
//! `{ uniform = [1, 5] }`, each client draws its own, once and for all. Numbers are rounded to whole ones, halves up;
//! one that is then less than 1 is refused. Of `uniform = [1, 5]` the ends are half as likely as the others; of
//! `uniform = [0.5, 5.5]` all five are alike.

use super::law::{AnyParameter, GroupClient, Parameter};
use fedgenie_core::rng::Streams;
use fedgenie_core::units::Plain;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The source of this file, which opens with the definition of such numbers.
pub const DOCUMENTED: &str = include_str!("count.rs");

/// Index of the number among the parameters of a client that are drawn.
const INDEX: u32 = 60;

/// A whole number of at least 1 that may differ from client to client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CountPerClient {
    /// The same for all clients.
    Same(u32),
    /// Of each client.
    Own(Parameter<Plain>),
}

impl CountPerClient {
    /// Whether it may differ from client to client.
    pub const fn differs(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// The number of all clients; 1 where they differ.
    pub const fn any(&self) -> u32 {
        match self {
            Self::Same(number) => *number,
            Self::Own(_) => 1,
        }
    }

    /// The number of each client.
    ///
    /// # Errors
    /// A sentence, if a list has another length, a file cannot be read, or a number is out of its range.
    pub fn of_clients(&self, clients: usize, streams: &Streams) -> Result<Arc<[u32]>, String> {
        let parameter = match self {
            Self::Same(number) => return Ok(vec![*number; clients].into()),
            Self::Own(parameter) => parameter,
        };
        parameter.check_length(clients)?;
        let of = |client: usize| {
            let own = GroupClient { client: client as u32, in_group: client, streams };
            let found = parameter.value(&own, INDEX)?;
            let number = libm::floor(found + 0.5);
            match (1.0..=f64::from(u32::MAX)).contains(&number) {
                true => Ok(number as u32),
                false => {
                    let (seed, most) = (streams.seed(), u32::MAX);
                    Err(format!(
                        "found {found:?} for client {client} with seed {seed}; expected a number from 1 to {most}, after rounding"
                    ))
                }
            }
        };
        (0..clients).map(of).collect()
    }
}

impl<'de> Deserialize<'de> for CountPerClient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountPerClientVisitor)
    }
}

struct CountPerClientVisitor;

impl<'de> Visitor<'de> for CountPerClientVisitor {
    type Value = CountPerClient;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number, a law to draw it from per client, or { each = [..] }")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<CountPerClient, E> {
        let refused = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
        u32::try_from(number).map(CountPerClient::Same).map_err(refused)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<CountPerClient, E> {
        let refused = |_| E::invalid_value(Unexpected::Signed(number), &self);
        u32::try_from(number).map(CountPerClient::Same).map_err(refused)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CountPerClient, A::Error> {
        let parameter: Parameter<Plain> = Parameter::deserialize(MapAccessDeserializer::new(map))?;
        let mut files = Vec::new();
        parameter.sources("", &mut files);
        match files.is_empty() && !matches!(parameter, Parameter::Table { .. }) {
            true => Ok(CountPerClient::Own(parameter)),
            false => {
                Err(de::Error::custom("numbers that the scenario gives itself, not a file; write { each = [..] }"))
            }
        }
    }
}

impl JsonSchema for CountPerClient {
    fn schema_name() -> Cow<'static, str> {
        "CountPerClient".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<Parameter<Plain>>();
        json_schema!({
            "description": "A whole number of at least 1 that may differ from client to client, for example `3` or `{ each = [1, 3, 2] }`.",
            "anyOf": [{ "type": "integer", "format": "uint32", "minimum": 1, "maximum": u32::MAX }, own],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn numbers(value: serde_json::Value, clients: usize) -> Result<Vec<u32>, String> {
        let count: CountPerClient = serde_json::from_value(value).map_err(|error| error.to_string())?;
        count.of_clients(clients, &Streams::new(3)).map(|numbers| numbers.to_vec())
    }

    #[test]
    fn numbers_of_clients() {
        assert_eq!(numbers(json!(4), 3).unwrap(), [4; 3]);
        assert_eq!(numbers(json!({ "each": [1.0, 3.0, 2.5] }), 3).unwrap(), [1, 3, 3]);
        assert!(
            numbers(json!({ "each": [1.0, 3.0] }), 3).unwrap_err().contains("found a list of 2 values; expected 3")
        );
        assert!(numbers(json!({ "each": [1.0, 0.4] }), 2).unwrap_err().contains("found 0.4 for client 1"));
        assert!(numbers(json!(-1), 2).is_err());
        assert!(numbers(json!(2.5), 2).is_err());
        let drawn = numbers(json!({ "uniform": [1.0, 5.0] }), 4_000).unwrap();
        let count = |number| drawn.iter().filter(|found| **found == number).count();
        // The ends have half of the others' share: 500 and 1,000 of 4,000, within 4.5 deviations.
        for (number, expected) in [(1, 500), (2, 1_000), (3, 1_000), (4, 1_000), (5, 500)] {
            assert!(count(number).abs_diff(expected) < 125, "{number}: {}", count(number));
        }
    }
}
