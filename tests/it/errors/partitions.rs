//! Partitions, and files of counts: the data that were to be dealt out are whole.

use super::{Case, PLAIN, Provoked, TRAINING, contents, refused_task, told};
use crate::support::Workplace;
use fedgenie::data::partition::PartitionError;
use fedgenie::data::partition::balance::{Profile, balanced_sizes};
use fedgenie::data::partition::counts::{BYTES_MAX, ClassCounts, CountsError};
use fedgenie::data::partition::declared::declared;
use fedgenie::data::partition::dirichlet::{DirichletClasses, dirichlet};
use fedgenie::data::partition::gamma::{GammaSizes, gamma};
use fedgenie::data::partition::groups::by_column;
use fedgenie::data::partition::iid::iid;
use fedgenie::data::partition::shards::label_shards;
use fedgenie::data::partition::zipf::{ZipfSizes, zipf};
use fedgenie::data::{Dataset, Targets};
use fedgenie::rng::Streams;
use fedgenie::task::TaskError;
use ndarray::Array2;

/// Ten examples of three classes.
fn classes() -> Dataset {
    let labels = (0..10).map(|label| label % 3).collect();
    Dataset::new(Array2::zeros((10, 2)), Targets::Classes { labels, classes: 3 })
}

fn numbers() -> Dataset {
    Dataset::new(Array2::zeros((10, 2)), Targets::Values(vec![0.5; 10]))
}

/// The message of a partition of a data set, which is the same for the same data.
fn of(
    data: &Dataset,
    deal: impl Fn(&Dataset, &Streams) -> Result<fedgenie::data::Partition, PartitionError>,
) -> Provoked {
    let error = deal(data, &Streams::new(1)).unwrap_err();
    assert_eq!(deal(data, &Streams::new(1)).unwrap_err().to_string(), error.to_string());
    // The data can still be dealt out.
    assert_eq!(iid(data, 2, false, &Streams::new(1)).unwrap().examples(), 10);
    told(error)
}

