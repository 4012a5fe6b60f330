//! Distance correlation of the blocks of a channel, and its slopes.
//!
//! # Definition
//! Of `n` rows, block `f` has the distances `a_ij = √(‖x_i − x_j‖² + 1e-8)`, doubly centred
//! `A_ij = a_ij − a̅_i − a̅_j + a̅`. For two blocks `v = mean(A ∘ B)`, `dCov = √(max(v, 0) + 1e-8)` and
//! `dCor = dCov_xy / √(dCov_xx dCov_yy)`. The sum over all pairs of blocks is added to the loss with a weight.
//!
//! `∂v_xy/∂a_ij = B_ij/n²`, because centring is its own adjoint; and with `G = ∂/∂a`, `H = G/a`, the slope by row `i`
//! is `2 Σ_j H_ij (x_i − x_j)`. Rows that are equal have no slope between them.
//!
//! # Source
//! G. J. Székely, M. L. Rizzo, N. K. Bakirov, "Measuring and testing dependence by correlation of distances", Annals of
//! Statistics 35(6), 2007.
//!
//! # Cost
//! O(n²·d) operations, `F` square matrices of memory for the `F` blocks of one channel at a time.
//!
//! # Determinism
//! Squares of differences are added up in the order of dimensions, by fused multiply-adds; means of rows and products
//! of rows by 16 sums, folded in halves, then in `f64` in the order of rows.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use super::products::{Begin, Left, Product, Right};
use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run, transpose};
use fedgenie_core::math::float::sqrt;

/// Added to a squared distance, and to a squared covariance.
const SMALL: f64 = 1e-8;

/// Blocks of one channel: block `f` begins at `f · width · stride`, each dimension being a row of `stride` numbers.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    pub values: &'a [f32],
    pub stride: usize,
    /// Dimensions of a block.
    pub width: usize,
    /// Number of blocks.
    pub factors: usize,
    /// Number of rows, which are columns here.
    pub rows: usize,
}

/// Room for the distances of a channel.
#[derive(Debug, Default)]
pub struct Distances {
    /// Distances of each block, later their slopes; zero behind the last row.
    squares: Vec<f32>,
    /// Mean distance of each row, by block.
    means: Vec<f32>,
    /// Mean of these, by block.
    centres: Vec<f32>,
    /// One centred row of each block.
    centred: Vec<f32>,
    /// `Σ_j H_ij` by row, of one block.
    totals: Vec<f32>,
    product: Vec<f32>,
    /// Mean products of centred distances, and their factors in slopes.
    covariances: Vec<f64>,
    slopes: Vec<f64>,
    factors: Vec<f32>,
}

impl Distances {
    /// The sum of the correlations of all pairs of blocks; `weight` times its slopes are added to `slopes`, which is
    /// arranged as the blocks are. Nothing happens with fewer than two rows or blocks.
    pub fn add(&mut self, path: Path, blocks: &Blocks<'_>, weight: f64, slopes: &mut [f32]) -> f64 {
        let Blocks { values, stride, width, factors, rows } = *blocks;
        if rows < 2 || factors < 2 {
            return 0.0;
        }
        let row = rows.div_ceil(LANES) * LANES;
        let square = row * row;
        self.squares.clear();
        self.squares.resize(factors * square, 0.0);
        self.means.resize(factors * row, 0.0);
        for (factor, squares) in self.squares.chunks_exact_mut(square).enumerate() {
            let values = &values[factor * width * stride..];
            let means = &mut self.means[factor * row..][..row];
            run(path, Fill { values, stride, width, rows, row, squares, means });
        }
        self.centres.clear();
        self.centres.extend(
            self.means
                .chunks_exact(row)
                .take(factors)
                .map(|means| (means[..rows].iter().map(|&mean| f64::from(mean)).sum::<f64>() / rows as f64) as f32),
        );
        let centres = &self.centres[..];
        self.centred.resize(factors * row, 0.0);
        self.covariances.clear();
        self.covariances.resize(factors * factors, 0.0);
        let (squares, means) = (&mut self.squares[..], &self.means[..]);
        let shape = Shape { factors, rows, row };
        run(
            path,
            Covariances { shape, squares, means, centres, centred: &mut self.centred, sums: &mut self.covariances },
        );
        let count = (rows * rows) as f64;
        let sum = combine(&mut self.covariances, factors, (count, weight), &mut self.slopes, &mut self.factors);
        run(
            path,
            Slopes {
                shape,
                squares: &mut self.squares,
                means: &self.means,
                centres,
                centred: &mut self.centred,
                factors: &self.factors,
            },
        );
        self.product.clear();
        self.product.resize(width * row, 0.0);
        self.totals.resize(row, 0.0);
        for factor in 0..factors {
            let slopes_of_distances = &self.squares[factor * square..][..square];
            let left = Left { values: &values[factor * width * stride..], stride, turned: false };
            let right = Right { values: slopes_of_distances, stride: row };
            let (out, begin) = (&mut self.product[..], Begin::Zero);
            run(path, Product { left, right, begin, rows: width, depth: rows, columns: rows, out, out_stride: row });
            run(path, Totals { squares: slopes_of_distances, rows, row, totals: &mut self.totals });
            let values = &values[factor * width * stride..];
            let slopes = &mut slopes[factor * width * stride..];
            run(path, Add { values, stride, width, row, totals: &self.totals, product: &self.product, slopes });
        }
        sum
    }
}

