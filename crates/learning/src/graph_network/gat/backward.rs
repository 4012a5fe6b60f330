//! The way back through attention: from slopes of outputs to those of weights.

use super::super::kernels::{Outer, Product, Totals};
use super::super::pass::{Packed, Tensors};
use super::super::{Graph, Prepared, Shape};
use super::{Attention, Pair, Rows, around, blocks, dot, each, edges_of, prepare, span};
use crate::lanes::{Kernel, Lanes, Path, fold, keep_vectors_whole, run};
use std::ops::Range;

/// From the slopes of a layer's output to those of `g`, of the ends' numbers and of constants.
struct Back<'a> {
    graph: &'a Graph,
    heads: usize,
    part: usize,
    weights: &'a Packed,
    layer: &'a Attention,
    slopes: &'a [Lanes],
    of_turned: &'a mut [Lanes],
    of_ends: &'a mut [Vec<f32>; 2],
    block: &'a mut Vec<Pair>,
    totals: &'a mut Vec<[f32; 2]>,
    products: &'a mut Vec<[Lanes; 2]>,
    slopes_of: &'a mut Tensors,
}

impl Back<'_> {
    /// Of a node's edges and one or two heads: the slopes of scores. Of the node: their sum, and those of shares.
    #[inline(always)]
    fn scores<const HEADS: usize>(&mut self, node: usize, head: usize, (first_node, first_edge): (usize, usize)) {
        let Self { graph, heads, part, weights, layer, slopes, .. } = *self;
        let (lanes, edges) = (heads * part, around(graph, node));
        let place = head / 2 * graph.neighbours.len();
        let (alpha, score_slopes) = (&layer.weights[place..][edges.clone()], &layer.slopes[place..][edges.clone()]);
        let found = &mut self.block[edges.start - first_edge..edges.end - first_edge];
        let own = &slopes[node * lanes + head * part..][..HEADS * part];
        let [mut of_own, mut of_others, mut means] = [[0.0; HEADS]; 3];
        for k in 0..HEADS {
            let [one, two] = weights.edge.each_ref().map(|edge| &edge[(head + k) * part..][..part]);
            of_own[k] = dot(&own[k * part..][..part], one).sum();
            of_others[k] = dot(&own[k * part..][..part], two).sum();
        }
        let others = &graph.neighbours[edges.clone()];
        self.products.resize(others.len().max(self.products.len()), [Lanes::ZERO; 2]);
        let products = &mut self.products[..others.len()];
        // Products are folded in a loop of its own: where both are one, vectors fall apart.
        for offset in 0..part {
            let turned = &layer.turned[head * part + offset..];
            for (product, &other) in products.iter_mut().zip(others) {
                let row = &turned[other as usize * lanes..];
                for k in 0..HEADS {
                    keep_vectors_whole();
                    let sum = if offset == 0 { Lanes::ZERO } else { product[k] };
                    product[k] = own[k * part + offset].mul_add(row[k * part], sum);
                }
            }
        }
        let terms = found.iter_mut().zip(&*products).zip(alpha).zip(each(graph, &edges));
        for (((found, product), alpha), (_, (&one, &two))) in terms {
            for k in 0..HEADS {
                keep_vectors_whole();
                let slope = fold(&product[k].0) + (of_own[k] * one + of_others[k] * two);
                means[k] += alpha[k] * slope;
                found[k] = slope;
            }
        }
        let [mut sums, mut of_shares, mut of_others] = [[0.0; HEADS]; 3];
        let terms = found.iter_mut().zip(alpha.iter().zip(score_slopes)).zip(each(graph, &edges));
        for ((found, (alpha, score_slope)), (_, (&one, &two))) in terms {
            for k in 0..HEADS {
                let slope = alpha[k] * (found[k] - means[k]) * score_slope[k];
                found[k] = slope;
                sums[k] += slope;
                of_shares[k] += slope * one;
                of_others[k] += slope * two;
            }
        }
        self.of_ends[0][node * heads + head..][..HEADS].copy_from_slice(&sums);
        for k in 0..HEADS {
            self.totals[(node - first_node) * heads + head + k] = [of_shares[k], of_others[k]];
        }
    }

    /// Adds to neighbours what some edges carry back, in the order of edges.
    #[inline(always)]
    fn spread<const HEADS: usize>(&mut self, edges: Range<usize>, head: usize) {
        let Self { graph, heads, part, layer, slopes, .. } = *self;
        let lanes = heads * part;
        let (owners, others) = (&graph.owners[edges.clone()], &graph.neighbours[edges.clone()]);
        let of_sources = &mut self.of_ends[1][..];
        for (found, &other) in self.block.iter().zip(others) {
            let of_source = &mut of_sources[other as usize * heads + head..][..HEADS];
            for k in 0..HEADS {
                of_source[k] += found[k];
            }
        }
        let alpha = &layer.weights[head / 2 * graph.neighbours.len()..][edges];
        for first in head * part..(head + 1) * part {
            let (slopes, of_turned) = (&slopes[first..], &mut self.of_turned[first..]);
            for (alpha, (&node, &other)) in alpha.iter().zip(owners.iter().zip(others)) {
                let (own, to) = (&slopes[node as usize * lanes..], &mut of_turned[other as usize * lanes..]);
                for k in 0..HEADS {
                    keep_vectors_whole();
                    to[k * part] = Lanes::splat(alpha[k]).mul_add(own[k * part], to[k * part]);
                }
            }
        }
    }

    /// One or two heads of some nodes.
    #[inline(always)]
    fn block<const HEADS: usize>(&mut self, nodes: &Range<usize>, edges: &Range<usize>, head: usize) {
        for node in nodes.clone() {
            self.scores::<HEADS>(node, head, (nodes.start, edges.start));
        }
        self.spread::<HEADS>(edges.clone(), head);
    }
}

