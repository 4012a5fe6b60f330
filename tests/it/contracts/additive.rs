//! Models of clusters against the same training in double precision, written out: scores that are sums of two networks,
//! one clip norm for both, weight decay and `l2`, averages of edge servers, of the shared network and of clusters,
//! losses of all clusters' models, and the regret of assignments.

use crate::support::{SCENARIO, Workplace, changed};
use fedgenie::model::weights::{Tensor, WeightsError, read_tensors, to_safetensors};
use serde_json::Value;

const FEATURES: usize = 2;
const HIDDEN: usize = 3;
const CLASSES: usize = 3;
/// Weights and biases of both layers.
const NETWORK: usize = HIDDEN * (FEATURES + 1) + CLASSES * (HIDDEN + 1);
const SERVERS: usize = 4;
const CLUSTERS: usize = 3;

/// Twelve clients in fours servers, whole batches, so that the order of examples does not matter.
const WORLD: &str = r#"name = "additive"
seeds = 2
[stop]
rounds = 8
[population]
clients = 12
[population.latency]
download = { constant = "0.1 s" }
compute = { exponential = { mean = { uniform = ["0.2 s", "2 s"] } } }
upload = { constant = "0.1 s" }
[task.classification]
data = { csv = { train = "train.csv", test = "test.csv", label = "y", group = "g" } }
model = { mlp = { hidden = [3], activation = "tanh" } }
partition = "by-column"
start = "start.safetensors"
[training]
epochs = 3
batch = 100
optimizer = { sgd = { lr = 0.2, momentum = 0.9, weight_decay = 0.01 } }
schedule = { exponential = { decay = 0.9 } }
clip = 0.3
[protocol.hierarchical]
edges = 4
participation = 0.7
[clusters]
count = 3
l2 = 0.05
initial = [0, 0, 1, 0]
assign = { random = { every = 2 } }
[regret]
assignment = true
[policy.random]
"#;

struct Example {
    x: [f64; FEATURES],
    y: usize,
}

/// The examples of each client, and test examples.
struct Data {
    clients: Vec<Vec<Example>>,
    test: Vec<Example>,
}

/// Numbers without a pattern that matters, between −1 and 1.
fn number(index: usize) -> f64 {
    f64::from(((index * 2_654_435_761) % 20_001) as u32) / 10_000.0 - 1.0
}

fn data() -> Data {
    let example = |owner: usize, index: usize| {
        let x = [number(17 * owner + index), number(31 * owner + 7 * index + 3)];
        Example { x, y: (owner / 3 + usize::from(x[0] > x[1]) + usize::from(index.is_multiple_of(5))) % CLASSES }
    };
    let clients = (0..12).map(|client| (0..4 + 3 * (client % 4)).map(|index| example(client, index)).collect());
    Data { clients: clients.collect(), test: (0..30).map(|index| example(index % 12, 100 + index)).collect() }
}

fn table(rows: impl Iterator<Item = (usize, usize)>, of: impl Fn(usize, usize) -> ([f64; 2], usize)) -> String {
    let mut text = "g,a,b,y\n".to_owned();
    for (group, index) in rows {
        let ([a, b], y) = of(group, index);
        text.push_str(&format!("{group},{a},{b},{y}\n"));
    }
    text
}

/// Scores of an example, with the outputs of the hidden layer.
fn scores(network: &[f64], x: &[f64; FEATURES]) -> ([f64; CLASSES], [f64; HIDDEN]) {
    let (first, second) = network.split_at(HIDDEN * (FEATURES + 1));
    let hidden = std::array::from_fn(|h| {
        let sum: f64 = (0..FEATURES).map(|i| first[h * FEATURES + i] * x[i]).sum();
        (sum + first[HIDDEN * FEATURES + h]).tanh()
    });
    let scores = std::array::from_fn(|c| {
        let sum: f64 = (0..HIDDEN).map(|h| second[c * HIDDEN + h] * hidden[h]).sum();
        sum + second[CLASSES * HIDDEN + c]
    });
    (scores, hidden)
}

/// Adds the derivatives of a loss whose derivatives by the scores are `slopes`.
fn add_gradient(network: &[f64], example: &Example, slopes: &[f64; CLASSES], gradient: &mut [f64]) {
    let (_, hidden) = scores(network, &example.x);
    let split = HIDDEN * (FEATURES + 1);
    for h in 0..HIDDEN {
        let mut slope = 0.0;
        for c in 0..CLASSES {
            gradient[split + c * HIDDEN + h] += slopes[c] * hidden[h];
            slope += slopes[c] * network[split + c * HIDDEN + h];
        }
        slope *= 1.0 - hidden[h] * hidden[h];
        (0..FEATURES).for_each(|i| gradient[h * FEATURES + i] += slope * example.x[i]);
        gradient[HIDDEN * FEATURES + h] += slope;
    }
    (0..CLASSES).for_each(|c| gradient[split + CLASSES * HIDDEN + c] += slopes[c]);
}

