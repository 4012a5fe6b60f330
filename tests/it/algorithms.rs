//! `[algorithm]` through the whole program: every job with every combination and every step, under every protocol,
//! saved after every round; bytes; what is refused, and where.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::support::{DEVICES, SCENARIO, Workplace, changed, line_of};
use fedgenie::experiment::Experiment;
use fedgenie::model::weights::Tensor;
use fedgenie::scenario::tree;
use fedgenie::task::DataCache;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const TASKS: [&str; 2] = [
    "[task.classification]\nmodel = { mlp = { hidden = [6] } }\npartition = { dirichlet = { alpha = 0.5 } }\n\
     data = { synthetic = { height = 4, width = 4, train = 120, test = 40 } }\n",
    "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\ncutoffs = [5]\n\
     transfer = { down = \"rows\", up = \"rows\" }\nmodel = { mf = { dimensions = 3 } }\n",
];
const JOBS: [&str; 4] =
    ["", "[algorithm.scaffold]\n", "[algorithm.scaffold]\noption = 1\n", "[algorithm.fedprox]\nmu = 0.5\n"];
const COMBINATIONS: [&str; 3] = ["", "[algorithm.fednova]\n", "[algorithm.trimmed-mean]\nfraction = 0.34\n"];
/// Of tables, MOON and centred clipping are not defined.
const OTHERS: [&str; 10] = [
    "[algorithm.moon]\n",
    "[algorithm.feddyn]\nalpha = 0.1\n",
    "[algorithm.qfedavg]\n",
    "[algorithm.median]\n",
    "[algorithm.geometric-median]\n",
    "[algorithm.krum]\nbyzantine = 1\n",
    "[algorithm.multi-krum]\nbyzantine = 1\n",
    "[algorithm.bulyan]\nbyzantine = 1\n",
    "[algorithm.norm-clipping]\nnorm = 0.00001\n",
    "[algorithm.centred-clipping]\nradius = 0.05\n",
];
const STEPS: [&str; 2] = ["", "server = { adam = { lr = 0.1 } }\n"];

fn scenario(task: &str, entries: &str, step: &str, protocol: &str) -> String {
    let devices = changed(DEVICES, "momentum = 0.5", "momentum = 0.0");
    let aggregation = format!("[aggregation]\nweighting = \"uniform\"\n{step}");
    format!("{NINE}{devices}{task}{entries}{aggregation}{protocol}[policy.random]\n")
}

/// The tensors of a file: the length of a header, the header in JSON, numbers.
fn tensors(file: &[u8]) -> Vec<Tensor> {
    let (length, rest) = file.split_first_chunk::<8>().unwrap();
    let (header, numbers) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: Value = serde_json::from_slice(header).unwrap();
    let named = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    let list =
        |value: &Value| value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect::<Vec<_>>();
    let one = |(name, tensor): (&String, &Value)| {
        let [begin, end] = list(&tensor["data_offsets"])[..] else { panic!("{tensor}") };
        let (bytes, _) = numbers[begin..end].as_chunks::<4>();
        let values = bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Tensor { name: name.clone(), shape: list(&tensor["shape"]), values }
    };
    named.map(one).collect()
}

/// The digest of the model, or why there is no world.
fn model(text: &str) -> Result<String, String> {
    let root = tree::parse(Path::new(SCENARIO), text).unwrap();
    let experiment = Experiment::from_tree(&root, Path::new("."), None).map_err(|error| error.to_string())?;
    let world = experiment.world(0, 1, &DataCache::default()).map_err(|error| error.to_string())?;
    let threads = fedgenie::experiment::Threads::new(2).unwrap();
    let run = experiment.runs().remove(0);
    Ok(experiment.run_one(&run, &world, &mut fedgenie::recorder::NoSink, &threads, None).unwrap().digest.model)
}

/// Under rounds of one server all pairs are defined, and each makes another model.
#[test]
fn every_pair_makes_a_model_of_its_own() {
    let protocol = "[protocol.synchronous]\ncohort = 3\n";
    for task in TASKS {
        let mut seen = BTreeMap::new();
        for (job, combination) in JOBS.iter().flat_map(|job| COMBINATIONS.map(|combination| (job, combination))) {
            for step in STEPS {
                let name = format!("{job}{combination}{step}");
                let found = model(&scenario(task, &format!("{job}{combination}"), step, protocol)).unwrap();
                if let Some(other) = seen.insert(found, name.clone()) {
                    panic!("{name} is as {other}");
                }
            }
        }
        assert_eq!(seen.len(), JOBS.len() * COMBINATIONS.len() * STEPS.len());
    }
}

