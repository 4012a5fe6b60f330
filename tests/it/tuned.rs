//! Whether a claim's scenario has the settings that a grid has chosen.

use super::support::{Answer, Workplace};

const SCENARIO: &str = "name = \"tuned\"\nseeds = 2\n[stop]\nrounds = 4\n[population]\nclients = 4\n[population.latency]\n\
    download = { constant = \"0.1 s\" }\ncompute = { constant = \"1 s\" }\nupload = { constant = \"0.1 s\" }\n\
    [task.softmax-regression]\ndata = { synthetic = { classes = 3, height = 3, width = 3, train = 90, test = 30 } }\n\
    [training]\nbatch = 10\noptimizer = { sgd = { lr = 0.2, momentum = 0.5 } }\n[protocol.synchronous]\ncohort = 2\n\
    [controls]\ncentralised = { epochs = 2 }\n[policy.random]\n[policy.round-robin]\n";

const CLAIM: &str = "title = \"t\"\nsource = \"s\"\n[scenario.one]\nfile = \"../scenario.toml\"\nseeds = 2\n[learns]\n\
    settled = \"stop\"\ntuned = [\"rates\"]\n[[check]]\nclaim = \"c\"\nexpected = \"undecided\"\n\
    statistic.difference = { scenario = \"one\", policy = \"random\", against = [\"round-robin\"], value = \"final.test_loss\" }\n\
    holds = { at-most = 0 }\nsmoke = { expected = \"undecided\" }\n";

/// A choice that leaves out what the scenario writes out as a default is the scenario's; one with another number is
/// not.
#[test]
fn a_scenario_has_a_choice_that_changes_nothing_in_it() {
    let place = Workplace::with(SCENARIO);
    place.write("claims/one.toml", CLAIM);
    for (choice, is_other) in [
        ("\"training.optimizer\" = { sgd = { lr = 0.2, momentum = 0.5 } }", false),
        ("\"training.optimizer.sgd\" = { lr = 0.2, momentum = 0.5 }", false),
        ("\"training.optimizer.sgd.lr\" = 0.2", false),
        ("\"training.optimizer\" = { sgd = { lr = 0.2 } }", true),
        ("\"training.optimizer\" = { sgd = { lr = 0.1, momentum = 0.5 } }", true),
        ("\"training.optimizer\" = { adam = { lr = 0.2 } }", true),
        ("\"training.epochs\" = 1", false),
        ("\"training.epochs\" = 2", true),
    ] {
        let chosen = format!(
            "title = \"t\"\nby = \"final.valid_loss\"\nseeds = [101]\nmade = \"m\"\ntried = []\n[choice]\n{choice}\n"
        );
        place.write("tuning/rates.chosen.toml", chosen);
        let Answer { stdout, stderr, .. } =
            place.fedgenie(&["validate", "--claims", "claims", "--out", "runs", "--json", "--quiet"]);
        assert!(stdout.contains("\"rows\""), "{stderr}");
        assert_eq!(stdout.contains("tuning/rates.chosen.toml chose"), is_other, "{choice}: {stdout}");
    }
}
