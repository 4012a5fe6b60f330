//! The headline table, as it goes into a paper: policies (or points) by the quantities that count.
//!
//! # Definition
//! A number is rounded to two significant digits of half of its 95 % interval, one without an interval to four
//! significant digits. In each column and world the best is bold, and all that are not told apart from it, by
//! [`rank`] and [`is_told_apart`], provided that one is told apart.
//!
//! A *ratio* is that of means, as in `answers`. Its interval has all `r` for which the mean of `x − r·y` over pairs of
//! seeds is not told from 0 (E. C. Fieller, Journal of the Royal Statistical Society B 16, 1954): it excludes 1 where
//! the two are told apart.

pub(super) mod brief;
mod ratio;
mod shown;

use super::controls::controls;
use super::export::column_name;
use super::groups::{blocks, labels, prefixes};
use super::model::Table;
use super::source::Results;
use super::study::{Quantity, Study, counted};
use super::tables::{TableFormat, in_latex, in_signs};
use fedgenie_core::text;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::INTERVAL_SEEDS;
use fedgenie_experiment::experiment::compared::{is_told_apart, rank};
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::scenario::names::unknown_name;
use ratio::ratio;
use shown::{Shown, scale_of};
use std::collections::BTreeSet;

/// The most columns if none is asked for.
const MOST_COLUMNS: usize = 5;

/// Wishes about a headline table.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadlineWishes<'a> {
    /// The columns: keys of `values` in `summary.json`, headings of the table of results, or names of exported columns;
    /// if empty, those that the first scenario asks for, or else the main quantities.
    pub columns: &'a [String],
    /// The policy to whose values ratios are added; without it, the one that the first scenario asks for.
    pub ratio_to: Option<&'a str>,
    /// Significant digits of all numbers.
    pub digits: Option<usize>,
}

/// A headline table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// The heading of the first column.
    subject: String,
    /// The keys of the columns of values.
    keys: Vec<String>,
    /// Headings of the columns after the first.
    headings: Vec<String>,
    /// Each with its label.
    rows: Vec<(String, Vec<Shown>)>,
    notes: Vec<String>,
}

/// A column: a quantity, or its ratio to a policy.
#[derive(Clone)]
struct Column {
    quantity: Quantity,
    is_ratio: bool,
}

/// Policies and points.
type Places = BTreeSet<(usize, usize)>;

/// The headline table of some results.
///
/// # Errors
/// If a column or the policy of ratios is unknown.
pub fn headline(results: &[Results], wishes: HeadlineWishes<'_>) -> Result<Headline, Error> {
    let labels = labels(results, &prefixes(results));
    let studies: Vec<Study<'_>> = blocks(results).iter().map(|folders| Study::new(results, folders, &labels)).collect();
    if let Some(policy) = wishes.ratio_to {
        let known: BTreeSet<&str> =
            studies.iter().flat_map(|study| &study.arms).flat_map(|arm| [&*arm.policy, &*arm.label]).collect();
        if !known.contains(policy) {
            let known: Vec<&str> = known.into_iter().collect();
            return Err(Error::Usage(format!("--ratio-to: {}", unknown_name("policy", policy, &known))));
        }
    }
    of_studies(&studies, wishes)
}