#[test]
fn every_other_entry_makes_a_model_of_its_own() {
    let protocol = "[protocol.synchronous]\ncohort = 9\n";
    for (task, is_table) in TASKS.into_iter().zip([false, true]) {
        let mut seen = BTreeMap::from([(model(&scenario(task, "", "", protocol)).unwrap(), "")]);
        for entry in OTHERS {
            match model(&scenario(task, entry, "", protocol)) {
                Ok(found) => {
                    let other = seen.insert(found, entry);
                    assert!(other.is_none(), "{entry} is as {other:?}");
                }
                Err(message) => {
                    let is_named = ["moon", "centred-clipping"].iter().any(|name| message.contains(name));
                    assert!(is_table && is_named, "{message}");
                }
            }
        }
        assert_eq!(seen.len(), 1 + OTHERS.len() - if is_table { 2 } else { 0 });
    }
}

/// Under every protocol an entry is refused by name, or runs on to the same end when it is saved after every round.
#[test]
fn other_entries_are_kept_or_refused_under_every_protocol() {
    let (mut kept, mut refused) = (0, BTreeSet::new());
    for protocol in protocols() {
        for (index, entry) in OTHERS.into_iter().enumerate() {
            let entry = entry.replace("= 1\n", "= 0\n");
            let text = scenario(TASKS[index % 2], &entry, "", protocol);
            match model(&text) {
                Ok(_) => kept += assert_kept(&text),
                Err(message) => {
                    let name = entry.split([']', '[']).nth(1).unwrap();
                    assert!(message.contains(name), "{message}\n{text}");
                    refused.insert(message);
                }
            }
        }
    }
    assert!(kept >= 30 && !refused.is_empty(), "{kept}, {refused:?}");
}

#[test]
fn fedprox_is_the_proximal_term_of_training() {
    for task in TASKS {
        let protocol = "[protocol.synchronous]\ncohort = 3\n";
        let plain = scenario(task, "", "", protocol);
        let pulled = changed(&plain, "[training]\n", "[training]\nproximal = 0.5\n");
        let entry = scenario(task, JOBS[3], "", protocol);
        assert_eq!(model(&entry).unwrap(), model(&pulled).unwrap());
        assert_ne!(model(&entry).unwrap(), model(&plain).unwrap());
        let both = changed(&entry, "[training]\n", "[training]\nproximal = 0.5\n");
        assert!(model(&both).unwrap_err().contains("[training] proximal"));
    }
}

/// Under every protocol a pair is refused by name, or runs on to the same end when it is saved after every round.
#[test]
fn pairs_are_kept_or_refused_under_every_protocol() {
    let (mut kept, mut refused) = (0, BTreeSet::new());
    for protocol in protocols() {
        for (task, job) in TASKS.iter().zip([JOBS[1], JOBS[2]]) {
            for combination in COMBINATIONS {
                let text = scenario(task, &format!("{job}{combination}"), "", protocol);
                match model(&text) {
                    Ok(_) => kept += assert_kept(&text),
                    Err(message) => {
                        let is_named = message.contains("algorithm.scaffold") && protocol.contains("hierarchical")
                            || message.contains("algorithm.trimmed-mean") && protocol.contains("staleness");
                        assert!(is_named, "{message}\n{text}");
                        refused.insert(message);
                    }
                }
            }
        }
    }
    assert!(kept >= 20 && !refused.is_empty(), "{kept}, {refused:?}");
}

/// Down and up, of a model and of rows with their ids: SCAFFOLD twice the numbers, FedNova 4 bytes more up.
#[test]
fn what_travels_is_counted() {
    let protocol = "[protocol.synchronous]\ncohort = 3\n";
    for (task, is_table) in TASKS.into_iter().zip([false, true]) {
        let bytes = |entries: &str| {
            let place = Workplace::with(&scenario(task, entries, "", protocol));
            place.run_into("out", &[]);
            let round = place.lines("out/runs/random-s1/rounds.jsonl").remove(0);
            let arrived = round["arrived"].as_array().unwrap().len() as u64;
            [round["down_bytes"].as_u64().unwrap(), round["up_bytes"].as_u64().unwrap(), arrived]
        };
        let [down, up, arrived] = bytes("");
        let [of_nova_down, of_nova_up, _] = bytes("[algorithm.fednova]\n");
        assert_eq!([of_nova_down, of_nova_up - up], [down, 4 * arrived]);
        let [of_fair_down, of_fair_up, _] = bytes("[algorithm.qfedavg]\n");
        assert_eq!([of_fair_down, of_fair_up - up], [down, 4 * arrived]);
        let [twice_down, twice_up, _] = bytes("[algorithm.scaffold]\n");
        // Rows of three numbers with an id: 16 bytes, and 12 of the control variate.
        let more = |bytes: u64| if is_table { bytes / 16 * 12 } else { bytes };
        assert_eq!([twice_down - down, twice_up - up], [more(down), more(up)]);
    }
}

