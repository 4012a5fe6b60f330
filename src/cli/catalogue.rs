//! `fedgenie list` and `fedgenie describe`

use super::print;
use fedgenie::error::Error;
use fedgenie::scenario::read::unknown_name;
use fedgenie::{law, policy, scenario, task};

/// A component that a scenario can name.
struct Component {
    kind: &'static str,
    name: &'static str,
    /// Text whose `//!` lines are the documentation.
    source: &'static str,
}

const KINDS: [&str; 15] = [
    "policy",
    "law",
    "availability",
    "task",
    "data",
    "protocol",
    "partition",
    "solver",
    "meter",
    "utility",
    "model",
    "optimizer",
    "schedule",
    "server",
    "section",
];

/// What the schema calls the kinds of a kind's choices.
const DEFINITIONS: [(&str, &str); 12] = [
    ("availability", "AvailabilityConfig"),
    ("task", "TaskConfig"),
    ("data", "DataSource"),
    ("protocol", "ProtocolConfig"),
    ("partition", "PartitionConfig"),
    ("solver", "SolverConfig"),
    ("meter", "Meter"),
    ("utility", "UtilityConfig"),
    ("model", "Family"),
    ("optimizer", "OptimizerConfig"),
    ("schedule", "Schedule"),
    ("server", "ServerConfig"),
];

/// Sections of a scenario and what the schema calls them.
const SECTIONS: [(&str, &str); 9] = [
    ("stop", "StopConfig"),
    ("population", "PopulationConfig"),
    ("population.latency", "LatencyConfig"),
    ("population.dropout", "DropoutConfig"),
    ("training", "TrainingConfig"),
    ("aggregation", "AggregationConfig"),
    ("evaluate", "EvaluateConfig"),
    ("regret", "RegretConfig"),
    ("record", "RecordConfig"),
];

