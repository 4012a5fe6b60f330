//! Demands on every policy of the catalogue: a state that is saved and loaded, and the numbers behind its decisions.

use super::support::{SETTINGS, Workplace, changed, labelled, play, world};
use fedgenie::experiment::Experiment;
use fedgenie::failure::Failure;
use fedgenie::id::ClientId;
use fedgenie::policy::{
    CATALOGUE, Capabilities, Explanation, Feedback, Policy, PolicyConfig, PolicyRng, PolicySource, Probe, Selection,
    SelectionRequest, ServerView, Wants,
};
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::StreamRng;
use fedgenie::run::{Run, RunSettings};
use fedgenie::scenario::tree;
use fedgenie::state::{State, Stateful};
use fedgenie::world::World;
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Six clients that train, with latencies of their own. In expectation no client is as fast as the next.
const WORLD: &str = r#"
name = "policies"
seeds = 1
[stop]
rounds = 8
[population]
clients = 6
[population.latency]
download = { uniform = ["0.05 s", "0.2 s"] }
compute = { exponential = { mean = { each = ["0.2 s", "0.3 s", "0.5 s", "0.8 s", "1 s", "1.5 s"] }, shift = "0.1 s" } }
upload = { uniform = ["0.05 s", "0.2 s"] }
[task.linear-regression]
examples = 700
[training]
batch = 16
optimizer = { sgd = { lr = 0.02 } }
[protocol.synchronous]
cohort = 2
[regret]
tau_min = "50 ms"
alpha = 0.5
beta = 1.2
[record]
explain = true
updates = true
"#;

const REGRET: &str = "[regret]\ntau_min = \"50 ms\"\nalpha = 0.5\nbeta = 1.2\n";
const REGRESSION: &str = "[task.linear-regression]\nexamples = 700\n";
/// A task with classes, for policies that compare them.
const CLASSES: &str = "[task.softmax-regression]\npartition = { dirichlet = { alpha = 0.3 } }\n\
                       data = { synthetic = { classes = 4, height = 3, width = 3, train = 240, test = 40 } }\n";

