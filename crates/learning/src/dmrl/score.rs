//! Scores of all items for a block of users at a time. What an item's part is, is worked out once.
//!
//! # Definition
//! With `a` the user's and `b` the item's part of a hidden number, `tanh(a + b) = 1 − 2/(e^{2a} e^{2b} + 1)`: a number
//! of each user and of each item takes an exponential, and each pair a reciprocal. That holds to the last digits as
//! long as no power leaves the range of `f32`; where an item's part is larger than [`PART_MAX`], tanh is worked out
//! pair by pair. Weights of channels are divided by their sum once they are summed up with the values.
//!
//! # Determinism
//! As in training: sums take one fused multiply-add for each term, in ascending order.

#![allow(clippy::needless_range_loop, reason = "loops over channels are the same for all their arrays")]

use super::attention::{CHANNELS, Head};
use super::block::{Setting, Users};
use super::network::{Weights, stride_of};
use super::products::{Begin, Gather};
use super::projection::Projection;
use super::{Features, Shape};
use crate::lanes::functions::{exp, exp_to_one, gelu, reciprocal, tanh};
use crate::lanes::{Kernel, LANES, Lanes, Path, keep_vectors_whole, run};
use crate::ranking::{BLOCK, ScoreItems};
use std::cell::RefCell;
use std::hint::select_unpredictable;

/// Items that are projected at a time.
const ITEMS: usize = 128;

/// Largest part of an item of a hidden number whose power is used. Then a part of the user beyond [`USER_MAX`] gives ±1
/// whatever the item, so that it may be cut there.
const PART_MAX: f32 = 10.0;
const USER_MAX: f32 = 30.0;

/// A model that is to be evaluated: its items' projections and parts of the attention, 16 items side by side.
pub struct ItemScores<'a> {
    path: Path,
    shape: &'a Shape,
    features: &'a Features,
    weights: Weights<'a>,
    /// Panel by panel of 16 items; in each, factor by factor, the hidden numbers and then the dimensions of each
    /// channel.
    panels: Vec<Lanes>,
    /// Whether hidden numbers are there as `e^{2b}`.
    has_powers: bool,
}

impl<'a> ItemScores<'a> {
    /// Works out the items' part of a model.
    ///
    /// # Panics
    /// If a length does not fit.
    pub fn new(shape: &'a Shape, features: &'a Features, parameters: &'a [f32]) -> Self {
        Self::on(Path::detect(), shape, features, parameters)
    }

    /// As [`ItemScores::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`ItemScores::new`].
    pub fn on(path: Path, shape: &'a Shape, features: &'a Features, parameters: &'a [f32]) -> Self {
        assert_eq!(parameters.len(), shape.parameters(), "the parameter vector is the model's");
        let weights = Weights::of(shape, parameters);
        let mut scores = Self { path, shape, features, weights, panels: Vec::new(), has_powers: true };
        scores.fill();
        scores
    }

    /// Lanes of a panel that belong to a factor.
    fn part(&self) -> usize {
        self.shape.attention + (self.shape.channels() - 1) * self.shape.width()
    }

    fn fill(&mut self) {
        let Self { path, shape, features, weights, .. } = self;
        let (dim, width, breadth) = (shape.dim, shape.width(), shape.attention);
        let stride = stride_of(ITEMS);
        let setting = Setting { path: *path, shape, weights, features, stride };
        let mut values = vec![0.0; (shape.channels() - 1) * dim * stride];
        let mut hidden = vec![0.0; shape.factors * breadth * stride];
        let mut projections = [Projection::default(), Projection::default()];
        let (mut panels, part) = (Vec::new(), breadth + (shape.channels() - 1) * width);
        let all: Vec<u32> = (0..shape.items as u32).collect();
        for ids in all.chunks(ITEMS) {
            run(*path, Gather { table: weights.items, width: dim, ids, out: &mut values, stride });
            for (index, (mode, layers)) in weights.modes().enumerate() {
                let table = (&features.0[mode][..], shape.features[mode].unwrap_or(0));
                let out = &mut values[(index + 1) * dim * stride..];
                projections[mode].forward(*path, table, layers, (ids, stride), None, out);
            }
            for channel in 1..shape.channels() {
                let begin = if channel == 1 { Begin::Zero } else { Begin::Kept };
                let values = &values[(channel - 1) * dim * stride..];
                setting.attend(channel, values, ids.len(), begin, &mut hidden);
            }
            for column in (0..ids.len()).step_by(LANES) {
                for factor in 0..shape.factors {
                    let rows = factor * breadth..(factor + 1) * breadth;
                    panels.extend(rows.map(|row| Lanes::load(&hidden[row * stride + column..])));
                    for channel in 0..shape.channels() - 1 {
                        let rows = channel * dim + factor * width..channel * dim + (factor + 1) * width;
                        panels.extend(rows.map(|row| Lanes::load(&values[row * stride + column..])));
                    }
                }
            }
        }
        // NaN is not within.
        let is_within =
            |panel: &[Lanes]| panel[..breadth].iter().flat_map(|lanes| lanes.0).all(|b| b.abs() <= PART_MAX);
        self.has_powers = panels.chunks_exact(part).all(is_within);
        if self.has_powers {
            run(*path, Powers { panels: &mut panels, part, breadth });
        }
        self.panels = panels;
    }
}

