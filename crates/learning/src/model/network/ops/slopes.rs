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
        let channels = self.layout.shape.channels;
        let mut channel = 0;
        while channel < channels {
            channel += match channels - channel {
                4.. => self.planes::<4>(channel),
                2 | 3 => self.planes::<2>(channel),
                _ => self.planes::<1>(channel),
            };
        }
    }
}

impl Prepare<'_> {
    /// Prepares so many channels, whose sums do not wait for each other; returns how many.
    #[inline(always)]
    fn planes<const CHANNELS: usize>(&mut self, first: usize) -> usize {
        let (row, used, plane) = (self.layout.row, self.layout.used(), self.layout.plane());
        let slopes = &mut self.slopes[first * plane..][..CHANNELS * plane];
        let output = self.output.map(|output| &output[first * plane..][..CHANNELS * plane]);
        slopes.chunks_exact_mut(row).for_each(|row| row[used..].fill(0.0));
        if output.is_none() && self.sums.is_none() {
            return CHANNELS;
        }
        let mut sums = [Lanes::ZERO; CHANNELS];
        for start in (0..plane).step_by(LANES) {
            keep_vectors_whole();
            for channel in 0..CHANNELS {
                let slopes = &mut slopes[channel * plane + start..][..LANES];
                let mut masked = Lanes::load(slopes);
                if let Some(output) = output {
                    masked = Lanes::load(&output[channel * plane + start..]).if_positive(masked);
                    masked.store(slopes);
                }
                sums[channel] = sums[channel] + masked;
            }
        }
        let finished = sums;
        if let Some(out) = &mut self.sums {
            for channel in 0..CHANNELS {
                out[first + channel] = finished[channel].sum();
            }
        }
        CHANNELS
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
