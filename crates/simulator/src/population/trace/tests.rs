//! Good files, and every defect of a file.

use super::link::{LinkFormat, LinkOptions};
use super::table::{Missing, Selection};
use super::*;
use fedgenie_core::law::Law;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::Write;
use tempfile::NamedTempFile;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

const S: u64 = 1_000_000_000;

fn seconds(traces: &AvailabilityTraces, trace: usize) -> Vec<(u64, u64)> {
    traces.intervals(trace).map(|(start, end)| (start.0 / S, end.0 / S)).collect()
}

/// The error names the file, and goes on with `says`.
fn refused<T: std::fmt::Debug>(path: &Path, result: Result<T, fedgenie_learning::data::DataError>, says: &str) {
    let message = result.unwrap_err().to_string();
    let rest = message.strip_prefix(&format!("{}:", path.display()));
    assert!(rest.is_some_and(|rest| rest.contains(says)), "{message}\nshould say {says}");
}

#[test]
fn our_intervals_are_read() {
    let good = file("start_s,client,end_s\n10,b,20\n0.5,a,1.5\n\n20,b,30\n3,a,4\n");
    let imported = intervals::read(good.path(), None).unwrap();
    assert_eq!(imported.value.len(), 2);
    assert_eq!(seconds(&imported.value, 0), [(10, 30)], "touching intervals are one");
    assert_eq!(imported.value.intervals(1).next(), Some((Span(S / 2), Span(3 * S / 2))));
    assert_eq!(imported.value.window(1), Span(30 * S));
    assert_eq!(imported.defects, Defects { records: 4, ..Defects::default() });
    let longer = intervals::read(good.path(), Some(Span(40 * S))).unwrap();
    assert_eq!(longer.value.window(0), Span(40 * S));
    let mut packed = NamedTempFile::new().unwrap();
    let mut encoder = GzEncoder::new(&mut packed, Compression::fast());
    encoder.write_all(&std::fs::read(good.path()).unwrap()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(intervals::read(packed.path(), None).unwrap().value, imported.value);
}

#[test]
fn our_intervals_are_refused_with_file_and_line() {
    let head = "client,start_s,end_s\n";
    for (rows, says) in [
        ("a,0,10\na,5,20\n", "3: column \"start_s\": found \"5\"; expected a time not before 10"),
        ("a,10,20\na,0,5\n", "3: column \"start_s\": found \"0\"; expected a time after 10, where"),
        ("a,0,10\nb,5,20\na,9,12\n", "4: column \"start_s\": found \"9\"; expected a time not before 10"),
        ("a,5,5\n", "2: column \"end_s\": found \"5\"; expected a time after start_s, 5"),
        ("a,5,4\n", "2: column \"end_s\": found \"4\"; expected a time after start_s, 5"),
        ("a,-5,4\n", "2: column \"start_s\": found \"-5\"; expected a number of seconds of at least 0"),
        ("a,NaN,4\n", "2: column \"start_s\": found \"NaN\"; expected a finite number"),
        ("a,0,inf\n", "2: column \"end_s\": found \"inf\"; expected a finite number"),
        ("a,0,1e30\n", "2: column \"end_s\": found \"1e30\"; expected a number of seconds"),
        ("a,0,x\n", "2: column \"end_s\": found \"x\"; expected a finite number"),
        (",0,1\n", "2: column \"client\": found \"\"; expected the name"),
        ("a,0,1\na,2\n", "3: found 2 fields; the header has 3 columns"),
        ("a,0,61\n", "2: column \"end_s\": found \"61\"; expected a time within the window of 60 s"),
        ("", "1: has a header only"),
    ] {
        let bad = file(&format!("{head}{rows}"));
        refused(bad.path(), intervals::read(bad.path(), Some(Span(60 * S))), says);
    }
    for (text, says) in [
        ("", "1: is empty"),
        ("client,start_s\na,0\n", "1: found the columns client, start_s; expected client, start_s, end_s: there"),
        ("client,start_s,end_s,colour\na,0,1,red\n", "1: found the column \"colour\"; expected only client"),
        ("client,start_s,end_s,end_s\na,0,1,1\n", "1: there are two columns \"end_s\""),
    ] {
        let bad = file(text);
        refused(bad.path(), intervals::read(bad.path(), None), says);
    }
    refused(Path::new("/nowhere/x.csv"), intervals::read(Path::new("/nowhere/x.csv"), None), "there is no such file");
}

#[test]
fn a_gzip_bomb_is_not_unpacked() {
    let mut packed = NamedTempFile::new().unwrap();
    let mut encoder = GzEncoder::new(&mut packed, Compression::fast());
    let zeros = vec![b'0'; 1 << 24];
    (0..4).for_each(|_| encoder.write_all(&zeros).unwrap());
    encoder.finish().unwrap();
    refused(packed.path(), intervals::read(packed.path(), None), "a row has more than");
}

#[test]
fn flhetbench_is_read_and_refused() {
    let windows =
        file("device,valid,trace_start_s,trace_end_s,n_intervals\n3,1,100000,200000,3\n4,0,,,0\n1,1,0,86400,0\n");
    let good = file("device,start_s,end_s\n3,100010,100020\n3,100030,100030\n3,199999,200000\n");
    let imported = flhetbench::read(good.path(), windows.path()).unwrap();
    assert_eq!(imported.value.len(), 2);
    assert_eq!(seconds(&imported.value, 0), [(10, 20), (99_999, 100_000)]);
    assert_eq!(seconds(&imported.value, 1), []);
    assert_eq!(imported.value.time_of_day(0), Span(13_600 * S));
    let expected = Defects { records: 3, zero_length: 1, invalid_devices: 1, empty_devices: 1, ..Defects::default() };
    assert_eq!(imported.defects, expected);
    assert_eq!(imported.notes.len(), 3);
    assert!(imported.notes[0].ends_with(": 1 intervals of no length were dropped"), "{:?}", imported.notes);
    for (rows, says) in [
        ("4,1,2\n", "2: column \"device\": found \"4\"; expected a device that"),
        ("9,1,2\n", "2: column \"device\": found \"9\"; expected a device that"),
        ("3,99999,100020\n", "2: column \"start_s\": found \"99999\"; expected a time within the device's window"),
        ("3,199999,200001\n", "2: column \"end_s\": found \"200001\"; expected a time within"),
        ("3,100020,100010\n", "2: column \"end_s\": found \"100010\"; expected a time not before start_s"),
        (
            "3,100010,100020\n3,100015,100030\n",
            "3: column \"start_s\": found \"100015\"; expected a time not before 100020",
        ),
        ("3,100010,100020\n3,100000,100005\n", "3: column \"start_s\": found \"100000\""),
    ] {
        let bad = file(&format!("device,start_s,end_s\n{rows}"));
        refused(bad.path(), flhetbench::read(bad.path(), windows.path()), says);
    }
    let short = file("device,start_s,end_s\n3,100010,100020\n");
    refused(windows.path(), flhetbench::read(short.path(), windows.path()), "2: device 3 has n_intervals = 3, but");
    for (rows, says) in [
        ("3,2,0,1,0\n", "2: column \"valid\": found \"2\""),
        ("3,1,5,5,0\n", "2: column \"trace_end_s\": found \"5\"; expected a time after"),
        ("3,1,5,,0\n", "2: column \"trace_end_s\": found \"\""),
        ("3,1,0,5,-1\n", "2: column \"n_intervals\": found \"-1\""),
        ("3,1,0,5,0\n3,1,0,5,0\n", "3: column \"device\": found \"3\"; expected each device once"),
        ("3,0,,,0\n", "1: no device is valid"),
    ] {
        let bad = file(&format!("device,valid,trace_start_s,trace_end_s,n_intervals\n{rows}"));
        let none = file("device,start_s,end_s\n");
        refused(bad.path(), flhetbench::read(none.path(), bad.path()), says);
    }
}

#[test]
fn each_defect_of_flash_is_treated_and_counted() {
    let csv =
        file("device,start_s,end_s\n0,10,20\n0,30,25\n0,-5,40\n0,15,22\n0,22,22\n0,2,4\n1,7,7\n2,100,110\n0,21,23\n");
    let json = file(
        r#" {"a": [[10, 20], [30, 25], [-5, 40.0], [15, 22], [22, 22], [2, 4], [21, 23]], "b": [[7, 7]], "n": [],
            "c": [[100, 110]]}"#,
    );
    let expected = Defects {
        records: 9,
        zero_length: 2,
        reversed: 1,
        negative: 1,
        unsorted: 1,
        overlapping: 2,
        empty_devices: 1,
        ..Defects::default()
    };
    let from_csv = flash::read(csv.path(), None).unwrap();
    assert_eq!(from_csv.defects, expected);
    assert_eq!(from_csv.value.len(), 2);
    assert_eq!(seconds(&from_csv.value, 0), [(2, 4), (10, 23)]);
    assert_eq!(from_csv.value.window(0), Span(110 * S));
    assert_eq!(from_csv.notes.len(), 6, "{:?}", from_csv.notes);
    let from_json = flash::read(json.path(), None).unwrap();
    assert_eq!(from_json.defects, Defects { empty_devices: 2, ..expected });
    assert_eq!(from_json.value, from_csv.value);
    refused(csv.path(), flash::read(csv.path(), Some(Span(50 * S))), "a span ends at 110 s");
    for (text, says) in [
        ("device,start_s,end_s\n0,1,nan\n", "2: column \"end_s\": found \"nan\""),
        ("device,start_s,end_s\n0,1,1\n", "1: has no span of time"),
        ("{\"a\": [[1, 2, 3]]}", "device \"a\": span 1 is not a pair"),
        ("{\"a\": [[1, 2], [1, \"x\"]]}", "device \"a\": span 2 is not a pair"),
        ("{\"a\": 5}", "device \"a\": span 1"),
        ("{\n\"a\": [[1, 2]\n", "3: is no JSON object of devices"),
    ] {
        let bad = file(text);
        refused(bad.path(), flash::read(bad.path(), None), says);
    }
}

