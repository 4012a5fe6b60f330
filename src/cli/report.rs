//! `fedgenie report`

use super::{ReportWords, print};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::{FIGURES_FOLDER, PAGE_FILE};
use fedgenie::report::{FigureFormat, Report, write_figures, write_page};
use std::path::PathBuf;

pub fn report(words: &ReportWords) -> Result<u8, Error> {
    let format = match words.format.as_str() {
        "html" => None,
        "svg" => Some(FigureFormat::Svg),
        "csv" => Some(FigureFormat::Csv),
        other => return Err(Error::Usage(format!("found --format {other}; expected html, svg or csv"))),
    };
    let report = Report::load(&words.folders)?;
    for warning in &report.warnings {
        eprintln!("fedgenie: warning: {warning}");
    }
    let place = |name: &str| match &words.folders[..] {
        _ if words.out.is_some() => words.out.clone().unwrap_or_default(),
        [only] => only.join(name),
        _ => PathBuf::from(name),
    };
    match format {
        None => {
            let path = place(PAGE_FILE);
            if path.is_dir() {
                let message = format!("{} is a folder; give -o a file, such as report.html", path.display());
                return Err(Error::Usage(message));
            }
            write_page(&report, &path)?;
            print(&format!("written to {}\n", path.display()))?;
        }
        Some(format) => {
            let folder = place(FIGURES_FOLDER);
            if folder.is_file() {
                let message = format!("{} is a file; give -o a folder for one file per figure", folder.display());
                return Err(Error::Usage(message));
            }
            let written = write_figures(&report, &folder, format)?;
            print(&format!("{} figures written to {}\n", written.len(), folder.display()))?;
        }
    }
    Ok(0)
}
