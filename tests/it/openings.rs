//! Openings of rounds: a task's actions there happen under every protocol and both kinds of cloud, and in a run that is
//! saved after every round.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::support::{DEVICES, SCENARIO, Workplace, changed, labelled, world};
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, JobNumber, Round};
use fedgenie::layout::Update;
use fedgenie::model::weights::read_safetensors;
use fedgenie::scenario::tree;
use fedgenie::task::{DataCache, Job, Task, Worker};
use std::path::Path;

/// A task's action at the opening of a round: its name, the task without it and with it, and the rest of the scenario.
const FEATURES: [(&str, &str, &str, &str); 2] = [
    (
        "data move between edge servers",
        "[task.classification]\nmodel = { mlp = { hidden = [6] } }\npartition = { dirichlet = { alpha = 0.3 } }\n\
         data = { synthetic = { height = 4, width = 4, train = 120, test = 40 } }\n",
        "drift = { round = 4, rotate = 1 }\n",
        "[policy.thompson]\nwarmup = 1\n[policy.random]\n",
    ),
    (
        "clients are waited for that evaluate the model",
        "[task.recommendation]\nusers = 9\ndata = { synthetic = { users = 9, items = 30, ratings = 150 } }\ncutoffs = [5]\n\
         transfer = { down = \"rows\", up = \"rows\" }\nmodel = { mf = { dimensions = 3 } }\n",
        "charge_evaluation = true\n",
        "[policy.random]\n",
    ),
];

/// The timeline and the model of a scenario's first policy, or why there are none.
fn digests(text: &str) -> Result<[String; 2], String> {
    let root = tree::parse(Path::new(SCENARIO), text).unwrap();
    let experiment = Experiment::from_tree(&root, Path::new("."), None).map_err(|error| error.to_string())?;
    let world = experiment.world(0, 1, &DataCache::default()).map_err(|error| error.to_string())?;
    let threads = fedgenie::experiment::Threads::new(1).unwrap();
    let run = experiment.runs().into_iter().next_back().unwrap();
    let summary = experiment.run_one(&run, &world, &mut fedgenie::recorder::NoSink, &threads, None).unwrap();
    Ok([summary.digest.timeline, summary.digest.model])
}

#[test]
fn what_acts_at_an_opening_does_so_under_every_protocol() {
    for (name, task, feature, policies) in FEATURES {
        let (mut played, mut refused) = (0, 0);
        for protocol in protocols() {
            // Evaluations are charged between rounds of one server, and data move between edge servers.
            let is_of_servers = protocol.contains("hierarchical");
            let is_refused = match feature.contains("drift") {
                true => !is_of_servers,
                false => is_of_servers || protocol.contains("buffered"),
            };
            let of = |feature: &str| {
                format!(
                    "{NINE}[evaluate]\nevery = 1\n{DEVICES}{protocol}{}{policies}",
                    changed(task, "data = ", &format!("{feature}data = "))
                )
            };
            let context = format!("{name}, under\n{protocol}");
            match (digests(&of(feature)), is_refused) {
                (Err(why), true) => {
                    refused += 1;
                    assert!(why.contains(feature.split(' ').next().unwrap()), "{context}{why}");
                }
                (Ok(with), false) => {
                    played += 1;
                    assert_ne!(with, digests(&of("")).unwrap(), "{context}");
                    assert!(assert_kept(&of(feature)) > 0, "{context}");
                }
                (found, _) => panic!("{context}{found:?}"),
            }
        }
        assert!(played >= 3 && refused >= 3, "{name}: {played} and {refused}");
    }
}

/// With models of clusters, whose edge servers are assigned by losses on data that have moved.
#[test]
fn clusters_are_assigned_by_data_that_have_moved() {
    let (_, task, drift, policies) = FEATURES[0];
    let clusters = "[clusters]\ncount = 2\nassign = { loss = { every = 2 } }\n";
    for cloud in ["", "edge_rounds = 2\ncloud = { buffer = 2 }\n"] {
        let edges = format!("[protocol.hierarchical]\nedges = 3\ncohort = 2\n{cloud}");
        let text = format!("{NINE}{DEVICES}{edges}{task}{drift}{clusters}{policies}");
        assert_eq!(assert_kept(&text), 2);
    }
}

