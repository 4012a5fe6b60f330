//! Products of dense `f32` rows in a fixed order of additions: the inner loops of linear models.
//!
//! # Definition
//! - A dot product keeps 16 sums, which begin at zero: term `j` goes to sum `j mod 16`, in ascending `j`, by a fused
//!   multiply-add. The last terms are filled up to 16 with `0 · 0`, and the 16 sums are folded in halves, as
//!   [`Lanes::sum`] does.
//! - An entry of a sum of outer products begins at zero and takes one fused multiply-add for each example, in their
//!   order.
//!
//! # Cost
//! One fused multiply-add for each 16 terms. Tiles of rows and examples, or of rows and columns, stay in registers;
//! their shape depends on the processor and changes neither which terms a sum has nor their order.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use super::lanes::{LANES, Lanes, fold};

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

    /// The whole vectors of a row.
    #[inline(always)]
    fn vectors(self, row: usize) -> &'a [[f32; LANES]] {
        self.values[row * self.width..][..self.width].as_chunks().0
    }

    /// The rest of a row after its whole vectors, with zeros behind.
    #[inline(always)]
    fn rest(self, row: usize) -> Lanes {
        let count = self.width % LANES;
        let values = &self.values[(row + 1) * self.width - count..];
        // Reading into the next row and blanking that is several times faster than reading number by number.
        match values.first_chunk() {
            Some(chunk) => Lanes(*chunk).first(count),
            None => Lanes::load_partial(&values[..count]),
        }
    }
}

/// The dot products of the first rows of a table with up to 16 examples, rows of another: that of row `r` and
/// `examples[i]` goes to `out[r].0[i]`, for every `r` below the length of `out`. Lanes beyond the examples stay
/// unchanged.
///
/// # Panics
/// If there are more than 16 examples, or a row is not there.
#[inline(always)]
pub fn products<const WIDE: bool>(weights: Rows<'_>, table: Rows<'_>, examples: &[u32], out: &mut [Lanes]) {
    assert_eq!(weights.width, table.width, "a dot product needs rows of equal length");
    let mut row = 0;
    while row < out.len() {
        row += match out.len() - row {
            10.. if WIDE => products_of_rows::<10, 2>(weights, table, examples, row, out),
            5.. if WIDE => products_of_rows::<5, 4>(weights, table, examples, row, out),
            2.. if WIDE => products_of_rows::<2, 4>(weights, table, examples, row, out),
            _ if WIDE => products_of_rows::<1, 4>(weights, table, examples, row, out),
            3.. => products_of_rows::<3, 2>(weights, table, examples, row, out),
            2 => products_of_rows::<2, 2>(weights, table, examples, row, out),
            _ => products_of_rows::<1, 4>(weights, table, examples, row, out),
        };
    }
}

/// The part of [`products`] that concerns `ROWS` rows from `row`; returns how many it did.
#[inline(always)]
fn products_of_rows<const ROWS: usize, const EXAMPLES: usize>(
    weights: Rows<'_>,
    table: Rows<'_>,
    examples: &[u32],
    row: usize,
    out: &mut [Lanes],
) -> usize {
    let has_rest = !weights.width.is_multiple_of(LANES);
    let mut rests = [Lanes::ZERO; ROWS];
    for index in 0..ROWS {
        if has_rest {
            rests[index] = weights.rest(row + index);
        }
    }
    let mut first = [&[][..]; ROWS];
    for index in 0..ROWS {
        first[index] = weights.vectors(row + index);
    }
    let out = &mut out[row..row + ROWS];
    let mut example = 0;
    while example < examples.len() {
        let left = &examples[example..];
        example += match left.len() {
            count if count >= EXAMPLES => products_tile::<ROWS, EXAMPLES>(first, &rests, table, left, example, out),
            2.. => products_tile::<ROWS, 2>(first, &rests, table, left, example, out),
            _ => products_tile::<ROWS, 1>(first, &rests, table, left, example, out),
        };
    }
    ROWS
}

