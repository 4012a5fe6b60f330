//! What is fuzzed: files that anybody may have written, each read as a command reads it. The targets of cargo-fuzz and
//! their twins in `tests/it/fuzz.rs` run this code.
//!
//! A target gets bytes. It panics if what reads them does, if an error says too much or not about what, or if what was
//! read breaks a rule of its own.

#![allow(clippy::unwrap_used, reason = "a target ends where it cannot go on")]

mod data;
mod files;
mod folder;
mod logs;
pub mod markup;
mod reports;
mod saved;
mod scenario;
mod traces;

#[allow(unused_imports, reason = "a target of cargo-fuzz composes scenarios of its own")]
pub use scenario::composed;

/// Something that reads bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Good inputs to begin with.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Reads an input; the error is what is said about it.
    pub run: fn(&[u8]) -> Result<(), String>,
}

macro_rules! targets {
    ($($module:ident: $($name:ident),+;)+) => {
        /// All of them.
        pub const TARGETS: &[Target] = &[$($(Target {
            name: stringify!($name),
            corpus: $module::$name::corpus,
            run: $module::$name::run,
        }),+),+];
    };
}
targets! {
    scenario: scenario_toml, scenario_json, scenario_structured;
    data: idx, cifar, svhn, npy, csv, class_counts, ratings, item_features, weights;
    data: availability, links, speeds, samples, scripts;
    traces: published;
    logs: job_log;
    folder: manifest, run_json, digests, rounds, summary_json;
    reports: diff, export, parquet, figures;
    saved: saved_run;
}

/// Gives an input to a target.
///
/// # Panics
/// If the input shows a defect, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    // What is refused is as good as what is taken.
    let _ = (target.unwrap_or_else(|| panic!("there is no target {name}")).run)(input);
}

/// Most bytes of a message.
const MESSAGE_MAX: usize = 4_096 + 512;

/// Checks what is said about an input: that it names one of these, and is no longer than a page.
fn assert_told(message: &str, names: &[&str]) {
    assert!(message.len() <= MESSAGE_MAX, "{} bytes: {message}", message.len());
    assert!(names.iter().any(|name| message.contains(name)), "one of {names:?} should be named in: {message}");
}
