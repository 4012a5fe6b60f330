//! The two ways in which a scenario says where data come from: a folder's name, or a table with one key.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;
use std::path::PathBuf;

/// A choice made of a folder, and one made of a source.
type Makers<T, S> = (fn(PathBuf) -> T, fn(S) -> T);

/// Reads `"folder"` as a folder and `{ key = .. }` as a source `S`; anything else is refused with what is `expected`.
pub fn folder_or_source<'de, S: Deserialize<'de>, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    (folder, source): Makers<T, S>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Choice { expected, folder, source })
}

struct Choice<S, T> {
    expected: &'static str,
    folder: fn(PathBuf) -> T,
    source: fn(S) -> T,
}

impl<'de, S: Deserialize<'de>, T> Visitor<'de> for Choice<S, T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, folder: &str) -> Result<T, E> {
        Ok((self.folder)(folder.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        if map.size_hint() == Some(0) {
            return Err(A::Error::custom(self.expected));
        }
        let source = S::deserialize(MapAccessDeserializer::new(&mut map))?;
        match map.next_key::<IgnoredAny>()? {
            None => Ok((self.source)(source)),
            Some(_) => Err(A::Error::custom(self.expected)),
        }
    }
}
