//! Outputs of a model for each of many examples, for metrics that need more than sums.

use super::{Batch, Model, Scratch};
use crate::data::Targets;
use crate::data::features::Table;
use crate::dense::{Rows, products};
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};
use fedgenie_core::halt::Effort;
use rayon::prelude::*;

/// A model's outputs for examples, and their targets.
#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    /// Example by example: a score for each class, or the predicted number.
    pub numbers: Vec<f32>,
    /// Numbers of an example.
    pub width: usize,
    /// The examples' classes or numbers.
    pub targets: Targets,
}

impl Outputs {
    /// The classes of the examples, if they have such.
    pub fn labels(&self) -> Option<&[u8]> {
        match &self.targets {
            Targets::Classes { labels, .. } => Some(labels),
            Targets::Values(_) => None,
        }
    }

    /// The numbers of the examples, if they have such.
    pub fn values(&self) -> Option<&[f32]> {
        match &self.targets {
            Targets::Values(values) => Some(values),
            Targets::Classes { .. } => None,
        }
    }
}

/// The outputs of a model for several lists of examples, in their order, on all cores of the current pool or on one:
/// the same bits for any number of threads. Once it is stopped, those of the rest are missing. Memory: `4·n·width`
/// bytes for `n` examples.
///
/// # Panics
/// As [`Model::outputs`].
pub fn outputs<'a>(
    model: &dyn Model,
    parameters: &[f32],
    batches: &[Batch<'_>],
    effort: impl Into<Effort<'a>>,
) -> Outputs {
    const BLOCK: usize = 256;
    let Effort { parallel, halt } = effort.into();
    let blocks: Vec<Batch<'_>> = batches.iter().flat_map(|batch| batch.chunks(BLOCK)).collect();
    let one = |scratch: &mut Scratch, block: &Batch<'_>| {
        let mut numbers = Vec::new();
        if !halt.is_due() {
            model.outputs(parameters, *block, scratch, &mut numbers);
        }
        numbers
    };
    let parts: Vec<Vec<f32>> = if parallel {
        blocks.par_iter().map_init(Scratch::default, one).collect()
    } else {
        let mut scratch = Scratch::default();
        blocks.iter().map(|block| one(&mut scratch, block)).collect()
    };
    let numbers = parts.concat();
    let count = blocks.iter().map(|block| block.examples.len()).sum::<usize>();
    Outputs { width: numbers.len() / count.max(1), numbers, targets: targets(batches) }
}

/// The targets of several lists of examples, in their order; all have classes, or all numbers.
pub fn targets(batches: &[Batch<'_>]) -> Targets {
    let examples = || batches.iter().flat_map(|batch| batch.examples.iter().map(|&example| (batch.data, example)));
    let classes = batches.first().and_then(|batch| batch.data.classes());
    match classes {
        Some((_, classes)) => {
            let label = |data: &crate::data::Dataset, example: u32| {
                data.classes().map_or(0, |(labels, _)| labels[example as usize])
            };
            Targets::Classes { labels: examples().map(|(data, example)| label(data, example)).collect(), classes }
        }
        None => {
            let value = |data: &crate::data::Dataset, example: u32| {
                data.values().map_or(f32::NAN, |values| values[example as usize])
            };
            Targets::Values(examples().map(|(data, example)| value(data, example)).collect())
        }
    }
}

/// Appends the outputs of a linear model, whose parameters are the weights output by output, then a bias for each.
pub(super) struct Linear<'a> {
    pub parameters: &'a [f32],
    pub table: Table<'a>,
    pub examples: &'a [u32],
    /// For unpacked features.
    pub unpacked: &'a mut Vec<f32>,
    /// One for each output.
    pub block: &'a mut [Lanes],
    pub to: &'a mut Vec<f32>,
}

impl Kernel for Linear<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { parameters, table, examples, unpacked, block, to } = self;
        let width = table.width();
        let biases = &parameters[block.len() * width..];
        let weights = Rows { values: parameters, width };
        for examples in examples.chunks(LANES) {
            let (rows, examples) = table.numbers(examples, unpacked);
            products::<WIDE>(weights, rows, examples, block);
            for lane in 0..examples.len() {
                for (output, bias) in block.iter().zip(biases) {
                    keep_vectors_whole();
                    to.push(output.0[lane] + bias);
                }
            }
        }
    }
}
