//! The pictures of a report, in their order.

mod arrived;
mod clusters;
mod compared;
mod course;
mod examples;
mod participation;
pub(super) mod points;
mod rounds;
mod servers;
mod swept;
mod totals;

use super::courses::BAND_SEEDS;
use super::model::{Axis, Figure, Mark, Scale};
use super::study::{Study, rounded};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::MetricId;
use fedgenie_experiment::experiment::controls::is_trivial;
use fedgenie_experiment::experiment::{INTERVAL_SEEDS, Reached, show};
use std::collections::BTreeMap;

/// All figures of a study.
pub(super) fn figures(study: &Study<'_>, warnings: &mut Vec<String>) -> Vec<Figure> {
    let mut figures = Vec::new();
    if study.is_sweep() {
        figures.extend(points::curves(study));
        figures.extend(swept::courses(study));
        figures.extend(swept::quantities(study, warnings));
        figures.extend(swept::selections(study));
        figures.extend(swept::selections_over_rounds(study));
    } else {
        figures.extend(course::metrics(study));
        figures.extend(arrived::arrived(study));
        figures.extend(course::regrets(study));
        figures.extend(servers::map(study));
        figures.extend(clusters::map(study));
        figures.extend(rounds::selections(study, warnings));
        figures.extend(rounds::durations(study));
    }
    figures.extend(totals::totals(study, warnings));
    if !study.is_sweep() {
        figures.extend(participation::participation(study));
        figures.extend(participation::empty(study));
        figures.extend(compared::gini(study));
    }
    figures.extend(examples::examples(study));
    figures.extend(compared::differences(study));
    figures.extend(compared::differences_of_points(study));
    if study.is_sweep() {
        figures.iter_mut().for_each(|figure| shorten(&mut figure.summary));
        // Growth is in no table, so its sentences are not cut.
        let index = figures.iter().position(|figure| figure.id == "outcomes").unwrap_or(figures.len());
        figures.splice(index..index, swept::regrets(study));
    }
    figures
}

/// The figure that shows the experiment's main question.
pub(super) fn lead<'a>(study: &Study<'_>, figures: &'a [Figure]) -> Option<&'a Figure> {
    let aim = study.questions().into_iter().next()?;
    let is_of = |reached: &&Reached| {
        let target = ["time_to.", "bytes_to.", "joules_to."].iter().find_map(|what| aim.key.strip_prefix(what));
        target.is_some_and(|target| target == reached.name())
    };
    let aimed_at = study.targets().into_iter().find(is_of);
    let quantity = study.quantities().into_iter().find(|quantity| quantity.key == aim.key);
    let shows = |figure: &&Figure| {
        let Some(choice) = &figure.choice else { return false };
        let value = |what: &str| choice.values.iter().find(|[name, _]| name == what).map(|[_, value]| value.as_str());
        if study.is_sweep() {
            let is_its = quantity.as_ref().is_some_and(|found| value("of") == Some(&found.words));
            return choice.of == "quantities" && is_its;
        }
        match aim.key.split_once('.') {
            Some(("final" | "best", metric)) => choice.of == metric,
            Some(("regret", meter)) => choice.of == "regret" && value("regret") == Some(meter),
            _ => aimed_at.is_some_and(|reached| choice.of == reached.target.metric),
        }
    };
    figures.iter().find(shows)
}

/// The most bars of a figure.
const MOST_BARS: usize = 48;

/// The most points with a picture each.
const MOST_COURSES: usize = 6;

/// The most sentences under a figure of a sweep.
const MOST_SENTENCES: usize = 12;

/// Leaves the remaining sentences to the table.
fn shorten(summary: &mut Vec<String>) {
    let rest = summary.len().saturating_sub(MOST_SENTENCES);
    if rest > 0 {
        summary.truncate(MOST_SENTENCES);
        summary.push(format!("… and {rest} more in the table"));
    }
}