/// The sum of correlations, and for each pair of blocks the factor of the second's centred distances in the slopes of
/// the first's.
fn combine(
    covariances: &mut [f64],
    factors: usize,
    (count, weight): (f64, f64),
    table: &mut Vec<f64>,
    out: &mut Vec<f32>,
) -> f64 {
    covariances.iter_mut().for_each(|sum| *sum /= count);
    let squared = |x: usize, y: usize| covariances[x.min(y) * factors + x.max(y)];
    let root = |x, y| sqrt(squared(x, y).max(0.0) + SMALL);
    // The slope of a root by its mean product.
    let slope = |x, y| if squared(x, y) > 0.0 { 0.5 / root(x, y) } else { 0.0 };
    table.clear();
    table.resize(factors * factors, 0.0);
    let mut sum = 0.0;
    for x in 0..factors {
        for y in x + 1..factors {
            let scale = 1.0 / sqrt(root(x, x) * root(y, y));
            let correlation = root(x, y) * scale;
            sum += correlation;
            let across = scale * slope(x, y);
            table[x * factors + y] += across;
            table[y * factors + x] += across;
            for own in [x, y] {
                // A ∘ A has A twice.
                table[own * factors + own] -= correlation / root(own, own) * slope(own, own);
            }
        }
    }
    out.clear();
    out.extend(table.iter().map(|factor| (weight * factor / count) as f32));
    sum
}

#[derive(Clone, Copy)]
struct Shape {
    factors: usize,
    rows: usize,
    /// Numbers of a row, whole vectors.
    row: usize,
}

/// Distances of one block and the mean of each row. Tiles on and above the diagonal are worked out, the others are
/// these, turned.
struct Fill<'a> {
    values: &'a [f32],
    stride: usize,
    width: usize,
    rows: usize,
    row: usize,
    squares: &'a mut [f32],
    means: &'a mut [f32],
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { values, stride, width, rows, row, squares, means } = self;
        let small = Lanes::splat(SMALL as f32);
        let mut tile = [Lanes::ZERO; LANES];
        for up in (0..row).step_by(LANES) {
            for across in (up..row).step_by(LANES) {
                let inside = LANES.min(rows - across);
                for part in (0..LANES).step_by(4) {
                    let mut sums = [Lanes::ZERO; 4];
                    for dimension in 0..width {
                        let line = &values[dimension * stride..][..row];
                        let other = Lanes::load(&line[across..]);
                        let own: &[f32; 4] = line[up + part..].first_chunk().expect("rows are whole vectors");
                        for index in 0..4 {
                            keep_vectors_whole();
                            let difference = Lanes::splat(own[index]) - other;
                            sums[index] = difference.mul_add(difference, sums[index]);
                        }
                    }
                    for index in 0..4 {
                        tile[part + index] = (sums[index] + small).sqrt().first(inside);
                    }
                }
                for (index, lanes) in tile[..LANES.min(rows - up)].iter().enumerate() {
                    lanes.store(&mut squares[(up + index) * row + across..]);
                }
                if across > up {
                    transpose(&mut tile);
                    for (index, lanes) in tile[..inside].iter().enumerate() {
                        lanes.store(&mut squares[(across + index) * row + up..]);
                    }
                }
            }
        }
        for (mean, distances) in means.iter_mut().zip(squares.chunks_exact(row)).take(rows) {
            let mut sum = Lanes::ZERO;
            for vector in distances.as_chunks::<LANES>().0 {
                keep_vectors_whole();
                sum = sum + Lanes(*vector);
            }
            *mean = sum.sum() / rows as f32;
        }
    }
}

