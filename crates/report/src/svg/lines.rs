//! Lines, bands and a legend where there is room for it.

use super::super::model::{self, Line, LineKind, Mark, Scale, Series};
use super::super::style::Style;
use super::axis::{Axis, bounds, with_margin};
use super::canvas::{self, Canvas};
use super::clip::clipped;
use super::{Failed, Layout, cut, key, words};
use fedgenie_core::math::float;
use plotters::prelude::*;

/// The lines that decide where axes end: all but bounds, which may lie far above the others.
fn measured(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.role != LineKind::Bound)
}

/// An axis with these ends; linear where a logarithmic one would have no place for them.
fn between(axis: &model::Axis, ends: [f64; 2]) -> Option<Axis> {
    let is_logarithmic = axis.scales.first() == Some(&Scale::Log) && ends[0] > 0.0;
    let [low, high] = if is_logarithmic { ends.map(float::log10) } else { ends };
    (low < high).then(|| Axis::new(low, high, is_logarithmic))
}

/// An axis that shows values from the lowest to the highest, and bands as far as a quarter beyond; the rest of them is
/// cut off.
fn vertical_axis(axis: &model::Axis, lines: &[Line], marks: &[Mark], wanted: Option<[f64; 2]>) -> Option<Axis> {
    if let Some(ends) = wanted {
        return between(axis, ends);
    }
    let values = measured(lines).flat_map(|line| &line.points).map(|point| point.1);
    let values = values.chain(marks.iter().map(|mark| mark.value));
    let is_logarithmic = axis.scales.first() == Some(&Scale::Log);
    let [low, high] = bounds(values.filter(|&value| !is_logarithmic || value > 0.0));
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let (from, to) = if is_logarithmic { (float::log10(low), float::log10(high)) } else { (low, high) };
    let quarter = 0.25 * to - 0.25 * from;
    let beyond = [from - quarter, to + quarter].map(|end| end.clamp(f64::MIN, f64::MAX));
    let [floor, ceiling] =
        beyond.map(|end| if is_logarithmic { float::power(10.0, end).clamp(f64::MIN_POSITIVE, f64::MAX) } else { end });
    let bands = measured(lines)
        .flat_map(|line| &line.band)
        .flat_map(|(_, interval)| interval.map(|end| end.clamp(floor, ceiling)));
    let [with_low, with_high] = bounds(bands.chain([low, high]));
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
    let bottom = least.map_or(bottom, |least| bottom.max(least.min(low)));
    Some(Axis::new(bottom, most.map_or(above, |most| above.min(most.max(high))), false))
}

fn horizontal_axis(axis: &model::Axis, lines: &[Line], wanted: Option<[f64; 2]>) -> Option<Axis> {
    if let Some(ends) = wanted {
        return between(axis, ends);
    }
    let is_logarithmic = axis.scales.first() == Some(&Scale::Log);
    let xs = measured(lines).flat_map(|line| &line.points).map(|point| point.0);
    let [low, high] = bounds(xs.filter(|&x| !is_logarithmic || x > 0.0));
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let has_dots = lines.iter().any(|line| line.has_dots);
    if !has_dots && !is_logarithmic {
        return Some(Axis::new(0.0, if high > 0.0 { high } else { 1.0 }, false));
    }
    let (low, high) = if is_logarithmic { (float::log10(low), float::log10(high)) } else { (low, high) };
    let [low, high] = with_margin([low, high], 0.04);
    Some(Axis::new(low, high, is_logarithmic))
}

/// The corner where least is drawn: whether it is on the right, and above.
fn free_corner(lines: &[Line], labels: usize, x: &Axis, y: &Axis) -> [bool; 2] {
    let share = |axis: &Axis, value: f64| axis.share(axis.position(value));
    let height = 0.08 * (labels + 1) as f64;
    let covered = |&[right, up]: &[bool; 2]| {
        let inside = |&&(across, value): &&(f64, f64)| {
            let (across, value) = (share(x, across), share(y, value));
            (if right { across > 0.72 } else { across < 0.28 })
                && (if up { value > 1.0 - height } else { value < height })
        };
        measured(lines).map(|line| line.points.iter().filter(inside).count()).sum::<usize>()
    };
    [[false, true], [true, true], [true, false], [false, false]]
        .into_iter()
        .min_by_key(covered)
        .unwrap_or([false, true])
}

/// The points of a line that have markers: a few, evenly spread over the picture, other ones for each of the lines.
fn marked(points: &[(f64, f64)], x: &Axis, order: usize, lines: usize) -> Vec<(f64, f64)> {
    const MARKERS: usize = 6;
    let share = |point: &(f64, f64)| x.share(x.position(point.0));
    let mut found: Vec<(f64, f64)> = Vec::new();
    for step in 0..MARKERS {
        let wanted = (step as f64 + (order as f64 + 0.5) / lines as f64) / MARKERS as f64;
        let distance = |point: &(f64, f64)| (share(point) - wanted).abs();
        let nearest = points.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        found.extend(nearest.filter(|point| distance(point) < 0.6 / MARKERS as f64 && found.last() != Some(*point)));
    }
    found
}

