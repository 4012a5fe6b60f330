//! Grids of colours, two panels side by side, and a scale.

use super::super::model::{Axis, Panel, Scale};
use super::axis::bounds;
use super::{Anchor, Area, Failed, HEADING, LETTERS, Layout, cut, label_room, picture, text, words};
use fedgenie_core::math::float;
use fedgenie_experiment::experiment::number;
use plotters::prelude::*;

/// From little to much, ever darker, so that prints without colour can be read as well.
const SCALE: [[u8; 3]; 5] = [[255, 255, 255], [198, 219, 239], [86, 180, 233], [0, 114, 178], [0, 30, 60]];

/// The outline of the best cells: none of the scale's colours.
const CONTOUR: RGBColor = RGBColor(213, 94, 0);

/// Room for the scale at the right.
const SCALE_ROOM: i32 = 120;

/// Height of the scale with its title and ends.
const SCALE_HEIGHT: i32 = 64 + 150 + 20;

/// The range of the colours.
struct Shades {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Shades {
    fn new(value: &Axis, panels: &[Panel]) -> Option<Self> {
        let is_logarithmic = value.scales.first() == Some(&Scale::Log);
        let cells = panels.iter().flat_map(|panel| &panel.cells).flatten().flatten().copied();
        let [low, high] = bounds(cells.filter(|&cell| !is_logarithmic || cell > 0.0));
        let low = value.range[0].filter(|_| !is_logarithmic).map_or(low, |least| least.min(low));
        let high = value.range[1].map_or(high, |most| most.max(high));
        (low.is_finite() && high.is_finite()).then_some(Self { low, high, is_logarithmic })
    }

    /// From 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (float::ln(value.max(self.low)) - float::ln(self.low)) / (float::ln(self.high) - float::ln(self.low))
        } else {
            (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 }
    }
}

fn shade(share: f64) -> RGBColor {
    let step = share * (SCALE.len() - 1) as f64;
    let below = (step as usize).min(SCALE.len() - 2);
    let part = step - below as f64;
    let mix = |channel: usize| {
        let (low, high) = (f64::from(SCALE[below][channel]), f64::from(SCALE[below + 1][channel]));
        float::floor(low + (high - low) * part + 0.5) as u8
    };
    RGBColor(mix(0), mix(1), mix(2))
}

pub(super) fn draw(
    heading: &str,
    [x, y, value]: [&Axis; 3],
    [columns, rows]: [&[String]; 2],
    panels: &[Panel],
    layout: Layout,
) -> Option<Vec<u8>> {
    let shades = Shades::new(value, panels)?;
    let across = if panels.len() > 1 { 2 } else { 1 };
    let down = panels.len().div_ceil(across) as i32;
    let labels = label_room(rows.iter().map(String::as_str));
    let width = (layout.width - labels - SCALE_ROOM - 20) / across as i32;
    let cell_height = (180 / rows.len().max(1) as i32).clamp(9, 40);
    let (plot_height, panel_height) = (cell_height * rows.len() as i32, cell_height * rows.len() as i32 + 78);
    let height = (HEADING + down * panel_height + 10).max(HEADING + SCALE_HEIGHT);
    picture(&cut(heading, 100), height, layout, |area| {
        for (index, panel) in panels.iter().enumerate() {
            let left = labels + 10 + (index % across) as i32 * width;
            let top = HEADING + (index / across) as i32 * panel_height + 24;
            let ends = [left, left + width - 24];
            text(area, &cut(&panel.label, LETTERS), (left, top - 12), 14, Anchor::Left)?;
            grid(area, panel, &shades, [columns.len(), rows.len()], ends, [top, top + plot_height])?;
            if index % across == 0 {
                let every = (13 + cell_height) / cell_height;
                for (row, label) in rows.iter().enumerate().step_by(every.max(1) as usize) {
                    let middle = top + plot_height - cell_height * row as i32 - cell_height / 2;
                    text(area, &cut(label, LETTERS), (left - 6, middle), 12, Anchor::Right)?;
                }
                text(area, &cut(&words(y), LETTERS), (10, top + plot_height + 28), 12, Anchor::Left)?;
            }
            let longest = columns.iter().map(|label| label.chars().count()).max().unwrap_or(1) as i32;
            let pixels = f64::from(ends[1] - ends[0]) / columns.len() as f64;
            let every = float::ceil(f64::from(longest * 7 + 8) / pixels) as usize;
            for (column, label) in columns.iter().enumerate().step_by(every.max(1)) {
                let middle = ends[0] + ((column as f64 + 0.5) * pixels) as i32;
                text(area, label, (middle, top + plot_height + 10), 12, Anchor::Centre)?;
            }
            text(area, &words(x), ((ends[0] + ends[1]) / 2, top + plot_height + 28), 13, Anchor::Centre)?;
        }
        scale(area, &shades, value, layout)
    })
}

