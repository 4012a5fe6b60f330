//! The energy of a run in its summary.

use fedgenie_simulator::population::{Energy, EnergyUse};
use serde::{Deserialize, Serialize};

/// What the phones of a run drew and got, in joules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergySummary {
    /// Drawn between jobs, and while jobs waited for devices that were away.
    pub idle_j: f64,
    /// Drawn while downloading.
    pub receive_j: f64,
    /// Drawn while computing.
    pub compute_j: f64,
    /// Drawn while uploading.
    pub send_j: f64,
    /// What entered phones.
    pub charged_j: f64,
    /// The draw of jobs whose update was never used.
    pub wasted_j: f64,
    /// How often a level came to 0.
    pub emptied: u64,
}

impl From<EnergyUse> for EnergySummary {
    fn from(EnergyUse { energies, wasted, empty: _ }: EnergyUse) -> Self {
        let [idle_j, receive_j, compute_j, send_j] = energies.drawn.map(Energy::joules);
        let (charged_j, wasted_j) = (energies.charged.joules(), wasted.joules());
        Self { idle_j, receive_j, compute_j, send_j, charged_j, wasted_j, emptied: energies.emptied }
    }
}

impl EnergySummary {
    /// Its numbers by name.
    pub fn numbers(&self) -> [(&'static str, f64); 7] {
        [
            ("energy.idle_j", self.idle_j),
            ("energy.receive_j", self.receive_j),
            ("energy.compute_j", self.compute_j),
            ("energy.send_j", self.send_j),
            ("energy.charged_j", self.charged_j),
            ("energy.wasted_j", self.wasted_j),
            ("energy.emptied", self.emptied as f64),
        ]
    }

    /// What jobs drew.
    pub fn of_jobs_j(&self) -> f64 {
        self.receive_j + self.compute_j + self.send_j
    }
}
