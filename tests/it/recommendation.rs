//! Learning from ratings: under every protocol with every policy, and bytes and rows against draws made here.

use super::support::{SETTINGS, Script, Workplace, play, world};
use fedgenie::experiment::{Experiment, Threads};
use fedgenie::id::ClientId;
use fedgenie::policy::Policies;
use fedgenie::record::Record;
use fedgenie::recorder::{RoundMark, RoundSummary, Sink};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::run::Run;
use fedgenie::scenario::tree;
use fedgenie::task::Recommendation;
use fedgenie::world::World;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// 30 users and 50 items; rows of four numbers.
const BASE: &str = r#"
name = "ratings"
seeds = 1
[stop]
rounds = 6
[population.latency]
download = { constant = "25 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }
upload = { constant = "25 ms" }
[task.recommendation]
data = { synthetic = { users = 30, items = 50, ratings = 500 } }
users = 30
items = 50
cutoffs = [5, 10]
transfer = { down = "rows", up = "rows" }
model = { mf = { dimensions = 4 } }
[training]
batch = 4
optimizer = { adam = { lr = 0.05 } }
"#;

/// Policies of rounds; two of them ask clients before they select.
const IN_ROUNDS: &str = r#"
[regret]
tau_min = "50 ms"
alpha = 1.0
beta = 1.2
[policy.random]
[policy.round-robin]
[policy.genie]
[policy.bsfl]
[policy.cs-ucb]
[policy.cs-ucb-q]
[policy.rbcs-f]
[policy.power-of-choice]
"#;

/// Without asking, and without regret.
const ELSEWHERE: &str = r#"
[policy.random]
[policy.round-robin]
[policy.bsfl]
alpha = 1.0
beta = 1.2
tau_min = "50 ms"
[policy.cs-ucb]
[policy.cs-ucb-q]
[policy.rbcs-f]
context_time = "0 s"
[policy.power-of-choice]
losses = "last-known"
"#;

const PROTOCOLS: [(&str, &str); 4] = [
    ("[protocol.synchronous]\ncohort = 5\n", IN_ROUNDS),
    ("[protocol.deadline]\ncohort = 5\ndeadline = \"0.5 s\"\nlate = { carry = {} }\n", IN_ROUNDS),
    ("[protocol.buffered]\nconcurrency = 6\nbuffer = 3\n", ELSEWHERE),
    ("[protocol.hierarchical]\nedges = 3\ncohort = 3\nedge_rounds = 2\n", ELSEWHERE),
];

fn experiment(text: &str) -> Experiment {
    Experiment::from_tree(&tree::parse(Path::new("ratings.toml"), text).unwrap(), Path::new("."), None).unwrap()
}

#[test]
fn every_protocol_with_every_policy_on_any_number_of_threads() {
    for (protocol, policies) in PROTOCOLS {
        let experiment = experiment(&format!("{BASE}{protocol}{policies}"));
        let run = |threads| experiment.run(&Threads::new(threads).unwrap()).unwrap();
        let (one, two) = (run(1), run(2));
        assert_eq!(one.runs.len(), policies.matches("[policy.").count());
        for (one, two) in one.runs.iter().zip(two.runs.iter()) {
            assert_eq!((one, &one.digest), (two, &two.digest), "{protocol}, {}", one.arm);
            assert_eq!(one.rounds, 6, "{protocol}, {}", one.arm);
            let auc = one.final_metrics["test_auc"];
            assert!(auc > 0.4 && auc < 1.0, "{protocol}, {}: {auc}", one.arm);
            // On test and validation data, of participants, and how old items are.
            assert_eq!(one.final_metrics.len(), 3 * (1 + 2 * 5) + 3);
            assert_eq!(one.controls["popularity"].len(), 1 + 2 * 5);
            assert_eq!((one.data["users"], one.data["items"]), (30, 50));
        }
    }
}

/// The items that a job with one epoch meets: its positives, and as many draws among the others.
fn met(positives: &[u32], items: u32, client: u32, job: u32) -> BTreeSet<u32> {
    let unknown: Vec<u32> = (0..items).filter(|item| !positives.contains(item)).collect();
    let mut draws = Streams::new(1).stream(Purpose::TrainingNoise, client, job);
    let negatives = positives.iter().map(|_| unknown[draws.below(unknown.len() as u64) as usize]);
    let negatives: BTreeSet<u32> = negatives.collect();
    positives.iter().copied().chain(negatives).collect()
}

fn positives(world: &World, client: u32) -> Vec<u32> {
    let task: &Recommendation = world.task.as_deref().and_then(|task| task.downcast()).unwrap();
    task.holdings().positives(ClientId(client)).to_vec()
}

const ROUNDS: [&[u32]; 4] = [&[3, 7], &[7, 11, 29], &[0], &[3, 4]];

#[test]
fn bytes_and_rows_follow_from_the_draws() {
    let world = world(&format!("{BASE}[protocol.synchronous]\ncohort = 5\n[policy.random]\n"), 1);
    let played = play(&world, Box::new(Script::new(&ROUNDS)), 4).unwrap();
    // A round's record has the bytes of all rounds up to it.
    let mut bytes = 0;
    let mut before = world.task.as_deref().unwrap().initial_model(0, &world.streams);
    for (index, round) in played.seen.rounds.iter().enumerate() {
        let jobs = ROUNDS[index].iter().map(|&client| met(&positives(&world, client), 50, client, index as u32 + 1));
        let jobs: Vec<BTreeSet<u32>> = jobs.collect();
        bytes += jobs.iter().map(|items| items.len() as u64 * (4 + 1) * 4).sum::<u64>();
        assert_eq!((round.down_bytes, round.up_bytes), (bytes, bytes), "round {index}");
        let moved: BTreeSet<u32> = jobs.into_iter().flatten().collect();
        let after = &played.seen.models[index];
        for (item, (old, new)) in (0..).zip(before.chunks(4).zip(after.chunks(4))) {
            assert_eq!(old != new, moved.contains(&item), "round {index}, item {item}");
        }
        before.clone_from(after);
    }
}

/// The clients whose private rows changed, by round, and the rows.
#[derive(Default)]
struct Kept {
    changed: Vec<(u32, u32)>,
    rows: BTreeMap<u32, Vec<f32>>,
    joined: Vec<Vec<u32>>,
}

impl Sink for Kept {
    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Record::Private { round, client, values } = *record {
            self.changed.push((round.0, client.0));
            self.rows.insert(client.0, values.to_vec());
        }
        Ok(())
    }

    fn round(&mut self, summary: &RoundSummary<'_>, _: bool, _: &RoundMark) -> io::Result<()> {
        let joined = summary.jobs.joined.iter().map(|(client, _)| *client);
        let mut clients: Vec<u32> = summary.jobs.arrived.iter().copied().chain(joined).map(|client| client.0).collect();
        clients.sort_unstable();
        self.joined.push(clients);
        Ok(())
    }
}

