//! Exported tables agree with their dictionary: the same values in CSV and Parquet, of the types that it says, with
//! keys that hold; and with the files that they are made from.

use super::support::Workplace;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

/// Devices of two groups, of which some are lost, under deadlines of two lengths whose late updates may join later.
const FLEET: &str = r#"
name = "fleet"
title = "A fleet"
seeds = 2
[stop]
virtual_time = "40 min"
[population]
interrupted = "pause"
dropout = { probability = 0.1 }
[population.latency]
download = { exponential = { mean = "20 s" } }
compute = { lognormal = { median = { uniform = ["1 min", "4 min"] }, sigma = 0.4 } }
upload = { exponential = { mean = "40 s" } }
[[population.group]]
name = "on and off"
count = 7
availability = { on-off = { on = { exponential = { mean = "10 min" } }, off = { exponential = { mean = "5 min" } } } }
[[population.group]]
name = "always"
count = 5
[task.linear-regression]
features = 4
examples = 600
[training]
batch = 16
optimizer = { sgd = { lr = 0.05 } }
[protocol.deadline]
cohort = 4
deadline = "6 min"
late = { carry = {} }
[evaluate]
every = 2
targets = [{ metric = "test_loss", at_most = 100.0 }, { metric = "test_loss", at_most = 1e-9 }]
converged = { metric = "test_loss", evaluations = 2 }
[policy.random]
[policy.round-robin]
[sweep]
"protocol.deadline.deadline" = ["4 min", "150 s"]
"protocol.deadline.late" = ["drop", { carry = {} }]
"#;

const TABLES: [&str; 6] = ["runs", "rounds", "targets", "controls", "clients", "comparisons"];

/// A table: its rows by column, with empty cells as null.
type Rows = Vec<BTreeMap<String, Value>>;

fn exported(scenario: &str, more: &[&str]) -> Workplace {
    let place = Workplace::with(scenario);
    place.run_into("out", more);
    for to in ["csv", "parquet"] {
        let answer = place.fedgenie(&["export", "out", "--to", to, "-o", to]);
        assert_eq!(answer.code, 0, "{answer:?}");
        for file in TABLES.map(|table| format!("{table}.{to}")).into_iter().chain(["datapackage.json".to_owned()]) {
            assert!(answer.stdout.contains(&format!("{to}/{file}\n")), "{answer:?}");
        }
    }
    place
}

/// The table and its schema in a dictionary.
fn schema(place: &Workplace, to: &str, table: &str) -> Value {
    let package = place.json(&format!("{to}/datapackage.json"));
    assert_eq!(package["$schema"], "https://datapackage.org/profiles/2.0/datapackage.json");
    let resource = package["resources"].as_array().unwrap().iter().find(|resource| resource["name"] == table).unwrap();
    assert_eq!((&resource["type"], &resource["format"]), (&"table".into(), &to.into()));
    let file = resource["path"].as_str().unwrap();
    assert_eq!(resource["bytes"].as_u64(), (to == "csv").then(|| place.read(&format!("{to}/{file}")).len() as u64));
    resource["schema"].clone()
}

