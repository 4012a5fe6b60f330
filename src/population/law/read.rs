//! Reads laws and parameters, with errors that say what would be right.

use super::{EntryRef, LawConfig, PLAIN, Parameter, Source, Unit, UnitRef};
use crate::dist::{self, Dimension, Form, LawEntry};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess};
use std::fmt;
use std::path::PathBuf;

/// Reads a number, a law to draw it from, or `{ each = [..] }`.
#[derive(Clone, Copy)]
pub(super) struct ParameterSeed(pub(super) &'static Unit);

impl<'de> DeserializeSeed<'de> for ParameterSeed {
    type Value = Parameter;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parameter, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ParameterSeed {
    fn fixed(self, value: f64) -> Parameter {
        Parameter { unit: UnitRef(self.0), source: Source::Fixed(value) }
    }
}

impl<'de> de::Visitor<'de> for ParameterSeed {
    type Value = Parameter;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, a law to draw it from per client, or {{ each = [..] }}", self.0.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Parameter, E> {
        (self.0.parse)(text).map(|value| self.fixed(value)).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Parameter, E> {
        if self.0.plain && number.is_finite() { Ok(self.fixed(number)) } else { Err(E::custom(self.0.expected)) }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Parameter, E> {
        self.visit_f64(number as f64)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameter, A::Error> {
        let key: String = map.next_key()?.ok_or_else(|| de::Error::custom(Expected(&self)))?;
        let source = if key == "each" {
            Source::Each(map.next_value_seed(ListSeed(self.0))?)
        } else {
            Source::Drawn(Box::new(read_law(&key, self.0, &mut map, &["each"])?))
        };
        expect_end(&mut map)?;
        Ok(Parameter { unit: UnitRef(self.0), source })
    }
}

/// Shows what a visitor expects.
struct Expected<'a, V>(&'a V);

impl<'de, V: de::Visitor<'de>> fmt::Display for Expected<'_, V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(formatter)
    }
}

fn expect_end<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    match map.next_key::<String>()? {
        None => Ok(()),
        Some(key) => Err(de::Error::custom(format!("exactly one law, not also {key:?}"))),
    }
}

struct ListSeed(&'static Unit);

impl<'de> DeserializeSeed<'de> for ListSeed {
    type Value = Vec<f64>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<f64>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for ListSeed {
    type Value = Vec<f64>;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list with one value per client, each {}", self.0.expected)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f64>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(ParameterSeed(self.0))? {
            match value.source {
                Source::Fixed(value) => values.push(value),
                _ => return Err(de::Error::custom(Expected(&self))),
            }
        }
        Ok(values)
    }
}

/// Reads the law whose name was just read as a key.
fn read_law<'de, A: MapAccess<'de>>(
    name: &str,
    unit: &'static Unit,
    map: &mut A,
    also: &[&str],
) -> Result<LawConfig, A::Error> {
    let Some(entry) = dist::CATALOGUE.iter().find(|entry| entry.name == name) else {
        let known: Vec<_> = dist::CATALOGUE.iter().map(|entry| entry.name).chain(also.iter().copied()).collect();
        return Err(de::Error::custom(format!("a law: {}", known.join(", "))));
    };
    map.next_value_seed(BodySeed { entry, unit })
}

/// Reads what stands behind a law's name.
#[derive(Clone, Copy)]
pub(super) struct BodySeed {
    pub entry: &'static LawEntry,
    pub unit: &'static Unit,
}

impl BodySeed {
    fn law(self) -> LawConfig {
        LawConfig {
            entry: EntryRef(self.entry),
            unit: UnitRef(self.unit),
            parameters: Vec::new(),
            parts: Vec::new(),
            file: PathBuf::new(),
        }
    }

    pub fn parameter(self, index: usize) -> ParameterSeed {
        ParameterSeed(match self.entry.parameters[index].dimension {
            Dimension::Quantity => self.unit,
            Dimension::Number => &PLAIN,
        })
    }
}