/// A model: the shared network, which may be empty, and the cluster's.
#[derive(Clone)]
struct Model {
    shared: Option<Vec<f64>>,
    own: Vec<f64>,
}

impl Model {
    /// Loss of an example, its derivatives by the scores, and whether its class is predicted.
    fn loss(&self, example: &Example) -> (f64, [f64; CLASSES], bool) {
        let (mut sum, _) = scores(&self.own, &example.x);
        if let Some(shared) = &self.shared {
            let (more, _) = scores(shared, &example.x);
            sum.iter_mut().zip(more).for_each(|(score, more)| *score += more);
        }
        let total: f64 = sum.iter().map(|score| score.exp()).sum();
        let slopes = std::array::from_fn(|c| sum[c].exp() / total - f64::from(u8::from(c == example.y)));
        let predicted = (0..CLASSES).max_by(|&i, &j| sum[i].total_cmp(&sum[j])).unwrap();
        (total.ln() - sum[example.y], slopes, predicted == example.y)
    }

    fn mean_loss<'a>(&self, examples: impl Iterator<Item = &'a Example>) -> f64 {
        let losses: Vec<f64> = examples.map(|example| self.loss(example).0).collect();
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    fn networks(&mut self) -> Vec<&mut Vec<f64>> {
        self.shared.iter_mut().chain([&mut self.own]).collect()
    }

    /// Three epochs of one step each.
    fn trained(mut self, examples: &[Example], round: i32, l2: f64) -> Self {
        let lr = 0.2 * 0.9_f64.powi(round - 1);
        let count = self.networks().len();
        let mut velocity = vec![vec![0.0; NETWORK]; count];
        for epoch in 0..3 {
            let mut gradients = vec![vec![0.0; NETWORK]; count];
            for example in examples {
                let slopes = self.loss(example).1.map(|slope| slope / examples.len() as f64);
                for (network, gradient) in self.networks().into_iter().zip(&mut gradients) {
                    add_gradient(network, example, &slopes, gradient);
                }
            }
            let norm = gradients.iter().flatten().map(|slope| slope * slope).sum::<f64>().sqrt();
            let scale = (0.3 / (norm + 1e-6)).min(1.0);
            for (index, network) in self.networks().into_iter().enumerate() {
                let decay = if index + 1 == count { 0.01 + l2 } else { 0.01 };
                for ((weight, slope), speed) in network.iter_mut().zip(&gradients[index]).zip(&mut velocity[index]) {
                    let slope = scale * slope + decay * *weight;
                    *speed = if epoch == 0 { slope } else { 0.9 * *speed + slope };
                    *weight -= lr * *speed;
                }
            }
        }
        self
    }
}

fn average(parts: &[(f64, &Vec<f64>)]) -> Vec<f64> {
    let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
    (0..NETWORK).map(|i| parts.iter().map(|(weight, network)| weight / total * network[i]).sum()).collect()
}

fn tensors(prefix: &str, network: &[f64]) -> Vec<Tensor> {
    let shapes = [vec![HIDDEN, FEATURES], vec![HIDDEN], vec![CLASSES, HIDDEN], vec![CLASSES]];
    let names = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"];
    let mut from = 0;
    let tensor = |(name, shape): (&str, Vec<usize>)| {
        let len: usize = shape.iter().product();
        let values = network[from..from + len].iter().map(|&value| value as f32).collect();
        from += len;
        Tensor { name: format!("{prefix}.{name}"), shape, values }
    };
    names.into_iter().zip(shapes).map(tensor).collect()
}

/// The networks' initial weights, in single precision.
fn start(network: usize) -> Vec<f64> {
    (0..NETWORK).map(|i| f64::from(number(1_000 * network + i) as f32)).collect()
}

/// The networks of a file that has these and no others, each under the common prefix of its names.
fn networks_of(place: &Workplace, run: &str, prefixes: &[String]) -> Result<Vec<Vec<f64>>, WeightsError> {
    let expected = prefixes.iter().flat_map(|prefix| tensors(prefix, &[0.0; NETWORK]));
    let expected = expected.map(|tensor| (tensor.name, tensor.shape)).collect();
    let found = read_tensors(&place.path(&format!("out/runs/{run}/model.safetensors")), expected)?;
    let network = |tensors: &[Tensor]| tensors.iter().flat_map(|tensor| tensor.values.clone()).map(f64::from).collect();
    Ok(found.chunks(4).map(network).collect())
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 2e-5, "{found}, {expected}");
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
}

