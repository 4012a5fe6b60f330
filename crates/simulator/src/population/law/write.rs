//! Writes laws and parameters as they are read.

use super::{LawConfig, Parameter, Source, UnitRef};
use fedgenie_core::law::Form;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

impl Serialize for Parameter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.source {
            Source::Fixed(value) => Number(*value, self.unit).serialize(serializer),
            Source::Drawn(law) => law.serialize(serializer),
            Source::Each(values) => {
                let mut map = serializer.serialize_map(Some(1))?;
                let values: Vec<_> = values.iter().map(|&value| Number(value, self.unit)).collect();
                map.serialize_entry("each", &values)?;
                map.end()
            }
            Source::Table(table) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("table", table)?;
                map.end()
            }
        }
    }
}

struct Number(f64, UnitRef);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, UnitRef(unit)) = self;
        if unit.plain { serializer.serialize_f64(*value) } else { serializer.serialize_str(&(unit.format)(*value)) }
    }
}

/// What stands behind a law's name.
struct Body<'a>(&'a LawConfig);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let law = self.0;
        match law.entry.0.form {
            Form::Scalar => law.parameters[0].serialize(serializer),
            Form::Pair => law.parameters.serialize(serializer),
            Form::Named => {
                let mut map = serializer.serialize_map(Some(law.parameters.len()))?;
                for (known, value) in law.entry.0.parameters.iter().zip(&law.parameters) {
                    // A bound at infinity has no unit to be written in; leaving it out says the same.
                    let is_default = known.default.is_some_and(|default| value.source == Source::Fixed(default));
                    if !(is_default && known.default == Some(f64::INFINITY)) {
                        map.serialize_entry(known.name, value)?;
                    }
                }
                map.end()
            }
            Form::Mixture => {
                let mut list = serializer.serialize_seq(Some(law.parts.len()))?;
                for part in &law.parts {
                    list.serialize_element(&Part(part))?;
                }
                list.end()
            }
            Form::Empirical => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("file", &law.file)?;
                map.end()
            }
        }
    }
}

struct Part<'a>(&'a (f64, LawConfig));

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (weight, law) = self.0;
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("weight", weight)?;
        map.serialize_entry(law.entry.0.name, &Body(law))?;
        map.end()
    }
}

impl Serialize for LawConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.entry.0.name, &Body(self))?;
        map.end()
    }
}
