//! The data that the page's scripts need, as JSON that may stand inside a `<script>` element.
//!
//! Lines with the same horizontal coordinates share one list of them, numbers have no more digits than a picture can
//! show, and of a long band every other point is kept: a page with many lines becomes a third as long.

use super::shown::{Drawn, Shown};
use crate::numbers::rounded;
use crate::{Axis, Chart, Line, LineKind, Mark, Report, svg};
use serde::Serialize;

const X_DIGITS: usize = 9;
const VALUE_DIGITS: usize = 6;

#[derive(Serialize)]
struct Page<'a> {
    figures: Vec<Picture<'a>>,
}

#[derive(Serialize)]
struct Picture<'a> {
    id: &'a str,
    /// The name of its element.
    element: &'a str,
    title: &'a str,
    /// The names that can be hidden, in the order of the classes in the picture.
    names: Vec<&'a str>,
    /// The choices, and this figure's value of each.
    choice: &'a [[String; 2]],
    chart: Shape<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shape<'a> {
    Lines(Lines<'a>),
    Other(Box<Chart>),
}

#[derive(Serialize)]
struct Lines<'a> {
    kind: &'static str,
    x: &'a Axis,
    y: &'a Axis,
    /// Lists of horizontal coordinates; a line names its own by index.
    xs: Vec<Vec<f64>>,
    lines: Vec<Columns<'a>>,
    marks: &'a [Mark],
}

#[derive(Serialize)]
struct Columns<'a> {
    series: &'a str,
    role: LineKind,
    label: Option<&'a str>,
    is_staircase: bool,
    has_dots: bool,
    /// Indices into the lists.
    xs: usize,
    values: Vec<f64>,
    band_xs: usize,
    low: Vec<f64>,
    high: Vec<f64>,
}

/// The JSON.
pub(super) fn json(report: &Report, shown: &Shown<'_>) -> String {
    let figures = shown.drawn.iter().map(|drawn| picture(drawn, report)).collect();
    let page = Page { figures };
    let json = serde_json::to_string(&page).expect("numbers and texts are always JSON");
    harmless(&json)
}

/// JSON in which nothing ends a `<script>` element, opens a comment there, or ends a line of JavaScript: those
/// characters are found in strings only, where they may be written by their numbers.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn picture<'a>(Drawn { of: figure, id, .. }: &'a Drawn<'a>, report: &Report) -> Picture<'a> {
    let chart = match &figure.chart {
        Chart::Lines { x, y, lines, marks } => Shape::Lines(columns(x, y, lines, marks)),
        other => Shape::Other(Box::new(in_few_digits(other))),
    };
    let choice = figure.choice.as_ref().map_or(&[][..], |choice| &choice.values);
    let names = svg::names(&figure.chart, &report.series);
    Picture { id: &figure.id, element: id, title: &figure.title, names, choice, chart }
}

/// A chart without lines, which is small.
fn in_few_digits(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    let shorten = |value: &mut f64| *value = rounded(*value, VALUE_DIGITS);
    match &mut chart {
        Chart::Lines { .. } => {}
        Chart::Heat { panels, .. } => {
            panels.iter_mut().flat_map(|panel| panel.cells.iter_mut().flatten().flatten()).for_each(shorten);
        }
        Chart::Bars { parts, .. } => parts.iter_mut().flat_map(|(_, lengths)| lengths).for_each(shorten),
        Chart::Intervals { rows, .. } => {
            for (_, _, interval) in rows {
                shorten(&mut interval.value);
                interval.ci95.iter_mut().flatten().for_each(shorten);
            }
        }
    }
    chart
}

/// Bands of more points lose every other one.
const LONG_BAND: usize = 80;

/// The drawn points of a band, its ends included.
fn thinned(band: &[(f64, [f64; 2])]) -> Vec<(f64, [f64; 2])> {
    let is_kept = |index: usize| band.len() <= LONG_BAND || index.is_multiple_of(2) || index + 1 == band.len();
    band.iter().enumerate().filter(|&(index, _)| is_kept(index)).map(|(_, &ends)| ends).collect()
}

fn columns<'a>(x: &'a Axis, y: &'a Axis, lines: &'a [Line], marks: &'a [Mark]) -> Lines<'a> {
    let mut xs: Vec<Vec<f64>> = Vec::new();
    let mut number = |wanted: Vec<f64>| {
        xs.iter().position(|known| *known == wanted).unwrap_or_else(|| {
            xs.push(wanted);
            xs.len() - 1
        })
    };
    let shown = |x: f64| rounded(x, X_DIGITS);
    let value = |y: f64| rounded(y, VALUE_DIGITS);
    let line = |line: &'a Line| {
        let band = thinned(&line.band);
        Columns {
            series: &line.series,
            role: line.role,
            label: line.label.as_deref(),
            is_staircase: line.is_staircase,
            has_dots: line.has_dots,
            xs: number(line.points.iter().map(|&(x, _)| shown(x)).collect()),
            values: line.points.iter().map(|&(_, y)| value(y)).collect(),
            band_xs: number(band.iter().map(|&(x, _)| shown(x)).collect()),
            low: band.iter().map(|&(_, [low, _])| value(low)).collect(),
            high: band.iter().map(|&(_, [_, high])| value(high)).collect(),
        }
    };
    let lines = lines.iter().map(line).collect();
    Lines { kind: "lines", x, y, xs, lines, marks }
}
