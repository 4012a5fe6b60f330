//! The accuracy of the models that servers make, for policies that ask for it.

use crate::policy::{AccuracyOn, EdgeAccuracy};
use crate::run::learning::Learning;
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId};
use fedgenie_core::state::Stateful;

/// Accuracies of the servers whose policies ask for them; NaN if unknown.
#[derive(Stateful)]
pub(in crate::run) struct Accuracies {
    /// The data of each server's measurements.
    #[state(skip = "from the scenario")]
    on: Vec<Option<AccuracyOn>>,
    /// Of the model that each begins with.
    #[state(skip = "from the scenario and its seed")]
    pub initial: Vec<f64>,
    /// Of the last model that each has made.
    #[state(each)]
    last: Vec<f64>,
    /// Of the last one of this round.
    #[state(skip = "of the round under way")]
    of_round: Vec<f64>,
}

impl Accuracies {
    /// Before the first round; `None` if no policy asks. `wanted` has the data of each server's measurements.
    pub fn new(
        world: &World,
        learning: &Learning<'_>,
        wanted: Vec<Option<AccuracyOn>>,
        parallel: bool,
    ) -> Option<Self> {
        wanted.iter().any(Option::is_some).then(|| {
            let members = world.members();
            let clusters = world.protocol.clusters.as_ref();
            let one = |(index, (on, members)): (usize, (&Option<AccuracyOn>, &Vec<ClientId>))| {
                let cluster = clusters.map_or(0, |clusters| clusters.initial[index]);
                let state = learning.current(cluster);
                on.map_or(f64::NAN, |on| {
                    learning.accuracy_of((EdgeId::from_index(index), members), &state, on, parallel)
                })
            };
            let initial: Vec<f64> = wanted.iter().zip(&members).enumerate().map(one).collect();
            Self { last: initial.clone(), of_round: vec![f64::NAN; initial.len()], on: wanted, initial }
        })
    }

    /// The data on which a server's policy asks for accuracies, if it does.
    pub fn asked(&self, server: EdgeId) -> Option<AccuracyOn> {
        self.on[server.index()]
    }

    /// Takes in the accuracy of a server's new model. Returns the report to its policy, if both accuracies are known.
    pub fn note(&mut self, server: EdgeId, after: f64) -> Option<EdgeAccuracy> {
        self.of_round[server.index()] = after;
        let before = std::mem::replace(&mut self.last[server.index()], after);
        (!before.is_nan() && !after.is_nan()).then_some(EdgeAccuracy { before, after })
    }

    /// Of the last models that servers have made in this round.
    pub fn of_round(&self) -> &[f64] {
        &self.of_round
    }

    /// The next round begins.
    pub fn close_round(&mut self) {
        self.of_round.fill(f64::NAN);
    }
}
