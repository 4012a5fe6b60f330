//! The multimodal model from outside: one step against its definition in `f64`, every protocol, and bad input.

use super::support::Workplace;
use fedgenie::experiment::{Experiment, Threads};
use fedgenie::scenario::tree;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f64>)>;

const DIM: usize = 4;
const FACTORS: usize = 2;
const HIDDEN: usize = 3;
const ATTENTION: usize = 2;
const MARGIN: f64 = 0.4;
const DISENTANGLE: f64 = 0.3;

/// Users a, b, c and items 10, 20, …: their ratings in the order of the file, the last one of each user for testing.
const RATINGS: &str = "\
user,item,split
a,10,train\na,20,train\na,30,test\nb,30,train\nb,50,train\nb,10,test\nc,40,train\nc,20,test\n";

const TEXT: &str = "movie,x,y\n50,0.5,-1\n10,1,0.25\n30,-0.75,0.5\n40,0,2\n";

/// Two negatives of each pair; the same pair may come again.
const TRIPLETS: &str = "\
user,positive,negative
a,10,40\na,10,50\nb,30,20\nb,30,40\na,20,50\na,20,30\nc,40,10\nc,40,30\nb,50,20\nb,50,10\na,10,30\na,10,30\n";

const SCENARIO: &str = r#"
name = "step"
seeds = 1
[stop]
rounds = 1
[population]
clients = 1
[population.latency]
download = { constant = "1 s" }
compute = { constant = "1 s" }
upload = { constant = "1 s" }
[task.recommendation]
data = { csv = { file = "ratings.csv", split = "split" } }
partition = "iid"
cutoffs = [2]
triplets = "triplets.csv"
start = "start.safetensors"
[task.recommendation.model.dmrl]
text = "text.csv"
image = "image.npy"
dim = 4
factors = 2
hidden = 3
attention_hidden = 2
dropout = 0.0
negatives = 2
margin = 0.4
disentangle = 0.3
[training]
batch = 100
optimizer = { sgd = { lr = 0.5 } }
[protocol.synchronous]
cohort = 1
[policy.random]
"#;

/// A run that succeeds; warnings are not errors here.
fn run(place: &Workplace, file: &str, folder: &str, more: &[&str]) {
    let answer = place.fedgenie(&[&["run", file, "--out", folder, "--models"], more].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
}

/// Names and shapes of all tensors.
fn shapes() -> Vec<(&'static str, Vec<usize>)> {
    vec![
        ("users.weight", vec![3, DIM]),
        ("items.weight", vec![5, DIM]),
        ("text.0.weight", vec![HIDDEN, 2]),
        ("text.0.bias", vec![HIDDEN]),
        ("text.2.weight", vec![DIM, HIDDEN]),
        ("text.2.bias", vec![DIM]),
        ("image.0.weight", vec![HIDDEN, 3]),
        ("image.0.bias", vec![HIDDEN]),
        ("image.2.weight", vec![DIM, HIDDEN]),
        ("image.2.bias", vec![DIM]),
        ("attention.0.weight", vec![ATTENTION, 4 * DIM / FACTORS]),
        ("attention.0.bias", vec![ATTENTION]),
        ("attention.2.weight", vec![4, ATTENTION]),
        ("attention.2.bias", vec![4]),
    ]
}

/// Numbers without a pattern, exact in `f32`.
fn scrambled(index: usize, scale: f64) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    f64::from((scale * (mixed as f64 / (1_u64 << 23) as f64 - 1.0)) as f32)
}

fn to_safetensors(tensors: &Tensors) -> Vec<u8> {
    let (mut header, mut bytes) = (serde_json::Map::new(), Vec::new());
    for (name, (shape, values)) in tensors {
        let begin = bytes.len();
        bytes.extend(values.iter().flat_map(|&value| (value as f32).to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, bytes.len()]});
        header.insert(name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes].concat()
}

