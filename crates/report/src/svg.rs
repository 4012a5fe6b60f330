//! A figure as SVG or PDF, for papers.
//!
//! Axes have the first of the scales that make sense. Texts are untrusted: the drawing library escapes them, and
//! characters that no picture may have, or that turn the direction of writing, are left out.

mod axis;
mod bars;
mod canvas;
mod clip;
mod heat;
mod intervals;
mod key;
mod layout;
mod lines;
mod pdf;

use super::model::{Axis, Chart, Figure, Series};
use canvas::Canvas;
pub use layout::{Family, Form, Layout, LayoutWishes};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Room for the heading.
const HEADING: i32 = 40;

/// Letters that fit above a picture.
const LONGEST_HEADING: usize = 96;

/// The area of a drawing.
type Area<'a> = DrawingArea<Canvas<'a>, plotters::coord::Shift>;

/// An error of drawing; there is none in memory.
type Failed = Box<dyn std::error::Error>;

/// The figure as SVG text; `None` if there is nothing to draw. `title` is that of the report, or empty to leave it out.
pub fn draw(figure: &Figure, series: &[Series], title: &str) -> Option<String> {
    let svg = draw_as(figure, series, title, Layout::default())?;
    Some(String::from_utf8(svg).expect("SVG is text"))
}

/// As [`draw`], with this layout and format.
pub fn draw_as(figure: &Figure, series: &[Series], title: &str, layout: Layout) -> Option<Vec<u8>> {
    let whole = if title.is_empty() { figure.title.clone() } else { format!("{}: {title}", figure.title) };
    // A long heading would be cut off; the report's title says less about the picture than its own.
    let longest = LONGEST_HEADING * layout.width.max(0) as usize / Layout::default().width as usize;
    let heading = if whole.chars().count() <= longest { whole } else { figure.title.clone() };
    match &figure.chart {
        Chart::Lines { x, y, lines, marks } => lines::draw(&heading, [x, y], lines, marks, series, layout),
        Chart::Heat { x, columns, y, rows, value, panels } => {
            heat::draw(&heading, [x, y, value], [columns, rows], panels, layout)
        }
        Chart::Bars { value, categories, parts } => bars::draw(&heading, value, categories, parts, layout),
        Chart::Intervals { value, rows } => intervals::draw(&heading, value, rows, series, layout),
    }
}

/// A picture of this height, on white under its heading.
fn picture(
    heading: &str,
    height: i32,
    layout: Layout,
    draw: impl FnOnce(&Area<'_>) -> Result<(), Failed>,
) -> Option<Vec<u8>> {
    canvas::drawn([layout.width, height], layout, |area| {
        text(area, heading, (layout.width / 2, HEADING / 2), 18, Anchor::Centre)?;
        draw(area)
    })
}

#[derive(Clone, Copy)]
enum Anchor {
    Left,
    Centre,
    Right,
}

/// Writes a text at the height of its middle.
fn text(area: &Area<'_>, text: &str, position: (i32, i32), size: i32, anchor: Anchor) -> Result<(), Failed> {
    let horizontal = match anchor {
        Anchor::Left => HPos::Left,
        Anchor::Centre => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let style = ("sans-serif", size).into_text_style(area).pos(Pos::new(horizontal, VPos::Center));
    area.draw(&Text::new(text.to_owned(), position, style))?;
    Ok(())
}

/// Draws a horizontal axis' ticks, numbers and title under a plot between two heights.
fn horizontal(
    area: &Area<'_>,
    axis: &axis::Axis,
    [top, bottom]: [i32; 2],
    ends: [i32; 2],
    title: &str,
) -> Result<(), Failed> {
    for (tick, number) in axis.ticks() {
        let x = axis.pixel(*tick, ends);
        area.draw(&PathElement::new([(x, top), (x, bottom)], BLACK.mix(0.12)))?;
        text(area, number, (x, bottom + 12), 13, Anchor::Centre)?;
    }
    area.draw(&PathElement::new([(ends[0], bottom), (ends[1], bottom)], BLACK))?;
    text(area, title, ((ends[0] + ends[1]) / 2, bottom + 34), 15, Anchor::Centre)
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

/// Room for labels to the left of a plot: their longest, within limits.
fn label_room<'a>(labels: impl Iterator<Item = &'a str>) -> i32 {
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    (longest as i32 * 7 + 20).clamp(60, 300)
}

/// Letters that fit into a room for labels.
const LETTERS: usize = 40;
