//! Mean age of items' rows.
//!
//! # Definition
//! Mean over items of `τ/T`: `τ` rounds since an aggregated update last moved the item's row, counted from round 0, `T`
//! the key `staleness_window`. It is not there where the whole table travels up: then nobody knows which rows moved.

use super::{Definition, Formula, Items};
use fedgenie_core::metric::Measure;

/// Mean age of rows.
pub static ITEM_STALENESS: Definition =
    Definition { measure: Measure::error("item_staleness"), formula: Formula::Items(staleness) };

fn staleness(items: &Items<'_>) -> f64 {
    let ages: u64 = items.moved.iter().map(|&moved| u64::from(items.round.since(moved))).sum();
    ages as f64 / items.moved.len() as f64 / f64::from(items.window)
}
