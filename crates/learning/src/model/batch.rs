//! Examples that a model sees at once.

use crate::data::Dataset;
use crate::data::features::Table;

/// Some examples of a data set, in an order: those of a step, or of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The data set.
    pub data: &'a Dataset,
    /// Indices of the examples.
    pub examples: &'a [u32],
}

impl<'a> Batch<'a> {
    /// All features of the data set, of which the batch reads those of its examples.
    pub fn table(self) -> Table<'a> {
        self.data.table()
    }

    /// The classes of the data set.
    ///
    /// # Panics
    /// If its targets are numbers, which [`super::Model::fits`] refuses.
    pub fn classes(self) -> &'a [u8] {
        self.data.classes().expect("the model needs classes as targets").0
    }

    /// The numbers to be predicted of the data set.
    ///
    /// # Panics
    /// If its targets are classes, which [`super::Model::fits`] refuses.
    pub fn values(self) -> &'a [f32] {
        self.data.values().expect("the model needs numbers as targets")
    }

    /// Consecutive pieces of at most `size` examples.
    pub fn chunks(self, size: usize) -> impl Iterator<Item = Self> {
        self.examples.chunks(size).map(move |examples| Self { examples, ..self })
    }
}
