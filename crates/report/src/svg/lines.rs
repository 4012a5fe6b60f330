//! Lines, bands and a legend where there is room for it.

use super::super::model::{self, Line, LineKind, Mark};
use super::axis::Axis;
use super::canvas::Canvas;
use super::clip::{self, Box};
use super::fit::{horizontal_axis, is_beyond, vertical_axis};
use super::key::{self, Entry, pen};
use super::pen::{Anchor, FAINT, INK, Letters, PAPER, Pen, Point, RULE};
use super::{Sheet, cut, letters_in, path, ticks_in, words};
use fedgenie_core::math::float;

/// The points of a line that have markers: a few, evenly spread over the picture, other ones for each of the lines.
fn marked(points: &[Point], x: &Axis, order: usize, lines: usize) -> Vec<Point> {
    const MARKERS: usize = 6;
    let share = |point: &Point| x.share(x.position(point.0));
    let mut found: Vec<Point> = Vec::new();
    for step in 0..MARKERS {
        let wanted = (step as f64 + (order as f64 + 0.5) / lines as f64) / MARKERS as f64;
        let distance = |point: &Point| (share(point) - wanted).abs();
        let nearest = points.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        found.extend(nearest.filter(|point| distance(point) < 0.6 / MARKERS as f64 && found.last() != Some(*point)));
    }
    found
}

/// The corners of a line that keeps each value until the next.
fn corners<T: Copy>(points: &[(f64, T)], is_staircase: bool) -> Vec<(f64, T)> {
    let mut corners: Vec<(f64, T)> = Vec::new();
    for &(x, value) in points {
        if let Some(&(_, before)) = corners.last().filter(|_| is_staircase) {
            corners.push((x, before));
        }
        corners.push((x, value));
    }
    corners
}

/// The axes, and where they are.
struct Frame {
    x: Axis,
    y: Axis,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// Whether a point can be drawn: a logarithmic axis has no zero.
    fn has(&self, &(x, y): &Point) -> bool {
        let has = |axis: &Axis, value: f64| !axis.is_logarithmic || value > 0.0;
        has(&self.x, x) && has(&self.y, y)
    }

    /// Whether a point is within the frame.
    fn shows(&self, (x, y): Point) -> bool {
        // Ends of axes are rounded.
        let is_in = |axis: &Axis, value: f64| (-1e-9..=1.0 + 1e-9).contains(&axis.share(axis.free_position(value)));
        self.has(&(x, y)) && is_in(&self.x, x) && is_in(&self.y, y)
    }

    /// Pixels; beyond the frame too, as far as half of it.
    fn at(&self, (x, y): Point) -> Point {
        let pixel = |axis: &Axis, value: f64, [first, last]: [f64; 2]| {
            let share = axis.share(axis.free_position(value)).clamp(-0.5, 1.5);
            first + (last - first) * share
        };
        (pixel(&self.x, x, [self.left, self.right]), pixel(&self.y, y, [self.bottom, self.top]))
    }

    fn line(&self, line: &Line) -> Vec<Point> {
        let points = corners(&line.points, line.is_staircase).into_iter().filter(|point| self.has(point));
        path::simplified(&points.map(|point| self.at(point)).collect::<Vec<_>>())
    }

    /// On a logarithmic axis there is no place for an interval that reaches zero.
    fn bands(&self, line: &Line) -> Vec<Vec<Point>> {
        let band = corners(&line.band, line.is_staircase);
        let parts = band.split(|&(x, [low, _])| !self.has(&(x, low))).filter(|part| part.len() > 1);
        let outline = |part: &[(f64, [f64; 2])]| {
            let upper: Vec<Point> = part.iter().map(|&(x, [_, high])| self.at((x, high))).collect();
            let lower: Vec<Point> = part.iter().rev().map(|&(x, [low, _])| self.at((x, low))).collect();
            // Nobody sees half a pixel of a band.
            let whole = |(x, y): &Point| (float::floor(x + 0.5), float::floor(y + 0.5));
            [path::simplified(&upper), path::simplified(&lower)].concat().iter().map(whole).collect()
        };
        parts.map(outline).collect()
    }

