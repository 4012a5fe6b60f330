//! The `[population]` section: groups, latency laws or device profiles, dropout hazards, data.

use super::law::{ClientPlace, FactorLaw, PlainParameter, RateParameter, TimeLaw};
use super::{Group, Population};
use crate::dist::{AnyLaw, Constant, Law};
use crate::id::ClientId;
use crate::record::Phase;
use crate::rng::Streams;
use crate::trainer::LocalTraining;
use crate::units::{Amount, PerSecond};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The `[population]` section. What stands here holds for every group that does not say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PopulationConfig {
    /// Number of clients; may be left out when every group gives its count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Examples per client, for tasks that do not partition data themselves (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_size: Option<PlainParameter>,
    /// Quality of a client's data, between 0 and 1 (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_quality: Option<PlainParameter>,
    /// Latency laws per phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyConfig>,
    /// Device profile, instead of latency laws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceConfig>,
    /// Dropout hazards per phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropout: Option<DropoutConfig>,
    /// Groups of clients; ids count up through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group: Vec<GroupConfig>,
}

/// One `[[population.group]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Name, for selection counts in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    /// Share of `population.clients`, between 0 and 1, instead of a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Examples per client, for tasks that do not partition data themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_size: Option<PlainParameter>,
    /// Quality of a client's data, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_quality: Option<PlainParameter>,
    /// Latency laws per phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyConfig>,
    /// Device profile, instead of latency laws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceConfig>,
    /// Dropout hazards per phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropout: Option<DropoutConfig>,
}

/// How long each phase of a job takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyConfig {
    /// The model travels to the client.
    pub download: TimeLaw,
    /// The client trains.
    pub compute: TimeLaw,
    /// The update travels to the server.
    pub upload: TimeLaw,
}

/// A device: phase durations follow from the job's work and payload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// Training speed in examples per second; a job's work is its examples times its epochs.
    pub samples_per_second: PlainParameter,
    /// Rate from server to client.
    pub downlink: RateParameter,
    /// Rate from client to server.
    pub uplink: RateParameter,
    /// Random factors on the three durations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterConfig>,
}

/// Random factors on phase durations; 1 where left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterConfig {
    /// Factor on the download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<FactorLaw>,
    /// Factor on computing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<FactorLaw>,
    /// Factor on the upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<FactorLaw>,
}

/// Hazard rates: in a phase, the client is lost after an exponentially distributed time if that is shorter than the
/// phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DropoutConfig {
    /// While downloading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<Amount<PerSecond>>,
    /// While computing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Amount<PerSecond>>,
    /// While uploading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Amount<PerSecond>>,
}

/// Why a population cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PopulationError {
    /// Dotted path below the scenario's root.
    pub path: String,
    /// What was found and what would be right.
    pub message: String,
}

impl PopulationError {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// What a job consists of, for device profiles.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Examples per client, where the task partitions data.
    pub data_sizes: Option<&'a [u32]>,
    /// How many of them a job goes through.
    pub training: &'a LocalTraining,
    /// Bytes of the model, each way.
    pub payload_bytes: u64,
}

impl PopulationConfig {
    /// The groups with everything they inherit, and their sizes.
    fn groups(&self) -> Result<Vec<(String, GroupConfig, usize)>, PopulationError> {
        let whole = GroupConfig {
            data_size: self.data_size.clone(),
            data_quality: self.data_quality.clone(),
            latency: self.latency.clone(),
            device: self.device.clone(),
            dropout: self.dropout.clone(),
            ..GroupConfig::default()
        };
        if self.group.is_empty() {
            let message = "the number of clients is missing; write for example clients = 20";
            let clients = self.clients.ok_or_else(|| PopulationError::new("population.clients", message))?;
            return Ok(vec![("population".to_owned(), whole, clients)]);
        }
        let counts = self.group_counts()?;
        let inherit = |(index, group): (usize, &GroupConfig)| {
            let timed = group.latency.is_some() || group.device.is_some();
            let merged = GroupConfig {
                data_size: group.data_size.clone().or_else(|| whole.data_size.clone()),
                data_quality: group.data_quality.clone().or_else(|| whole.data_quality.clone()),
                latency: group.latency.clone().or_else(|| whole.latency.clone().filter(|_| !timed)),
                device: group.device.clone().or_else(|| whole.device.clone().filter(|_| !timed)),
                dropout: group.dropout.clone().or_else(|| whole.dropout.clone()),
                ..group.clone()
            };
            (format!("population.group.{index}"), merged, counts[index])
        };
        Ok(self.group.iter().enumerate().map(inherit).collect())
    }

