//! A network on a graph: predictions, losses and slopes.

use super::kernels::{Scores, Spread};
use super::{Columns, Graph, Kind, Pairs, Places, Prepared, Shape, gat, gcn};
use crate::lanes::{LANES, Lanes, Path, run};

/// The weights of a layer, arranged for whole vectors.
#[derive(Debug, Default)]
pub struct Packed {
    /// A row of outputs for each input.
    pub forward: Vec<Lanes>,
    /// A row of inputs for each output; of layers after the first.
    pub backward: Vec<Lanes>,
    pub bias: Vec<Lanes>,
    pub edge: [Vec<Lanes>; 2],
    /// Attention of target and source.
    pub attention: [Vec<Lanes>; 2],
    /// Attention of the edge, for each head.
    pub of_edge: Vec<[f32; 2]>,
}

/// Slopes of a layer's weights, arranged as these.
#[derive(Debug, Default)]
pub struct Tensors {
    pub weight: Vec<Lanes>,
    pub bias: Vec<Lanes>,
    pub edge: [Vec<Lanes>; 2],
    pub attention: [Vec<Lanes>; 2],
    pub of_edge: Vec<[f32; 2]>,
}

fn zeros(buffer: &mut Vec<Lanes>, length: usize) {
    buffer.clear();
    buffer.resize(length, Lanes::ZERO);
}

/// Puts a number of a row in its place.
fn put(row: &mut [Lanes], columns: Columns, index: usize, number: f32) {
    let (vector, lane) = columns.place(index);
    row[vector].0[lane] = number;
}

fn get(row: &[Lanes], columns: Columns, index: usize) -> f32 {
    let (vector, lane) = columns.place(index);
    row[vector].0[lane]
}

/// The place of a number in its row, vectors one after the other.
const fn flat(columns: Columns, index: usize) -> usize {
    let (vector, lane) = columns.place(index);
    vector * LANES + lane
}

/// The places of all numbers of a row.
fn all_flat(columns: Columns) -> Vec<usize> {
    (0..columns.count()).map(|index| flat(columns, index)).collect()
}

/// The number at a place of rows.
const fn at(rows: &mut [Lanes], place: usize) -> &mut f32 {
    &mut rows[place / LANES].0[place % LANES]
}

impl Packed {
    /// Arranges weights of a layer for the way back.
    fn turn(&mut self, shape: &Shape, layer: usize, parameters: &[f32]) {
        let (inputs, outputs) = (shape.inputs(layer), shape.outputs());
        let weights = parameters[shape.places(layer).weight..].chunks_exact(inputs.count());
        zeros(&mut self.backward, outputs.lanes() * LANES * inputs.lanes());
        let places = all_flat(inputs);
        for (output, weights) in weights.take(outputs.count()).enumerate() {
            let row = &mut self.backward[flat(outputs, output) * inputs.lanes()..][..inputs.lanes()];
            weights.iter().zip(&places).for_each(|(&number, &place)| *at(row, place) = number);
        }
    }

    /// Arranges all but that.
    fn pack(&mut self, shape: &Shape, layer: usize, parameters: &[f32]) {
        let (inputs, outputs) = (shape.inputs(layer), shape.outputs());
        let Places { weight, edge, bias, attention, .. } = shape.places(layer);
        zeros(&mut self.forward, inputs.lanes() * LANES * outputs.lanes());
        zeros(&mut self.bias, outputs.lanes());
        self.edge.iter_mut().for_each(|edge| zeros(edge, outputs.lanes()));
        self.attention.iter_mut().for_each(|vector| zeros(vector, outputs.lanes()));
        let places = all_flat(inputs);
        for output in 0..outputs.count() {
            let column = flat(outputs, output);
            let weights = &parameters[weight + output * inputs.count()..][..inputs.count()];
            for (&number, &place) in weights.iter().zip(&places) {
                *at(&mut self.forward, place * outputs.lanes() * LANES + column) = number;
            }
            put(&mut self.bias, outputs, output, parameters[bias + output]);
            for (index, row) in self.edge.iter_mut().enumerate() {
                put(row, outputs, output, parameters[edge + 2 * output + index]);
            }
            if matches!(shape.kind, Kind::Gat { .. }) {
                for (row, begin) in self.attention.iter_mut().zip(attention) {
                    put(row, outputs, output, parameters[begin + output]);
                }
            }
        }
        self.of_edge.clear();
        if let Kind::Gat { heads } = shape.kind {
            let begin = attention[2];
            self.of_edge.extend((0..heads).map(|head| [0, 1].map(|index| parameters[begin + 2 * head + index])));
        }
    }
}