fn components() -> Vec<Component> {
    let mut components = Vec::new();
    let mut add = |kind, name, source| components.push(Component { kind, name, source });
    policy::CATALOGUE.iter().for_each(|entry| add("policy", entry.name, entry.source));
    law::CATALOGUE.iter().for_each(|entry| add("law", entry.name, entry.documentation));
    let availability: [(&str, &str); 4] = [
        ("always", include_str!("../../crates/simulator/src/population/availability/always.rs")),
        ("on-off", include_str!("../../crates/simulator/src/population/availability/on_off.rs")),
        ("diurnal", include_str!("../../crates/simulator/src/population/availability/diurnal.rs")),
        ("trace", include_str!("../../crates/simulator/src/population/availability/trace.rs")),
    ];
    availability.into_iter().for_each(|(name, source)| add("availability", name, source));
    task::CATALOGUE.iter().for_each(|entry| add("task", entry.name, entry.source));
    let data: [(&str, &str); 6] = [
        ("idx", include_str!("../../crates/learning/src/data/idx.rs")),
        ("cifar10", include_str!("../../crates/learning/src/data/cifar.rs")),
        ("cifar100", include_str!("../../crates/learning/src/data/cifar.rs")),
        ("csv", include_str!("../../crates/learning/src/data/csv.rs")),
        ("npy", include_str!("../../crates/learning/src/data/npy.rs")),
        ("synthetic", include_str!("../../crates/learning/src/data/synthetic_images.rs")),
    ];
    data.into_iter().for_each(|(name, source)| add("data", name, source));
    for name in fedgenie::protocol::NAMES {
        let source = match name {
            "buffered" => include_str!("../../crates/simulator/src/protocol/buffered.rs"),
            "hierarchical" => include_str!("../../crates/simulator/src/protocol/hierarchical.rs"),
            _ => include_str!("../../crates/simulator/src/protocol/rounds.rs"),
        };
        add("protocol", name, source);
    }
    let partitions: [(&str, &str); 10] = [
        ("iid", include_str!("../../crates/learning/src/data/partition/iid.rs")),
        ("gamma-sized", include_str!("../../crates/learning/src/data/partition/gamma.rs")),
        ("dirichlet", include_str!("../../crates/learning/src/data/partition/dirichlet.rs")),
        ("dirichlet-two-level", include_str!("../../crates/learning/src/data/partition/two_level.rs")),
        ("label-shards", include_str!("../../crates/learning/src/data/partition/shards.rs")),
        ("zipf-sized", include_str!("../../crates/learning/src/data/partition/zipf.rs")),
        ("user-balance", include_str!("../../crates/learning/src/data/partition/balance.rs")),
        ("by-column", include_str!("../../crates/learning/src/data/partition/groups.rs")),
        ("class-counts", include_str!("../../crates/learning/src/data/partition/counts.rs")),
        ("declared", DECLARED),
    ];
    partitions.into_iter().for_each(|(name, source)| add("partition", name, source));
    let solvers: [(&str, &str); 4] = [
        ("exact", include_str!("../../crates/core/src/oracle/bottleneck.rs")),
        ("alsa", include_str!("../../crates/core/src/oracle/annealing.rs")),
        ("sa", include_str!("../../crates/core/src/oracle/annealing.rs")),
        ("greedy", include_str!("../../crates/core/src/oracle/greedy.rs")),
    ];
    solvers.into_iter().for_each(|(name, source)| add("solver", name, source));
    let meters = ["mean", "realised", "expected", "expected-exact"];
    meters.into_iter().for_each(|name| add("meter", name, include_str!("../../crates/core/src/oracle/regret.rs")));
    let hindsight = include_str!("../../crates/core/src/oracle/hindsight.rs");
    add("meter", "counterfactual", hindsight);
    add("utility", "loss-drop", include_str!("../../crates/core/src/oracle/utility/loss_drop.rs"));
    add("utility", "contribution", include_str!("../../crates/core/src/oracle/utility/contribution.rs"));
    let families = include_str!("../../crates/learning/src/model/families.rs");
    ["mlp", "lenet5", "simple-cnn", "resnet18"].into_iter().for_each(|name| add("model", name, families));
    let optimizer = include_str!("../../crates/learning/src/trainer/optimizer.rs");
    ["sgd", "adam", "adamw"].into_iter().for_each(|name| add("optimizer", name, optimizer));
    let schedule = include_str!("../../crates/learning/src/trainer/schedule.rs");
    let schedules = ["constant", "exponential", "step", "cosine", "linear"];
    schedules.into_iter().for_each(|name| add("schedule", name, schedule));
    let server = include_str!("../../crates/learning/src/aggregate/server.rs");
    ["average", "momentum", "adam", "yogi", "adagrad"].into_iter().for_each(|name| add("server", name, server));
    SECTIONS.into_iter().for_each(|(name, _)| add("section", name, ""));
    components
}

const DECLARED: &str = "//! Clients get as many examples as the population declares for them.
//!
//! # Definition
//! Client `k` gets the next `data_size` examples of all in random order; what is left belongs to nobody. The sizes may not add up to
//! more than there are.
//!
//! # Inputs
//! `data_size` of `[population]` or of its groups.
//!
//! # Determinism
//! Stream (Partition, 0, 0) puts the examples in a random order.
";

/// The `//!` lines at the top of a source file, without what only a reader of Rust can use.
fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut text = String::new();
    let (mut is_rust, mut was_rust) = (false, false);
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        if line == "```" && (is_rust || !text_is_open(&text)) {
            is_rust = !is_rust;
            was_rust = true;
        } else if !is_rust {
            text.push_str(&without_links(line));
            text.push('\n');
        }
    }
    let text = text.trim_end();
    let text = if was_rust { text.strip_suffix("# Example").unwrap_or(text).trim_end() } else { text };
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

/// Whether a block of TOML or text has begun and not ended.
fn text_is_open(text: &str) -> bool {
    text.lines().filter(|line| line.starts_with("```")).count() % 2 == 1
}

/// Links into the source become plain names.
fn without_links(line: &str) -> String {
    let mut parts = line.split("[`");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("`]") {
            Some((name, rest)) => {
                let plain = name.rsplit("::").next().unwrap_or(name);
                // `[name](target)`: the target is for readers of the source.
                let rest = rest.strip_prefix('(').and_then(|link| link.split_once(')')).map_or(rest, |(_, rest)| rest);
                text.push_str(&format!("`{plain}`{rest}"));
            }
            None => text.push_str(&format!("[`{part}")),
        }
    }
    text
}

