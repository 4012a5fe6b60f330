//! Runs that are stopped in the middle of a round, by events and not by times; and that go on to the same end.

use super::super::support::{SETTINGS, Seen, Workplace, world};
use super::{EIGHT, PROTOCOLS, Settings, experiment};
use fedgenie::error::Error;
use fedgenie::experiment::{
    Earlier, Experiment, Interval, Outputs, Progress, ResultFolder, RunId, RunSummary, Shard, Threads, execute,
};
use fedgenie::halt::Halt;
use fedgenie::id::Round;
use fedgenie::record::Record;
use fedgenie::recorder::{NoSink, RoundMark, RoundSummary, RunFileOptions, Sink};
use fedgenie::run::{Run, RunError};
use fedgenie::task::DataCache;
use fedgenie::world::World;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The longest that something may take that happens at once.
const MINUTE: Duration = Duration::from_secs(60);

/// Keeps where runs go on.
#[derive(Default)]
struct GoesOn(Mutex<Vec<(String, Round)>>);

impl Progress for GoesOn {
    fn run_ended(&self, _: &RunId, _: usize, _: usize) {}
    fn rounds_played(&self, _: u64) {}
    fn run_goes_on(&self, run: &RunId, round: Round) {
        self.0.lock().unwrap().push((run.name.clone(), round));
    }
    fn warned(&self, warning: &str) {
        panic!("{warning}");
    }
}

/// Trains until it is stopped, in one round; before, each round is as long as it says.
struct Gate {
    round: u32,
    /// Whether there is nothing to wait for any more.
    is_open: AtomicBool,
    began: Mutex<Sender<()>>,
    before: Duration,
}

impl Gate {
    fn settings(self: &Arc<Self>) -> Settings {
        let gate = self.clone();
        Settings {
            at_job: Some(Arc::new(move |job, context| {
                if gate.is_open.load(Ordering::SeqCst) {
                    return;
                }
                if job.round.0 < gate.round {
                    thread::sleep(gate.before);
                    return;
                }
                let _ = gate.began.lock().unwrap().send(());
                let begin = Instant::now();
                while !context.halt.is_due() {
                    assert!(begin.elapsed() < MINUTE, "nobody stops the training");
                    thread::yield_now();
                }
            })),
            ..Settings::default()
        }
    }
}

/// Of each run.
type Results = Vec<Result<RunSummary, Error>>;

fn into_folder(
    experiment: &Experiment,
    place: &Workplace,
    earlier: Earlier,
    (interval, threads): (Interval, &Threads),
) -> (Results, Vec<(String, Round)>) {
    let folder = ResultFolder::open(&place.path("out"), experiment, earlier, Shard::WHOLE).unwrap().saving(interval);
    let (files, goes_on) = (RunFileOptions::default(), GoesOn::default());
    let outputs = Outputs { folder: &folder, files: &files, models: false, memory: None };
    let cache = DataCache::default();
    let results = execute(experiment, &experiment.runs(), Some(outputs), threads, &cache, &goes_on);
    (results, goes_on.0.into_inner().unwrap())
}

/// Cancels an experiment in its fourth round, in the middle of a job, and goes on. Returns where that was.
fn cut(protocol: &str, interval: Interval, before: Duration) -> Option<Round> {
    let place = Workplace::new();
    let (began, begins) = channel();
    let gate = Arc::new(Gate { round: 4, is_open: AtomicBool::new(false), began: Mutex::new(began), before });
    let experiment = experiment(protocol, "", gate.settings());
    let cancelled = Threads::new(1).unwrap();
    let results = thread::scope(|scope| {
        let cancelled = &cancelled;
        scope.spawn(move || {
            begins.recv_timeout(MINUTE).unwrap();
            cancelled.cancel();
        });
        into_folder(&experiment, &place, Earlier::Refuse, (interval, cancelled)).0
    });
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
    }
    assert!(!place.path("out/runs/random-s1").exists(), "the run has not ended");
    gate.is_open.store(true, Ordering::SeqCst);
    let threads = Threads::new(1).unwrap();
    let (results, goes_on) = into_folder(&experiment, &place, Earlier::Resume, (interval, &threads));
    let whole = experiment.run(&threads).unwrap();
    let digests = |run: &RunSummary| run.digest.clone();
    let found: Vec<_> = results.iter().map(|result| digests(result.as_ref().unwrap())).collect();
    assert_eq!(found, whole.runs.iter().map(digests).collect::<Vec<_>>());
    goes_on.into_iter().find(|(name, _)| name == "random-s1").map(|(_, round)| round)
}

