//! Which part of the numbers the axes of lines show. The page's script (`html/script/fit.js`) has the same rule, for
//! hidden lines and parts of the horizontal axis; a test in a browser compares them.

use super::super::model::{self, Line, LineKind, Mark, Scale};
use super::axis::{Axis, bounds, with_margin};
use fedgenie_core::math::float;

/// A bound that is higher by this factor than all that was measured leaves the frame of a linear axis.
const FAR: f64 = 3.0;

/// The lines that decide where axes end: all but bounds, which may lie far above the others.
pub(super) fn measured(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.role != LineKind::Bound)
}

/// An axis with these ends; linear where a logarithmic one would have no place for them.
fn between(axis: &model::Axis, ends: [f64; 2]) -> Option<Axis> {
    let is_logarithmic = axis.scales.first() == Some(&Scale::Log) && ends[0] > 0.0;
    let [low, high] = if is_logarithmic { ends.map(float::log10) } else { ends };
    (low < high).then(|| Axis::new(low, high, is_logarithmic))
}

fn is_log(axis: &model::Axis) -> bool {
    axis.scales.first() == Some(&Scale::Log)
}

/// An axis that shows values from the lowest to the highest, and bands as far as a quarter beyond; whiskers are shown
/// whole.
pub(super) fn vertical_axis(
    axis: &model::Axis,
    lines: &[Line],
    marks: &[Mark],
    wanted: Option<[f64; 2]>,
) -> Option<Axis> {
    if let Some(ends) = wanted {
        return between(axis, ends);
    }
    let is_logarithmic = is_log(axis);
    let is_shown = |value: &f64| !is_logarithmic || *value > 0.0;
    let values = measured(lines).flat_map(|line| &line.points).map(|point| point.1);
    let values = values.chain(marks.iter().map(|mark| mark.value)).filter(is_shown);
    let [low, high] = bounds(values);
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let (from, to) = if is_logarithmic { (float::log10(low), float::log10(high)) } else { (low, high) };
    let quarter = 0.25 * to - 0.25 * from;
    let beyond = [from - quarter, to + quarter].map(|end| end.clamp(f64::MIN, f64::MAX));
    let has_dots = measured(lines).any(|line| line.has_dots);
    let [floor, ceiling] = match (has_dots, is_logarithmic) {
        (true, _) => [f64::MIN, f64::MAX],
        (false, false) => beyond,
        (false, true) => beyond.map(|end| float::power(10.0, end).clamp(f64::MIN_POSITIVE, f64::MAX)),
    };
    let bands = measured(lines).flat_map(|line| &line.band).flat_map(|(_, interval)| *interval);
    let bands = bands.filter(|end| !has_dots || is_shown(end)).map(|end| end.clamp(floor, ceiling));
    let [with_low, with_high] = bounds(bands.chain([low, high]));
    let with_high = with_high.max(near_bound(lines, with_high, is_logarithmic));
    let [least, most] = axis.range;
    let low = with_low.max(least.unwrap_or(f64::NEG_INFINITY).min(low));
    let high = with_high.min(most.unwrap_or(f64::INFINITY).max(high));
    if is_logarithmic {
        let low = float::log10(low);
        let [_, top] = with_margin([low, float::log10(high)], 0.03);
        return Some(Axis::new(low, top, true));
    }
    // A regret starts at zero; a loss is shown where it moves.
    let [beneath, above] = with_margin([low, high], 0.03);
    let bottom = if low >= 0.0 && low < 0.3 * high { 0.0 } else { beneath };
    let bottom = least.map_or(bottom, |least| if axis.begins { least.min(low) } else { bottom.max(least.min(low)) });
    Some(Axis::new(bottom, most.map_or(above, |most| above.min(most.max(high))), false))
}

/// The highest value of bounds; on a linear axis minus infinity if they are far beyond what was measured.
fn near_bound(lines: &[Line], measured: f64, is_logarithmic: bool) -> f64 {
    let of_bounds = lines.iter().filter(|line| line.role == LineKind::Bound);
    let [_, high] = bounds(of_bounds.flat_map(|line| &line.points).map(|point| point.1));
    if is_logarithmic || high <= FAR * measured.max(0.0) { high } else { f64::NEG_INFINITY }
}

/// Whether bounds leave the frame.
pub(super) fn is_beyond(lines: &[Line], y: &Axis) -> bool {
    let bounds = lines.iter().filter(|line| line.role == LineKind::Bound);
    bounds.flat_map(|line| &line.points).any(|point| y.free_position(point.1) > y.high)
}

