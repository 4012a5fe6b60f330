//! Reads the tree of a scenario file into typed structs, with errors that a person can act on.
//!
//! A serde deserializer over [`Node`]. Every error names file, line and path, the value found and the accepted ones; a
//! misspelt key or kind proposes the nearest one that exists.

mod kinds;

use super::Point;
use super::examples::missing_key;
use super::names::unknown_name;
use super::tree::{Node, Origin, SyntaxError, Value};
use fedgenie_core::config::Complaint;
use fedgenie_core::text;
use kinds::ONE_KIND;
use serde::de::{self, Deserialize, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};
use std::fmt;
use std::sync::LazyLock;

/// A fault in a scenario, with its file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File and line, where known.
    pub origin: Option<Origin>,
    /// The fault; the path begins at the scenario's root.
    pub complaint: Complaint,
    /// Whether `found …` is still to be put before the message, by the reader of the value.
    wants_found: bool,
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The message may hold any text of the file.
        let origin = self.origin.as_ref().map_or_else(String::new, |origin| format!("{origin}: "));
        let path = text::shortened(&self.complaint.path, text::QUOTED_MAX).into_owned();
        let complaint = Complaint { path, message: text::shortened(&self.complaint.message, text::MESSAGE_MAX).into() };
        formatter.write_str(&text::escaped(&format!("{origin}{complaint}")))
    }
}

impl From<SyntaxError> for ScenarioError {
    fn from(SyntaxError { origin, message }: SyntaxError) -> Self {
        Self::at(&origin, "", message)
    }
}

impl ScenarioError {
    /// An error about the value at a path of the tree, or about a missing one.
    pub fn new(tree: &Node, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(tree, Complaint::new(path, message))
    }

    /// A complaint about a tree, with the line of the value at its path, or of the nearest existing part.
    pub fn of(tree: &Node, complaint: Complaint) -> Self {
        Self { origin: Some(tree.nearest_origin(&complaint.path).clone()), complaint, wants_found: false }
    }

    fn bare(message: String, wants_found: bool) -> Self {
        Self { origin: None, complaint: Complaint::new("", message), wants_found }
    }

    /// The same at a point of a sweep. If the sweep gave a second kind beside the file's, it adds how to replace the
    /// kind.
    #[must_use]
    pub fn within_sweep(mut self, point: &Point) -> Self {
        let path = &self.complaint.path;
        let below = |swept: &String| swept.strip_prefix(path.as_str())?.strip_prefix('.').map(str::to_owned);
        let added = point.settings.iter().find_map(|(swept, value)| Some((swept, below(swept)?, value)));
        if let Some((swept, inner, value)) = added.filter(|_| self.complaint.message.ends_with(ONE_KIND)) {
            let (kind, rest) = inner
                .split_once('.')
                .map_or((&*inner, String::new()), |(kind, rest)| (kind, format!(" {rest} = {value} ")));
            let whole = format!("{path} = [{{ {kind} = {{{rest}}} }}]");
            self.complaint.message +=
                &format!("; the sweep's {swept:?} adds one: to replace the kind, sweep over it whole: {whole}");
        }
        self
    }

    /// An error about a value of known origin.
    pub(super) fn at(origin: &Origin, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { origin: Some(origin.clone()), complaint: Complaint::new(path, message), wants_found: false }
    }

    /// Adds the location and value that the innermost reader knows.
    fn located(mut self, reader: &Reader<'_, '_>) -> Self {
        if self.origin.is_none() {
            self.origin = Some(reader.node.origin.clone());
            self.complaint.path = reader.path();
            if self.wants_found {
                self.complaint.message =
                    format!("found {}; expected {}", reader.node.value.describe(), self.complaint.message);
                self.wants_found = false;
            }
        }
        self
    }
}

