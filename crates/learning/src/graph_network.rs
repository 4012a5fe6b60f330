//! Graph neural networks that predict ratings: graph convolution and graph attention over users, items and trust.
//!
//! # Definition
//! A client has a graph: nodes with features `x`, undirected edges. `d_u` is a node's number of neighbours, `N(u)` are
//! these, and `z_uv = (1/d_u, 1/d_v)` are an edge's *transition probabilities*: how likely a walk at one end takes this
//! edge. A node is also joined to itself, with `z_uu = 0`. A layer turns the rows `h` of nodes into rows `h'` of
//! `hidden` numbers; the first gets the features, and all but the last end in a ReLU:
//!
//! | | `h'_u`, sums over `N(u) ∪ {u}` |
//! |---|---|
//! | `gcn` | `Σ_v (W h_v + E z_uv)/√((d_u+1)(d_v+1)) + b` |
//! | `gat` | for each head, side by side: `Σ_v α_uv (g_v + E z_uv) + b`, `g = W h`, `α = softmax_v leaky(a_t·g_u + a_s·g_v + a_e·z_uv)`, with slope 0.2 below zero |
//!
//! The rating of item `i` by user `u` is predicted as `c + ⟨h_u, h_i⟩` from the rows of the last layer. The loss of a
//! rating is the squared error, that of a batch the mean. Messages always pass over the whole graph of a client; a
//! batch is of ratings.
//!
//! # Inputs
//! A [`Graph`] with its [`Prepared`] features; [`Pairs`] of nodes with ratings. Everything is `f32`.
//!
//! # Source
//! T. N. Kipf, M. Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017; P. Veličković
//! et al., "Graph attention networks", ICLR 2018; transition probabilities as features of edges: H. Xu et al., "FedACS: an
//! adaptive client selection framework for communication-efficient federated graph learning", IEEE Trans. Mobile
//! Computing, 2025, section III.
//!
//! # Deviations from the source
//! The source says that edges carry transition probabilities, not how they enter a layer, nor how training starts: here
//! by a matrix `E`, and from Xavier's weights with `c` and biases 0.
//!
//! # Cost
//! A layer takes `2·in·out` operations for each node and `out` additions for each edge and direction; slopes twice
//! that. What does not depend on weights is worked out once: the first convolution's sums over neighbours, and all sums
//! of `z`. A worker keeps the rows of every layer: `4·hidden·layers` bytes a node, with `gat` also `8·heads` bytes for
//! each edge, direction and layer, heads rounded up to an even number.
//!
//! # Determinism
//! Sums over neighbours are in ascending order of nodes, from zero; a product takes one fused multiply-add for each
//! number in ascending order, after the constants; sums over nodes are those of blocks of 64 nodes, added up in order;
//! sums over ratings are in their order, in `f64` for the loss. Rows are filled up to 16 numbers with zeros, which
//! change no sum. Neither path nor threads change a bit.

mod gat;
mod gcn;
mod job;
mod kernels;
mod pass;

pub use job::Worker;
pub use pass::{Network, Scratch};

use crate::lanes::{LANES, Lanes};
use crate::model::TensorLayout;
use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;

/// Which layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Graph convolution.
    Gcn,
    /// Graph attention with so many heads.
    Gat {
        /// At least 1, a divisor of `hidden`.
        heads: usize,
    },
}

/// How large the parts of a network are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which layers.
    pub kind: Kind,
    /// Number of layers; at least 1.
    pub layers: usize,
    /// Numbers of a node after each layer; at least 1.
    pub hidden: usize,
    /// Features of a node; at least 1.
    pub embedding: usize,
}

/// The numbers of a row, cut into parts that each fill whole vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    parts: usize,
    width: usize,
}

impl Columns {
    /// Vectors of a part.
    const fn part_lanes(self) -> usize {
        self.width.div_ceil(LANES)
    }

    /// Vectors of a row.
    const fn lanes(self) -> usize {
        self.parts * self.part_lanes()
    }

    const fn count(self) -> usize {
        self.parts * self.width
    }

    /// Vector and lane of a number.
    const fn place(self, index: usize) -> (usize, usize) {
        let (part, offset) = (index / self.width, index % self.width);
        (part * self.part_lanes() + offset / LANES, offset % LANES)
    }
}

