//! The model in `f64`, pair by pair, straight from its definition.

use crate::dmrl::{Batch, Features, Objective, Shape};

/// A parameter vector by the names of its tensors.
pub struct Tensors<'a> {
    pub shape: &'a Shape,
    pub values: &'a [f64],
}

impl Tensors<'_> {
    fn of(&self, name: &str) -> &[f64] {
        let tensors = self.shape.tensors();
        let found = tensors.iter().find(|tensor| tensor.name == name).unwrap();
        &self.values[found.offset..][..found.entries()]
    }

    fn layer(&self, name: &str, input: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.of(&format!("{name}.weight")), self.of(&format!("{name}.bias")));
        let rows = weight.chunks_exact(input.len()).zip(bias);
        rows.map(|(row, bias)| bias + row.iter().zip(input).map(|(w, x)| w * x).sum::<f64>()).collect()
    }

    /// The channels of a user and an item.
    pub fn channels(&self, features: &Features, user: u32, item: u32) -> Vec<Vec<f64>> {
        let dim = self.shape.dim;
        let row = |name: &str, row: u32| self.of(name)[row as usize * dim..][..dim].to_vec();
        let mut channels = vec![row("users.weight", user), row("items.weight", item)];
        for (mode, name) in ["text", "image"].into_iter().enumerate() {
            let Some(width) = self.shape.features[mode] else { continue };
            let own = &features.0[mode][item as usize * width..][..width];
            let own: Vec<f64> = own.iter().map(|&number| f64::from(number)).collect();
            let leak = |x: Vec<f64>| x.into_iter().map(|x| if x > 0.0 { x } else { 0.01 * x }).collect::<Vec<f64>>();
            let hidden = leak(self.layer(&format!("{name}.0"), &own));
            channels.push(leak(self.layer(&format!("{name}.2"), &hidden)));
        }
        channels
    }

    pub fn score(&self, features: &Features, user: u32, item: u32) -> f64 {
        let channels = self.channels(features, user, item);
        let width = self.shape.width();
        let mut score = 0.0;
        for factor in 0..self.shape.factors {
            let block = |channel: usize| &channels[channel][factor * width..(factor + 1) * width];
            let all: Vec<f64> = (0..channels.len()).flat_map(|channel| block(channel).to_vec()).collect();
            let hidden: Vec<f64> = self.layer("attention.0", &all).into_iter().map(f64::tanh).collect();
            let logits = self.layer("attention.2", &hidden);
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            for (channel, logit) in logits.iter().enumerate().skip(1) {
                let product: f64 = block(0).iter().zip(block(channel)).map(|(p, e)| p * e).sum();
                let gelu = product * 0.5 * (1.0 + libm::erf(product / 2.0_f64.sqrt()));
                score += logit.exp() / total * gelu;
            }
        }
        score
    }

    /// The loss of each example, and the mean distance correlation of the positive pairs.
    pub fn loss(&self, features: &Features, batch: Batch<'_>, objective: &Objective) -> (Vec<f64>, f64) {
        let count = batch.users.len();
        let mut losses = Vec::new();
        for example in 0..count {
            let user = batch.users[example];
            let positive = self.score(features, user, batch.positives[example]);
            let negatives = batch.negatives[example..].iter().step_by(count);
            let short =
                negatives.map(|&item| f64::from(objective.margin) - positive + self.score(features, user, item));
            losses.push(short.map(|short| short.max(0.0)).sum::<f64>() / objective.negatives as f64);
        }
        let rows: Vec<Vec<Vec<f64>>> =
            (0..count).map(|row| self.channels(features, batch.users[row], batch.positives[row])).collect();
        let (width, factors) = (self.shape.width(), self.shape.factors);
        let (mut sum, mut parts) = (0.0, 0);
        for channel in 0..self.shape.channels() {
            let block = |factor: usize| -> Vec<Vec<f64>> {
                rows.iter().map(|row| row[channel][factor * width..(factor + 1) * width].to_vec()).collect()
            };
            for x in 0..factors {
                for y in x + 1..factors {
                    sum += correlation(&block(x), &block(y));
                    parts += 1;
                }
            }
        }
        (losses, if parts == 0 { 0.0 } else { sum / f64::from(parts) })
    }

    /// The loss that a step descends.
    pub fn objective(&self, features: &Features, batch: Batch<'_>, objective: &Objective) -> f64 {
        let (losses, correlation) = self.loss(features, batch, objective);
        losses.iter().sum::<f64>() / losses.len() as f64 + objective.disentangle * correlation
    }
}

/// The distance correlation of two sets of rows.
pub fn correlation(x: &[Vec<f64>], y: &[Vec<f64>]) -> f64 {
    if x.len() < 2 {
        return 0.0;
    }
    let covariance = |x: &[Vec<f64>], y: &[Vec<f64>]| {
        let (a, b) = (centred(x), centred(y));
        let count = (x.len() * x.len()) as f64;
        let products = a.iter().flatten().zip(b.iter().flatten());
        let mean = products.map(|(a, b)| a * b).sum::<f64>() / count;
        (mean.max(0.0) + 1e-8).sqrt()
    };
    covariance(x, y) / (covariance(x, x) * covariance(y, y)).sqrt()
}

fn centred(x: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let distance = |one: &Vec<f64>, other: &Vec<f64>| {
        let squares = one.iter().zip(other).map(|(one, other)| (one - other) * (one - other));
        (squares.sum::<f64>() + 1e-8).sqrt()
    };
    let a: Vec<Vec<f64>> = x.iter().map(|one| x.iter().map(|other| distance(one, other)).collect()).collect();
    let count = x.len();
    let of_row = |i: usize| a[i].iter().sum::<f64>() / count as f64;
    let of_column = |j: usize| a.iter().map(|row| row[j]).sum::<f64>() / count as f64;
    let all = (0..count).map(of_row).sum::<f64>() / count as f64;
    (0..count).map(|i| (0..count).map(|j| a[i][j] - of_row(i) - of_column(j) + all).collect()).collect()
}
