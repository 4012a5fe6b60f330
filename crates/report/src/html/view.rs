//! A report in the shape in which the template shows it.

use super::super::verdicts::OF_POINTS;
use super::picture::{FigureView, colours, figure_view};
use super::shown::{Plain, Shown};
use super::{SCRIPTS, STYLE};
use crate::{Decided, Experiment, LineKind, Overview, Report, Series, Table, Verdict, Why};
use crate::{numbers, svg};
use askama::Template;
use fedgenie_experiment::experiment::controls::note;
use std::collections::BTreeSet;

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
pub(super) struct Page<'a> {
    title: &'a str,
    /// The nonce that a script of the page needs in order to run.
    nonce: String,
    style: &'static str,
    /// Rules for the colours of pictures.
    colours: String,
    scripts: [&'static str; 6],
    /// The policies that figures show, with the looks of their lines as markup.
    everywhere: Vec<(String, &'a str)>,
    data: &'a str,
    experiments: &'a [Experiment],
    /// Facts' names, each with its value per experiment.
    facts: Vec<(&'a str, Vec<&'a str>)>,
    /// The main findings, and the others.
    answers: &'a [String],
    more: &'a [String],
    warnings: &'a [String],
    /// The main comparisons at a glance, where all of them would be a long list.
    overviews: Vec<OverviewView<'a>>,
    /// Whether points of a sweep are compared.
    has_points: bool,
    /// Comparisons under headings; a single group without one is shown at once.
    verdicts: Vec<VerdictGroup<'a>>,
    /// The table for the first screen: the brief one, or all results where there is none.
    brief: &'a Table,
    /// Its cells, and whether they are of the best.
    rows: Vec<Vec<(&'a str, bool)>>,
    /// Notes on it.
    notes: &'a [String],
    /// What the controls in that table are; empty without any.
    controls: String,
    /// All results, where the table for the first screen has not all of them.
    results: Option<&'a Table>,
    /// The figures that are drawn, alternatives together; those of decisions are only below `why`.
    families: Vec<Family<'a>>,
    /// The sentences in the place of pictures that would show nothing.
    plain: Vec<&'a Plain<'a>>,
    why: Vec<WhyView<'a>>,
}

/// Figures of which one is shown at a time.
struct Family<'a> {
    /// Read aloud.
    name: String,
    /// What there is to choose, each with its values and whether they are those of the first figure.
    choices: Vec<(&'a str, Vec<(&'a str, bool)>)>,
    figures: Vec<FigureView<'a>>,
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
    families: Vec<Family<'a>>,
    plain: Vec<&'a Plain<'a>>,
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

/// The controls that have rows in a table.
fn named_in(table: &Table) -> Vec<String> {
    let labels = table.rows.iter().filter_map(|row| row.first()?.strip_prefix('(')?.split_once(')'));
    labels.map(|(name, _)| name.to_owned()).collect()
}

pub(super) fn page<'a>(report: &'a Report, shown: &'a Shown<'a>, data: &'a str) -> Page<'a> {
    let all = serde_json::to_vec(report).expect("numbers and texts are always JSON");
    let of_why: BTreeSet<usize> = report.why.iter().flat_map(|why| why.figures.iter().copied()).collect();
    let (plain, families) =
        (plain(shown, |index| !of_why.contains(&index)), families(report, shown, |index| !of_why.contains(&index)));
    let has_brief = !report.brief.table.rows.is_empty();
    let brief = if has_brief { &report.brief.table } else { &report.results };
    let row = |(row, cells): (usize, &'a Vec<String>)| {
        let is_best = |column: usize| report.brief.is_best.get(row).is_some_and(|row| row[column]);
        cells.iter().enumerate().map(|(column, cell)| (cell.as_str(), is_best(column))).collect()
    };
    Page {
        title: &report.title,
        nonce: blake3::hash(&all).to_hex()[..32].to_owned(),
        style: STYLE,
        colours: colours(&report.series),
        scripts: SCRIPTS,
        everywhere: everywhere(report, shown),
        data,
        experiments: &report.experiments,
        facts: facts(&report.experiments),
        answers: &report.answers,
        more: &report.more,
        warnings: &report.warnings,
        overviews: overviews(report),
        has_points: report.verdicts.iter().any(|verdict| verdict.point == OF_POINTS),
        verdicts: verdict_groups(report),
        brief,
        rows: brief.rows.iter().enumerate().map(row).collect(),
        notes: &report.brief.notes,
        controls: note(&named_in(brief)),
        results: Some(&report.results).filter(|_| has_brief),
        families,
        plain,
        why: report.why.iter().map(|of| why(report, of, shown)).collect(),
    }
}

fn plain<'a>(shown: &'a Shown<'a>, is_wanted: impl Fn(usize) -> bool) -> Vec<&'a Plain<'a>> {
    shown.plain.iter().filter(|plain| is_wanted(plain.index)).collect()
}

