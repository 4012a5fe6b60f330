//! A run that is saved after every round, and goes on in a new run that has loaded it, equals an uninterrupted run:
//! every policy under every protocol, every task, server optimizer and cluster rule of the catalogues.

use super::support::{DEVICES, SCENARIO, changed};
use fedgenie::catalogue::{Catalogue, Entry};
use fedgenie::experiment::Experiment;
use fedgenie::metrics::{Bins, Metered};
use fedgenie::protocol;
use fedgenie::record::Record;
use fedgenie::recorder::{NoSink, RoundMark, RoundSummary, Sink};
use fedgenie::run::{Evaluations, Run, RunSettings};
use fedgenie::scenario::{catalogue, tree};
use fedgenie::state::State;
use fedgenie::task::{self, DataCache};
use fedgenie::world::World;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

const ROUNDS: usize = 7;

/// Nine devices that come and go, whose links and processors differ.
pub const NINE: &str = r#"
name = "checkpoints"
seeds = 1
[stop]
rounds = 7
[population]
clients = 9
interrupted = "pause"
"#;

/// Every protocol of the catalogue, with jobs that outlive their rounds and clients that are lost where that can be.
pub fn protocols() -> Vec<&'static str> {
    let of = |name: &str| match name {
        "synchronous" => &["[protocol.synchronous]\ncohort = 3\n"][..],
        "over-selection" => &["[protocol.over-selection]\nask = 4\ntake = 2\n"],
        "deadline" => &[
            "[population.dropout]\ncompute = \"0.1 /s\"\n[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\nlate = { carry = {} }\n",
        ],
        "buffered" => &[
            "[population.dropout]\ncompute = \"0.1 /s\"\n[protocol.buffered]\nconcurrency = 4\nbuffer = 3\ntimeout = \"4 s\"\n",
        ],
        "hierarchical" => &[
            "[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\n",
            "[population.dropout]\ncompute = \"0.1 /s\"\n[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\ntimeout = \"1.5 s\"\n\
             [protocol.hierarchical.cloud]\ncohort = 2\ntimeout = \"4 s\"\npolicy = { round-robin = {} }\n",
            "[population.dropout]\ncompute = \"0.1 /s\"\n[protocol.hierarchical]\nedges = 3\ncohort = 2\nedge_rounds = 2\ntimeout = \"1.5 s\"\n\
             link = { download = { constant = \"0.3 s\" }, upload = { uniform = [\"0.1 s\", \"1 s\"] } }\n\
             cloud = { buffer = 2, staleness = { polynomial = {} }, max_staleness = 2 }\n",
        ],
        _ => &[],
    };
    entries(&protocol::CATALOGUE, of)
}

/// Every task of the catalogue, with all that its clients and servers can keep.
fn tasks() -> Vec<&'static str> {
    let of = |name: &str| match name {
        "none" => &["[task.none]\n"][..],
        "linear-regression" => &["[task.linear-regression]\nexamples = 300\nfeatures = 4\n"],
        "softmax-regression" => &[
            "[task.softmax-regression]\ndata = { synthetic = { height = 4, width = 4, train = 120, test = 40 } }\npartition = \"iid\"\n",
        ],
        "classification" => &[
            "[task.classification]\nmodel = { mlp = { hidden = [6] } }\ndata = { synthetic = { height = 4, width = 4, train = 120, test = 40 } }\npartition = \"iid\"\n",
        ],
        "scripted" => &[
            "[task.scripted]\nmetric = \"test_accuracy\"\nbetter = \"higher\"\npayload = \"100 kB\"\nvalues = [0.1, 0.2, 0.3]\n\
             effects = [-0.02, -0.02, -0.02, 0.0, 0.0, 0.0, 0.02, 0.02, 0.02]\ngains = [0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3]\nnoise = 0.01\n",
        ],
        "rating-graph" => &[
            "[task.rating-graph]\ndata = { synthetic = { users = 40, items = 60, ratings = 600, categories = 20, communities = 3, trust = 80 } }\n\
             model = { gcn = { layers = 2, hidden = 4, embedding = 4 } }\npartition = { categories = { distribution = \"even\" } }\n",
            "[task.rating-graph]\ndata = { synthetic = { users = 40, items = 60, ratings = 600, categories = 20, communities = 3, trust = 80 } }\n\
             model = { gat = { layers = 2, heads = 2, hidden = 4, embedding = 4 } }\npartition = { communities = { count = 9, distribution = \"even\" } }\n",
        ],
        "recommendation" => &[
            // Users' rows stay with their clients, and rows of items are moved now and then.
            "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\ncutoffs = [5]\n\
             transfer = { down = \"rows\", up = \"rows\" }\nmodel = { mf = { dimensions = 3 } }\n",
            "[task.recommendation]\ndata = { synthetic = { users = 9, items = 30, ratings = 150, text = 3 } }\ncutoffs = [5]\n\
             model = { dmrl = { dim = 4, factors = 2, hidden = 4, attention_hidden = 2 } }\n",
        ],
        _ => &[],
    };
    entries(&task::CATALOGUE, of)
}