/// `state.safetensors` has the names and shapes of the model's file, and `c` is the mean of all `c_k`.
#[test]
fn what_is_remembered_is_written_beside_the_model() {
    for task in TASKS {
        let place = Workplace::with(&scenario(task, JOBS[1], "", "[protocol.synchronous]\ncohort = 3\n"));
        place.run_into("out", &["--models"]);
        let read = |name: &str| tensors(&place.read(&format!("out/runs/random-s1/{name}")));
        let (model, state) = (read("model.safetensors"), read("state.safetensors"));
        let server: Vec<_> = state.iter().filter(|tensor| tensor.name.starts_with("server.c.")).collect();
        assert!(!server.is_empty());
        for tensor in server {
            let name = tensor.name.strip_prefix("server.c.").unwrap();
            let own = model.iter().find(|own| own.name == name).unwrap_or_else(|| panic!("{name} is in the model"));
            assert_eq!(tensor.shape, own.shape);
            let of_clients: Vec<_> = state
                .iter()
                .filter(|other| other.name.starts_with("client.") && other.name.ends_with(&format!(".c.{name}")))
                .collect();
            assert!(of_clients.len() > 1 && of_clients.len() <= 9);
            for (index, server) in tensor.values.iter().enumerate() {
                let sum: f64 = of_clients.iter().map(|own| f64::from(own.values[index])).sum();
                assert!((f64::from(*server) - sum / 9.0).abs() < 1e-6, "{name} {index}: {server}, {}", sum / 9.0);
            }
        }
        assert!(!state.iter().any(|tensor| tensor.name.contains("users")), "what is private is not corrected");
        let plain = Workplace::with(&scenario(task, "", "", "[protocol.synchronous]\ncohort = 3\n"));
        plain.run_into("out", &["--models"]);
        assert!(!plain.path("out/runs/random-s1/state.safetensors").exists());
    }
}

#[test]
fn wrong_entries_are_named_where_they_stand() {
    let protocol = "[protocol.synchronous]\ncohort = 3\n";
    let good = scenario(TASKS[0], "[algorithm.scaffold]\noption = 2\n", "", protocol);
    for (from, to, path) in [
        ("option = 2", "option = 3", "algorithm.scaffold.option"),
        ("option = 2", "options = 2", "algorithm.scaffold"),
        ("[algorithm.scaffold]\noption = 2\n", "[algorithm.fedsgd]\n", "algorithm"),
        ("[algorithm.scaffold]\noption = 2\n", "[algorithm.fedavg]\n[algorithm.fednova]\n", "algorithm.fednova"),
        (
            "[algorithm.scaffold]\noption = 2\n",
            "[algorithm.trimmed-mean]\nfraction = 0.5\n",
            "algorithm.trimmed-mean.fraction",
        ),
        ("momentum = 0.0", "momentum = 0.5", "algorithm.scaffold"),
    ] {
        let text = changed(&good, from, to);
        let place = Workplace::with(&text);
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(path), "{path}: {}", answer.stderr);
        assert!(!place.path("out").exists(), "nothing is left of {path}");
    }
    let text = changed(&good, "weighting = \"uniform\"", "weighting = \"data-size\"");
    let text = changed(&text, "[algorithm.scaffold]\noption = 2\n", "[algorithm.trimmed-mean]\n");
    let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert!(answer.code == 2 && answer.stderr.contains("data-size"), "{answer:?}");
    let line = line_of(&text, "[algorithm.trimmed-mean]");
    assert!(answer.stderr.contains(&format!(":{line}")), "{}", answer.stderr);
    // Left out, the weighting is the algorithm's.
    let text = changed(&text, "weighting = \"data-size\"\n", "");
    let place = Workplace::with(&text);
    place.run_into("out", &[]);
    assert!(place.text("out/scenario.toml").contains("weighting = \"uniform\""));
}

/// User 1 has rated everything: without negatives there are no steps, and no gradient.
#[test]
fn a_client_without_a_step_stops_nothing() {
    const RATINGS: &str = "user,item,split\n1,10,train\n1,20,train\n1,30,train\n1,40,train\n2,20,train\n2,30,train\n\
                           2,10,valid\n2,40,test\n3,10,train\n3,30,valid\n3,20,test\n";
    let place = Workplace::with("");
    place.write("ratings.csv", RATINGS);
    let mut models = BTreeSet::new();
    for entry in ["", "[algorithm.scaffold]\noption = 1\n", "[algorithm.scaffold]\n", "[algorithm.fednova]\n"] {
        place.write(
            "full.toml",
            format!(
                "name = \"full\"\nseeds = 1\n[stop]\nrounds = 4\n[population.latency]\n\
                 download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\n\
                 upload = {{ constant = \"1 s\" }}\n[task.recommendation]\n\
                 data = {{ csv = {{ file = \"ratings.csv\", split = \"split\" }} }}\nsplit = \"file\"\n\
                 partition = \"users\"\ncutoffs = [1]\nmodel = {{ mf = {{ dimensions = 3 }} }}\n\
                 [training]\nbatch = 1\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n{entry}\
                 [protocol.synchronous]\ncohort = 3\n[policy.random]\n"
            ),
        );
        let answer = place.fedgenie(&["run", "full.toml", "--quiet", "--out", "out", "--overwrite"]);
        assert_eq!(answer.code, 0, "{entry}: {answer:?}");
        models.insert(place.json("out/summary.json")["runs"][0]["digest"]["model"].to_string());
    }
    assert_eq!(models.len(), 4, "each entry makes a model of its own: {models:?}");
}
