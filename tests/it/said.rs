//! Omissions, impossible settings and failures are reported: when the input is read, or with the results, by every
//! command in the same words.

use super::support::{Answer, PLAIN, SCENARIO, Workplace, changed, line_of};
use serde_json::{Value, json};

fn run(place: &Workplace) -> Answer {
    place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"])
}

/// Exit code 2, and these parts in the message.
fn assert_refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, 2, "{answer:?}");
    for part in parts {
        assert!(answer.stderr.contains(part), "{part:?} is not in {answer:?}");
    }
}

/// Runs into `out`, and asserts that table, page, comparison and export all say this; or that none does.
fn assert_said(place: &Workplace, what: &str, is_said: bool) {
    let answer = run(place);
    assert!(answer.code == 0 && answer.tells_of_results(), "{answer:?}");
    let of_json = place.fedgenie(&["run", SCENARIO, "--json", "--quiet"]);
    let page = place.fedgenie(&["report", "out", "-o", "page.html"]);
    let diff = place.fedgenie(&["diff", "out", "out"]);
    let diff_json = place.fedgenie(&["diff", "out", "out", "--json"]);
    let export = place.fedgenie(&["export", "out", "--to", "csv", "-o", "tables"]);
    for (of, text) in [
        ("the table", &answer.stdout),
        ("stderr of run", &answer.stderr),
        ("stderr beside JSON", &of_json.stderr),
        ("the page", &place.text("page.html")),
        ("stderr of report", &page.stderr),
        ("diff", &diff.stdout),
        ("diff --json", &diff_json.stdout),
        ("export", &export.stderr),
    ] {
        assert_eq!(text.contains(what), is_said, "{what:?} in {of}:\n{text}");
    }
}

// ------------------------------------------------------------------------------------------------ refused at the start

#[test]
fn a_buffer_that_is_never_full_is_refused() {
    for (buffer, is_good) in [("0", false), ("1", true), ("5", true), ("6", false), ("4294967296", false)] {
        let protocol = format!("[protocol.buffered]\nconcurrency = 2\nbuffer = {buffer}\n");
        let scenario = changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", &protocol);
        let answer = run(&Workplace::with(&scenario));
        if is_good {
            assert_eq!(answer.code, 0, "{answer:?}");
        } else {
            let found = format!("found {buffer}; expected between 1 and the number of clients (5)");
            assert_refused(&answer, &["protocol.buffered.buffer: ", &found]);
        }
    }
}

const RANKED: &str = r#"
name = "ranked"
seeds = 1
[stop]
rounds = 2
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.recommendation]
data = { csv = { file = "ratings.csv", split = "split" } }
split = "file"
partition = "users"
model = { mf = { dimensions = 4 } }
cutoffs = [2]
triplets = "triplets.csv"
[training]
batch = 4
optimizer = { sgd = { lr = 0.1 } }
[protocol.synchronous]
cohort = 2
[policy.random]
"#;

/// Users 1 and 2 have two ratings for training each, and one for validation.
const RATINGS: &str = "user,item,split\n1,10,train\n1,20,train\n1,30,valid\n1,40,test\n2,20,train\n2,30,train\n2,10,valid\n\
                       2,40,test\n";
const TRIPLETS: &str = "user,positive,negative\n1,10,30\n1,20,40\n2,20,10\n2,30,40\n";

fn ranked(scenario: &str, triplets: &str) -> Answer {
    let place = Workplace::with(scenario);
    place.write("ratings.csv", RATINGS);
    place.write("triplets.csv", triplets);
    run(&place)
}

