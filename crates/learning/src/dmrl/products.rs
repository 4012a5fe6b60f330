//! Products of matrices whose columns lie in lanes, and their turning between rows and columns.
//!
//! # Definition
//! [`Product`]: an entry begins at zero, at a number of its row, or at its present number, and takes one fused
//! multiply-add for each term, in their order. [`Inner`]: an entry keeps 16 sums, column `j` in sum `j mod 16`, which
//! are folded in halves and then added to its present number. Tiles stay in registers; their shape depends on the
//! processor and changes no bit.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use crate::lanes::{Kernel, LANES, Lanes, fold, transpose};

/// Numbers read at once from a row.
const RUN: usize = 8;

/// A matrix row by row, or turned: column by column.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    /// The numbers.
    pub values: &'a [f32],
    /// Numbers from a row to the next, or from a column to the next if turned.
    pub stride: usize,
    /// Whether columns lie one after the other.
    pub turned: bool,
}

/// A matrix row by row.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    /// The numbers.
    pub values: &'a [f32],
    /// Numbers from a row to the next.
    pub stride: usize,
}

/// The initial value of a product's entries.
#[derive(Clone, Copy, Debug)]
pub enum Begin<'a> {
    /// Zero.
    Zero,
    /// A number for each row.
    Rows(&'a [f32]),
    /// Their present values.
    Kept,
}

/// `out[i][j] = begin + Σ_k left[i][k] · right[k][j]`.
pub struct Product<'a> {
    pub left: Left<'a>,
    pub right: Right<'a>,
    pub begin: Begin<'a>,
    pub rows: usize,
    /// Number of terms.
    pub depth: usize,
    /// Number of columns; they are filled up to whole vectors, which both matrices have room for.
    pub columns: usize,
    pub out: &'a mut [f32],
    pub out_stride: usize,
}

impl Kernel for Product<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        if self.left.turned {
            self.all::<WIDE, true>();
        } else {
            self.all::<WIDE, false>();
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn all<const WIDE: bool, const TURNED: bool>(&mut self) {
        let vectors = self.columns.div_ceil(LANES);
        let mut vector = 0;
        while vector < vectors {
            let two = WIDE && vectors - vector >= 2;
            let mut row = 0;
            while row < self.rows {
                row += match (self.rows - row, two) {
                    (12.., true) => self.tile::<12, 2, TURNED>(row, vector),
                    (6.., true) => self.tile::<6, 2, TURNED>(row, vector),
                    (4.., true) => self.tile::<4, 2, TURNED>(row, vector),
                    (2.., true) => self.tile::<2, 2, TURNED>(row, vector),
                    (_, true) => self.tile::<1, 2, TURNED>(row, vector),
                    (6.., false) => self.tile::<6, 1, TURNED>(row, vector),
                    (4.., false) => self.tile::<4, 1, TURNED>(row, vector),
                    (2.., false) => self.tile::<2, 1, TURNED>(row, vector),
                    (_, false) => self.tile::<1, 1, TURNED>(row, vector),
                };
            }
            vector += if two { 2 } else { 1 };
        }
    }

    #[inline(always)]
    fn tile<const ROWS: usize, const VECTORS: usize, const TURNED: bool>(
        &mut self,
        row: usize,
        vector: usize,
    ) -> usize {
        let Self { left, right, begin, depth, ref mut out, out_stride, .. } = *self;
        let column = vector * LANES;
        let mut sums = [[Lanes::ZERO; VECTORS]; ROWS];
        match begin {
            Begin::Zero => {}
            Begin::Rows(numbers) => {
                for index in 0..ROWS {
                    sums[index] = [Lanes::splat(numbers[row + index]); VECTORS];
                }
            }
            Begin::Kept => {
                for index in 0..ROWS {
                    let window = &out[(row + index) * out_stride + column..][..VECTORS * LANES];
                    for v in 0..VECTORS {
                        sums[index][v] = Lanes::load(&window[v * LANES..]);
                    }
                }
            }
        }
        let mut first = [&[][..]; ROWS];
        if !TURNED {
            for index in 0..ROWS {
                first[index] = &left.values[(row + index) * left.stride..][..depth];
            }
        }
        let mut term = 0;
        if !TURNED {
            // Numbers of a row are read at once, so that there is one check for all of them.
            while term + RUN <= depth {
                let mut factors = [[0.0; RUN]; ROWS];
                for index in 0..ROWS {
                    factors[index] = *first[index][term..].first_chunk().expect("a run lies inside its row");
                }
                let windows = &right.values[term * right.stride + column..];
                for step in 0..RUN {
                    let window = windows[step * right.stride..][..VECTORS * LANES].as_chunks::<LANES>().0;
                    for index in 0..ROWS {
                        let factor = Lanes::splat(factors[index][step]);
                        for v in 0..VECTORS {
                            sums[index][v] = factor.mul_add(Lanes(window[v]), sums[index][v]);
                        }
                    }
                }
                term += RUN;
            }
        }
        for term in term..depth {
            let window = right.values[term * right.stride + column..][..VECTORS * LANES].as_chunks::<LANES>().0;
            let mut factors = [0.0; ROWS];
            if TURNED {
                factors = *left.values[term * left.stride + row..].first_chunk().expect("a column has its rows");
            } else {
                for index in 0..ROWS {
                    factors[index] = first[index][term];
                }
            }
            for index in 0..ROWS {
                let factor = Lanes::splat(factors[index]);
                for v in 0..VECTORS {
                    sums[index][v] = factor.mul_add(Lanes(window[v]), sums[index][v]);
                }
            }
        }
        for index in 0..ROWS {
            let window = &mut out[(row + index) * out_stride + column..][..VECTORS * LANES];
            for v in 0..VECTORS {
                sums[index][v].store(&mut window[v * LANES..]);
            }
        }
        ROWS
    }
}

