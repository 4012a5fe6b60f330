//! A link of a device profile: a rate per client, or a trace of rates over time.
//!
//! # Definition
//! A transfer of `b` bits over a link of rate `r` takes `b/r`: `downlink = "20 Mbit/s"`, or any other form of
//! `describe value/number`. With `{ trace = { file = "links.csv" } }` it ends when the integral of the recorded rate has
//! reached `b`: see `describe value/link-trace`.

use super::parameter::{ParameterVisitor, expect_end, only_key};
use super::{AnyParameter, ClientNumber, Parameter, RateParameter, TimeParameter};
use crate::population::link::LinkTrace;
use crate::population::trace::join::Source;
use crate::population::trace::link::{self, LinkFormat, LinkOptions};
use crate::population::trace::{Assign, Imported, Memo, Named, Own};
use fedgenie_core::law::NAMES;
use fedgenie_core::law::config::names_and;
use fedgenie_core::units::BitsPerSecond;
use fedgenie_learning::data::located;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The rate of a client's link.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LinkParameter {
    /// A constant rate.
    Rate(RateParameter),
    /// A recorded rate over time.
    Trace {
        /// Which one.
        trace: Box<TraceLinkConfig>,
    },
}

/// `trace`: rates over time from a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceLinkConfig {
    /// The file.
    pub file: PathBuf,
    /// How the file is written.
    #[serde(default)]
    pub format: Format,
    /// Only the traces of this set, for `bandwidth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Factor on the rates.
    #[serde(default = "one")]
    pub scale: f64,
    /// The assignment of traces to clients.
    #[serde(default)]
    pub assign: Assign,
    /// The time of its trace at which a client begins.
    #[serde(default)]
    pub offset: TimeParameter,
    /// Whether a trace begins again at its end; otherwise the rate is 0 from there on.
    #[serde(default = "yes")]
    pub wrap: bool,
    /// The column with the names of devices, by which this file is joined to the group's others, instead of `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether rows are sorted and duplicates dropped, and counted; otherwise they are errors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mend: bool,
    #[serde(skip)]
    memo: Memo<Named<Vec<Arc<LinkTrace>>>>,
}

/// How a file of links is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Columns `trace`, `time_s`, `mbit_per_s`.
    #[default]
    Csv,
    /// The same with a column `set`.
    Bandwidth,
}

const fn one() -> f64 {
    1.0
}

const fn yes() -> bool {
    true
}

impl LinkParameter {
    pub(in crate::population) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            Self::Rate(rate) => rate.0.resolve_paths(base, data),
            Self::Trace { trace } => {
                trace.memo = Memo::default();
                trace.file = located(&trace.file, base, data);
                trace.offset.0.resolve_paths(base, data);
            }
        }
    }

    pub(in crate::population) fn notes(&self, notes: &mut Vec<String>) {
        match self {
            Self::Rate(rate) => rate.0.notes(notes),
            Self::Trace { trace } => {
                if let Ok(links) = trace.read() {
                    notes.extend(links.0.notes.iter().cloned());
                }
                trace.offset.0.notes(notes);
            }
        }
    }

    /// Appends the files that it reads, as far as they can be read.
    pub(in crate::population) fn sources(&self, path: &str, found: &mut Vec<Source>) {
        match self {
            Self::Rate(rate) => rate.0.sources(path, found),
            Self::Trace { trace } => {
                found.extend(trace.read().ok().map(|links| Source {
                    path: path.to_owned(),
                    file: trace.file.clone(),
                    records: "traces",
                    count: links.0.value.len(),
                    names: trace.key.as_ref().map(|_| links.1.clone()),
                    has_names: true,
                }));
                trace.offset.0.sources(path, found);
            }
        }
    }
}

impl TraceLinkConfig {
    /// The links of the file.
    ///
    /// # Errors
    /// A sentence, with file and line if it is about the file.
    pub fn links(&self) -> Result<Vec<Arc<LinkTrace>>, String> {
        self.read().map(|read| read.0.value.clone())
    }

    /// The links, with their names if they are joined by name.
    fn read(&self) -> Result<Arc<Named<Vec<Arc<LinkTrace>>>>, String> {
        if !(self.scale > 0.0 && self.scale < f64::INFINITY) {
            return Err(format!("found scale = {}; expected a number above 0", self.scale));
        }
        let format = match (self.format, &self.set) {
            (Format::Csv, Some(_)) => return Err("the format \"csv\" has no sets; leave set out".to_owned()),
            (Format::Csv, None) => LinkFormat::Csv,
            (Format::Bandwidth, None) if self.key.is_some() => {
                return Err("a key joins the traces of one set; give set as well".to_owned());
            }
            (Format::Bandwidth, _) => LinkFormat::Bandwidth,
        };
        let options = LinkOptions { format, set: self.set.as_deref(), scale: self.scale, wrap: self.wrap };
        let own = Own { key: self.key.as_deref(), mend: self.mend };
        self.memo.get(|| {
            link::read_own(&self.file, &options, own).map(|(Imported { value, notes, defects }, names)| {
                let value = value.into_iter().map(Arc::new).collect();
                (Imported { value, notes, defects }, names.into())
            })
        })
    }
}

/// Names of laws, and the keys of other sources.
static KEYS: [&str; NAMES.len() + 3] = names_and(&["each", "table", "trace"]);

impl<'de> Deserialize<'de> for LinkParameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LinkVisitor)
    }
}

/// Reads a rate, or `{ trace = { .. } }`.
struct LinkVisitor;

impl<'de> de::Visitor<'de> for LinkVisitor {
    type Value = LinkParameter;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        ParameterVisitor::<BitsPerSecond>(PhantomData).expecting(formatter)?;
        formatter.write_str(", or { trace = { .. } }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<LinkParameter, E> {
        RateParameter::deserialize(text.into_deserializer()).map(LinkParameter::Rate)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LinkParameter, A::Error> {
        match only_key(&mut map, &KEYS, &self)? {
            "trace" => {
                let trace = map.next_value()?;
                expect_end(map)?;
                Ok(LinkParameter::Trace { trace })
            }
            key => Parameter::named(key, map).map(|rate| LinkParameter::Rate(ClientNumber(rate))),
        }
    }
}

impl JsonSchema for LinkParameter {
    fn schema_name() -> Cow<'static, str> {
        "LinkParameter".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (rate, trace) = (generator.subschema_for::<RateParameter>(), generator.subschema_for::<TraceLinkConfig>());
        let trace = json_schema!({
            "type": "object", "properties": { "trace": trace }, "required": ["trace"], "additionalProperties": false,
            "description": "rates over time"
        });
        json_schema!({ "anyOf": [rate, trace] })
    }
}