#[test]
fn what_clients_keep_changes_only_when_their_update_is_aggregated() {
    let protocol = "[protocol.deadline]\ncohort = 5\ndeadline = \"0.5 s\"\nlate = { carry = {} }\n";
    let world = world(&format!("{BASE}{protocol}[policy.random]\n"), 1);
    let script = Script::new(&[&[0, 1, 2, 3, 4], &[5, 6, 7, 8], &[9, 10], &[11, 12, 13]]);
    let mut kept = Kept::default();
    let mut run = Run::new(&world, "double", Policies::from(Box::new(script) as Box<_>), SETTINGS, &mut kept);
    for _ in 0..4 {
        run.step().unwrap();
    }
    run.finish().unwrap();
    for (index, clients) in (1_u32..).zip(&kept.joined) {
        let changed = kept.changed.iter().filter(|(round, _)| *round == index).map(|(_, client)| *client);
        assert_eq!(&changed.collect::<Vec<_>>(), clients, "round {index}");
    }
    // Some came too late for their own round, and some for all of them.
    assert!(kept.changed.len() > 5 && kept.rows.len() < 14, "{:?}", kept.changed);
    let task = world.task.as_deref().unwrap();
    for (&client, rows) in &kept.rows {
        assert_eq!(rows.len(), 4);
        assert_ne!(rows, &task.private_of(ClientId(client), None, &world.streams));
    }
}

#[test]
fn models_are_written_and_begun_with() {
    let text =
        format!("{BASE}[protocol.synchronous]\ncohort = 5\n[policy.random]\n").replace("users = 30\nitems", "items");
    let place = Workplace::with(&text);
    place.run_into("first", &["--models"]);
    let ids = String::from_utf8(place.read("first/runs/random-s1/users.csv")).unwrap();
    assert!(ids.starts_with("index,id\n0,0\n1,1\n"), "{ids}");
    assert!(!place.path("first/runs/random-s1/items.csv").exists(), "these ids stand for themselves");
    let summary = place.json("first/summary.json");
    assert!(summary["runs"][0]["controls"]["popularity"]["test_auc"].as_f64().unwrap() > 0.4);
    assert_eq!(place.fedgenie(&["verify", "first"]).code, 0);
    let start = "[task.recommendation]\nstart = \"first/runs/random-s1/model.safetensors\"\n";
    std::fs::write(place.path("again.toml"), text.replace("[task.recommendation]\n", start)).unwrap();
    place.run_file("again.toml", "second", &["--set", "training.optimizer={sgd={lr=1e-30}}"]);
    let last = |folder: &str| place.json(&format!("{folder}/summary.json"))["runs"][0]["final"]["test_auc"].clone();
    assert_eq!(last("first"), last("second"), "a step that moves nothing keeps the model");
}

