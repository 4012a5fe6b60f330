//! Laws as a scenario writes them: `{ lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }`.
//!
//! Each law's file in [`fedgenie_core::law`] lists its parameters. Each of them may be a number, a law it is drawn from
//! once per client, a list with one number per client, or a column of a file: [`Parameter`].

mod link;
mod parameter;
mod table;

pub use link::{LinkParameter, TraceLinkConfig};
pub use parameter::{AnyParameter, Parameter};
pub use table::{TableConfig, TableFormat};

use crate::population::trace::join::Source;
use fedgenie_core::law::config::{Convert, Values, law_named};
use fedgenie_core::law::{AnyLaw, LawConfig, NAMES};
use fedgenie_core::rng::Streams;
use fedgenie_core::units::{Amount, BitsPerSecond, Joules, Plain, Quantity, Seconds, Watts};
use parameter::{expect_end, only_key};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, IntoDeserializer, MapAccess};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// The client of a law or a number.
#[derive(Clone, Copy, Debug)]
pub struct GroupClient<'a> {
    /// The client's number in the population: it decides the draws.
    pub client: u32,
    /// The client's number within its group: it is the index into `each` lists.
    pub in_group: usize,
    /// The random numbers.
    pub streams: &'a Streams,
}

/// The most parameters of a law: so many numbers are set apart for each law of a client.
const MOST_PARAMETERS: u32 = 16;

/// The form in scenarios of the parameters of a law of the quantity `Q`.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
pub struct PerClient<Q>(PhantomData<Q>);

impl<Q: Quantity> Values for PerClient<Q> {
    type Quantity = Parameter<Q>;
    type Number = Parameter<Plain>;
    type File = PathBuf;
}

/// A law of the quantity `Q`, whose parameters may differ from client to client.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent, bound = "")]
pub struct ClientLaw<Q: Quantity>(LawConfig<PerClient<Q>>);

/// A law of a duration.
pub type TimeLaw = ClientLaw<Seconds>;
/// A law of a factor without a unit.
pub type FactorLaw = ClientLaw<Plain>;

/// A number of the quantity `Q` that may differ from client to client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct ClientNumber<Q: Quantity>(pub Parameter<Q>);

/// Zero for all clients.
impl<Q: Quantity> Default for ClientNumber<Q> {
    fn default() -> Self {
        Self(Parameter::default())
    }
}

/// A number per client without a unit.
pub type PlainParameter = ClientNumber<Plain>;
/// A data rate per client.
pub type RateParameter = ClientNumber<BitsPerSecond>;
/// A duration per client.
pub type TimeParameter = ClientNumber<Seconds>;
/// An energy per client.
pub type EnergyParameter = ClientNumber<Joules>;
/// A power per client.
pub type PowerParameter = ClientNumber<Watts>;

impl<Q: Quantity> ClientLaw<Q> {
    /// Whether all clients share the law.
    pub fn is_fixed(&self) -> bool {
        self.each_parameter(&mut |parameter| if parameter.is_fixed() { Ok(()) } else { Err(String::new()) }).is_ok()
    }

