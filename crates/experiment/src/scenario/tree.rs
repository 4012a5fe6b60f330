//! A scenario file as a tree of values that remember where they were written.
//!
//! TOML and JSON give the same tree; `--set` and sweeps write into it before it is read into types, so that a value
//! from the command line is checked exactly as one from the file.

use fedgenie_core::text;
use serde::de::{self, Deserialize, Deserializer};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use toml::de::{DeTable, DeValue};

mod json;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file's name as given, or `--set`.
    pub source: Arc<str>,
    /// Line, from 1; `None` on the command line.
    pub line: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}", self.source),
            None => write!(formatter, "{}", self.source),
        }
    }
}

/// One value of the file and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written; for a table, the line of its first key or header.
    pub origin: Origin,
}

/// What a scenario file can hold. Tables keep the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number, NaN and infinities included: the reader decides on them.
    Float(f64),
    /// A text.
    Text(String),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Vec<(String, Node)>),
}

/// A file that is not TOML or JSON, or a path that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", text::escaped(&format!("{origin}: {message}")))]
pub struct SyntaxError {
    /// Where it went wrong.
    pub origin: Origin,
    /// The fault and the remedy.
    pub message: String,
}

/// Reads a scenario's text; a name that ends in `.json` is JSON, everything else TOML.
pub fn parse(name: &Path, text: &str) -> Result<Node, SyntaxError> {
    let source: Arc<str> = name.display().to_string().into();
    if name.extension().is_some_and(|extension| extension == "json") {
        let Json(value) = serde_json::from_str(text).map_err(|error| SyntaxError {
            origin: Origin { source: source.clone(), line: Some(error.line()) },
            message: format!("this is not JSON that a scenario can be read from: {error}"),
        })?;
        return Ok(located(value, &source, &mut json::lines(text).into_iter()));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| Lines::of(text).at(span.start));
        let written = line.and_then(|line| text.lines().nth(line - 1)).map_or("", str::trim);
        let what = error.message().replace('\n', ", ");
        let message = format!("this is not TOML: {}, in {}", text::shortened(&what, 400), text::quoted(written));
        SyntaxError { origin: Origin { source: source.clone(), line }, message }
    })?;
    from_toml_table(table.get_ref(), &Lines::of(text), &source, 1)
}

/// Reads one TOML value, as on the right of `--set path=value`; anything else is a text.
pub fn parse_value(text: &str, source: &str) -> Node {
    let source: Arc<str> = source.into();
    let origin = Origin { source: source.clone(), line: None };
    let node =
        DeValue::parse(text).ok().and_then(|value| from_toml(value.get_ref(), &Lines::of(text), &source, 1).ok());
    match node {
        Some(node) => Node { origin, ..node },
        None => Node { value: Value::Text(text.to_owned()), origin },
    }
}

/// The keys of a dotted path. An overridden setting is one key, although a path itself:
/// `policy.X.with."protocol.synchronous.cohort"`, with or without the quotes.
fn keys(path: &str) -> Vec<&str> {
    let mut keys: Vec<&str> = path.splitn(4, '.').collect();
    if let ["policy", _, "with", overridden] = keys[..] {
        keys[3] = overridden.trim_matches('"');
        return keys;
    }
    path.split('.').collect()
}

/// Where the lines of a text end.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(place, _)| place).collect())
    }

    /// The line, from 1, of a place in the text.
    fn at(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|&end| end < offset)
    }
}

fn from_toml_table(table: &DeTable<'_>, lines: &Lines, source: &Arc<str>, line: usize) -> Result<Node, SyntaxError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let line = lines.at(key.span().start);
        entries.push((key.get_ref().to_string(), from_toml(value.get_ref(), lines, source, line)?));
    }
    Ok(Node { value: Value::Table(entries), origin: Origin { source: source.clone(), line: Some(line) } })
}

fn from_toml(value: &DeValue<'_>, lines: &Lines, source: &Arc<str>, line: usize) -> Result<Node, SyntaxError> {
    let origin = Origin { source: source.clone(), line: Some(line) };
    let refuse = |message: String| SyntaxError { origin: origin.clone(), message };
    let value =
        match value {
            DeValue::Boolean(truth) => Value::Boolean(*truth),
            DeValue::String(string) => Value::Text(string.to_string()),
            DeValue::Integer(number) => {
                Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
                    let number = text::shortened(number.as_str(), text::QUOTED_MAX);
                    refuse(format!("the whole number {number} does not fit in 64 bits"))
                })?)
            }
            DeValue::Float(number) => Value::Float(number.as_str().parse().map_err(|_| {
                refuse(format!("{} is not a number", text::shortened(number.as_str(), text::QUOTED_MAX)))
            })?),
            DeValue::Datetime(date) => return Err(refuse(format!("found the date {date}; a scenario has no dates"))),
            DeValue::Array(items) => {
                let item = |item: &toml::Spanned<DeValue<'_>>| {
                    from_toml(item.get_ref(), lines, source, lines.at(item.span().start))
                };
                Value::List(items.iter().map(item).collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => return from_toml_table(table, lines, source, line),
        };
    Ok(Node { value, origin })
}

