//! Components by name: a table of a scenario in which any number of components of one kind may stand.
//!
//! # Example
//! ```toml
//! [algorithm.scaffold]
//! option = 1
//! [algorithm.trimmed-mean]
//! ```

use schemars::{JsonSchema, Schema};
use serde::de::{DeserializeSeed, EnumAccess, Error, IntoDeserializer, MapAccess, VariantAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;

/// Components of one kind by name, as a table of a scenario has them: `[kind.NAME]`, each once.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(Vec<T>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    /// The components, in the order of the scenario.
    pub fn entries(&self) -> &[T] {
        &self.0
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> From<Vec<T>> for Named<T> {
    fn from(entries: Vec<T>) -> Self {
        Self(entries)
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Each entry is a table of one key, its name.
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for entry in &self.0 {
            let Value::Object(table) = serde_json::to_value(entry).map_err(serde::ser::Error::custom)? else {
                return Err(serde::ser::Error::custom("a component is a table"));
            };
            table.iter().try_for_each(|(name, settings)| map.serialize_entry(name, settings))?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> Schema {
        // Known by its own name too, for those that look up what each component takes.
        let _ = generator.subschema_for::<T>();
        let one = T::json_schema(generator);
        let mut properties = serde_json::Map::new();
        for variant in one.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            for (name, settings) in variant["properties"].as_object().into_iter().flatten() {
                let mut settings = settings.clone();
                if let (Some(settings), Some(text)) = (settings.as_object_mut(), variant.get("description")) {
                    settings.insert("description".to_owned(), text.clone());
                }
                properties.insert(name.clone(), settings);
            }
        }
        schemars::json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

/// Reads a table of components.
struct Entries<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
    type Value = Named<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of components by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            entries.push(map.next_value_seed(OfName { name: &name, entry: PhantomData })?);
        }
        Ok(Named(entries))
    }
}

/// Reads the settings of a component whose name is known.
struct OfName<'a, T> {
    name: &'a str,
    entry: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for OfName<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, settings: D) -> Result<T, D::Error> {
        T::deserialize(Component { name: self.name, settings })
    }
}

/// A component as an enum: the variant of its name, with its settings.
struct Component<'a, D> {
    name: &'a str,
    settings: D,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Component<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Component<'_, D> {
    type Error = D::Error;
    type Variant = Settings<D>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Settings<D>), D::Error> {
        Ok((seed.deserialize(self.name.into_deserializer())?, Settings(self.settings)))
    }
}

/// The settings of a component.
struct Settings<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Settings<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        Err(D::Error::custom("a component is a table"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, _visitor: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a component is a table"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("a component is a table"))
    }
}
