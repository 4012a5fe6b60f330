//! The legend of a picture, and how a series looks in a page's.

use super::super::model::{LineKind, Series};
use super::super::style::Style;
use super::canvas::{Canvas, marker_paint};
use super::clip::{self, Box};
use super::parts::{self, PARTS};
use super::pen::{Anchor, FAINT, INK, Letters, Pen, Point, hex};
use super::{Layout, cut, path};

/// Long enough not to be taken for a fitted curve.
pub(super) const DASHES: &[f32] = &[14.0, 4.0];

/// Height of a line of the legend.
const LINE: f64 = 20.0;

/// Width of a sample with the space after it.
const SAMPLE: f64 = 38.0;

/// More names do not fit into a corner of the picture.
const MOST_IN_PLOT: usize = 8;

/// Letters of a name.
const LETTERS: usize = 48;

/// A name with its looks.
pub(super) struct Entry {
    pub name: String,
    pub style: Style,
    pub role: LineKind,
    pub class: String,
}

/// The style of a series; others are grey circles.
pub(crate) fn style(series: &[Series], label: &str) -> Style {
    let grey = Style { colour: FAINT, ..Style::of_index(0) };
    series.iter().find(|series| series.label == label).map_or(grey, |series| series.style)
}

/// How the line of a role is drawn; a mean by its series' dashes.
pub(super) fn pen(style: &Style, role: LineKind) -> Pen {
    let of = |width, opacity, dashes| Pen { colour: style.colour, width, opacity, dashes };
    match role {
        LineKind::Mean if style.is_dashed => of(2.2, 1.0, DASHES),
        LineKind::Mean => of(2.2, 1.0, &[]),
        LineKind::Seed | LineKind::Extreme => of(1.0, 0.45, &[]),
        LineKind::Fit => of(1.6, 1.0, &[7.0, 4.0]),
        LineKind::Bound => of(2.0, 1.0, &[1.5, 3.5]),
    }
}

/// Width of the widest name with its sample.
fn width(entries: &[Entry]) -> f64 {
    let longest = entries.iter().map(|entry| entry.name.chars().count().min(LETTERS)).max().unwrap_or(0);
    SAMPLE + 16.0 + 6.8 * longest as f64
}

/// Columns and rows of a legend below a picture.
fn columns(entries: &[Entry], layout: Layout) -> (usize, usize) {
    let columns = ((f64::from(layout.width) - 20.0) / width(entries)).clamp(1.0, 4.0) as usize;
    (columns, entries.len().div_ceil(columns))
}

/// The height of a legend below a picture.
pub(super) fn height_below(entries: &[Entry], layout: Layout) -> f64 {
    LINE * columns(entries, layout).1 as f64 + 16.0
}

/// A box for the legend in a corner of the plot where no line is; `None` if there is none.
pub(super) fn free_corner(entries: &[Entry], [left, top, right, bottom]: Box, lines: &[Vec<Point>]) -> Option<Box> {
    const GAP: f64 = 8.0;
    let (width, height) = (width(entries), LINE * entries.len() as f64 + 8.0);
    let fits = entries.len() <= MOST_IN_PLOT && width < 0.6 * (right - left) && height < 0.6 * (bottom - top);
    let corner = |[is_right, is_up]: [bool; 2]| {
        let x = if is_right { right - width - GAP } else { left + GAP };
        let y = if is_up { top + GAP } else { bottom - height - GAP };
        [x, y, x + width, y + height]
    };
    // Markers reach beyond their line.
    let around = |[left, top, right, bottom]: Box| [left - 7.0, top - 7.0, right + 7.0, bottom + 7.0];
    let is_free = |found: &Box| !lines.iter().any(|line| clip::crosses(line, around(*found)));
    let corners = [[false, true], [true, true], [true, false], [false, false]].map(corner);
    corners.into_iter().find(is_free).filter(|_| fits)
}

/// Draws the legend from the height `top` on, in columns.
pub(super) fn below(canvas: &mut Canvas, entries: &[Entry], top: f64, layout: Layout) {
    let (across, down) = columns(entries, layout);
    let step = (f64::from(layout.width) - 40.0) / across as f64;
    for (index, entry) in entries.iter().enumerate() {
        let (column, row) = ((index / down) as f64, (index % down) as f64);
        line(canvas, entry, (20.0 + step * column, top + LINE * row + LINE / 2.0));
    }
}

/// Draws the legend into a box.
pub(super) fn inside(canvas: &mut Canvas, entries: &[Entry], [left, top, ..]: Box) {
    for (index, entry) in entries.iter().enumerate() {
        line(canvas, entry, (left + 8.0, top + 4.0 + LINE * index as f64 + LINE / 2.0));
    }
}

