//! How much wider the gap between two policies is in one scenario than in another, paired by seed.
//!
//! For values `x_s` of a policy and `y_s` of another over seeds, the number is the mean over seeds of
//! `(x_s − y_s in the wider scenario) − (x_s − y_s in the narrower one)`, with Student's t interval.

use super::{Comparison, Look, Meaning, Measured, Measurement, Student, number};
use crate::laboratory::Context;
use fedgenie_core::math::statistics::paired_difference_at;
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the gap is claimed to be wider …
    wider: String,
    /// … than here.
    narrower: String,
    /// This policy …
    policy: String,
    /// … minus each of these.
    against: Vec<String>,
    /// Of `summary.json`: `final.test_loss`, ….
    value: String,
}

impl Config {
    pub(super) fn looks(&self) -> Vec<Look> {
        [&self.wider, &self.narrower].map(|scenario| Look::new(scenario, 0, &self.value)).to_vec()
    }

    pub(super) fn meaning(&self) -> Meaning {
        let of = Some((self.policy.clone(), Comparison::Minus));
        let place = Some(format!("that of {} less that of {}", self.wider, self.narrower));
        Meaning { value: self.value.clone(), of, others: self.against.clone(), less: None, place }
    }

    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let Self { wider, narrower, policy, against, value } = self;
        super::some(against, "against")?;
        if against.contains(policy) {
            return super::usage(format!("{policy} is compared with itself"));
        }
        let mut measured = Vec::new();
        for other in against {
            let gaps = |scenario: &str| -> Result<Vec<f64>, Error> {
                let completed = context.runs(scenario)?;
                let pairs = completed.of(policy, 0)?.into_iter().zip(completed.of(other, 0)?);
                pairs.map(|(mine, theirs)| Ok(number(mine, value, None)? - number(theirs, value, None)?)).collect()
            };
            let (wide, narrow) = (gaps(wider)?, gaps(narrower)?);
            // The scenarios may have different numbers of seeds; the first ones are the same.
            let seeds = wide.len().min(narrow.len());
            match paired_difference_at(&wide[..seeds], &narrow[..seeds], context.miss()) {
                Some(found) => measured.push(Measured::estimate(other, found).student(Student::OfValues)),
                None => return super::usage(format!("{value} is not finite in every run of {other}")),
            }
        }
        Ok(Measurement::new(measured, Vec::new()))
    }
}
