//! Parts of a model that stay with clients, and examples that clients hold out: courses over several rounds in double
//! precision beside the run; measures, controls, bytes, time, files, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model};
use super::ditto::Kept;
use super::feddyn::{Examples, TABLE, TURNS, job_of, models, spread, table, table_world};
use super::support::{DEVICES, SCENARIO, Script, Workplace, changed};
use fedgenie::id::ClientId;
use fedgenie::policy::Policies;
use fedgenie::run::{Run, RunSettings};
use fedgenie::task::Labelled;
use fedgenie::world::World;
use std::collections::BTreeMap;

const STEPS: usize = 3;

fn with(entry: &str) -> String {
    format!("{TABLE}[algorithm.{entry}\n")
}

/// A job that moves some of the parameters alone: the slope of the others is cancelled.
fn moved(steps: usize, start: &[f64], examples: &[[f64; 3]], moves: &[usize]) -> Change {
    let mut model = start.to_vec();
    for _ in 0..steps {
        let change = job_of(1, &model, examples, |_, _| 0.0);
        moves.iter().for_each(|&place| model[place] += change[place]);
    }
    model.iter().zip(start).map(|(after, before)| after - before).collect()
}

/// The shared numbers after each round, and the private ones of its clients, ascending. `private` are the places of the
/// latter, `first` the epochs in which they are trained alone.
fn course(clients: &[Examples], private: &[usize], first: Option<usize>) -> (Vec<Change>, Vec<(u32, Change)>) {
    let shared: Vec<usize> = (0..3).filter(|place| !private.contains(place)).collect();
    let (mut global, mut own) = (vec![0.0; 3], BTreeMap::<u32, Change>::new());
    let (mut found, mut kept) = (Vec::new(), Vec::new());
    for turn in TURNS {
        let mut selected = turn.to_vec();
        selected.sort_unstable();
        let size = |client: &u32| clients[*client as usize].len() as f64;
        let total: f64 = turn.iter().map(size).sum();
        let mut mean = vec![0.0; 3];
        for client in selected {
            let examples = &clients[client as usize];
            let own = own.entry(client).or_insert_with(|| vec![0.0; 3]);
            let mut whole = global.clone();
            private.iter().for_each(|&place| whole[place] = own[place]);
            let sent = whole.clone();
            match first {
                None => add(&mut whole, 1.0, &job_of(STEPS, &sent, examples, |_, _| 0.0)),
                Some(epochs) => {
                    let change = moved(epochs, &whole, examples, private);
                    add(&mut whole, 1.0, &change);
                    let change = moved(STEPS, &whole, examples, &shared);
                    add(&mut whole, 1.0, &change);
                }
            }
            for &place in &shared {
                mean[place] += size(&client) / total * (whole[place] - sent[place]);
            }
            own.clone_from(&whole);
            kept.push((client, private.iter().map(|&place| whole[place]).collect()));
        }
        add(&mut global, 1.0, &mean);
        found.push(shared.iter().map(|&place| global[place]).collect());
    }
    (found, kept)
}

/// The private numbers that rounds left.
fn kept(world: &World) -> Vec<(u32, Vec<f32>)> {
    let mut kept = Kept::default();
    let policies = Policies::Server(Box::new(Script::new(&TURNS)));
    let mut run = Run::new(world, "personal", policies, RunSettings::default(), &mut kept);
    (0..TURNS.len()).for_each(|_| run.step().unwrap());
    drop(run);
    kept.0
}

/// With the bias private, with the weights, and in two phases, the first of which has other epochs.
#[test]
fn a_part_is_averaged_and_the_other_stays_with_its_client() {
    let clients = spread();
    for (entry, private, first) in [
        ("fedper]\nprivate = [\"linear.bias\"]", &[2][..], None),
        ("lg-fedavg]\nprivate = [\"linear.weight\"]", &[0, 1], None),
        ("fedrep]\nprivate = [\"linear.bias\"]", &[2], Some(1)),
        ("fedrep]\nprivate = [\"linear.weight\"]\nprivate_epochs = 5", &[0, 1], Some(5)),
    ] {
        let (shared, own) = course(&clients, private, first);
        let world = table_world(&clients, &with(entry));
        let found = models(&world, &TURNS);
        for (found, expected) in found.iter().zip(&shared) {
            assert_model(found, expected, 1e-5, entry);
        }
        let kept = kept(&world);
        assert_eq!(kept.len(), own.len(), "{entry}");
        for ((client, found), (expected_client, expected)) in kept.iter().zip(&own) {
            assert_eq!(client, expected_client);
            assert_model(found, expected, 1e-5, entry);
        }
    }
}

