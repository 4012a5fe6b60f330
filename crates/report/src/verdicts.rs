//! Comparisons of policies with their references: each on its own, and the main ones at a glance.

use super::model::{Overview, Verdict};
use super::study::{Better, Quantity, Study, interval};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::INTERVAL_SEEDS;

/// Every policy against its reference, for each quantity with a difference.
pub(super) fn verdicts(study: &Study<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for quantity in study.quantities() {
        let found = found(study, &quantity);
        // A policy that a sweep does not touch has the same difference at every point: one row says so.
        let is_same =
            |one: &(usize, usize, Estimate), other: &(usize, usize, Estimate)| (one.0, one.2) == (other.0, other.2);
        for (index, &(arm, point, difference)) in found.iter().enumerate() {
            if found[..index].iter().any(|earlier| is_same(earlier, &found[index])) {
                continue;
            }
            let points = found[index..].iter().filter(|later| is_same(later, &found[index])).count();
            let subject = match points {
                1 => study.words(arm, point),
                _ if points == study.points.len() => at_all(study, arm),
                _ => format!("{} and {} more points", study.words(arm, point), points - 1),
            };
            let point = if points == 1 && study.is_sweep() { study.point_words(point) } else { "" };
            verdicts.push(Verdict { point: point.to_owned(), subject, ..verdict(study, arm, &difference, &quantity) });
        }
    }
    verdicts
}

/// A quantity, and in it the difference of each policy at each point that has one.
type Differences = (Quantity, Vec<(usize, usize, Estimate)>);

/// The main comparisons, a row for each policy and point; none if policies do not differ.
pub(super) fn overview(study: &Study<'_>) -> Option<Overview> {
    let mut quantities: Vec<Differences> = study
        .quantities()
        .into_iter()
        .filter(|quantity| quantity.is_main)
        .map(|quantity| (found(study, &quantity), quantity))
        .map(|(found, quantity)| (quantity, found))
        .collect();
    quantities.retain(|(_, found)| !found.is_empty());
    let mut rows: Vec<(String, String, Vec<Option<Verdict>>)> = Vec::new();
    for arm in 0..study.arms.len() {
        let points = (0..study.points.len()).filter(|&point| !study.arms[arm].runs[point].is_empty());
        let cells = |point: usize| -> Vec<Option<Verdict>> {
            let cell = |(quantity, found): &Differences| {
                let (.., difference) = found.iter().find(|(of, at, _)| (*of, *at) == (arm, point))?;
                Some(verdict(study, arm, difference, quantity))
            };
            quantities.iter().map(cell).collect()
        };
        let all: Vec<(usize, Vec<Option<Verdict>>)> = points.map(|point| (point, cells(point))).collect();
        let against = || study.arms[study.arms[arm].reference].label.clone();
        let is_everywhere = all.len() == study.points.len() && all.windows(2).all(|pair| pair[0].1 == pair[1].1);
        for (point, cells) in all.into_iter().filter(|(_, cells)| cells.iter().any(Option::is_some)) {
            if is_everywhere && study.is_sweep() {
                rows.push((at_all(study, arm), against(), cells));
                break;
            }
            rows.push((study.words(arm, point), against(), cells));
        }
    }
    let columns = quantities.iter().map(|(quantity, _)| quantity.heading()).collect();
    (!rows.is_empty()).then_some(Overview { columns, rows })
}

fn at_all(study: &Study<'_>, arm: usize) -> String {
    format!("{}, at all {} points", study.arms[arm].label, study.points.len())
}

/// The differences in a quantity, by policy and point; none if nobody differs.
fn found(study: &Study<'_>, quantity: &Quantity) -> Vec<(usize, usize, Estimate)> {
    let difference = |(arm, point)| Some((arm, point, study.difference(arm, point, &quantity.key)?));
    let found: Vec<(usize, usize, Estimate)> = study.combinations().into_iter().filter_map(difference).collect();
    // The interval of a difference of shares has a width even where all runs reach a target.
    let is_share = quantity.key.starts_with("reached.");
    let differs = found.iter().any(|(.., difference)| difference.mean != 0.0 || !is_share && spread(difference) != 0.0);
    if differs { found } else { Vec::new() }
}

/// A comparison, without what it is called.
fn verdict(study: &Study<'_>, arm: usize, difference: &Estimate, quantity: &Quantity) -> Verdict {
    let (verdict, is_better) = judged(difference, quantity);
    Verdict {
        point: String::new(),
        quantity: quantity.words.clone(),
        subject: String::new(),
        against: study.arms[study.arms[arm].reference].label.clone(),
        difference: interval(difference),
        pairs: difference.n,
        verdict: verdict.to_owned(),
        is_better,
    }
}

fn spread(difference: &Estimate) -> f64 {
    difference.ci95.map_or(0.0, |[low, high]| high - low)
}

/// The verdict on a difference, and whether it is good.
fn judged(difference: &Estimate, quantity: &Quantity) -> (&'static str, Option<bool>) {
    let better = |found: Better| quantity.better.map(|better| better == found);
    if difference.mean == 0.0 && spread(difference) == 0.0 {
        return ("the same", None);
    }
    match difference.ci95.filter(|_| difference.n >= INTERVAL_SEEDS) {
        Some([_, high]) if high < 0.0 => ("lower", better(Better::Lower)),
        Some([low, _]) if low > 0.0 => ("higher", better(Better::Higher)),
        _ => ("undecided", None),
    }
}
