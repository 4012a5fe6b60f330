//! Pairs of policies that two meters put in different orders, each of them beyond chance.

use super::{Details, Measured, Measurement, number, shown_interval};
use fedgenie_simulator::error::Error;
use fedgenie_core::math::statistics::{Estimate, paired_difference};
use crate::laboratory::Bench;
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
    pub(super) fn measure(&self, bench: &Bench<'_>) -> Result<Measurement, Error> {
        let played = bench.play(&self.scenario)?;
        let policies = played.policies();
        let [left, right] = &self.values;
        let values = |policy: &str, value: &str| -> Result<Vec<f64>, Error> {
            played.of(policy, 0)?.into_iter().map(|run| number(run, value, None)).collect()
        };
        let sign = |found: &Estimate| match found.ci95 {
            Some([low, _]) if low > 0.0 => 1,
            Some([_, high]) if high < 0.0 => -1,
            _ => 0,
        };
        let title = format!("Differences between policies by {left} and {right}, where their signs differ");
        let mut details = Details::new(title, &["pair", left, right, "beyond chance"]);
        let (mut pairs, mut opposite) = (0, 0);
        for (place, one) in policies.iter().enumerate() {
            for other in &policies[place + 1..] {
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
        Ok(Measurement { measured, details: vec![details] })
    }
}
