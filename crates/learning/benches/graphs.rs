//! Graph networks on the graphs of ten clients: a step of each, which is the loss of all its training ratings and its
//! slopes.
//!
//! `cargo bench -p fedgenie-learning --bench graphs`; `-- --data FOLDER` takes `ciao` or the like from there, as
//! `FEDGENIE_DATA` does, instead of drawn ratings of Ciao's size. `--json` prints lines of JSON; `--threads 2` and
//! `--only gat` measure only that; `--write FOLDER` writes graphs, weights, losses and slopes into a folder for another
//! program. `--small` draws the small data that scenarios have by default. Five layers of 32 numbers by convolution,
//! two of two heads by attention; 64 features, seed 1.

#![allow(clippy::disallowed_methods, reason = "benchmarks read the clock")]
#![allow(missing_docs, reason = "a program")]

use fedgenie_core::math::special::normal_quantile;
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::graph_network::{Kind, Network, Prepared, Scratch, Shape};
use fedgenie_learning::model::weights::{Tensor, to_safetensors};
use fedgenie_learning::ratings::social::{SocialConfig, SocialPartition, SocialSource, SyntheticSocial};
use fedgenie_learning::ratings::{Part, SplitConfig};
use fedgenie_learning::task::rating_graph::{ClientGraph, Holdings};
use rayon::prelude::*;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

const CLIENTS: usize = 10;
const STEPS: usize = 5;
const EMBEDDING: usize = 64;

const CASES: [(&str, Shape); 2] = [
    ("gcn", Shape { kind: Kind::Gcn, layers: 5, hidden: 32, embedding: EMBEDDING }),
    ("gat", Shape { kind: Kind::Gat { heads: 2 }, layers: 2, hidden: 32, embedding: EMBEDDING }),
];

fn holdings(data: Option<PathBuf>, is_small: bool, streams: &Streams) -> Holdings {
    let small = SyntheticSocial::default();
    let large = SyntheticSocial { users: 7_000, items: 100_000, ratings: 280_000, trust: 57_000, ..small.clone() };
    let drawn = if is_small { small } else { large };
    let config = data.map_or(SocialConfig::Source(SocialSource::Synthetic(drawn)), SocialConfig::Folder);
    let social = config.load(None, streams, &Default::default()).expect("ratings can be read");
    let split = SplitConfig::Random { test: 0.1, valid: 0.1 };
    let split = split.split(social.ratings.clone(), streams).expect("ratings can be split");
    let dealt = SocialPartition::default().deal(&split, CLIENTS, streams).expect("there are categories enough");
    Holdings::new(social, split, dealt, true)
}

/// The features of a client's nodes: the same at every client, `N(0, 1/64)`.
fn features(client: &ClientGraph, users: usize, streams: &Streams) -> Vec<f32> {
    let of_node = |&node: &u32| {
        let is_user = (node as usize) < users;
        let (entity, index) = if is_user { (node, 15) } else { (node - users as u32, 16) };
        let mut rng = streams.stream(Purpose::Example, entity, index);
        (0..EMBEDDING).map(move |_| (normal_quantile(rng.uniform()) / 8.0) as f32)
    };
    client.nodes.iter().flat_map(of_node).collect()
}

fn tensor(name: String, shape: &[usize], values: Vec<f32>) -> Tensor {
    Tensor { name, shape: shape.to_vec(), values }
}

fn write(path: &Path, tensors: &[Tensor]) {
    std::fs::write(path, to_safetensors(tensors)).expect("the folder can be written to");
}

/// Graphs as numbers: edges between two nodes each, once; features; ratings for training and for testing.
fn write_graphs(folder: &Path, clients: &[ClientGraph], features: &[Vec<f32>]) {
    let mut tensors = Vec::new();
    for (number, (client, features)) in clients.iter().zip(features).enumerate() {
        let nodes = client.nodes.len();
        let edges = (0..nodes as u32).flat_map(|one| {
            let others = client.graph.around(one as usize).iter().filter(move |&&other| other > one);
            others.map(move |&other| (one, other))
        });
        let [ones, others]: [Vec<f32>; 2] = edges.map(|(one, other)| (one as f32, other as f32)).unzip().into();
        let name = |what: &str| format!("{number}.{what}");
        tensors.extend([
            tensor(name("edges"), &[2, ones.len()], [ones, others].concat()),
            tensor(name("features"), &[nodes, EMBEDDING], features.clone()),
        ]);
        for (part, of_pairs, of_ratings) in [(Part::Train, "pairs", "ratings"), (Part::Test, "tests", "test_ratings")] {
            let pairs = client.part(part);
            let ends = pairs.ends.iter().map(|&(user, item)| (user as f32, item as f32));
            let [users, items]: [Vec<f32>; 2] = ends.unzip().into();
            tensors.extend([
                tensor(name(of_pairs), &[2, users.len()], [users, items].concat()),
                tensor(name(of_ratings), &[pairs.values.len()], pairs.values.clone()),
            ]);
        }
    }
    write(&folder.join("graphs.safetensors"), &tensors);
}

