//! The contents of a report, before it is drawn.
//!
//! All texts may come from a scenario and are untrusted: they are escaped when they are written into HTML or SVG.
//! Numbers are finite; unknown ones are left out.

use super::style::Style;
use serde::Serialize;

/// The heading of a column with the changed files that a row is made of.
pub(super) const CHANGED: &str = "changed";

/// Everything that a report shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Heading.
    pub title: String,
    /// The experiments: one entry per result folder.
    pub experiments: Vec<Experiment>,
    /// The main findings, in sentences, two at most for each folder: the best policy or point, and the candidates not
    /// told apart from it; and how much is learned beside a control that is trained.
    pub answers: Vec<String>,
    /// The other findings, and how many seeds would tell more.
    pub more: Vec<String>,
    /// Warnings, each once.
    pub warnings: Vec<String>,
    /// Comparisons of policies, and whether they are significant.
    pub verdicts: Vec<Verdict>,
    /// The main comparisons at a glance: one table for each group of experiments with the same points.
    pub overviews: Vec<Overview>,
    /// Results per policy and point: final values with intervals.
    pub results: Table,
    /// The results that matter most, where they are few enough for the first screen; empty otherwise.
    pub brief: Brief,
    /// The policies, in order, each with its looks in all figures; where decisions are explained, also the candidates
    /// that were not chosen.
    pub series: Vec<Series>,
    /// Names of changed files that were accepted.
    pub changed: Vec<String>,
    /// Policies (and points of a sweep) without a complete run, and the fate of their runs.
    pub lacking: Vec<[String; 2]>,
    /// The pictures, in order.
    pub figures: Vec<Figure>,
    /// The name of the figure that shows the experiment's main question; empty if none does.
    pub lead: String,
    /// Why policies chose these clients, where they explain it.
    pub why: Vec<Why>,
}

impl Report {
    /// Leaves out all figures but one.
    ///
    /// # Errors
    /// If there is no such figure: the names of the figures.
    pub fn keep_figure(&mut self, name: &str) -> Result<(), Vec<String>> {
        if self.figures.iter().all(|figure| figure.id != name) {
            return Err(self.figures.iter().map(|figure| figure.id.clone()).collect());
        }
        self.figures.retain(|figure| figure.id == name);
        self.why.clear();
        Ok(())
    }

    /// Heads all figures with this in the place of their titles and of the report's.
    pub fn head_figures(&mut self, title: &str) {
        self.title.clear();
        self.figures.iter_mut().for_each(|figure| title.clone_into(&mut figure.title));
    }
}

/// An experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Experiment {
    /// Prefix of its policies' labels where several experiments are shown; empty for one.
    pub prefix: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Title of the scenario.
    pub title: Option<String>,
    /// Facts for people, name and value: clients, protocol, task, seeds, rounds, version, digests, …
    pub facts: Vec<[String; 2]>,
    /// The sweep's points: short name and setting. Empty where the names say it.
    pub points: Vec<[String; 2]>,
    /// The resolved scenario.
    pub source: String,
}

/// The main comparisons: policies (at points of a sweep) by quantities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// The quantities, with their units.
    pub columns: Vec<String>,
    /// Subject, the policy that it is compared with, and a comparison for each quantity that has one.
    pub rows: Vec<(String, String, Vec<Option<Verdict>>)>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The point of a sweep, by its short name; empty if nothing was swept, or it is the same at several; "points of
    /// the sweep" where two points are compared.
    pub point: String,
    /// What is compared: "cumulative mean regret", "test loss at 200 s".
    pub quantity: String,
    /// The policy (and the sweep's point, where there are several).
    pub subject: String,
    /// The other policy.
    pub against: String,
    /// Subject minus other, with its 95 % interval where there is one.
    pub difference: Interval,
    /// How many pairs; 0 where runs are not paired by seed, and the interval is Welch's.
    pub pairs: usize,
    /// "lower", "higher", "not told apart", "the same".
    pub verdict: String,
    /// About how many seeds would tell the two apart at this difference; `None` where they are told apart already, or
    /// are the same.
    pub seeds_needed: Option<u64>,
    /// Whether that is good for the subject; `None` if not told apart or neither good nor bad.
    pub is_better: Option<bool>,
}

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// Lower and upper end.
    pub ci95: Option<[f64; 2]>,
}

/// A plain table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Headings of the columns.
    pub columns: Vec<String>,
    /// As many cells per row as columns.
    pub rows: Vec<Vec<String>>,
}

/// The headline table of a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Brief {
    /// The table.
    pub table: Table,
    /// Which of its cells are of the best, and of what is not told apart from it, as far as others are.
    pub is_best: Vec<Vec<bool>>,
    /// What the table does not say by itself.
    pub notes: Vec<String>,
}

/// A policy (or another thing that has a line) and its looks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its label.
    pub label: String,
    /// How it looks in all figures.
    #[serde(flatten)]
    pub style: Style,
}

