//! Convolution in two dimensions, of any size, stride and padding.
//!
//! # Definition
//! `out[o][y][x] = bias[o] + Σ_{ky,c,kx} w[o][c][ky][kx] · in[c][s·y + ky − p][s·x + kx − p]`, summed in ascending (ky,
//! c, kx), with zeros outside the input (whole kernel rows outside, and columns outside for all examples that are taken
//! at once, are left out of the sum).
//!
//! # How
//! With padding, the input is copied to rows with zeros at both ends; with a stride `s`, to `s × s` phases, in each of
//! which the kernel moves one step at a time. So every tap is a shift of a row. The gradient by the input is the
//! correlation of the slopes with the turned kernel, one for each phase. Where [`winograd`](super::winograd) is faster,
//! it is taken instead, with its own order of sums.

use super::super::build::Window;
use super::super::kernels::Layout;
use super::super::kernels::correlate::{Correlate, Edges, Finish, pack};
use super::super::kernels::correlate_gradient::{CorrelateGradient, waiting_sums};
use super::super::kernels::{SLACK, whole_vectors};
use super::winograd::WinogradPlan;
use super::{Addend, Resources};
use crate::data::Shape;
use crate::lanes::{Kernel, LANES, Path, run};

/// A convolution.
#[derive(Clone, Debug)]
pub struct Conv {
    pub window: Window,
    /// Offset of the weights, output × channel × row × column.
    pub weights: usize,
    /// Offset of the biases, if there are any.
    pub bias: Option<usize>,
    pub relu: bool,
}

/// Layouts and offsets for one batch size.
#[derive(Clone, Debug)]
pub struct ConvPlan {
    input: Layout,
    output: Layout,
    /// Copy of the input that the taps refer to, if it is not the input itself.
    copy: Option<CopyPlan>,
    taps: Vec<u32>,
    /// For each tap, its index among the weights of an output.
    indices: Vec<u32>,
    /// Distance of input rows as the taps see them.
    input_row: usize,
    /// Rows of zeros thought to lie above the input, and rows of the input.
    rows: (usize, usize),
    /// Columns of zeros beside the input, where the kernel moves one step at a time.
    edges: Option<Edges>,
    back: BackPlan,
    /// How it is computed instead, where that is faster.
    winograd: Option<WinogradPlan>,
}

/// A copy of a tensor with zeros at both ends of its rows, taken apart into phases.
#[derive(Clone, Debug)]
struct CopyPlan {
    stride: usize,
    padding: usize,
    /// Rows of zeros above, physically there: with a stride, else none.
    rows_above: usize,
    /// Rows and numbers per row of a phase.
    height: usize,
    row: usize,
    phases: usize,
    len: usize,
}

/// How the gradient by the input is computed.
#[derive(Clone, Debug)]
struct BackPlan {
    /// Columns of zeros left of the slopes, numbers per row of the copied slopes, and their length; `None` without
    /// padding.
    copy: Option<(usize, usize, usize)>,
    phases: Vec<PhasePlan>,
    /// Longest phase plane that has to be interleaved; 0 without stride.
    phase_len: usize,
}

#[derive(Clone, Debug)]
struct PhasePlan {
    /// Row and column of the phase.
    phase: (usize, usize),
    /// Kernel rows and columns of the phase.
    kernel: (usize, usize),
    /// First row and column in the phase, and their numbers.
    first: (usize, usize),
    count: (usize, usize),
    taps: Vec<u32>,
    /// For each tap, where its weight to channel 0 lies.
    indices: Vec<u32>,
    pad_rows: usize,
    /// Rows of the slopes, less those that no row of the phase reaches.
    slope_rows: usize,
    /// Columns of zeros beside the slopes.
    edges: Option<Edges>,
    /// Numbers per row of the result.
    row: usize,
}

impl ConvPlan {
    pub fn new(conv: &Conv, input: Layout, output: Layout) -> Self {
        let winograd = WinogradPlan::fits(conv.window) && WinogradPlan::pays(input, output);
        Self::with(conv, input, output, winograd.then(|| WinogradPlan::new(conv.window, input, output)))
    }