/// `out[i][j] += Σ_r one[i][r] · other[j][r]`.
pub struct Inner<'a> {
    pub one: Right<'a>,
    pub other: Right<'a>,
    pub rows: [usize; 2],
    /// Number of terms; they are filled up to whole vectors, with zeros in one of the matrices at least.
    pub depth: usize,
    pub out: &'a mut [f32],
    pub out_stride: usize,
}

impl Kernel for Inner<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let mut row = 0;
        while row < self.rows[0] {
            row += match self.rows[0] - row {
                4.. if WIDE => self.across::<4, 4>(row),
                3.. if !WIDE => self.across::<3, 2>(row),
                2.. => self.across::<2, 2>(row),
                _ => self.across::<1, 2>(row),
            };
        }
    }
}

impl Inner<'_> {
    #[inline(always)]
    fn across<const ROWS: usize, const MORE: usize>(&mut self, row: usize) -> usize {
        let mut other = 0;
        while other < self.rows[1] {
            other += match self.rows[1] - other {
                count if count >= MORE => self.tile::<ROWS, MORE>(row, other),
                _ => self.tile::<ROWS, 1>(row, other),
            };
        }
        ROWS
    }

    #[inline(always)]
    fn tile<const ROWS: usize, const OTHERS: usize>(&mut self, row: usize, other: usize) -> usize {
        let vectors = self.depth.div_ceil(LANES);
        let (mut left, mut right) = ([&[][..]; ROWS], [&[][..]; OTHERS]);
        for index in 0..ROWS {
            let values = &self.one.values[(row + index) * self.one.stride..][..vectors * LANES];
            left[index] = &values.as_chunks::<LANES>().0[..vectors];
        }
        for index in 0..OTHERS {
            let values = &self.other.values[(other + index) * self.other.stride..][..vectors * LANES];
            right[index] = &values.as_chunks::<LANES>().0[..vectors];
        }
        let mut sums = [[Lanes::ZERO; OTHERS]; ROWS];
        for vector in 0..vectors {
            for index in 0..ROWS {
                let factor = Lanes(left[index][vector]);
                for o in 0..OTHERS {
                    sums[index][o] = factor.mul_add(Lanes(right[o][vector]), sums[index][o]);
                }
            }
        }
        // A copy, so that the sums themselves need not be where a function that is not inlined can find them.
        let finished = sums;
        add_folded(&finished, &mut self.out[row * self.out_stride + other..], self.out_stride);
        OTHERS
    }
}

