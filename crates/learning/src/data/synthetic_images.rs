//! Synthetic images: a prototype per class, deformed and noisy, drawn from the seed.
//!
//! # Definition
//! The prototype of a class is, channel by channel, `½ + Σ_k a_k cos(2π(u_k x/W + v_k y/H) + φ_k) / (2 Σ_k a_k)` at
//! column x and row y, with four waves: amplitudes `a_k` in [½, 1], frequencies `u_k`, `v_k` in [−3, 3] periods per
//! image and phases `φ_k`, all uniform. It lies in [0, 1].
//!
//! Example `i` of training, and of testing, is of class `i mod classes`. Its pixel (x, y) is its class's prototype at
//! `(x + s_x + (d/4) cos(2π y/H + ψ_x), y + s_y + (d/4) cos(2π x/W + ψ_y))`, plus N(0, noise²), clipped to [0, 1]. The
//! shifts `s` are uniform in [−d, d], the phases `ψ` uniform, both drawn per example; `d` is the `deformation`. Between
//! pixels the prototype is interpolated bilinearly, outside the image it continues as at its border.
//!
//! More `noise` makes all models worse. More `deformation` makes those worse that give each pixel a weight of its own,
//! and leaves those ahead that look for a pattern wherever it is.
//!
//! # Source
//! None; made for tests and demonstrations that are to run without a download.
//!
//! # Cost
//! One normal variate per pixel, unless `noise` is 0.
//!
//! # Determinism
//! Stream (Example, entity = class, index 1): the waves of the first channel, then of the next; for each wave `a`, `u`,
//! `v`, `φ`. Stream (Example, entity = example, index 0 for training, 2 for testing): `s_x`, `s_y`, `ψ_x`, `ψ_y`, then
//! one uniform per pixel for the noise. An example therefore does not depend on how many others there are.
//!
//! # Example
//! ```toml
//! data = { synthetic = { classes = 10, channels = 1, height = 28, width = 28, train = 6000, test = 1000 } }
//! ```

mod config;

pub use config::SyntheticConfig;

use super::{DataError, Dataset, Shape, Split, Targets};
use fedgenie_core::limits::afford;
use fedgenie_core::math::{float::cos, float::floor, special::normal_quantile as standard_normal};
use fedgenie_core::rng::{Purpose, StreamRng, Streams};
use ndarray::Array2;
use std::f64::consts::TAU;

/// Waves of a channel of a prototype.
const WAVES: usize = 4;

/// Highest frequency of a prototype, in periods per image.
const FREQUENCY_MAX: f64 = 3.0;

/// Index of the stream of a training example.
const TRAIN_INDEX: u32 = 0;

/// Index of the stream of a test example.
const TEST_INDEX: u32 = 2;

/// Settings of the generator.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntheticImages {
    /// Number of classes; 2 to 256.
    pub classes: usize,
    /// Number of training examples; at least 1.
    pub train: usize,
    /// Number of test examples; at least 1.
    pub test: usize,
    /// Shape of an image; at least 1 each way.
    pub shape: Shape,
    /// Standard deviation of the noise of a pixel; 0 or more.
    pub noise: f64,
    /// Largest shift in pixels, each way; 0 or more.
    pub deformation: f64,
}

impl Default for SyntheticImages {
    fn default() -> Self {
        let shape = Shape { channels: 1, height: 28, width: 28 };
        Self { classes: 10, train: 6_000, test: 1_000, shape, noise: 0.3, deformation: 2.0 }
    }
}

impl SyntheticImages {
    /// The largest number of features (examples × pixels) of a part that is generated: 2^28, or 1 GiB.
    pub const ENTRIES_MAX: usize = 1 << 28;

