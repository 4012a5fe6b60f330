//! Names of the files of a result folder.

pub use fedgenie_simulator::recorder::{EVENTS_FILE, MARKS_FILE, ROUNDS_FILE, TIMELINE_FILE};

/// The name of the program in its files.
pub const TOOL: &str = "fedgenie";
/// The list of everything in the folder, written last.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The resolved scenario, written first.
pub const SCENARIO_FILE: &str = "scenario.toml";
/// All results.
pub const SUMMARY_FILE: &str = "summary.json";
/// The report.
pub const PAGE_FILE: &str = "report.html";
/// Figures of a report, where they are written into files.
pub const FIGURES_FOLDER: &str = "figures";
/// The folder of runs.
pub const RUNS_FOLDER: &str = "runs";
/// A complete run's summary and course.
pub const RUN_FILE: &str = "run.json";
/// Why a run failed, in the place of [`RUN_FILE`].
pub const FAILURE_FILE: &str = "failed.json";
/// The final model of a run, where asked for.
pub const MODEL_FILE: &str = "model.safetensors";
/// The memory of a run's algorithm at the end, beside its model, if it has any.
pub const MEMORY_FILE: &str = "state.safetensors";
/// The networks of a run's policy, if it has any and decisions are explained: initial and final.
pub const POLICY_FILES: [&str; 2] = ["policy_initial.safetensors", "policy.safetensors"];
/// Files that a run writes while it goes on.
pub(super) const RECORD_FILES: [&str; 4] = [ROUNDS_FILE, MARKS_FILE, EVENTS_FILE, TIMELINE_FILE];
/// Original ids of users and of items, in runs that learn from ratings.
pub const ID_FILES: [&str; 2] = ["users.csv", "items.csv"];
/// Messages between processes while they write.
pub const STATE_FOLDER: &str = ".fedgenie";
/// Files of a run's folder in the order in which they get their names.
pub(super) const RUN_FILES: [&str; 12] = [
    ROUNDS_FILE,
    MARKS_FILE,
    EVENTS_FILE,
    TIMELINE_FILE,
    MODEL_FILE,
    MEMORY_FILE,
    POLICY_FILES[0],
    POLICY_FILES[1],
    ID_FILES[0],
    ID_FILES[1],
    FAILURE_FILE,
    RUN_FILE,
];