impl<'de> DeserializeSeed<'de> for BodySeed {
    type Value = LawConfig;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<LawConfig, D::Error> {
        if self.entry.form == Form::Scalar {
            let value = self.parameter(0).deserialize(deserializer)?;
            return Ok(LawConfig { parameters: vec![value], ..self.law() });
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for BodySeed {
    type Value = LawConfig;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.entry.parameters.iter().map(|parameter| parameter.name).collect();
        match self.entry.form {
            Form::Scalar | Form::Pair => write!(formatter, "a list [{}]", names.join(", ")),
            Form::Named => write!(formatter, "a table {{ {} }}", names.join(", ")),
            Form::Mixture => formatter.write_str("a list of tables { weight, law }"),
            Form::Empirical => formatter.write_str("a table { file }"),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LawConfig, A::Error> {
        let mut law = self.law();
        match self.entry.form {
            Form::Pair => {
                for index in 0..self.entry.parameters.len() {
                    let value = list.next_element_seed(self.parameter(index))?;
                    law.parameters.push(value.ok_or_else(|| de::Error::custom(Expected(&self)))?);
                }
                if list.next_element::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::custom(Expected(&self)));
                }
            }
            Form::Mixture => {
                while let Some(part) = list.next_element_seed(PartSeed(self.unit))? {
                    law.parts.push(part);
                }
            }
            _ => return Err(de::Error::custom(Expected(&self))),
        }
        Ok(law)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LawConfig, A::Error> {
        let mut law = self.law();
        if self.entry.form == Form::Empirical {
            while let Some(key) = map.next_key::<String>()? {
                if key != "file" {
                    return Err(de::Error::custom(Expected(&self)));
                }
                law.file = map.next_value()?;
            }
            if law.file.as_os_str().is_empty() {
                return Err(de::Error::custom(Expected(&self)));
            }
            return Ok(law);
        }
        let mut values: Vec<Option<Parameter>> = vec![None; self.entry.parameters.len()];
        while let Some(key) = map.next_key::<String>()? {
            let index = self.entry.parameters.iter().position(|parameter| parameter.name == key);
            let index = index.filter(|_| self.entry.form == Form::Named);
            let index = index.ok_or_else(|| de::Error::custom(format!("{}; it has no {key:?}", Expected(&self))))?;
            values[index] = Some(map.next_value_seed(self.parameter(index))?);
        }
        for (index, value) in values.into_iter().enumerate() {
            let known = &self.entry.parameters[index];
            let default = known.default.map(|default| self.parameter(index).fixed(default));
            let value = value.or(default);
            law.parameters.push(
                value.ok_or_else(|| de::Error::custom(format!("{}; {:?} is missing", Expected(&self), known.name)))?,
            );
        }
        Ok(law)
    }
}

/// Reads one part of a mixture, `{ weight = w, LAW = .. }`.
struct PartSeed(&'static Unit);

impl<'de> DeserializeSeed<'de> for PartSeed {
    type Value = (f64, LawConfig);
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for PartSeed {
    type Value = (f64, LawConfig);
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of weight and one law, such as { weight = 0.3, constant = \"1 s\" }")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut weight, mut law) = (None, None);
        while let Some(key) = map.next_key::<String>()? {
            if key == "weight" {
                weight = Some(map.next_value()?);
            } else if law.is_none() {
                law = Some(read_law(&key, self.0, &mut map, &["weight"])?);
            } else {
                return Err(de::Error::custom(Expected(&self)));
            }
        }
        weight.zip(law).ok_or_else(|| de::Error::custom(Expected(&self)))
    }
}

/// Reads a law, `{ NAME = .. }`.
pub(super) struct LawSeed(pub(super) &'static Unit);

impl<'de> DeserializeSeed<'de> for LawSeed {
    type Value = LawConfig;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<LawConfig, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for LawSeed {
    type Value = LawConfig;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = dist::CATALOGUE.iter().map(|entry| entry.name).collect();
        write!(formatter, "a law, {{ NAME = .. }} with one of {}", known.join(", "))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LawConfig, A::Error> {
        let key: String = map.next_key()?.ok_or_else(|| de::Error::custom(Expected(&self)))?;
        let law = read_law(&key, self.0, &mut map, &[])?;
        expect_end(&mut map)?;
        Ok(law)
    }
}
