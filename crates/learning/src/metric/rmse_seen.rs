//! Root of the mean squared error of predicted ratings of items that somebody has rated for training.
//!
//! # Definition
//! `√(Σ e² / n)` over the ratings of items with a training rating at some client. NaN without such a rating.

use super::{Definition, Formula};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::metric::Measure;

/// Root of the mean squared error, of items with a training rating.
pub static RMSE_SEEN: Definition = Definition {
    measure: Measure::error("rmse_seen").in_units("units of the rating"),
    formula: Formula::Seen(|errors| sqrt(errors.squares / errors.count)),
};
