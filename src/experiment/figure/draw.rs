//! One figure: axes with ticks at 1, 2 and 5, lines, bands and a legend where there is room for it.

use crate::math::float;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

/// What is drawn for one policy.
pub(super) struct Line {
    pub label: String,
    pub colour: RGBColor,
    /// Place and mean over seeds.
    pub mean: Vec<(f64, f64)>,
    /// Place and interval, where there are seeds enough for one.
    pub band: Vec<(f64, [f64; 2])>,
    /// The single seeds, where there are too few for a band.
    pub seeds: Vec<Vec<(f64, f64)>>,
}

/// What a figure shows.
pub(super) struct Picture<'a> {
    pub title: &'a str,
    /// Titles of the axes.
    pub axes: [&'a str; 2],
    pub lines: &'a [Line],
    /// What values of the vertical axis can be.
    pub range: [f64; 2],
    /// Horizontal lines.
    pub targets: &'a [f64],
    /// Whether places are marked one by one, and intervals as whiskers.
    pub dots: bool,
}

#[derive(Clone)]
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    /// Place on the axis and text.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    fn new(low: f64, high: f64, is_logarithmic: bool) -> Self {
        let ticks = if is_logarithmic { logarithmic_ticks(low, high) } else { linear_ticks(low, high) };
        Self { low, high, is_logarithmic, ticks }
    }

    /// Where a value lies, at the frame if beyond.
    fn place(&self, value: f64) -> f64 {
        let place = match (self.is_logarithmic, value > 0.0) {
            (true, true) => float::log10(value),
            (true, false) => self.low,
            (false, _) => value,
        };
        place.clamp(self.low, self.high)
    }

    /// How far along the axis a place lies, from 0 to 1.
    fn share(&self, place: f64) -> f64 {
        (place - self.low) / (self.high - self.low)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let pixels = f64::from(last - first) * self.share(*place);
        first + float::floor(pixels + 0.5) as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let all = || self.ticks.iter().map(|(place, _)| *place).collect();
        if hint.weight().allow_light_points() { Vec::new() } else { all() }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, place: &f64) -> String {
        let distance = |tick: &&(f64, String)| (tick.0 - place).abs();
        let nearest = self.ticks.iter().min_by(|one, two| distance(one).total_cmp(&distance(two)));
        nearest.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// `10^exponent`
fn decade(exponent: i32) -> f64 {
    float::power(10.0, f64::from(exponent))
}

/// Five to ten multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / 6.0;
    let exponent = float::floor(float::log10(rough)) as i32;
    let factor = [1, 2, 5, 10].into_iter().find(|&factor| f64::from(factor) * decade(exponent) >= rough * 0.999);
    let (factor, exponent) = match factor {
        Some(factor @ (1 | 2 | 5)) => (factor, exponent),
        _ => (1, exponent + 1),
    };
    let step = f64::from(factor) * decade(exponent);
    let (first, last) = (float::ceil(low / step - 1e-9) as i64, float::floor(high / step + 1e-9) as i64);
    (first..=last).map(|count| (count as f64 * step, number(count * i64::from(factor), exponent))).collect()
}

/// 1, 2 and 5 of every decade, or the decades alone where there are many.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let factors: &[i64] = if high - low > 4.0 { &[1] } else { &[1, 2, 5] };
    let every = (((high - low) / 10.0) as i32).max(1);
    let mut ticks = Vec::new();
    for exponent in float::floor(low) as i32..=float::ceil(high) as i32 {
        for &factor in factors.iter().filter(|_| exponent % every == 0) {
            let place = float::log10(factor as f64) + f64::from(exponent);
            if (low - 1e-9..=high + 1e-9).contains(&place) {
                ticks.push((place, number(factor, exponent)));
            }
        }
    }
    ticks
}

