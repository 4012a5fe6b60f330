//! A table of examples: one row of features and one target each.

use super::DataError;
use super::features::{Features, Table};
use crate::dense::Rows;
use fedgenie_core::math::float::sqrt;
use ndarray::Array2;
use std::borrow::Cow;
use std::sync::Arc;

/// The targets, one for each example.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets {
    /// A number for each example (regression).
    Values(Vec<f32>),
    /// A class for each example (classification).
    Classes {
        /// The class of each example, below `classes`.
        labels: Vec<u8>,
        /// Number of classes, at most 256.
        classes: usize,
    },
}

impl Targets {
    /// Number of examples.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Classes { labels, .. } => labels.len(),
        }
    }

    /// Whether there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How the features of one example are laid out: channel by channel, in a channel row by row.
///
/// A table without such a layout has one channel per feature, of height and width 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Colours of an image; features of a table.
    pub channels: usize,
    /// Rows of an image.
    pub height: usize,
    /// Columns of an image.
    pub width: usize,
}

impl Shape {
    /// Number of features.
    ///
    /// # Panics
    /// If it overflows.
    pub const fn len(self) -> usize {
        self.checked_len().expect("a shape has as many features as fit in memory")
    }

    /// Number of features, if it does not overflow.
    pub const fn checked_len(self) -> Option<usize> {
        match self.channels.checked_mul(self.height) {
            Some(area) => area.checked_mul(self.width),
            None => None,
        }
    }

    /// Whether there is no feature.
    pub const fn is_empty(self) -> bool {
        self.channels == 0 || self.height == 0 || self.width == 0
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} × {} × {}", self.channels, self.height, self.width)
    }
}

/// Features (example × feature, in row-major order) and targets of the same examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    features: Arc<Features>,
    targets: Targets,
    shape: Shape,
    groups: Option<Vec<u32>>,
}

impl Dataset {
    /// Puts features and targets together.
    ///
    /// # Panics
    /// If their numbers of examples differ, a label is not below the number of classes, or there are 2^32 examples or
    /// more. A reader of files checks this before, where it can name the file.
    pub fn new(features: Array2<f32>, targets: Targets) -> Self {
        let numbers = if features.is_standard_layout() { features } else { features.as_standard_layout().into_owned() };
        Self::of(numbers.nrows(), Features::Numbers(numbers), targets)
    }

    /// Puts images of a byte for each pixel (image by image, `width` pixels each) and targets together. The features
    /// are the bytes' 255ths.
    ///
    /// # Panics
    /// As [`Dataset::new`]; or if there are not as many bytes as pixels.
    pub fn of_bytes(bytes: Vec<u8>, width: usize, targets: Targets) -> Self {
        assert_eq!(Some(bytes.len()), width.checked_mul(targets.len()), "every example has its bytes");
        Self::of(targets.len(), Features::Bytes(bytes, width), targets)
    }

    fn of(examples: usize, features: Features, targets: Targets) -> Self {
        assert_eq!(examples, targets.len(), "every example has features and a target");
        assert!(u32::try_from(examples).is_ok(), "examples are numbered in 32 bits");
        if let Targets::Classes { labels, classes } = &targets {
            assert!(
                labels.iter().all(|&label| usize::from(label) < *classes),
                "a label is below the number of classes"
            );
        }
        let shape = Shape { channels: features.width(), height: 1, width: 1 };
        Self { features: Arc::new(features), targets, shape, groups: None }
    }

    /// The same examples with other labels of some, below the number of classes; it shares the features.
    ///
    /// # Panics
    /// If they have no labels.
    #[must_use]
    pub fn relabelled(&self, examples: impl IntoIterator<Item = u32>, mut label: impl FnMut(u8) -> u8) -> Self {
        let mut other = self.clone();
        let Targets::Classes { labels, classes } = &mut other.targets else { panic!("examples have labels") };
        for example in examples {
            let labels = &mut labels[example as usize];
            *labels = label(*labels);
            assert!(usize::from(*labels) < *classes, "a label is below the number of classes");
        }
        other
    }

    /// The same examples, whose features are images of this shape.
    ///
    /// # Panics
    /// If the shape does not have as many features as an example.
    #[must_use]
    pub fn with_shape(self, shape: Shape) -> Self {
        assert_eq!(shape.checked_len(), Some(self.width()), "the shape {shape} has as many features as an example");
        Self { shape, ..self }
    }

    /// The same examples, each numbered by the group it belongs to (its writer, its user, …). The numbers of a training
    /// set are 0, 1, … without a gap; the test set uses the same numbers, and goes on after them for groups of its own.
    ///
    /// # Panics
    /// If there are not as many numbers as examples.
    #[must_use]
    pub fn with_groups(self, groups: Vec<u32>) -> Self {
        assert_eq!(groups.len(), self.examples(), "every example belongs to a group");
        Self { groups: Some(groups), ..self }
    }