impl Tensors {
    fn prepare(&mut self, shape: &Shape, layer: usize) {
        let (inputs, outputs) = (shape.inputs(layer), shape.outputs());
        zeros(&mut self.weight, inputs.lanes() * LANES * outputs.lanes());
        let rows = [&mut self.bias].into_iter().chain(&mut self.edge).chain(&mut self.attention);
        rows.for_each(|row| zeros(row, outputs.lanes()));
        self.of_edge.clear();
        self.of_edge.resize(shape.heads(), [0.0; 2]);
    }

    fn unpack(&self, shape: &Shape, layer: usize, gradient: &mut [f32]) {
        let (inputs, outputs) = (shape.inputs(layer), shape.outputs());
        let Places { weight, edge, bias, attention, .. } = shape.places(layer);
        let places = all_flat(inputs);
        for output in 0..outputs.count() {
            let column = flat(outputs, output);
            let slopes = &mut gradient[weight + output * inputs.count()..][..inputs.count()];
            for (slope, &place) in slopes.iter_mut().zip(&places) {
                let number = place * outputs.lanes() * LANES + column;
                *slope = self.weight[number / LANES].0[number % LANES];
            }
            gradient[bias + output] = get(&self.bias, outputs, output);
            for (index, row) in self.edge.iter().enumerate() {
                gradient[edge + 2 * output + index] = get(row, outputs, output);
            }
            if matches!(shape.kind, Kind::Gat { .. }) {
                for (row, begin) in self.attention.iter().zip(attention) {
                    gradient[begin + output] = get(row, outputs, output);
                }
            }
        }
        if let Kind::Gat { heads } = shape.kind {
            for head in 0..heads {
                gradient[attention[2] + 2 * head..][..2].copy_from_slice(&self.of_edge[head]);
            }
        }
    }
}

/// A thread's buffers from pass to pass.
#[derive(Debug, Default)]
pub struct Scratch {
    path: Path,
    packed: Vec<Packed>,
    /// The weights that `packed` arranges, with their shape.
    packed_of: (Option<Shape>, Vec<f32>),
    slopes_of: Vec<Tensors>,
    gcn: gcn::Rows,
    gat: gat::Rows,
    slopes: Vec<Lanes>,
    errors: Vec<f32>,
}

impl Scratch {
    /// With kernels compiled for a set of processor features.
    pub fn on(path: Path) -> Self {
        Self { path, ..Self::default() }
    }

    /// The path of its kernels.
    pub const fn path(&self) -> Path {
        self.path
    }
}

/// A network on a client's graph.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// How large its parts are.
    pub shape: &'a Shape,
    /// The client's graph.
    pub graph: &'a Graph,
    /// Its features.
    pub prepared: &'a Prepared,
}

