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

mod shown;

use super::build::{blocks, labels, prefixes};
use super::controls::controls;
use super::export::column_name;
use super::folders::Pairing;
use super::model::Table;
use super::source::Results;
use super::study::{Quantity, Study, counted};
use super::tables::{TableFormat, in_latex};
use fedgenie_core::math::statistics::survival::Arrival;
use fedgenie_core::math::statistics::{Estimate, estimate};
use fedgenie_core::text;
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::compared::{is_told_apart, rank};
use fedgenie_experiment::experiment::sample::Sample;
use fedgenie_experiment::experiment::until::is_until;
use fedgenie_experiment::experiment::{INTERVAL_SEEDS, RunSummary};
use fedgenie_experiment::scenario::names::unknown_name;
use shown::{Shown, scale_of};
use std::collections::BTreeSet;

/// The most columns if none is asked for.
const MOST_COLUMNS: usize = 5;

/// Wishes about a headline table.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadlineWishes<'a> {
    /// The columns: keys of `values` in `summary.json`, headings of the table of results, or names of exported columns;
    /// the main quantities if empty.
    pub columns: &'a [String],
    /// The policy to whose values ratios are added.
    pub ratio_to: Option<&'a str>,
    /// Significant digits of all numbers.
    pub digits: Option<usize>,
}

/// A headline table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
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
    let columns = columns(&studies, wishes)?;
    let scales: Vec<(f64, String)> = columns.iter().map(|column| scale(&studies, column)).collect();
    let heading = |(column, (_, unit)): (&Column, &(f64, String))| match column.is_ratio {
        true => format!("ratio to {}", wishes.ratio_to.unwrap_or_default()),
        false if unit.is_empty() => column.quantity.words.clone(),
        false => format!("{} [{unit}]", column.quantity.words),
    };
    let mut found = Headline { headings: columns.iter().zip(&scales).map(heading).collect(), ..Headline::default() };
    for study in &studies {
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
    found.notes = notes(&studies, &columns, &found, wishes);
    Ok(found)
}

/// A row's label.
fn label(study: &Study<'_>, arm: usize, point: usize) -> String {
    if study.arms.len() == 1 && study.is_sweep() { study.bare_words(point) } else { study.words(arm, point) }
}

/// The columns that are asked for, or the main ones.
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
    if !wishes.columns.is_empty() {
        let arms = studies.iter().flat_map(|study| study.results.iter().flat_map(|results| &results.summary.arms));
        for key in arms.flat_map(|arm| arm.values.keys()).collect::<BTreeSet<_>>() {
            if known.iter().all(|quantity| quantity.key != *key) {
                known.push(plain(key));
            }
        }
        chosen = wishes.columns.iter().map(|name| asked(&known, name)).collect::<Result<_, _>>()?;
    }
    let of = |quantity: Quantity| {
        let has_ratio = wishes.ratio_to.is_some() && !quantity.key.starts_with("reached.");
        let value = Column { quantity: quantity.clone(), is_ratio: false };
        std::iter::once(value).chain(has_ratio.then_some(Column { quantity, is_ratio: true }))
    };
    Ok(chosen.into_iter().flat_map(of).collect())
}

