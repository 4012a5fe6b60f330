//! Files of a result folder: what `verify`, `report` and `--resume` make of one that is not what was written.

use super::{assert_told, files};
use fedgenie::experiment::artefacts::{MANIFEST_FILE, Manifest, RUNS_FOLDER};
use fedgenie::experiment::kept::Found;
use fedgenie::experiment::stored::{Notice, Reader};
use fedgenie::experiment::{Earlier, Experiment, Outputs, ResultFolder, Shard, Silent, Threads, execute, verify};
use fedgenie::recorder::RunFileOptions;
use fedgenie::report::{Report, Results, html, write_with_records};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use std::cell::{Cell, OnceCell};
use std::fs;
use std::path::{Path, PathBuf};

const SCENARIO: &str = r#"name = "results"
seeds = 2
stop = { rounds = 6 }
record = { explain = true }
[population]
clients = 5
[population.latency]
download = { constant = "1 s" }
compute = { exponential = { mean = "2 s" } }
upload = { constant = "1 s" }
[protocol.synchronous]
cohort = 2
[regret]
tau_min = "1 s"
[policy.bsfl]
[policy.random]
"#;

/// A folder in which an experiment is complete.
pub(super) struct Complete {
    pub folder: PathBuf,
    /// A copy of it, which stays as it is.
    pub before: PathBuf,
    experiment: Experiment,
    threads: Threads,
}

impl Complete {
    fn new() -> Self {
        let root = tree::parse(Path::new("scenario.toml"), SCENARIO).unwrap();
        let experiment = Experiment::from_tree(&root, &files::folder(), None).unwrap();
        let (threads, folder) = (Threads::new(1).unwrap(), files::folder().join("results"));
        let opened = ResultFolder::open(&folder, &experiment, Earlier::Refuse, Shard::WHOLE).unwrap();
        let options = RunFileOptions::default();
        let outputs = Outputs { folder: &opened, files: &options, models: false, memory: None };
        let results = execute(&experiment, &experiment.runs(), Some(outputs), &threads, &DataCache::default(), &Silent);
        let mut runs: Vec<_> = results.into_iter().map(Result::unwrap).collect();
        opened
            .finish(&experiment, &mut runs, |summary, into| write_with_records(into, &folder, &experiment, summary))
            .unwrap();
        let before = files::folder().join("results-before");
        copy(&folder, &before);
        Self { folder, before, experiment, threads }
    }

    /// The file that a target changes.
    pub fn file(&self, name: &str) -> PathBuf {
        let run = self.folder.join(RUNS_FOLDER).join(&self.experiment.runs()[0].name);
        if run.join(name).is_file() { run.join(name) } else { self.folder.join(name) }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

thread_local! {
    static COMPLETE: OnceCell<Complete> = const { OnceCell::new() };
}

/// Works with the folder.
pub(super) fn complete<T>(work: impl FnOnce(&Complete) -> T) -> T {
    COMPLETE.with(|complete| work(complete.get_or_init(Complete::new)))
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    complete(|complete| vec![fs::read(complete.file(name)).unwrap()])
}

/// A manifest without what nothing follows from: where it was made.
fn as_compared(text: &[u8]) -> Option<Manifest> {
    let manifest: Manifest = serde_json::from_slice(text).ok()?;
    Some(Manifest { cpu: None, origin: None, version: String::new(), ..manifest })
}

fn read(name: &str, input: &[u8]) -> Result<(), String> {
    complete(|complete| {
        let Complete { folder, experiment, threads, .. } = complete;
        let path = complete.file(name);
        let good = fs::read(&path).unwrap();
        fs::write(&path, input).unwrap();
        let is_same = match name {
            MANIFEST_FILE => as_compared(input).is_some_and(|manifest| as_compared(&good) == Some(manifest)),
            _ => input == good,
        };
        match verify::verify(folder, None, threads) {
            Ok(verdict) => {
                assert_eq!(verdict.is_good(), is_same, "{verdict:?}");
                if let Some(difference) = verdict.difference {
                    assert_told(&difference.what, &[""]);
                }
            }
            Err(error) => {
                assert!(!is_same, "{error}");
                assert_told(&error.to_string(), &["results"]);
            }
        }
        // Who resumes repeats a run that is not what it was, and no other.
        if name != MANIFEST_FILE {
            let found = experiment.kept(folder, &[]).find(&experiment.runs()[0]);
            assert_eq!(matches!(found, Found::Complete(_)), is_same || path.parent() == Some(folder), "{found:?}");
        }
        for allows_changed in [false, true] {
            let told = Cell::new(0);
            let say = |notice: &Notice| {
                told.set(told.get() + 1);
                assert_told(&notice.advice(), &[""]);
            };
            match Results::load(folder, &Reader::new(&say).allowing_changed(allows_changed)) {
                Ok(results) => {
                    // Of digests and rounds nothing but the length is looked at.
                    let is_read = ["run.json", "summary.json"].contains(&name);
                    assert!(is_same || !is_read || allows_changed && told.get() > 0, "nothing is said");
                    if !results.summary.runs.is_empty() {
                        html(&Report::of(&[results]));
                    }
                }
                Err(error) => assert_told(&error.to_string(), &["results"]),
            }
        }
        fs::write(&path, good).unwrap();
        if is_same { Ok(()) } else { Err("this is not what was written".to_owned()) }
    })
}

macro_rules! changed {
    ($($name:ident = $file:expr;)+) => {
        $(pub mod $name {
            pub fn corpus() -> Vec<Vec<u8>> {
                super::corpus($file)
            }
            pub fn run(input: &[u8]) -> Result<(), String> {
                super::read($file, input)
            }
        })+
    };
}
changed! {
    manifest = "manifest.json";
    run_json = "run.json";
    digests = "digests.bin";
    rounds = "rounds.jsonl";
    summary_json = "summary.json";
}
