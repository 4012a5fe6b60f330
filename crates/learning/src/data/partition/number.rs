//! A number of each client by which its features differ: `30`, `{ choices = [0, 90, 180, 270] }`, ….
//!
//! # Definition
//! A number is that of every client. `{ each = [..] }` has one for each client, in their order. Of
//! `{ choices = [..] }` each client draws one, all alike; of `{ uniform = [a, b] }` a number between the two; of
//! `{ normal = { mean = m, sd = s } }` a normal one. `{ ramp = [a, b] }` goes from `a` at the first of `N` clients to
//! `b` at the last in equal steps: `a + (b − a)·k/(N − 1)` for client `k`.
//!
//! Laws of the population are those of durations, which are not negative; angles and brightness may be.

use fedgenie_core::config::{Complaint, shown};
use fedgenie_core::math::special::normal_quantile;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// A number of each client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NumberPerClient {
    /// The same for all clients.
    Same(f64),
    /// Of each client.
    Own(OwnNumber),
}

/// Where a client has its own number from.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum OwnNumber {
    /// A list with one for each client.
    Each(Vec<f64>),
    /// One of these, drawn by each client.
    Choices(Vec<f64>),
    /// A number between these two, drawn by each client.
    Uniform([f64; 2]),
    /// A normal number, drawn by each client.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        sd: f64,
    },
    /// From the first of these at the first client to the second at the last, in equal steps.
    Ramp([f64; 2]),
}

