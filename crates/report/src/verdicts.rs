//! Comparisons of policies with their references: each on its own, and the main ones at a glance.

use super::model::{Overview, Verdict};
use super::study::{Better, Difference, Quantity, Study, interval};
use fedgenie_core::math::statistics::Estimate;
use fedgenie_experiment::experiment::INTERVAL_SEEDS;
use fedgenie_experiment::experiment::compared::{Aim, is_same, seeds_needed};

/// The verdict on a difference whose interval includes 0.
const NOT_TOLD: &str = "not told apart";

/// Every policy against its references, for each quantity with a difference.
pub(super) fn verdicts(study: &Study<'_>) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for quantity in study.quantities_by_question() {
        let found = found(study, &quantity);
        // A policy that a sweep does not touch has the same difference at every point: one row says so.
        let is_same = |one: &Difference, other: &Difference| {
            (one.arm, one.against, one.estimate) == (other.arm, other.against, other.estimate)
        };
        for (index, difference) in found.iter().enumerate() {
            if found[..index].iter().any(|earlier| is_same(earlier, difference)) {
                continue;
            }
            let points = found[index..].iter().filter(|later| is_same(later, difference)).count();
            let (arm, point) = (difference.arm, difference.point);
            let subject = match points {
                1 => study.words(arm, point),
                _ if points == study.points.len() => at_all(study, arm),
                _ => format!("{} and {} more points", study.words(arm, point), points - 1),
            };
            let point = if points == 1 && study.is_sweep() { study.point_words(point) } else { "" };
            verdicts.push(Verdict { point: point.to_owned(), subject, ..verdict(study, difference, &quantity) });
        }
    }
    verdicts
}

/// The name in the place of a point where points are compared with each other.
pub(super) const OF_POINTS: &str = "points of the sweep";

/// The most points of a sweep that are compared in every main quantity; those of a larger one in the first alone.
const MOST_POINTS: usize = 12;

/// A comparison of two points of a sweep, of the same policy.
pub(super) struct OfPoints {
    pub arm: usize,
    pub point: usize,
    pub against: usize,
    pub difference: Estimate,
}

/// Which points are compared with which: all with the reference, and each with its neighbours that are not it.
pub(super) fn pairs_of_points(study: &Study<'_>) -> Vec<[usize; 2]> {
    let reference = study.sweep.reference;
    let mut pairs: Vec<[usize; 2]> =
        (0..study.points.len()).filter(|&point| point != reference).map(|point| [point, reference]).collect();
    for point in 0..study.points.len() {
        let others = study.sweep.before(point).into_iter().map(|(_, other)| other);
        pairs.extend(others.filter(|&other| ![point, other].contains(&reference)).map(|other| [point, other]));
    }
    pairs
}

/// Quantities that points of a sweep are compared in, each with the comparisons that there are.
pub(super) fn of_points(study: &Study<'_>) -> Vec<(Quantity, Vec<OfPoints>)> {
    if !study.is_sweep() {
        return Vec::new();
    }
    let pairs = pairs_of_points(study);
    let found = |quantity: Quantity| {
        let all = (0..study.arms.len()).flat_map(|arm| pairs.iter().map(move |&pair| (arm, pair)));
        let of = |(arm, pair): (usize, [usize; 2])| {
            let difference = study.between(arm, pair, &quantity.key)?;
            Some(OfPoints { arm, point: pair[0], against: pair[1], difference })
        };
        let found: Vec<OfPoints> = all.filter_map(of).collect();
        let differs = found.iter().any(|found| found.difference.mean != 0.0 || spread(&found.difference) != 0.0);
        differs.then_some((quantity, found))
    };
    // The quantity that the best point is chosen by comes first.
    let summary = &study.results[study.arms[0].folder].summary;
    let aim = Aim::of(summary).map(|aim| aim.key);
    let mut quantities: Vec<Quantity> = study.quantities().into_iter().filter(|quantity| quantity.is_main).collect();
    quantities.sort_by_key(|quantity| Some(&quantity.key) != aim.as_ref());
    let all = quantities.into_iter().filter_map(found);
    let most = if study.points.len() > MOST_POINTS { 1 } else { usize::MAX };
    all.take(most).collect()
}

/// What is compared: a policy at a point; the point alone where there is one policy.
fn subject(study: &Study<'_>, found: &OfPoints) -> String {
    if study.arms.len() == 1 { study.bare_words(found.point) } else { study.words(found.arm, found.point) }
}

