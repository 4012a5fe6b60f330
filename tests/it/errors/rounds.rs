//! Runs that end early: the rounds before stand, in the folder and in the sink; other runs are not touched.

use super::{Case, PLAIN, Provoked, TRAINING, told};
use crate::support::{SCENARIO, SETTINGS, Script, Seen, Workplace, changed, play, world};
use fedgenie::error::Error;
use fedgenie::experiment::{Experiment, Overrides, Threads};
use fedgenie::failure::Failure;
use fedgenie::halt::Halt;
use fedgenie::policy::{Policies, Policy, PolicyRng, Probe, Selection, SelectionRequest, ServerView};
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::StreamRng;
use fedgenie::run::{Run, RunError};
use fedgenie::state::Stateful;
use fedgenie::task::DataCache;
use fedgenie::time::Span;
use std::io;
use std::time::Duration;

/// The only run of a scenario ends early, after as many rounds as it does in the library.
fn failed(scenario: &str, files: &[(&str, &str)]) -> RunError {
    let place = Workplace::with(scenario);
    files.iter().for_each(|(name, text)| place.write(name, text));
    let experiment = Experiment::load(&place.path(SCENARIO), &Overrides::default()).unwrap();
    let (id, mut seen) = (&experiment.runs()[0], Seen::default());
    let world = experiment.world(0, 1, &DataCache::default()).unwrap();
    let ended = experiment.run_one(id, &world, &mut seen, &Threads::new(1).unwrap(), None);
    let Err(Error::Run { run, source }) = ended else { panic!("{ended:?}") };
    assert_eq!(run, "random-s1");

    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (3, ""), "{answer:?}");
    let said = format!("fedgenie: error: run random-s1 failed: {source}\nfedgenie: no run ended well\n");
    assert!(answer.stderr.ends_with(&said), "{said}\n{answer:?}");
    // The rounds before are there, each once, and the folder says why there are no more.
    let run = "out/runs/random-s1";
    let rounds = place.lines(&format!("{run}/rounds.jsonl"));
    let expected: Vec<u64> = (1..=seen.rounds.len() as u64).collect();
    assert_eq!(rounds.iter().map(|round| round["round"].as_u64().unwrap()).collect::<Vec<_>>(), expected);
    assert_eq!(place.json(&format!("{run}/failed.json"))["error"], source.to_string());
    assert!(!place.path(&format!("{run}/run.json")).exists());
    assert_eq!(place.json("out/manifest.json")["failed"], serde_json::json!(["random-s1"]));
    // It fails again in the same way.
    let verdict = place.fedgenie(&["verify", "out"]);
    assert_eq!(verdict.code, 0, "{verdict:?}");
    source
}

const SLOW: &str = "compute = { constant = \"2 s\" }";

fn compute(law: &str) -> String {
    changed(PLAIN, SLOW, &format!("compute = {law}"))
}

fn protocol(of: &str) -> String {
    changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", of)
}

/// All clients follow one trace, and are never there again after it.
fn away(scenario: &str, until: u32) -> RunError {
    let trace = "[population.availability.trace]\nfile = \"trace\"\nwindow = \"1 h\"\nwrap = false\n";
    failed(&format!("{scenario}{trace}"), &[("trace", &format!("client,start_s,end_s\na,0,{until}\n"))])
}

/// Waits before its second selection for longer than runs last.
#[derive(Stateful)]
struct Waiting;

impl Policy for Waiting {
    fn probes(&self) -> bool {
        true
    }

    fn probe(&mut self, ask: &SelectionRequest<'_>, _: &ServerView<'_>, _: &mut StreamRng) -> Result<Probe, Failure> {
        Ok(Probe::Context(Span(if ask.turn.0 == 1 { 1 } else { u64::MAX })))
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().iter().take(1));
        Ok(())
    }
}

/// Fails in its second selection.
#[derive(Stateful)]
struct Failing;

impl Policy for Failing {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        _: &ServerView<'_>,
        _: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        selection.extend(ask.available.list().iter().take(1));
        if ask.turn.0 == 2 { Err(io::Error::from(io::ErrorKind::StorageFull).into()) } else { Ok(()) }
    }
}

/// Keeps one round and no more.
#[derive(Default)]
struct Full(u32);

