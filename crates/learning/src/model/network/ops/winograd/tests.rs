//! The three directions against their definitions in `f64`, beside the direct kernels, and on every path.

use super::super::super::build::Window;
use super::super::super::kernels::{Layout, SLACK};
use super::super::Addend;
use super::super::conv::{Conv, ConvPlan};
use super::*;
use crate::data::Shape;
use crate::lanes::Path;
use fedgenie_core::rng::{Purpose, Streams};

/// A convolution with numbers between -1 and 1.
struct Case {
    conv: Conv,
    input: Layout,
    output: Layout,
    parameters: Vec<f32>,
    values: Vec<f32>,
    slopes: Vec<f32>,
    /// The gradient by the input before the addition.
    before: Vec<f32>,
}

/// Results of the three directions: forward, by the weights, by the input (written, and added).
type Results = [Vec<f32>; 4];

impl Case {
    fn new((channels, outputs): (usize, usize), (height, width): (usize, usize), padding: usize, batch: usize) -> Self {
        let window = Window { size: 3, stride: 1, padding };
        let positions = |side: usize| side + 2 * padding - 2;
        let input = Layout::new(Shape { channels, height, width }, batch);
        let shape = Shape { channels: outputs, height: positions(height), width: positions(width) };
        let output = Layout::new(shape, batch);
        let mut rng = Streams::new(4).stream(Purpose::Example, (channels * outputs) as u32, batch as u32);
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| 2.0 * rng.uniform() as f32 - 1.0).collect() };
        let weights = outputs * channels * 9;
        let conv = Conv { window, weights: 0, bias: Some(weights), relu: true };
        let parameters = numbers(weights + outputs);
        let (values, mut slopes, before) = (numbers(input.len()), numbers(output.len()), numbers(input.len()));
        // Slopes are zero in the padding of rows.
        for row in slopes.chunks_mut(output.row) {
            let used = output.used().min(row.len());
            row[used..].fill(0.0);
        }
        Self { conv, input, output, parameters, values, slopes, before }
    }

    /// By minimal filtering with tiles of a size, or directly.
    fn results(&self, size: Option<Size>, path: Path) -> Results {
        let winograd = size.map(|size| WinogradPlan::with(self.conv.window, self.input, self.output, size));
        let plan = ConvPlan::with(&self.conv, self.input, self.output, winograd);
        // Earlier contents of memory have no influence.
        let mut work = vec![f32::NAN; plan.work()];
        let mut out = vec![0.0; self.output.len()];
        self.conv.forward(&plan, &self.parameters, &self.values, &mut out, Resources { work: &mut work, path });
        let mut gradient = vec![f32::NAN; self.parameters.len()];
        self.conv.weight_gradient(
            &plan,
            &self.values,
            &self.slopes,
            &mut gradient,
            Resources { work: &mut work, path },
        );
        gradient.truncate(self.output.shape.channels * self.input.shape.channels * 9);
        let [written, added] = [false, true].map(|add| {
            let mut out = self.before.clone();
            let to = Addend { out: &mut out, add };
            self.conv.input_gradient(&plan, &self.parameters, &self.slopes, to, Resources { work: &mut work, path });
            meaning(self.input, &out)
        });
        [meaning(self.output, &out), gradient, written, added]
    }

    /// The same from the definitions.
    fn exact(&self) -> [Vec<f64>; 4] {
        let (from, to) = (self.input.shape, self.output.shape);
        let weights = from.channels * to.channels * 9;
        let values = meaning(self.input, &self.values);
        let slopes = meaning(self.output, &self.slopes);
        let before = meaning(self.input, &self.before);
        let batch = self.input.batch;
        let mut forward: Vec<f64> = Vec::new();
        let mut gradient = vec![0.0; weights];
        let mut written = vec![0.0; values.len()];
        for o in 0..to.channels {
            for y in 0..to.height {
                for x in 0..to.width {
                    for b in 0..batch {
                        let slope = f64::from(slopes[forward.len()]);
                        let mut sum = f64::from(self.parameters[weights + o]);
                        for c in 0..from.channels {
                            for tap in 0..9 {
                                let padding = self.conv.window.padding;
                                let row = (y + tap / 3).wrapping_sub(padding);
                                let column = (x + tap % 3).wrapping_sub(padding);
                                if row >= from.height || column >= from.width {
                                    continue;
                                }
                                let index = ((c * from.height + row) * from.width + column) * batch + b;
                                let weight = (o * from.channels + c) * 9 + tap;
                                sum += f64::from(self.parameters[weight]) * f64::from(values[index]);
                                gradient[weight] += slope * f64::from(values[index]);
                                written[index] += slope * f64::from(self.parameters[weight]);
                            }
                        }
                        forward.push(sum.max(0.0));
                    }
                }
            }
        }
        let added = written.iter().zip(&before).map(|(sum, &before)| sum + f64::from(before)).collect();
        [forward, gradient, written, added]
    }
}

/// The numbers that mean something: channel, row, column, example.
fn meaning(layout: Layout, numbers: &[f32]) -> Vec<f32> {
    let rows = numbers[..layout.len() - SLACK].chunks_exact(layout.row);
    rows.flat_map(|row| &row[..layout.used()]).copied().collect()
}