/// Every entry with the parameters that are written down here, any other as the example of its file has it.
fn entries(catalogue: &Catalogue, written: fn(&str) -> &'static [&'static str]) -> Vec<&'static str> {
    let of = |entry: &Entry| match (written(entry.name), entry.example()) {
        ([], Some(example)) => vec![&*example.leak()],
        ([], None) => panic!(
            "give the file of {kind}/{name} a heading # Example with [{kind}.{name}], or write parameters of it into \
             tests/it/checkpoints.rs",
            kind = catalogue.kind,
            name = entry.name
        ),
        (written, _) => written.to_vec(),
    };
    catalogue.entries.iter().flat_map(of).collect()
}

fn named(kind: &str) -> Vec<String> {
    let found: Vec<String> =
        catalogue::components().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect();
    assert!(!found.is_empty(), "{kind}");
    found
}

/// All feedback, across runs.
type Told = Arc<Mutex<Vec<Value>>>;

/// Keeps its feedback, and adds it up.
struct Kept {
    told: Told,
    folds: Metered<'static>,
}

impl Kept {
    fn of(told: &Told, world: &World) -> Self {
        let nowhere = Box::leak(Box::new(NoSink));
        Self { told: told.clone(), folds: Metered::new(nowhere, Bins::new(&world.population, None)).explained() }
    }
}

impl Sink for Kept {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.folds.record(record)
    }
    fn round(&mut self, summary: &RoundSummary<'_>, is_recorded: bool, mark: &RoundMark) -> io::Result<()> {
        let checksums = mark.checksums.len();
        self.told.lock().unwrap().push(json!([summary.to_json(), mark.timeline, mark.model, checksums]));
        self.folds.round(summary, is_recorded, mark)
    }
    fn wants_checksums(&self) -> bool {
        true
    }
    fn save(&mut self, state: &mut State<'_>) -> io::Result<()> {
        self.folds.save(state)
    }
}

/// The totals of rounds.
fn folds_of(run: &mut Run<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    run.save_sink(&mut State::Saving(&mut bytes)).unwrap();
    bytes
}

/// A run's state at its end.
#[derive(Debug, PartialEq)]
struct Left {
    rounds: Vec<Value>,
    digests: [String; 2],
    counts: Vec<u32>,
    /// The model's file, and that of the algorithm's memory.
    model: [Option<Vec<u8>>; 2],
    ending: String,
}

fn refused(error: impl Debug, text: &str) -> ! {
    panic!(
        "{error:?}\nA policy that cannot do without settings has them in `needed` of tests/it/checkpoints.rs. A task or \
         a protocol is tried as the # Example of its file has it, if parameters for nine clients are not written there.\n\
         {text}"
    )
}

