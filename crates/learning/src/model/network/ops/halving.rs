//! A convolution of whose output only the maxima are read: the largest numbers of windows of 2 × 2, side by side.
//!
//! # Definition
//! That of the convolution ([`conv`](super::conv)) and the maximum behind it ([`pool`](super::pool)), bit for bit.
//!
//! # How
//! The output of the convolution is not kept: it lies in working memory, which all layers share, and so do its slopes.
//! The forward pass keeps where in its window each maximum was found, so that the backward pass reads no input: a slope
//! goes to that place, and zeros to the others.

use super::super::kernels::Layout;
use super::super::layer::{Layer, Op};
use super::{Conv, ConvPlan, Prepare, Resources};
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole, run};

/// The place of a maximum that has no slope: a ReLU made it zero.
const NOWHERE: f32 = 4.0;

/// The two layers, for one batch size.
#[derive(Clone, Debug)]
pub struct HalvingPlan {
    pub conv: Conv,
    pub plan: ConvPlan,
    /// The layer that the convolution reads.
    pub input: usize,
    relu: bool,
    /// Layouts of the convolution's output and of the maxima.
    layouts: (Layout, Layout),
}

impl HalvingPlan {
    /// If a layer takes the maxima of a convolution: the convolution's number.
    pub fn convolution(layers: &[Layer], layer: &Layer) -> Option<usize> {
        let Op::Pool(pool) = layer.op else { return None };
        let input = layer.inputs[0];
        let readers = layers.iter().flat_map(|layer| &layer.inputs).filter(|&&read| read == input).count();
        let is_bare = matches!(&layers[input].op, Op::Conv(conv) if !conv.relu);
        (pool.is_halving() && is_bare && readers == 1).then_some(input)
    }

    /// The plan of a layer with an output of some layout that takes the maxima of a convolution. `layout_of` knows the
    /// layers before it.
    pub fn new(layers: &[Layer], layer: &Layer, layout_of: impl Fn(usize) -> Layout, layout: Layout) -> Option<Self> {
        let inner = Self::convolution(layers, layer)?;
        let (Op::Conv(conv), Op::Pool(pool)) = (&layers[inner].op, &layer.op) else { return None };
        let input = layers[inner].inputs[0];
        let whole = layout_of(inner);
        let plan = ConvPlan::new(conv, layout_of(input), whole);
        Some(Self { conv: conv.clone(), plan, input, relu: pool.relu, layouts: (whole, layout) })
    }

    /// Numbers of working memory.
    pub fn work(&self) -> usize {
        self.layouts.0.len() + self.plan.work()
    }

    /// Numbers that are kept from the forward pass: a place for each maximum.
    pub fn state(&self) -> usize {
        self.layouts.1.len()
    }

    pub fn forward(
        &self,
        parameters: &[f32],
        input: &[f32],
        places: &mut [f32],
        out: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) {
        let (whole, work) = work.split_at_mut(self.layouts.0.len());
        self.conv.forward(&self.plan, parameters, input, whole, Resources { work, path });
        run(path, Maxima { layouts: self.layouts, relu: self.relu, input: whole, places, out });
    }

    /// The slopes of the convolution's output, with sums by channel added up for its bias, and the rest of the memory.
    pub fn spread<'a>(
        &self,
        places: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
        Resources { work, path }: Resources<'a>,
    ) -> (&'a [f32], Resources<'a>) {
        let (whole, work) = work.split_at_mut(self.layouts.0.len());
        run(path, Spread { layouts: self.layouts, places, slopes, out: &mut *whole });
        let sums = self.conv.bias.map(|bias| &mut gradient[bias..][..self.layouts.0.shape.channels]);
        run(path, Prepare { layout: self.layouts.0, output: None, slopes: &mut *whole, sums });
        (whole, Resources { work, path })
    }
}

/// The first examples of the vectors that cover a batch; the last two vectors may overlap.
#[inline(always)]
fn vectors(batch: usize) -> impl Iterator<Item = usize> {
    (0..batch).step_by(LANES).map(move |first| first.min(batch.saturating_sub(LANES)))
}

/// The forward pass: maxima, and where they are.
struct Maxima<'a> {
    layouts: (Layout, Layout),
    relu: bool,
    input: &'a [f32],
    places: &'a mut [f32],
    out: &'a mut [f32],
}

impl Kernel for Maxima<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    /// Columns are taken from left to right and rows from above, so that numbers behind a small batch are overwritten
    /// afterwards, or lie in padding.
    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (from, to) = self.layouts;
        let (least, place) = if self.relu { (0.0, NOWHERE) } else { (f32::NEG_INFINITY, 0.0) };
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let upper = &self.input[(channel * from.shape.height + 2 * y) * from.row..];
                let lower = &upper[from.row..];
                let start = (channel * to.shape.height + y) * to.row;
                let (out, places) = (&mut self.out[start..], &mut self.places[start..]);
                for x in 0..to.shape.width {
                    for example in vectors(to.batch) {
                        keep_vectors_whole();
                        let left = 2 * x * from.batch + example;
                        let right = left + from.batch;
                        let (mut largest, mut found) = (Lanes::splat(least), Lanes::splat(place));
                        let window = [&upper[left..], &upper[right..], &lower[left..], &lower[right..]];
                        for (place, numbers) in window.into_iter().enumerate() {
                            let numbers = Lanes::load(numbers);
                            found = numbers.where_larger(largest, Lanes::splat(place as f32), found);
                            largest = numbers.max(largest);
                        }
                        largest.store(&mut out[x * to.batch + example..]);
                        found.store(&mut places[x * to.batch + example..]);
                    }
                }
            }
        }
    }
}

