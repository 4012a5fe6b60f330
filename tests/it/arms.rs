//! Policies that override some of their scenario: the common part, the files about it, and refusals.

use super::support::{SCENARIO, Workplace, changed, line_of};
use serde_json::Value;
use std::collections::BTreeMap;

const WORLD: &str = r#"name = "arms"
seeds = [3, 4]

[stop]
rounds = 12

[population]
clients = 10
[population.latency]
download = { uniform = ["10 ms", "20 ms"] }
compute = { exponential = { mean = { uniform = ["0.2 s", "1 s"] }, shift = "0.1 s" } }
upload = { constant = "20 ms" }

[task.classification]
data = { synthetic = { train = 200, test = 50, height = 6, width = 6, classes = 3 } }
model = { mlp = { hidden = [8] } }

[training]
batch = 8
optimizer = { sgd = { lr = 0.1 } }

[aggregation]
server = "momentum"

[protocol.synchronous]
cohort = 3

[evaluate]
targets = [{ metric = "test_loss", at_most = 10.0 }]

[policy.random]
"#;

fn scenario(policies: &str) -> String {
    format!("{WORLD}{policies}")
}

fn arm(label: &str, with: &str) -> String {
    format!("[policy.{label}]\nkind = \"random\"\nwith = {{ {with} }}\n")
}

/// Both digests of the runs of an arm.
fn digests(place: &Workplace, folder: &str, arm: &str) -> Vec<(String, String)> {
    let all = place.digests(folder).into_iter().filter(|(name, ..)| name.starts_with(&format!("{arm} of")));
    let found: Vec<_> = all.map(|(_, timeline, model)| (timeline, model)).collect();
    assert_eq!(found.len(), 2, "two seeds of {arm}");
    found
}

fn found<'a>(summary: &'a Value, arm: &str) -> &'a Value {
    summary["arms"].as_array().unwrap().iter().find(|found| found["arm"] == arm).unwrap()
}

