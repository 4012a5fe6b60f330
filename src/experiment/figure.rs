//! Figures of an experiment as SVG: cumulative regret over rounds, test metrics over virtual time.
//!
//! Lines are means over seeds, bands their 95 % intervals. Colours are those of M. Okabe and K. Ito, "Color Universal
//! Design" (2008), distinguishable with colour-blind eyes; a policy has the colour of its place in the scenario.

use super::{CurvePoint, RunSummary, Summary, files};
use crate::error::Error;
use crate::math::float;
use crate::math::statistics::estimate;
use plotters::prelude::*;
use std::path::{Path, PathBuf};

const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
    RGBColor(148, 148, 148),
];

/// Points along the horizontal axis.
const STEPS: usize = 200;

/// One policy's line: horizontal place, mean, and the interval where there is one.
struct Line {
    label: String,
    points: Vec<(f64, f64, Option<[f64; 2]>)>,
}

/// Writes `regret.svg` and one file per metric into a folder; nothing for a sweep. Returns what was written.
///
/// # Errors
/// If a file cannot be written.
pub fn write_figures(folder: &Path, summary: &Summary) -> Result<Vec<PathBuf>, Error> {
    if summary.points.len() != 1 {
        return Ok(Vec::new());
    }
    let mut written = Vec::new();
    let mut write = |name: String, title: &str, axes: [&str; 2], lines: Vec<Line>| {
        let Some(svg) = draw(title, axes, &lines) else { return Ok(()) };
        let path = folder.join(name);
        files::write_file(&path, svg.as_bytes())?;
        written.push(path);
        Ok::<_, Error>(())
    };
    let title = summary.title.as_deref().unwrap_or(&summary.scenario);
    for meter in ["mean", "realised", "expected"] {
        let value = |point: &CurvePoint| {
            point.regret.entries().into_iter().find(|(name, _)| *name == meter).and_then(|(_, value)| value)
        };
        let lines = lines(summary, |point| f64::from(point.round), value);
        let name = if meter == "mean" { "regret.svg".to_owned() } else { format!("regret-{meter}.svg") };
        write(name, title, ["round", &format!("cumulative {meter} regret")], lines)?;
    }
    let metrics = summary.runs.first().map(|run| run.final_metrics.keys().cloned().collect::<Vec<_>>());
    for metric in metrics.unwrap_or_default() {
        let value =
            |point: &CurvePoint| point.metrics.iter().find(|(name, _)| *name == metric).map(|&(_, value)| value);
        let lines = lines(summary, |point| point.time_s, value);
        write(format!("{metric}.svg"), title, ["virtual time [s]", &metric.replace('_', " ")], lines)?;
    }
    Ok(written)
}

/// Means over seeds on a common grid; at each place a run counts with its last value up to there.
fn lines(
    summary: &Summary,
    place: impl Fn(&CurvePoint) -> f64,
    value: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<Line> {
    let course = |run: &RunSummary| -> Vec<(f64, f64)> {
        run.curve.iter().filter_map(|point| Some((place(point), value(point)?))).collect()
    };
    let mut lines: Vec<Line> = Vec::new();
    for arm in &summary.arms {
        let runs: Vec<Vec<(f64, f64)>> =
            summary.runs.iter().filter(|run| run.arm == arm.arm).map(course).filter(|run| !run.is_empty()).collect();
        let start = runs.iter().map(|run| run[0].0).fold(f64::NEG_INFINITY, f64::max);
        let end = runs.iter().filter_map(|run| run.last()).map(|last| last.0).fold(f64::INFINITY, f64::min);
        let mut points = Vec::new();
        for step in 0..=STEPS {
            let x = start + (end - start) * step as f64 / STEPS as f64;
            let values: Vec<f64> = runs
                .iter()
                .filter_map(|run| run[..run.partition_point(|&(place, _)| place <= x)].last().map(|&(_, y)| y))
                .collect();
            if values.len() == runs.len()
                && let Some(found) = estimate(&values)
            {
                points.push((x, found.mean, found.ci95));
            }
        }
        if !points.is_empty() {
            lines.push(Line { label: arm.arm.clone(), points });
        }
    }
    lines
}

/// The figure as SVG text; none if there is nothing to draw.
fn draw(title: &str, [x_title, y_title]: [&str; 2], lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x_end = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let low = |&(_, mean, ci): &(f64, f64, Option<[f64; 2]>)| ci.map_or(mean, |[low, _]| low);
    let high = |&(_, mean, ci): &(f64, f64, Option<[f64; 2]>)| ci.map_or(mean, |[_, high]| high);
    let y_low = points().map(low).fold(f64::INFINITY, f64::min);
    let y_high = points().map(high).fold(f64::NEG_INFINITY, f64::max);
    if !(x_end.is_finite() && y_low.is_finite() && y_high.is_finite()) {
        return None;
    }
    // What stays positive and spans more than a decade, as a loss does, is drawn on a logarithmic axis.
    let is_logarithmic = y_low > 0.0 && y_high > 10.0 * y_low;
    let axis = |y: f64| if is_logarithmic { float::log10(y) } else { y };
    let (y_low, y_high) = (axis(y_low), axis(y_high));
    let y_text = |y: &f64| if is_logarithmic { tick(float::power(10.0, *y)) } else { tick(*y) };
    // A regret starts at zero; a loss is shown where it moves.
    let y_low = if is_logarithmic {
        y_low
    } else if y_low >= 0.0 && y_low < 0.3 * y_high {
        0.0
    } else {
        y_low
    };
    let y_high = if y_high > y_low { y_high + 0.03 * (y_high - y_low) } else { y_low + 1.0 };
    let mut svg = String::new();
    let drawn = (|| {
        let area = SVGBackend::with_string(&mut svg, (860, 480)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(42)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..x_end, y_low..y_high)?;
        chart
            .configure_mesh()
            .x_desc(x_title)
            .y_desc(y_title)
            .x_label_formatter(&|x| tick(*x))
            .y_label_formatter(&y_text)
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .draw()?;
        for (place, line) in lines.iter().enumerate() {
            let colour = COLOURS[place % COLOURS.len()];
            let upper = line.points.iter().map(|point| (point.0, axis(high(point))));
            let lower = line.points.iter().rev().map(|point| (point.0, axis(low(point))));
            let band: Vec<(f64, f64)> = upper.chain(lower).collect();
            chart.draw_series(std::iter::once(Polygon::new(band, colour.mix(0.18))))?;
            let mean = line.points.iter().map(|&(x, mean, _)| (x, axis(mean)));
            chart
                .draw_series(LineSeries::new(mean, colour.stroke_width(2)))?
                .label(&line.label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
        }
        chart
            .configure_series_labels()
            .position(if is_logarithmic { SeriesLabelPosition::UpperRight } else { SeriesLabelPosition::UpperLeft })
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .label_font(("sans-serif", 14))
            .draw()?;
        area.present()
    })();
    drawn.is_ok().then_some(svg)
}

/// A number on an axis, with at most three digits behind the point.
fn tick(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
