//! A run's course, thinned so that its memory does not grow with the number of rounds.

use crate::math::float;
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

/// The kept rounds: at most [`Curve::MOST`] evenly spaced ones, about [`Curve::PER_DECADE`] per power of ten for logarithmic
/// axes and fits, and always the last.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    points: Vec<CurvePoint>,
    stride: u32,
    /// By ascending round, spaced evenly on a logarithmic axis.
    marks: Vec<CurvePoint>,
    next_mark: u64,
    last: Option<CurvePoint>,
}

impl Curve {
    /// The most evenly spaced points kept.
    pub const MOST: usize = 1024;
    /// Logarithmically spaced points per power of ten.
    pub const PER_DECADE: u32 = 24;

    /// Adds a round; when the curve is full, every other point goes.
    pub fn push(&mut self, point: CurvePoint) {
        self.stride = self.stride.max(1);
        if u64::from(point.round) >= self.next_mark {
            self.next_mark = after(point.round);
            self.marks.push(point.clone());
        }
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

    /// The points by ascending round, ending with the last.
    pub fn into_points(mut self) -> Vec<CurvePoint> {
        self.points.extend(self.marks);
        self.points.sort_by_key(|point| point.round);
        self.points.dedup_by_key(|point| point.round);
        if let Some(last) = self.last
            && self.points.last().is_none_or(|point| point.round != last.round)
        {
            self.points.push(last);
        }
        self.points
    }
}

/// The first round beyond this one that is a place of the logarithmic grid, `⌈10^(j/24)⌉`.
fn after(round: u32) -> u64 {
    let per_decade = f64::from(Curve::PER_DECADE);
    let place = |j: f64| float::ceil(float::power(10.0, j / per_decade)) as u64;
    let here = float::floor(float::log10(f64::from(round)) * per_decade) as i32;
    let mut places = (here..).map(|j| place(f64::from(j)));
    places.find(|&place| place > u64::from(round)).expect("the grid has no end")
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
        assert!(points.len() > Curve::MOST / 2 && points.len() <= Curve::MOST + 150);
        assert!(points.windows(2).all(|pair| pair[0].round < pair[1].round));
        assert_eq!(points.last().unwrap().round, 1_000_001);
        let between = |low, high| points.iter().filter(|point| (low..high).contains(&point.round)).count();
        assert_eq!([between(1, 5), between(1_000, 10_000)].map(|count| count >= 4), [true; 2]);
        assert!((24..40).contains(&between(1_000, 10_000)), "found {}", between(1_000, 10_000));
    }

    #[test]
    fn the_logarithmic_grid_goes_on_from_everywhere() {
        assert_eq!([1, 2, 99, 100, 1_000_000].map(after), [2, 3, 100, 111, 1_100_695]);
        assert_eq!(after(u32::MAX), 4_641_588_834);
    }
}
