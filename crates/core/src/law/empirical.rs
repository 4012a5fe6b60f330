//! Empirical distribution of measured values.
//!
//! # Definition
//! With n samples in ascending order, the quantile at u is sample number ⌈u·n⌉, and the cdf is the step function that
//! counts the samples up to x.
//!
//! # Inputs
//! At least one sample, each finite and not negative. A file holds one sample per line, a plain number: seconds for a
//! latency, bits per second for a rate. Blank lines and lines that start with `#` are skipped.
//!
//! # Source
//! Elementary. Nothing is interpolated, so that a trace is replayed in law exactly as it was measured.
//!
//! # Cost
//! A variate is O(1), a cdf O(log n), a Laplace transform or expectation O(n). A copy shares the samples.
//!
//! # Determinism
//! One uniform per variate. Sums run over the samples in ascending order.
//!
//! # Example
//! ```
//! use fedgenie_core::law::{Empirical, Law};
//! let trace = Empirical::new(&[0.3, 0.1, 0.2, 0.2])?;
//! assert_eq!(trace.quantile(0.5), 0.2);
//! assert_eq!(trace.cdf(0.2), 0.75);
//! # Ok::<(), fedgenie_core::law::LawError>(())
//! ```
//! ```toml
//! latency.compute = { empirical = { file = "trace.csv" } }
//! ```

use super::{Law, LawError, Values, assert_factor, non_negative, parameters};
use crate::limits::{SAMPLE_FILE_BYTES, SAMPLES};
use crate::math::float::{ceil, exp, floor};
use crate::math::sum::CompensatedSum;
use crate::text::{QUOTED_MAX, shortened};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a line of a file.
const LINE_MAX: u64 = 1 << 16;

/// The parameters in a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table { file }")]
#[schemars(inline)]
pub struct Config<V: Values> {
    /// A file with one sample per line.
    pub file: V::File,
}
parameters!(file: file => Empirical::read);

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    samples: Arc<[f64]>,
    factor: f64,
}

/// Why a file of samples was not read. Nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum SampleFileError {
    /// The file could not be opened or read.
    #[error("cannot read the samples in {path}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line is not a sample.
    #[error("{path}, line {line}: found `{found}`, expected a finite number not below zero", path = path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The text of the line.
        found: String,
    },
    /// There are more samples than the limit.
    #[error(
        "{path}, line {line}: this is more than is read: {SAMPLES} samples, {SAMPLE_FILE_BYTES} bytes and {LINE_MAX} in a line",
        path = path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// There is no sample in the file.
    #[error("{path} holds no samples; expected one number per line", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Empirical {
    /// The law of a sample drawn uniformly from the list, which may be in any order.
    ///
    /// # Errors
    /// An empty list, or a sample that is negative, infinite or NaN.
    pub fn new(samples: &[f64]) -> Result<Self, LawError> {
        let mut sorted = samples.iter().map(|x| non_negative("sample", *x)).collect::<Result<Vec<_>, _>>()?;
        if sorted.is_empty() {
            return Err(LawError::new("samples", "none", "at least one sample"));
        }
        sorted.sort_by(f64::total_cmp);
        Ok(Self { samples: sorted.into(), factor: 1.0 })
    }

    /// The samples of a file, one per line.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is not a sample, or no sample at all; the error names file and line.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, SampleFileError> {
        let path = path.as_ref();
        let unreadable = |source| SampleFileError::Unreadable { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(unreadable)?;
        let mut file = BufReader::new(file.take(SAMPLE_FILE_BYTES + 1));
        let (mut samples, mut line, mut bytes) = (Vec::new(), String::new(), 0);
        for index in 0.. {
            line.clear();
            // Room for a number and a remark.
            let count = (&mut file).take(LINE_MAX).read_line(&mut line).map_err(unreadable)?;
            bytes += count as u64;
            if count as u64 == LINE_MAX || samples.len() > SAMPLES || bytes > SAMPLE_FILE_BYTES {
                return Err(SampleFileError::TooLarge { path: path.to_path_buf(), line: index + 1 });
            }
            if count == 0 {
                break;
            }
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let sample = line.parse().ok().and_then(|x| non_negative("sample", x).ok());
            let bad = || SampleFileError::BadLine {
                path: path.to_path_buf(),
                line: index + 1,
                found: shortened(line, QUOTED_MAX).into_owned(),
            };
            samples.push(sample.ok_or_else(bad)?);
        }
        Self::new(&samples).map_err(|_| SampleFileError::Empty { path: path.to_path_buf() })
    }

    /// The samples in ascending order.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.samples.iter().map(|sample| sample * self.factor)
    }

    fn count(&self) -> f64 {
        self.samples.len() as f64
    }

    /// Sample number `rank`, counted from 1 and moved into range.
    fn ranked(&self, rank: f64) -> f64 {
        self.samples[rank.clamp(1.0, self.count()) as usize - 1] * self.factor
    }
}