/// Parameters with which a policy is tried, each as the lines of its table.
fn settings(policy: &str) -> &'static [&'static str] {
    match policy {
        "genie" | "hindsight" | "round-robin" | "cs-ucb-q" => &[""],
        "random" => &["", "weights = \"data-size\"", "probability = 0.5"],
        "bsfl" => {
            &["", "solver = \"greedy\"", "solver = { alsa = { steps = 50 } }", "solver = { sa = { steps = 50 } }"]
        }
        "cs-ucb" => &["tau_max = \"2 s\"", ""],
        "rbcs-f" => &["", "context_time = \"0 s\"", "latency_weight = 0.0"],
        "power-of-choice" => {
            &["candidates = 4", "losses = \"last-known\"", "losses = \"trained\"", "losses = \"mini-batch\"\nbatch = 8"]
        }
        "proxyrl" => &[
            "contribution = \"training\"\naccuracy = \"test_loss\"\nlambda = 1.0\nhidden = 4\nactor_lr = 0.1\n",
            "contribution = \"training\"\naccuracy = \"test_loss\"\nlambda = 1.0\nhidden = 4\nactor = \"shared\"\n",
            "contribution = \"training\"\nactor = { softmax = {} }\n",
        ],
        "fedrl" => &["accuracy = \"test_loss\"\nhidden = 4\n"],
        // They ask clients questions that this task does not know: see `proxyrl.rs`.
        "fedfast" | "fedgst" => &[],
        // It has no memory, and needs a log: see `recorded.rs`.
        "recorded" => &[],
        "mab-frs" => &[
            "",
            "rho = 0.1\nreference = \"sent\"\ncredit = \"round\"\nestimate = { discounted = { factor = 0.8 } }",
            "prior_count = 0\nestimate = { window = { size = 2 } }\nevaluation_time = \"0.1 s\"",
            "rho = 0.1\nestimate = { contextual = { ridge = 0.5 } }",
            "rho = 0.1\nselection = \"joint\"",
            "prior_count = 0\nselection = \"joint-greedy\"\nestimate = { contextual = { ridge = 0.5 } }",
        ],
        "rpfl" => &["", "components = 1\nclusters = 2"],
        "thompson" => &["warmup = 3", "warmup = 0\ngain = 300.0\ncap = 5.0\non = \"train\""],
        "fedacs" => &[
            "metric = \"test_loss\"\ntarget = 0.5\nbudget = \"4 kB\"",
            "metric = \"test_loss\"\ntarget = 0.5\nbudget = \"4 kB\"\nnumber = \"random\"\nclients = \"random\"",
        ],
        "oort" => &[
            "",
            "pacer_step = 2\npacer_delta = \"0.1 s\"\nexploration = 0.5\nblacklist_rounds = 2",
            "variant = \"released\"\npacer_step = 1\nexploration = 0.3",
        ],
        "harmony-style" => &["", "lambda = 0.1"],
        "fedcs" => &["", "candidates = 4"],
        "afl" => &["", "alpha1 = 0.3\nalpha2 = 0.5\nalpha3 = 0.5"],
        "clustered-sampling" => &["", "algorithm = \"similarity\""],
        "shapley" => &["beta = 2.0", "exact = 1\npermutations = 3"],
        "pyramidfl" => &["", "beta = 0.5\npacer_step = 1\nexploration = 0.3"],
        "critical-fl" => &["", "variant = \"released\"\nwindow = 2"],
        "pisces" => &["pool = 2", "outliers = false\nexploration = 0.4\nhistory = 1"],
        "delta" => &[""],
        "fedcor" => &["", "warmup = 2\ninterval = 3\ndimension = 2\niterations = 5"],
        "gpfl" => &["", "alpha = 1.0\non = \"train\""],
        "optimal-sampling" => &["", "approximate = true\niterations = 2"],
        "refl" => &["", "alpha = 0.5\ncooldown = 1"],
        "e3cs" => &["", "quota = 0.1\neta = 2.0"],
        "eafl" => &["", "f = 0.6\nvariant = \"released\"\npacer_step = 1"],
        "ucb-cs" => &["", "gamma = 0.9"],
        "age" => &[""],
        "flips" => &["", "clusters = 2"],
        "haccs" => &["", "clusters = 2\nrho = 0.2\nlosses = \"fresh\"\ndraws = \"quasi-random\"", "distance = 0.6"],
        "divfl" => &["", "sample = 2", "updates = \"fresh\""],
        "tifl" => &["tiers = 2\ninterval = 1\ncredits = 5", "tiers = 3\ninterval = 3"],
        other => panic!("write down here with which parameters the policy {other:?} is to be tried"),
    }
}

/// Every policy of the catalogue with all of its parameters here: kind, lines, scenario.
fn everything() -> Vec<(&'static str, String)> {
    let of = |name: &'static str| {
        let base = match name {
            "harmony-style" | "flips" | "haccs" => changed(WORLD, REGRESSION, CLASSES),
            "fedcs" => changed(WORLD, "synchronous]\ncohort = 2", "deadline]\ncohort = 2\ndeadline = \"30 s\""),
            // Regret is defined for rounds of one size.
            "optimal-sampling" | "critical-fl" => {
                changed(&changed(WORLD, REGRET, ""), "cohort = 2", "cohort = 2\nmost = 6")
            }
            // Regret is defined for jobs of one length.
            "pyramidfl" => {
                let work = "[training]\nepochs = 2\nmost_epochs = 8\n";
                changed(&changed(WORLD, REGRET, ""), "[training]\n", work)
            }
            // Regret is not defined where clients have batteries.
            "eafl" => {
                let battery = "[population.battery]\ncapacity = { each = [\"40 J\", \"50 J\", \"30 J\", \"90 J\", \"20 J\", \
                               \"60 J\"] }\nidle = \"0.2 W\"\ncompute = \"2 W\"\n";
                let timed = changed(&changed(WORLD, REGRET, ""), "cohort = 2", "cohort = 2\ntimeout = \"60 s\"");
                format!("{timed}{battery}")
            }
            "refl" => format!("{WORLD}[population.forecast]\nhorizon = \"1 h\"\n"),
            _ => WORLD.to_owned(),
        };
        // One knows the best set of the round, which has to be measured.
        let regret = match name {
            "hindsight" => "counterfactual = true\nutility = { aggregate = { test_loss = -1.0 } }\n",
            _ => "",
        };
        let world = base.replace("alpha = 0.5\n", &format!("alpha = 0.5\n{regret}"));
        settings(name).iter().map(move |lines| (name, format!("{world}[policy.{name}]\n{lines}\n")))
    };
    let found: Vec<_> = CATALOGUE.entries.iter().flat_map(|entry| of(entry.name)).collect();
    assert!(found.len() >= CATALOGUE.entries.len());
    found
}

