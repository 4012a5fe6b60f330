//! Graph networks against their definition, slopes against differences, and the same bits on every path.

use super::*;
use crate::lanes::Path;
use crate::layout::Update;
use crate::trainer::{DenseJob, LocalTraining, OptimizerConfig, Wanted};
use fedgenie_core::id::{ClientId, JobNumber, Round};
use fedgenie_core::rng::{Purpose, Streams};

/// The same in double precision, by the definition: dense matrices, no sums ahead of time.
struct Reference<'a> {
    shape: Shape,
    graph: &'a Graph,
    features: &'a [Vec<f64>],
    transition: bool,
}

impl Reference<'_> {
    fn z(&self, node: usize, other: usize) -> [f64; 2] {
        if node == other || !self.transition {
            return [0.0; 2];
        }
        [node, other].map(|end| 1.0 / self.graph.degree(end) as f64)
    }

    fn rows(&self, parameters: &[f64]) -> Vec<Vec<f64>> {
        let mut rows = self.features.to_vec();
        let mut rest = parameters;
        let mut take = |count: usize| {
            let (now, later) = rest.split_at(count);
            rest = later;
            now
        };
        let Shape { layers, hidden, kind, .. } = self.shape;
        for layer in 0..layers {
            let inputs = rows[0].len();
            let (weight, edge, bias) = (take(hidden * inputs), take(2 * hidden), take(hidden));
            let turn = |row: &Vec<f64>| -> Vec<f64> {
                (0..hidden).map(|out| (0..inputs).map(|k| weight[out * inputs + k] * row[k]).sum()).collect()
            };
            let turned: Vec<Vec<f64>> = rows.iter().map(turn).collect();
            let message = |node: usize, other: usize, out: usize| {
                let z = self.z(node, other);
                turned[other][out] + edge[2 * out] * z[0] + edge[2 * out + 1] * z[1]
            };
            let heads = self.shape.heads();
            let width = hidden / heads;
            let of_attention = match kind {
                Kind::Gcn => None,
                Kind::Gat { heads } => Some((take(hidden), take(hidden), take(2 * heads))),
            };
            rows = (0..rows.len())
                .map(|node| {
                    let around: Vec<usize> = self.graph.around(node).iter().map(|&other| other as usize).collect();
                    let weights: Vec<Vec<f64>> = match of_attention {
                        None => {
                            let degree = |node: usize| self.graph.degree(node) as f64 + 1.0;
                            let of = |&other: &usize| 1.0 / (degree(node) * degree(other)).sqrt();
                            vec![around.iter().map(of).collect()]
                        }
                        Some((target, source, of_edge)) => (0..heads)
                            .map(|head| {
                                let part = head * width..(head + 1) * width;
                                let dot = |vector: &[f64], node: usize| -> f64 {
                                    part.clone().map(|out| vector[out] * turned[node][out]).sum()
                                };
                                let score = |&other: &usize| {
                                    let z = self.z(node, other);
                                    let score = dot(target, node)
                                        + dot(source, other)
                                        + of_edge[2 * head] * z[0]
                                        + of_edge[2 * head + 1] * z[1];
                                    if score > 0.0 { score } else { 0.2 * score }
                                };
                                let powers: Vec<f64> = around.iter().map(score).map(f64::exp).collect();
                                let total: f64 = powers.iter().sum();
                                powers.iter().map(|power| power / total).collect()
                            })
                            .collect(),
                    };
                    (0..hidden)
                        .map(|out| {
                            let of_head = &weights[out / width];
                            let sum: f64 =
                                around.iter().zip(of_head).map(|(&other, w)| w * message(node, other, out)).sum();
                            let sum = sum + bias[out];
                            if layer + 1 < layers { sum.max(0.0) } else { sum }
                        })
                        .collect()
                })
                .collect();
        }
        rows
    }

    fn loss(&self, parameters: &[f64], pairs: &Pairs, chosen: &[u32]) -> f64 {
        let rows = self.rows(parameters);
        let error = |&pair: &u32| {
            let (one, other) = pairs.ends[pair as usize];
            let score: f64 = rows[one as usize].iter().zip(&rows[other as usize]).map(|(x, y)| x * y).sum();
            score + parameters[parameters.len() - 1] - f64::from(pairs.values[pair as usize])
        };
        chosen.iter().map(|pair| error(pair) * error(pair)).sum::<f64>() / chosen.len() as f64
    }
}

