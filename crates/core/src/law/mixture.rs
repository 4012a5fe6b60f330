//! Mixture of laws with given weights.
//!
//! # Definition
//! `P(X ≤ x) = Σ wₖ Fₖ(x) / Σ wₖ`.
//!
//! # Inputs
//! A list of at least one component: a law with a `weight` > 0 beside it. The weights need not sum to 1.
//!
//! # Source
//! Elementary.
//!
//! # Cost
//! A variate is a root search: some 10 to 60 evaluations of every component's cdf. Everything else is the sum over the
//! components. A copy shares them.
//!
//! # Determinism
//! One uniform per variate, by inversion of the cdf to the last bit. Sums run in the order of the components.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Constant, Law, Mixture, Uniform};
//! let fast = Uniform::new(0.1, 0.2)?.into();
//! let slow = Constant::new(2.0)?.into();
//! let compute = Mixture::new([(3.0, fast), (1.0, slow)])?;
//! assert_eq!(compute.cdf(1.0), 0.75);
//! assert_eq!(compute.quantile(0.8), 2.0);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { mixture = [{ weight = 3, constant = "20 ms" }, { weight = 1, exponential = { mean = "1 s" } }] }
//! ```

use super::config::{self, Convert, ListOf, OneOf};
use super::{AnyLaw, BuildError, Law, LawConfig, LawError, NAMES, Values, assert_factor, positive};
use crate::math::float::sqrt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Unexpected};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The parts in a scenario:
/// `mixture = [{ weight = 3, constant = "20 ms" }, { weight = 1, exponential = { mean = "1 s" } }]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(bound = "")]
#[schemars(inline)]
pub struct Config<V: Values>(
    #[serde(deserialize_with = "parts")]
    #[schemars(schema_with = "parts_schema")]
    pub Vec<Part<V>>,
);

/// One part of a mixture: `{ weight = 3, constant = "20 ms" }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(bound = "")]
pub struct Part<V: Values> {
    /// Its probability, up to a common factor.
    pub weight: f64,
    /// Its law.
    #[serde(flatten)]
    pub law: LawConfig<V>,
}

/// Names of laws, and the key of a part's weight.
static KEYS: [&str; NAMES.len() + 1] = config::names_and(&["weight"]);

fn parts<'de, D: Deserializer<'de>, V: Values>(deserializer: D) -> Result<Vec<Part<V>>, D::Error> {
    ListOf::new("a list of tables { weight, law }").deserialize(deserializer)
}

fn parts_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "minItems": 1, "items": { "type": "object" } })
}

// Derived serde reads a flattened law from a copy of the table that has lost its lines.
impl<'de, V: Values> Deserialize<'de> for Part<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor(PhantomData))
    }
}

struct PartVisitor<V>(PhantomData<V>);

impl<'de, V: Values> de::Visitor<'de> for PartVisitor<V> {
    type Value = Part<V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of weight and one law, such as { weight = 0.3, constant = \"1 s\" }")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part<V>, A::Error> {
        let (mut weight, mut law) = (None, None);
        while let Some(key) = map.next_key_seed(OneOf(&KEYS))? {
            match key {
                "weight" => weight = Some(map.next_value()?),
                _ if law.is_some() => return Err(de::Error::invalid_type(Unexpected::Map, &self)),
                name => law = Some(config::law_named(name, &mut map)?),
            }
        }
        let whole = weight.zip(law).map(|(weight, law)| Part { weight, law });
        whole.ok_or_else(|| de::Error::invalid_type(Unexpected::Map, &self))
    }
}

impl<V: Values> Config<V> {
    pub(super) fn convert<C: Convert<From = V>>(&self, convert: &mut C) -> Result<Config<C::To>, C::Error> {
        let part = |Part { weight, law }: &Part<V>| Ok(Part { weight: *weight, law: law.convert(convert)? });
        self.0.iter().map(part).collect::<Result<_, _>>().map(Config)
    }
}

