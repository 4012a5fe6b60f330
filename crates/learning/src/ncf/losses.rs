//! Losses of examples, and the proxy's predictions, without training.

use super::kernels::{Table, products};
use super::step::{Sides, vectors};
use super::weights::{Plan, fill_up};
use super::{Proxy, Shape};
use crate::lanes::{Kernel, LANES, Lanes, Path, run};
use crate::matrix_factorisation::{Triple, losses_and_slopes};
use crate::ratings::triplets::Triplet;

/// A model whose losses are asked for: its items have passed the first layer.
#[derive(Debug)]
pub struct Losses {
    path: Path,
    shape: Shape,
    /// Filled up, of all networks.
    weights: Vec<f32>,
    /// Which items have passed, ascending; all of them if empty.
    items: Vec<u32>,
    /// The items' parts of the hidden numbers, of the network and the proxy.
    parts: [Vec<Lanes>; 2],
}

/// Rows as whole vectors.
pub fn pack<'a>(rows: impl Iterator<Item = &'a [f32]>, packed: &mut Vec<Lanes>) {
    packed.clear();
    for row in rows {
        let (whole, rest) = row.as_chunks::<LANES>();
        packed.extend(whole.iter().map(|chunk| Lanes(*chunk)));
        if !rest.is_empty() {
            packed.push(Lanes::load_partial(rest));
        }
    }
}

/// The first layer on one side of all networks.
pub struct Pass<'a> {
    pub plan: Plan,
    /// 0: users, with the biases; 1: items.
    pub side: usize,
    pub rows: &'a [Lanes],
    pub weights: &'a [f32],
    pub parts: &'a mut [Vec<Lanes>],
}

impl Kernel for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { plan, side, rows, weights, parts } = self;
        let count = rows.len() / plan.row;
        let places: Vec<u32> = (0..count as u32).collect();
        for (parts, weights) in parts.iter_mut().zip(weights.chunks_exact(plan.len())) {
            parts.clear();
            parts.resize(count * plan.hidden, Lanes::ZERO);
            let bias = (side == 0).then(|| vectors(&weights[plan.bias()]));
            let table = Table { vectors: rows, width: plan.row };
            products::<WIDE>(
                table,
                (&places, &places),
                vectors(&weights[plan.first(side)]),
                bias,
                (plan.hidden, parts),
            );
        }
    }
}

impl Losses {
    /// Of a model: all weights, and the item table. With `items`, ascending without repetition, of these alone.
    ///
    /// # Panics
    /// If weights or rows are not as many as the shape says, or an item is not there.
    pub fn new(shape: &Shape, weights: &[f32], table: &[f32], items: Option<Vec<u32>>) -> Self {
        Self::on(Path::detect(), shape, weights, table, items)
    }

    /// As [`Losses::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`Losses::new`].
    pub fn on(path: Path, shape: &Shape, weights: &[f32], table: &[f32], items: Option<Vec<u32>>) -> Self {
        let d = shape.dimensions;
        assert!(weights.len() == shape.weights() && table.len().is_multiple_of(d), "the model is whole");
        let mut filled = Vec::new();
        fill_up(shape, weights, &mut filled);
        let mut rows = Vec::new();
        match &items {
            None => pack(table.chunks_exact(d), &mut rows),
            Some(items) => pack(items.iter().map(|&item| &table[item as usize * d..][..d]), &mut rows),
        }
        let mut parts = [Vec::new(), Vec::new()];
        run(path, Pass { plan: Plan::of(shape), side: 1, rows: &rows, weights: &filled, parts: &mut parts });
        Self { path, shape: *shape, weights: filled, items: items.unwrap_or_default(), parts }
    }

    fn place(&self, item: u32) -> u32 {
        match self.items.is_empty() {
            true => item,
            false => self.items.binary_search(&item).expect("the item has passed the first layer") as u32,
        }
    }

    /// Tells of each triplet, in their order, the loss and the prediction of the proxy, NaN without one. `users` are
    /// the rows of users, by whose places triplets name them.
    ///
    /// # Panics
    /// If a user or an item is not there.
    pub fn each(&self, users: &[f32], triplets: &[Triplet], mut tell: impl FnMut(f32, f32)) {
        let mut rows = Vec::new();
        pack(users.chunks_exact(self.shape.dimensions), &mut rows);
        let mut mine = [Vec::new(), Vec::new()];
        let pass = Pass { plan: Plan::of(&self.shape), side: 0, rows: &rows, weights: &self.weights, parts: &mut mine };
        run(self.path, pass);
        let (mut triples, mut found) = (Vec::with_capacity(LANES), [Lanes::ZERO; 2]);
        for triplets in triplets.chunks(LANES) {
            triples.clear();
            triples.extend(triplets.iter().map(|triplet| {
                let places = [triplet.user, self.place(triplet.positive), self.place(triplet.negative)];
                Triple { slots: [0; 3], places }
            }));
            run(self.path, Answers { model: self, users: &mine, triplets: &triples, found: &mut found });
            (0..triplets.len()).for_each(|place| tell(found[0].0[place], found[1].0[place]));
        }
    }
}

/// Losses and predictions of up to 16 triplets.
struct Answers<'a> {
    model: &'a Losses,
    users: &'a [Vec<Lanes>; 2],
    triplets: &'a [Triple],
    found: &'a mut [Lanes; 2],
}

impl Kernel for Answers<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(self) {
        let Self { model: Losses { shape, weights, parts, .. }, users, triplets, found } = self;
        let plan = Plan::of(shape);
        let sides = |network: usize| Sides { users: &users[network], items: &parts[network], hidden: plan.hidden };
        let (weights, of_proxy) = weights.split_at(plan.len());
        let (losses, _) = losses_and_slopes(sides(0).differences(triplets, &weights[plan.second()]));
        let predicted = match shape.proxy {
            None => Lanes::splat(f32::NAN),
            Some(Proxy::Pairwise) => losses_and_slopes(sides(1).differences(triplets, &of_proxy[plan.second()])).0,
            Some(Proxy::Positive) => {
                sides(1).answers(triplets, &of_proxy[plan.second()]) + Lanes::splat(of_proxy[plan.last()])
            }
        };
        *found = [losses, predicted];
    }
}
