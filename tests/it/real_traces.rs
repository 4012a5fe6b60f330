//! The published device traces, where they are: their counts as their provenance states them, and the dropped records.
//!
//! Runs where the data is: `FEDGENIE_DATA`, or `../shared/data`, is a folder that contains `fl-traces/` and
//! `bandwidth/`.

use fedgenie::law::Law;
use fedgenie::population::link::LinkTrace;
use fedgenie::population::trace::link::{LinkFormat, LinkOptions};
use fedgenie::population::trace::table::{Missing, Selection};
use fedgenie::population::trace::{
    AvailabilityTraces, Defects, flash, flash_speeds, flhetbench, link, mobiperf, table,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The folder of a data set, or none, with a line that says so.
fn folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FEDGENIE_DATA").map_or_else(|| PathBuf::from("../shared/data"), PathBuf::from);
    let folder = root.join(name);
    if folder.is_dir() {
        Some(folder)
    } else {
        println!("skipped: there is no {}; set FEDGENIE_DATA to the folder that contains {name}/", folder.display());
        None
    }
}

/// The share of its window that a trace is there.
fn share(traces: &AvailabilityTraces, trace: usize) -> f64 {
    let there: f64 = traces.intervals(trace).map(|(start, end)| (end.0 - start.0) as f64).sum();
    there / traces.window(trace).0 as f64
}

#[test]
fn flhetbench_availability_is_as_its_provenance_says() {
    let Some(folder) = folder("fl-traces/flhetbench") else { return };
    let windows = folder.join("availability_windows.csv.gz");
    let imported = flhetbench::read(&folder.join("availability_intervals.csv.gz"), &windows).unwrap();
    let traces = &imported.value;
    let expected =
        Defects { records: 14_139, zero_length: 844, invalid_devices: 290, empty_devices: 6, ..Defects::default() };
    assert_eq!((traces.len(), imported.defects), (710, expected));
    imported.notes.iter().for_each(|note| println!("{note}"));
    let days = |trace| traces.window(trace).0 / 86_400_000_000_000;
    assert_eq!((0..710).filter(|&trace| days(trace) == 6).count(), 283);
    assert_eq!((0..710).filter(|&trace| days(trace) == 5).count(), 166);
    let mut shares: Vec<f64> = (0..710).map(|trace| share(traces, trace)).collect();
    let mean = shares.iter().sum::<f64>() / 710.0;
    shares.sort_by(f64::total_cmp);
    println!(
        "share of time there: quartiles {:.4} {:.4} {:.4}, mean {mean:.4}, max {:.4}",
        shares[177], shares[355], shares[532], shares[709]
    );
    for (found, stated) in
        [(shares[177], 0.013), (shares[355], 0.055), (shares[532], 0.131), (mean, 0.095), (shares[709], 0.78)]
    {
        assert!((found - stated).abs() < 1e-3 + 0.01 * stated, "{found}, stated {stated}");
    }
}

#[test]
fn flash_availability_is_cleaned_as_documented() {
    let Some(folder) = folder("fl-traces/flash") else { return };
    for (name, devices, traces, defects) in
        [("strict", 3_477, 2_862, [38_116, 6_089, 4, 311, 92]), ("loose", 3_454, 2_836, [34_870, 5_656, 4, 306, 66])]
    {
        let csv = flash::read(&folder.join(format!("ready_{name}.csv.gz")), None).unwrap();
        let json = flash::read(&folder.join(format!("ready_{name}.json.gz")), None).unwrap();
        println!("{name}: {:?} {:?}", json.defects, csv.defects);
        assert_eq!(csv.value, json.value, "the table is the original");
        let [records, zero_length, reversed, negative, overlapping] = defects;
        let expected = Defects {
            records,
            zero_length,
            reversed,
            negative,
            overlapping,
            unsorted: 38,
            empty_devices: devices - traces,
            ..Defects::default()
        };
        assert_eq!((json.value.len(), json.defects), (traces, expected));
        assert_eq!(Defects { empty_devices: devices - traces, ..csv.defects }, expected);
        // 37,801 / 34,560 with 0 <= start <= end.
        let kept = records - reversed - negative;
        assert_eq!(kept, if name == "strict" { 37_801 } else { 34_560 });
    }
}

