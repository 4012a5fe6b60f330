//! Warnings about the runs of an experiment: the one list that tables, pages, comparisons and exports show.

mod targets;
mod unfair;

use super::answers::questions;
use super::asked::is_scarce;
use super::controls::{self, CENTRALISED, INITIAL};
use super::{ROUNDING, RunSummary, Summary, number};
use crate::scenario::points;
use fedgenie_core::metric::Better;
use fedgenie_learning::algorithm::privacy::PrivacyEntry;
use fedgenie_simulator::world::World;
use std::collections::BTreeMap;
pub(super) use targets::backward as backward_targets;

/// The warnings at the end of a run, in sentences.
pub(super) fn of_run(world: &World, run: &RunSummary) -> Vec<String> {
    let of_rounds =
        without_arrivals(run).into_iter().chain(mostly_abandoned(run)).chain(mostly_abandoned_at_edges(run));
    of_rounds.chain(worse_than_at_first(world, run)).chain(never_finite(run)).chain(not_covered(run)).collect()
}

/// What ε does not cover.
fn not_covered(run: &RunSummary) -> Option<String> {
    let PrivacyEntry { epsilon, uncovered, .. } = run.privacy.as_ref()?;
    let uncovered = uncovered.as_ref()?;
    epsilon.map(|epsilon| format!("ε = {}: {uncovered}", number(epsilon)))
}

/// Metrics that were measured, and were a number in no evaluation.
fn never_finite(run: &RunSummary) -> Option<String> {
    let is_none = |&(name, value): &(&String, &f64)| value.is_nan() && !run.best.contains_key(name);
    let never: Vec<&str> = run.final_metrics.iter().filter(is_none).map(|(name, _)| name.as_str()).collect();
    let were = if never.len() == 1 { "was" } else { "were" };
    let named = never.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    let more = if never.len() > 3 { format!(" and {} more", never.len() - 3) } else { String::new() };
    let told = || format!("{named}{more} {were} measured, and {were} a finite number in no evaluation");
    (!never.is_empty()).then(told)
}

/// At least half of the rounds had fewer updates than they need, and made no model.
fn mostly_abandoned(run: &RunSummary) -> Option<String> {
    let (abandoned, rounds) = (run.outcomes.abandoned_rounds, u64::from(run.rounds));
    let told = || {
        let (abandoned, rounds) = (with_commas(abandoned), with_commas(rounds));
        format!("{abandoned} of {rounds} rounds were abandoned: fewer updates arrived than a round needs")
    };
    (run.arrived > 0 && 2 * abandoned >= rounds && abandoned > 0).then(told)
}

/// At least half of the rounds of edge servers had fewer updates than they need, and left their models as they were.
fn mostly_abandoned_at_edges(run: &RunSummary) -> Option<String> {
    let (abandoned, rounds) = (run.outcomes.abandoned_edge_rounds, run.outcomes.edge_rounds);
    let told = || {
        let (abandoned, rounds) = (with_commas(abandoned), with_commas(rounds));
        format!(
            "{abandoned} of {rounds} rounds of edge servers were abandoned: fewer updates arrived than a round needs"
        )
    };
    (abandoned > 0 && 2 * abandoned >= rounds).then(told)
}

/// No update ever arrived.
fn without_arrivals(run: &RunSummary) -> Option<String> {
    let is_none = run.dispatched > 0 && run.arrived == 0 && run.outcomes.arrived == 0 && run.outcomes.joined == 0;
    let rounds = if run.rounds == 1 { "round" } else { "rounds" };
    is_none.then(|| format!("no update arrived in {} {rounds}", with_commas(u64::from(run.rounds))))
}

/// The trained model is worse than the initial one, by its loss on test data, or by the main metric where smaller is
/// better.
fn worse_than_at_first(world: &World, run: &RunSummary) -> Vec<String> {
    let found = loss_of(world).map(|name| {
        let last = [(None, run.final_metrics.get(&name)), (Some(CENTRALISED), control(run, CENTRALISED, &name))];
        last.into_iter().filter_map(|(of, last)| worse((world, run), &name, of, *last?)).collect()
    });
    found.unwrap_or_default()
}

fn control<'a>(run: &'a RunSummary, control: &str, name: &str) -> Option<&'a f64> {
    run.controls.get(control)?.get(name)
}

/// The metric that tells whether a model is worse than the initial one.
fn loss_of(world: &World) -> Option<String> {
    let measures = &world.measures;
    let judged = || measures.main().filter(|measure| measure.better == Better::Lower);
    let measure = measures.loss().map(|(_, loss)| loss).or_else(judged)?;
    Some(measures.of_models(measure).to_string())
}

/// The sentence on a model, of a control or of the run, whose loss is above that of the initial one.
fn worse((world, run): (&World, &RunSummary), name: &str, of: Option<&str>, last: f64) -> Option<String> {
    let first = *control(run, INITIAL, name)?;
    let is_worse = first.is_finite() && (last.is_nan() || last - first > ROUNDING * first.abs());
    let has_hostile = world.adversaries.as_ref().is_some_and(|hostile| !hostile.clients.is_empty());
    let is_noisy =
        world.training.algorithm.privacy.as_ref().is_some_and(|privacy| privacy.config.noise_multiplier > 0.0);
    let (what, remedy) = match of {
        None if has_hostile => ("the loss at the end".to_owned(), "hostile clients may be why"),
        None if is_noisy => (
            "the loss at the end".to_owned(),
            "the noise of [privacy.dp-fedavg] may be why: more clients a round, or a smaller noise_multiplier, may help",
        ),
        None => {
            ("the loss at the end".to_owned(), "a smaller learning rate may help, or normalize = true if it is not set")
        }
        Some(control) => {
            (format!("the loss of the control {control}"), "fewer epochs or a smaller learning rate may help")
        }
    };
    is_worse.then(|| {
        format!(
            "{what} is above that of the initial model: {name} {}, and {} before training; {remedy}",
            number(last),
            number(first)
        )
    })
}