fn ours<'a>() -> LinkOptions<'a> {
    LinkOptions { format: LinkFormat::Csv, set: None, scale: 1.0, wrap: true }
}

#[test]
fn links_are_read_and_refused() {
    let good = file("trace,time_s,mbit_per_s\nx,100,8\nx,102,0\nx,103,2\ny,5,1.5\n");
    let imported = link::read(good.path(), &ours()).unwrap();
    let [x, y] = &imported.value[..] else { panic!("two traces") };
    // The last rate holds for a second, as the one before it.
    assert_eq!((x.window(), x.mean()), (Span(4 * S), 18e6 / 4.0));
    assert_eq!(
        y.transfer(fedgenie_core::time::VirtualTime(9 * S), 3e6),
        Some(fedgenie_core::time::VirtualTime(11 * S))
    );
    let sets = file("set,trace,time_s,mbit_per_s\np,0,0,1\np,0,1,1\nq,0,0,2\nq,0,1,4\n");
    let options = LinkOptions { format: LinkFormat::Bandwidth, set: Some("q"), scale: 0.5, wrap: false };
    let imported = link::read(sets.path(), &options).unwrap();
    assert_eq!((imported.value.len(), imported.value[0].mean(), imported.defects.records), (1, 1.5e6, 2));
    assert_eq!(link::read(sets.path(), &LinkOptions { set: None, ..options }).unwrap().value.len(), 2);
    refused(sets.path(), link::read(sets.path(), &LinkOptions { set: Some("r"), ..options }), "the file has p, q");
    for (rows, says) in [
        ("x,0,1\nx,0,2\n", "3: column \"time_s\": found \"0\"; expected a time after 0"),
        ("x,5,1\nx,4,2\n", "3: column \"time_s\": found \"4\"; expected a time after 5"),
        ("x,0,-1\n", "2: column \"mbit_per_s\": found \"-1\"; expected a rate of at least 0"),
        ("x,0,NaN\n", "2: column \"mbit_per_s\": found \"NaN\"; expected a finite number"),
        ("x,0,0\nx,1,0\ny,0,1\n", "2: trace \"x\" is 0 all the time"),
        ("y,0,1\nx,0,0\n", "3: trace \"x\" is 0 all the time"),
        ("x,0,1\ny,0,1\nx,1,1\n", "4: column \"trace\": found \"x\"; expected a trace's rows to stand together"),
        ("x,0,1e308\nx,1,1\n", "2: trace \"x\": a rate is no finite number"),
        ("", "1: has a header only"),
    ] {
        let bad = file(&format!("trace,time_s,mbit_per_s\n{rows}"));
        refused(bad.path(), link::read(bad.path(), &ours()), says);
    }
    let unknown = file("set,trace,time_s,mbit_per_s\na,x,0,1\n");
    refused(unknown.path(), link::read(unknown.path(), &ours()), "1: found the column \"set\"");
}