    /// Clients per group: counts as given, shares by largest remainder of what `clients` says.
    fn group_counts(&self) -> Result<Vec<usize>, PopulationError> {
        let mut counts = vec![0; self.group.len()];
        let mut shares = Vec::new();
        for (index, group) in self.group.iter().enumerate() {
            let path = format!("population.group.{index}");
            match (group.count, group.share) {
                (Some(count), None) => counts[index] = count,
                (None, Some(share)) if share > 0.0 && share <= 1.0 => shares.push((index, share)),
                (None, Some(share)) => {
                    let message = format!("found {share}; expected a number above 0 and at most 1");
                    return Err(PopulationError::new(format!("{path}.share"), message));
                }
                _ => {
                    return Err(PopulationError::new(
                        path,
                        "give either count or share, such as count = 50 or share = 0.1",
                    ));
                }
            }
        }
        let counted: usize = counts.iter().sum();
        let Some(clients) = self.clients else {
            if shares.is_empty() {
                return Ok(counts);
            }
            return Err(PopulationError::new("population.clients", "is missing; shares need the number of clients"));
        };
        let wrong = |found: String| {
            let message = format!("found {clients}, but the groups add up to {found}; make them agree");
            Err(PopulationError::new("population.clients", message))
        };
        let exact: Vec<(usize, f64)> = shares.iter().map(|&(index, share)| (index, share * clients as f64)).collect();
        let shared: f64 = exact.iter().map(|(_, exact)| exact).sum();
        if (counted as f64 + shared - clients as f64).abs() > 1e-6 * clients.max(1) as f64 {
            return wrong(format!("{}", counted as f64 + shared));
        }
        let mut left = clients - counted;
        let mut remainders = Vec::new();
        for &(index, exact) in &exact {
            // A share that is a whole number but for rounding is that number.
            let floor = libm::floor(exact + 1e-9);
            counts[index] = floor as usize;
            left = left.saturating_sub(floor as usize);
            remainders.push((exact - floor, index));
        }
        remainders.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for &(_, index) in remainders.iter().take(left) {
            counts[index] += 1;
        }
        Ok(counts)
    }

    /// The number of clients.
    ///
    /// # Errors
    /// If it is missing, zero, too large, or contradicts the groups.
    pub fn client_count(&self) -> Result<usize, PopulationError> {
        let clients: usize = self.groups()?.iter().map(|(_, _, count)| count).sum();
        if clients == 0 || u32::try_from(clients).is_err() {
            let message = format!("found {clients} clients; expected between 1 and {}", u32::MAX);
            let path = if self.clients.is_some() { "population.clients" } else { "population" };
            return Err(PopulationError::new(path, message));
        }
        Ok(clients)
    }

    /// Makes the file names of empirical laws relative to `base`, the folder of the scenario.
    pub fn resolve_paths(&mut self, base: &Path) {
        let groups = self.group.iter_mut().map(|group| (&mut group.latency, &mut group.device));
        for (latency, device) in groups.chain([(&mut self.latency, &mut self.device)]) {
            if let Some(latency) = latency {
                for law in [&mut latency.download, &mut latency.compute, &mut latency.upload] {
                    law.0.resolve_paths(base);
                }
            }
            if let Some(jitter) = device.as_mut().and_then(|device| device.jitter.as_mut()) {
                for law in [&mut jitter.download, &mut jitter.compute, &mut jitter.upload].into_iter().flatten() {
                    law.0.resolve_paths(base);
                }
            }
        }
    }

