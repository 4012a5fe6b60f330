//! Products of rows and weights: outputs of a layer from rows, and slopes of rows from those of a layer.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use crate::lanes::{LANES, Lanes, keep_vectors_whole};

/// Rows of whole vectors, of which some are meant.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    /// The vectors, row after row.
    pub vectors: &'a [Lanes],
    /// Vectors of a row.
    pub width: usize,
}

impl<'a> Table<'a> {
    #[inline(always)]
    fn row(self, row: u32) -> &'a [Lanes] {
        &self.vectors[row as usize * self.width..][..self.width]
    }
}

/// Adds to each row of `out` named in `to` the product of a row of `rows`, named in `from`, and a matrix of 16·width ×
/// 16·`columns` numbers. `begin`, if given, replaces the present numbers of `out`.
///
/// # Panics
/// If a row is not there, or a length does not fit.
#[inline(always)]
pub fn products<const WIDE: bool>(
    rows: Table<'_>,
    (from, to): (&[u32], &[u32]),
    matrix: &[[f32; LANES]],
    begin: Option<&[[f32; LANES]]>,
    (columns, out): (usize, &mut [Lanes]),
) {
    assert!(from.len() == to.len() && matrix.len() == rows.width * LANES * columns, "rows and matrix fit");
    let mut first = 0;
    while first < columns {
        let place = (first, columns);
        first += match columns - first {
            1 => product_of_columns::<1, WIDE>(rows, (from, to), matrix, begin, place, out),
            _ => product_of_columns::<2, WIDE>(rows, (from, to), matrix, begin, place, out),
        };
    }
}

#[inline(always)]
fn product_of_columns<const COLUMNS: usize, const WIDE: bool>(
    rows: Table<'_>,
    (from, to): (&[u32], &[u32]),
    matrix: &[[f32; LANES]],
    begin: Option<&[[f32; LANES]]>,
    place: (usize, usize),
    out: &mut [Lanes],
) -> usize {
    let mut done = 0;
    while done < from.len() {
        let (from, to) = (&from[done..], &to[done..]);
        done += match from.len() {
            // Not eight: LLVM would gather one number of each.
            6.. if WIDE => product_tile::<6, COLUMNS>(rows, from, to, matrix, begin, place, out),
            4.. => product_tile::<4, COLUMNS>(rows, from, to, matrix, begin, place, out),
            2.. => product_tile::<2, COLUMNS>(rows, from, to, matrix, begin, place, out),
            _ => product_tile::<1, COLUMNS>(rows, from, to, matrix, begin, place, out),
        };
    }
    COLUMNS
}

#[inline(always)]
fn product_tile<const ROWS: usize, const COLUMNS: usize>(
    rows: Table<'_>,
    from: &[u32],
    to: &[u32],
    matrix: &[[f32; LANES]],
    begin: Option<&[[f32; LANES]]>,
    (first, columns): (usize, usize),
    out: &mut [Lanes],
) -> usize {
    let mut mine = [&[][..]; ROWS];
    let mut sums = [[Lanes::ZERO; COLUMNS]; ROWS];
    for row in 0..ROWS {
        mine[row] = rows.row(from[row]);
        for column in 0..COLUMNS {
            sums[row][column] = match begin {
                Some(begin) => Lanes(begin[first + column]),
                None => out[to[row] as usize * columns + first + column],
            };
        }
    }
    for vector in 0..rows.width {
        for lane in 0..LANES {
            let at = (vector * LANES + lane) * columns + first;
            for column in 0..COLUMNS {
                let weights = Lanes(matrix[at + column]);
                for row in 0..ROWS {
                    let number = Lanes::splat(mine[row][vector].0[lane]);
                    sums[row][column] = number.mul_add(weights, sums[row][column]);
                }
            }
        }
    }
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            out[to[row] as usize * columns + first + column] = sums[row][column];
        }
    }
    ROWS
}

/// Adds to a matrix of 16·width × 16·`columns` numbers the outer products of rows of `rows`, named in `from`, and rows
/// of `slopes`, named in `to`, in their order.
///
/// # Panics
/// If a row is not there, or a length does not fit.
#[inline(always)]
pub fn outer_products<const WIDE: bool>(
    rows: Table<'_>,
    slopes: Table<'_>,
    (from, to): (&[u32], &[u32]),
    matrix: &mut [[f32; LANES]],
) {
    let columns = slopes.width;
    assert!(from.len() == to.len() && matrix.len() == rows.width * LANES * columns, "rows and matrix fit");
    for vector in 0..rows.width {
        // Four numbers of a row together, eight where there are registers for them.
        for lane in (0..LANES).step_by(if WIDE { 8 } else { 4 }) {
            let mut first = 0;
            while first < columns {
                let at = (vector, lane, first);
                first += match (columns - first, WIDE) {
                    (1, true) => outer_tile::<8, 1>(rows, slopes, (from, to), at, matrix),
                    (1, false) => outer_tile::<4, 1>(rows, slopes, (from, to), at, matrix),
                    (_, true) => outer_tile::<8, 2>(rows, slopes, (from, to), at, matrix),
                    (_, false) => outer_tile::<4, 2>(rows, slopes, (from, to), at, matrix),
                };
            }
        }
    }
}

#[inline(always)]
fn outer_tile<const ROWS: usize, const COLUMNS: usize>(
    rows: Table<'_>,
    slopes: Table<'_>,
    (from, to): (&[u32], &[u32]),
    (vector, lane, first): (usize, usize, usize),
    matrix: &mut [[f32; LANES]],
) -> usize {
    let columns = slopes.width;
    let at = |row: usize| (vector * LANES + lane + row) * columns + first;
    let mut sums = [[Lanes::ZERO; COLUMNS]; ROWS];
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            sums[row][column] = Lanes(matrix[at(row) + column]);
        }
    }
    for (&from, &to) in from.iter().zip(to) {
        let (mine, slope) = (rows.row(from)[vector], slopes.row(to));
        for row in 0..ROWS {
            keep_vectors_whole();
            let number = Lanes::splat(mine.0[lane + row]);
            for column in 0..COLUMNS {
                sums[row][column] = number.mul_add(slope[first + column], sums[row][column]);
            }
        }
    }
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            matrix[at(row) + column] = sums[row][column].0;
        }
    }
    COLUMNS
}
