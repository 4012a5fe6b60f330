//! Published traces: where they are, and converters of their files into tables that scenarios read.
//!
//! # Definition
//! [`ALL`] has an entry for each set. [`convert`] makes of the files of one, as their publishers wrote them, CSV tables
//! in the formats of this folder's importers; times and rates stay as they are, and nothing is drawn. Sets that need
//! no converter are read by a scenario as they are.
//!
//! # Trust
//! None: a file is unpacked up to [`TEXT_MAX`] bytes, and as far as there is memory. Pickles are programs, and are not
//! read: their publishers' language writes them as JSON first.

mod availability;
mod numbers;

use super::TEXT_MAX;
use fedgenie_learning::data::DataError;
use fedgenie_learning::data::bytes::ByteReader;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

/// A published set of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// The name of its converter, or of the format that reads it as it is.
    pub kind: &'static str,
    /// Whether [`convert`] knows it.
    pub is_converted: bool,
    /// The measured quantity, and of how many devices.
    pub content: &'static str,
    /// Authors, title, place and year; DOI where there is one.
    pub source: &'static str,
    /// Where the files are.
    pub address: &'static str,
    /// The terms of use, as far as they are stated there.
    pub licence: &'static str,
    /// The files.
    pub files: &'static str,
}

const FLASH_PAPER: &str = "C. Yang, Q. Wang, M. Xu, Z. Chen, K. Bian, Y. Liu, X. Liu, \"Characterizing Impacts of Heterogeneity in \
                           Federated Learning upon Large-Scale Smartphone Data\", WWW 2021, doi:10.1145/3442381.3449851";
const FLASH_TERMS: &str = "BSD-2-Clause for the repository; asks for citation";
const FLASH: &str = "https://github.com/PKU-Chengxu/FLASH";
const HET_PAPER: &str = "J. Zhang, S. Zeng, M. Zhang, R. Wang, F. Wang, Y. Zhou, P. P. Liang, L. Qu, \"FLHetBench: Benchmarking Device \
                         and State Heterogeneity in Federated Learning\", CVPR 2024, pages 12098–12108";
const HET: &str = "https://github.com/Carkham/FLHetBench";
const SCALE_PAPER: &str = "F. Lai, Y. Dai, S. S. Singapuram, J. Liu, X. Zhu, H. V. Madhyastha, M. Chowdhury, \"FedScale: Benchmarking \
                           Model and System Performance of Federated Learning at Scale\", ICML 2022, PMLR 162";
const SCALE: &str = "https://github.com/SymbioticLab/FedScale";

