//! Two layers that bring features to the length of an embedding, each followed by LeakyReLU; dropout after the first.
//!
//! # Determinism
//! Sums take one fused multiply-add for each term, in ascending order, and begin with the bias. Dropout: 16 bits for
//! each number, from the stream's next whole blocks, eight at a time. 16 numbers, in the order hidden number, column
//! (up to whole vectors), take the same word of each of eight blocks, its low bits and then its high bits. A number is
//! kept where its bits are at least `rate · 2^16`, rounded.

use super::attention::RowSums;
use super::products::{Begin, Gather, Left, Product, Right, Turn};
use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run};
use fedgenie_core::rng::StreamRng;

/// Slope of LeakyReLU below zero.
pub const LEAK: f32 = 0.01;

/// Weights of both layers, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Layers<'a> {
    /// Hidden × features.
    pub first: &'a [f32],
    pub first_bias: &'a [f32],
    /// Outputs × hidden.
    pub second: &'a [f32],
    pub second_bias: &'a [f32],
}

/// Slopes of both layers.
pub struct LayerSlopes<'a> {
    pub first: &'a mut [f32],
    pub first_bias: &'a mut [f32],
    pub second: &'a mut [f32],
    pub second_bias: &'a mut [f32],
}

/// Training's draws for dropout.
pub struct Noise<'a> {
    /// Numbers below this of 2^16 are dropped.
    pub threshold: u16,
    pub rng: &'a mut StreamRng,
}

impl<'a> Noise<'a> {
    /// Dropout at a rate below 1; at rate 0 nothing is drawn or dropped.
    pub fn new(rate: f64, rng: &'a mut StreamRng) -> Option<Self> {
        let threshold = (rate * 65_536.0).round().min(65_535.0) as u16;
        (threshold > 0).then_some(Self { threshold, rng })
    }
}

/// Room for one projection of some columns.
#[derive(Debug, Default)]
pub struct Projection {
    /// Features, row by row, filled up to whole vectors, and column by column.
    rows: Vec<f32>,
    inputs: Vec<f32>,
    hidden: Vec<f32>,
    /// Slope of the activation times the factor of dropout.
    factors: Vec<f32>,
    /// Random words of dropout, block by block.
    words: Vec<[u32; WORDS]>,
    hidden_rows: Vec<f32>,
    slopes: Vec<f32>,
    /// Slopes of weights, rows filled up to whole vectors.
    first: Vec<f32>,
    second: Vec<f32>,
}

/// Words of a block of a stream.
const WORDS: usize = 16;

const fn whole(count: usize) -> usize {
    count.div_ceil(LANES) * LANES
}

/// Room for so many numbers, whatever they are.
pub fn room(numbers: &mut Vec<f32>, count: usize) {
    if numbers.len() < count {
        numbers.resize(count, 0.0);
    }
}

impl Projection {
    /// Writes the projected features of `ids` to `out`, dimension by dimension.
    pub fn forward(
        &mut self,
        path: Path,
        (table, width): (&[f32], usize),
        layers: Layers<'_>,
        (ids, stride): (&[u32], usize),
        noise: Option<&mut Noise<'_>>,
        out: &mut [f32],
    ) {
        let columns = whole(ids.len());
        let hidden = layers.first_bias.len();
        room(&mut self.inputs, width * stride);
        room(&mut self.hidden, whole(hidden) * stride);
        room(&mut self.factors, hidden * stride);
        run(path, Gather { table, width, ids, out: &mut self.inputs, stride });
        run(
            path,
            Product {
                left: Left { values: layers.first, stride: width, turned: false },
                right: Right { values: &self.inputs, stride },
                begin: Begin::Rows(layers.first_bias),
                rows: hidden,
                depth: width,
                columns,
                out: &mut self.hidden,
                out_stride: stride,
            },
        );
        let noise = noise.map(|noise| {
            let vectors = hidden * columns / LANES;
            self.words.resize(8 * vectors.div_ceil(WORDS), [0; WORDS]);
            noise.rng.blocks(&mut self.words);
            (noise.threshold, &self.words[..])
        });
        let (values, factors) = (&mut self.hidden[..], &mut self.factors[..]);
        run(path, Activate { values, factors, noise, rows: hidden, stride, columns });
        run(
            path,
            Product {
                left: Left { values: layers.second, stride: hidden, turned: false },
                right: Right { values: &self.hidden, stride },
                begin: Begin::Rows(layers.second_bias),
                rows: layers.second_bias.len(),
                depth: hidden,
                columns,
                out,
                out_stride: stride,
            },
        );
        run(path, Leak { values: out, rows: layers.second_bias.len(), stride, columns });
    }

    /// Forgets the slopes of weights.
    pub fn begin(&mut self, width: usize, hidden: usize, outputs: usize) {
        self.first.clear();
        self.first.resize(hidden * whole(width), 0.0);
        self.second.clear();
        self.second.resize(outputs * whole(hidden), 0.0);
    }

