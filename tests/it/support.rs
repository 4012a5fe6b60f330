//! Helpers of several tests: a folder with a scenario, the real binary in it, and runs through the library.

use fedgenie::experiment::Experiment;
use fedgenie::experiment::stored::{Notice, Reader};
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::{Policies, Policy, PolicyRng, Selection, SelectionRequest, ServerView};
use fedgenie::record::{DropReason, Outcome, Phase, Record};
use fedgenie::recorder::{RoundJobs, RoundMark, RoundSummary, Sink};
use fedgenie::run::{Accounts, Evaluations, Run, RunError, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::state::Stateful;
use fedgenie::task::DataCache;
use fedgenie::world::World;
use flate2::read::MultiGzDecoder;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The scenario's file name in every [`Workplace`].
pub const SCENARIO: &str = "scenario.toml";

/// Clients whose jobs take 4 s, and nothing else.
pub const PLAIN: &str = r#"
name = "plain"
seeds = 1

[stop]
rounds = 12

[population]
clients = 5

[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }

[protocol.synchronous]
cohort = 2

[policy.random]
"#;

/// Settings by which the devices of a population come and go, with processors that differ; and how they train.
pub const DEVICES: &str = r#"
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] }, shift = "0.05 s" } }
upload = { constant = "0.15 s" }
[population.availability]
on-off = { on = { exponential = { mean = "8 s" } }, off = { exponential = { mean = "2 s" } } }
[training]
batch = 8
optimizer = { sgd = { lr = 0.05, momentum = 0.5 } }
"#;

/// The text with its only occurrence of `from` replaced.
pub fn changed(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "{from:?} should occur once in the scenario");
    text.replace(from, to)
}

/// The number of the line that contains the only occurrence of `part`.
pub fn line_of(text: &str, part: &str) -> usize {
    assert_eq!(text.matches(part).count(), 1, "{part:?} should occur once in the scenario");
    1 + text[..text.find(part).unwrap()].matches('\n').count()
}

// ---------------------------------------------------------------------------------------------- the binary

/// An empty folder in which the binary is run.
pub struct Workplace(TempDir);

/// The binary's answer.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// Whether standard error has nothing but warnings of results, which stand below the table too.
    pub fn tells_of_results(&self) -> bool {
        let is_of_results = |line: &str| {
            line.strip_prefix("fedgenie: ").is_some_and(|line| self.stdout.lines().any(|told| told == line))
        };
        self.stderr.lines().all(is_of_results)
    }

    /// Waits for the end of a process.
    pub fn of(process: Child) -> Self {
        let output = process.wait_with_output().unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A program that gets so many MiB of address space.
pub fn within(mib: u64, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {} && exec \"$0\" \"$@\"", mib * 1_024)]).arg(program);
    // Where there is no memory to print a backtrace, the standard library would wait for itself for ever.
    command.env("RUST_BACKTRACE", "0");
    command
}

