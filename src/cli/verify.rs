//! `fedgenie verify`

use super::{Host, VerifyArguments, kinds_of, print, print_json, threads_of};
use fedgenie::error::Error;
use fedgenie::experiment::build;
use fedgenie::experiment::verify::{self, ReplayOptions, Verdict};

/// Most missing runs that are named.
const SHOWN: usize = 5;

pub fn verify(arguments: &VerifyArguments, host: &dyn Host) -> Result<u8, Error> {
    let threads = threads_of(arguments.threads.as_deref(), host)?;
    let (data, kinds) = (arguments.data.clone(), kinds_of(&arguments.with, host)?);
    let options = ReplayOptions { data, kinds, allow_paths: arguments.allow_paths, ..ReplayOptions::default() };
    let verdict = verify::verify_within(&arguments.folder, &options, &threads)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&verdict).map_err(|error| Error::Usage(error.to_string()))?;
        print_json(&text)?;
        return Ok(u8::from(!verdict.is_good()));
    }
    print(&told(&verdict, &arguments.folder.display().to_string()))?;
    Ok(u8::from(!verdict.is_good()))
}

/// The verdict for people.
fn told(verdict: &Verdict, folder: &str) -> String {
    let mut text = String::new();
    match &verdict.difference {
        None if verdict.runs == 0 => {}
        None => {
            let failed = match verdict.failed {
                0 => String::new(),
                failed => format!(" ({failed} of them failed as before)"),
            };
            text.push_str(&format!("{folder}: {} runs replayed{failed}, no difference\n", verdict.runs));
        }
        Some(difference) => {
            let mut at = Vec::new();
            at.extend(difference.run.iter().map(|run| format!("run {run}")));
            at.extend(difference.round.iter().map(|round| format!("round {round}")));
            at.extend(difference.event.iter().map(|event| format!("event {event}")));
            let at = match (at.is_empty(), &verdict.edited) {
                (true, _) => "files".to_owned(),
                // The cause comes first.
                (false, Some(edited)) => format!("files: {edited}; then {}", at.join(", ")),
                (false, None) => at.join(", "),
            };
            text.push_str(&format!("first difference: {at}: {}\n", difference.what));
            if verdict.differing > 0 {
                text.push_str(&format!("{} of {} runs differ\n", verdict.differing, verdict.runs));
            }
        }
    }
    if let Some(other) = &verdict.other_build {
        let of_build =
            if other == "unknown" { "a build that it does not name".to_owned() } else { format!("build {other}") };
        text.push_str(&format!("{folder} was written by {of_build} of FedGenie; this is build {}\n", build()));
    }
    if let (Some(command), true) = (&verdict.completion, verdict.missing.is_empty()) {
        text.push_str(&format!("all runs are there, and {folder} has no summary; `{command}` writes it\n"));
    } else if let Some(command) = &verdict.completion {
        let (missing, more) = verdict.missing.split_at(verdict.missing.len().min(SHOWN));
        let more = if more.is_empty() { "" } else { ", …" };
        let verb = if verdict.missing.len() == 1 { "run is" } else { "runs are" };
        text.push_str(&format!(
            "{} {verb} missing in {folder} or its summary: {}{more}; `{command}` makes them\n",
            verdict.missing.len(),
            missing.join(", ")
        ));
    }
    text
}
