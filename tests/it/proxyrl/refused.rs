//! Wrong settings of these policies: one error each, that names the key.

use super::{SYNCHRONOUS, Toy, experiment};
use crate::contracts::{PROTOCOLS, experiment as plain};
use fedgenie::experiment::{Experiment, Threads};

fn error(experiment: &Experiment) -> String {
    match experiment.run(&Threads::new(1).unwrap()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

fn assert_refused(found: &str, parts: &[&str]) {
    assert!(!found.contains('\n'), "{found}");
    for part in parts {
        assert!(found.contains(part), "{part:?} should be said in: {found}");
    }
}

#[test]
fn wrong_parameters_are_named() {
    let cases: [(&str, &[&str]); 15] = [
        ("[policy.proxyrl]\nlambda = 1.5\n", &["policy.proxyrl.lambda", "found 1.5; expected a number from 0 to 1"]),
        ("[policy.proxyrl]\nlambda = -0.1\n", &["policy.proxyrl.lambda", "found -0.1"]),
        ("[policy.proxyrl]\ngamma = 2.0\n", &["policy.proxyrl.gamma", "found 2"]),
        ("[policy.proxyrl]\nhidden = 0\n", &["policy.proxyrl.hidden", "found 0"]),
        ("[policy.proxyrl]\nactor_lr = -1.0\n", &["policy.proxyrl.actor_lr", "found -1"]),
        ("[policy.proxyrl]\nwindow = 0\n", &["policy.proxyrl.window", "found 0"]),
        (
            "[policy.proxyrl]\nactor = { softmax = { temperature = 0.0 } }\n",
            &["policy.proxyrl.actor.softmax.temperature", "found 0"],
        ),
        (
            "[policy.proxyrl]\naccuracy = \"valid_ndcg_5\"\n",
            &["policy.proxyrl.accuracy", "valid_hr_20, item_staleness"],
        ),
        ("[evaluate]\nevery = 2\n[policy.proxyrl]\n", &["policy.proxyrl", "every = 1 in [evaluate]"]),
        ("[evaluate]\nevery = 2\n[policy.fedrl]\n", &["policy.fedrl", "every = 1 in [evaluate]"]),
        ("[policy.fedrl]\naccuracy = \"hr\"\n", &["policy.fedrl.accuracy", "the metrics of this scenario are"]),
        ("[policy.fedgst]\ncandidates = 2\n", &["policy.fedgst.candidates", "found 2", "(3)", "(12)"]),
        ("[policy.fedgst]\ncandidates = 13\n", &["policy.fedgst.candidates", "found 13"]),
        ("[policy.fedfast]\nclusters = 0\nfeatures = \"embeddings\"\n", &["policy.fedfast.clusters", "found 0"]),
        ("[policy.fedfast]\n", &["policy.fedfast.features", "users.dat", "features = \"embeddings\""]),
    ];
    for (more, parts) in cases {
        assert_refused(&error(&experiment(SYNCHRONOUS, more, Toy::default())), parts);
    }
}

#[test]
fn what_the_task_lacks_is_named() {
    let linear = "[task.linear-regression]\nexamples = 1_400\n";
    let cases: [(&str, &[&str]); 7] = [
        (
            "[policy.proxyrl]\n",
            &["policy.proxyrl.contribution", "predicted-loss", "task.recommendation.model", "proxy"],
        ),
        (
            "[policy.proxyrl]\ncontribution = \"last\"\n",
            &["policy.proxyrl.contribution", "predicted-loss", "task.recommendation.model"],
        ),
        (
            "[policy.proxyrl]\ncontribution = \"inference\"\n",
            &["policy.proxyrl.contribution", "summed-loss", "task.recommendation.model", "ncf"],
        ),
        (
            "[policy.proxyrl]\ncontribution = \"training\"\naccuracy = \"test_loss\"\n",
            &["policy.proxyrl.lambda", "item_staleness", "lambda = 1"],
        ),
        ("[policy.fedgst]\n", &["policy.fedgst", "influence", "task.recommendation.model"]),
        (
            "[policy.fedfast]\nfeatures = \"embeddings\"\n",
            &["policy.fedfast.features", "embedding", "task.recommendation.model"],
        ),
        ("[policy.fedfast]\n", &["policy.fedfast.features", "metadata"]),
    ];
    for (policy, parts) in cases {
        assert_refused(&error(&plain(SYNCHRONOUS, &format!("{linear}{policy}"))), parts);
    }
    let none = "[task.none]\n";
    let training = "[policy.proxyrl]\ncontribution = \"training\"\nactor = { softmax = {} }\n";
    for policy in [training, "[policy.fedrl]\n"] {
        assert_refused(&error(&plain(SYNCHRONOUS, &format!("{none}{policy}"))), &["losses of clients that train"]);
    }
    // A metric that λ leaves out need not be measured.
    let more = "[policy.proxyrl]\ncontribution = \"training\"\naccuracy = \"test_loss\"\nlambda = 1.0\nhidden = 2\n";
    assert_eq!(error(&plain(SYNCHRONOUS, &format!("{linear}{more}"))), "");
}

/// Edge servers have no metrics, and under `buffered` a round has several selections.
#[test]
fn actors_that_learn_have_rounds_of_one_server() {
    for (name, protocol) in PROTOCOLS {
        for policy in ["proxyrl", "fedrl"] {
            let found = error(&experiment(protocol, &format!("[policy.{policy}]\nhidden = 2\n"), Toy::default()));
            if ["buffered", "hierarchical"].contains(&name) {
                assert_refused(&found, &[&format!("policy.{policy}"), "one server", "synchronous"]);
            } else {
                assert_eq!(found, "", "{name}");
            }
        }
    }
    let protocol =
        "[protocol.hierarchical]\nedges = 3\ncohort = 2\ncloud = { cohort = 2, policy = { proxyrl = {} } }\n";
    assert_refused(&error(&experiment(protocol, "", Toy::default())), &["the policy of the cloud", "contribution"]);
}

/// A dense actor of a million clients would not fit; the sentence names one that does.
#[test]
fn a_dense_actor_has_a_limit() {
    let many = |actor: &str| {
        let text = format!(
            "name = \"many\"\nseeds = 1\n[stop]\nrounds = 1\n[population]\nclients = 50_001\n[population.latency]\n\
             download = {{ constant = \"1 s\" }}\ncompute = {{ constant = \"1 s\" }}\nupload = {{ constant = \"1 s\" }}\n\
             [task.linear-regression]\nexamples = 60_000\nfeatures = 1\n[training]\nbatch = 4\noptimizer = {{ sgd = {{ lr = 0.01 }} }}\n\
             [protocol.synchronous]\ncohort = 3\n[policy.proxyrl]\ncontribution = \"training\"\nlambda = 1.0\n\
             accuracy = \"test_loss\"\nhidden = 1\nactor = \"{actor}\"\n"
        );
        let root = fedgenie::scenario::tree::parse(std::path::Path::new("many.toml"), &text).unwrap();
        let experiment = Experiment::from_tree(&root, std::path::Path::new("."), None).unwrap();
        error(&experiment)
    };
    assert_refused(&many("dense"), &["policy.proxyrl.actor", "50001 clients, and goes up to 50000", "\"shared\""]);
    assert_eq!(many("shared"), "");
}