/// A graph of users and items with trust among users, some nodes alone; features and ratings.
fn world(shape: &Shape, nodes: usize, seed: u64, transition: bool) -> (Graph, Vec<Vec<f64>>, Prepared, Pairs) {
    let mut rng = Streams::new(seed).stream(Purpose::Example, 0, 0);
    let mut edges = Vec::new();
    for one in 0..nodes as u32 - 1 {
        for other in one + 1..nodes as u32 - 1 {
            if rng.below(4) == 0 {
                edges.push((one, other));
            }
        }
    }
    let graph = Graph::new(nodes, &edges, transition);
    let features: Vec<Vec<f64>> = (0..nodes)
        .map(|_| (0..shape.embedding).map(|_| f64::from((rng.uniform() * 2.0 - 1.0) as f32)).collect())
        .collect();
    let prepared = Prepared::new(shape, &graph, |node, row| {
        row.iter_mut().zip(&features[node]).for_each(|(to, &from)| *to = from as f32);
    });
    let pairs = Pairs {
        ends: (0..3 * nodes).map(|_| (rng.below(nodes as u64) as u32, rng.below(nodes as u64) as u32)).collect(),
        values: (0..3 * nodes).map(|_| 1.0 + rng.below(5) as f32).collect(),
    };
    (graph, features, prepared, pairs)
}

fn shapes() -> [Shape; 7] {
    [
        Shape { kind: Kind::Gcn, layers: 1, hidden: 4, embedding: 3 },
        Shape { kind: Kind::Gcn, layers: 3, hidden: 20, embedding: 17 },
        Shape { kind: Kind::Gcn, layers: 2, hidden: 48, embedding: 16 },
        Shape { kind: Kind::Gat { heads: 1 }, layers: 2, hidden: 5, embedding: 4 },
        Shape { kind: Kind::Gat { heads: 2 }, layers: 2, hidden: 32, embedding: 18 },
        Shape { kind: Kind::Gat { heads: 3 }, layers: 3, hidden: 9, embedding: 33 },
        Shape { kind: Kind::Gat { heads: 3 }, layers: 2, hidden: 51, embedding: 3 },
    ]
}

fn weights(shape: &Shape, seed: u64) -> Vec<f32> {
    let mut parameters = vec![0.0; shape.parameters()];
    let mut rng = Streams::new(seed).stream(Purpose::ModelInit, 0, 0);
    shape.init(&mut rng, &mut parameters);
    // Biases are zero at first, which hides faults of theirs.
    parameters.iter_mut().for_each(|x| *x += 0.1 * (rng.uniform() as f32 - 0.5));
    parameters
}

#[test]
fn parameters_are_counted_as_published() {
    let gcn = Shape { kind: Kind::Gcn, layers: 5, hidden: 32, embedding: 64 };
    let gat = Shape { kind: Kind::Gat { heads: 2 }, layers: 2, hidden: 32, embedding: 64 };
    assert_eq!((gcn.parameters(), gat.parameters()), (6_625, 3_401));
    for shape in [gcn, gat].into_iter().chain(shapes()) {
        let mut end = 0;
        for tensor in shape.tensors() {
            assert_eq!(tensor.offset, end, "{}", tensor.name);
            end += tensor.entries();
        }
        assert_eq!(end, shape.parameters());
    }
    let names: Vec<String> = gat.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names[..4], ["conv.0.weight", "conv.0.edge", "conv.0.bias", "conv.0.att_target"]);
    assert_eq!((&*names[10], &*names[12]), ("conv.1.att_source", "readout.bias"));
}

