//! Why policies chose these clients: the numbers behind their decisions over rounds, and some decisions whole.

use super::figures::either;
use super::model::{Chart, Decided, Figure, Line, LineKind, Scale, Table, Why};
use super::study::{Study, id, linear, rounded, rounded_x};
use fedgenie_experiment::experiment::number;
use fedgenie_simulator::metrics::{Decision, Explained, Explanations, KeptRound, Spread};
use std::collections::BTreeMap;

/// Policies (at points of a sweep) that are shown.
const MOST_ARMS: usize = 12;

/// The series of candidates that were not chosen.
pub(super) const OTHERS: &str = "not chosen";

/// The explanations of every policy's decisions.
pub(super) fn why(study: &Study<'_>, warnings: &mut Vec<String>) -> Vec<(Why, Vec<Figure>)> {
    let is_explained = |&(arm, point): &(usize, usize)| {
        study.arms[arm].runs[point].values().any(|run| run.metrics.explanations.is_some())
    };
    let explained: Vec<(usize, usize)> = study.combinations().into_iter().filter(is_explained).collect();
    if explained.len() > MOST_ARMS {
        warnings.push(format!(
            "decisions are explained for the first {MOST_ARMS} of {} combinations of policy and point; run.json has those of \
             all",
            explained.len()
        ));
    }
    explained.into_iter().take(MOST_ARMS).filter_map(|(arm, point)| of_arm(study, arm, point)).collect()
}

fn of_arm(study: &Study<'_>, arm: usize, point: usize) -> Option<(Why, Vec<Figure>)> {
    let runs = &study.arms[arm].runs[point];
    let found: Vec<(u64, &Explanations)> =
        runs.iter().filter_map(|(&seed, run)| Some((seed, run.metrics.explanations.as_ref()?))).collect();
    let &(seed, first) = found.first()?;
    let words = study.words(arm, point);
    let name = id(&format!("why-{words}"));
    let joined = joined(&found);
    let figures: Vec<Figure> = joined
        .numbers
        .iter()
        .filter_map(|number| figure(&name, [&words, &study.arms[arm].label], number, &joined, found.len()))
        .collect();
    let mut sentences = Vec::new();
    if joined.numbers.is_empty() {
        sentences.push("The policy compares no numbers of candidates.".to_owned());
    }
    if joined.is_cut {
        let most = joined.numbers.len();
        sentences.push(format!("The first {most} of its numbers are followed; rounds.jsonl has all."));
    }
    if let (Some(kept), true) = (first.kept.last(), first.kept.len() > 1) {
        let shown = first.kept.len();
        let count = format!("Decisions of {shown} of {} rounds are shown, evenly spread and the last", kept.round);
        let seed = if found.len() > 1 { format!(", of seed {seed}") } else { String::new() };
        sentences.push(format!("{count}{seed}; rounds.jsonl has the recorded ones."));
    }
    let decisions = first.kept.iter().flat_map(decided).collect();
    Some((
        Why { id: name, policy: words, words: sentences, figures: Vec::new(), decisions, data: data(first) },
        figures,
    ))
}

/// What all seeds have, in windows of the widest.
fn joined(found: &[(u64, &Explanations)]) -> Explanations {
    let rounds_per_window = found.iter().map(|(_, found)| found.rounds_per_window).max().unwrap_or(1);
    let mut sum = Explanations { rounds_per_window, ..Explanations::default() };
    for (_, found) in found {
        sum.rounds = sum.rounds.max(found.rounds);
        sum.is_cut |= found.is_cut;
        let mut wide = Explanations { kept: Vec::new(), ..(*found).clone() };
        wide.widen(rounds_per_window);
        for number in wide.numbers {
            let is_it = |known: &&mut Explained| known.name == number.name && known.is_of_cloud == number.is_of_cloud;
            let Some(known) = sum.numbers.iter_mut().find(is_it) else {
                sum.numbers.push(number);
                continue;
            };
            known.windows.resize(known.windows.len().max(number.windows.len()), Default::default());
            for (known, window) in known.windows.iter_mut().zip(&number.windows) {
                known.iter_mut().zip(window).for_each(|(known, spread)| known.merge(spread));
            }
        }
    }
    sum
}

