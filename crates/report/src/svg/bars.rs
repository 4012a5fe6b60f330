//! Stacked bars, one below the other.

use super::super::model;
use super::axis::Axis;
use super::{Anchor, HEADING, LETTERS, Layout, cut, horizontal, label_room, picture, text, words};
use plotters::prelude::*;

/// Colours of parts: used dark, wasted light, in pairs; distinguishable with colour-blind eyes.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(204, 204, 204),
    RGBColor(0, 158, 115),
];

const BAR: i32 = 22;

pub(super) fn draw(
    heading: &str,
    value: &model::Axis,
    categories: &[String],
    parts: &[(String, Vec<f64>)],
    layout: Layout,
) -> Option<Vec<u8>> {
    let total = |bar: usize| parts.iter().map(|(_, lengths)| lengths[bar]).sum::<f64>();
    let longest = (0..categories.len()).map(total).fold(0.0, f64::max);
    if !(longest > 0.0 && longest.is_finite()) {
        return None;
    }
    let axis = Axis::new(0.0, (1.02 * longest).min(f64::MAX), false);
    let ends = [label_room(categories.iter().map(String::as_str)), layout.width - 32];
    let (top, bottom) = (HEADING + 24, HEADING + 24 + BAR * categories.len() as i32 + 8);
    picture(&cut(heading, 100), bottom + 50, layout, |area| {
        let mut left = ends[0];
        for ((label, _), colour) in parts.iter().zip(COLOURS.iter().cycle()) {
            area.draw(&Rectangle::new([(left, HEADING), (left + 12, HEADING + 12)], colour.filled()))?;
            text(area, label, (left + 17, HEADING + 6), 13, Anchor::Left)?;
            left += 34 + 7 * label.chars().count() as i32;
        }
        horizontal(area, &axis, [top, bottom], ends, &words(value))?;
        for (bar, category) in categories.iter().enumerate() {
            let upper = top + 6 + BAR * bar as i32;
            text(area, &cut(category, LETTERS), (ends[0] - 6, upper + BAR / 2 - 3), 13, Anchor::Right)?;
            let mut sum = 0.0;
            for ((_, lengths), colour) in parts.iter().zip(COLOURS.iter().cycle()) {
                let from = axis.pixel(sum, ends);
                sum += lengths[bar];
                let corners = [(from, upper), (axis.pixel(sum, ends), upper + BAR - 6)];
                area.draw(&Rectangle::new(corners, colour.filled()))?;
            }
        }
        Ok(())
    })
}
