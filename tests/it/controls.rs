//! Controls that are trained, beside the policies: what they are, where they stand, and what refuses them.

use super::support::{Answer, SCENARIO, SETTINGS, Script, Workplace, changed, world};
use fedgenie::halt::NEVER;
use fedgenie::metric::{Place, value_of};
use fedgenie::policy::Policies;
use fedgenie::run::{Metrics, Run};
use fedgenie::world::{TrainedControl, World};
use std::path::Path;

/// Three clients with different shares of 90 examples, which take one step an epoch on all that they have.
const SKEWED: &str = r#"name = "controls"
seeds = 2
[stop]
rounds = 3
[population]
clients = 3
[population.latency]
download = { constant = "10 ms" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "20 ms" }
[task.softmax-regression]
data = { synthetic = { classes = 4, height = 4, width = 4, train = 90, test = 60 } }
validation = 0.2
partition = { dirichlet = { alpha = 0.5 } }
[training]
epochs = 4
batch = "all"
optimizer = { sgd = { lr = 0.2, momentum = 0.5 } }
[protocol.synchronous]
cohort = 1
[policy.random]
[policy.round-robin]
[controls]
centralised = { epochs = 12 }
local = { epochs = 12 }
"#;

/// The metrics after rounds of given clients.
fn after(world: &World, rounds: &[&[u32]]) -> Metrics {
    let policies = Policies::from(Box::new(Script::new(rounds)) as Box<_>);
    let mut run = Run::new(world, "double", policies, SETTINGS, fedgenie::recorder::NoSink);
    rounds.iter().for_each(|_| run.step().unwrap());
    run.metrics().to_vec()
}

fn control(world: &World, name: &str) -> TrainedControl {
    let all = world.trained_controls(&NEVER).unwrap();
    all.into_iter().find(|control| control.name == name).unwrap()
}

/// One round of one client alone is what `local` trains; with all examples in a batch no order is drawn.
#[test]
fn local_is_the_mean_of_what_each_client_reaches_alone() {
    let text = changed(SKEWED, "epochs = 4", "epochs = 12");
    let world = world(&text, 1);
    let local = control(&world, "local");
    assert_eq!((local.models, local.diverged, local.metrics.len()), (3, 0, 4));
    let alone: Vec<Metrics> = [0, 1, 2].map(|client| after(&world, &[&[client]])).to_vec();
    assert!(alone[0] != alone[1] && alone[1] != alone[2]);
    for &(id, found) in &local.metrics {
        let mean = alone.iter().map(|metrics| value_of(metrics, id).unwrap()).sum::<f64>() / 3.0;
        // The server adds the change to the model, which rounds.
        assert!((found - mean).abs() < 1e-6, "{id}: {found} and {mean}");
    }
}

/// The same data at one client, which trains for one round.
#[test]
fn centralised_is_one_client_with_everybodys_data() {
    let pooled = control(&world(SKEWED, 1), "centralised");
    let one = changed(SKEWED, "clients = 3", "clients = 1");
    let one = changed(&one, "partition = { dirichlet = { alpha = 0.5 } }", "partition = \"iid\"");
    let alone = after(&world(&changed(&one, "epochs = 4", "epochs = 12"), 1), &[&[0]]);
    assert_eq!(pooled.metrics.len(), 4);
    for &(id, found) in &pooled.metrics {
        // The order of the examples is another.
        let expected = value_of(&alone, id).unwrap();
        assert!((found - expected).abs() < 1e-5, "{id}: {found} and {expected}");
    }
    // An example that several clients have is there once.
    let overlapping = changed(SKEWED, "{ dirichlet = { alpha = 0.5 } }", "{ overlapping = { size = 60 } }");
    let overlapping = control(&world(&overlapping, 1), "centralised");
    for &(id, found) in &overlapping.metrics {
        let expected = value_of(&pooled.metrics, id).unwrap();
        assert!((found - expected).abs() < 1e-5, "{id}: {found} and {expected}");
    }
}

