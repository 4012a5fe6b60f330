//! Share of the items whose rows were ever moved.
//!
//! # Definition
//! By aggregated updates. It is not there where the whole table travels up: then nobody knows which rows moved.

use super::{Definition, Formula, Items};
use fedgenie_core::id::Round;
use fedgenie_core::metric::Measure;

/// Share of moved rows.
pub static ITEMS_UPDATED: Definition =
    Definition { measure: Measure::share("items_updated"), formula: Formula::Items(updated) };

fn updated(items: &Items<'_>) -> f64 {
    items.moved.iter().filter(|&&moved| moved > Round(0)).count() as f64 / items.moved.len() as f64
}