fn source(scenario: &str) -> PolicySource {
    let root = tree::parse(Path::new("policies.toml"), scenario).unwrap();
    Experiment::from_tree(&root, Path::new("."), None).unwrap().first().arms[0].policy.clone()
}

// ------------------------------------------------------------------------------------------ saved and loaded

/// A policy, and copies of it that were made after each round from its saved state. All get the same questions and
/// feedback.
#[derive(Stateful)]
pub struct Copied {
    #[state(skip = "from the test")]
    world: &'static World,
    #[state(skip = "from the test")]
    source: PolicySource,
    original: Box<dyn Policy>,
    #[state(skip = "copies of the original")]
    copies: Vec<Box<dyn Policy>>,
    /// Decisions that were compared.
    #[state(skip = "read by the test")]
    compared: Arc<AtomicUsize>,
}

impl Copied {
    /// A policy of a world with its copies, and how many decisions were compared.
    pub fn of(world: &'static World, source: PolicySource) -> (Box<dyn Policy>, Arc<AtomicUsize>) {
        let compared = Arc::new(AtomicUsize::new(0));
        let original = world.policy(&source).unwrap();
        let in_catalogue = source.config().map(PolicyConfig::sees_truth);
        assert!(in_catalogue.is_none_or(|sees| sees == original.sees_truth()), "{source:?}");
        let copied = Self { world, source, original, copies: Vec::new(), compared: compared.clone() };
        (Box::new(copied), compared)
    }
}

impl Policy for Copied {
    fn capabilities(&self) -> Capabilities {
        self.original.capabilities()
    }

    fn can_be_empty(&self) -> bool {
        self.original.can_be_empty()
    }

    fn wants(&self) -> Wants {
        assert!(self.copies.iter().all(|copy| copy.wants() == self.original.wants()));
        self.original.wants()
    }

    fn needs_batch_losses(&self) -> bool {
        self.original.needs_batch_losses()
    }

    fn probes(&self) -> bool {
        assert!(self.copies.iter().all(|copy| copy.probes() == self.original.probes()));
        self.original.probes()
    }

    fn wants_answer(&self) -> Option<&'static str> {
        assert!(self.copies.iter().all(|copy| copy.wants_answer() == self.original.wants_answer()));
        self.original.wants_answer()
    }

    fn told_answer(&mut self, client: ClientId, kind: &'static str, answer: &[f64]) -> Result<(), Failure> {
        self.original.told_answer(client, kind, answer)?;
        self.copies.iter_mut().for_each(|copy| copy.told_answer(client, kind, answer).unwrap());
        Ok(())
    }

    fn probe(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut StreamRng,
    ) -> Result<Probe, Failure> {
        let before = rng.clone();
        let probe = self.original.probe(ask, view, rng)?;
        for copy in &mut self.copies {
            let mut own = before.clone();
            assert_eq!(copy.probe(ask, view, &mut own).unwrap(), probe);
            assert_eq!(own.bits(), rng.clone().bits(), "both have drawn alike");
        }
        Ok(probe)
    }

    fn sees_truth(&self) -> bool {
        self.original.sees_truth()
    }

    fn foresees(&self, ask: &SelectionRequest<'_>) -> Result<Option<usize>, Failure> {
        self.original.foresees(ask)
    }

    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        let (policy, solver) = (rng.policy.clone(), rng.solver.clone());
        self.original.select(ask, view, rng, selection)?;
        for copy in &mut self.copies {
            let (mut policy, mut solver, mut own) = (policy.clone(), solver.clone(), Selection::default());
            copy.select(ask, view, &mut PolicyRng { policy: &mut policy, solver: &mut solver }, &mut own).unwrap();
            assert_eq!(own, *selection, "turn {}", ask.turn.0);
            self.compared.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        self.original.observe(feedback)?;
        self.copies.iter_mut().for_each(|copy| copy.observe(feedback).unwrap());
        if matches!(feedback, Feedback::Round(_)) {
            let bytes = State::save(&mut *self.original).unwrap();
            let mut copy = self.world.policy(&self.source).unwrap();
            State::load(&mut *copy, &bytes).unwrap();
            self.copies.push(copy);
            for copy in &mut self.copies {
                assert_eq!(State::save(&mut **copy).unwrap(), bytes, "all know the same");
            }
            // A state that ends too early, or too late, is refused.
            let mut wrong = self.world.policy(&self.source).unwrap();
            assert!(bytes.is_empty() || State::load(&mut *wrong, &bytes[1..]).is_err());
            let mut wrong = self.world.policy(&self.source).unwrap();
            assert!(State::load(&mut *wrong, &[&bytes[..], &[0]].concat()).is_err());
        }
        Ok(())
    }

    fn explain(
        &self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        selection: &[ClientId],
        explanation: &mut Explanation,
    ) -> Result<(), Failure> {
        self.original.explain(ask, view, selection, explanation)?;
        for copy in &self.copies {
            let mut own = Explanation::default();
            copy.explain(ask, view, selection, &mut own).unwrap();
            assert_eq!(own.into_json(), explanation.clone().into_json());
        }
        Ok(())
    }

    fn explain_after(&self, clients: &[ClientId], explanation: &mut Explanation) -> Result<(), Failure> {
        self.original.explain_after(clients, explanation)?;
        for copy in &self.copies {
            let mut own = Explanation::default();
            copy.explain_after(clients, &mut own).unwrap();
            assert_eq!(own.into_json(), explanation.clone().into_json());
        }
        Ok(())
    }
}

