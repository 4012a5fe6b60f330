//! The accuracy of a server's own models on its own data, for policies that ask for it.

use super::{EdgeState, Learning};
use crate::policy::{AccuracyOn, EdgeAccuracy};
use crate::run::{Metrics, RunError};
use crate::world::World;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::metric::{Place, value_of};
use fedgenie_core::state::Stateful;
use fedgenie_learning::task::{ModelState, Need, On};
use std::sync::Arc;

/// What is known of the servers of a run whose policies ask; NaN where it is unknown.
#[derive(Stateful)]
pub(in crate::run) struct Accuracies {
    /// On what, of each server.
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
    /// Before the first round; none where nobody asks. `wanted` says who does, and on what.
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

    /// On what a server's policy asks, if it does.
    pub fn asked(&self, server: EdgeId) -> Option<AccuracyOn> {
        self.on[server.index()]
    }

    /// Takes in what a server's new model has, and says what its policy is told, if that is known.
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

impl Learning<'_> {
    /// The test examples of a server with these clients: all of them, if it is the only one.
    pub(super) fn tested_by<'a>(&'a self, server: EdgeId, members: &'a [ClientId]) -> On<'a> {
        match self.world.servers() {
            1 => On::Test,
            _ => On::ServerTest(server, members, self.test_of(server).unwrap_or_default()),
        }
    }

    /// The main measure of a model on the data of a server with these clients, negated where smaller is better; NaN
    /// where there is nothing to measure on.
    fn accuracy_of(
        &self,
        (server, members): (EdgeId, &[ClientId]),
        state: &ModelState<'_>,
        on: AccuracyOn,
        parallel: bool,
    ) -> f64 {
        let measures = &self.world.measures;
        let Some(main) = measures.main() else { return f64::NAN };
        let on = match on {
            AccuracyOn::Test => self.tested_by(server, members),
            AccuracyOn::Train => On::Server(server, members),
        };
        let mut values = vec![f64::NAN; measures.of_data.len()];
        match self.task.measure(on, state, parallel, &mut values) > 0.0 {
            true => main.better.quality(values[measures.main]),
            false => f64::NAN,
        }
    }

    /// The accuracy of the one server's current model, read off `measured`, the metrics of it, if they have it.
    ///
    /// # Errors
    /// If the task lacks what it measures.
    pub fn accuracy(&self, on: AccuracyOn, measured: &Metrics, parallel: bool) -> Result<f64, RunError> {
        let main = self.world.measures.main();
        if let (AccuracyOn::Test, Some(main)) = (on, main)
            && let Some(value) = value_of(measured, main.at(Place::Test))
        {
            return Ok(main.better.quality(value));
        }
        self.check_measures()?;
        let everyone: Vec<ClientId> = (0..self.world.population.len()).map(ClientId::from_index).collect();
        Ok(self.accuracy_of((EdgeId(0), &everyone), &self.current(0), on, parallel))
    }

    /// The accuracy of an edge server's model in the middle of a round of the cloud.
    ///
    /// # Errors
    /// If the task lacks what it measures.
    pub fn accuracy_at_edge(
        &self,
        round: Round,
        edge: &EdgeState<'_>,
        model: &Arc<[f32]>,
        on: AccuracyOn,
        parallel: bool,
    ) -> Result<f64, RunError> {
        self.check(round, Need::Aggregation(&edge.aggregated))?;
        self.check(round, Need::Measures { round, servers: self.state.memories.len() })?;
        // What the server will remember if its model reaches the cloud.
        let mut state = self.state.at_edge(edge.cluster, model.clone(), &edge.rows, round);
        state.remember_at(&state.open(round, self.task), edge.edge, &edge.aggregated);
        Ok(self.accuracy_of((edge.edge, edge.members), &state.current(edge.cluster), on, parallel))
    }
}
