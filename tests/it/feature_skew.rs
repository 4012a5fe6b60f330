//! Clients that see their examples in manners of their own: the changed rows, and runs on them, worked out in double
//! precision; who sees test and validation rows; what moves with data, what stays, and refusals.

use super::checkpoints::{NINE, assert_kept, protocols};
use super::combinations::{Change, add, assert_model};
use super::feddyn::models;
use super::support::{DEVICES, SCENARIO, Workplace, changed, labelled, line_of, world};
use fedgenie::data::Dataset;
use fedgenie::experiment::Experiment;
use fedgenie::id::{ClientId, Round};
use fedgenie::math::special::normal_quantile;
use fedgenie::model::{Batch, evaluate};
use fedgenie::rng::{Purpose, Streams};
use fedgenie::scenario::tree;
use fedgenie::task::{DataCache, Labelled};
use fedgenie::world::World;
use std::path::Path;

/// Pixels of a side, classes, and learning rate.
const SIDE: usize = 4;
const CLASSES: usize = 3;
const RATE: f64 = 0.125;
const STEPS: usize = 3;

/// Three clients with images of three classes, which take three steps with all of them.
pub const IMAGES: &str = r#"
name = "images"
seeds = 1
[stop]
rounds = 2
[population]
clients = 3
[population.latency]
download = { constant = "1 s" }
compute = { constant = "2 s" }
upload = { constant = "1 s" }
[task.softmax-regression]
data = { csv = { train = "train.csv", test = "test.csv", label = "kind", group = "user", shape = [1, 4, 4] } }
partition = "by-column"
[training]
steps = 3
batch = "all"
optimizer = { sgd = { lr = 0.125 } }
[protocol.synchronous]
cohort = 3
[policy.random]
"#;

/// An image and its class.
pub type Image = (Vec<f64>, usize);

/// Images whose pixels are multiples of 1/32 from 0 to 1, the class in one of them; and a table of them.
pub fn drawn(count: usize, mut state: u64) -> (Vec<Image>, String) {
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 59) as f64 + 1.0) / 32.0
    };
    let mut text = "user,kind".to_owned();
    (0..SIDE * SIDE).for_each(|pixel| text += &format!(",p{pixel}"));
    let mut images = Vec::new();
    for index in 0..count {
        let class = index % CLASSES;
        let mut image: Vec<f64> = (0..SIDE * SIDE).map(|_| 0.5 * draw()).collect();
        image[3 * class + 1] += 0.5;
        text += &format!("\n{},{class}", index * 7 % 11 % 3);
        image.iter().for_each(|pixel| text += &format!(",{pixel}"));
        images.push((image, class));
    }
    (images, text + "\n")
}

/// The world of a scenario beside tables of 30 images to learn from and 12 to be tested on, and these.
pub fn with_images(scenario: &str) -> (World, [Vec<Image>; 2]) {
    let ((train, train_text), (test, test_text)) = (drawn(30, 5), drawn(12, 77));
    let place = Workplace::new();
    place.write("train.csv", train_text);
    place.write("test.csv", test_text);
    let root = tree::parse(Path::new(SCENARIO), scenario).unwrap();
    let experiment = Experiment::from_tree(&root, &place.path(""), None).unwrap();
    (experiment.world(0, 1, &DataCache::default()).unwrap(), [train, test])
}

pub fn with_partition(text: &str, partition: &str) -> String {
    changed(text, "partition = \"by-column\"", &format!("partition = {partition}"))
}

/// An image that is turned counter-clockwise: each pixel is the sum over all pixels of the old image, weighted by how
/// near they are to where it comes from.
pub fn turned(image: &[f64], degrees: f64) -> Vec<f64> {
    let (angle, middle) = (degrees.to_radians(), (SIDE as f64 - 1.0) / 2.0);
    let near = |one: f64, other: usize| (1.0 - (one - other as f64).abs()).max(0.0);
    let mut found = Vec::new();
    for row in 0..SIDE {
        for column in 0..SIDE {
            // The vector from the middle to the pixel, turned back; rows go down.
            let (right, down) = (column as f64 - middle, row as f64 - middle);
            let from_right = right * angle.cos() - down * angle.sin();
            let from_down = right * angle.sin() + down * angle.cos();
            let weight = |pixel: usize| {
                near(middle + from_down, pixel / SIDE) * near(middle + from_right, pixel % SIDE) * image[pixel]
            };
            found.push((0..SIDE * SIDE).map(weight).sum());
        }
    }
    found
}

