//! Published speeds: of training, of links, of links over time.
//!
//! # Definition
//! FLHetBench's latencies become the columns `phone_model`, `resnet_latency`, `resnet_std`, `vit_latency`, `vit_std`,
//! empty where nothing was measured. A MobiPerf test becomes its mean rate. A trace of throughput keeps its points; its
//! name is that of its file.
//!
//! FedScale gives a client `computation`, the milliseconds of an inference, and `communication`, a bandwidth. In its
//! `client_metadata.py` a training step of a sample takes three times the inference, and a transfer takes its kilobits
//! over the bandwidth; so the samples per second are `1000/(3·computation)` and the bandwidth is in kbit/s. One
//! bandwidth serves both ways.

use super::{Converted, Entries, bytes, field, json, notes};
use fedgenie_learning::data::DataError;
use serde::Deserialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Latency {
    #[serde(rename = "Phone Model")]
    phone: String,
    #[serde(rename = "ResNet Latency")]
    resnet: Option<f64>,
    #[serde(rename = "ResNet STD")]
    resnet_sd: Option<f64>,
    #[serde(rename = "Vit Latency")]
    vit: Option<f64>,
    #[serde(rename = "Vit STD")]
    vit_sd: Option<f64>,
}

#[derive(Deserialize)]
struct Test {
    tcp_speed_results: Vec<f64>,
}

/// Tests in a list, or by name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tests {
    Listed(Vec<Test>),
    Named(Entries<Test>),
}

#[derive(Deserialize)]
struct Capacity {
    computation: f64,
    communication: f64,
}

/// FLHetBench's training latencies.
pub fn latency(files: &[PathBuf]) -> Result<Converted, DataError> {
    let mut table = "phone_model,resnet_latency,resnet_std,vit_latency,vit_std\n".to_owned();
    for path in files {
        let phones: Vec<Latency> = json(path, "FLHetBench's training_latency.json")?;
        for phone in phones {
            let numbers = [phone.resnet, phone.resnet_sd, phone.vit, phone.vit_sd];
            let numbers = numbers.map(|number| number.map_or_else(String::new, |number| number.to_string()));
            let _ = writeln!(table, "{},{}", field(&phone.phone), numbers.join(","));
        }
    }
    let settings = "[population.device.samples_per_second.table]\nfile = \"latency.csv\"\ncolumn = \"resnet_latency\"\nunit = \"ms\"\n\
                    per = 32\nmissing = \"drop\"\n";
    Ok(Converted { tables: vec![("latency.csv", table)], notes: Vec::new(), settings })
}

/// MobiPerf's tests of throughput.
pub fn mobiperf(files: &[PathBuf]) -> Result<Converted, DataError> {
    let (mut table, mut empty) = ("test,kbit_per_s\n".to_owned(), 0);
    for path in files {
        let named = match json(path, "a list or an object of MobiPerf's tests, with tcp_speed_results")? {
            Tests::Listed(tests) => {
                tests.into_iter().enumerate().map(|(index, test)| (index.to_string(), test)).collect()
            }
            Tests::Named(tests) => tests.0,
        };
        for (name, test) in named {
            let rates = test.tcp_speed_results;
            let mean = rates.iter().sum::<f64>() / rates.len() as f64;
            if !mean.is_finite() || rates.iter().any(|rate| *rate <= 0.0) {
                empty += 1;
                continue;
            }
            let _ = writeln!(table, "{},{mean}", field(&name));
        }
    }
    let notes = notes([(empty, "tests without samples, or with one that is not above 0, were dropped")]);
    let settings =
        "[population.device.downlink.table]\nfile = \"links.csv\"\ncolumn = \"kbit_per_s\"\nunit = \"kbit/s\"\n";
    Ok(Converted { tables: vec![("links.csv", table)], notes, settings })
}

/// FedScale's capacities.
pub fn fedscale(files: &[PathBuf]) -> Result<Converted, DataError> {
    let (mut table, mut without) = ("device,samples_per_second,kbit_per_s\n".to_owned(), 0);
    for path in files {
        let clients: Entries<Capacity> = json(path, "FedScale's client_device_capacity as JSON")?;
        for (name, Capacity { computation, communication }) in clients.0 {
            let per_second = 1000.0 / (3.0 * computation);
            if !(per_second > 0.0 && per_second.is_finite() && communication > 0.0) {
                without += 1;
                continue;
            }
            let _ = writeln!(table, "{},{per_second},{communication}", field(&name));
        }
    }
    let notes = notes([(without, "clients whose computation or communication is not above 0 were dropped")]);
    let settings = "[population.device]\nsamples_per_second = { table = { file = \"devices.csv\", column = \"samples_per_second\" } }\n\
                    downlink = { table = { file = \"devices.csv\", column = \"kbit_per_s\", unit = \"kbit/s\" } }\n\
                    uplink = { table = { file = \"devices.csv\", column = \"kbit_per_s\", unit = \"kbit/s\" } }\n";
    Ok(Converted { tables: vec![("devices.csv", table)], notes, settings })
}

/// The name of a trace: its file's, without an ending such as `.log` or `.gz`.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.strip_suffix(".txt").or_else(|| name.strip_suffix(".log")).unwrap_or(name).to_owned()
}

/// Traces of throughput, a file each.
pub fn bandwidth(files: &[PathBuf]) -> Result<Converted, DataError> {
    let mut table = "trace,time_s,mbit_per_s\n".to_owned();
    let (mut same, mut still) = (0, 0);
    for path in files {
        let text = String::from_utf8(bytes(path)?);
        let wrong = |line: usize, message: &str| DataError::Table {
            path: path.clone(),
            line: line as u64,
            message: message.to_owned(),
        };
        let text = text.map_err(|_| wrong(1, "is no text"))?;
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (line, words) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let numbers: Vec<f64> = words.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [time, rate] = numbers[..] else {
                return Err(wrong(line + 1, "expected two numbers: seconds and Mbit/s"));
            };
            if !time.is_finite() || !rate.is_finite() || rate < 0.0 {
                return Err(wrong(line + 1, "expected a time, and a rate of at least 0"));
            }
            match points.last() {
                Some((before, _)) if time < *before => return Err(wrong(line + 1, "is before the line above it")),
                Some((before, _)) if time == *before => same += 1,
                _ => points.push((time, rate)),
            }
        }
        if points.iter().all(|(_, rate)| *rate == 0.0) {
            still += 1;
            continue;
        }
        let name = field(&name_of(path));
        for (time, rate) in points {
            let _ = writeln!(table, "{name},{time},{rate}");
        }
    }
    let notes = notes([
        (same, "points at the time of the one above them were dropped"),
        (still, "traces without a rate above 0 were dropped"),
    ]);
    let settings = "[population.device.downlink.trace]\nfile = \"links.csv\"\n";
    Ok(Converted { tables: vec![("links.csv", table)], notes, settings })
}
