//! What is written of results: tables, differences and figures of a folder one of whose files is another, with the
//! digest of what it holds now; and figures as they are asked for.

use super::folder::{Complete, complete};
use super::{assert_told, files, markup};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;
use fedgenie::experiment::artefacts::{MANIFEST_FILE, hash};
use fedgenie::experiment::stored::Reader;
use fedgenie::report::{
    Chart, Diff, ExportFormat, Figure, Interval, LayoutWishes, LineKind, Report, TableFormat, csv, export, html,
    picture, table_csv,
};
use fedgenie::report::{Form, Layout};
use fedgenie::text::{escaped_json, is_control, spreadsheet};
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The files of which an input may be one, by its first byte.
const FILES: [&str; 5] = ["run.json", "rounds.jsonl", "summary.json", "scenario.toml", MANIFEST_FILE];

fn corpus() -> Vec<Vec<u8>> {
    complete(|complete| {
        let good = |(name, number): (&&str, u8)| [&[number][..], &fs::read(complete.file(name)).unwrap()].concat();
        FILES.iter().zip(0..).map(good).collect()
    })
}

/// Puts the input in the place of a file of the folder, whose manifest says so, and works with it.
fn forged(input: &[u8], work: impl FnOnce(&Complete) -> Result<(), String>) -> Result<(), String> {
    let Some((&first, contents)) = input.split_first() else { return Ok(()) };
    complete(|complete| {
        let path = complete.file(FILES[usize::from(first) % FILES.len()]);
        let manifest = complete.file(MANIFEST_FILE);
        let good = [&path, &manifest].map(|path| fs::read(path).unwrap());
        fs::write(&path, contents).unwrap();
        if path != manifest {
            let mut document: Value = serde_json::from_slice(&good[1]).unwrap();
            let name = path.strip_prefix(&complete.folder).unwrap().to_str().unwrap();
            document["files"][name] = json!(hash(contents));
            fs::write(&manifest, document.to_string()).unwrap();
        }
        let done = work(complete);
        fs::write(&path, &good[0]).unwrap();
        fs::write(&manifest, &good[1]).unwrap();
        done
    })
}

/// The tables of a folder, as they are written in a form.
fn tables(complete: &Complete, format: ExportFormat) -> Result<Vec<PathBuf>, String> {
    let into = files::folder().join("tables").join(format!("{format:?}"));
    if into.exists() {
        fs::remove_dir_all(&into).unwrap();
    }
    let reader = Reader::new(&|_| {}).allowing_changed(true);
    let written = export(std::slice::from_ref(&complete.folder), &into, format, &reader);
    let is_table = |path: &PathBuf| path.extension().is_none_or(|ending| ending != "json");
    written.map(|exported| exported.paths.into_iter().filter(is_table).collect()).map_err(|error| {
        let message = error.to_string();
        assert_told(&message, &["results"]);
        message
    })
}

fn read(path: &Path) -> Vec<Vec<String>> {
    markup::csv(&fs::read_to_string(path).unwrap())
}

pub mod export_csv {
    /// Every table has headings, and every row as many cells.
    pub fn run(input: &[u8]) -> Result<(), String> {
        super::forged(input, |complete| {
            let paths = super::tables(complete, super::ExportFormat::Csv)?;
            assert!(paths.iter().all(|path| !super::read(path).is_empty()));
            Ok(())
        })
    }
}

/// What a cell of Parquet is in a table of CSV.
fn written(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => spreadsheet::cell(text).into_owned(),
        Field::Long(integer) => integer.to_string(),
        Field::Double(number) => format!("{number:?}"),
        other => panic!("a column of {other:?}"),
    }
}

/// Names and rows of a table of Parquet, as CSV has them.
fn rows_of(path: &Path) -> Vec<Vec<String>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    let names = columns.iter().map(|column| spreadsheet::cell(column.name()).into_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![names];
    for row in reader.get_row_iter(None).unwrap() {
        rows.push(row.unwrap().get_column_iter().map(|(_, field)| written(field)).collect());
    }
    rows
}

