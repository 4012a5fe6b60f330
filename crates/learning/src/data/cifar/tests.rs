//! Hostile and honest files.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use tempfile::TempDir;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A row whose red, green and blue are the label's number, twice and three times it (modulo 256).
fn row(labels: &[u8]) -> Vec<u8> {
    let colour = labels[labels.len() - 1];
    let planes = (1..=3).flat_map(|plane| std::iter::repeat_n(colour.wrapping_mul(plane), 1_024));
    labels.iter().copied().chain(planes).collect()
}

fn folder_of(files: &[(&str, Vec<u8>)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

fn labels(data: &Dataset) -> &[u8] {
    data.classes().unwrap().0
}

/// The fault of these bytes as a training file.
fn wrong(bytes: Vec<u8>, kind: Cifar) -> DataError {
    let folder = folder_of(&[("train.bin", bytes), ("test.bin", row(&[0, 0]))]);
    load_cifar_folder(folder.path(), kind).unwrap_err()
}

#[test]
fn the_official_names_are_read_in_order() {
    let mut files: Vec<(String, Vec<u8>)> =
        (1..=5).map(|batch| (format!("data_batch_{batch}.bin"), row(&[10 - batch]))).collect();
    files.push(("test_batch.bin".to_owned(), [row(&[3]), row(&[4])].concat()));
    // The official files win over others.
    files.push(("train_more.bin".to_owned(), row(&[0])));
    let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, bytes)| (&**name, bytes.clone())).collect();
    let folder = folder_of(&files);
    let split = load_cifar_folder(folder.path(), Cifar::Ten).unwrap();
    assert_eq!((labels(&split.train), labels(&split.test)), (&[9, 8, 7, 6, 5][..], &[3, 4][..]));
    assert_eq!(split.train.classes().unwrap().1, 10);
    assert_eq!((split.train.width(), split.train.shape()), (3_072, SHAPE));
    let images = split.train.features();
    let image = images.row(0);
    assert_eq!((image[1_023], image[1_024], image[3_071]), (9.0 / 255.0, 18.0 / 255.0, 27.0 / 255.0));
    assert_eq!(recognise(folder.path()), Some(Cifar::Ten));

    std::fs::remove_file(folder.path().join("data_batch_4.bin")).unwrap();
    let text = load_cifar_folder(folder.path(), Cifar::Ten).unwrap_err().to_string();
    assert!(text.contains("there is no data_batch_4.bin") && text.contains("cs.toronto.edu"), "{text}");
}

#[test]
fn other_files_are_read_in_the_order_of_their_names_and_none_twice() {
    let folder = folder_of(&[
        ("train_b.bin", row(&[1])),
        ("train_a.bin.gz", gzip(&row(&[2]))),
        ("train_a.bin", row(&[2])),
        ("training.txt", vec![]),
        ("test_1.bin", row(&[7])),
    ]);
    let split = load_cifar_folder(folder.path(), Cifar::Ten).unwrap();
    assert_eq!((labels(&split.train), labels(&split.test)), (&[2, 1][..], &[7][..]));
}

#[test]
fn the_fine_label_of_cifar_100_counts() {
    let files = [("train.bin", row(&[19, 63])), ("test.bin", row(&[0, 99])), ("fine_label_names.txt", vec![])];
    let folder = folder_of(&files);
    assert_eq!(recognise(folder.path()), Some(Cifar::Hundred));
    let split = load_cifar_folder(folder.path(), Cifar::Hundred).unwrap();
    assert_eq!((split.train.classes(), labels(&split.test)), (Some((&[63][..], 100)), &[99][..]));
    let error = wrong(row(&[20, 5]), Cifar::Hundred);
    assert!(matches!(error, DataError::LabelByte { position: 0, found: 20, classes: 20, .. }), "{error}");
    let error = wrong([row(&[1, 5]), row(&[1, 100])].concat(), Cifar::Hundred);
    assert!(matches!(error, DataError::LabelByte { position: 3_075, found: 100, classes: 100, .. }), "{error}");
}

#[test]
fn missing_parts_are_named() {
    let text = load_cifar_folder(folder_of(&[]).path(), Cifar::Ten).unwrap_err().to_string();
    assert!(text.contains("there is no train*.bin"), "{text}");
    let folder = folder_of(&[("train.bin", row(&[1]))]);
    let text = load_cifar_folder(folder.path(), Cifar::Ten).unwrap_err().to_string();
    assert!(text.contains("there is no test*.bin"), "{text}");
    assert_eq!(recognise(folder_of(&[("other.bin", vec![])]).path()), None);
}