/// Adds the fold of each vector of a tile to the entry that it belongs to.
///
/// Never inlined: seeing this, LLVM would shuffle lanes in the loop before it.
#[inline(never)]
fn add_folded<const ROWS: usize, const OTHERS: usize>(tile: &[[Lanes; OTHERS]; ROWS], out: &mut [f32], stride: usize) {
    for (row, sums) in tile.iter().enumerate() {
        for (entry, sum) in out[row * stride..].iter_mut().zip(sums) {
            *entry += fold(&sum.0);
        }
    }
}

/// Turns rows of a table into columns: number `j` of the row `ids[i]` goes to `out[j · stride + i]`. Columns up to a
/// whole vector become zero.
pub struct Gather<'a> {
    pub table: &'a [f32],
    pub width: usize,
    pub ids: &'a [u32],
    pub out: &'a mut [f32],
    pub stride: usize,
}

impl Kernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { table, width, ids, out, stride } = self;
        for (block, ids) in ids.chunks(LANES).enumerate() {
            let mut first = 0;
            while first < width {
                let count = LANES.min(width - first);
                let mut square = [Lanes::ZERO; LANES];
                for (lanes, &id) in square.iter_mut().zip(ids) {
                    let numbers = &table[id as usize * width + first..];
                    *lanes = if count == LANES { Lanes::load(numbers) } else { Lanes::load_partial(&numbers[..count]) };
                }
                transpose(&mut square);
                for (index, lanes) in square[..count].iter().enumerate() {
                    lanes.store(&mut out[(first + index) * stride + block * LANES..]);
                }
                first += LANES;
            }
        }
    }
}

/// Turns columns into rows and adds them to those of a table: the reverse of [`Gather`], column by column.
pub struct Scatter<'a> {
    pub columns: &'a [f32],
    pub stride: usize,
    pub width: usize,
    pub ids: &'a [u32],
    pub table: &'a mut [f32],
}

impl Kernel for Scatter<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { columns, stride, width, ids, table } = self;
        for (block, ids) in ids.chunks(LANES).enumerate() {
            let mut first = 0;
            while first < width {
                let count = LANES.min(width - first);
                let mut square = [Lanes::ZERO; LANES];
                for (index, lanes) in square[..count].iter_mut().enumerate() {
                    *lanes = Lanes::load(&columns[(first + index) * stride + block * LANES..]);
                }
                transpose(&mut square);
                for (lanes, &id) in square.iter().zip(ids) {
                    let row = &mut table[id as usize * width + first..][..count];
                    if count == LANES {
                        (Lanes::load(row) + *lanes).store(row);
                    } else {
                        row.iter_mut().zip(&lanes.0).for_each(|(number, more)| *number += more);
                    }
                }
                first += LANES;
            }
        }
    }
}

/// Turns a matrix: `out[j · out_stride + i] = values[i · stride + j]`, rows and columns filled up to whole vectors.
pub struct Turn<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    pub rows: usize,
    pub columns: usize,
    pub out: &'a mut [f32],
    pub out_stride: usize,
}

