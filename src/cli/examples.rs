//! `fedgenie examples`

use super::new::write_new;
use super::print;
use fedgenie::error::Error;
use fedgenie::scenario::names::unknown_name;
use fedgenie::text;
use std::path::Path;

/// Names and contents of the scenarios in this binary.
const EXAMPLES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// Lists the examples, or writes one into the current folder.
pub fn examples(name: Option<&str>) -> Result<u8, Error> {
    let Some(name) = name else {
        let wide = EXAMPLES.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, contents): &(&str, &str)| format!("{name:wide$}  {}\n", title(contents));
        let list: String = EXAMPLES.iter().map(line).collect();
        print(&format!(
            "{list}\n`fedgenie examples NAME` writes one into this folder; those that read files beside them are in the repository \
                        alone\n"
        ))?;
        return Ok(0);
    };
    let names: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
    let wanted = name.strip_suffix(".toml").unwrap_or(name);
    let Some((_, contents)) = EXAMPLES.iter().find(|(name, _)| *name == wanted) else {
        let message = unknown_name("example", name, &names);
        return Err(Error::Usage(format!(
            "{message}; scenarios that read files beside them are in the repository alone"
        )));
    };
    let file = format!("{}.toml", wanted.rsplit('/').next().unwrap_or(wanted));
    write_new(Path::new(&file), contents)?;
    print(&format!("wrote {0}; `fedgenie run {0}` runs it\n", text::path(Path::new(&file))))?;
    Ok(0)
}

/// The title of a scenario, or else its first sentence.
fn title(contents: &str) -> String {
    let quoted = contents.lines().find_map(|line| line.strip_prefix("title = \"")?.strip_suffix('"'));
    quoted
        .map_or_else(|| contents.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned(), str::to_owned)
}