impl Config<f64> {
    pub(super) fn build(self, law: &'static str) -> Result<AnyLaw, BuildError> {
        let part = |Part { weight, law }: Part<f64>| Ok((weight, law.build()?));
        let parts: Vec<_> = self.0.into_iter().map(part).collect::<Result<_, BuildError>>()?;
        Mixture::new(parts).map(AnyLaw::from).map_err(|error| (law, error).into())
    }
}

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    components: Arc<[Component]>,
    factor: f64,
}

/// One law of a mixture.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// Its probability.
    pub weight: f64,
    /// The law itself.
    pub law: AnyLaw,
}

impl Mixture {
    /// The mixture of laws with these weights, which are divided by their sum.
    ///
    /// # Errors
    /// No component, or a weight that is not positive and finite.
    pub fn new(parts: impl IntoIterator<Item = (f64, AnyLaw)>) -> Result<Self, LawError> {
        let mut components = Vec::new();
        let mut total = 0.0;
        for (weight, law) in parts {
            total += positive("weight", weight)?;
            components.push(Component { weight, law });
        }
        if components.is_empty() {
            return Err(LawError::new("mixture", "empty", "a list of at least one law"));
        }
        positive("the sum of the weights", total)?;
        for component in &mut components {
            component.weight /= total;
        }
        Ok(Self { components: components.into(), factor: 1.0 })
    }

    /// The laws and their probabilities, before [`Mixture::factor`] is applied.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// What every component is multiplied by.
    pub fn factor(&self) -> f64 {
        self.factor
    }

    fn sum(&self, of: impl Fn(&AnyLaw) -> f64) -> f64 {
        self.components.iter().map(|component| component.weight * of(&component.law)).sum()
    }

    fn least(&self, of: impl Fn(&AnyLaw) -> f64) -> f64 {
        self.components.iter().map(|component| of(&component.law)).fold(f64::INFINITY, f64::min)
    }

    fn greatest(&self, of: impl Fn(&AnyLaw) -> f64) -> f64 {
        self.components.iter().map(|component| of(&component.law)).fold(0.0, f64::max)
    }
}

/// The smallest x in [low, high] with `excess(x) ≥ 0`, for a non-decreasing `excess` that is so at `high`.
///
/// Steps by regula falsi (Illinois) while that halves the bracket every third step, and by bisection where it does not,
/// as at an atom; ends when no number lies between the ends of the bracket.
pub(super) fn smallest_root(mut low: f64, mut high: f64, mut excess: impl FnMut(f64) -> f64) -> f64 {
    if low >= high {
        return high;
    }
    let mut below = excess(low);
    if below >= 0.0 {
        return low;
    }
    let mut above = excess(high).max(0.0);
    let (mut width, mut falsi) = (high - low, 0);
    loop {
        let bisection = if low > 0.0 && high > 4.0 * low { sqrt(low) * sqrt(high) } else { low + 0.5 * (high - low) };
        let secant = low + (high - low) * (below / (below - above));
        let trusted = falsi < 3 && secant > low && secant < high;
        let middle = if trusted { secant } else { bisection };
        if !(low < middle && middle < high) {
            return high;
        }
        let value = excess(middle);
        if value >= 0.0 {
            (high, above, below) = (middle, value, 0.5 * below);
        } else {
            (low, below, above) = (middle, value, 0.5 * above);
        }
        falsi = if high - low <= 0.5 * width || falsi >= 3 { 0 } else { falsi + 1 };
        if falsi == 0 {
            width = high - low;
        }
    }
}

impl Law for Mixture {
    fn quantile(&self, u: f64) -> f64 {
        let (low, high) = (self.least(|law| law.quantile(u)), self.greatest(|law| law.quantile(u)));
        self.factor * smallest_root(low, high, |x| self.sum(|law| law.cdf(x)) - u)
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        let (low, high) = (self.least(|law| law.upper_quantile(v)), self.greatest(|law| law.upper_quantile(v)));
        self.factor * smallest_root(low, high, |x| v - self.sum(|law| law.tail(x)))
    }