/// Momentum begins anew in the second phase, and decay moves the trained part alone.
#[test]
fn phases_have_momentum_and_decay_of_their_own() {
    let clients = spread();
    let (decay, momentum, rate) = (0.3, 0.5, 0.125);
    let optimizer = format!("{{ sgd = {{ lr = {rate}, momentum = {momentum}, weight_decay = {decay} }} }}");
    let text = changed(
        &with("fedrep]\nprivate = [\"linear.bias\"]\nprivate_epochs = 2"),
        "{ sgd = { lr = 0.125 } }",
        &optimizer,
    );
    let found = models(&table_world(&clients, &text), &[&[4], &[4]]);
    let mut model = vec![0.0; 3];
    for found in found {
        for (steps, moves) in [(2, &[2][..]), (STEPS, &[0, 1])] {
            let mut velocity = [0.0; 3];
            for _ in 0..steps {
                let change = job_of(1, &model, &clients[4], |place, _| decay * model[place]);
                for &place in moves {
                    velocity[place] = momentum * velocity[place] - change[place] / rate;
                    model[place] -= rate * velocity[place];
                }
            }
        }
        assert_model(&found, &model[..2], 1e-5, "shared");
    }
}

fn loss(model: &[f64], examples: &[[f64; 3]]) -> f64 {
    let squares = examples.iter().map(|[a, b, y]| (model[0] * a + model[1] * b + model[2] - y).powi(2));
    squares.sum::<f64>() / examples.len() as f64
}

/// All nine in one round. What travels is two numbers of three; nothing is measured on test data.
#[test]
fn clients_are_measured_by_their_whole_models() {
    let clients = spread();
    let place = Workplace::with(&changed(&with("fedper]\nprivate = [\"linear.bias\"]"), "rounds = 9", "rounds = 1"));
    place.write("table.csv", table(&clients));
    place.run_into("out", &["--models"]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let (shared, own) = course(&clients, &[2], None);
    let whole = |private: &Change| vec![shared[0][0], shared[0][1], private[0]];
    let losses = own[..9].iter().map(|(client, own)| loss(&whole(own), &clients[*client as usize]));
    let mean = losses.sum::<f64>() / 9.0;
    let metrics = rounds[0]["metrics"].as_object().unwrap();
    let found = metrics["client_loss_mean"].as_f64().unwrap();
    assert!((found - mean).abs() < 1e-5, "{found} beside {mean}");
    assert!(metrics.keys().all(|name| !name.starts_with("test_")), "{metrics:?}");
    assert_eq!((rounds[0]["up_bytes"].as_u64(), rounds[0]["down_bytes"].as_u64()), (Some(9 * 8), Some(9 * 8)));
    let names = |file: &str| {
        let bytes = place.read(&format!("out/runs/random-s1/{file}"));
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        String::from_utf8_lossy(&bytes[8..8 + header]).into_owned()
    };
    let (model, state) = (names("model.safetensors"), names("state.safetensors"));
    assert!(model.contains("\"linear.weight\"") && !model.contains("bias"), "{model}");
    assert!((0..9).all(|client| state.contains(&format!("\"client.{client}.model.linear.bias\""))), "{state}");
    assert!(!state.contains("weight"), "{state}");
    let run: serde_json::Value = serde_json::from_slice(&place.read("out/runs/random-s1/run.json")).unwrap();
    let measured = run["measured"].as_array().unwrap();
    let main: Vec<_> = measured.iter().filter(|metric| metric["main"] == true).map(|metric| &metric["name"]).collect();
    assert_eq!(main, ["client_loss_mean"], "models are compared by the mean over clients");
}

/// Two seconds for three steps of all examples, so that six epochs before take four seconds more.
#[test]
fn a_first_phase_takes_its_time() {
    let closed = |entry: &str| {
        let place = Workplace::with(&changed(&with(entry), "rounds = 9", "rounds = 1"));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        place.lines("out/runs/random-s1/rounds.jsonl")[0]["closed_s"].as_f64().unwrap()
    };
    assert_eq!(closed("fedper]\nprivate = [\"linear.bias\"]"), 4.0);
    let longer = closed("fedrep]\nprivate = [\"linear.bias\"]\nprivate_epochs = 6");
    assert!((longer - 8.0).abs() < 1e-8, "{longer}");
}

/// Under every protocol a run goes on to the same end when it is saved after every round.
#[test]
fn private_parts_are_kept_under_every_protocol() {
    let entries =
        ["fedper]\nprivate = [\"fc2\"]", "lg-fedavg]\nprivate = [\"fc1\"]", "fedrep]\nprivate = [\"fc2.bias\"]"];
    let beside = [
        "",
        "[compression]\nup = \"sign\"\n",
        "[algorithm.median]\n",
        "[privacy.dp-fedavg]\nclip = 1.0\nnoise_multiplier = 0.1\n",
    ];
    let mut kept = 0;
    for (index, protocol) in protocols().into_iter().enumerate() {
        let (beside, weighting) = match beside[index % beside.len()] {
            _ if protocol.contains("polynomial") => ("", "data-size"),
            beside if beside.contains("dp-fedavg") && protocol.contains("hierarchical") => ("", "uniform"),
            beside => (beside, "uniform"),
        };
        kept += assert_kept(&format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = \"iid\"\nheld_out = 0.25\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n[evaluate]\nservers = false\nclients = true\n\
             [aggregation]\nweighting = \"{weighting}\"\n[algorithm.{}\n{beside}{protocol}[policy.random]\n",
            entries[index % entries.len()]
        ));
    }
    assert!(kept >= 5);
}

