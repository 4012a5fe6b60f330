//! The `[population]` section: groups, latency laws or device profiles, dropouts, data.

mod build;
mod dropout;
mod preset;

pub use dropout::{DropoutConfig, PhaseDropout};
pub use preset::Preset;

use super::Population;
use super::availability::AvailabilityConfig;
use super::battery::BatteryConfig;
use super::forecast::{Forecast, ForecastConfig};
use super::law::{FactorLaw, LinkParameter, PlainParameter, TimeLaw};
use super::phase::Interruption;
use super::recorded::{RecordedConfig, Recording};
pub(crate) use build::check_durations;
pub(crate) use dropout::Losses;

use build::Builder;
use fedgenie_core::config::Complaint;
use fedgenie_core::limits;
use fedgenie_core::rng::Streams;
use fedgenie_learning::trainer::LocalTraining;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Declares a table of the keys that describe clients, between keys of its own.
macro_rules! describes_clients {
    ($(#[$of_table:meta])* $name:ident { $($own:tt)* } { $($last:tt)* }) => {
        $(#[$of_table])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
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
            /// Dropout: a probability per job, or hazards and probabilities per phase.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub dropout: Option<DropoutConfig>,
            /// When devices are available (default `always`).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub availability: Option<AvailabilityConfig>,
            /// Fate of a job when its device goes away (default `pause`).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub interrupted: Option<Interruption>,
            /// Batteries; without them, clients have energy for everything.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub battery: Option<BatteryConfig>,
            $($last)*
        }

        impl $name {
            /// Makes the file names of these keys relative; see [`PopulationConfig::resolve_paths`].
            fn resolve_own_paths(&mut self, base: &Path, data: Option<&Path>) {
                let Self { data_size, data_quality, latency, device, availability, battery, .. } = self;
                [data_size, data_quality].into_iter().flatten().for_each(|number| number.0.resolve_paths(base, data));
                if let Some(LatencyConfig { download, compute, upload }) = latency {
                    [download, compute, upload].into_iter().for_each(|law| law.resolve_paths(base, data));
                }
                if let Some(device) = device {
                    device.resolve_paths(base, data);
                }
                if let Some(availability) = availability {
                    availability.resolve_paths(base, data);
                }
                if let Some(battery) = battery {
                    battery.resolve_paths(base, data);
                }
            }
        }
    };
}

describes_clients! {
    /// The `[population]` section. Each key is the default of all groups.
    PopulationConfig {
        /// Number of clients; may be left out when every group gives its count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub clients: Option<usize>,
        /// A population known by name, instead of clients, groups, latency laws and device.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub preset: Option<Preset>,
        /// A log of jobs that the clients replay, instead of clients, groups, latency laws, device, dropout and
        /// availability.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub recorded: Option<RecordedConfig>,
        /// Forecasts of availability for policies; without it there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub forecast: Option<ForecastConfig>,
    } {
        /// Groups of clients; ids count up through them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub group: Vec<GroupConfig>,
    }
}

describes_clients! {
    /// One `[[population.group]]`. A key that is left out is taken from `[population]`.
    GroupConfig {
        /// Name, for selection counts in the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub name: Option<String>,
        /// Number of clients.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub count: Option<usize>,
        /// Share of `population.clients`, between 0 and 1, instead of a count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub share: Option<f64>,
    } {}
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
    /// Rate from server to client, or a trace of it over time.
    pub downlink: LinkParameter,
    /// Rate from client to server, or a trace of it over time.
    pub uplink: LinkParameter,
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

/// The parts of a job, for device profiles.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    /// Examples per client, where the task partitions data.
    pub data_sizes: Option<&'a [u32]>,
    /// The training that one job does.
    pub training: &'a LocalTraining,
    /// Bytes of the model, each way.
    pub payload_bytes: u64,
}

impl PopulationConfig {
    /// The groups with everything they inherit, and their sizes.
    fn groups(&self) -> Result<Vec<(String, GroupConfig, usize)>, Complaint> {
        if let Some(preset) = self.preset.filter(|_| self.recorded.is_none()) {
            return self.preset_groups(preset);
        }
        if let Some(recording) = self.recording()? {
            return self.recorded_group(&recording);
        }
        let whole = GroupConfig {
            data_size: self.data_size.clone(),
            data_quality: self.data_quality.clone(),
            latency: self.latency.clone(),
            device: self.device.clone(),
            dropout: self.dropout.clone(),
            availability: self.availability.clone(),
            interrupted: self.interrupted,
            battery: self.battery.clone(),
            ..GroupConfig::default()
        };
        if self.group.is_empty() {
            let message = "the number of clients is missing; write for example clients = 20";
            let clients = self.clients.ok_or_else(|| Complaint::new("population.clients", message))?;
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
                availability: group.availability.clone().or_else(|| whole.availability.clone()),
                interrupted: group.interrupted.or(whole.interrupted),
                battery: group.battery.clone().or_else(|| whole.battery.clone()),
                ..group.clone()
            };
            (format!("population.group.{index}"), merged, counts[index])
        };
        Ok(self.group.iter().enumerate().map(inherit).collect())
    }

    /// The groups of a preset, with the other keys for all clients.
    fn preset_groups(&self, preset: Preset) -> Result<Vec<(String, GroupConfig, usize)>, Complaint> {
        let said = [
            ("clients", self.clients.is_some()),
            ("group", !self.group.is_empty()),
            ("latency", self.latency.is_some()),
            ("device", self.device.is_some()),
        ];
        if let Some((key, _)) = said.into_iter().find(|&(_, is_said)| is_said) {
            let message = format!("the preset {:?} says this; leave it out, or the preset", preset.name());
            return Err(Complaint::new(format!("population.{key}"), message));
        }
        Self { preset: None, group: preset.groups(), ..self.clone() }.groups()
    }

    /// The log that the clients replay, if they do.
    fn recording(&self) -> Result<Option<Arc<Recording>>, Complaint> {
        let read = self.recorded.as_ref().map(RecordedConfig::recording).transpose();
        read.map_err(|message| Complaint::new("population.recorded", message))
    }

    /// The clients of a log, with the keys that a log does not say.
    fn recorded_group(&self, recording: &Recording) -> Result<Vec<(String, GroupConfig, usize)>, Complaint> {
        let clients = recording.clients();
        let said = [
            ("preset", self.preset.is_some()),
            ("group", !self.group.is_empty()),
            ("latency", self.latency.is_some()),
            ("device", self.device.is_some()),
            ("dropout", self.dropout.is_some()),
            ("availability", self.availability.is_some()),
            ("interrupted", self.interrupted.is_some()),
            ("battery", self.battery.is_some()),
        ];
        if let Some((key, _)) = said.into_iter().find(|&(_, is_said)| is_said) {
            let message = "clients replay the log of population.recorded, each of its jobs as it was; leave this out, or \
                           the log";
            return Err(Complaint::new(format!("population.{key}"), message));
        }
        match self.clients {
            Some(given) if given != clients => {
                let message = format!("found {given}, but the log has {clients} clients; leave it out");
                Err(Complaint::new("population.clients", message))
            }
            _ => {
                let (data_size, data_quality) = (self.data_size.clone(), self.data_quality.clone());
                let whole = GroupConfig { data_size, data_quality, ..GroupConfig::default() };
                Ok(vec![("population".to_owned(), whole, clients)])
            }
        }
    }

    /// Clients per group: counts as given, shares of `clients` by largest remainder.
    fn group_counts(&self) -> Result<Vec<usize>, Complaint> {
        let mut counts = vec![0; self.group.len()];
        let mut shares = Vec::new();
        for (index, group) in self.group.iter().enumerate() {
            let path = format!("population.group.{index}");
            match (group.count, group.share) {
                (Some(count), None) => counts[index] = count,
                (None, Some(share)) if share > 0.0 && share <= 1.0 => shares.push((index, share)),
                (None, Some(share)) => {
                    let message = format!("found {share}; expected a number above 0 and at most 1");
                    return Err(Complaint::new(format!("{path}.share"), message));
                }
                _ => {
                    return Err(Complaint::new(path, "give either count or share, such as count = 50 or share = 0.1"));
                }
            }
        }
        let counted = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
        let Some(clients) = self.clients else {
            if shares.is_empty() {
                return Ok(counts);
            }
            return Err(Complaint::new("population.clients", "is missing; shares need the number of clients"));
        };
        let wrong = |found: String| {
            let message = format!("found {clients}, but the groups add up to {found}; make them agree");
            Err(Complaint::new("population.clients", message))
        };
        let exact: Vec<(usize, f64)> = shares.iter().map(|&(index, share)| (index, share * clients as f64)).collect();
        let shared: f64 = exact.iter().map(|(_, exact)| exact).sum();
        if (counted as f64 + shared - clients as f64).abs() > 1e-6 * clients.max(1) as f64 {
            return wrong(format!("{}", counted as f64 + shared));
        }
        let mut left = clients.saturating_sub(counted);
        let mut remainders = Vec::new();
        for &(index, exact) in &exact {
            // A share that is a whole number up to rounding is that number.
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
    /// If it is missing, zero, too large for memory, or contradicts the groups.
    pub fn client_count(&self) -> Result<usize, Complaint> {
        let clients: u128 = self.groups()?.iter().map(|&(_, _, count)| count as u128).sum();
        let wrong = |message| {
            let path = if self.clients.is_some() { "population.clients" } else { "population" };
            Err(Complaint::new(path, message))
        };
        let needed = clients * u128::from(limits::CLIENT_BYTES);
        match limits::afford(format!("{clients} clients"), needed) {
            _ if clients == 0 || clients > limits::CLIENTS as u128 => {
                let taken = limits::memory(needed);
                let taken =
                    if clients == 0 { String::new() } else { format!("; they would take about {taken} of memory") };
                wrong(format!("found {clients} clients; expected between 1 and {}{taken}", limits::CLIENTS))
            }
            Err(error) => wrong(error.to_string()),
            Ok(()) => Ok(clients as usize),
        }
    }

    /// Makes file names relative: those of empirical laws to `base`, the folder of the scenario; those of traces and
    /// tables as [`located`](fedgenie_learning::data::located) says.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.resolve_own_paths(base, data);
        self.recorded.iter_mut().for_each(|recorded| recorded.resolve_paths(base, data));
        self.group.iter_mut().for_each(|group| group.resolve_own_paths(base, data));
    }

    /// The forecasts of availability, if there are any.
    fn forecast(&self) -> Result<Option<Forecast>, Complaint> {
        let checked = self.forecast.as_ref().map(ForecastConfig::checked).transpose();
        checked.map_err(|complaint| complaint.below("population.forecast"))
    }

    /// Builds the clients of one seed.
    ///
    /// # Errors
    /// Path, found and expected value.
    pub fn build(&self, work: &Work<'_>, streams: &Streams) -> Result<Population, Complaint> {
        let clients = self.client_count()?;
        let mut builder = Builder::new(clients, work, streams, self.recording()?);
        for (path, group, count) in self.groups()? {
            builder.group(&path, &group, count)?;
        }
        Ok(builder.finish(self.forecast()?))
    }
}

impl DeviceConfig {
    fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        self.samples_per_second.0.resolve_paths(base, data);
        [&mut self.downlink, &mut self.uplink].into_iter().for_each(|link| link.resolve_paths(base, data));
        if let Some(JitterConfig { download, compute, upload }) = &mut self.jitter {
            [download, compute, upload].into_iter().flatten().for_each(|law| law.resolve_paths(base, data));
        }
    }
}
