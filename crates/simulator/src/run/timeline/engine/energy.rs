//! Batteries under jobs: levels, and the energy of a run.

use super::Engine;
use crate::policy::SeenBatteries;
use crate::population::{Cursors, Energy, EnergyUse, Interruption, Mode, Population};
use crate::run::timeline::jobs::Job;
use fedgenie_core::id::ClientId;
use std::collections::BTreeMap;

/// What the client of a job in a phase has been doing since that began.
pub(super) fn mode_of<'c>(population: &Population, cursors: &'c Cursors<'c>, job: &Job) -> Mode<'c> {
    match population.interruption(job.client) {
        Interruption::Pause if !cursors.is_always() => Mode::Pausing(job.phase, cursors),
        Interruption::Pause | Interruption::Lose | Interruption::RunOn => Mode::Phase(job.phase),
    }
}

impl<'w> Engine<'w> {
    /// Batteries now, as a policy may see them, where there are any.
    pub fn batteries(&self) -> Option<SeenBatteries<'_>> {
        let levels = self.levels.as_ref()?;
        Some(SeenBatteries { levels, busy: &self.busy, now: self.now() })
    }

    /// What each client has been doing.
    pub(super) fn modes<'e>(&'e self) -> impl Fn(ClientId) -> Mode<'e> + use<'e, 'w> {
        let under_way = self.jobs.iter().filter(|job| job.pending.is_some());
        let under_way: BTreeMap<ClientId, &Job> = under_way.map(|job| (job.client, job)).collect();
        move |client| {
            let mode = |job: &&Job| mode_of(&self.world.population, &self.cursors, job);
            under_way.get(&client).map_or(Mode::Idle, mode)
        }
    }

    /// What a job under way has drawn in its phase.
    pub(super) fn drawing(&self, job: &Job) -> Energy {
        let mode = mode_of(&self.world.population, &self.cursors, job);
        self.levels.as_ref().map_or(Energy::ZERO, |levels| levels.drawn_since(job.client, self.now(), mode))
    }

    /// What the run has drawn from batteries so far, phases under way included; the waste without these. O(clients).
    pub fn energy(&self) -> Option<EnergyUse> {
        let levels = self.levels.as_ref()?;
        let (energies, empty) = levels.energies(self.now(), self.modes());
        Some(EnergyUse { energies, wasted: self.accounts.wasted_energy, empty })
    }

    /// What jobs have drawn so far, phases under way included. O(jobs).
    pub fn energy_of_jobs(&self) -> Option<Energy> {
        let levels = self.levels.as_ref()?;
        let under_way = self.jobs.iter().filter(|job| job.pending.is_some());
        Some(under_way.fold(levels.energies_so_far().of_jobs(), |sum, job| sum + self.drawing(job)))
    }

    /// The level of each client in joules, `None` for one without a battery; nothing where nobody has one.
    pub fn levels_j(&self) -> Option<Vec<Option<f64>>> {
        let (levels, mode) = (self.levels.as_ref()?, self.modes());
        let level = |client| levels.level_j(client, self.now(), mode(client));
        Some((0..self.world.population.len()).map(ClientId::from_index).map(level).collect())
    }
}
