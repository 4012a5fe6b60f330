//! A run between two rounds as bytes, and back: a new run of the same world that loads them continues the same way.
//!
//! State that follows from the scenario and the seed is not saved: streams, populations, draws of jobs under way, lists
//! of candidates.

use super::protocols::Between;
use super::round::Blamed;
use super::{Protocol, Run, RunError};
use fedgenie_core::state::{State, StateError, Stateful};
use fedgenie_learning::learned::SharedModels;
use std::io;

impl Stateful for Run<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        self.exchange_parts(state);
        state.told(|failure| match failure.downcast::<Blamed>() {
            Ok(blamed) => blamed.told(&self.server.label, self.server.round()).into(),
            Err(failure) => failure,
        });
    }
}

impl Run<'_> {
    fn exchange_parts(&mut self, state: &mut State<'_>) {
        let Self { engine, server, protocol, desk: _ } = self;
        let mut models = SharedModels::new(server.learning.as_ref().map_or(0, |learning| learning.model(0).len()));
        server.exchange(state, &mut models);
        engine.exchange(state, &mut models);
        match protocol {
            Protocol::Rounds(rounds) => state.field(rounds),
            Protocol::Buffered(buffered) => state.field(buffered),
            Protocol::Hierarchy(hierarchy) => {
                let (learning, jobs) = (server.learning.as_ref(), &engine.jobs);
                hierarchy.exchange(&mut Between { learning, jobs, models: &mut models }, state);
            }
        }
    }
}

impl Run<'_> {
    /// The state that the rounds to come depend on. Records are the sink's.
    ///
    /// # Errors
    /// If a policy or a rule of clusters cannot be saved.
    pub fn save(&mut self) -> Result<Vec<u8>, RunError> {
        State::save(self).map_err(|error| match error {
            StateError::Failed(failure) => RunError::of_state(failure),
            StateError::Damaged | StateError::TooLong(_) => unreachable!("nothing is loaded"),
        })
    }

    /// The state that the [sink](crate::recorder::Sink::save) needs to continue: all of its input is on disk then.
    ///
    /// # Errors
    /// If something cannot be written out.
    pub fn save_sink(&mut self, state: &mut State<'_>) -> io::Result<()> {
        self.engine.sink.save(state)
    }

    /// Brings a run that has played no round to where another run of the same world, policies and settings was when
    /// it was [saved](Run::save).
    ///
    /// # Errors
    /// If the bytes are not those of such a run, or a component fails, with a [`RunError`]. The run cannot go on then.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        State::load(self, bytes)
    }
}
