//! Stacked bars, one below the other.

use super::super::model;
use super::axis::Axis;
use super::canvas::Canvas;
use super::parts::{PARTS, part};
use super::pen::{Anchor, FAINT, INK, Letters, Pen};
use super::{HEADING, Sheet, close_rows, cut, grid, key, label_room, letters_in, ticks_in, words};
use crate::numbers;

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
        key::of_parts(&mut canvas, &labels, sheet.width() - 16.0, HEADING);
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
            // Paper between parts.
            part(&mut canvas, index, [from, upper, (width - 1.0).max(0.5 * width), BAR]);
            let (text, look) = (numbers::short(lengths[bar]), &PARTS[index % PARTS.len()]);
            if width > 8.0 + 6.6 * text.chars().count() as f64 {
                let letters = Letters { halo: Some(look.fill), ..Letters::of(11.5, Anchor::Centre, look.letters()) };
                canvas.text(&text, (from + width / 2.0, ROW / 2.0), letters);
            }
        }
        canvas.close_moved();
    }
    canvas.close();
    close_rows(&mut canvas, sheet, &axis, (bottom, ends), &words(value));
    Some(canvas)
}
