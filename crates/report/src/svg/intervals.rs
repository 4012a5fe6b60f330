//! Values with whiskers, one below the other, with a line at zero.

use super::super::model::{self, Interval};
use super::axis::{Axis, bounds, with_margin};
use super::canvas::Canvas;
use super::key::style;
use super::pen::{Anchor, FAINT, INK, Letters, PAPER, Pen};
use super::{HEADING, Sheet, close_rows, cut, grid, label_room, letters_in, ticks_in, words};

pub(super) fn draw(sheet: &Sheet<'_>, value: &model::Axis, rows: &[(String, String, Interval)]) -> Option<Canvas> {
    let ends_of = |found: &Interval| found.ci95.map_or([found.value; 2], |[low, high]| [low.min(found.value), high]);
    let [low, high] = bounds(rows.iter().flat_map(|(.., found)| ends_of(found)).chain([0.0]));
    if rows.is_empty() || !(low.is_finite() && high.is_finite()) {
        return None;
    }
    // Labels stand above their intervals where there is no room beside them.
    let (row_height, room) = match sheet.is_narrow() {
        true => (44.0, 10.0),
        false => (28.0, label_room(rows.iter().map(|(label, ..)| label.as_str()), 0.42 * sheet.width())),
    };
    let ends = [room, sheet.width() - 20.0];
    let [low, high] = with_margin([low, high], 0.04);
    let axis = Axis::new(low, high, false).with_ticks(ticks_in(ends[1] - ends[0]));
    let (top, bottom) = (HEADING + 8.0, HEADING + 8.0 + row_height * rows.len() as f64);
    let mut canvas = sheet.canvas(bottom + 50.0);
    grid(&mut canvas, &axis, [top, bottom], ends);
    let zero = axis.pixel(0.0, ends);
    canvas.line(&[(zero, top), (zero, bottom)], Pen::of(INK, 1.2), "");
    if !sheet.is_narrow() {
        canvas.line(&[(ends[0], top), (ends[0], bottom)], Pen::of(FAINT, 1.0), "");
    }
    canvas.open(&format!("class=\"items\" data-items=\"1 {row_height} 0 0 {} {row_height}\"", sheet.width()));
    for (row, (label, of, found)) in rows.iter().enumerate() {
        let style = style(sheet.series, of);
        canvas.open_moved((0.0, top + row_height * row as f64), &format!("class=\"item {}\"", sheet.class(of)));
        canvas.target([0.0, 0.0, sheet.width(), row_height]);
        let y = if sheet.is_narrow() { row_height - 12.0 } else { row_height / 2.0 };
        if sheet.is_narrow() {
            let letters = Letters { halo: Some(PAPER), ..Letters::of(12.5, Anchor::Left, INK) };
            canvas.text(&cut(label, letters_in(ends[1] - ends[0])), (ends[0] + 2.0, y - 18.0), letters);
        } else {
            let letters = Letters::of(12.5, Anchor::Right, INK);
            canvas.text(&cut(label, letters_in(ends[0] - 10.0)), (ends[0] - 8.0, y), letters);
        }
        if let Some([low, high]) = found.ci95 {
            let [from, to] = [low, high].map(|end| axis.pixel(end, ends));
            let cap = |x: f64| vec![(x, y - 5.0), (x, y + 5.0)];
            canvas.lines(&[vec![(from, y), (to, y)], cap(from), cap(to)], Pen::of(style.colour, 2.0), "");
        }
        canvas.markers(&style, &[(axis.pixel(found.value, ends), y)], "");
        canvas.close_moved();
    }
    canvas.close();
    close_rows(&mut canvas, sheet, &axis, (bottom, ends), &words(value));
    Some(canvas)
}
