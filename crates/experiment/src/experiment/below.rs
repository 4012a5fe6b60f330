//! Files below an untrusted folder: only plain files are opened, and only below the folder.
//!
//! A name in a manifest may be that of a device, a pipe or a file elsewhere, and a file of a result folder may be a
//! link to one. A link that stays below the folder is read; nothing is written or deleted behind any link.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Whether a name leads from one folder to another file below it, whatever the links.
pub fn is_below(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned())
}

/// Where a plain file is.
///
/// # Errors
/// If it is not there, is a folder, a device, a pipe or a socket, or is not below the folder.
pub fn plain(folder: &Path, name: &str) -> io::Result<PathBuf> {
    if !is_below(name) {
        return Err(refused("the name leads out of the folder, so it is not opened"));
    }
    let path = folder.join(name);
    let mut has_links = false;
    let mut parents = folder.to_owned();
    for part in Path::new(name).components() {
        parents.push(part);
        has_links |= fs::symlink_metadata(&parents)?.is_symlink();
    }
    if has_links && !fs::canonicalize(&path)?.starts_with(fs::canonicalize(folder)?) {
        return Err(refused("a link leads out of the folder, so it is not opened"));
    }
    // Asked only when the links are known to stay below; asking opens nothing.
    match fs::metadata(&path)?.is_file() {
        true => Ok(path),
        false => Err(refused("it is no plain file, so it is not opened")),
    }
}

/// Opens a plain file.
///
/// # Errors
/// As [`plain`], or if it cannot be opened.
pub fn open(folder: &Path, name: &str) -> io::Result<File> {
    File::open(plain(folder, name)?)
}

/// Reads a plain file.
///
/// # Errors
/// As [`open`], or if it cannot be read.
pub fn read(folder: &Path, name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(folder, name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a plain file of text.
///
/// # Errors
/// As [`open`], or if it is no text.
pub fn read_to_string(folder: &Path, name: &str) -> io::Result<String> {
    let mut text = String::new();
    open(folder, name)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Length and BLAKE3 of a plain file.
///
/// # Errors
/// As [`open`], or if it cannot be read.
pub fn digest(folder: &Path, name: &str) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    let bytes = io::copy(&mut open(folder, name)?, &mut hasher)?;
    Ok((bytes, hasher.finalize().to_hex().to_string()))
}

/// Whether a file of this name exists, or a link that leads nowhere.
pub fn is_there(folder: &Path, name: &str) -> bool {
    fs::symlink_metadata(folder.join(name)).is_ok()
}

/// Whether a path is a folder itself, and no link to one.
pub fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Deletes a folder with all its contents; a missing folder and a link are left alone.
///
/// # Errors
/// If something cannot be deleted.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    if is_own_folder(path) { fs::remove_dir_all(path) } else { Ok(()) }
}

/// The path of a file to write or delete: no folder on the way to it is a link.
///
/// # Errors
/// If one is, or the name leads out of the folder.
pub fn own(folder: &Path, name: &str) -> io::Result<PathBuf> {
    if !is_below(name) {
        return Err(refused("the name leads out of the folder, so it is not touched"));
    }
    let path = folder.join(name);
    let parents = path.ancestors().skip(1).take_while(|parent| *parent != folder);
    let is_other = |parent: &&Path| fs::symlink_metadata(parent).is_ok_and(|found| !found.is_dir());
    match parents.into_iter().find(is_other) {
        Some(parent) => {
            let name = parent.file_name().unwrap_or_default().to_string_lossy();
            Err(refused(&format!("{name} is a link or a file and no folder, so nothing is written there")))
        }
        None => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_does_not_lead_out_of_its_folder() {
        let found = ["regret.svg", "figures/a.csv", "../notes.txt", "/etc/passwd", "runs/../../x", ""].map(is_below);
        assert_eq!(found, [true, true, false, false, false, false]);
    }

    #[cfg(unix)]
    #[test]
    fn only_plain_files_below_the_folder_are_opened_and_only_own_ones_written() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        fs::create_dir_all(folder.join("runs/a")).unwrap();
        fs::write(place.path().join("mine"), "mine").unwrap();
        fs::write(folder.join("runs/a/run.json"), "{}").unwrap();
        symlink("../mine", folder.join("outward")).unwrap();
        symlink("runs/a/run.json", folder.join("inward")).unwrap();
        symlink("..", folder.join("up")).unwrap();
        symlink("runs/a", folder.join("inner")).unwrap();
        symlink("/dev/zero", folder.join("endless")).unwrap();
        symlink("nowhere", folder.join("dangling")).unwrap();
        let read = |name: &str| read_to_string(&folder, name).map_err(|error| error.to_string());
        for name in ["runs/a/run.json", "inward", "inner/run.json"] {
            assert_eq!(read(name).unwrap(), "{}", "{name}");
        }
        assert_eq!(digest(&folder, "inward").unwrap(), (2, blake3::hash(b"{}").to_hex().to_string()));
        for name in ["outward", "up/mine", "up/out/inward/../../mine", "endless", "/dev/zero", "../mine"] {
            let error = read(name).unwrap_err();
            assert!(error.contains("leads out of the folder"), "{name}: {error}");
        }
        assert!(read("runs").unwrap_err().contains("no plain file"));
        assert_eq!(open(&folder, "dangling").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(is_there(&folder, "dangling") && !is_there(&folder, "nowhere"));
        for name in ["new", "runs/a/new", "new/new", "outward", "inward"] {
            assert_eq!(own(&folder, name).unwrap(), folder.join(name));
        }
        for name in ["inner/new", "up/mine", "../mine", "inward/new"] {
            assert!(own(&folder, name).is_err(), "{name}");
        }
        assert!(is_own_folder(&folder.join("runs")) && !is_own_folder(&folder.join("inner")));
    }
}
