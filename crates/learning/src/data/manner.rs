//! Features that are changed: images that are turned, in other colours, and noise.
//!
//! # Definition
//! Of the features of an example as the data have them, before any `normalize`, in this order:
//!
//! *Rotation* by `θ` degrees, counter-clockwise about the image's centre, each channel alike. The pixel at column `x`
//! and row `y` from the centre, rows counted upwards, is what lies at `(x·cos θ + y·sin θ, y·cos θ − x·sin θ)`:
//! bilinear between the four pixels around that place, where pixels outside of the image are 0. Cosine and sine of
//! multiples of 90° are exact, so that a square image is then moved pixel by pixel.
//!
//! *Colour*: in channel `c`, a number `v` becomes `a_c·v + b_c`.
//!
//! *Noise*: a normal number of mean 0 is added to each feature. Its standard deviation is in units of the features for
//! images, and for tables in standard deviations of the column over all training rows (with divisor `n`; in its own
//! units for a column that is constant).
//!
//! Nothing is cut off at 0 or 1. Then `normalize` takes means and deviations of the *unchanged* training rows: what
//! differs is at the client, and all prepare their data alike. Were features changed after they are normalised, the
//! pixels outside of an image would be grey; were means taken from the changed rows, they would give a part of the
//! change away.
//!
//! # Cost
//! One further copy of the training features, 4 bytes each, and a normal quantile for each feature with noise.
//!
//! # Determinism
//! In double precision, rounded to single once. The noise of an example comes from a stream of its own, one uniform for
//! each feature, whoever asks and on any number of threads.

use super::dataset::{Scale, scales};
use super::{DataError, Dataset, Shape, Split};
use fedgenie_core::limits::afford;
use fedgenie_core::math::float::{cos, floor, sin};
use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};
use ndarray::Array2;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::ops::RangeInclusive;

/// Degrees by which images may be turned: a whole turn either way.
pub const ROTATIONS: RangeInclusive<f64> = -360.0..=360.0;
/// Standard deviations of noise. More would drown whatever features there are.
pub const DEVIATIONS: RangeInclusive<f64> = 0.0..=1e6;
/// Contrasts and brightnesses.
pub const COLOURS: RangeInclusive<f64> = -1e6..=1e6;

/// How features are changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manner {
    /// Degrees, counter-clockwise.
    #[serde(default, skip_serializing_if = "is_whole_turn")]
    pub rotation: f64,
    /// Factor and summand of each channel; none if colours stay.
    #[serde(default, skip_serializing_if = "keeps_colours")]
    pub colour: Vec<[f64; 2]>,
    /// Standard deviation of the noise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise: f64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_whole_turn(degrees: &f64) -> bool {
    degrees.rem_euclid(360.0) == 0.0
}

fn keeps_colours(colour: &[[f64; 2]]) -> bool {
    colour.iter().all(|of_channel| *of_channel == [1.0, 0.0])
}

impl Manner {
    /// Whether it changes nothing.
    pub fn is_plain(&self) -> bool {
        is_whole_turn(&self.rotation) && keeps_colours(&self.colour) && is_zero(&self.noise)
    }
}

/// A change of the features of some examples.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The manners that there are.
    pub manners: Vec<Manner>,
    /// That of each training row, by its number; none if it stays.
    pub train: Vec<Option<u32>>,
    /// That of each test example; empty if all stay.
    pub test: Vec<Option<u32>>,
    /// Indices of the streams (Partition, row, index) of the noise of training rows and test examples.
    pub noise: [u32; 2],
}

impl Shape {
    /// Whether these are images, and not one channel for each feature.
    pub const fn is_image(self) -> bool {
        self.height > 1 || self.width > 1
    }
}

impl Split {
    /// The same examples with features changed stage by stage, and then standardised with the scale of these training
    /// examples, if that is wanted.
    ///
    /// # Errors
    /// If there is no memory for a copy, or a feature leaves the range of `f32`.
    pub fn changed(&self, stages: &[Stage], normalize: bool, streams: &Streams) -> Result<Self, DataError> {
        let has_test = stages.iter().any(|stage| !stage.test.is_empty());
        let examples = self.train.examples() + if has_test || normalize { self.test.examples() } else { 0 };
        let what = format!("{examples} examples with {} changed features", self.train.width());
        afford(what, 4 * examples as u128 * self.train.width() as u128)
            .map_err(|source| DataError::Memory { place: "partition".to_owned(), source })?;
        let train = self.train.features().into_owned();
        let shape = self.train.shape();
        let is_of_table = !shape.is_image() && stages.iter().any(Stage::has_noise);
        let scales = if normalize || is_of_table { scales(&train, shape) } else { Vec::new() };
        let units = if is_of_table { scales.iter().map(|scale| scale.deviation).collect() } else { Vec::new() };
        let change = Change { stages, shape, units, scales: if normalize { &scales } else { &[] }, streams };
        Ok(Self {
            train: change.of("training", &self.train, train)?,
            test: match has_test || normalize {
                true => change.of("test", &self.test, self.test.features().into_owned())?,
                false => self.test.clone(),
            },
        })
    }
}