/// Root of the mean square of a difference, relative to that of the exact numbers.
fn error(found: &[f32], exact: &[f64]) -> f64 {
    assert_eq!(found.len(), exact.len());
    let differences = found.iter().zip(exact).map(|(&found, exact)| (f64::from(found) - exact).powi(2));
    let size: f64 = exact.iter().map(|exact| exact * exact).sum();
    // A ReLU may leave nothing but zeros.
    (differences.sum::<f64>() / size.max(f64::MIN_POSITIVE)).sqrt()
}

fn bits(results: &Results) -> [Vec<u32>; 4] {
    // The bits of a NaN are not promised; its place is.
    let bits = |&number: &f32| if number.is_nan() { f32::NAN.to_bits() } else { number.to_bits() };
    results.each_ref().map(|numbers| numbers.iter().map(bits).collect())
}

const DIRECTIONS: [&str; 4] = ["forward", "by the weights", "by the input", "by the input, added"];

/// Tiles, and what a result may be wrong by.
const SIZES: [(Size, f64); 2] = [(Size::Two, 1e-6), (Size::Four, 2e-6)];

#[test]
fn all_directions_are_those_of_the_definition() {
    let mut cases = Vec::new();
    for batch in [1, 5, 10, 17, 32, 33] {
        cases.extend([((3, 5), (5, 6), 0, batch), ((2, 7), (6, 5), 1, batch), ((17, 9), (3, 3), 1, batch)]);
    }
    cases.extend([
        ((1, 1), (3, 3), 0, 2),
        ((1, 1), (1, 1), 1, 3),
        ((16, 32), (8, 8), 1, 4),
        ((33, 50), (7, 9), 0, 10),
        ((65, 26), (4, 4), 1, 16),
        ((5, 6), (4, 5), 2, 7),
        ((2, 3), (40, 41), 1, 24),
        // Blocks of parts of a tile row, groups of outputs, large kernels.
        ((130, 100), (4, 30), 1, 10),
        ((256, 60), (6, 6), 1, 32),
        ((40, 260), (3, 20), 1, 32),
    ]);
    for (channels, sides, padding, batch) in cases {
        let case = Case::new(channels, sides, padding, batch);
        let exact = case.exact();
        for (size, most) in SIZES {
            let name = format!("{channels:?} channels of {sides:?}, padding {padding}, batch {batch}, {size:?}");
            let found = case.results(Some(size), Path::detect());
            for ((direction, found), exact) in DIRECTIONS.iter().zip(&found).zip(&exact) {
                let error = error(found, exact);
                assert!(error < most, "{name}, {direction}: wrong by {error}");
            }
            for path in Path::all() {
                assert!(bits(&case.results(Some(size), path)) == bits(&found), "{name}: other bits on {path:?}");
            }
        }
    }
}

#[test]
fn larger_tiles_are_taken_where_they_cost_less() {
    let chosen = |channels: usize, side: usize, batch: usize| {
        let layout = Layout::new(Shape { channels, height: side, width: side }, batch);
        Size::of(layout)
    };
    // Outputs of SimpleCNN and of ResNet-18, in both directions.
    for (channels, side, batch) in [(64, 28, 10), (32, 30, 10), (64, 32, 32), (128, 16, 32), (256, 8, 32)] {
        assert_eq!(chosen(channels, side, batch), Size::Four, "{channels} channels, {side} × {side}");
    }
    // 36 positions × (2 + 5 vectors) against 16 × (8 + 5); most of a tile of four would lie beyond the edge of five.
    assert_eq!(chosen(512, 4, 32), Size::Two);
    assert_eq!(chosen(64, 5, 32), Size::Two);
}

#[test]
fn the_error_is_of_the_order_of_that_of_direct_kernels() {
    for (channels, side, padding, batch) in [((32, 64), 28, 0, 2), ((64, 64), 16, 1, 4), ((128, 128), 4, 1, 8)] {
        let case = Case::new(channels, (side, side), padding, batch);
        let exact = case.exact();
        let direct = case.results(None, Path::detect());
        for (size, _) in SIZES {
            let winograd = case.results(Some(size), Path::detect());
            for (index, direction) in DIRECTIONS.iter().enumerate() {
                let direct = error(&direct[index], &exact[index]);
                let winograd = error(&winograd[index], &exact[index]);
                println!("{channels:?} {direction}: direct {direct:.2e}, {size:?} {winograd:.2e}");
                let most = if size == Size::Two { 3.0 } else { 8.0 };
                assert!(winograd < most * direct, "{direction}: {winograd}, direct {direct}");
            }
        }
    }
}

#[test]
fn special_numbers_leave_the_same_bits_on_every_path() {
    for special in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-42, -1e-45, f32::MAX, f32::MIN_POSITIVE, -0.0] {
        let mut case = Case::new((7, 9), (5, 6), 1, 11);
        case.values.iter_mut().step_by(61).for_each(|number| *number = special);
        case.slopes.iter_mut().step_by(97).for_each(|number| *number = special);
        case.parameters.iter_mut().step_by(83).for_each(|number| *number = special);
        for (size, _) in SIZES {
            let found = bits(&case.results(Some(size), Path::detect()));
            for path in Path::all() {
                assert!(bits(&case.results(Some(size), path)) == found, "{special} on {path:?}, {size:?}");
            }
        }
    }
}
