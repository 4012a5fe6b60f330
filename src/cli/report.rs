//! `fedgenie report`

use super::{ReportArguments, paragraph, print, say, whole_number};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::{FIGURES_FOLDER, PAGE_FILE};
use fedgenie::experiment::below::own;
use fedgenie::experiment::note_written;
use fedgenie::experiment::stored::{Notice, Reader};
use fedgenie::report::{
    Chart, Figure, FigureFormat, Headline, HeadlineWishes, Layout, LayoutWishes, Report, TableFormat, headline,
    write_figures_as, write_headline, write_page, write_tables,
};
use fedgenie::text::{self, message};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The files beside a page: figures, tables, or both.
type Parts = (Option<FigureFormat>, Option<TableFormat>);

pub fn report(arguments: &ReportArguments) -> Result<u8, Error> {
    let parts = parts_of(&arguments.format)?;
    if arguments.figure.is_some() && parts.0.is_none() {
        let message = format!("--figure is for --format svg, pdf or csv, and found --format {}", arguments.format);
        return Err(Error::Usage(message));
    }
    let of_pictures = [
        ("--title", arguments.title.is_some()),
        ("--width", arguments.width.is_some()),
        ("--height", arguments.height.is_some()),
        ("--range", !arguments.range.is_empty()),
        ("--font", arguments.font.is_some()),
        ("--legend-below", arguments.legend_below),
    ];
    let is_picture = matches!(parts.0, Some(FigureFormat::Svg | FigureFormat::Pdf));
    let given = of_pictures.into_iter().find(|(_, is_given)| *is_given);
    if let Some((option, _)) = given.filter(|_| !is_picture) {
        let message = format!("{option} is for --format svg or pdf, and found --format {}", arguments.format);
        return Err(Error::Usage(message));
    }
    let layout = layout_of(arguments)?;
    let wishes = wishes_of(arguments, parts)?;
    let told = RefCell::new(Vec::new());
    let tell = |notice: &Notice| {
        super::tell(notice);
        told.borrow_mut().push(notice.sentence());
    };
    let reader = Reader::new(&tell).allowing_changed(arguments.allow_changed);
    let mut results = Report::results(&arguments.folders, arguments.reference.as_deref(), &reader)?;
    if parts == (None, None) && (!wishes.columns.is_empty() || wishes.ratio_to.is_some()) {
        // An unknown name is refused as for other formats.
        let table = headline(&results, wishes)?;
        let columns = if wishes.columns.is_empty() { &[] } else { table.keys() };
        results.iter_mut().for_each(|results| results.show_first(columns, wishes.ratio_to));
    }
    let mut report = Report::of(&results);
    for warning in report.warnings.iter().filter(|warning| !told.borrow().contains(warning)) {
        say(&format!("fedgenie: warning: {}", message(warning)));
    }
    if let Some(name) = &arguments.figure {
        let known = |names: Vec<String>| format!("found --figure {name}; expected one of {}", names.join(", "));
        report.keep_figure(name).map_err(known).map_err(Error::Usage)?;
    }
    let has_lines = |figure: &Figure| matches!(figure.chart, Chart::Lines { .. });
    if !arguments.range.is_empty() && !report.figures.iter().all(has_lines) {
        let name = arguments.figure.as_deref().unwrap_or_default();
        return Err(Error::Usage(format!("--range is for figures of lines, and {name} has none")));
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
        let table = if parts.1.is_some() { headline(&results, wishes)? } else { Headline::default() };
        write_parts(arguments, (&report, &table), (parts, layout), &target(FIGURES_FOLDER))?;
    }
    print(&paragraph(&report.answers))?;
    print(&paragraph(&report.more))?;
    Ok(0)
}

/// The files that a format asks for.
fn parts_of(format: &str) -> Result<Parts, Error> {
    Ok(match format {
        "html" => (None, None),
        "svg" => (Some(FigureFormat::Svg), None),
        "pdf" => (Some(FigureFormat::Pdf), None),
        "csv" => (Some(FigureFormat::Csv), Some(TableFormat::Csv)),
        "md" => (None, Some(TableFormat::Markdown)),
        "latex" => (None, Some(TableFormat::Latex)),
        other => {
            return Err(Error::Usage(format!("found --format {other}; expected html, svg, pdf, csv, md or latex")));
        }
    })
}

/// How the headline table is made.
fn wishes_of(arguments: &ReportArguments, (_, tables): Parts) -> Result<HeadlineWishes<'_>, Error> {
    let ReportArguments { columns, ratio_to, digits, .. } = arguments;
    let of_table =
        [("--columns", !columns.is_empty()), ("--ratio-to", ratio_to.is_some()), ("--digits", digits.is_some())];
    let given = of_table.into_iter().find(|(_, is_given)| *is_given);
    let has_table = |option: &str| tables.is_some() || arguments.format == "html" && option != "--digits";
    if let Some((option, _)) = given.filter(|(option, _)| !has_table(option) || arguments.figure.is_some()) {
        let found = if has_table(option) { "--figure".to_owned() } else { format!("--format {}", arguments.format) };
        let page = if option == "--digits" { "" } else { "html, " };
        return Err(Error::Usage(format!(
            "{option} is for the tables of --format {page}csv, md or latex, and found {found}"
        )));
    }
    let digits = digits.as_ref().map(|digits| whole_number("digits", digits, (1, 15))).transpose()?;
    Ok(HeadlineWishes { columns, ratio_to: ratio_to.as_deref(), digits })
}

/// How pictures are laid out.
fn layout_of(arguments: &ReportArguments) -> Result<Layout, Error> {
    if !arguments.range.is_empty() && arguments.figure.is_none() {
        return Err(Error::Usage("--range is for one figure; name it by --figure".to_owned()));
    }
    let ReportArguments { range, width, height, font, legend_below, .. } = arguments;
    LayoutWishes {
        ranges: range,
        width: *width,
        height: *height,
        font: font.as_deref(),
        has_legend_below: *legend_below,
    }
    .layout()
}

/// Writes figures and tables into a folder.
fn write_parts(
    arguments: &ReportArguments,
    (report, headline): (&Report, &Headline),
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
    let mut told = tables.map_or_else(|| Ok(Vec::new()), |format| write_tables(report, folder, format))?;
    if let Some(format) = tables.filter(|_| !headline.is_empty()) {
        told.push(write_headline(headline, folder, format)?);
    }
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
