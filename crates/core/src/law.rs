//! Laws of non-negative quantities, usually durations: one file per law.
//!
//! A law is used in three ways: a run draws from it ([`Law::quantile`] of one uniform variate), a mean speed is an
//! integral over it ([`Law::laplace`], [`Law::expect`]), and an expected minimum needs its [`Law::cdf`].
//!
//! ```
//! use fedgenie_core::law::{AnyLaw, Law, Lognormal};
//! let compute = AnyLaw::from(Lognormal::new(0.4, 0.3)?);
//! assert_eq!(compute.quantile(0.5), 0.4);
//! assert!((compute.cdf(0.4) - 0.5).abs() < 1e-15);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```

use crate::math::quadrature;
use config::{Convert, Values, parameters};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

// The modules are listed outside the macro below because rustfmt does not look for files inside one.
pub mod config;
pub mod constant;
pub mod empirical;
pub mod expected_minimum;
pub mod exponential;
pub mod gamma;
pub mod latency;
pub mod lognormal;
pub mod mixture;
pub mod pareto;
pub mod truncated_normal;
pub mod uniform;
pub mod weibull;

#[cfg(test)]
mod check;

pub use config::BuildError;
pub use expected_minimum::{ExpectedMinimum, ExpectedMinimumError};
pub use latency::{JobLatency, LossyLatency};

/// The relative tolerance of every expectation that is computed by quadrature.
pub const EXPECTATION_TOLERANCE: f64 = 1e-12;

/// The law of a non-negative random variable X.
pub trait Law {
    /// The smallest x with P(X ≤ x) ≥ u, for u in (0, 1): one uniform variate gives one variate of the law.
    fn quantile(&self, u: f64) -> f64;

    /// `quantile(1 - v)`, accurate for small v wherever the law allows.
    fn upper_quantile(&self, v: f64) -> f64 {
        self.quantile(1.0 - v)
    }

    /// P(X ≤ x), for any x.
    fn cdf(&self, x: f64) -> f64;

    /// P(X > x), accurate where it is small wherever the law allows.
    fn tail(&self, x: f64) -> f64 {
        1.0 - self.cdf(x)
    }

    /// E X, which may be infinite.
    fn mean(&self) -> f64;

    /// E exp(-sX) for s ≥ 0, to a relative error of 1e-11 wherever it exceeds 1e-280.
    fn laplace(&self, s: f64) -> f64;

    /// E f(X) for a smooth bounded f that varies no faster than the law itself, to about 1e-12 of E|f(X)|.
    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        let at = |p: f64, q: f64| f(if p <= 0.5 { self.quantile(p) } else { self.upper_quantile(q) });
        quadrature::unit(at, EXPECTATION_TOLERANCE).value
    }

    /// The lower end of the support.
    fn minimum(&self) -> f64 {
        0.0
    }

    /// The upper end of the support, possibly infinite.
    fn maximum(&self) -> f64 {
        f64::INFINITY
    }

    /// Appends where the cdf is not smooth: atoms, kinks, and the finite ends of the support. In no particular order.
    fn breakpoints(&self, out: &mut Vec<f64>) {
        out.push(self.minimum());
        if self.maximum() < f64::INFINITY {
            out.push(self.maximum());
        }
    }

    /// The κ with P(X ≤ x) ~ x^κ as x → 0: 0 for an atom at zero, infinite if the cdf vanishes faster than any power.
    /// E 1/X is finite if and only if κ > 1.
    fn small_value_index(&self) -> f64;

    /// The α such that the moments E X^k are finite for k < α and infinite from there on: the mean is infinite for α ≤
    /// 1, the variance for α ≤ 2. Infinite if all moments are finite.
    fn tail_index(&self) -> f64 {
        f64::INFINITY
    }

    /// The law of `factor` × X.
    ///
    /// # Panics
    /// If `factor` is not a positive finite number.
    fn scaled(&self, factor: f64) -> Self
    where
        Self: Sized;
}

/// A parameter outside the law's range. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} is {found}, but must be {expected}")]
pub struct LawError {
    /// The name of the parameter.
    pub parameter: &'static str,
    /// The value found.
    pub found: String,
    /// The accepted range.
    pub expected: &'static str,
}

impl LawError {
    fn new(parameter: &'static str, found: impl ToString, expected: &'static str) -> Self {
        Self { parameter, found: found.to_string(), expected }
    }
}

fn positive(parameter: &'static str, value: f64) -> Result<f64, LawError> {
    let fine = value > 0.0 && value < f64::INFINITY;
    if fine { Ok(value) } else { Err(LawError::new(parameter, value, "a positive finite number")) }
}

