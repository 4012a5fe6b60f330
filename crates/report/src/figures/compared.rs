//! Values with intervals: differences between policies, and the Gini index.

use super::super::model::{Axis, Chart, Figure, Interval};
use super::super::study::{Better, Study, id, interval, linear};
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
        for (arm, point) in study.combinations() {
            let Some(found) = study.difference(arm, point, &quantity.key) else { continue };
            let reference = study.arms[study.arms[arm].reference].label.as_str();
            if !against.contains(&reference) {
                against.push(reference);
            }
            let words = study.words(arm, point);
            summary.push(mean_words(&format!("{words} minus {reference}"), &found, quantity.unit));
            rows.push((words, study.arms[arm].label.clone(), interval(&found)));
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
        let whose =
            if against.len() == 1 { against[0].to_owned() } else { "the first policy of its experiment".to_owned() };
        figures.push(Figure {
            id: id(&format!("difference-{}", quantity.key)),
            title: format!("Difference in {} to {whose}", quantity.words),
            caption: format!(
                "Each policy minus {whose}, paired by seed. Both runs of a pair meet the same world, so the difference comes from the \
                 policies.{better} {}{}",
                how_intervals_are_shown(),
                study.method(&quantity)
            ),
            summary,
            chart: Chart::Intervals {
                value: Axis { label: format!("difference in {}", quantity.words), ..quantity.axis() },
                rows,
            },
        });
    }
    figures
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
        caption: format!(
            "Gini index of the clients' numbers of selections in the whole run: 0 if all are equal, 1 − 1/K if one of K clients is \
             always selected. {}",
            how_intervals_are_shown()
        ),
        summary: found().map(|(arm, point, gini)| mean_words(&study.words(arm, point), &gini, None)).collect(),
        chart: Chart::Intervals { value: linear("Gini index", None), rows: rows.collect() },
    })
}
