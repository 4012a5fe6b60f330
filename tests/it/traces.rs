//! Published traces as users meet them: the list, the converters, the page; the drawn fleet beside their statistics.

use super::support::Workplace;
use fedgenie::population::trace::flhetbench;
use fedgenie::population::trace::published::{ALL, Published, convert};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

// ---------------------------------------------------------------------------------------------- published sets

#[test]
fn the_page_has_every_set() {
    let page = fs::read_to_string(root().join("docs/how-to/traces.md")).unwrap();
    let rows: String = ALL
        .iter()
        .map(|set| {
            let Published { kind, content, source, address, licence, files, .. } = set;
            format!("- **`{kind}`**: {content}. {source}. <{address}>; licence: {licence}. Files: {files}.\n")
        })
        .collect();
    assert!(page.contains(&rows), "the page should have these rows:\n{rows}");
}

#[test]
fn the_command_lists_and_converts() {
    let place = Workplace::new();
    let list = place.fedgenie(&["traces"]);
    assert!(list.code == 0 && ALL.iter().all(|set| list.stdout.contains(set.address)), "{list:?}");
    let timers =
        r#"{"a": {"isSuccess": true, "trace_start": 0, "trace_end": 86400, "ready_time": [[60, 3600], [3000, 7200]]}}"#;
    place.write("cached_timers.json", timers);
    let words = ["traces", "convert", "flhetbench", "cached_timers.json", "-o", "phones"];
    let made = place.fedgenie(&words);
    assert!(made.code == 0 && made.stderr.starts_with("fedgenie: warning: 1 intervals that overlap"), "{made:?}");
    assert_eq!(place.text("phones/intervals.csv"), "device,start_s,end_s\na,60,7200\n");
    let (_, settings) = made.stdout.split_once("\n\n").unwrap();
    let scenario = "name = \"phones\"\nseeds = 1\n[stop]\nrounds = 2\n[population]\nclients = 2\n[population.latency]\ndownload = \
                    { constant = \"1 s\" }\ncompute = { constant = \"1 s\" }\nupload = { constant = \"1 s\" }\n\
                    [protocol.synchronous]\ncohort = 1\n[policy.random]\n";
    place.write("phones/scenario.toml", format!("{scenario}{settings}"));
    let run = place.fedgenie(&["run", "phones/scenario.toml", "--quiet", "--out", "out"]);
    assert_eq!(run.code, 0, "{run:?}");
    // The first phone is ready from 60 s on.
    assert_eq!(place.json("out/summary.json")["runs"][0]["virtual_time_s"], 66.0);
    let again = place.fedgenie(&words);
    assert!(again.code == 2 && again.stderr.contains("exists already"), "{again:?}");
    for (kind, said) in [("flhetbnech", "did you mean"), ("flash-ready", "needs no converter")] {
        let refused = place.fedgenie(&["traces", "convert", kind, "cached_timers.json"]);
        assert!(refused.code == 2 && refused.stderr.contains(said), "{refused:?}");
    }
}

/// The folder of FLHetBench's files, where they are.
fn published() -> Option<PathBuf> {
    let data = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = data.join("fl-traces/flhetbench");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// The published JSON becomes the tables that were made of it by hand, for other tests.
#[test]
fn published_files_become_their_tables() {
    let Some(folder) = published() else { return };
    let made = convert("flhetbench", &[folder.join("cached_timers.json.gz")]).unwrap().unwrap();
    let mut by_hand = String::new();
    let packed = File::open(folder.join("availability_intervals.csv.gz")).unwrap();
    MultiGzDecoder::new(packed).read_to_string(&mut by_hand).unwrap();
    assert_eq!(sorted_lines(&made.tables[0].1), sorted_lines(&by_hand));
    assert_eq!(made.notes, ["290 devices are invalid, and have no trace"]);
    let place = Workplace::new();
    made.tables.iter().for_each(|(name, table)| place.write(name, table));
    let read = flhetbench::read(&place.path("intervals.csv"), &place.path("windows.csv")).unwrap();
    assert_eq!(read.value.len(), 710);

    let made = convert("flhetbench-latency", &[folder.join("training_latency.json")]).unwrap().unwrap();
    let by_hand = fs::read_to_string(folder.join("training_latency.csv")).unwrap();
    let numbers = |text: &str| -> Vec<Vec<Result<f64, String>>> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let cell = |cell: &str| cell.parse().map_err(|_| cell.to_owned());
        reader.records().map(|row| row.unwrap().iter().map(cell).collect()).collect()
    };
    assert_eq!(numbers(&made.tables[0].1), numbers(&by_hand));
}