    /// A plan that uses minimal filtering or does not.
    pub fn with(conv: &Conv, input: Layout, output: Layout, winograd: Option<WinogradPlan>) -> Self {
        let Window { size, stride, padding } = conv.window;
        let Shape { channels, height, width } = input.shape;
        let batch = input.batch;
        let copy = (stride > 1 || padding > 0).then(|| {
            let phases = stride.min(size);
            let columns = (width + 2 * padding).div_ceil(stride);
            let row = whole_vectors(columns * batch);
            let rows_above = if stride > 1 { padding } else { 0 };
            let height = if stride > 1 { (height + 2 * padding).div_ceil(stride) } else { height };
            let len = channels * phases * phases * height * row + SLACK;
            CopyPlan { stride, padding, rows_above, height, row, phases, len }
        });
        let (input_row, plane, phases) =
            copy.as_ref().map_or((input.row, input.plane(), 1), |copy| (copy.row, copy.height * copy.row, copy.phases));
        let mut taps = Vec::with_capacity(size * size * channels);
        let mut indices = Vec::with_capacity(taps.capacity());
        for ky in 0..size {
            for channel in 0..channels {
                for kx in 0..size {
                    let phase = (channel * phases + ky % stride) * phases + kx % stride;
                    taps.push((phase * plane + ky / stride * input_row + kx / stride * batch) as u32);
                    indices.push(((channel * size + ky) * size + kx) as u32);
                }
            }
        }
        let rows = if stride > 1 { (0, usize::MAX / 4) } else { (padding, height) };
        let columns = output.shape.width;
        let edges = Edges { kernel: size, left: padding, width, batch, columns };
        let edges = (stride == 1 && padding > 0).then_some(edges);
        let back = BackPlan::new(conv.window, input, output);
        Self { input, output, copy, taps, indices, input_row, rows, edges, back, winograd }
    }

    /// Numbers of working memory: packed weights, or sums that wait, and copies of the input, or of the slopes and a
    /// phase.
    pub fn work(&self) -> usize {
        if let Some(winograd) = &self.winograd {
            return winograd.work();
        }
        let weights = self.taps.len() * self.output.shape.channels;
        let forward = self.copy.as_ref().map_or(0, |copy| copy.len);
        let backward = self.back.copy.map_or(0, |(_, _, len)| len) + self.back.phase_len;
        (self.waiting_sums() + forward).max(whole_vectors(weights) + forward.max(backward))
    }

    fn waiting_sums(&self) -> usize {
        waiting_sums(self.taps.len(), self.output.shape.height, self.output.row)
    }
}

impl BackPlan {
    fn new(window: Window, input: Layout, output: Layout) -> Self {
        let Window { size, stride, padding } = window;
        let Shape { height, width, .. } = input.shape;
        let outputs = output.shape;
        // Kernel rows or columns of a phase, and the part of the phase that the input covers.
        let kernel = |phase: usize| size.saturating_sub(phase).div_ceil(stride);
        let first = |phase: usize| padding.saturating_sub(phase).div_ceil(stride);
        let count = |phase: usize, side: usize| (side + padding).saturating_sub(phase).div_ceil(stride) - first(phase);
        let columns: Vec<usize> = (0..stride).collect();
        let left = columns.iter().map(|&phase| (kernel(phase).max(1) - 1).saturating_sub(first(phase))).max();
        let left = left.unwrap_or_default();
        let last = columns.iter().map(|&phase| first(phase) + count(phase, width)).max().unwrap_or_default();
        let right = last.saturating_sub(outputs.width);
        let batch = input.batch;
        let copy = (left + right > 0).then(|| {
            let row = whole_vectors((left + outputs.width + right) * batch);
            (left, row, outputs.channels * outputs.height * row + SLACK)
        });
        let (left, row) = copy.map_or((0, output.row), |(left, row, _)| (left, row));
        let plane = outputs.height * row;
        let mut phases = Vec::with_capacity(stride * stride);
        for phase_row in 0..stride {
            for phase_column in 0..stride {
                let kernel = (kernel(phase_row), kernel(phase_column));
                let first = (first(phase_row), first(phase_column));
                let count = (count(phase_row, height), count(phase_column, width));
                let reach = kernel.0.max(1) - 1;
                let skipped = first.0.saturating_sub(reach);
                let mut taps = Vec::with_capacity(kernel.0 * kernel.1 * outputs.channels);
                let mut indices = Vec::with_capacity(taps.capacity());
                for ky in 0..kernel.0 {
                    for channel in 0..outputs.channels {
                        for kx in 0..kernel.1 {
                            let column = left + first.1 + kx + 1 - kernel.1;
                            taps.push((channel * plane + (ky + skipped) * row + column * batch) as u32);
                            // Rows and columns of the kernel are turned around.
                            let y = phase_row + stride * (kernel.0 - 1 - ky);
                            let x = phase_column + stride * (kernel.1 - 1 - kx);
                            indices.push(((channel * input.shape.channels * size + y) * size + x) as u32);
                        }
                    }
                }
                let edges = (kernel.1 > 0 && first.1 < kernel.1).then(|| Edges {
                    kernel: kernel.1,
                    left: kernel.1 - 1 - first.1,
                    width: outputs.width,
                    batch,
                    columns: count.1,
                });
                phases.push(PhasePlan {
                    phase: (phase_row, phase_column),
                    kernel,
                    first,
                    count,
                    taps,
                    indices,
                    pad_rows: reach.saturating_sub(first.0),
                    slope_rows: outputs.height.saturating_sub(skipped),
                    edges,
                    row: whole_vectors(count.1 * batch),
                });
            }
        }
        let longest = phases.iter().map(|phase| phase.count.0 * phase.row).max().unwrap_or_default();
        let phase_len = if stride > 1 { input.shape.channels * longest + SLACK } else { 0 };
        Self { copy, phases, phase_len }
    }
}

