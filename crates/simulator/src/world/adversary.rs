//! `[adversary]`: which clients of a world are hostile, and where their attack is defined.
//! [`fedgenie_learning::adversary`] has the definition.

use super::WorldError;
use crate::population::Population;
use crate::task::Task;
use fedgenie_core::config::Complaint;
use fedgenie_core::id::ClientId;
use fedgenie_core::metric::{Better, Measure, Measures};
use fedgenie_core::rng::{Purpose, Streams};
use fedgenie_learning::adversary::{Adversaries, Attack};
use fedgenie_learning::algorithm::Algorithm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The metric of how many selections were of hostile clients.
pub const ADVERSARY_SHARE: Measure = Measure { better: Better::Lower, ..Measure::share("adversary_share") };

/// The measure of how well pairs of classes are exchanged.
const ATTACK_SUCCESS: Measure = Measure { better: Better::Lower, ..Measure::share("attack_success") };

/// `[adversary]`: clients that send something else in the place of their updates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdversaryConfig {
    /// Their numbers; or give `groups` or `share`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<u32>>,
    /// All clients of these groups of the population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// This share of all clients, drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What they do.
    pub attack: Attack,
}

impl AdversaryConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// A complaint with a path below `adversary`.
    pub fn check(&self) -> Result<(), Complaint> {
        let given = [self.clients.is_some(), self.groups.is_some(), self.share.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let message = "says who is hostile by one of clients = [1, 4], groups = [\"bad\"] and share = 0.3; give \
                           one of them, and take the others out";
            return Err(Complaint::new("", message));
        }
        if let Some(share) = self.share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(Complaint::new("share", format!("found {share}; expected a number from 0 to 1")));
        }
        self.attack.check().map_err(|complaint| complaint.below(self.attack.kind()).below("attack"))
    }

    /// A warning where nobody is hostile though somebody was to be.
    pub(super) fn warning(&self, hostile: &Adversaries, clients: usize) -> Option<String> {
        let told = || match self.share {
            Some(share) => {
                format!("nobody is hostile: share = {share} of {clients} clients is less than half a client")
            }
            None => "nobody is hostile: [adversary] names no client".to_owned(),
        };
        (hostile.clients.is_empty() && self.share != Some(0.0)).then(told)
    }

    /// Adds the measures of the attack to those of a task.
    pub(super) fn add_measures(&self, measures: &mut Measures) {
        measures.of_run.push(ADVERSARY_SHARE);
        if self.attack.pairs().is_some() && !measures.of_data.is_empty() {
            measures.of_data.push(ATTACK_SUCCESS);
        }
    }

    /// Who is hostile in a world, and its task with the labels that they train on.
    pub(super) fn found(
        &self,
        population: &Population,
        (task, algorithm): (Option<Arc<dyn Task>>, &Algorithm),
        streams: &Streams,
        others: Others,
    ) -> Result<(Adversaries, Option<Arc<dyn Task>>), WorldError> {
        let hostile = Adversaries { attack: self.attack.clone(), clients: self.among(population, streams)?.into() };
        let kind = self.attack.kind();
        let refuse = |message: String| Err(WorldError::scenario(&format!("adversary.attack.{kind}"), message));
        let has_model = task.as_ref().is_some_and(|task| !task.layout().is_empty());
        let remembers = algorithm.job.as_ref().is_some_and(|job| job.remembers().is_some());
        match &self.attack {
            Attack::Slow { .. } if others.meters_speeds => {
                return refuse(
                    "makes clients slower than the laws of [regret] meters say; take the meters out".to_owned(),
                );
            }
            Attack::Slow { .. } if population.recording().is_some() => {
                return refuse(
                    "changes compute times, and those of a log are replayed as they are; take it out".to_owned(),
                );
            }
            Attack::Slow { .. } => {}
            _ if !has_model => return refuse(format!("needs updates, and the task ({}) learns nothing", others.task)),
            Attack::LittleIsEnough { .. } => {
                let has_rows = task.as_ref().is_some_and(|task| task.layout().rows() > 0);
                let why = match () {
                    () if has_rows => {
                        Some("is defined for models without tables, which clients move different rows of")
                    }
                    () if algorithm.compression.is_some() => {
                        Some("is made of whole updates, and [compression] encodes each")
                    }
                    () if remembers => {
                        Some("is not defined where the algorithm lets clients remember their own change")
                    }
                    () if others.is_hindsight => {
                        Some("depends on who else is selected, so that sets of clients have no value of their own")
                    }
                    () => None,
                };
                if let Some(why) = why {
                    return refuse(format!("{why}; take another attack"));
                }
            }
            Attack::LabelFlip { .. } => {
                if others.drifts {
                    return refuse("is not defined where data move from server to server; take drift out".to_owned());
                }
                if others.shifts {
                    return refuse("is not defined where data change over time; take shift out".to_owned());
                }
                let Some(task) = task else { return Ok((hostile, None)) };
                return match task.relabelled(&hostile) {
                    Ok(task) => Ok((hostile, Some(task))),
                    Err(why) => refuse(format!("{why} (task {})", others.task)),
                };
            }
            Attack::SignFlip { .. } | Attack::Scaled { .. } | Attack::Noise { .. } | Attack::FreeRider { .. } => {}
        }
        Ok((hostile, task))
    }

    fn among(&self, population: &Population, streams: &Streams) -> Result<Vec<ClientId>, WorldError> {
        let count = population.len();
        if let Some(share) = self.share {
            let mut all: Vec<ClientId> = (0..count).map(ClientId::from_index).collect();
            let chosen = (share * count as f64).round() as usize;
            let mut rng = streams.stream(Purpose::Attack, u32::MAX, 0);
            for place in 0..chosen {
                let other = place + rng.below((count - place) as u64) as usize;
                all.swap(place, other);
            }
            all.truncate(chosen);
            all.sort_unstable();
            return Ok(all);
        }
        if let Some(clients) = &self.clients {
            if let Some(beyond) = clients.iter().find(|client| **client as usize >= count) {
                let message = format!("names client {beyond}; there are {count}, from 0 on");
                return Err(WorldError::scenario("adversary.clients", message));
            }
            let mut clients: Vec<ClientId> = clients.iter().map(|&client| ClientId(client)).collect();
            clients.sort_unstable();
            clients.dedup();
            return Ok(clients);
        }
        let names = self.groups.as_deref().unwrap_or_default();
        let groups = population.groups();
        let known = |name: &str| groups.iter().position(|group| group.name.as_deref() == Some(name));
        if let Some(unknown) = names.iter().find(|name| known(name).is_none()) {
            let mut there: Vec<&str> = groups.iter().filter_map(|group| group.name.as_deref()).collect();
            there.dedup();
            let there = match there.is_empty() {
                true => "no group of this population has a name".to_owned(),
                false => format!("the groups of this population are: {}", there.join(", ")),
            };
            let message = format!("names the group {unknown:?}; {there}");
            return Err(WorldError::scenario("adversary.groups", message));
        }
        let of = |client: &ClientId| groups[population.group_of(*client)].name.as_deref();
        let is_named = |client: &ClientId| of(client).is_some_and(|name| names.iter().any(|known| known == name));
        Ok((0..count).map(ClientId::from_index).filter(is_named).collect())
    }
}

/// What an attack is not defined beside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    pub task: &'static str,
    /// Whether meters know the clients' mean speeds.
    pub meters_speeds: bool,
    /// Whether sets of clients are judged in hindsight.
    pub is_hindsight: bool,
    /// Whether data move.
    pub drifts: bool,
    /// Whether data change in another way.
    pub shifts: bool,
}