    /// A whisker at each dot that has an interval.
    fn whiskers(&self, line: &Line) -> Vec<Vec<Point>> {
        const HALF: f64 = 4.0;
        let mut parts = Vec::new();
        for &(x, [low, high]) in line.band.iter().filter(|&&(x, [_, high])| self.has(&(x, high))) {
            let (x, top) = self.at((x, high));
            let bottom = if self.has(&(1.0, low)) { self.at((1.0, low)).1 } else { self.bottom + 1.0 };
            let cap = |y: f64| vec![(x - HALF, y), (x + HALF, y)];
            parts.extend([vec![(x, top), (x, bottom)], cap(top), cap(bottom)]);
        }
        parts
    }
}

pub(super) fn draw(
    sheet: &Sheet<'_>,
    [x_model, y_model]: [&model::Axis; 2],
    lines: &[Line],
    marks: &[Mark],
) -> Option<Canvas> {
    let layout = sheet.layout;
    let frame = frame(sheet, [x_model, y_model], lines, marks)?;
    let entries = entries(sheet, lines, &frame);
    let has_legend = entries.len() > 1 || entries.len() == 1 && lines[0].label.is_none();
    let entries = if has_legend { entries } else { Vec::new() };
    let is_shown = |(_, mark): &(usize, &Mark)| frame.shows((x_middle(&frame), mark.value));
    let (indices, shown): (Vec<usize>, Vec<&Mark>) = marks.iter().enumerate().filter(is_shown).unzip();
    let mut taken = drawn_lines(lines, &frame);
    let mut labels = place_labels(&shown, &frame, &taken);
    labels.iter_mut().for_each(|label| label.index = indices[label.index]);
    taken.extend(shown.iter().map(|mark| mark_line(mark, &frame)));
    taken.extend(labels.iter().map(|label| outline(label.around)));
    let inside = [frame.left, frame.top, frame.right, frame.bottom];
    let free = key::free_corner(&entries, inside, &taken).filter(|_| !layout.has_legend_below);
    let below = if free.is_some() || entries.is_empty() { 0.0 } else { key::height_below(&entries, layout) };
    let height = f64::from(layout.height);
    let mut canvas = sheet.canvas(height + below);
    canvas.beside[1] = below;
    axes(&mut canvas, &frame, [&words(x_model), &words(y_model)], sheet);
    canvas.open_frame([frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top], "in");
    draw_lines(&mut canvas, sheet, lines, &frame);
    let dashes = Pen { dashes: &[10.0, 3.0, 2.0, 3.0], ..Pen::of(INK, 1.2) };
    for (mark, label) in shown.iter().zip(&labels) {
        canvas.line(&mark_line(mark, &frame), dashes, &label.more());
        if let Some(leader) = &label.leader {
            canvas.line(leader, Pen::of(INK, 1.0), &label.more());
        }
    }
    canvas.close_frame();
    draw_dots(&mut canvas, sheet, lines, &frame);
    for label in labels {
        let letters = Letters { halo: Some(PAPER), ..Letters::of(12.0, label.anchor, INK) };
        canvas.text_with(&label.text, label.at, letters, &label.more());
    }
    canvas.open("class=\"key\"");
    match free {
        _ if entries.is_empty() || !sheet.has_key => {}
        Some(corner) => key::inside(&mut canvas, &entries, corner),
        None => key::below(&mut canvas, &entries, height, layout),
    }
    canvas.close();
    Some(canvas)
}

/// The axes with their ticks, and the room for their numbers.
fn frame(sheet: &Sheet<'_>, [x, y]: [&model::Axis; 2], lines: &[Line], marks: &[Mark]) -> Option<Frame> {
    let layout = sheet.layout;
    let (top, bottom) = (super::HEADING + 32.0, f64::from(layout.height) - 46.0);
    let y = vertical_axis(y, lines, marks, layout.ranges[1])?.with_ticks(((bottom - top) / 45.0) as usize);
    let widest = y.ticks().iter().map(|(_, text)| text.chars().count()).max().unwrap_or(1);
    let (left, right) = ((14.0 + 7.0 * widest as f64).max(44.0), sheet.width() - 20.0);
    let mut across = horizontal_axis(x, lines, layout.ranges[0])?.with_ticks(ticks_in(right - left));
    if x.label == "round" {
        across.keep_whole_ticks();
    }
    Some(Frame { x: across, y, left, right, top, bottom })
}

