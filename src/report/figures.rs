//! The pictures of a report, in their order.

mod compared;
mod course;
mod rounds;
mod swept;
mod totals;

use super::courses::BAND_SEEDS;
use super::model::{Axis, Figure, Scale};
use super::study::Study;
use crate::experiment::{INTERVAL_SEEDS, show};
use crate::math::statistics::Estimate;

/// All figures of a study.
pub(super) fn figures(study: &Study<'_>, warnings: &mut Vec<String>) -> Vec<Figure> {
    let mut figures = Vec::new();
    if study.is_sweep() {
        figures.extend(swept::quantities(study));
        figures.extend(swept::selections(study));
        figures.extend(swept::regrets(study));
    } else {
        figures.extend(course::metrics(study));
        figures.extend(course::regrets(study));
        figures.extend(rounds::selections(study, warnings));
        figures.extend(rounds::durations(study));
    }
    figures.extend(totals::totals(study, warnings));
    if !study.is_sweep() {
        figures.extend(course::participation(study));
        figures.extend(compared::gini(study));
    }
    figures.extend(compared::differences(study));
    figures
}

/// What lines, bands and thin lines are.
fn how_means_are_shown(study: &Study<'_>) -> String {
    let seeds = study.arms.iter().flat_map(|arm| &arm.runs).map(std::collections::BTreeMap::len).max().unwrap_or(0);
    match seeds {
        0 | 1 => "One seed.".to_owned(),
        BAND_SEEDS.. => {
            format!("Thick lines are means over {seeds} seeds, bands their 95 % confidence intervals (Student's t).")
        }
        _ => format!("Thick lines are means over {seeds} seeds, thin lines the single seeds: too few for an interval."),
    }
}

/// What whiskers are.
fn how_intervals_are_shown() -> String {
    format!("Whiskers are 95 % confidence intervals (Student's t), from {INTERVAL_SEEDS} seeds on.")
}

/// A sentence on a mean over seeds.
fn mean_words(label: &str, estimate: &Estimate, unit: Option<&str>) -> String {
    let seeds = if estimate.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", estimate.n) };
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    format!("{label}: {}{unit} ({seeds})", show(estimate).replace('-', "−"))
}

/// An axis that can also be logarithmic.
fn either(axis: Axis, first: Scale) -> Axis {
    let scales = match first {
        Scale::Linear => vec![Scale::Linear, Scale::Log],
        Scale::Log => vec![Scale::Log, Scale::Linear],
    };
    Axis { scales, ..axis }
}