impl ScoreItems for ItemScores<'_> {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        let items = self.shape.items;
        assert!(users.len() <= BLOCK && scores.len() == users.len() * items, "a block has a row for each user");
        thread_local! {
            static USERS: RefCell<Users> = RefCell::default();
        }
        USERS.with_borrow_mut(|of_users| {
            let Self { path, shape, features, ref weights, .. } = *self;
            let stride = stride_of(users.len());
            let setting = Setting { path, shape, weights, features, stride };
            of_users.forward(&setting, users, false);
            let (panels, part) = (&self.panels[..], self.part());
            let (second, bias) = (weights.second, weights.second_bias);
            let count = users.len();
            if self.has_powers {
                run(path, PowersOfUsers { hidden: &mut of_users.hidden });
            }
            let inputs = Inputs { shape, panels, part, users: of_users, stride, count, second, bias };
            match (self.has_powers, shape.channels()) {
                (true, ..=3) => run(path, Scores::<3, true> { inputs, scores }),
                (true, _) => run(path, Scores::<CHANNELS, true> { inputs, scores }),
                (false, _) => run(path, Scores::<CHANNELS, false> { inputs, scores }),
            }
        });
    }
}

/// Replaces hidden numbers of items by their powers.
struct Powers<'a> {
    panels: &'a mut [Lanes],
    part: usize,
    breadth: usize,
}

impl Kernel for Powers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for part in self.panels.chunks_exact_mut(self.part) {
            for lanes in &mut part[..self.breadth] {
                *lanes = lanes.map(|b| exp(2.0 * b));
            }
        }
    }
}

/// Replaces hidden numbers of users by their powers.
struct PowersOfUsers<'a> {
    hidden: &'a mut [f32],
}

impl Kernel for PowersOfUsers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        for numbers in self.hidden.as_chunks_mut::<LANES>().0 {
            *numbers = Lanes(*numbers).map(|a| exp(2.0 * within(a, USER_MAX))).0;
        }
    }
}

/// A number cut at `±most`; NaN stays.
#[inline(always)]
fn within(number: f32, most: f32) -> f32 {
    let below = select_unpredictable(number > most, most, number);
    select_unpredictable(below < -most, -most, below)
}

/// Parts of the items and of a block of users, and the second layer of the attention.
struct Inputs<'a> {
    shape: &'a Shape,
    panels: &'a [Lanes],
    part: usize,
    users: &'a Users,
    stride: usize,
    count: usize,
    second: &'a [f32],
    bias: &'a [f32],
}

/// Scores with at most `MOST` channels. Hidden numbers are those of powers (`POWERS`), or the numbers themselves.
struct Scores<'a, const MOST: usize, const POWERS: bool> {
    inputs: Inputs<'a>,
    scores: &'a mut [f32],
}

impl<const MOST: usize, const POWERS: bool> Kernel for Scores<'_, MOST, POWERS> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { inputs: Inputs { shape, panels, part, users, stride, count, second, bias }, scores } = self;
        let (width, breadth, items) = (shape.width(), shape.attention, shape.items);
        let head = Head::<MOST>::of(shape.channels(), second, bias);
        let (one, minus_two) = (Lanes::splat(1.0), Lanes::splat(-2.0));
        for (place, panel) in panels.chunks_exact(shape.factors * part).enumerate() {
            let first = place * LANES;
            let inside = LANES.min(items - first);
            for user in 0..count {
                let mut score = Lanes::ZERO;
                for (factor, part) in panel.chunks_exact(part).enumerate() {
                    let (hidden, values) = part.split_at(breadth);
                    let mut logits = head.begin();
                    for (number, &hidden) in hidden.iter().enumerate() {
                        keep_vectors_whole();
                        let of_user = Lanes::splat(users.hidden[(factor * breadth + number) * stride + user]);
                        let t = if POWERS {
                            reciprocal(of_user.mul_add(hidden, one)).mul_add(minus_two, one)
                        } else {
                            (hidden + of_user).map(tanh)
                        };
                        head.add(number, t, &mut logits);
                    }
                    let mut most = logits[0];
                    for channel in 1..MOST {
                        most = most.max(logits[channel]);
                    }
                    let mut sum = Lanes::ZERO;
                    for channel in 0..MOST {
                        keep_vectors_whole();
                        logits[channel] = (logits[channel] - most).map(exp_to_one);
                        sum = sum + logits[channel];
                    }
                    let mut weighted = Lanes::ZERO;
                    // Channels by constants, so that logits stay in registers.
                    for channel in 1..MOST {
                        let Some(values) = values.get((channel - 1) * width..channel * width) else { break };
                        let mut product = Lanes::ZERO;
                        for (dimension, &value) in values.iter().enumerate() {
                            keep_vectors_whole();
                            let of_user = users.values[(factor * width + dimension) * stride + user];
                            product = Lanes::splat(of_user).mul_add(value, product);
                        }
                        weighted = logits[channel].mul_add(product.map(gelu), weighted);
                    }
                    score = weighted.mul_add(reciprocal(sum), score);
                }
                let row = &mut scores[user * items + first..];
                if inside == LANES {
                    score.store(row);
                } else {
                    row[..inside].copy_from_slice(&score.0[..inside]);
                }
            }
        }
    }
}
