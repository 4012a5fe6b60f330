//! Pairs of policies that two meters order differently, both significantly.

use super::{Details, Measured, Measurement, number, shown_interval};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::{Estimate, paired_difference};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    scenario: String,
    /// Two values, such as `regret.mean` and `regret.expected`.
    values: [String; 2],
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let completed = context.runs(&self.scenario)?;
        let policies = completed.policies();
        let [left, right] = &self.values;
        let values = |policy: &str, value: &str| -> Result<Vec<f64>, Error> {
            completed.of(policy, 0)?.into_iter().map(|run| number(run, value, None)).collect()
        };
        let sign = |found: &Estimate| match found.ci95 {
            Some([low, _]) if low > 0.0 => 1,
            Some([_, high]) if high < 0.0 => -1,
            _ => 0,
        };
        let title = format!("Differences between policies by {left} and {right}, where their signs differ");
        let mut details = Details::new(title, &["pair", left, right, "beyond chance"]);
        let (mut pairs, mut opposite) = (0, 0);
        for (index, one) in policies.iter().enumerate() {
            for other in &policies[index + 1..] {
                let compare = |value: &str| -> Result<Option<Estimate>, Error> {
                    Ok(paired_difference(&values(one, value)?, &values(other, value)?))
                };
                let (Some(by_left), Some(by_right)) = (compare(left)?, compare(right)?) else { continue };
                pairs += 1;
                let is_opposite = sign(&by_left) * sign(&by_right) < 0;
                opposite += usize::from(is_opposite);
                if by_left.mean * by_right.mean < 0.0 {
                    details.rows.push(vec![
                        format!("{one} − {other}"),
                        shown_interval(by_left.mean, by_left.ci95),
                        shown_interval(by_right.mean, by_right.ci95),
                        if is_opposite { "yes" } else { "no" }.to_owned(),
                    ]);
                }
            }
        }
        let measured = vec![Measured::exact("pairs in opposite order", opposite as f64, pairs)];
        Ok(Measurement::new(measured, vec![details]))
    }
}
