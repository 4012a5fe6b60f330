//! Hostile and honest tables.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::Write;
use tempfile::TempDir;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn columns() -> CsvColumns {
    CsvColumns { answer: Answer::Label("y".to_owned()), group: None, shape: None }
}

fn folder_of(train: &[u8], test: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("train.csv"), train).unwrap();
    std::fs::write(folder.path().join("test.csv"), test).unwrap();
    folder
}

fn read(
    train: impl AsRef<[u8]>,
    test: impl AsRef<[u8]>,
    change: impl FnOnce(&mut CsvColumns),
) -> Result<Split, DataError> {
    let folder = folder_of(train.as_ref(), test.as_ref());
    let mut columns = columns();
    change(&mut columns);
    columns.read_split(&folder.path().join("train.csv"), &folder.path().join("test.csv"))
}

/// The message about a training table, from the file's name on.
fn wrong(train: impl AsRef<[u8]>) -> String {
    let text = read(train, "a,y\n1,0\n", |_| ()).unwrap_err().to_string();
    text[text.find("train.csv").unwrap()..].to_owned()
}

fn labels(data: &Dataset) -> &[u8] {
    data.classes().unwrap().0
}

#[test]
fn columns_are_features_label_and_group() {
    let train = "user, a ,y,b\nzoe,1,cat, 2.5\nadam,-3e2,dog,4\nzoe,5,cat,6\n";
    let test = "user,a,y,b\neve,0,dog,0\nzoe,1,dog,1\nbob,1,cat,1\n";
    let split = read(train, test, |columns| {
        columns.group = Some("user".to_owned());
        columns.shape = Some(Shape { channels: 1, height: 1, width: 2 });
    })
    .unwrap();
    assert_eq!(split.train.numbers().unwrap().values, [1.0, 2.5, -300.0, 4.0, 5.0, 6.0]);
    assert_eq!(split.train.classes(), Some((&[0, 1, 0][..], 2)));
    assert_eq!(split.test.classes(), Some((&[1, 1, 0][..], 2)));
    assert_eq!(split.train.groups(), Some(&[1, 0, 1][..]));
    // Bob and Eve are not in training: numbers after those, in ascending order.
    assert_eq!(split.test.groups(), Some(&[3, 1, 2][..]));
    assert_eq!(split.train.shape(), Shape { channels: 1, height: 1, width: 2 });
}

#[test]
fn labels_are_classes_by_value_if_all_are_numbers_and_by_text_otherwise() {
    let numbers = read("y,a\n10,0\n-2,0\n9,0\n9.5,0\n", "y,a\n9,0\n", |_| ()).unwrap();
    assert_eq!((labels(&numbers.train), labels(&numbers.test)), (&[3, 0, 1, 2][..], &[1][..]));
    let texts = read("y,a\n10,0\n9,0\nx,0\n", "y,a\nx,0\n", |_| ()).unwrap();
    assert_eq!((labels(&texts.train), labels(&texts.test)), (&[0, 1, 2][..], &[2][..]));
    // The order of the rows does not number the classes.
    let turned = read("y,a\nx,0\n9,0\n10,0\n", "y,a\nx,0\n", |_| ()).unwrap();
    assert_eq!(labels(&turned.train), [2, 1, 0]);
}

#[test]
fn a_target_is_a_number() {
    let target = |columns: &mut CsvColumns| columns.answer = Answer::Target("y".to_owned());
    let split = read("a,y\n1,0.5\n2,-1\n", "a,y\n1,7\n", target).unwrap();
    assert_eq!((split.train.values(), split.test.values()), (Some(&[0.5, -1.0][..]), Some(&[7.0][..])));
    let text = read("a,y\n1,0.5\n2,high\n", "a,y\n1,7\n", target).unwrap_err().to_string();
    assert!(text.contains("train.csv:3: column \"y\": found \"high\"; expected a finite number"), "{text}");
}

