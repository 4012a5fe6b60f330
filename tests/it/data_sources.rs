//! Forms of `data`, from the scenario's text to the run's result: formats, folders, refusals, schema and catalogue.

use super::support::{Answer, SCENARIO, Workplace, changed, line_of};

const TASK: &str = "[task.softmax-regression]\ndata = { synthetic = { classes = 3, height = 4, width = 4, train = 60, test = 30, noise = 0.1 } }";

fn scenario(task: &str) -> String {
    let text = format!(
        r#"name = "data"
seeds = 2

[stop]
rounds = 4

[population]
clients = 4
[population.latency]
download = {{ constant = "10 ms" }}
compute = {{ exponential = {{ mean = "1 s" }} }}
upload = {{ constant = "20 ms" }}

{TASK}

[training]
batch = 5
optimizer = {{ sgd = {{ lr = 0.1 }} }}

[protocol.synchronous]
cohort = 2

[policy.random]
"#
    );
    changed(&text, TASK, task)
}

/// Runs the task, replays it, and returns the model digests of the two seeds.
fn learned(place: &Workplace, task: &str, more: &[&str]) -> Vec<String> {
    place.write(SCENARIO, scenario(task));
    place.run_into("out", more);
    let Answer { code, stderr, .. } = place.fedgenie(&["verify", "out"]);
    assert_eq!(code, 0, "{stderr}");
    let digests = place.digests("out").into_iter().map(|(_, _, model)| model).collect();
    std::fs::remove_dir_all(place.path("out")).unwrap();
    digests
}

fn refused(place: &Workplace, task: &str, at: &str, path: &str, parts: &[&str]) {
    let text = scenario(task);
    place.write(SCENARIO, &text);
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO]);
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    let start = format!("fedgenie: error: {SCENARIO}:{}: {path}: ", line_of(&text, at));
    assert!(stderr.starts_with(&start), "should start with {start:?}: {stderr}");
    for part in parts {
        assert!(stderr.contains(part), "{part:?} is missing in: {stderr}");
    }
}

/// Twelve rows; the number to predict is a linear function of the features.
fn table(header: &str) -> String {
    let row = |row: usize| format!("{},{},{},u{},{}\n", row, row % 3, row % 2, row % 5, 2 * row + row % 3);
    format!("{header}\n{}", (0..12).map(row).collect::<String>())
}

#[test]
fn synthetic_images_are_learned_and_differ_from_seed_to_seed() {
    let place = Workplace::new();
    let digests = learned(&place, TASK, &[]);
    assert_ne!(digests[0], digests[1]);
    let normal = learned(&place, &format!("{TASK}\nnormalize = true"), &[]);
    assert_ne!(digests, normal);
    // A table of its own says the same.
    let task = "[task.softmax-regression.data.synthetic]\nclasses = 3\nheight = 4\nwidth = 4\ntrain = 60\ntest = 30\nnoise = 0.1";
    assert_eq!(digests, learned(&place, task, &[]));
}

#[test]
fn tables_are_learned_from_the_data_folder_or_beside_the_scenario() {
    let place = Workplace::new();
    let text = table("a,y,b,user,z");
    for name in ["all.csv", "folder/all.csv"] {
        place.write(name, &text);
    }
    let classes = "[task.softmax-regression]\n\
                   data = { csv = { train = \"all.csv\", test_fraction = 0.25, label = \"y\", group = \"user\" } }\n\
                   partition = \"by-column\"";
    // Users are names, all others numbers, so that only with its group the table can be read.
    let digests = learned(&place, classes, &[]);
    assert_eq!(digests, learned(&place, classes, &["--data", "folder"]));
    std::fs::remove_file(place.path("all.csv")).unwrap();
    assert_eq!(digests, learned(&place, classes, &["--data", "folder"]));
    refused(&place, classes, "data = ", "task.softmax-regression.data", &["all.csv: there is no such file"]);
}

