//! A fully connected layer.

use super::super::kernels::correlate::Finish;
use super::super::kernels::dense::{DenseForward, DenseInputGradient, DenseWeightGradient, PANEL, TAIL};
use super::super::kernels::turn::Turn;
use super::super::kernels::{Layout, whole_vectors};
use super::{Addend, Resources, Table};
use crate::data::Shape;
use crate::lanes::{Path, run};
use crate::model::Step;

/// Weights from which on a layer's gradient is not kept in memory where a step follows: 1 MiB, half of the second cache
/// of a core.
const LARGE: usize = 1 << 18;

/// Weights whose gradient is worked out before they are moved: about 256 KiB.
const PIECE: usize = 1 << 16;

/// `out = W in + b`; see [`super::super::kernels::dense`].
#[derive(Clone, Debug)]
pub struct Dense {
    /// Offset of the weights, output × feature.
    pub weights: usize,
    /// Offset of the biases.
    pub bias: usize,
    pub relu: bool,
}

impl Dense {
    /// Numbers of working memory: sums beyond the last feature and the input turned to example × feature, or a panel of
    /// weights and of sums.
    pub fn work(input: Layout, outputs: usize) -> usize {
        (TAIL + input.batch * whole_vectors(input.shape.len())).max((outputs + input.batch) * PANEL)
    }

    /// Whether it has so many weights that they should be moved piece by piece, as [`Dense::descend`] does.
    pub const fn is_large(&self, input: Shape, output: Shape) -> bool {
        input.len() * output.len() >= LARGE
    }

    pub fn forward(
        &self,
        Table { features, output }: Table<'_>,
        parameters: &[f32],
        input: &[f32],
        out: &mut [f32],
        path: Path,
    ) {
        let outputs = output.shape.channels;
        let kernel = DenseForward {
            input,
            features,
            weights: &parameters[self.weights..][..outputs * features.len()],
            bias: &parameters[self.bias..][..outputs],
            output_row: output.row,
            out,
            finish: if self.relu { Finish::Relu } else { Finish::Write },
        };
        run(path, kernel);
    }

    pub fn weight_gradient(
        &self,
        table: Table<'_>,
        input: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) {
        let (tail, turned) = turn(table, input, work, path);
        let out = &mut gradient[self.weights..][..table.output.shape.channels * table.features.len()];
        run(path, weight_gradient(table, turned, slopes, tail, out));
    }

    /// Moves the weights: those of a few outputs at a time, while their gradient is in the cache. It is left nowhere.
    pub fn descend(
        &self,
        table: Table<'_>,
        input: &[f32],
        slopes: &[f32],
        (parameters, gradient, step): (&mut [f32], &mut [f32], Step<'_>),
        Resources { work, path }: Resources<'_>,
    ) {
        let (outputs, features) = (table.output.shape.channels, table.features.len());
        let (tail, turned) = turn(table, input, work, path);
        // Whole tiles of outputs on every path.
        let most = (PIECE / features).next_multiple_of(6).max(6);
        for first in (0..outputs).step_by(most) {
            let out = &mut gradient[self.weights..][..most.min(outputs - first) * features];
            run(path, weight_gradient(table, turned, &slopes[first * table.output.row..], tail, out));
            let weights = self.weights + first * features;
            step(weights, &mut parameters[weights..][..out.len()], out);
        }
    }

    pub fn input_gradient(
        &self,
        Table { features, output }: Table<'_>,
        parameters: &[f32],
        slopes: &[f32],
        Addend { out, add }: Addend<'_>,
        Resources { work, path }: Resources<'_>,
    ) {
        let outputs = output.shape.channels;
        let (panel, work) = work.split_at_mut(outputs * PANEL);
        let kernel = DenseInputGradient {
            weights: &parameters[self.weights..][..outputs * features.len()],
            slopes: &slopes[..outputs * output.row],
            output_row: output.row,
            batch: output.batch,
            features,
            add,
            panel,
            sums: &mut work[..output.batch * PANEL],
            out,
        };
        run(path, kernel);
    }
}

/// Turns a layer's input to example × feature; returns the memory for sums beyond the last feature as well.
fn turn<'a>(
    Table { features, output }: Table<'_>,
    input: &[f32],
    work: &'a mut [f32],
    path: Path,
) -> (&'a mut [f32], &'a [f32]) {
    let row = whole_vectors(features.len());
    let (tail, work) = work.split_at_mut(TAIL);
    let turned = &mut work[..output.batch * row];
    run(path, Turn { input, features, batch: output.batch, row, out: &mut *turned });
    (tail, turned)
}

/// The gradient by the weights of as many outputs as there is room for, from the slopes of these and others behind.
fn weight_gradient<'a>(
    Table { features, output }: Table<'_>,
    turned: &'a [f32],
    slopes: &'a [f32],
    tail: &'a mut [f32],
    out: &'a mut [f32],
) -> DenseWeightGradient<'a> {
    let (features, input_row) = (features.len(), whole_vectors(features.len()));
    DenseWeightGradient { turned, input_row, slopes, output_row: output.row, batch: output.batch, features, tail, out }
}