    fn cdf(&self, x: f64) -> f64 {
        self.sum(|law| law.cdf(x / self.factor))
    }

    fn tail(&self, x: f64) -> f64 {
        self.sum(|law| law.tail(x / self.factor))
    }

    fn mean(&self) -> f64 {
        self.factor * self.sum(Law::mean)
    }

    fn laplace(&self, s: f64) -> f64 {
        self.sum(|law| law.laplace(s * self.factor))
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        let mut sum = 0.0;
        for component in self.components.iter() {
            sum += component.weight * component.law.expect(&mut |x| f(x * self.factor));
        }
        sum
    }

    fn minimum(&self) -> f64 {
        self.factor * self.least(Law::minimum)
    }

    fn maximum(&self) -> f64 {
        self.factor * self.greatest(Law::maximum)
    }

    fn breakpoints(&self, out: &mut Vec<f64>) {
        let first = out.len();
        for component in self.components.iter() {
            component.law.breakpoints(out);
        }
        for breakpoint in &mut out[first..] {
            *breakpoint *= self.factor;
        }
    }

    fn small_value_index(&self) -> f64 {
        self.least(Law::small_value_index)
    }

    fn tail_index(&self) -> f64 {
        self.least(Law::tail_index)
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { components: Arc::clone(&self.components), factor: self.factor * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{Constant, Gamma, Lognormal, Uniform, check};
    use approx::assert_relative_eq;

    fn smooth() -> Mixture {
        let fast = Gamma::new(3.0, 0.05).expect("valid").into();
        let slow = Lognormal::new(2.0, 0.2).expect("valid").into();
        Mixture::new([(3.0, fast), (1.0, slow)]).expect("valid")
    }

    #[test]
    fn behaves_as_a_law() {
        check::inverses_and_sample(&smooth());
        check::inverses_and_sample(&smooth().scaled(1e-3));
    }

    #[test]
    fn a_single_component_is_the_component() {
        let law = Lognormal::new(2.0, 0.2).expect("valid");
        let mixture = Mixture::new([(7.0, law.into())]).expect("valid");
        for u in [1e-9, 0.3, 0.5, 0.99] {
            assert_relative_eq!(mixture.quantile(u), law.quantile(u), max_relative = 1e-14);
        }
        assert_eq!((mixture.mean(), mixture.laplace(1.0)), (law.mean(), law.laplace(1.0)));
    }

    #[test]
    fn an_atom_takes_its_share_of_the_variates_exactly() {
        let atom = Constant::new(0.5).expect("valid").into();
        let spread = Uniform::new(0.0, 1.0).expect("valid").into();
        let law = Mixture::new([(1.0, atom), (1.0, spread)]).expect("valid");
        assert_eq!((law.cdf(0.5), law.quantile(0.25), law.quantile(0.5), law.quantile(0.7499)), (0.75, 0.5, 0.5, 0.5));
        assert_relative_eq!(law.quantile(0.8), 0.6, max_relative = 1e-15);
        assert_relative_eq!(law.quantile(0.2), 0.4, max_relative = 1e-15);
        let mut breakpoints = vec![];
        law.scaled(2.0).breakpoints(&mut breakpoints);
        assert_eq!(breakpoints, [1.0, 0.0, 2.0]);
    }

    #[test]
    fn bad_parts_are_refused() {
        assert_eq!(Mixture::new([]).expect_err("refused").parameter, "mixture");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let part = (bad, Constant::new(1.0).expect("valid").into());
            assert_eq!(Mixture::new([part]).expect_err("refused").parameter, "weight");
        }
    }

    #[test]
    fn variates_never_change() {
        let bits = [0x3f85_94fc_0885_8a4d, 0x3fbd_3fbd_7093_b47a, 0x4000_d4e3_d0d5_5e86, 0x4013_8a50_3c93_aa06];
        check::stable(&smooth(), &bits);
    }
}