/// A quarter of each client's examples, rounded down, is not trained on; clients are measured on it.
#[test]
fn clients_are_measured_on_what_they_hold_out() {
    let clients = spread();
    let text = changed(TABLE, "partition = \"by-column\"", "partition = \"by-column\"\nheld_out = 0.25");
    let text = format!(
        "{text}[evaluate]\nclients = true\n[controls]\ncentralised = {{ epochs = 3 }}\nlocal = {{ epochs = 3 }}\n"
    );
    let plain = table_world(&clients, TABLE);
    let whole: &Labelled = plain.task.as_ref().unwrap().downcast().unwrap();
    let (train, held) = whole.partition.held_out(0.25, &plain.streams).unwrap();
    let all: Examples = clients.concat();
    let of = |rows: &[u32]| -> Examples { rows.iter().map(|&row| all[row as usize]).collect() };
    let each = || (0..9).map(ClientId);
    assert!(each().all(|client| held.size(client) == clients[client.index()].len() / 4));
    let trained: Vec<Examples> = each().map(|client| of(&train.client(client))).collect();
    let tested: Vec<Examples> = each().map(|client| of(&held.client(client))).collect();
    // One round of everybody.
    let size = |examples: &Examples| examples.len() as f64;
    let total: f64 = trained.iter().map(size).sum();
    let mut model = vec![0.0; 3];
    for examples in &trained {
        add(&mut model, size(examples) / total, &job_of(STEPS, &[0.0; 3], examples, |_, _| 0.0));
    }
    let mean = |losses: &dyn Fn(usize) -> f64| {
        let found: Vec<f64> = (0..9).filter(|&client| !tested[client].is_empty()).map(losses).collect();
        found.iter().sum::<f64>() / found.len() as f64
    };
    let place = Workplace::with(&changed(&text, "rounds = 9", "rounds = 1"));
    place.write("table.csv", table(&clients));
    place.run_into("out", &[]);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    let found = rounds[0]["metrics"]["client_loss_mean"].as_f64().unwrap();
    let expected = mean(&|client| loss(&model, &tested[client]));
    assert!((found - expected).abs() < 1e-5, "{found} beside {expected}");
    // Controls on the same examples.
    let run: serde_json::Value = serde_json::from_slice(&place.read("out/runs/random-s1/run.json")).unwrap();
    let control = |name: &str| run["controls"][name]["client_loss_mean"].as_f64().unwrap();
    let central = job_of(3, &[0.0; 3], &trained.concat(), |_, _| 0.0);
    let level = |examples: &Examples| [0.0, 0.0, examples.iter().map(|[_, _, y]| y).sum::<f64>() / size(examples)];
    for (name, expected) in [
        ("initial", mean(&|client| loss(&[0.0; 3], &tested[client]))),
        ("centralised", mean(&|client| loss(&central, &tested[client]))),
        ("local", mean(&|client| loss(&job_of(3, &[0.0; 3], &trained[client], |_, _| 0.0), &tested[client]))),
        ("mean", mean(&|client| loss(&level(&trained.concat()), &tested[client]))),
        ("own-mean", mean(&|client| loss(&level(&trained[client]), &tested[client]))),
    ] {
        let found = control(name);
        assert!((found - expected).abs() < 1e-5, "{name}: {found} beside {expected}");
    }
}