fn from_safetensors(bytes: &[u8]) -> Tensors {
    let (length, rest) = bytes.split_at(8);
    let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
    let header: serde_json::Map<String, Value> = serde_json::from_slice(header).unwrap();
    let tensors = header.into_iter().filter(|(name, _)| name != "__metadata__");
    let tensor = |(name, entry): (String, Value)| {
        let whole = |value: &Value| -> Vec<usize> {
            value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as usize).collect()
        };
        let place = whole(&entry["data_offsets"]);
        let numbers = data[place[0]..place[1]].chunks_exact(4);
        let values = numbers.map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()))).collect();
        (name, (whole(&entry["shape"]), values))
    };
    tensors.map(tensor).collect()
}

/// The projection of features: two layers, each with LeakyReLU.
fn projected(tensors: &Tensors, mode: &str, features: &[f64]) -> Vec<f64> {
    let mut numbers = features.to_vec();
    for layer in [0, 2] {
        numbers = layered(tensors, &format!("{mode}.{layer}"), &numbers)
            .into_iter()
            .map(|x| if x > 0.0 { x } else { 0.01 * x })
            .collect();
    }
    numbers
}

fn layered(tensors: &Tensors, name: &str, input: &[f64]) -> Vec<f64> {
    let (weight, bias) = (&tensors[&format!("{name}.weight")].1, &tensors[&format!("{name}.bias")].1);
    let row =
        |row: usize| weight[row * input.len()..][..input.len()].iter().zip(input).map(|(w, x)| w * x).sum::<f64>();
    (0..bias.len()).map(|index| row(index) + bias[index]).collect()
}

struct World {
    text: Vec<Vec<f64>>,
    image: Vec<Vec<f64>>,
    /// User, positive, negatives.
    examples: Vec<(usize, usize, [usize; 2])>,
}

impl World {
    fn channels(&self, tensors: &Tensors, user: usize, item: usize) -> [Vec<f64>; 4] {
        let row = |name: &str, row: usize| tensors[name].1[row * DIM..][..DIM].to_vec();
        [
            row("users.weight", user),
            row("items.weight", item),
            projected(tensors, "text", &self.text[item]),
            projected(tensors, "image", &self.image[item]),
        ]
    }

    /// Equations (5) to (8).
    fn score(&self, tensors: &Tensors, user: usize, item: usize) -> f64 {
        let channels = self.channels(tensors, user, item);
        let width = DIM / FACTORS;
        (0..FACTORS)
            .map(|factor| {
                let block = |channel: usize| &channels[channel][factor * width..][..width];
                let h = [block(0), block(1), block(2), block(3)].concat();
                let hidden: Vec<f64> = layered(tensors, "attention.0", &h).into_iter().map(f64::tanh).collect();
                let logits = layered(tensors, "attention.2", &hidden);
                let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
                let of_channel = |channel: usize| {
                    let product: f64 = block(0).iter().zip(block(channel)).map(|(p, e)| p * e).sum();
                    logits[channel].exp() / total * product * normal_cdf(product)
                };
                (1..4).map(of_channel).sum::<f64>()
            })
            .sum()
    }

    fn loss(&self, tensors: &Tensors) -> f64 {
        let mut hinge = 0.0;
        for &(user, positive, negatives) in &self.examples {
            let positive = self.score(tensors, user, positive);
            for negative in negatives {
                let negative = self.score(tensors, user, negative);
                hinge += (MARGIN - positive + negative).max(0.0) / (2 * self.examples.len()) as f64;
            }
        }
        let rows: Vec<_> = self.examples.iter().map(|&(user, item, _)| self.channels(tensors, user, item)).collect();
        let width = DIM / FACTORS;
        let block = |channel: usize, factor: usize| -> Vec<&[f64]> {
            rows.iter().map(|row| &row[channel][factor * width..][..width]).collect()
        };
        let correlations = (0..4).map(|channel| correlation(&block(channel, 0), &block(channel, 1)));
        hinge + DISENTANGLE * correlations.sum::<f64>() / 4.0
    }
}