/// A batch and an optimizer of its own are those that the same job would have, and nobody else's.
#[test]
fn centralised_may_train_in_a_way_of_its_own() {
    let own = "centralised = { epochs = 12, batch = 30, optimizer = { adam = { lr = 0.01 } } }";
    let own = changed(SKEWED, "centralised = { epochs = 12 }", own);
    let trained = changed(SKEWED, "batch = \"all\"", "batch = 30");
    let trained = changed(&trained, "{ sgd = { lr = 0.2, momentum = 0.5 } }", "{ adam = { lr = 0.01 } }");
    assert_eq!(control(&world(&own, 1), "centralised"), control(&world(&trained, 1), "centralised"));
    assert_ne!(control(&world(&own, 1), "centralised"), control(&world(SKEWED, 1), "centralised"));
    assert_eq!(control(&world(&own, 1), "local"), control(&world(SKEWED, 1), "local"));
}

/// A control that does not learn where a policy does is at fault itself, and is not said to judge the policy.
#[test]
fn a_control_whose_settings_do_not_suit_it_is_told_of() {
    let slow = "centralised = { epochs = 1, optimizer = { sgd = { lr = 1e-45 } } }";
    let text = changed(SKEWED, "centralised = { epochs = 12 }", slow);
    let text = changed(&changed(&text, "rounds = 3", "rounds = 60"), "batch = \"all\"", "batch = 20");
    let place = Workplace::with(&text);
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO]);
    assert!(
        code == 0 && stdout.contains("and (centralised) does not, which needs other epochs, batch or optimizer"),
        "{stdout}{stderr}"
    );
    place.write("claims/one.toml", claim("settled = \"stop\""));
    let Answer { stdout, .. } = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(stdout.contains("(centralised) does not learn, though random does"), "{stdout}");
}

/// Neither the pull towards the model sent, nor the algorithm, nor a schedule is part of a control.
#[test]
fn controls_are_plain_training() {
    let plain = changed(SKEWED, ", momentum = 0.5", "");
    let more = "batch = \"all\"\nproximal = 5.0\nschedule = { step = { every = 1, factor = 0.1 } }\n";
    let federated = format!("{}[algorithm.scaffold]\n", changed(&plain, "batch = \"all\"\n", more));
    for name in ["centralised", "local"] {
        assert_eq!(control(&world(&plain, 2), name), control(&world(&federated, 2), name));
    }
}

