//! Convolutions with 3 × 3 kernels and stride 1 by minimal filtering, in the three directions.
//!
//! [`winograd`](super::super::kernels::winograd) has the definition. The size of tiles and the blocks in which they are
//! worked on are chosen from sizes alone, so that transformed tiles stay in the cache until they are multiplied.

use super::super::build::Window;
use super::super::kernels::Layout;
use super::super::kernels::correlate::Finish;
use super::super::kernels::winograd::filters::{Filter, Side};
use super::super::kernels::winograd::gradient::{KernelGradient, SlopeTransform, Turn, Turned, TurnedTransform};
use super::super::kernels::winograd::position_stride;
use super::super::kernels::winograd::product::Product;
use super::super::kernels::winograd::tiles::Tiling;
use super::super::kernels::winograd::transform::{
    InputTransform, KernelTransform, OutputTransform, line_length, lines,
};
use super::Resources;
use crate::lanes::{LANES, run};

/// Kibibytes that a block of tiles may take: about half of the second cache of a core.
const BUDGET: usize = 512;

/// Outputs whose products are taken before they are transformed back, where the transformed input is in the cache:
/// whole register tiles on every path.
const GROUP: usize = 24;

/// Kernels from this size on, in kibibytes, are not in the cache when the next block needs them.
const LARGE: usize = 512;

/// Vectors of a block of tiles that large kernels are worth being read for.
const LARGE_VECTORS: usize = 6;

/// Tiles of a block that the sums over it are worth being read and written for.
const LEAST_TILES: usize = 128;

/// Input and output channels from which on transforms cost less than they save in every direction; with 24 the forward
/// pass is about as fast as the direct one, with 16 it is slower.
const CHANNELS: usize = 32;

/// What it takes to transform a kernel, write it and read it again, in vectors of tiles that it is multiplied by: an
/// estimate, from 10 GB/s and six thousand million products of vectors a second.
const KERNEL: usize = 5;

/// Outputs along a side of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Two,
    Four,
}

impl Size {
    /// The one that is estimated to take less time: by products, and by what its kernels take.
    fn of(output: Layout) -> Self {
        let cost = |size: Self| size.positions() * (size.vectors(output) + KERNEL);
        if cost(Self::Four) < cost(Self::Two) { Self::Four } else { Self::Two }
    }

    const fn side(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// Numbers that a tile or a kernel is transformed to.
    const fn positions(self) -> usize {
        (self.side() + 2) * (self.side() + 2)
    }

    /// Tile rows and columns of an output.
    const fn tiles(self, output: Layout) -> (usize, usize) {
        (output.shape.height.div_ceil(self.side()), output.shape.width.div_ceil(self.side()))
    }

    /// Vectors of all tiles of an output.
    const fn vectors(self, output: Layout) -> usize {
        let (rows, columns) = self.tiles(output);
        rows * (columns * output.batch).div_ceil(LANES)
    }
}

/// Positions, tiles and memory of a convolution for one batch size.
#[derive(Clone, Debug)]
pub struct WinogradPlan {
    forward: Pass,
    back: Pass,
    gradient: Gradient,
}

/// A convolution from one tensor to another.
#[derive(Clone, Debug)]
struct Pass {
    from: Layout,
    to: Layout,
    padding: usize,
    size: Size,
    tiling: Tiling,
    /// Outputs of a group.
    group: usize,
    /// Numbers from a position to the next among kernels, values and products.
    strides: [usize; 3],
    line: usize,
}

/// The gradient by the weights.
#[derive(Clone, Debug)]
struct Gradient {
    size: Size,
    turned: Turned,
    tiling: Tiling,
    /// Numbers from a position to the next among values.
    values: usize,
    /// Numbers from a position to the next and from an output to the next among slopes.
    slopes: (usize, usize),
    /// Numbers from a position to the next among products.
    products: usize,
    line: usize,
}

impl WinogradPlan {
    /// Whether a convolution has the form for it.
    pub fn fits(window: Window) -> bool {
        window.size == 3 && window.stride == 1 && window.padding <= 2
    }

    /// Whether a convolution that fits is faster this way: with enough channels to share the transforms, and tiles that
    /// are not mostly beyond the edge.
    pub fn pays(input: Layout, output: Layout) -> bool {
        let size = Size::of(output);
        let products = size.positions() * size.vectors(output);
        let direct = 9 * output.shape.height * output.vectors();
        input.shape.channels.min(output.shape.channels) >= CHANNELS && 5 * products <= 4 * direct
    }

