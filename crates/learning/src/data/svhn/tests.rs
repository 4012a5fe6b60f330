//! Small files as those that are published, and wrong ones.

use super::*;
use tempfile::TempDir;

fn element(kind: u32, content: &[u8]) -> Vec<u8> {
    let filled = vec![0; content.len().next_multiple_of(8) - content.len()];
    [&kind.to_le_bytes()[..], &(content.len() as u32).to_le_bytes(), content, &filled].concat()
}

fn array(name: &str, dimensions: &[u32], numbers: &[u8]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let parts = [element(6, &words(&[9, 0])), element(5, &words(dimensions)), element(1, name.as_bytes())];
    element(14, &[parts.concat(), element(2, numbers)].concat())
}

fn file(arrays: &[Vec<u8>]) -> Vec<u8> {
    [&[b' '; 124][..], &[0, 1, b'I', b'M'], &arrays.concat()].concat()
}

/// A byte that tells where it is from: image, colour, row and column.
fn byte(image: usize, colour: usize, row: usize, column: usize) -> u8 {
    (image * 97 + colour * 67 + row * 5 + column * 3) as u8
}

/// Images in the order of the file: the row fastest, then the column, the colour, the image.
fn images(count: usize) -> Vec<u8> {
    let columns = (0..count).flat_map(|image| (0..3).flat_map(move |colour| (0..32).map(move |c| (image, colour, c))));
    columns.flat_map(|(image, colour, column)| (0..32).map(move |row| byte(image, colour, row, column))).collect()
}

fn part(count: u32, digits: &[u8]) -> Vec<u8> {
    let x = array("X", &[32, 32, 3, count], &images(count as usize));
    file(&[x, array("y", &[digits.len() as u32, 1], digits)])
}

fn told(bytes: &[u8]) -> String {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(TRAIN), bytes).unwrap();
    read_svhn(&folder.path().join(TRAIN)).unwrap_err().to_string()
}

#[test]
fn images_have_rows_of_pixels_and_ten_is_zero() {
    let folder = TempDir::new().unwrap();
    assert!(!is_svhn_folder(folder.path()));
    std::fs::write(folder.path().join(TRAIN), part(3, &[10, 1, 9])).unwrap();
    std::fs::write(folder.path().join(TEST), part(1, &[5])).unwrap();
    assert!(is_svhn_folder(folder.path()) && files(folder.path()).len() == 2);
    let split = load_svhn_folder(folder.path()).unwrap();
    let labels = |data: &Dataset| data.classes().map(|(labels, classes)| (labels.to_vec(), classes)).unwrap();
    assert_eq!((labels(&split.train), labels(&split.test)), ((vec![0, 1, 9], 10), (vec![5], 10)));
    assert_eq!((split.train.shape(), split.test.width()), (SHAPE, 3_072));
    let features = split.train.features();
    for (image, colour, row, column) in [(0, 0, 0, 0), (1, 0, 3, 7), (2, 1, 31, 2), (2, 2, 30, 31)] {
        let found = features.row(image)[colour * 1_024 + row * 32 + column];
        assert_eq!(found, f32::from(byte(image, colour, row, column)) / 255.0, "{image} {colour} {row} {column}");
    }
}

#[test]
fn other_arrays_are_refused() {
    let y = || array("y", &[1, 1], &[5]);
    let x = |dimensions: &[u32], bytes| file(&[array("X", dimensions, &vec![0; bytes]), y()]);
    assert!(told(&x(&[28, 28, 3, 1], 2_352)).contains("X has 28 × 28 × 3 × 1 numbers of type U8; expected 32 × 32"));
    assert!(told(&x(&[32, 32, 3, 0], 0)).contains("expected 32 × 32 × 3 × images, each a byte, of at least one"));
    assert!(told(&part(2, &[1])).contains("y has 1 × 1 numbers of type U8; expected 2 × 1"));
    for (digits, found) in [([1, 0], "0 as label 2"), ([11, 1], "11 as label 1")] {
        assert!(told(&part(2, &digits)).contains(&format!("y has {found}; expected a digit from 1 to 10")));
    }
    let folder = TempDir::new().unwrap();
    let text = load_svhn_folder(folder.path()).unwrap_err().to_string();
    assert!(text.contains("train_32x32.mat: there is no such file; `--data DIR`"), "{text}");
}
