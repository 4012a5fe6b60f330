//! One step on a mini-batch: losses, slopes of rows and of both networks.

#![allow(clippy::needless_range_loop, reason = "loops over vectors are the same for all rows")]

use super::kernels::{Table, outer_products, products};
use super::weights::Plan;
use super::{Proxy, Shape};
use crate::lanes::{Kernel, LANES, Lanes, keep_vectors_whole};
use crate::matrix_factorisation::{LocalRows, Triple, fold_all, losses_and_slopes};

/// The rows of a step in one network: their parts of the hidden numbers, and the slopes of these.
#[derive(Debug, Default)]
pub struct Parts {
    values: Vec<Lanes>,
    slopes: Vec<Lanes>,
}

/// Buffers from step to step. Rows are named by slot, and by their place among the rows that the step meets.
#[derive(Debug, Default)]
pub struct Scratch {
    users: [Vec<u32>; 2],
    items: [Vec<u32>; 2],
    /// Parts of the network and of the proxy.
    parts: [Parts; 2],
}

/// Losses and slopes of a mini-batch. `losses` gets one number for each triplet, `gradient` is overwritten.
pub struct Step<'a> {
    pub shape: Shape,
    pub triplets: &'a [Triple],
    pub losses: &'a mut [f32],
    pub rows: &'a mut LocalRows,
    /// Filled up, of all networks.
    pub weights: &'a [f32],
    /// Both sides of the network's first layer, row by row.
    pub turned: &'a [f32],
    pub gradient: &'a mut [f32],
    pub scratch: &'a mut Scratch,
}

/// Whole vectors of numbers.
#[inline(always)]
pub fn vectors(numbers: &[f32]) -> &[[f32; LANES]] {
    numbers.as_chunks().0
}

impl Kernel for Step<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        match self.shape.hidden.div_ceil(LANES) {
            1 => step::<1, WIDE>(self),
            2 => step::<2, WIDE>(self),
            4 => step::<4, WIDE>(self),
            _ => step::<0, WIDE>(self),
        }
    }
}

/// The step with `HIDDEN` vectors of hidden numbers; 0 stands for any other number.
#[inline(always)]
fn step<const HIDDEN: usize, const WIDE: bool>(step: Step<'_>) {
    let Step { shape, triplets, losses, rows, weights, turned, gradient, scratch } = step;
    let plan = Plan::of(&shape);
    let hidden = if HIDDEN == 0 { plan.hidden } else { HIDDEN };
    let Scratch { users, items, parts: [network, proxy] } = scratch;
    for list in users.iter_mut().chain(items.iter_mut()) {
        list.clear();
    }
    for (met, place) in rows.met.iter().zip(0..) {
        let [slots, places] = if (met.slot as usize) < rows.users() { &mut *users } else { &mut *items };
        slots.push(met.slot);
        places.push(place);
    }
    let met = rows.met.len();
    let table = Table { vectors: &rows.rows, width: plan.row };
    let all = shape.proxy.map(|_| &mut *proxy);
    for (parts, weights) in [&mut *network].into_iter().chain(all).zip(weights.chunks_exact(plan.len())) {
        parts.forward::<WIDE>(plan, table, [users, items], weights, met);
    }
    gradient.fill(0.0);
    let (slopes, slopes_of_proxy) = gradient.split_at_mut(plan.len());
    let (weights, weights_of_proxy) = weights.split_at(plan.len());
    let share = Lanes::splat(1.0 / triplets.len() as f32);
    let twice = share + share;
    for (triplets, losses) in triplets.chunks(LANES).zip(losses.chunks_mut(LANES)) {
        let x = network.sides(hidden).differences(triplets, &weights[plan.second()]);
        let (loss, slope) = losses_and_slopes(x);
        losses.copy_from_slice(&loss.0[..losses.len()]);
        let by_x = Lanes::ZERO - slope * share;
        let second = (&weights[plan.second()], &mut slopes[plan.second()]);
        network.backward::<true>(hidden, triplets, second, by_x);
        match shape.proxy {
            None => {}
            Some(Proxy::Pairwise) => {
                let second = &weights_of_proxy[plan.second()];
                let (predicted, slope) = losses_and_slopes(proxy.sides(hidden).differences(triplets, second));
                let by_x = Lanes::ZERO - (predicted - loss) * slope * twice;
                let second = (second, &mut slopes_of_proxy[plan.second()]);
                proxy.backward::<true>(hidden, triplets, second, by_x);
            }
            Some(Proxy::Positive) => {
                let second = &weights_of_proxy[plan.second()];
                let last = Lanes::splat(weights_of_proxy[plan.last()]);
                let predicted = proxy.sides(hidden).answers(triplets, second) + last;
                let by_answer = (predicted - loss) * twice;
                for place in 0..triplets.len() {
                    slopes_of_proxy[plan.last()] += by_answer.0[place];
                }
                let second = (second, &mut slopes_of_proxy[plan.second()]);
                proxy.backward::<false>(hidden, triplets, second, by_answer);
            }
        }
    }
    network.collect::<WIDE>(plan, table, [users, items], slopes);
    if shape.proxy.is_some() {
        proxy.collect::<WIDE>(plan, table, [users, items], slopes_of_proxy);
    }
    // Of rows that do not move nobody asks.
    let moves = |place: &u32| rows.met[*place as usize].moves;
    let of = Table { vectors: &network.slopes, width: plan.hidden };
    for ([_, places], side) in [users, items].into_iter().zip(turned.chunks_exact(plan.side())) {
        places.retain(moves);
        products::<WIDE>(of, (places, places), vectors(side), None, (plan.row, &mut rows.slopes));
    }
}