impl NumberPerClient {
    /// Checks what needs no clients; every number that is given must be in the range.
    ///
    /// # Errors
    /// A complaint with a path below the number's key.
    pub(super) fn check(&self, range: &RangeInclusive<f64>) -> Result<(), Complaint> {
        let (key, numbers) = match self {
            Self::Same(number) => ("", std::slice::from_ref(number)),
            Self::Own(OwnNumber::Each(numbers)) => ("each", &numbers[..]),
            Self::Own(OwnNumber::Choices(numbers)) => ("choices", &numbers[..]),
            Self::Own(OwnNumber::Uniform(ends)) => ("uniform", &ends[..]),
            Self::Own(OwnNumber::Ramp(ends)) => ("ramp", &ends[..]),
            Self::Own(OwnNumber::Normal { mean, sd }) => {
                let is_right = range.contains(mean) && *sd >= 0.0 && *sd <= *range.end();
                let (low, high) = (range.start(), range.end());
                let message = format!(
                    "found mean {} and sd {}; expected a mean from {low} to {high}, and sd from 0 to {high}",
                    shown(*mean),
                    shown(*sd)
                );
                return if is_right { Ok(()) } else { Err(Complaint::new("normal", message)) };
            }
        };
        if numbers.is_empty() {
            return Err(Complaint::new(key, "found none; expected at least one number"));
        }
        if let Some(wrong) = numbers.iter().find(|number| !range.contains(number)) {
            let expected = format!("a number from {} to {}", range.start(), range.end());
            return Err(Complaint::new(key, format!("found {}; expected {expected}", shown(*wrong))));
        }
        match self {
            Self::Own(OwnNumber::Uniform([low, high])) if low > high => {
                Err(Complaint::new(key, format!("found {low} to {high}; expected the smaller number first")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a list of another length.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check_length(&self, clients: usize) -> Result<(), String> {
        match self {
            Self::Own(OwnNumber::Each(numbers)) if numbers.len() != clients => {
                Err(format!("found a list of {} values; expected {clients}, one per client", numbers.len()))
            }
            _ => Ok(()),
        }
    }

    /// The number of a client among so many; `uniform` draws.
    pub(super) fn of(&self, client: usize, clients: usize, uniform: impl FnOnce() -> f64) -> f64 {
        match self {
            Self::Same(number) => *number,
            Self::Own(OwnNumber::Each(numbers)) => numbers[client],
            Self::Own(OwnNumber::Choices(numbers)) => {
                let place = (uniform() * numbers.len() as f64) as usize;
                numbers[place.min(numbers.len() - 1)]
            }
            Self::Own(OwnNumber::Uniform([low, high])) => low + (high - low) * uniform(),
            Self::Own(OwnNumber::Normal { mean, sd }) => mean + sd * normal_quantile(uniform()),
            Self::Own(OwnNumber::Ramp([first, last])) => {
                first + (last - first) * client as f64 / clients.saturating_sub(1).max(1) as f64
            }
        }
    }
}

impl<'de> Deserialize<'de> for NumberPerClient {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// A table that should have one of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    each: Option<Vec<f64>>,
    choices: Option<Vec<f64>>,
    uniform: Option<[f64; 2]>,
    normal: Option<Normal>,
    ramp: Option<[f64; 2]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Normal {
    mean: f64,
    sd: f64,
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = NumberPerClient;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(
            "a number, or a table with one of each = [..], choices = [..], uniform = [a, b], normal = { mean = m, \
             sd = s }, ramp = [a, b]",
        )
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<NumberPerClient, E> {
        Ok(NumberPerClient::Same(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<NumberPerClient, E> {
        Ok(NumberPerClient::Same(number as f64))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<NumberPerClient, E> {
        Ok(NumberPerClient::Same(number as f64))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NumberPerClient, A::Error> {
        let Parts { each, choices, uniform, normal, ramp } = Parts::deserialize(MapAccessDeserializer::new(map))?;
        let found = [
            each.map(OwnNumber::Each),
            choices.map(OwnNumber::Choices),
            uniform.map(OwnNumber::Uniform),
            normal.map(|Normal { mean, sd }| OwnNumber::Normal { mean, sd }),
            ramp.map(OwnNumber::Ramp),
        ];
        let mut given = found.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(one), None) => Ok(NumberPerClient::Own(one)),
            _ => Err(de::Error::custom(
                "exactly one of each = [..], choices = [..], uniform = [a, b], normal = { mean = m, sd = s } and ramp = \
                 [a, b]",
            )),
        }
    }
}

impl JsonSchema for NumberPerClient {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "NumberPerClient".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<OwnNumber>();
        json_schema!({ "anyOf": [{ "type": "number" }, own] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> NumberPerClient {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn numbers_of_clients() {
        let of = |value, uniform: f64| {
            let number = read(value);
            number.check(&(-1e3..=1e3)).unwrap();
            [0, 1, 2].map(|client| number.of(client, 3, || uniform))
        };
        assert_eq!(of(json!(-4), 0.5), [-4.0; 3]);
        assert_eq!(of(json!({ "each": [3, 1.5, -2] }), 0.5), [3.0, 1.5, -2.0]);
        assert_eq!(of(json!({ "choices": [0, 90, 180, 270] }), 0.6), [180.0; 3]);
        assert_eq!(of(json!({ "choices": [0, 90] }), 1.0 - f64::EPSILON / 2.0), [90.0; 3]);
        assert_eq!(of(json!({ "uniform": [-30, 30] }), 0.25), [-15.0; 3]);
        assert_eq!(of(json!({ "normal": { "mean": 1, "sd": 2 } }), 0.5), [1.0; 3]);
        assert_eq!(of(json!({ "ramp": [1, 2] }), 0.9), [1.0, 1.5, 2.0]);
        assert_eq!(read(json!({ "ramp": [1, 2] })).of(0, 1, || 0.5), 1.0);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for (value, path, said) in [
            (json!({ "each": [] }), "each", "at least one"),
            (json!({ "choices": [1, -1] }), "choices", "found -1; expected a number from 0 to 1000000"),
            (json!({ "uniform": [2, 1] }), "uniform", "the smaller number first"),
            (json!({ "ramp": [0, -0.5] }), "ramp", "found -0.5"),
            (json!({ "normal": { "mean": 0, "sd": -1 } }), "normal", "and sd from 0 to 1000000"),
            (json!(-3), "", "found -3"),
            (json!(1e300), "", "expected a number from 0 to 1000000"),
        ] {
            let refused = read(value).check(&(0.0..=1e6)).unwrap_err();
            assert!(refused.path == path && refused.message.contains(said), "{refused}");
        }
        let each = read(json!({ "each": [1, 2] }));
        assert!(each.check_length(2).is_ok());
        assert!(each.check_length(3).unwrap_err().contains("a list of 2 values; expected 3"));
        for value in [
            json!("30"),
            json!({ "each": [1], "uniform": [0, 1] }),
            json!({}),
            json!({ "gamma": 1 }),
            json!({ "uniform": [0, 1], "gamma": 1 }),
        ] {
            assert!(serde_json::from_value::<NumberPerClient>(value.clone()).is_err(), "{value}");
        }
    }
}
