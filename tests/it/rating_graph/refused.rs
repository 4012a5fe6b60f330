//! Wrong input to a rating graph is refused with exit code 2, and the message names file, line or key, the value found
//! and the right one.

use super::super::support::{SCENARIO, Workplace, changed, line_of};
use super::double::{TRUST, ratings};
use super::{DRAWN, GCN, WORLD, place, world};

/// The scenario with one change is refused with these parts in this order, and nothing is written.
fn refused(from: &str, to: &str, parts: &[&str]) {
    let text = changed(WORLD, from, to);
    let place = place(&text, &world(0, true), false);
    assert_refused(&place, parts);
}

fn assert_refused(place: &Workplace, parts: &[&str]) {
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert_eq!(answer.stderr.matches("fedgenie: error: ").count(), 1, "{}", answer.stderr);
    assert!(!place.path("out").exists(), "something was written: {}", answer.stderr);
    println!("{}", answer.stderr);
    let mut rest = answer.stderr.as_str();
    for part in parts {
        let place = rest.find(part);
        assert!(place.is_some(), "{part:?} is missing, or out of order, in: {}", answer.stderr);
        rest = &rest[place.unwrap() + part.len()..];
    }
}

const ASSIGNMENT: &str = "{ assignment = [[5, 1], [2], [7]] }";

#[test]
fn what_clients_hold_is_named_with_its_key() {
    let key = format!("{SCENARIO}:{}: task.rating-graph.partition", line_of(WORLD, "partition ="));
    for (to, parts) in [
        ("{ assignment = [[5, 1], [2], [9]] }", &["assignment", "there is no category 9", "1, 2, 4, 5, 7"][..]),
        ("{ assignment = [[5, 1], [2], [1, 7]] }", &["assignment", "category 1 is assigned twice"]),
        ("{ assignment = [[5, 1], [2, 7]] }", &["assignment", "2 clients", "expected 3"]),
        ("{ assignment = [[5, 1], [2], []] }", &["assignment", "client 2 has no category", "at least one"]),
        ("{ categories = { distribution = \"average\" } }", &["categories.distribution", "5", "expected from 6 to 9"]),
        ("{ communities = { count = 0 } }", &["communities.count", "found 0; expected at least 1"]),
        ("{ communities = { count = 99 } }", &["communities.count", "found 99; expected at most 10"]),
        ("{ communities = { count = 2 } }", &["communities.distribution", "there are 2", "for 3 clients"]),
    ] {
        refused(ASSIGNMENT, to, &[&[key.as_str()], parts].concat());
    }
}

#[test]
fn fewer_categories_than_clients_and_data_without_any_are_named() {
    for distribution in ["average", "skewed", "extreme", "even"] {
        let partition = format!("{{ categories = {{ distribution = \"{distribution}\" }} }}");
        let text = changed(&changed(WORLD, ASSIGNMENT, &partition), "clients = 3", "clients = 6");
        let place = place(&text, &world(0, true), false);
        let parts = ["task.rating-graph.partition.categories.distribution", "5 categories for 6 clients", "expected"];
        assert_refused(&place, &parts);
    }
    for partition in [ASSIGNMENT, "{ categories = {} }"] {
        let place = place(&changed(WORLD, ASSIGNMENT, partition), &world(0, true), false);
        let rating = |index: usize| format!("{}\t{}\t4\n", [3, 20, 100][index % 3], index);
        let rows: String = (0..20).map(rating).collect();
        place.write("tiny/ratings.tsv", format!("user\titem\trating\n{rows}"));
        let parts = ["task.rating-graph.partition", "the data have no categories", "communities"];
        assert_refused(&place, &parts);
    }
}

#[test]
fn an_empty_client_is_named() {
    // All ratings of category 7 are outside the range, so that the category is empty.
    let place = place(WORLD, &world(0, true), false);
    let spoilt = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        if fields[0] == "7" { [&fields[..4], &["9", fields[5]]].concat().join("\t") } else { line.to_owned() }
    };
    place.write("tiny/ratings.tsv", ratings().lines().map(spoilt).collect::<Vec<_>>().join("\n"));
    assert_refused(&place, &["task.rating-graph.partition.assignment", "there is no category 7"]);
    // All of them are for testing: there is nothing to train on, which is no error.
    let set_aside = |line: &str| if line.starts_with("7\t") { line.replace("train", "test") } else { line.to_owned() };
    place.write("tiny/ratings.tsv", ratings().lines().map(set_aside).collect::<Vec<_>>().join("\n"));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert!(answer.stderr.contains("without a training rating, and so without an update: client 2"), "{answer:?}");
    for round in place.lines("out/runs/random-s1/rounds.jsonl") {
        let updates = round["updates"]["clients"].as_array().unwrap();
        assert!(!updates.is_empty() && updates.iter().all(|client| *client != 2), "{round}");
    }
    // As many communities as a third of the drawn items: none is empty.
    let small =
        "{ synthetic = { users = 40, items = 60, ratings = 600, categories = 20, communities = 3, trust = 80 } }";
    let many = changed(&changed(DRAWN, "clients = 5", "clients = 9"), "{ categories =", "{ communities =");
    let many = changed(&many, "{ distribution = \"average\" }", "{ count = 20 }");
    let data = many.lines().find(|line| line.starts_with("data =")).unwrap();
    let place = Workplace::with(&changed(&many, data, &format!("data = {small}")));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
    assert_eq!(answer.code, 0, "{answer:?}");
}

