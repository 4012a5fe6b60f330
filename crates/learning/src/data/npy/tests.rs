//! Hostile and honest files.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use tempfile::TempDir;

/// A file as NumPy writes it.
fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(1, &format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}    \n"), data)
}

/// Bytes before the numbers of an array with this type and shape.
fn header_bytes(descr: &str, shape: &str) -> u64 {
    array(descr, shape, &[]).len() as u64
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn load(files: [&[u8]; 4]) -> Result<Split, DataError> {
    let folder = TempDir::new().unwrap();
    let path = |index: usize| folder.path().join(["train.npy", "train-y.npy", "test.npy", "test-y.npy"][index]);
    files.iter().enumerate().for_each(|(index, bytes)| std::fs::write(path(index), bytes).unwrap());
    NpyArrays { train: path(0), train_labels: path(1), test: path(2), test_labels: path(3), shape: None }.load()
}

fn features_of(bytes: &[u8]) -> Result<(Vec<f32>, Shape), DataError> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.npy");
    std::fs::write(&path, bytes).unwrap();
    read_features(&path, None, None)
}

fn wrong_features(bytes: &[u8]) -> String {
    let text = features_of(bytes).unwrap_err().to_string();
    text[text.find("x.npy").unwrap()..].to_owned()
}

fn wrong_label(bytes: &[u8]) -> String {
    let good = array("<f4", "(2, 1)", &[0; 8]);
    let text = load([&good, bytes, &good, bytes]).unwrap_err().to_string();
    text[text.find("train-y.npy").unwrap()..].to_owned()
}

fn le<const BYTES: usize>(numbers: impl IntoIterator<Item = [u8; BYTES]>) -> Vec<u8> {
    numbers.into_iter().flatten().collect()
}

#[test]
fn every_type_and_version_reads() {
    let expected = (vec![1.0, 2.0, -3.0, 4.5], Shape { channels: 2, height: 1, width: 1 });
    let reals = [1.0_f32, 2.0, -3.0, 4.5];
    let data = le(reals.map(f32::to_le_bytes));
    assert_eq!(features_of(&array("<f4", "(2, 2)", &data)).unwrap(), expected);
    assert_eq!(features_of(&gzip(&array("<f4", "(2, 2)", &data))).unwrap(), expected);
    for (version, header) in [
        (2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}"),
        (3, "{\"shape\":(2,2,),\"fortran_order\":False,\"descr\":\"<f4\"}\n"),
    ] {
        assert_eq!(features_of(&npy(version, header, &data)).unwrap(), expected);
    }
    assert_eq!(features_of(&array("<f8", "(2, 2)", &le(reals.map(|x| f64::from(x).to_le_bytes())))).unwrap(), expected);
    let whole = [1_i32, -2, 3, 1 << 20];
    let expected = vec![1.0, -2.0, 3.0, 1_048_576.0];
    assert_eq!(features_of(&array("<i4", "(2, 2)", &le(whole.map(i32::to_le_bytes)))).unwrap().0, expected);
    assert_eq!(
        features_of(&array("<i8", "(2, 2)", &le(whole.map(|x| i64::from(x).to_le_bytes())))).unwrap().0,
        expected
    );
    assert_eq!(features_of(&array("|u1", "(2, 2)", &[0, 51, 102, 255])).unwrap().0, [0.0, 0.2, 0.4, 1.0]);
    let signed = [1_i8, -128, 127, 0];
    let expected = [1.0, -128.0, 127.0, 0.0];
    assert_eq!(features_of(&array("|i1", "(2, 2)", &le(signed.map(i8::to_le_bytes)))).unwrap().0, expected);
    assert_eq!(
        features_of(&array("<i2", "(2, 2)", &le(signed.map(|x| i16::from(x).to_le_bytes())))).unwrap().0,
        expected
    );
    let unsigned = [1_u16, 65_535, 0, 256];
    let expected = [1.0, 65_535.0, 0.0, 256.0];
    assert_eq!(features_of(&array("<u2", "(2, 2)", &le(unsigned.map(u16::to_le_bytes)))).unwrap().0, expected);
    assert_eq!(
        features_of(&array("<u4", "(2, 2)", &le(unsigned.map(|x| u32::from(x).to_le_bytes())))).unwrap().0,
        expected
    );
    assert_eq!(features_of(&array("<u4", "(1, 1)", &[255; 4])).unwrap().0, [4_294_967_296.0]);
}

