//! The `availability` key of a scenario.

use super::diurnal::{self};
use super::{Process, on_off, trace};
use crate::population::law::{AnyParameter, GroupClient};
use crate::population::trace::join::Source;
use fedgenie_core::catalogue::{Catalogue, Entry};
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use fedgenie_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The kinds of availability that scenarios can name.
pub static CATALOGUE: Catalogue = Catalogue {
    kind: "availability",
    definition: "AvailabilityConfig",
    entries: &[
        Entry { name: "always", summary: "", source: include_str!("always.rs") },
        Entry { name: "on-off", summary: "", source: include_str!("on_off.rs") },
        Entry { name: "diurnal", summary: "", source: include_str!("diurnal.rs") },
        Entry { name: "trace", summary: "", source: include_str!("trace.rs") },
    ],
    shared: "",
};

/// `availability`: when devices are available.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AvailabilityConfig {
    /// Devices are always available.
    #[default]
    Always,
    /// Devices alternate between available and away: an alternating renewal process.
    OnOff(on_off::Config),
    /// Devices are available with a probability that depends on the hour of the day.
    Diurnal(diurnal::Config),
    /// Devices follow recorded intervals of availability.
    Trace(trace::Config),
}

/// Numbers of a client's parameter, an offset or a phase, and of its laws, the two of a renewal process.
pub(super) const OFFSET: u32 = 53;
pub(super) const ON_LAW: u32 = 4;
pub(super) const OFF_LAW: u32 = 5;

/// The clients of a group.
#[derive(Clone, Copy)]
pub struct GroupClients<'a> {
    pub first: usize,
    pub count: usize,
    pub streams: &'a Streams,
}

impl<'a> GroupClients<'a> {
    /// The client with this number in the group.
    pub fn client(&self, in_group: usize) -> GroupClient<'a> {
        GroupClient { client: ClientId::from_index(self.first + in_group).0, in_group, streams: self.streams }
    }
}

/// A duration in ns per client.
#[derive(Clone, Debug)]
pub enum Offsets {
    Shared(u64),
    Each(Box<[u64]>),
}

impl Offsets {
    pub fn new(parameter: &dyn AnyParameter, group: &GroupClients<'_>, index: u32) -> Result<Self, String> {
        parameter.check_length(group.count)?;
        let of = |in_group: usize| {
            let seconds = parameter.value(&group.client(in_group), index)?;
            Span::from_seconds(seconds).map(|span| span.0).map_err(|error| format!("found {seconds} s: {error}"))
        };
        if parameter.is_fixed() {
            return of(0).map(Self::Shared);
        }
        (0..group.count).map(of).collect::<Result<_, _>>().map(Self::Each)
    }

    pub fn of(&self, in_group: usize) -> u64 {
        match self {
            Self::Shared(offset) => *offset,
            Self::Each(offsets) => offsets[in_group],
        }
    }
}

impl AvailabilityConfig {
    /// The kind's name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::OnOff(_) => "on-off",
            Self::Diurnal(_) => "diurnal",
            Self::Trace(_) => "trace",
        }
    }

    /// Makes file names relative: traces to `data`, the folder given by the user, or else to `base`, the folder of the
    /// scenario.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        match self {
            Self::Always => {}
            Self::OnOff(config) => {
                config.on.resolve_paths(base, data);
                config.off.resolve_paths(base, data);
            }
            Self::Diurnal(config) => config.phase.0.resolve_paths(base, data),
            Self::Trace(config) => {
                config.resolve_paths(base, data);
                config.offset.0.resolve_paths(base, data);
            }
        }
    }

    /// Appends the files that it reads, as far as they can be read.
    pub(in crate::population) fn sources(&self, found: &mut Vec<Source>) {
        match self {
            Self::Always => {}
            Self::OnOff(config) => {
                config.on.sources("availability.on-off.on", found);
                config.off.sources("availability.on-off.off", found);
            }
            Self::Diurnal(config) => config.phase.0.sources("availability.diurnal.phase", found),
            Self::Trace(config) => config.sources("availability.trace", found),
        }
    }

    /// The process of a group; the path of a complaint is below `availability`.
    pub(super) fn process(&self, group: &GroupClients<'_>, notes: &mut Vec<String>) -> Result<Process, Complaint> {
        let process = match self {
            Self::Always => Ok(Process::Always),
            Self::OnOff(config) => config.build(group).map(Box::new).map(Process::OnOff),
            Self::Diurnal(config) => config.build(group).map(Box::new).map(Process::Diurnal),
            Self::Trace(config) => config.build(group, notes).map(Process::Trace),
        };
        match self {
            Self::Always => {}
            Self::OnOff(config) => [&config.on, &config.off].into_iter().for_each(|law| law.notes(notes)),
            Self::Diurnal(config) => config.phase.0.notes(notes),
            Self::Trace(config) => config.offset.0.notes(notes),
        }
        process.map_err(|complaint| complaint.below(self.kind()))
    }
}
