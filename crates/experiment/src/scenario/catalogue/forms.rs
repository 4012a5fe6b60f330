//! Forms of values, and the sections with readers of their own: `describe value/table`, `section/sweep`.
//!
//! Each definition of the JSON schema is described once: as a component, as a section, beside the key that it belongs
//! to where it is one of some names, or as a form of values here.

use super::{Component, KINDS, Parameter, Schema, description, name_of, plain_names};
use fedgenie_core::catalogue::{documentation, first_paragraph};
use fedgenie_core::units::{BitsPerSecond, Bytes, Joules, PerSecond, Quantity, Seconds, Watts};
use fedgenie_simulator::population;
use serde_json::Value;
use std::collections::BTreeSet;

/// Names of forms whose definitions have other names; an empty name marks the same form in other units.
const NAMES: [(&str, &str); 12] = [
    ("PlainParameter", "number"),
    ("RateParameter", ""),
    ("TimeParameter", ""),
    ("EnergyParameter", ""),
    ("PowerParameter", ""),
    ("TimeLaw", "law"),
    ("FactorLaw", ""),
    ("TableConfig", "table"),
    ("LinkParameter", "link"),
    ("TraceLinkConfig", "link-trace"),
    ("RecordedConfig", "recorded"),
    ("LinkConfig", "edge-link"),
];

const SWEEP: &str = "\
A grid over any path: every combination of the values is a point, at which all policies run with all seeds.

# Definition
The points are the product of the lists. At a point the scenario is the one that is written, with the point's value in
the place of what stands at each path; all points of a seed share its random numbers.

# Inputs
Each key is a path in quotes, each value a list of what takes its place: numbers, texts or whole tables. `name`,
`seeds` and `record` cannot be swept.

# Example
```toml
[sweep]
\"protocol.deadline.deadline\" = [\"16 s\", \"20 s\"]
\"policy.bsfl.alpha\" = [1.0, 3.0]
```
";

const POLICY: &str = "\
A policy under a label: `[policy.LABEL]`.

# Definition
Each policy plays a run of its own for each seed, in the same world as the others: same clients, data, latencies.
`cohort` is the most clients that it may choose at once. `with` are paths of the scenario and the values that they have
for this policy alone.

# Inputs
The label is the policy's kind, or a name of one's own beside `kind`. The other keys are the kind's parameters: see
`describe policy/NAME`.

# Example
```toml
[policy.random]
[policy.bold]
kind = \"bsfl\"
alpha = 9.0
```
";

const METRICS: &str = "\
The name of something that is measured: in `[evaluate]` and `[stop]`, in tables and results.

# Definition
A task says what it measures, of what `fedgenie list metric` has. The name stands behind the part of the data:
`test_loss`, `test_accuracy`, and `valid_loss` where there are data for validation; of the model alone without one. With
`clients = true` in `[evaluate]` each measure has `client_M_mean`, `client_M_sd`, `client_M_p10`, `client_M_min` and
`client_M_max` over clients as well, with edge servers `server_M_mean` and so on, and with `edges = true`
`edge_M_mean` and so on. A name that does not exist is refused with all that do.

# Example
```toml
[evaluate]
targets = [{ metric = \"test_accuracy\", at_least = 0.8 }]
```
";

const LAW: &str = "\
A probability distribution of durations, or of factors without a unit: one key, the name of a law, with its parameters.

# Definition
Each phase of a job draws a value from the law of its client; the draw belongs to seed, purpose, client and job. A
duration is rounded to the nearest nanosecond.

# Inputs
Each parameter is a number that may differ from client to client: see `describe value/number`. `fedgenie list law` has
the laws, `describe law/NAME` their parameters.

# Example
```toml
compute = { lognormal = { median = { uniform = [\"0.1 s\", \"1 s\"] }, sigma = 0.3 } }
```
";

/// Documentation of a component of the schema; empty where its keys suffice.
pub(super) fn documentation_of(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    if name == "TimeLaw" {
        return LAW.to_owned();
    }
    let known = population::DOCUMENTED.iter().find(|(definition, _)| *definition == name);
    known.map_or_else(String::new, |(_, source)| documentation(source))
}

fn written(kind: &'static str, name: &str, documentation: String, parameters: Vec<Parameter>) -> Component {
    Component { kind, name: name.to_owned(), summary: first_paragraph(&documentation), documentation, parameters }
}

/// The sections with readers of their own.
pub(super) fn sections(schema: &Schema) -> Vec<Component> {
    let labelled = &schema.0["properties"]["policy"]["additionalProperties"]["oneOf"][0]["properties"];
    let of_all = ["kind", "cohort", "with"].map(|key| Parameter {
        key: key.to_owned(),
        description: match key {
            "kind" => "The policy's kind, where the label is none.".to_owned(),
            _ => description(&labelled[key]),
        },
        default: None,
    });
    vec![
        written("section", "policy", POLICY.to_owned(), of_all.to_vec()),
        written("section", "sweep", SWEEP.to_owned(), Vec::new()),
    ]
}

fn units<Q: Quantity>() -> String {
    format!("- {}\n", Q::EXPECTED)
}