/// The headline table of the studies of some results.
///
/// # Errors
/// If a column of the wishes is unknown.
pub(super) fn of_studies(studies: &[Study<'_>], wishes: HeadlineWishes<'_>) -> Result<Headline, Error> {
    let report = studies.first().and_then(|study| study.arms.first()).map(|arm| &studies[0].results[arm.folder]);
    let own = report.and_then(|results| results.summary.report.ratio_to.as_deref());
    let wishes = HeadlineWishes { ratio_to: wishes.ratio_to.or(own), ..wishes };
    let columns = columns(studies, wishes)?;
    let scales: Vec<(f64, String)> = columns.iter().map(|column| scale(studies, column)).collect();
    let is_median = |quantity: &Quantity| {
        let any = |study: &Study<'_>| (0..study.points.len()).any(|point| study.is_median(point, &quantity.key));
        studies.iter().any(any)
    };
    let heading = |(column, (_, unit)): (&Column, &(f64, String))| {
        let median = if is_median(&column.quantity) { "median " } else { "" };
        match column.is_ratio {
            true => format!("ratio to {}", wishes.ratio_to.unwrap_or_default()),
            false if unit.is_empty() => format!("{median}{}", column.quantity.words),
            false => format!("{median}{} [{unit}]", column.quantity.words),
        }
    };
    let headings = columns.iter().zip(&scales).map(heading).collect();
    let values = columns.iter().filter(|column| !column.is_ratio);
    let keys = values.map(|column| column.quantity.key.clone()).collect();
    let mut found = Headline { subject: subject(studies), keys, headings, ..Headline::default() };
    for study in studies {
        let best: Vec<Places> = columns.iter().map(|column| best(study, column)).collect();
        for (arm, point) in study.combinations() {
            let cell = |((column, best), (factor, _)): ((&Column, &Places), &(f64, String))| {
                let is_best = best.contains(&(arm, point));
                cell(study, (arm, point), column, wishes).scaled(*factor, wishes.digits).best(is_best)
            };
            let cells = columns.iter().zip(&best).zip(&scales).map(cell).collect();
            found.rows.push((label(study, arm, point), cells));
        }
        for control in controls(study) {
            let cell = |(column, (factor, _)): (&Column, &(f64, String))| {
                let value = control.value(&column.quantity).filter(|_| !column.is_ratio);
                value.map_or_else(Shown::none, |value| Shown::of(*value).scaled(*factor, wishes.digits))
            };
            if columns.iter().any(|column| !column.is_ratio && control.value(&column.quantity).is_some()) {
                found.rows.push((control.label.clone(), columns.iter().zip(&scales).map(cell).collect()));
            }
        }
    }
    found.notes = notes(studies, &columns, &found, wishes);
    Ok(found)
}

/// The heading of rows: the policy, or what was swept where there is one policy.
fn subject(studies: &[Study<'_>]) -> String {
    let swept = |study: &Study<'_>| Some(study.axis_titles()).filter(|_| study.arms.len() == 1 && study.is_sweep());
    let mut titles = studies.iter().map(swept);
    let first = titles.next().flatten();
    first
        .filter(|first| titles.all(|other| other.as_ref() == Some(first)))
        .map_or_else(|| "policy".to_owned(), |titles| titles.join(", "))
}

/// A row's label.
fn label(study: &Study<'_>, arm: usize, point: usize) -> String {
    if study.arms.len() == 1 && study.is_sweep() { study.bare_words(point) } else { study.words(arm, point) }
}

/// The columns that are asked for, or the scenario's, or the main ones.
fn columns(studies: &[Study<'_>], wishes: HeadlineWishes<'_>) -> Result<Vec<Column>, Error> {
    let mut known: Vec<Quantity> = Vec::new();
    for quantity in studies.iter().flat_map(Study::quantities_by_question) {
        if known.iter().all(|other| other.key != quantity.key) {
            known.push(quantity);
        }
    }
    let mut chosen = known.clone();
    // Times say how many runs arrive.
    chosen.retain(|quantity| quantity.is_main && quantity.better.is_some() && !quantity.key.starts_with("reached."));
    chosen.truncate(MOST_COLUMNS);
    let arms = studies.iter().flat_map(|study| study.results.iter().flat_map(|results| &results.summary.arms));
    for key in arms.flat_map(|arm| arm.values.keys().chain(arm.until.keys())).collect::<BTreeSet<_>>() {
        if known.iter().all(|quantity| quantity.key != *key) {
            known.push(plain(key, studies));
        }
    }
    let first = studies.first().and_then(|study| Some(&study.results[study.arms.first()?.folder]));
    let of_scenario = first.map_or(&[][..], |results| &results.summary.report.columns);
    if !wishes.columns.is_empty() {
        chosen = wishes.columns.iter().map(|name| asked(&known, name)).collect::<Result<_, _>>()?;
    } else if !of_scenario.is_empty() {
        // A warning names the unknown ones; if all are, the main quantities stand there.
        let of_key = |key: &String| known.iter().find(|quantity| quantity.key == *key).cloned();
        let own: Vec<Quantity> = of_scenario.iter().filter_map(of_key).collect();
        chosen = if own.is_empty() { chosen } else { own };
    }
    let of = |quantity: Quantity| {
        let has_ratio = wishes.ratio_to.is_some() && !quantity.key.starts_with("reached.");
        let value = Column { quantity: quantity.clone(), is_ratio: false };
        std::iter::once(value).chain(has_ratio.then_some(Column { quantity, is_ratio: true }))
    };
    Ok(chosen.into_iter().flat_map(of).collect())
}

/// A number of runs by its key alone; of metrics it is known which values are better.
fn plain(key: &str, studies: &[Study<'_>]) -> Quantity {
    if let Some((what @ ("final" | "best" | "converged"), name)) = key.split_once('.') {
        let declared = studies.iter().flat_map(Study::measured).find(|metric| metric.id.to_string() == name);
        let words = declared.as_ref().map_or_else(|| name.replace('_', " "), |metric| metric.id.words());
        let words = if what == "converged" { format!("{words} at convergence") } else { format!("{what} {words}") };
        let better = declared.map(|metric| metric.better);
        return Quantity { key: key.to_owned(), words, unit: None, better, is_main: false };
    }
    let with_unit = |ending: &str, unit| Some((key.strip_suffix(ending)?, Some(unit)));
    let (name, unit) = match key {
        _ if key.starts_with("probe_compute_to.") => (key, Some("s")),
        _ => with_unit("_s", "s").or_else(|| with_unit("_bytes", "B")).unwrap_or((key, None)),
    };
    let until = name.split_once("_to.").map(|(what, target)| (what, format!(" to {target}")));
    let (what, until) = until.unwrap_or((name, String::new()));
    let what = match what {
        "compute" => "computing".to_owned(),
        "probe_compute" => "computing for probes".to_owned(),
        "down" => "download".to_owned(),
        "up" => "upload".to_owned(),
        what => what.replace(['_', '.'], " "),
    };
    Quantity { key: key.to_owned(), words: format!("{what}{until}"), unit, better: None, is_main: false }
}

/// The quantity of a name.
fn asked(known: &[Quantity], name: &str) -> Result<Quantity, Error> {
    let is_called = |quantity: &&Quantity| {
        [&quantity.key, &quantity.words, &quantity.heading()].contains(&&name.to_owned())
            || column_name(&quantity.key) == name
    };
    known.iter().find(is_called).cloned().ok_or_else(|| {
        let keys: Vec<&str> = known.iter().map(|quantity| quantity.key.as_str()).collect();
        Error::Usage(format!("--columns: {}", unknown_name("column", name, &keys)))
    })
}

/// The factor and the unit in which a column is shown.
fn scale(studies: &[Study<'_>], column: &Column) -> (f64, String) {
    if column.is_ratio {
        return (1.0, String::new());
    }
    let values = studies.iter().flat_map(|study| {
        let of = |(arm, point)| study.estimate(arm, point, &column.quantity.key).map(|found| found.mean);
        study.combinations().into_iter().filter_map(of)
    });
    scale_of(column.quantity.unit.unwrap_or_default(), values.fold(0.0, |most, value| most.max(value.abs())))
}

/// The number in a cell.
fn cell(study: &Study<'_>, (arm, point): (usize, usize), column: &Column, wishes: HeadlineWishes<'_>) -> Shown {
    let key = &column.quantity.key;
    if column.is_ratio {
        return ratio(study, (arm, point), key, wishes.ratio_to.unwrap_or_default())
            .map_or_else(Shown::none, Shown::of);
    }
    let (runs, until) = (study.arms[arm].runs[point].len(), study.until(arm, point, key));
    let part = until.as_ref().map(|until| (until.arrived, until.runs)).filter(|(arrived, runs)| arrived < runs);
    if let Some(least) = until.as_ref().and_then(|until| until.least()) {
        return Shown::beyond(least).among(part.filter(|(arrived, _)| *arrived > 0));
    }
    let Some(found) = study.estimate(arm, point, key) else { return Shown::none() };
    if let Some(words) = counted(key, &found) {
        return Shown::words(&words.replace(" of ", "/"));
    }
    let part = part.or_else(|| (found.n < runs).then_some((found.n, runs)));
    Shown::of(found).among(part)
}

/// Policies and points to be set in bold: in each world the best, and those not told apart from it, if one other is.
fn best(study: &Study<'_>, column: &Column) -> Places {
    let quantity = &column.quantity;
    let is_regret = quantity.key.starts_with("regret.");
    let Some(better) = quantity.better.filter(|_| !column.is_ratio) else { return BTreeSet::new() };
    let is_candidate = |&(arm, point): &(usize, usize)| {
        let mut runs = study.arms[arm].runs[point].values();
        !(is_regret && runs.any(|run| run.sees_truth == Some(true)))
    };
    let mut worlds: Vec<Vec<(usize, usize)>> = Vec::new();
    for folder in study.arms.iter().map(|arm| arm.folder).collect::<BTreeSet<_>>() {
        let of_folder: Vec<(usize, usize)> =
            study.combinations().into_iter().filter(|&(arm, _)| study.arms[arm].folder == folder).collect();
        let arms: BTreeSet<usize> = of_folder.iter().map(|&(arm, _)| arm).collect();
        if arms.len() > 1 {
            worlds.extend(
                (0..study.points.len()).map(|point| {
                    of_folder.iter().copied().filter(|&(_, at)| at == point).filter(is_candidate).collect()
                }),
            );
        } else if !(is_regret && study.sweep.moves("regret")) {
            worlds.push(of_folder);
        }
    }
    let of_world = |world: Vec<(usize, usize)>| -> Vec<(usize, usize)> {
        let samples: Vec<Sample> = world.iter().map(|&(arm, point)| study.sample(arm, point, &quantity.key)).collect();
        let Some(Ok(ranking)) = rank(&samples, better) else { return Vec::new() };
        let (told, equal): (Vec<_>, Vec<_>) = ranking.others.iter().partition(|(_, found)| is_told_apart(found));
        if told.is_empty() {
            return Vec::new();
        }
        equal.into_iter().map(|(index, _)| world[index]).chain([world[ranking.best]]).collect()
    };
    worlds.into_iter().flat_map(of_world).collect()
}

/// What the table does not say by itself.
fn notes(studies: &[Study<'_>], columns: &[Column], table: &Headline, wishes: HeadlineWishes<'_>) -> Vec<String> {
    let seeds: BTreeSet<usize> = studies
        .iter()
        .flat_map(|study| study.combinations().into_iter().map(|(arm, point)| study.arms[arm].runs[point].len()))
        .collect();
    let (Some(least), Some(most)) = (seeds.first(), seeds.last()) else { return Vec::new() };
    let counted = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let mut notes = vec![match most {
        most if *most < INTERVAL_SEEDS => format!("Means over {counted} seed{}.", if *most == 1 { "" } else { "s" }),
        _ => format!("Means over {counted} seeds, with half of the 95 % interval (±) or its ends."),
    }];
    let cells = || table.rows.iter().flat_map(|(_, cells)| cells);
    if cells().any(|cell| cell.is_best) {
        notes.push("Bold: the best, and all that are not told apart from it at 95 %.".to_owned());
    }
    if let Some(policy) = wishes.ratio_to.filter(|_| columns.iter().any(|column| column.is_ratio)) {
        notes.push(format!(
            "Ratios are of means to those of {policy}; their intervals, Fieller's for pairs of seeds, exclude 1 where the two are told apart."
        ));
    }
    let values = columns.iter().filter(|column| !column.is_ratio);
    let methods = values.flat_map(|column| studies.iter().map(|study| study.method(&column.quantity)));
    for method in methods.map(|method| method.trim().to_owned()).filter(|method| !method.is_empty()) {
        if !notes.contains(&method) {
            notes.push(method);
        }
    }
    notes
}

impl Headline {
    /// The keys of its columns.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text of the table.
    pub fn text(&self, format: TableFormat) -> String {
        match format {
            TableFormat::Csv => format.text(&self.in_cells()),
            TableFormat::Markdown => self.markdown(),
            TableFormat::Latex => self.latex(),
        }
    }

    /// A column for each number, its ends, and whether it is among the best.
    fn in_cells(&self) -> Table {
        let headings = self.headings.iter().enumerate().flat_map(|(index, heading)| {
            // A ratio has the name of the column before it.
            let of =
                index.checked_sub(1).filter(|_| heading.starts_with("ratio to ")).map(|before| &self.headings[before]);
            let heading = of.map_or_else(|| heading.clone(), |of| format!("{of}: {heading}"));
            let parts = ["", " low", " high", " best"];
            let count = if of.is_some() { 3 } else { 4 };
            parts.into_iter().take(count).map(move |part| format!("{heading}{part}")).collect::<Vec<_>>()
        });
        let columns: Vec<String> = std::iter::once(self.subject.clone()).chain(headings).collect();
        let row = |(label, cells): &(String, Vec<Shown>)| {
            let cells = cells.iter().zip(&self.headings).flat_map(|(cell, heading)| {
                let best =
                    (!heading.starts_with("ratio to ")).then(|| String::from(if cell.is_best { "yes" } else { "" }));
                cell.in_cells().into_iter().chain(best)
            });
            std::iter::once(label.clone()).chain(cells).collect()
        };
        Table { columns, rows: self.rows.iter().map(row).collect() }
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let literal = |text: &String| text::markdown::literal(text);
        let heading = |heading: &String| literal(&in_signs(heading));
        let head = line(std::iter::once(&self.subject).chain(&self.headings).map(heading).collect());
        let rule = format!("|---|{}\n", "---:|".repeat(self.headings.len()));
        let row = |(label, cells): &(String, Vec<Shown>)| {
            let cell = |cell: &Shown| match text::markdown::literal(&cell.plain()) {
                shown if cell.is_best => format!("**{shown}**"),
                shown => shown,
            };
            line(std::iter::once(literal(label)).chain(cells.iter().map(cell)).collect())
        };
        let notes: Vec<String> = self.notes.iter().map(|note| text::markdown::prose(note)).collect();
        format!("{head}{rule}{}\n{}\n", self.rows.iter().map(row).collect::<String>(), notes.join(" "))
    }

    fn latex(&self) -> String {
        let head: Vec<String> =
            std::iter::once(&self.subject).chain(&self.headings).map(|text| in_latex(&in_signs(text))).collect();
        let row = |(label, cells): &(String, Vec<Shown>)| {
            let cells = cells.iter().map(Shown::latex);
            text::latex::row(&std::iter::once(text::latex::literal(label)).chain(cells).collect::<Vec<_>>())
        };
        let rows: String = self.rows.iter().map(row).collect();
        // A comment ends with its line: notes have none in them.
        let notes: String = self.notes.iter().map(|note| format!("% {}\n", text::escaped(note))).collect();
        format!(
            "% needs \\usepackage{{booktabs}}\n{notes}\\begin{{tabular}}{{l{}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\
             \\end{{tabular}}\n",
            "r".repeat(self.headings.len()),
            text::latex::row(&head)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedgenie_core::math::statistics::Estimate;

    fn table() -> Headline {
        let shown = |mean: f64, half: f64| {
            Shown::of(Estimate { mean, ci95: Some([mean - half, mean + half]), n: 5 }).scaled(1.0, None)
        };
        let best = shown(1980.4, 219.6).best(true);
        let beyond = Shown::beyond(5400.0).among(Some((2, 3))).scaled(1.0, None);
        Headline {
            subject: "policy".to_owned(),
            keys: Vec::new(),
            headings: vec!["s to test_loss <= 1 [s]".to_owned(), "ratio to a|b".to_owned()],
            rows: vec![
                ("a|b".to_owned(), vec![best, shown(1.0, 0.012)]),
                ("50 %_{x}\\".to_owned(), vec![beyond, Shown::none()]),
            ],
            notes: vec!["Means over 5 seeds.".to_owned()],
        }
    }

    #[test]
    fn nothing_in_a_label_is_markup() {
        let markdown = table().text(TableFormat::Markdown);
        let lines: Vec<&str> = markdown.lines().collect();
        assert_eq!(lines[0], "| policy | s to test_loss ≤ 1 \\[s\\] | ratio to a\\|b |");
        assert_eq!(lines[1], "|---|---:|---:|");
        assert_eq!(lines[2], "| a\\|b | **1980 ± 220** | 1.000 ± 0.012 |");
        assert_eq!(lines[3], "| 50 %\\_&#123;x&#125;\\\\ | &gt; 5400 (2/3) | – |");
        assert_eq!(lines[5], "Means over 5 seeds.");
        let latex = table().text(TableFormat::Latex);
        let has = |part: &str| assert!(latex.contains(part), "{part} is not in {latex}");
        has("% needs \\usepackage{booktabs}\n% Means over 5 seeds.\n\\begin{tabular}{lrr}\n\\toprule\n");
        has("a\\textbar{}b & {\\boldmath$1980 \\pm 220$} & $1.000 \\pm 0.012$ \\\\\n");
        has("50 \\%\\_\\{x\\}\\textbackslash{} & $> 5400$ (2/3) & -- \\\\\n");
        let depth = latex.replace("\\{", "").replace("\\}", "").chars().fold(0, |depth, letter| match letter {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        });
        assert_eq!(depth, 0, "{latex}");
    }

    #[test]
    fn cells_of_a_spreadsheet_hold_a_number_each() {
        let csv = table().text(TableFormat::Csv);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines[0],
            "policy,s to test_loss <= 1 [s],s to test_loss <= 1 [s] low,s to test_loss <= 1 [s] high,s to test_loss <= 1 [s] best,\
             s to test_loss <= 1 [s]: ratio to a|b,s to test_loss <= 1 [s]: ratio to a|b low,s to test_loss <= 1 [s]: ratio to a|b high"
        );
        assert_eq!(lines[1], "a|b,1980,1760,2200,yes,1.000,0.988,1.012");
        assert_eq!(lines[2], "50 %_{x}\\,> 5400 (2/3),,,,,,");
    }
}