/// A JSON value that refuses ambiguities of a scenario: keys given twice, and null.
struct Json(Value);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

struct JsonVisitor;

impl JsonVisitor {
    fn node(Json(value): Json) -> Node {
        Node { value, origin: Origin { source: Arc::default(), line: None } }
    }
}

impl<'de> de::Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Err(E::custom("found null; leave the key out instead"))
    }
    fn visit_bool<E: de::Error>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Boolean(truth))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer))
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(Self::node(item));
        }
        Ok(Value::List(items))
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(String, Node)> = Vec::new();
        let mut known = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !known.insert(key.clone()) {
                return Err(de::Error::custom(format!("duplicate key {}", text::quoted(&key))));
            }
            entries.push((key, Self::node(map.next_value()?)));
        }
        Ok(Value::Table(entries))
    }
}

/// A node with file and line in every part; `lines` has the lines of all values in their order. A `$schema` is for
/// editors alone.
fn located(value: Value, source: &Arc<str>, lines: &mut impl Iterator<Item = usize>) -> Node {
    let origin = Origin { source: source.clone(), line: lines.next() };
    let value = match value {
        Value::List(items) => Value::List(items.into_iter().map(|node| located(node.value, source, lines)).collect()),
        Value::Table(entries) => {
            let entries = entries.into_iter().map(|(key, node)| (key, located(node.value, source, lines)));
            // All are walked, so that each takes its line.
            let entries: Vec<_> = entries.collect();
            Value::Table(entries.into_iter().filter(|(key, _)| key != "$schema").collect())
        }
        plain => plain,
    };
    Node { value, origin }
}

impl Node {
    /// A text from the command line.
    pub fn text(text: &str, source: &str) -> Self {
        Self { value: Value::Text(text.to_owned()), origin: Origin { source: source.into(), line: None } }
    }

    /// The entry of a table, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The node at a dotted path such as `policy.bsfl.alpha` or `population.group.0.count`.
    pub fn at(&self, path: &str) -> Option<&Self> {
        keys(path).into_iter().try_fold(self, |node, key| match &node.value {
            Value::List(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => node.get(key),
        })
    }

    /// The origin of the deepest part of a path that exists, for errors about missing or derived values.
    pub fn nearest_origin(&self, path: &str) -> &Origin {
        let mut node = self;
        for key in keys(path) {
            let next = match &node.value {
                Value::List(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => node.get(key),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        &node.origin
    }

    /// About how many bytes it takes, with all its parts.
    pub(super) fn bytes(&self) -> usize {
        let inner = match &self.value {
            Value::Text(text) => text.len(),
            Value::List(items) => items.iter().map(Self::bytes).sum(),
            Value::Table(entries) => {
                entries.iter().map(|(key, node)| size_of::<String>() + key.len() + node.bytes()).sum()
            }
            _ => 0,
        };
        size_of::<Self>() + inner
    }

    /// Removes an entry of a table and returns it.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        match &mut self.value {
            Value::Table(entries) => {
                let index = entries.iter().position(|(name, _)| name == key)?;
                Some(entries.remove(index).1)
            }
            _ => None,
        }
    }

    /// Writes `node` at a dotted path, making tables on the way.
    ///
    /// # Errors
    /// If the path leads through something that is neither a table nor an existing index of a list.
    pub fn set(&mut self, path: &str, node: Self) -> Result<(), SyntaxError> {
        let mut here = self;
        for key in keys(path) {
            if key.is_empty() {
                let message = format!("the path {path:?} has an empty part; write for example policy.bsfl.alpha");
                return Err(SyntaxError { origin: node.origin, message });
            }
            let origin = node.origin.clone();
            let refuse = move |message| SyntaxError { origin, message };
            // A kind's name alone stands for its table without entries.
            if matches!(&here.value, Value::Text(kind) if kind == key) {
                here.value = Value::Table(Vec::new());
            }
            here = match &mut here.value {
                Value::Table(entries) => {
                    let index = entries.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
                        let empty = Self { value: Value::Table(Vec::new()), origin: node.origin.clone() };
                        entries.push((key.to_owned(), empty));
                        entries.len() - 1
                    });
                    &mut entries[index].1
                }
                Value::List(items) => {
                    let count = items.len();
                    let index = key.parse::<usize>().ok().filter(|&index| index < count);
                    let index = index.ok_or_else(|| {
                        refuse(format!("in the path {path:?}, {key:?} should be a place 0..{count} of a list"))
                    })?;
                    &mut items[index]
                }
                _ => return Err(refuse(format!("the path {path:?} leads through a value that is not a table"))),
            };
        }
        *here = node;
        Ok(())
    }