/// Two epochs of one step each, from the model after a round: the shared one, or each client's own. Records and digest
/// are as without it.
#[test]
fn clients_train_the_last_model_further() {
    let clients = spread();
    let run = |entry: &str, tune: &str| {
        let text = format!("{}[evaluate]\nclients = true\n{tune}", with(entry));
        let place = Workplace::with(&changed(&text, "rounds = 9", "rounds = 1"));
        place.write("table.csv", table(&clients));
        place.run_into("out", &[]);
        let run: serde_json::Value = serde_json::from_slice(&place.read("out/runs/random-s1/run.json")).unwrap();
        (run, place.read("out/runs/random-s1/rounds.jsonl"))
    };
    let tune = "fine_tune = { epochs = 2 }\n";
    let mut average = vec![0.0; 3];
    let total: usize = clients.iter().map(Vec::len).sum();
    for examples in &clients {
        add(&mut average, examples.len() as f64 / total as f64, &job_of(STEPS, &[0.0; 3], examples, |_, _| 0.0));
    }
    let (shared, own) = course(&clients, &[2], None);
    let whole = |client: usize| vec![shared[0][0], shared[0][1], own[client].1[0]];
    for (entry, starts) in [
        ("fedavg]", (0..9).map(|_| average.clone()).collect::<Vec<Change>>()),
        ("fedper]\nprivate = [\"linear.bias\"]", (0..9).map(whole).collect()),
    ] {
        let tuned = |client: usize| {
            let mut model = starts[client].clone();
            let change = job_of(2, &model, &clients[client], |_, _| 0.0);
            add(&mut model, 1.0, &change);
            loss(&model, &clients[client])
        };
        let expected = (0..9).map(tuned).sum::<f64>() / 9.0;
        let (found, rounds) = run(entry, tune);
        let value = |name: &str| found["final"][name].as_f64().unwrap();
        assert!((value("client_loss_mean_tuned") - expected).abs() < 1e-5, "{entry}: {found} beside {expected}");
        assert!(value("client_loss_mean_tuned") < value("client_loss_mean"));
        let (plain, plain_rounds) = run(entry, "");
        assert!(
            plain["digest"] == found["digest"]
                && plain_rounds == rounds
                && plain["final"].get("client_loss_mean_tuned").is_none()
        );
    }
}

/// Some clients hold nothing out, and are in no statistic; metrics that need outputs know that. Where one policy keeps
/// layers at clients, all are compared by the mean over clients.
#[test]
fn clients_without_anything_held_out_are_left_out() {
    let place = Workplace::with(&format!(
        "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\npartition = {{ dirichlet = {{ alpha = 0.3 }} }}\n\
         data = {{ synthetic = {{ height = 4, width = 4, train = 60, test = 40 }} }}\nheld_out = 0.25\nmetrics = [\"f1\"]\n\
         [evaluate]\nclients = true\n[protocol.synchronous]\ncohort = 3\n[policy.average]\nkind = \"random\"\n\
         [policy.own]\nkind = \"random\"\nwith = {{ algorithm = {{ fedper = {{ private = [\"fc2\"] }} }} }}\n"
    ));
    let said = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]).stdout;
    assert!(said.contains("client accuracy mean") && !said.contains("best test accuracy"), "{said}");
    for run in ["average-s1", "own-s1"] {
        let run: serde_json::Value = serde_json::from_slice(&place.read(&format!("out/runs/{run}/run.json"))).unwrap();
        assert!(run["final"]["client_f1_mean"].is_f64() || run["final"]["client_f1_mean"].is_null());
        let main = run["measured"].as_array().unwrap().iter().find(|metric| metric["main"] == true).unwrap();
        assert_eq!(main["name"], "client_accuracy_mean");
    }
}