    /// The same examples with other features of the same shape, in row-major order.
    pub(super) fn with_features(&self, numbers: Array2<f32>) -> Self {
        assert_eq!(numbers.dim(), (self.examples(), self.width()), "every example has its features");
        Self { features: Arc::new(Features::Numbers(numbers)), ..self.clone() }
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.targets.len()
    }

    /// Number of features of an example.
    pub fn width(&self) -> usize {
        self.features.width()
    }

    /// How the features of an example are laid out.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The group of each example, if the data set says; see [`Dataset::with_groups`].
    pub fn groups(&self) -> Option<&[u32]> {
        self.groups.as_deref()
    }

    /// The features, example × feature, unpacked where they are bytes.
    pub fn features(&self) -> Cow<'_, Array2<f32>> {
        match &*self.features {
            Features::Numbers(numbers) => Cow::Borrowed(numbers),
            bytes @ Features::Bytes(..) => {
                let mut numbers = bytes.clone();
                Cow::Owned(std::mem::take(numbers.unpack()))
            }
        }
    }

    /// The features as they lie in memory.
    pub fn table(&self) -> Table<'_> {
        self.features.table()
    }

    /// The features as plain rows, unless they are bytes.
    pub fn numbers(&self) -> Option<Rows<'_>> {
        match self.table() {
            Table::Numbers(rows) => Some(rows),
            Table::Bytes(..) => None,
        }
    }

    /// Some of the examples, in the order of their indices, without their groups.
    ///
    /// # Panics
    /// If one is not there.
    pub(super) fn select(&self, examples: &[usize]) -> Self {
        let targets = match &self.targets {
            Targets::Values(values) => Targets::Values(examples.iter().map(|&example| values[example]).collect()),
            Targets::Classes { labels, classes } => {
                let labels = examples.iter().map(|&example| labels[example]).collect();
                Targets::Classes { labels, classes: *classes }
            }
        };
        Self { features: Arc::new(self.features.select(examples)), targets, shape: self.shape, groups: None }
    }

    /// The targets.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// The numbers to be predicted, if this is a regression.
    pub fn values(&self) -> Option<&[f32]> {
        match &self.targets {
            Targets::Values(values) => Some(values),
            Targets::Classes { .. } => None,
        }
    }

    /// The labels and the number of classes, if this is a classification.
    pub fn classes(&self) -> Option<(&[u8], usize)> {
        match &self.targets {
            Targets::Values(_) => None,
            Targets::Classes { labels, classes } => Some((labels, *classes)),
        }
    }
}

/// Examples to learn from, and examples to judge by.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The part that is dealt out to clients.
    pub train: Dataset,
    /// The part that the server evaluates on.
    pub test: Dataset,
}

impl Split {
    /// Bytes of all numbers.
    pub fn bytes(&self) -> u64 {
        let of = |part: &Dataset| part.features.bytes() + 4 * part.examples() as u64;
        of(&self.train) + of(&self.test)
    }

    /// Standardises both parts channel by channel: minus the mean, divided by the standard deviation (that of all
    /// values, with divisor n) of the channel in the *training* part. A channel that is constant there is only centred.
    /// For a table every feature is a channel.
    ///
    /// Sums are in `f64`, in the order of the examples; each feature is rounded to `f32` once.
    ///
    /// # Errors
    /// [`DataError::Scale`] if a feature leaves the range of `f32`: a test value far from a nearly constant channel.
    ///
    /// # Panics
    /// If the two parts have different shapes, or the training part has no example.
    pub fn normalized(mut self) -> Result<Self, DataError> {
        assert_eq!(self.train.shape, self.test.shape, "training and test examples have one shape");
        assert!(self.train.examples() > 0, "there is an example to learn the scale from");
        let shape = self.train.shape;
        let area = shape.height * shape.width;
        let scales = scales(Arc::make_mut(&mut self.train.features).unpack(), shape);
        for (part, name) in [(&mut self.train, "training"), (&mut self.test, "test")] {
            for (example, mut features) in Arc::make_mut(&mut part.features).unpack().rows_mut().into_iter().enumerate()
            {
                for (index, value) in features.iter_mut().enumerate() {
                    let (channel, found) = (index / area, f64::from(*value));
                    let scale = &scales[channel];
                    *value = scale.scaled(found).map_err(|()| scale.refused(name, example, channel, found))?;
                }
            }
        }
        Ok(self)
    }
}

/// The scale of each channel of training examples of this shape.
pub(super) fn scales(training: &Array2<f32>, shape: Shape) -> Vec<Scale> {
    let area = shape.height * shape.width;
    let of_channel = |channel: usize| {
        let examples = training.as_slice().expect("in row-major order").chunks_exact(training.ncols().max(1));
        Scale::of(examples.map(|example| &example[channel * area..(channel + 1) * area]))
    };
    (0..shape.channels).map(of_channel).collect()
}

/// Mean and deviation by which a channel is standardised.
pub(super) struct Scale {
    /// Mean of the channel's numbers.
    pub mean: f64,
    /// Their standard deviation; 1 if all are equal.
    pub deviation: f64,
}