/// Plays the recorded rounds of a run, and compares losses, regret, accuracy on test data and models.
fn replay(place: &Workplace, run: &str, is_additive: bool, l2: f64, losses_on_test: Option<&[Vec<usize>]>) {
    let Data { clients, test } = data();
    let members = |server: usize| 3 * server..3 * server + 3;
    let size = |server: usize| members(server).map(|client| clients[client].len()).sum::<usize>() as f64;
    let total: f64 = (0..SERVERS).map(size).sum();
    let mut shared = is_additive.then(|| start(0));
    let mut own: Vec<Vec<f64>> = (1..=CLUSTERS).map(start).collect();
    let mut assignment = vec![0, 0, 1, 0];
    let (mut regret, mut moved) = (0.0, 0);
    let rounds = place.lines(&format!("out/runs/{run}/rounds.jsonl"));
    assert_eq!(rounds.len(), 8);
    for (round, t) in rounds.iter().zip(1..) {
        let arrived = indices(&round["arrived"]);
        let model_of = |cluster: usize, shared: &Option<Vec<f64>>, own: &[Vec<f64>]| Model {
            shared: shared.clone(),
            own: own[cluster].clone(),
        };
        let mut of_servers = Vec::new();
        for (server, &cluster) in assignment.iter().enumerate() {
            let chosen: Vec<usize> =
                arrived.iter().copied().filter(|client| members(server).contains(client)).collect();
            // ⌊0.7 · 3⌋
            assert_eq!(chosen.len(), 2, "{round}");
            let train = |&client: &usize| model_of(cluster, &shared, &own).trained(&clients[client], t, l2);
            let models: Vec<Model> = chosen.iter().map(train).collect();
            let weights: Vec<f64> = chosen.iter().map(|&client| clients[client].len() as f64).collect();
            let parts = |of: fn(&Model) -> Option<&Vec<f64>>| {
                let parts: Vec<_> = weights.iter().copied().zip(models.iter().filter_map(of)).collect();
                (!parts.is_empty()).then(|| average(&parts))
            };
            of_servers.push((parts(|model| model.shared.as_ref()), parts(|model| Some(&model.own)).unwrap()));
        }
        if is_additive {
            let parts: Vec<_> = of_servers
                .iter()
                .enumerate()
                .map(|(server, (shared, _))| (size(server), shared.as_ref().unwrap()))
                .collect();
            shared = Some(average(&parts));
        }
        for (cluster, network) in own.iter_mut().enumerate() {
            let of_cluster = (0..SERVERS).filter(|&server| assignment[server] == cluster);
            let parts: Vec<_> = of_cluster.map(|server| (size(server), &of_servers[server].1)).collect();
            // A cluster without a server keeps its network.
            if !parts.is_empty() {
                *network = average(&parts);
            }
        }
        let all: Vec<Model> = (0..CLUSTERS).map(|cluster| model_of(cluster, &shared, &own)).collect();
        if t % 2 == 0 {
            let reassign = &round["reassign"];
            assert_eq!(indices(&reassign["from"]), assignment);
            let to = indices(&reassign["to"]);
            for (server, &cluster) in to.iter().enumerate() {
                let losses: Vec<f64> = all
                    .iter()
                    .map(|model| match losses_on_test {
                        None => model.mean_loss(members(server).flat_map(|client| &clients[client])),
                        Some(split) => model.mean_loss(split[server].iter().map(|&example| &test[example])),
                    })
                    .collect();
                for (found, expected) in reassign["losses"][server].as_array().unwrap().iter().zip(&losses) {
                    assert_near(found.as_f64().unwrap(), *expected);
                }
                let smallest = losses.iter().copied().fold(f64::MAX, f64::min);
                regret += size(server) / total * (losses[cluster] - smallest);
                moved += usize::from(cluster != assignment[server]);
            }
            assert_near(round["regret"]["assignment"].as_f64().unwrap(), regret);
            assignment = to;
        }
    }
    assert!(moved > 3 && regret > 0.01, "servers move, and not always to the best: {moved}, {regret}");
    let expected: Vec<Vec<f64>> = shared.into_iter().chain(own).collect();
    let found = networks_of(place, run, &prefixes(is_additive)).unwrap();
    assert_eq!(found.len(), expected.len());
    found.concat().iter().zip(expected.concat()).for_each(|(found, expected)| assert_near(*found, expected));
}