/// What the schema says of one choice of a kind, or of a section.
fn described(schema: &serde_json::Value, kind: &str, name: &str) -> Option<String> {
    let definitions = &schema["$defs"];
    let definition = |names: &[(&str, &'static str)], wanted: &str| {
        names.iter().find(|(known, _)| *known == wanted).map(|(_, definition)| &definitions[*definition])
    };
    let found = match kind {
        "section" if schema["properties"][name]["description"].is_string() => &schema["properties"][name],
        "section" => definition(&SECTIONS, name)?,
        "task" | "data" => return None,
        "partition" if name != "declared" => return None,
        "solver" if name == "exact" || name == "greedy" => return None,
        _ => definition(&DEFINITIONS, kind)?["oneOf"].as_array()?.iter().find(|variant| {
            variant["const"] == name || variant["type"] != "string" && !variant["properties"][name].is_null()
        })?,
    };
    Some(without_links(&found["description"].as_str()?.replace('\n', " ")))
}

/// How a scenario names it, where the documentation has no example.
fn example(kind: &str, name: &str) -> Option<&'static str> {
    Some(match (kind, name) {
        ("law", "constant") => "latency.compute = { constant = \"250 ms\" }",
        ("law", "uniform") => "latency.compute = { uniform = [\"0.1 s\", \"0.3 s\"] }",
        ("law", "exponential") => "latency.compute = { exponential = { mean = \"0.8 s\", shift = \"0.2 s\" } }",
        ("law", "truncated-normal") => {
            "latency.compute = { truncated-normal = { mean = \"0.5 s\", sd = \"0.2 s\", min = \"0.1 s\", max = \"2 s\" } }"
        }
        ("law", "lognormal") => "latency.compute = { lognormal = { median = \"0.3 s\", sigma = 0.5 } }",
        ("law", "gamma") => "latency.compute = { gamma = { shape = 2.0, scale = \"0.1 s\" } }",
        ("law", "weibull") => "latency.compute = { weibull = { shape = 1.5, scale = \"0.3 s\" } }",
        ("law", "pareto") => "latency.compute = { pareto = { shape = 2.5, minimum = \"0.1 s\" } }",
        ("law", "mixture") => {
            "latency.compute = { mixture = [{ weight = 3, constant = \"20 ms\" }, { weight = 1, exponential = { mean = \"1 s\" } }] }"
        }
        ("law", "empirical") => "latency.compute = { empirical = { file = \"trace.csv\" } }",
        ("solver", "exact") => "[policy.bsfl]\nsolver = \"exact\"",
        ("solver", "alsa") => "[policy.bsfl]\nsolver = { alsa = { steps = 1000 } }",
        ("solver", "sa") => "[policy.bsfl]\nsolver = { sa = { steps = 1000 } }",
        ("solver", "greedy") => "[policy.bsfl]\nsolver = \"greedy\"",
        ("meter", "counterfactual") => return None,
        ("meter", _) => "[regret]\ntau_min = \"50 ms\"\nmeters = [\"mean\", \"realised\"]",
        ("model", "mlp") => "[task.classification]\nmodel = { mlp = { hidden = [200, 200] } }",
        ("model", "lenet5") => "[task.classification]\nmodel = { lenet5 = { width = 2 } }",
        ("model", "simple-cnn") => "[task.classification]\nmodel = \"simple-cnn\"",
        ("model", "resnet18") => "[task.classification]\nmodel = \"resnet18\"",
        ("optimizer", "sgd") => "[training]\noptimizer = { sgd = { lr = 0.01, momentum = 0.9 } }",
        ("optimizer", "adam") => "[training]\noptimizer = { adam = { lr = 0.001 } }",
        ("optimizer", "adamw") => "[training]\noptimizer = { adamw = { lr = 0.001 } }",
        ("server", "average") => "[aggregation]\nserver = \"average\"",
        _ => return None,
    })
}

