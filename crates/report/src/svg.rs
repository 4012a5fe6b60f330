//! A figure as SVG or PDF, for papers, and as SVG elements of a page: the only code that draws.
//!
//! Axes have the first of the scales that make sense. Texts are untrusted: `canvas` escapes them, and leaves out
//! characters that no picture may have, or that turn the direction of writing.
//!
//! # Marks for the page's script
//! | mark | of |
//! |---|---|
//! | class `n3` | everything of the figure's fourth name (`names`), which its key hides and shows |
//! | `data-l` | the index of a line; class `band`, `line` or `dot` tells its parts |
//! | `g.frame` | the frame of lines; `data-frame` has its pixels, `data-x` and `data-y` the ends of its axes, logarithms where the last number is 1 |
//! | `g.items` | rows or panels, each a `g.item`; `data-items` has the number of them side by side, the distance of rows, and the grid of cells (left, top, width, height) |
//! | `g.foot` | the part that moves up where rows are hidden |

mod axis;
mod bars;
mod canvas;
mod clip;
mod fit;
mod heat;
mod intervals;
mod key;
mod layout;
mod lines;
mod parts;
mod path;
mod pdf;
mod pen;

use super::model::{Axis, Chart, Figure, Series};
use canvas::Canvas;
pub(super) use key::{part_sample, sample, style};
pub use layout::{Family, Form, Layout, LayoutWishes};
pub(super) use lines::{is_keyed, keyed_name, leaves_frame};
use pen::{Anchor, Letters, Pen};
pub(super) use pen::{EMPTY, FAINT, INK, PAPER, RULE, hex};

/// Room for the heading.
const HEADING: f64 = 36.0;

/// Pictures of less width have labels above their rows.
const NARROW: i32 = 600;

/// The figure as SVG text; `None` if there is nothing to draw. `title` is that of the report, or empty to leave it out.
pub fn draw(figure: &Figure, series: &[Series], title: &str) -> Option<String> {
    let svg = draw_as(figure, series, title, Layout::default())?;
    Some(String::from_utf8(svg).expect("SVG is text"))
}

/// As [`draw`], with this layout and format.
pub fn draw_as(figure: &Figure, series: &[Series], title: &str, layout: Layout) -> Option<Vec<u8>> {
    canvas(figure, series, title, (layout, true)).map(Canvas::file)
}

/// The same shapes as an element with these attributes for a page, which has heading and key in words: they are beyond
/// the element's frame, and are left out where nobody saves the picture.
pub(super) fn element(
    figure: &Figure,
    series: &[Series],
    layout: Layout,
    (attributes, has_key): (&str, bool),
) -> Option<String> {
    canvas(figure, series, "", (layout, has_key)).map(|drawn| drawn.element(attributes))
}

fn canvas(figure: &Figure, series: &[Series], title: &str, (layout, has_key): (Layout, bool)) -> Option<Canvas> {
    let whole = if title.is_empty() { figure.title.clone() } else { format!("{}: {title}", figure.title) };
    // A long heading would be cut off; the report's title says less about the picture than its own.
    let longest = (layout.width.max(0) / 9) as usize;
    let heading = if whole.chars().count() <= longest { whole } else { figure.title.clone() };
    let heading = if has_key { cut(&heading, longest) } else { String::new() };
    let sheet = Sheet { heading, has_key, layout, series, names: names(&figure.chart, series) };
    match &figure.chart {
        Chart::Lines { x, y, lines, marks } => lines::draw(&sheet, [x, y], lines, marks),
        Chart::Heat { x, columns, y, rows, value, panels } => {
            heat::draw(&sheet, [x, y, value], [columns, rows], panels)
        }
        Chart::Bars { value, categories, parts } => bars::draw(&sheet, value, categories, parts),
        Chart::Intervals { value, rows } => intervals::draw(&sheet, value, rows),
    }
}

/// What all kinds of pictures are drawn with.
struct Sheet<'a> {
    heading: String,
    has_key: bool,
    layout: Layout,
    series: &'a [Series],
    names: Vec<&'a str>,
}

impl Sheet<'_> {
    fn width(&self) -> f64 {
        f64::from(self.layout.width)
    }

    fn is_narrow(&self) -> bool {
        self.layout.width < NARROW
    }

    fn canvas(&self, height: f64) -> Canvas {
        Canvas::new([self.width(), height], &self.heading, self.layout)
    }

    /// The class of a name.
    fn class(&self, name: &str) -> String {
        self.names.iter().position(|known| *known == name).map_or_else(String::new, |index| format!("n{index}"))
    }
}

