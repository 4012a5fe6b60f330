//! Grids of colours, several panels side by side, and a scale.

use super::super::model::{self, Panel, Scale};
use super::axis::{Axis, bounds};
use super::canvas::Canvas;
use super::pen::{Anchor, BRIGHT, Colour, DIM, EMPTY, FAINT, INK, Letters, PAPER, Pen, Point};
use super::{HEADING, LETTER, Sheet, cut, label_room, letters_in, open_foot, ticks, words};
use crate::numbers;
use fedgenie_core::math::float;
use std::collections::{BTreeMap, BTreeSet};

/// Viridis (N. Smith, S. van der Walt, 2015): even steps to every eye, also in grey.
const SCALE: [Colour; 11] = [
    [68, 1, 84],
    [72, 36, 117],
    [65, 68, 135],
    [53, 95, 141],
    [42, 120, 142],
    [33, 145, 140],
    [34, 168, 132],
    [68, 191, 112],
    [122, 209, 81],
    [189, 223, 38],
    [253, 231, 37],
];

/// Colours of names: of the styles of policies, without those of outlines.
const NAMES: [Colour; 14] = [
    [86, 180, 233],
    [0, 158, 115],
    [230, 159, 0],
    [204, 121, 167],
    [0, 114, 178],
    [148, 148, 148],
    [51, 34, 136],
    [153, 153, 51],
    [136, 34, 85],
    [120, 80, 200],
    [240, 130, 170],
    [17, 119, 51],
    [102, 51, 0],
    [210, 0, 140],
];

/// Steps of colours: more cannot be told apart.
const STEPS: u32 = 48;

/// The outline of the best cells: none of the scale's colours.
const CONTOUR: Colour = [213, 94, 0];

/// Room between panels, and for a panel's title and the numbers below it.
const BETWEEN: f64 = 24.0;
const AROUND: f64 = 58.0;

/// What a cell's colour stands for.
struct Shades {
    /// The range of the colours, as an axis.
    axis: Axis,
    /// The names in use, where numbers are names; empty where they have an order.
    names: BTreeSet<u32>,
}

impl Shades {
    fn new(value: &model::Axis, panels: &[Panel]) -> Option<Self> {
        let is_logarithmic = value.scales.first() == Some(&Scale::Log);
        let cells = panels.iter().flat_map(|panel| &panel.cells).flatten().flatten().copied();
        let [low, high] = bounds(cells.filter(|&cell| !is_logarithmic || cell > 0.0));
        let low = value.range[0].filter(|_| !is_logarithmic).map_or(low, |least| least.min(low));
        let high = value.range[1].map_or(high, |most| most.max(high));
        let ends = if is_logarithmic { [low, high].map(float::log10) } else { [low, high] };
        let is_named = value.scales.first() == Some(&Scale::Names);
        let cells = panels.iter().flat_map(|panel| &panel.cells).flatten().flatten();
        let names = cells.filter(|_| is_named).map(|&cell| cell as u32).collect();
        (low.is_finite() && high.is_finite()).then(|| Self { axis: Axis::new(ends[0], ends[1], is_logarithmic), names })
    }

    /// The colour of a step, or of a name.
    fn colour(&self, step: Option<u32>) -> Colour {
        match step {
            Some(name) if !self.names.is_empty() => NAMES[name as usize % NAMES.len()],
            Some(step) => shade(f64::from(step) / f64::from(STEPS - 1)),
            None => EMPTY,
        }
    }

    /// From 0 to 1; `None` if a logarithmic scale has no place for the value.
    fn share(&self, value: f64) -> Option<f64> {
        (!self.axis.is_logarithmic || value > 0.0).then(|| self.axis.share(self.axis.position(value)))
    }

    /// The step of a value, or its name; zero has none on a logarithmic scale, though it is known.
    fn step(&self, value: f64) -> Option<u32> {
        if !self.names.is_empty() {
            return Some(value as u32);
        }
        self.share(value).map(|share| float::floor(share * f64::from(STEPS - 1) + 0.5) as u32)
    }
}

fn shade(share: f64) -> Colour {
    let place = share * (SCALE.len() - 1) as f64;
    let below = (place as usize).min(SCALE.len() - 2);
    let part = place - below as f64;
    [0, 1, 2].map(|channel: usize| {
        let (low, high) = (f64::from(SCALE[below][channel]), f64::from(SCALE[below + 1][channel]));
        float::floor(low + (high - low) * part + 0.5) as u8
    })
}