struct Nothing;

impl Sink for Nothing {
    fn record(&mut self, _: &Record<'_>) -> io::Result<()> {
        Ok(())
    }
    fn round(&mut self, _: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_policy_that_was_saved_and_loaded_decides_as_before() {
    for (kind, scenario) in everything() {
        let source = source(&scenario);
        let world: &'static World = Box::leak(Box::new(world(&scenario, 1)));
        let (policy, compared) = Copied::of(world, source);
        let settings = RunSettings { explain: true, updates: true, ..SETTINGS };
        let mut run = Run::new(world, kind, policy, settings, Nothing);
        for _ in 0..8 {
            run.step().unwrap();
        }
        run.finish().unwrap();
        // One copy in the second round, seven in the eighth.
        assert_eq!(compared.load(Ordering::Relaxed), 28, "{scenario}");
    }
}

/// A copy without the saved state would decide otherwise: the test above can fail.
#[test]
fn what_is_saved_matters() {
    for kind in ["round-robin", "bsfl", "cs-ucb"] {
        let scenario = format!("{WORLD}[policy.{kind}]\n");
        let (world, source) = (world(&scenario, 1), source(&scenario));
        let mut policy = world.policy(&source).unwrap();
        let bytes = State::save(&mut *policy).unwrap();
        let taken: Arc<Mutex<Vec<u8>>> = Arc::default();
        let last: Box<dyn Policy> = Box::new(Last { policy, taken: taken.clone() });
        play(&world, last, 3).unwrap();
        assert_ne!(*taken.lock().unwrap(), bytes, "{kind}");
    }
}

/// Keeps a policy's saved state after its last round.
#[derive(Stateful)]
struct Last {
    policy: Box<dyn Policy>,
    #[state(skip = "read by the test")]
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Policy for Last {
    fn select(
        &mut self,
        ask: &SelectionRequest<'_>,
        view: &ServerView<'_>,
        rng: &mut PolicyRng<'_>,
        selection: &mut Selection,
    ) -> Result<(), Failure> {
        self.policy.select(ask, view, rng, selection)?;
        Ok(())
    }

    fn observe(&mut self, feedback: &Feedback<'_>) -> Result<(), Failure> {
        self.policy.observe(feedback)?;
        *self.taken.lock().unwrap() = State::save(&mut *self.policy).unwrap();
        Ok(())
    }
}

// -------------------------------------------------------------------------------------------------- explained

/// The recorded rounds of the only policy of a scenario.
fn rounds(kind: &str, scenario: &str) -> Vec<Value> {
    let place = Workplace::with(scenario);
    place.run_into("out", &[]);
    let rounds = place.lines(&format!("out/runs/{kind}-s1/rounds.jsonl"));
    assert_eq!(rounds.len(), 8);
    rounds
}

/// The only selection of a round.
fn explained(round: &Value) -> &Value {
    let selections = round["explain"].as_array().unwrap();
    assert_eq!(selections.len(), 1, "{round}");
    &selections[0]
}

fn ids(value: &Value) -> Vec<usize> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("a list: {value}"))
        .iter()
        .map(|id| id.as_u64().unwrap() as usize)
        .collect()
}

/// Numbers, `null` as infinite.
fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap_or(f64::INFINITY)).collect()
}