/// `count · 10^exponent` as people write it.
fn number(count: i64, exponent: i32) -> String {
    let value = count as f64 * decade(exponent);
    match exponent {
        _ if count == 0 => "0".to_owned(),
        6.. | ..-6 => format!("{value:e}"),
        0.. => format!("{value:.0}"),
        _ => format!("{value:.*}", exponent.unsigned_abs() as usize),
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], value| [low.min(value), high.max(value)])
}

fn vertical_axis(picture: &Picture<'_>) -> Option<Axis> {
    // The axis fits the lines, and bands as far as a quarter beyond; the rest of them is cut off.
    let of_line = |line: &Line| -> Vec<f64> {
        line.mean.iter().chain(line.seeds.iter().flatten()).map(|point| point.1).collect()
    };
    let [low, high] = bounds(picture.lines.iter().flat_map(of_line).chain(picture.targets.iter().copied()));
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let within = |value: f64| value.clamp(low - 0.25 * (high - low), high + 0.25 * (high - low));
    let bands = picture.lines.iter().flat_map(|line| &line.band).flat_map(|(_, interval)| interval.map(within));
    let [with_low, with_high] = bounds(bands.chain([low, high]));
    let (low, high) = (with_low.max(picture.range[0].min(low)), with_high.min(picture.range[1].max(high)));
    // What stays positive and spans more than a decade, as a loss does, is drawn on a logarithmic axis.
    if low > 0.0 && high > 10.0 * low && picture.range[1] == f64::INFINITY {
        let (low, high) = (float::log10(low), float::log10(high));
        return Some(Axis::new(low, high + 0.03 * (high - low), true));
    }
    // A regret starts at zero; a loss is shown where it moves.
    let margin = if high > low { 0.03 * (high - low) } else { 0.5 };
    let bottom = if low >= 0.0 && low < 0.3 * high { 0.0 } else { low - margin };
    Some(Axis::new(bottom.max(picture.range[0].min(low)), (high + margin).min(picture.range[1].max(high)), false))
}

fn horizontal_axis(picture: &Picture<'_>) -> Option<Axis> {
    let [low, high] = bounds(picture.lines.iter().flat_map(|line| &line.mean).map(|point| point.0));
    if !(low.is_finite() && high.is_finite()) {
        return None;
    }
    if !picture.dots {
        return Some(Axis::new(0.0, if high > 0.0 { high } else { 1.0 }, false));
    }
    let is_logarithmic = low > 0.0 && high >= 10.0 * low;
    let (low, high) = if is_logarithmic { (float::log10(low), float::log10(high)) } else { (low, high) };
    let margin = if high > low { 0.04 * (high - low) } else { 0.5 };
    Some(Axis::new(low - margin, high + margin, is_logarithmic))
}

/// The corner where least is drawn.
fn free_corner(lines: &[Line], x: &Axis, y: &Axis) -> SeriesLabelPosition {
    let share = |axis: &Axis, value: f64| axis.share(axis.place(value));
    let height = 0.08 * (lines.len() + 1) as f64;
    let corners = [
        (SeriesLabelPosition::UpperLeft, false, true),
        (SeriesLabelPosition::UpperRight, true, true),
        (SeriesLabelPosition::LowerRight, true, false),
        (SeriesLabelPosition::LowerLeft, false, false),
    ];
    let covered = |right: bool, up: bool| {
        let inside = |&&(place, value): &&(f64, f64)| {
            let (place, value) = (share(x, place), share(y, value));
            (if right { place > 0.72 } else { place < 0.28 })
                && (if up { value > 1.0 - height } else { value < height })
        };
        lines.iter().map(|line| line.mean.iter().filter(inside).count()).sum::<usize>()
    };
    let least = corners.into_iter().min_by_key(|&(_, right, up)| covered(right, up));
    least.map_or(SeriesLabelPosition::UpperLeft, |(corner, ..)| corner)
}