/// Where the tensors of a layer begin.
#[derive(Clone, Copy, Debug)]
struct Places {
    weight: usize,
    edge: usize,
    bias: usize,
    /// With attention: target, source, edge.
    attention: [usize; 3],
    end: usize,
}

impl Shape {
    const fn heads(&self) -> usize {
        match self.kind {
            Kind::Gcn => 1,
            Kind::Gat { heads } => heads,
        }
    }

    /// The columns that a layer reads.
    const fn inputs(&self, layer: usize) -> Columns {
        if layer == 0 { Columns { parts: 1, width: self.embedding } } else { self.outputs() }
    }

    /// The columns that every layer writes.
    const fn outputs(&self) -> Columns {
        Columns { parts: self.heads(), width: self.hidden / self.heads() }
    }

    fn places(&self, layer: usize) -> Places {
        let hidden = self.hidden;
        let of_layer = |layer: usize| {
            let attention = match self.kind {
                Kind::Gcn => 0,
                Kind::Gat { heads } => 2 * hidden + 2 * heads,
            };
            hidden * self.inputs(layer).count() + 3 * hidden + attention
        };
        let weight = (0..layer).map(of_layer).sum::<usize>();
        let edge = weight + hidden * self.inputs(layer).count();
        let bias = edge + 2 * hidden;
        let target = bias + hidden;
        Places {
            weight,
            edge,
            bias,
            attention: [target, target + hidden, target + 2 * hidden],
            end: weight + of_layer(layer),
        }
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.places(self.layers - 1).end + 1
    }

    /// The parts of the parameter vector, in its order.
    pub fn tensors(&self) -> Vec<TensorLayout> {
        let tensor = |name: String, shape: &[usize], offset| TensorLayout { name, shape: shape.to_vec(), offset };
        let Self { layers, hidden, .. } = *self;
        let mut tensors = Vec::new();
        for layer in 0..layers {
            let Places { weight, edge, bias, attention: [target, source, of_edge], .. } = self.places(layer);
            tensors.extend([
                tensor(format!("conv.{layer}.weight"), &[hidden, self.inputs(layer).count()], weight),
                tensor(format!("conv.{layer}.edge"), &[hidden, 2], edge),
                tensor(format!("conv.{layer}.bias"), &[hidden], bias),
            ]);
            if let Kind::Gat { heads } = self.kind {
                tensors.extend([
                    tensor(format!("conv.{layer}.att_target"), &[heads, hidden / heads], target),
                    tensor(format!("conv.{layer}.att_source"), &[heads, hidden / heads], source),
                    tensor(format!("conv.{layer}.att_edge"), &[heads, 2], of_edge),
                ]);
            }
        }
        tensors.push(tensor("readout.bias".to_owned(), &[1], self.parameters() - 1));
        tensors
    }

    /// Fills the parameters that a run starts from, tensor by tensor and row by row: those with two dimensions uniform
    /// within `±√(6/(in + out))` (Xavier), biases zero.
    ///
    /// # Panics
    /// If there are not as many parameters as the network has.
    pub fn init(&self, rng: &mut StreamRng, parameters: &mut [f32]) {
        assert_eq!(parameters.len(), self.parameters(), "the parameter vector is the network's");
        for TensorLayout { shape, offset, .. } in self.tensors() {
            let numbers = &mut parameters[offset..][..shape.iter().product()];
            match *shape {
                [outputs, inputs] => {
                    let bound = sqrt(6.0 / (inputs + outputs) as f64);
                    numbers.fill_with(|| (bound * (2.0 * rng.uniform() - 1.0)) as f32);
                }
                _ => numbers.fill(0.0),
            }
        }
    }
}

/// Nodes and their neighbours, each node among its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Node `u` has `neighbours[offsets[u]..offsets[u + 1]]`.
    offsets: Vec<u32>,
    /// Ascending for each node.
    neighbours: Vec<u32>,
    /// `1/√(d+1)` of each node.
    roots: Vec<f32>,
    /// `1/d` of each node; 0 without neighbours, or where edges have no transition probabilities.
    shares: Vec<f32>,
    /// Of each entry of `neighbours`, the shares of the node and of the neighbour; 0 where these are the same node.
    between: [Vec<f32>; 2],
    /// The node of each entry of `neighbours`.
    owners: Vec<u32>,
}

