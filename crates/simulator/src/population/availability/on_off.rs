//! Devices alternate between available and away: an alternating renewal process.
//!
//! # Definition
//! Stretches of time alternate, available and away, with independent durations of the laws `on` and `off`, each rounded
//! to the nearest ns and at least 1 ns. `start = "equilibrium"`, the default: at time 0 the process is stationary. The
//! device is available with probability `E[on]/(E[on] + E[off])`, and the rest of the current stretch has the
//! integrated-tail law `P(R ≤ r) = ∫₀^r P(X > x) dx / E X`. `start = "on"` or `"off"`: a stretch of that kind begins at
//! time 0.
//!
//! # Inputs
//! `on`, `off`: laws of durations, whose parameters may differ between clients; their means are positive and, for the
//! equilibrium, finite, and together at least 1 ms. A stretch longer than 100 years never ends.
//!
//! # Source
//! D. R. Cox, "Renewal Theory", 1962, chapter 7 (alternating renewal processes) and 5.2 (residual life).
//!
//! # Cost
//! Per stretch a random number and a quantile. A query takes one step per stretch between the client's last query and
//! this one, forwards or backwards; a client without queries costs nothing. The integrated tail has a closed form for
//! constant, uniform and exponential laws. For other laws it is tabulated: once if the clients share the law, otherwise
//! at each client's first query (some 50 µs).
//!
//! # Determinism
//! Uniform 0 of the client decides the state at time 0, uniform n + 1 the duration of stretch n; stream (Availability,
//! client, block of 32).
//!
//! # Example
//! ```toml
//! availability = { on-off = { on = { exponential = { mean = "40 min" } }, off = { lognormal = { median = "2 h", sigma = 1 } } } }
//! availability = { on-off = { on = { constant = "1 h" }, off = { constant = "23 h" }, start = "on" } }
//! ```

use super::draws::Draws;
use super::residual::Residual;
use super::{GroupClients, OFF_LAW, ON_LAW, State};
use crate::population::law::TimeLaw;
use fedgenie_core::config::Complaint;
use fedgenie_core::law::{AnyLaw, Law};
use fedgenie_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shortest mean of one stretch available and one away together, in seconds.
const SHORTEST_CYCLE: f64 = 1e-3;

/// `on-off`: see the [module](self).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long a device is available.
    pub on: TimeLaw,
    /// How long a device is away.
    pub off: TimeLaw,
    /// Its state at time 0.
    #[serde(default)]
    pub start: Start,
}

/// The state at time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The stationary state of the process.
    #[default]
    Equilibrium,
    /// An available stretch begins.
    On,
    /// An away stretch begins.
    Off,
}

/// The law of one kind of stretch.
#[derive(Clone, Debug)]
enum Laws {
    Shared(AnyLaw, Option<Residual>),
    Each(Vec<AnyLaw>),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct OnOff {
    on: Laws,
    off: Laws,
    start: Start,
}

impl Config {
    pub(super) fn build(&self, group: &GroupClients<'_>) -> Result<OnOff, Complaint> {
        let laws = |law: &TimeLaw, number: u32| -> Result<Laws, String> {
            law.check_lengths(group.count)?;
            if law.is_fixed() {
                return Ok(Laws::Shared(law.build(&group.client(0), number)?, None));
            }
            (0..group.count)
                .map(|client| law.build(&group.client(client), number))
                .collect::<Result<_, _>>()
                .map(Laws::Each)
        };
        let mut process = OnOff {
            on: laws(&self.on, ON_LAW).map_err(|message| Complaint::new("on", message))?,
            off: laws(&self.off, OFF_LAW).map_err(|message| Complaint::new("off", message))?,
            start: self.start,
        };
        for in_group in 0..group.count {
            self.check(process.on.of(in_group).mean(), process.off.of(in_group).mean())?;
            if matches!((&process.on, &process.off), (Laws::Shared(..), Laws::Shared(..))) {
                break;
            }
        }
        if self.start == Start::Equilibrium {
            for laws in [&mut process.on, &mut process.off] {
                if let Laws::Shared(law, residual) = laws {
                    *residual = Some(Residual::new(law));
                }
            }
        }
        Ok(process)
    }

    fn check(&self, on: f64, off: f64) -> Result<(), Complaint> {
        for (key, mean) in [("on", on), ("off", off)] {
            if mean <= 0.0 {
                return Err(Complaint::new(
                    key,
                    "the mean is 0; expected stretches that last, or availability = \"always\"",
                ));
            }
            if mean == f64::INFINITY && self.start == Start::Equilibrium {
                let message = "the mean is infinite, so that there is no equilibrium; give start = \"on\" or \"off\", or \
                               another law";
                return Err(Complaint::new(key, message));
            }
        }
        if on + off < SHORTEST_CYCLE {
            let message = format!(
                "a device is there for {on} s and away for {off} s on average; expected at least {SHORTEST_CYCLE} s together"
            );
            return Err(Complaint::new("on", message));
        }
        Ok(())
    }
}

impl Laws {
    fn of(&self, in_group: usize) -> &AnyLaw {
        match self {
            Self::Shared(law, _) => law,
            Self::Each(laws) => &laws[in_group],
        }
    }

    fn residual(&self, in_group: usize, u: f64) -> f64 {
        match self {
            Self::Shared(_, Some(residual)) => residual.quantile(u),
            _ => Residual::new(self.of(in_group)).quantile(u),
        }
    }
}

/// A duration in ns, at least 1; one that virtual time cannot hold never ends.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    Span::from_seconds(seconds).map_or(u64::MAX, |span| span.0.max(1))
}

impl OnOff {
    fn laws(&self, available: bool) -> &Laws {
        if available { &self.on } else { &self.off }
    }

    /// The stretch that contains time 0.
    pub fn first(&self, in_group: usize, draws: &mut Draws<'_>) -> State {
        let (on, off) = (self.on.of(in_group), self.off.of(in_group));
        let available = match self.start {
            Start::On => true,
            Start::Off => false,
            Start::Equilibrium => draws.uniform(0) * (on.mean() + off.mean()) < on.mean(),
        };
        let u = draws.uniform(1);
        let seconds = match self.start {
            Start::Equilibrium => self.laws(available).residual(in_group, u),
            _ => self.laws(available).of(in_group).quantile(u),
        };
        State { from: 0, until: nanoseconds(seconds), number: 0, available }
    }

    fn duration(&self, in_group: usize, draws: &mut Draws<'_>, number: u32, available: bool) -> u64 {
        nanoseconds(self.laws(available).of(in_group).quantile(draws.uniform(u64::from(number) + 1)))
    }

    /// The stretch after a given one.
    pub fn next(&self, in_group: usize, draws: &mut Draws<'_>, state: State) -> State {
        let (number, available) = (state.following(), !state.available);
        let duration = self.duration(in_group, draws, number, available);
        State { from: state.until, until: state.until.saturating_add(duration), number, available }
    }

    /// The stretch before a given one, which is not the first. Durations are whole ns, so that a step back is exact.
    pub fn previous(&self, in_group: usize, draws: &mut Draws<'_>, state: State) -> State {
        let (number, available) = (state.number - 1, !state.available);
        let from = match number {
            0 => 0,
            _ => state.from - self.duration(in_group, draws, number, available),
        };
        State { from, until: state.from, number, available }
    }
}