#[test]
fn models_features_ranges_and_splits_are_named_with_their_key() {
    let gat = |heads: usize| format!("{{ gat = {{ layers = 2, heads = {heads}, hidden = 4, embedding = 3 }} }}");
    let key = |key: &str| format!("task.rating-graph.{key}");
    for (from, to, path, parts) in [
        (GCN, &*gat(3), "model.gat.heads", &["found 3; expected a divisor of hidden = 4"][..]),
        (GCN, &gat(0), "model.gat.heads", &["found 0; expected a divisor of hidden = 4"]),
        ("layers = 2", "layers = 0", "model.gcn.layers", &["found 0; expected from 1 to 64"]),
        ("hidden = 4", "hidden = 5000", "model.gcn.hidden", &["found 5000; expected from 1 to 4096"]),
        (GCN, "\"mf\"", "model", &["mf has all data at one client, and there are 3", "population.clients = 1"]),
        (GCN, "\"sorec\"", "model", &["sorec has all data at one client"]),
        (GCN, "{ soreg = { trust = -1.0 } }", "model.soreg.trust", &["found -1"]),
        (GCN, "{ mf = { lambda = -1.0 } }", "model.mf.lambda", &["found -1"]),
        (GCN, "\"gnc\"", "model", &["unknown value \"gnc\"", "gcn"]),
        ("features =", "range = [5, 1]\nfeatures =", "range", &["found [5, 1]", "the least rating first"]),
        ("features =", "range = [1, inf]\nfeatures =", "range", &["found [1, inf]", "finite"]),
        (
            "features =",
            "split = { random = { test = 0.6, valid = 0.4 } }\nfeatures =",
            "split.random.valid",
            &["found 0.4", "leaves something for training"],
        ),
        ("features =", "split = \"leave-one-out\"\nfeatures =", "split", &["leave-one-out", "no times"]),
        (
            "features =",
            "split = { random = { test = 0.001 } }\nfeatures =",
            "split",
            &["none of which is for testing", "leaves no part empty"],
        ),
    ] {
        refused(from, to, &[&[key(path).as_str()], parts].concat());
    }
    let text = changed(WORLD, "start = \"start.safetensors\"", "start = \"none.safetensors\"");
    assert_refused(&place(&text, &world(0, true), false), &["none.safetensors"]);
    let attentive = changed(WORLD, GCN, &gat(2));
    assert_refused(&place(&attentive, &world(0, true), false), &["start.safetensors", "conv.0.att_target"]);
    refused(
        "embedding = 3",
        "embedding = 2",
        &["start.safetensors", "conv.0.weight", "shape [4, 3]; expected", "[4, 2]"],
    );
    refused("x.npy", "none.npy", &["none.npy"]);
    let place = place(WORLD, &world(0, true), false);
    place.write("x.npy", super::npy(16, 2));
    assert_refused(
        &place,
        &[&key("features"), "x.npy", "found 16 rows of 2 numbers; expected 16 rows", "of 3 numbers"],
    );
    place.write("x.npy", super::npy(14, 3));
    assert_refused(&place, &[&key("features"), "x.npy", "found 14 rows of 3 numbers; expected 16 rows", "10 items"]);
}

#[test]
fn files_that_do_not_fit_are_named_with_their_line() {
    let ratings = ratings();
    let at = |line: usize, from: &str, to: &str| {
        let lines: Vec<String> = ratings.lines().map(str::to_owned).collect();
        assert!(lines[line - 1].contains(from), "{}", lines[line - 1]);
        let spoilt = |(index, text): (usize, String)| if index + 1 == line { text.replace(from, to) } else { text };
        lines.into_iter().enumerate().map(spoilt).collect::<Vec<_>>().join("\n")
    };
    for (file, text, parts) in [
        (
            "ratings.tsv",
            at(3, "train", "trian"),
            &["ratings.tsv:3", "split", "found \"trian\"", "train, valid or test"][..],
        ),
        ("ratings.tsv", at(2, "\t6\t", "\tgood\t"), &["ratings.tsv:2", "rating", "found \"good\"", "a finite number"]),
        ("ratings.tsv", at(2, "\t6\t", "\tnan\t"), &["ratings.tsv:2", "rating", "found \"nan\""]),
        ("ratings.tsv", at(2, "\t11\t", "\t\t"), &["ratings.tsv:2", "item", "found \"\""]),
        ("ratings.tsv", at(1, "user_id", "who"), &["ratings.tsv:1", "category_id who", "a column user or user_id"]),
        ("ratings.tsv", at(1, "rating", "stars"), &["ratings.tsv:1", "a column rating or rating_code"]),
        ("ratings.tsv", at(2, "\t6\ttrain", ""), &["ratings.tsv:2"]),
        ("ratings.tsv", String::new(), &["ratings.tsv:1"]),
        ("trust.tsv", TRUST.replace("3\t20", "3"), &["trust.tsv:4", "user", "found \"\""]),
        ("trust.tsv", TRUST.replace('\t', " "), &["trust.tsv:1", "expected two of users, separated by tabs"]),
        (
            "trust.tsv",
            "truster\ttrustee\n".to_owned(),
            &["ratings.tsv", "no rating is left of 51: 51 are of users without trust, 0 outside"],
        ),
    ] {
        let place = place(WORLD, &world(0, true), false);
        place.write(&format!("tiny/{file}"), text);
        assert_refused(&place, parts);
    }
    for (missing, left) in [("ratings.tsv", "trust.tsv"), ("trust.tsv", "ratings.tsv")] {
        let place = Workplace::with(WORLD);
        place.write(&format!("tiny/{left}"), if left == "trust.tsv" { TRUST.to_owned() } else { ratings.clone() });
        assert_refused(&place, &["tiny", "has not both files", missing.split('.').next().unwrap()]);
    }
    assert_refused(&Workplace::with(WORLD), &["tiny", "ratings.tsv", "trust.tsv (or social.tsv)"]);
}
