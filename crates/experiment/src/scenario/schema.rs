//! The JSON schema of scenario files, made from the types that read them.

use super::Sections;
use fedgenie_simulator::policy::{self, PolicyConfig};
use schemars::SchemaGenerator;
use serde_json::{Value, json};

/// The schema, for editors that complete and check scenario files.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let sections = generator.subschema_for::<Sections>().to_value();
    let policy = policy_schema(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut root = match sections.get("$ref").and_then(Value::as_str) {
        Some(reference) => {
            let name = reference.rsplit('/').next().unwrap_or_default();
            definitions.get(name).cloned().unwrap_or_default()
        }
        None => sections,
    };
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("FedGenie scenario");
    root["properties"]["policy"] = json!({
        "type": "object",
        "description": "Policies by label; the kind is the label unless `kind` says otherwise.",
        "minProperties": 1,
        "properties": policy.0,
        "additionalProperties": { "oneOf": policy.1 },
    });
    root["properties"]["sweep"] = json!({
        "type": "object",
        "description": "A grid over any path, such as \"policy.bsfl.alpha\" = [1.0, 3.0].",
        "properties": {
            "zip": {
                "type": "array",
                "minItems": 2,
                "description": "Swept paths that go through their values together, as one axis.",
            },
            "reference": {
                "type": "object",
                "description": "The point that the others are compared with, such as { \"policy.bsfl.alpha\" = 1.0 }; by default \
                                the scenario's own values, or else the first.",
            },
        },
        "additionalProperties": { "type": "array", "minItems": 1 },
    });
    root["properties"]["$schema"] = json!({ "type": "string" });
    if let Some(required) = root["required"].as_array_mut() {
        required.push(json!("policy"));
    }
    root["$defs"] = Value::Object(definitions);
    root
}

/// Schemas of policies: by label where the label is a kind, and with an explicit kind.
fn policy_schema(generator: &mut SchemaGenerator) -> (Value, Value) {
    let whole = generator.root_schema_for::<PolicyConfig>().to_value();
    let definitions = whole.get("$defs").cloned().unwrap_or_default();
    let (mut by_label, mut by_kind) = (serde_json::Map::new(), Vec::new());
    for entry in policy::CATALOGUE.entries {
        let variants = whole["oneOf"].as_array();
        let variant = variants.and_then(|variants| variants.iter().find(|v| v["properties"].get(entry.name).is_some()));
        let mut body = variant.map_or(json!({ "type": "object" }), |variant| variant["properties"][entry.name].clone());
        if let Some(reference) = body.get("$ref").and_then(Value::as_str) {
            let name = reference.rsplit('/').next().unwrap_or_default();
            body = definitions.get(name).cloned().unwrap_or(json!({ "type": "object" }));
        }
        if !body["properties"].is_object() {
            body["properties"] = json!({});
        }
        body["properties"]["with"] = json!({
            "type": "object",
            "description": "Settings of the scenario that this policy overrides, by path, such as \"protocol.synchronous.cohort\" = 8.",
        });
        body["properties"]["cohort"] = json!({
            "type": "integer",
            "minimum": 1,
            "description": "Most clients that this policy chooses at once, no more than the protocol lets it; the protocol's cohort without it.",
        });
        let mut labelled = body.clone();
        labelled["properties"]["kind"] = json!({ "type": "string" });
        by_label.insert(entry.name.to_owned(), labelled);
        body["properties"]["kind"] = json!({ "const": entry.name });
        body["required"] = json!(["kind"]);
        by_kind.push(body);
    }
    (Value::Object(by_label), Value::Array(by_kind))
}