    /// Takes the value at a path away.
    ///
    /// # Errors
    /// If there is none.
    pub fn remove(&mut self, path: &str, source: &str) -> Result<(), SyntaxError> {
        let keys = keys(path);
        let found = keys.split_last().and_then(|(last, above)| {
            let mut here = &mut *self;
            for key in above {
                let Value::Table(entries) = &mut here.value else { return None };
                here = &mut entries.iter_mut().find(|(name, _)| name == key)?.1;
            }
            let Value::Table(entries) = &mut here.value else { return None };
            let index = entries.iter().position(|(name, _)| name == last)?;
            Some(entries.remove(index))
        });
        found.map(|_| ()).ok_or_else(|| SyntaxError {
            origin: Origin { source: source.into(), line: None },
            message: format!("{path}= takes a value away, and the scenario has none there"),
        })
    }
}

impl Value {
    /// How the value is shown in an error.
    pub fn describe(&self) -> String {
        match self {
            Self::Boolean(truth) => format!("{truth}"),
            Self::Integer(number) => format!("{number}"),
            Self::Float(number) => format!("{number:?}"),
            Self::Text(text) => text::quoted(text),
            Self::List(items) if items.len() <= 4 => {
                format!("[{}]", items.iter().map(|item| item.value.describe()).collect::<Vec<_>>().join(", "))
            }
            Self::List(items) => format!("a list of {}", items.len()),
            Self::Table(entries) => {
                let keys: Vec<_> = entries.iter().map(|(key, _)| key.as_str()).collect();
                let keys = text::shortened(&keys.join(", "), text::QUOTED_MAX).into_owned();
                if entries.is_empty() { "an empty table".to_owned() } else { format!("a table of {keys}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_remember_their_lines() {
        let text = "name = \"x\"\n\n[policy.bsfl]\nalpha = 3.0\n[[population.group]]\ncount = 1\n[[population.group]]\ncount = 2\n";
        let tree = parse(Path::new("a.toml"), text).unwrap();
        assert_eq!(tree.at("policy.bsfl.alpha").unwrap().origin.line, Some(4));
        assert_eq!(tree.at("population.group.1.count").unwrap().origin.line, Some(8));
        assert_eq!(tree.nearest_origin("policy.bsfl.beta").line, Some(3));
    }

    #[test]
    fn json_gives_the_same_tree_and_a_path_writes_into_it() {
        let mut tree = parse(Path::new("a.json"), r#"{"stop": {"rounds": 3}}"#).unwrap();
        tree.set("stop.rounds", parse_value("5", "--set")).unwrap();
        tree.set("policy.random.kind", parse_value("random", "--set")).unwrap();
        assert_eq!(tree.at("stop.rounds").unwrap().value.describe(), "5");
        assert_eq!(tree.at("policy.random.kind").unwrap().value.describe(), "\"random\"");
        assert!(tree.set("stop.rounds.x", parse_value("5", "--set")).is_err());
    }

    #[test]
    fn a_path_in_with_is_one_key_and_a_kind_alone_becomes_a_table() {
        let mut tree = parse(Path::new("a.toml"), "protocol = \"deadline\"\n[policy.big]").unwrap();
        tree.set("policy.big.with.protocol.deadline.cohort", parse_value("5", "--set")).unwrap();
        tree.set("policy.big.with.\"protocol.deadline.cohort\"", parse_value("6", "--set")).unwrap();
        let with = &tree.get("policy").unwrap().get("big").unwrap().get("with").unwrap().value;
        assert_eq!(with.describe(), "a table of protocol.deadline.cohort");
        assert_eq!(tree.at("policy.big.with.protocol.deadline.cohort").unwrap().value.describe(), "6");
        tree.set("protocol.deadline.cohort", parse_value("7", "--set")).unwrap();
        assert_eq!(tree.at("protocol.deadline.cohort").unwrap().value.describe(), "7");
        assert!(tree.set("protocol.deadline.cohort.x", parse_value("7", "--set")).is_err());
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let error = parse(Path::new("a.toml"), "a = 1\nb = = 2\n").unwrap_err();
        assert_eq!(error.origin.to_string(), "a.toml:2");
    }
}