macro_rules! of_folders {
    ($($name:ident: $run:expr;)+) => {
        $(pub mod $name {
            pub fn corpus() -> Vec<Vec<u8>> {
                super::corpus()
            }
            pub fn run(input: &[u8]) -> Result<(), String> {
                let run: fn(&[u8]) -> Result<(), String> = $run;
                run(input)
            }
        })+
    };
}
of_folders! {
    export: super::export_csv::run;
    // Both forms are refused together, or have the same cells.
    parquet: |input| super::forged(input, |complete| {
        let found = super::tables(complete, super::ExportFormat::Parquet);
        let expected = super::tables(complete, super::ExportFormat::Csv);
        assert_eq!(found.is_ok(), expected.is_ok(), "{found:?} {expected:?}");
        for (found, expected) in found?.iter().zip(&expected?) {
            assert_eq!(super::rows_of(found), super::read(expected), "{}", found.display());
        }
        Ok(())
    });
    diff: |input| super::forged(input, super::compare);
}

/// The folder beside what it was.
fn compare(complete: &Complete) -> Result<(), String> {
    for folders in [[&complete.before, &complete.folder], [&complete.folder, &complete.before]] {
        let diff =
            Diff::load(&folders.map(Clone::clone), &Reader::new(&|_| {}).allowing_changed(true)).map_err(|error| {
                let message = error.to_string();
                assert_told(&message, &["results"]);
                message
            })?;
        assert!(!diff.text().is_empty());
        let document = serde_json::to_string_pretty(&diff).unwrap();
        let shown = escaped_json(&document);
        assert!(!shown.contains(|letter| is_control(letter) && letter != '\n'));
        let [one, other] = [&document, &*shown].map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(one, other);
        for result in &diff.results {
            let numbers = result.values.iter().chain([&result.difference]).flatten();
            assert!(numbers.into_iter().all(|found| found.mean.is_finite()), "{result:?}");
        }
    }
    Ok(())
}

thread_local! {
    static REPORT: OnceCell<Report> = const { OnceCell::new() };
}

fn report() -> Report {
    let load = || {
        complete(|complete| {
            Report::load_against(std::slice::from_ref(&complete.folder), None, &Reader::new(&|_| {})).unwrap()
        })
    };
    REPORT.with(|report| report.get_or_init(load).clone())
}

/// Lines `option=value`: those of `report`; `numbers`, which a figure shows in the place of its own; `cell`, a text in
/// the table of results.
pub mod figures {
    pub fn corpus() -> Vec<Vec<u8>> {
        let mut inputs: Vec<String> = Vec::new();
        for (number, figure) in super::report().figures.iter().enumerate() {
            let format = ["svg", "pdf", "csv"][number % 3];
            let font = ["sans-serif", "serif", "monospace"][number % 3];
            inputs.push(format!(
                "format={format}\nfigure={}\nwidth={}\nheight={}\nfont={font}\n",
                figure.id,
                300 + 100 * number,
                200 + 90 * number
            ));
        }
        for more in [
            "range=0:5\nrange=x=1:4\nlegend=below\n",
            "range=-1e300:1e300\ntitle=A title\n",
            "numbers=0,1,2.5,-3\n",
            "numbers=1e308,-1e308\nrange=x=0.5:1e9\n",
            "numbers=5e-324,0\n",
        ] {
            inputs.push(format!("format=svg\nfigure=regret\n{more}"));
        }
        for format in ["md", "latex", "csv", "html"] {
            inputs.push(format!("format={format}\ncell=[2cm] =cmd|'!A0 ![i](http://a.b) \\input{{x}} <b>\ncell=1e5\n"));
        }
        inputs.into_iter().map(String::into_bytes).collect()
    }

    pub fn run(input: &[u8]) -> Result<(), String> {
        super::drawn(std::str::from_utf8(input).map_err(|error| error.to_string())?)
    }
}

