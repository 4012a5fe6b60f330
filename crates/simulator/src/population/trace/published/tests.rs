//! Small made files in the forms of the publishers, and what becomes of them.

use super::*;
use crate::population::trace::flhetbench;
use std::fs;
use tempfile::TempDir;

/// Writes files, and converts them.
fn converted(kind: &str, files: &[(&str, &str)]) -> Result<Converted, DataError> {
    let folder = TempDir::new().unwrap();
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, text)| (folder.path().join(name), text))
        .map(|(path, text)| {
            fs::write(&path, text).unwrap();
            path
        })
        .collect();
    convert(kind, &paths).unwrap()
}

#[test]
fn each_converter_makes_tables() {
    let timers = r#"{"7": {"isSuccess": true, "trace_start": 100.0, "trace_end": 200.0, "ready_time": [[110.0, 120.0], [130.0, 130.0]]},
        "3": {"isSuccess": false, "trace_start": null, "trace_end": null, "ready_time": []}}"#;
    let windows = "device,valid,trace_start_s,trace_end_s,n_intervals\n7,1,100,200,2\n3,0,,,0\n";
    let behaviour =
        r#"{"1": {"duration": 50, "inactive": [20, 90], "finish_time": 80, "active": [10, 70], "model": "x"}}"#;
    let log = r#"{"a": {"model": "x", "messages": "2020-01-02 00:00:10\twifi\n2020-01-02 00:00:11\tbattery_charged_on\n2020-01-02 00:00:12\tscreen_lock\n2020-01-02 00:01:00\tscreen_unlock\n"}}"#;
    let latencies = r#"[{"Phone Model": "A, 1", "Vit Latency": null, "ResNet Latency": 54.22, "ResNet STD": 0.343}]"#;
    let listed = r#"[{"id": "x", "tcp_speed_results": [100.0, 300.0]}, {"tcp_speed_results": []}]"#;
    let named = r#"{"p": {"tcp_speed_results": [100.5]}}"#;
    let capacity =
        r#"{"1": {"computation": 50.0, "communication": 5000.0}, "2": {"computation": 0.0, "communication": 1.0}}"#;
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 8] = [
        ("flhetbench", &[("t.json", timers)], &["device,start_s,end_s\n7,110,120\n7,130,130\n", windows]),
        (
            "fedscale-availability",
            &[("b.json", behaviour)],
            &[
                "device,start_s,end_s\n1,10,20\n1,70,80\n",
                "device,valid,trace_start_s,trace_end_s,n_intervals\n1,1,0,80,2\n",
            ],
        ),
        (
            "flash",
            &[("s.json", log)],
            &["device,start_s,end_s\na,12,60\n", "device,valid,trace_start_s,trace_end_s,n_intervals\na,1,10,60,1\n"],
        ),
        (
            "flhetbench-latency",
            &[("l.json", latencies)],
            &["phone_model,resnet_latency,resnet_std,vit_latency,vit_std\n\"A, 1\",54.22,0.343,,\n"],
        ),
        ("mobiperf", &[("m.json", listed)], &["test,kbit_per_s\n0,200\n"]),
        ("mobiperf", &[("m.json", named)], &["test,kbit_per_s\np,100.5\n"]),
        // 1000 ms over three times 50 ms.
        (
            "fedscale-capacity",
            &[("c.json", capacity)],
            &["device,samples_per_second,kbit_per_s\n1,6.666666666666667,5000\n"],
        ),
        (
            "bandwidth",
            &[("bus.log", "0 1.5\n1 2\n1 3\n"), ("dead", "0 0\n")],
            &["trace,time_s,mbit_per_s\nbus,0,1.5\nbus,1,2\n"],
        ),
    ];
    for (kind, files, expected) in cases {
        let made = converted(kind, files).unwrap();
        let tables: Vec<&str> = made.tables.iter().map(|(_, text)| &**text).collect();
        assert_eq!(tables, expected, "{kind}");
        assert!(made.tables.iter().all(|(name, _)| made.settings.contains(name)), "{kind}");
    }
    let known = |published: &&Published| published.is_converted;
    assert!(ALL.iter().filter(known).all(|published| cases.iter().any(|(kind, ..)| *kind == published.kind)));
    assert!(convert("flash-ready", &[]).is_none());
}

#[test]
fn what_is_made_is_read() {
    let folder = TempDir::new().unwrap();
    let timers = r#"{"7": {"isSuccess": true, "trace_start": 100.0, "trace_end": 200.0, "ready_time": [[110.0, 250.0], [105.0, 112.0]]}}"#;
    let path = folder.path().join("cached_timers.json");
    fs::write(&path, timers).unwrap();
    let made = convert("flhetbench", &[path]).unwrap().unwrap();
    assert_eq!(made.notes.len(), 2, "{:?}", made.notes);
    for (name, text) in &made.tables {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let read = flhetbench::read(&folder.path().join("intervals.csv"), &folder.path().join("windows.csv")).unwrap();
    assert_eq!(read.value.len(), 1);
    assert!(read.notes.is_empty(), "{:?}", read.notes);
}

#[test]
fn another_form_is_named_with_its_line() {
    for (kind, text, part) in [
        ("flash", "{\"a\":\n 3}", "2: is not FLASH's state_traces.json"),
        ("flhetbench", "[]", "an object with an entry for each device"),
        ("fedscale-availability", "{\"1\": {\"active\": []}}", "missing field"),
        ("fedscale-capacity", "\u{80}\u{3}}q", "1: is not FedScale's client_device_capacity as JSON"),
        ("mobiperf", "[{}]", "tcp_speed_results"),
        ("bandwidth", "0 1\n1 x\n", "f:2: expected two numbers"),
        ("bandwidth", "1 1\n0 1\n", "f:2: is before the line above it"),
        ("bandwidth", "1 -1\n", "a rate of at least 0"),
    ] {
        let error = converted(kind, &[("f", text)]).unwrap_err().to_string();
        assert!(error.contains(part), "{kind}: {error}");
    }
}
