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
    /// Clients selected at least once so far.
    #[serde(default)]
    pub unique_clients: u64,
    /// Jain's index of the selections so far.
    #[serde(default)]
    pub jain: f64,
}

/// The kept rounds: at most [`Curve::MOST`], evenly spaced, as many of those that were evaluated, and always the last.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    rounds: Thinned,
    evaluated: Thinned,
    evaluations: u32,
    last: Option<CurvePoint>,
}

/// Points with their numbers, of which only multiples of a stride are kept.
#[derive(Clone, Debug, Default)]
struct Thinned {
    points: Vec<(u32, CurvePoint)>,
    power: u32,
}

impl Thinned {
    /// Keeps a point, or not; when there are too many, every other one goes.
    fn push(&mut self, number: u32, point: &CurvePoint) {
        if !number.is_multiple_of(1 << self.power) {
            return;
        }
        self.points.push((number, point.clone()));
        if self.points.len() > Curve::MOST {
            self.power += 1;
            let stride = 1 << self.power;
            self.points.retain(|(number, _)| number.is_multiple_of(stride));
        }
    }
}

impl Curve {
    /// The most rounds kept, and the most evaluated ones.
    pub const MOST: usize = 1024;

    /// Adds a round.
    pub fn push(&mut self, point: CurvePoint) {
        self.rounds.push(point.round, &point);
        if !point.metrics.is_empty() {
            self.evaluations += 1;
            self.evaluated.push(self.evaluations, &point);
        }
        self.last = Some(point);
    }

    /// The points by round, ending with the last.
    pub fn into_points(self) -> Vec<CurvePoint> {
        let kept = self.rounds.points.into_iter().chain(self.evaluated.points).map(|(_, point)| point);
        let mut points: Vec<CurvePoint> = kept.chain(self.last).collect();
        points.sort_by_key(|point| point.round);
        points.dedup_by_key(|point| point.round);
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_curve_stays_short_and_ends_at_the_end() {
        let points = curve(1_000_001, |_| false);
        assert!(points.len() > Curve::MOST / 2 && points.len() <= Curve::MOST + 1);
        assert_eq!(points.last().unwrap().round, 1_000_001);
    }

    /// With a round in 128 kept, one evaluated in 1000 would be kept in 16 of them only.
    #[test]
    fn evaluations_are_kept_whatever_their_rounds() {
        let points = curve(100_000, |round| round.is_multiple_of(1_000));
        let evaluated: Vec<u32> =
            points.iter().filter(|point| !point.metrics.is_empty()).map(|point| point.round).collect();
        assert_eq!(evaluated, (1..=100).map(|thousand| 1_000 * thousand).collect::<Vec<_>>());
        assert!(points.windows(2).all(|pair| pair[0].round < pair[1].round));
        let all = curve(5_000, |_| true);
        assert_eq!(
            all.iter().map(|point| point.round).collect::<Vec<_>>(),
            curve(5_000, |_| false).iter().map(|point| point.round).collect::<Vec<_>>()
        );
    }

    fn curve(rounds: u32, is_evaluated: impl Fn(u32) -> bool) -> Vec<CurvePoint> {
        let mut curve = Curve::default();
        for round in 1..=rounds {
            let metrics = if is_evaluated(round) { vec![("test_loss".into(), 1.0)] } else { Vec::new() };
            curve.push(CurvePoint {
                round,
                time_s: 0.0,
                regret: Regret::default(),
                metrics,
                unique_clients: 1,
                jain: 1.0,
            });
        }
        curve.into_points()
    }
}
