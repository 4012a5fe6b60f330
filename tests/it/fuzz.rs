//! The targets of `fuzz/` on stable Rust: good inputs, and changes of them, in a process that has little memory. The
//! inputs are the same every time; `FEDGENIE_FUZZ_RUNS=100` makes a hundred times as many.

mod found;
mod mutate;
#[allow(dead_code, reason = "cargo-fuzz uses all of it")]
#[path = "../../fuzz/src/lib.rs"]
pub mod shared;

use super::support::within;
use mutate::Random;
use shared::{TARGETS, Target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Changed inputs of a target.
const CHANGED: u64 = 300;

/// MiB of address space of the process that reads them.
const MEMORY: u64 = 2_048;

/// Says in the process that reads inputs where to put the one that it reads.
const CHILD: &str = "FEDGENIE_FUZZ_CHILD";

/// Number of bytes at the beginning of a target's input that are kept: they select its file.
fn kept(target: &Target) -> usize {
    let has_first =
        !["scenario_toml", "scenario_json", "scenario_structured", "manifest", "run_json"].contains(&target.name);
    usize::from(has_first && !["digests", "rounds", "summary_json", "figures"].contains(&target.name))
}

/// Reads good inputs, then changed ones.
fn read(target: &Target, folder: &Path) {
    let read = |input: &[u8]| {
        fs::write(folder.join("input"), input).unwrap();
        (target.run)(input)
    };
    let corpus = (target.corpus)();
    assert!(!corpus.is_empty());
    let taken: Vec<_> = corpus.iter().map(|good| read(good)).collect();
    assert!(target.name == "scenario_structured" || taken.iter().all(Result::is_ok), "{taken:?}");
    let times = std::env::var("FEDGENIE_FUZZ_RUNS").ok().map_or(1, |times| times.parse().unwrap());
    let seed = target.name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    for number in 0..CHANGED * times {
        let mut random = Random(seed.wrapping_add(number << 20));
        let good = &corpus[number as usize % corpus.len()];
        // A refused input is as good as an accepted one.
        let _ = read(&mutate::some(good, kept(target).min(good.len()), &mut random));
    }
}

/// Runs a target's inputs in a process of their own.
fn twin(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    if let Some(folder) = std::env::var_os(CHILD) {
        return read(target, Path::new(&folder));
    }
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = within(MEMORY, std::env::current_exe().unwrap());
    command.args(["--exact", &format!("fuzz::{name}"), "--test-threads=1", "--nocapture"]);
    let child =
        command.env(CHILD, folder.path()).env("TMPDIR", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = child.output().unwrap();
    if !output.status.success() {
        let kept = std::env::temp_dir().join(format!("fedgenie-fuzz-{name}"));
        fs::copy(folder.path().join("input"), &kept).unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = said.find("panicked").unwrap_or(0);
        let said: String = said[first..].chars().take(4_000).collect();
        panic!("{name}: {}: the input is in {}\n{said}", output.status, kept.display());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}");
}

macro_rules! twins {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            twin(stringify!($name));
        })+

        const TWINS: &[&str] = &[$(stringify!($name)),+];
    };
}
twins! {
    scenario_toml scenario_json scenario_structured
    idx cifar svhn npy csv class_counts ratings item_features weights availability links speeds samples scripts
    published
    job_log
    manifest run_json digests rounds summary_json
    diff export parquet figures
    saved_run
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// Every target has a twin here, a file, and its place in `fuzz/Cargo.toml`. With `FEDGENIE_FUZZ_CORPUS` good inputs
/// are written there, for cargo-fuzz to begin with.
#[test]
fn every_target_is_everywhere() {
    assert_eq!(TWINS, TARGETS.iter().map(|target| target.name).collect::<Vec<_>>());
    let manifest: toml::Table = fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap().parse().unwrap();
    let listed: Vec<&str> =
        manifest["bin"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap()).collect();
    assert_eq!(listed, TWINS);
    for target in TARGETS {
        let file = fuzz_folder().join(format!("fuzz_targets/{}.rs", target.name));
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(&format!("\"{}\"", target.name)) || target.name == "scenario_structured", "{text}");
        if let Some(corpus) = std::env::var_os("FEDGENIE_FUZZ_CORPUS") {
            let folder = Path::new(&corpus).join(target.name);
            fs::create_dir_all(&folder).unwrap();
            for (number, good) in (target.corpus)().iter().enumerate() {
                fs::write(folder.join(format!("good-{number}")), good).unwrap();
            }
        }
    }
}