#[test]
fn ratings_without_a_triplet_are_refused_by_name_or_counted() {
    let (all, skipping) = (RANKED.to_owned(), changed(RANKED, "cutoffs", "missing_triplets = \"skip\"\ncutoffs"));
    let (without, half) = (changed(TRIPLETS, "2,20,10\n", ""), format!("{TRIPLETS}1,30,40\n"));
    let at = format!("{SCENARIO}:{}: task.recommendation.triplets: ", line_of(RANKED, "triplets = "));
    let none = "triplets.csv: there is no triplet of user 2, item";
    for (triplets, found) in [
        (&without, [&*at, &format!("{none} 20; 1 rating for training has none"), "missing_triplets = \"skip\""]),
        // A table that has some of those for validation has all.
        (&half, [&*at, &format!("{none} 10; 1 rating for validation has none"), "missing_triplets"]),
    ] {
        assert_refused(&ranked(&all, triplets), &found);
        let answer = ranked(&skipping, triplets);
        assert_eq!(answer.code, 0, "{answer:?}");
        let count = if triplets == &without { "1 rating for training has" } else { "1 rating for validation has" };
        for part in [count, "no triplet and are left out; the first is user 2, item "] {
            assert!(answer.stderr.starts_with("fedgenie: warning: ") && answer.stderr.contains(part), "{answer:?}");
        }
    }
    for scenario in [&all, &skipping] {
        let answer = ranked(scenario, TRIPLETS);
        // No row is for testing, and that is all that is said.
        let told = answer.stderr.contains("test_auc, test_f1_2, test_hr_2 and 9 more were measured");
        assert!(answer.code == 0 && told && !answer.stderr.contains("triplet"), "{answer:?}");
    }
    let alone = changed(&skipping, "triplets = \"triplets.csv\"\n", "");
    assert_refused(&ranked(&alone, TRIPLETS), &["task.recommendation.missing_triplets: ", "give triplets"]);
    assert_refused(&ranked(&all, "user,positive,negative\n1,10,77\n"), &[&at, "triplets.csv:2: column \"negative\""]);
}

const CLUSTERED: &str = r#"
name = "clustered"
seeds = 1
[stop]
rounds = 7
[population]
clients = 4
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.scripted]
values = [0.5]
losses = "losses.csv"
[protocol.hierarchical]
edges = 2
cohort = 1
[clusters]
assign = { loss = { every = 3 } }
[policy.random]
"#;

/// Rows of rounds 3 and 6, less one.
fn losses(without: &str) -> String {
    let mut text = "round,server,cluster,loss\n".to_owned();
    for row in ["3,0,0", "3,0,1", "3,1,0", "3,1,1", "6,0,0", "6,0,1", "6,1,0", "6,1,1"] {
        if row != without {
            text.push_str(&format!("{row},0.5\n"));
        }
    }
    text
}