#[test]
fn however_a_table_is_written_it_reads_alike() {
    let expected = read("a,y\n1,0\n2,1\n", "a,y\n3,1\n", |_| ()).unwrap();
    for train in [
        "a,y\r\n1,0\r\n2,1\r\n",
        "a,y\n1,0\n2,1",
        "\u{feff}a,y\n\n1,0\n\r\n2,1\n\n",
        "\"a\",\"y\"\r\n\"1\",\"0\"\r\n\"2\",\"1\"",
    ] {
        assert_eq!(read(train, "a,y\n3,1\n", |_| ()).unwrap(), expected, "{train:?}");
        assert_eq!(read(gzip(train.as_bytes()), "a,y\n3,1\n", |_| ()).unwrap(), expected, "{train:?}");
    }
}

#[test]
fn a_bad_field_is_named_by_file_line_and_column() {
    for (field, end) in
        [("", "\n"), ("x", "\n"), ("NaN", ""), ("inf", "\r\n"), ("1e39", "\n"), ("-1e39", "\n"), ("0x1", "")]
    {
        let text = wrong(format!("a,y{end}\n1,0{end}\n{field},1{end}"));
        let line = if end.is_empty() { 3 } else { 5 };
        let expected = format!("train.csv:{line}: column \"a\": found {field:?}; expected a finite number");
        assert!(text.starts_with(&expected), "{text}");
    }
    assert!(wrong("a,y\n1,\n").starts_with("train.csv:2: column \"y\": found \"\"; expected a name or a number"));
    // A field over several lines belongs to the line where its row begins.
    let text = wrong("a,y\n\n1,\"0\n\n\"\nx,0\n");
    assert!(text.starts_with("train.csv:6: column \"a\""), "{text}");
    let text = wrong("a,y\n1,0\n\"x\n\",0\n1,1\n");
    assert!(text.starts_with("train.csv:3: column \"a\": found \"x\""), "{text}");
}

#[test]
fn ragged_rows_are_named() {
    assert_eq!(wrong("a,y\n1,0\n1,2,0\n"), "train.csv:3: found 3 fields; the header has 2 columns");
    assert_eq!(wrong("a,b,y\n1,2,0\n\n1\n"), "train.csv:4: found 1 fields; the header has 3 columns");
}

#[test]
fn bad_headers_are_named() {
    assert_eq!(wrong(""), "train.csv:1: is empty; expected a header, the names of the columns");
    assert_eq!(wrong("a,y\n"), "train.csv:1: has a header only; expected at least one row after it");
    assert_eq!(wrong("a,y,a\n1,0,1\n"), "train.csv:1: there are two columns \"a\"; expected each name once");
    assert_eq!(wrong("a,,y\n1,0,1\n"), "train.csv:1: column 2 has no name; expected a header of names");
    assert_eq!(wrong("a,b\n1,0\n"), "train.csv:1: there is no column \"y\" (the label); known: a, b");
    assert_eq!(wrong("y\n1\n"), "train.csv:1: there is no column of features");
    let group = |name: &'static str| move |columns: &mut CsvColumns| columns.group = Some(name.to_owned());
    let text = read("a,y\n1,0\n", "a,y\n1,0\n", group("user")).unwrap_err().to_string();
    assert!(text.contains("there is no column \"user\" (the group); known: a, y"), "{text}");
    let text = read("a,y\n1,0\n", "a,y\n1,0\n", group("y")).unwrap_err().to_string();
    assert!(text.contains("cannot be both the label and the group"), "{text}");
    let shape = |columns: &mut CsvColumns| columns.shape = Some(Shape { channels: 1, height: 2, width: 2 });
    let text = read("a,b,y\n1,2,0\n", "a,b,y\n1,2,0\n", shape).unwrap_err().to_string();
    assert!(text.contains("there are 2 columns of features; expected a shape's 1 × 2 × 2"), "{text}");
}

