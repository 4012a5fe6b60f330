//! The loops that training spends its time in, compiled for each [`Path`](crate::lanes::Path).
//!
//! | kernel | result |
//! |---|---|
//! | [`correlate`] | convolutions, forward and with respect to their input |
//! | [`correlate_gradient`] | convolutions with respect to their weights |
//! | [`winograd`] | convolutions of 3 × 3 kernels with fewer multiplications, in the three directions |
//! | [`dense`] | fully connected layers, in the three directions |
//! | [`turn`] | the layout of a batch, from and to example × feature |
//!
//! # Layout
//! A tensor of a batch of `B` examples is channel × row × (column, example): the examples of a column lie side by side,
//! and the columns of a row follow each other, so that a row is `width · B` numbers and a shift by one column is a
//! shift by `B`. Rows are padded to whole vectors of 16 and the tensor to [`SLACK`] more, so that loops run over whole
//! vectors; numbers in the padding are finite and mean nothing.

pub mod correlate;
pub mod correlate_gradient;
pub mod dense;
pub mod turn;
pub mod winograd;

use crate::data::Shape;
use crate::lanes::LANES;

/// Numbers behind a tensor that may be read and written without meaning.
pub const SLACK: usize = 4 * LANES;

/// `count` rounded up to whole vectors.
pub const fn whole_vectors(count: usize) -> usize {
    count.next_multiple_of(LANES)
}

/// Where the numbers of a batched tensor lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Channels, rows and columns of one example.
    pub shape: Shape,
    /// Examples.
    pub batch: usize,
    /// Numbers from a row to the next.
    pub row: usize,
}

impl Layout {
    /// The layout of a batch.
    pub const fn new(shape: Shape, batch: usize) -> Self {
        Self { shape, batch, row: whole_vectors(shape.width * batch) }
    }

    /// Numbers from a channel to the next.
    pub const fn plane(&self) -> usize {
        self.shape.height * self.row
    }

    /// Numbers in all.
    #[expect(clippy::len_without_is_empty, reason = "a layout has slack, so that it is never empty")]
    pub const fn len(&self) -> usize {
        self.shape.channels * self.plane() + SLACK
    }

    /// Numbers of a row that mean something.
    pub const fn used(&self) -> usize {
        self.shape.width * self.batch
    }

    /// Vectors of a row.
    pub const fn vectors(&self) -> usize {
        self.row / LANES
    }

    /// Where each feature of an example starts, in the order channel, row, column.
    pub fn features(&self) -> Vec<u32> {
        let rows = self.shape.channels * self.shape.height;
        (0..rows)
            .flat_map(|row| (0..self.shape.width).map(move |column| (row * self.row + column * self.batch) as u32))
            .collect()
    }
}
