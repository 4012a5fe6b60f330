//! Results and verdicts as tables for a text or a spreadsheet.

use super::csv::table_csv;
use super::lacking::add_verdicts;
use super::model::{CHANGED, Report, Table, Verdict};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values.
    Csv,
    /// A table of Markdown.
    Markdown,
    /// A `tabular` with the rules of the package `booktabs`.
    Latex,
}

impl TableFormat {
    /// The ending of file names.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Markdown => "md",
            Self::Latex => "tex",
        }
    }

    /// The text of a table.
    pub fn text(self, table: &Table) -> String {
        match self {
            Self::Csv => table_csv(table),
            Self::Markdown => markdown(table),
            Self::Latex => latex(table),
        }
    }
}

/// The report's tables that have rows, with the names of their files: `results`, `verdicts`.
pub fn tables(report: &Report) -> Vec<(&'static str, Table)> {
    let mut verdicts = verdicts(&report.verdicts);
    add_verdicts(report, &mut verdicts);
    if !report.changed.is_empty() {
        verdicts.columns.push(CHANGED.to_owned());
        verdicts.rows.iter_mut().for_each(|row| row.push(report.changed.join(" ")));
    }
    let all = [("results", report.results.clone()), ("verdicts", verdicts)];
    all.into_iter().filter(|(_, table)| !table.rows.is_empty()).collect()
}

/// A row for each comparison; ends are empty where there is no interval.
fn verdicts(verdicts: &[Verdict]) -> Table {
    let columns = ["quantity", "policy", "against", "difference", "low", "high", "pairs", "verdict", "better"];
    let row = |verdict: &Verdict| {
        let end = |end: usize| verdict.difference.ci95.map_or_else(String::new, |ends| ends[end].to_string());
        let better = match verdict.is_better {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        vec![
            verdict.quantity.clone(),
            verdict.subject.clone(),
            verdict.against.clone(),
            verdict.difference.value.to_string(),
            end(0),
            end(1),
            verdict.pairs.to_string(),
            verdict.verdict.clone(),
            better.to_owned(),
        ]
    };
    Table { columns: columns.map(str::to_owned).to_vec(), rows: verdicts.iter().map(row).collect() }
}

fn markdown(table: &Table) -> String {
    let cell = |text: &String| {
        let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let line = |cells: &Vec<String>| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.columns.len()));
    let rows: String = table.rows.iter().map(line).collect();
    format!("{}{rule}{rows}", line(&table.columns))
}

/// A letter as LaTeX takes it literally.
fn literal(letter: char) -> String {
    match letter {
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{letter}"),
        '\\' => "\\textbackslash{}".to_owned(),
        '~' => "\\textasciitilde{}".to_owned(),
        '^' => "\\textasciicircum{}".to_owned(),
        '<' | '>' => format!("${letter}$"),
        '±' => "$\\pm$".to_owned(),
        '−' => "$-$".to_owned(),
        '–' => "--".to_owned(),
        letter if letter.is_whitespace() || letter.is_control() => " ".to_owned(),
        letter => letter.to_string(),
    }
}

/// A word of a cell; powers of ten are written as such.
fn word(text: &str) -> String {
    let power = text.split_once('e').filter(|_| text.parse::<f64>().is_ok());
    match power {
        Some((factor, exponent)) => format!("${factor} \\times 10^{{{exponent}}}$"),
        None => text.chars().map(literal).collect(),
    }
}

fn latex(table: &Table) -> String {
    let cell = |text: &String| {
        let words = text.split_inclusive([' ', '[', ']', ',', '±', '(', ')', ';']);
        let parts = words.flat_map(|part| {
            let ends = part.char_indices().next_back().filter(|(_, last)| !last.is_alphanumeric());
            let (inside, end) = part.split_at(ends.map_or(part.len(), |(at, _)| at));
            [word(inside), end.chars().map(literal).collect()]
        });
        parts.collect::<String>()
    };
    let line = |cells: &Vec<String>| format!("{} \\\\\n", cells.iter().map(cell).collect::<Vec<_>>().join(" & "));
    let aligned = "r".repeat(table.columns.len().saturating_sub(1));
    let rows: String = table.rows.iter().map(line).collect();
    format!(
        "% needs \\usepackage{{booktabs}}\n\\begin{{tabular}}{{l{aligned}}}\n\\toprule\n{}\\midrule\n{rows}\\bottomrule\n\
         \\end{{tabular}}\n",
        line(&table.columns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let texts = |row: [&str; 2]| row.map(str::to_owned).to_vec();
        Table { columns: texts(["policy", "s to test_loss <= 1"]), rows: vec![texts(["a|b\\c", "3 ± 1 (50 %)"])] }
    }

    #[test]
    fn nothing_in_a_cell_is_markup() {
        assert_eq!(
            markdown(&table()),
            "| policy | s to test_loss &lt;= 1 |\n|---|---|\n| a\\|b\\\\c | 3 ± 1 (50 %) |\n"
        );
        assert_eq!(
            latex(&table()),
            "% needs \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\npolicy & s to test\\_loss $<$= 1 \\\\\n\
             \\midrule\na|b\\textbackslash{}c & 3 $\\pm$ 1 (50 \\%) \\\\\n\\bottomrule\n\\end{tabular}\n"
        );
    }

    #[test]
    fn powers_of_ten_are_set_as_such() {
        let texts = |text: &str| vec![text.to_owned()];
        let table = Table { columns: texts("bytes"), rows: vec![texts("1.480e9 [1.3e9, 1e-5] done 2e")] };
        let found = latex(&table);
        let expected = "$1.480 \\times 10^{9}$ [$1.3 \\times 10^{9}$, $1 \\times 10^{-5}$] done 2e";
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn verdicts_have_a_row_each_and_empty_ends_without_an_interval() {
        let verdict = Verdict {
            point: String::new(),
            quantity: "rounds".to_owned(),
            subject: "mine".to_owned(),
            against: "theirs".to_owned(),
            difference: super::super::model::Interval { value: -2.5, ci95: None },
            pairs: 2,
            verdict: "not told apart".to_owned(),
            seeds_needed: None,
            is_better: None,
        };
        let report = Report { verdicts: vec![verdict], ..Report::default() };
        let [(name, found)] = &tables(&report)[..] else { panic!("results have no row") };
        assert_eq!(
            (*name, found.rows[0].join(",")),
            ("verdicts", "rounds,mine,theirs,-2.5,,,2,not told apart,".to_owned())
        );
    }
}
