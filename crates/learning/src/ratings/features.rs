//! Features of items: a row of numbers for each, such as the vector of a text or an image.
//!
//! # Definition
//! Two kinds of files. A CSV table (RFC 4180, plain or gzip) has a header, the item's id in its first column, as the
//! ratings have it, and a finite number in every other column; its rows come in any order. An item without a row has
//! zeros and is counted; rows of items without ratings are not used. A NumPy array (`.npy` or `.npy.gz`) is item ×
//! feature, `<f4` or `<f8` in C order, with a row for each item of the ratings by ascending id.
//!
//! # Trust
//! None: an id that is there twice, a number that is missing, not finite or too many, or an array of another height
//! than there are items is an error with file and line, or byte.

use super::Ids;
use crate::data::DataError;
use crate::data::npy::read_table;
use crate::data::rows::Rows;
use std::path::Path;

/// The most features of an item.
pub const WIDTH_MAX: usize = 4_096;

/// Features of all items.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemFeatures {
    /// Numbers of an item; at least 1.
    pub width: usize,
    /// A row for each item, by its number.
    pub values: Vec<f32>,
    /// Items that the file does not know, whose features are zero.
    pub missing: usize,
}

/// Reads the features of items, an array if the file's name says so, else a table.
///
/// # Errors
/// See [`DataError`]; the first thing that is wrong.
pub fn read_features(path: &Path, items: &Ids) -> Result<ItemFeatures, DataError> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    if name.ends_with(".npy") || name.ends_with(".npy.gz") { array(path, items) } else { table(path, items) }
}

fn array(path: &Path, items: &Ids) -> Result<ItemFeatures, DataError> {
    let (values, width) = read_table(path)?;
    let wrong = |message| Err(DataError::Array { path: path.to_owned(), position: 0, message });
    let (rows, count) = (values.len() / width, items.len());
    if rows != count {
        return wrong(format!("has {rows} rows; expected {count}, one for each item of the ratings by ascending id"));
    }
    if width > WIDTH_MAX {
        return wrong(format!("has {width} columns; at most {WIDTH_MAX} are read"));
    }
    Ok(ItemFeatures { width, values, missing: 0 })
}