/// A table of CSV, by the types of its dictionary.
fn csv(place: &Workplace, table: &str) -> Rows {
    let schema = schema(place, "csv", table);
    let fields = schema["fields"].as_array().unwrap();
    let text = place.text(&format!("csv/{table}.csv"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<&str> = fields.iter().map(|field| field["name"].as_str().unwrap()).collect();
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names, "{table}");
    let cell = |(field, text): (&Value, &str)| {
        let value = match field["type"].as_str().unwrap() {
            _ if text.is_empty() => Value::Null,
            "integer" => text.parse::<i64>().unwrap().into(),
            // A reader that infers types takes it for no integer.
            "number" if text.contains(['.', 'e']) => text.parse::<f64>().unwrap().into(),
            "string" => text.into(),
            other => panic!("{table}: {text:?} is no {other} of {field}"),
        };
        (field["name"].as_str().unwrap().to_owned(), value)
    };
    reader.records().map(|row| fields.iter().zip(row.unwrap().iter()).map(cell).collect()).collect()
}

/// A table of Parquet, by its own types.
fn parquet(place: &Workplace, table: &str) -> Rows {
    let schema = schema(place, "parquet", table);
    let fields = schema["fields"].as_array().unwrap();
    let reader =
        SerializedFileReader::new(File::open(place.path(&format!("parquet/{table}.parquet"))).unwrap()).unwrap();
    let columns = reader.metadata().file_metadata().schema_descr().columns().to_vec();
    for (column, field) in columns.iter().zip(fields) {
        let kind = match column.physical_type() {
            parquet::basic::Type::INT64 => "integer",
            parquet::basic::Type::DOUBLE => "number",
            parquet::basic::Type::BYTE_ARRAY => "string",
            other => panic!("{table}: {other}"),
        };
        assert_eq!((column.name(), kind), (field["name"].as_str().unwrap(), field["type"].as_str().unwrap()));
        let is_required = field["constraints"]["required"] == true;
        assert_eq!(column.max_def_level() == 0, is_required, "{table}: {field}");
    }
    assert_eq!(columns.len(), fields.len());
    let cell = |(name, field): (&String, &Field)| {
        let value = match field {
            Field::Null => Value::Null,
            Field::Long(integer) => (*integer).into(),
            Field::Double(number) => (*number).into(),
            Field::Str(text) => text.as_str().into(),
            other => panic!("{table}: {other:?}"),
        };
        (name.clone(), value)
    };
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_column_iter().map(cell).collect()).collect()
}

fn key(row: &BTreeMap<String, Value>, columns: &Value) -> String {
    let cells = columns.as_array().unwrap().iter().map(|column| {
        let cell = &row[column.as_str().unwrap()];
        assert!(!cell.is_null(), "{column} of {row:?}");
        cell.to_string()
    });
    cells.collect::<Vec<_>>().join(" ")
}

#[test]
fn csv_and_parquet_hold_the_values_and_keys_of_their_dictionary() {
    let place = exported(FLEET, &[]);
    let mut runs = BTreeSet::new();
    for table in TABLES {
        let (rows, schema) = (csv(&place, table), schema(&place, "csv", table));
        assert!(!rows.is_empty(), "{table}");
        assert_eq!(rows, parquet(&place, table), "{table}");
        assert_eq!(schema, self::schema(&place, "parquet", table), "{table}");
        let keys: BTreeSet<String> = rows.iter().map(|row| key(row, &schema["primaryKey"])).collect();
        assert_eq!(keys.len(), rows.len(), "the keys of {table} are not unique");
        if table == "runs" {
            runs = keys;
        } else if table != "comparisons" {
            let foreign = &schema["foreignKeys"][0];
            assert_eq!(foreign["reference"]["resource"], "runs");
            assert!(rows.iter().all(|row| runs.contains(&key(row, &foreign["fields"]))), "{table}");
        }
        for field in schema["fields"].as_array().unwrap() {
            let (name, meaning) = (field["name"].as_str().unwrap(), field["description"].as_str().unwrap());
            let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            assert!(name.starts_with(|letter: char| letter.is_ascii_lowercase()) && name.chars().all(is_plain));
            assert!(meaning.len() > 3, "{table}: {field}");
        }
    }
}

fn float(row: &BTreeMap<String, Value>, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row:?}"))
}

