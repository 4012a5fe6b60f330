//! A figure as the page shows it: its SVG, and everything around it.

use super::data_tables::{DataTable, data_tables};
use super::shown::Drawn;
use crate::svg::{self, EMPTY, FAINT, INK, Layout, PAPER, RULE};
use crate::{Axis, Chart, Figure, LineKind, Scale, Series, style};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) struct FigureView<'a> {
    pub of: &'a Figure,
    pub number: usize,
    /// The name of its element.
    pub id: &'a str,
    /// Whether an alternative is shown in its place.
    pub is_hidden: bool,
    /// Read aloud instead of the picture.
    pub spoken: String,
    /// The pictures as markup: for wide and for narrow windows; empty if there is nothing to draw.
    pub pictures: String,
    /// The names that can be hidden, each with its sample as markup.
    pub names: Vec<(String, &'a str)>,
    /// Parts of bars, each with its sample as markup.
    pub parts: Vec<(String, &'a str)>,
    /// Lines that have an entry of their own: index, index of the name, sample as markup, words.
    pub keyed: Vec<(usize, usize, String, String)>,
    /// Whether bounds leave the frame where the vertical axis is linear, and whether it is at first.
    pub beyond: [bool; 2],
    /// Axes with several scales: `x`, `y` or `value`, label, scales.
    pub scales: Vec<(&'static str, &'a str, Vec<&'static str>)>,
    pub tables: Vec<DataTable>,
}

impl FigureView<'_> {
    /// Whether the line of this index is a bound.
    pub fn is_bound(&self, line: usize) -> bool {
        let Chart::Lines { lines, .. } = &self.of.chart else { return false };
        lines.get(line).is_some_and(|line| line.role == LineKind::Bound)
    }
}

/// The height of pictures of lines: the first leaves room for the table beside it on the first screen.
const HEIGHT: i32 = 420;
const LEAD_HEIGHT: i32 = 330;

/// Pictures for narrow windows.
const NARROW: Layout = Layout { width: 360, height: 340, ..PAGE };

/// A key is beside the picture; that of a saved file is below it, where no line comes when scales are changed.
const PAGE: Layout = Layout {
    form: svg::Form::Svg,
    family: svg::Family::SansSerif,
    ranges: [None; 2],
    width: 860,
    height: HEIGHT,
    has_legend_below: true,
};

pub(super) fn figure_view<'a>(drawn: &'a Drawn<'a>, series: &'a [Series], is_first: bool) -> FigureView<'a> {
    let Drawn { of, number, id, .. } = drawn;
    let spoken = std::iter::once(format!("{}.", of.title)).chain(of.summary.iter().cloned());
    let spoken = spoken.collect::<Vec<_>>().join(" ");
    let names = svg::names(&of.chart, series);
    FigureView {
        of,
        number: *number,
        id,
        is_hidden: !is_first,
        spoken,
        pictures: pictures(of, series, *number == 1),
        keyed: keyed(&of.chart, series, &names),
        beyond: beyond(&of.chart),
        names: named(&of.chart, series, &names),
        parts: parts(&of.chart),
        scales: scales(&of.chart),
        tables: data_tables(&of.chart),
    }
}

/// Of each width one picture; of a heat map one for each scale of its colours.
fn pictures(of: &Figure, series: &[Series], is_lead: bool) -> String {
    let wide = Layout { height: if is_lead { LEAD_HEIGHT } else { HEIGHT }, ..PAGE };
    let mut found = String::new();
    for (class, layout) in [("broad", wide), ("narrow", NARROW)] {
        let Chart::Heat { value, .. } = &of.chart else {
            found.extend(svg::element(of, series, layout, (&format!("class=\"{class}\""), class == "broad")));
            continue;
        };
        for (index, scale) in value.scales.iter().enumerate() {
            let mut other = of.clone();
            if let Chart::Heat { value, .. } = &mut other.chart {
                value.scales = vec![*scale];
            }
            let off = if index > 0 { " off" } else { "" };
            let attributes = format!("class=\"{class}{off}\" data-scale=\"{}\"", scale_name(*scale));
            found.extend(svg::element(&other, series, layout, (&attributes, class == "broad")));
        }
    }
    found
}

const fn scale_name(scale: Scale) -> &'static str {
    match scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Names => "names",
    }
}