#[test]
fn they_stand_beside_the_policies_and_change_no_run() {
    let place = Workplace::with(SKEWED);
    let Answer { code, stdout: told, stderr } = place.fedgenie(&["run", SCENARIO, "--out", "with", "--threads", "2"]);
    assert_eq!(code, 0, "{stderr}");
    let (head, _) = SKEWED.split_once("[controls]").unwrap();
    let without = Workplace::with(head);
    without.run_into("without", &[]);
    assert_eq!(place.digests("with"), without.digests("without"));
    let summary = place.json("with/summary.json");
    let controls = &summary["controls"][0];
    for name in ["initial", "majority", "centralised", "local"] {
        let found = &controls[name]["test_accuracy"];
        assert!(found["n"] == 2 && found["mean"].as_f64().unwrap() > 0.0, "{name}: {controls}");
        assert!(controls[name]["valid_loss"]["mean"].as_f64().is_some(), "{name}: {controls}");
    }
    let of = |name: &str| controls[name]["test_accuracy"]["mean"].as_f64().unwrap();
    assert!(of("centralised") > of("majority") && of("centralised") > of("initial"));
    // Those of a world are the same, whichever policy asks.
    let of_run = |run: &str| place.json(&format!("with/runs/{run}/run.json"))["controls"].clone();
    assert_eq!(of_run("random-s1"), of_run("round-robin-s1"));
    assert_ne!(of_run("random-s1"), of_run("random-s2"));
    let sentence = "% of the way from (";
    let note = "(centralised) trained on everybody's data in one place";
    for words in ["(centralised)  ", "(local)  ", sentence, note] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let Answer { code, stdout, .. } = place.fedgenie(&["report", "with"]);
    assert!(code == 0 && stdout.contains(sentence), "{stdout}");
    let page = place.text("with/report.html");
    assert!(page.contains(sentence) && page.contains("(local) trained by each client alone"));
    let Answer { code, stderr, .. } = place.fedgenie(&["verify", "with"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn clients_of_local_are_drawn_by_the_seed() {
    let few = changed(SKEWED, "local = { epochs = 12 }", "local = { epochs = 12, clients = 2 }");
    let (one, all) = (control(&world(&few, 1), "local"), control(&world(SKEWED, 1), "local"));
    assert_eq!((one.models, all.models), (2, 3));
    assert!(one != all && one == control(&world(&few, 1), "local"));
    let many = changed(SKEWED, "local = { epochs = 12 }", "local = { epochs = 12, clients = 4 }");
    assert_eq!(control(&world(&many, 1), "local"), all);
}

/// Recommendation and graphs: users' rows are private, and a client alone is judged by its users' test ratings.
#[test]
fn every_task_that_trains_has_them() {
    let ratings = |task: &str, clients: &str| {
        format!(
            "name = \"ratings\"\nseeds = 1\n[stop]\nrounds = 1\n[population]\n{clients}[population.latency]\n\
             download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\nupload = {{ constant = \"1 s\" }}\n\
             {task}\n[training]\nbatch = 16\noptimizer = {{ adam = {{ lr = 0.02 }} }}\n[protocol.synchronous]\ncohort = 2\n\
             [policy.random]\n[controls]\ncentralised = {{ epochs = 20 }}\nlocal = {{ epochs = 2 }}\n"
        )
    };
    let of_users = |model: &str| {
        let data = "{ synthetic = { users = 40, items = 60, ratings = 900 } }";
        ratings(&format!("[task.recommendation]\ndata = {data}\nmodel = {model}\ncutoffs = [5]"), "")
    };
    let graph = "[task.rating-graph]\nmodel = { gcn = { layers = 2, embedding = 8, hidden = 8 } }\n\
                 partition = { categories = { distribution = \"even\" } }\n";
    let scenarios = [
        (of_users("{ mf = { dimensions = 8 } }"), "auc", 40),
        (of_users("\"ncf\""), "auc", 40),
        (of_users("\"proxy-ncf\""), "auc", 40),
        (of_users("{ pfedrec = { dimensions = 8 } }"), "auc", 40),
        (of_users("{ gpfedrec = { dimensions = 8 } }"), "auc", 40),
        (of_users("{ fedpergnn = { dimensions = 8 } }"), "auc", 40),
        (ratings(graph, "clients = 4\n"), "rmse", 4),
    ];
    for (text, measure, models) in scenarios {
        let world = world(&text, 1);
        let all = world.trained_controls(&NEVER).unwrap();
        let value = |control: &TrainedControl| {
            let found = control.metrics.iter().find(|(id, _)| id.place == Place::Test && id.measure == measure);
            found.unwrap_or_else(|| panic!("{text}: {control:?}")).1
        };
        let initial = after(&world, &[&[0]]);
        assert!(!initial.is_empty());
        let [centralised, local] = &all[..] else { panic!("{all:?}") };
        assert_eq!((centralised.models, local.models, local.diverged), (1, models, 0), "{text}");
        // Of drawn ratings with trust little can be learned: a few epochs at each client may be as good.
        if measure == "auc" {
            let [all, alone] = [value(centralised), value(local)];
            assert!(all > 0.5 && all > alone, "{text}: {all} and {alone}");
        }
    }
}

#[test]
fn a_control_that_diverges_is_told_of() {
    let wild = changed(SKEWED, "lr = 0.2", "lr = 3e38");
    let wild = changed(&wild, "epochs = 4", "epochs = 1");
    let control = control(&world(&wild, 1), "centralised");
    assert!(control.metrics.is_empty() && control.diverged == 1, "{control:?}");
}

/// A loss that is finite and has grown is no divergence, and is told of as a policy's is.
#[test]
fn a_control_that_is_worse_than_at_first_is_told_of() {
    let own = "centralised = { epochs = 12, optimizer = { sgd = { lr = 1e6 } } }";
    let place = Workplace::with(&changed(SKEWED, "centralised = { epochs = 12 }", own));
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO]);
    let words = "the loss of the control centralised is above that of the initial model: test_loss";
    assert!(code == 0 && stdout.contains(words), "{stdout}{stderr}");
}

#[test]
fn what_cannot_be_made_is_refused() {
    let refused = |text: &str, words: &str| {
        let Answer { code, stdout, stderr } = Workplace::with(text).fedgenie(&["run", SCENARIO]);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(words), "{words}: {stderr}");
    };
    refused(
        &changed(SKEWED, "centralised = { epochs = 12 }", "centralised = { epochs = 0 }"),
        "controls.centralised.epochs: found 0",
    );
    for (more, words) in [
        (", batch = 0", "controls.centralised.batch: found 0"),
        (", optimizer = { adam = { lr = -1.0 } }", "controls.centralised.optimizer.adam.lr: found -1"),
    ] {
        let own = format!("centralised = {{ epochs = 12{more} }}");
        refused(&changed(SKEWED, "centralised = { epochs = 12 }", &own), words);
    }
    refused(&changed(SKEWED, "local = { epochs = 12 }", "local = { epochs = 0 }"), "controls.local.epochs: found 0");
    refused(
        &changed(SKEWED, "local = { epochs = 12 }", "local = { epochs = 1, clients = 0 }"),
        "controls.local.clients: found 0",
    );
    refused(&changed(SKEWED, "centralised = { epochs = 12 }", "central = { epochs = 12 }"), "centralised");
    let (head, rest) = SKEWED.split_once("[task.softmax-regression]").unwrap();
    let (_, rest) = rest.split_once("[protocol").unwrap();
    refused(&format!("{head}[protocol{rest}"), "trains nothing; take the key out");
}