/// Lists of clients that a policy singles out.
const SOME: [&str; 7] = ["admitted", "active", "uniform", "order", "drawn", "resting", "unknown"];

/// All arrays of a selection, and of the lesson from it, are as long as its list of clients; numbers about something
/// else are in a part of their own, and a list that singles clients out has only clients of that list.
fn assert_whole(object: &Value, context: &str) {
    let clients = ids(&object["clients"]);
    assert!(!clients.is_empty(), "{context}");
    for (key, value) in object.as_object().unwrap() {
        match value {
            // Of clusters, and which of them gave the clients.
            Value::Array(theta) if key == "theta" => {
                let drawn = numbers(&object["drawn"]);
                assert!(drawn.iter().all(|cluster| theta[*cluster as usize].as_f64() > Some(0.0)), "{context}");
            }
            Value::Array(_) if key == "drawn" && object.get("theta").is_some() => {}
            Value::Array(_) if SOME.contains(&&**key) => {
                assert!(ids(value).iter().all(|client| clients.contains(client)), "{context}");
            }
            Value::Array(lists) if key == "distributions" => {
                let is_whole = |list: &Value| list.as_array().is_some_and(|list| list.len() == clients.len());
                assert!(lists.iter().all(is_whole), "{context}: {key}");
            }
            Value::Array(_) if key.starts_with("tier_") => {}
            Value::Array(values) => assert_eq!(values.len(), clients.len(), "{context}: {key}"),
            Value::Object(parts) if key == "number" => {
                assert!(!parts.is_empty() && parts.values().all(Value::is_array), "{context}");
            }
            Value::Object(_) => assert_whole(value, context),
            _ => assert!(value.is_number() || value.is_null(), "{context}: {key}"),
        }
    }
}

#[test]
fn every_policy_explains_its_decisions_and_updates_say_how_they_were_trained() {
    for (kind, scenario) in everything() {
        for round in rounds(kind, &scenario) {
            assert_whole(explained(&round), &scenario);
            let candidates = ids(&explained(&round)["clients"]);
            assert!(ids(&round["selected"]).iter().all(|client| candidates.contains(client)), "{scenario}");
            let updates = round["updates"].as_object().unwrap();
            let keys: Vec<&str> = updates.keys().map(String::as_str).collect();
            assert_eq!(keys, ["clients", "examples", "loss", "loss_rms", "latency_s"], "{scenario}");
            let mut selected = ids(&round["selected"]);
            selected.sort_unstable();
            assert_eq!(ids(&updates["clients"]), selected, "ascending, as they were aggregated");
            assert!(updates.values().all(|values| values.as_array().unwrap().len() == selected.len()), "{scenario}");
            for (loss, loss_rms) in numbers(&updates["loss"]).into_iter().zip(numbers(&updates["loss_rms"])) {
                assert!(loss > 0.0 && loss_rms.is_finite() && loss_rms >= loss * (1.0 - 1e-6), "{loss_rms}, {loss}");
            }
        }
    }
}

/// Latencies of a round's updates, by client: all selected clients arrive.
fn latencies(round: &Value) -> Vec<(usize, f64)> {
    ids(&round["updates"]["clients"]).into_iter().zip(numbers(&round["updates"]["latency_s"])).collect()
}