fn grid(
    area: &Area<'_>,
    panel: &Panel,
    shades: &Shades,
    [columns, rows]: [usize; 2],
    [left, right]: [i32; 2],
    [top, bottom]: [i32; 2],
) -> Result<(), Failed> {
    let edge = |first: i32, last: i32, cell: usize, count: usize| {
        first + (i64::from(last - first) * cell as i64 / count.max(1) as i64) as i32
    };
    // Numbers where there is room for them.
    let has_numbers = (right - left) / columns.max(1) as i32 >= 44 && (bottom - top) / rows.max(1) as i32 >= 16;
    for (row, cells) in panel.cells.iter().enumerate() {
        let (low, high) = (edge(bottom, top, row, rows), edge(bottom, top, row + 1, rows));
        for (column, cell) in cells.iter().enumerate() {
            let Some(cell) = *cell else { continue };
            let (from, to) = (edge(left, right, column, columns), edge(left, right, column + 1, columns));
            let share = shades.share(cell);
            area.draw(&Rectangle::new([(from, high), (to, low)], shade(share).filled()))?;
            if has_numbers {
                let style = ("sans-serif", 12).into_text_style(area);
                let style = style.color(if share > 0.6 { &WHITE } else { &BLACK });
                let style = style.pos(plotters::style::text_anchor::Pos::new(
                    plotters::style::text_anchor::HPos::Center,
                    plotters::style::text_anchor::VPos::Center,
                ));
                area.draw(&Text::new(number(cell), (i32::midpoint(from, to), i32::midpoint(low, high)), style))?;
            }
        }
    }
    area.draw(&Rectangle::new([(left, top), (right, bottom)], BLACK.mix(0.6)))?;
    // An edge between inside and outside, or at the rim.
    let is_inside = |row: usize, column: usize| panel.contour.get(row).and_then(|row| row.get(column)) == Some(&true);
    let line = |ends: [(i32, i32); 2]| {
        area.draw(&PathElement::new(ends, ShapeStyle { color: CONTOUR.to_rgba(), filled: false, stroke_width: 3 }))
    };
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        if !is_inside(row, column) {
            continue;
        }
        let (low, high) = (edge(bottom, top, row, rows), edge(bottom, top, row + 1, rows));
        let (from, to) = (edge(left, right, column, columns), edge(left, right, column + 1, columns));
        if row == 0 || !is_inside(row - 1, column) {
            line([(from, low), (to, low)])?;
        }
        if !is_inside(row + 1, column) {
            line([(from, high), (to, high)])?;
        }
        if column == 0 || !is_inside(row, column - 1) {
            line([(from, low), (from, high)])?;
        }
        if !is_inside(row, column + 1) {
            line([(to, low), (to, high)])?;
        }
    }
    Ok(())
}

/// The legend of the colours.
fn scale(area: &Area<'_>, shades: &Shades, value: &Axis, layout: Layout) -> Result<(), Failed> {
    const STEPS: i32 = 30;
    let (left, top) = (layout.width - SCALE_ROOM + 4, HEADING + 64);
    for (line, part) in words(value).split(' ').collect::<Vec<_>>().chunks(2).enumerate() {
        text(area, &cut(&part.join(" "), 20), (left, HEADING + 4 + 13 * line as i32), 11, Anchor::Left)?;
    }
    for step in 0..STEPS {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        let bottom = top + 5 * (STEPS - step);
        area.draw(&Rectangle::new([(left, bottom - 5), (left + 14, bottom)], shade(share).filled()))?;
    }
    area.draw(&Rectangle::new([(left, top), (left + 14, top + 5 * STEPS)], BLACK.mix(0.6)))?;
    text(area, &number(shades.high), (left + 20, top), 12, Anchor::Left)?;
    text(area, &number(shades.low), (left + 20, top + 5 * STEPS), 12, Anchor::Left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_light_to_dark() {
        assert_eq!((shade(0.0), shade(0.5), shade(1.0)), (WHITE, RGBColor(86, 180, 233), RGBColor(0, 30, 60)));
        let axis = super::super::super::study::linear("v", None);
        let panel = Panel {
            label: "a".to_owned(),
            cells: vec![vec![Some(1.0), None], vec![Some(3.0), Some(2.0)]],
            contour: Vec::new(),
        };
        let shades = Shades::new(&axis, std::slice::from_ref(&panel)).unwrap();
        assert_eq!([1.0, 2.0, 3.0, 9.0].map(|value| shades.share(value)), [0.0, 0.5, 1.0, 1.0]);
        let same = Shades { low: 2.0, high: 2.0, is_logarithmic: false };
        assert_eq!(same.share(2.0), 0.5);
        let empty = Panel { cells: vec![vec![None]], ..panel };
        assert!(Shades::new(&axis, &[empty]).is_none());
    }
}
