//! Graph attention: neighbours weighted by a softmax over each node's edges.
//!
//! An edge's score is a sum of one number of each end, `T_u = a_t·g_u + a_e₀/d_u` and `S_v = a_s·g_v + a_e₁/d_v`, and
//! without the shares of `a_e` for a node itself. The sum of an edge's matrix over a node's edges is that matrix times
//! `w_u = Σ_{v≠u} α_uv (1/d_u, 1/d_v)`. Slopes of sources are added up in the order of targets.
//!
//! # Cost
//! Nodes have few edges: what counts is how often an edge is touched, and how little is done then.

use super::kernels::{Constants, Outer, Product, Total};
use super::pass::{Packed, Tensors};
use super::{Graph, Prepared, Shape};
use crate::lanes::{Kernel, LANES, Lanes, Path, fold, functions, keep_vectors_whole, run};
use std::ops::Range;

/// The slope of a score below zero.
const SLOPE: f32 = 0.2;

/// A layer's results, by node and head or by edge and head.
#[derive(Debug, Default)]
struct Attention {
    /// `W h` of each node.
    turned: Vec<Lanes>,
    /// `a_t·g_u` and `a_s·g_v`.
    of_ends: [Vec<f32>; 2],
    /// `α`, for each head all edges.
    weights: Vec<f32>,
    /// The slope of each score, arranged in the same way: 1 where it is positive.
    slopes: Vec<f32>,
    /// `w_u`.
    shares: [Vec<f32>; 2],
    /// The rows that leave the layer.
    output: Vec<Lanes>,
}

/// Of a node's edges: the slopes of their weights. Of each head: sums over all edges.
#[derive(Debug, Default)]
struct OfWeights {
    totals: Vec<[f64; 2]>,
    slopes: Vec<f32>,
}

/// Rows of every layer, and buffers.
#[derive(Debug, Default)]
pub struct Rows {
    layers: Vec<Attention>,
    of_turned: Vec<Lanes>,
    of_ends: [Vec<f32>; 2],
    of_weights: OfWeights,
    before: Vec<Lanes>,
}

impl Rows {
    /// The rows of the last layer.
    pub fn last(&self) -> &[Lanes] {
        self.layers.last().map_or(&[], |layer| &layer.output)
    }
}

fn prepare<T: Clone>(buffer: &mut Vec<T>, length: usize, zero: T) {
    buffer.clear();
    buffer.resize(length, zero);
}

/// A dot product that is not folded. No closure: it may be left as a call, without the path's features.
#[inline(always)]
fn dot(one: &[Lanes], other: &[Lanes]) -> Lanes {
    let mut sum = Lanes::ZERO;
    for (one, other) in one.iter().zip(other) {
        sum = one.mul_add(*other, sum);
    }
    sum
}

/// Scores, their softmax, and the weighted sums of neighbours.
struct Weigh<'a> {
    graph: &'a Graph,
    heads: usize,
    part: usize,
    weights: &'a Packed,
    is_last: bool,
    layer: &'a mut Attention,
}

impl Weigh<'_> {
    /// The numbers of ends, and of each edge the slope of its score and `e` to the score less the node's largest.
    #[inline(always)]
    fn scores(&mut self) {
        let Self { graph, heads, part, weights, .. } = *self;
        let (nodes, edges) = (graph.nodes(), graph.neighbours.len());
        let Attention { turned, of_ends, weights: alpha, slopes, .. } = &mut *self.layer;
        for (of_end, vector) in of_ends.iter_mut().zip(&weights.attention) {
            prepare(of_end, nodes * heads, 0.0);
            let rows = turned.chunks_exact(part).zip(vector.chunks_exact(part).cycle());
            for (number, (row, vector)) in of_end.iter_mut().zip(rows) {
                *number = dot(row, vector).sum();
            }
        }
        // Whole vectors for the exponential.
        prepare(alpha, (heads * edges).next_multiple_of(LANES), 0.0);
        slopes.resize(heads * edges, 0.0);
        for head in 0..heads {
            let (alpha, of_edge) = (&mut alpha[head * edges..][..edges], weights.of_edge[head]);
            let slopes = &mut slopes[head * edges..][..edges];
            for node in 0..nodes {
                let of_own = of_ends[0][node * heads + head];
                let around = Around::of(graph, node);
                let row = alpha[around.edges.clone()].iter_mut().zip(&mut slopes[around.edges.clone()]);
                let mut most = f32::NEG_INFINITY;
                for ((score, slope), (&other, (&one, &two))) in row.zip(around.each()) {
                    let plain = of_own + of_ends[1][other as usize * heads + head];
                    let found = plain + (of_edge[0] * one + of_edge[1] * two);
                    *slope = if found > 0.0 { 1.0 } else { SLOPE };
                    *score = found * *slope;
                    most = if *score > most { *score } else { most };
                }
                alpha[around.edges].iter_mut().for_each(|score| *score -= most);
            }
        }
        for chunk in alpha.as_chunks_mut::<LANES>().0 {
            *chunk = Lanes(*chunk).map(functions::exp).0;
        }
    }
}

