//! Plausibility of a `run.json`: its parts fit together, and sums over all runs of an experiment stay in range. A
//! report adds up its numbers, and the file is untrusted.

use super::super::RunSummary;
use fedgenie_simulator::metrics::{Decision, Durations, Explanations, MOST_WINDOWS, RunMetrics, Selections};

/// Largest accepted count: a million times as many fit in 64 bits.
const COUNT_MAX: u64 = 1 << 43;

fn all_counts(counts: impl IntoIterator<Item = u64>) -> bool {
    counts.into_iter().all(|count| count <= COUNT_MAX)
}

/// Whether the summary is plausible.
pub fn is_possible(run: &RunSummary) -> bool {
    let RunMetrics { durations, selections, clients, explanations } = &run.metrics;
    let outcomes = &run.outcomes;
    let lost = outcomes.dropped.iter().chain(&outcomes.lost_late).map(|lost| lost.jobs);
    let rounds = [outcomes.abandoned_rounds, outcomes.edge_rounds, outcomes.abandoned_edge_rounds];
    all_counts([outcomes.arrived, outcomes.late, outcomes.joined])
        && all_counts(rounds)
        && all_counts(lost)
        && are_durations(durations)
        && are_selections(selections, run.rounds)
        && clients.as_ref().is_none_or(|clients| clients.are(run.clients))
        && explanations.as_ref().is_none_or(|found| are_explanations(found, run.rounds))
}

fn are_durations(durations: &Durations) -> bool {
    let Durations { rounds, bins, at_min, at_max, .. } = durations;
    let counted = bins.iter().try_fold(0_u64, |sum, &(_, count)| sum.checked_add(count));
    let ascend = bins.is_sorted_by(|(one, _), (other, _)| one < other);
    *rounds <= COUNT_MAX && counted == Some(*rounds) && at_min.max(at_max) <= rounds && ascend
}

/// Whether the windows are at most the allowed number, each of a power of two of rounds, and begin within the run; a
/// run without rounds has none.
const fn are_windows(windows: usize, rounds_per_window: u32, rounds: u32) -> bool {
    match windows.checked_sub(1) {
        None => rounds_per_window == 0 || rounds_per_window.is_power_of_two(),
        Some(last) => {
            let begins_within = last as u64 * (rounds_per_window as u64) < rounds as u64;
            rounds_per_window.is_power_of_two() && last < MOST_WINDOWS && (begins_within || last == 0)
        }
    }
}

fn are_selections(selections: &Selections, run: u32) -> bool {
    let Selections { rows, rounds_per_window, windows, .. } = selections;
    are_windows(windows.len(), *rounds_per_window, run)
        && (windows.is_empty() || windows.rows() == rows.len())
        && windows.iter().all(|window| all_counts(window.iter().copied()))
        && all_counts(rows.iter().map(|row| row.clients))
}

fn are_explanations(explanations: &Explanations, run: u32) -> bool {
    let Explanations { rounds_per_window, numbers, kept, .. } = explanations;
    let spreads = numbers.iter().flat_map(|number| number.windows.iter().flatten());
    let most = numbers.iter().map(|number| number.windows.len()).max().unwrap_or(0);
    are_windows(most, *rounds_per_window, run)
        && spreads.into_iter().all(|spread| all_counts([spread.known, spread.unknown]))
        && kept.iter().flat_map(|round| &round.decisions).all(is_decision)
}

fn is_decision(decision: &Decision) -> bool {
    let Decision { clients, is_chosen, numbers, after, .. } = decision;
    let are_all = |values: &Vec<Option<f64>>| values.len() == clients.len();
    is_chosen.len() == clients.len() && numbers.iter().chain(after).all(|(_, values)| are_all(values))
}
