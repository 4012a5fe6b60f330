//! A network's weights as steps use them: filled up to whole vectors, with the first layer column by column.

use super::Shape;
use crate::lanes::{Kernel, LANES, Lanes, Path, run, transpose};
use std::ops::Range;

/// Where the parts of a network lie in its filled-up weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// Vectors of a row.
    pub row: usize,
    /// Vectors of the hidden numbers.
    pub hidden: usize,
}

impl Plan {
    pub const fn of(shape: &Shape) -> Self {
        Self { row: shape.dimensions.div_ceil(LANES), hidden: shape.hidden.div_ceil(LANES) }
    }

    /// Numbers of one side of the first layer: for each number of a row, one for each hidden number.
    pub const fn side(self) -> usize {
        self.row * LANES * self.hidden * LANES
    }

    /// The first layer's part for users (0) or items (1).
    pub const fn first(self, side: usize) -> Range<usize> {
        side * self.side()..(side + 1) * self.side()
    }

    /// The hidden numbers' biases.
    pub const fn bias(self) -> Range<usize> {
        2 * self.side()..2 * self.side() + self.hidden * LANES
    }

    /// The second layer.
    pub const fn second(self) -> Range<usize> {
        self.bias().end..self.bias().end + self.hidden * LANES
    }

    /// Where the last bias is; zeros behind it.
    pub const fn last(self) -> usize {
        self.second().end
    }

    /// Numbers of a network.
    pub const fn len(self) -> usize {
        self.last() + LANES
    }
}

/// Fills up the weights of all networks.
pub fn fill_up(shape: &Shape, weights: &[f32], filled: &mut Vec<f32>) {
    filled.clear();
    let (plan, Shape { dimensions: d, hidden: h, .. }) = (Plan::of(shape), *shape);
    filled.resize(weights.len() / shape.network() * plan.len(), 0.0);
    for (network, filled) in weights.chunks_exact(shape.network()).zip(filled.chunks_exact_mut(plan.len())) {
        let (first, others) = network.split_at(2 * d * h);
        for side in 0..2 {
            let (from, to) = ((&first[side * d..], 2 * d), (&mut filled[plan.first(side)], plan.hidden * LANES));
            run(Path::detect(), Turn { rows: h, columns: d, from, to });
        }
        let (bias, second) = others.split_at(h);
        filled[plan.bias()][..h].copy_from_slice(bias);
        filled[plan.second()][..h].copy_from_slice(&second[..h]);
        filled[plan.last()] = second[h];
    }
}

/// Writes the weights of all networks as files have them, behind those that are there.
pub fn take_out(shape: &Shape, filled: &[f32], weights: &mut Vec<f32>) {
    let (plan, Shape { dimensions: d, hidden: h, .. }) = (Plan::of(shape), *shape);
    for filled in filled.chunks_exact(plan.len()) {
        let begin = weights.len();
        weights.resize(begin + 2 * d * h, 0.0);
        for side in 0..2 {
            let (from, to) =
                ((&filled[plan.first(side)], plan.hidden * LANES), (&mut weights[begin + side * d..], 2 * d));
            run(Path::detect(), Turn { rows: d, columns: h, from, to });
        }
        weights.extend_from_slice(&filled[plan.bias()][..h]);
        weights.extend_from_slice(&filled[plan.second()][..h]);
        weights.push(filled[plan.last()]);
    }
}

/// The first layer row by row: for each hidden number, one for each number of a row. From one side of it column by
/// column.
pub fn turn(plan: Plan, side: &[f32], turned: &mut [f32]) {
    let (rows, columns) = (plan.row * LANES, plan.hidden * LANES);
    run(Path::detect(), Turn { rows, columns, from: (side, columns), to: (turned, rows) });
}

/// Exchanges rows and columns, each part with the numbers from one of its rows to the next.
struct Turn<'a> {
    rows: usize,
    columns: usize,
    from: (&'a [f32], usize),
    to: (&'a mut [f32], usize),
}

impl Kernel for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rows, columns, from: (from, from_stride), to: (to, to_stride) } = self;
        for row in (0..rows).step_by(LANES) {
            for column in (0..columns).step_by(LANES) {
                let (down, across) = (LANES.min(rows - row), LANES.min(columns - column));
                let mut square = [Lanes::ZERO; LANES];
                for (index, lanes) in square[..down].iter_mut().enumerate() {
                    let numbers = &from[(row + index) * from_stride + column..];
                    *lanes =
                        if across == LANES { Lanes::load(numbers) } else { Lanes::load_partial(&numbers[..across]) };
                }
                transpose(&mut square);
                for (index, lanes) in square[..across].iter().enumerate() {
                    let numbers = &mut to[(column + index) * to_stride + row..][..down];
                    if down == LANES { lanes.store(numbers) } else { numbers.copy_from_slice(&lanes.0[..down]) }
                }
            }
        }
    }
}