/// Mean and deviation of all pixels.
fn scale(images: &[Image]) -> [f64; 2] {
    let pixels: Vec<f64> = images.iter().flat_map(|(image, _)| image.clone()).collect();
    let mean = pixels.iter().sum::<f64>() / pixels.len() as f64;
    let squares = pixels.iter().map(|pixel| (pixel - mean).powi(2)).sum::<f64>();
    [mean, (squares / pixels.len() as f64).sqrt()]
}

pub fn features(data: &Dataset, row: u32) -> Vec<f64> {
    data.numbers().map_or_else(
        || data.features().row(row as usize).iter().map(|&feature| f64::from(feature)).collect(),
        |rows| rows.row(row).iter().map(|&feature| f64::from(feature)).collect(),
    )
}

pub fn assert_near(found: &[f64], expected: &[f64], what: &str) {
    let far = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f64::max);
    assert!(found.len() == expected.len() && far < 1e-5, "{what}: {found:?} beside {expected:?}");
}

// ---------------------------------------------------------------------------------------------- softmax regression

fn probabilities(model: &[f64], image: &[f64]) -> Vec<f64> {
    let pixels = image.len();
    let score = |class: usize| {
        let weights = &model[class * pixels..(class + 1) * pixels];
        weights.iter().zip(image).map(|(weight, pixel)| weight * pixel).sum::<f64>() + model[CLASSES * pixels + class]
    };
    let powers: Vec<f64> = (0..CLASSES).map(|class| score(class).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

pub fn loss(model: &[f64], images: &[Image]) -> f64 {
    images.iter().map(|(image, class)| -probabilities(model, image)[*class].ln()).sum::<f64>() / images.len() as f64
}

/// The change by so many steps on all images.
pub fn job(steps: usize, start: &[f64], images: &[Image]) -> Change {
    let (mut model, pixels) = (start.to_vec(), SIDE * SIDE);
    for _ in 0..steps {
        let mut slope = vec![0.0; model.len()];
        for (image, class) in images {
            for (other, probability) in probabilities(&model, image).into_iter().enumerate() {
                let error = (probability - f64::from(u8::from(other == *class))) / images.len() as f64;
                add(&mut slope[other * pixels..(other + 1) * pixels], error, image);
                slope[CLASSES * pixels + other] += error;
            }
        }
        add(&mut model, -RATE, &slope);
    }
    model.iter().zip(start).map(|(after, before)| after - before).collect()
}

/// The models after rounds of these clients, whose changes are averaged by their numbers of images. `clients` has the
/// images of each client in each round.
pub fn course(turns: &[&[u32]], clients: impl Fn(usize, u32) -> Vec<Image>) -> Vec<Change> {
    let mut model = vec![0.0; CLASSES * (SIDE * SIDE + 1)];
    let round = |(index, turn): (usize, &&[u32])| {
        let images: Vec<Vec<Image>> = turn.iter().map(|&client| clients(index, client)).collect();
        let all: usize = images.iter().map(Vec::len).sum();
        let start = model.clone();
        for images in images {
            add(&mut model, images.len() as f64 / all as f64, &job(STEPS, &start, &images));
        }
        model.clone()
    };
    turns.iter().enumerate().map(round).collect()
}

// ---------------------------------------------------------------------------------------------- the data of a run

/// One client as it is, one by a quarter in half the contrast, one by 30° with noise; brighter all, and normalised by
/// the scale of what is unchanged.
#[test]
fn a_run_is_one_on_the_changed_rows() {
    let skew = "{ feature-skew = { of = \"by-column\", rotation = { each = [0, 90, 30] }, noise = { each = [0, 0, 0.1] }, \
                colour = { contrast = { each = [1, 0.5, 2] }, brightness = 0.25 } } }";
    let text = changed(&with_partition(IMAGES, skew), "[training]", "normalize = true\n[training]");
    let (world, [train, test]) = with_images(&text);
    let task = labelled(&world);
    let (plain, _) = with_images(&changed(IMAGES, "[training]", "normalize = true\n[training]"));
    let plain = labelled(&plain);
    let [mean, deviation] = scale(&train);
    let normal = |image: &[f64]| -> Vec<f64> { image.iter().map(|pixel| (pixel - mean) / deviation).collect() };
    let mut clients = Vec::new();
    for (client, (degrees, contrast, noise)) in
        [(0.0, 1.0, 0.0), (90.0, 0.5, 0.0), (30.0, 2.0, 0.1)].into_iter().enumerate()
    {
        let rows = task.partition.client(ClientId(client as u32)).into_owned();
        assert!(rows.len() > 3 && rows == *plain.partition.client(ClientId(client as u32)));
        let mut images = Vec::new();
        for row in rows {
            let (image, class) = &train[row as usize];
            let mut seen = turned(image, degrees);
            let mut stream = Streams::new(1).stream(Purpose::Partition, row, 19);
            for pixel in &mut seen {
                *pixel = contrast * *pixel + 0.25 + noise * normal_quantile(stream.uniform());
            }
            let seen = normal(&seen);
            assert_near(&features(&task.data.train, row), &seen, &format!("row {row} of client {client}"));
            images.push((seen, *class));
        }
        clients.push(images);
    }
    assert_eq!(task.data.test, plain.data.test, "the common test set stays");
    let turns: [&[u32]; 3] = [&[0, 1, 2], &[2, 0], &[1]];
    let found = models(&world, &turns);
    for (found, expected) in found.iter().zip(course(&turns, |_, client| clients[client as usize].clone())) {
        assert_model(found, &expected, 1e-5, skew);
    }
    // Trained in one place: three steps on all rows as their clients see them. Tested on the common test set.
    let place = Workplace::with(&format!("{text}[controls]\ncentralised = {{ epochs = 3 }}\n"));
    place.write("train.csv", drawn(30, 5).1);
    place.write("test.csv", drawn(12, 77).1);
    place.run_into("out", &[]);
    let run = place.json("out/runs/random-s1/run.json");
    let central = job(3, &vec![0.0; CLASSES * (SIDE * SIDE + 1)], &clients.concat());
    let tested: Vec<Image> = test.iter().map(|(image, class)| (normal(image), *class)).collect();
    let found = run["controls"]["centralised"]["test_loss"].as_f64().unwrap();
    let expected = loss(&central, &tested);
    assert!((found - expected).abs() < 1e-5, "{found} beside {expected}");
    let told = &run["partition"]["features"];
    assert_eq!(told[1], serde_json::json!({ "rotation": 90.0, "colour": [[0.5, 0.25]] }));
    assert_eq!(told[2]["noise"], 0.1);
}

/// By half a turn what is seen is the reverse, to the bit. A test example, or a row for validation, is seen by the
/// client in whose interval a number falls, of a line that is divided as examples were dealt.
#[test]
fn test_and_validation_rows_are_seen_by_clients_where_that_is_said() {
    let skew = |test: &str| {
        let skew = format!("{{ feature-skew = {{ of = \"by-column\", rotation = {{ each = [0, 180, 90] }}{test} }} }}");
        changed(&with_partition(IMAGES, &skew), "[training]", "validation = 0.3\nheld_out = 0.2\n[training]\n")
            + "[evaluate]\nclients = true\n"
    };
    let (seen, [train, test]) = with_images(&skew(", test = \"clients\""));
    let (unchanged, _) = with_images(&skew(""));
    let (whole, _) =
        with_images(&changed(&skew(""), "held_out = 0.2\n", "").replace("[evaluate]\nclients = true\n", ""));
    let dealt = &labelled(&whole).partition;
    let streams = Streams::new(1);
    let sizes: Vec<usize> = dealt.sizes().collect();
    let seen_by = |row: u32, index: u32| {
        let place = streams.stream(Purpose::Partition, row, index).uniform() * sizes.iter().sum::<usize>() as f64;
        (0..3).find(|client| place < sizes[..=*client].iter().sum::<usize>() as f64).unwrap()
    };
    let degrees = [0.0, 180.0, 90.0];
    let mut counts = [0; 3];
    for row in 0..12_u32 {
        let (image, by) = (&test[row as usize].0, seen_by(row, 21 + 1));
        counts[by] += 1;
        assert_near(&features(&labelled(&seen).data.test, row), &turned(image, degrees[by]), "test");
        assert_near(&features(&labelled(&unchanged).data.test, row), image, "test, unchanged");
    }
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "{counts:?}");
    let owner = |row: u32| (0..3).find(|&client| dealt.client(ClientId(client)).contains(&row));
    for row in 0..30_u32 {
        let image = &train[row as usize].0;
        let own = owner(row).map(|client| client as usize);
        let by = own.unwrap_or_else(|| seen_by(row, 23));
        assert_near(&features(&labelled(&seen).data.train, row), &turned(image, degrees[by]), "training");
        let by = own.map_or(0.0, |client| degrees[client]);
        assert_near(&features(&labelled(&unchanged).data.train, row), &turned(image, by), "training, unchanged");
    }
    assert_eq!((0..30).filter(|&row| owner(row).is_none()).count(), 9);
}

/// What a client has learned alone is right in its own manner.
#[test]
fn a_model_knows_the_manner_of_who_trained_it() {
    let text = "name = \"own\"\nseeds = 1\n[stop]\nrounds = 1\n[population]\nclients = 2\n[population.latency]\n\
                download = { constant = \"1 s\" }\ncompute = { constant = \"2 s\" }\nupload = { constant = \"1 s\" }\n\
                [task.softmax-regression]\nheld_out = 0.25\npartition = { feature-skew = { rotation = { each = [0, 180] } } }\n\
                data = { synthetic = { classes = 4, height = 8, width = 8, train = 400, test = 40, noise = 0.1, deformation = 0.5 } }\n\
                [training]\nepochs = 2\nbatch = 8\noptimizer = { sgd = { lr = 0.1 } }\n[evaluate]\nclients = true\n\
                [protocol.synchronous]\ncohort = 2\n[policy.random]\n";
    let world = world(text, 1);
    let whole = self::world(&changed(text, "held_out = 0.25\n", "").replace("[evaluate]\nclients = true\n", ""), 1);
    let task = labelled(&world);
    let (_, held) = labelled(&whole).partition.held_out(0.25, &world.streams).unwrap();
    for (trains, other) in [(1, 0), (0, 1)] {
        let model = models(&world, &[&[trains][..]; 5]).pop().unwrap();
        let accuracy = |client: u32| {
            let examples = held.client(ClientId(client));
            evaluate(&*task.model, &model, Batch { data: &task.data.train, examples: &examples }, false).accuracy()
        };
        let (own, others) = (accuracy(trains), accuracy(other));
        assert!(own > 0.85 && others < own - 0.2, "{own} and {others}");
    }
}

/// On any number of threads, and in a run that is saved after each round, under every protocol.
#[test]
fn the_same_bits_always() {
    let of = |protocol: &str| {
        format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\nheld_out = 0.25\nnormalize = true\n\
             partition = {{ feature-skew = {{ of = {{ dirichlet = {{ alpha = 0.5 }} }}, rotation = {{ uniform = [-30, 30] }}, \
             noise = {{ ramp = [0, 0.3] }}, colour = {{ contrast = {{ normal = {{ mean = 1, sd = 0.1 }} }} }}, test = \"clients\" }} }}\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n[evaluate]\nclients = true\n\
             {protocol}[policy.random]\n[policy.round-robin]\n"
        )
    };
    let kept: usize = protocols().into_iter().map(|protocol| assert_kept(&of(protocol))).sum();
    assert!(kept >= 10);
    let place = Workplace::with(&of("[protocol.synchronous]\ncohort = 3\n"));
    place.run_into("one", &["--threads", "1"]);
    place.run_into("two", &["--threads", "2"]);
    assert_eq!(place.digests("one"), place.digests("two"));
    assert_eq!(place.fedgenie(&["verify", "two"]).code, 0);
}

/// Data that move from server to server were seen by those who had them first; flipped labels change no feature.
#[test]
fn features_move_with_data_and_labels_flip_without_them() {
    let text = |drift: &str| {
        format!(
            "{NINE}{DEVICES}[task.classification]\nmodel = {{ mlp = {{ hidden = [6] }} }}\n{drift}\n\
             partition = {{ feature-skew = {{ rotation = {{ each = [0, 90, 180, 270, 0, 90, 180, 270, 0] }} }} }}\n\
             data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n\
             [protocol.hierarchical]\nedges = 3\ncohort = 2\n[policy.random]\n"
        )
    };
    let (drifting, plain) = (world(&text("drift = { round = 3, rotate = 1 }"), 1), world(&text(""), 1));
    let moved: &Labelled = drifting.task_in(Round(3)).unwrap().downcast().unwrap();
    let first = labelled(&plain);
    assert_eq!(moved.data, first.data);
    for client in 0..9 {
        assert_eq!(moved.partition.client(ClientId(client)), first.partition.client(ClientId((client + 3) % 9)));
    }
    let flipped = format!("{}[adversary]\nclients = [1]\nattack = \"label-flip\"\n", text(""));
    let flipped = world(&flipped, 1);
    let flipped = labelled(&flipped);
    assert_eq!(flipped.data.train.features(), first.data.train.features());
    let labels = |task: &Labelled, row: u32| task.data.train.classes().unwrap().0[row as usize];
    for client in 0..3 {
        for &row in first.partition.client(ClientId(client)).iter() {
            let honest = labels(first, row);
            assert_eq!(labels(flipped, row), if client == 1 { 9 - honest } else { honest });
        }
    }
}

#[test]
fn what_is_not_defined_is_refused() {
    let (before, rest) = IMAGES.split_once("data = ").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    let images =
        format!("{before}data = {{ synthetic = {{ height = 4, width = 4, train = 120, test = 40 }} }}\n{after}");
    let skewed = |skew: &str| with_partition(&images, &format!("{{ feature-skew = {skew} }}"));
    let flat = format!(
        "{NINE}{DEVICES}[task.linear-regression]\nexamples = 300\npartition = {{ feature-skew = {{ rotation = 90 }} }}\n\
         [protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    let ratings = format!(
        "{NINE}{DEVICES}[task.recommendation]\ndata = {{ synthetic = {{ users = 9, items = 30, ratings = 150 }} }}\ncutoffs = [5]\n\
         partition = {{ feature-skew = {{ noise = 0.1 }} }}\nmodel = {{ mf = {{ dimensions = 3 }} }}\n\
         [protocol.synchronous]\ncohort = 3\n[policy.random]\n"
    );
    for (text, said) in [
        (skewed("{}"), "partition.feature-skew: changes nothing; give at least one of rotation, noise and colour"),
        (skewed("{ of = { overlapping = { size = 3 } }, noise = 1 }"), "partition.feature-skew.of: needs a partition"),
        (skewed("{ noise = -1 }"), "partition.feature-skew.noise: found -1; expected a number from 0 to 1000000"),
        (skewed("{ noise = 1e300 }"), "partition.feature-skew.noise: found 1e300; expected a number from 0 to 1000000"),
        (skewed("{ rotation = { ramp = [0, 1e9] } }"), "rotation.ramp: found 1000000000; expected a number from -360"),
        (
            skewed("{ noise = { choices = [1], uniform = [0, 1] } }"),
            "found a table of choices, uniform; expected exactly one of each = [..]",
        ),
        (skewed("{ rotation = { each = [0, 90] } }"), "rotation: found a list of 2 values; expected 3"),
        (skewed("{ rotation = { gamma = { shape = 1 } } }"), "gamma"),
        (skewed("{ rotation = \"30\" }"), "a number, or a table with one of each"),
        (skewed("{ noise = 1, test = \"all\" }"), "known: unchanged, clients"),
        (flat, "rotation: needs images"),
        (ratings, "partition.feature-skew: changes features, and ratings have none"),
    ] {
        let answer = Workplace::with(&text).fedgenie(&["run", SCENARIO, "--quiet"]);
        let place = format!("fedgenie: error: {SCENARIO}:{}: task.", line_of(&text, "partition ="));
        assert!(
            answer.code == 2 && answer.stderr.starts_with(&place) && answer.stderr.contains(said),
            "{said}: {answer:?}"
        );
    }
}
