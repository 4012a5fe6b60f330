//! A network's weights as steps use them: filled up to whole vectors, with the first layer column by column.

use super::Shape;
use crate::lanes::LANES;
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

/// For each weight of a network, in the order of files, its place among those that are filled up.
fn places(shape: &Shape) -> impl Iterator<Item = usize> {
    let &Shape { dimensions: d, hidden: h, .. } = shape;
    let plan = Plan::of(shape);
    let first = move |hidden: usize| {
        (0..2 * d).map(move |number| {
            let (side, number) = (number / d, number % d);
            side * plan.side() + number * plan.hidden * LANES + hidden
        })
    };
    let weights = (0..h).flat_map(first);
    let biases = (0..h).map(move |hidden| plan.bias().start + hidden);
    weights.chain(biases).chain((0..h).map(move |hidden| plan.second().start + hidden)).chain([plan.last()])
}

/// Fills up the weights of all networks.
pub fn fill_up(shape: &Shape, weights: &[f32], filled: &mut Vec<f32>) {
    filled.clear();
    let length = Plan::of(shape).len();
    for network in weights.chunks_exact(shape.network()) {
        let begin = filled.len();
        filled.resize(begin + length, 0.0);
        places(shape).zip(network).for_each(|(place, &weight)| filled[begin + place] = weight);
    }
}

/// Writes the weights of all networks as files have them.
pub fn take_out(shape: &Shape, filled: &[f32], weights: &mut Vec<f32>) {
    for network in filled.chunks_exact(Plan::of(shape).len()) {
        weights.extend(places(shape).map(|place| network[place]));
    }
}

/// The first layer row by row: for each hidden number, one for each number of a row. From one side of it column by
/// column.
pub fn turn(plan: Plan, side: &[f32], turned: &mut [f32]) {
    let (rows, columns) = (plan.row * LANES, plan.hidden * LANES);
    for (number, column) in side.chunks_exact(columns).enumerate() {
        for (hidden, &weight) in column.iter().enumerate() {
            turned[hidden * rows + number] = weight;
        }
    }
}