#[test]
fn columns_are_read_and_refused() {
    let text = file("model,net,ms\na,resnet,56\nb,vit,300\nc,resnet,0\nd,resnet,\ne,resnet,93.5\n");
    let none = BTreeMap::new();
    let resnet = BTreeMap::from([("net".to_owned(), "resnet".to_owned())]);
    let read = |filter, missing, zero| table::read(text.path(), &Selection { column: "ms", filter, missing, zero });
    let imported = read(&resnet, Missing::Drop, false).unwrap();
    assert_eq!((imported.value, imported.defects.missing, imported.defects.records), (vec![56.0, 93.5], 2, 4));
    assert_eq!(read(&none, Missing::Drop, false).unwrap().value, [56.0, 300.0, 93.5]);
    refused(
        text.path(),
        read(&none, Missing::Error, false),
        "4: column \"ms\": found \"0\"; expected a number above 0",
    );
    refused(text.path(), read(&none, Missing::Error, true), "5: column \"ms\": found \"\"; expected a finite number");
    let lstm = BTreeMap::from([("net".to_owned(), "lstm".to_owned())]);
    refused(text.path(), read(&lstm, Missing::Drop, false), "no row is asked for");
    let selection = Selection { column: "s", filter: &none, missing: Missing::Drop, zero: true };
    refused(
        text.path(),
        table::read(text.path(), &selection),
        "1: found the columns model, net, ms; expected s: there is no \"s\"",
    );
    let negative = file("ms\n-1\n");
    let selection = Selection { column: "ms", ..selection };
    refused(
        negative.path(),
        table::read(negative.path(), &selection),
        "2: column \"ms\": found \"-1\"; expected a number of at least 0",
    );
}