/// Plays every policy of a scenario twice: in one go, and with a new run for each round. Returns how many could be.
pub fn assert_kept(text: &str) -> usize {
    let root = tree::parse(Path::new(SCENARIO), text).unwrap_or_else(|error| refused(error, text));
    let experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap_or_else(|error| refused(error, text));
    let called = experiment.first().plan.task.about().name;
    assert!(text.contains(&format!("[task.{called}]\n")), "`about` gives the task another name, {called:?}:\n{text}");
    // Policies without settings of their own meet the same world.
    let world = experiment.world(0, 1, &DataCache::default()).unwrap_or_else(|error| refused(error, text));
    let mut played = 0;
    for id in experiment.runs() {
        let arm = &experiment.first().arms[id.arm];
        if world.policies(&arm.source()).is_err() {
            // Not under this protocol, or not with this task.
            continue;
        }
        played += 1;
        let start = |kept: Kept| {
            let settings = RunSettings {
                evaluate: Evaluations { clients: true, servers: true, ..Evaluations::every(2) },
                record_every: 1,
                explain: true,
                updates: true,
                battery: false,
                parallel: false,
            };
            Run::new(&world, &arm.label, world.policies(&arm.source()).unwrap(), settings, kept)
        };
        let end = |run: Run<'_>, told: Told| {
            let digests = [run.digests().timeline.hex(), run.digests().model.hex()];
            let (counts, model) = (run.counts().to_vec(), [run.model_file(), run.memory_file()]);
            let (regret, participation) = (run.regret(), *run.participation());
            let ending = format!("{regret:?} {participation:?} {:?}", run.finish().unwrap());
            Left { rounds: told.lock().unwrap().clone(), digests, counts, model, ending }
        };
        let (told, mut folds) = (Told::default(), Vec::new());
        let mut run = start(Kept::of(&told, &world));
        let context = |round| format!("{}, round {round}:\n{text}", arm.label);
        for round in 1..=ROUNDS {
            run.step().unwrap_or_else(|error| panic!("{error}: {}", context(round)));
            folds.push(folds_of(&mut run));
        }
        let whole = end(run, told);

        let told = Told::default();
        let mut run = start(Kept::of(&told, &world));
        for round in 1..=ROUNDS {
            run.step().unwrap();
            assert_eq!(told.lock().unwrap()[round - 1], whole.rounds[round - 1], "{}", context(round));
            let added = folds_of(&mut run);
            assert!(added == folds[round - 1], "rounds add up to something else: {}", context(round));
            let bytes = run.save().unwrap();
            let mut kept = Kept::of(&told, &world);
            State::load(&mut kept.folds, &added).unwrap();
            run = start(kept);
            run.load(&bytes).unwrap_or_else(|error| panic!("{error}: {}", context(round)));
            assert_eq!(run.save().unwrap(), bytes, "what was loaded is saved again: {}", context(round));
            assert!(folds_of(&mut run) == added, "so is what rounds add up to: {}", context(round));
            // Building policies and meters takes its time: once is enough.
            if round != 3 {
                continue;
            }
            for wrong in [&bytes[..bytes.len() - 1], &bytes[..bytes.len() / 2], &[], &[&bytes[..], &[0]].concat()[..]] {
                let is_refused = start(Kept::of(&told, &world)).load(wrong).is_err();
                assert!(is_refused, "{} of {} bytes", wrong.len(), bytes.len());
            }
            let cut = &added[..added.len() - 1];
            assert!(State::load(&mut Kept::of(&told, &world).folds, cut).is_err());
        }
        assert_eq!(end(run, told), whole, "{}", context(ROUNDS));
    }
    played
}

/// As [`NINE`], but jobs go on where devices are away: the rewards are known then.
fn run_on() -> String {
    changed(NINE, "interrupted = \"pause\"", "interrupted = \"run-on\"") + DEVICES
}

/// A task whose models of clusters are sums.
const ADDITIVE: &str = "[task.softmax-regression]\n\
                        data = { synthetic = { classes = 3, height = 3, width = 3, train = 90, test = 30 } }\n";
const REGRESSION: &str = "[task.linear-regression]\nexamples = 300\nfeatures = 4\n";

/// Settings that a policy cannot do without on [`REGRESSION`].
fn needed(policy: &str) -> &'static str {
    match policy {
        "oort" => "pacer_step = 1\nexploration = 0.5\nblacklist_rounds = 1\n",
        "fedacs" => "metric = \"test_loss\"\ntarget = 0.5\nbudget = \"20 kB\"\n",
        "proxyrl" => "contribution = \"training\"\naccuracy = \"test_loss\"\nlambda = 1.0\nhidden = 4\n",
        "fedrl" => "accuracy = \"test_loss\"\nhidden = 4\n",
        "clustered-sampling" => "algorithm = \"similarity\"\n",
        "pisces" => "pool = 2\ncredits = 2\n",
        "shapley" => "exact = 2\nbeta = 2.0\n",
        "fedcor" => "warmup = 2\ninterval = 3\ndimension = 2\niterations = 5\n",
        _ => "",
    }
}