/// One sample and its name, from the left.
fn line(canvas: &mut Canvas, entry: &Entry, at: Point) {
    canvas.open_moved(at, &format!("class=\"entry {}\"", entry.class));
    let end = SAMPLE - 8.0;
    let pen = pen(&entry.style, entry.role);
    // A dash at each end, so that the marker does not cover the gap.
    let is_parted = entry.role == LineKind::Mean && entry.style.is_dashed;
    let pieces = if is_parted { vec![(0.0, 11.0), (end - 11.0, end)] } else { vec![(0.0, end)] };
    let pieces: Vec<Vec<Point>> = pieces.into_iter().map(|(from, to)| vec![(from, 0.0), (to, 0.0)]).collect();
    let dashes = if is_parted { &[] } else { pen.dashes };
    canvas.lines(&pieces, Pen { dashes, ..pen }, "");
    if entry.role == LineKind::Mean {
        canvas.markers(&entry.style, &[(end / 2.0, 0.0)], "");
    }
    canvas.text(&cut(&entry.name, LETTERS), (SAMPLE, 0.0), Letters::of(13.0, Anchor::Left, INK));
    canvas.close_moved();
}

/// A sample for the key of a page.
pub(crate) fn sample(style: &Style, role: LineKind) -> String {
    let pen = pen(style, role);
    let is_parted = role == LineKind::Mean && style.is_dashed;
    let d = if is_parted { "M0 6h11m8 0h11" } else { "M0 6h30" };
    let dashes: Vec<String> = pen.dashes.iter().map(f32::to_string).collect();
    let dashes = match dashes.is_empty() || is_parted {
        true => String::new(),
        false => format!(" stroke-dasharray=\"{}\"", dashes.join(" ")),
    };
    let (colour, width) = (hex(pen.colour), path::number(pen.width));
    let line = format!("<path d=\"{d}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}/>");
    let marker = match role {
        LineKind::Mean => {
            let (d, paint) = (style.marker.path(), marker_paint(style));
            format!("<path d=\"M15 6{d}\" {paint}/>")
        }
        _ => String::new(),
    };
    format!("<svg width=\"30\" height=\"12\" viewBox=\"0 -.5 30 13\" aria-hidden=\"true\">{line}{marker}</svg>")
}

/// A sample of a part of bars for the key of a page.
pub(crate) fn part_sample(index: usize) -> String {
    let part = &PARTS[index % PARTS.len()];
    let (fill, hatch) = (hex(part.fill), path::open(&part.hatch.lines([0.0, 0.0, 18.0, 12.0])));
    let hatch = match hatch.is_empty() {
        true => hatch,
        false => format!("<path d=\"{hatch}\" fill=\"none\" stroke=\"{}\"/>", hex(part.hatch_colour())),
    };
    format!(
        "<svg width=\"18\" height=\"12\" viewBox=\"0 0 18 12\" aria-hidden=\"true\"><path d=\"M0 0h18v12h-18z\" fill=\"{fill}\"/>{hatch}</svg>"
    )
}

/// Draws the key of bars in lines of this width from a height on; returns the height below it.
pub(super) fn of_parts(canvas: &mut Canvas, labels: &[&str], width: f64, top: f64) -> f64 {
    let places = part_places(labels, width);
    canvas.open("class=\"key\"");
    for (index, (label, (x, y))) in labels.iter().zip(&places).enumerate() {
        let (x, y) = (x + 8.0, y + top);
        parts::part(canvas, index, [x, y, 18.0, 12.0]);
        canvas.text(&cut(label, LETTERS), (x + 24.0, y + 6.0), Letters::of(12.0, Anchor::Left, INK));
    }
    canvas.close();
    top + places.last().map_or(0.0, |place| place.1 + LINE)
}

/// Lines of the key of bars.
pub(super) fn part_lines(labels: &[&str], width: f64) -> f64 {
    part_places(labels, width).last().map_or(0.0, |place| place.1 + LINE)
}

fn part_places(labels: &[&str], width: f64) -> Vec<Point> {
    let mut places = Vec::new();
    let (mut x, mut y) = (0.0, 0.0);
    for label in labels {
        let needed = 42.0 + 6.8 * label.chars().count().min(LETTERS) as f64;
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + LINE);
        }
        places.push((x, y));
        x += needed;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        Entry { name: name.to_owned(), style: Style::of_index(0), role: LineKind::Mean, class: String::new() }
    }

    /// A line from the lower left to the upper right leaves two corners free, another one across them none.
    #[test]
    fn a_legend_stands_in_a_free_corner_or_below() {
        let plot = [50.0, 50.0, 850.0, 450.0];
        let rising = vec![(50.0, 450.0), (850.0, 50.0)];
        let two = [entry("one"), entry("another")];
        let [left, top, ..] = free_corner(&two, plot, std::slice::from_ref(&rising)).unwrap();
        assert_eq!((left, top), (58.0, 58.0));
        let falling = vec![(50.0, 50.0), (850.0, 450.0)];
        assert!(free_corner(&two, plot, &[rising.clone(), falling]).is_none());
        let many: Vec<Entry> = (0..9).map(|_| entry("a")).collect();
        assert!(free_corner(&many, plot, &[rising]).is_none());
    }

    #[test]
    fn keys_of_bars_break_their_lines() {
        assert_eq!(
            part_places(&["download", "compute", "upload"], 200.0).iter().map(|place| place.1).collect::<Vec<_>>(),
            [0.0, 0.0, 20.0]
        );
    }

    #[test]
    fn samples_have_paper_around_their_marker() {
        let found = sample(&Style::of_index(0), LineKind::Mean);
        assert!(found.contains("#D55E00") && found.contains(&hex(super::super::PAPER)));
        assert!(!sample(&Style::of_index(0), LineKind::Fit).contains("M15 6"));
    }
}
