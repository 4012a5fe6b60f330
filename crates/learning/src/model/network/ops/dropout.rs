//! Dropout: while training, a number is zero with some probability, else scaled up so that its expectation stays.
//!
//! # Source
//! N. Srivastava et al., "Dropout", JMLR 15, 2014, in the inverted form that PyTorch uses.
//!
//! # Determinism
//! Four numbers share 64 random bits of the client's stream, low bits first, in the order of the tensor in memory
//! (channel, row, column, example, with the padding of rows and of the tensor's end); a number is kept where its 16
//! bits are at least `rate · 2^16`, rounded: the rate is a multiple of 2^-16.

use super::super::kernels::Layout;
use fedgenie_core::rng::StreamRng;

/// A dropout layer.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    /// Numbers below this of 2^16 are dropped.
    pub threshold: u16,
    scale: f32,
}

impl Dropout {
    pub fn new(rate: f64) -> Self {
        assert!((0.0..1.0).contains(&rate), "a dropout rate is a probability below 1");
        let threshold = (rate * 65_536.0).round().min(65_535.0) as u16;
        Self { threshold, scale: (65_536.0 / (65_536.0 - f64::from(threshold))) as f32 }
    }

    /// Draws the factors of every number and applies them.
    pub fn forward(self, layout: Layout, noise: &mut StreamRng, input: &[f32], mask: &mut [f32], out: &mut [f32]) {
        let length = layout.len();
        for mask in mask[..length].chunks_mut(4) {
            let bits = noise.bits();
            for (index, factor) in mask.iter_mut().enumerate() {
                *factor = if (bits >> (16 * index)) as u16 >= self.threshold { self.scale } else { 0.0 };
            }
        }
        for ((out, x), factor) in out.iter_mut().zip(input).zip(&mask[..length]) {
            *out = x * factor;
        }
    }

    /// Applies the factors to the slopes.
    pub fn backward(mask: &[f32], slopes: &[f32], out: &mut [f32], add: bool) {
        for ((out, slope), factor) in out.iter_mut().zip(slopes).zip(mask) {
            let product = slope * factor;
            *out = if add { *out + product } else { product };
        }
    }
}
