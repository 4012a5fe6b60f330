//! Values with whiskers, one below the other, with a line at zero.

use super::super::model::{self, Interval, Series};
use super::axis::{Axis, bounds, with_margin};
use super::key::{colour, marker, style};
use super::{Anchor, HEADING, LETTERS, Layout, cut, horizontal, label_room, picture, text, words};
use plotters::prelude::*;

const ROW: i32 = 24;

pub(super) fn draw(
    heading: &str,
    value: &model::Axis,
    rows: &[(String, String, Interval)],
    series: &[Series],
    layout: Layout,
) -> Option<Vec<u8>> {
    let ends_of = |found: &Interval| found.ci95.map_or([found.value; 2], |[low, high]| [low.min(found.value), high]);
    let [low, high] = bounds(rows.iter().flat_map(|(.., found)| ends_of(found)).chain([0.0]));
    if rows.is_empty() || !(low.is_finite() && high.is_finite()) {
        return None;
    }
    let [low, high] = with_margin([low, high], 0.04);
    let axis = Axis::new(low, high, false);
    let ends = [label_room(rows.iter().map(|(label, ..)| label.as_str())), layout.width - 32];
    let (top, bottom) = (HEADING, HEADING + ROW * rows.len() as i32 + 10);
    picture(&cut(heading, 100), bottom + 50, layout, |area| {
        horizontal(area, &axis, [top, bottom], ends, &words(value))?;
        let zero = axis.pixel(0.0, ends);
        area.draw(&PathElement::new([(zero, top), (zero, bottom)], BLACK.mix(0.7)))?;
        for (row, (label, of, found)) in rows.iter().enumerate() {
            let (y, style) = (top + ROW * row as i32 + ROW / 2 + 4, style(series, of));
            text(area, &cut(label, LETTERS), (ends[0] - 6, y), 13, Anchor::Right)?;
            if let Some([low, high]) = found.ci95 {
                let [from, to] = [axis.pixel(low, ends), axis.pixel(high, ends)];
                let stroke = colour(&style).stroke_width(2);
                area.draw(&PathElement::new([(from, y), (to, y)], stroke))?;
                for end in [from, to] {
                    area.draw(&PathElement::new([(end, y - 5), (end, y + 5)], stroke))?;
                }
            }
            marker(area, &style, (axis.pixel(found.value, ends), y))?;
        }
        Ok(())
    })
}
