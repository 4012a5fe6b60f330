//! Everything that a scenario can name: the components of all kinds, from the catalogues of their folders, the
//! sections, and the forms of values.
//!
//! Names, documentation and parameters stand with the components; what is common to a kind, and the parameters'
//! defaults, is read off the JSON schema, which is made from the types that read scenarios.

mod definitions;
mod forms;

use super::schema::schema;
use fedgenie_core::catalogue::{Catalogue, Entry, documentation, first_paragraph, plain};
use fedgenie_core::law;
use fedgenie_core::oracle::{SOLVERS, regret, utility};
use fedgenie_learning::algorithm::{self, server};
use fedgenie_learning::data::{partition, source};
use fedgenie_learning::metric;
use fedgenie_learning::model::families;
use fedgenie_learning::ratings;
use fedgenie_learning::trainer::{optimizer, schedule};
use fedgenie_simulator::population::availability;
use fedgenie_simulator::{clusters, policy, protocol, task};
use serde_json::Value;

/// The kinds of components, in the order of the list.
static KINDS: [&Catalogue; 20] = [
    &policy::CATALOGUE,
    &availability::CATALOGUE,
    &task::CATALOGUE,
    &source::CATALOGUE,
    &ratings::source::CATALOGUE,
    &task::recommendation::MODELS,
    &ratings::social::CATALOGUE,
    &task::rating_graph::MODELS,
    &ratings::social::dealt::CATALOGUE,
    &protocol::CATALOGUE,
    &clusters::CATALOGUE,
    &partition::CATALOGUE,
    &SOLVERS,
    &regret::CATALOGUE,
    &utility::CATALOGUE,
    &families::CATALOGUE,
    &optimizer::CATALOGUE,
    &schedule::CATALOGUE,
    &algorithm::CATALOGUE,
    &server::CATALOGUE,
];

/// Something that a scenario can name.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// What it is: `policy`, `partition`, …, `section`.
    pub kind: &'static str,
    /// Its name; of a section, its path.
    pub name: String,
    /// One line on what it is.
    pub summary: String,
    /// The documentation in Markdown, which may begin with the summary.
    pub documentation: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// A parameter of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its key.
    pub key: String,
    /// What it is.
    pub description: String,
    /// Its value when left out, as TOML, if that is always the same.
    pub default: Option<String>,
}

/// Everything that a scenario can name, kind by kind.
pub fn components() -> Vec<Component> {
    let schema = Schema(schema());
    let mut components = Vec::new();
    for catalogue in KINDS {
        components.extend(schema.components(catalogue));
        if catalogue.kind == "policy" {
            components.extend(law::CATALOGUE.iter().map(of_law));
        }
        if catalogue.kind == task::CATALOGUE.kind {
            components.extend(metric::CATALOGUE.iter().map(of_metric));
        }
        if catalogue.kind == ratings::source::CATALOGUE.kind {
            components.extend(ratings::named::ENTRIES.iter().map(of_published));
        }
    }
    schema.sections("", &schema.0, &mut components);
    components.extend(forms::sections(&schema));
    components.extend(forms::values(&schema));
    components.iter_mut().for_each(Component::define);
    components
}

impl Component {
    /// Puts the definition before what it says, where its own file has none; a summary that stands there is its own.
    fn define(&mut self) {
        let Some(definition) = definitions::definition(self.kind, &self.name) else { return };
        if !definition.starts_with('#') {
            self.summary = first_paragraph(&definition);
        }
        let rest = std::mem::replace(&mut self.documentation, definition);
        if !rest.is_empty() {
            self.documentation.push_str(&format!("\n{rest}"));
        }
    }
}

/// A published set, which scenarios name as a folder, without parameters.
fn of_published(entry: &Entry) -> Component {
    Component {
        kind: ratings::source::CATALOGUE.kind,
        name: entry.name.to_owned(),
        summary: entry.summary(),
        documentation: documentation(entry.source),
        parameters: Vec::new(),
    }
}

/// A metric, with what it declares behind what its file says.
fn of_metric(listed: &metric::Listed) -> Component {
    let documentation = documentation(listed.source);
    Component {
        kind: "metric",
        name: listed.definition.measure.name.to_owned(),
        summary: first_paragraph(&documentation),
        documentation: format!("{documentation}\n# Properties\n{}\n", listed.properties()),
        parameters: Vec::new(),
    }
}

