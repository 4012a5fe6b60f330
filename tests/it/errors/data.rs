//! Files of data, weights and models: nothing is made or changed, and nothing of them is kept.

use super::{Case, PLAIN, Provoked, TRAINING, contents, refused_task, told};
use crate::support::{SCENARIO, Workplace, changed};
use fedgenie::config::Complaint;
use fedgenie::data::{DataError, Dataset, Targets};
use fedgenie::experiment::Experiment;
use fedgenie::metric::{Measure, Measures};
use fedgenie::model::ModelError;
use fedgenie::model::weights::WeightsError;
use fedgenie::rng::Streams;
use fedgenie::scenario::tree;
use fedgenie::task::{About, DataCache, Material, TaskError, TaskSettings};
use fedgenie::world::WorldError;
use ndarray::Array2;
use std::path::Path;

fn softmax(data: &str) -> String {
    format!("{PLAIN}[task.softmax-regression]\ndata = {data}\n{TRAINING}")
}

fn words(header: &[u32], data: &[u8]) -> Vec<u8> {
    header.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
}

const NAMES: [&str; 4] = [
    "digits/train-images-idx3-ubyte",
    "digits/train-labels-idx1-ubyte",
    "digits/t10k-images-idx3-ubyte",
    "digits/t10k-labels-idx1-ubyte",
];

/// Good files of twelve and six images of 2 × 2, of two classes.
fn images() -> [Vec<u8>; 4] {
    let classes = |count: u8| (0..count).map(|label| label % 2).collect::<Vec<_>>();
    [
        words(&[2_051, 12, 2, 2], &[128; 48]),
        words(&[2_049, 12], &classes(12)),
        words(&[2_051, 6, 2, 2], &[128; 24]),
        words(&[2_049, 6], &classes(6)),
    ]
}

fn data(scenario: &str, files: &[(&str, Vec<u8>)]) -> DataError {
    match refused_task(scenario, files) {
        TaskError::Data(error) => error,
        other => panic!("{other:?}"),
    }
}

/// With one of the four files in another state.
fn idx(which: usize, bytes: Vec<u8>) -> Provoked {
    let mut all = images();
    all[which] = bytes;
    let files: Vec<(&str, Vec<u8>)> = NAMES.into_iter().zip(all).collect();
    told(data(&softmax("\"digits\""), &files))
}

fn cifar(rows: &[u8]) -> Provoked {
    let good = [&[1][..], &[7; 3_072]].concat().repeat(5);
    told(data(&softmax("{ cifar10 = \"ten\" }"), &[("ten/train.bin", rows.to_vec()), ("ten/test.bin", good)]))
}

const TABLE: &str = "{ csv = { train = \"t.csv\", test_fraction = 0.5, label = \"y\" } }";

fn csv(text: &str) -> Provoked {
    told(data(&softmax(TABLE), &[("t.csv", text.into())]))
}

