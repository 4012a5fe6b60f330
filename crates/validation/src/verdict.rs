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
    /// A difference was claimed, and the whole interval lies within the margin that counts as none.
    NoDifference,
    /// The interval is partly inside.
    Undecided,
    /// The runs cannot decide: the model has not learned, or has not settled.
    NotJudged,
}

impl Verdict {
    /// All, in the order in which they are counted.
    pub const ALL: [Self; 5] =
        [Self::Supported, Self::NotSupported, Self::NoDifference, Self::Undecided, Self::NotJudged];
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Supported => "supported",
            Self::NotSupported => "not supported",
            Self::NoDifference => "no difference",
            Self::Undecided => "undecided",
            Self::NotJudged => "not judged",
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
        self.judge_beside(value, interval, None)
    }

    /// The same; where the rule claims a difference to one side, an interval that lies within `none`, the values that
    /// count as no difference, says that there is none.
    pub fn judge_beside(&self, value: f64, interval: Option<[f64; 2]>, none: Option<[f64; 2]>) -> Verdict {
        let [low, high] = interval.unwrap_or([value, value]);
        let (least, most) = (self.at_least.unwrap_or(f64::NEG_INFINITY), self.at_most.unwrap_or(f64::INFINITY));
        let claimed = match (self.at_least, self.at_most) {
            (Some(bound), None) | (None, Some(bound)) => Some(bound),
            _ => None,
        };
        let is_within = |[first, last]: [f64; 2]| first <= low && high <= last;
        if let Some(none) = none.filter(|&none| interval.is_some() && is_within(none))
            && claimed.is_some_and(|bound| none[0] <= bound && bound <= none[1])
        {
            return Verdict::NoDifference;
        }
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
        let margin = Some([-0.5, 0.5]);
        let beside = |interval: [f64; 2]| below.judge_beside(interval[0], Some(interval), margin);
        assert_eq!(beside([-0.4, 0.3]), Verdict::NoDifference);
        assert_eq!(beside([-0.4, -0.1]), Verdict::NoDifference, "too small to matter");
        assert_eq!([beside([-0.6, -0.1]), beside([0.1, 0.6])], [Verdict::Supported, Verdict::NotSupported]);
        assert_eq!(beside([-0.6, 0.1]), Verdict::Undecided);
        // A claim of more than the margin, or of no more, is judged as it stands.
        let far = Rule { at_least: None, at_most: Some(-1.0) };
        assert_eq!(far.judge_beside(0.0, Some([-0.4, 0.3]), margin), Verdict::NotSupported);
        let same = Rule { at_least: Some(-0.5), at_most: Some(0.5) };
        assert_eq!(same.judge_beside(0.0, Some([-0.4, 0.3]), margin), Verdict::Supported);
        assert_eq!(below.judge_beside(0.0, None, margin), Verdict::Supported, "nothing is random");
        let between = Rule { at_least: Some(0.935), at_most: Some(0.965) };
        assert_eq!(between.judge(0.95, Some([0.94, 0.96])), Verdict::Supported);
        assert_eq!(between.judge(0.92, Some([0.91, 0.93])), Verdict::NotSupported);
    }
}
