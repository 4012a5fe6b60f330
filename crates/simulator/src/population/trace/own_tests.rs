//! Users' own logs: all defects at once, mended logs, and files that are joined by name.

use super::link::{LinkFormat, LinkOptions};
use super::*;
use crate::population::PopulationConfig;
use crate::population::config::Work;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::law::Law;
use fedgenie_core::record::Phase;
use fedgenie_core::rng::Streams;
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use serde_json::{Value, json};
use std::io::Write;
use tempfile::NamedTempFile;

const S: u64 = 1_000_000_000;
const MEND: Own<'_> = Own { key: None, mend: true };
const LINKS: LinkOptions<'_> = LinkOptions { format: LinkFormat::Csv, set: None, scale: 1.0, wrap: true };

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn seconds(traces: &AvailabilityTraces, trace: usize) -> Vec<(u64, u64)> {
    traces.intervals(trace).map(|(start, end)| (start.0 / S, end.0 / S)).collect()
}

/// In the order of a log, by time: duplicate, out of order, overlap, an inner one, and a good device.
const LOG: &str = "client,start_s,end_s\na,10,20\nb,12,14\na,10,20\na,0,5\na,15,30\na,16,18\na,40,50\n";

#[test]
fn all_defects_are_told_at_once_and_each_by_its_name() {
    let log = file(LOG);
    let message = intervals::read(log.path(), None).unwrap_err().to_string();
    let parts = [
        ":4: 4 defects: ",
        "line 4: column \"start_s\": found \"10\"; expected each interval once; this is a duplicate of line 2; ",
        "line 5: column \"start_s\": found \"0\"; expected a time after 10,",
        "of line 2 starts: out of order; ",
        "line 6: column \"start_s\": found \"15\"; expected a time not before 20,",
        "of line 2 ends: an overlap; ",
        "line 7: ",
        "; mend = true sorts rows, merges overlaps and drops duplicates",
    ];
    let mut rest = message.as_str();
    for part in parts {
        let place = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing, or out of order, in {message}"));
        rest = &rest[place + part.len()..];
    }
    assert_eq!(rest, "");
    // Of many defects the first ten, among them some that mending leaves.
    let many: String = (0..12).map(|row| format!("a,{},x\n", 10 * row)).collect();
    let many = file(&format!("client,start_s,end_s\n{many}"));
    let message = intervals::read(many.path(), None).unwrap_err().to_string();
    assert!(message.contains(": 12 defects: line 2: ") && message.contains("; line 11: "), "{message}");
    assert!(message.ends_with("; … and 2 more") && !message.contains("line 12"), "{message}");
    // Mending does not hide the defects that it leaves.
    assert_eq!(intervals::read_own(many.path(), None, MEND).unwrap_err().to_string(), message);
}

#[test]
fn a_mended_log_is_that_of_a_careful_user() {
    let log = file(LOG);
    let mended = intervals::read_own(log.path(), None, MEND).unwrap();
    assert_eq!(seconds(&mended.value, 0), [(0, 5), (10, 30), (40, 50)]);
    assert_eq!(seconds(&mended.value, 1), [(12, 14)]);
    let expected = Defects { records: 7, unsorted: 1, duplicates: 1, overlapping: 2, ..Defects::default() };
    assert_eq!(mended.defects, expected);
    let said: Vec<&str> = mended.notes.iter().map(|note| note.split_once(": ").unwrap().1).collect();
    let merged = "2 intervals that overlap another were merged with it";
    assert_eq!(
        said,
        ["1 intervals that start before the one above them were sorted", merged, "1 duplicates were dropped"]
    );
    // A good log stays the same, mended or not.
    let good = file("client,start_s,end_s\na,0,5\na,10,30\nb,1,2\n");
    let [plain, mended] = [Own::default(), MEND].map(|own| intervals::read_own(good.path(), None, own).unwrap());
    assert_eq!(plain, mended);
}

#[test]
fn links_are_mended_too() {
    let log = file("trace,time_s,mbit_per_s\nx,2,4\ny,0,1\nx,0,2\nx,2,4\nx,1,3\ny,5,2\n");
    let message = link::read(log.path(), &LINKS).unwrap_err().to_string();
    assert!(message.contains(": 4 defects: line 4: ") && message.contains("stand together"), "{message}");
    let (mended, names) = link::read_own(log.path(), &LINKS, MEND).unwrap();
    let good = file("trace,time_s,mbit_per_s\nx,0,2\nx,1,3\nx,2,4\ny,0,1\ny,5,2\n");
    assert_eq!(mended.value, link::read(good.path(), &LINKS).unwrap().value);
    assert_eq!((mended.defects.unsorted, mended.defects.duplicates, names.len()), (3, 1, 0));
    let two = file("trace,time_s,mbit_per_s\nx,0,2\nx,1,3\nx,1,4\n");
    let message = link::read_own(two.path(), &LINKS, MEND).unwrap_err().to_string();
    assert!(message.contains(":4: two rates of trace \"x\" at 1 s; the other is in line 3"), "{message}");
}

