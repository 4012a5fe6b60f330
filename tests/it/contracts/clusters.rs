//! Two summed blocks of parameters, of which each cluster of edge servers has one of its own.

use super::{PROTOCOLS, experiment, run};
use crate::support::Workplace;
use fedgenie::clusters::{AssignmentRequest, ClusterPolicy, EdgeFeedback};
use fedgenie::config::Complaint;
use fedgenie::experiment::verify::verify_with;
use fedgenie::experiment::{Earlier, Outputs, ResultFolder, RunOptions, Shard, Silent, Threads, execute};
use fedgenie::failure::Failure;
use fedgenie::halt::Effort;
use fedgenie::id::{ClientId, EdgeId};
use fedgenie::layout::{Layout, Scope, Segment, Update};
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::weights::TensorLayout;
use fedgenie::recorder::RunFileOptions;
use fedgenie::rng::{StreamRng, Streams};
use fedgenie::state::Stateful;
use fedgenie::task::{
    About, Ask, Context, DataCache, DealtData, Description, Job, Material, On, Task, TaskError, TaskSettings, Worker,
};
use fedgenie::trainer::LocalTraining;
use std::sync::{Arc, Mutex};

/// Client `k` wants `global + cluster` to be `1 + ⌊k/4⌋`: the four clients of each of three edge servers agree.
#[derive(Debug)]
struct TwoBlocks {
    layout: Layout,
    description: Description,
    /// Whether there are test examples of servers: the targets of their first clients, of server m the first m + 1.
    has_tests: bool,
}

fn wanted(client: ClientId) -> f64 {
    f64::from(1 + client.0 / 4)
}

impl Task for TwoBlocks {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn init(&self, cluster: u32, _: &Streams, parameters: &mut [f32]) {
        parameters.copy_from_slice(&[0.5, 0.25 * cluster as f32]);
    }

    fn describe(&self) -> &Description {
        &self.description
    }

    fn operations(&self, _: ClientId, _: &LocalTraining) -> f64 {
        100.0
    }

    fn train(&self, job: &Job<'_>, _: &Context<'_>, _: &mut Worker, update: &mut Update) -> Result<(), Failure> {
        update.clear();
        let error = f64::from(job.start[0]) + f64::from(job.start[1]) - wanted(job.client);
        update.parameters.extend(job.start.iter().map(|&number| (f64::from(number) - 0.25 * error) as f32));
        (update.first_loss, update.steps) = (error * error, 1);
        Ok(())
    }