#[test]
fn a_given_shape_lays_out_a_table_and_has_to_be_that_of_images() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("x.npy");
    let read = |dimensions: &str, [channels, height, width]: [usize; 3]| {
        std::fs::write(&path, array("|u1", dimensions, &[7; 12])).unwrap();
        read_features(&path, Some(Shape { channels, height, width }), None).map(|(_, shape)| shape)
    };
    let expected = Shape { channels: 1, height: 2, width: 3 };
    assert_eq!(read("(2, 6)", [1, 2, 3]).unwrap(), expected);
    assert_eq!(read("(2, 2, 3)", [1, 2, 3]).unwrap(), expected);
    let text = read("(2, 3, 2)", [1, 2, 3]).unwrap_err().to_string();
    assert!(text.contains("has the shape 1 × 3 × 2, which is not the given shape 1 × 2 × 3"), "{text}");
    assert!(read("(2, 6)", [1, 2, 4]).is_err() && read("(2, 6)", [usize::MAX, 2, 4]).is_err());
}

#[test]
fn dimensions_become_shapes() {
    let shape = |dimensions: &str| features_of(&array("|u1", dimensions, &[7; 12])).unwrap().1;
    assert_eq!(shape("(2, 6)"), Shape { channels: 6, height: 1, width: 1 });
    assert_eq!(shape("(2, 3, 2)"), Shape { channels: 1, height: 3, width: 2 });
    assert_eq!(shape("(1, 2, 3, 2)"), Shape { channels: 2, height: 3, width: 2 });
    for (dimensions, described) in [("(12,)", "1 dimension (12)"), ("(1, 1, 1, 1, 12)", "5 dimensions"), ("()", "0")] {
        let text = wrong_features(&array("|u1", dimensions, &[7; 12]));
        assert!(text.contains(&format!("the array has {described}")), "{text}");
    }
}

#[test]
fn arrays_longer_than_a_block_are_read_whole() {
    let numbers: Vec<f64> = (0..20_000).map(f64::from).collect();
    let data = le(numbers.iter().map(|number| number.to_le_bytes()));
    let (values, _) = features_of(&array("<f8", "(100, 200)", &data)).unwrap();
    assert!(values.iter().zip(&numbers).all(|(&value, &number)| f64::from(value) == number) && values.len() == 20_000);
}

#[test]
fn labels_are_classes_or_numbers() {
    let x = array("|u1", "(3, 1, 2)", &[0, 255, 51, 102, 0, 0]);
    let test_x = array("|u1", "(1, 1, 2)", &[255, 255]);
    let (y, test_y) = (array("<i8", "(3,)", &le([0_i64, 4, 2].map(i64::to_le_bytes))), array("|u1", "(1,)", &[3]));
    let split = load([&x, &y, &test_x, &test_y]).unwrap();
    assert_eq!(split.train.classes(), Some((&[0, 4, 2][..], 5)));
    assert_eq!(split.test.classes(), Some((&[3][..], 5)));
    assert_eq!(split.train.numbers().unwrap().row(1), [0.2, 0.4]);
    let reals = array("<f8", "(3,)", &le([0.5_f64, -1.0, 2.0].map(f64::to_le_bytes)));
    let real = array("<f4", "(1,)", &9.0_f32.to_le_bytes());
    let split = load([&x, &reals, &test_x, &real]).unwrap();
    assert_eq!((split.train.values(), split.test.values()), (Some(&[0.5, -1.0, 2.0][..]), Some(&[9.0][..])));

    assert!(load([&x, &y, &test_x, &real]).unwrap_err().to_string().contains("labels are real numbers"));
    assert!(load([&x, &reals, &test_x, &test_y]).unwrap_err().to_string().contains("labels are whole numbers"));
    let five = array("<i4", "(1,)", &5_i32.to_le_bytes());
    let error = load([&x, &y, &test_x, &five]).unwrap_err();
    let start = header_bytes("<i4", "(1,)");
    assert!(
        matches!(error, DataError::LabelOutOfRange { position, found: 5, classes: 5, .. } if position == start),
        "{error}"
    );
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let (x, y) = (array("|u1", "(2, 2)", &[0; 4]), array("|u1", "(2,)", &[0; 2]));
    let error = load([&x, &array("|u1", "(3,)", &[0; 3]), &x, &y]).unwrap_err();
    assert!(matches!(error, DataError::CountMismatch { images: 2, labels: 3, .. }), "{error}");
    let text = load([&x, &y, &array("|u1", "(2, 2, 1)", &[0; 4]), &y]).unwrap_err().to_string();
    assert!(text.contains("the shape 1 × 2 × 1; training examples have 2 × 1 × 1"), "{text}");
}