/// All published sets that a scenario can use.
pub const ALL: &[Published] = &[
    Published {
        kind: "flash",
        is_converted: true,
        content: "times at which 1,000 phones were locked, charging and on WiFi, for 1 to 10 days",
        source: FLASH_PAPER,
        address: FLASH,
        licence: FLASH_TERMS,
        files: "data/state_traces.json",
    },
    Published {
        kind: "flhetbench",
        is_converted: true,
        content: "the same phones, reduced to the intervals at which they were ready; 710 are valid",
        source: HET_PAPER,
        address: HET,
        licence: "none stated; the phones are FLASH's",
        files: "data/cached_timers.json",
    },
    Published {
        kind: "flhetbench-latency",
        is_converted: true,
        content: "training time of ResNet and ViT on 948 models of phones, from AI Benchmark and the authors' phones",
        source: HET_PAPER,
        address: HET,
        licence: "none stated; scores are those of https://ai-benchmark.com",
        files: "data/training_latency.json",
    },
    Published {
        kind: "mobiperf",
        is_converted: true,
        content: "TCP throughput of phones, several samples a test, in kbit/s",
        source: "MobiPerf, Measurement Lab, https://www.measurementlab.net/tests/mobiperf; tests of 2018 and 2019 as packed by FLHetBench",
        address: HET,
        licence: "Measurement Lab publishes its data under CC0",
        files: "data/mobiperf_tcp_down_2018.json, data/mobiperf_tcp_down_2019.json, bench/cached_sample_data/device/case*.json",
    },
    Published {
        kind: "bandwidth",
        is_converted: true,
        content: "throughput over time of downlinks of video players: 3G, broadband, mobile and fixed",
        source: "HSDPA: H. Riiser et al., MMSys 2013, doi:10.1145/2483977.2483991; FCC Measuring Broadband America 2016; Oboe: Z. Akhtar \
                 et al., SIGCOMM 2018, doi:10.1145/3230543.3230558; Puffer: F. Yan et al., NSDI 2020",
        address: "https://github.com/confiwent/Real-world-bandwidth-traces",
        licence: "MIT for the collection; the sets have terms of their own",
        files: "a file for each trace, with a time in seconds and a rate in Mbit/s on each line",
    },
    Published {
        kind: "fedscale-availability",
        is_converted: true,
        content: "times at which phones are charging, made of the traces of FLASH's 136,000 phones",
        source: SCALE_PAPER,
        address: SCALE,
        licence: "Apache-2.0 for the repository",
        files: "benchmark/dataset/data/device_info/client_behave_trace, a pickle, written as JSON",
    },
    Published {
        kind: "fedscale-capacity",
        is_converted: true,
        content: "inference time and bandwidth of 500,000 clients",
        source: SCALE_PAPER,
        address: SCALE,
        licence: "Apache-2.0 for the repository",
        files: "benchmark/dataset/data/device_info/client_device_capacity, a pickle, written as JSON",
    },
    Published {
        kind: "flash-ready",
        is_converted: false,
        content: "spans in which 3,477 phones were ready: format = \"flash\" of availability = { trace = { .. } }",
        source: FLASH_PAPER,
        address: "https://github.com/meiyuan666/flash",
        licence: FLASH_TERMS,
        files: "data/ready_strict.json, data/ready_loose.json",
    },
    Published {
        kind: "flash-speeds",
        is_converted: false,
        content: "mean and deviation of the links of 19 users: format = \"flash-speeds\" of a table",
        source: FLASH_PAPER,
        address: FLASH,
        licence: FLASH_TERMS,
        files: "models/utils/device_util/speed_distri.json",
    },
];

/// Tables made of published files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Name and contents of each file to write.
    pub tables: Vec<(&'static str, String)>,
    /// What was left out or mended: a sentence each.
    pub notes: Vec<String>,
    /// The keys of a scenario that read the tables.
    pub settings: &'static str,
}

/// Converts the files of a published set; `None` if there is no converter of this name.
///
/// # Errors
/// A file cannot be read, or has another form than its publisher's.
pub fn convert(kind: &str, files: &[PathBuf]) -> Option<Result<Converted, DataError>> {
    Some(match kind {
        "flash" => availability::flash(files),
        "flhetbench" => availability::flhetbench(files),
        "fedscale-availability" => availability::fedscale(files),
        "flhetbench-latency" => numbers::latency(files),
        "mobiperf" => numbers::mobiperf(files),
        "fedscale-capacity" => numbers::fedscale(files),
        "bandwidth" => numbers::bandwidth(files),
        _ => return None,
    })
}

/// The bytes of a file.
fn bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut reader = ByteReader::open(path)?;
    let bytes = reader.take(TEXT_MAX + 1)?;
    if bytes.len() as u64 > TEXT_MAX {
        return Err(DataError::TooMany { path: path.to_owned(), limit: TEXT_MAX as usize, what: "bytes" });
    }
    reader.expect_end()?;
    Ok(bytes)
}

/// A file of JSON.
fn json<T: DeserializeOwned>(path: &Path, expected: &str) -> Result<T, DataError> {
    serde_json::from_slice(&bytes(path)?).map_err(|error| DataError::Table {
        path: path.to_owned(),
        line: error.line() as u64,
        message: format!("is not {expected}: {error}"),
    })
}

/// An object of JSON, in the order of the file.
struct Entries<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrder<T> {
            type Value = Entries<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object with an entry for each device")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder(PhantomData))
    }
}

/// A text as a field of a CSV table.
fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// A sentence for each count above 0.
fn notes<const N: usize>(counts: [(usize, &str); N]) -> Vec<String> {
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
}

#[cfg(test)]
mod tests;