impl Scale {
    /// That of a channel, whose numbers these are, example by example.
    fn of<'a>(examples: impl Iterator<Item = &'a [f32]> + Clone) -> Self {
        let values = || examples.clone().flatten().map(|&value| f64::from(value));
        let first = values().next().unwrap_or_default();
        // The mean of equal numbers need not be that number exactly, and dividing by the rest would blow it up.
        if values().all(|value| value == first) {
            return Self { mean: first, deviation: 1.0 };
        }
        let count = values().count() as f64;
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        Self { mean, deviation: sqrt(variance) }
    }

    /// A standardised number, if it is one.
    pub fn scaled(&self, value: f64) -> Result<f32, ()> {
        let scaled = ((value - self.mean) / self.deviation) as f32;
        if scaled.is_finite() { Ok(scaled) } else { Err(()) }
    }

    /// Why it is none.
    pub fn refused(&self, part: &'static str, example: usize, channel: usize, found: f64) -> DataError {
        let Self { mean, deviation } = *self;
        DataError::Scale { part, example, channel, found: found as f32, mean, deviation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn split(train: Array2<f32>, test: Array2<f32>) -> Split {
        let part = |features: Array2<f32>| {
            let targets = Targets::Values(vec![0.0; features.nrows()]);
            Dataset::new(features, targets)
        };
        Split { train: part(train), test: part(test) }
    }

    #[test]
    fn a_table_is_standardised_feature_by_feature_with_the_scale_of_training() {
        let train = array![[1.0, 10.0, 0.1], [3.0, 10.0, 0.1], [1.0, 30.0, 0.1], [3.0, 30.0, 0.1]];
        let normal = split(train, array![[2.0, 40.0, 0.6]]).normalized().unwrap();
        let expected = [[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
        assert_eq!(normal.train.numbers().unwrap().values, expected.as_flattened());
        assert_eq!(normal.test.numbers().unwrap().values, [0.0, 2.0, 0.5]);
    }

    #[test]
    fn an_image_is_standardised_channel_by_channel() {
        let shape = Shape { channels: 2, height: 1, width: 2 };
        let Split { train, test } =
            split(array![[1.0, 3.0, 5.0, 5.0], [3.0, 1.0, 5.0, 5.0]], array![[4.0, 2.0, 6.0, 5.0]]);
        let images = Split { train: train.with_shape(shape), test: test.with_shape(shape) }.normalized().unwrap();
        assert_eq!(images.train.numbers().unwrap().values, [-1.0, 1.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0]);
        assert_eq!(images.test.numbers().unwrap().values, [2.0, 0.0, 1.0, 0.0]);
        assert_eq!(images.test.shape(), shape);
    }

    #[test]
    fn normalised_features_have_mean_0_and_deviation_1_whatever_they_were() {
        let train =
            Array2::from_shape_fn((101, 3), |(row, column)| ((row * 37 + column * 11) % 101) as f32 * 1e20 + 7e21);
        let once = split(train.clone(), train).normalized().unwrap();
        for column in 0..3 {
            let features = once.train.features();
            let values = || features.column(column).into_iter().map(|&value| f64::from(value));
            let mean = values().sum::<f64>() / 101.0;
            let variance = values().map(|value| value * value).sum::<f64>() / 101.0;
            assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-6, "{mean} {variance}");
        }
        assert_eq!(once.train, once.test);
    }

    #[test]
    fn a_feature_beyond_the_range_is_refused() {
        let error = split(array![[0.0, 0.0], [0.0, 1e-20]], array![[0.0, 1e20]]).normalized().unwrap_err().to_string();
        assert!(error.contains("test example 0: channel 1 holds 100000000000000000000"), "{error}");
    }

    #[test]
    fn a_table_has_a_channel_per_feature_and_no_groups() {
        let data = split(array![[1.0, 2.0]], array![[1.0, 2.0]]).train;
        assert_eq!(data.shape(), Shape { channels: 2, height: 1, width: 1 });
        assert_eq!(data.groups(), None);
        assert_eq!(data.with_groups(vec![0]).groups(), Some(&[0][..]));
    }

    #[test]
    #[should_panic(expected = "3 × 1 × 1 has as many features")]
    fn a_shape_of_another_size_is_a_broken_invariant() {
        let _ =
            split(array![[1.0, 2.0]], array![[1.0, 2.0]]).train.with_shape(Shape { channels: 3, height: 1, width: 1 });
    }

    #[test]
    fn columns_first_input_is_stored_row_by_row() {
        let transposed = array![[1.0, 3.0], [2.0, 4.0]].reversed_axes();
        let data = Dataset::new(transposed, Targets::Values(vec![0.0, 1.0]));
        assert_eq!(data.numbers().unwrap().values, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(data.numbers().unwrap().row(1), [3.0, 4.0]);
    }

    #[test]
    #[should_panic(expected = "below the number of classes")]
    fn a_label_beyond_the_classes_is_a_broken_invariant() {
        let _ = Dataset::new(array![[0.0]], Targets::Classes { labels: vec![2], classes: 2 });
    }
}