/// The names in a chart that can be hidden, in the order of the report's series; others are behind them.
pub(super) fn names<'a>(chart: &'a Chart, series: &[Series]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |name: &'a String| {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    };
    match chart {
        Chart::Lines { lines, .. } => lines.iter().for_each(|line| add(&line.series)),
        Chart::Heat { panels, .. } => panels.iter().for_each(|panel| add(&panel.label)),
        Chart::Bars { categories, .. } => categories.iter().for_each(add),
        Chart::Intervals { rows, .. } => rows.iter().for_each(|(_, series, _)| add(series)),
    }
    let rank = |name: &str| series.iter().position(|series| series.label == name).unwrap_or(series.len());
    names.sort_by_key(|name| rank(name));
    names
}

/// Ends a picture of rows: the axis under its plot, with its title.
fn close_rows(canvas: &mut Canvas, sheet: &Sheet<'_>, axis: &axis::Axis, (bottom, ends): (f64, [f64; 2]), title: &str) {
    open_foot(canvas, sheet, bottom);
    ticks(canvas, axis, bottom, ends);
    foot(canvas, bottom, ends, title);
    canvas.close();
}

/// Draws a horizontal axis' numbers under a plot that ends at this height.
fn ticks(canvas: &mut Canvas, axis: &axis::Axis, bottom: f64, ends: [f64; 2]) {
    let letters = Letters::of(12.0, Anchor::Centre, FAINT);
    let places: Vec<f64> = axis.ticks().iter().map(|(tick, _)| axis.pixel(*tick, ends)).collect();
    let lines: Vec<_> = places.iter().map(|&x| vec![(x, bottom), (x, bottom + 5.0)]).collect();
    canvas.open_texts(letters, "class=\"x\"");
    canvas.lines(&lines, Pen::of(FAINT, 1.0), "");
    for ((_, number), x) in axis.ticks().iter().zip(places) {
        canvas.text(number, (x, bottom + 14.0), letters);
    }
    canvas.close();
}

/// Draws line and title of a horizontal axis.
fn foot(canvas: &mut Canvas, bottom: f64, ends: [f64; 2], title: &str) {
    canvas.line(&[(ends[0], bottom), (ends[1], bottom)], Pen::of(FAINT, 1.0), "");
    let title = cut(title, letters_in(0.9 * (ends[1] - ends[0])));
    canvas.text(&title, (f64::midpoint(ends[0], ends[1]), bottom + 36.0), Letters::of(13.0, Anchor::Centre, INK));
}

/// Draws the lines of a grid at a horizontal axis' ticks, between two heights.
fn grid(canvas: &mut Canvas, axis: &axis::Axis, [top, bottom]: [f64; 2], ends: [f64; 2]) {
    let line = |(tick, _): &(f64, String)| vec![(axis.pixel(*tick, ends), top), (axis.pixel(*tick, ends), bottom)];
    canvas.lines(&axis.ticks().iter().map(line).collect::<Vec<_>>(), Pen::of(RULE, 1.0), "");
}

/// Begins the part below rows: it moves up where rows are hidden, and covers the grid behind them.
fn open_foot(canvas: &mut Canvas, sheet: &Sheet<'_>, bottom: f64) {
    canvas.open("class=\"foot\"");
    canvas.rectangle([0.0, bottom, sheet.width(), 100.0], PAPER, "");
}

/// Label and unit.
fn words(axis: &Axis) -> String {
    match &axis.unit {
        Some(unit) if !axis.label.is_empty() => format!("{} [{unit}]", axis.label),
        _ => axis.label.clone(),
    }
}

/// A text of at most so many letters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The width of a letter of 12 pixels in a wide font: letters differ, and a text that is too long covers others.
const LETTER: f64 = 7.2;

/// Letters of 12 pixels that fit into a width.
fn letters_in(width: f64) -> usize {
    (width.max(0.0) / LETTER) as usize
}

/// Room for labels to the left of a plot: their longest, within limits.
fn label_room<'a>(labels: impl Iterator<Item = &'a str>, most: f64) -> f64 {
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    (longest as f64 * LETTER + 18.0).min(most).max(48.0)
}

/// Ticks that have room side by side.
fn ticks_in(width: f64) -> usize {
    (width / 75.0) as usize
}
