//! Mean absolute error of predicted numbers.
//!
//! # Definition
//! `Σ |e| / n` over the errors `e`. NaN without a number.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Mean absolute error of predicted numbers.
pub static MAE: Definition = Definition {
    measure: Measure::error("mae").in_units("units of the number"),
    formula: Formula::Errors(|errors| errors.absolute / errors.count),
};