#[test]
fn swept_quantities_are_numbers_with_their_unit() {
    let place = exported(FLEET, &[]);
    let runs = csv(&place, "runs");
    let settings: BTreeSet<String> =
        runs.iter().map(|row| format!("{} {} {}", row["point"], row["deadline_s"], row["deadline_late"])).collect();
    let carry = "{ carry = {} }";
    let expected =
        ["0 240.0 \"drop\"", &format!("1 240.0 \"{carry}\""), "2 150.0 \"drop\"", &format!("3 150.0 \"{carry}\"")];
    assert_eq!(settings.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let schema = schema(&place, "csv", "runs");
    let field = |name: &str| schema["fields"].as_array().unwrap().iter().find(|field| field["name"] == name).unwrap();
    let deadline = field("deadline_s");
    assert_eq!((&deadline["type"], &deadline["unit"]), (&"number".into(), &"s".into()));
    assert_eq!(deadline["description"], "swept: protocol.deadline.deadline of the scenario, in seconds");
    assert_eq!(field("deadline_late")["type"], "string");
    let loss = field("metric_test_loss");
    assert_eq!((&loss["type"], &loss["quantity"]), (&"number".into(), &"final.test_loss".into()));
    assert_eq!(field("down_bytes")["type"], "integer");
    assert_eq!(field("rounds_to_test_loss_at_most_100")["quantity"], "rounds_to.test_loss <= 100");
}

#[test]
fn targets_are_those_of_runs() {
    let place = exported(FLEET, &[]);
    let (rows, summary) = (csv(&place, "targets"), place.json("out/summary.json"));
    let mut rows = rows.iter();
    for run in summary["runs"].as_array().unwrap() {
        let told = run["reached"].as_array().unwrap().iter().map(|reached| (reached, &reached["metric"]));
        let all: Vec<(&Value, &Value)> = told.chain([(&run["converged"], &run["converged"]["metric"])]).collect();
        for (reached, metric) in all {
            let row = rows.next().unwrap();
            assert_eq!((&row["policy"], &row["seed"], &row["point"]), (&run["arm"], &run["seed"], &run["point"]));
            assert_eq!((&row["time_s"], &row["round"]), (&reached["time_s"], &reached["round"]));
            let bytes = reached["down_bytes"].as_u64().map(|down| down + reached["up_bytes"].as_u64().unwrap());
            assert_eq!((row["bytes"].as_u64(), &row["metric"]), (bytes, metric));
        }
    }
    assert!(rows.next().is_none());
    let never: Vec<_> =
        csv(&place, "targets").into_iter().filter(|row| row["target"] == "test_loss <= 0.000000001").collect();
    assert!(never.len() == 16 && never.iter().all(|row| row["time_s"].is_null() && !row["since_s"].is_null()));
}

#[test]
fn controls_are_those_of_runs() {
    let place = exported(FLEET, &[]);
    let (rows, summary) = (csv(&place, "controls"), place.json("out/summary.json"));
    let mut rows = rows.iter();
    for run in summary["runs"].as_array().unwrap() {
        let controls = run["controls"].as_object().unwrap();
        assert!(["initial", "mean"].iter().all(|name| controls.contains_key(*name)), "{controls:?}");
        for (control, metrics) in controls {
            for (metric, value) in metrics.as_object().unwrap() {
                let row = rows.next().unwrap();
                assert_eq!((&row["policy"], &row["seed"], &row["point"]), (&run["arm"], &run["seed"], &run["point"]));
                assert_eq!((&row["control"], &row["metric"], &row["value"]), (&json!(control), &json!(metric), value));
            }
        }
    }
    assert!(rows.next().is_none());
    let schema = schema(&place, "csv", "controls");
    assert_eq!(schema["primaryKey"], json!(["folder", "policy", "seed", "point", "control", "metric"]));
    let meaning = schema["fields"].as_array().unwrap().iter().find(|field| field["name"] == "control").unwrap();
    assert!(meaning["description"].as_str().unwrap().contains("initial: the model before training"), "{meaning}");
}

/// Parts of clients add up to the totals of their run, and to what is counted in the recorded rounds.
#[test]
fn clients_add_up_to_their_run() {
    let place = exported(FLEET, &[]);
    let clients = csv(&place, "clients");
    for run in csv(&place, "runs") {
        let of_run: Vec<_> = clients
            .iter()
            .filter(|row| ["policy", "seed", "point"].iter().all(|column| row[*column] == run[*column]))
            .collect();
        assert_eq!(of_run.len(), 12);
        let sum = |column: &str| of_run.iter().map(|row| float(row, column)).sum::<f64>();
        for column in ["down_bytes", "up_bytes"] {
            assert_eq!(sum(column), float(&run, column), "{column} of {run:?}");
        }
        let (found, total) = (sum("compute_s"), float(&run, "compute_s"));
        assert!((found - total).abs() <= 1e-12 * total, "{found} s and {total} s");
        assert!(sum("examples") > 0.0);
        assert_eq!(
            of_run.iter().filter(|row| float(row, "selections") > 0.0).count() as f64,
            float(&run, "unique_clients")
        );
        let groups: Vec<&str> = of_run.iter().map(|row| row["group_name"].as_str().unwrap()).collect();
        assert_eq!(groups, [["on and off"; 7].as_slice(), &["always"; 5]].concat());
        // The same from the records.
        let name = format!("{}-p{}-s{}", run["policy"].as_str().unwrap(), run["point"], run["seed"]);
        let rounds = place.lines(&format!("out/runs/{name}/rounds.jsonl"));
        let count = |id: u64, of: &dyn Fn(&Value) -> Vec<u64>| {
            rounds.iter().flat_map(of).filter(|&client| client == id).count()
        };
        let list = |key: &'static str, at: &'static str| {
            move |round: &Value| -> Vec<u64> {
                let client = |item: &Value| item.pointer(at).unwrap().as_u64().unwrap();
                round[key].as_array().into_iter().flatten().map(client).collect()
            }
        };
        for row in &of_run {
            let id = row["client"].as_u64().unwrap();
            for (column, at) in [
                ("selected", ""),
                ("arrived", ""),
                ("late", ""),
                ("joined", "/client"),
                ("dropped", "/client"),
                ("lost_late", "/job/client"),
            ] {
                let named = if column == "selected" { "selections" } else { column };
                assert_eq!(row[named], count(id, &list(column, at)), "{column} of client {id} in {name}");
            }
        }
    }
    let total = |column: &str| clients.iter().map(|row| float(row, column)).sum::<f64>();
    for column in ["late", "joined", "dropped", "lost_late"] {
        assert!(total(column) > 0.0, "no client of the scenario is {column}");
    }
}

/// Of more than 1,000 clients `run.json` has none: selected ones are counted in the rounds, if all of these are there.
#[test]
fn clients_of_large_fleets_are_counted_in_rounds() {
    let large = FLEET.replace("count = 7", "count = 1_200").replace("count = 5", "count = 300");
    let large = large.replace("examples = 600", "examples = 2_000").split("[sweep]").next().unwrap().to_owned();
    let place = exported(&large, &[]);
    let run = place.json("out/runs/random-s1/run.json");
    assert!(run["metrics"].get("clients").is_none());
    let clients = csv(&place, "clients");
    let of_run: Vec<_> = clients.iter().filter(|row| row["policy"] == "random" && row["seed"] == 1).collect();
    assert_eq!(of_run.len() as u64, run["unique_clients"].as_u64().unwrap());
    let selections: f64 = of_run.iter().map(|row| float(row, "selections")).sum();
    let dispatched: usize = place
        .lines("out/runs/random-s1/rounds.jsonl")
        .iter()
        .map(|round| round["selected"].as_array().unwrap().len())
        .sum();
    assert_eq!(selections, dispatched as f64);
    assert!(of_run.iter().all(|row| row["compute_s"].is_null() && row["examples"].is_null()));
    let is_of = |row: &&&BTreeMap<String, Value>| row["group_name"] == "always";
    assert!(of_run.iter().filter(is_of).all(|row| float(row, "client") >= 1200.0));
    assert!(of_run.iter().filter(|row| row["group_name"] == "on and off").all(|row| float(row, "client") < 1200.0));
    let thinned = exported(&large, &["--set", "record.every=3"]);
    assert!(csv(&thinned, "clients").is_empty());
    assert_eq!(csv(&thinned, "runs").len(), 4);
}