#[test]
fn the_test_table_is_of_the_same_columns_and_classes() {
    let wrong = |test: &str| {
        let text = read("a,b,y\n1,2,0\n1,2,1\n", test, |_| ()).unwrap_err().to_string();
        text[text.find("test.csv").unwrap()..].to_owned()
    };
    assert_eq!(wrong("b,a,y\n1,2,0\n"), "test.csv:1: column 1 is \"b\"; the training file has \"a\" there");
    assert_eq!(wrong("a,b\n1,2\n"), "test.csv:1: column 3 is nothing; the training file has \"y\" there");
    assert_eq!(wrong("a,b,y,c\n1,2,0,1\n"), "test.csv:1: column 4 is \"c\"; the training file has nothing there");
    let text = wrong("a,b,y\n1,2,1\n1,2,7\n1,2,3\n");
    assert!(text.starts_with("test.csv:3: column \"y\": found \"7\"; expected one of the 2 classes of "), "{text}");
}

#[test]
fn numbers_given_as_a_label_are_too_many_classes() {
    let rows: String = (0..300).map(|row| format!("0,{}\n", f64::from(row) / 7.0)).collect();
    let text = wrong(format!("a,y\n{rows}"));
    assert!(text.starts_with("train.csv:258: column \"y\"") && text.contains("given as target"), "{text}");
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let text = wrong(b"a,y\n1,0\n1,\xff\n");
    assert_eq!(text, "train.csv:3: field 2 is not UTF-8 text");
}

#[test]
fn damaged_archives_are_refused() {
    let packed = gzip(b"a,y\n1,0\n2,1\n3,0\n");
    for length in 2..packed.len() {
        assert!(wrong(&packed[..length]).contains("cannot be read at byte"), "{length}");
    }
}

#[test]
fn a_gzip_bomb_is_unpacked_for_one_row_at_most() {
    for byte in [b'1', b'\n', b'"', b','] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(b"a,y\n\"").unwrap();
        (0..20).for_each(|_| encoder.write_all(&vec![byte; 1 << 20]).unwrap());
        let text = wrong(encoder.finish().unwrap());
        assert!(text.contains("a row has more than 16777216 bytes"), "{text}");
    }
}

#[test]
fn names_are_bounded() {
    let group = |columns: &mut CsvColumns| columns.group = Some("g".to_owned());
    let name = "n".repeat(NAME_MAX);
    let long = format!("a,g,y\n1,{name},0\n2,{name}n,0\n");
    let text = read(&long, "a,g,y\n1,x,0\n", group).unwrap_err().to_string();
    assert!(
        text.contains("train.csv:3: column \"g\": found \"nnn") && text.ends_with("of at most 256 bytes"),
        "{text}"
    );
    assert!(wrong(format!("a,y\n1,{name}n\n")).ends_with("a name of at most 256 bytes"));
}

#[test]
fn a_header_of_a_million_names_is_read_fast_and_one_of_more_is_refused() {
    let header = |columns: usize| (0..columns).map(|column| format!("{column:x},")).collect::<String>() + "y\n";
    let names = header(1 << 20);
    assert_eq!(wrong(&names), "train.csv:1: there are 1048577 columns; at most 1048576 are read");
    let names = header((1 << 20) - 1);
    assert_eq!(wrong(&names), "train.csv:1: has a header only; expected at least one row after it");
}

#[test]
fn one_table_is_read_as_the_training_table_of_two() {
    let table = "a,g,y\n1,u,x\n2,t,w\n";
    let folder = folder_of(table.as_bytes(), table.as_bytes());
    let columns = CsvColumns { group: Some("g".to_owned()), ..columns() };
    let (train, test) = (folder.path().join("train.csv"), folder.path().join("test.csv"));
    let one = columns.read(&train).unwrap();
    assert_eq!((one.groups(), one.classes()), (Some(&[1, 0][..]), Some((&[1, 0][..], 2))));
    assert_eq!(columns.read_split(&train, &test).unwrap(), Split { train: one.clone(), test: one });
}