/// The backward pass: each slope to where its maximum was, zeros elsewhere.
struct Spread<'a> {
    layouts: (Layout, Layout),
    places: &'a [f32],
    slopes: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Spread<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    /// As [`Maxima`]; but of a small batch, a vector is only written whole where it ends in the same row of windows.
    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let (from, to) = self.layouts;
        if !from.shape.height.is_multiple_of(2) || !from.shape.width.is_multiple_of(2) {
            self.out[..from.len()].fill(0.0);
        }
        for channel in 0..to.shape.channels {
            for y in 0..to.shape.height {
                let corner = (channel * from.shape.height + 2 * y) * from.row;
                let (out, below) = (&mut self.out[corner..], from.row);
                let start = (channel * to.shape.height + y) * to.row;
                let (places, slopes) = (&self.places[start..], &self.slopes[start..]);
                for x in 0..to.shape.width {
                    for example in vectors(to.batch) {
                        keep_vectors_whole();
                        let left = 2 * x * from.batch + example;
                        let right = left + from.batch;
                        let found = Lanes::load(&places[x * to.batch + example..]);
                        let slopes = Lanes::load(&slopes[x * to.batch + example..]);
                        let is_whole = to.batch >= LANES || right + LANES <= 2 * to.used();
                        let count = if is_whole { LANES } else { to.batch };
                        write(found.where_equal(0.0, slopes), count, &mut out[left..]);
                        write(found.where_equal(1.0, slopes), count, &mut out[right..]);
                        write(found.where_equal(2.0, slopes), count, &mut out[below + left..]);
                        write(found.where_equal(3.0, slopes), count, &mut out[below + right..]);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn write(lanes: Lanes, count: usize, out: &mut [f32]) {
    if count == LANES {
        lanes.store(out);
    } else {
        lanes.store_first(count, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::build::Window;
    use super::super::pool::{Pool, PoolBackward, PoolForward, PoolKind};
    use super::*;
    use crate::data::Shape;
    use crate::lanes::Path;
    use fedgenie_core::rng::{Purpose, Streams};

    /// The bits of all numbers of a tensor that mean something.
    fn bits(layout: Layout, numbers: &[f32]) -> Vec<u32> {
        let rows = numbers[..layout.shape.channels * layout.plane()].chunks(layout.row);
        rows.flat_map(|row| row[..layout.used()].iter().map(|number| number.to_bits())).collect()
    }

    #[test]
    fn maxima_and_their_slopes_are_those_of_pooling() {
        let mut rng = Streams::new(1).stream(Purpose::Example, 0, 0);
        for (height, width, batch, relu) in [(2, 2), (5, 4), (4, 7)].into_iter().flat_map(|(height, width)| {
            let batches = [1, 3, 8, 10, 16, 17, 24, 32].into_iter();
            batches.flat_map(move |batch| [false, true].map(|relu| (height, width, batch, relu)))
        }) {
            let window = Window { size: 2, stride: 2, padding: 0 };
            let pool = Pool { window, kind: PoolKind::Max, relu };
            let from = Layout::new(Shape { channels: 3, height, width }, batch);
            let to = Layout::new(Shape { channels: 3, height: height / 2, width: width / 2 }, batch);
            let layouts = (from, to);
            // Few numbers, so that several of a window may be the largest.
            let mut numbers = |count: usize| Vec::from_iter((0..count).map(|_| rng.below(5) as f32 - 2.5));
            let (input, slopes) = (numbers(from.len()), numbers(to.len()));
            for path in Path::all() {
                let (mut expected, mut found) = (vec![0.0; to.len()], vec![0.0; to.len()]);
                let mut places = vec![0.0; to.len()];
                run(path, PoolForward { pool, layouts, input: &input, out: &mut expected });
                run(path, Maxima { layouts, relu, input: &input, places: &mut places, out: &mut found });
                let name = format!("{height} × {width}, batch {batch}, ReLU {relu}, {path:?}");
                assert_eq!(bits(to, &found), bits(to, &expected), "{name}");

                let (output, mut passed) = (&expected, slopes.clone());
                let (mut expected, mut found) = (vec![0.0; from.len()], vec![f32::NAN; from.len()]);
                let mask = relu.then_some(&output[..]);
                run(path, Prepare { layout: to, output: mask, slopes: &mut passed, sums: None });
                let (slopes_of, out) = (&mut passed, &mut expected);
                run(path, PoolBackward { pool, layouts, input: &input, output, slopes: slopes_of, add: false, out });
                run(path, Spread { layouts, places: &places, slopes: &slopes, out: &mut found });
                assert_eq!(bits(from, &found), bits(from, &expected), "{name}: slopes");
            }
        }
    }
}