/// A number over rounds, of the chosen and of the others; `None` if it is never known.
fn figure(
    name: &str,
    [words, series]: [&str; 2],
    explained: &Explained,
    all: &Explanations,
    seeds: usize,
) -> Option<Figure> {
    let mut lines = Vec::new();
    for (index, series) in [series, OTHERS].into_iter().enumerate() {
        let of = |value: fn(&Spread) -> f64| -> Vec<(f64, f64)> {
            let known = explained.windows.iter().zip(0..).filter(|(window, _)| window[index].known > 0);
            known.map(|(window, number)| (middle(number, all), rounded(value(&window[index])))).collect()
        };
        let label = |word: &str| if index == 0 { format!("chosen, {word}") } else { word.to_owned() };
        let line = |role, label, points| Line {
            series: series.to_owned(),
            role,
            label,
            points,
            band: Vec::new(),
            is_staircase: false,
            has_dots: false,
        };
        let mean = of(|spread| spread.mean);
        if mean.is_empty() {
            continue;
        }
        lines.push(line(LineKind::Extreme, Some(label("lowest")), of(|spread| spread.min)));
        lines.push(line(LineKind::Extreme, Some(label("highest")), of(|spread| spread.max)));
        lines.push(line(LineKind::Mean, (index == 0).then(|| "chosen".to_owned()), mean));
    }
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (lowest, highest) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if lines.is_empty() {
        return None;
    }
    let what =
        if explained.is_of_cloud { format!("{} of edge servers", explained.name) } else { explained.name.clone() };
    let y = linear(&what, None);
    let window = match all.rounds_per_window {
        1 => "in each round".to_owned(),
        rounds => format!("in windows of {rounds} rounds"),
    };
    let seeds = if seeds > 1 { format!(", over {seeds} seeds") } else { String::new() };
    let caption = format!(
        "“{}” of the candidates that {words} chose, and of the others that it compared: means (thick), lowest and \
         highest values (thin) {window}{seeds}.",
        explained.name
    );
    let tier = if explained.is_of_cloud { "cloud-" } else { "" };
    Some(Figure {
        id: id(&format!("{name}-{tier}{}", explained.name)),
        title: format!("{words}: {what} of the chosen and of the others"),
        caption,
        method: "Infinite and unknown values are in no line.".to_owned(),
        choice: None,
        summary: vec![said("chosen", 0, explained), said(OTHERS, 1, explained)],
        chart: Chart::Lines {
            x: either(linear("round", None), Scale::Linear),
            y: match lowest > 0.0 {
                true => either(y, if highest > 10.0 * lowest { Scale::Log } else { Scale::Linear }),
                false => y,
            },
            lines,
            marks: Vec::new(),
        },
    })
}

/// The middle of a window.
fn middle(window: u32, all: &Explanations) -> f64 {
    let first = f64::from(window) * f64::from(all.rounds_per_window) + 1.0;
    let last = (first + f64::from(all.rounds_per_window) - 1.0).min(f64::from(all.rounds)).max(first);
    rounded_x(f64::midpoint(first, last))
}

/// A sentence on all rounds.
fn said(who: &str, index: usize, explained: &Explained) -> String {
    let mut all = Spread::default();
    explained.windows.iter().for_each(|window| all.merge(&window[index]));
    let numbers = [all.mean, all.min, all.max].map(|value| number(value).replace('-', "−"));
    let values = all.known + all.unknown;
    let known = match all.known {
        0 => String::new(),
        _ => format!(", mean {}, from {} to {}", numbers[0], numbers[1], numbers[2]),
    };
    let unknown = match all.unknown {
        0 => String::new(),
        unknown => format!("; {unknown} of them are infinite or unknown"),
    };
    format!("{who}: {values} values{known}{unknown}")
}

/// Selections of a round that are shown where it has several.
const MOST_SHOWN: usize = 2;

