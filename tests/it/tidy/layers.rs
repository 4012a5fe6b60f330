//! Imports point one way: as the table of modules in ARCHITECTURE.md says.

use super::{program, root};
use std::collections::BTreeMap;
use std::fs;

/// Crates from the bottom up, each with its modules in import order. A crate whose modules are not listed has none.
fn table() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split(" | ");
        let quoted = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
        (quoted(cells.next().unwrap()).remove(0), quoted(cells.next().unwrap()))
    };
    let table: Vec<_> = rows.map(row).collect();
    assert!(table.len() >= 6, "{table:?}");
    table
}

#[test]
fn modules_use_only_modules_above_them() {
    let table = table();
    let rank_of_crate = |name: &str| table.iter().position(|(path, _)| path.ends_with(name));
    let layered: BTreeMap<&str, &Vec<String>> = table
        .iter()
        .filter(|(path, modules)| path.starts_with("crates/") && !modules.is_empty())
        .map(|(path, modules)| (path.as_str(), modules))
        .collect();
    let mut seen = 0;
    for source in program().iter().filter(|source| !source.is_test()) {
        let (own_crate, rest) = match source.path.strip_prefix("crates/") {
            Some(rest) => match rest.split_once("/src/") {
                Some(parts) => parts,
                // What a build script uses is no part of the program.
                None => continue,
            },
            None => ("src", source.path.strip_prefix("src/").unwrap()),
        };
        let own_rank = rank_of_crate(own_crate).unwrap_or_else(|| panic!("{own_crate} is not in ARCHITECTURE's table"));
        let module = rest.split(['/', '.']).next().unwrap();
        let modules = layered.get(format!("crates/{own_crate}").as_str());
        let own_place = modules.filter(|_| module != "lib").map(|modules| {
            let found = modules.iter().position(|known| known == module);
            found.unwrap_or_else(|| panic!("{module} of {own_crate} is not in ARCHITECTURE's table"))
        });
        for (line, code) in source.code() {
            for (index, _) in code.match_indices("fedgenie_") {
                let name: String = code[index + 9..].chars().take_while(|letter| letter.is_alphanumeric()).collect();
                let Some(rank) = rank_of_crate(&name) else { continue };
                // What a macro writes is no import of its own, nor is the name that a crate has for itself.
                let is_text = code[..index].matches('"').count() % 2 == 1;
                if is_text || code == format!("extern crate self as fedgenie_{name};") {
                    continue;
                }
                seen += 1;
                assert!(rank < own_rank, "{}:{line}: {own_crate} uses {name}, which is above it", source.path);
            }
            let (Some(modules), Some(own)) = (modules, own_place) else { continue };
            for (index, _) in code.match_indices("crate::") {
                let name: String =
                    code[index + 7..].chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
                let Some(used) = modules.iter().position(|known| *known == name) else { continue };
                seen += 1;
                assert!(used <= own, "{}:{line}: {module} uses {name}, which is above it", source.path);
            }
        }
    }
    assert!(seen > 300, "imports are found: {seen}");
}