/// A number of runs by its key alone, without a direction.
fn plain(key: &str) -> Quantity {
    let units = [("_s", "s"), ("_bytes", "B")];
    let unit = units.into_iter().find(|(ending, _)| key.ends_with(ending)).map(|(_, unit)| unit);
    Quantity { key: key.to_owned(), words: key.replace('_', " "), unit, better: None, is_main: false }
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

/// The ratio of a policy's value to another's at the same point of the same folder.
fn ratio(study: &Study<'_>, (arm, point): (usize, usize), key: &str, to: &str) -> Option<Estimate> {
    let of_folder = |other: &usize| study.arms[*other].folder == study.arms[arm].folder;
    let is_called = |other: &usize| study.arms[*other].label == to || study.arms[*other].policy == to;
    let all = || 0..study.arms.len();
    let own = all().filter(of_folder).find(is_called);
    let against = own.or_else(|| all().find(|&other| study.arms[other].label == to))?;
    let [mine, theirs] = [arm, against].map(|arm| study.estimate(arm, point, key).filter(|found| found.mean > 0.0));
    let (mine, theirs) = (mine?, theirs?);
    if against == arm {
        return Some(Estimate { mean: 1.0, ci95: None, n: mine.n });
    }
    let pairs = pairs(study, [arm, against], point, key)?;
    Some(Estimate { mean: mine.mean / theirs.mean, ci95: limits(&pairs), n: pairs.len() })
}

/// The values of two policies in common seeds, up to the horizon; none if they have medians or share no draws; `None`
/// if the two are not fairly watched.
fn pairs(study: &Study<'_>, arms: [usize; 2], point: usize, key: &str) -> Option<Vec<[Arrival; 2]>> {
    let [one, other] = arms.map(|arm| study.sample(arm, point, key));
    let horizon = study.follow_up(point, key).horizon_of(Sample::follow_up([&one, &other]))?;
    if study.is_median(point, key) || study.pairing(arms, key) != Pairing::Paired {
        return Some(Vec::new());
    }
    let value = |run: &RunSummary| match is_until(key) {
        true => run.arrival(key),
        false => run.numbers().get(key).copied().map(Arrival::at),
    };
    let [mine, theirs] = arms.map(|arm| &study.arms[arm].runs[point]);
    let cut = |arrival: Arrival| {
        let (time, since) = (arrival.time.min(horizon), arrival.since.min(horizon));
        Arrival { time, since, ..arrival }
    };
    let pair = |(seed, run): (&u64, &&RunSummary)| Some([cut(value(run)?), cut(value(theirs.get(seed)?)?)]);
    Some(mine.iter().filter_map(pair).collect())
}

/// Fieller's limits of the ratio of means of pairs, from the earliest possible times of one and the latest of the
/// other; `None` if the other's mean is not told from 0.
fn limits(pairs: &[[Arrival; 2]]) -> Option<[f64; 2]> {
    let of = |left: fn(&Arrival) -> f64, right: fn(&Arrival) -> f64| {
        fieller(&pairs.iter().map(|[one, other]| (left(one), right(other))).collect::<Vec<_>>())
    };
    let low = of(|one| one.since, |other| other.time)?[0];
    let high = of(|one| one.time, |other| other.since)?[1];
    Some([low, high])
}

/// The ratios `r` for which the mean of `x − r·y` is not told from 0 by Student's interval.
fn fieller(pairs: &[(f64, f64)]) -> Option<[f64; 2]> {
    let of = |pick: fn(&(f64, f64)) -> f64| {
        let found = estimate(&pairs.iter().map(pick).collect::<Vec<_>>())?;
        Some((found.mean, found.half_width()?))
    };
    // Squares of half widths are variances of means, times a common factor.
    let ((x, half_x), (y, half_y), (_, half_sum)) =
        (of(|pair| pair.0)?, of(|pair| pair.1)?, of(|pair| pair.0 + pair.1)?);
    let (xx, yy) = (half_x * half_x, half_y * half_y);
    let xy = (half_sum * half_sum - xx - yy) / 2.0;
    let (a, b) = (y * y - yy, x * y - xy);
    // b² − a·(x² − xx), without the difference of large numbers: nothing if nothing varies.
    let root = (x * x * yy - 2.0 * x * y * xy + y * y * xx + xy * xy - xx * yy).max(0.0).sqrt();
    (a > 0.0).then(|| [(b - root) / a, (b + root) / a])
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

/// A heading with one sign for each comparison.
fn in_signs(heading: &str) -> String {
    heading.replace("<=", "≤").replace(">=", "≥")
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
        let columns: Vec<String> = std::iter::once("policy".to_owned()).chain(headings).collect();
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
        let head = line(std::iter::once("policy".to_owned()).chain(self.headings.iter().map(heading)).collect());
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
        let head: Vec<String> = std::iter::once("policy".to_owned())
            .chain(self.headings.iter().map(|heading| in_latex(&in_signs(heading))))
            .collect();
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

    /// At each end of the interval, Student's interval of `x − r·y` ends at 0; with the interval of a time that is
    /// known to its evaluation alone, the interval is wider.
    #[test]
    fn a_ratio_has_an_interval_at_whose_ends_the_difference_touches_nothing() {
        let values = [(2.1, 1.0), (3.8, 2.0), (6.3, 3.0), (5.0, 2.4)];
        let [low, high] = fieller(&values).unwrap();
        assert!(low < 17.2 / 8.4 && 17.2 / 8.4 < high);
        for (ratio, end) in [(low, 0), (high, 1)] {
            let minus: Vec<f64> = values.iter().map(|(x, y)| x - ratio * y).collect();
            let ends = estimate(&minus).unwrap().ci95.unwrap();
            assert!(ends[end].abs() < 1e-12, "{ratio}: {ends:?}");
        }
        let same = fieller(&[(20.0, 10.0), (22.0, 11.0), (24.0, 12.0)]).unwrap();
        assert!(same.iter().all(|end| (end - 2.0).abs() < 1e-6), "{same:?}");
        assert_eq!(fieller(&[(2.0, 1.0), (4.0, -2.0), (6.0, 0.5)]), None, "the other is not told from 0");
        assert_eq!(fieller(&[(2.0, 1.0)]), None);
        let fixed = fieller(&[(5400.0, 5404.0); 3]).unwrap();
        assert!(fixed[0] == fixed[1] && (fixed[0] - 5400.0 / 5404.0).abs() < 1e-15, "{fixed:?}");
        let pair = |(x, y): &(f64, f64)| [Arrival { since: x - 0.1, ..Arrival::at(*x) }, Arrival::at(*y)];
        let wide = limits(&values.iter().map(pair).collect::<Vec<_>>()).unwrap();
        assert!(wide[0] < low && wide[1] == high, "{wide:?}");
    }

    fn table() -> Headline {
        let shown = |mean: f64, half: f64| {
            Shown::of(Estimate { mean, ci95: Some([mean - half, mean + half]), n: 5 }).scaled(1.0, None)
        };
        let best = shown(1980.4, 219.6).best(true);
        let beyond = Shown::beyond(5400.0).among(Some((2, 3))).scaled(1.0, None);
        Headline {
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