fn npy(header: &str) -> Vec<u8> {
    [&b"\x93NUMPY\x01\0"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat()
}

/// The tasks' other errors.
fn model(scenario: &str, files: &[(&str, Vec<u8>)]) -> ModelError {
    match refused_task(scenario, files) {
        TaskError::Model(error) => error,
        other => panic!("{other:?}"),
    }
}

const DRAWN: &str = "{ synthetic = { classes = 3, height = 3, width = 3, train = 12, test = 6, noise = 0.1 } }";

fn weights(contents: Option<&[u8]>) -> WeightsError {
    let scenario = format!("{PLAIN}[task.softmax-regression]\ndata = {DRAWN}\nstart = \"w.safetensors\"\n{TRAINING}");
    let files: Vec<_> = contents.map(|bytes| ("w.safetensors", bytes.to_vec())).into_iter().collect();
    match refused_task(&scenario, &files) {
        TaskError::Weights(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A table with a number to predict, whose test row lies far from the training rows.
fn far_off() -> DataError {
    let task = "[task.linear-regression]\ndata = { csv = { train = \"a.csv\", test = \"b.csv\", target = \"z\" } }\nnormalize = true\n";
    let train = "x,z\n1,1\n1.0000001,2\n1,3\n1,1\n1,2\n";
    data(&format!("{PLAIN}{task}{TRAINING}"), &[("a.csv", train.into()), ("b.csv", "x,z\n3e38,1\n".into())])
}

/// More rows of CIFAR than are read, packed: the rows are the same.
fn too_many() -> DataError {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    let place = Workplace::new();
    let mut file = GzEncoder::new(std::fs::File::create(place.path("rows.bin")).unwrap(), Compression::fast());
    let rows = vec![0; 3_073 * 1_024];
    (0..=fedgenie::data::cifar::ROWS_MAX / 1_024).for_each(|_| file.write_all(&rows).unwrap());
    file.finish().unwrap();
    let before = contents(&place.path(""));
    let error = fedgenie::data::cifar::read_cifar(&[place.path("rows.bin")], fedgenie::data::cifar::Cifar::Ten);
    assert_eq!(contents(&place.path("")), before);
    error.unwrap_err()
}

/// A generator whose examples fit into no memory: the command in a process that has little.
fn memory() -> DataError {
    use crate::support::{Answer, SCENARIO, within};
    use std::process::Stdio;
    let linear = format!("{PLAIN}[task.linear-regression]\nexamples = 26000000\n{TRAINING}");
    let place = Workplace::with(&linear);
    let mut command = within(2_048, env!("CARGO_BIN_EXE_fedgenie"));
    command.args(["run", SCENARIO, "--out", "out"]);
    let child = command.current_dir(place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Answer { code, stdout, stderr } = Answer::of(child.unwrap());
    assert_eq!((code, stdout.as_str(), place.path("out").exists()), (2, "", false), "{stderr}");
    // In this process there is room; the message there is that of the same error.
    let source = fedgenie::limits::afford("26000000 examples with 10 features", u128::MAX).unwrap_err();
    assert!(stderr.contains("26000000 examples with 10 features would take about 2.3 GiB of memory, and"), "{stderr}");
    DataError::Memory { place: "examples".to_owned(), source }
}

fn one_row() -> DataError {
    let single = Dataset::new(Array2::zeros((1, 1)), Targets::Values(vec![0.5]));
    let error = fedgenie::data::held_out::held_out(&single, 0.5, &Streams::new(1)).unwrap_err();
    assert_eq!(single.examples(), 1);
    error
}

/// A task from outside whose data are not there.
#[derive(Debug)]
struct Missing;

impl TaskSettings for Missing {
    fn about(&self) -> About {
        About::training("missing")
    }

    fn measures(&self) -> Measures {
        Measures { of_data: vec![Measure::loss("loss")], ..Measures::default() }
    }

    fn check(&self) -> Result<(), Complaint> {
        Ok(())
    }

    fn material(&self, _: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        Err(TaskError::Outside(error.into()))
    }
}

fn missing() -> TaskError {
    let root = tree::parse(Path::new(SCENARIO), &format!("{PLAIN}{TRAINING}")).unwrap();
    let mut experiment = Experiment::from_tree(&root, Path::new("."), None).unwrap();
    experiment.set_task(Missing).unwrap();
    match experiment.first().plan.build(1, &DataCache::default()).unwrap_err() {
        WorldError::Task(error) => error,
        other => panic!("{other}"),
    }
}

pub const CASES: &[Case] = &[
    ("DataError::Missing", || {
        let files: Vec<(&str, Vec<u8>)> =
            NAMES.into_iter().zip(images()).filter(|(name, _)| *name != NAMES[3]).collect();
        told(data(&softmax("\"digits\""), &files))
    }),
    ("DataError::Read", || idx(1, b"\x1f\x8b\x08\0\0\0\0\0\0\0no stream".to_vec())),
    ("DataError::Magic", || idx(0, words(&[2_049, 12, 2, 2], &[128; 48]))),
    ("DataError::ZeroDimension", || idx(0, words(&[2_051, 12, 0, 2], &[]))),
    ("DataError::TooLarge", || idx(0, words(&[2_051, u32::MAX, u32::MAX, u32::MAX], &[]))),
    ("DataError::Truncated", || idx(0, words(&[2_051, 12, 2, 2], &[128; 47]))),
    ("DataError::TrailingBytes", || idx(0, words(&[2_051, 12, 2, 2], &[128; 49]))),
    ("DataError::CountMismatch", || idx(3, words(&[2_049, 5], &[0; 5]))),
    ("DataError::SizeMismatch", || idx(2, words(&[2_051, 6, 1, 4], &[128; 24]))),
    ("DataError::LabelOutOfRange", || idx(3, words(&[2_049, 6], &[0, 1, 7, 0, 1, 0]))),
    ("DataError::Unrecognised", || told(data(&softmax("\"digits\""), &[("digits/notes", Vec::new())]))),
    ("DataError::UnrecognisedRatings", || {
        let task = format!("{PLAIN}[task.recommendation]\ndata = \"films\"\npartition = \"iid\"\n{TRAINING}");
        told(data(&task, &[("films/notes", Vec::new())]))
    }),
    ("DataError::MissingTables", || {
        let task = format!("{PLAIN}[task.rating-graph]\ndata = \"friends\"\n{TRAINING}");
        told(data(&task, &[("friends/ratings.tsv", "user\titem\trating\n1\t1\t3\n".into())]))
    }),
    ("DataError::MissingCifar", || told(data(&softmax("{ cifar10 = \"ten\" }"), &[("ten/notes", Vec::new())]))),
    ("DataError::PartialRow", || cifar(&[1; 3_072])),
    ("DataError::LabelByte", || cifar(&[&[255][..], &[0; 3_072]].concat())),
    ("DataError::TooMany", || told(too_many())),
    ("DataError::Memory", || told(memory())),
    ("DataError::Table", || csv("a,b\n1,2\n")),
    ("DataError::Field", || csv("a,y\n1,0\nx,1\n2,0\n1,1\n2,0\n1,1\n")),
    ("DataError::Array", || {
        let text =
            "{ npy = { train = \"x.npy\", train_labels = \"y.npy\", test = \"x.npy\", test_labels = \"y.npy\" } }";
        let labels = [&npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n")[..], &[0]].concat();
        let bad = npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1, 1), }\n");
        told(data(&softmax(text), &[("x.npy", bad), ("y.npy", labels)]))
    }),
    ("DataError::Scale", || told(far_off())),
    ("DataError::Setting", || told(one_row())),
    ("WeightsError::Read", || told(weights(None))),
    ("WeightsError::Content", || told(weights(Some(b"no safetensors")))),
    ("ModelError::Width", || {
        use fedgenie::model::{Model, SoftmaxRegression};
        let data = Dataset::new(Array2::zeros((2, 3)), Targets::Classes { labels: vec![0, 1], classes: 2 });
        told(SoftmaxRegression::new(4, 2).fits(&data).unwrap_err())
    }),
    ("ModelError::Targets", || {
        let numbers = format!(
            "{PLAIN}[task.linear-regression]\ndata = {}\n{TRAINING}",
            TABLE.replace("test_fraction = 0.5", "test = \"t.csv\"")
        );
        told(model(&numbers, &[("t.csv", "a,y\n1,0\n2,1\n1,1\n1,0\n1,1\n".into())]))
    }),
    ("ModelError::Classes", || {
        use fedgenie::model::{Model, SoftmaxRegression};
        let data = Dataset::new(Array2::zeros((2, 3)), Targets::Classes { labels: vec![0, 4], classes: 5 });
        told(SoftmaxRegression::new(3, 2).fits(&data).unwrap_err())
    }),
    ("TaskError::Data", || told(refused_task(&softmax("\"digits\""), &[("digits/notes", Vec::new())]))),
    ("TaskError::Model", || {
        let numbers = format!(
            "{PLAIN}[task.linear-regression]\ndata = {}\n{TRAINING}",
            TABLE.replace("test_fraction = 0.5", "test = \"t.csv\"")
        );
        told(refused_task(&numbers, &[("t.csv", "a,y\n1,0\n2,1\n1,1\n1,0\n1,1\n".into())]))
    }),
    // Images of 3 × 3 are too small for two convolutions of 5 × 5.
    ("TaskError::Network", || {
        told(refused_task(
            &format!("{PLAIN}[task.classification]\ndata = {DRAWN}\nmodel = \"lenet5\"\n{TRAINING}"),
            &[],
        ))
    }),
    ("TaskError::Weights", || {
        let scenario =
            format!("{PLAIN}[task.softmax-regression]\ndata = {DRAWN}\nstart = \"w.safetensors\"\n{TRAINING}");
        told(refused_task(&scenario, &[]))
    }),
    ("TaskError::Setting", || {
        let scenario = format!("{PLAIN}[task.scripted]\nmetric = \"test_score\"\nvalues = [1.0]\neffects = [1.0]\n");
        told(refused_task(&scenario, &[]))
    }),
    ("TaskError::Outside", || told(missing())),
    ("SyntaxError", || {
        let error = tree::parse(Path::new("scenario.toml"), "name = \"a\"\nseeds = = 2\n").unwrap_err();
        let place = Workplace::with("name = \"a\"\nseeds = = 2\n");
        let answer = place.fedgenie(&["run", SCENARIO, "--out", "out"]);
        assert_eq!((answer.code, answer.stderr), (2, format!("fedgenie: error: {error}\n")));
        told(error)
    }),
    ("TaskError::Partition", || told(refused_task(&changed(&softmax(DRAWN), "clients = 5", "clients = 13"), &[]))),
];