impl Kernel for Weigh<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        self.scores();
        let Self { graph, heads, part, weights, is_last, layer } = self;
        let (nodes, edges, lanes) = (graph.nodes(), graph.neighbours.len(), heads * part);
        let Attention { turned, weights: alpha, shares, output, .. } = layer;
        shares.iter_mut().for_each(|shares| prepare(shares, nodes * heads, 0.0));
        output.resize(nodes * lanes, Lanes::ZERO);
        for node in 0..nodes {
            for head in 0..heads {
                let around = Around::of(graph, node);
                let row = &mut alpha[head * edges..][around.edges.clone()];
                let mut total = 0.0;
                for &weight in &*row {
                    total += weight;
                }
                let scale = 1.0 / total;
                let [mut of_own, mut of_others] = [0.0; 2];
                let mut sum = Lanes::ZERO;
                for (weight, (&other, (&one, &two))) in row.iter_mut().zip(around.each()) {
                    keep_vectors_whole();
                    *weight *= scale;
                    of_own += *weight * one;
                    of_others += *weight * two;
                    sum = Lanes::splat(*weight).mul_add(turned[other as usize * lanes + head * part], sum);
                }
                shares[0][node * heads + head] = of_own;
                shares[1][node * heads + head] = of_others;
                for lane in head * part..(head + 1) * part {
                    if lane > head * part {
                        sum = Lanes::ZERO;
                        for (&weight, &other) in row.iter().zip(around.nodes) {
                            keep_vectors_whole();
                            sum = Lanes::splat(weight).mul_add(turned[other as usize * lanes + lane], sum);
                        }
                    }
                    sum = sum + weights.bias[lane];
                    sum = Lanes::splat(of_own).mul_add(weights.edge[0][lane], sum);
                    sum = Lanes::splat(of_others).mul_add(weights.edge[1][lane], sum);
                    output[node * lanes + lane] = if is_last { sum } else { sum.if_positive(sum) };
                }
            }
        }
    }
}

/// The edges of a node.
struct Around<'a> {
    /// Their places.
    edges: Range<usize>,
    /// The neighbours and the node itself.
    nodes: &'a [u32],
    /// Their shares; see [`Graph`].
    between: [&'a [f32]; 2],
}

impl<'a> Around<'a> {
    #[inline(always)]
    fn of(graph: &'a Graph, node: usize) -> Self {
        let edges = graph.offsets[node] as usize..graph.offsets[node + 1] as usize;
        let between = [&graph.between[0][edges.clone()], &graph.between[1][edges.clone()]];
        Self { nodes: &graph.neighbours[edges.clone()], edges, between }
    }

    /// Each neighbour, with both shares.
    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (&'a u32, (&'a f32, &'a f32))> + use<'a> {
        self.nodes.iter().zip(self.between[0].iter().zip(self.between[1]))
    }
}

/// From features to the rows of the last layer.
pub fn forward(shape: &Shape, packed: &[Packed], graph: &Graph, prepared: &Prepared, rows: &mut Rows, path: Path) {
    let columns = shape.outputs();
    rows.layers.resize_with(shape.layers, Attention::default);
    for (layer, weights) in packed.iter().enumerate() {
        let (before, this) = rows.layers.split_at_mut(layer);
        let input = before.last().map_or(&prepared.inputs, |before| &before.output);
        let this = &mut this[0];
        this.turned.resize(graph.nodes() * columns.lanes(), Lanes::ZERO);
        let product = Product {
            input,
            width: shape.inputs(layer).lanes(),
            weight: &weights.forward,
            constants: None::<Constants<'_>>,
            relu: false,
            scale: None,
            out: &mut this.turned,
        };
        run(path, product);
        let (heads, part, is_last) = (columns.parts, columns.part_lanes(), layer + 1 == shape.layers);
        run(path, Weigh { graph, heads, part, weights, is_last, layer: this });
    }
}

/// From the slopes of a layer's output to those of `g`, of the ends' numbers and of the attention's constants.
struct Back<'a> {
    graph: &'a Graph,
    heads: usize,
    part: usize,
    weights: &'a Packed,
    layer: &'a Attention,
    slopes: &'a [Lanes],
    of_turned: &'a mut [Lanes],
    of_ends: &'a mut [Vec<f32>; 2],
    of_weights: &'a mut OfWeights,
    of_edge: &'a mut [[f32; 2]],
}

