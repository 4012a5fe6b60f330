//! Scenarios: as text, and made of keys and values that the catalogue knows.

use super::{assert_told, files};
use fedgenie::experiment::Experiment;
use fedgenie::recorder::NoSink;
use fedgenie::run::{Evaluations, Run, RunError, RunSettings};
use fedgenie::scenario::{schema, tree};
use fedgenie::task::DataCache;
use serde_json::{Map, Value, json};
use std::cell::OnceCell;
use std::path::Path;

const LATENCY: &str = "[population.latency]\ndownload = { constant = \"1 s\" }\n\
                       compute = { exponential = { mean = { uniform = [\"1 s\", \"9 s\"] } } }\nupload = { constant = \"1 s\" }\n";

/// The scenario of five clients with a task.
pub fn text(task: &str, latency: Option<&str>) -> String {
    format!(
        "name = \"fuzz\"\nseeds = 1\n[stop]\nrounds = 2\n[population]\nclients = 5\n{}\n[protocol.synchronous]\ncohort = 2\n\
         {task}\n[policy.random]\n",
        latency.unwrap_or(LATENCY)
    )
}

/// Reads a scenario, and plays rounds of its first run.
pub fn play(text: &str, rounds: u32) -> Result<(), String> {
    let root = tree::parse(Path::new("scenario.toml"), text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    let experiment = Experiment::from_tree(&root, &files::folder(), None).map_err(|error| error.to_string())?;
    play_first(&experiment, rounds)
}

/// Plays rounds of the first run. The run's own checks are the rules that a world must not break.
fn play_first(experiment: &Experiment, rounds: u32) -> Result<(), String> {
    let (id, cache) = (&experiment.runs()[0], DataCache::default());
    let world = experiment.world_of(id, &cache).map_err(|error| error.to_string())?;
    let arm = &experiment.first().arms[id.arm];
    let policies = world.policies(&arm.source());
    let policies = policies.map_err(|error| experiment.first().explain_policy(&arm.label, error).to_string())?;
    let settings = RunSettings { evaluate: Evaluations::every(1), record_every: 1, ..RunSettings::default() };
    let mut run = Run::new(&world, &arm.label, policies, settings, NoSink);
    for _ in 0..rounds {
        match run.step() {
            Ok(()) => {}
            Err(error @ (RunError::Violated { .. } | RunError::BadSelection { .. })) => panic!("{error}"),
            // It is told with the run's name, and with that of the scenario.
            Err(error) => return Err(format!("scenario.toml: {error}")),
        }
    }
    run.finish().map_err(|error| format!("scenario.toml: {error}"))?;
    Ok(())
}

/// Reads a scenario's text. What is taken is written out, and taken again as the same.
fn read(name: &str, input: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(input).map_err(|error| error.to_string())?;
    let told = |message: String| {
        assert_told(&message, &[name]);
        Err(message)
    };
    let root = match tree::parse(Path::new(name), text) {
        Ok(root) => root,
        Err(error) => return told(fedgenie::scenario::ScenarioError::from(error).to_string()),
    };
    let experiment = match Experiment::from_tree(&root, &files::folder(), None) {
        Ok(experiment) => experiment,
        Err(error) => return told(error.to_string()),
    };
    let again = tree::parse(Path::new("scenario.toml"), &experiment.resolved)
        .unwrap_or_else(|error| panic!("{error:?}\n{}", experiment.resolved));
    let again = Experiment::from_tree(&again, &files::folder(), None);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", experiment.resolved));
    assert_eq!(again.resolved, experiment.resolved);
    let resolved: toml::Value = experiment.resolved.parse().map(toml::Value::Table).unwrap();
    if is_small(&resolved) {
        play_first(&experiment, 2).inspect_err(|message| assert_told(message, &[name, "scenario.toml"]))?;
    }
    Ok(())
}

/// Whether a world is built in an instant. Convolutions are not, and a large number may be one of layers or examples.
fn is_small(value: &toml::Value) -> bool {
    match value {
        toml::Value::Integer(number) => *number <= 64,
        toml::Value::Array(values) => values.len() <= 64 && values.iter().all(is_small),
        toml::Value::Table(table) => {
            let is_slow = |key: &String| ["simple-cnn", "lenet5", "resnet18"].contains(&key.as_str());
            !table.keys().any(is_slow) && table.values().all(is_small)
        }
        toml::Value::String(text) => !["simple-cnn", "lenet5", "resnet18"].contains(&text.as_str()),
        _ => true,
    }
}

/// Scenarios to begin with: what tests and gallery have, small.
const GOOD: [&str; 5] = [
    r#"name = "bandit"
title = "Two policies"
seeds = [1, 7]
stop = { rounds = 3, virtual_time = "2 h", traffic = "1 GB" }
[population]
clients = 6
data_size = { uniform = [10, 40] }
data_quality = 0.5
[population.latency]
download = { constant = "10 ms" }
compute = { mixture = [{ weight = 0.5, exponential = { mean = "1 s", shift = "0.1 s" } }, { weight = 0.5, uniform = ["1 s", "2 s"] }] }
upload = { lognormal = { median = "20 ms", sigma = 0.5 } }
[[population.group]]
name = "fast"
count = 2
[[population.group]]
name = "slow"
count = 4
[task.none]
payload = "1 kB"
[protocol.over-selection]
ask = 3
take = 2
late = { carry = {} }
[record]
every = 2
[policy.random]
[policy.bsfl]
alpha = 3.0
beta = 1.2
tau_min = "50 ms"
[sweep]
"policy.bsfl.alpha" = [1.0, 3.0]
"#,
    r#"name = "learning"
seeds = 1
[stop]
rounds = 4
[stop.target]
metric = "test_loss"
at_most = 0.1
[population]
clients = 5
[population.device]
samples_per_second = { lognormal = { median = 10, sigma = 0.3 } }
downlink = "1 Mbit/s"
uplink = "500 kbit/s"
[population.dropout]
compute = "0.001 /s"
[population.availability]
on-off = { on = { exponential = { mean = "1 h" } }, off = { constant = "10 s" } }
[task.softmax-regression]
data = { synthetic = { classes = 3, height = 4, width = 4, train = 60, test = 30, noise = 0.1 } }
partition = { dirichlet = { alpha = 0.5 } }
[training]
epochs = 1
batch = 4
optimizer = { adam = { lr = 0.01, weight_decay = 0.1 } }
schedule = { step = { factor = 0.5, every = 2 } }
[aggregation]
server = { momentum = { lr = 1.0, momentum = 0.5 } }
[evaluate]
every = 2
targets = [{ metric = "test_loss", at_most = 0.5 }]
[protocol.deadline]
cohort = 3
deadline = "30 s"
late = { carry = {} }
[policy.power-of-choice]
[policy.cs-ucb-q]
"#,
    r#"name = "tiers"
seeds = 1
stop = { rounds = 2 }
[population]
clients = 9
[population.latency]
download = { constant = "0.1 s" }
compute = { gamma = { shape = 2.0, scale = { uniform = ["0.2 s", "2 s"] } } }
upload = { weibull = { shape = 1.5, scale = "0.1 s" } }
[protocol.hierarchical]
edges = 3
cohort = 2
edge_rounds = 2
[clusters]
count = 2
initial = "round-robin"
assign = { random = { every = 2 } }
[task.linear-regression]
examples = 60
features = 4
[training]
batch = 8
optimizer = { sgd = { lr = 0.05, momentum = 0.5 } }
[policy.random]
with = { "training.optimizer" = { sgd = { lr = 0.1 } } }
"#,
    r#"name = "regret"
seeds = 2
stop = { rounds = 2 }
[population]
clients = 4
[population.latency]
download = { constant = "0.1 s" }
compute = { pareto = { minimum = "1 s", shape = 3.0 } }
upload = { truncated-normal = { mean = "1 s", sd = "0.2 s", min = "0.5 s", max = "2 s" } }
[protocol.synchronous]
cohort = 2
timeout = "1 h"
[regret]
tau_min = "50 ms"
alpha = 0.5
beta = 1.2
meters = ["mean", "realised", "expected"]
[policy.genie]
[policy.bsfl]
[policy.a]
kind = "cs-ucb"
"#,
    r#"name = "ratings"
seeds = 1
stop = { rounds = 2 }
population.latency = { download = { constant = "1 s" }, compute = { constant = "1 s" }, upload = { constant = "1 s" } }
protocol.buffered = { concurrency = 3, buffer = 2 }
training = { batch = 4, optimizer = { adam = { lr = 0.05 } } }
[task.recommendation]
data = { synthetic = { users = 12, items = 20, ratings = 60 } }
cutoffs = [5, 10]
transfer = { down = "rows", up = "rows" }
model = { mf = { dimensions = 4 } }
[policy.random]
"#,
];

/// A good scenario as JSON.
fn as_json(text: &str) -> Value {
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

macro_rules! kinds {
    ($($name:ident: $corpus:expr, $run:expr;)+) => {
        $(pub mod $name {
            pub fn corpus() -> Vec<Vec<u8>> {
                let corpus: fn() -> Vec<Vec<u8>> = $corpus;
                corpus()
            }
            pub fn run(input: &[u8]) -> Result<(), String> {
                let run: fn(&[u8]) -> Result<(), String> = $run;
                run(input)
            }
        })+
    };
}
kinds! {
    scenario_toml: || super::GOOD.iter().map(|text| text.as_bytes().to_vec()).collect(),
        |input| super::read("scenario.toml", input);
    scenario_json: || super::GOOD.iter().map(|text| super::as_json(text).to_string().into_bytes()).collect(),
        |input| super::read("scenario.json", input);
    // Every byte is a choice.
    scenario_structured: || {
            let bytes = |factor: u8| (0..200_u8).map(|byte| byte.wrapping_mul(factor)).collect();
            [31, 33, 35, 37, 39, 41, 43, 45].into_iter().map(bytes).collect()
        },
        |input| {
            let mut bytes = input.iter();
            let scenario = super::composed(&mut |below| usize::from(*bytes.next().unwrap_or(&0)) % below);
            super::read("scenario.json", scenario.as_bytes())
        };
}

thread_local! {
    static SCHEMA: OnceCell<Value> = const { OnceCell::new() };
}

/// A scenario in which a few values are others, as the schema of scenarios has them, or nearly: as JSON. `choose` gives
/// numbers below the one that it is given.
pub fn composed(choose: &mut dyn FnMut(usize) -> usize) -> String {
    let schema = SCHEMA.with(|schema| schema.get_or_init(schema::schema).clone());
    let mut composer = Composer { schema: &schema, choose };
    let mut scenario = as_json(GOOD[composer.below(GOOD.len())]);
    for _ in 0..=composer.below(4) {
        composer.edit(&mut scenario, &schema, 0);
    }
    scenario.to_string()
}

const NUMBERS: [f64; 16] = [
    0.0,
    1.0,
    2.0,
    3.0,
    5.0,
    0.5,
    -1.0,
    1e-9,
    10.0,
    1e30,
    1e308,
    -0.0,
    64.0,
    9_223_372_036_854_775_808.0,
    1e-308,
    65_536.0,
];

const TEXTS: [&str; 18] = [
    "1 s",
    "0 s",
    "2 ms",
    "1 kB",
    "0 B",
    "1 Mbit/s",
    "0.1 /s",
    "x",
    "",
    "1e30 s",
    "-1 s",
    "100 d",
    "1 ns",
    "random",
    "test_loss",
    "0 bit/s",
    "\u{202e}",
    "../x",
];

struct Composer<'a> {
    schema: &'a Value,
    choose: &'a mut dyn FnMut(usize) -> usize,
}

impl<'a> Composer<'a> {
    fn below(&mut self, count: usize) -> usize {
        (self.choose)(count)
    }

    fn one<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[self.below(of.len())]
    }

    /// What a schema allows: itself, or what it refers to.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![schema];
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            found.extend(self.alternatives(&self.schema["$defs"][name]));
        }
        for key in ["oneOf", "anyOf"] {
            for one in schema[key].as_array().into_iter().flatten() {
                found.extend(self.alternatives(one));
            }
        }
        found
    }

    /// Changes something in a value.
    fn edit(&mut self, value: &mut Value, schema: &'a Value, depth: usize) {
        let alternatives = self.alternatives(schema);
        let knows = |value: &Value, one: &&&'a Value| {
            let properties = one["properties"].as_object();
            properties
                .is_some_and(|properties| value.as_object().unwrap().keys().any(|key| properties.contains_key(key)))
        };
        let known = value.as_object().and_then(|_| alternatives.iter().find(|one| knows(value, one)));
        let Some(properties) = known.and_then(|one| one["properties"].as_object()) else {
            *value = self.value(schema, depth);
            return;
        };
        if depth > 0 && self.below(4) == 0 {
            *value = self.value(schema, depth);
            return;
        }
        let keys: Vec<&String> = properties.keys().collect();
        let key = *self.one(&keys);
        match value.get_mut(key) {
            Some(_) if self.below(8) == 0 => drop(value.as_object_mut().unwrap().remove(key)),
            Some(inner) => self.edit(inner, &properties[key], depth + 1),
            None => value[key] = self.value(&properties[key], depth + 1),
        }
    }

    /// A value that a schema allows, but for numbers and texts, which may be any.
    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        if depth > 8 {
            return Value::Null;
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.one(values).clone();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            return self.value(&self.schema["$defs"][name], depth + 1);
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(alternatives) = schema[key].as_array() {
                let one = self.below(alternatives.len());
                return self.value(&alternatives[one], depth + 1);
            }
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => vec!["string", "number", "boolean", "object"],
        };
        match *self.one(&types) {
            "object" => self.table(schema, depth),
            "array" => self.list(schema, depth),
            "boolean" => json!(self.below(2) == 0),
            "integer" => json!(*self.one(&[0, 1, 2, 3, 5, 8, -1, 64, 1_000_000, i64::MAX])),
            "number" => json!(*self.one(&NUMBERS)),
            "null" => Value::Null,
            _ => json!(*self.one(&TEXTS)),
        }
    }

    fn table(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut table = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
            if required.contains(&key.as_str()) || self.below(4) == 0 {
                table.insert(key.clone(), self.value(inner, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() && self.below(2) == 0 {
            let key = *self.one(&["a", "b", "test_loss", "policy.random", "stop.rounds"]);
            table.insert(key.to_owned(), self.value(&schema["additionalProperties"], depth + 1));
        }
        Value::Object(table)
    }

    fn list(&mut self, schema: &'a Value, depth: usize) -> Value {
        let first = schema["prefixItems"].as_array().into_iter().flatten();
        let mut list: Vec<Value> = first.map(|inner| self.value(inner, depth + 1)).collect();
        if schema["items"].is_object() {
            for _ in 0..self.below(4) {
                list.push(self.value(&schema["items"], depth + 1));
            }
        }
        Value::Array(list)
    }
}