#[test]
fn labels_that_are_no_classes_are_refused_where_they_stand() {
    for (bad, text) in [(-1_i64, "label -1"), (256, "label 256"), (i64::MAX, "label 9223372036854775807")] {
        let found = wrong_label(&array("<i8", "(2,)", &le([0, bad].map(i64::to_le_bytes))));
        let byte = header_bytes("<i8", "(2,)") + 8;
        assert!(
            found.starts_with(&format!("train-y.npy: byte {byte}: {text}; expected a whole number from 0 to 255")),
            "{found}"
        );
    }
    assert!(wrong_label(&array("|u1", "(2, 1)", &[0; 2])).contains("2 dimensions (2 × 1); labels have 1"));
    assert!(wrong_label(&array("<f4", "(2,)", &le([0.0, f32::NAN].map(f32::to_le_bytes)))).contains("found NaN"));
}

#[test]
fn numbers_that_are_not_finite_are_refused_where_they_stand() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e39] {
        let text = wrong_features(&array("<f8", "(1, 2)", &le([1.0, bad].map(f64::to_le_bytes))));
        let byte = header_bytes("<f8", "(1, 2)") + 8;
        assert!(text.starts_with(&format!("x.npy: byte {byte}: found {bad}; expected a finite number")), "{text}");
    }
}

#[test]
fn every_proper_prefix_is_truncated() {
    let bytes = array("<f4", "(2, 2)", &[0; 16]);
    let packed = gzip(&bytes);
    for length in 0..bytes.len() {
        let error = features_of(&bytes[..length]).unwrap_err();
        assert!(
            matches!(error, DataError::Truncated { position, .. } if position == length as u64),
            "{length}: {error}"
        );
    }
    for length in 0..packed.len() {
        assert!(features_of(&packed[..length]).is_err(), "{length}");
    }
}

#[test]
fn what_follows_the_numbers_is_refused() {
    let bytes = array("|u1", "(2, 2)", &[0; 5]);
    let end = header_bytes("|u1", "(2, 2)") + 4;
    for bytes in [gzip(&bytes), bytes] {
        let error = features_of(&bytes).unwrap_err();
        assert!(matches!(error, DataError::TrailingBytes { position, .. } if position == end), "{error}");
    }
}

#[test]
fn files_of_another_kind_are_refused() {
    assert!(wrong_features(b"PK\x03\x04 a zip archive").starts_with("x.npy: byte 0: the file begins with [50, 4b"));
    assert!(wrong_features(&npy(4, "{}", &[])).starts_with("x.npy: byte 6: version 4.0; expected 1.0"));
    for descr in [">f4", "<f2", "<u8", "|b1", "|O", "<U3"] {
        let text = wrong_features(&array(descr, "(1, 1)", &[0; 8]));
        assert!(text.contains(&format!("numbers of type {descr:?}; expected <f4")), "{text}");
    }
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }";
    assert!(wrong_features(&npy(1, fortran, &[0; 4])).contains("Fortran order; expected C order"));
    let records = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }";
    assert!(wrong_features(&npy(1, records, &[0; 4])).contains("a table of records"));
}

