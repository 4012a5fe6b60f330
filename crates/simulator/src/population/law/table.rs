//! A parameter with one number per client from a file: `{ table = { file, column, unit, .. } }`.
//!
//! # Definition
//! Client i of its group has the i mod M-th of the M numbers of a column (`assign = "cyclic"`), or of a random
//! permutation of them (`"permuted"`; the same for all tables of M numbers, so that the columns of one file stay
//! together). With a `key` the numbers are in the order of the names in that column, and belong to the same devices as
//! the records of the group's other files with a key, which have to have the same names.
//!
//! `unit` is the unit of the file. With `per`, the file has times for `per` items each, and the parameter is the number
//! of items per second: a latency of 166 ms per batch of 32 is `unit = "ms", per = 32`, and 192.8 per second.
//!
//! # Inputs
//! `format`: `csv` ([`trace::table`](crate::population::trace::table)) takes `column`, `where`, `missing` and `key`;
//! `mobiperf` ([`trace::mobiperf`](crate::population::trace::mobiperf)) takes none of them; `flash-speeds`
//! ([`trace::flash_speeds`](crate::population::trace::flash_speeds)) has the columns `down` and `up`, and draws.
//!
//! # Example
//! ```toml
//! samples_per_second = { table = { file = "training_latency.csv", column = "resnet_latency", unit = "ms", per = 32, missing = "drop" } }
//! downlink = { table = { file = "mobiperf_tcp_records.csv", format = "mobiperf", unit = "kbit/s" } }
//! uplink = { table = { file = "speed_distri.json", format = "flash-speeds", column = "up", unit = "kbit/s" } }
//! ```

use super::GroupClient;
use crate::population::trace::join::Source;
use crate::population::trace::table::{Missing, Selection};
use crate::population::trace::{Assign, Assignment, Imported, Memo, Named, flash_speeds, mobiperf, table};
use fedgenie_core::law::{Law, TruncatedNormal};
use fedgenie_core::rng::Purpose;
use fedgenie_core::units::{self, Quantity, Seconds};
use fedgenie_learning::data::located;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One number per client from a column of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableConfig {
    /// The file.
    pub file: PathBuf,
    /// How the file is written.
    #[serde(default)]
    pub format: TableFormat,
    /// The column, where the format has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The unit of the numbers; left out for numbers without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The numbers are times for this many items each; the parameter is the number of items per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<f64>,
    /// Texts that other columns of a row must have.
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, String>,
    /// How rows with an empty field or a 0 are treated.
    #[serde(default)]
    pub missing: Missing,
    /// How numbers are assigned to clients.
    #[serde(default)]
    pub assign: Assign,
    /// The column with the names of devices, by which this file is joined to the group's others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip)]
    records: Memo<Named<Records>>,
    /// By seed.
    #[serde(skip)]
    assignments: Memo<BTreeMap<u64, Arc<Assignment>>>,
}

/// How a file of numbers is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableFormat {
    /// A column of a table with a header.
    #[default]
    Csv,
    /// MobiPerf's TCP records: the mean of each.
    Mobiperf,
    /// FLASH's normal speeds, with the columns `down` and `up`: drawn once per client.
    FlashSpeeds,
}

/// What was read.
#[derive(Debug)]
enum Records {
    /// In the parameter's base unit.
    Numbers(Vec<f64>),
    Speeds(Vec<TruncatedNormal>),
}

impl Records {
    const fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Speeds(laws) => laws.len(),
        }
    }
}

/// Whether a quantity has no unit.
const fn is_plain<Q: Quantity>() -> bool {
    Q::BASE.is_empty()
}

impl TableConfig {
    /// Checks what can be checked without reading the file.
    pub(super) fn check<Q: Quantity>(&self) -> Result<(), String> {
        let columns = match self.format {
            TableFormat::Csv if self.column.is_none() => return Err("a table with a column".to_owned()),
            TableFormat::Mobiperf if self.column.is_some() => {
                return Err("no column: a record of the format \"mobiperf\" is the mean of its samples".to_owned());
            }
            TableFormat::FlashSpeeds if !matches!(self.column.as_deref(), Some("down" | "up")) => {
                return Err("a column \"down\" or \"up\"".to_owned());
            }
            format => format,
        };
        if columns != TableFormat::Csv && (!self.filter.is_empty() || self.missing != Missing::Error) {
            return Err("neither where nor missing, which belong to the format \"csv\"".to_owned());
        }
        if columns != TableFormat::Csv && self.key.is_some() {
            return Err(
                "no key, which belongs to the format \"csv\": other records have no names to join by".to_owned()
            );
        }
        if let Some(per) = self.per {
            if !is_plain::<Q>() {
                return Err(format!("no per, which makes numbers without a unit of times; this is {}", Q::EXPECTED));
            }
            if !(per > 0.0 && per < f64::INFINITY) {
                return Err(format!("a number above 0 as per, not {per}"));
            }
        }
        if self.per.is_some() && self.format == TableFormat::FlashSpeeds {
            return Err("no per: the format \"flash-speeds\" has rates".to_owned());
        }
        self.convert::<Q>(1.0).map(|_| ())
    }