/// The normal distribution function by its series.
fn normal_cdf(x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (x, x, 1.0);
    while f64::abs(term) > 1e-18 {
        term *= x * x / (2.0 * k + 1.0);
        sum += term;
        k += 1.0;
    }
    0.5 + sum * (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

fn correlation(x: &[&[f64]], y: &[&[f64]]) -> f64 {
    let (a, b) = (centred(x), centred(y));
    let covariance = |a: &[f64], b: &[f64]| {
        let mean = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / a.len() as f64;
        (mean.max(0.0) + 1e-8).sqrt()
    };
    covariance(&a, &b) / (covariance(&a, &a) * covariance(&b, &b)).sqrt()
}

fn centred(x: &[&[f64]]) -> Vec<f64> {
    let n = x.len();
    let distance = |i: usize, j: usize| {
        (x[i].iter().zip(x[j]).map(|(one, other)| (one - other).powi(2)).sum::<f64>() + 1e-8).sqrt()
    };
    let mean = |i: usize| (0..n).map(|j| distance(i, j)).sum::<f64>() / n as f64;
    let all = (0..n).map(mean).sum::<f64>() / n as f64;
    (0..n * n).map(|at| distance(at / n, at % n) - mean(at / n) - mean(at % n) + all).collect()
}

#[test]
fn one_step_from_given_weights_with_given_negatives_is_that_of_the_definition() {
    let place = Workplace::with(SCENARIO);
    place.write("ratings.csv", RATINGS);
    place.write("text.csv", TEXT);
    place.write("triplets.csv", TRIPLETS);
    let image: Vec<Vec<f64>> =
        (0..5).map(|item| (0..3).map(|j| scrambled(900 + 3 * item + j, 1.0)).collect()).collect();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (5, 3), }\n";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((header.len() as u16).to_le_bytes());
    npy.extend(header.bytes());
    npy.extend(image.iter().flatten().flat_map(|number| number.to_le_bytes()));
    place.write("image.npy", npy);
    let mut index = 0;
    let start: Tensors = shapes()
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product::<usize>();
            let values = (index..index + count).map(|index| scrambled(index, 0.9)).collect();
            index += count;
            (name.to_owned(), (shape, values))
        })
        .collect();
    place.write("start.safetensors", to_safetensors(&start));
    run(&place, "scenario.toml", "out", &[]);
    let end = from_safetensors(&place.read("out/runs/random-s1/model.safetensors"));
    // Items by ascending id; item 20 has no text: zeros.
    let text = [[1.0, 0.25], [0.0, 0.0], [-0.75, 0.5], [0.0, 2.0], [0.5, -1.0]].map(|row| row.to_vec()).to_vec();
    let examples = [(0, 0, [3, 4]), (1, 2, [1, 3]), (0, 1, [4, 2]), (2, 3, [0, 2]), (1, 4, [1, 0]), (0, 0, [2, 2])];
    let world = World { text, image, examples: examples.to_vec() };
    let loss = world.loss(&start);
    assert_eq!(end.keys().collect::<Vec<_>>(), start.keys().collect::<Vec<_>>());
    for (name, (shape, values)) in &start {
        assert_eq!(&end[name].0, shape);
        let mut has_slope = false;
        for (entry, value) in values.iter().enumerate() {
            let at = |step: f64| {
                let mut moved = start.clone();
                moved.get_mut(name).unwrap().1[entry] += step;
                world.loss(&moved)
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let found = (value - end[name].1[entry]) / 0.5;
            assert!((found - slope).abs() < 2e-6, "{name}[{entry}]: {found} {slope}");
            has_slope |= slope.abs() > 1e-4;
        }
        assert!(has_slope, "{name}");
    }
    let summary = place.json("out/summary.json");
    assert_eq!(summary["runs"][0]["data"]["items_without_text"], 1);
    // The client reports the step's loss, without the distance correlation; the first step lowers it.
    assert!(world.loss(&end) < loss);
}

/// 30 users and 50 items in the hands of 6 clients.
const BASE: &str = r#"
name = "multimodal"
seeds = 1
[stop]
rounds = 4
[population]
clients = 6
[population.latency]
download = { constant = "25 ms" }
compute = { lognormal = { median = { uniform = ["0.1 s", "1 s"] }, sigma = 0.3 } }
upload = { constant = "25 ms" }
[task.recommendation]
data = { synthetic = { users = 30, items = 50, ratings = 500, text = 5 } }
cutoffs = [5, 10]
partition = { user-balance = { profile = "exponential", index = 0.2, largest = "last", by = "groups" } }
[task.recommendation.model.dmrl]
dim = 8
factors = 2
hidden = 6
attention_hidden = 3
[training]
batch = 32
clip = 5.0
proximal = 0.01
optimizer = { adamw = { lr = 0.01 } }
schedule = { exponential = { decay = 0.9 } }
"#;