    fn evaluate(&self, asks: &mut [Ask<'_>], _: Effort<'_>) -> Result<(), Failure> {
        for ask in asks {
            let clients = match ask.on {
                On::Client(client) => vec![client],
                On::Server(_, members) => members.to_vec(),
                On::ServerTest(_, _, examples) => examples.iter().copied().map(ClientId).collect(),
                _ => (0..12).map(ClientId).collect(),
            };
            let model = f64::from(ask.state.model[0]) + f64::from(ask.state.model[1]);
            let squares = clients.iter().map(|&client| (model - wanted(client)) * (model - wanted(client)));
            ask.values[0] = squares.sum::<f64>() / clients.len() as f64;
            ask.weight = clients.len() as f64;
        }
        Ok(())
    }

    fn tensors(&self) -> Vec<TensorLayout> {
        TensorLayout::in_turn(["global.weight", "cluster.weight"].map(|name| (name.to_owned(), vec![1])))
    }

    fn dealt(&self) -> Option<&dyn DealtData> {
        self.has_tests.then_some(self)
    }
}

impl DealtData for TwoBlocks {
    fn test_of_servers(&self, servers: &[Vec<ClientId>], _: &Streams) -> Vec<Vec<u32>> {
        let first =
            |(server, members): (usize, &Vec<ClientId>)| members[..=server].iter().map(|client| client.0).collect();
        servers.iter().enumerate().map(first).collect()
    }
}

#[derive(Debug, Default)]
pub struct Settings {
    has_tests: bool,
}

impl TaskSettings for Settings {
    fn about(&self) -> About {
        About { trains: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        Measures { of_data: vec![Measure::loss("loss")], ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let segments = vec![Segment::dense("global", 1, Scope::Shared), Segment::dense("own", 1, Scope::Cluster)];
        let (layout, description) = (Layout::new(segments), Description::of([8; 12]));
        Ok(Some(Box::new(TwoBlocks { layout, description, has_tests: self.has_tests })))
    }
}

#[test]
fn one_model_under_every_protocol() {
    for (name, protocol) in PROTOCOLS {
        let mut experiment = experiment(protocol, "[evaluate]\nclients = true\n");
        experiment.set_task(Settings::default()).unwrap();
        let summary = run(&experiment);
        for run in summary.runs.iter() {
            // The best single number is 2, which leaves a loss of 2/3; one begins with 0.5.
            let loss = run.final_metrics["test_loss"];
            assert!((2.0 / 3.0..1.2).contains(&loss), "{name}: {loss}");
            assert!((run.final_metrics["client_loss_mean"] - loss).abs() < 1e-12);
            assert!(run.traffic.up_bytes >= 8 * run.arrived, "{name}");
        }
    }
}

/// With a block for each edge server, each server's clients fit their own targets.
#[test]
fn a_block_for_each_cluster_of_edge_servers() {
    let (_, protocol) = PROTOCOLS[4];
    let loss = |more: &str| {
        let mut experiment = experiment(protocol, &format!("{more}[evaluate]\nservers = true\n"));
        experiment.set_task(Settings::default()).unwrap();
        let runs = run(&experiment).runs;
        runs.iter().map(|run| run.final_metrics["server_loss_mean"]).fold(0.0, f64::max)
    };
    let one = loss("");
    let fixed = loss("[clusters]\n");
    let single = loss("[clusters]\ninitial = \"single\"\n");
    let shuffled = loss("[clusters]\nassign = { random = { every = 1 } }\n");
    assert!(fixed < 0.05 && one > 0.6, "{fixed}, {one}");
    // Everybody in cluster 0 is as one model, whose blocks begin elsewhere.
    assert!((single - one).abs() < 0.1, "{single}, {one}");
    assert!(shuffled > 2.0 * fixed, "{shuffled}, {fixed}");
}

/// Metrics of servers are plain statistics of each model's values on its server's test examples, and metrics on test
/// data are over all examples.
#[test]
fn each_test_example_is_measured_under_its_servers_model() {
    let (_, protocol) = PROTOCOLS[4];
    let measured = |has_tests: bool| {
        let mut experiment = experiment(protocol, "[clusters]\ninitial = [1, 0, 0]\n");
        experiment.set_task(Settings { has_tests }).unwrap();
        let run = run(&experiment).runs[0].clone();
        let of = |name: &str| run.final_metrics[&format!("server_loss_{name}")];
        // Three values from their smallest, largest and mean; servers 1 and 2 share a model between 2 and 3.
        let (min, max) = (of("min"), of("max"));
        (run.final_metrics["test_loss"], [min, 3.0 * of("mean") - min - max, max], of("sd"))
    };
    let (without, _, _) = measured(false);
    let (test, losses, sd) = measured(true);
    let mean = losses.iter().sum::<f64>() / 3.0;
    let spread = losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum::<f64>() / 3.0;
    assert!((sd - spread.sqrt()).abs() < 1e-12);
    // Server 0 has its own model and the smallest loss, with 1 of 6 examples; who of the others has 2 and who has 3
    // follows from the assertion, and it is one of the two.
    let of = |[one, two, three]: [f64; 3]| (one + 2.0 * two + 3.0 * three) / 6.0;
    let orders = [[losses[0], losses[1], losses[2]], [losses[0], losses[2], losses[1]]].map(of);
    assert!(orders.iter().any(|order| (order - test).abs() < 1e-12), "{orders:?}, {test}");
    // Without test examples of servers, everything counts under every model that somebody has.
    assert!(without > test + 0.1, "{without}, {test}");
}

/// Moves every edge server to the next cluster after each round, and writes down its feedback.
#[derive(Stateful)]
struct Next {
    #[state(skip = "read by the test")]
    told: Arc<Mutex<Vec<String>>>,
}

impl ClusterPolicy for Next {
    fn assign(
        &mut self,
        ask: &AssignmentRequest<'_>,
        _: &mut StreamRng,
        assignment: &mut [u32],
    ) -> Result<(), Failure> {
        let losses = (0..3).map(|edge| (ask.loss)(EdgeId(edge), 0)).filter(|loss| loss.is_finite()).count();
        self.told.lock().unwrap().push(format!("asked {} {losses}", ask.round.0));
        assignment.iter_mut().for_each(|cluster| *cluster = (*cluster + 1) % ask.clusters);
        Ok(())
    }

    fn observe(&mut self, feedback: &EdgeFeedback<'_>) -> Result<(), Failure> {
        let words = match feedback {
            EdgeFeedback::Edge(report) => format!("edge {}", report.edge.0),
            EdgeFeedback::Round(report) => format!("round {}", report.round.0),
        };
        self.told.lock().unwrap().push(words);
        Ok(())
    }
}

/// A rule that comes from outside decides, in the library and in the replay of its folder.
#[test]
fn a_rule_of_ones_own() {
    let (_, protocol) = PROTOCOLS[4];
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = told.clone();
    let mut experiment = experiment(protocol, "[clusters]\ninitial = [0, 0, 1]\n");
    experiment.set_task(Settings::default()).unwrap();
    experiment
        .set_clusters(move |context| {
            assert_eq!((context.clusters, context.initial, context.rounds), (3, &[0, 0, 1][..], Some(12)));
            Box::new(Next { told: kept.clone() })
        })
        .unwrap();
    let place = Workplace::new();
    let folder = place.path("out");
    let one = Threads::new(1).unwrap();
    experiment.run_with(&RunOptions::into(&folder), &one).unwrap().whole().unwrap();
    for (round, number) in place.lines("out/runs/random-s1/rounds.jsonl").iter().zip(1_u64..) {
        let of = |initial: u64| (initial + number) % 3;
        assert_eq!(round["clusters"]["assignment"], serde_json::json!([of(0), of(0), of(1)]));
        assert_eq!(round["clusters"]["reassignments"], 3 * number);
    }
    // Of each round: its three servers in the order of arrival, the round, the question.
    let words = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(words.len(), 2 * 12 * 5, "two seeds");
    for (round, words) in words.chunks(5).enumerate() {
        let round = round % 12 + 1;
        let mut edges = words[..3].to_vec();
        edges.sort_unstable();
        assert_eq!(edges, ["edge 0", "edge 1", "edge 2"]);
        assert_eq!(words[3..], [format!("round {round}"), format!("asked {round} 3")]);
    }
    let verdict = verify_with(&experiment, &folder, None, &one).unwrap();
    assert!(verdict.difference.is_none() && verdict.missing.is_empty(), "{verdict:?}");
    // Without cluster models there is nothing to decide.
    let mut without = super::experiment(protocol, "");
    let error = without.set_clusters(|_| unreachable!()).unwrap_err().to_string();
    assert!(error.contains("no arm has cluster models"), "{error}");
}

/// A cloud that takes in models as they arrive, played again from the events of the run: model and cluster of each
/// server, arrivals in their order, and that servers move when they are next sent a model.
#[test]
fn clusters_take_in_what_arrives() {
    let protocol = "[protocol.hierarchical]\nedges = 3\ncohort = 4\nlink = { download = { constant = \"0.3 s\" }, upload = { \
                    exponential = { mean = \"1 s\" } } }\ncloud = { buffer = 2, staleness = { polynomial = { exponent = 1.0 } } }\n";
    let mut experiment = experiment(protocol, "[clusters]\ninitial = [0, 0, 1]\n");
    experiment.set_task(Settings { has_tests: false }).unwrap();
    experiment.set_clusters(|_| Box::new(Next { told: Arc::default() })).unwrap();
    let place = Workplace::new();
    let folder = ResultFolder::open(&place.path("out"), &experiment, Earlier::Refuse, Shard::WHOLE).unwrap();
    let outputs = Outputs {
        folder: &folder,
        files: &RunFileOptions { events: true, timeline: None },
        models: false,
        memory: None,
    };
    let (one, runs) = (Threads::new(1).unwrap(), experiment.runs());
    let results = execute(&experiment, &runs, Some(outputs), &one, &DataCache::default(), &Silent);
    assert!(results.iter().all(Result::is_ok));
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found}, by hand {expected}");
    for run in ["out/runs/random-s1", "out/runs/random-s2"] {
        // The shared block, that of each cluster, and the assignment.
        let (mut shared, mut own, mut assignment) = (0.5, [0.0, 0.25, 0.5], [0_usize, 0, 1]);
        // Of each server: the blocks that it was sent, its cluster, and when it was sent them.
        let mut sent = [(0.0, 0.0, 0_usize, 0_u32); 3];
        let (mut buffer, mut round, mut stale) = (Vec::new(), 1_u32, 0);
        let rounds = place.lines(&format!("{run}/rounds.jsonl"));
        for event in place.events(run) {
            match event["event"].as_str().unwrap() {
                "cloud-opened" => {
                    for edge in event["edges"].as_array().unwrap().iter().map(|edge| edge.as_u64().unwrap() as usize) {
                        sent[edge] = (shared, own[assignment[edge]], assignment[edge], round);
                    }
                }
                "travelled" if event["down"] == false => {
                    let edge = event["edge"].as_u64().unwrap() as usize;
                    let (global, block, cluster, sent_in) = sent[edge];
                    // Its clients agree, and so does their mean: both blocks move by a quarter of the error.
                    let change = -0.25 * (global + block - (1 + edge) as f64);
                    let age = round - sent_in;
                    let of_round = &rounds[round as usize - 1]["edge_models"][buffer.len()];
                    assert_eq!(*of_round, serde_json::json!({ "server": edge, "staleness": age, "late": false }));
                    stale += age;
                    buffer.push((cluster, change / f64::from(1 + age)));
                    if buffer.len() == 2 {
                        shared += (buffer[0].1 + buffer[1].1) / 2.0;
                        for (cluster, own) in own.iter_mut().enumerate() {
                            let mine = buffer.iter().filter(|part| part.0 == cluster).map(|part| part.1);
                            let mine: Vec<f64> = mine.collect();
                            *own += if mine.is_empty() { 0.0 } else { mine.iter().sum::<f64>() / mine.len() as f64 };
                        }
                        let found = &rounds[round as usize - 1];
                        // Each cluster's model on everybody's wishes, weighted by the servers that play it.
                        let loss = |cluster: usize| {
                            let square = |server: i32| (shared + own[cluster] - f64::from(1 + server)).powi(2);
                            (0..3).map(square).sum::<f64>() / 3.0
                        };
                        let expected = sent.iter().map(|server| loss(server.2)).sum::<f64>() / 3.0;
                        close(found["metrics"]["test_loss"].as_f64().unwrap(), expected);
                        assignment.iter_mut().for_each(|cluster| *cluster = (*cluster + 1) % 3);
                        assert_eq!(found["clusters"]["assignment"], serde_json::json!(assignment));
                        (buffer, round) = (Vec::new(), round + 1);
                    }
                }
                _ => {}
            }
        }
        assert!(round == 13 && stale > 0, "{round}, {stale}");
    }
}