fn check_kind(kind: &str) -> Result<(), Error> {
    if KINDS.contains(&kind) { Ok(()) } else { Err(Error::Usage(unknown_name("kind", kind, &KINDS))) }
}

pub fn list(kind: Option<&str>) -> Result<u8, Error> {
    kind.map_or(Ok(()), check_kind)?;
    let schema = scenario::schema::schema();
    let mut text = String::new();
    for component in components() {
        if kind.is_none_or(|kind| kind == component.kind) {
            let documentation = documentation(component.source);
            let own = described(&schema, component.kind, component.name);
            let first = own.as_deref().or(documentation.lines().next()).unwrap_or_default();
            let name = format!("{}/{}", component.kind, component.name);
            text.push_str(&format!("{name:<28} {first}\n"));
        }
    }
    print(&text)?;
    Ok(0)
}

pub fn describe(component: &str) -> Result<u8, Error> {
    let Some((kind, name)) = component.split_once('/') else {
        return Err(Error::Usage(format!("found {component:?}; expected KIND/NAME, such as policy/bsfl")));
    };
    check_kind(kind)?;
    let components = components();
    let Some(found) = components.iter().find(|known| known.kind == kind && known.name == name) else {
        let names: Vec<&str> = components.iter().filter(|known| known.kind == kind).map(|known| known.name).collect();
        return Err(Error::Usage(unknown_name(kind, name, &names)));
    };
    let mut text = format!("{component}\n\n");
    let documentation = documentation(found.source);
    if let Some(own) = described(&scenario::schema::schema(), kind, name).filter(|own| !documentation.starts_with(own))
    {
        text.push_str(&format!("{own}\n"));
        if !documentation.is_empty() {
            text.push('\n');
        }
    }
    text.push_str(&documentation);
    if let Some(example) = example(kind, name) {
        text.push_str(&format!("\n# Example\n```toml\n{example}\n```\n"));
    }
    let parameters = match kind {
        "law" => law_parameters(name),
        _ => schema_parameters(kind, name),
    };
    if !parameters.is_empty() {
        text.push_str("\n# Parameters\n");
        text.push_str(&parameters);
    }
    print(&text)?;
    Ok(0)
}

fn law_parameters(name: &str) -> String {
    let Some(entry) = law::CATALOGUE.iter().find(|entry| entry.name == name) else { return String::new() };
    let line = |parameter: &law::LawParameter| {
        let default = parameter.default.map_or_else(String::new, |default| format!(" (default {default})"));
        format!("  {:<16} {}{default}\n", parameter.name, parameter.documentation)
    };
    entry.parameters().iter().map(line).collect()
}

/// The parameters of a component as its JSON schema lists them.
fn schema_parameters(kind: &str, name: &str) -> String {
    let schema = scenario::schema::schema();
    let definitions = &schema["$defs"];
    let named = |names: &[(&str, &'static str)], wanted: &str| {
        names.iter().find(|(known, _)| *known == wanted).map(|(_, definition)| definitions[*definition].clone())
    };
    let body = match kind {
        "policy" => Some(schema["properties"]["policy"]["properties"][name].clone()),
        "section" => named(&SECTIONS, name),
        _ => named(&DEFINITIONS, kind).and_then(|choices| {
            let variants = choices["oneOf"].as_array().cloned().unwrap_or_default();
            variants.into_iter().map(|variant| variant["properties"][name].clone()).find(|body| !body.is_null())
        }),
    };
    let Some(mut body) = body else { return String::new() };
    if let Some(reference) = body["$ref"].as_str() {
        body = definitions[reference.rsplit('/').next().unwrap_or_default()].clone();
    }
    let mut text = String::new();
    for (key, parameter) in body["properties"].as_object().into_iter().flatten() {
        if key == "kind" {
            continue;
        }
        let description = parameter["description"].as_str().unwrap_or_default().replace('\n', " ");
        let default = match &parameter["default"] {
            serde_json::Value::Null => String::new(),
            default => format!(" (default {default})"),
        };
        text.push_str(&format!("  {key:<16} {description}{default}\n"));
    }
    text
}