fn scales(chart: &Chart) -> Vec<(&'static str, &str, Vec<&'static str>)> {
    let axes: Vec<(&'static str, &Axis)> = match chart {
        Chart::Lines { x, y, .. } => vec![("x", x), ("y", y)],
        Chart::Heat { value, .. } => vec![("value", value)],
        Chart::Bars { .. } | Chart::Intervals { .. } => Vec::new(),
    };
    let several = axes.into_iter().filter(|(_, axis)| axis.scales.len() > 1);
    several.map(|(name, axis)| (name, &*axis.label, axis.scales.iter().copied().map(scale_name).collect())).collect()
}

/// Bars that are no policies, such as clients, are named beside them and cannot be hidden.
fn named<'a>(chart: &Chart, series: &[Series], names: &[&'a str]) -> Vec<(String, &'a str)> {
    let is_series = |name: &&str| series.iter().any(|series| series.label == *name);
    if matches!(chart, Chart::Bars { .. }) && !names.iter().any(is_series) {
        return Vec::new();
    }
    names.iter().map(|name| (svg::sample(&svg::style(series, name), LineKind::Mean), *name)).collect()
}

fn parts(chart: &Chart) -> Vec<(String, &str)> {
    match chart {
        Chart::Bars { parts, .. } => {
            parts.iter().enumerate().map(|(index, (label, _))| (svg::part_sample(index), &**label)).collect()
        }
        _ => Vec::new(),
    }
}

fn beyond(chart: &Chart) -> [bool; 2] {
    let Chart::Lines { lines, y, marks, .. } = chart else { return [false; 2] };
    let linear = Axis { scales: vec![Scale::Linear], ..y.clone() };
    [svg::leaves_frame(&linear, lines, marks), y.scales.first() != Some(&Scale::Log)]
}

/// Fits and bounds.
fn keyed(chart: &Chart, series: &[Series], names: &[&str]) -> Vec<(usize, usize, String, String)> {
    let Chart::Lines { lines, .. } = chart else { return Vec::new() };
    let entry = |(index, line): (usize, &crate::Line)| {
        let name = names.iter().position(|name| *name == line.series)?;
        let sample = svg::sample(&svg::style(series, &line.series), line.role);
        svg::is_keyed(line).then(|| (index, name, sample, svg::keyed_name(line, false)))
    };
    lines.iter().enumerate().filter_map(entry).collect()
}

/// Rules of the style sheet that put the page's colours into the place of a picture's: those of axes, and those of
/// series that would be lost on dark paper.
pub(super) fn colours(series: &[Series]) -> String {
    let mut rules = String::new();
    let mut rule = |colour, value: &str| {
        let hex = svg::hex(colour);
        let _ =
            writeln!(rules, "svg [fill=\"{hex}\"] {{ fill: {value}; }} svg [stroke=\"{hex}\"] {{ stroke: {value}; }}");
    };
    for (colour, name) in [(INK, "ink"), (FAINT, "faint"), (RULE, "grid"), (PAPER, "paper"), (EMPTY, "empty")] {
        rule(colour, &format!("var(--{name})"));
    }
    let changed: BTreeSet<[u8; 3]> =
        series.iter().map(|series| series.style.colour).filter(|&colour| style::on_dark(colour) != colour).collect();
    let (mut light, mut dark) = (String::new(), String::new());
    for colour in changed.into_iter().filter(|colour| *colour != FAINT) {
        let [name, other] = [colour, style::on_dark(colour)].map(svg::hex);
        rule(colour, &format!("var(--c{})", &name[1..]));
        let _ = write!(light, "--c{}: {name}; ", &name[1..]);
        let _ = write!(dark, "--c{}: {other}; ", &name[1..]);
    }
    let _ = writeln!(rules, ":root {{ {light}}}\n@media screen {{ :root[data-theme=\"dark\"] {{ {dark}}} }}");
    let _ = writeln!(
        rules,
        "@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=\"light\"]) {{ {dark}}} }}"
    );
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;

    #[test]
    fn colours_change_on_dark_pages_alone() {
        let of = |index: usize| Series { label: index.to_string(), style: Style::of_index(index) };
        let rules = colours(&[of(1), of(2)]);
        assert!(rules.contains("svg [stroke=\"#000000\"] { stroke: var(--c000000); }"), "{rules}");
        assert!(
            rules.contains(":root { --c000000: #000000; }") && rules.contains("{ --c000000: #EBEBEB; }"),
            "{rules}"
        );
        assert!(!rules.contains("56B4E9"), "a colour that can be seen is not changed");
    }
}
