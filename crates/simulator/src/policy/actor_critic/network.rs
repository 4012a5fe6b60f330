//! A network of two layers, `W2 relu(W1 x + b1) + b2`, and the optimizer that trains it.
//!
//! All numbers are `f64`. Initial weights are rounded to `f32`, so that a file of `f32` has them exactly.

use fedgenie_core::math::float::sqrt;
use fedgenie_core::rng::StreamRng;
use fedgenie_core::state::Stateful;
use fedgenie_learning::model::weights::Tensor;

/// Decay of Adam's mean of slopes, and of their squares.
const DECAYS: [f64; 2] = [0.9, 0.999];
/// Keeps Adam's steps finite.
const EPSILON: f64 = 1e-8;

/// Numbers of inputs, hidden units and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) struct Sizes {
    pub inputs: usize,
    pub hidden: usize,
    pub outputs: usize,
}

impl Sizes {
    /// Weights and biases together.
    pub const fn parameters(self) -> usize {
        let Self { inputs, hidden, outputs } = self;
        hidden * inputs + hidden + outputs * hidden + outputs
    }
}

/// Weights and biases.
#[derive(Clone, Debug, Stateful)]
#[state(check = Self::is_finite)]
pub(in crate::policy) struct Network {
    #[state(skip = "from the scenario")]
    sizes: Sizes,
    /// `W1` row by row (a row for each hidden unit), `b1`, `W2` row by row (a row for each output), `b2`.
    #[state(each)]
    pub parameters: Vec<f64>,
}

/// A network's parameters, or their slopes, by their place in it.
struct Parts<'a> {
    first: &'a mut [f64],
    first_bias: &'a mut [f64],
    second: &'a mut [f64],
    second_bias: &'a mut [f64],
}

impl Network {
    fn is_finite(&self) -> bool {
        self.parameters.iter().all(|parameter| parameter.is_finite())
    }

    /// One of zeros.
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes, parameters: vec![0.0; sizes.parameters()] }
    }

    fn parts<'a>(&self, parameters: &'a mut [f64]) -> Parts<'a> {
        let Sizes { inputs, hidden, outputs } = self.sizes;
        let (first, rest) = parameters.split_at_mut(hidden * inputs);
        let (first_bias, rest) = rest.split_at_mut(hidden);
        let (second, second_bias) = rest.split_at_mut(outputs * hidden);
        Parts { first, first_bias, second, second_bias }
    }

    /// `W1`, `b1`, `W2`, `b2`.
    fn layers(&self) -> [&[f64]; 4] {
        let Sizes { inputs, hidden, outputs } = self.sizes;
        let (first, rest) = self.parameters.split_at(hidden * inputs);
        let (first_bias, rest) = rest.split_at(hidden);
        let (second, second_bias) = rest.split_at(outputs * hidden);
        [first, first_bias, second, second_bias]
    }

    /// Xavier uniform: each weight from `±sqrt(6/(inputs + outputs))` of its layer, `W1` and then `W2`, row by row;
    /// biases 0.
    pub fn draw(&mut self, rng: &mut StreamRng) {
        let Sizes { inputs, hidden, outputs } = self.sizes;
        let mut parameters = std::mem::take(&mut self.parameters);
        parameters.fill(0.0);
        let Parts { first, second, .. } = self.parts(&mut parameters);
        for (weights, fans) in [(first, inputs + hidden), (second, hidden + outputs)] {
            let bound = sqrt(6.0 / fans as f64);
            weights.iter_mut().for_each(|weight| *weight = f64::from((bound * (2.0 * rng.uniform() - 1.0)) as f32));
        }
        self.parameters = parameters;
    }

    /// `relu(W1 x + b1)`.
    pub fn hidden(&self, input: &[f64], hidden: &mut Vec<f64>) {
        let [weights, biases, ..] = self.layers();
        hidden.clear();
        let rows = weights.chunks_exact(self.sizes.inputs).zip(biases);
        hidden.extend(rows.map(|(row, bias)| (bias + product(row, input)).max(0.0)));
    }

    /// `W2 h + b2`, appended.
    pub fn outputs(&self, hidden: &[f64], outputs: &mut Vec<f64>) {
        let [.., weights, biases] = self.layers();
        let rows = weights.chunks_exact(self.sizes.hidden).zip(biases);
        outputs.extend(rows.map(|(row, bias)| bias + product(row, hidden)));
    }

    /// Of slopes at outputs: adds those of the second layer to `gradient`, and those at hidden units to `below`.
    pub fn outputs_back(&self, hidden: &[f64], slopes: &[f64], gradient: &mut [f64], below: &mut [f64]) {
        let [.., weights, _] = self.layers();
        let Parts { second, second_bias, .. } = self.parts(gradient);
        let size = self.sizes.hidden;
        let rows = weights.chunks_exact(size).zip(second.chunks_exact_mut(size)).zip(second_bias).zip(slopes);
        for (((row, of_row), of_bias), &slope) in rows {
            // Most outputs have none: those of clients that are away.
            if slope != 0.0 {
                *of_bias += slope;
                of_row.iter_mut().zip(hidden).for_each(|(sum, unit)| *sum += slope * unit);
                below.iter_mut().zip(row).for_each(|(sum, weight)| *sum += slope * weight);
            }
        }
    }

    /// Of slopes at hidden units, after the ReLU: adds those of the first layer to `gradient`.
    pub fn hidden_back(&self, input: &[f64], hidden: &[f64], slopes: &[f64], gradient: &mut [f64]) {
        let Parts { first, first_bias, .. } = self.parts(gradient);
        let rows = first.chunks_exact_mut(self.sizes.inputs).zip(first_bias).zip(hidden).zip(slopes);
        for (((of_row, of_bias), unit), &slope) in rows {
            if *unit > 0.0 {
                *of_bias += slope;
                of_row.iter_mut().zip(input).for_each(|(sum, number)| *sum += slope * number);
            }
        }
    }

    /// Its tensors, as PyTorch would name a sequence of linear layer, ReLU and linear layer.
    pub fn tensors(&self, name: &str) -> Vec<Tensor> {
        let Sizes { inputs, hidden, outputs } = self.sizes;
        let shapes = [vec![hidden, inputs], vec![hidden], vec![outputs, hidden], vec![outputs]];
        let names = ["0.weight", "0.bias", "2.weight", "2.bias"];
        let tensor = |((part, shape), values): ((&str, Vec<usize>), &[f64])| Tensor {
            name: format!("{name}.{part}"),
            shape,
            values: values.iter().map(|&value| value as f32).collect(),
        };
        names.into_iter().zip(shapes).zip(self.layers()).map(tensor).collect()
    }
}