impl Stage {
    fn has_noise(&self) -> bool {
        self.manners.iter().any(|manner| manner.noise > 0.0)
    }
}

/// The change of all examples.
struct Change<'a> {
    stages: &'a [Stage],
    shape: Shape,
    /// Units of the noise of each column of a table.
    units: Vec<f64>,
    /// By which channels are standardised; none if they are not.
    scales: &'a [Scale],
    streams: &'a Streams,
}

impl Change<'_> {
    /// One part of the data, from its unchanged features.
    fn of(&self, part: &'static str, data: &Dataset, mut numbers: Array2<f32>) -> Result<Dataset, DataError> {
        let is_test = part == "test";
        let area = self.shape.height * self.shape.width;
        let (mut features, mut turned) = (vec![0.0; data.width()], vec![0.0; data.width()]);
        for (example, mut row) in numbers.rows_mut().into_iter().enumerate() {
            features.iter_mut().zip(&row).for_each(|(feature, &number)| *feature = f64::from(number));
            for stage in self.stages {
                let manners = if is_test { &stage.test } else { &stage.train };
                let Some(manner) = manners.get(example).copied().flatten() else { continue };
                let noise = (example as u32, stage.noise[usize::from(is_test)]);
                self.apply(&stage.manners[manner as usize], noise, &mut features, &mut turned);
            }
            for (place, (number, &feature)) in row.iter_mut().zip(&features).enumerate() {
                let channel = place / area;
                *number = match self.scales.get(channel) {
                    Some(scale) => {
                        scale.scaled(feature).map_err(|()| scale.refused(part, example, channel, feature))?
                    }
                    None => feature as f32,
                };
            }
        }
        Ok(data.with_features(numbers))
    }

    /// Changes the features of an example; `noise` has entity and index of the stream.
    fn apply(&self, manner: &Manner, noise: (u32, u32), features: &mut Vec<f64>, turned: &mut Vec<f64>) {
        if manner.rotation.rem_euclid(360.0) != 0.0 {
            turn(features, self.shape, manner.rotation, turned);
            std::mem::swap(features, turned);
        }
        let area = self.shape.height * self.shape.width;
        for (channel, [factor, summand]) in features.chunks_exact_mut(area).zip(&manner.colour) {
            channel.iter_mut().for_each(|value| *value = factor * *value + summand);
        }
        if manner.noise > 0.0 {
            let mut stream = self.streams.stream(Purpose::Partition, noise.0, noise.1);
            for (place, feature) in features.iter_mut().enumerate() {
                let unit = self.units.get(place).copied().unwrap_or(1.0);
                *feature += manner.noise * unit * normal_quantile(stream.uniform());
            }
        }
    }
}

/// Cosine and sine of an angle in degrees, exact for multiples of 90.
fn direction(degrees: f64) -> [f64; 2] {
    let degrees = degrees.rem_euclid(360.0);
    match degrees {
        0.0 => [1.0, 0.0],
        90.0 => [0.0, 1.0],
        180.0 => [-1.0, 0.0],
        270.0 => [0.0, -1.0],
        _ => [cos(degrees * PI / 180.0), sin(degrees * PI / 180.0)],
    }
}

/// Writes an image that is turned counter-clockwise.
fn turn(image: &[f64], shape: Shape, degrees: f64, turned: &mut [f64]) {
    let Shape { height, width, .. } = shape;
    let [cosine, sine] = direction(degrees);
    let (middle_row, middle_column) = ((height as f64 - 1.0) / 2.0, (width as f64 - 1.0) / 2.0);
    for row in 0..height {
        for column in 0..width {
            let (x, y) = (column as f64 - middle_column, middle_row - row as f64);
            let (from_x, from_y) = (x * cosine + y * sine, y * cosine - x * sine);
            let (from_column, from_row) = (middle_column + from_x, middle_row - from_y);
            let (left, top) = (floor(from_column), floor(from_row));
            let (right_share, bottom_share) = (from_column - left, from_row - top);
            let pixels = [
                (top, left, (1.0 - bottom_share) * (1.0 - right_share)),
                (top, left + 1.0, (1.0 - bottom_share) * right_share),
                (top + 1.0, left, bottom_share * (1.0 - right_share)),
                (top + 1.0, left + 1.0, bottom_share * right_share),
            ];
            for (from, to) in image.chunks_exact(height * width).zip(turned.chunks_exact_mut(height * width)) {
                let mut sum = 0.0;
                for (row, column, share) in pixels {
                    let is_inside = (0.0..height as f64).contains(&row) && (0.0..width as f64).contains(&column);
                    if is_inside && share > 0.0 {
                        sum += share * from[row as usize * width + column as usize];
                    }
                }
                to[row * width + column] = sum;
            }
        }
    }
}

#[cfg(test)]
mod tests;
