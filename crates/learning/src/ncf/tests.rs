//! Steps, losses and scores against the definition in double precision; the same bits on every path.

use super::*;
use crate::lanes::Path;
use crate::matrix_factorisation::{BprTraining, ItemPanels, Job, Moves, Negatives, RowRegularisation, UserTable};
use crate::ranking::ScoreItems;
use crate::ratings::triplets::Triplet;
use crate::trainer::{Length, Optimizer, OptimizerConfig};
use fedgenie_core::halt::NEVER;

/// A network in double precision: `W₁`, `b₁`, `W₂`, `b₂`.
struct Network<'a> {
    d: usize,
    h: usize,
    weights: &'a [f64],
}

impl Network<'_> {
    fn hidden(&self, unit: usize, user: &[f64], item: &[f64]) -> f64 {
        let row = &self.weights[unit * 2 * self.d..][..2 * self.d];
        let sum: f64 = row.iter().zip(user.iter().chain(item)).map(|(weight, number)| weight * number).sum();
        (sum + self.weights[2 * self.d * self.h + unit]).max(0.0)
    }

    fn answer(&self, user: &[f64], item: &[f64]) -> f64 {
        let second = &self.weights[(2 * self.d + 1) * self.h..];
        (0..self.h).map(|unit| second[unit] * self.hidden(unit, user, item)).sum::<f64>() + second[self.h]
    }
}

/// All that a job moves, one after the other: rows of users, all rows of items, weights.
#[derive(Clone)]
struct World {
    shape: Shape,
    users: usize,
    items: usize,
    numbers: Vec<f64>,
}

fn softplus(x: f64) -> f64 {
    (1.0 + x.exp()).ln()
}

impl World {
    fn row(&self, index: usize) -> &[f64] {
        &self.numbers[index * self.shape.dimensions..][..self.shape.dimensions]
    }

    fn network(&self, index: usize) -> Network<'_> {
        let Shape { dimensions: d, hidden: h, .. } = self.shape;
        let begin = (self.users + self.items) * d + index * self.shape.network();
        Network { d, h, weights: &self.numbers[begin..][..self.shape.network()] }
    }

    fn rows(&self, Triplet { user, positive, negative }: Triplet) -> [&[f64]; 3] {
        [user as usize, self.users + positive as usize, self.users + negative as usize].map(|index| self.row(index))
    }

    fn loss(&self, triplet: Triplet) -> f64 {
        let [user, positive, negative] = self.rows(triplet);
        let network = self.network(0);
        softplus(network.answer(user, negative) - network.answer(user, positive))
    }

    fn predicted(&self, triplet: Triplet) -> f64 {
        let [user, positive, negative] = self.rows(triplet);
        let proxy = self.network(1);
        match self.shape.proxy {
            Some(Proxy::Pairwise) => softplus(proxy.answer(user, negative) - proxy.answer(user, positive)),
            Some(Proxy::Positive) => proxy.answer(user, positive),
            None => f64::NAN,
        }
    }

    /// The slope of the mean loss by rows and network, and of the mean squared error by the proxy: central differences.
    fn slopes(&self, batch: &[Triplet], fixed: &[bool]) -> Vec<f64> {
        let count = batch.len() as f64;
        let proxy = self.numbers.len() - if self.shape.proxy.is_some() { self.shape.network() } else { 0 };
        let truth: Vec<f64> = batch.iter().map(|&triplet| self.loss(triplet)).collect();
        let mean = |world: &Self, of_proxy: bool| -> f64 {
            let of = |(&triplet, truth): (&Triplet, &f64)| match of_proxy {
                false => world.loss(triplet),
                true => (world.predicted(triplet) - truth).powi(2),
            };
            batch.iter().zip(&truth).map(of).sum::<f64>() / count
        };
        let mut world = self.clone();
        let by = |index: usize| {
            if fixed.get(index / self.shape.dimensions) == Some(&true) {
                return 0.0;
            }
            let before = self.numbers[index];
            let mut at = |number: f64| {
                world.numbers[index] = number;
                mean(&world, index >= proxy)
            };
            let slope = (at(before + 1e-6) - at(before - 1e-6)) / 2e-6;
            world.numbers[index] = before;
            // Numbers without influence have a slope of 0, whose sign is no matter of rounding.
            if slope.abs() < 1e-7 { 0.0 } else { slope }
        };
        (0..self.numbers.len()).map(by).collect()
    }
}