#[test]
fn loss_and_slopes_are_those_of_the_definition() {
    for (index, shape) in shapes().into_iter().enumerate() {
        for transition in [true, false] {
            let (graph, features, prepared, pairs) = world(&shape, 14, index as u64, transition);
            let reference = Reference { shape, graph: &graph, features: &features, transition };
            let network = Network { shape: &shape, graph: &graph, prepared: &prepared };
            let parameters = weights(&shape, 9);
            let chosen: Vec<u32> = (0..pairs.ends.len() as u32).filter(|pair| pair % 3 != 1).collect();
            let (mut gradient, mut losses) = (vec![f32::NAN; parameters.len()], Vec::new());
            let mut scratch = Scratch::default();
            let batch = (&pairs, &*chosen);
            let loss = network.loss_and_gradient(&parameters, batch, &mut gradient, &mut losses, &mut scratch);
            let mut exact: Vec<f64> = parameters.iter().map(|&x| f64::from(x)).collect();
            let expected = reference.loss(&exact, &pairs, &chosen);
            assert!((loss / expected - 1.0).abs() < 1e-5, "{shape:?}: {loss}, {expected}");
            // Short, so that no ReLU turns within it.
            let step = 1e-7;
            let largest = gradient.iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
            for place in 0..parameters.len() {
                let own = exact[place];
                let mut at = |number: f64| {
                    exact[place] = number;
                    reference.loss(&exact, &pairs, &chosen)
                };
                let expected = (at(own + step) - at(own - step)) / (2.0 * step);
                exact[place] = own;
                let error = (f64::from(gradient[place]) - expected).abs();
                assert!(error < 2e-5 * f64::from(largest) + 1e-5, "{shape:?}, {place}: {} {expected}", gradient[place]);
            }
        }
    }
}

/// A graph and a copy of it beside it, whose nodes fall into other blocks: the same mean loss and slopes.
#[test]
fn later_blocks_of_nodes_count_like_the_first() {
    let nodes = 50;
    for shape in shapes() {
        let (graph, features, prepared, pairs) = world(&shape, nodes, 4, true);
        let copy = |&(one, other): &(u32, u32)| (one + nodes as u32, other + nodes as u32);
        let pairs_of = |one: u32| graph.around(one as usize).iter().map(move |&other| (one, other));
        let edges: Vec<_> = (0..nodes as u32).flat_map(pairs_of).filter(|(one, other)| one < other).collect();
        let doubled = |ends: &[(u32, u32)]| ends.iter().copied().chain(ends.iter().map(copy)).collect::<Vec<_>>();
        let twice = Graph::new(2 * nodes, &doubled(&edges), true);
        let of_twice = Prepared::new(&shape, &twice, |node, row| {
            row.iter_mut().zip(&features[node % nodes]).for_each(|(to, &from)| *to = from as f32);
        });
        let both = Pairs { ends: doubled(&pairs.ends), values: [&*pairs.values, &pairs.values].concat() };
        let parameters = weights(&shape, 2);
        let found = [(&graph, &prepared, &pairs), (&twice, &of_twice, &both)].map(|(graph, prepared, pairs)| {
            let (mut gradient, mut losses) = (vec![0.0; parameters.len()], Vec::new());
            let all: Vec<u32> = (0..pairs.ends.len() as u32).collect();
            let network = Network { shape: &shape, graph, prepared };
            let batch = (pairs, &*all);
            let loss =
                network.loss_and_gradient(&parameters, batch, &mut gradient, &mut losses, &mut Scratch::default());
            (loss, gradient)
        });
        let [(loss, gradient), (loss_of_twice, gradient_of_twice)] = found;
        assert!((loss / loss_of_twice - 1.0).abs() < 1e-9, "{shape:?}: {loss}, {loss_of_twice}");
        let largest = gradient.iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
        for (one, two) in gradient.iter().zip(&gradient_of_twice) {
            assert!((one - two).abs() < 1e-5 * largest, "{shape:?}: {one}, {two}");
        }
    }
}

