//! Rules and verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict of the data on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is inside the rule.
    Supported,
    /// The whole interval is outside.
    NotSupported,
    /// The interval is partly inside.
    Undecided,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Supported => "supported",
            Self::NotSupported => "not supported",
            Self::Undecided => "undecided",
        })
    }
}

/// The claimed range of a value, ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// Not below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Not above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
}

impl Rule {
    /// Checks that a number can be inside, and that one can be outside.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        let (least, most) = (self.at_least.unwrap_or(f64::NEG_INFINITY), self.at_most.unwrap_or(f64::INFINITY));
        if least.is_nan() || most.is_nan() || least > most {
            return Err(format!("holds: no number is {self}"));
        }
        if self.at_least.is_none() && self.at_most.is_none() {
            return Err("holds: every number would do; give at-least, at-most or both".to_owned());
        }
        Ok(())
    }

    /// The verdict on a value with an interval, or on a deterministic one without. A value that is not a number is
    /// undecided.
    pub fn judge(&self, value: f64, interval: Option<[f64; 2]>) -> Verdict {
        let [low, high] = interval.unwrap_or([value, value]);
        let (least, most) = (self.at_least.unwrap_or(f64::NEG_INFINITY), self.at_most.unwrap_or(f64::INFINITY));
        if low >= least && high <= most {
            Verdict::Supported
        } else if high < least || low > most {
            Verdict::NotSupported
        } else {
            Verdict::Undecided
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) if least == most => write!(formatter, "{least}"),
            (Some(least), Some(most)) => write!(formatter, "{least} to {most}"),
            (Some(least), None) => write!(formatter, "≥ {least}"),
            (None, Some(most)) => write!(formatter, "≤ {most}"),
            (None, None) => formatter.write_str("anything"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_inside_outside_or_both() {
        let below = Rule { at_least: None, at_most: Some(0.0) };
        assert_eq!(below.judge(-2.0, Some([-3.0, -1.0])), Verdict::Supported);
        assert_eq!(below.judge(2.0, Some([1.0, 3.0])), Verdict::NotSupported);
        assert_eq!(below.judge(-2.0, Some([-5.0, 1.0])), Verdict::Undecided);
        let exactly = Rule { at_least: Some(0.0), at_most: Some(0.0) };
        assert_eq!(exactly.judge(0.0, None), Verdict::Supported);
        assert_eq!(exactly.judge(1e-9, None), Verdict::NotSupported);
        assert_eq!(exactly.judge(0.0, Some([-1.0, 1.0])), Verdict::Undecided);
        assert_eq!(below.judge(f64::NAN, None), Verdict::Undecided);
        assert!(below.check().is_ok() && exactly.check().is_ok() && Rule::default().check().is_err());
        assert!(Rule { at_least: Some(1.0), at_most: Some(0.0) }.check().is_err());
        assert!(Rule { at_least: Some(f64::NAN), at_most: None }.check().is_err());
        let between = Rule { at_least: Some(0.935), at_most: Some(0.965) };
        assert_eq!(between.judge(0.95, Some([0.94, 0.96])), Verdict::Supported);
        assert_eq!(between.judge(0.92, Some([0.91, 0.93])), Verdict::NotSupported);
    }
}
