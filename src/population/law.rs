//! Laws as a scenario writes them: `{ lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }`.
//!
//! A parameter is a number, a law it is drawn from once per client, or a list with one number per client. What forms and
//! parameters exist comes from the catalogue in [`crate::dist`]; nothing here knows a law by name.

use crate::dist::{self, AnyLaw, Dimension, Empirical, Form, Law, LawEntry, Mixture};
use crate::rng::{Purpose, Streams};
use crate::units::{self, Plain, Quantity, Seconds};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Serialize, Serializer};
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
            Source::Drawn(law) => {
                let law = law.build_fixed()?;
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
            _ => Ok(()),
        }
    }

    fn resolve_paths(&mut self, base: &Path) {
        if let Source::Drawn(law) = &mut self.source {
            law.resolve_paths(base);
        }
    }
}

impl LawConfig {
    /// Whether all clients share the law.
    pub fn is_fixed(&self) -> bool {
        self.parameters.iter().all(Parameter::is_fixed) && self.parts.iter().all(|(_, part)| part.is_fixed())
    }

    /// Makes file names relative to `base`, the folder of the scenario.
    pub fn resolve_paths(&mut self, base: &Path) {
        if !self.file.as_os_str().is_empty() {
            self.file = base.join(&self.file);
        }
        self.parameters.iter_mut().for_each(|parameter| parameter.resolve_paths(base));
        self.parts.iter_mut().for_each(|(_, part)| part.resolve_paths(base));
    }

    /// Checks that `each` lists have one value for every client of the group.
    pub(super) fn check_lengths(&self, clients: usize) -> Result<(), String> {
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
        let explain = |error: dist::LawError| format!("{name}: {error}");
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

    /// The law, where no parameter differs between clients.
    fn build_fixed(&self) -> Result<AnyLaw, String> {
        if !self.is_fixed() {
            return Err(
                "a parameter is drawn from a law whose own parameters are drawn; give those as numbers".to_owned()
            );
        }
        self.build(&ClientPlace { client: 0, in_group: 0, streams: &Streams::new(0) }, 0)
    }
}

// ---------------------------------------------------------------------------------------------- reading

/// Reads a number, a law to draw it from, or `{ each = [..] }`.
#[derive(Clone, Copy)]
struct ParameterSeed(&'static Unit);

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
struct BodySeed {
    entry: &'static LawEntry,
    unit: &'static Unit,
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

    fn parameter(self, index: usize) -> ParameterSeed {
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
struct LawSeed(&'static Unit);

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

// ---------------------------------------------------------------------------------------------- writing

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
                    map.serialize_entry(known.name, value)?;
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

// ---------------------------------------------------------------------------------------------- with a dimension

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
                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $seed(&$unit).schema()
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
}

impl Unit {
    fn schema(&self) -> Schema {
        if self.plain {
            json_schema!({ "type": "number" })
        } else {
            json_schema!({ "type": "string", "description": self.expected })
        }
    }
}

impl LawSeed {
    fn schema(&self) -> Schema {
        let laws: Vec<Schema> = dist::CATALOGUE.iter().map(|entry| law_schema(entry, self.0)).collect();
        json_schema!({ "oneOf": laws })
    }
}

impl ParameterSeed {
    fn schema(&self) -> Schema {
        let law = json_schema!({ "type": "object", "description": "a law to draw the value from, per client" });
        json_schema!({ "anyOf": [self.0.schema(), law] })
    }
}

fn law_schema(entry: &'static LawEntry, unit: &'static Unit) -> Schema {
    let parameter = |index: usize| BodySeed { entry, unit }.parameter_schema(index);
    let body = match entry.form {
        Form::Scalar => parameter(0),
        Form::Pair => {
            let items: Vec<_> = (0..entry.parameters.len()).map(parameter).collect();
            json_schema!({ "type": "array", "prefixItems": items, "minItems": items.len(), "maxItems": items.len() })
        }
        Form::Named => {
            let properties: serde_json::Map<_, _> = entry
                .parameters
                .iter()
                .enumerate()
                .map(|(index, known)| (known.name.to_owned(), parameter(index).to_value()))
                .collect();
            let required: Vec<_> =
                entry.parameters.iter().filter(|known| known.default.is_none()).map(|known| known.name).collect();
            json_schema!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false
            })
        }
        Form::Mixture => json_schema!({ "type": "array", "minItems": 1, "items": { "type": "object" } }),
        Form::Empirical => json_schema!({
            "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"],
            "additionalProperties": false
        }),
    };
    let name = entry.name;
    json_schema!({
        "type": "object", "properties": { name: body }, "required": [name], "additionalProperties": false
    })
}

impl BodySeed {
    fn parameter_schema(self, index: usize) -> Schema {
        self.parameter(index).schema()
    }
}
