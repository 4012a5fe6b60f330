//! Batteries: how much energy phones have, draw and get from their chargers.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | `[population.battery]`, with the definition |
//! | `flow` | a level while powers stay the same |
//! | `charger` | when a phone is on its charger |
//! | [`levels`] | the levels of one run |
//!
//! All runs of a world share [`Batteries`]; what clients are selected for drains them, so that levels are a run's own.

mod charger;
pub mod config;
mod flow;
pub mod levels;

pub use config::{BatteryConfig, ChargeConfig, Visibility};
pub use levels::{Energies, EnergyUse, Levels, Mode, Seen};

use super::availability::GroupClients;
use charger::Charger;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::record::Phase;
use fedgenie_core::state::Stateful;
use std::ops::{Add, AddAssign};

/// The source of the file that opens with the definition of batteries.
pub const DOCUMENTED: &str = include_str!("battery/config.rs");

/// Energy in nW × ns, 10⁻¹⁸ J: a whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Stateful)]
pub struct Energy(pub u128);

impl Energy {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// In joules.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e18
    }
}

impl Add for Energy {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        // Of a hundred million phones at full power, two centuries fit.
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Energy {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What a phone draws for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Nothing: between jobs, or while a job waits for a device that is away.
    Idle,
    /// A phase of a job.
    Job(Phase),
}

impl Draw {
    /// Index in arrays by draw: idle, receive, compute, send.
    const fn index(self) -> usize {
        match self {
            Self::Idle => 0,
            Self::Job(phase) => 1 + phase.index(),
        }
    }
}

/// A client's battery. Powers are in units of `scale` nW, energies in units × ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Make {
    scale: u64,
    capacity: u64,
    start: u64,
    /// The least level of a candidate.
    need: u64,
    /// By draw: idle, receive, compute, send.
    draws: [u64; 4],
    charger: u64,
}

impl Make {
    /// From joules, shares and watts, which are in their ranges.
    fn new(capacity: f64, shares: [f64; 2], draws: [f64; 4], charger: f64) -> Self {
        let billionths = |number: f64| libm::round(number * 1e9) as u64;
        // In nW × ns.
        let whole = u128::from(billionths(capacity)) * 1_000_000_000;
        let mut scale: u64 = 1;
        while whole / u128::from(scale) > i64::MAX as u128 {
            scale *= 10;
        }
        let capacity = (whole / u128::from(scale)) as u64;
        let power = |watts: f64| (billionths(watts) + scale / 2) / scale;
        let part = |share: f64| {
            let doubled = 2 * u128::from(capacity) * u128::from(billionths(share));
            ((doubled + 1_000_000_000) / 2_000_000_000) as u64
        };
        let [start, reserve] = shares.map(part);
        Self { scale, capacity, start, need: reserve.max(1), draws: draws.map(power), charger: power(charger) }
    }

    /// An amount of this battery's units.
    fn energy(&self, amount: u128) -> Energy {
        Energy(amount.saturating_mul(self.scale.into()))
    }
}

/// The batteries of a group.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    /// The first client.
    first: usize,
    /// One for each client, or one for all.
    makes: Vec<Make>,
    charger: Charger,
    /// Whether policies may see levels.
    is_seen: bool,
}

impl Bank {
    fn make(&self, client: ClientId) -> &Make {
        match &*self.makes {
            [make] => make,
            makes => &makes[client.index() - self.first],
        }
    }
}

/// The batteries of a world's clients; see the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Batteries {
    clients: usize,
    /// First client of each group, and its batteries if it has any.
    groups: Vec<(usize, Option<Bank>)>,
}

impl Batteries {
    /// Adds the next clients; the path of a complaint is below `battery`.
    pub(super) fn push(
        &mut self,
        config: Option<&BatteryConfig>,
        group: &GroupClients<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), Complaint> {
        let bank = config.map(|config| config.bank(group, notes)).transpose()?;
        self.groups.push((self.clients, bank));
        self.clients += group.count;
        Ok(())
    }

    /// Whether no client has a battery.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|(_, bank)| bank.is_none())
    }

    /// Whether policies may see the levels of all clients.
    pub fn are_seen(&self) -> bool {
        self.groups.iter().all(|(_, bank)| bank.as_ref().is_some_and(|bank| bank.is_seen))
    }

    /// The batteries of a client's group.
    fn bank(&self, client: ClientId) -> Option<&Bank> {
        let group = match self.groups.len() {
            1 => 0,
            _ => self.groups.partition_point(|(first, _)| *first <= client.index()) - 1,
        };
        self.groups[group].1.as_ref()
    }

    /// The levels of a run that begins.
    pub fn levels(&self) -> Option<Levels<'_>> {
        (!self.is_empty()).then(|| Levels::new(self))
    }
}