/// Three edge servers of three clients, each of which takes one step with all its data; the cloud makes a model of
/// every one that arrives, and never waits. A client trains on the data that it has when it is asked: a model that has
/// set out before data move is trained on the earlier data, although it arrives later.
#[test]
fn at_a_cloud_that_does_not_wait_clients_train_on_the_data_of_when_they_were_asked() {
    const ROUNDS: u32 = 8;
    const MOVES: u32 = 4;
    let scenario = |rounds: u32, drift: &str| {
        format!(
            "name = \"openings\"\nseeds = 1\n[stop]\nrounds = {rounds}\n[population]\nclients = 9\n[population.latency]\n\
             download = {{ constant = \"0.1 s\" }}\nupload = {{ constant = \"0.1 s\" }}\n\
             compute = {{ constant = {{ each = [\"1 s\", \"1 s\", \"1 s\", \"1.3 s\", \"1.3 s\", \"1.3 s\", \"3.1 s\", \"3.1 s\", \"3.1 s\"] }} }}\n\
             [task.classification]\ndata = {{ synthetic = {{ height = 4, width = 4, train = 180, test = 40 }} }}\n{drift}\
             model = {{ mlp = {{ hidden = [6] }} }}\npartition = {{ dirichlet = {{ alpha = 0.5 }} }}\n\
             [training]\nbatch = 1000\noptimizer = {{ sgd = {{ lr = 0.1 }} }}\n\
             [protocol.hierarchical]\nedges = 3\ncohort = 1\ncloud = {{ buffer = 1 }}\n[policy.round-robin]\n"
        )
    };
    let drift = format!("drift = {{ round = {MOVES}, rotate = 1 }}\n");
    let world = world(&scenario(1, &drift), 1);
    let task = labelled(&world);
    let run = |rounds: u32| {
        let place = Workplace::with(&scenario(rounds, &drift));
        place.run_into("out", &["--models"]);
        let model = read_safetensors(&*task.model, &place.path("out/runs/round-robin-s1/model.safetensors")).unwrap();
        (model, place.lines("out/runs/round-robin-s1/rounds.jsonl"))
    };
    let mut initial = vec![0.0; task.layout().len()];
    task.init(0, &world.streams, &mut initial);
    let mut models = vec![initial];
    models.extend((1..=ROUNDS).map(|rounds| run(rounds).0));
    let (_, rounds) = run(ROUNDS);
    let (mut turns, mut seen) = ([0; 3], [0; 3]);
    for (round, told) in (1..).zip(&rounds) {
        let arrival = &told["edge_models"][0];
        assert_eq!((told["edge_models"].as_array().unwrap().len(), told["arrived"].as_array().unwrap().len()), (1, 1));
        let (server, client) =
            (arrival["server"].as_u64().unwrap() as usize, told["arrived"][0].as_u64().unwrap() as u32);
        let sent_in = round - arrival["staleness"].as_u64().unwrap() as u32;
        turns[server] += 1;
        let trained_on = |moved: bool| {
            let source = if moved { (client + 3) % 9 } else { client };
            let start = &models[sent_in as usize - 1];
            let (client, number) = (ClientId(source), JobNumber(turns[server]));
            let job = Job {
                client,
                round: Round(sent_in),
                number,
                start,
                private: None,
                epochs: None,
                correction: None,
                contrast: None,
            };
            let mut update = Update::default();
            task.train(&job, &world.context(), &mut Worker::default(), &mut update).unwrap();
            // One update, with all the weight that there is.
            let changes = update.parameters.iter().zip(start).map(|(one, sent)| f64::from(one - sent));
            let expected = models[round as usize - 1].iter().zip(changes).map(|(old, change)| f64::from(*old) + change);
            let found = models[round as usize].iter().map(|&one| f64::from(one));
            found.zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f64::max)
        };
        let is_moved = sent_in >= MOVES;
        let (right, wrong) = (trained_on(is_moved), trained_on(!is_moved));
        assert!(right < 1e-5 && wrong > 1e-3, "round {round}, sent in {sent_in}: {right} {wrong}");
        seen[usize::from(round >= MOVES) + usize::from(is_moved)] += 1;
    }
    assert!(seen[0] == MOVES - 1 && seen[1] > 1 && seen[2] > 1, "before, across and after: {seen:?}");
}