/// A result folder says nothing of this machine that its replay needs.
#[test]
fn a_result_folder_is_verified_where_it_was_moved_to() {
    let place = Workplace::new();
    let text = table("a,y,b,user,z");
    place.write("data/all.csv", &text);
    let task = "[task.softmax-regression]\n\
                data = { csv = { train = \"all.csv\", test_fraction = 0.25, label = \"y\", group = \"user\" } }";
    place.write(SCENARIO, scenario(task));
    place.run_into("out", &["--data", "data"]);
    let stored = place.text("out/scenario.toml");
    assert!(stored.contains("train = \"all.csv\""), "{stored}");
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0, "the folder of data is remembered");

    let other = Workplace::new();
    std::fs::create_dir(other.path("sets")).unwrap();
    std::fs::rename(place.path("data"), other.path("sets/tables")).unwrap();
    std::fs::rename(place.path("out"), other.path("moved")).unwrap();
    assert_eq!(other.fedgenie(&["verify", "moved"]).code, 2, "the data are not found");
    let answer = other.fedgenie(&["verify", "moved", "--data", "sets/tables"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let run = ["run", "moved/scenario.toml", "--data", "sets/tables", "--out", "again", "--quiet"];
    assert_eq!(other.fedgenie(&run).code, 0);
    assert_eq!(other.text("again/scenario.toml"), stored);
    let hash = |folder: &str| other.json(&format!("{folder}/manifest.json"))["scenario_hash"].clone();
    assert_eq!(hash("again"), hash("moved"));

    // Other data are named as such, before anything is replayed.
    other.write("sets/tables/all.csv", text.replace("11,2,1,u1,24", "11,2,1,u1,25"));
    let answer = other.fedgenie(&["verify", "moved", "--data", "sets/tables"]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.contains("the data differ: all.csv is not the file that was learned from"), "{answer:?}");
}

#[test]
fn linear_regression_learns_tables_of_numbers() {
    let place = Workplace::new();
    let numbers =
        (0..30).map(|row| format!("{},{},{}\n", row % 7, row % 4, 3 * (row % 7) - row % 4)).collect::<String>();
    place.write("train.csv", format!("a,b,z\n{numbers}"));
    place.write("test.csv", "a,b,z\n3,2,7\n");
    let task = "[task.linear-regression]\n\
                data = { csv = { train = \"train.csv\", test = \"test.csv\", target = \"z\" } }\nnormalize = true";
    place.write(SCENARIO, changed(&scenario(task), "rounds = 4", "rounds = 200"));
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let loss = summary["runs"][0]["final"]["test_loss"].as_f64();
    assert!(loss.is_some_and(|loss| loss < 1e-3), "{loss:?} in {}", summary["runs"][0]);
    let parts = ["leave it out where data is given"];
    let both = changed(task, "normalize = true", "noise = 0.1");
    refused(&place, &both, "noise = 0.1", "task.linear-regression.noise", &parts);
    let classes = changed(task, "target", "label");
    let parts = ["the model predicts numbers, the data has classes as targets"];
    place.write("test.csv", "a,b,z\n3,2,9\n");
    refused(&place, &classes, "data = ", "task.linear-regression.data", &parts);
}

#[test]
fn npy_arrays_are_learned() {
    let place = Workplace::new();
    let array = |descr: &str, shape: &str, data: &[u8]| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
    };
    let pixels: Vec<u8> = (0..80).map(|place| if place % 8 < 4 { 255 } else { (place * 3) as u8 }).collect();
    let labels: Vec<u8> = (0..20).map(|place| place % 2).collect();
    for (name, bytes) in [("x.npy", array("|u1", "(20, 2, 2)", &pixels)), ("y.npy", array("|u1", "(20,)", &labels))] {
        place.write(name, bytes);
    }
    let task = "[task.softmax-regression]\n\
                data = { npy = { train = \"x.npy\", train_labels = \"y.npy\", test = \"x.npy\", test_labels = \"y.npy\" } }";
    learned(&place, task, &[]);
    place.write("y.npy", array("<f4", "(20,)", &[0; 80]));
    let parts = ["the model predicts classes, the data has numbers as targets"];
    refused(&place, task, "data = ", "task.softmax-regression.data", &parts);
    place.write("y.npy", array("|u1", "(20,)", &labels[..19]));
    refused(&place, task, "data = ", "task.softmax-regression.data", &["y.npy: ends after byte", "header needs"]);
}

#[test]
fn what_is_wrong_is_named_by_line_and_key() {
    let place = Workplace::new();
    let refused = |data: &str, key: &str, parts: &[&str]| {
        let task = format!("[task.softmax-regression]\ndata = {data}");
        refused(&place, &task, "data = ", &format!("task.softmax-regression.data{key}"), parts);
    };
    refused("\"nowhere\"", "", &["nowhere: there is no such folder", "t10k-labels-idx1-ubyte.gz", "data_batch_1.bin"]);
    refused("7", "", &["found 7", "expected a folder's name, or a table with exactly one key"]);
    refused("{}", "", &["expected a folder's name, or a table with exactly one key"]);
    refused("{ idx = \"a\", cifar10 = \"a\" }", "", &["exactly one key"]);
    refused("{ cvs = {} }", ".cvs", &["unknown kind \"cvs\"", "did you mean \"csv\"?", "cifar100", "synthetic"]);
    refused("{ csv = \"a.csv\" }", ".csv", &["found \"a.csv\"", "expected a table"]);
    refused("{ csv = { train = \"a\", labels = \"y\" } }", ".csv.labels", &["did you mean \"label\"?"]);
    refused("{ csv = { test = \"a\", label = \"y\" } }", ".csv", &["the key \"train\" is missing"]);
    refused("{ csv = { train = \"a\", label = \"y\" } }", ".csv", &["found neither test nor test_fraction"]);
    let fraction = "{ csv = { train = \"a\", label = \"y\", test_fraction = 2.0 } }";
    refused(fraction, ".csv.test_fraction", &["found 2; expected a number above 0 and below 1"]);
    for shape in ["[1, 2]", "[1, 2, 3, 4]", "[1, 0, 2]"] {
        let data = format!("{{ csv = {{ train = \"a\", test = \"a\", label = \"y\", shape = {shape} }} }}");
        refused(
            &data,
            ".csv.shape",
            &[&format!("found {shape}"), "expected [channels, rows, columns], each at least 1"],
        );
    }
    refused("{ synthetic = { classes = 1 } }", ".synthetic.classes", &["found 1; expected from 2 to 256"]);
    refused("{ synthetic = { noise = nan } }", ".synthetic.noise", &["expected finite and not negative"]);
    refused("{ synthetic = { examples = 7 } }", ".synthetic.examples", &["unknown key \"examples\""]);
    place.write("a.csv", "x,y\n1,0\nNaN,1\n");
    let data = "{ csv = { train = \"a.csv\", test = \"a.csv\", label = \"y\" } }";
    refused(data, "", &["a.csv:3: column \"x\": found \"NaN\"; expected a finite number"]);
}

