//! `batch` of `[training]`: examples of a mini-batch, or all that a client has.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// The word for all examples.
const ALL: &str = "all";

/// Examples of a mini-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    /// So many.
    Count(usize),
    /// All that the client has: one step is one epoch.
    All,
}

impl BatchSize {
    /// The most examples of a step.
    pub const fn most(self) -> usize {
        match self {
            Self::Count(count) => count,
            Self::All => usize::MAX,
        }
    }
}

impl Serialize for BatchSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => count.serialize(serializer),
            Self::All => serializer.serialize_str(ALL),
        }
    }
}

impl<'de> Deserialize<'de> for BatchSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = BatchSize;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number of examples, or \"all\"")
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<BatchSize, E> {
                match usize::try_from(count) {
                    Ok(count) => Ok(BatchSize::Count(count)),
                    Err(_) => Err(E::invalid_value(Unexpected::Unsigned(count), &self)),
                }
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<BatchSize, E> {
                match u64::try_from(count) {
                    Ok(count) => self.visit_u64(count),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(count), &self)),
                }
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<BatchSize, E> {
                match text {
                    ALL => Ok(BatchSize::All),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Reading)
    }
}

impl JsonSchema for BatchSize {
    fn schema_name() -> Cow<'static, str> {
        "BatchSize".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "const": ALL }] })
    }
}
