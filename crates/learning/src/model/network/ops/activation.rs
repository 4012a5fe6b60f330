//! A function of each number.
//!
//! # Definition
//! - ReLU: `max(x, 0)`, slope 0 at 0;
//! - leaky ReLU: `x` where positive, else `slope · x`;
//! - GELU: `x Φ(x)` (D. Hendrycks, K. Gimpel, arXiv 1606.08415), with the exact normal distribution function;
//! - tanh.

use crate::lanes::{Kernel, LANES, Lanes, functions, keep_vectors_whole};

/// A function of each number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `x` where positive, else this times `x`.
    LeakyRelu(f32),
    /// `x Φ(x)`.
    Gelu,
    /// The hyperbolic tangent.
    Tanh,
}

/// The forward pass.
pub struct ActivationForward<'a> {
    pub activation: Activation,
    pub input: &'a [f32],
    pub out: &'a mut [f32],
}

#[inline(always)]
fn each(input: &[f32], out: &mut [f32], function: impl Fn(Lanes) -> Lanes) {
    for (input, out) in input.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0) {
        keep_vectors_whole();
        *out = function(Lanes(*input)).0;
    }
}

impl Kernel for ActivationForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.activation {
            Activation::Relu => each(self.input, self.out, |x| x.max(Lanes::ZERO)),
            Activation::LeakyRelu(slope) => {
                each(self.input, self.out, |x| x.map(|x| if x > 0.0 { x } else { slope * x }));
            }
            Activation::Gelu => each(self.input, self.out, |x| x.map(functions::gelu)),
            Activation::Tanh => each(self.input, self.out, |x| x.map(functions::tanh)),
        }
    }
}

/// The backward pass.
pub struct ActivationBackward<'a> {
    pub activation: Activation,
    pub input: &'a [f32],
    pub output: &'a [f32],
    pub slopes: &'a [f32],
    pub add: bool,
    pub out: &'a mut [f32],
}

impl ActivationBackward<'_> {
    #[inline(always)]
    fn each(self, derivative: impl Fn(f32, f32) -> f32) {
        let vectors = self.input.as_chunks::<LANES>().0.iter().zip(self.output.as_chunks::<LANES>().0);
        let slopes = self.slopes.as_chunks::<LANES>().0.iter().zip(self.out.as_chunks_mut::<LANES>().0);
        for ((input, output), (slopes, out)) in vectors.zip(slopes) {
            let product = Lanes(*input).zip(Lanes(*output), &derivative) * Lanes(*slopes);
            *out = if self.add { (Lanes(*out) + product).0 } else { product.0 };
        }
    }
}

impl Kernel for ActivationBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.activation {
            Activation::Relu => self.each(|x, _| if x > 0.0 { 1.0 } else { 0.0 }),
            Activation::LeakyRelu(slope) => self.each(|x, _| if x > 0.0 { 1.0 } else { slope }),
            Activation::Gelu => self.each(|x, _| functions::gelu_derivative(x)),
            Activation::Tanh => self.each(|_, y| 1.0 - y * y),
        }
    }
}
