//! Batch normalisation.
//!
//! # Definition
//! Training: `out = γ (x − mean) / √(var + ε) + β` with mean and variance (divided by the count) of the channel over
//! the batch; the running ones move a tenth of the way to them, the variance in its unbiased form. Evaluation: the
//! running ones are used. ε is 1e-5.
//!
//! # Source
//! S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015; constants as in PyTorch's `BatchNorm2d`.
//!
//! # Determinism
//! Sums over a channel are kept in 16 lanes, start `j` of a row in lane `j mod 16`, rows ascending, folded in halves.

use super::super::kernels::Layout;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

/// Added to a variance before its root.
const EPSILON: f32 = 1e-5;
/// Weight of a batch in the running mean and variance.
const MOMENTUM: f32 = 0.1;

/// A batch normalisation.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm {
    /// Offsets of γ and β.
    pub scale: usize,
    pub shift: usize,
    /// Offset of the running means behind the trained parameters; the variances follow.
    pub running: usize,
    pub relu: bool,
}

/// Sums `function(vector)` over the used part of a channel's rows.
#[inline(always)]
fn sum_rows(layout: Layout, planes: [&[f32]; 2], function: impl Fn(Lanes, Lanes) -> Lanes) -> f32 {
    let used = layout.used();
    let mut sum = Lanes::ZERO;
    for (one, two) in planes[0].chunks_exact(layout.row).zip(planes[1].chunks_exact(layout.row)) {
        let (ones, one_rest) = one[..used].as_chunks::<LANES>();
        let (twos, two_rest) = two[..used].as_chunks::<LANES>();
        for (one, two) in ones.iter().zip(twos) {
            keep_vectors_whole();
            sum = sum + function(Lanes(*one), Lanes(*two));
        }
        if !one_rest.is_empty() {
            let rest = function(Lanes::load_partial(one_rest), Lanes::load_partial(two_rest));
            sum = sum + rest.first(one_rest.len());
        }
    }
    let finished = sum;
    finished.sum()
}

/// `out = x · factor + addend` over whole rows, negative results zero if `relu`.
#[inline(always)]
fn scale_plane(input: &[f32], out: &mut [f32], factor: f32, addend: f32, relu: bool) {
    let (factor, addend) = (Lanes::splat(factor), Lanes::splat(addend));
    for (x, out) in input.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0) {
        keep_vectors_whole();
        let y = Lanes(*x).mul_add(factor, addend);
        *out = if relu { y.max(Lanes::ZERO).0 } else { y.0 };
    }
}

/// The forward pass while training. Leaves mean and `1/√(var + ε)` of each channel in `state`.
pub struct BatchNormForward<'a> {
    pub norm: BatchNorm,
    pub layout: Layout,
    pub parameters: &'a [f32],
    /// Running means and variances of all layers.
    pub running: &'a mut [f32],
    pub input: &'a [f32],
    pub state: &'a mut [f32],
    pub out: &'a mut [f32],
}

impl Kernel for BatchNormForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (layout, channels, plane) = (self.layout, self.layout.shape.channels, self.layout.plane());
        let count = (layout.shape.height * layout.used()) as f32;
        for channel in 0..channels {
            let input = &self.input[channel * plane..][..plane];
            let mean = sum_rows(layout, [input, input], |x, _| x) / count;
            let centre = Lanes::splat(mean);
            let variance = sum_rows(layout, [input, input], |x, _| (x - centre) * (x - centre)) / count;
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            (self.state[channel], self.state[channels + channel]) = (mean, inverse);
            let running = &mut self.running[self.norm.running..];
            running[channel] += MOMENTUM * (mean - running[channel]);
            let unbiased = if count > 1.0 { variance * (count / (count - 1.0)) } else { variance };
            running[channels + channel] += MOMENTUM * (unbiased - running[channels + channel]);
            let scale = self.parameters[self.norm.scale + channel] * inverse;
            let shift = self.parameters[self.norm.shift + channel] - mean * scale;
            scale_plane(input, &mut self.out[channel * plane..][..plane], scale, shift, self.norm.relu);
        }
    }
}

/// The forward pass of an evaluation.
pub struct BatchNormEvaluate<'a> {
    pub norm: BatchNorm,
    pub layout: Layout,
    pub parameters: &'a [f32],
    pub running: &'a [f32],
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

impl Kernel for BatchNormEvaluate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (channels, plane) = (self.layout.shape.channels, self.layout.plane());
        for channel in 0..channels {
            let running = &self.running[self.norm.running..];
            let scale = self.parameters[self.norm.scale + channel] / (running[channels + channel] + EPSILON).sqrt();
            let shift = self.parameters[self.norm.shift + channel] - running[channel] * scale;
            let start = channel * plane;
            scale_plane(&self.input[start..][..plane], &mut self.out[start..][..plane], scale, shift, self.norm.relu);
        }
    }
}

/// The backward pass: `γ/√(var + ε) · (slope − mean slope − x̂ · mean (slope · x̂))`.
pub struct BatchNormBackward<'a> {
    pub norm: BatchNorm,
    pub layout: Layout,
    pub parameters: &'a [f32],
    pub input: &'a [f32],
    pub state: &'a [f32],
    /// Zero in the padding; the shifts' gradient, which is their sum, is already in `gradient`.
    pub slopes: &'a [f32],
    pub gradient: &'a mut [f32],
    /// The gradient by the input, if it is needed, and whether to add to it.
    pub out: Option<(&'a mut [f32], bool)>,
}

impl Kernel for BatchNormBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let (layout, channels, plane) = (self.layout, self.layout.shape.channels, self.layout.plane());
        let count = (layout.shape.height * layout.used()) as f32;
        for channel in 0..channels {
            let (mean, inverse) = (self.state[channel], self.state[channels + channel]);
            let input = &self.input[channel * plane..][..plane];
            let slopes = &self.slopes[channel * plane..][..plane];
            let centre = Lanes::splat(mean);
            let product = sum_rows(layout, [input, slopes], |x, slope| (x - centre) * slope) * inverse;
            self.gradient[self.norm.scale + channel] = product;
            let Some((out, add)) = &mut self.out else { continue };
            let sum = self.gradient[self.norm.shift + channel];
            // slope · a + (x − mean) · b + c
            let factor = Lanes::splat(self.parameters[self.norm.scale + channel] * inverse);
            let by_input = Lanes::splat(-product / count * inverse);
            let constant = Lanes::splat(-sum / count);
            let out = &mut out[channel * plane..][..plane];
            let numbers = input.as_chunks::<LANES>().0.iter().zip(slopes.as_chunks::<LANES>().0);
            for ((x, slope), out) in numbers.zip(out.as_chunks_mut::<LANES>().0) {
                keep_vectors_whole();
                let inner = (Lanes(*x) - centre).mul_add(by_input, Lanes(*slope) + constant);
                let result = factor * inner;
                *out = if *add { (Lanes(*out) + result).0 } else { result.0 };
            }
        }
    }
}