fn x_middle(frame: &Frame) -> f64 {
    let middle = f64::midpoint(frame.x.low, frame.x.high);
    if frame.x.is_logarithmic { float::power(10.0, middle) } else { middle }
}

/// The names of lines with a style of their own, and of fits and bounds.
fn entries(sheet: &Sheet<'_>, lines: &[Line], frame: &Frame) -> Vec<Entry> {
    let beyond = is_beyond(lines, &frame.y);
    let style = |line: &Line| key::style(sheet.series, &line.series);
    let means = lines.iter().filter(|line| line.role == LineKind::Mean).map(|line| Entry {
        name: line.label.as_ref().unwrap_or(&line.series).clone(),
        style: style(line),
        role: line.role,
        class: sheet.class(&line.series),
    });
    let others = lines.iter().filter(|line| is_keyed(line)).map(|line| Entry {
        name: keyed_name(line, beyond),
        style: style(line),
        role: line.role,
        class: sheet.class(&line.series),
    });
    means.chain(others).collect()
}

/// Whether a line needs an entry of the key beside that of its series.
pub(crate) fn is_keyed(line: &Line) -> bool {
    matches!(line.role, LineKind::Fit | LineKind::Bound)
}

pub(crate) fn keyed_name(line: &Line, is_beyond: bool) -> String {
    let role = if line.role == LineKind::Fit { "fit" } else { "bound" };
    let label = line.label.as_deref().unwrap_or(role);
    let note = if is_beyond && line.role == LineKind::Bound { " (leaves the frame)" } else { "" };
    format!("{}: {label}{note}", line.series)
}

/// Whether bounds leave the frame of these lines.
pub(crate) fn leaves_frame(y: &model::Axis, lines: &[Line], marks: &[Mark]) -> bool {
    vertical_axis(y, lines, marks, None).is_some_and(|axis| is_beyond(lines, &axis))
}

/// Ticks, numbers, titles.
fn axes(canvas: &mut Canvas, frame: &Frame, [x_title, y_title]: [&str; 2], sheet: &Sheet<'_>) {
    let Frame { x, y, left, right, top, bottom } = frame;
    let ends = |axis: &Axis| format!("{} {} {}", axis.low, axis.high, u8::from(axis.is_logarithmic));
    let pixels = [left, right, top, bottom].map(|&pixel| path::number(pixel)).join(" ");
    canvas.open(&format!("class=\"frame\" data-frame=\"{pixels}\" data-x=\"{}\" data-y=\"{}\"", ends(x), ends(y)));
    let letters = Letters::of(12.0, Anchor::Right, FAINT);
    let heights: Vec<f64> = y.ticks().iter().map(|(tick, _)| y.pixel(*tick, [*bottom, *top])).collect();
    canvas.open_texts(letters, "class=\"y\"");
    let lines: Vec<_> = heights.iter().map(|&height| vec![(*left, height), (*right, height)]).collect();
    canvas.lines(&lines, Pen::of(RULE, 1.0), "");
    for ((_, number), height) in y.ticks().iter().zip(heights) {
        canvas.text(number, (left - 6.0, height), letters);
    }
    canvas.close();
    super::ticks(canvas, x, *bottom, [*left, *right]);
    super::foot(canvas, *bottom, [*left, *right], x_title);
    canvas.line(&[(*left, *top), (*left, *bottom)], Pen::of(FAINT, 1.0), "");
    let title = cut(y_title, letters_in(sheet.width() - 8.0));
    canvas.text(&title, (4.0, top - 18.0), Letters::of(13.0, Anchor::Left, INK));
    canvas.close();
}