impl Kernel for Turn<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { values, stride, rows, columns, out, out_stride } = self;
        let mut row = 0;
        while row < rows {
            let count = LANES.min(rows - row);
            let mut column = 0;
            while column < columns {
                let mut square = [Lanes::ZERO; LANES];
                for (index, lanes) in square[..count].iter_mut().enumerate() {
                    *lanes = Lanes::load(&values[(row + index) * stride + column..]);
                }
                transpose(&mut square);
                for (index, lanes) in square.iter().enumerate() {
                    lanes.store(&mut out[(column + index) * out_stride + row..]);
                }
                column += LANES;
            }
            row += LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Path, run};
    use fedgenie_core::rng::{Purpose, Streams};

    fn numbers(count: usize, entity: u32) -> Vec<f32> {
        let mut rng = Streams::new(5).stream(Purpose::Example, entity, 0);
        (0..count).map(|_| rng.uniform() as f32 - 0.5).collect()
    }

    #[test]
    fn a_product_takes_its_terms_in_order_on_every_path() {
        for (rows, depth, columns) in [(1, 1, 1_usize), (7, 5, 16), (13, 33, 40), (25, 3, 17), (18, 64, 128)] {
            let whole = columns.div_ceil(LANES) * LANES;
            let (left, right) = (numbers(rows * depth, 1), numbers(depth * whole, 2));
            let (start, bias) = (numbers(rows * whole, 3), numbers(rows, 4));
            for turned in [false, true] {
                let at = |i: usize, k: usize| if turned { left[k * rows + i] } else { left[i * depth + k] };
                for begin in [Begin::Zero, Begin::Rows(&bias), Begin::Kept] {
                    let mut expected = start.clone();
                    for i in 0..rows {
                        for j in 0..whole {
                            let first = match begin {
                                Begin::Zero => 0.0,
                                Begin::Rows(bias) => bias[i],
                                Begin::Kept => start[i * whole + j],
                            };
                            let sum = |sum, k| libm::fmaf(at(i, k), right[k * whole + j], sum);
                            expected[i * whole + j] = (0..depth).fold(first, sum);
                        }
                    }
                    for path in Path::all() {
                        let mut out = start.clone();
                        let left = Left { values: &left, stride: if turned { rows } else { depth }, turned };
                        let right = Right { values: &right, stride: whole };
                        let (out_stride, out_values) = (whole, &mut out[..]);
                        run(path, Product { left, right, begin, rows, depth, columns, out: out_values, out_stride });
                        assert!(out == expected, "{path}, {rows} × {depth} × {columns}, {turned}");
                    }
                }
            }
        }
    }

    #[test]
    fn inner_products_keep_sixteen_sums_on_every_path() {
        for (rows, others, depth) in [(1, 1, 16), (5, 3, 48), (16, 16, 128), (7, 9, 32)] {
            let (one, other) = (numbers(rows * depth, 1), numbers(others * depth, 2));
            let start = numbers(rows * others, 3);
            let mut expected = start.clone();
            for i in 0..rows {
                for j in 0..others {
                    let mut sums = [0.0_f32; LANES];
                    for r in 0..depth {
                        sums[r % LANES] = libm::fmaf(one[i * depth + r], other[j * depth + r], sums[r % LANES]);
                    }
                    expected[i * others + j] += fold(&sums);
                }
            }
            for path in Path::all() {
                let mut out = start.clone();
                let [one, other] = [&one, &other].map(|values| Right { values, stride: depth });
                run(path, Inner { one, other, rows: [rows, others], depth, out: &mut out, out_stride: others });
                assert!(out == expected, "{path}, {rows} × {others} × {depth}");
            }
        }
    }

    #[test]
    fn rows_are_turned_to_columns_and_back() {
        for width in [1, 15, 16, 37] {
            let table = numbers(9 * width, 6);
            let ids: Vec<u32> = (0..21).map(|index| index * 5 % 9).collect();
            let stride = 48;
            let mut columns = vec![7.0; width * stride];
            run(Path::detect(), Gather { table: &table, width, ids: &ids, out: &mut columns, stride });
            for j in 0..width {
                for i in 0..32 {
                    let expected = ids.get(i).map_or(0.0, |&id| table[id as usize * width + j]);
                    assert_eq!(columns[j * stride + i], expected);
                }
            }
            let mut sums = vec![0.0; 9 * width];
            run(Path::detect(), Scatter { columns: &columns, stride, width, ids: &ids, table: &mut sums });
            let times = |row: u32| ids.iter().filter(|&&id| id == row).count();
            for (index, sum) in sums.iter().enumerate() {
                let expected = (0..times((index / width) as u32)).fold(0.0, |sum, _| sum + table[index]);
                assert_eq!(*sum, expected);
            }
            let mut turned = vec![7.0; 32 * stride];
            let (rows, whole) = (width, 32);
            run(
                Path::detect(),
                Turn { values: &columns, stride, rows, columns: whole, out: &mut turned, out_stride: stride },
            );
            for i in 0..width {
                for j in 0..32 {
                    assert_eq!(turned[j * stride + i], columns[i * stride + j]);
                }
            }
        }
    }
}