fn non_negative(parameter: &'static str, value: f64) -> Result<f64, LawError> {
    let fine = (0.0..f64::INFINITY).contains(&value);
    // Negative zero becomes zero.
    if fine { Ok(value + 0.0) } else { Err(LawError::new(parameter, value, "a finite number not below zero")) }
}

fn assert_factor(factor: f64) {
    assert!(factor > 0.0 && factor < f64::INFINITY, "a law is scaled by a positive finite factor, not by {factor}");
}

/// One law in the catalogue.
pub struct LawEntry {
    /// The key in a scenario.
    pub name: &'static str,
    /// The text of the law's file, which begins with its documentation.
    pub documentation: &'static str,
    schema: fn() -> Schema,
}

/// One parameter of a law.
#[derive(Clone, Debug, PartialEq)]
pub struct LawParameter {
    /// Its key in a scenario, or its name where the law is written without keys.
    pub name: String,
    /// Its value when left out, if it has one.
    pub default: Option<f64>,
    /// One line that defines it.
    pub documentation: String,
}

impl LawEntry {
    /// The parameters in the order of the law's documentation; empty for laws that are made of parts.
    pub fn parameters(&self) -> Vec<LawParameter> {
        let schema = (self.schema)();
        let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let parameter = |name: String, of: &Value| LawParameter {
            name,
            default: of["default"].as_f64(),
            documentation: text(of, "description"),
        };
        let unnamed = |of: &Value| parameter(text(of, "title"), of);
        match (schema.get("properties"), schema.get("prefixItems")) {
            (Some(Value::Object(named)), _) => named.iter().map(|(name, of)| parameter(name.clone(), of)).collect(),
            (_, Some(Value::Array(list))) => list.iter().map(unnamed).collect(),
            _ => schema.get("title").map(|_| unnamed(schema.as_value())).into_iter().collect(),
        }
    }
}

macro_rules! laws {
    ($($name:literal => $module:ident::$law:ident),* $(,)?) => {
        /// Any law with its parameters, as a scenario gives them or as plain numbers.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(bound = "")]
        pub enum LawConfig<V: Values> {
            $(#[doc = concat!("See [`", stringify!($law), "`].")] #[serde(rename = $name)] $law($module::Config<V>)),*
        }

        impl<V: Values> LawConfig<V> {
            /// The same law with other values for its parameters, which are converted in their order.
            ///
            /// # Errors
            /// The first that the conversion raises.
            pub fn convert<C: Convert<From = V>>(&self, convert: &mut C) -> Result<LawConfig<C::To>, C::Error> {
                match self { $(Self::$law(config) => config.convert(convert).map(LawConfig::$law)),* }
            }
        }

        impl LawConfig<f64> {
            /// The law with these parameters.
            ///
            /// # Errors
            /// A parameter out of range, or a file that cannot be read.
            pub fn build(self) -> Result<AnyLaw, BuildError> {
                match self { $(Self::$law(config) => config.build($name)),* }
            }
        }

        /// The names of all laws.
        pub const NAMES: &[&str] = &[$($name),*];

        /// Any law of the catalogue; at most 40 bytes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyLaw {
            $(#[doc = concat!("See [`", stringify!($law), "`].")] $law($law)),*
        }

        /// Every law, in the order of the documentation.
        pub static CATALOGUE: &[LawEntry] = &[$(LawEntry {
            name: $name,
            documentation: include_str!(concat!("law/", stringify!($module), ".rs")),
            schema: || $module::Config::<f64>::json_schema(&mut SchemaGenerator::default()),
        }),*];

        $(pub use $module::$law;

        impl From<$law> for AnyLaw {
            fn from(law: $law) -> Self {
                Self::$law(law)
            }
        })*

        impl Law for AnyLaw {
            fn quantile(&self, u: f64) -> f64 {
                match self { $(Self::$law(law) => law.quantile(u)),* }
            }
            fn upper_quantile(&self, v: f64) -> f64 {
                match self { $(Self::$law(law) => law.upper_quantile(v)),* }
            }
            fn cdf(&self, x: f64) -> f64 {
                match self { $(Self::$law(law) => law.cdf(x)),* }
            }
            fn tail(&self, x: f64) -> f64 {
                match self { $(Self::$law(law) => law.tail(x)),* }
            }
            fn mean(&self) -> f64 {
                match self { $(Self::$law(law) => law.mean()),* }
            }
            fn laplace(&self, s: f64) -> f64 {
                match self { $(Self::$law(law) => law.laplace(s)),* }
            }
            fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
                match self { $(Self::$law(law) => law.expect(f)),* }
            }
            fn minimum(&self) -> f64 {
                match self { $(Self::$law(law) => law.minimum()),* }
            }
            fn maximum(&self) -> f64 {
                match self { $(Self::$law(law) => law.maximum()),* }
            }
            fn breakpoints(&self, out: &mut Vec<f64>) {
                match self { $(Self::$law(law) => law.breakpoints(out)),* }
            }
            fn small_value_index(&self) -> f64 {
                match self { $(Self::$law(law) => law.small_value_index()),* }
            }
            fn tail_index(&self) -> f64 {
                match self { $(Self::$law(law) => law.tail_index()),* }
            }
            fn scaled(&self, factor: f64) -> Self {
                match self { $(Self::$law(law) => Self::$law(law.scaled(factor))),* }
            }
        }
    };
}

