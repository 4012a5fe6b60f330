//! Lists the scenarios of the repository for `fedgenie examples`: those that read no files beside them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("scenarios");
    println!("cargo:rerun-if-changed=scenarios");
    let mut files = Vec::new();
    scenarios(&root, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let text = fs::read_to_string(&file)?;
        let is_beside =
            |name: &str| file.parent().is_some_and(|folder| name.contains('.') && folder.join(name).exists());
        if text.split('"').skip(1).step_by(2).any(is_beside) {
            continue;
        }
        let name = file.strip_prefix(&root).unwrap_or(&file).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        let _ = writeln!(list, "({name:?}, include_str!({:?})),", file.to_string_lossy());
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("examples.rs"), list)
}

fn scenarios(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            scenarios(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    Ok(())
}