    /// Draws the data of a seed.
    ///
    /// # Errors
    /// [`DataError::Setting`] names the setting that makes no sense.
    pub fn generate(&self, streams: &Streams) -> Result<Split, DataError> {
        self.check()?;
        let prototypes: Vec<Vec<f64>> = (0..self.classes).map(|class| self.prototype(streams, class)).collect();
        let part = |count, index| self.part(&prototypes, streams, count, index);
        Ok(Split { train: part(self.train, TRAIN_INDEX), test: part(self.test, TEST_INDEX) })
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`DataError::Setting`] names the setting that makes no sense.
    pub fn check(&self) -> Result<(), DataError> {
        let refuse = |key: &str, found, expected| Err(DataError::Setting { key: key.to_owned(), found, expected });
        if !(2..=256).contains(&self.classes) {
            return refuse("classes", self.classes.to_string(), "from 2 to 256");
        }
        let Shape { channels, height, width } = self.shape;
        let sizes =
            [("train", self.train), ("test", self.test), ("channels", channels), ("height", height), ("width", width)];
        for (key, size) in sizes {
            if size < 1 {
                return refuse(key, size.to_string(), "at least 1");
            }
        }
        for (key, examples) in [("train", self.train), ("test", self.test)] {
            let entries = self.shape.checked_len().and_then(|pixels| pixels.checked_mul(examples));
            if entries.is_none_or(|entries| entries > Self::ENTRIES_MAX) {
                let found = format!("{examples} (images of {})", self.shape);
                return refuse(key, found, "at most 2^28 divided by the numbers in an image");
            }
        }
        let images = self.train as u128 + self.test as u128;
        let needed = 8 * images * (channels * height * width + 2) as u128;
        afford(format!("{images} images of {}", self.shape), needed)
            .map_err(|source| DataError::Memory { place: "train".to_owned(), source })?;
        for (key, value) in [("noise", self.noise), ("deformation", self.deformation)] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(key, value.to_string(), "finite and not negative");
            }
        }
        Ok(())
    }

    /// The pixels of a class's prototype.
    fn prototype(&self, streams: &Streams, class: usize) -> Vec<f64> {
        let mut rng = streams.stream(Purpose::Example, class as u32, 1);
        let mut pixels = Vec::with_capacity(self.shape.len());
        for _ in 0..self.shape.channels {
            let waves: [_; WAVES] = std::array::from_fn(|_| {
                let amplitude = 0.5 + 0.5 * rng.uniform();
                let across = FREQUENCY_MAX * (2.0 * rng.uniform() - 1.0);
                let down = FREQUENCY_MAX * (2.0 * rng.uniform() - 1.0);
                (amplitude, across, down, rng.uniform())
            });
            let total: f64 = waves.iter().map(|(amplitude, ..)| amplitude).sum();
            for row in 0..self.shape.height {
                for column in 0..self.shape.width {
                    let x = column as f64 / self.shape.width as f64;
                    let y = row as f64 / self.shape.height as f64;
                    let wave = |&(amplitude, across, down, phase): &(f64, f64, f64, f64)| {
                        amplitude * cos(TAU * (across * x + down * y + phase))
                    };
                    pixels.push(0.5 + waves.iter().map(wave).sum::<f64>() / (2.0 * total));
                }
            }
        }
        pixels
    }

    /// The examples of a part; `index` tells the parts' streams apart.
    fn part(&self, prototypes: &[Vec<f64>], streams: &Streams, count: usize, index: u32) -> Dataset {
        let width = self.shape.len();
        let mut features = vec![0.0; count * width];
        features.chunks_exact_mut(width).enumerate().for_each(|(example, pixels)| {
            let rng = streams.stream(Purpose::Example, example as u32, index);
            self.draw(&prototypes[example % self.classes], rng, pixels);
        });
        let labels = (0..count).map(|example| (example % self.classes) as u8).collect();
        let features = Array2::from_shape_vec((count, width), features).expect("every example has all pixels");
        Dataset::new(features, Targets::Classes { labels, classes: self.classes }).with_shape(self.shape)
    }

    /// Draws one example.
    fn draw(&self, prototype: &[f64], mut rng: StreamRng, pixels: &mut [f32]) {
        let Shape { height, width, .. } = self.shape;
        let mut shift = || self.deformation * (2.0 * rng.uniform() - 1.0);
        let (shift_x, shift_y) = (shift(), shift());
        let warp = |phase: f64, position: usize, size: usize| {
            self.deformation / 4.0 * cos(TAU * (position as f64 / size as f64 + phase))
        };
        let (phase_x, phase_y) = (rng.uniform(), rng.uniform());
        let warp_x: Vec<f64> = (0..height).map(|row| shift_x + warp(phase_x, row, height)).collect();
        let warp_y: Vec<f64> = (0..width).map(|column| shift_y + warp(phase_y, column, width)).collect();
        let mut pixels = pixels.iter_mut();
        for channel in prototype.chunks_exact(height * width) {
            for (row, &warp_x) in warp_x.iter().enumerate() {
                for (column, &warp_y) in warp_y.iter().enumerate() {
                    let (left, right, x) = neighbours(column as f64 + warp_x, width);
                    let (upper, lower, y) = neighbours(row as f64 + warp_y, height);
                    let at = |row: usize, column: usize| channel[row * width + column];
                    let above = at(upper, left) + x * (at(upper, right) - at(upper, left));
                    let below = at(lower, left) + x * (at(lower, right) - at(lower, left));
                    let mut value = above + y * (below - above);
                    if self.noise > 0.0 {
                        value += self.noise * standard_normal(rng.uniform());
                    }
                    *pixels.next().expect("an image has as many pixels as its prototype") =
                        value.clamp(0.0, 1.0) as f32;
                }
            }
        }
    }
}

