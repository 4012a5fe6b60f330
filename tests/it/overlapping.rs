//! Shares that clients draw from all examples: under every protocol, for more clients than there are examples, of sizes
//! that differ, and in runs that share a world.

use super::support::{Answer, SCENARIO, Workplace, changed, labelled, world};
use fedgenie::id::ClientId;

const SYNCHRONOUS: &str = "[protocol.synchronous]\ncohort = 4\n";

/// 200 clients, and 120 examples.
fn scenario(protocol: &str, size: &str) -> String {
    format!(
        r#"name = "overlapping"
seeds = 2
[stop]
rounds = 4
[population]
clients = 200
[population.latency]
download = {{ constant = "10 ms" }}
compute = {{ exponential = {{ mean = "1 s" }} }}
upload = {{ constant = "20 ms" }}
[task.softmax-regression]
data = {{ synthetic = {{ classes = 4, height = 4, width = 4, train = 120, test = 40 }} }}
partition = {{ overlapping = {{ size = {size}, alpha = 0.3 }} }}
[training]
batch = 8
optimizer = {{ sgd = {{ lr = 0.1 }} }}
{protocol}
[policy.random]
[policy.round-robin]
[policy.oort]
"#
    )
}

#[test]
fn every_protocol_trains_more_clients_than_there_are_examples() {
    for protocol in [
        SYNCHRONOUS,
        "[protocol.over-selection]\nask = 5\ntake = 4\n",
        "[protocol.deadline]\ncohort = 4\ndeadline = \"2 s\"\n",
    ] {
        let place = Workplace::with(&changed(&scenario(protocol, "30"), "rounds = 4", "rounds = 30"));
        place.run_into("one", &["--threads", "1"]);
        place.run_into("two", &["--threads", "2"]);
        assert_eq!(place.digests("one"), place.digests("two"), "{protocol}");
        let Answer { code, stderr, .. } = place.fedgenie(&["verify", "two"]);
        assert_eq!(code, 0, "{stderr}");
        let last = place.lines("one/runs/random-s1/rounds.jsonl").pop().unwrap();
        assert!(last["metrics"]["test_loss"].as_f64().unwrap() < 1.386, "it learns: {last}");
    }
    for protocol in
        ["[protocol.buffered]\nconcurrency = 4\nbuffer = 2\n", "[protocol.hierarchical]\nedges = 5\ncohort = 4\n"]
    {
        let text = changed(&scenario(protocol, "30"), "[policy.oort]\n", "");
        let place = Workplace::with(&text);
        place.run_into("one", &["--threads", "1"]);
        place.run_into("two", &["--threads", "2"]);
        assert_eq!(place.digests("one"), place.digests("two"), "{protocol}");
    }
}

/// Policies of a seed share their first updates; each policy alone has the same digests.
#[test]
fn runs_that_share_a_world_are_those_of_each_alone() {
    let text = scenario(SYNCHRONOUS, "30");
    let together = Workplace::with(&text);
    together.run_into("out", &[]);
    let digests = together.digests("out");
    let mut alone = Vec::new();
    for policy in ["random", "round-robin", "oort"] {
        let (head, _) = text.split_once("[policy.random]").unwrap();
        let place = Workplace::with(&format!("{head}[policy.{policy}]\n"));
        place.run_into("out", &[]);
        alone.extend(place.digests("out"));
    }
    alone.sort();
    let mut digests = digests;
    digests.sort();
    assert_eq!(digests, alone);
}

#[test]
fn sizes_are_a_number_or_what_the_population_may_say() {
    let sizes = |size: &str| {
        let world = world(&scenario(SYNCHRONOUS, size), 1);
        let task = labelled(&world);
        let of = |client| {
            let share = task.partition.client(ClientId(client));
            assert!(share.len() == task.partition.size(ClientId(client)) && share.iter().all(|&row| row < 120));
            share.len()
        };
        (0..200).map(of).collect::<Vec<usize>>()
    };
    assert_eq!(sizes("30"), [30; 200]);
    let drawn = sizes("{ uniform = [10, 50] }");
    assert!(drawn.iter().all(|size| (10..=50).contains(size)) && drawn.iter().any(|size| *size != drawn[0]));
    let each: Vec<usize> = (1..=200).map(|client| client % 100 + 1).collect();
    assert_eq!(sizes(&format!("{{ each = {each:?} }}")), each);

    // The same numbers, said by the population.
    let by_population = scenario(SYNCHRONOUS, "30");
    let by_population =
        changed(&by_population, "{ overlapping = { size = 30, alpha = 0.3 } }", "{ overlapping = { alpha = 0.3 } }");
    let by_population =
        changed(&by_population, "clients = 200\n", "clients = 200\ndata_size = { uniform = [10, 50] }\n");
    let (one, two) =
        (Workplace::with(&scenario(SYNCHRONOUS, "{ uniform = [10, 50] }")), Workplace::with(&by_population));
    one.run_into("out", &[]);
    two.run_into("out", &[]);
    assert_eq!(one.digests("out"), two.digests("out"));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let refused = |text: &str, words: &str| {
        let Answer { code, stdout, stderr } = Workplace::with(text).fedgenie(&["run", SCENARIO]);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(words), "{words}: {stderr}");
    };
    refused(&scenario(SYNCHRONOUS, "121"), "size = 121: has to be 1 to 120");
    refused(&scenario(SYNCHRONOUS, "0"), "has to be 1 to 120");
    refused(&scenario(SYNCHRONOUS, "\"30\""), "overlapping.size");
    let twice =
        changed(&scenario(SYNCHRONOUS, "{ uniform = [10, 50] }"), "clients = 200\n", "clients = 200\ndata_size = 5\n");
    refused(&twice, "overlapping.size: data_size of the population says this as well");
    let alpha = changed(&scenario(SYNCHRONOUS, "30"), "alpha = 0.3", "alpha = 0.0");
    refused(&alpha, "overlapping.alpha");
}
