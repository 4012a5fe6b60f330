//! Slopes, the derivatives of the loss by a layer's output, before the layer's own backward pass.

use super::super::kernels::Layout;
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};

/// Sets slopes to zero where the output was not positive, if a ReLU was part of the layer, and in the padding of rows;
/// and adds them up for each channel, which is the gradient by a bias: lane by lane, rows ascending, lanes folded in
/// halves.
pub struct Prepare<'a> {
    pub layout: Layout,
    /// The layer's output, where negative results became zero.
    pub output: Option<&'a [f32]>,
    pub slopes: &'a mut [f32],
    /// Where the sums go, one for each channel.
    pub sums: Option<&'a mut [f32]>,
}

impl Kernel for Prepare<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let Layout { shape, row, .. } = self.layout;
        let used = self.layout.used();
        let plane = shape.height * row;
        for channel in 0..shape.channels {
            let slopes = &mut self.slopes[channel * plane..][..plane];
            let mut sum = Lanes::ZERO;
            for (y, slopes) in slopes.chunks_exact_mut(row).enumerate() {
                slopes[used..].fill(0.0);
                let vectors = slopes.as_chunks_mut::<LANES>().0;
                if let Some(output) = self.output {
                    let output = &output[channel * plane + y * row..][..row];
                    for (slopes, output) in vectors.iter_mut().zip(output.as_chunks::<LANES>().0) {
                        keep_vectors_whole();
                        let masked = Lanes(*output).if_positive(Lanes(*slopes));
                        sum = sum + masked;
                        *slopes = masked.0;
                    }
                } else if self.sums.is_some() {
                    for slopes in vectors {
                        keep_vectors_whole();
                        sum = sum + Lanes(*slopes);
                    }
                }
            }
            if let Some(sums) = &mut self.sums {
                let finished = sum;
                sums[channel] = finished.sum();
            }
        }
    }
}

/// `to ← from`, or `to ← to + from`.
pub struct AddInto<'a> {
    from: &'a [f32],
    to: &'a mut [f32],
    add: bool,
}

/// Writes or adds numbers to others.
pub const fn add_into<'a>(from: &'a [f32], to: &'a mut [f32], add: bool) -> AddInto<'a> {
    AddInto { from, to, add }
}

impl Kernel for AddInto<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        if self.add {
            self.to.iter_mut().zip(self.from).for_each(|(to, from)| *to += from);
        } else {
            self.to.copy_from_slice(self.from);
        }
    }
}

/// The sum of two layers, negative results zero if `relu`.
pub struct Sum<'a> {
    pub one: &'a [f32],
    pub two: &'a [f32],
    pub out: &'a mut [f32],
    pub relu: bool,
}

impl Kernel for Sum<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let numbers = self.one.as_chunks::<LANES>().0.iter().zip(self.two.as_chunks::<LANES>().0);
        for ((one, two), out) in numbers.zip(self.out.as_chunks_mut::<LANES>().0) {
            keep_vectors_whole();
            let sum = Lanes(*one) + Lanes(*two);
            *out = if self.relu { sum.max(Lanes::ZERO).0 } else { sum.0 };
        }
    }
}
