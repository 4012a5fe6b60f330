//! Hostile and honest files.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use tempfile::TempDir;

fn words(words: &[u32], data: &[u8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).chain(data.iter().copied()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn images_of(bytes: &[u8]) -> Result<Images, DataError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("images");
    std::fs::write(&path, bytes).unwrap();
    read_images(&path)
}

fn labels_of(bytes: &[u8]) -> Result<Vec<u8>, DataError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("labels");
    std::fs::write(&path, bytes).unwrap();
    read_labels(&path)
}

fn folder_of(test_rows: u32, train_labels: &[u8], test_labels: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("train-images-idx3-ubyte.gz", gzip(&words(&[2051, 2, 1, 2], &[0, 255, 51, 102])));
    write("train-labels-idx1-ubyte", words(&[2049, train_labels.len() as u32], train_labels));
    write("t10k-images-idx3-ubyte", words(&[2051, 1, test_rows, 2], &vec![255; 2 * test_rows as usize]));
    write("t10k-labels-idx1-ubyte.gz", gzip(&words(&[2049, test_labels.len() as u32], test_labels)));
    folder
}

#[test]
fn plain_and_packed_files_read_alike() {
    let bytes = words(&[2051, 2, 1, 2], &[1, 2, 3, 4]);
    let expected = Images { count: 2, rows: 1, columns: 2, pixels: vec![1, 2, 3, 4] };
    assert_eq!(images_of(&bytes).unwrap(), expected);
    assert_eq!(images_of(&gzip(&bytes)).unwrap(), expected);
    assert_eq!(labels_of(&words(&[2049, 3], &[9, 0, 255])).unwrap(), [9, 0, 255]);
}

#[test]
fn a_folder_becomes_scaled_features_and_classes() {
    let folder = folder_of(1, &[0, 3], &[3]);
    let split = load_idx_folder(folder.path()).unwrap();
    assert_eq!(split.train.features().as_slice().unwrap(), [0.0, 1.0, 0.2, 0.4]);
    assert_eq!(split.train.classes(), Some((&[0, 3][..], 4)));
    assert_eq!(split.test.classes(), Some((&[3][..], 4)));
    assert_eq!(split.train.shape(), Shape { channels: 1, height: 1, width: 2 });
}

#[test]
fn every_proper_prefix_is_truncated() {
    for bytes in [words(&[2051, 2, 1, 2], &[1, 2, 3, 4]), words(&[2051, 1, 1, 1], &[1])] {
        for length in 0..bytes.len() {
            let error = images_of(&bytes[..length]).unwrap_err();
            assert!(
                matches!(error, DataError::Truncated { position, .. } if position == length as u64),
                "{length}: {error}"
            );
        }
    }
}

#[test]
fn every_proper_prefix_of_a_gzip_file_is_an_error() {
    let packed = gzip(&words(&[2051, 8, 8, 8], &[7; 512]));
    for length in 0..packed.len() {
        // The last eight bytes are the checksum and the length; without them the data cannot be trusted either.
        assert!(images_of(&packed[..length]).is_err(), "{length} of {} bytes", packed.len());
    }
}

#[test]
fn a_wrong_checksum_is_an_error() {
    let mut packed = gzip(&words(&[2049, 3], &[1, 2, 3]));
    let index = packed.len() - 8;
    packed[index] ^= 1;
    assert!(matches!(labels_of(&packed).unwrap_err(), DataError::Read { .. }));
}

#[test]
fn trailing_bytes_are_refused() {
    let bytes = words(&[2049, 3], &[1, 2, 3, 4]);
    assert!(matches!(labels_of(&bytes).unwrap_err(), DataError::TrailingBytes { position: 11, .. }));
    assert!(matches!(labels_of(&gzip(&bytes)).unwrap_err(), DataError::TrailingBytes { position: 11, .. }));
    let mut packed = gzip(&bytes[..11]);
    packed.extend_from_slice(b"junk");
    assert!(labels_of(&packed).is_err());
}