/// The sum of products: four partial sums, of the places with the same remainder by 4, which are then added in pairs.
/// One sum alone would wait for every addition.
fn product(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (ones, others) = (one.chunks(4), other.chunks(4));
    for (one, other) in ones.zip(others) {
        sums.iter_mut().zip(one).zip(other).for_each(|((sum, one), other)| *sum += one * other);
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// A network with Adam: `β = (0.9, 0.999)`, `ε = 1e-8`, no weight decay.
#[derive(Clone, Debug, Stateful)]
#[state(check = Self::is_sound)]
pub(in crate::policy) struct Learner {
    pub network: Network,
    #[state(skip = "from the scenario")]
    rate: f64,
    /// Of slopes, and of their squares; empty at rate 0, which takes no steps.
    #[state(each(each))]
    moments: [Vec<f64>; 2],
    /// `β^t` after `t` steps.
    powers: [f64; 2],
}

impl Learner {
    fn is_sound(&self) -> bool {
        self.powers.iter().all(|power| (0.0..=1.0).contains(power))
    }

    pub fn new(sizes: Sizes, rate: f64) -> Self {
        let moments = if rate > 0.0 { sizes.parameters() } else { 0 };
        let moments = [vec![0.0; moments], vec![0.0; moments]];
        Self { network: Network::new(sizes), rate, moments, powers: [1.0; 2] }
    }

    /// Whether it takes steps.
    pub fn learns(&self) -> bool {
        self.rate > 0.0
    }

    /// One step against a gradient. None at rate 0.
    pub fn step(&mut self, gradient: &[f64]) {
        if !self.learns() {
            return;
        }
        let [first, second] = DECAYS;
        self.powers = [self.powers[0] * first, self.powers[1] * second];
        let [rate, correction] = [self.rate / (1.0 - self.powers[0]), 1.0 / (1.0 - self.powers[1])];
        let [means, squares] = &mut self.moments;
        let moments = means.iter_mut().zip(squares);
        for ((parameter, (mean, square)), &slope) in self.network.parameters.iter_mut().zip(moments).zip(gradient) {
            *mean = first * *mean + (1.0 - first) * slope;
            *square = second * *square + (1.0 - second) * slope * slope;
            *parameter -= rate * *mean / (sqrt(*square * correction) + EPSILON);
        }
    }
}