/// Parts of the hidden numbers of users and of items, by place.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    pub users: &'a [Lanes],
    pub items: &'a [Lanes],
    /// Vectors of hidden numbers.
    pub hidden: usize,
}

impl<'a> Sides<'a> {
    #[inline(always)]
    fn user(self, place: u32) -> &'a [Lanes] {
        &self.users[place as usize * self.hidden..][..self.hidden]
    }

    #[inline(always)]
    fn item(self, place: u32) -> &'a [Lanes] {
        &self.items[place as usize * self.hidden..][..self.hidden]
    }

    /// For up to 16 triplets the network's answer to the positive less that to the negative item.
    #[inline(always)]
    pub fn differences(self, triplets: &[Triple], second: &[f32]) -> Lanes {
        let second = vectors(second);
        let mut square = [Lanes::ZERO; LANES];
        for (place, &Triple { places: [user, positive, negative], .. }) in triplets.iter().enumerate() {
            let (user, positive, negative) = (self.user(user), self.item(positive), self.item(negative));
            let mut sum = Lanes::ZERO;
            for vector in 0..self.hidden {
                keep_vectors_whole();
                let up = (user[vector] + positive[vector]).max(Lanes::ZERO);
                let down = (user[vector] + negative[vector]).max(Lanes::ZERO);
                sum = Lanes(second[vector]).mul_add(up - down, sum);
            }
            square[place] = sum;
        }
        fold_all(&square)
    }

    /// For up to 16 triplets the network's answer to the positive item, without the last bias.
    #[inline(always)]
    pub fn answers(self, triplets: &[Triple], second: &[f32]) -> Lanes {
        let second = vectors(second);
        let mut square = [Lanes::ZERO; LANES];
        for (place, &Triple { places: [user, positive, _], .. }) in triplets.iter().enumerate() {
            let (user, positive) = (self.user(user), self.item(positive));
            let mut sum = Lanes::ZERO;
            for vector in 0..self.hidden {
                keep_vectors_whole();
                let up = (user[vector] + positive[vector]).max(Lanes::ZERO);
                sum = Lanes(second[vector]).mul_add(up, sum);
            }
            square[place] = sum;
        }
        fold_all(&square)
    }
}

