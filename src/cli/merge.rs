//! `fedgenie merge`

use super::run::counted_runs;
use super::{Host, MergeArguments, kinds_of, print, say};
use fedgenie::error::Error;
use fedgenie::experiment::merge::{MergeOptions, Merged, merge};
use fedgenie::experiment::{artefacts, table, warnings};
use fedgenie::report::write_with_records;
use fedgenie::text::{self, message};

/// Most missing runs that are named.
const SHOWN: usize = 5;

pub fn run(arguments: &MergeArguments, host: &dyn Host) -> Result<u8, Error> {
    let kinds = kinds_of(&arguments.with, host)?;
    let options = MergeOptions { data: arguments.data.clone(), kinds, draw: Some(&write_with_records) };
    let Merged { experiment, summary, missing } = merge(&arguments.out, &arguments.folders, &options)?;
    for warning in warnings(&summary) {
        say(&format!("fedgenie: warning: {}", message(&warning)));
    }
    print(&table(&summary))?;
    let (of, out) = (experiment.runs().len(), text::path(&arguments.out));
    print(&format!("\n{} of {} written to {out}\n", of - missing.len(), counted_runs(of)))?;
    if missing.is_empty() {
        return Ok(0);
    }
    let (named, more) = missing.split_at(missing.len().min(SHOWN));
    let more = if more.is_empty() { "" } else { ", …" };
    say(&format!(
        "fedgenie: {} in none of the folders: {}{more}; `{}` makes {}",
        if missing.len() == 1 { "1 run is".to_owned() } else { format!("{} runs are", missing.len()) },
        named.join(", "),
        artefacts::completion(&arguments.out),
        if missing.len() == 1 { "it" } else { "them" },
    ));
    Ok(1)
}
