//! Losses and slopes against the definition in `f64`, on every path; a case by hand.

pub(crate) mod reference;

use super::*;
use crate::lanes::Path;
use fedgenie_core::rng::{Purpose, Streams};
use reference::Tensors;

const OBJECTIVE: Objective = Objective { negatives: 3, margin: 1.0, disentangle: 0.5, dropout: 0.0 };

/// All combinations of channels, and widths of blocks of a part of a vector, a whole one, and more.
fn shapes() -> Vec<Shape> {
    let usual = Shape { users: 7, items: 11, dim: 12, factors: 3, hidden: 9, attention: 5, features: [None; 2] };
    let with = |features| Shape { features, ..usual.clone() };
    vec![
        with([None; 2]),
        with([Some(6), None]),
        with([None, Some(17)]),
        with([Some(6), Some(17)]),
        Shape { dim: 64, factors: 4, hidden: 32, attention: 16, ..with([Some(16), None]) },
        Shape { dim: 40, factors: 2, hidden: 20, ..with([Some(3), None]) },
        Shape { dim: 5, factors: 1, ..with([Some(6), Some(2)]) },
    ]
}

fn uniform(count: usize, index: u32) -> Vec<f32> {
    let mut rng = Streams::new(3).stream(Purpose::Example, 77, index);
    (0..count).map(|_| 2.0 * rng.uniform() as f32 - 1.0).collect()
}

struct Case {
    shape: Shape,
    features: Features,
    parameters: Vec<f32>,
    users: Vec<u32>,
    positives: Vec<u32>,
    negatives: Vec<u32>,
}

impl Case {
    fn new(shape: Shape, examples: usize) -> Self {
        let of_mode = |mode: usize| uniform(shape.features[mode].unwrap_or(0) * shape.items, mode as u32);
        let features = Features([0, 1].map(of_mode));
        // Larger than a run begins with, so that hinges are on both sides.
        let parameters = uniform(shape.parameters(), 5).into_iter().map(|number| 0.8 * number).collect();
        let mut rng = Streams::new(3).stream(Purpose::Example, 78, 0);
        let mut below = |count: usize, most: usize| (0..count).map(|_| rng.below(most as u64) as u32).collect();
        let users = below(examples, shape.users);
        let positives = below(examples, shape.items);
        let negatives = below(examples * OBJECTIVE.negatives, shape.items);
        Self { shape, features, parameters, users, positives, negatives }
    }

    fn batch(&self) -> Batch<'_> {
        Batch { users: &self.users, positives: &self.positives, negatives: &self.negatives }
    }

    fn gradient(&self, objective: &Objective, scratch: &mut Scratch) -> (Loss, Vec<f32>, Vec<f32>) {
        let network = Network { shape: &self.shape, features: &self.features };
        let mut gradient = vec![9.0; self.parameters.len()];
        let mut losses = Vec::new();
        let noise = &mut Streams::new(4).stream(Purpose::TrainingNoise, 0, 1);
        let to = (&mut losses, scratch);
        let loss = network.loss_and_gradient(&self.parameters, self.batch(), objective, &mut gradient, noise, to);
        (loss, gradient, losses)
    }
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&number| f64::from(number)).collect()
}