    pub fn new(window: Window, input: Layout, output: Layout) -> Self {
        Self {
            forward: Pass::new(input, output, window.padding, Size::of(output)),
            back: Pass::new(output, input, 2 - window.padding, Size::of(input)),
            gradient: Gradient::new(input, output, Size::of(output)),
        }
    }

    /// The same with tiles of one size.
    #[cfg(test)]
    fn with(window: Window, input: Layout, output: Layout, size: Size) -> Self {
        Self {
            forward: Pass::new(input, output, window.padding, size),
            back: Pass::new(output, input, 2 - window.padding, size),
            gradient: Gradient::new(input, output, size),
        }
    }

    /// Numbers of working memory.
    pub fn work(&self) -> usize {
        let passes = [&self.forward, &self.back].map(|pass| pass.lengths().iter().sum());
        passes.into_iter().chain([self.gradient.lengths().iter().sum()]).max().unwrap_or_default()
    }

    /// The forward pass; `kernels` is output × channel × row × column, `finish` has the bias.
    pub fn forward(
        &self,
        kernels: &[f32],
        finish: (&[f32], Finish),
        input: &[f32],
        out: &mut [f32],
        resources: Resources<'_>,
    ) {
        self.forward.run((kernels, false), finish, input, out, resources);
    }

    /// The gradient by the input, from slopes with zeros in their padding.
    pub fn input_gradient(
        &self,
        kernels: &[f32],
        finish: Finish,
        slopes: &[f32],
        out: &mut [f32],
        resources: Resources<'_>,
    ) {
        self.back.run((kernels, true), (&[], finish), slopes, out, resources);
    }

    /// The gradient by the weights.
    pub fn weight_gradient(&self, input: &[f32], slopes: &[f32], out: &mut [f32], resources: Resources<'_>) {
        match self.gradient.size {
            Size::Two => self.gradient_by_tiles::<2, 4>(input, slopes, out, resources),
            Size::Four => self.gradient_by_tiles::<4, 6>(input, slopes, out, resources),
        }
    }

    fn gradient_by_tiles<const M: usize, const N: usize>(
        &self,
        input: &[f32],
        slopes: &[f32],
        out: &mut [f32],
        resources: Resources<'_>,
    ) where
        Side<M, N>: Filter<M, N>,
    {
        let Resources { work, path } = resources;
        let Gradient { turned, tiling, values: values_stride, slopes: strides, line, .. } = &self.gradient;
        let (from, to, padding) = (self.forward.from, self.forward.to, self.forward.padding);
        let (strides, values_stride, line, outputs) = (*strides, *values_stride, *line, to.shape.channels);
        let products_stride = self.gradient.products;
        let [turned_input, values, transformed, products, lines] = parts(work, self.gradient.lengths());
        run(path, Turn { input, layout: from, padding, turned: *turned, out: &mut *turned_input });
        for (index, block) in tiling.blocks.iter().enumerate() {
            let input = &*turned_input;
            run(
                path,
                TurnedTransform::<M, N> { input, turned: *turned, block, stride: values_stride, values: &mut *values },
            );
            let (values_out, lines) = (&mut *transformed, &mut *lines);
            run(path, SlopeTransform::<M, N> { slopes, layout: to, block, strides, values: values_out, lines, line });
            run(
                path,
                Product {
                    positions: N * N,
                    left: transformed,
                    left_strides: strides,
                    right: values,
                    right_stride: values_stride,
                    steps: block.numbers,
                    rows: (0, outputs),
                    vectors: turned.channels / LANES,
                    add: index > 0,
                    products: &mut *products,
                    products_stride,
                },
            );
        }
        run(path, KernelGradient::<M, N> { products, stride: products_stride, channels: from.shape.channels, out });
    }
}

/// Divides working memory.
fn parts<const COUNT: usize>(mut work: &mut [f32], lengths: [usize; COUNT]) -> [&mut [f32]; COUNT] {
    lengths.map(|length| work.split_off_mut(..length).expect("the plan knows how much memory is needed"))
}

impl Pass {
    fn new(from: Layout, to: Layout, padding: usize, size: Size) -> Self {
        let (channels, outputs) = (from.shape.channels, to.shape.channels);
        let (rows, columns) = size.tiles(to);
        let is_large = size.positions() * channels * outputs * 4 >= LARGE * 1024;
        let least = if is_large { LARGE_VECTORS } else { 3 };
        // What a vector of tiles takes for each channel, and for each output of a group.
        let bytes = size.positions() * LANES * size_of::<f32>();
        let limit = (BUDGET * 1024 / bytes / (channels + GROUP.min(outputs))).max(least);
        let tiling = Tiling::new(rows, columns, from.batch, limit);
        let vectors = tiling.vectors();
        let group = if channels * vectors * bytes > 2 * BUDGET * 1024 { outputs } else { GROUP.min(outputs) };
        let strides = [
            position_stride(outputs * position_stride(channels)),
            position_stride(channels * vectors * LANES),
            position_stride(group * vectors * LANES),
        ];
        let line = line_length(tiling.columns(), from.batch);
        Self { from, to, padding, size, tiling, group, strides, line }
    }

