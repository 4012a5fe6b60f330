//! MobiPerf's TCP throughput: one mean rate per record.
//!
//! # Definition
//! A table with a row per test: its columns `kbps_0`, `kbps_1`, … are the samples of the test, of which each row fills
//! as many as it has, from the first; a row may end with its last sample. The record's value is their mean.
//!
//! # Inputs
//! CSV with a header, plain or gzip; other columns do not count. Errors, with file and line: no column of samples, a
//! row without samples, a sample that is no number or not above 0, a sample after an empty one. The scenario gives the
//! unit; the source's is kbit/s.
//!
//! # Source
//! MobiPerf, published by Measurement Lab; the 168 records that occur in FLHetBench's sampled device cases (CVPR 2024),
//! which its authors chose to hit a mean speed, so that they are no sample of a population.

use super::columns::{Columns, Others};
use super::{Defects, Imported};
use fedgenie_learning::data::DataError;
use std::path::Path;

/// Reads the mean of each record, in the file's unit; see the [module](self).
///
/// # Errors
/// File, line, found and expected value.
pub fn read(path: &Path) -> Result<Imported<Vec<f64>>, DataError> {
    let mut columns = Columns::open(path, &[], Others::Ragged)?;
    let is_sample = |name: &String| name.strip_prefix("kbps_").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let samples: Vec<usize> =
        (0..columns.header().len()).filter(|&column| is_sample(&columns.header()[column])).collect();
    if samples.is_empty() {
        return Err(columns.wrong("there is no column of samples; expected kbps_0, kbps_1, …"));
    }
    let mut value = Vec::new();
    while columns.next()? {
        let filled = samples.iter().take_while(|&&column| !columns.field(column).is_empty()).count();
        if filled == 0 {
            return Err(columns.wrong("the record has no sample; expected at least kbps_0"));
        }
        if samples[filled..].iter().any(|&column| !columns.field(column).is_empty()) {
            return Err(columns.wrong("a sample stands after an empty one; expected the samples first"));
        }
        let mut sum = 0.0;
        for &column in &samples[..filled] {
            let sample = columns.number_at(column)?;
            if sample <= 0.0 {
                return Err(columns.wrong(format!("found a sample of {sample}; expected a rate above 0")));
            }
            sum += sample;
        }
        value.push(sum / filled as f64);
    }
    if value.is_empty() {
        return Err(columns.wrong("has a header only; expected at least one record after it"));
    }
    let defects = Defects { records: value.len(), ..Defects::default() };
    Ok(Imported { value, notes: Vec::new(), defects })
}
