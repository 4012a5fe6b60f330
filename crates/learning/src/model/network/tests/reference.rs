//! The loss of a network a second time: example by example in `f64`, straight from the definitions.

use super::super::layer::{Layer, Op};
use super::super::ops::{Activation, PoolKind};
use super::super::{Loss, Network};
use crate::data::{Dataset, Shape};
use crate::model::network::kernels::Layout;

/// Outputs of every layer: example × channel × row × column.
pub struct Reference<'a> {
    pub network: &'a Network,
    pub data: &'a Dataset,
    pub batch: &'a [u32],
    /// Random bits of dropout, in the order in which they are drawn; empty for an evaluation.
    pub noise: Option<Vec<u64>>,
}

fn offset(shape: Shape, example: usize, channel: usize, y: usize, x: usize) -> usize {
    ((example * shape.channels + channel) * shape.height + y) * shape.width + x
}

/// The row or column at a signed distance, if it is inside.
fn inside(side: usize, at: usize, step: usize, padding: usize) -> Option<usize> {
    (at + step).checked_sub(padding).filter(|&moved| moved < side)
}

impl Reference<'_> {
    fn for_each(&self, shape: Shape, mut function: impl FnMut(usize, usize, usize, usize) -> f64) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.batch.len() * shape.len());
        for b in 0..self.batch.len() {
            for c in 0..shape.channels {
                for y in 0..shape.height {
                    for x in 0..shape.width {
                        out.push(function(b, c, y, x));
                    }
                }
            }
        }
        out
    }

    /// The outputs of the last layer.
    pub fn outputs(&self, parameters: &[f64]) -> Vec<f64> {
        let mut values: Vec<Vec<f64>> = Vec::new();
        let mut bits = self.noise.clone().unwrap_or_default().into_iter();
        for layer in &*self.network.layers {
            let out = self.layer(layer, &values, parameters, &mut bits);
            values.push(out);
        }
        values.pop().unwrap()
    }

    fn layer(&self, layer: &Layer, values: &[Vec<f64>], w: &[f64], bits: &mut impl Iterator<Item = u64>) -> Vec<f64> {
        let shape = layer.shape;
        let from = |input: usize| (self.network.layers[layer.inputs[input]].shape, &values[layer.inputs[input]]);
        let is_training = self.noise.is_some();
        let mut out = match &layer.op {
            Op::Input => self.for_each(shape, |b, c, y, x| {
                f64::from(self.data.numbers().unwrap().row(self.batch[b])[offset(shape, 0, c, y, x)])
            }),
            Op::Conv(conv) => {
                let (source, input) = from(0);
                let (size, stride, padding) = (conv.window.size, conv.window.stride, conv.window.padding);
                self.for_each(shape, |b, o, y, x| {
                    let mut sum = conv.bias.map_or(0.0, |bias| w[bias + o]);
                    for c in 0..source.channels {
                        for ky in 0..size {
                            for kx in 0..size {
                                let at = inside(source.height, stride * y, ky, padding).zip(inside(
                                    source.width,
                                    stride * x,
                                    kx,
                                    padding,
                                ));
                                if let Some((iy, ix)) = at {
                                    let weight = w[conv.weights + ((o * source.channels + c) * size + ky) * size + kx];
                                    sum += weight * input[offset(source, b, c, iy, ix)];
                                }
                            }
                        }
                    }
                    sum
                })
            }
            Op::Dense(dense) => {
                let (source, input) = from(0);
                let features = source.len();
                self.for_each(shape, |b, o, _, _| {
                    let row = &w[dense.weights + o * features..][..features];
                    let product: f64 = row.iter().zip(&input[b * features..]).map(|(w, x)| w * x).sum();
                    product + w[dense.bias + o]
                })
            }
            Op::Pool(pool) => {
                let (source, input) = from(0);
                let (size, stride, padding) = (pool.window.size, pool.window.stride, pool.window.padding);
                self.for_each(shape, |b, c, y, x| {
                    let pixels = (0..size).flat_map(|ky| (0..size).map(move |kx| (ky, kx)));
                    let numbers = pixels.filter_map(|(ky, kx)| {
                        let iy = inside(source.height, stride * y, ky, padding)?;
                        let ix = inside(source.width, stride * x, kx, padding)?;
                        Some(input[offset(source, b, c, iy, ix)])
                    });
                    match pool.kind {
                        PoolKind::Max => numbers.fold(f64::NEG_INFINITY, f64::max),
                        PoolKind::Average => numbers.sum::<f64>() / (size * size) as f64,
                    }
                })
            }
            Op::Activation(activation) => from(0)
                .1
                .iter()
                .map(|&x| match activation {
                    Activation::Relu => x.max(0.0),
                    Activation::LeakyRelu(slope) => x.max(0.0) + f64::from(*slope) * x.min(0.0),
                    Activation::Gelu => x * 0.5 * (1.0 + libm::erf(x / 2.0_f64.sqrt())),
                    Activation::Tanh => libm::tanh(x),
                })
                .collect(),
            Op::BatchNorm(norm) => {
                let input = from(0).1;
                let moments: Vec<(f64, f64)> = (0..shape.channels)
                    .map(|channel| {
                        if !is_training {
                            let running = self.network.trained + norm.running + channel;
                            return (w[running], w[running + shape.channels]);
                        }
                        let of_channel = || {
                            (0..self.batch.len()).flat_map(move |b| {
                                let start = offset(shape, b, channel, 0, 0);
                                start..start + shape.height * shape.width
                            })
                        };
                        let count = of_channel().count() as f64;
                        let mean = of_channel().map(|offset| input[offset]).sum::<f64>() / count;
                        (mean, of_channel().map(|offset| (input[offset] - mean).powi(2)).sum::<f64>() / count)
                    })
                    .collect();
                self.for_each(shape, |b, c, y, x| {
                    let (mean, variance) = moments[c];
                    let normal = (input[offset(shape, b, c, y, x)] - mean) / (variance + 1e-5).sqrt();
                    normal * w[norm.scale + c] + w[norm.shift + c]
                })
            }
            Op::GroupNorm(norm) => {
                let input = from(0).1;
                let size = shape.channels / norm.groups;
                let count = size * shape.height * shape.width;
                self.for_each(shape, |b, c, y, x| {
                    let group = &input[offset(shape, b, c / size * size, 0, 0)..][..count];
                    let mean = group.iter().sum::<f64>() / count as f64;
                    let variance = group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count as f64;
                    let normal = (input[offset(shape, b, c, y, x)] - mean) / (variance + 1e-5).sqrt();
                    normal * w[norm.scale + c] + w[norm.shift + c]
                })
            }
            Op::Add { .. } => from(0).1.iter().zip(from(1).1).map(|(one, two)| one + two).collect(),
            Op::Dropout(dropout) => {
                let input = from(0).1;
                if !is_training {
                    return input.clone();
                }
                let layout = Layout::new(shape, self.batch.len());
                let draws: Vec<u64> = bits.by_ref().take(layout.len() / 4).collect();
                let threshold = f64::from(dropout.threshold);
                self.for_each(shape, |b, c, y, x| {
                    let at = c * layout.plane() + y * layout.row + x * layout.batch + b;
                    let draw = f64::from((draws[at / 4] >> (16 * (at % 4))) as u16);
                    let factor = if draw >= threshold { 65_536.0 / (65_536.0 - threshold) } else { 0.0 };
                    input[offset(shape, b, c, y, x)] * factor
                })
            }
            Op::Embedding(embedding) => {
                let (source, input) = from(0);
                self.for_each(shape, |b, c, _, _| {
                    let entry = input[b * source.len() + c / embedding.dimensions] as usize;
                    w[embedding.table + entry * embedding.dimensions + c % embedding.dimensions]
                })
            }
        };
        if layer.op.has_relu() {
            out.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        out
    }

    /// The mean loss.
    pub fn loss(&self, parameters: &[f64]) -> f64 {
        let outputs = self.outputs(parameters);
        let count = self.network.outputs();
        let losses = self.batch.iter().zip(outputs.chunks(count)).map(|(&example, scores)| match self.network.loss {
            Loss::CrossEntropy => {
                let label = self.data.classes().unwrap().0[example as usize];
                let sum: f64 = scores.iter().map(|&score| libm::exp(score)).sum();
                libm::log(sum) - scores[usize::from(label)]
            }
            Loss::SquaredError => (scores[0] - f64::from(self.data.values().unwrap()[example as usize])).powi(2),
        });
        losses.sum::<f64>() / self.batch.len() as f64
    }

    /// The derivative by one parameter, as a central difference.
    pub fn slope(&self, parameters: &[f64], index: usize) -> f64 {
        const STEP: f64 = 1e-5;
        let at = |step: f64| {
            let mut moved = parameters.to_vec();
            moved[index] += step;
            self.loss(&moved)
        };
        (at(STEP) - at(-STEP)) / (2.0 * STEP)
    }
}
