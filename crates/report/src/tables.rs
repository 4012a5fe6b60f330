//! Results and verdicts as tables for a text or a spreadsheet.

use super::csv::table_csv;
use super::lacking::add_verdicts;
use super::model::{CHANGED, Report, Table, Verdict};
use fedgenie_core::text;

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
    let cell = |text: &String| text::markdown::literal(text);
    let line = |cells: &Vec<String>| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
    let rule = format!("|{}\n", "---|".repeat(table.columns.len()));
    let rows: String = table.rows.iter().map(line).collect();
    format!("{}{rule}{rows}", line(&table.columns))
}

/// A number with a power of ten, set as such.
fn power(word: &str) -> Option<String> {
    let (factor, exponent) = word.split_once('e').filter(|_| word.parse::<f64>().is_ok())?;
    Some(format!("${factor} \\times 10^{{{exponent}}}$"))
}

/// A cell. The parts between powers of ten are written like numbers and intervals.
pub(super) fn in_latex(cell: &str) -> String {
    let is_between = |letter: char| letter.is_whitespace() || "[],±();".contains(letter);
    let mut shown = String::new();
    let mut plain = 0;
    // A word that is no power of ten stays whole: adjacent signs may have a meaning.
    let mut start = 0;
    for piece in cell.split_inclusive(is_between) {
        let part = piece.trim_end_matches(is_between);
        if let Some(power) = power(part).or_else(|| negative(part)) {
            shown.push_str(&text::latex::literal(&cell[plain..start]));
            shown.push_str(&power);
            plain = start + part.len();
        }
        start += piece.len();
    }
    shown + &text::latex::literal(&cell[plain..])
}

/// A negative number, with a minus in the place of a hyphen.
fn negative(part: &str) -> Option<String> {
    let digits = part.strip_prefix('-').filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))?;
    digits.parse::<f64>().ok().map(|_| format!("$-{digits}$"))
}

/// A text with one sign for each comparison.
pub(super) fn in_signs(text: &str) -> String {
    text.replace("<=", "≤").replace(">=", "≥")
}

fn latex(table: &Table) -> String {
    let cell = |cell: &String| in_latex(&in_signs(cell));
    let line = |cells: &Vec<String>| text::latex::row(&cells.iter().map(cell).collect::<Vec<_>>());
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
            "% needs \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\npolicy & s to test\\_loss $\\leq$ 1 \\\\\n\
             \\midrule\na\\textbar{}b\\textbackslash{}c & 3 $\\pm$ 1 (50 \\%) \\\\\n\\bottomrule\n\\end{tabular}\n"
        );
    }

    #[test]
    fn powers_of_ten_are_set_as_such() {
        let texts = |text: &str| vec![text.to_owned()];
        let of = |cell: &str| latex(&Table { columns: texts("bytes"), rows: vec![texts(cell)] });
        let expected = "$1.480 \\times 10^{9}$ [$1.3 \\times 10^{9}$, $1 \\times 10^{-5}$] done 2e";
        let found = of("1.480e9 [1.3e9, 1e-5] done 2e");
        assert!(found.contains(expected), "{found}");
        let found = of("-3 [-4.5, 1] a-3 -x");
        assert!(found.contains("$-3$ [$-4.5$, 1] a-3 -x"), "{found}");
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
