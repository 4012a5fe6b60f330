//! A report's files.

use super::csv::{csv_of, table_csv_of};
use super::headline::Headline;
use super::html;
use super::model::{Figure, Report};
use super::source::Results;
use super::svg::{self, Form, Layout};
use super::tables::{TableFormat, tables};
use fedgenie_experiment::error::Error;
use fedgenie_experiment::experiment::artefacts::PAGE_FILE;
use fedgenie_experiment::experiment::files::write_file;
use fedgenie_experiment::experiment::{Experiment, Summary};
use std::fs;
use std::path::{Path, PathBuf};

/// File formats of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureFormat {
    /// A picture for a paper.
    Svg,
    /// The same as a page of its own.
    Pdf,
    /// Its data.
    Csv,
}

impl FigureFormat {
    const fn ending(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Csv => "csv",
        }
    }
}

/// Writes figures and the data of decisions into a folder, which is made if it is not there. Returns the written paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write_figures(report: &Report, folder: &Path, format: FigureFormat) -> Result<Vec<PathBuf>, Error> {
    write_figures_as(report, folder, format, Layout::default())
}

/// As [`write_figures`], with pictures in this layout.
///
/// # Errors
/// If a file cannot be written.
pub fn write_figures_as(
    report: &Report,
    folder: &Path,
    format: FigureFormat,
    layout: Layout,
) -> Result<Vec<PathBuf>, Error> {
    write_some(report, folder, (format, layout), |_| true)
}

fn write_some(
    report: &Report,
    folder: &Path,
    (format, layout): (FigureFormat, Layout),
    is_wanted: impl Fn(&Figure) -> bool,
) -> Result<Vec<PathBuf>, Error> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let mut written = Vec::new();
    for figure in report.figures.iter().filter(|figure| is_wanted(figure)) {
        let draw = |form| svg::draw_as(figure, &report.series, &report.title, Layout { form, ..layout });
        let bytes = match format {
            FigureFormat::Svg => draw(Form::Svg),
            FigureFormat::Pdf => draw(Form::Pdf),
            FigureFormat::Csv => Some(csv_of(figure, &report.changed).into_bytes()),
        };
        let Some(bytes) = bytes else { continue };
        let path = folder.join(format!("{}.{}", figure.id, format.ending()));
        write_file(&path, &bytes)?;
        written.push(path);
    }
    let tables = report.why.iter().filter(|_| format == FigureFormat::Csv);
    for why in tables.filter(|why| !why.data.rows.is_empty()) {
        let path = folder.join(format!("{}.{}", why.id, format.ending()));
        write_file(&path, table_csv_of(&why.data, &report.changed).as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// Writes the tables of results and verdicts into a folder, one file each. Returns the written paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write_tables(report: &Report, folder: &Path, format: TableFormat) -> Result<Vec<PathBuf>, Error> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let mut written = Vec::new();
    for (name, table) in tables(report) {
        let path = folder.join(format!("{name}.{}", format.ending()));
        write_file(&path, format.text(&table).as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

/// Writes a headline table into a folder. Returns the path.
///
/// # Errors
/// If the file cannot be written.
pub fn write_headline(headline: &Headline, folder: &Path, format: TableFormat) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    let path = folder.join(format!("headline.{}", format.ending()));
    write_file(&path, headline.text(format).as_bytes())?;
    Ok(path)
}

/// Writes the report as a page for a browser.
///
/// # Errors
/// If the file cannot be written.
pub fn write_page(report: &Report, path: &Path) -> Result<(), Error> {
    write_file(path, html(report).as_bytes())
}

/// Writes the additions of `run --out` to its records: the page, and pictures of regret, metrics, selections, rounds
/// and totals. They are written into the folder `into`, and show the results of the folder `of`.
///
/// # Errors
/// If a file cannot be written.
pub fn write_with_records(into: &Path, of: &Path, experiment: &Experiment, summary: &Summary) -> Result<(), Error> {
    if summary.runs.is_empty() {
        return Ok(());
    }
    let report = Report::of(&[Results::of(experiment, summary, of)]);
    write_page(&report, &into.join(PAGE_FILE))?;
    let is_detail = |figure: &Figure| {
        ["difference-", "why-"].iter().any(|start| figure.id.starts_with(start))
            || figure.id.ends_with("-rounds")
            || figure.id.ends_with("-time")
    };
    write_some(&report, into, (FigureFormat::Svg, Layout::default()), |figure| !is_detail(figure)).map(drop)
}
