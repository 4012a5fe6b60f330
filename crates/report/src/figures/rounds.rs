//! Selections over rounds, and durations of rounds.

use super::super::model::{Axis, Chart, Figure, Line, LineKind, Panel, Scale};
use super::super::study::{Arm, Study, linear, rounded, rounded_x};
use super::either;
use fedgenie_experiment::experiment::number;
use fedgenie_simulator::metrics::{Durations, Row, Selections};

/// The meaning of colours of selections.
const RATIO: &str = "Colours show a group's share of the selections divided by its share of the clients; uniform random selection \
                     gives 1.";

/// A policy's selections over all its seeds, in windows of so many rounds; `None` if its runs have other rows.
fn summed(arm: &Arm<'_>, rows: &[Row], rounds_per_window: u32) -> Option<Selections> {
    let mut sum = Selections { rows: rows.into(), rounds_per_window, ..Selections::default() };
    for run in arm.all_runs() {
        let mut found = run.metrics.selections.clone();
        if !same_rows(&found.rows, rows) {
            return None;
        }
        found.widen(rounds_per_window);
        sum.add(&found.windows);
    }
    (!sum.windows.is_empty()).then_some(sum)
}

fn same_rows(one: &[Row], other: &[Row]) -> bool {
    one.iter().map(|row| (&row.label, row.clients)).eq(other.iter().map(|row| (&row.label, row.clients)))
}

/// Each row's selections relative to uniform selection.
pub(super) fn ratios(counts: &[u64], rows: &[Row]) -> Vec<Option<f64>> {
    let (all, clients) = (counts.iter().sum::<u64>() as f64, rows.iter().map(|row| row.clients).sum::<u64>() as f64);
    let ratio = |(&count, row): (&u64, &Row)| {
        let expected = all * row.clients as f64 / clients;
        (expected > 0.0).then(|| rounded(count as f64 / expected))
    };
    counts.iter().zip(rows).map(ratio).collect()
}

/// The sentence where windows are not drawn: few rounds give extreme ratios, which would take the whole colour scale.
const SHORT: &str = "Windows in which runs had fewer than half of the rounds are left out.";

/// How many rounds of a policy's runs are in a window.
fn rounds_in(arm: &Arm<'_>, column: usize, width: u32) -> u64 {
    let before = column as u64 * u64::from(width);
    arm.all_runs().map(|run| u64::from(run.rounds).saturating_sub(before).min(u64::from(width))).sum()
}

/// Labels of rows, and of their axis. A single client is named where it is the same one in all runs.
pub(super) fn row_words(arms: &[Arm<'_>], rows: &[Row]) -> (Vec<String>, Axis) {
    let runs = || arms.iter().flat_map(Arm::all_runs).map(|run| &run.metrics.selections);
    let is_by_speed = runs().all(|found| found.is_by_speed);
    let label = |(index, row): (usize, &Row)| {
        let same =
            row.client.filter(|_| runs().all(|found| found.rows.get(index).and_then(|row| row.client) == row.client));
        match same {
            Some(client) if is_by_speed => format!("client {client} ({})", row.label),
            _ => row.label.clone(),
        }
    };
    let labels = rows.iter().enumerate().map(label).collect();
    let axis = match is_by_speed {
        true => "clients by true mean speed",
        false if rows.iter().any(|row| row.client.is_some()) => "client",
        false => "group of clients",
    };
    (labels, linear(axis, None))
}

/// Selections per group over rounds, a panel for each policy.
pub(super) fn selections(study: &Study<'_>, warnings: &mut Vec<String>) -> Option<Figure> {
    let runs = || study.arms.iter().flat_map(Arm::all_runs).map(|run| &run.metrics.selections);
    let rows = runs().find(|found| found.rows.len() > 1).map(|found| found.rows.clone())?;
    let width = runs().map(|found| found.rounds_per_window).max()?;
    let (mut panels, mut summary, mut last_round) = (Vec::new(), Vec::new(), 0);
    let (mut found, mut has_short) = (Vec::new(), false);
    for arm in study.arms.iter().filter(|arm| arm.all_runs().next().is_some()) {
        match summed(arm, &rows, width) {
            Some(selections) => {
                last_round = last_round.max(arm.all_runs().map(|run| run.rounds).max().unwrap_or(0));
                found.push((arm, selections));
            }
            None => warnings.push(format!(
                "selections of {} are not drawn: its runs have no counts, or count other groups than the first policy's runs",
                arm.label
            )),
        }
    }
    let columns = found.iter().map(|(_, selections)| selections.windows.len()).max()?;
    let (labels, y) = row_words(&study.arms, &rows);
    for (arm, selections) in found {
        let windows: Vec<_> = selections.windows.iter().map(|window| ratios(window, &rows)).collect();
        let is_short = |column: usize| {
            column > 0 && 2 * rounds_in(arm, column, width) < u64::from(width) * arm.all_runs().count() as u64
        };
        has_short |= (0..windows.len()).any(is_short);
        let cell = |row: usize, column: usize| {
            windows.get(column).filter(|_| !is_short(column)).and_then(|window| window[row])
        };
        let cells = (0..rows.len()).map(|row| (0..columns).map(|column| cell(row, column)).collect()).collect();
        panels.push(Panel { label: arm.label.clone(), cells, contour: Vec::new() });
        summary.push(total_words(&arm.label, &selections, &labels));
    }
    let window = |column: usize| {
        let first = column as u32 * width + 1;
        let last = first.saturating_add(width - 1).min(last_round);
        if first >= last { first.to_string() } else { format!("{first}–{last}") }
    };
    let seeds = if runs().count() > study.arms.len() { "summed over seeds" } else { "of one seed" };
    let rounds = if width == 1 { "one round".to_owned() } else { format!("{width} rounds") };
    Some(Figure {
        id: "selections".to_owned(),
        title: "Selections over rounds".to_owned(),
        caption: format!("Selections in windows of {rounds}, {seeds}. {RATIO}"),
        method: if has_short { SHORT.to_owned() } else { String::new() },
        summary,
        choice: None,
        chart: Chart::Heat {
            x: linear("rounds", None),
            columns: (0..columns).map(window).collect(),
            y,
            rows: labels,
            value: ratio_axis(),
            panels,
        },
    })
}

pub(super) fn ratio_axis() -> Axis {
    linear("selections relative to uniform selection", None)
}

/// The meaning of colours of selections, for captions.
pub(super) const fn ratio_words() -> &'static str {
    RATIO
}

