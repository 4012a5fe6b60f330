//! Reads laws and parameters, with errors that say what would be right.

use super::{
    BITS_PER_SECOND, EntryRef, LawConfig, LinkParameter, PLAIN, Parameter, RateParameter, Source, TableConfig,
    TraceLinkConfig, Unit, UnitRef,
};
use fedgenie_core::law::{self, Dimension, Form, LawEntry};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess};
use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Reads the name of a law or of a law's parameter; a misspelt one is refused where it stands.
#[derive(Clone, Copy)]
struct NameSeed {
    known: &'static [&'static str],
    is_law: bool,
}

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl de::Visitor<'_> for NameSeed {
    type Value = String;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "one of {}", self.known.join(", "))
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<String, E> {
        match self.known.contains(&name) {
            true => Ok(name.to_owned()),
            false if self.is_law => Err(E::unknown_variant(name, self.known)),
            false => Err(E::unknown_field(name, self.known)),
        }
    }
}

fn laws_and(also: &[&'static str]) -> Vec<&'static str> {
    law::CATALOGUE.iter().map(|entry| entry.name).chain(also.iter().copied()).collect()
}

static LAWS: LazyLock<Vec<&'static str>> = LazyLock::new(|| laws_and(&[]));
static LAWS_OR_LISTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| laws_and(&["each", "table"]));
static LAWS_LISTS_OR_TRACE: LazyLock<Vec<&'static str>> = LazyLock::new(|| laws_and(&["each", "table", "trace"]));
static LAWS_OR_WEIGHT: LazyLock<Vec<&'static str>> = LazyLock::new(|| laws_and(&["weight"]));
/// Names of parameters, by the law's place in the catalogue.
static PARAMETERS: LazyLock<Vec<Vec<&'static str>>> = LazyLock::new(|| {
    law::CATALOGUE.iter().map(|entry| entry.parameters.iter().map(|parameter| parameter.name).collect()).collect()
});

/// Reads a number, a law to draw it from, `{ each = [..] }` or `{ table = { .. } }`.
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
        let expected = self.0.expected;
        write!(formatter, "{expected}, a law to draw it from per client, {{ each = [..] }} or {{ table = {{ .. }} }}")
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
        let name = NameSeed { known: &LAWS_OR_LISTS, is_law: true };
        let key = map.next_key_seed(name)?.ok_or_else(|| de::Error::custom(Expected(&self)))?;
        self.named(&key, map)
    }
}

impl ParameterSeed {
    /// What stands behind a key that was just read.
    fn named<'de, A: MapAccess<'de>>(self, key: &str, mut map: A) -> Result<Parameter, A::Error> {
        let source = match key {
            "each" => Source::Each(map.next_value_seed(ListSeed(self.0))?),
            "table" => {
                let table: TableConfig = map.next_value()?;
                table.check(self.0).map_err(de::Error::custom)?;
                Source::Table(Box::new(table))
            }
            _ => Source::Drawn(Box::new(read_law(key, self.0, &mut map)?)),
        };
        expect_end(&mut map)?;
        Ok(Parameter { unit: UnitRef(self.0), source })
    }
}

/// Reads a rate, or `{ trace = { .. } }`.
pub(super) struct LinkSeed;

impl<'de> DeserializeSeed<'de> for LinkSeed {
    type Value = LinkParameter;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<LinkParameter, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for LinkSeed {
    type Value = LinkParameter;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        ParameterSeed(&BITS_PER_SECOND).expecting(formatter)?;
        formatter.write_str(", or { trace = { .. } }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LinkParameter, E> {
        ParameterSeed(&BITS_PER_SECOND).visit_str(text).map(|rate| LinkParameter::Rate(RateParameter(rate)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkParameter, A::Error> {
        let name = NameSeed { known: &LAWS_LISTS_OR_TRACE, is_law: true };
        let key = map.next_key_seed(name)?.ok_or_else(|| de::Error::custom(Expected(&self)))?;
        if key == "trace" {
            let trace: TraceLinkConfig = map.next_value()?;
            expect_end(&mut map)?;
            return Ok(LinkParameter::Trace(Box::new(trace)));
        }
        ParameterSeed(&BITS_PER_SECOND).named(&key, map).map(|rate| LinkParameter::Rate(RateParameter(rate)))
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
fn read_law<'de, A: MapAccess<'de>>(name: &str, unit: &'static Unit, map: &mut A) -> Result<LawConfig, A::Error> {
    let entry = law::CATALOGUE.iter().find(|entry| entry.name == name).expect("only names of laws are read");
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
            while map.next_key_seed(NameSeed { known: &["file"], is_law: false })?.is_some() {
                law.file = map.next_value()?;
            }
            if law.file.as_os_str().is_empty() {
                return Err(de::Error::custom(Expected(&self)));
            }
            return Ok(law);
        }
        if self.entry.form != Form::Named {
            return Err(de::Error::custom(Expected(&self)));
        }
        let place = law::CATALOGUE.iter().position(|entry| entry.name == self.entry.name);
        let known = place.map_or(&[][..], |place| &PARAMETERS[place]);
        let mut values: Vec<Option<Parameter>> = vec![None; self.entry.parameters.len()];
        while let Some(key) = map.next_key_seed(NameSeed { known, is_law: false })? {
            let index = known.iter().position(|name| *name == key).expect("only names of parameters are read");
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
        while let Some(key) = map.next_key_seed(NameSeed { known: &LAWS_OR_WEIGHT, is_law: true })? {
            if key == "weight" {
                weight = Some(map.next_value()?);
            } else if law.is_none() {
                law = Some(read_law(&key, self.0, &mut map)?);
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
        let known: Vec<_> = law::CATALOGUE.iter().map(|entry| entry.name).collect();
        write!(formatter, "a law, {{ NAME = .. }} with one of {}", known.join(", "))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LawConfig, A::Error> {
        let name = NameSeed { known: &LAWS, is_law: true };
        let key = map.next_key_seed(name)?.ok_or_else(|| de::Error::custom(Expected(&self)))?;
        let law = read_law(&key, self.0, &mut map)?;
        expect_end(&mut map)?;
        Ok(law)
    }
}
