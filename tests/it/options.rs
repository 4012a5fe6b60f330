//! Every option of every command that takes a value, at the edges of numbers: an answer or an error, never a defect.
//! The options come from the program's own help, so that a new one is tried as well.

use super::support::{Answer, SCENARIO, Workplace, changed};
use rayon::prelude::*;

/// Ends of ranges, texts that are no numbers, and texts that only look like numbers.
const EDGES: [&str; 20] = [
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e308",
    "-1e308",
    "5e-324",
    "1e-300",
    "1.0000000000000002",
    "nan",
    "inf",
    "-inf",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "",
    " ",
];

/// Options that are no numbers, and are tried with a few edges only. What is not named here is tried with all.
const TEXTS: [&str; 11] = [
    "--out",
    "--data",
    "--reference",
    "--format",
    "--figure",
    "--title",
    "--font",
    "--claims",
    "--to",
    "--columns",
    "--ratio-to",
];

const WORLD: &str = r#"
name = "small"
seeds = 1
stop = { rounds = 3 }
[population]
clients = 3
[population.latency]
download = { constant = "1 s" }
compute = { exponential = { mean = "1 s" } }
upload = { constant = "1 s" }
[protocol.synchronous]
cohort = 1
[regret]
tau_min = "1 s"
[policy.random]
[policy.round-robin]
"#;

/// A claim that does not run by itself.
const CLAIM: &str = r#"
title = "none"
source = "nowhere"
run = "named"
takes = "a minute"
[scenario.small]
file = "../../small.toml"
[[check]]
claim = "none"
statistic.value = { scenario = "small", policies = ["random"], value = "virtual_time_s" }
holds = { at-least = 0.0 }
expected = "supported"
"#;

/// A command's other arguments beside the option.
fn words_of(command: &str) -> &'static [&'static str] {
    match command {
        "run" => &["run", SCENARIO, "--quiet"],
        "verify" => &["verify", "out"],
        "merge" => &["merge", "put-together", "out"],
        "report" => &["report", "out"],
        "diff" => &["diff", "out", "other"],
        "export" => &["export", "out"],
        "fit" => &["fit", "jobs.csv"],
        "validate" => &["validate", "--quiet"],
        "list" => &["list", "law"],
        "describe" => &["describe", "law/constant"],
        "schema" => &["schema"],
        "traces" => &["traces"],
        "examples" => &["examples"],
        "completions" => &["completions", "bash"],
        "new" => &["new", "mine.toml"],
        other => panic!("say here what {other} is given"),
    }
}

/// An option's further arguments, and how its value is put together with a number.
fn values_of(command: &str, option: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match (command, option) {
        (_, "--set") => (&[], &["protocol.synchronous.cohort={}", "regret.tau_min={}"]),
        (_, "--timeline-rounds") => (&["--out", "new", "--timeline"], &["{}..{}", "1..{}"]),
        (_, "--shard") => (&["--out", "new"], &["{}/1", "0/{}"]),
        (_, "--checkpoint") => (&["--out", "new"], &["{} rounds", "{} s"]),
        (_, "--ties") => (&[], &["shuffle:{}"]),
        ("report", "--range") => {
            (&["--format", "svg", "--figure", "regret", "-o", "figures"], &["0:{}", "{}:1", "x=0:{}", "x={}:5"])
        }
        ("report", "--width" | "--height" | "--title" | "--font" | "--figure") => {
            (&["--format", "svg", "-o", "figures"], &["{}"])
        }
        ("report", "--columns" | "--ratio-to" | "--digits") => (&["--format", "md", "-o", "figures"], &["{}"]),
        ("report", "--out") => (&["--format", "md"], &["{}"]),
        ("export", "--out") => (&["--to", "csv"], &["{}"]),
        _ => (&[], &["{}"]),
    }
}

