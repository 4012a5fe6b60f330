//! Markers, and the legend of a picture of lines.

use super::super::model::Series;
use super::super::style::{Outline, Style};
use super::{Anchor, Area, Failed, Layout, cut, text};
use plotters::prelude::*;
use std::ops::Range;

/// Long enough not to be taken for a fitted curve.
pub(super) const DASH: [i32; 2] = [14, 4];

/// Height of a line of the legend.
const LINE: i32 = 20;

/// Width of a sample with the space after it.
const SAMPLE: i32 = 38;

/// More names do not fit into a corner of the picture.
const MOST_IN_PLOT: usize = 8;

/// Letters of a name.
const LETTERS: usize = 40;

/// The style of a series: black if it has none.
pub(super) fn style(series: &[Series], label: &str) -> Style {
    let black = Style { colour: [0; 3], ..Style::of_index(0) };
    series.iter().find(|series| series.label == label).map_or(black, |series| series.style)
}

pub(super) fn colour(style: &Style) -> RGBColor {
    let [red, green, blue] = style.colour;
    RGBColor(red, green, blue)
}

/// Draws a marker at a pixel, on white wherever lines come near.
pub(super) fn marker(area: &Area<'_>, style: &Style, (x, y): (i32, i32)) -> Result<(), Failed> {
    let fill = if style.is_hollow { WHITE } else { colour(style) };
    // From the back to the front; the edge of a filled marker is below it, so that nothing of a small one is covered.
    let edges = [Some(WHITE.stroke_width(4)), style.is_hollow.then(|| colour(style).stroke_width(2))];
    match style.marker.outline() {
        Outline::Circle(radius) => {
            for edge in edges.into_iter().flatten() {
                area.draw(&Circle::new((x, y), radius, edge))?;
            }
            area.draw(&Circle::new((x, y), radius, fill.filled()))?;
        }
        Outline::Polygon(corners) => {
            let corners: Vec<(i32, i32)> = corners.iter().map(|(right, down)| (x + right, y + down)).collect();
            for edge in edges.into_iter().flatten() {
                let closed: Vec<(i32, i32)> = corners.iter().chain(&corners[..2]).copied().collect();
                area.draw(&PathElement::new(closed, edge))?;
            }
            area.draw(&Polygon::new(corners, fill.filled()))?;
        }
    }
    Ok(())
}

/// Columns and rows of a legend below a picture.
fn columns(names: &[(String, Style)], layout: Layout) -> (usize, usize) {
    let columns = (layout.width / width(names)).clamp(1, 4) as usize;
    (columns, names.len().div_ceil(columns))
}

/// Width of the widest name with its sample.
fn width(names: &[(String, Style)]) -> i32 {
    let longest = names.iter().map(|(name, _)| name.chars().count().min(LETTERS)).max().unwrap_or(0);
    SAMPLE + 16 + 7 * longest as i32
}

/// The height of a legend below a picture; none if its names fit into the picture.
pub(super) fn height_below(names: &[(String, Style)], layout: Layout) -> i32 {
    let is_inside = names.len() <= MOST_IN_PLOT && !layout.has_legend_below;
    if is_inside { 0 } else { LINE * columns(names, layout).1 as i32 + 16 }
}

/// Draws the legend from the height `top` on, in columns.
pub(super) fn below(area: &Area<'_>, names: &[(String, Style)], top: i32, layout: Layout) -> Result<(), Failed> {
    let (across, down) = columns(names, layout);
    let step = (layout.width - 60) / across as i32;
    for (index, entry) in names.iter().enumerate() {
        let (column, row) = ((index / down) as i32, (index % down) as i32);
        line(area, entry, (40 + step * column, top + LINE * row + LINE / 2))?;
    }
    Ok(())
}

/// Draws the legend into a corner of the plot.
pub(super) fn inside(
    area: &Area<'_>,
    names: &[(String, Style)],
    (x, y): (Range<i32>, Range<i32>),
    [is_right, is_up]: [bool; 2],
) -> Result<(), Failed> {
    let (width, height) = (width(names), LINE * names.len() as i32 + 8);
    let left = if is_right { x.end - width - 8 } else { x.start + 8 };
    let top = if is_up { y.start + 8 } else { y.end - height - 8 };
    let corners = [(left, top), (left + width, top + height)];
    area.draw(&Rectangle::new(corners, WHITE.mix(0.85).filled()))?;
    area.draw(&Rectangle::new(corners, BLACK.mix(0.3)))?;
    for (index, entry) in names.iter().enumerate() {
        line(area, entry, (left + 8, top + 4 + LINE * index as i32 + LINE / 2))?;
    }
    Ok(())
}

/// One sample and its name, from the left.
fn line(area: &Area<'_>, (name, style): &(String, Style), (x, y): (i32, i32)) -> Result<(), Failed> {
    let end = x + SAMPLE - 8;
    let pieces = if style.is_dashed { vec![(x, x + 11), (end - 11, end)] } else { vec![(x, end)] };
    for (from, to) in pieces {
        area.draw(&PathElement::new([(from, y), (to, y)], colour(style).stroke_width(2)))?;
    }
    marker(area, style, (i32::midpoint(x, end), y))?;
    text(area, &cut(name, LETTERS), (x + SAMPLE, y), 14, Anchor::Left)
}