#[test]
fn a_run_stops_in_the_middle_of_training_and_goes_on_to_the_same_end() {
    for (of, protocol) in PROTOCOLS {
        // Under some protocols jobs of round 4 train in the next one.
        let round = cut(protocol, Interval::Rounds(1), Duration::ZERO).unwrap();
        assert!((3..=5).contains(&round.0), "{of}: {round}");
        assert_eq!(cut(protocol, Interval::Off, Duration::ZERO), None, "{of}: it begins anew");
    }
    assert_eq!(cut(PROTOCOLS[0].1, Interval::Rounds(1), Duration::ZERO), Some(Round(3)));
    assert_eq!(cut(PROTOCOLS[0].1, Interval::Rounds(2), Duration::ZERO), Some(Round(2)));
}

/// Rounds that would be cut are saved without being told to.
#[test]
fn runs_with_long_rounds_lose_one() {
    let hour = Interval::WallTime(Duration::from_secs(3_600));
    let round = cut(PROTOCOLS[0].1, hour, Duration::from_millis(300)).unwrap();
    assert!((1..=3).contains(&round.0), "{round}");
}

/// Stops its run at a record, which is the event of another thread as well.
struct StopsAt {
    left: usize,
    halt: Halt,
    told: Option<Sender<()>>,
}

impl Sink for StopsAt {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            match self.told.take() {
                Some(told) => told.send(()).unwrap(),
                None => self.halt.ask(Duration::ZERO),
            }
        }
        Ok(())
    }

    fn round(&mut self, _: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        Ok(())
    }
}

fn random(world: &World, sink: impl Sink + 'static) -> Run<'_> {
    let policies = world.policies(&fedgenie::policy::PolicyConfig::Random(Default::default()).into()).unwrap();
    Run::new(world, "random", policies, SETTINGS, sink)
}

/// Nobody learns: a round looks at the flag between events.
#[test]
fn a_round_stops_between_events() {
    let training = EIGHT.find("[training]").unwrap();
    for (of, protocol) in PROTOCOLS {
        let world = world(&format!("{}{protocol}[policy.random]\n", &EIGHT[..training]), 1);
        for left in [1, 2, 5, 9] {
            let halt = Halt::new();
            let mut run = random(&world, StopsAt { left, halt: halt.clone(), told: None });
            run.set_halt(halt);
            let ended = (0..20).find_map(|_| run.step().err());
            assert!(matches!(ended, Some(RunError::Halted)), "{of}: {ended:?}");
        }
    }
}

/// A flag that nobody sets changes nothing.
#[test]
fn a_flag_that_is_not_set_changes_nothing() {
    let experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let digest = |halt: Option<Halt>| {
        let mut run = random(&world, NoSink);
        halt.into_iter().for_each(|halt| run.set_halt(halt));
        (0..6).for_each(|_| run.step().unwrap());
        (run.digests().timeline.hex(), run.digests().model.hex())
    };
    assert_eq!(digest(Some(Halt::new())), digest(None));
}

/// Tasks of the library that would train for years.
#[test]
fn training_stops_between_batches() {
    let tasks = [
        "[task.linear-regression]\nexamples = 200\n",
        "[task.softmax-regression]\ndata = { synthetic = { classes = 3, train = 300, test = 30 } }\n",
        // What a job moves does not have to be found out before.
        "[task.recommendation]\ndata = { synthetic = { users = 8, items = 30, ratings = 160 } }\npartition = \"users\"\nmodel = \"mf\"\ntransfer = { down = \"table\", up = \"table\" }\n",
    ];
    for task in tasks {
        let text = super::super::support::changed(EIGHT, "epochs = 2", "epochs = 1_000_000_000");
        let text = format!("{text}{}{task}[policy.random]\n", PROTOCOLS[0].1);
        let (told, began) = channel();
        let (done, ended) = channel();
        let halt = Halt::new();
        let flag = halt.clone();
        thread::spawn(move || {
            let world = world(&text, 1);
            // The last record before the round closes is the arrival of its last update.
            let mut run = random(&world, StopsAt { left: 8, halt: flag.clone(), told: Some(told) });
            run.set_halt(flag);
            let _ = done.send(run.step().unwrap_err());
        });
        began.recv_timeout(MINUTE).unwrap_or_else(|error| panic!("{task}: {error}"));
        halt.ask(Duration::ZERO);
        let error = ended.recv_timeout(MINUTE).unwrap_or_else(|error| panic!("{task}: {error}"));
        assert!(matches!(error, RunError::Halted), "{task}: {error}");
    }
}

/// What a run saw up to where it was stopped stands.
#[test]
fn rounds_before_stand() {
    let experiment = experiment(PROTOCOLS[0].1, "", Settings::default());
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let (halt, mut seen) = (Halt::new(), Seen::default());
    let policies = world.policies(&experiment.first().arms[0].source()).unwrap();
    let mut run = Run::new(&world, "random", policies, SETTINGS, &mut seen);
    run.set_halt(halt.clone());
    (0..2).for_each(|_| run.step().unwrap());
    halt.ask(Duration::ZERO);
    assert!(matches!(run.step(), Err(RunError::Halted)));
    drop(run);
    assert_eq!(seen.rounds.len(), 2);
}