    /// Kernels, values, products, lines.
    fn lengths(&self) -> [usize; 4] {
        let [kernels, values, products] = self.strides.map(|stride| self.size.positions() * stride);
        [kernels, values, products, lines(self.size.side()) * self.line]
    }

    fn run(
        &self,
        kernels: (&[f32], bool),
        finish: (&[f32], Finish),
        input: &[f32],
        out: &mut [f32],
        resources: Resources<'_>,
    ) {
        match self.size {
            Size::Two => self.run_tiles::<2, 4>(kernels, finish, input, out, resources),
            Size::Four => self.run_tiles::<4, 6>(kernels, finish, input, out, resources),
        }
    }

    fn run_tiles<const M: usize, const N: usize>(
        &self,
        (weights, turned): (&[f32], bool),
        (bias, finish): (&[f32], Finish),
        input: &[f32],
        out: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) where
        Side<M, N>: Filter<M, N>,
    {
        let [kernels_stride, values_stride, products_stride] = self.strides;
        let [kernels, values, products, lines] = parts(work, self.lengths());
        let (channels, all) = (self.from.shape.channels, self.to.shape.channels);
        let (layout, padding, line) = (self.from, self.padding, self.line);
        let left_strides = (kernels_stride, position_stride(channels));
        run(
            path,
            KernelTransform::<M, N> {
                weights,
                outputs: all,
                channels,
                turned,
                strides: left_strides,
                out: &mut *kernels,
            },
        );
        for block in &self.tiling.blocks {
            let (values_out, lines) = (&mut *values, &mut *lines);
            run(
                path,
                InputTransform::<M, N> {
                    input,
                    layout,
                    padding,
                    block,
                    stride: values_stride,
                    values: values_out,
                    lines: &mut *lines,
                    line,
                },
            );
            for first in (0..all).step_by(self.group) {
                let outputs = (first, self.group.min(all - first));
                run(
                    path,
                    Product {
                        positions: N * N,
                        left: kernels,
                        left_strides,
                        right: values,
                        right_stride: values_stride,
                        steps: channels,
                        rows: outputs,
                        vectors: block.vectors,
                        add: false,
                        products: &mut *products,
                        products_stride,
                    },
                );
                run(
                    path,
                    OutputTransform::<M, N> {
                        products,
                        stride: products_stride,
                        block,
                        outputs,
                        bias,
                        finish,
                        out: &mut *out,
                        layout: self.to,
                        lines: &mut *lines,
                        line,
                    },
                );
            }
        }
    }
}

impl Gradient {
    fn new(input: Layout, output: Layout, size: Size) -> Self {
        let (rows, columns) = size.tiles(output);
        let outputs = output.shape.channels;
        let turned = Turned::new((rows, columns), size.side(), input.batch, input.shape.channels);
        // What the positions of a tile take for each channel, and for each output.
        let bytes = size.positions() * size_of::<f32>();
        let most = (BUDGET * 1024 / bytes / (turned.channels + outputs)).max(LEAST_TILES);
        let tiling = Tiling::new(rows, columns, input.batch, most / LANES);
        let numbers = tiling.numbers();
        // The last vector of a strip is written whole.
        let row = position_stride(numbers + LANES);
        Self {
            size,
            turned,
            values: position_stride(numbers * turned.channels),
            slopes: (position_stride(outputs * row), row),
            products: position_stride(outputs * turned.channels),
            line: line_length(tiling.columns(), input.batch),
            tiling,
        }
    }

    /// Turned input, values, slopes, products, lines.
    fn lengths(&self) -> [usize; 5] {
        let positions = self.size.positions();
        [
            self.turned.numbers(),
            positions * self.values,
            positions * self.slopes.0,
            positions * self.products,
            lines(self.size.side()) * self.line,
        ]
    }
}

#[cfg(test)]
mod tests;