fn of_law(entry: &law::LawEntry) -> Component {
    let documentation = documentation(entry.documentation);
    let parameter = |parameter: &law::LawParameter| Parameter {
        key: parameter.name.to_owned(),
        description: parameter.documentation.to_owned(),
        default: parameter.default.map(|default| default.to_string()),
    };
    Component {
        kind: "law",
        name: entry.name.to_owned(),
        summary: documentation.lines().next().unwrap_or_default().to_owned(),
        documentation,
        parameters: entry.parameters().iter().map(parameter).collect(),
    }
}

/// The JSON schema of scenarios.
struct Schema(Value);

impl Schema {
    /// What a reference leads to, or the schema itself if it is none.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => &self.0["$defs"][reference.rsplit('/').next().unwrap_or_default()],
            None => schema,
        }
    }

    /// The components of a kind: those that have an entry, in its order, and every other one that the schema knows.
    fn components(&self, catalogue: &Catalogue) -> Vec<Component> {
        let variants = self.0["$defs"][catalogue.definition]["oneOf"].as_array().into_iter().flatten();
        let named: Vec<(&str, &Value)> = variants.filter_map(|variant| Some((name_of(variant)?, variant))).collect();
        let parameters = |name: &str| {
            let variant = named.iter().find(|(known, _)| *known == name);
            variant.map_or_else(Vec::new, |(_, variant)| self.parameters(&variant["properties"][name]))
        };
        let shared = documentation(catalogue.shared);
        let without_entry = named.iter().filter(|(name, _)| catalogue.entry(name).is_none());
        let without_entry = without_entry.map(|(name, variant)| Component {
            kind: catalogue.kind,
            name: (*name).to_owned(),
            summary: description(variant),
            documentation: shared.clone(),
            parameters: parameters(name),
        });
        let with_entry = catalogue.entries.iter().map(|entry| Component {
            kind: catalogue.kind,
            name: entry.name.to_owned(),
            summary: entry.summary(),
            documentation: documentation(entry.source),
            parameters: parameters(entry.name),
        });
        without_entry.chain(with_entry).collect()
    }

    /// The keys of a table.
    fn parameters(&self, table: &Value) -> Vec<Parameter> {
        let keys = self.resolved(table)["properties"].as_object().into_iter().flatten();
        let parameter = |(key, parameter): (&String, &Value)| Parameter {
            key: key.clone(),
            description: [description(parameter), self.choices(parameter)].join(" ").trim().to_owned(),
            default: in_toml(&parameter["default"]),
        };
        keys.map(parameter).collect()
    }

    /// A sentence on the names that a value is one of, where it is such a name; empty where it is not.
    fn choices(&self, value: &Value) -> String {
        let one = value["anyOf"].as_array().and_then(|either| either.first()).unwrap_or(value);
        let names = plain_names(self.resolved(one)).unwrap_or_default();
        if names.is_empty() { String::new() } else { format!("One of {}.", names.join(", ")) }
    }

    /// The tables below a table: each key whose value is one, or a list of them.
    fn sections(&self, path: &str, table: &Value, found: &mut Vec<Component>) {
        for (key, property) in table["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            // A table that may be left out is this or null.
            let one = property["anyOf"].as_array().and_then(|either| either.first()).unwrap_or(property);
            let is_reference = |schema: &Value| schema["$ref"].is_string();
            let (table, is_list) = if is_reference(one) { (one, false) } else { (&property["items"], true) };
            let table = if is_reference(table) { self.resolved(table) } else { continue };
            if !table["properties"].is_object() {
                continue;
            }
            let summary = [property, table].into_iter().map(description).find(|text| !text.is_empty());
            found.push(Component {
                kind: "section",
                name: path.clone(),
                summary: summary.unwrap_or_default(),
                documentation: forms::documentation_of(one["$ref"].as_str().unwrap_or_default()),
                parameters: self.parameters(table),
            });
            if !is_list {
                self.sections(&path, table, found);
            }
        }
    }
}

