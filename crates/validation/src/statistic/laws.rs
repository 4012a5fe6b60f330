//! Kolmogorov–Smirnov tests of every latency law, on the streams that runs draw latencies from.
//!
//! The smallest p-value over all laws, multiplied by their number (Bonferroni): below 0.01 one of them would be
//! refuted.

use super::{Details, Measured, Measurement, shown};
use crate::laboratory::Context;
use fedgenie_core::law::{
    AnyLaw, Constant, Empirical, Exponential, Gamma, Law, LawError, Lognormal, Mixture, Pareto, TruncatedNormal,
    Uniform, Weibull,
};
use fedgenie_core::math::statistics::kolmogorov;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_experiment::error::Error;
use serde::Deserialize;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Variates per law.
    samples: u32,
}

fn laws() -> Result<Vec<(&'static str, AnyLaw)>, LawError> {
    Ok(vec![
        ("constant 0.3", Constant::new(0.3)?.into()),
        ("uniform 0.1 to 1", Uniform::new(0.1, 1.0)?.into()),
        ("exponential 0.4 + 0.1", Exponential::new(0.4, 0.1)?.into()),
        ("truncated normal 1, 0.5, from 0", TruncatedNormal::new(1.0, 0.5, 0.0, f64::INFINITY)?.into()),
        ("truncated normal −1, 1, 0 to 2", TruncatedNormal::new(-1.0, 1.0, 0.0, 2.0)?.into()),
        ("lognormal 0.4, 0.3", Lognormal::new(0.4, 0.3)?.into()),
        ("lognormal 1, 2", Lognormal::new(1.0, 2.0)?.into()),
        ("gamma 0.3, 1", Gamma::new(0.3, 1.0)?.into()),
        ("gamma 7, 0.1", Gamma::new(7.0, 0.1)?.into()),
        ("weibull 0.7, 1", Weibull::new(0.7, 1.0)?.into()),
        ("weibull 3, 0.5", Weibull::new(3.0, 0.5)?.into()),
        ("pareto 1.2, 0.1", Pareto::new(1.2, 0.1)?.into()),
        (
            "mixture of exponential and lognormal",
            Mixture::new([(0.7, Exponential::new(0.2, 0.0)?.into()), (0.3, Lognormal::new(2.0, 0.2)?.into())])?.into(),
        ),
        ("empirical of five", Empirical::new(&[0.1, 0.4, 0.4, 0.9, 2.0])?.into()),
    ])
}

impl Config {
    pub(super) fn measure(&self, context: &Context<'_>) -> Result<Measurement, Error> {
        let laws = laws().map_err(|error| Error::Usage(error.to_string()))?;
        let streams = Streams::new(2026);
        let numbered: Vec<(usize, &(&str, AnyLaw))> = laws.iter().enumerate().collect();
        let found = context.map(&numbered, |(number, (_, law))| {
            // As a run: client by client and round by round, the first of the three phases.
            let variate = |round: u32| law.quantile(streams.draw(Purpose::Latency, *number as u32, round).uniform());
            let mut sample: Vec<f64> = (1..=self.samples).map(variate).collect();
            Ok(kolmogorov::test(&mut sample, |x| law.cdf(x)))
        })?;
        let mut details = Details::new(format!("{} variates each", self.samples), &["law", "D", "p"]);
        for ((name, _), (distance, p)) in laws.iter().zip(&found) {
            details.rows.push(vec![(*name).to_owned(), shown(*distance), shown(*p)]);
        }
        let least = found.iter().map(|(_, p)| *p).fold(1.0, f64::min);
        let adjusted = (least * laws.len() as f64).min(1.0);
        let measured = vec![Measured::exact("least p-value, times the number of laws", adjusted, laws.len())];
        Ok(Measurement::new(measured, vec![details]))
    }
}