/// Whether bright letters are read best on a colour: its luminance is below a half.
fn is_dark([red, green, blue]: Colour) -> bool {
    0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue) < 128.0
}

/// How panels are laid out in a width.
struct Plan {
    /// Room for labels of rows.
    left: f64,
    /// Panels side by side.
    across: usize,
    /// Size of a panel.
    width: f64,
    height: f64,
    columns: usize,
    rows: usize,
}

impl Plan {
    fn new(sheet: &Sheet<'_>, columns: &[String], rows: &[String], panels: usize) -> Self {
        let width = sheet.width();
        let left = label_room(rows.iter().map(String::as_str), (width / 2.5).min(140.0));
        let room = width - left - 20.0;
        let (columns, rows) = (columns.len().max(1), rows.len().max(1));
        let wanted = (columns as f64 * 34.0).max(150.0);
        let across = (((room + BETWEEN) / (wanted + BETWEEN)) as usize).clamp(1, panels.max(1));
        let width = ((room - BETWEEN * (across - 1) as f64) / across as f64).min(90.0 * columns as f64);
        let cell = (230.0 / rows as f64).min(46.0).min(width / columns as f64).max(if rows > 12 { 9.0 } else { 16.0 });
        Self { left, across, width, height: cell * rows as f64, columns, rows }
    }

    /// Whether the numbers of all cells have room in them.
    fn has_room(&self, panels: &[Panel]) -> bool {
        let cells = panels.iter().flat_map(|panel| &panel.cells).flatten().flatten();
        let longest = cells.map(|&cell| numbers::short(cell).chars().count()).max().unwrap_or(0);
        let [_, _, width, height] = self.cell(0, 0);
        width > 6.0 + 6.8 * longest as f64 && height >= 16.0
    }

    fn line(&self) -> f64 {
        self.height + AROUND
    }

    fn top(&self) -> f64 {
        HEADING + 58.0
    }

    fn place(&self, panel: usize) -> Point {
        let (column, line) = ((panel % self.across) as f64, (panel / self.across) as f64);
        (self.left + column * (self.width + BETWEEN), self.top() + line * self.line())
    }

    /// Left, top, width and height of a cell in its panel; rows are counted from the bottom.
    fn cell(&self, row: usize, column: usize) -> [f64; 4] {
        let (width, height) = (self.width / self.columns as f64, self.height / self.rows as f64);
        [width * column as f64, self.height - height * (row + 1) as f64, width, height]
    }
}

pub(super) fn draw(
    sheet: &Sheet<'_>,
    [x, y, value]: [&model::Axis; 3],
    [columns, rows]: [&[String]; 2],
    panels: &[Panel],
) -> Option<Canvas> {
    let shades = Shades::new(value, panels)?;
    let plan = Plan::new(sheet, columns, rows, panels.len());
    let bottom = plan.top() + panels.len().div_ceil(plan.across) as f64 * plan.line() - 20.0;
    let mut canvas = sheet.canvas(bottom + 84.0);
    let has_numbers = plan.has_room(panels);
    let letters = Letters::of(13.0, Anchor::Left, INK);
    let most = letters_in(sheet.width() - 20.0);
    canvas.text(&cut(&format!("↑ {}", words(y)), most), (4.0, HEADING + 14.0), letters);
    for line in 0..panels.len().div_ceil(plan.across) {
        row_labels(&mut canvas, &plan, rows, plan.place(line * plan.across).1);
    }
    let cells = [plan.across as f64, plan.line(), 0.0, 0.0, plan.width, plan.height].map(|number| number.to_string());
    canvas.open(&format!("class=\"items\" data-items=\"{}\"", cells.join(" ")));
    for (index, panel) in panels.iter().enumerate() {
        canvas.open_moved(plan.place(index), &format!("class=\"item {}\"", sheet.class(&panel.label)));
        // Bold letters are wider.
        let title = cut(&panel.label, letters_in(0.85 * (plan.width + BETWEEN / 2.0)));
        canvas.text(&title, (0.0, -13.0), Letters { is_bold: true, ..letters });
        grid(&mut canvas, panel, &shades, (&plan, has_numbers));
        column_labels(&mut canvas, &plan, columns);
        contour(&mut canvas, panel, &plan);
        canvas.close_moved();
    }
    canvas.close();
    open_foot(&mut canvas, sheet, bottom - 14.0);
    let most = letters_in(sheet.width() - plan.left - 16.0);
    canvas.text(&cut(&format!("{} →", words(x)), most), (plan.left, bottom), letters);
    scale(&mut canvas, &shades, &words(value), (plan.left, bottom + 42.0), sheet.width());
    canvas.close();
    Some(canvas)
}