impl de::Error for ScenarioError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::bare(message.to_string(), true)
    }
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::bare(in_plain_words(expected), true)
    }
    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::bare(in_plain_words(expected), true)
    }
    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::bare(in_plain_words(expected), true)
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::bare(unknown_name("kind", variant, expected), false)
    }
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::bare(unknown_name("key", field, expected), false)
    }
    fn missing_field(field: &'static str) -> Self {
        Self::bare(missing_key(field), false)
    }
    fn duplicate_field(field: &'static str) -> Self {
        Self::bare(format!("the key {field:?} is given twice"), false)
    }
}

/// The expectations of serde's own visitors, for people who do not write Rust.
fn in_plain_words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let whole = |least: i64, most: i64| format!("a whole number from {least} to {most}");
    match expected.as_str() {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        // TOML has no larger ones.
        "u64" | "usize" => whole(0, i64::MAX),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "path string" => "a text in quotes".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        _ => expected,
    }
}

/// Reads a typed value from the node at `path`.
pub fn read<'de, T: Deserialize<'de>>(node: &'de Node, path: &str) -> Result<T, ScenarioError> {
    T::deserialize(Reader { node, place: Place::At(path) })
}

/// Reads an enum of which `node` holds the settings of the given kind, as in `[policy.LABEL]` with its `kind`.
pub fn read_kind<'de, T: Deserialize<'de>>(kind: &'de str, node: &'de Node, path: &str) -> Result<T, ScenarioError> {
    T::deserialize(KindReader { kind, body: Reader { node, place: Place::At(path) } })
}

/// The error of a value of the wrong type.
fn wrong(expected: &dyn Expected) -> ScenarioError {
    ScenarioError::bare(in_plain_words(expected), true)
}

struct KindReader<'r, 'de> {
    kind: &'de str,
    body: Reader<'r, 'de>,
}

impl<'de> de::Deserializer<'de> for KindReader<'_, 'de> {
    type Error = ScenarioError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        visitor.visit_enum(Kind { kind: self.kind, body: self.body })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Reader<'r, 'de> {
    node: &'de Node,
    place: Place<'r, 'de>,
}

/// The place of a node. Its path is composed for errors only: a list may have a million numbers.
enum Place<'r, 'de> {
    At(&'r str),
    Key(&'r Reader<'r, 'de>, &'de str),
    Index(&'r Reader<'r, 'de>, usize),
}

impl<'de> Reader<'_, 'de> {
    fn child<'c>(&'c self, node: &'de Node, key: &'de str) -> Reader<'c, 'de> {
        Reader { node, place: Place::Key(self, key) }
    }

    fn item<'c>(&'c self, node: &'de Node, index: usize) -> Reader<'c, 'de> {
        Reader { node, place: Place::Index(self, index) }
    }

    /// Keys from the root, with dots between them.
    fn path(&self) -> String {
        let below = |above: &Reader<'_, '_>, key: &dyn fmt::Display| match above.path() {
            path if path.is_empty() => key.to_string(),
            path => format!("{path}.{key}"),
        };
        match self.place {
            Place::At(path) => path.to_owned(),
            Place::Key(above, key) => below(above, &key),
            Place::Index(above, index) => below(above, &index),
        }
    }
}

macro_rules! forward {
    ($($($asked:ident)+ => $taken:ident;)+) => {
        $($(fn $asked<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
            self.$taken(visitor)
        })+)+
    };
}

