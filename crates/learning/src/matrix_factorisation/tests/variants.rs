//! Steps in two halves, and users represented with items, against central differences in double precision.

use super::super::*;
use crate::ratings::triplets::Triplet;
use crate::trainer::OptimizerConfig;
use fedgenie_core::halt::NEVER;

const D: usize = 19;
const USERS: usize = 2;
const ITEMS: usize = 8;
const RATE: f64 = 0.1;
const MU: f64 = 0.3;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variant {
    Halves,
    Neighbours,
}

fn numbers(count: usize, index: u32) -> Vec<f32> {
    let mut rng = Streams::new(9).stream(Purpose::Example, 0, index);
    (0..count).map(|_| (rng.uniform() - 0.5) as f32).collect()
}

fn triplets() -> Vec<Triplet> {
    let triplet = |(user, positive, negative)| Triplet { user, positive, negative };
    [(0, 1, 4), (1, 1, 7), (0, 2, 4), (1, 5, 0), (0, 3, 7), (1, 6, 3)].map(triplet).to_vec()
}

const POSITIVES: [&[u32]; USERS] = [&[1, 2, 3], &[1, 5, 6]];

/// Rows of users, then of items.
#[derive(Clone)]
struct World(Variant, Vec<f64>);

impl World {
    fn row(&self, index: usize) -> &[f64] {
        &self.1[index * D..][..D]
    }

    fn seen(&self, user: usize) -> Vec<f64> {
        let mut row = self.row(user).to_vec();
        if self.0 == Variant::Neighbours {
            for &item in POSITIVES[user] {
                let of_item = self.row(USERS + item as usize);
                row.iter_mut().zip(of_item).for_each(|(number, &of_item)| *number += of_item / 3.0_f64.sqrt());
            }
        }
        row
    }

    fn loss(&self, batch: &[Triplet]) -> f64 {
        let of = |triplet: &Triplet| {
            let [positive, negative] = [triplet.positive, triplet.negative].map(|item| self.row(USERS + item as usize));
            let seen = self.seen(triplet.user as usize);
            let x: f64 = (0..D).map(|at| seen[at] * (positive[at] - negative[at])).sum();
            (1.0 + (-x).exp()).ln()
        };
        batch.iter().map(of).sum::<f64>() / batch.len() as f64
    }

    fn slope(&self, batch: &[Triplet], index: usize) -> f64 {
        let at = |shift: f64| {
            let mut moved = self.clone();
            moved.1[index] += shift;
            moved.loss(batch)
        };
        (at(1e-5) - at(-1e-5)) / 2e-5
    }

    /// Moves the rows that a step meets, of users, of items, or of both.
    fn descend(&mut self, batch: &[Triplet], start: &[f64], moves: Moves, rows: std::ops::Range<usize>) {
        let met = |row: usize| {
            let rated = |user: usize| row >= USERS && POSITIVES[user].contains(&((row - USERS) as u32));
            let of = |triplet: &Triplet| {
                let rows = [triplet.user, triplet.positive + 2, triplet.negative + 2];
                rows.contains(&(row as u32)) || self.0 == Variant::Neighbours && rated(triplet.user as usize)
            };
            let is_free = row < USERS || rated(0) || rated(1);
            batch.iter().any(of) && (moves == Moves::Touched || is_free)
        };
        let indices: Vec<usize> = rows.filter(|&row| met(row)).flat_map(|row| row * D..(row + 1) * D).collect();
        let slopes: Vec<f64> = indices.iter().map(|&index| self.slope(batch, index)).collect();
        for (index, slope) in indices.into_iter().zip(slopes) {
            self.1[index] -= RATE * (slope + MU * (self.1[index] - start[index]));
        }
    }
}