#[test]
fn losses_and_slopes_are_those_of_the_definition() {
    for shape in shapes() {
        // Fewer than a vector, more than one, and one alone; users and items repeat.
        for examples in [1, 19] {
            let case = Case::new(shape.clone(), examples);
            let (loss, gradient, losses) = case.gradient(&OBJECTIVE, &mut Scratch::default());
            let mut values = wide(&case.parameters);
            let tensors = Tensors { shape: &case.shape, values: &values };
            let (expected, correlation) = tensors.loss(&case.features, case.batch(), &OBJECTIVE);
            for (found, expected) in losses.iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 2e-6, "{found} {expected}");
            }
            let ranking = expected.iter().sum::<f64>() / examples as f64;
            assert!((loss.ranking - ranking).abs() < 1e-6 && (loss.correlation - correlation).abs() < 2e-6, "{loss:?}");
            assert!(expected.iter().any(|&loss| loss > 0.0));
            let network = Network { shape: &case.shape, features: &case.features };
            let mut alone = Vec::new();
            let scratch = &mut Scratch::default();
            network.losses(&case.parameters, case.batch(), &OBJECTIVE, &mut alone, scratch);
            assert_eq!(alone, losses);
            // Central differences of the definition; a few entries of every tensor.
            for tensor in case.shape.tensors() {
                let entries = tensor.entries();
                let most =
                    gradient[tensor.offset..][..entries].iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
                assert!(most > 0.0, "{} of {shape:?}, {examples} examples", tensor.name);
                for entry in (0..entries).step_by(entries.div_ceil(9)) {
                    let index = tensor.offset + entry;
                    let (old, step) = (values[index], 1e-6);
                    let mut at = |value| {
                        values[index] = value;
                        let tensors = Tensors { shape: &case.shape, values: &values };
                        tensors.objective(&case.features, case.batch(), &OBJECTIVE)
                    };
                    let slope = (at(old + step) - at(old - step)) / (2.0 * step);
                    values[index] = old;
                    let found = f64::from(gradient[index]);
                    let allowed = 1e-5 * f64::from(most) + 2e-5 * slope.abs() + 1e-8;
                    let place = format!("{}[{entry}] of {shape:?}, {examples} examples", tensor.name);
                    assert!((found - slope).abs() < allowed, "{place}: {found} {slope}");
                }
            }
        }
    }
}

#[test]
fn neither_path_nor_an_earlier_batch_changes_a_bit() {
    let objective = Objective { dropout: 0.3, ..OBJECTIVE };
    for shape in shapes().into_iter().filter(|shape| shape.dim < 60) {
        let case = Case::new(shape.clone(), 21);
        let larger = Case::new(shape, 70);
        let (loss, gradient, losses) = case.gradient(&objective, &mut Scratch::on(Path::BASELINE));
        for path in Path::all() {
            let mut scratch = Scratch::on(path);
            larger.gradient(&objective, &mut scratch);
            let (again, slopes, values) = case.gradient(&objective, &mut scratch);
            assert_eq!((again, values), (loss, losses.clone()), "{path}");
            assert!(slopes.iter().zip(&gradient).all(|(x, y)| x.to_bits() == y.to_bits()), "{path}");
        }
    }
}

/// One user and two items with embeddings of one number, no features, an attention whose first layer is zero: `α` is
/// the softmax of the second layer's bias.
#[test]
fn a_pair_by_hand() {
    let shape = Shape { users: 1, items: 2, dim: 1, factors: 1, hidden: 1, attention: 1, features: [None; 2] };
    // users, items (2), attention: 2 + 1, then 2 and 2.
    let quarter = 3.0_f32.ln();
    let parameters = [2.0, 0.5, -0.5, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, quarter];
    assert_eq!(shape.parameters(), parameters.len());
    let features = Features::default();
    let network = Network { shape: &shape, features: &features };
    let batch = Batch { users: &[0], positives: &[0], negatives: &[1] };
    let objective = Objective { negatives: 1, margin: 1.0, disentangle: 1.0, dropout: 0.0 };
    let mut gradient = [0.0; 10];
    let mut losses = Vec::new();
    let (noise, scratch) = (&mut Streams::new(1).stream(Purpose::TrainingNoise, 0, 0), &mut Scratch::default());
    let loss = network.loss_and_gradient(&parameters, batch, &objective, &mut gradient, noise, (&mut losses, scratch));
    // α = (1/4, 3/4). Products ±1: GELU(1) = Φ(1) = 0.8413447, GELU(−1) = −0.1586553; r⁺ − r⁻ = 3/4.
    assert!((loss.ranking - 0.25).abs() < 1e-6 && loss.correlation == 0.0, "{loss:?}");
    // GELU′(1) = Φ(1) + φ(1) = 1.0833155, GELU′(−1) = 0.1586553 − 0.2419707 = −0.0833155.
    // By the user: −3/4 (1.0833155 · 0.5 − (−0.0833155)(−0.5)) = −3/4 · 0.5 (1.0833155 − 0.0833155).
    let expected = [-0.375, -0.75 * 2.0 * 1.083_315_5, 0.75 * 2.0 * -0.083_315_5];
    for (found, expected) in gradient.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{gradient:?}");
    }
    // By the bias of the id's output: −α(1 − α)(GELU(1) − GELU(−1)) = −3/16.
    assert!((gradient[9] + 3.0 / 16.0).abs() < 1e-6 && (gradient[8] - 3.0 / 16.0).abs() < 1e-6);
}

