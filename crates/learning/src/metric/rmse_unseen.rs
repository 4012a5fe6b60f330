//! Root of the mean squared error of predicted ratings of items that nobody has rated for training.
//!
//! # Definition
//! `√(Σ e² / n)` over the ratings of items without a training rating at any client. NaN without such a rating. What a
//! model says of them it has by their users alone, so that an error above that of the mean rating is noise.

use super::{Definition, Formula};
use fedgenie_core::math::float::sqrt;
use fedgenie_core::metric::Measure;

/// Root of the mean squared error, of items without a training rating.
pub static RMSE_UNSEEN: Definition = Definition {
    measure: Measure::error("rmse_unseen").in_units("units of the rating"),
    formula: Formula::Unseen(|errors| sqrt(errors.squares / errors.count)),
};