/// The names that a value chooses from, if all that it can be are names.
fn plain_names(schema: &Value) -> Option<Vec<&str>> {
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().map(Value::as_str).collect();
    }
    let variants = schema["oneOf"].as_array()?;
    let names: Option<Vec<Vec<&str>>> = variants.iter().map(plain_names_of).collect();
    names.map(|names| names.concat())
}

/// The names that one variant stands for, if it is no table.
fn plain_names_of(variant: &Value) -> Option<Vec<&str>> {
    match variant["const"].as_str() {
        Some(name) => Some(vec![name]),
        None => variant["enum"].as_array()?.iter().map(Value::as_str).collect(),
    }
}

/// The name of a variant: a text, or the only key of a table.
fn name_of(variant: &Value) -> Option<&str> {
    let key = || variant["properties"].as_object().and_then(|choice| choice.keys().next()).map(String::as_str);
    variant["const"].as_str().or_else(key)
}

fn description(schema: &Value) -> String {
    plain(&schema["description"].as_str().unwrap_or_default().replace('\n', " "))
}

/// A value as it is written in a scenario; none for null.
fn in_toml(value: &Value) -> Option<String> {
    toml::Value::try_from(value).ok().map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_are_written_as_toml() {
        assert_eq!(in_toml(&json!({"quantile": 0.999})).unwrap(), "{ quantile = 0.999 }");
        assert_eq!(
            in_toml(&json!({"iid": {"stratified": false}})).unwrap().to_string(),
            "{ iid = { stratified = false } }"
        );
        assert_eq!(in_toml(&json!("exact")).unwrap(), "\"exact\"");
        assert_eq!(in_toml(&json!([200, 200])).unwrap(), "[200, 200]");
        assert_eq!(in_toml(&json!(1.0)).unwrap(), "1.0");
        assert_eq!(in_toml(&Value::Null), None);
    }

    /// Every kind is found in the schema, and every choice that the schema has is documented.
    /// Meters that a key of their own switches on are no choice.
    #[test]
    fn the_catalogues_and_the_schema_agree() {
        let schema = Schema(schema());
        for catalogue in KINDS {
            let variants = schema.0["$defs"][catalogue.definition]["oneOf"].as_array();
            let names: Vec<_> = variants.into_iter().flatten().filter_map(name_of).collect();
            assert!(!names.is_empty(), "the schema has no {}", catalogue.definition);
            for component in schema.components(catalogue) {
                let Component { kind, name, summary, documentation, .. } = component;
                let is_switch = ["assignment", "counterfactual"].contains(&name.as_str());
                assert!(names.contains(&name.as_str()) || is_switch, "{kind}/{name} is in no schema");
                assert!(!summary.is_empty() && documentation.len() > summary.len(), "{kind}/{name} says nothing");
            }
        }
    }

    /// Whatever is listed begins with a sentence that says what it is, and then defines it.
    #[test]
    fn everything_begins_with_a_definition() {
        for Component { kind, name, summary, documentation, .. } in components() {
            let begins_with = summary.chars().next();
            assert!(begins_with.is_some_and(|first| !first.is_lowercase() && first != '`'), "{kind}/{name}: {summary}");
            assert!(summary.ends_with(['.', ':']), "{kind}/{name}: {summary}");
            let mut headings = documentation.lines().enumerate().filter(|(_, line)| line.starts_with("# "));
            let (place, first) = headings.next().unwrap_or((0, ""));
            assert_eq!(first, "# Definition", "{kind}/{name}:\n{documentation}");
            let words = documentation
                .lines()
                .skip(place + 1)
                .take_while(|line| !line.starts_with("# "))
                .flat_map(str::split_whitespace);
            assert!(words.count() >= 3, "{kind}/{name} defines nothing:\n{documentation}");
        }
    }

    #[test]
    fn sections_are_the_tables_of_the_schema() {
        let names: Vec<String> =
            components().into_iter().filter(|found| found.kind == "section").map(|found| found.name).collect();
        for name in ["stop", "stop.plateau", "population", "population.latency", "population.group", "regret", "record"]
        {
            assert!(names.iter().any(|known| known == name), "{name} is missing in {names:?}");
        }
        for name in ["name", "seeds", "task", "protocol", "population.group.latency"] {
            assert!(names.iter().all(|known| known != name), "{name} is no section");
        }
    }
}
