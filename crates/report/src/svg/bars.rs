//! Stacked bars, one below the other.

use super::super::model;
use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Colour, FAINT, INK, Letters, Pen, Point};
use super::{HEADING, Sheet, cut, foot, grid, key, label_room, letters_in, open_foot, ticks, ticks_in, words};
use crate::numbers;

/// How a part of bars looks: parts are told apart by lightness and by hatching; their colours are none of the series'.
pub(super) struct Part {
    pub fill: Colour,
    pub hatch: Hatch,
}

pub(super) const PARTS: [Part; 6] = [
    Part { fill: [59, 77, 97], hatch: Hatch::None },
    Part { fill: [185, 196, 207], hatch: Hatch::Rising },
    Part { fill: [124, 144, 164], hatch: Hatch::Dots },
    Part { fill: [216, 211, 199], hatch: Hatch::Falling },
    Part { fill: [95, 107, 92], hatch: Hatch::Across },
    Part { fill: [168, 159, 140], hatch: Hatch::Upright },
];

impl Part {
    fn is_dark(&self) -> bool {
        self.fill[1] < 150
    }

    pub fn hatch_colour(&self) -> Colour {
        if self.is_dark() { [190, 200, 210] } else { [110, 116, 122] }
    }

    /// Letters on dark parts are not quite white, which is the colour of paper.
    fn letters(&self) -> Colour {
        if self.is_dark() { BRIGHT } else { DIM }
    }
}

/// Letters on cells and bars, the same on light and dark pages.
pub(super) const BRIGHT: Colour = [255, 255, 254];
pub(super) const DIM: Colour = [17, 17, 17];

#[derive(Clone, Copy)]
pub(super) enum Hatch {
    None,
    Rising,
    Falling,
    Across,
    Upright,
    Dots,
}

impl Hatch {
    /// The lines within a rectangle (left, top, width, height).
    pub fn lines(self, [left, top, width, height]: [f64; 4]) -> Vec<Vec<Point>> {
        const STEP: f64 = 8.0;
        let steps = |to: f64| (1..).map(|count| f64::from(count) * STEP - STEP / 2.0).take_while(move |&at| at < to);
        let at = |x: f64, y: f64| (left + x, top + y);
        // A diagonal has x + y = sum, between the edges.
        let diagonal = |sum: f64| {
            let (from, to) = ((sum - height).max(0.0), sum.min(width));
            [(from, sum - from), (to, sum - to)]
        };
        match self {
            Self::None => Vec::new(),
            Self::Rising => steps(width + height).map(|sum| diagonal(sum).map(|(x, y)| at(x, y)).to_vec()).collect(),
            Self::Falling => {
                steps(width + height).map(|sum| diagonal(sum).map(|(x, y)| at(x, height - y)).to_vec()).collect()
            }
            Self::Across => steps(height).map(|y| vec![at(0.0, y), at(width, y)]).collect(),
            Self::Upright => steps(width).map(|x| vec![at(x, 0.0), at(x, height)]).collect(),
            Self::Dots => {
                let row = |y: f64| steps(width - 1.0).map(move |x| vec![at(x, y), at(x + 1.5, y)]);
                steps(height).flat_map(row).collect()
            }
        }
    }
}

/// Draws one part (left, top, width, height).
pub(super) fn part(canvas: &mut Canvas, index: usize, rectangle: [f64; 4]) {
    let part = &PARTS[index % PARTS.len()];
    canvas.rectangle(rectangle, part.fill, "");
    let lines = part.hatch.lines(rectangle);
    if !lines.is_empty() {
        canvas.lines(&lines, Pen::of(part.hatch_colour(), 1.0), "");
    }
}

const ROW: f64 = 32.0;
const BAR: f64 = 22.0;

pub(super) fn draw(
    sheet: &Sheet<'_>,
    value: &model::Axis,
    categories: &[String],
    parts: &[(String, Vec<f64>)],
) -> Option<Canvas> {
    let total = |bar: usize| parts.iter().map(|(_, lengths)| lengths[bar]).sum::<f64>();
    let longest = (0..categories.len()).map(total).fold(0.0, f64::max);
    if !(longest > 0.0 && longest.is_finite()) {
        return None;
    }
    let labels: Vec<&str> = parts.iter().map(|(label, _)| label.as_str()).collect();
    let key_height = key::part_lines(&labels, sheet.width() - 16.0);
    let room = label_room(categories.iter().map(String::as_str), 0.36 * sheet.width());
    let ends = [room, sheet.width() - 20.0];
    let axis = Axis::new(0.0, (1.02 * longest).min(f64::MAX), false).with_ticks(ticks_in(ends[1] - ends[0]));
    let top = HEADING + key_height + 8.0;
    let bottom = top + ROW * categories.len() as f64;
    let mut canvas = sheet.canvas(bottom + 50.0);
    canvas.beside[0] = HEADING + key_height;
    if sheet.has_key {
        key::parts(&mut canvas, &labels, sheet.width() - 16.0, HEADING);
    }
    grid(&mut canvas, &axis, [top, bottom], ends);
    canvas.line(&[(ends[0], top), (ends[0], bottom)], Pen::of(FAINT, 1.0), "");
    canvas.open(&format!("class=\"items\" data-items=\"1 {ROW} 0 0 {} {ROW}\"", sheet.width()));
    for (bar, category) in categories.iter().enumerate() {
        let class = format!("class=\"item {}\"", sheet.class(category));
        canvas.open_moved((0.0, top + ROW * bar as f64), &class);
        canvas.target([0.0, 0.0, sheet.width(), ROW]);
        let letters = Letters::of(12.5, Anchor::Right, INK);
        canvas.text(&cut(category, letters_in(ends[0] - 10.0)), (ends[0] - 8.0, ROW / 2.0), letters);
        let mut sum = 0.0;
        for (index, (_, lengths)) in parts.iter().enumerate() {
            let from = axis.pixel(sum, ends);
            sum += lengths[bar];
            let width = axis.pixel(sum, ends) - from;
            let upper = (ROW - BAR) / 2.0;
            if width < 0.1 {
                continue;
            }
            part(&mut canvas, index, [from, upper, width, BAR]);
            let (text, look) = (numbers::short(lengths[bar]), &PARTS[index % PARTS.len()]);
            if width > 8.0 + 6.6 * text.chars().count() as f64 {
                let letters = Letters { halo: Some(look.fill), ..Letters::of(11.5, Anchor::Centre, look.letters()) };
                canvas.text(&text, (from + width / 2.0, ROW / 2.0), letters);
            }
        }
        canvas.close_moved();
    }
    canvas.close();
    open_foot(&mut canvas, sheet, bottom);
    ticks(&mut canvas, &axis, bottom, ends);
    foot(&mut canvas, bottom, ends, &words(value));
    canvas.close();
    Some(canvas)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All hatching stays within its rectangle, and none is empty but the first.
    #[test]
    fn hatching_stays_within_its_bar() {
        for part in &PARTS {
            let lines = part.hatch.lines([10.0, 20.0, 33.0, 22.0]);
            assert_eq!(lines.is_empty(), matches!(part.hatch, Hatch::None));
            for (x, y) in lines.into_iter().flatten() {
                assert!((10.0..=43.0).contains(&x) && (20.0..=42.0).contains(&y), "{x} {y}");
            }
        }
        let rising = Hatch::Rising.lines([0.0, 0.0, 10.0, 5.0]);
        assert_eq!(rising[0], [(0.0, 4.0), (4.0, 0.0)]);
        assert_eq!(rising[1], [(7.0, 5.0), (10.0, 2.0)]);
    }
}
