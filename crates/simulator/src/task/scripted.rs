//! Learning without training: a metric by a script, for bandits that feed on learning curves.
//!
//! # Definition
//! Let A_t be the clients whose updates were aggregated in round t, each once. The metric after round t is, in this
//! order of additions,
//!
//! `values[min(t, len)] + mean_{A_t} effects + per_client/|A_t| + Σ_{s≤t} mean_{A_s} gains + N(0, noise²)`
//!
//! Values count from 1. Round 0, before any training, has the first value alone. What is not given, or empty, adds
//! nothing; neither do the terms with A_t in a round in which it is empty. Under `hierarchical` each edge server has
//! such a metric, with the clients whose updates are in the model that it sent to the cloud in round t, and with noise
//! of its own; `test_x` is the mean over all edge servers, `server_x_mean` and the other statistics are over them.
//!
//! Jobs download and upload `payload` bytes. An update says the client's number of `client_losses` as its loss, and so
//! does a client that a policy asks. Clients have as many examples as `data_size` of the population says. The metric is
//! one of servers: no client has a value of its own, and `clients` in `[evaluate]` is refused.
//!
//! # Inputs
//! `metric`: the metric's name, which begins with `test_`; `better`: `"higher"` or `"lower"`; `payload`: bytes each
//! way. `values`: a list. `effects`, `gains`, `client_losses`: a list with a number for each client, or the name of a
//! CSV file `client,value`. `per_client` and `noise` (a standard deviation): numbers. `accuracies`: a CSV file
//! `round,server,accuracy`, from round 0, in the place of the formula; a single server is number 0. `losses`: a CSV
//! file `round,server,cluster,loss`, of numbers of at least 0: the losses that rules of clusters compare after a round.
//!
//! Files have a header; their columns may be in any order. A relative name is looked for in the folder given by
//! `--data`, or else beside the scenario. A row is needed where it is read: of the rounds that are evaluated, of
//! those in which losses of clusters are compared, and of the clients whose updates are aggregated or whose losses are
//! asked for. What `[stop]` alone tells is checked at the start; losses of clusters are checked in all rounds that it
//! allows, or, where it gives no `rounds`, up to the last of the file.
//!
//! # Cost
//! A look-up for each aggregated update; a normal variate for each server and evaluation.
//!
//! # Determinism
//! The noise is drawn from stream (script, server, round), the same for every policy.
//!
//! # Example
//! ```toml
//! [task.scripted]
//! metric = "test_accuracy"
//! values = [0.1, 0.4, 0.55, 0.6]
//! effects = [0.0, 0.02, -0.05, 0.01]
//! noise = 0.005
//! payload = "100 kB"
//! ```

mod course;
mod tables;

pub use course::Scripted;

use super::{About, DataCache, Material, Outline, TaskError, TaskSettings};
use crate::population::trace::Memo;
use course::{Lines, Undealt};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::limits::PAYLOAD_BYTES;
use fedgenie_core::metric::{Better, Measure, Measures};
use fedgenie_core::rng::Streams;
use fedgenie_core::units::{Amount, Bytes};
use fedgenie_learning::data::located;
use fedgenie_learning::metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tables::{ByClient, Table};

/// `[task.scripted]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the metric; it begins with `test_`.
    #[serde(default = "default_metric")]
    pub metric: String,
    /// Which values are better.
    #[serde(default = "default_better")]
    #[schemars(with = "BetterNames")]
    pub better: Better,
    /// Bytes of the imagined model each way.
    #[serde(default = "nothing")]
    pub payload: Amount<Bytes>,
    /// The metric's course: of rounds 1, 2, …; the last one stays. Round 0 has the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// A client's addend to the metric of a round in which its update is aggregated: the mean of these addends counts.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub effects: Numbers,
    /// Divided by the number of clients whose updates are aggregated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub per_client: f64,
    /// As `effects`, for this round and all later ones.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub gains: Numbers,
    /// Standard deviation of the noise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub noise: f64,
    /// Loss of each client, for policies that ask.
    #[serde(default, skip_serializing_if = "Numbers::is_empty")]
    pub client_losses: Numbers,
    /// A CSV file `round,server,accuracy` with the metric, in the place of all that makes it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracies: Option<PathBuf>,
    /// A CSV file `round,server,cluster,loss` with the losses of the models of clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub losses: Option<PathBuf>,
    #[serde(skip)]
    script: Memo<Lines>,
}

/// For the schema: the names of [`Better`].
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code, reason = "only its schema is used")]
enum BetterNames {
    Higher,
    Lower,
}

/// A number for each client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a list with a number for each client, or the name of a CSV file client,value")]
pub enum Numbers {
    /// In the order of clients.
    List(Vec<f64>),
    /// A CSV file `client,value`.
    File(PathBuf),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Numbers {
    fn is_empty(&self) -> bool {
        matches!(self, Self::List(list) if list.is_empty())
    }
}

fn default_metric() -> String {
    "test_score".to_owned()
}
const fn default_better() -> Better {
    Better::Higher
}
const fn nothing() -> Amount<Bytes> {
    Amount::new(0.0)
}
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

impl Config {
    /// The measure's name: that of the metric without its place.
    fn measure(&self) -> Option<&str> {
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let name = self.metric.strip_prefix("test_")?;
        (name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(is_part)).then_some(name)
    }