const PROTOCOLS: [(&str, &str); 4] = [
    ("[protocol.synchronous]\ncohort = 3\n", "[policy.random]\n[policy.power-of-choice]\n"),
    (
        "[protocol.deadline]\ncohort = 3\ndeadline = \"0.5 s\"\nlate = { carry = {} }\n",
        "[policy.random]\n[policy.round-robin]\n",
    ),
    ("[protocol.buffered]\nconcurrency = 4\nbuffer = 2\n", "[policy.random]\n"),
    ("[protocol.hierarchical]\nedges = 2\ncohort = 2\nedge_rounds = 2\n", "[policy.random]\n"),
];

fn experiment(text: &str) -> Experiment {
    Experiment::from_tree(&tree::parse(Path::new("multimodal.toml"), text).unwrap(), Path::new("."), None).unwrap()
}

#[test]
fn every_protocol_on_any_number_of_threads() {
    for (protocol, policies) in PROTOCOLS {
        let experiment = experiment(&format!("{BASE}{protocol}{policies}"));
        let run = |threads| experiment.run(&Threads::new(threads).unwrap()).unwrap();
        let (one, three) = (run(1), run(3));
        for (one, three) in one.runs.iter().zip(three.runs.iter()) {
            assert_eq!((one, &one.digest), (three, &three.digest), "{protocol}, {}", one.arm);
            // Those of ranking, and the loss; on test and validation data.
            assert_eq!(one.final_metrics.len(), 2 * (1 + 2 * 5 + 1));
            let (auc, loss) = (one.final_metrics["test_auc"], one.final_metrics["test_loss"]);
            assert!(auc > 0.4 && auc < 1.0 && loss > 0.0 && loss < 2.0, "{protocol}, {}: {auc} {loss}", one.arm);
            assert_eq!(one.controls["popularity"].len(), 1 + 2 * 5);
        }
    }
}

#[test]
fn contributions_are_compared_in_hindsight_and_everything_travels() {
    let meter = "[regret]\ncounterfactual = true\nmeters = []\nutility = { contribution = {} }\nkappa = 0.5\n";
    let text = format!("{BASE}[protocol.synchronous]\ncohort = 3\n{meter}[policy.random]\n");
    let place = Workplace::with(&text);
    run(&place, "scenario.toml", "out", &[]);
    assert_eq!(place.fedgenie(&["verify", "out"]).code, 0);
    let rounds = place.lines("out/runs/random-s1/rounds.jsonl");
    assert!(rounds.iter().skip(1).all(|round| round["regret"]["counterfactual"].as_f64().unwrap() >= -1e-9));
    let model = from_safetensors(&place.read("out/runs/random-s1/model.safetensors"));
    assert!(model.contains_key("text.2.bias") && !model.contains_key("image.0.weight"));
    let bytes: usize = model.values().map(|(_, values)| 4 * values.len()).sum();
    let last = rounds.last().unwrap();
    let sent = [&last["down_bytes"], &last["up_bytes"]].map(|bytes| bytes.as_u64().unwrap());
    assert_eq!(sent, [(4 * 3 * bytes) as u64; 2]);
    // Weights that were written are begun with.
    let start = "[task.recommendation]\nstart = \"out/runs/random-s1/model.safetensors\"\n";
    place.write("again.toml", text.replace("[task.recommendation]\n", start));
    let still = ["--set", "training.optimizer={sgd={lr=1e-30}}", "--set", "training.proximal=0.0"];
    run(&place, "again.toml", "second", &still);
    let last = |folder: &str| place.json(&format!("{folder}/summary.json"))["runs"][0]["final"]["test_auc"].clone();
    assert_eq!(last("out"), last("second"), "a step that moves nothing keeps the model");
}

#[test]
fn what_is_missing_is_said() {
    let place = Workplace::with(&format!("{BASE}[protocol.synchronous]\ncohort = 3\n[policy.random]\n"));
    let answer = place.fedgenie(&["run", "scenario.toml"]);
    assert!(answer.code == 0 && answer.stderr.contains("there are no image features"), "{answer:?}");
    assert!(!answer.stderr.contains("no text features"), "{answer:?}");
}