const USERS: usize = 2;
const ITEMS: usize = 9;

fn numbers(count: usize, index: u32) -> Vec<f32> {
    let mut rng = Streams::new(5).stream(Purpose::Example, 0, index);
    (0..count).map(|_| (rng.uniform() - 0.5) as f32).collect()
}

fn world(shape: Shape) -> (World, [Vec<f32>; 3]) {
    let d = shape.dimensions;
    let parts = [numbers(USERS * d, 1), numbers(ITEMS * d, 2), numbers(shape.weights(), 3)];
    let all = parts.iter().flatten().map(|&number| f64::from(number)).collect();
    (World { shape, users: USERS, items: ITEMS, numbers: all }, parts)
}

fn triplets() -> Vec<Triplet> {
    let triplet = |(user, positive, negative)| Triplet { user, positive, negative };
    [(0, 1, 4), (1, 1, 7), (0, 2, 4), (0, 3, 8), (1, 5, 0), (0, 1, 8), (1, 6, 3)].map(triplet).to_vec()
}

/// A user's positives among the triplets.
fn positives() -> (Vec<u32>, Vec<u32>) {
    (vec![1, 2, 3, 1, 5, 6], vec![3, 6])
}

fn shapes() -> Vec<Shape> {
    let proxies = [None, Some(Proxy::Pairwise), Some(Proxy::Positive)];
    let sizes = [(3, 5), (16, 16), (17, 33), (32, 32)];
    let shape = |&(dimensions, hidden)| proxies.map(|proxy| Shape { dimensions, hidden, proxy });
    sizes.iter().flat_map(shape).collect()
}

fn trained(shape: Shape, optimizer: &OptimizerConfig, extra: RowRegularisation, moves: Moves, path: Path) -> Outcome {
    let (_, [users, items, weights]) = world(shape);
    let (positives, ends) = positives();
    let settings = BprTraining {
        dimensions: shape.dimensions,
        length: Length::Steps(3),
        batch: 3,
        optimizer: Optimizer::new(optimizer).unwrap(),
        extra,
        moves,
    };
    let job = Job {
        halt: &NEVER,
        table: &items,
        users: &users,
        positives: &positives,
        ends: &ends,
        negatives: Negatives::Given(&triplets()),
        lr_factor: 0.5,
        correction: None,
        order: Streams::new(1).stream(Purpose::BatchOrder, 0, 1),
        draws: Streams::new(1).stream(Purpose::TrainingNoise, 0, 1),
    };
    let mut outcome = Outcome::default();
    // The rest of another job does no harm.
    let mut worker = Worker::on(path);
    for _ in 0..2 {
        worker.train(&shape, &settings, (&job, &weights), &mut outcome);
    }
    outcome
}

/// The batches of three steps.
fn batches() -> Vec<Vec<Triplet>> {
    let all = triplets();
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    Streams::new(1).stream(Purpose::BatchOrder, 0, 1).shuffle(&mut order);
    order.chunks(3).map(|batch| batch.iter().map(|&index| all[index as usize]).collect()).collect()
}

const RATE: f64 = 0.05;