/// Copies a tensor to rows with zeros at both ends, in phases.
struct Copy<'a> {
    from: &'a [f32],
    layout: Layout,
    plan: &'a CopyPlan,
    to: &'a mut [f32],
}

impl Kernel for Copy<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { from, layout, plan, to } = self;
        let batch = layout.batch;
        let Shape { channels, height, width } = layout.shape;
        let mut rows = to[..plan.len - SLACK].chunks_exact_mut(plan.row);
        for channel in 0..channels {
            for phase_row in 0..plan.phases {
                for phase_column in 0..plan.phases {
                    for (y, row) in rows.by_ref().take(plan.height).enumerate() {
                        let y = (plan.stride * y + phase_row).wrapping_sub(plan.rows_above);
                        if y >= height {
                            row.fill(0.0);
                            continue;
                        }
                        let source = &from[(channel * height + y) * layout.row..][..layout.used()];
                        if plan.stride == 1 {
                            let (left, rest) = row.split_at_mut(plan.padding * batch);
                            left.fill(0.0);
                            let (middle, right) = rest.split_at_mut(source.len());
                            middle.copy_from_slice(source);
                            right.fill(0.0);
                            continue;
                        }
                        row.fill(0.0);
                        for (column, out) in row.chunks_exact_mut(batch).enumerate() {
                            let x = (plan.stride * column + phase_column).wrapping_sub(plan.padding);
                            if x < width {
                                out.copy_from_slice(&source[x * batch..][..batch]);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Adds or writes the rows of a phase to their rows of a tensor.
struct Interleave<'a> {
    from: &'a [f32],
    phase: &'a PhasePlan,
    window: Window,
    layout: Layout,
    add: bool,
    to: &'a mut [f32],
}

impl Kernel for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { from, phase, window, layout, add, to } = self;
        let batch = layout.batch;
        let mut rows = from.chunks_exact(phase.row);
        for channel in 0..layout.shape.channels {
            for (y, row) in (0..phase.count.0).zip(rows.by_ref()) {
                let y = window.stride * (phase.first.0 + y) + phase.phase.0 - window.padding;
                let target = &mut to[(channel * layout.shape.height + y) * layout.row..][..layout.used()];
                for (x, numbers) in (0..phase.count.1).zip(row.chunks_exact(batch)) {
                    let x = window.stride * (phase.first.1 + x) + phase.phase.1 - window.padding;
                    let target = &mut target[x * batch..][..batch];
                    if add {
                        target.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                    } else {
                        target.copy_from_slice(numbers);
                    }
                }
            }
        }
    }
}

impl Conv {
    /// Multiplications of an example, in each of the three directions.
    pub fn multiplications(&self, input: Shape, output: Shape) -> u64 {
        (input.channels * self.window.size * self.window.size * output.len()) as u64
    }

    pub fn forward(
        &self,
        plan: &ConvPlan,
        parameters: &[f32],
        input: &[f32],
        out: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) {
        let outputs = plan.output.shape.channels;
        let count = plan.taps.len();
        let weights = &parameters[self.weights..][..count * outputs];
        let bias = self.bias.map_or(&[][..], |bias| &parameters[bias..][..outputs]);
        let finish = if self.relu { Finish::Relu } else { Finish::Write };
        if let Some(winograd) = &plan.winograd {
            return winograd.forward(weights, (bias, finish), input, out, Resources { work, path });
        }
        let (packed, copy) = work.split_at_mut(whole_vectors(count * outputs));
        run(path, Pack { weights, indices: &plan.indices, outputs, stride: count, packed: &mut *packed });
        let input = plan.with_zeros(input, copy, path);
        run(
            path,
            Correlate {
                input,
                taps: &plan.taps,
                kernel_rows: self.window.size,
                pad_rows: plan.rows.0,
                input_rows: plan.rows.1,
                edges: plan.edges,
                input_row: plan.input_row,
                packed,
                bias,
                outputs,
                output_rows: plan.output.shape.height,
                output_row: plan.output.row,
                out,
                finish,
            },
        );
    }

    /// The gradient by the weights, from slopes with zeros in their padding.
    pub fn weight_gradient(
        &self,
        plan: &ConvPlan,
        input: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) {
        let outputs = plan.output.shape.channels;
        let count = plan.taps.len();
        let out = &mut gradient[self.weights..][..count * outputs];
        if let Some(winograd) = &plan.winograd {
            return winograd.weight_gradient(input, slopes, out, Resources { work, path });
        }
        let (sums, copy) = work.split_at_mut(plan.waiting_sums());
        let input = plan.with_zeros(input, copy, path);
        run(
            path,
            CorrelateGradient {
                input,
                taps: &plan.taps,
                kernel_rows: self.window.size,
                pad_rows: plan.rows.0,
                input_rows: plan.rows.1,
                input_row: plan.input_row,
                slopes,
                outputs,
                output_rows: plan.output.shape.height,
                output_row: plan.output.row,
                indices: &plan.indices,
                sums,
                out,
            },
        );
    }

    /// The gradient by the input, added to `out` if `add`.
    pub fn input_gradient(
        &self,
        plan: &ConvPlan,
        parameters: &[f32],
        slopes: &[f32],
        Addend { out, add }: Addend<'_>,
        Resources { work, path }: Resources<'_>,
    ) {
        let outputs = plan.output.shape.channels;
        let channels = plan.input.shape.channels;
        let weights = &parameters[self.weights..][..plan.taps.len() * outputs];
        if let Some(winograd) = &plan.winograd {
            let finish = if add { Finish::Add } else { Finish::Write };
            return winograd.input_gradient(weights, finish, slopes, out, Resources { work, path });
        }
        let (packed, work) = work.split_at_mut(whole_vectors(plan.taps.len() * outputs));
        let (copy, phase_plane) = work.split_at_mut(plan.back.copy.map_or(0, |(_, _, len)| len));
        let (slopes, slopes_row) = match plan.back.copy {
            None => (slopes, plan.output.row),
            Some((left, row, len)) => {
                let height = plan.output.shape.height;
                let plan_copy = CopyPlan { stride: 1, padding: left, rows_above: 0, height, row, phases: 1, len };
                run(path, Copy { from: slopes, layout: plan.output, plan: &plan_copy, to: copy });
                (&*copy, row)
            }
        };
        for phase in &plan.back.phases {
            let is_direct = self.window.stride == 1;
            if phase.taps.is_empty() {
                if !add {
                    let rows = channels * phase.count.0 * phase.row;
                    phase_plane[..rows].fill(0.0);
                    run(
                        path,
                        Interleave { from: phase_plane, phase, window: self.window, layout: plan.input, add, to: out },
                    );
                }
                continue;
            }
            let stride = self.window.size * self.window.size;
            run(path, Pack { weights, indices: &phase.indices, outputs: channels, stride, packed: &mut *packed });
            run(
                path,
                Correlate {
                    input: slopes,
                    taps: &phase.taps,
                    kernel_rows: phase.kernel.0,
                    pad_rows: phase.pad_rows,
                    input_rows: phase.slope_rows,
                    edges: phase.edges,
                    input_row: slopes_row,
                    packed,
                    bias: &[],
                    outputs: channels,
                    output_rows: phase.count.0,
                    output_row: phase.row,
                    out: if is_direct { &mut *out } else { &mut *phase_plane },
                    finish: if is_direct && add { Finish::Add } else { Finish::Write },
                },
            );
            if !is_direct {
                run(
                    path,
                    Interleave { from: phase_plane, phase, window: self.window, layout: plan.input, add, to: out },
                );
            }
        }
    }
}

impl ConvPlan {
    fn with_zeros<'a>(&self, input: &'a [f32], work: &'a mut [f32], path: Path) -> &'a [f32] {
        let Some(plan) = &self.copy else { return input };
        run(path, Copy { from: input, layout: self.input, plan, to: &mut *work });
        work
    }
}

/// Packs the weights of so many outputs, each of which has its own `stride` numbers after the one before.
struct Pack<'a> {
    weights: &'a [f32],
    /// Where the weight of each tap lies for the first output.
    indices: &'a [u32],
    outputs: usize,
    stride: usize,
    packed: &'a mut [f32],
}

impl Kernel for Pack<'_> {
    type Output = ();
    // It packs for tiles of that kernel.
    const WIDE_PAYS: bool = Correlate::WIDE_PAYS;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { weights, indices, outputs, stride, packed } = self;
        pack(outputs, indices.len(), WIDE, packed, |output, tap| weights[indices[tap] as usize + output * stride]);
    }
}

const _: () = assert!(SLACK >= LANES, "a row's last vector may reach behind the tensor");