/// What a client keeps from step to step.
struct Client<'a> {
    network: Network<'a>,
    held: &'a ClientGraph,
    chosen: Vec<u32>,
    gradient: Vec<f32>,
    loss: f64,
}

thread_local! {
    /// Kept from step to step, as by a job of several steps.
    static BUFFERS: RefCell<(Scratch, Vec<f32>)> = RefCell::default();
}

fn step(clients: &mut [Client<'_>], parameters: &[f32]) {
    clients.par_iter_mut().with_max_len(1).for_each(|client| {
        BUFFERS.with_borrow_mut(|(scratch, losses)| {
            let batch = (client.held.part(Part::Train), &*client.chosen);
            client.loss = client.network.loss_and_gradient(parameters, batch, &mut client.gradient, losses, scratch);
        });
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |word: &str| {
        let place = arguments.iter().position(|argument| argument == word)?;
        Some(arguments.get(place + 1).unwrap_or_else(|| panic!("{word} needs a value")).clone())
    };
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let json = has("--json");
    let data = value("--data").or_else(|| std::env::var("FEDGENIE_DATA").ok());
    let data = data.map(|data| if data.ends_with("ciao") { data.into() } else { Path::new(&data).join("ciao") });
    let (folder, only) = (value("--write").map(PathBuf::from), value("--only"));
    let threads: Vec<usize> = match value("--threads") {
        Some(threads) => vec![threads.parse().expect("a number of threads")],
        None => vec![1, 2],
    };
    let streams = Streams::new(1);
    let holdings = holdings(data.filter(|_| !has("--small")), has("--small"), &streams);
    let clients = holdings.clients();
    let rows: Vec<Vec<f32>> = clients.iter().map(|client| features(client, holdings.users(), &streams)).collect();
    if let Some(folder) = &folder {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        write_graphs(folder, clients, &rows);
    }
    let (nodes, edges) = clients
        .iter()
        .fold((0, 0), |(nodes, edges), client| (nodes + client.graph.nodes(), edges + client.graph.edges()));
    if !json {
        println!(
            "{CLIENTS} clients, {nodes} nodes, {edges} edges, {} training ratings",
            holdings.describe().all_examples
        );
    }
    for (case, shape) in CASES.into_iter().filter(|(case, _)| only.as_ref().is_none_or(|only| only == case)) {
        let mut parameters = vec![0.0; shape.parameters()];
        shape.init(&mut streams.stream(Purpose::ModelInit, 0, 0), &mut parameters);
        let prepare = |(client, rows): (&ClientGraph, &Vec<f32>)| {
            Prepared::new(&shape, &client.graph, |node, row| {
                row.copy_from_slice(&rows[node * EMBEDDING..][..EMBEDDING])
            })
        };
        let prepared: Vec<Prepared> = clients.iter().zip(&rows).map(prepare).collect();
        let client = |(held, prepared)| {
            let held: &ClientGraph = held;
            let chosen = (0..held.part(Part::Train).ends.len() as u32).collect();
            let network = Network { shape: &shape, graph: &held.graph, prepared };
            Client { network, held, chosen, gradient: vec![0.0; shape.parameters()], loss: 0.0 }
        };
        let mut work: Vec<Client<'_>> = clients.iter().zip(&prepared).map(client).collect();
        for &threads in &threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
            let mut time = || {
                let begin = Instant::now();
                pool.install(|| step(&mut work, &parameters));
                begin.elapsed().as_secs_f64()
            };
            time();
            let mut seconds: Vec<f64> = (0..STEPS).map(|_| time()).collect();
            seconds.sort_unstable_by(f64::total_cmp);
            let [median, best] = [seconds[STEPS / 2], seconds[0]];
            if json {
                println!(
                    "{{\"case\":\"{case}\",\"threads\":{threads},\"unit\":\"s\",\"median\":{median},\"best\":{best}}}"
                );
            } else {
                println!("{case}, {threads} threads: a step of all clients takes {median:.4} s, at best {best:.4} s");
            }
        }
        if let Some(folder) = &folder {
            let mut tensors: Vec<Tensor> = shape
                .tensors()
                .into_iter()
                .map(|of| tensor(of.name.clone(), &of.shape, parameters[of.offset..][..of.entries()].to_vec()))
                .collect();
            for (number, client) in work.iter().enumerate() {
                tensors.push(tensor(format!("{number}.loss"), &[1], vec![client.loss as f32]));
                for of in shape.tensors() {
                    let values = client.gradient[of.offset..][..of.entries()].to_vec();
                    tensors.push(tensor(format!("{number}.{}", of.name), &of.shape, values));
                }
            }
            write(&folder.join(format!("{case}.safetensors")), &tensors);
        }
    }
}