impl Parts {
    /// The parts of the hidden numbers of all rows that a step meets; slopes begin at zero.
    #[inline(always)]
    fn forward<const WIDE: bool>(
        &mut self,
        plan: Plan,
        rows: Table<'_>,
        [users, items]: [&[Vec<u32>; 2]; 2],
        weights: &[f32],
        met: usize,
    ) {
        for numbers in [&mut self.values, &mut self.slopes] {
            numbers.clear();
            numbers.resize(met * plan.hidden, Lanes::ZERO);
        }
        let bias = Some(vectors(&weights[plan.bias()]));
        for (side, (slots, places), bias) in [(0, (&users[0], &users[1]), bias), (1, (&items[0], &items[1]), None)] {
            let side = vectors(&weights[plan.first(side)]);
            products::<WIDE>(rows, (slots, places), side, bias, (plan.hidden, &mut self.values));
        }
    }

    /// Users and items have places in the same list.
    #[inline(always)]
    fn sides(&self, hidden: usize) -> Sides<'_> {
        Sides { users: &self.values, items: &self.values, hidden }
    }

    /// Adds the slopes of up to 16 triplets, whose loss has slope `by` by the difference of two answers (`BOTH`), or by
    /// the answer to the positive item, to those of parts and of the second layer.
    #[inline(always)]
    fn backward<const BOTH: bool>(
        &mut self,
        hidden: usize,
        triplets: &[Triple],
        (second, slopes_of_second): (&[f32], &mut [f32]),
        by: Lanes,
    ) {
        let second = vectors(second);
        let slopes_of_second = slopes_of_second.as_chunks_mut().0;
        let at = |place: u32, vector: usize| place as usize * hidden + vector;
        for (place, &Triple { places: [user, positive, negative], .. }) in triplets.iter().enumerate() {
            let by = Lanes::splat(by.0[place]);
            for vector in 0..hidden {
                keep_vectors_whole();
                let weight = by * Lanes(second[vector]);
                let of_user = self.values[at(user, vector)];
                let up = of_user + self.values[at(positive, vector)];
                let of_positive = up.if_positive(weight);
                let mut sum = of_positive;
                let mut difference = up.max(Lanes::ZERO);
                if BOTH {
                    let down = of_user + self.values[at(negative, vector)];
                    let of_negative = down.if_positive(weight);
                    sum = sum - of_negative;
                    difference = difference - down.max(Lanes::ZERO);
                    let slope = &mut self.slopes[at(negative, vector)];
                    *slope = *slope - of_negative;
                }
                let slope = &mut self.slopes[at(positive, vector)];
                *slope = *slope + of_positive;
                let slope = &mut self.slopes[at(user, vector)];
                *slope = *slope + sum;
                slopes_of_second[vector] = by.mul_add(difference, Lanes(slopes_of_second[vector])).0;
            }
        }
    }

    /// Slopes of the first layer and its biases, from those of all parts.
    #[inline(always)]
    fn collect<const WIDE: bool>(
        &self,
        plan: Plan,
        rows: Table<'_>,
        [users, items]: [&[Vec<u32>; 2]; 2],
        gradient: &mut [f32],
    ) {
        let slopes = Table { vectors: &self.slopes, width: plan.hidden };
        for (side, [slots, places]) in [users, items].into_iter().enumerate() {
            outer_products::<WIDE>(rows, slopes, (slots, places), gradient[plan.first(side)].as_chunks_mut().0);
        }
        let bias = gradient[plan.bias()].as_chunks_mut::<LANES>().0;
        for &place in &users[1] {
            for vector in 0..plan.hidden {
                keep_vectors_whole();
                let sum = Lanes(bias[vector]) + self.slopes[place as usize * plan.hidden + vector];
                bias[vector] = sum.0;
            }
        }
    }
}
