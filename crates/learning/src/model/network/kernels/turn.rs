//! From example × feature to the layout of a batch, and back: squares of 16 × 16 numbers, whose rows and columns are
//! exchanged.

use crate::data::features::Table;
use crate::lanes::{Kernel, LANES, Lanes, transpose};

/// Writes a batch's examples to the input layer, example innermost.
pub struct Load<'a> {
    /// The data set's features.
    pub table: Table<'a>,
    /// The examples.
    pub batch: &'a [u32],
    /// Where each feature goes.
    pub features: &'a [u32],
    /// The input layer's output.
    pub out: &'a mut [f32],
}

impl Kernel for Load<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        // Sixteen examples at a time, whose features are read from the first to the last: as many streams as a
        // processor follows.
        for (block, examples) in self.batch.chunks(LANES).enumerate() {
            for (run, features) in self.features.chunks(LANES).enumerate() {
                let mut square = [Lanes::ZERO; LANES];
                for (lanes, &example) in square.iter_mut().zip(examples) {
                    *lanes = self.table.lanes(example, run * LANES, features.len());
                }
                write_columns(&mut square, features, block * LANES, examples.len(), false, self.out);
            }
        }
    }
}

/// Writes the columns of a square of examples × features, or adds them, to where the features start, from the example
/// `first` on.
#[inline(always)]
pub(super) fn write_columns(
    square: &mut [Lanes; LANES],
    features: &[u32],
    first: usize,
    examples: usize,
    add: bool,
    out: &mut [f32],
) {
    transpose(square);
    for (lanes, &start) in square.iter().zip(features) {
        let out = &mut out[start as usize + first..];
        let sum = if add { Lanes::load(out) + *lanes } else { *lanes };
        if examples == LANES {
            sum.store(out);
        } else {
            sum.store_first(examples, out);
        }
    }
}

/// Turns a layer's output to example × feature; the rest of a row behind the last feature becomes zero.
pub struct Turn<'a> {
    /// The layer's output.
    pub input: &'a [f32],
    /// Where each feature starts.
    pub features: &'a [u32],
    /// Examples.
    pub batch: usize,
    /// Numbers from an example to the next: the features, rounded up to whole vectors.
    pub row: usize,
    /// Example × feature.
    pub out: &'a mut [f32],
}

impl Kernel for Turn<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for (run, features) in self.features.chunks(LANES).enumerate() {
            for first in (0..self.batch).step_by(LANES) {
                let mut square = [Lanes::ZERO; LANES];
                for (lanes, &start) in square.iter_mut().zip(features) {
                    *lanes = Lanes::load(&self.input[start as usize + first..]);
                }
                transpose(&mut square);
                for (example, lanes) in (first..self.batch).zip(&square) {
                    lanes.store(&mut self.out[example * self.row + run * LANES..]);
                }
            }
        }
    }
}