impl Workplace {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A folder that holds a scenario.
    pub fn with(scenario: &str) -> Self {
        let place = Self::new();
        place.write(SCENARIO, scenario);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// The objects of a file with one in each line.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        self.text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of one run.
    pub fn events(&self, run_folder: &str) -> Vec<Value> {
        let packed = self.read(&format!("{run_folder}/events.jsonl.gz"));
        let mut text = String::new();
        MultiGzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Runs the binary here.
    pub fn fedgenie(&self, words: &[&str]) -> Answer {
        Answer::of(self.start(words))
    }

    /// Starts the binary here and does not wait for its end.
    pub fn start(&self, words: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fedgenie"));
        command.args(words).current_dir(&self.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Runs the scenario into a folder, which has to succeed.
    pub fn run_into(&self, folder: &str, more: &[&str]) {
        self.run_file(SCENARIO, folder, more);
    }

    /// Runs a scenario file into a folder, which has to succeed.
    pub fn run_file(&self, file: &str, folder: &str, more: &[&str]) {
        let answer = self.fedgenie(&[&["run", file, "--out", folder, "--quiet"], more].concat());
        assert!(answer.code == 0 && answer.tells_of_results(), "{answer:?}");
    }

    /// Name, timeline digest and model digest of every run in a folder's summary.
    pub fn digests(&self, folder: &str) -> Vec<(String, String, String)> {
        let summary = self.json(&format!("{folder}/summary.json"));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let digests = |run: &Value| {
            let name = format!("{} of seed {} at point {}", text(&run["arm"]), run["seed"], run["point"]);
            (name, text(&run["digest"]["timeline"]), text(&run["digest"]["model"]))
        };
        summary["runs"].as_array().unwrap().iter().map(digests).collect()
    }
}

/// Everything that a run's folder holds, without the figures' and the manifest's bookkeeping.
fn runs(work: &Workplace, folder: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for run in fs::read_dir(work.path(&format!("{folder}/runs"))).unwrap() {
        let run = run.unwrap().path();
        // A pack is a file.
        let own = run.is_dir().then(|| fs::read_dir(&run).unwrap().map(|file| file.unwrap().path()));
        for path in own.map_or_else(|| vec![run.clone()], Iterator::collect) {
            let name = path.strip_prefix(work.path(folder)).unwrap().display().to_string();
            files.push((name, fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// The names of all files directly in a folder, and their contents.
fn top_files(work: &Workplace, folder: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(work.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let file = |path: PathBuf| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).map(file).collect();
    files.sort();
    files
}

pub fn assert_same_folders(work: &Workplace, left: &str, right: &str) {
    for (left_files, right_files) in
        [(runs(work, left), runs(work, right)), (top_files(work, left), top_files(work, right))]
    {
        let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&left_files), names(&right_files), "{left} and {right}");
        for ((name, left_bytes), (_, right_bytes)) in left_files.iter().zip(&right_files) {
            let texts = [left_bytes, right_bytes].map(|bytes| String::from_utf8_lossy(bytes));
            assert!(left_bytes == right_bytes, "{name} differs:\n{}\n{}", texts[0], texts[1]);
        }
    }
}

// ---------------------------------------------------------------------------------------------- the library

/// The world of a scenario's text and seed.
pub fn world(scenario: &str, seed: u64) -> World {
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
    experiment.world(0, seed, &DataCache::default()).unwrap()
}

/// Makes given choices, whatever the state of the world; remembers the available clients.
#[derive(Clone, Debug, Default, Stateful)]
pub struct Script {
    /// The selection of each turn; the last one is repeated.
    #[state(skip = "from the test")]
    pub rounds: Vec<Vec<u32>>,
    /// The clients that could be chosen in each round.
    #[state(skip = "read by the test")]
    pub available: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl Script {
    pub fn new(rounds: &[&[u32]]) -> Self {
        Self { rounds: rounds.iter().map(|round| round.to_vec()).collect(), available: Arc::default() }
    }
}

impl Policy for Script {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.available.lock().unwrap().push(ask.available.list().iter().map(|client| client.0).collect());
        let turn = (ask.turn.0 as usize - 1).min(self.rounds.len() - 1);
        selection.extend(self.rounds[turn].iter().map(|&client| ClientId(client)));
        Ok(())
    }
}

/// One closed round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenRound {
    /// Nanoseconds.
    pub opened: u64,
    /// Nanoseconds.
    pub closed: u64,
    pub selected: Vec<u32>,
    pub arrived: Vec<u32>,
    pub late: Vec<u32>,
    pub dropped: Vec<(u32, Phase)>,
    /// Client and round of dispatch.
    pub joined: Vec<(u32, u32)>,
    /// Client and round of dispatch of late jobs that were lost.
    pub lost_late: Vec<(u32, u32)>,
    pub edges: Vec<u32>,
    /// Edge server, age, and whether that is too old.
    pub edge_models: Vec<(u32, u32, bool)>,
    pub is_abandoned: bool,
    pub down_bytes: u64,
    pub up_bytes: u64,
}

/// A sink that keeps everything.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub rounds: Vec<SeenRound>,
    /// The instants of all records that have one, in nanoseconds, in the order in which they came.
    pub times: Vec<u64>,
    /// When each round's selection was made.
    pub selected_at: Vec<u64>,
    /// When each selection within a round was made, and by which edge server.
    pub selected: Vec<(u64, Option<u32>)>,
    /// Client, phase, from and until when its device was away.
    pub pauses: Vec<(u32, Phase, u64, u64)>,
    /// Client, phase, reason and instant of losses.
    pub lost: Vec<(u32, Phase, DropReason, u64)>,
    /// Round of dispatch, client, outcome.
    pub ended: Vec<(u32, u32, Outcome)>,
    /// The global models, in order.
    pub models: Vec<Vec<f32>>,
}

impl Sink for Seen {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        match *record {
            Record::Opened { time, .. } => {
                self.selected_at.push(time.0);
                self.times.push(time.0);
            }
            Record::Paused { client, phase, from, until, .. } => self.pauses.push((client.0, phase, from.0, until.0)),
            Record::Lost { client, phase, reason, time, .. } => {
                self.lost.push((client.0, phase, reason, time.0));
                self.times.push(time.0);
            }
            Record::Selected { time, .. } => {
                self.selected.push((time.0, None));
                self.times.push(time.0);
            }
            Record::EdgeSelected { edge, time, .. } => {
                self.selected.push((time.0, Some(edge.0)));
                self.times.push(time.0);
            }
            Record::JobEnded { client, round, outcome, time } => {
                self.ended.push((round.0, client.0, outcome));
                self.times.push(time.0);
            }
            Record::PhaseEnded { time, .. }
            | Record::CloudOpened { time, .. }
            | Record::Travelled { time, .. }
            | Record::EdgeClosed { time, .. }
            | Record::StaleEnded { time, .. }
            | Record::Closed { time, .. } => {
                self.times.push(time.0);
            }
            Record::Model { parameters, .. } => self.models.push(parameters.to_vec()),
            Record::Private { .. } | Record::Metric { .. } => {}
        }
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        let ids = |clients: &[ClientId]| clients.iter().map(|client| client.0).collect::<Vec<_>>();
        let RoundJobs { selected, arrived, late, dropped, joined, lost_late, edges, edge_models, .. } = summary.jobs;
        let dropped = dropped.iter().map(|job| (job.client.0, job.phase));
        self.rounds.push(SeenRound {
            opened: summary.opened.0,
            closed: summary.closed.0,
            selected: ids(selected),
            arrived: ids(arrived),
            late: ids(late),
            dropped: dropped.collect(),
            joined: joined.iter().map(|(client, round)| (client.0, round.0)).collect(),
            lost_late: lost_late.iter().map(|(job, round)| (job.client.0, round.0)).collect(),
            edge_models: edge_models.iter().map(|model| (model.server.0, model.staleness, model.late)).collect(),
            edges: edges.iter().map(|edge| edge.0).collect(),
            is_abandoned: summary.is_abandoned,
            down_bytes: summary.down_bytes,
            up_bytes: summary.up_bytes,
        });
        Ok(())
    }
}

/// The results of a run through the library.
#[derive(Debug)]
pub struct Played {
    pub seen: Seen,
    /// After the last round.
    pub accounts: Accounts,
    pub timeline: String,
    pub model: String,
}

pub const SETTINGS: RunSettings = RunSettings {
    evaluate: Evaluations::every(1),
    record_every: 1,
    parallel: false,
    explain: false,
    updates: false,
    battery: false,
};

/// Plays rounds of a policy in a world.
pub fn play(world: &World, policy: Box<dyn Policy>, rounds: u32) -> Result<Played, RunError> {
    play_policies(world, Policies::from(policy), rounds)
}

/// Plays rounds of several policies in a world.
pub fn play_policies(world: &World, policies: Policies, rounds: u32) -> Result<Played, RunError> {
    let mut seen = Seen::default();
    let mut run = Run::new(world, "double", policies, SETTINGS, &mut seen);
    for _ in 0..rounds {
        run.step()?;
    }
    let (timeline, model) = (run.digests().timeline.hex(), run.digests().model.hex());
    let (_, accounts) = run.finish()?;
    Ok(Played { seen, accounts, timeline, model })
}

/// The task of a world that learns from rows with classes or numbers.
pub fn labelled(world: &World) -> &fedgenie::task::Labelled {
    world.task.as_deref().and_then(|task| task.downcast()).expect("the task has labelled rows")
}

/// A policy with a defect that shows in this turn; until then it chooses the first candidate.
#[derive(Stateful)]
pub struct Defective(pub u32);

impl Policy for Defective {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        assert!(ask.turn.0 < self.0, "turn {} is too much", ask.turn.0);
        selection.extend(ask.available.list().iter().take(1));
        Ok(())
    }
}

/// A reader of result folders whose notices nobody hears.
pub fn unheard() -> Reader<'static> {
    fn ignore(_: &Notice) {}
    Reader::new(&ignore)
}
