//! Losses of examples, with their slopes and hits.
//!
//! # Definition
//! Cross-entropy of the softmax: `ln Σ_c e^{z_c − z_max} − (z_y − z_max)`, whose derivative by `z_c` is
//! `p_c − 1_{c = y}`; squared error `(ŷ − y)²`, whose derivative is `2 (ŷ − y)`. Derivatives are of the mean over the
//! batch.
//!
//! # Determinism
//! Exponentials of an example are added in ascending class; losses in `f64` in the order of the batch.

use super::super::kernels::Layout;
use super::Resources;
use crate::lanes::{Kernel, LANES, Lanes, functions, run};

struct Softmax<'a> {
    layout: Layout,
    scores: &'a [f32],
    slopes: &'a mut [f32],
    /// Largest score and logarithm of the sum for each example.
    largest: &'a mut [f32],
    logarithm: &'a mut [f32],
    scale: f32,
}

impl Kernel for Softmax<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (classes, row) = (self.layout.shape.channels, self.layout.row);
        for vector in 0..row / LANES {
            let start = |class: usize| class * row + vector * LANES;
            let mut largest = Lanes::splat(f32::NEG_INFINITY);
            for class in 0..classes {
                largest = Lanes::load(&self.scores[start(class)..]).max(largest);
            }
            let mut sum = Lanes::ZERO;
            for class in 0..classes {
                let exponential = (Lanes::load(&self.scores[start(class)..]) - largest).map(functions::exp);
                exponential.store(&mut self.slopes[start(class)..]);
                sum = sum + exponential;
            }
            for class in 0..classes {
                let probability = Lanes::load(&self.slopes[start(class)..]) / sum;
                (probability * Lanes::splat(self.scale)).store(&mut self.slopes[start(class)..]);
            }
            largest.store(&mut self.largest[vector * LANES..]);
            sum.map(functions::ln).store(&mut self.logarithm[vector * LANES..]);
        }
    }
}

/// The sum of losses; leaves the derivatives of the mean loss in `slopes`. `work` has two numbers for each entry of a
/// row.
pub fn cross_entropy(
    layout: Layout,
    scores: &[f32],
    labels: impl Iterator<Item = u8>,
    slopes: &mut [f32],
    Resources { work, path }: Resources<'_>,
) -> f64 {
    let row = layout.row;
    let (largest, logarithm) = work[..2 * row].split_at_mut(row);
    let scale = 1.0 / layout.batch as f32;
    run(path, Softmax { layout, scores, slopes: &mut *slopes, largest, logarithm, scale });
    let mut sum = 0.0;
    for (example, label) in labels.enumerate() {
        let own = usize::from(label) * row + example;
        slopes[own] -= scale;
        sum += f64::from(logarithm[example] - (scores[own] - largest[example]));
    }
    sum
}

/// How many examples have their largest score at their label, the smallest class on ties.
pub fn predictions(layout: Layout, scores: &[f32], labels: impl Iterator<Item = u8>) -> u64 {
    let hits = labels.enumerate().filter(|&(example, label)| {
        let score = |class: usize| scores[class * layout.row + example];
        let best =
            (1..layout.shape.channels).fold(0, |best, class| if score(class) > score(best) { class } else { best });
        best == usize::from(label)
    });
    hits.count() as u64
}

/// The sum of squared errors; leaves the derivatives of the mean in `slopes`.
pub fn squared_error(layout: Layout, outputs: &[f32], targets: impl Iterator<Item = f32>, slopes: &mut [f32]) -> f64 {
    let mut sum = 0.0;
    for (example, target) in targets.enumerate() {
        let error = outputs[example] - target;
        slopes[example] = 2.0 * error / layout.batch as f32;
        sum += f64::from(error) * f64::from(error);
    }
    sum
}
