//! Valid files, and errors of invalid ones.

use super::*;
use crate::scenario::tree::parse;
use std::path::Path;

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
enum Shape {
    Circle { radius: f64 },
    Point,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    count: u32,
    shape: Shape,
    other: Option<Shape>,
}

fn error(text: &str) -> String {
    let tree = parse(Path::new("a.toml"), text).unwrap();
    read::<File>(&tree, "").unwrap_err().to_string()
}

#[test]
fn good_files_are_read() {
    let tree = parse(Path::new("a.toml"), "count = 1\nother = \"point\"\n[shape.circle]\nradius = 2").unwrap();
    let file: File = read(&tree, "").unwrap();
    assert!(file.count == 1 && matches!(file.shape, Shape::Circle { radius } if radius == 2.0));
    assert!(matches!(file.other, Some(Shape::Point)));
}

#[test]
fn errors_name_line_path_found_and_right() {
    assert_eq!(
        error("count = 1\n[shape.circle]\nradius = \"big\""),
        "a.toml:3: shape.circle.radius: found \"big\"; expected a number"
    );
    assert_eq!(
        error("count = -1\nshape = \"point\""),
        "a.toml:1: count: found -1; expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        error("count = 1\n[shape.circle]\nradios = 1"),
        "a.toml:3: shape.circle.radios: unknown key \"radios\"; did you mean \"radius\"? known: radius"
    );
    assert_eq!(
        error("count = 1\n\n[shape.cirlce]\nradius = 1"),
        "a.toml:3: shape.cirlce: unknown kind \"cirlce\"; did you mean \"circle\"? known: circle, point"
    );
    assert_eq!(error("shape = \"point\""), "a.toml:1: the key \"count\" is missing");
}

#[test]
fn a_list_stands_neither_for_a_table_nor_for_a_shorter_list() {
    assert_eq!(error("count = 1\nshape = { circle = [2] }"), "a.toml:2: shape.circle: found [2]; expected a table");
    let tree = parse(Path::new("a.toml"), "pair = [1, 2, 3]").unwrap();
    let error = read::<std::collections::BTreeMap<String, (u32, u32)>>(&tree, "").unwrap_err().to_string();
    assert_eq!(error, "a.toml:1: pair: found [1, 2, 3]; expected a tuple of size 2");
}
