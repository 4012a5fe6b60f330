//! `fedgenie traces`

use super::new::write_new;
use super::{ConvertArguments, print, say};
use fedgenie::error::Error;
use fedgenie::population::trace::published::{ALL, convert};
use fedgenie::scenario::names::unknown_name;
use fedgenie::text;

/// Lists the published traces.
pub fn list() -> Result<u8, Error> {
    let entry = |known: &fedgenie::population::trace::published::Published| {
        format!(
            "{}\n  content  {}\n  source   {}\n  address  {}\n  licence  {}\n  files    {}\n\n",
            known.kind, known.content, known.source, known.address, known.licence, known.files
        )
    };
    let all: String = ALL.iter().map(entry).collect();
    print(&format!("{all}`fedgenie traces convert KIND FILES` makes tables of the files as they are published\n"))?;
    Ok(0)
}

/// Writes the tables made of published files into a folder.
pub fn write(arguments: &ConvertArguments) -> Result<u8, Error> {
    let ConvertArguments { kind, files, out } = arguments;
    let Some(made) = convert(kind, files) else {
        if ALL.iter().any(|known| known.kind == kind) {
            return Err(Error::Usage(format!("{kind} needs no converter: a scenario reads its files as they are")));
        }
        let names: Vec<&str> = ALL.iter().filter(|known| known.is_converted).map(|known| known.kind).collect();
        return Err(Error::Usage(unknown_name("set of traces", kind, &names)));
    };
    let made = made.map_err(|error| Error::Usage(error.to_string()))?;
    std::fs::create_dir_all(out).map_err(|source| Error::Write { path: out.clone(), source })?;
    for (name, table) in &made.tables {
        write_new(&out.join(name), table)?;
    }
    for note in &made.notes {
        say(&format!("fedgenie: warning: {note}"));
    }
    let names: Vec<String> = made.tables.iter().map(|(name, _)| text::path(&out.join(name))).collect();
    print(&format!("wrote {}; a scenario in this folder reads it with\n\n{}", names.join(" and "), made.settings))?;
    Ok(0)
}