impl Graph {
    /// The graph of so many nodes with these undirected edges, each once and between two nodes; `transition` says
    /// whether they carry transition probabilities.
    ///
    /// # Panics
    /// If an edge is there twice, joins a node to itself, or an end is not there.
    pub fn new(nodes: usize, edges: &[(u32, u32)], transition: bool) -> Self {
        let mut offsets = vec![0_u32; nodes + 1];
        for &(one, other) in edges {
            assert!(one != other, "a node is its own neighbour already");
            offsets[one as usize + 1] += 1;
            offsets[other as usize + 1] += 1;
        }
        let degrees: Vec<u32> = offsets[1..].to_vec();
        for node in 0..nodes {
            offsets[node + 1] += offsets[node] + 1;
        }
        let mut neighbours = vec![0; offsets[nodes] as usize];
        let mut next: Vec<u32> = offsets[..nodes].to_vec();
        let mut put = |node: u32, neighbour: u32| {
            neighbours[next[node as usize] as usize] = neighbour;
            next[node as usize] += 1;
        };
        for &(one, other) in edges {
            put(one, other);
            put(other, one);
        }
        (0..nodes as u32).for_each(|node| put(node, node));
        for ends in offsets.windows(2) {
            let row = &mut neighbours[ends[0] as usize..ends[1] as usize];
            row.sort_unstable();
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]), "each edge is there once");
        }
        let root = |&degree: &u32| (1.0 / sqrt(f64::from(degree) + 1.0)) as f32;
        let share = |&degree: &u32| if transition && degree > 0 { (1.0 / f64::from(degree)) as f32 } else { 0.0 };
        let shares: Vec<f32> = degrees.iter().map(share).collect();
        let mut between = [const { Vec::new() }; 2];
        for node in 0..nodes {
            for &other in &neighbours[offsets[node] as usize..offsets[node + 1] as usize] {
                let is_other = other as usize != node;
                between[0].push(if is_other { shares[node] } else { 0.0 });
                between[1].push(if is_other { shares[other as usize] } else { 0.0 });
            }
        }
        let entries = |node: u32| offsets[node as usize + 1] - offsets[node as usize];
        let owners = (0..nodes as u32).flat_map(|node| (0..entries(node)).map(move |_| node)).collect();
        Self { roots: degrees.iter().map(root).collect(), shares, between, owners, offsets, neighbours }
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> usize {
        self.roots.len()
    }

    /// Number of edges.
    pub const fn edges(&self) -> usize {
        (self.neighbours.len() - self.nodes()) / 2
    }

    /// A node's neighbours and itself, ascending.
    pub fn around(&self, node: usize) -> &[u32] {
        &self.neighbours[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// A node's number of neighbours.
    pub fn degree(&self, node: usize) -> usize {
        self.around(node).len() - 1
    }
}

/// A network's quantities of a graph that do not depend on weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The input of the first weights: features, or for a convolution their sums over neighbours.
    inputs: Vec<Lanes>,
    /// For a convolution, of each node `Σ_v z_uv/√((d_u+1)(d_v+1))`.
    transitions: [Vec<f32>; 2],
}

impl Prepared {
    /// Prepares a graph whose node `u` has the features that `feature` writes.
    pub fn new(shape: &Shape, graph: &Graph, mut feature: impl FnMut(usize, &mut [f32])) -> Self {
        let columns = shape.inputs(0);
        let mut inputs = vec![Lanes::ZERO; graph.nodes() * columns.lanes()];
        let mut row = vec![0.0; columns.count()];
        for (node, lanes) in inputs.chunks_exact_mut(columns.lanes()).enumerate() {
            feature(node, &mut row);
            lanes.iter_mut().zip(row.chunks(LANES)).for_each(|(lanes, numbers)| *lanes = Lanes::load_partial(numbers));
        }
        if shape.kind != Kind::Gcn {
            return Self { inputs, transitions: [Vec::new(), Vec::new()] };
        }
        let (inputs, transitions) = gcn::prepare(graph, &inputs, columns.lanes());
        Self { inputs, transitions }
    }
}

/// Ratings between nodes of a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// Two nodes each: user and item.
    pub ends: Vec<(u32, u32)>,
    /// The ratings.
    pub values: Vec<f32>,
}

#[cfg(test)]
mod tests;
