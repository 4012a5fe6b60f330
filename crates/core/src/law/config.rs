//! How a scenario writes a law: `{ gamma = { shape = 2, scale = "0.1 s" } }`.
//!
//! The `Config` in each law's file holds the law's parameters and is read by derived serde. The type of a parameter is
//! open ([`Values`]): a scenario may give one that differs between clients, a law is built from plain numbers.
//! [`Convert`] leads from the one to the other.

use super::empirical::SampleFileError;
use super::{LawConfig, LawError, NAMES};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess,
};
use std::fmt::{self, Debug, Display};
use std::marker::PhantomData;
use std::path::PathBuf;

/// A type of parameter.
pub trait Parameter: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema {}
impl<T: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema> Parameter for T {}

/// The types of a law's parameters.
pub trait Values: Clone + Debug + PartialEq + JsonSchema {
    /// For a parameter in the unit of the variate.
    type Quantity: Parameter;
    /// For a parameter without a unit.
    type Number: Parameter;
    /// For a file of samples.
    type File: Parameter;
}

/// Plain numbers, from which laws are built.
impl Values for f64 {
    type Quantity = f64;
    type Number = f64;
    type File = PathBuf;
}

/// Nothing: the result of a [`Convert`] that only looks at the parameters.
impl Values for () {
    type Quantity = ();
    type Number = ();
    type File = ();
}

/// A conversion of the parameters of a law, called in their order.
pub trait Convert {
    /// The types before.
    type From: Values;
    /// The types after.
    type To: Values;
    /// Why a parameter cannot be converted.
    type Error;

    /// Converts a parameter in the unit of the variate.
    fn quantity(
        &mut self,
        given: &<Self::From as Values>::Quantity,
    ) -> Result<<Self::To as Values>::Quantity, Self::Error>;

    /// Converts a parameter without a unit.
    fn number(&mut self, given: &<Self::From as Values>::Number) -> Result<<Self::To as Values>::Number, Self::Error>;

    /// Converts a file of samples.
    fn file(&mut self, given: &<Self::From as Values>::File) -> Result<<Self::To as Values>::File, Self::Error>;

    /// A parameter was left out.
    fn left_out(&mut self) {}
}

/// Why a law of a scenario was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A parameter is out of range.
    #[error("{law}: {error}")]
    Parameter {
        /// The name of the law.
        law: &'static str,
        /// The parameter, and its accepted range.
        error: LawError,
    },
    /// A file of samples is missing or wrong.
    #[error(transparent)]
    Samples(SampleFileError),
}

impl From<(&'static str, LawError)> for BuildError {
    fn from((law, error): (&'static str, LawError)) -> Self {
        Self::Parameter { law, error }
    }
}

impl From<(&'static str, SampleFileError)> for BuildError {
    fn from((_, error): (&'static str, SampleFileError)) -> Self {
        Self::Samples(error)
    }
}

/// Implements conversion and building for the `Config` of a law's file: its fields in the order of the constructor,
/// each with its role (`quantity`, `number`, `file`, or `optional` for a quantity that may be left out).
macro_rules! parameters {
    ($($field:tt: $kind:ident),+ => $new:path) => {
        impl<V: $crate::law::config::Values> Config<V> {
            pub(super) fn convert<C>(&self, convert: &mut C) -> Result<Config<C::To>, C::Error>
            where
                C: $crate::law::config::Convert<From = V>,
            {
                Ok(Config { $($field: parameters!(@$kind convert, &self.$field)),+ })
            }
        }

        impl Config<f64> {
            pub(super) fn build(self, law: &'static str) -> Result<super::AnyLaw, $crate::law::config::BuildError> {
                $new($(self.$field),+).map(super::AnyLaw::from).map_err(|error| (law, error).into())
            }
        }
    };
    (@optional $convert:ident, $given:expr) => {
        match $given {
            Some(given) => Some($convert.quantity(given)?),
            None => {
                $convert.left_out();
                None
            }
        }
    };
    (@$kind:ident $convert:ident, $given:expr) => { $convert.$kind($given)? };
}
pub(super) use parameters;

/// Reads a key of a table that must be one of these.
pub struct OneOf(pub &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for OneOf {
    type Value = &'static str;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl de::Visitor<'_> for OneOf {
    type Value = &'static str;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "one of {}", self.0.join(", "))
    }
    fn visit_str<E: de::Error>(self, name: &str) -> Result<&'static str, E> {
        self.0.iter().find(|known| **known == name).copied().ok_or_else(|| E::unknown_variant(name, self.0))
    }
}

/// The names of all laws and these other keys.
pub const fn names_and<const N: usize>(others: &[&'static str]) -> [&'static str; N] {
    assert!(N == NAMES.len() + others.len(), "a name for every entry");
    let mut all = [""; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < NAMES.len() { NAMES[index] } else { others[index - NAMES.len()] };
        index += 1;
    }
    all
}

/// Reads the law with this name, whose parameters are the next value of `map`. The name was read as a key.
///
/// # Errors
/// The fault of the parameters.
pub fn law_named<'de, V: Values, A: MapAccess<'de>>(name: &'static str, map: &mut A) -> Result<LawConfig<V>, A::Error> {
    LawConfig::deserialize(MapAccessDeserializer::new(Named { name, map }))
}

/// A table whose first key was read already.
struct Named<'a, A> {
    name: &'static str,
    map: &'a mut A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Named<'_, A> {
    type Error = A::Error;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        seed.deserialize(self.name.into_deserializer()).map(Some)
    }
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads a list; for anything else the error names the expected value.
pub struct ListOf<T, E> {
    expected: E,
    item: PhantomData<T>,
}

impl<T, E> ListOf<T, E> {
    /// `expected` describes the list.
    pub const fn new(expected: E) -> Self {
        Self { expected, item: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>, E: Display> DeserializeSeed<'de> for ListOf<T, E> {
    type Value = Vec<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, E: Display> de::Visitor<'de> for ListOf<T, E> {
    type Value = Vec<T>;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expected.fmt(formatter)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        std::iter::from_fn(|| list.next_element().transpose()).collect()
    }
}