#[test]
fn what_does_not_fit_is_named_with_its_key() {
    let text = format!("{BASE}[protocol.synchronous]\ncohort = 3\n[policy.random]\n");
    for (from, to, says) in [
        (
            "factors = 2",
            "factors = 3",
            "task.recommendation.model.dmrl.factors: found 3; expected a divisor of dim = 8",
        ),
        ("factors = 2", "factors = 0", "task.recommendation.model.dmrl.factors"),
        ("hidden = 6", "hidden = 0", "task.recommendation.model.dmrl.hidden"),
        ("dim = 8", "dim = 8\nnegatives = 0", "task.recommendation.model.dmrl.negatives"),
        ("dim = 8", "dim = 8\ndropout = 1.0", "task.recommendation.model.dmrl.dropout"),
        ("dim = 8", "dim = 8\nmargin = -1.0", "task.recommendation.model.dmrl.margin"),
        ("dim = 8", "dim = 8\ndisentangle = -0.1", "task.recommendation.model.dmrl.disentangle"),
        ("dim = 8", "dim = 8\ntext = \"x.csv\"", "task.recommendation.model.dmrl.text: the data have such features"),
        ("dim = 8", "dim = 8\nimage = \"x.csv\"", "x.csv"),
        ("cutoffs = [5, 10]", "updated_items = \"interacted\"", "task.recommendation.updated_items"),
        ("cutoffs = [5, 10]", "transfer = { up = \"rows\", down = \"rows\" }", "task.recommendation.transfer"),
        ("cutoffs = [5, 10]", "quality = \"hr_7\"", "task.recommendation.quality: found \"hr_7\""),
        ("text = 5", "text = 0", "task.recommendation.data.synthetic.text"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let answer = Workplace::with(&text.replace(from, to)).fedgenie(&["run", "scenario.toml", "--quiet"]);
        assert_eq!(answer.code, 2, "{to}: {answer:?}");
        assert!(answer.stderr.contains(says), "{answer:?}");
    }
}

#[test]
fn files_that_do_not_fit_are_named_with_their_line() {
    for (file, key, contents, says) in [
        (
            "triplets.csv",
            "triplets",
            "user,positive,negative\na,10,40\na,10,50\na,10,30\n",
            "there is no triplet of user",
        ),
        (
            "triplets.csv",
            "triplets",
            &format!("{TRIPLETS}a,10,30\n"),
            "user a, positive 10: found 3 lines one after the other",
        ),
        ("triplets.csv", "triplets", "user,positive\n", "triplets.csv:1: there is no column \"negative\""),
        ("text.csv", "model.dmrl.text", "movie,x\n10,1\n20,nan\n", "text.csv:3: column \"x\": found \"nan\""),
        (
            "text.csv",
            "model.dmrl.text",
            "movie,x\n10,1\n10,2\n",
            "text.csv:3: item \"10\" has a row already, in line 2",
        ),
        ("image.npy", "model.dmrl.image", "nonsense", "image.npy"),
        ("start.safetensors", "start", "nonsense", "start.safetensors: is no safetensors file"),
    ] {
        let without_start =
            SCENARIO.replace("start = \"start.safetensors\"\n", "").replace("image = \"image.npy\"\n", "");
        let text = match file {
            "start.safetensors" => SCENARIO.replace("image = \"image.npy\"\n", ""),
            "image.npy" => SCENARIO.replace("start = \"start.safetensors\"\n", ""),
            _ => without_start,
        };
        let place = Workplace::with(&text);
        place.write("ratings.csv", RATINGS);
        place.write("text.csv", TEXT);
        place.write("triplets.csv", TRIPLETS);
        place.write(file, contents);
        let answer = place.fedgenie(&["run", "scenario.toml", "--quiet"]);
        assert_eq!(answer.code, 2, "{file}: {answer:?}");
        for part in [says, &format!(": task.recommendation.{key}: ")] {
            assert!(answer.stderr.contains(part), "{part:?} is not in {answer:?}");
        }
    }
}