#[test]
fn distance_correlation_has_its_definitions_value_and_slope() {
    use super::distance::{Blocks, Distances};
    for (rows, width, factors) in [(2, 1, 2), (17, 3, 4), (40, 16, 3), (128, 5, 2)] {
        let stride = network::stride_of(rows);
        let mut values = uniform(factors * width * stride, 9);
        // Equal rows, of which the distance has no slope.
        for row in values.chunks_exact_mut(stride) {
            row[rows - 1] = row[0];
        }
        let block = |values: &[f64], factor: usize| -> Vec<Vec<f64>> {
            let number = |row: usize, k: usize| values[(factor * width + k) * stride + row];
            (0..rows).map(|row| (0..width).map(|k| number(row, k)).collect()).collect()
        };
        let sum = |values: &[f64]| -> f64 {
            let pairs = (0..factors).flat_map(|x| (x + 1..factors).map(move |y| (x, y)));
            pairs.map(|(x, y)| reference::correlation(&block(values, x), &block(values, y))).sum()
        };
        for path in Path::all() {
            let mut slopes = vec![0.0; values.len()];
            let blocks = Blocks { values: &values, stride, width, factors, rows };
            let found = Distances::default().add(path, &blocks, 0.7, &mut slopes);
            let mut exact = wide(&values);
            assert!((found - sum(&exact)).abs() < 3e-6, "{found} {}", sum(&exact));
            let most = slopes.iter().fold(0.0_f32, |most, slope| most.max(slope.abs()));
            for (row, k) in [(0, 0), (rows / 2, width - 1), (1, factors * width - 1), (rows - 1, width)] {
                let index = k * stride + row;
                let old = exact[index];
                let mut at = |value| {
                    exact[index] = value;
                    sum(&exact)
                };
                // Larger than a distance of equal rows.
                let slope = 0.7 * (at(old + 1e-7) - at(old - 1e-7)) / 2e-7;
                exact[index] = old;
                let found = f64::from(slopes[index]);
                assert!((found - slope).abs() < 2e-5 * f64::from(most) + 1e-6, "{path}, {rows}: {found} {slope}");
            }
        }
    }
}

#[test]
fn hidden_numbers_are_dropped_and_the_others_scaled() {
    // One hidden number and a second layer that hands it on: a projection is 0 or 1/(1 − rate) times the feature.
    let shape = Shape { users: 1, items: 1, dim: 1, factors: 1, hidden: 1, attention: 1, features: [Some(1), None] };
    let features = Features([vec![1.0], Vec::new()]);
    let mut parameters = vec![0.0; shape.parameters()];
    // user 1; text: weights 1, biases 0.
    (parameters[0], parameters[2], parameters[4]) = (1.0, 1.0, 1.0);
    let network = Network { shape: &shape, features: &features };
    let (users, items) = (vec![0; 4_000], vec![0; 4_000]);
    let batch = Batch { users: &users, positives: &items, negatives: &items };
    let objective = Objective { negatives: 1, margin: 100.0, disentangle: 0.0, dropout: 0.25 };
    let mut gradient = vec![0.0; parameters.len()];
    let (mut losses, mut noise) = (Vec::new(), Streams::new(1).stream(Purpose::TrainingNoise, 0, 0));
    let mut scratch = Scratch::default();
    let to = (&mut losses, &mut scratch);
    network.loss_and_gradient(&parameters, batch, &objective, &mut gradient, &mut noise, to);
    // α = 1/3; the score is GELU(4/3)/3 or 0, of the positive and of the negative.
    let score = 4.0 / 3.0 * 0.5 * (1.0 + libm::erf(4.0 / 3.0 / 2.0_f64.sqrt())) / 3.0;
    let count = |value: f64| losses.iter().filter(|&&loss| (f64::from(loss) - value).abs() < 1e-4).count() as f64;
    let (up, down, same) = (count(100.0 + score), count(100.0 - score), count(100.0));
    assert_eq!(up + down + same, 4_000.0);
    // Each of up and down has probability 3/16: 750 of 4,000, standard deviation 25.
    assert!((up - 750.0).abs() < 100.0 && (down - 750.0).abs() < 100.0, "{up} {down}");
}