/// The two pixels of a line of `size` between which a position lies, and how far it is from the first to the second.
fn neighbours(position: f64, size: usize) -> (usize, usize, f64) {
    let position = position.clamp(0.0, (size - 1) as f64);
    let first = floor(position);
    (first as usize, (first as usize + 1).min(size - 1), position - first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Batch, Model, SoftmaxRegression, evaluate};
    use crate::trainer::{LocalTraining, OptimizerConfig, Trainer, TrainingJob, Update};
    use fedgenie_core::id::{ClientId, JobNumber, Round};

    fn small() -> SyntheticImages {
        SyntheticImages {
            classes: 3,
            train: 60,
            test: 10,
            shape: Shape { channels: 2, height: 5, width: 4 },
            ..Default::default()
        }
    }

    #[test]
    fn both_parts_are_balanced() {
        let split = SyntheticImages::default().generate(&Streams::new(1)).unwrap();
        for (data, examples) in [(&split.train, 6_000), (&split.test, 1_000)] {
            assert_eq!((data.examples(), data.shape()), (examples, SyntheticImages::default().shape));
            let (labels, classes) = data.classes().unwrap();
            let mut counts = vec![0; classes];
            labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
            assert_eq!(counts, [examples / 10; 10]);
            assert!(data.numbers().unwrap().values.iter().all(|pixel| (0.0..=1.0).contains(pixel)));
        }
    }

    #[test]
    fn without_noise_and_deformation_an_example_is_its_prototype() {
        let data = SyntheticImages { noise: 0.0, deformation: 0.0, ..small() };
        let streams = Streams::new(4);
        let split = data.generate(&streams).unwrap();
        for example in 0..60 {
            let prototype: Vec<f32> =
                data.prototype(&streams, example as usize % 3).into_iter().map(|pixel| pixel as f32).collect();
            assert_eq!(split.train.numbers().unwrap().row(example), prototype);
        }
    }

    #[test]
    fn a_place_between_pixels_is_interpolated_and_beyond_them_the_border_goes_on() {
        assert_eq!(neighbours(1.25, 4), (1, 2, 0.25));
        assert_eq!(neighbours(3.0, 4), (3, 3, 0.0));
        assert_eq!(neighbours(-7.5, 4), (0, 1, 0.0));
        assert_eq!(neighbours(1e300, 4), (3, 3, 0.0));
        assert_eq!(neighbours(0.5, 1), (0, 0, 0.0));
    }

    #[test]
    fn the_noise_has_its_deviation() {
        // On a prototype around one half, noise of 0.1 is hardly ever clipped.
        let still = SyntheticImages { noise: 0.0, deformation: 1.0, ..Default::default() };
        let noisy = SyntheticImages { noise: 0.02, ..still.clone() };
        let part = |data: &SyntheticImages| data.generate(&Streams::new(5)).unwrap().test;
        let (still, noisy) = (part(&still), part(&noisy));
        let pairs = still.numbers().unwrap().values.iter().zip(noisy.numbers().unwrap().values);
        let inner = pairs.filter(|(pixel, _)| (0.2..0.8).contains(*pixel));
        let differences: Vec<f64> = inner.map(|(a, b)| f64::from(b - a)).collect();
        let variance = differences.iter().map(|d| d * d).sum::<f64>() / differences.len() as f64;
        // Some hundred thousand pixels: the deviation is known to half a percent.
        assert!(differences.len() > 300_000 && (variance.sqrt() / 0.02 - 1.0).abs() < 0.01, "{}", variance.sqrt());
    }

    #[test]
    fn an_example_does_not_depend_on_the_number_of_examples_but_on_the_seed() {
        let few = small().generate(&Streams::new(3)).unwrap();
        let many = SyntheticImages { train: 700, test: 11, ..small() }.generate(&Streams::new(3)).unwrap();
        assert_eq!(
            few.train.numbers().unwrap().values,
            &many.train.numbers().unwrap().values[..few.train.numbers().unwrap().values.len()]
        );
        assert_eq!(few.test.numbers().unwrap().row(9), many.test.numbers().unwrap().row(9));
        assert_ne!(few.test.numbers().unwrap().row(0), few.train.numbers().unwrap().row(0));
        assert_ne!(few, small().generate(&Streams::new(2)).unwrap());
    }

    fn accuracy(data: &SyntheticImages) -> f64 {
        let streams = Streams::new(7);
        let split = data.generate(&streams).unwrap();
        let model = SoftmaxRegression::new(split.train.width(), data.classes);
        let start = vec![0.0; model.parameters()];
        let examples: Vec<u32> = (0..split.train.examples() as u32).collect();
        let job = TrainingJob {
            client: ClientId(0),
            round: Round::FIRST,
            number: JobNumber(1),
            start: &start,
            examples: &examples,
        };
        let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
        let settings = LocalTraining::new(10, 16, &sgd).unwrap();
        let mut updates = [Update::default()];
        Trainer { model: &model, data: &split.train, settings: &settings, streams: &streams }.train(
            &[job],
            false,
            &mut updates,
        );
        let test: Vec<u32> = (0..split.test.examples() as u32).collect();
        evaluate(&model, &updates[0].parameters, Batch { data: &split.test, examples: &test }, true).accuracy()
    }

    #[test]
    fn a_linear_model_learns_them_and_noise_and_deformation_make_it_harder() {
        let base = SyntheticImages {
            train: 1_800,
            test: 300,
            shape: Shape { channels: 1, height: 14, width: 14 },
            noise: 0.3,
            deformation: 1.0,
            ..Default::default()
        };
        let easy = accuracy(&base);
        let noisy = accuracy(&SyntheticImages { noise: 1.5, ..base.clone() });
        let deformed = accuracy(&SyntheticImages { deformation: 4.0, ..base });
        println!("easy {easy:.3}, noisy {noisy:.3}, deformed {deformed:.3}");
        // Chance is 0.1, with a standard error of 0.017.
        assert!(easy > 0.8, "{easy}");
        assert!((0.2..easy - 0.1).contains(&noisy), "{noisy}");
        assert!((0.2..easy - 0.1).contains(&deformed), "{deformed}");
    }

    #[test]
    fn settings_without_sense_are_named() {
        let with = |channels, height, width| SyntheticImages { shape: Shape { channels, height, width }, ..small() };
        for (wrong, key) in [
            (SyntheticImages { classes: 1, ..small() }, "classes"),
            (SyntheticImages { classes: 257, ..small() }, "classes"),
            (SyntheticImages { train: 0, ..small() }, "train"),
            (SyntheticImages { test: 0, ..small() }, "test"),
            (SyntheticImages { train: usize::MAX, ..small() }, "train"),
            (SyntheticImages { test: (1 << 28) / 40 + 1, ..small() }, "test"),
            (with(0, 1, 1), "channels"),
            (with(1, 0, 1), "height"),
            (with(1, 1, 0), "width"),
            (with(usize::MAX, 2, 2), "train"),
            (SyntheticImages { noise: f64::NAN, ..small() }, "noise"),
            (SyntheticImages { deformation: -1.0, ..small() }, "deformation"),
        ] {
            assert!(wrong.generate(&Streams::new(1)).unwrap_err().to_string().starts_with(key));
        }
    }
}
