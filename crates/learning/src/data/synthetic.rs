//! Linear regression data drawn from the seed.
//!
//! # Definition
//! Features `x_1 … x_F` are uniform in [0, 1]; the target is `Σ_i (i/10)·x_i + √2 + N(0, noise²)`. The features are
//! rounded to `f32` first, the target is computed from the rounded ones in `f64` and rounded last.
//! Of `n` examples the first `n − round(n/7)` are for training (6:1), the others for testing.
//!
//! # Source
//! The experiments of the authors of FedGenie's bandit setting: 10 features, noise 0.5, 70,000 examples.
//!
//! # Determinism
//! Stream (Example, entity = example, index 0): the features in order, then one uniform for the noise. An example
//! therefore does not depend on how many others there are.

use super::{DataError, Dataset, Split, Targets};
use fedgenie_core::limits::afford;
use fedgenie_core::math::{float::sqrt, special::normal_quantile as standard_normal};
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;

/// Settings of the generator.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearData {
    /// Number of examples, training and test together; at least 4.
    pub examples: usize,
    /// Number of features `F`; at least 1.
    pub features: usize,
    /// Standard deviation of the noise; 0 or more.
    pub noise: f64,
}

impl Default for LinearData {
    fn default() -> Self {
        Self { examples: 70_000, features: 10, noise: 0.5 }
    }
}

impl LinearData {
    /// The largest number of entries (examples × features) that is generated: 2^28, or 1 GiB.
    pub const ENTRIES_MAX: usize = 1 << 28;

    /// Draws the data of a seed.
    ///
    /// # Errors
    /// [`DataError::Setting`] names the setting that makes no sense.
    pub fn generate(&self, streams: &Streams) -> Result<Split, DataError> {
        self.check()?;
        let test = (self.examples + 3) / 7;
        let train = self.examples - test;
        Ok(Split { train: self.part(streams, 0, train), test: self.part(streams, train, test) })
    }

    fn check(&self) -> Result<(), DataError> {
        let refuse = |key: &str, found, expected| Err(DataError::Setting { key: key.to_owned(), found, expected });
        if self.examples < 4 {
            return refuse("examples", self.examples.to_string(), "at least 4, so that both parts have some");
        }
        if self.features < 1 {
            return refuse("features", self.features.to_string(), "at least 1");
        }
        if self.examples.checked_mul(self.features).is_none_or(|entries| entries > Self::ENTRIES_MAX) {
            let found = format!("{} (with {} features)", self.examples, self.features);
            return refuse("examples", found, "at most 2^28 divided by the number of features");
        }
        // Each is drawn, split and dealt.
        let needed = 8 * (self.examples as u128) * (self.features as u128 + 2);
        afford(format!("{} examples with {} features", self.examples, self.features), needed)
            .map_err(|source| DataError::Memory { place: "examples".to_owned(), source })?;
        if !(self.noise.is_finite() && self.noise >= 0.0) {
            return refuse("noise", self.noise.to_string(), "finite and not negative");
        }
        Ok(())
    }

    /// The examples from `first` on.
    fn part(&self, streams: &Streams, first: usize, count: usize) -> Dataset {
        let mut features = Vec::with_capacity(count * self.features);
        let mut targets = Vec::with_capacity(count);
        for example in first..first + count {
            let mut rng = streams.stream(Purpose::Example, example as u32, 0);
            let mut target = sqrt(2.0);
            for index in 1..=self.features {
                let feature = rng.uniform() as f32;
                target += index as f64 / 10.0 * f64::from(feature);
                features.push(feature);
            }
            target += self.noise * standard_normal(rng.uniform());
            targets.push(target as f32);
        }
        let features =
            Array2::from_shape_vec((count, self.features), features).expect("every example has all features");
        Dataset::new(features, Targets::Values(targets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_split_six_to_one() {
        let split = LinearData::default().generate(&Streams::new(1)).unwrap();
        assert_eq!((split.train.examples(), split.test.examples()), (60_000, 10_000));
        assert_eq!(split.train.width(), 10);
        // 10/7 and 11/7 round to 1 and 2.
        for (examples, test) in [(4, 1), (10, 1), (11, 2)] {
            let split = LinearData { examples, ..LinearData::default() }.generate(&Streams::new(1)).unwrap();
            assert_eq!((split.train.examples(), split.test.examples()), (examples - test, test));
        }
    }

    #[test]
    fn without_noise_the_target_is_the_formula() {
        let data = LinearData { examples: 7, features: 2, noise: 0.0 }.generate(&Streams::new(5)).unwrap().train;
        let targets = data.values().unwrap();
        for example in 0..6 {
            let row = data.numbers().unwrap().row(example);
            let expected = 0.1 * f64::from(row[0]) + 0.2 * f64::from(row[1]) + std::f64::consts::SQRT_2;
            assert!((f64::from(targets[example as usize]) - expected).abs() < 1e-6);
        }
    }

    #[test]
    fn features_and_noise_have_their_moments() {
        let data = LinearData::default().generate(&Streams::new(2)).unwrap().train;
        let count = 600_000.0;
        let mean = data.numbers().unwrap().values.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        // Five standard errors of a mean of uniforms: 5 / sqrt(12 · 600,000).
        assert!((mean - 0.5).abs() < 0.0019, "{mean}");
        let residuals: Vec<f64> = (0..60_000)
            .map(|example| {
                let signal: f64 = (1..)
                    .zip(data.numbers().unwrap().row(example))
                    .map(|(i, &x)| 0.1 * f64::from(i) * f64::from(x))
                    .sum();
                f64::from(data.values().unwrap()[example as usize]) - signal - std::f64::consts::SQRT_2
            })
            .collect();
        let mean = residuals.iter().sum::<f64>() / 60_000.0;
        let variance = residuals.iter().map(|r| r * r).sum::<f64>() / 60_000.0;
        assert!(mean.abs() < 5.0 * 0.5 / 245.0, "{mean}");
        assert!((variance - 0.25).abs() < 5.0 * 0.25 * 0.005_78, "{variance}");
    }

    #[test]
    fn an_example_does_not_depend_on_the_number_of_examples() {
        let few = LinearData { examples: 14, ..LinearData::default() }.generate(&Streams::new(3)).unwrap();
        let many = LinearData { examples: 700, ..LinearData::default() }.generate(&Streams::new(3)).unwrap();
        assert_eq!(few.train.numbers().unwrap().row(11), many.train.numbers().unwrap().row(11));
        assert_eq!(few.test.numbers().unwrap().row(1), many.train.numbers().unwrap().row(13));
        assert_eq!(few.test.values().unwrap()[1], many.train.values().unwrap()[13]);
    }

    #[test]
    fn settings_without_sense_are_named() {
        let data = LinearData::default();
        for (wrong, key) in [
            (LinearData { examples: 3, ..data.clone() }, "examples"),
            (LinearData { examples: usize::MAX, ..data.clone() }, "examples"),
            (LinearData { features: 0, ..data.clone() }, "features"),
            (LinearData { noise: f64::NAN, ..data.clone() }, "noise"),
            (LinearData { noise: -0.1, ..data.clone() }, "noise"),
        ] {
            assert!(wrong.generate(&Streams::new(1)).unwrap_err().to_string().starts_with(key));
        }
    }
}