fn prefixes(is_additive: bool) -> Vec<String> {
    let shared = is_additive.then(|| "global".to_owned());
    shared.into_iter().chain((0..CLUSTERS).map(|cluster| format!("cluster.{cluster}"))).collect()
}

fn place(text: &str) -> Workplace {
    let place = Workplace::with(text);
    let Data { clients, test } = data();
    let rows = (0..12).flat_map(|client| (0..clients[client].len()).map(move |index| (client, index)));
    place.write("train.csv", table(rows, |client, index| (clients[client][index].x, clients[client][index].y)));
    place.write("test.csv", table((0..30).map(|index| (index % 12, index)), |_, index| (test[index].x, test[index].y)));
    let mut all = tensors("global", &start(0));
    for cluster in 0..CLUSTERS {
        all.extend(tensors(&format!("cluster.{cluster}"), &start(cluster + 1)));
    }
    if text.contains("isolated") {
        all.retain(|tensor| tensor.name.starts_with("cluster"));
    }
    place.write("start.safetensors", to_safetensors(&all));
    place
}

#[test]
fn additive_models_are_those_of_the_same_training_in_double_precision() {
    let place = place(WORLD);
    place.run_into("out", &["--models"]);
    for run in ["random-s1", "random-s2"] {
        replay(&place, run, true, 0.05, None);
    }
}

#[test]
fn isolated_models_are_those_of_the_same_training_in_double_precision() {
    let place = place(&changed(WORLD, "l2 = 0.05", "model = \"isolated\""));
    place.run_into("out", &["--models"]);
    replay(&place, "random-s1", false, 0.0, None);
}

/// One isolated cluster is no cluster: the same digests, but for the names of tensors in the file.
#[test]
fn one_isolated_cluster_is_one_model() {
    let drawn = changed(WORLD, "start = \"start.safetensors\"\n", "");
    let from = drawn.find("[clusters]").unwrap();
    let to = drawn.find("[policy.random]").unwrap();
    let digests = |more: &str| {
        let place = place(&format!("{}{more}{}", &drawn[..from], &drawn[to..]));
        place.run_into("out", &["--models"]);
        place.digests("out").into_iter().map(|(run, _, model)| (run, model)).collect::<Vec<_>>()
    };
    let plain = digests("");
    assert_eq!(digests("[clusters]\ncount = 1\nmodel = \"isolated\"\n"), plain);
    assert_ne!(digests("[clusters]\ncount = 1\nmodel = \"isolated\"\nl2 = 0.1\n"), plain);
    // Of the first cluster among several, where everybody is in it, the network starts from the same draw.
    let everybody = "[clusters]\nmodel = \"isolated\"\ninitial = \"single\"\n";
    assert_ne!(digests(everybody), plain, "the digest has all clusters' networks");
}

/// How the networks of clusters start: each from its own draw, or all from the same; the shared one as without
/// clusters.
#[test]
fn networks_start_from_their_draws() {
    let drawn = changed(WORLD, "start = \"start.safetensors\"\n", "");
    // A learning rate at which nothing is learned in single precision.
    let still = changed(&changed(&drawn, "lr = 0.2", "lr = 1e-30"), "rounds = 8", "rounds = 1");
    let networks = |more: &str| {
        let text = changed(&still, "count = 3\n", &format!("count = 3\n{more}"));
        let place = place(&text);
        place.run_into("out", &["--models"]);
        networks_of(&place, "random-s1", &prefixes(!more.contains("isolated"))).unwrap()
    };
    let [shared, one, two, three] = networks("").try_into().unwrap();
    assert!(one != two && two != three && one != three && shared != one);
    let [same_shared, same_one, same_two, same_three] = networks("networks = \"same\"\n").try_into().unwrap();
    assert_eq!((&same_shared, &same_one, &same_two, &same_three), (&shared, &one, &one, &one));
    let isolated: [Vec<f64>; 3] = networks("model = \"isolated\"\n").try_into().unwrap();
    assert!(isolated[0] == shared && isolated[1] != shared && isolated[1] != isolated[2]);
}

/// Whatever the number of threads, with bandits on both levels, and for the shared branch that is passed once for all.
#[test]
fn additive_models_do_not_depend_on_threads() {
    let bandits =
        changed(&changed(WORLD, "{ random = { every = 2 } }", "{ linucb = { every = 2 } }"), "random]", "thompson]");
    let place = place(&bandits);
    let digests = ["1", "2", "7"].map(|threads| {
        place.run_into(threads, &["--threads", threads]);
        let lines = place.text(&format!("{threads}/runs/thompson-s1/rounds.jsonl"));
        (place.digests(threads), lines)
    });
    assert!(digests[0] == digests[1] && digests[0] == digests[2]);
}