impl Network<'_> {
    /// The rows of all nodes after the last layer.
    fn forward<'s>(&self, parameters: &[f32], scratch: &'s mut Scratch) -> &'s mut Scratch {
        let Self { shape, graph, prepared } = *self;
        assert_eq!(parameters.len(), shape.parameters(), "the parameter vector is the network's");
        let Scratch { path, packed, packed_of: (of_shape, of_parameters), .. } = scratch;
        // Several graphs in turn may have the same weights.
        let is_same =
            |one: &[f32]| one.iter().map(|number| number.to_bits()).eq(parameters.iter().map(|x| x.to_bits()));
        if *of_shape != Some(*shape) || !is_same(of_parameters) {
            packed.resize_with(shape.layers, Packed::default);
            packed.iter_mut().enumerate().for_each(|(layer, packed)| packed.pack(shape, layer, parameters));
            *of_shape = Some(*shape);
            of_parameters.clear();
            of_parameters.extend_from_slice(parameters);
        }
        match shape.kind {
            Kind::Gcn => gcn::forward(shape, packed, graph, prepared, &mut scratch.gcn, *path),
            Kind::Gat { .. } => gat::forward(shape, packed, graph, prepared, &mut scratch.gat, *path),
        }
        scratch
    }

    /// Predicts the chosen pairs, by nodes of which [`Network::embed`] has made the rows.
    fn scores(&self, parameters: &[f32], pairs: &Pairs, chosen: &[u32], scratch: &mut Scratch) {
        let Scratch { gcn, gat, errors, path, .. } = scratch;
        errors.resize(chosen.len(), 0.0);
        let rows = match self.shape.kind {
            Kind::Gcn => gcn.outputs.last().map_or(&[][..], |rows| rows),
            Kind::Gat { .. } => gat.last(),
        };
        let lanes = self.shape.outputs().lanes();
        run(*path, Scores { rows, lanes, ends: &pairs.ends, chosen, out: errors });
        let readout = parameters[parameters.len() - 1];
        errors.iter_mut().for_each(|score| *score += readout);
    }

    /// Makes the rows of all nodes, for [`Network::errors`].
    ///
    /// # Panics
    /// If there are not as many parameters as the network has.
    pub fn embed(&self, parameters: &[f32], scratch: &mut Scratch) {
        self.forward(parameters, scratch);
    }

    /// Predictions of pairs less their ratings, by the rows that were made last.
    pub fn errors<'s>(&self, parameters: &[f32], pairs: &Pairs, chosen: &[u32], scratch: &'s mut Scratch) -> &'s [f32] {
        self.scores(parameters, pairs, chosen, scratch);
        for (error, &pair) in scratch.errors.iter_mut().zip(chosen) {
            *error -= pairs.values[pair as usize];
        }
        &scratch.errors
    }

    /// The mean loss of a batch and its slopes; `losses` becomes the loss of each of its ratings.
    ///
    /// # Panics
    /// If a length does not fit, or the batch is empty.
    pub fn loss_and_gradient(
        &self,
        parameters: &[f32],
        (pairs, chosen): (&Pairs, &[u32]),
        gradient: &mut [f32],
        losses: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) -> f64 {
        let Self { shape, graph, prepared } = *self;
        assert_eq!(gradient.len(), parameters.len(), "a gradient has one slope for each parameter");
        assert!(!chosen.is_empty(), "a batch has ratings");
        self.embed(parameters, scratch);
        self.errors(parameters, pairs, chosen, scratch);
        let Scratch { path, packed, slopes_of, gcn, gat, slopes, errors, .. } = scratch;
        // The first layer's inputs have no slopes.
        let later = packed.iter_mut().enumerate().skip(1);
        later.for_each(|(layer, packed)| packed.turn(shape, layer, parameters));
        losses.clear();
        losses.extend(errors.iter().map(|error| error * error));
        let mean = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / chosen.len() as f64;
        let scale = 2.0 / chosen.len() as f32;
        errors.iter_mut().for_each(|error| *error *= scale);
        let lanes = shape.outputs().lanes();
        zeros(slopes, graph.nodes() * lanes);
        let rows = match shape.kind {
            Kind::Gcn => gcn.outputs.last().map_or(&[][..], |rows| rows),
            Kind::Gat { .. } => gat.last(),
        };
        run(*path, Spread { rows, lanes, ends: &pairs.ends, chosen, slopes: errors, out: slopes });
        slopes_of.resize_with(shape.layers, Tensors::default);
        slopes_of.iter_mut().enumerate().for_each(|(layer, slopes)| slopes.prepare(shape, layer));
        let weights = (&**packed, &mut **slopes_of);
        match shape.kind {
            Kind::Gcn => gcn::backward(shape, weights, graph, prepared, (gcn, slopes), *path),
            Kind::Gat { .. } => gat::backward(shape, weights, graph, prepared, (gat, slopes), *path),
        }
        slopes_of.iter().enumerate().for_each(|(layer, slopes)| slopes.unpack(shape, layer, gradient));
        gradient[parameters.len() - 1] = errors.iter().map(|&slope| f64::from(slope)).sum::<f64>() as f32;
        mean
    }
}
