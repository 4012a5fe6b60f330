//! The fleet as a population that a run can have.

use crate::fleet::section;
use crate::group::GroupFit;
use fedgenie_core::id::ClientId;
use fedgenie_core::rng::Streams;
use fedgenie_learning::trainer::{LocalTraining, OptimizerConfig};
use fedgenie_simulator::population::{Population, PopulationConfig, Work};
use std::error::Error;

/// Builds the fleet from its own text.
///
/// # Panics
/// If the text is no population: laws and losses that were fitted are in the ranges of a scenario.
pub(crate) fn built(groups: &[GroupFit]) -> Population {
    read(groups).unwrap_or_else(|error| panic!("a fitted fleet is a population: {error}"))
}

fn read(groups: &[GroupFit]) -> Result<Population, Box<dyn Error>> {
    let mut whole: toml::Table = toml::from_str(&section(groups, None))?;
    let table = whole.remove("population").ok_or("there is no [population]")?;
    let config: PopulationConfig = table.try_into()?;
    // Laws that are given do not depend on how clients train.
    let sgd = OptimizerConfig::Sgd { lr: 0.1, momentum: 0.0, nesterov: false, weight_decay: 0.0, dampening: 0.0 };
    let training = LocalTraining::new(1, 1, &sgd)?;
    let work = Work { data_sizes: None, training: &training, payload_bytes: 0 };
    Ok(config.build(&work, &Streams::new(1))?)
}

/// The fleet's number of each client of the log: groups follow each other, and clients ascend in them.
pub(crate) fn places(groups: &[GroupFit], clients: usize) -> Vec<ClientId> {
    let mut places = vec![ClientId(0); clients];
    let in_order = groups.iter().flat_map(|group| &group.clients);
    in_order.enumerate().for_each(|(place, client)| places[client.index()] = ClientId::from_index(place));
    places
}