impl Sink for Full {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, _: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        self.0 += 1;
        if self.0 > 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

/// A policy's second selection is no selection; the first round was seen whole.
fn second_round(policy: Box<dyn Policy>) -> RunError {
    let (world, mut seen) = (world(PLAIN, 1), Seen::default());
    let mut run = Run::new(&world, "double", Policies::from(policy), SETTINGS, &mut seen);
    run.step().unwrap();
    let (digest, time) = (run.digests().timeline.hex(), run.now());
    let error = run.step().unwrap_err();
    assert_eq!((run.now() >= time, run.digests().timeline.hex().len()), (true, digest.len()));
    drop(run);
    assert_eq!(seen.rounds.len(), 1);
    error
}

/// Damaged books: a run that is loaded from bytes of which one was changed finds that its accounts do not agree.
fn violated() -> RunError {
    let world = world(PLAIN, 1);
    let start = || {
        Run::new(
            &world,
            "double",
            Policies::from(Box::new(Script::new(&[&[0, 1]])) as Box<dyn Policy>),
            SETTINGS,
            Seen::default(),
        )
    };
    let mut run = start();
    (0..2).for_each(|_| run.step().unwrap());
    let good = run.save().unwrap();
    let mut found = None;
    for place in (0..good.len()).rev() {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        let mut changed = start();
        if changed.load(&bytes).is_ok()
            && let Err(error @ RunError::Violated { .. }) = changed.step()
        {
            found = Some(error);
            break;
        }
    }
    // The run that was saved goes on.
    run.step().unwrap();
    let error = found.unwrap();
    let code = Error::Run {
        run: "double-s1".to_owned(),
        source: RunError::Violated { what: String::new(), records: Vec::new() },
    };
    assert_eq!(code.exit_code(), 4);
    error
}

fn diverged(lr: &str, aggregation: &str) -> Provoked {
    let training = TRAINING.replace("lr = 0.1", &format!("lr = {lr}"));
    told(failed(&format!("{PLAIN}[task.linear-regression]\nexamples = 200\n{training}{aggregation}"), &[]))
}

pub const CASES: &[Case] = &[
    ("RunError::BadSelection", || told(second_round(Box::new(Script::new(&[&[0, 1], &[1, 1]]))))),
    ("RunError::Outside", || told(second_round(Box::new(Failing)))),
    ("RunError::Halted", || {
        let (world, mut seen, halt) = (world(PLAIN, 1), Seen::default(), Halt::new());
        let policies = Policies::from(Box::new(Script::new(&[&[0, 1]])) as Box<dyn Policy>);
        let mut run = Run::new(&world, "double", policies, SETTINGS, &mut seen);
        run.set_halt(halt.clone());
        run.step().unwrap();
        halt.ask(Duration::ZERO);
        let error = run.step().unwrap_err();
        drop(run);
        assert_eq!(seen.rounds.len(), 1);
        told(error)
    }),
    ("RunError::Latency", || told(failed(&compute("{ pareto = { minimum = \"1 s\", shape = 0.05 } }"), &[]))),
    ("LatencyError", || match failed(&compute("{ pareto = { minimum = \"1 s\", shape = 0.05 } }"), &[]) {
        RunError::Latency(error) => told(error),
        other => panic!("{other:?}"),
    }),
    ("RunError::EdgeLink", || {
        let link =
            "link = { download = { pareto = { minimum = \"1 s\", shape = 0.05 } }, upload = { constant = \"1 s\" } }";
        told(failed(&protocol(&format!("[protocol.hierarchical]\nedges = 2\ncohort = 1\n{link}\n")), &[]))
    }),
    ("RunError::Diverged", || diverged("1e30", "")),
    ("RunError::ServerDiverged", || {
        diverged("0.1", "[aggregation]\nserver = { momentum = { lr = 3e38, momentum = 0.9 } }\n")
    }),
    ("RunError::Task", || {
        let task = "[task.scripted]\nmetric = \"test_score\"\nvalues = [1.0]\neffects = \"effects\"\n";
        told(failed(&format!("{PLAIN}{task}"), &[("effects", "client,value\n0,1\n3,1\n4,2\n")]))
    }),
    ("RunError::NoClients", || told(away(PLAIN, 8))),
    ("RunError::Stuck", || told(away(PLAIN, 7))),
    ("RunError::NoUpdates", || {
        told(failed(&protocol("[protocol.buffered]\nconcurrency = 1\nbuffer = 1\ntimeout = \"1 s\"\n"), &[]))
    }),
    ("RunError::TooLate", || told(failed(&compute("{ constant = \"3153600000 s\" }"), &[]))),
    ("RunError::TooManyBytes", || {
        let many = changed(PLAIN, "rounds = 12", "rounds = 10000");
        told(failed(&format!("{many}[task.none]\npayload = \"1000 TB\"\n"), &[]))
    }),
    ("RunError::Probe", || told(second_round(Box::new(Waiting)))),
    ("RunError::Budget", || {
        // A job moves 88 bytes, and a loss of each of five clients 52 to ask for it.
        let probing = changed(PLAIN, "[policy.random]", "[policy.random]\nkind = \"power-of-choice\"\ncandidates = 5");
        let budget = "[budget]\ntraffic = \"200 B\"\n";
        told(failed(&format!("{probing}[task.linear-regression]\nexamples = 200\n{TRAINING}{budget}"), &[]))
    }),
    ("RunError::Standstill", || {
        let at_once = PLAIN.replace("\"1 s\"", "\"0 s\"").replace("\"2 s\"", "\"0 s\"");
        told(failed(&changed(&at_once, "rounds = 12", "virtual_time = \"1 h\""), &[]))
    }),
    ("RunError::Violated", || told(violated())),
    ("RunError::Io", || {
        let (world, mut full) = (world(PLAIN, 1), Full::default());
        let policies = Policies::from(Box::new(Script::new(&[&[0, 1]])) as Box<dyn Policy>);
        let mut run = Run::new(&world, "double", policies, SETTINGS, &mut full);
        run.step().unwrap();
        let error = run.step().unwrap_err();
        drop(run);
        assert_eq!(full.0, 2);
        // A sink with room for it loses nothing.
        assert_eq!(play(&world, Box::new(Script::new(&[&[0, 1]])), 2).unwrap().seen.rounds.len(), 2);
        told(error)
    }),
];