/// Which rows were selected most and least in all rounds.
fn total_words(label: &str, selections: &Selections, rows: &[String]) -> String {
    let ratios = ratios(&selections.totals(), &selections.rows);
    let known = || ratios.iter().enumerate().filter_map(|(row, ratio)| Some((row, (*ratio)?)));
    let (most, least) =
        (known().max_by(|one, two| one.1.total_cmp(&two.1)), known().min_by(|one, two| one.1.total_cmp(&two.1)));
    match (most, least) {
        (Some((most, high)), Some((least, low))) => format!(
            "{label}: {} selected most often ({} times the uniform share), {} least often ({} times)",
            rows[most],
            number(high),
            rows[least],
            number(low)
        ),
        _ => format!("{label}: no selections"),
    }
}

/// A quantile: exact at the ends, three digits where it is read off between edges of bins.
fn quantile_words(durations: &Durations, share: f64) -> String {
    let found = durations.quantile(share).unwrap_or_default();
    if found == durations.min_s || found == durations.max_s {
        return format!("{} s", number(found));
    }
    let few: f64 = format!("{found:.2e}").parse().unwrap_or(found);
    format!("about {few} s")
}

/// The distribution of the rounds' durations.
pub(super) fn durations(study: &Study<'_>) -> Option<Figure> {
    let (mut lines, mut summary) = (Vec::new(), Vec::new());
    let (mut shortest, mut longest) = (f64::INFINITY, 0.0_f64);
    for arm in &study.arms {
        let mut all = Durations::default();
        arm.all_runs().for_each(|run| all.merge(&run.metrics.durations));
        if all.rounds == 0 {
            continue;
        }
        (shortest, longest) = (shortest.min(all.min_s), longest.max(all.max_s));
        summary.push(format!(
            "{}: mean {} s, minimum {} s, maximum {} s, median {}, 95 % quantile {} ({} rounds)",
            arm.label,
            number(all.mean_s),
            number(all.min_s),
            number(all.max_s),
            quantile_words(&all, 0.5),
            quantile_words(&all, 0.95),
            all.rounds
        ));
        lines.push(Line {
            series: arm.label.clone(),
            role: LineKind::Mean,
            label: None,
            points: all
                .distribution()
                .into_iter()
                .map(|(duration_s, share)| (rounded_x(duration_s), rounded(share)))
                .collect(),
            band: Vec::new(),
            is_staircase: false,
            has_dots: false,
        });
    }
    if lines.is_empty() {
        return None;
    }
    let first = if shortest > 0.0 && longest > 10.0 * shortest { Scale::Log } else { Scale::Linear };
    Some(Figure {
        id: "durations".to_owned(),
        title: "Durations of rounds".to_owned(),
        caption: "Cumulative distribution of the rounds' durations, all seeds together.".to_owned(),
        method: "The minimum and the maximum are exact, and so is the share of rounds that take exactly that long (a vertical line). \
                 In between, the distribution is known at 20 durations per factor of ten and interpolated linearly. Quantiles in the \
                 text are read from this curve; means are exact."
            .to_owned(),
        summary,
        choice: None,
        chart: Chart::Lines {
            x: either(linear("duration of a round", Some("s")), first),
            y: Axis { range: [Some(0.0), Some(1.0)], ..linear("share of rounds", None) },
            lines,
            marks: Vec::new(),
        },
    })
}
