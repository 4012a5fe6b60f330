//! Share of examples whose class is predicted.
//!
//! # Definition
//! The predicted class has the largest score, the smallest class on ties. NaN without examples.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Share of examples whose class is predicted.
pub static ACCURACY: Definition =
    Definition { measure: Measure::share("accuracy"), formula: Formula::Sums(|sums| sums.accuracy()) };