/// An edge server that the cloud does not choose is measured under the model of the cluster that it belongs to.
#[test]
fn servers_that_take_no_part_belong_to_their_clusters() {
    let some = changed(
        WORLD,
        "participation = 0.7",
        "participation = 0.7\ncloud = { cohort = 2, policy = { round-robin = {} } }",
    );
    let place = place(&changed(&some, "{ random = { every = 2 } }", "{ random = { every = 1 } }"));
    place.run_into("out", &[]);
    let mut assignment = vec![0, 0, 1, 0];
    for round in place.lines("out/runs/random-s1/rounds.jsonl") {
        let servers = round["servers"].as_array().unwrap();
        let clusters: Vec<usize> = servers.iter().map(|server| server["cluster"].as_u64().unwrap() as usize).collect();
        assert_eq!(clusters, assignment, "{round}");
        assignment = indices(&round["clusters"]["assignment"]);
    }
}

#[test]
fn what_a_task_cannot_add_is_named() {
    let task = "[task.linear-regression]\nexamples = 700\n";
    let (from, to) = (WORLD.find("[task").unwrap(), WORLD.find("[training]").unwrap());
    let text = format!("{}{task}{}", &WORLD[..from], &WORLD[to..]);
    let answer = |more: &str| {
        let place = Workplace::with(&changed(&text, "l2 = 0.05\n", more));
        place.fedgenie(&["run", SCENARIO, "--out", "out"])
    };
    let refused = answer("model = \"additive\"\n");
    let said =
        "clusters.model: adds scores of classes of two networks, and the task (linear-regression) has no such scores";
    assert!(refused.code == 2 && refused.stderr.contains(said), "{refused:?}");
    let one_model = answer("");
    let said = "the task (linear-regression) has no networks of clusters: all clusters learn one model";
    assert!(one_model.code == 0 && one_model.stderr.contains(said), "{one_model:?}");
    let isolated = answer("model = \"isolated\"\n");
    assert!(isolated.code == 0 && !isolated.stderr.contains("all clusters learn one model"), "{isolated:?}");
    let negative = answer("l2 = -0.5\n");
    assert!(negative.code == 2 && negative.stderr.contains("clusters.l2: found -0.5"), "{negative:?}");
    let unknown = answer("model = \"shared\"\n");
    assert!(unknown.code == 2 && unknown.stderr.contains("known: additive, isolated"), "{unknown:?}");
}

/// Comparing losses costs the other clusters' networks, for every server and client, and the slowest inference pass; on
/// test examples it costs the traffic to servers alone, and a rule that does not compare costs nothing.
#[test]
fn assignments_that_compare_losses_can_be_charged() {
    let constant =
        changed(WORLD, "{ exponential = { mean = { uniform = [\"0.2 s\", \"2 s\"] } } }", "{ constant = \"3 s\" }");
    let compared = changed(&constant, "{ random = { every = 2 } }", "{ loss = { every = 2 } }");
    let found = |text: &str, more: &str| {
        let place = place(&changed(text, "count = 3\n", &format!("count = 3\n{more}")));
        place.run_into("out", &[]);
        let run = place.json("out/runs/random-s1/run.json");
        let of = |tier: &str, name: &str| run[tier][name].as_u64().unwrap();
        let lasts = place.lines("out/runs/random-s1/rounds.jsonl");
        let time = lasts.last().unwrap()["closed_s"].as_f64().unwrap();
        (of("traffic", "down_bytes"), of("edge_traffic", "down_bytes"), of("traffic", "up_bytes"), time)
    };
    let (down, edge_down, up, time) = found(&compared, "");
    // Eight rounds of 0.1 + 3 + 0.1 s.
    assert_near(time, 25.6);
    let others = 2 * 4 * NETWORK as u64;
    // After rounds 2, 4, 6 and 8; the last one delays nobody. An epoch takes 1 s, a pass a third of that.
    let charged = found(&compared, "charge = true\n");
    assert_eq!((charged.0, charged.1, charged.2), (down + 4 * 12 * others, edge_down + 4 * 4 * others, up));
    assert_near(charged.3, 25.6 + 3.0 / 3.0);
    let on_test = found(&compared, "charge = true\nlosses = \"test\"\n");
    assert_eq!((on_test.0, on_test.1, on_test.2), (down, edge_down + 4 * 4 * others, up));
    assert_near(on_test.3, 25.6);
    let free = found(&constant, "");
    assert_eq!(found(&constant, "charge = true\n"), free);
}
