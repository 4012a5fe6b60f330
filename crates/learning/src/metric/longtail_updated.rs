//! Share of the unpopular items whose rows were ever moved.
//!
//! # Definition
//! As `items_updated`, of the four of five items with fewest training ratings.

use super::{Definition, Formula, Items};
use fedgenie_core::id::Round;
use fedgenie_core::metric::Measure;

/// Share of moved rows among unpopular items.
pub static LONGTAIL_UPDATED: Definition =
    Definition { measure: Measure::share("longtail_updated"), formula: Formula::Items(updated) };

fn updated(items: &Items<'_>) -> f64 {
    let is_moved = |item: &&u32| items.moved[**item as usize] > Round(0);
    items.long_tail.iter().filter(is_moved).count() as f64 / items.long_tail.len() as f64
}
