//! Foreign titles, keys and paths, as a terminal, a picture and a spreadsheet take them.

use crate::fuzz::shared::markup;
use crate::support::{Answer, SCENARIO, Workplace};
use fedgenie::report::{Table, TableFormat};
use fedgenie::text::is_control;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Text that a terminal obeys, that turns the direction of writing, and a line that looks like a message.
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

/// Texts that mean something to one tool or another.
const LIVE: [&str; 24] = [
    "=cmd|'/C calc'!A0",
    "-1+2",
    "+1+2",
    "@sum(1)",
    "a;=1+2",
    " =1+2",
    "＝1+2",
    "![i](http://a.b/c)",
    "[c](javascript:alert(1))",
    "[c][d]",
    "<img src=x onerror=alert(1)>",
    "&lt;b&gt; www.a.b a@b.c https://a.b",
    "_a_ *b* `c` ~~d~~ a_b",
    "$x$ {{ y }} {% z %}",
    "[2cm] a",
    "*[2cm] a",
    "\\input{/etc/passwd} % # ~ ^ \"a",
    "a--b ``c'' ,,d ?`",
    "| a \\| b |",
    "a\nb\tc",
    "\u{1b}[2J\u{9b}1m\u{7f}",
    "\u{202e}a\u{2066}b\u{2028}c",
    "1e5 [1e-3, −2.5] ± 50 % …",
    "",
];

/// Each text stands first in a row and last, and is a heading.
fn live_table() -> Table {
    let rows = LIVE.iter().map(|text| vec![(*text).to_owned(), "1".to_owned(), (*text).to_owned()]);
    Table { columns: [LIVE[14], "policy", LIVE[0]].map(str::to_owned).to_vec(), rows: rows.collect() }
}

#[test]
fn tables_show_texts_and_mean_nothing_by_them() {
    let table = live_table();
    let found = markup::markdown(&TableFormat::Markdown.text(&table));
    for (text, row) in LIVE.iter().zip(&found[1..]) {
        let shown = text.split_whitespace().map(fedgenie::text::escaped).collect::<Vec<_>>().join(" ");
        assert_eq!([&*row[0], &*row[2]], [&*shown; 2], "what is read is what was written");
    }
    assert_eq!(markup::latex(&TableFormat::Latex.text(&table)), [3; LIVE.len() + 1]);
    let found = markup::csv(&TableFormat::Csv.text(&table));
    assert_eq!(found[0], ["[2cm] a", "policy", "'=cmd|'/C calc'!A0"]);
    assert_eq!((&*found[5][0], &*found[8][0]), ("a;'=1+2", "![i](http://a.b/c)"));
}

/// With a compiler of LaTeX, the table keeps its meaning: one page, and no command of a text was carried out.
#[test]
fn a_compiler_takes_the_table() {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|found| found.status.success());
    let Some(compiler) = ["pdflatex", "xelatex", "lualatex"].into_iter().find(|program| has(program)) else {
        // Only the strict reader above remains.
        return;
    };
    let mut table = live_table();
    // Not every font has every letter.
    table.rows.retain(|row| row[0].chars().all(|letter| letter.is_ascii() || "±−…".contains(letter)));
    let place = Workplace::new();
    let head = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n";
    place.write("a.tex", format!("{head}{}\\end{{document}}\n", TableFormat::Latex.text(&table)));
    let words = ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "a.tex"];
    let output = Command::new(compiler).args(words).current_dir(place.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && place.path("a.pdf").is_file(), "{said}");
    assert!(!said.contains("Missing number") && !said.contains("root:"), "{said}");
}

/// A result folder in which one name is another, with the digests of its contents.
fn renamed(place: &Workplace, folder: &str, from: &str, to: &str) {
    let mut manifest = place.json(&format!("{folder}/manifest.json"));
    let names: Vec<String> = manifest["files"].as_object().unwrap().keys().cloned().collect();
    for name in names.iter().filter(|name| name.ends_with(".json") || name.ends_with(".jsonl")) {
        let file = format!("{folder}/{name}");
        let quoted = |text: &str| json!(text).to_string();
        let text = place.text(&file).replace(&quoted(from), &quoted(to));
        manifest["files"][name] = json!(blake3::hash(text.as_bytes()).to_hex().to_string());
        place.write(&file, text);
    }
    place.write(&format!("{folder}/manifest.json"), manifest.to_string());
}

const SCRIPTED: &str = "[task.scripted]\nmetric = \"test_score\"\nbetter = \"higher\"\nvalues = [1.0, 2.0]\n";

/// Names of folders and of metrics reach every table.
#[test]
fn names_of_folders_and_metrics_mean_nothing_to_tools() {
    let place = Workplace::with(&(scenario() + SCRIPTED));
    let folders = ["[c](javascript:alert(1))", "=cmd|'!A0", "-1+2", "*a\u{1b}[2J\u{202e}", "[2cm] _b_ <b> $x$ @c"];
    for (folder, metric) in folders.iter().zip(["=cmd|'/C calc'!A0", "-1+2", "![i](http://a.b)", "\u{1b}[2J", "@x"]) {
        let folder: &str = folder;
        assert_eq!(place.fedgenie(&["run", SCENARIO, "--quiet", &format!("--out={folder}")]).code, 0);
        renamed(&place, folder, "test_score", metric);
    }
    for format in ["md", "latex", "csv", "svg", "html"] {
        let words = ["report", "--allow-changed", "--format", format, "-o", format, "--"];
        let answer = place.fedgenie(&[&words[..], &folders].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        harmless(&answer.stdout);
        harmless(&answer.stderr);
    }
    let words = ["export", "--allow-changed", "--to", "csv", "-o", "export", "--"];
    let answer = place.fedgenie(&[&words[..], &folders[..]].concat());
    assert_eq!(answer.code, 0, "{answer:?}");
    let rows = markup::csv(&place.text("export/rounds.csv"));
    for name in ["metric_cmd_c_calc_a0", "metric_minus_1_2", "metric_i_http_a_b"] {
        assert!(rows[0].iter().any(|column| column == name), "{:?}", rows[0]);
    }
    let dictionary = place.text("export/datapackage.json");
    harmless(&dictionary);
    let dictionary: Value = serde_json::from_str(&dictionary).unwrap();
    let fields = dictionary["resources"][0]["schema"]["fields"].as_array().unwrap();
    assert!(fields.iter().any(|field| field["quantity"] == "final.\u{1b}[2J" && field["name"] == "metric_2j"));
    assert!(rows.iter().any(|row| row[0] == "'=cmd|'!A0"));
    for folder in ["export", "csv"] {
        let is_table = |file: &std::path::PathBuf| file.extension().is_some_and(|ending| ending == "csv");
        for file in files_of(&place.path(folder)).filter(is_table) {
            assert!(!markup::csv(&fs::read_to_string(file).unwrap()).is_empty());
        }
    }
    let results = markup::markdown(&place.text("md/results.md"));
    assert!(results.iter().any(|row| row[0] == "[c](javascript:alert(1)): random"), "{results:?}");
    markup::markdown(&place.text("md/verdicts.md"));
    for table in ["results", "verdicts"] {
        markup::latex(&place.text(&format!("latex/{table}.tex")));
    }
    // Differences, as a table and as a document.
    for json in [&[][..], &["--json"]] {
        let answer = place.fedgenie(&[&["diff", "--allow-changed"], json, &["--", folders[0], folders[3]]].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        harmless(&answer.stdout);
        let document: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
        assert!(json.is_empty() || document["folders"][1] == folders[3]);
    }
}

fn files_of(folder: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}