/// Three phones, whose files are in different orders.
fn population(device: Value, availability: Value, clients: usize) -> Result<(Vec<[f64; 3]>, Vec<String>), Complaint> {
    let config: PopulationConfig =
        serde_json::from_value(json!({ "clients": clients, "device": device, "availability": availability })).unwrap();
    let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let training = LocalTraining::new(1, 4, &sgd).unwrap();
    let work = Work { data_sizes: None, training: &training, payload_bytes: 1_000_000 };
    let population = config.build(&work, &Streams::new(1))?;
    let of = |client: usize| {
        let client = ClientId::from_index(client);
        let [download, compute] = [Phase::Download, Phase::Compute].map(|phase| population.law(client, phase).mean());
        [
            download,
            compute,
            population.availability().cursors(&Streams::new(1)).stretch(client, Default::default()).until.seconds(),
        ]
    };
    Ok(((0..clients).map(of).collect(), population.notes().to_vec()))
}

fn device(speeds: &NamedTempFile, links: &NamedTempFile, key: Option<&str>) -> Value {
    let mut table = json!({ "file": speeds.path(), "column": "speed" });
    let mut link = json!({ "file": links.path() });
    if let Some(key) = key {
        table["key"] = key.into();
        link["key"] = key.into();
    }
    json!({ "samples_per_second": { "table": table }, "downlink": { "trace": link }, "uplink": "1 Mbit/s" })
}

#[test]
fn files_are_joined_by_name_whatever_the_order_of_their_rows() {
    let speeds = [file("phone,speed\nb,2\nc,4\na,1\n"), file("phone,speed\na,1\nb,2\nc,4\n")];
    let links = [
        file("phone,time_s,mbit_per_s\nc,0,2\na,0,8\nb,0,4\n"),
        file("phone,time_s,mbit_per_s\nb,0,4\nc,0,2\na,0,8\n"),
    ];
    let there = [
        file("phone,start_s,end_s\nc,0,30\nb,0,20\na,0,10\nc,90,100\n"),
        file("phone,start_s,end_s\na,0,10\nb,0,20\nc,0,30\nc,90,100\n"),
    ];
    // Download of 8 Mbit, one example, and the end of the first stretch: of a, b and c.
    let expected = [[1.0, 1.0, 10.0], [2.0, 0.5, 20.0], [4.0, 0.25, 30.0]];
    for (speeds, (links, there)) in speeds.iter().zip(links.iter().zip(&there)) {
        let trace = json!({ "trace": { "file": there.path(), "key": "phone" } });
        let (found, notes) = population(device(speeds, links, Some("phone")), trace, 3).unwrap();
        assert_eq!((found, notes), (expected.to_vec(), Vec::new()));
    }
    // Clients beyond the names begin again, and this is said of each file.
    let trace = json!({ "trace": { "file": there[0].path(), "key": "phone" } });
    let (found, notes) = population(device(&speeds[0], &links[0], Some("phone")), trace, 4).unwrap();
    assert_eq!(found[3], expected[0]);
    let repeated =
        |file: &NamedTempFile, what: &str| format!("{}: 3 {what} for 4 clients, repeated", file.path().display());
    let expected = [repeated(&speeds[0], "rows"), repeated(&links[0], "traces"), repeated(&there[0], "traces")];
    assert_eq!(notes, expected);
}

#[test]
fn names_that_do_not_join_are_refused() {
    let always = || json!("always");
    let links = file("phone,time_s,mbit_per_s\na,0,8\nb,0,4\n");
    for (rows, path, says) in [
        (
            "a,1\nb,2\na,3\n",
            "population.device.samples_per_second",
            "4: column \"phone\": found \"a\"; expected each name once",
        ),
        ("a,1\n,2\n", "population.device.samples_per_second", "3: column \"phone\": found \"\"; expected a name"),
        ("a,1\n", "population.device.downlink", "found \"b\" in the column of the key of"),
        ("a,1\nb,2\nc,3\n", "population.device.downlink", "found no \"c\" in the column of the key of"),
    ] {
        let speeds = file(&format!("phone,speed\n{rows}"));
        let error = population(device(&speeds, &links, Some("phone")), always(), 2).unwrap_err();
        assert!(error.path == path && error.message.contains(says), "{error}\nshould say {says}");
    }
    let speeds = file("phone,speed\na,1\nb,2\n");
    let error = population(device(&speeds, &links, Some("handset")), always(), 2).unwrap_err();
    assert!(error.message.contains("there is no \"handset\""), "{error}");
}

#[test]
fn what_the_order_of_rows_decides_is_said() {
    let (speeds, links) = (file("phone,speed\na,1\nb,2\n"), file("trace,time_s,mbit_per_s\na,0,8\nb,0,4\n"));
    let (_, notes) = population(device(&speeds, &links, None), json!("always"), 2).unwrap();
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(note.contains("joined to clients by the order of the rows; a key = "), "{note}");
    // One file alone is joined to nothing.
    let device = json!({ "samples_per_second": { "table": { "file": speeds.path(), "column": "speed" } },
        "downlink": "8 Mbit/s", "uplink": "1 Mbit/s" });
    let (_, notes) = population(device, json!("always"), 2).unwrap();
    assert_eq!(notes, Vec::<String>::new());
}
