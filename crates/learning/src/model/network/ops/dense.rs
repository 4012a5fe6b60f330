//! A fully connected layer.

use super::super::kernels::correlate::Finish;
use super::super::kernels::dense::{DenseForward, DenseInputGradient, DenseWeightGradient, PANEL, TAIL};
use super::super::kernels::turn::Turn;
use super::super::kernels::{Layout, whole_vectors};
use super::{Addend, Resources, Table};
use crate::lanes::{Path, run};

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
        Table { features, output }: Table<'_>,
        input: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
        Resources { work, path }: Resources<'_>,
    ) {
        let input_row = whole_vectors(features.len());
        let (tail, work) = work.split_at_mut(TAIL);
        let turned = &mut work[..output.batch * input_row];
        run(path, Turn { input, features, batch: output.batch, row: input_row, out: &mut *turned });
        let kernel = DenseWeightGradient {
            turned,
            input_row,
            slopes,
            output_row: output.row,
            batch: output.batch,
            features: features.len(),
            tail,
            out: &mut gradient[self.weights..][..output.shape.channels * features.len()],
        };
        run(path, kernel);
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
