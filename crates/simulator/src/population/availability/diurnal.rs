//! Devices are available with a probability that depends on the hour of the day.
//!
//! # Definition
//! A Markov process with two states. An available device leaves at the constant hazard `1/mean_on`; an away device
//! returns at the hazard `p_h / ((1 − p_h) · mean_on)`, with `p_h = hourly[h]` for the hour h of the client's day. With
//! the same `p_h` all day, a device is available for the share `p_h` of the time; after a change of `p_h` the share
//! follows within about `mean_on`. The client's clock shows `phase` at time 0. The state at time 0 has the periodic
//! stationary law.
//!
//! # Inputs
//! `hourly`: 24 probabilities, above 0 and below 1, the first for the hour after midnight. `mean_on`: a duration of at
//! least 1 ms. `phase`: a duration, or a law to draw it from per client (default 0).
//!
//! # Source
//! Ours. Phones are available for learning mostly at night: Bonawitz et al., "Towards Federated Learning at
//! Scale: System Design", MLSys 2019, Section 9 and figure 5.
//!
//! # Deviations from the source
//! The paper gives no model.
//!
//! # Cost
//! Per stretch a random number, a logarithm and a walk over at most 25 hours: the cumulative hazard is piecewise linear
//! and is inverted exactly, up to rounding to the nearest ns (at least 1 ns). A query for an earlier time than the last
//! one walks through the client's stretches from the first.
//!
//! # Determinism
//! As in `on-off`: uniform 0 of the client decides the state at time 0, uniform n + 1 the duration of stretch n.
//! Stretch n ends when the cumulative hazard reaches `−ln u`.
//!
//! # Example
//! ```toml
//! availability = { diurnal = { hourly = [0.5, 0.6, 0.6, 0.6, 0.6, 0.5, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1,
//!     0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.3, 0.4], mean_on = "30 min", phase = { uniform = ["0 h", "24 h"] } } }
//! ```

use super::draws::Draws;
use super::on_off::nanoseconds;
use super::{GroupClients, OFFSET, Offsets, State};
use crate::population::law::TimeParameter;
use fedgenie_core::config::Complaint;
use fedgenie_core::math::float::{exp, floor, ln};
use fedgenie_core::units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;
const HOUR_SECONDS: f64 = 3600.0;

/// `diurnal`: see the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Probability that a device is available, for each of the 24 hours of its day.
    pub hourly: Vec<f64>,
    /// Mean time for which a device is available.
    pub mean_on: Duration,
    /// Time on the client's clock at time 0.
    #[serde(default)]
    pub phase: TimeParameter,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Diurnal {
    mean_on: f64,
    hourly: [f64; 24],
    /// Hazard of a return in each hour, per second.
    back: [f64; 24],
    /// Probability that a device is available at the beginning of each hour.
    at_hour: [f64; 24],
    phases: Offsets,
}

impl Config {
    pub(super) fn build(&self, group: &GroupClients<'_>) -> Result<Diurnal, Complaint> {
        let hourly: [f64; 24] = self.hourly.as_slice().try_into().map_err(|_| {
            let found = self.hourly.len();
            Complaint::new("hourly", format!("found {found} probabilities; expected 24, one per hour of the day"))
        })?;
        if let Some((hour, p)) = hourly.iter().enumerate().find(|(_, p)| !(**p > 0.0 && **p < 1.0)) {
            return Err(Complaint::new(
                "hourly",
                format!("found {p} for hour {hour}; expected a number above 0 and below 1"),
            ));
        }
        let mean_on = self.mean_on.0.seconds();
        if mean_on < 1e-3 {
            return Err(Complaint::new("mean_on", format!("found {mean_on} s; expected at least 1 ms")));
        }
        let phases = Offsets::new(&self.phase.0, group, OFFSET).map_err(|message| Complaint::new("phase", message))?;
        let back = hourly.map(|p| p / ((1.0 - p) * mean_on));
        // In an hour, the share approaches p_h at the rate 1/((1 − p_h)·mean_on); a day is a contraction with one fixed
        // point.
        let through = |share: f64, hour: usize| approach(share, hourly[hour], mean_on, HOUR_SECONDS);
        let day = |share: f64| (0..24).fold(share, through);
        let (least, most) = (day(0.0), day(1.0));
        let mut share = least / (1.0 - (most - least));
        let mut at_hour = [0.0; 24];
        for (hour, at) in at_hour.iter_mut().enumerate() {
            *at = share;
            share = through(share, hour);
        }
        Ok(Diurnal { mean_on, hourly, back, at_hour, phases })
    }
}

/// The share of available devices after some time in an hour of probability `p`, beginning with `share`.
fn approach(share: f64, p: f64, mean_on: f64, seconds: f64) -> f64 {
    p + (share - p) * exp(-seconds / ((1.0 - p) * mean_on))
}

impl Diurnal {
    /// The hour that a client's clock shows, and the ns since that hour began.
    fn clock(&self, in_group: usize, time: u64) -> (usize, u64) {
        let clock = (time % DAY + self.phases.of(in_group) % DAY) % DAY;
        ((clock / HOUR) as usize, clock % HOUR)
    }

    /// How long a stretch that begins at `from` lasts, in ns.
    fn duration(&self, in_group: usize, from: u64, available: bool, u: f64) -> u64 {
        let hazard = -ln(u);
        if available {
            return nanoseconds(hazard * self.mean_on);
        }
        let daily: f64 = self.back.iter().map(|back| back * HOUR_SECONDS).sum();
        let days = floor(hazard / daily);
        let mut left = hazard - days * daily;
        let (mut hour, since) = self.clock(in_group, from);
        let mut seconds = days * 24.0 * HOUR_SECONDS;
        let mut room = (HOUR - since) as f64 / 1e9;
        // Rounding apart, less than a day is left: 25 hours, as the first is not whole.
        for _ in 0..25 {
            let passed = self.back[hour] * room;
            if left <= passed {
                break;
            }
            left -= passed;
            seconds += room;
            hour = (hour + 1) % 24;
            room = HOUR_SECONDS;
        }
        nanoseconds(seconds + left / self.back[hour])
    }

    /// The stretch that contains time 0.
    pub fn first(&self, in_group: usize, draws: &mut Draws<'_>) -> State {
        let (hour, since) = self.clock(in_group, 0);
        let share = approach(self.at_hour[hour], self.hourly[hour], self.mean_on, since as f64 / 1e9);
        let available = draws.uniform(0) < share;
        State { from: 0, until: self.duration(in_group, 0, available, draws.uniform(1)), number: 0, available }
    }

    /// The stretch after a given one.
    pub fn next(&self, in_group: usize, draws: &mut Draws<'_>, state: State) -> State {
        let (number, available) = (state.following(), !state.available);
        let duration = self.duration(in_group, state.until, available, draws.uniform(u64::from(number) + 1));
        State { from: state.until, until: state.until.saturating_add(duration), number, available }
    }
}