/// A table of random numbers, classes and groups, written in random ways, reads back unchanged.
#[test]
fn whatever_is_written_is_read() {
    use fedgenie_core::rng::{Purpose, Streams};
    for case in 0..200 {
        let mut rng = Streams::new(2).stream(Purpose::Example, case, 0);
        let (rows, width) = (1 + rng.below(20) as usize, 1 + rng.below(6) as usize);
        let end = ["\n", "\r\n"][rng.below(2) as usize];
        let mut text = (0..width).map(|column| format!("f{column},")).collect::<String>() + "user,y" + end;
        let (mut features, mut targets, mut users) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            for _ in 0..width {
                // Any finite number, subnormal ones included.
                let bits = rng.bits() as u32;
                let value = if f32::from_bits(bits).is_finite() { f32::from_bits(bits) } else { -0.0 };
                features.push(value.to_bits());
                text += &[format!("{value},"), format!("\"{value:e}\","), format!(" {value} ,")][rng.below(3) as usize];
            }
            let (user, target) = (rng.below(5) as u32, rng.uniform() as f32);
            users.push(format!("{user}, \"a\""));
            targets.push(target);
            text += &format!("\"{user}, \"\"a\"\"\",{target}{end}");
            text += ["", end][rng.below(2) as usize];
        }
        let bytes = if rng.below(2) == 0 { text.into_bytes() } else { gzip(text.as_bytes()) };
        let split = read(&bytes, &bytes, |columns| {
            columns.answer = Answer::Target("y".to_owned());
            columns.group = Some("user".to_owned());
        })
        .unwrap();
        assert_eq!(split.train, split.test);
        let found: Vec<u32> = split.train.numbers().unwrap().values.iter().map(|value| value.to_bits()).collect();
        assert_eq!((found, split.train.values()), (features, Some(&targets[..])));
        let mut names = users.clone();
        names.sort_unstable();
        names.dedup();
        let numbers: Vec<u32> =
            users.iter().map(|user| names.iter().position(|name| name == user).unwrap() as u32).collect();
        assert_eq!(split.train.groups(), Some(&numbers[..]));
    }
}

/// Whatever bytes a file is made of, reading ends with a table or an error.
#[test]
fn any_bytes_end_in_a_table_or_an_error() {
    use fedgenie_core::rng::{Purpose, Streams};
    let alphabet = b"a,y\n\r\"01.- \xc3\x28e";
    let mut tables_read = 0;
    for case in 0..1_000 {
        let mut rng = Streams::new(1).stream(Purpose::Example, case, 0);
        let length = rng.below(40);
        let body: Vec<u8> = (0..length).map(|_| alphabet[rng.below(alphabet.len() as u64) as usize]).collect();
        let train = [b"a,y\n1,0\n", &body[..]].concat();
        if let Ok(split) = read(train, "a,y\n1,0\n", |_| ()) {
            assert!(split.train.examples() >= 1 && split.train.width() == 1);
            tables_read += 1;
        }
    }
    assert!(tables_read > 10, "{tables_read}");
}

#[test]
fn a_quote_that_is_not_closed_is_found_on_its_line() {
    for (text, line) in
        [("x,y\n1,a\n2,\"b\n3,c\n", 3), ("x,y\n1,a\n\n2,\"b", 4), ("x,y\n\"1,a\n2,b\n", 2), ("\"x,y\n1,a\n", 1)]
    {
        let said = wrong(text.as_bytes());
        assert!(said.contains(&format!(":{line}: a quote is opened in this row and never closed")), "{said}");
    }
}

#[test]
fn a_label_that_is_no_number_and_no_name_is_refused() {
    for label in ["nan", "NaN", "-nan"] {
        let said = wrong(format!("x,y\n1,0\n2,{label}\n").as_bytes());
        assert!(said.contains(":3: column \"y\"") && said.contains("NaN stands for a missing value"), "{said}");
    }
}