#[test]
fn what_does_not_fit_is_named_with_its_key() {
    for (from, to, says) in [
        ("cutoffs = [5, 10]", "cutoffs = [5, 0]", "task.recommendation.cutoffs: found 0"),
        ("cutoffs = [5, 10]", "cutoffs = [5]\nquality = \"hr_20\"", "task.recommendation.quality: found \"hr_20\""),
        ("cutoffs = [5, 10]", "split = \"file\"", "task.recommendation.split"),
        ("cutoffs = [5, 10]", "partition = { iid = {} }", "population.clients: the number of clients is missing"),
        (
            "[population.latency]",
            "[population]\nclients = 31\n[population.latency]",
            "population.clients: found 31; the data say 30",
        ),
        ("batch = 4", "batch = 4\nclip = 0.0", "training.clip"),
        ("dimensions = 4", "dimensions = 0", "task.recommendation.model.mf.dimensions"),
        ("cohort = 5", "cohort = 31", "protocol.synchronous.cohort"),
    ] {
        let text = format!("{BASE}[protocol.synchronous]\ncohort = 5\n[policy.random]\n");
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let answer = Workplace::with(&text.replace(from, to)).fedgenie(&["run", "scenario.toml", "--quiet"]);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(says), "{answer:?}");
    }
}

/// Rows differ from job to job, and so would the mean speed of a link; laws given directly are durations themselves.
#[test]
fn mean_speeds_are_refused_where_bytes_decide_about_durations() {
    let (before, after) = (BASE.find("[population.latency]").unwrap(), BASE.find("[task.rec").unwrap());
    let device = "[population.device]\nsamples_per_second = 100.0\ndownlink = \"1 Mbit/s\"\nuplink = \"1 Mbit/s\"\n";
    let linked = format!("{}{device}{}", &BASE[..before], &BASE[after..]);
    let more = "[protocol.synchronous]\ncohort = 5\n[policy.random]\n";
    let regret = "[regret]\ntau_min = \"1 us\"\n";
    let answer = |text: &str| Workplace::with(text).fedgenie(&["run", "scenario.toml", "--quiet"]);
    let refused = answer(&format!("{linked}{regret}{more}"));
    assert!(refused.code == 2 && refused.stderr.contains("regret.meters: mean speeds"), "{refused:?}");
    for text in [format!("{linked}{more}"), format!("{BASE}[regret]\ntau_min = \"50 ms\"\n{more}")] {
        let good = answer(&text);
        assert_eq!(good.code, 0, "{good:?}");
        assert!(good.stdout.contains("\n(popularity) "), "{good:?}");
    }
}

/// A table of ratings whose column says `train` and `test`, and `valid` where the last item of each user is for that.
fn table(has_valid: bool) -> String {
    let part = |item: usize| match item {
        6 if has_valid => "valid",
        7 => "test",
        _ => "train",
    };
    let row = |(user, item): (usize, usize)| format!("{user},{},{}\n", (item + user) % 12, part(item));
    let rows: String = (0..9).flat_map(|user| (0..8).map(move |item| (user, item))).map(row).collect();
    format!("user,item,part\n{rows}")
}

/// Metrics on validation data that are not there are not silently missing.
#[test]
fn a_split_without_validation_is_said() {
    let own = "data = { csv = { file = \"ratings.csv\", split = \"part\" } }";
    let of_users = BASE.replace("users = 30\nitems = 50\n", "").replace("rounds = 6", "rounds = 2");
    let scenario = of_users.replace("data = { synthetic = { users = 30, items = 50, ratings = 500 } }", own);
    let scenario = format!("{scenario}[protocol.synchronous]\ncohort = 3\n[policy.random]\n");
    assert!(scenario.contains(own));
    let place = Workplace::with(&scenario);
    for has_valid in [true, false] {
        place.write("ratings.csv", table(has_valid));
        let answer = place.fedgenie(&["run", "scenario.toml", "--quiet", "--out", &format!("out-{has_valid}")]);
        assert_eq!(answer.code, 0, "{answer:?}");
        let is_said = answer.stderr.contains("the data have nothing for validation: metrics on it are not measured");
        assert_eq!(is_said, !has_valid, "{answer:?}");
        let found = &place.json(&format!("out-{has_valid}/summary.json"))["runs"][0]["final"];
        assert_eq!(found["valid_hr_5"].is_number(), has_valid, "{found}");
        assert!(found["test_hr_5"].is_number(), "{found}");
    }
    // A scenario that asks for such a metric is refused.
    for (more, part) in [
        ("[evaluate]\ntargets = [{ metric = \"valid_hr_5\", at_least = 0.5 }]\n", "valid_hr_5"),
        (
            "[regret]\ncounterfactual = true\nmeters = []\nutility = { aggregate = { valid_hr_5 = 1.0 } }\n",
            "valid_hr_5",
        ),
    ] {
        place.write("asks.toml", format!("{scenario}{more}"));
        let answer = place.fedgenie(&["run", "asks.toml", "--quiet"]);
        assert!(answer.code != 0 && answer.stderr.contains(part), "{more}: {answer:?}");
    }
}