fn row_labels(canvas: &mut Canvas, plan: &Plan, rows: &[String], top: f64) {
    let height = plan.height / plan.rows as f64;
    let every = float::ceil(14.0 / height).max(1.0) as usize;
    let letters = Letters::of(11.5, Anchor::Right, FAINT);
    canvas.open_texts(letters, "class=\"aside\"");
    for (row, label) in rows.iter().enumerate().step_by(every) {
        let y = top + plan.height - height * (row as f64 + 0.5);
        let text = cut(label, letters_in(plan.left - 8.0));
        canvas.text(&text, (plan.left - 6.0, y), letters);
    }
    canvas.close();
}

/// As many labels as have room in full; a number that is cut off would be another number.
fn column_labels(canvas: &mut Canvas, plan: &Plan, columns: &[String]) {
    const MOST: usize = 24;
    let width = plan.width / plan.columns as f64;
    let longest = columns.iter().map(|label| label.chars().count().min(MOST)).max().unwrap_or(1);
    let every = float::ceil((0.95 * LETTER * longest as f64 + 4.0) / width).max(1.0) as usize;
    let letters = Letters::of(11.5, Anchor::Centre, FAINT);
    canvas.open_texts(letters, "");
    for (column, label) in columns.iter().enumerate().step_by(every) {
        let x = width * (column as f64 + 0.5);
        // The first and the last one must not reach into other panels.
        let most = letters_in(2.0 * (x.min(plan.width - x) + 0.45 * BETWEEN)).min(MOST);
        canvas.text(&cut(label, most), (x, plan.height + 11.0), letters);
    }
    canvas.close();
}

/// The cells, those of one colour together.
fn grid(canvas: &mut Canvas, panel: &Panel, shades: &Shades, (plan, has_numbers): (&Plan, bool)) {
    let [_, _, width, height] = plan.cell(0, 0);
    // A line between cells, where they are more than dots.
    let has_gaps = width > 6.0 && height > 6.0;
    let mut shades_of: BTreeMap<Option<u32>, Vec<[usize; 3]>> = BTreeMap::new();
    let mut texts = [Vec::new(), Vec::new(), Vec::new()];
    for (row, cells) in panel.cells.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let Some(value) = *cell else { continue };
            let [x, y, width, height] = plan.cell(row, column);
            let step = shades.step(value);
            let runs = shades_of.entry(step).or_default();
            let from_top = plan.rows - 1 - row;
            match runs.last_mut().filter(|[row, first, count]| *row == from_top && first + count == column) {
                Some([.., count]) => *count += 1,
                None => runs.push([from_top, column, 1]),
            }
            if has_numbers {
                let text = numbers::short(value);
                let kind = step.map_or(0, |_| if is_dark(shades.colour(step)) { 1 } else { 2 });
                texts[kind].push((text, (x + width / 2.0, y + height / 2.0)));
            }
        }
    }
    canvas.rectangle([0.0, 0.0, plan.width, plan.height], EMPTY, "");
    canvas.open_cells((0.0, 0.0), [width, height]);
    for (step, runs) in shades_of {
        canvas.cells(&runs, (0.0, 0.0), [width, height], shades.colour(step));
    }
    canvas.close();
    if has_gaps {
        let across = (1..plan.columns).map(|column| width * column as f64);
        let down = (1..plan.rows).map(|row| height * row as f64);
        let lines = across.map(|x| vec![(x, 0.0), (x, plan.height)]);
        let lines: Vec<_> = lines.chain(down.map(|y| vec![(0.0, y), (plan.width, y)])).collect();
        canvas.lines(&lines, Pen::of(PAPER, 1.0), "");
    }
    for (texts, colour) in texts.into_iter().zip([INK, BRIGHT, DIM]).filter(|(texts, _)| !texts.is_empty()) {
        let letters = Letters::of(11.0, Anchor::Centre, colour);
        canvas.open_texts(letters, "");
        texts.into_iter().for_each(|(text, at)| canvas.text(&text, at, letters));
        canvas.close();
    }
    canvas.target([0.0, 0.0, plan.width, plan.height]);
}