#[test]
fn losses_of_clusters_are_there_in_all_rounds_that_a_run_may_reach() {
    let answer_of = |scenario: &str, losses: &str| {
        let place = Workplace::with(scenario);
        place.write("losses.csv", losses);
        run(&place)
    };
    let random = changed(CLUSTERED, "{ loss = { every = 3 } }", "{ random = { every = 3 } }");
    let metered = changed(&random, "[policy", "[regret]\nassignment = true\n[policy");
    let by_time = changed(CLUSTERED, "rounds = 7", "virtual_time = \"21 s\"");
    let to_nine = changed(CLUSTERED, "rounds = 7", "rounds = 9");
    for (scenario, without, missing) in [
        (CLUSTERED, "", None),
        (CLUSTERED, "6,1,0", Some("round 6, server 1, cluster 0")),
        (CLUSTERED, "3,0,1", Some("round 3, server 0, cluster 1")),
        (&to_nine, "", Some("round 9, server 0, cluster 0")),
        // Nobody asks: a rule at random, unless its regret is metered.
        (&random, "6,1,0", None),
        (&metered, "6,1,0", Some("round 6, server 1, cluster 0")),
        // Without a number of rounds, a table is whole as far as it goes.
        (&by_time, "6,1,1", Some("round 6, server 1, cluster 1")),
        (&by_time, "", None),
    ] {
        let answer = answer_of(scenario, &losses(without));
        match missing {
            None => assert_eq!(answer.code, 0, "{without}: {answer:?}"),
            Some(row) => {
                let at = format!("{SCENARIO}:{}: task.scripted.losses: ", line_of(scenario, "\"losses.csv\""));
                assert_refused(&answer, &[&at, &format!("losses.csv: there is no row with {row}")]);
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------ said of the results

const LEARNING: &str = r#"
name = "learning"
seeds = 2
[stop]
rounds = 3
[population]
clients = 4
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.linear-regression]
examples = 200
[training]
batch = 10
optimizer = { sgd = { lr = 0.01 } }
[protocol.synchronous]
cohort = 4
[policy.random]
[policy.round-robin]
"#;

#[test]
fn a_loss_above_that_of_the_initial_model_is_said() {
    let what = "the loss at the end is above that of the initial model: test_loss ";
    let good = Workplace::with(LEARNING);
    assert_said(&good, what, false);
    let noisy = Workplace::with(&format!("{LEARNING}[privacy.dp-fedavg]\nclip = 1.0\nnoise_multiplier = 100\n"));
    assert_said(&noisy, "the noise of [privacy.dp-fedavg] may be why", true);
    let bad = Workplace::with(&changed(LEARNING, "lr = 0.01", "lr = 1.0"));
    assert_said(&bad, what, true);
    let said = bad.text("page.html");
    assert!(!said.contains("may be why"));
    assert!(said.contains("random, seed 1: the loss") && said.contains("round-robin, seed 2: the loss"));
    // Both learn from the same model of a seed, which is no part of a digest.
    for place in [&good, &bad] {
        let summary = place.json("out/summary.json");
        let runs = summary["runs"].as_array().unwrap();
        let initial: Vec<f64> =
            runs.iter().map(|run| run["controls"]["initial"]["test_loss"].as_f64().unwrap()).collect();
        assert!(initial[0] == initial[1] && initial[2] == initial[3] && initial[0] != initial[2], "{initial:?}");
        let last: Vec<f64> = runs.iter().map(|run| run["final"]["test_loss"].as_f64().unwrap()).collect();
        assert!(initial.iter().zip(&last).all(|(first, last)| (last > first) == std::ptr::eq(place, &bad)));
        let kept = place.json("out/runs/random-s1/run.json");
        assert_eq!(kept["controls"]["initial"], runs[0]["controls"]["initial"]);
    }
    assert_eq!(bad.fedgenie(&["verify", "out"]).code, 0);
}

/// The initial model costs nothing: accounts, clock and digests are those of a run that is evaluated another way.
#[test]
fn the_initial_model_is_measured_beside_the_run() {
    let place = Workplace::with(LEARNING);
    place.run_into("plain", &[]);
    place.run_into("every", &["--set", "evaluate.every=1", "--set", "evaluate.clients=true"]);
    let [plain, every] = ["plain", "every"].map(|folder| place.json(&format!("{folder}/summary.json")));
    for (one, other) in plain["runs"].as_array().unwrap().iter().zip(every["runs"].as_array().unwrap()) {
        for key in ["virtual_time_s", "traffic", "compute_s", "dispatched"] {
            assert_eq!(one[key], other[key], "{key}");
        }
        assert_eq!(one["controls"]["initial"]["test_loss"], other["controls"]["initial"]["test_loss"]);
        // It has the same measures as rounds.
        assert!(
            one["controls"]["initial"]["client_loss_mean"].is_null()
                && other["controls"]["initial"]["client_loss_mean"].is_number()
        );
    }
    // A script is no model.
    let scripted = changed(PLAIN, "[protocol", "[task.scripted]\nvalues = [0.5]\n[protocol");
    let place = Workplace::with(&scripted);
    place.run_into("out", &[]);
    assert!(place.json("out/summary.json")["runs"][0]["controls"]["initial"].is_null());
}

#[test]
fn rounds_in_which_no_update_arrives_are_said() {
    let what = "no update arrived in 1,350 rounds";
    let deadline = "[protocol.deadline]\ncohort = 2\ndeadline = \"3 s\"\n";
    let scenario =
        changed(&changed(PLAIN, "rounds = 12", "rounds = 1_350"), "[protocol.synchronous]\ncohort = 2\n", deadline);
    assert_said(&Workplace::with(&scenario), what, true);
    // Late updates that join a later round arrive after all.
    let carried = changed(&scenario, "\"3 s\"", "\"3 s\"\nlate = { carry = {} }");
    assert_said(&Workplace::with(&carried), what, false);
    assert_said(&Workplace::with(&changed(&scenario, "\"3 s\"", "\"4 s\"")), what, false);
}

/// Twelve clients of which one is there for the whole run, and the others are not.
fn scarce() -> Workplace {
    let trace = "{ trace = { file = \"on.csv\", window = \"1 d\", wrap = false } }";
    let devices = format!("clients = 12\ninterrupted = \"pause\"\navailability = {trace}\n");
    let place = Workplace::with(&changed(&changed(PLAIN, "clients = 5\n", &devices), "cohort = 2", "cohort = 4"));
    let mut on = "client,start_s,end_s\n0,0,86400\n".to_owned();
    (1..12).for_each(|client| on.push_str(&format!("{client},86000,86400\n")));
    place.write("on.csv", on);
    place
}

#[test]
fn who_was_asked_is_said_where_few_could_be() {
    let heads = ["mean asked", "mean arrived", "clients used"];
    let place = scarce();
    let what = "random: on average 1 of the 4 clients of a cohort could be asked, the others being away or busy; 1 were \
                asked, 1 arrived in their round, and 1 of 12 clients were ever asked";
    assert_said(&place, what, true);
    let table = run_again(&place);
    assert!(heads.iter().all(|head| table.contains(head)), "{table}");
    let run = &place.json("again/summary.json")["runs"][0];
    let asked = json!({ "selections": 12, "cohort": 4.0, "possible": 1.0, "asked": 1.0, "arrived": 1.0 });
    assert_eq!((&run["asked"], &run["clients"], &run["unique_clients"]), (&asked, &json!(12), &json!(1)));
    let page = place.text("page.html");
    assert!(page.contains("clients asked at once") && page.contains("updates that arrived of them"));
    // Everybody is there, and in twelve rounds of two every client is asked.
    let plain = Workplace::with(PLAIN);
    let table = run_again(&plain);
    assert!(heads.iter().all(|head| !table.contains(head)), "{table}");
    // Fewer than half were ever asked: no warning, and columns.
    let few = Workplace::with(&changed(&changed(PLAIN, "rounds = 12", "rounds = 1"), "cohort = 2", "cohort = 2"));
    let table = run_again(&few);
    assert!(heads.iter().all(|head| table.contains(head)) && !table.contains("warning"), "{table}");
}

fn run_again(place: &Workplace) -> String {
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "again", "--quiet"]);
    assert!(answer.code == 0 && answer.tells_of_results(), "{answer:?}");
    answer.stdout
}

// ------------------------------------------------------------------------------------------------ worked out

/// The values that the first run of a policy has worked out.
fn effective(place: &Workplace, label: &str) -> Value {
    place.run_into("out", &[]);
    let summary = place.json("out/summary.json");
    let runs = summary["runs"].as_array().unwrap().iter();
    let found = runs.clone().find(|run| run["arm"] == label).unwrap()["effective"].clone();
    let kept = place.json(&format!("out/runs/{label}-s1/run.json"));
    assert_eq!(kept["effective"], found);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    found
}

#[test]
fn what_is_left_open_and_worked_out_is_in_the_summary() {
    let policies = "[policy.mab-frs]\n[policy.given]\nkind = \"mab-frs\"\nt_semi = \"2 s\"\n[policy.cs-ucb]\n\
                    [policy.power-of-choice]\n[policy.oort]\n[policy.rpfl]\nclusters = 9\n[policy.random]\n";
    let scenario = changed(LEARNING, "[policy.random]\n[policy.round-robin]\n", policies);
    let place = Workplace::with(&changed(&scenario, "cohort = 4", "cohort = 2"));
    for (label, found) in [
        ("mab-frs", json!({ "policy.mab-frs.t_semi": "3 s" })),
        ("given", Value::Null),
        ("cs-ucb", json!({ "policy.cs-ucb.tau_max": "3 s" })),
        ("power-of-choice", json!({ "policy.power-of-choice.candidates": 4 })),
        ("oort", json!({ "policy.oort.pacer_delta": "3 s" })),
        ("rpfl", json!({ "policy.rpfl.clusters": 2 })),
        ("random", Value::Null),
    ] {
        place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet", "--overwrite"]);
        let summary = place.json("out/summary.json");
        let run = summary["runs"].as_array().unwrap().iter().find(|run| run["arm"] == label).unwrap();
        assert_eq!(run["effective"], found, "{label}");
        assert_eq!(place.json(&format!("out/runs/{label}-s1/run.json"))["effective"], found);
    }
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
}

#[test]
fn cohorts_that_follow_from_shares_or_budgets_are_in_the_summary() {
    let edges = "[protocol.hierarchical]\nedges = 2\nparticipation = 0.5\n";
    let scenario = changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", edges);
    let found = effective(&Workplace::with(&scenario), "random");
    assert_eq!(found, json!({ "protocol.hierarchical.cohort": 1 }));
    let uneven = changed(&scenario, "participation = 0.5", "participation = 0.7");
    let found = effective(&Workplace::with(&uneven), "random");
    assert_eq!(found, json!({ "protocol.hierarchical.cohort": [2, 1] }));
    // A job moves 2 kB: rounds of four, four and two.
    let budget = "[task.none]\npayload = \"1 kB\"\n[budget]\ntraffic = \"20 kB\"\n[protocol.synchronous]\ncohort = 4\n";
    let scenario = changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", budget);
    let found = effective(&Workplace::with(&scenario), "random");
    assert_eq!(found, json!({ "protocol.synchronous.cohort": { "least": 2, "mean": 10.0 / 3.0 } }));
    let rounds = changed(&scenario, "traffic = \"20 kB\"", "full_rounds = 2");
    let found = effective(&Workplace::with(&rounds), "random");
    assert_eq!(found["budget.traffic"], json!("20000 B"));
}

/// The cloud's policy sees edge servers as clients.
#[test]
fn what_the_clouds_policy_works_out_is_in_the_summary() {
    let cloud = "[protocol.hierarchical]\nedges = 5\ncohort = 1\ncloud = { cohort = 2, policy = { cs-ucb = {} } }\n";
    let scenario = changed(PLAIN, "[protocol.synchronous]\ncohort = 2\n", cloud);
    let found = effective(&Workplace::with(&scenario), "random");
    let path = "protocol.hierarchical.cloud.policy.cs-ucb.tau_max";
    assert!(found[path].is_string() && found.as_object().unwrap().len() == 1, "{found}");
}

/// Policies under a sweep are written as they were given; their values from the reward are in the summary.
#[test]
fn what_a_sweep_keeps_open_is_in_the_summary() {
    let reward = "[regret]\ntau_min = \"50 ms\"\nalpha = 2.0\nbeta = 1.5\n[sweep]\n\"stop.rounds\" = [2, 3]\n[policy.bsfl]\nbeta = 1.0\n";
    let scenario = changed(PLAIN, "[policy.random]\n", reward);
    let place = Workplace::with(&scenario);
    place.run_into("out", &[]);
    let run = &place.json("out/summary.json")["runs"][0]["effective"];
    assert_eq!((&run["policy.bsfl.alpha"], &run["policy.bsfl.beta"]), (&json!(2.0), &Value::Null));
    assert_eq!(run["policy.bsfl.tau_min"], json!("50 ms"));
    let without = changed(&scenario, "[sweep]\n\"stop.rounds\" = [2, 3]\n", "");
    let place = Workplace::with(&without);
    place.run_into("out", &[]);
    assert!(place.json("out/summary.json")["runs"][0]["effective"].is_null());
}