#[test]
fn an_override_that_changes_nothing_changes_no_digest_and_another_changes_that_arm_alone() {
    let others = [
        arm("same", r#""protocol.synchronous.cohort" = 3, "training.optimizer" = { sgd = { lr = 0.1 } }"#),
        arm("large", r#""protocol.synchronous.cohort" = 6"#),
        arm("network", r#""task.classification.model" = { mlp = { hidden = [20] } }"#),
        arm("average", r#"aggregation = "none""#),
        arm("average-too", r#""aggregation.server" = "average", clusters = "none""#),
    ];
    let place = Workplace::with(&scenario(&others.concat()));
    place.run_into("out", &[]);
    let plain = digests(&place, "out", "random");
    assert_eq!(digests(&place, "out", "same"), plain);
    assert_eq!(digests(&place, "out", "average"), digests(&place, "out", "average-too"));
    let seeds = 0..plain.len();
    for other in ["large", "network", "average"] {
        let other = digests(&place, "out", other);
        assert!(seeds.clone().all(|seed| other[seed].1 != plain[seed].1), "another model");
    }
    // Selections and durations do not depend on the server's rule. A larger network moves more bytes.
    let server = digests(&place, "out", "average");
    assert!(seeds.clone().all(|seed| server[seed].0 == plain[seed].0));
    let network = digests(&place, "out", "network");
    assert!(seeds.clone().all(|seed| network[seed].0 != plain[seed].0));
    // The first arm alone equals the same arm beside the others.
    let alone = Workplace::with(WORLD);
    alone.run_into("out", &[]);
    assert_eq!(digests(&alone, "out", "random"), plain);
    // An arm equals its own scenario.
    let large = Workplace::with(&changed(WORLD, "cohort = 3", "cohort = 6"));
    large.run_into("out", &[]);
    assert_eq!(digests(&large, "out", "random"), digests(&place, "out", "large"));
}

/// Durations of phases by (client, round), in nanoseconds.
fn durations(place: &Workplace, run: &str) -> BTreeMap<(u64, u64), Vec<u64>> {
    let mut opened = 0;
    let mut jobs: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for event in place.events(&format!("out/runs/{run}")) {
        let number = |key: &str| event[key].as_u64().unwrap();
        match event["event"].as_str().unwrap() {
            "opened" => opened = number("time_ns"),
            "phase-ended" => {
                jobs.entry((number("client"), number("round"))).or_default().push(number("time_ns") - opened);
            }
            _ => {}
        }
    }
    jobs
}

#[test]
fn latencies_and_data_are_the_same_whatever_an_arm_overrides() {
    let place = Workplace::with(&scenario(
        &[arm("large", r#""protocol.synchronous.cohort" = 6"#), arm("small", r#""task.classification.model" = "mlp""#)]
            .concat(),
    ));
    place.run_into("out", &["--events"]);
    let summary = place.json("out/summary.json");
    for seed in [3, 4] {
        let of = |arm: &str| durations(&place, &format!("{arm}-s{seed}"));
        let (plain, large) = (of("random"), of("large"));
        let common: Vec<_> = plain.keys().filter(|job| large.contains_key(job)).collect();
        assert!(common.len() > 10, "{} of 36 jobs in common", common.len());
        common.into_iter().for_each(|job| assert_eq!(plain[job], large[job], "client and round {job:?}, seed {seed}"));
        let runs = || summary["runs"].as_array().unwrap().iter().filter(|run| run["seed"] == seed);
        let partitions: Vec<&Value> = runs().map(|run| &run["partition"]).collect();
        assert!(partitions.windows(2).all(|pair| pair[0] == pair[1]) && !partitions[0].is_null());
    }
}

#[test]
fn every_file_says_what_an_arm_overrides_and_the_resolved_scenario_gives_the_same_again() {
    let others = [
        arm("large", r#""protocol.synchronous.cohort" = 6, aggregation = "none""#),
        // A table before a value: a stored scenario has them the other way around.
        arm(
            "buffered",
            "protocol = { buffered = { staleness = { polynomial = { exponent = 0.5 } }, concurrency = 3, buffer = 2 } }",
        ),
    ];
    let place = Workplace::with(&scenario(&others.concat()));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let large = serde_json::json!({ "aggregation": "none", "protocol.synchronous.cohort": "6" });
    let summary = place.json("out/summary.json");
    assert_eq!(found(&summary, "large")["with"], large);
    assert!(found(&summary, "random").get("with").is_none());
    assert_eq!(place.json("out/runs/large-s3/run.json")["with"], large);
    let buffered = &place.json("out/manifest.json")["with"]["buffered"];
    assert_eq!(
        buffered["protocol"],
        "{ buffered = { buffer = 2, concurrency = 3, staleness = { polynomial = { exponent = 0.5 } } } }"
    );
    let line = "large: with aggregation = none, protocol.synchronous.cohort = 6\n";
    assert!(answer.stdout.contains(line), "{}", answer.stdout);
    assert!(place.text("out/report.html").contains("large overrides"));
    let paired = &found(&summary, "buffered")["paired"];
    assert_eq!((&paired["against"], &paired["differences"]["virtual_time_s"]["n"]), (&"random".into(), &2.into()));

    let answer = place.fedgenie(&["verify", "out"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (0, "out: 6 runs replayed, no difference\n"));
    place.run_file("out/scenario.toml", "again", &[]);
    assert_eq!(place.digests("again"), place.digests("out"));
    assert_eq!(place.text("again/scenario.toml"), place.text("out/scenario.toml"));
    // A value that a replay meets in `with` is part of the experiment.
    place.write("out/scenario.toml", changed(&place.text("out/scenario.toml"), "cohort\" = 6", "cohort\" = 5"));
    let answer = place.fedgenie(&["verify", "out"]);
    assert!(answer.code == 1 && answer.stdout.contains("then run large-s3, round 1"), "{answer:?}");
}

#[test]
fn a_sweep_and_the_command_line_change_what_an_arm_overrides() {
    let large = arm("large", r#""protocol.synchronous.cohort" = 6"#);
    let ways = [
        r#"policy.large.with."protocol.synchronous.cohort" = [4, 5]"#,
        r#""policy.large.with.protocol.synchronous.cohort" = [4, 5]"#,
        r#""policy.large.with" = [{ "protocol.synchronous.cohort" = 4 }, { "protocol.synchronous.cohort" = 5 }]"#,
    ];
    let direct = |cohort: &str| {
        let place = Workplace::with(&changed(&scenario(&large), "cohort\" = 6", &format!("cohort\" = {cohort}")));
        place.run_into("out", &[]);
        digests(&place, "out", "large")
    };
    let expected = [direct("4"), direct("5")].concat();
    for way in ways {
        let place = Workplace::with(&scenario(&format!("{large}[sweep]\n{way}\n")));
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
        assert_eq!(answer.code, 0, "{way}: {answer:?}");
        let all = place.digests("out").into_iter().filter(|(name, ..)| name.starts_with("large"));
        let found: Vec<_> = all.map(|(_, timeline, model)| (timeline, model)).collect();
        assert_eq!(found, expected, "{way}");
        assert!(answer.stdout.contains("large: with protocol.synchronous.cohort = 4 or 5\n"), "{}", answer.stdout);
        assert_eq!(place.json("out/runs/large-p1-s3/run.json")["with"]["protocol.synchronous.cohort"], "5");
        assert_eq!(place.fedgenie(&["verify", "out"]).code, 0, "{way}");
    }
    let place = Workplace::with(&scenario(&large));
    place.run_into("out", &["--set", "policy.large.with.protocol.synchronous.cohort=4"]);
    assert_eq!(digests(&place, "out", "large"), expected[..2]);
}

#[test]
fn what_an_arm_may_not_override_or_what_does_not_fit_is_refused_with_its_name() {
    let cases = [
        (
            r#""population.clients" = 3"#,
            "policy.odd.with: found the path \"population.clients\"; a policy can override",
        ),
        (r#""task.classification.partition" = "iid""#, "policy.odd.with: found the path \"task.classification.part"),
        ("task = \"none\"", "policy.odd.with: found the path \"task\"; a policy can override only task.*.model, task"),
        ("stop = { rounds = 2 }", "policy.odd.with: found the path \"stop\"; a policy can override only task.*.model"),
        (r#""task.linear-regression.model" = "mlp""#, "policy.odd.with: found the path \"task.linear-regression.mod"),
        (r#""protocol.synchronous.cohort" = 0"#, "protocol.synchronous.cohort: found 0; expected"),
        (r#""protocol.synchronous.cohort" = 11"#, "protocol.synchronous.cohort: "),
        (r#""protocol.deadline.cohort" = 2"#, "protocol: found a table of synchronous, deadline; expected one kind"),
        ("training = \"none\"", "training: is missing, and this task trains"),
        (r#""training.batsh" = 3"#, "training.batsh: unknown key \"batsh\"; did you mean \"batch\"?"),
        ("clusters = { servers = 2 }", "clusters.servers: unknown key \"servers\""),
        (r#""task.classification.model" = "mpl""#, "task.classification.model: unknown value \"mpl\""),
        (r#""task.classification.start" = "nowhere.safetensors""#, "task.classification.start: "),
    ];
    for (with, message) in cases {
        let text = scenario(&arm("odd", with));
        let line = line_of(&text, "with = ");
        let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--quiet"]);
        let start = format!("fedgenie: error: {SCENARIO}:{line}: {message}");
        assert!(answer.code == 2 && answer.stderr.starts_with(&start), "{with}: {}, not {start}", answer.stderr);
        assert!(answer.stderr.contains("odd"), "{with}: the policy is named in {}", answer.stderr);
    }
    let text = scenario(&arm("odd", "").replace("{  }", "3"));
    let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--quiet"]);
    assert!(answer.stderr.contains("policy.odd.with: found 3; expected a table of paths and values"), "{answer:?}");
    // Keys of the scenario that the arm's protocol does not allow.
    let regret = "[regret]\ntau_min = \"10 ms\"\n";
    let text = scenario(&[regret, &arm("odd", "protocol = { buffered = { concurrency = 3, buffer = 2 } }")].concat());
    let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--quiet"]);
    let message = "regret: regret is defined for rounds of one server only";
    assert!(answer.stderr.contains(message) && answer.stderr.contains("for policy \"odd\""), "{answer:?}");
}

/// The cost when a target was reached, against the records of that round.
#[test]
fn a_target_has_bytes_and_computing_up_to_its_round() {
    let number = |value: &Value| value.as_f64().unwrap();
    let place = Workplace::with(&changed(
        WORLD,
        "at_most = 10.0 }",
        "at_most = 10.0 }, { metric = \"test_loss\", at_most = 0.0 }",
    ));
    place.run_into("out", &["--set", "evaluate.every=4"]);
    let run = place.json("out/runs/random-s3/run.json");
    let (reached, missed) = (&run["reached"][0], &run["reached"][1]);
    assert_eq!(reached["round"], 4);
    let line = &place.lines("out/runs/random-s3/rounds.jsonl")[3];
    for key in ["down_bytes", "up_bytes"] {
        assert_eq!(reached[key], line[key], "{key}");
        assert!(missed[key].is_null() && missed.as_object().unwrap().contains_key(key));
    }
    assert!(number(&reached["compute_s"]) > 0.0 && number(&reached["compute_s"]) < number(&run["compute_s"]));
    assert!(reached.get("edge_down_bytes").is_none());
    let values = &place.json("out/summary.json")["arms"][0]["values"];
    let bytes = number(&reached["down_bytes"]) + number(&reached["up_bytes"]);
    assert_eq!(number(&values["bytes_to.test_loss <= 10"]["mean"]), bytes);
    assert!(values.get("bytes_to.test_loss <= 0").is_none());
    // A run that ends there has spent the same.
    place.run_into("short", &["--set", "stop.rounds=4", "--set", "evaluate.every=4"]);
    let short = place.json("short/runs/random-s3/run.json");
    assert_eq!((&short["compute_s"], &short["traffic"]["up_bytes"]), (&reached["compute_s"], &reached["up_bytes"]));

    let tiers = "[protocol.hierarchical]\nedges = 2\ncohort = 2";
    let edges = changed(WORLD, "[protocol.synchronous]\ncohort = 3", tiers);
    let place = Workplace::with(&edges);
    place.run_into("out", &[]);
    let run = place.json("out/runs/random-s3/run.json");
    let total = &run["edge_traffic"]["down_bytes"];
    let reached = &run["reached"][0];
    assert_eq!(number(&reached["edge_down_bytes"]) * 12.0, number(total), "the first of twelve rounds");
    assert_eq!(reached["edge_up_bytes"], reached["edge_down_bytes"]);
}

/// `cohort` limits one policy: it is asked for fewer clients, and the world is the others'.
#[test]
fn one_policy_may_choose_fewer() {
    let few = "[policy.few]\nkind = \"bsfl\"\ncohort = 1\n[policy.many]\nkind = \"random\"\ncohort = 3\n";
    let regret = "[regret]\ntau_min = \"10 ms\"\n";
    let place = Workplace::with(&scenario(&[regret, few].concat()));
    let answer = place.fedgenie(&["run", SCENARIO, "--out", "out", "--quiet"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let most = |arm: &str| {
        let rounds = place.lines(&format!("out/runs/{arm}-s3/rounds.jsonl"));
        rounds.iter().map(|round| round["selected"].as_array().unwrap().len()).max().unwrap()
    };
    assert_eq!(most("few"), 1);
    assert!(most("many") > 1);
    let others = place.json("out/runs/many-s3/run.json");
    let resolved = place.text("out/scenario.toml");
    let policy = resolved.split_once("[policy.few]").unwrap().1;
    assert!(policy.contains("cohort = 1"), "{resolved}");
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    place.write("without.toml", scenario(&format!("{regret}[policy.many]\nkind = \"random\"\n")));
    place.run_file("without.toml", "without", &[]);
    assert_eq!(place.json("without/runs/many-s3/run.json")["digest"], others["digest"], "3 is the protocol's");
    for wrong in ["0", "-1", "1.5", "\"two\""] {
        let text = scenario(&[regret, &few.replace("cohort = 1\n", &format!("cohort = {wrong}\n"))].concat());
        let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains("policy.few.cohort: found"), "{answer:?}");
    }
}

/// More than the protocol lets anybody choose would limit nothing: an error before anything is written, in whatever
/// command, at whatever point.
#[test]
fn a_limit_above_the_protocols_is_refused() {
    let arms =
        |many: &str| format!("[policy.few]\nkind = \"random\"\ncohort = 1\n[policy.many]\nkind = \"random\"\n{many}\n");
    let refused = |text: &str, words: &[&str], expected: &str| {
        let place = Workplace::with(text);
        place.write(
            "claims/time.toml",
            "title = \"t\"\nsource = \"s\"\n[scenario.one]\nfile = \"../scenario.toml\"\nseeds = 1\nsmoke = { seeds = 1 }\n[[check]]\nclaim = \"c\"\n\
             statistic.value = { scenario = \"one\", policies = [\"few\"], value = \"virtual_time_s\" }\n\
             holds = { at-least = 0 }\nexpected = \"supported\"\n",
        );
        let answer = place.fedgenie(words);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(expected), "{expected} in {answer:?}");
        assert!(!place.path("out").exists(), "nothing is written");
    };
    let run = ["run", SCENARIO, "--out", "out"];
    for cohort in ["cohort = 4", "cohort = 99"] {
        let text = scenario(&arms(cohort));
        let found = cohort.rsplit(' ').next().unwrap();
        let expected = format!(
            "{SCENARIO}:{}: policy.many.cohort: found {found}; expected between 1 and 3",
            line_of(&text, cohort)
        );
        refused(&text, &run, &expected);
        refused(&text, &["validate", "--claims", "claims"], "policy.many.cohort: found");
    }
    let sweep = "[sweep]\n\"protocol.synchronous.cohort\" = [3, 2]\n";
    refused(&scenario(&(arms("cohort = 3") + sweep)), &run, "policy.many.cohort: found 3; expected between 1 and 2");
    // An arm's own keys count for it.
    let with = "cohort = 3\nwith = { \"protocol.synchronous.cohort\" = 2 }";
    refused(&scenario(&arms(with)), &run, "policy.many.cohort: found 3; expected between 1 and 2");
    // Under `buffered` a selection is of one client, under `hierarchical` of an edge server's.
    let rounds = "[protocol.synchronous]\ncohort = 3";
    for (protocol, most) in [
        ("[protocol.buffered]\nconcurrency = 3\nbuffer = 2", 1),
        ("[protocol.over-selection]\nask = 2\ntake = 1", 2),
        ("[protocol.hierarchical]\nedges = 2\ncohort = 2", 2),
    ] {
        let text = changed(&scenario(&arms("cohort = 3")), rounds, protocol);
        refused(&text, &run, &format!("policy.many.cohort: found 3; expected between 1 and {most}"));
    }
}

/// Theorem 1 is about a policy that chooses as many clients as the regret is measured for.
#[test]
fn no_bound_is_drawn_for_a_policy_that_chooses_fewer() {
    let regret = "[regret]\ntau_min = \"10 ms\"\nquantum = 0.25\nmeters = [\"mean\"]\n";
    let arms = "[policy.bsfl]\n[policy.few]\nkind = \"bsfl\"\ncohort = 1\n[policy.many]\nkind = \"bsfl\"\ncohort = 3\n";
    let place = Workplace::with(&scenario(&[regret, arms].concat()));
    place.run_into("out", &[]);
    let has_bound = |arm: &str| !place.json(&format!("out/runs/{arm}-s3/run.json"))["bound"].is_null();
    assert_eq!(["bsfl", "few", "many"].map(has_bound), [true, false, true]);
}