/// Draws what is asked for.
fn drawn(text: &str) -> Result<(), String> {
    let asked: Vec<(&str, &str)> = text.split('\n').filter_map(|line| line.split_once('=')).collect();
    let all =
        |option: &str| asked.iter().filter(|(name, _)| *name == option).map(|(_, value)| *value).collect::<Vec<_>>();
    let last = |option: &str| all(option).last().copied();
    let mut report = report();
    let ranges: Vec<String> = all("range").into_iter().map(str::to_owned).collect();
    let pixels = |option: &str| last(option).and_then(|value| value.parse().ok());
    let wishes = LayoutWishes {
        ranges: &ranges,
        width: pixels("width"),
        height: pixels("height"),
        font: last("font"),
        has_legend_below: last("legend") == Some("below"),
    };
    let layout = wishes.layout().map_err(|error| {
        let message = error.to_string();
        assert!(message.starts_with("found --") && message.contains("expected"), "{message}");
        message
    })?;
    if let Some(name) = last("figure") {
        report.keep_figure(name).map_err(|names| names.join(", "))?;
    }
    if let Some(title) = last("title") {
        report.head_figures(title);
    }
    let numbers: Vec<f64> = last("numbers").into_iter().flat_map(|list| list.split(',')).flat_map(str::parse).collect();
    let numbers: Vec<f64> = numbers.into_iter().filter(|number| number.is_finite()).collect();
    if !numbers.is_empty() {
        report.figures.iter_mut().for_each(|figure| replace(figure, &numbers));
    }
    for cell in all("cell") {
        let width = report.results.columns.len();
        report.results.rows.push(vec![cell.to_owned(); width]);
        report.results.columns[width - 1] = cell.to_owned();
    }
    write(&report, last("format").unwrap_or("html"), layout)
}

/// Puts numbers in the place of those that a figure shows, over and over.
fn replace(figure: &mut Figure, numbers: &[f64]) {
    let mut next = numbers.iter().copied().cycle();
    let mut next = || next.next().unwrap();
    match &mut figure.chart {
        Chart::Lines { lines, marks, .. } => {
            for line in lines.iter_mut().filter(|line| line.role != LineKind::Bound) {
                line.points.iter_mut().for_each(|point| point.1 = next());
                line.band.iter_mut().for_each(|(_, ends)| {
                    *ends = [next(), next()];
                    ends.sort_by(f64::total_cmp);
                });
            }
            marks.iter_mut().for_each(|mark| mark.value = next());
        }
        Chart::Heat { panels, .. } => {
            panels.iter_mut().flat_map(|panel| &mut panel.cells).flatten().flatten().for_each(|cell| *cell = next());
        }
        Chart::Bars { parts, .. } => {
            parts.iter_mut().flat_map(|(_, lengths)| lengths).for_each(|length| *length = next().abs());
        }
        Chart::Intervals { rows, .. } => {
            rows.iter_mut().for_each(|(.., found)| *found = Interval { value: next(), ci95: None });
        }
    }
}

fn write(report: &Report, format: &str, layout: Layout) -> Result<(), String> {
    let draw = |figure: &Figure, form| picture(figure, &report.series, &report.title, Layout { form, ..layout });
    match format {
        "svg" => {
            for drawn in report.figures.iter().filter_map(|figure| draw(figure, Form::Svg)) {
                let drawn = String::from_utf8(drawn).unwrap();
                assert!(drawn.starts_with("<svg") && drawn.trim_end().ends_with("</svg>"), "{drawn}");
                assert!(!drawn.contains(|letter| is_control(letter) && !"\n\t".contains(letter)), "{drawn:?}");
                assert!(!["=\"NaN", "=\"inf", "=\"-inf"].iter().any(|number| drawn.contains(number)), "{drawn}");
            }
        }
        "pdf" => {
            for drawn in report.figures.iter().filter_map(|figure| draw(figure, Form::Pdf)) {
                assert!(drawn.starts_with(b"%PDF-1.") && drawn.ends_with(b"%%EOF"));
            }
        }
        "csv" => {
            report.figures.iter().for_each(|figure| drop(markup::csv(&csv(figure))));
            markup::csv(&table_csv(&report.results));
        }
        "md" => drop(markup::markdown(&TableFormat::Markdown.text(&report.results))),
        "latex" => drop(markup::latex(&TableFormat::Latex.text(&report.results))),
        "html" => {
            let page = html(report);
            assert!(!page.contains(|letter| is_control(letter) && !"\n\t".contains(letter)));
        }
        other => return Err(format!("found --format {other}")),
    }
    Ok(())
}