#[test]
fn mobiperf_and_flash_speeds_are_read_and_refused() {
    let good = file("record,model,kbps_0,kbps_1,kbps_2\n0,x,10,20,30\n1,y,5,,\n2,z,6,8\n");
    assert_eq!(mobiperf::read(good.path()).unwrap().value, [20.0, 5.0, 7.0]);
    for (text, says) in [
        ("record,kbps\n0,1\n", "1: there is no column of samples"),
        ("record,kbps_0,kbps_1\n0,,\n", "2: the record has no sample"),
        ("record,kbps_0,kbps_1\n0,,7\n", "2: the record has no sample"),
        ("record,kbps_0,kbps_1,kbps_2\n0,7,,7\n", "2: a sample stands after an empty one"),
        ("record,kbps_0\n0\n", "2: the record has no sample"),
        ("record,kbps_0\n0,1,2\n", "2: found 3 fields; the header has 2 columns"),
        ("record,kbps_0\n0,0\n", "2: found a sample of 0"),
        ("record,kbps_0\n0,nan\n", "2: column \"kbps_0\": found \"nan\""),
        ("record,kbps_0\n", "1: has a header only"),
    ] {
        let bad = file(text);
        refused(bad.path(), mobiperf::read(bad.path()), says);
    }
    let speeds = file(r#"{"u": {"down_u": 100, "down_sigma": 5, "up_u": 50.5, "up_sigma": 1}}"#);
    let down = flash_speeds::read(speeds.path(), flash_speeds::Direction::Down).unwrap().value;
    assert!((down[0].mean() - 100.0).abs() < 1e-9);
    assert!(
        (flash_speeds::read(speeds.path(), flash_speeds::Direction::Up).unwrap().value[0].mean() - 50.5).abs() < 1e-9
    );
    for (text, says) in [
        ("{}", "1: has no user"),
        ("[", "1: is no JSON object of users"),
        (r#"{"u": {"down_u": 100}}"#, "1: user \"u\": down_sigma is null; expected a number above 0"),
        (r#"{"u": {"down_u": -1, "down_sigma": 5}}"#, "1: user \"u\": down_u is -1"),
    ] {
        let bad = file(text);
        refused(bad.path(), flash_speeds::read(bad.path(), flash_speeds::Direction::Down), says);
    }
}
