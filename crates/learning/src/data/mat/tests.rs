//! Hostile and honest files.

use super::*;
use flate2::{Compression, write::ZlibEncoder};
use std::io::Write;
use tempfile::TempDir;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An element, filled up to a multiple of eight bytes.
fn element(kind: u32, content: &[u8]) -> Vec<u8> {
    let filled = vec![0; content.len().next_multiple_of(8) - content.len()];
    [&words(&[kind, content.len() as u32])[..], content, &filled].concat()
}

/// An array of class `class` whose numbers are of a type.
fn array(name: &str, class: u32, dimensions: &[u32], number: u32, numbers: &[u8]) -> Vec<u8> {
    let parts = [
        element(6, &words(&[class, 0])),
        element(5, &words(dimensions)),
        element(1, name.as_bytes()),
        element(number, numbers),
    ];
    element(14, &parts.concat())
}

fn packed(element: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(element).unwrap();
    let bytes = encoder.finish().unwrap();
    [words(&[15, bytes.len() as u32]), bytes].concat()
}

fn file(elements: &[Vec<u8>]) -> Vec<u8> {
    let head = [&b"MATLAB 5.0 MAT-file"[..], &[b' '; 105], &[0, 1, b'I', b'M']].concat();
    assert_eq!(head.len(), 128);
    [head, elements.concat()].concat()
}

fn read<const N: usize>(bytes: &[u8], names: [&str; N]) -> Result<[Array; N], String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.mat");
    std::fs::write(&path, bytes).unwrap();
    read_arrays(&path, names).map_err(|error| error.to_string().replace(&*path.to_string_lossy(), "a.mat"))
}

#[test]
fn arrays_are_found_by_their_names_plain_and_packed() {
    let x = array("X", 9, &[2, 3], 2, &[1, 2, 3, 4, 5, 6]);
    let y = array("y", 6, &[2, 1], 4, &[7, 0, 1, 1]);
    let other = array("other", 2, &[1, 1], 14, &[0; 8]);
    let plain = file(&[other.clone(), x.clone(), y.clone()]);
    let all_packed = file(&[packed(&y), packed(&other), packed(&x), packed(&array("X", 9, &[1, 1], 2, &[9]))]);
    for bytes in [plain, all_packed] {
        let [x, y] = read(&bytes, ["X", "y"]).unwrap();
        assert_eq!((x.dimensions.as_slice(), x.number), (&[2, 3][..], Number::U8));
        assert_eq!((x.numbers(), y.numbers()), (vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], vec![7.0, 257.0]));
    }
}

#[test]
fn every_way_to_store_a_number_is_read() {
    let numbers: [(u32, Vec<u8>); 8] = [
        (1, vec![0xfe]),
        (2, vec![0xfe]),
        (3, (-2_i16).to_le_bytes().to_vec()),
        (4, 65_534_u16.to_le_bytes().to_vec()),
        (5, (-2_i32).to_le_bytes().to_vec()),
        (6, 4_000_000_000_u32.to_le_bytes().to_vec()),
        (7, 0.5_f32.to_le_bytes().to_vec()),
        (9, (-0.1_f64).to_le_bytes().to_vec()),
    ];
    let expected = [-2.0, 254.0, -2.0, 65_534.0, -2.0, 4e9, 0.5, -0.1];
    for ((kind, bytes), expected) in numbers.into_iter().zip(expected) {
        let whole = file(&[array("y", 6, &[1, 1], kind, &bytes)]);
        assert_eq!(read(&whole, ["y"]).unwrap()[0].numbers(), [expected], "{kind}");
    }
    // Up to four bytes lie beside their type and number, as MATLAB writes short names and arrays.
    let small = [
        element(6, &words(&[9, 0])),
        element(5, &words(&[3, 1])),
        words(&[1 << 16 | 1, b'y'.into()]),
        [words(&[3 << 16 | 2]), vec![7, 8, 9, 0]].concat(),
    ];
    assert_eq!(read(&file(&[element(14, &small.concat())]), ["y"]).unwrap()[0].numbers(), [7.0, 8.0, 9.0]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let x = || array("X", 9, &[2, 3], 2, &[1, 2, 3, 4, 5, 6]);
    let told = |bytes: &[u8]| read(bytes, ["X"]).unwrap_err();
    assert!(told(b"").contains("byte 0: this is no MAT file of level 5"));
    assert!(told(&[b"MATLAB 7.3 MAT-file".to_vec(), vec![0; 600]].concat()).contains("version 7.3"));
    assert!(told(&[file(&[])[..124].to_vec(), vec![1, 0, b'M', b'I']].concat()).contains("big-endian"));
    assert!(told(&file(&[])).contains("byte 128: ends without an array \"X\""));
    assert!(told(&file(&[array("Y", 9, &[1, 1], 2, &[1])])).contains("ends without an array \"X\""));
    assert!(told(&file(&[array("X", 4, &[1, 1], 2, &[1])])).contains("has class 4; expected real numbers"));
    assert!(told(&file(&[array("X", 9 | 8 << 8, &[1, 1], 2, &[1])])).contains("has complex numbers"));
    assert!(told(&file(&[array("X", 9, &[2, 3], 2, &[1, 2])])).contains("has 2 bytes for 2 × 3 numbers of 1"));
    assert!(told(&file(&[array("X", 9, &[u32::MAX, 3], 2, &[1])])).contains("dimensions [-1, 3]"));
    let huge = [1 << 30, 1 << 30, 1 << 30, 1 << 30];
    assert!(told(&file(&[array("X", 9, &huge, 2, &[1])])).contains("expected sizes from 0"));
    assert!(told(&file(&[array("X", 9, &[1, 1], 12, &[1; 8])])).contains("numbers of type 12"));
    // A promise of four gigabytes reserves nothing.
    let mut promised = x();
    let numbers = promised.len() - 12;
    promised[numbers..numbers + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(told(&file(&[promised])).contains("of 4294967295 bytes; expected at most 268435456"));
    // Cut off anywhere, plain or packed.
    for whole in [file(&[x()]), file(&[packed(&x())])] {
        for length in 129..whole.len() {
            assert!(told(&whole[..length]).contains("a.mat"), "{length} of {}", whole.len());
        }
    }
    // A packed array that was damaged, in its last bytes, the checksum.
    let mut damaged = file(&[packed(&x())]);
    *damaged.last_mut().unwrap() ^= 1;
    assert!(told(&damaged).contains("cannot be read at byte"), "{}", told(&damaged));
    let more = [x(), vec![0; 8]].concat();
    assert!(told(&file(&[packed(&more)])).contains("goes on after byte"));
}
