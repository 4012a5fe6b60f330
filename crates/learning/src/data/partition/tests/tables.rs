//! Tables of counts: their examples are dealt out, and their faults are named.

use super::super::counts::{ClassCounts, CountsError, Scale, class_counts};
use super::*;
use flate2::{Compression, write::GzEncoder};
use std::fs;
use std::io::Write;
use tempfile::TempDir;

fn read(bytes: &[u8]) -> Result<ClassCounts, CountsError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("counts");
    fs::write(&path, bytes).unwrap();
    ClassCounts::read(&path)
}

fn counted(partition: &Partition, data: &Dataset) -> Vec<Vec<u32>> {
    let (labels, classes) = data.classes().unwrap();
    let count = |client| {
        let mut counts = vec![0; classes];
        partition.client(ClientId::from_index(client)).iter().for_each(|&example| {
            counts[usize::from(labels[example as usize])] += 1;
        });
        counts
    };
    (0..partition.clients()).map(count).collect()
}

#[test]
fn the_same_table_in_every_spelling() {
    let plain = b"2,0\n1,3\n";
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(b"client\tcat\tdog\r\nann\t2\t0\r\nbob\t1\t3").unwrap();
    let spellings: [&[u8]; 5] = [
        plain,
        b"\xef\xbb\xbfcat,dog\n2, 0\n1,3",
        b"Client,0,1\n0,2,0\n1,1,3\n",
        b"2\t0\n1\t3\n",
        &packed.finish().unwrap(),
    ];
    let data = labelled(8, 2);
    for spelling in spellings {
        let table = read(spelling).unwrap();
        assert_eq!((table.clients(), table.classes(), table.client(1)), (2, 2, &[1, 3][..]));
        let partition = class_counts(&data, 2, &table, Scale::None, &Streams::new(3)).unwrap();
        assert_eq!(counted(&partition, &data), [[2, 0], [1, 3]]);
        assert_eq!(partition.examples(), 6);
    }
}

#[test]
fn what_is_wrong_is_named_with_line_and_column() {
    let cases: [(&[u8], &str); 12] = [
        (b"", "has no row of counts"),
        (b"\n", "has no row of counts"),
        (b"cat,dog\n", "has no row of counts"),
        (b"1,2\n3,-4\n", "line 2, column 2: found \"-4\"; expected a whole number"),
        (b"-1,2\n", "line 1, column 1: found \"-1\""),
        (b"cat,dog\n1,2\n1.5,2\n", "line 3, column 1: found \"1.5\""),
        (b"client,cat\nann,\n", "line 2, column 2: found \"\""),
        (b"1,2\n4294967296,0\n", "line 2, column 1: found \"4294967296\""),
        (b"1,2\n3\n", "line 2: has 1 cells, the lines before have 2"),
        (b"1,2\n\n3,4\n", "line 2: has 1 cells"),
        (b"1,2\n\xff,4\n", "line 2: is not UTF-8"),
        (b"\x1f\x8b\x08", "cannot be read"),
    ];
    for (bytes, expected) in cases {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    }
    let missing = ClassCounts::read(std::path::Path::new("no/such/file.csv")).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.csv: cannot be read"), "{missing}");
}

#[test]
fn a_table_has_to_fit_the_data() {
    let (data, streams) = (labelled(8, 2), Streams::new(1));
    let deal = |table: &[u8], clients, scale| class_counts(&data, clients, &read(table).unwrap(), scale, &streams);
    let says = |result: Result<Partition, PartitionError>, expected: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} lacks {expected:?}");
    };
    says(deal(b"1,1\n", 2, Scale::None), "has 1 rows of counts, there are 2 clients");
    says(deal(b"1,1,1\n", 1, Scale::None), "has 3 columns of counts, the data set has 2 classes");
    says(
        deal(b"a,b\n4,3\n0,2\n0,0\n", 3, Scale::None),
        "line 3: the clients up to here get 5 examples of class 1, the data set has 4; scale = \"fit\"",
    );
    let thin = Dataset::new(Array2::zeros((3, 1)), Targets::Classes { labels: vec![0, 0, 0], classes: 2 });
    let table = read(b"1,0\n2,1\n").unwrap();
    says(
        class_counts(&thin, 2, &table, Scale::Fit, &streams),
        "line 2: asks for examples of class 1, the data set has none",
    );
    let numbers = Dataset::new(Array2::zeros((10, 1)), Targets::Values(vec![0.0; 10]));
    let refused = class_counts(&numbers, 2, &table, Scale::None, &streams);
    assert!(matches!(refused, Err(PartitionError::NoClasses { .. })));
}

#[test]
fn fitting_scales_all_classes_by_the_same_factor() {
    // 4 of each class; class 0 is asked for 8 times, so that everything is halved: class 1 from 5 to 2.
    let data = labelled(8, 2);
    let table = read(b"5,1\n3,1\n0,3\n").unwrap();
    let partition = class_counts(&data, 3, &table, Scale::Fit, &Streams::new(1)).unwrap();
    // Of class 0: 2.5 and 1.5, the first gets the missing one. Of class 1: 0.5, 0.5, 1.5 of 2, the first as well.
    assert_eq!(counted(&partition, &data), [[3, 1], [1, 0], [0, 1]]);
    // A table that fits is left as it is.
    let table = read(b"2,1\n1,1\n0,2\n").unwrap();
    let partition = class_counts(&data, 3, &table, Scale::Fit, &Streams::new(1)).unwrap();
    assert_eq!(counted(&partition, &data), [[2, 1], [1, 1], [0, 2]]);
}

#[test]
fn random_tables_are_dealt_out_as_they_say_or_scaled_within_one() {
    let mut rng = Streams::new(5).stream(Purpose::Partition, 1, 97);
    for seed in 0..200 {
        let (clients, classes) = (1 + rng.below(20) as usize, 1 + rng.below(6) as usize);
        let rows: Vec<Vec<u64>> =
            (0..clients).map(|_| (0..classes).map(|_| rng.below(30) * rng.below(2)).collect()).collect();
        let text: String =
            rows.iter().map(|row| row.iter().map(u64::to_string).collect::<Vec<_>>().join(",") + "\n").collect();
        let table = read(text.as_bytes()).unwrap();
        let of_class = |class: usize| rows.iter().map(|row| row[class]).sum::<u64>() as usize;
        let examples = classes * (1 + rng.below(300) as usize);
        let (data, streams) = (labelled(examples, classes), Streams::new(seed));
        let partition = class_counts(&data, clients, &table, Scale::Fit, &streams).unwrap();
        assert_eq!(partition, class_counts(&data, clients, &table, Scale::Fit, &streams).unwrap());
        let factor =
            (0..classes).map(|class| (examples / classes) as f64 / of_class(class).max(1) as f64).fold(1.0, f64::min);
        for (row, found) in rows.iter().zip(counted(&partition, &data)) {
            for (&wanted, found) in row.iter().zip(found) {
                assert!((wanted as f64 * factor - f64::from(found)).abs() < 1.0 + 1e-9, "{wanted}·{factor}: {found}");
                assert!(u64::from(found) <= wanted);
            }
        }
        let mut all: Vec<u32> =
            (0..clients).flat_map(|client| partition.client(ClientId::from_index(client)).to_vec()).collect();
        all.sort_unstable();
        let dealt = all.len();
        all.dedup();
        assert_eq!(all.len(), dealt, "no example twice");
        let exact = class_counts(&data, clients, &table, Scale::None, &streams);
        assert_eq!(exact.is_ok(), (0..classes).all(|class| of_class(class) <= examples / classes));
    }
}
