//! Values over rounds, virtual time or traffic, averaged over seeds.
//!
//! Lines are means over seeds: regret is interpolated between rounds, a metric keeps its value until the next
//! evaluation. A mean curve begins where the last of its runs begins and stops where the shortest stops: beyond, it
//! would be a mean of fewer runs. From four seeds on a band shows the 95 % interval, and thin lines show metrics of the
//! seeds before the mean begins; with fewer, they show the single seeds, each to its own end.

use super::model::{Line, LineKind};
use super::study::{Study, rounded, rounded_x};
use fedgenie_core::math::float;
use fedgenie_core::math::statistics::estimate;
use fedgenie_experiment::experiment::{CurvePoint, RunSummary};
pub(super) use fedgenie_experiment::scenario::report::Over;

/// The most points of a mean and its interval.
const STEPS: usize = 160;

/// The most points of a single seed.
const SEED_STEPS: usize = 120;

/// The most points of a single seed before the mean begins.
const START_STEPS: usize = 20;

/// Seeds from which on an interval is drawn as a band: of fewer, Student's factor makes it many times as wide as the
/// seeds differ.
pub(super) const BAND_SEEDS: usize = 4;

/// Round or time, and value, of one run.
pub(super) type Course = Vec<(f64, f64)>;

/// The value between two points.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Between {
    Straight,
    Steps,
}

/// Where a round is on a horizontal axis.
fn x_of(over: Over, point: &CurvePoint) -> Option<f64> {
    match over {
        Over::Rounds => Some(f64::from(point.round)),
        Over::Time => Some(point.time_s),
        Over::Traffic => Some(point.bytes as f64),
        Over::Energy => point.energy_j,
    }
}

/// A value of every policy over rounds, virtual time or traffic.
pub(super) fn lines(
    study: &Study<'_>,
    between: Between,
    over: Over,
    value: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<Line> {
    let course = |run: &RunSummary| -> Course {
        let points = run.curve.iter().filter_map(|point| Some((x_of(over, point)?, value(point)?)));
        points.filter(|point| point.1.is_finite()).collect()
    };
    let of_arm = |arm: &super::study::Arm<'_>| {
        let runs: Vec<Course> = arm.all_runs().map(course).filter(|course| !course.is_empty()).collect();
        lines_of(&arm.label, &runs, between)
    };
    study.arms.iter().flat_map(of_arm).collect()
}

/// The mean, with its band or with the single seeds.
pub(super) fn lines_of(series: &str, runs: &[Course], between: Between) -> Vec<Line> {
    if runs.is_empty() {
        return Vec::new();
    }
    let line = |role, points, band| Line {
        series: series.to_owned(),
        role,
        label: None,
        points,
        band,
        is_staircase: between == Between::Steps,
        has_dots: false,
    };
    let mut lines = Vec::new();
    if (2..BAND_SEEDS).contains(&runs.len()) {
        for run in runs {
            let xs = thinned(run.iter().map(|point| point.0).collect(), SEED_STEPS);
            let points = xs.into_iter().map(|x| (x, value_at(run, x, between)));
            lines.push(line(LineKind::Seed, points.map(shown).collect(), Vec::new()));
        }
    }
    let (mut mean, mut band) = (Vec::new(), Vec::new());
    let xs = xs(runs);
    for x in xs {
        let values: Vec<f64> = runs.iter().map(|run| value_at(run, x, between)).collect();
        let Some(found) = estimate(&values) else { continue };
        mean.push(shown((x, found.mean)));
        let interval = found.ci95.filter(|_| runs.len() >= BAND_SEEDS);
        band.extend(interval.map(|interval| (rounded_x(x), interval.map(rounded))));
    }
    if between == Between::Steps && runs.len() >= BAND_SEEDS {
        let starts = starts(runs).into_iter();
        lines.extend(starts.map(|points| line(LineKind::Seed, points.into_iter().map(shown).collect(), Vec::new())));
    }
    if !mean.is_empty() {
        lines.push(line(LineKind::Mean, mean, band));
    }
    lines
}

/// The known part of runs before all of them have begun; empty where it is too short to be seen.
fn starts(runs: &[Course]) -> Vec<Course> {
    let firsts = || runs.iter().filter_map(|run| run.first()).map(|first| first.0);
    let (first, begin) = (firsts().fold(f64::INFINITY, f64::min), firsts().fold(f64::NEG_INFINITY, f64::max));
    let end = runs.iter().filter_map(|run| run.last()).map(|last| last.0).fold(f64::NEG_INFINITY, f64::max);
    if begin - first <= 0.01 * (end - first) {
        return Vec::new();
    }
    let start = |run: &Course| -> Option<Course> {
        let before = run.iter().map(|point| point.0).filter(|&x| x < begin);
        let xs: Vec<f64> = thinned(before.collect(), START_STEPS).into_iter().chain([begin]).collect();
        (xs.len() > 1).then(|| xs.into_iter().map(|x| (x, value_at(run, x, Between::Steps))).collect())
    };
    runs.iter().filter_map(start).collect()
}

fn shown((x, value): (f64, f64)) -> (f64, f64) {
    (rounded_x(x), rounded(value))
}