    /// Adds the slopes of weights, from those of the last output of [`Projection::forward`], which are overwritten. The
    /// slopes of weights are kept until [`Projection::finish`], those of biases are added to `slopes`.
    pub fn backward(
        &mut self,
        path: Path,
        (table, width): (&[f32], usize),
        layers: Layers<'_>,
        (ids, stride): (&[u32], usize),
        (out, out_slopes): (&[f32], &mut [f32]),
        slopes: &mut LayerSlopes<'_>,
    ) {
        let columns = whole(ids.len());
        let (hidden, outputs) = (layers.first_bias.len(), layers.second_bias.len());
        let (across, deep) = (whole(width), whole(hidden));
        room(&mut self.rows, columns * across);
        room(&mut self.hidden_rows, columns * deep);
        room(&mut self.slopes, hidden * stride);
        run(path, LeakBack { values: out, slopes: out_slopes, rows: outputs, stride, columns });
        let of_outputs = &out_slopes[..];
        run(path, RowSums { values: of_outputs, stride, columns, out: slopes.second_bias });
        let (values, out) = (&self.hidden[..], &mut self.hidden_rows[..]);
        run(path, Turn { values, stride, rows: hidden, columns, out, out_stride: deep });
        run(
            path,
            Product {
                left: Left { values: of_outputs, stride, turned: false },
                right: Right { values: &self.hidden_rows, stride: deep },
                begin: Begin::Kept,
                rows: outputs,
                depth: ids.len(),
                columns: hidden,
                out: &mut self.second,
                out_stride: deep,
            },
        );
        run(
            path,
            Product {
                left: Left { values: layers.second, stride: hidden, turned: true },
                right: Right { values: of_outputs, stride },
                begin: Begin::Zero,
                rows: hidden,
                depth: outputs,
                columns,
                out: &mut self.slopes,
                out_stride: stride,
            },
        );
        run(path, Times { values: &mut self.slopes, factors: &self.factors, rows: hidden, stride, columns });
        run(path, RowSums { values: &self.slopes, stride, columns, out: slopes.first_bias });
        for (row, &id) in self.rows.chunks_exact_mut(across).zip(ids) {
            row[..width].copy_from_slice(&table[id as usize * width..][..width]);
            row[width..].fill(0.0);
        }
        run(
            path,
            Product {
                left: Left { values: &self.slopes, stride, turned: false },
                right: Right { values: &self.rows, stride: across },
                begin: Begin::Kept,
                rows: hidden,
                depth: ids.len(),
                columns: width,
                out: &mut self.first,
                out_stride: across,
            },
        );
    }

    /// Adds the slopes of weights.
    pub fn finish(&self, width: usize, hidden: usize, slopes: &mut LayerSlopes<'_>) {
        for (to, from) in slopes.first.chunks_exact_mut(width).zip(self.first.chunks_exact(whole(width))) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        for (to, from) in slopes.second.chunks_exact_mut(hidden).zip(self.second.chunks_exact(whole(hidden))) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }
}

/// LeakyReLU and dropout of hidden numbers, and the factors of their slopes.
struct Activate<'a> {
    values: &'a mut [f32],
    factors: &'a mut [f32],
    /// Numbers below the first of 2^16 are dropped.
    noise: Option<(u16, &'a [[u32; WORDS]])>,
    rows: usize,
    stride: usize,
    columns: usize,
}

impl Kernel for Activate<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { values, factors, noise, rows, stride, columns } = self;
        let (threshold, blocks) = noise.unwrap_or((0, &[]));
        let mut blocks = blocks.as_chunks::<8>().0.iter();
        let scale = 65_536.0 / (65_536.0 - f32::from(threshold));
        let (kept, leaked) = (scale, scale * LEAK);
        let threshold = u32::from(threshold);
        let mut words = [[0_u32; 8]; WORDS];
        let mut vector = 0;
        for row in 0..rows {
            for column in (0..columns).step_by(LANES) {
                if vector % WORDS == 0
                    && let Some(blocks) = blocks.next()
                {
                    words = std::array::from_fn(|word| std::array::from_fn(|block| blocks[block][word]));
                }
                let bits = &words[vector % WORDS];
                vector += 1;
                let place = row * stride + column;
                let value = Lanes::load(&values[place..]);
                let mut factor = value.map(|x| if x > 0.0 { kept } else { leaked });
                for (lane, bits) in bits.iter().enumerate() {
                    let (low, high) = (bits & 0xffff, bits >> 16);
                    factor.0[lane] = if low >= threshold { factor.0[lane] } else { 0.0 };
                    factor.0[lane + 8] = if high >= threshold { factor.0[lane + 8] } else { 0.0 };
                }
                factor.store(&mut factors[place..]);
                (value * factor).store(&mut values[place..]);
            }
        }
    }
}

/// LeakyReLU in place.
struct Leak<'a> {
    values: &'a mut [f32],
    rows: usize,
    stride: usize,
    columns: usize,
}

impl Kernel for Leak<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for row in 0..self.rows {
            for column in (0..self.columns).step_by(LANES) {
                let values = &mut self.values[row * self.stride + column..];
                Lanes::load(values).map(|x| if x > 0.0 { x } else { LEAK * x }).store(values);
            }
        }
    }
}

/// Slopes before LeakyReLU, from those behind it and its output, which has the sign of its argument.
struct LeakBack<'a> {
    values: &'a [f32],
    slopes: &'a mut [f32],
    rows: usize,
    stride: usize,
    columns: usize,
}

impl Kernel for LeakBack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for row in 0..self.rows {
            for column in (0..self.columns).step_by(LANES) {
                let place = row * self.stride + column;
                let slopes = &mut self.slopes[place..];
                let slope = Lanes::load(slopes);
                let value = Lanes::load(&self.values[place..]);
                value.zip(slope, |x, slope| if x > 0.0 { slope } else { LEAK * slope }).store(slopes);
            }
        }
    }
}

/// Products, number by number.
struct Times<'a> {
    values: &'a mut [f32],
    factors: &'a [f32],
    rows: usize,
    stride: usize,
    columns: usize,
}

impl Kernel for Times<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for row in 0..self.rows {
            for column in (0..self.columns).step_by(LANES) {
                keep_vectors_whole();
                let place = row * self.stride + column;
                let values = &mut self.values[place..];
                (Lanes::load(values) * Lanes::load(&self.factors[place..])).store(values);
            }
        }
    }
}