#[test]
fn schema_and_catalogue_know_every_form() {
    let place = Workplace::new();
    let schema = place.fedgenie(&["schema"]).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let forms = schema["$defs"]["DataConfig"]["anyOf"].as_array().unwrap();
    assert!(forms.iter().any(|form| form["type"] == "string"), "{forms:?}");
    let sources = schema["$defs"]["DataSource"]["oneOf"].as_array().unwrap();
    let listed = place.fedgenie(&["list", "data"]).stdout;
    for name in ["idx", "cifar10", "cifar100", "svhn", "csv", "npy", "synthetic"] {
        assert!(sources.iter().any(|source| source["properties"].get(name).is_some()), "{name}");
        assert!(listed.contains(&format!("data/{name} ")), "{listed}");
        let described = place.fedgenie(&["describe", &format!("data/{name}")]).stdout;
        assert!(described.contains("# Example") && described.contains(&format!("{{ {name} = ")), "{described}");
    }
    let described = place.fedgenie(&["describe", "data/csv"]).stdout;
    for key in ["train", "test", "test_fraction", "label", "target", "group", "shape"] {
        assert!(described.contains(&format!("\n  {key:<16} ")), "{key} is missing in {described}");
    }
    assert!(place.fedgenie(&["describe", "data/synthetic"]).stdout.contains("(default 6000)"));
    let described = place.fedgenie(&["describe", "task/softmax-regression"]).stdout;
    assert!(described.contains("describe data/csv") && described.contains("normalize"), "{described}");
}

/// Examples of the catalogue and the scenarios of `new` can be run as they stand, and no text speaks Rust.
#[test]
fn the_catalogue_is_for_people_who_write_scenarios() {
    let place = Workplace::new();
    place.write("trace.csv", "0.1\n0.2\n");
    let listed = place.fedgenie(&["list"]).stdout;
    for line in listed.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(line.len() > name.len() + 5, "{name} says nothing");
        let described = place.fedgenie(&["describe", name]).stdout;
        for rust in ["[`", "crate::", "use fedgenie", "assert_eq"] {
            assert!(!line.contains(rust) && !described.contains(rust), "{rust:?} in {described}");
        }
        let example = described.split("# Example\n```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        if let (Some(example), true) = (example, name.starts_with("law/")) {
            let law = example.lines().find(|line| line.starts_with("latency.compute = ")).unwrap();
            let law = law.strip_prefix("latency.").unwrap();
            let text = scenario(TASK);
            let compute = text.lines().find(|line| line.starts_with("compute = ")).unwrap();
            place.write(SCENARIO, changed(&text, compute, law));
            let answer = place.fedgenie(&["run", SCENARIO, "--quiet"]);
            assert_eq!(answer.code, 0, "{name}: {answer:?}");
        }
    }
    let first = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap().split_once(' ').unwrap().1;
    assert_ne!(first("protocol/synchronous "), first("protocol/deadline "));
    assert_ne!(first("solver/sa "), first("solver/alsa "));
    for more in [&[][..], &["--learning"]] {
        let _ = std::fs::remove_file(place.path("my.toml"));
        assert_eq!(place.fedgenie(&[&["new", "my.toml"], more].concat()).code, 0);
        let again = place.fedgenie(&["new", "my.toml"]);
        assert!(again.code == 2 && again.stderr.contains("exists already; give another name"), "{again:?}");
        let answer = place.fedgenie(&["run", "my.toml", "--quiet", "--set", "stop.rounds=2", "--seeds", "1"]);
        assert_eq!(answer.code, 0, "{answer:?}");
    }
}
