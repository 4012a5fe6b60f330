//! The JSON schema of laws and parameters, from the catalogue of laws.

use super::read::{BodySeed, LawSeed, ParameterSeed};
use super::{TableConfig, Unit};
use fedgenie_core::law::{self, Form, LawEntry};
use schemars::{Schema, SchemaGenerator, json_schema};

impl Unit {
    pub(super) fn schema(&self) -> Schema {
        if self.plain {
            json_schema!({ "type": "number" })
        } else {
            json_schema!({ "type": "string", "description": self.expected })
        }
    }
}

impl LawSeed {
    pub(super) fn schema(&self, _: &mut SchemaGenerator) -> Schema {
        let laws: Vec<Schema> = law::CATALOGUE.iter().map(|entry| law_schema(entry, self.0)).collect();
        json_schema!({ "oneOf": laws })
    }
}

impl ParameterSeed {
    pub(super) fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<TableConfig>();
        let table = json_schema!({
            "type": "object", "properties": { "table": table }, "required": ["table"], "additionalProperties": false,
            "description": "a column of a file"
        });
        let law = json_schema!({
            "type": "object", "not": { "required": ["table"] },
            "description": "a law to draw the value from, per client, or each = [..]"
        });
        json_schema!({ "anyOf": [self.0.schema(), law, table] })
    }

    /// Within a law, where tables are not described again.
    fn plain_schema(&self) -> Schema {
        let law = json_schema!({ "type": "object", "description": "a law to draw the value from, per client" });
        json_schema!({ "anyOf": [self.0.schema(), law] })
    }
}

fn law_schema(entry: &'static LawEntry, unit: &'static Unit) -> Schema {
    let parameter = |index: usize| BodySeed { entry, unit }.parameter_schema(index);
    let body = match entry.form {
        Form::Scalar => parameter(0),
        Form::Pair => {
            let items: Vec<_> = (0..entry.parameters.len()).map(parameter).collect();
            json_schema!({ "type": "array", "prefixItems": items, "minItems": items.len(), "maxItems": items.len() })
        }
        Form::Named => {
            let properties: serde_json::Map<_, _> = entry
                .parameters
                .iter()
                .enumerate()
                .map(|(index, known)| (known.name.to_owned(), parameter(index).to_value()))
                .collect();
            let required: Vec<_> =
                entry.parameters.iter().filter(|known| known.default.is_none()).map(|known| known.name).collect();
            json_schema!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false
            })
        }
        Form::Mixture => json_schema!({ "type": "array", "minItems": 1, "items": { "type": "object" } }),
        Form::Empirical => json_schema!({
            "type": "object", "properties": { "file": { "type": "string" } }, "required": ["file"],
            "additionalProperties": false
        }),
    };
    let name = entry.name;
    json_schema!({
        "type": "object", "properties": { name: body }, "required": [name], "additionalProperties": false
    })
}

impl BodySeed {
    fn parameter_schema(self, index: usize) -> Schema {
        self.parameter(index).plain_schema()
    }
}
