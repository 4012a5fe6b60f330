//! Scores of all items for a block of users at a time: the first layer falls into a part for users and one for items.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use super::Shape;
use super::losses::{Pass, pack};
use super::weights::{Plan, fill_up};
use crate::lanes::{Kernel, LANES, Lanes, Path, run};
use crate::matrix_factorisation::{UserRows, store_some};
use crate::ranking::{BLOCK, ScoreItems};
use std::cell::RefCell;

/// A model that is to be evaluated: its items' parts of the hidden numbers, 16 items side by side, and where users'
/// rows come from.
pub struct NetworkScores<'a> {
    path: Path,
    shape: Shape,
    items: usize,
    /// The network's weights, filled up.
    weights: Vec<f32>,
    /// Panel by panel of 16 items, hidden number by hidden number; zeros behind the last item.
    panels: Vec<Lanes>,
    users: &'a dyn UserRows,
}

impl<'a> NetworkScores<'a> {
    /// Takes over the item table, items × dimensions, and all weights.
    ///
    /// # Panics
    /// If the table has not whole rows, or a weight is missing.
    pub fn new(shape: &Shape, weights: &[f32], table: &[f32], users: &'a dyn UserRows) -> Self {
        Self::on(Path::detect(), shape, weights, table, users)
    }

    /// As [`NetworkScores::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`NetworkScores::new`].
    pub fn on(path: Path, shape: &Shape, weights: &[f32], table: &[f32], users: &'a dyn UserRows) -> Self {
        let d = shape.dimensions;
        assert!(weights.len() == shape.weights() && table.len().is_multiple_of(d), "the model is whole");
        let alone = Shape { proxy: None, ..*shape };
        let mut filled = Vec::new();
        fill_up(&alone, &weights[..alone.weights()], &mut filled);
        let items = table.len() / d;
        let mut panels = vec![Lanes::ZERO; items.div_ceil(LANES) * shape.hidden];
        run(path, Panels { shape: alone, weights: &filled, table, panels: &mut panels });
        Self { path, shape: alone, items, weights: filled, panels, users }
    }
}

/// What a thread reuses from block to block.
#[derive(Default)]
struct Buffers {
    table: Vec<f32>,
    rows: Vec<Lanes>,
    parts: Vec<Lanes>,
    numbers: Vec<f32>,
}

/// The items' parts, 16 items side by side.
struct Panels<'a> {
    shape: Shape,
    weights: &'a [f32],
    table: &'a [f32],
    panels: &'a mut [Lanes],
}

impl Kernel for Panels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { shape: Shape { dimensions: d, hidden, .. }, weights, table, panels } = self;
        let plan = Plan::of(&self.shape);
        let side = &weights[plan.first(1)];
        let mut numbers = vec![Lanes::ZERO; d];
        for (rows, panel) in table.chunks(LANES * d).zip(panels.chunks_exact_mut(hidden)) {
            for (lane, row) in rows.chunks_exact(d).enumerate() {
                numbers.iter_mut().zip(row).for_each(|(numbers, &number)| numbers.0[lane] = number);
            }
            for lane in rows.len() / d..LANES {
                numbers.iter_mut().for_each(|numbers| numbers.0[lane] = 0.0);
            }
            for (number, &row) in numbers.iter().enumerate() {
                let column = &side[number * plan.hidden * LANES..][..hidden];
                for place in 0..hidden {
                    panel[place] = row.mul_add(Lanes::splat(column[place]), panel[place]);
                }
            }
        }
    }
}

impl ScoreItems for NetworkScores<'_> {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        assert!(users.len() <= BLOCK && scores.len() == users.len() * self.items, "a block has a row for each user");
        thread_local! {
            static BUFFERS: RefCell<Buffers> = RefCell::default();
        }
        let Shape { dimensions: d, hidden, .. } = self.shape;
        BUFFERS.with_borrow_mut(|Buffers { table, rows, parts, numbers }| {
            table.clear();
            table.resize(users.len() * d, 0.0);
            for (&user, row) in users.iter().zip(table.chunks_exact_mut(d)) {
                self.users.write(user, row);
            }
            pack(table.chunks_exact(d), rows);
            let plan = Plan::of(&self.shape);
            run(self.path, Pass { plan, side: 0, rows, weights: &self.weights, parts: std::slice::from_mut(parts) });
            numbers.clear();
            numbers.extend(
                parts.chunks_exact(plan.hidden).flat_map(|part| part.iter().flat_map(|lanes| lanes.0).take(hidden)),
            );
            let second = &self.weights[plan.second()][..hidden];
            let last = self.weights[plan.last()];
            run(self.path, Scores { panels: &self.panels, second, last, items: self.items, parts: numbers, scores });
        });
    }
}

struct Scores<'a> {
    panels: &'a [Lanes],
    second: &'a [f32],
    last: f32,
    items: usize,
    parts: &'a [f32],
    scores: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let hidden = self.second.len();
        let users = self.parts.len() / hidden;
        for (place, panel) in self.panels.chunks_exact(hidden).enumerate() {
            let first = place * LANES;
            let count = LANES.min(self.items - first);
            let mut user = 0;
            while user < users {
                let rest = &self.parts[user * hidden..];
                let at = user * self.items + first;
                let second = (self.second, self.last);
                user += match users - user {
                    8.. if WIDE => tile::<8>(panel, second, rest, (at, count, self.items), self.scores),
                    4.. => tile::<4>(panel, second, rest, (at, count, self.items), self.scores),
                    _ => tile::<1>(panel, second, rest, (at, count, self.items), self.scores),
                };
            }
        }
    }
}

/// Scores of up to 16 items for `USERS` users; returns how many users that are.
#[inline(always)]
fn tile<const USERS: usize>(
    panel: &[Lanes],
    (second, last): (&[f32], f32),
    parts: &[f32],
    (at, count, items): (usize, usize, usize),
    scores: &mut [f32],
) -> usize {
    let hidden = second.len();
    let mut mine = [&[][..]; USERS];
    for index in 0..USERS {
        mine[index] = &parts[index * hidden..][..hidden];
    }
    let mut sums = [Lanes::splat(last); USERS];
    for place in 0..hidden {
        let weight = Lanes::splat(second[place]);
        for index in 0..USERS {
            let answer = (Lanes::splat(mine[index][place]) + panel[place]).max(Lanes::ZERO);
            sums[index] = weight.mul_add(answer, sums[index]);
        }
    }
    // One plain store of each sum, so that sums stay in registers until then.
    if count == LANES {
        for index in 0..USERS {
            sums[index].store(&mut scores[at + index * items..]);
        }
    } else {
        let finished = sums;
        store_some(&finished, at, count, items, scores);
    }
    USERS
}