/// A claim about a learned task, in whose file `[learns]` says when it counts.
fn claim(learns: &str) -> String {
    format!(
        r#"title = "Round-robin is as good as random selection"
source = "a test"
[scenario.small]
file = "../scenario.toml"
seeds = 4
[learns]
{learns}
[[check]]
claim = "accuracy is not lower"
statistic.difference = {{ scenario = "small", value = "final.test_accuracy", policy = "round-robin", against = ["random"] }}
holds = {{ at-least = 0 }}
expected = "not-judged"
[[check]]
claim = "it takes no longer"
statistic.ratio = {{ scenario = "small", value = "virtual_time_s", policy = "round-robin", against = ["random"] }}
holds = {{ at-most = 100 }}
expected = "supported"
learns = false
"#
    )
}

#[test]
fn a_claim_counts_only_if_the_model_learns_and_has_settled() {
    let learned = [
        ("height = 4, width = 4, train = 90, test = 60", "height = 12, width = 12, train = 600, test = 200"),
        ("dirichlet = { alpha = 0.5 }", "dirichlet = { alpha = 5.0 }"),
        ("batch = \"all\"", "batch = 20"),
        ("lr = 0.2, momentum = 0.5", "lr = 0.05"),
        ("rounds = 3", "rounds = 60"),
    ];
    let learned = learned.iter().fold(SKEWED.to_owned(), |text, (from, to)| changed(&text, from, to));
    let objection = |scenario: &str, learns: &str| {
        let place = Workplace::with(scenario);
        place.write("claims/one.toml", claim(learns));
        let Answer { stdout, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]);
        let found: serde_json::Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
        let checks = found["claims"][0]["checks"].as_array().unwrap().clone();
        assert_eq!(checks[1]["rows"][0]["verdict"], "supported", "no model decides it: {found}");
        let row = &checks[0]["rows"][0];
        let is_judged = row["verdict"] != "not-judged";
        assert_eq!(is_judged, row.get("note").is_none(), "{row}");
        row["note"].as_str().unwrap_or_default().to_owned()
    };
    let refused = |scenario: &str, learns: &str, words: &str| {
        let found = objection(scenario, learns);
        assert!(found.contains(words), "{words}: {found}");
    };
    assert_eq!(objection(&learned, "settled = 0.25\nmargin = 0.2"), "");
    assert_eq!(objection(&learned, "settled = \"stop\""), "");
    // Nothing is learned at this rate: neither in one place nor together.
    let slow = changed(&learned, "lr = 0.05", "lr = 1e-9");
    refused(
        &slow,
        "settled = \"stop\"",
        "(centralised) is no better than (majority): with all data in one place test_accuracy is",
    );
    // The centralised model has many more epochs than the federation.
    let short = changed(&changed(&learned, "rounds = 60", "rounds = 1"), "lr = 0.05", "lr = 0.002");
    let short = changed(&short, "centralised = { epochs = 12 }", "centralised = { epochs = 200 }");
    refused(&short, "settled = \"stop\"", "random ");
    refused(&learned, "settled = 0.9\nmargin = 0.0001", "has not settled: test_accuracy changes by");
    refused(&changed(&learned, "rounds = 60", "rounds = 4"), "settled = 0.25\nmargin = 0.2", "too few rounds");
    refused(&learned, "settled = \"stop\"\ntuned = [\"grid\"]", "there is no tuning/grid.chosen.toml");
    // What the scenario lacks is an error, as in any claim.
    let place = Workplace::with(&changed(&learned, "centralised = { epochs = 12 }\n", ""));
    place.write("claims/one.toml", claim("settled = 0.25"));
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(
        code == 2
            && stderr.contains("learns: small does not make the control centralised; give the scenario [controls]"),
        "{stderr}"
    );
    place.write("claims/one.toml", claim("settled = 1.5"));
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(code == 2 && stderr.contains("learns.settled: found 1.5"), "{stderr}");
}

