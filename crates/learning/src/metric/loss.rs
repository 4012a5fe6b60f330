//! Mean loss over examples.
//!
//! # Definition
//! `Σ loss / n`, with the loss that training lowers: cross-entropy where examples have classes, the squared error where
//! they have numbers, for a recommender the one that its task documents. NaN without examples.

use super::{Definition, Formula};
use fedgenie_core::metric::Measure;

/// Mean loss.
pub static LOSS: Definition = Definition { measure: Measure::loss("loss"), formula: Formula::Sums(|sums| sums.loss()) };