#[test]
fn flash_speeds_are_as_their_provenance_says() {
    let Some(folder) = folder("fl-traces/flash") else { return };
    let file = folder.join("speed_distri.json");
    for (direction, low, high) in
        [(flash_speeds::Direction::Down, 2_370.0, 17_333.0), (flash_speeds::Direction::Up, 431.0, 6_635.0)]
    {
        let speeds = flash_speeds::read(&file, direction).unwrap().value;
        assert_eq!(speeds.len(), 19);
        let medians: Vec<f64> = speeds.iter().map(|law| law.quantile(0.5)).collect();
        let least = medians.iter().copied().fold(f64::INFINITY, f64::min);
        let most = medians.iter().copied().fold(0.0, f64::max);
        println!("{direction:?}: medians {least:.0} to {most:.0}");
        // Truncation at 0 moves medians up a little.
        assert!(least >= low && least < 1.1 * low && (most / high - 1.0).abs() < 0.05, "{least} {most}");
    }
}

#[test]
fn training_latencies_are_as_their_provenance_says() {
    let Some(folder) = folder("fl-traces/flhetbench") else { return };
    let file = folder.join("training_latency.csv");
    let read = |column, missing| {
        let filter = BTreeMap::new();
        table::read(&file, &Selection { column, filter: &filter, missing, zero: false })
    };
    let resnet = read("resnet_latency", Missing::Drop).unwrap();
    assert_eq!((resnet.defects.records, resnet.defects.missing, resnet.value.len()), (997, 19, 978));
    let error = read("resnet_latency", Missing::Error).unwrap_err().to_string();
    assert!(error.contains("training_latency.csv:") && error.contains("expected a number above 0"), "{error}");
    assert_eq!(read("vit_latency", Missing::Drop).unwrap().value.len(), 21);
    let mut sorted = resnet.value;
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted[977], 15_070.0);
    // The stated percentiles include the zeros.
    let with_zeros: Vec<f64> = std::iter::repeat_n(0.0, 19).chain(sorted).collect();
    for (percent, stated) in [(5, 56.0), (25, 93.0), (50, 166.0), (75, 301.0), (95, 556.0)] {
        let found = with_zeros[percent * 997 / 100];
        assert!((found - stated).abs() <= 0.02 * stated + 1.0, "{percent} %: {found}, stated {stated}");
    }
}

#[test]
fn mobiperf_records_are_as_their_provenance_says() {
    let Some(folder) = folder("fl-traces/flhetbench") else { return };
    let mut means = mobiperf::read(&folder.join("mobiperf_tcp_records.csv")).unwrap().value;
    assert_eq!(means.len(), 168);
    means.sort_by(f64::total_cmp);
    let median = (means[83] + means[84]) / 2.0;
    println!("median of means {median:.0} kbit/s");
    assert!((median / 41_900.0 - 1.0).abs() < 2e-3, "{median}");
}

#[test]
fn throughput_traces_are_as_their_provenance_says() {
    let Some(folder) = folder("bandwidth") else { return };
    let file = folder.join("traces.csv.gz");
    let read = |set| {
        let options = LinkOptions { format: LinkFormat::Bandwidth, set, scale: 1.0, wrap: true };
        link::read(&file, &options)
    };
    let all = read(None).unwrap();
    assert_eq!(all.value.len(), 1_380);
    let mut points = 0;
    for (set, traces, rows) in [
        ("hsdpa_3g", 80, 16_475),
        ("fcc_hsdpa_train", 127, 78_997),
        ("fcc_hsdpa_test", 310, 33_092),
        ("oboe", 428, 20_972),
        ("puffer_2022_02_18", 435, 427_469),
    ] {
        let imported = read(Some(set)).unwrap();
        assert_eq!((imported.value.len(), imported.defects.records), (traces, rows), "{set}");
        points += rows;
        let mean = imported.value.iter().map(LinkTrace::mean).sum::<f64>() / traces as f64;
        println!("{set}: mean over traces of the mean over time {:.3} Mbit/s", mean / 1e6);
        assert!((0.5e6..4e6).contains(&mean), "{set}: {mean}");
    }
    assert_eq!(all.defects.records, points);
    let error = read(Some("lte")).unwrap_err().to_string();
    assert!(error.contains("there is no row of the set \"lte\"; the file has fcc_hsdpa_test"), "{error}");
}
