//! A run's course, thinned so that its memory does not grow with the number of rounds.

use fedgenie_core::math::float;
use fedgenie_core::metric::MetricId;
use fedgenie_core::record::Regret;
use fedgenie_core::state::Stateful;
use serde::{Deserialize, Serialize};

/// One kept round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stateful)]
pub struct CurvePoint<M = Vec<(MetricId, f64)>> {
    /// The round.
    pub round: u32,
    /// When it closed, in seconds.
    pub time_s: f64,
    /// Bytes of clients moved so far, both ways together.
    #[serde(default)]
    pub bytes: u64,
    /// Cumulative regret.
    pub regret: Regret,
    /// The bound that a theorem states of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Metrics, if the round was evaluated.
    pub metrics: M,
    /// Clients selected at least once so far.
    #[serde(default)]
    pub unique_clients: u64,
    /// Jain's index of the selections so far.
    #[serde(default)]
    pub jain: f64,
    /// Selections so far.
    #[serde(default)]
    pub selections: u64,
    /// The cluster of each edge server, where these have cluster models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<u32>,
    /// Energy that jobs drew so far, in joules, where clients have batteries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// Phones whose level is 0, of up to 1,000 clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
}

impl<M> CurvePoint<M> {
    /// The same point with its metrics in another form.
    pub(super) fn map_metrics<N>(self, map: impl FnOnce(M) -> N) -> CurvePoint<N> {
        let Self {
            round,
            time_s,
            bytes,
            regret,
            bound,
            metrics,
            unique_clients,
            jain,
            selections,
            clusters,
            energy_j,
            empty,
        } = self;
        let metrics = map(metrics);
        CurvePoint {
            round,
            time_s,
            bytes,
            regret,
            bound,
            metrics,
            unique_clients,
            jain,
            selections,
            clusters,
            energy_j,
            empty,
        }
    }
}

/// The kept rounds: at most [`Curve::MOST`] evenly spaced ones, as many evaluated ones, about
/// [`Curve::PER_DECADE`] per power of ten for logarithmic axes and fits, and always the last.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Curve {
    rounds: Thinned,
    evaluated: Thinned,
    evaluations: u32,
    /// By ascending round, spaced evenly on a logarithmic axis.
    marks: Vec<CurvePoint>,
    next_mark: u64,
    last: Option<CurvePoint>,
}

/// Points with their numbers, of which only multiples of a stride are kept.
#[derive(Clone, Debug, Default, Stateful)]
#[state(check = Self::is_sound)]
struct Thinned {
    points: Vec<(u32, CurvePoint)>,
    power: u32,
}

impl Thinned {
    /// Whether there is a stride of that power.
    const fn is_sound(&self) -> bool {
        self.power < u32::BITS
    }

    /// Adds a point; when there are too many, every other one is dropped.
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
    /// The most evenly spaced rounds kept, and the most evaluated ones.
    pub const MOST: usize = 1024;
    /// Logarithmically spaced points per power of ten.
    pub const PER_DECADE: u32 = 24;

    /// Adds a round.
    pub fn push(&mut self, point: CurvePoint) {
        if u64::from(point.round) >= self.next_mark {
            self.next_mark = after(point.round);
            self.marks.push(point.clone());
        }
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
        let mut points: Vec<CurvePoint> = kept.chain(self.marks).chain(self.last).collect();
        points.sort_by_key(|point| point.round);
        points.dedup_by_key(|point| point.round);
        // Of many runs, room for more is most of their memory.
        points.shrink_to_fit();
        points
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
    use fedgenie_core::metric::Place;

    #[test]
    fn a_long_curve_stays_short_and_ends_at_the_end() {
        let points = curve(1_000_001, |_| false);
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
            let metrics =
                if is_evaluated(round) { vec![(MetricId::new(Place::Test, "loss"), 1.0)] } else { Vec::new() };
            curve.push(CurvePoint {
                round,
                time_s: 0.0,
                bytes: 0,
                regret: Regret::default(),
                bound: None,
                metrics,
                unique_clients: 1,
                jain: 1.0,
                selections: u64::from(round),
                clusters: Vec::new(),
                energy_j: None,
                empty: None,
            });
        }
        curve.into_points()
    }
}