/// The abscissas of the mean: those at which all runs have a value; empty if one ends before another begins.
fn xs(runs: &[Course]) -> Vec<f64> {
    let start = runs.iter().filter_map(|run| run.first()).map(|first| first.0).fold(f64::NEG_INFINITY, f64::max);
    let end = runs.iter().filter_map(|run| run.last()).map(|last| last.0).fold(f64::INFINITY, f64::min);
    let is_known_to_all = |x: &f64| (start..=end).contains(x);
    let mut all: Vec<f64> = runs.iter().flatten().map(|point| point.0).filter(is_known_to_all).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    thinned(all, STEPS)
}

/// At most so many of ascending values, ends included: two thirds evenly spread, the others evenly in their logarithms,
/// so that the beginning can be seen on a logarithmic axis.
fn thinned(all: Vec<f64>, most: usize) -> Vec<f64> {
    let (Some(&start), Some(&end)) = (all.first(), all.last()) else { return all };
    if all.len() <= most {
        return all;
    }
    let even = if start > 0.0 { 2 * most / 3 } else { most - 1 };
    let nearest = |x: f64| all[all.partition_point(|&known| known < x).min(all.len() - 1)];
    let mut xs: Vec<f64> =
        (0..even).map(|step| nearest(start + (end - start) * step as f64 / even as f64)).chain([end]).collect();
    if start > 0.0 {
        let steps = most - even - 1;
        let wanted = |step| start * float::power(end / start, step as f64 / steps as f64);
        xs.extend((0..steps).map(|step| nearest(wanted(step))));
    }
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

/// The value of a run at `x`: its first before its first point, its last after its last one.
pub(super) fn value_at(run: &[(f64, f64)], x: f64, between: Between) -> f64 {
    let after = run.partition_point(|&(known, _)| known <= x);
    let before = run[after.saturating_sub(1)];
    match run.get(after) {
        Some(next) if between == Between::Straight && next.0 > before.0 && x > before.0 => {
            before.1 + (next.1 - before.1) * (x - before.0) / (next.0 - before.0)
        }
        _ => before.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_ends_with_its_shortest_run_and_a_seed_with_itself() {
        let long: Course = (0..1_000).map(|step| (0.1 * f64::from(step), f64::from(step))).collect();
        let short: Course = long[..500].iter().map(|&(x, value)| (x, value + 2.0)).collect();
        let runs = [long.clone(), short];
        for between in [Between::Straight, Between::Steps] {
            let lines = lines_of("a", &runs, between);
            assert_eq!(
                lines.iter().map(|line| line.role).collect::<Vec<_>>(),
                [LineKind::Seed, LineKind::Seed, LineKind::Mean]
            );
            assert_eq!(lines[2].points.last(), Some(&(49.9, 500.0)));
            assert_eq!(lines[0].points.last(), Some(&(99.9, 999.0)));
            assert_eq!(lines[1].points.last(), Some(&(49.9, 501.0)));
            assert!(lines[2].band.is_empty() && lines[2].points.len() <= STEPS);
        }
        let lines = lines_of("a", &vec![long; 4], Between::Straight);
        let [line] = &lines[..] else { panic!("one line with a band") };
        assert_eq!(line.band.last().map(|&(x, ends)| (x, ends)), Some((99.9, [999.0, 999.0])));
        assert!(line.points.iter().map(|point| point.0).eq(line.band.iter().map(|band| band.0)), "a band everywhere");
        assert!(line.band.len() > STEPS / 2 && lines_of("a", &[], Between::Steps).is_empty());
    }

    /// Runs that begin at 0, 10, 20 and 30 of 100: the mean begins at 30, and three lines lead there.
    #[test]
    fn what_is_known_before_all_runs_have_begun_is_drawn() {
        let run = |begin: u32| -> Course { (begin..=100).map(|x| (f64::from(x), f64::from(x * begin))).collect() };
        let runs: Vec<Course> = [0, 10, 20, 30].map(run).to_vec();
        let lines = lines_of("a", &runs, Between::Steps);
        let roles: Vec<LineKind> = lines.iter().map(|line| line.role).collect();
        assert_eq!(roles, [LineKind::Seed, LineKind::Seed, LineKind::Seed, LineKind::Mean]);
        assert_eq!((lines[1].points[0], *lines[1].points.last().unwrap()), ((10.0, 100.0), (30.0, 300.0)));
        assert_eq!(lines[3].points[0], (30.0, 30.0 * 15.0));
        assert_eq!(lines_of("a", &vec![run(10); 4], Between::Steps).len(), 1, "all begin together");
    }

    #[test]
    fn between_points_regret_is_straight_and_a_metric_stays() {
        let run = [(1.0, 0.0), (3.0, 1.0)];
        assert_eq!(value_at(&run, 2.0, Between::Straight), 0.5);
        assert_eq!(value_at(&run, 2.0, Between::Steps), 0.0);
        assert_eq!(value_at(&run, 9.0, Between::Straight), 1.0);
    }

    #[test]
    fn the_beginning_of_a_long_line_is_kept() {
        let xs = thinned((1..=100_000).map(f64::from).collect(), STEPS);
        assert!(xs.len() <= STEPS && xs.len() > 140, "{}", xs.len());
        assert_eq!((xs[0], *xs.last().unwrap()), (1.0, 100_000.0));
        assert!(xs.iter().filter(|&&x| x < 1_000.0).count() > 20);
    }
}
