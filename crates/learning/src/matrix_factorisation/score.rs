//! Scores of all items for a block of users at a time.
//!
//! # Determinism
//! A score begins at zero and takes one fused multiply-add for each dimension, in ascending order.

#![allow(clippy::needless_range_loop, reason = "loops over indices of a tile are the same for all its arrays")]

use crate::lanes::{Kernel, LANES, Lanes, Path, run};
use crate::ranking::{BLOCK, ScoreItems};
use std::cell::RefCell;

/// Where the rows of users come from.
pub trait UserRows: Sync {
    /// Writes the row of a user, whose length is that of `row`.
    fn write(&self, user: u32, row: &mut [f32]);
}

/// A table of all users, row by row.
#[derive(Clone, Copy, Debug)]
pub struct UserTable<'a>(pub &'a [f32]);

impl UserRows for UserTable<'_> {
    fn write(&self, user: u32, row: &mut [f32]) {
        row.copy_from_slice(&self.0[user as usize * row.len()..][..row.len()]);
    }
}

/// An item table with 16 items side by side.
pub struct ItemPanels {
    /// How many items there are.
    pub(crate) items: usize,
    /// Panel by panel of 16 items, dimension by dimension; zeros behind the last item.
    pub(crate) panels: Vec<Lanes>,
}

impl ItemPanels {
    /// The panels of an item table, items × dimensions.
    ///
    /// # Panics
    /// If the table has not whole rows.
    pub fn of(table: &[f32], dimensions: usize) -> Self {
        assert!(dimensions > 0 && table.len().is_multiple_of(dimensions), "the table has whole rows");
        let items = table.len() / dimensions;
        let mut panels = vec![Lanes::ZERO; items.div_ceil(LANES) * dimensions];
        for (item, row) in table.chunks_exact(dimensions).enumerate() {
            let panel = &mut panels[item / LANES * dimensions..][..dimensions];
            panel.iter_mut().zip(row).for_each(|(lanes, &number)| lanes.0[item % LANES] = number);
        }
        Self { items, panels }
    }
}

/// A model that is to be evaluated: its items, and where users' rows come from.
pub struct FactorScores<'a> {
    path: Path,
    dimensions: usize,
    items: ItemPanels,
    users: &'a dyn UserRows,
}

impl<'a> FactorScores<'a> {
    /// Takes over the item table, items × dimensions.
    ///
    /// # Panics
    /// If the table has not whole rows.
    pub fn new(table: &[f32], dimensions: usize, users: &'a dyn UserRows) -> Self {
        Self::on(Path::detect(), table, dimensions, users)
    }

    /// As [`FactorScores::new`], with kernels compiled for a given set of processor features.
    ///
    /// # Panics
    /// As [`FactorScores::new`].
    pub fn on(path: Path, table: &[f32], dimensions: usize, users: &'a dyn UserRows) -> Self {
        Self { path, dimensions, items: ItemPanels::of(table, dimensions), users }
    }

    /// Number of items.
    pub fn items(&self) -> usize {
        self.items.items
    }
}

impl ScoreItems for FactorScores<'_> {
    fn score(&self, users: &[u32], scores: &mut [f32]) {
        assert!(users.len() <= BLOCK && scores.len() == users.len() * self.items(), "a block has a row for each user");
        thread_local! {
            static ROWS: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
        }
        ROWS.with_borrow_mut(|rows| {
            rows.clear();
            rows.resize(users.len() * self.dimensions, 0.0);
            for (&user, row) in users.iter().zip(rows.chunks_exact_mut(self.dimensions)) {
                self.users.write(user, row);
            }
            let ItemPanels { items, ref panels } = self.items;
            let dimensions = self.dimensions;
            run(self.path, Scores { panels, dimensions, items, rows, scores });
        });
    }
}

struct Scores<'a> {
    panels: &'a [Lanes],
    dimensions: usize,
    items: usize,
    rows: &'a [f32],
    scores: &'a mut [f32],
}

impl Kernel for Scores<'_> {
    type Output = ();
    const WIDE_PAYS: bool = true;

    #[inline(always)]
    fn run<const WIDE: bool>(mut self) {
        let users = self.rows.len() / self.dimensions;
        let panels = self.panels.len() / self.dimensions;
        let mut place = 0;
        while place < panels {
            let two = WIDE && panels - place >= 2;
            let mut user = 0;
            while user < users {
                user += match (users - user, two) {
                    (8.., true) => self.tile::<8, 2>(user, place),
                    (4.., true) => self.tile::<4, 2>(user, place),
                    (_, true) => self.tile::<1, 2>(user, place),
                    (8.., false) if WIDE => self.tile::<8, 1>(user, place),
                    (4.., false) => self.tile::<4, 1>(user, place),
                    (_, false) => self.tile::<1, 1>(user, place),
                };
            }
            place += if two { 2 } else { 1 };
        }
    }
}

impl Scores<'_> {
    /// Scores of the items of some panels for `USERS` users; returns how many users that are.
    #[inline(always)]
    fn tile<const USERS: usize, const PANELS: usize>(&mut self, user: usize, place: usize) -> usize {
        let Self { panels, dimensions, items, rows, ref mut scores } = *self;
        let mut mine = [&[][..]; USERS];
        for index in 0..USERS {
            mine[index] = &rows[(user + index) * dimensions..][..dimensions];
        }
        let mut theirs = [&[][..]; PANELS];
        for index in 0..PANELS {
            theirs[index] = &panels[(place + index) * dimensions..][..dimensions];
        }
        let mut sums = [[Lanes::ZERO; USERS]; PANELS];
        for dimension in 0..dimensions {
            for index in 0..USERS {
                let number = Lanes::splat(mine[index][dimension]);
                for panel in 0..PANELS {
                    sums[panel][index] = number.mul_add(theirs[panel][dimension], sums[panel][index]);
                }
            }
        }
        let first = place * LANES;
        // One plain store of each sum, so that sums stay in registers until then.
        if first + PANELS * LANES <= items {
            for index in 0..USERS {
                for panel in 0..PANELS {
                    sums[panel][index].store(&mut scores[(user + index) * items + first + panel * LANES..]);
                }
            }
        } else {
            let finished = sums;
            for panel in 0..PANELS {
                let first = first + panel * LANES;
                store_some(&finished[panel], user * items + first, LANES.min(items - first), items, scores);
            }
        }
        USERS
    }
}

/// Stores the first lanes of each vector, the vectors being `items` numbers apart.
///
/// Never inlined: seeing this, LLVM would keep the sums in memory.
#[inline(never)]
pub(crate) fn store_some(sums: &[Lanes], first: usize, count: usize, items: usize, scores: &mut [f32]) {
    for (index, sums) in sums.iter().enumerate() {
        scores[first + index * items..][..count].copy_from_slice(&sums.0[..count]);
    }
}