fn assert_close(found: f64, expected: f64, context: &str) {
    let is_close = found == expected || (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(is_close, "{context}: found {found}, expected {expected}");
}

/// Mean and bonus of an upper confidence bound from all that was seen; infinite where nothing was.
fn bound(seen: &[f64], turn: usize) -> f64 {
    match seen.len() {
        0 => f64::INFINITY,
        count => {
            let mean = seen.iter().sum::<f64>() / count as f64;
            // m + 1 with a cohort of two.
            mean + (3.0 * (turn as f64).ln() / count as f64).sqrt()
        }
    }
}

#[test]
fn bsfl_explains_with_bounds_generalisation_and_bottleneck() {
    let (mut speeds, mut counts) = (vec![Vec::new(); 6], [0_u32; 6]);
    for (round, turn) in rounds("bsfl", &format!("{WORLD}[policy.bsfl]\n")).iter().zip(1..) {
        let explained = explained(round);
        assert_eq!(ids(&explained["clients"]), [0, 1, 2, 3, 4, 5]);
        let selected = ids(&round["selected"]);
        let (ucb, g) = (numbers(&explained["ucb"]), numbers(&explained["g"]));
        for client in 0..6 {
            assert_close(ucb[client], bound(&speeds[client], turn), &format!("ucb of {client} in {turn}"));
            // Equal data: everybody's share of two places is a third.
            let x = 2.0 / 6.0 - f64::from(counts[client]) / turn as f64;
            assert_close(g[client], x.signum() * x.abs().powf(1.2), &format!("g of {client} in {turn}"));
        }
        let slowest = selected.iter().map(|&client| ucb[client]).fold(f64::INFINITY, f64::min);
        assert_close(explained["bottleneck"].as_f64().unwrap_or(f64::INFINITY), slowest, "bottleneck");
        for (client, seconds) in latencies(round) {
            speeds[client].push(0.05 / seconds);
        }
        selected.iter().for_each(|&client| counts[client] += 1);
        let after = &explained["after"];
        for (client, speed) in ids(&after["clients"]).into_iter().zip(numbers(&after["speed"])) {
            let seen = &speeds[client];
            assert_close(speed, seen.iter().sum::<f64>() / seen.len() as f64, "what was learned");
        }
    }
}

#[test]
fn cs_ucb_explains_with_its_index() {
    let mut rewards = vec![Vec::new(); 6];
    for (round, turn) in rounds("cs-ucb", &format!("{WORLD}[policy.cs-ucb]\ntau_max = \"2 s\"\n")).iter().zip(1..) {
        let explained = explained(round);
        for (client, index) in ids(&explained["clients"]).into_iter().zip(numbers(&explained["index"])) {
            assert_close(index, bound(&rewards[client], turn), &format!("index of {client} in {turn}"));
        }
        for (client, seconds) in latencies(round) {
            rewards[client].push((1.0 - seconds / 2.0).max(0.0));
        }
    }
}

/// Fresh losses are mean squared errors of the model before the round; last known ones those of the last update.
#[test]
fn power_of_choice_explains_with_losses() {
    let last_known = format!("{WORLD}[policy.power-of-choice]\nlosses = \"last-known\"\n");
    let mut known = [f64::INFINITY; 6];
    for round in rounds("power-of-choice", &last_known) {
        let explained = explained(&round);
        for (client, loss) in ids(&explained["clients"]).into_iter().zip(numbers(&explained["loss"])) {
            assert_eq!(loss, known[client], "{round}");
        }
        let updates = &round["updates"];
        for (client, loss) in ids(&updates["clients"]).into_iter().zip(numbers(&updates["loss"])) {
            known[client] = loss;
        }
    }
    let fresh = format!("{WORLD}[policy.power-of-choice]\ncandidates = 4\n");
    let world = world(&fresh, 1);
    let played = play(&world, world.policy(&source(&fresh)).unwrap(), 8).unwrap();
    let (task, start) = (labelled(&world), vec![0.0; 11]);
    let (rows, targets) = (task.data.train.features(), task.data.train.values().unwrap());
    let models = [&start].into_iter().chain(&played.seen.models);
    for (round, model) in rounds("power-of-choice", &fresh).iter().zip(models) {
        let explained = explained(round);
        for (client, loss) in ids(&explained["clients"]).into_iter().zip(numbers(&explained["loss"])) {
            let examples = task.partition.client(ClientId::from_index(client));
            let error = |&example: &u32| {
                let row = rows.row(example as usize);
                let product: f64 = row.iter().zip(model).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                (product + f64::from(model[10]) - f64::from(targets[example as usize])).powi(2)
            };
            let expected = examples.iter().map(error).sum::<f64>() / examples.len() as f64;
            assert!((loss - expected).abs() < 1e-4 * expected, "{client}: found {loss}, expected {expected}");
        }
    }
}
