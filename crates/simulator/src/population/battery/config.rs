//! `[population.battery]`: phones that drain and charge.
//!
//! # Definition
//! ```text
//! level' = charger − draw, held in [0, capacity]
//! ```
//! exact between events. At time 0 the level is `start·capacity`. `draw` is `idle` between jobs; in a job it is that of
//! the phase, `receive`, `compute` or `send`, and `idle` while the job waits for a device that is away. The charger
//! gives `power` in the hours of the client's day, whose clock shows `phase` at time 0, or in the intervals of a
//! `file`, and nothing otherwise. An empty phone whose charger gives less than its draw is off: it neither draws nor
//! charges. A full one takes what it draws.
//!
//! *Jobs.* A client is a candidate while it has no job, its device is available, and its level is at least
//! `reserve·capacity`, and not 0: from the first nanosecond on at which this holds. A job that has begun goes on below
//! the reserve. It is lost at the first nanosecond at which the level is 0, with the reason `battery`; a phase that
//! ends at this very nanosecond has ended. The server learns of a loss at its timeout. Answers to probes and
//! evaluations draw nothing beside `idle`.
//!
//! With `level = "seen"` policies that declare it see the levels of candidates; with `"hidden"` none does.
//!
//! # Inputs
//! `capacity`: above 0, at most 1 GJ; J, kJ or Wh. `start` and `reserve`: from 0 to 1. Powers: from 0 to 1 kW; mW or W;
//! 0 if left out. With `charge`, its power is above `idle`, for every client: a battery that can never charge is
//! refused, and without `charge` one whose `start` is below `reserve`. Each may be a law, drawn once per client, or a
//! list: `describe value/number`.
//!
//! # Deviations from the source
//! Ours. Charging has one power, whatever the level; a battery keeps its capacity; voltage and heat play no part.
//!
//! # Cost
//! 16 bytes per client, and 72 more where capacities, shares or powers differ. A level is worked out when somebody asks
//! for it, in one step per piece of the charger's day since the last time.
//!
//! # Determinism
//! Whole numbers, the same on every platform. Capacities are rounded to the nearest nJ, powers to the nearest nW,
//! shares to the nearest 10⁻⁹; then powers to whole units of the smallest power of ten of nW in which the capacity
//! times 1 ns is below 2⁶³: 10 µW for 40 kJ, which would take 126 years to drain it. Parameters are drawn from the
//! streams (PopulationParameter, client, 96 to 104).
//!
//! # Example
//! ```toml
//! [population.battery]
//! capacity = "40 kJ"
//! start = { uniform = [0.3, 1.0] }
//! reserve = 0.2
//! idle = "50 mW"
//! receive = "400 mW"
//! compute = "2 W"
//! send = "800 mW"
//! charge = { power = "5 W", hours = [[22, 24], [0, 6]], phase = { uniform = ["0 h", "24 h"] } }
//! ```

use super::charger::{Charger, PHASE, bounds};
use super::{Bank, Make};
use crate::population::availability::{GroupClients, Offsets, trace};
use crate::population::law::{
    AnyParameter, ClientNumber, EnergyParameter, Parameter, PlainParameter, PowerParameter, TimeParameter,
};
use crate::population::trace::join::Source;
use crate::population::trace::{Assign, AvailabilityTraces, Imported, Memo};
use fedgenie_core::config::{Complaint, check};
use fedgenie_core::id::ClientId;
use fedgenie_core::units::{Amount, Duration};
use fedgenie_learning::data::located;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Numbers of a client's parameters: capacity, start, reserve, the four draws, the charger's power.
const FIRST: u32 = 96;
/// The largest capacity, in joules.
const MOST_JOULES: f64 = 1e9;
/// The largest power, in watts.
const MOST_WATTS: f64 = 1e3;

/// Batteries: see the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatteryConfig {
    /// Energy of a full battery.
    pub capacity: EnergyParameter,
    /// Level at time 0, as a share of the capacity.
    #[serde(default = "full")]
    pub start: PlainParameter,
    /// Share of the capacity below which a client is no candidate.
    #[serde(default)]
    pub reserve: PlainParameter,
    /// Draw between jobs.
    #[serde(default)]
    pub idle: PowerParameter,
    /// Draw while downloading, in the place of `idle`.
    #[serde(default)]
    pub receive: PowerParameter,
    /// Draw while computing.
    #[serde(default)]
    pub compute: PowerParameter,
    /// Draw while uploading.
    #[serde(default)]
    pub send: PowerParameter,
    /// The charger; without it, batteries are never charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<ChargeConfig>,
    /// Whether policies may see levels.
    #[serde(default)]
    pub level: Visibility,
}