/// The meaning of lines, bands and thin lines: in a sentence, and further notes.
fn how_means_are_shown(study: &Study<'_>) -> (String, String) {
    let counts = || study.arms.iter().flat_map(|arm| &arm.runs).map(BTreeMap::len).filter(|&count| count > 0);
    means_of(counts().min().unwrap_or(0), counts().max().unwrap_or(0))
}

/// The same, from the fewest and the most seeds of any line.
fn means_of(fewest: usize, most: usize) -> (String, String) {
    const ENDS: &str = "A mean curve begins where the last of its runs begins, and thin lines lead there; it stops where the \
                        shortest of its runs stops.";
    if most < 2 {
        return ("One seed.".to_owned(), String::new());
    }
    let seeds = if fewest < most { format!("{fewest} to {most}") } else { most.to_string() };
    let (drawn, how) = match (fewest, most) {
        (BAND_SEEDS.., _) => ("bands their 95 % confidence intervals", "Intervals are Student's t.".to_owned()),
        (_, BAND_SEEDS..) => (
            "bands their 95 % confidence intervals",
            format!(
                "Intervals are Student's t; where there are fewer than {BAND_SEEDS} seeds, thin lines show the single seeds."
            ),
        ),
        _ => ("thin lines the single seeds", format!("A band needs {BAND_SEEDS} seeds.")),
    };
    (format!("Thick lines are means over {seeds} seeds, {drawn}."), format!("{how} {ENDS}"))
}

/// The meaning of whiskers.
fn how_intervals_are_shown() -> String {
    whiskers("Student's t")
}

/// The same, for intervals after this author.
fn whiskers(whose: &str) -> String {
    format!("Whiskers are 95 % confidence intervals ({whose}); they need {INTERVAL_SEEDS} seeds.")
}

/// A sentence on a mean over seeds.
fn mean_words(label: &str, estimate: &Estimate, unit: Option<&str>) -> String {
    let seeds = if estimate.n == 1 { "1 seed".to_owned() } else { format!("{} seeds", estimate.n) };
    let unit = unit.map_or_else(String::new, |unit| format!(" {unit}"));
    format!("{label}: {}{unit} ({seeds})", show(estimate).replace('-', "−"))
}

/// The targets for a metric, and the references without a model.
fn marks(study: &Study<'_>, metric: MetricId) -> Vec<Mark> {
    let mark = |reached: &Reached| {
        let target = &reached.target;
        let value = target.at_least.or(target.at_most).filter(|_| metric.is_called(&target.metric))?;
        Some(Mark { label: format!("target: {}", reached.name().replace('_', " ")), value: rounded(value) })
    };
    let of_target = study.targets().into_iter().filter_map(mark);
    let label = |name: &str| if is_trivial(name) { format!("without a model: {name}") } else { name.to_owned() };
    let of_reference = study.controls(metric).into_iter();
    of_target.chain(of_reference.map(|(name, value)| Mark { label: label(&name), value: rounded(value) })).collect()
}

/// An axis that can also be logarithmic.
pub(super) fn either(axis: Axis, first: Scale) -> Axis {
    let scales = match first {
        Scale::Linear => vec![Scale::Linear, Scale::Log],
        Scale::Log => vec![Scale::Log, Scale::Linear],
        Scale::Names => vec![Scale::Names],
    };
    Axis { scales, ..axis }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_say_how_many_seeds_and_what_is_drawn_of_them() {
        assert_eq!(means_of(1, 1).0, "One seed.");
        let (drawn, how) = means_of(3, 5);
        assert!(drawn.contains("over 3 to 5 seeds") && how.contains("fewer than 4 seeds, thin lines"), "{drawn} {how}");
        let (drawn, how) = means_of(2, 3);
        assert!(drawn.contains("thin lines the single seeds") && how.contains("A band needs 4 seeds"), "{drawn} {how}");
        assert!(means_of(20, 20).0.starts_with("Thick lines are means over 20 seeds, bands their 95 %"));
    }
}