impl<'de> de::Deserializer<'de> for Reader<'_, 'de> {
    type Error = ScenarioError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        match &self.node.value {
            Value::Boolean(_) => self.deserialize_bool(visitor),
            Value::Integer(_) | Value::Float(_) => self.deserialize_f64(visitor),
            Value::Text(_) => self.deserialize_str(visitor),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Table(_) => self.deserialize_map(visitor),
        }
    }

    // Each method accepts only the kind of value that the type asks for, so that a visitor is compiled for that kind
    // and not for all of them.

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::Integer(number) => visitor.visit_i64(*number),
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::List(items) => {
                let mut list = Items { reader: &self, items, next: 0 };
                let expected = wrong(&visitor);
                let value = visitor.visit_seq(&mut list);
                // A visitor of a tuple stops at its last element.
                if list.next < items.len() && value.is_ok() { Err(expected) } else { value }
            }
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            Value::Table(entries) => visitor.visit_map(Entries { reader: &self, entries, next: 0 }),
            _ => Err(wrong(&visitor)),
        };
        result.map_err(|error| error.located(&self))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ScenarioError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        kinds: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        let result = match &self.node.value {
            // A kind's name alone stands for that kind with all settings at their defaults.
            Value::Text(kind) => {
                let found = visitor.visit_enum(Kind { kind, body: self.child(&NOTHING, kind) });
                let is_known = kinds.is_empty() || kinds.contains(&kind.as_str());
                found.map_err(|error| match is_known {
                    true => error,
                    false => ScenarioError::bare(unknown_name("value", kind, kinds), false),
                })
            }
            Value::Table(entries) if entries.len() == 1 => {
                let (kind, node) = &entries[0];
                visitor.visit_enum(Kind { kind, body: self.child(node, kind) })
            }
            _ => Err(self.one_kind(kinds)),
        };
        result.map_err(|mut error| {
            if error.origin.as_ref() == Some(&NOTHING.origin) {
                error.origin = Some(self.node.origin.clone());
            }
            error.located(&self)
        })
    }

    forward! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
            => deserialize_i64;
        deserialize_f32 => deserialize_f64;
        deserialize_char deserialize_string deserialize_identifier => deserialize_str;
    }

    serde::forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit unit_struct ignored_any
    }
}

struct Items<'r, 'de> {
    reader: &'r Reader<'r, 'de>,
    items: &'de [Node],
    next: usize,
}

impl<'de> de::SeqAccess<'de> for Items<'_, 'de> {
    type Error = ScenarioError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ScenarioError> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        let value = seed.deserialize(self.reader.item(item, index));
        value.map(Some).map_err(|error| error.located(&self.reader.item(item, index)))
    }
}

struct Entries<'r, 'de> {
    reader: &'r Reader<'r, 'de>,
    entries: &'de [(String, Node)],
    next: usize,
}

impl<'de> de::MapAccess<'de> for Entries<'_, 'de> {
    type Error = ScenarioError;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ScenarioError> {
        let Some((key, node)) = self.entries.get(self.next) else { return Ok(None) };
        let found = seed.deserialize(key.as_str().into_deserializer());
        found.map(Some).map_err(|error: ScenarioError| error.located(&self.reader.child(node, key)))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ScenarioError> {
        let (key, node) = &self.entries[self.next];
        self.next += 1;
        // An error that a type raised after its value was read has no origin yet.
        seed.deserialize(self.reader.child(node, key)).map_err(|error| error.located(&self.reader.child(node, key)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len() - self.next)
    }
}

/// The settings of a kind that is given by its name alone.
static NOTHING: LazyLock<Node> =
    LazyLock::new(|| Node { value: Value::Table(Vec::new()), origin: Origin { source: "default".into(), line: None } });

struct Kind<'r, 'de> {
    kind: &'de str,
    body: Reader<'r, 'de>,
}

impl<'r, 'de> de::EnumAccess<'de> for Kind<'r, 'de> {
    type Error = ScenarioError;
    type Variant = Reader<'r, 'de>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Reader<'r, 'de>), ScenarioError> {
        let variant = seed.deserialize(self.kind.into_deserializer());
        let variant = variant.map_err(|error: ScenarioError| error.located(&self.body));
        Ok((variant?, self.body))
    }
}

impl<'de> de::VariantAccess<'de> for Reader<'_, 'de> {
    type Error = ScenarioError;

    fn unit_variant(self) -> Result<(), ScenarioError> {
        match &self.node.value {
            Value::Table(entries) if entries.is_empty() => Ok(()),
            _ => Err(ScenarioError::bare("an empty table: this kind has no settings".to_owned(), true).located(&self)),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ScenarioError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ScenarioError> {
        de::Deserializer::deserialize_any(self, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        de::Deserializer::deserialize_struct(self, "", fields, visitor)
    }
}

#[cfg(test)]
mod tests;