/// Three steps by the definition, each parameter treated alone.
fn expected(shape: Shape, is_adam: bool, clip: Option<f64>, mu: f64, moves: Moves) -> World {
    let (mut world, _) = world(shape);
    let start = world.numbers.clone();
    let d = shape.dimensions;
    let is_positive = |item: usize| positives().0.contains(&(item as u32));
    let fixed: Vec<bool> =
        (0..USERS + ITEMS).map(|row| moves == Moves::Interacted && row >= USERS && !is_positive(row - USERS)).collect();
    let (mut first, mut second) = (vec![0.0; start.len()], vec![0.0; start.len()]);
    for (batch, t) in batches().iter().zip(1..) {
        let mut slopes = world.slopes(batch, &fixed);
        if let Some(most) = clip {
            let norm = slopes.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
            let scale = (most / (norm + 1e-6)).min(1.0);
            slopes.iter_mut().for_each(|slope| *slope *= scale);
        }
        let met = |row: usize| {
            let of = |triplet: &Triplet| {
                [triplet.user as usize, USERS + triplet.positive as usize, USERS + triplet.negative as usize]
            };
            row >= USERS + ITEMS || batch.iter().any(|triplet| of(triplet).contains(&row)) && !fixed[row]
        };
        for index in (0..slopes.len()).filter(|index| met(index / d)) {
            let slope = slopes[index] + mu * (world.numbers[index] - start[index]);
            let step = if is_adam {
                first[index] = 0.9 * first[index] + 0.1 * slope;
                second[index] = 0.999 * second[index] + 0.001 * slope * slope;
                let root = (second[index] / (1.0 - 0.999_f64.powi(t))).sqrt();
                first[index] / (1.0 - 0.9_f64.powi(t)) / (root + 1e-8)
            } else {
                slope
            };
            world.numbers[index] -= RATE * step;
        }
    }
    world
}

fn sgd() -> OptimizerConfig {
    OptimizerConfig::Sgd { lr: 2.0 * RATE, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 }
}