pub(super) fn horizontal_axis(axis: &model::Axis, lines: &[Line], wanted: Option<[f64; 2]>) -> Option<Axis> {
    if let Some(ends) = wanted {
        return between(axis, ends);
    }
    let is_logarithmic = is_log(axis);
    let xs = measured(lines).flat_map(|line| &line.points).map(|point| point.0);
    let [low, high] = bounds(xs.filter(|&x| !is_logarithmic || x > 0.0));
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let has_dots = lines.iter().any(|line| line.has_dots);
    if !has_dots && !is_logarithmic {
        return Some(Axis::new(low.min(0.0), if high > 0.0 { high } else { 1.0 }, false));
    }
    let (low, high) = if is_logarithmic { (float::log10(low), float::log10(high)) } else { (low, high) };
    let [low, high] = with_margin([low, high], 0.04);
    Some(Axis::new(low, high, is_logarithmic))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)], band: &[(f64, [f64; 2])]) -> Line {
        Line {
            series: "a".to_owned(),
            role: LineKind::Mean,
            label: None,
            points: points.to_vec(),
            band: band.to_vec(),
            is_staircase: false,
            has_dots: false,
        }
    }

    fn model(scale: Scale, range: [Option<f64>; 2]) -> model::Axis {
        model::Axis { label: "y".to_owned(), unit: None, scales: vec![scale], range, begins: false }
    }

    #[test]
    fn a_band_does_not_move_the_axis_and_a_share_stays_one() {
        let lines = [line(&[(0.0, 0.1), (5.0, 0.99)], &[(0.0, [-2.0, 2.2]), (5.0, [-1.2, 3.2])])];
        // From 0 on, however far above it the data are.
        let whole = model::Axis { begins: true, ..model(Scale::Linear, [Some(0.0), None]) };
        assert_eq!(vertical_axis(&whole, &[line(&[(1.0, 32.0), (2.0, 40.0)], &[])], &[], None).unwrap().low, 0.0);
        let share = model(Scale::Linear, [Some(0.0), Some(1.0)]);
        let axis = vertical_axis(&share, &lines, &[], None).unwrap();
        assert_eq!((axis.low, axis.high, axis.is_logarithmic), (0.0, 1.0, false));
        assert_eq!((axis.position(3.2), axis.position(-2.0)), (1.0, 0.0));
        let free = model(Scale::Linear, [None, None]);
        let axis = vertical_axis(&free, &lines, &[], None).unwrap();
        assert!((-0.2..0.0).contains(&axis.low) && (1.2..1.3).contains(&axis.high));
        let whiskers = [Line { has_dots: true, ..lines[0].clone() }];
        let axis = vertical_axis(&free, &whiskers, &[], None).unwrap();
        assert!(axis.low < -2.0 && axis.high > 3.2, "whiskers are not cut off: {axis:?}");
    }

    #[test]
    fn a_logarithmic_axis_is_that_of_the_means() {
        let lines = [line(&[(0.0, 1.0), (5.0, 100.0)], &[(0.0, [-3.0, 1e9]), (5.0, [1e-9, 200.0])])];
        let axis = vertical_axis(&model(Scale::Log, [None, None]), &lines, &[], None).unwrap();
        assert!((axis.low + 0.5).abs() < 1e-12 && (2.5..2.6).contains(&axis.high), "{axis:?}");
    }

    #[test]
    fn a_bound_far_above_does_not_move_a_linear_axis() {
        let bound = |top: f64| Line { role: LineKind::Bound, ..line(&[(1.0, 1.0), (5.0, top)], &[]) };
        let lines = |top| [line(&[(1.0, 2.0), (5.0, 10.0)], &[]), bound(top)];
        let axis = |scale, top| vertical_axis(&model(scale, [Some(0.0), None]), &lines(top), &[], None).unwrap();
        let far = axis(Scale::Linear, 1e12);
        assert!(far.high < 11.0 && is_beyond(&lines(1e12), &far));
        let near = axis(Scale::Linear, 29.0);
        assert!(near.high > 29.0 && !is_beyond(&lines(29.0), &near));
        let log = axis(Scale::Log, 1e12);
        assert!(log.is_logarithmic && (log.low - float::log10(2.0)).abs() < 1e-12 && log.high > 12.0);
    }
}