#[inline(always)]
fn products_tile<const ROWS: usize, const EXAMPLES: usize>(
    weights: [&[[f32; LANES]]; ROWS],
    rests: &[Lanes; ROWS],
    table: Rows<'_>,
    examples: &[u32],
    lane: usize,
    out: &mut [Lanes],
) -> usize {
    let vectors = table.width / LANES;
    let mut weights = weights;
    for weights in &mut weights {
        *weights = &weights[..vectors];
    }
    let mut values = [&[][..]; EXAMPLES];
    for index in 0..EXAMPLES {
        values[index] = &table.vectors(examples[index] as usize)[..vectors];
    }
    let mut sums = [[Lanes::ZERO; EXAMPLES]; ROWS];
    for vector in 0..vectors {
        let mut value = [Lanes::ZERO; EXAMPLES];
        for index in 0..EXAMPLES {
            value[index] = Lanes(values[index][vector]);
        }
        for row in 0..ROWS {
            let weight = Lanes(weights[row][vector]);
            for index in 0..EXAMPLES {
                sums[row][index] = weight.mul_add(value[index], sums[row][index]);
            }
        }
    }
    if !table.width.is_multiple_of(LANES) {
        let mut value = [Lanes::ZERO; EXAMPLES];
        for index in 0..EXAMPLES {
            value[index] = table.rest(examples[index] as usize);
        }
        for row in 0..ROWS {
            for index in 0..EXAMPLES {
                sums[row][index] = rests[row].mul_add(value[index], sums[row][index]);
            }
        }
    }
    // A copy, so that the sums themselves need not be where a function that is not inlined can find them.
    let mut finished = [[Lanes::ZERO; EXAMPLES]; ROWS];
    for row in 0..ROWS {
        for index in 0..EXAMPLES {
            finished[row][index] = sums[row][index];
        }
    }
    fold_tile(&finished, lane, out);
    EXAMPLES
}

/// Folds each vector of a tile into the lanes of its row from `lane` on.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn fold_tile<const ROWS: usize, const EXAMPLES: usize>(
    tile: &[[Lanes; EXAMPLES]; ROWS],
    lane: usize,
    out: &mut [Lanes],
) {
    for (out, sums) in out.iter_mut().zip(tile) {
        for (out, sum) in out.0[lane..lane + EXAMPLES].iter_mut().zip(sums) {
            *out = fold(&sum.0);
        }
    }
}

/// Sums of outer products: `out`, `slopes.len() × table.width` row by row, becomes
/// `Σ_i slopes[r].0[i] · table[examples[i]][j]` over up to 16 examples, which continues the sums that it holds unless
/// they are to `begin`.
///
/// # Panics
/// If a length does not fit, there are more than 16 examples, or an example is not there.
#[inline(always)]
pub fn outer_products<const WIDE: bool>(
    slopes: &[Lanes],
    table: Rows<'_>,
    examples: &[u32],
    begin: bool,
    out: &mut [f32],
) {
    assert_eq!(out.len(), slopes.len() * table.width, "the sum of outer products has the table's width");
    assert!(examples.len() <= LANES, "slopes are for 16 examples");
    let mut row = 0;
    while row < slopes.len() {
        let slopes = &slopes[row..];
        let out = &mut out[row * table.width..];
        row += match slopes.len() {
            10.. if WIDE => outer_of_rows::<10, 2>(slopes, table, examples, begin, out),
            5.. if WIDE => outer_of_rows::<5, 4>(slopes, table, examples, begin, out),
            2.. if WIDE => outer_of_rows::<2, 4>(slopes, table, examples, begin, out),
            _ if WIDE => outer_of_rows::<1, 4>(slopes, table, examples, begin, out),
            5.. => outer_of_rows::<5, 1>(slopes, table, examples, begin, out),
            2.. => outer_of_rows::<2, 2>(slopes, table, examples, begin, out),
            _ => outer_of_rows::<1, 4>(slopes, table, examples, begin, out),
        };
    }
}

/// The part of [`outer_products`] that concerns the first `ROWS` rows; returns how many it did.
#[inline(always)]
fn outer_of_rows<const ROWS: usize, const VECTORS: usize>(
    slopes: &[Lanes],
    table: Rows<'_>,
    examples: &[u32],
    begin: bool,
    out: &mut [f32],
) -> usize {
    let slopes: &[Lanes; ROWS] = slopes.first_chunk().expect("the rows are there");
    let width = table.width;
    let mut column = 0;
    while column + LANES <= width {
        column += match (width - column) / LANES {
            count if count >= VECTORS => outer_tile::<ROWS, VECTORS>(slopes, table, examples, begin, column, out),
            2.. if VECTORS > 2 => outer_tile::<ROWS, 2>(slopes, table, examples, begin, column, out),
            _ => outer_tile::<ROWS, 1>(slopes, table, examples, begin, column, out),
        };
    }
    if column < width {
        let mut sums = [Lanes::ZERO; ROWS];
        for row in 0..ROWS {
            if !begin {
                sums[row] = Lanes::load_partial(&out[row * width + column..][..width - column]);
            }
        }
        for (lane, &example) in examples.iter().enumerate() {
            let value = table.rest(example as usize);
            for row in 0..ROWS {
                sums[row] = Lanes::splat(slopes[row].0[lane]).mul_add(value, sums[row]);
            }
        }
        for row in 0..ROWS {
            out[row * width + column..][..width - column].copy_from_slice(&sums[row].0[..width - column]);
        }
    }
    ROWS
}

