//! The data dictionary: a Data Package of version 2, with a Table Schema for each table.
//!
//! Beside the properties of the standard fields have `unit`, and numbers of runs `quantity`, their key in `values` of
//! `summary.json`.

use super::ExportFormat;
use super::column::Column;
use super::table::{Description, RUN_KEY};
use crate::source::Results;
use serde_json::{Map, Value, json};

/// The file of the dictionary.
pub(super) const PACKAGE_FILE: &str = "datapackage.json";

/// The profile of Data Packages that the file follows.
const PROFILE: &str = "https://datapackage.org/profiles/2.0/datapackage.json";

/// The dictionary of some tables.
pub(super) fn package(results: &[Results], tables: &[Description], format: ExportFormat) -> Value {
    let titles: Vec<&str> = results.iter().map(Results::title).collect();
    let source = |results: &Results| json!({ "title": results.name, "version": results.version });
    json!({
        "$schema": PROFILE,
        "name": "fedgenie-export",
        "title": titles.join("; "),
        "description": "Results of FedGenie. Times are virtual seconds; 1 kB is 1000 B.",
        "sources": results.iter().map(source).collect::<Vec<_>>(),
        "resources": tables.iter().map(|table| resource(table, format)).collect::<Vec<_>>()
    })
}

fn resource(table: &Description, format: ExportFormat) -> Value {
    let mut resource = Map::new();
    let mut add = |key: &str, value: Value| resource.insert(key.to_owned(), value);
    add("name", json!(table.name));
    add("type", json!("table"));
    add("description", json!(table.meaning));
    add("path", json!(format!("{}.{}", table.name, format.ending())));
    add("format", json!(format.ending()));
    match format {
        ExportFormat::Csv => {
            add("mediatype", json!("text/csv"));
            add("encoding", json!("utf-8"));
            add("bytes", json!(table.bytes));
        }
        ExportFormat::Parquet => {
            add("mediatype", json!("application/vnd.apache.parquet"));
        }
    }
    let mut schema = json!({
        "fields": table.columns.iter().map(field).collect::<Vec<_>>(),
        "missingValues": [""],
        "primaryKey": table.key
    });
    if table.is_of_run {
        schema["foreignKeys"] = json!([{ "fields": RUN_KEY, "reference": { "resource": "runs", "fields": RUN_KEY } }]);
    }
    add("schema", schema);
    Value::Object(resource)
}

fn field(column: &Column) -> Value {
    let Column { name, kind, unit, meaning, is_required, quantity } = column;
    let mut field = json!({ "name": name, "type": kind.name(), "description": meaning });
    if !unit.is_empty() {
        field["unit"] = json!(unit);
    }
    if let Some(quantity) = quantity {
        field["quantity"] = json!(quantity);
    }
    if *is_required {
        field["constraints"] = json!({ "required": true });
    }
    field
}
