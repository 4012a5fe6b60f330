//! Works out the id of this build of FedGenie; `src/experiment/build_id.rs` has the definition.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folders of the crates that decide results, seen from this one.
const CRATES: [&str; 4] = ["../core", "../learning", "../simulator", "."];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut digest = blake3::Hasher::new();
    let mut add = |name: &str, contents: &[u8]| {
        for part in [name.as_bytes(), contents] {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    };
    add("version", env::var("CARGO_PKG_VERSION").unwrap_or_default().as_bytes());
    let mut features: Vec<String> = env::vars().map(|(name, _)| name).collect();
    features.retain(|name| name.starts_with("CARGO_FEATURE_"));
    features.sort();
    add("features", features.join(" ").as_bytes());
    let mut files = vec!["../../Cargo.lock".to_owned()];
    for folder in CRATES {
        files.push(format!("{folder}/Cargo.toml"));
        sources(&here, &format!("{folder}/src"), &mut files)?;
        println!("cargo:rerun-if-changed={folder}/src");
    }
    files.sort();
    // A crate published on its own has neither neighbours nor lock file: its version identifies it.
    for file in files.iter().filter(|file| here.join(file).is_file()) {
        println!("cargo:rerun-if-changed={file}");
        // Line ends as git stores them.
        let mut contents = fs::read(here.join(file))?;
        contents.retain(|&byte| byte != b'\r');
        add(file, &contents);
    }
    println!("cargo:rustc-env=FEDGENIE_BUILD={}", &digest.finalize().to_hex()[..16]);
    Ok(())
}

/// Adds the files below a folder, if it exists.
fn sources(here: &Path, folder: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(here.join(folder)).into_iter().flatten() {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            sources(here, &name, files)?;
        } else if name.ends_with(".rs") {
            files.push(name);
        }
    }
    Ok(())
}
