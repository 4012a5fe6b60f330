//! `fedgenie report`

use super::{ReportArguments, paragraph, print, say};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::{FIGURES_FOLDER, PAGE_FILE};
use fedgenie::experiment::below::own;
use fedgenie::experiment::note_written;
use fedgenie::report::{FigureFormat, Layout, Report, TableFormat, write_figures_as, write_page, write_tables};
use fedgenie::text::{self, message};
use std::path::{Path, PathBuf};

/// What is written beside a page: figures, tables, or both.
type Parts = (Option<FigureFormat>, Option<TableFormat>);

pub fn report(arguments: &ReportArguments) -> Result<u8, Error> {
    let parts: Parts = match arguments.format.as_str() {
        "html" => (None, None),
        "svg" => (Some(FigureFormat::Svg), None),
        "csv" => (Some(FigureFormat::Csv), Some(TableFormat::Csv)),
        "md" => (None, Some(TableFormat::Markdown)),
        "latex" => (None, Some(TableFormat::Latex)),
        other => return Err(Error::Usage(format!("found --format {other}; expected html, svg, csv, md or latex"))),
    };
    if arguments.figure.is_some() && parts.0.is_none() {
        let message = format!("--figure is for --format svg or csv, and found --format {}", arguments.format);
        return Err(Error::Usage(message));
    }
    let of_pictures = [
        ("--title", arguments.title.is_some()),
        ("--width", arguments.width.is_some()),
        ("--height", arguments.height.is_some()),
        ("--legend-below", arguments.legend_below),
    ];
    let given = of_pictures.into_iter().find(|(_, is_given)| *is_given);
    if let Some((option, _)) = given.filter(|_| parts.0 != Some(FigureFormat::Svg)) {
        let message = format!("{option} is for --format svg, and found --format {}", arguments.format);
        return Err(Error::Usage(message));
    }
    let layout = layout_of(arguments)?;
    let mut report = Report::load_against(&arguments.folders, arguments.reference.as_deref())?;
    for warning in &report.warnings {
        say(&format!("fedgenie: warning: {}", message(warning)));
    }
    if let Some(name) = &arguments.figure {
        let known = |names: Vec<String>| format!("found --figure {name}; expected one of {}", names.join(", "));
        report.keep_figure(name).map_err(known).map_err(Error::Usage)?;
    }
    if let Some(title) = &arguments.title {
        report.head_figures(title);
    }
    let target = |name: &str| match &arguments.folders[..] {
        _ if arguments.out.is_some() => arguments.out.clone().unwrap_or_default(),
        [only] => only.join(name),
        _ => PathBuf::from(name),
    };
    if parts == (None, None) {
        let path = target(PAGE_FILE);
        if path.is_dir() {
            let message = format!("{} is a folder; give -o a file, such as report.html", path.display());
            return Err(Error::Usage(message));
        }
        write_page(&report, &path)?;
        print(&format!("written to {}\n", text::path(&path)))?;
    } else {
        write_parts(arguments, &report, (parts, layout), &target(FIGURES_FOLDER))?;
    }
    print(&paragraph(&report.answers))?;
    Ok(0)
}

/// How pictures are laid out.
fn layout_of(arguments: &ReportArguments) -> Result<Layout, Error> {
    const MOST: u32 = 4000;
    let of = |option: &str, found: Option<u32>, least: u32, otherwise: i32| match found {
        None => Ok(otherwise),
        Some(pixels) if (least..=MOST).contains(&pixels) => Ok(pixels as i32),
        Some(pixels) => Err(Error::Usage(format!("found {option} {pixels}; expected {least} to {MOST} pixels"))),
    };
    let Layout { width, height, .. } = Layout::default();
    Ok(Layout {
        width: of("--width", arguments.width, 300, width)?,
        height: of("--height", arguments.height, 200, height)?,
        has_legend_below: arguments.legend_below,
    })
}

/// Writes figures and tables into a folder.
fn write_parts(
    arguments: &ReportArguments,
    report: &Report,
    ((figures, tables), layout): (Parts, Layout),
    folder: &Path,
) -> Result<(), Error> {
    let of_folder = match (&arguments.folders[..], &arguments.out) {
        ([results], None) => Some(results),
        _ => None,
    };
    if of_folder.is_some_and(|results| own(results, &format!("{FIGURES_FOLDER}/figure")).is_err()) {
        let message = format!("{} is a link or a file; give -o a folder for the figures", folder.display());
        return Err(Error::Usage(message));
    }
    if folder.is_file() {
        let message = format!("{} is a file; give -o a folder for one file per figure", folder.display());
        return Err(Error::Usage(message));
    }
    let drawn = figures.map_or_else(|| Ok(Vec::new()), |format| write_figures_as(report, folder, format, layout))?;
    let tables = tables.filter(|_| arguments.figure.is_none());
    let told = tables.map_or_else(|| Ok(Vec::new()), |format| write_tables(report, folder, format))?;
    if let Some(results) = of_folder {
        let names = drawn.iter().chain(&told).filter_map(|path| path.strip_prefix(results).ok());
        note_written(results, names.map(|name| name.to_string_lossy().replace('\\', "/")))?;
    }
    let count = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    };
    let counted: Vec<String> =
        [count(drawn.len(), "figure"), count(told.len(), "table")].into_iter().flatten().collect();
    let counted = if counted.is_empty() { "nothing to be".to_owned() } else { counted.join(" and ") };
    print(&format!("{counted} written to {}\n", text::path(folder)))
}
