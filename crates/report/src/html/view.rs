//! A report in the shape in which the template shows it.

use super::super::verdicts::OF_POINTS;
use super::data_tables::{DataTable, data_tables};
use super::numbers;
use super::{LIBRARY, LICENCES, SCRIPTS, STYLE};
use crate::{Chart, Decided, Experiment, Figure, Overview, Report, Table, Verdict, Why};
use askama::Template;

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page<'a> {
    title: &'a str,
    /// What a script of the page must carry in order to run.
    nonce: String,
    style: &'static str,
    library: &'static str,
    scripts: [&'static str; 6],
    licences: [&'static str; 3],
    data: &'a str,
    experiments: &'a [Experiment],
    /// Facts' names, each with its value per experiment.
    facts: Vec<(&'a str, Vec<&'a str>)>,
    answers: &'a [String],
    warnings: &'a [String],
    /// The main comparisons at a glance, where all of them would be a long list.
    overviews: Vec<OverviewView<'a>>,
    /// Comparisons under headings; a single group without one is shown at once.
    verdicts: Vec<VerdictGroup<'a>>,
    results: &'a Table,
    figures: Vec<FigureView<'a>>,
    /// Whether the list of all figures is folded.
    has_many_figures: bool,
    why: Vec<WhyView<'a>>,
}

struct OverviewView<'a> {
    of: &'a Overview,
    /// Subject, the policy that it is compared with, and a cell for each column.
    rows: Vec<(&'a str, &'a str, Vec<Option<VerdictView<'a>>>)>,
}

struct VerdictGroup<'a> {
    heading: String,
    rows: Vec<VerdictView<'a>>,
}

struct VerdictView<'a> {
    of: &'a Verdict,
    difference: String,
    ends: String,
    /// "better", "worse" or nothing.
    worth: &'static str,
}

struct WhyView<'a> {
    of: &'a Why,
    decisions: Vec<DecisionView<'a>>,
}

struct DecisionView<'a> {
    of: &'a Decided,
    /// Whether it is shown at first.
    is_open: bool,
}

impl DecisionView<'_> {
    /// Cells, and whether their candidate was chosen.
    fn rows(&self) -> impl Iterator<Item = (&Vec<String>, bool)> {
        self.of.table.rows.iter().zip(self.of.is_chosen.iter().copied())
    }
}

struct FigureView<'a> {
    of: &'a Figure,
    number: usize,
    /// Read aloud instead of the picture.
    spoken: String,
    tables: Vec<DataTable>,
    /// Whether it belongs to what a policy says of its decisions.
    is_why: bool,
    /// How high the picture is before it is drawn, so that the page does not jump.
    height: usize,
}

pub(super) fn page<'a>(report: &'a Report, data: &'a str) -> Page<'a> {
    let all = serde_json::to_vec(report).expect("numbers and texts are always JSON");
    Page {
        title: &report.title,
        nonce: blake3::hash(&all).to_hex()[..32].to_owned(),
        style: STYLE,
        library: LIBRARY,
        scripts: SCRIPTS,
        licences: LICENCES,
        data,
        experiments: &report.experiments,
        facts: facts(&report.experiments),
        answers: &report.answers,
        warnings: &report.warnings,
        overviews: overviews(report),
        verdicts: verdict_groups(report),
        results: &report.results,
        figures: report.figures.iter().enumerate().map(|figure| figure_view(report, figure)).collect(),
        has_many_figures: report.figures.len() > MOST_OPEN,
        why: report.why.iter().map(why).collect(),
    }
}

/// The most rows of a table that is open at first.
const MOST_OPEN: usize = 30;

/// The last decision is shown at first, if it is short.
fn why(of: &Why) -> WhyView<'_> {
    let mut decisions: Vec<_> = of.decisions.iter().map(|of| DecisionView { of, is_open: false }).collect();
    if let Some(last) = decisions.last_mut() {
        last.is_open = last.of.table.rows.len() <= MOST_OPEN;
    }
    WhyView { of, decisions }
}

