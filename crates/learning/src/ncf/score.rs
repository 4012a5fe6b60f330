//! Scores of all items for a block of users at a time: the first layer falls into a part for users and one for items.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use super::Shape;
use super::losses::{Pass, pack};
use super::weights::{Plan, fill_up};
use crate::lanes::{Kernel, LANES, Lanes, Path, run};
use crate::matrix_factorisation::{ItemPanels, UserRows, store_some};
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
    /// Passes all items through the network's first layer; takes over all weights.
    ///
    /// # Panics
    /// If a weight is missing, or the items' rows have another length.
    pub fn new(shape: &Shape, weights: &[f32], items: &ItemPanels, users: &'a dyn UserRows) -> Self {
        Self::on(Path::detect(), shape, weights, items, users)
    }

    /// As [`NetworkScores::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`NetworkScores::new`].
    pub fn on(path: Path, shape: &Shape, weights: &[f32], items: &ItemPanels, users: &'a dyn UserRows) -> Self {
        let ItemPanels { items, ref panels } = *items;
        let rows = items.div_ceil(LANES) * shape.dimensions;
        assert!(weights.len() == shape.weights() && panels.len() == rows, "the model is whole");
        let alone = Shape { proxy: None, ..*shape };
        let mut filled = Vec::new();
        fill_up(&alone, &weights[..alone.weights()], &mut filled);
        let mut parts = vec![Lanes::ZERO; items.div_ceil(LANES) * shape.hidden];
        run(path, Parts { shape: alone, weights: &filled, panels, parts: &mut parts });
        Self { path, shape: alone, items, weights: filled, panels: parts, users }
    }
}

/// A thread's buffers from block to block.
#[derive(Default)]
struct Buffers {
    table: Vec<f32>,
    rows: Vec<Lanes>,
    parts: Vec<Lanes>,
    numbers: Vec<f32>,
}

/// The items' parts of the hidden numbers from their rows, both with 16 items side by side.
struct Parts<'a> {
    shape: Shape,
    weights: &'a [f32],
    panels: &'a [Lanes],
    parts: &'a mut [Lanes],
}

impl Kernel for Parts<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { shape: Shape { dimensions: d, hidden, .. }, weights, panels, parts } = self;
        let plan = Plan::of(&self.shape);
        let side = &weights[plan.first(1)];
        // Hidden number by hidden number: of weights that lie side by side, compilers make vectors instead of items.
        let of = |place: usize| (0..d).map(move |number| side[number * plan.hidden * LANES + place]);
        let columns: Vec<f32> = (0..hidden).flat_map(of).collect();
        for (panel, parts) in panels.chunks_exact(d).zip(parts.chunks_exact_mut(hidden)) {
            let mut first = 0;
            while first < hidden {
                let (columns, parts) = (&columns[first * d..], &mut parts[first..]);
                first += match hidden - first {
                    8.. if WIDE => parts_tile::<8>(panel, columns, parts),
                    4.. => parts_tile::<4>(panel, columns, parts),
                    _ => parts_tile::<1>(panel, columns, parts),
                };
            }
        }
    }
}

/// The next `PLACES` hidden numbers of 16 items; returns how many those are.
#[inline(always)]
fn parts_tile<const PLACES: usize>(panel: &[Lanes], columns: &[f32], parts: &mut [Lanes]) -> usize {
    let d = panel.len();
    let mut mine = [&[][..]; PLACES];
    for place in 0..PLACES {
        mine[place] = &columns[place * d..][..d];
    }
    let mut sums = [Lanes::ZERO; PLACES];
    for number in 0..d {
        for place in 0..PLACES {
            sums[place] = panel[number].mul_add(Lanes::splat(mine[place][number]), sums[place]);
        }
    }
    parts[..PLACES].copy_from_slice(&sums);
    PLACES
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
    const WIDE_PAYS: bool = true;

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