fn adam() -> OptimizerConfig {
    OptimizerConfig::Adam { lr: 2.0 * RATE, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
}

fn compare(outcome: &Outcome, expected: &World, tolerance: f64) {
    let d = expected.shape.dimensions;
    let found = outcome.rows.users.iter().zip(&expected.numbers[..USERS * d]);
    for (place, (&found, &expected)) in found.enumerate() {
        assert!((f64::from(found) - expected).abs() < tolerance, "user {place}: {found}, {expected}");
    }
    for (&item, row) in outcome.rows.items.iter().zip(outcome.rows.rows.chunks_exact(d)) {
        for (&found, &expected) in row.iter().zip(expected.row(USERS + item as usize)) {
            assert!((f64::from(found) - expected).abs() < tolerance, "item {item}: {found}, {expected}");
        }
    }
    let weights = &expected.numbers[(USERS + ITEMS) * d..];
    for (place, (&found, &expected)) in outcome.weights.iter().zip(weights).enumerate() {
        assert!((f64::from(found) - expected).abs() < tolerance, "weight {place}: {found}, {expected}");
    }
}

#[test]
fn descent_follows_central_differences() {
    for shape in shapes() {
        for moves in [Moves::Touched, Moves::Interacted] {
            let outcome = trained(shape, &sgd(), RowRegularisation::default(), moves, Path::detect());
            compare(&outcome, &expected(shape, false, None, 0.0, moves), 2e-6);
            let count = if moves == Moves::Touched { ITEMS } else { 5 };
            assert_eq!(outcome.rows.items.len(), count, "all positives are met");
            assert!(!outcome.rows.diverged);
        }
    }
}

#[test]
fn one_norm_is_clipped_and_everything_is_pulled() {
    for shape in shapes() {
        let extra = RowRegularisation { clip: Some(0.05), proximal: 0.7 };
        let outcome = trained(shape, &sgd(), extra, Moves::Interacted, Path::detect());
        compare(&outcome, &expected(shape, false, Some(0.05), 0.7, Moves::Interacted), 2e-6);
    }
}

#[test]
fn adam_treats_rows_and_weights_alike() {
    for shape in shapes() {
        let outcome = trained(shape, &adam(), RowRegularisation::default(), Moves::Touched, Path::detect());
        compare(&outcome, &expected(shape, true, None, 0.0, Moves::Touched), 2e-4);
        // The last bias of the network cancels.
        assert_eq!(outcome.weights[shape.network() - 1], world(shape).1[2][shape.network() - 1]);
    }
}

#[test]
fn every_path_has_the_same_bits() {
    for shape in shapes() {
        let of = |path| trained(shape, &adam(), RowRegularisation::default(), Moves::Touched, path);
        let expected = of(Path::detect());
        for path in Path::all() {
            assert_eq!(of(path), expected, "{path:?}");
        }
    }
}

#[test]
fn losses_and_predictions_are_those_of_the_definition() {
    for shape in shapes() {
        let (world, [users, items, weights]) = world(shape);
        let mut some: Vec<u32> = triplets().iter().flat_map(|triplet| [triplet.positive, triplet.negative]).collect();
        some.sort_unstable();
        some.dedup();
        for path in Path::all() {
            for items_met in [None, Some(some.clone())] {
                let losses = Losses::on(path, &shape, &weights, &items, items_met);
                let mut found = Vec::new();
                // More than a block of 16.
                let many = triplets().repeat(5);
                losses.each(&users, &many, |loss, predicted| found.push([loss, predicted]));
                assert_eq!(found.len(), many.len());
                for ([loss, predicted], &triplet) in found.into_iter().zip(&many) {
                    assert!((f64::from(loss) - world.loss(triplet)).abs() < 1e-6);
                    match shape.proxy {
                        None => assert!(predicted.is_nan()),
                        Some(_) => assert!((f64::from(predicted) - world.predicted(triplet)).abs() < 1e-6),
                    }
                }
            }
        }
    }
}

#[test]
fn scores_are_answers() {
    for shape in shapes() {
        let d = shape.dimensions;
        let (world, [users, items, weights]) = world(shape);
        for path in Path::all() {
            let rows = UserTable(&users);
            let model = NetworkScores::on(path, &shape, &weights, &ItemPanels::of(&items, d), &rows);
            let mut scores = vec![0.0; 11 * ITEMS];
            let asked: Vec<u32> = (0..11).map(|place| place % 2).collect();
            model.score(&asked, &mut scores);
            for (&user, scores) in asked.iter().zip(scores.chunks_exact(ITEMS)) {
                for (item, &score) in scores.iter().enumerate() {
                    let expected = world.network(0).answer(world.row(user as usize), world.row(USERS + item));
                    assert!((f64::from(score) - expected).abs() < 1e-5, "{d}: {score}, {expected}");
                }
            }
        }
    }
}

#[test]
fn first_weights_fill_their_range() {
    let shape = Shape { dimensions: 32, hidden: 32, proxy: Some(Proxy::Pairwise) };
    let mut weights = vec![f32::NAN; shape.weights()];
    shape.init(&Streams::new(3), &mut weights);
    let [network, proxy] = [&weights[..shape.network()], &weights[shape.network()..]];
    assert_ne!(network[..2_048], proxy[..2_048]);
    for network in [network, proxy] {
        let bound = (6.0_f64 / 96.0).sqrt();
        let first = &network[..2_048];
        assert!(first.iter().all(|&weight| f64::from(weight.abs()) <= bound));
        let square = first.iter().map(|&weight| f64::from(weight).powi(2)).sum::<f64>() / 2_048.0;
        // The variance of a uniform number is a third of the square of its bound.
        assert!((square / (bound * bound / 3.0) - 1.0).abs() < 0.06, "{square}");
        assert!(network[2_048..2_080].iter().all(|&bias| bias == 0.0) && network[2_112] == 0.0);
        assert!(network[2_080..2_112].iter().all(|&weight| f64::from(weight.abs()) <= (6.0_f64 / 33.0).sqrt()));
    }
    // The same network without a proxy.
    let mut alone = vec![0.0; shape.network()];
    Shape { proxy: None, ..shape }.init(&Streams::new(3), &mut alone);
    assert_eq!(alone, network);
    let names: Vec<String> = shape.tensors().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..5], ["ncf.0.weight", "ncf.0.bias", "ncf.2.weight", "ncf.2.bias", "proxy.0.weight"]);
}