    /// Makes file names relative: samples to `base`, the folder of the scenario; tables to `data`, the folder given by
    /// the user, or else to `base`.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let Ok(located) = self.0.convert(&mut Locate { base, data, unit: PhantomData });
        self.0 = located;
    }

    /// Appends warnings about the files that were read.
    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        let looked = self.each_parameter(&mut |parameter| {
            parameter.notes(notes);
            Ok(())
        });
        looked.expect("nothing is refused");
    }

    /// Appends the files that its parameters read, as far as they can be read.
    pub(in crate::population) fn sources(&self, path: &str, found: &mut Vec<Source>) {
        let looked = self.each_parameter(&mut |parameter| {
            parameter.sources(path, found);
            Ok(())
        });
        looked.expect("nothing is refused");
    }

    /// Checks that `each` lists have one value for every client of the group.
    pub(crate) fn check_lengths(&self, clients: usize) -> Result<(), String> {
        self.each_parameter(&mut |parameter| parameter.check_length(clients))
    }

    /// The client's law. `number` numbers the law among those of the client, so that their parameters are drawn apart.
    ///
    /// # Errors
    /// A sentence naming the parameter, found and expected value.
    pub fn build(&self, client: &GroupClient<'_>, number: u32) -> Result<AnyLaw, String> {
        let first = number * MOST_PARAMETERS;
        let mut draw = Draw { client, index: first, unit: PhantomData::<Q> };
        let law = self.0.convert(&mut draw)?.build().map_err(|error| error.to_string())?;
        if draw.index > first + MOST_PARAMETERS {
            return Err(format!("a law may have at most {MOST_PARAMETERS} parameters"));
        }
        Ok(law)
    }

    /// The law, if no parameter is drawn.
    fn build_given(&self, client: &GroupClient<'_>) -> Result<AnyLaw, String> {
        self.each_parameter(&mut |parameter| match parameter.is_drawn() {
            true => {
                Err("a parameter is drawn from a law whose own parameters are drawn; give those as numbers".to_owned())
            }
            false => Ok(()),
        })?;
        self.build(client, 0)
    }

    /// Visits the parameters in their order, up to the first refusal.
    fn each_parameter(&self, look: &mut dyn FnMut(&dyn AnyParameter) -> Result<(), String>) -> Result<(), String> {
        self.0.convert(&mut Look { look, unit: PhantomData }).map(|_| ())
    }
}

/// Visits parameters.
struct Look<'a, Q> {
    look: &'a mut dyn FnMut(&dyn AnyParameter) -> Result<(), String>,
    unit: PhantomData<Q>,
}

impl<Q: Quantity> Convert for Look<'_, Q> {
    type From = PerClient<Q>;
    type To = ();
    type Error = String;
    fn quantity(&mut self, given: &Parameter<Q>) -> Result<(), String> {
        (self.look)(given)
    }
    fn number(&mut self, given: &Parameter<Plain>) -> Result<(), String> {
        (self.look)(given)
    }
    fn file(&mut self, _: &PathBuf) -> Result<(), String> {
        Ok(())
    }
}

/// Makes file names relative.
struct Locate<'a, Q> {
    base: &'a Path,
    data: Option<&'a Path>,
    unit: PhantomData<Q>,
}

impl<Q> Locate<'_, Q> {
    fn located<D: Quantity>(&self, given: &Parameter<D>) -> Parameter<D> {
        let mut located = given.clone();
        located.resolve_paths(self.base, self.data);
        located
    }
}

impl<Q: Quantity> Convert for Locate<'_, Q> {
    type From = PerClient<Q>;
    type To = PerClient<Q>;
    type Error = Infallible;
    fn quantity(&mut self, given: &Parameter<Q>) -> Result<Parameter<Q>, Infallible> {
        Ok(self.located(given))
    }
    fn number(&mut self, given: &Parameter<Plain>) -> Result<Parameter<Plain>, Infallible> {
        Ok(self.located(given))
    }
    fn file(&mut self, file: &PathBuf) -> Result<PathBuf, Infallible> {
        Ok(self.base.join(file))
    }
}

/// Works out a client's parameters.
struct Draw<'a, Q> {
    client: &'a GroupClient<'a>,
    /// The number of the next parameter.
    index: u32,
    unit: PhantomData<Q>,
}

impl<Q> Draw<'_, Q> {
    fn next<D: Quantity>(&mut self, given: &Parameter<D>) -> Result<f64, String> {
        self.index += 1;
        given.value(self.client, self.index - 1)
    }
}

impl<Q: Quantity> Convert for Draw<'_, Q> {
    type From = PerClient<Q>;
    type To = f64;
    type Error = String;
    fn quantity(&mut self, given: &Parameter<Q>) -> Result<f64, String> {
        self.next(given)
    }
    fn number(&mut self, given: &Parameter<Plain>) -> Result<f64, String> {
        self.next(given)
    }
    fn file(&mut self, file: &PathBuf) -> Result<PathBuf, String> {
        Ok(file.clone())
    }
    /// The parameters after one that is left out are drawn as if it were given.
    fn left_out(&mut self) {
        self.index += 1;
    }
}

impl<'de, Q: Quantity> Deserialize<'de> for ClientLaw<Q> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LawVisitor(PhantomData))
    }
}

