//! Graph attention: neighbours weighted by a softmax over each node's edges.
//!
//! An edge's score is a sum of one number of each end, `T_u = a_t·g_u + a_e₀/d_u` and `S_v = a_s·g_v + a_e₁/d_v`, and
//! without the shares of `a_e` for a node itself. The sum of an edge's matrix over a node's edges is that matrix times
//! `w_u = Σ_{v≠u} α_uv (1/d_u, 1/d_v)`. Slopes of sources are added up in the order of targets.
//!
//! Everything is done block by block of nodes, whose numbers then stay in the first-level cache, and two heads at a
//! time.
//!
//! # Cost
//! Nodes have few edges: what counts is how often an edge is touched, and how little is done then.

mod backward;

pub use backward::backward;

use super::kernels::{BLOCK, Product};
use super::pass::Packed;
use super::{Graph, Prepared, Shape};
use crate::lanes::{Kernel, LANES, Lanes, Path, functions, keep_vectors_whole, run};
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
    /// `α`, for each two heads all edges.
    weights: Vec<Pair>,
    /// The slope of each score, arranged in the same way: 1 where it is positive.
    slopes: Vec<Pair>,
    /// `w_u`.
    shares: [Vec<f32>; 2],
    /// The rows that leave the layer.
    output: Vec<Lanes>,
}

/// Rows of every layer, and buffers.
#[derive(Debug, Default)]
pub struct Rows {
    layers: Vec<Attention>,
    of_turned: Vec<Lanes>,
    of_ends: [Vec<f32>; 2],
    /// A number for each edge of a block.
    block: Vec<Pair>,
    /// Sums over a node's edges, for each head of a block.
    totals: Vec<[f32; 2]>,
    /// Products of rows, for each edge of a node.
    products: Vec<[Lanes; 2]>,
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

/// The nodes of each block of a graph.
fn blocks(graph: &Graph) -> impl Iterator<Item = Range<usize>> + use<> {
    let nodes = graph.nodes();
    (0..nodes).step_by(BLOCK).map(move |begin| begin..nodes.min(begin + BLOCK))
}

/// The places of what some nodes have, so much each.
#[inline(always)]
fn span(nodes: &Range<usize>, each: usize) -> Range<usize> {
    nodes.start * each..nodes.end * each
}

/// Numbers of two heads; the second means nothing where there is none.
type Pair = [f32; 2];

/// The edges of some nodes.
#[inline(always)]
fn edges_of(graph: &Graph, nodes: &Range<usize>) -> Range<usize> {
    graph.offsets[nodes.start] as usize..graph.offsets[nodes.end] as usize
}

/// The edges of a node.
#[inline(always)]
fn around(graph: &Graph, node: usize) -> Range<usize> {
    edges_of(graph, &(node..node + 1))
}

/// Some edges: each neighbour, with both shares.
#[inline(always)]
fn each<'a>(graph: &'a Graph, edges: &Range<usize>) -> impl Iterator<Item = (&'a u32, (&'a f32, &'a f32))> {
    let [one, two] = graph.between.each_ref().map(|numbers| &numbers[edges.clone()]);
    graph.neighbours[edges.clone()].iter().zip(one.iter().zip(two))
}

/// The rows of nodes times weights, and what they add to scores.
struct Turn<'a> {
    graph: &'a Graph,
    heads: usize,
    part: usize,
    input: &'a [Lanes],
    /// Vectors of its rows.
    width: usize,
    weights: &'a Packed,
    turned: &'a mut [Lanes],
    of_ends: [&'a mut [f32]; 2],
}

