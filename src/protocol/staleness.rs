//! How much an update counts that was computed from an older model.
//!
//! # Definition
//! For an update `s` rounds old (0 is fresh): `constant` 1; `polynomial` `(1 + s)^−a`.
//!
//! # Source
//! C. Xie, S. Koyejo, I. Gupta, "Asynchronous Federated Optimization", 2019 (arXiv 1903.03934), section 5.2.

use crate::config::ConfigError;
use crate::math::float::power;
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
        /// Not negative.
        exponent: f64,
    },
}

impl Staleness {
    /// The weight of an update that is `rounds` old.
    pub fn weight(self, rounds: u32) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Polynomial { exponent } => power(1.0 + f64::from(rounds), -exponent),
        }
    }

    pub(super) fn checked(self) -> Result<Self, ConfigError> {
        match self {
            Self::Polynomial { exponent } if !(exponent.is_finite() && exponent >= 0.0) => {
                Err(ConfigError::new("late", format!("found exponent {exponent}; expected a number of at least 0")))
            }
            weight => Ok(weight),
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
    }
}