/// A whole number in groups of three digits: `1,350`.
fn with_commas(count: u64) -> String {
    let digits = count.to_string();
    let parts: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    parts.iter().map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join(",")
}

/// All warnings about an experiment's runs, policy by policy: those of single runs, seeds with the same warning
/// together, and those of all runs of a policy at a point.
pub fn warnings(summary: &Summary) -> Vec<String> {
    let mut all = Vec::new();
    let has = |key: &String| summary.arms.iter().any(|arm| arm.values.contains_key(key) || arm.until.contains_key(key));
    if let Some(key) = summary.aim.as_ref().filter(|key| !has(key)) {
        let first = questions(summary).first().map_or_else(|| "nothing".to_owned(), |aim| aim.key.clone());
        all.push(format!("[report] aim = {key:?} is no number of these runs; they are compared by {first}"));
    }
    let unknown: Vec<&str> = summary.report.columns.iter().filter(|key| !has(key)).map(String::as_str).collect();
    if !unknown.is_empty() && !summary.arms.is_empty() {
        all.push(format!("[report] columns: no number of these runs is called {}", unknown.join(", ")));
    }
    all.extend(without_common_metric(summary));
    let names = points::names(&summary.points);
    for arm in &summary.arms {
        let at = match summary.points.len() {
            0 | 1 => arm.arm.clone(),
            _ => format!("{}, {}", arm.arm, names[arm.point]),
        };
        let runs: Vec<&RunSummary> =
            summary.runs.iter().filter(|run| run.arm == arm.arm && run.point == arm.point).collect();
        let mut said: Vec<(&String, Vec<u64>)> = Vec::new();
        for (run, warning) in runs.iter().flat_map(|run| run.warnings.iter().map(move |warning| (run, warning))) {
            match said.iter_mut().find(|(known, _)| *known == warning) {
                Some((_, seeds)) => seeds.push(run.seed),
                None => said.push((warning, vec![run.seed])),
            }
        }
        all.extend(said.into_iter().map(|(warning, seeds)| format!("{at}, {}: {warning}", of_seeds(&seeds))));
        all.extend(scarce(&runs).map(|words| format!("{at}: {words}")));
    }
    all.extend(targets::met_at_first(summary));
    all.extend(controls::unbeaten(summary));
    all.extend(unfair::warnings(summary));
    all
}

/// Policies whose models are measured in different places, so that no metric compares them.
fn without_common_metric(summary: &Summary) -> Option<String> {
    let mains = summary.runs.iter().filter_map(|run| run.measured.iter().find(|metric| metric.main));
    let mut mains: Vec<String> = mains.map(|metric| metric.id.to_string()).collect();
    mains.sort_unstable();
    mains.dedup();
    (mains.len() > 1 && summary.aim.is_none()).then(|| {
        let mains = mains.join(" and by ");
        format!(
            "models of these policies are measured by {mains}, and are not compared; write clients = true in [evaluate]"
        )
    })
}

/// Seeds in words: `seed 1`, `seeds 1, 4`, `seeds 1 to 20`.
fn of_seeds(seeds: &[u64]) -> String {
    let are_counted = seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    match seeds {
        [only] => format!("seed {only}"),
        [first, .., last] if are_counted && seeds.len() > 2 => format!("seeds {first} to {last}"),
        _ => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A warning that few clients could be selected, the others being away or busy.
fn scarce(runs: &[&RunSummary]) -> Option<String> {
    let known: Vec<_> = runs.iter().filter_map(|run| Some((run.asked?, run.numbers()))).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / known.len() as f64;
    let of = |key: &str| mean(&mut known.iter().map(|(_, numbers): &(_, BTreeMap<String, f64>)| numbers[key]));
    if known.is_empty() || !is_scarce(of("possible_share")) {
        return None;
    }
    let has_batteries = runs.iter().any(|run| run.energy.is_some());
    let away = if has_batteries { "away, busy or below their reserve" } else { "away or busy" };
    Some(format!(
        "on average {} of the {} clients of a cohort could be asked, the others being {away}; {} were asked, {} \
         arrived in their round, and {} of {} clients were ever asked",
        number(mean(&mut known.iter().map(|(asked, _)| asked.possible))),
        number(mean(&mut known.iter().map(|(asked, _)| asked.cohort))),
        number(of("asked_mean")),
        number(of("arrived_mean")),
        number(of("unique_clients")),
        runs.first().map_or(0, |run| run.clients),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_seeds_are_words() {
        let shown: Vec<_> = [0, 999, 1_350, 1_000_000].into_iter().map(with_commas).collect();
        assert_eq!(shown, ["0", "999", "1,350", "1,000,000"]);
        let seeds = [&[3][..], &[1, 2], &[1, 2, 3], &[1, 3, 4]].map(of_seeds);
        assert_eq!(seeds, ["seed 3", "seeds 1, 2", "seeds 1 to 3", "seeds 1, 3, 4"]);
    }
}
