//! The errors that the source declares: public enums and structs that are errors, with their variants.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        match path.is_dir() {
            true if name != "tests" => files(&path, found),
            false if name.ends_with(".rs") && name != "tests.rs" => found.push(path),
            _ => {}
        }
    }
}

/// A text without comments and quoted text.
fn bare(text: &str) -> String {
    let (mut bare, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
            continue;
        }
        if letter == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let is_end = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                is_end
            });
            rest = &rest[end.map_or(rest.len(), |end| end + 2)..];
            bare.push_str("\"\"");
            continue;
        }
        bare.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    bare
}

/// The content between the braces that open a text, and the text behind them.
fn braced(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|letter| {
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    &text[1..end.unwrap()]
}

/// The names of an enum's variants.
fn variants(body: &str) -> Vec<String> {
    let (mut depth, mut names, mut name) = (0, Vec::new(), String::new());
    for letter in body.chars().chain([',']) {
        if depth == 0 && (letter.is_alphanumeric() || letter == '_') {
            name.push(letter);
            continue;
        }
        if !name.is_empty() {
            names.push(std::mem::take(&mut name));
        }
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    names
}

/// The errors of a file.
fn of(text: &str, found: &mut BTreeSet<String>) {
    let text = bare(text.split("#[cfg(test)]\nmod tests {").next().unwrap());
    let by_hand: Vec<&str> = text
        .match_indices("Error for ")
        .map(|(at, _)| text[at + 10..].split([' ', '{', '<']).next().unwrap())
        .collect();
    for kind in ["enum", "struct"] {
        for (at, declaration) in text.match_indices(&format!("pub {kind} ")) {
            let rest = &text[at + declaration.len()..];
            let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric()).collect();
            // The attributes before it.
            let before = &text[..at];
            let attributes = &before[before.rfind([';', '}']).map_or(0, |end| end + 1)..];
            let derives = attributes.split("derive(").nth(1).and_then(|list| list.split(')').next()).unwrap_or("");
            let is_derived = derives.split(',').any(|derived| derived.trim().rsplit("::").next() == Some("Error"));
            let is_named = kind == "enum" && (name == "Error" || name.ends_with("Error"));
            if !is_derived && !is_named && !by_hand.contains(&name.as_str()) {
                continue;
            }
            if kind == "struct" {
                assert!(found.insert(name.clone()), "there are two {name}");
                continue;
            }
            for variant in variants(braced(&rest[rest.find('{').unwrap()..])) {
                let variant = format!("{name}::{variant}");
                assert!(found.insert(variant.clone()), "there are two {variant}");
            }
        }
    }
}

/// `Enum::Variant` and `Struct` of all public errors.
pub fn declared() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut paths, mut found) = (Vec::new(), BTreeSet::new());
    files(&root.join("src"), &mut paths);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        files(&entry.unwrap().path().join("src"), &mut paths);
    }
    paths.iter().for_each(|path| of(&fs::read_to_string(path).unwrap(), &mut found));
    found
}

#[test]
fn declarations_are_found() {
    let text = r#"
        /// Wrong, "in", a comment { Not::This }.
        #[derive(Debug, thiserror::Error)]
        pub enum Fault {
            /// One.
            #[error("{a} of \"{b}\" }}")]
            One { a: u8, b: Option<u8> },
            #[error(transparent)]
            Two(#[from] io::Error),
            Three,
        }
        pub enum PlainError { Only(u8) }
        pub enum Other { No }
        #[derive(Clone, Error)]
        #[error("{0}")]
        pub struct Wrapped(pub String);
        pub struct Mine;
        impl std::error::Error for Mine {}
        pub(super) struct Hidden;
    "#;
    let mut found = BTreeSet::new();
    of(text, &mut found);
    let expected = ["Fault::One", "Fault::Three", "Fault::Two", "Mine", "PlainError::Only", "Wrapped"];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