/// The corners of a line that keeps each value until the next.
fn corners<T: Copy>(points: &[(f64, T)], is_staircase: bool) -> Vec<(f64, T)> {
    if !is_staircase {
        return points.to_vec();
    }
    let corner = |pair: &[(f64, T)]| [(pair[1].0, pair[0].1), pair[1]];
    points.first().copied().into_iter().chain(points.windows(2).flat_map(corner)).collect()
}

type Plot<'a, 'b> = ChartContext<'a, Canvas<'b>, Cartesian2d<Axis, Axis>>;

/// The axes of a picture.
struct Axes {
    x: Axis,
    y: Axis,
    /// Whether points beyond the ends of each axis are left out.
    is_cut: [bool; 2],
}

impl Axes {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.position(x), self.y.position(y))
    }

    /// Whether a point can be drawn: a logarithmic axis has no zero.
    fn have(&self, &(x, y): &(f64, f64)) -> bool {
        let has = |axis: &Axis, value: f64| !axis.is_logarithmic || value > 0.0;
        has(&self.x, x) && has(&self.y, y)
    }

    /// Whether part of an interval is within the frame.
    fn shows(&self, x: f64, [low, high]: [f64; 2]) -> bool {
        let [is_cut_x, is_cut_y] = self.is_cut;
        let is_beside = is_cut_x && !self.x.has(x);
        let is_beyond = is_cut_y && !self.y.has(low) && !self.y.has(high);
        !is_beside && !is_beyond
    }

    /// The parts of a line that are drawn, as positions on the axes.
    fn parts(&self, points: impl Iterator<Item = (f64, f64)>) -> Vec<Vec<(f64, f64)>> {
        if self.is_cut == [false; 2] {
            return vec![points.map(|point| self.at(point)).collect()];
        }
        let open =
            |axis: &Axis, is_cut: bool| if is_cut { [axis.low, axis.high] } else { [f64::NEG_INFINITY, f64::INFINITY] };
        let free = |(x, y)| (self.x.free_position(x), self.y.free_position(y));
        let [is_cut_x, is_cut_y] = self.is_cut;
        clipped(&points.map(free).collect::<Vec<_>>(), [open(&self.x, is_cut_x), open(&self.y, is_cut_y)])
    }
}

/// A line with its band or whiskers.
fn draw_line(chart: &mut Plot<'_, '_>, line: &Line, style: &Style, axes: &Axes) -> Result<(), Failed> {
    let colour = key::colour(style);
    let at = |point| axes.at(point);
    let band = corners(&line.band, line.is_staircase);
    if line.has_dots {
        let is_shown = |(x, [low, high]): &(f64, [f64; 2])| axes.shows(*x, [*low, *high]);
        for (x, [low, high]) in band.into_iter().filter(is_shown) {
            let ends = [at((x, low)), at((x, high))];
            chart.draw_series(LineSeries::new(ends, colour.mix(0.5).stroke_width(1)))?;
        }
    } else if !band.is_empty() {
        // On a logarithmic axis there is no place for an interval that reaches zero.
        for part in band.split(|&(x, [low, _])| !axes.have(&(x, low))).filter(|part| part.len() > 1) {
            let upper = part.iter().map(|&(x, [_, high])| at((x, high)));
            let lower = part.iter().rev().map(|&(x, [low, _])| at((x, low)));
            let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
            chart.draw_series(std::iter::once(Polygon::new(outline, colour.mix(0.18))))?;
        }
    }
    let points = corners(&line.points, line.is_staircase).into_iter().filter(|point| axes.have(point));
    let (thin, thick) = (colour.stroke_width(1), colour.stroke_width(2));
    // A bound is drawn as far as it is within the frame.
    let parts = match line.role {
        LineKind::Bound => vec![points.filter(|&(_, value)| axes.y.has(value)).map(at).collect()],
        _ => axes.parts(points),
    };
    for part in parts {
        match line.role {
            LineKind::Mean if style.is_dashed => {
                let [dash, gap] = key::DASH;
                chart.draw_series(DashedLineSeries::new(part, dash, gap, thick))?;
            }
            LineKind::Mean => {
                chart.draw_series(LineSeries::new(part, thick))?;
            }
            LineKind::Seed | LineKind::Extreme => {
                chart.draw_series(LineSeries::new(part, colour.mix(0.4).stroke_width(1)))?;
            }
            LineKind::Fit => {
                chart.draw_series(DashedLineSeries::new(part, 7, 5, thin))?;
            }
            LineKind::Bound => {
                chart.draw_series(DashedLineSeries::new(part, 2, 4, thin))?;
            }
        }
    }
    Ok(())
}