#[inline(always)]
fn outer_tile<const ROWS: usize, const VECTORS: usize>(
    slopes: &[Lanes; ROWS],
    table: Rows<'_>,
    examples: &[u32],
    begin: bool,
    column: usize,
    out: &mut [f32],
) -> usize {
    let width = table.width;
    let mut sums = [[Lanes::ZERO; VECTORS]; ROWS];
    if !begin {
        for row in 0..ROWS {
            let start = row * width + column;
            let window = out[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
            for vector in 0..VECTORS {
                sums[row][vector] = Lanes(window[vector]);
            }
        }
    }
    for (lane, &example) in examples.iter().enumerate() {
        let start = example as usize * width + column;
        let window = table.values[start..start + VECTORS * LANES].as_chunks::<LANES>().0;
        for row in 0..ROWS {
            let slope = Lanes::splat(slopes[row].0[lane]);
            for vector in 0..VECTORS {
                sums[row][vector] = slope.mul_add(Lanes(window[vector]), sums[row][vector]);
            }
        }
    }
    for row in 0..ROWS {
        let start = row * width + column;
        let window = out[start..start + VECTORS * LANES].as_chunks_mut::<LANES>().0;
        for vector in 0..VECTORS {
            window[vector] = sums[row][vector].0;
        }
    }
    VECTORS * LANES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Kernel, Path, run};
    use fedgenie_core::rng::{Purpose, Streams};

    fn numbers(count: usize, entity: u32) -> Vec<f32> {
        let mut rng = Streams::new(1).stream(Purpose::Example, entity, 0);
        (0..count).map(|_| rng.uniform() as f32 - 0.5).collect()
    }

    struct Products<'a>(Rows<'a>, Rows<'a>, &'a [u32], &'a mut [Lanes]);

    impl Kernel for Products<'_> {
        type Output = ();
        const WIDE_PAYS: bool = true;

        #[inline(always)]
        fn run<const WIDE: bool>(self) {
            products::<WIDE>(self.0, self.1, self.2, self.3);
        }
    }

    struct Outer<'a>(&'a [Lanes], Rows<'a>, &'a [u32], bool, &'a mut [f32]);

    impl Kernel for Outer<'_> {
        type Output = ();
        const WIDE_PAYS: bool = true;

        #[inline(always)]
        fn run<const WIDE: bool>(self) {
            outer_products::<WIDE>(self.0, self.1, self.2, self.3, self.4);
        }
    }

    const EXAMPLES: [u32; 16] = [7, 0, 3, 3, 1, 6, 2, 5, 4, 7, 0, 1, 2, 3, 4, 5];
    const WIDTHS: [usize; 9] = [1, 7, 15, 16, 17, 31, 37, 100, 784];

    #[test]
    fn a_dot_product_follows_the_documented_order() {
        for width in WIDTHS {
            for rows in [1, 2, 3, 4, 5, 7, 10, 12, 26] {
                let (weights, table) = (numbers(rows * width, 1), numbers(8 * width, 2));
                for count in [1, 2, 3, 5, 10, 16] {
                    for path in Path::all() {
                        let mut out = vec![Lanes::splat(9.0); rows];
                        let [left, right] = [&weights, &table].map(|values| Rows { values, width });
                        run(path, Products(left, right, &EXAMPLES[..count], &mut out));
                        for row in 0..rows {
                            for (lane, &product) in out[row].0.iter().enumerate() {
                                let expected = if lane < count {
                                    let mut sums = [0.0_f32; LANES];
                                    for j in 0..width {
                                        let term = (left.row(row as u32)[j], right.row(EXAMPLES[lane])[j]);
                                        sums[j % LANES] = libm::fmaf(term.0, term.1, sums[j % LANES]);
                                    }
                                    Lanes(sums).sum()
                                } else {
                                    9.0
                                };
                                let index = format!("{path:?}, {rows} × {width}, {row}, {lane}");
                                assert_eq!(product.to_bits(), expected.to_bits(), "{index}");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn outer_products_add_up_entry_by_entry_in_batch_order() {
        for width in WIDTHS {
            for rows in [1, 2, 3, 4, 5, 7, 10, 12, 26] {
                let (table, slopes) = (numbers(8 * width, 3), numbers(rows * LANES, 4));
                let slopes: Vec<Lanes> = slopes.chunks_exact(LANES).map(Lanes::load).collect();
                let table = Rows { values: &table, width };
                for (count, begin) in [(1, true), (3, false), (16, true), (16, false)] {
                    let start = numbers(rows * width, 5);
                    let mut expected = start.clone();
                    for (index, sum) in expected.iter_mut().enumerate() {
                        *sum = (0..count).fold(if begin { 0.0 } else { *sum }, |sum, lane| {
                            libm::fmaf(slopes[index / width].0[lane], table.row(EXAMPLES[lane])[index % width], sum)
                        });
                    }
                    for path in Path::all() {
                        let mut out = start.clone();
                        run(path, Outer(&slopes, table, &EXAMPLES[..count], begin, &mut out));
                        assert!(
                            out.iter().zip(&expected).all(|(x, y)| x.to_bits() == y.to_bits()),
                            "{path:?} {rows} × {width}"
                        );
                    }
                }
            }
        }
    }
}
