//! Inner loops of graph networks: products of nodes' rows with weights, sums over neighbours, sums over nodes.
//!
//! Rows are whole vectors. A tile of rows and vectors stays in registers; its shape depends on the processor and
//! changes no order of additions.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use super::Graph;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

/// Nodes whose slopes are added up before they join the others'.
pub const BLOCK: usize = 64;

/// The initial value of a product: `bias + s₀·edge₀ + s₁·edge₁` of each node.
#[derive(Clone, Copy)]
pub struct Constants<'a> {
    /// A row.
    pub bias: &'a [Lanes],
    /// Two rows.
    pub edge: [&'a [Lanes]; 2],
    /// Transitions of each node, for each of the two.
    pub transitions: [&'a [f32]; 2],
}

/// `out[u] = (constants + Σ_k input[u][k]·weight[k])`, then the ReLU if asked for, then times `scale[u]`.
pub struct Product<'a> {
    /// Rows of nodes.
    pub input: &'a [Lanes],
    /// Vectors of such a row.
    pub width: usize,
    /// A row of outputs for each input.
    pub weight: &'a [Lanes],
    /// The initial value; zero without it.
    pub constants: Option<Constants<'a>>,
    /// Whether negative numbers become zero.
    pub relu: bool,
    /// A factor of each node.
    pub scale: Option<&'a [f32]>,
    /// Rows of nodes, as wide as those of weights.
    pub out: &'a mut [Lanes],
}

impl Kernel for Product<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let nodes = self.input.len() / self.width;
        let lanes = self.out.len() / nodes.max(1);
        let mut node = 0;
        while node < nodes {
            let left = nodes - node;
            let mut lane = 0;
            let most = if WIDE { 8 } else { 6 };
            let rows = if left >= most { most } else { 1 };
            while lane < lanes {
                // A row alone, and any where there are few registers, has one vector at a time.
                let is_pair = WIDE && lanes - lane >= 2;
                match (rows, is_pair) {
                    (8, true) => self.tile::<8, 2>(node, lane, lanes),
                    (8, false) => self.tile::<8, 1>(node, lane, lanes),
                    (6, _) => self.tile::<6, 1>(node, lane, lanes),
                    (_, true) => self.tile::<1, 2>(node, lane, lanes),
                    (_, false) => self.tile::<1, 1>(node, lane, lanes),
                }
                lane += if is_pair { 2 } else { 1 };
            }
            node += rows;
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn tile<const ROWS: usize, const VECTORS: usize>(&mut self, node: usize, lane: usize, lanes: usize) {
        let mut sums = [[Lanes::ZERO; VECTORS]; ROWS];
        if let Some(Constants { bias, edge: [one, two], transitions }) = self.constants {
            for row in 0..ROWS {
                let [s, t] = [Lanes::splat(transitions[0][node + row]), Lanes::splat(transitions[1][node + row])];
                for vector in 0..VECTORS {
                    let sum = s.mul_add(one[lane + vector], bias[lane + vector]);
                    sums[row][vector] = t.mul_add(two[lane + vector], sum);
                }
            }
        }
        let mut inputs = [&[][..]; ROWS];
        for row in 0..ROWS {
            inputs[row] = &self.input[(node + row) * self.width..][..self.width];
        }
        for input in 0..self.width {
            for k in 0..LANES {
                let weight = &self.weight[(input * LANES + k) * lanes + lane..][..VECTORS];
                for row in 0..ROWS {
                    let factor = Lanes::splat(inputs[row][input].0[k]);
                    for vector in 0..VECTORS {
                        sums[row][vector] = factor.mul_add(weight[vector], sums[row][vector]);
                    }
                }
            }
        }
        for row in 0..ROWS {
            let scale = Lanes::splat(self.scale.map_or(1.0, |scale| scale[node + row]));
            let out = &mut self.out[(node + row) * lanes + lane..][..VECTORS];
            for vector in 0..VECTORS {
                let sum = sums[row][vector];
                let sum = if self.relu { sum.if_positive(sum) } else { sum };
                out[vector] = sum * scale;
            }
        }
    }
}

