//! A run between two rounds as bytes, and back: whoever loads them into a new run of the same world goes on as if
//! nothing had happened.
//!
//! What follows from the scenario and the seed is not saved: streams, populations, draws of jobs under way, lists of
//! candidates.

use super::hierarchy::Between;
use super::learning::Sent;
use super::{Protocol, Run};
use fedgenie_core::state::{State, StateError, Stateful};
use fedgenie_learning::algorithm::JobMemory;
use std::io;
use std::sync::Arc;

/// Models that many jobs share, each of them saved once.
pub(super) struct Shared {
    /// Parameters of a model.
    length: usize,
    models: Vec<Arc<[f32]>>,
}

impl Shared {
    /// None yet, of so many parameters.
    pub const fn new(length: usize) -> Self {
        Self { length, models: Vec::new() }
    }

    /// One of the models.
    pub fn exchange(&mut self, model: &mut Arc<[f32]>, state: &mut State<'_>) {
        let known = self.models.iter().rposition(|known| Arc::ptr_eq(known, model));
        let mut place = known.unwrap_or(self.models.len()) as u64;
        state.field(&mut place);
        if let Some(known) = self.models.get(place as usize) {
            *model = known.clone();
            return;
        }
        state.field(model);
        state.require(place == self.models.len() as u64 && model.len() == self.length);
        self.models.push(model.clone());
    }

    /// One of the models, if there is any.
    pub fn exchange_option(&mut self, model: &mut Option<Arc<[f32]>>, state: &mut State<'_>) {
        let mut is_some = model.is_some();
        state.field(&mut is_some);
        if state.is_loading() {
            *model = is_some.then(|| Arc::from([]));
        }
        if let Some(model) = model {
            self.exchange(model, state);
        }
    }

    /// What a client was sent, if anything.
    pub fn exchange_sent(&mut self, sent: &mut Option<Sent>, state: &mut State<'_>) {
        let mut is_some = sent.is_some();
        state.field(&mut is_some);
        if state.is_loading() {
            let memory = JobMemory::default();
            *sent = is_some.then(|| Sent { model: Arc::from([]), private: None, memory, cluster: 0 });
        }
        if let Some(Sent { model, private, memory: JobMemory { server, client }, cluster }) = sent {
            self.exchange(model, state);
            state.field(private);
            self.exchange_option(server, state);
            state.field(client);
            state.field(cluster);
        }
    }
}

impl Stateful for Run<'_> {
    fn exchange(&mut self, state: &mut State<'_>) {
        let Self { engine, server, protocol } = self;
        let mut models = Shared::new(server.learning.as_ref().map_or(0, |learning| learning.model(0).len()));
        server.exchange(state, &mut models);
        engine.exchange(state, &mut models);
        match protocol {
            Protocol::Rounds(rounds) => state.field(rounds),
            Protocol::Buffered(buffered) => buffered.exchange(engine.world, state),
            Protocol::Hierarchy(hierarchy) => {
                let (world, learning, jobs) = (engine.world, server.learning.as_ref(), &engine.jobs);
                hierarchy.exchange(&mut Between { world, learning, jobs, models: &mut models }, state);
            }
        }
    }
}

impl Run<'_> {
    /// All that matters for the rounds to come. What a sink has kept is the sink's.
    pub fn save(&mut self) -> Vec<u8> {
        State::save(self)
    }

    /// What the [sink](crate::recorder::Sink::save) needs to go on: everything that it was given is on disk then.
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
    /// If the bytes are not those of such a run. The run cannot go on then.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        State::load(self, bytes)
    }
}