pub(super) fn draw(
    heading: &str,
    [x_model, y_model]: [&model::Axis; 2],
    lines: &[Line],
    marks: &[Mark],
    series: &[Series],
    layout: Layout,
) -> Option<Vec<u8>> {
    let mut axes = Axes {
        x: horizontal_axis(x_model, lines, layout.ranges[0])?,
        y: vertical_axis(y_model, lines, marks, layout.ranges[1])?,
        is_cut: layout.ranges.map(|range| range.is_some()),
    };
    let marks = marks.iter().filter(|mark| !axes.is_cut[1] || axes.y.has(mark.value));
    if x_model.label == "round" {
        axes.x.keep_whole_ticks();
    }
    let means: Vec<&Line> = lines.iter().filter(|line| line.role == LineKind::Mean).collect();
    let name = |line: &&Line| (line.label.as_ref().unwrap_or(&line.series).clone(), key::style(series, &line.series));
    let names: Vec<(String, Style)> = means.iter().map(name).collect();
    let has_legend = names.len() > 1 || names.len() == 1 && lines[0].label.is_none();
    let below = if has_legend { key::height_below(&names, layout) } else { 0 };
    canvas::drawn([layout.width, layout.height + below], layout, |area| {
        let (plot, _) = area.split_vertically(layout.height);
        let mut chart = ChartBuilder::on(&plot)
            .caption(cut(heading, 100), ("sans-serif", 18))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(axes.x.clone(), axes.y.clone())?;
        chart
            .configure_mesh()
            .x_desc(words(x_model))
            .y_desc(words(y_model))
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .draw()?;
        for mark in marks {
            let line = [(axes.x.low, mark.value), (axes.x.high, mark.value)].map(|(x, y)| (x, axes.y.position(y)));
            chart.draw_series(DashedLineSeries::new(line, 6, 4, BLACK.mix(0.6).stroke_width(1)))?;
        }
        for line in lines {
            draw_line(&mut chart, line, &key::style(series, &line.series), &axes)?;
        }
        for (index, (line, (_, style))) in means.iter().zip(&names).enumerate() {
            let points: Vec<(f64, f64)> =
                line.points.iter().copied().filter(|&(x, y)| axes.have(&(x, y)) && axes.shows(x, [y; 2])).collect();
            let marked = if line.has_dots { points } else { marked(&points, &axes.x, index, means.len()) };
            for point in marked {
                key::marker(area, style, chart.backend_coord(&axes.at(point)))?;
            }
        }
        if below > 0 {
            key::below(area, &names, layout.height, layout)?;
        } else if has_legend {
            let corner = free_corner(lines, names.len(), &axes.x, &axes.y);
            key::inside(area, &names, chart.plotting_area().get_pixel_range(), corner)?;
        }
        Ok(())
    })
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
        model::Axis { label: "y".to_owned(), unit: None, scales: vec![scale], range }
    }

    #[test]
    fn a_band_does_not_move_the_axis_and_a_share_stays_one() {
        let lines = [line(&[(0.0, 0.1), (5.0, 0.99)], &[(0.0, [-2.0, 2.2]), (5.0, [-1.2, 3.2])])];
        let share = model(Scale::Linear, [Some(0.0), Some(1.0)]);
        let axis = vertical_axis(&share, &lines, &[], None).unwrap();
        assert_eq!((axis.low, axis.high, axis.is_logarithmic), (0.0, 1.0, false));
        assert_eq!((axis.position(3.2), axis.position(-2.0)), (1.0, 0.0));
        let free = model(Scale::Linear, [None, None]);
        let axis = vertical_axis(&free, &lines, &[], None).unwrap();
        assert!((-0.2..0.0).contains(&axis.low) && (1.2..1.3).contains(&axis.high));
        assert!(draw("t", [&free, &free], &lines, &[], &[], Layout::default()).is_some());
        assert!(draw("t", [&free, &free], &[], &[], &[], Layout::default()).is_none());
    }

    #[test]
    fn a_logarithmic_axis_is_that_of_the_means() {
        let lines = [line(&[(0.0, 1.0), (5.0, 100.0)], &[(0.0, [-3.0, 1e9]), (5.0, [1e-9, 200.0])])];
        let axis = vertical_axis(&model(Scale::Log, [None, None]), &lines, &[], None).unwrap();
        assert!((axis.low + 0.5).abs() < 1e-12 && (2.5..2.6).contains(&axis.high), "{axis:?}");
    }

    #[test]
    fn a_bound_far_above_does_not_move_the_axis() {
        let bound = Line { role: LineKind::Bound, ..line(&[(1.0, 1e9), (5.0, 1e12)], &[]) };
        let lines = [line(&[(1.0, 2.0), (5.0, 10.0)], &[]), bound];
        let axis = vertical_axis(&model(Scale::Linear, [Some(0.0), None]), &lines, &[], None).unwrap();
        assert!(axis.high < 11.0);
        let axis = vertical_axis(&model(Scale::Log, [Some(0.0), None]), &lines, &[], None).unwrap();
        assert!(axis.is_logarithmic && (axis.low - float::log10(2.0)).abs() < 1e-12);
    }

    #[test]
    fn a_staircase_keeps_its_values() {
        assert_eq!(corners(&[(1.0, 0.0), (3.0, 1.0)], true), [(1.0, 0.0), (3.0, 0.0), (3.0, 1.0)]);
        assert_eq!(corners(&[(1.0, 0.0), (3.0, 1.0)], false), [(1.0, 0.0), (3.0, 1.0)]);
    }
}