// ---------------------------------------------------------------------------------------------- the drawn fleet

const FLEET: &str = "scenarios/gallery/data/fleet";

fn table(name: &str) -> Vec<Vec<String>> {
    let mut reader = csv::Reader::from_path(root().join(FLEET).join(name)).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

/// The value below which a share `p` of the numbers lies, linear between them.
fn percentile(numbers: &[f64], p: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = p * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * (at - at.floor())
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The drawn fleet's value of each statistic that its page names.
fn drawn() -> BTreeMap<String, f64> {
    let mut phones: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in table("intervals.csv") {
        phones.entry(row[0].clone()).or_default().push((row[1].parse().unwrap(), row[2].parse().unwrap()));
    }
    let columns =
        |index: usize| -> Vec<f64> { table("phones.csv").iter().map(|row| row[index].parse().unwrap()).collect() };
    assert_eq!((phones.len(), columns(1).len()), (120, 120));
    let week = 7.0 * 86_400.0;
    let all: Vec<(f64, f64)> = phones.values().flatten().copied().collect();
    let lengths: Vec<f64> = all.iter().map(|(start, end)| end - start).collect();
    let share = |intervals: &Vec<(f64, f64)>| intervals.iter().map(|(start, end)| end - start).sum::<f64>() / week;
    let shares: Vec<f64> = phones.values().map(share).collect();
    let per_day: Vec<f64> = phones.values().map(|intervals| intervals.len() as f64 / 7.0).collect();
    let between = |from: f64, to: f64| {
        let within = |day: f64| {
            let (from, to) = (86_400.0 * day + 3_600.0 * from, 86_400.0 * day + 3_600.0 * to);
            all.iter().map(|(start, end)| (end.min(to) - start.max(from)).max(0.0)).sum::<f64>()
        };
        (0..7).map(|day| within(f64::from(day))).sum::<f64>() / (7.0 * 3_600.0 * (to - from) * 120.0)
    };
    let mut values = BTreeMap::from([
        ("share of time ready, mean".to_owned(), mean(&shares)),
        ("median of an interval [s]".to_owned(), percentile(&lengths, 0.5)),
        ("mean of an interval [s]".to_owned(), mean(&lengths)),
        ("share ready from 2 to 6 o'clock".to_owned(), between(2.0, 6.0)),
        ("share ready from 12 to 16 o'clock".to_owned(), between(12.0, 16.0)),
    ]);
    for (p, name) in [
        (0.05, "5th percentile"),
        (0.25, "25th percentile"),
        (0.5, "median"),
        (0.75, "75th percentile"),
        (0.95, "95th percentile"),
    ] {
        values.insert(format!("share of time ready, {name}"), percentile(&shares, p));
        values.insert(format!("intervals per day, {name}"), percentile(&per_day, p));
        values.insert(format!("training time of a batch, {name} [ms]"), percentile(&columns(1), p));
        values.insert(format!("rate of the downlink, {name} [kbit/s]"), percentile(&columns(2), p));
    }
    values
}

#[test]
fn the_drawn_fleet_has_the_published_statistics() {
    let page = fs::read_to_string(root().join(FLEET).join("README.md")).unwrap();
    let values = drawn();
    let mut compared = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.contains("statistic")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, published, stated] = cells[..] else { panic!("{line}") };
        let value = values[name];
        let digits = stated.split_once('.').map_or(0, |(_, digits)| digits.len());
        assert_eq!(stated.replace(',', ""), format!("{value:.digits$}"), "{name}");
        let published: f64 = published.replace(',', "").parse().unwrap();
        assert!((value - published).abs() < 0.1 * published + 1e-4, "{name}: {value}, published {published}");
        compared += 1;
    }
    assert_eq!(compared, 19);
}