#[test]
fn a_row_that_is_cut_off_or_too_long_is_refused() {
    let whole = [row(&[1]), row(&[2])].concat();
    for length in [0, 1, 3_072, 3_074, 6_145] {
        for bytes in [whole[..length].to_vec(), gzip(&whole[..length])] {
            let error = wrong(bytes, Cifar::Ten);
            assert!(
                matches!(error, DataError::PartialRow { position, row_bytes: 3_073, .. } if position == length as u64),
                "{length}: {error}"
            );
        }
    }
    let error = wrong([whole, vec![0]].concat(), Cifar::Ten).to_string();
    assert!(error.contains("ends after byte 6147; expected a multiple of 3073 bytes"), "{error}");
}

#[test]
fn a_label_without_a_class_is_refused_where_it_stands() {
    let error = wrong([row(&[9]), row(&[10])].concat(), Cifar::Ten);
    assert!(matches!(error, DataError::LabelByte { position: 3_073, found: 10, classes: 10, .. }), "{error}");
}

#[test]
fn a_damaged_archive_is_refused() {
    let packed = gzip(&[row(&[1]), row(&[2])].concat());
    for length in 2..packed.len() {
        assert!(matches!(wrong(packed[..length].to_vec(), Cifar::Ten), DataError::Read { .. }), "{length}");
    }
    let mut wrong_sum = packed.clone();
    *wrong_sum.iter_mut().nth_back(7).unwrap() ^= 1;
    assert!(matches!(wrong(wrong_sum, Cifar::Ten), DataError::Read { .. }));
}

#[test]
fn a_gzip_bomb_ends_at_the_first_label_or_at_the_most_rows() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let block = vec![0xff; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&block).unwrap());
    let error = wrong(encoder.finish().unwrap(), Cifar::Ten);
    assert!(matches!(error, DataError::LabelByte { position: 0, found: 255, .. }), "{error}");
    assert_eq!(ROWS_MAX * PIXELS * 4, (1 << 30) - 4_096);

    // The bound, met by rows that are already there.
    let folder = folder_of(&[("train.bin", row(&[1]))]);
    let mut labels = vec![0; ROWS_MAX];
    let error = read_rows(&folder.path().join("train.bin"), Cifar::Ten, &mut Vec::new(), &mut labels).unwrap_err();
    assert!(matches!(error, DataError::TooMany { limit: ROWS_MAX, .. }), "{error}");
}

/// Images of random bytes, spread over random files, read back unchanged.
#[test]
fn whatever_is_written_is_read() {
    use fedgenie_core::rng::{Purpose, Streams};
    for case in 0..40 {
        let mut rng = Streams::new(4).stream(Purpose::Example, case, 0);
        let kind = [Cifar::Ten, Cifar::Hundred][rng.below(2) as usize];
        let (mut expected, mut pixels, mut files) = (Vec::new(), Vec::new(), Vec::new());
        for file in 0..1 + rng.below(4) {
            let mut bytes = Vec::new();
            for _ in 0..1 + rng.below(5) {
                let head: Vec<u8> = kind.labels().iter().map(|&labels| rng.below(labels as u64) as u8).collect();
                let image: Vec<u8> = (0..PIXELS).map(|_| rng.bits() as u8).collect();
                expected.push(*head.last().unwrap());
                pixels.extend(image.iter().map(|&byte| f32::from(byte) / 255.0));
                bytes.extend([head, image].concat());
            }
            let packed = rng.below(2) == 0;
            files.push((
                format!("train_{file}.bin{}", if packed { ".gz" } else { "" }),
                match packed {
                    true => gzip(&bytes),
                    false => bytes,
                },
            ));
        }
        files.push(("test.bin".to_owned(), files[0].1.clone()));
        let files: Vec<(&str, Vec<u8>)> = files.iter().map(|(name, bytes)| (&**name, bytes.clone())).collect();
        let split = load_cifar_folder(folder_of(&files).path(), kind).unwrap();
        assert_eq!((labels(&split.train), split.train.features().as_slice()), (&expected[..], Some(&pixels[..])));
    }
}