#[test]
fn hostile_headers_are_refused_before_memory_is_reserved() {
    for shape in ["(18446744073709551615, 2)", "(268435457, 1)", "(4294967296, 4294967296, 4294967296)"] {
        assert!(wrong_features(&array("<f8", shape, &[])).contains("at most 268435456 are read"), "{shape}");
    }
    assert!(wrong_features(&array("<f8", "(0, 2)", &[])).contains("0 × 2 numbers is empty"));
    // Within the limit, but a lie: only the bytes present are read.
    let error = features_of(&array("<f8", "(268435456, 1)", &[0; 8])).unwrap_err();
    assert!(matches!(error, DataError::Truncated { .. }), "{error}");
    let mut long = npy(2, "{}", &[]);
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(wrong_features(&long).contains("byte 8: the header has 4294967295 bytes; at most 65536"));
    for header in [
        "",
        "{",
        "{}",
        "[]",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 1)}",
        "{'descr': '<f4', 'fortran_order': Fals, 'shape': (1, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)} more",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (1, 1)}",
        "{'descr': 4, 'fortran_order': False, 'shape': (1, 1)}",
        "{'other': '<f4', 'fortran_order': False, 'shape': (1, 1)}",
    ] {
        let text = wrong_features(&npy(1, header, &[0; 4]));
        assert!(text.starts_with("x.npy: byte "), "{header}: {text}");
    }
}

/// Arrays of random sizes, types and bytes read back unchanged.
#[test]
fn whatever_is_written_is_read() {
    use fedgenie_core::rng::{Purpose, Streams};
    for case in 0..300 {
        let mut rng = Streams::new(3).stream(Purpose::Example, case, 0);
        let dimensions: Vec<usize> = (0..2 + rng.below(3)).map(|_| 1 + rng.below(7) as usize).collect();
        let shape = dimensions.iter().map(|size| format!("{size}, ")).collect::<String>();
        let count = dimensions.iter().product();
        let whole: Vec<i64> = (0..count).map(|_| rng.bits() as i64 >> rng.below(64)).collect();
        let (descr, data, expected): (_, Vec<u8>, Vec<f32>) = match rng.below(4) {
            0 => ("<i8", le(whole.iter().map(|x| x.to_le_bytes())), whole.iter().map(|&x| x as f32).collect()),
            1 => {
                let data = le(whole.iter().map(|&x| (x as i16).to_le_bytes()));
                ("<i2", data, whole.iter().map(|&x| f32::from(x as i16)).collect())
            }
            2 => {
                let data = le(whole.iter().map(|&x| (x as f64 / 3.0).to_le_bytes()));
                ("<f8", data, whole.iter().map(|&x| (x as f64 / 3.0) as f32).collect())
            }
            _ => {
                let data = whole.iter().map(|&x| x as u8).collect();
                ("|u1", data, whole.iter().map(|&x| f32::from(x as u8) / 255.0).collect())
            }
        };
        let bytes = array(descr, &format!("({shape})"), &data);
        let (values, shape) = features_of(&if rng.below(2) == 0 { bytes } else { gzip(&bytes) }).unwrap();
        assert_eq!((values, shape.len()), (expected, dimensions[1..].iter().product()));
    }
}

/// Whichever bit of a good file is turned, reading ends with an array or an error.
#[test]
fn any_turned_bit_ends_in_an_array_or_an_error() {
    let good = array("<f4", "(2, 2)", &[0; 16]);
    for byte in 0..good.len() {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[byte] ^= 1 << bit;
            if let Ok((values, shape)) = features_of(&bytes) {
                assert_eq!(values.len() % shape.len(), 0);
            }
        }
    }
}