/// The drawn figures that are wanted, alternatives together.
fn families<'a>(report: &'a Report, shown: &'a Shown<'a>, is_wanted: impl Fn(usize) -> bool) -> Vec<Family<'a>> {
    let mut families: Vec<Family<'a>> = Vec::new();
    let mut last = None;
    for drawn in shown.drawn.iter().filter(|drawn| is_wanted(drawn.index)) {
        let view = figure_view(drawn, &report.series, last != Some(drawn.number));
        match families.last_mut().filter(|_| last == Some(drawn.number)) {
            Some(family) => family.figures.push(view),
            None => {
                let name = drawn.of.title.clone();
                families.push(Family { name, choices: Vec::new(), figures: vec![view] });
            }
        }
        last = Some(drawn.number);
    }
    for family in &mut families {
        family.choices = choices(&family.figures);
    }
    families
}

/// Names with several values, in the order in which the figures have them.
fn choices<'a>(figures: &[FigureView<'a>]) -> Vec<(&'a str, Vec<(&'a str, bool)>)> {
    let mut choices: Vec<(&str, Vec<(&str, bool)>)> = Vec::new();
    for (index, figure) in figures.iter().enumerate() {
        for [name, value] in figure.of.choice.iter().flat_map(|choice| &choice.values) {
            if !choices.iter().any(|(known, _)| known == name) {
                choices.push((name, Vec::new()));
            }
            for (_, values) in choices.iter_mut().filter(|(known, _)| known == name) {
                if !values.iter().any(|(known, _)| known == value) {
                    values.push((value, index == 0));
                }
            }
        }
    }
    choices.retain(|(_, values)| values.len() > 1);
    choices
}

/// The most rows of a table that is open at first.
const MOST_OPEN: usize = 30;

/// The last decision is shown at first, if it is short.
fn why<'a>(report: &'a Report, of: &'a Why, shown: &'a Shown<'a>) -> WhyView<'a> {
    let mut decisions: Vec<_> = of.decisions.iter().map(|of| DecisionView { of, is_open: false }).collect();
    if let Some(last) = decisions.last_mut() {
        last.is_open = last.of.table.rows.len() <= MOST_OPEN;
    }
    let is_its = |index| of.figures.contains(&index);
    WhyView { of, families: families(report, shown, is_its), plain: plain(shown, is_its), decisions }
}

/// The series that can be hidden in a figure.
fn everywhere<'a>(report: &'a Report, shown: &Shown<'_>) -> Vec<(String, &'a str)> {
    let names: BTreeSet<&str> =
        shown.drawn.iter().flat_map(|drawn| svg::names(&drawn.of.chart, &report.series)).collect();
    let used = |series: &&Series| names.contains(series.label.as_str());
    let entry = |series: &'a Series| (svg::sample(&series.style, LineKind::Mean), series.label.as_str());
    report.series.iter().filter(used).map(entry).collect()
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

/// Whether all comparisons in one list would be too long to read.
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