/// The decisions of a round as tables.
fn decided(kept: &KeptRound) -> Vec<Decided> {
    let of = |decision: &Decision| {
        let mut heading = format!("Round {}", kept.round);
        match (decision.turn, decision.server.as_deref()) {
            (Some(turn), Some("cloud")) => heading.push_str(&format!(", turn {turn} of the cloud")),
            (Some(turn), Some(server)) => heading.push_str(&format!(", turn {turn} of edge server {server}")),
            (Some(turn), None) => heading.push_str(&format!(", turn {turn}")),
            _ => {}
        }
        heading.push_str(&format!(": {} of {} candidates", decision.chosen, decision.candidates));
        for (name, value) in &decision.scalars {
            heading.push_str(&format!(", {name} {}", cell(*value)));
        }
        let mut notes = Vec::new();
        let rows = decision.clients.len();
        if (rows as u64) < decision.candidates {
            let by = decision.numbers.first().map_or_else(String::new, |(name, _)| {
                format!(": chosen ones, and others with the largest and the smallest “{name}”")
            });
            notes.push(format!("{rows} of {} candidates{by}.", decision.candidates));
        }
        if kept.selections > MOST_SHOWN as u64 {
            notes.push(format!("The round has {} selections; the CSV has more.", kept.selections));
        }
        let (table, is_chosen) = table(decision);
        Decided { heading, note: notes.join(" "), table, is_chosen }
    };
    kept.decisions.iter().take(MOST_SHOWN).map(of).collect()
}

/// A decision as a table, from the largest to the smallest of its first number, and which rows were chosen.
fn table(decision: &Decision) -> (Table, Vec<bool>) {
    let who = if decision.server.as_deref() == Some("cloud") { "edge server" } else { "client" };
    let named = |(name, _): &(String, Vec<Option<f64>>)| name.clone();
    let after = |(name, _): &(String, Vec<Option<f64>>)| format!("{name} afterwards");
    let columns = [who, "chosen"].map(str::to_owned).into_iter();
    let columns = columns.chain(decision.numbers.iter().map(named)).chain(decision.after.iter().map(after)).collect();
    let mut order: Vec<usize> = (0..decision.clients.len()).collect();
    if let Some((_, values)) = decision.numbers.first() {
        let key = |row: usize| values[row].unwrap_or(f64::INFINITY);
        order.sort_by(|&one, &other| key(other).total_cmp(&key(one)));
    }
    let line = |&row: &usize| {
        let is_chosen = decision.is_chosen[row];
        let head = [decision.clients[row].to_string(), if is_chosen { "yes" } else { "" }.to_owned()];
        let numbers = decision.numbers.iter().map(|(_, values)| cell(values[row]));
        let after = decision.after.iter().map(|(_, values)| if is_chosen { cell(values[row]) } else { String::new() });
        head.into_iter().chain(numbers).chain(after).collect()
    };
    let is_chosen = order.iter().map(|&row| decision.is_chosen[row]).collect();
    (Table { columns, rows: order.iter().map(line).collect() }, is_chosen)
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| number(value).replace('-', "−"))
}

/// All decisions that are kept, one candidate per row.
fn data(found: &Explanations) -> Table {
    const FIXED: usize = 5;
    let mut columns: Vec<String> = ["round", "turn", "server", "client", "chosen"].map(str::to_owned).to_vec();
    let mut rows: Vec<BTreeMap<usize, String>> = Vec::new();
    for kept in &found.kept {
        for decision in &kept.decisions {
            let from = rows.len();
            for (client, is_chosen) in decision.clients.iter().zip(&decision.is_chosen) {
                let turn = decision.turn.map_or_else(String::new, |turn| turn.to_string());
                let server = decision.server.clone().unwrap_or_default();
                let chosen = u8::from(*is_chosen).to_string();
                let cells = [kept.round.to_string(), turn, server, client.to_string(), chosen];
                rows.push(cells.into_iter().enumerate().collect());
            }
            let mut add = |name: String, value: &dyn Fn(usize) -> Option<f64>| {
                // Whatever a policy calls its numbers, they are not the first columns.
                let known = columns.iter().skip(FIXED).position(|known| *known == name);
                let column = known.map_or(columns.len(), |index| FIXED + index);
                if column == columns.len() {
                    columns.push(name);
                }
                for (row, cells) in rows[from..].iter_mut().enumerate() {
                    cells.insert(column, value(row).map_or_else(String::new, |value| value.to_string()));
                }
            };
            decision.numbers.iter().for_each(|(name, values)| add(name.clone(), &|row| values[row]));
            decision.after.iter().for_each(|(name, values)| add(format!("after.{name}"), &|row| values[row]));
            decision.scalars.iter().for_each(|(name, value)| add(format!("of_all.{name}"), &|_| *value));
        }
    }
    let width = columns.len();
    let row = |mut cells: BTreeMap<usize, String>| (0..width).map(|at| cells.remove(&at).unwrap_or_default()).collect();
    Table { columns, rows: rows.into_iter().map(row).collect() }
}
