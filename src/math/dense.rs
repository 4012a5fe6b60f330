//! Products of dense `f32` rows in a fixed order of additions: the inner loops of every model.
//!
//! # Definition
//! A dot product of length `n` keeps 16 partial sums: term `j` of the first `16·⌊n/16⌋` terms goes to sum `j mod 16`,
//! in ascending `j`. The 16 sums are folded in halves (`i` and `i + 8`, then `i` and `i + 4`, `i + 2`, `i + 1`), and
//! the remaining `n mod 16` terms, added up one by one from zero, come last. Every step is a rounded multiplication
//! followed by a rounded addition, never a fused one. The compiler may use vectors of any width: it cannot change
//! the bits, because no sum is reordered.

/// Number of partial sums of a dot product.
pub const LANES: usize = 16;

/// The dot product of two rows of equal length.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn dot(left: &[f32], right: &[f32]) -> f32 {
    dots([left], right)[0]
}

/// The dot products of several rows with one and the same row; each has the bits that [`dot`] gives.
///
/// # Panics
/// If the lengths differ.
#[inline]
pub fn dots<const ROWS: usize>(rows: [&[f32]; ROWS], shared: &[f32]) -> [f32; ROWS] {
    assert!(rows.iter().all(|row| row.len() == shared.len()), "a dot product needs rows of equal length");
    let (shared_blocks, shared_rest) = shared.as_chunks::<LANES>();
    let row_blocks = rows.map(|row| &row.as_chunks::<LANES>().0[..shared_blocks.len()]);
    let mut sums = [[0.0_f32; LANES]; ROWS];
    for (place, block) in shared_blocks.iter().enumerate() {
        for (sum, blocks) in sums.iter_mut().zip(&row_blocks) {
            let other = &blocks[place];
            for lane in 0..LANES {
                sum[lane] += other[lane] * block[lane];
            }
        }
    }
    let tail = shared_blocks.len() * LANES;
    let mut products = [0.0; ROWS];
    for ((product, row), sum) in products.iter_mut().zip(rows).zip(&sums) {
        for (x, y) in row[tail..].iter().zip(shared_rest) {
            *product += x * y;
        }
        // Without a whole block the folded sum is +0, and adding +0 to a sum that began at +0 changes no bit.
        if tail > 0 {
            *product += fold_lanes(sum);
        }
    }
    products
}

/// Folds 16 partial sums in halves.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it, which costs a third of the speed.
#[inline(never)]
fn fold_lanes(sums: &[f32; LANES]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|lane| sums[lane] + sums[lane + 8]);
    let four: [f32; 4] = std::array::from_fn(|lane| eight[lane] + eight[lane + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// A borrowed table of `f32`, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The numbers, row after row.
    pub values: &'a [f32],
    /// Length of a row.
    pub width: usize,
}

impl<'a> Rows<'a> {
    /// One row.
    #[inline]
    pub fn row(self, row: u32) -> &'a [f32] {
        &self.values[row as usize * self.width..][..self.width]
    }
}

/// Adds the sum of outer products `Σ_b scales[b] ⊗ table[batch[b]]` to `out`.
///
/// `scales` holds `rows` numbers for each member of the batch and `out` is `rows × table.width`, row by row. Each
/// entry's sum starts at zero, takes the members in the order of the batch, and is then added to `out`.
///
/// # Panics
/// If a length does not fit.
pub fn add_outer(scales: &[f32], rows: usize, table: Rows<'_>, batch: &[u32], out: &mut [f32]) {
    assert_eq!(scales.len(), rows * batch.len(), "one scale for each row and member of the batch");
    assert_eq!(out.len(), rows * table.width, "the sum of outer products has the table's width");
    let mut column = 0;
    while column < table.width {
        // Blocks of columns only group entries that do not depend on each other; they do not change a sum's order.
        column += match table.width - column {
            LANES.. => add_outer_columns::<LANES>(scales, rows, table, batch, column, out),
            8.. => add_outer_columns::<8>(scales, rows, table, batch, column, out),
            4.. => add_outer_columns::<4>(scales, rows, table, batch, column, out),
            2.. => add_outer_columns::<2>(scales, rows, table, batch, column, out),
            _ => add_outer_columns::<1>(scales, rows, table, batch, column, out),
        };
    }
}