#[test]
fn every_path_gives_the_same_bits_and_scratch_leaves_no_trace() {
    for shape in shapes() {
        let (graph, _, prepared, pairs) = world(&shape, 150, 5, true);
        let (small, _, of_small, few) = world(&shape, 9, 6, true);
        let parameters = weights(&shape, 3);
        let mut found: Vec<(u64, Vec<u32>)> = Vec::new();
        for path in Path::all() {
            let mut scratch = Scratch::on(path);
            for repeat in 0..2 {
                let all: Vec<u32> = (0..pairs.ends.len() as u32).collect();
                let network = Network { shape: &shape, graph: &graph, prepared: &prepared };
                let (mut gradient, mut losses) = (vec![0.0; parameters.len()], Vec::new());
                let loss =
                    network.loss_and_gradient(&parameters, (&pairs, &all), &mut gradient, &mut losses, &mut scratch);
                found.push((loss.to_bits(), gradient.iter().map(|slope| slope.to_bits()).collect()));
                if repeat == 0 {
                    let other = Network { shape: &shape, graph: &small, prepared: &of_small };
                    other.loss_and_gradient(&parameters, (&few, &[0, 3]), &mut gradient, &mut losses, &mut scratch);
                }
            }
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{shape:?}");
    }
}

#[test]
fn training_descends_and_reports_what_it_met() {
    let shape = Shape { kind: Kind::Gcn, layers: 2, hidden: 8, embedding: 8 };
    let (graph, _, prepared, pairs) = world(&shape, 30, 2, true);
    let network = Network { shape: &shape, graph: &graph, prepared: &prepared };
    let sgd = OptimizerConfig::Sgd { lr: 0.05, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let start = weights(&shape, 1);
    let whole = LocalTraining::new(40, usize::MAX, &sgd).unwrap();
    let batches = LocalTraining::new(1, 7, &sgd).unwrap();
    let streams = Streams::new(1);
    let (key, sent) = ((ClientId(0), Round(1), JobNumber(1)), (&*start, start.len()));
    let job = |settings| DenseJob { keeps_whole: true, loss_rms: true, ..DenseJob::new(settings, &streams, key, sent) };
    let (mut worker, mut update) = (Worker::default(), Update::default());
    worker.run(&network, &pairs, &job(&whole), Wanted::Update(&mut update));
    let trained = update.clone();
    // A full batch in its own order: plain descent.
    let mut expected = start.clone();
    let all: Vec<u32> = (0..pairs.ends.len() as u32).collect();
    let (mut gradient, mut losses, mut scratch) = (vec![0.0; start.len()], Vec::new(), Scratch::default());
    let mut first = None;
    let mut last = 0.0;
    for _ in 0..40 {
        last = network.loss_and_gradient(&expected, (&pairs, &all), &mut gradient, &mut losses, &mut scratch);
        first.get_or_insert(last);
        expected.iter_mut().zip(&gradient).for_each(|(x, slope)| *x -= 0.05_f32 * slope);
    }
    assert_eq!(trained.parameters, expected);
    let loss = trained.first_loss;
    assert!((loss - first.unwrap()).abs() < 1e-9 && last < 0.5 * loss && !trained.diverged && trained.steps == 40);
    assert!(trained.loss_rms.unwrap() >= loss);
    worker.run(&network, &pairs, &job(&batches), Wanted::Update(&mut update));
    assert!(update.parameters != expected && update.parameters != start);
    let steep = OptimizerConfig::Sgd { lr: 1e6, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let steep = LocalTraining::new(40, 7, &steep).unwrap();
    worker.run(&network, &pairs, &job(&steep), Wanted::Update(&mut update));
    assert!(update.diverged);
    worker.run(&network, &pairs, &job(&whole), Wanted::Update(&mut update));
    assert_eq!(update, trained, "a job that diverged leaves nothing behind");
}