/// 40 images of three classes, or those of a table, are dealt out as a file says.
fn counts(table: &[u8], scale: &str, data: Option<&str>) -> CountsError {
    let drawn = "{ synthetic = { classes = 3, height = 3, width = 3, train = 40, test = 6, noise = 0.1 } }";
    let scenario = format!(
        "{PLAIN}[task.softmax-regression]\ndata = {}\npartition = {{ class-counts = {{ file = \"counts.csv\"{scale} }} }}\n{TRAINING}",
        data.map_or(drawn, |_| "\"digits\"")
    );
    let words = |header: &[u32], data: &[u8]| {
        header.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
    };
    // Two classes of three: the second one does not occur.
    let labels: Vec<u8> = (0..12).map(|label| 2 * (label % 2)).collect();
    let files: [(&str, Vec<u8>); 5] = [
        ("counts.csv", table.to_vec()),
        ("digits/train-images-idx3-ubyte", words(&[2_051, 12, 2, 2], &[128; 48])),
        ("digits/train-labels-idx1-ubyte", words(&[2_049, 12], &labels)),
        ("digits/t10k-images-idx3-ubyte", words(&[2_051, 12, 2, 2], &[128; 48])),
        ("digits/t10k-labels-idx1-ubyte", words(&[2_049, 12], &labels)),
    ];
    match refused_task(&scenario, &files) {
        TaskError::Partition(PartitionError::Counts(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn told_of(table: &str) -> Provoked {
    told(counts(table.as_bytes(), "", None))
}

/// More text than is read, which no disk has to hold: a file with a hole.
fn too_large() -> CountsError {
    let place = Workplace::new();
    std::fs::File::create(place.path("counts.csv")).unwrap().set_len(BYTES_MAX + 1).unwrap();
    let error = ClassCounts::read(&place.path("counts.csv")).unwrap_err();
    assert_eq!(std::fs::metadata(place.path("counts.csv")).unwrap().len(), BYTES_MAX + 1);
    error
}

fn not_there() -> CountsError {
    let place = Workplace::new();
    let error = ClassCounts::read(&place.path("counts.csv")).unwrap_err();
    assert!(contents(&place.path("")).is_empty());
    error
}

pub const CASES: &[Case] = &[
    ("PartitionError::NoClients", || of(&classes(), |data, streams| iid(data, 0, false, streams))),
    ("PartitionError::TooFewExamples", || of(&classes(), |data, streams| iid(data, 11, false, streams))),
    ("PartitionError::DeclaredTooMany", || of(&classes(), |_, streams| declared(10, &[6, 5], streams))),
    ("PartitionError::NotPositive", || {
        let settings = GammaSizes { shape: -1.0, minimum: 1 };
        of(&classes(), move |_, streams| gamma(10, 3, &settings, &|u| u, streams))
    }),
    ("PartitionError::NoClasses", || of(&numbers(), |data, streams| iid(data, 2, true, streams))),
    ("PartitionError::Weight", || {
        let settings = DirichletClasses { alpha: 0.5, minimum: 1 };
        of(&classes(), move |data, streams| dirichlet(data, 3, &settings, &|_| f64::NAN, streams))
    }),
    ("PartitionError::OutOfRange", || of(&classes(), |data, streams| label_shards(data, 3, 0, streams))),
    ("PartitionError::Exponent", || {
        let settings = ZipfSizes { exponent: -1.0, ..ZipfSizes::default() };
        of(&classes(), move |_, streams| zipf(10, 3, &settings, streams))
    }),
    ("PartitionError::Balance", || told(balanced_sizes(100, 8, Profile::Linear, 1e-6).unwrap_err())),
    ("PartitionError::NoGroups", || of(&classes(), |data, streams| by_column(data, 2, false, streams))),
    ("PartitionError::TooFewGroups", || {
        of(&classes().with_groups(vec![0; 10]), |data, streams| by_column(data, 2, false, streams))
    }),
    ("PartitionError::Counts", || {
        match refused_task(
            &format!(
                "{PLAIN}[task.softmax-regression]\ndata = {{ synthetic = {{ classes = 3, height = 3, width = 3, train = 40, test = 6, noise = 0.1 }} }}\n\
             partition = {{ class-counts = {{ file = \"counts.csv\" }} }}\n{TRAINING}"
            ),
            &[("counts.csv", b"1,1\n".to_vec())],
        ) {
            TaskError::Partition(error) => told(error),
            other => panic!("{other:?}"),
        }
    }),
    ("PartitionError::Features", || {
        let scenario = format!(
            "{PLAIN}[task.softmax-regression]\ndata = {{ synthetic = {{ classes = 3, height = 3, width = 3, train = 40, test = 6 }} }}\n\
             partition = {{ feature-skew = {{ rotation = {{ each = [30] }} }} }}\n{TRAINING}"
        );
        match refused_task(&scenario, &[]) {
            TaskError::Partition(error) => told(error),
            other => panic!("{other:?}"),
        }
    }),
    ("CountsError::Read", || told(not_there())),
    ("CountsError::TooLarge", || told(too_large())),
    ("CountsError::Empty", || told_of("a,b,c\n")),
    ("CountsError::NotText", || told(counts(b"1,2,3\n\xff\xfe,2,3\n", "", None))),
    ("CountsError::Width", || told_of("1,2,3\n1,2\n")),
    ("CountsError::Cell", || told_of("1,2,3\n1,x,3\n")),
    ("CountsError::Clients", || told_of("1,2,3\n")),
    ("CountsError::Classes", || told_of(&"1,2\n".repeat(5))),
    ("CountsError::TooMany", || told_of(&"9,9,9\n".repeat(5))),
    ("CountsError::Absent", || told(counts("1,2,1\n".repeat(5).as_bytes(), ", scale = \"fit\"", Some("digits")))),
];