/// The part of [`add_outer`] that concerns `COLUMNS` columns from `column`; returns how many it did.
#[inline]
fn add_outer_columns<const COLUMNS: usize>(
    scales: &[f32],
    rows: usize,
    table: Rows<'_>,
    batch: &[u32],
    column: usize,
    out: &mut [f32],
) -> usize {
    let mut row = 0;
    while row + 2 <= rows {
        add_outer_block::<2, COLUMNS>(scales, rows, table, batch, (row, column), out);
        row += 2;
    }
    if row < rows {
        add_outer_block::<1, COLUMNS>(scales, rows, table, batch, (row, column), out);
    }
    COLUMNS
}

#[inline]
fn add_outer_block<const ROWS: usize, const COLUMNS: usize>(
    scales: &[f32],
    rows: usize,
    table: Rows<'_>,
    batch: &[u32],
    (row, column): (usize, usize),
    out: &mut [f32],
) {
    let mut sums = [[0.0_f32; COLUMNS]; ROWS];
    for (&member, scales) in batch.iter().zip(scales.chunks_exact(rows)) {
        let start = member as usize * table.width + column;
        let block =
            table.values[start..].first_chunk::<COLUMNS>().expect("a member of the batch is a row of the table");
        let scales = scales[row..].first_chunk::<ROWS>().expect("one scale for each row");
        for (sum, scale) in sums.iter_mut().zip(scales) {
            for lane in 0..COLUMNS {
                sum[lane] += scale * block[lane];
            }
        }
    }
    for (place, sum) in sums.iter().enumerate() {
        let start = (row + place) * table.width + column;
        for (entry, sum) in out[start..start + COLUMNS].iter_mut().zip(sum) {
            *entry += sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    fn numbers(count: usize, entity: u32) -> Vec<f32> {
        let mut rng = Streams::new(1).stream(Purpose::Example, entity, 0);
        (0..count).map(|_| rng.uniform() as f32 - 0.5).collect()
    }

    #[test]
    fn a_dot_product_follows_the_documented_order() {
        for length in [0, 1, 15, 16, 17, 31, 32, 100, 784] {
            let (x, y) = (numbers(length, 1), numbers(length, 2));
            let full = length / LANES * LANES;
            let mut sums = [0.0_f32; LANES];
            for j in 0..full {
                sums[j % LANES] += x[j] * y[j];
            }
            let eight: Vec<f32> = (0..8).map(|i| sums[i] + sums[i + 8]).collect();
            let four: Vec<f32> = (0..4).map(|i| eight[i] + eight[i + 4]).collect();
            let folded = (four[0] + four[2]) + (four[1] + four[3]);
            let rest = (full..length).fold(0.0, |sum, j| sum + x[j] * y[j]);
            assert_eq!(dot(&x, &y).to_bits(), (folded + rest).to_bits(), "length {length}");
            assert_eq!(dots([&y, &x], &x)[0].to_bits(), dot(&y, &x).to_bits());
        }
    }

    #[test]
    fn outer_products_add_up_entry_by_entry_in_batch_order() {
        for (rows, width) in [(1, 1), (1, 100), (2, 16), (3, 21), (10, 39)] {
            let (table, scales) = (numbers(8 * width, 3), numbers(rows * 5, 4));
            let batch = [7, 0, 3, 3, 1];
            let mut out = numbers(rows * width, 5);
            let mut expected = out.clone();
            for row in 0..rows {
                for column in 0..width {
                    let sum = (0..5).fold(0.0_f32, |sum, b| {
                        sum + scales[b * rows + row] * table[batch[b] as usize * width + column]
                    });
                    expected[row * width + column] += sum;
                }
            }
            add_outer(&scales, rows, Rows { values: &table, width }, &batch, &mut out);
            assert_eq!(out, expected, "{rows} × {width}");
        }
    }
}