/// A grid is tried with one policy alone, on seeds of its own, by validation data.
#[test]
fn settings_are_chosen_by_a_declared_grid() {
    let grid = "title = \"Rates\"\nscenario = \"../scenario.toml\"\npolicy = \"random\"\nseeds = [101, 102]\n\
                by = \"final.valid_loss\"\n[grid]\n\"training.epochs\" = [1, 4]\n\"training.optimizer.sgd.lr\" = [0.001, 0.2, 3e38]\n";
    let place = Workplace::with(SKEWED);
    place.write("tuning/rates.toml", grid);
    let tune = |more: &[&str]| {
        let command = [&["validate", "--claims", "claims", "--tune", "rates"][..], more].concat();
        place.fedgenie(&command)
    };
    let Answer { code, stdout, stderr } = tune(&["--out", "kept"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("mean of 2 seeds; * is the choice") && stdout.matches("\n* ").count() == 1, "{stdout}");
    let written = place.text("tuning/rates.chosen.toml");
    let chosen: toml::Table = written.parse().unwrap();
    let tried = chosen["tried"].as_array().unwrap();
    assert_eq!(tried.len(), 6);
    let means: Vec<Option<f64>> = tried.iter().map(|tried| tried.get("mean").and_then(toml::Value::as_float)).collect();
    // By hand: the runs of a point alone, with the same seeds.
    for (tried, mean) in tried.iter().zip(&means) {
        let setting = |path: &str| format!("{path}={}", tried["settings"][path]);
        let (epochs, lr) = (setting("training.epochs"), setting("training.optimizer.sgd.lr"));
        let command =
            ["run", SCENARIO, "--set", "seeds=[101, 102]", "--set", &epochs, "--set", &lr, "--json", "--quiet"];
        let Answer { stdout, .. } = place.fedgenie(&command);
        let alone: Option<serde_json::Value> = serde_json::from_str(&stdout).ok();
        let arm = alone.as_ref().and_then(|alone| alone["arms"].as_array()?.iter().find(|arm| arm["arm"] == "random"));
        let expected = arm.and_then(|arm| arm["values"]["final.valid_loss"]["mean"].as_f64());
        assert_eq!(*mean, expected.filter(|_| tried.get("failed").is_none()), "{tried}");
    }
    let least = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let best = tried.iter().find(|tried| tried.get("mean").and_then(toml::Value::as_float) == Some(least)).unwrap();
    assert_eq!(chosen["choice"], best["settings"]);
    assert!(means.iter().any(Option::is_none), "the largest rate diverges: {written}");
    // Kept runs are not made again, and the choice is the same.
    let Answer { code, stderr, .. } = tune(&["--out", "kept"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(place.text("tuning/rates.chosen.toml"), written);

    // Another policy by the same combinations: its values are those of a grid of its own, and a scenario can have its
    // choice.
    place.write("tuning/open.toml", changed(grid, "seeds =", "open = [\"round-robin\"]\nseeds ="));
    let Answer { code, stdout, stderr } = place.fedgenie(&["validate", "--claims", "claims", "--tune", "open"]);
    assert!(
        code == 0 && stdout.contains("round-robin for itself\n") && stdout.matches("\n* ").count() == 2,
        "{stderr}"
    );
    place.write("tuning/alone.toml", changed(grid, "\"random\"", "\"round-robin\""));
    place.fedgenie(&["validate", "--claims", "claims", "--tune", "alone"]);
    let [open, alone] = ["open", "alone"]
        .map(|name| -> toml::Table { place.text(&format!("tuning/{name}.chosen.toml")).parse().unwrap() });
    assert_eq!((&open["choice"], &open["tried"]), (&chosen["choice"], &chosen["tried"]));
    let own = &open["open"]["round-robin"];
    assert_eq!((&own["choice"], &own["tried"]), (&alone["choice"], &alone["tried"]));
    let closed = claim("settled = \"stop\"\nmargin = 0.01");
    place.write("claims/one.toml", changed(&closed, "seeds = 4\n", "seeds = 4\nopen = \"open\"\n"));
    let Answer { stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--out", "runs", "--quiet"]);
    let folder = std::fs::read_dir(place.path("runs")).unwrap().flatten().find(|entry| entry.path().is_dir());
    let scenario = std::fs::read_to_string(folder.unwrap().path().join("scenario.toml")).expect(&stderr);
    let scenario: toml::Table = scenario.parse().unwrap();
    assert_eq!(&scenario["policy"]["round-robin"]["with"], &own["choice"], "{stderr}");
    assert!(scenario["policy"]["random"].get("with").is_none());
    place.write("claims/one.toml", changed(&closed, "seeds = 4\n", "seeds = 4\nopen = \"rates\"\n"));
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(code == 2 && stderr.contains("no policy has a choice of its own"), "{stderr}");
    place.write("claims/one.toml", changed(&closed, "seeds = 4\n", "seeds = 4\nopen = \"none\"\n"));
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--quiet"]);
    assert!(code == 2 && stderr.contains("`fedgenie validate --tune none` makes it"), "{stderr}");

    // By the control: the value of a control's world, whichever policy runs.
    place.write(
        "tuning/control.toml",
        changed(&changed(grid, "final.valid_loss", "controls.centralised.valid_loss"), ", 3e38", ""),
    );
    let Answer { code, stderr, .. } = place.fedgenie(&["validate", "--claims", "claims", "--tune", "control"]);
    assert_eq!(code, 0, "{stderr}");
    let of_control: toml::Table = place.text("tuning/control.chosen.toml").parse().unwrap();
    let tried = of_control["tried"].as_array().unwrap();
    let expected = control(&world(&changed(SKEWED, "lr = 0.2", "lr = 0.001"), 101), "centralised");
    let found = expected.metrics.iter().find(|(id, _)| id.is_called("valid_loss")).unwrap().1;
    assert!(tried.iter().any(|tried| tried["values"][0].as_float() == Some(found)), "{found}: {of_control}");

    // A claim counts only with the settings of the choice.
    place.write("claims/one.toml", claim("settled = \"stop\"\ntuned = [\"rates\"]\nmargin = 0.01"));
    let Answer { stdout, .. } = place.fedgenie(&["validate", "--claims", "claims", "--json", "--quiet"]);
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let note = found["claims"][0]["checks"][0]["rows"][0]["note"].as_str().unwrap_or_default().to_owned();
    let is_other = chosen["choice"]["training.epochs"].as_integer() != Some(4);
    assert_eq!(note.contains("tuning/rates.chosen.toml chose"), is_other, "{note}");

    for (from, to, words) in [
        ("[101, 102]", "[1, 102]", "expected seeds above 100"),
        ("\"random\"", "\"oort\"", "there is no \"oort\""),
        ("seeds =", "open = [\"random\"]\nseeds =", "open: name each policy once, and random not at all"),
        ("seeds =", "open = [\"oort\"]\nseeds =", "there is no \"oort\""),
        ("final.valid_loss", "final.test_loss", "no metric on validation data"),
    ] {
        place.write("tuning/rates.toml", changed(grid, from, to));
        let Answer { code, stderr, .. } = tune(&[]);
        assert!(code == 2 && stderr.contains(words), "{words}: {stderr}");
    }
}

/// Policies that train in another way have controls that do.
#[test]
fn policies_with_training_of_their_own_have_controls_of_their_own() {
    let with = "[policy.slow]\nkind = \"random\"\nwith = { \"training.optimizer.sgd.lr\" = 0.01 }\n\
                [policy.slower]\nkind = \"random\"\nwith = { \"training.optimizer.sgd.lr\" = 0.01 }\n[controls]";
    let place = Workplace::with(&changed(SKEWED, "[controls]", with));
    let Answer { code, stdout, stderr } = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(code, 0, "{stderr}");
    let controls = &place.json("out/summary.json")["controls"][0];
    let names: Vec<&String> = controls.as_object().unwrap().keys().collect();
    let expected =
        ["centralised of random", "centralised of slow", "initial", "local of random", "local of slow", "majority"];
    assert_eq!(names, expected);
    let value = |name: &str| controls[name]["test_loss"]["mean"].as_f64().unwrap();
    assert!(value("centralised of random") != value("centralised of slow"));
    assert!(
        stdout.contains("(centralised of slow)") && stdout.contains("(local) trained by each client alone"),
        "{stdout}"
    );
    place.fedgenie(&["report", "out"]);
    assert!(place.text("out/report.html").contains("(centralised of slow)"));
}

/// Models that do not move are the first one wherever they are measured, as rounds measure it. A server's own most
/// frequent class is worth more there than that of all, and a model for clusters has a control for all.
#[test]
fn controls_are_measured_on_the_data_of_servers_and_clients() {
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/fed_bac/smoke.toml")).unwrap();
    let text = changed(
        &text,
        "[evaluate]\n",
        "[controls]\ncentralised = { epochs = 1 }\nlocal = { epochs = 1 }\n[evaluate]\nclients = true\n",
    );
    let controls = |text: &str, with: &[&str]| {
        let place = Workplace::with(text);
        let words = [&["run", SCENARIO, "--set", "stop.rounds=1", "--seeds", "1", "--out", "out"], with].concat();
        let Answer { code, stderr, .. } = place.fedgenie(&words);
        assert_eq!(code, 0, "{stderr}");
        place.json("out/summary.json")["controls"][0].take()
    };
    let begin = text.find("[policy.ifca]").unwrap();
    let plain = changed(&text[..begin], "[clusters]\ninitial = \"single\"\nassign = { linucb = { every = 5 } }\n", "");
    let plain = changed(&plain, "[regret]\nassignment = true\n", "");
    let plain = changed(&plain, ", clusters = \"none\"", "");
    let plain = changed(&plain, "clients = true\n", "clients = true\nservers = true\n");
    let still = controls(&plain, &["--set", "training.optimizer.sgd.lr=1e-30", "--set", "report.columns=[]"]);
    let initial = still["initial"].as_object().unwrap();
    assert!(initial.keys().any(|name| name == "server_accuracy_p10") && initial.contains_key("client_loss_sd"));
    for name in ["centralised", "local"] {
        for (metric, value) in initial.iter().filter(|(name, _)| !name.starts_with("test_")) {
            let [found, expected] = [&still[name][metric], value].map(|value| value["mean"].as_f64().unwrap());
            assert!((found - expected).abs() < 1e-12, "{name} {metric}: {found}, {expected}");
        }
    }
    let divided = controls(&text, &[]);
    let mean = |name: &str, metric: &str| divided[name][metric]["mean"].as_f64().unwrap();
    for metric in ["server_accuracy_mean", "client_accuracy_mean"] {
        let [own, all, trained] = ["own-majority", "majority", "centralised"].map(|name| mean(name, metric));
        assert!(own > all && trained > all, "{metric}: {own}, {all}, {trained}");
    }
    // One model of everybody's data, whatever models clusters have.
    assert!(divided.get("centralised of fed-bac").is_none() && divided.get("local of fed-bac").is_some());
}
