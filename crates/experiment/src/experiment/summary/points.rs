//! Differences between points of a sweep.

use super::super::heavy::MedianOf;
use fedgenie_core::math::statistics::Estimate;
use serde::Serialize;
use std::collections::BTreeMap;

/// Paired differences between two points of a sweep, of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointComparison {
    /// The policy's label.
    pub arm: String,
    /// Index of the point.
    pub point: usize,
    /// Index of the point that it is compared with.
    pub against: usize,
    /// The paths of the axis on which the other point is its neighbour, one step before it; none where that is the
    /// reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub along: Option<Vec<String>>,
    /// This point minus that one, by name; no regrets where the sweep changes the reward.
    pub differences: BTreeMap<String, Estimate>,
    /// Medians of the differences of times, where there are medians of times.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub medians: BTreeMap<String, MedianOf>,
}