impl Law for Empirical {
    fn quantile(&self, u: f64) -> f64 {
        self.ranked(ceil(u * self.count()))
    }

    fn upper_quantile(&self, v: f64) -> f64 {
        self.ranked(self.count() - floor(v * self.count()))
    }

    fn cdf(&self, x: f64) -> f64 {
        self.samples.partition_point(|sample| sample * self.factor <= x) as f64 / self.count()
    }

    fn mean(&self) -> f64 {
        self.samples().collect::<CompensatedSum>().value() / self.count()
    }

    fn laplace(&self, s: f64) -> f64 {
        self.samples().map(|x| exp(-s * x)).sum::<f64>() / self.count()
    }

    fn expect(&self, f: &mut dyn FnMut(f64) -> f64) -> f64 {
        self.samples().map(f).collect::<CompensatedSum>().value() / self.count()
    }

    fn minimum(&self) -> f64 {
        self.ranked(1.0)
    }

    fn maximum(&self) -> f64 {
        self.ranked(self.count())
    }

    fn breakpoints(&self, out: &mut Vec<f64>) {
        let first = out.len();
        for sample in self.samples() {
            if out.len() == first || out.last() != Some(&sample) {
                out.push(sample);
            }
        }
    }

    fn small_value_index(&self) -> f64 {
        if self.minimum() > 0.0 { f64::INFINITY } else { 0.0 }
    }

    fn scaled(&self, factor: f64) -> Self {
        assert_factor(factor);
        Self { samples: Arc::clone(&self.samples), factor: self.factor * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn law() -> Empirical {
        Empirical::new(&[0.3, 0.1, 0.2, 0.2]).expect("valid")
    }

    #[test]
    fn quantile_and_cdf_are_the_steps() {
        let quantiles = [0.01, 0.25, 0.2501, 0.75, 0.7501, 0.99].map(|u| law().quantile(u));
        assert_eq!(quantiles, [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]);
        assert_eq!([0.01, 0.25, 0.2501, 0.76].map(|v| law().upper_quantile(v)), [0.3, 0.2, 0.2, 0.1]);
        assert_eq!([0.09, 0.1, 0.2, 0.3].map(|x| law().cdf(x)), [0.0, 0.25, 0.75, 1.0]);
        assert_eq!((law().mean(), law().laplace(0.0), law().minimum(), law().maximum()), (0.2, 1.0, 0.1, 0.3));
        assert_eq!(law().expect(&mut |x| 8.0 * x), 1.6);
    }

    #[test]
    fn scaling_shares_the_samples() {
        let double = law().scaled(2.0);
        assert!(Arc::ptr_eq(&double.samples, &double.scaled(3.0).samples));
        assert_eq!((double.quantile(0.5), double.cdf(0.4)), (0.4, 0.75));
        let mut breakpoints = vec![];
        double.breakpoints(&mut breakpoints);
        assert_eq!(breakpoints, [0.2, 0.4, 0.6]);
    }

    #[test]
    fn a_file_is_read_and_a_bad_line_is_named() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        writeln!(file, "# seconds\n0.3\n\n 0.1 \n2e-1\n0.2").expect("written");
        assert_eq!(Empirical::read(file.path()).expect("valid"), law());
        for bad in ["-0.1", "NaN", "inf", "abc", "0.1 0.2"] {
            let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
            writeln!(file, "0.1\n# comment\n{bad}").expect("written");
            let error = Empirical::read(file.path()).expect_err("refused").to_string();
            assert!(error.contains(&format!("line 3: found `{bad}`")), "{error}");
            assert!(error.contains(file.path().to_str().expect("plain")), "{error}");
        }
        let empty = tempfile::NamedTempFile::new().expect("a temporary file");
        assert!(matches!(Empirical::read(empty.path()), Err(SampleFileError::Empty { .. })));
        assert!(matches!(Empirical::read(Path::new("/nowhere")), Err(SampleFileError::Unreadable { .. })));
    }
}