/// Every policy of the catalogue, under every protocol that it can have, with regret where that is defined.
#[test]
fn every_policy_under_every_protocol() {
    let mut most = 0;
    // One policy needs a regret in hindsight, which not every protocol has.
    let genieless: Vec<String> = named("policy").into_iter().filter(|name| name != "hindsight").collect();
    for protocol in protocols() {
        let table = |name: &String, more: &str| format!("[policy.{name}]\n{more}");
        if !protocol.contains("buffered") && !protocol.contains("hierarchical") {
            let regret = "[regret]\ntau_min = \"50 ms\"\nalpha = 0.5\nbeta = 1.2\n";
            let policies: String = genieless.iter().map(|name| table(name, needed(name))).collect();
            most = most.max(assert_kept(&format!("{}{protocol}{REGRESSION}{regret}{policies}", run_on())));
        }
        // Without regret some need parameters of their own, and some cannot be.
        let policies: String = genieless
            .iter()
            .filter(|name| *name != "genie")
            .map(|name| match &**name {
                "bsfl" => table(name, "alpha = 1.0\nbeta = 1.2\ntau_min = \"50 ms\"\n"),
                "rbcs-f" => table(name, "context_time = \"0.3 s\"\n"),
                "thompson" => table(name, "warmup = 2\n"),
                _ => table(name, needed(name)),
            })
            .collect();
        assert!(assert_kept(&format!("{NINE}{DEVICES}{protocol}{REGRESSION}{policies}")) > 5);
    }
    // Two need classes, one a log, one forecasts, one batteries, two rounds of any size, one work, and two ask what
    // only other tasks know.
    assert_eq!(most, genieless.len() - 11, "every policy plays in rounds of one server");
    for protocol in protocols() {
        let text =
            format!("{NINE}{DEVICES}{protocol}{ADDITIVE}[policy.harmony-style]\n[policy.flips]\n[policy.haccs]\n");
        assert_eq!(assert_kept(&text), 3, "{text}");
        let forecast = "[population.forecast]\nhorizon = \"1 h\"\n";
        let text = format!("{NINE}{DEVICES}{forecast}{protocol}{REGRESSION}[policy.refl]\ncooldown = 1\n");
        assert_eq!(assert_kept(&text), 1, "{text}");
        let work = changed(DEVICES, "[training]\n", "[training]\nmost_epochs = 5\n");
        let text = format!("{NINE}{work}{protocol}{REGRESSION}[policy.pyramidfl]\npacer_step = 1\nexploration = 0.5\n");
        assert_eq!(assert_kept(&text), 1, "{text}");
    }
    let any_size = "[protocol.deadline]\ncohort = 4\nmost = 9\ndeadline = \"2 s\"\nlate = { carry = {} }\n";
    let of_any_size = "[policy.optimal-sampling]\n[policy.critical-fl]\n[policy.windows]\nkind = \"critical-fl\"\n\
                       variant = \"released\"\nwindow = 2\n";
    let text = format!("{NINE}{DEVICES}{any_size}{REGRESSION}{of_any_size}");
    assert_eq!(assert_kept(&text), 3, "{text}");
    let deadline =
        "[population.dropout]\ncompute = \"0.1 /s\"\n[protocol.deadline]\ncohort = 4\ndeadline = \"1.2 s\"\n";
    let regret = "[regret]\ncounterfactual = true\nutility = { aggregate = { test_loss = -1.0, traffic = -0.5 } }\n\
                  size = \"at-most\"\nevery = 2\nmeters = []\n[budget]\nfull_rounds = 100\n";
    for protocol in ["[protocol.synchronous]\ncohort = 3\n", deadline] {
        assert_eq!(assert_kept(&format!("{}{protocol}{REGRESSION}{regret}[policy.hindsight]\n", run_on())), 1);
    }
}

