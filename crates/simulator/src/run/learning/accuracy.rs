//! The accuracy of a server's own models on its own data, for policies that ask for it.

use super::{EdgeState, Learning, unfolded};
use crate::policy::AccuracyOn;
use crate::run::error::RunError;
use crate::world::Metrics;
use fedgenie_core::id::{ClientId, EdgeId, Round};
use fedgenie_core::metric::{Place, value_of};
use fedgenie_learning::learned::{Remember, Tier};
use fedgenie_learning::task::{ModelState, Need, On};
use std::sync::Arc;

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
    pub fn accuracy_of(
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
        match self.measured_on(on, state, parallel, &mut values) > 0.0 {
            true => main.better.quality(values[measures.main]),
            false => f64::NAN,
        }
    }

    /// The accuracy of the one server's current model, read off `measured`, the metrics of it, if they have it.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
    pub fn accuracy(&self, on: AccuracyOn, measured: &Metrics, parallel: bool) -> Result<f64, RunError> {
        let main = self.world.measures.main();
        if let (AccuracyOn::Test, Some(main)) = (on, main)
            && let Some(value) = value_of(measured, main.at(Place::Test))
        {
            return Ok(main.better.quality(value));
        }
        self.check_measures()?;
        let everyone: Vec<ClientId> = (0..self.world.population.len()).map(ClientId::from_index).collect();
        let found = self.accuracy_of((EdgeId(0), &everyone), &self.current(0), on, parallel);
        self.check_work(self.state.round)?;
        Ok(found)
    }

    /// The accuracy of an edge server's model in the middle of a round of the cloud.
    ///
    /// # Errors
    /// If the task lacks a number that it measures.
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
        let (open, remember) = (state.open(round, self.task), Remember::One(edge.edge, &edge.aggregated));
        let folded = state.fold(&self.learner, open, Tier::Edge(edge.cluster), &[], remember);
        folded.map_err(|why| unfolded(why, round))?;
        let found = self.accuracy_of((edge.edge, edge.members), &state.current(edge.cluster), on, parallel);
        self.check_work(round)?;
        Ok(found)
    }
}