laws! {
    "constant" => constant::Constant,
    "uniform" => uniform::Uniform,
    "exponential" => exponential::Exponential,
    "truncated-normal" => truncated_normal::TruncatedNormal,
    "lognormal" => lognormal::Lognormal,
    "gamma" => gamma::Gamma,
    "weibull" => weibull::Weibull,
    "pareto" => pareto::Pareto,
    "mixture" => mixture::Mixture,
    "empirical" => empirical::Empirical,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_small_and_can_be_shared() {
        fn shared<T: Send + Sync>() {}
        shared::<AnyLaw>();
        assert!(size_of::<AnyLaw>() <= 40, "{} bytes", size_of::<AnyLaw>());
    }

    #[test]
    fn the_catalogue_knows_every_law_and_its_parameters() {
        for (entry, name) in CATALOGUE.iter().zip(NAMES) {
            assert_eq!(entry.name, *name);
            assert!(entry.documentation.starts_with("//!"), "{} has no documentation", entry.name);
            for parameter in entry.parameters() {
                assert!(!parameter.name.is_empty(), "{}: a parameter without a name", entry.name);
                assert!(!parameter.documentation.is_empty(), "{}: {} is not explained", entry.name, parameter.name);
            }
        }
        let of = |name: &str| CATALOGUE.iter().find(|entry| entry.name == name).expect("a law").parameters();
        let names = |name: &str| of(name).into_iter().map(|parameter| parameter.name).collect::<Vec<_>>();
        assert_eq!(names("constant"), ["value"]);
        assert_eq!(names("uniform"), ["low", "high"]);
        assert_eq!(names("truncated-normal"), ["mean", "sd", "min", "max"]);
        assert_eq!(names("mixture"), [""; 0]);
        assert_eq!(of("exponential")[1].default, Some(0.0));
    }

    #[test]
    fn laws_are_written_as_they_are_read_and_built_from_plain_numbers() {
        for (written, mean) in [
            (r#"{"constant":2.0}"#, 2.0),
            (r#"{"uniform":[1.0,2.0]}"#, 1.5),
            (r#"{"exponential":{"mean":2.0,"shift":1.0}}"#, 3.0),
            (r#"{"gamma":{"shape":2.0,"scale":3.0}}"#, 6.0),
            (r#"{"mixture":[{"weight":3.0,"constant":1.0},{"weight":1.0,"uniform":[4.0,6.0]}]}"#, 2.0),
        ] {
            let law: LawConfig<f64> = serde_json::from_str(written).expect(written);
            assert_eq!(serde_json::to_string(&law).expect("plain numbers"), written);
            assert_eq!(law.build().expect(written).mean(), mean, "{written}");
        }
    }

    #[test]
    fn a_law_that_cannot_be_is_named_with_its_parameter() {
        let refused = |written: &str| {
            let law: LawConfig<f64> = serde_json::from_str(written).expect(written);
            law.build().expect_err(written).to_string()
        };
        let found = refused(r#"{"mixture":[{"weight":1,"gamma":{"shape":0,"scale":1}}]}"#);
        assert_eq!(found, "gamma: shape is 0, but must be from 0.01 to 10000");
        let found = refused(r#"{"mixture":[{"weight":0,"constant":1}]}"#);
        assert_eq!(found, "mixture: weight is 0, but must be a positive finite number");
    }

    #[test]
    fn an_error_names_parameter_found_and_expected() {
        let error = Lognormal::new(-1.0, 0.3).expect_err("a negative median");
        assert_eq!(error.to_string(), "median is -1, but must be a positive finite number");
    }
}