fn full() -> PlainParameter {
    ClientNumber(Parameter::Fixed(Amount::new(1.0)))
}

/// Whether policies may see levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Visibility {
    /// They may.
    #[default]
    Seen,
    /// They may not.
    Hidden,
}

/// `charge = { power = "5 W", hours = [[22, 24], [0, 6]] }`, or with a `file` of intervals in the place of hours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct ChargeConfig {
    /// What the charger gives while it is on.
    pub power: PowerParameter,
    /// Hours of the client's day in which it is on: from the first on, up to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Vec<[f64; 2]>>,
    /// Time on the client's clock at time 0, for hours.
    #[serde(default, skip_serializing_if = "is_default")]
    pub phase: TimeParameter,
    /// Intervals in which it is on: columns `client`, `start_s`, `end_s`, as of availability traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// How long all traces of the file last; up to its last end when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Duration>,
    /// The assignment of traces to clients.
    #[serde(default, skip_serializing_if = "is_default")]
    pub assign: Assign,
    /// Where in its trace a client is at time 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: TimeParameter,
    /// Whether a trace begins again where its window ends.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub wrap: bool,
    #[serde(skip)]
    memo: Memo<Imported<AvailabilityTraces>>,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ChargeConfig {
    /// The charger of a group; the path of a complaint is below `charge`.
    fn charger(&self, group: &GroupClients<'_>, notes: &mut Vec<String>) -> Result<Charger, Complaint> {
        match (&self.hours, self.intervals()) {
            (Some(_), Some(_)) => Err(Complaint::new("", "gives hours and a file; take one of the two out")),
            (None, None) => {
                let message = "says not when; give hours = [[22, 24], [0, 6]], or a file of intervals";
                Err(Complaint::new("hours", message))
            }
            (Some(hours), None) => {
                let of_files = [
                    ("window", self.window.is_some()),
                    ("assign", self.assign != Assign::default()),
                    ("offset", self.offset != TimeParameter::default()),
                    ("wrap", !self.wrap),
                ];
                if let Some((key, _)) = of_files.into_iter().find(|(_, is_given)| *is_given) {
                    return Err(Complaint::new(key, "is of a file; with hours, take it out, or give phase"));
                }
                let phases = Offsets::new(&self.phase.0, group, PHASE);
                let phases = phases.map_err(|message| Complaint::new("phase", message))?;
                Ok(Charger::Hours(bounds(hours)?, phases))
            }
            (None, Some(_)) if self.phase != TimeParameter::default() => {
                Err(Complaint::new("phase", "is of hours; with a file, give offset"))
            }
            (None, Some(intervals)) => intervals.build_at(group, notes, PHASE).map(Charger::Intervals),
        }
    }

    /// The intervals of its file, if it has one.
    fn intervals(&self) -> Option<trace::Config> {
        let file = self.file.clone()?;
        let Self { window, assign, offset, wrap, memo, .. } = self;
        Some(trace::Config::of_intervals(file, *window, (*assign, offset.clone(), *wrap), memo.clone()))
    }
}