impl Kernel for Back<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let Self { graph, heads, part, layer, slopes, .. } = self;
        let lanes = heads * part;
        let mut sums = vec![[0.0_f64; 2]; heads];
        for nodes in blocks(graph) {
            let Tensors { bias, edge: [one, two], .. } = &mut *self.slopes_of;
            let places = span(&nodes, heads);
            let [of_own, of_others] = layer.shares.each_ref().map(|numbers| Some(&numbers[places.clone()]));
            let rows = &slopes[span(&nodes, lanes)];
            Totals { rows, lanes, factors: [None, of_own, of_others], part, out: [bias, one, two] }.run::<WIDE>();
            let edges = edges_of(graph, &nodes);
            self.block.resize(edges.len(), [0.0; 2]);
            self.totals.resize(nodes.len() * heads, [0.0; 2]);
            for head in (0..heads).step_by(2) {
                if heads - head >= 2 {
                    self.block::<2>(&nodes, &edges, head);
                } else {
                    self.block::<1>(&nodes, &edges, head);
                }
            }
            for totals in self.totals.chunks_exact(heads) {
                for (sums, totals) in sums.iter_mut().zip(totals) {
                    sums[0] += f64::from(totals[0]);
                    sums[1] += f64::from(totals[1]);
                }
            }
        }
        for (of_edge, sums) in self.slopes_of.of_edge.iter_mut().zip(&sums) {
            *of_edge = sums.map(|sum| sum as f32);
        }
    }
}

/// From the slopes of `g` to those of weights, and of the layer before.
struct Return<'a> {
    graph: &'a Graph,
    heads: usize,
    part: usize,
    weights: &'a Packed,
    layer: &'a Attention,
    input: &'a [Lanes],
    width: usize,
    of_turned: &'a mut [Lanes],
    of_ends: &'a [Vec<f32>; 2],
    slopes_of: &'a mut Tensors,
    /// The output of the layer before, and where its slopes go; not for the first layer.
    before: Option<(&'a [Lanes], &'a mut [Lanes])>,
}

impl Kernel for Return<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { graph, heads, part, weights, layer, input, width, of_turned, of_ends, slopes_of, mut before } = self;
        let lanes = heads * part;
        let Tensors { weight, attention: [target, source], .. } = slopes_of;
        for nodes in blocks(graph) {
            let places = span(&nodes, lanes);
            let slopes = &mut of_turned[places.clone()];
            let ends = of_ends.each_ref().map(|numbers| &numbers[span(&nodes, heads)]);
            for (index, row) in slopes.chunks_exact_mut(part).enumerate() {
                let head = index % heads;
                for (of_end, vector) in ends.iter().zip(&weights.attention) {
                    let slope = Lanes::splat(of_end[index]);
                    for lane in 0..part {
                        keep_vectors_whole();
                        row[lane] = slope.mul_add(vector[head * part + lane], row[lane]);
                    }
                }
            }
            let (rows, factors) = (&layer.turned[places.clone()], ends.map(Some));
            Totals { rows, lanes, factors, part, out: [&mut target[..], &mut source[..]] }.run::<WIDE>();
            let (slopes, input) = (&*slopes, &input[span(&nodes, width)]);
            Outer { input, width, slopes, lanes, out: &mut weight[..] }.run::<WIDE>();
            let Some((output, before)) = &mut before else { continue };
            let (out, weight) = (&mut before[places.clone()], &weights.backward);
            let product =
                Product { input: slopes, width: lanes, weight, constants: None, relu: false, scale: None, out };
            product.run::<WIDE>();
            for (slope, output) in before[places.clone()].iter_mut().zip(&output[places]) {
                keep_vectors_whole();
                *slope = output.if_positive(*slope);
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
    let (heads, part) = (columns.parts, columns.part_lanes());
    let Rows { layers, of_turned, of_ends, block, totals, products, before } = rows;
    for index in (0..shape.layers).rev() {
        let (earlier, layer) = layers.split_at(index);
        let (layer, weights, slopes_of) = (&layer[0], &packed[index], &mut slopes_of[index]);
        prepare(of_turned, slopes.len(), Lanes::ZERO);
        of_ends.iter_mut().for_each(|of_end| prepare(of_end, graph.nodes() * heads, 0.0));
        run(
            path,
            Back { graph, heads, part, weights, layer, slopes, of_turned, of_ends, block, totals, products, slopes_of },
        );
        let input = earlier.last().map_or(&prepared.inputs, |earlier| &earlier.output);
        let width = shape.inputs(index).lanes();
        before.resize(slopes.len(), Lanes::ZERO);
        let led = earlier.last().map(|earlier| (&earlier.output[..], &mut before[..]));
        run(
            path,
            Return { graph, heads, part, weights, layer, input, width, of_turned, of_ends, slopes_of, before: led },
        );
        std::mem::swap(slopes, before);
    }
}