/// The figure as SVG text; none if there is nothing to draw.
pub(super) fn draw(picture: &Picture<'_>) -> Option<String> {
    let (x, y) = (horizontal_axis(picture)?, vertical_axis(picture)?);
    let at = |&(place, value): &(f64, f64)| (x.place(place), y.place(value));
    let mut svg = String::new();
    let drawn = (|| {
        let area = SVGBackend::with_string(&mut svg, (860, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(picture.title, ("sans-serif", 18))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .x_desc(picture.axes[0])
            .y_desc(picture.axes[1])
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .draw()?;
        for &target in picture.targets {
            let line = [(x.low, y.place(target)), (x.high, y.place(target))];
            chart.draw_series(DashedLineSeries::new(line, 6, 4, BLACK.mix(0.6).stroke_width(1)))?;
        }
        for line in picture.lines {
            let colour = line.colour;
            if picture.dots {
                for (place, [low, high]) in &line.band {
                    let ends = [at(&(*place, *low)), at(&(*place, *high))];
                    chart.draw_series(LineSeries::new(ends, colour.mix(0.5).stroke_width(1)))?;
                }
                chart.draw_series(line.mean.iter().map(|point| Circle::new(at(point), 4, colour.filled())))?;
            } else if !line.band.is_empty() {
                let upper = line.band.iter().map(|&(place, [_, high])| at(&(place, high)));
                let lower = line.band.iter().rev().map(|&(place, [low, _])| at(&(place, low)));
                let band: Vec<(f64, f64)> = upper.chain(lower).collect();
                chart.draw_series(std::iter::once(Polygon::new(band, colour.mix(0.18))))?;
            }
            for seed in &line.seeds {
                chart.draw_series(LineSeries::new(seed.iter().map(at), colour.mix(0.4).stroke_width(1)))?;
            }
            chart
                .draw_series(LineSeries::new(line.mean.iter().map(at), colour.stroke_width(2)))?
                .label(&line.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(free_corner(picture.lines, &x, &y))
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
        area.present()
    })();
    drawn.is_ok().then_some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_one_two_and_five() {
        assert_eq!(texts(&linear_ticks(0.0, 1.0)), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(&linear_ticks(-0.3, 2.0)), ["0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(texts(&linear_ticks(-1e-9, 300.0)), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(texts(&linear_ticks(0.0, 1e6)), ["0", "200000", "400000", "600000", "800000", "1000000"]);
        assert_eq!(texts(&logarithmic_ticks(-0.8, 1.05)), ["0.2", "0.5", "1", "2", "5", "10"]);
        assert_eq!(texts(&logarithmic_ticks(0.0, 6.0)), ["1", "10", "100", "1000", "10000", "100000", "1e6"]);
    }

    fn picture<'a>(lines: &'a [Line], range: [f64; 2]) -> Picture<'a> {
        Picture { title: "t", axes: ["x", "y"], lines, range, targets: &[], dots: false }
    }

    #[test]
    fn a_band_does_not_move_the_axis_and_a_share_stays_one() {
        let line = Line {
            label: "a".to_owned(),
            colour: BLACK,
            mean: vec![(0.0, 0.1), (5.0, 0.99)],
            band: vec![(0.0, [-2.0, 2.2]), (5.0, [-1.2, 3.2])],
            seeds: Vec::new(),
        };
        let lines = [line];
        let axis = vertical_axis(&picture(&lines, [0.0, 1.0])).unwrap();
        assert_eq!((axis.low, axis.high, axis.is_logarithmic), (0.0, 1.0, false));
        assert_eq!((axis.place(3.2), axis.place(-2.0)), (1.0, 0.0));
        let axis = vertical_axis(&picture(&lines, [f64::NEG_INFINITY, f64::INFINITY])).unwrap();
        assert!((-0.2..0.0).contains(&axis.low) && (1.2..1.3).contains(&axis.high));
        assert!(draw(&picture(&lines, [0.0, 1.0])).is_some() && draw(&picture(&[], [0.0, 1.0])).is_none());
    }
}
