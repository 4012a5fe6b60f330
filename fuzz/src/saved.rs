//! Saved runs: the bytes of a run between two rounds. The first byte of an input says of which world.

use fedgenie::experiment::{Experiment, RunId};
use fedgenie::recorder::NoSink;
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use fedgenie::world::World;
use std::cell::OnceCell;
use std::path::Path;

/// Worlds with one protocol, task and policy each.
fn scenarios() -> Vec<String> {
    let of = |policy: &str, more: &str| {
        let training = "[training]\nbatch = 8\noptimizer = { sgd = { lr = 0.05, momentum = 0.5 } }\n";
        format!(
            "name = \"saved\"\nseeds = 1\n[stop]\nrounds = 7\n[population]\nclients = 9\ninterrupted = \"pause\"\n[population.latency]\n\
             download = {{ constant = \"0.1 s\" }}\ncompute = {{ exponential = {{ mean = {{ uniform = [\"0.2 s\", \"2 s\"] }} }} }}\n\
             upload = {{ constant = \"0.15 s\" }}\n[population.availability]\n\
             on-off = {{ on = {{ exponential = {{ mean = \"8 s\" }} }}, off = {{ exponential = {{ mean = \"2 s\" }} }} }}\n{training}{more}[policy.{policy}]\n"
        )
    };
    let rows = "[task.linear-regression]\nexamples = 90\nfeatures = 3\n";
    let deadline = "[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\nlate = { carry = {} }\n";
    let buffered = "[protocol.buffered]\nconcurrency = 4\nbuffer = 3\n";
    let tiers = "[protocol.hierarchical]\nedges = 3\ncohort = 2\n[clusters]\ncount = 2\ninitial = \"round-robin\"\nassign = { random = { every = 2 } }\n";
    let arrivals = "[protocol.hierarchical]\nedges = 3\ncohort = 2\ncloud = { buffer = 2 }\n[regret]\ncounterfactual = true\nmeters = []\nutility = { aggregate = { server_loss = -1.0 } }\n";
    let synchronous = "[protocol.synchronous]\ncohort = 3\n";
    let clear = |text: String| text.replace("interrupted = \"pause\"", "interrupted = \"run-on\"");
    vec![
        of("cs-ucb-q", &format!("{deadline}{rows}")),
        of("random", &format!("{buffered}{rows}[aggregation]\nserver = {{ adam = {{ lr = 0.02 }} }}\n")),
        of("random", &format!("{tiers}{rows}")),
        clear(of("bsfl", &format!("{synchronous}{rows}[regret]\ntau_min = \"50 ms\"\nalpha = 0.5\nbeta = 1.2\n"))),
        of("round-robin", &format!("{deadline}[task.none]\npayload = \"1 kB\"\n")),
        of("mab-frs", &format!("{synchronous}{rows}")),
        of("rpfl", &format!("{synchronous}{rows}")),
        clear(of("thompson", &format!("{arrivals}{rows}"))),
    ]
}

/// A world with its policy, and its run after each of a few rounds.
struct Kept {
    experiment: Experiment,
    id: RunId,
    world: World,
    saved: Vec<Vec<u8>>,
}

impl Kept {
    fn of(text: &str) -> Self {
        let root = tree::parse(Path::new("scenario.toml"), text).unwrap();
        let experiment =
            Experiment::from_tree(&root, Path::new("."), None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let id = experiment.runs().remove(0);
        let world = experiment.world(0, 1, &DataCache::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut kept = Self { experiment, id, world, saved: Vec::new() };
        let saved = {
            let mut run = kept.start();
            let after = |_| {
                run.step().unwrap();
                run.save().unwrap()
            };
            (0..5).map(after).collect()
        };
        kept.saved = saved;
        kept
    }

    fn start(&self) -> Run<'_> {
        let arm = &self.experiment.first().arms[self.id.arm];
        let settings = RunSettings {
            evaluate: Evaluations { clients: true, servers: true, ..Evaluations::every(2) },
            record_every: 1,
            explain: true,
            updates: true,
            battery: false,
            parallel: false,
        };
        Run::new(&self.world, &arm.label, self.world.policies(&arm.source()).unwrap(), settings, NoSink)
    }
}

thread_local! {
    static KEPT: OnceCell<Vec<Kept>> = const { OnceCell::new() };
}

fn with<T>(work: impl FnOnce(&[Kept]) -> T) -> T {
    KEPT.with(|kept| work(kept.get_or_init(|| scenarios().iter().map(|text| Kept::of(text)).collect())))
}

pub mod saved_run {
    pub fn corpus() -> Vec<Vec<u8>> {
        super::with(|kept| {
            let all = kept.iter().zip(0_u8..);
            all.flat_map(|(kept, number)| kept.saved.iter().map(move |saved| [&[number][..], saved].concat())).collect()
        })
    }

    /// Bytes are refused, or the run that they make can be saved.
    pub fn run(input: &[u8]) -> Result<(), String> {
        let Some((&first, bytes)) = input.split_first() else { return Ok(()) };
        super::with(|kept| {
            let kept = &kept[usize::from(first) % kept.len()];
            let mut run = kept.start();
            run.load(bytes).map_err(|error| error.to_string())?;
            let again = run.save().unwrap();
            let mut second = kept.start();
            assert!(second.load(&again).is_ok(), "what was saved again is refused");
            assert_eq!(second.save().unwrap(), again);
            if kept.saved.iter().any(|saved| saved == bytes) {
                assert!(again == bytes && run.step().is_ok());
            }
            Ok(())
        })
    }
}