    /// Builds the clients of one seed.
    ///
    /// # Errors
    /// Path, what was found and what would be right.
    pub fn build(&self, work: &Work<'_>, streams: &Streams) -> Result<Population, PopulationError> {
        let clients = self.client_count()?;
        let mut builder = Builder {
            population: Population {
                groups: Vec::new(),
                group_of: Vec::with_capacity(clients),
                laws: Vec::new(),
                law_of: Vec::with_capacity(clients),
                data_sizes: Vec::with_capacity(clients),
                data_qualities: Vec::with_capacity(clients),
            },
            work: *work,
            streams,
        };
        for (path, group, count) in self.groups()? {
            builder.group(&path, &group, count)?;
        }
        Ok(builder.population)
    }
}

struct Builder<'a> {
    population: Population,
    work: Work<'a>,
    streams: &'a Streams,
}

/// Places of per-client draws that belong to no phase.
const DATA_SIZE: u32 = 48;
const DATA_QUALITY: u32 = 49;
const SPEED: [u32; 3] = [50, 51, 52];

impl Builder<'_> {
    fn group(&mut self, path: &str, group: &GroupConfig, count: usize) -> Result<(), PopulationError> {
        let first = self.population.len();
        let number = u32::try_from(self.population.groups.len()).expect("fewer groups than clients");
        let hazards = group.hazards(path)?;
        self.population.groups.push(Group {
            name: group.name.clone(),
            first: ClientId::from_index(first),
            count,
            hazards,
        });
        for in_group in 0..count {
            let client = ClientId::from_index(first + in_group);
            let place = ClientPlace { client: client.0, in_group, streams: self.streams };
            self.data(path, group, &place, count)?;
            self.population.group_of.push(number);
        }
        match (&group.latency, &group.device) {
            (Some(latency), None) => self.latency(path, latency, first, count),
            (None, Some(device)) => self.device(path, device, first, count),
            (Some(_), Some(_)) => Err(PopulationError::new(path, "give either latency or device, not both")),
            (None, None) => {
                let message = "how long jobs take is missing; give latency = { download, compute, upload } or device";
                Err(PopulationError::new(path, message))
            }
        }
    }

    fn data(
        &mut self,
        path: &str,
        group: &GroupConfig,
        place: &ClientPlace<'_>,
        count: usize,
    ) -> Result<(), PopulationError> {
        let at = |key: &str, message| PopulationError::new(format!("{path}.{key}"), message);
        let number = |parameter: &Option<PlainParameter>, key: &str, default: f64, index| match parameter {
            None => Ok(default),
            Some(parameter) => parameter
                .0
                .check_length(count)
                .and_then(|()| parameter.0.value(place, index))
                .map_err(|message| at(key, message)),
        };
        let size = match self.work.data_sizes {
            Some(sizes) => sizes[place.client as usize],
            None => {
                let size = libm::round(number(&group.data_size, "data_size", 1.0, DATA_SIZE)?);
                if !(1.0..=f64::from(u32::MAX)).contains(&size) {
                    return Err(at("data_size", format!("found {size}; expected a whole number of at least 1")));
                }
                size as u32
            }
        };
        let quality = number(&group.data_quality, "data_quality", 1.0, DATA_QUALITY)?;
        if !(quality > 0.0 && quality <= 1.0) {
            return Err(at("data_quality", format!("found {quality}; expected a number above 0 and at most 1")));
        }
        self.population.data_sizes.push(size);
        self.population.data_qualities.push(quality);
        Ok(())
    }

    fn latency(
        &mut self,
        path: &str,
        latency: &LatencyConfig,
        first: usize,
        count: usize,
    ) -> Result<(), PopulationError> {
        let laws = [&latency.download.0, &latency.compute.0, &latency.upload.0];
        let mut shared = [None; 3];
        for in_group in 0..count {
            let place =
                ClientPlace { client: ClientId::from_index(first + in_group).0, in_group, streams: self.streams };
            let mut indices = [0; 3];
            for phase in Phase::ALL {
                let law = laws[phase.index()];
                let at = |message| PopulationError::new(format!("{path}.latency.{phase}"), message);
                indices[phase.index()] = match shared[phase.index()] {
                    Some(index) => index,
                    None => {
                        law.check_lengths(count).map_err(at)?;
                        let built = law.build(&place, phase.index() as u32).map_err(at)?;
                        let index = self.intern(built);
                        if law.is_fixed() {
                            shared[phase.index()] = Some(index);
                        }
                        index
                    }
                };
            }
            self.population.law_of.push(indices);
        }
        Ok(())
    }

    fn device(&mut self, path: &str, device: &DeviceConfig, first: usize, count: usize) -> Result<(), PopulationError> {
        let path = format!("{path}.device");
        let payload_bits = self.work.payload_bytes as f64 * 8.0;
        let rates = [
            ("downlink", &device.downlink.0),
            ("samples_per_second", &device.samples_per_second.0),
            ("uplink", &device.uplink.0),
        ];
        let jitter = device.jitter.clone().unwrap_or_default();
        let jitter = [jitter.download, jitter.compute, jitter.upload];
        for in_group in 0..count {
            let client = ClientId::from_index(first + in_group);
            let place = ClientPlace { client: client.0, in_group, streams: self.streams };
            let examples = self.work.training.examples(self.population.data_sizes[client.index()] as usize);
            let mut indices = [0; 3];
            for phase in Phase::ALL {
                let (key, rate) = rates[phase.index()];
                let at = |message| PopulationError::new(format!("{path}.{key}"), message);
                rate.check_length(count).map_err(at)?;
                let rate = rate.value(&place, SPEED[phase.index()]).map_err(at)?;
                if rate.is_nan() || rate <= 0.0 {
                    return Err(at(format!("found {rate}; expected a rate above 0")));
                }
                let work = if phase == Phase::Compute { examples } else { payload_bits };
                let seconds = work / rate;
                let law = match &jitter[phase.index()] {
                    Some(factor) if seconds > 0.0 => {
                        let at = |message| PopulationError::new(format!("{path}.jitter.{phase}"), message);
                        factor.0.check_lengths(count).map_err(at)?;
                        factor.0.build(&place, phase.index() as u32).map_err(at)?.scaled(seconds)
                    }
                    _ => AnyLaw::from(Constant::new(seconds).map_err(|error| at(error.to_string()))?),
                };
                indices[phase.index()] = self.intern(law);
            }
            self.population.law_of.push(indices);
        }
        Ok(())
    }

    /// The law's place in the table; the same law next to itself is stored once.
    fn intern(&mut self, law: AnyLaw) -> u32 {
        let laws = &mut self.population.laws;
        let recent = laws.len().saturating_sub(6);
        let known = laws[recent..].iter().position(|known| *known == law).map(|place| recent + place);
        let index = known.unwrap_or_else(|| {
            laws.push(law);
            laws.len() - 1
        });
        u32::try_from(index).expect("fewer than 2^32 laws")
    }
}

impl GroupConfig {
    fn hazards(&self, path: &str) -> Result<[f64; 3], PopulationError> {
        let Some(dropout) = &self.dropout else { return Ok([0.0; 3]) };
        let mut hazards = [0.0; 3];
        for (phase, rate) in Phase::ALL.into_iter().zip([dropout.download, dropout.compute, dropout.upload]) {
            let rate = rate.map_or(0.0, |rate| rate.0);
            if rate.is_nan() || rate < 0.0 {
                let message = format!("found {rate} /s; expected a hazard rate of at least 0");
                return Err(PopulationError::new(format!("{path}.dropout.{phase}"), message));
            }
            hazards[phase.index()] = rate;
        }
        Ok(hazards)
    }
}