#[test]
fn all_items_have_the_scores_of_the_definition_on_every_path() {
    use crate::ranking::ScoreItems;
    // Hidden numbers of everyday size; some of users beyond those whose power is used; some of items.
    for (shape, [of_users, of_items]) in shapes()
        .into_iter()
        .flat_map(|shape| [[1.0, 1.0], [90.0, 1.0], [1.0, 90.0]].map(|factors| (shape.clone(), factors)))
    {
        // More items than are projected at a time.
        let mut case = Case::new(Shape { items: 150, ..shape }, 2);
        let [first, end, ..] = case.shape.attention_places();
        let (width, row) = (case.shape.width(), case.shape.channels() * case.shape.width());
        for (place, weight) in case.parameters[first..end].iter_mut().enumerate() {
            *weight *= if place % row < width { of_users } else { of_items };
        }
        let values = wide(&case.parameters);
        let tensors = Tensors { shape: &case.shape, values: &values };
        let users = [6, 0, 3];
        let scores = |path| {
            let mut scores = vec![0.0; 3 * 150];
            ItemScores::on(path, &case.shape, &case.features, &case.parameters).score(&users, &mut scores);
            scores
        };
        let found = scores(Path::detect());
        let most = 3e-6 * f64::from(of_users.max(of_items));
        for (row, &user) in found.chunks_exact(150).zip(&users) {
            for (item, &score) in row.iter().enumerate() {
                let expected = tensors.score(&case.features, user, item as u32);
                assert!((f64::from(score) - expected).abs() < most, "{score} {expected}");
            }
        }
        if case.shape.dim < 40 {
            assert!(Path::all().into_iter().all(|path| scores(path) == found));
        }
    }
}

#[test]
fn tensors_follow_each_other_and_begin_as_documented() {
    let shape = Shape { dim: 64, factors: 4, hidden: 128, attention: 16, users: 200, ..shapes()[3].clone() };
    let mut end = 0;
    let mut parameters = vec![7.0; shape.parameters()];
    shape.init(&mut Streams::new(2).stream(Purpose::ModelInit, 0, 0), &mut parameters);
    for tensor in shape.tensors() {
        assert_eq!(tensor.offset, end, "{}", tensor.name);
        end += tensor.entries();
        let numbers = wide(&parameters[tensor.offset..end]);
        let most = numbers.iter().fold(0.0_f64, |most, number| most.max(number.abs()));
        let deviation = (numbers.iter().map(|number| number * number).sum::<f64>() / numbers.len() as f64).sqrt();
        match (&*tensor.name, &tensor.shape[..]) {
            ("users.weight", _) => assert!((deviation - 0.1).abs() < 0.003, "{deviation}"),
            ("items.weight", _) => assert!((deviation - 0.1).abs() < 0.01, "{deviation}"),
            (_, [outputs, inputs]) => {
                let bound = (6.0 / (inputs + outputs) as f64).sqrt();
                assert!(most <= bound * 1.000_001 && most > 0.9 * bound, "{}: {most}", tensor.name);
            }
            _ => assert_eq!(most, 0.0),
        }
    }
    assert_eq!(end, shape.parameters());
    let names: Vec<String> = shape.tensors().into_iter().map(|tensor| tensor.name).collect();
    assert_eq!(names[2..4], ["text.0.weight", "text.0.bias"]);
    assert_eq!(
        names[9..],
        ["image.2.bias", "attention.0.weight", "attention.0.bias", "attention.2.weight", "attention.2.bias"]
    );
}
