//! A fully connected layer.

use super::super::kernels::correlate::Finish;
use super::super::kernels::dense::{DenseForward, DenseInputGradient, DenseWeightGradient};
use super::super::kernels::{Layout, whole_vectors};
use crate::math::lanes::{Path, run};

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
    /// Numbers of working memory: the input turned to example × feature.
    pub const fn work(input: Layout) -> usize {
        input.batch * whole_vectors(input.shape.channels * input.shape.height * input.shape.width)
    }

    pub fn forward(
        &self,
        features: &[u32],
        output: Layout,
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

    #[expect(clippy::too_many_arguments, reason = "a pass needs all of them")]
    pub fn weight_gradient(
        &self,
        features: &[u32],
        output: Layout,
        input: &[f32],
        slopes: &[f32],
        gradient: &mut [f32],
        work: &mut [f32],
        path: Path,
    ) {
        let input_row = whole_vectors(features.len());
        let turned = &mut work[..output.batch * input_row];
        for (example, row) in turned.chunks_exact_mut(input_row).enumerate() {
            for (place, &feature) in row.iter_mut().zip(features) {
                *place = input[feature as usize + example];
            }
            row[features.len()..].fill(0.0);
        }
        let kernel = DenseWeightGradient {
            turned,
            input_row,
            slopes,
            output_row: output.row,
            batch: output.batch,
            features: features.len(),
            out: &mut gradient[self.weights..][..output.shape.channels * features.len()],
        };
        run(path, kernel);
    }

    #[expect(clippy::too_many_arguments, reason = "a pass needs all of them")]
    pub fn input_gradient(
        &self,
        features: &[u32],
        output: Layout,
        parameters: &[f32],
        slopes: &[f32],
        out: &mut [f32],
        add: bool,
        path: Path,
    ) {
        let outputs = output.shape.channels;
        let kernel = DenseInputGradient {
            weights: &parameters[self.weights..][..outputs * features.len()],
            slopes: &slopes[..outputs * output.row],
            output_row: output.row,
            batch: output.batch,
            features,
            add,
            out,
        };
        run(path, kernel);
    }
}