#[test]
fn a_wrong_magic_number_names_both() {
    let error = images_of(&words(&[2049, 1, 1, 1], &[1])).unwrap_err();
    assert!(matches!(error, DataError::Magic { found: 2049, expected: 2051, .. }), "{error}");
    assert!(error.to_string().contains("byte 0: the magic number is 2049"), "{error}");
}

#[test]
fn a_dimension_of_zero_is_refused() {
    for (header, index) in [([2051, 0, 1, 1], 4), ([2051, 1, 0, 1], 8), ([2051, 1, 1, 0], 12)] {
        let error = images_of(&words(&header, &[])).unwrap_err();
        assert!(matches!(error, DataError::ZeroDimension { position, .. } if position == index), "{error}");
    }
}

#[test]
fn an_enormous_header_is_refused_before_memory_is_reserved() {
    for header in [[2051, u32::MAX, u32::MAX, u32::MAX], [2051, 1 << 20, 1 << 5, (1 << 3) + 1]] {
        let error = images_of(&words(&header, &[1])).unwrap_err();
        assert!(matches!(error, DataError::TooLarge { .. }), "{error}");
    }
    // Within the limit, but a lie: only the bytes present are read.
    let error = images_of(&words(&[2051, 1 << 20, 1 << 4, 1 << 4], &[1])).unwrap_err();
    assert!(matches!(error, DataError::Truncated { position: 17, expected: 268_435_472, .. }), "{error}");
}

#[test]
fn a_gzip_bomb_is_unpacked_one_byte_beyond_its_promise() {
    let mut bytes = words(&[2049, 2], &[1, 2]);
    bytes.resize(64 << 20, 0);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("labels");
    std::fs::write(&path, gzip(&bytes)).unwrap();
    let mut reader = ByteReader::open(&path).unwrap();
    let [_, count] = reader.words(LABEL_HEADER_BYTES).unwrap();
    assert!(matches!(reader.data(&[(count, "labels")]), Err(DataError::TrailingBytes { position: 10, .. })));
    assert_eq!(reader.position, 11);
}

#[test]
fn a_missing_file_says_where_it_was_looked_for_and_where_to_get_it() {
    let folder = TempDir::new().unwrap();
    let text = load_idx_folder(folder.path()).unwrap_err().to_string();
    let path = folder.path().join("train-images-idx3-ubyte.gz");
    assert!(text.contains(&path.display().to_string()), "{text}");
    assert!(text.contains("https://github.com/zalandoresearch/fashion-mnist"), "{text}");
    assert!(text.contains("t10k-labels-idx1-ubyte.gz"), "{text}");
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let error = load_idx_folder(folder_of(1, &[0, 1, 2], &[0]).path()).unwrap_err();
    assert!(matches!(error, DataError::CountMismatch { images: 2, labels: 3, .. }), "{error}");
    let error = load_idx_folder(folder_of(2, &[0, 1], &[0]).path()).unwrap_err();
    assert!(matches!(error, DataError::SizeMismatch { found: (2, 2), expected: (1, 2), .. }), "{error}");
    let error = load_idx_folder(folder_of(1, &[0, 1], &[2]).path()).unwrap_err();
    assert!(matches!(error, DataError::LabelOutOfRange { position: 8, found: 2, classes: 2, .. }), "{error}");
}

/// Whichever bit of a good file, plain or packed, is turned, reading ends with images or an error.
#[test]
fn any_turned_bit_ends_in_images_or_an_error() {
    let plain = words(&[2051, 2, 1, 2], &[1, 2, 3, 4]);
    for good in [gzip(&plain), plain] {
        for index in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[index] ^= 1 << bit;
                if let Ok(images) = images_of(&bytes) {
                    assert_eq!(images.pixels.len(), images.count * images.rows * images.columns);
                }
            }
        }
    }
}