/// From the back to the front: bands, thin lines, means. Attributes of a line tell a script which one it is.
fn draw_lines(canvas: &mut Canvas, sheet: &Sheet<'_>, lines: &[Line], frame: &Frame) {
    let of = |line: &Line| (key::style(sheet.series, &line.series), sheet.class(&line.series));
    for (index, line) in lines.iter().enumerate() {
        let (style, class) = of(line);
        let more = format!(" class=\"{class} band\" data-l=\"{index}\"");
        if line.has_dots && !line.band.is_empty() {
            canvas.lines(&frame.whiskers(line), Pen::of(style.colour, 1.4), &more);
        } else if line.band.len() > 1 {
            canvas.areas(&frame.bands(line), style.colour, 0.18, &more);
        }
    }
    for is_mean in [false, true] {
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| (line.role == LineKind::Mean) == is_mean) {
            let (style, class) = of(line);
            let more = format!(" class=\"{class} line\" data-l=\"{index}\"");
            canvas.line(&frame.line(line), pen(&style, line.role), &more);
        }
    }
}

/// Markers are whole also at the edge of the frame.
fn draw_dots(canvas: &mut Canvas, sheet: &Sheet<'_>, lines: &[Line], frame: &Frame) {
    let means: Vec<(usize, &Line)> =
        lines.iter().enumerate().filter(|(_, line)| line.role == LineKind::Mean || line.has_dots).collect();
    for (order, (index, line)) in means.iter().enumerate() {
        let (style, class) = (key::style(sheet.series, &line.series), sheet.class(&line.series));
        let points: Vec<Point> = line.points.iter().copied().filter(|point| frame.shows(*point)).collect();
        let marked = if line.has_dots { points } else { marked(&points, &frame.x, order, means.len()) };
        let places: Vec<Point> = marked.into_iter().map(|point| frame.at(point)).collect();
        canvas.markers(
            &style,
            &places,
            &format!(" class=\"{class} dot\" data-l=\"{index}\" data-d=\"{}\"", style.marker.path()),
        );
    }
}

/// All that a legend or a label must not cover.
fn drawn_lines(lines: &[Line], frame: &Frame) -> Vec<Vec<Point>> {
    let bands = lines.iter().flat_map(|line| if line.has_dots { frame.whiskers(line) } else { frame.bands(line) });
    lines.iter().map(|line| frame.line(line)).chain(bands).collect()
}

fn mark_line(mark: &Mark, frame: &Frame) -> Vec<Point> {
    let y = frame.at((x_middle(frame), mark.value)).1;
    vec![(frame.left, y), (frame.right, y)]
}

/// The name of a mark, and its place.
struct Label {
    /// Of its mark in the chart.
    index: usize,
    text: String,
    at: Point,
    anchor: Anchor,
    around: Box,
    /// From the label to its line, where that is not beside it.
    leader: Option<[Point; 2]>,
}

impl Label {
    /// The attributes of label and line.
    fn more(&self) -> String {
        format!(" class=\"mark\" data-m=\"{}\"", self.index)
    }
}

fn outline([left, top, right, bottom]: Box) -> Vec<Point> {
    vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
}