fn found(variant: Variant, moves: Moves, path: Path) -> (Outcome, Vec<f32>, Vec<f32>) {
    let (users, items) = (numbers(USERS * D, 1), numbers(ITEMS * D, 2));
    let sgd = OptimizerConfig::Sgd { lr: RATE, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let settings = BprTraining {
        dimensions: D,
        length: Length::Epochs(2),
        batch: 4,
        optimizer: Optimizer::new(&sgd).unwrap(),
        extra: RowRegularisation { clip: None, proximal: MU as f32 },
        moves,
    };
    let positives = POSITIVES.concat();
    let job = Job {
        halt: &NEVER,
        table: &items,
        users: &users,
        positives: &positives,
        ends: &[3, 6],
        negatives: Negatives::Given(&triplets()),
        lr_factor: 1.0,
        correction: None,
        order: Streams::new(1).stream(Purpose::BatchOrder, 0, 1),
        draws: Streams::new(1).stream(Purpose::TrainingNoise, 0, 1),
    };
    let (mut worker, mut outcome) = (Worker::on(path), Outcome::default());
    match variant {
        Variant::Halves => Halves::default().train(&mut worker, &settings, &job, &mut outcome),
        Variant::Neighbours => Neighbours::default().train(&mut worker, &settings, &job, &mut outcome),
    }
    let mut extent = Footprint::default();
    if variant == Variant::Neighbours {
        extent = extent.with_neighbours();
    }
    assert_eq!(extent.of(&settings, &job, ITEMS).moved, outcome.items.len());
    (outcome, users, items)
}

#[test]
fn steps_follow_central_differences() {
    for variant in [Variant::Halves, Variant::Neighbours] {
        for moves in [Moves::Touched, Moves::Interacted] {
            let (outcome, users, items) = found(variant, moves, Path::detect());
            let start: Vec<f64> = users.iter().chain(&items).map(|&number| f64::from(number)).collect();
            let mut world = World(variant, start.clone());
            let all = triplets();
            let mut order: Vec<u32> = (0..all.len() as u32).collect();
            let mut rng = Streams::new(1).stream(Purpose::BatchOrder, 0, 1);
            let mut first = Vec::new();
            for epoch in 0..2 {
                rng.shuffle(&mut order);
                for batch in order.chunks(4) {
                    let batch: Vec<Triplet> = batch.iter().map(|&index| all[index as usize]).collect();
                    if epoch == 0 {
                        first.push(world.loss(&batch) * batch.len() as f64);
                    }
                    match variant {
                        Variant::Halves => {
                            world.descend(&batch, &start, moves, 0..USERS);
                            world.descend(&batch, &start, moves, USERS..USERS + ITEMS);
                        }
                        Variant::Neighbours => world.descend(&batch, &start, moves, 0..USERS + ITEMS),
                    }
                }
            }
            assert!((outcome.loss - first.iter().sum::<f64>() / 6.0).abs() < 1e-6, "{variant:?}");
            let compare = |found: &[f32], row: usize| {
                for (&found, &expected) in found.iter().zip(world.row(row)) {
                    assert!((f64::from(found) - expected).abs() < 2e-6, "{variant:?}, {moves:?}: {found}, {expected}");
                }
            };
            outcome.users.chunks_exact(D).enumerate().for_each(|(user, row)| compare(row, user));
            for (&item, row) in outcome.items.iter().zip(outcome.rows.chunks_exact(D)) {
                compare(row, USERS + item as usize);
            }
            assert_eq!(outcome.items.len(), if moves == Moves::Touched { ITEMS } else { 5 });
        }
    }
}

#[test]
fn variants_have_the_same_bits_on_every_path() {
    for variant in [Variant::Halves, Variant::Neighbours] {
        let expected = found(variant, Moves::Touched, Path::detect()).0;
        for path in Path::all() {
            assert_eq!(found(variant, Moves::Touched, path).0, expected);
        }
    }
}

#[test]
fn a_user_is_seen_with_items() {
    let (users, items) = (numbers(USERS * D, 1), numbers(ITEMS * D, 2));
    let all = users.iter().chain(&items).map(|&number| f64::from(number)).collect();
    let mut row = users[..D].to_vec();
    with_neighbours(POSITIVES[0], &items, &mut row);
    for (&found, expected) in row.iter().zip(World(Variant::Neighbours, all).seen(0)) {
        assert!((f64::from(found) - expected).abs() < 1e-6);
    }
    let before = row.clone();
    with_neighbours(&[], &items, &mut row);
    assert_eq!(row, before, "who rated nothing is seen alone");
}