impl Kernel for Turn<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { graph, heads, part, input, width, weights, turned, of_ends: [of_targets, of_sources] } = self;
        let [target, source] = &weights.attention;
        for nodes in blocks(graph) {
            let turned = &mut turned[span(&nodes, heads * part)];
            let input = &input[span(&nodes, width)];
            let weight = &weights.forward;
            Product { input, width, weight, constants: None, relu: false, scale: None, out: turned }.run::<WIDE>();
            let places = span(&nodes, heads);
            let vectors = target.chunks_exact(part).zip(source.chunks_exact(part)).cycle();
            let rows = turned.chunks_exact(part).zip(vectors);
            let ends = of_targets[places.clone()].iter_mut().zip(&mut of_sources[places]);
            for ((row, (target, source)), (of_target, of_source)) in rows.zip(ends) {
                *of_target = dot(row, target).sum();
                *of_source = dot(row, source).sum();
            }
        }
    }
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
    /// Of a node's edges and one or two heads: the slope of the score, and the score less the largest.
    #[inline(always)]
    fn scores<const HEADS: usize>(&mut self, node: usize, head: usize) {
        let Self { graph, heads, weights, .. } = *self;
        let edges = around(graph, node);
        let place = head / 2 * graph.neighbours.len();
        let Attention { of_ends: [of_targets, of_sources], slopes, weights: scores, .. } = &mut *self.layer;
        let scores = &mut scores[place..][edges.clone()];
        let slopes = &mut slopes[place..][edges.clone()];
        let (mut of_own, mut of_edge, mut most) = ([0.0; HEADS], [[0.0; 2]; HEADS], [f32::NEG_INFINITY; HEADS]);
        for k in 0..HEADS {
            of_own[k] = of_targets[node * heads + head + k];
            of_edge[k] = weights.of_edge[head + k];
        }
        let of_sources = &of_sources[..];
        for ((score, slope), (&other, (&one, &two))) in scores.iter_mut().zip(slopes).zip(each(graph, &edges)) {
            let of_other = &of_sources[other as usize * heads + head..][..HEADS];
            for k in 0..HEADS {
                let found = (of_own[k] + of_other[k]) + (of_edge[k][0] * one + of_edge[k][1] * two);
                slope[k] = if found > 0.0 { 1.0 } else { SLOPE };
                score[k] = found * slope[k];
                most[k] = if score[k] > most[k] { score[k] } else { most[k] };
            }
        }
        for score in scores {
            keep_vectors_whole();
            for k in 0..HEADS {
                score[k] -= most[k];
            }
        }
    }

    /// Of a node's edges and one or two heads: the weights, from powers, and the sums of shares.
    #[inline(always)]
    fn soften<const HEADS: usize>(&mut self, node: usize, head: usize) {
        let Self { graph, heads, .. } = *self;
        let edges = around(graph, node);
        let Attention { weights, shares, .. } = &mut *self.layer;
        let weights = &mut weights[head / 2 * graph.neighbours.len()..][edges.clone()];
        let mut totals = [0.0; HEADS];
        for power in &*weights {
            for k in 0..HEADS {
                totals[k] += power[k];
            }
        }
        let (mut scales, mut of_own, mut of_others) = ([0.0; HEADS], [0.0; HEADS], [0.0; HEADS]);
        for k in 0..HEADS {
            scales[k] = 1.0 / totals[k];
        }
        for (weight, (_, (&one, &two))) in weights.iter_mut().zip(each(graph, &edges)) {
            for k in 0..HEADS {
                weight[k] *= scales[k];
                of_own[k] += weight[k] * one;
                of_others[k] += weight[k] * two;
            }
        }
        shares[0][node * heads + head..][..HEADS].copy_from_slice(&of_own);
        shares[1][node * heads + head..][..HEADS].copy_from_slice(&of_others);
    }

    /// A vector of each of one or two heads: the weighted sums of a node's neighbours.
    #[inline(always)]
    fn sum<const HEADS: usize>(&mut self, node: usize, head: usize, offset: usize) {
        let Self { graph, heads, part, .. } = *self;
        let edges = around(graph, node);
        let Attention { turned, weights, output, .. } = &mut *self.layer;
        let (lanes, first) = (heads * part, head * part + offset);
        let (turned, output) = (&turned[first..], &mut output[node * lanes + first..]);
        let mut sums = [Lanes::ZERO; HEADS];
        let weights = &weights[head / 2 * graph.neighbours.len()..][edges.clone()];
        for (weight, &other) in weights.iter().zip(&graph.neighbours[edges]) {
            let row = &turned[other as usize * lanes..];
            for k in 0..HEADS {
                sums[k] = Lanes::splat(weight[k]).mul_add(row[k * part], sums[k]);
            }
        }
        // Nothing else is done with sums here, or they would not stay in registers.
        for k in 0..HEADS {
            output[k * part] = sums[k];
        }
    }

    /// From the weighted sums to the output of some nodes.
    #[inline(always)]
    fn finish(&mut self, nodes: Range<usize>) {
        let Self { heads, part, weights, is_last, .. } = *self;
        let Attention { shares: [of_own, of_others], output, .. } = &mut *self.layer;
        let ([one, two], bias) = (&weights.edge, &weights.bias);
        for node in nodes {
            for head in 0..heads {
                let [own, others] = [&*of_own, of_others].map(|shares| Lanes::splat(shares[node * heads + head]));
                for lane in head * part..(head + 1) * part {
                    keep_vectors_whole();
                    let sum = output[node * heads * part + lane] + bias[lane];
                    let sum = others.mul_add(two[lane], own.mul_add(one[lane], sum));
                    output[node * heads * part + lane] = if is_last { sum } else { sum.if_positive(sum) };
                }
            }
        }
    }

    /// One or two heads of some nodes, all but the constants.
    #[inline(always)]
    fn block<const HEADS: usize>(&mut self, nodes: Range<usize>, head: usize) {
        let graph = self.graph;
        for node in nodes.clone() {
            self.scores::<HEADS>(node, head);
        }
        let Range { start, end } = edges_of(graph, &nodes);
        let powers = &mut self.layer.weights[head / 2 * graph.neighbours.len()..][start..end];
        for chunk in powers.as_flattened_mut().chunks_mut(LANES) {
            match chunk.as_chunks_mut::<LANES>() {
                ([chunk], _) => *chunk = Lanes(*chunk).map(functions::exp).0,
                (_, rest) => {
                    let powers = Lanes::load_partial(rest).map(functions::exp);
                    rest.copy_from_slice(&powers.0[..rest.len()]);
                }
            }
        }
        for node in nodes {
            self.soften::<HEADS>(node, head);
            for offset in 0..self.part {
                self.sum::<HEADS>(node, head, offset);
            }
        }
    }
}

