//! Root of the mean squared error of predicted numbers.
//!
//! # Definition
//! `√(Σ e² / n)` over the errors `e`. NaN without a number.

use super::{Definition, Formula};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::metric::Measure;

/// Root of the mean squared error of predicted numbers.
pub static RMSE: Definition = Definition {
    measure: Measure::error("rmse").in_units("units of the number"),
    formula: Formula::Errors(|errors| sqrt(errors.squares / errors.count)),
};