fn table(path: &Path, items: &Ids) -> Result<ItemFeatures, DataError> {
    let mut rows = Rows::open(path)?;
    let wrong = |line, message| DataError::Table { path: path.to_owned(), line, message };
    let empty = || wrong(1, "is empty; expected a header: the item's id, then the names of its features".to_owned());
    let line = rows.advance()?.ok_or_else(empty)?;
    let header: Vec<String> = rows.record.iter().map(|name| name.trim().to_owned()).collect();
    let width = header.len() - 1;
    if width == 0 || width > WIDTH_MAX {
        let message = format!("the header has {width} columns after the item's id; expected from 1 to {WIDTH_MAX}");
        return Err(wrong(line, message));
    }
    if header[1..].iter().all(|name| name.parse::<f64>().is_ok()) {
        let message =
            "the first row has numbers alone; expected a header: the item's id, then the names of its features";
        return Err(wrong(line, message.to_owned()));
    }
    let mut values = vec![0.0; items.len() * width];
    // The line of each item's row; 0 if it has none.
    let mut lines = vec![0; items.len()];
    while let Some(line) = rows.advance()? {
        if rows.record.len() != header.len() {
            let message = format!("found {} fields; the header has {} columns", rows.record.len(), header.len());
            return Err(wrong(line, message));
        }
        let id = rows.record[0].trim();
        let place = items.find(id).map(|item| item as usize);
        if let Some(item) = place {
            if lines[item] > 0 {
                return Err(wrong(line, format!("item {id:?} has a row already, in line {}", lines[item])));
            }
            lines[item] = line;
        }
        for (feature, field) in rows.record.iter().skip(1).enumerate() {
            let number = field.trim().parse().ok().filter(|number: &f32| number.is_finite());
            let number = number.ok_or_else(|| DataError::Field {
                path: path.to_owned(),
                line,
                column: header[feature + 1].clone(),
                found: field.chars().take(80).collect(),
                expected: "a finite number within the range of f32".to_owned(),
            })?;
            if let Some(item) = place {
                values[item * width + feature] = number;
            }
        }
    }
    let missing = lines.iter().filter(|&&line| line == 0).count();
    if missing == items.len() {
        return Err(wrong(
            line,
            "no row is that of an item of the ratings; the first column is the item's id".to_owned(),
        ));
    }
    Ok(ItemFeatures { width, values, missing })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(name: &str, contents: &[u8]) -> Result<ItemFeatures, String> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        read_features(&path, &Ids::Numbers(vec![2, 5, 40])).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_of_a_table_find_their_items_in_any_order() {
        let text = b"movie,a,b\n40,1.5,-2\n7,9,9\n2, 0.25 ,1e-3\n";
        let expected = ItemFeatures { width: 2, values: vec![0.25, 0.001, 0.0, 0.0, 1.5, -2.0], missing: 1 };
        assert_eq!(read("t.csv", text), Ok(expected.clone()));
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).unwrap();
        assert_eq!(read("t.csv.gz", &packed.finish().unwrap()), Ok(expected));
    }

    /// An array as NumPy writes it.
    fn npy(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(numbers);
        bytes
    }

    #[test]
    fn rows_of_an_array_are_the_items_by_ascending_id() {
        let numbers = [1.0_f64, 2.0, -3.0, 0.5, 0.0, 9.0];
        let expected = ItemFeatures { width: 2, values: vec![1.0, 2.0, -3.0, 0.5, 0.0, 9.0], missing: 0 };
        let long: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert_eq!(read("p.npy", &npy("<f8", "(3, 2)", &long)), Ok(expected.clone()));
        let short: Vec<u8> = numbers.iter().flat_map(|&number| (number as f32).to_le_bytes()).collect();
        assert_eq!(read("p.npy", &npy("<f4", "(3, 2)", &short)), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let nan: Vec<u8> = [1.0_f32, f32::NAN, 0.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        let [zeros, ones] = [[0; 16], [1; 16]];
        for (name, contents, says) in [
            ("t.csv", b"".to_vec(), "t.csv:1: is empty"),
            ("t.csv", b"id\n2\n".to_vec(), "t.csv:1: the header has 0 columns after"),
            ("t.csv", b"2,0.5\n5,0.1\n".to_vec(), "t.csv:1: the first row has numbers alone"),
            ("t.csv", b"id,a\n2,1\n5,NaN\n".to_vec(), "t.csv:3: column \"a\": found \"NaN\"; expected a finite"),
            ("t.csv", b"id,a\n2,1\n5,\n".to_vec(), "t.csv:3: column \"a\": found \"\"; expected a finite"),
            ("t.csv", b"id,a\n2,1\n9,1e99\n".to_vec(), "t.csv:3: column \"a\": found \"1e99\""),
            ("t.csv", b"id,a\n2,1\n5,1,2\n".to_vec(), "t.csv:3: found 3 fields; the header has 2"),
            ("t.csv", b"id,a\n2,1\n5,2\n2,1\n".to_vec(), "t.csv:4: item \"2\" has a row already, in line 2"),
            ("t.csv", b"id,a\nx,1\n".to_vec(), "no row is that of an item"),
            ("p.npy", npy("<f4", "(3, 1)", &nan), "found NaN; expected a finite number"),
            ("p.npy", npy("<f4", "(4, 1)", &zeros), "has 4 rows; expected 3, one for each item"),
            ("p.npy", npy("<f4", "(4,)", &ones), "1 dimension (4) of real numbers; expected 2 (item × feature)"),
            ("p.npy", npy("<i4", "(4, 1)", &ones), "of whole numbers; expected 2 (item × feature) of <f4 or <f8"),
        ] {
            let error = read(name, &contents).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