impl Kernel for Weigh<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        for nodes in blocks(self.graph) {
            for head in (0..self.heads).step_by(2) {
                if self.heads - head >= 2 {
                    self.block::<2>(nodes.clone(), head);
                } else {
                    self.block::<1>(nodes.clone(), head);
                }
            }
            self.finish(nodes);
        }
    }
}

/// From features to the rows of the last layer.
pub fn forward(shape: &Shape, packed: &[Packed], graph: &Graph, prepared: &Prepared, rows: &mut Rows, path: Path) {
    let columns = shape.outputs();
    let (heads, part) = (columns.parts, columns.part_lanes());
    let (nodes, edges) = (graph.nodes(), graph.neighbours.len());
    rows.layers.resize_with(shape.layers, Attention::default);
    for (index, weights) in packed.iter().enumerate() {
        let (before, this) = rows.layers.split_at_mut(index);
        let input = before.last().map_or(&prepared.inputs, |before| &before.output);
        let layer = &mut this[0];
        let Attention { turned, of_ends, weights: alpha, slopes, shares, output } = &mut *layer;
        for rows in [&mut *turned, output] {
            rows.resize(nodes * heads * part, Lanes::ZERO);
        }
        for numbers in of_ends.iter_mut().chain(shares) {
            numbers.resize(nodes * heads, 0.0);
        }
        for numbers in [alpha, slopes] {
            numbers.resize(edges * heads.div_ceil(2), [0.0; 2]);
        }
        let width = shape.inputs(index).lanes();
        let of_ends = of_ends.each_mut().map(|numbers| &mut numbers[..]);
        run(path, Turn { graph, heads, part, input, width, weights, turned, of_ends });
        let is_last = index + 1 == shape.layers;
        run(path, Weigh { graph, heads, part, weights, is_last, layer });
    }
}
