//! The table at the end of a run.

use super::until::Until;
use super::{
    ArmSummary, Asked, CONVERGENCE, Ended, Reached, RunSummary, Summary, in_words, is_loss, number, show, warnings,
    without_results,
};
use crate::scenario::points;
use fedgenie_core::math::statistics::Estimate;
use fedgenie_core::metric::{Metric, Place, Statistic};
use fedgenie_core::text::escaped;
use std::collections::{BTreeMap, BTreeSet};

/// The table at the end of a run: one row per policy and point.
pub fn table(summary: &Summary) -> String {
    let (columns, main) = columns_of(summary);
    // The hardest target that policies can be compared at, or else the first of the others.
    let is_compared = |key: &str| {
        summary.arms.iter().any(|arm| arm.paired.as_ref().is_some_and(|paired| paired.differences.contains_key(key)))
    };
    let targets = columns.iter().rev().map(|(key, _)| key.as_str()).filter(|key| key.starts_with("time_to."));
    let regrets = ["regret.mean", "regret.realised", "regret.counterfactual", "regret.assignment"];
    let otherwise = regrets.into_iter().chain(main.as_deref()).chain(["virtual_time_s"]);
    let mut all = summary.aim.as_deref().into_iter().chain(targets).chain(otherwise);
    let compared: Option<String> = all.find(|key| is_compared(key)).map(str::to_owned);
    let compared = compared.as_deref();
    let mut rows = vec![vec!["policy".to_owned()]];
    rows[0].extend(columns.iter().map(|(_, title)| title.clone()));
    let reference = summary.arms.iter().find_map(|arm| arm.paired.as_ref()).map(|paired| &paired.against);
    if let (Some(compared), Some(reference)) = (compared, reference) {
        let title = columns.iter().find(|(key, _)| key == compared).map_or(compared, |(_, title)| title.as_str());
        rows[0].push(format!("{title} minus {reference}'s"));
    }
    let mut text = String::new();
    let names = points::names(&summary.points);
    for (point, name) in names.iter().enumerate() {
        let arms: Vec<&ArmSummary> = summary.arms.iter().filter(|arm| arm.point == point).collect();
        let lacking = lacking_at(summary, point);
        if summary.points.len() > 1 && !(arms.is_empty() && lacking.is_empty()) {
            rows.push(vec![format!("# {}", escaped(name))]);
        }
        for arm in arms {
            let mut row = vec![arm.arm.clone()];
            row.extend(columns.iter().map(|(key, _)| show_value(arm, key)));
            if let Some(compared) = compared {
                let difference = arm.paired.as_ref().and_then(|paired| paired.difference(compared));
                let pairs = arm.paired.as_ref().map_or(0, |paired| paired.pairs);
                row.push(difference.map_or_else(String::new, |estimate| show_difference(&estimate, pairs)));
            }
            rows.push(row);
        }
        rows.extend(rows_of_controls(summary, point, &columns));
        let dashes = columns.iter().map(|_| "–".to_owned());
        rows.extend(lacking.into_iter().map(|arm| std::iter::once(arm.to_owned()).chain(dashes.clone()).collect()));
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| {
            let cells = rows.iter().filter(|row| row.len() > 1).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        if let [heading] = row.as_slice() {
            text.push_str(heading);
            text.push('\n');
            continue;
        }
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            if column == 0 {
                line.push_str(cell);
                line.push_str(&padding);
            } else {
                line.push_str("   ");
                line.push_str(&padding);
                line.push_str(cell);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let legend = points::legend(&summary.points);
    let wide = legend.iter().map(|[name, _]| name.chars().count()).max().unwrap_or(0);
    for [name, setting] in legend {
        let padding = " ".repeat(wide - name.chars().count());
        text.push_str(&format!("# {}:{padding} {}\n", escaped(&name), escaped(&setting)));
    }
    let keys: Vec<&str> =
        columns.iter().map(|(key, _)| key.as_str()).filter(|key| key.starts_with("time_to.")).collect();
    for note in explained(summary, &keys) {
        text.push_str(&format!("{note}\n"));
    }
    if summary.arms.iter().any(|arm| !arm.medians.is_empty()) {
        text.push_str("times are medians over seeds, as latencies have no variance; their intervals need six seeds\n");
    }
    text.push_str(&notes_of_rows(summary, &columns));
    for sentence in unfinished(summary, &names) {
        text.push_str(&format!("{}\n", escaped(&sentence)));
    }
    for (label, words) in overridden(summary) {
        text.push_str(&format!("{label}: with {words}\n"));
    }
    for sentence in out_of_budget(summary) {
        text.push_str(&format!("{sentence}\n"));
    }
    for warning in warnings(summary) {
        text.push_str(&format!("warning: {}\n", escaped(&warning)));
    }
    text
}

/// The columns, as keys of values with their titles; and the key of the main metric.
fn columns_of(summary: &Summary) -> (Vec<(String, String)>, Option<String>) {
    let mut columns: Vec<(String, String)> =
        vec![("rounds".into(), "rounds".into()), ("virtual_time_s".into(), "virtual time [s]".into())];
    let has = |name: &str| summary.arms.iter().any(|arm| arm.values.contains_key(name));
    let metrics = shown_metrics(summary);
    for metric in &metrics {
        let key = format!("final.{}", metric.id);
        if has(&key) {
            columns.push((key, metric.id.words()));
        }
        // Policies that spend the same in different numbers of rounds are compared at their best.
        let best = format!("best.{}", metric.id);
        if metric.main && has(&best) && limits_traffic(summary) {
            columns.push((best, format!("best {}", metric.id.words())));
        }
    }
    add_attack_and_privacy(summary, &mut columns);
    // For servers, mean and deviation of the main metric; over the last rounds, if the scenario asks for these.
    let main = metrics.iter().find(|metric| metric.main).map(|metric| metric.id);
    let of_servers = |statistic: Statistic| {
        let id = main?.over(Place::Servers, statistic);
        [id.last(), id].into_iter().find(|id| has(&format!("final.{id}")))
    };
    let [mean, deviation] = [Statistic::Mean, Statistic::Sd].map(of_servers);
    for id in [mean, deviation].into_iter().flatten() {
        columns.push((format!("final.{id}"), id.words()));
    }
    for (key, title) in [
        ("regret.mean", "mean regret"),
        ("regret.realised", "realised regret"),
        ("regret.expected", "expected regret"),
        ("regret.expected-exact", "expected-exact"),
        ("regret.counterfactual", "counterfactual regret"),
        ("regret.assignment", "assignment regret"),
    ] {
        if has(key) {
            columns.push((key.to_owned(), title.to_owned()));
        }
    }
    if summary.arms.iter().any(|arm| arm.values.get("dropout_share").is_some_and(|share| share.mean > 0.0)) {
        columns.push(("dropout_share".to_owned(), "share dropped out".to_owned()));
    }
    // Where few clients could be selected, or few ever were.
    if is_told_who_was_asked(summary) {
        let asked =
            [("asked_mean", "mean asked"), ("arrived_mean", "mean arrived"), ("unique_clients", "clients used")];
        columns.extend(asked.map(|(key, title)| (key.to_owned(), title.to_owned())));
    }
    columns.extend(of_targets(summary));
    if summary.runs.iter().any(|run| run.converged.is_some()) {
        let key = format!("time_to.{CONVERGENCE}");
        columns.push((key.clone(), titled(&key)));
    }
    // The main metric within amounts of traffic.
    let amounts: BTreeSet<u64> = summary.runs.iter().flat_map(|run| run.at_bytes.keys().copied()).collect();
    if let Some(main) = main {
        let at = |bytes: &u64| (format!("at_bytes.{bytes}.{main}"), format!("{} at {}", main.words(), amount(*bytes)));
        columns.extend(amounts.iter().map(at));
    }
    (once(columns), mean.or(main).map(|id| format!("final.{id}")))
}

/// A row for each control that has a value in some column: its name in parentheses, then its metrics.
fn rows_of_controls(summary: &Summary, point: usize, columns: &[(String, String)]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (name, metrics) in &summary.controls[point] {
        let value = |key: &String| super::controls::value(metrics, key);
        if columns.iter().any(|(key, _)| value(key).is_some()) {
            let cell = |(key, _): &(String, String)| value(key).map_or_else(|| "–".to_owned(), show);
            rows.push(std::iter::once(format!("({name})")).chain(columns.iter().map(cell)).collect());
        }
    }
    rows
}

/// Whose rows are of fewer seeds, and what names in parentheses are, if there are any.
fn notes_of_rows(summary: &Summary, columns: &[(String, String)]) -> String {
    let dropped = summary.until.iter().flat_map(|plan| &plan.dropped);
    let of_dropped = |(label, seeds): (&String, &u32)| {
        format!("{label} has {seeds} seeds, since it was surely worse; its numbers are of these\n")
    };
    let mut notes: String = dropped.map(of_dropped).collect();
    if (0..summary.controls.len()).any(|point| !rows_of_controls(summary, point, columns).is_empty()) {
        let note = super::controls::note(summary.controls.iter().flat_map(BTreeMap::keys));
        notes.push_str(&format!("names in parentheses are controls: {note}\n"));
    }
    notes
}

/// Whether a policy could select few of its cohort somewhere, or selected few of all clients.
pub fn is_told_who_was_asked(summary: &Summary) -> bool {
    let mean = |arm: &ArmSummary, key: &str| arm.values.get(key).map_or(1.0, |estimate| estimate.mean);
    summary.arms.iter().any(|arm| Asked::is_told(mean(arm, "possible_share"), mean(arm, "unique_share")))
}

/// Policies that have no results at a point.
fn lacking_at(summary: &Summary, point: usize) -> Vec<&str> {
    let mut lacking: Vec<&str> = Vec::new();
    for run in summary.incomplete.iter().filter(|run| run.point == point) {
        let has_some = summary.arms.iter().any(|arm| arm.point == point && arm.arm == run.arm);
        if !has_some && !lacking.contains(&run.arm.as_str()) {
            lacking.push(&run.arm);
        }
    }
    lacking
}

/// The states of runs without results, policy by policy.
fn unfinished(summary: &Summary, points: &[String]) -> Vec<String> {
    let mut labels: Vec<&str> = Vec::new();
    for run in &summary.incomplete {
        if !labels.contains(&run.arm.as_str()) {
            labels.push(&run.arm);
        }
    }
    let has_some = |label: &str, point| summary.arms.iter().any(|arm| arm.arm == label && arm.point == point);
    let mut sentences = without_results(&labels, points, has_some, &summary.incomplete, |runs| in_words(runs));
    for label in labels {
        let words = in_words(summary.incomplete.iter().filter(|run| run.arm == label && has_some(label, run.point)));
        if !words.is_empty() {
            sentences.push(format!("{label}: {words}, and numbers are of the other runs"));
        }
    }
    sentences
}

/// Bytes in the largest unit that leaves a whole number: `30 MB`.
fn amount(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = UNITS.iter().find(|(size, _)| bytes > 0 && bytes.is_multiple_of(*size));
    unit.map_or_else(|| format!("{bytes} B"), |(size, name)| format!("{} {name}", bytes / size))
}

/// How many runs of each policy the budget ended, policies with as many together.
fn out_of_budget(summary: &Summary) -> Vec<String> {
    let mut labels: Vec<&str> = Vec::new();
    for arm in &summary.arms {
        if !labels.contains(&arm.arm.as_str()) {
            labels.push(&arm.arm);
        }
    }
    let mut alike: Vec<([usize; 2], Vec<&str>)> = Vec::new();
    for &label in &labels {
        let runs = || summary.runs.iter().filter(|run| run.arm == label);
        let count = [runs().filter(|run| run.ended == Some(Ended::Budget)).count(), runs().count()];
        match alike.iter_mut().find(|(known, _)| *known == count) {
            Some((_, policies)) => policies.push(label),
            None => alike.push((count, vec![label])),
        }
    }
    let sentence = |([ended, runs], policies): ([usize; 2], Vec<&str>)| {
        let whose = match policies.len() {
            1 => policies[0].to_owned(),
            several if several == labels.len() => "each policy".to_owned(),
            _ => format!("each of {}", policies.join(", ")),
        };
        (ended > 0).then(|| format!("the budget ended {ended} of {runs} runs of {whose}"))
    };
    alike.into_iter().filter_map(sentence).collect()
}

/// Whether traffic is limited, or metrics are reported at an amount of it.
fn limits_traffic(summary: &Summary) -> bool {
    summary.runs.iter().any(|run| run.ended == Some(Ended::Budget) || !run.at_bytes.is_empty())
}

/// Columns of what hostile clients reached, of what was told of clients, and of what `[report]` asks for.
fn add_attack_and_privacy(summary: &Summary, columns: &mut Vec<(String, String)>) {
    let of = [
        ("final.test_attack_success", "attack success"),
        ("final.adversary_share", "adversary share"),
        ("final.epsilon", "ε"),
    ];
    for (key, title) in of {
        let has = summary.arms.iter().any(|arm| arm.values.contains_key(key));
        if has && columns.iter().all(|(known, _)| known != key) {
            columns.push((key.to_owned(), title.to_owned()));
        }
    }
    add_wanted(summary, columns);
}

/// Each column once: where it is first, with the title that it has last, which is the table's own.
fn once(columns: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (key, title) in columns {
        match all.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = title,
            None => all.push((key, title)),
        }
    }
    all
}

/// Columns that `[report]` asks for, and its aim, as far as they are not there yet.
fn add_wanted(summary: &Summary, columns: &mut Vec<(String, String)>) {
    // Columns of targets are known later.
    let wanted = summary.report.columns.iter().chain(&summary.aim).filter(|key| !key.contains("_to."));
    for key in wanted {
        let has = summary.arms.iter().any(|arm| arm.values.contains_key(key));
        if has && columns.iter().all(|(known, _)| known != key) {
            columns.push((key.clone(), titled(key)));
        }
    }
}

/// The main metric and those on test data; where they are many, the loss and the main one.
fn shown_metrics(summary: &Summary) -> Vec<Metric> {
    const MANY: usize = 4;
    let is_shown = |metric: &&Metric| metric.id.place == Place::Test || metric.main;
    let of_run = |run: &RunSummary| run.measured.iter().filter(is_shown).cloned().collect();
    let mut metrics: Vec<Metric> = summary.runs.first().map_or_else(Vec::new, of_run);
    if metrics.len() > MANY {
        metrics.retain(|metric| metric.main || is_loss(metric.id));
    }
    metrics
}

/// Settings that policies override, in words: `protocol.synchronous.cohort = 8`. A setting that a sweep changes is
/// shown with all its values; each point's value stands above its rows.
pub fn overridden(summary: &Summary) -> Vec<(String, String)> {
    let mut policies: Vec<(&str, BTreeMap<&str, Vec<&str>>)> = Vec::new();
    for arm in summary.arms.iter().filter(|arm| !arm.with.is_empty()) {
        let index = policies.iter().position(|(label, _)| *label == arm.arm).unwrap_or_else(|| {
            policies.push((&arm.arm, BTreeMap::new()));
            policies.len() - 1
        });
        for (path, value) in &arm.with {
            let values = policies[index].1.entry(path).or_default();
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
    }
    let words = |settings: BTreeMap<&str, Vec<&str>>| {
        let setting = |(path, values): (&str, Vec<&str>)| format!("{path} = {}", values.join(" or "));
        settings.into_iter().map(setting).collect::<Vec<_>>().join(", ")
    };
    policies.into_iter().map(|(label, settings)| (label.to_owned(), words(settings))).collect()
}

/// Targets in the order of the scenario.
fn target_names(summary: &Summary) -> Vec<String> {
    summary.runs.first().map_or_else(Vec::new, |run| run.reached.iter().map(Reached::name).collect())
}

/// A value, and the number of runs that have it, or arrive, if not all do.
fn show_value(arm: &ArmSummary, key: &str) -> String {
    let median = arm.medians.get(key).map(|median| Estimate::from(*median));
    match (median.as_ref().or_else(|| arm.values.get(key)), arm.until.get(key)) {
        (Some(estimate), Some(until)) => until.beyond().unwrap_or_else(|| show_until(estimate, until)),
        (None, Some(until)) => until.beyond().unwrap_or_else(|| "–".to_owned()),
        (found, None) => found.map_or_else(|| "–".to_owned(), |estimate| show_of(estimate, arm.runs)),
    }
}

/// A restricted mean, and the number of runs that arrive if not all do.
pub fn show_until(estimate: &Estimate, until: &Until) -> String {
    match until.arrived == until.runs {
        true => show(estimate),
        false => format!("{} ({}/{})", show(estimate), until.arrived, until.runs),
    }
}

/// The meaning of the columns of targets, where it needs an explanation.
fn explained(summary: &Summary, keys: &[&str]) -> Vec<String> {
    let of = |key: &str| summary.arms.iter().filter_map(|arm| arm.until.get(key)).collect::<Vec<_>>();
    let horizons = |key: &&str| {
        let mut horizons: Vec<f64> = of(key).iter().filter_map(|until| until.horizon).collect();
        horizons.sort_by(f64::total_cmp);
        let (least, most) = (*horizons.first()?, *horizons.last()?);
        let to = if least < most { format!("{} to {}", number(least), number(most)) } else { number(least) };
        Some(format!("{} at most {to}", titled(key)))
    };
    let limited: Vec<String> = keys.iter().filter_map(horizons).collect();
    let mut notes = Vec::new();
    if !limited.is_empty() {
        let shown = limited.join(", ");
        notes.push(format!(
            "runs that never arrive count with the end of the first of them: {shown}; (2/3) is how many arrive"
        ));
    }
    if keys.iter().any(|key| of(key).iter().any(|until| until.at_least.is_some())) {
        notes.push(
            "> 1200 (2/3): a run of the policy ended without arriving before another arrived; the mean is above this number"
                .to_owned(),
        );
    }
    let grids = |key: &&str| {
        let grid = of(key).iter().map(|until| until.grid).fold(0.0, f64::max);
        (grid > 0.0).then(|| format!("{} up to {} before", titled(key), number(grid)))
    };
    let grids: Vec<String> = keys.iter().filter_map(grids).collect();
    if !grids.is_empty() {
        let shown = grids.join(", ");
        notes.push(format!("a target is seen at evaluations, and intervals reach back to the one before: {shown}"));
    }
    notes
}

/// Columns of spending until targets.
fn of_targets(summary: &Summary) -> Vec<(String, String)> {
    let of_jobs = summary.runs.iter().any(|run| run.energy.is_some()).then_some("joules_to");
    let spent: Vec<&str> = ["time_to", "bytes_to"].into_iter().chain(of_jobs).collect();
    let of = |name: String| spent.clone().into_iter().map(move |what| format!("{what}.{name}"));
    target_names(summary).into_iter().flat_map(of).map(|key| (key.clone(), titled(&key))).collect()
}

/// The heading of spending until a target.
fn titled(key: &str) -> String {
    match key.split_once('.') {
        Some(("time_to", target)) => format!("s to {target}"),
        Some(("bytes_to", target)) => format!("bytes to {target}"),
        Some(("joules_to", target)) => format!("J to {target}"),
        Some(("final", metric)) => metric.replace('_', " "),
        Some(("best", metric)) => format!("best {}", metric.replace('_', " ")),
        _ => key.to_owned(),
    }
}

fn show_of(estimate: &Estimate, runs: usize) -> String {
    if estimate.n == runs { show(estimate) } else { format!("{} ({}/{runs})", show(estimate), estimate.n) }
}

fn show_difference(estimate: &Estimate, runs: usize) -> String {
    let sign = if estimate.mean > 0.0 { "+" } else { "" };
    format!("{sign}{}", show_of(estimate, runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_seeds_have_no_interval_and_missing_ones_are_marked() {
        let two = Estimate { mean: 2.0, ci95: Some([-10.0, 14.0]), n: 2 };
        let three = Estimate { n: 3, ci95: Some([1.5, 2.5]), ..two };
        assert_eq!((show_of(&two, 2), show_of(&three, 3)), ("2".to_owned(), "2 ± 0.5000".to_owned()));
        assert_eq!(
            (show_difference(&two, 3), show_difference(&three, 3)),
            ("+2 (2/3)".to_owned(), "+2 ± 0.5000".to_owned())
        );
    }

    #[test]
    fn an_interval_around_another_middle_has_both_ends() {
        let grid = Estimate { mean: 5404.0, ci95: Some([5224.0, 5404.0]), n: 3 };
        assert_eq!(show(&grid), "5404 [5224, 5404]");
        let mut until = Until {
            arrived: 2,
            runs: 3,
            horizon: Some(5400.0),
            at_least: None,
            median: None,
            median_ci95: [None; 2],
            grid: 180.0,
        };
        assert_eq!(show_until(&grid, &until), "5404 [5224, 5404] (2/3)");
        assert_eq!(until.beyond(), None);
        until.arrived = 0;
        assert_eq!(until.beyond().as_deref(), Some("> 5400"));
    }
}