/// Names in the list that a heading of the help begins: words or options at the beginning of its lines.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let lines = help.split_once(&format!("{heading}:\n")).map_or("", |(_, rest)| rest).lines();
    lines.take_while(|line| line.starts_with(' ') || line.is_empty()).map(str::to_owned).collect()
}

/// The long names of a command's options that take a value.
fn options(help: &str) -> Vec<String> {
    let of = |line: &String| {
        let (_, rest) = line.split_once("--").filter(|(short, _)| short.trim().len() <= 3)?;
        let (name, value) = rest.split_once(' ')?;
        value.starts_with('<').then(|| format!("--{name}"))
    };
    listed(help, "Options").iter().filter_map(of).collect()
}

fn place() -> Workplace {
    let place = Workplace::with(WORLD);
    place.write("validation/claims/none.toml", CLAIM);
    place.write("small.toml", WORLD);
    place.write("jobs.csv", "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome\n0,1,0,,,,2,arrived\n");
    place.run_into("out", &[]);
    place.write("other.toml", changed(WORLD, "cohort = 1", "cohort = 2"));
    place.run_file("other.toml", "other", &[]);
    place
}

#[test]
fn every_option_at_the_edges_of_numbers() {
    let empty = Workplace::new();
    let commands = listed(&empty.fedgenie(&["--help"]).stdout, "Commands");
    let commands: Vec<&str> = commands.iter().filter_map(|line| line.split_whitespace().next()).collect();
    let found: Vec<(&str, String)> = commands
        .iter()
        .filter(|command| **command != "help")
        .flat_map(|&command| {
            let answer = empty.fedgenie(&[command, "--help"]);
            assert!(words_of(command)[0] == command && answer.code == 0, "{answer:?}");
            options(&answer.stdout).into_iter().map(move |option| (command, option))
        })
        .collect();
    // The list is read rightly: these are on it.
    for (command, option) in [("run", "--seeds"), ("report", "--range"), ("export", "--to"), ("validate", "--threads")]
    {
        assert!(found.iter().any(|(of, name)| (*of, &**name) == (command, option)), "{found:?}");
    }
    found.into_par_iter().for_each(|(command, option)| {
        let place = place();
        let (beside, forms) = values_of(command, &option);
        let edges = if TEXTS.contains(&&*option) { &EDGES[EDGES.len() - 3..] } else { &EDGES[..] };
        for (form, edge) in forms.iter().flat_map(|form| edges.iter().map(move |edge| (form, edge))) {
            let value = format!("{option}={}", form.replace("{}", edge));
            let words = [words_of(command), beside, &[&value]].concat();
            let Answer { code, stderr, stdout } = place.fedgenie(&words);
            assert!((0..=3).contains(&code) && !stderr.contains("panicked"), "{words:?}: {code} {stdout}{stderr}");
            assert!(code < 2 || stderr.starts_with("fedgenie: "), "{words:?}: {code} {stderr}");
            for name in ["new", "figures"] {
                drop(std::fs::remove_dir_all(place.path(name)));
            }
        }
    });
}

/// A range whose ends no axis tells apart is refused, in figures of lines of every kind, and none that it can show.
#[test]
fn a_range_is_wide_enough_for_an_axis() {
    let place = place();
    let drawn = |range: &str| {
        place.fedgenie(&["report", "out", "--format", "svg", "--figure", "regret", "-o", "figures", "--range", range])
    };
    for close in ["0:5e-324", "x=0:5e-324", "1:1.0000000000000002", "1e300:1.0000000000000002e300"] {
        let answer = drawn(close);
        let said = format!("found --range {close}; these ends are too close to each other");
        assert!(answer.code == 2 && answer.stderr.contains(&said), "{answer:?}");
        assert!(!place.path("figures").exists());
    }
    for wide in ["-1e308:1e308", "0:1e-280", "x=1:1.00001"] {
        assert_eq!(drawn(wide).code, 0, "{wide}");
    }
}
