//! Titles, keys and paths of others: what a terminal, a picture and a spreadsheet make of them.

use crate::support::{Answer, SCENARIO, Workplace};
use fedgenie::text::is_control;
use std::fs;

/// What a terminal obeys, what turns the direction of writing, and a line that pretends to be a message.
const BAD: &str = "a\u{1b}[31m\rb\u{202e}c\u{9b}d\nfedgenie: error: forged";

/// The same in TOML.
fn escaped() -> String {
    BAD.chars()
        .map(|letter| if is_control(letter) { format!("\\u{:04x}", u32::from(letter)) } else { letter.into() })
        .collect()
}

fn scenario() -> String {
    format!(
        "name = \"texts\"\ntitle = \"{0}\"\nseeds = 2\nstop.rounds = 4\nprotocol.synchronous = {{ cohort = 1 }}\n\
         [population]\nclients = 3\n[population.latency]\ndownload = {{ constant = \"1 s\" }}\n\
         compute = {{ exponential = {{ mean = \"1 s\" }} }}\nupload = {{ constant = \"1 s\" }}\n\
         [[population.group]]\nname = \"={0}\"\ncount = 1\n[[population.group]]\nname = \"@sum\"\ncount = 2\n\
         [policy.random]\n[policy.round-robin]\n",
        escaped()
    )
}

/// Nothing that a terminal obeys, and no line that pretends to be another.
fn harmless(text: &str) {
    let found = text.chars().find(|&letter| is_control(letter) && letter != '\n');
    assert_eq!(found, None, "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("fedgenie: error: forged")), "{text}");
}

#[test]
fn a_terminal_obeys_no_text_of_a_scenario() {
    let place = Workplace::with(&scenario());
    for words in [
        &["run", SCENARIO][..],
        &["run", SCENARIO, "--json"],
        &["run", SCENARIO, "--out", "out"],
        &["verify", "out"],
        &["report", "out"],
    ] {
        let Answer { code, stdout, stderr } = place.fedgenie(words);
        assert_eq!(code, 0, "{stderr}");
        harmless(&stdout);
        harmless(&stderr);
        if words.contains(&"--json") {
            let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(document["title"], BAD);
        }
    }
}

#[test]
fn a_terminal_obeys_no_text_of_an_error() {
    let bad = escaped();
    let good = scenario();
    let changes = [
        (good.clone() + &format!("[policy.\"{bad}\"]\n"), "a label has"),
        (good.clone() + &format!("[policy.x]\nkind = \"{bad}\"\n"), "unknown policy"),
        (good.clone() + &format!("[\"{bad}\"]\n"), "unknown key"),
        (good.replace("\"texts\"", &format!("\"{bad}\"")), "name: found"),
        (good.replace("clients = 3", &format!("clients = \"{bad}\"")), "expected a whole number"),
        (
            good.replace("{ exponential = { mean = \"1 s\" } }", &format!("{{ empirical = {{ file = \"{bad}\" }} }}")),
            "samples",
        ),
        (good.clone() + "x = \u{1b}\u{202e}\n", "this is not TOML"),
        (good.clone() + &format!("[sweep]\n\"policy.x\\n{bad}\" = 1\n"), "expected a list"),
    ];
    for (text, part) in changes {
        let Answer { code, stdout, stderr } = Workplace::with(&text).fedgenie(&["run", SCENARIO]);
        assert_eq!(code, 2, "{stdout}{stderr}");
        assert!(stderr.contains(part), "{stderr}\nshould say {part}");
        harmless(&stderr);
    }
    // Names of files and words of the command line.
    let place = Workplace::with(&good);
    for words in [
        &["run", BAD][..],
        &["verify", BAD],
        &["report", BAD],
        &["run", SCENARIO, "--set", BAD],
        &["run", SCENARIO, "--ties", BAD],
        &["run", SCENARIO, "--shard", BAD, "--out", "o"],
        &["run", SCENARIO, "--threads", BAD],
        &["list", BAD],
        &["describe", BAD],
        &["validate", BAD],
    ] {
        let Answer { code, stdout, stderr } = place.fedgenie(words);
        assert!(code == 2 && stdout.is_empty(), "{words:?}: {code} {stdout}");
        harmless(&stderr);
    }
}

#[test]
fn pictures_pages_and_tables_have_none_of_it() {
    let place = Workplace::with(&scenario());
    let bad_folder = "out\u{1b}\u{202e}";
    for out in ["out", bad_folder] {
        assert_eq!(place.fedgenie(&["run", SCENARIO, "--out", out]).code, 0);
    }
    for format in ["svg", "csv", "html"] {
        let answer = place.fedgenie(&["report", "out", bad_folder, "--format", format, "-o", format]);
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        harmless(&answer.stdout);
    }
    let (mut pictures, mut formulas) = (0, 0);
    for entry in fs::read_dir(place.path("svg")).unwrap().chain(fs::read_dir(place.path("csv")).unwrap()) {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if path.extension().unwrap() == "svg" {
            pictures += 1;
            let found = text.chars().find(|&letter| is_control(letter) && !"\n\t".contains(letter));
            assert_eq!(found, None, "{}", path.display());
            continue;
        }
        for row in csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes()).records() {
            for cell in &row.unwrap() {
                let begins = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
                assert!(!begins || cell.parse::<f64>().is_ok(), "{}: {cell:?}", path.display());
                formulas += usize::from(cell.starts_with("'=") || cell.starts_with("'@"));
            }
        }
    }
    assert!(pictures > 2 && formulas > 0, "{pictures} pictures, {formulas} cells");
    let page = place.text("html");
    assert_eq!(page.chars().find(|&letter| is_control(letter) && !"\n\t".contains(letter)), None);
}
