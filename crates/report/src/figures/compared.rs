//! Values with intervals: differences between policies, and the Gini index.

use super::super::model::{Axis, Chart, Choice, Figure, Interval};
use super::super::study::{Better, Difference, Quantity, Study, id, interval, linear};
use super::super::verdicts::{OfPoints, of_points};
use super::participation::EVENNESS;
use super::{how_intervals_are_shown, mean_words};

/// The most rows of a figure.
const MOST_ROWS: usize = 60;

/// The most quantities whose differences are all drawn.
const MOST_QUANTITIES: usize = 20;

/// Paired differences, one figure for each quantity that policies differ in; of many, for the main ones.
pub(super) fn differences(study: &Study<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut quantities = study.quantities();
    if quantities.len() > MOST_QUANTITIES {
        quantities.retain(|quantity| quantity.is_main);
    }
    for quantity in quantities {
        let (mut rows, mut summary) = (Vec::new(), Vec::new());
        let mut against: Vec<&str> = Vec::new();
        let found = study.differences(&quantity.key);
        for found in &found {
            let reference = study.arms[found.against].label.as_str();
            if !against.contains(&reference) {
                against.push(reference);
            }
        }
        for found in &found {
            let (words, reference) = (study.words(found.arm, found.point), &study.arms[found.against].label);
            let minus = format!("{words} minus {reference}");
            summary.push(mean_words(&minus, &found.estimate, quantity.unit));
            let row = if against.len() == 1 { words } else { minus };
            rows.push((row, study.arms[found.arm].label.clone(), interval(&found.estimate)));
        }
        let differs = |row: &(String, String, Interval)| row.2.value != 0.0;
        if rows.len() > MOST_ROWS || !rows.iter().any(differs) {
            continue;
        }
        let better = match quantity.better {
            Some(Better::Lower) => " Further left is better.",
            Some(Better::Higher) => " Further right is better.",
            None => "",
        };
        let whose = if against.len() == 1 { against[0].to_owned() } else { "its reference".to_owned() };
        figures.push(Figure {
            id: id(&format!("difference-{}", quantity.key)),
            title: format!("Difference in {} to {whose}", quantity.words),
            caption: format!("Each policy minus {whose}.{better}"),
            method: format!(
                "Differences are {} {}{}",
                how_paired(study, &found),
                how_intervals_are_shown(),
                study.method(&quantity)
            ),
            summary,
            choice: Choice::new("differences", [("in", &quantity.words)]),
            chart: Chart::Intervals {
                value: Axis { label: format!("difference in {}", quantity.words), ..quantity.axis() },
                rows,
            },
        });
    }
    figures
}

/// How runs are paired, in the middle of a sentence.
fn how_paired(study: &Study<'_>, found: &[Difference]) -> &'static str {
    let folder = |arm: usize| &study.results[study.arms[arm].folder];
    if found.iter().all(|found| folder(found.arm).shares_world(folder(found.against))) {
        "paired by seed. Both runs of a pair meet the same world, so the difference comes from the policies."
    } else if found.iter().all(|found| found.is_paired) {
        "paired by seed. Both runs of a pair have the same draws, as far as their scenarios have them in common."
    } else {
        "paired by seed where their folders share draws, and otherwise as independent samples (Welch's interval)."
    }
}

/// Paired differences between the points of a sweep, one figure for each main quantity that they differ in: each point
/// against the reference.
pub(super) fn differences_of_points(study: &Study<'_>) -> Vec<Figure> {
    let reference = study.sweep.reference;
    let figure = |(quantity, mut found): (Quantity, Vec<OfPoints>)| {
        found.retain(|found| found.against == reference);
        let words = |found: &OfPoints| study.words(found.arm, found.point);
        let name = study.bare_words(reference);
        let summary =
            |found: &OfPoints| mean_words(&format!("{} minus {name}", words(found)), &found.difference, quantity.unit);
        let row = |found: &OfPoints| (words(found), study.arms[found.arm].label.clone(), interval(&found.difference));
        if found.len() > MOST_ROWS || found.iter().all(|found| found.difference.mean == 0.0) {
            return None;
        }
        let better = match quantity.better {
            Some(Better::Lower) => " Further left is better.",
            Some(Better::Higher) => " Further right is better.",
            None => "",
        };
        Some(Figure {
            id: id(&format!("difference-points-{}", quantity.key)),
            title: format!("Difference in {} to {name}", quantity.words),
            caption: format!("Each policy at each point of the sweep minus itself at {name}, paired by seed.{better}"),
            method: format!("Draws of equal seeds are the same at all points. {}", how_intervals_are_shown()),
            summary: found.iter().map(summary).collect(),
            choice: Choice::new("differences of points", [("in", &quantity.words)]),
            chart: Chart::Intervals { value: quantity.axis(), rows: found.iter().map(row).collect() },
        })
    };
    of_points(study).into_iter().filter_map(figure).collect()
}

/// The Gini index of selections of every policy.
pub(super) fn gini(study: &Study<'_>) -> Option<Figure> {
    let found = || {
        study
            .combinations()
            .into_iter()
            .filter_map(|(arm, point)| Some((arm, point, study.estimate(arm, point, "gini")?)))
    };
    if !found().any(|(_, _, gini)| gini.mean > 0.0) {
        return None;
    }
    let rows =
        found().map(|(arm, point, gini)| (study.words(arm, point), study.arms[arm].label.clone(), interval(&gini)));
    Some(Figure {
        id: "gini".to_owned(),
        title: "Gini index of selections".to_owned(),
        caption: "Gini index of the clients' numbers of selections in the whole run: 0 if all are equal, 1 − 1/K if one of K clients \
                  is always selected."
            .to_owned(),
        method: how_intervals_are_shown(),
        choice: Choice::new(EVENNESS, [("by", "Gini index")]),
        summary: found().map(|(arm, point, gini)| mean_words(&study.words(arm, point), &gini, None)).collect(),
        chart: Chart::Intervals { value: linear("Gini index", None), rows: rows.collect() },
    })
}