/// Edges between inside and outside, or at the rim.
fn contour(canvas: &mut Canvas, panel: &Panel, plan: &Plan) {
    let is_inside = |row: usize, column: usize| panel.contour.get(row).and_then(|row| row.get(column)) == Some(&true);
    for (row, column) in (0..plan.rows).flat_map(|row| (0..plan.columns).map(move |column| (row, column))) {
        if !is_inside(row, column) {
            continue;
        }
        let [left, top, width, height] = plan.cell(row, column);
        let (right, bottom) = (left + width, top + height);
        let edges = [
            (row > 0 && is_inside(row - 1, column), [(left, bottom), (right, bottom)]),
            (is_inside(row + 1, column), [(left, top), (right, top)]),
            (column > 0 && is_inside(row, column - 1), [(left, bottom), (left, top)]),
            (is_inside(row, column + 1), [(right, bottom), (right, top)]),
        ];
        for (_, ends) in edges.iter().filter(|(is_within, _)| !is_within) {
            canvas.line(ends, Pen::of(CONTOUR, 3.0), "");
        }
    }
}

/// The legend of the colours.
fn scale(canvas: &mut Canvas, shades: &Shades, title: &str, (left, top): Point, width: f64) {
    let length = (width - left - 30.0).min(360.0);
    let title = cut(title, letters_in(width - left - 8.0));
    canvas.text(&title, (left, top - 14.0), Letters::of(13.0, Anchor::Left, INK));
    if !shades.names.is_empty() {
        return swatches(canvas, shades, (left, top), width - left);
    }
    let step = length / f64::from(STEPS);
    for count in 0..STEPS {
        // A little wider, so that no gap is seen.
        let wide = if count + 1 < STEPS { step + 0.5 } else { step };
        let from = left + step * f64::from(count);
        canvas.line(&[(from, top + 6.0), (from + wide, top + 6.0)], Pen::of(shades.colour(Some(count)), 12.0), "");
    }
    let axis = shades.axis.clone().with_ticks((length / 75.0) as usize);
    ticks(canvas, &axis, top + 12.0, [left, left + length]);
}

/// The legend of names: a square of its colour for each, as many as have room.
fn swatches(canvas: &mut Canvas, shades: &Shades, (left, top): Point, room: f64) {
    const APART: f64 = 40.0;
    let letters = Letters::of(11.5, Anchor::Left, FAINT);
    let most = (room / APART) as usize;
    for (index, &name) in shades.names.iter().take(most).enumerate() {
        let x = left + APART * index as f64;
        canvas.rectangle([x, top, 12.0, 12.0], shades.colour(Some(name)), "");
        canvas.text(&name.to_string(), (x + 16.0, top + 6.0), letters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_dark_to_light() {
        assert_eq!((shade(0.0), shade(0.5), shade(1.0)), ([68, 1, 84], [33, 145, 140], [253, 231, 37]));
        let axis = super::super::super::study::linear("v", None);
        let panel = Panel {
            label: "a".to_owned(),
            cells: vec![vec![Some(1.0), None], vec![Some(3.0), Some(2.0)]],
            contour: Vec::new(),
        };
        let shades = Shades::new(&axis, std::slice::from_ref(&panel)).unwrap();
        assert_eq!([1.0, 2.0, 3.0, 9.0].map(|value| shades.share(value).unwrap()), [0.0, 0.5, 1.0, 1.0]);
        let log = model::Axis { scales: vec![Scale::Log], ..axis.clone() };
        let shades = Shades::new(&log, std::slice::from_ref(&panel)).unwrap();
        assert_eq!((shades.step(0.0), shades.step(1.0), shades.step(3.0)), (None, Some(0), Some(STEPS - 1)));
        let same = Panel { cells: vec![vec![Some(2.0)]], ..panel.clone() };
        assert_eq!(Shades::new(&axis, &[same]).unwrap().share(2.0), Some(0.5));
        let names = model::Axis { scales: vec![Scale::Names], ..axis.clone() };
        let shades = Shades::new(&names, &[Panel { cells: vec![vec![Some(7.0), Some(1.0), None]], ..panel.clone() }]);
        let shades = shades.unwrap();
        assert_eq!([7.0, 1.0].map(|name| shades.colour(shades.step(name))), [NAMES[7], NAMES[1]]);
        assert_eq!(shades.names.into_iter().collect::<Vec<_>>(), [1, 7]);
        let empty = Panel { cells: vec![vec![None]], ..panel };
        assert!(Shades::new(&axis, &[empty]).is_none());
    }
}