    /// The lists by client and their keys.
    const fn lists(&self) -> [(&'static str, &Numbers); 3] {
        [("effects", &self.effects), ("gains", &self.gains), ("client_losses", &self.client_losses)]
    }

    /// The contents of the files, read once.
    fn script(&self) -> Result<Arc<Lines>, Complaint> {
        let read = || -> Result<Lines, Complaint> {
            let by_client = |(key, numbers): (&'static str, &Numbers)| match numbers {
                Numbers::List(list) => Ok(ByClient::listed(key, list)),
                Numbers::File(path) => ByClient::read(path).map_err(|error| Complaint::new(key, error.to_string())),
            };
            let table = |key: &str, path: &Option<PathBuf>, columns: &'static [&'static str]| {
                let read = |path: &PathBuf| Table::read(path, columns);
                path.as_ref().map(read).transpose().map_err(|error| Complaint::new(key, error.to_string()))
            };
            let [effects, gains, client_losses] = self.lists();
            Ok(Lines {
                effects: by_client(effects)?,
                gains: by_client(gains)?,
                client_losses: by_client(client_losses)?,
                accuracies: table("accuracies", &self.accuracies, &["round", "server", "accuracy"])?,
                losses: table("losses", &self.losses, &["round", "server", "cluster", "loss"])?,
            })
        };
        let mut complaint = None;
        self.script
            .get(|| read().inspect_err(|error| complaint = Some(error.clone())))
            .map_err(|message| complaint.unwrap_or_else(|| Complaint::new("", message)))
    }
}

impl TaskSettings for Config {
    fn about(&self) -> About {
        About { name: "scripted", measures_clients: false, has_declared_sizes: true, ..About::default() }
    }

    fn measures(&self) -> Measures {
        let name = self.measure().unwrap_or_default();
        let known = metric::named(name).map_or(Measure::share("").named(name), |known| known.measure);
        let measure = Measure { better: self.better, ..known }.within(f64::NEG_INFINITY, f64::INFINITY);
        Measures { of_data: vec![measure], ..Measures::default() }
    }

    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let Self { effects, gains, client_losses, accuracies, losses, .. } = self;
        let lists = [effects, gains, client_losses].into_iter().filter_map(|numbers| match numbers {
            Numbers::List(_) => None,
            Numbers::File(path) => Some(path),
        });
        for path in lists.chain(accuracies).chain(losses) {
            *path = located(path, base, data);
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let lists = self.lists().into_iter().filter_map(|(_, numbers)| match numbers {
            Numbers::List(_) => None,
            Numbers::File(path) => Some(path),
        });
        lists.chain(&self.accuracies).chain(&self.losses).cloned().collect()
    }

    fn check(&self) -> Result<(), Complaint> {
        if self.measure().is_none() {
            let message = format!(
                "found {:?}; expected a name that begins with test_, of lower-case letters, digits and _, such as \
                 \"test_score\"",
                self.metric
            );
            return Err(Complaint::new("metric", message));
        }
        if !(0.0..=PAYLOAD_BYTES as f64).contains(&self.payload.0) {
            let found = self.payload.0;
            let message = format!("found {found} B; expected an amount of at least 0 and at most {PAYLOAD_BYTES} B");
            return Err(Complaint::new("payload", message));
        }
        check("per_client", self.per_client, .., "a number")?;
        check("noise", self.noise, 0.0.., "a number of at least 0")?;
        let numbers = |numbers: &Numbers| match numbers {
            Numbers::List(list) => list.clone(),
            Numbers::File(_) => Vec::new(),
        };
        let lists = self.lists().map(|(key, list)| (key, numbers(list)));
        for (key, list) in lists.into_iter().chain([("values", self.values.clone())]) {
            for (index, &number) in list.iter().enumerate() {
                check(key, number, .., &format!("a finite number at place {} of the list", index + 1))?;
            }
        }
        let made_up = [
            ("values", !self.values.is_empty()),
            ("effects", !self.effects.is_empty()),
            ("per_client", self.per_client != 0.0),
            ("gains", !self.gains.is_empty()),
            ("noise", self.noise != 0.0),
        ];
        match made_up.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) if self.accuracies.is_some() => {
                Err(Complaint::new(key, "makes up the metric; leave it out where accuracies are given in its place"))
            }
            _ => Ok(()),
        }
    }

    fn check_outline(&self, outline: &Outline) -> Result<(), Complaint> {
        let script = self.script()?;
        let Lines { effects, gains, client_losses, accuracies, losses } = &*script;
        for (key, numbers) in [("effects", effects), ("gains", gains), ("client_losses", client_losses)] {
            numbers.check(outline.clients).map_err(|message| Complaint::new(key, message))?;
        }
        for (key, table) in [("accuracies", accuracies), ("losses", losses)] {
            let check = |table: &Table| table.check_servers(outline.servers);
            table.as_ref().map_or(Ok(()), check).map_err(|message| Complaint::new(key, message))?;
        }
        let check = |losses: &Table| losses.check_not_negative();
        losses.as_ref().map_or(Ok(()), check).map_err(|message| Complaint::new("losses", message))?;
        let Some(accuracies) = accuracies else { return Ok(()) };
        for round in outline.evaluated() {
            let check = accuracies.check_round(round, outline.servers);
            check.map_err(|message| Complaint::new("accuracies", message))?;
        }
        Ok(())
    }

    fn material(&self, streams: &Streams, _: &DataCache) -> Result<Option<Box<dyn Material>>, TaskError> {
        let script = self.script().map_err(TaskError::Setting)?;
        Ok(Some(Box::new(Undealt::new(self, script, streams))))
    }
}
