//! How series look: colour, dash and marker, so that no two policies of a report look alike.
//!
//! | styles | colours | lines | markers |
//! |---|---|---|---|
//! | 1 to 8 | Okabe and Ito | solid | the first eight, filled |
//! | 9 to 16 | eight more | dashed | the other eight, filled |
//! | 17 to 32 | lighter shades of 1 to 16 | as 1 to 16 | as 1 to 16, hollow |
//!
//! Within a row of the table, colours differ to colour-blind eyes, and so do the sixteen full colours; a test simulates
//! them.

mod marker;

use super::model::Series;
use fedgenie_core::math::float;
use marker::MARKERS;
pub use marker::{Marker, Outline};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// First M. Okabe and K. Ito, "Color Universal Design" (2008), then four of P. Tol's "muted" scheme (2021) and four
/// dark or bright ones, chosen for the largest difference to each other in all kinds of colour vision.
const COLOURS: [[u8; 3]; 16] = [
    [213, 94, 0],
    [86, 180, 233],
    [0, 0, 0],
    [0, 114, 178],
    [0, 158, 115],
    [230, 159, 0],
    [204, 121, 167],
    [148, 148, 148],
    [51, 34, 136],
    [17, 119, 51],
    [153, 153, 51],
    [136, 34, 85],
    [102, 51, 0],
    [120, 80, 200],
    [240, 130, 170],
    [210, 0, 140],
];

/// Styles with solid lines come first.
const SOLID: usize = 8;

/// Styles that differ.
pub(super) const STYLES: usize = 2 * COLOURS.len();

/// How a series looks in all figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Style {
    /// Red, green, blue.
    pub colour: [u8; 3],
    /// Whether the line of the mean has long dashes.
    pub is_dashed: bool,
    /// The shape of its dots.
    pub marker: Marker,
    /// Whether its dots are outlines.
    pub is_hollow: bool,
}

impl Style {
    /// The style of this index; after `STYLES` of them they repeat.
    pub fn of_index(index: usize) -> Self {
        let (full, is_hollow) = (index % COLOURS.len(), index % STYLES >= COLOURS.len());
        let colour = if is_hollow { COLOURS[full].map(lighter) } else { COLOURS[full] };
        Self { colour, is_dashed: full >= SOLID, marker: MARKERS[full], is_hollow }
    }
}

/// The background of a dark page.
pub(super) const DARK: [u8; 3] = [21, 24, 28];

/// A colour as a dark page shows it: greys that would be lost change sides, others become lighter and keep their hue.
pub(super) fn on_dark(colour: [u8; 3]) -> [u8; 3] {
    let mut seen = colour.map(f64::from);
    if contrast(seen, DARK.map(f64::from)) >= 4.0 {
        return colour;
    }
    let [low, high] = seen.iter().fold([255.0, 0.0], |[low, high], &part| [part.min(low), part.max(high)]);
    if high - low < 24.0 {
        seen = seen.map(|part| (255.0 - part).min(235.0));
    }
    while contrast(seen, DARK.map(f64::from)) < 4.5 {
        seen = seen.map(|part| part + (255.0 - part) * 0.1);
    }
    seen.map(|part| float::floor(part + 0.5) as u8)
}

/// The ratio of two colours' luminances, as the guidelines for accessible pages (WCAG 2) define it: 1 to 21.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let luminance = |colour: [f64; 3]| {
        let [red, green, blue] = colour.map(|part| {
            let share = part / 255.0;
            if share <= 0.04045 { share / 12.92 } else { float::power((share + 0.055) / 1.055, 2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The style of series that are no policy: grey.
pub(super) const GREY: Style = Style { colour: [90, 100, 112], is_dashed: true, marker: MARKERS[15], is_hollow: true };

/// Two fifths of the way to white.
fn lighter(channel: u8) -> u8 {
    channel + (255 - channel) / 5 * 2
}

/// A policy in a report.
pub(super) struct Labelled<'a> {
    /// Index of its folder.
    pub folder: usize,
    /// Its name in the folder.
    pub name: &'a str,
    /// Its label in the report.
    pub label: &'a str,
}

/// The series of all policies. `known` tells a policy's index in the catalogue, which decides its style in every
/// report; policies of one's own have the first free styles. The second of two folders has lighter shades of the first
/// one's colours; with more folders, or more policies than colours, every series has a style of its own, as far as
/// there are styles.
pub(super) fn series(policies: &[Labelled<'_>], known: impl Fn(&str) -> Option<usize>) -> Vec<Series> {
    let names: BTreeSet<&str> = policies.iter().map(|policy| policy.name).collect();
    let folders: BTreeSet<usize> = policies.iter().map(|policy| policy.folder).collect();
    let is_shaded = folders.len() == 2 && names.len() <= COLOURS.len();
    let key = |policy: &Labelled<'_>| if is_shaded { policy.name.to_owned() } else { policy.label.to_owned() };
    let indices = indices(&policies.iter().map(key).collect::<Vec<_>>(), known);
    let style = |policy: &Labelled<'_>| {
        let shade = if is_shaded && Some(&policy.folder) == folders.last() { COLOURS.len() } else { 0 };
        Style::of_index(indices[&key(policy)] + shade)
    };
    policies.iter().map(|policy| Series { label: policy.label.to_owned(), style: style(policy) }).collect()
}

/// An index of a style for each name.
fn indices(names: &[String], known: impl Fn(&str) -> Option<usize>) -> BTreeMap<String, usize> {
    let mut indices: BTreeMap<String, usize> = BTreeMap::new();
    let mut wanted: Vec<(usize, &String)> = names.iter().filter_map(|name| Some((known(name)?, name))).collect();
    wanted.sort_unstable();
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for (index, name) in wanted {
        let index = index % COLOURS.len();
        if !indices.contains_key(name) && taken.insert(index) {
            indices.insert(name.clone(), index);
        }
    }
    let mut free = (0..).filter(|index| !taken.contains(index));
    for name in names {
        indices.entry(name.clone()).or_insert_with(|| free.next().unwrap_or_default());
    }
    indices
}

#[cfg(test)]
mod tests;
