//! Graph convolution: a product of the neighbours' sums.
//!
//! With `r_u = 1/√(d_u+1)`, layer `l` is `P_l[u] = r_u Σ_v r_v h_v` and `h' = P_l Wᵀ + S Eᵀ + b`, in which the sums `S`
//! of transition probabilities, and for the first layer `P` as well, do not depend on weights. Rows are kept times
//! `r_u`, except the last. Slopes go the same way back, since the graph is undirected.

use super::kernels::{Constants, Gather, Outer, Product, Totals};
use super::pass::{Packed, Tensors};
use super::{Graph, Prepared, Shape};
use crate::lanes::{Lanes, Path, run};

/// Sums over neighbours of features and of transition probabilities.
pub fn prepare(graph: &Graph, features: &[Lanes], lanes: usize) -> (Vec<Lanes>, [Vec<f32>; 2]) {
    let scaled: Vec<Lanes> = features
        .chunks_exact(lanes)
        .zip(&graph.roots)
        .flat_map(|(row, &root)| row.iter().map(move |&lanes| lanes * Lanes::splat(root)))
        .collect();
    let mut sums = vec![Lanes::ZERO; features.len()];
    run(Path::detect(), Gather { graph, rows: &scaled, lanes, scale: &graph.roots, mask: None, out: &mut sums });
    let mut transitions = [Vec::with_capacity(graph.nodes()), Vec::with_capacity(graph.nodes())];
    for node in 0..graph.nodes() {
        let [mut of_own, mut of_others] = [0.0_f64; 2];
        for &other in graph.around(node).iter().filter(|&&other| other as usize != node) {
            let root = f64::from(graph.roots[node]) * f64::from(graph.roots[other as usize]);
            of_own += root * f64::from(graph.shares[node]);
            of_others += root * f64::from(graph.shares[other as usize]);
        }
        transitions[0].push(of_own as f32);
        transitions[1].push(of_others as f32);
    }
    (sums, transitions)
}

/// Rows of every layer.
#[derive(Debug, Default)]
pub struct Rows {
    /// Sums over neighbours, for each layer after the first.
    sums: Vec<Vec<Lanes>>,
    /// Output of each layer.
    pub outputs: Vec<Vec<Lanes>>,
    scaled: Vec<Lanes>,
    before: Vec<Lanes>,
}

/// From features to the rows of the last layer.
pub fn forward(shape: &Shape, packed: &[Packed], graph: &Graph, prepared: &Prepared, rows: &mut Rows, path: Path) {
    let lanes = shape.outputs().lanes();
    rows.sums.resize_with(shape.layers, Vec::new);
    rows.outputs.resize_with(shape.layers, Vec::new);
    for (layer, weights) in packed.iter().enumerate() {
        let is_last = layer + 1 == shape.layers;
        let (before, output) = rows.outputs.split_at_mut(layer);
        let input = match before.last() {
            None => &prepared.inputs,
            Some(before) => {
                let sums = &mut rows.sums[layer];
                sums.resize(before.len(), Lanes::ZERO);
                run(path, Gather { graph, rows: before, lanes, scale: &graph.roots, mask: None, out: sums });
                &*sums
            }
        };
        let output = &mut output[0];
        output.resize(graph.nodes() * lanes, Lanes::ZERO);
        let constants = Constants {
            bias: &weights.bias,
            edge: [&weights.edge[0], &weights.edge[1]],
            transitions: [&prepared.transitions[0], &prepared.transitions[1]],
        };
        run(
            path,
            Product {
                input,
                width: shape.inputs(layer).lanes(),
                weight: &weights.forward,
                constants: Some(constants),
                relu: !is_last,
                scale: (!is_last).then_some(&graph.roots),
                out: output,
            },
        );
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
    let lanes = shape.outputs().lanes();
    for layer in (0..shape.layers).rev() {
        let input = if layer == 0 { &prepared.inputs } else { &rows.sums[layer] };
        let width = shape.inputs(layer).lanes();
        let Tensors { weight, bias, edge, .. } = &mut slopes_of[layer];
        run(path, Outer { input, width, slopes, lanes, out: weight });
        let [of_own, of_others] = prepared.transitions.each_ref().map(|numbers| Some(&numbers[..]));
        let ([one, two], factors) = (edge, [None, of_own, of_others]);
        run(path, Totals { rows: slopes, lanes, factors, part: lanes, out: [bias, one, two] });
        if layer == 0 {
            return;
        }
        let Rows { outputs, scaled, before, .. } = &mut *rows;
        scaled.resize(slopes.len(), Lanes::ZERO);
        before.resize(slopes.len(), Lanes::ZERO);
        run(
            path,
            Product {
                input: slopes,
                width: lanes,
                weight: &packed[layer].backward,
                constants: None,
                relu: false,
                scale: Some(&graph.roots),
                out: scaled,
            },
        );
        let mask = Some(&*outputs[layer - 1]);
        run(path, Gather { graph, rows: scaled, lanes, scale: &graph.roots, mask, out: before });
        std::mem::swap(slopes, before);
    }
}