/// Every point against the reference in the quantities that points are compared in, a row for each policy and point.
pub(super) fn overview_of_points(study: &Study<'_>) -> Option<Overview> {
    let all = of_points(study);
    let reference = study.sweep.reference;
    let mut rows: Vec<(String, String, Vec<Option<Verdict>>)> = Vec::new();
    for (arm, point) in (0..study.arms.len()).flat_map(|arm| (0..study.points.len()).map(move |point| (arm, point))) {
        let of = |(quantity, found): &(Quantity, Vec<OfPoints>)| {
            let is_it = |found: &&OfPoints| (found.arm, found.point, found.against) == (arm, point, reference);
            let found = found.iter().find(is_it)?;
            let verdict = verdict_against(study.bare_words(reference), &found.difference, quantity);
            Some((subject(study, found), verdict))
        };
        let cells: Vec<_> = all.iter().map(of).collect();
        if let Some((subject, _)) = cells.iter().flatten().next().cloned() {
            let cells = cells.into_iter().map(|cell| cell.map(|(_, verdict)| verdict)).collect();
            rows.push((subject, study.bare_words(reference), cells));
        }
    }
    let columns = all.iter().map(|(quantity, _)| quantity.heading()).collect();
    (!rows.is_empty()).then_some(Overview { columns, rows })
}

/// Every point of a sweep against the reference among points, and against its neighbours. Points with the same
/// difference, because the sweep does not affect the policy, are left out.
pub(super) fn verdicts_of_points(study: &Study<'_>) -> Vec<Verdict> {
    let verdict = |quantity: &Quantity, found: &OfPoints| Verdict {
        point: OF_POINTS.to_owned(),
        subject: subject(study, found),
        ..verdict_against(study.bare_words(found.against), &found.difference, quantity)
    };
    let of = |(quantity, found): &(Quantity, Vec<OfPoints>)| -> Vec<Verdict> {
        let feels = |arm: usize| found.iter().any(|found| found.arm == arm && !is_same(&found.difference));
        found.iter().filter(|found| feels(found.arm)).map(|found| verdict(quantity, found)).collect()
    };
    of_points(study).iter().flat_map(of).collect()
}

/// The main comparisons, a row for each policy, reference and point; `None` if policies do not differ.
pub(super) fn overview(study: &Study<'_>) -> Option<Overview> {
    let quantities = study.quantities().into_iter().filter(|quantity| quantity.is_main);
    let mut quantities: Vec<(Quantity, Vec<Difference>)> = quantities
        .map(|quantity| (found(study, &quantity), quantity))
        .map(|(found, quantity)| (quantity, found))
        .collect();
    quantities.retain(|(_, found)| !found.is_empty());
    let mut rows: Vec<(String, String, Vec<Option<Verdict>>)> = Vec::new();
    let references = |arm: usize| study.arms[arm].references.iter().filter(move |&&against| against != arm);
    let pairs = (0..study.arms.len()).flat_map(|arm| references(arm).map(move |&against| (arm, against)));
    for (arm, against) in pairs {
        let points = (0..study.points.len()).filter(|&point| !study.arms[arm].runs[point].is_empty());
        let cells = |point: usize| -> Vec<Option<Verdict>> {
            let cell = |(quantity, found): &(Quantity, Vec<Difference>)| {
                let is_it = |of: &&Difference| (of.arm, of.against, of.point) == (arm, against, point);
                Some(verdict(study, found.iter().find(is_it)?, quantity))
            };
            quantities.iter().map(cell).collect()
        };
        let all: Vec<(usize, Vec<Option<Verdict>>)> = points.map(|point| (point, cells(point))).collect();
        let against = || study.arms[against].label.clone();
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

/// The differences in a quantity; empty if no policy differs.
fn found(study: &Study<'_>, quantity: &Quantity) -> Vec<Difference> {
    let found = study.differences(&quantity.key);
    // The interval of a difference of shares has a width even where all runs reach a target.
    let is_share = quantity.key.starts_with("reached.");
    let differs = |found: &Difference| found.estimate.mean != 0.0 || !is_share && spread(&found.estimate) != 0.0;
    if found.iter().any(differs) { found } else { Vec::new() }
}

/// A comparison, without its names.
fn verdict(study: &Study<'_>, difference: &Difference, quantity: &Quantity) -> Verdict {
    let verdict = verdict_against(study.arms[difference.against].label.clone(), &difference.estimate, quantity);
    Verdict { pairs: if difference.is_paired { verdict.pairs } else { 0 }, ..verdict }
}

fn verdict_against(against: String, difference: &Estimate, quantity: &Quantity) -> Verdict {
    let (verdict, is_better) = judged(difference, quantity);
    Verdict {
        point: String::new(),
        quantity: quantity.words.clone(),
        subject: String::new(),
        against,
        difference: interval(difference),
        pairs: difference.n,
        verdict: verdict.to_owned(),
        seeds_needed: seeds_needed(difference),
        is_better,
    }
}

fn spread(difference: &Estimate) -> f64 {
    difference.ci95.map_or(0.0, |[low, high]| high - low)
}

/// The verdict on a difference, and whether it is good.
pub(super) fn judged(difference: &Estimate, quantity: &Quantity) -> (&'static str, Option<bool>) {
    let better = |found: Better| quantity.better.map(|better| better == found);
    if difference.mean == 0.0 && spread(difference) == 0.0 {
        return ("the same", None);
    }
    match difference.ci95.filter(|_| difference.n >= INTERVAL_SEEDS) {
        Some([_, high]) if high < 0.0 => ("lower", better(Better::Lower)),
        Some([low, _]) if low > 0.0 => ("higher", better(Better::Higher)),
        _ => (NOT_TOLD, None),
    }
}