/// A policy's explanation of its decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Why {
    /// Name of its file of data, unique as that of a figure.
    pub id: String,
    /// The policy, and the sweep's point where there are several.
    pub policy: String,
    /// Notes on how much is shown, in sentences.
    pub words: Vec<String>,
    /// Its pictures, by index among the report's figures.
    pub figures: Vec<usize>,
    /// Some decisions, in order.
    pub decisions: Vec<Decided>,
    /// All decisions that are known, one candidate per row.
    pub data: Table,
}

/// One decision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Decided {
    /// Which decision, and its numbers that belong to no candidate.
    pub heading: String,
    /// A note on omitted candidates; empty if there are none.
    pub note: String,
    /// A row for each candidate.
    pub table: Table,
    /// Whether the candidate of a row was chosen.
    pub is_chosen: Vec<bool>,
}

/// One picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of files, unique in the report: lower-case letters, digits, `-` and `_`.
    pub id: String,
    /// Heading.
    pub title: String,
    /// The content, in a sentence or two.
    pub caption: String,
    /// How it was computed; empty where the caption says it.
    pub method: String,
    /// The content in sentences, for readers who cannot see the picture.
    pub summary: Vec<String>,
    /// The figures among which this is one to choose; `None` if it stands alone.
    pub choice: Option<Choice>,
    /// The chart.
    pub chart: Chart,
}

/// Place of a figure among others that answer the same question, of which a page shows one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The name that all of them have in common.
    pub of: String,
    /// The choices, and this figure's value of each: "regret": "mean", "over": "rounds".
    pub values: Vec<[String; 2]>,
}

impl Choice {
    pub(super) fn new<const N: usize>(of: &str, values: [(&str, &str); N]) -> Option<Self> {
        let values = values.map(|(what, value)| [what.to_owned(), value.to_owned()]).to_vec();
        Some(Self { of: of.to_owned(), values })
    }
}

/// The content of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Chart {
    /// Lines over a number.
    Lines {
        /// Horizontal axis.
        x: Axis,
        /// Vertical axis.
        y: Axis,
        /// The lines.
        lines: Vec<Line>,
        /// Horizontal lines, such as targets.
        marks: Vec<Mark>,
    },
    /// Colours in a grid, one grid per panel; all panels share axes and colour scale.
    Heat {
        /// Horizontal axis.
        x: Axis,
        /// Labels of the columns.
        columns: Vec<String>,
        /// Vertical axis.
        y: Axis,
        /// Labels of the rows, from the bottom up.
        rows: Vec<String>,
        /// Meaning of a colour.
        value: Axis,
        /// The grids.
        panels: Vec<Panel>,
    },
    /// Stacked bars, one per category.
    Bars {
        /// Meaning of a length.
        value: Axis,
        /// Labels of the bars: policies.
        categories: Vec<String>,
        /// Parts of the bars: label, and a length per category.
        parts: Vec<(String, Vec<f64>)>,
    },
    /// Values with intervals, one below the other, with a line at zero.
    Intervals {
        /// Meaning of the horizontal axis.
        value: Axis,
        /// Label, series and value.
        rows: Vec<(String, String, Interval)>,
    },
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity, without unit.
    pub label: String,
    /// The unit; `None` for a pure number.
    pub unit: Option<String>,
    /// Scales that make sense, the first of which is shown at first.
    pub scales: Vec<Scale>,
    /// Fixed ends; `None` where the data decide.
    pub range: [Option<f64>; 2],
    /// Whether a linear axis begins at its fixed end, however far above it the data are.
    pub begins: bool,
}

/// How numbers become positions on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; values of zero and below are not drawn.
    Log,
    /// Whole numbers are names, in colours without an order.
    Names,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The series it belongs to.
    pub series: String,
    /// Its kind.
    pub role: LineKind,
    /// Its label where the series alone does not say: "0.42 n^0.61", "bound of Theorem 1".
    pub label: Option<String>,
    /// `x` and `y`, by ascending `x`.
    pub points: Vec<(f64, f64)>,
    /// `x` and the 95 % interval there, by ascending `x`; empty if there is none.
    pub band: Vec<(f64, [f64; 2])>,
    /// Whether a value stays until the next; otherwise lines are straight.
    pub is_staircase: bool,
    /// Whether points are marked: few, and each measured on its own.
    pub has_dots: bool,
}

/// Kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineKind {
    /// The mean over seeds: drawn thick.
    Mean,
    /// One seed: drawn thin.
    Seed,
    /// A curve fitted to the mean: drawn dashed.
    Fit,
    /// A theoretical bound: drawn dotted.
    Bound,
    /// The lowest or the highest of the values behind a mean: drawn thin.
    Extreme,
}

/// A horizontal line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Its label.
    pub label: String,
    /// Its value.
    pub value: f64,
}

/// One grid of a heat map.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// The grid's label: a policy.
    pub label: String,
    /// Row by row from the bottom, column by column; `None` where nothing is known.
    pub cells: Vec<Vec<Option<f64>>>,
    /// Whether a cell is inside the contour: the best cell, and cells not told apart from it. Empty without a contour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contour: Vec<Vec<bool>>,
}
