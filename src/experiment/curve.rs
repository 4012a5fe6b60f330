//! A run's course, thinned so that its memory does not grow with the number of rounds.

use crate::record::Regret;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One kept round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint<M = Vec<(Cow<'static, str>, f64)>> {
    /// The round.
    pub round: u32,
    /// When it closed, in seconds.
    pub time_s: f64,
    /// Cumulative regret.
    pub regret: Regret,
    /// Metrics, if the round was evaluated.
    pub metrics: M,
}

/// The kept rounds: at most [`Curve::MOST`], evenly spaced, and always the last.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    points: Vec<CurvePoint>,
    stride: u32,
    last: Option<CurvePoint>,
}

impl Curve {
    /// The most points kept.
    pub const MOST: usize = 1024;

    /// Adds a round; when the curve is full, every other point goes.
    pub fn push(&mut self, point: CurvePoint) {
        self.stride = self.stride.max(1);
        if point.round.is_multiple_of(self.stride) {
            self.points.push(point.clone());
            if self.points.len() > Self::MOST {
                self.stride *= 2;
                let stride = self.stride;
                self.points.retain(|point| point.round.is_multiple_of(stride));
            }
        }
        self.last = Some(point);
    }

    /// The points, ending with the last round.
    pub fn into_points(mut self) -> Vec<CurvePoint> {
        if let Some(last) = self.last
            && self.points.last().is_none_or(|point| point.round != last.round)
        {
            self.points.push(last);
        }
        self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_stays_short_and_ends_at_the_end() {
        let mut curve = Curve::default();
        for round in 1..=1_000_001 {
            curve.push(CurvePoint { round, time_s: 0.0, regret: Regret::default(), metrics: Vec::new() });
        }
        let points = curve.into_points();
        assert!(points.len() > Curve::MOST / 2 && points.len() <= Curve::MOST + 1);
        assert_eq!(points.last().unwrap().round, 1_000_001);
    }
}