impl Kernel for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { graph, heads, part, weights, layer, slopes, of_turned, of_ends, of_weights, of_edge } = self;
        let (nodes, edges, lanes) = (graph.nodes(), graph.neighbours.len(), heads * part);
        of_weights.totals.clear();
        of_weights.totals.resize(heads, [0.0; 2]);
        for node in 0..nodes {
            let around = Around::of(graph, node);
            // Heads inside: the rows of a node's neighbours are then fetched once.
            for head in 0..heads {
                let alpha = &layer.weights[head * edges..][around.edges.clone()];
                let score_slopes = &layer.slopes[head * edges..][around.edges.clone()];
                let own = &slopes[node * lanes + head * part..][..part];
                let one = fold(&dot(own, &weights.edge[0][head * part..][..part]).0);
                let two = fold(&dot(own, &weights.edge[1][head * part..][..part]).0);
                let mut mean = 0.0;
                of_weights.slopes.resize(alpha.len(), 0.0);
                let each = alpha.iter().zip(around.each()).zip(&mut of_weights.slopes);
                for ((&weight, (&other, (&of_own, &of_other))), slope) in each {
                    let row = &layer.turned[other as usize * lanes + head * part..][..part];
                    *slope = fold(&dot(own, row).0) + (one * of_own + two * of_other);
                    mean += weight * *slope;
                }
                let (mut of_own, mut totals) = (0.0, [0.0; 2]);
                let of_scores = of_weights.slopes.iter().zip(score_slopes);
                let each = alpha.iter().zip(of_scores).zip(around.each());
                for ((&weight, (&slope, &of_score)), (&other, (&share, &of_other))) in each {
                    keep_vectors_whole();
                    let other = other as usize;
                    let slope = weight * (slope - mean) * of_score;
                    of_own += slope;
                    of_ends[1][other * heads + head] += slope;
                    totals[0] += slope * share;
                    totals[1] += slope * of_other;
                    let weight = Lanes::splat(weight);
                    for (to, own) in of_turned[other * lanes + head * part..][..part].iter_mut().zip(own) {
                        keep_vectors_whole();
                        *to = weight.mul_add(*own, *to);
                    }
                }
                of_ends[0][node * heads + head] = of_own;
                let sums = &mut of_weights.totals[head];
                sums[0] += f64::from(totals[0]);
                sums[1] += f64::from(totals[1]);
            }
        }
        for (of_edge, totals) in of_edge.iter_mut().zip(&of_weights.totals) {
            *of_edge = totals.map(|total| total as f32);
        }
        for (index, row) in of_turned.chunks_exact_mut(part).enumerate() {
            let head = index % heads;
            for (of_end, vector) in of_ends.iter().zip(&weights.attention) {
                let slope = Lanes::splat(of_end[index]);
                for lane in 0..part {
                    keep_vectors_whole();
                    row[lane] = slope.mul_add(vector[head * part + lane], row[lane]);
                }
            }
        }
    }
}

/// From the slopes of the last layer's rows to those of weights; the former are overwritten.
pub fn backward(
    shape: &Shape,
    (packed, slopes_of): (&[Packed], &mut [Tensors]),
    graph: &Graph,
    prepared: &Prepared,
    (rows, slopes): (&mut Rows, &mut Vec<Lanes>),
    path: Path,
) {
    let columns = shape.outputs();
    let (heads, part, lanes) = (columns.parts, columns.part_lanes(), columns.lanes());
    let Rows { layers, of_turned, of_ends, of_weights, before } = rows;
    for index in (0..shape.layers).rev() {
        let (earlier, layer) = layers.split_at(index);
        let layer = &layer[0];
        let Tensors { weight, bias, edge, attention, of_edge } = &mut slopes_of[index];
        run(path, Total { rows: slopes, lanes, factors: None, part: lanes, out: bias });
        for (edge, factors) in edge.iter_mut().zip(&layer.shares) {
            run(path, Total { rows: slopes, lanes, factors: Some(factors), part, out: edge });
        }
        prepare(of_turned, slopes.len(), Lanes::ZERO);
        of_ends.iter_mut().for_each(|of_end| prepare(of_end, graph.nodes() * heads, 0.0));
        let weights = &packed[index];
        run(path, Back { graph, heads, part, weights, layer, slopes, of_turned, of_ends, of_weights, of_edge });
        for (attention, factors) in attention.iter_mut().zip(of_ends.iter()) {
            run(path, Total { rows: &layer.turned, lanes, factors: Some(factors), part, out: attention });
        }
        let input = earlier.last().map_or(&prepared.inputs, |earlier| &earlier.output);
        let width = shape.inputs(index).lanes();
        run(path, Outer { input, width, slopes: of_turned, lanes, out: weight });
        let Some(earlier) = earlier.last() else { return };
        before.resize(slopes.len(), Lanes::ZERO);
        let product = Product {
            input: of_turned,
            width: lanes,
            weight: &weights.backward,
            constants: None::<Constants<'_>>,
            relu: false,
            scale: None,
            out: before,
        };
        run(path, product);
        for (slope, output) in before.iter_mut().zip(&earlier.output) {
            *slope = output.if_positive(*slope);
        }
        std::mem::swap(slopes, before);
    }
}
