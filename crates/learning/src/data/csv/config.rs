//! How a scenario names a table: `data = { csv = { train = "a.csv", test = "b.csv", label = "y" } }`.

use super::{Answer, CsvColumns};
use crate::data::held_out::held_out;
use crate::data::source::{DataCache, ShapeConfig, SourceSettings};
use crate::data::{DataError, Split, located};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::rng::Streams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `{ csv = { .. } }`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CsvConfig {
    /// File of training examples, plain or gzip.
    pub train: PathBuf,
    /// File of test examples, with the same columns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// Share of the rows of `train` that each seed draws for testing, instead of `test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_fraction: Option<f64>,
    /// Column of the class to predict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Column of the number to predict, instead of `label`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Column of the device, writer or user that an example comes from, for `partition = "by-column"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Channels, rows and columns of an image whose pixels the features are, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<ShapeConfig>,
}

impl SourceSettings for CsvConfig {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        for file in [&mut self.train].into_iter().chain(&mut self.test) {
            *file = located(file, base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        [&self.train].into_iter().chain(&self.test).cloned().collect()
    }

    fn check(&self) -> Result<(), Complaint> {
        self.columns().and_then(|_| self.check_test())
    }

    fn is_each_seeds_own(&self) -> bool {
        self.test.is_none()
    }

    fn load(&self, streams: &Streams, cache: &DataCache) -> Result<Split, DataError> {
        let columns = self.columns().expect("settings are checked before data are loaded");
        match &self.test {
            Some(test) => columns.read_split(&self.train, test),
            None => {
                let table = cache.table(format!("{self:?}"), || columns.read(&self.train))?;
                held_out(&table, self.test_fraction.unwrap_or_default(), streams)
            }
        }
    }
}

impl CsvConfig {
    fn columns(&self) -> Result<CsvColumns, Complaint> {
        let answer = match (&self.label, &self.target) {
            (Some(label), None) => Answer::Label(label.clone()),
            (None, Some(target)) => Answer::Target(target.clone()),
            (found, _) => {
                let found = if found.is_some() { "both label and target" } else { "neither label nor target" };
                let message = format!("found {found}; expected label (a column of classes) or target (of numbers)");
                return Err(Complaint::new("", message));
            }
        };
        Ok(CsvColumns { answer, group: self.group.clone(), shape: self.shape.map(|ShapeConfig(shape)| shape) })
    }

    fn check_test(&self) -> Result<(), Complaint> {
        let expected = "expected test (a file) or test_fraction (a share of the rows of train)";
        match (&self.test, self.test_fraction) {
            (Some(_), None) => Ok(()),
            (None, Some(fraction)) => {
                let range = f64::MIN_POSITIVE..1.0;
                check("test_fraction", fraction, range, "a number above 0 and below 1").map(|_| ())
            }
            (Some(_), Some(_)) => Err(Complaint::new("", format!("found both test and test_fraction; {expected}"))),
            (None, None) => Err(Complaint::new("", format!("found neither test nor test_fraction; {expected}"))),
        }
    }
}