/// Reads `{ NAME = .. }`, or a quantity alone, which is a constant. Derived serde reads the law; other keys are refused
/// here, where the message can list the valid ones.
struct LawVisitor<Q>(PhantomData<Q>);

impl<'de, Q: Quantity> de::Visitor<'de> for LawVisitor<Q> {
    type Value = ClientLaw<Q>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a law, {{ NAME = .. }} with one of {}; or {}", NAMES.join(", "), Q::EXPECTED)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<ClientLaw<Q>, E> {
        constant(number)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<ClientLaw<Q>, E> {
        constant(number)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ClientLaw<Q>, E> {
        match text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
            true => constant(text),
            false => Err(E::invalid_type(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ClientLaw<Q>, A::Error> {
        let name = only_key(&mut map, NAMES, &self)?;
        let law = law_named(name, &mut map)?;
        expect_end(map)?;
        Ok(ClientLaw(law))
    }
}

/// The law of one value.
fn constant<'de, Q: Quantity, E: de::Error>(value: impl IntoDeserializer<'de, E>) -> Result<ClientLaw<Q>, E> {
    let value = Parameter::deserialize(value.into_deserializer())?;
    Ok(ClientLaw(LawConfig::Constant(fedgenie_core::law::constant::Config(value))))
}

/// Names of a quantity's laws and numbers in the JSON schema.
pub trait SchemaNames: Quantity {
    /// Its laws.
    const LAW: &'static str;
    /// Its numbers.
    const NUMBER: &'static str;
}

impl SchemaNames for Seconds {
    const LAW: &'static str = "TimeLaw";
    const NUMBER: &'static str = "TimeParameter";
}

impl SchemaNames for Plain {
    const LAW: &'static str = "FactorLaw";
    const NUMBER: &'static str = "PlainParameter";
}

impl SchemaNames for BitsPerSecond {
    const LAW: &'static str = "RateLaw";
    const NUMBER: &'static str = "RateParameter";
}

impl SchemaNames for Joules {
    const LAW: &'static str = "EnergyLaw";
    const NUMBER: &'static str = "EnergyParameter";
}

impl SchemaNames for Watts {
    const LAW: &'static str = "PowerLaw";
    const NUMBER: &'static str = "PowerParameter";
}

impl<Q: SchemaNames> JsonSchema for ClientLaw<Q> {
    fn schema_name() -> Cow<'static, str> {
        Q::LAW.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = LawConfig::<PerClient<Q>>::json_schema(generator);
        without_explanations(&mut schema);
        // A constant may stand alone.
        if let Some(Value::Array(laws)) = schema.get_mut("oneOf") {
            laws.push(serde_json::json!({ "type": ["string", "number"], "pattern": "^[-+.0-9]" }));
        }
        schema
    }
}

/// Removes the text of `fedgenie describe law/NAME`: every law stands in the schema once per quantity.
fn without_explanations(schema: &mut Schema) {
    fn strip(of: &mut Value) {
        if let Value::Object(of) = of {
            of.retain(|key, _| !["title", "description", "default"].contains(&key.as_str()));
        }
    }
    fn values(of: &mut Value) -> impl Iterator<Item = &mut Value> {
        of.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut)
    }
    schema.remove("description");
    let laws = schema.get_mut("oneOf").and_then(Value::as_array_mut);
    for law in laws.into_iter().flatten() {
        strip(law);
        for body in values(&mut law["properties"]) {
            strip(body);
            body.get_mut("properties").into_iter().flat_map(values).for_each(strip);
            body.get_mut("prefixItems").and_then(Value::as_array_mut).into_iter().flatten().for_each(strip);
        }
    }
}

impl<Q: SchemaNames> JsonSchema for ClientNumber<Q> {
    fn schema_name() -> Cow<'static, str> {
        Q::NUMBER.into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<TableConfig>();
        let table = json_schema!({
            "type": "object", "properties": { "table": table }, "required": ["table"], "additionalProperties": false,
            "description": "a column of a file"
        });
        let law = json_schema!({
            "type": "object", "not": { "required": ["table"] },
            "description": "a law to draw the value from, per client, or each = [..]"
        });
        let number = Amount::<Q>::json_schema(generator);
        json_schema!({ "anyOf": [number, law, table] })
    }
}
