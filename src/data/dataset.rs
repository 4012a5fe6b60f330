//! A table of examples: one row of features and one target each.

use crate::math::dense::Rows;
use ndarray::Array2;

/// Channels, rows and columns of an example, whose features are in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels, such as colours.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Shape {
    /// Number of features.
    pub const fn len(self) -> usize {
        self.channels * self.height * self.width
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} × {} × {}", self.channels, self.height, self.width)
    }
}

/// What is to be predicted, one entry for each example.
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

/// Features (example × feature, in row-major order) and targets of the same examples.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    features: Array2<f32>,
    targets: Targets,
    groups: Option<Vec<u32>>,
}

impl Dataset {
    /// Puts features and targets together.
    ///
    /// # Panics
    /// If their numbers of examples differ, a label is not below the number of classes, or there are 2^32 examples or
    /// more. A reader of files checks this before, where it can name the file.
    pub fn new(features: Array2<f32>, targets: Targets) -> Self {
        assert_eq!(features.nrows(), targets.len(), "every example has features and a target");
        assert!(u32::try_from(features.nrows()).is_ok(), "examples are numbered in 32 bits");
        if let Targets::Classes { labels, classes } = &targets {
            assert!(
                labels.iter().all(|&label| usize::from(label) < *classes),
                "a label is below the number of classes"
            );
        }
        let features =
            if features.is_standard_layout() { features } else { features.as_standard_layout().into_owned() };
        Self { features, targets, groups: None }
    }

    /// Numbers every example by the group it belongs to (its writer, its user, …), from 0 without gaps.
    ///
    /// # Panics
    /// If there are not as many numbers as examples.
    #[must_use]
    pub fn with_groups(self, groups: Vec<u32>) -> Self {
        assert_eq!(groups.len(), self.examples(), "every example belongs to a group");
        Self { groups: Some(groups), ..self }
    }

    /// The group of each example, if the data set says.
    pub fn groups(&self) -> Option<&[u32]> {
        self.groups.as_deref()
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.features.nrows()
    }

    /// Number of features of an example.
    pub fn width(&self) -> usize {
        self.features.ncols()
    }

    /// The features, example × feature.
    pub fn features(&self) -> &Array2<f32> {
        &self.features
    }

    /// The features as plain rows.
    pub fn rows(&self) -> Rows<'_> {
        let values = self.features.as_slice().expect("a data set is in row-major order");
        Rows { values, width: self.width() }
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
    /// What is dealt out to the clients.
    pub train: Dataset,
    /// What the server evaluates on.
    pub test: Dataset,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn columns_first_input_is_stored_row_by_row() {
        let transposed = array![[1.0, 3.0], [2.0, 4.0]].reversed_axes();
        let data = Dataset::new(transposed, Targets::Values(vec![0.0, 1.0]));
        assert_eq!(data.rows().values, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(data.rows().row(1), [3.0, 4.0]);
    }

    #[test]
    #[should_panic(expected = "below the number of classes")]
    fn a_label_beyond_the_classes_is_a_broken_invariant() {
        let _ = Dataset::new(array![[0.0]], Targets::Classes { labels: vec![2], classes: 2 });
    }
}