/// Controls of clients' own models are those of plain averaging: a model as a whole.
#[test]
fn controls_are_trained_as_wholes() {
    let controls = |entry: &str| {
        let text = format!(
            "{}[evaluate]\nclients = true\n[controls]\ncentralised = {{ epochs = 3 }}\nlocal = {{ epochs = 3 }}\n",
            with(entry)
        );
        let place = Workplace::with(&changed(&text, "rounds = 9", "rounds = 1"));
        place.write("table.csv", table(&spread()));
        place.run_into("out", &[]);
        let run: serde_json::Value = serde_json::from_slice(&place.read("out/runs/random-s1/run.json")).unwrap();
        ["centralised", "local"].map(|name| run["controls"][name].clone())
    };
    let plain = controls("fedavg]");
    assert!(plain[0]["client_loss_mean"].is_f64() && plain[0]["test_loss"].is_f64());
    for entry in ["ditto]", "fedper]\nprivate = [\"linear.bias\"]", "fedrep]\nprivate = [\"linear.bias\"]"] {
        assert_eq!(controls(entry), plain, "{entry}");
    }
}

#[test]
fn what_is_not_defined_is_refused() {
    let recommendation = format!(
        "{NINE}{DEVICES}[task.recommendation]\nusers = 9\ndata = {{ synthetic = {{ users = 9, items = 30, ratings = 150 }} }}\n\
         cutoffs = [5]\nmodel = {{ mf = {{ dimensions = 3 }} }}\n[algorithm.fedper]\nprivate = [\"items\"]\n\
         [protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    let bias = "fedper]\nprivate = [\"linear.bias\"]";
    let split =
        |key: &str| changed(&with(bias), "partition = \"by-column\"", &format!("partition = \"by-column\"\n{key}"));
    for (text, said) in [
        (with("fedper]\nprivate = [\"fc\"]"), "the layers of this model are: linear ("),
        (with("fedper]\nprivate = [\"linear.weight\", \"linear.bias\"]"), "names all layers"),
        (with("lg-fedavg]\nprivate = []"), "names nothing"),
        (with("lg-fedavg]"), "private"),
        (with("fedrep]\nprivate = [\"linear.bias\"]\nprivate_epochs = 0"), "algorithm.fedrep.private_epochs"),
        (with(&format!("{bias}\n[algorithm.scaffold]")), "decides about the job"),
        (with(&format!("{bias}\n[algorithm.fedrep]\nprivate = [\"linear.bias\"]")), "decides about the job"),
        (with(&format!("{bias}\n[regret.counterfactual]")), "regret"),
        (
            with(&format!("{bias}\n[evaluate]\ntargets = [{{ metric = \"test_loss\", at_most = 1.0 }}]")),
            "client_loss_mean",
        ),
        (changed(&with(bias), "[policy.random]", "[policy.shapley]"), "keep a part of each model"),
        (split("validation = 0.2"), "take validation of the task out"),
        (split("held_out = 1.0"), "held_out"),
        (changed(TABLE, "partition = \"by-column\"", "partition = \"by-column\"\nheld_out = 0.2"), "evaluate.clients"),
        (with(&format!("{bias}\n[evaluate]\nclients = false")), "evaluate.clients: is false, and clients have models"),
        (split("held_out = 0.001"), "held_out: found 0.001; no client has so many examples"),
        (with("fedavg]\n[evaluate]\nfine_tune = { epochs = 1 }"), "write clients = true"),
        (with("fedavg]\n[evaluate]\nclients = true\nfine_tune = { epochs = 0 }"), "fine_tune.epochs"),
        (recommendation, "labelled examples"),
    ] {
        let place = Workplace::with(&text);
        place.write("table.csv", table(&spread()));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert!(answer.code == 2 && answer.stderr.contains(said), "{said}: {answer:?}");
    }
}

/// In a list of tables the line is that of the entry.
#[test]
fn a_metric_that_is_not_measured_is_told_at_its_line() {
    let targets = "[evaluate]\nevery = 1\ntargets = [\n{ metric = \"client_loss_mean\", at_most = 1.0 },\n\
                   { metric = \"test_loss\", at_most = 1.0 },\n]";
    let text = with(&format!("fedper]\nprivate = [\"linear.bias\"]\n{targets}"));
    let place = Workplace::with(&text);
    place.write("table.csv", table(&spread()));
    let answer = place.fedgenie(&["run", SCENARIO, "--quiet"]);
    let line = 1 + text.lines().position(|line| line.contains("test_loss")).unwrap();
    let told = format!("fedgenie: error: {SCENARIO}:{line}: evaluate.targets.1.metric");
    assert!(answer.code == 2 && answer.stderr.starts_with(&told), "{told}: {answer:?}");
}
