//! `fedgenie report`

use super::{ReportArguments, paragraph, print, say};
use fedgenie::error::Error;
use fedgenie::experiment::artefacts::{FIGURES_FOLDER, PAGE_FILE};
use fedgenie::experiment::below::own;
use fedgenie::experiment::note_written;
use fedgenie::report::{FigureFormat, Report, write_figures, write_page};
use fedgenie::text::{self, message};
use std::path::PathBuf;

pub fn report(arguments: &ReportArguments) -> Result<u8, Error> {
    let format = match arguments.format.as_str() {
        "html" => None,
        "svg" => Some(FigureFormat::Svg),
        "csv" => Some(FigureFormat::Csv),
        other => return Err(Error::Usage(format!("found --format {other}; expected html, svg or csv"))),
    };
    let report = Report::load_against(&arguments.folders, arguments.reference.as_deref())?;
    for warning in &report.warnings {
        say(&format!("fedgenie: warning: {}", message(warning)));
    }
    let target = |name: &str| match &arguments.folders[..] {
        _ if arguments.out.is_some() => arguments.out.clone().unwrap_or_default(),
        [only] => only.join(name),
        _ => PathBuf::from(name),
    };
    match format {
        None => {
            let path = target(PAGE_FILE);
            if path.is_dir() {
                let message = format!("{} is a folder; give -o a file, such as report.html", path.display());
                return Err(Error::Usage(message));
            }
            write_page(&report, &path)?;
            print(&format!("written to {}\n", text::path(&path)))?;
        }
        Some(format) => {
            let folder = target(FIGURES_FOLDER);
            if let ([results], None) = (&arguments.folders[..], &arguments.out)
                && own(results, &format!("{FIGURES_FOLDER}/figure")).is_err()
            {
                let message = format!("{} is a link or a file; give -o a folder for the figures", folder.display());
                return Err(Error::Usage(message));
            }
            if folder.is_file() {
                let message = format!("{} is a file; give -o a folder for one file per figure", folder.display());
                return Err(Error::Usage(message));
            }
            let written = write_figures(&report, &folder, format)?;
            if let ([results], None) = (&arguments.folders[..], &arguments.out) {
                let names = written.iter().filter_map(|path| path.strip_prefix(results).ok());
                note_written(results, names.map(|name| name.to_string_lossy().replace('\\', "/")))?;
            }
            print(&format!("{} figures written to {}\n", written.len(), text::path(&folder)))?;
        }
    }
    print(&paragraph(&report.answers))?;
    Ok(0)
}