/// `out[u] = scale[u]·Σ_v rows[v]` over a node's neighbours and itself; zero where `mask[u]` is not positive.
pub struct Gather<'a> {
    /// The neighbours of each node.
    pub graph: &'a Graph,
    /// Rows of nodes.
    pub rows: &'a [Lanes],
    /// Vectors of a row.
    pub lanes: usize,
    /// A factor of each node.
    pub scale: &'a [f32],
    /// Rows of nodes.
    pub mask: Option<&'a [Lanes]>,
    /// Rows of nodes.
    pub out: &'a mut [Lanes],
}

impl Kernel for Gather<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        for node in 0..self.graph.nodes() {
            let mut lane = 0;
            while lane < self.lanes {
                lane += match self.lanes - lane {
                    4.. => self.tile::<4>(node, lane),
                    2.. => self.tile::<2>(node, lane),
                    _ => self.tile::<1>(node, lane),
                };
            }
        }
    }
}

impl Gather<'_> {
    #[inline(always)]
    fn tile<const VECTORS: usize>(&mut self, node: usize, lane: usize) -> usize {
        let mut sums = [Lanes::ZERO; VECTORS];
        for &neighbour in self.graph.around(node) {
            let row = &self.rows[neighbour as usize * self.lanes + lane..][..VECTORS];
            for vector in 0..VECTORS {
                sums[vector] = sums[vector] + row[vector];
            }
        }
        let scale = Lanes::splat(self.scale[node]);
        let at = node * self.lanes + lane;
        let out = &mut self.out[at..at + VECTORS];
        for vector in 0..VECTORS {
            let sum = sums[vector] * scale;
            out[vector] = self.mask.map_or(sum, |mask| mask[at + vector].if_positive(sum));
        }
        VECTORS
    }
}

/// Adds `Σ_u input[u][k]·slopes[u]` to `out[k]`: slopes of weights.
pub struct Outer<'a> {
    /// Rows of nodes.
    pub input: &'a [Lanes],
    /// Vectors of such a row.
    pub width: usize,
    /// Rows of nodes.
    pub slopes: &'a [Lanes],
    /// Vectors of such a row.
    pub lanes: usize,
    /// A row for each number of an input.
    pub out: &'a mut [Lanes],
}

impl Kernel for Outer<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let nodes = self.input.len() / self.width;
        for begin in (0..nodes).step_by(BLOCK) {
            let end = nodes.min(begin + BLOCK);
            let mut lane = 0;
            while lane < self.lanes {
                let is_pair = WIDE && self.lanes - lane >= 2;
                for input in 0..self.width {
                    // Four numbers of an input together, eight where there are registers for them.
                    for k in (0..LANES).step_by(if WIDE { 8 } else { 4 }) {
                        match (WIDE, is_pair) {
                            (true, true) => self.tile::<8, 2>(begin..end, (input, k), lane),
                            (true, false) => self.tile::<8, 1>(begin..end, (input, k), lane),
                            (false, _) => self.tile::<4, 1>(begin..end, (input, k), lane),
                        }
                    }
                }
                lane += if is_pair { 2 } else { 1 };
            }
        }
    }
}

impl Outer<'_> {
    #[inline(always)]
    fn tile<const ROWS: usize, const VECTORS: usize>(
        &mut self,
        nodes: std::ops::Range<usize>,
        (input, k): (usize, usize),
        lane: usize,
    ) {
        let mut sums = [[Lanes::ZERO; VECTORS]; ROWS];
        for node in nodes {
            let slopes = &self.slopes[node * self.lanes + lane..][..VECTORS];
            let numbers = &self.input[node * self.width + input].0[k..k + ROWS];
            for row in 0..ROWS {
                keep_vectors_whole();
                let number = Lanes::splat(numbers[row]);
                for vector in 0..VECTORS {
                    sums[row][vector] = number.mul_add(slopes[vector], sums[row][vector]);
                }
            }
        }
        for row in 0..ROWS {
            let out = &mut self.out[(input * LANES + k + row) * self.lanes + lane..][..VECTORS];
            for vector in 0..VECTORS {
                out[vector] = out[vector] + sums[row][vector];
            }
        }
    }
}