/// The forms of values.
pub(super) fn values(schema: &Schema) -> Vec<Component> {
    let described = described(schema);
    let definitions = schema.0["$defs"].as_object().into_iter().flatten();
    let forms = definitions.filter(|(definition, form)| {
        let is_same = NAMES.iter().any(|(known, name)| known == definition && name.is_empty());
        !is_same && !described.contains(definition.as_str()) && plain_names(form).is_none()
    });
    let mut found: Vec<Component> = forms
        .map(|(definition, form)| {
            let documentation = documentation_of(definition);
            let summary = match first_paragraph(&documentation) {
                paragraph if paragraph.is_empty() => description(form),
                paragraph => paragraph,
            };
            let variants = form["oneOf"].as_array().into_iter().flatten();
            let variants = variants.filter_map(|variant| {
                Some(Parameter { key: name_of(variant)?.to_owned(), description: description(variant), default: None })
            });
            let parameters = schema.parameters(form).into_iter().chain(variants).collect();
            Component { kind: "value", name: name_of_form(definition), summary, documentation, parameters }
        })
        .collect();
    let quantities = "A quantity: a number and a unit, in quotes.\n\n# Definition\n".to_owned()
        + &units::<Seconds>()
        + &units::<BitsPerSecond>()
        + &units::<Bytes>()
        + &units::<PerSecond>()
        + &units::<Joules>()
        + &units::<Watts>();
    found.push(written("value", "units", quantities, Vec::new()));
    found.push(written("value", "metrics", METRICS.to_owned(), Vec::new()));
    found
}

/// `TableFormat` as `table-format`; `Config` at the end says nothing.
fn name_of_form(definition: &str) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(known, _)| *known == definition) {
        return (*name).to_owned();
    }
    let mut name = String::new();
    for letter in definition.strip_suffix("Config").unwrap_or(definition).chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Definitions that are described as components of a kind, as their parameters, or as sections.
fn described(schema: &Schema) -> BTreeSet<&str> {
    let mut found: BTreeSet<&str> = ["Sections", "PolicyConfig"].into();
    for catalogue in KINDS {
        found.insert(catalogue.definition);
        let variants = schema.0["$defs"][catalogue.definition]["oneOf"].as_array().into_iter().flatten();
        for variant in variants {
            let settings = variant["properties"].as_object().into_iter().flatten();
            for (_, settings) in settings {
                if let Some(reference) = settings["$ref"].as_str() {
                    found.extend(reference.rsplit('/').next());
                }
            }
        }
    }
    sections_below(schema, &schema.0, &mut found);
    found
}

fn sections_below<'a>(schema: &'a Schema, table: &'a Value, found: &mut BTreeSet<&'a str>) {
    for (_, property) in table["properties"].as_object().into_iter().flatten() {
        let one = property["anyOf"].as_array().and_then(|either| either.first()).unwrap_or(property);
        for table in [one, &property["items"]] {
            let Some(reference) = table["$ref"].as_str() else { continue };
            let table = schema.resolved(table);
            if !table["properties"].is_object() {
                continue;
            }
            if found.insert(reference.rsplit('/').next().unwrap_or_default()) {
                sections_below(schema, table, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{components, schema};
    use super::*;

    /// Every definition of the schema is described: as a component or its parameters, a section, a choice of names
    /// beside its key, or a form of values with a name of its own.
    #[test]
    fn the_schema_and_the_catalogue_agree() {
        let (schema, all) = (Schema(schema()), components());
        let described = described(&schema);
        let names: Vec<&str> =
            all.iter().filter(|found| found.kind == "value").map(|found| found.name.as_str()).collect();
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for (definition, form) in schema.0["$defs"].as_object().unwrap() {
            let is_same = NAMES.iter().any(|(known, name)| known == definition && name.is_empty());
            let is_known = is_same || described.contains(definition.as_str()) || plain_names(form).is_some();
            let name = name_of_form(definition);
            assert!(is_known || distinct.contains(name.as_str()), "nothing describes {definition}");
            assert!(is_known || !name.ends_with(|letter: char| letter.is_ascii_digit()), "{definition} has no name");
        }
        // Every path of a section that the schema has is listed.
        let sections: BTreeSet<&str> =
            all.iter().filter(|found| found.kind == "section").map(|found| found.name.as_str()).collect();
        for name in [
            "population.device",
            "population.device.jitter",
            "population.group",
            "population.dropout",
            "sweep",
            "policy",
        ] {
            assert!(sections.contains(name), "{name} is missing in {sections:?}");
        }
        for name in ["number", "law", "table", "link", "link-trace", "metrics", "units"] {
            assert!(distinct.contains(name), "{name} is missing in {distinct:?}");
        }
        for found in all.iter().filter(|found| ["section", "value"].contains(&found.kind)) {
            assert!(!found.summary.is_empty(), "{}/{} says nothing", found.kind, found.name);
        }
        let dropout = all.iter().find(|found| found.name == "population.dropout").unwrap();
        assert!(dropout.documentation.contains("probability = 0.2"), "{}", dropout.documentation);
        let table = all.iter().find(|found| found.kind == "value" && found.name == "table").unwrap();
        let key = |key: &str| table.parameters.iter().find(|parameter| parameter.key == key).unwrap();
        assert!(
            key("key").description.contains("joined")
                && key("assign").description.ends_with("One of cyclic, permuted.")
        );
    }
}
