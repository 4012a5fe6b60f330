//! `fedgenie list` and `fedgenie describe`

use super::print;
use fedgenie::error::Error;
use fedgenie::scenario::read::unknown_name;
use fedgenie::{dist, policy, scenario, task};

/// A component that a scenario can name.
struct Component {
    kind: &'static str,
    name: &'static str,
    /// Text whose `//!` lines are the documentation.
    source: &'static str,
}

const KINDS: [&str; 9] = ["policy", "law", "availability", "task", "data", "protocol", "partition", "solver", "meter"];

fn components() -> Vec<Component> {
    let mut components = Vec::new();
    let mut add = |kind, name, source| components.push(Component { kind, name, source });
    policy::CATALOGUE.iter().for_each(|entry| add("policy", entry.name, entry.source));
    dist::CATALOGUE.iter().for_each(|entry| add("law", entry.name, entry.documentation));
    let availability: [(&str, &str); 4] = [
        ("always", include_str!("../population/availability/always.rs")),
        ("on-off", include_str!("../population/availability/on_off.rs")),
        ("diurnal", include_str!("../population/availability/diurnal.rs")),
        ("trace", include_str!("../population/availability/trace.rs")),
    ];
    availability.into_iter().for_each(|(name, source)| add("availability", name, source));
    task::CATALOGUE.iter().for_each(|entry| add("task", entry.name, entry.source));
    let data: [(&str, &str); 6] = [
        ("idx", include_str!("../data/idx.rs")),
        ("cifar10", include_str!("../data/cifar.rs")),
        ("cifar100", include_str!("../data/cifar.rs")),
        ("csv", include_str!("../data/csv.rs")),
        ("npy", include_str!("../data/npy.rs")),
        ("synthetic", include_str!("../data/synthetic_images.rs")),
    ];
    data.into_iter().for_each(|(name, source)| add("data", name, source));
    fedgenie::protocol::NAMES.iter().for_each(|name| add("protocol", name, include_str!("../protocol.rs")));
    let partitions: [(&str, &str); 10] = [
        ("iid", include_str!("../data/partition/iid.rs")),
        ("gamma-sized", include_str!("../data/partition/gamma.rs")),
        ("dirichlet", include_str!("../data/partition/dirichlet.rs")),
        ("dirichlet-two-level", include_str!("../data/partition/two_level.rs")),
        ("label-shards", include_str!("../data/partition/shards.rs")),
        ("zipf-sized", include_str!("../data/partition/zipf.rs")),
        ("user-balance", include_str!("../data/partition/balance.rs")),
        ("by-column", include_str!("../data/partition/groups.rs")),
        ("class-counts", include_str!("../data/partition/counts.rs")),
        ("declared", include_str!("../data/partition.rs")),
    ];
    partitions.into_iter().for_each(|(name, source)| add("partition", name, source));
    let solvers: [(&str, &str); 4] = [
        ("exact", include_str!("../oracle/bottleneck.rs")),
        ("alsa", include_str!("../oracle/annealing.rs")),
        ("sa", include_str!("../oracle/annealing.rs")),
        ("greedy", include_str!("../oracle/greedy.rs")),
    ];
    solvers.into_iter().for_each(|(name, source)| add("solver", name, source));
    let meters = ["mean", "realised", "expected", "expected-exact"];
    meters.into_iter().for_each(|name| add("meter", name, include_str!("../oracle/regret.rs")));
    components
}

/// The `//!` lines at the top of a source file.
fn documentation(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

fn check_kind(kind: &str) -> Result<(), Error> {
    if KINDS.contains(&kind) { Ok(()) } else { Err(Error::Usage(unknown_name("kind", kind, &KINDS))) }
}

pub fn list(kind: Option<&str>) -> Result<u8, Error> {
    kind.map_or(Ok(()), check_kind)?;
    let mut text = String::new();
    for component in components() {
        if kind.is_none_or(|kind| kind == component.kind) {
            let documentation = documentation(component.source);
            let first = documentation.lines().next().unwrap_or_default();
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
    let mut text = format!("{component}\n\n{}", documentation(found.source));
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
    let Some(entry) = dist::CATALOGUE.iter().find(|entry| entry.name == name) else { return String::new() };
    let line = |parameter: &dist::LawParameter| {
        let default = parameter.default.map_or_else(String::new, |default| format!(" (default {default})"));
        format!("  {:<16} {}{default}\n", parameter.name, parameter.documentation)
    };
    entry.parameters.iter().map(line).collect()
}

/// The parameters of a component as its JSON schema lists them.
fn schema_parameters(kind: &str, name: &str) -> String {
    let schema = scenario::schema::schema();
    let definitions = &schema["$defs"];
    let variant_of = |definition: &str| {
        let variants = definitions[definition]["oneOf"].as_array().cloned().unwrap_or_default();
        variants.into_iter().map(|variant| variant["properties"][name].clone()).find(|body| !body.is_null())
    };
    let body = match kind {
        "policy" => Some(schema["properties"]["policy"]["properties"][name].clone()),
        "availability" => variant_of("AvailabilityConfig"),
        "task" => variant_of("TaskConfig"),
        "data" => variant_of("DataSource"),
        "protocol" => variant_of("ProtocolConfig"),
        "partition" => variant_of("PartitionConfig"),
        "solver" => variant_of("SolverConfig"),
        _ => None,
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
        let description = parameter["description"].as_str().unwrap_or_default();
        let default = match &parameter["default"] {
            serde_json::Value::Null => String::new(),
            default => format!(" (default {default})"),
        };
        text.push_str(&format!("  {key:<16} {description}{default}\n"));
    }
    text
}