/// Adds `Σ_u factors[u]·rows[u]` to `out`, or the plain sum: slopes of constants, some at once.
pub struct Totals<'a, const COUNT: usize> {
    /// Rows of nodes.
    pub rows: &'a [Lanes],
    /// Vectors of a row.
    pub lanes: usize,
    /// A factor for each node and each `part` vectors of its row; 1 without them.
    pub factors: [Option<&'a [f32]>; COUNT],
    /// Vectors that share a factor.
    pub part: usize,
    /// A row for each of the factors.
    pub out: [&'a mut [Lanes]; COUNT],
}

impl<const COUNT: usize> Kernel for Totals<'_, COUNT> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rows, lanes, factors, part, out } = self;
        let (nodes, parts) = (rows.len() / lanes, lanes / part);
        for begin in (0..nodes).step_by(BLOCK) {
            for lane in 0..lanes {
                let mut sums = [Lanes::ZERO; COUNT];
                for node in begin..nodes.min(begin + BLOCK) {
                    let row = rows[node * lanes + lane];
                    for index in 0..COUNT {
                        keep_vectors_whole();
                        let factor = factors[index].map_or(1.0, |factors| factors[node * parts + lane / part]);
                        sums[index] = Lanes::splat(factor).mul_add(row, sums[index]);
                    }
                }
                for index in 0..COUNT {
                    out[index][lane] = out[index][lane] + sums[index];
                }
            }
        }
    }
}

/// Predictions of pairs, less `readout`: dot products of two rows.
pub struct Scores<'a> {
    /// Rows of nodes.
    pub rows: &'a [Lanes],
    /// Vectors of a row.
    pub lanes: usize,
    /// Nodes.
    pub ends: &'a [(u32, u32)],
    /// Which of them.
    pub chosen: &'a [u32],
    /// One output for each chosen pair.
    pub out: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rows, lanes, ends, chosen, out } = self;
        for (out, &pair) in out.iter_mut().zip(chosen) {
            let (one, other) = ends[pair as usize];
            let [one, other] = [one, other].map(|node| &rows[node as usize * lanes..][..lanes]);
            let mut sum = Lanes::ZERO;
            for lane in 0..lanes {
                sum = one[lane].mul_add(other[lane], sum);
            }
            *out = sum.sum();
        }
    }
}

/// Slopes of the rows of pairs: of each pair `slopes` times the other's row, in the order of the pairs.
pub struct Spread<'a> {
    /// Rows of nodes.
    pub rows: &'a [Lanes],
    /// Vectors of a row.
    pub lanes: usize,
    /// Nodes.
    pub ends: &'a [(u32, u32)],
    /// Which of them.
    pub chosen: &'a [u32],
    /// One slope for each chosen pair.
    pub slopes: &'a [f32],
    /// Rows of nodes; zero before.
    pub out: &'a mut [Lanes],
}

impl Kernel for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { rows, lanes, ends, chosen, slopes, out } = self;
        for (&slope, &pair) in slopes.iter().zip(chosen) {
            let (one, other) = ends[pair as usize];
            let slope = Lanes::splat(slope);
            for (to, from) in [(one, other), (other, one)] {
                let from = &rows[from as usize * lanes..][..lanes];
                let to = &mut out[to as usize * lanes..][..lanes];
                for lane in 0..lanes {
                    keep_vectors_whole();
                    to[lane] = slope.mul_add(from[lane], to[lane]);
                }
            }
        }
    }
}
