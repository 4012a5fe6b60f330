//! Staleness weights: how much an update counts that was computed from an older model.
//!
//! # Definition
//! For an update `s` rounds old (0 is fresh): `constant` 1; `polynomial` `(1 + s)^−a`; `hinge` 1 up to `s = b`, beyond
//! it `1/(1 + a (s − b))`.
//!
//! # Source
//! C. Xie, S. Koyejo, I. Gupta, "Asynchronous Federated Optimization", 2019 (arXiv 1903.03934), section 5.2.

use fedgenie_core::config::Complaint;
use fedgenie_core::math::float::power;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A staleness weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Staleness {
    /// Every update counts in full.
    #[default]
    Constant,
    /// `(1 + s)^−exponent`.
    Polynomial {
        /// Not negative; 0.5 if left out.
        #[serde(default = "half")]
        exponent: f64,
    },
    /// 1 up to an age, falling hyperbolically beyond it.
    Hinge {
        /// How fast it falls; not negative.
        slope: f64,
        /// The oldest age that counts in full, in rounds.
        grace: u32,
    },
}

const fn half() -> f64 {
    0.5
}

impl Staleness {
    /// The weight of an update that is `rounds` old.
    pub fn weight(self, rounds: u32) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Polynomial { exponent } => power(1.0 + f64::from(rounds), -exponent),
            Self::Hinge { slope, grace } => 1.0 / (1.0 + slope * f64::from(rounds.saturating_sub(grace))),
        }
    }

    pub(super) fn checked(self, key: &str) -> Result<Self, Complaint> {
        let (name, found) = match self {
            Self::Constant => return Ok(self),
            Self::Polynomial { exponent } => ("exponent", exponent),
            Self::Hinge { slope, .. } => ("slope", slope),
        };
        if found.is_finite() && found >= 0.0 {
            Ok(self)
        } else {
            Err(Complaint::new(key, format!("found {name} {found}; expected a number of at least 0")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_update_counts_less() {
        assert_eq!(Staleness::Constant.weight(7), 1.0);
        assert_eq!(Staleness::Polynomial { exponent: 0.5 }.weight(0), 1.0);
        assert_eq!(Staleness::Polynomial { exponent: 0.5 }.weight(3), 0.5);
        let hinge = Staleness::Hinge { slope: 0.5, grace: 4 };
        assert_eq!([0, 4, 5, 10].map(|rounds| hinge.weight(rounds)), [1.0, 1.0, 1.0 / 1.5, 0.25]);
    }
}