/// Levels of batteries that run empty and are charged, under every protocol that clients may be lost in.
#[test]
fn levels_of_batteries_are_kept() {
    let battery = "[population.battery]\ncapacity = { each = [\"3 J\", \"5 J\", \"8 J\", \"2 J\", \"4 J\", \"3 J\", \"9 J\", \
                   \"6 J\", \"7 J\"] }\nreserve = 0.2\nidle = \"0.1 W\"\nreceive = \"1 W\"\ncompute = \"2 W\"\nsend = \"1 W\"\n\
                   charge = { power = \"0.5 W\", hours = [[0, 24]] }\n";
    let mut played = 0;
    for protocol in protocols().into_iter().filter(|protocol| protocol.contains("timeout") || protocol.contains("late"))
    {
        let policies = "[policy.random]\n[policy.eafl]\npacer_step = 1\nexploration = 0.5\n";
        let text = format!("{NINE}{DEVICES}{battery}{protocol}{REGRESSION}{policies}");
        assert_eq!(assert_kept(&text), 2, "{text}");
        played += 1;
    }
    assert!(played >= 4, "{played} protocols lose clients");
}

/// Every server optimizer of the catalogue.
fn servers() -> Vec<String> {
    let of = |name: String| match &*name {
        "average" => "average = {}".to_owned(),
        "momentum" => "momentum = { lr = 1.0, momentum = 0.7 }".to_owned(),
        _ => format!("{name} = {{ lr = 0.02 }}"),
    };
    named("server").into_iter().map(|name| format!("[aggregation]\nserver = {{ {} }}\n", of(name))).collect()
}

/// Every task under every protocol, and every server optimizer.
#[test]
fn every_task_and_server_optimizer() {
    let servers = servers();
    let mut next = servers.iter().cycle();
    for protocol in protocols() {
        for task in tasks() {
            let learns = !task.contains("none") && !task.contains("scripted");
            let aggregation = if learns { next.next().unwrap() } else { "" };
            let text = format!("{NINE}{DEVICES}{protocol}{task}{aggregation}[policy.random]\n");
            assert_eq!(assert_kept(&text), 1, "{text}");
        }
    }
    for server in &servers {
        let text = format!("{NINE}{DEVICES}{}{REGRESSION}{server}[policy.random]\n", protocols()[0]);
        assert_eq!(assert_kept(&text), 1, "{text}");
    }
}

/// Cluster models with every rule, and regrets in hindsight with every utility.
#[test]
fn clusters_and_hindsight() {
    let edges = "[protocol.hierarchical]\nedges = 3\ncohort = 2\n";
    let arrivals = format!("{edges}edge_rounds = 2\ncloud = {{ buffer = 2 }}\n");
    for rule in named("clusters") {
        // Every two of the seven rounds, so that there is something to remember in between.
        let of = if rule == "fixed" { "" } else { "every = 2" };
        let clusters =
            format!("[clusters]\ncount = 2\ninitial = \"round-robin\"\nassign = {{ {rule} = {{ {of} }} }}\n");
        for regret in ["[evaluate]\nedges = true\n", "[regret]\nassignment = true\n"] {
            for edges in [edges, &arrivals] {
                let text = format!("{NINE}{DEVICES}{edges}{REGRESSION}{clusters}{regret}[policy.random]\n");
                assert_eq!(assert_kept(&text), 1);
                let text =
                    format!("{NINE}{DEVICES}{edges}{ADDITIVE}{clusters}charge = true\n{regret}[policy.thompson]\n");
                assert_eq!(assert_kept(&text), 1);
            }
        }
    }
    for utility in named("utility") {
        let of = if utility == "aggregate" { "test_loss = -1.0" } else { "" };
        let regret = format!("[regret]\ncounterfactual = true\nmeters = []\nutility = {{ {utility} = {{ {of} }} }}\n");
        // It is not defined where updates depend on each other, or join later.
        for protocol in protocols().into_iter().filter(|protocol| !protocol.contains("over-selection")) {
            let protocol = protocol.replace("late = { carry = {} }\n", "");
            let text = format!("{}{protocol}{REGRESSION}{regret}[policy.random]\n", run_on());
            assert_eq!(assert_kept(&text), 1, "{text}");
        }
    }
}