/// The facts of all experiments side by side, in the order in which names appear.
fn facts(experiments: &[Experiment]) -> Vec<(&str, Vec<&str>)> {
    let mut names: Vec<&str> = Vec::new();
    for [name, _] in experiments.iter().flat_map(|experiment| &experiment.facts) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let value = |experiment: &'_ Experiment, wanted: &str| -> Option<usize> {
        experiment.facts.iter().position(|[name, _]| name == wanted)
    };
    let row = |name| {
        let cell = |experiment| value(experiment, name).map_or("–", |index| experiment.facts[index][1].as_str());
        (name, experiments.iter().map(cell).collect())
    };
    names.into_iter().map(row).collect()
}

/// Whether all comparisons in one list would be longer than anybody reads.
fn has_many_verdicts(report: &Report) -> bool {
    report.verdicts.len() > MOST_OPEN && !report.overviews.is_empty()
}

fn overviews(report: &Report) -> Vec<OverviewView<'_>> {
    let shown = if has_many_verdicts(report) { &report.overviews[..] } else { &[] };
    shown.iter().map(overview).collect()
}

fn overview(of: &Overview) -> OverviewView<'_> {
    let row = |row| {
        let (subject, against, cells): &(String, String, Vec<Option<Verdict>>) = row;
        (subject.as_str(), against.as_str(), cells.iter().map(|cell| cell.as_ref().map(verdict)).collect())
    };
    OverviewView { of, rows: of.rows.iter().map(row).collect() }
}

/// All comparisons in one group, or, where they are many, in one for each point of a sweep.
fn verdict_groups(report: &Report) -> Vec<VerdictGroup<'_>> {
    let mut groups: Vec<(&str, Vec<VerdictView<'_>>)> = Vec::new();
    let has_many = has_many_verdicts(report);
    for of in &report.verdicts {
        let point = if has_many { of.point.as_str() } else { "" };
        match groups.iter_mut().find(|(known, _)| *known == point) {
            Some((_, rows)) => rows.push(verdict(of)),
            None => groups.push((point, vec![verdict(of)])),
        }
    }
    let is_sweep = groups.len() > 1;
    let heading = |point: &str, rows: usize| match point {
        _ if !has_many => String::new(),
        "" if is_sweep => format!("Comparisons that are the same at several points ({rows})"),
        "" => format!("All {rows} comparisons"),
        OF_POINTS => format!("All comparisons of points with each other ({rows})"),
        point => format!("All comparisons at {point} ({rows})"),
    };
    groups.into_iter().map(|(point, rows)| VerdictGroup { heading: heading(point, rows.len()), rows }).collect()
}

fn verdict(of: &Verdict) -> VerdictView<'_> {
    let ends = of.difference.ci95.map(|[low, high]| format!("{} to {}", numbers::set(low), numbers::set(high)));
    VerdictView {
        of,
        difference: numbers::set(of.difference.value),
        ends: ends.unwrap_or_else(|| "–".to_owned()),
        worth: match of.is_better {
            Some(true) => "better",
            Some(false) => "worse",
            None => "",
        },
    }
}

fn figure_view<'a>(report: &Report, (index, of): (usize, &'a Figure)) -> FigureView<'a> {
    let spoken = std::iter::once(format!("{}.", of.title)).chain(of.summary.iter().cloned());
    let height = match &of.chart {
        Chart::Lines { .. } | Chart::Heat { .. } => 420,
        Chart::Bars { categories, .. } => 90 + 44 * categories.len(),
        Chart::Intervals { rows, .. } => 70 + 30 * rows.len(),
    };
    FigureView {
        of,
        number: index + 1,
        spoken: spoken.collect::<Vec<_>>().join(" "),
        tables: data_tables(&of.chart),
        is_why: report.why.iter().any(|why| why.figures.contains(&index)),
        height,
    }
}