impl BatteryConfig {
    /// Keys and values of its numbers, in the order of their draws.
    fn numbers(&self) -> [(&'static str, &dyn AnyParameter); 7] {
        [
            ("capacity", &self.capacity.0),
            ("start", &self.start.0),
            ("reserve", &self.reserve.0),
            ("idle", &self.idle.0),
            ("receive", &self.receive.0),
            ("compute", &self.compute.0),
            ("send", &self.send.0),
        ]
    }

    /// All its numbers, those of the charger too.
    fn all_numbers(&self) -> Vec<(&'static str, &dyn AnyParameter)> {
        let mut all = self.numbers().to_vec();
        if let Some(charge) = &self.charge {
            all.push(("charge.power", &charge.power.0));
            all.push(("charge.phase", &charge.phase.0));
            all.push(("charge.offset", &charge.offset.0));
        }
        all
    }

    /// Makes file names relative: traces to `data`, the folder given by the user, or else to `base`, the folder of the
    /// scenario.
    pub fn resolve_paths(&mut self, base: &Path, data: Option<&Path>) {
        let Self { capacity, start, reserve, idle, receive, compute, send, charge, level: _ } = self;
        capacity.0.resolve_paths(base, data);
        [start, reserve].into_iter().for_each(|number| number.0.resolve_paths(base, data));
        [idle, receive, compute, send].into_iter().for_each(|power| power.0.resolve_paths(base, data));
        let Some(ChargeConfig { power, phase, offset, file, memo, .. }) = charge else { return };
        power.0.resolve_paths(base, data);
        [phase, offset].into_iter().for_each(|time| time.0.resolve_paths(base, data));
        if let Some(file) = file {
            *memo = Memo::default();
            *file = located(file, base, data);
        }
    }

    /// Appends the files that it reads, as far as they can be read.
    pub(in crate::population) fn sources(&self, found: &mut Vec<Source>) {
        self.all_numbers().into_iter().for_each(|(key, number)| number.sources(&format!("battery.{key}"), found));
        let intervals = self.charge.as_ref().and_then(ChargeConfig::intervals);
        intervals.iter().for_each(|intervals| intervals.sources("battery.charge", found));
    }

    /// Appends warnings about the files that were read.
    pub(in crate::population) fn notes(&self, notes: &mut Vec<String>) {
        self.all_numbers().into_iter().for_each(|(_, number)| number.notes(notes));
    }

    /// The batteries of a group; the path of a complaint is below `battery`.
    pub(super) fn bank(&self, group: &GroupClients<'_>, notes: &mut Vec<String>) -> Result<Bank, Complaint> {
        let charger = match &self.charge {
            None => Charger::Never,
            Some(charge) => charge.charger(group, notes).map_err(|complaint| complaint.below("charge"))?,
        };
        for (key, number) in self.all_numbers() {
            number.check_length(group.count).map_err(|message| Complaint::new(key, message))?;
        }
        let charges = self.charge.as_ref().map(|charge| &charge.power.0);
        let is_fixed =
            self.numbers().iter().all(|(_, number)| number.is_fixed()) && charges.is_none_or(AnyParameter::is_fixed);
        let count = if is_fixed { group.count.min(1) } else { group.count };
        let makes = (0..count).map(|in_group| self.make(group, in_group)).collect::<Result<_, _>>()?;
        Ok(Bank { first: group.first, makes, charger, is_seen: self.level == Visibility::Seen })
    }

    /// A client's battery, if its numbers are possible.
    fn make(&self, group: &GroupClients<'_>, in_group: usize) -> Result<Make, Complaint> {
        let client = group.client(in_group);
        let value = |place: usize, (key, number): (&'static str, &dyn AnyParameter)| {
            let found = number.value(&client, FIRST + place as u32).map_err(|message| Complaint::new(key, message))?;
            match place {
                0 => check(key, found, f64::MIN_POSITIVE..=MOST_JOULES, "a capacity above 0 J and at most 1e9 J"),
                1 | 2 => check(key, found, 0.0..=1.0, "a share from 0 to 1"),
                _ => check(key, found, 0.0..=MOST_WATTS, "a power from 0 W to 1000 W"),
            }
        };
        let mut found = [0.0; 8];
        for (place, number) in self.numbers().into_iter().enumerate() {
            found[place] = value(place, number)?;
        }
        if let Some(charge) = &self.charge {
            found[7] = value(7, ("charge.power", &charge.power.0))?;
        }
        let [capacity, start, reserve, idle, receive, compute, send, charger] = found;
        let make = Make::new(capacity, [start, reserve], [idle, receive, compute, send], charger);
        if make.capacity == 0 {
            return Err(Complaint::new("capacity", format!("found {capacity} J; expected at least 1e-9 J")));
        }
        let never = |key: &str, why: String| {
            let whose = ClientId(client.client);
            Err(Complaint::new(key, format!("{why}; the battery of {whose} can never charge")))
        };
        match self.charge {
            Some(_) if make.charger <= make.draws[0] => never(
                "charge.power",
                format!("found {charger} W, and idle draws {idle} W; give more, or take charge out"),
            ),
            None if start < reserve => never(
                "charge",
                format!(
                    "is missing, and start ({start}) is below reserve ({reserve}); give a charger, or a higher start"
                ),
            ),
            _ => Ok(make),
        }
    }
}