/// The centred distances of one row: `centred` gets a row for each block.
#[inline(always)]
fn centre(
    Shape { factors, rows, row }: Shape,
    squares: &[f32],
    means: &[f32],
    centres: &[f32],
    index: usize,
    out: &mut [f32],
) {
    for factor in 0..factors {
        let distances = &squares[(factor * row + index) * row..][..row];
        let means = &means[factor * row..][..row];
        let shift = Lanes::splat(means[index] - centres[factor]);
        let out = &mut out[factor * row..][..row];
        for vector in (0..row).step_by(LANES) {
            keep_vectors_whole();
            let centred = Lanes::load(&distances[vector..]) - shift - Lanes::load(&means[vector..]);
            centred.first(LANES.min(rows - vector)).store(&mut out[vector..]);
        }
    }
}

struct Covariances<'a> {
    shape: Shape,
    squares: &'a [f32],
    means: &'a [f32],
    centres: &'a [f32],
    centred: &'a mut [f32],
    sums: &'a mut [f64],
}

impl Kernel for Covariances<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { shape, squares, means, centres, centred, sums } = self;
        let Shape { factors, rows, row } = shape;
        for index in 0..rows {
            centre(shape, squares, means, centres, index, centred);
            for x in 0..factors {
                let one = centred[x * row..][..row].as_chunks::<LANES>().0;
                for y in x..factors {
                    let other = &centred[y * row..][..row].as_chunks::<LANES>().0[..one.len()];
                    let mut sum = Lanes::ZERO;
                    for vector in 0..one.len() {
                        keep_vectors_whole();
                        sum = Lanes(one[vector]).mul_add(Lanes(other[vector]), sum);
                    }
                    sums[x * factors + y] += f64::from(sum.sum());
                }
            }
        }
    }
}

/// Turns distances into their slopes divided by them; zero where rows are equal.
struct Slopes<'a> {
    shape: Shape,
    squares: &'a mut [f32],
    means: &'a [f32],
    centres: &'a [f32],
    centred: &'a mut [f32],
    factors: &'a [f32],
}

impl Kernel for Slopes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { shape, squares, means, centres, centred, factors: table } = self;
        let Shape { factors, rows, row } = shape;
        // The distance of equal rows.
        let least = (Lanes::ZERO + Lanes::splat(SMALL as f32)).sqrt();
        for index in 0..rows {
            centre(shape, squares, means, centres, index, centred);
            for x in 0..factors {
                let distances = &mut squares[(x * row + index) * row..][..row];
                for vector in (0..row).step_by(LANES) {
                    keep_vectors_whole();
                    let mut slope = Lanes::ZERO;
                    for y in 0..factors {
                        keep_vectors_whole();
                        let other = Lanes::load(&centred[y * row + vector..]);
                        slope = Lanes::splat(table[x * factors + y]).mul_add(other, slope);
                    }
                    let distance = Lanes::load(&distances[vector..]);
                    let quotient = slope / distance.max(least);
                    (distance - least).if_positive(quotient).store(&mut distances[vector..]);
                }
            }
        }
    }
}

struct Totals<'a> {
    squares: &'a [f32],
    rows: usize,
    row: usize,
    totals: &'a mut [f32],
}

impl Kernel for Totals<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { squares, rows, row, totals } = self;
        // Slopes are symmetric: sums down a column are sums along a row.
        for vector in (0..row).step_by(LANES) {
            let mut sum = Lanes::ZERO;
            for index in 0..rows {
                keep_vectors_whole();
                sum = sum + Lanes::load(&squares[index * row + vector..]);
            }
            sum.store(&mut totals[vector..]);
        }
    }
}

struct Add<'a> {
    values: &'a [f32],
    stride: usize,
    width: usize,
    row: usize,
    totals: &'a [f32],
    product: &'a [f32],
    slopes: &'a mut [f32],
}

impl Kernel for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { values, stride, width, row, totals, product, slopes } = self;
        let two = Lanes::splat(2.0);
        for dimension in 0..width {
            let values = &values[dimension * stride..][..row];
            let slopes = &mut slopes[dimension * stride..][..row];
            let product = &product[dimension * row..][..row];
            for vector in (0..row).step_by(LANES) {
                keep_vectors_whole();
                let own = Lanes::load(&totals[vector..]) * Lanes::load(&values[vector..]);
                let difference = own - Lanes::load(&product[vector..]);
                two.mul_add(difference, Lanes::load(&slopes[vector..])).store(&mut slopes[vector..]);
            }
        }
    }
}