/// Each beside its line, at an end and a side where no other line is, if there is one; else further away, with a leader
/// to its line.
fn place_labels(marks: &[&Mark], frame: &Frame, taken: &[Vec<Point>]) -> Vec<Label> {
    /// The distance of rows of letters.
    const ROW: f64 = 16.0;
    let heights: Vec<f64> = marks.iter().map(|mark| mark_line(mark, frame)[0].1).collect();
    let place = |mark: usize, row: usize, is_right: bool, is_above: bool| {
        let text = cut(&marks[mark].label, letters_in(frame.right - frame.left - 16.0));
        let (width, line) = (6.4 * text.chars().count() as f64 + 8.0, heights[mark]);
        let away = 9.0 + ROW * row as f64;
        let y = if is_above { line - away } else { line + away };
        let (x, anchor) = if is_right { (frame.right - 4.0, Anchor::Right) } else { (frame.left + 6.0, Anchor::Left) };
        let from = if is_right { x - width } else { x - 2.0 };
        let beside = if is_right { x + 2.0 } else { x - 3.0 };
        let leader = (row > 0).then_some([(beside, y), (beside, line)]);
        Label { index: mark, text, at: (x, y), anchor, around: [from, y - 8.0, from + width, y + 8.0], leader }
    };
    let places = |mark: usize, rows: std::ops::Range<usize>| {
        let sides = [(true, true), (true, false), (false, true), (false, false)];
        rows.flat_map(move |row| sides.map(|(is_right, is_above)| (mark, row, is_right, is_above)))
    };
    let mut found: Vec<Option<Label>> = marks.iter().map(|_| None).collect();
    // Those with room beside their line come first; then lines of series may be crossed rather than other marks.
    for (rows, is_strict) in [(0..1, true), (0..4, true), (0..4, false)] {
        for mark in 0..marks.len() {
            if found[mark].is_some() {
                continue;
            }
            let of_marks = (0..marks.len()).filter(|&other| other != mark).map(|other| mark_line(marks[other], frame));
            let of_labels = found.iter().flatten().map(|label| outline(label.around));
            let lines: Vec<Vec<Point>> =
                of_marks.chain(of_labels).chain(taken.iter().filter(|_| is_strict).cloned()).collect();
            let is_free = |label: &Label| {
                let is_inside = label.around[1] >= frame.top && label.around[3] <= frame.bottom;
                is_inside && !lines.iter().any(|line| clip::crosses(line, label.around))
            };
            let mut all = places(mark, rows.clone()).map(|(mark, row, right, above)| place(mark, row, right, above));
            found[mark] = all.find(is_free);
        }
    }
    found.into_iter().enumerate().map(|(mark, label)| label.unwrap_or_else(|| place(mark, 0, true, true))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staircase_keeps_its_values() {
        assert_eq!(corners(&[(1.0, 0.0), (3.0, 1.0)], true), [(1.0, 0.0), (3.0, 0.0), (3.0, 1.0)]);
        assert_eq!(corners(&[(1.0, 0.0), (3.0, 1.0)], false), [(1.0, 0.0), (3.0, 1.0)]);
    }

    fn frame() -> Frame {
        let axis = |high| Axis::new(0.0, high, false);
        Frame { x: axis(10.0), y: axis(1.0), left: 50.0, right: 850.0, top: 60.0, bottom: 460.0 }
    }

    /// A rising line passes above the right end of the mark, so its name stands at the left, or below.
    #[test]
    fn names_of_marks_stand_where_no_line_is() {
        let mark = Mark { label: "target 0.5".to_owned(), value: 0.5 };
        let at = |line: &[Point]| {
            let frame = frame();
            let line = line.iter().map(|&point| frame.at(point)).collect::<Vec<_>>();
            let label = place_labels(&[&mark], &frame, &[line]).remove(0);
            (label.anchor, label.at.1 < 260.0)
        };
        assert_eq!(at(&[(0.0, 0.0), (10.0, 0.1)]), (Anchor::Right, true));
        assert_eq!(at(&[(0.0, 0.0), (10.0, 0.55)]), (Anchor::Right, false));
        assert_eq!(at(&[(0.0, 0.0), (9.5, 0.4), (9.5, 0.6)]), (Anchor::Left, true));
    }

    /// Three marks ten and fourteen pixels apart: no name crosses the line of another mark or another name, and the
    /// name that has no room beside its line has a leader.
    #[test]
    fn names_of_near_marks_cross_no_other_mark() {
        let frame = frame();
        let marks = [("target", 0.5), ("without a model: mean", 0.475), ("without a model: bias", 0.44)]
            .map(|(label, value)| Mark { label: label.to_owned(), value });
        let marks: Vec<&Mark> = marks.iter().collect();
        let labels = place_labels(&marks, &frame, &[]);
        for (at, label) in labels.iter().enumerate() {
            for (other, mark) in marks.iter().enumerate().filter(|(other, _)| *other != at) {
                assert!(!clip::crosses(&mark_line(mark, &frame), label.around), "{} at {}", label.text, mark.label);
                assert!(!clip::crosses(&outline(labels[other].around), label.around), "{} {other}", label.text);
            }
        }
        assert_eq!([0, 1, 2].map(|at| labels[at].leader.is_some()), [false, true, false]);
        let [_, end] = labels[1].leader.unwrap();
        assert_eq!(end.1, mark_line(marks[1], &frame)[0].1);
    }

    #[test]
    fn far_points_stay_near_the_picture() {
        let frame = frame();
        assert_eq!(frame.at((5.0, 0.25)), (450.0, 360.0));
        assert_eq!(frame.at((1e300, -1e300)), (1250.0, 660.0));
        assert!(!frame.shows((5.0, 1.1)) && frame.shows((10.0, 1.0)));
    }
}