    /// A number of the file in the parameter's base unit.
    fn convert<Q: Quantity>(&self, number: f64) -> Result<f64, String> {
        match self.per {
            Some(per) => self.measured::<Seconds>(number).map(|seconds| per / seconds),
            None => self.measured::<Q>(number),
        }
    }

    /// A number of the file in the base unit of what the file measures.
    fn measured<M: Quantity>(&self, number: f64) -> Result<f64, String> {
        match &self.unit {
            None if is_plain::<M>() => Ok(number),
            None => Err(format!("a `unit` as well, of {}", M::EXPECTED)),
            Some(_) if is_plain::<M>() => Err("no unit: this parameter has none (see also per)".to_owned()),
            Some(unit) => units::parse::<M>(&format!("{number} {unit}")).map_err(|_| {
                let known: Vec<&str> = M::UNITS.iter().map(|(name, _)| *name).collect();
                format!("one of {} as `unit`, not {unit:?}", known.join(", "))
            }),
        }
    }

    pub(super) fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        (self.records, self.assignments) = (Memo::default(), Memo::default());
        self.file = located(&self.file, base, data);
    }

    /// Whether a client's number is random.
    pub(super) const fn is_drawn(&self) -> bool {
        matches!(self.format, TableFormat::FlashSpeeds)
    }

    fn read<Q: Quantity>(&self) -> Result<Arc<Named<Records>>, String> {
        self.records.get(|| {
            let imported = match self.format {
                TableFormat::FlashSpeeds => {
                    let direction = match self.column.as_deref() {
                        Some("down") => flash_speeds::Direction::Down,
                        _ => flash_speeds::Direction::Up,
                    };
                    let speeds = flash_speeds::read(&self.file, direction).map_err(|error| error.to_string())?;
                    let factor = self.convert::<Q>(1.0)?;
                    let laws = speeds.value.iter().map(|law| law.scaled(factor)).collect();
                    let (notes, defects) = (speeds.notes, speeds.defects);
                    return Ok((Imported { value: Records::Speeds(laws), notes, defects }, Arc::default()));
                }
                TableFormat::Mobiperf => mobiperf::read(&self.file).map(|imported| (imported, Arc::default())),
                TableFormat::Csv => {
                    let selection = Selection {
                        column: self.column.as_deref().unwrap_or_default(),
                        filter: &self.filter,
                        missing: self.missing,
                        zero: self.per.is_none() && (is_plain::<Q>() || Q::BASE == Seconds::BASE),
                    };
                    table::read_keyed(&self.file, &selection, self.key.as_deref())
                }
            };
            let (Imported { value, notes, defects }, names) = imported.map_err(|error| error.to_string())?;
            let numbers = value.into_iter().map(|number| self.convert::<Q>(number)).collect::<Result<_, _>>()?;
            Ok::<_, String>((Imported { value: Records::Numbers(numbers), notes, defects }, names))
        })
    }

    /// The number of a client.
    pub(super) fn value<Q: Quantity>(&self, client: &GroupClient<'_>, index: u32) -> Result<f64, String> {
        let read = self.read::<Q>()?;
        let records = &read.0;
        let seed = client.streams.seed();
        let assignment = || Arc::new(Assignment::new(self.assign, records.value.len(), client.streams));
        let record = match self.assign {
            Assign::Cyclic => client.in_group % records.value.len(),
            Assign::Permuted => self
                .assignments
                .update(|known| known.entry(seed).or_insert_with(assignment).clone())
                .of(client.in_group),
        };
        Ok(match &records.value {
            Records::Numbers(numbers) => numbers[record],
            Records::Speeds(laws) => {
                let mut rng = client.streams.draw(Purpose::PopulationParameter, client.client, index);
                laws[record].quantile(rng.uniform())
            }
        })
    }

    /// Appends what a careful user should know about the file.
    pub(super) fn notes<Q: Quantity>(&self, notes: &mut Vec<String>) {
        if let Ok(read) = self.read::<Q>() {
            notes.extend(read.0.notes.iter().cloned());
        }
    }

    /// The file, as far as it can be read.
    pub(super) fn source<Q: Quantity>(&self, path: &str) -> Option<Source> {
        let read = self.read::<Q>().ok()?;
        Some(Source {
            path: path.to_owned(),
            file: self.file.clone(),
            records: "rows",
            count: read.0.value.len(),
            names: self.key.as_ref().map(|_| read.1.clone()),
            has_names: self.format == TableFormat::Csv,
        })
    }
}
