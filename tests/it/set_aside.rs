//! Rows of labelled tasks that are set aside for validation, and metrics that a scenario adds.

use super::support::{Answer, SCENARIO, Workplace, changed, labelled, line_of, world};
use fedgenie::data::SetAside;
use fedgenie::id::ClientId;
use fedgenie::model::weights::read_safetensors;
use fedgenie::model::{Batch, evaluate, outputs};
use fedgenie::rng::Streams;
use serde_json::Value;

const TASK: &str = "[task.classification]\n\
    data = { synthetic = { classes = 4, height = 4, width = 4, train = 203, test = 60 } }\n\
    model = { mlp = { hidden = [6] } }\n";

fn scenario(task: &str, more: &str) -> String {
    format!(
        r#"name = "aside"
seeds = 1
[stop]
rounds = 5
[population]
clients = 6
[population.latency]
download = {{ constant = "10 ms" }}
compute = {{ exponential = {{ mean = "1 s" }} }}
upload = {{ constant = "20 ms" }}
{task}
[training]
batch = 8
optimizer = {{ sgd = {{ lr = 0.1 }} }}
{more}
"#
    )
}

const ROUNDS: &str = "[protocol.synchronous]\ncohort = 3\n[policy.random]\n";

/// The loss, the accuracy and the macro F1 of the last model on validation rows, read from its file and worked out
/// from counts of classes.
#[test]
fn rounds_have_what_the_model_file_has_on_the_rows() {
    let task = format!("{TASK}validation = 0.2\nmetrics = [\"f1\"]\n");
    let scenario =
        scenario(&task, &format!("[evaluate]\ntargets = [{{ metric = \"valid_f1\", at_least = 0.1 }}]\n{ROUNDS}"));
    let place = Workplace::with(&scenario);
    place.run_into("out", &["--models"]);
    let world = world(&scenario, 1);
    let task = labelled(&world);
    // ⌊0.2·203⌋ = 40.
    let SetAside { valid, train } = SetAside::draw(203, 0.2, &Streams::new(1)).unwrap();
    assert_eq!((valid.len(), train.len()), (40, 163));
    let mut held: Vec<u32> = (0..6).flat_map(|client| task.partition.client(ClientId(client)).to_vec()).collect();
    held.sort_unstable();
    assert_eq!(held, train);
    let model = read_safetensors(&*task.model, &place.path("out/runs/random-s1/model.safetensors")).unwrap();
    let rows = Batch { data: &task.data.train, examples: &valid };
    let found = evaluate(&*task.model, &model, rows, false);
    let scores = outputs(&*task.model, &model, &[rows], false).numbers;
    let labels = task.data.train.classes().unwrap().0;
    let mut table = [[0.0; 4]; 4];
    for (scores, &row) in scores.chunks_exact(4).zip(&valid) {
        let best = (0..4).rev().max_by(|&one, &other| scores[one].total_cmp(&scores[other])).unwrap();
        table[usize::from(labels[row as usize])][best] += 1.0;
    }
    let of_class = |class: usize| {
        let of_label: f64 = table[class].iter().sum();
        let predicted: f64 = table.iter().map(|row| row[class]).sum();
        (of_label + predicted > 0.0).then(|| 2.0 * table[class][class] / (of_label + predicted))
    };
    let classes: Vec<f64> = (0..4).filter_map(of_class).collect();
    let right: f64 = (0..4).map(|class| table[class][class]).sum();
    assert_eq!(found.correct as f64, right);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let metrics = rounds[4]["metrics"].as_object().unwrap();
    let names = ["test_loss", "test_accuracy", "test_f1", "valid_loss", "valid_accuracy", "valid_f1"];
    assert!(metrics.keys().eq(names), "{metrics:?}");
    let f1 = classes.iter().sum::<f64>() / classes.len() as f64;
    for (name, expected) in [("valid_loss", found.loss()), ("valid_accuracy", right / 40.0), ("valid_f1", f1)] {
        assert!((metrics[name].as_f64().unwrap() - expected).abs() < 1e-9, "{name}: {} {expected}", metrics[name]);
    }
    let summary = &place.json("out/summary.json")["runs"][0];
    assert_eq!(summary["final"]["valid_f1"], metrics["valid_f1"]);
    assert_eq!(summary["reached"][0]["metric"], "valid_f1");
    assert_eq!(summary["partition"]["sizes"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(), 163);
    let Answer { code, stderr, .. } = place.fedgenie(&["verify", "out"]);
    assert_eq!(code, 0, "{stderr}");
}

/// A share of 0 is no key: the same resolved scenario, the same digests. Metrics that are added change no model.
#[test]
fn the_default_changes_nothing() {
    let models = |task: &str| {
        let place = Workplace::with(&scenario(task, ROUNDS));
        place.run_into("out", &["--models"]);
        (place.read("out/scenario.toml"), place.digests("out"), place.read("out/runs/random-s1/model.safetensors"))
    };
    let plain = models(TASK);
    assert_eq!(models(&format!("{TASK}validation = 0.0\nmetrics = []\n")), plain);
    let (_, digests, model) = models(&format!("{TASK}metrics = [\"f1\"]\n"));
    assert_eq!(model, plain.2);
    assert_eq!(digests[0].1, plain.1[0].1, "the timeline");
    assert_ne!(digests[0].2, plain.1[0].2, "a metric belongs to the digest of models");
    assert_ne!(models(&format!("{TASK}validation = 0.1\n")).2, plain.2);
}

/// Edge servers with test examples of their own, data that move, clusters, hindsight by validation rows, policies that
/// judge by them: runs end, and replay.
#[test]
fn validation_goes_with_everything() {
    let aside = |partition: &str| format!("{TASK}validation = 0.15\npartition = {partition}\n");
    let tiers = "[protocol.hierarchical]\nedges = 2\nparticipation = 0.7\n";
    let cases = [
        (aside("{ dirichlet = { alpha = 0.5 } }"), format!("{tiers}[policy.random]\n")),
        (
            aside("\"iid\"").replace("validation", "drift = { round = 3, rotate = 1 }\nvalidation"),
            format!("{tiers}[evaluate]\nservers = true\nlast = 2\n[policy.random]\n"),
        ),
        (
            aside(
                "{ dirichlet-two-level = { servers = 2, alpha_server = 0.5, alpha_client = 0.5, law = \"by-owner\" } }",
            ),
            format!("{tiers}[clusters]\ncount = 2\nassign = {{ loss = {{}} }}\n[policy.random]\n"),
        ),
        (aside("{ label-shards = { shards_per_client = 2 } }"), ROUNDS.replace("random", "mab-frs")),
        (
            aside("\"iid\""),
            format!("[regret]\ncounterfactual = true\nmeters = []\nutility = {{ influence = {{}} }}\n{ROUNDS}"),
        ),
        (
            aside("\"iid\""),
            format!(
                "[regret]\ncounterfactual = true\nmeters = []\nutility = {{ aggregate = {{ valid_accuracy = 1.0 }} }}\n{ROUNDS}"
            ),
        ),
    ];
    for (task, more) in &cases {
        let place = Workplace::with(&scenario(task, more));
        place.run_into("out", &[]);
        let run = &place.json("out/summary.json")["runs"][0];
        assert!(run["final"]["valid_accuracy"].is_number() && run["final"]["valid_loss"].is_number(), "{more}: {run}");
        let Answer { code, stderr, .. } = place.fedgenie(&["verify", "out"]);
        assert_eq!(code, 0, "{more}: {stderr}");
    }
}

/// A policy's quality is judged by validation rows, and without any by test rows: if one client trains, its reputation
/// in MAB-FRS after a round is γ times the gain in accuracy there.
#[test]
fn quality_is_that_of_validation_rows() {
    let more = "[record]\nexplain = true\n[protocol.synchronous]\ncohort = 1\n[policy.mab-frs]\ngamma = 0.5\n";
    let text = changed(&scenario(&format!("{TASK}validation = 0.2\n"), more), "rounds = 5", "rounds = 1");
    let text = changed(&text, "batch = 8", "epochs = 3\nbatch = 8");
    for (text, metric) in
        [(text.clone(), "valid_accuracy"), (changed(&text, "validation = 0.2\n", ""), "test_accuracy")]
    {
        let place = Workplace::with(&text);
        place.run_into("out", &[]);
        let round = &place.lines("out/runs/mab-frs-s1/rounds.jsonl")[0];
        let run = &place.json("out/summary.json")["runs"][0];
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
        let gain = number(&run["final"][metric]) - number(&run["controls"]["initial"][metric]);
        let remembered = number(&round["explain"][0]["after"]["R"][0]);
        assert!(gain != 0.0 && (remembered - 0.5 * gain).abs() < 1e-12, "{metric}: {remembered} {gain}");
    }
}

/// Groups stay whole, rows of files are drawn for each seed, and a group may lose all its rows.
#[test]
fn groups_of_a_table_stay_whole() {
    let rows: String = (0..40).map(|row| format!("{row},{},{},g{}\n", row % 7, row % 3, row % 8)).collect();
    let task = "[task.softmax-regression]\n\
        data = { csv = { train = \"a.csv\", test_fraction = 0.25, label = \"y\", group = \"g\" } }\n\
        partition = \"by-column\"\nvalidation = 0.2\n";
    let text = scenario(task, ROUNDS);
    let place = Workplace::with(&text);
    place.write("a.csv", format!("x,z,y,g\n{rows}"));
    place.run_into("out", &[]);
    let run = &place.json("out/summary.json")["runs"][0];
    // Of 40 rows 10 are for testing, of the other 30 ⌊0.2·30⌋ = 6 for validation.
    let sizes: u64 = run["partition"]["sizes"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(sizes, 24);
    let refused = changed(&text, "validation = 0.2", "validation = 0.01");
    place.write(SCENARIO, &refused);
    let Answer { code, stderr, .. } = place.fedgenie(&["run", SCENARIO]);
    let start = format!(
        "fedgenie: error: {SCENARIO}:{}: task.softmax-regression.validation",
        line_of(&refused, "validation = 0.01")
    );
    assert!(code == 2 && stderr.starts_with(&start), "{start}\n{stderr}");
    assert!(stderr.contains("0.01 of 30 training rows, which is 0 of them"), "{stderr}");
}

#[test]
fn wrong_names_and_shares_are_refused_with_their_line() {
    for (key, path, words) in [
        ("validation = 1.5", "validation", "found 1.5; expected a share of at least 0 and below 1"),
        ("metrics = [\"mae\"]", "metrics", "found \"mae\"; expected names among f1"),
        ("metrics = [\"f1\", \"f1\"]", "metrics", "\"f1\" is listed twice"),
    ] {
        let text = scenario(&format!("{TASK}{key}\n"), ROUNDS);
        let Answer { code, stdout, stderr } = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        let start = format!("fedgenie: error: {SCENARIO}:{}: task.classification.{path}: ", line_of(&text, key));
        assert!(stderr.starts_with(&start) && stderr.contains(words), "{start}\n{stderr}");
    }
    let text =
        scenario(TASK, &format!("[evaluate]\ntargets = [{{ metric = \"valid_loss\", at_most = 1.0 }}]\n{ROUNDS}"));
    let Answer { code, stderr, .. } = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
    assert!(code == 2 && stderr.contains("this task's metrics are: test_loss, test_accuracy"), "{stderr}");
}

#[test]
fn metrics_are_listed_and_described() {
    let place = Workplace::new();
    let list = place.fedgenie(&["list", "metric"]).stdout;
    assert!(list.contains("metric/f1 ") && list.contains("metric/hr_k ") && list.contains("metric/loss "), "{list}");
    let described = place.fedgenie(&["describe", "metric/rmse"]).stdout;
    for part in ["Root of the mean squared error", "Smaller values are better", "Needs errors of predicted numbers"] {
        assert!(described.contains(part), "{part}: {described}");
    }
}
