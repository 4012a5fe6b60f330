//! Laws of non-negative quantities, usually durations: one file per law.
//!
//! A law is used in three ways: a run draws from it ([`Law::quantile`] of one uniform variate), a mean speed is an
//! integral over it ([`Law::laplace`], [`Law::expect`]), and an expected minimum needs its [`Law::cdf`].
//!
//! ```
//! use fedgenie::law::{AnyLaw, Law, Lognormal};
//! let compute = AnyLaw::from(Lognormal::new(0.4, 0.3)?);
//! assert_eq!(compute.quantile(0.5), 0.4);
//! assert!((compute.cdf(0.4) - 0.5).abs() < 1e-15);
//! # Ok::<(), fedgenie::law::LawError>(())
//! ```

use crate::math::quadrature;

// The modules are listed outside the macro below because rustfmt does not look for files inside one.
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

pub use constant::Constant;
pub use empirical::Empirical;
pub use expected_minimum::{ExpectedMinimum, ExpectedMinimumError};
pub use exponential::Exponential;
pub use gamma::Gamma;
pub use latency::JobLatency;
pub use lognormal::Lognormal;
pub use mixture::Mixture;
pub use pareto::Pareto;
pub use truncated_normal::TruncatedNormal;
pub use uniform::Uniform;
pub use weibull::Weibull;

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
    fn minimum(&self) -> f64;

    /// The upper end of the support, possibly infinite.
    fn maximum(&self) -> f64;

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

    /// The law of `factor` × X.
    ///
    /// # Panics
    /// If `factor` is not a positive finite number.
    fn scaled(&self, factor: f64) -> Self
    where
        Self: Sized;
}

/// A parameter with which no law exists. Nothing was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} is {found}, but must be {expected}")]
pub struct LawError {
    /// The name of the parameter.
    pub parameter: &'static str,
    /// What was given.
    pub found: String,
    /// What would be right.
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

/// How a law is written in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One value: `constant = "25 ms"`.
    Scalar,
    /// A list of two: `uniform = ["0.1 s", "1 s"]`.
    Pair,
    /// A table of named parameters: `gamma = { shape = 2, scale = "0.1 s" }`.
    Named,
    /// A list of weighted laws.
    Mixture,
    /// A file of samples.
    Empirical,
}

/// What a parameter measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// The same unit as the variate.
    Quantity,
    /// A pure number.
    Number,
}

/// One parameter of a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LawParameter {
    /// Its key in a scenario.
    pub name: &'static str,
    /// What it measures.
    pub dimension: Dimension,
    /// Its value when left out; `None` if it must be given.
    pub default: Option<f64>,
    /// One line on what it is.
    pub documentation: &'static str,
}

/// What a law's file says about it for the catalogue.
pub trait Catalogued: Law + Sized {
    /// The key in a scenario.
    const NAME: &'static str;
    /// How it is written.
    const FORM: Form;
    /// Its parameters in the order that [`Catalogued::build`] takes.
    const PARAMETERS: &'static [LawParameter];

    /// The law with these parameters, one value for each of [`Catalogued::PARAMETERS`].
    ///
    /// # Errors
    /// A parameter out of range, or a wrong number of them; always for laws that are made of parts or files.
    fn build(values: &[f64]) -> Result<Self, LawError>;
}

fn wrong_number<T>(values: &[f64], expected: &'static str) -> Result<T, LawError> {
    Err(LawError::new("the number of parameters", values.len(), expected))
}

/// One law in the catalogue.
pub struct LawEntry {
    /// The key in a scenario.
    pub name: &'static str,
    /// How it is written.
    pub form: Form,
    /// Its parameters in the order that `build` takes.
    pub parameters: &'static [LawParameter],
    /// The text of the law's file, which begins with its documentation.
    pub documentation: &'static str,
    /// See [`Catalogued::build`].
    pub build: fn(&[f64]) -> Result<AnyLaw, LawError>,
}

macro_rules! laws {
    ($($file:literal => $law:ident),* $(,)?) => {
        /// Any law of the catalogue; at most 40 bytes.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AnyLaw {
            $(#[doc = concat!("See [`", stringify!($law), "`].")] $law($law)),*
        }

        /// Every law, in the order of the documentation.
        pub static CATALOGUE: &[LawEntry] = &[$(LawEntry {
            name: $law::NAME,
            form: $law::FORM,
            parameters: $law::PARAMETERS,
            documentation: include_str!(concat!("law/", $file)),
            build: |values| $law::build(values).map(AnyLaw::$law),
        }),*];

        $(impl From<$law> for AnyLaw {
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
            fn scaled(&self, factor: f64) -> Self {
                match self { $(Self::$law(law) => Self::$law(law.scaled(factor))),* }
            }
        }
    };
}

laws! {
    "constant.rs" => Constant,
    "uniform.rs" => Uniform,
    "exponential.rs" => Exponential,
    "truncated_normal.rs" => TruncatedNormal,
    "lognormal.rs" => Lognormal,
    "gamma.rs" => Gamma,
    "weibull.rs" => Weibull,
    "pareto.rs" => Pareto,
    "mixture.rs" => Mixture,
    "empirical.rs" => Empirical,
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
    fn the_catalogue_builds_every_law_of_plain_parameters() {
        for entry in CATALOGUE {
            assert!(entry.documentation.starts_with("//!"), "{} has no documentation", entry.name);
            let values: Vec<f64> = (1..=entry.parameters.len()).map(|k| k as f64).collect();
            let built = (entry.build)(&values);
            match entry.form {
                Form::Mixture | Form::Empirical => assert!(built.is_err(), "{}", entry.name),
                _ => assert!(built.expect(entry.name).mean() > 0.0, "{}", entry.name),
            }
            assert!((entry.build)(&[f64::NAN; 9]).is_err(), "{}", entry.name);
        }
    }

    #[test]
    fn an_error_names_parameter_found_and_expected() {
        let error = Lognormal::new(-1.0, 0.3).expect_err("a negative median");
        assert_eq!(error.to_string(), "median is -1, but must be a positive finite number");
    }
}
